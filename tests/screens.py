"""Every page and dialog as a picture, with the data of a real run: what `make screenshots` writes.

    python tests/screens.py [RUN] [--lab LAB.toml] [--to FOLDER] [--look LOOK …] [--only WORD …] [--readme]

Without RUN a short one is made first, in an embedded lab, and kept beside the pictures as `run.branchlab` with its
`lab.toml`; a RUN is shown with the profile named by `--lab`, else with the `lab.toml` beside it. It is replayed on a
clock of its own: `run-*` and `lab-*` show it as it was at a part of its trials, `results-*` at its end; every figure
is that run's. What dialogs ask, what checks find and what is done by hand is made up (tests/screens_asked.py). Dialogs
are drawn over the window as a desktop would place them, without its frame.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QEventLoop, QPoint, QTimer
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from gui import app
from gui.doors import Doors
from gui.main_window import MainWindow
from gui.report import Reporter
from gui.telling import COMPARE, EXPERIMENT, HELP, LAB, RESULTS, RUN, SETTINGS
from gui.theme import sheet
from gui.theme.look import Look
from lab import embedded, profile, runner, settings, store
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
from lab.machines import Machines
from lab.stop import Stop

CHECKOUT = Path(__file__).resolve().parents[1]
AT = 0.45
"""The share of its trials that is done where a run is shown under way."""
README = ("lab-light", "run-light", "run-dark", "results-light", "results-dark")
"""These are the README's, in docs/images."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One look of the window, in logical pixels."""

    name: str
    theme: str
    width: int = 1440
    height: int = 900
    percent: int = 100


VARIANTS = (
    Variant("light", "light"),
    Variant("dark", "dark"),
    Variant("1280x720-light", "light", 1280, 720),
    Variant("1280x720-dark", "dark", 1280, 720),
    Variant("125-percent-light", "light", percent=125),
    Variant("125-percent-dark", "dark", percent=125),
    Variant("200-percent-light", "light", 1280, 720, 200),
    Variant("200-percent-dark", "dark", 1280, 720, 200),
)


class Replay:
    """The clock of a replay: seconds since the run's start, moved by the events themselves."""

    def __init__(self) -> None:
        self._began = ""
        self._now_s = self._command_s = 0.0

    def now(self) -> float:
        """For `Live`."""
        return self._now_s

    def pass_(self, event: Event) -> None:
        """Set the clock to when this event was told."""
        if isinstance(event, RunStarted):
            self._began = event.at
        elif isinstance(event, TrafficSampled):
            self._now_s = max(self._now_s, self._command_s + event.t_s)
        elif isinstance(event, (TrialStarted, TrialFinished)):
            self._now_s = max(self._now_s, self._since(event.at))
        elif isinstance(event, CommandStarted):
            self._command_s = self._now_s

    def _since(self, at: str) -> float:
        return (datetime.fromisoformat(at) - datetime.fromisoformat(self._began)).total_seconds()


def replayed(events: Sequence[Event], at: float) -> Live:
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


def settle(seconds: float = 0.2) -> None:
    """Let the window paint."""
    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


class _Window(MainWindow):
    """Says of a run that is replayed that it goes on."""

    @property
    def running(self) -> bool:
        return self.live.running


