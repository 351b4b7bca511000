"""Missing packages installed by the host's own package manager, kept a record of, and taken away again.

What may be installed comes from a fixed table; a request names needs (`svn`, `nft`), never packages or options.
"""

import contextlib
import glob
import json
import os
import re
import stat
import subprocess
import threading
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ssh_agents import package_names, protocol, system, tool
from ssh_agents.package_names import Manager

PROGRAMS: Dict[str, Tuple[str, ...]] = {
    "svn": ("svn",),
    "svnadmin": ("svnadmin",),
    "apache2": ("apache2", "httpd"),
    "tc": ("tc",),
    "nft": ("nft", "iptables-restore"),  # which counts too where there is no nft
    "squid": ("squid",),
    "nginx": ("nginx",),
    "wirefilter": ("wirefilter",),
}
DAV_SVN = (
    "/usr/lib/apache2/modules/mod_dav_svn.so",
    "/usr/lib*/httpd/modules/mod_dav_svn.so",
    "/usr/lib*/apache2*/mod_dav_svn.so",
)
RECORD = "/var/lib/branchlab/packages.json"
"""Which packages BranchLab installed here: kept until they are taken away, also over reboots."""
POLICY = "/usr/sbin/policy-rc.d"
POLICY_TEXT = (
    "#!/bin/sh\n# BranchLab, while it installs packages: none of their services is started.\nexit 101\n"
)
"""Asked by Debian's maintainer scripts before they start a service; 101 forbids it (invoke-rc.d(8))."""
DAEMONS = ("nginx", "squid")
"""Packages whose own service Debian would start at the next boot; BranchLab starts instances of its own."""
MODULES = ("/etc/apache2/mods-enabled/*", "/etc/apache2/conf-enabled/*")
DPKG_LOCK = "/var/lib/dpkg/lock-frontend"
NEEDED_BY = re.compile(
    r"dependency problems|needed by|required by|breaks dependency|depends on", re.IGNORECASE
)
"""What package managers say where another package needs one that is to go."""
WAIT_S = 120.0
LOST_S = 600.0
LIMIT_S = 1800.0
NOT_LINUX = "packages can be installed on Linux only"


