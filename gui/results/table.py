"""Times of one operation: a row per line, a column per proxy state, and the fullest against disabled."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QPointF, QRect, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QKeySequence, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from gui import copying, ordering, words
from gui.theme import marks
from gui.theme.look import Look
from lab.analysis.cells import Cell
from lab.analysis.summary import Summary
from lab.analysis.words import ratio
from lab.model import DISABLED, Line, ProxyState, Treatment

ROW, HEADER = 30, 32
_LEAST_WIDTH = 30
VERDICTS = {
    "faster": ("faster", "ok"),
    "slower": ("slower", "warn"),
    "no-difference": ("no difference", "text2"),
    "too-few": ("too few", "text3"),
    "void": ("without proof", "text3"),
    "base": ("", "text3"),
}
_Index = QModelIndex | QPersistentModelIndex
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class Times(QAbstractTableModel):
    """One operation of a summary. Columns: line, each state, ratio, its interval of 95 %, verdict."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: Sequence[Line] = ()
        """as they are shown: sorted, and only those that are wanted"""
        self.plan: Sequence[Line] = ()
        self.states: Sequence[ProxyState] = ()
        self.cells: dict[Treatment, Cell] = {}
        self.operation = ""
        self._by, self._falling, self._wanted = "", False, ""

    def show_operation(self, summary: Summary, operation: str) -> None:
        """Another operation."""
        self.beginResetModel()
        experiment = summary.started.experiment
        self.operation, self.plan = operation, experiment.lines
        self.states = sorted(experiment.states, key=lambda s: -1.0 if s.full is None else s.full)
        self.cells = {
            Treatment(line=cell.line, operation=cell.operation, state=cell.proxy): cell
            for cell in summary.cells
            if cell.operation == operation
        }
        self.lines = self._ordered()
        self.endResetModel()

    def name(self, column: int) -> str:
        """What a column is, in every run alike."""
        past = column - len(self.states)
        if past > 0:
            return ("ratio", "interval", "verdict")[past - 1]
        return words.state(self.states[column - 1]) if column else "line"

    @property
    def sorted_by(self) -> tuple[int, bool]:
        """The column, and True where the greatest is first; `ordering.UNSORTED` while it is as planned."""
        names = [self.name(column) for column in range(self.columnCount())]
        return (names.index(self._by) if self._by in names else ordering.UNSORTED), self._falling

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """By the values of a column; `ordering.UNSORTED`: as planned."""
        by = self.name(column) if 0 <= column < self.columnCount() else ""
        self.use_order(by, order == Qt.SortOrder.DescendingOrder)

    def use_order(self, by: str, falling: bool) -> None:
        """By the column of this name, also one that only another run has."""
        self._arrange(by, falling, self._wanted)

    def want(self, wanted: str) -> None:
        """Show only the lines with these words in their row."""
        self._arrange(self._by, self._falling, wanted)

    def _arrange(self, *wanted: str | bool) -> None:
        if wanted == (self._by, self._falling, self._wanted):
            return
        self.beginResetModel()
        self._by, self._falling, self._wanted = str(wanted[0]), bool(wanted[1]), str(wanted[2])
        self.lines = self._ordered()
        self.endResetModel()

    def _ordered(self) -> Sequence[Line]:
        columns = range(self.columnCount())
        shown = [
            line
            for line in self.plan
            if ordering.has_words([self.told(line, column) for column in columns], self._wanted)
        ]
        column, falling = self.sorted_by
        if column == ordering.UNSORTED:
            return shown
        return ordering.by_value(shown, lambda line: self._value(line, column), falling=falling)

    def _value(self, line: Line, column: int) -> float | str | None:
        if column == 0:
            return None if line.download_bps is None else line.download_bps + (line.upload_bps or 0) / 1e12
        if column <= len(self.states):
            cell = self.cell(line, self.states[column - 1])
            return None if cell is None else cell.median_s
        pair = self.compared(line)
        if self.name(column) == "verdict":
            return self.told(line, column) or None
        if pair is None or not pair[0].median_s or not pair[1].median_s:
            return None
        return pair[1].median_s / pair[0].median_s

    @property
    def extras_differ(self) -> bool:
        """True if lines differ in more than their rates; what all of them share is told once, elsewhere."""
        return len({words.extras(line) for line in self.plan}) > 1

    @property
    def fullest(self) -> ProxyState | None:
        """The state that is held against disabled."""
        enabled = [state for state in self.states if state.enabled]
        return enabled[-1] if enabled and DISABLED in self.states else None

    def cell(self, line: Line, state: ProxyState) -> Cell | None:
        """The cell of a line and a state; None where the plan has none."""
        return self.cells.get(Treatment(line=line, operation=self.operation, state=state))

    def compared(self, line: Line) -> tuple[Cell, Cell] | None:
        """The fullest state's cell and the disabled one's."""
        fullest = self.fullest
        if fullest is None:
            return None
        full, base = self.cell(line, fullest), self.cell(line, DISABLED)
        return (full, base) if full is not None and base is not None else None

    def best(self, line: Line) -> ProxyState | None:
        """The quickest state of a row, where a difference is seen."""
        row = [
            cell for state in self.states if (cell := self.cell(line, state)) and cell.median_s is not None
        ]
        if not any(cell.verdict in ("faster", "slower") for cell in row):
            return None
        quickest = min(row, key=lambda cell: cell.median_s or 0.0)
        beaten = any(cell.verdict == "slower" for cell in row)
        seen = quickest.verdict == "faster" or (not quickest.proxy.enabled and beaten)
        return quickest.proxy if seen else None

    def text(self, row: int, column: int) -> str:
        """What stands in a cell of the table."""
        return self.told(self.lines[row], column)

    def told(self, line: Line, column: int) -> str:
        """What stands in a line's row."""
        if column == 0:
            return words.line(line) + (f", {words.extras(line)}" if self.extras_differ else "")
        if column <= len(self.states):
            return _time(self.cell(line, self.states[column - 1]))
        return self._ratio(line, column - len(self.states) - 1)

    def _ratio(self, line: Line, part: int) -> str:
        pair = self.compared(line)
        if pair is None:
            return words.NONE if part == 2 and self.fullest is not None else ""
        full, base = pair
        if part == 2:
            return VERDICTS[full.verdict][0]
        if not full.median_s or not base.median_s:
            return ""
        if part == 0:
            return f"{_times(ratio(base.median_s, full.median_s))}×"
        against = full.against
        if against is None or not against.low or not against.high:
            return ""
        return f"{_times(1 / against.high)}–{_times(1 / against.low)}"

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.lines)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.states) + 4

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        if section == 0:
            return "upload/download"
        if section <= len(self.states):
            return words.state(self.states[section - 1])
        if section == len(self.states) + 3 and self.fullest is not None:
            return f"{words.state(self.fullest)} against disabled"
        return ""

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(index.row(), index.column())
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return self._told(index.row(), index.column())
        return None

    def _told(self, row: int, column: int) -> str:
        head = self.headerData(column, Qt.Orientation.Horizontal)
        text = f"{words.line(self.lines[row])}, {head}: {self.text(row, column)}"
        if 0 < column <= len(self.states):
            cell = self.cell(self.lines[row], self.states[column - 1])
            if cell is not None and cell.low_s is not None:
                text += f", {cell.kept} kept, {words.duration(cell.low_s)} – {words.duration(cell.high_s)}"
        return text

    def copied(self) -> str:
        """The whole table as a table of tabs."""
        heads = [str(self.headerData(c, Qt.Orientation.Horizontal)) for c in range(self.columnCount())]
        rows = [[self.text(r, c) for c in range(self.columnCount())] for r in range(self.rowCount())]
        return copying.table(heads, rows)


