"""What is known of hosts and line, gathered from a profile's lab and from a live run. No widgets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gui import words
from gui.lab.checked import CheckedLab, Item
from gui.lab.hand import NOTHING, ByHandKnown, LineKnown
from gui.theme import marks
from lab.events import Outcome
from lab.live import Live
from lab.model import Host, Lab, Line, Role

ROLE_NAMES = {
    Role.CLIENT: "client",
    Role.PROXY: "caching proxy",
    Role.SERVER: "version control",
    Role.ROUTER: "router",
}
ROLE_ICONS = {
    Role.CLIENT: "desktop",
    Role.PROXY: "stack",
    Role.SERVER: "hard-drives",
    Role.ROUTER: "arrows-left-right",
}


WORST_FIRST = (marks.TROUBLE, marks.BUSY, marks.WARN, marks.UNKNOWN, marks.OK)
_ROLES = {role.value for role in Role}
_TOOLS = {Role.CLIENT: ("svn",), Role.PROXY: ("apache2", "httpd"), Role.SERVER: ("svnadmin", "apache2")}
_TOOL_NAMES = {"apache2": "Apache", "httpd": "Apache", "svnadmin": "svn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShown:
    """One host: its sign and word, a remark, and its facts as rows."""

    name: str
    role: Role
    sign: str
    word: str
    remark: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    found: tuple[tuple[str, str], ...] = ()
    """those of the rows that a run or a check found out"""
    checks: tuple[Item, ...] = ()
    checked: str = ""
    """when that was found, empty if it was not looked at"""
    cached: bool = False
    """True if its cache can be filled and purged"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineShown:
    """The line as asked and as last verified."""

    line: Line | None = None
    sign: str = ""
    word: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    by_hand: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Everything that the page shows and that changes seldom."""

    name: str = ""
    hosts: tuple[HostShown, ...] = ()
    line: LineShown = field(default_factory=LineShown)
    checked: CheckedLab | None = None
    """What the last check of this profile's lab found."""
    cache: float | None = None
    """How full the proxy's cache was found last, percent."""
    cache_word: str = ""
    """What is said of a cache of which that is not known."""
    shared: bool = True
    """False if each office host has a line of its own"""
    key: str = ""
    """what the placement of its hosts is kept under"""
    opened: bool = False
    """True if a lab is open, so that something can be done to it."""


def shown(
    lab: Lab | None,
    live: Live,
    *,
    past: bool = False,
    checked: CheckedLab | None = None,
    newer: bool = False,
    looking: str = "",
    hand: ByHandKnown = NOTHING,
) -> Shown:
    """The lab of a profile with what a run found out; without a profile, what the run knows.

    What a check found is told of the hosts of the profile; signs are of the check where it is `newer` than
    the run, or the run left a host out. `looking` is the host that is being checked. What was done by `hand` is
    newer than any run.

    Of a run that is `past`, read from a file, nothing is said of a profile's hosts, nor that anything is so now.
    """
    if past and lab is not None:
        live = Live()
    hosts = list(lab.hosts) if lab else []
    known = {host.name for host in hosts}
    seen = [Host(name=h.host, role=Role(h.role), ssh="") for h in live.hosts.values() if h.role in _ROLES]
    hosts += [host for host in seen if host.name not in known]
    order = [Role.CLIENT, Role.PROXY, Role.ROUTER, Role.SERVER]
    hosts.sort(key=lambda host: order.index(host.role))
    cache = live.last.cache_found if live.last else None
    if live.current is not None and live.current.timed_since is not None:
        cache = live.current.trial.treatment.state.full
    word = ""
    if hand.cache is not None and not live.running:
        cache, word = hand.cache.full, f"{words.count(hand.cache.objects)} objects"
    return Shown(
        name=lab.name if lab else live.lab,
        hosts=tuple(
            _at_work(
                _looked_at(
                    _past_host(_host(host, live), past=past),
                    checked,
                    looking,
                    newer or host.name not in live.hosts,
                ),
                hand,
            )
            for host in hosts
        ),
        line=_past_line(_line(live), past=past) if hand.deed != "line" else _held(hand.line),
        checked=checked,
        cache=cache if hand.cache is not None or not past else None,
        cache_word=word,
        shared=lab is None or lab.place not in ("office", "senders"),
        key=(lab.path or lab.name) if lab is not None else live.lab,
        opened=lab is not None,
    )


