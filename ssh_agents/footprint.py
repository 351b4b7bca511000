"""What BranchLab leaves on a host for the next time, listed and removed: for the user, and for root.

Only what BranchLab made is touched: files with its names in its folders, folders that hold its mark.
"""

import contextlib
import functools
import os
import re
import shutil
import stat
from typing import Any, Callable, Dict, Iterator, List, Tuple

from ssh_agents import (
    files,
    grounds,
    installed,
    lease,
    packages,
    past,
    private,
    protocol,
    service,
    service_asked,
    system,
)

_KEPT_AGENT = re.compile(r"agent-[0-9a-f]{64}\.py(\.[0-9]+)?")

MADE_ABOVE = "made-cache"
"""Beside the kept agent, where the folder above had to be made for it: see lab.agents.bundling."""
_POLICY = "left by an install that was cut off: it keeps packages from starting their services"
_PACKAGES = "what provision installed here: %s"
INSTALLED = "the copy of the agent that an administrator put there"
SERVICE, CACHE = "a service of BranchLab's own", "the cache of BranchLab's own proxy"

SESSIONS = (
    "leases and how to undo them, while a run goes on; in %s-…, what this host took back by itself,"
    " until the next revert" % past.NAME
)
Removal = Tuple[str, str, Callable[[], None]]
"""A path that is there, what it is, and how it is removed."""


