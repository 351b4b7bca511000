"""The real testbed: hosts over SSH, held to a treatment, measured, and put back."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from lab import agents, asking, settings, units, vcs
from lab.agents import Conversation
from lab.asking import Question
from lab.credentials import Passwords
from lab.errors import AgentRefused, ConnectionLost, HostLacks, HostTrouble, LabError, TrialFailed
from lab.events import (
    CacheFilled,
    CommandStarted,
    Event,
    HostChanged,
    HostSeen,
    LineProved,
    Noted,
    OutputSeen,
    TrafficSampled,
)
from lab.model import Experiment, Lab, Line, Role, Trial
from lab.rig import cache_check, checking, looking, peers, planning, scratch, together
from lab.rig import changes as board
from lab.rig.consent import Consent
from lab.rig.doubts import doubts
from lab.rig.fullness import Fullness
from lab.rig.host_checks import Checked
from lab.rig.hosts import Connected, connected, everywhere, owner, taken_back
from lab.rig.line import HeldLine
from lab.rig.meter import LiveCounters, Meter, Reading
from lab.rig.proofs import Evidence
from lab.rig.record import Held, record
from lab.rig.together import Clock
from lab.rig.workplace import Workplace
from lab.stop import Stop

log = logging.getLogger(__name__)

STILL_S = 0.2
"""Counters must not move for so long before a clock starts and before the closing count."""
QUIET_S = 10.0
"""What is not quiet by then stays unquiet, and the trial is void."""
LEAST_LIMIT_S = 60.0
LIMIT_FACTOR = 10
"""A trial may take so many times what is expected of it, and at least `LEAST_LIMIT_S`."""
BACK_S, TRY_S = 300.0, 10.0
"""So long a host that was lost may take to come back, and so often it is looked for."""
WATCHERS_S = 5.0
"""A watcher takes back what its lease held within this time of the lease's end."""
TAIL_BYTES = 8192
"""So much of a command's output is kept in the run file."""


@dataclass(slots=True)
class _Rig:
    """Everything of one run, from `opened` to its end."""

    hosts: tuple[Connected, ...]
    clients: tuple[Connected, ...]
    """those that take part; the first one probes the line"""
    line: HeldLine
    meter: Meter
    workplace: Workplace
    fullness: Fullness | None
    proved: set[Line] = field(default_factory=set)
    crossing: dict[str, int] = field(default_factory=dict)
    """operation -> bytes that one untimed run of it moved over the line, both ways"""
    held: Held | None = None
    limit_s: float | None = None
    """the longest that a trial's command may take, where the experiment says it"""


