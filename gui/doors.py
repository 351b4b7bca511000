"""What the window can have done outside of itself, as generators for its worker; tests give others.

Everything heavy is imported where it is needed: the window must be up in a second.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lab.errors import AgentRefused, BadInput, HostTrouble, LabError, Stopped
from lab.events import (
    Event,
    LineProved,
    LineSettled,
    Outcome,
    OutputSeen,
    RunContinued,
    RunFinished,
    RunStarted,
    ToolMeasured,
    TrialFinished,
)
from lab.live import Live
from lab.model import Experiment, Host, Lab
from lab.stop import Stop

if TYPE_CHECKING:
    from gui.person import Somebody
    from lab.analysis.before_after import Pairs
    from lab.analysis.summary import Summary
    from lab.asking import Question
    from lab.credentials import Offered, Passwords
    from lab.draft import Draft
    from lab.embedded import Embedded
    from lab.hands import Hands
    from lab.profile import Profile
    from lab.recent import Recent
    from lab.rig.host_checks import Checked
    from lab.rig.meeting import Met, Step
    from lab.rig.provisioning import Missing
    from lab.store import Head
    from lab.testbed import Testbed

ANSWERING = (
    RunStarted, RunContinued, ToolMeasured, LineProved, LineSettled, TrialFinished, RunFinished,
)  # fmt: skip
"""Events from which the answers are made."""


@dataclass(frozen=True, slots=True)
class OpenedProfile:
    """A profile that can be edited, and how many trials each of its experiments plans."""

    draft: Draft
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """What taking everything back did on one host; `trouble` says why nothing could be done there."""

    host: str
    undone: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Doing:
    """What is being done on a host; the name is empty for what is between the hosts."""

    what: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """What one host lacks in words, the command that would install it, and what BranchLab installed before.

    `by_hand`: nobody here may become root there; `unknown`: no package is known; `trouble`: why it is not known.
    """

    host: str
    needs: tuple[str, ...] = ()
    command: str = ""
    unknown: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    by_hand: bool = False
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Printed:
    """A line that a host's package manager printed."""

    host: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What came of installing or taking away on one host; `trouble` says why it went wrong."""

    host: str
    texts: tuple[str, ...] = ()
    trouble: str = ""


TRIES = 3
"""So often a person may type a password for one host; each wrong one is told."""


def _machines(lab: Lab, *, passwords: Passwords, agreed: frozenset[str]) -> Testbed:
    from lab import store
    from lab.machines import Machines

    return Machines(lab, store.data_folder() / "vcs", passwords=passwords, agreed=agreed)


def _look(lab: Lab, experiment: Experiment, passwords: Passwords) -> tuple[Question, ...]:
    from lab import machines, store

    return machines.look(lab, experiment, store.data_folder() / "vcs", passwords)


def _sign_in(host: Host, passwords: Passwords) -> None:
    from lab.rig import hosts

    hosts.signed_in(host, passwords)


def _enter(lab: Lab, experiment: Experiment, passwords: Passwords) -> None:
    from lab import machines, store

    machines.signed_in(lab, experiment, passwords, store.data_folder() / "vcs")


def _revert(lab: Lab, passwords: Passwords) -> Mapping[str, Sequence[str]]:
    from lab import machines

    return machines.revert(lab, passwords=passwords)


def _check(
    lab: Lab,
    experiment: Experiment | None,
    passwords: Passwords,
    stop: Stop,
    say: Callable[[str], None],
) -> Sequence[Checked]:
    from lab import machines, store

    return machines.check(lab, experiment, passwords, store.data_folder() / "vcs", stop, say)


def _meet(host: Host, passwords: Passwords, stop: Stop, say: Callable[[Step], None]) -> Met | None:
    from lab.rig import meeting

    return meeting.meet(host, passwords, stop, say)


def _lacking(lab: Lab, host: str, passwords: Passwords) -> Missing:
    from lab.rig import provisioning

    (found,) = provisioning.look(lab, passwords, only=(host,))
    return found


def _install(
    lab: Lab, host: str, stop: Stop, say: Callable[[str, str], None], passwords: Passwords
) -> Sequence[str]:
    from lab.rig import provisioning

    return provisioning.provision(lab, stop, say, passwords, only=(host,))[host]


def _uninstall(
    lab: Lab, host: str, stop: Stop, say: Callable[[str, str], None], passwords: Passwords
) -> Sequence[str]:
    from lab.rig import provisioning

    return provisioning.unprovision(lab, stop, say, passwords, only=(host,))[host]


def _hands(lab: Lab, experiment: Experiment | None, passwords: Passwords) -> Hands:
    from lab import hands, store

    return hands.Hands(lab, experiment, store.data_folder() / "vcs", passwords=passwords)


def _own(lab: Lab) -> bool:
    from lab import machines

    return machines.own(lab)


@dataclass(slots=True)
class Doors:
    """The ways out of the window. `testbed` makes the hosts of a lab; `own` says whether BranchLab made them.

    `person` answers questions amid work; `held` are labs that must be closed at the end; `recording` is the
    file of the newest run. `looking`, `signing`, `entering`, `reverting`, `checking`, `meeting`, `lacking`,
    `installing`, `uninstalling` and `handing` do what `lab.machines` and `lab.rig` do.
    """

    testbed: Callable[..., Testbed] = _machines
    own: Callable[[Lab], bool] = _own
    looking: Callable[[Lab, Experiment, Passwords], Sequence[Question]] = _look
    signing: Callable[[Host, Passwords], None] = _sign_in
    entering: Callable[[Lab, Experiment, Passwords], None] = _enter
    reverting: Callable[[Lab, Passwords], Mapping[str, Sequence[str]]] = _revert
    checking: Callable[..., Sequence[Checked]] = _check
    meeting: Callable[..., Met | None] = _meet
    lacking: Callable[[Lab, str, Passwords], Missing] = _lacking
    installing: Callable[..., Sequence[str]] = _install
    uninstalling: Callable[..., Sequence[str]] = _uninstall
    handing: Callable[[Lab, Experiment | None, Passwords], Hands] = _hands
    person: Somebody | None = None
    held: list[Embedded] = field(default_factory=list)
    recording: Path | None = None
    _bed: Testbed | None = None
    _passwords: Passwords | None = None

    def passwords(self) -> Passwords:
        """Those of this window, kept in memory for as long as it is there; whoever is `person` now is asked."""
        from lab.credentials import Passwords

        if self._passwords is None:
            self._passwords = Passwords(self._ask, self._accept)
        return self._passwords

    def _ask(self, question: str) -> str | None:
        return self.person.password(question) if self.person is not None else None

    def _accept(self, offered: Offered) -> bool:
        return self.person is not None and self.person.trusts(offered)

    def hands(self, lab: Lab, experiment: Experiment | None) -> Hands:
        """To change a lab by hand; passwords are asked for before, in the thread that calls this."""
        passwords = self.passwords()
        for host in lab.hosts:
            self._signed_in(host, passwords)
        if experiment is not None and (experiment.user or any(host.user for host in lab.hosts)):
            self._tried(partial(self.entering, lab, experiment, passwords))
        return self.handing(lab, experiment, passwords)

    def look(self, lab: Lab, experiment: Experiment) -> Iterator[tuple[Question, ...]]:
        """What a person must agree to before this run; passwords are asked for on the way. Changes nothing."""
        passwords = self.passwords()
        for host in lab.hosts:
            self._signed_in(host, passwords)
        if experiment.user or any(host.user for host in lab.hosts):
            self._tried(lambda: self.entering(lab, experiment, passwords))
        yield tuple(self.looking(lab, experiment, passwords))

    def _signed_in(self, host: Host, passwords: Passwords) -> None:
        """Get whatever a host asks for, and its key accepted. Raises what the last of `TRIES` raises."""
        # Hosts of this machine: their keys are in the profile, and nobody has a password.
        if host.root in ("sudo", "doas") or not host.ssh.startswith("unix:"):
            self._tried(lambda: self.signing(host, passwords))

    def _tried(self, enter: Callable[[], None]) -> None:
        from lab.agents import PasswordRefused
        from lab.rig.entry import RepositoryPasswordRefused
        from lab.ssh.login import LoginPasswordRefused, TookTooLong

        for attempt in range(TRIES):
            try:
                enter()
                self._remember()
                break
            except (PasswordRefused, LoginPasswordRefused, RepositoryPasswordRefused, TookTooLong) as error:
                if attempt == TRIES - 1 or self.person is None:
                    raise
                self.person.notice = f"{error}. This is try {attempt + 2} of {TRIES}."

    def _remember(self) -> None:
        """Put what the person wanted remembered, and was right, into the keyring; say so where it is not taken."""
        passwords = self.passwords()
        for one in passwords.taken():
            if one.wished and not passwords.remember(one.target, one.kind) and self.person is not None:
                self.person.not_remembered(one.what)

    def forget_passwords(self) -> Iterator[tuple[str, ...] | None]:
        """Take out of the keyring what BranchLab put there: the names of it, None where no keyring answers."""
        from lab import credentials

        yield credentials.forget()

    def check(
        self,
        lab: Lab,
        experiment: Experiment | None,
        stop: Stop,
        say: Callable[[Doing], None],
    ) -> Iterator[tuple[Checked, ...]]:
        """What a run would need on every host, looked at. Passwords are asked for before, and then no more.

        `say` is told what is being done, and on which host.
        """
        passwords = self.passwords()
        for host in lab.hosts:
            stop.check()
            say(Doing("Signing in on", host.name))
            # What is wrong with a host the check meets again, and knows what it means.
            with suppress(LabError):
                self._signed_in(host, passwords)
        stop.check()
        if experiment is not None and (experiment.user or any(host.user for host in lab.hosts)):
            with suppress(LabError):
                self._tried(partial(self.entering, lab, experiment, passwords))
        stop.check()
        self.person = None
        yield tuple(
            self.checking(lab, experiment, passwords, stop, lambda name: say(Doing("Checking", name)))
        )

    def meet(
        self, host: Host, stop: Stop, say: Callable[[Step], None], person: Somebody | None
    ) -> Iterator[Met | None]:
        """A host met for the first time, step by step; `person` is asked for what only a person can give."""
        self.person = person
        try:
            yield self.meeting(host, self.passwords(), stop, say)
        except Stopped:
            return

    def revert(self, lab: Lab) -> Iterator[str | TakenBack]:
        """Take back what any run left, host by host: the host's name before, what came of it after."""
        passwords = self.passwords()
        for host in lab.hosts:
            yield host.name
            try:
                self._signed_in(host, passwords)
                alone = replace(lab, hosts=(host,))
                undone = self.reverting(alone, passwords).get(host.name, ())
            except (HostTrouble, AgentRefused) as error:
                yield TakenBack(host=host.name, trouble=_alone(error, host.name))
            else:
                yield TakenBack(host=host.name, undone=tuple(undone))

    def packages(self, lab: Lab, stop: Stop) -> Iterator[Doing | tuple[Lacking, ...]]:
        """What each host lacks and what was installed there before: host by host, then all. Changes nothing."""
        passwords = self.passwords()
        found = []
        for host in lab.hosts:
            stop.check()
            yield Doing("Looking at", host.name)
            try:
                self._signed_in(host, passwords)
                found.append(_in_words(self.lacking(lab, host.name, passwords)))
            except (HostTrouble, AgentRefused) as error:
                found.append(Lacking(host=host.name, trouble=_alone(error, host.name)))
        stop.check()
        yield tuple(found)

    def provision(
        self,
        lab: Lab,
        hosts: Iterable[str],
        stop: Stop,
        say: Callable[[Printed], None],
        *,
        remove: bool = False,
    ) -> Iterator[Doing | Came]:
        """Install what these hosts lack, or take away what was; what went wrong on one keeps no other from it.

        `say` is told of what the package managers print. Once `stop` is requested no further host is begun.
        """
        passwords = self.passwords()
        work = self.uninstalling if remove else self.installing
        for name in hosts:
            if stop.requested:
                return
            yield Doing("Taking away on" if remove else "Installing on", name)
            try:
                texts = work(lab, name, stop, lambda host, text: say(Printed(host, text)), passwords)
            except Stopped:
                return
            except (HostTrouble, AgentRefused) as error:
                yield Came(host=name, trouble=_alone(error, name))
            else:
                yield Came(host=name, texts=tuple(texts))

    def profile(self, path: Path) -> Iterator[OpenedProfile]:
        """Read and check a profile. Raises BadInput that names every problem where it is wrong."""
        from lab import profile
        from lab.draft import Draft

        draft = Draft.opened(path, keep_in=self.drafts())
        found = draft.profile if draft.profile is not None else profile.load(path)
        yield OpenedProfile(draft, found, planned(found))

    def drafted(self, draft: Draft) -> Iterator[OpenedProfile]:
        """A draft that is here already. Raises BadInput that names every problem where it was never right."""
        if draft.profile is None:
            name = str(draft.path or "this profile")
            raise BadInput("\n".join(problem.told(name) for problem in draft.problems))
        yield OpenedProfile(draft, draft.profile, planned(draft.profile))

    def drafts(self) -> Path:
        """The folder where what was not saved is kept for a crash."""
        from lab import store

        return store.data_folder() / "drafts"

    def passing(self, path: Path) -> bool:
        """True for the profile of hosts that this window made: it ends with them."""
        return any(made.profile_path == path for made in self.held)

    def hosts(self) -> Iterator[OpenedProfile]:
        """Make hosts on this machine, which end with this process; their profile."""
        from lab import embedded

        made = embedded.up(tied=True)
        self.held.append(made)
        yield from self.profile(made.profile_path)

    def run(
        self,
        lab: Lab,
        experiment: Experiment,
        stop: Stop,
        path: Path | None,
        agreed: frozenset[str] = frozenset(),
    ) -> Iterator[Event]:
        """A run, each event recorded before it is told. The path is chosen where none is given."""
        from lab import runner, store

        self._bed = self.testbed(lab, passwords=self.passwords(), agreed=agreed)
        told = runner.run(experiment, self._bed, stop, lab_name=lab.name)
        self.recording = path or store.new_path(experiment.name)
        yield from store.recorded(told, self.recording)

    def repeat(
        self, lab: Lab, experiment: Experiment, stop: Stop, path: Path, agreed: frozenset[str] = frozenset()
    ) -> Iterator[Event]:
        """What the run in this file told, then, added to it, what is done again. Raises BadInput where it cannot be."""
        from lab import repeats, runner, store

        with store.opened(path) as record:
            told = [event for event in record.events(samples=False) if not isinstance(event, OutputSeen)]
        known = repeats.told(told)
        repeats.refuse_others(known, lab, experiment)
        self.recording = path
        yield from told
        self._bed = self.testbed(lab, passwords=self.passwords(), agreed=agreed)
        yield from store.continued(runner.repeat(known, self._bed, stop), path)

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

    def remembered(self) -> Iterator[tuple[Recent, ...]]:
        """The profiles that were opened here, newest first."""
        from lab import recent

        yield recent.profiles()

    def published(self, name: str) -> Iterator[Summary | Pairs]:
        """Published figures: those of a test like ours as a run's answers, others before and after."""
        from lab.analysis import before_after, published

        yield before_after.pairs(name) if name in before_after.names() else published.summary(name)

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


