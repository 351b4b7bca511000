"""Connects to a host over SSH, verifies its key, starts programs and sends files. paramiko is only here."""

from __future__ import annotations

import base64
import binascii
import contextlib
import fnmatch
import getpass
import hashlib
import hmac
import logging
import os
import posixpath
import re
import secrets
import shlex
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import paramiko

from lab.errors import BadInput, ConnectionLost, HostTrouble, HostUnreachable
from lab.model import Host
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
DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
MATCHED = frozenset(("all", "host", "originalhost", "user", "localuser"))
"""Criteria of `Match` in ~/.ssh/config that are understood; blocks with others are skipped with a notice."""


class HostKeyRefused(HostUnreachable):
    """The host's key is unknown, or is not the one known. Nothing was sent to it."""


class AuthenticationRefused(HostUnreachable):
    """The host is there, and lets this user not in."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where and as whom to connect, after ~/.ssh/config was asked."""

    name: str
    user: str
    port: int = 22
    path: str = ""
    """Of a UNIX socket; then `name` and `port` are only for messages."""
    alias: str = ""
    keys: tuple[Path, ...] = ()
    known_hosts: tuple[Path, ...] = ()
    jump: str = ""
    command: str = ""

    @property
    def known_as(self) -> str:
        """The name under which known_hosts files keep its key."""
        name = self.alias or self.name.lower()
        return name if self.port == 22 or self.alias else f"[{name}]:{self.port}"

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path else f"{self.user}@{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Finished:
    """How a short program ended; `exit` is None if it did not end in time or by a signal."""

    exit: int | None
    out: bytes
    err: str


def resolve(host: Host, config: Path | None = None) -> Target:
    """What `host.ssh` means. Raises BadInput if it means nothing."""
    if host.ssh.startswith("unix:"):
        path = host.ssh.removeprefix("unix:")
        if not path.startswith("/"):
            raise BadInput(f"{host.ssh!r} needs an absolute path", host=host.name, advice="Write unix:/path.")
        own = (Path(host.key).expanduser(),) if host.key else ()
        return Target(name=host.name, user=_me(), path=path, keys=own)
    user, name, port = split(host.ssh)
    if not name:
        raise BadInput(
            f"{host.ssh!r} is no address for SSH",
            host=host.name,
            advice="Write [user@]name[:port], a name from ~/.ssh/config, or unix:/path.",
        )
    said = _config(config or Path("~/.ssh/config").expanduser()).lookup(name)
    files = said.get("userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2").split()
    keys = [host.key] if host.key else list(said.get("identityfile", []))
    jump, command = said.get("proxyjump", ""), said.get("proxycommand", "")
    return Target(
        name=said.get("hostname", name),
        user=user or said.get("user", "") or _me(),
        port=port or int(said.get("port", 22)),
        alias=said.get("hostkeyalias", ""),
        keys=tuple(Path(key).expanduser() for key in keys),
        known_hosts=tuple(Path(file).expanduser() for file in [*files, "/etc/ssh/ssh_known_hosts"]),
        jump="" if jump.lower() == "none" else jump,
        command="" if command.lower() == "none" else command,
    )


def _me() -> str:
    """The user of this process. Not $LOGNAME first: `setpriv` and `runuser` leave it behind."""
    try:
        import pwd
    except ImportError:
        return getpass.getuser()
    return pwd.getpwuid(os.getuid()).pw_name


def split(text: str) -> tuple[str, str, int]:
    """User, name and port of `[user@]name[:port]`; empty or 0 where not given, all empty if it is none."""
    user, at, rest = text.rpartition("@")
    if rest.count(":") > 1 and not rest.startswith("["):
        rest = f"[{rest}]"  # an IPv6 address alone
    found = re.fullmatch(r"(?:\[([^\]\s]+)\]|([^:\s\[\]]+))(?::(\d{1,5}))?", rest)
    if (
        found is None
        or (at and not user)
        or re.search(r"\s", user)
        or int(found[3] or 22) not in range(1, 65536)
    ):
        return "", "", 0
    return user, found[1] or found[2], int(found[3] or 0)


