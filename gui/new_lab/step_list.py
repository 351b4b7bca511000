"""The steps of the wizard at its left: a number each, or what became of it, and a line that joins them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import column

_DISC, _HIGH = 22, 62


class StepButton(QAbstractButton):
    """One step; the list says how it stands."""

    def __init__(self, look: Look, number: int, name: str, last: bool) -> None:
        super().__init__()
        self._look, self._number, self._last = look, number, last
        self._sign, self._said, self._here = "", "", False
        self.setText(name)
        self.setFixedHeight(look.px(_HIGH))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(name)
        look.changed.connect(self.update)

    def show_state(self, sign: str, said: str, here: bool) -> None:
        """How it stands: a sign or none, a word under its name, and whether it is the step that is shown."""
        if (sign, said, here) != (self._sign, self._said, self._here):
            self._sign, self._said, self._here = sign, said, here
            self._tell()
            self.update()

    def _tell(self) -> None:
        told = f"{self.text()}, step {self._number}{', ' + self._said if self._said else ''}"
        self.setAccessibleName(f"{told}, shown now" if self._here else told)

    def number(self, number: int) -> None:
        """Its place among the steps, from 1."""
        if number != self._number:
            self._number = number
            self._tell()
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, self._look.px(_HIGH))

    def paintEvent(self, event: QPaintEvent) -> None:
        look, painter = self._look, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        size = float(look.px(_DISC))
        disc = QRectF(6, 8, size, size)
        if not self._last:
            done = self._sign == marks.OK
            painter.setPen(QPen(look.colour("ok" if done else "hair"), 2 if done else 1.4))
            painter.drawLine(
                QPointF(disc.center().x(), disc.bottom() + 1), QPointF(disc.center().x(), self.height())
            )
        self._disc(painter, disc)
        left = disc.right() + 13
        painter.setFont(look.font(13, 600 if self._here else 500))
        painter.setPen(look.colour("text" if self._here or self._sign else "text2"))
        high = painter.fontMetrics().height()
        top = disc.top() - 2 if self._said else disc.center().y() - high / 2
        room = QRectF(left, top, self.width() - left - 4, high)
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft, self.text())
        painter.setFont(look.font(12))
        painter.setPen(look.colour("text2"))
        said = painter.fontMetrics().elidedText(self._said, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(room.translated(0, high + 1), Qt.AlignmentFlag.AlignLeft, said)

    def _disc(self, painter: QPainter, disc: QRectF) -> None:
        look = self._look
        if self._sign == marks.OK and not self._here:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.colour("ok"))
            painter.drawEllipse(disc)
            tick = QPainterPath(disc.topLeft() + QPointF(disc.width() * 0.28, disc.height() * 0.52))
            tick.lineTo(disc.topLeft() + QPointF(disc.width() * 0.43, disc.height() * 0.68))
            tick.lineTo(disc.topLeft() + QPointF(disc.width() * 0.73, disc.height() * 0.35))
            pen = QPen(look.colour("surface"), 2.2)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
            painter.strokePath(tick, pen)
            return
        if self._sign in (marks.WARN, marks.TROUBLE) and not self._here:
            marks.draw_sign(painter, look, self._sign, disc.adjusted(1, 1, -1, -1))
            return
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(look.colour("accent" if self._here else "edge"), 2 if self._here else 1.2))
        painter.drawEllipse(disc.adjusted(1, 1, -1, -1))
        painter.setFont(look.font(12, 600))
        painter.setPen(look.colour("accent" if self._here else "text2"))
        painter.drawText(disc, Qt.AlignmentFlag.AlignCenter, str(self._number))


class StepList(QWidget):
    """Signal `chosen(object)`: the number of a step, from 0."""

    chosen = Signal(object)

    def __init__(self, look: Look, names: Sequence[str]) -> None:
        super().__init__()
        self.buttons = [
            StepButton(look, number + 1, name, number == len(names) - 1) for number, name in enumerate(names)
        ]
        column(self, *self.buttons, spacing=0)
        for number, button in enumerate(self.buttons):
            button.clicked.connect(lambda _=False, number=number: self.chosen.emit(number))

    def show_step(self, number: int, shown: bool) -> None:
        """Whether a step is one of this lab's; those that are count from 1."""
        self.buttons[number].setVisible(shown)
        seen = [button for button in self.buttons if not button.isHidden()]
        for count, button in enumerate(seen, 1):
            button.number(count)
