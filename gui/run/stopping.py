"""The button that stops a run: after the trial under way, or now; and at once, where that takes long."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QMenu

from gui.theme.look import Look
from gui.widgets.basic import Button
from lab import sleeping
from lab.live import Live

HARD_AFTER_S = 10.0
"""Connections can be cut only so long after *Stop now*."""
AFTER, ALL_THE_SAME, NOW = "Stop after this trial", "Go on after this trial", "Stop now"
_BETWEEN = "Stop before the next trial"


class StopButton(Button):
    """Offers both ways in a menu; after *Stop now* it is a button that cuts, once that has taken long.

    Signals: `now()` give up the trial under way; `after(object)` True to end once it is over, False to go on all
    the same; `cut()` close every connection.
    """

    now = Signal()
    after = Signal(object)
    cut = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__(look, "Stop …", icon="stop")
        self._asked_at: float | None = None
        self._between = False
        self.ending = False
        """True from *Stop after this trial* until it is taken back"""
        self.clicked.connect(self._pressed)

    @property
    def stopping(self) -> bool:
        """True from *Stop now* on."""
        return self._asked_at is not None

    def begin(self) -> None:
        """Another run."""
        self._asked_at, self.ending = None, False

    def ways(self) -> list[tuple[str, str, Callable[[], None]]]:
        """What can be chosen now: its name, what it does to the trial under way, and the doing."""
        if self.stopping:
            return [(self.word, "", self._cut)] if self.isEnabled() else []
        if self.ending:
            soft = (ALL_THE_SAME, "the run is not stopped", self._go_on)
        elif self._between:
            soft = (_BETWEEN, "what was begun is ended first", self._end)
        else:
            soft = (AFTER, "it is measured to its end", self._end)
        gone = "the hosts are taken back" if self._between else "it is given up; finished ones stay"
        return [soft, (NOW, gone, self.stop_now)]

    def stop_now(self) -> None:
        """What *Stop now* does."""
        if not self.stopping:
            self._asked_at = sleeping.elapsed_s()
            self.now.emit()

    def show_run(self, live: Live) -> None:
        """Say what a press would do now."""
        self._between = live.current is None
        if self._asked_at is None:
            self.rename("Stop …")
            self.setEnabled(True)
            self.setToolTip("Finished trials stay; everything on the hosts is taken back")
            return
        late = sleeping.elapsed_s() - self._asked_at >= HARD_AFTER_S
        self.rename("Stop at once" if late else "Stopping …")
        self.setEnabled(late)
        self.setToolTip("Cuts the connections; the hosts undo by themselves" if late else "")

    def _pressed(self) -> None:
        if self.stopping:
            self._cut()
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setAccessibleName("Ways to stop the run")
        for name, what, do in self.ways():
            menu.addAction(f"{name}\t{what}", do)
        menu.popup(self.mapToGlobal(QPoint(0, self.height() + 4)))

    def _end(self) -> None:
        self.ending = True
        self.after.emit(True)

    def _go_on(self) -> None:
        self.ending = False
        self.after.emit(False)

    def _cut(self) -> None:
        if self._asked_at is not None and sleeping.elapsed_s() - self._asked_at >= HARD_AFTER_S:
            self.cut.emit()
