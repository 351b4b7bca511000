"""What a run would do on each host, as text for people: nothing is touched to find it out."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

from lab import caches, design, recipes, units, vcs
from lab.errors import BadInput
from lab.model import CHANGING, Cache, Experiment, Host, Lab, Line, ProxyState, Role, Treatment
from lab.rig.scratch import PROXY_PORT
from lab.vcs import Driver, Phase

ENGINES = {"apache": "an Apache", "squid": "a Squid", "nginx": "an nginx"}


def commands(lab: Lab, experiment: Experiment, driver: Driver) -> dict[str, list[str]]:
    """Every kind of command and change, by host, in the order of a run. Capitals stand for what a run fills in."""
    server, clients = lab.one(Role.SERVER), _clients(lab, experiment)
    client = clients[0]
    told: dict[str, list[str]] = {host.name: [] for host in lab.hosts}
    holes = _holes(experiment, server)
    if any(proxy.user for proxy in lab.having(Role.PROXY)):
        holes["proxy_config"] = "SCRATCH/proxy"
    driver = driver.entering(experiment.user, experiment.ca)
    if experiment.data:
        if not server.services:
            raise BadInput(
                f'data = "{experiment.data}" makes a repository of our own, and {server.name} has no place for it',
                advice=f'Write services = "/a/folder" under [hosts.{server.name}].',
            )
        told[server.name] += [str(command) for command in driver.data(holes)]
        told[server.name].append(f"start an Apache of its own in {server.services}/svn-server")
    place = _run_place(experiment, server)
    added = revisions(experiment)
    if place:
        told[server.name].append(
            f"add {added} revisions{' at least' if refills(experiment) else ''} to the repository, "
            f"all below {place}, which is deleted by the last of them"
        )
    elif not experiment.data:
        told[server.name].append("leave the repository as it is: it is only read")
    if not experiment.data:
        driver = driver.confined(place)
    for host in lab.having(Role.PROXY):
        if host.services and host.cache:
            told[host.name].append(f"start {engine(host)} of its own in {host.services}/caching-proxy")
        if host.cache:
            told[host.name] += _cache(host.cache, f"port {_proxy(lab)[1]}")
    for holder in lab.holders:
        told[holder.name] += [_limit(lab, holder, line) for line in experiment.lines]
    for host in lab.hosts:
        if host.root != "none":
            told[host.name].append("count bytes per host in a table of its own (nftables: inet branchlab)")
    if place:
        message = "--message TEXT"
        told[client.name].append(f"svn mkdir and svn commit {message} of {place} and {place}/try")
        told[client.name].append(f"svn delete {message} {place}/try")
        told[client.name].append(f"svn copy {message} {holes['url']}@REVISION {place}/work")
    for one in clients:
        told[one.name] += [str(command) for command in driver.setup(holes)]
    if "check-out" in experiment.operations:
        _lockables(told, clients, driver, holes, place)
    for operation in experiment.operations:
        only_disabled = operation in experiment.disabled_only and not experiment.launches
        for state in _kinds(experiment.states, only_disabled):
            proxy = _proxy(lab) if state.enabled else None
            for command in driver.commands(operation, holes, proxy):
                timed = "timed: " if command.phase is Phase.TIMED else ""
                text = f"{timed}{command}"
                for host in (server,) if command.on == "server" else clients:
                    if text not in told[host.name]:
                        told[host.name].append(text)
    if place:
        told[client.name].append(f"svn delete --message TEXT {place}")
    return told


def _clients(lab: Lab, experiment: Experiment) -> tuple[Host, ...]:
    """Those that take part. Raises BadInput where the lab has them not."""
    try:
        return lab.taking_part(experiment)
    except LookupError as error:
        raise BadInput(
            str(error), advice='Give hosts role = "client", or mend `clients` in the experiment.'
        ) from error


def _lockables(
    told: dict[str, list[str]],
    clients: tuple[Host, ...],
    driver: Driver,
    holes: dict[str, vcs.Value],
    place: str,
) -> None:
    """What each client locks: in a copy of its own, where there are several or the repository is as it is."""
    if place:
        told[clients[0].name].append(f"svn lock {place}/work/FILE, svn unlock {place}/work/FILE")
    if not place and len(clients) < 2:
        return
    for number, one in enumerate(clients, 1):
        url = f"{place}/work{f'-{number}' * (number > 1)}"
        if not place:
            url = f"{str(holes['url']).rsplit('/', 1)[0]}/branches/client-{number}"
            told[one.name] += [str(command) for command in driver.branch({**holes, "branch_url": url})]
        elif number > 1:
            told[clients[0].name].append(f"svn copy --message TEXT {holes['url']}@REVISION {url}")
        copied = {"url": url, "pristine": "SCRATCH/lockable", "revision": "HEAD"}
        told[one.name] += [str(command) for command in driver.setup({**holes, **copied})]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a trial does on a host; `timed` is the one command that is measured.

    What several clients do alike, at the same moment if it is timed, is one step: `host` has all their names.
    """

    host: str
    role: Role
    text: str
    timed: bool = False


