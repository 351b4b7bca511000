"""Looks at every host of a lab and says what a run would lack; takes back what earlier runs left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lab.agents import BUSY_ADVICE, Agent
from lab.credentials import Passwords
from lab.errors import AgentRefused, HostTrouble, LabError
from lab.model import Experiment, Host, Lab, Role
from lab.rig import peers
from lab.rig.hosts import Connected, connected, owner
from lab.rig.line import HeldLine
from lab.rig.meter import Meter
from lab.stop import Stop

NEEDED: dict[Role, dict[str, str]] = {
    Role.CLIENT: {"svn": "subversion"},
    Role.PROXY: {},
    Role.SERVER: {},
    Role.ROUTER: {},
}
"""Programs that a role cannot do without, and their packages on Debian."""
NEEDED_TO_LIMIT = {"tc": "iproute2"}
"""More of them on a host that holds the line."""
NEEDED_TO_COUNT = {"nft": "nftables"}
"""More of them on every host that may be changed: there, bytes are counted."""
NEEDED_FOR_SERVICES = {
    Role.PROXY: {"apache2": "apache2-bin"},
    Role.SERVER: {"apache2": "apache2-bin and libapache2-mod-svn", "svnadmin": "subversion"},
}
"""More of them where BranchLab is to start the service itself."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at; `advice` is empty where nothing is to be done."""

    host: str
    ok: bool
    text: str
    advice: str = ""


def check(lab: Lab, experiment: Experiment | None, passwords: Passwords | None = None) -> tuple[Checked, ...]:
    """Everything that a run would need, looked at; nothing is changed. Never raises a LabError."""
    known = passwords or Passwords()
    found: list[Checked] = []
    stop = Stop()
    reached: list[Connected] = []
    for host in lab.hosts:
        alone = Lab(name=lab.name, hosts=(host,))
        try:
            with connected(alone, stop, lease_s=None, passwords=known) as (one,):
                found += _host(one, lab)
                reached.append(one)
        except LabError as error:
            found.append(Checked(host.name, False, str(error), error.advice))
    if len(reached) == len(lab.hosts):
        found += _line(lab, experiment, stop, known)
    return tuple(found)


def needed(host: Host, lab: Lab) -> dict[str, str]:
    """Programs that a host of this lab cannot do without, and their packages on Debian."""
    tools = dict(NEEDED[host.role])
    if host.name in [one.name for one in lab.holders]:
        tools |= NEEDED_TO_LIMIT
    if host.services:
        tools |= NEEDED_FOR_SERVICES.get(host.role, {})
    if host.root != "none":
        tools |= NEEDED_TO_COUNT
    return tools


def _host(one: Connected, lab: Lab) -> Iterator[Checked]:
    facts = one.facts
    yield Checked(
        one.name, True, f"{facts.get('os')}, kernel {facts.get('kernel')}, {facts.get('cpus')} processors"
    )
    tools, holds = needed(one.host, lab), one.name in [holder.name for holder in lab.holders]
    if facts.get("windows"):
        tools = {tool: package for tool, package in tools.items() if tool not in ("tc", "nft")}
        yield from _windows(one, holds)
    for tool, package in tools.items():
        version = facts["tools"].get(tool)
        if version is None:
            yield Checked(
                one.name, False, f"{tool} is missing", f"Install it there (Debian, Ubuntu: {package})."
            )
        else:
            yield Checked(one.name, True, f"{tool}: {version}")
    if one.root is None and holds:
        yield Checked(
            one.name,
            False,
            "no way to change this host is given, so no line can be limited and nothing counted",
            f'Write root = "sudo" (or "doas", or "direct") under [hosts.{one.name}].',
        )
    elif one.root is None:
        yield from _without_root(one, lab)
    elif one.root.notice:
        yield Checked(one.name, True, one.root.notice)
    yield from _left(one)


def _windows(one: Connected, holds: bool) -> Iterator[Checked]:
    if holds:
        yield Checked(
            one.name,
            False,
            "no line can be held on Windows",
            'Give a Linux machine between office and server role = "router".',
        )
    yield Checked(one.name, True, "bytes that arrive on Windows are counted by a router, if they pass one")


