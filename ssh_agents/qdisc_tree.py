"""Somebody's queues on one device: read whole, told in words, rehearsed elsewhere, and put back byte for byte.

What the kernel dumps of a queue is, but for counters, what it takes to make one; so requests are built from
the dump, and no tool's rounding comes between. Whether that holds is never assumed: a tree counts as
replayable only after it was made once more on a device in an empty network and dumped there the same.
"""

import contextlib
import hashlib
import json
import os
import socket
import struct
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ssh_agents import netlink, protocol

QDISC, CLASS, FILTER = 36, 40, 44
"""Message types that make one (RTM_NEW…); the next number deletes (RTM_DEL…), the one after asks."""
PLAIN = ("pfifo", "bfifo", "prio", "tbf", "fq_codel", "fq", "sfq")
"""Queues whose options are taken back as they are dumped."""
BARE = ("pfifo_fast", "noqueue", "mq", "ingress")
"""Queues that take no options."""
OWN_CLASSES = ("htb",)
"""Queues whose classes somebody made; those of the others come with the queue."""
_KIND, _OPTIONS, _CHAIN = 1, 2, 11
_KNOWN = {0, _KIND, _OPTIONS, 3, 4, 7, 9, 12}
"""Attributes that carry no setting beside kind and options: statistics (3, 4, 7), padding, offload (told apart)."""
_OFFLOAD = 12
_CLASSID, _HASH, _DIVISOR, _SEL, _PCNT, _FLAGS = 1, 2, 4, 5, 9, 11
_MARKS_OF_HARDWARE = 0x1C
"""Of u32's flags, what the kernel says by itself: in hardware, not in hardware, verbose."""
_MOST_GAPS = 64
_NEWLINK, _LOOPBACK_PROTOCOL = 16, 0x0060
_NEVER = (
    struct.pack("!BBBBHHHhI", 1, 0, 2, 0, 0, 0, 0, 0, 0)
    + struct.pack("!IIiI", 1, 0, 0, 0)
    + struct.pack("!IIiI", 1, 1, 0, 0)
)
"""A u32 match that holds for no packet: a bit that is both 0 and 1."""

Item = Tuple[int, int, int, int, str, bytes]
"""Message type, parent, handle, info (a filter's preference and protocol), kind, options without counters."""


class Tree(NamedTuple):
    """All queues, classes and filters of one device that are not the kernel's own doing."""

    device: str
    items: Tuple[Item, ...]
    """Sorted; what the kernel made by itself (no handle) is among them, to be compared but never replayed."""
    troubles: Tuple[str, ...]
    """Why it cannot be replayed, in words; empty if every part can be read."""
    number: int = 0
    """the kernel's number of the device, which it keeps under another name; 0: not known"""

    @property
    def foreign(self) -> bool:
        """True if somebody set up any of it."""
        return any(kind == QDISC and handle for kind, _, handle, _, _, _ in self.items)


def read(ask: netlink.Socket, link: netlink.Link) -> Tree:
    """What stands on a device now."""
    items: List[Item] = []
    troubles: List[str] = []
    for body in ask.dump(QDISC + 2, _head(0, 0, 0, 0)):
        if struct.unpack_from("=i", body, 4)[0] == link.number:
            _take(QDISC, body, items, troubles)
    for body in ask.dump(CLASS + 2, _head(link.number, 0, 0, 0)):
        _take(CLASS, body, items, troubles)
    parents = {handle for kind, _, handle, _, _, _ in items if handle}
    for parent in sorted(parents):
        for body in ask.dump(FILTER + 2, _head(link.number, 0, parent, 0)):
            _take(FILTER, body, items, troubles)
    tree = Tree(link.name, tuple(sorted(items)), (), link.number)
    troubles += _numbering_troubles(tree)
    return tree._replace(troubles=tuple(dict.fromkeys(troubles)))


