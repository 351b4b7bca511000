"""The run's account: what was changed on the hosts, and taken back, as a table that can be copied."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from gui import copying, words
from gui.theme.look import Look
from lab.events import HostChanged
from lab.live import Live

_HEADS = ("Time", "Host", "Changed or taken back", "What")
_WIDTHS = (76, 130, 100)
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
        self._most: int | None = None

    def show_run(self, live: Live) -> bool:
        """The account as it is now; True if there is more than before."""
        changes = tuple(live.changed)
        if changes == self._changes:
            return False
        self.beginResetModel()
        self._changes, self._most = changes, live.changed.maxlen
        self._cells = [_cells(change) for change in changes]
        self.endResetModel()
        return True

    @property
    def told(self) -> str:
        """What the table is, and whether it is the whole of it."""
        number = len(self._changes)
        if not number:
            return "Nothing was changed on the hosts so far"
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

    def as_text(self, rows: Sequence[int]) -> str:
        """These rows, or all of them for none, as a table of tabs."""
        chosen = [self._cells[row] for row in rows] if rows else self._cells
        return copying.table(_HEADS, chosen)


class AccountView(QTableView):
    """The table; Ctrl C copies the selected rows, or all."""

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
        self.horizontalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(_WHAT, QHeaderView.ResizeMode.Stretch)
        for column, width in enumerate(_WIDTHS):
            self.setColumnWidth(column, width)

    def copy(self) -> None:
        """The selected rows to the clipboard, or all; with a picture of what is seen."""
        copying.put(self, self.copied())

    def copied(self) -> str:
        """The selected rows as text, or all."""
        return self._model.as_text(sorted({index.row() for index in self.selectedIndexes()}))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
            return
        super().keyPressEvent(event)


def _cells(change: HostChanged) -> tuple[str, str, str, str]:
    at = words.moment(change.at)
    time = change.at if at is None else f"{at:%H:%M:%S}"
    # the watcher says it in front already
    what = change.what.removeprefix("taken back: ") if change.undone else change.what
    return time, change.host, "taken back" if change.undone else "changed", what
