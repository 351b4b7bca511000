"""What goes wrong, told once: expected errors to a banner, defects to a dialog with their report."""

from __future__ import annotations

import logging
import re
import sys
import threading
import traceback
from dataclasses import dataclass
from types import TracebackType

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from gui.dialogs import Dialog
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Label, Sign, column, row
from lab.errors import LabError, Stopped

log = logging.getLogger(__name__)
_REPORT = 190
"""So high is the report of a defect, in px."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One banner: what happened, why and what still works, what was tried. `grade`: info, warn, trouble.

    `more` is the name of the button that unfolds what was tried.
    """

    title: str
    text: str = ""
    tried: str = ""
    more: str = "What was tried"
    grade: str = "trouble"


def trouble(error: LabError) -> Trouble:
    """An expected error as a banner."""
    title = f"{error.host}: {error}" if error.host else str(error)
    return Trouble(title=title, text=error.advice, tried=error.tried)


class Reporter(QObject):
    """Sorts errors. Signals: `told(object)` a `Trouble`; `broken(object)` the text of a defect."""

    told = Signal(object)
    broken = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._before = (sys.excepthook, threading.excepthook)

    def take(self, error: BaseException) -> None:
        """Tell one error, by its kind. Callable from any thread."""
        if isinstance(error, Stopped):
            return
        if isinstance(error, LabError):
            self.told.emit(trouble(error))
            return
        text = "".join(traceback.format_exception(error))
        log.error("defect: %s", text)
        self.broken.emit(text)

    def install(self) -> None:
        """Become the last resort of this process and its threads."""
        sys.excepthook = self._hook
        threading.excepthook = self._thread_hook

    def remove(self) -> None:
        """Put back what was there before."""
        sys.excepthook, threading.excepthook = self._before

    def _hook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        self.take(error)

    def _thread_hook(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            self.take(args.exc_value)


class Banner(QWidget):
    """Under a page's head: sign, what happened in bold, why; details unfold; stays until put away."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.setAccessibleName("Message")
        self._sign = Sign(look, marks.TROUBLE, 15)
        self._title = Label(look, "", 13, 600, wrap=True)
        self._text = Label(look, "", 12, 400, "text2", wrap=True)
        self._tried = Label(look, "", 12, 400, "text2", mono=True, wrap=True)
        self._tried.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._more = Button(look, "What was tried", height=28)
        self._away = Button(look, "Put away", "flat", height=28)
        words = column(None, self._title, self._text, self._tried, spacing=2)
        box = QFrame()
        box.setObjectName("banner")
        self._box = box
        column(self, box, margins=(0, 8, 0, 0))
        layout = row(box, self._sign, margins=(14, 8, 10, 8), spacing=12)
        layout.addLayout(words, 1)
        layout.addWidget(self._away)
        layout.addWidget(self._more)
        self._more.clicked.connect(self._unfold)
        self._away.clicked.connect(self.hide)
        self.hide()

    def tell(self, told: Trouble) -> None:
        """Show this one, in place of what was there."""
        self._box.setProperty("grade", told.grade)
        self._box.style().unpolish(self._box)
        self._box.style().polish(self._box)
        self._sign.show_sign({"warn": marks.WARN, "info": marks.OK}.get(told.grade, marks.TROUBLE))
        self._title.say(breakable(told.title))
        self._text.say(breakable(told.text))
        self._text.setVisible(bool(told.text))
        self._tried.say(breakable(told.tried))
        self._tried.hide()
        self._more.rename(told.more)
        self._more.setVisible(bool(told.tried))
        self.show()

    def _unfold(self) -> None:
        self._tried.setVisible(not self._tried.isVisible())


class DefectDialog(Dialog):
    """A fault of BranchLab itself: says so, and gives the report to copy."""

    def __init__(self, look: Look, text: str, parent: QWidget) -> None:
        said = (
            "This should not have happened. Finished trials are in the run’s file; what was changed on hosts "
            "is taken back when its lease ends. The report below helps to mend it."
        )
        super().__init__(look, parent, "A fault of BranchLab", said, grade=marks.TROUBLE)
        self._text = text
        report = QPlainTextEdit(text)
        report.setReadOnly(True)
        report.setObjectName("facts")
        report.setFont(look.font(12, mono=True))
        report.setFixedHeight(look.px(_REPORT))
        report.setAccessibleName("Report")
        self.body.addWidget(report)
        self.button("Copy the report").clicked.connect(self._copy)
        close = self.button("Close", "filled")
        close.clicked.connect(self.accept)
        close.setFocus(Qt.FocusReason.TabFocusReason)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text)


def breakable(text: str, longest: int = 60) -> str:
    """The text with places to break in words that no line could hold, as long paths are."""
    return re.sub(rf"\S{{{longest}}}", lambda found: found.group() + "\N{ZERO WIDTH SPACE}", text)
