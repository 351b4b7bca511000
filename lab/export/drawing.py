"""A figure as SVG: text as text, light and fit for print by itself, in the page's colours inside a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lab import axis, units
from lab.export import fitting
from lab.export.canvas import Canvas
from lab.export.figures import Figure, Kind, Point, Series

WIDTH = 820.0
_LEFT, _TOP, _BOTTOM, _LABELS = 62.0, 26.0, 44.0, 168.0
_PLOT = 300.0
_ZERO_LANE = 20.0
"""How high the lane of zeros is, below a log axis."""
_ROW = 27.0
_SIZE = 12.0


@dataclass(frozen=True, slots=True)
class _Plot:
    """Where values are drawn, and how they become pixels."""

    left: float
    right: float
    top: float
    bottom: float
    low: float
    high: float
    log: bool
    lane: float | None = None
    """Where 0 stands below a log axis; None where no lane is needed"""

    def y(self, value: float) -> float:
        if self.lane is not None and value <= 0:
            return self.lane
        at = math.log(value) if self.log else value
        floor = self.bottom if self.lane is None else self.bottom - _ZERO_LANE
        return floor - (floor - self.top) * (at - self.low) / (self.high - self.low)

    def joins(self, value: float | None) -> bool:
        """True if a line goes through it: a value, and none in the lane, which on a log axis is nowhere near."""
        return value is not None and (value > 0 or self.lane is None)


def svg(figure: Figure, *, by_name: bool = False, titled: bool = True) -> str:
    """The figure. `by_name`: in the page's CSS variables; `titled`: with its title, notes and source in it."""
    draws = {Kind.BAR: _bars, Kind.LINE: _line, Kind.STACKED: _stacked, Kind.SCATTER: _scatter}
    canvas = Canvas(WIDTH, 0, by_name)
    top = 0.0
    if titled:
        canvas.parts.append("")  # the ground, once its height is known
        top = canvas.wrapped(16, 14, figure.title, WIDTH - 32, size=17, ink="text", bold=True)
        top = canvas.wrapped(16, top + 2, _upper(figure.sub), WIDTH - 32, size=_SIZE, ink="text2") + 6
    if figure.empty:
        canvas.text(WIDTH / 2, top + 60, "No kept attempt to draw.", size=14, ink="text3", anchor="middle")
        bottom = top + 120
    else:
        bottom = draws[figure.kind](canvas, figure, top)
    if titled:
        around = " ".join(
            part for part in (figure.note, f"{figure.source}." if figure.source else "") if part
        )
        bottom = canvas.wrapped(16, bottom + 8, around, WIDTH - 32, size=11, ink="text3") + 8
        canvas.parts[0] = (
            f'<rect width="{WIDTH:g}" height="{math.ceil(bottom)}" style="fill:{canvas.ink("surface")}"/>'
        )
    canvas.height = math.ceil(bottom)
    return canvas.svg(figure.title, figure.alternative)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:] + ("." if text else "")


def _scaled(canvas: Canvas, figure: Figure, top: float, right: float) -> _Plot:
    """The plot of a figure of times, with its grid and ticks drawn."""
    values = [value for value in figure.values if value > 0] or [1.0]
    upper, lower = top + _TOP, top + _TOP + _PLOT
    if figure.up.log:
        reach = max(math.log(max(values) / min(values)), 0.7)
        middle = math.log(min(values) * max(values)) / 2
        low, high = middle - reach * 0.56, middle + reach * 0.54
        ticks = axis.log_ticks(math.exp(low), math.exp(high))
    else:
        ticks = axis.time_ticks(max(values) * 1.03, most=6)
        low, high = 0.0, ticks[-1]
    lane = lower - _ZERO_LANE / 2 if figure.up.log and 0 in figure.values else None
    plot = _Plot(_LEFT, right, upper, lower, low, high, figure.up.log, lane)
    if lane is not None:
        canvas.line([(_LEFT, lower - _ZERO_LANE), (right, lower - _ZERO_LANE)], canvas.ink("axis"), 1, (4, 3))
        canvas.text(plot.left - 8, lane, "0", anchor="end", size=11)
    canvas.text(8, top + 10, "time, m:ss" + (", log" if figure.up.log else ""), size=11, ink="text3")
    for tick in ticks:
        y = plot.y(tick)
        canvas.line([(plot.left, y), (right, y)], canvas.ink("grid"))
        canvas.text(
            plot.left - 8, y, axis.time_label(tick, 0 if plot.log else ticks[-1]), anchor="end", size=11
        )
    canvas.line([(plot.left, lower), (right, lower)], canvas.ink("axis"))
    return plot


