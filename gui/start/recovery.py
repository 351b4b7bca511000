"""What a crash left unsaved, offered on Start: opened again, or thrown away."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QWidget

from gui.report import breakable
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Label, Sign, column, row
from lab.draft import Recovered


class Recovery(QWidget):
    """One at a time, the newest first. Signals: `wanted(object)` and `thrown(object)`: a `Recovered`."""

    wanted = Signal(object)
    thrown = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._found: list[Recovered] = []
        self.setAccessibleName("Unsaved changes")
        self._title = Label(look, "", 13, 600, wrap=True)
        self._text = Label(look, "", 12, 400, "text2", wrap=True)
        self.away = Button(look, "Throw away", height=28)
        self.take = Button(look, "Open with the changes", height=28)
        box = QFrame()
        box.setObjectName("banner")
        box.setProperty("grade", "warn")
        column(self, box)
        layout = row(box, Sign(look, marks.WARN, 15), margins=(14, 8, 10, 8), spacing=12)
        layout.addLayout(column(None, self._title, self._text, spacing=2), 1)
        layout.addWidget(self.away, 0, Qt.AlignmentFlag.AlignVCenter)
        layout.addWidget(self.take, 0, Qt.AlignmentFlag.AlignVCenter)
        self.take.clicked.connect(self._take)
        self.away.clicked.connect(self._throw)
        self.hide()

    def offer(self, found: Sequence[Recovered]) -> None:
        """These, newest first; none hides it."""
        self._found = list(found)
        self._show()

    def _show(self) -> None:
        self.setVisible(bool(self._found))
        if not self._found:
            return
        first, more = self._found[0], len(self._found) - 1
        name = first.path.name if first.path else "a profile that has no file yet"
        self._title.say(breakable(f"BranchLab ended while {name} had changes that were not saved."))
        kept = f"They are kept. {first.path}" if first.path else "It is kept."
        self._text.say(breakable(kept + (f"  And {more} more." if more else "")))

    def _take(self) -> None:
        if self._found:
            self.wanted.emit(self._found.pop(0))
            self._show()

    def _throw(self) -> None:
        if self._found:
            self.thrown.emit(self._found.pop(0))
            self._show()
