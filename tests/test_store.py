"""One run, one file: written before it is shown, replayed as it was, whatever happened to the writer."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_testbed import FakeTestbed, experiment, small

from lab import runner, store
from lab.errors import BadInput, HostUnreachable, LabError
from lab.events import (
    CommandStarted,
    Event,
    Outcome,
    OutputSeen,
    RunFinished,
    RunStarted,
    Standing,
    TrafficSampled,
    TrialFinished,
    TrialStarted,
)
from lab.stop import Stop

DATA = Path(__file__).parent / "data"


def run(bed: FakeTestbed | None = None, run_id: str = "r1") -> Iterator[Event]:
    return runner.run(small(), bed or FakeTestbed(), Stop(), lab_name="Fake", run_id=run_id)


def written(path: Path, **more: str) -> list[Event]:
    return list(store.recorded(run(**more), path))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.branchlab"


def test_the_replay_is_the_run(path: Path) -> None:
    events = written(path)
    with store.opened(path) as record:
        assert list(record.events()) == events
        assert list(record.events(samples=False)) == [
            event for event in events if not isinstance(event, TrafficSampled)
        ]
        assert record.run_started == events[0]
        assert record.trials() == tuple(event for event in events if isinstance(event, TrialFinished))
        assert record.samples(3) == tuple(
            event for event in events if isinstance(event, TrafficSampled) and event.trial == 3
        )
        assert (record.outcome, record.reason) == (Outcome.DONE, "")


def test_it_is_one_file_when_it_is_closed(path: Path) -> None:
    written(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    # The header's two version bytes are 1 for a rollback journal, 2 for a write-ahead log.
    assert path.read_bytes()[18:20] == b"\x01\x01"


def test_every_event_is_in_the_file_before_it_is_passed_on(path: Path) -> None:
    for event in store.recorded(run(), path):
        if isinstance(event, TrafficSampled):
            continue
        with store.opened(path) as record:
            assert record.live
            assert list(record.events())[-1] == event or isinstance(event, RunFinished)
            if isinstance(event, TrialFinished):
                assert len(record.samples(event.trial)) == 10
            if not isinstance(event, RunFinished):
                assert (record.outcome, record.reason) == (Outcome.STOPPED, store.STILL_WRITTEN)
                assert record.head.told == "running"
        if isinstance(event, TrialFinished) and event.trial == 2:
            break


def test_an_abandoned_run_is_closed_well_and_given_a_last_word(path: Path) -> None:
    bed = FakeTestbed()
    inner = run(bed)  # held, so that only closing it takes things back, not its end of life
    events = store.recorded(inner, path)
    for event in events:
        if isinstance(event, TrafficSampled) and event.trial == 2:
            break
    events.close()  # type: ignore[attr-defined]
    assert bed.log[-2:] == ["restore 2", "close"]
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with store.opened(path) as record:
        assert not record.live
        end = list(record.events())[-1]
        assert isinstance(end, RunFinished)
        assert (end.outcome, end.reason) == (Outcome.STOPPED, store.NO_LAST_WORD)
        assert [result.trial for result in record.trials()] == [1]
        assert len(record.samples(2)) == 1


KILLED = """
    import os, signal, sys
    sys.path[:0] = {folders!r}
    from fake_testbed import FakeTestbed, small
    from lab import runner, store
    from lab.events import TrafficSampled
    from lab.stop import Stop
    from pathlib import Path
    for event in store.recorded(runner.run(small(), FakeTestbed(), Stop(), run_id="k"), Path({path!r})):
        if isinstance(event, TrafficSampled) and event.trial == 3:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(path: Path) -> None:
    """A writer that is killed in its third trial."""
    here = Path(__file__).parent
    script = textwrap.dedent(KILLED).format(folders=[str(here), str(here.parent)], path=str(path))
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert path.with_name(f"{path.name}-wal").exists()


