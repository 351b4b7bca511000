"""Kind `squid`: purged by Squid itself, with HTTP requests PURGE from its own host.

What is cached is read from the files of a cache_dir of type ufs, aufs or diskd. What is known of them is from Squid's
src/StoreMeta.h: a head of typed values, of which number 4 is the URL and number 8 the request's headers that select
a variant. (The manager's report `objects` would tell of memory too; with 5.7 it was seen not to end.)

A PURGE takes out one variant, and with it the marker without which no other is found any more; but once the
object is fetched again, and with it the marker, the others would serve again (seen with 5.7). So what is left
of an object is deleted as a file: Squid takes a missing file for a miss and fetches anew (TCP_SWAPFAIL_MISS).
"""

import http.client
import re
import socket
import struct
import urllib.parse
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from ssh_agents import cache_folder, protocol
from ssh_agents.cache_folder import Folder, Where

FOLDER = re.compile(r"[0-9A-F]{2}")
FILE = re.compile(r"[0-9A-F]{8}")
OWN = re.compile(r"swap\.state[A-Za-z0-9._-]*")
LEVELS = 2
OK, URL, VARY = 3, 4, 8  # STORE_META_OK, STORE_META_URL, STORE_META_VARY_HEADERS
HEAD = struct.Struct("=bi")
LINES = "acl PURGE method PURGE\nhttp_access allow PURGE localhost"
"""What lets a host purge its own Squid; to be written above the other lines of http_access."""
WAIT_S = 2.0
"""Squid deletes files a moment after it has answered."""
TIMEOUT_S = 20.0
AGENT = "branchlab-probe"
_URL = re.compile(r"(https?)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(/[\x21-\x7e]*)?")
_SELECTED = re.compile(r'([^=,\s"]+)(?:="([^"]*)")?')

Headers = Tuple[Tuple[str, str], ...]
"""Names and values of a request's headers that select a variant."""


class Stored(NamedTuple):
    """One stored answer: its URL in our form, what selects it, and its bytes."""

    url: str
    selected: Headers
    length: int


def listed(args: Dict[str, Any], call: protocol.Call, tell: Callable[[str, int, int], None]) -> int:
    """Tell each object: URL, bytes and files, all variants together. Returns 0: what has no URL is no object."""
    found: Dict[str, List[int]] = {}
    for one in _stored(args, call):
        found.setdefault(one.url, []).append(one.length)
    for url, lengths in found.items():
        tell(url, sum(lengths), len(lengths))
    return 0


def purged(
    args: Dict[str, Any], call: protocol.Call, wanted: Optional[List[str]], tell: Callable[[str, int], None]
) -> None:
    """Purge the objects of these URLs, or all (None), and tell each that was there: URL and bytes."""
    there: Dict[str, List[Stored]] = {}
    for one in _stored(args, call):
        there.setdefault(one.url, []).append(one)
    urls = list(there) if wanted is None else list(dict.fromkeys(wanted))
    for url in urls:
        if url_of(url.encode("utf-8", "replace")) != url:
            raise protocol.Refused("bad-request", "%r is no URL that Squid can be asked to purge" % url)
    with _Squid(args) as squid:
        for url in urls:
            if call.cancelled():
                raise protocol.Refused("cancelled", "the purge was cancelled")
            # Without headers too, since what was stored a moment ago may not be on the disk yet.
            variants = dict.fromkeys([*(one.selected for one in there.get(url, ())), ()])
            answered = [squid.purge(url, headers) for headers in variants]
            if url in there or any(answered):
                tell(url, sum(one.length for one in there.get(url, ())))
    _rest_deleted(args, call, set(urls))


def url_of(text: bytes) -> Optional[str]:
    """A URL as Squid keeps it, in our form: with its port. None for anything else."""
    match = _URL.fullmatch(text.decode("ascii", "replace"))
    if match is None:
        return None
    scheme, host, port, path = match.groups()
    return "%s://%s:%s%s" % (scheme, host.lower(), port or {"http": 80, "https": 443}[scheme], path or "/")


def stored(head: bytes, length: int) -> Optional[Stored]:
    """What the first bytes of a swap file say; None if it is none, or is not whole."""
    if len(head) < HEAD.size or head[0] != OK:
        return None
    end = HEAD.unpack_from(head)[1]
    values: Dict[int, bytes] = {}
    place = HEAD.size
    while place + HEAD.size <= min(end, len(head)):
        kind, size = HEAD.unpack_from(head, place)
        place += HEAD.size
        if not 0 <= size <= end - place:
            return None
        values[kind] = head[place : place + size]
        place += size
    url = url_of(values.get(URL, b"").rstrip(b"\0"))
    return None if url is None else Stored(url, selection(values.get(VARY, b"")), length)


