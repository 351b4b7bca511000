"""Private keys of the user: files, of which the public half is read without their passphrase, and the agent's."""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import paramiko

AGENT_S = 5.0
"""How long the agent may take to name its keys."""
SIGN_S = 60.0
"""How long it may take to sign: it may ask the person, or wait for a touch of a hardware key."""
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
    with suppress(binascii.Error, ValueError, IndexError, paramiko.SSHException):
        lines = [line for line in text.splitlines() if not line.startswith(b"-----")]
        data = base64.b64decode(b"".join(lines)) if b"OPENSSH PRIVATE KEY" in text else b""
        if data.startswith(MAGIC):
            message = paramiko.Message(data[len(MAGIC) :])
            for _ in range(3):
                message.get_binary()
            message.get_int()
            blob = message.get_binary()
            return Public(paramiko.Message(blob).get_text(), blob)
    with suppress(OSError, ValueError, IndexError):
        # A public key may be named itself: its private half is then with the agent.
        named = re.match(rb"(ssh|ecdsa|sk)-\S+ ", text)
        words = (path if named else path.with_name(f"{path.name}.pub")).read_text().split()
        return Public(words[0], base64.b64decode(words[1], validate=True))
    return None


def private(path: Path, passphrase: str | None) -> paramiko.PKey | None:
    """The key in a file; None where it wants a passphrase, or another one. Raises Unusable."""
    secret = passphrase.encode("utf-8", "surrogateescape") if passphrase is not None else None
    try:
        return paramiko.PKey.from_path(path, password=secret)  # type: ignore[arg-type]
    except paramiko.PasswordRequiredException:
        return None
    except (paramiko.SSHException, paramiko.pkey.UnknownKeyType, OSError, ValueError, TypeError) as error:
        if path.with_name(f"{path.name}-cert.pub").exists():
            return _alone(path, secret)  # paramiko reads what is beside it, and that may be no certificate
        if locked(path):
            return None
        raise Unusable(str(error) or type(error).__name__) from None


def _alone(path: Path, secret: bytes | None) -> paramiko.PKey | None:
    """The same, whatever is beside the file."""
    why = "its type is not known"
    try:
        text = path.read_text()
    except (OSError, ValueError) as error:
        raise Unusable(str(error)) from None
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(text), password=secret)  # type: ignore[arg-type]
        except paramiko.PasswordRequiredException:
            return None
        except (paramiko.SSHException, ValueError, TypeError) as error:
            why = str(error) or type(error).__name__
    if locked(path):
        return None
    raise Unusable(why)


def locked(path: Path) -> bool:
    """Whether a key file is encrypted."""
    try:
        text = path.read_bytes()
    except OSError:
        return False
    if b"ENCRYPTED" in text:
        return True
    with suppress(binascii.Error):
        lines = [line for line in text.splitlines() if not line.startswith(b"-----")]
        data = base64.b64decode(b"".join(lines))
        if data.startswith(MAGIC):
            return paramiko.Message(data[len(MAGIC) :]).get_binary() != b"none"
    return False


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
        asked = paramiko.agent.AgentSSH()
        asked._connect(link)  # type: ignore[attr-defined]
        link.settimeout(SIGN_S)
        yield asked.get_keys()
