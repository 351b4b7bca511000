"""What Start leads to in a whole window: recent profiles, drafts of a crash, a new lab, published figures."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot
from start_shown import Meetings
from test_gui_start import crashed, stranger_text
from test_gui_window import FOREVER_MS, made

from gui.main_window import MainWindow
from gui.new_lab.wizard import CLIENTS
from gui.start.pairs import PairsDialog
from gui.starting import Starting
from lab import draft, recent
from lab.analysis.summary import Summary

__all__ = ["made"]
Made = Callable[..., MainWindow]


def starting(made: Made) -> tuple[MainWindow, Starting]:
    """A window with what Start leads to: its own where it has one, else one made here."""
    window = made(own=lambda lab: False, meeting=Meetings())
    found = getattr(window, "starting", None)
    if found is None:
        found = Starting(
            window._look,
            window._doors,
            window._jobs,
            window.document,
            window.opening,
            window.start_page,
            window,
        )
    return window, found


def test_what_was_opened_is_listed_and_opened_again(made: Made, qtbot: QtBot, tmp_path: Path) -> None:
    window, found = starting(made)
    path = tmp_path / "minsk.toml"
    path.write_text(stranger_text(tmp_path), "utf-8")
    window.open_profile(path)
    qtbot.waitUntil(lambda: bool(window.start_page.profiles()), timeout=FOREVER_MS)
    assert [one.path for one in recent.profiles()] == [path]
    window.document.take(None)
    window.show_page("start")
    QApplication.processEvents()
    qtbot.mouseClick(window.start_page._profiles[0][0], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.document.path == path, timeout=FOREVER_MS)
    path.unlink()
    found.refresh()
    qtbot.waitUntil(lambda: not window.start_page.profiles(), timeout=FOREVER_MS)
    window.start_page.forgotten.emit(path)
    assert recent.profiles() == ()


def test_what_a_crash_left_is_open_again_with_its_changes(made: Made, qtbot: QtBot, tmp_path: Path) -> None:
    window, found = starting(made)
    path = tmp_path / "minsk.toml"
    path.write_text(stranger_text(tmp_path), "utf-8")
    crashed(window._doors.drafts(), path, stranger_text(tmp_path).replace("Minsk office", "Minsk again"))
    found.offer()
    QApplication.processEvents()
    qtbot.mouseClick(window.start_page.recovery.take, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.document.unsaved, timeout=FOREVER_MS)
    assert window.document.profile is not None
    assert window.document.profile.lab.name == "Minsk again"
    assert window.document.path == path
    window.document.take(None)
    assert draft.recovered(window._doors.drafts()) == ()


@pytest.mark.parametrize("saved", [True, False])
def test_a_new_lab_is_open_in_the_window(made: Made, qtbot: QtBot, tmp_path: Path, saved: bool) -> None:
    window, found = starting(made)
    found.new_lab()
    dialog = found.wizard.dialog
    assert dialog is not None
    dialog.server.enter(ssh="server")
    dialog.show_step(CLIENTS)
    dialog.without_proxy = True
    dialog.clients[0].enter(ssh="desk")
    dialog.name_page.name.line.setText("Minsk")
    dialog.show_step(CLIENTS + 1)
    if saved:
        dialog.next.click()
        dialog.findChildren(QFileDialog)[0].fileSelected.emit(str(tmp_path / "minsk.toml"))
    else:
        dialog.unsaved.click()
    qtbot.waitUntil(lambda: window.document.profile is not None, timeout=FOREVER_MS)
    assert window.document.profile is not None
    assert window.document.profile.lab.name == "Minsk"
    assert window.document.unsaved is not saved
    assert (window.document.path is not None) is saved
    if saved:
        assert recent.familiar((tmp_path / "minsk.toml").read_text())
        assert [one.name for one in recent.profiles()] == ["Minsk"]
    window.document.take(None)


def test_published_figures_are_answers_or_a_table(made: Made, qtbot: QtBot) -> None:
    window, found = starting(made)
    with qtbot.waitSignal(found.answers, timeout=FOREVER_MS) as heard:
        found.show_published("published-2008")
    assert isinstance(heard.args[0], Summary)
    found.show_published("sync-2013")
    qtbot.waitUntil(lambda: bool(window.findChildren(PairsDialog)), timeout=FOREVER_MS)
    window.findChildren(PairsDialog)[0].reject()
