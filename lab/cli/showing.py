"""`show`: a run or published figures by name, as the terminal and as scripts get it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from lab import design, exclusions, store
from lab.analysis import before_after, published
from lab.analysis.before_after import Pairs
from lab.analysis.summary import Summary, as_json, summarised
from lab.cli import rehearsal, story, tables
from lab.cli.plain import plain
from lab.errors import BadInput
from lab.model import DISABLED, ProxyState


@dataclass(frozen=True, slots=True)
class Shown:
    """What was found: `json` makes it for scripts, `report` prints it."""

    json: Callable[[], dict[str, Any]]
    report: Callable[[Console], None]


def shown(
    name: str,
    *,
    base: ProxyState = DISABLED,
    left_out: Sequence[tuple[int, str]] = (),
    taken_back: Sequence[int] = (),
) -> Shown:
    """A run or published figures; trials are left out of a run, or taken back, first. Raises BadInput."""
    figures = (*published.names(), *before_after.names())
    if name in figures and (left_out or taken_back):
        raise BadInput(f"{name} has no trials to leave out", advice="They are published figures.")
    if name in before_after.names():
        pairs = before_after.pairs(name)
        return Shown(partial(before_after.as_json, pairs), partial(_report_pairs, pairs))
    path = None if name in figures else store.found(name)
    if path is not None:
        for trial, reason in left_out:
            exclusions.exclude(path, trial, reason)
        for trial in taken_back:
            exclusions.include(path, trial)
    seen = summary(name, base=base)
    if path is not None and design.is_rehearsal(seen.started.experiment):
        return Shown(partial(as_json, seen), partial(_report_rehearsal, path))
    return Shown(partial(as_json, seen), partial(story.report, seen, path))


def summary(name: str, *, base: ProxyState = DISABLED) -> Summary:
    """The summary of a run, or of published times. Raises BadInput if it has no state `base`."""
    if name in published.names():
        seen = published.summary(name, base=base)
    else:
        path = store.found(name)
        with store.opened(path) as record:
            events = record.events(samples=False)
            seen = summarised(events, excluded=exclusions.reasons(path), base=base)
    states = seen.started.experiment.states
    if base.enabled and base not in states:
        raise BadInput(
            f"the run has no state {base.key} to hold the others against",
            advice=f"Write one of: {', '.join(state.key for state in states)}.",
        )
    return seen


def _report_rehearsal(path: Path, out: Console) -> None:
    """No answers: nothing of it was measured twice."""
    with store.opened(path) as record:
        for text in rehearsal.told(record.events(samples=False)):
            out.print(Text(plain(text)), soft_wrap=True)
    out.print(story.where(path), soft_wrap=True)


def _report_pairs(one: Pairs, out: Console) -> None:
    out.print(one.source, soft_wrap=not out.is_terminal)
    out.print(one.text, soft_wrap=not out.is_terminal)
    out.print()
    out.print(tables.pairs(one))
