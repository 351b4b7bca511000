"""Start by mouse and keyboard, and a stranger's profile before its first run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
import start_shown
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from start_shown import stranger_profile

from gui import reading
from gui.document import Document
from gui.doors import Doors
from gui.start.entries import Removable
from gui.start.page import StartPage
from gui.start.pairs import PairsDialog
from gui.stranger import StrangerDialog, Strangers, plain, told
from gui.theme import sheet
from gui.theme.look import Look
from gui.widgets.basic import Button
from lab import draft, new_lab, recent
from lab.analysis import before_after, published
from lab.draft import Draft, Recovered

FOREVER_MS = 60_000


@pytest.fixture
def look(qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    look = Look("light")
    sheet.dress(qapp, look)
    return look


@pytest.fixture
def page(look: Look, qtbot: QtBot) -> StartPage:
    page = StartPage(look)
    page.resize(1440, 1200)
    qtbot.addWidget(page)
    page.show()
    return page


def pressed(qtbot: QtBot, widget: QWidget) -> None:
    QApplication.processEvents()
    assert widget.isVisible()
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)


# Start ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("many", "listed", "hint"), [(0, 0, ""), (1, 1, "Ctrl 1"), (12, 9, "Ctrl 1 … 9")])
def test_as_many_recent_profiles_as_have_keys(
    page: StartPage, tmp_path: Path, many: int, listed: int, hint: str
) -> None:
    page.show_profiles(start_shown.profiles(tmp_path, many))
    assert len(page.profiles()) == listed
    assert page._recent_card._hint.text() == hint
    assert page.another.accessibleName() == ("Open another profile" if many else "Open a profile")


def test_in_the_smallest_window_the_lists_are_seen_without_scrolling(page: StartPage, tmp_path: Path) -> None:
    page.show_profiles(start_shown.profiles(tmp_path, 3))
    page.resize(1280, 672)
    QApplication.processEvents()
    last = page.published_entries[-1]
    assert last.mapTo(page, last.rect().bottomLeft()).y() <= page.height()


def test_its_cards_ask_for_what_they_name(page: StartPage, qtbot: QtBot) -> None:
    buttons = {button.accessibleName(): button for button in page.findChildren(Button)}
    for name, signal in (("New lab", page.new_lab), ("Open a run", page.run), ("Make the hosts", page.made)):
        with qtbot.waitSignal(signal, timeout=FOREVER_MS):
            pressed(qtbot, buttons[name])
    with qtbot.waitSignal(page.profile, timeout=FOREVER_MS):
        pressed(qtbot, page.another)


def test_a_recent_profile_is_opened_by_a_press_and_by_its_number(
    page: StartPage, qtbot: QtBot, tmp_path: Path
) -> None:
    page.show_profiles(start_shown.profiles(tmp_path))
    QApplication.processEvents()
    assert [one.name for one in page.profiles()] == ["Minsk office", "Vienna"]
    with qtbot.waitSignal(page.known, timeout=FOREVER_MS) as heard:
        pressed(qtbot, page._profiles[1][0])
    assert heard.args == [tmp_path / "vienna.toml"]
    with qtbot.waitActive(page):
        page.activateWindow()
    with qtbot.waitSignal(page.known, timeout=FOREVER_MS) as heard:
        qtbot.keyClick(page, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert heard.args == [tmp_path / "minsk.toml"]


def test_one_that_is_gone_is_shown_as_gone_and_taken_out(
    page: StartPage, qtbot: QtBot, tmp_path: Path
) -> None:
    page.show_profiles(start_shown.profiles(tmp_path))
    (line,) = page.findChildren(Removable)
    with qtbot.waitSignal(page.forgotten, timeout=FOREVER_MS) as heard:
        pressed(qtbot, line.button)
    assert heard.args == [tmp_path / "an.toml"]


def test_runs_are_listed_as_before(page: StartPage, qtbot: QtBot) -> None:
    page.show_runs(start_shown.heads())
    QApplication.processEvents()
    assert len(page.heads()) == 3
    with qtbot.waitSignal(page.recent, timeout=FOREVER_MS) as heard:
        pressed(qtbot, page._heads[1][0])
    assert heard.args == [start_shown.heads()[1].file]
    page.show_runs(())
    assert not page._list_card.isVisible()


def test_published_figures_are_all_listed_and_can_be_had(page: StartPage, qtbot: QtBot) -> None:
    heard: list[object] = []
    page.published.connect(heard.append)
    for entry in page.published_entries:
        pressed(qtbot, entry)
    assert set(heard) == {*published.names(), *before_after.names()}
    for name in heard:
        (found,) = reading.published(str(name))
        assert found is not None


def test_everything_on_it_is_reached_by_tab_and_has_a_name(
    page: StartPage, qtbot: QtBot, tmp_path: Path
) -> None:
    page.show_profiles(start_shown.profiles(tmp_path))
    page.show_runs(start_shown.heads())
    page.offer_recovered((Recovered(None, "x", tmp_path / "x.json"),))
    with qtbot.waitActive(page):
        page.activateWindow()
    QApplication.processEvents()
    wanted = {
        widget
        for widget in page.findChildren(QWidget)
        if widget.isVisible() and widget.isEnabled() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    }
    assert not [type(widget).__name__ for widget in wanted if not widget.accessibleName()]
    seen = set()
    page.another.setFocus()
    for _ in range(2 * len(wanted) + 2):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        seen.add(QApplication.focusWidget())
    assert wanted <= seen


# what a crash left ----------------------------------------------------------------------------------------------


def crashed(folder: Path, path: Path | None, text: str) -> None:
    """What a program that was killed leaves: its draft, under a process that is gone."""
    made = Draft(draft.NEW, keep_in=folder) if path is None else Draft.opened(path, keep_in=folder)
    made.replace("edit", text)
    assert made._kept is not None
    kept = made._kept.read_text().replace(f'"pid": {os.getpid()}', '"pid": 999999999')
    made._kept.with_name(f"{'new' if path is None else path.stem}.json").write_text(kept)
    made.close()


def test_what_a_crash_left_is_offered_opened_and_thrown_away(
    page: StartPage, qtbot: QtBot, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    path = tmp_path / "minsk.toml"
    text = new_lab.text(new_lab.NewLab(name="Minsk", hosts=()))
    path.write_text(text)
    crashed(kept, path, text.replace("Minsk", "Minsk again"))
    crashed(kept, None, text)
    found = draft.recovered(kept)
    assert len(found) == 2
    page.offer_recovered(sorted(found, key=lambda one: one.path is None))
    with qtbot.waitSignal(page.recovered, timeout=FOREVER_MS) as heard:
        pressed(qtbot, page.recovery.take)
    restored = draft.restored(heard.args[0], keep_in=kept)
    assert restored.path == path
    assert 'name = "Minsk again"' in restored.text
    assert restored.changed
    restored.undo()
    assert restored.text == text
    assert page.recovery.isVisible()
    with qtbot.waitSignal(page.thrown, timeout=FOREVER_MS) as heard:
        pressed(qtbot, page.recovery.away)
    draft.forget(heard.args[0])
    assert draft.recovered(kept) == ()
    assert not page.recovery.isVisible()


def test_a_draft_whose_file_is_gone_is_restored_without_one(tmp_path: Path) -> None:
    kept = tmp_path / "x.json"
    kept.write_text("{}")
    restored = draft.restored(Recovered(tmp_path / "gone.toml", 'schema = 1\nname = "x"\n', kept))
    assert restored.path is None
    assert 'name = "x"' in restored.text
    assert not kept.exists()


# a stranger's profile -------------------------------------------------------------------------------------------


@pytest.fixture
def window(look: Look, qtbot: QtBot) -> QWidget:
    widget = QWidget()
    widget.resize(1280, 720)
    qtbot.addWidget(widget)
    widget.show()
    return widget


class Asked:
    """A document, whether it is a stranger's, and what was done."""

    def __init__(self, look: Look, window: QWidget, folder: Path) -> None:
        self.path = stranger_profile(folder).path
        self.path.write_text(stranger_text(folder), "utf-8")
        self.document = Document(keep_in=folder / "kept")
        self.doors = Doors(own=lambda lab: False)
        self.strangers = Strangers(look, self.doors, self.document, window)
        self.window = window
        self.ran: list[str] = []

    def before(self) -> None:
        self.strangers.before(lambda: self.ran.append("ran"), lambda: self.ran.append("left"))

    def dialog(self, qtbot: QtBot) -> StrangerDialog:
        qtbot.waitUntil(lambda: bool(self._open()), timeout=FOREVER_MS)
        return self._open()[0]

    def _open(self) -> list[StrangerDialog]:
        return [one for one in self.window.findChildren(StrangerDialog) if one.isVisible()]


