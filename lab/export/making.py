"""The figures of a run, made from its summary: time by operation, time against line, traffic, attempts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lab import palette, units
from lab.analysis import words
from lab.analysis.cells import Cell
from lab.analysis.comparing import STRAY_BYTES
from lab.analysis.summary import Summary
from lab.analysis.view import View, rate_key
from lab.events import Standing, TrialFinished
from lab.export import titles
from lab.export.figures import Axis, Figure, Kind, Point, Series
from lab.model import PAIRS, Line, ProxyState
from lab.palette import Palette, StateLook

ROWS = 12
"""So many bars of traffic stand in one figure; a run with more has several."""
NOT_ASKED = "not asked"
"""The word for a cell that the plan does not have; it is no gap in what was measured."""
LOG_FROM = 5.0
"""Times that differ by this factor are drawn on a log axis."""
_STATES = Axis(name="proxy state")


@dataclass(frozen=True, slots=True)
class Made:
    """A summary looked at by somebody who draws: levels in the order in which they are drawn, and the look."""

    summary: Summary
    look: Palette
    view: View

    @property
    def lines(self) -> tuple[Line, ...]:
        """Slowest first, one that is not limited last, within those that share delay, jitter, loss and queue."""
        return ordered(self.view.lines)

    @property
    def states(self) -> tuple[ProxyState, ...]:
        """Disabled, then emptiest first."""
        return states(self.view)

    def state_look(self, proxy: ProxyState) -> StateLook:
        """Colour, marker and pattern of a state."""
        return self.look.state(proxy, self.states)

    def alike(self) -> list[tuple[Line, ...]]:
        """The lines in groups that differ in their rates alone."""
        groups: dict[object, list[Line]] = {}
        for line in self.lines:
            groups.setdefault(_besides(line), []).append(line)
        return [tuple(lines) for lines in groups.values()]

    def ticks(self, lines: Sequence[Line]) -> tuple[str, ...]:
        """The names of lines on an axis; what all of a run's lines have besides their rates is left out."""
        plain = {"delay_s": 0.0, "jitter_s": 0.0, "loss": 0.0, "queue_s": None, "queue_bytes": None}
        one = len(self.alike()) == 1
        return tuple(units.line_short(replace(line, **plain) if one else line) for line in lines)  # type: ignore[arg-type]


