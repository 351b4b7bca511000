"""The folder of one lease on disk: who holds it, until when, and how each change is taken back.

lease.json   who opened it, for what, when, on which boot and network
deadline     seconds on CLOCK_BOOTTIME (a host that slept counts); rewritten in place by a renewal
held         locked by the agent for as long as it lives, however it ends
turn         locked by whoever looks at or changes what is promised
watching     the watcher's process number and start
lapsed       there once the watcher began to undo
NNNNNN.json  one promise: how a change is taken back
"""

import contextlib
import json
import os
import shutil
import subprocess
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ssh_agents import clock, private, system, tool

Undo = Dict[str, Callable[[Dict[str, Any]], str]]
"""By kind of entry, what takes it back and says so in words; nothing if there was nothing to take back."""
Tell = Callable[[Dict[str, Any], str], None]
"""Told of an entry that was taken back, and of its undo's words."""

PREFIX = "lease-"
LATE_S, LONGEST_S = 1.0, 10.0
"""Who has a turn may be stopped for ever: past the deadline it is waited for so long, and so long at all."""
_POLL_S = 0.01


def now() -> float:
    """Seconds since boot, sleep included."""
    return clock.boottime()


def boot_id() -> str:
    """This boot's identity; empty where the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def started_at(pid: int) -> Optional[int]:
    """See `system.started_at`."""
    return system.started_at(pid)


def write(path: str, text: str) -> None:
    """Write a file so that after a crash it is there whole or not at all."""
    with open(path + ".new", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    if not system.POSIX:
        return  # no folder can be opened there
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Lease:
    """One lease folder, from whichever process looks at it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.name = os.path.basename(folder)

    def path(self, name: str) -> str:
        """A file of this lease."""
        return os.path.join(self.folder, name)

    def about(self) -> Dict[str, Any]:
        """Who opened it, when and where; empty once it is gone."""
        try:
            with open(self.path("lease.json")) as file:
                found = json.load(file)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def gone(self) -> bool:
        """True once everything was taken back and the folder removed."""
        return not os.path.exists(self.path("lease.json"))

    @property
    def lapsed(self) -> bool:
        """True once the watcher began to undo."""
        return os.path.exists(self.path("lapsed"))

    def left_s(self) -> float:
        """Seconds until the deadline; zero or less once it has passed."""
        try:
            with open(self.path("deadline")) as file:
                return float(file.read()) - now()
        except (OSError, ValueError):
            return 0.0

    def renew(self, lease_s: float) -> None:
        """Put the deadline off. In place and of fixed width, so that a reader sees the old or the new one."""
        handle = os.open(self.path("deadline"), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, b"%020.6f\n" % (now() + lease_s))
        finally:
            os.close(handle)

    def hold(self) -> int:
        """Lock it as its agent, for as long as the returned descriptor is open."""
        handle = os.open(self.path("held"), os.O_RDWR | os.O_CREAT, 0o600)
        system.lock(handle)
        return handle

    def agent_lives(self) -> bool:
        """True while the agent that opened it runs."""
        try:
            handle = _opened(self.path("held"))
        except OSError:
            return False
        try:
            system.lock(handle, shared=True, wait=False)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    @property
    def lasts(self) -> bool:
        """True while what is promised under it stays: renewed in time, and nobody took anything back."""
        return not self.gone and not self.lapsed and self.left_s() > 0

    @property
    def alive(self) -> bool:
        """True while its agent runs and renews it."""
        return self.lasts and self.agent_lives()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Nobody else promises, renews or undoes meanwhile, unless whoever has the turn hangs (see `LATE_S`).

        So who promised or changed anything asks once more whether the lease lasts, and undoing twice does no harm.
        """
        try:
            handle = _opened(self.path("turn"))  # never made here: the folder may be going
        except FileNotFoundError:
            yield  # the folder is gone, and with it what there was to guard
            return
        try:
            locked(handle, lambda: self.left_s() <= 0)
            yield
        finally:
            os.close(handle)

    def lapse(self) -> None:
        """Say that undoing begins. Where that cannot be written (no room, read-only), undoing begins all the same."""
        with contextlib.suppress(OSError):
            os.close(os.open(self.path("lapsed"), os.O_WRONLY | os.O_CREAT, 0o600))

    def entries(self) -> List[Tuple[str, Dict[str, Any]]]:
        """Promises by name, oldest first."""
        return [(name, entry) for name, entry in self._notes() if entry is not None]

    def unreadable(self) -> List[str]:
        """The names of promises that cannot be read; whoever wrote there was none of us."""
        return [name for name, entry in self._notes() if entry is None]

    def _notes(self) -> List[Tuple[str, Optional[Dict[str, Any]]]]:
        found: List[Tuple[str, Optional[Dict[str, Any]]]] = []
        try:
            names = sorted(os.listdir(self.folder))
        except OSError:
            return found
        for name in names:
            if name[:6].isdigit() and name.endswith(".json"):
                try:
                    with open(self.path(name)) as file:
                        entry = json.load(file)
                except FileNotFoundError:
                    continue  # struck out meanwhile
                except (OSError, ValueError):
                    entry = None
                found.append((name[:-5], entry if isinstance(entry, dict) else None))
        return found

    def add(self, entry: Dict[str, Any]) -> str:
        """Write a promise down, surely, before returning its name. The same promise twice is one."""
        entries = self.entries()
        for name, known in entries:
            if known == entry:
                return name
        name = "%06d" % (int(entries[-1][0]) + 1 if entries else 1)
        write(self.path(name + ".json"), json.dumps(entry))
        return name

    def strike(self, name: str) -> None:
        """Strike a promise out; nothing happens if it is not there, or cannot be: it is undone once more then."""
        if name.isdigit():
            with contextlib.suppress(OSError):
                os.unlink(self.path(name + ".json"))

    def undo(
        self, how: Undo, tell: Tell, remembered: Sequence[Dict[str, Any]] = ()
    ) -> Tuple[List[str], List[str]]:
        """Take every promise back, newest first; what was taken back, and what could not be.

        Those on disk, and before them those `remembered` that are not there any more. `tell` is called for each
        with what its undo said (nothing: there was nothing left to take back). A promise that cannot be read is struck
        out and told: what it was about is then promised by nobody, and found by `strays`.
        """
        done: List[str] = []
        failed: List[str] = []
        there = self.entries()
        on_disk = [entry for _, entry in there]
        lost = [("", entry) for entry in remembered if entry not in on_disk]
        for name, entry in reversed(lost + there):
            kind = str(entry.get("kind"))
            if kind not in how:
                text = "a change of kind `%s` is not known to this BranchLab: a newer one made it and can take it back"
                failed.append("%s (%s)" % (text % kind, self.path(name + ".json")))
                continue
            try:
                said = how[kind](entry)
            except Exception as error:  # noqa: BLE001 - one that fails must not keep the others from being undone
                failed.append("%s could not be taken back: %s" % (kind, getattr(error, "text", repr(error))))
                continue
            self.strike(name)
            tell(entry, said)
            if said:
                done.append(said)
        for name in self.unreadable():
            text = "a note of %s could not be read and is struck out (%s)" % (self.name, name + ".json")
            self.strike(name)
            tell({"kind": "lease", "what": text}, text)
            done.append(text)
        return done, failed

    def end_tools(self) -> None:
        """End the tools that its agent had begun to run: nothing is changed by them after an undo."""
        tool.end_those_of(str(self.about().get("tools", "")))

    def remove(self) -> None:
        """Remove the folder; first the file by which it counts as a lease."""
        with contextlib.suppress(OSError):
            os.unlink(self.path("lease.json"))
        shutil.rmtree(self.folder, ignore_errors=True)


def every() -> List[Lease]:
    """All leases on this host that are about the network which this process sees, or of an earlier boot."""
    here, boot = private.net_namespace(), boot_id()
    kept = []
    for lease in everywhere():
        about = lease.about()
        # The number of a network means nothing after a reboot.
        if about.get("net") == here or about.get("boot_id") != boot:
            kept.append(lease)
    return kept


def everywhere() -> List[Lease]:
    """All leases of this user on this machine, whatever network they are about."""
    return [lease for lease in _folders() if lease.about()]


def broken() -> List[Lease]:
    """Those of which nothing says any more who opened them, for what, and which no agent holds."""
    return [lease for lease in _folders() if not (lease.gone or lease.about() or lease.agent_lives())]


def _folders() -> List[Lease]:
    base = private.folder()
    return [Lease(os.path.join(base, name)) for name in sorted(os.listdir(base)) if name.startswith(PREFIX)]


def locked(handle: int, late: Callable[[], bool] = lambda: False) -> bool:
    """Lock an open file; False where that took too long: for `LATE_S` while it is `late`, for `LONGEST_S` at all."""
    waited = past = 0.0
    while waited < LONGEST_S and past < LATE_S:
        try:
            system.lock(handle, wait=False)
        except OSError:
            # Counted, not looked up: who was stopped meanwhile has not waited.
            time.sleep(_POLL_S)
            waited += _POLL_S
            past += _POLL_S if late() else 0.0
        else:
            return True
    return False


def _opened(path: str) -> int:
    """A file to be locked; also where its file system has become read-only."""
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        raise
    except OSError:
        return os.open(path, os.O_RDONLY)


@contextlib.contextmanager
def gate() -> Iterator[None]:
    """No other session of this user looks who is there, or comes, meanwhile, unless one of them hangs."""
    if system.POSIX:
        handle = os.open(private.folder(), os.O_RDONLY)
    else:
        handle = os.open(os.path.join(private.folder(), "gate"), os.O_RDWR | os.O_CREAT)
    try:
        locked(handle)
        yield
    finally:
        os.close(handle)


def journal(text: str) -> None:
    """Write to the system's log, where there is one. Never fails: what was undone is undone."""
    path = tool.found("logger")
    if path is None:
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [path, "-t", "branchlab", "--", text],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=2,
            check=False,
            creationflags=system.quiet_flags(),
        )
