"""Results, runs and lines as tables in a terminal."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.analysis import words
from lab.analysis.before_after import Pairs
from lab.analysis.cells import Cell
from lab.analysis.comparing import LEAST_KEPT, Comparison
from lab.analysis.summary import Summary
from lab.analysis.view import View
from lab.cli.plain import plain
from lab.events import LineProved, Standing
from lab.model import Line, ProxyState
from lab.store import Head

PLAIN_WIDTH = 140
"""Columns of an output that is no terminal."""

_VERDICTS = {"no-difference": "no difference", "too-few": "too few attempts", "void": "no proof"}
_STYLES = {"faster": "green", "slower": "red"}


class Patient(Console):
    """A console that falls silent when its reader goes, where rich would end the program: the run goes on.

    What a string brings along of control characters is spelt out.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Called by rich for every string that is printed, in a table's cells too."""
        return super().render_str(plain(text), **options)

    def on_broken_pipe(self) -> None:
        """Called by rich on a broken pipe."""
        self.quiet = True
        # What Python still holds would fail again when the program ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def console() -> Console:
    """Where text goes now; wide, plain and without wrapping where it is no terminal."""
    made = Patient(highlight=False, markup=False, emoji=False)
    if made.is_terminal:
        return made
    return Patient(highlight=False, markup=False, emoji=False, width=PLAIN_WIDTH, no_color=True)


def results(summary: Summary) -> Iterable[Table]:
    """One table per line: operations by proxy states, and the fullest state against none."""
    view = View(cells=summary.cells, classes=summary.started.classes, tool_start_s=summary.tool_start_s)
    for line in view.lines:
        yield _results(view, line, summary.started.experiment.operations, summary.base)


AT_ONCE = (
    "a time is from the first one's start to the last one's end, and the traffic is of all of them together. Each one's"
    " own time is in the run file."
)
"""What a time of several clients is."""


def remarks(summary: Summary) -> Iterable[str]:
    """What is to be known of the run beside its answers: what was left out, what stands out, what drifted."""
    if together := words.at_once(summary.started.experiment):
        yield f"{together}: {AT_ONCE}"
    for trial, reason in summary.excluded.items():
        yield f"Left out: trial {trial}{f' ({reason})' if reason else ''}."
    if summary.repeated:
        told = ", ".join(f"{old} by {new}" for old, new in summary.repeated.items())
        yield f"Repeated, since they failed or had no proof: {len(summary.repeated)} trials ({told})."
    for one in summary.outliers:
        cell = trial_words(one.treatment.operation, one.treatment.state, one.treatment.line)
        yield (
            f"Unlike the others: trial {one.trial} ({cell}) took "
            f"{words.duration(one.wall_s)}, the other attempts {words.duration(one.others_s)}. "
            f"It is counted; to leave it out: show RUN --exclude {one.trial} REASON."
        )
    seen = [one for one in summary.drifts if one.seen]
    for drift in seen:
        yield (
            f"Drift: {words.operation(drift.operation)} became {words.change(drift.factor)} from the first trial to "
            f"the last (95 %: {words.change(drift.low)} to {words.change(drift.high)})."
        )
    if summary.drifts and not seen:
        yield "No drift was seen from the first trial to the last."


def _results(view: View, line: Line, operations: Sequence[str], base: ProxyState) -> Table:
    states = sorted(
        {cell.proxy for cell in view.cells if cell.line == line},
        key=lambda proxy: -1.0 if proxy.full is None else proxy.full,
    )
    others = [proxy for proxy in states if proxy != base]
    fullest = others[-1] if base in states and others and others[-1].enabled else None
    table = plain_table(words.line(line))
    table.add_column("operation", no_wrap=True)
    for proxy in states:
        table.add_column(proxy.key, justify="right", no_wrap=True)
    if fullest is not None:
        table.add_column(f"{fullest.key} against {base.key}", no_wrap=True)
    for name in dict.fromkeys((*(cell.operation for cell in view.cells), *operations)):
        row = [_time(view, view.at(name, line, proxy), name) for proxy in states]
        last = []
        if fullest is not None:
            last = [_against(view.at(name, line, fullest), view.at(name, line, base))]
        table.add_row(words.operation(name), *row, *last)
    return table


def _time(view: View, cell: Cell | None, operation: str) -> Text:
    if view.classes.get(operation) == "n/a":
        return Text("n/a")
    if cell is None or (not cell.planned and not cell.published):
        return Text("—")
    if cell.median_s is None:
        return Text("failed" if cell.failed else "no proof" if cell.void else "")
    told = words.duration(cell.median_s)
    return Text(told if cell.published or cell.kept >= LEAST_KEPT else f"{told} ({cell.kept} kept)")


def _against(cell: Cell | None, base: Cell | None) -> Text:
    if cell is None or (not cell.planned and not cell.published):
        return Text("—")
    if not cell.kept and not cell.void and not cell.published:
        return Text("")
    if cell.verdict == "base" or cell.against is None:
        return Text(_VERDICTS.get(cell.verdict, cell.verdict))
    return held(replace(cell.against, verdict=cell.verdict), cell.median_s, base.median_s if base else None)


