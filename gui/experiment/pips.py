"""The attempts of a cell, drawn."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from gui.theme.look import Look
from gui.widgets.fields import HEIGHT


class Pips(QWidget):
    """The attempts of a cell, drawn: warm-ups hollow and small, the others filled."""

    _MOST, _STEP, _ROOM = 12, 24.0, 92.0
    """So many are drawn at most; the widest step from one to the next; so much room is there for all."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._attempts, self._warm_up = 0, 0
        self.setFixedHeight(HEIGHT)

    def show_attempts(self, attempts: int, warm_up: int) -> None:
        """So many, the first ones of them warm-up."""
        self._attempts, self._warm_up = max(0, min(attempts, self._MOST)), max(0, warm_up)
        self.setFixedWidth(max(1, round(self._step * self._attempts) + 4))
        self.setAccessibleName(f"{warm_up} of {attempts} attempts are warm-up")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        x, middle, part = 0.5, self.height() / 2, self._step / self._STEP
        gap = max(2.0, 4 * part)
        for number in range(self._attempts):
            if number < self._warm_up:
                wide = max(4.0, 15 * part - gap)
                painter.setPen(look.colour("edge"))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(QRectF(x, middle - 5.5, wide, 11), 2, 2)
            else:
                wide = self._step - gap
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(look.mixed(look.token("edge"), 0.8))
                painter.drawRoundedRect(
                    QRectF(x, middle - 8, wide, 16), min(3.0, wide / 3), min(3.0, wide / 3)
                )
            x += wide + gap

    @property
    def _step(self) -> float:
        return min(self._STEP, self._ROOM / max(1, self._attempts))
