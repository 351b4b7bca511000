"""Palettes read from `resources/themes`, and what they give each proxy state and pair of hosts. No Qt."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from lab import colour
from lab.model import ProxyState

OTHER_MARKERS = ("pentagon", "hexagon", "star")
OTHER_DASHES = ((3.0, 2.5), (5.0, 2.5), (9.0, 2.5))
TINT, BAND = 0.45, 0.22
PAIR_NAMES = {
    "client-proxy": ("client ⇄ proxy", "inside the office"),
    "proxy-server": ("proxy ⇄ server", "over the line"),
    "client-server": ("client ⇄ server", "over the line, past the proxy"),
}
PAIR_DIRECTIONS = {
    "client-proxy": ("proxy>client", "client>proxy"),
    "proxy-server": ("server>proxy", "proxy>server"),
    "client-server": ("server>client", "client>server"),
}
"""Of each pair: its download and its upload, as `lab.model.PAIRS` names them."""


@dataclass(frozen=True, slots=True)
class StateLook:
    """How one proxy state is drawn everywhere. `dash` in pixels, empty for a solid line."""

    colour: str
    marker: str
    dash: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by token, `#RRGGBB`."""

    name: str
    dark: bool
    tokens: dict[str, str]
    states: dict[str, str]
    pairs: dict[str, str]

    def state(self, state: ProxyState, among: Sequence[ProxyState] = ()) -> StateLook:
        """Colour, marker and pattern of a state; `among` orders several other N %."""
        if state.full is None:
            return StateLook(self.states["disabled"], "square", (7.0, 3.5))
        known = {0: ("empty", "down", (1.2, 3.0)), 90: ("ninety", "diamond", (7.0, 3.0, 1.2, 3.0))}
        if state.full in known:
            key, marker, dash = known[int(state.full)]
            return StateLook(self.states[key], marker, dash)
        if state.full == 100:
            return StateLook(self.states["full"], "disc", ())
        others = sorted({s.full for s in among if s.full is not None and s.full not in (0, 90, 100)})
        rank = others.index(state.full) % 3 if state.full in others else 0
        return StateLook(self.states["other"], OTHER_MARKERS[rank], OTHER_DASHES[rank])

    def mixed(self, hue: str, share: float) -> str:
        """`share` of a colour over the surface."""
        return colour.mix(self.tokens["surface"], hue, share)


def load(name: str) -> Palette:
    """The palette `light` or `dark`."""
    text = resources.files("resources").joinpath("themes", f"{name}.toml").read_text("utf-8")
    data = tomllib.loads(text)
    return Palette(data["name"], data["dark"], data["tokens"], data["states"], data["pairs"])
