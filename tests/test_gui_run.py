"""The Run page: both ways to stop, hosts that are lost and found again, repeating, and going on without a window."""

from __future__ import annotations

import threading

import pytest
from fake_testbed import FakeTestbed, experiment, small
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, Made, choose, made, press_stop, ran, started

from gui.doable import doable
from gui.report import Trouble
from gui.telling import LAB, RUN
from gui.theme import marks
from lab import sleeping, store
from lab.errors import ConnectionLost
from lab.events import HostSeen, Noted, Outcome, TrialStarted

__all__ = ["made"]


def test_stop_offers_two_ways_in_words_and_esc_chooses_none(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.05))
    started(qtbot, window, experiment())
    qtbot.waitUntil(lambda: window.live.current is not None, timeout=FOREVER_MS)
    menu = press_stop(qtbot, window)
    assert [action.text() for action in menu.actions()] == [
        "Stop after this trial\tit is measured to its end",
        "Stop now\tit is given up; finished ones stay",
    ]
    qtbot.keyClick(menu, Qt.Key.Key_Escape)
    assert window.running
    assert not window.run_page.stop.stopping


def test_stop_after_this_trial_ends_with_its_measurement(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.1))
    started(qtbot, window, experiment(), done=1)
    qtbot.waitUntil(
        lambda: window.live.current is not None and bool(window.live.current.argv), timeout=FOREVER_MS
    )
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        choose(qtbot, window, "Stop after this trial")
        assert not window.run_page.pause.isEnabled()
        assert window.run_page._rest.text().endswith("then the run stops")
    assert window.live.outcome is Outcome.STOPPED
    assert window.run_path is not None
    with store.opened(window.run_path) as record:
        begun = [event.trial for event in record.events() if isinstance(event, TrialStarted)]
        ended = record.trials()
    assert begun == [one.trial for one in ended]  # none was given up
    assert len(begun) < window.live.total
    assert ended[-1].wall_s is not None


def test_stop_after_this_trial_is_taken_back_in_the_same_place(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.05))  # long trials: none may end between the two choices
    started(qtbot, window, small(), done=1)
    qtbot.waitUntil(lambda: window.live.current is not None, timeout=FOREVER_MS)
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.run_page.stop.ways()[0][2]()
        choose(qtbot, window, "Go on after this trial")
    assert window.live.outcome is Outcome.DONE


def test_actions_offer_both_ways(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.05))
    started(qtbot, window, experiment(), done=1)
    names = [action.name for action in doable(window) if action.group == "Run"]
    assert names[0] == "Pause"
    assert names[1].startswith("Stop ")
    assert names[2] == "Stop now"


def test_a_lost_host_is_shown_until_it_is_found(made: Made, qtbot: QtBot) -> None:
    window = made()
    seen = HostSeen(host="proxy", role="proxy", facts={})
    ran(qtbot, window, small())
    live = window.live
    live.outcome = None  # as amid a run
    live.apply(Noted(text="proxy: silent for 30 s. The hosts are connected to again", lost="proxy"))
    window.show_page(RUN)
    window.run_page.redraw()
    assert window.run_page._what.text() == "Lost: proxy"
    assert window.run_page._sign.sign == marks.TROUBLE
    window.show_page(LAB)
    window.lab_page.refresh()
    proxy = next(host for host in window.lab_page.shown.hosts if host.name == "proxy")
    assert (proxy.sign, proxy.word) == (marks.TROUBLE, "lost, and looked for again")
    live.apply(seen)
    window.lab_page.refresh()
    proxy = next(host for host in window.lab_page.shown.hosts if host.name == "proxy")
    assert (proxy.sign, proxy.word) == (marks.OK, "ready; was lost, and found again")
    window.run_page.redraw()
    assert window.run_page._what.text() != "Lost: proxy"


def test_a_host_lost_amid_a_run_is_survived_and_told(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(at={3: ConnectionLost("silent for 30 s", host="proxy")}))
    banners: list[Trouble] = []
    window.story.told.connect(banners.append)
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())
    assert window.live.outcome is Outcome.DONE
    assert window.live.standing[3] == "failed"
    texts = [note.text for note in window.live.notes]
    assert texts[0].startswith("proxy: silent for 30 s")
    assert texts[1] == "proxy was found again; 9 trials are left"
    assert not window.live.lost
    assert [(banner.title, banner.grade) for banner in banners] == [(texts[0], "trouble"), (texts[1], "info")]
    assert banners[0].text.startswith("Finished trials are kept.")


