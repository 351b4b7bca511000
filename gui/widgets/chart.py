"""What every chart of ours can do: copy its picture and its figures."""

from __future__ import annotations

from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QWidget

from gui import copying


class Copied(QWidget):
    """A chart: Ctrl C copies its picture, twice as large as on screen, and its figures as a table."""

    def copy(self) -> None:
        """Picture and figures to the clipboard."""
        copying.put(self, self.copied())

    def copied(self) -> str:
        """The figures as a table of tabs."""
        raise NotImplementedError

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl C."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        else:
            event.ignore()
