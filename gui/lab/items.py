"""What lies under the hosts in the picture of the lab: ground with zones and cables, and the line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsSceneMouseEvent,
    QStyleOptionGraphicsItem,
    QWidget,
)

from gui import words
from gui.lab.facts import LineShown, Shown
from gui.lab.places import CHIP, Places
from gui.theme import icons, marks
from gui.theme.look import Look
from lab.model import Line, Role
from lab.palette import PAIR_DIRECTIONS, PAIR_NAMES

THE_LINE = "\N{RIGHTWARDS ARROW}line"
"""The line's name among those of hosts; no host can have it."""

_DOT, _LIVE_BPS = 22.0, 1000.0
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_MIDDLE = Qt.AlignmentFlag.AlignCenter


class Dots(QGraphicsItem):
    """The dotted paper under it all. Some thousands of dots: painted once, and kept."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._area = QRectF()
        self.setZValue(-20)
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)

    def place(self, area: QRectF) -> None:
        """Fill an area."""
        if area != self._area:
            self.prepareGeometryChange()
            self._area = area
            self.update()

    def boundingRect(self) -> QRectF:
        return self._area

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        pen = QPen(self._look.colour("hair"), 1.6)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        across, down = int(self._area.width() / _DOT), int(self._area.height() / _DOT)
        painter.drawPoints([QPointF(_DOT * x, _DOT * y) for x in range(1, across) for y in range(1, down)])


class Ground(QGraphicsItem):
    """Zones, cables and the legend."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.places: Places | None = None
        self._area = QRectF()
        self._shown = Shown()
        self._live: tuple[object, ...] = ()
        self._host = ""
        self.setZValue(-10)
        # The line moves over it many times a second; it stays as it was painted.
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)

    def place(self, placed: Places, area: QRectF) -> None:
        """Stand as laid out, in an area."""
        self.prepareGeometryChange()
        self.places, self._area = placed, area
        self.update()

    def show_lab(self, shown: Shown) -> None:
        """Hosts, whose cables are drawn."""
        self._shown = shown
        self.update()

    def show_rates(self, rates: dict[str, float], host: str) -> None:
        """Which cables carry something; repaints only when that changes."""
        live = tuple(
            any(rates.get(direction, 0.0) > _LIVE_BPS for direction in PAIR_DIRECTIONS[pair])
            for pair in PAIR_NAMES
        )
        if (*live, host) != self._live:
            self._live, self._host = (*live, host), host
            self.update()

    def boundingRect(self) -> QRectF:
        return self._area

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        if self.places is None:
            return
        look = self._look
        for zone, icon, name, remark in (
            (self.places.office, "buildings", "Office", "local network, not limited"),
            (self.places.far, "cloud", "Far away", ""),
        ):
            painter.setPen(QPen(look.colour("hair"), 1))
            painter.setBrush(look.colour("zone"))
            painter.drawRoundedRect(zone, 10, 10)
            icons.draw(painter, icon, look.colour("text2"), QRectF(zone.left() + 16, zone.top() + 13, 17, 17))
            painter.setFont(look.font(13, 600))
            painter.setPen(look.colour("text"))
            box = QRectF(zone.left() + 41, zone.top() + 11, zone.width() - 50, 20)
            painter.drawText(box, _LEFT, name)
            box.setLeft(box.left() + painter.fontMetrics().horizontalAdvance(name) + 10)
            painter.setFont(look.font(12))
            painter.setPen(look.colour("text2"))
            painter.drawText(box, _LEFT, remark)
        self._cables(painter)
        self._legend(painter)

    def _cables(self, painter: QPainter) -> None:
        placed = self.places
        if placed is None or not placed.clients:
            return
        live = dict(zip(PAIR_NAMES, self._live, strict=False))
        clients = [host for host in self._shown.hosts if host.role is Role.CLIENT]
        bus, up = placed.bus, placed.router
        pairs = []
        # Each begins amid its card, which lies over it: so a card may stand anywhere.
        for box, host in zip(placed.clients, clients, strict=False):
            works = len(clients) == 1 or host.name == self._host
            y, x = box.center().y(), box.center().x()
            apart = 5 if box.height() > CHIP else 3
            broken = host.sign == marks.TROUBLE
            if placed.proxy is not None:
                to = placed.proxy.center()
                gold = [(x, y + apart), (bus, y + apart), (bus, to.y()), (to.x(), to.y())]
                pairs.append(("client-proxy", gold, works, broken))
            red = [(x, y - apart), (bus + 10, y - apart), (bus + 10, up.y()), (up.x(), up.y())]
            pairs.append(("client-server", red, works, broken))
        if placed.proxy is not None:
            at = placed.proxy.center()
            pairs.append(
                ("proxy-server", [(at.x(), at.y()), (up.x(), at.y()), (up.x(), up.y())], True, False)
            )
        pairs.sort(key=lambda cable: bool(live.get(cable[0])) and cable[2])
        for pair, corners, works, broken in pairs:
            self._cable(painter, pair, corners, bool(live.get(pair)) and works, broken)
        if placed.server is not None:
            at, end = placed.server.center(), placed.pipe.right()
            y = placed.pipe.center().y()
            self._cable(
                painter, "", [(end - 4, y), (end + 6, y), (end + 6, at.y()), (at.x(), at.y())], False, False
            )

    def _cable(
        self, painter: QPainter, pair: str, corners: Sequence[tuple[float, float]], live: bool, broken: bool
    ) -> None:
        pen = QPen(self._look.pair(pair) if live else self._look.colour("edge"), 3.0 if live else 1.6)
        if broken:
            pen.setDashPattern([3, 2.4])
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.strokePath(marks.rounded(corners, 8), pen)

    def _legend(self, painter: QPainter) -> None:
        look = self._look
        x, y = 22.0, self._area.bottom() - 29
        painter.setFont(look.font(12))
        for pair, (name, where) in PAIR_NAMES.items():
            painter.setPen(QPen(look.pair(pair), 3))
            painter.drawLine(QPointF(x, y), QPointF(x + 20, y))
            text = f"{name}, past the proxy" if "past" in where else name
            painter.setPen(look.colour("text2"))
            painter.drawText(QRectF(x + 28, y - 10, 260, 20), _LEFT, text)
            x += 28 + painter.fontMetrics().horizontalAdvance(text) + 20