def _without_root(one: Connected, lab: Lab) -> Iterator[Checked]:
    """What cannot be had from a host on which nothing may be changed, and why."""
    advice = f'If it is wanted: root = "sudo" (or "doas", or "direct") under [hosts.{one.name}].'
    why = "since no way to become root is given"
    if one.host.role is Role.PROXY and one.host.services:
        yield Checked(one.name, False, f"no proxy of BranchLab's own can be started here, {why}", advice)
    if one.host.role is Role.PROXY and one.host.cache:
        text = f"the cache is filled and purged only where {one.facts.get('user')} may write in it, {why}"
        yield Checked(one.name, True, text, advice)
    counting = [host.name for host in lab.having(Role.ROUTER) if host.root != "none"]
    if counting:
        text = f"bytes that arrive here are counted on {counting[0]} if they pass it, {why}"
        yield Checked(one.name, True, text)
    else:
        yield Checked(one.name, True, f"bytes that arrive here are not counted, {why}", advice)


def _left(one: Connected) -> Iterator[Checked]:
    """Who holds the host now, and what sessions that are gone left there."""
    # Where both agents are one user's, both see all.
    leases = {found["lease"]: found for agent in _agents(one) for found in agent.ask("leases")["leases"]}
    for found in {
        lease["held"].partition(";")[0]: lease for lease in leases.values() if lease["alive"]
    }.values():
        yield Checked(one.name, False, f"held by {found['held']}", BUSY_ADVICE)
    for found in leases.values():
        what = "; ".join(found["what"]) or "nothing"
        if found["earlier_boot"]:
            text = f"written down before this host's last start by {found['who']}: {what}. It is not replayed"
            yield Checked(one.name, True, text, "To forget it: branchlab revert PROFILE.")
        elif not found["alive"]:
            text = f"left by {found['who']}: {what}. The next run takes it back"
            yield Checked(one.name, True, text, "Or at once: branchlab revert PROFILE.")


def _agents(one: Connected) -> list[Agent]:
    """Those of a host, in the order in which they take things back: services before their folders."""
    return [agent for agent in (one.root, one.agent) if agent is not None]


def _line(lab: Lab, experiment: Experiment | None, stop: Stop, passwords: Passwords) -> Iterator[Checked]:
    try:
        with connected(lab, stop, lease_s=None, passwords=passwords) as hosts:
            line = HeldLine(hosts, place=lab.place)
            for name, word in line.checks(stop).items():
                what = line.what(name)
                yield Checked(
                    name,
                    not word["refuse"],
                    str(word["refuse"] or f"{what} can be limited on {word['device']}"),
                )
            seen = peers.look(hosts, stop)
            for found in peers.told(seen, hosts, line.place):
                yield Checked(found.host, found.ok, found.text, found.advice)
            for text in Meter(hosts, peers.hidden(seen, hosts)).notes():
                yield Checked(lab.name, True, text)
            if experiment is not None:
                line.refuse(experiment.lines, stop)
    except LabError as error:
        yield Checked(error.host or lab.name, False, str(error), error.advice)


def revert(lab: Lab, *, force: bool = False, passwords: Passwords | None = None) -> dict[str, list[str]]:
    """Take back on every host what any run left there; from one that is going on only with `force`.

    Raises HostTrouble after all hosts were tried.
    """
    undone: dict[str, list[str]] = {}
    troubles: list[str] = []
    held = 0
    known = passwords or Passwords()
    asked = {"force": force, "owner": owner(purpose="revert")}
    for host in lab.hosts:
        try:
            alone = Lab(name=lab.name, hosts=(host,))
            with connected(alone, Stop(), lease_s=None, passwords=known) as (one,):
                undone[host.name] = [
                    str(text)
                    for agent in _agents(one)
                    for text in agent.ask("revert", asked, timeout_s=120)["undone"]
                ]
        except (HostTrouble, AgentRefused) as error:
            error.host = error.host or host.name
            if isinstance(error, AgentRefused) and error.kind == "busy":
                error.advice = BUSY_ADVICE
                held += 1
            troubles.append(error.told())
    if troubles:
        done = "; ".join(f"{name}: {len(texts)} taken back" for name, texts in undone.items()) or "none"
        raise HostTrouble(
            "\n".join(troubles) + f"\nother hosts: {done}",
            advice=""
            if held == len(troubles)  # each said already what to do
            else "What is limited there ends by itself within the lease; run revert again once the host answers.",
        )
    return undone