def test_a_killed_run_has_all_its_finished_trials(path: Path) -> None:
    killed(path)
    with store.opened(path) as record:
        assert [result.trial for result in record.trials()] == [1, 2]
        assert len(record.samples(1)) == 10
        assert (record.outcome, record.reason, record.live) == (Outcome.STOPPED, store.NO_LAST_WORD, False)
        assert record.head.told == "broke off"
        assert [type(event) for event in record.events()][-2:] == [CommandStarted, RunFinished]
    assert [file.name for file in path.parent.iterdir()] == [path.name]  # one file again


@pytest.mark.skipif(os.name != "posix", reason="folders are made read-only with modes")
def test_a_killed_run_can_be_read_where_nothing_can_be_written(path: Path) -> None:
    killed(path)
    path.with_name(f"{path.name}-shm").unlink()  # as on a copy of the two files that matter
    assert read_in_a_folder_without_write_rights(path) == "2 stopped\n"


READ = """
    import sys
    sys.path[:0] = [{root!r}]
    from pathlib import Path
    from lab import store
    with store.opened(Path({path!r})) as record:
        print(len(record.trials()), record.outcome.value)
"""


def read_in_a_folder_without_write_rights(path: Path) -> str:
    """What a reader prints that may change neither the file nor its folder."""
    argv = [sys.executable, "-c", textwrap.dedent(READ).format(root=str(DATA.parents[1]), path=str(path))]
    if os.geteuid() == 0:  # root without root's rights
        argv = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", *argv]
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    finally:
        path.parent.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="folders are made read-only with modes")
def test_a_whole_run_can_be_read_where_nothing_can_be_written(path: Path) -> None:
    written(path)
    assert read_in_a_folder_without_write_rights(path) == "12 done\n"


def test_a_failed_run_keeps_its_reason(path: Path) -> None:
    bed = FakeTestbed(at={3: HostUnreachable("no answer", host="proxy")}, void={1: "touched"})
    list(store.recorded(run(bed), path))
    with store.opened(path) as record:
        assert (record.outcome, record.reason) == (Outcome.FAILED, "proxy: no answer")
        assert record.trials()[0].standing is Standing.VOID


