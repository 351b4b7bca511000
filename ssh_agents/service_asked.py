"""A service of the lab as it is asked for: kind, engine, folder, port, options; checked before anything is touched."""

import ipaddress
import ntpath
import os
import re
from typing import Any, Dict, List, NamedTuple, Optional

from ssh_agents import cache_paths
from ssh_agents.protocol import Refused, need, need_strings

KINDS = {
    "svn-server": ("apache",),
    "caching-proxy": ("apache", "squid", "nginx"),
}
"""The fixed table of services, and the programs that can be each; the first one unless another is asked for."""
SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr")
"""Nothing of a service lies below these (but in /dev/shm), whoever asks."""
LOG = "access.log"
"""A service's access log, in its folder."""
PROBE_AGENT = "branchlab-probe"
"""The one who asks whether a service answers, or purges; its requests are not logged."""
OPTIONS = {
    "svn-server": ("repository", "path", "allow", "listen", "deflate_level", "memory_cache_kb"),
    "caching-proxy": (
        *("engine", "cache", "allow", "listen", "origins", "origin_ports", "largest_file_bytes"),
        "keep_cache",
    ),
}

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


class Spec(NamedTuple):
    """A service as asked, checked.

    `engine` is the program that it is; `data` what it writes beside its folder: repository or cache.
    """

    kind: str
    engine: str
    folder: str
    port: int
    listen: List[str]
    data: str
    options: Dict[str, Any]
    given: List[str]
    """the names of the options that were asked for; the others have their defaults"""


def kind(args: Dict[str, Any]) -> str:
    """The checked kind of service."""
    value = need(args, "kind", str)
    if value not in KINDS:
        raise Refused(
            "bad-request", "no such service: %r" % (value,), "known are %s" % ", ".join(sorted(KINDS))
        )
    return str(value)


def absolute(args: Dict[str, Any], name: str, default: Optional[str] = None) -> str:
    """A checked absolute path that a configuration can hold; on Windows with slashes, as Apache wants it."""
    path = need(args, name, str, default)
    if os.sep == "\\":
        return _on_windows(path, name)
    if not path.startswith("/") or path != os.path.normpath(path) or path.count("/") < 2:
        raise Refused("bad-request", "%s must be an absolute path below a folder, not %r" % (name, path))
    if not path.startswith("/dev/shm/") and any(path.startswith(above + "/") for above in SYSTEM):  # noqa: S108
        raise Refused("bad-request", "%s is below a folder of the system: %r" % (name, path))
    # With these, quoting or a line of the configuration could be broken.
    if any(ord(sign) < 32 or sign in "\"'\\$%{}" for sign in path):
        raise Refused("bad-request", "%s has a sign that a configuration cannot hold: %r" % (name, path))
    return str(path)


def _on_windows(path: str, name: str) -> str:
    path = ntpath.normpath(path)  # the profile's folder with a slash and a name behind it
    cache_paths.guard(path, "the %s of a service" % name)
    if any(ord(sign) < 32 or sign in "'$%{}" for sign in path):
        raise Refused("bad-request", "%s has a sign that a configuration cannot hold: %r" % (name, path))
    return path.replace("\\", "/")


def spec(args: Dict[str, Any]) -> Spec:
    """The service asked for. Refuses with `bad-request` what cannot be right."""
    what, folder = kind(args), absolute(args, "folder")
    port = _number(args, "port", None, 1, 65535)
    options = need(args, "options", dict, {})
    extra = sorted(set(options) - set(OPTIONS[what]))
    if extra:
        raise Refused(
            "bad-request",
            "a %s has no option %r" % (what, extra[0]),
            "known are %s" % ", ".join(OPTIONS[what]),
        )
    listen = addresses(options, "listen")
    if what == "svn-server":
        data, found = absolute(options, "repository"), _svn_options(options)
    else:
        data, found = absolute(options, "cache", os.path.join(folder, "cache")), _proxy_options(options)
    engine = need(options, "engine", str, KINDS[what][0])
    if engine not in KINDS[what]:
        raise Refused("bad-request", "no such engine: %r" % engine, "known are %s" % ", ".join(KINDS[what]))
    return Spec(what, engine, folder, port, listen, data, found, sorted(options))


def _svn_options(options: Dict[str, Any]) -> Dict[str, Any]:
    path = need(options, "path", str, "/svn")
    if not path.startswith("/") or not path[1:].replace("-", "").replace("_", "").isalnum():
        raise Refused("bad-request", "path must be / and a plain word, not %r" % (path,))
    return {
        "path": path,
        "allow": _allowed(options, "an svn-server"),
        "deflate_level": _number(options, "deflate_level", 6, 0, 9),
        "memory_cache_kb": _number(options, "memory_cache_kb", 65536, 0, 1 << 22),
    }


def _proxy_options(options: Dict[str, Any]) -> Dict[str, Any]:
    ports = options.get("origin_ports", [80])
    if (
        not isinstance(ports, list)
        or not all(type(port) is int and 0 < port < 65536 for port in ports)
        or not ports
    ):
        raise Refused("bad-request", "origin_ports must be a list of ports, not %r" % (ports,))
    return {
        "allow": _allowed(options, "a caching-proxy"),
        "origins": _origins(options),
        "origin_ports": ports,
        "largest_file_bytes": _number(options, "largest_file_bytes", 1 << 30, 1, 1 << 40),
        "keep_cache": need(options, "keep_cache", bool, False),
    }


def _allowed(options: Dict[str, Any], what: str) -> List[str]:
    allow = addresses(options, "allow")
    if not allow:
        raise Refused("bad-request", "%s needs option allow: the addresses that may use it" % what)
    return allow


def _origins(options: Dict[str, Any]) -> List[str]:
    """Addresses or names, in small letters: as a client's request spells the server's."""
    found = [one.lower() for one in need_strings(options, "origins", [])]
    if not found:
        raise Refused(
            "bad-request", "a caching-proxy needs option origins: the addresses or names that it may go to"
        )
    for one in found:
        if not (_NAME.fullmatch(one) and re.search("[a-z]", one)):
            addresses({"origins": [one]}, "origins")
    return found


def authorities(asked: Spec) -> List[str]:
    """Every `host:port` that a proxy may go to, and `host` where the port is 80, as they stand in a URL."""
    hosts = ["[%s]" % one if ":" in one else one for one in asked.options["origins"]]
    ports = ["", ":80"] if 80 in asked.options["origin_ports"] else []
    ports += [":%d" % port for port in asked.options["origin_ports"] if port != 80]
    return [host + port for host in hosts for port in ports]


def addresses(options: Dict[str, Any], name: str) -> List[str]:
    """A checked list of IP addresses."""
    out = need_strings(options, name, [])
    for address in out:
        try:
            # No networks: nobody wants an open proxy by a slip. No scopes: those may hold line ends.
            ipaddress.ip_address("" if "%" in address else address)
        except ValueError:
            raise Refused("bad-request", "option %s: %r is no IP address" % (name, address)) from None
    return out


def _number(args: Dict[str, Any], name: str, default: Optional[int], least: int, most: int) -> int:
    value = need(args, name, int, default)
    if not least <= value <= most:
        raise Refused("bad-request", "%s must be %d to %d, not %r" % (name, least, most, value))
    return int(value)
