"""The attempts of a cell, drawn."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from gui.theme.look import Look
from gui.widgets.fields import HEIGHT


class Pips(QWidget):
    """The attempts of a cell, drawn: warm-ups hollow and small, the others filled."""

    _MOST = 12

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._attempts, self._warm_up = 0, 0
        self.setFixedHeight(HEIGHT)

    def show_attempts(self, attempts: int, warm_up: int) -> None:
        """So many, the first ones of them warm-up."""
        self._attempts, self._warm_up = max(0, min(attempts, self._MOST)), max(0, warm_up)
        self.setFixedWidth(max(1, 24 * self._attempts + 4))
        self.setAccessibleName(f"{warm_up} of {attempts} attempts are warm-up")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        x, middle = 0.5, self.height() / 2
        for number in range(self._attempts):
            if number < self._warm_up:
                painter.setPen(look.colour("edge"))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(QRectF(x, middle - 5.5, 11, 11), 2, 2)
                x += 15
            else:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(look.mixed(look.token("edge"), 0.8))
                painter.drawRoundedRect(QRectF(x, middle - 8, 20, 16), 3, 3)
                x += 24
