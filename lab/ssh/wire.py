"""One SSH transport, over TCP, a UNIX socket, a proxy command or a jump host: silence is loss.

paramiko's own keep-alive asks for no answer, and so notices nothing.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import paramiko
from paramiko import common

from lab.errors import BadInput
from lab.ssh.target import Target

log = logging.getLogger(__name__)

TICK_S = 0.1
AFTER_S = 2.0
"""An address that has not answered for so long is not waited for alone: the name's next one is tried, too."""
WATCH_S = 1.0
END_S = 5.0
FIRST = 200
KEPT_ERRORS = 2000
KERNELS_MS = 5000
"""So much later than ours comes the system's own finding that nothing was acknowledged, which says less."""
CERTIFIED = "-cert-v01@openssh.com"

Link = socket.socket | paramiko.Channel


class Heard:
    """A socket or channel that counts what came in."""

    def __init__(self, link: Link, closing: Callable[[], None] = lambda: None) -> None:
        self._link, self._closing = link, closing
        self._closed = False  # paramiko looks at it while it ends
        self.received = 0
        self.ended = False
        """The other side hung up."""
        self.broke = ""
        """What the system said when it broke."""
        self.said = ""
        """What a proxy command complained of, once it has ended."""
        self.first = b""
        """The first bytes that came in: of what is no SSH server, they tell what it is."""
        self.ends: tuple[str, str] | None = None
        """This machine's address and the one that was dialled, of a TCP connection of its own"""

    def send(self, data: bytes) -> int:
        """Some of `data`; how much."""
        with self._noticing():
            return self._link.send(data)

    def recv(self, size: int) -> bytes:
        """Some bytes; none at the end."""
        with self._noticing():
            data = self._link.recv(size)
        self.ended = not data
        self.received += len(data)
        if len(self.first) < FIRST:
            self.first = (self.first + data)[:FIRST]
        return data

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            if error.errno is not None:  # the system's own: nobody acknowledged what was sent
                self.broke = f"the connection broke: {error.strerror}"
            raise
        except OSError as error:
            self.ended = isinstance(error, ConnectionError)
            self.broke = f"the connection broke: {error.strerror or error}"
            raise

    def settimeout(self, timeout_s: float | None) -> None:
        """As of a socket."""
        self._link.settimeout(timeout_s)

    def close(self) -> None:
        """End it. Idempotent."""
        self._closed = True
        self._link.close()
        self._closing()


CURVE, CURVE_BEFORE = "curve25519-sha256", "curve25519-sha256@libssh.org"
"""The name of RFC 8731, and what the same was called before; paramiko has only the old one."""
_KEX: dict[str, Any] = paramiko.Transport._kex_info  # type: ignore[attr-defined]


class Wire(paramiko.Transport):
    """A transport that ends, and says why in `fault`, when the other side is silent for too long."""

    _kex_info: ClassVar = _KEX | ({CURVE: _KEX[CURVE_BEFORE]} if CURVE_BEFORE in _KEX else {})
    _preferred_kex = tuple(
        one
        for name in paramiko.Transport._preferred_kex  # type: ignore[attr-defined]
        for one in ((CURVE, name) if name == CURVE_BEFORE else (name,))
    )

    def __init__(self, link: Heard) -> None:
        self.heard = link
        self.key_types: tuple[str, ...] = ()
        self._silent = ""
        self.one_time = False
        """A person answered what cannot be answered again: a code that is good once."""
        self.offered: dict[str, list[str]] = {}
        """What the other side can do, by kind; empty until it said so."""
        super().__init__(link)  # type: ignore[arg-type]  # it needs no more of a socket
        self._over = threading.Event()
        self._watch: threading.Thread | None = None

    @property
    def preferred_keys(self) -> Sequence[str]:
        """Types of host keys in the order in which they are asked for."""
        return self.key_types or super().preferred_keys

    @property
    def fault(self) -> str:
        """Why it ended, if nobody wanted it to."""
        return self._silent or ("" if self._over.is_set() else self.heard.broke)

    @property
    def over(self) -> bool:
        """Whether it has ended, or is about to: channels end a moment before paramiko says so."""
        return not self.is_active() or self.heard.ended or bool(self.heard.broke)

    @property
    def signatures(self) -> tuple[str, ...]:
        """Ways of signing that the server says it takes; empty where it does not say."""
        said = getattr(self, "server_extensions", {}).get("server-sig-algs", b"")
        text = said.decode("ascii", "replace") if isinstance(said, bytes) else str(said)
        return tuple(text.split(",")) if text else ()

    def watch(self, every_s: float, limit_s: float, name: str) -> None:
        """From now on ask for a sign of life every `every_s` of silence, and end after `limit_s` of it."""
        self.packetizer.set_keepalive(every_s, self._ask)
        self._watch = threading.Thread(
            target=self._watching, args=(limit_s,), name=f"keep-alive-{name}", daemon=True
        )
        self._watch.start()

    def close(self) -> None:
        """End it; whatever waits on it returns."""
        self._over.set()
        super().close()

    def _parse_kex_init(self, message: paramiko.Message) -> None:
        again = paramiko.Message(message.asbytes())
        self.offered = self._really_parse_kex_init(again)  # type: ignore[attr-defined]
        super()._parse_kex_init(message)  # type: ignore[misc]

    def _ask(self) -> None:
        message = paramiko.Message()
        message.add_byte(common.cMSG_GLOBAL_REQUEST)
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)  # any answer will do, a refusal above all
        self._send_user_message(message)  # type: ignore[attr-defined]

    def _watching(self, limit_s: float) -> None:
        """Turns are counted, not the clock: this process may itself have stood still."""
        before, silent_s = self.heard.received, 0.0
        while not self._over.wait(WATCH_S) and self.is_active():
            now = self.heard.received
            before, silent_s = now, 0.0 if now != before else silent_s + WATCH_S
            if silent_s >= limit_s:
                self._silent = f"nothing was heard from it for {limit_s:g} s"
                log.warning("%s: %s", threading.current_thread().name, self._silent)
                self.close()