def words(tree: Tree) -> str:
    """The tree for people: `htb 1: with 2 classes and 3 filters (u32); tbf 10: under 1:10`."""
    told = []
    for kind, parent, handle, _, name, _ in sorted(
        tree.items, key=lambda item: (item[1] < netlink.TC_INGRESS, item[2])
    ):
        if kind != QDISC or not handle:
            continue
        major = handle >> 16
        classes = [
            one for one in tree.items if one[0] == CLASS and one[2] >> 16 == major and name in OWN_CLASSES
        ]
        rules = [
            one
            for one in tree.items
            if one[0] == FILTER and one[5] and one[1] >> 16 == major and not _is_table(one)
        ]
        parts = [_counted(len(classes), "class", "classes")] if classes else []
        if rules:
            parts.append(
                "%s (%s)"
                % (_counted(len(rules), "filter", "filters"), ", ".join(sorted({one[4] for one in rules})))
            )
        text = "%s %x:" % (name, major) + (" with " + " and ".join(parts) if parts else "")
        told.append(text if parent >= netlink.TC_INGRESS else "%s under %s" % (text, number(parent)))
    return "; ".join(told)


def number(handle: int) -> str:
    """A handle as tc writes it."""
    return "%x:%x" % (handle >> 16, handle & 0xFFFF) if handle & 0xFFFF else "%x:" % (handle >> 16)


def rehearsed(ask: netlink.Socket, tree: Tree, link: netlink.Link) -> str:
    """Make the tree on a device in an empty network and compare; why it would not come back, or nothing."""
    if tree.troubles:
        return "; ".join(tree.troubles)
    try:
        with netlink.elsewhere() as there:
            device = _stage(there, ask, link)
            replay(there, tree, device)
            found = read(there, device)
    except OSError as error:
        return "it cannot be rehearsed here: %s" % (error.strerror or error)
    except protocol.Refused as refused:
        return refused.text
    return difference(_set_up(tree), _set_up(found))


def _set_up(tree: Tree) -> Tree:
    """Without the root that the kernel gives a device of itself: another sort of device has another."""
    items = [item for item in tree.items if item[:3] != (QDISC, netlink.TC_ROOT, 0)]
    return tree._replace(items=tuple(items))


def difference(wanted: Tree, found: Tree) -> str:
    """Nothing if both are the same but for counters; else what differs first."""
    lacking, more = set(wanted.items) - set(found.items), set(found.items) - set(wanted.items)
    if not lacking and not more:
        return ""
    texts = ["%s differs or is missing" % _item(one) for one in sorted(lacking)[:2]]
    return "; ".join(texts or ["%s is there too" % _item(one) for one in sorted(more)[:2]])


def part_of(tree: Tree, whole: Tree) -> bool:
    """True if a tree is what replaying `whole` leaves when it is cut off: nothing in it that is not of it."""

    def names(one: Tree) -> Set[Tuple[int, int, int, str]]:
        return {
            item[:3] + item[4:5]
            for item in one.items
            if not _is_filler(item) and (item[0] != FILTER or item[5])
        }

    return names(tree) <= names(whole)


def replay(ask: netlink.Socket, tree: Tree, link: netlink.Link) -> None:
    """Make the tree on a device that has the kernel's own queue. Refuses with `failed`."""
    for kind, body, how in _requests(tree, link.number):
        try:
            ask.tell(kind, body, how)
        except OSError as error:
            name = _text(netlink.attributes(body[20:]).get(_KIND, b""))
            text = "the kernel does not take %s back: %s" % (name, error.strerror or error)
            raise protocol.Refused("failed", text, "message %d: %s" % (kind, body.hex())) from error


def remove(ask: netlink.Socket, tree: Tree, link: netlink.Link) -> None:
    """Take the tree's queues off its device, which then has the kernel's own. What is gone is gone."""
    for kind, parent, handle, _, name, _ in tree.items:
        if kind == QDISC and handle and parent >= netlink.TC_INGRESS:
            with contextlib.suppress(FileNotFoundError):
                ask.tell(
                    QDISC + 1,
                    _head(link.number, handle, parent, 0) + _attribute(_KIND, name.encode() + b"\0"),
                )


def saved(tree: Tree) -> Dict[str, Any]:
    """The tree as it is written down; see `restored`."""
    items = [[*item[:5], item[5].hex()] for item in tree.items]
    return {"device": tree.device, "number": tree.number, "items": items, "words": words(tree)}


def fingerprint(tree: Tree) -> str:
    """A short text that is the same for the same tree on the same device, and for no other."""
    text = json.dumps([_set_up(tree).device, saved(_set_up(tree))["items"]])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def restored(entry: Dict[str, Any]) -> Tree:
    """The tree that was written down."""
    items = [(a, b, c, d, str(name), bytes.fromhex(options)) for a, b, c, d, name, options in entry["items"]]
    return Tree(str(entry["device"]), tuple(items), (), int(entry.get("number", 0)))


