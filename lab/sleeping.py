"""Whether this machine slept: a clock that goes on meanwhile, held against one that stands still."""

from __future__ import annotations

import platform
import time

from lab import units

_CLOCK: int | None = getattr(
    time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None) if platform.system() == "Darwin" else None
)
LEAST_S = 1.0
"""Less is what two readings one after the other may differ by, and no sleep."""


def elapsed_s() -> float:
    """Seconds on a monotonic clock that goes on while this machine sleeps, as the hosts do.

    Linux: CLOCK_BOOTTIME (clock_gettime(2)); macOS: CLOCK_MONOTONIC, which counts sleep there while Python's
    `time.monotonic` does not; elsewhere `time.monotonic`, which on Windows counts sleep.
    """
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


def asleep_s() -> float:
    """Seconds that this machine slept since some fixed moment; only differences mean anything.

    On systems where no clock of Python's stands still during a sleep (Windows), none is ever noticed.
    """
    return elapsed_s() - time.monotonic()


class Sleep:
    """Notices a sleep of this machine since it was made."""

    def __init__(self) -> None:
        self._before = asleep_s()

    def told(self) -> str:
        """The sleep so far in words, empty for none."""
        slept = asleep_s() - self._before
        return f"this machine slept for {units.coming_text(slept)}" if slept >= LEAST_S else ""
