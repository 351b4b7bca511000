"""The only bridge from threads to Qt: pulls a generator in one plain thread and tells what it yields."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal


class Worker(QObject):
    """Pulls one iterable at a time. Made in the main thread; its signals arrive there.

    Signals: `happened(object)` each thing yielded; `crashed(object)` the exception that ended it;
    `ended(object)` the last word, always: this worker.
    """

    happened = Signal(object)
    crashed = Signal(object)
    ended = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread: threading.Thread | None = None
        self._pulling = False

    @property
    def busy(self) -> bool:
        """True until the last word: whoever hears `ended` finds this worker free."""
        return self._pulling

    def start(self, things: Iterable[object], name: str = "run") -> None:
        """Begin to pull. Raises RuntimeError if the last one has not ended."""
        if self.busy:
            raise RuntimeError("this worker is at work")
        self._pulling = True
        # A daemon: a window that is torn down by force must not keep the process; a run undoes by its leases.
        self._thread = threading.Thread(target=self._pull, args=(things,), name=name, daemon=True)
        self._thread.start()

    def tell(self, thing: object) -> None:
        """From the thread, amid a step: one more thing that happened."""
        self._tell(self.happened, thing)

    def wait(self, seconds: float) -> bool:
        """Wait for the thread's end, for tests and for the way out; True if it ended."""
        if self._thread is not None:
            self._thread.join(seconds)
        return not self.busy

    def _pull(self, things: Iterable[object]) -> None:
        try:
            for thing in things:
                self.happened.emit(thing)
        except Exception as error:  # noqa: BLE001 - told in the main thread, by kind
            self._tell(self.crashed, error)
        # Before it is told: the main thread may hear it while this one has not come to its end yet.
        self._pulling = False
        self._tell(self.ended, self)

    @staticmethod
    def _tell(signal: object, value: object) -> None:
        try:
            signal.emit(value)  # type: ignore[attr-defined]
        except RuntimeError:  # the window is gone, and this object with it: nobody is left to tell
            return