class Camera:
    """A window in one look, and its pictures. With `only`, pictures without such a word in their name are left out."""

    def __init__(self, variant: Variant, folder: Path, only: Sequence[str]) -> None:
        self.variant, self._folder, self._only = variant, folder, only
        settings.save(settings.Settings(theme=variant.theme, motion=False))
        self.look = Look(variant.theme)
        sheet.dress(app.application_made([]), self.look)
        self.window = _Window(self.look, Doors(), Reporter())
        self.window._top.show_theme()
        self.window.resize(variant.width, variant.height)
        self.window.show()
        settle()
        self.window.settle()

    def wants(self, name: str) -> bool:
        """True if a picture of this name is to be made."""
        return not self._only or any(word in f"{name}-{self.variant.name}" for word in self._only)

    def shoot(self, name: str, wait_s: float = 0.25) -> None:
        """The window as it is."""
        if self.wants(name):
            settle(wait_s)
            self._save(self.window.grab(), name)

    def shoot_over(self, name: str, dialog: QWidget) -> None:
        """The window, dimmed as it is, with the dialog over it."""
        if self.wants(name):
            settle(0.2)
            self._save(self._over(self.window.grab(), dialog.grab()), name)

    def close(self) -> None:
        """The window ends."""
        self.window.shown.timer.stop()
        self.window.document.take(None)
        self.window.closing.asked = True
        self.window.close()
        self.window.deleteLater()
        settle(0.05)

    def wait(self, seconds: float = 20.0) -> None:
        """Until what is read or reckoned in threads is shown."""
        end = time.monotonic() + seconds
        settle()
        while time.monotonic() < end and (self.window._jobs or self.window.experiment_page._outlooks.busy):
            settle(0.05)

    def _save(self, picture: QPixmap, name: str) -> None:
        path = self._folder / f"{name}-{self.variant.name}.png"
        if not picture.save(str(path)):
            raise SystemExit(f"{path} cannot be written")

    def _over(self, window: QPixmap, dialog: QPixmap) -> QPixmap:
        size, room = dialog.deviceIndependentSize(), window.deviceIndependentSize()
        at = QPoint(int(room.width() - size.width()) // 2, int(room.height() - size.height()) // 2)
        painter = QPainter(window)
        painter.drawPixmap(at, dialog)
        painter.setPen(QPen(QColor(self.look.token("hair")), 1))
        painter.drawRect(at.x() - 1, at.y() - 1, int(size.width()) + 1, int(size.height()) + 1)
        painter.end()
        return window


# ---- the pages, with a real run


def pages(camera: Camera, events: Sequence[Event], run: Path, lab: Path | None) -> None:
    """All pages in the order in which a person sees them."""
    window = camera.window
    if lab is not None:
        window.open_profile(lab)
        camera.wait()
    window.show_page("start")
    camera.wait()
    camera.shoot("start")
    window.start_page.verticalScrollBar().setValue(10_000)
    camera.shoot("start-below")
    if lab is not None:
        window.show_page(LAB)
        camera.shoot("lab-before")
        _experiment(camera)
    live = replayed(events, AT)
    window.experiment_page.choose(live.experiment.name if live.experiment is not None else "")
    window.show_live(live)
    for page in (RUN, LAB):
        window.show_page(page)
        camera.shoot(page, 0.8)
    window.lab_page.picture.select("proxy")
    camera.shoot("lab-proxy", 0.4)
    window.lab_page.picture.select("")
    window.show_page(RUN)
    window.keys.offer_actions()
    camera.shoot("actions")
    window.keys.actions.field.setText("line")
    camera.shoot("actions-found")
    window.keys.actions.leave()
    window.show_live(Live())
    window.open_run(run)
    camera.wait()
    window.show_page(RESULTS)
    camera.shoot(RESULTS, 0.6)
    _below(camera, RESULTS)
    window.results_page.answers._cards[3].all.click()
    camera.shoot("results-all", 0.4)
    window.results_page.answers.fold()
    window.show_page(RUN)
    camera.shoot("run-done", 0.6)
    window.show_page(COMPARE)
    camera.wait()
    camera.shoot(COMPARE, 0.4)
    window.starting.show_published("published-2008")
    camera.wait()
    camera.shoot("results-published", 0.6)
    window.results_page.money.prices_button.click()
    _below(camera, RESULTS, "results-published")
    for page in (HELP, SETTINGS):
        window.show_page(page)
        camera.shoot(page)
        _below(camera, page)


def _experiment(camera: Camera) -> None:
    window = camera.window
    window.show_page(EXPERIMENT)
    page = window.experiment_page
    page.choose("Proxy efficiency (full)")
    page.lines.entry.setFocus()
    page.lines.entry.setText("2M/4M 40 ms")
    page.lines._typed("2M/4M 40 ms")
    camera.wait()
    camera.shoot("experiment", 0.4)
    page.lines.entry.clear()
    page.lines._typed("")
    page.what.unfold.setChecked(True)
    camera.shoot("experiment-unfolded", 0.3)
    page.what.unfold.setChecked(False)
    page.states.another.open_field()
    camera.shoot("experiment-another-state", 0.3)
    page.states.another.close_field()
    page._scroll.verticalScrollBar().setValue(10_000)
    camera.shoot("experiment-below", 0.3)
    page._scroll.verticalScrollBar().setValue(0)


def _below(camera: Camera, page: str, name: str = "") -> None:
    """What is under the fold, where something is."""
    name = name or page
    for area in camera.window.pages.all[page].findChildren(QScrollArea):
        bar = area.verticalScrollBar()
        if area.isVisible() and area.height() > 300 and bar.maximum():
            bar.setValue(bar.maximum() // 2)
            camera.shoot(f"{name}-middle")
            bar.setValue(bar.maximum())
            camera.shoot(f"{name}-below")
            bar.setValue(0)
            return


# ---- the run, and the processes


def made(folder: Path) -> tuple[Path, Path]:
    """A short real run in an embedded lab, and the lab's profile."""
    run, lab = folder / "run.branchlab", folder / "lab.toml"
    run.unlink(missing_ok=True)
    with embedded.up() as hosts:
        lab.write_text(hosts.profile_path.read_text("utf-8"), "utf-8")
        asked = profile.load(hosts.profile_path).experiment(None)
        told = runner.run(asked, Machines(hosts.lab), Stop(), lab_name=hosts.lab.name)
        done, total, said = 0, 0, 0.0
        for event in store.recorded(told, run):
            total = len(event.trials) if isinstance(event, RunStarted) else total
            done += isinstance(event, TrialFinished)
            if time.monotonic() > said + 15:
                said = time.monotonic()
                print(f"measuring in an embedded lab: {done} of {total or '…'} trials", flush=True)
    return run, lab


def _children(
    given: argparse.Namespace, run: Path, lab: Path | None, folder: Path
) -> Iterator[tuple[int, list[str]]]:
    """A scale in percent, and the command that takes all looks of it: a process has one scale."""
    looks = [one for one in VARIANTS if not given.look or one.name in given.look]
    for percent in sorted({one.percent for one in looks}):
        words = [sys.executable, __file__, str(run), "--child", "--to", str(folder)]
        words += ["--lab", str(lab)] if lab is not None else []
        for option, values in (
            ("--only", given.only),
            ("--look", [x.name for x in looks if x.percent == percent]),
        ):
            words += [word for one in values for word in (option, one)]
        yield percent, words


def _copied(run: Path, folder: Path) -> Path:
    """The run under the name that it would have there."""
    with store.opened(run) as record:
        head = record.head
    name = re.sub(r"[^a-z0-9]+", "-", head.experiment.lower()).strip("-")
    at = datetime.fromisoformat(head.started)
    return Path(shutil.copyfile(run, folder / f"{at:%Y%m%d-%H%M%S}-{name}{store.SUFFIX}"))


def take(given: argparse.Namespace) -> int:
    """The parent: a run, then a process for each scale, with a data folder in which the run is the only one."""
    folder: Path = given.to.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if given.run is None:
        run, lab = made(folder)
    else:
        run = given.run.absolute()
        beside = run.with_name("lab.toml")
        lab = given.lab.absolute() if given.lab else beside if beside.is_file() else None
    with tempfile.TemporaryDirectory() as place:
        data = f"{place}/branchlab"
        runs = Path(data) / "runs"
        runs.mkdir(parents=True)
        copied = _copied(run, runs)
        for percent, command in _children(given, copied, lab, folder):
            env = {**os.environ, "QT_SCALE_FACTOR": str(percent / 100), "BRANCHLAB_DATA": data}
            if subprocess.run(command, env=env, check=False).returncode:
                return 1
    if given.readme:
        for name in README:
            shutil.copyfile(folder / f"{name}.png", CHECKOUT / "docs" / "images" / f"{name}.png")
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")
    return 0


def child(given: argparse.Namespace) -> int:
    """All these looks, which are of one scale."""
    import screens_asked

    with store.opened(given.run) as record:
        events = list(record.events())
    for variant in VARIANTS:
        if variant.name not in given.look:
            continue
        camera = Camera(variant, given.to, given.only)
        pages(camera, events, given.run, given.lab)
        camera.close()
        camera = Camera(variant, given.to, given.only)
        screens_asked.everything(camera)
        camera.close()
    application = QApplication.instance()
    if application is not None:
        application.quit()
    return 0


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--lab", type=Path)
    parser.add_argument("--to", type=Path, default=Path("build/screenshots"))
    parser.add_argument("--only", action="append", default=[], help="pictures with this word in their name")
    parser.add_argument("--readme", action="store_true", help="the README's pictures are replaced, too")
    parser.add_argument(
        "--look", action="append", default=[], help="these looks only: light, 1280x720-dark …"
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    return child(given) if given.child else take(given)


if __name__ == "__main__":
    sys.exit(main())
