"""Asks an address over HTTP once, directly or through a proxy, as a client would: does it let in, may it be stored?"""

import base64
import http.client
import re
from typing import Any, Dict, Optional, Tuple
from urllib.parse import urlsplit

from ssh_agents import given, protocol

TIMEOUT_S = 10.0
READ_BYTES = 65_536
AGENT = "branchlab-check"
_KEPT = (
    "server",
    "via",
    "www-authenticate",
    "proxy-authenticate",
    "cache-control",
    "vary",
    "location",
    "dav",
    "date",
)
_METHODS = ("GET", "OPTIONS")


def look(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `http.look`: one GET (or `method` OPTIONS) of `url` (http only), through `proxy` ({host, port}) if given.

    No password is sent but that of `login` ({user, password}) to the proxy, once, as Basic.

    Returns {status, reason, headers}: of the headers those that say who answered, when by its clock, and whether it
    may be stored. Refuses with `missing` where nothing answers. Reads and changes nothing beyond that.
    """
    host, port, path, url = _url(protocol.need(args, "url", str))
    proxy = _proxy(args)
    method = protocol.need(args, "method", str, "GET")
    if method not in _METHODS:
        raise protocol.Refused("bad-request", "no method that only looks: %r" % (method,))
    at = proxy or (host, port)
    where = "%s:%d" % at
    line = http.client.HTTPConnection(at[0], at[1], timeout=TIMEOUT_S)
    try:
        headers = {"User-Agent": AGENT, "Accept-Encoding": "identity", "Connection": "close"}
        headers.update(_login(args) if proxy else {})
        line.request(method, url if proxy else path, headers=headers)
        answer = line.getresponse()
        answer.read(READ_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise protocol.Refused(
            "missing",
            "%s does not answer over HTTP: %s" % (where, error or type(error).__name__),
            method + " " + url,
        ) from None
    finally:
        line.close()
    kept: Dict[str, str] = {}
    for name, value in answer.getheaders():
        if name.lower() in _KEPT:  # a header that comes twice says both (RFC 9110, 5.3)
            kept[name.lower()] = _plain(", ".join(filter(None, [kept.get(name.lower()), value])))
    return {"status": answer.status, "reason": _plain(answer.reason or ""), "headers": kept}


def _url(text: str) -> Tuple[str, int, str, str]:
    """Host, port, path and the whole of a URL without a user, a password or a fragment."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    plain = text.isascii() and text.isprintable() and " " not in text
    if not plain or parts.scheme != "http" or not parts.hostname or "@" in parts.netloc or parts.fragment:
        raise protocol.Refused("bad-request", "not a plain http address: %r" % (text,))
    path = (parts.path or "/") + ("?" + parts.query if parts.query else "")
    return parts.hostname, given.port(port or 80), path, text


def _proxy(args: Dict[str, Any]) -> Optional[Tuple[str, int]]:
    proxy = protocol.need(args, "proxy", dict, {})
    if not proxy:
        return None
    host = protocol.need(proxy, "host", str)
    if not re.fullmatch(r"[A-Za-z0-9.:_-]+", host):
        raise protocol.Refused("bad-request", "not the name of a host: %r" % host)
    return host, given.port(proxy.get("port"))


def _login(args: Dict[str, Any]) -> Dict[str, str]:
    login = protocol.need(args, "login", dict, {})
    if not login:
        return {}
    pair = "%s:%s" % (protocol.need(login, "user", str), protocol.need(login, "password", str))
    return {
        "Proxy-Authorization": "Basic " + base64.b64encode(pair.encode("utf-8", "replace")).decode("ascii")
    }


def _plain(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:500]
