"""What one host is like, item by item, each with its cure: looked at by its agent, nothing changed."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lab import units
from lab.agents import Agent
from lab.errors import AgentRefused, LabError, Stopped
from lab.model import Lab
from lab.rig import cures
from lab.rig.hosts import Connected
from lab.rig.provisioning import needs

LEAST_DISK_BYTES = 200_000_000
"""Less free disk than this, and the quick data set with its working copies may not fit."""
COMFORTABLE_DISK_BYTES = 2_000_000_000
MOST_OFFSET_S = 60.0
"""Durations are measured on one host each, so clocks need not agree; beyond this, journals are hard to compare."""
ASKED = 5
"""So many times a host's clock is asked; the quickest answer has the smallest error."""

NAMES = {
    "svn": "Subversion's client",
    "svnadmin": "Subversion's server tools",
    "apache2": "Apache httpd",
    "mod_dav_svn": "Subversion's module for Apache (mod_dav_svn)",
    "tc": "tc (iproute2)",
    "nft": "nft (nftables)",
    "squid": "Squid",
    "nginx": "nginx",
    "wirefilter": "wirefilter (vde2)",
}
"""What `ssh_agents.package_names.NEEDS` are called."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at. `advice` is empty where nothing is to be done; `command` is its exact words.

    `packages` is true where `lab.rig.provisioning` can cure it; `asks` is the kind of `lab.asking.KINDS` that a run
    would have to be agreed to, if it is such a thing.
    """

    host: str
    ok: bool
    text: str
    advice: str = ""
    command: str = ""
    packages: bool = False
    asks: str = ""

    @property
    def grade(self) -> Literal["ok", "warn", "trouble"]:
        """`trouble` keeps a run from being done, `warn` does not."""
        if not self.ok:
            return "trouble"
        return "warn" if self.advice else "ok"


def host(one: Connected, lab: Lab) -> Iterator[Checked]:
    """System, programs, disk, clock, network and load of one host."""
    facts = one.facts
    yield Checked(
        one.name,
        True,
        f"{facts.get('os')}, kernel {facts.get('kernel')}, {facts.get('cpus')} processors,"
        f" Python {facts.get('python')}",
    )
    for item in (_programs(one, lab), _disk(one), _clock(one), _network(one), _load(one)):
        yield from told(item, one.name)


RIGHTS = 'Write root = "sudo" (or "doas") for this host, or log in as root.'


def told(items: Iterable[Checked], name: str) -> Iterator[Checked]:
    """These items; what keeps one of them from being had is told in its place. `name` where no host is known."""
    try:
        yield from items
    except Stopped:
        raise
    except LabError as error:
        denied = isinstance(error, AgentRefused) and error.kind == "denied"
        advice = error.advice or (RIGHTS if denied else "")
        yield Checked(error.host or name, False, str(error), advice, error.command)


def _programs(one: Connected, lab: Lab) -> Iterator[Checked]:
    wanted = needs(one.host, lab)
    if one.facts.get("windows"):  # where nothing of these can be
        wanted = tuple(need for need in wanted if need not in ("tc", "nft"))
    agent: Agent = one.root or one.agent
    word = agent.ask("packages.look", {"needs": list(wanted)}, timeout_s=60)
    commands = [shlex.join(argv) for argv in word["commands"]]
    for need in wanted:
        if need not in word["missing"]:
            version = one.facts.get("tools", {}).get(need)
            instead = "not there; iptables counts instead" if need == "nft" else "there"
            yield Checked(one.name, True, f"{NAMES[need]}: {version or instead}")
        elif need in word["unknown"]:
            yield Checked(one.name, False, f"{NAMES[need]} is missing", f"Install {NAMES[need]} there.")
        else:
            advice = "branchlab provision PROFILE installs it, or somebody there as root:"
            yield Checked(one.name, False, f"{NAMES[need]} is missing", advice, " && ".join(commands), True)


def _disk(one: Connected) -> Iterator[Checked]:
    """The disk of the scratch folders, where working copies are, and others on which a cache or services are."""
    disks = [one.facts.get("disk") or {}]
    cache = one.host.cache
    for folder in (cache.folder if cache is not None else None, one.host.services):
        if folder:
            # Only the agent of root may see into every folder on the way.
            asked = {"tools": [], "path": folder}
            disks.append((one.root or one.agent).ask("facts", asked, timeout_s=60).get("disk") or {})
    seen = set()
    for disk in disks:
        if disk.get("free_bytes") is not None and disk.get("device") not in seen:
            seen.add(disk.get("device"))
            yield from _room(one, disk)


def _room(one: Connected, disk: Mapping[str, Any]) -> Iterator[Checked]:
    free = int(disk["free_bytes"])
    text = f"{units.bytes_text(free)} free in {disk.get('path')} ({disk.get('fs') or 'unknown file system'})"
    if free < LEAST_DISK_BYTES:
        yield Checked(
            one.name, False, text, "Make room there: working copies and caches would fill the disk."
        )
    elif free < COMFORTABLE_DISK_BYTES:
        yield Checked(one.name, True, text, "Enough for a small data set; a large one may fill the disk.")
    else:
        yield Checked(one.name, True, text)


