"""The run of this window, from the press of Run to its end: asked for, agreed to, begun, stopped, done again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMainWindow

from gui.deeds import Deeds
from gui.document import Document
from gui.doors import Doors
from gui.pages import Pages
from gui.preparing import Preparing, Wanted
from gui.questions import Questions
from gui.report import Trouble
from gui.runs import Runs
from gui.shown import Shown
from gui.stranger import Strangers
from gui.telling import LAB, RUN, START
from gui.theme.look import Look
from lab.events import Event, HostSeen, Noted, Outcome, RunStarted
from lab.model import Experiment

_LOOKING = Trouble(
    title="The hosts are being looked at.",
    text="Cancel that first, or wait until the run has ended.",
    grade="warn",
)
_RUNNING = Trouble(title="A run is going.", text="Open another one once it has ended.", grade="warn")
_NOT_STARTED = Trouble(
    title="The run was not started.",
    text="Nothing was changed on any host, and there is no run file.",
    grade="info",
)
_GOES_ON = "Finished trials are kept. The run goes on by itself once the hosts answer."
_STOPPING = Trouble(
    title="The run is still stopping.",
    text="What was changed on the hosts is being taken back.",
    grade="warn",
)


class Story(QObject):
    """One run at a time, on the lab that is shown.

    Signals: `told(object)` a `Trouble`; `crashed(object)` why a run did not begin; `ended(object)` its outcome,
    `lab.events.Outcome` or None.
    """

    told = Signal(object)
    crashed = Signal(object)
    ended = Signal(object)

    def __init__(
        self,
        look: Look,
        doors: Doors,
        pages: Pages,
        shown: Shown,
        document: Document,
        runs: Runs,
        questions: Questions,
        deeds: Deeds,
        strangers: Strangers,
        window: QMainWindow,
    ) -> None:
        super().__init__(window)
        self._doors, self._pages, self._shown, self._document = doors, pages, shown, document
        self._runs, self._questions, self._deeds, self._strangers = runs, questions, deeds, strangers
        self._window = window
        self._before = LAB
        self.path: Path | None = None
        """The file of the run that is shown; None while it goes"""
        self._sought = False
        self._last: Event | None = None
        self.trouble: BaseException | None = None
        """Why the newest run that was asked for did not begin"""
        self.preparing = Preparing(look, doors, questions, window)
        self.preparing.ready.connect(self._begin)
        self.preparing.left.connect(self._left)
        self.preparing.crashed.connect(self._not_begun)
        runs.happened.connect(self.happened)
        runs.ended.connect(self.run_ended)
        page = pages.run
        page.stopped.connect(self.stop)
        page.stopped_after.connect(runs.stop_after)
        page.cancelled.connect(self.preparing.cancel)
        page.cut.connect(self._cut)
        page.paused.connect(runs.pause)
        page.resumed.connect(runs.resume)
        page.repeated.connect(self.repeat)

    def refused(self) -> bool:
        """True, and told, while something goes on with the lab that is open: it stays the one that is shown."""
        why = _LOOKING if self.preparing.busy else _RUNNING if self._runs.busy else self._deeds.under_way()
        if why is not None:
            self.told.emit(why)
        return why is not None

    def run(
        self, experiment: Experiment, record: Path | None = None, agreed: frozenset[str] | None = None
    ) -> None:
        """Run an experiment on the lab that is open, once what others would feel is agreed to."""
        if self._shown.lab is None or self.refused() or self._wrong():
            return
        wanted = (experiment, record, agreed)
        if agreed is None:
            self._strangers.before(partial(self._prepare, *wanted))
        else:
            self._prepare(*wanted)

    def repeat(self) -> None:
        """Do again what failed in the run that is shown, where its lab is open."""
        experiment, live, lab = self._shown.live.experiment, self._shown.live, self._shown.lab
        if self.path is None or experiment is None or self.refused():
            return
        asked = dict(self._pages.lab.offered()).get(experiment.name)
        if lab is None or lab.name != live.lab or asked is None:
            title = f"Open the profile of the lab “{live.lab}” with “{experiment.name}” first."
            text = "Trials are repeated on the same lab and with the same asking only."
            self.told.emit(Trouble(title=title, text=text, grade="warn"))
        elif not self._wrong():
            wanted = Wanted(lab=lab, experiment=asked, repeat=self.path)
            self._strangers.before(partial(self._look, wanted, RUN))

    def stop(self) -> None:
        """Ask it to stop now, and answer what it asks."""
        self._runs.stop()
        self._questions.withdraw()

    def happened(self, event: Event) -> None:
        """One event of the run that goes."""
        self._shown.apply(event)
        if isinstance(event, RunStarted):
            self._sought = False
        elif isinstance(event, Noted):
            self._tell(event)
        self._last = event

    def _tell(self, note: Noted) -> None:
        """What went wrong amid the run, as a banner; and that it is well again, said as soon as the host is seen."""
        if note.grade == "trouble":
            self._sought = note.trial is None
            self.told.emit(Trouble(title=note.text, text=_GOES_ON if self._sought else ""))
        elif self._sought and isinstance(self._last, HostSeen):
            self._sought = False
            self.told.emit(Trouble(title=note.text, grade="info"))

    def run_ended(self) -> None:
        """The run's thread has no more."""
        live, self.path = self._shown.live, self._doors.recording
        self._shown.mark(lab=True)
        self._pages.run.redraw()
        if live.outcome is Outcome.FAILED:
            self.told.emit(Trouble(title=live.reason or "The run failed.", text=live.advice))
        self._pages.experiment.refresh()  # there is a run more to learn times from
        self.ended.emit(live.outcome)

    def _prepare(self, experiment: Experiment, record: Path | None, agreed: frozenset[str] | None) -> None:
        if self._shown.lab is not None:
            wanted = Wanted(lab=self._shown.lab, experiment=experiment, record=record, agreed=agreed)
            self._look(wanted, LAB if self._pages.seen == START else self._pages.seen)

    def _look(self, wanted: Wanted, before: str) -> None:
        """Have the hosts looked at; if nothing comes of it, the page `before` is shown again."""
        if self.refused():
            return
        self._deeds.checking.cancel()
        self.trouble, self._before = None, before
        self._pages.banner.hide()
        self._pages.show(RUN)
        self._pages.run.look(wanted.experiment.name)
        self.preparing.begin(wanted)

    def _wrong(self) -> bool:
        """True, and told, while the profile that is open is not right."""
        problems = self._document.problems
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            title = "The profile is not right yet, so nothing was started."
            self.told.emit(Trouble(title=title, text=problems[0].told("the profile") + more, grade="warn"))
        return bool(problems)

    def _begin(self, wanted: Wanted) -> None:
        self.path = None
        self._pages.run.looked()
        self._runs.begin(wanted)

    def _left(self) -> None:
        self._pages.run.looked()
        if self._window.isVisible():
            self._pages.show(self._before)
            self.told.emit(_NOT_STARTED)

    def _not_begun(self, error: BaseException) -> None:
        self.trouble = error
        self._pages.run.looked()
        self._pages.show(self._before)
        self.crashed.emit(error)

    def _cut(self) -> None:
        if not self._doors.cut():
            self.told.emit(_STOPPING)
