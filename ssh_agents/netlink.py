"""Asks the kernel about queues, filters and counters over netlink: exact numbers, no tool's rounded text.

Layouts are those of linux/rtnetlink.h, pkt_sched.h, pkt_cls.h and netfilter/nf_tables.h.
"""

import os
import socket
import struct
import threading
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

ROOT_HANDLE = 0xB1AB0000
"""Handle of our own HTB, on the device and on the IFB: how our line is told from anybody else's queue."""
LINE_CLASS = 0xB1AB0010
QUEUE_HANDLE = 0xB2AB0000
"""Handle of the byte-limited queue under it."""
NETEM_HANDLE = 0xB3AB0000
INGRESS_HANDLE = 0xFFFF0000
TC_ROOT = 0xFFFFFFFF
TC_INGRESS = 0xFFFFFFF1
TABLE = "branchlab"
"""The nftables table of our own, family inet."""

_AF_NETLINK = getattr(socket, "AF_NETLINK", 16)
HERE = hasattr(socket, "AF_NETLINK")
"""False where there is no such thing: Windows, macOS."""
_ROUTE, _NETFILTER = 0, 12
_REQUEST, _ACKNOWLEDGE, _DUMP, _DUMP_INTERRUPTED = 1, 4, 0x300, 0x10
_ERROR, _DONE = 2, 3
_GETLINK, _GETROUTE, _GETQDISC, _GETTCLASS, _GETTFILTER = 18, 26, 38, 42, 46
_NEW_NETWORK = 0x40000000
CREATE, EXCLUSIVE = 0x400, 0x200
"""Flags for `Socket.tell`: make it, and fail if it is there."""
_NFT, _GETTABLE, _GETOBJ, _INET = 10 << 8, 1, 19, 1


class Link(NamedTuple):
    """One network device. `master` is the number of the bridge that it is a port of, or 0."""

    number: int
    name: str
    kind: str
    up: bool
    mtu: int
    master: int


class Queue(NamedTuple):
    """One qdisc or class, with its counters since it was made. `device` is the number of its link."""

    device: int
    kind: str
    handle: int
    parent: int
    options: bytes
    sent_bytes: int
    dropped: int
    backlog_bytes: int


class Filter(NamedTuple):
    """One u32 filter: `keys` are (value, mask, offset); `acts` is True if it has an action of its own.

    `to` is the number of the device that a lone redirect sends to, else 0. `handle` names it within its preference.
    """

    pref: int
    protocol: int
    classid: int
    keys: Tuple[Tuple[int, int, int], ...]
    acts: bool
    to: int = 0
    handle: int = 0


class Netem(NamedTuple):
    """What netem does: seconds, a share, and how many packets it holds at most."""

    delay_s: float
    jitter_s: float
    loss: float
    limit_packets: int


class Socket:
    """One netlink socket; a context manager. Raises OSError where the kernel refuses or has no netlink."""

    def __init__(self, family: int) -> None:
        self._socket = socket.socket(_AF_NETLINK, socket.SOCK_RAW, family)
        self._socket.settimeout(5)
        self._sequence = 0

    def __enter__(self) -> "Socket":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def one(self, kind: int, body: bytes) -> bytes:
        """The body of the one answer to a question that is no dump."""
        bodies, _ = self._asked(kind, body, _REQUEST, 1)
        return bodies[0]

    def dump(self, kind: int, body: bytes) -> List[bytes]:
        """The bodies of all answers. Asked again when the kernel says that the list changed meanwhile."""
        for _ in range(10):
            bodies, whole = self._asked(kind, body, _REQUEST | _DUMP, 0)
            if whole:
                return bodies
        return bodies

    def tell(self, kind: int, body: bytes, how: int = 0) -> None:
        """Have the kernel change something, and wait for its word. `how` holds flags such as `CREATE`."""
        self._asked(kind, body, _REQUEST | _ACKNOWLEDGE | how, 0)

    def _asked(self, kind: int, body: bytes, how: int, enough: int) -> Tuple[List[bytes], bool]:
        self._sequence += 1
        head = struct.pack("=IHHII", 16 + len(body), kind, how, self._sequence, 0)
        self._socket.send(head + body)
        bodies: List[bytes] = []
        whole = True
        while True:
            for found, flags, sequence, data in _messages(self._socket.recv(1 << 18)):
                if sequence != self._sequence:
                    continue  # the rest of an answer that an earlier call gave up on
                whole = whole and not flags & _DUMP_INTERRUPTED
                if found == _DONE:
                    return bodies, whole
                if found == _ERROR:
                    code = -struct.unpack_from("=i", data)[0]
                    if code == 0:
                        return bodies, whole  # what was to be changed is changed
                    raise OSError(code, os.strerror(code))
                bodies.append(data)
                if len(bodies) == enough:
                    return bodies, whole


