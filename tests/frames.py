"""How long each event holds the window, in CPU time of the GUI thread, while three hosts stream samples through it.

    python tests/frames.py --seconds 4      JSON: by page, how many events, and the longest

The way is the real one: events, the record, `gui.worker`, `lab.live`, the pages. Only the hosts are a stand-in, which
tells ten samples a second for each of three. CPU time, not the clock's: others may be at work here.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).parents[1]))

from experiment_shown import OFFICE
from fake_testbed import FakeTestbed
from PySide6.QtCore import QEvent, QEventLoop, QObject, QTimer
from PySide6.QtWidgets import QApplication

from gui import app
from gui.doors import Doors
from gui.main_window import MainWindow
from gui.report import Reporter
from gui.telling import COMPARE, EXPERIMENT, HELP, LAB, RESULTS, RUN, SETTINGS, START
from gui.theme import sheet
from gui.theme.look import Look
from gui.tray import Desktop
from lab.events import CommandStarted, Event, OutputSeen, TrafficSampled
from lab.model import PAIRS, Trial
from lab.stop import Stop

HOSTS, SAMPLES_PER_S, TRIAL_S = 3, 10, 1.5
PAGES = (RUN, LAB, EXPERIMENT, RESULTS, COMPARE, HELP, SETTINGS, START)
KEPT = 8
BARE = Desktop(has_tray=lambda: False, portal=lambda parent: None)
SHOWN_S = 0.5
"""After so long a page is laid out and painted whole: what a person's press costs once is not what a stream costs."""


class Streaming(FakeTestbed):
    """In real time: each host's samples ten times a second, and a line of output with each tenth."""

    def measure(self, trial: Trial, stop: Stop) -> Iterator[Event]:
        """As long as `TRIAL_S`, then what the stand-in says of the trial."""
        yield CommandStarted(trial=trial.number, host="desk-1", argv=("svn", trial.treatment.operation))
        moved, steps = dict.fromkeys(PAIRS, 0), round(TRIAL_S * HOSTS * SAMPLES_PER_S)
        for step in range(steps):
            stop.sleep(1 / (HOSTS * SAMPLES_PER_S))
            for number, pair in enumerate(PAIRS):
                moved[pair] += 1_000 * (1 + (step * (number + 3)) % 7)
            yield TrafficSampled(
                trial=trial.number, t_s=(step + 1) / (HOSTS * SAMPLES_PER_S), bytes=dict(moved)
            )
            if step % HOSTS == 0:
                yield OutputSeen(
                    trial=trial.number, stream="stdout", text=f"A    trunk/src/file{step:04}.cs\n"
                )
        yield from super().measure(trial, stop)


class Counting(QApplication):
    """Measures whatever is delivered in the GUI thread, from outside: an event within another is part of it."""

    def __init__(self, argv: list[str]) -> None:
        self.within, self.at = False, ""
        self.number: dict[str, int] = {}
        self.worst: dict[str, list[tuple[float, str]]] = {}
        super().__init__(argv)

    def notify(self, receiver: QObject, event: QEvent) -> bool:
        """As Qt does, with a clock."""
        if self.within or not self.at:
            return super().notify(receiver, event)
        self.within, kind = True, event.type()
        began = time.thread_time()
        try:
            return super().notify(receiver, event)
        finally:
            spent, self.within = time.thread_time() - began, False
            self._note(spent, f"{kind.name} of {type(receiver).__name__}")

    def _note(self, spent: float, what: str) -> None:
        self.number[self.at] = self.number.get(self.at, 0) + 1
        worst = self.worst.setdefault(self.at, [])
        if len(worst) < KEPT or spent > worst[-1][0]:
            worst.append((spent, what))
            worst.sort(reverse=True)
            del worst[KEPT:]


def opened(application: QApplication, folder: Path) -> MainWindow:
    """A window as `gui.app.main` makes it, with an office's profile open."""
    look = Look("light")
    sheet.dress(app.application_made([]), look)
    window = MainWindow(
        look, Doors(testbed=lambda lab, **_: Streaming(), own=lambda lab: True), Reporter(), BARE
    )
    window.show()
    window.settle()
    profile = folder / "office.toml"
    profile.write_text(OFFICE, "utf-8")
    window.open_profile(profile)
    _until(lambda: window.document.profile is not None and not window._jobs)
    return window


def streamed(application: Counting, window: MainWindow, pages: Sequence[str], seconds: float) -> None:
    """Run, and stay on each page for so long; then stop."""
    gc.collect()
    gc.freeze()
    window.start_run(window.document.profile.experiments[0])
    _until(lambda: window.live.done >= 1)
    for page in pages:
        application.at = ""
        window.show_page(page)
        _stay(SHOWN_S)
        application.at = page
        _stay(seconds)
    application.at = "the end"
    window.story.stop()
    _until(lambda: window.run_path is not None and not window.runs.summing and not window._jobs)
    application.at = ""


def _stay(seconds: float) -> None:
    loop = QEventLoop()
    QTimer.singleShot(int(1000 * seconds), loop.quit)
    loop.exec()


def _until(true: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError
        _stay(0.05)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print it."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--seconds", type=float, default=4)
    words.add_argument("--pages", nargs="+", default=PAGES, help="some of them")
    words.add_argument("--slow", action="store_true", help="make one redraw slow, to see that it is found")
    given = words.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="fr") as name:
        os.environ["BRANCHLAB_DATA"] = f"{name}/data"
        application = Counting(["frames"])
        window = opened(application, Path(name))
        if given.slow:
            _slowed(window)
        streamed(application, window, given.pages, given.seconds)
        told = {
            page: {
                "events": application.number[page],
                "worst_ms": [(round(1000 * s, 2), what) for s, what in worst],
            }
            for page, worst in application.worst.items()
        }
        assert window.isVisible()
        print(json.dumps({"done": window.live.done, "samples": _samples(window), "pages": told}), flush=True)
        window.closing.asked = True
        window.close()
        os._exit(0)


def _samples(window: MainWindow) -> int:
    from lab import store

    with store.opened(window.run_path) as record:
        return sum(isinstance(event, TrafficSampled) for event in record.events())


def _slowed(window: MainWindow) -> None:
    plain = window.run_page.redraw

    def slow() -> None:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        plain()

    window.run_page.redraw = slow


if __name__ == "__main__":
    sys.exit(main())