def ordered(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Slowest first, one that is not limited last, within those that share delay, jitter, loss and queue."""
    return tuple(sorted(lines, key=lambda line: (_besides(line), rate_key(line))))


def states(view: View) -> tuple[ProxyState, ...]:
    """Disabled, then emptiest first."""
    found = {cell.proxy for cell in view.cells}
    return tuple(sorted(found, key=lambda proxy: -1.0 if proxy.full is None else proxy.full))


def _besides(line: Line) -> tuple[float, float, float, float, int]:
    return line.delay_s, line.jitter_s, line.loss, line.queue_s or 0.0, line.queue_bytes or 0


def places(lines: Sequence[Line]) -> tuple[float, ...]:
    """Places from 0 to 1 by the logarithm of the lines' rates; empty if they have no such order."""
    rates = [line.download_bps for line in lines]
    known = [rate for rate in rates if rate]
    if len(known) < 2 or len(set(known)) < len(rates):
        return ()
    low, high = math.log(known[0]), math.log(known[-1])
    return tuple((math.log(rate) - low) / (high - low) for rate in known)


def figures(summary: Summary, results: Iterable[TrialFinished] = ()) -> tuple[Figure, ...]:
    """Every figure of a run. Attempts are drawn where `results`, its finished trials, are given."""
    view = View(cells=summary.cells, classes=summary.started.classes, tool_start_s=summary.tool_start_s)
    run = Made(summary, palette.load("light"), view)
    found = [_by_operation(run, line) for line in run.lines]
    groups = [lines for lines in run.alike() if len(lines) > 1]
    for name in view.operations:
        found += [_against_line(run, name, lines, n) for n, lines in enumerate(groups, 1)]
    for name in view.operations:
        found += _traffic(run, name)
    kept = tuple(results)
    if kept:
        found += [_attempts(run, name, kept) for name in view.operations]
    return tuple(found)


def usual(summary: Summary, figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """The figures that answer the questions: the main operation's first, then those that gain, then all at once."""
    view = View(cells=summary.cells, classes=summary.started.classes, tool_start_s=summary.tool_start_s)
    main = view.main() or next(iter(view.operations), "")
    gaining = [name for name in view.operations if name != main and view.judged(name, "faster")]
    bars = [figure.key for figure in figures if figure.key.startswith("bars")]
    keys = [
        f"{main}-line",
        f"{main}-traffic",
        *(f"{name}-line" for name in gaining),
        *bars[:1],
        *bars[1:][-1:],
    ]
    wanted = dict.fromkeys(keys)
    by_key = {figure.key: figure for figure in figures}
    return tuple(by_key[key] for key in wanted if key in by_key and not by_key[key].empty)


def spread(cell: Cell) -> tuple[float | None, float | None]:
    """The ends of a cell's error bar in seconds: its interval where it has one, else the range of its attempts."""
    for low, high in (("mean_low_s", "mean_high_s"), ("low_s", "high_s")):
        ends = getattr(cell, low, None), getattr(cell, high, None)
        if None not in ends and cell.kept > 1:
            return ends
    return None, None


def _time(run: Made, operation: str, line: Line, proxy: ProxyState) -> Point:
    cell = run.view.at(operation, line, proxy)
    if cell is None or cell.median_s is None:
        return Point(value=None, missing=missing(cell))
    low, high = spread(cell)
    return Point(value=cell.median_s, low=low, high=high)


def missing(cell: Cell | None) -> str:
    """Why a cell has no time, in a word or two."""
    if cell is None or not cell.planned:
        return NOT_ASKED
    return "failed" if cell.failed else "without proof" if cell.void else "not measured"


def _by_operation(run: Made, line: Line) -> Figure:
    names = run.view.operations
    series = _asked(
        [_state_series(run, proxy, [_time(run, name, line, proxy) for name in names]) for proxy in run.states]
    )
    gaps = [(f"{words.operation(n)}, {s.name}", s.points[i]) for s in series for i, n in enumerate(names)]
    number = f"-{run.lines.index(line) + 1}" if len(run.lines) > 1 else ""
    figure = Figure(
        key=f"bars{number}",
        title=titles.by_operation(run.view, line),
        kind=Kind.BAR,
        across=Axis(name="operation"),
        up=Axis(name="time", unit="s"),
        categories=tuple(words.operation(name) for name in names),
        series=tuple(series),
    )
    return _said(run, figure, titles.sub_time([cell for cell in run.view.cells if cell.line == line]), gaps)


def _against_line(run: Made, operation: str, lines: Sequence[Line], number: int) -> Figure:
    cells = run.view.of(operation, lambda cell: cell.line in lines)
    series = _asked(
        [
            _state_series(run, proxy, [_time(run, operation, line, proxy) for line in lines])
            for proxy in run.states
        ]
    )
    times = [point.value for one in series for point in one.points if point.value]
    gaps = [(f"{s.name} on {words.line(n)}", s.points[i]) for s in series for i, n in enumerate(lines)]
    figure = Figure(
        key=f"{operation}-line" + (f"-{number}" if number > 1 else ""),
        title=titles.against_line(run.view, operation, cells),
        kind=Kind.LINE,
        across=Axis(name="line, upload/download", unit="kbit/s"),
        up=Axis(name="time", unit="s", log=bool(times) and max(times) > LOG_FROM * min(times)),
        categories=run.ticks(lines),
        places=places(lines),
        series=tuple(series),
    )
    return _said(run, figure, titles.sub_time(cells), gaps)


def _asked(series: Sequence[Series]) -> list[Series]:
    """Without those of which nothing was asked."""
    return [one for one in series if any(point.missing != NOT_ASKED for point in one.points)]


def _state_series(run: Made, proxy: ProxyState, points: Sequence[Point]) -> Series:
    return Series(key=proxy.key, name=titles.state(proxy), look=run.state_look(proxy), points=tuple(points))


def _traffic(run: Made, operation: str) -> list[Figure]:
    cells = [
        cell
        for line in run.lines
        for proxy in run.states
        if (cell := run.view.at(operation, line, proxy)) is not None
    ]
    if not any(cell.traffic_trials and (cell.over(*PAIRS) or 0) > STRAY_BYTES for cell in cells):
        return []  # what sends nothing has a table, and no bars
    each = max(1, ROWS // len(run.states))
    parts = [run.lines[n : n + each] for n in range(0, len(run.lines), each)]
    return [
        _traffic_of(run, operation, [cell for cell in cells if cell.line in lines], f"-{n}" if n > 1 else "")
        for n, lines in enumerate(parts, 1)
    ]


def _traffic_of(run: Made, operation: str, cells: Sequence[Cell], number: str) -> Figure:
    several = len({cell.line for cell in cells}) > 1
    gaps = [
        (f"{titles.state(cell.proxy)} on {words.line(cell.line)}", Point(value=None, missing=missing(cell)))
        for cell in cells
        if not cell.traffic_trials
    ]
    names = dict(zip(run.lines, run.ticks(run.lines), strict=True))
    sides = (titles.INSIDE, titles.OVER)
    most = max(cell.over(*side) or 0 for cell in cells for side in sides)
    unit, size = ("MB", 1e6) if most >= 1e6 else ("kB", 1e3)
    figure = Figure(
        key=f"{operation}-traffic{number}",
        title=titles.traffic(run.view, operation, cells),
        kind=Kind.STACKED,
        across=_STATES,
        up=Axis(name="inside the office left of zero, over the line right of it", unit=unit),
        categories=tuple(titles.state(cell.proxy) for cell in cells),
        groups=tuple(names[cell.line] for cell in cells) if several else (),
        series=tuple(
            _pair_series(run, pair, upload, cells, size) for pair in palette.PAIR_NAMES for upload in (0, 1)
        ),
    )
    return _said(run, figure, titles.sub_traffic(cells), gaps)


def _pair_series(run: Made, pair: str, upload: int, cells: Sequence[Cell], size: float) -> Series:
    direction = palette.PAIR_DIRECTIONS[pair][upload]
    hue = run.look.pairs[pair]
    counts = [cell.bytes.get(direction) if cell.traffic_trials else None for cell in cells]
    return Series(
        key=direction,
        name=direction.replace(">", " → "),
        look=StateLook(run.look.mixed(hue, palette.TINT) if upload else hue, "square", ()),
        points=tuple(
            Point(value=None if n is None else n / size, missing=missing(cell) if n is None else "")
            for n, cell in zip(counts, cells, strict=True)
        ),
        left=pair == "client-proxy",
    )


def _attempts(run: Made, operation: str, results: Sequence[TrialFinished]) -> Figure:
    line = run.lines[0]
    plan = {trial.number: trial.treatment for trial in run.summary.started.trials}
    series = []
    for proxy in run.states:
        points = tuple(
            Point(value=result.wall_s, x=float(place))
            for place, result in enumerate(results, 1)
            if result.standing is Standing.KEPT
            and result.wall_s is not None
            and (t := plan.get(result.trial))
            if (t.operation, t.line, t.state) == (operation, line, proxy)
        )
        series.append(_state_series(run, proxy, points))
    times = [point.value for one in series for point in one.points if point.value]
    figure = Figure(
        key=f"{operation}-attempts",
        title=titles.attempts(operation, line, len(times)),
        kind=Kind.SCATTER,
        across=Axis(name="place in the run, in trials"),
        up=Axis(name="time", unit="s", log=bool(times) and max(times) > LOG_FROM * min(times)),
        series=tuple(series),
    )
    return _said(run, figure, "each point is one kept attempt", ())


def _said(run: Made, figure: Figure, sub: str, gaps: Iterable[tuple[str, Point]]) -> Figure:
    """The figure with what stands around it: what its points are, what is missing, from where, how measured."""
    lost = [f"{name} ({p.missing})" for name, p in gaps if p.value is None and p.missing != NOT_ASKED]
    shown = [*lost[:4], f"{len(lost) - 4} more"] if len(lost) > 5 else lost
    return replace(
        figure,
        sub=sub,
        note=f"{'Gap' if len(lost) == 1 else 'Gaps'}: {words.listed(shown)}." if lost else "",
        source=titles.source(run.summary),
        measured=titles.measured(run.summary, sub),
    )
