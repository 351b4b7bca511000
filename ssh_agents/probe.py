"""Measures a line from its ends: rate by the receiver's clock, round trips by many small packets under way.

One TCP connection per transfer. The asker's first line says direction, bytes and a pause before the first
byte; the receiver of an upload answers with its figures as one line of JSON. Asked `seen`, the other end
tells from which address the connection came.
"""

import contextlib
import json
import select
import socket
import statistics
import struct
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ssh_agents import given, protocol

PACKET = 1448
"""TCP payload of a full packet on Ethernet, with time stamps."""
_LEFT_OUT = 2 * PACKET
"""After idle time one packet passes at once, a second may be under way: they say nothing of the rate."""
_MOST = 1 << 30
_STEP_S = 0.2
_IDLE_S = 60.0
_CONNECT_S, _SEEN_S = 30.0, 10.0


class Arrivals(NamedTuple):
    """What arrived when: seconds on the receiver's clock, and bytes so far, after each read."""

    times: List[float]
    sizes: List[int]


def serve(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Answer probes on `address`, TCP and UDP on one `port` (0: any), until cancelled. Says "listening"."""
    address, port = protocol.need(args, "address", str), protocol.need(args, "port", int, 0)
    tcp, udp = _listeners(address, port)
    with tcp, udp:
        call.say("listening", {"port": tcp.getsockname()[1]})
        threads: List[threading.Thread] = []
        while not call.cancelled():
            ready, _, _ = select.select([tcp, udp], [], [], _STEP_S)
            if udp in ready:
                _echo(udp)
            if tcp in ready:
                line, _ = tcp.accept()
                threads = [thread for thread in threads if thread.is_alive()]
                threads.append(threading.Thread(target=_answer, args=(line, call), daemon=True))
                threads[-1].start()
        for thread in threads:
            thread.join(1)
    return {}


def fetch(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Transfer `bytes` "down" or "up", and say how long that took on the receiver's clock.

    `seconds` is from the first to the last byte, `rate_bps` payload without the first two packets (None if
    there was no more), `first_s` from asking to the first byte (downloads only). `pause_s`: silence before.
    """
    size, direction = protocol.need(args, "bytes", int), protocol.need(args, "direction", str)
    pause_s = protocol.need(args, "pause_s", float, 0.0)
    if direction not in ("down", "up") or not 0 < size <= _MOST or not 0 <= pause_s <= 60:
        raise protocol.Refused(
            "bad-request", "a probe is up or down, of 1 to %d bytes, after at most 60 s" % _MOST
        )
    with _connected(args) as line:
        try:
            line.sendall(b"%s %d %.3f\n" % (direction.encode(), size, pause_s))
            if direction == "down":
                asked = time.monotonic()
                return figures(_received(line, size, call), asked + pause_s)
            if call.wait_cancelled(pause_s):
                raise protocol.Refused("cancelled", "the probe was cancelled")
            _sent(line, size, call)
            return dict(json.loads(_line(line, call)))
        except (OSError, ValueError) as error:
            raise protocol.Refused("failed", "the probe broke off: %s" % error, _target(args)) from error


def seen(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Connect to whoever serves probes at `address` and `port`: `seen` is the address under which it sees this host.

    `own` is the address that this host took; behind NAT the two differ.
    """
    with _connected(args, _SEEN_S) as line:
        try:
            line.sendall(b"seen 1 0\n")
            told = given.address(json.loads(_line(line, call))["address"])
            own = given.address(line.getsockname()[0].partition("%")[0])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise protocol.Refused("failed", "the probe broke off: %s" % error, _target(args)) from error
    return {"seen": told, "own": own}


def ping(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Send `count` packets of `size` UDP bytes, one each `interval_s` whatever comes back; time the echoes.

    Waits `timeout_s` for late ones. Seconds; None where nothing came back.
    """
    count, size = protocol.need(args, "count", int, 200), protocol.need(args, "size", int, 64)
    interval_s = protocol.need(args, "interval_s", float, 0.01)
    timeout_s = protocol.need(args, "timeout_s", float, 2.0)
    if not (0 < count <= 100_000 and 12 <= size <= 1472 and 0 < interval_s <= 60):
        raise protocol.Refused("bad-request", "pings are 1 to 100000, of 12 to 1472 bytes, up to 60 s apart")
    family, where = _resolved(args)
    with socket.socket(family, socket.SOCK_DGRAM) as udp:
        if args.get("source"):
            udp.bind((protocol.need(args, "source", str), 0))
        udp.connect(where)
        trips = _trips(udp, count, size, interval_s, timeout_s, call)
    return {"sent": count, "received": len(trips), **spread(trips)}


def resolve(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `probe.resolve`: the addresses that `name` has for this host's programs, sorted; none if unknown."""
    name = protocol.need(args, "name", str)
    found: List[Any] = []
    # First as programs with the usual flag see it: no IPv6 where this host has none.
    for flags in (socket.AI_ADDRCONFIG, 0):
        with contextlib.suppress(OSError, UnicodeError):
            found = found or socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=flags)
    return {"addresses": sorted({str(one[4][0]) for one in found})}


def figures(arrivals: Arrivals, asked: Optional[float] = None) -> Dict[str, Any]:
    """What a receiver can say about a transfer."""
    times, sizes = arrivals
    rate = None
    for when, so_far in zip(times, sizes):  # noqa: B905 - Python 3.8
        if so_far >= _LEFT_OUT:
            if times[-1] > when:
                rate = (sizes[-1] - so_far) * 8 / (times[-1] - when)
            break
    return {
        "bytes": sizes[-1],
        "seconds": times[-1] - times[0],
        "rate_bps": rate,
        "first_s": None if asked is None else times[0] - asked,
        "steps": len(times),
    }


def spread(trips: List[float]) -> Dict[str, Optional[float]]:
    """The middle and the edges of round trips."""
    if not trips:
        return dict.fromkeys(("min_s", "p5_s", "median_s", "p95_s", "max_s"))
    found = sorted(trips)
    last = len(found) - 1
    return {
        "min_s": found[0],
        "p5_s": found[round(0.05 * last)],
        "median_s": statistics.median(found),
        "p95_s": found[round(0.95 * last)],
        "max_s": found[-1],
    }


def _listeners(address: str, port: int) -> Tuple[socket.socket, socket.socket]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for _ in range(20):
        tcp, udp = socket.socket(family, socket.SOCK_STREAM), socket.socket(family, socket.SOCK_DGRAM)
        try:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.bind((address, port))
            udp.bind((address, tcp.getsockname()[1]))
            tcp.listen(16)
        except OSError as error:
            tcp.close()
            udp.close()
            # Any port will do, but that one is taken by somebody's UDP: take another.
            trouble = error
            if port:
                break
        else:
            return tcp, udp
    raise protocol.Refused("failed", "cannot listen on %s port %d: %s" % (address, port, trouble), address)


def _echo(udp: socket.socket) -> None:
    try:
        data, where = udp.recvfrom(2048)
        udp.sendto(data, where)
    except OSError:
        pass  # the sender has gone; its own count tells


def _answer(line: socket.socket, call: protocol.Call) -> None:
    with line:
        line.settimeout(_STEP_S)
        try:
            direction, size, pause = _line(line, call).split()
            if direction == "seen":
                address = line.getpeername()[0].partition("%")[0]
                line.sendall(json.dumps({"address": address}).encode() + b"\n")
            elif direction == "down":
                if not call.wait_cancelled(min(60.0, float(pause))):
                    _sent(line, min(int(size), _MOST), call)
            else:
                found = figures(_received(line, min(int(size), _MOST), call))
                line.sendall(json.dumps(found).encode() + b"\n")
        except (OSError, ValueError, protocol.Refused):
            return  # the asker sees the connection end, and reports it


def _resolved(args: Dict[str, Any]) -> Tuple[int, Any]:
    address, port = protocol.need(args, "address", str), protocol.need(args, "port", int)
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    except (OSError, OverflowError) as error:
        raise protocol.Refused("failed", "%s is no address: %s" % (address, error), _target(args)) from error
    return found[0], found[4]


def _connected(args: Dict[str, Any], within_s: float = _CONNECT_S) -> socket.socket:
    family, where = _resolved(args)
    line = socket.socket(family, socket.SOCK_STREAM)
    try:
        line.settimeout(within_s)
        if args.get("source"):
            line.bind((protocol.need(args, "source", str), 0))
        line.connect(where)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.settimeout(_STEP_S)
    except OSError as error:
        line.close()
        raise protocol.Refused(
            "failed", "nobody answers probes at %s: %s" % (_target(args), error)
        ) from error
    return line


def _target(args: Dict[str, Any]) -> str:
    return "%s port %s" % (args.get("address"), args.get("port"))


def _line(line: socket.socket, call: protocol.Call) -> str:
    """One line of text. Read byte by byte: what follows belongs to the transfer."""
    text = b""
    end = time.monotonic() + _IDLE_S
    while not text.endswith(b"\n"):
        data = _read(line, 1, call, end)
        if not data or len(text) > 1000:
            raise OSError("the other end closed the connection")
        text += data
    return text.decode("ascii", "replace")


def _read(line: socket.socket, size: int, call: protocol.Call, end: float) -> bytes:
    while True:
        try:
            return line.recv(size)
        except socket.timeout:
            if call.cancelled():
                raise protocol.Refused("cancelled", "the probe was cancelled") from None
            if time.monotonic() > end:
                raise OSError("no byte came for %d s" % _IDLE_S) from None


def _received(line: socket.socket, size: int, call: protocol.Call) -> Arrivals:
    times: List[float] = []
    sizes: List[int] = []
    so_far = 0
    while so_far < size:
        data = _read(line, 1 << 16, call, time.monotonic() + _IDLE_S)
        if not data:
            raise OSError("it ended after %d of %d bytes" % (so_far, size))
        so_far += len(data)
        times.append(time.monotonic())
        sizes.append(so_far)
    return Arrivals(times, sizes)


def _sent(line: socket.socket, size: int, call: protocol.Call) -> None:
    block = memoryview(bytes(1 << 16))
    end = time.monotonic() + _IDLE_S
    while size:
        try:
            size -= line.send(block[: min(size, len(block))])
            end = time.monotonic() + _IDLE_S
        except socket.timeout:
            if call.cancelled():
                raise protocol.Refused("cancelled", "the probe was cancelled") from None
            if time.monotonic() > end:
                raise OSError("no byte was taken for %d s" % _IDLE_S) from None


def _trips(
    udp: socket.socket, count: int, size: int, interval_s: float, timeout_s: float, call: protocol.Call
) -> List[float]:
    udp.setblocking(False)
    left: Dict[int, float] = {}
    trips: List[float] = []
    due, number = time.monotonic(), 0
    while number < count or left:
        now = time.monotonic()
        if number < count and now >= due:
            left[number] = time.monotonic()
            with contextlib.suppress(OSError):  # then it is counted as sent, and as lost
                udp.send(struct.pack("!II", 0xB1AB, number).ljust(size, b"\0"))
            number, due = number + 1, due + interval_s
            continue
        until = due if number < count else max(left.values()) + timeout_s
        if number == count and now >= until:
            break
        if call.cancelled():
            raise protocol.Refused("cancelled", "the probe was cancelled")
        if select.select([udp], [], [], min(_STEP_S, max(0.0, until - now)))[0]:
            _take(udp, left, trips)
    return trips


def _take(udp: socket.socket, left: Dict[int, float], trips: List[float]) -> None:
    try:
        data = udp.recv(2048)
    except OSError:
        return  # refused or gone: its packets stay lost
    now = time.monotonic()
    if len(data) >= 8:
        mark, number = struct.unpack_from("!II", data)
        if mark == 0xB1AB and number in left:
            trips.append(now - left.pop(number))
