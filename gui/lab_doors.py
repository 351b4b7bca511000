"""What the window can have done with the hosts of a lab beside a run, host by host."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gui import ways
from gui.found import Came, Doing, Lacking, Printed, TakenBack
from gui.signing import Signing
from lab.errors import AgentRefused, HostTrouble, LabError, Stopped
from lab.model import Experiment, Host, Lab
from lab.stop import Stop

if TYPE_CHECKING:
    from gui.person import Somebody
    from lab.asking import Question
    from lab.credentials import Passwords
    from lab.hands import Hands
    from lab.rig.host_checks import Checked
    from lab.rig.meeting import Met, Step
    from lab.rig.provisioning import Missing


@dataclass(slots=True, kw_only=True)
class LabDoors(Signing):
    """`own` says whether BranchLab made a lab; the others do what those of `gui.ways` do."""

    own: Callable[[Lab], bool] = ways.own
    looking: Callable[[Lab, Experiment, Passwords], Sequence[Question]] = ways.look
    reverting: Callable[[Lab, Passwords], Mapping[str, Sequence[str]]] = ways.revert
    checking: Callable[..., Sequence[Checked]] = ways.check
    meeting: Callable[..., Met | None] = ways.meet
    lacking: Callable[[Lab, str, Passwords], Missing] = ways.lacking
    installing: Callable[..., Sequence[str]] = ways.install
    uninstalling: Callable[..., Sequence[str]] = ways.uninstall
    handing: Callable[[Lab, Experiment | None, Passwords], Hands] = ways.handed

    def hands(self, lab: Lab, experiment: Experiment | None) -> Hands:
        """To change a lab by hand; passwords are asked for before, in the thread that calls this."""
        self._let_in(lab, experiment)
        return self.handing(lab, experiment, self.passwords())

    def look(self, lab: Lab, experiment: Experiment) -> Iterator[tuple[Question, ...]]:
        """What a person must agree to before this run; passwords are asked for on the way. Changes nothing."""
        self._let_in(lab, experiment)
        yield tuple(self.looking(lab, experiment, self.passwords()))

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
        for host in lab.hosts:
            stop.check()
            say(Doing("Signing in on", host.name))
            # What is wrong with a host the check meets again, and knows what it means.
            with suppress(LabError):
                self.sign_in(host)
        stop.check()
        with suppress(LabError):
            self.enter(lab, experiment)
        stop.check()
        self.person = None
        yield tuple(
            self.checking(lab, experiment, self.passwords(), stop, lambda name: say(Doing("Checking", name)))
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
        for host in lab.hosts:
            yield host.name
            try:
                self.sign_in(host)
                alone = replace(lab, hosts=(host,))
                undone = self.reverting(alone, self.passwords()).get(host.name, ())
            except (HostTrouble, AgentRefused) as error:
                yield TakenBack(host=host.name, trouble=_alone(error, host.name))
            else:
                yield TakenBack(host=host.name, undone=tuple(undone))

    def packages(self, lab: Lab, stop: Stop) -> Iterator[Doing | tuple[Lacking, ...]]:
        """What each host lacks and what was installed there before: host by host, then all. Changes nothing."""
        found = []
        for host in lab.hosts:
            stop.check()
            yield Doing("Looking at", host.name)
            try:
                self.sign_in(host)
                found.append(_in_words(self.lacking(lab, host.name, self.passwords())))
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

    def _let_in(self, lab: Lab, experiment: Experiment | None) -> None:
        for host in lab.hosts:
            self.sign_in(host)
        self.enter(lab, experiment)


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
