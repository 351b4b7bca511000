"""Looks at every host of a lab and says what a run would lack; takes back what earlier runs left."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from lab.agents import BUSY_ADVICE, Agent
from lab.credentials import Passwords
from lab.errors import AgentRefused, ConnectionLost, HostTrouble, HostUnreachable, LabError, Stopped
from lab.model import Experiment, Host, Lab, Line, Role
from lab.rig import host_checks, peers, scratch, services
from lab.rig.host_checks import RIGHTS, Checked, told
from lab.rig.hosts import Connected, connected, in_role, only, owner, taking_part
from lab.rig.line import HeldLine, without_ifb
from lab.rig.meter import Meter
from lab.rig.scratch import PROXY_PORT
from lab.stop import Stop

_QUEUES = {"htb": "HTB", "tbf": "TBF", "netem": "netem", "ifb": "IFB"}
"""Parts of a line, as kernels and their users call them."""
COUNTING_ADVICE = (
    'A host counts with `root` and nft or iptables; a router between office and server (role = "router") counts what'
    " passes it."
)


def service_folders(host: Host) -> list[str]:
    """Where services of BranchLab's own are on this host while a run goes on."""
    if not host.services or host.role not in (Role.SERVER, Role.PROXY):
        return []
    return [f"{host.services}/{'svn-server' if host.role is Role.SERVER else 'caching-proxy'}"]


def check(
    lab: Lab,
    experiment: Experiment | None,
    passwords: Passwords | None = None,
    stop: Stop | None = None,
    say: Callable[[str], None] = lambda name: None,
    also: Sequence[Experiment] = (),
) -> tuple[Checked, ...]:
    """Everything that a run would need, looked at; nothing is changed. Raises no LabError but Stopped.

    Of a lab without a client or a server, as one host alone is, what is between the hosts is not looked at.

    Of the experiments in `also` what was not said before is told, with their name.
    `say` is told of each host's name before it is looked at, and of an empty one before what is between them.
    """
    known = passwords or Passwords()
    found: list[Checked] = []
    stop = stop or Stop()
    reached: list[Connected] = []
    for host in lab.hosts:
        stop.check()
        say(host.name)
        alone = Lab(name=lab.name, hosts=(host,))
        try:
            with connected(alone, stop, lease_s=None, passwords=known) as (one,):
                reached.append(one)
                found += _host(one, lab)
        except Stopped:
            raise
        except LabError as error:
            found.append(Checked(host.name, False, str(error), error.advice, error.command))
    if reached and lab.having(Role.CLIENT) and lab.having(Role.SERVER):
        say("")
        there = {one.name for one in reached}
        found += told(_between(lab, there, experiment, stop, known, also), lab.name)
    return tuple(found)


def _host(one: Connected, lab: Lab) -> Iterator[Checked]:
    yield Checked(one.name, True, f"reachable: {one.connection.target} answers ({one.connection.software})")
    by = "the profile pins" if one.host.host_key else "is known here"
    yield Checked(one.name, True, f"host key: {one.connection.shown}, the one that {by}")
    yield from host_checks.host(one, lab)
    if one.connection.unheeded:
        yield Checked(
            one.name,
            True,
            f"what the SSH configuration says and has no effect here: {'; '.join(one.connection.unheeded)}",
            "Nothing is to be done if the host is the right one; ssh itself would heed it.",
        )
    holds = one.host in lab.holders
    if one.facts.get("windows"):
        yield from _windows(one, holds)
    if one.root is None and holds:
        yield Checked(
            one.name,
            False,
            "no way to change this host is given, so no line can be limited and nothing counted",
            f'Write root = "sudo" (or "doas", or "direct") under [hosts.{one.name}].',
        )
    elif one.root is None:
        yield from _without_root(one, lab)
    elif _rightless(one):
        yield Checked(
            one.name, False, f'root = "direct", and {one.facts.get("user")} may change nothing here', RIGHTS
        )
    else:
        how = {"direct": "by logging in with the rights"}.get(one.host.root, f"by {one.host.root}")
        yield Checked(one.name, True, f"may do as root what a run needs, {how}")
        if one.root.notice:
            yield Checked(one.name, True, one.root.notice)
    yield from _left(one)


def _rightless(one: Connected) -> bool:
    """True where logging in was to be enough, and gives neither root nor CAP_NET_ADMIN."""
    facts = one.facts
    if one.host.root != "direct" or facts.get("windows"):
        return False
    return facts.get("uid", 0) != 0 and not facts.get("capabilities")


