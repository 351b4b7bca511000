"""The page *Experiment*: edited by mouse and keys, every edit one step of the profile, the right column always true."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from experiment_shown import OFFICE, Shown, settle, shown
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from gui.experiment import typed
from gui.experiment.asked import experiments
from gui.experiment.commands import CommandsDialog
from gui.experiment.states import title
from gui.experiment.table import AWAY, DELAY, JITTER, LINE, LOSS, PRICE, ROW
from gui.help.topics import TOPICS
from lab import design
from lab.errors import BadInput
from lab.model import DISABLED, Experiment, Line, ProxyState

Open = Callable[..., Shown]


@pytest.fixture
def opened(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens a window with a profile in it."""
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))

    def make(text: str = OFFICE, size: tuple[int, int] = (1440, 900)) -> Shown:
        window = shown(text, size=size)
        qtbot.addWidget(window)
        window.activateWindow()
        settle(window, 0.05)
        return window

    return make


def tables(window: Shown) -> list[dict[str, object]]:
    assert window.document.draft is not None
    found = tomllib.loads(window.document.draft.text)["experiments"]
    assert isinstance(found, list)
    return found


def first(window: Shown) -> dict[str, object]:
    return tables(window)[0]


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def press(widget: QAbstractButton) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def cell(window: Shown, row: int, column: int) -> QPoint:
    table = window.page.lines.table
    return table.visualRect(table.model().index(row, column)).center()


def edit(window: Shown, row: int, column: int, text: str) -> QLineEdit:
    """Press a cell twice and type; the editor, before Enter."""
    table = window.page.lines.table
    at = cell(window, row, column)
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    QTest.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    (editor,) = [one for one in table.viewport().findChildren(QLineEdit) if one.isVisible()]
    editor.selectAll()
    QTest.keyClicks(editor, text)
    return editor


def retype(entry: QLineEdit, text: str, end: Qt.Key = Qt.Key.Key_Return) -> None:
    entry.setFocus()
    entry.selectAll()
    QTest.keyClicks(entry, text)
    QTest.keyClick(entry, end)


# lines


def test_a_typed_line_says_what_it_was_understood_as_and_enter_adds_it(opened: Open) -> None:
    window = opened()
    card = window.page.lines
    card.entry.setFocus()
    QTest.keyClicks(card.entry, "2M/4M 40 ms")
    assert card.verdict.label.text() == "= 2/4 Mbit/s, 40 ms delay"
    assert card.hint.text() == "Enter adds it"
    QTest.keyClick(card.entry, Qt.Key.Key_Return)
    assert first(window)["lines"][-1] == "2/4 Mbit/s 40 ms"  # type: ignore[index]
    assert card.entry.text() == ""
    assert window.page.trials == 420
    assert window.document.undoes == "add the line 2/4 Mbit/s 40 ms"
    window.document.undo()
    assert window.page.trials == 360
    assert card.table.lines.rowCount() == 6


def test_what_may_mean_two_things_is_refused_with_the_cure_and_only_on_leaving(opened: Open) -> None:
    window = opened()
    card = window.page.lines
    card.entry.setFocus()
    QTest.keyClicks(card.entry, "1,024/2,048 kbit/s")
    assert not card.entry.property("wrong")
    QTest.keyClick(card.entry, Qt.Key.Key_Return)
    assert card.entry.property("wrong")
    assert card.verdict.label.text() == "1,024 or 1.024? Write 1024."
    assert card.entry.accessibleDescription() == "1,024 or 1.024? Write 1024."
    assert len(first(window)["lines"]) == 6  # type: ignore[arg-type]
    QTest.keyClick(card.entry, Qt.Key.Key_Backspace)
    assert not card.entry.property("wrong")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("64/128 kbit/s 1,5 ms", Line(upload_bps=64_000, download_bps=128_000, delay_s=0.0015)),
        ("0,125/1 Mbit/s", Line(upload_bps=125_000, download_bps=1_000_000)),
        ("128 down 64 up", Line(upload_bps=64_000, download_bps=128_000)),
    ],
)
def test_a_decimal_comma_is_as_good_as_a_point(text: str, line: Line) -> None:
    assert typed.line(text).line == line


