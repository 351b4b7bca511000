"""The page Compare in a real window: two stored runs chosen, swapped, sorted, copied; published figures too."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import export_runs as runs
import pytest
from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, Made, made

from gui.compare.page import ComparePage
from gui.compare.table import AGAINST, A, B, Scale
from gui.main_window import MainWindow
from gui.telling import COMPARE
from lab import store

__all__ = ["made"]


@pytest.fixture
def window(made: Made, qtbot: QtBot) -> MainWindow:
    """A window beside two stored runs, the newer of which has other lines."""
    window = made()
    folder = store.runs_folder()
    folder.mkdir(parents=True, exist_ok=True)
    runs.written(folder / "20260101-first.branchlab", runs.asked(runs.SIX[:3], name="Before"))
    runs.written(folder / "20260102-second.branchlab", runs.asked(runs.SIX[1:4], name="After", seed=2))
    return window


def turned(window: MainWindow, qtbot: QtBot) -> ComparePage:
    """The page, by its key, with two runs on it."""
    qtbot.keyClick(window, Qt.Key.Key_5, Qt.KeyboardModifier.AltModifier)
    assert window.pages.seen == COMPARE
    page = window.compare_page
    qtbot.waitUntil(lambda: page.compared is not None and not window._jobs, timeout=FOREVER_MS)
    return page


def texts(model: QAbstractItemModel, column: int) -> list[str]:
    return [str(model.index(row, column).data()) for row in range(model.rowCount())]


def test_the_newest_two_runs_are_held_against_each_other_at_once(window: MainWindow, qtbot: QtBot) -> None:
    page = turned(window, qtbot)
    assert page.a.currentText().startswith("Before,")
    assert page.b.currentText().startswith("After,")
    assert page.compared is not None
    assert page.head.title.text() == page.compared.title
    assert page.changes.rowCount() == len(page.compared.changes) == 24
    assert "12 cells of A only and 12 cells of B only" in page._foot.text()
    assert [one.name for one in page.compared.differs] == ["Lines", "Order"]


def test_published_figures_can_be_one_of_them(window: MainWindow, qtbot: QtBot) -> None:
    page = turned(window, qtbot)
    before = page.compared
    page.a.setCurrentIndex(page._names.index("published-2008"))
    qtbot.waitUntil(lambda: page.compared is not before, timeout=FOREVER_MS)
    assert page.compared is not None
    assert page.compared.published
    assert "no interval" in page.compared.text
    assert set(texts(page.changes, AGAINST)) != {"no difference"}


def test_swapping_turns_every_ratio_round(window: MainWindow, qtbot: QtBot) -> None:
    page = turned(window, qtbot)
    before, a, b = page.compared, texts(page.changes, A), texts(page.changes, B)
    assert before is not None
    (swap,) = (one for one in page.findChildren(QAbstractButton) if one.accessibleName() == "Swap A and B")
    qtbot.mouseClick(swap, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.compared is not before, timeout=FOREVER_MS)
    assert sorted(texts(page.changes, A)) == sorted(b)
    assert sorted(texts(page.changes, B)) == sorted(a)


def test_the_biggest_change_comes_first_when_asked(window: MainWindow, qtbot: QtBot) -> None:
    page = turned(window, qtbot)
    page.a.setCurrentIndex(page._names.index("published-2008"))
    qtbot.waitUntil(lambda: page.compared is not None and page.compared.published, timeout=FOREVER_MS)
    (biggest,) = (one for one in page.findChildren(QAbstractButton) if one.text() == "biggest change")
    qtbot.mouseClick(biggest, Qt.MouseButton.LeftButton)
    ratios = [one.against.ratio for one in page.changes.rows]
    sizes = [max(ratio, 1 / ratio) for ratio in ratios if ratio]
    assert sizes == sorted(sizes, reverse=True)


def test_the_table_is_copied_with_its_intervals(window: MainWindow, qtbot: QtBot) -> None:
    page = turned(window, qtbot)
    page.table.setFocus()
    qtbot.keyClick(page.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    rows = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert rows[0] == ["operation", "line and state", "A", "B", "B against A", "95 %"]
    assert len(rows) == page.changes.rowCount() + 1


def test_without_runs_the_page_says_what_will_be_there(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.show_page(COMPARE)
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)
    page = window.compare_page
    assert page._empty.isVisible()
    assert not page.a.isVisible()
    assert page.compared is None


def test_equal_ratios_are_equal_distances() -> None:
    from PySide6.QtCore import QRectF

    scale, box = Scale(1.0, 100.0), QRectF(10, 0, 500, 20)
    places = [scale.at(seconds, box) for seconds in (1, 10, 100)]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1])
    assert box.left() < places[0] < places[2] < box.right()


def test_a_run_that_is_gone_is_told_and_the_page_stays(window: MainWindow, qtbot: QtBot) -> None:
    page = turned(window, qtbot)
    for file in store.runs_folder().glob("*first*"):
        file.unlink()
    page.choose(*page.chosen)
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)
    assert window._banner.isVisible()
    assert page.compared is not None
