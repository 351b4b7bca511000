"""The drawings of Help: proxy states, attempts of a cell, and the line; from the same colours as everything else."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from gui.help.topics import LINE, STATES, WARM_UP
from gui.theme import icons, marks
from gui.theme.look import Look
from lab.model import DISABLED, ProxyState

_SHOWN = (DISABLED, ProxyState(full=0.0), ProxyState(full=90.0), ProxyState(full=100.0))
_NAMES = ("Disabled", "0 % full", "90 % full", "100 % full")
_CENTRE = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop
HEIGHT = 190


class Drawing(QWidget):
    """One topic's drawing; topics without one show nothing."""

    def __init__(self, look: Look, topic: str) -> None:
        super().__init__()
        self._look, self._topic = look, topic
        self.setFixedHeight(HEIGHT)
        self.setMinimumWidth(420)
        self.setAccessibleName(_SAID[topic])
        look.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._look.colour("hair"), 1))
        painter.setBrush(self._look.colour("canvas"))
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, 8, 8)
        {STATES: _states, WARM_UP: _attempts, LINE: _line}[self._topic](painter, self._look, box)


_SAID = {
    STATES: "Four caches: struck out, empty, nine tenths full, full; the less is full, the more crosses the line",
    WARM_UP: "Four attempts of one cell: the first, hollow, takes longer and is not counted; three are kept",
    LINE: "Packets wait in a queue before a narrow pipe between office and server",
}


def drawn(topic: str) -> bool:
    """True where a topic has a drawing."""
    return topic in _SAID


def _text(
    painter: QPainter, look: Look, box: QRectF, text: str, ink: str = "text2", weight: int = 400
) -> None:
    painter.setFont(look.font(12, weight))
    painter.setPen(look.colour(ink))
    painter.drawText(box, _CENTRE, text)


def _states(painter: QPainter, look: Look, box: QRectF) -> None:
    """A vessel for each, and below it how much crosses the line."""
    wide = box.width() / 4
    for number, (state, name) in enumerate(zip(_SHOWN, _NAMES, strict=True)):
        shown = look.state(state)
        hue = look.mixed(shown.colour, 1.0)
        middle = box.left() + wide * (number + 0.5)
        vessel = QRectF(middle - 20, box.top() + 40, 40, 78)
        full = (state.full or 0.0) / 100
        if state.enabled and full:
            level = vessel.adjusted(0, vessel.height() * (1 - full), 0, 0)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(hue)
            painter.drawRoundedRect(level, 4, 4)
        pen = QPen(hue, 2)
        if not state.enabled:
            pen.setDashPattern([3, 2])
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(vessel, 5, 5)
        if not state.enabled:
            painter.drawLine(vessel.bottomLeft(), vessel.topRight())
        marks.draw_marker(painter, look, shown, QPointF(middle - 36, box.top() + 22), 10.0)
        _text(painter, look, QRectF(middle - wide / 2 + 14, box.top() + 13, wide - 14, 18), name, "text", 600)
        share = 1.0 if not state.enabled else 1 - full
        lane = QRectF(middle - 44, box.top() + 134, 88, 8)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("sunken"))
        painter.drawRoundedRect(lane, 2, 2)
        painter.setBrush(look.pair("client-server" if not state.enabled else "proxy-server"))
        painter.drawRoundedRect(QRectF(lane.left(), lane.top(), max(2.0, lane.width() * share), 8), 2, 2)
        said = "all of it" if share == 1 else "none of it" if share == 0 else "a tenth"
        _text(
            painter, look, QRectF(middle - wide / 2, box.top() + 148, wide, 18), f"crosses the line: {said}"
        )


def _attempts(painter: QPainter, look: Look, box: QRectF) -> None:
    """Bars of time: the first hollow and longer, the others filled."""
    shown = look.state(ProxyState(full=90.0))
    hue = look.mixed(shown.colour, 1.0)
    left, longest = box.left() + 132, box.width() - 340
    for number, share in enumerate((1.0, 0.74, 0.78, 0.75)):
        top = box.top() + 24 + number * 36
        first = number == 0
        name = "first attempt" if first else f"attempt {number + 1}"
        painter.setFont(look.font(12, 400))
        painter.setPen(look.colour("text"))
        flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(QRectF(box.left() + 8, top, 112, 20), flags, name)
        bar = QRectF(left, top, longest * share, 20)
        painter.setPen(QPen(hue, 1.5))
        painter.setBrush(Qt.BrushStyle.NoBrush if first else hue)
        painter.drawRoundedRect(bar, 3, 3)
        painter.setPen(look.colour("text2"))
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        text = "warm-up: shown, not counted" if first else "kept"
        painter.drawText(QRectF(bar.right() + 10, top, 220, 20), flags, text)


def _line(painter: QPainter, look: Look, box: QRectF) -> None:
    """Packets that come fast, wait in the queue, and leave one by one through the pipe."""
    middle = box.top() + 92
    office, server = (
        QRectF(box.left() + 20, middle - 26, 84, 52),
        QRectF(box.right() - 104, middle - 26, 84, 52),
    )
    for zone, icon, name in ((office, "buildings", "office"), (server, "hard-drives", "server")):
        painter.setPen(QPen(look.colour("hair"), 1))
        painter.setBrush(look.colour("surface"))
        painter.drawRoundedRect(zone, 8, 8)
        icons.draw(
            painter, icon, look.colour("text2"), QRectF(zone.center().x() - 10, zone.top() + 8, 20, 20)
        )
        _text(painter, look, QRectF(zone.left(), zone.top() + 30, zone.width(), 18), name, "text")
    hue = look.pair("proxy-server")
    queue = QRectF(server.left() - 150, middle - 20, 110, 40)
    pipe = QRectF(office.right() + 12, middle - 7, queue.left() - office.right() - 24, 14)
    painter.setPen(QPen(look.colour("edge"), 1.2))
    painter.setBrush(look.colour("surface"))
    painter.drawRoundedRect(pipe, 6, 6)
    painter.drawRoundedRect(queue, 5, 5)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(hue)
    for number in range(9):  # three rows of packets that wait
        spot = QRectF(queue.right() - 14 - (number // 3) * 20, queue.top() + 5 + (number % 3) * 11, 16, 8)
        painter.drawRoundedRect(spot, 2, 2)
    for number in range(int(pipe.width() // 60)):  # and those under way, well apart
        painter.drawRoundedRect(QRectF(pipe.left() + 10 + number * 60, middle - 4, 16, 8), 2, 2)
    for number in range(2):
        painter.drawRoundedRect(QRectF(queue.right() + 6 + number * 18, middle - 4, 16, 8), 2, 2)
    _text(
        painter,
        look,
        QRectF(queue.left() - 40, queue.top() - 24, queue.width() + 80, 18),
        "packets wait their turn",
    )
    _text(
        painter,
        look,
        QRectF(pipe.left(), pipe.bottom() + 8, pipe.width(), 18),
        "the line: one after another, at its rate",
    )
    _text(
        painter,
        look,
        QRectF(box.left(), box.bottom() - 30, box.width(), 18),
        "download shown; upload the other way, with a rate of its own",
    )
