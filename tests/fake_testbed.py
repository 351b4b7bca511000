"""A stand-in for the hosts that works: a small model of line, cache and Subversion in virtual time.

Not a mock: it obeys the rules that the real testbed obeys (nothing is measured that was not prepared,
everything is taken back), keeps a log of what it did, and its times follow from bytes and the line's rate.
Its figures are made up and belong to tests only.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lab import design
from lab.errors import LabError, TrialFailed
from lab.events import (
    CacheFilled,
    CommandStarted,
    DataMeasured,
    Event,
    HostChanged,
    HostSeen,
    LineProved,
    OutputSeen,
    Proof,
    Standing,
    ToolMeasured,
    TrafficSampled,
    TrialFinished,
)
from lab.model import DISABLED, PAIRS, Experiment, Line, ProxyState, Role, TrafficClass, Trial
from lab.stop import Stop

EMPTY, NINETY, FULL = (ProxyState(full=n) for n in (0, 90, 100))


def experiment(**changes: object) -> Experiment:
    """*Proxy efficiency (quick)* as the issue describes it; any field can be changed by name."""
    fields: dict[str, object] = {
        "name": "Proxy efficiency (quick)",
        "lines": (
            Line(upload_bps=512_000, download_bps=1_024_000),
            Line(upload_bps=2_000_000, download_bps=4_000_000),
        ),
        "states": (DISABLED, EMPTY, NINETY, FULL),
    }
    return Experiment(**{**fields, **changes})  # type: ignore[arg-type]


def small(**changes: object) -> Experiment:
    """One line, Get and Diff, disabled and full, three attempts of which one is warm-up: 12 trials."""
    fields: dict[str, object] = {
        "name": "Small",
        "lines": (Line(upload_bps=512_000, download_bps=1_024_000),),
        "operations": ("get", "diff"),
        "states": (DISABLED, FULL),
        "attempts": 3,
    }
    return experiment(**{**fields, **changes})


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an operation costs in the model."""

    kind: TrafficClass
    fixed_s: float
    content_bytes: int = 0
    """Down the line, and cacheable if the class says so."""
    service_bytes: int = 0
    """Down the line, never from the cache."""
    up_bytes: int = 0
    round_trips: int = 2
    objects: int = 0


WORK = {
    "get": Work(
        kind=TrafficClass.CACHEABLE,
        fixed_s=0.15,
        content_bytes=600_000,
        service_bytes=20_000,
        up_bytes=30_000,
        objects=150,
    ),
    "check-out": Work(
        kind=TrafficClass.SERVER, fixed_s=0.06, service_bytes=40_000, up_bytes=45_000, round_trips=50
    ),
    "undo": Work(kind=TrafficClass.LOCAL, fixed_s=0.05, round_trips=0),
    "check-in": Work(
        kind=TrafficClass.SERVER, fixed_s=0.10, service_bytes=30_000, up_bytes=90_000, round_trips=60
    ),
    "history": Work(
        kind=TrafficClass.SERVER, fixed_s=0.03, service_bytes=25_000, up_bytes=2_000, round_trips=4
    ),
    "diff": Work(kind=TrafficClass.LOCAL, fixed_s=0.04, round_trips=0),
}
LAN_BPS = 1_000_000_000
TOOL_S = 0.012


