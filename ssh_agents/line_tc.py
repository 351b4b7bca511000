"""The line in the kernel's queues: what tc is told, and what the kernel says. Text and numbers, no doing.

On the device towards the office (download, its egress) and on an IFB that receives the device's ingress
(upload): HTB with one class for all office addresses, under it a TBF far above the rate. HTB lets the large
packets of TCP through in one jump; the TBF cuts them, and is the queue counted in bytes. With netem, netem is
the queue, within the TBF.
"""

import ipaddress
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from ssh_agents import netlink

IFB = "bl-ifb"
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


class Rule(NamedTuple):
    """Packets of one far address, limited, or exempt when they carry a TCP port at either end.

    `end` says which: "here" is this host's port, "far" the other's; empty without a port. An `address` of
    "nd" stands for IPv6 neighbour discovery, which a full queue must not hold up.
    """

    address: str
    port: int = 0
    end: str = ""

    @property
    def exempt(self) -> bool:
        """True if such packets go past the line."""
        return bool(self.port)


def rules(office: Iterable[str], exempt: Iterable[Tuple[str, int]]) -> Set[Rule]:
    """What must be filtered, the same for both directions."""
    found = {Rule(address) for address in office}
    if any(":" in rule.address for rule in found):
        found |= {Rule("nd", 135), Rule("nd", 136)}
    for address, port in exempt:
        found |= {Rule(address, port, "here"), Rule(address, port, "far")}
    return found


def keys(rule: Rule, upload: bool) -> Tuple[int, Keys]:
    """The protocol and the u32 keys (value, mask, offset) of a rule."""
    if rule.address == "nd":
        # Next header ICMPv6, and its type.
        return _IPV6, ((0x3A00, 0xFF00, 4), (rule.port << 24, 0xFF000000, 40))
    address = ipaddress.ip_address(rule.address)
    source = upload  # an upload comes from the office, a download goes to it
    found: List[Tuple[int, int, int]] = []
    if address.version == 4:
        found.append((int(address), 0xFFFFFFFF, 12 if source else 16))
        ports, tcp = 20, (0x00060000, 0x00FF0000, 8)
    else:
        first = 8 if source else 24
        words = [int(address) >> shift & 0xFFFFFFFF for shift in (96, 64, 32, 0)]
        found += [(word, 0xFFFFFFFF, first + 4 * number) for number, word in enumerate(words)]
        ports, tcp = 40, (0x0600, 0xFF00, 4)
    if rule.port:
        # The first port of a packet is its sender's: ours in a download, the far one in an upload.
        first_port = (rule.end == "far") == source
        found += [tcp, (rule.port << 16, 0xFFFF0000, ports) if first_port else (rule.port, 0xFFFF, ports)]
    return (_IPV4 if address.version == 4 else _IPV6), tuple(sorted(found))


def rule_of(one: netlink.Filter, upload: bool) -> Optional[Rule]:
    """The rule that a filter of the kernel stands for; None if it is none of ours."""
    found = {(mask, offset): value for value, mask, offset in one.keys}
    if one.protocol == _IPV4:
        address = str(ipaddress.IPv4Address(found.get((0xFFFFFFFF, 12 if upload else 16), 0)))
        ports = 20
    else:
        first = 8 if upload else 24
        number = 0
        for offset in range(first, first + 16, 4):
            number = number << 32 | found.get((0xFFFFFFFF, offset), 0)
        address, ports = str(ipaddress.IPv6Address(number)), 40
    rule = Rule(address)
    if (0xFF000000, 40) in found:
        rule = Rule("nd", found[0xFF000000, 40] >> 24)
    elif (0xFFFF0000, ports) in found:
        rule = Rule(address, found[0xFFFF0000, ports] >> 16, "far" if upload else "here")
    elif (0xFFFF, ports) in found:
        rule = Rule(address, found[0xFFFF, ports], "here" if upload else "far")
    wanted = keys(rule, upload)
    return rule if wanted == (one.protocol, tuple(sorted(one.keys))) else None


def addresses(found: Iterable[Rule]) -> Tuple[List[str], List[Dict[str, object]]]:
    """Back from rules to the office's addresses and what is exempt, sorted."""
    office = sorted(rule.address for rule in found if not rule.exempt)
    exempt = sorted({(rule.address, rule.port) for rule in found if rule.exempt and rule.address != "nd"})
    return office, [{"address": address, "port": port} for address, port in exempt]


def burst_bytes(rate_bps: int) -> int:
    """What HTB may let go at once."""
    return 10 if rate_bps <= FAST_BPS else rate_bps // 8 // 200


def tree(device: str, rates: Rates, delay: Delay, mtu: int, verb: str, default: int = 0) -> List[str]:
    """tc's lines that make (`verb` "add") or alter in place ("change") one direction's queues.

    `default` is the class (hex digits) of packets that no filter names; 0 is none.
    """
    bps = rates.rate_bps or AS_IT_IS_BPS
    burst = burst_bytes(bps)
    lines = []
    if verb == "add":
        lines.append("qdisc add dev %s root handle b1ab: htb default %d" % (device, default))
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


def filter_lines(device: str, wanted: Iterable[Rule], upload: bool, turn: int) -> List[str]:
    """tc's lines that add the filters of one direction, on the device; `turn` is 0 or 1."""
    parent = "ffff:" if upload else "b1ab:"
    lines = []
    for rule in sorted(wanted):
        protocol, found = keys(rule, upload)
        pref = _PREFS[turn][(0 if rule.exempt else 2) + (protocol == _IPV6)]
        match = " ".join("match u32 0x%08x 0x%08x at %d" % key for key in found)
        if rule.exempt:
            # X:0 is HTB's way past its classes; on ingress a match without an action lets the packet in.
            target = "flowid b1ab:0"
        else:
            target = "flowid b1ab:10" + (" action mirred egress redirect dev %s" % IFB if upload else "")
        lines.append(
            "filter add dev %s parent %s protocol 0x%04x prio %d u32 %s %s"
            % (device, parent, protocol, pref, match, target)
        )
    return lines


def turns_used(found: Iterable[netlink.Filter]) -> Set[int]:
    """Which of the two sets of preferences are in use."""
    prefs = {one.pref for one in found}
    return {turn for turn in (0, 1) if prefs & set(_PREFS[turn])}


def filter_removals(device: str, found: Iterable[netlink.Filter], upload: bool, turn: int) -> List[str]:
    """tc's lines that remove the filters of one set."""
    parent = "ffff:" if upload else "b1ab:"
    pairs = sorted({(one.pref, one.protocol) for one in found if one.pref in _PREFS[turn]})
    return [
        "filter del dev %s parent %s protocol 0x%04x prio %d" % (device, parent, proto, pref)
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
