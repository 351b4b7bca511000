"""Checking the hosts of a lab from the window: in a thread, told host by host, left at any time."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from gui.doors import Doors
from gui.found import Doing
from gui.person import Person
from gui.questions import Questions
from gui.theme.look import Look
from gui.worker import Worker
from lab.model import Experiment, Lab
from lab.stop import Stop


class Checking(QObject):
    """One check at a time; nothing is changed on any host.

    Signals: `going(object)` a sentence while it goes, empty at its end; `looking(object)` the name of the host
    that is looked at, empty between and after; `done(object)` what was found, a tuple of
    `lab.rig.host_checks.Checked`; `crashed(object)` a defect.
    """

    going = Signal(object)
    looking = Signal(object)
    done = Signal(object)
    crashed = Signal(object)

    def __init__(self, look: Look, doors: Doors, questions: Questions, window: QWidget) -> None:
        super().__init__(window)
        self._look, self._doors, self._questions = look, doors, questions
        self._stop = Stop()
        self._hosts: list[str] = []
        self._worker: Worker | None = None

    @property
    def busy(self) -> bool:
        """True from `begin` until it ends or is left."""
        return self._worker is not None

    def begin(self, lab: Lab, experiment: Experiment | None) -> None:
        """Check every host, one after another, then what is between them."""
        self._stop = Stop()
        self._hosts = [host.name for host in lab.hosts]
        self._doors.person = Person(self._look, self._questions, self._stop)
        self.going.emit("Checking the hosts …")
        self._worker = worker = Worker(self)
        worker.happened.connect(self._happened)
        worker.crashed.connect(self._failed)
        worker.ended.connect(self._ended)
        worker.start(self._doors.check(lab, experiment, self._stop, worker.tell), "check")

    def cancel(self) -> None:
        """Leave it; what is under way ends by itself, unheard, and asks nothing more."""
        if self._worker is None:
            return
        self._worker = None
        self._stop.request()
        self._questions.withdraw()
        self._over()

    def _happened(self, told: Doing | tuple[object, ...]) -> None:
        if self.sender() is not self._worker:
            return
        if isinstance(told, Doing):
            self._say(told.what, told.host)
        else:
            self._worker = None
            self._over()
            self.done.emit(told)

    def _say(self, doing: str, host: str) -> None:
        self.looking.emit(host)
        if host in self._hosts:
            self.going.emit(f"{doing} {host} ({self._hosts.index(host) + 1} of {len(self._hosts)}) …")
        else:
            self.going.emit("Checking the line, and how the hosts see each other …")

    def _failed(self, error: BaseException) -> None:
        if self.sender() is self._worker:
            self._worker = None
            self._over()
            self.crashed.emit(error)

    def _over(self) -> None:
        self.looking.emit("")
        self.going.emit("")

    def _ended(self, worker: QObject) -> None:
        worker.deleteLater()
