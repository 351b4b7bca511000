"""The page *Experiment* in a window with the frame around it, for tests.

The lab is made up; experiments are those that every embedded lab has, and the office's of the pictures.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMainWindow, QWidget

from gui import app
from gui.document import Document
from gui.experiment.page import ExperimentPage
from gui.theme import sheet
from gui.theme.look import Look
from gui.widgets.basic import column, row
from gui.widgets.frame import (
    LEAST_PAGE,
    SMALL_WIDTH,
    FocusRing,
    Navigation,
    Place,
    StatusBar,
    TopBar,
    Whole,
)

PLACES = (
    Place("lab", "Lab", "tree-structure"),
    Place("experiment", "Experiment", "flask"),
    Place("run", "Run", "play-circle"),
    Place("results", "Results", "chart-line-up"),
)
OFFICE = """\
schema = 1
name = "Minsk office"

[hosts.server]
role = "server"
ssh = "admin@tfs.example.com"
address = "198.51.100.10"
services = "/srv/branchlab"
root = "sudo"

[hosts.proxy]
role = "proxy"
ssh = "proxy.office.example.com"
address = "198.51.100.23"
root = "sudo"
cache = { kind = "apache-disk", folder = "/var/cache/branchlab" }
services = "/srv/branchlab"
url = "http://proxy.office.example.com:8081"

[hosts.desk-1]
role = "client"
ssh = "desk-1"
address = "198.51.100.31"

[hosts.desk-2]
role = "client"
ssh = "desk-2"
address = "198.51.100.32"

[[experiments]]
name = "Do we need the proxy?" # what the boss asks
vcs = "subversion"
repository = "http://{server}/svn/trunk"
data = "2008"
operations = ["get", "check-out", "undo", "check-in", "history", "diff"]
lines = [
  "64/128 kbit/s",   # the old contract
  "128/256 kbit/s",
  "256/512 kbit/s",
  "512/1024 kbit/s",
  "1/2 Mbit/s",
  "2/4 Mbit/s",
]
states = ["disabled", "0 %", { purge = "10 %" }, "100 %"]
disabled_only = ["check-out", "check-in", "history"]
attempts = 4
warm_up = 1

[[experiments]]
name = "Quick look"
data = "quick"
operations = ["get", "history"]
lines = ["512/1024 kbit/s"]
states = ["disabled", "100 %"]
"""


class Shown(QMainWindow):
    """The frame, and the page in it."""

    def __init__(self, look: Look, document: Document) -> None:
        super().__init__()
        self.document = document
        self.page = ExperimentPage(look, document)
        self._top, self._navigation, self._status = TopBar(look), Navigation(look, PLACES), StatusBar(look)
        self._navigation.show_page("experiment")
        whole = Whole(self.page)
        whole.least(*LEAST_PAGE)
        middle = row(None, self._navigation, spacing=0)
        middle.addWidget(whole, 1)
        central = QWidget()
        central.setObjectName("canvas")
        layout = column(central, self._top, spacing=0)
        layout.addLayout(middle, 1)
        layout.addWidget(self._status)
        self.setCentralWidget(central)
        self._ring = FocusRing(look, self)
        profile = document.profile
        self._top.show_open(profile.lab.name if profile else "", "not saved")
        self._top.show_theme()
        self._status.say("ok", "Every change on a host is a lease: it is undone when BranchLab is gone", "")
        self.page.shown.connect(self._tell)
        self.page.explained.connect(self._explain)
        self.topics: list[object] = []
        self._tell()

    def _tell(self, _name: object = "") -> None:
        trials = self.page.trials
        self._navigation.buttons["experiment"].tell(str(trials) if trials is not None else "")

    def _explain(self, topic: object) -> None:
        self.topics.append(topic)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        self._navigation.narrow(self.width() < SMALL_WIDTH)
        self._top.narrow(self.width() < SMALL_WIDTH)
        super().resizeEvent(event)


def shown(text: str = OFFICE, theme: str = "light", size: tuple[int, int] = (1440, 900)) -> Shown:
    """A window with a document of this text."""
    look = Look(theme)
    sheet.dress(app.application_made([]), look)
    document = Document()
    if text:
        document.begin(text)
    window = Shown(look, document)
    window.resize(*size)
    window.show()
    return window


def settle(window: Shown, least_s: float = 0.3) -> None:
    """Until what is worked out in a thread is shown."""
    end = time.monotonic() + least_s
    while time.monotonic() < end or window.page._outlooks.busy:
        loop = QEventLoop()
        QTimer.singleShot(30, loop.quit)
        loop.exec()
        if window.page._outlooks.busy:
            end = max(end, time.monotonic() + 0.15)
