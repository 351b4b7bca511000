"""What one agent promised under one lease, kept in memory as well: its own way to take that back.

Usually the watcher does. But a watcher can be stopped, a lease's folder removed by hand, a disk full; and an
agent that was stopped amid a change goes on with it after the lease was taken back and forgotten.
"""

import threading
from typing import Any, Dict, List, Sequence, Tuple

from ssh_agents import lease as leases
from ssh_agents.lease import Lease, Tell, Undo

Entry = Dict[str, Any]


class Memory:
    """The promises of one lease. Used from many threads."""

    def __init__(self, lease: Lease, how: Undo) -> None:
        self.lease = lease
        self._how = how
        self._entries: List[Entry] = []
        self._lock = threading.Lock()

    def add(self, entry: Entry) -> None:
        """Keep a promise in mind; the same promise twice is one."""
        if entry not in self._entries:
            self._entries.append(entry)

    def strike(self, entry: Entry) -> None:
        """Forget a promise; nothing happens if it is not known."""
        if entry in self._entries:
            self._entries.remove(entry)

    def taken_back(self, tell: Tell, surely: Sequence[Entry] = ()) -> Tuple[List[str], List[str]]:
        """Take everything back, newest first, and remove the lease: what was, and what could not be.

        What is promised by another living session by now is that one's, and stays; but not what is in `surely`,
        a change that was made a moment ago. `tell` hears only of what was there. Idempotent.
        """

        def heard(entry: Entry, said: str) -> None:
            if said:
                tell(entry, said)

        with self._lock, self.lease.turn():
            left = [entry for entry in self._entries if entry in surely or not self._anothers(entry)]
            left += [entry for entry in surely if entry not in left]
            done, failed = self.lease.undo(self._how, heard, left)
            if not failed:
                self._entries = []
                self.lease.remove()
        return done, failed

    def _anothers(self, entry: Entry) -> bool:
        return any(
            _same(entry, other)
            for lease in leases.every()
            if lease.name != self.lease.name and lease.alive
            for _, other in lease.entries()
        )


def _same(one: Entry, other: Entry) -> bool:
    """True if both promises are about the same thing on this host."""
    if one.get("kind") != other.get("kind"):
        return False
    place = [(entry.get("folder"), entry.get("path")) for entry in (one, other)]
    return bool(one.get("exclusive")) or one == other or (place[0] == place[1] != (None, None))
