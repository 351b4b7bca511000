"""A monkey at the window: clicks, drags, wheels and types at random by a seed, and says what it broke.

    python tests/monkey.py --seed 7 --seconds 600      one JSON line of what it did; status 1 and the faults if any

Every event goes in where a window system's would. The hosts are stand-ins that work; files are in a folder of its
own. The n-th deed is drawn from seed and n alone, so a seed is played again as it was, as far as threads let it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).parents[1]))

from checks_shown import missing, some, well
from dialogs_shown import DIALOGS, QUESTIONS
from experiment_shown import OFFICE
from fake_testbed import FakeTestbed, small
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QtMsgType, QUrl, qInstallMessageHandler
from PySide6.QtGui import QDropEvent, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QDialog,
    QFileDialog,
    QLineEdit,
    QMenu,
    QWidget,
)
from shiboken6 import isValid
from start_shown import PASSWORD, UNKNOWN, Meetings
from test_gui_by_hand import FakeHands
from test_gui_window import BARE

from gui import app
from gui.agreement import AgreementDialog
from gui.doors import Doors, OpenedProfile
from gui.main_window import MainWindow
from gui.report import DefectDialog, Reporter
from gui.stranger import StrangerDialog
from gui.telling import LAB, PLACES, START
from gui.theme import sheet
from gui.theme.look import Look
from lab import runner, store
from lab.draft import MOST_STEPS
from lab.errors import HostUnreachable
from lab.events import Event, RunFinished
from lab.model import Experiment, Lab
from lab.stop import Stop

LOOK_EVERY, SECONDS_STUCK = 250, 90
"""So many deeds between two looks at the whole; a deed that lasts longer hangs."""
STATED = ("This plugin does not support", "Mouse event at")
"""What the offscreen platform and QTest say of themselves: no window system, and a window not yet as small as asked."""
LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton
NONE, CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)
MODIFIERS = ((CTRL, Qt.Key.Key_Control), (SHIFT, Qt.Key.Key_Shift), (ALT, Qt.Key.Key_Alt))
KEYS: tuple[tuple[Qt.Key, Qt.KeyboardModifier], ...] = (
    *((key, NONE) for key in (
        Qt.Key.Key_Tab, Qt.Key.Key_Tab, Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Escape, Qt.Key.Key_Up,
        Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_PageDown,
        Qt.Key.Key_Delete, Qt.Key.Key_Backspace, Qt.Key.Key_F1, Qt.Key.Key_F2, Qt.Key.Key_F5, Qt.Key.Key_F6,
        Qt.Key.Key_Menu, Qt.Key.Key_Plus, Qt.Key.Key_Minus,
    )),
    *((key, CTRL) for key in (
        Qt.Key.Key_Z, Qt.Key.Key_Z, Qt.Key.Key_C, Qt.Key.Key_V, Qt.Key.Key_A, Qt.Key.Key_K, Qt.Key.Key_S, Qt.Key.Key_O,
        Qt.Key.Key_R, Qt.Key.Key_Return, Qt.Key.Key_Plus, Qt.Key.Key_Minus, Qt.Key.Key_0, Qt.Key.Key_F, Qt.Key.Key_N,
        Qt.Key.Key_Up, Qt.Key.Key_Down,
    )),
    (Qt.Key.Key_Z, CTRL | SHIFT), (Qt.Key.Key_S, CTRL | SHIFT), (Qt.Key.Key_Backtab, SHIFT), (Qt.Key.Key_Tab, SHIFT),
    *((key, ALT) for key in (
        Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3, Qt.Key.Key_4, Qt.Key.Key_5, Qt.Key.Key_6, Qt.Key.Key_Up,
        Qt.Key.Key_Down,
    )),
)  # fmt: skip
TEXTS = (
    "5", "12", "2M/4M 40 ms", "64/128 kbit/s", "as it is", "1,024", "1.5", "x", "90", "0", "-1", "abc/def", "99 %",
    "10 ms", "lab@desk-1:22", "proxy", "%{}[]\"'\\", "Größe – 缺少 ‮ \u200b", "9" * 40, "1e9999", "nan", "../..", " ",
)  # fmt: skip


class StandIn(FakeTestbed):
    """Goes slowly, and knows every operation that a profile can name."""

    def cut(self) -> None:
        """Its connections are none."""


class StandInDoors(Doors):
    """Nothing leaves this process but files in `folder`; what a run told is kept beside its file."""

    def __init__(self, folder: Path, drawn: random.Random) -> None:
        self._folder, self._drawn = folder, drawn
        self.told: dict[Path, list[Event]] = {}
        hands = FakeHands(QUESTIONS[1:2])
        super().__init__(
            testbed=self._bed_made, own=lambda lab: lab.name.startswith("Here"), looking=self._looked,
            signing=lambda host, passwords: None, entering=lambda lab, experiment, passwords: None,
            reverting=lambda lab, passwords: {host.name: ("a line",) for host in lab.hosts},
            checking=self._checked, meeting=Meetings({"proxy": UNKNOWN, "desk-1": PASSWORD}),
            lacking=self._lacking, installing=self._installed, uninstalling=self._installed, handing=hands.handing,
        )  # fmt: skip

    def hosts(self) -> Iterator[OpenedProfile]:
        """A profile as of hosts that were made here."""
        path = self._folder / "here.toml"
        path.write_text(OFFICE.replace("Minsk office", "Here, for now"), "utf-8")
        yield from self.profile(path)

    def run(self, lab: Lab, asked: Experiment, stop: Stop, path: Path | None, agreed: frozenset[str] = frozenset()) -> Iterator[Event]:  # fmt: skip  # noqa: E501
        """As the real one; what passes is kept."""
        told: list[Event] = []
        for event in super().run(lab, asked, stop, path, agreed):
            if not told and self.recording is not None:
                self.told[self.recording] = told
            told.append(event)
            yield event

    def _bed_made(self, lab: Lab, **_: object) -> FakeTestbed:
        drawn = self._drawn
        failing = dict.fromkeys(drawn.sample(range(2, 30), 2), "svn: E170013: no answer")
        opening = HostUnreachable("no answer on port 22", host="proxy") if drawn.random() < 0.1 else None
        pace = drawn.choice((0.001, 0.01, 0.03))
        return StandIn(failing=failing, void={5: "not quiet"}, pace=pace, opening=opening)

    def _looked(self, lab: Lab, asked: Experiment, passwords: object) -> Sequence[Any]:
        return QUESTIONS[: self._drawn.choice((0, 0, 1, 3))]

    def _checked(
        self, lab: Lab, asked: object, passwords: object, stop: Stop, say: Callable[[str], None]
    ) -> Any:
        for host in lab.hosts:
            say(host.name)
            stop.sleep(0.05)
            stop.check()
        say("")
        return some(lab.hosts[-1].name, lab.name) if self._drawn.random() < 0.6 else well()

    def _lacking(self, lab: Lab, host: str, passwords: object) -> Any:
        return missing(host, ("tc", "nft") if self._drawn.random() < 0.5 else (), ours=("vde2",))

    def _installed(self, lab: Lab, host: str, stop: Stop, say: Callable[[str, str], None], passwords: object) -> Any:  # fmt: skip  # noqa: E501
        for step in range(5):
            say(host, f"Setting up package {step} ...")
            stop.sleep(0.05)
            stop.check()
        return ["iproute2", "nftables"]


class Monkey:
    """One window at a time; another one when it was closed."""

    def __init__(self, seed: int, folder: Path, trace: TextIO | None = None) -> None:
        self.trace = trace
        self.seed, self.folder, self.number = seed, folder, 0
        self.faults: list[str] = []
        self.last: deque[str] = deque(maxlen=60)
        self.did: Counter[str] = Counter()
        self.pages: Counter[str] = Counter()
        self.dialogs: Counter[str] = Counter()
        self.slow: list[tuple[float, str]] = []
        self._began: tuple[object, str] = (None, "")
        self._files()
        self.window = self._made()

    # a window

    def _files(self) -> None:
        folder = self.folder
        (folder / "office.toml").write_text(OFFICE, "utf-8")
        (folder / "wrong.toml").write_text(OFFICE.replace('role = "proxy"', 'role = "toaster"'), "utf-8")
        (folder / "no.toml").write_text("this is { no profile", "utf-8")
        (folder / "no.branchlab").write_text("not a run", "utf-8")
        told = runner.run(
            small(), FakeTestbed(failing={3: "svn: no"}, samples=3), Stop(), lab_name="Minsk office"
        )
        for _ in store.recorded(told, folder / "old.branchlab"):
            pass

    def _made(self) -> MainWindow:
        look = Look("light")
        sheet.dress(app.application_made([]), look)
        self.doors = StandInDoors(self.folder, random.Random(f"{self.seed}/{self.number}/doors"))
        reporter = Reporter()
        window = MainWindow(look, self.doors, reporter, BARE)
        reporter.broken.connect(self._fault)
        window.document.opened.connect(self._opened)
        window.resize(
            *random.Random(f"{self.seed}/{self.number}/size").choice(((1440, 900), (1280, 720), (960, 600)))
        )
        window.show()
        window.settle()
        window.activateWindow()
        self.window = window
        if self.number == 0 or self.number % 2:
            window.open_profile(self.folder / "office.toml")
        self.did["windows"] += 1
        return window

    def _opened(self) -> None:
        draft = self.window.document.draft
        self._began = (draft, draft._steps[0].text if draft is not None else "")

    def _fault(self, text: object) -> None:
        last = "\n    ".join(self.last)
        fault = f"after deed {self.number} of seed {self.seed}: {text}"
        print(fault, file=sys.stderr, flush=True)
        self.faults.append(f"{fault}\n  the last deeds:\n    {last}")

    # deeds

    def play(self, seconds: float, most: int | None = None) -> None:
        """Go on for so long, or so many deeds, or until something is broken."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.number != most and not self.faults:
            self.number += 1
            faulthandler.dump_traceback_later(SECONDS_STUCK, exit=True)
            began = time.thread_time()
            try:
                self._act(random.Random(f"{self.seed}/{self.number}"))
                self._let(2)
                if self.number % LOOK_EVERY == 0:
                    self._look()
            except Exception:  # noqa: BLE001 - what a test of everything finds
                self._fault(traceback.format_exc())
            used = time.thread_time() - began
            self.slow = sorted(
                [*self.slow, (round(used, 3), self.last[-1] if self.last else "")], reverse=True
            )[:8]
        faulthandler.cancel_dump_traceback_later()

    def _let(self, times: int = 1) -> None:
        for _ in range(times):
            QApplication.processEvents()
            QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        if not self.window.isVisible():
            self._again()
        elif (
            QApplication.activeWindow() is None
        ):  # the offscreen platform has nobody who gives the focus back
            self._top().activateWindow()

    def _act(self, r: random.Random) -> None:
        top = self._top()
        self.pages[self.window._page] += 1
        if isinstance(top, QDialog):
            self.dialogs[type(top).__name__] += 1
        if isinstance(top, QFileDialog):
            self._choose_file(r, top)
            return
        if isinstance(top, AgreementDialog | StrangerDialog) and r.random() < 0.3:
            self._agree(top)
            return
        deeds: tuple[tuple[float, Callable[[random.Random, QWidget], str]], ...] = (
            (34, self._click_control), (14, self._click_place), (3, self._double_click), (3, self._right_click),
            (4, self._drag), (4, self._wheel), (22, self._key), (10, self._type), (1, self._resize),
            (0.7, self._ask), (0.7, self._drop), (0.3, self._close), (3, self._page), (1.3, self._wait), (1, self._run),
        )  # fmt: skip
        deed = r.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]
        self.last.append(f"{self.number} on {self.window._page}, {type(top).__name__}: {deed.__name__[1:]}")
        self.did[deed.__name__[1:]] += 1
        if self.trace is not None:  # before it is done: it may be the last
            print(self.last[-1], file=self.trace, flush=True)
        self.last[-1] += f" {deed(r, top)}"

    def _top(self) -> QWidget:
        return QApplication.activePopupWidget() or QApplication.activeModalWidget() or self.window

    def _controls(self, top: QWidget) -> list[QWidget]:
        kinds = (QAbstractButton, QLineEdit, QComboBox, QAbstractItemView)
        found = [w for w in top.findChildren(QWidget) if w.isVisible() and w.isEnabled()]
        wanted = [w for w in found if isinstance(w, kinds) or w.focusPolicy() & Qt.FocusPolicy.TabFocus]
        return [w for w in wanted if not w.visibleRegion().isEmpty() and w.window() is top.window()]

    def _click_control(self, r: random.Random, top: QWidget) -> str:
        if isinstance(top, QMenu):
            actions = [one for one in top.actions() if one.isEnabled() and not one.isSeparator()]
            if not actions:
                return self._escape(top)
            chosen = r.choice(actions)
            told = chosen.text()
            self._mouse(top, top.actionGeometry(chosen).center())
            return told
        found = self._controls(top)
        if not found:
            return self._click_place(r, top)
        widget = r.choice(found)
        if "olours" in widget.accessibleName() and r.random() < 0.8:  # most of a second each
            widget = r.choice(found)
        box = widget.visibleRegion().boundingRect()
        inside = widget.viewport() if isinstance(widget, QAbstractScrollArea) else widget
        place = box.center() if r.random() < 0.5 else self._place(r, box)
        told = f"{type(widget).__name__} {widget.accessibleName() or getattr(widget, 'text', str)()!r}"
        self._mouse(inside, place)
        return told

    def _click_place(self, r: random.Random, top: QWidget) -> str:
        place = self._place(r, top.rect())
        self._mouse(top, place)
        return f"{place.x()},{place.y()}"

    def _double_click(self, r: random.Random, top: QWidget) -> str:
        place = self._place(r, top.rect())
        self._mouse(top, place)
        if isValid(top):
            self._mouse(top, place, first=QTest.mouseDClick)
        return f"{place.x()},{place.y()}"

    def _right_click(self, r: random.Random, top: QWidget) -> str:
        place = self._place(r, top.rect())
        self._mouse(top, place, RIGHT)
        return f"{place.x()},{place.y()}"

    def _drag(self, r: random.Random, top: QWidget) -> str:
        start, end = self._place(r, top.rect()), self._place(r, top.rect())
        QTest.mousePress(top.windowHandle(), LEFT, NONE, start)
        for step in range(1, 6):
            if not isValid(top) or (handle := top.windowHandle()) is None:
                return "gone"
            QTest.mouseMove(handle, start + (end - start) * step / 5)
        if isValid(top) and (handle := top.windowHandle()) is not None:
            QTest.mouseRelease(handle, LEFT, NONE, end)
        return f"{start.x()},{start.y()} to {end.x()},{end.y()}"

    def _wheel(self, r: random.Random, top: QWidget) -> str:
        place, turn = self._place(r, top.rect()), r.choice((-480, -120, 120, 480))
        keys = r.choice((NONE, NONE, CTRL))
        QTest.wheelEvent(top.windowHandle(), QPointF(place), QPoint(0, turn), QPoint(0, 0), keys)
        return f"{place.x()},{place.y()} by {turn}"

    def _key(self, r: random.Random, top: QWidget) -> str:
        key, with_ = r.choice(KEYS)
        self._keys(top, key, with_)
        return f"{with_.name or ''} {key.name}"

    def _type(self, r: random.Random, top: QWidget) -> str:
        text = r.choice(TEXTS)
        fields = [w for w in self._controls(top) if isinstance(w, QLineEdit)]
        if fields and r.random() < 0.5:
            field = r.choice(fields)
            self._mouse(field, field.rect().center())
            self._keys(self._top(), Qt.Key.Key_A, CTRL)
        for letter in text:
            focus = QApplication.focusWidget()
            if focus is not None and letter.isascii():
                QTest.keyClicks(focus, letter)
            elif focus is not None:  # QTest has no keys for it; a person has a way to enter it
                entered = QInputMethodEvent()
                entered.setCommitString(letter)
                QApplication.sendEvent(focus, entered)
        if r.random() < 0.6:
            self._keys(self._top(), Qt.Key.Key_Return)
        return repr(text)

    def _resize(self, r: random.Random, top: QWidget) -> str:
        size = r.choice(((1440, 900), (1280, 720), (960, 600), (1900, 1100), (1100, 640)))
        self.window.resize(*size)
        return f"{size}"

    def _ask(self, r: random.Random, top: QWidget) -> str:
        """A question as a thread asks it amid work."""
        if top is not self.window:
            return "not now"
        name = r.choice(sorted(DIALOGS.keys() - {"installing"}))  # which nobody would end
        DIALOGS[name](self.window._look, self.window).open()
        return name

    def _drop(self, r: random.Random, top: QWidget) -> str:
        if top is not self.window:  # a window system drops nothing on a window that a dialog covers
            return "not now"
        path = self._some_file(r)
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        actions = Qt.DropAction.CopyAction
        QApplication.sendEvent(self.window, QDropEvent(QPointF(300, 300), actions, data, LEFT, NONE))
        return path.name

    def _close(self, r: random.Random, top: QWidget) -> str:
        top.close()
        return type(top).__name__

    def _page(self, r: random.Random, top: QWidget) -> str:
        place = r.choice(PLACES).key if r.random() < 0.9 else START
        if top is self.window:
            self.window.show_page(place)
        return place

    def _run(self, r: random.Random, top: QWidget) -> str:
        """Else a run is rare: it takes a few presses in their order."""
        window = self.window
        if top is not window or window.running or not window.lab_page.offered():
            return "not now"
        window.show_page(LAB)
        self._let()
        if window.lab_page.start.isVisible() and window.lab_page.start.isEnabled():
            self._mouse(window.lab_page.start, window.lab_page.start.rect().center())
        return "pressed"

    def _agree(self, dialog: AgreementDialog | StrangerDialog) -> None:
        self.last.append(f"{self.number} agrees to {type(dialog).__name__}")
        self.did["agrees"] += 1
        for check in getattr(dialog, "checks", ()):
            check.setChecked(True)
        button = dialog.run
        self._mouse(button, button.rect().center())

    def _wait(self, r: random.Random, top: QWidget) -> str:
        time.sleep(r.choice((0.02, 0.1, 0.3)))
        return ""

    def _choose_file(self, r: random.Random, dialog: QFileDialog) -> None:
        """By its own means, since one at random could be any of this machine's."""
        self.did["choose_file"] += 1
        saving = dialog.acceptMode() is QFileDialog.AcceptMode.AcceptSave
        if r.random() < 0.3:
            self.last.append(f"{self.number} leaves the choice of a file")
            dialog.reject()
            return
        if saving:
            kinds = dialog.nameFilters()
            dialog.selectNameFilter(kind := r.choice(kinds))
            dialog.filterSelected.emit(kind)
            path = self.folder / f"saved-{self.number}.{dialog.defaultSuffix()}"
        else:
            path = self._some_file(r)
        self.last.append(f"{self.number} chooses {path.name}")
        dialog.fileSelected.emit(str(path))
        dialog.close()

    def _some_file(self, r: random.Random) -> Path:
        names = [
            "office.toml",
            "office.toml",
            "wrong.toml",
            "no.toml",
            "none.toml",
            "old.branchlab",
            "no.branchlab",
        ]
        return self.folder / r.choice(names)

    def _place(self, r: random.Random, box: Any) -> QPoint:
        return QPoint(r.randint(box.left(), max(box.left(), box.right())), r.randint(box.top(), max(box.top(), box.bottom())))  # fmt: skip  # noqa: E501

    def _mouse(self, widget: QWidget, place: QPoint, button: Qt.MouseButton = LEFT, first: Any = QTest.mousePress) -> None:  # fmt: skip  # noqa: E501
        root = widget.window()
        at = widget.mapTo(root, place)
        # One by one: what a press closes may be gone before its release, which QTest would not bear.
        for step in (QTest.mouseMove, first, QTest.mouseRelease):
            self._step(step, root, *((at,) if step is QTest.mouseMove else (button, NONE, at)))

    def _keys(self, top: QWidget, key: Qt.Key, with_: Qt.KeyboardModifier = NONE) -> None:
        # Each by itself, as `_mouse`: Alt alone closes a menu, and QTest would go on with what is gone.
        alone = [modifier for flag, modifier in MODIFIERS if flag & with_]
        for one in alone:
            self._step(QTest.keyPress, top, one)
        top = top if isValid(top) and top.isVisible() else self._top()
        self._step(QTest.keyPress, top, key, with_)
        for one in (key, *alone):
            self._step(QTest.keyRelease, top, one)

    def _step(self, step: Any, top: QWidget, *given: Any) -> None:
        if isValid(top) and top.isVisible() and (handle := top.windowHandle()) is not None:
            step(handle, *given)

    def _escape(self, top: QWidget) -> str:
        self._keys(top, Qt.Key.Key_Escape)
        return "Escape"

    # what must be so

    def _look(self) -> None:
        """No fault was told, every dialog can be left, every page reached; edits and runs are whole."""
        self.did["looks"] += 1
        self._leave_dialogs()
        window = self.window
        self._every_page()
        self._edits_can_be_undone()
        self._runs_are_whole()
        if not window.isEnabled():
            self._fault("the window takes nothing any more")

    def _leave_dialogs(self) -> None:
        for _ in range(40):
            top = self._top()
            if top is self.window:
                return
            if isinstance(top, DefectDialog):
                self._fault("a dialog tells of a defect")
                return
            self._escape(top)
            self._let(2)
            time.sleep(0.01 if self._top() is top else 0)
        if isinstance(top := self._top(), QDialog):
            self._until(lambda: self._top() is not top or self._escape(top) == "", f"{type(top).__name__} cannot be left")  # fmt: skip  # noqa: E501

    def _every_page(self) -> None:
        for number, place in enumerate(PLACES, 1):
            self._keys(self.window, Qt.Key(Qt.Key.Key_0 + number), ALT)
            self._let(3)
            if self._top() is not self.window:
                self._leave_dialogs()
            if self.window._page != place.key:
                self._fault(f"Alt {number} leads to {self.window._page}, not to {place.key}")
            page = self.window.pages.all[self.window._page]
            if not page.isVisible() or not self._controls(page):
                self._fault(f"the page {place.key} has nothing that can be pressed: a dead end")

    def _edits_can_be_undone(self) -> None:
        document = self.window.document
        draft, (began, first) = document.draft, self._began
        if draft is None or draft is not began:
            return
        text, steps = draft.text, 0
        while document.undo():
            steps += 1
        if steps < MOST_STEPS and draft.text != first:
            self._fault(f"after {steps} undone edits the profile is not what it was:\n{draft.text}")
        while document.redo():
            steps -= 1
            if draft.text == text and not steps:
                break
        while draft.text != text and document.undo():
            pass
        if draft.text != text:
            self._fault("what was undone cannot be done again")
        self.did["edits undone and done again"] += draft._at

    def _runs_are_whole(self) -> None:
        for path, told in list(self.doors.told.items()):
            if not told or not isinstance(told[-1], RunFinished) or self.window.running:
                continue
            with store.opened(path) as record:
                there = list(record.events())
            # what was repeated since is behind it
            if there[: len(told)] != told:
                self._fault(f"{path.name} holds {len(there)} events, {len(told)} were told")
            del self.doors.told[path]
            self.did["runs found whole"] += 1

    # the end of a window

    def _again(self) -> None:
        """It was closed, or goes on unseen until its run has ended; then there is another one."""
        window = self.window
        if window.running:
            window.story.stop()  # it may be one of hours
            self._until(lambda: not window.running, "a run without a window does not end", let=False)
        self._gone(window)
        self._made()

    def _gone(self, window: MainWindow) -> None:
        window.leave()
        window.runs.worker.wait(SECONDS_STUCK)
        self._until(lambda: not window._jobs and not window.running, "a closed window still works", let=False)
        self._runs_are_whole()
        window.document.take(None)
        window.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    def end(self) -> None:
        """Stop what goes, look at everything once more, close."""
        window = self.window
        faulthandler.dump_traceback_later(3 * SECONDS_STUCK, exit=True)
        self._leave_dialogs()
        if window.looking:
            window.run_page.cancelled.emit()
        window.story.stop()
        self._until(lambda: not window.running and not window._jobs, "the run does not end")
        self._look()
        window.deeds.leave()
        self._until(lambda: not window.deeds.by_hand.busy, "what is done by hand does not end")
        window.closing.asked = True
        window.close()
        if window.isVisible():
            self._fault("the window does not close")
        self._gone(window)
        faulthandler.cancel_dump_traceback_later()

    def _until(self, true: Callable[[], object], wrong: str, *, let: bool = True) -> None:
        end = time.monotonic() + SECONDS_STUCK / 3
        while not true():
            if time.monotonic() > end:
                self._fault(wrong)
                return
            if let:
                self._let()
            else:
                QApplication.processEvents()
            time.sleep(0.005)


