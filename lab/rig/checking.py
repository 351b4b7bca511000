"""Looks at every host of a lab and says what a run would lack; takes back what earlier runs left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lab.errors import AgentRefused, HostTrouble, LabError
from lab.model import Experiment, Lab, Role
from lab.rig.hosts import Connected, connected
from lab.rig.line import HeldLine
from lab.stop import Stop

NEEDED = {
    Role.CLIENT: {"svn": "subversion"},
    Role.PROXY: {},
    Role.SERVER: {"tc": "iproute2"},
    Role.ROUTER: {"tc": "iproute2"},
}
"""Programs that a role cannot do without, and their packages on Debian."""
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


def check(lab: Lab, experiment: Experiment | None) -> tuple[Checked, ...]:
    """Everything that a run would need, looked at; nothing is changed. Never raises a LabError."""
    found: list[Checked] = []
    stop = Stop()
    reached: list[Connected] = []
    for host in lab.hosts:
        alone = Lab(name=lab.name, hosts=(host,))
        try:
            with connected(alone, stop, lease_s=None) as (one,):
                found += _host(one)
                reached.append(one)
        except LabError as error:
            found.append(Checked(host.name, False, str(error), error.advice))
    if len(reached) == len(lab.hosts):
        found += _line(lab, experiment, stop)
    return tuple(found)


def _host(one: Connected) -> Iterator[Checked]:
    facts = one.facts
    yield Checked(
        one.name, True, f"{facts.get('os')}, kernel {facts.get('kernel')}, {facts.get('cpus')} processors"
    )
    needed = dict(NEEDED[one.host.role])
    if one.host.services:
        needed |= NEEDED_FOR_SERVICES.get(one.host.role, {})
    if one.root is not None:
        needed |= NEEDED_TO_COUNT
    for tool, package in needed.items():
        version = facts["tools"].get(tool)
        if version is None:
            yield Checked(
                one.name, False, f"{tool} is missing", f"Install it there (Debian, Ubuntu: {package})."
            )
        else:
            yield Checked(one.name, True, f"{tool}: {version}")
    if one.root is None and one.host.role in (Role.SERVER, Role.ROUTER):
        yield Checked(
            one.name,
            False,
            "no way to change this host is given, so no line can be limited and nothing counted",
            f'Write root = "sudo" (or "direct") under [hosts.{one.name}].',
        )
    if one.root is not None:
        yield from _left(one)


def _left(one: Connected) -> Iterator[Checked]:
    leases = one.privileged.ask("leases").get("leases", [])
    if leases:
        yield Checked(
            one.name,
            True,
            f"changes of {len(leases)} session{'' if len(leases) == 1 else 's'} are written down there",
            "If no run is going on now: branchlab revert PROFILE.",
        )


def _line(lab: Lab, experiment: Experiment | None, stop: Stop) -> Iterator[Checked]:
    try:
        with connected(lab, stop, lease_s=None) as hosts:
            line = HeldLine(hosts)
            word = line.check(stop)
            if word["refuse"]:
                yield Checked(line.holder.name, False, str(word["refuse"]))
                return
            yield Checked(line.holder.name, True, f"the line can be limited on {word['device']}")
            if experiment is not None:
                line.refuse(experiment.lines, stop)
    except LabError as error:
        yield Checked(error.host or lab.name, False, str(error), error.advice)


def revert(lab: Lab) -> dict[str, list[str]]:
    """Take back on every host what any run left there. Raises HostTrouble after all hosts were tried."""
    undone: dict[str, list[str]] = {}
    troubles: list[str] = []
    for host in lab.hosts:
        if host.root == "none":
            undone[host.name] = []
            continue
        try:
            with connected(Lab(name=lab.name, hosts=(host,)), Stop(), lease_s=None) as (one,):
                undone[host.name] = [
                    str(text) for text in one.privileged.ask("revert", timeout_s=60)["undone"]
                ]
        except (HostTrouble, AgentRefused) as error:
            error.host = error.host or host.name
            troubles.append(error.told())
    if troubles:
        done = "; ".join(f"{name}: {len(texts)} taken back" for name, texts in undone.items()) or "none"
        raise HostTrouble(
            "\n".join(troubles) + f"\nother hosts: {done}",
            advice="What is limited there ends by itself within the lease; run revert again once the host answers.",
        )
    return undone
