"""How full the proxy's cache is now, as `check` tells it. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from lab import recipes, units
from lab.credentials import Passwords
from lab.errors import AgentRefused, LabError, Stopped
from lab.model import Cache, Experiment, Host, Lab, Role
from lab.rig import looking, scratch
from lab.rig.fullness import Fullness
from lab.rig.host_checks import Checked
from lab.rig.hosts import Connected, connected, only
from lab.rig.workplace import Workplace, origin
from lab.stop import Stop
from lab.vcs import Driver


def full(
    lab: Lab, experiment: Experiment, driver: Driver, passwords: Passwords, stop: Stop
) -> Iterator[Checked]:
    """Kind, objects of the repository, bytes, and their share of what Get needs where that is known; or why not.

    Nothing where the profile names no cache.
    """
    for host in lab.having(Role.PROXY)[:1]:
        if host.cache is None:
            return
        name = f"cache ({host.cache.kind}) {host.cache.folder or ''}".rstrip()
        try:
            yield Checked(
                host.name,
                True,
                f"{name}: {_told(lab, host, host.cache, experiment, driver, passwords, stop)}",
            )
        except Stopped:
            raise
        except LabError as error:
            text = f"{name}: how full it is was not looked at, since {error}"
            yield Checked(error.host or host.name, True, text, error.advice or "Cure that, and check again.")


def _told(
    lab: Lab,
    host: Host,
    cache: Cache,
    experiment: Experiment,
    driver: Driver,
    passwords: Passwords,
    stop: Stop,
) -> str:
    recipe = recipes.recipe(experiment.data) if experiment.data else None
    # Of a repository of the user's own, the client has to ask where its root is.
    needed = lab if recipe is None else Lab(name=lab.name, hosts=(host,))
    with connected(needed, stop, lease_s=None, passwords=passwords) as hosts:
        proxy = only(hosts, Role.PROXY)
        if recipe is None:
            workplace = Workplace(hosts, experiment, driver, passwords)
            workplace.look(stop)
            root = workplace.origin
        else:
            root = origin(scratch.filled(experiment.repository, lab.one(Role.SERVER)))
        listed = sum(extension.files for extension in recipe.extensions) if recipe else 0
        return _standing(proxy, Fullness(proxy, cache, root, looking.never_filled), listed, stop)


def _standing(proxy: Connected, fullness: Fullness, listed: int, stop: Stop) -> str:
    """`listed`: so many objects are 100 %; 0 where only a fill tells."""
    try:
        found, others = fullness.standing(stop)
    except AgentRefused as error:
        if not looking.still_to_make(error, proxy):
            raise
        return "0 % full: BranchLab's own proxy still has to make it"
    size = units.bytes_text(sum(one["bytes"] for one in found.values()))
    of = " of the repository" if fullness.origin else ""
    text = f"{len(found)} objects{of}, {size}"
    if listed:
        text += f": {100 * min(1.0, len(found) / listed):.0f} % of the {listed} that Get needs"
    else:
        text += "; 0 % full" if not found else "; how many are 100 %, a fill tells (branchlab fill PROFILE)"
    return f"{text}; {others} of others" if others else text
