"""The window against what should not happen: damaged files, hosts that hang, floods, faults, a second run."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import FakeTestbed, experiment, small
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, FRAME_S, HOSTS, made, ran, started, timed

from gui import app, asking, reading
from gui.asking import CloseDialog
from gui.found import OpenedProfile
from gui.main_window import MainWindow
from gui.opening import Then
from gui.report import DefectDialog, Trouble
from gui.run import stopping
from gui.telling import LAB, RESULTS, RUN, START
from gui.theme import marks
from gui.worker import Worker
from lab import runner, store
from lab.draft import Draft
from lab.errors import BadInput
from lab.events import Event, OutputSeen, TrialFinished
from lab.live import Live
from lab.model import Host, Lab, Role, Trial
from lab.profile import Profile
from lab.stop import Stop

__all__ = ["made"]
Made = Callable[..., MainWindow]


def recorded(path: Path, until: int | None = None, **bed: object) -> Path:
    """A run's file; with `until`, one whose writer left after so many events."""
    told = store.recorded(runner.run(small(), FakeTestbed(samples=2, **bed), Stop(), lab_name="Minsk"), path)
    for number, _ in enumerate(told):
        if number == until:
            told.close()
            break
    return path


def edited(path: Path, change: Callable[[str, dict], dict | None]) -> Path:
    """The file, with its events changed one by one."""
    db = sqlite3.connect(path)
    for number, kind, text in db.execute("SELECT id, kind, json FROM events").fetchall():
        event = change(kind, json.loads(text))
        if event is None:
            db.execute("DELETE FROM events WHERE id = ?", (number,))
        else:
            db.execute("UPDATE events SET json = ? WHERE id = ?", (json.dumps(event), number))
    db.commit()
    db.close()
    return path


def _without_start(kind: str, event: dict) -> dict | None:
    return None if kind == "run-started" else event


def _not_a_number(kind: str, event: dict) -> dict | None:
    return {**event, "wall_s": float("nan")} if kind == "trial-finished" else event


def _nothing(kind: str, event: dict) -> dict | None:
    return None


@pytest.mark.parametrize("change", [_without_start, _not_a_number, _nothing])
def test_a_damaged_run_is_told_in_words_and_is_no_fault_of_ours(
    made: Made, qtbot: QtBot, tmp_path: Path, change: Callable[[str, dict], dict | None]
) -> None:
    path = edited(recorded(tmp_path / "bad.branchlab"), change)
    window = made()
    window.open_run(path)
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)
    assert "bad.branchlab" in window._banner._title.text()
    assert window._page == START
    assert not window.findChildren(DefectDialog)


def test_a_role_that_nobody_knows_leaves_the_other_hosts(made: Made, qtbot: QtBot, tmp_path: Path) -> None:
    def change(kind: str, event: dict) -> dict:
        return {**event, "role": "toaster"} if event.get("role") == "proxy" else event

    path = edited(recorded(tmp_path / "odd.branchlab"), change)
    window = made()
    window.shown.lab = None
    window.lab_page.show_lab(None, (), {})
    window.open_run(path)
    qtbot.waitUntil(lambda: window._page == RESULTS, timeout=FOREVER_MS)
    window.show_page(LAB)
    assert [host.name for host in window.lab_page.shown.hosts] == ["client", "server"]


