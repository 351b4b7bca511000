"""The story of a run: every trial of the plan in turn, told as events; the last one is always RunFinished."""

from __future__ import annotations

import importlib.metadata
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime

from lab import design
from lab.analysis.settling import Settling
from lab.asking import Declined
from lab.errors import ConnectionLost, LabError, Stopped, TrialFailed
from lab.events import (
    Event,
    Noted,
    Outcome,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    Standing,
    TrialFinished,
    TrialStarted,
)
from lab.model import Experiment, Trial
from lab.stop import Stop
from lab.testbed import Testbed

AGAIN = 3
"""So often a run goes on after a connection was lost."""


def run(
    experiment: Experiment, testbed: Testbed, stop: Stop, *, lab_name: str = "", run_id: str | None = None
) -> Iterator[Event]:
    """Run the whole plan; nothing happens before the first event is pulled.

    Raises BadInput before the first event if the experiment cannot be planned. Afterwards a TrialFailed
    fails one trial, any other LabError the run, a defect too: that one is raised again *after* the last
    word, for whoever pulls on. A lost connection fails its trial, and the hosts are made ready anew for those that
    are left, up to `AGAIN` times. What was changed on hosts is taken back before the last word is said.
    """
    plan = design.trials(experiment)
    run_id = run_id or new_id()
    yield RunStarted(
        run=run_id,
        at=_now(),
        experiment=experiment,
        trials=plan,
        classes=testbed.classes(experiment),
        lab=lab_name,
        version=_version(),
    )
    outcome, reason, advice, defect, declined = Outcome.DONE, "", "", None, False
    left, again = Settling(experiment, plan), AGAIN
    try:
        while True:
            try:
                yield from _opened(experiment, run_id, left, testbed, stop)
                break
            except ConnectionLost as error:
                if not left.trials or len(left.trials) == len(plan) or not again or stop.requested:
                    raise
                again -= 1
                yield Noted(text=f"{_named(error)}. The hosts are connected to again", grade="trouble")
    except Stopped:
        outcome = Outcome.STOPPED
    except LabError as error:
        outcome, reason, advice = Outcome.FAILED, _named(error), error.advice
        declined = isinstance(error, Declined)
    except Exception as error:  # noqa: BLE001 - the last word comes first; it is raised again below
        outcome, reason, defect = Outcome.FAILED, f"a defect of BranchLab: {error!r}", error
    troubles = []
    for event in testbed.account():
        if isinstance(event, Noted) and event.grade == "trouble":
            troubles.append(event.text)
        yield event
    yield RunFinished(
        at=_now(),
        outcome=outcome,
        reason=reason,
        advice=advice,
        declined=declined,
        left="; ".join(troubles),
    )
    if defect is not None:
        raise defect


def _opened(
    experiment: Experiment, run_id: str, left: Settling, testbed: Testbed, stop: Stop
) -> Iterator[Event]:
    """The trials that are left, on hosts that are made ready first; each is taken off when it begins."""
    with testbed.opened(experiment, stop, run_id) as setting_up:
        yield from setting_up
        while left.trials:
            yield from _paused(stop)
            stop.check()
            trial = left.trials.popleft()
            for event in _attempted(trial, testbed, stop):
                left.take(trial, event)
                yield event
            yield from left.settled(trial)


def new_id() -> str:
    """A name for a run: when it began (UTC), and four letters against another one of the same second."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _attempted(trial: Trial, testbed: Testbed, stop: Stop) -> Iterator[Event]:
    """One trial: prepared, measured, put back. Its record is told once, whatever happens to it."""
    yield TrialStarted(trial=trial.number, at=_now())
    told = False
    try:
        with testbed.treated(trial, stop) as preparing:
            yield from preparing
            for event in testbed.measure(trial, stop):
                told = told or isinstance(event, TrialFinished)
                yield event
    except TrialFailed as error:
        if told:  # it was measured; what failed is putting things back
            yield Noted(text=_named(error), grade="trouble", trial=trial.number)
        else:
            yield TrialFinished(trial=trial.number, at=_now(), standing=Standing.FAILED, reason=_named(error))
    except ConnectionLost as error:
        if not told:
            yield TrialFinished(trial=trial.number, at=_now(), standing=Standing.FAILED, reason=_named(error))
        raise


def _paused(stop: Stop) -> Iterator[Event]:
    if stop.paused:
        yield RunPaused()
        stop.wait_while_paused()
        yield RunResumed()


def _named(error: LabError) -> str:
    return f"{error.host}: {error}" if error.host else str(error)


def _version() -> str:
    try:
        return importlib.metadata.version("branchlab")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout without installing it
        return ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
