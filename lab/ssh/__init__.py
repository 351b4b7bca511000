"""Connects to a host over SSH, verifies its key, starts programs and sends files. paramiko is only here."""

from __future__ import annotations

import contextlib
import logging
import posixpath
import secrets
import shlex
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import paramiko

from lab.errors import ConnectionLost, HostTrouble, HostUnreachable
from lab.model import Host
from lab.ssh.hostkeys import expected, prefer, verify
from lab.ssh.login import authenticate
from lab.ssh.target import Target, resolve
from lab.stop import Stop

log = logging.getLogger(__name__)
# It logs tracebacks of errors that are translated here, and without any handler they would reach stderr.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

CONNECT_S = 15.0
KEEP_ALIVE_S = 15
SILENT_MS = 60_000
"""A TCP connection whose bytes are not acknowledged for this long is lost (Linux: TCP_USER_TIMEOUT)."""
KEPT_ERRORS = 65_536
PIECE = 65_536
END_OF_INPUT = b"\4"
RAW_MODES = (34, 35, 36, 38, 39, 40, 50, 51, 53, 54, 55, 56, 59, 70, 72)
"""What a terminal must not do (RFC 4254, 8): change line ends, stop, make signals, edit, echo, translate output."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a short program ended; `exit` is None if it did not end in time or by a signal."""

    exit: int | None
    out: bytes
    err: str


def connect(
    host: Host,
    *,
    known_hosts: Sequence[Path] | None = None,
    config: Path | None = None,
    timeout_s: float = CONNECT_S,
    stop: Stop | None = None,
) -> Connection:
    """A verified, authenticated connection. `known_hosts` and `config` replace the user's own files.

    Raises HostKeyRefused, AuthenticationRefused, HostUnreachable, BadInput, Stopped.
    """
    target = resolve(host, config)
    keys = expected(host, target, known_hosts)
    end = time.monotonic() + timeout_s
    jump: Connection | None = None
    if target.jump:
        first, _, rest = target.jump.rpartition(",")
        via = Host(name=f"{host.name} (by way of {rest})", role=host.role, ssh=rest)
        if first:
            log.warning("%s: only the last of the jump hosts %s is used", host.name, target.jump)
        jump = connect(via, known_hosts=known_hosts, config=config, timeout_s=timeout_s, stop=stop)
    transport: paramiko.Transport | None = None
    try:
        if stop is not None:
            stop.check()
        transport = paramiko.Transport(_socket(target, timeout_s, jump))
        transport.banner_timeout = transport.handshake_timeout = max(1.0, end - time.monotonic())
        transport.auth_timeout = timeout_s
        prefer(transport, keys)
        transport.start_client(timeout=timeout_s)
        verify(host, target, transport, keys)
        if stop is not None:
            stop.check()
        authenticate(host, target, transport)
        transport.set_keepalive(KEEP_ALIVE_S)
    except BaseException as error:
        if transport is not None:
            transport.close()
        if jump is not None:
            jump.close()
        if isinstance(error, (OSError, EOFError, paramiko.SSHException)):
            raise _unreachable(host, target, error) from error
        raise
    return Connection(host, target, transport, jump)


def _socket(
    target: Target, timeout_s: float, jump: Connection | None
) -> socket.socket | paramiko.Channel | paramiko.ProxyCommand:
    if target.path:
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        unix.settimeout(timeout_s)
        try:
            unix.connect(target.path)
        except BaseException:
            unix.close()
            raise
        return unix
    if jump is not None:
        return jump.tunnel(target.name, target.port)
    if target.command:
        return paramiko.ProxyCommand(target.command)
    tcp = socket.create_connection((target.name, target.port), timeout=timeout_s)
    # Nagle's algorithm and delayed acknowledgement together cost 40 ms per request.
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_MS)
    return tcp