def test_a_file_that_another_program_still_writes_shows_no_run_to_stop(
    made: Made, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "going.branchlab"
    writing = store.recorded(runner.run(small(), FakeTestbed(samples=2), Stop()), path)
    for event in writing:
        if isinstance(event, TrialFinished):
            break
    window = made()
    window.open_run(path)
    qtbot.waitUntil(lambda: window._page == RESULTS, timeout=FOREVER_MS)
    window.show_page(RUN)
    QApplication.processEvents()
    assert not window.live.running
    assert not window.run_page.stop.isVisible()
    assert "still being written" in window.run_page._rest.text()
    writing.close()


def test_a_run_from_a_file_says_nothing_of_hosts_now(made: Made, qtbot: QtBot, tmp_path: Path) -> None:
    path = recorded(tmp_path / "old.branchlab")
    window = made()
    window.open_run(path)
    qtbot.waitUntil(lambda: window._page == RESULTS, timeout=FOREVER_MS)
    window.show_page(LAB)
    window.shown.tell_frame()
    assert {host.word for host in window.lab_page.shown.hosts} == {"not checked"}
    assert window._top._shown == ()
    window.shown.lab = None
    window.lab_page.show_lab(None, (), {})
    assert {host.sign for host in window.lab_page.shown.hosts} == {marks.UNKNOWN}
    assert window.lab_page.shown.line.sign == marks.UNKNOWN


def test_stop_at_once_can_be_pressed_while_nothing_happens_at_all(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that hangs between two trials tells nothing: no event asks for a redraw."""
    window = made()
    live = Live()
    for event in runner.run(small(), FakeTestbed(), Stop()):
        live.apply(event)
        if live.done == 2:
            break
    window.show_live(live)
    window.show_page(RUN)
    window.run_page.stop.stop_now()
    assert live.current is None
    window.shown._dirty = False
    monkeypatch.setattr(stopping, "HARD_AFTER_S", 0.0)
    window.shown.tick()
    assert window.run_page.stop.word == "Stop at once"
    assert window.run_page.stop.isEnabled()
    cuts: list[int] = []
    window.run_page.cut.connect(lambda: cuts.append(1))
    window.run_page.stop.click()
    assert cuts == [1]


class Hanging(FakeTestbed):
    """Hangs in the middle of putting a trial back, until it is cut off."""

    def __init__(self) -> None:
        super().__init__()
        self._cut = threading.Event()

    def cut(self) -> None:
        self._cut.set()

    @contextmanager
    def treated(self, trial: Trial, stop: Stop) -> Iterator[Iterator[Event]]:
        with super().treated(trial, stop) as preparing:
            yield preparing
        if trial.number == 2:
            self._cut.wait(60)


def test_stop_at_once_ends_a_run_that_hangs(
    made: Made, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "HARD_AFTER_S", 0.2)
    window = made(Hanging())
    started(qtbot, window, small())
    window.run_page.stop.stop_now()
    qtbot.waitUntil(
        lambda: window.run_page.stop.word == "Stop at once" and window.run_page.stop.isEnabled(),
        timeout=FOREVER_MS,
    )
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.run_page.stop.click()
    assert window.live.done == 2


def test_whoever_hears_the_last_word_finds_the_worker_free(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a window that waits for its run's end to close would see it busy, and never close."""
    plain = Worker._tell

    def slow(signal: object, value: object) -> None:
        plain(signal, value)
        time.sleep(0.3)

    monkeypatch.setattr(Worker, "_tell", staticmethod(slow))
    worker, busy = Worker(), []
    worker.ended.connect(lambda _: busy.append(worker.busy))
    with qtbot.waitSignal(worker.ended, timeout=FOREVER_MS):
        worker.start(iter(()))
    assert busy == [False]
    worker.wait(30)


def test_answers_asked_for_while_others_are_made_are_made_too(made: Made, qtbot: QtBot) -> None:
    """The last ones are: a run ends while its answers so far are on their way."""
    window = made()
    ran(qtbot, window, small())
    kept = list(window.runs.kept)
    window.runs.kept = kept[:3]
    window.runs.sum_up()
    window.runs.kept = kept
    window.runs.sum_up()
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)
    assert window.summary is not None
    assert window.summary.finished is not None


def test_a_run_without_a_window_still_says_how_it_went(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.05, failing={5: "svn: no"}))
    started(qtbot, window, small(), done=1)
    window.close()
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        window.findChildren(CloseDialog)[0].go_on.click()
    assert app._code(window) == app.INCOMPLETE


def test_a_second_run_or_lab_waits_for_the_first(made: Made, qtbot: QtBot, tmp_path: Path) -> None:
    window = made(FakeTestbed(pace=0.02))
    started(qtbot, window, experiment(), done=1)
    run = window.live.run
    other = Lab(name="Other", hosts=(Host(name="x", role=Role.CLIENT, ssh="x"),))
    opened = OpenedProfile(Draft(), Profile(path=tmp_path / "other.toml", lab=other, experiments=()), {})
    deeds: list[Callable[[], None]] = [
        lambda: window.start_run(small()),
        lambda: window.opened.profile(opened, Then()),
        window.opening.make_hosts,
        lambda: window.open_profile(tmp_path / "none.toml", run=True),
    ]
    for deed in deeds:
        window._banner.hide()
        deed()
        assert window._banner.isVisible()
        assert window._banner._title.text() == "A run is going."
    assert window.document.profile is None
    assert not [worker for worker in window._jobs.findChildren(Worker) if worker.busy]
    assert window.live.run == run
    assert window.shown.lab is HOSTS
    assert window.running


