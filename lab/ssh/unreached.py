"""Why no connection came about, in words for people, and what to do about it."""

from __future__ import annotations

import re
import socket

import paramiko

from lab.errors import HostUnreachable
from lab.model import Host
from lab.ssh.target import Target
from lab.ssh.wire import Heard, NoSuchAddress, Wire, plain


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


FORBIDDEN = 1
"""SSH_OPEN_ADMINISTRATIVELY_PROHIBITED (RFC 4254, 5.1)."""
HARMLESS = (
    "BatchMode",
    "Compression",
    "Control",
    "DynamicForward",
    "ForwardAgent",
    "IPQoS",
    "LocalCommand",
    "LocalForward",
    "NoHostAuthenticationForLocalhost",
    "NumberOfPasswordPrompts",
    "PermitLocalCommand",
    "RekeyLimit",
    "RemoteCommand",
    "RemoteForward",
    "RequestTTY",
    "SendEnv",
    "ServerAliveInterval",
    "SessionType",
    "SetEnv",
    "StrictHostKeyChecking",
    "Tunnel",
)
"""What is not heeded and makes no connection fail."""


def unreachable(
    host: Host, target: Target, error: BaseException, made: Wire | None, link: Heard | None
) -> HostUnreachable:
    """What `error` means for a person, by how far `made` and `link` had come (None where there is none yet)."""
    reason: type[HostUnreachable] = HostUnreachable
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        return _no_algorithm(host, target, error, made)
    if made is not None and link is not None and link.first and not made.remote_version:
        return _no_server(host, target, link)
    if isinstance(error, socket.gaierror):
        kind = {socket.AF_INET: "IPv4", socket.AF_INET6: "IPv6"}.get(socket.AddressFamily(target.family))
        if kind:
            text = f"the name {target.name} has no {kind} address"
            advice = f"AddressFamily in ~/.ssh/config allows {kind} alone: write another name or address, or `any`."
            return HostUnreachable(text, host=host.name, advice=advice)
        text = f"the name {target.name} is not known"
        return HostUnreachable(text, host=host.name, advice="Check the name, or write an address.")
    if isinstance(error, NoSuchAddress):
        text = f"{target} could not be reached from {target.bind}: {error.strerror}"
        advice = "BindAddress in ~/.ssh/config must be an address that this machine has (ip addr)."
        return HostUnreachable(text, host=host.name, advice=advice)
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
            reason = HostUnreachable if made is None or made.offered else Dropped
        elif made is not None and (isinstance(error, EOFError) or not made.remote_version):
            text = f"{target} {_stalled(made, link)}"
        elif made is not None and made.remote_version and not made.offered:
            text = f"{target} calls itself {plain(made.remote_version.encode())} and then speaks no SSH ({error})"
    if isinstance(error, paramiko.ChannelException):
        text = f"{target} could not be reached from its jump host: {error.text}"
        if error.code == FORBIDDEN:
            advice = (
                "The jump host does not let connections through: its sshd_config needs `AllowTcpForwarding yes`,"
                f" and PermitOpen, where it is used, must have {target.name}:{target.port}."
            )
            return HostUnreachable(text, host=host.name, advice=advice)
    if target.command:
        said = f"; it said: {link.said}" if link is not None and link.said else ""
        advice = "Look at ProxyCommand in ~/.ssh/config: run it by hand; it must reach the host's sshd."
        return reason(f"{text} (by its ProxyCommand{said})", host=host.name, advice=advice)
    return reason(text, host=host.name)


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


WEAK = re.compile(
    r"sha1|md5|-group1-|cbc|3des|arcfour|blowfish|cast128|rijndael|ripemd|umac-32|^ssh-rsa|^ssh-dss|none"
)
"""Algorithms that are not safe any more. What is none of these may be sound, and only this program lacks it."""
NO_ALGORITHM = re.compile(r"^(ext-info-|kex-strict-)")
"""What stands among a server's algorithms and says something else (RFC 8308; OpenSSH's PROTOCOL)."""
OURS = {
    "kex_algo_list": ("kex", "KexAlgorithms"),
    "server_key_algo_list": ("keys", "HostKeyAlgorithms"),
    "server_encrypt_algo_list": ("ciphers", "Ciphers"),
    "server_mac_algo_list": ("macs", "MACs"),
}
"""As paramiko calls them, and as ssh_config(5) does."""


def _no_algorithm(host: Host, target: Target, error: BaseException, made: Wire | None) -> HostUnreachable:
    offered = made.offered if made is not None else {}
    for words, key, what in (
        ("kex", "kex_algo_list", "exchanging keys"),
        ("host key", "server_key_algo_list", "its own key"),
        ("cipher", "server_encrypt_algo_list", "encrypting"),
        ("mac", "server_mac_algo_list", "checking what arrives"),
    ):
        names = [name for name in offered.get(key, ()) if not NO_ALGORITHM.match(name)]
        if words in str(error).lower() and names:
            ours, keyword = getattr(Wire, f"_preferred_{OURS[key][0]}"), OURS[key][1]
            ours = [name for name in ours if not name.startswith("mlkem")]  # few servers would know it
            if not all(WEAK.search(name) for name in names):
                both = [name for name in names if name in ours]
                if both:
                    return HostUnreachable(
                        f"{target} knows no algorithm for {what} that the SSH configuration allows,"
                        f" only {', '.join(names)}",
                        host=host.name,
                        advice=f"Allow one of these in {keyword} in ~/.ssh/config: {', '.join(both)}.",
                    )
                return HostUnreachable(
                    f"{target} knows no algorithm for {what} that this program knows, only {', '.join(names)}",
                    host=host.name,
                    advice=f"Nothing is wrong with these; allow one more in its sshd_config: {', '.join(ours[:3])}.",
                )
            return HostUnreachable(
                f"{target} knows no algorithm for {what} that is still safe, only {', '.join(names)}",
                host=host.name,
                advice="Update sshd on the host, or allow a newer algorithm in its sshd_config.",
            )
    return HostUnreachable(
        f"{target} and this program have no algorithm in common: {error}",
        host=host.name,
        advice="Update sshd on the host, or allow a newer algorithm; look at Ciphers, MACs, KexAlgorithms and"
        " HostKeyAlgorithms in ~/.ssh/config.",
    )
