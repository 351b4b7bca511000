"""What the kernel has of our line, by which devices it would go, and what of somebody else's is in its way."""

import errno
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from ssh_agents import line_tc, netlink, protocol, qdisc_tree
from ssh_agents.line_asked import Asked
from ssh_agents.line_tc import Rule, Side, Way
from ssh_agents.qdisc_tree import Tree

_IFBS = (line_tc.IFB, line_tc.IFB_DOWN)


class Half(NamedTuple):
    """One direction as the kernel has it; `side` is None where its queues are not there, or not whole."""

    way: Way
    side: Optional[Side]
    filters: List[netlink.Filter]


class Found(NamedTuple):
    """Our line as the kernel has it. Both halves are None where none of its queues is there."""

    links: Dict[str, netlink.Link]
    queues: List[netlink.Queue]
    place: str
    """one of `line_tc.PLACES`, told by which IFBs there are; empty without a line"""
    download: Optional[Half]
    upload: Optional[Half]
    leaving: bool = False
    """True for a half line: only what leaves this host is limited"""
    catching: Tuple[str, ...] = ()
    """The devices at whose ingress there are filters of ours, also where all else of the line is gone"""

    @property
    def any(self) -> bool:
        """True if any part of it is in the kernel."""
        return bool(self.place or self.catching)

    @property
    def halves(self) -> Tuple[Half, ...]:
        """Those that are there."""
        return tuple(half for half in (self.download, self.upload) if half is not None)

    @property
    def ways(self) -> Tuple[Way, ...]:
        """Where packets are caught."""
        return tuple(half.way for half in self.halves)

    @property
    def devices(self) -> List[str]:
        """The devices on which packets are caught, each once."""
        return devices_of(self.ways)

    @property
    def ifbs(self) -> List[str]:
        """Those of ours that are there."""
        return [name for name in _IFBS if name in self.links]

    def rules(self) -> Optional[Set[Rule]]:
        """What is filtered, if that is the same both ways and nothing else is in between; else None."""
        both: List[List[Rule]] = []
        for half in self.halves:
            rules: List[Rule] = []
            queue = self.links.get(half.way.queue)
            for one in half.filters:
                rule = line_tc.rule_of(one, half.way.source)
                goes = not half.way.ingress or (queue is not None and one.to == queue.number)
                limits = one.classid == netlink.LINE_CLASS and one.acts == half.way.ingress and goes
                if rule is None or limits == rule.exempt:
                    return None
                rules.append(rule)
            both.append(sorted(rules))
        # Sorted lists, not sets: a rule that is there twice was not put there by us.
        wanted = 1 if self.leaving else 2
        if len(both) != wanted or both[0] != both[-1] or len(set(both[0])) != len(both[0]):
            return None
        return set(both[0])

    @property
    def whole(self) -> bool:
        """True if both directions are limited and filtered as a line of ours is."""
        if self.rules() is None or any(half.side is None for half in self.halves):
            return False
        up = all(self.links[name].up for name in self.ifbs) and set(self.catching) <= set(self.devices)
        return up and sorted(way.queue for way in self.ways if way.ingress) == sorted(self.ifbs)


def found(ask: netlink.Socket) -> Found:
    """Look at all devices of this network."""
    links, queues = netlink.links(ask), netlink.queues(ask)
    names = {one.number: one.name for one in links.values()}
    ours = [names[one.device] for one in queues if one.handle == netlink.ROOT_HANDLE and one.device in names]
    leaving = [name for name in ours if name not in _IFBS]
    ifbs = [name for name in _IFBS if name in links]
    half = _half_of(links, queues, leaving[0]) if leaving and not ifbs else ""
    place = half
    if not half and (ifbs or leaving):
        place = {(line_tc.IFB_DOWN,): "office", _IFBS: "router"}.get(tuple(ifbs), "server")
    near = leaving[0] if leaving and place != "router" else _catcher(ask, links, queues, line_tc.IFB)
    far = _catcher(ask, links, queues, line_tc.IFB_DOWN) if place == "router" else ""
    halves: Dict[bool, Optional[Half]] = {}
    for way in line_tc.ways(place, near, far, bool(half)) if place else ():
        halves[way.upload] = _half(ask, links, queues, way)
    caught = catching(ask, links, queues)
    return Found(links, queues, place, halves.get(False), halves.get(True), bool(half), caught)


def catching(
    ask: netlink.Socket, links: Dict[str, netlink.Link], queues: List[netlink.Queue]
) -> Tuple[str, ...]:
    """See `Found.catching`."""
    arriving = {one.device for one in queues if one.kind == "ingress"}
    return tuple(
        link.name
        for link in links.values()
        if link.number in arriving
        and any(line_tc.ours(one) for one in netlink.filters(ask, link.number, netlink.INGRESS_HANDLE))
    )


def _half_of(links: Dict[str, netlink.Link], queues: List[netlink.Queue], device: str) -> str:
    """The place of the half line on a device; empty if it has none."""
    for one in queues:
        if one.device == links[device].number and one.handle == netlink.ROOT_HANDLE and one.kind == "htb":
            return line_tc.marked(netlink.htb_default(one.options))
    return ""


