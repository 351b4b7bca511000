"""A run's end told to somebody who looks elsewhere; a window away over its run; closing while a run goes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import FakeTestbed, small
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication, QSystemTrayIcon
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, Made, made, started

from gui import single
from gui.asking import CloseDialog
from gui.main_window import MainWindow
from gui.notice import ended
from gui.telling import LAB, RESULTS
from gui.tray import Desktop, far
from lab import settings
from lab.errors import HostUnreachable
from lab.events import Outcome
from lab.settings import Settings

__all__ = ["made"]
Clicked = QSystemTrayIcon.ActivationReason.Trigger


class FakeIcon(QSystemTrayIcon):
    """Qt's own, on a desktop without a tray; remembers the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[str, str]] = []

    def showMessage(self, title: str, text: str, *icon: object) -> None:  # noqa: N802 - Qt's name
        assert self.isVisible(), "a sign that is not there tells nothing"
        self.messages.append((title, text))


class FakeDesktop:
    """A desktop with a tray, unless that is taken away."""

    def __init__(self, *, tray: bool = True) -> None:
        self.tray = tray
        self.icon = FakeIcon()

    def desktop(self) -> Desktop:
        """As the window wants it."""
        return Desktop(has_tray=lambda: self.tray, icon=lambda: self.icon, portal=lambda parent: None)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds a trial amid its samples until it is set; set at the end whatever happens."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(autouse=True)
def looks_elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Nobody looks at a window of ours, unless a test says so. Offscreen, every window is always active."""
    elsewhere = [True]
    plain = QApplication.activeWindow
    monkeypatch.setattr(QApplication, "activeWindow", lambda: None if elsewhere[0] else plain())
    return elsewhere


def away(qtbot: QtBot, window: MainWindow) -> None:
    """Close, and press *Go on without a window*."""
    window.close()
    dialog = window.findChildren(CloseDialog)[0]
    qtbot.mouseClick(dialog.go_on, Qt.MouseButton.LeftButton)
    assert not window.isVisible()


def entries(icon: FakeIcon) -> dict[str, object]:
    """What the tray's menu offers, by its words."""
    return {one.text(): one for one in icon.contextMenu().actions() if one.isVisible() and one.text()}


def pick(icon: FakeIcon, name: str) -> None:
    """Choose an entry of the tray's menu."""
    entries(icon)[name].trigger()  # type: ignore[attr-defined]


# the end is told ----------------------------------------------------------------------------------------


def test_the_end_is_told_and_a_press_brings_the_window_with_results(made: Made, qtbot: QtBot) -> None:
    fake = FakeDesktop()
    window = made(FakeTestbed(failing={3: "svn: no"}, void={5: "not quiet"}), desktop=fake.desktop())
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())
    ((title, text),) = fake.icon.messages
    assert title == "Small: done"
    kept = window.live.counts["kept"]
    assert text.startswith(f"{kept} trials kept, 2 failed or without proof, in ")
    window.show_page(LAB)
    window.showMinimized()
    fake.icon.messageClicked.emit()
    assert window._page == RESULTS
    assert not window.isMinimized()


def test_nothing_is_told_to_somebody_who_looks(made: Made, qtbot: QtBot, looks_elsewhere: list[bool]) -> None:
    fake = FakeDesktop()
    window = made(desktop=fake.desktop())
    window.activateWindow()
    looks_elsewhere[0] = False
    qtbot.waitUntil(lambda: QApplication.activeWindow() is window, timeout=FOREVER_MS)
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())
    assert fake.icon.messages == []
    assert not fake.icon.isVisible()


def test_nothing_is_told_where_that_is_switched_off(made: Made, qtbot: QtBot) -> None:
    fake = FakeDesktop()
    window = made(desktop=fake.desktop())
    window.settings_page.notify.click()
    assert settings.load() == Settings(notify=False)
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())
    assert fake.icon.messages == []


def test_a_failed_run_says_why(made: Made, qtbot: QtBot) -> None:
    fake = FakeDesktop()
    lost = HostUnreachable("no answer on port 22", host="proxy", tried="ssh proxy")
    window = made(FakeTestbed(opening=lost), desktop=fake.desktop())
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())
    assert fake.icon.messages[0][0] == "Small: failed"
    assert fake.icon.messages[0][1].startswith("proxy: no answer on port 22\n0 trials kept")


def test_the_sign_goes_once_the_window_is_looked_at(made: Made, qtbot: QtBot) -> None:
    fake = FakeDesktop()
    window = made(desktop=fake.desktop())
    qtbot.waitUntil(window.isActiveWindow, timeout=FOREVER_MS)  # else it may become so only after the end
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())
    assert fake.icon.isVisible()
    QApplication.sendEvent(window, QEvent(QEvent.Type.WindowActivate))  # as a window manager has it sent
    assert not fake.icon.isVisible()


def test_one_trial_is_told_as_one(made: Made, qtbot: QtBot) -> None:
    window = made()
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())
    window.live.counts = {"kept": 1}
    assert ended(window.live)[1].startswith("1 trial kept, in ")


