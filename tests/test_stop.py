"""One way to stop or pause."""

from __future__ import annotations

import threading
import time

import pytest

from lab.errors import Stopped
from lab.stop import Stop


def test_nobody_asked() -> None:
    stop = Stop()
    stop.check()
    stop.sleep(0)
    stop.wait_while_paused()
    assert not stop.requested
    assert not stop.paused


def test_check_raises_once_asked_and_ever_after() -> None:
    stop = Stop()
    stop.request()
    stop.request()
    for _ in range(2):
        with pytest.raises(Stopped):
            stop.check()


def test_a_sleep_ends_when_someone_asks() -> None:
    stop = Stop()
    began = time.monotonic()
    threading.Timer(0.01, stop.request).start()
    with pytest.raises(Stopped):
        stop.sleep(60)
    assert time.monotonic() - began < 30


def test_a_sleep_lasts() -> None:
    began = time.monotonic()
    Stop().sleep(0.02)
    assert time.monotonic() - began >= 0.02


def test_a_pause_waits_for_resume() -> None:
    stop, passed = Stop(), threading.Event()
    stop.pause()
    assert stop.paused
    waiting = threading.Thread(target=lambda: (stop.wait_while_paused(), passed.set()))
    waiting.start()
    assert not passed.wait(0.05)
    stop.resume()
    waiting.join(10)
    assert passed.is_set()
    assert not stop.paused


def test_stopping_ends_a_pause_and_a_stopped_run_cannot_be_paused() -> None:
    stop = Stop()
    stop.pause()
    stop.request()
    with pytest.raises(Stopped):
        stop.wait_while_paused()
    stop.pause()
    assert not stop.paused
