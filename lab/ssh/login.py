"""Lets the user in by a key: a file that was named, one of the agent's, or a default one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import paramiko

from lab.errors import HostUnreachable
from lab.model import Host
from lab.ssh.target import Target

DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")


class AuthenticationRefused(HostUnreachable):
    """The host is there, and lets this user not in."""


def authenticate(host: Host, target: Target, transport: paramiko.Transport) -> None:
    """Authenticate, or raise AuthenticationRefused with all that was tried."""
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
