"""Connects to a host over SSH, verifies its key, starts programs and sends files. paramiko is only here."""

from __future__ import annotations

import contextlib
import logging
import posixpath
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import paramiko

from lab.credentials import Accept, Passwords
from lab.errors import BadInput, ConnectionLost, HostTrouble, HostUnreachable
from lab.model import Host
from lab.ssh import wire
from lab.ssh.config import chosen
from lab.ssh.hostkeys import expected, fingerprint, preferred, verify
from lab.ssh.login import Login, TookTooLong
from lab.ssh.process import Process, bounded, give_terminal
from lab.ssh.target import CONNECT_S, Target, resolve
from lab.ssh.unreached import Dropped, suspected, unreachable
from lab.ssh.wire import Heard, Wire, plain
from lab.stop import Stop

log = logging.getLogger(__name__)
# It logs tracebacks of errors that are translated here, and without any handler they would reach stderr.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

DROPPED = (0.5, 1.5)
"""A server that hangs up before a word is tried again after these pauses: it may be busy (MaxStartups)."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a short program ended; `exit` is None if it did not end in time or by a signal."""

    exit: int | None
    out: bytes
    err: str


@dataclass(frozen=True, slots=True)
class Step:
    """How far connecting came. `what`: `answers` (`text` is how the server calls itself), `key` (the type of its
    verified key; `fresh` if a person has just accepted it), `login` (by which method).
    """

    what: str
    text: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class _Manner:
    """How one host, its jump hosts and its further connections are connected to."""

    known_hosts: Sequence[Path] | None
    config: Path | None
    timeout_s: float | None
    stop: Stop | None
    passwords: Passwords
    accept: Accept | None
    say: Callable[[Step], None] = lambda step: None

    def check(self) -> None:
        if self.stop is not None:
            self.stop.check()


def connect(
    host: Host,
    *,
    known_hosts: Sequence[Path] | None = None,
    config: Path | None = None,
    timeout_s: float | None = None,
    stop: Stop | None = None,
    passwords: Passwords | None = None,
    accept: Accept | None = None,
    say: Callable[[Step], None] = lambda step: None,
) -> Connection:
    """A verified, authenticated connection. `known_hosts` and `config` replace the user's own files.

    `passwords` has what the host may ask for; `accept` asks a person about a key that is not known, and without
    it such a key is refused. `say` is told each step on the host itself, as it is done. Raises HostKeyRefused,
    AuthenticationRefused, HostUnreachable, BadInput, Stopped.
    """
    manner = _Manner(known_hosts, config, timeout_s, stop, passwords or Passwords(), accept, say)
    target = resolve(host, config)
    return Connection(host, target, _connected(host, target, manner, ()), manner)


@dataclass(slots=True)
class _Wired:
    """A transport, and the connection through which it goes: kept, or that would be collected under it."""

    wire: Wire
    jump: Connection | None

    def close(self) -> None:
        self.wire.close()
        if self.jump is not None:
            self.jump.close()


def _connected(host: Host, target: Target, manner: _Manner, passed: tuple[str, ...]) -> _Wired:
    jump = _by_way(host, target, manner, passed) if target.jump else None
    pauses = list(DROPPED)
    waited = False
    try:
        while True:
            try:
                return _Wired(_wire(host, target, manner, jump), jump)
            except TookTooLong:
                if waited:
                    raise
                waited = True
            except Dropped as error:
                if not pauses or (jump is None and target.command):
                    raise
                log.info("%s: hung up before a word, and is tried again: %s", host.name, error)
                time.sleep(pauses.pop(0))
    except BaseException:
        if jump is not None:
            jump.close()
        raise


def _by_way(host: Host, target: Target, manner: _Manner, passed: tuple[str, ...]) -> Connection:
    """The last of the jump hosts, itself reached by way of those before it."""
    first, _, last = target.jump.rpartition(",")
    via = Host(name=f"{host.name} (by way of {last.strip()})", role=host.role, ssh=last.strip())
    hop = resolve(via, manner.config)
    if first:
        hop = replace(hop, jump=first, command="")
    # Not by their addresses: behind two NATs two hosts may have the same.
    step = f"{via.ssh} by way of {hop.jump}"
    if step in passed:
        raise BadInput(
            f"the jump hosts go in a circle: {step}",
            host=host.name,
            advice="Write `ProxyJump none` for it in ~/.ssh/config.",
        )
    unsaid = replace(manner, say=lambda step: None)
    return Connection(via, hop, _connected(via, hop, unsaid, (*passed, step)), unsaid)


