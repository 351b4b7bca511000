"""The window: its frame and pages wired together. No decisions of the domain."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeySequence,
    QResizeEvent,
    QShortcut,
)
from PySide6.QtWidgets import QApplication, QMainWindow, QMenu, QStackedWidget, QWidget

from gui import copying, telling
from gui.actions import Action, Actions
from gui.asking import CloseDialog, ask_target
from gui.deeds import Deeds
from gui.doable import doable, with_the_profile
from gui.document import Document
from gui.doors import Doors, OpenedProfile, OpenedRun, planned
from gui.experiment.page import ExperimentPage
from gui.help.page import HelpPage, topic_of
from gui.jobs import Jobs
from gui.lab.page import LabPage
from gui.layout import Layout
from gui.opening import Opening, Then
from gui.preparing import Preparing, Wanted
from gui.questions import Questions
from gui.report import Banner, DefectDialog, Reporter, Trouble
from gui.results.page import ResultsPage
from gui.run.page import RunPage
from gui.runs import Runs
from gui.settings.page import SettingsPage
from gui.start.page import StartPage
from gui.starting import Starting
from gui.stranger import Strangers
from gui.telling import EXPERIMENT, HELP, LAB, PLACES, RESULTS, RUN, SETTINGS
from gui.theme import sheet
from gui.theme.look import Look, system_palette
from gui.widgets.basic import column, row
from gui.widgets.focus import next_part
from gui.widgets.frame import (
    LEAST_PAGE,
    SMALL_WIDTH,
    FocusRing,
    Head,
    Navigation,
    StatusBar,
    TopBar,
    Whole,
)
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
from lab.settings import Settings

log = logging.getLogger(__name__)

REDRAW_MS = 50
START = "start"
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
        self._dirty, self._lab_dirty, self._ticks = True, True, 0
        self._closing = False
        self.trouble: BaseException | None = None
        """why the newest run that was asked for did not begin"""
        self._jobs = Jobs(self)
        self.document = Document(self, keep_in=doors.drafts())
        self._past = False
        self._outcome: Outcome | None = None
        self.setWindowTitle("BranchLab")
        self.setMinimumSize(960, 600)
        self.resize(1440, 900)
        self.setAcceptDrops(True)
        self._build()
        self._wire()
        self._layout = Layout(
            self,
            {
                "times": self.results_page.table,
                "account": self.run_page.output.account,
                "picture": self.lab_page.picture,
            },
        )
        self._layout.restore()
        self._timer = QTimer(self)
        self._timer.setInterval(REDRAW_MS)
        self._timer.timeout.connect(self._tick)
        self._timer.start()
        self.show_page(START)

    # what the composition root asks for ------------------------------------------------------------------

    def settle(self) -> None:
        """What can wait until the window was painted: plots, and the list of runs."""
        self.run_page.traffic.ready()
        self.settings_page.read()
        self._look.motion = self.settings_page.settings.motion
        self._recent()
        self.starting.refresh()
        self.starting.offer()

    def open_profile(self, path: Path, *, experiment: str | None = None, run: bool = False,
                     record: Path | None = None, agreed: frozenset[str] | None = None) -> None:  # fmt: skip
        """Open a profile; with `run`, run its experiment at once. With `agreed`, nobody is asked (see `Wanted`)."""
        self.opening.read_profile(path, Then(experiment=experiment, run=run, record=record, agreed=agreed))

    def open_run(self, path: Path) -> None:
        """Open a run file; it opens in *Results*."""
        self.opening.read_run(path)

    def start_run(
        self, experiment: Experiment, record: Path | None = None, agreed: frozenset[str] | None = None
    ) -> None:
        """Run an experiment on the lab that is open, once what others would feel is agreed to."""
        if self._lab is None or self._refused_while_busy():
            return
        if self.document.problems:
            self._tell(_wrong(self.document))
            return
        wanted = (experiment, record, agreed)
        if agreed is None:
            self.strangers.before(partial(self._prepare, *wanted))
        else:
            self._prepare(*wanted)

    def _prepare(self, experiment: Experiment, record: Path | None, agreed: frozenset[str] | None) -> None:
        if self._lab is None or self._refused_while_busy():
            return
        self.deeds.checking.cancel()
        self.trouble = None
        self._banner.hide()
        self._before_run = LAB if self._page == START else self._page
        self.show_page(RUN)
        self.run_page.look(experiment.name)
        self._preparing.begin(Wanted(lab=self._lab, experiment=experiment, record=record, agreed=agreed))

    def interrupt(self) -> None:
        """Stop softly and close, as Ctrl C in the terminal asks."""
        self._closing = True
        if self.runs.busy:
            self._ask_stop()
        else:
            self.close()

    def leave(self) -> None:
        """Nobody is here any more: what waits for an answer goes on without one."""
        self._preparing.cancel()
        self.deeds.leave()
        self.starting.leave()
        self._questions.close()

    @property
    def looking(self) -> bool:
        """True while the hosts are looked at for a run that has not begun, and while that is asked about."""
        return self._preparing.busy

    @property
    def running(self) -> bool:
        """True while a run of this window goes."""
        return self.runs.busy

    @property
    def lab_is_own(self) -> bool:
        """True if BranchLab made the lab that is open, so that nothing is provisioned there."""
        return self._lab is not None and self._doors.own(self._lab)

    @property
    def dark(self) -> bool:
        """True in the dark palette."""
        return self._look.palette.dark

    def swap_theme(self) -> None:
        """The other palette."""
        self.settings_page.use_theme("light" if self.dark else "dark")

    def use_settings(self, held: Settings) -> None:
        """Look as it is set."""
        self._look.motion = held.motion
        self._look.use(system_palette() if held.theme == "system" else held.theme)

    def forget_passwords(self) -> None:
        """Take out of the system keyring what BranchLab put there, and say what that was."""
        self._jobs.do(self._doors.forget_passwords(), self._forgotten)

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
            self.runs.sum_up()
        if key == START:
            self._recent()
            self.starting.refresh()

    # building ---------------------------------------------------------------------------------------------

    def _build(self) -> None:
        look = self._look
        self._top = TopBar(look)
        self._navigation = Navigation(look, PLACES)
        self._status = StatusBar(look)
        self._banner = Banner(look)
        self.start_page, self.lab_page = StartPage(look), LabPage(look)
        self.run_page, self.results_page = RunPage(look), ResultsPage(look)
        self.experiment_page = ExperimentPage(look, self.document)
        self.help_page, self.settings_page = HelpPage(look), SettingsPage(look)
        self._pages: dict[str, QWidget] = {
            START: self.start_page,
            LAB: self.lab_page,
            EXPERIMENT: self.experiment_page,
            RUN: self.run_page,
            RESULTS: self.results_page,
            HELP: self.help_page,
            SETTINGS: self.settings_page,
        }
        self._heads: dict[str, Head | StartPage] = {
            START: self.start_page,
            LAB: self.lab_page.head,
            EXPERIMENT: self.experiment_page.head,
            RUN: self.run_page.head,
            RESULTS: self.results_page.head,
            HELP: self.help_page.head,
            SETTINGS: self.settings_page.head,
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
        self._questions = Questions(self)
        self.runs = Runs(self._doors, self._jobs, self)
        self._preparing = Preparing(look, self._doors, self._questions, self)
        self.deeds = Deeds(look, self._doors, self._questions, self.lab_page, self)
        self.deeds.refused = self._refused_while_busy
        self.opening = Opening(look, self._doors, self._jobs, self.document, self)
        self.opening.refused = self._refused_while_busy
        self.starting = Starting(
            look, self._doors, self._jobs, self.document, self.opening, self.start_page, self
        )
        self.strangers = Strangers(look, self._doors, self.document, self)
        self.deeds.agreed_first = self.strangers.before

    def _wire(self) -> None:
        self._wire_work()
        self._wire_profile()
        self._wire_frame()
        self._wire_pages()
        self._wire_keys()

    def _wire_work(self) -> None:
        self.runs.happened.connect(self._happened)
        self.runs.crashed.connect(self._reporter.take)
        self.runs.ended.connect(self._run_ended)
        self.runs.summed.connect(self._summed_up)
        self._preparing.ready.connect(self._begin_run)
        self._preparing.left.connect(self._left)
        self._preparing.crashed.connect(self._not_begun)
        self.deeds.begun.connect(self._banner.hide)
        self.deeds.begun.connect(partial(self.show_page, LAB))
        self.deeds.told.connect(self._tell)
        self.deeds.crashed.connect(self._reporter.take)
        self.deeds.checked.connect(self._know_more)
        self.deeds.settled.connect(self._close_if_done)
        self._jobs.failed.connect(self._job_failed)
        self._jobs.ended.connect(self._close_if_done)

    def _wire_profile(self) -> None:
        self.opening.profile.connect(self._profile_opened)
        self.opening.run.connect(self._run_opened)
        self.opening.making.connect(partial(self.start_page.busy, "Making three hosts …"))
        self.starting.told.connect(self._tell)
        self.starting.answers.connect(self._show_answers)
        self.strangers.crashed.connect(self._reporter.take)
        self.document.changed.connect(self._edited)
        self.document.saved.connect(self._tell_open)
        self.document.told.connect(self._tell)

    def _wire_frame(self) -> None:
        self._reporter.told.connect(self._tell)
        self._reporter.broken.connect(self._broken)
        self._navigation.chosen.connect(self.show_page)
        self._top.home.connect(self._home)
        self._top.themed.connect(self.swap_theme)
        self._top.sought.connect(self._offer_actions)
        self._top.asked.connect(self._offer_profile)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow_system)
        self._look.changed.connect(self._dress)

    def _wire_pages(self) -> None:
        self.start_page.made.connect(self.opening.make_hosts)
        self.start_page.profile.connect(self.opening.ask_profile)
        self.start_page.run.connect(self.opening.ask_run)
        self.start_page.recent.connect(self.open_run)
        self.lab_page.run.connect(self.start_run)
        self.lab_page.wanted.connect(self._home)
        self.experiment_page.run.connect(self.start_run)
        self.experiment_page.shown.connect(self._experiment_shown)
        self.experiment_page.wanted.connect(self._home)
        self.experiment_page.explained.connect(self._explain)
        self.experiment_page.crashed.connect(self._reporter.take)
        self.run_page.wanted.connect(partial(self.show_page, LAB))
        self.run_page.stopped.connect(self._ask_stop)
        self.run_page.stopped_after.connect(self.runs.stop_after)
        self.run_page.cancelled.connect(self._preparing.cancel)
        self.run_page.cut.connect(self._cut)
        self.run_page.paused.connect(self.runs.pause)
        self.run_page.resumed.connect(self.runs.resume)
        self.run_page.repeated.connect(self._repeat)
        self.run_page.results.connect(partial(self.show_page, RESULTS))
        self.results_page.opened.connect(self.opening.ask_run)
        self.results_page.exported.connect(self._ask_export)
        self.results_page.published.connect(partial(self.starting.show_published, "published-2008"))
        self.settings_page.changed.connect(self.use_settings)
        self.settings_page.told.connect(self._tell)

    def _wire_keys(self) -> None:
        for number, place in enumerate(PLACES, 1):
            self._key(f"Alt+{number}", partial(self.show_page, place.key))
        self._key("F1", self._help)
        self._key("F6", self._next_part)
        self._key("Ctrl+R", self._run_key)
        self._key("F5", self._check_key)
        self._key("Ctrl+N", self.starting.new_lab)
        self._key("Ctrl+O", self.opening.ask_any)
        self._key("Ctrl+S", self.opening.save)
        self._key("Ctrl+Shift+S", self.opening.save_as)
        self._key("Ctrl+Z", self._undo)
        self._key("Ctrl+Shift+Z", self._redo)
        self._key("Ctrl+K", self._offer_actions)
        self._key("Ctrl+C", self._copy)

    def _key(self, keys: str, slot: Callable[[], None]) -> None:
        QShortcut(QKeySequence(keys), self).activated.connect(slot)

    # jobs -------------------------------------------------------------------------------------------------

    def _job_failed(self, error: BaseException) -> None:
        self.start_page.busy("")
        self.runs.not_summed()
        self._reporter.take(error)

    def _recent(self) -> None:
        self._jobs.do(self._doors.recent(), self.start_page.show_runs)

    def _refused_while_busy(self) -> bool:
        """True, and told, while something goes on with the lab that is open: it stays the one that is shown."""
        if self.looking:
            title, text = (
                "The hosts are being looked at.",
                "Cancel that first, or wait until the run has ended.",
            )
        elif self.running:
            title, text = "A run is going.", "Open another one once it has ended."
        elif (told := self.deeds.under_way()) is not None:
            self._tell(told)
            return True
        else:
            return False
        self._tell(Trouble(title=title, text=text, grade="warn"))
        return True

    def _profile_opened(self, opened: OpenedProfile, then: Then) -> None:
        self.start_page.busy("")
        if self._refused_while_busy():
            return
        self.deeds.checking.cancel()
        self._banner.hide()
        self.show_live(Live())
        self.document.take(opened.draft)
        self.show_lab(opened.profile.lab, opened.profile.experiments, opened.trials)
        self._tell_open()
        for warning in opened.profile.warnings[:1]:
            self._tell(Trouble(title=warning, grade="warn"))
        if then.run:
            self.start_run(opened.profile.experiment(then.experiment), then.record, then.agreed)
        else:
            self.lab_page.choose(then.experiment or "")
            self.experiment_page.choose(then.experiment or "")
            self.show_page(LAB)

    def _edited(self) -> None:
        """The profile says something else; a run that goes is shown with the lab that it began with."""
        self._tell_open()
        profile = self.document.profile
        if profile is not None and not self.running and not self.looking:
            self.show_lab(profile.lab, profile.experiments, planned(profile))

    def _tell_open(self) -> None:
        profile, path = self.document.profile, self.document.path
        if profile is None:
            return
        name = profile.lab.name
        state = "not saved" if self.document.unsaved or path is None else path.name
        self._top.show_open(name, state, profile=True)
        self.setWindowTitle(f"{name}{'*' * self.document.unsaved} – BranchLab")

    def _undo(self) -> None:
        self.document.undo()

    def _redo(self) -> None:
        self.document.redo()

    def _run_opened(self, opened: OpenedRun) -> None:
        if self._refused_while_busy():
            return
        self._banner.hide()
        self.run_path = opened.path
        self.show_live(opened.live, past=True)
        self.runs.kept = []
        self._summed_up(opened.summary)
        self._top.show_open(opened.live.lab or opened.summary.started.experiment.name, opened.path.name)
        self.setWindowTitle(f"{opened.summary.started.experiment.name} – BranchLab")
        self.show_page(RESULTS)

    # a run --------------------------------------------------------------------------------------------------

    def _begin_run(self, wanted: Wanted) -> None:
        self.run_path, self._outcome = None, None
        self.run_page.looked()
        self.runs.begin(wanted)

    def _repeat(self) -> None:
        """Do again what failed in the run that is shown, where its lab is open."""
        experiment = self.live.experiment
        if self.run_path is None or experiment is None or self._refused_while_busy():
            return
        asked = dict(self.lab_page.offered()).get(experiment.name)
        if self._lab is None or self._lab.name != self.live.lab or asked is None:
            title = f"Open the profile of the lab “{self.live.lab}” with “{experiment.name}” first."
            text = "Trials are repeated on the same lab and with the same asking only."
            self._tell(Trouble(title=title, text=text, grade="warn"))
            return
        if self.document.problems:
            self._tell(_wrong(self.document))
            return
        wanted = Wanted(lab=self._lab, experiment=asked, repeat=self.run_path)
        self.strangers.before(partial(self._prepare_again, wanted))

    def _prepare_again(self, wanted: Wanted) -> None:
        if self._refused_while_busy():
            return
        self.deeds.checking.cancel()
        self.trouble, self._before_run = None, RUN
        self._banner.hide()
        self.run_page.look(wanted.experiment.name)
        self._preparing.begin(wanted)

    def _check_key(self) -> None:
        if not self.running:
            self.deeds.check(self.lab_page.experiment)

    def _know_more(self) -> None:
        self._lab_dirty = self._dirty = True

    def _left(self) -> None:
        self.run_page.looked()
        if self.isVisible():
            self.show_page(self._before_run)
            text = "Nothing was changed on any host, and there is no run file."
            self._tell(Trouble(title="The run was not started.", text=text, grade="info"))

    def _not_begun(self, error: BaseException) -> None:
        self.trouble = error
        self.run_page.looked()
        self.show_page(self._before_run)
        self._reporter.take(error)

    def _happened(self, event: Event) -> None:
        self.live.apply(event)
        self._dirty = True
        if isinstance(event, _LAB_WORDS):
            self._lab_dirty = True
        if isinstance(event, RunStarted):
            self.show_live(self.live)
            self.setWindowTitle(f"{event.experiment.name} – BranchLab")

    def show_lab(self, lab: Lab, experiments: Sequence[Experiment], trials: dict[str, int]) -> None:
        """Show this lab, its experiments, and how many trials each plans."""
        self._lab = self.deeds.lab = lab
        self.lab_page.show_lab(lab, experiments, trials)

    def show_live(self, live: Live, *, past: bool = False) -> None:
        """Show this run on every page, from its shape on; `past`: one that was read from a file."""
        self.live, self._past = live, past
        self.lab_page.begin(live, past=past)
        self.run_page.begin(live)
        self._dirty = self._lab_dirty = True

    def _run_ended(self) -> None:
        self._outcome, self.run_path = self.live.outcome, self._doors.recording
        self._dirty = self._lab_dirty = True
        self.run_page.redraw()
        if self.live.outcome is Outcome.FAILED:
            self._tell(Trouble(title=self.live.reason or "The run failed.", text=self.live.advice))
        self.experiment_page.refresh()  # there is a run more to learn times from
        self.finished.emit(self._outcome)
        if self.document.profile is not None and self.document.profile.lab != self._lab:
            self._edited()  # what was edited meanwhile
        self._close_if_done()

    def _summed_up(self, summary: Summary) -> None:
        self.summary = summary
        self.results_page.show_summary(summary, running=self.running and summary.finished is None)
        self._dirty = True

    def _show_answers(self, summary: Summary) -> None:
        """Published figures, which nobody here ran."""
        self._banner.hide()
        self.run_path = None
        self._summed_up(summary)
        self.show_page(RESULTS)

    def _close_if_done(self) -> None:
        """Close, where that was asked for during a run: once it has ended and its answers are known."""
        if self._closing and not self.running and not self.runs.summing and not self.deeds.by_hand.busy:
            self.close()

    def _ask_stop(self) -> None:
        self.runs.stop()
        self._questions.withdraw()

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
            self.runs.sum_up()

    def _slow(self) -> None:
        if self._lab_dirty:
            self._lab_dirty = False
            if self._page == LAB:
                self.lab_page.refresh()
            else:
                self.lab_page.know()
        self._tell_frame()

    def _tell_frame(self) -> None:
        self.experiment_page.hold("A run is going." if self.running or self.looking else "")
        shown = self.lab_page.shown
        telling.top_bar(self._top, self.live, shown, past=self._past)
        telling.navigation(
            self._navigation,
            self.live,
            shown,
            self.summary,
            past=self._past,
            trials=self.experiment_page.trials,
        )
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

    def _ask_export(self) -> None:
        ask_target(self, "Export the run", EXPORTS, self._export)

    def _export(self, target: Path) -> None:
        if self.run_path is not None:
            self._jobs.do(self._doors.export(self.run_path, target), self._exported)

    def _forgotten(self, names: Sequence[str] | None) -> None:
        self._tell(telling.forgotten(names))

    def _exported(self, path: Path) -> None:
        self._tell(Trouble(title=f"Written: {path}", grade="info"))

    def _dress(self) -> None:
        application = QApplication.instance()
        if isinstance(application, QApplication):
            sheet.dress(application, self._look)
        self._top.show_theme()
        for widget in self.findChildren(QWidget):
            widget.update()
        self._dirty = True

    def _run_key(self) -> None:
        if self.running:
            return
        shown = self.experiment_page.experiment if self._page == EXPERIMENT else None
        if shown is not None:
            self.start_run(shown)
        else:
            self.show_page(LAB)
            self.lab_page.start.click()

    def _offer_actions(self) -> None:
        self._actions.offer(self._doable())

    def _offer_profile(self, place: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for action in with_the_profile(self):
            menu.addAction(f"{action.name}\t{action.keys}", action.do)
        menu.popup(place)

    def _doable(self) -> list[Action]:
        return doable(self)

    def _copy(self) -> None:
        if not copying.copy_here(self):
            text = "Point at a table, a chart or what a check found, or go there with Tab; then press Ctrl C."
            self._tell(Trouble(title="There is nothing to copy here.", text=text, grade="info"))

    def _help(self) -> None:
        """At the topic of what has the focus."""
        self._explain(topic_of(QApplication.focusWidget()))

    def _explain(self, topic: str) -> None:
        self.show_page(HELP)
        self.help_page.show_topic(topic)

    def _experiment_shown(self, name: str) -> None:
        self.lab_page.choose(name)
        self._dirty = True

    def _follow_system(self) -> None:
        if self.settings_page.settings.theme == "system":
            self._look.use(system_palette())

    def _next_part(self) -> None:
        """F6: head, navigation, page, inspector."""
        parts = [self._top, self._navigation, self._pages[self._page]]
        next_part([*parts, self.lab_page.inspector] if self._page == LAB else parts)

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.deeds.held():
            event.ignore()
            self._closing = True
            return
        if not self.runs.busy and not self._closing and self.document.unsaved:
            event.ignore()
            self.opening.kept_first(self.interrupt)
            return
        if not self.runs.busy:
            self._timer.stop()
            event.accept()
            self._layout.keep()
            self.leave()
            self.document.take(None)
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
                self.opening.read_any(Path(url.toLocalFile()))
                return


def _wrong(document: Document) -> Trouble:
    first = document.problems[0]
    more = len(document.problems) - 1
    text = f"{first.told('the profile')}" + (f" (and {more} more)" if more else "")
    return Trouble(title="The profile is not right yet, so nothing was started.", text=text, grade="warn")


def _ours(name: str) -> bool:
    return name.endswith((".branchlab", ".toml"))
