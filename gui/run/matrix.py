"""The matrix of trials: a row per operation and proxy state, a column per line, a pip per attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QPainter, QPen, QResizeEvent
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
from gui.theme import marks
from gui.theme.look import Look
from lab.live import WAITING, Cell, Live
from lab.model import DISABLED, OPERATION_NAMES, Line, ProxyState, Treatment

OPERATION, STATE, FIRST_LINE = 0, 1, 2
ROW, SMALL_ROW, LEAST_ROW, GROUP_GAP, HEADER = 18, 15, 13, 7, 26
_OPERATION_WIDTH, _STATE_WIDTH, _PAD = 112, 92, 6
_WIDE_COLUMN = 420
_MEDIAN_AT, _RANGE_AT = 196, 210
"""In a wide column: where the median ends and the range begins."""
_Index = QModelIndex | QPersistentModelIndex
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True)
class Row:
    """One row: an operation in a proxy state; `first` of its operation or not."""

    operation: str
    state: ProxyState
    first: bool


class Matrix(QAbstractTableModel):
    """The live run as a table. Its shape is fixed when the run starts; cells are told one by one.

    Signal: `moved()` another column is the running one's; as `headerDataChanged` it would lay out the view anew.
    """

    moved = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.live = Live()
        self.rows: list[Row] = []
        self.lines: tuple[Line, ...] = ()
        self.states: tuple[ProxyState, ...] = ()
        self._shown: dict[Treatment, tuple[object, ...]] = {}
        self._running: tuple[int, int] | None = None
        self._version: tuple[object, ...] = ()

    def begin(self, live: Live) -> None:
        """Another run: its shape."""
        self.beginResetModel()
        self.live, self.lines = live, live.lines
        self.states = live.experiment.states if live.experiment else ()
        self.rows = list(_rows(live))
        self._shown.clear()
        self._running, self._version = None, ()
        self.endResetModel()

    @property
    def running(self) -> tuple[int, int] | None:
        """Row and column of the trial under way."""
        current = self.live.current
        if current is None:
            return None
        return self._where(current.trial.treatment)

    def _where(self, treatment: Treatment) -> tuple[int, int] | None:
        for number, row in enumerate(self.rows):
            if row.operation == treatment.operation and row.state == treatment.state:
                return number, FIRST_LINE + self.lines.index(treatment.line)
        return None

    def treatment(self, row: int, column: int) -> Treatment:
        """The combination of levels of a cell."""
        line = self.lines[column - FIRST_LINE]
        return Treatment(line=line, operation=self.rows[row].operation, state=self.rows[row].state)

    def cell(self, row: int, column: int) -> Cell | None:
        """What came of a cell so far; None where the plan has none."""
        return self.live.cells.get(self.treatment(row, column))

    def refresh(self) -> None:
        """Tell the view which cells look different now; between trials' ends that is only the running one."""
        current = self.live.current
        version = (self.live.done, current.trial.number if current else 0, self.live.outcome)
        if version == self._version:
            if self._running is not None:
                self._tell(*self._running)
            return
        self._version = version
        running = self.running
        if running != self._running and self.rows:
            for column in {place[1] for place in (running, self._running) if place is not None}:
                # One by one: of several at once the view would paint the whole table.
                for row in range(len(self.rows)):
                    self.dataChanged.emit(self.index(row, column), self.index(row, column))
        if running != self._running:
            self._running = running
            self.moved.emit()
        for number in range(len(self.rows)):
            for column in range(FIRST_LINE, self.columnCount()):
                self._tell(number, column)

    def _tell(self, row: int, column: int) -> None:
        cell = self.cell(row, column)
        if cell is None:
            return
        seen = (cell.done, self.text(row, column))
        if self._shown.get(cell.treatment) != seen:
            self._shown[cell.treatment] = seen
            self.dataChanged.emit(self.index(row, column), self.index(row, column))

    def text(self, row: int, column: int) -> str:
        """The figure of a cell: a median, a running clock, `~` what is expected, or nothing yet."""
        cell = self.cell(row, column)
        if cell is None:
            return words.NONE
        current = self.live.current
        if current is not None and current.trial.treatment == cell.treatment:
            return self._clock()
        if cell.median_s is not None:
            return words.duration(cell.median_s)
        if cell.left and not self.live.running:
            return ""
        if cell.left:
            expected = self.live.expected_s(cell.treatment)
            return f"~{words.NBSP}{words.roughly(expected)}" if expected is not None else ""
        standings = {self.live.standing[trial.number] for trial in cell.trials}
        return "failed" if "failed" in standings else "void" if "void" in standings else ""

    def _clock(self) -> str:
        current, elapsed = self.live.current, self.live.elapsed_s()
        if current is None or elapsed is None or current.timed_since is None:
            return "…"
        return f"{words.clock(elapsed)}{words.NBSP}…"

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else FIRST_LINE + len(self.lines)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        if section < FIRST_LINE:
            return ("", "kbit/s up/down")[section]
        return words.tick(self.lines[section - FIRST_LINE])

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row = self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            if index.column() == OPERATION:
                return OPERATION_NAMES.get(row.operation, row.operation)
            if index.column() == STATE:
                return words.state(row.state)
            return self.text(index.row(), index.column())
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return self._told(index.row(), index.column())
        return None

    def _told(self, row: int, column: int) -> str:
        name = OPERATION_NAMES.get(self.rows[row].operation, self.rows[row].operation)
        about = f"{name}, {words.state(self.rows[row].state, full=True)}"
        if column < FIRST_LINE:
            return about
        cell = self.cell(row, column)
        about += f", {words.line(self.lines[column - FIRST_LINE])}"
        if cell is None:
            return f"{about}: not asked"
        reasons = {
            attempt.reason
            for trial in cell.trials
            if (attempt := self.live.attempts.get(trial.number)) and attempt.reason
        }
        text = f"{about}: {self.text(row, column)}, {cell.kept} kept, {cell.left} to go"
        return "\n".join([text, *sorted(reasons)])


