"""The sign in the desktop's tray: what stands there for a window that is away, and tells of a run's end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMenu, QSystemTrayIcon, QWidget

from gui import words
from lab.live import Live

if TYPE_CHECKING:
    from gui.portal import Portal


def _portal(parent: QObject) -> Portal | None:
    if sys.platform != "linux":
        return None
    from gui.portal import Portal  # QtDBus is wanted here alone

    return Portal(f"run-ended-{os.getpid()}", parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desktop:
    """What the desktop around the window has; tests give others. `portal` makes one for messages, given whose child
    it is, or says that there is none.
    """

    has_tray: Callable[[], bool] = QSystemTrayIcon.isSystemTrayAvailable
    icon: Callable[[], QSystemTrayIcon] = QSystemTrayIcon
    portal: Callable[[QObject], Portal | None] = _portal


class Tray(QObject):
    """Only there while it is wanted. Signals: `opened()` the window is wanted; `told()` what a message told is
    wanted; `ending()` what the menu's entry for stopping says; `closed()` BranchLab is to end.
    """

    opened = Signal()
    told = Signal()
    ending = Signal()
    closed = Signal()

    def __init__(self, desktop: Desktop, window: QWidget) -> None:
        super().__init__(window)
        self._desktop, self._window = desktop, window
        self._icon: QSystemTrayIcon | None = None
        self._kept = False
        self.menu = QMenu(window)
        self.progress = self.menu.addAction("")
        self.progress.setEnabled(False)
        self.menu.addSeparator()
        self.menu.addAction("Open the window").triggered.connect(self.opened)
        self.end = self.menu.addAction("")
        self.end.triggered.connect(self.ending)
        self.close = self.menu.addAction("Close BranchLab")
        self.close.triggered.connect(self.closed)

    def portal(self) -> Portal | None:
        """For messages, where there is no tray."""
        return self._desktop.portal(self)

    @property
    def there(self) -> bool:
        """True on a desktop that has a tray now."""
        return self._desktop.has_tray()

    def keep(self, kept: bool) -> None:
        """Stand in the tray from now on, or no more."""
        self._kept = kept
        if kept:
            self._show()
        else:
            self.put_away()

    def put_away(self) -> None:
        """Leave the tray, where the sign stood there for a message alone."""
        if self._icon is not None and not self._kept:
            self._icon.hide()

    def show_run(self, live: Live, way: str) -> None:
        """How far the run is; `way` is what a person can have it do, empty for nothing."""
        said = far(live)
        self.progress.setText(said)
        self.end.setText(way)
        self.end.setVisible(bool(way))
        self.close.setVisible(not live.running)
        if self._icon is not None:
            self._icon.setToolTip(f"BranchLab\n{said}")

    def tell(self, title: str, text: str) -> None:
        """A message of the desktop's own, from the sign."""
        self._show().showMessage(title, text, self._window.windowIcon())

    def _show(self) -> QSystemTrayIcon:
        if self._icon is None:
            self._icon = self._desktop.icon()
            self._icon.setParent(self)
            self._icon.setIcon(self._window.windowIcon())
            self._icon.setContextMenu(self.menu)
            self._icon.activated.connect(self._pressed)
            self._icon.messageClicked.connect(self.told)
        self._icon.show()
        return self._icon

    def _pressed(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason is not QSystemTrayIcon.ActivationReason.Context:
            self.opened.emit()


def far(live: Live) -> str:
    """How far a run is, in a line: its name, its trials, and how long is to go."""
    name = live.experiment.name if live.experiment else "The run"
    if not live.running:
        return f"{name}: {live.outcome.value if live.outcome else 'not begun'}"
    said = f"{name}: {words.count(live.done)} of {words.count(live.total)} trials"
    if live.lost:
        return f"{said}, {', '.join(sorted(live.lost))} lost"
    if live.paused:
        return f"{said}, paused"
    eta = live.eta()
    return said if eta is None else f"{said}, {words.span(*eta)} to go"
