"""Private keys of the user: files, of which the public half is read without their passphrase, and the agent's."""

from __future__ import annotations

import base64
import binascii
import os
import re
import shlex
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

AGENT_S = 5.0
"""How long the agent may take to name its keys."""
SIGN_S = 60.0
"""How long it may take to sign: it may ask the person, or wait for a touch of a hardware key."""
LIST_KEYS, KEYS = 11, 12
"""The question for the keys, and its answer (draft-miller-ssh-agent, 5.1)."""
AGENTS_LONGEST = 256 * 1024
"""OpenSSH's agent says nothing that is longer."""
MAGIC = b"openssh-key-v1\0"


class Unusable(Exception):
    """A key file that cannot be used, and why."""


@dataclass(frozen=True, slots=True)
class Public:
    """A key's type and its public half, as the server is asked about it."""

    kind: str
    blob: bytes


def public(path: Path) -> Public | None:
    """The public half of a private key file, from it or from the `.pub` beside it; None where only the key tells.

    Raises Unusable where there is no such file.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise Unusable(error.strerror or str(error)) from None
    found = _opened(text)
    if found is not None:
        return Public(found[2], found[1])
    with suppress(OSError, ValueError, IndexError):
        # A public key may be named itself: its private half is then with the agent.
        named = re.match(rb"(ssh|ecdsa|sk)-\S+ ", text)
        words = (path if named else path.with_name(f"{path.name}.pub")).read_text().split()
        return Public(words[0], base64.b64decode(words[1], validate=True))
    return None


def private(path: Path, passphrase: str | None) -> paramiko.PKey | None:
    """The key in a file; None where it wants a passphrase, or another one. Raises Unusable, at once where no
    passphrase would help.
    """
    secret = passphrase.encode("utf-8", "surrogateescape") if passphrase else None
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unusable(error.strerror or str(error)) from None
    if data.startswith(b"PuTTY-User-Key-File"):
        raise Unusable("it is a key of PuTTY's: puttygen can export it as an OpenSSH key")
    if b"PRIVATE KEY-----" not in data:
        raise Unusable("it is no private key")
    if b"-----END " not in data:
        raise Unusable("it is cut off: its last line is missing")
    shut = locked(path)
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in data else load_pem_private_key
    try:
        key = load(data, secret if shut else None)
    except UnsupportedAlgorithm as error:
        raise Unusable(_not_known(path, data, str(error))) from None
    except InvalidTag:
        return None
    except TypeError as error:
        if shut:  # it wants one
            return None
        raise Unusable(str(error)) from None
    except ValueError as error:
        if shut and secret and _whole(data):
            return None
        raise Unusable(str(error) or type(error).__name__) from None
    return _signing(key)


def signed(key: paramiko.PKey, data: bytes, algorithm: str) -> bytes:
    """The signature of `data`. Raises Unusable: an agent may ask a person, who says no, or nobody is there."""
    try:
        return bytes(key.sign_ssh_data(data, algorithm))
    except TimeoutError:
        raise Unusable(f"the agent did not sign within {SIGN_S:g} s") from None
    except (paramiko.SSHException, OSError):
        raise Unusable(
            "the agent refused to sign (it may be locked, ask for a confirmation that nobody gave, or hold the key for"
            " other destinations only: ssh-add -l, ssh-add -h)"
        ) from None


class _Ed25519(paramiko.Ed25519Key):
    """A key that cryptography has read: it knows more ciphers of such files than paramiko."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        public = paramiko.Message()
        public.add_string(paramiko.Ed25519Key.name)
        public.add_string(key.public_key().public_bytes_raw())
        super().__init__(data=public.asbytes())
        self._key = key

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> paramiko.Message:
        signature = paramiko.Message()
        signature.add_string(self.name)
        signature.add_string(self._key.sign(data))
        return signature


def _signing(key: object) -> paramiko.PKey:
    if isinstance(key, Ed25519PrivateKey):
        return _Ed25519(key)
    try:
        if isinstance(key, EllipticCurvePrivateKey):
            return paramiko.ECDSAKey(vals=(key, key.public_key()))
        if isinstance(key, RSAPrivateKey):
            return paramiko.RSAKey(key=key)
    except (paramiko.SSHException, ValueError) as error:
        raise Unusable(str(error)) from None
    raise Unusable("its type is not known here: use Ed25519, ECDSA or RSA")


