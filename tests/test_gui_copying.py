"""Ctrl C in a real window: text and picture of what has the focus, or of what the mouse is on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import FakeTestbed, small
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QCursor, QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, Made, made, ran, started

from gui import copying
from gui.main_window import MainWindow
from gui.telling import LAB, RESULTS, RUN, SETTINGS

__all__ = ["made"]
CTRL = Qt.KeyboardModifier.ControlModifier


def point_at(window: MainWindow, widget: QWidget, qtbot: QtBot) -> None:
    """The mouse on the middle of a widget, and the focus nowhere that could be copied."""
    window._top._theme.setFocus()
    place = widget.mapToGlobal(widget.rect().center())
    QCursor.setPos(place)
    qtbot.mouseMove(window, window.mapFromGlobal(place))


def press(qtbot: QtBot, widget: QWidget) -> tuple[list[list[str]], QImage]:
    """Ctrl C; the table and the picture that are on the clipboard then."""
    QGuiApplication.clipboard().clear()
    qtbot.keyClick(widget, Qt.Key.Key_C, CTRL)
    clipboard = QGuiApplication.clipboard()
    return [line.split("\t") for line in clipboard.text().splitlines()], clipboard.image()


@pytest.fixture
def window(made: Made, qtbot: QtBot) -> MainWindow:
    window = made(FakeTestbed(failing={3: "svn: no answer"}, void={5: "not quiet"}))
    ran(qtbot, window, small())
    window.resize(1440, 900)
    return window


def test_a_table_is_copied_as_text_and_twice_as_large(window: MainWindow, qtbot: QtBot) -> None:
    window.show_page(RESULTS)
    table = window.results_page.table
    table.setFocus()
    rows, image = press(qtbot, table)
    assert rows[0][:2] == ["upload/download", "disabled"]
    assert {len(row) for row in rows} == {len(rows[0])}
    assert image.size() == table.size() * copying.SCALE
    colours = {image.pixelColor(x, y).name() for x in range(0, image.width(), 3) for y in (40, 60, 80, 90)}
    assert len(colours) > 3  # letters, not only their ground


def test_the_figures_of_both_charts_go_with_their_pictures(window: MainWindow, qtbot: QtBot) -> None:
    window.show_page(RESULTS)
    page = window.results_page
    page.chart.setFocus()
    rows, image = press(qtbot, page.chart)
    assert rows[0][:4] == ["upload/download", "disabled", "disabled, least", "disabled, most"]
    assert rows[1][1] == page.times.text(0, 1).replace("\N{NO-BREAK SPACE}", " ")
    assert image.size() == page.chart.size() * 2
    page.bars.setFocus()
    rows, _ = press(qtbot, page.bars)
    assert rows[0][0] == "proxy"
    assert rows[0][1].endswith("download, MB")
    assert [row[0] for row in rows[1:]] == ["disabled", "100 % full"]


def test_lines_of_the_run_and_the_matrix(window: MainWindow, qtbot: QtBot) -> None:
    window.show_page(RESULTS)
    window.results_page._lines.setFocus(Qt.FocusReason.TabFocusReason)
    rows, _ = press(qtbot, window.results_page._lines)
    assert rows[0] == ["asked", "read back", "achieved", "round trip", "besides"]
    assert rows[1][0] == "512/1024 kbit/s"
    window.show_page(RUN)
    window.run_page.view.setFocus()
    rows, image = press(qtbot, window.run_page.view)
    assert len(rows) == 5
    assert not image.isNull()


def test_the_mouse_says_what_is_copied_where_the_focus_does_not(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.02, samples=3))
    started(qtbot, window, small(), done=4)
    window.show_page(RUN)
    QApplication.processEvents()
    page = window.run_page
    point_at(window, page.strips._strips, qtbot)
    rows, image = press(qtbot, window)
    assert rows[0][:4] == ["proxy", "median", "kept", "attempt 1"]
    assert not image.isNull()
    point_at(window, page.traffic, qtbot)
    rows, image = press(qtbot, window)
    assert rows[0][0] == "seconds before now"
    assert len(rows[0]) == 7
    times = [float(row[0]) for row in rows[1:]]  # the stand-in's samples are ahead of the clock
    assert times == sorted(times)
    assert image.size() == page.traffic.size() * 2
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.interrupt()


def test_nothing_to_copy_is_said_and_the_clipboard_stays(window: MainWindow, qtbot: QtBot) -> None:
    window.show_page(LAB)
    point_at(window, window._navigation, qtbot)
    QGuiApplication.clipboard().setText("mine")
    qtbot.keyClick(window, Qt.Key.Key_C, CTRL)
    assert QGuiApplication.clipboard().text() == "mine"
    assert window._banner.isVisible()


def test_a_field_copies_what_is_selected_in_it(window: MainWindow, qtbot: QtBot) -> None:
    window.show_page(SETTINGS)
    field: QLineEdit = window.settings_page.lease
    field.setFocus()
    field.selectAll()
    qtbot.keyClick(field, Qt.Key.Key_C, CTRL)
    assert QGuiApplication.clipboard().text() == "30"


def test_a_program_that_copied_ends_without_a_fault() -> None:
    program = """
        from PySide6.QtWidgets import QApplication, QLabel
        from gui import copying
        application = QApplication([])
        label = QLabel("seen")
        label.resize(40, 20)
        copying.put(label, "told")
        copying.put(label, "told again")
        clipboard = application.clipboard()
        print(clipboard.text(), clipboard.image().width(), clipboard.mimeData().formats())
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": str(Path(copying.__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.stdout.strip() == "told again 80 ['text/plain', 'application/x-qt-image']"
    assert done.returncode == 0


def test_what_is_inside_a_cell_stays_one_cell() -> None:
    assert copying.table(["a", "b"], [["1\t2", "x\ny"]]) == "a\tb\n1 2\tx y"


def test_the_middle_of_a_page_is_what_the_mouse_is_on(window: MainWindow, qtbot: QtBot) -> None:
    window.show_page(RESULTS)
    page = window.results_page
    page._scroll.ensureWidgetVisible(page.chart)
    QApplication.processEvents()
    point_at(window, page.chart, qtbot)
    assert window.childAt(window.mapFromGlobal(QCursor.pos())) is page.chart
    assert page.chart.mapFromGlobal(QCursor.pos()) != QPoint(0, 0)
    rows, _ = press(qtbot, window)
    assert rows[0][2] == "disabled, least"
