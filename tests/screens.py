"""Pictures of the window for the README and for looking at: pages of a real run, light and dark.

    xvfb-run -s "-screen 0 1600x1000x24" python tests/screens.py RUN [--profile LAB.toml] [--to FOLDER]
    xvfb-run -s "-screen 0 2900x1900x24" python tests/screens.py --dialogs [--to FOLDER]

The run is replayed on a clock of its own: `run-*` shows it as it was at `--at` of its trials, `results-*` at
its end. Every figure in the pictures is that run's. What the dialogs ask is made up (tests/dialogs_shown.py);
they are drawn over the window as a desktop would place them, without its frame. QT_SCALE_FACTOR=2 gives 200 %.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from checks_shown import some, thirty, well
from dialogs_shown import DIALOGS
from fake_testbed import FakeTestbed, small
from PySide6.QtCore import QEventLoop, QPoint, QTimer
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QApplication

from gui import app, main_window
from gui.doors import Doors
from gui.lab.checked import CheckedLab
from gui.lab.hand import ByHandKnown, CacheKnown, LineKnown
from gui.lab.items import THE_LINE
from gui.main_window import MainWindow
from gui.report import Reporter
from gui.theme import sheet
from gui.theme.look import Look
from lab import profile, runner, store
from lab.analysis.summary import summarised
from lab.events import (
    CommandStarted,
    Event,
    HostChanged,
    OutputSeen,
    RunStarted,
    TrafficSampled,
    TrialFinished,
    TrialStarted,
)
from lab.live import Live
from lab.model import Cache, Host, Lab, Line, Role
from lab.stop import Stop

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


HOSTS = Lab(
    name="Minsk office",
    hosts=(
        Host(name="desk-3", role=Role.CLIENT, ssh="lab@desk-3"),
        Host(
            name="proxy",
            role=Role.PROXY,
            ssh="lab@proxy.office.example.com",
            url="http://198.51.100.7:8081",
            cache=Cache(kind="apache-disk", folder="/var/cache/branchlab"),
        ),
        Host(name="server", role=Role.SERVER, ssh="lab@tfs.example.com"),
    ),
)


ACCOUNT = (
    (5, "server", "nftables table inet branchlab made", False),
    (7, "server", "line 64/128 kbit/s on eth0 for 198.51.100.7 and 198.51.100.23", False),
    (41, "server", "taken back: line 64/128 kbit/s on eth0", True),
    (42, "server", "taken back: nftables table inet branchlab", True),
)


def dialogs(folder: Path) -> None:
    """Every dialog that asks, the page while hosts are looked at, and the account of a made-up run."""
    folder.mkdir(parents=True, exist_ok=True)
    percent = round(100 * float(os.environ.get("QT_SCALE_FACTOR", "1")))
    scale = "" if percent == 100 else f"-{percent}-percent"
    for width, height in ((1440, 900), (1280, 720)):
        for theme in ("light", "dark"):
            _dialogs(folder, f"{width}x{height}{scale}-{theme}", width, height, theme)


def _dialogs(folder: Path, suffix: str, width: int, height: int, theme: str) -> None:
    application = app.application_made()
    look = Look(theme)
    sheet.dress(application, look)
    window = MainWindow(look, Doors(), Reporter())
    window._top.show_theme()
    window.show_lab(HOSTS, (small(),), {"Small": 12})
    window._top.show_open(HOSTS.name, "minsk-office.toml")
    window.resize(width, height)
    window.show()
    window.show_page(main_window.LAB)
    settle()
    window.grab().save(str(folder / f"lab-{suffix}.png"))
    _by_hand(folder, suffix, window)
    _checks(folder, suffix, window)
    for name, make in DIALOGS.items():
        dialog = make(look, window)
        dialog.open()
        settle(0.3)
        _over(window.grab(), dialog.grab(), look).save(str(folder / f"{name}-{suffix}.png"))
        dialog.done(0)
        settle(0.05)
    window.show_page(main_window.RUN)
    window.run_page.look("Do we need the proxy?")
    settle(0.2)
    window.grab().save(str(folder / f"looking-{suffix}.png"))
    window.run_page.looked()
    live = Live()
    for event in runner.run(small(), FakeTestbed(), Stop()):
        live.apply(event)
    for second, host, what, undone in ACCOUNT:
        live.apply(
            HostChanged(host=host, at=f"2026-06-03T09:12:{second:02d}+00:00", what=what, undone=undone)
        )
    window.show_live(live)
    window.run_page.output._tabs.button(2).click()
    settle(0.3)
    window.grab().save(str(folder / f"account-{suffix}.png"))
    window._timer.stop()
    window.close()
    window.deleteLater()
    settle(0.05)


def _checks(folder: Path, suffix: str, window: MainWindow) -> None:
    """The page while hosts are checked, and what checks of all kinds found."""
    page = window.lab_page
    window.deeds.checking.going.emit("Checking proxy (2 of 3) …")
    window.deeds.checking.looking.emit("proxy")
    settle(0.3)
    window.grab().save(str(folder / f"checking-{suffix}.png"))
    window.deeds.checking.looking.emit("")
    window.deeds.checking.going.emit("")
    found = some("desk-3", HOSTS.name)
    long = tuple(replace(one, host="desk-3") for one in thirty())
    good = tuple(replace(one, host="desk-3" if one.host == "client" else one.host) for one in well())
    for name, items, selected in (
        ("check", found, ""),
        ("check-server", found, "server"),
        ("check-thirty", long, "desk-3"),
        ("check-well", good, ""),
    ):
        page.show_check(
            CheckedLab(items=items, at=datetime.now().astimezone(), experiment="Small", own=False)
        )
        page.picture.select(selected)
        window._tell_frame()
        settle(0.3)
        window.grab().save(str(folder / f"{name}-{suffix}.png"))
    page.picture.select("")


FULL = CacheKnown(
    objects=1732,
    bytes=3_914_000,
    others=12,
    operation="Get",
    listed=1732,
    here=1732,
    here_bytes=3_914_000,
    listed_bytes=3_914_000,
)
READ = "64 kbit/s up, 128 kbit/s down; queues 64.0 kB up, 64.0 kB down (tc)"
BY_HAND = (
    ("hand-proxy", "proxy", ByHandKnown()),
    ("hand-filling", "proxy", ByHandKnown(deed="fill")),
    ("hand-full", "proxy", ByHandKnown(cache=FULL)),
    ("hand-purged", "proxy", ByHandKnown(cache=replace(FULL, objects=1559, here=1559, here_bytes=3_523_000))),
    ("hand-line", THE_LINE, ByHandKnown(cache=FULL)),
    (
        "hand-line-held",
        THE_LINE,
        ByHandKnown(
            deed="line",
            cache=FULL,
            line=LineKnown(
                line=Line(upload_bps=64_000, download_bps=128_000), said=READ, left_s=27.0, lease_s=30.0
            ),
        ),
    ),
)


def _by_hand(folder: Path, suffix: str, window: MainWindow) -> None:
    """What is done by hand: the proxy and the line selected, in each state."""
    page = window.lab_page
    for name, selected, known in BY_HAND:
        page.picture.select(selected)
        page.say_by_hand(
            "Filling the cache: Get runs once through the proxy …" if known.deed == "fill" else ""
        )
        page.show_hand(known)
        window._tell_frame()
        settle(0.3)
        window.grab().save(str(folder / f"{name}-{suffix}.png"))
    page.say_by_hand("")
    page.show_hand(ByHandKnown())
    page.picture.select("")


def _over(window: QPixmap, dialog: QPixmap, look: Look) -> QPixmap:
    size = dialog.deviceIndependentSize()
    room = window.deviceIndependentSize()
    at = QPoint(int(room.width() - size.width()) // 2, int(room.height() - size.height()) // 2)
    painter = QPainter(window)
    painter.drawPixmap(at, dialog)
    painter.setPen(QPen(QColor(look.token("hair")), 1))
    painter.drawRect(at.x() - 1, at.y() - 1, int(size.width()) + 1, int(size.height()) + 1)
    painter.end()
    return window


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--dialogs", action="store_true")
    parser.add_argument("--profile", type=Path)
    parser.add_argument("--at", type=float, default=0.45)
    parser.add_argument("--to", type=Path, default=Path("docs/images"))
    given = parser.parse_args()
    if given.run is None and not given.dialogs:
        parser.error("name a RUN, or ask for --dialogs")
    if given.dialogs:
        dialogs(given.to)
        return 0
    with tempfile.TemporaryDirectory():
        Camera(given.run, given.profile, given.at, given.to).take()
    application = QApplication.instance()
    if application is not None:
        application.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
