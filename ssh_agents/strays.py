"""What BranchLab made on this host and no lease promises to take back any more: found, and taken away.

Nothing makes such a thing in the course of events: somebody removed the leases by hand, or they were lost.
"""

from typing import Callable, List, NamedTuple

from ssh_agents import (
    account,
    files,
    grounds,
    lease,
    line,
    made,
    netlink,
    packages,
    service,
    system,
    traffic,
    watch,
)


class Stray(NamedTuple):
    """One such thing."""

    kind: str
    """as of a promise: line, traffic, scratch, packages or service; or cache, or lease"""
    what: str
    """in words"""
    remove: Callable[[], str]
    """takes it away and says so; nothing if it was gone"""


def found(privileged: bool) -> List[Stray]:
    """All of them that this agent could take away. Changes nothing."""
    roots = (
        [*_line(), *_counters(), *_services(), *_policy(), *_caches()] if privileged and netlink.HERE else []
    )
    return roots + _scratch_folders() + _notes()


def _line() -> List[Stray]:
    where = "" if _promised("line") else line.where()
    return [Stray("line", "a line on %s" % where, line.taken_off)] if where else []


def _counters() -> List[Stray]:
    how = "" if _promised("traffic") else traffic.how()
    entry = {"kind": "traffic", "how": how}
    return [Stray("traffic", account.promised(entry), lambda: traffic.undo(entry))] if how else []


def _policy() -> List[Stray]:
    """No service of any package is started for as long as it is there, whoever installs."""
    # Other networks' leases too: they may be other hosts on this file system.
    promised = any(
        entry.get("kind") == "packages" for one in lease.everywhere() for _, entry in one.entries()
    )
    path = "" if promised or system.user() != 0 else packages.policy_left()
    what = "%s, which keeps packages from starting their services" % path
    return [Stray("packages", what, packages.policy_off)] if path else []


def _services() -> List[Stray]:
    """Processes that serve an office though nobody minds them, and what a power cut left of others: their folders, and
    the folders that were opened for them.
    """
    if system.user() != 0:
        return []
    promised = {entry.get("folder") for one in lease.everywhere() for _, entry in one.entries()}
    mine = [one for one in made.of_this_host() if one.get("what") == "service" and not made.agent_lives(one)]
    return [_service(one) for one in mine if one["path"] not in promised]


def _service(about: made.About) -> Stray:
    entry = {"kind": "service", "service": "service", "folder": about["path"], "about": about}
    what = "a service of a run, with its folder %s" % about["path"]
    return Stray("service", what, lambda: service.undo(entry) or what + " is removed")


def _caches() -> List[Stray]:
    """What a run or a fill by hand brought into the cache of our own proxy, and no promise takes out any more."""
    if system.user() != 0:
        return []
    kept = {
        (entry.get("about") or {}).get("kept") for one in lease.everywhere() for _, entry in one.entries()
    }
    return [_cache(path) for path in grounds.full() if path not in kept]


def _cache(path: str) -> Stray:
    def take_out() -> str:
        files = grounds.emptied(path)
        return (
            "what BranchLab had brought into the cache %s is taken out (%d files)" % (path, files)
            if files
            else ""
        )

    return Stray("cache", "what BranchLab brought into the cache %s" % path, take_out)


def _promised(kind: str) -> bool:
    boot = lease.boot_id()
    return any(
        entry.get("kind") == kind
        for one in lease.every()
        if one.about().get("boot_id") == boot
        for _, entry in one.entries()
    )


def _scratch_folders() -> List[Stray]:
    # Leases of other networks too: folders are on the file system that all of them see.
    promised = {entry.get("path") for one in lease.everywhere() for _, entry in one.entries()}
    return [_scratch(path) for path in files.there() if path not in promised and files.of_this_host(path)]


def _scratch(path: str) -> Stray:
    return Stray("scratch", "scratch folder %s" % path, lambda: files.undo({"kind": "scratch", "path": path}))


def _notes() -> List[Stray]:
    """Of a lease that cannot be read; what was done under it is promised by nobody, and found as such."""
    return [_note(one) for one in lease.broken()]


def _note(of: lease.Lease) -> Stray:
    what = "the note of a session, %s, which cannot be read" % of.folder

    def remove() -> str:
        watcher = watch.found(of)
        of.remove()
        watch.ended(watcher)
        return what + ", is removed"

    return Stray("lease", what, remove)