def _config(path: Path) -> paramiko.SSHConfig:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return paramiko.SSHConfig.from_text("")
    try:
        return paramiko.SSHConfig.from_text(understood(text, str(path)))
    except paramiko.SSHException as error:
        raise BadInput(f"{path} cannot be read as an SSH configuration: {error}") from error


def understood(text: str, path: str) -> str:
    """An SSH configuration without the parts that cannot be honoured here; each is named in the log."""
    kept: list[str] = []
    skipping = False
    for number, line in enumerate(text.splitlines(), 1):
        words = re.split(r"[\s=]+", line.strip())
        keyword = words[0].lower()
        if keyword == "match":
            criteria = {word.lower().lstrip("!") for word in words[1:] if word.lower().lstrip("!") in MATCHED}
            skipping = not criteria or bool(_foreign(words[1:]))
            if skipping:
                log.warning("%s:%d: skipped, since it cannot be told here: %s", path, number, line.strip())
        elif keyword == "host":
            skipping = False
        elif keyword == "include":
            log.warning("%s:%d: not followed: %s", path, number, line.strip())
            continue
        if not skipping:
            kept.append(" ".join(words) if keyword == "match" else line)  # paramiko takes no `=` in a Match
    return "\n".join(kept) + "\n"


def _foreign(words: list[str]) -> list[str]:
    """Criteria of a `Match` line that are not understood. All but `all` take one value."""
    foreign, at = [], 0
    while at < len(words) and words[at]:
        criterion = words[at].lower().lstrip("!")
        if criterion not in MATCHED:
            foreign.append(criterion)
        at += 1 if criterion in ("all", "canonical", "final") else 2
    return foreign


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """What is known of one host's keys: pairs of type and key."""

    keys: frozenset[tuple[str, bytes]] = frozenset()
    revoked: frozenset[bytes] = frozenset()
    files: tuple[str, ...] = field(default=())

    @property
    def types(self) -> list[str]:
        """Types of the known keys, sorted."""
        return sorted({kind for kind, _ in self.keys})


def pinned(text: str) -> KnownKeys:
    """A key given as `ssh-ed25519 AAAA...`. Raises BadInput."""
    words = text.split()
    try:
        return KnownKeys(keys=frozenset([(words[0], base64.b64decode(words[1], validate=True))]))
    except (IndexError, binascii.Error):
        raise BadInput(
            f"{text!r} is no host key",
            advice="Write the key as in /etc/ssh/ssh_host_ed25519_key.pub: ssh-ed25519 AAAA...",
        ) from None


def known(files: Sequence[Path], name: str) -> KnownKeys:
    """The keys that known_hosts files hold for `name` (`host` or `[host]:port`); bad lines are warned of."""
    keys, revoked = set(), set()
    for path in files:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for marker, kind, key in _entries(text, name, str(path)):
            if marker == "@revoked":
                revoked.add(key)
            else:
                keys.add((kind, key))
    return KnownKeys(frozenset(keys), frozenset(revoked), tuple(str(path) for path in files))


def _entries(text: str, name: str, path: str) -> Iterator[tuple[str, str, bytes]]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        marker = words.pop(0) if words[0].startswith("@") else ""
        try:
            hosts, kind, key = words[0], words[1], base64.b64decode(words[2], validate=True)
        except (IndexError, binascii.Error):
            log.warning("%s:%d: not a host key, passed over: %.60s", path, number, line)
            continue
        if marker not in ("", "@revoked"):
            log.info("%s:%d: %s is not supported, passed over", path, number, marker)
        elif _names(hosts, name):
            yield marker, kind, key


