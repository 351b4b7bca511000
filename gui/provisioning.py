"""Giving hosts the packages that a run needs, and taking them away: looked for, agreed to, done host by host."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from gui.doors import Doors
from gui.found import Came, Doing, Lacking, Printed
from gui.packages import PackagesDialog, ProgressDialog
from gui.person import Person
from gui.questions import Questions
from gui.report import Trouble
from gui.theme import marks
from gui.theme.look import Look
from gui.worker import Worker
from lab.model import Lab
from lab.stop import Stop


class Provisioning(QObject):
    """One lab at a time. Nothing is changed before a person agreed.

    Signals: `going(object)` a sentence while the hosts are looked at, empty at its end; `told(object)` a
    `Trouble` where there is nothing to ask; `changed()` packages were installed or taken away, as far as it
    went; `crashed(object)` a defect.
    """

    going = Signal(object)
    told = Signal(object)
    changed = Signal()
    crashed = Signal(object)

    def __init__(self, look: Look, doors: Doors, questions: Questions, window: QWidget) -> None:
        super().__init__(window)
        self._look, self._doors, self._questions, self._window = look, doors, questions, window
        self._stop, self._remove = Stop(), False
        self._lab: Lab | None = None
        self._worker: Worker | None = None
        self._progress: ProgressDialog | None = None
        self._failed = 0

    @property
    def busy(self) -> bool:
        """True from `begin` until nothing is asked and nothing is done any more."""
        return self._lab is not None

    @property
    def changing(self) -> bool:
        """True while package managers are at work."""
        return self._progress is not None and self._progress.going

    def begin(self, lab: Lab, *, remove: bool = False) -> None:
        """Look what each host lacks, or what BranchLab installed there, and ask."""
        self._lab, self._remove, self._stop = lab, remove, Stop()
        self._doors.person = Person(self._look, self._questions, self._stop)
        self.going.emit("Looking at the packages …")
        worker = self._hired()
        worker.start(self._doors.packages(lab, self._stop), "packages")

    def cancel(self) -> None:
        """Leave the look; of package managers at work, no further one is begun."""
        self._stop.request()
        self._questions.withdraw()
        if self._worker is not None and self._progress is None:
            self._worker = None
            self._over()

    def closing(self) -> None:
        """The window was told to close, and waits."""
        self._stop.request()
        if self._progress is not None:
            self._progress.closing()

    def _hired(self) -> Worker:
        self._worker = worker = Worker(self)
        worker.happened.connect(self._happened)
        worker.crashed.connect(self._crashed)
        worker.ended.connect(self._ended)
        return worker

    def _happened(self, told: object) -> None:
        if self.sender() is not self._worker or self._lab is None:
            return
        progress = self._progress
        if isinstance(told, Doing):
            if progress is not None:
                progress.at(told.host)
                return
            names = [host.name for host in self._lab.hosts]
            at = names.index(told.host) + 1
            self.going.emit(f"Looking at the packages of {told.host} ({at} of {len(names)}) …")
        elif isinstance(told, Printed) and progress is not None:
            progress.line(told.host, told.text)
        elif isinstance(told, Came) and progress is not None:
            self._failed += bool(told.trouble)
            progress.came(told)
        elif isinstance(told, tuple):
            self._worker = None
            self.going.emit("")
            self._ask(told)

    def _ask(self, found: Sequence[Lacking]) -> None:
        shown = [one for one in found if one.trouble or (one.ours if self._remove else one.needs)]
        if not shown:
            self._over()
            title = (
                "BranchLab installed nothing on these hosts." if self._remove else "Every package is there."
            )
            self.told.emit(Trouble(title=title, grade="info"))
            return
        dialog = PackagesDialog(self._look, shown, self._window, remove=self._remove)
        dialog.accepted.connect(lambda: self._go(dialog.hosts))
        dialog.rejected.connect(self._over)
        dialog.open()

    def _go(self, hosts: tuple[str, ...]) -> None:
        if self._lab is None:
            return
        self._failed = 0
        self._progress = progress = ProgressDialog(self._look, hosts, self._window, remove=self._remove)
        progress.stopped.connect(self._stop.request)
        progress.open()
        worker = self._hired()
        things = self._doors.provision(self._lab, hosts, self._stop, worker.tell, remove=self._remove)
        worker.start(things, "packages")

    def _crashed(self, error: BaseException) -> None:
        if self.sender() is self._worker:
            self._failed += 1
            self.crashed.emit(error)

    def _ended(self, worker: QObject) -> None:
        mine = worker is self._worker
        worker.deleteLater()
        if not mine:
            return
        self._worker = None
        progress, self._progress = self._progress, None
        if progress is None:  # the look failed
            self._over()
            return
        text = "Not everything was done" if self._failed else "Stopped" if self._stop.requested else "Done"
        progress.over(f"{text}. The hosts are checked again.", marks.TROUBLE if self._failed else marks.OK)
        self._over()
        self.changed.emit()

    def _over(self) -> None:
        self._lab = None
        self.going.emit("")
