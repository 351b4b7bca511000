"""The whole way from Start to a finished run, by mouse and keyboard alone, on real hosts.

Events go to the native window at a place on it, as a display server sends them: what lies over a widget, or has the
focus instead, gets them. Nothing of the window is called; what it shows is read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
import real_runs
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from gui import app
from gui.doors import Doors
from gui.experiment.check_card import CheckCard
from gui.experiment.states import StateCard
from gui.experiment.table import AWAY, LinesView
from gui.main_window import MainWindow
from gui.new_lab.wizard import NewLabDialog
from gui.report import DefectDialog, Reporter
from gui.theme import sheet
from gui.theme.look import Look
from gui.widgets.basic import Button
from gui.widgets.frame import NavButton
from lab import embedded, profile, store
from lab.embedded import Embedded
from lab.events import Outcome, Standing
from lab.model import Role

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

FOREVER_MS = 60_000
RUN_MS = 600_000
OPERATIONS = ("Get", "Check-Out", "Undo Check-Out", "Check-In", "History", "Diff")
RELAY = """\
import os, socket, sys, threading
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
def out():
    while data := link.recv(65536):
        os.write(1, data)
    os._exit(0)
threading.Thread(target=out, daemon=True).start()
while data := os.read(0, 65536):
    link.sendall(data)
