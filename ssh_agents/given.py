"""Checked arguments about addresses; each function refuses with `bad-request`."""

import ipaddress
from typing import Any, Dict, Tuple

from ssh_agents import protocol


def address(value: object) -> str:
    """An IP address in the one way that it is written here; IPv4 within IPv6 as IPv4."""
    text = value if isinstance(value, str) else ""
    try:
        # A scope (`%eth0`) may hold anything, line ends too, and this text becomes part of tools' input.
        found = ipaddress.ip_address("" if "%" in text else text)
    except ValueError:
        raise protocol.Refused("bad-request", "%r is not an IP address" % (value,)) from None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


def addresses(args: Dict[str, Any], name: str) -> Tuple[str, ...]:
    """At least one address, sorted, each once."""
    found = protocol.need_strings(args, name)
    if not found:
        raise protocol.Refused("bad-request", "argument %r names no address" % name)
    return tuple(sorted({address(text) for text in found}))


def port(value: object) -> int:
    """A port of TCP or UDP."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 65536:
        raise protocol.Refused("bad-request", "%r is no port" % (value,))
    return value


def exempt(args: Dict[str, Any]) -> Tuple[Tuple[str, int], ...]:
    """The pairs of address and port that are neither limited nor counted; there may be none."""
    found = set()
    for one in protocol.need(args, "exempt", list, []):
        if not isinstance(one, dict):
            raise protocol.Refused("bad-request", "exempt holds address and port, not %r" % (one,))
        found.add((address(one.get("address")), port(one.get("port"))))
    return tuple(sorted(found))
