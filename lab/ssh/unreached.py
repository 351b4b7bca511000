"""Why no connection came about, in words for people, and what to do about it."""

from __future__ import annotations

import re
import socket

import paramiko

from lab.errors import HostUnreachable
from lab.model import Host
from lab.ssh.target import Target
from lab.ssh.wire import Heard, Wire, plain


class Dropped(HostUnreachable):
    """The server hung up before it said which algorithms it has."""


def suspected(error: HostUnreachable, target: Target) -> HostUnreachable:
    """The same, with what the SSH configuration says in vain: that may be the reason."""
    vain = [text for text in target.unheeded if not text.startswith(HARMLESS)]
    if vain:
        error.advice += (
            f" Your SSH configuration says what has no effect here, and may be needed: {'; '.join(vain)}."
        )
    return error


HARMLESS = ("ServerAliveInterval", "StrictHostKeyChecking")
"""What is not heeded and makes no connection fail."""


def unreachable(
    host: Host, target: Target, error: BaseException, made: Wire | None, link: Heard | None
) -> HostUnreachable:
    """What `error` means for a person, by how far `made` and `link` had come (None where there is none yet)."""
    kind: type[HostUnreachable] = HostUnreachable
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        return _no_algorithm(host, target, error, made)
    if made is not None and link is not None and link.first and not made.remote_version:
        return _no_server(host, target, link)
    if isinstance(error, socket.gaierror):
        text = f"the name {target.name} is not known"
        return HostUnreachable(text, host=host.name, advice="Check the name, or write an address.")
    if isinstance(error, ConnectionRefusedError):
        text = f"{target} refuses connections: nothing listens there"
    elif isinstance(error, TimeoutError):
        text = f"{target} {_stalled(made, link)}"
    elif isinstance(error, FileNotFoundError) and target.path:
        text = f"there is no socket {target.path}: its lab is not up"
        advice = "Make a lab (branchlab lab up) and use the profile that it prints: each lab has a profile of its own."
        return HostUnreachable(text, host=host.name, advice=advice)
    else:
        text = f"{target} could not be reached: {str(error) or type(error).__name__}"
        if link is not None and link.ended:
            text = f"{target} hung up"
            kind = HostUnreachable if made is None or made.offered else Dropped
        elif made is not None and (isinstance(error, EOFError) or not made.remote_version):
            text = f"{target} {_stalled(made, link)}"
        elif made is not None and made.remote_version and not made.offered:
            text = f"{target} calls itself {plain(made.remote_version.encode())} and then speaks no SSH ({error})"
    if isinstance(error, paramiko.ChannelException):
        text = f"{target} could not be reached from its jump host: {error.text}"
    if target.command:
        said = f"; it said: {link.said}" if link is not None and link.said else ""
        text += f" (by its ProxyCommand{said})"
    return kind(text, host=host.name)


def _stalled(made: Wire | None, link: Heard | None) -> str:
    if made is None or link is None:
        return "did not answer in time"
    if not made.remote_version:
        return "took the connection, and did not say in time that it is an SSH server"
    return f"({plain(made.remote_version.encode())}) fell silent while keys were exchanged"


BUSY = re.compile(rb"(?i)exceeded maxstartups|not allowed at this time")
"""What sshd says instead of its name when it takes no more connections for now."""


def _no_server(host: Host, target: Target, link: Heard) -> HostUnreachable:
    said = plain(link.first).strip()
    if BUSY.match(link.first):
        return Dropped(f"{target} takes no connection now; it said: {said}", host=host.name)
    by, advice = "", "Check the port: something else than sshd answers there."
    if target.command:
        by = " (by its ProxyCommand)"
        if link.said:
            by = f" (by its ProxyCommand, which complained: {link.said})"
        advice = "Look at ProxyCommand in ~/.ssh/config: it must pass on what the server says, and nothing of its own."
    return HostUnreachable(f"{target}{by} is no SSH server; it said: {said}", host=host.name, advice=advice)


SAFE = re.compile("sntrup|mlkem|chacha20|umac-128|sk-ssh|sk-ecdsa")
"""Algorithms that are sound, and that only this program lacks."""
OURS = {
    "kex_algo_list": "kex",
    "server_key_algo_list": "key_types",
    "server_encrypt_algo_list": "ciphers",
    "server_mac_algo_list": "digests",
}


def _no_algorithm(host: Host, target: Target, error: BaseException, made: Wire | None) -> HostUnreachable:
    offered = made.offered if made is not None else {}
    for words, key, what in (
        ("kex", "kex_algo_list", "exchanging keys"),
        ("host key", "server_key_algo_list", "its own key"),
        ("cipher", "server_encrypt_algo_list", "encrypting"),
        ("mac", "server_mac_algo_list", "checking what arrives"),
    ):
        if words in str(error).lower() and offered.get(key):
            if made is not None and any(SAFE.search(name) for name in offered[key]):
                ours = list(getattr(made.get_security_options(), OURS[key]))
                return HostUnreachable(
                    f"{target} knows no algorithm for {what} that this program knows, only {', '.join(offered[key])}",
                    host=host.name,
                    advice=f"Nothing is wrong with these; allow one more in its sshd_config: {', '.join(ours[:3])}.",
                )
            return HostUnreachable(
                f"{target} knows no algorithm for {what} that is still safe, only {', '.join(offered[key])}",
                host=host.name,
                advice="Update sshd on the host, or allow a newer algorithm in its sshd_config.",
            )
    return HostUnreachable(
        f"{target} and this program have no algorithm in common: {error}",
        host=host.name,
        advice="Update sshd on the host, or allow a newer algorithm; look at Ciphers, MACs, KexAlgorithms and"
        " HostKeyAlgorithms in ~/.ssh/config.",
    )
