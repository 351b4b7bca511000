"""The palettes: contrast of every text and mark, and states and pairs apart for every kind of eye."""

from __future__ import annotations

from itertools import combinations

import pytest

from lab import colour, palette
from lab.model import DISABLED, ProxyState

THEMES = ("light", "dark")
GROUNDS = ("surface", "raised", "canvas", "sunken")
PUBLISHED = {
    "light": ("#C0C4CD", "#A3AAB6", "#8890A0", "#6D778A", "#535F75", "#3B4860"),
    "dark": ("#4D535B", "#656C76", "#7F8792", "#9AA3AF", "#B6C0CD", "#D3DEEC"),
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


@pytest.mark.parametrize("name", THEMES)
def test_ramp_is_the_published_one(name: str) -> None:
    theme = palette.load(name)
    made = colour.ramp(theme.tokens["surface"], theme.states["disabled"], 6)
    for mine, theirs in zip(made, PUBLISHED[name], strict=True):
        assert max(abs(a - b) for a, b in zip(colour.parsed(mine), colour.parsed(theirs), strict=True)) < 0.01


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
