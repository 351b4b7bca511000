"""The window: its frame and pages wired together. No decisions of the domain."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QApplication, QMainWindow, QStackedWidget, QWidget

from gui import telling, words
from gui.actions import Action, Actions
from gui.asking import CloseDialog, ask_file, ask_target
from gui.doors import ANSWERING, Doors, OpenedProfile, OpenedRun
from gui.lab.page import LabPage
from gui.report import Banner, DefectDialog, Reporter, Trouble
from gui.results.page import ResultsPage
from gui.run.page import RunPage
from gui.start.page import StartPage
from gui.telling import LAB, RESULTS, RUN
from gui.theme import sheet
from gui.theme.look import Look
from gui.widgets.basic import column, row
from gui.widgets.frame import (
    LEAST_PAGE,
    SMALL_WIDTH,
    FocusRing,
    Head,
    Navigation,
    Place,
    StatusBar,
    TopBar,
    Whole,
)
from gui.worker import Worker
from lab.analysis.summary import Summary
from lab.events import (
    Event,
    HostSeen,
    LineProved,
    Outcome,
    RunFinished,
    RunStarted,
    TrialFinished,
    TrialStarted,
)
from lab.live import Live
from lab.model import Experiment, Lab
from lab.stop import Stop

T = TypeVar("T")
log = logging.getLogger(__name__)

REDRAW_MS = 50
START = "start"
PLACES = (
    Place(LAB, "Lab", "tree-structure"),
    Place(RUN, "Run", "play-circle"),
    Place(RESULTS, "Results", "chart-line-up"),
)
EXPORTS = (
    "Slides (*.pptx);;Workbook (*.xlsx);;Report (*.html);;Tables (*.md);;Trials (*.csv);;"
    "Trials as JSON lines (*.jsonl)"
)
_SLOW_REFRESH = 4
"""Progress and roles are told every so many redraws: five times a second is enough for words."""
_SUMMARY_REFRESH = 100
_LAB_WORDS = (RunStarted, HostSeen, LineProved, TrialStarted, TrialFinished, RunFinished)


class MainWindow(QMainWindow):
    """Shows a lab, a run and what came of it.

    Signals: `finished(object)` the outcome of a run that this window ran, `lab.events.Outcome` or None;
    `closed()` the window is closed, also one that was hidden.
    """

    finished = Signal(object)
    closed = Signal()

    def __init__(self, look: Look, doors: Doors, reporter: Reporter) -> None:
        super().__init__()
        self._look, self._doors, self._reporter = look, doors, reporter
        self._lab: Lab | None = None
        self.live = Live()
        self.summary: Summary | None = None
        self.run_path: Path | None = None
        self._kept: list[Event] = []
        self._stop: Stop | None = None
        self._dirty, self._lab_dirty, self._ticks = True, True, 0
        self._closing, self._wanted = False, ""
        self._pending: tuple[str | None, Path | None] | None = None
        self._jobs: set[Worker] = set()
        self._summing, self._sum_again, self._past = False, False, False
        self._outcome: Outcome | None = None
        self.setWindowTitle("BranchLab")
        self.setMinimumSize(960, 600)
        self.resize(1440, 900)
        self.setAcceptDrops(True)
        self._build()
        self._wire()
        self._timer = QTimer(self)
        self._timer.setInterval(REDRAW_MS)
        self._timer.timeout.connect(self._tick)
        self._timer.start()
        self.show_page(START)

    # what the composition root asks for ------------------------------------------------------------------

    def settle(self) -> None:
        """What can wait until the window was painted: plots, and the list of runs."""
        self.run_page.traffic.ready()
        self._recent()

    def open_profile(self, path: Path, *, experiment: str | None = None, run: bool = False,
                     record: Path | None = None) -> None:  # fmt: skip
        """Open a profile; with `run`, run its experiment at once."""
        if self._refused_while_running():
            return
        self._pending = (experiment, record) if run else None
        self._wanted = experiment or ""
        self._job(self._doors.profile(path), self._profile_opened)

    def open_run(self, path: Path) -> None:
        """Open a run file; it opens in *Results*."""
        self._job(self._doors.opened(path), self._run_opened)

    def start_run(self, experiment: Experiment, record: Path | None = None) -> None:
        """Run an experiment on the lab that is open."""
        if self._lab is None or self._refused_while_running():
            return
        self.run_path = None
        self._stop, self._outcome = Stop(), None
        self._kept = []
        self._banner.hide()
        self.show_page(RUN)
        self.run_worker.start(self._doors.run(self._lab, experiment, self._stop, record))

    def interrupt(self) -> None:
        """Stop softly and close, as Ctrl C in the terminal asks."""
        self._closing = True
        if self.run_worker.busy:
            self._ask_stop()
        else:
            self.close()

    @property
    def running(self) -> bool:
        """True while a run of this window goes."""
        return self.run_worker.busy

    def show_page(self, key: str) -> None:
        """Show a page."""
        self._page = key
        at_start = key == START
        self._navigation.setVisible(not at_start)
        self._status.setVisible(not at_start)
        self._whole.least(*((0, 0) if at_start else LEAST_PAGE))
        self._stack.setCurrentWidget(self._pages[key])
        self._heads[key].hold(self._banner)
        self._navigation.show_page(key)
        self._dirty = True
        if key == RESULTS and self.running:
            self._sum_up()
        if key == START:
            self._recent()

    # building ---------------------------------------------------------------------------------------------

    def _build(self) -> None:
        look = self._look
        self._top = TopBar(look)
        self._navigation = Navigation(look, PLACES)
        self._status = StatusBar(look)
        self._banner = Banner(look)
        self.start_page, self.lab_page = StartPage(look), LabPage(look)
        self.run_page, self.results_page = RunPage(look), ResultsPage(look)
        self._pages: dict[str, QWidget] = {
            START: self.start_page,
            LAB: self.lab_page,
            RUN: self.run_page,
            RESULTS: self.results_page,
        }
        self._heads: dict[str, Head | StartPage] = {
            START: self.start_page,
            LAB: self.lab_page.head,
            RUN: self.run_page.head,
            RESULTS: self.results_page.head,
        }
        self._stack = QStackedWidget()
        for page in self._pages.values():
            self._stack.addWidget(page)
        self._page = START
        right = column(None, spacing=0)
        self._whole = Whole(self._stack)
        right.addWidget(self._whole, 1)
        middle = row(None, self._navigation, spacing=0)
        middle.addLayout(right, 1)
        central = QWidget()
        central.setObjectName("canvas")
        layout = column(central, self._top, spacing=0)
        layout.addLayout(middle, 1)
        layout.addWidget(self._status)
        self.setCentralWidget(central)
        self._ring = FocusRing(look, self)
        self._actions = Actions(look, self)

    def _wire(self) -> None:
        self.run_worker = Worker(self)
        self.run_worker.happened.connect(self._happened)
        self.run_worker.crashed.connect(self._reporter.take)
        self.run_worker.ended.connect(self._run_ended)
        self._reporter.told.connect(self._tell)
        self._reporter.broken.connect(self._broken)
        self._navigation.chosen.connect(self.show_page)
        self._top.home.connect(self._home)
        self._top.themed.connect(self._other_theme)
        self._top.sought.connect(self._offer_actions)
        self.start_page.made.connect(self._make_hosts)
        self.start_page.profile.connect(self._ask_profile)
        self.start_page.run.connect(self._ask_run)
        self.start_page.recent.connect(self.open_run)
        self.lab_page.run.connect(self.start_run)
        self.lab_page.wanted.connect(self._home)
        self.run_page.wanted.connect(partial(self.show_page, LAB))
        self.run_page.stopped.connect(self._ask_stop)
        self.run_page.cut.connect(self._cut)
        self.run_page.paused.connect(self._pause)
        self.run_page.resumed.connect(self._resume)
        self.run_page.results.connect(partial(self.show_page, RESULTS))
        self.results_page.opened.connect(self._ask_run)
        self.results_page.exported.connect(self._ask_export)
        self._look.changed.connect(self._dress)
        for number, place in enumerate(PLACES, 1):
            self._key(f"Alt+{number}", partial(self.show_page, place.key))
        self._key("F6", self._next_part)
        self._key("Ctrl+R", self._run_key)
        self._key("Ctrl+O", self._ask_any)
        self._key("Ctrl+K", self._offer_actions)

    def _key(self, keys: str, slot: Callable[[], None]) -> None:
        QShortcut(QKeySequence(keys), self).activated.connect(slot)

    # jobs -------------------------------------------------------------------------------------------------

    def _job(self, things: Iterable[T], then: Callable[[T], None]) -> None:
        """Have one thing done in a thread, by the same bridge as a run."""
        worker = Worker(self)
        self._jobs.add(worker)
        worker.happened.connect(then)
        worker.crashed.connect(self._job_failed)
        worker.ended.connect(self._job_ended)
        worker.start(things, "job")

    def _job_failed(self, error: BaseException) -> None:
        self.start_page.busy("")
        self._pending = None
        self._summing = False
        self._reporter.take(error)

    def _job_ended(self, worker: QObject) -> None:
        self._jobs.discard(worker)
        worker.deleteLater()
        self._close_if_done()

    def _recent(self) -> None:
        self._job(self._doors.recent(), self.start_page.show_runs)

    def _refused_while_running(self) -> bool:
        """True, and told, while a run goes: its lab stays the one that is shown."""
        if self.running:
            text = "Open another one once it has ended."
            self._tell(Trouble(title="A run is going.", text=text, grade="warn"))
        return self.running

    def _make_hosts(self) -> None:
        if self._refused_while_running():
            return
        self.start_page.busy("Making three hosts …")
        self._job(self._doors.hosts(), self._profile_opened)

    def _profile_opened(self, opened: OpenedProfile) -> None:
        self.start_page.busy("")
        if self._refused_while_running():
            self._pending = None
            return
        self._banner.hide()
        self.show_live(Live())
        self.show_lab(opened.profile.lab, opened.profile.experiments, opened.trials)
        self._top.show_open(opened.profile.lab.name, opened.profile.path.name)
        self.setWindowTitle(f"{opened.profile.lab.name} – BranchLab")
        for warning in opened.profile.warnings[:1]:
            self._tell(Trouble(title=warning, grade="warn"))
        if self._pending is not None:
            (name, record), self._pending = self._pending, None
            self.start_run(opened.profile.experiment(name), record)
        else:
            self.lab_page.choose(self._wanted)
            self.show_page(LAB)

    def _run_opened(self, opened: OpenedRun) -> None:
        if self._refused_while_running():
            return
        self._banner.hide()
        self.run_path = opened.path
        self.show_live(opened.live, past=True)
        self._kept = []
        self._summed_up(opened.summary)
        self._top.show_open(opened.live.lab or opened.summary.started.experiment.name, opened.path.name)
        self.setWindowTitle(f"{opened.summary.started.experiment.name} – BranchLab")
        self.show_page(RESULTS)

    # a run --------------------------------------------------------------------------------------------------

    def _happened(self, event: Event) -> None:
        self.live.apply(event)
        self._dirty = True
        if isinstance(event, ANSWERING):
            self._kept.append(event)
        if isinstance(event, _LAB_WORDS):
            self._lab_dirty = True
        if isinstance(event, RunStarted):
            self.show_live(self.live)
            self.setWindowTitle(f"{event.experiment.name} – BranchLab")

    def show_lab(self, lab: Lab, experiments: Sequence[Experiment], trials: dict[str, int]) -> None:
        """Show this lab, its experiments, and how many trials each plans."""
        self._lab = lab
        self.lab_page.show_lab(lab, experiments, trials)

    def show_live(self, live: Live, *, past: bool = False) -> None:
        """Show this run on every page, from its shape on; `past`: one that was read from a file."""
        self.live, self._past = live, past
        self.lab_page.begin(live, past=past)
        self.run_page.begin(live)
        self._dirty = self._lab_dirty = True

    def _run_ended(self, worker: QObject) -> None:
        self._outcome, self.run_path = self.live.outcome, self._doors.recording
        self._stop = None
        self._dirty = self._lab_dirty = True
        self.run_page.redraw()
        if self.live.outcome is Outcome.FAILED:
            self._tell(Trouble(title=self.live.reason or "The run failed.", text=self.live.advice))
        if self._kept:
            self._sum_up()
        self.finished.emit(self._outcome)
        self._close_if_done()

    def _sum_up(self) -> None:
        self._sum_again = self._summing
        if not self._summing and self._kept:
            self._summing = True
            self._job(self._doors.summary(list(self._kept)), self._summed_up)

    def _summed_up(self, summary: Summary) -> None:
        self._summing = False
        self.summary = summary
        self.results_page.show_summary(summary, running=self.running and summary.finished is None)
        self._dirty = True
        if self._sum_again:  # asked meanwhile; at the end of a run there is no next time
            self._sum_up()

    def _close_if_done(self) -> None:
        """Close, where that was asked for during a run: once it has ended and its answers are known."""
        if self._closing and not self.running and not self._summing:
            self.close()

    def _ask_stop(self) -> None:
        if self._stop is not None:
            self._stop.request()

    def _pause(self) -> None:
        if self._stop is not None:
            self._stop.pause()

    def _resume(self) -> None:
        if self._stop is not None:
            self._stop.resume()

    def _cut(self) -> None:
        if not self._doors.cut():
            text = "What was changed on the hosts is being taken back."
            self._tell(Trouble(title="The run is still stopping.", text=text, grade="warn"))

    # drawing ------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._ticks += 1
        if self.live.running and (self.live.current is not None or self.run_page.stopping):
            self._dirty = True
        if not self._dirty:
            return
        self._dirty = False
        if self._page == RUN:
            self.run_page.redraw()
        elif self._page == LAB:
            self.lab_page.redraw()
        if self._ticks % _SLOW_REFRESH == 0 or not self.live.running:
            self._slow()
        if self._page == RESULTS and self.running and self._ticks % _SUMMARY_REFRESH == 0:
            self._sum_up()

    def _slow(self) -> None:
        if self._lab_dirty:
            self._lab_dirty = False
            if self._page == LAB:
                self.lab_page.refresh()
            else:
                self.lab_page.know()
        self._tell_frame()

    def _tell_frame(self) -> None:
        shown = self.lab_page.shown
        telling.top_bar(self._top, self.live, shown, past=self._past)
        telling.navigation(self._navigation, self.live, shown, self.summary, past=self._past)
        telling.status_bar(self._status, self.live)

    # asking -------------------------------------------------------------------------------------------------

    def _tell(self, told: Trouble) -> None:
        self._banner.tell(told)

    def _broken(self, text: str) -> None:
        # One at a time: a fault in what paints comes again with every frame.
        if not any(dialog.isVisible() for dialog in self.findChildren(DefectDialog)):
            DefectDialog(self._look, text, self).open()

    def _home(self) -> None:
        self.show_page(START)

    def _ask_profile(self) -> None:
        ask_file(self, "Open a lab", "Profiles (*.toml)", self.open_profile)

    def _ask_run(self) -> None:
        ask_file(self, "Open a run", "Runs (*.branchlab)", self.open_run)

    def _ask_any(self) -> None:
        ask_file(self, "Open", "Runs and profiles (*.branchlab *.toml)", self._open_any)

    def _open_any(self, path: Path) -> None:
        if path.suffix == ".toml":
            self.open_profile(path)
        else:
            self.open_run(path)

    def _ask_export(self) -> None:
        ask_target(self, "Export the run", EXPORTS, self._export)

    def _export(self, target: Path) -> None:
        if self.run_path is not None:
            self._job(self._doors.export(self.run_path, target), self._exported)

    def _exported(self, path: Path) -> None:
        self._tell(Trouble(title=f"Written: {path}", grade="info"))

    def _other_theme(self) -> None:
        self._look.use("light" if self._look.palette.dark else "dark")

    def _dress(self) -> None:
        application = QApplication.instance()
        if isinstance(application, QApplication):
            sheet.dress(application, self._look)
        self._top.show_theme()
        for widget in self.findChildren(QWidget):
            widget.update()
        self._dirty = True

    def _run_key(self) -> None:
        if not self.running:
            self.show_page(LAB)
            self.lab_page.start.click()

    def _offer_actions(self) -> None:
        self._actions.offer(self._doable())

    def _doable(self) -> list[Action]:
        """What can be done now, by group."""
        page, running = self.show_page, self.running
        made = [
            Action("Pages", place.name, place.icon, partial(page, place.key), f"Alt {number}")
            for number, place in enumerate(PLACES, 1)
        ]
        made.append(Action("Pages", "Start", "buildings", self._home))
        if running:
            run = self.run_page
            made += [
                Action(
                    "Run", run.pause.word, "play" if run.pause.word == "Go on" else "pause", run.pause.click
                ),
                Action("Run", run.stop.word, "stop", run.stop.click),
            ]
        else:
            made += [
                Action("Lab", f"Run {name}", "play", partial(self.start_run, experiment))
                for name, experiment in self.lab_page.offered()
            ]
            made += [
                Action("Lab", "Make hosts on this machine", "tree-structure", self._make_hosts),
                Action("Lab", "Open a lab …", "folder-open", self._ask_profile),
                Action("Runs", "Open a run …", "folder-open", self._ask_run),
            ]
            made += [
                Action(
                    "Runs",
                    f"Open {head.experiment}, {words.when(head.started)}",
                    "chart-line-up",
                    partial(self.open_run, head.file),
                )
                for head in self.start_page.heads()
            ]
        if self.summary is not None:
            results = self.results_page
            made += [
                Action("Results", name, icon, self._in_results(do)) for name, icon, do in results.doable()
            ]
            if results.export.isEnabled():
                made.append(Action("Results", "Export the run …", "export", self._ask_export))
        dark = self._look.palette.dark
        made.append(
            Action(
                "Window",
                "Light colours" if dark else "Dark colours",
                "sun" if dark else "moon",
                self._other_theme,
            )
        )
        return made

    def _in_results(self, do: Callable[[], None]) -> Callable[[], None]:
        def shown() -> None:
            self.show_page(RESULTS)
            do()

        return shown

    def _next_part(self) -> None:
        """F6: head, navigation, page, inspector."""
        page = self._pages[self._page]
        parts: list[QWidget] = [self._top, self._navigation, page]
        if self._page == LAB:
            parts.append(self.lab_page.inspector)
        parts = [part for part in parts if part.isVisible()]
        focus = QApplication.focusWidget()
        inside = [part for part in parts if focus is not None and (part is focus or part.isAncestorOf(focus))]
        at = parts.index(inside[-1]) if inside else -1
        target = parts[(at + 1) % len(parts)]
        first = _first_in(target)
        if first is not None:
            first.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self.run_worker.busy:
            self._timer.stop()
            event.accept()
            self.closed.emit()
            return
        event.ignore()
        if self._closing:
            return
        dialog = CloseDialog(self._look, self)
        dialog.stopped.connect(self.interrupt)
        dialog.hidden.connect(self._go_on_unseen)
        dialog.open()

    def _go_on_unseen(self) -> None:
        self._closing = True
        self.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._navigation.narrow(self.width() < SMALL_WIDTH)
        self._top.narrow(self.width() < SMALL_WIDTH)
        super().resizeEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(_ours(url.toLocalFile()) for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        for url in event.mimeData().urls():
            if _ours(url.toLocalFile()):
                self._open_any(Path(url.toLocalFile()))
                return


def _ours(name: str) -> bool:
    return name.endswith((".branchlab", ".toml"))


def _first_in(part: QWidget) -> QWidget | None:
    """The first widget inside that takes the focus by Tab."""
    for widget in part.findChildren(QWidget):
        takes = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if takes and widget.isVisible() and widget.isEnabled():
            return widget
    return None
