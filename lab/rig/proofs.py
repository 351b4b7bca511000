"""What a trial must prove about itself before its time may enter a median."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab import units
from lab.events import Proof
from lab.model import TrafficClass, Trial
from lab.rig import together
from lab.rig.fullness import Found
from lab.rig.logs import Logs
from lab.rig.meter import Reading
from lab.rig.readback import Readback
from lab.rig.together import Part

SERVED_SHARE = 0.02
"""Without an access log, the proxy served only what exceeds this share of what it sent: heads differ a little."""
HEADERS = 52
"""Bytes of a packet's headers: IPv4 and TCP with time stamps. (20 more with IPv6.)"""

CONTENT_SHARE = 0.02
"""Past the proxy, a Get moves at least this share of the different contents that it fetches, well compressed too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that was seen of one trial."""

    trial: Trial
    traffic_class: TrafficClass
    line_before: Readback
    line_after: Readback
    lease_alive: bool
    found: Found | None
    listed: int
    moved: Reading
    logs: Logs
    unquiet: str
    exit_ok: bool
    told: Mapping[str, Any]
    limit_s: float
    content_bytes: int = 0
    """of a Get: the different contents that it fetches, uncompressed; 0 if that is not known"""
    parts: tuple[Part, ...] = ()
    """of several clients what each did; empty of one"""

    @property
    def clients(self) -> int:
        """How many took part."""
        return max(1, len(self.parts))

    def served_bytes(self) -> int | None:
        """Content that the proxy sent without fetching it: from its log, or else by counters. None if neither is.

        By counters it is told only of an operation that a cache can serve: of any other they show no more than how
        differently the same was packed.
        """
        if self.logs.proxy is not None:
            return self.logs.proxy.hit_bytes
        out, into = self._payload("proxy>client"), self._payload("server>proxy")
        if out is None or into is None:
            return None
        served = self.traffic_class is TrafficClass.CACHEABLE and out - into > SERVED_SHARE * out
        return out - into if served else 0

    def _payload(self, pair: str) -> int | None:
        arrived = self.moved.arrived.get(pair)
        return None if arrived is None else arrived - HEADERS * self.moved.packets.get(pair, 0)

    def relayed_bytes(self) -> int | None:
        """Content that the proxy sent and had to fetch. None if that was not counted."""
        if self.logs.proxy is not None:
            return self.logs.proxy.miss_bytes + self.logs.proxy.other_bytes
        out, into = (self.moved.arrived.get(pair) for pair in ("proxy>client", "server>proxy"))
        return None if out is None or into is None else min(out, into)

    def direct_bytes(self) -> int | None:
        """What client and server exchanged past the proxy, as IP bytes both ways. None if that was not counted."""
        return self._both("client>server", "server>client")

    def _both(self, one: str, other: str) -> int | None:
        there, back = self.moved.arrived.get(one), self.moved.arrived.get(other)
        return None if there is None or back is None else there + back

    def through_bytes(self) -> int | None:
        """What client and proxy exchanged, as far as it was counted; None if neither way was."""
        known = [
            count
            for pair in ("client>proxy", "proxy>client")
            if (count := self.moved.arrived.get(pair)) is not None
        ]
        return sum(known) if known else None


def proofs(evidence: Evidence) -> tuple[Proof, ...]:
    """Each thing proven or not, in the order in which a person would ask; what nobody could look at is left out."""
    given: list[Proof | None] = [_exit(evidence), _line(evidence)]
    if evidence.trial.treatment.state.enabled:
        given.append(_cache(evidence))
    given += [_path(evidence), _counters(evidence), _quiet(evidence), _together(evidence)]
    return tuple(proof for proof in given if proof is not None)


def _exit(evidence: Evidence) -> Proof:
    if len(evidence.parts) > 1:
        wrong = [
            f"{part.host}: {_ended(part.word, evidence.limit_s)}" for part in evidence.parts if not part.ok
        ]
        fine = f"exit status {evidence.told['exit']} on {len(evidence.parts)} clients"
        return Proof(name="exit", ok=not wrong, text="; ".join(wrong) or fine)
    if not evidence.exit_ok:
        return Proof(name="exit", ok=False, text=_ended(evidence.told, evidence.limit_s))
    return Proof(name="exit", ok=True, text=f"exit status {evidence.told['exit']}")


def _ended(told: Mapping[str, Any], limit_s: float) -> str:
    """How a command ended that failed."""
    if told["timed_out"]:
        return f"not finished within {units.duration(limit_s)}"
    if told["signal"]:
        return f"the command was ended by signal {told['signal']}"
    last = [line for line in str(told["tail"]).splitlines() if line.strip()][-1:]
    return ": ".join([f"exit status {told['exit']}", *last])


def _together(evidence: Evidence) -> Proof | None:
    """That several clients did it at the same moment, as far as their clocks can be compared."""
    if len(evidence.parts) < 2:
        return None
    spread, error = together.spread_s(evidence.parts)
    text = f"{len(evidence.parts)} clients began within {1000 * spread:.1f} ms (± {1000 * error:.1f} ms)"
    return Proof(name="together", ok=spread - error <= together.SPREAD_S, text=text)


