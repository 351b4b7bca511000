"""Small jobs in threads, each with one result, told in the main thread by the same bridge as a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from gui.worker import Worker

T = TypeVar("T")


class Jobs(QObject):
    """How many are under way is its length.

    Signals: `failed(object)` the exception that ended one; `ended()` one has ended, one way or the other.
    """

    failed = Signal(object)
    ended = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._workers: set[Worker] = set()

    def __len__(self) -> int:
        return len(self._workers)

    def do(self, things: Iterable[T], then: Callable[[T], None]) -> None:
        """Have it done in a thread; `then` hears each thing that it yields."""
        # Nobody's child: where this page is deleted amid a job, the thread still has somebody to speak through.
        worker = Worker()
        self._workers.add(worker)
        worker.happened.connect(then)
        worker.crashed.connect(self.failed)
        worker.ended.connect(self._ended)
        worker.start(things, "job")

    def _ended(self, worker: QObject) -> None:
        self._workers.discard(worker)
        worker.deleteLater()
        self.ended.emit()
