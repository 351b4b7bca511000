"""The plan as a page for a change board: what is changed on which host, how it ends, what is never touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from lab import asking, caches, design, places, settings, units
from lab.model import Cache, Experiment, Host, Lab, Role
from lab.rig import planning
from lab.rig.checking import service_folders
from lab.rig.hosts import owner
from lab.rig.scratch import PROXY_PORT
from lab.vcs import Driver

WATCHER_S = 5
"""A change outlives BranchLab by a lease at most, and the few seconds that its watcher takes."""

_NEVER = (
    "Other nftables tables, firewall rules, addresses, routes and settings of the system.",
    "Traffic to any other address than those of the office hosts above; BranchLab's own SSH, which is neither limited"
    " nor counted.",
    "The system's own Apache, and anything in /etc. No package is installed and nothing is started at boot.",
    "Queues that somebody set up, unless they are proved to come back the same and that was agreed to.",
)


def page(lab: Lab, experiment: Experiment, driver: Driver, duration: str = "") -> str:
    """The whole page, in Markdown. `duration` is what is known of how long it takes. No host is asked.

    Raises BadInput if the experiment cannot be planned or the profile lacks what it needs.
    """
    commands = planning.commands(lab, experiment, driver)
    parts = [
        [f"# Changes for “{experiment.name}” in the lab “{lab.name}”"],
        _what(lab, experiment, duration),
        ["## What is changed on each host, and how it ends"],
        _ends(),
        *(_host(lab, host, experiment) for host in lab.hosts),
        ["## Repository", "", *_repository(experiment)],
        ["## What is never touched", "", *(f"- {text}" for text in (*_NEVER, *_left_alone(lab, experiment)))],
        ["## What the run may ask for", "", *_questions(experiment)],
        ["## To take everything back at once", "", *_revert(lab)],
        ["## Commands, in the order of a run", "", "Capitals stand for what a run fills in."],
        *(_commands(host, told) for host, told in commands.items()),
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _ends() -> list[str]:
    lease = settings.lease_s()
    return [
        "Each change is written down on its host before it is made, and lasts while BranchLab renews a lease of"
        f" {lease:.0f} s. It is taken back when the run ends, however it ends; when BranchLab, its machine or the"
        " network to it is gone, a watcher on the host takes it back by itself. A host that restarts comes up"
        " without line and counters; folders that were left are removed by `branchlab revert`. Each change, and"
        " its end, is one line in that host's journal (tag `branchlab`): who, from where, what.",
    ]


def _what(lab: Lab, experiment: Experiment, duration: str) -> list[str]:
    me = owner()
    lines = "; ".join(units.line_text(line) for line in experiment.lines)
    states = ", ".join(state.key for state in experiment.states)
    return [
        f"- What: {len(design.trials(experiment))} trials of {', '.join(experiment.operations)};"
        f" lines: {lines}; proxy: {states}",
        *_who(lab, experiment),
        f"- Asked by: {me['user']} on {me['controller']}",
        "- When: ____________________",
        f"- Expected duration: {duration or 'not known, since nothing of this experiment was measured yet'}",
        f"- Profile: {lab.path or lab.name}",
    ]


def _who(lab: Lab, experiment: Experiment) -> list[str]:
    clients = lab.taking_part(experiment)
    if len(clients) < 2:
        return []
    return [
        f"- Clients: {', '.join(one.name for one in clients)}, which do each operation at the same moment"
    ]


def _host(lab: Lab, host: Host, experiment: Experiment) -> list[str]:
    rights = {"none": "nothing here is done as root", "direct": "logs in as root, or has the rights already"}
    addresses = ", ".join(_addresses(host)) or "no address"
    changes = [*_leased(lab, host, experiment), *_kept(host, experiment)]
    return [
        f"### {host.name} ({host.role.value}, {addresses})",
        "",
        f"SSH to `{host.ssh}`; {rights.get(host.root, f'root by {host.root}')}."
        f" Ports: {'; '.join(_ports(lab, host, experiment))}.",
        "",
        "| change | how it ends | outlasts BranchLab by at most |",
        "| --- | --- | --- |",
        *("| " + " | ".join(_cell(text) for text in change) + " |" for change in changes),
    ]


def _leased(lab: Lab, host: Host, experiment: Experiment) -> Iterator[tuple[str, str, str]]:
    """Changes under a lease: what, its undo, how long it can stay."""
    soon = f"{settings.lease_s() + WATCHER_S:.0f} s"
    shaped = [line for line in experiment.lines if line.limited or line.delayed]
    if host in lab.holders and shaped:
        own = lab.place in ("office", "senders") and host.role is not Role.SERVER
        far = (Role.SERVER,) if own else (Role.CLIENT, Role.PROXY)
        to = ", ".join(
            address
            for one in lab.hosts
            for address in (one.address, one.address6)
            if address and one.role in far
        )
        part = {True: " (upload)", False: " (download)"}[own] if lab.place == "senders" else ""
        whose = f"this host's own line{part}, not shared," if own else f"the line{part}"
        yield (
            f"{whose} towards {to} limited (tc, a device ifb): {'; '.join(map(units.line_text, shaped))}",
            "our queues deleted after each trial; what stood there before is back",
            soon,
        )
        if host.delay and any(line.delayed for line in shaped):
            yield (
                f"packets held back at {host.delay}, where the kernel has no netem",
                "no longer held back",
                soon,
            )
    for folder in service_folders(host):
        if host.role is Role.SERVER and not experiment.data:
            continue
        what = planning.engine(host)
        yield (
            f"{what} of BranchLab's own in {folder}, which is made for it, and what is missing on the way there"
            " (written down in /var/lib/branchlab/made)",
            "stopped, its folder removed, and those on the way that were made",
            soon,
        )
        yield (
            "folders of BranchLab's own on that way (`branchlab` in the name) that bar the service's user: its group,"
            " mode 0710",
            "group and mode as they were",
            soon,
        )
    if host in lab.taking_part(experiment) or (host.role is Role.SERVER and experiment.data):
        what = "working copies" if host.role is Role.CLIENT else "a repository made for this run"
        yield f"a scratch folder in `branchlab-UID` below the temporary folder: {what}", "removed", soon
    if host.root != "none":
        yield "bytes counted per host (nftables table `inet branchlab`)", "the table deleted", soon


def _kept(host: Host, experiment: Experiment) -> Iterator[tuple[str, str, str]]:
    """What is no lease's: it stays, or only the end of a run removes it."""
    cache = host.cache if host.role is Role.PROXY else None
    if cache and any(state.enabled for state in experiment.states):
        whose = "objects of the repository" if caches.kind(cache.kind).urls else "objects, of others too,"
        ends = (
            (
                "the whole cache is emptied when its proxy is stopped",
                f"{settings.lease_s() + WATCHER_S:.0f} s",
            )
            if host.services
            else (
                "what the run brought in is purged at its end; what was there before and was agreed to is not put back",
                "until the next run, or the cache's own cleaning, if the run was killed",
            )
        )
        yield (f"{whose} filled and purged in {_named(cache)}", *ends)
    if cache and host.services:
        yield (
            f"the folder {cache.folder}, made for the proxy's user, and what is missing on the way there; one that is"
            " there already and that BranchLab did not make is never taken",
            "kept empty for the next run (written down in /var/lib/branchlab/made)",
            "until `branchlab forget`",
        )
    where = "`branchlab-run-UID` below the temporary folder"
    if host.root != "none":
        where = f"`/run/branchlab`, and {where}"
    yield (
        f"leases and how to undo them, in {where}",
        "taken out; what the host took back by itself while nobody was there stays, in `taken-back.jsonl-…`",
        "until the next `branchlab revert`; the folder until `branchlab forget`",
    )
    yield (
        "the agent, in the user's cache folder (`~/.cache/branchlab`)",
        "kept for the next run",
        "until `branchlab forget`",
    )


