"""What the window asks: whether to stop a run when it is closed, and for files. Nothing here waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from gui.theme.look import Look
from gui.widgets.basic import Button, Label, column, row
from gui.widgets.frame import FocusRing


class CloseDialog(QDialog):
    """Signals: `stopped()` stop the run, then close; `hidden()` go on without a window. Esc does nothing."""

    stopped = Signal()
    hidden = Signal()

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("A run is going")
        self.setModal(True)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFixedWidth(560)
        text = (
            "Stopping keeps every finished trial and takes back what was changed on the hosts; the window "
            "closes when that is done. The run can also go on without a window; BranchLab ends with it."
        )
        self.cancel = Button(look, "Cancel", "flat")
        self.go_on = Button(look, "Go on without a window")
        self.end = Button(look, "Stop and close", "filled")
        self.cancel.clicked.connect(self.reject)
        self.go_on.clicked.connect(self._hide)
        self.end.clicked.connect(self._stop)
        layout = column(self, Label(look, "Stop the run?", 18, 600), margins=(24, 24, 24, 24), spacing=12)
        layout.addWidget(Label(look, text, 13, 400, "text2", wrap=True))
        layout.addSpacing(8)
        layout.addLayout(row(None, -1, self.cancel, self.go_on, self.end))
        self._ring = FocusRing(look, self)
        self.cancel.setFocus(Qt.FocusReason.TabFocusReason)

    def _hide(self) -> None:
        self.accept()
        self.hidden.emit()

    def _stop(self) -> None:
        self.accept()
        self.stopped.emit()


def ask_file(parent: QWidget, title: str, kinds: str, then: Callable[[Path], None]) -> None:
    """Ask for a file to open."""
    dialog = QFileDialog(parent, title, "", kinds)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    _open(dialog, then)


def ask_target(parent: QWidget, title: str, kinds: str, then: Callable[[Path], None]) -> None:
    """Ask for a file to write; Qt asks before one is written over."""
    dialog = QFileDialog(parent, title, "", kinds)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(_ending(kinds.partition(";;")[0]))
    dialog.filterSelected.connect(lambda kind: dialog.setDefaultSuffix(_ending(kind)))
    _open(dialog, then)


def _ending(kind: str) -> str:
    return kind.rpartition("*.")[2].rstrip(")")


def _open(dialog: QFileDialog, then: Callable[[Path], None]) -> None:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda name: then(Path(name)))
    dialog.open()
