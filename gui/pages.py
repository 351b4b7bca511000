"""The frame of the window and the pages in it, one of which is seen."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMainWindow, QStackedWidget, QWidget

from gui.compare.page import ComparePage
from gui.document import Document
from gui.experiment.page import ExperimentPage
from gui.help.page import HelpPage
from gui.lab.page import LabPage
from gui.report import Banner
from gui.results.page import ResultsPage
from gui.run.page import RunPage
from gui.settings.page import SettingsPage
from gui.start.page import StartPage
from gui.telling import COMPARE, EXPERIMENT, HELP, LAB, PLACES, RESULTS, RUN, SETTINGS, START
from gui.theme.look import Look
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


class Pages(QObject):
    """Makes them all, in this window. Signals: `turned(str)` another page is seen, or the same one anew."""

    turned = Signal(str)

    def __init__(self, look: Look, document: Document, window: QMainWindow) -> None:
        super().__init__(window)
        self.seen = START
        self.top, self.navigation = TopBar(look), Navigation(look, PLACES)
        self.status, self.banner = StatusBar(look), Banner(look)
        self.start, self.lab, self.experiment = (
            StartPage(look),
            LabPage(look, document),
            ExperimentPage(look, document),
        )
        self.run, self.results = RunPage(look), ResultsPage(look)
        self.compare = ComparePage(look)
        self.help, self.settings = HelpPage(look), SettingsPage(look)
        self.heads: dict[str, Head | StartPage] = {
            START: self.start,
            LAB: self.lab.head,
            EXPERIMENT: self.experiment.head,
            RUN: self.run.head,
            RESULTS: self.results.head,
            COMPARE: self.compare.head,
            HELP: self.help.head,
            SETTINGS: self.settings.head,
        }
        pages = (
            self.start,
            self.lab,
            self.experiment,
            self.run,
            self.results,
            self.compare,
            self.help,
            self.settings,
        )
        self.all: dict[str, QWidget] = dict(zip(self.heads, pages, strict=True))
        self._stack = QStackedWidget()
        for page in pages:
            self._stack.addWidget(page)
        self.whole = Whole(self._stack)
        self._put_into(window)
        self.ring = FocusRing(look, window)

    def show(self, key: str) -> None:
        """Show a page; Start has the window for itself."""
        self.seen = key
        at_start = key == START
        self.navigation.setVisible(not at_start)
        self.status.setVisible(not at_start)
        self.whole.least(*((0, 0) if at_start else LEAST_PAGE))
        self._stack.setCurrentWidget(self.all[key])
        self.heads[key].hold(self.banner)
        self.navigation.show_page(key)
        self.turned.emit(key)

    def fit(self, width: int) -> None:
        """The frame, for a window so wide."""
        self.navigation.narrow(width < SMALL_WIDTH)
        self.top.narrow(width < SMALL_WIDTH)

    def next_part(self) -> None:
        """The keyboard goes round: head, navigation, page, inspector."""
        parts = [self.top, self.navigation, self.all[self.seen]]
        next_part([*parts, self.lab.inspector] if self.seen == LAB else parts)

    def _put_into(self, window: QMainWindow) -> None:
        right = column(None, spacing=0)
        right.addWidget(self.whole, 1)
        middle = row(None, self.navigation, spacing=0)
        middle.addLayout(right, 1)
        central = QWidget()
        central.setObjectName("canvas")
        layout = column(central, self.top, spacing=0)
        layout.addLayout(middle, 1)
        layout.addWidget(self.status)
        window.setCentralWidget(central)
