"""Ends the commands of an agent that was killed: a small process that lives exactly as long as the agent."""

import contextlib
import os
import threading
from typing import Optional

# It reads `+ GROUP` and `- GROUP` until the agent's end closes the pipe, then ends the groups that are left.
# dash takes no `--` after `-TERM`, hence `-s`. A shell, since it costs a tenth of what a second Python would.
SCRIPT = """
trap '' HUP INT TERM
cd /
all=
while read -r sign what; do
    case $sign in
    +) all="$all $what" ;;
    -) left=
       for one in $all; do [ "$one" = "$what" ] || left="$left $one"; done
       all=$left ;;
    esac
done
[ -n "$all" ] || exit 0
for one in $all; do kill -s TERM -- "-$one"; done
sleep 2
for one in $all; do kill -s KILL -- "-$one"; done
""".strip()


class Guard:
    """Told of each process group that a command makes. Started with the first; ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipe: Optional[int] = None

    def ready(self) -> None:
        """Start it if it does not run yet. Where it cannot be started, things go on without it."""
        with self._lock:
            if self._pipe is not None:
                return
            if not hasattr(os, "posix_spawn"):
                self._pipe = -1
                return
            read, self._pipe = os.pipe()
            nothing = os.open(os.devnull, os.O_RDWR)
            actions = [
                (os.POSIX_SPAWN_DUP2, number, to) for to, number in enumerate((read, nothing, nothing))
            ]
            try:
                # A group of its own, so that what ends the agent's does not end it too.
                os.posix_spawn("/bin/sh", ["sh", "-c", SCRIPT], os.environ, file_actions=actions, setpgroup=0)
            except OSError:
                os.close(self._pipe)
                self._pipe = -1
            finally:
                os.close(read)
                os.close(nothing)

    def began(self, group: int) -> None:
        """A group runs."""
        self._say("+ %d\n" % group)

    def ended(self, group: int) -> None:
        """A group's leader has been reaped."""
        self._say("- %d\n" % group)

    def _say(self, text: str) -> None:
        # Less than PIPE_BUF, so it is written whole; SIGPIPE is ignored by Python.
        if self._pipe is not None and self._pipe >= 0:
            with contextlib.suppress(OSError):
                os.write(self._pipe, text.encode())


GUARD = Guard()
"""The agent's own."""
