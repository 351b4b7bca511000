"""Runs and times one command by `subprocess`: where there is no `posix_spawn`, on Windows above all.

Times are of the command alone, without its children; no window appears.
"""

import contextlib
import subprocess
import threading
import time
from typing import IO, Any, Callable, Dict, List, NamedTuple, Optional

from ssh_agents import protocol, system

PIECE = 65536
AFTER_S = 1.0
"""How long output is still read after the command's end, when something of its group keeps a pipe open."""
TICK_S = 0.1

Say = Callable[[str, bytes, str], None]
"""Told of each piece of output: stream, bytes, text."""


class Asked(NamedTuple):
    """A command that was checked."""

    program: str
    argv: List[str]
    cwd: Optional[str]
    env: Dict[str, str]
    stdin: Optional[bytes]
    timeout_s: float


def run(asked: Asked, say: Say, call: protocol.Call) -> Dict[str, Any]:
    """Run it to its end; what `command.run` tells, but for the tail. Raises OSError if it cannot be started."""
    began = time.monotonic()
    process = subprocess.Popen(
        asked.argv,
        executable=asked.program,
        cwd=asked.cwd,
        env=asked.env,
        stdin=subprocess.DEVNULL if asked.stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        creationflags=system.quiet_flags(),
    )
    watch = _Watch(process, began + asked.timeout_s, call)
    call.say("started", {"began": began, "pid": process.pid})
    lock = threading.Lock()
    threads = [
        threading.Thread(target=_read, args=(stream, name, say, lock), daemon=True)
        for stream, name in ((process.stdout, "stdout"), (process.stderr, "stderr"))
    ]
    if asked.stdin is not None:
        threads.append(threading.Thread(target=_feed, args=(process.stdin, asked.stdin), daemon=True))
    for thread in (*threads, watch.thread):
        thread.start()
    status = process.wait()
    ended = time.monotonic()
    watch.exited.set()
    for thread in threads:
        thread.join(AFTER_S)
    usage = system.used(process)
    return {
        "exit": status if status >= 0 else None,
        "signal": -status if status < 0 else None,
        "timed_out": watch.reason == "timed-out",
        "cancelled": watch.reason == "cancelled",
        "wall_s": ended - began,
        "user_s": usage.user_s,
        "system_s": usage.system_s,
        "peak_kib": usage.peak_kib,
        "began": began,
        "ended": ended,
        "left": any(thread.is_alive() for thread in threads),
    }


class _Watch:
    """Ends the command when its time is over or nobody wants it any more."""

    def __init__(self, process: "subprocess.Popen[bytes]", end: float, call: protocol.Call) -> None:
        self.exited = threading.Event()
        self.reason = ""
        self._process, self._end, self._call = process, end, call
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self.exited.is_set():
            left = self._end - time.monotonic()
            if left <= 0 or self._call.wait_cancelled(min(TICK_S, left)):
                self.reason = "timed-out" if left <= 0 else "cancelled"
                system.end_tree(self._process)
                return


def _read(stream: IO[bytes], name: str, say: Say, lock: threading.Lock) -> None:
    decoder = system.Reading()
    with stream, contextlib.suppress(OSError, ValueError):
        while True:
            data = getattr(stream, "read1")(PIECE)  # noqa: B009 - every pipe of Popen's has it, IO has not
            with lock:
                say(name, data, decoder.decode(data, not data))
            if not data:
                return


def _feed(stream: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError), stream:  # the command need not read it
        stream.write(data)
