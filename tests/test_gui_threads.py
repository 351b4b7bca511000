"""The check that no thread but the main one touches the window: it finds every way of doing so, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import FakeTestbed, small
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot
from test_gui_window import Made, made, ran

from gui import threads
from gui.run.matrix import Matrix
from gui.theme.look import Look
from gui.widgets.basic import Button, Label
from lab.live import Live

__all__ = ["made"]


@pytest.fixture
def found() -> Iterator[list[threads.Touched]]:
    """What the check says, in place of the one that all tests have."""
    told: list[threads.Touched] = []
    threads.watch(told.append)
    yield told
    threads.unwatch()


def in_a_thread(work: Callable[[], object]) -> BaseException | None:
    """How it ends there."""
    ended: list[BaseException | None] = []

    def whole() -> None:
        try:
            work()
        except threads.Touched as error:
            ended.append(error)
        else:
            ended.append(None)

    thread = threading.Thread(target=whole, name="a worker")
    thread.start()
    thread.join()
    return ended[0]


def test_a_widget_that_a_thread_touches_is_told_before_it_is_touched(
    qtbot: QtBot, found: list[threads.Touched]
) -> None:
    label = QLabel("before")
    qtbot.addWidget(label)
    error = in_a_thread(lambda: label.setText("after"))
    assert "“a worker” calls QLabel.setText" in str(error)
    assert label.text() == "before"
    assert found == [error]


def test_a_slot_of_ours_that_a_thread_calls_is_told(qtbot: QtBot, found: list[threads.Touched]) -> None:
    button, matrix = Button(Look("light"), "Run"), Matrix()
    qtbot.addWidget(button)
    assert "Button.rename" in str(in_a_thread(lambda: button.rename("Stop")))
    assert "Matrix.begin" in str(in_a_thread(lambda: matrix.begin(Live())))
    assert "Label.__init__" in str(in_a_thread(lambda: Label(Look("light"), "x")))
    assert len(found) == 3


def test_a_slot_that_a_signal_reaches_in_the_wrong_thread_is_told(
    qtbot: QtBot, found: list[threads.Touched]
) -> None:
    class Telling(QObject):
        told = Signal(object)

    label, telling = QLabel("before"), Telling()
    qtbot.addWidget(label)
    telling.told.connect(lambda text: label.setText(text), Qt.ConnectionType.DirectConnection)
    with qtbot.captureExceptions():
        in_a_thread(lambda: telling.told.emit("after"))
    assert label.text() == "before"
    assert "QLabel.setText" in str(found[0])


def test_a_whole_run_touches_nothing_from_its_thread(
    made: Made, qtbot: QtBot, found: list[threads.Touched]
) -> None:
    window = made(FakeTestbed(failing={3: "svn: no"}))
    ran(qtbot, window, small())
    assert window.live.done == 12
    assert not found


def test_it_is_on_where_the_environment_says_so() -> None:
    code = (
        "import threading, gui.app as app, gui.threads as threads\n"
        "app.application_made = lambda argv: (_ for _ in ()).throw(SystemExit(3))\n"
        "try: app.main([])\n"
        "except SystemExit: print(threading._profile_hook is not None)\n"
    )
    for value, said in (("1", "True"), ("", "False")):
        env = {**os.environ, threads.VARIABLE: value, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == said
