"""Pictures of the window for the README and for looking at: pages of a real run, light and dark.

    xvfb-run -s "-screen 0 1600x1000x24" python tests/screens.py RUN [--profile LAB.toml] [--to FOLDER]

The run is replayed on a clock of its own: `run-*` shows it as it was at `--at` of its trials, `results-*` at
its end. Every figure in the pictures is that run's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from gui import app, main_window
from gui.doors import Doors
from gui.main_window import MainWindow
from gui.report import Reporter
from gui.theme import sheet
from gui.theme.look import Look
from lab import profile, store
from lab.analysis.summary import summarised
from lab.events import (
    CommandStarted,
    Event,
    OutputSeen,
    RunStarted,
    TrafficSampled,
    TrialFinished,
    TrialStarted,
)
from lab.live import Live

SIZES = (("", 1440, 900, ("light", "dark")), ("-1280x720", 1280, 720, ("light",)))


@dataclass(slots=True)
class Replay:
    """The clock of a replay: seconds since the run's start, moved by the events themselves."""

    began: str = ""
    now_s: float = 0.0
    command_s: float = 0.0

    def now(self) -> float:
        """For `Live`."""
        return self.now_s

    def pass_(self, event: Event) -> None:
        """Set the clock to when this event was told."""
        if isinstance(event, RunStarted):
            self.began = event.at
        elif isinstance(event, TrafficSampled):
            self.now_s = max(self.now_s, self.command_s + event.t_s)
        elif isinstance(event, (TrialStarted, TrialFinished)):
            self.now_s = max(self.now_s, self._since(event.at))
        elif isinstance(event, CommandStarted):
            self.command_s = self.now_s

    def _since(self, at: str) -> float:
        return (datetime.fromisoformat(at) - datetime.fromisoformat(self.began)).total_seconds()


def replayed(events: list[Event], at: float) -> Live:
    """The run as it was when this share of its trials was done, in the middle of a trial with traffic."""
    replay = Replay()
    live = Live(replay.now)
    samples = 0
    for event in events:
        replay.pass_(event)
        live.apply(event)
        samples = samples + 1 if isinstance(event, TrafficSampled) else samples
        if isinstance(event, TrialStarted):
            samples = 0
        busy = live.current is not None and (samples >= 8 or isinstance(event, OutputSeen))
        moved = any(curve.now > 0 for curve in live.curves.values())
        if live.total and live.done / live.total >= at and busy and moved:
            break
    return live


def settle(seconds: float = 0.35) -> None:
    """Let the window paint."""
    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


class Camera:
    """One window, shown page by page."""

    def __init__(self, run: Path, lab: Path | None, at: float, folder: Path) -> None:
        self._folder = folder
        with store.opened(run) as record:
            self._events = list(record.events())
        self._profile = profile.load(lab) if lab else None
        self._at = at

    def take(self) -> None:
        """All pictures."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for suffix, width, height, themes in SIZES:
            for theme in themes:
                self._pages(f"{suffix}-{theme}", width, height, theme)

    def _pages(self, suffix: str, width: int, height: int, theme: str) -> None:
        application = app.application_made()
        look = Look(theme)
        sheet.dress(application, look)
        window = MainWindow(look, Doors(), Reporter())
        window._top.show_theme()
        window.resize(width, height)
        window.show()
        settle()
        window.settle()
        settle()
        self._shoot(window, f"start{suffix}")
        live = replayed(self._events, self._at)
        if self._profile is not None:
            experiments = self._profile.experiments
            window.show_lab(self._profile.lab, experiments, {})
            window._top.show_open(self._profile.lab.name, self._profile.path.name)
        window.show_live(live)
        for page in (main_window.RUN, main_window.LAB):
            window.show_page(page)
            self._shoot(window, f"{page}{suffix}")
        done = Live(lambda: 0.0)
        for event in self._events:
            done.apply(event)
        window.show_live(done)
        window._summed_up(summarised(self._events))
        window.show_page(main_window.RESULTS)
        self._shoot(window, f"results{suffix}")
        window._timer.stop()
        window.close()
        window.deleteLater()
        settle(0.05)

    def _shoot(self, window: MainWindow, name: str) -> None:
        end = time.monotonic() + 0.8
        while time.monotonic() < end:
            settle(0.1)
        window.grab().save(str(self._folder / f"{name}.png"))


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--profile", type=Path)
    parser.add_argument("--at", type=float, default=0.45)
    parser.add_argument("--to", type=Path, default=Path("docs/images"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory():
        Camera(given.run, given.profile, given.at, given.to).take()
    application = QApplication.instance()
    if application is not None:
        application.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