def _names(hosts: str, name: str) -> bool:
    """Whether the first field of a known_hosts line means `name`, as sshd(8) describes it."""
    if hosts.startswith("|1|"):
        with contextlib.suppress(ValueError):
            _, _, salt, digest = hosts.split("|")
            made = hmac.new(base64.b64decode(salt), name.encode(), hashlib.sha1).digest()
            return hmac.compare_digest(made, base64.b64decode(digest))
        return False
    found = False
    for pattern in hosts.lower().split(","):
        # Brackets are part of such names, and not a class of characters.
        glob = pattern.lstrip("!").replace("[", "[[]")
        if fnmatch.fnmatchcase(name, glob):
            if pattern.startswith("!"):
                return False
            found = True
    return found


def fingerprint(key: bytes) -> str:
    """A key's fingerprint as OpenSSH prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


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
    keys = _known_keys(host, target, known_hosts)
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
        _prefer(transport, keys)
        transport.start_client(timeout=timeout_s)
        _verify(host, target, transport, keys)
        if stop is not None:
            stop.check()
        _authenticate(host, target, transport)
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


def _known_keys(host: Host, target: Target, files: Sequence[Path] | None) -> KnownKeys:
    if host.host_key:
        return pinned(host.host_key)
    paths = tuple(files) if files is not None else target.known_hosts
    found = known(paths, target.known_as)
    if not found.keys and target.port != 22 and not target.alias:
        # As ssh does: a key that is known for the name without a port will do.
        plain = known(paths, target.name.lower())
        return KnownKeys(plain.keys, found.revoked | plain.revoked, plain.files)
    return found


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


def _prefer(transport: paramiko.Transport, keys: KnownKeys) -> None:
    """Ask for a key of a type that is known, else a host with several would look unknown."""
    options = transport.get_security_options()
    wanted = set(keys.types)
    if "ssh-rsa" in wanted:  # one kind of key, three ways to sign
        wanted |= {"rsa-sha2-256", "rsa-sha2-512"}
    first = [kind for kind in options.key_types if kind in wanted]
    options.key_types = [*first, *(kind for kind in options.key_types if kind not in first)]


def _verify(host: Host, target: Target, transport: paramiko.Transport, keys: KnownKeys) -> None:
    key = transport.get_remote_server_key()
    kind, blob = key.get_name(), key.asbytes()
    shown = f"{kind} {fingerprint(blob)}"
    if blob in keys.revoked:
        raise HostKeyRefused(f"the key of {target} is marked as revoked: {shown}", host=host.name)
    if (kind, blob) in keys.keys:
        return
    look = f"On the host itself, `ssh-keygen -lf {_key_file(kind)}` shows"
    line = f'host_key = "{kind} {base64.b64encode(blob).decode()}"'
    if not keys.keys:
        raise HostKeyRefused(
            f"the key of {target} is not known: {shown}",
            host=host.name,
            tried=", ".join(keys.files),
            advice=f"{look} its fingerprint. If it is the same, connect once by hand (ssh -p {target.port}"
            f" {target.user}@{target.name}), or write in the profile: {line}",
        )
    others = ", ".join(
        sorted(f"{known_kind} {fingerprint(known_key)}" for known_kind, known_key in keys.keys)
    )
    raise HostKeyRefused(
        f"the key of {target} is {shown}, and known is {others}: another machine may be answering",
        host=host.name,
        tried=", ".join(keys.files) or "the profile's host_key",
        advice=f"{look} which is right. If the host was set up anew, take the old line out"
        f" (ssh-keygen -R '{target.known_as}', or host_key in the profile) and store the new one.",
    )


def _key_file(kind: str) -> str:
    """Where sshd has its key of this type, if its configuration does not say otherwise."""
    short = "rsa" if "rsa" in kind else "ecdsa" if "ecdsa" in kind else "ed25519"
    return f"/etc/ssh/ssh_host_{short}_key.pub"


def _authenticate(host: Host, target: Target, transport: paramiko.Transport) -> None:
    tried: list[str] = []
    for name, key in _keys(target, tried):
        try:
            further = transport.auth_publickey(target.user, key)
        except paramiko.BadAuthenticationType as error:
            raise AuthenticationRefused(
                f"{target} takes no keys, only {', '.join(error.allowed_types)}",
                host=host.name,
                advice="Allow PubkeyAuthentication in its sshd_config; passwords come in a later version.",
            ) from error
        except paramiko.AuthenticationException as error:
            tried.append(f"{name}: {str(error) or 'refused'}")
            if not transport.is_active():
                break
            continue
        if further:
            raise AuthenticationRefused(
                f"{target} wants {', '.join(further)} beside the key, which this version cannot give",
                host=host.name,
            )
        return
    raise AuthenticationRefused(
        f"{target} did not let {target.user} in",
        host=host.name,
        tried="; ".join(tried) or "no key was found",
        advice="Put the public key into ~/.ssh/authorized_keys there, and name the private one in the profile"
        ' (key = "~/.ssh/..."); a key with a passphrase must be in the agent (ssh-add). Passwords come in a'
        " later version.",
    )


def _keys(target: Target, tried: list[str]) -> Iterator[tuple[str, paramiko.PKey]]:
    """Keys to try: those named, then the agent's, then the default ones if none is named."""
    folder = Path("~/.ssh").expanduser()
    for path in target.keys:
        yield from _key(path, tried)
    # paramiko leaks its socket where the variable names an agent that is gone.
    if os.name == "nt" or Path(os.environ.get("SSH_AUTH_SOCK", "")).is_socket():
        with contextlib.closing(paramiko.Agent()) as agent:
            for key in agent.get_keys():
                yield f"agent: {key.comment or key.get_name()}", key
    if not target.keys:
        for name in DEFAULT_KEYS:
            if (folder / name).exists():
                yield from _key(folder / name, tried)


