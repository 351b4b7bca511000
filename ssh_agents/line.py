"""The line between office and server: applied, changed in place, read back from the kernel, lifted."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from ssh_agents import (
    line_asked,
    line_before,
    line_can,
    line_found,
    line_tc,
    netlink,
    protocol,
    qdisc_tree,
    tool,
    wirefilter,
)
from ssh_agents.line_asked import Asked
from ssh_agents.line_found import Found
from ssh_agents.line_tc import Delay, Way
from ssh_agents.qdisc_tree import Tree

_OFF = "line on %s taken off"


def check(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Whether a line can be held at `place` between `office` and `server` addresses, and with what. Changes nothing.

    `stands` tells in words what somebody set up on the device (`tree` is its fingerprint), `replaceable` whether
    it was rehearsed to come back the same, else `replace_trouble` says why not. `refuse` is for as long as nobody
    agreed; with {replace: true} it is what remains then.
    """
    place, office, server = line_asked.placed(args)
    replace, leaving = (protocol.need(args, name, bool, False) for name in ("replace", "leaving"))
    with netlink.route_socket() as ask:
        seen = line_found.found(ask)
        ways = line_found.ways_for(ask, seen.links, place, office, server, leaving)
        first = seen.links[ways[0].device]
        roots = [one for one in seen.queues if one.device == first.number and one.parent == netlink.TC_ROOT]
        stands = line_found.foreign(ask, seen, ways)
        trouble = line_can.trouble_with(ask, stands, seen, ways)
    kinds = line_can.kinds()
    refusal = (
        line_can.refusal(stands, trouble, replace, place)
        or line_can.lacking(kinds, place, leaving)
        or (line_can.not_forwarding(office) if place == "router" else "")
    )
    no_tun = wirefilter.tun_trouble()
    return {
        "device": _named(ways),
        "mtu": first.mtu,
        "kinds": kinds,
        "tun": not no_tun,
        "tun_trouble": no_tun or None,
        "root_qdisc": roots[0].kind if roots else None,
        "stands": qdisc_tree.words(stands) if stands else None,
        "tree": qdisc_tree.fingerprint(stands) if stands else "",
        "replaceable": stands is not None and not trouble,
        "replace_trouble": trouble or None,
        "refuse": refusal or None,
    }


