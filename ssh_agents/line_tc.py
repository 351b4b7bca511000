"""The line in the kernel's queues: what tc is told, and what the kernel says. Text and numbers, no doing.

Where what leaves by a device is limited, on that device; where what arrives is, on an IFB that receives the
device's ingress: HTB with one class for all addresses, under it a TBF far above the rate. HTB lets the large
packets of TCP through in one jump; the TBF cuts them, and is the queue counted in bytes. With netem, netem is
the queue, within the TBF. Which way is caught where is said by `ways`.
"""

import ipaddress
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from ssh_agents import netlink

IFB, IFB_DOWN = "bl-ifb", "bl-ifb-down"
"""The device where an upload waits that is caught as it arrives, and the one for a download."""
PLACES = ("server", "router", "office")
"""Where a line is held: on the server for all office hosts, on a router between, or on each office host for itself."""
FAST_BPS = 2_000_000
"""Up to here one packet at a time; above, a burst of 5 ms of the rate, or timers would cost a tenth of it."""
AS_IT_IS_BPS = 40_000_000_000
"""The class's rate where only delay is asked for; read back as no rate."""
SEVERED_KIND = "bfifo"
"""A queue without room loses everything, on every kernel; netem is not needed for that."""
_PREFS = ((1101, 1102, 1201, 1202), (2101, 2102, 2201, 2202))
"""Two sets of filter preferences (exempt IPv4, IPv6, office IPv4, IPv6), used in turn: a changed set of
addresses is complete before the old one goes."""
_IPV4, _IPV6 = 0x0800, 0x86DD

Keys = Tuple[Tuple[int, int, int], ...]


class Rates(NamedTuple):
    """One direction: bits per second (None: not limited) and bytes that may wait."""

    rate_bps: Optional[int]
    queue_bytes: int


class Delay(NamedTuple):
    """One way, the same in both directions: seconds, seconds, a share of packets."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0


SEVERED = Delay(0.0, 0.0, 1.0)
"""Everything is lost. Needs no netem."""


def leaf_kind(delay: Delay) -> str:
    """The kind of the queue that delays or loses; empty if none is needed."""
    return ("netem" if delay != SEVERED else SEVERED_KIND) if any(delay) else ""


class Way(NamedTuple):
    """One direction: caught on `device`, as it arrives there or as it leaves.

    `source`: the address of its rules is that of the sender.
    """

    upload: bool
    device: str
    ingress: bool
    source: bool

    @property
    def queue(self) -> str:
        """The device that holds its packets."""
        return (IFB if self.upload else IFB_DOWN) if self.ingress else self.device


_MARKS = {"server": 0xD, "office": 0xE}
"""The default class of a half line's HTB: there is no such class, so that what no filter names passes at once,
and the kernel itself tells what kind of line this is."""


def mark_of(place: str, leaving: bool) -> int:
    """The default class of an HTB on a device; 0 for a line of both directions."""
    return _MARKS[place] if leaving else 0


def marked(default: Optional[int]) -> str:
    """The place of a half line by its default class; empty for a whole one."""
    return {number: place for place, number in _MARKS.items()}.get(default or 0, "")


def ways(place: str, near: str, far: str = "", leaving: bool = False) -> Tuple[Way, ...]:
    """Download and upload; only the one that leaves this host if so asked.

    `near` is the device towards the addresses of the rules, `far` a router's other one.

    A router catches both as they arrive, so that it counts after the line what it forwards, and so that no
    queue of its devices has to make room.
    """
    if place == "router":
        return Way(False, far, True, False), Way(True, near, True, True)
    office = place == "office"
    both = Way(False, near, office, office), Way(True, near, not office, not office)
    return tuple(way for way in both if not (leaving and way.ingress))


class Rule(NamedTuple):
    """Packets of one address, limited, or exempt when they carry a TCP port at either end.

    `end` says which: "here" is the port of the end that is not `address`, "far" that of `address`; empty
    without a port. With `far`, packets between these two addresses only. An `address` of "nd" stands for IPv6
    neighbour discovery, which a full queue must not hold up.
    """

    address: str
    port: int = 0
    end: str = ""
    far: str = ""

    @property
    def exempt(self) -> bool:
        """True if such packets go past the line."""
        return bool(self.port)


def rules(near: Iterable[str], exempt: Iterable[Tuple[str, int]], far: Iterable[str] = ()) -> Set[Rule]:
    """What must be filtered, the same for both directions; with `far`, pairs of one family of addresses."""
    others = tuple(far)
    found = {
        Rule(address, far=other)
        for address in near
        for other in others or ("",)
        if not other or (":" in address) == (":" in other)
    }
    if any(":" in rule.address for rule in found):
        found |= {Rule("nd", 135), Rule("nd", 136)}
    for address, port in exempt:
        found |= {Rule(address, port, "here"), Rule(address, port, "far")}
    return found


def keys(rule: Rule, source: bool) -> Tuple[int, Keys]:
    """The protocol and the u32 keys (value, mask, offset) of a rule whose address is the sender's, or not."""
    if rule.address == "nd":
        # Next header ICMPv6, and its type.
        return _IPV6, ((0x3A00, 0xFF00, 4), (rule.port << 24, 0xFF000000, 40))
    six = ":" in rule.address
    found = _address_keys(rule.address, source)
    if rule.far:
        found += _address_keys(rule.far, not source)
    ports, tcp = (40, (0x0600, 0xFF00, 4)) if six else (20, (0x00060000, 0x00FF0000, 8))
    if rule.port:
        # The first port of a packet is its sender's.
        first_port = (rule.end == "far") == source
        found += [tcp, (rule.port << 16, 0xFFFF0000, ports) if first_port else (rule.port, 0xFFFF, ports)]
    return (_IPV6 if six else _IPV4), tuple(sorted(found))