def refuse_held(one: Connected) -> None:
    """Raise AgentRefused, `busy`, if somebody's run goes on there."""
    for agent in _agents(one):
        for found in agent.ask("leases")["leases"]:
            if found["alive"]:
                raise AgentRefused(
                    f"this host is held by {found['held']}", kind="busy", host=one.name, advice=BUSY_ADVICE
                )


def _windows(one: Connected, holds: bool) -> Iterator[Checked]:
    if holds:
        yield Checked(
            one.name,
            False,
            "no line can be held on Windows",
            'Give a Linux machine between office and server role = "router".',
        )
    lacks = services.not_on_windows(one)
    if lacks is not None:
        yield Checked(one.name, False, *lacks)
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
    leases, unpromised = _written_down(one)
    for found in {
        lease["held"].partition(";")[0]: lease for lease in leases.values() if lease["alive"]
    }.values():
        yield Checked(one.name, False, f"held by {found['held']}", BUSY_ADVICE)
    for found in leases.values():
        what = "; ".join(found["what"]) or "nothing"
        if found["earlier_boot"]:
            text = (
                f"before the last start here {found['who']} wrote down: {what}. Of that only folders are left"
            )
            yield Checked(one.name, True, text, "To remove those: branchlab revert PROFILE.")
        elif not found["alive"]:
            text = f"left by {found['who']}: {what}. The next run takes it back"
            yield Checked(one.name, True, text, "Or at once: branchlab revert PROFILE.")
    for found in unpromised:
        # A line is felt by whoever works there, and by every run.
        text = f"left, and nobody is there to take it back: {found['what']}"
        yield Checked(one.name, found["kind"] != "line", text, "To take it away: branchlab revert PROFILE.")


def _written_down(one: Connected) -> tuple[dict[str, dict[str, Any]], list[dict[str, str]]]:
    """Leases by name, and what is there of ours without one. Where both agents are one user's, both see all."""
    words = [agent.ask("leases") for agent in _agents(one)]
    leases = {found["lease"]: found for word in words for found in word["leases"]}
    return leases, [found for word in words for found in word.get("unpromised", [])]


def left(lab: Lab, passwords: Passwords | None = None) -> tuple[Checked, ...]:
    """What runs have left, in one word for each host; nothing is changed. Never raises a LabError.

    The agent that is kept for the next time, and the cache of a proxy of our own, are no such thing.
    """
    found: list[Checked] = []
    for host in lab.hosts:
        alone = Lab(name=lab.name, hosts=(host,))
        try:
            with connected(alone, Stop(), lease_s=None, passwords=passwords) as (one,):
                changes, services = list(_changes(one)), list(_services_left(one))
        except LabError as error:
            found.append(Checked(host.name, False, f"could not be looked at again: {error}", error.advice))
        else:
            ways = ["branchlab revert PROFILE takes it back"] if changes else []
            ways += ["branchlab forget PROFILE removes the folders of services"] if services else []
            remains = "; ".join([*changes, *services])
            found.append(
                Checked(host.name, False, f"left there: {remains}", f"{'; then '.join(ways)}.")
                if remains
                else Checked(host.name, True, "nothing is left there")
            )
    return tuple(found)


def _changes(one: Connected) -> Iterator[str]:
    """What `revert` takes back."""
    leases, unpromised = _written_down(one)
    for lease in leases.values():
        yield f"written down by {lease['who']}: {'; '.join(lease['what']) or 'nothing'}"
    for found in unpromised:
        yield found["what"]


def _services_left(one: Connected) -> Iterator[str]:
    if one.root is None:
        return
    services = service_folders(one.host)
    for entry in one.root.ask("footprint", {"services": services})["entries"][: len(services)]:
        if entry["there"]:
            yield f"{entry['path']} ({entry['what']})"


def _agents(one: Connected) -> list[Agent]:
    """Those of a host, in the order in which they take things back: services before their folders."""
    return [agent for agent in (one.root, one.agent) if agent is not None]


def news(experiment: Experiment, found: Iterable[Checked], said: Sequence[Checked]) -> Iterator[Checked]:
    """Of what was found for one more experiment, what was not said yet; with its name."""
    before = {(one.host, one.ok, one.text) for one in said}
    for one in found:
        if (one.host, one.ok, one.text) not in before:
            yield replace(one, text=f"{experiment.name}: {one.text}")