# closing while a run goes -------------------------------------------------------------------------------


def test_in_the_tray_it_tells_how_far_it_is_and_comes_back(
    made: Made, qtbot: QtBot, gate: threading.Event
) -> None:
    fake = FakeDesktop()
    window = made(FakeTestbed(held={4: gate}), desktop=fake.desktop())
    started(qtbot, window, small(), done=3)
    window.close()
    dialog = window.findChildren(CloseDialog)[0]
    assert "its sign in the tray" in dialog.accessibleDescription()
    dialog.reject()
    away(qtbot, window)
    assert fake.icon.isVisible()
    assert "Small: 3 of 12 trials" in fake.icon.toolTip()
    assert list(entries(fake.icon))[1:] == ["Open the window", "Stop after this trial"]
    fake.icon.activated.emit(Clicked)
    assert window.isVisible()
    assert not fake.icon.isVisible()
    assert window.running


def test_the_trays_menu_stops_the_run_after_its_trial(
    made: Made, qtbot: QtBot, gate: threading.Event
) -> None:
    fake = FakeDesktop()
    window = made(FakeTestbed(held={4: gate}), desktop=fake.desktop())
    started(qtbot, window, small(), done=3)
    away(qtbot, window)
    pick(fake.icon, "Stop after this trial")
    assert window.run_page.stop.ending
    pick(fake.icon, "Go on after this trial")
    assert not window.run_page.stop.ending
    pick(fake.icon, "Stop after this trial")
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        gate.set()
    assert window.live.outcome is Outcome.STOPPED
    assert window.live.done == 4


def test_in_the_tray_it_stays_beyond_the_end_until_somebody_was_told(
    made: Made, qtbot: QtBot, gate: threading.Event
) -> None:
    fake = FakeDesktop()
    window = made(FakeTestbed(held={4: gate}), desktop=fake.desktop())
    started(qtbot, window, small(), done=3)
    away(qtbot, window)
    gate.set()
    qtbot.waitUntil(lambda: window.summary is not None and not window._jobs, timeout=FOREVER_MS)
    assert window.away.on
    assert fake.icon.isVisible()
    assert fake.icon.messages[0][0] == "Small: done"
    qtbot.waitUntil(lambda: "Close BranchLab" in entries(fake.icon), timeout=FOREVER_MS)
    assert far(window.live) == "Small: done"
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        pick(fake.icon, "Close BranchLab")
    assert not fake.icon.isVisible()


def test_without_a_tray_starting_again_brings_it_back(
    made: Made, qtbot: QtBot, gate: threading.Event, tmp_path: Path
) -> None:
    fake = FakeDesktop(tray=False)
    window = made(FakeTestbed(held={4: gate}), desktop=fake.desktop())
    started(qtbot, window, small(), done=3)
    away(qtbot, window)
    assert not fake.icon.isVisible()
    again = subprocess.Popen(
        [sys.executable, "-c", "import sys; from gui.app import main; sys.exit(main(['branchlab']))"],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "BRANCHLAB_DATA": str(tmp_path / "data")},
        cwd=Path(__file__).parent.parent,
    )
    try:
        qtbot.waitUntil(lambda: again.poll() is not None, timeout=FOREVER_MS)
        assert again.returncode == 0
        assert window.isVisible()
        assert window.running
        assert not single.call(tmp_path / "data")  # a window that is there is not called
    finally:
        again.kill()
        again.wait()
    gate.set()
    qtbot.waitUntil(lambda: window.summary is not None and not window._jobs, timeout=FOREVER_MS)
    assert window.isVisible()


def test_without_a_tray_it_ends_with_its_run(made: Made, qtbot: QtBot, gate: threading.Event) -> None:
    window = made(FakeTestbed(held={4: gate}), desktop=FakeDesktop(tray=False).desktop())
    started(qtbot, window, small(), done=3)
    away(qtbot, window)
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        gate.set()
    assert window.live.outcome is Outcome.DONE


def test_a_run_that_ends_while_it_is_asked_about_leaves_a_window_that_can_be_closed(
    made: Made, qtbot: QtBot, gate: threading.Event
) -> None:
    window = made(FakeTestbed(held={4: gate}))
    started(qtbot, window, small(), done=3)
    window.close()
    dialog = window.findChildren(CloseDialog)[0]
    dialog.finished.connect(lambda: seen.append(True))
    seen: list[bool] = []
    gate.set()
    qtbot.waitUntil(lambda: bool(seen), timeout=FOREVER_MS)
    assert window.isVisible()
    assert window.live.outcome is Outcome.DONE
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        window.close()


def test_closing_twice_asks_once(made: Made, qtbot: QtBot, gate: threading.Event) -> None:
    window = made(FakeTestbed(held={4: gate}))
    started(qtbot, window, small(), done=3)
    window.close()
    window.close()
    (dialog,) = window.findChildren(CloseDialog)
    dialog.reject()
    window.close()
    assert [one for one in window.findChildren(CloseDialog) if one.isVisible()]
