"""What an administrator has to know of each host: packages, ports, the one line for sudo, and every file left there.

`forget` removes the last of these files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lab import agents, places, ssh
from lab.agents import systems
from lab.agents.starting import RULE_FILE
from lab.credentials import Passwords
from lab.errors import AgentRefused, HostTrouble, LabError
from lab.model import Experiment, Host, Lab, Role
from lab.rig import host_checks, provisioning
from lab.rig.checking import service_folders, unfinished
from lab.rig.hosts import owner, reached, rooted

FOLDER = "/usr/local/lib/branchlab"


@dataclass(frozen=True, slots=True)
class Told:
    """What is said of one host, line by line; `ok` is False where it could not be asked."""

    host: str
    lines: tuple[str, ...]
    ok: bool = True


def sudoers(lab: Lab, passwords: Passwords | None = None) -> tuple[Told, ...]:
    """What an administrator runs once on each host so that BranchLab may do there what it needs and no more."""
    known = passwords or Passwords()
    return tuple(_told(host, _sudoers, known) for host in lab.hosts)


def requirements(
    lab: Lab, experiments: tuple[Experiment, ...], passwords: Passwords | None = None
) -> tuple[Told, ...]:
    """Packages, ports, the line for sudo and every file, by host. Asks the hosts, changes nothing."""
    known = passwords or Passwords()
    return tuple(
        _told(host, lambda connection, agent: _requirements(connection, agent, lab, experiments), known)
        for host in lab.hosts
    )


def _told(host: Host, tell: Any, passwords: Passwords) -> Told:
    """Without becoming root, and without leaving anything there but the agent in the user's cache."""
    try:
        with (
            reached(host, passwords) as connection,
            agents.started(connection) as agent,
        ):
            return Told(host.name, tuple(tell(connection, agent)))
    except LabError as error:
        error.host = error.host or host.name
        return Told(host.name, tuple(error.told().splitlines()), ok=False)


# The one line


def line(root: str, user: str, python: str, path: str) -> str:
    """The rule that allows exactly one command: no wildcard, absolute paths, no variable of the environment."""
    if root == "doas":
        return f"permit nopass {user} as root cmd {python} args -I -S {path} privileged"
    # What sudoers(5) takes for its own is escaped.
    name = re.sub(r'([\\@!=:,()"%+#\s])', r"\\\1", user)
    return f"{name} ALL=(root) NOPASSWD: {python} -I -S {path} privileged"


def _sudoers(connection: ssh.Connection, agent: agents.Agent) -> Iterator[str]:
    host = connection.host
    if host.root not in ("sudo", "doas"):
        yield f'nothing is needed: root = "{host.root}" for this host'
        return
    made = agents.bundle()
    seen, kept = agent.ask("installed", {"digest": made.digest}), agent.ask("footprint")["kept"]
    python = seen["python"]
    if not python:
        command = systems.command(connection, "python3")
        yield from _no_python(str(seen.get("python_reason") or ""), command)
        return
    yield from _state(seen)
    if seen["state"] != "right":
        yield "As root, once:"
        yield from (f"    {words}" for words in _commands(seen["path"], f"{kept}/agent-{made.digest}.py"))
    rule = line(host.root, connection.target.user, python, seen["path"])
    if host.root == "doas":
        yield "The one line in /etc/doas.conf (after any other for this user; the last one that fits counts):"
        yield f"    {rule}"
    else:
        yield f"The one line, in a file of its own (visudo -f {RULE_FILE}):"
        yield f"    {rule}"
        yield "    (of rules that fit the last one counts; that name sorts last, so that none comes after it)"
    yield from (f"Of another version, to be removed: rm {FOLDER}/{name}" for name in seen["others"])


def _no_python(reason: str, command: str = "") -> Iterator[str]:
    how = f" ({command})" if command else ""
    if not reason:
        yield f"python3 is not in an administrator's PATH there: install it first{how}"
        return
    yield f"No line is printed, since root would run a Python that others could exchange: {reason}"
    yield f"Install the system's own python3{how}, then ask again"


def _state(seen: dict[str, Any]) -> Iterator[str]:
    match seen["state"]:
        case "right":
            yield f"The agent of this version is installed: {seen['path']}"
        case "changed":
            yield f"{seen['path']} is there, but is not what its name says: find out who changed it"
        case "unsafe":
            yield f"The installed agent cannot be used: {seen['reason']}"


def _commands(path: str, kept: str) -> Iterator[str]:
    """A copy that only root can write or read, made from the user's; it gets its name once its text is checked.

    The line for sudo may be there already: what lies under that name, however briefly, that user can run as root.
    """
    new = f"{path[:-3]}.new"
    source = shlex.quote(kept)
    yield f"install -d -o root -g root -m 0755 {FOLDER}"
    yield f"test -f {source} && install -o root -g root -m 0600 {source} {new}"
    yield (
        f"echo '{path[-67:-3]}  {new}' | sha256sum --check && chmod 0644 {new} && mv -f {new} {path} || rm -f {new}"
    )


# Requirements


def _requirements(
    connection: ssh.Connection, agent: agents.Agent, lab: Lab, experiments: tuple[Experiment, ...]
) -> Iterator[str]:
    host = connection.host
    facts = agent.ask("facts", {"tools": []}, timeout_s=60)
    yield f"System: {facts.get('os')}; BranchLab logs in as {connection.target.user} (root = {host.root})"
    yield from _packages(host, lab, agent)
    yield from _ports(host, lab, experiments, facts)
    yield "Rights:"
    yield from (f"    {text}" for text in _sudoers(connection, agent))
    yield "Files and folders:"
    yield from (f"    {text}" for text in _files(host, agent))
    for place in sorted({one.scratch for one in experiments if one.scratch and host.role is Role.SERVER}):
        yield f"    in the repository: {place}, until branchlab scratch --remove PROFILE"


