"""What a run would do on each host, as text for people: nothing is touched to find it out."""

from __future__ import annotations

from urllib.parse import urlsplit

from lab import recipes, units, vcs
from lab.errors import BadInput
from lab.model import Experiment, Host, Lab, Line, ProxyState, Role
from lab.rig.workplace import PROXY_PORT
from lab.vcs import Driver, Phase


def commands(lab: Lab, experiment: Experiment, driver: Driver) -> dict[str, list[str]]:
    """Every kind of command and change, by host, in the order of a run. Capitals stand for what a run fills in."""
    server, client = lab.one(Role.SERVER), lab.one(Role.CLIENT)
    told: dict[str, list[str]] = {host.name: [] for host in lab.hosts}
    holes = _holes(experiment, server)
    if experiment.data:
        if not server.services:
            raise BadInput(
                f'data = "{experiment.data}" makes a repository of our own, and {server.name} has no place for it',
                advice=f'Write services = "/a/folder" under [hosts.{server.name}].',
            )
        told[server.name] += [str(command) for command in driver.data(holes)]
        told[server.name].append(f"start an Apache of its own in {server.services}/svn-server")
    for host in lab.having(Role.PROXY):
        if host.services and host.cache:
            told[host.name].append(f"start an Apache of its own in {host.services}/caching-proxy")
        if host.cache:
            told[host.name].append(f"list, fill and purge objects of the repository in {host.cache.folder}")
    for holder in lab.holders:
        told[holder.name] += [_limit(lab, holder, line) for line in experiment.lines]
    for host in lab.hosts:
        if host.root != "none":
            told[host.name].append("count bytes per host in a table of its own (nftables: inet branchlab)")
    told[client.name] += [str(command) for command in driver.setup(holes)]
    for operation in experiment.operations:
        only_disabled = operation in experiment.disabled_only and not experiment.launches
        for state in _kinds(experiment.states, only_disabled):
            proxy = _proxy(lab) if state.enabled else None
            for command in driver.commands(operation, holes, proxy):
                timed = "timed: " if command.phase is Phase.TIMED else ""
                host = server if command.on == "server" else client
                text = f"{timed}{command}"
                if text not in told[host.name]:
                    told[host.name].append(text)
    return told


def _limit(lab: Lab, holder: Host, line: Line) -> str:
    if not (line.limited or line.delayed):
        return "leave the line as it is"
    office, server = lab.having(Role.CLIENT) + lab.having(Role.PROXY), lab.having(Role.SERVER)
    near, far = (
        ", ".join(address for host in hosts for address in (host.address, host.address6) if address)
        for hosts in (office, server)
    )
    text = units.line_text(line)
    if lab.place == "senders" and holder.role is Role.SERVER:
        return f"limit the download to {text} for {near}; lift it"
    if lab.place == "senders":
        return f"limit this host's own upload to {text} towards {far} (per host, not shared); lift it"
    if lab.place == "office":
        return f"limit this host's own line to {text} towards {far} (per host, not shared); lift it"
    between = f" and {far}" if lab.place == "router" else ""
    return f"limit the line to {text} for {near}{between}; lift it"


def _kinds(states: tuple[ProxyState, ...], only_disabled: bool) -> list[ProxyState]:
    """One state with the proxy and one without are enough: the commands do not depend on the fullness."""
    disabled = [state for state in states if not state.enabled][:1]
    enabled = [] if only_disabled else [state for state in states if state.enabled][:1]
    return disabled + enabled


def _proxy(lab: Lab) -> tuple[str, int]:
    proxy = lab.one(Role.PROXY)
    parts = urlsplit(proxy.url or "")
    return parts.hostname or proxy.address or proxy.name, parts.port or PROXY_PORT


def _holes(experiment: Experiment, server: Host) -> dict[str, vcs.Value]:
    name = server.address or server.address6 or server.name
    url = experiment.repository.replace("{server}", f"[{name}]" if ":" in name else name)
    recipe = recipes.recipe(experiment.data) if experiment.data else None
    return {
        "config": "SCRATCH/config",
        "work": "SCRATCH/work",
        "pristine": "SCRATCH/pristine",
        "url": url,
        "revision": recipe.revision if recipe else "REVISION",
        "branch_url": f"{url.rsplit('/', 1)[0]}/branches/trial-N",
        "seed": "SEED",
        "edit_files": experiment.change.files or (recipe.edit_files if recipe else 0),
        "edit_pattern": recipe.edit_pattern if recipe else "*",
        "edit_share": experiment.change.share,
        "locks": "FILES",
        "repository": "SCRATCH/repository",
        "dump": "SCRATCH/dump",
    }
