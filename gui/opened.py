"""What was opened is shown on every page, and named: a profile and its edits, a run from a file, published figures."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMainWindow

from gui.deeds import Deeds
from gui.document import Document
from gui.doors import planned
from gui.found import OpenedProfile, OpenedRun
from gui.opening import Then
from gui.pages import Pages
from gui.report import Trouble
from gui.runs import Runs
from gui.shown import Shown
from gui.story import Story
from gui.telling import LAB, RESULTS
from lab.analysis.summary import Summary
from lab.events import Event, RunStarted
from lab.live import Live
from lab.model import Experiment, Lab


class Opened(QObject):
    """Signals: `told(object)` a `Trouble`."""

    told = Signal(object)

    def __init__(
        self,
        pages: Pages,
        shown: Shown,
        document: Document,
        story: Story,
        runs: Runs,
        deeds: Deeds,
        window: QMainWindow,
    ) -> None:
        super().__init__(window)
        self._pages, self._shown, self._document = pages, shown, document
        self._story, self._runs, self._deeds, self._window = story, runs, deeds, window

    def profile(self, opened: OpenedProfile, then: Then) -> None:
        """A profile, and what follows."""
        self._pages.start.busy("")
        if self._story.refused():
            return
        self._deeds.checking.cancel()
        self._pages.banner.hide()
        self._shown.show_live(Live())
        self._document.take(opened.draft)
        self.show_lab(opened.profile.lab, opened.profile.experiments, opened.trials)
        self.tell()
        for warning in opened.profile.warnings[:1]:
            self.told.emit(Trouble(title=warning, grade="warn"))
        if then.run:
            self._story.run(opened.profile.experiment(then.experiment), then.record, then.agreed)
        else:
            self._pages.lab.choose(then.experiment or "")
            self._pages.experiment.choose(then.experiment or "")
            self._pages.show(LAB)

    def show_lab(self, lab: Lab, experiments: Sequence[Experiment], trials: dict[str, int]) -> None:
        """Show this lab, its experiments, and how many trials each plans."""
        self._deeds.lab = lab
        self._shown.show_lab(lab, experiments, trials)

    def edited(self) -> None:
        """The profile says something else; a run that goes is shown with the lab that it began with."""
        self.tell()
        profile = self._document.profile
        if profile is not None and not self._runs.busy and not self._story.preparing.busy:
            self.show_lab(profile.lab, profile.experiments, planned(profile))

    def tell(self) -> None:
        """Name the profile, and whether it is saved, in the top bar and the window's title."""
        profile, path = self._document.profile, self._document.path
        if profile is None:
            return
        name = profile.lab.name
        state = "not saved" if self._document.unsaved or path is None else path.name
        self._pages.top.show_open(name, state, profile=True)
        self._window.setWindowTitle(f"{name}{'*' * self._document.unsaved} – BranchLab")

    def run(self, opened: OpenedRun) -> None:
        """A run from a file."""
        if self._story.refused():
            return
        name = opened.summary.started.experiment.name
        self._shown.show_live(opened.live, past=True)
        self._runs.kept = []
        self.answers(opened.summary)
        self._story.path = opened.path
        self._pages.top.show_open(opened.live.lab or name, opened.path.name)
        self._window.setWindowTitle(f"{name} – BranchLab")

    def answers(self, summary: Summary) -> None:
        """Answers that nobody here ran for: of a file, or published."""
        self._pages.banner.hide()
        self._story.path = None
        self._shown.show_summary(summary)
        self._pages.show(RESULTS)

    def name(self, event: Event) -> None:
        """The run that begins gives the window its title."""
        if isinstance(event, RunStarted):
            self._window.setWindowTitle(f"{event.experiment.name} – BranchLab")
