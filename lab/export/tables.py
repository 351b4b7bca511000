"""Tables as data: what stands in a cell as text and as a number, with unit, weight and tone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab import palette, units
from lab.analysis import words
from lab.analysis.cells import Cell
from lab.analysis.summary import Summary
from lab.analysis.view import View
from lab.export import making, titles
from lab.model import Line, ProxyState

VERDICTS = {
    "faster": ("faster", "ok"),
    "slower": ("slower", "warn"),
    "no-difference": ("no difference", ""),
    "too-few": ("too few attempts", "text3"),
    "void": ("without proof", "text3"),
    "base": ("", ""),
}
"""The word and the tone of each verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What stands in one cell. `value` is the number that `text` was written from; `tone` a token of the palette."""

    text: str
    value: float | None = None
    bold: bool = False
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Heads and rows. `unit` is that of the values, column by column (empty: words)."""

    key: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    units: tuple[str, ...]
    sub: str = ""

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns are numbers, and stand right."""
        return tuple(bool(unit) for unit in self.units)


def tables(summary: Summary) -> tuple[Table, ...]:
    """Times of each operation, then traffic of each, then the lines as they were proved."""
    view = View(cells=summary.cells, classes=summary.started.classes, tool_start_s=summary.tool_start_s)
    timed = [_times(view, name) for name in view.operations]
    moved = [
        _traffic(view, name) for name in view.operations if any(cell.traffic_trials for cell in view.of(name))
    ]
    return (*timed, *moved, *((_lines(summary),) if summary.proved else ()))


def _times(view: View, operation: str) -> Table:
    states = making.states(view)
    fullest = states[-1] if states[-1].enabled and not states[0].enabled else None
    heads = ["upload/download", *(titles.state(proxy) for proxy in states)]
    if fullest is not None:
        heads += [f"{titles.state(fullest)} against disabled", ""]
    rows = [
        (
            Entry(text=words.line(line), bold=False),
            *(_time(view, operation, line, proxy) for proxy in states),
            *(_ratio(view, operation, line, fullest) if fullest is not None else ()),
        )
        for line in making.ordered(view.lines)
    ]
    return Table(
        key=f"{operation}-table",
        title=titles.against_line(view, operation, view.of(operation)),
        heads=tuple(heads),
        rows=tuple(rows),
        units=("", *("s" for _ in states), *(("×", "") if fullest is not None else ())),
        sub=f"{words.operation(operation)}: {titles.sub_time(view.of(operation)).partition(';')[0]}",
    )


def _time(view: View, operation: str, line: Line, proxy: ProxyState) -> Entry:
    cell = view.at(operation, line, proxy)
    if cell is None or cell.median_s is None:
        word = making.missing(cell)
        shown = {making.NOT_ASKED: "—", "not measured": ""}.get(word, word)
        return Entry(text=shown, tone="trouble" if word == "failed" else "text3")
    kept = " (1 kept)" if cell.kept == 1 else ""
    return Entry(
        text=f"{words.duration(cell.median_s)}{kept}",
        value=cell.median_s,
        bold=cell.verdict == "faster" and cell.median_s == _least(view, operation, line),
    )


def _least(view: View, operation: str, line: Line) -> float:
    row = view.of(operation, lambda cell: cell.line == line)
    return min((cell.median_s for cell in row if cell.median_s is not None), default=0.0)


def _ratio(view: View, operation: str, line: Line, fullest: ProxyState) -> tuple[Entry, Entry]:
    cell = view.at(operation, line, fullest)
    base = view.base(cell) if cell else None
    word, tone = VERDICTS.get(cell.verdict, (cell.verdict, "")) if cell else ("—", "text3")
    told = Entry(text=word, bold=word in ("faster", "slower"), tone=tone)
    if cell is None or base is None or not cell.median_s or not base.median_s:
        return Entry(text=""), told
    ratio = base.median_s / cell.median_s
    return Entry(text=units.ratio_text(ratio), value=ratio, bold=told.bold), told


def _traffic(view: View, operation: str) -> Table:
    directions = [d for pair in palette.PAIR_DIRECTIONS.values() for d in pair]
    cells = [
        cell
        for line in making.ordered(view.lines)
        for proxy in making.states(view)
        if (cell := view.at(operation, line, proxy)) is not None
    ]
    return Table(
        key=f"{operation}-bytes",
        title=titles.traffic(view, operation, cells),
        heads=(
            "upload/download",
            "proxy",
            *(d.replace(">", " → ") for d in directions),
            "served",
            "relayed",
            "direct",
        ),
        rows=tuple(_moved(cell, directions) for cell in cells),
        units=("", "", *("bytes" for _ in range(len(directions) + 3))),
        sub=f"{words.operation(operation)}: {titles.sub_traffic(cells).partition(';')[0]}",
    )


def _moved(cell: Cell, directions: Sequence[str]) -> tuple[Entry, ...]:
    counts = [cell.bytes.get(direction) for direction in directions]
    counts += [cell.served_bytes, cell.relayed_bytes, cell.direct_bytes]
    entries = [Entry(text="" if count is None else words.amount(count), value=count) for count in counts]
    return (Entry(text=words.line(cell.line)), Entry(text=titles.state(cell.proxy)), *entries)


def _lines(summary: Summary) -> Table:
    rows = []
    for line in making.ordered(summary.started.experiment.lines):
        proved = summary.proved.get(line)
        rates = (
            (
                proved.read_upload_bps,
                proved.read_download_bps,
                proved.achieved_upload_bps,
                proved.achieved_download_bps,
            )
            if proved
            else (None,) * 4
        )
        trip = proved.round_trip_s if proved else None
        rows.append(
            (
                Entry(text=words.line(line)),
                *(Entry(text="—" if rate is None else units.rate_text(rate), value=rate) for rate in rates),
                Entry(
                    text="—" if trip is None else f"{trip * 1000:.{1 if trip > 0.000095 else 2}f} ms",
                    value=trip,
                ),
            )
        )
    return Table(
        key="lines-table",
        title="The lines as they were asked, read back from the kernel, and achieved by a probe.",
        heads=(
            "asked, upload/download",
            "read back up",
            "read back down",
            "achieved up",
            "achieved down",
            "round trip",
        ),
        rows=tuple(rows),
        units=("", "bit/s", "bit/s", "bit/s", "bit/s", "s"),
        sub="achieved is TCP payload, when the line was first applied",
    )