def _messages(data: bytes) -> Iterator[Tuple[int, int, int, bytes]]:
    while len(data) >= 16:
        length, kind, flags, sequence = struct.unpack_from("=IHHI", data)
        if length < 16 or length > len(data):
            return
        yield kind, flags, sequence, data[16:length]
        data = data[(length + 3) & ~3 :]


def attributes(data: bytes) -> Dict[int, bytes]:
    """Netlink attributes by number; of one that occurs twice, the last."""
    found: Dict[int, bytes] = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4 or length > len(data):
            break
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


def route_socket() -> Socket:
    """For links, queues and filters."""
    return Socket(_ROUTE)


def elsewhere() -> Socket:
    """A route socket into a new and empty network, which ends when the socket is closed. Raises OSError.

    A socket belongs to the network in which it was made; a thread of its own is moved there, and ends.
    """
    import ctypes  # not in every small Python, and needed here only

    made: List[Socket] = []
    troubles: List[OSError] = []

    def within() -> None:
        if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK):
            code = ctypes.get_errno()
            troubles.append(OSError(code, os.strerror(code)))
        else:
            made.append(route_socket())

    thread = threading.Thread(target=within)
    thread.start()
    thread.join()
    if not made:
        raise troubles[0] if troubles else OSError(0, "no socket could be made in a new network")
    return made[0]


def filter_socket() -> Socket:
    """For nftables."""
    return Socket(_NETFILTER)


def links(ask: Socket) -> Dict[str, Link]:
    """All devices of this network namespace by name."""
    found: Dict[str, Link] = {}
    for body in ask.dump(_GETLINK, struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0)):
        _, _, _, index, flags, _ = struct.unpack_from("=BBHiII", body)
        parts = attributes(body[16:])
        name = _text(parts.get(3, b""))
        kind = _text(attributes(parts.get(18, b"")).get(1, b""))
        found[name] = Link(
            index, name, kind, bool(flags & 1), _number(parts.get(4, b"")), _number(parts.get(10, b""))
        )
    return found


def route(ask: Socket, address: str) -> Tuple[int, bool]:
    """The number of the device by which packets to an address leave, and whether it is this host's own."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    body = struct.pack("=BBBBBBBBI", family, 8 * len(packed), 0, 0, 0, 0, 0, 0, 0)
    found = ask.one(_GETROUTE, body + struct.pack("=HH", 4 + len(packed), 1) + packed)
    return _number(attributes(found[12:]).get(4, b"")), found[7] == 2


def queues(ask: Socket) -> List[Queue]:
    """All qdiscs of all devices."""
    return [_queue(body) for body in ask.dump(_GETQDISC, _tcmsg())]


def classes(ask: Socket, index: int) -> List[Queue]:
    """The classes of one device."""
    return [_queue(body) for body in ask.dump(_GETTCLASS, _tcmsg(index))]


def filters(ask: Socket, index: int, parent: int) -> List[Filter]:
    """The u32 filters of one device under one qdisc (its handle)."""
    found: List[Filter] = []
    for body in ask.dump(_GETTFILTER, _tcmsg(index, parent)):
        info = struct.unpack_from("=I", body, 16)[0]
        parts = attributes(body[20:])
        options = attributes(parts.get(2, b""))
        if _text(parts.get(1, b"")) == "u32" and 5 in options:
            found.append(
                Filter(
                    info >> 16,
                    socket.ntohs(info & 0xFFFF),
                    _number(options.get(1, b"")),
                    _u32_keys(options[5]),
                    7 in options,
                    _redirected(options.get(7, b"")),
                    struct.unpack_from("=I", body, 8)[0],
                )
            )
    return found


def _tcmsg(index: int = 0, parent: int = 0) -> bytes:
    return struct.pack("=BBHiIII", 0, 0, 0, index, 0, parent, 0)


def _queue(body: bytes) -> Queue:
    _, _, _, index, handle, parent, _ = struct.unpack_from("=BBHiIII", body)
    parts = attributes(body[20:])
    figures = attributes(parts.get(7, b""))
    sent = struct.unpack_from("=Q", figures[1])[0] if len(figures.get(1, b"")) >= 8 else 0
    backlog, dropped = struct.unpack_from("=II", figures[3], 4) if len(figures.get(3, b"")) >= 12 else (0, 0)
    return Queue(index, _text(parts.get(1, b"")), handle, parent, parts.get(2, b""), sent, dropped, backlog)


def _u32_keys(data: bytes) -> Tuple[Tuple[int, int, int], ...]:
    keys = []
    for number in range(data[2]):
        mask, value, offset = struct.unpack_from("!II", data, 16 + 16 * number) + struct.unpack_from(
            "=i", data, 24 + 16 * number
        )
        keys.append((value, mask, offset))
    return tuple(sorted(keys))


def _redirected(data: bytes) -> int:
    """Where a filter's one action, `mirred egress redirect`, sends (struct tc_mirred); 0 for anything else."""
    actions = attributes(data)
    action = attributes(actions[1]) if list(actions) == [1] else {}
    parms = attributes(action.get(2, b"")).get(2, b"")
    if _text(action.get(1, b"")) != "mirred" or len(parms) < 28:
        return 0
    does, device = struct.unpack_from("=iI", parms, 20)
    return int(device) if does == 1 else 0  # TCA_EGRESS_REDIR


