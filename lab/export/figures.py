"""Figures as data: what is drawn, and nothing of how. The same object goes to a slide, a sheet and a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lab.errors import BadInput
from lab.palette import StateLook


class Kind(StrEnum):
    """How a figure's points stand to each other."""

    BAR = "bar"
    STACKED = "stacked"
    LINE = "line"
    SCATTER = "scatter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What an axis shows, in which unit (empty: it has names, no numbers), and whether by its logarithm."""

    name: str
    unit: str = ""
    log: bool = False

    @property
    def title(self) -> str:
        """`time, s, log`."""
        return ", ".join(part for part in (self.name, self.unit, "log" if self.log else "") if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value with its interval (`low`, `high`), or a gap (`value` is None) and the word for it.

    `x` is its place in a scatter; everywhere else points stand in the order of the figure's categories.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    missing: str = ""
    x: float | None = None

    @property
    def below(self) -> float | None:
        """How far the interval reaches below the value."""
        return None if self.value is None or self.low is None else max(0.0, self.value - self.low)

    @property
    def above(self) -> float | None:
        """How far the interval reaches above the value."""
        return None if self.value is None or self.high is None else max(0.0, self.high - self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of one kind, by their colour, marker and line pattern, which are the same everywhere.

    `left` in stacked bars: it grows to the left of zero. Its values are positive all the same.
    """

    key: str
    name: str
    look: StateLook
    points: tuple[Point, ...]
    left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure. `title` is a whole sentence; `sub` says what the points are, `note` what is missing;
    `source` is the foot of a slide, `measured` how it was measured, for who speaks about it.

    `groups` names, for each category, what it belongs to; empty where categories stand alone. `places` are
    the categories' places from 0 to 1 where they have any; else they stand evenly.
    """

    key: str
    title: str
    kind: Kind
    across: Axis
    up: Axis
    series: tuple[Series, ...]
    categories: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    places: tuple[float, ...] = ()
    sub: str = ""
    note: str = ""
    source: str = ""
    measured: str = ""

    @property
    def values(self) -> list[float]:
        """Every value and end of an interval that there is."""
        points = [point for series in self.series for point in series.points]
        found = [v for point in points for v in (point.value, point.low, point.high)]
        return [value for value in found if value is not None]

    @property
    def empty(self) -> bool:
        """True if there is nothing to draw."""
        return not self.values

    @property
    def alternative(self) -> str:
        """The figure in words, for who cannot see it."""
        parts = [self.title, f"{self.up.title} by {self.across.title}."]
        for series in self.series:
            told = [
                f"{name} {point.missing or 'none' if point.value is None else f'{point.value:.4g}'}"
                for name, point in zip(self._names(series), series.points, strict=True)
            ]
            parts.append(f"{series.name}: {', '.join(told)}.")
        return " ".join(parts)

    def _names(self, series: Series) -> list[str]:
        if self.kind is Kind.SCATTER:
            return [f"{point.x:g}" for point in series.points]
        groups = self.groups or ("",) * len(self.categories)
        return [f"{group} {name}".strip() for group, name in zip(groups, self.categories, strict=True)]


def chosen(figures: Iterable[Figure], words: str) -> tuple[Figure, ...]:
    """The figures that `words` names: keys with commas between them, beginnings of keys, or `all`.

    In the order of the words, each once. Raises BadInput for a word that names none.
    """
    known = tuple(figures)
    found: dict[str, Figure] = {}
    for word in (part.strip() for part in words.split(",") if part.strip()):
        exact = [figure for figure in known if word in (figure.key, "all")]
        meant = exact or [figure for figure in known if figure.key.startswith(word)]
        if not meant:
            raise BadInput(
                f"there is no figure `{word}` in this run",
                advice=f"Write `all`, or some of: {', '.join(figure.key for figure in known)}.",
            )
        found.update((figure.key, figure) for figure in meant)
    return tuple(found.values())