def look(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `packages.look`: of these `needs`, which are `missing`, and the `commands` that would install them.

    `all` are the packages that hold any of the needs, `packages` those of what is missing. `manager` is null
    where none of those known is here; `unknown` are needs that it has no package for. `ours` are the packages
    that BranchLab installed before. Changes nothing.
    """
    missing = [need for need in _needs(args) if not there(need)]
    manager = _manager()
    wanted = package_names.packages(manager, missing) if manager else []
    return {
        "manager": manager.name if manager else None,
        "missing": missing,
        "unknown": [need for need in missing if manager is None or need not in manager.packages],
        "packages": wanted,
        "all": package_names.packages(manager, _needs(args)) if manager else [],
        "commands": [list(argv) for argv in _commands(manager, wanted)] if manager and wanted else [],
        "ours": recorded(),
    }


def install(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `packages.install`: install what is missing of these `needs`; no service of theirs is started.

    Events `output` {text} while it goes. It is not cut short by cancelling, since that would leave packages
    half installed. Returns `installed`: what came for it, dependencies too. Idempotent.
    """
    _refuse_elsewhere()
    missing = [need for need in _needs(args) if not there(need)]
    if not missing:
        return {"installed": []}
    manager = _known_manager()
    unknown = [need for need in missing if need not in manager.packages]
    if unknown:
        raise protocol.Refused(
            "missing", "%s has no package for %s" % (manager.name, ", ".join(unknown)), manager.name
        )
    wanted = package_names.packages(manager, missing)
    if manager.refresh:
        _refreshed(manager, call)
    # Others may install at the same time: only what ours would bring can have come by it.
    brings = sorted({*wanted, *_simulated(manager, wanted)})
    work = {"manager": manager.name, "brings": brings, "before": _installed(manager), "modules": _modules()}
    words = "packages being installed, their services kept from starting: %s" % ", ".join(wanted)
    promise = call.promise({"kind": "packages", "what": words, "names": ", ".join(wanted), **work})
    try:
        with _no_services(manager):
            _run((*manager.install, *wanted), call)
    finally:
        came = _settled(work)
        call.keep(promise)
    still = [need for need in missing if not there(need)]
    if still:
        raise protocol.Refused(
            "failed", "installed, and still not there: %s" % ", ".join(still), "; ".join(wanted)
        )
    return {"installed": came}


def remove(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `packages.remove`: take away what BranchLab installed; what something else needs by now stays.

    Returns `removed`, `kept` and `why` (what the package manager said of those kept). Idempotent. Refuses with
    `failed` where the manager could not do it for another reason; what is left is known as ours for the next time.
    """
    ours = recorded()
    if not ours:
        return {"removed": [], "kept": [], "why": ""}
    manager = _known_manager()
    here = [name for name in ours if name in _installed(manager)]
    why = ""
    if here:
        _wait_for_others(manager, WAIT_S)
        words = "packages being removed: %s" % ", ".join(here)
        promise = call.promise({"kind": "packages", "what": words})
        with _no_services(manager):  # nor is a service of somebody's restarted for it
            why = _removed_together(manager, here, call)
        call.keep(promise)
    left = [name for name in here if name in _installed(manager)]
    if left and not NEEDED_BY.search(why):
        _record(left)
        raise protocol.Refused(
            "failed", "not removed: %s: %s" % (", ".join(left), why), " ".join(manager.remove)
        )
    _record([])  # what stays is needed by somebody else's from now on
    return {"removed": [name for name in here if name not in left], "kept": left, "why": why}


def undo(entry: Dict[str, Any]) -> str:
    """Undo kind `packages`: where the agent was lost amid the work, wait for the package manager's end, keep the
    record, and only then let services be started again. The packages stay until `packages.remove`."""
    if "before" not in entry:
        _policy_off()
        return ""
    manager = next(one for one in package_names.MANAGERS if one.name == entry["manager"])
    with contextlib.suppress(protocol.Refused):
        _wait_for_others(manager, LOST_S)
    with contextlib.suppress(protocol.Refused):
        _settled(entry)
    _policy_off()
    return "packages stay until provisioning is taken back: %s" % entry.get("names")


def _settled(work: Dict[str, Any]) -> List[str]:
    """After installing, whatever came of it: what is ours is recorded, switched off at boot, and not in the system's
    own Apache. Returns what came."""
    manager = next(one for one in package_names.MANAGERS if one.name == work["manager"])
    came = sorted((set(_installed(manager)) - set(work["before"])) & set(work["brings"]))
    _record(sorted({*recorded(), *came}))
    for path in set(_modules()) - set(work["modules"]):
        with contextlib.suppress(OSError):
            os.unlink(path)  # a link that the package's script made; a system's own Apache would load it
    if manager.name == "apt-get":
        for name in set(came) & set(DAEMONS):
            with contextlib.suppress(protocol.Refused):
                tool.run(["update-rc.d", name, "disable"], timeout_s=60.0)
    return came


def _refreshed(manager: Manager, call: protocol.Call) -> None:
    """One source that is out of reach is no reason not to try: what is needed may come from another."""
    try:
        _run(manager.refresh, call)
    except protocol.Refused as error:
        call.say("output", {"text": error.text})


def _simulated(manager: Manager, wanted: List[str]) -> List[str]:
    if not manager.simulate:
        return []
    return package_names.brought(manager, tool.run([*manager.simulate, *wanted], timeout_s=300.0))


def _modules() -> List[str]:
    """Links to modules and settings that the system's own Apache loads (Debian)."""
    return sorted(path for pattern in MODULES for path in glob.glob(pattern) if os.path.islink(path))


def _wait_for_others(manager: Manager, limit_s: float) -> None:
    """Until no other package manager is at work. Refuses with `busy` after `limit_s`."""
    if manager.name != "apt-get" or system.fcntl is None:
        return
    end = time.monotonic() + limit_s
    while _locked(DPKG_LOCK):
        if time.monotonic() > end:
            raise protocol.Refused("busy", "another package manager is at work here", DPKG_LOCK)
        time.sleep(0.5)


def _locked(path: str) -> bool:
    try:
        number = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        system.fcntl.lockf(number, system.fcntl.LOCK_EX | system.fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(number)
    return False


def there(need: str) -> bool:
    """True if this need is met on this host."""
    if need == "mod_dav_svn":
        return any(glob.glob(pattern) for pattern in DAV_SVN)
    return any(tool.found(name) for name in PROGRAMS[need])


def _needs(args: Dict[str, Any]) -> List[str]:
    needs = protocol.need_strings(args, "needs")
    for need in needs:
        if need not in package_names.NEEDS:
            raise protocol.Refused("bad-request", "no such need in the table: %r" % need)
    return needs


def _refuse_elsewhere() -> None:
    if not os.path.exists("/proc/self"):
        raise protocol.Refused("unsupported", NOT_LINUX)
    if system.user() != 0:
        raise protocol.Refused("denied", "only root can install packages here")


def _manager() -> Optional[Manager]:
    for manager in package_names.MANAGERS:
        if tool.found(manager.name):
            return manager
    return None


def _known_manager() -> Manager:
    manager = _manager()
    if manager is None:
        known = ", ".join(one.name for one in package_names.MANAGERS)
        raise protocol.Refused("missing", "no package manager that is known here: %s" % known, "PATH")
    return manager


def _commands(manager: Manager, wanted: List[str]) -> Iterator[Tuple[str, ...]]:
    if manager.refresh:
        yield manager.refresh
    yield (*manager.install, *wanted)


def _installed(manager: Manager) -> List[str]:
    return package_names.installed(manager, tool.run(list(manager.listing), timeout_s=120.0))


def _removed_together(manager: Manager, names: List[str], call: protocol.Call) -> str:
    """All at once, since they need each other; else one by one as far as it goes. What was said where it failed."""
    try:
        _run((*manager.remove, *names), call)
    except protocol.Refused as error:
        why = error.text
    else:
        return ""
    left = list(names)
    while True:  # a package goes once those that need it are gone
        before = len(left)
        for name in list(left):
            with contextlib.suppress(protocol.Refused):
                _run((*manager.remove, name), call)
                left.remove(name)
        if len(left) in (0, before):
            return why if left else ""


def _run(argv: Tuple[str, ...], call: protocol.Call) -> None:
    """Run a package manager to its end, told line by line. Refuses with its last words."""
    path = tool.found(argv[0])
    if path is None:
        raise protocol.Refused("missing", "%s is not installed on this host" % argv[0], " ".join(argv))
    said: List[str] = []
    with subprocess.Popen(
        [path, *argv[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**tool.environment(), "DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l"},
        start_new_session=True,  # a signal for the agent is none for a package manager amid its work
    ) as child:
        timer = threading.Timer(LIMIT_S, child.terminate)
        timer.daemon = True
        timer.start()
        for line in child.stdout or ():
            text = line.decode("utf-8", "replace").rstrip()
            said = [*said[-19:], text]
            call.say("output", {"text": text})
        status = child.wait()
        timer.cancel()
    if status:
        tail = " / ".join(line for line in said if line)[-1500:]
        raise protocol.Refused("failed", "%s ended with %d: %s" % (argv[0], status, tail), " ".join(argv))


@contextlib.contextmanager
def _no_services(manager: Manager) -> Iterator[None]:
    """Meanwhile Debian's packages start none of their services. Others do not start any by themselves."""
    # An administrator's own word stands; ours was left by an install that a power cut ended, and goes after this one.
    if manager.name != "apt-get" or (os.path.lexists(POLICY) and not _ours(POLICY)):
        yield
        return
    _policy_off()
    number = os.open(POLICY, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o755)
    with open(number, "w", encoding="utf-8") as file:
        file.write(POLICY_TEXT)
    try:
        yield
    finally:
        _policy_off()


def policy_left() -> str:
    """The file that keeps Debian's packages from starting services, where it is ours and no package manager works."""
    return POLICY if _ours(POLICY) and not (system.fcntl and _locked(DPKG_LOCK)) else ""


def policy_off() -> str:
    """Take it away, and say so. Nothing where it is an administrator's. Idempotent."""
    if not policy_left():
        return ""
    _policy_off()
    return "%s removed: packages start their services again" % POLICY


def _policy_off() -> None:
    if _ours(POLICY):
        os.unlink(POLICY)


def _ours(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(len(POLICY_TEXT) + 1) == POLICY_TEXT
    except (OSError, ValueError):
        return False


def recorded() -> List[str]:
    """The packages that BranchLab installed here and did not remove yet."""
    try:
        seen = os.lstat(RECORD)
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid not in (0, system.user()) or seen.st_mode & 0o022:
            return []
        with open(RECORD, encoding="utf-8") as file:
            names = json.load(file)["installed"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _record(names: List[str]) -> None:
    folder = os.path.dirname(RECORD)
    if not names:
        with contextlib.suppress(OSError):
            os.unlink(RECORD)
            os.rmdir(folder)
        return
    os.makedirs(folder, 0o755, exist_ok=True)
    partial = RECORD + ".new"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump({"installed": names}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, RECORD)
