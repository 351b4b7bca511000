"""Times as attempts come in: a strip per proxy state of the operation and line under way."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from gui import copying, words
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Card, Elided, Label, row
from lab.axis import time_label, time_ticks
from lab.live import Cell, Live
from lab.model import OPERATION_NAMES, Line, ProxyState
from lab.palette import BAND

_NAMES, _FIGURES, _AXIS = 96, 132, 22
_MARKER = 8.0
_STANDINGS = {"void": "without proof", "launch": "warm-up"}
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class StripsCard(Card):
    """The card of the operation and line under way."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._title = Elided(look, "Times", 13, 600)
        self.column.addLayout(_title_row(self._title, Label(look, "hollow: warm-up", 11, 400, "text2")))
        self._strips = _Strips(look)
        self.column.addWidget(self._strips, 1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        look.changed.connect(self._strips.update)

    def begin(self, live: Live) -> None:
        """Another run."""
        self._title.say("Times, as attempts come in")
        self._strips.begin(live)

    def redraw(self) -> None:
        """Show the operation and line under way, or the last ones."""
        place = self._strips.follow()
        if place is not None:
            operation, line = place
            name = OPERATION_NAMES.get(operation, operation)
            self._title.say(f"{name} over {words.line(line)}, as attempts come in")


def _title_row(title: QWidget, hint: QWidget) -> QHBoxLayout:
    made = row(None, title, hint)
    made.setStretch(0, 1)
    return made


class _Strips(QWidget):
    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._live = Live()
        self._place: tuple[str, Line] | None = None
        self._seen: tuple[object, ...] = ()
        self._cells: list[Cell] = []
        self._top = 1.0
        self.setAccessibleName("Times of attempts by proxy state")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def begin(self, live: Live) -> None:
        self._live, self._place, self._seen, self._cells = live, None, (), []
        self.update()

    def follow(self) -> tuple[str, Line] | None:
        """Look at what is under way; repaint only where something else is to be seen."""
        live = self._live
        trial = live.current.trial if live.current else live.last.trial if live.last else None
        if trial is None:
            return None
        self._place = (trial.treatment.operation, trial.treatment.line)
        elapsed = self._elapsed()
        # a tenth of a second is what a pixel of this strip shows; faster repaints would look the same
        seen = (self._place, live.done, trial.number, None if elapsed is None else round(elapsed, 1))
        if seen != self._seen:
            self._seen = seen
            self._cells = live.cells_of(*self._place)
            self._top = self._reach(elapsed)
            self._describe()
            self.update()
        return self._place

    def _elapsed(self) -> float | None:
        current = self._live.current
        if current is None or current.timed_since is None:
            return None
        return self._live.elapsed_s()

    def _reach(self, elapsed: float | None) -> float:
        times = [a.wall_s for cell in self._cells for a in self._attempts(cell) if a.wall_s is not None]
        expected = [self._live.expected_s(cell.treatment) or 0.0 for cell in self._cells]
        return max([*times, *expected, elapsed or 0.0, 0.02]) * 1.04

    def _attempts(self, cell: Cell) -> list:
        return [a for trial in cell.trials if (a := self._live.attempts.get(trial.number)) is not None]

    def copied(self) -> str:
        """Every attempt so far by proxy state, warm-ups and what has no time too."""
        if self._place is None or not self._cells:
            return ""
        most = max(len(cell.trials) for cell in self._cells)
        heads = ["proxy", "median", "kept", *(f"attempt {n}" for n in range(1, most + 1))]
        rows = [
            [words.state(cell.treatment.state, full=True), words.duration(cell.median_s), str(cell.kept)]
            + [self._attempt(trial.number) for trial in cell.trials]
            for cell in self._cells
        ]
        return copying.table(heads, rows)

    def _attempt(self, number: int) -> str:
        attempt = self._live.attempts.get(number)
        if attempt is None:
            return ""
        time = words.duration(attempt.wall_s)
        if attempt.standing == "kept":
            return time
        return f"{time} ({_STANDINGS.get(attempt.standing, attempt.standing)})".strip()

    def _describe(self) -> None:
        told = [
            f"{words.state(cell.treatment.state, full=True)}: "
            f"{words.duration(cell.median_s) or 'no time yet'}, {cell.kept} kept"
            for cell in self._cells
        ]
        self.setAccessibleDescription("; ".join(told))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._cells:
            painter.setFont(self._look.font(12))
            painter.setPen(self._look.colour("text3"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "The first attempt comes here.")
            return
        plot = QRectF(_NAMES, 0, self.width() - _NAMES - _FIGURES, self.height() - _AXIS)
        ticks = time_ticks(self._top, most=max(3, int(plot.width() // 70)))
        scale = plot.width() / ticks[-1]
        self._axis(painter, plot, ticks, scale)
        high = plot.height() / len(self._cells)
        for number, cell in enumerate(self._cells):
            lane = QRectF(plot.left(), number * high, plot.width(), high)
            if number:
                painter.setPen(QPen(self._look.colour("hair"), 1))
                y = round(lane.top()) + 0.5
                painter.drawLine(QPointF(0, y), QPointF(self.width(), y))
            self._lane(painter, lane, cell, scale)

    def _axis(self, painter: QPainter, plot: QRectF, ticks: list[float], scale: float) -> None:
        painter.setFont(self._look.font(11))
        for tick in ticks:
            x = plot.left() + tick * scale
            painter.setPen(QPen(self._look.colour("grid"), 1))
            painter.drawLine(QPointF(round(x) + 0.5, plot.top()), QPointF(round(x) + 0.5, plot.bottom()))
            painter.setPen(self._look.colour("text2"))
            text = time_label(tick, ticks[-1])
            painter.drawText(QRectF(x - 40, plot.bottom() + 4, 80, 16), Qt.AlignmentFlag.AlignCenter, text)
        painter.setPen(QPen(self._look.colour("axis"), 1))
        y = round(plot.bottom()) + 0.5
        painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))

    def _lane(self, painter: QPainter, lane: QRectF, cell: Cell, scale: float) -> None:
        look, state = self._look, cell.treatment.state
        shown = look.state(state, self._states())
        middle = lane.center().y()
        marks.draw_marker(painter, look, shown, QPointF(7, middle), 10)
        painter.setFont(look.font(12, 500))
        painter.setPen(look.colour("text"))
        name = QRectF(20, lane.top(), _NAMES - 20, lane.height())
        painter.drawText(name, _LEFT, words.state(state, full=True))
        self._figures(painter, lane, cell)
        inner = lane.adjusted(0, 4, 0, -4)
        spread, median = cell.range_s, cell.median_s
        if spread is not None and median is not None and cell.kept > 1:
            left, right = lane.left() + spread[0] * scale, lane.left() + spread[1] * scale
            band = QRectF(left - 2, inner.top(), max(4.0, right - left + 4), inner.height())
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.mixed(shown.colour, BAND))
            painter.drawRoundedRect(band, 2, 2)
            painter.setPen(QPen(QColor(shown.colour), 1.6))
            x = lane.left() + median * scale
            painter.drawLine(QPointF(x, inner.top()), QPointF(x, inner.bottom()))
        self._attempt_marks(painter, inner, cell, scale)
        current = self._live.current
        if current is not None and current.trial.treatment == cell.treatment:
            self._so_far(painter, lane, scale)

    def _states(self) -> tuple[ProxyState, ...]:
        return self._live.experiment.states if self._live.experiment else ()

    def _figures(self, painter: QPainter, lane: QRectF, cell: Cell) -> None:
        look = self._look
        box = QRectF(lane.right(), lane.top(), _FIGURES - 52, lane.height())
        painter.setFont(look.font(12, 600 if cell.kept > 1 else 400))
        painter.setPen(look.colour("text" if cell.kept > 1 else "text2"))
        painter.drawText(box, _RIGHT, words.duration(cell.median_s))
        painter.setFont(look.font(11))
        painter.setPen(look.colour("text2"))
        box = QRectF(self.width() - 50, lane.top(), 50, lane.height())
        painter.drawText(box, _RIGHT, f"{cell.kept} kept" if cell.kept else "")

    def _attempt_marks(self, painter: QPainter, lane: QRectF, cell: Cell, scale: float) -> None:
        """Attempts downward in their order, so that drift is seen."""
        shown = self._look.state(cell.treatment.state, self._states())
        size = min(_MARKER, max(5.0, lane.height() / max(1, len(cell.trials))))
        step = (lane.height() - size) / max(1, len(cell.trials) - 1)
        for number, trial in enumerate(cell.trials):
            attempt = self._live.attempts.get(trial.number)
            if attempt is None:
                continue
            y = lane.top() + size / 2 + number * step
            if attempt.standing == "failed" or attempt.wall_s is None:
                box = QRectF(lane.left() - 5, y - 5, 10, 10)
                marks.draw_sign(painter, self._look, marks.TROUBLE, box)
                continue
            marks.draw_marker(
                painter,
                self._look,
                shown,
                QPointF(lane.left() + attempt.wall_s * scale, y),
                size,
                hollow=attempt.standing in ("warm-up", "launch"),
                hatched=attempt.standing == "void",
                halo=1.0,
            )

    def _so_far(self, painter: QPainter, lane: QRectF, scale: float) -> None:
        elapsed = self._elapsed()
        if elapsed is None:
            return
        look = self._look
        x, y = lane.left() + elapsed * scale, lane.bottom() - lane.height() * 0.28
        pen = QPen(look.colour("accent"), 2)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.setPen(pen)
        painter.drawLine(QPointF(lane.left(), y), QPointF(x, y))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("accent"))
        painter.drawEllipse(QPointF(x, y), 3, 3)
        if elapsed >= 1:
            painter.setPen(look.colour("accent"))
            painter.setFont(look.font(11, 500))
            box = QRectF(lane.left() + 2, y - 17, 120, 14)
            painter.drawText(box, _LEFT, f"{words.clock(elapsed)} so far")
