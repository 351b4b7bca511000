"""The palettes: contrast of every text and mark, and states and pairs apart for every kind of eye."""

from __future__ import annotations

from itertools import combinations

import pytest

from lab import colour, palette
from lab.model import DISABLED, ProxyState

THEMES = ("light", "dark")
GROUNDS = ("surface", "raised", "canvas", "sunken")
EYES = ("normal", "deuteranopia", "protanopia", "tritanopia")
CONTRASTS = {
    "light": {
        "edge": 3.4,
        "axis": 3.2,
        "text": 16.2,
        "text2": 7.3,
        "text3": 5.3,
        "accent": 6.0,
        "ok": 5.3,
        "warn": 6.2,
        "trouble": 7.5,
        "waiting": 5.3,
        "disabled": 9.2,
        "empty": 3.3,
        "ninety": 4.7,
        "full": 4.1,
        "other": 8.0,
        "client-proxy": 3.4,
        "proxy-server": 3.7,
        "client-server": 6.4,
    },
    "dark": {
        "edge": 3.9,
        "axis": 3.5,
        "text": 13.7,
        "text2": 8.4,
        "text3": 6.0,
        "accent": 7.5,
        "ok": 10.0,
        "warn": 9.5,
        "trouble": 5.5,
        "waiting": 6.0,
        "disabled": 12.0,
        "empty": 5.4,
        "ninety": 4.9,
        "full": 5.3,
        "other": 12.5,
        "client-proxy": 7.0,
        "proxy-server": 9.1,
        "client-server": 5.1,
    },
}
"""On the surface, as the look's tables have them."""
LEAST = {
    ("light", "states"): (22.9, 19.0, 20.2, 24.8),
    ("dark", "states"): (27.2, 18.6, 20.5, 24.7),
    ("light", "pairs"): (42.6, 21.8, 22.4, 22.0),
    ("dark", "pairs"): (34.8, 15.5, 19.0, 15.0),
}
"""The least difference of any two, by kind of eye in the order of `EYES`."""
TINTS = {
    "light": {"client-proxy": "#D3C9AC", "proxy-server": "#ABCBDD", "client-server": "#D5A7B7"},
    "dark": {"client-proxy": "#5F5941", "proxy-server": "#4E6671", "client-server": "#684457"},
}
RAMPS = {
    ("light", "disabled"): "C0C4CD A3AAB6 8890A0 6D778A 535F75 3B4860",
    ("light", "empty"): "F7D6C0 F2C3A2 ECAF84 E69C65 DF8843 D8730C",
    ("light", "ninety"): "D9CEF8 C8B7F3 B8A0EE A888E9 9970E3 8A56DC",
    ("light", "full"): "C1DCD9 A3CCC8 86BCB7 67ACA6 459C96 0E8C86",
    ("light", "other"): "D1C6B5 BDAC94 A89373 947A53 806232 6C4A08",
    ("dark", "disabled"): "4D535B 656C76 7F8792 9AA3AF B6C0CD D3DEEC",
    ("dark", "empty"): "523B2E 6C472F 88542F A5602C C26D27 E07A1C",
    ("dark", "ninety"): "42385D 554378 694E95 7D59B2 9265D1 A870F0",
    ("dark", "full"): "2A4445 2F5554 346864 387B74 3C8E84 3FA295",
    ("dark", "other"): "555441 736F4D 928A59 B2A664 D4C46F F6E27A",
}


@pytest.fixture(params=THEMES)
def theme(request: pytest.FixtureRequest) -> palette.Palette:
    return palette.load(request.param)


@pytest.mark.parametrize("token", ["text", "text2", "text3", "accent", "ok", "warn", "trouble", "waiting"])
def test_text_is_legible_on_every_ground(theme: palette.Palette, token: str) -> None:
    grounds = GROUNDS if token.startswith("text") else ("surface",)
    assert min(colour.contrast(theme.tokens[token], theme.tokens[ground]) for ground in grounds) >= 4.5