def selection(text: bytes) -> Headers:
    """The headers in a variant's mark, such as `accept-encoding="gzip", accept-language`."""
    pairs = _SELECTED.findall(text.rstrip(b"\0").decode("ascii", "replace"))
    return tuple((name, urllib.parse.unquote(value)) for name, value in pairs)


def _stored(args: Dict[str, Any], call: protocol.Call) -> List[Stored]:
    found: List[Stored] = []
    _walked(args, call, lambda folder, name, one: found.append(one))
    return found


def _walked(args: Dict[str, Any], call: protocol.Call, one: Callable[[Folder, str, Stored], None]) -> None:
    """Tell of every whole swap file. Refuses what Squid does not make, and what only Squid can read."""
    foreign = cache_folder.foreign_to("Squid")

    def seen(folder: Folder, where: Where, names: List[str]) -> List[str]:
        inner = []
        for name in names:
            if FOLDER.fullmatch(name) and len(where) < LEVELS:
                inner.append(name)
            elif FILE.fullmatch(name) and len(where) == LEVELS:
                length, head = cache_folder.size(folder, name), cache_folder.head(folder, name)
                if length and not head and cache_folder.size(folder, name):
                    raise protocol.Refused(
                        "denied", "%s cannot be read" % name, "to list %s" % args["folder"]
                    )
                found = None if length is None else stored(head, length)
                if found is not None:
                    one(folder, name, found)
            elif not where and name == "rock":
                raise protocol.Refused(
                    "unsupported",
                    "this is a cache_dir of type rock, which only Squid can read; ufs, aufs and diskd can be listed",
                    "to list %s" % args["folder"],
                )
            elif not (not where and OWN.fullmatch(name)) and not name.startswith(".branchlab"):
                foreign(where, name)
        return inner

    with cache_folder.root(args) as root:
        cache_folder.walk(root, call, seen, foreign)


def _rest_deleted(args: Dict[str, Any], call: protocol.Call, urls: Set[str]) -> None:
    """Delete the files of these URLs that Squid left, after a moment in which it may do so itself."""
    left: List[str] = []

    def look(folder: Folder, name: str, one: Stored) -> None:
        if one.url in urls:
            left.append(name)

    def delete(folder: Folder, name: str, one: Stored) -> None:
        if one.url in urls:
            cache_folder.unlinked(folder, name)

    waited = 0.0
    while waited < WAIT_S:
        before = len(left)
        left.clear()
        _walked(args, call, look)
        if not left:
            return
        # Variants that Squid cannot find any more are never deleted by it: no use waiting once nothing changes.
        if before == len(left) and waited >= WAIT_S / 4:
            break
        call.wait_cancelled(0.1)
        waited += 0.1
    _walked(args, call, delete)


class _Squid:
    """Connections to the Squid of this host."""

    def __init__(self, args: Dict[str, Any]) -> None:
        port, host = protocol.need(args, "port", int), protocol.need(args, "host", str, "")
        if not 0 < port < 65536:
            raise protocol.Refused("bad-request", "port must be 1 to 65535, not %r" % port)
        places = [("127.0.0.1", port), ("::1", port), *([(host, port)] if host else [])]
        self._place = next((place for place in places if _answers(place)), None)
        if self._place is None:
            raise protocol.Refused(
                "missing",
                "no Squid answers on this host on port %d" % port,
                "connect to %s" % ", ".join("%s port %d" % place for place in places),
            )
        self._link = http.client.HTTPConnection(*self._place, timeout=TIMEOUT_S)

    def __enter__(self) -> "_Squid":
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()

    def purge(self, url: str, headers: Headers) -> bool:
        """True if this was in the cache."""
        status = self._asked(url, headers)
        if status in (401, 403, 407):
            raise protocol.Refused(
                "denied",
                "Squid does not let this host purge (status %d): write above the other lines of http_access in its"
                " squid.conf, then reload it:\n%s" % (status, LINES),
                "PURGE " + url,
            )
        if status not in (200, 404):
            raise protocol.Refused(
                "failed", "PURGE was answered with status %d: is this a Squid?" % status, "PURGE " + url
            )
        return status == 200

    def _asked(self, url: str, headers: Headers) -> int:
        try:
            # Of a header that the request lacked there is no value, and none must be sent.
            sent = {name: value for name, value in headers if value}
            self._link.request("PURGE", url, headers={"User-Agent": AGENT, **sent})
            answer = self._link.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._link.close()
            raise protocol.Refused("failed", "Squid does not answer: %s" % error, "PURGE " + url) from None
        return answer.status


def _answers(place: Tuple[str, int]) -> bool:
    """True if this is an address of this host, and something listens there."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET) as probe:
            probe.bind((place[0], 0))  # fails for an address that is not ours
        socket.create_connection(place, 5).close()
    except OSError:
        return False
    return True