def _key(path: Path, tried: list[str]) -> Iterator[tuple[str, paramiko.PKey]]:
    try:
        yield str(path), paramiko.PKey.from_path(path)
    except paramiko.PasswordRequiredException:
        tried.append(f"{path}: has a passphrase")
    except (paramiko.SSHException, paramiko.pkey.UnknownKeyType, OSError, ValueError, TypeError) as error:
        needs = "passphrase" in str(error).lower() or "password" in str(error).lower()
        tried.append(f"{path}: has a passphrase" if needs else f"{path}: {error}")


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
    else:
        text = f"{target} could not be reached: {error or type(error).__name__}"
    return HostUnreachable(text, host=host.name)


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

    def start(self, argv: Sequence[str]) -> Process:
        """Start a program by the login shell of the user. Raises ConnectionLost."""
        try:
            channel = self._transport.open_session(timeout=CONNECT_S)
            channel.exec_command(shlex.join(argv))  # the only place where words become a line
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise self._lost(f"{argv[0]} could not be started: {error or type(error).__name__}") from error
        return Process(channel, self.name)

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

    def __init__(self, channel: paramiko.Channel, name: str) -> None:
        self._channel, self._name = channel, name
        self._errors = bytearray()
        self._lock = threading.Lock()
        self._drain = threading.Thread(target=self._drained, name=f"stderr-{name}", daemon=True)
        self._drain.start()

    def read(self, timeout_s: float | None = None) -> bytes:
        """Some bytes of its standard output; empty at its or the connection's end. Raises TimeoutError."""
        self._channel.settimeout(timeout_s)
        return self._channel.recv(PIECE)

    def write(self, data: bytes) -> None:
        """All of `data` to its standard input. Raises ConnectionLost."""
        try:
            self._channel.sendall(data)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise ConnectionLost(f"the program does not listen any more: {error}", host=self._name) from error

    def close_input(self) -> None:
        """The end of its standard input. Idempotent."""
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
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
            except OSError:
                return
            if not data:
                return
            log.debug("%s: %s", self._name, data.decode("utf-8", "replace").rstrip())
            with self._lock:
                self._errors += data
                del self._errors[:-KEPT_ERRORS]
