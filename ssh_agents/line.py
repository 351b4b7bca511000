"""The line between office and server: applied, changed in place, read back from the kernel, lifted."""

import errno
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from ssh_agents import (
    given,
    line_asked,
    line_before,
    line_tc,
    netlink,
    protocol,
    qdisc_tree,
    tool,
    wirefilter,
)
from ssh_agents.line_asked import Asked
from ssh_agents.line_tc import Delay, Rule, Side
from ssh_agents.qdisc_tree import Tree

_TRIED_KINDS = {
    "htb": ["qdisc add dev lo root handle 1: htb", "class add dev lo parent 1: classid 1:1 htb rate 1mbit"],
    "tbf": ["qdisc add dev lo parent 1:1 handle 2: tbf rate 1gbit burst 1600 limit 10000"],
    "netem": ["qdisc add dev lo parent 2:1 handle 3: netem delay 1ms"],
    "ingress": ["qdisc add dev lo handle ffff: ingress"],
    "u32": ["filter add dev lo parent 1: protocol ip prio 1 u32 match u32 0 0 at 0 flowid 1:0"],
    "mirred": [
        "filter add dev lo parent ffff: protocol ip prio 1 u32 match u32 0 0 at 0"
        " action mirred egress redirect dev lo"
    ],
}


class Found(NamedTuple):
    """Our line as the kernel has it."""

    links: Dict[str, netlink.Link]
    queues: List[netlink.Queue]
    device: Optional[str]
    download: Optional[Side]
    upload: Optional[Side]
    out_filters: List[netlink.Filter]
    in_filters: List[netlink.Filter]

    @property
    def any(self) -> bool:
        """True if any part of it is in the kernel."""
        return self.device is not None or line_tc.IFB in self.links

    def rules(self) -> Optional[Set[Rule]]:
        """What is filtered, if that is the same both ways and nothing else is in between; else None."""
        both: List[List[Rule]] = [[], []]
        for upload, filters in ((False, self.out_filters), (True, self.in_filters)):
            for one in filters:
                rule = line_tc.rule_of(one, upload)
                limits = one.classid == netlink.LINE_CLASS and one.acts == upload
                if rule is None or limits == rule.exempt:
                    return None
                both[upload].append(rule)
        # Sorted lists, not sets: a rule that is there twice was not put there by us.
        return (
            set(both[0]) if sorted(both[0]) == sorted(both[1]) and len(set(both[0])) == len(both[0]) else None
        )

    @property
    def whole(self) -> bool:
        """True if both directions are limited and filtered as a line of ours is."""
        ifb = self.links.get(line_tc.IFB)
        return None not in (self.download, self.upload, self.rules()) and ifb is not None and ifb.up