def _address_keys(text: str, source: bool) -> List[Tuple[int, int, int]]:
    address = ipaddress.ip_address(text)
    if address.version == 4:
        return [(int(address), 0xFFFFFFFF, 12 if source else 16)]
    words = [int(address) >> shift & 0xFFFFFFFF for shift in (96, 64, 32, 0)]
    return [(word, 0xFFFFFFFF, (8 if source else 24) + 4 * number) for number, word in enumerate(words)]


def _address_of(found: Dict[Tuple[int, int], int], protocol: int, source: bool) -> str:
    """The address that keys (value by mask and offset) ask for at one end; empty if they ask for none."""
    if protocol == _IPV4:
        offset = 12 if source else 16
        return str(ipaddress.IPv4Address(found[0xFFFFFFFF, offset])) if (0xFFFFFFFF, offset) in found else ""
    first, number = (8 if source else 24), 0
    if (0xFFFFFFFF, first) not in found:
        return ""
    for offset in range(first, first + 16, 4):
        number = number << 32 | found.get((0xFFFFFFFF, offset), 0)
    return str(ipaddress.IPv6Address(number))


def rule_of(one: netlink.Filter, source: bool) -> Optional[Rule]:
    """The rule that a filter of the kernel stands for; None if it is none of ours."""
    found = {(mask, offset): value for value, mask, offset in one.keys}
    address = _address_of(found, one.protocol, source)
    ports = 20 if one.protocol == _IPV4 else 40
    rule = Rule(address, far=_address_of(found, one.protocol, not source))
    if (0xFF000000, 40) in found:
        rule = Rule("nd", found[0xFF000000, 40] >> 24)
    elif (0xFFFF0000, ports) in found:
        rule = rule._replace(port=found[0xFFFF0000, ports] >> 16, end="far" if source else "here")
    elif (0xFFFF, ports) in found:
        rule = rule._replace(port=found[0xFFFF, ports], end="here" if source else "far")
    if not rule.address:
        return None
    return rule if keys(rule, source) == (one.protocol, tuple(sorted(one.keys))) else None


