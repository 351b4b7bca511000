"""The holder: process 1 of the lab's own process namespace. Its end is the end of everything in the lab.

Started by the keeper through `unshare`. Standard input is a pipe that only the keeper holds: its end means
that the keeper is gone, however it went, and then the holder ends the lab and removes its folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import traceback
from pathlib import Path

from lab.embedded import folders, host, kernel, plan

SWITCH = "office"
"""The bridge that joins all hosts, in the holder's own network namespace."""
_LOCK = 3


def main() -> None:
    """Make the hosts, say so on standard output as one JSON line, and hold them."""
    if os.getpid() != 1:
        # It ends by killing every process it can see.
        sys.exit("the holder is only ever process 1 of a process namespace")
    os.set_inheritable(_LOCK, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lab = plan.loaded(Path(sys.argv[1]))
    try:
        _make(lab)
        said: dict[str, str] = {"ready": lab.folder}
    except subprocess.CalledProcessError as error:
        said = {"failed": f"{' '.join(error.cmd)}: {str(error.stderr).strip()}"}
    except OSError as error:
        said = {"failed": str(error)}
    print(json.dumps(said), flush=True)
    if "ready" in said:
        _hold()
    _end(lab)


def _make(lab: plan.LabPlan) -> None:
    """The switch, then every host with its cable to it."""
    kernel.mount("tmpfs", Path("/run"), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    host.settle(("all", "default"))
    host.ip_batch([f"link add {SWITCH} type bridge mcast_snooping 0", *host.unaddressed(SWITCH)])
    born = [(each, *_born(lab, each)) for each in lab.hosts]
    lines = []
    for each, child, hear, _tell in born:
        _await(each, hear, b"n")
        device = host.SERVER_PORT if each.role == "server" else "eth0"
        lines += [
            f"link add {each.name} type veth peer name {device} netns {child}",
            *host.unaddressed(each.name, SWITCH),
        ]
    host.ip_batch(lines)
    for each, _child, _hear, tell in born:
        kernel.offloads_off(each.name)
        os.write(tell, b"g")
        os.close(tell)
    for each, _child, hear, _tell in born:
        _await(each, hear, b"r")
        os.close(hear)


def _born(lab: plan.LabPlan, each: plan.HostPlan) -> tuple[int, int, int]:
    """Fork one host: its process number, and the ends of the pipes that listen and speak to it."""
    hear, their_tell = os.pipe()
    their_hear, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(their_tell)
        os.close(their_hear)
        return child, hear, tell
    try:
        _leave_pipes(keep=(their_tell, their_hear, _LOCK))
        host.live(lab, each, their_tell, their_hear)
    except subprocess.CalledProcessError as error:
        _last_word(their_tell, f"{' '.join(error.cmd)}: {str(error.stderr).strip()}")
    except OSError as error:
        _last_word(their_tell, str(error))
    except BaseException:  # noqa: BLE001 a forked child must never return into its parent's code
        traceback.print_exc()
    os._exit(1)


def _last_word(tell: int, text: str) -> None:
    print(text, file=sys.stderr, flush=True)
    with contextlib.suppress(OSError):
        os.write(tell, b"!" + text.encode("utf-8", "replace")[:2000])


def _leave_pipes(keep: tuple[int, ...]) -> None:
    """Close what the holder alone may hold: the keeper's pipes and the other hosts' ones."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0, inheritable=True)
    os.dup2(null, 1, inheritable=True)
    for number in [int(item.name) for item in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number not in keep:
            with contextlib.suppress(OSError):
                os.close(number)


def _await(each: plan.HostPlan, hear: int, word: bytes) -> None:
    """Wait for a host's word. Raises OSError with what it said instead."""
    ready, _, _ = select.select([hear], [], [], 30)
    heard = os.read(hear, 2100) if ready else b"!no answer within 30 s"
    if heard[:1] != word:
        raise OSError(f"host {each.name}: {heard[1:].decode('utf-8', 'replace') or 'ended without a word'}")


def _hold() -> None:
    """Reap what is orphaned, until the keeper's pipe ends."""
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        ready, _, _ = select.select([0, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
        if 0 in ready and not os.read(0, 1):
            return


def _end(lab: plan.LabPlan) -> None:
    """Kill every process of the lab, then remove its files; the kernel removes the rest with this process."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    folders.remove(Path(lab.folder))
    os._exit(0)