def _times(value: float) -> str:
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}"


def _time(cell: Cell | None) -> str:
    if cell is None or (not cell.planned and cell.median_s is None):
        return words.NONE
    if cell.median_s is not None:
        return words.duration(cell.median_s)
    if cell.failed:
        return "failed"
    return "no proof" if cell.void else ""


class _Header(QHeaderView):
    def __init__(self, look: Look, times: Times, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._look, self._times = look, times
        self.setFixedHeight(HEADER)
        ordering.sortable(self)

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        painter.save()
        look, times = self._look, self._times
        text = str(times.headerData(section, Qt.Orientation.Horizontal) or "")
        painter.setFont(look.font(12, 600))
        painter.setPen(look.colour("text2"))
        box = rect.adjusted(4 if section else 0, 0, -4, 0)
        if section > len(times.states):
            box.setLeft(box.left() - 140)  # the words stand over ratio, range and verdict together
        painter.drawText(box, _LEFT if section == 0 else _RIGHT, text)
        if 0 < section <= len(times.states):
            shown = look.state(times.states[section - 1], times.states)
            x = box.right() - painter.fontMetrics().horizontalAdvance(text) - 11
            marks.draw_marker(painter, look, shown, QPointF(x, box.center().y() + 1), 10)
        painter.setPen(QPen(look.colour("hair"), 1))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        ordering.draw_order(painter, self, rect, section, look.colour("text2"))
        painter.restore()


class _Delegate(QStyledItemDelegate):
    def __init__(self, look: Look, times: Times) -> None:
        super().__init__()
        self._look, self._times = look, times

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        painter.save()
        look, times = self._look, self._times
        box, column = option.rect, index.column()
        if index.row() < times.rowCount() - 1:
            painter.setPen(QPen(look.colour("grid"), 1))
            painter.drawLine(box.bottomLeft(), box.bottomRight())
        size, weight, ink = self._dressed(index)
        painter.setFont(look.font(size, weight))
        painter.setPen(look.colour(ink))
        inner = box.adjusted(4 if column else 0, 0, -4, 0)
        text = times.text(index.row(), column)
        if column == 0:
            text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, inner.width())
        painter.drawText(inner, _LEFT if column == 0 else _RIGHT, text)
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(look.colour("accent"), 2))
            painter.drawRoundedRect(box.adjusted(1, 2, -2, -3), 4, 4)
        painter.restore()

    def _dressed(self, index: _Index) -> tuple[int, int, str]:
        """Size, weight and ink of a cell."""
        times, column = self._times, index.column()
        line, states = times.lines[index.row()], len(times.states)
        if column == 0:
            return 13, 500, "text"
        if column <= states:
            cell = times.cell(line, times.states[column - 1])
            if cell is not None and cell.median_s is None and cell.failed:
                return 12, 500, "trouble"
            sure = cell is not None and cell.kept > 1
            return (
                13,
                600 if times.best(line) == times.states[column - 1] else 400,
                "text" if sure else "text2",
            )
        pair = times.compared(line)
        verdict = pair[0].verdict if pair else "too-few"
        if column == states + 1:
            return 13, 600 if verdict in ("faster", "slower") else 400, "text"
        if column == states + 2:
            return 12, 400, "text3"
        return 12, 600 if verdict in ("faster", "slower") else 400, VERDICTS[verdict][1]