def _wire(host: Host, target: Target, manner: _Manner, jump: Connection | None) -> Wire:
    """A transport over which the user is logged in."""
    timeout_s = manner.timeout_s or target.connect_s
    keys = expected(host, target, manner.known_hosts)
    link: Heard | None = None
    made: Wire | None = None
    try:
        manner.check()
        link = jump.tunnel(target.name, target.port) if jump is not None else wire.link(target, timeout_s)
        made = Wire(link)
        made.banner_timeout = made.handshake_timeout = timeout_s
        _choose(made, target)
        made.key_types = preferred(made.get_security_options().key_types, keys)
        made.start_client(timeout=timeout_s)
        if not made.initial_kex_done:  # paramiko only ends its waiting
            raise TimeoutError
        manner.check()
        manner.say(Step("answers", plain(made.remote_version.encode())))
        begun = time.monotonic()
        shown = made.get_remote_server_key()
        fresh = (shown.get_name(), shown.asbytes()) not in keys.keys and not keys.authorities
        verify(host, target, shown, keys, manner.accept)
        manner.check()
        manner.say(Step("key", shown.get_name(), fresh=fresh))
        asked_s = time.monotonic() - begun  # a person may have looked at the key for long
        login = Login(host, target, made, manner.passwords, manner.stop, asked_s=asked_s)
        login.authenticate()
        manner.say(Step("login", login.by))
        made.watch(target.keep_alive_s, target.silent_s, host.name)
    except BaseException as error:
        if made is not None:
            made.close()
        if link is not None:
            link.close()
        if isinstance(error, HostTrouble):
            error.host = error.host or host.name
        if isinstance(error, (OSError, EOFError, paramiko.SSHException)):
            raise suspected(unreachable(host, target, error, made, link), target) from error
        if isinstance(error, HostUnreachable):
            suspected(error, target)
        raise
    return made


def _choose(made: Wire, target: Target) -> None:
    """What `Ciphers` and the like say, as far as it is known here. Raises IncompatiblePeer where nothing is left."""
    options = made.get_security_options()
    for keyword, name in ALGORITHMS.items():
        if keyword in target.algorithms:
            left = chosen(getattr(options, name), target.algorithms[keyword])
            if not left:
                raise paramiko.ssh_exception.IncompatiblePeer(
                    f"of {target.algorithms[keyword]!r} in the SSH configuration none is known here"
                )
            setattr(options, name, left)


ALGORITHMS = {
    "ciphers": "ciphers",
    "macs": "digests",
    "kexalgorithms": "kex",
    "hostkeyalgorithms": "key_types",
}