class Machines:
    """`lab.testbed.Testbed` over the hosts of a profile.

    `drivers` is the folder of the user's own drivers; a change on a host outlives BranchLab by at most
    `lease_s` seconds (None: as set), and the few that its watcher takes. `agreed` is what a person agreed to of
    `lab.asking.KINDS`, of what `look` found last (objects of a cache, queues); what else would touch other people's
    work is refused. In a lab that BranchLab made itself nobody else works, so nothing is.
    """

    def __init__(
        self,
        lab: Lab,
        drivers: Path | None = None,
        *,
        lease_s: float | None = None,
        passwords: Passwords | None = None,
        agreed: frozenset[str] = frozenset(),
    ) -> None:
        self._lab = lab
        self._consent = Consent(agreed, everything=own(lab))
        self._passwords = passwords
        self._drivers = drivers
        self._lease_s = lease_s if lease_s is not None else settings.lease_s()
        self._open: _Rig | None = None
        self._lost = False
        self._reached: tuple[Connected, ...] = ()

    def cut(self) -> None:
        """Close every connection at once, from any thread: the run fails, and the hosts put themselves back."""
        for one in self._reached:
            one.connection.close()

    def classes(self, experiment: Experiment) -> dict[str, str]:
        """Traffic class of each operation, from the experiment's driver."""
        driver = vcs.driver(experiment.vcs, self._drivers)
        return {name: driver.traffic_class(name).value for name in experiment.operations}

    @contextmanager
    def opened(self, experiment: Experiment, stop: Stop, run: str = "") -> Iterator[Iterator[Event]]:
        """Connected, under leases, counting, with repository and working copies made.

        After a lost connection once the leases have ended of which nobody could be told, and as long as it takes
        a host to come back, up to `BACK_S`.
        """
        with ExitStack() as stack:
            hosts = stack.enter_context(self._connected(owner(run, experiment.name), stop))
            for one, before in zip(hosts, self._reached, strict=False):
                one.told += before.told  # of the time before a connection was lost
            self._reached = hosts
            stack.callback(self._close)
            try:
                yield self._setting_up(hosts, experiment, stack, stop)
            except ConnectionLost:
                self._lost = True
                raise

    @contextmanager
    def _connected(self, owned_by: dict[str, str], stop: Stop) -> Iterator[tuple[Connected, ...]]:
        end = monotonic()
        if self._lost:
            stop.sleep(self._lease_s + WATCHERS_S)
            end = monotonic() + BACK_S
        with ExitStack() as stack:
            while True:
                try:
                    hosts = stack.enter_context(
                        connected(
                            self._lab,
                            stop,
                            lease_s=self._lease_s,
                            owned_by=owned_by,
                            passwords=self._passwords,
                        )
                    )
                    break
                except (HostTrouble, AgentRefused) as error:
                    if monotonic() >= end or isinstance(error, HostLacks):  # it is back, and does not do
                        raise
                    log.info("not yet back: %s", error)
                stop.sleep(TRY_S)
            self._lost = False
            yield hosts

    def _close(self) -> None:
        self._open = None

    def account(self) -> Iterator[Event]:
        """What was changed on the hosts, and taken back or not, and was not told yet. Also once they are let go."""
        for one in self._reached:
            yield from one.account()

    def _setting_up(
        self, hosts: tuple[Connected, ...], experiment: Experiment, stack: ExitStack, stop: Stop
    ) -> Iterator[Event]:
        # Never emptied: a hang while things are taken back is cut off by the same way.
        self._reached = hosts
        for one in hosts:
            yield HostSeen(host=one.name, role=one.host.role.value, facts=one.facts)
            if one.root is not None and one.root.notice:
                yield Noted(text=f"{one.name}: {one.root.notice}")
        line, seen = self._consent.line(hosts, self._lab.place, experiment.lines, stop)
        meter = Meter(hosts, peers.hidden(seen, hosts))
        driver = vcs.driver(experiment.vcs, self._drivers)
        workplace = Workplace(hosts, experiment, driver, self._passwords, seen)
        line.refuse_shared(workplace.ports)
        self._consent.others(line, hosts, experiment.lines, workplace.own_ports, stop)
        workplace.look(stop)
        if any(state.enabled for state in experiment.states):
            # Asked again where it is emptied: here nothing was made yet that would have to be taken back.
            self._consent.fullness(hosts, workplace, looking.never_filled, stop)
        stack.callback(workplace.clear)
        for event in workplace.set_up(stop):
            yield event
            yield from self.account()
        meter.start(stop)
        if not line.shared:
            yield from _apart(line, len(workplace.desks))
        for text in meter.notes():
            yield Noted(text=text, grade="warn")
        yield from self.account()
        rig = _Rig(
            hosts=hosts,
            clients=tuple(desk.client for desk in workplace.desks),
            line=line,
            meter=meter,
            workplace=workplace,
            fullness=None,
            limit_s=experiment.limit_s,
        )
        self._open = rig
        if any(state.enabled for state in experiment.states):
            # Before anything that empties the cache, its clean-up too, is as much as thought of.
            rig.fullness = self._fullness(rig, stop)
            stack.callback(rig.fullness.clear)
            yield from self._learning(rig, experiment, stop)

    def _fullness(self, rig: _Rig, stop: Stop) -> Fullness:
        """The cache's fullness. Raises Declined where objects that are there now would have to go."""

        def fill(operation: str, stop: Stop) -> None:
            rig.line.lift(stop)
            rig.workplace.run_untimed(operation, stop)

        def noted(operation: str, stop: Stop) -> frozenset[str]:
            rig.line.lift(stop)
            return rig.workplace.run_noted(operation, stop)

        return self._consent.fullness(rig.hosts, rig.workplace, fill, stop, noted)

    def _learning(self, rig: _Rig, experiment: Experiment, stop: Stop) -> Iterator[Event]:
        """Make 100 % for every operation; Get first, since its list stands in for empty ones."""
        fullness = rig.fullness
        if fullness is None:
            return
        for operation in sorted(experiment.operations, key=lambda name: name != "get"):
            stop.check()
            before, logs = rig.meter.read(stop), rig.workplace.logs(stop)
            learnt = fullness.learn(operation, stop, instead="get")
            moved = rig.meter.read(stop).since(before).arrived
            rig.crossing[operation] = _over_the_line(moved)
            yield CacheFilled(
                operation=operation,
                objects=learnt.objects,
                cache_bytes=learnt.cache_bytes,
                list_of=learnt.list_of,
                fetched_bytes=moved.get("server>proxy"),
                requests=rig.workplace.logs(stop).since(logs).requests().get("proxy", 0),
            )
            yield from self.account()
            if learnt.others:
                yield Noted(
                    text=f"{learnt.others} objects in the cache were brought in by others while the run goes on:"
                    " they are neither counted nor taken out",
                    grade="warn",
                )

    @contextmanager
    def treated(self, trial: Trial, stop: Stop) -> Iterator[Iterator[Event]]:
        """Prepared with the limit lifted; then the cache in its state, the line applied, and quiet."""
        rig = self._rig()
        for lease in (lease for one in rig.hosts for lease in one.leases):
            lease.check()  # without it no other trial could be held to anything: that is the run's end
        with taken_back(lambda: self._put_back(rig)):
            yield self._preparing(rig, trial, stop)

    def _put_back(self, rig: _Rig) -> None:
        rig.held = None
        # Not under the run's `stop`: what was begun is taken back also, and above all, when stopping.
        try:
            rig.line.lift(Stop())
        finally:
            rig.workplace.clean_up(Stop())

    def _preparing(self, rig: _Rig, trial: Trial, stop: Stop) -> Iterator[Event]:
        begin = monotonic()
        treatment = trial.treatment
        try:
            # The cache first: a fill runs an operation, in the very place where this one is prepared next.
            found = None
            if treatment.state.enabled and rig.fullness is not None:
                found = rig.fullness.bring(treatment.operation, treatment.state, trial.seed, stop)
            jobs = rig.workplace.prepare(trial, stop)
            line = rig.line.apply(treatment.line, stop)
            yield from self.account()
            if treatment.line not in rig.proved:
                proving = monotonic()
                for one in rig.line.probers(rig.clients[0]):
                    proved = rig.line.prove(treatment.line, one, stop)
                    yield proved
                    yield from _doubts(proved, rig.line.holder.name if rig.line.shared else one.name)
                rig.proved.add(treatment.line)
                begin += monotonic() - proving  # once per line, and not of this trial
            quiet = self._quiet(rig, treatment.line, stop)
        except AgentRefused as error:
            raise _trial_failed(error) from error
        rig.held = Held(
            jobs=jobs,
            line=line,
            found=found,
            quiet=quiet,
            limit_s=self._limit_s(rig, trial),
            preparing_s=monotonic() - begin,
        )

    def measure(self, trial: Trial, stop: Stop) -> Iterator[Event]:
        """The timed command, with counters streamed; then the closing count and the proofs."""
        rig = self._rig()
        held = rig.held
        if held is None:
            raise AssertionError("a trial is measured only inside `treated`")
        try:
            yield from self._measured(rig, held, trial, stop)
        except AgentRefused as error:
            raise _trial_failed(error) from error

    def _measured(self, rig: _Rig, held: Held, trial: Trial, stop: Stop) -> Iterator[Event]:
        clocks = together.clocks(rig.clients, stop)
        logs, before = rig.workplace.logs(stop), rig.meter.read(stop)
        for job in held.jobs:
            yield CommandStarted(trial=trial.number, host=job.client.name, argv=job.command.argv)
        words = yield from self._run(rig, held, trial, before, clocks, stop)
        parts = together.parts(held.jobs, words, clocks)
        at_exit = rig.meter.read(stop)
        quiet = held.quiet or self._quiet(rig, trial.treatment.line, stop)
        closing = rig.meter.read(stop)
        line_after = rig.line.read(stop)
        evidence = Evidence(
            trial=trial,
            traffic_class=rig.workplace.driver.traffic_class(trial.treatment.operation),
            line_before=held.line,
            line_after=line_after,
            lease_alive=all(lease.alive for one in rig.hosts for lease in one.leases),
            found=held.found,
            listed=rig.fullness.listed(trial.treatment.operation) if rig.fullness and held.found else 0,
            moved=closing.since(before),
            logs=rig.workplace.logs(stop).since(logs),
            unquiet=quiet,
            exit_ok=all(part.ok for part in parts),
            told=together.joined(parts),
            limit_s=held.limit_s,
            content_bytes=rig.workplace.content_bytes if trial.treatment.operation == "get" else 0,
            parts=parts if len(parts) > 1 else (),
        )
        yield record(evidence, held, closing.since(at_exit))
        for job, part in zip(held.jobs, parts, strict=True):
            if not part.ok:
                rig.workplace.refuse_unentered(job, part.word["tail"])

    def _run(
        self,
        rig: _Rig,
        held: Held,
        trial: Trial,
        before: Reading,
        clocks: Mapping[str, Clock],
        stop: Stop,
    ) -> Generator[Event, None, dict[str, dict[str, Any]]]:
        """Stream until the last of the commands' last words; these, by host, are the value.

        Of several clients the others go on when one fails: what it costs the office is the trial's answer.
        """
        live, began = LiveCounters(rig.meter, before), monotonic()
        running: dict[Conversation, str] = {}
        with rig.meter.streaming() as samples, ExitStack() as stack:
            at = together.moment(clocks)
            for job in held.jobs:
                name = job.client.name
                request = {
                    **rig.workplace.request(job.command),
                    "timeout_s": held.limit_s,
                    "tail": TAIL_BYTES,
                }
                request |= {"at": at[name]} if name in at else {}
                running[stack.enter_context(job.client.agent.stream("command", request))] = name
            left = set(running)
            for talk, event, data in agents.merged([*running, *samples], stop):
                if talk in running and event is None:
                    left.remove(talk)
                    if not left:
                        break
                elif talk in running and event == "output":
                    host = running[talk] if len(running) > 1 else ""
                    yield OutputSeen(trial=trial.number, stream=data["stream"], text=data["text"], host=host)
                elif event == "sample":
                    live.take(samples[talk], data)
                    if samples[talk] == rig.meter.lead:
                        yield TrafficSampled(trial=trial.number, t_s=monotonic() - began, bytes=live.bytes())
        return {name: talk.result or {} for talk, name in running.items()}

    def _quiet(self, rig: _Rig, line: Line, stop: Stop) -> str:
        """Empty once no connection, queue or counter of the test moves; else what still does."""
        # What is under way on a delayed line is in no queue that could be seen.
        still_s = STILL_S + 2 * (line.delay_s + line.jitter_s)
        ports = rig.workplace.ports
        keeping = [one for one in rig.hosts if one.host.role is Role.PROXY and not one.host.services]
        words = everywhere(
            (
                (
                    one,
                    one.root or one.agent,
                    "quiet.wait",
                    {
                        "peers": [
                            address for peer in rig.hosts if peer is not one for address in peer.addresses
                        ],
                        "ports": ports,
                        "keeps": _kept_open(one, rig.hosts, keeping),
                        "still_s": still_s,
                        "timeout_s": QUIET_S,
                    },
                )
                for one in rig.hosts
                if not one.facts.get("windows")  # which shows nobody its connections
            ),
            stop,
            timeout_s=10 * QUIET_S,
        )
        return "; ".join(f"{name}: {word['why']}" for name, word in words.items() if not word["quiet"])

    def _limit_s(self, rig: _Rig, trial: Trial) -> float:
        if rig.limit_s is not None:
            return rig.limit_s
        line = trial.treatment.line
        slower = min(line.upload_bps or 10**9, line.download_bps or 10**9)
        # Without a fill nothing is known of an operation's volume but the data set's size.
        crossing = rig.crossing.get(trial.treatment.operation, rig.workplace.data_bytes)
        expected = crossing * len(rig.clients) * 8 / slower + 100 * 2 * line.delay_s
        return max(LEAST_LIMIT_S, LIMIT_FACTOR * expected)

    def _rig(self) -> _Rig:
        if self._open is None:
            raise AssertionError("the testbed is used only inside `opened`")
        return self._open


