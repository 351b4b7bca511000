"""Traffic of the last minute: one lane per pair of hosts, download up, upload down, limits dashed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QSizePolicy, QStackedLayout, QWidget

from gui import copying, words
from gui.theme.look import Look
from gui.widgets.basic import Card, Label, row
from lab.live import WINDOW_S, Curve, Live
from lab.model import Line
from lab.palette import PAIR_DIRECTIONS, PAIR_NAMES

if TYPE_CHECKING:
    import numpy as np
    import pyqtgraph as pg

_NAMES_WIDTH, _AXIS_HEIGHT, _AXIS_WIDTH = 172, 24, 50
_ROOM = 0.68
"""How much of a lane's height its scale takes."""
_LEAST_SHARE = 0.28
_LABEL_PX = 11
"""Labels of a lane nearer than this would touch."""
_EMPTY_TOP_BPS = 1e6


@dataclass(slots=True)
class Lane:
    """The scale of one pair: bit/s at its top and bottom, and where between them its zero stands."""

    pair: str
    offset: int
    down: float = _EMPTY_TOP_BPS
    up: float = 0.0
    limited: bool = False

    @property
    def zero(self) -> float:
        """The height of zero in the lane, 0 to 1."""
        if self.up <= 0:
            return self.offset + 0.18
        return self.offset + (1 - _ROOM) / 2 + _ROOM * self._below

    @property
    def _below(self) -> float:
        """The share of the lane under zero; uploads get at least a quarter, to be seen."""
        return min(1 - _LEAST_SHARE, max(_LEAST_SHARE, self.up / (self.up + self.down)))

    def height(self, bps: float, *, upload: bool) -> float:
        """Where a rate stands."""
        if upload:
            if self.up <= 0:
                return self.zero - 0.1 * min(1.0, bps / max(1.0, self.down))
            return self.zero - _ROOM * self._below * min(1.06, bps / self.up)
        room = _ROOM * (1 - self._below) if self.up > 0 else 0.64
        return self.zero + room * min(1.06, bps / self.down)


