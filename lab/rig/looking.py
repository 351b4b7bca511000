"""Looks, before a run, at what it would do to other people's work, and asks for it. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lab import recipes, units
from lab.asking import Question
from lab.credentials import Passwords
from lab.errors import AgentRefused, BadInput, HostLacks
from lab.model import Experiment, Host, Lab, Line, Role
from lab.rig import checking, peers, planning, services
from lab.rig.fullness import Fullness
from lab.rig.hosts import Connected, connected, only
from lab.rig.line import HeldLine, Other, Standing
from lab.rig.workplace import Workplace
from lab.stop import Stop
from lab.vcs import Driver

NAMED = 10
"""So many objects of a cache are named."""


_shown: dict[tuple[str, ...], frozenset[str]] = {}
"""Keys of the objects that were in a cache when it was looked at last, by `Fullness.place`."""
_shown_queues: dict[str, str] = {}
"""Marks of the queues that stood on a host when it was looked at last, by how it is reached; empty without any."""


def look(
    lab: Lab, experiment: Experiment, driver: Driver, passwords: Passwords, *, remember: bool = True
) -> tuple[Question, ...]:
    """What has to be agreed to before this experiment runs here: connections, then queues, then the cache.

    With `remember` it is kept which objects of a cache were found: whoever agrees, agrees to these. Raises
    what the run would raise before its first change: HostTrouble, BadInput, AgentRefused.
    """
    recipes.asked(experiment)
    planning.commands(lab, experiment, driver)  # what the profile lacks is told before any host is asked
    stop = Stop()
    with connected(lab, stop, lease_s=None, passwords=passwords) as hosts:
        for one in hosts:
            checking.refuse_held(one)
        workplace = Workplace(hosts, experiment, driver, passwords)
        workplace.look(stop)
        _refuse_rootless(hosts, experiment)
        line = HeldLine(hosts, replace=True, place=lab.place)
        line.refuse_shared(workplace.ports)
        found = _felt(line, hosts, experiment.lines, workplace.own_ports, stop, remember=remember)
        if any(state.enabled for state in experiment.states):
            proxy = only(hosts, Role.PROXY)
            refuse_taken(proxy)
            if proxy.host.cache is not None and not fills_alone(proxy.host):
                looked = Fullness(proxy, proxy.host.cache, workplace.origin, never_filled)
                objects = unasked(looked, proxy, stop)
                if not proxy.host.services:
                    looked.try_purge(stop)
                found += purge(looked, proxy, objects)
                if remember:
                    _shown[looked.place] = frozenset(objects.keys)
    return tuple(found)


def line(lab: Lab, lines: Sequence[Line], passwords: Passwords) -> tuple[Question, ...]:
    """What has to be agreed to before one of these lines is held here, without a run: connections, then queues.

    What was found is kept as by `look`, and it raises the same.
    """
    stop = Stop()
    with connected(lab, stop, lease_s=None, passwords=passwords) as hosts:
        for one in hosts:
            checking.refuse_held(one)
        held = HeldLine(hosts, replace=True, place=lab.place)
        return tuple(_felt(held, hosts, lines, (), stop, remember=True))


def look_at_own(lab: Lab, experiment: Experiment, driver: Driver, passwords: Passwords) -> None:
    """In a lab that BranchLab made itself nothing is asked; raises what the run would raise before its first change."""
    recipes.asked(experiment)
    planning.commands(lab, experiment, driver)
    stop = Stop()
    with connected(lab, stop, lease_s=None, passwords=passwords) as hosts:
        for one in hosts:
            checking.refuse_held(one)
        Workplace(hosts, experiment, driver, passwords).look(stop)
        if any(state.enabled for state in experiment.states):
            refuse_taken(only(hosts, Role.PROXY))


def fills_alone(proxy: Host) -> bool:
    """True where the cache is that of a proxy of BranchLab's own: only runs of it can have brought in what is there.

    Its agent makes and takes no folder but one that it made itself.
    """
    return bool(proxy.services and proxy.cache and proxy.cache.folder)


def refuse_taken(proxy: Connected) -> None:
    """Raise BadInput where our own proxy is to keep its cache, or itself, in a folder that somebody else made."""
    if not proxy.host.services or proxy.root is None:
        return
    cache = proxy.host.cache.folder if proxy.host.cache else None
    asked = {"services": checking.service_folders(proxy.host), "caches": [cache] if cache else []}
    for entry in proxy.root.ask("footprint", asked)["entries"]:
        if entry.get("taken"):
            raise BadInput(
                f"{entry['path']} is there already on {proxy.name}, and BranchLab did not make it: it takes no folder"
                " that is somebody's, not even an empty one",
                host=proxy.name,
                advice=f'Name one that is not there yet, such as "{entry["path"]}/branchlab".',
            )


def _felt(
    line: HeldLine,
    hosts: Sequence[Connected],
    lines: Sequence[Line],
    own_ports: Sequence[int],
    stop: Stop,
    *,
    remember: bool,
) -> list[Question]:
    # As if it had been agreed to: only what no agreement can help is refused here.
    line.refuse(lines, stop)
    peers.refuse(peers.look(hosts, stop), hosts, line.place)
    if not any(wanted.limited or wanted.delayed for wanted in lines):
        return []
    standing = line.standing(stop)
    if remember:
        _shown_queues.update((one.host.ssh, "") for one in line.holders)
        _shown_queues.update((_ssh(line, one), one.mark) for one in standing)
    return [*connections(line, line.others(hosts, stop, own_ports)), *queues(standing)]


def not_shown(line: HeldLine, standing: Sequence[Standing]) -> tuple[Standing, ...]:
    """Of queues that stand there now, those that were not found when a person was about to be asked."""
    return tuple(one for one in standing if _shown_queues.get(_ssh(line, one)) != one.mark)


def _ssh(line: HeldLine, standing: Standing) -> str:
    return next(one.host.ssh for one in line.holders if one.name == standing.host)


def shown(fullness: Fullness) -> frozenset[str]:
    """Keys of the objects that this process found in this cache when a person was about to be asked; or none."""
    return _shown.get(fullness.place, frozenset())


def connections(line: HeldLine, others: Sequence[Other]) -> tuple[Question, ...]:
    """The question where others would feel the line."""
    if not others:
        return ()
    count = sum(one.count for one in others)
    text = (
        "1 connection of others between the lab's hosts would share the limited line"
        if count == 1
        else f"{count} connections of others between the lab's hosts would share the limited line"
    )
    details = tuple(
        f"{one.count} between {one.host} and {one.peer} on port {one.port}"
        + (f" ({one.protocol})" if one.protocol != "TCP" else "")
        for one in others
    )
    text += ". Seen are TCP and connected UDP; what else goes between these hosts would share it too."
    return (Question("connections", line.holder.name, text, details),)


def queues(standing: Sequence[Standing]) -> tuple[Question, ...]:
    """One question for each host where somebody's queues are in the line's place, and would come back the same."""
    return tuple(
        Question(
            "qdisc",
            one.host,
            f"Somebody set up queues on {one.device}. They would be replaced whenever a line is applied, and put"
            " back after each trial; it was tried out that they come back the same.",
            (one.text,),
        )
        for one in standing
    )


@dataclass(frozen=True, slots=True)
class Unasked:
    """Objects of the repository in a cache that a run may not take out yet; and how many there are of others."""

    objects: tuple[dict[str, Any], ...] = ()
    others: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """How a cache names them."""
        return tuple(one["key"] for one in self.objects)


def unasked(fullness: Fullness, proxy: Connected, stop: Stop) -> Unasked:
    """What has to be asked about in this cache. Nothing in a folder that BranchLab's own proxy has still to make."""
    try:
        found, others = fullness.standing(stop)
    except AgentRefused as error:
        if still_to_make(error, proxy):
            return Unasked()
        raise
    return Unasked(tuple(one for one in found.values() if not fullness.ours.has(one)), others)