# --- from the kernel's dump


def _take(kind: int, body: bytes, items: List[Item], troubles: List[str]) -> None:
    _, _, _, _, handle, parent, info = struct.unpack_from("=BBHiIII", body)
    parts = netlink.attributes(body[20:])
    name = _text(parts.get(_KIND, b""))
    found = (kind, parent, handle, info if kind == FILTER else 0, name, _without_counters(kind, name, parts))
    items.append(found)
    what = _item(found)
    if kind == FILTER:
        troubles += _filter_troubles(what, name, parts)
        return
    if kind == QDISC and handle and name not in (*PLAIN, *BARE, *OWN_CLASSES):
        troubles.append("%s is of a kind that BranchLab cannot put back" % what)
    if set(parts) - _KNOWN or parts.get(_OFFLOAD, b"\0") != b"\0":
        troubles.append(
            "%s has settings that BranchLab cannot read (size table, shared block, offload)" % what
        )


def _without_counters(kind: int, name: str, parts: Dict[int, bytes]) -> bytes:
    options = parts.get(_OPTIONS, b"")
    if kind == FILTER:
        kept = {one: data for one, data in netlink.attributes(options).items() if one != _PCNT}
        if _FLAGS in kept:
            kept[_FLAGS] = struct.pack("=I", struct.unpack("=I", kept[_FLAGS])[0] & ~_MARKS_OF_HARDWARE)
        return b"".join(_attribute(one, data) for one, data in sorted(kept.items()))
    if kind == QDISC and name == "htb" and len(netlink.attributes(options).get(2, b"")) == 20:
        # Of HTB's own: the version as a request has it, and no packets that went past the classes.
        given = netlink.attributes(options)
        version, *settings = struct.unpack("=5I", given[2])
        given[2] = struct.pack("=5I", version >> 16 or version, *settings[:3], 0)
        return b"".join(_attribute(one, data) for one, data in sorted(given.items()))
    return options


def _filter_troubles(what: str, name: str, parts: Dict[int, bytes]) -> List[str]:
    if name != "u32":
        return ["%s is of a kind that BranchLab cannot put back" % what]
    options = netlink.attributes(parts.get(_OPTIONS, b""))
    chain = parts.get(_CHAIN, b"\0\0\0\0")
    if chain != b"\0\0\0\0" or set(parts) - _KNOWN - {_CHAIN}:
        return ["%s is in a chain, or has settings that BranchLab cannot read" % what]
    if not options:
        return []  # the head of a preference, made with its first filter
    handle_is_root = _DIVISOR in options and set(options) <= {_DIVISOR, _FLAGS}
    if handle_is_root and options[_DIVISOR] == b"\1\0\0\0":
        return []
    if {_SEL, _CLASSID} <= set(options) <= {_SEL, _CLASSID, _HASH, _FLAGS, _PCNT}:
        return []
    return ["%s does more than match and name a class" % what]


def _is_table(item: Item) -> bool:
    return _DIVISOR in netlink.attributes(item[5])


def _is_filler(item: Item) -> bool:
    return (
        item[0] == FILTER and item[3] & 0xFFFF == socket.htons(_LOOPBACK_PROTOCOL) and item[3] >> 16 >= 60_000
    )


def _item(item: Item) -> str:
    kind, parent, handle, info, name, _ = item
    if kind == FILTER:
        return "filter %s at %s (preference %d)" % (name, number(parent), info >> 16)
    return "%s %s %s" % ("class" if kind == CLASS else "queue", name, number(handle))


def _counted(count: int, one: str, more: str) -> str:
    return "%d %s" % (count, one if count == 1 else more)


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


# --- to the kernel


def _head(index: int, handle: int, parent: int, info: int) -> bytes:
    return struct.pack("=BBHiIII", 0, 0, 0, index, handle, parent, info)


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def _requests(tree: Tree, index: int) -> Iterator[Tuple[int, bytes, int]]:
    """What makes the tree, in order: each queue, its classes, its filters, then the queues below."""
    queues = [item for item in tree.items if item[0] == QDISC and item[2]]
    done: Set[int] = set()
    while len(done) < len(queues):
        ready = [
            one
            for one in queues
            if one[2] not in done and (one[1] >= netlink.TC_INGRESS or one[1] & 0xFFFF0000 in done)
        ]
        if not ready:
            raise protocol.Refused("failed", "the tree has a queue whose parent is not in it")
        for queue in ready:
            done.add(queue[2])
            yield _made(queue, index)
            if queue[4] in OWN_CLASSES:
                for one in _classes_in_order(tree, queue[2]):
                    yield _made(one, index)
            yield from _filter_requests(tree, queue[2], index)


