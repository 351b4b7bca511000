"""The meters: bytes per pair of roles, counted where they arrive or pass, summed over a role's hosts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lab.agents import Conversation
from lab.model import PAIRS, Role
from lab.rig.hosts import Connected, everywhere, in_role
from lab.stop import Stop

Counters = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Host -> peer -> in_bytes, in_packets, out_bytes, out_packets."""

SAMPLE_S = 0.1
"""Seconds between two live samples of a host."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes since the counters were made, by pair: as they arrived, and as they were sent.

    A pair that nobody could count is not in it.
    """

    arrived: Mapping[str, int]
    sent: Mapping[str, int]
    packets: Mapping[str, int] = field(default_factory=dict, compare=False)
    """packets that arrived"""
    each: Mapping[str, Mapping[str, int]] = field(default_factory=dict, compare=False)
    """of `arrived` what each client had to do with, by its name and pair"""

    def since(self, before: Reading) -> Reading:
        """What came between two readings of the same meter."""
        return Reading(
            {pair: count - before.arrived[pair] for pair, count in self.arrived.items()},
            {pair: count - before.sent[pair] for pair, count in self.sent.items()},
            {pair: count - before.packets.get(pair, 0) for pair, count in self.packets.items()},
            {
                name: {pair: count - before.each.get(name, {}).get(pair, 0) for pair, count in pairs.items()}
                for name, pairs in self.each.items()
            },
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where what one host sends to another is counted: as it arrives, as it leaves, or as a router passes it on."""

    where: str
    """in, out, passed"""
    sender: str
    receiver: str

    def count(self, what: str, counters: Counters, passed: Counters) -> int:
        """Bytes or packets (`what`); 0 while that host was not heard."""
        if self.where == "passed":
            return passed.get(self.sender, {}).get(self.receiver, {}).get(what, 0)
        at, peer = (self.receiver, self.sender) if self.where == "in" else (self.sender, self.receiver)
        return counters.get(at, {}).get(peer, {}).get(f"{self.where}_{what}", 0)


class Meter:
    """Counts between the hosts of the lab, its own SSH connections excepted: where bytes arrive, if that host can.

    Else on a router, if they pass one. `hidden` are hosts whose addresses the server does not see (they are
    behind NAT): what they send to it is counted as it leaves them, before the line.
    """

    def __init__(self, hosts: Sequence[Connected], hidden: Collection[str] = ()) -> None:
        self._hosts = [one for one in hosts if counts(one)]
        self._everyone = hosts
        self._hidden = hidden
        able = {one.name for one in self._hosts}
        self._router = next((one for one in self._hosts if one.host.role is Role.ROUTER), None)
        self._arrived = self._planned(lambda one, other: self._arriving(one, other, able))
        self._sent = self._planned(lambda one, other: self._leaving(one, other, able))

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The pairs of which nobody can count what arrives."""
        return tuple(pair for pair in PAIRS if pair not in self._arrived)

    @property
    def as_sent(self) -> tuple[str, ...]:
        """The pairs of which only what was sent is known, what the line then dropped included."""
        return tuple(
            pair for pair, places in self._arrived.items() if any(one.where == "out" for one in places)
        )

    def notes(self) -> Iterator[str]:
        """What a person has to know of these figures, in sentences; nothing where all is counted as it arrives."""
        if self.uncounted:
            yield f"{_told(self.uncounted)}: nobody can count these bytes, so they are missing from the results"
        if self.as_sent:
            yield (
                f"{_told(self.as_sent)}: counted where it is sent, since the server sees another address (NAT); "
                "what the line drops is counted too"
            )

    @property
    def lead(self) -> str:
        """The host whose samples set the pace of what is shown: the first client, if it counts."""
        first = sorted(self._hosts, key=lambda one: one.host.role is not Role.CLIENT)
        return first[0].name if first else ""

    def start(self, stop: Stop) -> None:
        """Make the counters, under each host's lease."""
        exempt = [entry for one in self._everyone for entry in one.exempt()]
        everywhere(
            (
                (one, one.privileged, "traffic.start", {**self._counted_on(one), "exempt": exempt})
                for one in self._hosts
            ),
            stop,
        )

    def _counted_on(self, one: Connected) -> dict[str, Any]:
        if one is self._router:
            near = [*in_role(self._everyone, Role.CLIENT), *in_role(self._everyone, Role.PROXY)]
            return {"near": _peers(near), "far": _peers(in_role(self._everyone, Role.SERVER))}
        return {"peers": _peers(peer for peer in self._everyone if peer is not one)}

    def read(self, stop: Stop) -> Reading:
        """The exact counters now. Raises AgentRefused (kind "touched") if somebody took them away."""
        words = everywhere(((one, one.privileged, "traffic.read", {}) for one in self._hosts), stop)
        return self.read_of(words)

    def read_of(self, words: Mapping[str, Mapping[str, Any]]) -> Reading:
        """What hosts said of their counters, by host, as bytes per pair of roles."""
        passed = words.get(self._router.name, {}).get("passed", {}) if self._router else {}
        return self.summed({name: word["counters"] for name, word in words.items()}, passed)

    @contextmanager
    def streaming(self) -> Iterator[dict[Conversation, str]]:
        """Live samples from every host while inside: the conversations, and the host of each."""
        talks = {
            one.privileged.stream("traffic.stream", {"period_s": SAMPLE_S}): one.name for one in self._hosts
        }
        try:
            yield talks
        finally:
            for talk in talks:
                talk.cancel()

    def summed(self, counters: Counters, passed: Counters | None = None) -> Reading:
        """Counters of all hosts, and what a router `passed` on by sender and receiver, as bytes per pair of roles."""
        arrived, sent, packets = (
            {
                pair: sum(one.count(what, counters, passed or {}) for one in there)
                for pair, there in plan.items()
            }
            for plan, what in ((self._arrived, "bytes"), (self._sent, "bytes"), (self._arrived, "packets"))
        )
        each: dict[str, dict[str, int]] = {one.name: {} for one in in_role(self._everyone, Role.CLIENT)}
        for pair, places in self._arrived.items():
            for place in places:
                for name in {place.sender, place.receiver} & each.keys():
                    known = each[name].get(pair, 0)
                    each[name][pair] = known + place.count("bytes", counters, passed or {})
        return Reading(arrived, sent, packets, each)

    def _planned(self, place: Callable[[Connected, Connected], _Place | None]) -> dict[str, list[_Place]]:
        """Where each pair's bytes are counted; without those pairs of which a part could not be."""
        plan: dict[str, list[_Place]] = {}
        for pair in PAIRS:
            senders, receivers = (in_role(self._everyone, Role(role)) for role in pair.split(">"))
            places = [place(one, other) for one in senders for other in receivers]
            known = [one for one in places if one is not None]
            if len(known) == len(places):
                plan[pair] = known
        return plan

    def _arriving(self, one: Connected, other: Connected, able: Collection[str]) -> _Place | None:
        hidden = other.host.role is Role.SERVER and one.name in self._hidden
        if other.name in able and one.addresses and not hidden:
            return _Place("in", one.name, other.name)
        passes = Role.SERVER in (one.host.role, other.host.role)
        if self._router is not None and passes and one.addresses and other.addresses:
            return _Place("passed", one.name, other.name)
        return self._leaving(one, other, able) if hidden else None

    def _leaving(self, one: Connected, other: Connected, able: Collection[str]) -> _Place | None:
        hidden = one.host.role is Role.SERVER and other.name in self._hidden
        if one.name in able and other.addresses and not hidden:
            return _Place("out", one.name, other.name)
        return None


def _told(pairs: Sequence[str]) -> str:
    return ", ".join(pair.replace(">", " to ") for pair in pairs)


def counts(one: Connected) -> bool:
    """True if bytes can be counted on this host."""
    able = one.facts.get("counter", "unsaid") is not None
    return one.root is not None and not one.facts.get("windows") and able


def _peers(hosts: Iterable[Connected]) -> list[dict[str, Any]]:
    return [{"name": one.name, "addresses": one.addresses} for one in hosts if one.addresses]


class LiveCounters:
    """The newest sample of every host, as bytes per pair since a baseline."""

    def __init__(self, meter: Meter, baseline: Reading) -> None:
        self._meter = meter
        self._baseline = baseline
        self._latest: dict[str, dict[str, Any]] = {}

    def take(self, host: str, data: dict[str, Any]) -> None:
        """One host's sample."""
        self._latest[host] = data

    def bytes(self) -> dict[str, int]:
        """Arrived bytes since the baseline; a host not yet heard counts nothing."""
        now = self._meter.read_of(self._latest).arrived
        return {pair: max(0, count - self._baseline.arrived[pair]) for pair, count in now.items()}
