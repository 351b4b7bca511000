"""The profile in the window: edited, told, taken back, saved, and never lost without being asked about."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import FakeTestbed
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QMenu
from pytestqt.qtbot import QtBot
from test_gui_document import TEXT
from test_gui_start import stranger_text
from test_gui_window import FOREVER_MS, Made, made

from gui.asking import CloseDialog, OverwriteDialog, SaveDialog
from gui.main_window import MainWindow
from gui.stranger import StrangerDialog

__all__ = ["made"]
CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
EXPERIMENT = """
[[experiments]]
name = "Quick"
vcs = "subversion"
data = "quick"
repository = "http://{server}/svn/trunk"
operations = ["get"]
lines = ["64/128 kbit/s"]
states = ["disabled"]
attempts = 2
warm_up = 1
"""
Opened = Callable[..., tuple[MainWindow, Path]]


@pytest.fixture
def opened(made: Made, qtbot: QtBot, tmp_path: Path) -> Opened:
    """A window with a profile of its own."""

    def make(text: str = TEXT) -> tuple[MainWindow, Path]:
        path = tmp_path / "minsk.toml"
        path.write_text(text, "utf-8")
        window = made()
        window.open_profile(path)
        qtbot.waitUntil(lambda: window.document.path == path, timeout=FOREVER_MS)
        return window, path

    return make


def ask(window: MainWindow, kind: type[SaveDialog]) -> SaveDialog:
    (dialog,) = [one for one in window.findChildren(kind) if one.isVisible()]
    return dialog


def test_an_edit_is_told_everywhere_taken_back_and_saved(opened: Opened, qtbot: QtBot) -> None:
    window, path = opened()
    assert window.windowTitle() == "Minsk office – BranchLab"
    assert window._top._kind.text() == "minsk.toml"
    window.document.put("rename the lab", ("name",), "Minsk")
    assert window.windowTitle() == "Minsk* – BranchLab"
    assert window._top._kind.text() == "not saved"
    assert window.lab_page.lab is not None
    assert window.lab_page.lab.name == "Minsk"
    qtbot.keyClick(window, Qt.Key.Key_Z, CTRL)
    assert window.windowTitle() == "Minsk office – BranchLab"
    qtbot.keyClick(window, Qt.Key.Key_Z, CTRL | SHIFT)
    qtbot.keyClick(window, Qt.Key.Key_S, CTRL)
    assert path.read_text("utf-8") == TEXT.replace("Minsk office", "Minsk")
    assert window._top._kind.text() == "minsk.toml"


def test_closing_asks_and_esc_keeps_the_window(opened: Opened, qtbot: QtBot) -> None:
    window, path = opened()
    window.document.put("rename the lab", ("name",), "Minsk")
    window.close()
    dialog = ask(window, SaveDialog)
    assert window.isVisible()
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert window.isVisible()
    assert window.document.unsaved
    window.close()
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        ask(window, SaveDialog).keep.click()
    assert 'name = "Minsk" ' in path.read_text("utf-8")


def test_closing_without_saving_leaves_the_file_and_nothing_to_recover(
    opened: Opened, qtbot: QtBot, tmp_path: Path
) -> None:
    window, path = opened()
    window.document.put("rename the lab", ("name",), "Minsk")
    assert list((tmp_path / "data" / "drafts").glob("*.json"))
    window.close()
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        ask(window, SaveDialog).lose.click()
    assert path.read_text("utf-8") == TEXT
    assert not list((tmp_path / "data" / "drafts").glob("*.json"))


def test_another_profile_waits_for_the_answer(opened: Opened, qtbot: QtBot, tmp_path: Path) -> None:
    window, path = opened()
    other = tmp_path / "other.toml"
    other.write_text(TEXT.replace("Minsk office", "Brest"), "utf-8")
    window.document.put("rename the lab", ("name",), "Minsk")
    window.open_profile(other)
    ask(window, SaveDialog).reject()
    assert window.document.path == path
    window.open_profile(other)
    ask(window, SaveDialog).lose.click()
    qtbot.waitUntil(lambda: window.document.path == other, timeout=FOREVER_MS)
    assert window.windowTitle() == "Brest – BranchLab"
    assert path.read_text("utf-8") == TEXT


def test_what_another_program_wrote_is_replaced_only_when_told(opened: Opened, qtbot: QtBot) -> None:
    window, path = opened()
    window.document.put("rename the lab", ("name",), "Minsk")
    path.write_text(TEXT + "# by hand\n", "utf-8")
    qtbot.keyClick(window, Qt.Key.Key_S, CTRL)
    (dialog,) = [one for one in window.findChildren(OverwriteDialog) if one.isVisible()]
    assert path.read_text("utf-8").endswith("# by hand\n")
    dialog.replace.click()
    assert path.read_text("utf-8") == TEXT.replace("Minsk office", "Minsk")
    assert not window.document.unsaved


def test_save_as_gives_it_another_file(opened: Opened, qtbot: QtBot, tmp_path: Path) -> None:
    window, path = opened()
    window.document.put("rename the lab", ("name",), "Minsk")
    qtbot.keyClick(window, Qt.Key.Key_S, CTRL | SHIFT)
    (dialog,) = window.findChildren(QFileDialog)
    target = tmp_path / "copy.toml"
    dialog.fileSelected.emit(str(target))
    dialog.reject()
    assert target.read_text("utf-8") == TEXT.replace("Minsk office", "Minsk")
    assert path.read_text("utf-8") == TEXT
    assert window.document.path == target


def test_a_profile_that_is_not_right_yet_is_not_run(opened: Opened) -> None:
    window, _ = opened(TEXT + EXPERIMENT)
    assert window.document.profile is not None
    experiment = window.document.profile.experiments[0]
    window.document.put("set the attempts to 0", ("experiments", 0, "attempts"), 0)
    window.start_run(experiment)
    assert not window.looking
    assert not window.running
    assert window._banner._title.text() == "The profile is not right yet, so nothing was started."
    assert "attempts" in window._banner._text.text()


def test_the_caret_beside_its_name_offers_what_can_be_done(opened: Opened, qtbot: QtBot) -> None:
    window, path = opened()
    window.document.put("rename the lab", ("name",), "Minsk")
    qtbot.mouseClick(window._top._more, Qt.MouseButton.LeftButton)
    (menu,) = [one for one in window.findChildren(QMenu) if one.isVisible()]
    texts = [action.text().partition("\t")[0] for action in menu.actions()]
    assert texts == ["Undo: rename the lab", "Save the profile", "Save the profile as …"]
    menu.actions()[0].trigger()
    menu.close()
    assert not window.document.unsaved
    assert path.read_text("utf-8") == TEXT


def test_a_strangers_profile_is_shown_before_its_run_and_left_by_esc(
    made: Made, qtbot: QtBot, tmp_path: Path
) -> None:
    window = made(own=lambda lab: False)
    path = tmp_path / "theirs.toml"
    path.write_text(stranger_text(tmp_path), "utf-8")
    window.open_profile(path)
    qtbot.waitUntil(lambda: window.document.path == path, timeout=FOREVER_MS)
    assert window.document.profile is not None
    window.start_run(window.document.profile.experiments[0])
    qtbot.waitUntil(lambda: bool(window.findChildren(StrangerDialog)), timeout=FOREVER_MS)
    assert not window.looking
    (dialog,) = window.findChildren(StrangerDialog)
    assert "svn checkout" in dialog.text.toPlainText()
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not window.looking
    assert not window.running


def run_with_an_edit(window: MainWindow, qtbot: QtBot) -> None:
    """A run of the profile that goes on, and an edit that is not saved."""
    window.start_run(window.lab_page.offered()[0][1], agreed=frozenset())
    qtbot.waitUntil(lambda: window.live.current is not None, timeout=FOREVER_MS)
    window.document.put("rename the lab", ("name",), "Minsk")


def test_stop_and_close_asks_about_the_profile_before_it_closes(
    made: Made, qtbot: QtBot, tmp_path: Path
) -> None:
    window, path = made(FakeTestbed(held={1: threading.Event()})), tmp_path / "minsk.toml"
    path.write_text(TEXT + EXPERIMENT, "utf-8")
    window.open_profile(path)
    qtbot.waitUntil(lambda: window.document.path == path, timeout=FOREVER_MS)
    run_with_an_edit(window, qtbot)
    window.close()
    window.findChildren(CloseDialog)[0].end.click()
    qtbot.waitUntil(lambda: any(one.isVisible() for one in window.findChildren(SaveDialog)))
    assert window.isVisible()
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        ask(window, SaveDialog).keep.click()
    assert 'name = "Minsk" ' in path.read_text("utf-8")


def test_ctrl_c_in_the_terminal_asks_nothing_and_keeps_what_is_not_saved_for_the_next_start(
    opened: Opened, qtbot: QtBot, tmp_path: Path
) -> None:
    window, path = opened()
    window.document.put("rename the lab", ("name",), "Minsk")
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        window.interrupt()
    assert path.read_text("utf-8") == TEXT
    assert list((tmp_path / "data" / "drafts").glob("*.json"))
