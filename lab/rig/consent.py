"""What a person agreed to, kept to: the line and the cache are had only as far as it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lab import asking
from lab.model import Line, Role
from lab.rig import looking, peers
from lab.rig.fullness import Fullness, Ours
from lab.rig.hosts import Connected, only
from lab.rig.line import HeldLine, Standing
from lab.rig.peers import Seen
from lab.rig.workplace import Workplace
from lab.stop import Stop


@dataclass(slots=True)
class Consent:
    """What may be done to other people's work: kinds of `lab.asking.KINDS`, of what `looking.look` found last.

    `everything`: in a lab that BranchLab made itself, where nobody else works. `command` is the one that is told
    to whom nothing was agreed.
    """

    agreed: frozenset[str] = frozenset()
    everything: bool = False
    command: str = "run"
    ours: Ours = field(init=False)
    """objects of the cache that may be taken out; it outlives a lost connection"""

    def __post_init__(self) -> None:
        self.agreed = frozenset(asking.KINDS) if self.everything else self.agreed
        self.ours = Ours(everything=self.everything)

    def line(
        self, hosts: Sequence[Connected], place: str, lines: Sequence[Line], stop: Stop
    ) -> tuple[HeldLine, tuple[Seen, ...]]:
        """The line, which may replace the queues that were shown, and no others; and how hosts see each other.

        Raises Declined where others stand now, HostLacks where one of `lines` cannot be made.
        """
        line = HeldLine(hosts, replace="qdisc" in self.agreed, place=place)
        if _felt(lines):
            standing = [one for one in line.standing(stop) if one.replaceable]
            self._refuse(looking.queues(standing), self.agreed)
            self._bind(line, standing)
        line.refuse(lines, stop)
        seen = peers.look(hosts, stop)
        peers.refuse(seen, hosts, line.place)
        return line, seen

    def others(
        self,
        line: HeldLine,
        hosts: Sequence[Connected],
        lines: Sequence[Line],
        own: Sequence[int],
        stop: Stop,
    ) -> None:
        """Raise Declined where others have connections that would feel the line; `own` are ports of our services."""
        if _felt(lines):
            self._refuse(looking.connections(line, line.others(hosts, stop, own)), self.agreed)

    def _bind(self, line: HeldLine, standing: Sequence[Standing]) -> None:
        if not self.everything:
            self._refuse(looking.queues(looking.not_shown(line, standing)), self.agreed - {"qdisc"})
            line.bind(standing)

    def fullness(
        self,
        hosts: Sequence[Connected],
        workplace: Workplace,
        fill: Callable[[str, Stop], None],
        stop: Stop,
        noted: Callable[[str, Stop], frozenset[str]] | None = None,
    ) -> Fullness:
        """The cache's fullness. Raises Declined where objects that are there now would have to go."""
        proxy, ours = only(hosts, Role.PROXY), self.ours
        if proxy.host.cache is None:
            raise AssertionError("the profile was accepted without the proxy's cache")
        fullness = Fullness(proxy, proxy.host.cache, workplace.origin, fill, ours=ours, noted=noted)
        if "purge" in self.agreed:
            ours.keys |= looking.shown(fullness)
        if noted is None and looking.fills_alone(proxy.host):  # it is not started yet: earlier runs did it
            ours.keys |= set(looking.unasked(fullness, proxy, stop).keys)
        if not ours.everything:
            # Who agreed, agreed to what was shown: what came since then is asked about as if nobody had.
            found = looking.unasked(fullness, proxy, stop)
            self._refuse(looking.purge(fullness, proxy, found), self.agreed - {"purge"})
        ours.passing |= {workplace.passing} - {""}
        return fullness

    def _refuse(self, questions: Sequence[asking.Question], agreed: frozenset[str]) -> None:
        asking.refuse_unanswered(questions, agreed, self.command)


def _felt(lines: Sequence[Line]) -> bool:
    """True if others would feel one of these lines."""
    return any(line.limited or line.delayed for line in lines)
