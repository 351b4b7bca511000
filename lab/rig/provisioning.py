"""Gives hosts the packages that a run needs, by their own package managers, and takes them away again."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from lab import caches, settings
from lab.agents import Conversation
from lab.credentials import Passwords
from lab.errors import HostLacks
from lab.model import Host, Lab, Role
from lab.rig.hosts import Connected, connected, owner
from lab.stop import Stop

INSTALL_S = 3600.0
"""Package managers wait for each other, and for slow mirrors."""

Say = Callable[[str, str], None]
"""Told of a host's name and a line that its package manager printed."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What one host lacks, and what would be run there as root."""

    host: str
    needs: tuple[str, ...]
    packages: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    unknown: tuple[str, ...] = ()
    """needs for which this host's package manager has nothing"""
    manager: str | None = None
    ours: tuple[str, ...] = ()
    """packages that BranchLab installed here before"""
    by_hand: bool = False
    """True where the profile gives no way to become root, so that somebody else has to run the commands"""


def needs(host: Host, lab: Lab) -> tuple[str, ...]:
    """What a host needs for its part in this lab, by the names of `ssh_agents.package_names.NEEDS`."""
    found: list[str] = []
    if host.role is Role.CLIENT:
        found.append("svn")
    if host in lab.holders:
        found.append("tc")
    if host.root != "none":
        found.append("nft")
    if host.services and host.role is Role.SERVER:
        found += ["apache2", "mod_dav_svn", "svnadmin"]
    if host.services and host.role is Role.PROXY:
        engine = caches.kind(host.cache.kind).engine if host.cache else "apache"
        found += [PROGRAMS[engine]] if engine else []
    if host.delay:
        found.append("wirefilter")
    return tuple(found)


PROGRAMS = {"apache": "apache2", "squid": "squid", "nginx": "nginx"}
"""What the engines of `lab.caches` are called as needs."""


def look(
    lab: Lab, passwords: Passwords | None = None, only: Collection[str] | None = None
) -> tuple[Missing, ...]:
    """What is missing on each host, or on those named in `only`, and the exact commands. Changes nothing.

    Raises HostTrouble.
    """
    with connected(_part(lab, only), Stop(), lease_s=None, passwords=passwords) as hosts:
        return tuple(_missing(one, lab) for one in hosts)


def provision(
    lab: Lab,
    stop: Stop,
    say: Say,
    passwords: Passwords | None = None,
    only: Collection[str] | None = None,
) -> dict[str, list[str]]:
    """Install what is missing, host by host; by host, the packages that came. Idempotent.

    With `only`, on the hosts of these names, and no other is connected to. An installation that was begun is
    let finish. Raises HostLacks before anything is installed where a host cannot be given what it needs,
    HostTrouble or AgentRefused where installing fails.
    """
    came: dict[str, list[str]] = {}
    owned_by = owner(purpose="provision")
    lease_s = settings.lease_s()
    with connected(_part(lab, only), stop, lease_s=lease_s, owned_by=owned_by, passwords=passwords) as hosts:
        wanted = [(one, _missing(one, lab)) for one in hosts]
        for one, missing in wanted:
            _refuse(one, missing)
        for one, missing in wanted:
            stop.check()
            came[one.name] = _installed(one, missing, say) if missing.needs else []
    return came


def unprovision(
    lab: Lab,
    stop: Stop,
    say: Say,
    passwords: Passwords | None = None,
    only: Collection[str] | None = None,
) -> dict[str, list[str]]:
    """Take away what `provision` installed; what something else needs by now stays, and is told. Idempotent."""
    told: dict[str, list[str]] = {}
    owned_by = owner(purpose="provision --remove")
    lease_s = settings.lease_s()
    with connected(_part(lab, only), stop, lease_s=lease_s, owned_by=owned_by, passwords=passwords) as hosts:
        for one in hosts:
            stop.check()
            told[one.name] = _removed(one, say) if one.root is not None else []
    return told


def _part(lab: Lab, only: Collection[str] | None) -> Lab:
    """The lab with no other hosts than these, to be connected to; what each needs is asked of the whole lab."""
    if only is None:
        return lab
    return replace(lab, hosts=tuple(host for host in lab.hosts if host.name in only))


def _refuse(one: Connected, missing: Missing) -> None:
    if not missing.needs:
        return
    lacking = ", ".join(missing.needs)
    if missing.manager is None or missing.unknown:
        raise HostLacks(
            f"{lacking} is missing, and BranchLab knows no package of this system for it",
            host=one.name,
            tried=f"package manager: {missing.manager or 'none of those known'}",
            advice="Install it there by hand, then run the check again.",
        )
    if missing.by_hand:
        listed = "; ".join(shlex.join(argv) for argv in missing.commands)
        raise HostLacks(
            f"{lacking} is missing, and the profile gives no way to become root here",
            host=one.name,
            advice=f'Run there as root: {listed}. Or write root = "sudo" under [hosts.{one.name}].',
        )


def _installed(one: Connected, missing: Missing, say: Say) -> list[str]:
    with one.privileged.stream("packages.install", {"needs": list(missing.needs)}) as talk:
        _tell(one, talk, say)
        return [str(name) for name in (talk.result or {}).get("installed", [])]


def _removed(one: Connected, say: Say) -> list[str]:
    with one.privileged.stream("packages.remove", {}) as talk:
        _tell(one, talk, say)
        word = talk.result or {}
    told = [f"removed: {name}" for name in word["removed"]]
    return told + [f"kept, since something else needs it: {name}" for name in word["kept"]]


def _tell(one: Connected, talk: Conversation, say: Say) -> None:
    # Not under the run's `stop`: half-installed packages would be worse than a wait.
    for event, data in talk.events(Stop(), INSTALL_S):
        if event == "output":
            say(one.name, str(data["text"]))


def _missing(one: Connected, lab: Lab) -> Missing:
    word = (one.root or one.agent).ask("packages.look", {"needs": list(needs(one.host, lab))}, timeout_s=60)
    return Missing(
        host=one.name,
        needs=tuple(word["missing"]),
        packages=tuple(word["packages"]),
        commands=tuple(tuple(argv) for argv in word["commands"]),
        unknown=tuple(word["unknown"]),
        manager=word["manager"],
        ours=tuple(word["ours"]),
        by_hand=one.root is None,
    )