def addresses(found: Iterable[Rule]) -> Tuple[List[str], List[str], List[Dict[str, object]]]:
    """Back from rules to the addresses that are limited, those at their far end, and what is exempt; sorted."""
    near = sorted({rule.address for rule in found if not rule.exempt})
    far = sorted({rule.far for rule in found if rule.far})
    exempt = sorted({(rule.address, rule.port) for rule in found if rule.exempt and rule.address != "nd"})
    return near, far, [{"address": address, "port": port} for address, port in exempt]


def burst_bytes(rate_bps: int) -> int:
    """What HTB may let go at once."""
    return 10 if rate_bps <= FAST_BPS else rate_bps // 8 // 200


def tree(device: str, rates: Rates, delay: Delay, mtu: int, verb: str, default: int = 0) -> List[str]:
    """tc's lines that make (`verb` "add") or alter in place ("change") one direction's queues.

    `default` is the class of packets that no filter names; 0 is none.
    """
    bps = rates.rate_bps or AS_IT_IS_BPS
    burst = burst_bytes(bps)
    lines = []
    if verb == "add":
        lines.append("qdisc add dev %s root handle b1ab: htb default %x" % (device, default))
    lines.append(
        "class %s dev %s parent b1ab: classid b1ab:10 htb rate %dbit ceil %dbit burst %d cburst %d quantum %d"
        % (verb, device, bps, bps, burst, burst, mtu + 14)
    )
    if rates.rate_bps is not None:
        # Ten times the rate at least, so that it never limits; a packet of this device must fit its burst.
        lines.append(
            "qdisc %s dev %s parent b1ab:10 handle b2ab: tbf rate %dbit burst %d limit %d"
            % (verb, device, max(1_000_000_000, 10 * bps), max(1600, mtu + 100), rates.queue_bytes)
        )
    if any(delay):
        parent = "b2ab:1" if rates.rate_bps is not None else "b1ab:10"
        lines.append(
            "qdisc %s dev %s parent %s handle b3ab: %s" % (verb, device, parent, _netem(rates, delay, mtu))
        )
    return lines


def _netem(rates: Rates, delay: Delay, mtu: int) -> str:
    if delay == SEVERED:
        return "%s limit 0" % SEVERED_KIND
    # What waits and what is under way, as packets: netem counts those.
    under_way = (rates.rate_bps or 1_000_000_000) / 8 * (delay.delay_s + delay.jitter_s)
    limit = max(10, int((rates.queue_bytes + 1.5 * under_way) / (mtu + 14)) + 1)
    text = "netem limit %d delay %dus %dus" % (limit, round(delay.delay_s * 1e6), round(delay.jitter_s * 1e6))
    return text + (" loss random %.6g%%" % (100 * delay.loss) if delay.loss else "")


def filter_lines(way: Way, wanted: Iterable[Rule], turn: int) -> List[str]:
    """tc's lines that add the filters of one direction, where it is caught; `turn` is 0 or 1."""
    lines = []
    for rule in sorted(wanted):
        protocol, found = keys(rule, way.source)
        pref = _PREFS[turn][(0 if rule.exempt else 2) + (protocol == _IPV6)]
        match = " ".join("match u32 0x%08x 0x%08x at %d" % key for key in found)
        if rule.exempt:
            # X:0 is HTB's way past its classes; on ingress a match without an action lets the packet in.
            target = "flowid b1ab:0"
        else:
            target = "flowid b1ab:10"
            if way.ingress:
                target += " action mirred egress redirect dev %s" % way.queue
        lines.append(
            "filter add dev %s parent %s protocol 0x%04x prio %d u32 %s %s"
            % (way.device, _parent(way), protocol, pref, match, target)
        )
    return lines


