"""What the pages show: a lab, a run and its answers. Events mark what is old, a timer draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from gui import telling
from gui.pages import Pages
from gui.telling import LAB, RESULTS, RUN
from lab.analysis.summary import Summary
from lab.events import (
    Event,
    HostSeen,
    LineProved,
    Noted,
    RunFinished,
    RunStarted,
    TrialFinished,
    TrialStarted,
)
from lab.live import Live
from lab.model import Experiment, Lab

REDRAW_MS = 50
_SLOW_REFRESH = 4
"""Progress and roles are told every so many redraws: five times a second is enough for words."""
_SUMMARY_REFRESH = 100
_LAB_WORDS = (RunStarted, HostSeen, LineProved, Noted, TrialStarted, TrialFinished, RunFinished)


class Shown(QObject):
    """Signals: `outdated()` the answers that are seen are older than what the run has told."""

    outdated = Signal()

    def __init__(self, pages: Pages, running: Callable[[], bool], looking: Callable[[], bool]) -> None:
        super().__init__(pages)
        self._pages, self._running, self._looking = pages, running, looking
        self.live, self.past = Live(), False
        self.summary: Summary | None = None
        self.lab: Lab | None = None
        self._dirty, self._lab_dirty, self._ticks = True, True, 0
        pages.turned.connect(self._turned)
        self.timer = QTimer(self)
        self.timer.setInterval(REDRAW_MS)
        self.timer.timeout.connect(self.tick)
        self.timer.start()

    def show_lab(self, lab: Lab, experiments: Sequence[Experiment], trials: dict[str, int]) -> None:
        """Show this lab, its experiments, and how many trials each plans."""
        self.lab = lab
        self._pages.lab.show_lab(lab, experiments, trials)

    def show_live(self, live: Live, *, past: bool = False) -> None:
        """Show this run on every page, from its shape on; `past`: one that was read from a file."""
        self.live, self.past = live, past
        self._pages.lab.begin(live, past=past)
        self._pages.run.begin(live)
        self.mark(lab=True)

    def show_summary(self, summary: Summary) -> None:
        """Show these answers."""
        self.summary = summary
        self._pages.results.show_summary(summary, running=self._running() and summary.finished is None)
        self.mark()

    def apply(self, event: Event) -> None:
        """One more event of the run that goes."""
        self.live.apply(event)
        self.mark(lab=isinstance(event, _LAB_WORDS))
        if isinstance(event, RunStarted):
            self.show_live(self.live)

    def mark(self, *, lab: bool = False) -> None:
        """What is seen is old; `lab`: also what is known of hosts and line."""
        self._dirty = True
        self._lab_dirty = self._lab_dirty or lab

    def tick(self) -> None:
        """Draw what is seen, if it is old."""
        self._ticks += 1
        if self.live.running and (self.live.current is not None or self._pages.run.stopping):
            self._dirty = True
        if not self._dirty:
            return
        self._dirty = False
        if self._pages.seen == RUN:
            self._pages.run.redraw()
        elif self._pages.seen == LAB:
            self._pages.lab.redraw()
        if self._ticks % _SLOW_REFRESH == 0 or not self.live.running:
            self._slow()
        if self._pages.seen == RESULTS and self._running() and self._ticks % _SUMMARY_REFRESH == 0:
            self.outdated.emit()

    def tell_frame(self) -> None:
        """What the frame says of lab and run."""
        pages = self._pages
        pages.experiment.hold("A run is going." if self._running() or self._looking() else "")
        known = pages.lab.shown
        telling.top_bar(pages.top, self.live, known, past=self.past)
        trials = pages.experiment.trials
        telling.navigation(pages.navigation, self.live, known, self.summary, past=self.past, trials=trials)
        published = self.summary.source if pages.seen == RESULTS and self.summary is not None else ""
        telling.status_bar(pages.status, self.live, published)

    def _slow(self) -> None:
        if self._lab_dirty:
            self._lab_dirty = False
            if self._pages.seen == LAB:
                self._pages.lab.refresh()
            else:
                self._pages.lab.know()
        self.tell_frame()

    def _turned(self, page: str) -> None:
        self._dirty = True
        if page == RESULTS and self._running():
            self.outdated.emit()