link.shutdown(socket.SHUT_WR)
threading.Event().wait(5)
"""
"""A ProxyCommand to a UNIX socket."""
W = TypeVar("W", bound=QWidget)


class Person:
    """Somebody with a mouse and a keyboard who sees the window."""

    def __init__(self, qtbot: QtBot, window: MainWindow) -> None:
        self._qtbot, self.window = qtbot, window

    def sees(self, kind: type[W], name: str = "") -> list[W]:
        """Widgets of this kind that are visible; only those that say so, or begin so, where a name is given."""
        top = self.top
        return [
            one
            for one in top.findChildren(kind)
            if one.isVisible() and one.window() is top and (not name or _says(one).startswith(name))
        ]

    @property
    def top(self) -> QWidget:
        """The dialog that is open, or the window."""
        return QApplication.activeModalWidget() or self.window

    def one(self, kind: type[W], name: str = "") -> W:
        """The one widget of this kind that says so; where several begin so, the one that says just that."""
        self.until(lambda: bool(self.sees(kind, name)), f"{kind.__name__} {name!r} is shown")
        found = self.sees(kind, name)
        exact = [one for one in found if _says(one) == name]
        (only,) = exact if len(found) > 1 and exact else found
        return only

    def press(self, widget: QWidget, at: QPoint | None = None) -> None:
        """Click where the widget is, once it can be pressed; whatever lies there gets it."""
        self.until(lambda: widget.isVisible() and widget.isEnabled(), f"{_says(widget)!r} can be pressed")
        QApplication.processEvents()
        top = widget.window()
        place = widget.mapTo(top, at or widget.rect().center())
        there = top.childAt(place)
        assert there is widget or (there is not None and widget.isAncestorOf(there)), (
            f"{_says(widget)!r} cannot be clicked: at {place} there is {there}, in a window of {top.size()}"
        )
        QTest.mouseClick(top.windowHandle(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)
        QApplication.processEvents()

    def types(self, text: str, key: Qt.Key | None = None) -> None:
        """Type into what has the focus, then a key."""
        for letter in text:
            QTest.keyClick(self.top.windowHandle(), letter)
        if key is not None:
            QTest.keyClick(self.top.windowHandle(), key)
        QApplication.processEvents()

    def writes(self, line: QLineEdit, text: str, key: Qt.Key | None = None) -> None:
        """Click into the line, write over what stands there."""
        self.press(line)
        QTest.keyClick(self.top.windowHandle(), Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        self.types(text, key)

    def until(self, true: Callable[[], bool], what: str, ms: int = FOREVER_MS) -> None:
        """Wait until this is to be seen."""

        def seen() -> None:
            assert not self.window.findChildren(DefectDialog), "a fault of BranchLab is shown"
            assert true(), f"never seen: {what}. The window says: {self.said()}"

        self._qtbot.waitUntil(seen, timeout=ms)

    def said(self) -> str:
        """All the words that can be read now."""
        top = self.top
        return " | ".join(one.text() for one in top.findChildren(QLabel) if one.isVisible() and one.text())

    def reads(self, text: str, ms: int = FOREVER_MS) -> None:
        """Wait until this can be read."""
        self.until(lambda: text in self.said(), f"the words {text!r}", ms)


def _says(widget: QWidget) -> str:
    """The name of a control, as a screen reader says it."""
    text = getattr(widget, "word", None) or getattr(widget, "text", str)()
    return widget.accessibleName() or (text if isinstance(text, str) else "")


@pytest.fixture
def person(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """Before a window that has just been opened, with real doors; nothing was ever opened on this machine."""
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    look = Look("light")
    sheet.dress(app.application_made([]), look)
    doors = Doors()
    window = MainWindow(look, doors, Reporter())
    qtbot.addWidget(window, before_close_func=_left)
    window.resize(1500, 1120)
    window.show()
    qtbot.waitExposed(window)
    window.settle()
    QApplication.processEvents()
    yield Person(qtbot, window)
    if window.running:
        window.interrupt()
        window.runs.worker.wait(60)
    doors.close()


def _left(window: MainWindow) -> None:
    window.document.take(None)
    window.closing.asked = True


def designs_a_short_run(person: Person) -> None:
    """On the page Experiment: Get and History, one line, without the proxy and with a full cache, two attempts."""
    person.press(person.one(NavButton, "Experiment"))
    for name in OPERATIONS:
        if name not in ("Get", "History"):
            person.press(_card(person, CheckCard, name))
    table = person.one(LinesView)
    person.press(table.viewport(), table.visualRect(table.model().index(0, AWAY)).center())
    person.reads("was removed. Ctrl Z brings it back.")
    for name in ("Empty, 0", "90"):
        person.press(_card(person, StateCard, name))
    person.writes(person.one(QLineEdit, "Attempts"), "2", Qt.Key.Key_Return)
    person.until(lambda: bool(person.sees(Button, "Run 8 trials")), "eight trials")


def _card(person: Person, kind: type[W], name: str) -> W:
    """A card with a check, by its title."""
    (card,) = (one for one in person.sees(kind) if getattr(one, "text", str)().startswith(name))
    return card


def runs_and_reads_the_answers(person: Person) -> None:
    """Presses Run, waits for the end, goes to Results; what is shown there is what is in the file."""
    person.press(person.one(Button, "Run 8 trials"))
    person.until(lambda: bool(person.sees(Button, "See results")), "the run's end", RUN_MS)
    person.reads("8 trials in")
    person.press(person.one(Button, "See results"))
    window = person.window
    person.until(lambda: window.summary is not None and window.summary.finished is not None, "the answers")
    assert window.summary is not None
    person.reads(window.summary.verdict)
    assert window.run_path is not None
    with store.opened(window.run_path) as record:
        assert record.outcome is Outcome.DONE
        standings = [one.standing for one in record.trials()]
    assert sorted(standings) == sorted([Standing.KEPT, Standing.WARM_UP] * 4)


def test_from_start_to_answers_on_hosts_made_here(person: Person) -> None:
    person.press(person.one(Button, "Make the hosts"))
    person.until(lambda: bool(person.sees(NavButton, "Experiment")), "the lab")
    designs_a_short_run(person)
    runs_and_reads_the_answers(person)


# ---- hosts that are reached by names


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Embedded]:
    """Three hosts with sshd, whose names stand in what `ssh` takes for the user's configuration.

    The proxy's /var/cache, where the wizard puts a cache, is its own: hosts of an embedded lab share this machine's.
    """
    with embedded.up() as made:
        mounted = real_runs.on(made.folder, "proxy", "mount -t tmpfs tmpfs /var/cache && echo done")
        assert mounted.strip() == "done"
        relay, config = tmp_path / "relay.py", tmp_path / "ssh_config"
        relay.write_text(RELAY)
        blocks = [
            f"Host {host.name}\n  HostKeyAlias {host.name}\n"
            f'  ProxyCommand "{sys.executable}" -I -S "{relay}" {host.ssh.removeprefix("unix:")}\n'
            for host in made.lab.hosts
        ]
        known = tmp_path / "known_hosts"
        known.write_text("".join(f"{host.name} {host.host_key}\n" for host in made.lab.hosts))
        blocks.append(f"Host *\n  IdentityFile {made.lab.hosts[0].key}\n  UserKnownHostsFile {known}\n")
        config.write_text("".join(blocks))
        # OpenSSH takes ~ from the list of users, not from HOME.
        _wrapped(tmp_path / "bin", config, monkeypatch)
        yield made


def _wrapped(folder: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\nexec "{shutil.which("ssh")}" -F "{config}" "$@"\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def enters_three_hosts(person: Person) -> None:
    """Through the wizard, by their names for SSH; each is met as it is entered."""
    person.press(person.one(Button, "New lab"))
    person.until(lambda: isinstance(person.top, NewLabDialog), "the wizard")
    for name, following in (("server", "Next: proxy"), ("proxy", "Next: clients"), ("client", "Next: name")):
        person.writes(person.one(QLineEdit, "SSH name"), name)
        person.reads("logged in as root")
        person.until(
            lambda: bool(person.one(QLineEdit, "Address that the other hosts use").text()),
            f"{name}'s address",
        )
        person.press(person.one(Button, following))
    person.writes(person.one(QLineEdit, "Name of the lab"), "Minsk office")


def saves(person: Person, path: Path) -> None:
    """Through the file dialog that is asked with."""
    person.press(person.one(Button, "Save and open"))
    person.until(lambda: isinstance(person.top, QFileDialog), "a question for the file")
    person.writes(person.one(QLineEdit), str(path), Qt.Key.Key_Return)
    person.until(lambda: person.top is person.window, "the window")


def test_from_start_to_answers_on_hosts_with_names(person: Person, office: Embedded, tmp_path: Path) -> None:
    enters_three_hosts(person)
    saves(person, tmp_path / "minsk.toml")
    person.until(lambda: bool(person.sees(NavButton, "Lab")), "the lab")
    found = profile.load(tmp_path / "minsk.toml")
    assert [(host.role, host.ssh) for host in found.lab.hosts] == [
        (Role.SERVER, "server"),
        (Role.PROXY, "proxy"),
        (Role.CLIENT, "client"),
    ]
    person.press(person.one(Button, "Check"))
    person.reads("Checked at")
    assert "Everything is there" in person.said()
    person.press(person.one(NavButton, "Experiment"))
    person.press(person.one(Button, "Duplicate"))
    person.reads(", copy")
    designs_a_short_run(person)
    runs_and_reads_the_answers(person)


@pytest.mark.slow
@pytest.mark.skipif(os.environ["QT_QPA_PLATFORM"] != "offscreen", reason="this is the same once more")
def test_the_same_in_a_window_of_an_x_server() -> None:
    program = shutil.which("xvfb-run")
    assert program is not None, "make installs it: installer/system_packages test"
    words = [
        program,
        "--auto-servernum",
        "--server-args",
        "-screen 0 1600x1200x24",
        sys.executable,
        "-m",
        "pytest",
    ]
    words += [__file__, "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    env = {**os.environ, "QT_QPA_PLATFORM": "xcb"}
    done = subprocess.run(
        words,
        env=env,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed, 1 skipped" in done.stdout
