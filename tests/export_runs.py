"""Run files made up for tests of exports: whole runs of the fake testbed, whose figures are made up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fake_testbed import EMPTY, FULL, NINETY, FakeTestbed, experiment

from lab import design, runner, store
from lab.export import contents
from lab.export.contents import Contents
from lab.model import DISABLED, Experiment, Line, Trial
from lab.stop import Stop

STATES = (DISABLED, EMPTY, NINETY, FULL)
SIX = tuple(Line(upload_bps=up * 1000, download_bps=2000 * up) for up in (64, 128, 256, 512, 1000, 2000))


def asked(lines: Iterable[Line] = SIX, **changes: object) -> Experiment:
    """Get, Check-Out and Diff on these lines in the four states, four attempts of which one is warm-up."""
    given = {"operations": ("get", "check-out", "diff"), "states": STATES, "attempts": 4, **changes}
    return experiment(name=given.pop("name", "Do we need the proxy?"), lines=tuple(lines), **given)


def written(path: Path, wanted: Experiment, failing: Iterable[Trial] = (), why: str = "it broke") -> Path:
    """A run file of this experiment, in which these trials fail."""
    bed = FakeTestbed(samples=1, failing={trial.number: why for trial in failing})
    list(store.recorded(runner.run(wanted, bed, Stop(), run_id="r1"), path))
    return path


def gathered(path: Path) -> Contents:
    """What an export would say of a run file."""
    with store.opened(path) as record:
        return contents.gathered(record)


def made(path: Path, wanted: Experiment, failing: Iterable[Trial] = (), why: str = "it broke") -> Contents:
    """Both at once."""
    return gathered(written(path / "a.branchlab", wanted, failing, why))


def trials(wanted: Experiment, **levels: object) -> list[Trial]:
    """The trials of a plan that have these levels: `operation`, `line`, `state`."""
    return [
        trial
        for trial in design.trials(wanted)
        if all(getattr(trial.treatment, name) == value for name, value in levels.items())
    ]
