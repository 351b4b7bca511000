"""A proxy's cache: its objects listed and purged, and what was left after a purge looked at again.

Each kind of cache is a module of its own; this one knows what all have in common.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

from ssh_agents import cache_apache, cache_command, cache_nginx, cache_squid, cache_tree, protocol

PORTION = 500
PORTION_BYTES = 200_000
"""A portion of a listing is at most so many objects, and about so many bytes of URLs."""

Listed = Callable[[Dict[str, Any], protocol.Call, Callable[[str, int, int], None]], int]
Purged = Callable[[Dict[str, Any], protocol.Call, Optional[List[str]], Callable[[str, int], None]], None]


class Kind(NamedTuple):
    """A kind of cache: how it lists and purges; whether its objects are named by URLs."""

    listed: Listed
    purged: Purged
    urls: bool = True


KINDS = {
    "apache-disk": Kind(cache_apache.listed, cache_apache.purged),
    "nginx-proxy-cache": Kind(cache_nginx.listed, cache_nginx.purged),
    "squid": Kind(cache_squid.listed, cache_squid.purged),
    "folder": Kind(cache_tree.listed, cache_tree.purged, urls=False),
    "command": Kind(cache_command.listed, cache_command.purged, urls=False),
}
ROOTS = ("apache-disk", "nginx-proxy-cache", "squid")
"""The kinds that root's agent knows: what they delete is known for a cache's by its content. Anything else is done
with the user's own rights, so that none are lent for deleting what is somebody else's."""


def listed(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `cache.list`: events `objects` with up to 500 each; the last word counts objects, bytes, `others`.

    {kind, folder} (squid: also `port`, `host`; folder: also `owns`; command: `list` instead of a folder). An object
    is one URL with all its variants: `url`, `key` (path and query alone), `bytes` and `files`; `others` is how many
    files of the cache name no URL. Objects that come or go meanwhile may be missing or told.
    """
    return _listed(_kind(args, by_root=True), args, call)


def purged(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `cache.purge`: take out the objects with these `urls`, with all their variants.

    Not `all` of them, which only the ordinary agent takes: what root deletes was named, and has a header that tells
    its URL. Returns `removed` (objects), their `bytes`, and `already_gone`: asked URLs that were not there. Refuses
    before anything is touched where the folder holds a file that this kind of cache does not make; with `touched`
    where an object is in the cache still, or again. What was taken out is told in the host's journal, with
    `origin`, whose objects these are, if it is given.
    """
    kind = _kind(args, by_root=True)
    if "all" in args:
        raise protocol.Refused("denied", "root takes out only objects that are named", "cache.purge of all")
    return _purged(kind, args, call)


def listed_by_user(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `cache.list` of the ordinary agent, which knows all kinds."""
    return _listed(_kind(args, by_root=False), args, call)


def purged_by_user(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `cache.purge` of the ordinary agent, which knows all kinds; also `all` objects."""
    return _purged(_kind(args, by_root=False), args, call)


def key(url: str) -> str:
    """Path and query of a URL as a cache names it: the same for every host, scheme and port."""
    rest = url.partition("://")[2]
    path = rest[rest.find("/") :] if "/" in rest else "/"
    return path[:-1] if path.endswith("?") else path


def _kind(args: Dict[str, Any], by_root: bool) -> Kind:
    name = protocol.need(args, "kind", str)
    if name not in KINDS:
        raise protocol.Refused(
            "bad-request", "no such kind of cache: %r; known are %s" % (name, ", ".join(sorted(KINDS)))
        )
    if by_root and name not in ROOTS:
        raise protocol.Refused("denied", "a cache of kind %s is purged by the ordinary agent only" % name)
    return KINDS[name]


def _listed(kind: Kind, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    portion: List[Dict[str, Any]] = []
    total = {"objects": 0, "bytes": 0}
    size = 0

    def tell(url: str, length: int, files: int) -> None:
        nonlocal size
        portion.append({"url": url, "key": key(url) if kind.urls else url, "bytes": length, "files": files})
        total["objects"] += 1
        total["bytes"] += length
        size += 2 * len(url)
        if len(portion) >= PORTION or size > PORTION_BYTES:
            call.say("objects", {"objects": portion[:]})
            portion.clear()
            size = 0

    others = kind.listed(args, call, tell)
    if portion:
        call.say("objects", {"objects": portion})
    return dict(total, others=others)


def _purged(kind: Kind, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    everything = protocol.need(args, "all", bool, False)
    urls = protocol.need_strings(args, "urls", [])
    if everything == bool(urls) and (everything or "urls" not in args):
        raise protocol.Refused("bad-request", "either urls or all must be given")
    # This look refuses foreign files before the first object is deleted.
    there = _names(kind, args, call)
    seen: Set[str] = set()
    total = {"removed": 0, "bytes": 0}

    def tell(url: str, length: int) -> None:
        seen.add(url)
        total["removed"] += 1
        total["bytes"] += length

    try:
        kind.purged(args, call, None if everything else urls, tell)
    finally:
        if total["removed"]:
            call.tell(_told(args, total["removed"], total["bytes"]))
    asked = there if everything else set(urls)
    left = sorted(_names(kind, args, call) & asked)
    if left:
        raise protocol.Refused(
            "touched",
            "%d of %d objects are in the cache still, or again, after the purge: %s"
            % (len(left), len(asked), ", ".join(left[:3])),
            "purged, then listed the cache",
        )
    return dict(total, already_gone=0 if everything else len(asked - seen))


def _told(args: Dict[str, Any], objects: int, length: int) -> str:
    of = protocol.need(args, "origin", str, "")
    where = protocol.need(args, "folder", str, "") or "that is purged by " + " ".join(
        protocol.need_strings(args, "purge", [])
    )
    return "%d objects (%d bytes)%s taken out of the cache %s" % (
        objects,
        length,
        " of " + of if of else "",
        where,
    )


def _names(kind: Kind, args: Dict[str, Any], call: protocol.Call) -> Set[str]:
    found: Set[str] = set()
    kind.listed(args, call, lambda url, length, files: found.add(url))
    return found
