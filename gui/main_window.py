"""The window: its parts wired together. No decisions of the domain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget

from gui import reading, telling
from gui.asking import ask_target
from gui.away import Away
from gui.closing import Closing
from gui.deeds import Deeds
from gui.document import Document
from gui.doors import Doors
from gui.jobs import Jobs
from gui.keys import Keys
from gui.layout import Layout
from gui.notice import Notice
from gui.opened import Opened
from gui.opening import Opening, Then
from gui.pages import Pages
from gui.questions import Questions
from gui.report import DefectDialog, Reporter, Trouble
from gui.runs import Runs
from gui.shown import Shown
from gui.starting import Starting
from gui.story import Story
from gui.stranger import Strangers
from gui.telling import COMPARE, HELP, LAB, RESULTS, START
from gui.theme import sheet
from gui.theme.look import Look, system_palette
from gui.tray import Desktop, Tray
from lab.analysis.summary import Summary
from lab.live import Live
from lab.model import Experiment, Lab
from lab.settings import Settings
from lab.store import Head

EXPORTS = (
    "Slides (*.pptx);;Workbook (*.xlsx);;Report (*.html);;Report to print (*.pdf);;Tables (*.md);;Trials (*.csv);;"
    "Trials as JSON lines (*.jsonl)"
)


class MainWindow(QMainWindow):
    """Shows a lab, a run and what came of it.

    Signals: `finished(object)` the outcome of a run that this window ran, `lab.events.Outcome` or None;
    `closed()` the window is closed, also one that was hidden.
    """

    finished = Signal(object)
    closed = Signal()

    def __init__(self, look: Look, doors: Doors, reporter: Reporter, desktop: Desktop | None = None) -> None:
        super().__init__()
        self._look, self._doors, self._reporter = look, doors, reporter
        self.setWindowTitle("BranchLab")
        self.setMinimumSize(960, 600)
        self.resize(1440, 900)
        self.setAcceptDrops(True)
        self._build_pages()
        self._build_work(desktop or Desktop())
        self._wire_work()
        self._wire_profile()
        self._wire_frame()
        self._wire_pages()
        self.keys = Keys(look, self)
        self._top.sought.connect(self.keys.offer_actions)
        self._top.asked.connect(self.keys.offer_profile)
        self._layout = Layout(
            self,
            {
                "times": self.results_page.table,
                "account": self.run_page.output.account,
                "picture": self.lab_page.picture,
            },
        )
        self._layout.restore()
        self.show_page(START)

    # what the composition root asks for ------------------------------------------------------------------

    def settle(self) -> None:
        """What can wait until the window was painted: plots, and the list of runs."""
        self.run_page.traffic.ready()
        self.settings_page.read()
        self._look.motion = self.settings_page.settings.motion
        self._list_runs()
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
        self.story.run(experiment, record, agreed)

    def interrupt(self) -> None:
        """Stop softly and close, as Ctrl C in the terminal asks."""
        self.closing.at_once()

    def leave(self) -> None:
        """Nobody is here any more: what waits for an answer goes on without one."""
        self.story.preparing.cancel()
        self.deeds.leave()
        self.starting.leave()
        self._questions.close()

    # what is shown ----------------------------------------------------------------------------------------

    @property
    def live(self) -> Live:
        """The run that is shown, as far as it is."""
        return self.shown.live

    @property
    def summary(self) -> Summary | None:
        """The answers that are shown."""
        return self.shown.summary

    @property
    def run_path(self) -> Path | None:
        """The file of the run that is shown; None while it goes."""
        return self.story.path

    @property
    def trouble(self) -> BaseException | None:
        """Why the newest run that was asked for did not begin."""
        return self.story.trouble

    @property
    def looking(self) -> bool:
        """True while the hosts are looked at for a run that has not begun, and while that is asked about."""
        return self.story.preparing.busy

    @property
    def running(self) -> bool:
        """True while a run of this window goes."""
        return self.runs.busy

    @property
    def lab_is_own(self) -> bool:
        """True if BranchLab made the lab that is open, so that nothing is provisioned there."""
        return self.shown.lab is not None and self._doors.own(self.shown.lab)

    @property
    def dark(self) -> bool:
        """True in the dark palette."""
        return self._look.palette.dark

    @property
    def _page(self) -> str:
        return self.pages.seen

    def show_page(self, key: str) -> None:
        """Show a page."""
        self.pages.show(key)
        if key == START:
            self._list_runs()
            self.starting.refresh()
        elif key == COMPARE:
            self._list_runs()

    def show_lab(self, lab: Lab, experiments: Sequence[Experiment], trials: dict[str, int]) -> None:
        """Show this lab, its experiments, and how many trials each plans."""
        self.opened.show_lab(lab, experiments, trials)

    def show_live(self, live: Live, *, past: bool = False) -> None:
        """Show this run on every page, from its shape on; `past`: one that was read from a file."""
        self.shown.show_live(live, past=past)

    def explain(self, topic: str) -> None:
        """A topic of the help."""
        self.show_page(HELP)
        self.help_page.show_topic(topic)

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

    # building ---------------------------------------------------------------------------------------------

    def _build_pages(self) -> None:
        self._jobs = Jobs(self)
        self.document = Document(self, keep_in=self._doors.drafts())
        self.pages = pages = Pages(self._look, self.document, self)
        self._top, self._navigation, self._banner = pages.top, pages.navigation, pages.banner
        self.start_page, self.lab_page, self.experiment_page = pages.start, pages.lab, pages.experiment
        self.run_page, self.results_page = pages.run, pages.results
        self.compare_page = pages.compare
        self.help_page, self.settings_page = pages.help, pages.settings

    def _build_work(self, desktop: Desktop) -> None:
        look, doors, document, pages = self._look, self._doors, self.document, self.pages
        self._questions = Questions(self)
        self.shown = Shown(pages, lambda: self.running, lambda: self.looking)
        self.runs = Runs(doors, self._jobs, self)
        self.deeds = Deeds(look, doors, self._questions, pages.lab, self)
        self.opening = Opening(look, doors, self._jobs, document, self)
        self.starting = Starting(look, doors, self._jobs, document, self.opening, pages.start, self)
        self.strangers = Strangers(look, doors, document, self)
        self.story = Story(
            look,
            doors,
            pages,
            self.shown,
            document,
            self.runs,
            self._questions,
            self.deeds,
            self.strangers,
            self,
        )
        self.opened = Opened(pages, self.shown, document, self.story, self.runs, self.deeds, self)
        self.opened.told.connect(self._tell)
        self._tray = Tray(desktop, self)
        self._notice = Notice(self._tray, self)
        self.away = Away(self._tray, self.shown, self.run_page.stop, doors.data, self)
        self.closing = Closing(
            look, document, self.runs, self.deeds, self.opening, self.story, self.away, self
        )
        self.deeds.refused = self.opening.refused = self.story.refused
        self.deeds.agreed_first = self.strangers.before

    def _wire_work(self) -> None:
        self.story.told.connect(self._tell)
        self.story.crashed.connect(self._reporter.take)
        self.story.ended.connect(self._run_ended)
        self.runs.happened.connect(self.opened.name)
        self.runs.crashed.connect(self._reporter.take)
        self.runs.summed.connect(self.shown.show_summary)
        self.shown.outdated.connect(self.runs.sum_up)
        self.deeds.begun.connect(self._banner.hide)
        self.deeds.begun.connect(partial(self.show_page, LAB))
        self.deeds.told.connect(self._tell)
        self.deeds.crashed.connect(self._reporter.take)
        self.deeds.checked.connect(partial(self.shown.mark, lab=True))
        self.deeds.settled.connect(self.closing.close_if_done)
        self._jobs.failed.connect(self._job_failed)
        self._jobs.ended.connect(self.closing.close_if_done)
        self._notice.pressed.connect(self._show_end)
        self._tray.closed.connect(self._close_from_tray)

    def _wire_profile(self) -> None:
        self.opening.profile.connect(self.opened.profile)
        self.opening.run.connect(self.opened.run)
        self.opening.making.connect(partial(self.start_page.busy, "Making three hosts …"))
        self.starting.told.connect(self._tell)
        self.starting.answers.connect(self.opened.answers)
        self.strangers.crashed.connect(self._reporter.take)
        self.document.changed.connect(self.opened.edited)
        self.document.saved.connect(self.opened.tell)
        self.document.told.connect(self._tell)

    def _wire_frame(self) -> None:
        self._reporter.told.connect(self._tell)
        self._reporter.broken.connect(self._broken)
        self._navigation.chosen.connect(self.show_page)
        self._top.home.connect(self._home)
        self._top.themed.connect(self.swap_theme)
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
        self.experiment_page.explained.connect(self.explain)
        self.experiment_page.crashed.connect(self._reporter.take)
        self.run_page.wanted.connect(partial(self.show_page, LAB))
        self.run_page.results.connect(partial(self.show_page, RESULTS))
        self.results_page.opened.connect(self.opening.ask_run)
        self.results_page.exported.connect(self._ask_export)
        self.results_page.published.connect(partial(self.starting.show_published, "published-2008"))
        self.compare_page.opened.connect(self.opening.ask_run)
        self.compare_page.wanted.connect(self._compare)
        self.settings_page.changed.connect(self.use_settings)
        self.settings_page.told.connect(self._tell)

    # profiles and runs ------------------------------------------------------------------------------------

    def _run_ended(self, outcome: object) -> None:
        self.finished.emit(outcome)
        if self.settings_page.settings.notify:
            self._notice.tell(self.live)
        if self.document.profile is not None and self.document.profile.lab != self.shown.lab:
            self.opened.edited()  # meanwhile
        self.closing.close_if_done()

    def _show_end(self) -> None:
        """What came of the run, before all other windows."""
        self.away.come_back()
        self.show_page(RESULTS)

    def _close_from_tray(self) -> None:
        self.away.come_back()
        self.close()

    # the frame --------------------------------------------------------------------------------------------

    def _job_failed(self, error: BaseException) -> None:
        self.start_page.busy("")
        self.runs.not_summed()
        self._reporter.take(error)

    def _list_runs(self) -> None:
        self._jobs.do(reading.recent(), self._show_runs)

    def _show_runs(self, heads: Sequence[Head]) -> None:
        self.start_page.show_runs(heads)
        self.compare_page.offer(heads)
        if self.pages.seen == COMPARE:
            self.compare_page.ask_again()

    def _compare(self, a: str, b: str) -> None:
        self._jobs.do(reading.compared(a, b), self.compare_page.show_compared)

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
            self._jobs.do(reading.export(self.run_path, target), self._exported)

    def _exported(self, path: Path) -> None:
        self._tell(Trouble(title=f"Written: {path}", grade="info"))

    def _forgotten(self, names: Sequence[str] | None) -> None:
        self._tell(telling.forgotten(names))

    def _experiment_shown(self, name: str) -> None:
        self.lab_page.choose(name)
        self.shown.mark()

    def _dress(self) -> None:
        application = QApplication.instance()
        if isinstance(application, QApplication):
            sheet.dress(application, self._look)
        self._top.show_theme()
        for widget in self.findChildren(QWidget):
            widget.update()
        self.shown.mark()

    def _follow_system(self) -> None:
        if self.settings_page.settings.theme == "system":
            self._look.use(system_palette())

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self.closing.may():
            event.ignore()
            return
        self.shown.timer.stop()
        event.accept()
        self._layout.keep()
        self.leave()
        self.away.end()
        if self.closing.forgets:
            self.document.take(None)
        self.closed.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.pages.fit(self.width())
        super().resizeEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(_ours(url.toLocalFile()) for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        for url in event.mimeData().urls():
            if _ours(url.toLocalFile()):
                self.opening.read_any(Path(url.toLocalFile()))
                return


def _ours(name: str) -> bool:
    return name.endswith((".branchlab", ".toml"))
