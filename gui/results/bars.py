"""Traffic by proxy state: what stays inside the office left of zero, what crosses the line right of it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from gui import copying, words
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.chart import Copied
from lab.analysis.cells import Cell
from lab.axis import ticks
from lab.model import ProxyState
from lab.palette import PAIR_DIRECTIONS, PAIR_NAMES

_NAMES, _TOTAL, _AXIS, _HEAD = 88.0, 64.0, 22.0, 22.0
_INSIDE = ("client-proxy",)
_OVER = ("proxy-server", "client-server")
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class PairLegend(QWidget):
    """Pairs of hosts: strong is download, pale is upload."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.setFixedHeight(18)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Legend: " + ", ".join(name for name, _ in PAIR_NAMES.values()))
        look.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        used = QFontMetrics(self._look.font(11))
        return QSize(sum(used.horizontalAdvance(name) + 36 for name, _ in PAIR_NAMES.values()), 18)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setFont(look.font(11))
        x = 4.0
        for pair, (name, _) in PAIR_NAMES.items():
            painter.fillRect(QRectF(x, 4, 10, 10), look.pair(pair))
            painter.fillRect(QRectF(x + 10, 4, 6, 10), look.pair(pair, True))
            painter.setPen(look.colour("text2"))
            painter.drawText(QRectF(x + 21, 0, 140, 18), _LEFT, name)
            x += painter.fontMetrics().horizontalAdvance(name) + 36