def _parent(way: Way) -> str:
    return "ffff:" if way.ingress else "b1ab:"


def ours(one: netlink.Filter) -> bool:
    """True if a filter is one that a line of ours put there: its preference, and its class, wherever that is now."""
    numbered = any(one.pref in prefs for prefs in _PREFS)
    return numbered and one.classid & 0xFFFF0000 == netlink.ROOT_HANDLE


def strays_removed(device: str, found: Iterable[netlink.Filter]) -> List[str]:
    """tc's lines that remove our filters, and no others, from an ingress that somebody else uses too."""
    lines: List[str] = []
    everything = list(found)
    for pref, protocol in sorted({(one.pref, one.protocol) for one in everything if ours(one)}):
        whole = "filter del dev %s parent ffff: protocol 0x%04x prio %d" % (device, protocol, pref)
        here = [one for one in everything if (one.pref, one.protocol) == (pref, protocol)]
        mine = [one.handle for one in here if ours(one)]
        # One by one where somebody took a preference of ours, or else its empty table would stay.
        single = [
            "%s handle %x:%x:%x u32" % (whole, one >> 20, one >> 12 & 0xFF, one & 0xFFF) for one in mine
        ]
        lines += [whole] if len(mine) == len(here) else single
    return lines


def turns_used(found: Iterable[netlink.Filter]) -> Set[int]:
    """Which of the two sets of preferences are in use."""
    prefs = {one.pref for one in found}
    return {turn for turn in (0, 1) if prefs & set(_PREFS[turn])}


def filter_removals(way: Way, found: Iterable[netlink.Filter], turn: int) -> List[str]:
    """tc's lines that remove the filters of one set."""
    pairs = sorted({(one.pref, one.protocol) for one in found if one.pref in _PREFS[turn]})
    return [
        "filter del dev %s parent %s protocol 0x%04x prio %d" % (way.device, _parent(way), proto, pref)
        for pref, proto in pairs
    ]


class Side(NamedTuple):
    """One direction as the kernel has it."""

    rate_bps: Optional[int]
    queue_bytes: Optional[int]
    delay: Delay
    backlog_bytes: int
    dropped: int
    sent_bytes: int
    shape: Tuple[bool, str]
    """Whether it has a TBF, and what delays or loses (see `leaf_kind`): in-place changes need the same."""


def side(ask: netlink.Socket, index: int, found: List[netlink.Queue]) -> Optional[Side]:
    """What our queues on one device do; None where they are not, or not whole."""
    here = {one.handle: one for one in found if one.device == index}
    if netlink.ROOT_HANDLE not in here or here[netlink.ROOT_HANDLE].kind != "htb":
        return None
    line = [one for one in netlink.classes(ask, index) if one.handle == netlink.LINE_CLASS]
    rate = netlink.htb_rate(line[0].options) if line else None
    tbf, netem = here.get(netlink.QUEUE_HANDLE), here.get(netlink.NETEM_HANDLE)
    if rate is None or (tbf is None and netem is None):
        return None
    leaf = tbf or netem
    delay, limit = Delay(), netlink.tbf_limit(tbf.options) if tbf else None
    dropped = leaf.dropped if leaf else 0
    if netem is not None and netem.kind == SEVERED_KIND:
        if netem.options[:4] != b"\0\0\0\0":
            return None  # somebody gave it room
        delay, dropped = SEVERED, netem.dropped
    elif netem is not None:
        does = netlink.netem(netem.options)
        delay = Delay(round(does.delay_s, 6), round(does.jitter_s, 6), round(does.loss, 6))
        dropped = netem.dropped
    return Side(
        None if rate * 8 == AS_IT_IS_BPS else rate * 8,
        limit,
        delay,
        leaf.backlog_bytes if leaf else 0,
        dropped,
        line[0].sent_bytes,
        (tbf is not None, netem.kind if netem is not None else ""),
    )