def _made(item: Item, index: int) -> Tuple[int, bytes, int]:
    kind, parent, handle, info, name, options = item
    body = _head(index, handle, parent, info) + _attribute(_KIND, name.encode() + b"\0")
    if options and name not in BARE:
        body += _attribute(_OPTIONS, options)
    return kind, body, netlink.CREATE | netlink.EXCLUSIVE


def _classes_in_order(tree: Tree, handle: int) -> List[Item]:
    """A queue's classes, each after its parent."""
    left = [item for item in tree.items if item[0] == CLASS and item[2] & 0xFFFF0000 == handle]
    known, ordered = {handle, netlink.TC_ROOT}, []
    while left:
        ready = [item for item in left if item[1] in known]
        if not ready:
            raise protocol.Refused("failed", "the tree has a class whose parent is not in it")
        ordered += ready
        known |= {item[2] for item in ready}
        left = [item for item in left if item not in ready]
    return ordered


def _tables(tree: Tree, handle: int) -> List[Tuple[int, int, int]]:
    """The first table (its number), parent and info of each preference of a queue, in the order of making."""
    return sorted(
        (item[2] >> 20, item[1], item[3])
        for item in tree.items
        if item[0] == FILTER and item[1] & 0xFFFF0000 == handle and _is_table(item)
    )


def _filter_requests(tree: Tree, handle: int, index: int) -> Iterator[Tuple[int, bytes, int]]:
    """Filters by their tables' numbers, which the kernel gives out in turn: a gap is filled, then opened again."""
    fillers: List[Tuple[int, bytes]] = []
    following = 0x800
    for table, parent, info in _tables(tree, handle):
        while following < table:
            head = _head(index, 0, parent, (60_000 + len(fillers)) << 16 | socket.htons(_LOOPBACK_PROTOCOL))
            body = head + _attribute(_KIND, b"u32\0")
            never = _attribute(
                _OPTIONS, _attribute(_CLASSID, struct.pack("=I", handle)) + _attribute(_SEL, _NEVER)
            )
            yield FILTER, body + never, netlink.CREATE | netlink.EXCLUSIVE
            fillers.append((FILTER + 1, body))
            following += 1
        for item in tree.items:
            if item[:2] == (FILTER, parent) and item[3] == info and item[5] and not _is_table(item):
                yield _made(item, index)
        following += 1
    for kind, body in fillers:
        yield kind, body, 0


def _numbering_troubles(tree: Tree) -> List[str]:
    found = []
    for handle in sorted({item[2] for item in tree.items if item[0] == QDISC}):
        tables = _tables(tree, handle)
        if len({table for table, _, _ in tables}) < len(tables):
            # The kernel lists a table for each parent that has filters of its preference.
            found.append("filters of one preference stand at several classes of %s" % number(handle))
        elif tables and tables[-1][0] - 0x800 - len(tables) > _MOST_GAPS:
            found.append(
                "filters at %s were exchanged too often to be numbered the same again" % number(handle)
            )
    return found


def _stage(there: netlink.Socket, ask: netlink.Socket, link: netlink.Link) -> netlink.Link:
    """A device in the empty network, alike in what queues ask of it: packet size, length and number of queues."""
    alike = b""
    for body in ask.dump(_NEWLINK + 2, struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0)):
        if struct.unpack_from("=i", body, 4)[0] == link.number:
            parts = netlink.attributes(body[16:])
            alike = b"".join(_attribute(one, parts[one]) for one in (4, 13, 31) if one in parts)
    trouble: Optional[OSError] = None
    for kind in (b"dummy", b"ifb"):
        body = struct.pack("=BBHiII", 0, 0, 0, 0, 1, 1) + _attribute(3, b"rehearsal\0") + alike
        try:
            there.tell(
                _NEWLINK, body + _attribute(18, _attribute(1, kind)), netlink.CREATE | netlink.EXCLUSIVE
            )
        except OSError as error:
            trouble = error
        else:
            return netlink.links(there)["rehearsal"]
    raise trouble or OSError(0, os.strerror(0))