def _line(canvas: Canvas, figure: Figure, top: float) -> float:
    plot = _scaled(canvas, figure, top, WIDTH - _LABELS)
    count = len(figure.categories)
    inset = (plot.right - plot.left) * (0.05 if count > 2 else 0.16)
    places = figure.places or tuple(n / max(1, count - 1) for n in range(count))
    xs = [plot.left + inset + (plot.right - plot.left - 2 * inset) * place for place in places]
    before = -1000.0
    for x, name in zip(xs, figure.categories, strict=True):
        half = fitting.breadth(name) * 11 / 2
        canvas.line([(x, plot.bottom), (x, plot.bottom + 4)], canvas.ink("axis"))
        if x - half > before:
            canvas.text(x, plot.bottom + 14, name, anchor="middle", size=11)
            before = x + half + 4
    canvas.text(
        (plot.left + plot.right) / 2,
        plot.bottom + 32,
        figure.across.title,
        anchor="middle",
        size=11,
        ink="text3",
    )
    for series in figure.series:
        _joined(canvas, plot, series, xs)
    for series in figure.series:
        for x, point in zip(xs, series.points, strict=True):
            if point.value is not None:
                canvas.marker(series.look, x, plot.y(point.value), halo=True)
    _ends(canvas, plot, figure.series, xs)
    return plot.bottom + _BOTTOM


def _joined(canvas: Canvas, plot: _Plot, series: Series, xs: Sequence[float]) -> None:
    """The line of a series, interrupted where a value is missing, and its error bars."""
    run: list[tuple[float, float]] = []
    hue = canvas.hue(series.look.colour)
    for x, point in zip(xs, series.points, strict=True):
        if point.value is not None and plot.joins(point.value):
            run.append((x, plot.y(point.value)))
            continue
        if len(run) > 1:
            canvas.line(run, hue, 2, series.look.dash)
        run = []
        if point.missing == "failed":
            canvas.cross(x, plot.bottom - 8)
    if len(run) > 1:
        canvas.line(run, hue, 2, series.look.dash)
    for x, point in zip(xs, series.points, strict=True):
        if point.value and point.low and point.high:
            canvas.interval(x, plot.y(point.low), plot.y(point.high), hue)


def _ends(canvas: Canvas, plot: _Plot, series: Sequence[Series], xs: Sequence[float]) -> None:
    """Names with last values at the lines' ends, in the order of the values, apart from each other."""
    ends: list[tuple[float, float, float, Series]] = []
    for one in series:
        last = [(x, point.value) for x, point in zip(xs, one.points, strict=True) if point.value is not None]
        if last:
            x, value = last[-1]
            ends.append((plot.y(value), x, value, one))
    ends.sort(key=lambda end: end[0])
    places = axis.spread([end[0] for end in ends], 17, plot.top + 8, plot.bottom)
    left = plot.right + 16
    for (at, x, value, one), y in zip(ends, places, strict=True):
        canvas.line([(x + 8, at), (plot.right - 2, at), (plot.right + 8, y)], canvas.ink("axis"))
        canvas.marker(one.look, left, y, 9)
        canvas.text(left + 10, y, one.name, ink="text")
        canvas.text(WIDTH - 8, y, units.time_text(value, units.NBSP), anchor="end", size=11)


def _bars(canvas: Canvas, figure: Figure, top: float) -> float:
    plot = _scaled(canvas, figure, top, WIDTH - 12)
    step = (plot.right - plot.left) / len(figure.categories)
    wide = min(26.0, step * 0.78 / len(figure.series))
    for n, name in enumerate(figure.categories):
        middle = plot.left + step * (n + 0.5)
        canvas.text(middle, plot.bottom + 14, name, anchor="middle", ink="text")
        left = middle - wide * len(figure.series) / 2
        for place, series in enumerate(figure.series):
            _bar(canvas, plot, series, series.points[n], left + place * wide, wide)
    return _legend(canvas, figure.series, plot.bottom + 38, square=False)


def _bar(canvas: Canvas, plot: _Plot, series: Series, point: Point, x: float, wide: float) -> None:
    if point.value is None:
        if point.missing == "failed":
            canvas.cross(x + wide / 2, plot.bottom - 8)
        return
    y = min(plot.y(point.value), plot.bottom - 1)
    canvas.rect(x + 0.5, y, wide - 1, plot.bottom - y, canvas.hue(series.look.colour))
    if point.low is not None and point.high is not None:
        canvas.interval(x + wide / 2, plot.y(point.low), plot.y(point.high), canvas.ink("text"))