def _unreachable(host: Host, target: Target, error: BaseException) -> HostUnreachable:
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        text = f"{target} and this program have no algorithm in common: {error}"
        return HostUnreachable(
            text, host=host.name, advice="Update sshd on the host, or allow a newer algorithm."
        )
    if isinstance(error, socket.gaierror):
        text = f"the name {target.name} is not known"
        return HostUnreachable(text, host=host.name, advice="Check the name, or write an address.")
    if isinstance(error, ConnectionRefusedError):
        text = f"{target} refuses connections: nothing listens there"
    elif isinstance(error, TimeoutError):
        text = f"{target} did not answer in time"
    elif isinstance(error, FileNotFoundError):
        text = f"there is no socket {target.path}: its lab is not up"
        advice = "Make a lab (branchlab lab up) and use the profile that it prints: each lab has a profile of its own."
        return HostUnreachable(text, host=host.name, advice=advice)
    else:
        text = f"{target} could not be reached: {error or type(error).__name__}"
    return HostUnreachable(text, host=host.name)


def _give_terminal(channel: paramiko.Channel) -> None:
    """A terminal without echo from its first moment: a password must not come back. Raises SSHException."""
    message = paramiko.Message()
    message.add_byte(paramiko.common.cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string("pty-req")  # RFC 4254, 6.2; paramiko's own method gives no modes
    message.add_boolean(True)
    message.add_string("dumb")
    for number in (80, 24, 0, 0):
        message.add_int(number)
    modes = b"".join(bytes([mode, 0, 0, 0, 0]) for mode in RAW_MODES)
    message.add_string(modes + b"\0")
    channel._event_pending()  # type: ignore[attr-defined]
    channel.transport._send_user_message(message)  # type: ignore[union-attr]
    channel._wait_for_event()  # type: ignore[attr-defined]


class Connection:
    """One host, connected. Programs and files go over it until `close`.

    Attributes: `host`, as the profile has it; `target`, where it was found.
    """

    def __init__(
        self, host: Host, target: Target, transport: paramiko.Transport, jump: Connection | None = None
    ) -> None:
        self.host, self.target = host, target
        self._transport = transport
        self._jump = jump  # kept, or its transport would be collected under ours

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The host's name in the lab."""
        return self.host.name

    @property
    def alive(self) -> bool:
        """False once the transport has ended."""
        return self._transport.is_active()

    def start(self, argv: Sequence[str], *, terminal: bool = False) -> Process:
        """Start a program by the login shell of the user; on request on a terminal of its own, raw and without
        echo, whose end of input is one byte (4). A text is a line that is ready for any shell. Raises ConnectionLost.
        """
        try:
            channel = self._transport.open_session(timeout=CONNECT_S)
            if terminal:
                _give_terminal(channel)
            # The only place where words become a line.
            channel.exec_command(argv if isinstance(argv, str) else shlex.join(argv))
        except (paramiko.SSHException, OSError, EOFError) as error:
            program = argv.split()[0] if isinstance(argv, str) else argv[0]
            raise self._lost(f"{program} could not be started: {error or type(error).__name__}") from error
        return Process(channel, self.name, terminal=terminal)

    def run(self, argv: Sequence[str], data: bytes = b"", timeout_s: float = 30.0) -> Finished:
        """Start a short program, give it `data`, take all that it says, and wait for its end."""
        process = self.start(argv)
        end = time.monotonic() + timeout_s
        out = bytearray()
        try:
            if data:
                process.write(data)
            process.close_input()
            while piece := process.read(max(0.01, end - time.monotonic())):
                out += piece
            status = process.exit(max(0.01, end - time.monotonic()))
            return Finished(status, bytes(out), process.errors())
        except TimeoutError:
            process.end()
            raise self._lost(f"{argv[0]} did not end within {timeout_s:g} s") from None
        finally:
            process.close()

    def put(self, data: bytes, path: str, mode: int = 0o600, timeout_s: float = 60.0) -> None:
        """Make `path` (absolute) hold `data`: written under another name, then renamed. Needs SFTP there."""
        partial = f"{path}.{secrets.token_hex(4)}"
        try:
            with contextlib.closing(self._sftp(timeout_s)) as sftp:
                with sftp.open(partial, "wx") as file:
                    sftp.chmod(partial, mode)
                    file.set_pipelined(True)
                    file.write(data)
                sftp.posix_rename(partial, path)
        except TimeoutError:
            raise self._lost(f"{path} could not be written in {timeout_s:g} s") from None
        except OSError as error:
            raise HostTrouble(
                f"{path} could not be written: {error.strerror or error}",
                host=self.name,
                advice=f"Check that {self.target.user} may write in {posixpath.dirname(path)} there.",
            ) from error

    def tunnel(self, name: str, port: int) -> paramiko.Channel:
        """A channel from the host to another one, for connections by way of it."""
        return self._transport.open_channel("direct-tcpip", (name, port), ("127.0.0.1", 0), timeout=CONNECT_S)

    def close(self) -> None:
        """End the connection; whatever waits on it returns at once. Idempotent, from any thread."""
        self._transport.close()
        if self._jump is not None:
            self._jump.close()

    def _sftp(self, timeout_s: float) -> paramiko.SFTPClient:
        try:
            channel = self._transport.open_session(timeout=CONNECT_S)
            channel.settimeout(timeout_s)
            channel.invoke_subsystem("sftp")
            return paramiko.SFTPClient(channel)
        except (paramiko.SSHException, paramiko.SFTPError, EOFError, TimeoutError) as error:
            raise HostTrouble(
                f"SFTP does not work there: {error or type(error).__name__}",
                host=self.name,
                advice="Check that sshd_config has `Subsystem sftp`, and that the login shell's start-up"
                " files (.bashrc, .cshrc) print nothing when no terminal is there.",
            ) from error

    def _lost(self, text: str) -> ConnectionLost:
        return ConnectionLost(text, host=self.name)


class Process:
    """A program on a host. A thread drains its standard error, so that neither stream blocks the other."""

    def __init__(self, channel: paramiko.Channel, name: str, *, terminal: bool = False) -> None:
        self._channel, self._name, self._terminal = channel, name, terminal
        self._errors = bytearray()
        self._lock = threading.Lock()
        self._drain = threading.Thread(target=self._drained, name=f"stderr-{name}", daemon=True)
        self._drain.start()

    def read(self, timeout_s: float | None = None) -> bytes:
        """Some bytes of its standard output; empty at its or the connection's end. Raises TimeoutError."""
        self._channel.settimeout(timeout_s)
        try:
            return self._channel.recv(PIECE)
        except TimeoutError:
            raise
        except (OSError, EOFError, paramiko.SSHException) as error:
            # Reading also tells the other side that there is room again, and that fails first when it is gone.
            log.debug("%s: the connection broke while reading: %r", self._name, error)
            return b""

    def write(self, data: bytes) -> None:
        """All of `data` to its standard input. Raises ConnectionLost."""
        try:
            self._channel.sendall(data)
        except (OSError, EOFError, paramiko.SSHException) as error:
            text = f"the program does not listen any more: {error or type(error).__name__}"
            raise ConnectionLost(text, host=self._name) from error

    def close_input(self) -> None:
        """The end of its standard input. Idempotent."""
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            if self._terminal:
                self._terminal = False
                self._channel.sendall(END_OF_INPUT)
            self._channel.shutdown_write()

    def errors(self) -> str:
        """The last 64 KiB of its standard error so far."""
        with self._lock:
            return self._errors.decode("utf-8", "replace")

    def exit(self, timeout_s: float) -> int | None:
        """Its exit status; None if it did not end in time, ended by a signal, or out of sight."""
        end = time.monotonic() + timeout_s
        if not self._channel.status_event.wait(timeout_s):
            return None
        self._drain.join(max(0.0, end - time.monotonic()))
        status = self._channel.exit_status
        return None if status < 0 else status

    def end(self) -> None:
        """Ask the host to end it by SIGTERM. OpenSSH does so from 8.1 on, and not for root."""
        message = paramiko.Message()
        message.add_byte(paramiko.common.cMSG_CHANNEL_REQUEST)
        message.add_int(self._channel.remote_chanid)
        message.add_string("signal")  # RFC 4254, 6.9; paramiko has no method for it
        message.add_boolean(False)
        message.add_string("TERM")
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.transport._send_user_message(message)  # type: ignore[union-attr]

    def close(self) -> None:
        """Let go of it. A blocked `read` returns at once. Idempotent."""
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.close()
        self._drain.join(5)

    def _drained(self) -> None:
        while True:
            try:
                data = self._channel.recv_stderr(PIECE)
            except TimeoutError:
                continue
            except (OSError, EOFError, paramiko.SSHException):
                return
            if not data:
                return
            log.debug("%s: %s", self._name, data.decode("utf-8", "replace").rstrip())
            with self._lock:
                self._errors += data
                del self._errors[:-KEPT_ERRORS]