def held(against: Comparison, here_s: float | None, there_s: float | None) -> Text:
    """A verdict with its ratio and interval, or with what would have been seen or would tell."""
    if against.verdict not in _STYLES:
        told = _VERDICTS.get(against.verdict, against.verdict)
        return Text(f"{told}{_more(against, here_s, there_s)}")
    there, here = there_s or 0.0, here_s or 0.0
    value = words.times(words.ratio(max(here, there), min(here, there)))
    return Text(f"{value} {against.verdict}{words.sure(against)}", style=_STYLES[against.verdict])


def _more(against: Comparison, here_s: float | None, there_s: float | None) -> str:
    """What would have been seen, or how many attempts would tell."""
    if against.verdict == "no-difference" and against.smallest is not None:
        apart = abs(math.log(against.ratio)) if against.ratio else 0.0
        if here_s and there_s:
            apart = max(apart, abs(math.log(here_s / there_s)))
        # Beside two numbers that are far apart the smallest would read as a contradiction: scattered attempts.
        if apart >= math.log1p(against.smallest):
            return f"; too scattered to say{words.sure(against)}"
        return f" ({words.percent(against.smallest)} would show)"
    if against.verdict == "too-few" and against.needed is not None:
        return f" ({against.needed} kept would tell)"
    return ""


def pairs(one: Pairs) -> Table:
    """Published figures before and after."""
    table = plain_table("")
    table.add_column("case")
    for head in (f"{one.before}, {one.unit}", f"{one.after}, {one.unit}", "gain"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in one.rows:
        table.add_row(row.case, f"{row.before:g}", f"{row.after:g}", words.percent(one.gain(row)))
    return table


def models(summary: Summary) -> Table | None:
    """How times follow from lines, per operation and state; None where no model has a residual."""
    known = [one for one in summary.models if one.fit.residual is not None]
    if not known:
        return None
    table = plain_table("time = fixed + round trips × round-trip time + volume ÷ rate, or a floor")
    for head in ("operation", "state"):
        table.add_column(head, no_wrap=True)
    for head in ("fixed", "round trips", "down, fitted", "down, counted", "up, fitted", "floor", "residual"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in known:
        fit = one.fit
        table.add_row(
            words.operation(one.operation),
            one.proxy.key,
            words.duration(fit.fixed_s),
            "—" if fit.round_trips is None else f"{fit.round_trips:.1f}",
            words.amount(round(fit.down_bytes)),
            "—" if one.counted_down_bytes is None else words.amount(one.counted_down_bytes),
            "—" if fit.up_bytes is None else words.amount(round(fit.up_bytes)),
            "—" if fit.floor_s is None else words.duration(fit.floor_s),
            words.percent(fit.residual or 0.0),
        )
    return table


def lines(proved: Iterable[LineProved]) -> Table:
    """Lines as asked, as read back from the kernel, and as a probe achieved them."""
    table = plain_table("lines, upload/download")
    for head in ("asked", "read back", "achieved", "round trip"):
        table.add_column(head, no_wrap=True)
    for one in proved:
        table.add_row(
            words.line(one.line),
            _rates(one.read_upload_bps, one.read_download_bps),
            _rates(one.achieved_upload_bps, one.achieved_download_bps),
            "—" if one.round_trip_s is None else f"{one.round_trip_s * 1000:.1f} ms",
        )
    return table


def _rates(upload: float | None, download: float | None) -> str:
    if upload is None or download is None:
        return "—"
    unit, name = (1_000_000, "Mbit/s") if min(upload, download) >= 1_000_000 else (1000, "kbit/s")
    return f"{upload / unit:.4g}/{download / unit:.4g} {name}"


def runs(heads: Iterable[Head]) -> Table:
    """The list of runs."""
    table = plain_table("")
    table.add_column("run", no_wrap=True)
    table.add_column("experiment")
    table.add_column("outcome", no_wrap=True)
    table.add_column("trials", justify="right", no_wrap=True)
    table.add_column("started (UTC)", no_wrap=True)
    for head in heads:
        table.add_row(
            head.run,
            head.experiment,
            head.told,
            f"{head.finished} of {head.planned}",
            head.started[:16].replace("T", " "),
        )
    return table


def proven(summary: Summary) -> str:
    """How many trials stand: `144 kept, 48 warm-up, 1 failed, 2 without proof (of 195)`."""
    names = {
        Standing.KEPT: "kept",
        Standing.WARM_UP: "warm-up",
        Standing.LAUNCH: "for their traffic only",
        Standing.VOID: "without proof",
        Standing.FAILED: "failed",
    }
    told = [f"{count} {name}" for key, name in names.items() if (count := summary.standings.get(key, 0))]
    return f"{', '.join(told) or 'none finished'} (of {len(summary.started.trials)} planned)"


def trial_words(operation: str, proxy: ProxyState, line: Line) -> str:
    """One cell in a list: `Get, disabled, 512/1024 kbit/s`."""
    return f"{words.operation(operation)}, {proxy.key}, {words.line(line)}"


def plain_table(title: str) -> Table:
    """A table without lines; `title` stands over it."""
    return Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