def one_trial(lab: Lab, experiment: Experiment, driver: Driver, treatment: Treatment) -> tuple[Step, ...]:
    """What one trial does, step by step, in its order. Capitals stand for what a run fills in.

    Raises BadInput where the driver has no such operation, and LookupError where the lab lacks a host.
    """
    server, clients = lab.one(Role.SERVER), _clients(lab, experiment)
    driver = driver.entering(experiment.user, experiment.ca)
    if not experiment.data:
        driver = driver.confined(_run_place(experiment, server))
    enabled = treatment.state.enabled
    proxy = _proxy(lab) if enabled else None
    steps = []
    if enabled:
        host = lab.one(Role.PROXY)
        steps.append(Step(host.name, host.role, _brought(treatment.state)))
    names = ", ".join(one.name for one in clients)
    done = [
        Step(server.name, server.role, str(command))
        if command.on == "server"
        else Step(names, Role.CLIENT, str(command), command.phase is Phase.TIMED)
        for command in driver.commands(treatment.operation, _holes(experiment, server), proxy)
    ]
    at = next(number for number, step in enumerate(done) if step.timed)
    limits = [(host, _limit(lab, host, treatment.line).removesuffix("; lift it")) for host in lab.holders]
    counting = [host for host in lab.hosts if host.root != "none"]
    steps += done[:at]
    steps += [Step(host.name, host.role, text) for host, text in limits]
    steps += [Step(host.name, host.role, "read the counters (nftables: inet branchlab)") for host in counting]
    steps.append(done[at])
    steps += [Step(host.name, host.role, "read counters and line again") for host in counting]
    if treatment.line.limited or treatment.line.delayed:
        steps += [Step(host.name, host.role, "lift the line") for host in lab.holders]
    return (*steps, *done[at + 1 :])


def _brought(state: ProxyState) -> str:
    full = state.full or 0
    if full in (0, 100):
        return "purge the cache to 0 %" if not full else "fill the cache to 100 %"
    return f"cache to {full:g} %: fill, then purge {round(100 - full, 3):g} %"


def engine(host: Host) -> str:
    """Which program a service of our own on this host is, for people."""
    if host.role is Role.PROXY and host.cache is not None:
        return ENGINES[caches.kind(host.cache.kind).engine]
    return ENGINES["apache"]


def revisions(experiment: Experiment) -> int:
    """How many revisions a run adds to a repository as it is; 0 where BranchLab makes the repository itself.

    The run's folder, the trial whether something can be deleted in it, the copy of what is measured (for Check-Out one
    for each client), two per Check-In of each client (its branch, the timed commit) and the folder's end. Where a cache
    is filled, Check-In is run once more for that; each refill that runs it again adds two, and so does each
    folder that a run which was cut off left: one.
    """
    if experiment.data is not None or experiment.scratch is None or not _changing(experiment):
        return 0
    trials = sum(trial.treatment.operation == "check-in" for trial in design.trials(experiment))
    fills = "check-in" in experiment.operations and refills(experiment)
    copies = experiment.at_once if "check-out" in experiment.operations else 1
    return 2 + copies + 2 * (trials * experiment.at_once + fills) + 1


def _changing(experiment: Experiment) -> bool:
    return any(name in CHANGING for name in experiment.operations)


def refills(experiment: Experiment) -> bool:
    """True if operations are also run untimed, to fill the cache."""
    return any(state.enabled for state in experiment.states)


def _run_place(experiment: Experiment, server: Host) -> str:
    if experiment.data is not None or experiment.scratch is None or not _changing(experiment):
        return ""
    return f"{experiment.scratch.replace('{server}', _named(server))}/run-TOKEN"


def _limit(lab: Lab, holder: Host, line: Line) -> str:
    if not (line.limited or line.delayed):
        return "leave the line as it is"
    office, server = lab.having(Role.CLIENT) + lab.having(Role.PROXY), lab.having(Role.SERVER)
    near, far = (
        ", ".join(address for host in hosts for address in (host.address, host.address6) if address)
        for hosts in (office, server)
    )
    near, far = near or "the office", far or "the server"
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


def _cache(cache: Cache, port: str) -> list[str]:
    """What is done with the cache, by its kind."""
    if cache.kind == "command":
        return [shlex.join(cache.list), shlex.join(cache.purge)]
    if cache.kind == "folder":
        return [f"list, fill and purge all files in {cache.folder}"]
    if cache.kind == "squid":
        return [f"list and fill objects of the repository in {cache.folder}; have Squid purge them ({port})"]
    return [f"list, fill and purge objects of the repository in {cache.folder}"]


def _proxy(lab: Lab) -> tuple[str, int]:
    proxy = lab.one(Role.PROXY)
    parts = urlsplit(proxy.url or "")
    return parts.hostname or proxy.address or proxy.name, parts.port or PROXY_PORT


def _named(server: Host) -> str:
    name = server.address or server.address6 or server.name
    return f"[{name}]" if ":" in name else name


def _holes(experiment: Experiment, server: Host) -> dict[str, vcs.Value]:
    url = experiment.repository.replace("{server}", _named(server))
    place = _run_place(experiment, server)
    recipe = recipes.recipe(experiment.data) if experiment.data else None
    return {
        "config": "SCRATCH/config",
        "work": "SCRATCH/work",
        "pristine": "SCRATCH/pristine",
        "url": url,
        "revision": recipe.revision if recipe else "REVISION",
        "lockable": "SCRATCH/lockable" if place or experiment.at_once > 1 else "SCRATCH/pristine",
        "branch_url": f"{place or url.rsplit('/', 1)[0] + '/branches'}/trial-N",
        "seed": "SEED",
        "edit_files": experiment.change.files or (recipe.edit_files if recipe else 0),
        "edit_pattern": recipe.edit_pattern if recipe else "*",
        "edit_share": experiment.change.share,
        "locks": "FILES",
        "repository": "SCRATCH/repository",
        "dump": "SCRATCH/dump",
    }