def _between(
    lab: Lab,
    there: Collection[str],
    experiment: Experiment | None,
    stop: Stop,
    passwords: Passwords,
    also: Sequence[Experiment] = (),
) -> Iterator[Checked]:
    """What is between the hosts that are `there`; what cannot be told without the others is named as not looked at."""
    away = [host for host in lab.hosts if host.name not in there]
    present = replace(lab, hosts=tuple(host for host in lab.hosts if host.name in there))
    with connected(present, stop, lease_s=None, passwords=passwords) as hosts:
        for one in hosts:
            yield from told(host_checks.routes(one, hosts), one.name)
        seen = peers.look(hosts, stop)
        for found in peers.told(seen, hosts, lab.place):
            yield Checked(found.host, found.ok, found.text, found.advice)
        if not away:
            # What can be agreed to is asked before a run, and is no reason against one.
            line = HeldLine(hosts, replace=True, place=lab.place)
            ready = not (lacking := _without_tc(line))
            yield from told(_limited(line, stop) if ready else lacking, lab.name)
            for text in Meter(hosts, peers.hidden(seen, hosts)).notes():
                yield Checked(lab.name, True, text, COUNTING_ADVICE)
            yield from told(
                _all_wanted(experiment, also, hosts, line if ready else None, seen, stop), lab.name
            )
            return
        names = ", ".join(host.name for host in away)
        left_out = ["the line", "what can be counted"]
        if experiment is not None and present.having(Role.SERVER):
            yield from told(_ports(experiment, hosts, seen), lab.name)
        elif experiment is not None:
            left_out.append("ports")
        if experiment is not None and present.having(Role.SERVER) and present.having(Role.CLIENT):
            yield from told(_services(experiment, hosts), lab.name)
        elif experiment is not None:
            left_out.append("repository and proxy")
        text = f"not looked at, since {names} could not be: {', '.join(left_out)}"
        yield Checked(lab.name, True, text, "Cure what is told of that host, and check again.")


def _without_tc(line: HeldLine) -> list[Checked]:
    """Of holders of the line that lack tc, that nothing more was asked of them."""
    return [
        Checked(
            one.name,
            False,
            f"whether {line.what(one.name)} can be limited was not looked at, since tc is missing",
            "Install tc, as told above, and check again.",
        )
        for one in line.holders
        if "tc" in one.facts.get("tools", {}) and one.facts["tools"]["tc"] is None
    ]


def _limited(line: HeldLine, stop: Stop) -> Iterator[Checked]:
    """Whether each holder can hold the line, and with what."""
    for name, word in line.checks(stop).items():
        what = line.what(name)
        yield Checked(
            name,
            not word["refuse"],
            str(word["refuse"] or f"{what} can be limited on {word['device']}{_means(word)}"),
            line.advice(word) if word["refuse"] else "",
            without_ifb(next(one for one in line.holders if one.name == name), word),
        )


def _all_wanted(
    experiment: Experiment | None,
    also: Sequence[Experiment],
    hosts: Sequence[Connected],
    line: HeldLine | None,
    seen: Sequence[peers.Seen],
    stop: Stop,
) -> Iterator[Checked]:
    if experiment is None:
        return
    said = list(_wanted(experiment, hosts, line, seen, stop))
    yield from said
    for other in also:
        yield from news(other, _wanted(other, hosts, line, seen, stop), said)


def _wanted(
    experiment: Experiment,
    hosts: Sequence[Connected],
    line: HeldLine | None,
    seen: Sequence[peers.Seen],
    stop: Stop,
) -> Iterator[Checked]:
    """What this experiment needs beside its hosts: ports, its lines, services of the user's own."""
    name = hosts[0].name
    yield from told(_ports(experiment, hosts, seen), name)
    if line is not None:
        yield from told(_refused(line, experiment, stop), name)
    yield from told(_services(experiment, hosts), name)


def _refused(line: HeldLine, experiment: Experiment, stop: Stop) -> Iterator[Checked]:
    """What is doubtful about the experiment's lines. Raises what keeps one of them from being made."""
    line.refuse(experiment.lines, stop)
    yield from loss_placed(experiment.lines, line.place, line.server.name)


def loss_placed(lines: Sequence[Line], place: str, server: str) -> Iterator[Checked]:
    """That the sender's own TCP sees what is lost before it has left its host: a real line, or a router, hides that."""
    if place != "router" and any(0 < one.loss < 1 for one in lines):
        yield Checked(
            server,
            True,
            "loss is made on the host that sends, whose TCP notices it at once and sends again: less is lost to it than"
            " on a real line",
            'Give a Linux machine between office and server role = "router" if loss is what you want to know about.',
        )


def _means(word: Mapping[str, Any]) -> str:
    """With what a line is made there, and which queue is there now."""
    kinds = word.get("kinds") or {}
    able = [name for kind, name in _QUEUES.items() if kinds.get(kind)]
    lacking = [name for kind, name in _QUEUES.items() if not kinds.get(kind)]
    text = f" (queue there now: {word.get('root_qdisc') or 'none'}; the kernel has {', '.join(able) or 'nothing'}"
    return f"{text}{', not ' + ', '.join(lacking) if lacking else ''})"


