"""What is rubbish is found in the main thread, and nowhere else."""

from __future__ import annotations

import gc
import os
import threading
import weakref

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui import rubbish


class Knot:
    """Holds itself."""

    def __init__(self) -> None:
        self.me = self


def test_a_thread_that_makes_much_finds_no_rubbish_and_the_main_thread_does(
    qapp: QApplication, qtbot: QtBot
) -> None:
    rubbish.search_here(qapp)
    rubbish.search_here(qapp)
    where: list[threading.Thread] = []
    weakref.finalize(Knot(), lambda: where.append(threading.current_thread()))
    kept: list[list[int]] = []

    def much() -> None:
        kept.extend([number] for number in range(50_000))

    thread = threading.Thread(target=much)
    thread.start()
    thread.join()
    assert where == []
    qtbot.waitUntil(lambda: bool(where), timeout=60_000)
    assert where == [threading.main_thread()]
    assert not gc.isenabled()
