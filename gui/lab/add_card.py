"""The dashed card under the clients that adds one more."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsSceneMouseEvent, QStyleOptionGraphicsItem, QWidget

from gui.theme import icons, marks
from gui.theme.look import Look

ADD = "\N{FULLWIDTH PLUS SIGN}client"
"""Its name among those of hosts; no host can have it."""


class AddCard(QGraphicsItem):
    """Calls `pressed` when it is pressed."""

    def __init__(self, look: Look, pressed: Callable[[], None], box: QRectF) -> None:
        super().__init__()
        self._look, self._pressed = look, pressed
        self._box = QRectF(0, 0, box.width(), box.height())
        self._ringed = False
        self.setPos(box.topLeft())
        self.setZValue(-1)  # a host may be put over it
        self.setToolTip("Add a client (Ins)")
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def ring(self, ringed: bool) -> None:
        """Where the keyboard is, or not."""
        self._ringed = ringed
        self.update()

    def boundingRect(self) -> QRectF:
        return self._box.adjusted(-5, -5, 5, 5)

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed()

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        look, box = self._look, self._box
        pen = QPen(look.colour("edge"), 1)
        pen.setDashPattern([4, 3])
        painter.setPen(pen)
        painter.setBrush(look.colour("canvas"))
        painter.drawRoundedRect(box, 8, 8)
        icons.draw(painter, "plus", look.colour("text2"), QRectF(14, box.height() / 2 - 7, 14, 14))
        painter.setFont(look.font(12))
        painter.setPen(look.colour("text2"))
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(box.adjusted(36, 0, -4, 0), left, "Add a client" if box.width() > 130 else "Add")
        if self._ringed:
            marks.draw_ring(painter, look, box)
