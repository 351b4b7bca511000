"""The run's account: what was changed on the hosts, and taken back, as a table that can be copied."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QByteArray, QModelIndex, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence, QPainter
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from gui import copying, ordering, words
from gui.theme.look import Look
from lab.events import HostChanged
from lab.live import Live

_HEADS = ("Time", "Host", "Changed or taken back", "What")
_WIDTHS = (76, 130, 152)
_TIME, _HOST, _END, _WHAT = range(4)
_ROW = 20

Index = QModelIndex | QPersistentModelIndex


class Account(QAbstractTableModel):
    """The newest changes of a run, oldest first; the run file has all of them."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._changes: Sequence[HostChanged] = ()
        self._cells: list[tuple[str, str, str, str]] = []
        self._all: list[tuple[str, str, str, str]] = []
        self._order, self._wanted = (ordering.UNSORTED, False), ""
        self._most: int | None = None

    def show_run(self, live: Live) -> bool:
        """The account as it is now; True if there is more than before."""
        changes = tuple(live.changed)
        if changes == self._changes:
            return False
        self.beginResetModel()
        self._changes, self._most = changes, live.changed.maxlen
        self._all = [_cells(change) for change in changes]
        self._cells = self._shown()
        self.endResetModel()
        return True

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """By a column; `ordering.UNSORTED`: as it happened."""
        self._arrange((column, order == Qt.SortOrder.DescendingOrder), self._wanted)

    def want(self, wanted: str) -> None:
        """Show only the changes with these words."""
        self._arrange(self._order, wanted)

    def _arrange(self, order: tuple[int, bool], wanted: str) -> None:
        if (order, wanted) != (self._order, self._wanted):
            self.beginResetModel()
            self._order, self._wanted = order, wanted
            self._cells = self._shown()
            self.endResetModel()

    def _shown(self) -> list[tuple[str, str, str, str]]:
        rows = [(at, cells) for at, cells in enumerate(self._all) if ordering.has_words(cells, self._wanted)]
        column, falling = self._order
        if column == _TIME:  # as it happened, also past midnight
            rows.sort(key=lambda row: row[0], reverse=falling)
        elif column != ordering.UNSORTED:
            rows = ordering.by_value(rows, lambda row: row[1][column], falling=falling)
        return [cells for _, cells in rows]

    @property
    def newest_last(self) -> bool:
        """True while the newest change is the last row."""
        return self._order in ((ordering.UNSORTED, False), (_TIME, False))

    @property
    def told(self) -> str:
        """What the table is, and whether it is the whole of it."""
        number = len(self._changes)
        if not number:
            return "Nothing was changed on the hosts so far"
        if len(self._cells) < number:
            return f"{len(self._cells)} of {number} changes"
        if number == self._most:
            return f"What was changed on the hosts, and taken back: the newest {number}; the run file has all"
        return "What was changed on the hosts, and taken back"

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self._cells)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(_HEADS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _HEADS[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        cells = self._cells[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return cells[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return cells[_WHAT]
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return ", ".join(cells)
        if role == Qt.ItemDataRole.ForegroundRole and index.column() in (_TIME, _END):
            return self._look.colour("text2")
        if role == Qt.ItemDataRole.FontRole:
            return self._look.font(12, 500 if index.column() == _HOST else 400)
        return None


class AccountView(QTableView):
    """The table; Ctrl C copies the selected rows, or all. A press on a head, or S, sorts; heads can be moved."""

    def __init__(self, look: Look, model: Account) -> None:
        super().__init__()
        self._model = model
        self.setModel(model)
        self.setAccessibleName("What was changed on the hosts")
        self.setFont(look.font(12))
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.verticalHeader().setMinimumSectionSize(_ROW)
        self.verticalHeader().setDefaultSectionSize(_ROW)
        header = _Header(look, self)
        self.setHorizontalHeader(header)
        header.setSectionResizeMode(_WHAT, QHeaderView.ResizeMode.Stretch)
        self.setSortingEnabled(True)
        for column, width in enumerate(_WIDTHS):
            self.setColumnWidth(column, width)

    def copy(self) -> None:
        """The selected rows to the clipboard, or all; with a picture of what is seen."""
        copying.put(self, self.copied())

    def copied(self) -> str:
        """The selected rows as text, or all."""
        return copying.of_view(self, sorted({index.row() for index in self.selectedIndexes()}))

    def remembered(self) -> object:
        """Order and widths of the columns, and by which is sorted: Qt's own words for it."""
        return bytes(self.horizontalHeader().saveState().toBase64().data()).decode("ascii")

    def remember(self, kept: object) -> None:
        """Take them up."""
        header = self.horizontalHeader()
        if isinstance(kept, str) and header.restoreState(QByteArray.fromBase64(kept.encode())):
            self._model.sort(header.sortIndicatorSection(), header.sortIndicatorOrder())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.key() == Qt.Key.Key_S and self.currentIndex().isValid():
            at = self.currentIndex()
            ordering.turn(self.horizontalHeader(), at.column())
            self.setCurrentIndex(self._model.index(at.row(), at.column()))
        else:
            super().keyPressEvent(event)


class _Header(QHeaderView):
    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._look = look
        self.setFixedHeight(_ROW)
        self.setSectionsMovable(True)
        ordering.sortable(self)

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        painter.save()
        painter.setFont(self._look.font(11, 600))
        painter.setPen(self._look.colour("text2"))
        side = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        head = painter.fontMetrics().elidedText(
            _HEADS[section], Qt.TextElideMode.ElideRight, rect.width() - 6
        )
        painter.drawText(rect.adjusted(3, 0, -3, -3), side, head)
        under = QRect(
            rect.left() + 3, rect.top(), painter.fontMetrics().horizontalAdvance(head), rect.height()
        )
        ordering.draw_order(painter, self, under, section, self._look.colour("text2"))
        painter.restore()


def _cells(change: HostChanged) -> tuple[str, str, str, str]:
    at = words.moment(change.at)
    time = change.at if at is None else f"{at:%H:%M:%S}"
    # the watcher says it in front already
    what = change.what.removeprefix("taken back: ") if change.undone else change.what
    return time, change.host, "taken back" if change.undone else "changed", what