def _at_work(host: HostShown, hand: ByHandKnown) -> HostShown:
    if host.cached and hand.deed in ("fill", "purge"):
        return replace(host, sign=marks.BUSY, word="being filled" if hand.deed == "fill" else "being purged")
    return host


def _looked_at(host: HostShown, checked: CheckedLab | None, looking: str, newer: bool) -> HostShown:
    if checked is not None:
        sign, word = checked.word(host.name)
        if sign:
            host = replace(host, checks=checked.host(host.name), checked=checked.when)
        if sign and newer:
            host = replace(host, sign=sign, word=word)
    return replace(host, sign=marks.BUSY, word="checking") if host.name == looking else host


def _past_host(host: HostShown, *, past: bool) -> HostShown:
    return (
        replace(host, sign=marks.UNKNOWN, word="as in that run") if past and host.sign == marks.OK else host
    )


def _past_line(line: LineShown, *, past: bool) -> LineShown:
    return replace(line, sign=marks.UNKNOWN, word="as in that run") if past and line.rows else line


def roles(seen: Shown) -> tuple[tuple[str, str], ...]:
    """Each role with its sign, for the top bar: `2 clients`, `1 of 2 clients`, `proxy`, `server`."""
    told = []
    for role in (Role.CLIENT, Role.PROXY, Role.ROUTER, Role.SERVER):
        hosts = [host for host in seen.hosts if host.role is role]
        if hosts:
            signs = {host.sign for host in hosts}
            if marks.OK in signs:
                signs.discard(marks.UNKNOWN)  # clients that this run leaves out are no trouble
            sign = next(s for s in WORST_FIRST if s in signs)
            many = f"{len(hosts)} {role.value}s"
            if sign == marks.TROUBLE:
                many = f"{sum(host.sign != sign for host in hosts)} of {many}"
            told.append((sign, role.value if len(hosts) == 1 else many))
    return tuple(told)


def _host(host: Host, live: Live) -> HostShown:
    seen = live.hosts.get(host.name)
    facts: Mapping[str, object] = seen.facts if seen else {}
    sign, word = (marks.OK, "ready") if seen else (marks.UNKNOWN, "not checked")
    if not seen and live.running:
        begun = bool(live.done) or live.current is not None
        sign, word = (marks.UNKNOWN, "not in this run") if begun else (marks.BUSY, "checking")
    if seen and live.running and host.name in live.found_again:
        word = "ready; was lost, and found again"
    if host.name in live.lost:
        sign, word = marks.TROUBLE, "lost, and looked for again"
    if live.outcome is Outcome.FAILED and live.reason.startswith(f"{host.name}:"):
        sign, word = marks.TROUBLE, live.reason.removeprefix(f"{host.name}:").strip()
    rows = [("SSH name", _short(host.ssh))] if host.ssh else []
    for address in filter(None, (host.address, host.address6)):
        rows.append(("Address in the lab", address))
    if host.url:
        rows.append(("Address the clients use", host.url))
    if host.cache:
        rows += [("Kind of cache", host.cache.kind), ("Cache folder", host.cache.folder or "none")]
    if host.root != "none":
        rows.append(("Root", {"sudo": "by sudo", "direct": "already there"}.get(host.root, host.root)))
    return HostShown(
        name=host.name, role=host.role, sign=sign, word=word, remark=_tool(facts, host.role),
        rows=tuple(rows + _facts(facts)), found=tuple(_facts(facts)),
        cached=host.cache is not None and host.role is Role.PROXY,
    )  # fmt: skip