def _rows(live: Live) -> list[Row]:
    if live.experiment is None:
        return []
    planned = {(cell.treatment.operation, cell.treatment.state) for cell in live.cells.values()}
    found = []
    for operation in live.experiment.operations:
        states = [state for state in live.experiment.states if (operation, state) in planned]
        found += [Row(operation, state, number == 0) for number, state in enumerate(states)]
    return found


class _Header(QHeaderView):
    """Names of the lines, right-aligned over their times; the running one's column is tinted."""

    def __init__(self, look: Look, matrix: Matrix, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._look, self._matrix = look, matrix
        self.setFixedHeight(HEADER)
        self.setSectionsClickable(False)
        self.setAccessibleName("Lines, kbit/s up/down")

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        painter.save()
        running = self._matrix.running
        now = running is not None and running[1] == section
        if now:
            painter.fillRect(rect, _tint(self._look))
        text = self._matrix.headerData(section, Qt.Orientation.Horizontal)
        first = section < FIRST_LINE
        painter.setFont(self._look.font(11 if first else 12, 400 if first else 600))
        painter.setPen(self._look.colour("text" if now else "text2"))
        box = rect.adjusted(_PAD, 0, -_PAD, 0)
        if not first and rect.width() >= _WIDE_COLUMN:
            self._wide(painter, box)
            box.setRight(rect.left() + _MEDIAN_AT)
            painter.setFont(self._look.font(12, 600))
            painter.setPen(self._look.colour("text" if now else "text2"))
        painter.drawText(box, _LEFT if first else _RIGHT, str(text or ""))
        painter.setPen(QPen(self._look.colour("hair"), 1))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        painter.restore()

    def _wide(self, painter: QPainter, box: QRect) -> None:
        """What else stands in a wide column."""
        painter.setFont(self._look.font(11))
        painter.setPen(self._look.colour("text3"))
        painter.drawText(box.adjusted(_RANGE_AT - _PAD, 0, 0, 0), _LEFT, "least – most")
        painter.drawText(box, _RIGHT, "against disabled")


def _tint(look: Look) -> QColor:
    return look.mixed(look.token("accent_soft"), 0.6)


class _Delegate(QStyledItemDelegate):
    """Paints names, markers, pips and times."""

    def __init__(self, look: Look, matrix: Matrix, height: Callable[[], int]) -> None:
        super().__init__()
        self._look, self._matrix, self._height = look, matrix, height

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        painter.save()
        row = self._matrix.rows[index.row()]
        box = option.rect
        running = self._matrix.running
        if running is not None and running[1] == index.column():
            painter.fillRect(box, _tint(self._look))
        if row.first and index.row():
            painter.setPen(QPen(self._look.colour("hair"), 1))
            y = box.top() + GROUP_GAP // 2
            painter.drawLine(box.left(), y, box.right(), y)
        if row.first:
            box = box.adjusted(0, GROUP_GAP, 0, 0)
        if index.column() == OPERATION:
            self._words(painter, box.adjusted(_PAD, 0, 0, 0), index, 600 if row.first else 0)
        elif index.column() == STATE:
            shown = self._look.state(row.state, self._matrix.states)
            centre = QPointF(box.left() + _PAD + 5, box.center().y() + 0.5)
            marks.draw_marker(painter, self._look, shown, centre, min(10, self._height() - 6))
            self._words(painter, box.adjusted(_PAD + 17, 0, 0, 0), index, 400)
        else:
            self._cell(painter, box, index, running == (index.row(), index.column()))
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(self._look.colour("accent"), 1.5))
            painter.drawRoundedRect(QRectF(box).adjusted(1, 1, -1, -1), 4, 4)
        painter.restore()

    def _words(self, painter: QPainter, box: QRect, index: _Index, weight: int) -> None:
        if not weight:
            return
        painter.setFont(self._look.font(self._size(), weight))
        painter.setPen(self._look.colour("text" if weight == 600 else "text2"))
        painter.drawText(box, _LEFT, str(index.data()))

    def _size(self) -> int:
        return 12 if self._height() > LEAST_ROW else 11

    def _cell(self, painter: QPainter, box: QRect, index: _Index, now: bool) -> None:
        look = self._look
        cell = self._matrix.cell(index.row(), index.column())
        text = str(index.data())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if now:
            painter.setPen(QPen(look.colour("accent"), 1.6))
            painter.setBrush(look.colour("surface"))
            painter.drawRoundedRect(QRectF(box).adjusted(1, 0.8, -1, -0.8), 4, 4)
        right = box.adjusted(0, 0, -_PAD, 0)
        wide = box.width() >= _WIDE_COLUMN
        if wide:
            right.setRight(box.left() + _MEDIAN_AT)
        if cell is None:
            self._figure(painter, right, text, 400, "text3")
            return
        self._pips(painter, box, cell)
        if now:
            self._figure(painter, right, text, 600, "accent")
        elif text in ("failed", "void"):
            self._figure(painter, right, text, 500, "trouble" if text == "failed" else "text2")
        elif cell.median_s is None:
            self._figure(painter, right, text, 400, "text3")
        else:
            sure = cell.kept >= 2
            self._figure(painter, right, text, 600 if sure else 400, "text" if sure else "text2")
            if wide and sure:
                self._beside(painter, box.adjusted(0, 0, -_PAD, 0), cell)

    def _figure(self, painter: QPainter, box: QRect, text: str, weight: int, ink: str) -> None:
        painter.setFont(self._look.font(self._size(), weight))
        painter.setPen(self._look.colour(ink))
        painter.drawText(box, _RIGHT, text)

    def _beside(self, painter: QPainter, box: QRect, cell: Cell) -> None:
        """Where a column is wide: least and greatest kept time, and disabled's median over this one."""
        painter.setFont(self._look.font(11))
        painter.setPen(self._look.colour("text3"))
        if (spread := cell.range_s) is not None:
            low, high = (words.duration(value) for value in spread)
            painter.drawText(
                box.adjusted(_RANGE_AT, 0, 0, 0), _LEFT, low if low == high else f"{low} – {high}"
            )
        treatment = cell.treatment
        plain = Treatment(line=treatment.line, operation=treatment.operation, state=DISABLED)
        base = self._matrix.live.cells.get(plain)
        if base is None or base is cell or base.kept < 2 or not base.median_s or not cell.median_s:
            return
        apart = spread is not None and (theirs := base.range_s) is not None and not _overlap(spread, theirs)
        painter.setPen(self._look.colour("text2" if apart else "text3"))
        painter.drawText(box, _RIGHT, f"{base.median_s / cell.median_s:.2f}×")

    def _pips(self, painter: QPainter, box: QRect, cell: Cell) -> None:
        """One pip per attempt."""
        shown = self._look.state(cell.treatment.state, self._matrix.states)
        high = 12 if self._height() >= ROW else self._height() - 5
        wide = min(12.0, min(box.width() * 0.5, 110.0) / max(1, len(cell.trials)) - 1)
        x, middle = box.left() + _PAD + 0.0, box.top() + box.height() / 2
        for trial in cell.trials:
            standing = self._matrix.live.standing.get(trial.number, WAITING)
            if trial.warm_up:
                small = QRectF(x, middle - 3, 6, 6)
                marks.draw_warm_up(painter, self._look, shown, standing, small)
                x += 9
            else:
                pip = QRectF(x, middle - high / 2, wide, high)
                marks.draw_pip(painter, self._look, shown, standing, pip)
                x += wide + 1