def _not_known(path: Path, data: bytes, why: str) -> str:
    found = _opened(data)
    if found is None:
        return why
    cipher, _, kind = found
    if kind.startswith("sk-"):
        return "its private half is in a security key, which only the SSH agent can ask: ssh-add it"
    if cipher == "none":
        return f"it is of the type {kind}, which is not known here: use Ed25519, ECDSA or RSA"
    anew = f"ssh-keygen -p -Z aes256-ctr -f {shlex.quote(str(path))}"
    return f"it is encrypted with {cipher}, which is not known here; this encrypts it anew: {anew}"


def _body(data: bytes) -> bytes:
    """What the text of a key file says. Raises binascii.Error."""
    lines = [line for line in data.splitlines() if not line.startswith(b"-----") and b":" not in line]
    return base64.b64decode(b"".join(lines))


def _opened(data: bytes) -> tuple[str, bytes, str] | None:
    """Cipher, public half and type of a key in OpenSSH's own form (its PROTOCOL.key); None of another."""
    with suppress(binascii.Error, ValueError, IndexError, struct.error, paramiko.SSHException):
        body = _body(data) if b"OPENSSH PRIVATE KEY" in data else b""
        if body.startswith(MAGIC):
            message = paramiko.Message(body[len(MAGIC) :])
            cipher = message.get_text()
            message.get_binary(), message.get_binary(), message.get_int()
            blob = message.get_binary()
            if message.get_int() > len(message.get_remainder()):  # paramiko would read zeros
                return None
            return cipher, blob, paramiko.Message(blob).get_text()
    return None


def _whole(data: bytes) -> bool:
    """Whether an encrypted file is one that only the passphrase keeps from being read."""
    if _opened(data) is not None:
        return True
    with suppress(binascii.Error):
        return b"OPENSSH PRIVATE KEY" not in data and len(_body(data)) > 0
    return False


def locked(path: Path) -> bool:
    """Whether a key file is encrypted."""
    try:
        text = path.read_bytes()
    except OSError:
        return False
    if b"ENCRYPTED" in text:
        return True
    found = _opened(text)
    return found is not None and found[0] != "none"


@contextmanager
def agent(where: str) -> Iterator[tuple[paramiko.AgentKey, ...]]:
    """The keys of the SSH agent at `where` (`SSH_AUTH_SOCK`, a path, `none`). Raises OSError, SSHException."""
    if os.name == "nt" and where == "SSH_AUTH_SOCK":
        found = paramiko.Agent()
        try:
            yield found.get_keys()
        finally:
            found.close()
        return
    path = os.environ.get("SSH_AUTH_SOCK", "") if where == "SSH_AUTH_SOCK" else where
    if not path or path == "none" or not Path(path).is_socket():
        yield ()
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(AGENT_S)
        link.connect(path)
        asked = _Agent(link)
        keys = asked.named()
        asked.limit_s = SIGN_S
        yield keys


class _Agent(paramiko.agent.AgentSSH):
    """An agent that is given up after `limit_s`, and of which nothing is believed that no agent would say."""

    def __init__(self, link: socket.socket) -> None:
        super().__init__()
        self._conn = link
        self.limit_s = AGENT_S

    def named(self) -> tuple[paramiko.AgentKey, ...]:
        """Its keys. Raises OSError, SSHException."""
        kind, said = self._send_message(bytes([LIST_KEYS]))  # type: ignore[attr-defined]
        if kind != KEYS:
            raise paramiko.SSHException("it does not name its keys")
        found = []
        for _ in range(said.get_int()):
            if not said.get_remainder():
                raise paramiko.SSHException("it names fewer keys than it says it has")
            blob, comment = said.get_binary(), said.get_binary().decode("utf-8", "replace")
            with suppress(paramiko.SSHException, ValueError, IndexError, struct.error):  # no key at all
                found.append(paramiko.AgentKey(self, blob, comment))
        return tuple(found)

    def _read_all(self, wanted: int) -> bytes:
        if wanted > AGENTS_LONGEST:
            raise paramiko.SSHException("it says what no SSH agent says")
        end, data = time.monotonic() + self.limit_s, b""
        while len(data) < wanted:
            self._conn.settimeout(max(0.01, end - time.monotonic()))
            piece = self._conn.recv(wanted - len(data))
            if not piece:
                raise paramiko.SSHException("it hung up")
            data += piece
            if time.monotonic() > end:
                raise TimeoutError("it does not answer in time")
        return data
