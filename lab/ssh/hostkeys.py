"""A host's own key: what is known of it, which type to ask for, asking about an unknown one, refusing a changed one."""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import hashlib
import hmac
import logging
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import paramiko
import platformdirs

from lab.credentials import Offered
from lab.errors import BadInput, HostTrouble, HostUnreachable
from lab.model import Host
from lab.ssh import certificates
from lab.ssh.target import Target

log = logging.getLogger(__name__)

LOCKED_S = 10.0
CERTIFIED = "-cert-v01@openssh.com"


class HostKeyRefused(HostUnreachable):
    """The host's key is unknown, or is not the one known. Nothing was sent to it."""

    offered: Offered | None = None
    """An unknown key that a person could still accept."""


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """What is known of one host's keys: pairs of type and key."""

    keys: frozenset[tuple[str, bytes]] = frozenset()
    revoked: frozenset[bytes] = frozenset()
    files: tuple[str, ...] = field(default=())
    authorities: frozenset[bytes] = frozenset()
    """Keys that may certify this host's."""
    elsewhere: frozenset[tuple[str, bytes]] = frozenset()
    """Known for the same name at the usual port: one of them will do, and none of them says that a key has changed."""

    @property
    def types(self) -> list[str]:
        """Types of the known keys, sorted."""
        return sorted({kind for kind, _ in self.keys or self.elsewhere})


def pinned(text: str) -> KnownKeys:
    """A key given as `ssh-ed25519 AAAA...`. Raises BadInput."""
    words = text.split()
    try:
        return KnownKeys(keys=frozenset([(words[0], _key(words[0], words[1]))]))
    except (IndexError, ValueError):
        raise BadInput(
            f"{text!r} is no host key",
            advice="Write the key as in /etc/ssh/ssh_host_ed25519_key.pub: ssh-ed25519 AAAA...",
        ) from None


def _key(kind: str, text: str) -> bytes:
    """A key as such lines have it. Raises ValueError for what is none, or is of another type."""
    key = base64.b64decode(text, validate=True)
    if not key.startswith(len(kind).to_bytes(4, "big") + kind.encode()):
        raise ValueError("its type is not what it says")
    return key


def known(files: Sequence[Path], name: str) -> KnownKeys:
    """The keys that known_hosts files hold for `name` (`host` or `[host]:port`); bad lines are warned of."""
    keys, revoked, authorities = set(), set(), set()
    for path in files:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for marker, kind, key in _entries(text, name, str(path)):
            if marker == "@revoked":
                revoked.add(key)
            elif marker:
                authorities.add(key)
            else:
                keys.add((kind, key))
    return KnownKeys(
        frozenset(keys), frozenset(revoked), tuple(str(path) for path in files), frozenset(authorities)
    )


def _entries(text: str, name: str, path: str) -> Iterator[tuple[str, str, bytes]]:
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        marker = words.pop(0) if words[0].startswith("@") else ""
        try:
            hosts, kind, key = words[0], words[1], _key(words[1], words[2])
        except (IndexError, ValueError):
            log.warning("%s:%d: not a host key, passed over: %.60s", path, number, line)
            continue
        if marker not in ("", "@revoked", "@cert-authority"):
            log.warning("%s:%d: %s means nothing, passed over", path, number, marker)
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


def own_file() -> Path:
    """Where keys are kept that a person accepted here: BranchLab's own known_hosts, beside its data."""
    named = os.environ.get("BRANCHLAB_DATA")
    folder = (
        Path(named).expanduser().absolute()
        if named
        else platformdirs.user_data_path("branchlab", appauthor=False)
    )
    return folder / "known_hosts"


def expected(host: Host, target: Target, files: Sequence[Path] | None) -> KnownKeys:
    """The keys that `host` may show: the one that the profile pins, else those of known_hosts files."""
    if host.host_key:
        return pinned(host.host_key)
    paths = tuple(files) if files is not None else (*target.known_hosts, own_file())
    found = known(paths, target.known_as)
    if found.keys or target.port == 22 or target.alias:
        return found
    plain = known(paths, target.name.lower())  # as ssh does
    return replace(
        found,
        revoked=found.revoked | plain.revoked,
        authorities=found.authorities | plain.authorities,
        elsewhere=plain.keys,
    )


def preferred(types: Sequence[str], keys: KnownKeys) -> tuple[str, ...]:
    """Types to ask for: those that are known first, else a host with several would look unknown."""
    wanted = set(keys.types)
    if "ssh-rsa" in wanted:  # one kind of key, three ways to sign
        wanted |= {"rsa-sha2-256", "rsa-sha2-512"}
    plain = [kind for kind in types if not kind.endswith(CERTIFIED)]
    certified = [kind + CERTIFIED for kind in plain] if keys.authorities else []
    first = [kind for kind in plain if kind in wanted]
    return (*certified, *first, *(kind for kind in plain if kind not in first))


