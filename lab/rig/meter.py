"""The meters: bytes per pair of roles, counted on every host as they arrive, summed over a role's hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lab.agents import Conversation
from lab.model import PAIRS
from lab.rig.hosts import Connected, everywhere
from lab.stop import Stop

Counters = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Host -> peer -> in_bytes, in_packets, out_bytes, out_packets."""

SAMPLE_S = 0.1
"""Seconds between two live samples of a host."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes since the counters were made, by pair: as they arrived, and as they were sent."""

    arrived: Mapping[str, int]
    sent: Mapping[str, int]

    def since(self, before: Reading) -> Reading:
        """What came between two readings."""
        return Reading(
            {pair: self.arrived[pair] - before.arrived[pair] for pair in PAIRS},
            {pair: self.sent[pair] - before.sent[pair] for pair in PAIRS},
        )


class Meter:
    """Counts on every host between the hosts of the lab, its own SSH connections excepted."""

    def __init__(self, hosts: Sequence[Connected]) -> None:
        self._hosts = [one for one in hosts if one.root is not None]
        self._roles = {one.name: one.host.role.value for one in hosts}
        self._everyone = hosts

    def start(self, stop: Stop) -> None:
        """Make the counters, under each host's lease."""
        exempt = [entry for one in self._everyone for entry in one.exempt()]
        everywhere(
            (
                (
                    one,
                    one.privileged,
                    "traffic.start",
                    {
                        "peers": [
                            {"name": peer.name, "addresses": peer.addresses}
                            for peer in self._everyone
                            if peer is not one
                        ],
                        "exempt": exempt,
                    },
                )
                for one in self._hosts
            ),
            stop,
        )

    def read(self, stop: Stop) -> Reading:
        """The exact counters now. Raises AgentRefused (kind "touched") if somebody took them away."""
        words = everywhere(((one, one.privileged, "traffic.read", {}) for one in self._hosts), stop)
        return self.summed({name: word["counters"] for name, word in words.items()})

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

    def summed(self, counters: Counters) -> Reading:
        """Counters of all hosts as bytes per pair of roles. A host that does not count is not in them."""
        arrived = dict.fromkeys(PAIRS, 0)
        sent = dict.fromkeys(PAIRS, 0)
        for name, peers in counters.items():
            here = self._roles[name]
            for peer, count in peers.items():
                there = self._roles[peer]
                if (pair := f"{there}>{here}") in arrived:
                    arrived[pair] += count["in_bytes"]
                if (pair := f"{here}>{there}") in sent:
                    sent[pair] += count["out_bytes"]
        return Reading(arrived, sent)


class LiveCounters:
    """The newest sample of every host, as bytes per pair since a baseline."""

    def __init__(self, meter: Meter, baseline: Reading) -> None:
        self._meter = meter
        self._baseline = baseline
        self._latest: dict[str, dict[str, dict[str, int]]] = {}

    def take(self, host: str, data: dict[str, Any]) -> None:
        """One host's sample."""
        self._latest[host] = data["counters"]

    def bytes(self) -> dict[str, int]:
        """Arrived bytes since the baseline; a host not yet heard counts nothing."""
        now = self._meter.summed(self._latest)
        return {pair: max(0, now.arrived[pair] - self._baseline.arrived[pair]) for pair in PAIRS}