class _Names(QWidget):
    """Left of the lanes: the pair, where it runs, and its rates now."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look, self.brief = look, False
        self.rates: dict[str, tuple[str, str]] = {}
        self.setFixedWidth(_NAMES_WIDTH)
        self.setAccessibleName("Rates now")

    def show_rates(self, rates: dict[str, tuple[float | None, float | None]]) -> None:
        """Download and upload of each pair, bit/s; None: not known now."""
        shown = {pair: (_told(down), _told(up)) for pair, (down, up) in rates.items()}
        if shown != self.rates:
            self.rates = shown
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        high = (self.height() - _AXIS_HEIGHT) / len(PAIR_NAMES)
        self.brief = high < 50
        for number, (pair, (name, where)) in enumerate(PAIR_NAMES.items()):
            top = number * high
            if number:
                painter.setPen(QPen(look.colour("hair"), 1))
                painter.drawLine(0, round(top), self.width(), round(top))
            lines = 2 if self.brief else 3
            step = min(15.0, (high - 4) / lines)
            y = top + (high - step * lines) / 2
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.pair(pair))
            painter.drawRoundedRect(QRectF(1, y + 2, 10, 10), 2, 2)
            self._text(painter, 18, y, step, name, 12, 600, "text")
            if not self.brief:
                self._text(painter, 18, y + step, step, where, 11, 400, "text2")
            down, up = self.rates.get(pair, ("0", "0"))
            last = y + step * (lines - 1)
            self._text(painter, 18, last, step, f"↓ {down}", 11, 600, "text")
            self._text(painter, 88, last, step, f"↑ {up}", 11, 400, "text2")

    def _text(
        self, painter: QPainter, x: float, y: float, high: float, text: str, size: int, weight: int, ink: str
    ) -> None:
        painter.setFont(self._look.font(size, weight))
        painter.setPen(self._look.colour(ink))
        painter.drawText(QRectF(x, y, self.width() - x, high), Qt.AlignmentFlag.AlignVCenter, text)


class TrafficCard(Card):
    """The card *Traffic now*. Plots are made at the first `ready()`, after the window's first paint."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._live = Live()
        self._plot: _Plot | None = None
        hint = Label(look, "bit/s · download up, upload down · dashes: the line", 11, 400, "text2")
        self.column.addLayout(row(None, Label(look, "Traffic now", 13, 600), -1, hint))
        self._names = _Names(look)
        self._room = QWidget()
        self._stack = QStackedLayout(self._room)
        self._stack.addWidget(QLabel())
        body = row(None, self._names, spacing=0)
        body.addWidget(self._room, 1)
        self.column.addLayout(body, 1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Traffic now")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        look.changed.connect(self._dress)

    def ready(self) -> None:
        """Import pyqtgraph and make the plot; once."""
        if self._plot is None:
            self._plot = _Plot(self._look)
            self._stack.addWidget(self._plot.widget)
            self._stack.setCurrentWidget(self._plot.widget)
            self.redraw()

    def begin(self, live: Live) -> None:
        """Another run."""
        self._live = live
        self.redraw()

    def redraw(self) -> None:
        """Draw the curves as they are now."""
        live, now = self._live, self._live.now()
        self._names.show_rates(
            {pair: (live.rate(down), live.rate(up)) for pair, (down, up) in PAIR_DIRECTIONS.items()}
        )
        if self._plot is not None:
            self._plot.draw(live, now)

    def copied(self) -> str:
        """The rates of the last minute, bit/s, by second before now."""
        now = self._live.now()
        ways = [
            (f"{name}, {('download', 'upload')[at]}, bit/s", self._live.curves[direction].points)
            for pair, (name, _) in PAIR_NAMES.items()
            for at, direction in enumerate(PAIR_DIRECTIONS[pair])
        ]
        rows = sorted({at for _, points in ways for at, _ in points})
        rates = [dict(points) for _, points in ways]
        told = [[f"{at - now:.1f}", *(_rounded(rate.get(at)) for rate in rates)] for at in rows]
        return copying.table(["seconds before now", *(head for head, _ in ways)], told) if rows else ""

    def _dress(self) -> None:
        self._names.update()
        if self._plot is not None:
            self._plot.dress()


class _Plot:
    """Three lanes in one plot of fixed ranges; grid and limits are items of our own."""

    def __init__(self, look: Look) -> None:
        import pyqtgraph as pg

        self._look, self._pg = look, pg
        self.widget: pg.PlotWidget = pg.PlotWidget(background=None)
        self.widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.widget.setAccessibleName("Traffic of the last 60 seconds")
        item = self.widget.getPlotItem()
        item.setMenuEnabled(False)
        item.hideButtons()
        item.setMouseEnabled(False, False)
        item.setContentsMargins(0, 0, 0, 0)
        item.layout.setContentsMargins(0, 0, 0, 0)
        item.vb.setDefaultPadding(0)
        item.disableAutoRange()
        item.setRange(xRange=(-WINDOW_S, 1.0), yRange=(0, 3), padding=0)
        self._bottom, self._left = item.getAxis("bottom"), item.getAxis("left")
        for axis in (self._bottom, self._left):
            axis.setStyle(tickLength=0, hideOverlappingLabels=False, tickAlpha=0, tickTextOffset=6)
        self._left.setWidth(_AXIS_WIDTH)
        self._bottom.setHeight(_AXIS_HEIGHT)
        self._lanes = {pair: Lane(pair, 2 - number) for number, pair in enumerate(PAIR_NAMES)}
        self._curves: dict[tuple[str, bool], pg.PlotCurveItem] = {}
        self._limits: dict[tuple[str, bool], pg.InfiniteLine] = {}
        self._zeros: dict[str, pg.InfiniteLine] = {}
        self._fixed: list[pg.InfiniteLine] = []
        self._ticks: list[tuple[float, str]] = []
        self._build(item)
        self.dress()

    def _build(self, item: pg.PlotItem) -> None:
        pg = self._pg
        for second in range(-50, 0, 10):
            self._fixed.append(pg.InfiniteLine(second, 90))
        self._fixed += [pg.InfiniteLine(1, 0), pg.InfiniteLine(2, 0)]
        for line in self._fixed:
            line.setZValue(-10)
            item.addItem(line)
        for pair in self._lanes:
            for upload in (False, True):
                curve = pg.PlotCurveItem(antialias=True)
                curve.setSegmentedLineMode("off")
                self._curves[pair, upload] = curve
                item.addItem(curve)
                limit = pg.InfiniteLine(0, 0)
                limit.setZValue(5)
                limit.hide()
                self._limits[pair, upload] = limit
                item.addItem(limit)
            zero = pg.InfiniteLine(self._lanes[pair].zero, 0)
            zero.setZValue(6)
            self._zeros[pair] = zero
            item.addItem(zero)
        ticks = [(second, f"−{-second} s") for second in range(-50, 0, 10)]
        self._bottom.setTicks([[*ticks, (-1.5, "now")]])

    def dress(self) -> None:
        """Colours of the palette in use."""
        pg, look = self._pg, self._look
        for line in self._fixed:
            line.setPen(pg.mkPen(look.token("grid"), width=1))
        for (pair, upload), curve in self._curves.items():
            hue = look.pair(pair, upload)
            curve.setPen(pg.mkPen(hue, width=1))
            curve.setBrush(QColor(hue))
        for limit in self._limits.values():
            pen = QPen(look.colour("axis"), 1, Qt.PenStyle.CustomDashLine)
            pen.setCosmetic(True)
            pen.setDashPattern([4, 3])
            limit.setPen(pen)
        for pair, zero in self._zeros.items():
            zero.setPen(pg.mkPen(look.pair(pair), width=1))
        for axis in (self._bottom, self._left):
            axis.setPen(pg.mkPen(None))
            axis.setTextPen(pg.mkPen(look.token("text2")))
            axis.setTickFont(look.font(11))

    def draw(self, live: Live, now: float) -> None:
        """The last minute, up to `now`."""
        current = live.current
        self._rescale(live, current.trial.treatment.line if current else live.applied_line)
        for (pair, upload), curve in self._curves.items():
            lane, rates = self._lanes[pair], live.curves[PAIR_DIRECTIONS[pair][upload]]
            # Where nothing was heard lately the curve ends at what was: nobody knows what came since.
            x, y = self._reduced(rates, now, known=not live.silent_s)
            curve.setData(x, self._heights(lane, y, upload), fillLevel=lane.zero, skipFiniteCheck=True)

    def _heights(self, lane: Lane, rates: np.ndarray, upload: bool) -> np.ndarray:
        import numpy as np

        top = lane.up if upload and lane.up > 0 else lane.down
        one = lane.height(top, upload=upload) - lane.zero
        return lane.zero + np.minimum(rates / top, 1.06) * one

    def _reduced(self, curve: Curve, now: float, *, known: bool) -> tuple[np.ndarray, np.ndarray]:
        """Steps, at most the least and the greatest rate per pixel."""
        import numpy as np

        if len(curve.points) < 2:
            return np.array([-WINDOW_S, 0.0]), np.zeros(2)
        points = np.array(curve.points)
        t, rate = points[:, 0] - now, points[:, 1]
        pixels = max(60, self.widget.width() // 2)
        if len(t) > 2 * pixels:
            edges = np.linspace(0, len(t), pixels, endpoint=False).astype(int)
            low, high = np.minimum.reduceat(rate, edges), np.maximum.reduceat(rate, edges)
            t, rate = np.repeat(t[edges], 2), np.column_stack([low, high]).ravel()
        # a rate holds from the sample before to its own: a step, up to now at the end
        x = np.concatenate([np.repeat(t, 2)[:-1], [max(t[-1], 0.0) if known else t[-1]]])
        y = np.concatenate([rate[:1], np.repeat(rate[1:], 2), rate[-1:] * (t[-1] > -1)])
        inside = x >= -WINDOW_S
        return x[inside], y[inside]

    def _rescale(self, live: Live, line: Line | None) -> None:
        ticks: list[tuple[float, str]] = []
        for pair, lane in self._lanes.items():
            down, up = (live.curves[name] for name in PAIR_DIRECTIONS[pair])
            limited = pair != "client-proxy" and line is not None and line.limited
            if limited and line is not None and line.download_bps and line.upload_bps:
                lane.down, lane.up, lane.limited = float(line.download_bps), float(line.upload_bps), True
            else:
                lane.down, lane.up, lane.limited = _nice(_peak((down, up))), 0.0, False
            ticks += self._marks(lane)
        if ticks != self._ticks:
            self._ticks = ticks
            self._left.setTicks([ticks])

    def _marks(self, lane: Lane) -> list[tuple[float, str]]:
        """Tick labels of a lane; moves its zero line and its limits."""
        self._zeros[lane.pair].setPos(lane.zero)
        high = max(1.0, (self.widget.height() - _AXIS_HEIGHT) / 3)
        found = [(lane.zero, "0")]
        top = lane.height(lane.down, upload=False)
        if (top - lane.zero) * high >= _LABEL_PX:
            found.append((top, words.rate(lane.down)))
        for upload in (False, True):
            limit = self._limits[lane.pair, upload]
            limit.setVisible(lane.limited)
            if lane.limited:
                limit.setPos(lane.height(lane.up if upload else lane.down, upload=upload))
        below = lane.height(lane.up, upload=True)
        if lane.limited and (lane.zero - below) * high >= _LABEL_PX:
            found.append((below, words.rate(lane.up)))
        return found


def _told(rate: float | None) -> str:
    return words.NONE if rate is None else words.rate(rate)


def _rounded(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.0f}"


def _peak(curves: Sequence[Curve]) -> float:
    return max((rate for curve in curves for _, rate in curve.points), default=0.0)


def _nice(peak: float) -> float:
    """A round rate above the peak."""
    if peak <= 0:
        return _EMPTY_TOP_BPS
    size = 10.0 ** math.floor(math.log10(peak))
    return next(step * size for step in (1, 2, 5, 10) if step * size >= peak)
