"""Which clients do an operation at the same moment: the first alone, all, or some, checked in a menu."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QMenu

from gui.theme.look import Look
from gui.widgets.basic import Choice

ONE = "The lab has one client. The page Lab shows how more are added."
WIDTH = 124


class Clients(Choice):
    """Signal `given(object)`: how many clients (the first ones of the lab), or a list of names."""

    given = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__(look, "Clients")
        self._there: tuple[str, ...] = ()
        self._taking: tuple[str, ...] = ()
        self.menu = _Menu(self)
        self._names: dict[str, QAction] = {}
        self.setFixedWidth(WIDTH)

    def show_clients(self, there: Sequence[str], asked: object, wrong: str = "") -> None:
        """Those of the lab, and what the experiment says: a number or names; `wrong` is what is wrong with it."""
        if tuple(there) != self._there:
            self._there = tuple(there)
            self._build()
        self._taking = _taking(self._there, asked)
        for name, action in self._names.items():
            action.setChecked(name in self._taking)
        text = told(self._there, asked)
        if self.itemText(0) != text:
            self.clear()
            self.addItem(text)
        self.setEnabled(len(self._there) > 1)
        self.setProperty("wrong", bool(wrong))
        self.style().unpolish(self)
        self.style().polish(self)
        several = "These do each operation at the same moment, over the one line and through the one cache"
        only = ONE if len(self._there) == 1 else ""
        self.setToolTip(wrong or only or f"{several}: {', '.join(self._taking)}")
        self.setAccessibleDescription(f"{text}. {self.toolTip()}")

    def showPopup(self) -> None:
        """The menu, in the list's place."""
        if self._there:
            self.menu.setMinimumWidth(self.width())
            self.menu.popup(self.mapToGlobal(QPoint(0, self.height() + 2)))

    def _build(self) -> None:
        self.menu.clear()
        self._names = {}
        if len(self._there) < 2:
            return
        self.menu.addAction(f"{self._there[0]} alone").triggered.connect(partial(self._give, 1))
        every = self.menu.addAction(f"{_every(self._there).capitalize()} at once")
        every.triggered.connect(partial(self._give, len(self._there)))
        self.menu.addSeparator()
        for name in self._there:
            action = self._names[name] = self.menu.addAction(name)
            action.setCheckable(True)
            action.triggered.connect(partial(self._check, name))

    def _give(self, count: int, _checked: bool = False) -> None:
        if _taking(self._there, count) != self._taking:
            self.given.emit(count)

    def _check(self, name: str, _checked: bool = False) -> None:
        on = self._names[name].isChecked()
        names = [one for one in self._there if (on if one == name else one in self._taking)]
        if not names:  # somebody has to do it
            self._names[name].setChecked(True)
        elif tuple(names) == self._there:
            self.given.emit(len(names))
        else:
            self.given.emit(1 if names == [self._there[0]] else names)


class _Menu(QMenu):
    """Checking a name leaves it open, so that several can be."""

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        action = self.actionAt(event.position().toPoint())
        if action is not None and action.isCheckable():
            action.trigger()
            return
        super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        action = self.activeAction()
        if event.key() == Qt.Key.Key_Space and action is not None and action.isCheckable():
            action.trigger()
            return
        super().keyPressEvent(event)


def told(there: Sequence[str], asked: object) -> str:
    """`desk-1`, `both at once`, `all 3 at once`, `2 of 3 at once`; of a lab that is not right what the profile says."""
    taking = _taking(there, asked)
    if len(taking) == 1:
        return taking[0]
    if taking:
        return (
            f"{_every(there)} at once"
            if len(taking) == len(there)
            else f"{len(taking)} of {len(there)} at once"
        )
    count = len(asked) if isinstance(asked, list) else asked
    return f"{count} at once" if isinstance(count, int) and count > 1 else ""


def _taking(there: Sequence[str], asked: object) -> tuple[str, ...]:
    """Who takes part; nobody where the lab has not those."""
    if isinstance(asked, list):
        return tuple(asked) if all(one in there for one in asked) else ()
    count = asked if isinstance(asked, int) and not isinstance(asked, bool) else 1
    return tuple(there[:count]) if 1 <= count <= len(there) else ()


def _every(there: Sequence[str]) -> str:
    return "both" if len(there) == 2 else f"all {len(there)}"
