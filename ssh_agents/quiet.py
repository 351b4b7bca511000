"""Waits until nothing is under way between the lab's hosts: connections, the line's queues, counters."""

import os
import socket
import struct
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from ssh_agents import given, netlink, protocol

LISTEN, _TIME_WAIT, _ESTABLISHED = 0x0A, 0x06, 0x01
_LOOK_S = 0.02


class Connection(NamedTuple):
    """One line of /proc/net/tcp."""

    here: str
    here_port: int
    far: str
    far_port: int
    state: int
    waiting: int = 0
    """bytes that were not sent, not acknowledged or not read yet"""

    def __str__(self) -> str:
        return "%s port %d with %s port %d" % (self.here, self.here_port, self.far, self.far_port)


def wait(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Until for `still_s` seconds on end no connection of `ports` with `peers` (none: anybody) exists, the
    line's queues are empty and no counter moves. `quiet` is False if that did not come within `timeout_s`.
    With the peers `keeps` a connection may stay open while nothing waits in it: a proxy may hold its own for a minute.

    Counters of ours are only there for those who may read them. Refuses where there is no /proc/net/tcp."""
    if not os.path.exists("/proc/net/tcp"):
        raise protocol.Refused("unsupported", "connections cannot be looked at: not on this system")
    peers = {given.address(text) for text in protocol.need_strings(args, "peers", [])}
    keeps = {given.address(text) for text in protocol.need_strings(args, "keeps", [])}
    ports = {given.port(port) for port in protocol.need(args, "ports", list, [])}
    still_s = protocol.need(args, "still_s", float, 0.2)
    timeout_s = protocol.need(args, "timeout_s", float, 10.0)
    with netlink.route_socket() as route, netlink.filter_socket() as nft:
        return _waited(call, lambda: _look(route, nft, peers, ports, keeps), still_s, timeout_s)


def _waited(call: protocol.Call, look: Any, still_s: float, timeout_s: float) -> Dict[str, Any]:
    began = since = time.monotonic()
    before: Optional[Dict[str, Tuple[int, int]]] = None
    why = ""
    while True:
        trouble, counters = look()
        now = time.monotonic()
        if trouble or counters != before:
            why = trouble or "bytes arrived"
            before, since = counters, now
        if now - since >= still_s:
            return {"quiet": True, "waited_s": now - began, "why": ""}
        if now - began >= timeout_s:
            return {"quiet": False, "waited_s": now - began, "why": why or "not long enough without traffic"}
        if call.wait_cancelled(_LOOK_S):
            raise protocol.Refused("cancelled", "waiting for quiet was cancelled")


def _look(
    route: netlink.Socket, nft: netlink.Socket, peers: Set[str], ports: Set[int], keeps: Set[str]
) -> Tuple[str, Dict[str, Tuple[int, int]]]:
    """What is under way (empty: nothing), and all counters."""
    try:
        counters = netlink.counters(nft)
    except PermissionError:
        counters = {}  # without rights none were made here either
    waiting = backlog(netlink.queues(route))
    if waiting:
        return "%d bytes wait in the line's queues" % waiting, counters
    open_ones = [one for one in busy(open_now(), peers, ports) if not (one.far in keeps and idle(one))]
    return ("a connection is open: " + str(open_ones[0]) if open_ones else ""), counters


def backlog(queues: List[netlink.Queue]) -> int:
    """Bytes that wait in the line's own queues; 0 without a line."""
    return sum(
        one.backlog_bytes for one in queues if one.handle in (netlink.QUEUE_HANDLE, netlink.NETEM_HANDLE)
    )


def busy(found: List[Connection], peers: Set[str], ports: Set[int]) -> List[Connection]:
    """Connections of these ports, at either end, with these peers (none: anybody), not over yet."""
    return [
        one
        for one in found
        if not over(one) and ports & {one.here_port, one.far_port} and (not peers or one.far in peers)
    ]


def idle(one: Connection) -> bool:
    """True for an open connection in which nothing is under way, as far as this end can tell."""
    return one.state == _ESTABLISHED and not one.waiting


def connections(text: str) -> List[Connection]:
    """From the text of /proc/net/tcp or tcp6."""
    found = []
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) > 4:
            here, far = _end(words[1]), _end(words[2])
            waiting = sum(int(part, 16) for part in words[4].split(":"))
            found.append(Connection(here[0], here[1], far[0], far[1], int(words[3], 16), waiting))
    return found


def over(one: Connection) -> bool:
    """True for what only listens, and for what has ended and only waits for stragglers."""
    return one.state in (LISTEN, _TIME_WAIT)


def open_now(protocol: str = "tcp") -> List[Connection]:
    """All sockets of this host's network of this protocol (tcp, udp), listening or unconnected ones among them."""
    found: List[Connection] = []
    for path in ("/proc/net/" + protocol, "/proc/net/%s6" % protocol):
        try:
            with open(path) as file:
                found += connections(file.read())
        except FileNotFoundError:
            continue  # a kernel without IPv6
    return found


def _end(word: str) -> Tuple[str, int]:
    """Address and port from `0100007F:0016`: 32-bit words in the machine's own byte order."""
    digits, port = word.split(":")
    packed = b"".join(
        struct.pack("=I" if sys.byteorder == "little" else ">I", int(digits[place : place + 8], 16))
        for place in range(0, len(digits), 8)
    )
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return given.address(socket.inet_ntop(family, packed)), int(port, 16)
