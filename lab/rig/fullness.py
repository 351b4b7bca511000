"""The proxy's cache, brought to a fullness and measured: 100 % is a list of objects, made by running the operation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from lab import caches, design
from lab.asking import Declined
from lab.errors import LabError, TrialFailed
from lab.model import Cache, ProxyState
from lab.rig.hosts import Connected
from lab.rig.scratch import PROXY_PORT
from lab.stop import Stop

NEVER = "branchlab-may-purge"
"""A name that no repository has: to ask whether a purge is let, of nothing."""
CHUNK = 2000
"""Names of objects per purge request, so that a message stays far below the protocol's limit."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was in the cache when a trial was ready to begin, of the list that its operation needs."""

    full: float
    """percent of the list's objects"""
    objects: int
    cache_bytes: int
    purged: tuple[str, ...]
    """the objects that the state left out, by URL without host and port, sorted"""

    def holds(self, state: ProxyState, listed: int) -> bool:
        """True if this is the state asked, to the nearest object."""
        return state.full is not None and abs(self.full - state.full) <= 50 / max(1, listed) + 1e-9


@dataclass(frozen=True, slots=True)
class Learnt:
    """What 100 % is for an operation: whose list it is, how many objects, their bytes in the cache."""

    list_of: str
    objects: int
    cache_bytes: int
    others: int
    """objects of the repository that others brought in: neither counted nor touched"""


@dataclass(slots=True)
class Ours:
    """Which objects a run may take out of a cache: those that a person was shown and agreed to, and its own."""

    everything: bool = False
    """in a lab that BranchLab made itself"""
    keys: set[str] = field(default_factory=set)
    passing: set[str] = field(default_factory=set)
    """parts of the URLs of what a run made, and removes again, in the repository"""

    def has(self, one: Mapping[str, Any]) -> bool:
        """True if this object may be taken out."""
        return self.everything or one["key"] in self.keys or any(part in one["url"] for part in self.passing)


