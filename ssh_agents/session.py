"""Leases of one agent, and what earlier sessions left: whatever was changed on a host is taken back."""

import collections
import contextlib
import json
import os
import secrets
import threading
import time
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

from ssh_agents import account, past, private, protocol, strays, system, tool, watch
from ssh_agents import lease as leases
from ssh_agents.lease import Lease, Tell, Undo
from ssh_agents.memory import Entry, Memory

_LASTING = ("scratch", "packages")
"""Kinds of promises that outlive a restart: a folder is still there, and nobody else's."""
LONGEST_S = 600.0
"""A lease is no longer: whoever goes away without a word is not missed longer than this."""
WATCHERS_S = 2.0
"""So long after a lease's end an agent that lives looks itself whether everything was taken back."""
_HURTING = ("line", "traffic")
"""Kinds of strays that are taken away before a lease begins; folders are left to `revert`."""
Strays = Callable[[], List[strays.Stray]]
_LAPSED = "the lease ran out or was never opened; what was changed under it has been taken back"


class Session:
    """The leases of one agent: at most one at a time. Its methods are verbs, called from many threads.

    `lapsed` is called, from a thread, when a lease ended that this agent did not give back. `unpromised` finds
    what no lease promises to take back any more.
    """

    def __init__(
        self, how: Undo, lapsed: Callable[[], None] = lambda: None, unpromised: Strays = list
    ) -> None:
        self._how = how
        self._unpromised = unpromised
        self._on_lapse = lapsed
        self._guard = threading.Lock()
        self._memory: Optional[Memory] = None
        self._held = -1
        self._lease_s = 0.0
        self._owner: account.Owner = {}
        self._news: Deque[Dict[str, Any]] = collections.deque()

    @property
    def _lease(self) -> Optional[Lease]:
        return None if self._memory is None else self._memory.lease

    def open(self, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
        """Begin a lease of `lease_s` seconds for `owner`, watched before this returns.

        What dead sessions left is taken back first, and a line and counters that nobody promises any more are
        taken away; each is told. Refuses with `busy`, saying who has it, while a living lease of another session
        is on this host; with `failed` if what was left cannot be taken back.
        """
        lease_s = protocol.need(args, "lease_s", float, 30.0)
        owner = account.owner(args)
        if not 0.2 <= lease_s <= LONGEST_S:
            raise protocol.Refused(
                "bad-request", "a lease is 0.2 to %g seconds, not %r" % (LONGEST_S, lease_s)
            )
        with self._guard:
            if self._alive():
                raise protocol.Refused("busy", "this session holds a lease already")
            self._owner = owner
            with leases.gate():
                _refuse_if_held(owner)
                self._take_back_the_dead()
                lease = _made(lease_s)
                self._forget()
                self._held = lease.hold()
                memory = self._memory = Memory(lease, self._how)
                self._lease_s = lease_s
                # Only now does it count as a lease: before, its agent would have looked dead.
                leases.write(lease.path("lease.json"), _about(lease_s, owner))
            try:
                watch.started(lease)
            except BaseException:
                self._forget()
                lease.remove()
                raise
            threading.Thread(target=self._notice_the_end, args=(memory,), daemon=True).start()
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
                try:
                    lease.renew(self._lease_s)
                except OSError as error:
                    raise _not_written(error) from error
            if not lease.lasts:  # stopped amid this, for so long that it was taken back
                raise protocol.Refused("lapsed", _LAPSED)
            if not watch.lives(lease):
                watch.started(lease)
            return {"lease": lease.name, "left_s": self._lease_s}

    def close(self, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
        """Take everything back, newest first, and say what. Refuses: `lapsed`; `failed` if undoing failed."""
        with self._guard:
            return {"undone": self._close(self._mine(args))}

    def listed(self, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
        """Every lease on this host and what was promised under it, also what dead sessions left.

        `unpromised` has what is there of ours without a promise, as {kind, what}.
        """
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
                    "alive": lease.alive,
                    "earlier_boot": about.get("boot_id") != boot,
                    "who": account.who(account.owner_of(lease)),
                    "held": account.held(lease),
                    "what": [account.promised(entry) for _, entry in lease.entries()],
                    "pid": about.get("pid"),
                    "left_s": round(lease.left_s(), 3),
                    "entries": [entry for _, entry in lease.entries()],
                }
            )
        return {
            "leases": found,
            "unpromised": [{"kind": one.kind, "what": one.what} for one in self._unpromised()],
        }

    def revert(self, args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
        """Take back what any session left on this host, promised or not; twice in a row is fine.

        `earlier`, if there is any, is what watchers took back before, with the time, since this was last asked.
        Refuses with `busy`, saying who has it, if a living session of someone else does, unless `force`.
        """
        owner, force = account.owner(args), protocol.need(args, "force", bool, False)
        with self._guard, leases.gate():
            if not force:
                _refuse_if_held(self._owner if self._alive() else owner)
            tell = self._telling(owner if any(owner.values()) else self._owner)
            undone, failed = _all_undone(self._how, leases.every(), tell)
            self._forget()
            more, trouble = _taken_away(self._unpromised(), tell)
            undone, failed = undone + more, failed + trouble
        if failed:
            raise protocol.Refused("failed", "; ".join(failed), "; ".join(undone))
        return past.told({"undone": undone})

    def promises(self) -> "Promises":
        """For one request: what it promises, and whether that still holds once the change was made."""
        return Promises(self)

    def promise(self, entry: Entry) -> str:
        """See `protocol.Call.promise`. An entry with "exclusive" is refused (`busy`) while another living
        session holds a promise of the same kind on this host."""
        return self.promised(entry)[1]

    def promised(self, entry: Entry) -> Tuple[Memory, str]:
        """The same, with the memory that keeps it."""
        if entry.get("kind") not in self._how:
            raise protocol.Refused("defect", "no undo for an entry of kind %r" % (entry.get("kind"),))
        with self._guard:
            memory = self._memory
            if memory is None:
                raise protocol.Refused("lapsed", "no lease is open: nothing may be changed on this host")
            lease = memory.lease
            with lease.turn():
                if not self._alive():
                    raise protocol.Refused("lapsed", _LAPSED)
                if entry.get("exclusive"):
                    _refuse_if_busy(lease, str(entry["kind"]))
                known = {one for one, _ in lease.entries()}
                try:
                    name = lease.add(entry)
                except OSError as error:
                    raise _not_written(error) from error
            if not lease.lasts:  # stopped amid this, for so long that it was taken back
                raise protocol.Refused("lapsed", _LAPSED)
            memory.add(entry)
            if name not in known:
                self._tell(lease.name, account.promised(entry), undone=False)
            return memory, name

    def keep(self, name: str) -> None:
        """See `protocol.Call.keep`."""
        with self._guard:
            if self._memory is not None:
                lease = self._memory.lease
                struck = dict(lease.entries()).get(name)
                lease.strike(name)
                if struck is not None:
                    self._memory.strike(struck)
                    self._tell(lease.name, account.promised(struck), undone=True)

    def asked_again(self, memory: Memory, made: List[Entry]) -> None:
        """Refuses with `lapsed` if the lease ended while changes were made, once they are taken back.

        Whoever is stopped between promise and change, and goes on much later, makes a change that nobody would
        take back: watcher and lease are gone by then.
        """
        with memory.lease.turn():
            if memory.lease.lasts:
                return
        done, failed = self._undone_from(memory, made)
        if failed:
            raise protocol.Refused("failed", "the lease ended meanwhile, and %s" % "; ".join(failed))
        raise protocol.Refused("lapsed", _LAPSED, "; ".join(done))

    def tell(self, what: str) -> None:
        """See `protocol.Call.tell`. The journal is not waited for: a trial is being prepared meanwhile."""
        lease = self._lease
        text = account.line(what)
        self._news.append({"what": text, "undone": False})
        line = "%s: %s [%s]" % (account.who(self._owner), text, "no lease" if lease is None else lease.name)
        threading.Thread(target=leases.journal, args=(line,)).start()

    def news(self) -> List[Dict[str, Any]]:
        """What was changed on this host, and taken back, since this was last asked: {what, undone}."""
        told: List[Dict[str, Any]] = []
        with contextlib.suppress(IndexError):
            while True:
                told.append(self._news.popleft())
        return told

    def end(self) -> None:
        """The session ends: take everything back. What fails is left to the watcher, which sees the end."""
        with self._guard:
            if self._memory is not None and self._alive():
                with contextlib.suppress(protocol.Refused):
                    past.noted(self._close(self._memory.lease))  # nobody is there any more to be told
            elif self._memory is not None:
                past.noted(self._undone_from(self._memory)[0])

    def _alive(self) -> bool:
        return self._lease is not None and self._lease.lasts

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
                raise protocol.Refused("lapsed", _LAPSED)
            done, failed = lease.undo(self._how, self._telling(self._owner, lease.name))
            if failed:
                # The folder stays, so that the watcher tries again when this agent has gone.
                raise protocol.Refused("failed", "; ".join(failed), "; ".join(done))
            watcher = watch.found(lease)
            lease.remove()
        self._forget()
        watch.ended(watcher)
        if not system.POSIX:
            lease.remove()  # what was open could not be removed
        return done

    def _take_back_the_dead(self) -> None:
        """What cannot be put back must not be built on."""
        failed = [] if self._memory is None else self._undone_from(self._memory)[1]
        tell = self._telling(self._owner)
        dead = [lease for lease in leases.every() if not lease.alive]
        failed += _all_undone(self._how, dead, tell)[1]
        if not failed:
            failed = _taken_away([one for one in self._unpromised() if one.kind in _HURTING], tell)[1]
        if failed:
            text = "an earlier session left changes that cannot be taken back: %s" % "; ".join(failed)
            raise protocol.Refused("failed", text, "to take them back")

    def _notice_the_end(self, memory: Memory) -> None:
        while memory.lease.lasts:
            time.sleep(watch.LOOK_S)
        with self._guard:
            given_back = self._memory is not memory
        if given_back:
            return
        self._on_lapse()
        for _ in range(3):
            # The watcher has done it by now, unless it was stopped, or the lease's folder was removed by hand.
            time.sleep(WATCHERS_S)
            if not self._undone_from(memory)[1]:
                return

    def _undone_from(self, memory: Memory, surely: Sequence[Entry] = ()) -> Tuple[List[str], List[str]]:
        return memory.taken_back(self._telling(self._owner, memory.lease.name), surely)

    def _tell(self, name: str, what: str, undone: bool) -> None:
        text = "taken back: " + what if undone else what
        leases.journal("%s: %s [%s]" % (account.who(self._owner), text, name))
        self._news.append({"what": what, "undone": undone})

    def _telling(self, by: account.Owner, name: str = "left by an earlier session") -> Tell:
        def tell(entry: Dict[str, Any], said: str) -> None:
            leases.journal("%s: %s [%s]" % (account.who(by), said or watch.gone(entry), name))
            self._news.append({"what": said or account.promised(entry), "undone": True})

        return tell

    def _forget(self) -> None:
        if self._held >= 0:
            os.close(self._held)
        self._memory, self._held = None, -1


class Promises:
    """What one request promises, so that its lease is asked once more after the change."""

    def __init__(self, of: Session) -> None:
        self._of = of
        self._made: List[Tuple[Memory, str, Entry]] = []

    def promise(self, entry: Entry) -> str:
        """See `protocol.Call.promise`."""
        memory, name = self._of.promised(entry)
        self._made.append((memory, name, entry))
        return name

    def keep(self, name: str) -> None:
        """See `protocol.Call.keep`."""
        self._of.keep(name)
        self._made = [one for one in self._made if one[1] != name]

    def asked_again(self) -> None:
        """See `Session.asked_again`; nothing where nothing was promised."""
        if self._made:
            memory = self._made[-1][0]
            self._of.asked_again(memory, [entry for of, _, entry in self._made if of is memory])


def _not_written(error: OSError) -> protocol.Refused:
    if isinstance(error, FileNotFoundError):  # the folder went while this agent was stopped
        return protocol.Refused("lapsed", _LAPSED)
    return protocol.Refused(
        "failed", "nothing can be promised on this host's disk: %s" % error.strerror, "write"
    )


def undo_all(how: Undo, unpromised: Strays = list) -> int:
    """Take back what any session left on this host; prints what. 1 if something could not be taken back."""

    def tell(entry: Dict[str, Any], said: str) -> None:
        watch.journal(said or watch.gone(entry), "undo")

    undone, failed = _all_undone(how, leases.every(), tell)
    more, trouble = _taken_away(unpromised(), tell)
    undone, failed = undone + more, failed + trouble
    for text in undone + failed:
        print(text)
    return 1 if failed else 0


def _all_undone(how: Undo, left: List[Lease], tell: Tell) -> "tuple[List[str], List[str]]":
    undone: List[str] = []
    failed: List[str] = []
    boot = leases.boot_id()
    for lease in left:
        with lease.turn():
            if lease.gone:
                continue
            if lease.about().get("boot_id") != boot:
                # Devices and processes of those names are others' now.
                forgotten = _struck(lease)
                done, problems = lease.undo(how, tell)
                undone, failed = undone + done, failed + problems
                if problems:
                    continue
                text = "%s is of an earlier boot (%s): forgotten, not replayed" % (lease.name, forgotten)
                tell({"kind": "lease", "what": text}, text)
                undone.append(text)
                lease.remove()
                continue
            lease.end_tools()
            done, problems = lease.undo(how, tell)
            undone, failed = undone + done, failed + problems
            if problems:
                continue
            watcher = watch.found(lease)
            lease.remove()
        watch.ended(watcher)
    return undone, failed


def _struck(lease: Lease) -> str:
    """Strike out what ended with its boot; the kinds of that, in words."""
    ended = [(name, str(entry.get("kind"))) for name, entry in lease.entries()]
    ended = [(name, kind) for name, kind in ended if kind not in _LASTING]
    for name, _ in ended:
        lease.strike(name)
    return ", ".join(sorted({kind for _, kind in ended})) or "nothing else"


def _taken_away(found: List[strays.Stray], tell: Tell) -> "tuple[List[str], List[str]]":
    undone: List[str] = []
    failed: List[str] = []
    for one in found:
        try:
            said = one.remove()
        except Exception as error:  # noqa: BLE001 - one that fails must not keep the others from going
            failed.append("%s could not be taken away: %s" % (one.what, getattr(error, "text", repr(error))))
            continue
        if said:
            tell({"kind": one.kind, "what": one.what}, said)
            undone.append(said)
    return undone, failed


def _refuse_if_held(by: account.Owner) -> None:
    """By one who is not of the same session: its own two agents, and a host that it names twice, may."""
    for lease in leases.every():
        if lease.alive and account.owner_of(lease).get("session", "") != by.get("session", ""):
            raise protocol.Refused("busy", "this host is held by %s" % account.held(lease), lease.name)


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
    leases.write(lease.path("turn"), "")
    lease.renew(lease_s)
    return lease


def _about(lease_s: float, owner: account.Owner) -> str:
    return json.dumps(
        {
            "owner": owner,
            "since": account.now(),
            "boot_id": leases.boot_id(),
            "net": private.net_namespace(),
            "pid": os.getpid(),
            "pid_start": leases.started_at(os.getpid()),
            "opened": leases.now(),
            "lease_s": lease_s,
            "tools": tool.MARK,
        }
    )