def planned(profile: Profile) -> dict[str, int]:
    """How many trials each experiment of a profile plans, by its name."""
    from lab import design

    return {experiment.name: design.size(experiment).trials for experiment in profile.experiments}


def _in_words(missing: Missing) -> Lacking:
    from lab.rig.host_checks import NAMES

    named = {need: NAMES.get(need, need) for need in missing.needs}
    unknown = missing.needs if missing.manager is None else missing.unknown
    return Lacking(
        host=missing.host,
        needs=tuple(named.values()),
        command=" && ".join(shlex.join(argv) for argv in missing.commands),
        unknown=tuple(named.get(need, need) for need in unknown),
        ours=missing.ours,
        by_hand=missing.by_hand,
    )


def _alone(error: HostTrouble | AgentRefused, host: str) -> str:
    """What went wrong on one host, and what to do, without the host's name and a remark on others."""
    told = (str(error) if isinstance(error, HostTrouble) else error.told()).partition("\nother hosts:")[0]
    lines = [line.strip() for line in told.removeprefix(f"{host}:").splitlines()]
    if error.advice and f"what to do: {error.advice}" not in lines:
        lines.append(f"what to do: {error.advice}")
    return "; ".join(line for line in lines if line)


def _refuse_nonsense(event: Event) -> None:
    """Raise ValueError for a number that nothing could have measured."""
    for name in (entry.name for entry in fields(event)):
        value = getattr(event, name)
        if isinstance(value, float) and (not math.isfinite(value) or (name.endswith("_s") and value < 0)):
            raise ValueError(f"{event.kind} says {name} = {value}")
