"""A host in the picture of the lab: a card that is pressed and dragged."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import (
    QApplication,
    QGraphicsItem,
    QGraphicsSceneMouseEvent,
    QStyleOptionGraphicsItem,
    QWidget,
)

from gui import words
from gui.lab.facts import ROLE_ICONS, ROLE_NAMES, HostShown
from gui.lab.places import CHIP
from gui.theme import icons, marks
from gui.theme.look import Look
from lab.model import ProxyState, Role

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class HostCard(QGraphicsItem):
    """A host: icon, name, role, sign and word; the proxy with how full its cache is. It is dragged by the mouse."""

    def __init__(
        self,
        look: Look,
        chosen: Callable[[str], None],
        dragged: Callable[[str, QPointF], None],
        host: HostShown,
        box: QRectF,
        *,
        small: bool,
    ) -> None:
        super().__init__()
        self._look, self._chosen, self._dragged = look, chosen, dragged
        self.host = host
        self._box = QRectF(0, 0, box.width(), box.height())
        self._small = small
        self._cache: float | None = None
        self._word = ""
        self._marked = self._ringed = False
        self._held: QPointF | None = None
        """where in the card the mouse holds it, once it is dragged"""
        self.setPos(box.topLeft())
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._tell()

    def show_host(self, host: HostShown, cache: float | None, word: str = "") -> None:
        """The host, and how full the cache is; `word` is said where that is not known."""
        if (host, cache, word) != (self.host, self._cache, self._word):
            self.host, self._cache, self._word = host, cache, word
            self._tell()
            self.update()

    def mark(self, marked: bool) -> None:
        """Selected or not."""
        if marked != self._marked:
            self._marked = marked
            self.update()

    def ring(self, ringed: bool) -> None:
        """Where the keyboard is, or not."""
        if ringed != self._ringed:
            self._ringed = ringed
            self.update()

    @property
    def box(self) -> QRectF:
        """Where it is in the picture."""
        return self._box.translated(self.pos())

    def _tell(self) -> None:
        host = self.host
        self.setToolTip(f"{host.name}, {ROLE_NAMES[host.role]}: {host.word}")

    def boundingRect(self) -> QRectF:
        return self._box.adjusted(-5, -5, 5, 6)

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        self._chosen(self.host.name)

    def mouseMoveEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        if not event.buttons() & Qt.MouseButton.LeftButton:
            return
        begun = event.buttonDownScenePos(Qt.MouseButton.LeftButton)
        far = (event.screenPos() - event.buttonDownScreenPos(Qt.MouseButton.LeftButton)).manhattanLength()
        if self._held is None and far >= QApplication.startDragDistance():
            self._held = begun - self.pos()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self.setZValue(1)
        if self._held is not None:
            self._dragged(self.host.name, event.scenePos() - self._held)

    def mouseReleaseEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        self._held = None
        self.setZValue(0)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        look, box, host = self._look, self._box, self.host
        trouble = host.sign == marks.TROUBLE
        for reach, share in ((3, 12), (2, 16), (1, 20)):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(0, 0, 0, share if not look.palette.dark else share * 2))
            painter.drawRoundedRect(box.adjusted(-reach / 2, 1, reach / 2, reach), 8, 8)
        edge = "accent" if self._marked else "trouble" if trouble else "hair"
        painter.setPen(QPen(look.colour(edge), 2 if self._marked else 1.4 if trouble else 1))
        painter.setBrush(look.colour("surface"))
        painter.drawRoundedRect(box, 8, 8)
        if self._ringed:
            marks.draw_ring(painter, look, box)
        if box.height() <= CHIP:
            self._chip(painter)
            return
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("canvas"))
        square = QRectF(11, 12, 32, 32)
        painter.drawRoundedRect(square, 6, 6)
        icons.draw(painter, ROLE_ICONS[host.role], look.colour("text"), square.adjusted(7, 7, -7, -7))
        painter.setFont(look.font(13, 600))
        painter.setPen(look.colour("text"))
        painter.drawText(QRectF(53, 9, box.width() - 60, 19), _LEFT, self._cut(painter, host.name, 60))
        if self._small:
            self._said(painter, 53, 29)
            if host.role is Role.PROXY:
                self._fullness(painter, 55)
            return
        painter.setFont(look.font(12))
        painter.setPen(look.colour("text2"))
        painter.drawText(QRectF(53, 27, box.width() - 60, 18), _LEFT, ROLE_NAMES[host.role])
        if host.role is Role.PROXY:
            self._fullness(painter, 60)
        y = box.height() - 31
        painter.setPen(QPen(look.colour("hair"), 1))
        painter.drawLine(QPointF(12, y), QPointF(box.width() - 12, y))
        self._said(painter, 12, y + 5)

    def _chip(self, painter: QPainter) -> None:
        """The name and the sign, where there are many; the tip has the word."""
        look, host = self._look, self.host
        high = self._box.height()
        marks.draw_sign(painter, look, host.sign, QRectF(10, high / 2 - 7, 14, 14))
        painter.setFont(look.font(12, 600))
        painter.setPen(look.colour("text"))
        box = QRectF(31, 0, self._box.width() - 38, high)
        painter.drawText(box, _LEFT, self._cut(painter, host.name, 40))

    def _said(self, painter: QPainter, x: float, y: float) -> None:
        look, host = self._look, self.host
        marks.draw_sign(painter, look, host.sign, QRectF(x, y + 2, 14, 14))
        painter.setFont(look.font(12, 500))
        painter.setPen(look.colour("trouble" if host.sign == marks.TROUBLE else "text"))
        right = 12.0
        if host.remark and not self._small and host.sign != marks.TROUBLE:
            metrics = QFontMetricsF(look.font(11))
            right += metrics.horizontalAdvance(host.remark) + 4
        word = self._cut(painter, host.word, x + 22 + right)
        painter.drawText(QRectF(x + 21, y, self._box.width(), 18), _LEFT, word)
        if right > 12:
            painter.setFont(look.font(11))
            painter.setPen(look.colour("text2"))
            painter.drawText(QRectF(0, y, self._box.width() - 12, 18), _RIGHT, host.remark)

    def _cut(self, painter: QPainter, text: str, taken: float) -> str:
        room = round(self._box.width() - taken)
        return painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, max(20, room))

    def _fullness(self, painter: QPainter, y: float) -> None:
        look, width = self._look, self._box.width() - 24
        state = ProxyState(full=None if self._cache is None else min(100.0, max(0.0, round(self._cache))))
        shown = look.state(state)
        bar = QRectF(12, y, width, 11)
        painter.setPen(Qt.PenStyle.NoPen)
        hue = shown.colour if self._cache is not None else look.token("edge")
        painter.setBrush(look.mixed(hue, 0.2))
        painter.drawRoundedRect(bar, 2, 2)
        if self._cache:
            painter.setBrush(QColor(shown.colour))
            painter.drawRoundedRect(QRectF(bar.left(), y, width * self._cache / 100, 11), 2, 2)
        marks.draw_marker(painter, look, shown, QPointF(17, y + 25), 9)
        painter.setFont(look.font(12, 500))
        painter.setPen(look.colour("text"))
        said = (
            self._word or "not used now" if self._cache is None else f"cache {words.state(state, full=True)}"
        )
        painter.drawText(QRectF(29, y + 16, width, 18), _LEFT, said)
