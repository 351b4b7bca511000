"""Time against line: one line per proxy state with its marker, pattern and name at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip

from gui import copying, words
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.chart import Copied
from lab.analysis.cells import Cell
from lab.axis import log_ticks, spread, time_label, time_ticks
from lab.model import Line, ProxyState

_LEFT_ROOM, _RIGHT_ROOM, _BOTTOM, _TOP = 52.0, 132.0, 28.0, 12.0
_LABEL_STEP, _NEAR = 15.0, 18.0
ZERO_LANE = 20.0
"""How high the lane of zeros is, below a log axis."""
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True)
class _Point:
    cell: Cell
    at: QPointF


class TimeChart(Copied):
    """Medians with their ranges; a failed cell is a gap with its sign on the base line."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._lines: Sequence[Line] = ()
        self._states: Sequence[ProxyState] = ()
        self._cells: dict[tuple[Line, ProxyState], Cell] = {}
        self._log = True
        self._points: list[_Point] = []
        self._near: _Point | None = None
        self.setMinimumHeight(200)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        look.changed.connect(self.update)

    def show_cells(self, name: str, cells: Sequence[Cell], lines: Sequence[Line]) -> None:
        """The cells of one operation."""
        self._lines = lines
        self._cells = {(cell.line, cell.proxy): cell for cell in cells}
        states = {cell.proxy for cell in cells}
        self._states = sorted(states, key=lambda s: -1.0 if s.full is None else s.full)
        self._near = None
        self.setAccessibleName(f"Time of {name} against line")
        self.setAccessibleDescription("; ".join(self._told(cell) for cell in cells))
        self.update()

    def use_log(self, log: bool) -> None:
        """A log time axis, or a linear one from zero."""
        self._log = log
        self.update()

    def copied(self) -> str:
        """Medians by line and state, each with its range."""
        heads = ["upload/download"]
        for state in self._states:
            name = words.state(state, full=True)
            heads += [name, f"{name}, least", f"{name}, most"]
        rows = []
        for line in self._lines:
            row = [words.line(line)]
            for state in self._states:
                cell = self._cells.get((line, state))
                times = (None,) * 3 if cell is None else (cell.median_s, cell.low_s, cell.high_s)
                row += [words.duration(time) for time in times]
                if cell is not None and cell.median_s is None and cell.failed:
                    row[-3] = "failed"
            rows.append(row)
        return copying.table(heads, rows) if self._cells else ""

    @staticmethod
    def _told(cell: Cell) -> str:
        time = words.duration(cell.median_s) or ("failed" if cell.failed else "no time")
        return f"{words.line(cell.line)} {words.state(cell.proxy, full=True)}: {time}"

    def _values(self) -> list[float]:
        """Of all that was measured, what stands on the axis; a log axis has a lane of its own for 0."""
        cells = self._cells.values()
        return [
            v for cell in cells for v in (cell.low_s, cell.median_s, cell.high_s) if v is not None and v > 0
        ]

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        zero = any(cell.median_s == 0 for cell in self._cells.values())
        values = self._values() or ([1.0] if zero else [])
        self._points = []
        if not values or not self._lines:
            painter.setFont(self._look.font(12))
            painter.setPen(self._look.colour("text3"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "No kept attempt yet.")
            return
        plot = QRectF(
            _LEFT_ROOM, _TOP, self.width() - _LEFT_ROOM - _RIGHT_ROOM, self.height() - _TOP - _BOTTOM
        )
        scale = _Scale(plot, values, log=self._log, zero=zero)
        self._no_difference(painter, plot)
        self._axes(painter, plot, scale)
        ends = [self._state(painter, plot, scale, state) for state in self._states]
        self._markers(painter)
        self._labels(painter, plot, [end for end in ends if end is not None])

    def _x(self, plot: QRectF, number: int) -> float:
        inset = plot.width() * (0.05 if len(self._lines) > 2 else 0.16)
        if len(self._lines) == 1:
            return plot.center().x()
        return plot.left() + inset + (plot.width() - 2 * inset) * self._position(number)

    def _position(self, number: int) -> float:
        """From 0 to 1: the log of the rate; even steps where a line has none, or rates are the same."""
        rates = [line.download_bps for line in self._lines]
        known = [rate for rate in rates if rate]
        even = number / (len(self._lines) - 1)
        if len(set(known)) != len(self._lines):
            return even
        low, high = math.log(min(known)), math.log(max(known))
        return (math.log(rates[number] or 1) - low) / (high - low)

    def _no_difference(self, painter: QPainter, plot: QRectF) -> None:
        """A ground under the lines where no state differs from disabled."""
        for number, line in enumerate(self._lines):
            judged = [c for s in self._states if s.enabled and (c := self._cells.get((line, s)))]
            judged = [cell for cell in judged if cell.verdict not in ("too-few", "void")]
            if not judged or any(cell.verdict != "no-difference" for cell in judged):
                continue
            x = self._x(plot, number)
            half = min(26.0, plot.width() / (2 * len(self._lines)))
            painter.fillRect(
                QRectF(x - half, plot.top(), 2 * half, plot.height()), self._look.colour("sunken")
            )
            painter.setFont(self._look.font(11))
            painter.setPen(self._look.colour("text2"))
            last = number == len(self._lines) - 1
            box = QRectF(x + half + 6, plot.top(), 92, 30) if last else QRectF(x - 46, plot.top(), 92, 30)
            flag = Qt.AlignmentFlag.AlignLeft if last else Qt.AlignmentFlag.AlignHCenter
            painter.drawText(box, flag, "no difference\nseen here")

    def _axes(self, painter: QPainter, plot: QRectF, scale: _Scale) -> None:
        look = self._look
        painter.setFont(look.font(11))
        for tick in scale.ticks:
            y = scale.y(tick)
            painter.setPen(QPen(look.colour("grid"), 1))
            painter.drawLine(QPointF(plot.left(), round(y) + 0.5), QPointF(plot.right(), round(y) + 0.5))
            painter.setPen(look.colour("text2"))
            painter.drawText(
                QRectF(0, y - 8, _LEFT_ROOM - 8, 16),
                _RIGHT,
                time_label(tick, 0 if self._log else scale.ticks[-1]),
            )
        if scale.lane is not None:
            pen = QPen(look.colour("axis"), 1, Qt.PenStyle.DashLine)
            painter.setPen(pen)
            y = round(scale.lane - ZERO_LANE / 2) + 0.5
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            painter.setPen(look.colour("text2"))
            painter.drawText(QRectF(0, scale.lane - 8, _LEFT_ROOM - 8, 16), _RIGHT, "0")
        painter.setPen(QPen(look.colour("axis"), 1))
        base = round(plot.bottom()) + 0.5
        painter.drawLine(QPointF(plot.left(), base), QPointF(plot.right(), base))
        before = -1000.0
        for number, line in enumerate(self._lines):
            x = self._x(plot, number)
            text = words.tick(line)
            width = painter.fontMetrics().horizontalAdvance(text)
            painter.setPen(QPen(look.colour("axis"), 1))
            painter.drawLine(QPointF(round(x) + 0.5, base), QPointF(round(x) + 0.5, base + 4))
            if x - width / 2 > before + 1:
                painter.setPen(look.colour("text2"))
                box = QRectF(x - 50, plot.bottom() + 7, 100, 16)
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
                before = x + width / 2

    def _state(self, painter: QPainter, plot: QRectF, scale: _Scale, state: ProxyState) -> _Point | None:
        """The line of one state; returns its last point."""
        shown = self._look.state(state, self._states)
        path, joined, last = QPainterPath(), False, None
        bars: list[tuple[float, float, float]] = []
        for number, line in enumerate(self._lines):
            cell = self._cells.get((line, state))
            if cell is None or cell.median_s is None:
                joined = False
                if cell is not None and cell.failed:
                    x = self._x(plot, number)
                    box = QRectF(x - 5, plot.bottom() - 13, 10, 10)
                    marks.draw_sign(painter, self._look, marks.TROUBLE, box)
                continue
            at = QPointF(self._x(plot, number), scale.y(cell.median_s))
            joins = cell.median_s > 0 or scale.lane is None
            # No line leads to the lane of zeros: on a log axis 0 is nowhere near.
            path.lineTo(at) if joined and joins else path.moveTo(at)
            joined = joins
            last = _Point(cell, at)
            self._points.append(last)
            if cell.low_s and cell.high_s and cell.kept > 1:
                bars.append((at.x(), scale.y(cell.low_s), scale.y(cell.high_s)))
        pen = QPen(QColor(shown.colour), 2)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if shown.dash:
            pen.setDashPattern([length / 2 for length in shown.dash])
        painter.strokePath(path, pen)
        painter.setPen(QPen(QColor(shown.colour), 1.2))
        for x, low, high in bars:
            if abs(low - high) > 9:
                painter.drawLine(QPointF(x, low), QPointF(x, high))
                for y in (low, high):
                    painter.drawLine(QPointF(x - 3, y), QPointF(x + 3, y))
        return last

    def _markers(self, painter: QPainter) -> None:
        for point in self._points:
            shown = self._look.state(point.cell.proxy, self._states)
            size = 13.0 if point is self._near or self._is_near(point) else 10.0
            marks.draw_marker(painter, self._look, shown, point.at, size, halo=1.2)

    def _is_near(self, point: _Point) -> bool:
        return self._near is not None and self._near.cell is point.cell

    def _labels(self, painter: QPainter, plot: QRectF, ends: list[_Point]) -> None:
        """Names at the line ends, in value order, apart from each other, with leader lines."""
        look = self._look
        ends.sort(key=lambda point: point.at.y())
        places = spread([point.at.y() for point in ends], _LABEL_STEP, plot.top() + 36, plot.bottom() + 4)
        x = plot.right() + 14
        for point, y in zip(ends, places, strict=True):
            shown = look.state(point.cell.proxy, self._states)
            painter.setPen(QPen(look.colour("axis"), 1))
            lead = QPainterPath(QPointF(point.at.x() + 8, point.at.y()))
            lead.lineTo(plot.right() - 4, point.at.y())
            lead.lineTo(plot.right() + 6, y)
            painter.strokePath(lead, painter.pen())
            marks.draw_marker(painter, look, shown, QPointF(x, y), 9)
            name = words.state(point.cell.proxy, full=True)
            painter.setPen(look.colour("text"))
            painter.setFont(look.font(11, 500))
            painter.drawText(QRectF(x + 9, y - 8, 80, 16), _LEFT, name)
            width = painter.fontMetrics().horizontalAdvance(name)
            painter.setFont(look.font(11))
            painter.setPen(look.colour("text2"))
            box = QRectF(x + 9 + width + 6, y - 8, 80, 16)
            painter.drawText(box, _LEFT, words.duration(point.cell.median_s))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position()

        def far(point: _Point) -> float:
            return math.hypot(point.at.x() - at.x(), point.at.y() - at.y())

        near = min(self._points, key=far, default=None)
        near = near if near is not None and far(near) < _NEAR else None
        if (near and near.cell) != (self._near and self._near.cell):
            self._near = near
            self.update()
            text = ""
            if near is not None:
                cell = near.cell
                text = f"{self._told(cell)}, {cell.kept} kept"
                if cell.kept > 1:
                    text += f", {words.duration(cell.low_s)} – {words.duration(cell.high_s)}"
            QToolTip.showText(event.globalPosition().toPoint(), text, self)


class _Scale:
    """Seconds to pixels, with round ticks. `lane`: where 0 stands below a log axis, None where no lane is needed."""

    def __init__(self, plot: QRectF, values: Sequence[float], *, log: bool, zero: bool = False) -> None:
        self.lane = plot.bottom() - ZERO_LANE / 2 if log and zero else None
        self._plot, self._log = plot if self.lane is None else plot.adjusted(0, 0, 0, -ZERO_LANE), log
        if log:
            low, high = min(values), max(values)
            reach = max(math.log(high / low), 0.7)
            middle = math.sqrt(low * high)
            self._low = math.log(middle) - reach * 0.56
            self._high = math.log(middle) + reach * 0.54
            self.ticks = log_ticks(math.exp(self._low), math.exp(self._high))
        else:
            self.ticks = time_ticks(max(values) * 1.03, most=6)
            self._low, self._high = 0.0, self.ticks[-1]

    def y(self, seconds: float) -> float:
        """Where a time stands."""
        if self.lane is not None and seconds <= 0:
            return self.lane
        value = math.log(seconds) if self._log else seconds
        return self._plot.bottom() - self._plot.height() * (value - self._low) / (self._high - self._low)