def _short(ssh: str) -> str:
    return "a socket on this machine" if ssh.startswith("unix:") else ssh


def _tool(facts: Mapping[str, object], role: Role) -> str:
    """The tool that matters in this role, with its version: `svn 1.14.2`."""
    tools = facts.get("tools")
    if not isinstance(tools, Mapping):
        return ""
    for name in _TOOLS.get(role, ()):
        if tools.get(name):
            return f"{_TOOL_NAMES.get(name, name)} {_version(str(tools[name]))}".strip()
    return ""


def _version(text: str) -> str:
    """The version number in what a tool says of itself; all of a short text where there is none."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return found.group() if found else text if len(text) < 12 else ""


def _facts(facts: Mapping[str, object]) -> list[tuple[str, str]]:
    rows = []
    for key, name in (
        ("os", "System"),
        ("kernel", "Kernel"),
        ("cpus", "CPUs"),
        ("congestion", "Congestion control"),
    ):
        if facts.get(key):
            rows.append((name, str(facts[key])))
    memory, disk = facts.get("memory_bytes"), facts.get("disk")
    if isinstance(memory, int):
        rows.append(("Memory", f"{memory / 1e9:.1f} GB"))
    if isinstance(disk, Mapping) and isinstance(disk.get("free_bytes"), int):
        rows.append(("Disk free", f"{disk['free_bytes'] / 1e9:.1f} GB"))
    if facts.get("python"):
        rows.append(("Python", str(facts["python"])))
    tools = facts.get("tools")
    if isinstance(tools, Mapping):
        rows += [(str(name), _version(str(version)) or "there") for name, version in tools.items() if version]
    return rows


def _held(held: LineKnown | None) -> LineShown:
    if held is None:
        return LineShown(sign=marks.BUSY, word="being applied")
    word = "being taken back" if held.ending else "held by hand, read back"
    rows = (("Asked", words.line(held.line)), ("", words.extras(held.line)), ("Read back", held.said))
    sign = marks.BUSY if held.ending else marks.OK
    return LineShown(line=held.line, sign=sign, word=word, rows=rows, by_hand=True)


def _line(live: Live) -> LineShown:
    if live.lost:
        return LineShown(word="not known: a host is lost", sign=marks.UNKNOWN)
    line = live.applied_line
    if line is None:
        last = next(reversed(live.proved.values()), None)
        if last is None:
            return LineShown(word="not applied yet", sign=marks.UNKNOWN)
        return LineShown(word="lifted: not limited now", sign=marks.OK, rows=_proved(live, last.line))
    if line in live.proved:
        rows = (*_proved(live, line), ("Lease", "renewed while the run goes"))
        return LineShown(line=line, sign=marks.OK, word="read back and measured", rows=rows)
    return LineShown(line=line, sign=marks.BUSY, word="being applied")


def _proved(live: Live, line: Line) -> tuple[tuple[str, str], ...]:
    proved = live.proved[line]
    rows = [("Asked", words.line(line)), ("", words.extras(line))]
    if proved.read_upload_bps and proved.read_download_bps:
        rows.append(
            ("Read back", f"{proved.read_upload_bps / 1e3:g}/{proved.read_download_bps / 1e3:g} kbit/s")
        )
    if proved.achieved_upload_bps and proved.achieved_download_bps:
        up, down = proved.achieved_upload_bps / 1e3, proved.achieved_download_bps / 1e3
        rows.append(("Achieved", f"{up:.4g}/{down:.4g} kbit/s"))
    if proved.round_trip_s is not None:
        rows.append(("Round trip", f"{proved.round_trip_s * 1000:.1f} ms"))
    if proved.loss is not None:
        rows.append(("Loss", f"{proved.loss:.1%}"))
    if proved.method:
        rows.append(("By", proved.method))
    return tuple(rows)
