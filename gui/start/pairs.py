"""Published figures of before and after, as a dialog: a sentence, and a table that can be copied."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from gui import copying
from gui.dialogs import Dialog
from gui.report import breakable
from gui.theme.look import Look
from gui.widgets.basic import Label
from lab.analysis import words
from lab.analysis.before_after import Pairs

_ROW = 30
_WIDTH = 820
"""So wide that no case takes two lines."""


class PairsDialog(Dialog):
    """Nothing is asked here; Esc and the button close it."""

    def __init__(self, look: Look, pairs: Pairs, window: QWidget) -> None:
        super().__init__(look, window, pairs.source.partition(":")[0], icon="chart-line-up")
        self.setFixedWidth(min(look.px(_WIDTH), window.width() - 24))
        self.body.addWidget(Label(look, breakable(pairs.text), 13, wrap=True))
        self.table = PairsTable(look, pairs)
        self.table.setFixedHeight(
            min(look.px(_ROW) * (len(pairs.rows) + 1) + 6, max(200, window.height() - look.px(300)))
        )
        self.body.addWidget(self.table)
        about = pairs.source.partition(":")[2].strip()
        self.body.addWidget(
            Label(look, breakable(f"{about[:1].upper()}{about[1:]}."), 12, 400, "text2", wrap=True)
        )
        close = self.button("Close", "filled")
        close.setDefault(True)
        close.clicked.connect(self.reject)


class PairsTable(QTableWidget):
    """Case, before, after, gain; Ctrl C copies it."""

    def __init__(self, look: Look, pairs: Pairs) -> None:
        super().__init__(len(pairs.rows), 4)
        self._head = ["", f"{pairs.before}, {pairs.unit}", f"{pairs.after}, {pairs.unit}", "better by"]
        self.setHorizontalHeaderLabels([f"    {text}" for text in self._head])
        self.setAccessibleName(f"{pairs.source.partition(':')[0]}: before and after")
        self.setFont(look.font(12))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(look.px(_ROW))
        self.setTabKeyNavigation(False)
        for number, row in enumerate(pairs.rows):
            gain = words.percent(pairs.gain(row))
            for column, text in enumerate(
                (words.capital(row.case), f"{row.before:g}", f"{row.after:g}", gain)
            ):
                item = QTableWidgetItem(text)
                if column:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.setItem(number, column, item)
        head = self.horizontalHeader()
        head.setFont(look.font(12, 600))
        head.setHighlightSections(False)
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in range(4):
            side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
            self.horizontalHeaderItem(column).setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            copying.put(self, self.text())
        else:
            super().keyPressEvent(event)

    def text(self) -> str:
        """The table with tabs between its columns."""
        rows = [
            [self.item(row, column).text() for column in range(self.columnCount())]
            for row in range(self.rowCount())
        ]
        return "\n".join("\t".join(row) for row in [self._head, *rows])