def _half(
    ask: netlink.Socket, links: Dict[str, netlink.Link], queues: List[netlink.Queue], way: Way
) -> Optional[Half]:
    if way.device not in links:
        return None
    index, filters = links[way.device].number, []
    if not way.ingress:
        filters = netlink.filters(ask, index, netlink.ROOT_HANDLE)
    elif any(one.device == index and one.kind == "ingress" for one in queues):
        filters = netlink.filters(ask, index, netlink.INGRESS_HANDLE)
    queue = links.get(way.queue)
    return Half(way, line_tc.side(ask, queue.number, queues) if queue else None, filters)


def _catcher(
    ask: netlink.Socket, links: Dict[str, netlink.Link], queues: List[netlink.Queue], ifb: str
) -> str:
    """The device whose ingress is redirected to an IFB of ours; empty if there is none."""
    for link in links.values():
        if ifb in links and any(one.device == link.number and one.kind == "ingress" for one in queues):
            filters = netlink.filters(ask, link.number, netlink.INGRESS_HANDLE)
            if any(one.to == links[ifb].number for one in filters):
                return link.name
    return ""


# Where a line would be


def devices_of(ways: Iterable[Way]) -> List[str]:
    """The devices of some ways, each once."""
    return list(dict.fromkeys(way.device for way in ways))


def ways_for(
    ask: netlink.Socket,
    links: Dict[str, netlink.Link],
    place: str,
    office: Sequence[str],
    server: Sequence[str],
    leaving: bool = False,
) -> Tuple[Way, ...]:
    """Download and upload of a line to be. Refuses where the way to either end is none, or more than one."""
    if place == "server":
        return line_tc.ways(place, _towards(ask, links, office, "office"), leaving=leaving)
    far = _towards(ask, links, server, "server")
    if place == "office":
        return line_tc.ways(place, far, leaving=leaving)
    near = _towards(ask, links, office, "office")
    if near == far:
        raise protocol.Refused(
            "unsupported",
            "this router reaches office and server over the same device, %s: it is not between them" % near,
        )
    return line_tc.ways(place, near, far)


def ways_asked(ask: netlink.Socket, links: Dict[str, netlink.Link], asked: Asked) -> Tuple[Way, ...]:
    """As `ways_for`, for a request."""
    return ways_for(ask, links, asked.place, asked.office, asked.server, asked.leaving)


def _towards(ask: netlink.Socket, links: Dict[str, netlink.Link], addresses: Sequence[str], whom: str) -> str:
    """The one device by which packets to these leave. Refuses if there is none, or more than one."""
    names = {one.number: one.name for one in links.values()}
    used: Dict[str, str] = {}
    for address in addresses:
        try:
            index, own = netlink.route(ask, address)
        except OSError as error:
            if error.errno not in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EINVAL, errno.EACCES):
                raise
            raise protocol.Refused(
                "failed", "no route to %s: %s" % (address, error.strerror), "route to " + address
            ) from error
        if own:
            raise protocol.Refused(
                "bad-request", "%s is an address of this host, not of the %s" % (address, whom)
            )
        used[names.get(index, str(index))] = address
    if len(used) != 1:
        found_ways = ", ".join("%s by %s" % (address, name) for name, address in sorted(used.items()))
        text = "the %s is reached over more than one device (%s), and a line that all share is held on one"
        raise protocol.Refused("unsupported", text % (whom, found_ways), "asked the kernel for each route")
    return next(iter(used))


# What is somebody else's


def foreign(ask: netlink.Socket, seen: Found, ways: Sequence[Way]) -> Optional[Tree]:
    """What somebody set up where packets would be caught; None if only the kernel's own and our queues are there."""
    for device in devices_of(ways):
        link = seen.links[device]
        leaving = any(not way.ingress for way in ways if way.device == device)
        here = [one for one in seen.queues if one.device == link.number and one.handle]
        # What the kernel puts there by itself has no handle; anything else was somebody's decision.
        ours = any(one.parent == netlink.TC_ROOT and one.handle == netlink.ROOT_HANDLE for one in here)
        for one in here:
            ingress = one.parent == netlink.TC_INGRESS
            if ingress and not our_ingress(ask, seen, device, one):
                return qdisc_tree.read(ask, link)
            if leaving and not ingress and not ours:
                return qdisc_tree.read(ask, link)
    return None


def our_ingress(ask: netlink.Socket, seen: Found, device: str, queue: netlink.Queue) -> bool:
    """True if a device's ingress is one that a line of ours made."""
    filters = netlink.filters(ask, seen.links[device].number, netlink.INGRESS_HANDLE)
    if queue.kind != "ingress" or any(
        (line_tc.rule_of(one, True) or line_tc.rule_of(one, False)) is None or not line_tc.ours(one)
        for one in filters
    ):
        return False
    arriving = any(way.ingress and way.device == device for way in seen.ways)
    return bool(filters) or arriving or bool(seen.ifbs)
