"""A rehearsal in the terminal: did every kind of trial prove itself, what was changed where, and is anything left?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from lab.analysis.summary import summarised
from lab.cli import story, tables, trouble
from lab.events import Event, HostChanged, RunFinished, RunStarted, Standing, TrialFinished
from lab.model import Experiment, Lab
from lab.testbed import Testbed

if TYPE_CHECKING:
    from lab.cli.parts import Checked


def run(
    lab: Lab, experiment: Experiment, testbed: Testbed, left: Callable[[], Sequence[Checked]], out: Console
) -> int:
    """Run a rehearsal, then look at its hosts again (`left`). A run's exit code; 3 where something is left."""
    path, seen = story.told(lab, experiment, testbed, out)
    remains = left()
    out.print()
    for line in [*told(seen), *_remaining(remains)]:
        out.print(line, soft_wrap=True)
    out.print()
    out.print(story.where(path), soft_wrap=True)
    code = story.code_of(summarised(seen))
    amiss = not all(one.ok for one in remains)
    return trouble.HOST_TROUBLE if amiss and code in (trouble.DONE, trouble.INCOMPLETE) else code


def told(events: Iterable[Event]) -> Iterator[str]:
    """What a rehearsal's events tell: what did not prove itself and why, and what was done on each host."""
    finished: dict[int, TrialFinished] = {}
    account: dict[str, list[HostChanged]] = {}
    started, last = None, None
    for event in events:
        match event:
            case RunStarted():
                started = event
            case TrialFinished():
                finished[event.trial] = event
            case HostChanged():
                account.setdefault(event.host, []).append(event)
            case RunFinished():
                last = event
    if started is None:
        raise ValueError("a run without its first word")
    yield from _kinds(started, finished)
    if last is not None and last.reason:
        yield f"It broke off: {last.reason}"
        if last.advice:
            yield f"What to do: {last.advice}"
    for host, changes in account.items():
        yield f"{host}: changed: {_listed(one.what for one in changes if not one.undone)}"
        yield f"{host}: taken back: {_listed(one.what for one in changes if one.undone)}"


def _kinds(started: RunStarted, finished: dict[int, TrialFinished]) -> Iterator[str]:
    proved = sum(one.standing is Standing.KEPT for one in finished.values())
    yield (
        f"Rehearsed {len(finished)} of {len(started.trials)} kinds of trial, once each; {proved} proved themselves."
        " No time of a rehearsal is an answer."
    )
    for trial in started.trials:
        one = finished.get(trial.number)
        if one is None or one.standing is not Standing.KEPT:
            treatment = trial.treatment
            name = tables.trial_words(treatment.operation, treatment.state, treatment.line)
            yield f"   {name}: {f'{one.standing}: {one.reason}' if one else 'not reached'}"


def _listed(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts)) or "nothing"


def _remaining(remains: Sequence[Checked]) -> Iterator[str]:
    for one in remains:
        yield f"{one.host}: {one.text}"
        if one.advice:
            yield f"   what to do: {one.advice}"
