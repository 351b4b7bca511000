"""What a figure is drawn with: SVG elements, text as text, colours of a palette or of the page around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from lab import markers, palette
from lab.export import fitting
from lab.export.files import clean
from lab.palette import StateLook

FONTS = "Inter, 'Segoe UI', 'Noto Sans', Arial, 'Liberation Sans', sans-serif"
HALO = 1.2


def variables(theme: str) -> dict[str, str]:
    """Names of CSS variables and their colours in a palette, for a page that draws its figures with them."""
    look = palette.load(theme)
    tints = {f"tint-{key}": look.mixed(hue, palette.TINT) for key, hue in look.pairs.items()}
    states = {f"state-{key}": hue for key, hue in look.states.items()}
    pairs = {f"pair-{key}": hue for key, hue in look.pairs.items()}
    return {**look.tokens, **states, **pairs, **tints}


@dataclass
class Canvas:
    """SVG elements, one after another. `by_name`: colours are the page's CSS variables, so that it can be dark."""

    width: float
    height: float
    by_name: bool = False
    parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._light = variables("light")
        self._names = {hue: name for name, hue in reversed(self._light.items())}

    def ink(self, token: str) -> str:
        """A colour by its token."""
        return f"var(--{token})" if self.by_name else self._light[token]

    def hue(self, colour: str) -> str:
        """A colour of the light palette."""
        name = self._names.get(colour)
        return f"var(--{name})" if self.by_name and name else colour

    def rect(self, x: float, y: float, w: float, h: float, fill: str) -> None:
        """A filled rectangle."""
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" style="fill:{fill}"/>'
        )

    def line(
        self, points: Sequence[tuple[float, float]], stroke: str, width: float = 1, dash: Iterable[float] = ()
    ) -> None:
        """A line through points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        pattern = " ".join(f"{part:g}" for part in dash)
        dashed = f";stroke-dasharray:{pattern}" if pattern else ""
        self.parts.append(
            f'<polyline points="{path}" style="fill:none;stroke:{stroke};stroke-width:{width:g}{dashed}"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 12,
        ink: str = "text2",
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """One line of text; `y` is its middle. `anchor` is start, middle or end, as SVG has them."""
        weight = ";font-weight:600" if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y + size * 0.36:.1f}" text-anchor="{anchor}" '
            f'style="font-size:{size:g}px;fill:{self.ink(ink)}{weight}">{escape(clean(text))}</text>'
        )

    def marker(self, look: StateLook, x: float, y: float, size: float = 10, *, halo: bool = False) -> None:
        """A state's marker."""
        around = f";stroke:{self.ink('surface')};stroke-width:{2 * HALO:g};paint-order:stroke" if halo else ""
        style = f'style="fill:{self.hue(look.colour)}{around}"'
        corners = markers.outline(look.marker)
        if corners:
            path = " ".join(f"{x + size * dx:.2f},{y + size * dy:.2f}" for dx, dy in corners)
            self.parts.append(f'<polygon points="{path}" {style}/>')
        else:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size * markers.RADIUS:.2f}" {style}/>')

    def cross(self, x: float, y: float) -> None:
        """The sign of a failed cell."""
        for turn in (1, -1):
            self.line([(x - 4, y - 4 * turn), (x + 4, y + 4 * turn)], self.ink("trouble"), 1.8)

    def interval(self, x: float, low: float, high: float, stroke: str) -> None:
        """An upright error bar with caps; nothing where it would be lost behind its marker."""
        if abs(low - high) > 2:
            self.line([(x, low), (x, high)], stroke, 1.2)
            for y in (low, high):
                self.line([(x - 3, y), (x + 3, y)], stroke, 1.2)

    def wrapped(
        self, x: float, y: float, text: str, width: float, *, size: float, ink: str, bold: bool = False
    ) -> float:
        """Text in as many lines as it needs, from the top `y`. Returns the bottom."""
        for line in lines(clean(text), width / size):
            self.text(x, y + size * 0.65, line, size=size, ink=ink, bold=bold)
            y += size * 1.35
        return y

    def svg(self, title: str, described: str) -> str:
        """The whole drawing. A reader that cannot show it reads `title` and `described`."""
        body = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" role="img" aria-label={quoteattr(clean(title))} '
            f'style="font-family:{FONTS};font-variant-numeric:tabular-nums">\n'
            f"<title>{escape(clean(title))}</title>\n<desc>{escape(clean(described))}</desc>\n{body}\n</svg>\n"
        )


def lines(text: str, ems: float) -> list[str]:
    """Text broken into lines of about so many ems, between words; where there are none, between characters."""
    found: list[str] = []
    for word in text.split(" "):
        joined = f"{found[-1]} {word}" if found else word
        if found and fitting.breadth(joined) > ems:
            found.append(word)
        elif found:
            found[-1] = joined
        else:
            found.append(word)
        while fitting.breadth(found[-1]) > ems and len(found[-1]) > 1:
            last, cut = found[-1], max(1, int(len(found[-1]) * ems / fitting.breadth(found[-1])))
            found[-1:] = [last[:cut], last[cut:]]
    return found