def users(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `footprint` of the ordinary agent: `entries` of {path, what, there}, for this user. Changes nothing."""
    kept = agents_folder()
    entries = [
        _entry(
            os.path.join(kept, "agent-DIGEST.py"), "the agent, kept for the next time", bool(_kept_agents())
        )
    ]
    entries.append(
        _entry(files.place(), "scratch folders, each removed when its run ends", bool(files.there()))
    )
    entries.append(_entry(private.usual(), SESSIONS, _filled(private.usual())))
    return {"entries": entries, "kept": kept, "agents": _kept_agents()}


def roots(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `footprint` of the privileged agent: the same for `services` and `caches` (folders), and for root."""
    there = {path for path, _, _ in _roots(args)}
    entries = [_entry(path, what, path in there) for path, what in _asked(args)]
    for entry in entries:
        # Somebody else's, which no service or cache of ours can be made in.
        entry["taken"] = not entry["there"] and os.path.lexists(entry["path"])
    sessions = private.folder()
    entries.append(_entry(sessions, SESSIONS, _filled(sessions)))
    for name in installed.names():
        path = os.path.join(installed.FOLDER, name)
        entries.append(_entry(path, INSTALLED, path in there))
    if installed.empty():
        entries.append(_entry(installed.FOLDER, "the folder of installed agents, empty", True))
    if packages.policy_left():
        entries.append(_entry(packages.POLICY, _POLICY, True))
    if packages.recorded():
        entries.append(_entry(packages.RECORD, _PACKAGES % ", ".join(packages.recorded()), True))
    return {"entries": entries}


def forget_users(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `forget` of the ordinary agent: remove what `footprint` tells of; `removed` says what. Idempotent.

    Refuses with `busy` while any lease of this user is on this host: `revert` first.
    """
    return _forgotten(_users())


def forget_roots(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `forget` of the privileged agent: the same for `services`, `caches` and root. Idempotent.

    `left` names those of the folders that are there and were not made here, as far as root wrote it down.
    """
    word = _forgotten(_roots(args))
    for path, _ in _asked(args):
        grounds.forgotten(path)
    word["left"] = ["%s (%s)" % (path, why) for path, why in _others(args)]
    if packages.recorded():
        told = _PACKAGES % ", ".join(packages.recorded())
        word["left"].append("%s (%s; provision --remove takes them away)" % (packages.RECORD, told))
    return word


def _others(args: Dict[str, Any]) -> Iterator[Tuple[str, str]]:
    for path, what in _asked(args):
        if os.path.lexists(path) and not _made_here(path, what):
            yield path, "it is there, and BranchLab has not written down that it made it"


def _made_here(path: str, what: str) -> bool:
    return grounds.is_our_cache(path) if what is CACHE else grounds.known(path) is not None


def _forgotten(found: Iterator[Removal]) -> Dict[str, Any]:
    held = [one.name for one in lease.every()]
    if held:
        text = "changes are still written down here: %s" % ", ".join(held)
        raise protocol.Refused("busy", text, "revert takes them back")
    word = _removed(list(found))
    with contextlib.suppress(OSError):  # another network of this machine may have leases in it
        _tidy(private.folder())
    return word


def _tidy(sessions: str) -> None:
    if not any(name.startswith((lease.PREFIX, "wire-", "before-")) for name in os.listdir(sessions)):
        for name in os.listdir(sessions):
            path = os.path.join(sessions, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                os.unlink(path)
        os.rmdir(sessions)


def agents_folder() -> str:
    """Where the loader keeps the ordinary agent: see lab.agents.bundling."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(folder, "branchlab")


def _removed(found: List[Removal]) -> Dict[str, Any]:
    removed: List[str] = []
    left: List[str] = []
    for path, what, remove in found:
        try:
            remove()
        except (OSError, protocol.Refused) as error:
            left.append("%s (%s): %s" % (path, what, getattr(error, "text", error)))
        else:
            removed.append("%s (%s)" % (path, what))
    if left:
        raise protocol.Refused("failed", "not removed: %s" % "; ".join(left), "; ".join(removed))
    return {"removed": removed}


# The user's


def _users() -> Iterator[Removal]:
    folder = agents_folder()
    for name in _kept_agents():
        path = os.path.join(folder, name)
        yield path, "the agent", functools.partial(_unlinked, path)
    note = os.path.join(folder, MADE_ABOVE)
    if _mine(note, stat.S_ISREG):
        yield (
            os.path.dirname(folder),
            "made for the agent, if it is empty now",
            functools.partial(_above_too, note),
        )
    for path in files.there():
        yield path, "a scratch folder", functools.partial(_emptied, path)


def _above_too(note: str) -> None:
    """The user's folder of caches goes as well, where it was made for the agent and has nothing else in it."""
    folder = os.path.dirname(note)
    os.unlink(note)
    for path in (folder, os.path.dirname(folder)):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _kept_agents() -> List[str]:
    folder = agents_folder()
    try:
        found = sorted(name for name in os.listdir(folder) if _KEPT_AGENT.fullmatch(name))
    except OSError:
        return []
    return [name for name in found if _mine(os.path.join(folder, name), stat.S_ISREG)]


# Root's


def _asked(args: Dict[str, Any]) -> List[Tuple[str, str]]:
    checked = []
    for name, what in (("services", SERVICE), ("caches", CACHE)):
        for path in protocol.need_strings(args, name, []):
            checked.append((service_asked.absolute({"folder": path}, "folder"), what))
    return checked


def _roots(args: Dict[str, Any]) -> Iterator[Removal]:
    for path, what in _asked(args):
        if _made_here(path, what):
            yield path, what, functools.partial(_taken_away, path, what is CACHE)
    if system.user() == 0:
        if packages.policy_left():
            yield packages.POLICY, _POLICY, _policy_off
        for name in installed.names():
            path = os.path.join(installed.FOLDER, name)
            yield path, INSTALLED, functools.partial(_unlinked, path)
        if installed.empty():
            yield (
                installed.FOLDER,
                "the folder of installed agents",
                functools.partial(os.rmdir, installed.FOLDER),
            )


def _policy_off() -> None:
    packages.policy_off()


def _taken_away(path: str, cache: bool) -> None:
    if cache:
        grounds.remove_cache(path)
    else:  # it may still run, where its lease was lost
        service.undo({"kind": "service", "folder": path, "about": grounds.known(path)})
    if os.path.lexists(path):
        raise protocol.Refused("failed", "it is still there", path)


def _drop_ours(folder: str) -> None:
    """Remove an empty folder of ours above what was removed."""
    if "branchlab" in os.path.basename(folder):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _unlinked(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    _drop_ours(os.path.dirname(path))


def _emptied(path: str) -> None:
    shutil.rmtree(path)
    _drop_ours(os.path.dirname(path))


def _mine(path: str, kind: Callable[[int], bool]) -> bool:
    """True if `path` is of this kind itself, not by a link, and of this user."""
    try:
        seen = os.lstat(path)
    except OSError:
        return False
    return kind(seen.st_mode) and (seen.st_uid == system.user() or not system.POSIX)


def _filled(folder: str) -> bool:
    try:
        return bool(os.listdir(folder))
    except OSError:
        return False


def _entry(path: str, what: str, there: bool) -> Dict[str, Any]:
    return {"path": path, "what": what, "there": there}