def _clock(one: Connected) -> Iterator[Checked]:
    offset, error = offset_s(one.agent)
    text = f"clock {offset:+.3f} s from this machine's, ± {error:.3f} s"
    if abs(offset) - error <= MOST_OFFSET_S:
        yield Checked(one.name, True, text)
        return
    advice = "Set the clock there (NTP), or its journal will be hard to compare; as root:"
    yield Checked(one.name, True, text, advice, cures.clock(one))


def offset_s(agent: Agent) -> tuple[float, float]:
    """How far the host's clock is ahead of this machine's, and the error of that, in seconds.

    The host's time was read somewhere between asking and being answered; the middle is off by half of that at
    most (Cristian, Probabilistic clock synchronization, 1989). The quickest of `ASKED` answers is taken.
    """
    best = (0.0, float("inf"))
    for _ in range(ASKED):
        begin = time.time()
        there = float(agent.ask("clock")["utc"])
        end = time.time()
        if (end - begin) / 2 < best[1]:
            best = (there - (begin + end) / 2, (end - begin) / 2)
    return best


def _network(one: Connected) -> Iterator[Checked]:
    own = set(one.facts.get("addresses") or ())
    for address in one.addresses:
        if own and address not in own:
            yield Checked(
                one.name,
                True,
                f"the profile's address {address} is none of this host's own ({', '.join(sorted(own))})",
                "Right only behind NAT or a load balancer; else correct"
                f" `{'address6' if ':' in address else 'address'}` in the profile.",
            )
    on = sorted(
        {
            name
            for states in (one.facts.get("offloads") or {}).values()
            for name, is_on in states.items()
            if is_on
        }
    )
    v4, v6 = (sorted(a for a in own if (":" in a) is six) for six in (False, True))
    if own:
        text = f"IPv4: {', '.join(v4) or 'none'}; IPv6: {', '.join(v6) or 'none'}"
        yield Checked(one.name, True, text)
    text = f"offloads on: {', '.join(on)}; the queue cuts what they merge" if on else "no offloads are on"
    yield Checked(one.name, True, f"{text}; congestion control {one.facts.get('congestion') or 'unknown'}")


def _load(one: Connected) -> Iterator[Checked]:
    load, cpus = one.facts.get("loadavg"), one.facts.get("cpus")
    if load and cpus and load[0] > cpus:
        yield Checked(
            one.name,
            True,
            f"busy: {load[0]:.1f} programs want to run, and it has {cpus} processors",
            "Wait until it is idle, or times will vary.",
        )


def routes(one: Connected, hosts: Sequence[Connected]) -> Iterator[Checked]:
    """By which device each peer is reached, and BranchLab's own SSH comes in; whether they share it."""
    if one.facts.get("windows"):
        return
    ends = one.facts.get("ssh") or {}
    desk = ends["peer"]["address"] if ends else ""
    of = {address: peer.name for peer in hosts if peer is not one for address in peer.addresses}
    asked = sorted({*of, *([desk] if desk else [])})
    if not asked:
        return
    devices = one.agent.ask("routes.look", {"addresses": asked})["devices"]
    for address in sorted(of):
        if devices[address] is None:
            advice = f"Add a route there, or correct the address of {of[address]} in the profile."
            yield Checked(one.name, False, f"no route leads to {of[address]} ({address})", advice)
    by: dict[tuple[str, str], list[str]] = {}
    for address in sorted(of):
        if devices[address]:
            by.setdefault((of[address], devices[address]), []).append("IPv6" if ":" in address else "IPv4")
    if not by:
        return
    split = len({name for name, _ in by}) < len(by)  # a family goes another way than the other
    ways = ", ".join(
        f"{name} by {device}{' (' + ' and '.join(dict.fromkeys(families)) + ')' if split else ''}"
        for (name, device), families in sorted(by.items())
    )
    if not desk:
        ssh = "BranchLab's SSH comes over no network"
    elif devices[desk] in [devices[address] for address in of]:
        ssh = f"BranchLab's SSH shares {devices[desk]}, and is left out of the line by address and port"
    else:
        ssh = f"BranchLab's SSH comes by {devices[desk]}"
    yield Checked(one.name, True, f"reaches {ways}; {ssh}")


def port(one: Connected, service: Mapping[str, Any]) -> Iterator[Checked]:
    """Whether the port of a service that a run would start (`services.wanted`) is free."""
    number, kind = service["port"], service["kind"]
    word = one.agent.ask("service.port", {"port": number, "listen": service["options"].get("listen", [])})
    if not word["taken"]:
        yield Checked(one.name, True, f"port {number} is free for BranchLab's own {kind}")
        return
    key = f'url = "http://…:PORT" under [hosts.{one.name}]'
    if kind == "svn-server":
        key = 'repository = "http://{server}:PORT/svn/trunk" in the experiment'
    yield Checked(
        one.name,
        False,
        f"port {number}, which BranchLab's own {kind} would listen on, is taken: somebody listens on"
        f" {', '.join(word['taken'])}",
        f"Write another port in the profile ({key}), or end what listens there; as root this names it:",
        f"ss -ltnp 'sport = :{number}'",
    )


