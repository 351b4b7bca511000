"""Runs made up for tests of analysis and exports: a plan, and results that hypothesis or a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fake_testbed import FakeTestbed
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lab import design, runner
from lab.events import Event, RunStarted, Standing, TrialFinished
from lab.model import DISABLED, OPERATIONS, PAIRS, Experiment, Line, ProxyState, Trial
from lab.stop import Stop

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For properties of whole runs, which take long to make up; machines that test are often busy."""

CLASSES = {
    "get": "cacheable",
    "check-out": "server",
    "undo": "local",
    "check-in": "server",
    "history": "server",
    "diff": "local",
}
SLOW = Line(upload_bps=512_000, download_bps=1_024_000)
FAST = Line(upload_bps=2_000_000, download_bps=4_000_000)
LINES = (
    SLOW,
    FAST,
    Line(upload_bps=64_000, download_bps=128_000, delay_s=0.04),
    Line(upload_bps=None, download_bps=None),
)
STATES = (DISABLED, *(ProxyState(full=full) for full in (0, 37.5, 90, 100)))


def events(experiment: Experiment, bed: FakeTestbed | None = None) -> list[Event]:
    """Everything that a run of this experiment on the fake testbed says."""
    return list(runner.run(experiment, bed or FakeTestbed(samples=1), Stop()))


def started(experiment: Experiment, classes: dict[str, str] | None = None) -> RunStarted:
    """The first word of a run of this experiment."""
    known = CLASSES if classes is None else classes
    return RunStarted(
        run="20240102-030405-abcd",
        at="2024-01-02T03:04:05.000+00:00",
        experiment=experiment,
        trials=design.trials(experiment),
        classes={name: known.get(name, "server") for name in experiment.operations},
    )


def finished(trial: Trial, wall_s: float | None = 1.0, **fields: object) -> TrialFinished:
    """A trial's record with the standing that its plan gives it, unless told otherwise."""
    standing = Standing.LAUNCH if trial.launch else Standing.WARM_UP if trial.warm_up else Standing.KEPT
    given = {"standing": standing, "at": "2024-01-02T03:04:05.000+00:00", "wall_s": wall_s, **fields}
    return TrialFinished(trial=trial.number, **given)  # type: ignore[arg-type]


def results(first: RunStarted, wall_s: Callable[[Trial], float | None]) -> list[TrialFinished]:
    """All trials finished as planned, with these times."""
    return [finished(trial, wall_s(trial)) for trial in first.trials]


def cells_experiment(
    lines: Sequence[Line] = (SLOW,),
    operations: Sequence[str] = ("get",),
    states: Sequence[ProxyState] = STATES,
    **more: object,
) -> Experiment:
    """An experiment of these levels, three attempts, none of them warm-up."""
    given = {"attempts": 3, "warm_up": 0, **more}
    return Experiment(
        name="made up", lines=tuple(lines), operations=tuple(operations), states=tuple(states), **given
    )  # type: ignore[arg-type]


_counts = st.integers(min_value=0, max_value=3_000_000)


@st.composite
def _record(draw: st.DrawFn, trial: Trial, base_s: float) -> TrialFinished:
    standing = draw(st.sampled_from([None] * 8 + [Standing.VOID, Standing.FAILED]))
    fields: dict[str, object] = {} if standing is None else {"standing": standing}
    if standing is not Standing.FAILED:
        fields["bytes"] = draw(st.just({}) | st.fixed_dictionaries(dict.fromkeys(PAIRS, _counts)))
        for name in ("served_bytes", "relayed_bytes", "direct_bytes"):
            fields[name] = draw(st.none() | _counts)
    return finished(trial, base_s * draw(st.sampled_from([0.97, 1.0, 1.0, 1.02])), **fields)


@st.composite
def made(draw: st.DrawFn) -> tuple[RunStarted, list[TrialFinished]]:
    """Any run: some lines, operations and states, stopped anywhere, trials of every standing."""
    experiment = cells_experiment(
        draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=3, unique=True)),
        draw(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=3, unique=True)),
        draw(st.lists(st.sampled_from(STATES), min_size=1, max_size=4, unique=True)),
        launches=draw(st.booleans()),
    )
    first = started(experiment)
    base = {t.treatment: draw(st.sampled_from([0.0, 0.01, 0.5, 0.52, 6.0, 90.0])) for t in first.trials}
    ended = [draw(_record(trial, base[trial.treatment])) for trial in first.trials]
    stopped = draw(st.sampled_from([False, False, True]))
    return first, ended[: draw(st.integers(min_value=0, max_value=len(ended)))] if stopped else ended