class TimesView(QTableView):
    """The table, as high as its rows. A press on a head, or S, sorts by it; widths that were drawn stay."""

    def __init__(self, look: Look, times: Times) -> None:
        super().__init__()
        self._look, self._times = look, times
        self.setModel(times)
        self.setItemDelegate(_Delegate(look, times))
        self.setHorizontalHeader(_Header(look, times, self))
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.setShowGrid(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabKeyNavigation(False)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Times by line and proxy state")
        self._widths: dict[str, int] = {}
        """by the column's name: those that somebody drew"""
        self._sharing = False
        self.setSortingEnabled(True)
        header = self.horizontalHeader()
        header.sectionResized.connect(self._drawn)
        header.sectionHandleDoubleClicked.connect(self._forget)
        times.modelReset.connect(self._shape)

    def _shape(self) -> None:
        self._show_order()
        self._share_width()

    def _show_order(self) -> None:
        column, falling = self._times.sorted_by
        order = Qt.SortOrder.DescendingOrder if falling else Qt.SortOrder.AscendingOrder
        header = self.horizontalHeader()
        header.blockSignals(True)
        header.setSortIndicator(column, order)
        header.blockSignals(False)
        header.viewport().update()
        told = "" if column < 0 else f"Sorted by {self._times.name(column)}, "
        self.setAccessibleDescription(
            told and told + ("the greatest first" if falling else "the least first")
        )

    def _drawn(self, column: int, before: int, width: int) -> None:
        if not self._sharing:
            self._widths[self._times.name(column)] = width

    def _forget(self, column: int) -> None:
        self._widths.pop(self._times.name(column), None)
        self._share_width()

    def remembered(self) -> object:
        """Widths that were drawn, and the order."""
        column, falling = self._times.sorted_by
        by = self._times.name(column) if column >= 0 else ""
        return {"widths": self._widths, "by": by, "falling": falling}

    def remember(self, kept: object) -> None:
        """Take them up."""
        if not isinstance(kept, dict):
            return
        widths = kept.get("widths")
        for name, width in (widths if isinstance(widths, dict) else {}).items():
            if isinstance(name, str) and type(width) is int and _LEAST_WIDTH <= width < 2000:
                self._widths[name] = width
        if isinstance(by := kept.get("by"), str):
            self._times.use_order(by, kept.get("falling") is True)
        self._share_width()

    def _share_width(self) -> None:
        states = len(self._times.states)
        if not states:
            return
        room = self.viewport().width()
        bold, plain = QFontMetrics(self._look.font(12, 600)), QFontMetrics(self._look.font(13, 500))
        heads = [bold.horizontalAdvance(words.state(state)) for state in self._times.states]
        names = [plain.horizontalAdvance(self._times.text(n, 0)) for n in range(self._times.rowCount())]
        first, ratio_width, spread, verdict = 14, 54, 84, 82
        least = max(58, *(head + 24 for head in heads[1:]), *(head + 10 for head in heads[:1]))
        rest = room - first - ratio_width - spread - verdict
        # long names of lines take what the times can spare, and end in … beyond that
        name = max(112, min(max(names, default=0) + 8, rest - states * least))
        each = max(least, min(130, (rest - name) // states))
        widths = [name, each + first, *[each] * (states - 1), ratio_width, spread]
        rest = max(verdict, room - sum(widths))
        widths = [*widths, rest]
        self._sharing = True
        for column, width in enumerate(widths):
            widths[column] = self._widths.get(self._times.name(column), width)
            self.setColumnWidth(column, widths[column])
        self._sharing = False
        bar = self.horizontalScrollBar().sizeHint().height() if sum(widths) > room else 0
        self.setFixedHeight(HEADER + ROW * self._times.rowCount() + 4 + bar)

    def copy(self) -> None:
        """The table to the clipboard, as text and as a picture."""
        copying.put(self, self.copied())

    def copied(self) -> str:
        """The table as text."""
        return self._times.copied()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.key() == Qt.Key.Key_S and self.currentIndex().isValid():
            at = self.currentIndex()
            ordering.turn(self.horizontalHeader(), at.column())
            self.setCurrentIndex(self._times.index(at.row(), at.column()))
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_width()