LET_IN = 'Write user = "NAME" under the proxy, or let the clients\' addresses in without a password.'


def listens(one: Connected, proxy: str, at: tuple[str, int], *, named: bool = False) -> Iterator[Checked]:
    """Whether a proxy of the user's own is there, and lets a client in without a password; its origin is not yet.

    `named`: a run would send one.
    """
    url = f"http://{f'[{at[0]}]' if ':' in at[0] else at[0]}:{at[1]}/"
    try:
        word = one.agent.ask("http.look", {"url": url}, timeout_s=60)
    except AgentRefused as error:
        yield Checked(one.name, False, f"{proxy}: {error}", "Start it, or correct `url` in the profile.")
        return
    if word["status"] == 407:
        yield Checked(one.name, named, f"{proxy}: asks for a password", "" if named else LET_IN)
    else:
        yield Checked(one.name, True, f"{proxy}: answers on {url}")


def answers(
    one: Connected,
    url: str,
    through: tuple[str, int] | None = None,
    *,
    named: bool = False,
    subversion: bool = False,
) -> Iterator[Checked]:
    """What a service of the user's own says to a client that sends no password; `through` is a proxy (host, port).

    `named`: a run would send one, to the proxy if it is through one, else to the server; then without any cache.
    `subversion`: it has to be a server of Subversion.
    """
    args = {"url": url, **({"proxy": {"host": through[0], "port": through[1]}} if through else {})}
    where = f"{url} through {through[0]}:{through[1]}" if through else url
    try:
        word = one.agent.ask("http.look", args, timeout_s=60)
        if 300 <= word["status"] < 400 and word["headers"].get("location") == f"{url}/":
            # Of a folder: a client of version control asks for it under both names.
            args["url"] = f"{url}/"
            word = one.agent.ask("http.look", args, timeout_s=60)
    except AgentRefused as error:
        yield Checked(
            one.name, False, f"{where}: {error}", "Start it, or correct the address in the profile."
        )
        return
    advice = _against(word, named=named, proxied=through is not None)
    if advice is None:
        yield from _let_in(one, args, where, word, subversion=subversion and through is None)
    else:
        ok, text, cure = advice
        yield Checked(one.name, ok, f"{where}: {text}", cure)


def _against(word: Mapping[str, Any], *, named: bool, proxied: bool) -> tuple[bool, str, str] | None:
    """What is in the way of a client: whether a run could be done nevertheless, what it is, and the cure."""
    status = int(word["status"])
    if status == 407:
        return named, "the proxy asks for a password", "" if named else LET_IN
    if status == 401:
        cure = (
            "Nothing can be cached then. Allow reading without a password, from the lab's addresses at least."
        )
        if named and not proxied:
            cure = "Nothing can be cached then: only the line can be measured with it."
        return named and not proxied, "a password is asked for on reads", cure
    if 300 <= status < 400:
        to = str(word["headers"].get("location", ""))
        if not to:
            return False, f"answers {status}, and not where it is", "Look at the server's configuration."
        if to.lower().startswith("https:"):
            cure = "Nothing can be cached over https. Name an address that answers over http."
            return False, f"sends on to {to}", cure
        return False, f"sends on to {to}", f"Write the address itself in the profile: {to}."
    said = f"answers {status} {word['reason']}"
    if status == 403 or status >= 500:
        cure = "Look into its log: it refuses what a run would ask, or does not reach the server."
        return False, said, cure
    return (False, said, "Correct the address in the profile.") if status >= 400 else None


def _let_in(
    one: Connected, args: dict[str, Any], where: str, word: Mapping[str, Any], *, subversion: bool
) -> Iterator[Checked]:
    # mod_dav_svn names its extensions of WebDAV in the answer to OPTIONS (subversion/mod_dav_svn/version.c).
    if subversion:
        options = one.agent.ask("http.look", {**args, "method": "OPTIONS"}, timeout_s=60)
        if "subversion" not in options["headers"].get("dav", ""):
            text = f"{where}: answers, and not as a Subversion server does"
            yield Checked(one.name, False, text, "Correct the address in the profile.")
            return
    control = word["headers"].get("cache-control", "").lower()
    kept = [said for said in ("no-store", "private") if said in control]
    kept += ["Vary: *"] if word["headers"].get("vary", "").strip() == "*" else []
    text = f"{where}: answers without a password"
    if kept:
        text += f", and forbids to store it ({', '.join(kept)})"
        yield Checked(one.name, True, text, "Nothing can be cached then: only the line can be measured.")
    else:
        yield Checked(one.name, True, text)
