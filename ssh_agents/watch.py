"""Leases and their watcher: whatever a session changed on a host is taken back, however the session ends."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Dict, List, Optional

from ssh_agents import lease as leases
from ssh_agents import private, protocol, tool
from ssh_agents.lease import Lease, Undo

LOOK_S = 0.2
"""How often the watcher looks, in seconds."""
AGAIN_S = 1.5
"""After a lapse the watcher undoes a second time so much later: a change may have been under way."""
_LAPSED = "the lease ran out or was never opened; what was changed under it has been taken back"


class Session:
    """The leases of one agent: at most one at a time. Its methods are verbs, called from many threads."""

    def __init__(self, how: Undo) -> None:
        self._how = how
        self._guard = threading.Lock()
        self._lease: Optional[Lease] = None
        self._held = -1
        self._lease_s = 0.0

    def open(self, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
        """Begin a lease of `lease_s` seconds, watched before this returns. Refuses, `busy`, if one is."""
        lease_s = protocol.need(args, "lease_s", float, 30.0)
        if not 0.2 <= lease_s <= 86_400:
            raise protocol.Refused("bad-request", "a lease is 0.2 to 86400 seconds, not %r" % lease_s)
        with self._guard:
            if self._alive():
                raise protocol.Refused("busy", "this session holds a lease already")
            self._forget()
            lease = _made(lease_s)
            self._held = lease.hold()
            self._lease, self._lease_s = lease, lease_s
            # Only now does it count as a lease: before, its agent would have looked dead.
            leases.write(lease.path("lease.json"), _about(lease_s))
            try:
                _watched(lease)
            except BaseException:
                self._forget()
                lease.remove()
                raise
            return {"lease": lease.name, "folder": lease.folder, "boot_id": leases.boot_id()}

    def renew(self, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
        """Put the deadline off by the lease's length. Refuses with `lapsed` once it has passed.

        A watcher that somebody has ended is replaced: an agent that ended without one would leave its changes.
        """
        with self._guard:
            lease = self._mine(args)
            with lease.turn():
                if not self._alive():
                    raise protocol.Refused("lapsed", _LAPSED)
                lease.renew(self._lease_s)
            if not _watcher_lives(lease):
                _watched(lease)
            return {"lease": lease.name, "left_s": self._lease_s}

    def close(self, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
        """Take everything back, newest first, and say what. Refuses: `lapsed`; `failed` if undoing failed."""
        with self._guard:
            return {"undone": self._close(self._mine(args))}

    def listed(self, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
        """Every lease on this host and what was promised under it, also what dead sessions left."""
        boot = leases.boot_id()
        mine = self._lease.name if self._lease is not None else ""
        found = []
        for lease in leases.every():
            about = lease.about()
            found.append(
                {
                    "lease": lease.name,
                    "folder": lease.folder,
                    "mine": lease.name == mine,
                    "alive": lease.agent_lives(),
                    "earlier_boot": about.get("boot_id") != boot,
                    "pid": about.get("pid"),
                    "left_s": round(lease.left_s(), 3),
                    "entries": [entry for _, entry in lease.entries()],
                }
            )
        return {"leases": found}

    def revert(self, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
        """Take back what any session left on this host, dead or alive; twice in a row is fine."""
        with self._guard:
            undone, failed = _all_undone(self._how)
            self._forget()
        if failed:
            raise protocol.Refused("failed", "; ".join(failed), "; ".join(undone))
        return {"undone": undone}

    def promise(self, entry: Dict[str, Any]) -> str:
        """See `protocol.Call.promise`. An entry with "exclusive" is refused (`busy`) while another living
        session holds a promise of the same kind on this host."""
        if entry.get("kind") not in self._how:
            raise protocol.Refused("defect", "no undo for an entry of kind %r" % (entry.get("kind"),))
        with self._guard:
            lease = self._lease
            if lease is None:
                raise protocol.Refused("lapsed", "no lease is open: nothing may be changed on this host")
            with lease.turn():
                if not self._alive():
                    raise protocol.Refused("lapsed", _LAPSED)
                if entry.get("exclusive"):
                    _refuse_if_busy(lease, str(entry["kind"]))
                return lease.add(entry)

    def keep(self, name: str) -> None:
        """See `protocol.Call.keep`."""
        with self._guard:
            if self._lease is not None:
                self._lease.strike(name)

    def end(self) -> None:
        """The session ends: take everything back. What fails is left to the watcher, which sees the end."""
        with self._guard:
            if self._lease is not None and self._alive():
                with contextlib.suppress(protocol.Refused):
                    self._close(self._lease)

    def _alive(self) -> bool:
        lease = self._lease
        return lease is not None and not lease.gone and not lease.lapsed and lease.left_s() > 0

    def _mine(self, args: Dict[str, Any]) -> Lease:
        name = protocol.need(args, "lease", str, "")
        if self._lease is None:
            raise protocol.Refused("lapsed", _LAPSED)
        if name and name != self._lease.name:
            raise protocol.Refused(
                "bad-request", "this session's lease is %s, not %r" % (self._lease.name, name)
            )
        return self._lease

    def _close(self, lease: Lease) -> List[str]:
        with lease.turn():
            if not self._alive():
                self._forget()
                raise protocol.Refused("lapsed", _LAPSED)
            done, failed = lease.undo(self._how)
            if failed:
                # The folder stays, so that the watcher tries again when this agent has gone.
                raise protocol.Refused("failed", "; ".join(failed), "; ".join(done))
            watcher = _watcher(lease)
            lease.remove()
        self._forget()
        _ended(watcher)
        return done

    def _forget(self) -> None:
        if self._held >= 0:
            os.close(self._held)
        self._lease, self._held = None, -1


def main(path: str, how: Undo) -> int:
    """The watcher of the lease file `path`. Returns when everything was taken back, by it or the agent."""
    # An agent starts it in a session of its own; one more fork, and nobody is its parent. A unit is so.
    if os.getppid() != 1 and os.fork():
        os._exit(0)
    os.chdir("/")
    os.umask(0o077)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    lease = Lease(os.path.dirname(os.path.abspath(path)))
    leases.write(lease.path("watching"), "%d %s\n" % (os.getpid(), leases.started_at(os.getpid())))
    while not lease.gone:
        if not lease.agent_lives():
            _take_back(lease, how, "its agent ended")
        elif lease.left_s() <= 0:
            _lapse(lease, how)
        else:
            time.sleep(LOOK_S)
    return 0


def undo_all(how: Undo) -> int:
    """Take back what any session left on this host; prints what. 1 if something could not be taken back."""
    undone, failed = _all_undone(how)
    for text in undone + failed:
        print(text)
    return 1 if failed else 0


def _lapse(lease: Lease, how: Undo) -> None:
    """Undo, and undo again: the agent lives, and may have been amid a change that it had promised."""
    with lease.turn():
        if lease.gone or lease.left_s() > 0:
            return  # renewed or closed at the last moment
        leases.write(lease.path("lapsed"), "")
        kept = lease.entries()
        done, _ = lease.undo(how)
        _journal_all(lease, done, "it was not renewed")
        time.sleep(AGAIN_S)
        for _, entry in kept:
            lease.add(entry)
    _take_back(lease, how, "it was not renewed")


def _take_back(lease: Lease, how: Undo, why: str) -> None:
    for attempt in range(4):
        with lease.turn():
            if lease.gone:
                return
            done, failed = lease.undo(how)
            if not failed:
                lease.remove()
        _journal_all(lease, done + failed, why)
        if not failed:
            return
        time.sleep(0.3 * (attempt + 1))
    # Kept on disk, and reported by `leases`, for `revert` to try once more.
    os._exit(1)


def _journal_all(lease: Lease, texts: List[str], why: str) -> None:
    for text in texts:
        leases.journal("%s: %s (%s)" % (lease.name, text, why))


def _all_undone(how: Undo) -> "tuple[List[str], List[str]]":
    undone: List[str] = []
    failed: List[str] = []
    boot = leases.boot_id()
    for lease in leases.every():
        with lease.turn():
            if lease.gone:
                continue
            if lease.about().get("boot_id") != boot:
                # Devices and processes of those names are others' now.
                kinds = (
                    ", ".join(sorted({str(entry.get("kind")) for _, entry in lease.entries()})) or "nothing"
                )
                undone.append("%s is of an earlier boot (%s): forgotten, not replayed" % (lease.name, kinds))
                lease.remove()
                continue
            done, problems = lease.undo(how)
            undone, failed = undone + done, failed + problems
            if problems:
                continue
            watcher = _watcher(lease)
            lease.remove()
        _ended(watcher)
    return undone, failed


def _refuse_if_busy(mine: Lease, kind: str) -> None:
    for lease in leases.every():
        if lease.name == mine.name or not any(entry.get("kind") == kind for _, entry in lease.entries()):
            continue
        if lease.agent_lives() and lease.left_s() > 0:
            pid = lease.about().get("pid")
            raise protocol.Refused(
                "busy", "another session (process %s) holds the %s of this host" % (pid, kind)
            )


def _made(lease_s: float) -> Lease:
    lease = Lease(os.path.join(private.folder(), leases.PREFIX + secrets.token_hex(6)))
    os.mkdir(lease.folder, 0o700)
    os.close(os.open(lease.path("turn"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    lease.renew(lease_s)
    return lease


def _about(lease_s: float) -> str:
    return json.dumps(
        {
            "boot_id": leases.boot_id(),
            "net": private.net_namespace(),
            "pid": os.getpid(),
            "pid_start": leases.started_at(os.getpid()),
            "opened": leases.now(),
            "lease_s": lease_s,
        }
    )


def _watched(lease: Lease) -> None:
    """Start the watcher and return once it watches. Refuses with `failed`."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(lease.path("watching"))
    argv = _watcher_argv(lease)
    if not (_systemd_rules() and _as_unit(lease, argv)):
        subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        ).wait(20)
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
    if os.geteuid() != 0 or not os.path.isdir("/run/systemd/system") or tool.found("systemd-run") is None:
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


def _watcher(lease: Lease) -> Optional["tuple[int, int]"]:
    try:
        with open(lease.path("watching")) as file:
            pid, start = file.read().split()
        return int(pid), int(start)
    except (OSError, ValueError):
        return None


def _watcher_lives(lease: Lease) -> bool:
    watcher = _watcher(lease)
    return watcher is not None and leases.started_at(watcher[0]) == watcher[1]


def _ended(watcher: Optional["tuple[int, int]"]) -> None:
    """End a watcher whose lease is gone; it would notice by itself within `LOOK_S`."""
    if watcher is None or watcher[0] == os.getpid():
        return
    pid, start = watcher
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if leases.started_at(pid) == start:
            os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 2
    while leases.started_at(pid) == start and time.monotonic() < end:
        time.sleep(0.005)
