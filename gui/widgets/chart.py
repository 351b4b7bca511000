"""What every chart of ours can do: copy its picture."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPixmap
from PySide6.QtWidgets import QWidget


class Copied(QWidget):
    """A chart: Ctrl C copies its picture, twice as large as on screen."""

    def copy(self) -> None:
        """The picture to the clipboard."""
        picture = QPixmap(self.size() * 2)
        picture.setDevicePixelRatio(2)
        picture.fill(self.palette().base().color())
        self.render(picture)
        QGuiApplication.clipboard().setPixmap(picture)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl C."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        else:
            event.ignore()
