"""The watcher of a lease: a process that outlives the session, and takes back what was changed when the session ends.

It lives outside the login session, with no more rights than the agent that started it.
"""

import contextlib
import os
import signal
import sys
import time
from typing import Any, Dict, List, Optional

from ssh_agents import account, past, protocol, system, tool
from ssh_agents import lease as leases
from ssh_agents.lease import Lease, Tell, Undo

LOOK_S = 0.2
"""How often the watcher looks, in seconds."""
AGAIN_S = 1.5
"""After a lapse the watcher undoes a second time so much later: a change may have been under way."""
_UNRENEWED = "it was not renewed"


def main(path: str, how: Undo) -> int:
    """The watcher of the lease file `path`. Returns when everything was taken back, by it or the agent."""
    if system.POSIX:
        _alone()
    told_to_end = False
    lease = Lease(os.path.dirname(os.path.abspath(path)))
    leases.write(lease.path("watching"), "%d %s\n" % (os.getpid(), leases.started_at(os.getpid())))
    while not lease.gone:
        why = ""
        if not lease.agent_lives():
            why = "its agent ended"
        elif told_to_end:
            why = "its watcher was told to end"
        elif lease.left_s() <= 0:
            why = _UNRENEWED
        if not why:
            told_to_end = _told_to_end(LOOK_S)
        elif _lapse(lease, how, why):
            break  # the lease is still there where nothing can be removed from its disk
    return 0


def _alone() -> None:
    """Nobody's child, and hard of hearing."""
    # An agent starts it in a session of its own; one more fork, and nobody is its parent. A unit is so.
    if os.getppid() != 1 and os.fork():
        os._exit(0)
    os.chdir("/")
    os.umask(0o077)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # A login session that ends may end all its processes: whoever ends the watcher ends the lease.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _told_to_end(within_s: float) -> bool:
    if not hasattr(signal, "sigtimedwait"):
        time.sleep(within_s)
        return False
    return signal.sigtimedwait({signal.SIGTERM}, within_s) is not None


def _lapse(lease: Lease, how: Undo, why: str) -> bool:
    """Undo at once, and undo again: the agent, or a tool that it had started, may have been amid a change.

    Nothing of it needs room on the disk. False if the lease was renewed or closed at the last moment.
    """
    with lease.turn():
        if lease.gone or (why == _UNRENEWED and lease.left_s() > 0):
            return False
        lease.lapse()
        kept = [entry for _, entry in lease.entries()]
        lease.end_tools()
        lease.undo(how, _watchers_tell(lease, why))
        time.sleep(AGAIN_S)
        for entry in kept:  # should this watcher be ended before the second time
            with contextlib.suppress(OSError):
                lease.add(entry)
    _take_back(lease, how, why, kept)
    return True


def _take_back(lease: Lease, how: Undo, why: str, kept: List[Dict[str, Any]]) -> None:
    # The second time is told only where there was something to take back.
    tell = _watchers_tell(lease, why, again=True)
    failed: List[str] = []
    for attempt in range(6):
        with lease.turn():
            if lease.gone:
                return
            lease.end_tools()
            _, failed = lease.undo(how, tell, kept)
            if not failed:
                lease.remove()
                return
        time.sleep(0.3 * (attempt + 1))
    for text in failed:
        journal(text, "%s, %s" % (lease.name, why))
    # Kept on disk, and reported by `leases`, for `revert` or the next session to try once more.
    os._exit(1)


def _watchers_tell(lease: Lease, why: str, again: bool = False) -> Tell:
    of = account.who(account.owner_of(lease))

    def tell(entry: Dict[str, Any], said: str) -> None:
        if said:
            past.note(said)
        if said or not again:
            journal("%s: %s" % (of, said or gone(entry)), "%s, %s" % (lease.name, why))

    return tell


def started(lease: Lease) -> None:
    """Start the watcher and return once it watches. Refuses with `failed`."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(lease.path("watching"))
    argv = _watcher_argv(lease)
    if not (_systemd_rules() and _as_unit(lease, argv)):
        started = system.started_apart(argv)
        if system.POSIX:
            started.wait(20)  # it forks, and its first process ends
    end = time.monotonic() + 20
    while not os.path.exists(lease.path("watching")):
        if time.monotonic() > end:
            raise protocol.Refused(
                "failed", "the watcher did not start: nothing may be changed", " ".join(argv[:4])
            )
        time.sleep(0.005)


def _watcher_argv(lease: Lease) -> List[str]:
    """The agent's own code once more: a copy that only this user can write, or the source tree in tests."""
    text = getattr(sys.modules.get("__main__"), "BUNDLE_TEXT", None)
    begin = [sys.executable or "python3", "-I", "-S"]
    if isinstance(text, (str, bytes)):
        copy = lease.path("agent.py")
        if not os.path.exists(copy):  # else it was made for an earlier watcher
            with open(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text.encode() if isinstance(text, str) else text)
        begin += [copy]
    else:
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        code = (
            "import sys; sys.path.insert(0, %r); from ssh_agents.__main__ import main; sys.exit(main())"
            % root
        )
        begin += ["-c", code]
    return [*begin, "watch", lease.path("lease.json")]


def _systemd_rules() -> bool:
    """True if a transient unit would see the same network, processes and files as this process."""
    if system.user() != 0 or not os.path.isdir("/run/systemd/system") or tool.found("systemd-run") is None:
        return False
    try:
        same = all(
            os.stat("/proc/1/ns/" + one).st_ino == os.stat("/proc/self/ns/" + one).st_ino
            for one in ("net", "mnt", "pid", "user")
        )
        with open("/proc/1/comm") as file:
            return same and file.read().strip() == "systemd"
    except OSError:
        return False


def _as_unit(lease: Lease, argv: List[str]) -> bool:
    try:
        tool.run(["systemd-run", "--quiet", "--collect", "--unit=branchlab-" + lease.name, "--", *argv])
    except protocol.Refused:
        return False
    return True


def found(lease: Lease) -> Optional["tuple[int, int]"]:
    """The process number and start of a lease's watcher; None if none has said that it watches."""
    try:
        with open(lease.path("watching")) as file:
            pid, start = file.read().split()
        return int(pid), int(start)
    except (OSError, ValueError):
        return None


def lives(lease: Lease) -> bool:
    """True while the watcher runs."""
    watcher = found(lease)
    return watcher is not None and leases.started_at(watcher[0]) == watcher[1]


def ended(watcher: Optional["tuple[int, int]"]) -> None:
    """End a watcher whose lease is gone; it would notice by itself within `LOOK_S`."""
    if watcher is None or watcher[0] == os.getpid():
        return
    pid, start = watcher
    with contextlib.suppress(OSError):
        if leases.started_at(pid) == start:
            os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 2
    while leases.started_at(pid) == start and time.monotonic() < end:
        time.sleep(0.005)


def journal(text: str, of: str) -> None:
    """One line for the system's log."""
    leases.journal("%s [%s]" % (text, of))


def gone(entry: Dict[str, Any]) -> str:
    """What is said of a promise when nothing was left to take back."""
    return "gone already: " + account.promised(entry)
