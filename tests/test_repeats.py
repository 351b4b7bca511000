"""Trials done again in the same run: which, under which numbers, and what counts then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_testbed import FakeTestbed, small

from lab import repeats, runner, store
from lab.analysis.summary import summarised
from lab.cli import tables
from lab.errors import BadInput
from lab.events import Event, Outcome, RunContinued, Standing, TrialStarted
from lab.live import Live
from lab.model import Host, Lab, Role
from lab.stop import Stop

LAB = Lab(
    name="Fake",
    hosts=tuple(Host(name=role.value, role=role, ssh="x") for role in (Role.CLIENT, Role.PROXY, Role.SERVER)),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.branchlab"


def measured(path: Path, bed: FakeTestbed, until: int = 99) -> None:
    """A run of 12 trials in this file, stopped (and given up) amid trial `until`."""
    stop = Stop()
    for event in store.recorded(runner.run(small(), bed, stop, lab_name="Fake", run_id="r1"), path):
        if isinstance(event, TrialStarted) and event.trial == until:
            stop.request()


def again(path: Path, bed: FakeTestbed) -> list[Event]:
    """Repeat what went wrong."""
    with store.opened(path) as record:
        known = record.told()
    repeats.refuse_others(known, LAB, small())
    return list(store.continued(runner.repeat(known, bed, Stop()), path))


def test_failed_and_void_trials_get_numbers_of_their_own_and_their_cells_a_warm_up(path: Path) -> None:
    measured(path, FakeTestbed(failing={6: "svn: no"}, void={9: "not quiet"}))
    with store.opened(path) as record:
        known = record.told()
    assert [trial.number for trial in known.amiss] == [6, 9]
    done = known.again
    assert [trial.number for trial in done] == list(range(13, 13 + len(done)))
    assert {6, 9} < {trial.repeats for trial in done}
    others = [known.trials[trial.repeats] for trial in done if trial.repeats not in (6, 9)]
    assert all(trial.warm_up for trial in others)
    cells = {known.trials[n].treatment for n in (6, 9)}
    assert {trial.treatment for trial in others} == cells


def test_the_newest_counts_and_nothing_is_dropped(path: Path) -> None:
    measured(path, FakeTestbed(failing={6: "svn: no"}, void={9: "not quiet"}))
    events = again(path, FakeTestbed())
    assert isinstance(events[0], RunContinued)
    with store.opened(path) as record:
        known, seen, head = record.told(), list(record.events()), record.head
        raw = record.trials()
    assert (head.planned, head.finished, head.outcome) == (12, 12, "done")
    assert [one.standing for one in raw if one.trial in (6, 9)] == [Standing.FAILED, Standing.VOID]
    assert len(raw) == 12 + len(known.trials) - 12
    summary = summarised(seen)
    assert summary.complete
    assert set(summary.standings) == {"kept", "warm-up"}
    assert sum(summary.standings.values()) == 12
    assert set(summary.repeated) == {6, 9}
    assert all(cell.kept == 2 and not cell.failed and not cell.void for cell in summary.cells)
    assert any(text.startswith("Repeated") and "6 by" in text for text in tables.remarks(summary))


def test_exports_have_every_row_and_say_which_gave_way(path: Path) -> None:
    measured(path, FakeTestbed(failing={6: "svn: no"}))
    again(path, FakeTestbed())
    trials = store.frames(path).trials.set_index("trial")
    by = int(trials.loc[6, "repeated_by"])
    assert trials.loc[6, "standing"] == "failed"
    assert int(trials.loc[by, "repeats"]) == 6
    assert trials.loc[by, "standing"] == "kept"
    assert trials["repeats"].isna().sum() == 12


def test_what_fails_again_can_be_repeated_again(path: Path) -> None:
    measured(path, FakeTestbed(failing={6: "svn: no"}))
    again(path, FakeTestbed(failing={13: "svn: no", 14: "svn: no"}))
    assert not summarised(list(_events(path))).complete
    again(path, FakeTestbed())
    summary = summarised(list(_events(path)))
    assert summary.complete
    assert len(set(summary.repeated.values())) < len(summary.repeated)  # two records gave way to one


def _events(path: Path) -> list[Event]:
    with store.opened(path) as record:
        return list(record.events())


def test_of_a_stopped_run_the_missing_trials_are_done_under_their_own_numbers(path: Path) -> None:
    measured(path, FakeTestbed(), until=5)
    again(path, FakeTestbed())
    with store.opened(path) as record:
        known = record.told()
        assert record.outcome is Outcome.DONE
    assert not known.amiss
    assert set(range(6, 13)) <= set(known.finished)
    assert 5 not in known.finished  # begun and given up: its samples are no other trial's
    assert known.trials[next(n for n, t in known.trials.items() if t.repeats == 5)].repeats == 5
    summary = summarised(_events(path))
    assert summary.complete
    assert not summary.repeated  # nothing that had a record


def test_the_live_picture_shows_the_newest_and_counts_the_plan(path: Path) -> None:
    measured(path, FakeTestbed(failing={6: "svn: no"}, void={9: "not quiet"}))
    live = Live()
    for event in _events(path):
        live.apply(event)
    assert (live.done, live.amiss, live.running) == (12, 2, False)
    for event in again(path, FakeTestbed()):
        live.apply(event)
        if isinstance(event, RunContinued):
            assert live.running
            assert live.done == 12 - len(event.trials)
    assert (live.done, live.total, live.amiss, live.outcome) == (12, 12, 0, Outcome.DONE)
    assert {6, 9} <= set(live.repeated)
    assert live.counts["failed"] == live.counts["void"] == 0
    assert all(cell.left == 0 and cell.kept == 2 for cell in live.cells.values())
    fresh = Live()
    for event in _events(path):
        fresh.apply(event)
    assert (fresh.done, fresh.standing, fresh.counts) == (live.done, live.standing, live.counts)


def test_another_lab_experiment_or_data_is_refused(path: Path) -> None:
    measured(path, FakeTestbed(failing={6: "svn: no"}))
    with store.opened(path) as record:
        known = record.told()
    for lab, asked, word in (
        (replace(LAB, name="Other"), small(), "measured in the lab `Fake`"),
        (replace(LAB, hosts=LAB.hosts[:2]), small(), "it has no server `server`"),
        (LAB, small(seed=1), "asked something else"),
    ):
        with pytest.raises(BadInput, match=word):
            repeats.refuse_others(known, lab, asked)
    known.data = {"revision": 99}
    *_, end = runner.repeat(known, FakeTestbed(), Stop())
    assert end.outcome is Outcome.FAILED
    assert "revision was 99, and is 100" in end.reason


def test_where_nothing_is_amiss_nothing_is_repeated(path: Path) -> None:
    measured(path, FakeTestbed())
    with pytest.raises(BadInput, match="nothing to repeat"):
        again(path, FakeTestbed())


def test_a_file_says_that_it_needs_this_version_only_once_it_does(path: Path) -> None:
    import sqlite3
    from contextlib import closing

    measured(path, FakeTestbed(failing={6: "svn: no"}))
    for schema in (1, 2):
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA user_version").fetchone() == (schema,)
        if schema == 1:
            again(path, FakeTestbed())
