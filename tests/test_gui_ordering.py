"""Tables sort by a press on a head and filter by words, by values and not by letters; seen in a real window."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import FakeTestbed, experiment, small
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QHeaderView, QTableView
from pytestqt.qtbot import QtBot
from test_gui_dialogs import with_account
from test_gui_layout import DELAYED
from test_gui_window import Made, made, ran

from gui import ordering
from gui.main_window import MainWindow
from gui.run.output import EVENTS
from gui.telling import RESULTS, RUN
from lab.events import Noted

__all__ = ["made"]
LEFT = Qt.MouseButton.LeftButton


def press(qtbot: QtBot, view: QTableView, column: int) -> QHeaderView:
    """A press of the mouse on a head."""
    header = view.horizontalHeader()
    place = QPoint(header.sectionViewportPosition(column) + header.sectionSize(column) // 2, 8)
    qtbot.mouseClick(header.viewport(), LEFT, pos=place)
    return header


def texts(view: QTableView, column: int) -> list[str]:
    model = view.model()
    return [str(model.index(row, column).data()) for row in range(model.rowCount())]


def seconds(text: str) -> float:
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    if text.endswith(" ms"):
        return float(text.removesuffix(" ms")) / 1000
    minutes, _, rest = text.partition(":")
    return 60 * float(minutes) + float(rest)


@pytest.fixture
def window(made: Made, qtbot: QtBot) -> MainWindow:
    window = made(FakeTestbed())
    ran(qtbot, window, experiment(lines=DELAYED, attempts=2))
    window.resize(1440, 900)
    window.show_page(RESULTS)
    QApplication.processEvents()
    return window


def test_a_press_sorts_the_next_turns_round_the_third_is_the_plan(window: MainWindow, qtbot: QtBot) -> None:
    view = window.results_page.table
    plan = texts(view, 0)
    press(qtbot, view, 1)
    times = [seconds(text) for text in texts(view, 1)]
    assert times == sorted(times)
    assert "the least first" in view.accessibleDescription()
    press(qtbot, view, 1)
    assert [seconds(text) for text in texts(view, 1)] == times[::-1]
    assert texts(view, 0) != plan or plan == texts(view, 0)[::1]
    press(qtbot, view, 1)
    assert texts(view, 0) == plan
    assert view.accessibleDescription() == ""


def test_what_is_painted_is_the_row_that_is_sorted_there(window: MainWindow, qtbot: QtBot) -> None:
    view, times = window.results_page.table, window.results_page.times
    press(qtbot, view, 0)
    press(qtbot, view, 0)
    rates = [line.download_bps for line in times.lines]
    assert rates == sorted(rates, reverse=True)
    first = times.cell(times.lines[0], times.states[0])
    assert first is not None
    assert first.median_s is not None
    assert seconds(times.text(0, 1)) == pytest.approx(first.median_s, abs=0.01)


def test_s_sorts_by_the_column_of_the_keyboard(window: MainWindow, qtbot: QtBot) -> None:
    view = window.results_page.table
    view.setFocus()
    view.setCurrentIndex(view.model().index(0, 2))
    qtbot.keyClick(view, Qt.Key.Key_S)
    qtbot.keyClick(view, Qt.Key.Key_S)
    times = [seconds(text) for text in texts(view, 2)]
    assert times == sorted(times, reverse=True)
    assert view.currentIndex().column() == 2


def test_another_operation_keeps_the_order(window: MainWindow, qtbot: QtBot) -> None:
    page = window.results_page
    press(qtbot, page.table, 1)
    press(qtbot, page.table, 1)
    qtbot.mouseClick(page._tabs.button(1), LEFT)
    times = [seconds(text) for text in texts(page.table, 1)]
    assert times == sorted(times, reverse=True)


def test_words_leave_the_lines_that_have_them(window: MainWindow, qtbot: QtBot) -> None:
    page = window.results_page
    whole = page.times.rowCount()
    assert page.search.isVisible()
    qtbot.keyClicks(page.search, "64/128 KBIT")
    assert texts(page.table, 0) == ["64/128\N{NO-BREAK SPACE}kbit/s"]
    assert page.table.isVisible()
    assert page._table_hint.text() == f"1 of {whole} lines"
    assert page.table.height() < 80
    qtbot.keyClicks(page.search, " zzz")
    assert page.times.rowCount() == 0
    page.search.clear()
    assert page.times.rowCount() == whole
    assert "kept attempt" in page._table_hint.text()


def test_a_run_of_few_lines_has_no_search(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    window.show_page(RESULTS)
    assert not window.results_page.search.isVisible()


def test_the_account_sorts_filters_and_copies_what_it_shows(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    window.live.changed.clear()
    with_account(
        window, [("server", "line", False), ("proxy", "made", False), ("client", "taken back: line", True)]
    )
    output = window.run_page.output
    view = output.account
    press(qtbot, view, 1)
    assert texts(view, 1) == ["client", "proxy", "server"]
    press(qtbot, view, 1)
    assert texts(view, 1) == ["server", "proxy", "client"]
    qtbot.keyClicks(output.search, "line")
    assert texts(view, 1) == ["server", "client"]
    assert output._about.text() == "2 of 3 changes"
    assert [row.split("\t")[1] for row in view.copied().splitlines()] == ["Host", "server", "client"]
    press(qtbot, view, 0)
    assert texts(view, 1) == ["server", "client"]


def test_events_with_words(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    window.show_page(RUN)
    output = window.run_page.output
    assert not output.search.isVisible()
    for text in ("The proxy was quiet", "The line was read back", "The server was quiet"):
        window.live.apply(Noted(text=text, grade="info"))
    output._tabs.button(EVENTS).click()
    assert output._text.isVisible()
    qtbot.keyClicks(output.search, "QUIET the")
    assert output._text.toPlainText().splitlines() == ["The proxy was quiet", "The server was quiet"]
    qtbot.keyClicks(output.search, "zzzz")
    assert output._text.toPlainText() == ""


def test_what_has_no_value_is_last_either_way() -> None:
    rows = [3.0, None, 1.0, 2.0]
    assert ordering.by_value(rows, lambda row: row, falling=False) == [1.0, 2.0, 3.0, None]
    assert ordering.by_value(rows, lambda row: row, falling=True) == [3.0, 2.0, 1.0, None]


def test_alike_ones_stay_as_they_were() -> None:
    rows = [("a", 1.0), ("b", 1.0), ("c", 0.0)]
    assert [name for name, _ in ordering.by_value(rows, lambda row: row[1], falling=True)] == ["a", "b", "c"]
