"""The window over a testbed that works: start to last point, stop, crash, close while running, quick slots."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import FakeTestbed, experiment, small
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QFileDialog, QMenu
from pytestqt.qtbot import QtBot

from gui import app, shown
from gui.asking import CloseDialog
from gui.doors import Doors
from gui.main_window import EXPORTS, MainWindow
from gui.report import DefectDialog, Reporter
from gui.shown import Shown
from gui.story import Story
from gui.telling import COMPARE, EXPERIMENT, HELP, LAB, RESULTS, RUN, SETTINGS, START
from gui.theme import sheet
from gui.theme.look import Look
from gui.tray import Desktop
from lab import runner, store
from lab.errors import HostUnreachable
from lab.events import Outcome
from lab.model import Experiment, Host, Lab, Role
from lab.stop import Stop

FOREVER_MS = 60_000
FRAME_S = 0.016
HOSTS = Lab(
    name="Test lab",
    hosts=(
        Host(name="client", role=Role.CLIENT, ssh="unix:/x"),
        Host(name="proxy", role=Role.PROXY, ssh="me@proxy"),
        Host(name="server", role=Role.SERVER, ssh="server"),
    ),
)
Made = Callable[..., MainWindow]
BARE = Desktop(has_tray=lambda: False, portal=lambda parent: None)
"""A desktop that shows nothing but windows"""


@pytest.fixture
def made(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Makes a window whose lab is a stand-in; ends its run and checks that nothing is left running."""
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    windows: list[MainWindow] = []

    def make(bed: FakeTestbed | None = None, desktop: Desktop = BARE, **given: object) -> MainWindow:
        look = Look("light")
        sheet.dress(app.application_made([]), look)
        stand_ins = {"testbed": lambda lab, **_: bed or FakeTestbed(), "own": lambda lab: True, **given}
        window = MainWindow(look, Doors(**stand_ins), Reporter(), desktop)
        windows.append(window)
        qtbot.addWidget(window, before_close_func=_end)
        window.show_lab(HOSTS, (small(), experiment()), {"Small": 12})
        window.show()
        window.settle()
        return window

    yield make
    for window in windows:
        assert not window.running


def _end(window: MainWindow) -> None:
    window.story.stop()
    window.runs.worker.wait(30)
    window.closing.asked = True


def ran(qtbot: QtBot, window: MainWindow, asked: Experiment) -> None:
    """Run to the end, answers included."""
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(asked)
    qtbot.waitUntil(lambda: window.summary is not None and not window._jobs, timeout=FOREVER_MS)


def started(qtbot: QtBot, window: MainWindow, asked: Experiment, done: int = 2) -> None:
    """Run until so many trials are done."""
    window.start_run(asked)
    qtbot.waitUntil(lambda: window.live.done >= done, timeout=FOREVER_MS)


def press_stop(qtbot: QtBot, window: MainWindow) -> QMenu:
    """The menu that a press on Stop opens."""
    window.show_page(RUN)
    window.run_page.redraw()
    qtbot.mouseClick(window.run_page.stop, Qt.MouseButton.LeftButton)
    return next(menu for menu in window.run_page.stop.findChildren(QMenu) if menu.isVisible())


def choose(qtbot: QtBot, window: MainWindow, name: str) -> None:
    """Press Stop, then this entry of its menu."""
    menu = press_stop(qtbot, window)
    (action,) = [one for one in menu.actions() if one.text().startswith(name)]
    place = menu.actionGeometry(action).center()
    qtbot.mouseClick(menu, Qt.MouseButton.LeftButton, pos=QPoint(place.x(), place.y()))


def test_it_opens_on_start_and_shows_only_pages_that_exist(made: Made) -> None:
    window = made()
    assert window._page == START
    assert not window._navigation.isVisible()
    assert list(window._navigation.buttons) == [LAB, EXPERIMENT, RUN, RESULTS, COMPARE, HELP, SETTINGS]


def test_a_run_from_start_to_last_point(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(failing={3: "svn: no answer"}, void={5: "not quiet"}))
    ran(qtbot, window, small())
    assert window.live.outcome is Outcome.DONE
    assert window.live.done == 12
    assert window.summary is not None
    assert [finding.question for finding in window.summary.findings] == [1, 2, 3, 4, 5]
    window.show_page(RESULTS)
    assert window.results_page.head.title.text() == window.summary.verdict
    assert "1 failed, 1 without proof" in window.results_page._amiss.label.text()
    texts = [window.results_page.times.text(0, column) for column in range(1, 3)]
    assert all("0:0" in text or "ms" in text for text in texts)