@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        ("on_accent", "accent"),
        ("on_trouble", "trouble"),
        ("accent", "accent_soft"),
        ("ok", "ok_soft"),
        ("warn", "warn_soft"),
        ("trouble", "trouble_soft"),
        ("text", "accent_soft"),
    ],
)
def test_text_is_legible_on_colour(theme: palette.Palette, ink: str, ground: str) -> None:
    assert colour.contrast(theme.tokens[ink], theme.tokens[ground]) >= 4.5


def test_marks_are_seen_on_the_surface(theme: palette.Palette) -> None:
    marks = [theme.tokens["edge"], theme.tokens["axis"], *theme.states.values(), *theme.pairs.values()]
    assert min(colour.contrast(mark, theme.tokens["surface"]) for mark in marks) >= 3


@pytest.mark.parametrize("eye", sorted(colour.BLINDNESS))
def test_states_and_pairs_are_told_apart(theme: palette.Palette, eye: str) -> None:
    for hues, least in ((theme.states, 18), (theme.pairs, 15)):
        assert min(colour.difference(a, b, eye) for a, b in combinations(hues.values(), 2)) >= least


def test_data_is_not_mistaken_for_the_accent(theme: palette.Palette) -> None:
    data = [*theme.states.values(), *theme.pairs.values()]
    assert min(colour.difference(theme.tokens["accent"], hue) for hue in data) >= 16


@pytest.mark.parametrize(("name", "state"), list(RAMPS))
def test_ramp_is_the_published_one(name: str, state: str) -> None:
    theme = palette.load(name)
    made = colour.ramp(theme.tokens["surface"], theme.states[state], 6)
    for mine, theirs in zip(made, RAMPS[name, state].split(), strict=True):
        for a, b in zip(colour.parsed(mine), colour.parsed(f"#{theirs}"), strict=True):
            assert abs(a - b) < 0.01


def test_contrasts_are_those_of_the_tables(theme: palette.Palette) -> None:
    hues = {**theme.tokens, **theme.states, **theme.pairs}
    made = {name: colour.contrast(hues[name], theme.tokens["surface"]) for name in CONTRASTS[theme.name]}
    assert made == pytest.approx(CONTRASTS[theme.name], abs=0.06)


@pytest.mark.parametrize("kind", ["states", "pairs"])
def test_least_differences_are_those_of_the_tables(theme: palette.Palette, kind: str) -> None:
    hues = list((theme.states if kind == "states" else theme.pairs).values())
    made = [min(colour.difference(a, b, eye) for a, b in combinations(hues, 2)) for eye in EYES]
    assert made == pytest.approx(LEAST[theme.name, kind], abs=0.06)


def test_a_pair_is_no_state_and_its_tint_is_the_published_one(theme: palette.Palette) -> None:
    least = 14 if theme.dark else 18
    both = [(pair, state) for pair in theme.pairs.values() for state in theme.states.values()]
    assert min(colour.difference(pair, state) for pair, state in both) >= least
    for pair, hue in theme.pairs.items():
        mixed = theme.mixed(hue, palette.TINT)
        for a, b in zip(colour.parsed(mixed), colour.parsed(TINTS[theme.name][pair]), strict=True):
            assert abs(a - b) < 0.01


def test_a_filled_button_is_legible_under_the_mouse_and_pressed(theme: palette.Palette) -> None:
    for ground in ("accent", "accent_hover", "accent_pressed"):
        assert colour.contrast(theme.tokens["on_accent"], theme.tokens[ground]) >= 4.5


def test_ciede2000_gives_published_values() -> None:
    # Sharma, Wu, Dalal (2005), pairs 1 and 25 of their table
    assert colour._ciede2000((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485)) == pytest.approx(
        2.0425, abs=1e-4
    )
    one, two = (60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387)
    assert colour._ciede2000(one, two) == pytest.approx(1.2644, abs=1e-4)


def test_states_keep_shape_and_pattern(theme: palette.Palette) -> None:
    states = [DISABLED, *(ProxyState(full=n) for n in (0, 90, 100, 37.5, 50))]
    looks = [theme.state(state, states) for state in states]
    assert [look.marker for look in looks] == ["square", "down", "diamond", "disc", "pentagon", "hexagon"]
    assert len({look.dash for look in looks}) == len(looks)