def _packages(host: Host, lab: Lab, agent: agents.Agent) -> Iterator[str]:
    needs = provisioning.needs(host, lab)
    word = agent.ask("packages.look", {"needs": list(needs)}, timeout_s=60)
    if word["manager"] and not word["unknown"]:
        yield f"Packages: {' '.join(sorted({*word['all'], 'python3'}))}"
    else:
        names = [host_checks.NAMES[need] for need in needs]
        yield f"Programs: Python 3.8 or newer{''.join(f'; {name}' for name in names)}"


def _ports(host: Host, lab: Lab, experiments: tuple[Experiment, ...], facts: dict[str, Any]) -> Iterator[str]:
    ends = facts.get("ssh")
    yield f"Ports: TCP {ends['own']['port']} for SSH" if ends else "Ports: none for SSH (a UNIX socket)"
    if host.role is Role.SERVER:
        for port in sorted({places.port(one.repository) for one in experiments} or {80}):
            yield f"    TCP {port} for the repository, from clients and proxy"
        yield "    one free TCP and UDP port above 1023 while a line is probed, from clients and proxy"
    if host.role is Role.PROXY:
        yield "    one free TCP port above 1023 when a run begins, from the clients"
        yield f"    TCP {urlsplit(host.url or '').port or 8081} for the proxy, from the clients"


def _files(host: Host, agent: agents.Agent) -> Iterator[str]:
    mark = {True: "there now", False: "not there now"}
    for entry in agent.ask("footprint")["entries"]:
        yield f"{entry['path']}: {entry['what']} ({mark[entry['there']]})"
    if host.root == "none":
        return
    yield (
        "/run/branchlab: leases and how to undo them, while a run goes on (root's, 0700); in taken-back.jsonl-…, what"
        " this host took back by itself, until the next branchlab revert"
    )
    if host.services:
        stays = ": the cache's until branchlab forget" if cache_folders(host) else ""
        yield (
            "/var/lib/branchlab/made: which folders root made for services, while one of them is there (root's, 0700)"
            f"{stays}"
        )
    if host.root in ("sudo", "doas"):
        yield f"{FOLDER}/agent-DIGEST.py: the installed agent, if an administrator put it there"
    for folder in service_folders(host):
        yield f"{folder}: a service of BranchLab's own, removed when its run ends"
    for folder in cache_folders(host):
        yield f"{folder}: the cache of BranchLab's own proxy, kept for the next run"


def cache_folders(host: Host) -> list[str]:
    """The cache of BranchLab's own proxy on this host."""
    own = host.role is Role.PROXY and host.services and host.cache
    return [host.cache.folder] if own and host.cache and host.cache.folder else []


# Forgetting


def forget(lab: Lab, passwords: Passwords | None = None) -> dict[str, list[str]]:
    """Take back what runs left, then remove the last file that BranchLab made on every host; what that was.

    Nothing that BranchLab did not make is touched. Raises HostTrouble after all hosts were tried.
    """
    known = passwords or Passwords()
    removed: dict[str, list[str]] = {}
    troubles: list[LabError] = []
    for host in lab.hosts:
        removed[host.name] = []
        try:
            removed[host.name] += _forgotten(host, known)
        except (HostTrouble, AgentRefused) as error:
            error.host = error.host or host.name
            troubles.append(error)
            if not removed[host.name]:
                del removed[host.name]
    if troubles:
        again = "Run forget again once they answer; what is removed already does no harm."
        raise unfinished(troubles, removed, "removed", again)
    return removed


def _forgotten(host: Host, passwords: Passwords) -> Iterator[str]:
    # Not kept: else this would leave the file that it is to remove.
    with (
        reached(host, passwords) as connection,
        agents.started(connection, kept=False) as agent,
    ):
        done: list[str] = []
        if host.root != "none":
            with rooted(connection, agent, passwords) as root:
                done += _taken_back(root, {"services": service_folders(host), "caches": cache_folders(host)})
        yield from done
        yield from _taken_back(agent, {})
        seen = agent.ask("installed", {"digest": agents.bundle().digest})
    if host.root in ("sudo", "doas") and any(FOLDER in text for text in done):
        yield f"left, since an administrator wrote it: the line for {host.root}"
    if any(f"{FOLDER}/" in text for text in done):
        yield "the copy of the agent was an administrator's: branchlab check --sudoers PROFILE puts it there again"
    left = [*seen["others"], *([seen["path"].rpartition("/")[2]] if seen["state"] != "absent" else [])]
    for name in left:
        yield f"left, since only root can remove it: {FOLDER}/{name}"
    if seen.get("folder") and not left:
        why = "something of others is in it" if host.root != "none" else "only root can remove it"
        yield f"left, since {why}: {FOLDER}"


def _taken_back(agent: agents.Agent, what: dict[str, list[str]]) -> Iterator[str]:
    asked = {"owner": owner(purpose="forget")}  # refused while a run of somebody goes on
    yield from (str(text) for text in agent.ask("revert", asked, timeout_s=120)["undone"])
    word = agent.ask("forget", what, timeout_s=600)
    yield from (f"removed: {text}" for text in word["removed"])
    yield from (f"left: {text}" for text in word.get("left", []))
