"""Fill, purge and a line from the Lab page: by mouse and keys, in a thread, asked, left, refused during a run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
import real_runs
from fake_testbed import FakeTestbed, experiment, small
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from test_cli_by_hand import FOUND, OBJECTS
from test_gui_window import FOREVER_MS, Made, made, started

from gui.agreement import AgreementDialog
from gui.by_hand import counted, filled
from gui.doable import doable
from gui.lab.hand import CacheKnown
from gui.lab.hand_boxes import HELD_BY_RUN, sentence
from gui.lab.items import THE_LINE
from gui.main_window import MainWindow
from gui.purge import PurgeDialog, percent_of
from gui.telling import LAB
from gui.widgets.basic import Label
from lab import embedded
from lab.asking import Question
from lab.errors import BadInput, ConnectionLost
from lab.events import HostChanged
from lab.hands import Filled, Hands, Inventory, Kept, Purged
from lab.model import Cache, Experiment, Host, Lab, Line, Role
from lab.rig.readback import NOTHING, Readback
from lab.stop import Stop

__all__ = ["made"]
FOREVER_S = FOREVER_MS / 1000
LEFT_BUTTON = Qt.MouseButton.LeftButton
OFFICE = Lab(
    name="Office",
    hosts=(
        Host(name="client", role=Role.CLIENT, ssh="client"),
        Host(name="proxy", role=Role.PROXY, ssh="p", cache=Cache(kind="apache-disk", folder="/c")),
        Host(name="server", role=Role.SERVER, ssh="s"),
    ),
)
ASKED = Question("purge", "proxy", "150 objects of an older repository are there.", ("http://s/svn/1",))


class FakeHands:
    """A stand-in for `lab.hands.Hands`; `go` holds every deed up until it is set."""

    def __init__(self, questions: tuple[Question, ...] = (), trouble: Exception | None = None) -> None:
        self.questions, self.trouble = questions, trouble
        self.go, self.done = threading.Event(), list[Any]()
        self.go.set()
        self.agreed: list[frozenset[str]] = []
        self.objects: tuple[Kept, ...] = OBJECTS

    def handing(self, lab: Lab, experiment: Experiment | None, passwords: object) -> FakeHands:
        """As `gui.ways.handed`."""
        return self

    def asked_for_fill(self, operation: str) -> tuple[Question, ...]:
        return self.questions

    def asked_for_line(self, line: Line) -> tuple[Question, ...]:
        return self.questions

    def inventory(self, stop: Stop) -> Inventory:
        return replace(FOUND, objects=self.objects)

    def fill(self, operation: str, stop: Stop, agreed: frozenset[str]) -> Filled:
        self._wait(stop, agreed)
        self.done.append(operation)
        listed = frozenset(one.key for one in OBJECTS)
        before = replace(FOUND, objects=())
        return Filled(operation=operation, before=before, after=FOUND, listed=listed)

    def purge(self, found: Inventory, chosen: tuple[Kept, ...], stop: Stop, agreed: frozenset[str]) -> Purged:
        self._wait(stop, agreed)
        self.done.append(len(chosen))
        self.objects = tuple(one for one in found.objects if one not in chosen)
        after = replace(found, objects=self.objects)
        return Purged(before=found, after=after, asked=len(chosen), removed=len(chosen))

    @contextmanager
    def line(self, line: Line, stop: Stop, agreed: frozenset[str]) -> Iterator[Any]:
        self._wait(stop, agreed)
        read = Readback(line.upload_bps, line.download_bps, 0, 0, 0, 0, "tc", True, 64_000, 64_000)
        held = SimpleNamespace(
            line=line, read=read, lifted=None, left_s=29.0, lease_s=30.0, alive=lambda: None,
            check=lambda stop: None,
        )  # fmt: skip
        self.held = held
        try:
            yield held
        finally:
            held.lifted = NOTHING
            self.done.append("lifted")

    def account(self) -> Iterator[HostChanged]:
        yield HostChanged(host="proxy", at="", what="a change", undone=True)

    def cut(self) -> None:
        self.done.append("cut")

    def _wait(self, stop: Stop, agreed: frozenset[str]) -> None:
        self.agreed.append(agreed)
        while not self.go.wait(0.02):
            stop.check()
        stop.check()
        if self.trouble is not None:
            raise self.trouble


def opened(made: Made, work: FakeHands, bed: FakeTestbed | None = None, **given: object) -> MainWindow:
    """A window on the Lab page of an office, whose hosts are a stand-in."""
    window = made(bed, handing=work.handing, signing=lambda host, passwords: None, **given)
    window.show_lab(OFFICE, (small(), experiment()), {"Small": 12})
    window.show_page(LAB)
    return window


def active(qtbot: QtBot, window: MainWindow) -> MainWindow:
    """With the focus, as a window in front has it."""
    with qtbot.waitActive(window):
        window.activateWindow()
    return window


def press(qtbot: QtBot, window: MainWindow, what: str, button: str) -> None:
    """Select what stands in the picture, then press a button beside it."""
    window.lab_page.picture.select(what)
    box = window.lab_page.inspector.cache if what == "proxy" else window.lab_page.inspector.line
    qtbot.waitUntil(lambda: getattr(box, button).isVisible())
    qtbot.mouseClick(getattr(box, button), LEFT_BUTTON)


def over(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.waitUntil(lambda: not window.deeds.by_hand.busy, timeout=FOREVER_MS)


def asking(qtbot: QtBot, window: MainWindow, kind: type[Any]) -> Any:
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(kind)), timeout=FOREVER_MS)
    return next(dialog for dialog in window.findChildren(kind) if dialog.isVisible())


def told(window: MainWindow) -> str:
    return " ".join(label.text() for label in window._banner.findChildren(Label))


def said(widget: Any) -> str:
    return " ".join(label.text() for label in widget.findChildren(Label) if label.isVisible())


def test_a_fill_goes_in_a_thread_and_the_picture_knows_how_full_it_is(made: Made, qtbot: QtBot) -> None:
    work = FakeHands()
    work.go.clear()
    window = opened(made, work)
    page = window.lab_page
    press(qtbot, window, "proxy", "fill")
    qtbot.waitUntil(lambda: "Get runs once through the proxy" in said(page.head), timeout=FOREVER_MS)
    assert page.shown.hosts[1].word == "being filled"
    assert page.inspector.cache.cancel.isVisible()
    assert not page.inspector.cache.fill.isVisible()
    work.go.set()
    over(qtbot, window)
    assert page.shown.cache == 100
    assert "The cache is full for Get: 150 of 150 objects." in told(window)
    assert "100.0" in said(page.inspector.cache)
    assert "150 of 150 objects for Get" in said(page.inspector.cache)
    assert page.shown.hosts[1].word != "being filled"
    assert work.agreed == [frozenset()]


def test_a_purge_asks_how_much_and_takes_that_out(made: Made, qtbot: QtBot) -> None:
    work = FakeHands()
    window = opened(made, work)
    press(qtbot, window, "proxy", "fill")
    over(qtbot, window)
    press(qtbot, window, "proxy", "purge")
    dialog = asking(qtbot, window, PurgeDialog)
    assert dialog.delete.word == "Delete 15 objects"
    assert "135 objects stay, 13.5 kB" in said(dialog)
    qtbot.keyClicks(dialog.field, "20")  # over what was there, which is selected
    assert dialog.delete.word == "Delete 30 objects"
    qtbot.keyClick(dialog.field, Qt.Key.Key_Return)  # only redraws
    assert dialog.isVisible()
    assert not dialog.delete.isDefault()
    qtbot.mouseClick(dialog.delete, LEFT_BUTTON)
    over(qtbot, window)
    assert work.done == ["get", 30]
    assert window.lab_page.shown.cache == 80
    assert "30 of 150 objects were taken out" in told(window)
    assert "120 of 150 objects for Get" in said(window.lab_page.inspector.cache)


def test_what_a_purge_asks_left_changes_nothing(made: Made, qtbot: QtBot) -> None:
    work = FakeHands()
    window = opened(made, work)
    press(qtbot, window, "proxy", "purge")
    dialog = asking(qtbot, window, PurgeDialog)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    over(qtbot, window)
    assert work.done == []
    assert "Nothing was changed." in told(window)
    # It was counted, and of how much that is nobody knows without a fill.
    assert window.lab_page.shown.cache is None
    assert window.lab_page.shown.cache_word == "150 objects"
    assert "150 objects of the repository, 15.0 kB; 3 of others" in said(window.lab_page.inspector.cache)


def test_an_empty_cache_is_no_question(made: Made, qtbot: QtBot) -> None:
    work = FakeHands()
    work.objects = ()
    window = opened(made, work)
    press(qtbot, window, "proxy", "purge")
    over(qtbot, window)
    assert "The cache has no objects of the repository." in told(window)
    assert work.done == []


@pytest.mark.parametrize("word", ["0 %", "10 %", "100 %"])
def test_the_three_shares_are_a_press_away(made: Made, qtbot: QtBot, word: str) -> None:
    window = opened(made, FakeHands())
    press(qtbot, window, "proxy", "purge")
    dialog = asking(qtbot, window, PurgeDialog)
    button = next(one for one in dialog.shares._group.buttons() if one.text() == word)
    qtbot.mouseClick(button, LEFT_BUTTON)
    count = round(150 * int(word.split()[0]) / 100)
    assert dialog.delete.word == f"Delete {count} objects"
    assert dialog.delete.isEnabled() == bool(count)
    assert button.isChecked()
    qtbot.mouseClick(dialog.keep, LEFT_BUTTON)
    over(qtbot, window)


def test_a_wrong_share_deletes_nothing(made: Made, qtbot: QtBot) -> None:
    window = opened(made, FakeHands())
    press(qtbot, window, "proxy", "purge")
    dialog = asking(qtbot, window, PurgeDialog)
    for text in ("110", "many", "", "-1"):
        dialog.field.setText(text)
        assert not dialog.delete.isEnabled()
        assert "Write a number from 0 to 100." in said(dialog)
    dialog.reject()
    over(qtbot, window)


def test_a_decimal_point_and_a_comma_are_both_taken() -> None:
    assert percent_of("37,5") == percent_of(" 37.5 % ") == 37.5
    for text in ("1.000,5", "100.1", "1 0"):
        with pytest.raises(BadInput):
            percent_of(text)


def test_a_share_that_may_mean_two_things_deletes_nothing(made: Made, qtbot: QtBot) -> None:
    window = opened(made, FakeHands())
    press(qtbot, window, "proxy", "purge")
    dialog = asking(qtbot, window, PurgeDialog)
    dialog.field.selectAll()
    qtbot.keyClicks(dialog.field, "1,000")
    assert not dialog.delete.isEnabled()
    assert "1,000 or 1000 %? Write 1." in said(dialog)
    dialog.field.selectAll()
    qtbot.keyClicks(dialog.field, "37,5")
    assert dialog.delete.isEnabled()
    dialog.reject()
    over(qtbot, window)


def test_what_others_would_feel_is_agreed_to_first(made: Made, qtbot: QtBot) -> None:
    work = FakeHands(questions=(ASKED,))
    window = opened(made, work)
    press(qtbot, window, "proxy", "fill")
    dialog = asking(qtbot, window, AgreementDialog)
    assert dialog.windowTitle() == "Fill the cache although others would feel it?"
    qtbot.mouseClick(dialog.cancel, LEFT_BUTTON)
    over(qtbot, window)
    assert work.agreed == []
    press(qtbot, window, "proxy", "fill")
    dialog = asking(qtbot, window, AgreementDialog)
    dialog.checks[0].setChecked(True)
    qtbot.mouseClick(dialog.run, LEFT_BUTTON)
    over(qtbot, window)
    assert work.agreed == [frozenset({"purge"})]


def test_a_fill_can_be_left(made: Made, qtbot: QtBot) -> None:
    work = FakeHands()
    work.go.clear()
    window = opened(made, work)
    press(qtbot, window, "proxy", "fill")
    qtbot.waitUntil(lambda: bool(work.agreed), timeout=FOREVER_MS)
    press(qtbot, window, "proxy", "cancel")
    over(qtbot, window)
    assert "The fill was stopped." in told(window)
    assert work.done == []
    assert window.lab_page.inspector.cache.fill.isEnabled()


def held(qtbot: QtBot, window: MainWindow, text: str = "64/128 kbit/s") -> None:
    page = window.lab_page
    page.picture.select(THE_LINE)
    page.inspector.line.field.setFocus()
    page.inspector.line.field.lineEdit().selectAll()
    qtbot.keyClicks(page.inspector.line.field.lineEdit(), text)
    qtbot.keyClick(page.inspector.line.field.lineEdit(), Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.deeds.by_hand.known.line is not None, timeout=FOREVER_MS)


def test_a_line_is_held_under_a_lease_that_counts_and_taken_back(made: Made, qtbot: QtBot) -> None:
    work = FakeHands()
    window = opened(made, work)
    page, box = window.lab_page, window.lab_page.inspector.line
    held(qtbot, window)
    assert page.shown.line.line == Line(upload_bps=64_000, download_bps=128_000)
    assert page.shown.line.word == "held by hand, read back"
    assert "Its lease has 29 s left of 30" in said(box)
    work.held.left_s = 26.0
    qtbot.waitUntil(lambda: "26 s left" in said(box), timeout=FOREVER_MS)
    window.shown.tell_frame()
    assert "64/128" in said(window._top)
    # Nothing else may begin, and says why.
    window.start_run(small())
    assert "A line is held by hand." in told(window)
    assert not window.running
    page.check.click()
    assert not window.deeds.checking.busy
    qtbot.mouseClick(box.back, LEFT_BUTTON)
    over(qtbot, window)
    assert work.done == ["lifted"]
    assert "The line was taken back." in told(window)
    assert page.shown.line.line is None
    assert box.apply.isEnabled()


def test_a_line_is_understood_while_it_is_typed(made: Made, qtbot: QtBot) -> None:
    window = opened(made, FakeHands())
    box = window.lab_page.inspector.line
    window.lab_page.picture.select(THE_LINE)
    assert box.field.currentText() == "512/1024 kbit/s"  # the experiment's first
    for text, verdict, allowed in (
        ("2M/4M 40 ms", "= 2/4 Mbit/s 40 ms", True),
        ("as it is", "nothing is applied", False),
        ("fast", "fast", False),
        ("", "", False),
        ("128/64 kbit/s", "is above the download", True),
    ):
        box.field.setEditText(text)
        assert verdict in said(box)
        assert box.apply.isEnabled() == allowed, text


def test_the_window_waits_until_its_line_is_taken_back(made: Made, qtbot: QtBot) -> None:
    work = FakeHands()
    window = opened(made, work)
    held(qtbot, window)
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        window.close()
        assert window.isVisible()
    assert work.done == ["lifted"]


def test_who_closes_twice_does_not_wait_for_a_host(made: Made, qtbot: QtBot) -> None:
    work = FakeHands()
    work.go.clear()
    window = opened(made, work)
    press(qtbot, window, "proxy", "fill")
    qtbot.waitUntil(lambda: bool(work.agreed), timeout=FOREVER_MS)
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        window.close()
        window.close()
    assert work.done == ["cut"]


def test_a_lost_host_is_told(made: Made, qtbot: QtBot) -> None:
    window = opened(made, FakeHands(trouble=ConnectionLost("it is gone", host="proxy")))
    press(qtbot, window, "proxy", "fill")
    over(qtbot, window)
    assert "proxy: it is gone" in told(window)


def test_while_a_run_goes_everything_is_off_and_says_why(made: Made, qtbot: QtBot) -> None:
    work = FakeHands()
    window = opened(made, work, FakeTestbed(pace=0.02))
    press(qtbot, window, "proxy", "fill")
    over(qtbot, window)
    started(qtbot, window, small(), done=1)
    window.show_page(LAB)
    page = window.lab_page
    page.picture.select("proxy")
    assert not page.inspector.cache.fill.isEnabled()
    assert not page.inspector.cache.purge.isEnabled()
    assert HELD_BY_RUN in said(page.inspector.cache)
    assert page.hand.cache is None  # the run makes the cache anew
    page.picture.select(THE_LINE)
    assert not page.inspector.line.apply.isEnabled()
    page.filled.emit(small())
    assert "A run is going." in told(window)
    assert work.done == ["get"]


def test_another_lab_is_not_told_of_this_ones_cache(made: Made, qtbot: QtBot) -> None:
    window = opened(made, FakeHands())
    press(qtbot, window, "proxy", "fill")
    over(qtbot, window)
    window.show_lab(replace(OFFICE, name="Other"), (small(),), {})
    assert window.lab_page.hand.cache is None
    window.lab_page.picture.select(THE_LINE)
    held(qtbot, window)
    assert window.lab_page.hand.cache is None
    press(qtbot, window, THE_LINE, "back")
    over(qtbot, window)


def test_without_a_cache_or_an_experiment_nothing_is_offered(made: Made, qtbot: QtBot) -> None:
    window = opened(made, FakeHands())
    bare = replace(OFFICE, hosts=tuple(replace(host, cache=None) for host in OFFICE.hosts))
    window.show_lab(bare, (small(),), {})
    window.lab_page.picture.select("proxy")
    assert not window.lab_page.inspector.cache.isVisible()
    window.show_lab(OFFICE, (), {})
    window.lab_page.picture.select("proxy")
    assert not window.lab_page.inspector.cache.fill.isEnabled()
    assert "no experiment" in said(window.lab_page.inspector.cache)


def test_every_deed_is_in_the_list_of_actions(made: Made, qtbot: QtBot) -> None:
    window = opened(made, FakeHands())
    names = {action.name: action for action in doable(window)}
    assert {"Fill the cache", "Purge the cache …", "Apply a line …"} <= set(names)
    names["Apply a line …"].do()
    qtbot.waitUntil(lambda: window.lab_page.inspector.line.field.isVisible())
    held(qtbot, window)
    names = {action.name: action for action in doable(window)}
    assert "Fill the cache" not in names
    names["Take the line back"].do()
    over(qtbot, window)


def test_what_is_typed_stays_while_the_inspector_is_made_anew(made: Made, qtbot: QtBot) -> None:
    window = active(qtbot, opened(made, FakeHands()))
    page = window.lab_page
    page.picture.select(THE_LINE)
    page.inspector.line.field.setEditText("3/6 Mbit/s")
    page.picture.select("proxy")
    page.picture.select(THE_LINE)
    assert page.inspector.line.field.currentText() == "3/6 Mbit/s"
    page.inspector.line.field.setFocus()
    page.inspector._fill()
    assert QApplication.focusWidget() in (page.inspector.line.field, page.inspector.line.field.lineEdit())


def test_a_cut_of_other_objects_leaves_it_open_how_full_the_cache_is() -> None:
    full = CacheKnown(objects=150, bytes=15_000, listed=150, here=150, here_bytes=15_000, listed_bytes=15_000)
    left = replace(FOUND, objects=OBJECTS[:135])
    done = Purged(before=FOUND, after=left, asked=15, removed=15)
    assert counted(left, full, done).full == 90
    # Objects of the repository that no fill brought in may be those that went.
    assert counted(left, replace(full, objects=160), done).full is None
    assert counted(left, None, done).full is None
    assert sentence(None) == ""
    listed = frozenset(one.key for one in OBJECTS[:75])
    assert filled(Filled(operation="get", before=FOUND, after=FOUND, listed=listed)).listed == 75


# ---- zoom and keys


def test_the_picture_is_zoomed_by_keys_and_wheel(made: Made, qtbot: QtBot) -> None:
    window = opened(made, FakeHands())
    page = window.lab_page
    page.picture.setFocus()
    control = Qt.KeyboardModifier.ControlModifier
    qtbot.keyClick(page.picture, Qt.Key.Key_Plus, control)
    assert page._percent.text() == "110 %"
    qtbot.keyClick(page.picture, Qt.Key.Key_Minus, control)
    qtbot.keyClick(page.picture, Qt.Key.Key_Minus, control)
    assert page._percent.text() == "91 %"
    qtbot.keyClick(page.picture, Qt.Key.Key_0, control)
    assert page._percent.text() == "100 %"
    for turned, modifiers, percent in ((120, control, "110 %"), (-120, control, "100 %")):
        at = QPointF(200, 200)
        event = QWheelEvent(
            at, page.picture.mapToGlobal(at), QPoint(), QPoint(0, turned), Qt.MouseButton.NoButton,
            modifiers, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(page.picture.viewport(), event)
        assert page._percent.text() == percent


def test_each_item_of_the_picture_is_reached_by_keys_and_enter_goes_beside_it(
    made: Made, qtbot: QtBot
) -> None:
    window = active(qtbot, opened(made, FakeHands()))
    page = window.lab_page
    page.picture.setFocus()
    seen = []
    for _ in range(4):
        qtbot.keyClick(page.picture, Qt.Key.Key_Tab)
        seen.append(page.picture.current)
    assert seen == ["client", "proxy", "server", THE_LINE]
    qtbot.keyClick(page.picture, Qt.Key.Key_Return)
    assert page.inspector.selected == THE_LINE
    assert page.inspector.isAncestorOf(QApplication.focusWidget())


# ---- on real hosts


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_fill_purge_and_a_line_on_real_hosts(made: Made, qtbot: QtBot) -> None:
    with embedded.up() as lab:
        before = real_runs.Hosts.of(lab.folder)
        window = made(handing=lambda one, wanted, passwords: Hands(one, wanted, passwords=passwords))
        window.show_lab(lab.lab, (real_runs.experiment(lines=(real_runs.QUICK_LINE,)),), {})
        window.show_page(LAB)
        press(qtbot, window, "proxy", "fill")
        over(qtbot, window)
        assert "150 of 150 objects" in told(window)
        press(qtbot, window, "proxy", "purge")
        dialog = asking(qtbot, window, PurgeDialog)
        qtbot.mouseClick(dialog.delete, LEFT_BUTTON)
        over(qtbot, window)
        assert window.lab_page.shown.cache == 90
        held(qtbot, window)
        assert "htb" in real_runs.on(lab.folder, "server", "tc qdisc show dev eth0")
        press(qtbot, window, THE_LINE, "back")
        over(qtbot, window)
        assert "nothing that limits it" in told(window)
        press(qtbot, window, "proxy", "purge")
        dialog = asking(qtbot, window, PurgeDialog)
        qtbot.keyClicks(dialog.field, "100")
        qtbot.mouseClick(dialog.delete, LEFT_BUTTON)
        over(qtbot, window)
        assert "135 of 135 objects were taken out" in told(window)
        real_runs.await_same(lab.folder, before)
