"""What is done with the lab that is open, beside a run: checked, provisioned, changed by hand, taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from gui.by_hand import ByHand
from gui.checking import Checking
from gui.doors import Doors
from gui.lab.checked import OWN, CheckedLab
from gui.lab.page import LabPage
from gui.provisioning import Provisioning
from gui.questions import Questions
from gui.report import Trouble
from gui.taking_back import TakingBack
from gui.theme.look import Look
from lab.model import Experiment, Lab, Line

if TYPE_CHECKING:
    from lab.rig.host_checks import Checked

BY_HAND = {
    "fill": ("The cache is being filled.", "Cancel that on the Lab page, or wait until it has ended."),
    "purge": ("The cache is being purged.", "Cancel that on the Lab page, or wait until it has ended."),
    "line": ("A line is held by hand.", "Take it back first: on the Lab page, with the line selected."),
}


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
        self._checked_for: tuple[Lab, str, str] | None = None
        """the lab, the experiment, and the host where it is one alone"""
        self._closing = False
        self.lab: Lab | None = None
        """The one that is open"""
        self.refused: Callable[[], bool] = bool
        """True, and told, while something else goes on with this lab"""
        self.agreed_first: Callable[[Callable[[], None]], None] = lambda go: go()
        """Calls what it is given, where the profile is a stranger's once a person has agreed to it"""
        self.taking_back = TakingBack(look, doors, questions, window)
        self.checking = Checking(look, doors, questions, window)
        self.provisioning = Provisioning(look, doors, questions, window)
        self.by_hand = ByHand(look, doors, questions, window)
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
        self.by_hand.going.connect(page.say_by_hand)
        self.by_hand.knows.connect(page.show_hand)
        self.by_hand.knows.connect(self.checked)
        self.by_hand.done.connect(self.told)
        self.by_hand.ended.connect(self.settled)
        for work in (self.taking_back, self.checking, self.provisioning, self.by_hand):
            work.crashed.connect(self.crashed)
        page.told.connect(self.told)
        page.taken_back.connect(self.take_back)
        page.looked.connect(self.check)
        page.looked_at.connect(self.check_host)
        page.left.connect(self.checking.cancel)
        page.left.connect(self.provisioning.cancel)
        page.filled.connect(self.fill)
        page.purged.connect(self.purge)
        page.held.connect(self.hold)
        page.hand_left.connect(self.by_hand.cancel)
        page.provided.connect(partial(self.provision, remove=False))
        page.unprovided.connect(partial(self.provision, remove=True))

    def under_way(self) -> Trouble | None:
        """Why nothing else may begin with this lab; a check holds up nothing."""
        if self.taking_back.busy:
            title = "Everything is being taken back."
        elif self.provisioning.busy:
            title = "The packages of the hosts are being looked at, or installed."
        elif self.by_hand.busy:
            title, text = BY_HAND[self.by_hand.known.deed]
            return Trouble(title=title, text=text, grade="warn")
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
            self._checked_for = (self.lab, experiment.name if experiment else "", "")
            self.checking.begin(self.lab, experiment)

    def check_host(self, name: str) -> None:
        """What a run would need on this host alone."""
        host = (
            next((one for one in self.lab.hosts if one.name == name), None) if self.lab is not None else None
        )
        if self.lab is not None and host is not None and not self.checking.busy and not self.refused():
            self.begun.emit()
            self._checked_for = (self.lab, "", name)
            self.checking.begin(replace(self.lab, hosts=(host,), line=self.lab.place), None)

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

    def fill(self, experiment: Experiment) -> None:
        """The cache, for this experiment's operation."""
        self._by_hand(lambda lab: self.by_hand.fill(lab, experiment))

    def purge(self, experiment: Experiment) -> None:
        """A part of what the cache has of this experiment's repository, once a person said how much."""
        self._by_hand(lambda lab: self.by_hand.purge(lab, experiment))

    def hold(self, line: Line) -> None:
        """This line, until it is taken back."""
        self._by_hand(lambda lab: self.by_hand.hold(lab, line))

    def _by_hand(self, begin: Callable[[Lab], None]) -> None:
        """Begin, once a profile from a stranger was looked at."""
        if self.lab is not None and not self.refused():
            self.agreed_first(partial(self._begin_by_hand, begin))

    def _begin_by_hand(self, begin: Callable[[Lab], None]) -> None:
        if self.lab is not None and not self.refused():
            self._clear_way()
            begin(self.lab)

    def _clear_way(self) -> None:
        self.checking.cancel()
        self.begun.emit()
        self.by_hand.known = self._page.hand  # without what is of another lab, or of before a run

    def held(self) -> bool:
        """True if the window has to wait before it closes: half-installed packages, or a line that is still held,
        would be worse than a wait. Who closes it once more does not wait for a host that does not answer.
        """
        if self.by_hand.busy:
            (self.by_hand.cut if self._closing else self.by_hand.cancel)()
            self._closing = True
            return True
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
        self.by_hand.cancel()

    def _show_check(self, found: tuple[Checked, ...]) -> None:
        if self._checked_for is None:
            return
        lab, experiment, only = self._checked_for
        own, at = self._doors.own(lab), datetime.now().astimezone()
        made, before = (
            CheckedLab(items=found, at=at, experiment=experiment, own=own, only=only),
            self._page.checked,
        )
        self._page.show_check(before.with_host(only, made) if only and before is not None else made)
        self.checked.emit()

    def _provisioned(self) -> None:
        if not self._closing:
            self.check(self._page.experiment)
        self.settled.emit()
