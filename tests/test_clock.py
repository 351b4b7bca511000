"""The clock verb."""

from __future__ import annotations

import time

from ssh_agents import clock, protocol


def test_the_three_clocks() -> None:
    call = protocol.Call(
        lambda event, data: None, lambda: False, lambda seconds: False, lambda entry: "", lambda name: None
    )
    before = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME), time.time()
    told = clock.tell({}, call)
    after = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME), time.time()
    for low, name, high in zip(before, ("monotonic_s", "boottime_s", "utc"), after, strict=True):
        assert low <= told[name] <= high