def _overlap(one: tuple[float, float], two: tuple[float, float]) -> bool:
    return one[0] <= two[1] and two[0] <= one[1]


class MatrixView(QTableView):
    """The table of the matrix, as high as its rows, in the row height that its window allows."""

    def __init__(self, look: Look, matrix: Matrix) -> None:
        super().__init__()
        self._look, self._matrix, self.row_height = look, matrix, ROW
        self.setModel(matrix)
        self.setItemDelegate(_Delegate(look, matrix, lambda: self.row_height))
        self.setHorizontalHeader(_Header(look, matrix, self))
        self.verticalHeader().hide()
        self.verticalHeader().setMinimumSectionSize(10)
        self.setShowGrid(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setTabKeyNavigation(False)
        self.setAccessibleName("Trials by operation, proxy state and line")
        matrix.modelReset.connect(self._shape)
        matrix.moved.connect(self.horizontalHeader().viewport().update)

    def needed(self, height: int) -> int:
        """The height of all rows if one is so high."""
        groups = sum(row.first for row in self._matrix.rows)
        return HEADER + len(self._matrix.rows) * height + groups * GROUP_GAP + 2

    def use_height(self, height: int) -> None:
        """Make the rows so high."""
        if height != self.row_height:
            self.row_height = height
            self._shape()

    def follow(self) -> None:
        """Bring the running cell into sight, where the table is higher than its place."""
        running = self._matrix.running
        if running is not None and self.verticalScrollBar().maximum() and not self.hasFocus():
            self.scrollTo(self._matrix.index(*running), QAbstractItemView.ScrollHint.EnsureVisible)

    def _shape(self) -> None:
        for number, row in enumerate(self._matrix.rows):
            self.setRowHeight(number, self.row_height + (GROUP_GAP if row.first else 0))
        self._share_width()

    def _share_width(self) -> None:
        self.setColumnWidth(OPERATION, _OPERATION_WIDTH)
        self.setColumnWidth(STATE, _STATE_WIDTH)
        lines = len(self._matrix.lines)
        if not lines:
            return
        left = self.viewport().width() - _OPERATION_WIDTH - _STATE_WIDTH
        trials = max((len(cell.trials) for cell in self._matrix.live.cells.values()), default=4)
        least = min(260, 80 + 13 * trials)
        for number in range(lines):
            width = left * (number + 1) // lines - left * number // lines
            self.setColumnWidth(FIRST_LINE + number, max(least, width))

    def copy(self) -> None:
        """The whole matrix to the clipboard, as a table of tabs, and its picture."""
        copying.put(self, self.copied())

    def copied(self) -> str:
        """The whole matrix as text."""
        return copying.of_view(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
            return
        super().keyPressEvent(event)
        if self.currentIndex().isValid():
            self.selectionModel().setCurrentIndex(
                self.currentIndex(), QItemSelectionModel.SelectionFlag.NoUpdate
            )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_width()