def link(target: Target, timeout_s: float) -> Heard:
    """A TCP connection, UNIX socket or proxy command to `target`. Raises OSError."""
    if target.path:
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        return Heard(_opened(unix, target.path, timeout_s))
    if target.command:
        return by_command(target.command)
    found = socket.getaddrinfo(target.name, target.port, target.family, socket.SOCK_STREAM)
    where = (target.name, target.port)
    # The one that answered before comes first: of several, one may be dead, and that costs time each time.
    found.sort(key=lambda one: one[4] != _answered.get(where))
    sock, address = _first_to_answer(found, target.bind, timeout_s)
    _answered[where] = address
    heard = Heard(_told(sock, target))
    heard.ends = (_plain(sock.getsockname()[0]), _plain(address[0]))
    return heard


def _plain(address: str) -> str:
    """As a host writes it in SSH_CONNECTION: IPv4 within IPv6 as IPv4."""
    found = ipaddress.ip_address(address.partition("%")[0])
    return str(getattr(found, "ipv4_mapped", None) or found)


_answered: dict[tuple[str, int], Any] = {}
"""By name and port, the address that answered last."""


class NoSuchAddress(OSError):
    """The address from which to connect is none of this machine's."""


def _first_to_answer(found: Sequence[Any], bind: str, timeout_s: float) -> tuple[socket.socket, Any]:
    """A connection to one of these addresses, and which. Each has a while before the next is tried beside it.

    Raises OSError: what the last one said, or a TimeoutError where none said anything.
    """
    left, begun = list(found), dict[socket.socket, Any]()
    failed: OSError | None = None
    end, next_at = time.monotonic() + timeout_s, 0.0
    try:
        while left or begun:
            now = time.monotonic()
            if now >= end:
                raise failed or TimeoutError
            if left and (now >= next_at or not begun):
                family, kind, protocol, _, address = left.pop(0)
                next_at = now + AFTER_S
                try:
                    begun[_begun(socket.socket(family, kind, protocol), address, bind)] = address
                except OSError as error:
                    failed = failed or error
            for sock in _decided(begun, min(end, next_at if left else end) - now):
                address, number = begun.pop(sock), sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if not number:
                    return sock, address
                sock.close()
                failed = OSError(number, os.strerror(number))
                log.debug("%s: %s", address, failed)
    finally:
        for sock in begun:
            sock.close()
    raise failed or OSError("it has no address")


def _begun(sock: socket.socket, address: Any, bind: str) -> socket.socket:
    """The same, beginning to connect. Raises OSError."""
    try:
        if bind:
            _bind(sock, bind)
        sock.setblocking(False)
        with suppress(BlockingIOError):
            sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def _bind(sock: socket.socket, bind: str) -> None:
    try:
        sock.bind((bind, 0))
    except OSError as error:
        raise NoSuchAddress(error.errno, error.strerror or str(error)) from error


def _decided(begun: Iterable[socket.socket], limit_s: float) -> list[socket.socket]:
    """Those that are connected, or have failed; none when the time is over."""
    with selectors.DefaultSelector() as selector:
        for sock in begun:
            selector.register(sock, selectors.EVENT_WRITE, sock)
        return [key.data for key, _ in selector.select(max(0.0, limit_s))] if selector.get_map() else []


def _opened(sock: socket.socket, address: Any, timeout_s: float) -> socket.socket:
    sock.settimeout(timeout_s)
    try:
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def _told(tcp: socket.socket, target: Target) -> socket.socket:
    # Nagle's algorithm and delayed acknowledgement together cost 40 ms per request.
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(target.silent_s * 1000) + KERNELS_MS)
    return tcp


def by_command(command: str) -> Heard:
    """What a `ProxyCommand` connects to: it runs in the user's shell, as ssh does it. Raises BadInput, OSError."""
    if os.name == "nt":
        raise BadInput("ProxyCommand is not supported on Windows", advice="Use ProxyJump.")
    ours, theirs = socket.socketpair()
    said, errors = bytearray(), os.pipe()
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        process = subprocess.Popen(
            [shell, "-c", f"exec {command}"],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=errors[1],
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        os.close(errors[0])
        raise
    finally:
        theirs.close()
        os.close(errors[1])

    def drained() -> None:
        with os.fdopen(errors[0], "rb", buffering=0) as pipe:
            while data := pipe.read(4096):
                said.extend(data[: KEPT_ERRORS - len(said)])

    drain = threading.Thread(target=drained, name="proxy-command-stderr", daemon=True)
    drain.start()

    def ended() -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                with suppress(OSError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, number)
                    process.wait(END_S)
        drain.join(WATCH_S)  # whatever it left behind may hold its stderr for ever
        heard.said = plain(bytes(said)).strip()

    heard = Heard(ours, ended)
    return heard


def plain(data: bytes) -> str:
    """What a host said, without anything that a terminal would obey."""
    text = data.decode("utf-8", "replace")
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)[:2000]
