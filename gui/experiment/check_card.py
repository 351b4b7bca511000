"""A choice with meaning: a card with a check, a name and a sentence; pressed anywhere, or with Space."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from gui.theme.look import Look
from gui.widgets.basic import Elided

BOX = 15.0


class CheckCard(QAbstractButton):
    """One line for the name, one for a few words."""

    HEIGHT = 46

    def __init__(self, look: Look, name: str, about: str) -> None:
        super().__init__()
        self._look, self.about = look, about
        self.setText(name)
        self.setCheckable(True)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedHeight(self.HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.describe(about)

    def describe(self, about: str) -> None:
        """Other words under the name."""
        self.about = about
        self.setAccessibleName(f"{self.text()}, {about}" if about else self.text())
        self.setToolTip(f"{self.text()}: {about}")
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        bold, plain = QFontMetrics(self._look.font(13, 600)), QFontMetrics(self._look.font(12, 400))
        wide = max(bold.horizontalAdvance(self.text()), plain.horizontalAdvance(self.about))
        return QSize(wide + 42, self.HEIGHT)

    def minimumSizeHint(self) -> QSize:
        bold = QFontMetrics(self._look.font(13, 600))
        return QSize(bold.horizontalAdvance(self.text()) + 38, self.HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        self.paint_ground(painter)
        off = not self.isEnabled()
        painter.setFont(look.font(13, 600))
        painter.setPen(look.colour("text3" if off else "text"))
        painter.drawText(QPointF(33, 21), self.text())
        room = self.width() - 33 - 6
        painter.setFont(look.font(12, 400))
        if painter.fontMetrics().horizontalAdvance(self.about) > room:
            painter.setFont(look.font(11, 400))
        painter.setPen(look.colour("text3" if off else "text2"))
        about = painter.fontMetrics().elidedText(self.about, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QPointF(33, 38), about)

    def paint_ground(self, painter: QPainter) -> None:
        """The card and its check."""
        look, on = self._look, self.isChecked()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        ground = "accent_soft" if on else "canvas" if self.underMouse() else "surface"
        painter.setBrush(look.colour(ground))
        painter.setPen(QPen(look.mixed(look.token("accent"), 0.6) if on else look.colour("hair"), 1))
        painter.drawRoundedRect(box, 6, 6)
        draw_check(painter, look, QRectF(9.5, 9.5, BOX, BOX), on, off=not self.isEnabled())


def draw_check(painter: QPainter, look: Look, box: QRectF, on: bool, *, off: bool = False) -> None:
    """A box, ticked or not."""
    painter.save()
    ink = "text3" if off else "accent" if on else "edge"
    painter.setPen(QPen(look.colour(ink), 1))
    painter.setBrush(look.colour(ink) if on else look.colour("field"))
    painter.drawRoundedRect(box, 4, 4)
    if on:
        tick = QPainterPath(QPointF(box.left() + 3.6, box.center().y() + 0.2))
        tick.lineTo(box.left() + 6.4, box.bottom() - 4.2)
        tick.lineTo(box.right() - 3.2, box.top() + 4.6)
        pen = QPen(look.colour("on_accent"), 1.8)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(pen)
        painter.drawPath(tick)
    painter.restore()


def elided(look: Look, text: str, size: int, weight: int, ink: str) -> QWidget:
    """A label that never asks for more room than there is."""
    made = Elided(look, "", size, weight, ink)
    made.say(text)
    return made