def test_a_line_that_no_kernel_can_hold_is_refused_while_it_is_typed() -> None:
    with pytest.raises(BadInput, match="lets nothing through"):
        typed.line("64/128 kbit/s loss 100 %")


def test_a_line_that_stands_there_is_not_added_twice(opened: Open) -> None:
    window = opened()
    card = window.page.lines
    retype(card.entry, "64/128")
    assert "stands there already" in card.verdict.label.text()
    assert len(first(window)["lines"]) == 6  # type: ignore[arg-type]


def test_a_cell_is_edited_in_its_place(opened: Open) -> None:
    window = opened()
    editor = edit(window, 4, DELAY, "40")
    assert window.page.lines.verdict.label.text() == "= 1/2 Mbit/s, 40 ms delay"
    QTest.keyClick(editor, Qt.Key.Key_Tab)
    again = window.page.lines.table.viewport().findChildren(QLineEdit)[-1]
    assert again.accessibleName() == "Jitter of 1/2\N{NO-BREAK SPACE}Mbit/s"
    QTest.keyClicks(again, "5 ms")
    QTest.keyClick(again, Qt.Key.Key_Return)
    assert first(window)["lines"][4] == "1/2 Mbit/s 40 ms jitter 5 ms"  # type: ignore[index]
    assert window.document.undoes == "change the jitter of 1/2 Mbit/s 40 ms"
    assert "# the old contract" in window.document.draft.text  # type: ignore[union-attr]


def test_a_wrong_cell_stays_open_and_says_what_to_write(opened: Open) -> None:
    window = opened()
    before = window.document.draft.text  # type: ignore[union-attr]
    editor = edit(window, 0, JITTER, "5 ms")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    assert editor.isVisible()
    assert editor.property("wrong")
    assert "give a delay of 5 ms first" in window.page.lines.verdict.label.text()
    QTest.keyClick(editor, Qt.Key.Key_Escape)
    assert window.document.draft.text == before  # type: ignore[union-attr]
    editor = edit(window, 0, LOSS, "1,5")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    assert first(window)["lines"][0] == "64/128 kbit/s loss 1.5 %"  # type: ignore[index]


def test_a_price_goes_into_the_profile_and_out_again(opened: Open) -> None:
    window = opened()
    QTest.keyClick(edit(window, 5, PRICE, "45,5"), Qt.Key.Key_Return)
    assert first(window)["lines"][5] == {"line": "2/4 Mbit/s", "price": 45.5}  # type: ignore[index]
    assert window.page.experiment is not None
    assert window.page.experiment.price(Line(upload_bps=2_000_000, download_bps=4_000_000)) == 45.5
    QTest.keyClick(edit(window, 5, PRICE, "-"), Qt.Key.Key_Return)
    assert first(window)["lines"][5] == "2/4 Mbit/s"  # type: ignore[index]


def test_a_line_is_removed_by_its_cross_and_by_delete(opened: Open) -> None:
    window = opened()
    table = window.page.lines.table
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=cell(window, 0, AWAY))
    assert first(window)["lines"][0] == "128/256 kbit/s"  # type: ignore[index]
    assert window.document.undoes == "remove the line 64/128 kbit/s"
    table.setFocus()
    table.go(0)
    QTest.keyClick(table, Qt.Key.Key_Delete)
    assert first(window)["lines"][0] == "256/512 kbit/s"  # type: ignore[index]
    assert table.currentIndex().row() == 0


