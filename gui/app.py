"""The composition root: look, doors, reporter and window put together; `main` opens the window."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QApplication

from gui import rubbish, single, threads
from gui.theme import look as looks
from gui.theme import marks, sheet
from gui.theme.look import Look
from lab import settings, store
from lab.asking import Declined
from lab.events import Outcome

if TYPE_CHECKING:
    from gui.main_window import MainWindow

DONE, INCOMPLETE, DECLINED, TROUBLE, INTERRUPTED = 0, 1, 2, 3, 130
_AFTER_PAINT_MS, _SIGNALS_MS = 30, 200


def main(
    argv: Sequence[str] | None = None,
    *,
    profile: str | Path | None = None,
    experiment: str | None = None,
    run: bool = False,
    record: str | Path | None = None,
    theme: str | None = None,
    agreed: frozenset[str] | None = None,
) -> int:
    """Open the window, and come back with an exit code once it is closed.

    Without a `profile`, a window of the same data that is away over its run is brought back instead.
    `profile` is a profile's path, or that of a run file (then it opens in Results); with `run`, its
    `experiment` (default: the first) is run at once and recorded in `record` (default: a new file in the
    folder of runs). With `agreed` (kinds of `lab.asking.KINDS`) nobody is asked before that run, and what is of
    another kind is refused.
    Codes: 0; of a run that was asked for: 1 if a trial failed or a cell has nothing kept, 2 if it would have done
    what is not in `agreed`, 3 if it failed or could not begin, 130 if it was stopped or a person did not agree.
    """
    if os.environ.get(threads.VARIABLE):
        threads.watch()
    application = application_made(argv)
    if profile is None and single.call(store.data_folder()):
        return DONE
    look = Look(theme or _theme(), looks.system_ratio())
    sheet.dress(application, look)

    # The window's own imports are the longest part of a start; they follow the application, so that a
    # display that cannot be opened is told at once.
    from gui.doors import Doors
    from gui.main_window import MainWindow
    from gui.report import Reporter

    reporter, doors = Reporter(), Doors()
    reporter.install()
    window = MainWindow(look, doors, reporter)
    window.setWindowIcon(mark(look))
    # A window that was hidden while its run went on is no "last window" whose closing would end the program.
    window.closed.connect(application.quit)
    window.show()

    def begin() -> None:
        window.settle()
        # What is here now stays: a full collection that walks through all of it would hold the window for
        # longer than a frame.
        gc.collect()
        gc.freeze()
        if profile is not None and str(profile).endswith(".branchlab"):
            window.open_run(Path(profile))
        elif profile is not None:
            target = None if record is None else Path(record)
            window.open_profile(Path(profile), experiment=experiment, run=run, record=target, agreed=agreed)

    QTimer.singleShot(_AFTER_PAINT_MS, begin)
    awake = _heeding_signals(window.interrupt)
    try:
        application.exec()
    finally:
        awake.stop()
        window.leave()
        window.runs.worker.wait(60)
        doors.close()
        reporter.remove()
    return _code(window) if run else DONE


def _theme() -> str:
    """The palette that is set; where the settings are wrong, which the window tells, the system's."""
    theme = settings.held().theme
    return looks.system_palette() if theme == "system" else theme


def application_made(argv: Sequence[str] | None = None) -> QApplication:
    """The one application, with our fonts and a plain style under our style sheet."""
    found = QApplication.instance()
    if isinstance(found, QApplication):
        application = found
    else:
        QGuiApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
        application = QApplication(list(argv) if argv is not None else sys.argv[:1])
    rubbish.search_here(application)
    application.setApplicationName("BranchLab")
    application.setDesktopFileName("branchlab")
    application.setStyle("Fusion")
    looks.load_fonts()
    return application


def mark(look: Look) -> QIcon:
    """The mark of BranchLab as the window's icon."""
    made = QIcon()
    for size in (16, 32, 64, 128):
        pixmap = QPixmap(size, size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        marks.draw_mark(painter, look, pixmap.rect().toRectF())
        painter.end()
        made.addPixmap(pixmap)
    return made


def _heeding_signals(interrupt: Callable[[], None]) -> QTimer:
    """Python hears of a signal only between two of its own steps, so a timer takes one now and then."""

    def heard(number: int, frame: object) -> None:
        QTimer.singleShot(0, interrupt)

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, heard)
    except ValueError:  # not the main thread: whoever made this thread hears the signals
        pass
    timer = QTimer()
    timer.timeout.connect(_nothing)
    timer.start(_SIGNALS_MS)
    return timer


def _nothing() -> None:
    """Let Python take a step."""


def _code(window: MainWindow) -> int:
    if window.trouble is not None:
        return DECLINED if isinstance(window.trouble, Declined) else TROUBLE
    outcome = window.live.outcome
    if outcome is Outcome.DONE:
        summary = window.summary
        if summary is not None and summary.finished is not None and summary.finished.left:
            return INCOMPLETE
        return DONE if summary is None or summary.complete else INCOMPLETE
    return INTERRUPTED if outcome is Outcome.STOPPED or outcome is None else TROUBLE


if __name__ == "__main__":
    sys.exit(main())
