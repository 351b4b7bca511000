"""Under which addresses the lab's hosts see each other, asked by connecting; what to do where NAT hides them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import AgentRefused, HostLacks, TrialFailed
from lab.model import Role
from lab.rig.hosts import Connected, in_role
from lab.rig.line import listening
from lab.stop import Stop


@dataclass(frozen=True, slots=True)
class Seen:
    """How `by` sees `host` over one family of addresses. `trouble` is why it could not be asked."""

    by: str
    host: str
    wanted: str
    """the address that the profile says"""
    seen: str = ""
    own: str = ""
    """the address that `host` itself sent from"""
    trouble: str = ""

    @property
    def hidden(self) -> bool:
        """True if it is seen under another address than the profile says."""
        return bool(self.seen) and self.seen != self.wanted


@dataclass(frozen=True, slots=True)
class Found:
    """One sentence about how a host is seen; `advice` is empty where nothing is to be done."""

    host: str
    ok: bool
    text: str
    advice: str = ""


def look(hosts: Sequence[Connected], stop: Stop) -> tuple[Seen, ...]:
    """Have clients and proxy connect to the server, and clients to the proxy, over every family. Changes nothing."""
    clients, proxies, servers = (in_role(hosts, role) for role in (Role.CLIENT, Role.PROXY, Role.SERVER))
    found: list[Seen] = []
    for target, others in (
        *((one, clients + proxies) for one in servers),
        *((one, clients) for one in proxies),
    ):
        for address in target.addresses:
            found += _asked(target, address, others, stop)
    return tuple(found)


def _asked(target: Connected, address: str, others: Sequence[Connected], stop: Stop) -> list[Seen]:
    """`others` that have an address of the same family, one after another."""
    same = [(one, known) for one in others for known in one.addresses if (":" in known) == (":" in address)]
    found: list[Seen] = []
    try:
        with target.agent.stream("probe.serve", {"address": address}) as serving:
            port = listening(serving, stop)
            for one, wanted in same:
                found.append(_one(target, one, wanted, {"address": address, "port": port}, stop))
            serving.cancel()
    except (AgentRefused, TrialFailed) as error:
        return [Seen(target.name, one.name, wanted, trouble=str(error)) for one, wanted in same]
    return found


def _one(target: Connected, one: Connected, wanted: str, where: dict[str, Any], stop: Stop) -> Seen:
    try:
        word = one.agent.ask("probe.seen", where, timeout_s=60, stop=stop)
    except AgentRefused as error:
        return Seen(target.name, one.name, wanted, trouble=str(error))
    return Seen(target.name, one.name, wanted, word["seen"], word["own"])


def hidden(seen: Sequence[Seen], hosts: Sequence[Connected]) -> frozenset[str]:
    """The hosts whose own addresses the server does not see; a wrong one in the profile hides nobody."""
    servers = {one.name for one in in_role(hosts, Role.SERVER)}
    return frozenset(one.host for one in seen if one.hidden and one.seen != one.own and one.by in servers)


def told(seen: Sequence[Seen], hosts: Sequence[Connected], place: str) -> Iterator[Found]:
    """Sentences for a person, with the cure where the line cannot be held at `place`."""
    routers = [address for one in in_role(hosts, Role.ROUTER) for address in one.facts.get("addresses", ())]
    at_server = {one.name for one in in_role(hosts, Role.SERVER)}
    behind: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    for one in seen:
        if one.trouble:
            yield Found(
                one.host,
                False,
                f"{one.by} could not be reached from here over a port of its own, which probing needs: {one.trouble}",
                f"Look at addresses, routes and firewalls between {one.host} and {one.by}.",
            )
        elif not one.hidden:
            yield Found(one.host, True, f"{one.by} sees this host as {one.seen}, as the profile says")
        elif one.seen == one.own:
            key = "address6" if ":" in one.seen else "address"
            yield Found(
                one.host,
                False,
                f"{one.by} sees this host as {one.seen}, and the profile says {one.wanted}",
                f'Write {key} = "{one.seen}" under [hosts.{one.host}], or take that key out.',
            )
        else:
            behind[one.by, one.seen].append(one)
    for (by, address), several in behind.items():
        names = " and ".join(one.host for one in several)
        text = f"behind NAT: {by} sees {address} for {names}"
        if by not in at_server:
            yield Found(
                by, False, text, "Give client and proxy addresses by which they reach each other directly."
            )
        elif place == "office":
            yield Found(by, True, f"{text}; what they send is counted where it is sent")
        elif place == "router" and address not in routers:
            yield Found(
                by, True, f"{text}; the router, which sees their own addresses, limits and counts them"
            )
        elif place == "router":
            yield Found(
                by,
                False,
                f"{text}; the router itself translates them, so that what arrives for them carries its own address",
                'Write line = "office" in the profile: each office host limits and counts its own.',
            )
        else:
            yield Found(
                by,
                False,
                text,
                'Write line = "office" in the profile (each office host limits and counts its own), or give a Linux '
                'machine between them and the NAT role = "router".',
            )


def refuse(seen: Sequence[Seen], hosts: Sequence[Connected], place: str) -> None:
    """Raise HostLacks where packets would go past the line, since they carry other addresses than it looks for."""
    wrong = {one.host for one in seen if one.hidden} | {one.by for one in seen if one.hidden}
    for found in told(seen, hosts, place):
        if not found.ok and found.host in wrong:
            raise HostLacks(found.text, host=found.host, advice=found.advice)
