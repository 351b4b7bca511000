"""The window comes back as it was left: size, place, columns, zoom; and never out of sight."""

from __future__ import annotations

import json
import os
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import FakeTestbed, experiment
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from test_gui_ordering import press, texts
from test_gui_window import Made, made, ran

from gui.layout import fitting
from gui.main_window import MainWindow
from gui.run.account import AccountView
from gui.telling import LAB, RESULTS
from lab import store

__all__ = ["made"]
LEAST = QSize(960, 600)
ONE, TWO = QRect(0, 0, 1920, 1080), QRect(1920, 0, 2560, 1440)


@pytest.mark.parametrize(
    ("box", "screens", "there"),
    [
        (QRect(100, 100, 1440, 900), [ONE], QRect(100, 100, 1440, 900)),
        (QRect(2400, 200, 1440, 900), [ONE, TWO], QRect(2400, 200, 1440, 900)),
        (QRect(1700, 100, 1440, 900), [ONE, TWO], QRect(1700, 100, 1440, 900)),  # across two
        (QRect(2400, 200, 1440, 900), [ONE], QRect(480, 180, 1440, 900)),  # its monitor is gone
        (QRect(-5000, -5000, 1440, 900), [ONE], QRect(0, 32, 1440, 900)),
        (QRect(0, 0, 2500, 1400), [ONE], QRect(0, 32, 1920, 1048)),
        (QRect(10, 10, 20, 20), [ONE], QRect(10, 10, 960, 600)),
    ],
)
def test_a_window_is_in_sight_also_when_a_monitor_is_gone(
    box: QRect, screens: list[QRect], there: QRect
) -> None:
    assert fitting(box, screens, LEAST) == there


def closed(window: MainWindow) -> dict[str, object]:
    """Close it; what it kept."""
    window.close()
    assert not window.isVisible()
    return json.loads((store.data_folder() / "layout.json").read_text("utf-8"))


def test_size_and_place_come_back(made: Made) -> None:
    first = made()
    first.setGeometry(0, 5, 960, 640)
    QApplication.processEvents()
    kept = closed(first)
    assert kept["window"]["box"][1:] == [5, 960, 640]
    assert kept["window"]["maximised"] is False
    again = made()
    assert again.size() == QSize(960, 640)  # wider than this screen, so that it was moved below its own title
    assert again.geometry().y() == 32


def test_maximised_comes_back_with_the_size_below_it(made: Made) -> None:
    first = made()
    first.resize(1000, 620)
    first.showMaximized()
    QApplication.processEvents()
    kept = closed(first)
    assert kept["window"]["maximised"] is True
    assert kept["window"]["box"][2:] == [1000, 620]
    assert made().isMaximized()


def test_columns_order_and_zoom_come_back(made: Made, qtbot: QtBot) -> None:
    first = made(FakeTestbed())
    ran(qtbot, first, experiment(attempts=2))
    first.resize(1440, 900)
    first.show_page(LAB)
    first.lab_page.picture.setFocus()
    qtbot.keyClick(first.lab_page.picture, Qt.Key.Key_Plus)
    first.show_page(RESULTS)
    QApplication.processEvents()
    table = first.results_page.table
    press(qtbot, table, 2)
    press(qtbot, table, 2)
    table.horizontalHeader().resizeSection(1, 151)
    first.run_page.output.account.horizontalHeader().moveSection(0, 1)
    wanted = texts(table, 0)
    closed(first)
    second = made(FakeTestbed())
    ran(qtbot, second, experiment(attempts=2))
    second.resize(1440, 900)
    second.show_page(RESULTS)
    QApplication.processEvents()
    assert second.lab_page.picture.scale_percent == 110
    assert texts(second.results_page.table, 0) == wanted
    assert second.results_page.table.columnWidth(1) == 151
    account: AccountView = second.run_page.output.account
    assert account.horizontalHeader().visualIndex(0) == 1
    second.resize(1300, 800)
    QApplication.processEvents()
    assert second.results_page.table.columnWidth(1) == 151
    second.results_page.table.horizontalHeader().sectionHandleDoubleClicked.emit(1)
    assert second.results_page.table.columnWidth(1) != 151


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        '{"window": 5, "times": [], "account": 7, "picture": "x"}',
        '{"window": {"box": [1, 2, "3", 4]}, "times": {"widths": {"line": -4}, "by": 3}, "picture": 99999}',
        '{"window": {"box": [99999999999, 0, 5, 5], "maximised": "yes"}, "account": "%%%"}',
    ],
)
def test_a_file_that_is_wrong_is_as_none(made: Made, text: str) -> None:
    file: Path = store.data_folder() / "layout.json"
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")
    window = made()
    assert (window.width(), window.height()) == (1440, 900)
    assert window.lab_page.picture.scale_percent == 100
    assert not window.isMaximized()
    assert json.loads(json.dumps(closed(window)))["picture"] == {"percent": 100, "places": {}}


def test_a_folder_that_cannot_be_written_is_no_reason_to_stay(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = made()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "file" / "data"))
    window.close()
    assert not window.isVisible()