def check(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Whether a line can be applied towards the `office` addresses, and with what. Changes nothing.

    `stands` tells in words what somebody set up on the device, `replaceable` whether it was rehearsed to come
    back the same, else `replace_trouble` says why not. `refuse` is for as long as nobody agreed; with
    {replace: true} it is what remains then.
    """
    office = given.addresses(args, "office")
    replace = protocol.need(args, "replace", bool, False)
    with netlink.route_socket() as ask:
        found = _found(ask)
        device = _device(ask, found.links, office)
        roots = [
            one
            for one in found.queues
            if one.device == found.links[device].number and one.parent == netlink.TC_ROOT
        ]
        stands = _foreign(ask, found, device)
        trouble = qdisc_tree.rehearsed(ask, stands, found.links[device]) if stands else ""
    refusal = _refusal(stands, trouble, replace)
    kinds = _kinds()
    lacking = [kind for kind in ("htb", "tbf", "u32", "ingress", "mirred", "ifb") if not kinds[kind]]
    if lacking and refusal is None:
        refusal = _lacking_text(lacking)
    no_tun = wirefilter.tun_trouble()
    return {
        "device": device,
        "mtu": found.links[device].mtu,
        "kinds": kinds,
        "tun": not no_tun,
        "tun_trouble": no_tun or None,
        "root_qdisc": roots[0].kind if roots else None,
        "stands": qdisc_tree.words(stands) if stands else None,
        "replaceable": stands is not None and not trouble,
        "replace_trouble": trouble or None,
        "refuse": refusal,
    }


def apply(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Apply the line asked for, or change the one that is there into it, without an unlimited moment.

    Queues that somebody set up are replaced only with {replace: true}, after a rehearsal, and once the promise
    says how they come back.
    """
    asked = line_asked.asked(args)
    with netlink.route_socket() as ask:
        found = _found(ask)
        device = _device(ask, found.links, asked.office)
        _replaceable(ask, found, device, asked.replace)
        wire = _wire(asked, found.links)
        entry: Dict[str, Any] = {"kind": "line", "exclusive": True, "device": device}
        if wire is not None:
            entry["wire"] = wirefilter.entry(*wire)
        # What is in the kernel's queues; a delay through wirefilter is not.
        queued = asked if wire is None else asked._replace(delay=Delay())
        none = not (queued.limited or any(queued.delay))
        in_place = found.whole and found.device == device
        if none or in_place or found.any:
            call.promise(entry)
        if none:
            _lifted(ask, found)
        elif in_place:
            _changed(found, queued)
        else:
            _lifted(ask, found)
            # Looked at once more: what was just put back stands there too.
            found = _found(ask)
            _begun(ask, found, device, asked.replace, entry, call)
            try:
                _built(device, found.links[device].mtu, queued)
            except protocol.Refused:
                _lifted(ask, _found(ask), device)
                raise
        _wired(wire, asked.delay, found.links)
    return read({}, call)


def read(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """The line as the kernel has it. `applied` is True only if every part of it is in place."""
    with netlink.route_socket() as ask:
        found = _found(ask)
    up, down, rules = found.upload, found.download, found.rules()
    place = wirefilter.place(found.links)
    wire = wirefilter.does() if place else None
    wired = wirefilter.there(found.links)
    wire_whole = wire is not None and place is not None and wirefilter.whole(place[0], place[1], found.links)
    delay = wire or (down.delay if down and up and down.delay == up.delay else Delay())
    office, exempt = line_tc.addresses(rules or ())
    leaf = down.shape[1] if down else ""
    return {
        "applied": (found.any or wired) and (found.whole or not found.any) and (wire_whole or not wired),
        "device": found.device,
        "method": "+".join(["tc"] * found.any + [leaf] * bool(leaf) + ["wirefilter"] * wired) or "none",
        "office": office,
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
    with netlink.route_socket() as ask:
        found = _found(ask)
        said = _lifted(ask, found)
        place = wirefilter.place(found.links)
        if wirefilter.there(found.links):
            wirefilter.down(*(place or ("", "")), wirefilter.folder(), found.links)
    return {"put_back": said}


def undo(entry: Dict[str, Any]) -> str:
    """Take off what a promised entry may have left. Says what; nothing if nothing was there. Idempotent."""
    with netlink.route_socket() as ask:
        found = _found(ask)
        had = ["rate"] if _taken_off(ask, found, str(entry.get("device", ""))) else []
        wire = entry.get("wire")
        if wire and wirefilter.down(wire["bridge"], wire["port"], wire["folder"], found.links):
            had.append("delay")
        left = _found(ask)
        if left.any:
            raise protocol.Refused("failed", "the line is still there on %s" % left.device)
        said = ["line on %s taken off (%s)" % (entry.get("device"), ", ".join(had))] if had else []
        if entry.get("before"):
            before = qdisc_tree.restored(entry["before"])
            if before.foreign or had:
                said.append(line_before.put_back(ask, left.links, before))
    return "; ".join(filter(None, said))


def _found(ask: netlink.Socket) -> Found:
    links, queues = netlink.links(ask), netlink.queues(ask)
    names = {one.number: one.name for one in links.values()}
    ours = [names[one.device] for one in queues if one.handle == netlink.ROOT_HANDLE and one.device in names]
    devices = [name for name in ours if name != line_tc.IFB]
    device = devices[0] if devices else None
    download = upload = None
    out: List[netlink.Filter] = []
    into: List[netlink.Filter] = []
    if device is not None:
        index = links[device].number
        download = line_tc.side(ask, index, queues)
        out = netlink.filters(ask, index, netlink.ROOT_HANDLE)
        if any(one.device == index and one.kind == "ingress" for one in queues):
            into = netlink.filters(ask, index, netlink.INGRESS_HANDLE)
    if line_tc.IFB in ours:
        upload = line_tc.side(ask, links[line_tc.IFB].number, queues)
    return Found(links, queues, device, download, upload, out, into)


def _device(ask: netlink.Socket, links: Dict[str, netlink.Link], office: Tuple[str, ...]) -> str:
    """The one device by which packets to the office leave. Refuses if there is none, or more than one."""
    names = {one.number: one.name for one in links.values()}
    used: Dict[str, str] = {}
    for address in office:
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
                "bad-request", "%s is an address of this host, not of the office" % address
            )
        used[names.get(index, str(index))] = address
    if len(used) != 1:
        ways = ", ".join("%s by %s" % (address, name) for name, address in sorted(used.items()))
        raise protocol.Refused("unsupported", "the office is reached over more than one device: %s" % ways)
    return next(iter(used))


def _foreign(ask: netlink.Socket, found: Found, device: str) -> Optional[Tree]:
    """What somebody set up on this device; None if only the kernel's own and our queues are there."""
    link = found.links[device]
    here = [one for one in found.queues if one.device == link.number and one.handle]
    # What the kernel puts there by itself has no handle; anything else was somebody's decision.
    ours = any(one.parent == netlink.TC_ROOT and one.handle == netlink.ROOT_HANDLE for one in here)
    for one in here:
        ingress = one.parent == netlink.TC_INGRESS
        if (ingress and not _our_ingress(ask, found, device, one)) or (not ingress and not ours):
            return qdisc_tree.read(ask, link)
    return None


def _refusal(stands: Optional[Tree], trouble: str, replace: bool) -> Optional[str]:
    """Why this device must not be touched; None if it may. `trouble` is why what `stands` would not come back."""
    if stands is None or (replace and not trouble):
        return None
    text = "%s has queues that somebody set up (%s)" % (stands.device, qdisc_tree.words(stands))
    if trouble:
        text += ", and they could not be put back the same: %s. Either" % trouble
    else:
        text += "; they can be put back the same, so agree to their replacement for the time of a line, or"
    text += " give a host between office and server the role of a router, or give these queues up: "
    roots = {parent for _, parent, handle, _, _, _ in stands.items if handle}
    where = [word for word, at in (("root", netlink.TC_ROOT), ("ingress", netlink.TC_INGRESS)) if at in roots]
    return text + "; ".join("tc qdisc del dev %s %s" % (stands.device, word) for word in where)


def _replaceable(ask: netlink.Socket, found: Found, device: str, replace: bool) -> Optional[Tree]:
    """What is to be replaced on this device, rehearsed and agreed to; None if nothing. Refuses otherwise."""
    stands = _foreign(ask, found, device)
    if stands is None:
        return None
    refusal = _refusal(stands, qdisc_tree.rehearsed(ask, stands, found.links[device]), replace)
    if refusal is None and found.device == device:
        refusal = "somebody set up ingress filters on %s while our line was there" % device
    if refusal is not None:
        raise protocol.Refused("unsupported", refusal, "tc qdisc show dev %s" % device)
    return stands


def _begun(
    ask: netlink.Socket, found: Found, device: str, replace: bool, entry: Dict[str, Any], call: protocol.Call
) -> None:
    """Promise that what stands on the device comes back, and then only make room for our queues."""
    stands = _replaceable(ask, found, device, replace)
    before = stands or qdisc_tree.read(ask, found.links[device])
    entry = {**entry, "before": qdisc_tree.saved(before)}
    if stands is not None:
        entry["what"] = "line on %s limited, in place of %s" % (device, qdisc_tree.words(stands))
    call.promise(entry)
    if stands is None:
        line_before.forget(device)
    else:
        line_before.keep(stands)
        qdisc_tree.remove(ask, stands, found.links[device])


def _our_ingress(ask: netlink.Socket, found: Found, device: str, queue: netlink.Queue) -> bool:
    filters = netlink.filters(ask, found.links[device].number, netlink.INGRESS_HANDLE)
    if queue.kind != "ingress" or any(line_tc.rule_of(one, upload=True) is None for one in filters):
        return False
    return bool(filters) or found.device == device or line_tc.IFB in found.links


def _kinds() -> Dict[str, bool]:
    """What this kernel can do, tried out in a network namespace that ends with the trial."""
    lines: List[str] = []
    last: Dict[int, str] = {}
    for kind, tried in _TRIED_KINDS.items():
        lines += tried
        last.update({len(lines) - number: kind for number in range(len(tried))})
    kinds = dict.fromkeys(_TRIED_KINDS, True)
    try:
        tool.run(["unshare", "--net", "tc", "-force", "-batch", "-"], "\n".join(lines) + "\n")
    except protocol.Refused as refused:
        failed = [
            word.rsplit(":", 1)[-1] for word in refused.text.splitlines() if word.startswith("Command failed")
        ]
        if not failed and "Command failed" not in refused.text:
            raise
        for number in failed:
            kinds[last[int(number)]] = False
    try:
        tool.run(["unshare", "--net", "ip", "link", "add", line_tc.IFB, "type", "ifb"])
        kinds["ifb"] = True
    except protocol.Refused:
        kinds["ifb"] = False
    return kinds


def _lacking_text(kinds: List[str]) -> str:
    text = "this host's kernel lacks what a line needs: %s" % ", ".join(kinds)
    if kinds == ["ifb"]:
        text += (
            ". Without IFB the upload could only be limited at each office host, which BranchLab does not do:"
            " load it there (modprobe ifb), or give a host that has it the role of a router"
        )
    return text


def _wire(asked: Asked, links: Dict[str, netlink.Link]) -> Optional[Tuple[str, str]]:
    """Bridge and port for wirefilter; None if none is needed. Refuses a delay that cannot be made here."""
    if asked.delay in (Delay(), line_tc.SEVERED):
        return None
    # A wire of ours is there only where netem is not.
    if not wirefilter.there(links) and _kinds()["netem"]:
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


def _built(device: str, mtu: int, asked: Asked) -> None:
    wanted = line_tc.rules(asked.office, asked.exempt)
    try:
        tool.run(["ip", "-batch", "-"], "link add %s type ifb\n" % line_tc.IFB)
    except protocol.Refused as refused:
        if "exists" in refused.text:
            raise protocol.Refused("busy", "%s appeared meanwhile" % line_tc.IFB, refused.tried) from refused
        raise protocol.Refused("unsupported", _lacking_text(["ifb"]), refused.tried) from refused
    wirefilter.quiet_ipv6(line_tc.IFB)
    lines = line_tc.tree(line_tc.IFB, asked.upload, asked.delay, mtu, "add", default=10)
    lines += line_tc.tree(device, asked.download, asked.delay, mtu, "add")
    lines += line_tc.filter_lines(device, wanted, False, 0)
    lines.append("qdisc add dev %s handle ffff: ingress" % device)
    tool.run(["tc", "-batch", "-"], "\n".join(lines) + "\n")
    # Only a device that is up takes packets: limited first, redirected then.
    tool.run(["ip", "link", "set", line_tc.IFB, "mtu", str(mtu), "up"])
    tool.run(["tc", "-batch", "-"], "\n".join(line_tc.filter_lines(device, wanted, True, 0)) + "\n")


def _changed(found: Found, asked: Asked) -> None:
    """Alter classes and queues where they are; exchange the filters only if the addresses differ."""
    device = str(found.device)
    mtu = found.links[device].mtu
    lines: List[str] = []
    for name, side, rates in (
        (device, found.download, asked.download),
        (line_tc.IFB, found.upload, asked.upload),
    ):
        shape = (rates.rate_bps is not None, line_tc.leaf_kind(asked.delay))
        if side is not None and side.shape == shape:
            lines += line_tc.tree(name, rates, asked.delay, mtu, "change")
            continue
        # Without its queue the class still limits.
        lines.append("qdisc del dev %s parent b1ab:10" % name)
        first, *rest = line_tc.tree(name, rates, asked.delay, mtu, "add")[1:]
        lines += [first.replace("class add", "class change"), *rest]
    wanted = line_tc.rules(asked.office, asked.exempt)
    if wanted != found.rules():
        for upload, filters in ((False, found.out_filters), (True, found.in_filters)):
            used = line_tc.turns_used(filters)
            turn = 1 if used == {0} else 0
            if used == {0, 1}:
                lines += line_tc.filter_removals(device, filters, upload, turn)
            lines += line_tc.filter_lines(device, wanted, upload, turn)
            lines += line_tc.filter_removals(device, filters, upload, 1 - turn)
    tool.run(["tc", "-batch", "-"], "\n".join(lines) + "\n")


def _lifted(ask: netlink.Socket, found: Found, device: str = "") -> List[str]:
    """Remove our queues and put back what stood there before; says what was put back.

    Where nothing of ours is there any more (and no `device` is given), it is left to the promise.
    """
    _taken_off(ask, found, device)
    if not (found.any or device):
        return []
    said = [line_before.put_back(ask, found.links, tree) for tree in line_before.kept()]
    return [text for text in said if text]


def _taken_off(ask: netlink.Socket, found: Found, device: str = "") -> bool:
    """Remove our queues and the IFB, wherever they are; `device` may have a bare ingress of ours."""
    names = {one.number: one.name for one in found.links.values()}
    lines: List[str] = []
    for one in found.queues:
        name = names.get(one.device)
        if name is None or name == line_tc.IFB:
            continue
        if one.parent == netlink.TC_INGRESS and (
            name in (device, found.device) or line_tc.IFB in found.links
        ):
            if _our_ingress(ask, found, name, one):
                lines.insert(0, "qdisc del dev %s ingress" % name)
        elif one.handle == netlink.ROOT_HANDLE:
            lines.append("qdisc del dev %s root" % name)
    if lines:
        _unless_gone(["tc", "-force", "-batch", "-"], "\n".join(lines) + "\n")
    if line_tc.IFB in found.links:
        _unless_gone(["ip", "link", "del", line_tc.IFB], "")
    return bool(lines) or line_tc.IFB in found.links


def _unless_gone(argv: List[str], text: str) -> None:
    """Run a removal; what somebody else has removed meanwhile is removed."""
    try:
        tool.run(argv, text)
    except protocol.Refused as refused:
        gone = ("Cannot find", "No such", "Invalid handle", "does not exist", "Cannot delete")
        if not any(word in refused.text for word in gone):
            raise