def htb_rate(options: bytes) -> Optional[int]:
    """Bytes per second of an HTB class, from its options; None if they are of another kind."""
    parts = attributes(options)
    if 6 in parts:
        return int(struct.unpack_from("=Q", parts[6])[0])
    return int(struct.unpack_from("=I", parts[1], 8)[0]) if len(parts.get(1, b"")) >= 12 else None


def htb_default(options: bytes) -> Optional[int]:
    """The number of the class for what no filter names, of an HTB; None if the options are of another kind."""
    init = attributes(options).get(2, b"")
    return int(struct.unpack_from("=I", init, 8)[0]) if len(init) >= 12 else None


def tbf_limit(options: bytes) -> Optional[int]:
    """Bytes that a TBF lets wait."""
    parms = attributes(options).get(1, b"")
    return int(struct.unpack_from("=I", parms, 24)[0]) if len(parms) >= 28 else None


def netem(options: bytes, ticks_per_s: float = 15_625_000.0) -> Netem:
    """What a netem does, from its options. Old kernels give the delay in scheduler ticks only."""
    latency, limit, loss, _, _, jitter = struct.unpack_from("=IIIIII", options)
    parts = attributes(options[24:])
    delay_s, jitter_s = latency / ticks_per_s, jitter / ticks_per_s
    if 10 in parts:
        delay_s = struct.unpack_from("=q", parts[10])[0] / 1e9
    if 11 in parts:
        jitter_s = struct.unpack_from("=q", parts[11])[0] / 1e9
    return Netem(delay_s, jitter_s, loss / 0xFFFFFFFF, limit)


def tables(ask: Socket) -> List[str]:
    """Names of the nftables tables of family inet."""
    bodies = ask.dump(_NFT | _GETTABLE, struct.pack("!BBH", _INET, 0, 0))
    return [_text(attributes(body[4:]).get(1, b"")) for body in bodies if body[:1] == bytes([_INET])]


def counters(ask: Socket, table: str = TABLE) -> Dict[str, Tuple[int, int]]:
    """Bytes and packets of each named counter of a table of family inet; empty if there is no such table."""
    name = table.encode() + b"\0"
    wanted = struct.pack("=HH", 4 + len(name), 1) + name + b"\0" * (-len(name) % 4)
    found: Dict[str, Tuple[int, int]] = {}
    for body in ask.dump(_NFT | _GETOBJ, struct.pack("!BBH", _INET, 0, 0) + wanted):
        parts = attributes(body[4:])
        figures = attributes(parts.get(4, b""))
        # Old kernels do not filter by table; type 1 is a counter, others are quotas and the like.
        if (
            _text(parts.get(1, b"")) == table
            and parts.get(3) == b"\0\0\0\1"
            and 1 in figures
            and 2 in figures
        ):
            found[_text(parts[2])] = (_big(figures[1]), _big(figures[2]))
    return found


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


def _number(data: bytes) -> int:
    return int(struct.unpack_from("=I", data)[0]) if len(data) >= 4 else 0


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")