def stranger_text(folder: Path) -> str:
    return new_lab.text(
        new_lab.NewLab(
            name="Minsk office",
            hosts=(
                new_lab.Entry(
                    role=start_shown.Role.SERVER, ssh="lab@server.example.com", address="198.51.100.10"
                ),
                new_lab.Entry(role=start_shown.Role.CLIENT, ssh="desk-1", jump="gate.example.com"),
            ),
        )
    )


@pytest.fixture
def asked(look: Look, window: QWidget, tmp_path: Path) -> Asked:
    return Asked(look, window, tmp_path)


def test_before_its_first_run_every_command_is_shown_and_where(asked: Asked, qtbot: QtBot) -> None:
    asked.document.open(asked.path)
    assert asked.strangers.strange
    asked.before()
    dialog = asked.dialog(qtbot)
    said = dialog.text.toPlainText()
    assert "On server (server, lab@server.example.com):" in said
    assert "svnadmin create SCRATCH/repository" in said
    assert "On desk-1 (client, desk-1):\n    svn checkout" in said
    assert "desk-1: by way of gate.example.com" in said
    assert "What is never touched" in said
    assert asked.ran == []
    pressed(qtbot, dialog.run)
    assert asked.ran == ["ran"]
    asked.before()
    assert asked.ran == ["ran", "ran"]


