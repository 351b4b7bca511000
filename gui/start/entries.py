"""The rows of Start's lists: pressed as a whole, named for the ear, and removable where what they name is gone."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from gui.theme.look import Look
from gui.widgets.basic import Card, Elided, Icon, IconButton, Label, Said, column, emptied, row, rule

_HIGH = 48


class Entry(QPushButton):
    """Icon, name, a line under it, and at the right what is to be said of it, with a sign or without."""

    def __init__(self, look: Look, icon: str, name: str, under: str, told: str = "", sign: str = "") -> None:
        super().__init__()
        self._look = look
        self.setProperty("kind", "row")
        self.setFixedHeight(look.px(_HIGH))
        self.setAutoDefault(False)
        self.setAccessibleName(", ".join(part for part in (name, under, told) if part))
        self.title = Elided(look, "", 13, 600)
        self.title.say(name)
        below = Elided(look, "", 12, 400, "text2")
        below.say(under)
        said = Said(look, sign, told, 12, 400, "text2")
        said.say(sign, told)
        layout = row(self, Icon(look, icon, 18), margins=(10, 6, 8, 7), spacing=14)
        layout.addLayout(column(None, self.title, below, spacing=0), 1)
        layout.addWidget(said)
        for child in self.findChildren(QWidget):
            child.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def sizeHint(self) -> QSize:
        return QSize(200, self._look.px(_HIGH))


class Removable(QWidget):
    """An entry whose thing is gone: it cannot be pressed, and taken out of the list. Signal `removed()`."""

    removed = Signal()

    def __init__(self, look: Look, entry: Entry, name: str) -> None:
        super().__init__()
        entry.setEnabled(False)
        self.button = IconButton(look, "x", f"Take {name} out of the list", 16)
        self.button.clicked.connect(self.removed)
        layout = row(self, spacing=2)
        layout.addWidget(entry, 1)
        layout.addWidget(self.button)


class ListCard(Card):
    """A card with a title and entries, hair lines between them."""

    def __init__(self, look: Look, title: str) -> None:
        super().__init__("bigcard", (16, 14, 14, 8))
        self.column.setSpacing(0)
        self._hint = Label(look, "", 11, 400, "text2")
        self.column.addLayout(row(None, Label(look, title, 13, 600), -1, self._hint, margins=(4, 0, 4, 0)))
        self.column.addSpacing(6)
        self._list = column(None, spacing=0)
        self.column.addLayout(self._list)
        self.column.addStretch(1)
        self._count = 0

    def hint(self, text: str) -> None:
        """A word at the title's end."""
        self._hint.say(text)

    def clear(self) -> None:
        """No entries."""
        emptied(self._list)
        self._count = 0

    def add(self, entry: QWidget) -> None:
        """One more entry."""
        if self._count:
            self._list.addWidget(rule())
        self._count += 1
        self._list.addWidget(entry)
