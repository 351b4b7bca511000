"""How an operation's time follows from its line: fixed cost, round trips, volumes; a curve that predicts others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, isfinite, log, sqrt
from typing import TYPE_CHECKING

from lab.analysis import spread
from lab.analysis.cells import Cell
from lab.model import Line, ProxyState

if TYPE_CHECKING:
    import numpy as np

FOR_A_FLOOR = 5
"""On fewer lines no floor is tried: it would fit anything."""
BETTER = 0.9
"""A floor is one unknown more, and must leave less than this of the residual."""
PROPORTIONAL = 0.05
"""Uploads that are the same share of the downloads within this cannot be told from them."""


@dataclass(frozen=True, slots=True)
class Point:
    """One measured line: rates in bit/s, round trip and time in seconds."""

    upload_bps: float
    download_bps: float
    round_trip_s: float
    time_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Time = fixed + round trips × round-trip time + volume ÷ rate, or the larger of `floor_s` and that.

    `up_bytes` is None where uploads were not varied by themselves: the download's volume then stands for both;
    likewise `round_trips`, whose cost is then within the fixed one. `residual` is the relative standard
    deviation of the points about the curve (None where there are as many points as unknowns). `names` and
    `covariance` are of the unknowns, for the interval of a prediction.
    """

    fixed_s: float
    down_bytes: float
    up_bytes: float | None = None
    round_trips: float | None = None
    floor_s: float | None = None
    residual: float | None = None
    degrees: int = 0
    points: tuple[Point, ...] = ()
    names: tuple[str, ...] = ()
    covariance: tuple[tuple[float, ...], ...] = ()

    def time(self, there: Point) -> float:
        """Seconds on a line."""
        return max(self.floor_s or 0.0, self._sum(there))

    def predicted(self, there: Point) -> tuple[float, float, float] | None:
        """Seconds on a line with the interval of 95 % for one more measurement; None without a residual.

        t · √(residual² · time² + x′ C x), as in every least squares (Draper & Smith, ch. 5); on the floor the
        curve's own uncertainty is that of the floor.
        """
        if self.residual is None:
            return None
        time = self.time(there)
        if self.floor_s is not None and self.floor_s >= self._sum(there):
            own = (self.residual * time) ** 2
        else:
            row = [_term(name, there) for name in self.names]
            own = sum(
                row[i] * self.covariance[i][j] * row[j] for i in range(len(row)) for j in range(len(row))
            )
        half = spread.quantile(self.degrees) * sqrt((self.residual * time) ** 2 + max(own, 0.0))
        return time, max(0.0, time - half), time + half

    def _sum(self, there: Point) -> float:
        volume = self.down_bytes * _term("down", there) + (self.up_bytes or 0.0) * _term("up", there)
        return self.fixed_s + (self.round_trips or 0.0) * there.round_trip_s + volume


def _term(name: str, point: Point) -> float:
    match name:
        case "trips":
            return point.round_trip_s
        case "down":
            return 8 / point.download_bps
        case "up":
            return 8 / point.upload_bps
    return 1.0


def points(cells: Iterable[Cell], round_trips: dict[Line, float] | None = None) -> tuple[Point, ...]:
    """The measured lines of one operation in one state, slowest first.

    Lines that are not limited, or that lose packets, follow no rate. `round_trips` are the measured ones, s;
    where there is none the line's delay both ways is taken.
    """
    known = round_trips or {}
    found = []
    for cell in cells:
        line, time_s = cell.line, cell.geometric_s if cell.geometric_s is not None else cell.median_s
        if line.upload_bps is None or line.download_bps is None or line.loss or not time_s:
            continue
        trip = known.get(line, 2 * line.delay_s)
        found.append(Point(line.upload_bps, line.download_bps, trip, time_s))
    return tuple(sorted(found, key=lambda point: (point.download_bps, point.upload_bps)))


def fit(measured: Sequence[Point]) -> Fit | None:
    """The curve through the points whose residuals are the smaller: the sum, or the sum with a floor under it.

    Least squares of relative errors, since times scatter in proportion. None for fewer than two rates.
    """
    simple = additive(measured)
    if simple is None or len(measured) < FOR_A_FLOOR or simple.residual is None:
        return simple
    floors = [_floored(measured, count) for count in range(1, len(measured) - len(simple.names))]
    least = min(
        (one for one in floors if one is not None), key=lambda one: one.residual or 0.0, default=simple
    )
    better = (least.residual or 0.0) < BETTER * simple.residual and simple.residual > spread.LEAST_SD
    return least if better else simple


def additive(measured: Sequence[Point], *, relative: bool = True) -> Fit | None:
    """Fixed cost, round trips and volumes by least squares, of relative errors or of seconds; none below zero."""
    import numpy as np

    if len({point.download_bps for point in measured}) < 2:
        return None
    names = _unknowns(measured)
    while True:
        rows = np.array([[_term(name, point) for name in names] for point in measured])
        times = np.array([point.time_s for point in measured])
        weights = 1 / times if relative else np.ones(len(measured))
        found, *_ = np.linalg.lstsq(rows * weights[:, None], times * weights, rcond=None)
        if found.min() >= 0 or len(names) == 1:
            break
        # What comes out below zero costs nothing; the others are then sought without it.
        names = tuple(name for name, value in zip(names, found, strict=True) if value != found.min())
    known = dict(zip(names, (float(value) for value in found), strict=True))
    # An unknown that came out as nothing was sought all the same: two lines stay too few for a residual.
    degrees = len(measured) - len(_unknowns(measured))
    off = (times - rows @ found) / times
    residual = sqrt(float(off @ off) / degrees) if degrees > 0 else None
    return Fit(
        fixed_s=known.get("fixed", 0.0),
        down_bytes=known.get("down", 0.0),
        up_bytes=known.get("up", 0.0) if "up" in _unknowns(measured) else None,
        round_trips=known.get("trips", 0.0) if "trips" in _unknowns(measured) else None,
        residual=residual,
        degrees=max(degrees, 0),
        points=tuple(measured),
        names=names,
        covariance=_covariance(rows * (1 / times)[:, None], residual),
    )