def test_esc_and_enter_run_nothing_and_it_is_asked_again(asked: Asked, qtbot: QtBot) -> None:
    asked.document.open(asked.path)
    for key in (Qt.Key.Key_Escape, Qt.Key.Key_Return):
        asked.before()
        dialog = asked.dialog(qtbot)
        qtbot.keyClick(dialog, key)
        qtbot.waitUntil(lambda dialog=dialog: not dialog.isVisible(), timeout=FOREVER_MS)
    assert asked.ran == ["left", "left"]
    assert asked.strangers.strange


def test_what_was_agreed_to_is_known_when_it_is_opened_again(asked: Asked, qtbot: QtBot) -> None:
    asked.document.open(asked.path)
    asked.before()
    pressed(qtbot, asked.dialog(qtbot).run)
    asked.path.write_text(f"# with a remark\n{asked.path.read_text()}")
    asked.document.open(asked.path)
    assert not asked.strangers.strange
    asked.path.write_text(asked.path.read_text().replace("attempts = 4", "attempts = 5"))
    asked.document.open(asked.path)
    assert asked.strangers.strange


def test_what_was_begun_and_saved_here_is_no_strangers(asked: Asked, tmp_path: Path) -> None:
    asked.document.begin(stranger_text(tmp_path))
    assert not asked.strangers.strange
    asked.before()
    assert asked.ran == ["ran"]
    path = tmp_path / "own.toml"
    assert asked.document.save(path)
    asked.document.open(path)
    assert not asked.strangers.strange


def test_to_save_a_strangers_profile_is_not_to_agree_to_it(asked: Asked, tmp_path: Path) -> None:
    asked.document.open(asked.path)
    asked.document.put("rename", ("name",), "Mine")
    assert asked.document.save()
    assert asked.strangers.strange
    assert not recent.familiar(asked.path.read_text())


def test_a_lab_that_branchlab_made_is_never_asked_about(asked: Asked) -> None:
    asked.doors.own = lambda lab: True
    asked.document.open(asked.path)
    asked.before()
    assert asked.ran == ["ran"]


def test_another_profile_that_came_meanwhile_is_not_run_by_that_answer(asked: Asked, qtbot: QtBot) -> None:
    asked.document.open(asked.path)
    asked.before()
    dialog = asked.dialog(qtbot)
    asked.document.put("attack", ("experiments", 0, "attempts"), 9)
    pressed(qtbot, dialog.run)
    assert asked.ran == ["left"]


def test_why_its_commands_cannot_be_told_is_told(asked: Asked, qtbot: QtBot) -> None:
    asked.path.write_text(asked.path.read_text().replace('"subversion"', '"nothing-known"'))
    asked.document.open(asked.path)
    with qtbot.waitSignal(asked.strangers.crashed, timeout=FOREVER_MS):
        asked.before()
    assert asked.ran == []


def test_signs_that_are_not_seen_or_turn_others_round_are_shown() -> None:
    assert plain("a\u202eb\x1b[2K\n\u200bc") == "a\\u202eb\\u001b[2K\n\\u200bc"


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720)])
@pytest.mark.parametrize("name", ["stranger", *before_after.names()])
def test_the_dialogs_fit_and_can_be_left_by_key(
    look: Look, window: QWidget, qtbot: QtBot, tmp_path: Path, size: tuple[int, int], name: str
) -> None:
    window.resize(*size)
    makers: dict[str, Callable[[], StrangerDialog | PairsDialog]] = {
        "stranger": lambda: StrangerDialog(look, "x.toml", next(told(stranger_profile(tmp_path))), window)
    }
    dialog = makers.get(name, lambda: PairsDialog(look, before_after.pairs(name), window))()
    dialog.open()
    QApplication.processEvents()
    assert dialog.height() <= window.height()
    assert dialog.width() <= window.width()
    if isinstance(dialog, PairsDialog):
        dialog.table.setFocus()
        qtbot.keyClick(dialog.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        assert QGuiApplication.clipboard().text().count("\n") == dialog.table.rowCount()
    with qtbot.waitSignal(dialog.rejected, timeout=FOREVER_MS):
        qtbot.keyClick(dialog, Qt.Key.Key_Escape)
