"""What the window asks: whether to stop a run when it is closed, to save a profile, and for files. Nothing waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from gui.dialogs import Dialog
from gui.theme.look import Look


class CloseDialog(Dialog):
    """Signals: `stopped()` stop the run, then close; `hidden()` go on without a window. Esc does nothing."""

    stopped = Signal()
    hidden = Signal()

    def __init__(self, look: Look, window: QWidget, *, tray: bool = False) -> None:
        """`tray`: the desktop has a tray, where a window that is away can be found."""
        text = (
            "Stopping keeps every finished trial and takes back what was changed on the hosts; the window "
            "closes when that is done. The run can also go on without a window, "
        )
        text += (
            "which its sign in the tray brings back, or starting BranchLab again."
            if tray
            else "which starting BranchLab again brings back; without one, BranchLab ends with the run."
        )
        super().__init__(look, window, "Stop the run?", text)
        self.setModal(True)
        self.cancel = self.button("Cancel", "flat")
        self.go_on = self.button("Go on without a window")
        self.end = self.button("Stop and close", "filled")
        self.cancel.clicked.connect(self.reject)
        self.go_on.clicked.connect(self._hide)
        self.end.clicked.connect(self._stop)
        self.cancel.setFocus(Qt.FocusReason.TabFocusReason)

    def _hide(self) -> None:
        self.accept()
        self.hidden.emit()

    def _stop(self) -> None:
        self.accept()
        self.stopped.emit()


class SaveDialog(Dialog):
    """Signals: `saved()` save first; `given_up()` go on without. Esc does nothing."""

    saved = Signal()
    given_up = Signal()

    def __init__(self, look: Look, window: QWidget, name: str) -> None:
        text = "What was changed since it was saved last would be gone."
        super().__init__(look, window, f"Save the changes of {name}?", text)
        self.button("Cancel", "flat").clicked.connect(self.reject)
        self.lose = self.button("Do not save")
        self.keep = self.button("Save", "filled")
        self.lose.clicked.connect(self._lose)
        self.keep.clicked.connect(self._keep)
        self.keep.setDefault(True)

    def _lose(self) -> None:
        self.accept()
        self.given_up.emit()

    def _keep(self) -> None:
        self.accept()
        self.saved.emit()


class OverwriteDialog(Dialog):
    """Signals: `replaced()` write over what another program wrote; `elsewhere()` choose another file."""

    replaced = Signal()
    elsewhere = Signal()

    def __init__(self, look: Look, window: QWidget, name: str) -> None:
        text = "Saving here would throw away what that program wrote."
        super().__init__(look, window, f"{name} was changed by another program", text, grade="warn")
        self.button("Cancel", "flat").clicked.connect(self.reject)
        self.replace = self.button("Replace it")
        self.other = self.button("Save as …", "filled")
        self.replace.clicked.connect(self._replace)
        self.other.clicked.connect(self._elsewhere)
        self.other.setDefault(True)

    def _replace(self) -> None:
        self.accept()
        self.replaced.emit()

    def _elsewhere(self) -> None:
        self.accept()
        self.elsewhere.emit()


def ask_file(parent: QWidget, title: str, kinds: str, then: Callable[[Path], None]) -> None:
    """Ask for a file to open."""
    dialog = QFileDialog(parent, title, "", kinds)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    _open(dialog, then)


def ask_target(
    parent: QWidget, title: str, kinds: str, then: Callable[[Path], None], *, name: str = ""
) -> None:
    """Ask for a file to write, `name` being proposed; Qt asks before one is written over."""
    dialog = QFileDialog(parent, title, "", kinds)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(_ending(kinds.partition(";;")[0]))
    dialog.filterSelected.connect(lambda kind: dialog.setDefaultSuffix(_ending(kind)))
    if name:
        dialog.selectFile(name)
    _open(dialog, then)


def _ending(kind: str) -> str:
    return kind.rpartition("*.")[2].rstrip(")")


def _open(dialog: QFileDialog, then: Callable[[Path], None]) -> None:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda name: then(Path(name)))
    dialog.open()