class Fullness:
    """Fills and purges the cache on the proxy host. `fill(operation)` runs it once through the proxy, unlimited.

    Only objects of the `origin` (the repository's root, `http://host:port/svn/`) are ever looked at, and only those
    of `ours` purged: what others keep in the same cache stays. `noted` fills as `fill` does, and says which URLs
    were asked for; only those are counted as brought in. Without it, and where objects have no URLs, everything is
    that appears during a fill.
    """

    def __init__(
        self,
        proxy: Connected,
        cache: Cache,
        origin: str,
        fill: Callable[[str, Stop], None],
        *,
        ours: Ours | None = None,
        noted: Callable[[str, Stop], Collection[str]] | None = None,
    ) -> None:
        urls = caches.kind(cache.kind).urls
        # What cannot be told to be a cache's is never deleted by root's agent, and no command is run by it.
        self._agent = (proxy.root or proxy.agent) if urls else proxy.agent
        self._host = proxy.name
        self._where = _where(cache, proxy)
        self.place = (proxy.host.ssh, cache.kind, cache.folder or " ".join(cache.list), origin)
        """which cache of which host, and which objects in it"""
        self.origin = origin if urls else ""
        self.folder = cache.folder or cache.kind
        self._others = 0
        """files in the cache that name no URL, when it was listed last"""
        self._fill = fill
        self._noted = noted if urls else None
        self.ours = Ours() if ours is None else ours
        self._full: dict[str, dict[str, str]] = {}
        """operation -> key -> URL of its whole list"""
        self._sizes: dict[str, int] = {}
        self._filler: dict[str, str] = {}
        """operation -> the operation whose run brings its list in"""

    def listed(self, operation: str) -> int:
        """How many objects 100 % is for this operation."""
        return len(self._full[operation])

    def keys(self, operation: str) -> frozenset[str]:
        """The objects that 100 % is for this operation, as the cache names them."""
        return frozenset(self._full[operation])

    def known(self, operation: str) -> bool:
        """True once 100 % was made for this operation."""
        return operation in self._full

    def learn(self, operation: str, stop: Stop, instead: str | None = None) -> Learnt:
        """Make 100 % for `operation`: take out what is ours, run it once, list what it brought in.

        Where nothing appeared, the list of `instead` is taken. Raises Declined where others brought in what it
        needs, since nobody was asked whether that may be taken out.
        """
        self._purge(self._of_ours(self._present(stop)), stop)
        before = self._present(stop)
        asked = self._filled(operation, stop)
        present = self._present(stop)
        if asked is not None:
            self._refuse_brought_by_others(
                operation, [key for key, one in before.items() if _path(one["url"]) in asked]
            )
        appeared = {
            key: one
            for key, one in present.items()
            if key not in before and (asked is None or _path(one["url"]) in asked)
        }
        self.ours.keys |= set(appeared)
        self._full[operation] = {key: one["url"] for key, one in sorted(appeared.items())}
        self._filler[operation] = operation
        self._sizes[operation] = sum(one["bytes"] for one in appeared.values())
        if not appeared and instead is not None and instead in self._full:
            self._full[operation] = self._full[instead]
            self._filler[operation] = instead
        if not appeared and self._others and instead is None:
            self._refuse_nameless()
        list_of = self._filler[operation]
        others = len(present) - len(self._of_ours(present))
        return Learnt(list_of, len(self._full[operation]), self._sizes[list_of], others)

    def add(self, operation: str, stop: Stop) -> Learnt:
        """Bring in what `operation` needs and is not there, and take nothing out, whoever brought it in.

        For objects that are good whoever asked for them: of a repository that stays the same. Where these have no
        URLs, everything that is there then counts.
        """
        asked = self._filled(operation, stop)
        present = self._present(stop)
        listed = {key: one for key, one in present.items() if asked is None or _path(one["url"]) in asked}
        self._full[operation] = {key: one["url"] for key, one in sorted(listed.items())}
        self._filler[operation] = operation
        self._sizes[operation] = sum(one["bytes"] for one in listed.values())
        return Learnt(operation, len(listed), self._sizes[operation], len(present) - len(listed))

    def take_out(self, keys: Collection[str], stop: Stop) -> int:
        """Purge those of these objects that are there and may be taken out; how many these were."""
        present = self._of_ours(self._present(stop))
        gone = {key: one for key, one in present.items() if key in keys}
        self._purge(gone, stop)
        return len(gone)

    def _filled(self, operation: str, stop: Stop) -> frozenset[str] | None:
        """Fill the cache; what was asked for, as `_path` writes it, or None if that is not known."""
        if self._noted is None:
            self._fill(operation, stop)
            return None
        return frozenset(_path(url) for url in self._noted(operation, stop))

    def _of_ours(self, objects: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return {key: one for key, one in objects.items() if self.ours.has(one)}

    def _refuse_brought_by_others(self, operation: str, keys: Iterable[str]) -> None:
        found = sorted(keys)
        if found:
            raise Declined(
                f"{len(found)} objects that {operation} needs came into the cache by others, e.g. {found[0]}",
                host=self._host,
                tried="listed the cache before the operation was run to fill it",
                advice="Nobody was asked whether they may be taken out. Run again, when nobody else works there.",
            )

    def bring(self, operation: str, state: ProxyState, seed: int, stop: Stop) -> Found:
        """Bring the cache to `state` for `operation` and measure it. Raises TrialFailed if it will not come."""
        if state.full is None:
            raise ValueError("a disabled proxy has no fullness")
        full = self._full[operation]
        out = set(design.purge_sample(tuple(full), state.full, seed))
        present = self._present(stop)
        if [key for key in full if key not in present and key not in out]:
            self._fill(self._filler[operation], stop)
            present = self._present(stop)
            self._refuse_missing([key for key in full if key not in present and key not in out])
        gone = {key: one for key, one in present.items() if key in out}
        if gone:
            self._purge(gone, stop)
            present = self._present(stop)
        here = [present[key] for key in full if key in present]
        return Found(
            full=100 * len(here) / len(full) if full else 0.0,
            objects=len(here),
            cache_bytes=sum(one["bytes"] for one in here),
            purged=tuple(sorted(out)),
        )

    def clear(self) -> None:
        """Once the run is over: purge what it brought in, and what else it was allowed to take out."""
        with suppress(LabError):
            self._purge(self._of_ours(self._present(Stop())), Stop())

    def _refuse_nameless(self) -> None:
        raise TrialFailed(
            f"nothing of the repository appeared in the cache, but {self._others} files whose keys name no URL",
            host=self._host,
            tried="ran the operation through the proxy with the limit lifted, then listed the cache",
            advice='nginx keeps the URL with its usual proxy_cache_key "$scheme$proxy_host$request_uri".',
        )

    def refuse_empty(self, operation: str) -> None:
        """Raise TrialFailed where nothing is in the cache of what `operation` needs, although it was filled."""
        if not self._full[operation]:
            raise self._missing(f"nothing that {operation} needs is in the cache after a fill")

    def _refuse_missing(self, missing: list[str]) -> None:
        if missing:
            raise self._missing(
                f"{len(missing)} objects are not in the cache after a fill, e.g. {', '.join(missing[:3])}"
            )

    def _missing(self, text: str) -> TrialFailed:
        return TrialFailed(
            text,
            host=self._host,
            tried="ran the operation through the proxy with the limit lifted, then listed the cache",
            advice="Likely reasons: the cache is for another port, its largest file is too small, reading"
            " needs a password, the address is https, the server forbids storing, or the disk of the cache is full.",
        )

    def standing(self, stop: Stop) -> tuple[dict[str, dict[str, Any]], int]:
        """What is in the cache now: by key all that a run may purge, and how many objects there are of others."""
        found: dict[str, dict[str, Any]] = {}
        others = 0
        with self._agent.stream("cache.list", self._where) as listing:
            for event, data in listing:
                if event == "objects":
                    ours = [one for one in data["objects"] if _bare(one["url"]).startswith(self.origin)]
                    found.update((one["key"], one) for one in ours)
                    others += len(data["objects"]) - len(ours)
                stop.check()
            self._others = (listing.result or {}).get("others", 0)
        return found, others + self._others

    def try_purge(self, stop: Stop) -> None:
        """Ask for something of the origin that is in no cache to be purged. Raises AgentRefused where that is not let.

        Only Squid has a say in it; the other kinds are folders, and listing them tells.
        """
        if self._where["kind"] == "squid":
            asked = {**self._where, "urls": [f"{_bracketed(self.origin)}{NEVER}"]}
            self._agent.ask("cache.purge", asked, timeout_s=240, stop=stop)

    def _present(self, stop: Stop) -> dict[str, dict[str, Any]]:
        return self.standing(stop)[0]

    def _purge(self, objects: Mapping[str, dict[str, Any]], stop: Stop) -> None:
        urls = [one["url"] for one in objects.values()]
        for begin in range(0, len(urls), CHUNK):
            chunk = {**self._where, "urls": urls[begin : begin + CHUNK], "origin": self.origin}
            self._agent.ask("cache.purge", chunk, timeout_s=240, stop=stop)


def _path(url: str) -> str:
    """Path and query: the same text for what is asked for and what a cache keeps, which may escape it otherwise."""
    rest = url.partition("://")[2] or url
    return unquote(rest[rest.find("/") :].removesuffix("?")) if "/" in rest else "/"


def _bare(url: str) -> str:
    """Squid and nginx write an IPv6 address with its brackets, Apache and `Workplace.origin` without."""
    return url.replace("[", "").replace("]", "")


def _bracketed(origin: str) -> str:
    """The same with the brackets of an IPv6 address."""
    scheme, _, rest = origin.partition("://")
    authority, slash, path = rest.partition("/")
    host, _, port = authority.rpartition(":")
    return f"{scheme}://[{host}]:{port}{slash}{path}" if ":" in host else origin


def _where(cache: Cache, proxy: Connected) -> dict[str, Any]:
    """What the agent is told of the cache, by its kind."""
    where: dict[str, Any] = {"kind": cache.kind}
    if cache.folder is not None:
        where["folder"] = cache.folder
    if cache.kind == "squid":
        parts = urlsplit(proxy.host.url or "")
        where |= {"port": parts.port or PROXY_PORT, "host": parts.hostname or ""}
    if cache.kind == "folder":
        where["owns"] = cache.owns
    if cache.kind == "command":
        where |= {"list": [*cache.list], "purge": [*cache.purge]}
    return where
