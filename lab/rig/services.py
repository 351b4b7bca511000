"""The services that BranchLab starts itself for a run: on which hosts, where, who may reach them, where they may go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from lab import caches
from lab.model import Experiment, Role
from lab.rig import scratch
from lab.rig.hosts import Connected, in_role, only
from lab.rig.peers import Seen
from lab.rig.scratch import PROXY_PORT


def wanted(
    hosts: Sequence[Connected], experiment: Experiment, seen: Sequence[Seen] = (), repository: str = ""
) -> Iterator[tuple[Connected, dict[str, Any]]]:
    """Each service's host, and what its agent's `service.start` is asked. No host is asked here.

    `seen` is under which addresses hosts see each other: where NAT hides the office, its address is let in.
    `repository` is the folder of the one that the server serves.
    """
    server, proxies = only(hosts, Role.SERVER), in_role(hosts, Role.PROXY)
    office = in_role(hosts, Role.CLIENT) + proxies
    parts = urlsplit(scratch.filled(experiment.repository, server.host))
    if experiment.data is not None:
        options: dict[str, Any] = {
            "repository": repository,
            "path": "/" + parts.path.strip("/").split("/")[0],
            "allow": _let_in(server, office, seen),
            "listen": _own(server, parts.hostname or ""),
        }
        yield server, _service(server, "svn-server", parts.port or 80, options)
    for proxy in proxies[:1]:
        if proxy.host.services and proxy.host.cache:
            options = {
                "engine": caches.kind(proxy.host.cache.kind).engine,
                "cache": proxy.host.cache.folder,
                "allow": _let_in(proxy, office, seen),
                "origins": list(
                    dict.fromkeys([*server.addresses, *([parts.hostname] if parts.hostname else [])])
                ),
                "origin_ports": [parts.port or 80],
            }
            port = urlsplit(proxy.host.url or "").port or PROXY_PORT
            yield proxy, _service(proxy, "caching-proxy", port, options)


def not_on_windows(one: Connected) -> tuple[str, str] | None:
    """What of BranchLab's own the profile wants on a Windows host and cannot be had there, and what to do instead."""
    if not one.facts.get("windows") or not one.host.services:
        return None
    if one.host.role is Role.SERVER:
        return (
            "BranchLab starts no Subversion server on Windows",
            "Name the repository of the server that is there, and take `data` and `services` out; or take a host with"
            " Linux.",
        )
    if one.host.cache and caches.kind(one.host.cache.kind).engine != "apache":
        return (
            f"BranchLab starts no proxy but Apache on Windows, and the cache is of kind {one.host.cache.kind}",
            'Take `services` out to use the proxy that is there as it is, or write kind = "apache-disk".',
        )
    return None


def _service(one: Connected, kind: str, port: int, options: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "folder": f"{one.host.services}/{kind}", "port": port, "options": options}


def _let_in(by: Connected, office: Iterable[Connected], seen: Iterable[Seen]) -> list[str]:
    """Clients and proxy as the profile says, or as they say themselves where it does not; and as `by` sees them."""
    said = [address for one in office for address in one.addresses or one.facts.get("addresses") or ()]
    return list(dict.fromkeys([*said, *(one.seen for one in seen if one.by == by.name and one.seen)]))


def _own(server: Connected, named: str) -> list[str]:
    """Where the server listens: on the profile's addresses, if these are its own and the clients use one of them.

    Else everywhere: before a NAT or a balancer its own addresses are others, and a name may lead to any.
    """
    own = set(server.facts.get("addresses") or ())
    return server.addresses if named in server.addresses and own.issuperset(server.addresses) else []
