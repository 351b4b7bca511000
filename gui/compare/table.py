"""Every cell that both runs have, as a table with dumbbells: A hollow, B filled, on an axis of equal ratios."""

from __future__ import annotations

import math

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from gui import copying, words
from gui.theme.look import Look
from lab import axis
from lab.analysis import words as told_words
from lab.analysis.two_runs import Change, Compared
from lab.model import OPERATION_NAMES

ROW, HEADER = 44, 32
WHAT, DOTS, A, B, AGAINST = range(5)
_HEADS = ("Operation", "", "A", "B", "B against A")
_TONES = {"faster": "ok", "slower": "warn"}
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_DOT = 5.0
_ROOM = 12
_Index = QModelIndex | QPersistentModelIndex


class Changes(QAbstractTableModel):
    """The changes as rows, as measured or the biggest first."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Change] = []
        self._all: tuple[Change, ...] = ()
        self._biggest = False

    def show_compared(self, found: Compared) -> None:
        """Other runs."""
        self._all = found.changes
        self._order()

    def order(self, *, biggest: bool) -> None:
        """The biggest change first, or as measured."""
        self._biggest = biggest
        self._order()

    def _order(self) -> None:
        self.beginResetModel()
        self.rows = sorted(self._all, key=_size, reverse=True) if self._biggest else list(self._all)
        self.endResetModel()

    def text(self, row: int, column: int) -> str:
        """What stands in a cell, as text."""
        change = self.rows[row]
        if column == WHAT:
            return f"{self.name(row)}, {self.under(row)}"
        if column in (A, B):
            return words.duration((change.a if column == A else change.b).median_s)
        return " ".join(part for part in self.against(row) if part) if column == AGAINST else ""

    def name(self, row: int) -> str:
        """The operation."""
        return OPERATION_NAMES.get(self.rows[row].b.operation, self.rows[row].b.operation)

    def under(self, row: int) -> str:
        """Line and proxy state."""
        cell = self.rows[row].b
        return f"{words.line(cell.line)}, {words.state(cell.proxy, full=True)}"

    def against(self, row: int) -> tuple[str, str]:
        """How many times, and the verdict."""
        one = self.rows[row].against
        if one.verdict not in _TONES or not one.ratio:
            return "", "too few attempts" if one.verdict == "too-few" else "no difference"
        return told_words.times(max(one.ratio, 1 / one.ratio)), one.verdict

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(_HEADS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        return _HEADS[section]

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(index.row(), index.column())
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return self._whole(index.row())
        return None

    def _whole(self, row: int) -> str:
        sure = told_words.sure(self.rows[row].against)
        return f"{self.text(row, WHAT)}: A {self.text(row, A)}, B {self.text(row, B)}, {self.text(row, AGAINST)}{sure}"

    def copied(self) -> str:
        """The table as text, with its intervals."""
        heads = ["operation", "line and state", "A", "B", "B against A", "95 %"]
        return copying.table(heads, (self._copied(row) for row in range(len(self.rows))))

    def _copied(self, row: int) -> list[str]:
        sure = told_words.sure(self.rows[row].against).strip(" ()").removeprefix("95 %: ")
        return [
            self.name(row),
            self.under(row),
            self.text(row, A),
            self.text(row, B),
            self.text(row, AGAINST),
            sure,
        ]

    def span(self) -> tuple[float, float] | None:
        """The least and the greatest time, seconds; None where there is none above zero."""
        times = [time for one in self._all for time in (one.a.median_s, one.b.median_s) if time]
        return (min(times), max(times)) if times else None


def _size(change: Change) -> float:
    return abs(math.log(change.against.ratio)) if change.against.ratio else 0.0


class Scale:
    """Where a time stands between two edges: equal distances are equal ratios."""

    def __init__(self, low_s: float, high_s: float) -> None:
        self.low_s, self.high_s = low_s / 1.25, high_s * 1.25

    def at(self, seconds: float, box: QRectF) -> float:
        """The place of a time in a box, in pixels."""
        share = math.log(max(seconds, self.low_s) / self.low_s) / math.log(self.high_s / self.low_s)
        return box.left() + share * box.width()

    def ticks(self, most: int) -> list[float]:
        """Round times between the edges."""
        return axis.log_ticks(self.low_s, self.high_s, max(2, most))


class _Header(QHeaderView):
    def __init__(self, look: Look, view: ChangesView) -> None:
        super().__init__(Qt.Orientation.Horizontal, view)
        self._look, self._view = look, view
        self.setFixedHeight(look.px(HEADER))
        self.setSectionsClickable(False)

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        painter.save()
        look = self._look
        if section == DOTS:
            self._paint_ticks(painter, rect)
        else:
            painter.setFont(look.font(12, 600))
            painter.setPen(look.colour("text2"))
            box = rect.adjusted(0 if section == WHAT else 4, 0, -8, 0)
            painter.drawText(box, _LEFT if section == WHAT else _RIGHT, _HEADS[section])
        painter.setPen(QPen(look.colour("hair"), 1))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        painter.restore()

    def _paint_ticks(self, painter: QPainter, rect: QRect) -> None:
        scale = self._view.scale
        if scale is None:
            return
        painter.setFont(self._look.font(11))
        painter.setPen(self._look.colour("text2"))
        box, metrics, end = _plot(rect), painter.fontMetrics(), -math.inf
        for tick in self._view.ticks():
            label = axis.time_label(tick, tick)
            wide = metrics.horizontalAdvance(label)
            left = min(max(rect.left(), scale.at(tick, box) - wide / 2), rect.right() - wide)
            if left > end + 8:
                painter.drawText(QRectF(left, rect.top(), wide + 2, rect.height()), _LEFT, label)
                end = left + wide


def _plot(rect: QRect) -> QRectF:
    return QRectF(rect).adjusted(_ROOM, 0, -_ROOM, 0)


class _Delegate(QStyledItemDelegate):
    def __init__(self, look: Look, view: ChangesView) -> None:
        super().__init__(view)
        self._look, self._view = look, view

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, column = self._look, index.column()
        box = option.rect
        if column == DOTS:
            self._paint_dots(painter, box, self._view.changes.rows[index.row()])
        elif column == WHAT:
            self._paint_what(painter, box, index.row())
        elif column == AGAINST:
            self._paint_against(painter, box, index.row())
        else:
            painter.setFont(look.font(13, 600 if column == B else 400))
            painter.setPen(look.colour("text" if column == B else "text2"))
            painter.drawText(box.adjusted(4, 0, -8, 0), _RIGHT, self._view.changes.text(index.row(), column))
        painter.setPen(QPen(look.colour("grid"), 1))
        painter.drawLine(box.bottomLeft(), box.bottomRight())
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(look.colour("accent"), 2))
            painter.drawRoundedRect(box.adjusted(1, 2, -2, -3), 4, 4)
        painter.restore()

    def _paint_what(self, painter: QPainter, box: QRect, row: int) -> None:
        look, changes = self._look, self._view.changes
        half = box.height() // 2
        for size, weight, ink, text, part in (
            (13, 600, "text", changes.name(row), box.adjusted(0, 4, -8, -half)),
            (12, 400, "text2", changes.under(row), box.adjusted(0, half, -8, -4)),
        ):
            painter.setFont(look.font(size, weight))
            painter.setPen(look.colour(ink))
            shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, part.width())
            painter.drawText(part, _LEFT, shown)

    def _paint_against(self, painter: QPainter, box: QRect, row: int) -> None:
        look = self._look
        times, verdict = self._view.changes.against(row)
        tone = _TONES.get(verdict)
        painter.setFont(look.font(12, 600 if tone else 400))
        painter.setPen(look.colour(tone or "text3"))
        inner = box.adjusted(4, 0, -8, 0)
        painter.drawText(inner, _RIGHT, verdict)
        inner.setRight(inner.right() - painter.fontMetrics().horizontalAdvance(verdict) - 6)
        painter.setFont(look.font(13, 600))
        painter.setPen(look.colour("text"))
        painter.drawText(inner, _RIGHT, times)

    def _paint_dots(self, painter: QPainter, box: QRect, change: Change) -> None:
        look, scale, plot = self._look, self._view.scale, _plot(box)
        if scale is None:
            return
        painter.setPen(QPen(look.colour("grid"), 1))
        for tick in self._view.ticks():
            at = round(scale.at(tick, plot)) + 0.5
            painter.drawLine(QPointF(at, box.top()), QPointF(at, box.bottom()))
        a, b = (
            QPointF(scale.at(cell.median_s or 0.0, plot), plot.center().y()) for cell in (change.a, change.b)
        )
        tone = _TONES.get(change.against.verdict)
        painter.setPen(QPen(look.mixed(look.token(tone), 0.45) if tone else look.colour("axis"), 4))
        painter.drawLine(a, b)
        dot(painter, look, a, filled=False)
        dot(painter, look, b, filled=True)


def dot(painter: QPainter, look: Look, centre: QPointF, *, filled: bool) -> None:
    """A's mark is hollow, B's filled."""
    painter.setPen(QPen(look.colour("surface"), 2.4))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(centre, _DOT + 1, _DOT + 1)
    painter.setPen(QPen(look.colour("text"), 1.6))
    painter.setBrush(look.colour("text") if filled else QColor(look.colour("surface")))
    painter.drawEllipse(centre, _DOT - 0.8, _DOT - 0.8)


class ChangesView(QTableView):
    """The table. Ctrl C copies it."""

    def __init__(self, look: Look, changes: Changes) -> None:
        super().__init__()
        self._look, self.changes = look, changes
        self.scale: Scale | None = None
        self.setModel(changes)
        self.setHorizontalHeader(_Header(look, self))
        self.setItemDelegate(_Delegate(look, self))
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(look.px(ROW))
        self.setShowGrid(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.setAccessibleName("Times in A and in B")
        changes.modelReset.connect(self._measure)

    def ticks(self) -> list[float]:
        """Round times with a line down the table."""
        return self.scale.ticks(self.columnWidth(DOTS) // 70) if self.scale else []

    def copied(self) -> str:
        """The table as text."""
        return self.changes.copied()

    def _measure(self) -> None:
        span = self.changes.span()
        self.scale = Scale(*span) if span else None
        self._share_width()

    def _share_width(self) -> None:
        room, bold = self.viewport().width(), QFontMetrics(self._look.font(13, 600))
        rows = range(self.changes.rowCount())
        times = [bold.horizontalAdvance(self.changes.text(row, column)) for row in rows for column in (A, B)]
        against = [bold.horizontalAdvance(self.changes.text(row, AGAINST)) for row in rows]
        head = bold.horizontalAdvance(_HEADS[AGAINST])
        time, last = max([56, *times]) + 20, max([head, *against]) + 24
        what = max(200, min(360, round(0.36 * room)))
        for column, width in ((WHAT, what), (A, time), (B, time), (AGAINST, last)):
            self.setColumnWidth(column, width)
        self.setColumnWidth(DOTS, max(90, room - what - 2 * time - last))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_width()


class Dot(QWidget):
    """A's or B's mark beside its name."""

    def __init__(self, look: Look, *, filled: bool) -> None:
        super().__init__()
        self._look, self._filled = look, filled
        self.setFixedSize(16, 16)

    def paintEvent(self, event: object) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        dot(painter, self._look, QPointF(8, 8), filled=self._filled)
