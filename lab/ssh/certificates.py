"""OpenSSH host certificates: whether an authority that is known says that this key is this host's.

Facts from OpenSSH's PROTOCOL.certkeys, and the CERTIFICATES part of ssh-keygen(1).
"""

from __future__ import annotations

import time

import paramiko

HOST = 2
"""The type of a certificate for a host; 1 is for a user."""
PARTS = {
    "ssh-ed25519": 1,
    "ssh-rsa": 2,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
}
"""How many fields the key itself has, by its type."""
SUFFIX = "-cert-v01@openssh.com"


class NotCertified(Exception):
    """A certificate that does not count, and why; `kind` and `key` are of the plain key in it, as far as known."""

    def __init__(self, text: str, kind: str = "", key: bytes = b"") -> None:
        super().__init__(text)
        self.kind, self.key = kind, key


def certified(
    blob: bytes, name: str, authorities: frozenset[bytes], revoked: frozenset[bytes]
) -> tuple[str, bytes]:
    """Type and plain key that a certificate vouches for as the key of the host `name`. Raises NotCertified.

    That the host has that key is proved by its signature under the key exchange, and not here.
    """
    message = paramiko.Message(blob)
    kind = message.get_text().removesuffix(SUFFIX)
    if kind not in PARTS:
        raise NotCertified(f"its type {kind} is not known")
    message.get_binary()  # a random number
    plain = paramiko.Message()
    plain.add_string(kind)
    for _ in range(PARTS[kind]):
        plain.add_string(message.get_binary())
    key = plain.asbytes()

    def refused(text: str) -> NotCertified:
        return NotCertified(text, kind, key)

    message.get_int64()  # serial
    role = message.get_int()
    message.get_binary()  # key id
    names = _strings(message.get_binary())
    after, before = message.get_int64(), message.get_int64()
    critical = message.get_binary()
    message.get_binary()  # extensions
    message.get_binary()  # reserved
    authority = message.get_binary()
    signed = blob[: len(blob) - len(message.get_remainder())]
    signature = message.get_binary()
    if authority in revoked or key in revoked:
        raise refused("it, or its authority, is marked as revoked")
    if authority not in authorities:
        raise refused("its authority is not known for this host")
    if not _signed(authority, signed, signature):
        raise refused("its authority's signature is wrong, or made with an algorithm that is not safe")
    if role != HOST:
        raise refused("it is not for a host")
    if not after <= time.time() < before:
        raise refused("it is not valid now (look at its dates, and at this machine's clock)")
    if critical:
        raise refused("it demands something that is not known here")
    if name not in names:  # as ssh has it: no wildcards; but an empty list is for no host, and not for any
        raise refused(f"it is for {', '.join(names) or 'no name'}, and not for {name}")
    return kind, key


def outdated(blob: bytes) -> str:
    """What the dates of a user's or host's certificate say against it now, for people; empty if nothing."""
    message = paramiko.Message(blob)
    kind = message.get_text().removesuffix(SUFFIX)
    for _ in range(1 + PARTS.get(kind, 0)):  # a random number, and the key
        message.get_binary()
    message.get_int64(), message.get_int(), message.get_binary(), message.get_binary()
    after, before = message.get_int64(), message.get_int64()
    if kind in PARTS and time.time() >= before:
        return f"it was valid until {_day(before)}"
    return f"it is valid from {_day(after)} on" if kind in PARTS and time.time() < after else ""


def _day(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _strings(data: bytes) -> list[str]:
    message, found = paramiko.Message(data), []
    while message.get_remainder():
        found.append(message.get_binary().decode("utf-8", "replace"))
    return found


def _signed(authority: bytes, data: bytes, signature: bytes) -> bool:
    try:
        key = paramiko.PKey.from_type_string(paramiko.Message(authority).get_text(), authority)
        return bool(key.verify_ssh_sig(data, paramiko.Message(signature)))
    except (paramiko.SSHException, paramiko.pkey.UnknownKeyType, ValueError, KeyError):
        return False