def test_what_is_shown_is_in_the_file(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    assert window.run_path is not None
    with store.opened(window.run_path) as record:
        assert len(record.trials()) == 12
        assert record.outcome is Outcome.DONE


def test_the_matrix_says_what_the_run_says(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    matrix = window.run_page.matrix
    assert matrix.rowCount() == 4
    assert matrix.columnCount() == 3
    cell = matrix.cell(0, 2)
    assert cell is not None
    assert cell.kept == 2
    assert matrix.index(0, 2).data() == matrix.text(0, 2) != ""
    told = matrix.index(0, 2).data(Qt.ItemDataRole.AccessibleTextRole)
    assert "Get, disabled, 512/1024" in told
    assert "2 kept, 0 to go" in told


def test_stop_keeps_finished_trials(made: Made, qtbot: QtBot) -> None:
    bed = FakeTestbed(pace=0.02)
    window = made(bed)
    started(qtbot, window, experiment())
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        choose(qtbot, window, "Stop now")
    assert window.live.outcome is Outcome.STOPPED
    assert 2 <= window.live.done < window.live.total
    assert bed.log[-1] == "close"
    assert "finished trials are kept" in window.run_page._rest.text()
    qtbot.waitUntil(lambda: window.summary is not None, timeout=FOREVER_MS)


def test_pause_holds_before_the_next_trial(made: Made, qtbot: QtBot) -> None:
    gate = threading.Event()
    window = made(FakeTestbed(held={4: gate}))
    started(qtbot, window, small(), done=3)
    qtbot.mouseClick(window.run_page.pause, Qt.MouseButton.LeftButton)
    gate.set()
    qtbot.waitUntil(lambda: window.live.paused, timeout=FOREVER_MS)
    assert window.live.done == 4
    assert window.run_page.pause.word == "Go on"
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        qtbot.mouseClick(window.run_page.pause, Qt.MouseButton.LeftButton)
    assert window.live.done == 12


def test_a_run_that_fails_is_told_in_a_banner(made: Made, qtbot: QtBot) -> None:
    lost = HostUnreachable("no answer on port 22", host="proxy", tried="ssh proxy")
    window = made(FakeTestbed(opening=lost))
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())
    assert window.live.outcome is Outcome.FAILED
    assert window._banner.isVisible()
    assert "proxy: no answer on port 22" in window._banner._title.text()
    window.show_page(LAB)
    window.lab_page.refresh()
    proxy = next(host for host in window.lab_page.shown.hosts if host.name == "proxy")
    assert (proxy.sign, proxy.word) == ("trouble", "no answer on port 22")


def test_a_defect_opens_a_dialog_with_its_report(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(at={2: ZeroDivisionError("oops")}))
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())
    qtbot.waitUntil(lambda: bool(window.findChildren(DefectDialog)), timeout=FOREVER_MS)
    dialog = window.findChildren(DefectDialog)[0]
    assert "ZeroDivisionError: oops" in dialog._text
    dialog.close()
    assert window.live.done == 1


def test_closing_while_a_run_goes_asks_and_harmless_is_the_default(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.02))
    started(qtbot, window, experiment(), done=1)
    window.close()
    dialog = window.findChildren(CloseDialog)[0]
    assert window.isVisible()
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert window.running
    assert window.isVisible()


def test_stop_and_close_waits_without_blocking(made: Made, qtbot: QtBot) -> None:
    bed = FakeTestbed(pace=0.02)
    window = made(bed)
    started(qtbot, window, experiment(), done=1)
    window.close()
    began = time.monotonic()
    qtbot.mouseClick(window.findChildren(CloseDialog)[0].end, Qt.MouseButton.LeftButton)
    assert time.monotonic() - began < 5
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=FOREVER_MS)
    assert bed.log[-1] == "close"
    assert window.live.outcome is Outcome.STOPPED


def test_an_old_run_opens_in_results(made: Made, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "old.branchlab"
    for _ in store.recorded(runner.run(small(), FakeTestbed(), Stop(), lab_name="Minsk"), path):
        pass
    window = made()
    window.open_run(path)
    qtbot.waitUntil(lambda: window._page == RESULTS, timeout=FOREVER_MS)
    assert window.summary is not None
    assert window.summary.started.lab == "Minsk"
    assert window.live.done == 12
    assert "Small" in window.windowTitle()


def test_a_file_that_is_no_run_is_told_in_words(made: Made, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "no.branchlab"
    path.write_text("not a run")
    window = made()
    window.open_run(path)
    qtbot.waitUntil(window._banner.isVisible, timeout=FOREVER_MS)
    assert "no.branchlab" in window._banner._title.text()
    assert window._page == START


def test_export_writes_the_trials(made: Made, qtbot: QtBot, tmp_path: Path) -> None:
    window = made()
    ran(qtbot, window, small())
    target = tmp_path / "out.csv"
    window._export(target)
    qtbot.waitUntil(target.exists, timeout=FOREVER_MS)
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)
    assert len(target.read_text().splitlines()) == 13


@pytest.mark.parametrize("kind", EXPORTS.split(";;"))
def test_every_kind_that_is_offered_is_written(made: Made, qtbot: QtBot, tmp_path: Path, kind: str) -> None:
    window = made()
    ran(qtbot, window, small())
    window._ask_export()
    dialog = window.findChild(QFileDialog)
    dialog.filterSelected.emit(kind)
    target = tmp_path / f"out.{dialog.defaultSuffix()}"
    dialog.fileSelected.emit(str(target))
    dialog.close()
    qtbot.waitUntil(target.exists, timeout=FOREVER_MS)
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)
    assert target.stat().st_size > 1000