def _legend(canvas: Canvas, series: Sequence[Series], y: float, *, square: bool) -> float:
    """Markers with names; returns the bottom."""
    x = _LEFT
    for one in series:
        wide = fitting.breadth(one.name) * _SIZE + 34
        if x + wide > WIDTH - 8:
            x, y = _LEFT, y + 20
        if square:
            canvas.rect(x, y - 5, 10, 10, canvas.hue(one.look.colour))
        else:
            canvas.marker(one.look, x + 5, y)
        canvas.text(x + 16, y, one.name, ink="text")
        x += wide
    return y + 16


def _stacked(canvas: Canvas, figure: Figure, top: float) -> float:
    """Rows that grow to the left and to the right of one zero, totals at their ends."""
    rows = range(len(figure.categories))
    sides = [
        [sum(s.points[n].value or 0 for s in figure.series if s.left is left) for n in rows]
        for left in (True, False)
    ]
    inside, over = (max(side, default=0.0) for side in sides)
    names = 104.0 + (88.0 if figure.groups else 0.0)
    left = names + (56 if inside else 8)
    scale = (WIDTH - 76 - left) / max(1e-9, inside + over)
    zero, head = left + inside * scale, top + 30
    bottom = head + _ROW * len(rows)
    if inside:
        canvas.text(zero - 8, top + 12, "inside the office", anchor="end", size=11, bold=True)
    canvas.text(zero + 8, top + 12, "over the line", size=11, bold=True)
    for side in (-1, 1):
        for tick in axis.ticks(max(inside, over), 4):
            x = zero + side * tick * scale
            if left - 1 <= x <= WIDTH - 60 and (tick or side > 0):
                canvas.line([(x, head - 4), (x, bottom)], canvas.ink("grid"))
                canvas.text(x, bottom + 12, f"{tick:g}", anchor="middle", size=11)
    canvas.text(WIDTH - 8, bottom + 12, figure.up.unit, anchor="end", size=11, ink="text3")
    for n in rows:
        middle = head + _ROW * (n + 0.5)
        if figure.groups and (not n or figure.groups[n] != figure.groups[n - 1]):
            canvas.text(8, middle, figure.groups[n], ink="text", bold=True)
            if n:
                canvas.line([(8, middle - _ROW / 2), (WIDTH - 8, middle - _ROW / 2)], canvas.ink("hair"))
        canvas.text(names - 84, middle, figure.categories[n], ink="text")
        _stack(canvas, figure, n, zero, scale, middle, (sides[0][n], sides[1][n]))
    canvas.line([(zero, head - 6), (zero, bottom)], canvas.ink("axis"))
    return _legend(canvas, figure.series, bottom + 36, square=True)


def _stack(
    canvas: Canvas,
    figure: Figure,
    n: int,
    zero: float,
    scale: float,
    middle: float,
    totals: tuple[float, float],
) -> None:
    if all(series.points[n].value is None for series in figure.series):
        word = next((s.points[n].missing for s in figure.series if s.points[n].missing), "")
        canvas.text(zero + 8, middle, word, ink="trouble" if word == "failed" else "text3")
        return
    ends = {True: zero, False: zero}
    for series in figure.series:
        wide = (series.points[n].value or 0) * scale
        if wide < 0.2:
            continue
        x = ends[series.left] - (wide if series.left else 0)
        canvas.rect(x, middle - 9, wide, 18, canvas.hue(series.look.colour))
        ends[series.left] += -wide if series.left else wide
    if totals[0]:
        canvas.text(ends[True] - 6, middle, _amount(totals[0]), anchor="end", size=11)
    canvas.text(ends[False] + 6, middle, _amount(totals[1]), ink="text", size=11, bold=True)


def _amount(value: float) -> str:
    return "0" if not value else f"{value:.1f}" if value >= 0.995 else f"{value:.2g}"


def _scatter(canvas: Canvas, figure: Figure, top: float) -> float:
    plot = _scaled(canvas, figure, top, WIDTH - 12)
    xs = [point.x or 0.0 for series in figure.series for point in series.points]
    ticks = axis.ticks(max(xs), 8)
    scale = (plot.right - plot.left) / ticks[-1]
    for tick in ticks:
        canvas.text(plot.left + tick * scale, plot.bottom + 14, f"{tick:g}", anchor="middle", size=11)
    canvas.text(
        (plot.left + plot.right) / 2,
        plot.bottom + 32,
        figure.across.title,
        anchor="middle",
        size=11,
        ink="text3",
    )
    for series in figure.series:
        for point in series.points:
            if point.value:
                canvas.marker(
                    series.look, plot.left + (point.x or 0) * scale, plot.y(point.value), 9, halo=True
                )
    return _legend(canvas, figure.series, plot.bottom + 54, square=False)