def _ports(
    experiment: Experiment, hosts: Sequence[Connected], seen: Sequence[peers.Seen]
) -> Iterator[Checked]:
    """Whether the ports on which services of our own would listen are free."""
    for one, service in services.wanted(hosts, experiment, seen):
        if any(agent.ask("leases")["leases"] for agent in _agents(one)):
            continue  # a run's own service may listen there, and goes with it
        yield from host_checks.port(one, service)


def _proxy_address(proxy: Connected) -> Iterator[Checked]:
    """Whether `url` of a proxy of BranchLab's own is the proxy's."""
    host = urlsplit(proxy.host.url or "").hostname or ""
    own = {*proxy.facts.get("addresses", ()), *proxy.addresses}
    if own and _literal(host) and host not in own:
        yield Checked(
            proxy.name,
            False,
            f"`url` leads to {host}, which is no address of this host ({', '.join(sorted(own))})",
            f'Write url = "http://{sorted(own)[0]}:PORT" under [hosts.{proxy.name}], or the host\'s name.',
        )


def _literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _services(experiment: Experiment, hosts: Sequence[Connected]) -> Iterator[Checked]:
    """Whether the services that are the user's own let a client in: repository, and the proxy before it."""
    clients, server = taking_part(hosts, experiment), only(hosts, Role.SERVER)
    client = clients[0]
    enabled = any(state.enabled for state in experiment.states)
    proxies = [one for one in in_role(hosts, Role.PROXY) if not one.host.services and enabled]
    # A server of BranchLab's own does not answer before a run.
    url = "" if experiment.data is not None else scratch.filled(experiment.repository, server.host)
    if url.startswith("https:"):
        yield Checked(
            client.name,
            True,
            f"{url} speaks https",
            "Nothing of what goes over https can be cached: only the line can be measured with it.",
        )
        return
    for one in clients if url else ():
        yield from host_checks.answers(
            one,
            url,
            named=bool(experiment.user) and not enabled,
            subversion=experiment.vcs == "subversion",
        )
    for proxy in in_role(hosts, Role.PROXY):
        if proxy.host.services and enabled:
            yield from _proxy_address(proxy)
    for proxy in proxies:
        parts = urlsplit(proxy.host.url or "")
        at = (parts.hostname or next(iter(proxy.addresses), proxy.name), parts.port or PROXY_PORT)
        named = bool(proxy.host.user)
        for one in clients:
            if url:
                yield from host_checks.answers(one, url, at, named=named)
            else:
                yield from host_checks.listens(one, proxy.name, at, named=named)


def revert(lab: Lab, *, force: bool = False, passwords: Passwords | None = None) -> dict[str, list[str]]:
    """Take back on every host what any run left there; from one that is going on only with `force`.

    Raises HostTrouble after all hosts were tried.
    """
    undone: dict[str, list[str]] = {}
    troubles: list[LabError] = []
    known = passwords or Passwords()
    asked = {"force": force, "owner": owner(purpose="revert")}
    for host in lab.hosts:
        try:
            alone = Lab(name=lab.name, hosts=(host,))
            with connected(alone, Stop(), lease_s=None, passwords=known) as (one,):
                words = [agent.ask("revert", asked, timeout_s=120) for agent in _agents(one)]
                now = [str(text) for word in words for text in word["undone"]]
                undone[host.name] = [*(str(text) for word in words for text in word.get("earlier", [])), *now]
        except (HostTrouble, AgentRefused) as error:
            error.host = error.host or host.name
            if isinstance(error, AgentRefused) and error.kind == "busy":
                error.advice = BUSY_ADVICE
            troubles.append(error)
    if troubles:
        again = (
            "What is limited there ends by itself within the lease; run revert again once the host answers."
        )
        raise unfinished(troubles, undone, "taken back", again)
    return undone


def unfinished(
    troubles: Sequence[LabError], done: Mapping[str, Sequence[str]], what: str, again: str
) -> HostTrouble:
    """Of a deed on all hosts: what went wrong on each, what was done on the others (if there are any).

    `again` is the advice where a host did not answer; any other trouble has said already what to do.
    """
    text = "\n".join(error.told() for error in troubles)
    if done:
        text += "\nother hosts: " + "; ".join(f"{name}: {len(texts)} {what}" for name, texts in done.items())
    silent = any(isinstance(error, HostUnreachable | ConnectionLost) for error in troubles)
    return HostTrouble(text, advice=again if silent else "")
