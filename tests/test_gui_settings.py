"""Settings and Help in a real window: kept at once, used at once; F1 at the topic of what has the focus."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QScrollArea
from pytestqt.qtbot import QtBot
from test_gui_window import Made, made

from gui.help.topics import KEYS, STATES, TOPICS
from gui.telling import HELP, SETTINGS
from lab import settings
from lab.settings import Settings

__all__ = ["made"]
LEFT = Qt.MouseButton.LeftButton


def test_a_press_on_dark_is_kept_and_seen_at_once(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.show_page(SETTINGS)
    dark = next(b for b in window.settings_page.theme._group.buttons() if b.text() == "Dark")
    qtbot.mouseClick(dark, LEFT)
    assert window.dark
    assert settings.load().theme == "dark"
    qtbot.mouseClick(window._top._theme, LEFT)
    assert not window.dark
    assert settings.load().theme == "light"
    assert next(b for b in window.settings_page.theme._group.buttons() if b.isChecked()).text() == "Light"


@pytest.mark.parametrize(
    ("typed", "kept", "told"), [("60", 60, ""), ("5", 30, "write 15 to 300"), ("", 30, "write")]
)
def test_the_lease_is_kept_only_where_it_is_right(
    made: Made, qtbot: QtBot, typed: str, kept: int, told: str
) -> None:
    window = made()
    window.show_page(SETTINGS)
    page = window.settings_page
    page.lease.setFocus()
    page.lease.selectAll()
    qtbot.keyClick(page.lease, Qt.Key.Key_Delete)
    qtbot.keyClicks(page.lease, typed)
    verdict = " ".join(label.text() for label in page._verdict.findChildren(QLabel))
    assert told in verdict if told else verdict.strip() == ""
    qtbot.keyClick(page.lease, Qt.Key.Key_Return)
    assert settings.load().lease_s == kept


def test_without_motion_nothing_turns(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.show_page(SETTINGS)
    qtbot.keyClick(window.settings_page.motion, Qt.Key.Key_Space)
    assert settings.load() == Settings(motion=False)
    assert not window._look.motion


@pytest.mark.parametrize("named", [True, False])
def test_a_wrong_file_is_told_and_the_window_opens_nevertheless(
    made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: bool
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('theme = "blue"\n', "utf-8")
    monkeypatch.setattr(settings, "path", lambda: file)
    if not named:  # the folder for data is then asked of the settings themselves
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        monkeypatch.delenv("BRANCHLAB_DATA")
    window = made()
    assert "theme: write one of system, light, dark" in window._banner._title.text()
    assert window.settings_page.settings == Settings()
    assert settings.lease_s() == settings.LEASE_S


def test_f1_opens_help_at_the_topic_of_what_has_the_focus(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.resize(1280, 720)
    qtbot.waitUntil(window.isActiveWindow)
    window.show_page(SETTINGS)
    window.settings_page.setProperty("help", STATES)
    window.settings_page.lease.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_F1)
    assert window._page == HELP
    assert top(window.help_page.scroll) <= window.help_page.cards[STATES].y()
    window._top._theme.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_F1)
    last = window.help_page.scroll.verticalScrollBar().maximum()
    assert top(window.help_page.scroll) == min(window.help_page.cards[KEYS].y(), last)


def top(scroll: QScrollArea) -> int:
    return scroll.verticalScrollBar().value()


def test_no_text_of_help_is_cut(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.show_page(HELP)
    for topic in TOPICS:
        for label in window.help_page.cards[topic.key].findChildren(QLabel):
            assert label.height() >= label.heightForWidth(label.width())
