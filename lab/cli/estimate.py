"""How long a plan will take, before it is run: from an earlier run of this machine, else from its volume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab import store
from lab.analysis import words
from lab.errors import LabError
from lab.events import TrafficSampled
from lab.live import Live
from lab.model import Experiment, Trial

LOOK_BACK = 20
"""So many of the newest runs are looked at."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Least and most seconds, and what that rests on, in words."""

    low_s: float
    high_s: float
    basis: str


def estimate(experiment: Experiment, trials: Sequence[Trial]) -> Estimate | None:
    """How long these trials take; `None` where nothing of the experiment is known."""
    earlier = _earlier(experiment)
    if earlier is not None and (found := _measured(earlier, trials)) is not None:
        return found
    return _from_volume(experiment, trials)


def _earlier(experiment: Experiment) -> Live | None:
    """The newest run of the same tool on the same data that finished trials."""
    for head in store.runs()[:LOOK_BACK]:
        if not head.finished:
            continue
        try:
            with store.opened(head.file) as record:
                asked = record.run_started.experiment
                if (asked.vcs, asked.data, asked.repository) != _same(experiment):
                    continue
                live = Live()
                for event in record.events():
                    if not isinstance(event, TrafficSampled):
                        live.apply(event)
        except LabError:
            continue
        return live
    return None


def _same(experiment: Experiment) -> tuple[str, str | None, str]:
    return experiment.vcs, experiment.data, experiment.repository


def _measured(live: Live, trials: Sequence[Trial]) -> Estimate | None:
    known = [seconds for trial in trials if (seconds := live.expected_s(trial.treatment)) is not None]
    if not known:
        return None
    # Cells that the earlier run did not have are taken as long as its average one.
    timed = sum(known) * len(trials) / len(known)
    preparing = (live.overhead_s or 0.0) * len(trials)
    sure = 0.1 if len(known) == len(trials) else 0.4
    total = timed + preparing
    return Estimate(total * (1 - sure), total * (1 + sure), f"estimated from run {live.run}")


def _from_volume(experiment: Experiment, trials: Sequence[Trial]) -> Estimate | None:
    """From the data set's size alone: the content that a Get moves over each line."""
    if experiment.data is None:
        return None
    from lab import recipes

    size = sum(extension.bytes for extension in recipes.recipe(experiment.data).extensions)
    seconds = 0.0
    for trial in trials:
        line, state = trial.treatment.line, trial.treatment.state
        if trial.treatment.operation == "get" and line.download_bps is not None:
            missing = 1 - (state.full or 0) / 100
            seconds += size * 8 * missing / line.download_bps
    # Text shrinks to about a third when the server compresses; other operations and preparing come on top.
    low, high = seconds * 0.3 + 0.2 * len(trials), seconds + 3.0 * len(trials)
    return Estimate(
        low,
        high,
        f"a rough guess from the {words.amount(size)} of the data set alone; nothing is measured yet",
    )