class Pipe(QGraphicsItem):
    """The line: two lanes, filled to their share by pair; unlimited dashed."""

    def __init__(self, look: Look, chosen: Callable[[str], None]) -> None:
        super().__init__()
        self._look, self._chosen = look, chosen
        self._places: Places | None = None
        self._line = LineShown()
        self._rates: dict[str, float] = {}
        self._texts: tuple[str, str] = ("", "")
        self._marked = self._ringed = False
        self._router_name = ""
        self._shared = True
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def place(self, placed: Places) -> None:
        """Stand as laid out."""
        self.prepareGeometryChange()
        self._places = placed
        self.update()

    def show_line(self, line: LineShown, *, shared: bool = True) -> None:
        """The line as last verified; `shared` by all office hosts, or one for each."""
        self._line, self._shared = line, shared
        self._tell(self._rates)

    def show_rates(self, rates: dict[str, float]) -> None:
        """Rates by direction, bit/s."""
        if rates != self._rates:
            self._tell(rates)

    def _tell(self, rates: dict[str, float]) -> None:
        self._rates = rates
        self.update()

    def mark(self, marked: bool) -> None:
        """Selected or not."""
        self._marked = marked
        self.update()

    def ring(self, ringed: bool) -> None:
        """Where the keyboard is, or not."""
        self._ringed = ringed
        self.update()

    def boundingRect(self) -> QRectF:
        if self._places is None:
            return QRectF()
        pipe = self._places.pipe
        return QRectF(self._places.router.x() - 24, pipe.top() - 84, pipe.width() + 40, 84 + 36 + 96)

    def shape(self) -> QPainterPath:
        """Where a press selects the line."""
        path = QPainterPath()
        if self._places is not None:
            path.addRect(self._places.pipe.adjusted(-34, -20, -4, 20))
        return path

    def show_router(self, name: str) -> None:
        """The host that is the router between, empty where there is none."""
        self._router_name = name

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        self._chosen(self.at(event.pos()))

    def at(self, place: QPointF) -> str:
        """What is there: the router, where one is at the line's begin, else the line."""
        disc = self._places.router if self._places is not None else QPointF()
        near = (place - disc).manhattanLength() < 30
        return self._router_name if near and self._router_name else THE_LINE

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        if self._places is None:
            return
        look, pipe = self._look, self._places.pipe
        line = self._line.line
        outline = QPainterPath()
        outline.addRoundedRect(pipe, 8, 8)
        painter.fillPath(outline, look.colour("surface"))
        painter.save()
        painter.setClipPath(outline)
        self._lanes(painter, pipe, line)
        painter.restore()
        pen = QPen(look.colour("accent" if self._marked else "edge"), 2 if self._marked else 1.4)
        if line is None or not line.limited:
            pen.setDashPattern([4, 3])
        painter.strokePath(outline, pen)
        painter.setPen(QPen(look.colour("hair"), 1))
        middle = pipe.top() + 22
        painter.drawLine(QPointF(pipe.left() + 4, middle), QPointF(pipe.right() - 2, middle))
        if self._ringed:
            marks.draw_ring(painter, look, pipe.adjusted(0, 0, -6, 0))
        self._router(painter, self._places.router)
        self._words(painter, pipe, line)

    def _lanes(self, painter: QPainter, pipe: QRectF, line: Line | None) -> None:
        if line is None or not line.download_bps or not line.upload_bps:
            return
        for upload, limit, top, high in (
            (False, line.download_bps, pipe.top() + 1, 21.0),
            (True, line.upload_bps, pipe.top() + 23, 12.0),
        ):
            x = pipe.left() + 10
            room = pipe.width() - 12
            for pair in ("client-server", "proxy-server"):
                rate = self._rates.get(PAIR_DIRECTIONS[pair][upload], 0.0)
                width = min(room * rate / limit, room - (x - pipe.left() - 10))
                if width > 0.5:  # so it is for no rate that nobody knows
                    painter.fillRect(QRectF(x, top, width, high), self._look.pair(pair, upload))
                    x += width

    def _router(self, painter: QPainter, at: QPointF) -> None:
        look = self._look
        painter.setPen(QPen(look.colour("edge"), 1.2))
        painter.setBrush(look.colour("surface"))
        painter.drawEllipse(at, 21, 21)
        icons.draw(painter, "arrows-left-right", look.colour("text"), QRectF(at.x() - 9, at.y() - 9, 18, 18))

    def _words(self, painter: QPainter, pipe: QRectF, line: Line | None) -> None:
        look = self._look
        placed = self._places
        # over the middle of what lies between the zones, which is a little left of the pipe's own
        left, right = (placed.office.right(), placed.far.left()) if placed else (pipe.left(), pipe.right())
        middle = QRectF(left, 0, right - left, 18)
        self._text(
            painter, middle.translated(0, pipe.top() - 76), "The line", look.font(13, 600), "text", _MIDDLE
        )
        box = middle.translated(0, pipe.top() - 57)
        shared = "one for all office hosts" if self._shared else "one for each office host"
        self._text(painter, box, shared, look.font(11), "text2", _MIDDLE)
        down = sum(
            self._rates.get(PAIR_DIRECTIONS[pair][0], 0.0) for pair in ("client-server", "proxy-server")
        )
        up = sum(self._rates.get(PAIR_DIRECTIONS[pair][1], 0.0) for pair in ("client-server", "proxy-server"))
        self._rate(
            painter,
            middle.translated(0, pipe.top() - 25),
            "←",
            down,
            line.download_bps if line else None,
            "down",
        )
        self._rate(
            painter, middle.translated(0, pipe.bottom() + 7), "→", up, line.upload_bps if line else None, "up"
        )
        extras = words.extras(line) if line is not None else ""
        box = middle.translated(0, pipe.bottom() + 36)
        self._text(painter, box, extras, look.font(11), "text2", _MIDDLE)
        width = QFontMetricsF(look.font(11, 500)).horizontalAdvance(self._line.word)
        x = middle.center().x() - (width + 20) / 2
        y = pipe.bottom() + (64 if extras else 45)
        marks.draw_sign(painter, look, self._line.sign, QRectF(x, y - 6.5, 13, 13))
        self._text(
            painter, QRectF(x + 20, y - 9, width + 4, 18), self._line.word, look.font(11, 500), "text2", _LEFT
        )

    def _rate(
        self, painter: QPainter, box: QRectF, arrow: str, rate: float, limit: int | None, way: str
    ) -> None:
        look = self._look
        if not limit:
            self._text(painter, box, f"{arrow} unlimited {way}", look.font(12), "text2", _MIDDLE)
            return
        unit, size = ("Mbit/s", 1e6) if limit >= 1e6 and limit % 1e5 == 0 else ("kbit/s", 1e3)
        now = words.NONE if math.isnan(rate) else f"{rate / size:.{2 if unit == 'Mbit/s' else 0}f}"
        now = f"{arrow} {now}"
        rest = f"of {limit / size:g} {unit} {way}"
        bold, plain = look.font(12, 600), look.font(12)
        first = QFontMetricsF(bold).horizontalAdvance(now) + 6
        whole = first + QFontMetricsF(plain).horizontalAdvance(rest)
        x = box.center().x() - whole / 2
        self._text(painter, QRectF(x, box.top(), first + 4, 18), now, bold, "text", _LEFT)
        self._text(painter, QRectF(x + first, box.top(), whole, 18), rest, plain, "text2", _LEFT)

    def _text(
        self, painter: QPainter, box: QRectF, text: str, font: QFont, ink: str, flags: Qt.AlignmentFlag
    ) -> None:
        painter.setFont(font)
        painter.setPen(self._look.colour(ink))
        painter.drawText(box, flags, text)