def still_to_make(error: AgentRefused, proxy: Connected) -> bool:
    """True where a cache is missing because BranchLab's own proxy makes it when it is first started."""
    return error.kind == "missing" and bool(proxy.host.services)


def names(urls: Iterable[str]) -> tuple[str, ...]:
    """Ten of these objects by name, each one harmless line."""
    return tuple(_printable(url) for url in islice(urls, NAMED))


def purge(fullness: Fullness, proxy: Connected, found: Unasked) -> tuple[Question, ...]:
    """The question where the cache has objects of the repository, which a run takes out before it fills the cache."""
    if not found.objects:
        return ()
    size = units.bytes_text(sum(one["bytes"] for one in found.objects))
    of = f" of {fullness.origin}" if fullness.origin else ""
    since = ", and came there after it was looked at" if fullness.ours.keys else ""
    text = (
        f"{len(found.objects)} objects ({size}){of} are in the cache {fullness.folder} already{since}."
        f" They would be taken out, whoever brought them in; {_rest(found.others)}."
    )
    return (Question("purge", proxy.name, text, names(one["url"] for one in found.objects)),)


def _rest(others: int) -> str:
    if not others:
        return "the cache holds nothing else"
    return f"what else it holds ({others} object{'s' * (others != 1)}) stays untouched"


def _refuse_rootless(hosts: Sequence[Connected], experiment: Experiment) -> None:
    """Raise HostLacks where a service of our own cannot be started: no way to become root, or not on Windows."""
    for one in hosts:
        proxy = one.host.role is Role.PROXY and one.host.cache is not None
        if one.host.services and (proxy or (one.host.role is Role.SERVER and experiment.data)):
            lacks = services.not_on_windows(one)
            if lacks is not None:
                raise HostLacks(lacks[0], advice=lacks[1], host=one.name)
            _ = one.privileged


def never_filled(operation: str, stop: Stop) -> None:
    """As a `Fullness` fills where it only looks."""
    raise AssertionError("looking at a cache fills nothing")


def _printable(url: str) -> str:
    """One line of text, whatever is in a cache's files."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in url)