def _line(evidence: Evidence) -> Proof:
    line = evidence.trial.treatment.line
    name = units.line_text(line)
    for when, read in (("before", evidence.line_before), ("after", evidence.line_after)):
        if not read.matches(line):
            return Proof(
                name="line", ok=False, text=f"the line read back {when} the trial was not {name}: {read}"
            )
    if not evidence.lease_alive:
        return Proof(name="line", ok=False, text="a lease was not renewed in time")
    return Proof(name="line", ok=True, text=f"line read back: {name}")


def _cache(evidence: Evidence) -> Proof:
    state, found = evidence.trial.treatment.state, evidence.found
    if found is None:
        return Proof(name="cache", ok=False, text="the cache was not measured")
    text = f"cache found: {found.full:.1f} % ({found.objects:,} of {evidence.listed:,} objects)"
    return Proof(name="cache", ok=found.holds(state, evidence.listed), text=text)


def _path(evidence: Evidence) -> Proof | None:
    if not evidence.trial.treatment.state.enabled:
        through = evidence.through_bytes()
        if through is None:
            return None
        if through:
            return Proof(
                name="path", ok=False, text=f"the proxy was used ({through:,} bytes) though it was disabled"
            )
        if trouble := _elsewhere(evidence):
            return Proof(name="path", ok=False, text=trouble)
        return Proof(name="path", ok=True, text="past the proxy")
    if evidence.traffic_class is TrafficClass.LOCAL:
        return Proof(name="path", ok=True, text="needs no other host")
    served, relayed = evidence.served_bytes(), evidence.relayed_bytes()
    if not evidence.exit_ok:
        return Proof(name="path", ok=False, text="not known: the command did not get to its end")
    if served is None or relayed is None:
        return None
    if evidence.traffic_class is TrafficClass.CACHEABLE and not served and not relayed:
        return Proof(name="path", ok=False, text="bypassed: the proxy neither served nor fetched anything")
    if evidence.traffic_class is TrafficClass.CACHEABLE and (around := _around(evidence)):
        text = f"bypassed by {', '.join(around)}: nothing came from the proxy there"
        return Proof(name="path", ok=False, text=text)
    if evidence.traffic_class is TrafficClass.CACHEABLE and (trouble := _objects_trouble(evidence)):
        return Proof(name="path", ok=False, text=trouble)
    return Proof(name="path", ok=True, text=f"proxy in use: {served:,} bytes served, {relayed:,} relayed")


def _around(evidence: Evidence) -> list[str]:
    """Of several clients those to which nothing came from the proxy, as far as that was counted."""
    moved = {part.host: evidence.moved.each.get(part.host, {}).get("proxy>client") for part in evidence.parts}
    return [host for host, count in moved.items() if count == 0]


def _elsewhere(evidence: Evidence) -> str:
    """Why what was fetched cannot have come from the server; empty if it can, or if that was not counted."""
    content = evidence.content_bytes
    if evidence.traffic_class is not TrafficClass.CACHEABLE or not evidence.exit_ok:
        return ""
    for name, moved in _directly(evidence).items():
        if moved is not None and moved < CONTENT_SHARE * content:
            return (
                f"{name} and server exchanged {moved:,} bytes, and what was fetched holds {content:,}: "
                "it came from another host"
            )
    return ""


def _directly(evidence: Evidence) -> dict[str, int | None]:
    """What each client exchanged with the server, by its name (if there are several)."""
    if len(evidence.parts) < 2:
        return {"client": evidence.direct_bytes()}
    found: dict[str, int | None] = {}
    for part in evidence.parts:
        pairs = evidence.moved.each.get(part.host, {})
        there, back = pairs.get("client>server"), pairs.get("server>client")
        found[part.host] = None if there is None or back is None else there + back
    return found


def _objects_trouble(evidence: Evidence) -> str:
    """Why the objects asked for are not those of the list; empty if they are, or if no log tells."""
    log, found, listed = evidence.logs.proxy, evidence.found, evidence.listed
    if log is None or found is None:
        return ""
    each = f" on each of {evidence.clients} clients" if evidence.clients > 1 else ""
    if log.hits + log.misses < listed * evidence.clients:
        return (
            f"the operation asked for {log.hits + log.misses:,} of the {listed:,} objects that it needs{each}"
        )
    # What was not there is fetched at least once; only then can it be served, to another client.
    if log.misses < listed - found.objects:
        if evidence.clients > 1:
            missing = listed - found.objects
            return f"the cache fetched {log.misses:,} objects, and {missing:,} were not in it before"
        return f"the cache served {log.hits:,} objects, and {found.objects:,} were found in it before"
    return ""


def _counters(evidence: Evidence) -> Proof | None:
    if any(count < 0 for count in (*evidence.moved.arrived.values(), *evidence.moved.sent.values())):
        return Proof(name="counters", ok=False, text="a byte counter ran backwards")
    if not evidence.moved.arrived:
        return None
    return Proof(name="counters", ok=True, text="bytes counted per pair")


def _quiet(evidence: Evidence) -> Proof:
    if evidence.unquiet:
        return Proof(name="quiet", ok=False, text=f"not quiet: {evidence.unquiet}")
    return Proof(name="quiet", ok=True, text="quiet before and after")