def _doubts(proved: LineProved, host: str) -> Iterator[Event]:
    """What the probe makes doubtful, told; what it disproves ends the run, since no trial could be believed."""
    found = doubts(proved)
    if found.disproved:
        raise HostTrouble(
            f"the line {units.line_text(proved.line)} does not hold: {'; '.join(found.disproved)}",
            host=host,
            tried=f"applied with {proved.method}, read back, then probed",
            advice="Look whether the hosts reach each other by another way than the one that is limited.",
        )
    for text in found.doubtful:
        yield Noted(text=text, grade="warn")


def _apart(line: HeldLine, clients: int) -> Iterator[Event]:
    """What is to be known where the line is not one."""
    text = f"each office host limits {line.what(line.holders[-1].name)}"
    if clients < 2:
        yield Noted(text=text)
    else:
        text += (
            f": the {clients} clients of a trial do not wait for each other on it, as they would in an office"
        )
        yield Noted(text=text, grade="warn")


def _changed(one: Connected, what: str) -> HostChanged:
    return HostChanged(host=one.name, at=datetime.now(UTC).isoformat(timespec="milliseconds"), what=what)


def _over_the_line(moved: dict[str, int] | Any) -> int:
    return sum(count for pair, count in moved.items() if "server" in pair)


def _kept_open(one: Connected, hosts: Sequence[Connected], keeping: Sequence[Connected]) -> list[str]:
    """With whom idle connections may stay open: a proxy of the user's own (`keeping`) keeps them to the server."""
    if one in keeping:
        with_whom = [other for other in hosts if other.host.role is Role.SERVER]
    else:
        with_whom = list(keeping) if one.host.role is Role.SERVER else []
    return [address for other in with_whom for address in other.addresses]


