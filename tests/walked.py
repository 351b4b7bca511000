"""Goes through every page and dialog of the window, with a run done and a profile open; and what is amiss there.

    QT_SCALE_FACTOR=1.5 python tests/walked.py FOLDER     prints what is cut, as JSON

The hosts are a stand-in; what is shown is what a run on them made.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from dialogs_shown import DIALOGS
from experiment_shown import OFFICE
from fake_testbed import FakeTestbed, experiment
from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QTableView,
    QWidget,
)

from gui import app
from gui.doors import Doors
from gui.main_window import MainWindow
from gui.report import Reporter
from gui.telling import COMPARE, EXPERIMENT, HELP, LAB, RESULTS, RUN, SETTINGS, START
from gui.theme import sheet
from gui.theme.look import Look
from gui.widgets.basic import Elided, Sign, StateMark
from gui.widgets.frame import NavButton
from lab.model import Line

LINES = tuple(
    Line(upload_bps=rate, download_bps=2 * rate, delay_s=0.04)
    for rate in (64_000, 128_000, 512_000, 2_000_000)
)
_WITH_PARTS = (QComboBox, QLineEdit, QTableView)
"""a list, a button, heads: parts of a named control"""
SIZES = ((1440, 900), (1280, 720))


def until(true: Callable[[], object], seconds: float = 60) -> None:
    """Let the window work until something is so."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(true)
        QApplication.processEvents()
        time.sleep(0.005)


def settled() -> None:
    """Layouts that change others take a few rounds; what was taken out of the window is gone."""
    for _ in range(6):
        QApplication.processEvents()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def pages(window: MainWindow, folder: Path) -> Iterator[str]:
    """Every page, by its name, with something on it: first of a lab without a profile, then of one that is opened."""
    window.start_run(experiment(lines=LINES, attempts=2))
    until(lambda: window.summary is not None and not window.running and not window._jobs)
    for page in (RUN, RESULTS):
        window.show_page(page)
        settled()
        yield page
    window.show_page(COMPARE)
    until(lambda: window.compare_page.compared is not None and not window._jobs)
    settled()
    yield COMPARE
    for number, tab in enumerate(window.run_page.output._tabs.buttons()):
        window.show_page(RUN)
        tab.click()
        settled()
        yield f"{RUN}, list {number}"
    profile = folder / "office.toml"
    profile.write_text(OFFICE, "utf-8")
    window.open_profile(profile)
    until(lambda: window.document.profile is not None and not window._jobs)
    for page in (START, LAB, EXPERIMENT, HELP, SETTINGS, RUN):
        window.show_page(page)
        settled()
        yield page
    for host in [*(host.name for host in window.shown.lab.hosts), "line"] if window.shown.lab else ():
        window.show_page(LAB)
        window.lab_page.picture.select(host)
        settled()
        yield f"{LAB}, {host}"


def dialogs(window: MainWindow) -> Iterator[tuple[str, QWidget]]:
    """Every dialog, opened; closed again when the next is asked for."""
    for name, make in DIALOGS.items():
        dialog = make(window._look, window)
        dialog.open()
        settled()
        yield name, dialog
        dialog.done(0)
        settled()


# what is amiss ---------------------------------------------------------------------------------------------------


def seen(root: QWidget) -> list[QWidget]:
    """Everything in it that is visible and has a size."""
    return [w for w in root.findChildren(QWidget) if w.isVisible() and w.width() > 0 and w.height() > 0]


def controls(root: QWidget) -> list[QWidget]:
    """What can be pressed, typed into, or reached by Tab."""
    kinds = (QAbstractButton, QLineEdit, QComboBox, QAbstractItemView)
    taking = [w for w in seen(root) if isinstance(w, kinds) or w.focusPolicy() & Qt.FocusPolicy.TabFocus]
    return [w for w in taking if w.focusProxy() is None]


def nameless(root: QWidget) -> list[str]:
    """Controls without an accessible name. What stands in a named control is part of it."""
    found = []
    for widget in controls(root):
        around = widget.parentWidget()
        part = isinstance(around, _WITH_PARTS) and bool(around.accessibleName())
        if not widget.accessibleName() and not part:
            found.append(f"{type(widget).__name__} in {type(around).__name__}")
    return found