class FakeTestbed:
    """Implements `lab.testbed.Testbed` without a host.

    `failing` and `void` name trials by number, with the reason; `at` raises any error while that trial is
    measured (a LabError fails the run, another exception is a defect); `opening` is raised while
    connecting, `closing` while everything is taken back, `restoring` while a trial is. Trials in `held` wait amid
    their samples for their event. `pace` is how many real seconds one virtual second takes (0: none); `samples`
    how many a trial tells; `noise` the share by which times scatter to either side.
    """

    def __init__(
        self,
        *,
        failing: Mapping[int, str] | None = None,
        void: Mapping[int, str] | None = None,
        at: Mapping[int, Exception] | None = None,
        opening: LabError | None = None,
        closing: LabError | None = None,
        restoring: Mapping[int, LabError] | None = None,
        held: Mapping[int, threading.Event] | None = None,
        pace: float = 0.0,
        samples: int = 10,
        noise: float = 0.01,
    ) -> None:
        self.log: list[str] = []
        self.line: Line | None = None
        """The line as it is applied now; None: unlimited, as the testbed was found."""
        self._failing, self._void, self._at = dict(failing or {}), dict(void or {}), dict(at or {})
        self._opening, self._closing, self._restoring = opening, closing, dict(restoring or {})
        self._held = dict(held or {})
        self._pace, self._samples, self._noise = pace, samples, noise
        self._clock = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
        self._open = False
        self._ready: Trial | None = None
        self._proved: set[Line] = set()

    def classes(self, experiment: Experiment) -> dict[str, str]:
        """As a Subversion driver would say."""
        return {name: WORK[name].kind.value for name in experiment.operations}

    @contextmanager
    def opened(self, experiment: Experiment, stop: Stop, run: str = "") -> Iterator[Iterator[Event]]:
        """Connected inside; taken back at the end."""
        self.log.append("open")
        if self._opening:
            raise self._opening
        self._open = True
        try:
            yield self._set_up(experiment, stop)
        finally:
            self._open = False
            self.log.append("close")
            if self._closing:
                raise self._closing

    def account(self) -> Iterator[Event]:
        """Nothing that was not told as it happened."""
        return iter(())

    @contextmanager
    def treated(self, trial: Trial, stop: Stop) -> Iterator[Iterator[Event]]:
        """The line is the trial's inside."""
        assert self._open, "a trial was prepared on a testbed that is not open"
        assert self._ready is None, "the trial before was not put back"
        self.log.append(f"prepare {trial.number}")
        try:
            yield self._prepare(trial, stop)
        finally:
            self._ready, self.line = None, None
            self.log.append(f"restore {trial.number}")
            if trial.number in self._restoring:
                raise self._restoring[trial.number]

    def measure(self, trial: Trial, stop: Stop) -> Iterator[Event]:
        """Samples and output in the order in which they would come, then the record."""
        assert self._ready is trial, f"trial {trial.number} was not prepared"
        self.log.append(f"run {trial.number}")
        argv = ("svn", trial.treatment.operation, "http://server/svn/trunk", "--non-interactive")
        yield CommandStarted(trial=trial.number, host="client", argv=argv)
        if trial.number in self._failing:
            raise TrialFailed(self._failing[trial.number], host="client")
        wall_s, moved = _outcome(trial, self._noise)
        for n in range(1, self._samples + 1):
            if n == self._samples // 2 + 1 and trial.number in self._at:
                raise self._at[trial.number]
            while n == 2 and trial.number in self._held and not self._held[trial.number].wait(0.01):
                stop.check()
            self._pass(wall_s / self._samples, stop)
            yield TrafficSampled(
                trial=trial.number,
                t_s=wall_s * n / self._samples,
                bytes={pair: moved[pair] * n // self._samples for pair in PAIRS},
            )
        yield OutputSeen(trial=trial.number, stream="stdout", text=f"{trial.treatment.operation}: done.\n")
        yield self._record(trial, wall_s, moved)

    def _set_up(self, experiment: Experiment, stop: Stop) -> Iterator[Event]:
        for role in (Role.CLIENT, Role.PROXY, Role.SERVER):
            self._pass(0.05, stop)
            yield HostSeen(host=role.value, role=role.value, facts={"os": "Fake OS 1", "cpus": 2})
        yield DataMeasured(facts={"files": 150, "bytes": 600_000, "revision": 100})
        yield ToolMeasured(tool="svn", version="1.14.2", start_s=TOOL_S)
        for name in experiment.operations if any(s.enabled for s in experiment.states) else ():
            work = WORK[name]
            yield CacheFilled(
                operation=name,
                objects=work.objects,
                cache_bytes=work.content_bytes + 300 * work.objects,
                fetched_bytes=work.content_bytes + work.service_bytes,
                requests=work.objects + work.round_trips,
            )

    def _prepare(self, trial: Trial, stop: Stop) -> Iterator[Event]:
        self._pass(0.4, stop)
        line = trial.treatment.line
        self.line, self._ready = line, trial
        if line not in self._proved:
            self._proved.add(line)
            yield HostChanged(host="server", at=self._now(), what="line applied")
            yield LineProved(
                line=line,
                read_upload_bps=line.upload_bps,
                read_download_bps=line.download_bps,
                achieved_upload_bps=0.95 * (line.upload_bps or LAN_BPS),
                achieved_download_bps=0.95 * (line.download_bps or LAN_BPS),
                round_trip_s=2 * line.delay_s + 0.0002,
                method="fake",
            )

    def _record(self, trial: Trial, wall_s: float, moved: dict[str, int]) -> TrialFinished:
        state, work = trial.treatment.state, WORK[trial.treatment.operation]
        cacheable = work.content_bytes if work.kind is TrafficClass.CACHEABLE else 0
        served = round(cacheable * (state.full or 0) / 100)
        far = moved["server>client"] + moved["server>proxy"]
        purged = design.purge_sample(_objects(work), state.full, trial.seed) if state.full is not None else ()
        void = self._void.get(trial.number)
        return TrialFinished(
            trial=trial.number,
            at=self._now(),
            standing=_standing(trial, void),
            reason=void or "",
            exit_status=0,
            wall_s=wall_s,
            user_s=0.02,
            system_s=0.01,
            peak_kib=12_000,
            bytes=moved,
            sent=moved,
            tail=dict.fromkeys(PAIRS, 0),
            served_bytes=served if state.enabled else 0,
            relayed_bytes=far if state.enabled else 0,
            direct_bytes=0 if state.enabled else far,
            requests={"hits": work.objects - len(purged), "misses": len(purged)} if state.enabled else {},
            cache_asked="" if state.full is None else state.key,
            cache_found=state.full,
            cache_objects=None if state.full is None else work.objects - len(purged),
            purged=purged,
            proofs=(
                Proof(name="line", ok=True, text="read back as asked, before and after"),
                Proof(name="quiet", ok=not void, text=void or "quiet before and after"),
                Proof(name="exit", ok=True, text="exit 0"),
            ),
            preparing_s=0.4,
            read_upload_bps=trial.treatment.line.upload_bps,
            read_download_bps=trial.treatment.line.download_bps,
            output=f"{trial.treatment.operation}: done.\n",
        )

    def _pass(self, seconds: float, stop: Stop) -> None:
        """Virtual time goes on, at the pace asked."""
        self._clock += timedelta(seconds=seconds)
        if self._pace:
            stop.sleep(seconds * self._pace)
        stop.check()

    def _now(self) -> str:
        return self._clock.isoformat(timespec="milliseconds")


def _objects(work: Work) -> list[str]:
    return [f"/svn/!svn/rvr/100/trunk/file{n:03}.cs" for n in range(work.objects)]


def _standing(trial: Trial, void: str | None) -> Standing:
    if void:
        return Standing.VOID
    if trial.launch:
        return Standing.LAUNCH
    return Standing.WARM_UP if trial.warm_up else Standing.KEPT


def _outcome(trial: Trial, scatter: float = 0.01) -> tuple[float, dict[str, int]]:
    """Wall time in seconds and bytes by pair: fixed + volume over rate + round trips, 1 % of noise."""
    line, state, work = trial.treatment.line, trial.treatment.state, WORK[trial.treatment.operation]
    noise = 1 + random.Random(trial.seed).uniform(-scatter, scatter)
    full = (state.full or 0) / 100 if work.kind is TrafficClass.CACHEABLE else 0.0
    down = work.service_bytes + round(work.content_bytes * (1 - full))
    up = work.up_bytes - round(work.up_bytes * 0.9 * full)
    moved = dict.fromkeys(PAIRS, 0)
    if state.enabled:
        moved.update({"server>proxy": down, "proxy>server": up, "client>proxy": work.up_bytes})
        moved["proxy>client"] = work.service_bytes + work.content_bytes
    else:
        moved.update({"server>client": down, "client>server": up})
    on_line_s = down * 8 / (0.95 * (line.download_bps or LAN_BPS)) + up * 8 / (
        0.95 * (line.upload_bps or LAN_BPS)
    )
    in_office_s = moved["proxy>client"] * 8 / LAN_BPS + (0.02 if state.enabled and down else 0.0)
    trips_s = work.round_trips * (2 * line.delay_s + 0.0005)
    return (TOOL_S + work.fixed_s + on_line_s + in_office_s + trips_s) * noise, moved