def verify(
    host: Host,
    target: Target,
    shown: paramiko.PKey,
    keys: KnownKeys,
    accept: Callable[[Offered], bool] | None = None,
) -> None:
    """Raise HostKeyRefused unless the key that the host showed is known, certified, or accepted now.

    An unknown key is accepted by a person (`accept`), or by the user's own `StrictHostKeyChecking`. A changed
    one only by a person, who is shown what was known; one that the profile pins by nobody.
    """
    kind, blob = shown.get_name(), shown.asbytes()
    certificate = getattr(shown, "public_blob", None)
    doubt = ""
    if certificate is not None:
        try:
            kind, blob = certificates.certified(
                certificate.key_blob, target.alias or target.name.lower(), keys.authorities, keys.revoked
            )
        except certificates.NotCertified as error:
            kind, blob, doubt = error.kind, error.key, str(error)
    print_ = f"{kind} {fingerprint(blob)}"
    if blob in keys.revoked:
        raise HostKeyRefused(
            f"the key of {target} is marked as revoked: {print_}",
            host=host.name,
            tried=", ".join(keys.files),
            advice="Somebody else may have that key: whoever runs the host gives it a new one. If the mark is wrong,"
            " take the line with @revoked out of that file.",
        )
    if (kind, blob) in keys.keys | keys.elsewhere or (certificate is not None and not doubt):
        return
    if doubt:
        raise HostKeyRefused(
            f"{target} shows a certificate that does not count: {doubt}",
            host=host.name,
            tried=", ".join(keys.files),
            advice="Let whoever runs that authority certify the host anew"
            " (ssh-keygen -L -f FILE shows what a certificate says).",
        )
    offered = Offered(host.name, str(target), kind, fingerprint(blob))
    if keys.keys:
        asking = target.strict != "yes" and not host.host_key and accept is not None
        if asking and accept is not None and accept(replace(offered, known=_told(keys))):
            remember(target, kind, blob, instead=True)
            return
        raise _changed(host, target, kind, print_, keys)
    if target.strict in ("no", "accept-new") and not host.host_key:
        log.warning("%s: its key %s is accepted, since StrictHostKeyChecking says so", target, print_)
        if target.remembers:
            remember(target, kind, blob)
    elif target.strict != "yes" and accept is not None and accept(offered):
        remember(target, kind, blob)
    else:
        refused = _unknown(host, target, kind, blob, keys)
        if target.strict != "yes" and not host.host_key:
            refused.offered = offered
        raise refused


def _unknown(host: Host, target: Target, kind: str, blob: bytes, keys: KnownKeys) -> HostKeyRefused:
    line = f'host_key = "{kind} {base64.b64encode(blob).decode()}"'
    scan = f"ssh-keyscan -p {target.port} {target.name} | ssh-keygen -lf -" if not target.path else ""
    if keys.authorities:
        return HostKeyRefused(
            f"the key of {target} is certified by none of the authorities that are known for it:"
            f" {kind} {fingerprint(blob)}",
            host=host.name,
            tried=", ".join(keys.files),
            advice="Its sshd_config needs a HostCertificate of that authority.",
        )
    return HostKeyRefused(
        f"the key of {target} is not known: {kind} {fingerprint(blob)}",
        host=host.name,
        tried=", ".join(keys.files),
        advice=f"On the host itself, `ssh-keygen -lf {_key_file(kind)}` shows its fingerprint"
        + (f" (from afar: {scan})" if scan else "")
        + ". If it is the same, answer yes where BranchLab asks (in a terminal, or in the window); or connect once"
        f" by hand (ssh -p {target.port} {target.user}@{target.name}); or write in the profile: {line}",
    )


def _changed(host: Host, target: Target, kind: str, shown: str, keys: KnownKeys) -> HostKeyRefused:
    out = [
        f"ssh-keygen -f {shlex.quote(file)} -R '{target.known_as}'"
        for file in keys.files
        if _mentions(Path(file), target.known_as)
    ]
    return HostKeyRefused(
        f"the key of {target} is {shown}, and known is {_told(keys)}: another machine may be answering",
        host=host.name,
        tried=", ".join(keys.files) or "the profile's host_key",
        advice=f"On the host itself, `ssh-keygen -lf {_key_file(kind)}` shows which is right. If the host was"
        f" set up anew, take the old line out ({'; '.join(out) or 'host_key in the profile'}) and store the new"
        " one.",
    )


def _told(keys: KnownKeys) -> str:
    """The known keys, for people."""
    return ", ".join(sorted(f"{kind} {fingerprint(key)}" for kind, key in keys.keys))


def _mentions(path: Path, name: str) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(True for _ in _entries(text, name, str(path)))


def remember(target: Target, kind: str, key: bytes, *, instead: bool = False) -> None:
    """Write a key into BranchLab's own known_hosts, whole or not at all. Raises HostTrouble.

    `instead` of what that file has for this host. The user's own files are left as they are.
    """
    path, name = own_file(), target.known_as if not target.path else target.name
    line = f"{name} {kind} {base64.b64encode(key).decode()}\n"
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_name(f"{path.name}.lock")):
            text = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
            if instead:
                text = _without(text, name)
            if line in text.splitlines(keepends=True):
                return
            ending = "" if not text or text.endswith("\n") else "\n"
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text + ending + line)
                file.flush()
                os.fsync(descriptor)
            part.replace(path)
    except OSError as error:
        raise HostTrouble(
            f"the accepted key could not be kept in {path}: {error.strerror or error}",
            advice="Let this user write there, and see that there is space; or name another folder in BRANCHLAB_DATA.",
        ) from error


def _without(text: str, name: str) -> str:
    """The file without the lines that say a key of this host; what is revoked stays so."""
    lines = text.splitlines(keepends=True)
    return "".join(
        line for line in lines if not [mark for mark, _, _ in _entries(line, name, "") if not mark]
    )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """No second process does the same meanwhile. Raises OSError."""
    with path.open("a+b") as file:
        end = time.monotonic() + LOCKED_S
        while not _lock(file.fileno()):
            if time.monotonic() > end:
                raise OSError(f"another process holds {path}")
            time.sleep(0.05)
        yield  # the lock ends with the file


def _lock(descriptor: int) -> bool:
    try:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _key_file(kind: str) -> str:
    """Where sshd has its key of this type, if its configuration does not say otherwise."""
    short = "rsa" if "rsa" in kind else "ecdsa" if "ecdsa" in kind else "ed25519"
    return f"/etc/ssh/ssh_host_{short}_key.pub"