class Connection:
    """One host, connected. Programs and files go over it until `close`.

    Attributes: `host`, as the profile has it; `target`, where it was found. Where the server allows fewer sessions
    in one connection than are wanted (MaxSessions), further connections are made as they are needed.
    """

    def __init__(self, host: Host, target: Target, first: _Wired, manner: _Manner) -> None:
        self.host, self.target = host, target
        self._manner = replace(manner, accept=None, say=lambda step: None)
        self._wired = [first]
        self._lock = threading.Lock()

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
        return self._wired[0].wire.is_active()

    @property
    def one_time(self) -> bool:
        """Whether a person answered what cannot be answered again without them."""
        first = self._wired[0]
        return first.wire.one_time or (first.jump is not None and first.jump.one_time)

    @property
    def ends(self) -> tuple[str, str] | None:
        """This machine's address and the one that was dialled; None through a UNIX socket, a command or a jump host."""
        return self._wired[0].wire.heard.ends

    @property
    def unheeded(self) -> tuple[str, ...]:
        """What the SSH configuration says of this host and its jump hosts and has no effect here."""
        jump = self._wired[0].jump
        return tuple(dict.fromkeys((*self.target.unheeded, *(jump.unheeded if jump is not None else ()))))

    @property
    def software(self) -> str:
        """What the server calls itself, such as SSH-2.0-OpenSSH_9.2p1."""
        return plain(self._wired[0].wire.remote_version.encode())

    @property
    def shown(self) -> str:
        """The host's own key, which is the one that is known: its type and fingerprint."""
        key = self._wired[0].wire.get_remote_server_key()
        return f"{key.get_name()} {fingerprint(key.asbytes())}"

    def start(self, argv: Sequence[str], *, terminal: bool = False) -> Process:
        """Start a program by the login shell of the user; on request on a terminal of its own, raw and without
        echo, whose end of input is one byte (4). A text is a line that is ready for any shell. Raises ConnectionLost.
        """
        try:
            channel, used = self._session()
            with bounded(channel):
                if terminal:
                    give_terminal(channel)
                # The only place where words become a line.
                channel.exec_command(argv if isinstance(argv, str) else shlex.join(argv))
        except (paramiko.SSHException, OSError, EOFError) as error:
            program = argv.split()[0] if isinstance(argv, str) else argv[0]
            raise self._lost(
                f"{program} could not be started: {str(error) or type(error).__name__}"
            ) from error
        return Process(channel, self.name, used, terminal=terminal)

    def _session(self) -> tuple[paramiko.Channel, Wire]:
        """A session on the first connection that has room for one. Raises SSHException, OSError, EOFError."""
        with self._lock:
            first = self._wired[0].wire
            if not first.is_active():
                raise EOFError(first.fault or "the connection has ended")
            for wired in [one for one in self._wired if one.wire.is_active()]:
                with contextlib.suppress(paramiko.ChannelException):
                    return wired.wire.open_session(timeout=CONNECT_S), wired.wire
            log.info("%s: has no room for another session, so another connection is made", self.name)
            try:
                further = _connected(self.host, self.target, self._manner, ())
            except HostTrouble as error:
                text = f"it allows no further session, nor another connection: {error}"
                raise paramiko.SSHException(text) from error
            self._wired.append(further)
            try:
                return further.wire.open_session(timeout=CONNECT_S), further.wire
            except paramiko.ChannelException as error:
                text = (
                    "it lets this user open no session at all (MaxSessions 0 in its sshd_config, or no shell)"
                )
                raise paramiko.SSHException(text) from error

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
        except (OSError, EOFError, paramiko.SSHException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            if any(one.wire.over for one in self._wired):
                raise self._lost(f"the connection ended before {path} was written: {why}") from error
            raise HostTrouble(
                f"{path} could not be written: {why}",
                host=self.name,
                advice=f"Check that {self.target.user} may write in {posixpath.dirname(path)} there.",
            ) from error

    def tunnel(self, name: str, port: int) -> Heard:
        """A channel from the host to another one, for connections by way of it. Raises SSHException."""
        first = self._wired[0].wire
        return Heard(first.open_channel("direct-tcpip", (name, port), ("127.0.0.1", 0), timeout=CONNECT_S))

    def close(self) -> None:
        """End the connection; whatever waits on it returns at once. Idempotent, from any thread."""
        for wired in list(self._wired):
            wired.close()

    def _sftp(self, timeout_s: float) -> paramiko.SFTPClient:
        used = self._wired[0].wire
        try:
            channel, used = self._session()
            channel.settimeout(timeout_s)
            with bounded(channel):
                channel.invoke_subsystem("sftp")
            return paramiko.SFTPClient(channel)
        except (paramiko.SSHException, paramiko.SFTPError, EOFError, OSError) as error:
            if used.over:
                why = used.fault or str(error) or type(error).__name__
                raise self._lost(f"the connection ended while a file was begun: {why}") from error
            raise HostTrouble(
                f"SFTP does not work there: {str(error) or type(error).__name__}",
                host=self.name,
                advice="Check that sshd_config has `Subsystem sftp`, and that the login shell's start-up"
                " files (.bashrc, .cshrc) print nothing when no terminal is there.",
            ) from error

    def _lost(self, text: str) -> ConnectionLost:
        return ConnectionLost(text, host=self.name)
