"""Messages by the desktop's portal, over a real D-Bus of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import small
from PySide6.QtCore import QObject
from PySide6.QtDBus import QDBusConnection
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, Made, made

from gui.portal import Portal
from gui.telling import RESULTS
from gui.tray import Desktop

__all__ = ["made"]
pytestmark = pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="dbus-daemon is not installed")


@pytest.fixture
def bus() -> Iterator[str]:
    """The address of a bus that nobody else has."""
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert daemon.stdout is not None
    yield daemon.stdout.readline().strip()
    daemon.kill()
    daemon.wait()
    daemon.stdout.close()


@pytest.fixture
def portal(bus: str) -> Iterator[subprocess.Popen[str]]:
    """The stand-in, there."""
    served = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "fake_portal.py")],
        env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": bus},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert served.stdout is not None
    assert served.stdout.readline() == "there\n"
    yield served
    served.kill()
    served.wait()
    served.stdout.close()


def heard(served: subprocess.Popen[str]) -> list[object]:
    """The next call."""
    assert served.stdout is not None
    return json.loads(served.stdout.readline())


def test_the_end_is_told_by_the_portal_and_a_press_brings_results(
    made: Made, qtbot: QtBot, bus: str, portal: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = QDBusConnection.connectToBus(bus, "told")
    asked: list[Portal] = []

    def by(parent: QObject) -> Portal:
        asked.append(Portal("ours", parent, line))
        return asked[-1]

    monkeypatch.setattr(QApplication, "activeWindow", lambda: None)
    window = made(desktop=Desktop(has_tray=lambda: False, portal=by))
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())
    qtbot.waitUntil(lambda: window._page == RESULTS, timeout=FOREVER_MS)
    assert heard(portal) == ["AddNotification", "sa{sv}", "ours"]
    asked[0].withdraw()
    assert heard(portal) == ["RemoveNotification", "s", "ours"]
    QDBusConnection.disconnectFromBus("told")


def test_a_press_on_a_message_of_another_program_brings_nothing(
    qtbot: QtBot, bus: str, portal: subprocess.Popen[str]
) -> None:
    line, owner, pressed = QDBusConnection.connectToBus(bus, "pressed"), QObject(), []
    ours = Portal("ours", owner, line)
    ours.pressed.connect(lambda: pressed.append(1))
    ours.tell("Small: done", "8 trials kept")
    qtbot.waitUntil(lambda: bool(pressed), timeout=FOREVER_MS)
    assert len(pressed) == 1  # the stand-in pressed another program's first
    QDBusConnection.disconnectFromBus("pressed")


def test_where_no_portal_is_nothing_comes_of_it(qtbot: QtBot, bus: str) -> None:
    owner = QObject()
    Portal("ours", owner, QDBusConnection.connectToBus(bus, "none")).tell("Small: done", "8 trials kept")
    QDBusConnection.disconnectFromBus("none")
    Portal("ours", owner, QDBusConnection("no such bus")).tell("Small: done", "8 trials kept")
