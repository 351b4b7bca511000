"""`compare`: runs held against the first one, as the terminal and as scripts get it."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.analysis import two_runs, words
from lab.analysis.two_runs import Change, Compared, Foretold
from lab.cli import tables
from lab.export import contents


def compared(a: str, b: str) -> Compared:
    """B held against A; each is a run, or published times. Raises BadInput for what is neither."""
    before, after = contents.named(a), contents.named(b)
    return two_runs.compared(before.summary, after.summary, before.facts, after.facts)


def as_json(found: Compared) -> dict[str, Any]:
    """For scripts."""
    return two_runs.as_json(found)


def report(found: Compared, out: Console) -> None:
    """Verdict, table, forecasts, and what differs."""
    out.print(Text(found.title, style="bold"), soft_wrap=not out.is_terminal)
    for letter, run in (("A", found.a), ("B", found.b)):
        name = run.source or f"{run.started.experiment.name}, {run.started.run}"
        out.print(f"{letter}: {name}", soft_wrap=True)
    if found.text:
        out.print(found.text, soft_wrap=not out.is_terminal)
    if found.changes:
        out.print()
        out.print(_changes(found))
    for letter, cells in (("A", found.only_a), ("B", found.only_b)):
        if cells:
            out.print(f"In {letter} only: {len(cells)} cells.")
    if found.foretold:
        out.print()
        out.print(_forecasts(found.foretold))
    if found.differs:
        out.print()
        out.print(_differences(found))


def _changes(found: Compared) -> Table:
    table = tables.plain_table("")
    for head in ("operation", "line", "state"):
        table.add_column(head, no_wrap=True)
    for head in ("A", "B"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("B against A", no_wrap=True)
    for one in found.changes:
        cell = one.b
        times = (words.duration(side.median_s or 0.0) for side in (one.a, one.b))
        table.add_row(
            words.operation(cell.operation), words.line(cell.line), cell.state, *times, _against(one)
        )
    if len(found.changes) > 1:
        table.add_row("all", "", "", *(words.duration(total) for total in found.totals_s), "")
    return table


def _against(one: Change) -> Text:
    return tables.held(one.against, one.b.median_s, one.a.median_s)


def _forecasts(foretold: tuple[Foretold, ...]) -> Table:
    table = tables.plain_table("on lines that A did not measure, as A foretold them")
    for head in ("operation", "line", "state"):
        table.add_column(head, no_wrap=True)
    for head in ("foretold", "95 %", "measured in B"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one in foretold:
        interval = (
            "—"
            if one.low_s is None or one.high_s is None
            else (f"{words.duration(one.low_s)}–{words.duration(one.high_s)}")
        )
        told = {True: "as foretold", False: "not as foretold", None: "no interval"}[one.held]
        beyond = "" if one.within else ", beyond the lines measured in A"
        table.add_row(
            words.operation(one.b.operation),
            words.line(one.b.line),
            one.b.state,
            words.duration(one.time_s),
            interval,
            words.duration(one.b.median_s or 0.0),
            f"{told}{beyond}",
        )
    return table


def _differences(found: Compared) -> Table:
    table = tables.plain_table("what differs")
    table.add_column("", no_wrap=True)
    for head in ("A", "B"):
        table.add_column(head, overflow="fold")
    for one in found.differs:
        table.add_row(one.name, one.a, one.b)
    return table
