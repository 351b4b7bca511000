"""A question amid work: a thread asks and waits, the main thread shows a dialog that holds up nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QDialog, QWidget

from gui.dialogs import Dialog
from lab.stop import Stop

Make = Callable[[QWidget], Dialog]
"""Makes the dialog, in the main thread, over the given window."""


@dataclass(eq=False, slots=True)
class _Asked:
    """One question that a thread waits for."""

    make: Make
    stop: Stop
    done: threading.Event = field(default_factory=threading.Event)
    answer: object = None

    def release(self, answer: object = None) -> None:
        """Let the thread go on with this answer."""
        self.answer = answer
        self.done.set()


class Questions(QObject):
    """One dialog at a time, in the order in which they were asked. Made in the main thread."""

    _came = Signal(object)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._lock = threading.Lock()
        self._waiting: list[_Asked] = []
        self._dialog: Dialog | None = None
        self._closed = False
        self._came.connect(self._next)

    def ask(self, make: Make, stop: Stop) -> object:
        """From a worker's thread: the dialog's answer; None once it was left, withdrawn, or the window closed."""
        if threading.current_thread() is threading.main_thread():
            raise RuntimeError("the main thread shows dialogs, and must not wait for one")
        asked = _Asked(make, stop)
        with self._lock:
            if self._closed or stop.requested:
                return None
            self._waiting.append(asked)
        try:
            self._came.emit(asked)
        except RuntimeError:  # the window is gone, and this object with it
            return None
        asked.done.wait()
        return asked.answer

    def withdraw(self) -> None:
        """Answer with None what was asked for work that was told to stop."""
        for asked in self._taken_out(lambda asked: asked.stop.requested):
            asked.release()
        self._next()

    def close(self) -> None:
        """Answer everything with None, now and from now on: nobody is there any more."""
        self._closed = True
        for asked in self._taken_out(lambda asked: True):
            asked.release()
        self._next()

    @property
    def waiting(self) -> int:
        """How many threads wait for an answer."""
        return len(self._waiting)

    def _taken_out(self, which: Callable[[_Asked], bool]) -> list[_Asked]:
        with self._lock:
            found = [asked for asked in self._waiting if which(asked)]
            self._waiting = [asked for asked in self._waiting if not which(asked)]
        return found

    def _next(self, asked: object = None) -> None:
        """Show the oldest question; put away the dialog of one that nobody waits for any more."""
        with self._lock:
            first = self._waiting[0] if self._waiting else None
        if first is not None and first.stop.requested:
            # asked just when its work was told to stop
            self.withdraw()
            return
        if self._dialog is not None:
            if self._dialog.asked is not first:
                self._dialog.reject()
            return
        if first is None:
            return
        self._dialog = dialog = first.make(self._window)
        dialog.asked = first
        dialog.finished.connect(partial(self._answered, dialog, first))
        dialog.open()

    def _answered(self, dialog: Dialog, asked: _Asked, result: int) -> None:
        if self._dialog is dialog:
            self._dialog = None
        for one in self._taken_out(lambda other: other is asked):
            one.release(dialog.answer if result == QDialog.DialogCode.Accepted else None)
        self._next()