def _trial_failed(error: AgentRefused) -> TrialFailed:
    return TrialFailed(str(error), host=error.host, tried=error.tried, advice=error.advice)


def check(
    lab: Lab,
    experiment: Experiment | None,
    passwords: Passwords | None = None,
    drivers: Path | None = None,
    stop: Stop | None = None,
    say: Callable[[str], None] = lambda name: None,
    entering: Callable[[Experiment], None] | None = None,
    also: Sequence[Experiment] = (),
) -> tuple[Checked, ...]:
    """What a run would need on every host, looked at, and what it would ask; changes nothing.

    `entering` gets the password of the experiment's repository from a person; without it, it must be known.
    `say` is told of each host's name before it is looked at, and of an empty one before what is between them.
    What the experiments in `also` need and would ask beyond that is told with their names. Raises Stopped once
    `stop` was requested.
    """
    stop = stop or Stop()
    found = checking.check(lab, experiment, passwords, stop, say, also)
    stop.check()
    if experiment is None:
        return found
    passwords = passwords or Passwords()
    driver = vcs.driver(experiment.vcs, drivers)
    found = (*found, *cache_check.full(lab, experiment, driver, passwords, stop))
    if not all(one.ok for one in found):
        return found
    said = list(_asked(lab, experiment, passwords, drivers, entering))
    found = (*found, *said)
    for other in also:
        stop.check()
        found = (*found, *checking.news(other, _asked(lab, other, passwords, drivers, entering), said))
    return found


