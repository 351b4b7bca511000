"""Counts IP bytes per far host, where they arrive, leave and pass, in an nftables table of our own.

Where there is no nft, iptables counts the same in chains of our own.

Arriving packets are counted at the input hook, which is after the line's queue on the IFB; leaving ones at
the output hook, before any queue. A counter's name holds the peer's, so that the kernel alone says what is
counted: `i` or `o`, then the name's UTF-8 bytes as hex digits. What a router passes on is counted at the
forward hook, in `f`, the sender's name so written, `x`, and the receiver's.
"""

import contextlib
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from ssh_agents import given, iptables, netlink, protocol, tool

Counters = Dict[str, Dict[str, int]]
Peers = Sequence[Tuple[str, Sequence[str]]]


class Passing(NamedTuple):
    """What a router counts: packets between every one of `near` and every one of `far`."""

    near: Peers = ()
    far: Peers = ()


_NOTHING = Passing()


def start(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Begin to count, from zero, for the `peers` and past the `exempt`; replaces what was counted before.

    On a router, `near` and `far` name the hosts between which what it forwards is counted, with or without `peers`.
    """
    peers, exempt = _peers(args, "peers"), given.exempt(args)
    passing = Passing(_peers(args, "near"), _peers(args, "far"))
    if not peers and not (passing.near and passing.far):
        raise protocol.Refused("bad-request", "no peers to count for")
    if not tool.found("nft") and iptables.there():
        call.promise({"kind": "traffic", "exclusive": True, "how": "iptables"})
        iptables.begin(_by_iptables(peers, exempt, passing))
        return {"table": "mangle, by iptables"}
    text = ruleset(peers, exempt, passing)
    call.promise({"kind": "traffic", "exclusive": True})
    tool.run(["nft", "-f", "-"], text)
    return {"table": "inet " + netlink.TABLE}


def read(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """All counters now, in one look. Refuses with `touched` if nobody counts."""
    with _counting() as counters:
        return _sample(counters())


def stream(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Say all counters every `period_s`, until cancelled; the last word has them once more."""
    period_s = protocol.need(args, "period_s", float, 0.1)
    if not 0.01 <= period_s <= 3600:
        raise protocol.Refused("bad-request", "a period is 0.01 to 3600 seconds, not %r" % period_s)
    with _counting() as counters:
        due = time.monotonic()
        while not call.wait_cancelled(max(0.0, due - time.monotonic())):
            call.say("sample", _sample(counters()))
            # A sample that came late is not made up for: the next ones keep the pace.
            due = max(due + period_s, time.monotonic())
        return _sample(counters())


@contextlib.contextmanager
def _counting() -> Iterator[Callable[[], Dict[str, Tuple[int, int]]]]:
    """How this host's counters are read: over netlink, or from iptables where those rules are ours."""
    if not tool.found("nft") and iptables.there():
        yield iptables.counters
        return
    with netlink.filter_socket() as ask:
        yield lambda: netlink.counters(ask)


def how() -> str:
    """By what bytes are counted here, nftables or iptables; empty if nobody counts. Changes nothing."""
    if not tool.found("nft") and iptables.there():
        return "iptables" if any(iptables.counting(family) for family in iptables.PROGRAMS) else ""
    try:
        with netlink.filter_socket() as ask:
            return "nftables" if netlink.TABLE in netlink.tables(ask) else ""
    except OSError:  # a kernel without nftables, or no right to look
        return ""


def undo(entry: Dict[str, Any]) -> str:
    """Remove the table, or the chains of iptables, if they are there."""
    if entry.get("how") == "iptables":
        ended = [iptables.end(family) for family in iptables.PROGRAMS]  # both, whatever the first says
        return "traffic counters (iptables) removed" if any(ended) else ""
    with netlink.filter_socket() as ask:
        if netlink.TABLE not in netlink.tables(ask):
            return ""
    # Named first, so that deleting succeeds also if somebody else was quicker.
    tool.run(["nft", "-f", "-"], "table inet {0}\ndelete table inet {0}\n".format(netlink.TABLE))
    return "traffic counters (table inet %s) removed" % netlink.TABLE


def ruleset(peers: Peers, exempt: Iterable[Tuple[str, int]], passing: Passing = _NOTHING) -> str:
    """What nft reads: the whole table, in place of an earlier one, in one transaction."""
    lines = ["table inet {0}".format(netlink.TABLE), "delete table inet {0}".format(netlink.TABLE)]
    lines.append("table inet %s {" % netlink.TABLE)
    for name, _ in peers:
        lines += ["counter %s { }" % counter("i", name), "counter %s { }" % counter("o", name)]
    lines += _forwarded(passing, tuple(exempt))
    for chain, side, letter in (("input", "saddr", "i"), ("output", "daddr", "o")) if peers else ():
        lines.append("chain %s { type filter hook %s priority -310; policy accept;" % (chain, chain))
        for address, port in exempt:
            for end in ("sport", "dport"):
                lines.append("%s %s %s tcp %s %d return" % (_family(address), side, address, end, port))
        if any(":" in address for _, addresses in peers for address in addresses):
            lines += ["icmpv6 type %d return" % kind for kind in iptables.NEIGHBOURS]
        for name, addresses in peers:
            for address in addresses:
                lines.append(
                    "%s %s %s counter name %s" % (_family(address), side, address, counter(letter, name))
                )
        lines.append("}")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _ways(passing: Passing) -> List[Tuple[Tuple[str, Sequence[str]], Tuple[str, Sequence[str]]]]:
    both = [(passing.near, passing.far), (passing.far, passing.near)]
    return [(one, other) for some, others in both for one in some for other in others]


def _by_iptables(
    peers: Peers, exempt: Sequence[Tuple[str, int]], passing: Passing
) -> List[Tuple[int, iptables.Rule]]:
    ways = [
        (source, target, passed(one, other))
        for (one, sources), (other, targets) in _ways(passing)
        for source in sources
        for target in targets
        if _family(source) == _family(target)
    ]
    named = {name: (counter("i", name), counter("o", name)) for name, _ in peers}
    return iptables.rules(peers, exempt, ways, named)


def _forwarded(passing: Passing, exempt: Sequence[Tuple[str, int]]) -> List[str]:
    ways = _ways(passing)
    if not ways:
        return []
    lines = ["counter %s { }" % passed(one[0], other[0]) for one, other in ways]
    lines.append("chain forward { type filter hook forward priority -310; policy accept;")
    for address, port in exempt:
        for side in ("saddr", "daddr"):
            for end in ("sport", "dport"):
                lines.append("%s %s %s tcp %s %d return" % (_family(address), side, address, end, port))
    for (one, sources), (other, targets) in ways:
        for source in sources:
            for target in targets:
                family = _family(source)
                if family == _family(target):
                    text = "{0} saddr {1} {0} daddr {2} counter name {3}"
                    lines.append(text.format(family, source, target, passed(one, other)))
    return [*lines, "}"]


def counter(letter: str, peer: str) -> str:
    """A counter's name."""
    return letter + peer.encode().hex()


def passed(one: str, other: str) -> str:
    """The name of the counter for what a router passes on from one host to another."""
    return "f%sx%s" % (one.encode().hex(), other.encode().hex())


def by_pair(found: Dict[str, Tuple[int, int]]) -> Dict[str, Counters]:
    """From counters by name to what a router passed on: sender, receiver, `bytes` and `packets`."""
    pairs: Dict[str, Counters] = {}
    for name, (size, packets) in found.items():
        try:
            one, other = (bytes.fromhex(word).decode() for word in name[1:].split("x"))
        except ValueError:
            continue
        if name[:1] == "f":
            pairs.setdefault(one, {})[other] = {"bytes": size, "packets": packets}
    return pairs


def by_peer(found: Dict[str, Tuple[int, int]]) -> Counters:
    """From counters by name to figures by peer; names of another make are left out."""
    peers: Counters = {}
    for name, (size, packets) in found.items():
        try:
            peer = bytes.fromhex(name[1:]).decode()
        except ValueError:
            continue
        side = {"i": "in", "o": "out"}.get(name[:1])
        if side:
            peers.setdefault(peer, {}).update({side + "_bytes": size, side + "_packets": packets})
    return peers


def _sample(found: Dict[str, Tuple[int, int]]) -> Dict[str, Any]:
    counters, passing = by_peer(found), by_pair(found)
    if not counters and not passing:
        raise protocol.Refused(
            "touched", "the counters are gone: nobody counts any more", "table inet " + netlink.TABLE
        )
    return {"t": time.monotonic(), "counters": counters, "passed": passing}


def _family(address: str) -> str:
    return "ip6" if ":" in address else "ip"


def _peers(args: Dict[str, Any], key: str) -> Peers:
    found: Dict[str, Sequence[str]] = {}
    for one in protocol.need(args, key, list, []):
        if not isinstance(one, dict):
            raise protocol.Refused("bad-request", "a peer has a name and addresses, not %r" % (one,))
        name = protocol.need(one, "name", str)
        if not 1 <= len(name.encode()) <= 60 or name in found:
            raise protocol.Refused("bad-request", "a peer's name is 1 to 60 bytes and given once: %r" % name)
        found[name] = given.addresses(one, "addresses")
    return sorted(found.items())