def _watched(monkey: list[Monkey], before: list[str]) -> None:
    """Whatever Python or Qt complain of is a fault, in any thread."""

    def told(text: str) -> None:
        if monkey:
            monkey[0]._fault(text)
        else:
            before.append(text)

    def said(kind: QtMsgType, context: object, text: str) -> None:
        if (
            kind is not QtMsgType.QtDebugMsg
            and kind is not QtMsgType.QtInfoMsg
            and not text.startswith(STATED)
        ):
            told(f"Qt says: {text}\n" + "".join(traceback.format_stack(limit=12)))

    sys.excepthook = lambda *error: told("".join(traceback.format_exception(*error)))
    threading.excepthook = lambda args: told("".join(traceback.format_exception(args.exc_value)))
    sys.unraisablehook = lambda args: told(f"{args.err_msg}: {args.exc_value!r} in {args.object!r}")
    qInstallMessageHandler(said)
    warnings.simplefilter("error")


def main(argv: Sequence[str] | None = None) -> int:
    """Play, and tell."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--seed", type=int, default=None)
    words.add_argument("--seconds", type=float, default=600)
    words.add_argument("--deeds", type=int, default=None, help="so many at most, to play a fault again")
    words.add_argument("--trace", type=argparse.FileType("w"), help="a file for each deed before it is done")
    given = words.parse_args(argv)
    seed = random.randrange(10**6) if given.seed is None else given.seed
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="monkey") as name:
        folder = Path(name)
        for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "BRANCHLAB_DATA"):
            os.environ[variable] = str(folder / "home")
        os.environ["XDG_RUNTIME_DIR"] = str(folder / "runtime")
        (folder / "runtime").mkdir(mode=0o700)
        (folder / "home" / ".ssh").mkdir(parents=True)
        (folder / "home" / ".ssh" / "config").write_text("Host desk-1\nHost proxy\nHost server\n")
        os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
        os.chdir(folder)
        monkeys: list[Monkey] = []
        before: list[str] = []
        _watched(monkeys, before)
        monkey = Monkey(seed, folder, given.trace)
        monkeys.append(monkey)
        monkey.faults += before
        monkey.play(given.seconds, given.deeds)
        if not monkey.faults:
            monkey.end()
        told = {
            "seed": seed,
            "deeds": monkey.number,
            **monkey.did,
            "pages": monkey.pages,
            "dialogs": monkey.dialogs,
        }
        print(json.dumps({**told, "slowest": monkey.slow}), flush=True)
        for fault in monkey.faults[:1]:
            print(fault, file=sys.stderr)
        sys.stderr.flush()
        # The window may be amid what was broken: nothing more is asked of it.
        os._exit(1 if monkey.faults else 0)


if __name__ == "__main__":
    sys.exit(main())
