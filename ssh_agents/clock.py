"""The host's clocks, for durations and for offsets between hosts."""

import time
from typing import Any, Dict

from ssh_agents import protocol


def boottime() -> float:
    """Seconds since the host started, sleep counted; the monotonic clock where there is none such."""
    # CLOCK_BOOTTIME is 7 in linux/time.h; the time module has no name for it before Python 3.7 nor elsewhere.
    number = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if number is None else time.clock_gettime(number)


def tell(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `clock`: `monotonic_s` and `boottime_s` of this host, and `utc` in seconds since 1970."""
    return {"monotonic_s": time.monotonic(), "boottime_s": boottime(), "utc": time.time()}
