"""What is done with the lab that is open, beside a run: checked, provisioned, taken back; one at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from gui.checking import Checking
from gui.doors import Doors
from gui.lab.checked import OWN, CheckedLab
from gui.lab.page import LabPage
from gui.provisioning import Provisioning
from gui.questions import Questions
from gui.report import Trouble
from gui.taking_back import TakingBack
from gui.theme.look import Look
from lab.model import Experiment, Lab

if TYPE_CHECKING:
    from lab.rig.host_checks import Checked


class Deeds(QObject):
    """Between the Lab page and the threads that do it.

    Signals: `begun()` one begins, and the Lab page is to be seen; `told(object)` a `Trouble`; `crashed(object)` a
    defect; `checked()` the page knows more of the hosts; `settled()` nothing holds up the window's closing any more.
    """

    begun = Signal()
    told = Signal(object)
    crashed = Signal(object)
    checked = Signal()
    settled = Signal()

    def __init__(
        self, look: Look, doors: Doors, questions: Questions, page: LabPage, window: QWidget
    ) -> None:
        super().__init__(window)
        self._doors, self._page = doors, page
        self._checked_for: tuple[Lab, str] | None = None
        self._closing = False
        self.lab: Lab | None = None
        """The one that is open"""
        self.refused: Callable[[], bool] = bool
        """True, and told, while something else goes on with this lab"""
        self.taking_back = TakingBack(look, doors, questions, window)
        self.checking = Checking(look, doors, questions, window)
        self.provisioning = Provisioning(look, doors, questions, window)
        self._wire()

    def _wire(self) -> None:
        page = self._page
        self.taking_back.going.connect(page.take_back)
        self.taking_back.done.connect(self.told)
        self.checking.going.connect(page.say_checking)
        self.checking.looking.connect(page.look_at)
        self.checking.done.connect(self._show_check)
        self.provisioning.going.connect(page.say_providing)
        self.provisioning.told.connect(self.told)
        self.provisioning.changed.connect(self._provisioned)
        for work in (self.taking_back, self.checking, self.provisioning):
            work.crashed.connect(self.crashed)
        page.taken_back.connect(self.take_back)
        page.looked.connect(self.check)
        page.left.connect(self.checking.cancel)
        page.left.connect(self.provisioning.cancel)
        page.provided.connect(partial(self.provision, remove=False))
        page.unprovided.connect(partial(self.provision, remove=True))

    def under_way(self) -> Trouble | None:
        """Why nothing else may begin with this lab; a check holds up nothing."""
        if self.taking_back.busy:
            title = "Everything is being taken back."
        elif self.provisioning.busy:
            title = "The packages of the hosts are being looked at, or installed."
        else:
            return None
        return Trouble(title=title, text="Wait until that has ended.", grade="warn")

    def take_back(self) -> None:
        """What any run left on the hosts."""
        if self.lab is not None and not self.refused():
            self.checking.cancel()
            self.begun.emit()
            self.taking_back.begin(self.lab)

    def check(self, experiment: Experiment | None) -> None:
        """What a run of this experiment would need on every host."""
        if self.lab is not None and not self.checking.busy and not self.refused():
            self.begun.emit()
            self._checked_for = (self.lab, experiment.name if experiment else "")
            self.checking.begin(self.lab, experiment)

    def provision(self, *, remove: bool) -> None:
        """Install what is missing, or take away what was installed, once a person agreed."""
        if self.lab is None or self.refused():
            return
        self.checking.cancel()
        self.begun.emit()
        if self._doors.own(self.lab):
            self.told.emit(Trouble(title="Nothing is installed in this lab.", text=OWN, grade="info"))
        else:
            self.provisioning.begin(self.lab, remove=remove)

    def held(self) -> bool:
        """True if the window has to wait before it closes: half-installed packages would be worse than a wait."""
        if not self.provisioning.changing:
            return False
        self._closing = True
        self.provisioning.closing()
        return True

    def leave(self) -> None:
        """Nobody is here any more: nothing more is asked."""
        self.taking_back.leave()
        self.checking.cancel()
        self.provisioning.cancel()

    def _show_check(self, found: tuple[Checked, ...]) -> None:
        if self._checked_for is None:
            return
        lab, experiment = self._checked_for
        own, at = self._doors.own(lab), datetime.now().astimezone()
        self._page.show_check(CheckedLab(items=found, at=at, experiment=experiment, own=own))
        self.checked.emit()

    def _provisioned(self) -> None:
        if not self._closing:
            self.check(self._page.experiment)
        self.settled.emit()
