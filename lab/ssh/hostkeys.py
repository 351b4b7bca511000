"""A host's own key: what is known of it, which type to ask for, and the refusal of any other."""

from __future__ import annotations

import base64
import binascii
import contextlib
import fnmatch
import hashlib
import hmac
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import paramiko

from lab.errors import BadInput, HostUnreachable
from lab.model import Host
from lab.ssh.target import Target

log = logging.getLogger(__name__)


class HostKeyRefused(HostUnreachable):
    """The host's key is unknown, or is not the one known. Nothing was sent to it."""


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


def expected(host: Host, target: Target, files: Sequence[Path] | None) -> KnownKeys:
    """The keys that `host` may show: the one that the profile pins, else those of known_hosts files."""
    if host.host_key:
        return pinned(host.host_key)
    paths = tuple(files) if files is not None else target.known_hosts
    found = known(paths, target.known_as)
    if not found.keys and target.port != 22 and not target.alias:
        # As ssh does: a key that is known for the name without a port will do.
        plain = known(paths, target.name.lower())
        return KnownKeys(plain.keys, found.revoked | plain.revoked, plain.files)
    return found


def prefer(transport: paramiko.Transport, keys: KnownKeys) -> None:
    """Ask for a key of a type that is known, else a host with several would look unknown."""
    options = transport.get_security_options()
    wanted = set(keys.types)
    if "ssh-rsa" in wanted:  # one kind of key, three ways to sign
        wanted |= {"rsa-sha2-256", "rsa-sha2-512"}
    first = [kind for kind in options.key_types if kind in wanted]
    options.key_types = [*first, *(kind for kind in options.key_types if kind not in first)]


def verify(host: Host, target: Target, transport: paramiko.Transport, keys: KnownKeys) -> None:
    """Raise HostKeyRefused unless the key that the host showed is known."""
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