def _left_alone(lab: Lab, experiment: Experiment) -> Iterator[str]:
    """Which objects of a cache stay."""
    caching = [host.cache for host in lab.having(Role.PROXY) if host.cache is not None]
    if not caching or not any(state.enabled for state in experiment.states):
        return
    yield (
        "Objects that are in a proxy's cache and were not shown when the run was agreed to. Without `--agree purge`"
        " it takes out nothing but what it brought in itself."
    )
    for cache in caching:
        if caches.kind(cache.kind).urls:
            yield (
                f"Objects of others in {_named(cache)}: only those below the repository's root, and of these those that"
                " were shown or that the run itself asked for, are deleted."
            )
        else:
            yield (
                f"Not so in {_named(cache)}, where objects name no URL: what appears there while the run fills it"
                " counts as brought in by it, whoever did."
            )


def _named(cache: Cache) -> str:
    return cache.folder or f"the cache that `{' '.join(cache.list)}` lists"


def _ports(lab: Lab, host: Host, experiment: Experiment) -> Iterator[str]:
    office = [
        address for one in lab.hosts if one.role in (Role.CLIENT, Role.PROXY) for address in _addresses(one)
    ]
    only = f"{', '.join(office) or 'clients and proxy'} alone (behind NAT: the address seen for them)"
    port = places.port(experiment.repository)
    yield "none for SSH (a UNIX socket)" if host.ssh.startswith("unix:") else "SSH as above"
    if host.role is Role.SERVER:
        yield f"TCP {port} for the repository" + (
            f", answering this host and {only}" if experiment.data else ""
        )
        if any(line.limited or line.delayed for line in experiment.lines):
            yield "one free TCP and UDP port above 1023 while a line is probed, from clients and proxy"
    if host.role is Role.PROXY:
        yield "one free TCP port above 1023 when a run begins, from the clients"
        own = f", answering {only}, and going to the repository's host on port {port} alone"
        ours = bool(host.services and host.cache)
        yield f"TCP {urlsplit(host.url or '').port or PROXY_PORT} for the proxy{own if ours else ''}"