def test_a_defect_leaves_a_whole_file(path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        list(store.recorded(run(FakeTestbed(at={2: ZeroDivisionError()})), path))
    with store.opened(path) as record:
        assert record.outcome is Outcome.FAILED
        assert "defect" in record.reason


def test_no_file_is_written_over(path: Path) -> None:
    path.write_text("mine")
    bed = FakeTestbed()
    with pytest.raises(BadInput, match="already"):
        list(store.recorded(run(bed), path))
    assert path.read_text() == "mine"
    assert bed.log == []


def test_a_folder_that_is_missing_is_told_before_the_run(tmp_path: Path) -> None:
    bed = FakeTestbed()
    with pytest.raises(LabError, match="cannot be recorded") as error:
        list(store.recorded(run(bed), tmp_path / "none" / "a.branchlab"))
    assert "BRANCHLAB_DATA" in error.value.advice
    assert bed.log == []


FULL = """
    import resource, sys
    sys.path[:0] = {folders!r}
    from fake_testbed import FakeTestbed, experiment
    from lab import runner, store
    from lab.stop import Stop
    from pathlib import Path
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    bed = FakeTestbed()
    events = list(store.recorded(runner.run(experiment(), bed, Stop()), Path({path!r})))
    print(events[-1].outcome.value, "cannot be recorded" in events[-1].reason, bed.log[-1], bed.line)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a limit of file sizes")
def test_a_disk_that_fills_up_ends_the_run_and_takes_everything_back(path: Path) -> None:
    here = Path(__file__).parent
    script = textwrap.dedent(FULL).format(
        folders=[str(here), str(here.parent)], path=str(path), limit=300_000
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.stdout == "failed True close None\n", done.stderr
    with store.opened(path) as record:
        assert record.run_started.experiment == experiment()
        assert 0 < len(record.trials()) < 192


def test_what_is_no_run_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.branchlab"
    with pytest.raises(BadInput, match="no such file"):
        store.opened(path)
    path.write_bytes(b"")
    with pytest.raises(BadInput, match="no run of BranchLab"):
        store.opened(path)
    path.write_bytes(b"hello" * 1000)
    with pytest.raises(BadInput, match="damaged, or no run"):
        store.opened(path)
    path.unlink()
    sqlite3.connect(path).executescript("CREATE TABLE t (a)").connection.close()
    with pytest.raises(BadInput, match="no run of BranchLab"):
        store.opened(path)


def test_a_newer_schema_is_refused_in_a_sentence(path: Path) -> None:
    written(path)
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version={store.SCHEMA + 1}")
    db.close()
    with pytest.raises(BadInput, match="a newer BranchLab wrote it"):
        store.opened(path)


def test_a_damaged_file_is_told_and_left_out_of_the_list(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(path)
    good = path.with_name("b.branchlab")
    shutil.copy(path, good)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x00" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(BadInput, match="damaged"), store.opened(path) as record:
        list(record.events())
    assert [head.file for head in store.runs(path.parent)] == [good]
    assert "left out" in caplog.text


def test_an_event_that_cannot_be_read_is_damage(path: Path) -> None:
    written(path)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE events SET json = '{}' WHERE id = 5")
    db.close()
    with store.opened(path) as record, pytest.raises(BadInput, match="damaged"):
        list(record.events())


@pytest.mark.parametrize(
    "damage", ["UPDATE head SET outcome = 'weird'", "DELETE FROM events WHERE id = 1", "DELETE FROM events"]
)
def test_a_head_that_means_nothing_is_damage_and_hides_no_other_run(path: Path, damage: str) -> None:
    written(path)
    good = path.with_name("b.branchlab")
    shutil.copy(path, good)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(damage)
    db.close()
    assert [head.file for head in store.runs(path.parent)] == [good]


def test_of_endless_output_the_beginning_is_kept_and_all_is_passed_on(path: Path) -> None:
    def chatty() -> Iterator[Event]:
        for event in run():
            yield event
            if isinstance(event, CommandStarted):
                for _ in range(20):
                    yield OutputSeen(trial=event.trial, stream="stdout", text="A" * 30_000)

    passed = [event for event in store.recorded(chatty(), path) if isinstance(event, OutputSeen)]
    with store.opened(path) as record:
        kept = [event for event in record.events() if isinstance(event, OutputSeen)]
    for trial in (1, 12):
        told = [sum(len(e.text) for e in events if e.trial == trial) for events in (passed, kept)]
        assert told[0] >= 600_000
        assert store.OUTPUT_CHARS < told[1] < store.OUTPUT_CHARS + 31_000


@pytest.mark.parametrize("file", sorted(DATA.glob("schema-*.branchlab")), ids=lambda file: file.stem)
def test_files_of_every_schema_can_be_read(file: Path) -> None:
    with store.opened(file) as record:
        assert record.head.run == "20240102-030405-abcd"
        assert record.outcome is Outcome.DONE
        events = list(record.events())
    assert isinstance(events[0], RunStarted)
    again = sum(isinstance(event, TrialFinished) and event.trial > 12 for event in events)
    assert sum(isinstance(event, TrafficSampled) for event in events) == 55 + 5 * again
    assert bool(again) == (file.stem != "schema-1")
    standings = [event.standing for event in events if isinstance(event, TrialFinished)]
    standings = standings[:12]
    assert (len(standings), standings.count(Standing.VOID), standings.count(Standing.FAILED)) == (12, 1, 1)


def test_there_is_a_file_of_this_schema() -> None:
    assert (DATA / f"schema-{store.SCHEMA}.branchlab").exists()


def test_runs_are_listed_newest_first_and_found(tmp_path: Path) -> None:
    for number, at in enumerate(("2024-05-01", "2024-07-01", "2024-06-01")):
        written(tmp_path / f"{number}.branchlab", run_id=f"run-{number}")
        db = sqlite3.connect(tmp_path / f"{number}.branchlab", isolation_level=None)
        db.execute("UPDATE head SET started = ?", (f"{at}T00:00:00.000+00:00",))
        db.close()
    heads = store.runs(tmp_path)
    assert [head.run for head in heads] == ["run-1", "run-2", "run-0"]
    assert (heads[0].experiment, heads[0].outcome, heads[0].planned, heads[0].finished) == (
        "Small",
        "done",
        12,
        12,
    )
    assert store.found("run-2", tmp_path) == tmp_path / "2.branchlab"
    assert store.found("2.branchlab", tmp_path) == store.found("2", tmp_path) == tmp_path / "2.branchlab"
    assert store.found("last", tmp_path) == tmp_path / "1.branchlab"
    assert store.found(str(tmp_path / "0.branchlab")) == tmp_path / "0.branchlab"
    with pytest.raises(BadInput, match="several runs begin with `run-`"):
        store.found("run-", tmp_path)
    with pytest.raises(BadInput, match="there is no run `nope`"):
        store.found("nope", tmp_path)
    with pytest.raises(BadInput):
        store.found("last", tmp_path / "none")


def test_new_names_are_never_taken(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "runs"
    first = store.new_path("Proxy efficiency (quick)!", folder)
    assert first.name.endswith("-proxy-efficiency-quick.branchlab")
    first.touch()
    second = store.new_path("Proxy efficiency (quick)!", folder)
    assert second != first
    assert not second.exists()
    assert store.new_path("Прокси", folder).name.endswith("-run.branchlab")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="cannot be recorded"):
        store.new_path("x", tmp_path / "file" / "runs")


def test_where_data_lives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path))
    assert store.runs_folder() == tmp_path / "runs"
    monkeypatch.delenv("BRANCHLAB_DATA")
    assert store.data_folder().name == "branchlab"


def test_events_before_the_first_word_are_a_defect(path: Path) -> None:
    with pytest.raises(TypeError):
        list(store.recorded(iter([TrialStarted(trial=1, at="")]), path))


def test_two_runs_with_other_pairs_in_one_trial_keep_them(path: Path) -> None:
    first = next(run())
    samples: list[Event] = [
        TrafficSampled(trial=1, t_s=0.1, bytes={"a>b": 1}),
        TrafficSampled(trial=1, t_s=0.2, bytes={"a>b": 2, "b>a": 2**40}),
        TrafficSampled(trial=2, t_s=0.3, bytes={}),
    ]
    list(store.recorded(iter([first, *samples]), path))
    with store.opened(path) as record:
        assert [event for trial in (1, 2) for event in record.samples(trial)] == samples


def test_a_run_is_opened_in_pandas_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.branchlab"
    list(store.recorded(runner.run(small(), FakeTestbed(failing={9: "broke"}), Stop()), path))
    frames = store.frames(path)
    with store.opened(path) as record:
        results = record.trials()
        samples = [sample for result in results for sample in record.samples(result.trial)]
    assert list(frames.trials["trial"]) == [result.trial for result in results]
    assert frames.trials["wall_s"].dropna().tolist() == [r.wall_s for r in results if r.wall_s is not None]
    assert str(frames.trials["ended_utc"].dt.tz) == "UTC"
    assert len(frames.samples) == sum(len(sample.bytes) for sample in samples)
    assert set(frames.samples.columns) == {"trial", "t_s", "pair", "bytes"}
    medians = frames.trials.query("standing == 'kept'").groupby(["operation", "state"])["wall_s"].median()
    assert medians.notna().all()
    with pytest.raises(BadInput, match="no such file"):
        store.frames(str(tmp_path / "none.branchlab"))