class TrafficBars(Copied):
    """Medians per kept trial, counted on arrival."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._cells: list[Cell] = []
        self._states: Sequence[ProxyState] = ()
        self.setMinimumHeight(150)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        look.changed.connect(self.update)

    def show_cells(self, name: str, cells: Sequence[Cell]) -> None:
        """The cells of one operation on one line."""
        self._cells = sorted(cells, key=lambda c: -1.0 if c.proxy.full is None else c.proxy.full)
        self._states = [cell.proxy for cell in self._cells]
        self.setMinimumHeight(int(_HEAD + _AXIS + 27 * max(1, len(self._cells))))
        self.setAccessibleName(f"Traffic of {name} by proxy state, MB")
        told = [
            f"{words.state(cell.proxy, full=True)}: {words.megabytes(_sum(cell, _INSIDE))} MB inside the "
            f"office, {words.megabytes(_sum(cell, _OVER))} MB over the line"
            for cell in self._cells
        ]
        self.setAccessibleDescription("; ".join(told))
        self.update()

    def copied(self) -> str:
        """MB by state, pair and direction."""
        ways = [
            (f"{name}, {('download', 'upload')[at]}, MB", direction)
            for pair, (name, _) in PAIR_NAMES.items()
            for at, direction in enumerate(PAIR_DIRECTIONS[pair])
        ]
        rows = []
        for cell in self._cells:
            counts = [cell.bytes.get(direction) for _, direction in ways]
            told = ["" if count is None else words.megabytes(count) for count in counts]
            rows.append([words.state(cell.proxy, full=True), *told])
        return copying.table(["proxy", *(head for head, _ in ways)], rows) if rows else ""

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        known = [cell for cell in self._cells if _known(cell)]
        if not known:
            painter.setFont(look.font(12))
            painter.setPen(look.colour("text3"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "No traffic on record yet.")
            return
        inside = max(_sum(cell, _INSIDE) for cell in known)
        over = max(_sum(cell, _OVER) for cell in known)
        top = max(inside, over) / 1e6
        marks_at = ticks(max(top, 0.001), 4)
        plot = QRectF(_NAMES, _HEAD, self.width() - _NAMES, self.height() - _HEAD - _AXIS)
        left_room = _TOTAL - 10 if inside else 12.0
        scale = (plot.width() - left_room - _TOTAL) / max(1e-9, (inside + over) / 1e6)
        zero = plot.left() + left_room + inside / 1e6 * scale
        self._axes(painter, plot, zero, scale, marks_at, bool(inside))
        high = plot.height() / len(self._cells)
        for number, cell in enumerate(self._cells):
            lane = QRectF(plot.left(), plot.top() + number * high, plot.width(), high)
            self._lane(painter, lane, zero, scale, cell)
        painter.setPen(QPen(look.colour("axis"), 1))
        x = round(zero) + 0.5
        painter.drawLine(QPointF(x, plot.top() - 4), QPointF(x, plot.bottom()))

    def _axes(
        self, painter: QPainter, plot: QRectF, zero: float, scale: float, at: Sequence[float], inside: bool
    ) -> None:
        look = self._look
        painter.setFont(look.font(11, 600))
        painter.setPen(look.colour("text2"))
        if inside:
            painter.drawText(QRectF(zero - 158, 0, 150, 16), _RIGHT, "inside the office")
        painter.drawText(QRectF(zero + 8, 0, 150, 16), _LEFT, "over the line")
        painter.setFont(look.font(11))
        painter.drawText(QRectF(self.width() - 200, 0, 200, 16), _RIGHT, "strong: download, pale: upload")
        for side in (-1, 1) if inside else (1,):
            last = ""
            for tick in at:
                x = zero + side * tick * scale
                if not plot.left() + 4 <= x <= plot.right() - 8 or (side < 0 and tick == 0):
                    continue
                painter.setPen(QPen(look.colour("grid"), 1))
                painter.drawLine(QPointF(round(x) + 0.5, plot.top()), QPointF(round(x) + 0.5, plot.bottom()))
                painter.setPen(look.colour("text2"))
                last = f"{tick:g}"
                box = QRectF(x - 30, plot.bottom() + 4, 60, 16)
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, last)
        painter.setPen(look.colour("text3"))
        painter.drawText(QRectF(0, plot.bottom() + 4, _NAMES, 16), _LEFT, "MB")

    def _lane(self, painter: QPainter, lane: QRectF, zero: float, scale: float, cell: Cell) -> None:
        look = self._look
        middle, high = lane.center().y(), min(18.0, lane.height() - 6)
        shown = look.state(cell.proxy, self._states)
        marks.draw_marker(painter, look, shown, QPointF(7, middle), 10)
        painter.setFont(look.font(12))
        painter.setPen(look.colour("text"))
        painter.drawText(QRectF(20, middle - 9, _NAMES, 18), _LEFT, words.state(cell.proxy, full=True))
        if not _known(cell):
            painter.setPen(look.colour("text3"))
            said = words.NONE if not cell.planned else "failed" if cell.failed else ""
            painter.drawText(QRectF(zero + 8, middle - 9, 80, 18), _LEFT, said)
            return
        left = self._bars(painter, zero, -scale, middle, high, cell, _INSIDE)
        right = self._bars(painter, zero, scale, middle, high, cell, _OVER)
        painter.setFont(look.font(12))
        painter.setPen(look.colour("text2"))
        stays = _sum(cell, _INSIDE)
        if stays:
            painter.drawText(QRectF(left - 60, middle - 9, 54, 18), _RIGHT, words.megabytes(stays))
        painter.setFont(look.font(12, 600))
        painter.setPen(look.colour("text"))
        crosses = words.megabytes(_sum(cell, _OVER))
        painter.drawText(QRectF(right + 6, middle - 9, 80, 18), _LEFT, f"{crosses}{words.NBSP}MB")

    def _bars(
        self,
        painter: QPainter,
        zero: float,
        scale: float,
        middle: float,
        high: float,
        cell: Cell,
        pairs: Sequence[str],
    ) -> float:
        x = zero
        for pair in pairs:
            for upload, direction in enumerate(PAIR_DIRECTIONS[pair]):
                width = (cell.bytes.get(direction) or 0) / 1e6 * scale
                if abs(width) < 0.3:
                    continue
                box = QRectF(min(x, x + width), middle - high / 2, abs(width), high)
                painter.fillRect(box, self._look.pair(pair, bool(upload)))
                x += width + (1 if scale > 0 else -1) * 0.8
        return x


def _sum(cell: Cell, pairs: Sequence[str]) -> int:
    return cell.over(*(direction for pair in pairs for direction in PAIR_DIRECTIONS[pair])) or 0


def _known(cell: Cell) -> bool:
    return any(count is not None for count in cell.bytes.values())
