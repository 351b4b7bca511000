"""One host that is being entered, tested a moment after each change, in a thread that can be left."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal

from gui.doors import Doors
from gui.person import Person
from gui.questions import Questions
from gui.theme import marks
from gui.theme.look import Look
from gui.worker import Worker
from lab.model import Role
from lab.new_lab import Entry, names
from lab.rig.meeting import STEPS, Met, Step
from lab.stop import Stop

PAUSE_MS = 700
"""After the last key so long nothing is asked of a host: half a name would be asked for."""
_BY_ITSELF = ("address", "address6", "root")
"""What a test finds out; to change it is no reason for another one."""


class Candidate(QObject):
    """`entry` is what was entered; `steps` what a test said of it so far, by name; `met` what it found at its end.

    Signals: `changed()` either is another one now.
    """

    changed = Signal()

    def __init__(self, look: Look, doors: Doors, questions: Questions, role: Role, parent: QObject) -> None:
        super().__init__(parent)
        self._look, self._doors, self._questions = look, doors, questions
        self.entry = Entry(role=role)
        self.steps: dict[str, Step] = {}
        self.met: Met | None = None
        self._own_address = False
        self._stop = Stop()
        self._worker: Worker | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self.test)

    @property
    def entered(self) -> bool:
        """True once there is a name."""
        return bool(self.entry.ssh.strip())

    @property
    def busy(self) -> bool:
        """True while it is tested, or about to be."""
        return self._worker is not None or self._timer.isActive()

    @property
    def sign(self) -> str:
        """How it stands, as one of the signs; empty where nothing was entered."""
        if not self.entered:
            return ""
        if self.entry.trouble:
            return marks.TROUBLE
        grades = [step.grade for step in self.steps.values()]
        for grade in (marks.TROUBLE, marks.WARN):
            if grade in grades:
                return grade
        if self.busy:
            return marks.BUSY
        return marks.OK if self.met is not None else marks.UNKNOWN

    @property
    def said(self) -> str:
        """The same in a word or two."""
        words = {
            "": "not entered",
            marks.BUSY: "being tested",
            marks.OK: self.entry.ssh.strip(),
            marks.UNKNOWN: "not tested",
        }
        if self.sign in words:
            return words[self.sign]
        if self.entry.trouble:
            return "is not written right"
        wrong = next(step for step in self.steps.values() if step.grade == self.sign)
        return wrong.text

    def enter(self, **given: str) -> None:
        """Take what was entered; test it in a moment, if it is another host then."""
        entry = replace(self.entry, **given)
        if entry == self.entry:
            return
        self.entry, before = entry, self.entry
        if "address" in given:
            self._own_address = bool(given["address"].strip())
        blank = dict.fromkeys(_BY_ITSELF, "")
        if replace(entry, **blank) != replace(before, **blank):
            self.cancel()
            self.steps, self.met = {}, None
            found = {"root": "none", "address6": ""}
            self.entry = replace(entry, **found if self._own_address else {**found, "address": ""})
            if self.entered and not entry.trouble:
                self._timer.start()
        self.changed.emit()

    def test(self, *, asking: bool = False) -> None:
        """Look at the host now; `asking`: a person is asked for what only a person can give."""
        self.cancel()
        if not self.entered or self.entry.trouble:
            return
        self.steps, self.met, self._stop = {}, None, Stop()
        person = Person(self._look, self._questions, self._stop) if asking else None
        self._worker = worker = Worker(self)
        worker.happened.connect(self._happened)
        worker.crashed.connect(self._crashed)
        worker.ended.connect(self._ended)
        # The key of one behind a socket is known by its name in the profile.
        socket = self.entry.ssh.startswith("unix:")
        host = self.entry.host(names([self.entry])[0] if socket else self.entry.ssh.strip())
        worker.start(self._doors.meet(host, self._stop, worker.tell, person), "meet")
        self.changed.emit()

    def cancel(self) -> None:
        """Leave the test; what is under way ends by itself, unheard, and asks nothing more."""
        self._timer.stop()
        if self._worker is not None:
            self._worker = None
            self._stop.request()
            self._questions.withdraw()

    def interrupted(self) -> None:
        """The same, and forget what a test that did not come to its end has said."""
        if self.busy:
            self.cancel()
            self.steps = {}
            self.changed.emit()

    def _happened(self, told: Step | Met | None) -> None:
        if self.sender() is not self._worker:
            return
        if isinstance(told, Step):
            self.steps[told.what] = told
        else:
            self.met = told
            if told is not None:
                found = {"root": told.root, "address6": told.address6}
                if not self._own_address:
                    found["address"] = told.address
                self.entry = replace(self.entry, **found)
        self.changed.emit()

    def _crashed(self, error: BaseException) -> None:
        if self.sender() is self._worker:
            running = [what for what, step in self.steps.items() if step.grade == "running"]
            what = running[-1] if running else STEPS[0]
            self.steps[what] = Step(what, "trouble", f"{type(error).__name__}: {error}")

    def _ended(self, worker: QObject) -> None:
        worker.deleteLater()
        if worker is self._worker:
            self._worker = None
            self.changed.emit()
