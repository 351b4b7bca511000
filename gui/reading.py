"""What is read for the window, and written from it, in a thread: runs, recent profiles, published figures, exports.

Generators, for `gui.worker`. What is heavy is imported where it is wanted: the window must be up in a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from gui.found import OpenedRun
from lab.errors import BadInput
from lab.events import (
    Event,
    LineProved,
    LineSettled,
    Outcome,
    RunContinued,
    RunFinished,
    RunStarted,
    ToolMeasured,
    TrialFinished,
)
from lab.live import Live

if TYPE_CHECKING:
    from lab.analysis.before_after import Pairs
    from lab.analysis.summary import Summary
    from lab.analysis.two_runs import Compared
    from lab.recent import Recent
    from lab.store import Head

ANSWERING = (
    RunStarted, RunContinued, ToolMeasured, LineProved, LineSettled, TrialFinished, RunFinished,
)  # fmt: skip
"""Events from which the answers are made."""


def opened(path: Path) -> Iterator[OpenedRun]:
    """Read a run file whole."""
    from lab import exclusions, store
    from lab.analysis.summary import summarised

    live, kept = Live(), []
    try:
        with store.opened(path) as record:
            for event in record.events(samples=False):
                _refuse_nonsense(event)
                live.apply(event)
                if isinstance(event, ANSWERING):
                    kept.append(event)
            if live.running:  # another program writes it: this window can neither stop nor follow it
                live.apply(RunFinished(at=live.last_at, outcome=Outcome.STOPPED, reason=record.reason))
        summary = summarised(kept, excluded=exclusions.reasons(path))
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        # What no event of ours would say. The file is wrong then, not this program.
        advice = "Take another copy of the file if there is one."
        raise BadInput(f"{path}: it is damaged: {error}", advice=advice) from error
    yield OpenedRun(path, live, summary)


def summary(kept: Iterable[Event]) -> Iterator[Summary]:
    """Sum up what a run has told so far."""
    from lab.analysis.summary import summarised

    yield summarised(list(kept))


def recent() -> Iterator[tuple[Head, ...]]:
    """The newest runs of this machine."""
    from lab import store

    yield store.runs()


def remembered() -> Iterator[tuple[Recent, ...]]:
    """The profiles that were opened here, newest first."""
    from lab import recent

    yield recent.profiles()


def published(name: str) -> Iterator[Summary | Pairs]:
    """Published figures: those of a test like ours as a run's answers, others before and after."""
    from lab.analysis import before_after, published

    yield before_after.pairs(name) if name in before_after.names() else published.summary(name)


def compared(a: str, b: str) -> Iterator[Compared]:
    """A run held against another; each by its file, or published times by their name."""
    from lab.analysis import two_runs
    from lab.export import contents

    before, after = contents.named(a), contents.named(b)
    yield two_runs.compared(before.summary, after.summary, before.facts, after.facts)


def export(run: Path, target: Path) -> Iterator[Path]:
    """A run in the form that the target's ending names."""
    from lab import export, store

    with store.opened(run) as record:
        export.written(record, target, overwrite=True)
    yield target


def _refuse_nonsense(event: Event) -> None:
    """Raise ValueError for a number that nothing could have measured."""
    for name in (entry.name for entry in fields(event)):
        value = getattr(event, name)
        if isinstance(value, float) and (not math.isfinite(value) or (name.endswith("_s") and value < 0)):
            raise ValueError(f"{event.kind} says {name} = {value}")
