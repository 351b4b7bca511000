"""Looks, before a run, at what it would do to other people's work, and asks for it. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from lab import recipes, units
from lab.asking import Question
from lab.credentials import Passwords
from lab.errors import AgentRefused
from lab.model import Experiment, Lab, Role
from lab.rig import checking, peers, planning
from lab.rig.fullness import Fullness
from lab.rig.hosts import Connected, connected, only
from lab.rig.line import HeldLine, Other, Standing
from lab.rig.workplace import Workplace
from lab.stop import Stop
from lab.vcs import Driver

NAMED = 10
"""So many objects of a cache are named."""


def look(lab: Lab, experiment: Experiment, driver: Driver, passwords: Passwords) -> tuple[Question, ...]:
    """What has to be agreed to before this experiment runs here: connections, then queues, then the cache.

    Raises what the run would raise before its first change: HostTrouble, BadInput, AgentRefused.
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
        # As if it had been agreed to: only what no agreement can help is refused here.
        line = HeldLine(hosts, replace=True, place=lab.place)
        line.refuse(experiment.lines, stop)
        peers.refuse(peers.look(hosts, stop), hosts, line.place)
        found: list[Question] = []
        if any(wanted.limited or wanted.delayed for wanted in experiment.lines):
            found += connections(line, line.others(hosts, stop, workplace.own_ports))
            found += queues(line.standing(stop))
        if any(state.enabled for state in experiment.states):
            proxy = only(hosts, Role.PROXY)
            if proxy.host.cache is not None:
                looked = Fullness(proxy, proxy.host.cache, workplace.origin, never_filled)
                found += purge(looked, proxy, stop)
    return tuple(found)


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
    details = tuple(f"{one.count} between {one.host} and {one.peer} on port {one.port}" for one in others)
    return (Question("connections", line.holder.name, f"{text}.", details),)


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


def purge(fullness: Fullness, proxy: Connected, stop: Stop) -> tuple[Question, ...]:
    """The question where the cache has objects of the repository, which a run takes out before it fills the cache.

    A folder that BranchLab's own proxy has still to make is no question.
    """
    try:
        found, others = fullness.standing(stop)
    except AgentRefused as error:
        if error.kind == "missing" and proxy.host.services:
            return ()
        raise
    if not found:
        return ()
    size = units.bytes_text(sum(one["bytes"] for one in found.values()))
    of = f" of {fullness.origin}" if fullness.origin else ""
    text = (
        f"{len(found)} objects ({size}){of} are in the cache {fullness.folder} already. They would be taken out;"
        f" {others} objects of others stay untouched."
    )
    names = tuple(_printable(one["url"]) for one in list(found.values())[:NAMED])
    return (Question("purge", proxy.name, text, names),)


def _refuse_rootless(hosts: Sequence[Connected], experiment: Experiment) -> None:
    """Raise HostLacks where a service of our own is to be started and no way to become root is given."""
    for one in hosts:
        proxy = one.host.role is Role.PROXY and one.host.cache is not None
        if one.host.services and (proxy or (one.host.role is Role.SERVER and experiment.data)):
            _ = one.privileged


def never_filled(operation: str, stop: Stop) -> None:
    """As a `Fullness` fills where it only looks."""
    raise AssertionError("looking at a cache fills nothing")


def _printable(url: str) -> str:
    """One line of text, whatever is in a cache's files."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in url)