def _asked(
    lab: Lab,
    experiment: Experiment,
    passwords: Passwords,
    drivers: Path | None,
    entering: Callable[[Experiment], None] | None,
) -> Iterator[Checked]:
    """What a run of this experiment would ask; or what keeps that from being known."""
    try:
        if entering is None:
            signed_in(lab, experiment, passwords, drivers)
        else:
            entering(experiment)
        questions = _looked(lab, experiment, drivers, passwords, remember=False)
    except LabError as error:
        yield Checked(error.host or lab.name, False, str(error), error.advice)
        return
    if experiment.user:
        text = f"the repository lets {experiment.user} in, or asks nobody on reads"
        yield Checked(lab.taking_part(experiment)[0].name, True, text)
    for one in questions:
        flag = asking.flag([one.kind])
        yield Checked(
            one.host,
            True,
            f"a run would ask ({flag}): {one.text}",
            f"Agree when asked; where nobody watches, {flag}, or the run is refused.",
            asks=one.kind,
        )


def commands(lab: Lab, experiment: Experiment, drivers: Path | None = None) -> dict[str, list[str]]:
    """What a run would do on every host, as text; touches nothing."""
    return planning.commands(lab, experiment, vcs.driver(experiment.vcs, drivers))


def changes(lab: Lab, experiment: Experiment, duration: str = "", drivers: Path | None = None) -> str:
    """The plan as a page for a change board, in Markdown; touches nothing."""
    return board.page(lab, experiment, vcs.driver(experiment.vcs, drivers), duration)


