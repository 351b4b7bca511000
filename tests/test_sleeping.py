"""A sleep of this machine, from two clocks of which one stands still meanwhile."""

from __future__ import annotations

import time

import pytest
from fake_testbed import FakeTestbed, small

from lab import runner, sleeping
from lab.events import CommandStarted
from lab.live import Live
from lab.stop import Stop


class Clocks:
    """A monotonic clock, and one that counts sleep too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.awake_s, self.asleep_s = 50.0, 700.0
        monkeypatch.setattr(time, "monotonic", lambda: self.awake_s)
        monkeypatch.setattr(sleeping, "_CLOCK", 7)
        monkeypatch.setattr(time, "clock_gettime", lambda clock: self.awake_s + self.asleep_s)


def test_time_that_only_passes_is_no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    sleep = sleeping.Sleep()
    clocks.awake_s += 3600
    assert sleep.told() == ""


@pytest.mark.parametrize(("slept_s", "told"), [(0.5, ""), (40, "40 s"), (312, "5 min"), (7200, "2 h")])
def test_a_sleep_is_told_with_its_length(monkeypatch: pytest.MonkeyPatch, slept_s: float, told: str) -> None:
    clocks = Clocks(monkeypatch)
    sleep = sleeping.Sleep()
    clocks.awake_s += 10
    clocks.asleep_s += slept_s
    assert sleep.told() == (f"this machine slept for {told}" if told else "")


def test_this_machine_does_not_sleep_while_it_is_tested() -> None:
    sleep, began = sleeping.Sleep(), sleeping.elapsed_s()
    time.sleep(0.01)
    assert sleeping.elapsed_s() > began
    assert sleep.told() == ""


def test_what_is_shown_of_a_trial_goes_on_while_this_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its hosts do not sleep: the command has run all the while."""
    clocks, live = Clocks(monkeypatch), Live()
    for event in runner.run(small(), FakeTestbed(), Stop()):
        live.apply(event)
        if isinstance(event, CommandStarted) and event.trial == 6:
            break
    before = live.eta()
    clocks.awake_s += 1
    clocks.asleep_s += 600
    assert live.elapsed_s() == pytest.approx(601)
    after = live.eta()
    assert before is not None
    assert after is not None
    # The one under way has used up its share, and no other became shorter by it.
    assert 0 < after[0] < before[0]
    assert after[0] > before[0] * 0.7
