"""The story of a run: every trial of the plan in turn, told as events; the last one is always RunFinished."""

from __future__ import annotations

import importlib.metadata
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from lab import design, repeats
from lab.analysis.settling import Settling
from lab.asking import Declined
from lab.errors import ConnectionLost, LabError, Stopped, TrialFailed
from lab.events import (
    DataMeasured,
    Event,
    HostSeen,
    Noted,
    Outcome,
    Proof,
    RunContinued,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    Standing,
    TrialFinished,
    TrialStarted,
)
from lab.model import Experiment, Trial
from lab.sleeping import Sleep
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
    are left, up to `AGAIN` times; so it is after this machine slept, since leases end meanwhile, and a trial during
    which it did is void. What was changed on hosts is taken back before the last word is said.
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
    yield from _story(experiment, run_id, plan, testbed, stop)


def repeat(known: repeats.Told, testbed: Testbed, stop: Stop) -> Iterator[Event]:
    """Do again what failed, has no proof or was never done, as further events of the same run; as `run` does.

    `known` is what the run told so far (`lab.repeats.refuse_others` was asked). The run fails before its first trial
    where the data is not what it measured before.
    """
    yield RunContinued(at=_now(), trials=known.again, version=_version())
    started = known.started
    yield from _story(started.experiment, started.run, known.again, testbed, stop, known)


def _story(
    experiment: Experiment,
    run_id: str,
    plan: tuple[Trial, ...],
    testbed: Testbed,
    stop: Stop,
    known: repeats.Told | None = None,
) -> Iterator[Event]:
    """Everything from the hosts' opening to the last word."""
    outcome, reason, advice, defect, declined = Outcome.DONE, "", "", None, False
    # What is repeated was chosen already: nothing of it is spared.
    left, again = Settling(replace(experiment, until=None) if known else experiment, plan), AGAIN
    lost: ConnectionLost | None = None
    try:
        while True:
            try:
                for event in _opened(experiment, run_id, left, testbed, stop, known.data if known else {}):
                    yield event
                    if lost is not None and isinstance(event, HostSeen) and lost.host in ("", event.host):
                        yield Noted(text=_found(lost.host, len(left.trials)))
                        lost = None
                break
            except ConnectionLost as error:
                if not left.trials or stop.requested or stop.after_trial:
                    raise
                if not isinstance(error, _Slept):
                    if len(left.trials) == len(plan) or not again:
                        raise
                    again -= 1
                lost = error
                text = f"{_named(error)}. The hosts are connected to again"
                yield Noted(text=text, grade="trouble", lost=error.host)
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
    experiment: Experiment,
    run_id: str,
    left: Settling,
    testbed: Testbed,
    stop: Stop,
    data: Mapping[str, object],
) -> Iterator[Event]:
    """The trials that are left, on hosts that are made ready first; each is taken off when it begins."""
    with testbed.opened(experiment, stop, run_id) as setting_up:
        for event in setting_up:
            if isinstance(event, DataMeasured):
                repeats.refuse_other_data(data, event.facts)
            yield event
        while left.trials:
            sleep = Sleep()
            yield from _paused(stop)
            stop.check_between_trials()
            if not sleep.told():
                trial = left.trials.popleft()
                for event in _attempted(trial, testbed, stop, sleep):
                    left.take(trial, event)
                    yield event
                yield from left.settled(trial)
            if left.trials and (slept := sleep.told()):
                raise _Slept(f"{slept}: the leases on the hosts have ended or may end at any time")


class _Slept(ConnectionLost):
    """Nothing that was promised to this machine for a while need hold any more."""


def new_id() -> str:
    """A name for a run: when it began (UTC), and four letters against another one of the same second."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _attempted(trial: Trial, testbed: Testbed, stop: Stop, sleep: Sleep) -> Iterator[Event]:
    """One trial: prepared, measured, put back. Its record is told once, whatever happens to it."""
    yield TrialStarted(trial=trial.number, at=_now())
    told = False
    try:
        with testbed.treated(trial, stop) as preparing:
            yield from preparing
            for event in testbed.measure(trial, stop):
                if isinstance(event, TrialFinished):
                    told, event = True, _awake(event, sleep)
                yield event
    except Stopped:
        raise
    except LabError as error:
        goes_on = isinstance(error, TrialFailed)
        if not (goes_on or isinstance(error, ConnectionLost) or sleep.told()):
            raise
        if not told:
            reason = "; ".join(filter(None, (sleep.told(), _named(error))))
            yield TrialFinished(trial=trial.number, at=_now(), standing=Standing.FAILED, reason=reason)
        elif goes_on:  # it was measured; what failed is putting things back
            yield Noted(text=_named(error), grade="trouble", trial=trial.number)
        if not goes_on:
            raise _Slept(sleep.told()) if sleep.told() else error from error


def _awake(finished: TrialFinished, sleep: Sleep) -> TrialFinished:
    """The record as it is; void if this machine slept meanwhile, when nobody counted and no lease was renewed."""
    if not (slept := sleep.told()):
        return finished
    standing = Standing.FAILED if finished.standing is Standing.FAILED else Standing.VOID
    return replace(
        finished,
        standing=standing,
        reason="; ".join(filter(None, (f"{slept} meanwhile", finished.reason))),
        proofs=(*finished.proofs, Proof(name="awake", ok=False, text=f"{slept} meanwhile")),
    )


def _found(host: str, left: int) -> str:
    name = f"{host} was" if host else "The hosts were"
    return f"{name} found again; {left} trials are left"


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