def test_keys_reach_pages_and_parts(made: Made, qtbot: QtBot) -> None:
    window = made()
    with qtbot.waitActive(window):
        window.activateWindow()
    for key, page in ((Qt.Key.Key_1, LAB), (Qt.Key.Key_3, RUN), (Qt.Key.Key_4, RESULTS)):
        qtbot.keyClick(window, key, Qt.KeyboardModifier.AltModifier)
        assert window._page == page
    window.show_page(LAB)
    seen = set()
    for _ in range(4):
        qtbot.keyClick(window, Qt.Key.Key_F6)
        focus = QApplication.focusWidget()
        parts = {"top": window._top, "nav": window._navigation, "page": window.lab_page}
        seen |= {name for name, part in parts.items() if focus is not None and part.isAncestorOf(focus)}
    assert seen == {"top", "nav", "page"}


def test_ctrl_c_copies_the_tables(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    window.show_page(RESULTS)
    window.results_page.table.setFocus()
    qtbot.keyClick(window.results_page.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].startswith("upload/download\tdisabled\t100")
    assert lines[1].startswith("512/1024")
    window.show_page(RUN)
    window.run_page.view.setFocus()
    qtbot.keyClick(window.run_page.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert len(QGuiApplication.clipboard().text().splitlines()) == 5
    window.show_page(RESULTS)
    window.results_page.chart.setFocus()
    qtbot.keyClick(window.results_page.chart, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert not QGuiApplication.clipboard().pixmap().isNull()


def test_everything_that_can_be_pressed_has_a_name(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    for page in (START, LAB, RUN, RESULTS):
        window.show_page(page)
        QApplication.processEvents()
    nameless = [
        widget
        for kind in (QAbstractButton, QComboBox)
        for widget in window.findChildren(kind)
        if widget.isVisible() and not (widget.accessibleName() or widget.text())
    ]
    assert not nameless


def test_the_other_palette_reaches_every_page(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    for page in (LAB, RUN, RESULTS):
        window.show_page(page)
        QApplication.processEvents()
        light = window.grab().toImage().pixelColor(300, 400)
        window.swap_theme()
        QApplication.processEvents()
        dark = window.grab().toImage().pixelColor(300, 400)
        assert light.lightness() > 150 > 100 > dark.lightness()
        window.swap_theme()


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720)])
def test_no_page_is_wider_than_its_window(made: Made, qtbot: QtBot, size: tuple[int, int]) -> None:
    window = made()
    ran(qtbot, window, experiment())
    window.resize(*size)
    for page in (LAB, RUN, RESULTS):
        window.show_page(page)
        QApplication.processEvents()
        assert (window.width(), window.height()) == size
        assert window.pages.all[page].width() <= size[0]
    assert not window.run_page.view.horizontalScrollBar().isVisible()
    assert not window.results_page.table.horizontalScrollBar().isVisible()


SLOTS = (
    (Story, "happened"),
    (Story, "run_ended"),
    (Story, "stop"),
    (Shown, "tick"),
    (Shown, "show_summary"),
)


def timed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, str]]:
    """The GUI thread's own CPU time of every slot that a run reaches, of windows made from now on."""
    spent: list[tuple[float, str]] = []

    def noted(plain: Callable[..., object], name: str) -> Callable[..., object]:
        @wraps(plain)
        def slot(self: object, *args: object) -> object:
            began = time.thread_time()
            try:
                return plain(self, *args)
            finally:
                spent.append((time.thread_time() - began, name))

        return slot

    for owner, name in SLOTS:
        monkeypatch.setattr(owner, name, noted(getattr(owner, name), name))
    return spent


@pytest.mark.parametrize("page", [LAB, RUN, RESULTS])
def test_no_slot_holds_the_window_for_a_frame(
    made: Made, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    spent = timed(monkeypatch)
    asked = experiment(attempts=3)
    window = made(FakeTestbed(pace=0.03, samples=40))
    QApplication.processEvents()
    gc.collect()  # as `gui.app.main` does once the window stands
    gc.freeze()
    window.start_run(asked)
    window.show_page(page)
    qtbot.waitUntil(lambda: window.live.done >= 40, timeout=FOREVER_MS)
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.story.stop()
    gc.unfreeze()
    worst = sorted(spent, reverse=True)[:5]
    assert len(spent) > 500
    assert worst[0][0] < FRAME_S, worst


def test_redraws_are_gathered(made: Made, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events mark, a timer draws: far fewer redraws than events."""
    drawn: list[int] = []
    window = made(FakeTestbed(samples=200))
    plain = window.run_page.redraw
    monkeypatch.setattr(window.run_page, "redraw", lambda: (drawn.append(1), plain()))
    began = time.monotonic()
    ran(qtbot, window, small())
    most = (time.monotonic() - began) * 1000 / shown.REDRAW_MS
    assert len(drawn) <= most + 5
    assert len(drawn) < 12 * 200