def _covariance(rows: np.ndarray, residual: float | None) -> tuple[tuple[float, ...], ...]:
    import numpy as np

    if residual is None:
        return ()
    return tuple(tuple(float(value) for value in row) for row in residual**2 * np.linalg.pinv(rows.T @ rows))


def _floored(measured: Sequence[Point], count: int) -> Fit | None:
    """The `count` fastest points are the floor, the others the sum; None where the sum is above it there."""
    ordered = sorted(measured, key=lambda point: point.download_bps)
    rest, fastest = ordered[:-count], ordered[-count:]
    below = additive(rest)
    if below is None:
        return None
    floor_s = exp(sum(log(point.time_s) for point in fastest) / count)
    whole = replace(below, floor_s=floor_s, points=tuple(measured))
    degrees = len(measured) - len(below.names) - 1
    if degrees < 1 or any(whole.time(point) > floor_s for point in fastest):
        return None
    off = sum((1 - whole.time(point) / point.time_s) ** 2 for point in measured)
    residual = sqrt(off / degrees)
    if below.residual:
        scale = (residual / below.residual) ** 2
        covariance = tuple(tuple(value * scale for value in row) for row in below.covariance)
    else:
        covariance = tuple(tuple(0.0 for _ in below.names) for _ in below.names)
    return replace(whole, residual=residual, degrees=degrees, covariance=covariance)


def _unknowns(measured: Sequence[Point]) -> tuple[str, ...]:
    """What these lines can tell apart: the upload only where it is not always the same share of the download."""
    names = ["fixed", "down"]
    trips = [point.round_trip_s for point in measured]
    # A wobble of the probe is no variation: round trips differ where the longest is 5 ms and twice the shortest.
    if max(trips) - min(trips) > 0.005 and max(trips) > 2 * min(trips):
        names.append("trips")
    shares = [log(point.upload_bps / point.download_bps) for point in measured]
    if max(shares) - min(shares) > PROPORTIONAL:
        names.append("up")
    return tuple(names[: len(measured)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The fit of one operation in one state, and the bytes that were counted (median over its lines)."""

    operation: str
    proxy: ProxyState
    fit: Fit
    counted_down_bytes: int | None = None
    counted_up_bytes: int | None = None


def models(cells: Sequence[Cell], round_trips: dict[Line, float] | None = None) -> tuple[Model, ...]:
    """A model for each operation and state that was timed at two rates or more."""
    found = []
    for operation, proxy in dict.fromkeys((cell.operation, cell.proxy) for cell in cells):
        same = [cell for cell in cells if (cell.operation, cell.proxy) == (operation, proxy)]
        one = fit(points(same, round_trips))
        if one is not None:
            found.append(
                Model(
                    operation=operation,
                    proxy=proxy,
                    fit=one,
                    counted_down_bytes=_counted(same, "server>client", "server>proxy"),
                    counted_up_bytes=_counted(same, "client>server", "proxy>server"),
                )
            )
    return tuple(found)


def _counted(cells: Iterable[Cell], *pairs: str) -> int | None:
    known = sorted(count for cell in cells if (count := cell.over(*pairs)) is not None)
    return known[len(known) // 2] if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The download rate at which two states take the same time, between two measured lines; bit/s."""

    download_bps: float
    below: Point
    above: Point


def break_even(here: Fit, there: Fit) -> BreakEven | None:
    """Where two curves cross: only between measured lines, and where on both the difference is above the residual.

    None where they do not cross so. The upload goes with the download between the two lines.
    """
    if here.residual is None or there.residual is None:
        return None
    known = {(p.upload_bps, p.download_bps): p for p in there.points}
    shared = [
        (p, known[p.upload_bps, p.download_bps])
        for p in here.points
        if (p.upload_bps, p.download_bps) in known
    ]
    for (below, other_below), (above, other_above) in pairwise(shared):
        gains = (other_below.time_s - below.time_s, other_above.time_s - above.time_s)
        if gains[0] * gains[1] >= 0:
            continue
        pairs = ((gains[0], below, other_below), (gains[1], above, other_above))
        if any(abs(gain) <= _scatter(here, there, a, b) for gain, a, b in pairs):
            return None
        return _crossing(here, there, below, above)
    return None


def _scatter(here: Fit, there: Fit, one: Point, other: Point) -> float:
    return sqrt(((here.residual or 0) * one.time_s) ** 2 + ((there.residual or 0) * other.time_s) ** 2)


def between(below: Point, above: Point, share: float) -> Point:
    """A line between two, by the logs of their rates."""

    def mixed(low: float, high: float) -> float:
        return exp((1 - share) * log(low) + share * log(high))

    return Point(
        mixed(below.upload_bps, above.upload_bps),
        mixed(below.download_bps, above.download_bps),
        (1 - share) * below.round_trip_s + share * above.round_trip_s,
    )


def _crossing(here: Fit, there: Fit, below: Point, above: Point) -> BreakEven | None:
    def apart(share: float) -> float:
        place = between(below, above, share)
        return there.time(place) - here.time(place)

    low, high = 0.0, 1.0
    if apart(low) * apart(high) >= 0:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if apart(low) * apart(middle) > 0 else (low, middle)
    rate = between(below, above, low).download_bps
    return BreakEven(download_bps=rate, below=below, above=above) if isfinite(rate) else None
