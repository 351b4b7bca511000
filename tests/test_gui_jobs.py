"""Small jobs in threads: told in the main thread, and no harm if nobody is left to tell."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import shiboken6
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from gui.jobs import Jobs


def test_each_thing_is_heard_and_the_end_is_told(qtbot: QtBot) -> None:
    owner, heard = QObject(), []
    jobs = Jobs(owner)
    with qtbot.waitSignal(jobs.ended, timeout=5000):
        jobs.do(iter((1, 2, 3)), heard.append)
        assert len(jobs) == 1
    assert heard == [1, 2, 3]
    assert len(jobs) == 0


def test_what_is_deleted_amid_a_job_hurts_nobody(qtbot: QtBot) -> None:
    owner = QObject()
    jobs, pulled, gone, done = Jobs(owner), [], threading.Event(), threading.Event()

    def things() -> Iterator[int]:
        for number in range(20):
            pulled.append(number)
            yield number
            gone.wait(5)
        done.set()

    jobs.do(things(), lambda _: None)
    while not pulled:
        time.sleep(0.005)
    shiboken6.delete(owner)
    gone.set()
    assert done.wait(5)  # it spoke to the end, through something that was still there
    assert len(pulled) == 20
