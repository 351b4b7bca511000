"""`fill`, `purge` and `line` in the terminal: what would be done is asked, what came of it is said in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console

from lab import asking, hands, units
from lab.analysis import words
from lab.asking import Question
from lab.cli import agreeing, signals
from lab.cli.plain import plain
from lab.errors import BadInput
from lab.events import HostChanged, Noted
from lab.hands import Applied, Hands
from lab.model import Line
from lab.stop import Stop

READ_S = 10.0
"""So often a line that is held is read back."""
TICK_S = 0.5
"""So often the lease's remaining time is drawn."""


def share_of(text: str) -> float:
    """A share from 0 to 1, of `10%`. Raises BadInput for anything that is not 0 to 100 %."""
    return units.parse_share(text if text.rstrip().endswith("%") else f"{text} %")


def operation_of(wanted: str | None, known: Sequence[str], experiment: str) -> str:
    """Which operation the cache is to be full for: by its name, else the first. Raises BadInput."""
    if not known:
        raise BadInput(
            f"no operation of {experiment} brings anything into a cache",
            advice="Add get to its operations, or choose another experiment.",
        )
    if wanted is not None and wanted not in known:
        raise BadInput(
            f"`{wanted}` brings nothing into a cache here", advice=f"Write one of: {', '.join(known)}."
        )
    return wanted or known[0]


def fill(work: Hands, operation: str, agreed: frozenset[str] | None) -> None:
    """Bring the cache to full for the operation, and say what came of it."""
    kinds = _agreed(work, ("purge",), lambda: work.asked_for_fill(operation), agreed, "fill")
    name = words.operation(operation)
    with _working(work) as stop:
        click.echo(f"running {name} once through the proxy, with no limit on the line …")
        done = work.fill(operation, stop, kinds)
    click.echo(
        f"{done.after.host}: the cache is full for {name}: {len(done.here)} of {len(done.listed)} objects,"
        f" {units.bytes_text(sum(one.bytes for one in done.here))}, in {done.after.folder}."
    )
    click.echo(
        f"Of the repository it had {hands.counted(done.before)} before, and has {hands.counted(done.after)} now;"
        f" objects of others: {done.after.others}."
    )
    click.echo(f"They stay {done.stays}; branchlab purge PROFILE 100% takes all of them out.")


def purge(work: Hands, share: float, seed: int, agreed: frozenset[str] | None) -> None:
    """Take this share of the repository's objects out of the cache, once that was agreed to."""
    found = work.inventory(Stop())
    chosen = found.cut(share, seed)
    where = f"{found.host}: {found.folder} has {hands.counted(found)}"
    click.echo(f"{where}{f' of {found.origin}' if found.origin else ''}, and {found.others} of others.")
    if not chosen:
        click.echo(f"{units.percent_text(100 * share, ' ')} of that is no object: nothing was taken out.")
        return
    kinds = _agreed(work, ("purge",), lambda: (found.question(chosen),), agreed, "purge")
    with _working(work) as stop:
        done = work.purge(found, chosen, stop, kinds)
    click.echo(
        f"{done.after.host}: {done.removed} of {len(done.before.objects)} objects were taken out;"
        f" {hands.counted(done.after)} are left, and {done.after.others} objects of others as before."
    )
    if done.removed < done.asked:
        click.echo(f"{done.asked - done.removed} more were gone already when it came to them.")


def line(work: Hands, wanted: Line, agreed: frozenset[str] | None, out: Console) -> None:
    """Hold this line until Ctrl C; `as it is` takes back what was left, and ends at once. Raises Stopped at the end."""
    felt = wanted.limited or wanted.delayed
    kinds = frozenset[str]()
    if felt:
        kinds = _agreed(work, ("connections", "qdisc"), lambda: work.asked_for_line(wanted), agreed, "line")
    with _working(work, "taking the line back …") as stop:
        applied = None
        try:
            with work.line(wanted, stop, kinds) as applied:
                for host, what in applied.limiting:
                    click.echo(f"{host}: {what}")
                click.echo(f"read back from the kernel: {plain(hands.said(applied.read))}")
                if felt:
                    _hold(applied, stop, out)
        finally:
            if felt and applied is not None and applied.lifted is not None:
                click.echo(f"taken back; read back from the kernel: {hands.said(applied.lifted)}")
    if not felt:
        click.echo("No line of BranchLab's limits these hosts.")


def _hold(applied: Applied, stop: Stop, out: Console) -> None:
    """Until somebody stops it, or it ends: then that is raised."""
    click.echo(
        f"It is held for as long as this command runs, under a lease of {applied.lease_s:g} s that is renewed."
        " Ctrl C takes it back."
    )
    with out.status("") as shown:
        ticks = 0
        while True:
            if ticks and ticks % round(READ_S / TICK_S) == 0:
                applied.check(stop)
            shown.update(
                f"held; if BranchLab were gone, the line would end by itself within {applied.left_s:.0f} s"
            )
            stop.sleep(TICK_S)
            applied.alive()
            ticks += 1


def _agreed(
    work: Hands,
    may: Sequence[str],
    look: Callable[[], Sequence[Question]],
    given: frozenset[str] | None,
    command: str,
) -> frozenset[str]:
    """Nobody is asked in a lab that BranchLab made itself; there, what the profile lacks is still told."""
    if work.own:
        look()
        return frozenset(asking.KINDS)
    return agreeing.agreed(may, look, given, command)


@contextmanager
def _working(work: Hands, stopping: str = "stopping: what was begun is taken back") -> Iterator[Stop]:
    """A wish to stop that Ctrl C makes; at the end, however it comes, the account of what was done where."""
    stop = Stop()
    try:
        with signals.asking(stop, lambda text: click.echo(text, err=True), stopping):
            yield stop
    finally:
        _account(work)


def _account(work: Hands) -> None:
    """What was changed on each host, and taken back, each deed once; troubles as they are."""
    done: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for event in work.account():
        match event:
            case HostChanged():
                done.setdefault(event.host, ({}, {}))[event.undone][event.what] = None
            case Noted():
                click.echo(f"{event.grade}: {plain(event.text)}")
    for host, (changed, undone) in done.items():
        for word, texts in (("changed", changed), ("taken back", undone)):
            if texts:
                click.echo(f"{host}: {word}: {plain('; '.join(texts))}")