def test_a_fault_in_what_paints_opens_one_dialog_not_one_per_frame(made: Made, qtbot: QtBot) -> None:
    window = made()
    for _ in range(20):
        window._broken("Traceback: the same again")
    dialogs = window.findChildren(DefectDialog)
    assert len(dialogs) == 1
    dialogs[0].close()
    qtbot.waitUntil(lambda: not window.findChildren(DefectDialog), timeout=FOREVER_MS)
    window._broken("another one")
    assert len(window.findChildren(DefectDialog)) == 1
    window.findChildren(DefectDialog)[0].close()


def test_a_banner_breaks_words_that_no_line_could_hold(made: Made) -> None:
    window = made()
    window.resize(1280, 720)
    window.show_page(RUN)
    window._tell(Trouble(title="x" * 900, text="y" * 900))
    QApplication.processEvents()
    assert window._banner.minimumSizeHint().width() < 900
    assert window.run_page.minimumSizeHint().width() <= 1196


def test_huge_outputs_are_cheap(made: Made) -> None:
    window = made()
    window.resize(1440, 1000)
    live = Live()
    for event in runner.run(small(), FakeTestbed(), Stop()):
        live.apply(event)
        if event.kind == "command-started":
            break
    window.show_live(live)
    window.show_page(RUN)
    QApplication.processEvents()
    text = window.run_page.output._text
    assert text.isVisible()
    line = "\x1b[31m" + "x" * 3000 + "\x1b[0m\n"
    spent = []
    for _ in range(5):
        began = time.thread_time()
        live.apply(OutputSeen(trial=live.trials[0].number, stream="stdout", text=line * 60))
        window.shown.mark()
        window.shown.tick()
        spent.append(time.thread_time() - began)
    assert min(spent) < FRAME_S
    assert "\x1b" not in text.toPlainText()
    assert len(text.toPlainText()) < 500_000


def test_the_clock_on_slots_would_see_a_slow_one(
    made: Made, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `test_no_slot_holds_the_window_for_a_frame`: it can fail."""
    spent = timed(monkeypatch)
    window = made()
    window.show_page(RUN)

    def slow() -> None:
        end = time.thread_time() + 2 * FRAME_S
        while time.thread_time() < end:
            pass

    monkeypatch.setattr(window.run_page, "redraw", slow)
    window.shown.mark()
    window.shown.tick()
    assert max(spent)[0] > FRAME_S


def test_the_suffix_of_an_export_follows_what_was_chosen(made: Made, qtbot: QtBot) -> None:
    window = made()
    asking.ask_target(window, "Export", "Table (*.csv);;JSON lines (*.jsonl)", lambda path: None)
    dialog = window.findChildren(QFileDialog)[0]
    assert dialog.defaultSuffix() == "csv"
    dialog.filterSelected.emit("JSON lines (*.jsonl)")
    assert dialog.defaultSuffix() == "jsonl"
    dialog.close()


def test_a_stopped_file_opens_as_stopped(made: Made, qtbot: QtBot, tmp_path: Path) -> None:
    path = recorded(tmp_path / "cut.branchlab", until=60)
    copy = tmp_path / "copy.branchlab"
    shutil.copy(path, copy)
    window = made()
    window.open_run(copy)
    qtbot.waitUntil(lambda: window._page == RESULTS, timeout=FOREVER_MS)
    assert not window.live.running
    assert 0 < window.live.done < 12


def test_what_no_event_of_ours_would_say_is_bad_input(tmp_path: Path) -> None:
    path = edited(recorded(tmp_path / "bad.branchlab"), _not_a_number)
    with pytest.raises(BadInput, match="damaged"):
        list(reading.opened(path))