def test_nothing_is_shown_as_of_now_that_was_heard_before_a_sleep(made: Made, qtbot: QtBot) -> None:
    """Rates, the curve's end and the line's lanes; the clock of the trial goes on, as its host does."""
    gate = threading.Event()
    window = made(FakeTestbed(held={4: gate}))
    started(qtbot, window, small(), done=3)
    live = window.live
    qtbot.waitUntil(lambda: live.rate("server>client") not in (0.0, None), timeout=FOREVER_MS)
    window.show_page(LAB)
    window.lab_page.redraw()
    assert any("↓" in text and "—" not in text for text in window.lab_page.picture.rates.texts.values())
    live._clock = lambda: sleeping.elapsed_s() + 600
    window.lab_page.redraw()
    assert set(window.lab_page.picture.rates.texts.values()) == {"↓ —  ↑ — bit/s"}
    window.show_page(RUN)
    window.run_page.redraw()
    assert window.run_page._rest.text().endswith("nothing heard for 10\N{NO-BREAK SPACE}min")
    assert set(window.run_page.traffic._names.rates.values()) == {("—", "—")}
    plot = window.run_page.traffic._plot
    assert plot is not None
    assert not any(len(curve.getData()[0]) for curve in plot._curves.values())  # the minute is one of silence
    gate.set()
    qtbot.waitUntil(lambda: live.outcome is not None, timeout=FOREVER_MS)
    window.run_page.redraw()
    assert set(window.run_page.traffic._names.rates.values()) == {("0", "0")}
    window.show_page(LAB)
    window.lab_page.redraw()
    assert window.lab_page.picture.rates.texts == {}


def test_of_a_line_nothing_is_known_while_a_host_is_lost(made: Made, qtbot: QtBot) -> None:
    gate = threading.Event()
    window = made(FakeTestbed(held={4: gate}))
    started(qtbot, window, small(), done=3)
    qtbot.waitUntil(lambda: window.live.current is not None, timeout=FOREVER_MS)
    window.show_page(LAB)
    window.lab_page.refresh()
    assert window.lab_page.shown.line.word == "read back and measured"
    assert ("Lease", "renewed while the run goes") in window.lab_page.shown.line.rows
    window.story.happened(Noted(text="proxy: silent for 30 s", grade="trouble", lost="proxy"))
    qtbot.waitUntil(lambda: window.lab_page.shown.line.sign == marks.UNKNOWN, timeout=FOREVER_MS)
    assert window.lab_page.shown.line.word == "not known: a host is lost"
    page = window.run_page
    window.show_page(RUN)
    qtbot.waitUntil(window._banner.isVisible, timeout=FOREVER_MS)
    # The banner takes what it needs and no more; nothing is left empty between matrix and plots.
    qtbot.waitUntil(lambda: page.head.height() == page.head.needed(), timeout=FOREVER_MS)
    qtbot.waitUntil(lambda: page._plots.y() - page._card.geometry().bottom() < 16, timeout=FOREVER_MS)
    gate.set()


def test_what_failed_is_repeated_by_a_click(made: Made, qtbot: QtBot) -> None:
    beds = [FakeTestbed(failing={3: "svn: no"}, void={5: "not quiet"}), FakeTestbed()]
    window = made(testbed=lambda lab, **_: beds.pop(0))
    ran(qtbot, window, small())
    window.show_page(RUN)
    window.run_page.redraw()
    assert window.run_page.again.word == "Repeat 2 failed trials"
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        qtbot.mouseClick(window.run_page.again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)
    assert window.live.outcome is Outcome.DONE
    assert window.live.amiss == 0
    assert not window.run_page.again.isVisible()
    assert window.summary is not None
    assert window.summary.complete
    assert set(window.summary.repeated) == {3, 5}


def test_what_failed_in_a_strangers_profile_is_not_repeated_before_a_person_agreed(
    made: Made, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = made(FakeTestbed(failing={3: "svn: no"}))
    ran(qtbot, window, small())
    held: list[object] = []
    monkeypatch.setattr(window.strangers, "before", held.append)
    window.show_page(RUN)
    window.run_page.redraw()
    window.story.repeat()
    assert len(held) == 1
    assert not window.looking
    assert not window.running


def test_a_run_of_another_lab_is_not_repeated_here(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(failing={3: "svn: no"}))
    ran(qtbot, window, small())
    window.live.lab = "Elsewhere"
    window.show_page(RUN)
    window.run_page.redraw()
    qtbot.mouseClick(window.run_page.again, Qt.MouseButton.LeftButton)
    assert "Elsewhere" in window._banner._title.text()
    assert not window.running
