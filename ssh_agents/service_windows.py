"""Services of the lab on Windows, where they are one program only: Apache as the caching proxy.

Never run on Windows. Its processes are found again by a note in the service's folder, of number and start, and ended
with all that they started (taskkill /T). Between the start and the note, a moment, an agent that is killed
leaves a process that nobody knows of.
"""

import contextlib
import os
import socket
import time
from typing import Iterator, List, Tuple

from ssh_agents import system
from ssh_agents.protocol import Refused
from ssh_agents.service_asked import Spec

NOTE = os.path.join("run", "started")
"""In a service's folder: number and start of the process that was started."""
STOP_S = 10.0


def refuse(asked: Spec) -> None:
    """Refuse what cannot be started there, with what to do instead."""
    if asked.kind == "svn-server":
        raise Refused(
            "unsupported",
            "BranchLab starts no Subversion server on Windows, where hardly any Apache comes with mod_dav_svn: name "
            "the repository of the server that is there (repository = ..., without data), or take a Linux host",
            "service.start",
        )
    if asked.engine != "apache":
        raise Refused(
            "unsupported",
            "on Windows BranchLab starts no proxy but Apache: use the %s that is there as it is (leave `services` "
            'out), or kind = "apache-disk"' % asked.engine,
            "service.start",
        )


def taken(addresses: List[str], port: int) -> List[str]:
    """On which of these addresses somebody has the port already."""
    found = []
    for address in addresses:
        with contextlib.suppress(OSError), _socket(address) as probe:
            try:
                probe.bind((address, port))
            except OSError:
                found.append(address)
    return found


def refuse_taken(address: str, port: int) -> None:
    """Refuse with `busy` where the port cannot be had on this address."""
    try:
        with _socket(address) as probe:
            probe.bind((address, port))
    except OSError as error:
        text = "port %d cannot be had: %s" % (port, error.strerror)
        raise Refused("busy", text, "bind to " + address) from None


def _socket(address: str) -> socket.socket:
    probe = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    # Without it Windows lets two programs have one port; SO_REUSEADDR would even ask it to.
    exclusive = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)
    if exclusive is not None:
        probe.setsockopt(socket.SOL_SOCKET, exclusive, 1)
    return probe


def note(folder: str, pid: int) -> None:
    """Write down which process is the service in `folder`."""
    with open(os.path.join(folder, NOTE), "w", encoding="ascii") as file:
        file.write("%d %s" % (pid, begun(pid)))


def noted(folder: str) -> Iterator[Tuple[int, str]]:
    """Number and start of the service's process while it lives: never those of another one with an old number."""
    try:
        with open(os.path.join(folder, NOTE), encoding="ascii") as file:
            pid, start = file.read().split()
        number = int(pid)
    except (OSError, ValueError):
        return
    if begun(number) == start:
        yield number, start


def begun(pid: int) -> str:
    """When a process began, in the system's ticks; empty for one that is gone."""
    found = system.started_at(pid)
    return "" if found is None else str(found)


def stopped(folder: str) -> int:
    """End the service in `folder` and all that it started, by force; how many services (0 or 1) that were."""
    found = list(noted(folder))
    end = time.monotonic() + STOP_S
    for pid, start in found:
        while begun(pid) == start and time.monotonic() < end:
            system.end_tree_of(pid)
            time.sleep(0.05)
    return len(found)
