"""What the window can have done outside of itself, as generators for its worker; tests give others.

Everything heavy is imported where it is needed: the window must be up in a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lab.errors import BadInput
from lab.events import (
    Event,
    LineProved,
    Outcome,
    RunFinished,
    RunStarted,
    ToolMeasured,
    TrialFinished,
)
from lab.live import Live
from lab.model import Experiment, Lab
from lab.stop import Stop

if TYPE_CHECKING:
    from lab.analysis.summary import Summary
    from lab.embedded import Embedded
    from lab.profile import Profile
    from lab.store import Head
    from lab.testbed import Testbed

ANSWERING = (RunStarted, ToolMeasured, LineProved, TrialFinished, RunFinished)
"""Events from which the answers are made."""


@dataclass(frozen=True, slots=True)
class OpenedProfile:
    """A profile, and how many trials each of its experiments plans."""

    profile: Profile
    trials: dict[str, int]


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run from a file: folded, and summed up."""

    path: Path
    live: Live
    summary: Summary


class Cut(Protocol):
    """A testbed that can be cut off at once."""

    def cut(self) -> None:
        """Close all connections, from any thread."""


def _machines(lab: Lab) -> Testbed:
    from lab import store
    from lab.machines import Machines

    return Machines(lab, store.data_folder() / "vcs")


@dataclass(slots=True)
class Doors:
    """The ways out of the window. `testbed` makes the hosts of a lab.

    `held` are labs that must be closed at the end; `recording` is the file of the newest run.
    """

    testbed: Callable[[Lab], Testbed] = _machines
    held: list[Embedded] = field(default_factory=list)
    recording: Path | None = None
    _bed: Testbed | None = None

    def profile(self, path: Path) -> Iterator[OpenedProfile]:
        """Read and check a profile."""
        from lab import design, profile

        found = profile.load(path)
        counts = {}
        for experiment in found.experiments:
            counts[experiment.name] = len(design.trials(experiment))
        yield OpenedProfile(found, counts)

    def hosts(self) -> Iterator[OpenedProfile]:
        """Make hosts on this machine, which end with this process; their profile."""
        from lab import embedded

        made = embedded.up(tied=True)
        self.held.append(made)
        yield from self.profile(made.profile_path)

    def run(self, lab: Lab, experiment: Experiment, stop: Stop, path: Path | None) -> Iterator[Event]:
        """A run, each event recorded before it is told. The path is chosen where none is given."""
        from lab import runner, store

        self._bed = self.testbed(lab)
        told = runner.run(experiment, self._bed, stop, lab_name=lab.name)
        self.recording = path or store.new_path(experiment.name)
        yield from store.recorded(told, self.recording)

    def cut(self) -> bool:
        """Cut the connections of the run under way, where its testbed can; True if it could."""
        cut = getattr(self._bed, "cut", None)
        if cut is None:
            return False
        cut()
        return True

    def opened(self, path: Path) -> Iterator[OpenedRun]:
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

    def summary(self, kept: Iterable[Event]) -> Iterator[Summary]:
        """Sum up what a run has told so far."""
        from lab.analysis.summary import summarised

        yield summarised(list(kept))

    def recent(self) -> Iterator[tuple[Head, ...]]:
        """The newest runs of this machine."""
        from lab import store

        yield store.runs()

    def export(self, run: Path, target: Path) -> Iterator[Path]:
        """A run in the form that the target's ending names."""
        from lab import export, store

        with store.opened(run) as record:
            export.written(record, target, overwrite=True)
        yield target

    def close(self) -> None:
        """Take down what this window made."""
        while self.held:
            self.held.pop().close()


def _refuse_nonsense(event: Event) -> None:
    """Raise ValueError for a number that nothing could have measured."""
    for name in (entry.name for entry in fields(event)):
        value = getattr(event, name)
        if isinstance(value, float) and (not math.isfinite(value) or (name.endswith("_s") and value < 0)):
            raise ValueError(f"{event.kind} says {name} = {value}")