def test_lines_are_put_in_order_by_keys_and_their_comments_go_with_them(opened: Open) -> None:
    window = opened()
    table = window.page.lines.table
    table.setFocus()
    table.go(0, DELAY)
    QTest.keyClick(table, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    QTest.keyClick(table, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert first(window)["lines"][:3] == ["128/256 kbit/s", "256/512 kbit/s", "64/128 kbit/s"]  # type: ignore[index]
    assert '"64/128 kbit/s",   # the old contract' in window.document.draft.text  # type: ignore[union-attr]
    assert (table.currentIndex().row(), table.currentIndex().column()) == (2, DELAY)
    assert window.document.undo() == "move the line 64/128 kbit/s"


def test_a_line_is_dragged_to_its_place(opened: Open) -> None:
    window = opened()
    table = window.page.lines.table
    view, left = table.viewport(), Qt.MouseButton.LeftButton
    start = cell(window, 5, LINE)
    QTest.mousePress(view, left, pos=start)
    QTest.mouseMove(view, start - QPoint(0, ROW))
    QTest.mouseMove(view, QPoint(start.x(), 2))
    QTest.mouseRelease(view, left, pos=QPoint(start.x(), 2))
    assert first(window)["lines"][0] == "2/4 Mbit/s"  # type: ignore[index]
    assert not view.findChildren(QLineEdit)


def test_presets_add_what_is_not_there_yet_in_one_step(opened: Open) -> None:
    window = opened()
    card = window.page.lines
    press(card.preset_buttons["published"])
    assert "stand there already" in card.verdict.label.text()
    press(card.preset_buttons["adsl"])
    assert first(window)["lines"][-2:] == ["1/8 Mbit/s 12 ms", "1/16 Mbit/s 12 ms"]  # type: ignore[index]
    assert window.document.undo() == "add the lines of ADSL"
    card.table.go(5)
    card.upload_matters()
    added = first(window)["lines"][6:]  # type: ignore[index]
    assert added == ["500/4000 kbit/s", "1/4 Mbit/s", "4/4 Mbit/s"]
    window.document.undo()
    assert len(first(window)["lines"]) == 6  # type: ignore[arg-type]


def test_more_presets_has_as_it_is(opened: Open) -> None:
    window = opened()
    card = window.page.lines
    press(card.more)
    texts = [action.text() for action in card.menu.actions()]
    assert any(text.startswith("Satellite") for text in texts)
    next(action for action in card.menu.actions() if action.text().startswith("As it is")).trigger()
    card.menu.hide()
    assert first(window)["lines"][-1] == "as it is"  # type: ignore[index]
    assert card.table.lines.text(6, DELAY) == "—"


def test_the_table_is_copied_with_its_head(opened: Open) -> None:
    window = opened()
    table = window.page.lines.table
    table.setFocus()
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    rows = QGuiApplication.clipboard().text().splitlines()
    assert rows[0].startswith("Line, upload/download\tDelay, one way\tJitter")
    assert rows[1].split("\t")[0] == "64/128 kbit/s"


# states, operations, how often


def test_a_state_is_asked_for_and_left_out_by_its_card(opened: Open) -> None:
    window = opened()
    cards = window.page.states.cards
    press(cards[ProxyState(full=90)])
    assert first(window)["states"] == ["disabled", "0 %", "100 %"]
    assert window.page.trials == 6 * (3 * 3 + 3) * 4
    QTest.keyClick(cards[ProxyState(full=90)], Qt.Key.Key_Space)
    assert first(window)["states"] == ["disabled", "0 %", "90 %", "100 %"]
    window.document.undo()
    window.document.undo()
    assert first(window)["states"] == ["disabled", "0 %", {"purge": "10 %"}, "100 %"]


def test_another_state_is_typed_as_n_percent_and_said_as_purged_too(opened: Open) -> None:
    window = opened()
    card = window.page.states
    press(card.another.open_button)
    QTest.keyClicks(card.another.entry, "62,5")
    assert plain(card.another._said.label.text()) == "= 62.5 % full, 37.5 % purged"
    QTest.keyClick(card.another.entry, Qt.Key.Key_Return)
    state = ProxyState(full=62.5)
    assert first(window)["states"][2] == "62.5 %"  # type: ignore[index]
    assert card.cards[state].isChecked()
    assert "37.5\N{NO-BREAK SPACE}% purged" in card.cards[state].accessibleName()
    press(card.cards[state])  # left out, the card stays to be asked for again
    assert not card.cards[state].isChecked()
    assert title(DISABLED) == "Disabled"


def test_more_than_all_is_no_state(opened: Open) -> None:
    window = opened()
    card = window.page.states
    press(card.another.open_button)
    QTest.keyClicks(card.another.entry, "120")
    QTest.keyClick(card.another.entry, Qt.Key.Key_Return)
    assert card.another.entry.property("wrong")
    assert len(first(window)["states"]) == 4  # type: ignore[arg-type]
    QTest.keyClick(card.another.entry, Qt.Key.Key_Escape)
    QTest.keyClick(card.another.entry, Qt.Key.Key_Escape)
    assert card.another.open_button.isVisible()


def test_operations_say_what_they_do_on_the_wire_and_are_asked_for_by_their_cards(opened: Open) -> None:
    window = opened()
    cards = window.page.what.cards
    assert [cards[name].about for name in ("get", "check-in", "diff")] == [
        "uses the proxy",
        "asks the server",
        "no traffic",
    ]
    press(cards["check-in"])
    assert first(window)["operations"] == ["get", "check-out", "undo", "history", "diff"]
    assert first(window)["disabled_only"] == ["check-out", "history"]
    assert window.document.undoes == "leave out Check-In"
    press(cards["check-in"])
    assert first(window)["operations"] == ["get", "check-out", "undo", "check-in", "history", "diff"]


def test_attempts_are_stepped_and_typed(opened: Open) -> None:
    window = opened()
    entry = window.page.often.attempts.entry
    entry.setFocus()
    QTest.keyClick(entry, Qt.Key.Key_Up)
    assert first(window)["attempts"] == 5
    retype(entry, "2")
    assert first(window)["attempts"] == 2
    assert window.page.beside.number.text() == "180"
    said = [text for _, text, _ in window.page.beside._said]
    assert any("Only one of each cell is counted" in text for text in said)


def test_attempts_that_leave_none_to_count_are_told_and_nothing_can_be_run(opened: Open) -> None:
    window = opened()
    retype(window.page.often.attempts.entry, "1")
    assert window.page.experiment is None
    assert not window.page.beside.start.isEnabled()
    assert window.page.beside.cells.text() == "Once one thing is put right."
    assert any("write attempts = 4 or more" in text for _, text, _ in window.page.beside._said)
    assert window.page.often.attempts.entry.text() == "1"  # what is there is shown, not what was right last
    window.document.undo()
    assert window.page.trials == 360


def test_a_limit_order_and_seed_are_kept(opened: Open) -> None:
    window = opened()
    retype(window.page.often.limit.entry, "15")
    assert first(window)["limit"] == "15 min"
    assert window.page.experiment is not None
    assert window.page.experiment.limit_s == 900
    retype(window.page.often.limit.entry, "0 s")
    assert "from 1 s to 24 h" in window.page.often.limit._verdict.text()
    order = window.page.often.order
    order.setFocus()
    QTest.keyClick(order, Qt.Key.Key_Down)
    order.activated.emit(order.currentIndex())
    assert first(window)["order"] == "published"


def test_lines_may_be_repeated_until_they_are_stable(opened: Open) -> None:
    window = opened()
    often = window.page.often
    assert not often.most.isVisible()
    often.until.setFocus()
    QTest.keyClick(often.until, Qt.Key.Key_Down)
    QTest.keyClick(often.until, Qt.Key.Key_Down)
    assert first(window)["until"] == {"within": "5 %", "at_most": 12}
    assert window.document.undoes == "repeat until all are within 5 %"
    assert window.page.beside.start.word == "Run up to 1,080 trials"
    assert window.page.beside.cells.text().startswith("90 cells × 4 to 12 attempts, until they are stable.")
    retype(often.most.entry, "4")
    assert window.page.experiment is None
    assert any("write at_most = 10" in text for _, text, _ in window.page.beside._said)
    retype(often.most.entry, "8")
    assert window.page.trials == 720
    QTest.keyClick(often.until, Qt.Key.Key_Home)
    assert "until" not in first(window)
    assert window.page.trials == 360


def test_a_repository_as_it_is_asks_for_a_scratch_place(opened: Open) -> None:
    window = opened()
    what = window.page.what
    what.data.setCurrentIndex(2)
    what.data.activated.emit(2)
    assert "data" not in first(window)
    assert what.scratch.isVisible()
    assert "branchlab-scratch" in what.scratch._verdict.text()
    assert window.page.experiment is None
    retype(what.scratch.entry, "http://{server}/svn/branchlab-scratch")
    assert window.page.experiment is not None
    assert window.page.experiment.scratch == "http://{server}/svn/branchlab-scratch"


def test_a_wheel_over_a_list_box_scrolls_the_page_and_changes_nothing(opened: Open) -> None:
    window = opened(size=(1280, 720))
    data, page = window.page.what.data, window.page
    page._scroll.verticalScrollBar().setValue(20)
    point = data.mapTo(window, data.rect().center())
    QTest.wheelEvent(window.windowHandle(), QPointF(point), QPoint(0, 120))
    assert page._scroll.verticalScrollBar().value() == 0
    assert first(window)["data"] == "2008"


def test_with_nothing_typed_undo_is_the_windows(opened: Open) -> None:
    window = opened()
    undone: list[str] = []
    shortcut = QShortcut(QKeySequence.StandardKey.Undo, window)
    shortcut.activated.connect(lambda: undone.append(window.document.undo()))
    retype(window.page.lines.entry, "5/20M")
    QTest.keyClick(window.page.lines.entry, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert undone == ["add the line 5/20 Mbit/s"]
    QTest.keyClicks(window.page.lines.entry, "abc")
    QTest.keyClick(window.page.lines.entry, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert len(undone) == 1  # what is typed is taken back first


# beside


def test_the_right_column_says_what_the_plan_is_and_how_long_it_takes(opened: Open) -> None:
    window = opened()
    beside = window.page.beside
    assert beside.number.text() == "360"
    assert beside.cells.text() == "90 cells × 4 attempts. The first of each is a warm-up: 270 are counted."
    assert beside.start.word == "Run 360 trials"
    assert plain(beside.duration.text()) == "2 h 15 – 7 h 35 min"
    assert "published in 2008" in beside.basis.text()
    assert beside.clock.text().startswith("Started now, done between ")
    assert plain(window.page.lines.table.lines.text(0, 5)).startswith("~ 2 h")
    experiment = window.page.experiment
    assert experiment is not None
    assert design.size(experiment).trials == len(design.trials(experiment))


def test_one_trial_is_told_step_by_step_and_all_commands_can_be_copied(opened: Open) -> None:
    window = opened()
    hosts = [(step.host, step.text) for step in window.page.beside._steps]
    assert hosts[0] == ("proxy", "cache to 90 %: fill, then purge 10 %")
    assert hosts[-1][0] == "desk-1"
    assert hosts[-1][1].startswith("svn checkout --ignore-externals")
    press(window.page.beside.all)
    dialog = window.findChild(CommandsDialog)
    assert dialog is not None
    press(dialog.copy)
    text = QGuiApplication.clipboard().text()
    assert "# On proxy, in the whole run" in text
    assert "limit the line to 64/128 kbit/s for 198.51.100.31, 198.51.100.32, 198.51.100.23" in text
    dialog.reject()


def test_a_doubt_is_cured_by_one_press(opened: Open) -> None:
    window = opened()
    beside = window.page.beside
    assert [text for _, text, _ in beside._said] == ["None of the six lines has a delay. Real ones do."]
    cure = next(
        b for b in beside.findChildren(QAbstractButton) if b.text() == "Add 20\N{NO-BREAK SPACE}ms each"
    )
    press(cure)
    assert all(str(line).endswith(" 20 ms") for line in first(window)["lines"])  # type: ignore[attr-defined]
    assert beside._said == ()
    assert window.document.undo() == "add a delay of 20 ms to every line"


def test_the_filled_button_gives_the_experiment_to_be_run(opened: Open, qtbot: QtBot) -> None:
    window = opened()
    with qtbot.waitSignal(window.page.run, timeout=2000) as heard:
        press(window.page.beside.start)
    (experiment,) = heard.args
    assert isinstance(experiment, Experiment)
    assert experiment.name == "Do we need the proxy?"
    window.page.hold("A run is going.")
    assert not window.page.beside.start.isEnabled()
    window.page.hold("")
    assert window.page.beside.start.isEnabled()


def test_what_is_wrong_elsewhere_in_the_profile_is_told_with_its_place(opened: Open) -> None:
    window = opened(OFFICE.replace('lines = ["512/1024 kbit/s"]', "lines = []"))
    assert window.page.experiment is None
    assert any(text.startswith("Experiment 2: ") for _, text, _ in window.page.beside._said)


# several experiments


def test_experiments_are_duplicated_renamed_chosen_and_removed(opened: Open) -> None:
    window = opened()
    page = window.page
    press(page.duplicates)
    assert [table["name"] for table in tables(window)] == [
        "Do we need the proxy?",
        "Do we need the proxy?, copy",
        "Quick look",
    ]
    assert page.head.title.text() == "Do we need the proxy?, copy"
    QTest.keyClick(page.beside.start, Qt.Key.Key_F2)
    QTest.keyClicks(page._title, "With delay")
    QTest.keyClick(page._title, Qt.Key.Key_Return)
    assert tables(window)[1]["name"] == "With delay"
    assert page.head.title.text() == "With delay"
    page.remove()
    assert [table["name"] for table in tables(window)] == ["Do we need the proxy?", "Quick look"]
    assert page.head.title.text() == "Quick look"  # what stands in its place
    window.document.undo()
    page.choose("Do we need the proxy?")
    assert page.head.title.text() == "Do we need the proxy?"
    press(page.others)
    assert [a.text() for a in page.menu.actions()][:3] == [
        "Do we need the proxy?",
        "With delay",
        "Quick look",
    ]
    page.menu.hide()
    page.add()
    assert page.trials == 2 * 2 * 4 * 4
    assert page.head.title.text() == "New experiment"


def test_experiments_are_put_in_order_by_the_menu_with_their_comments(opened: Open) -> None:
    head = '[[experiments]]\nname = "Quick look"'
    text = OFFICE.replace(head, f"# the short one\n{head}")
    assert text != OFFICE
    window = opened(text)
    page = window.page

    def entries() -> dict[str, QAction]:
        press(page.others)
        page.menu.hide()
        return {action.text(): action for action in page.menu.actions()}

    assert not entries()["Move up"].isEnabled()
    entries()["Move down"].trigger()
    assert [table["name"] for table in tables(window)] == ["Quick look", "Do we need the proxy?"]
    assert page.head.title.text() == "Do we need the proxy?"
    assert not entries()["Move down"].isEnabled()
    assert window.document.draft is not None
    assert f"# the short one\n{head}" in window.document.draft.text
    window.document.undo()
    assert window.document.draft.text == text
    assert page.head.title.text() == "Do we need the proxy?"


def test_undo_of_a_copy_shows_what_was_copied(opened: Open) -> None:
    window = opened()
    press(window.page.duplicates)
    window.document.undo()
    assert window.page.head.title.text() == "Do we need the proxy?"
    window.document.redo()
    window.page.choose("Quick look")
    window.page.add()
    window.document.undo()
    assert window.page.head.title.text() == "Quick look"


def test_what_the_states_mean_can_be_asked_for(opened: Open) -> None:
    window = opened()
    press(window.page.states.why)
    assert window.topics == ["states"]
    keys = {topic.key for topic in TOPICS}
    cards = (window.page.states, window.page.lines, window.page.often)
    assert {card.property("help") for card in cards} <= keys


def test_a_name_that_is_taken_is_refused(opened: Open) -> None:
    window = opened()
    window.page.rename()
    QTest.keyClicks(window.page._title, "Quick look")
    QTest.keyClick(window.page._title, Qt.Key.Key_Return)
    assert window.page._title.isVisible()
    assert "another experiment" in window.page._title.toolTip()
    QTest.keyClick(window.page._title, Qt.Key.Key_Escape)
    assert first(window)["name"] == "Do we need the proxy?"


def test_a_profile_without_experiments_offers_one(opened: Open) -> None:
    head = OFFICE.partition("[[experiments]]")[0]
    window = opened(head)
    page = window.page
    assert page.experiment is None
    assert page._empty.isVisible()
    assert not page._middle.isVisible()
    buttons = [b for b in page._empty.findChildren(QAbstractButton) if b.isVisible()]
    press(buttons[0])
    assert tables(window)[0]["name"] == "New experiment"
    assert page._middle.isVisible()


def test_without_a_profile_one_is_wanted(opened: Open, qtbot: QtBot) -> None:
    window = opened("")
    with qtbot.waitSignal(window.page.wanted, timeout=2000):
        press(window.page._empty.findChildren(QAbstractButton)[0])


def test_text_that_cannot_be_read_shows_what_is_there(opened: Open) -> None:
    window = opened(
        OFFICE.replace('"256/512 kbit/s",', '"256/512 Kib/s",').replace("attempts = 4", 'attempts = "x"')
    )
    assert window.page.lines.table.lines.text(2, LINE) == "256/512 Kib/s"
    assert window.page.experiment is None
    assert experiments(None) == ()


# keyboard, names, sizes


def test_everything_is_reached_by_tab_and_has_a_name(opened: Open) -> None:
    window = opened()
    page = window.page
    page.what.vcs.setFocus(Qt.FocusReason.TabFocusReason)
    met: list[QWidget] = []
    for _ in range(60):
        focus = QApplication.focusWidget()
        assert focus is not None
        if not page.isAncestorOf(focus) or focus in met:
            break
        met.append(focus)
        QTest.keyClick(focus, Qt.Key.Key_Tab)
    assert {page.lines.table, page.lines.entry, page.often.attempts.entry, page.beside.start} <= set(met)
    assert set(page.states.cards.values()) <= set(met)
    order = [met.index(w) for w in (page.what.vcs, page.lines.table, page.lines.entry, page.beside.start)]
    assert order == sorted(order)
    assert [w for w in met if not (w.accessibleName() or getattr(w, "text", str)())] == []


def test_in_a_small_window_the_left_scrolls_and_the_right_stays(opened: Open) -> None:
    window = opened(size=(1280, 720))
    page = window.page
    assert page._scroll.verticalScrollBar().maximum() > 0
    assert page._scroll.horizontalScrollBar().maximum() == 0
    at = page.beside.mapTo(window, QPoint(0, 0))
    page.often.limit.entry.setFocus(Qt.FocusReason.TabFocusReason)
    settle(window, 0.05)
    assert page._scroll.verticalScrollBar().value() > 0
    assert page.often.limit.entry.visibleRegion().boundingRect().height() > 20
    assert page.beside.mapTo(window, QPoint(0, 0)) == at
    assert page.beside.start.isVisible()


def test_at_its_usual_size_nothing_scrolls(opened: Open) -> None:
    window = opened()
    page = window.page
    assert page._scroll.verticalScrollBar().maximum() == 0
    assert page.beside._scroll.verticalScrollBar().maximum() == 0


def test_an_edit_is_seen_at_once_and_the_rest_follows(opened: Open) -> None:
    window = opened()
    press(window.page.lines.preset_buttons["adsl"])
    assert window.page.beside.number.text() == "480"  # at once
    settle(window, 0.05)
    assert window.page.lines.table.lines.text(6, 5).startswith("~ ")


# several clients


def choose(window: Shown, name: str) -> None:
    """Press a line of the clients' menu, as the mouse does."""
    clients = window.page.what.clients
    clients.showPopup()
    (action,) = [one for one in clients.menu.actions() if one.text() == name]
    QTest.mouseClick(
        clients.menu, Qt.MouseButton.LeftButton, pos=clients.menu.actionGeometry(action).center()
    )
    settle(window, 0.05)


def test_which_clients_do_it_is_chosen_and_each_choice_is_a_step(opened: Open) -> None:
    text = OFFICE.replace(
        "[[experiments]]", '[hosts.desk-3]\nrole = "client"\nssh = "desk-3"\n\n[[experiments]]', 1
    )
    window = opened(text)
    clients = window.page.what.clients
    assert clients.isEnabled()
    assert clients.currentText() == "desk-1"
    choose(window, "All 3 at once")
    assert first(window)["clients"] == 3
    assert clients.currentText() == "all 3 at once"
    assert window.document.undoes == "have all 3 clients do it at once"
    assert "Each by 3 clients at once." in window.page.beside.cells.text()
    choose(window, "desk-2")
    assert first(window)["clients"] == ["desk-1", "desk-3"]
    assert clients.currentText() == "2 of 3 at once"
    assert clients.menu.isVisible()  # for the next name
    clients.menu.close()
    choose(window, "desk-1")
    choose(window, "desk-3")
    assert first(window)["clients"] == ["desk-3"]  # somebody has to do it
    assert clients.currentText() == "desk-3"
    choose(window, "desk-1 alone")
    assert "clients" not in first(window)
    window.document.undo()
    assert clients.currentText() == "desk-3"
    assert window.document.draft is not None
    assert "# what the boss asks" in window.document.draft.text


def test_beside_it_one_trial_shows_what_all_of_them_do(opened: Open) -> None:
    window = opened(OFFICE.replace('vcs = "subversion"\n', 'vcs = "subversion"\nclients = 2\n', 1))
    settle(window)
    shown_ = [step for step in window.page.beside._steps if step.host == "desk-1, desk-2"]
    assert shown_[-1].text.startswith("at once: svn checkout")
    assert window.page.what.clients.currentText() == "both at once"
    assert "from one to 2 times that, since 2 clients share the line" in window.page.beside.basis.text()


def test_with_one_client_there_is_nothing_to_choose_and_the_reason_is_told(opened: Open) -> None:
    begin, end = OFFICE.index("[hosts.desk-2]"), OFFICE.index("[[experiments]]")
    window = opened(OFFICE[:begin] + OFFICE[end:])
    clients = window.page.what.clients
    assert not clients.isEnabled()
    assert clients.currentText() == "desk-1"
    assert clients.toolTip().startswith("The lab has one client.")
    assert "The lab has one client." in clients.accessibleDescription()


def test_clients_that_the_lab_has_not_are_told_where_they_are_chosen(opened: Open) -> None:
    window = opened(OFFICE.replace('vcs = "subversion"\n', 'vcs = "subversion"\nclients = 5\n', 1))
    clients = window.page.what.clients
    assert clients.property("wrong")
    assert "5 clients are wanted, and the lab has 2" in clients.toolTip()
    assert window.page.trials is None