def apply(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Apply the line asked for, or change the one that is there into it, without an unlimited moment.

    Queues that somebody set up are replaced only if they are those whose fingerprint (`check`'s `tree`) is given
    as `replace`, after a rehearsal, and once the promise says how they come back.
    """
    asked = line_asked.asked(args)
    with netlink.route_socket() as ask:
        found = line_found.found(ask)
        ways = line_found.ways_asked(ask, found.links, asked)
        devices = line_found.devices_of(ways)
        _replaceable(ask, found, ways, asked)
        wire = _wire(asked, found.links)
        entry: Dict[str, Any] = {
            "kind": "line",
            "exclusive": True,
            "device": _named(ways),
            "devices": devices,
        }
        if wire is not None:
            entry["wire"] = wirefilter.entry(*wire)
        # What is in the kernel's queues; a delay through wirefilter is not.
        queued = asked if wire is None else asked._replace(delay=Delay())
        none = not (queued.limited or any(queued.delay))
        in_place = found.whole and found.ways == ways
        if none or in_place or found.any:
            call.promise(entry)
        if none:
            _lifted(ask, found)
            if found.any or wirefilter.there(found.links):
                call.tell(_OFF % (_where(found) or _named(ways)))
        elif in_place:
            _changed(found, queued)
        else:
            _lifted(ask, found)
            # Looked at once more: what was just put back stands there too.
            found = line_found.found(ask)
            _begun(ask, found, ways, asked, entry, call)
            try:
                _built(ways, found.links, queued)
            except protocol.Refused:
                _lifted(ask, line_found.found(ask), devices)
                raise
        _wired(wire, asked.delay, found.links)
    if asked.limited or any(asked.delay):
        call.tell("line on %s: %s" % (_named(ways), line_asked.words(asked)))
    return read({}, call)


def read(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """The line as the kernel has it. `applied` is True only if every part of it is in place."""
    with netlink.route_socket() as ask:
        found = line_found.found(ask)
    up, down = (half.side if half else None for half in (found.upload, found.download))
    rules = found.rules()
    place = wirefilter.place(found.links)
    wire = wirefilter.does() if place else None
    wired = wirefilter.there(found.links)
    wire_whole = wire is not None and place is not None and wirefilter.whole(place[0], place[1], found.links)
    sides = [side for side in (down, up) if side]
    whole = len(sides) == (1 if found.leaving else 2) and sides[0].delay == sides[-1].delay
    delay = wire or (sides[0].delay if whole else Delay())
    near, far, exempt = line_tc.addresses(rules or ())
    leaf = sides[0].shape[1] if sides else ""
    return {
        "applied": (found.any or wired) and (found.whole or not found.any) and (wire_whole or not wired),
        "place": found.place or None,
        "device": _named(found.ways) or None,
        "method": "+".join(["tc"] * found.any + [leaf] * bool(leaf) + ["wirefilter"] * wired) or "none",
        "office": near if found.place != "office" else [],
        "server": near if found.place == "office" else far,
        "exempt": exempt,
        "upload_bps": up.rate_bps if up else None,
        "download_bps": down.rate_bps if down else None,
        "queue_upload_bytes": up.queue_bytes if up else None,
        "queue_download_bytes": down.queue_bytes if down else None,
        "delay_s": delay.delay_s,
        "jitter_s": delay.jitter_s,
        "loss": delay.loss,
        "backlog_bytes": (up.backlog_bytes if up else 0) + (down.backlog_bytes if down else 0),
        "dropped": (up.dropped if up else 0) + (down.dropped if down else 0),
        "dropped_upload": up.dropped if up else 0,
        "dropped_download": down.dropped if down else 0,
        "sent_bytes_upload": up.sent_bytes if up else 0,
        "sent_bytes_download": down.sent_bytes if down else 0,
    }


def lift(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Take the line off, if there is one, and put back what stood there before, which `put_back` tells.

    The promise stays: undoing twice does no harm.
    """
    there = where()
    said = _all_off()
    if there:
        call.tell(_OFF % there)
    return {"put_back": said}


def where() -> str:
    """On which devices there is a line, any part of one, or not yet again what stood there before; empty without."""
    with netlink.route_socket() as ask:
        found = line_found.found(ask)
    if found.any:
        return _where(found)
    if wirefilter.there(found.links):
        return " and ".join(wirefilter.place(found.links) or ("a bridge",))
    return " and ".join(tree.device for tree in line_before.kept())


def taken_off() -> str:
    """Take off a line that no promise tells of. Says what; nothing if there was none. Refuses with `failed`."""
    there = where()
    said = _all_off() if there else []
    with netlink.route_socket() as ask:
        # Whoever took away what stood there may have been ended before its line was made.
        said += [line_before.put_back(ask, netlink.links(ask), tree) for tree in line_before.kept()]
    said = [text for text in said if text]
    if there and where():
        raise protocol.Refused("failed", "the line is still there on %s" % where())
    return "; ".join(["line on %s taken off" % there, *said]) if there else ""


def _all_off() -> List[str]:
    """Both rate and delay, whoever put them on; what was put back in their place."""
    with netlink.route_socket() as ask:
        found = line_found.found(ask)
        said = _lifted(ask, found)
        place = wirefilter.place(found.links)
        if wirefilter.there(found.links):
            wirefilter.down(*(place or ("", "")), wirefilter.folder(), found.links)
    return said


def undo(entry: Dict[str, Any]) -> str:
    """Take off what a promised entry may have left. Says what; nothing if nothing was there. Idempotent."""
    with netlink.route_socket() as ask:
        found = line_found.found(ask)
        devices = entry.get("devices") or [str(entry.get("device", ""))]
        had = ["rate"] if _taken_off(ask, found, devices) else []
        wire = entry.get("wire")
        if wire and wirefilter.down(wire["bridge"], wire["port"], wire["folder"], found.links):
            had.append("delay")
        left = line_found.found(ask)
        if left.any:
            raise protocol.Refused("failed", "the line is still there on %s" % _where(left))
        said = ["line on %s taken off (%s)" % (entry.get("device"), ", ".join(had))] if had else []
        if entry.get("before"):
            before = qdisc_tree.restored(entry["before"])
            if before.foreign or had:
                said.append(line_before.put_back(ask, left.links, before))
    return "; ".join(filter(None, said))


def _where(found: Found) -> str:
    return " and ".join(dict.fromkeys([*found.devices, *found.catching])) or ", ".join(found.ifbs)


def _named(ways: Sequence[Way]) -> str:
    return " and ".join(line_found.devices_of(ways))


def _replaceable(ask: netlink.Socket, found: Found, ways: Sequence[Way], asked: Asked) -> Optional[Tree]:
    """What is to be replaced on this device, rehearsed and agreed to; None if nothing. Refuses otherwise."""
    stands = line_found.foreign(ask, found, ways)
    if stands is None:
        return None
    trouble = line_can.trouble_with(ask, stands, found, ways)
    agreed = asked.replace == qdisc_tree.fingerprint(stands)
    refusal = line_can.refusal(stands, trouble, agreed, asked.place)
    if asked.replace and not agreed and not trouble:
        refusal = "%s has other queues than those that may be replaced: somebody set up %s meanwhile" % (
            stands.device,
            qdisc_tree.words(stands),
        )
    if refusal is None and stands.device in found.devices:
        refusal = "somebody set up ingress filters on %s while our line was there" % stands.device
    if refusal is not None:
        raise protocol.Refused("unsupported", refusal, "tc qdisc show dev %s" % stands.device)
    return stands


def _begun(
    ask: netlink.Socket,
    found: Found,
    ways: Sequence[Way],
    asked: Asked,
    entry: Dict[str, Any],
    call: protocol.Call,
) -> None:
    """Promise that what stands on the device comes back, and then only make room for our queues."""
    stands = _replaceable(ask, found, ways, asked)
    leaving = [way.device for way in ways if not way.ingress]
    if not leaving:  # on a router no queue makes room for ours
        call.promise(entry)
        return
    (device,) = leaving
    before = stands or qdisc_tree.read(ask, found.links[device])
    entry = {**entry, "before": qdisc_tree.saved(before)}
    if stands is not None:
        entry["what"] = "line on %s limited, in place of %s" % (device, qdisc_tree.words(stands))
    call.promise(entry)
    if stands is None:
        line_before.forget(device)
    else:
        line_before.keep(stands)
        call.promise(entry)  # the lease asked once more: what is removed now must come back
        qdisc_tree.remove(ask, stands, found.links[device])


def _wire(asked: Asked, links: Dict[str, netlink.Link]) -> Optional[Tuple[str, str]]:
    """Bridge and port for wirefilter; None if none is needed. Refuses a delay that cannot be made here."""
    if asked.delay in (Delay(), line_tc.SEVERED):
        return None
    # A wire of ours is there only where netem is not.
    if not wirefilter.there(links) and line_can.kinds()["netem"]:
        return None
    words = asked.port.split(":")
    if words[0] != "wirefilter" or len(words) != 3:
        raise protocol.Refused(
            "unsupported",
            "this host's kernel has no netem: delay, jitter and loss cannot be applied here",
            "tc qdisc add … netem",
        )
    wirefilter.refuse_unless_possible(words[1], words[2], asked.delay, links)
    if asked.exempt and not asked.apart:
        # It holds back whatever passes its port.
        raise protocol.Refused(
            "unsupported",
            "wirefilter would delay this lab's own SSH too; a host that is reached over its network needs netem",
            asked.port,
        )
    return words[1], words[2]


def _wired(wire: Optional[Tuple[str, str]], delay: Delay, links: Dict[str, netlink.Link]) -> None:
    there = wirefilter.there(links)
    if (
        wire is not None
        and there
        and wirefilter.whole(wire[0], wire[1], links)
        and wirefilter.does() is not None
    ):
        wirefilter.change(delay)
        return
    if there:
        place = wirefilter.place(links) or wire or ("", "")
        wirefilter.down(place[0], place[1], wirefilter.folder(), links)
    if wire is not None:
        wirefilter.up(wire[0], wire[1], delay)


def _built(ways: Sequence[Way], links: Dict[str, netlink.Link], asked: Asked) -> None:
    wanted = line_tc.rules(asked.near, asked.exempt, asked.far)
    arriving = [way for way in ways if way.ingress]
    for way in arriving:
        _ifb(way.queue, asked.place)
    lines: List[str] = []
    for way in ways:
        rates, mtu = asked.rates(way.upload), links[way.device].mtu
        default = 0x10 if way.ingress else line_tc.mark_of(asked.place, asked.leaving)
        lines += line_tc.tree(way.queue, rates, asked.delay, mtu, "add", default)
        if way.ingress:
            lines.append("qdisc add dev %s handle ffff: ingress" % way.device)
        else:
            lines += line_tc.filter_lines(way, wanted, 0)
    tool.run(["tc", "-batch", "-"], "\n".join(lines) + "\n")
    # Only a device that is up takes packets: limited first, redirected then.
    for way in arriving:
        tool.run(["ip", "link", "set", way.queue, "mtu", str(links[way.device].mtu), "up"])
    lines = [line for way in arriving for line in line_tc.filter_lines(way, wanted, 0)]
    tool.run(["tc", "-batch", "-"], "\n".join(lines) + "\n")


def _ifb(name: str, place: str) -> None:
    try:
        tool.run(["ip", "-batch", "-"], "link add %s type ifb\n" % name)
    except protocol.Refused as refused:
        if "exists" in refused.text:
            raise protocol.Refused("busy", "%s appeared meanwhile" % name, refused.tried) from refused
        raise protocol.Refused(
            "unsupported", line_can.lacking_text(["ifb"], place), refused.tried
        ) from refused
    wirefilter.quiet_ipv6(name)


def _changed(found: Found, asked: Asked) -> None:
    """Alter classes and queues where they are; exchange the filters only if the addresses differ."""
    lines: List[str] = []
    for half in found.halves:
        name, rates, mtu = half.way.queue, asked.rates(half.way.upload), found.links[half.way.device].mtu
        shape = (rates.rate_bps is not None, line_tc.leaf_kind(asked.delay))
        if half.side is not None and half.side.shape == shape:
            lines += line_tc.tree(name, rates, asked.delay, mtu, "change")
            continue
        # Without its queue the class still limits.
        lines.append("qdisc del dev %s parent b1ab:10" % name)
        first, *rest = line_tc.tree(name, rates, asked.delay, mtu, "add")[1:]
        lines += [first.replace("class add", "class change"), *rest]
    wanted = line_tc.rules(asked.near, asked.exempt, asked.far)
    if wanted != found.rules():
        for half in found.halves:
            used = line_tc.turns_used(half.filters)
            turn = 1 if used == {0} else 0
            if used == {0, 1}:
                lines += line_tc.filter_removals(half.way, half.filters, turn)
            lines += line_tc.filter_lines(half.way, wanted, turn)
            lines += line_tc.filter_removals(half.way, half.filters, 1 - turn)
    tool.run(["tc", "-batch", "-"], "\n".join(lines) + "\n")


def _lifted(ask: netlink.Socket, found: Found, devices: Sequence[str] = ()) -> List[str]:
    """Remove our queues and put back what stood there before; says what was put back.

    Where nothing of ours is there any more (and no `devices` are given), it is left to the promise.
    """
    _taken_off(ask, found, devices)
    if not (found.any or devices):
        return []
    said = [line_before.put_back(ask, found.links, tree) for tree in line_before.kept()]
    return [text for text in said if text]


def _taken_off(ask: netlink.Socket, found: Found, devices: Sequence[str] = ()) -> bool:
    """Remove our queues and IFBs, wherever they are; `devices` may have a bare ingress of ours."""
    names = {one.number: one.name for one in found.links.values()}
    ifbs = found.ifbs
    lines: List[str] = []
    for one in found.queues:
        name = names.get(one.device)
        if name is None or name in ifbs:
            continue
        if one.parent == netlink.TC_INGRESS and (
            name in devices or name in found.devices or ifbs or found.any
        ):
            if line_found.our_ingress(ask, found, name, one):
                lines.insert(0, "qdisc del dev %s ingress" % name)
            elif name in found.catching:  # somebody has filters there too: the ingress is theirs now
                there = netlink.filters(ask, one.device, netlink.INGRESS_HANDLE)
                lines = line_tc.strays_removed(name, there) + lines
        elif one.handle == netlink.ROOT_HANDLE:
            lines.append("qdisc del dev %s root" % name)
    if lines:
        _unless_gone(["tc", "-force", "-batch", "-"], "\n".join(lines) + "\n")
    still = line_found.catching(ask, found.links, netlink.queues(ask))
    if still:
        # A redirect to a device that is gone loses every packet.
        raise protocol.Refused("failed", "filters of ours could not be removed from %s" % " and ".join(still))
    for name in ifbs:
        _unless_gone(["ip", "link", "del", name], "")
    return bool(lines or ifbs)


def _unless_gone(argv: List[str], text: str) -> None:
    """Run a removal; what somebody else has removed meanwhile is removed."""
    try:
        tool.run(argv, text)
    except protocol.Refused as refused:
        gone = ("Cannot find", "No such", "Invalid handle", "does not exist", "Cannot delete")
        if not any(word in refused.text for word in gone):
            raise
