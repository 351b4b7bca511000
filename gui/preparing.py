"""From the press of Run to the run: the hosts are looked at, and a person agrees to what others would feel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from gui.agreement import AgreementDialog
from gui.doors import Doors
from gui.person import Person
from gui.questions import Questions
from gui.theme.look import Look
from gui.worker import Worker
from lab import asking
from lab.asking import Question
from lab.model import Experiment, Lab
from lab.stop import Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A run that is wanted.

    `agreed` has the kinds of `lab.asking.KINDS` that were agreed to beforehand: then nobody is asked, and what is
    of another kind is refused. None: a person is asked.
    """

    lab: Lab
    experiment: Experiment
    record: Path | None = None
    agreed: frozenset[str] | None = None
    repeat: Path | None = None
    """The file of a run whose trials are done again"""
    stop: Stop = field(default_factory=Stop)


class Preparing(QObject):
    """Takes one run at a time to its beginning; changes nothing on any host.

    Signals: `ready(object)` the `Wanted` to be run, with everything in it that was agreed to; `left()` a
    person cancelled; `crashed(object)` what went wrong while looking, or what nobody agreed to (`Declined`).
    """

    ready = Signal(object)
    left = Signal()
    crashed = Signal(object)

    def __init__(self, look: Look, doors: Doors, questions: Questions, window: QWidget) -> None:
        super().__init__(window)
        self._look, self._doors, self._questions, self._window = look, doors, questions, window
        self._wanted: Wanted | None = None
        self._worker: Worker | None = None
        self._dialog: AgreementDialog | None = None

    @property
    def busy(self) -> bool:
        """True from `begin` to one of the signals."""
        return self._wanted is not None

    def begin(self, wanted: Wanted) -> None:
        """Look at the hosts; those that BranchLab made itself are nobody else's, and are not looked at."""
        self._wanted = wanted
        self._doors.person = Person(self._look, self._questions, wanted.stop)
        if self._doors.own(wanted.lab):
            self._go()
            return
        self._worker = worker = Worker(self)
        worker.happened.connect(self._looked)
        worker.crashed.connect(self._failed)
        worker.ended.connect(self._ended)
        worker.start(self._doors.look(wanted.lab, wanted.experiment), "look")

    def cancel(self) -> None:
        """Leave it; a look that is under way ends by itself, unheard, and asks nothing more."""
        wanted, self._wanted, self._worker = self._wanted, None, None
        if wanted is None:
            return
        wanted.stop.request()
        self._questions.withdraw()
        dialog, self._dialog = self._dialog, None
        if dialog is not None and dialog.isVisible():
            dialog.reject()
        self.left.emit()

    def _looked(self, questions: Sequence[Question]) -> None:
        if self.sender() is not self._worker or self._wanted is None:
            return
        if self._wanted.agreed is not None:
            self._go_if_agreed(questions, self._wanted.agreed)
            return
        if not questions:
            self._go()
            return
        self._dialog = dialog = AgreementDialog(self._look, questions, self._window)
        self._wanted = replace(self._wanted, agreed=frozenset(one.kind for one in questions))
        dialog.accepted.connect(self._go)
        dialog.rejected.connect(self.cancel)
        dialog.open()

    def _go_if_agreed(self, questions: Sequence[Question], agreed: frozenset[str]) -> None:
        try:
            asking.refuse_unanswered(questions, agreed)
        except asking.Declined as error:
            self._failed(error)
        else:
            self._go()

    def _go(self) -> None:
        wanted, self._wanted, self._worker, self._dialog = self._wanted, None, None, None
        self.ready.emit(wanted)

    def _failed(self, error: BaseException) -> None:
        if self.sender() is not self._worker:
            return
        self._wanted = self._worker = None
        self.crashed.emit(error)

    def _ended(self, worker: QObject) -> None:
        worker.deleteLater()