def _addresses(host: Host) -> list[str]:
    return [address for address in (host.address, host.address6) if address]


def _repository(experiment: Experiment) -> list[str]:
    """What happens to the repository."""
    if experiment.data:
        return ["It is made for this run, and removed with it. No other repository is changed."]
    added = planning.revisions(experiment)
    if not added:
        return [f"{experiment.repository} is read, and nothing in it is changed."]
    more = (
        " A refill of the cache, or what a run that was cut off left, may add some."
        if planning.refills(experiment)
        else ""
    )
    return [
        f"{experiment.repository} is read. Changes are made below {experiment.scratch} alone, a place that was made"
        f" and marked for it: {added} revisions, locks among them in copies only.{more} The run's own folder there"
        " is deleted at its end; revisions of a repository stay for ever.",
    ]


def _questions(experiment: Experiment) -> list[str]:
    may = asking.possible(experiment)
    if not may:
        return ["Nothing: neither a line nor a cache is changed."]
    return [
        *(f"- `{kind}`: {asking.KINDS[kind]}" for kind in may),
        "",
        "It asks only where it finds such a thing, before anything is changed; `branchlab check PROFILE` tells it"
        f" beforehand. A run that nobody watches is told with `{asking.flag(may)}`, or fewer;"
        f" `{asking.flag([])}` runs only if nothing has to be asked.",
    ]


def _revert(lab: Lab) -> list[str]:
    return [
        f"    branchlab revert {lab.path or 'PROFILE'}",
        "",
        "from any machine that reaches the hosts, at any time, also twice; with `--force` while the run goes on,"
        " which then fails. Without it: end BranchLab, and the hosts take everything back by themselves within"
        f" {settings.lease_s() + WATCHER_S:.0f} s.",
    ]


def _commands(host: str, told: Iterable[str]) -> list[str]:
    return [f"### On {host}", "", *(f"    {text}" for text in told)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