def revert(lab: Lab, *, force: bool = False, passwords: Passwords | None = None) -> dict[str, list[str]]:
    """Take back what any run left on the hosts (`force`: of one that goes on, too); what that was, by host."""
    return checking.revert(lab, force=force, passwords=passwords)


def left(lab: Lab, passwords: Passwords | None = None) -> tuple[Checked, ...]:
    """What runs have left on every host, looked at; changes nothing."""
    return checking.left(lab, passwords)


def own(lab: Lab) -> bool:
    """True if BranchLab made this lab itself, on this machine and for this user: nobody else is hurt there."""
    if sys.platform == "win32":
        return False
    from lab import embedded  # which not every controller can load

    return embedded.is_own(lab)


def signed_in(lab: Lab, experiment: Experiment, passwords: Passwords, drivers: Path | None = None) -> None:
    """Enter the experiment's repository once, and pass its proxy, so that `passwords` knows what they want.

    Nothing where neither names a user. Changes nothing. Raises lab.rig.entry.RepositoryPasswordRefused for a password
    that is wrong.
    """
    scratch.signed_in(lab, experiment, vcs.driver(experiment.vcs, drivers), passwords)


def look(
    lab: Lab, experiment: Experiment, drivers: Path | None = None, passwords: Passwords | None = None
) -> tuple[Question, ...]:
    """What a person must agree to before this experiment is run on these hosts. Changes nothing there.

    Nothing in a lab that BranchLab made itself. Raises what the run would raise before its first change, there too:
    HostTrouble, BadInput, AgentRefused.
    """
    return _looked(lab, experiment, drivers, passwords, remember=True)


def _looked(
    lab: Lab, experiment: Experiment, drivers: Path | None, passwords: Passwords | None, *, remember: bool
) -> tuple[Question, ...]:
    driver = vcs.driver(experiment.vcs, drivers)
    if own(lab):
        looking.look_at_own(lab, experiment, driver, passwords or Passwords())
        return ()
    return looking.look(lab, experiment, driver, passwords or Passwords(), remember=remember)
