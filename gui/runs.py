"""The run that goes: pulled in its thread, stopped and paused from here; and the answers from what it has told."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from gui import reading
from gui.doors import Doors
from gui.jobs import Jobs
from gui.preparing import Wanted
from gui.reading import ANSWERING
from gui.worker import Worker
from lab.analysis.summary import Summary
from lab.events import Event
from lab.stop import Stop


class Runs(QObject):
    """One run at a time.

    Signals: `happened(object)` each of its events; `crashed(object)` a defect; `ended()` its thread has no more;
    `summed(object)` a `Summary`, as often as one was asked for and once more at the end.
    """

    happened = Signal(object)
    crashed = Signal(object)
    ended = Signal()
    summed = Signal(object)

    def __init__(self, doors: Doors, jobs: Jobs, parent: QObject) -> None:
        super().__init__(parent)
        self._doors, self._jobs = doors, jobs
        self._stop: Stop | None = None
        self._again = False
        self.summing = False
        """True while answers are being made"""
        self.kept: list[Event] = []
        """what the answers are made from"""
        self.worker = Worker(self)
        self.worker.happened.connect(self._happened)
        self.worker.crashed.connect(self.crashed)
        self.worker.ended.connect(self._ended)

    @property
    def busy(self) -> bool:
        """True while one goes."""
        return self.worker.busy

    def begin(self, wanted: Wanted) -> None:
        """Run it."""
        self._stop, self.kept = wanted.stop, []
        given, agreed = (wanted.lab, wanted.experiment, wanted.stop), wanted.agreed or frozenset()
        if wanted.repeat is not None:
            self.worker.start(self._doors.repeat(*given, wanted.repeat, agreed=agreed))
        else:
            self.worker.start(self._doors.run(*given, wanted.record, agreed=agreed))

    def stop(self) -> None:
        """Ask it to stop now: the trial under way is given up, hosts are taken back."""
        if self._stop is not None:
            self._stop.request()

    def stop_after(self, wanted: bool) -> None:
        """Ask it to stop once the trial under way is over; or no more."""
        if self._stop is not None and wanted:
            self._stop.request_after_trial()
        elif self._stop is not None:
            self._stop.withdraw_after_trial()

    def pause(self) -> None:
        """Ask it to wait before its next trial."""
        if self._stop is not None:
            self._stop.pause()

    def resume(self) -> None:
        """Let it go on."""
        if self._stop is not None:
            self._stop.resume()

    def sum_up(self) -> None:
        """Make the answers from what there is, in a thread."""
        self._again = self.summing
        if not self.summing and self.kept:
            self.summing = True
            self._jobs.do(reading.summary(list(self.kept)), self._summed)

    def not_summed(self) -> None:
        """The job has failed."""
        self.summing = False

    def _happened(self, event: Event) -> None:
        if isinstance(event, ANSWERING):
            self.kept.append(event)
        self.happened.emit(event)

    def _ended(self) -> None:
        self._stop = None
        if self.kept:
            self.sum_up()
        self.ended.emit()

    def _summed(self, summary: Summary) -> None:
        self.summing = False
        self.summed.emit(summary)
        if self._again:  # asked meanwhile; at the end of a run there is no next time
            self.sum_up()