def wordless(root: QWidget) -> list[str]:
    """Signs and states' marks with no word beside them."""
    found = []
    for widget in seen(root):
        shows = (isinstance(widget, Sign) and widget.sign) or isinstance(widget, StateMark)
        if shows and not _word_near(widget):
            found.append(f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}")
    return found


def _word_near(widget: QWidget) -> bool:
    around = widget.parentWidget()
    for _ in range(2):
        if around is None:
            return False
        texts = [*around.findChildren(QLabel), *around.findChildren(QAbstractButton), around]
        if any((w.accessibleName() or getattr(w, "text", str)().strip()) and w.isVisible() for w in texts):
            return True
        around = around.parentWidget()
    return False


def cut(root: QWidget) -> list[str]:
    """Labels and buttons whose text is wider or higher than they are, or that stand out of what they are in."""
    found = []
    for widget in seen(root):
        if isinstance(widget, Elided):  # ends in …, and its tip has the whole
            continue
        if isinstance(widget, QLabel) and widget.text():
            told = _label_cut(widget)
        elif isinstance(widget, QAbstractButton) and widget.text() and not isinstance(widget, NavButton):
            told = _button_cut(widget)
        else:
            continue
        told = told or _out_of_sight(widget, root)
        if told:
            found.append(f"{type(widget).__name__} {widget.text()[:60]!r}: {told}")
    return found


def _label_cut(label: QLabel) -> str:
    inside = label.contentsRect()
    if label.wordWrap():
        needed = label.heightForWidth(label.width())
        return f"{label.height()} px high, needs {needed}" if label.height() < needed else ""
    width = max(label.fontMetrics().horizontalAdvance(line) for line in label.text().split("\n"))
    if inside.width() < width:
        return f"{inside.width()} px wide, needs {width}"
    least = label.fontMetrics().ascent()
    return f"{inside.height()} px high, letters take {least}" if inside.height() < least else ""


def _button_cut(button: QAbstractButton) -> str:
    if button.hasHeightForWidth():
        needed = button.heightForWidth(button.width())
        return f"{button.height()} px high, needs {needed}" if button.height() < needed else ""
    text = button.text().replace("&", "")
    width = max(button.fontMetrics().horizontalAdvance(line) for line in text.split("\n"))
    width += 0 if button.icon().isNull() else button.iconSize().width()
    return f"{button.width()} px wide, needs {width}" if button.width() < width else ""


def _out_of_sight(widget: QWidget, root: QWidget) -> str:
    """What it stands in cuts it, unless that can be scrolled."""
    around = widget.parentWidget()
    while around is not None and around is not root:
        above = around.parentWidget()
        if isinstance(above, QAbstractScrollArea):
            return ""
        box = QRect(widget.mapTo(around, QPoint(0, 0)), widget.size())
        if not around.rect().adjusted(-1, -1, 1, 1).contains(box):
            return f"stands out of its {type(around).__name__}"
        around = above
    return ""


def made(folder: Path) -> MainWindow:
    """A window over a stand-in."""
    os.environ["BRANCHLAB_DATA"] = str(folder / "data")
    look = Look("light")
    sheet.dress(app.application_made([]), look)
    window = MainWindow(look, Doors(testbed=lambda lab, **_: FakeTestbed(), own=lambda lab: True), Reporter())
    from test_gui_window import HOSTS

    window.show_lab(HOSTS, (experiment(),), {})
    window.resize(*SIZES[0])
    window.show()
    window.settle()
    return window


def main(folder: Path) -> int:
    """Print what is cut on every page and in every dialog, at both sizes."""
    window = made(folder)
    found: dict[str, list[str]] = {}
    for page in pages(window, folder):
        for size in SIZES:
            window.resize(*size)
            settled()
            if told := cut(window):
                found[f"{page} at {size[0]}×{size[1]}"] = told
    for name, dialog in dialogs(window):
        if told := cut(dialog):
            found[name] = told
    print(json.dumps({"ratio": window.devicePixelRatioF(), "cut": found}, ensure_ascii=False, indent=1))
    window.leave()
    window.document.take(None)
    window.closing.asked = True
    window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
