"""A repository of somebody's own is never hurt: places are made, marked, looked at, and nothing else is changed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import own_repository
import pytest
import real_runs
import two_apaches
from own_repository import PORT, Repository
from real_runs import EMPTY, FULL, Hosts, Ran, experiment

from lab import design, embedded, runner, vcs
from lab.analysis.summary import summarised
from lab.cli import scratch_places, story
from lab.embedded import Embedded
from lab.errors import AgentRefused, BadInput, LabError
from lab.events import (
    CommandStarted,
    DataMeasured,
    Event,
    HostChanged,
    Noted,
    Outcome,
    RunFinished,
    Standing,
    TrialFinished,
)
from lab.machines import Machines
from lab.model import DISABLED, OPERATIONS, Change, Experiment, Line, Role
from lab.profile import load
from lab.rig import planning, scratch
from lab.rig.hosts import connected
from lab.rig.scratch import Own
from lab.stop import Stop
from ssh_agents import apache

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(two_apaches.missing()), reason="missing: " + two_apaches.missing()),
]

FAST = Line(upload_bps=4_000_000, download_bps=8_000_000)
URL = f"http://{{server}}:{PORT}/svn"
DRIVER = vcs.driver("subversion")


def own(**changes: object) -> Experiment:
    """The least that changes a repository as it is."""
    fields: dict[str, object] = {
        "data": None,
        "repository": f"{URL}/trunk",
        "scratch": f"{URL}/lab/branchlab-scratch",
        "operations": ("check-out", "check-in"),
        "lines": (FAST,),
        "attempts": 1,
        "change": Change(files=20),
    }
    return experiment(**{**fields, **changes})


@pytest.fixture(scope="module")
def lab() -> Iterator[Embedded]:
    with embedded.up() as made:
        yield made


@pytest.fixture(scope="module")
def there(lab: Embedded) -> Iterator[Repository]:
    with own_repository.served(lab) as repository:
        yield repository


@pytest.fixture(scope="module")
def marked(lab: Embedded, there: Repository) -> Repository:
    newest = there.newest()
    said = scratch.make(lab.lab, own(), DRIVER)
    assert said.endswith(f"was made and marked, by revision {newest + 1}")
    return there


def looked(lab: Embedded, wanted: Experiment) -> Own | None:
    with connected(lab.lab, Stop(), lease_s=None) as hosts:
        return scratch.refuse_unmarked(hosts, wanted, DRIVER, Stop())


def failed(lab: Embedded, wanted: Experiment) -> RunFinished:
    *_, last = runner.run(wanted, Machines(lab.lab), Stop())
    assert isinstance(last, RunFinished)
    assert last.outcome is Outcome.FAILED
    return last


# Made, looked at, removed


def test_an_unmarked_place_is_refused_before_the_first_change(lab: Embedded, there: Repository) -> None:
    before, newest = Hosts.of(lab.folder), there.newest()
    with pytest.raises(BadInput, match="there is no scratch place at http") as caught:
        looked(lab, own(scratch=f"{URL}/nowhere"))
    assert "branchlab scratch PROFILE" in caught.value.advice
    last = failed(lab, own(scratch=f"{URL}/nowhere"))
    assert "there is no scratch place at" in last.reason
    # A folder that somebody else made is none either, and no command makes it one.
    assert "no place that BranchLab made" in failed(lab, own(scratch=f"{URL}/branches")).reason
    with pytest.raises(BadInput, match="no place that BranchLab made and marked"):
        scratch.make(lab.lab, own(scratch=f"{URL}/branches"), DRIVER)
    with pytest.raises(BadInput, match="no place that BranchLab made and marked"):
        scratch.remove(lab.lab, own(scratch=f"{URL}/branches"), DRIVER)
    assert there.newest() == newest
    real_runs.await_same(lab.folder, before)
    assert real_runs.scratch(lab.folder) == []


def test_a_place_is_made_once_by_one_revision(lab: Embedded, marked: Repository) -> None:
    assert "nothing was changed" in scratch.make(lab.lab, own(), DRIVER)
    assert ["/lab", "/lab/branchlab-scratch"] in marked.changed(100).values()
    seen = looked(lab, own())
    assert seen is not None
    assert seen.place == f"http://198.18.0.1:{PORT}/svn/lab/branchlab-scratch"
    assert seen.root == f"http://198.18.0.1:{PORT}/svn"
    assert seen.revision == marked.newest()
    assert real_runs.scratch(lab.folder) == []


def test_a_place_with_odd_names_is_made_and_deleted(lab: Embedded, there: Repository) -> None:
    odd = own(scratch=f"{URL}/branches/a%20b%402x/%C3%A4")
    newest = there.newest()
    assert "made and marked" in scratch.make(lab.lab, odd, DRIVER)
    assert looked(lab, odd) is not None
    assert there.changed(newest) == {newest + 1: ["/branches/a b@2x", "/branches/a b@2x/ä"]}
    assert "was deleted" in scratch.remove(lab.lab, odd, DRIVER)
    assert "there is nothing at" in scratch.remove(lab.lab, odd, DRIVER)
    assert there.newest() == newest + 2


def test_a_copy_of_a_marked_place_is_not_marked(lab: Embedded, marked: Repository) -> None:
    marked.svn("copy", "-m", "copied", "/lab/branchlab-scratch", "/lab/copied")
    with pytest.raises(BadInput, match="no place that BranchLab made and marked"):
        looked(lab, own(scratch=f"{URL}/lab/copied"))


def test_the_root_and_what_is_measured_are_no_places(lab: Embedded, marked: Repository) -> None:
    newest = marked.newest()
    for place in (f"{URL}", f"{URL}/trunk", f"{URL}/trunk/x", f"http://{{server}}:{PORT}/elsewhere"):
        for deed in (scratch.make, scratch.remove):
            with pytest.raises(LabError):
                deed(lab.lab, own(scratch=place), DRIVER)
    with pytest.raises(BadInput, match="is the whole repository"):
        looked(lab, own(repository=f"{URL}/trunk/Web", scratch=URL))
    assert marked.newest() == newest


def test_a_name_that_is_another_hosts_is_refused_with_both_addresses(
    lab: Embedded, marked: Repository
) -> None:
    (proxy,) = lab.lab.having(Role.PROXY)
    wanted = own(
        repository=f"http://{proxy.address}:{PORT}/svn/trunk", scratch=f"http://{proxy.address}:{PORT}/svn/x"
    )
    with pytest.raises(BadInput, match="neither limited nor counted") as caught:
        looked(lab, wanted)
    assert str(proxy.address) in str(caught.value)
    assert str(lab.lab.one(Role.SERVER).address) in str(caught.value)
    # The server's own address, written out, is none of another host.
    literal = f"http://{lab.lab.one(Role.SERVER).address}:{PORT}/svn"
    assert (
        looked(lab, own(repository=f"{literal}/trunk", scratch=f"{literal}/lab/branchlab-scratch"))
        is not None
    )


def test_what_is_no_folder_of_a_repository_is_refused(lab: Embedded, there: Repository) -> None:
    for path in ("/trunk/nowhere", "/trunk/Web/nothing.txt"):
        with pytest.raises(BadInput, match="there is no folder of a repository at"):
            looked(lab, own(repository=URL + path))
    for operations in (("get",), ("get", "undo", "diff", "history")):
        seen = looked(lab, own(operations=operations, scratch=None))
        assert seen is not None
        assert seen.place == ""


@pytest.mark.parametrize("when", ["reads", "writes"])
def test_a_repository_that_asks_for_a_password_is_refused_in_plain_words(lab: Embedded, when: str) -> None:
    with own_repository.served(lab, password=when, port=PORT + 1) as locked:
        url = f"http://{{server}}:{PORT + 1}/svn"
        wanted = own(repository=f"{url}/trunk", scratch=f"{url}/branchlab-scratch")
        with pytest.raises(BadInput, match="asks for a user and a password") as caught:
            scratch.make(lab.lab, wanted, DRIVER)
        assert "no cache may store" in caught.value.advice
        # Made by somebody who has a password: reading is free, and the run's first change is refused.
        locked.svn("mkdir", "-m", "by hand", "/branchlab-scratch")
        _marked_by_hand(locked)
        assert "asks for a user and a password" in failed(lab, wanted).reason
        assert locked.newest() == 102


def _marked_by_hand(repository: Repository) -> None:
    url = repository.folder.as_uri()
    uuid = repository.svn("info", "--show-item", "repos-uuid", "/trunk").strip()
    mark = ["svnmucc", "-m", "by hand", "propset", scratch.MARK, f"{uuid} /branchlab-scratch"]
    subprocess.run([*mark, f"{url}/branchlab-scratch"], check=True, capture_output=True)


@pytest.mark.parametrize("how", ["nobody has a name", "not authorized", "a hook"])
def test_a_server_on_which_nobody_can_lock_is_found_out_before_any_trial(lab: Embedded, how: str) -> None:
    """And before any revision, unless a hook forbids it: it may have another word for files than for the place."""
    nameless = "never" if how == "nobody has a name" else ""
    deny = "<Location /svn>\n<Limit LOCK>\nRequire all denied\n</Limit>\n</Location>"
    with own_repository.served(lab, password=nameless, port=PORT + 1) as free:
        url = f"http://{{server}}:{PORT + 1}/svn"
        wanted = own(repository=f"{url}/trunk", scratch=f"{url}/branchlab-scratch")
        scratch.make(lab.lab, wanted, DRIVER)
        if how == "a hook":
            hook = free.folder / "hooks" / "pre-lock"
            hook.write_text("#!/bin/sh\nexit 1\n")
            hook.chmod(0o755)
        newest = free.newest()
        with configured(free, deny if how == "not authorized" else ""):
            *seen, last = runner.run(design.rehearsal(wanted), Machines(lab.lab), Stop())
        assert isinstance(last, RunFinished)
        assert "locks no file in the scratch place" in last.reason, last
        assert "only locks for users who have a name" in last.advice
        assert not [event for event in seen if isinstance(event, CommandStarted)]
        assert free.newest() == newest + (4 if how == "a hook" else 0)
        assert not free.locks()
        if nameless:
            committed = own(
                repository=f"{url}/trunk", scratch=f"{url}/branchlab-scratch", operations=("check-in",)
            )
            *_, last = runner.run(committed, Machines(lab.lab), Stop())
            assert isinstance(last, RunFinished)
            assert last.outcome is Outcome.DONE


# What a server does that nobody expects


@contextmanager
def configured(repository: Repository, text: str) -> Iterator[None]:
    """The user's Apache with these lines more, for as long as inside."""
    home = repository.folder.parent / "apache"
    config = home / "httpd.conf"
    before = config.read_text("utf-8")
    modules = Path(next(iter(apache.modules("svn-server").values()))).parent
    try:
        config.write_text(f'{before}\nLoadModule alias_module "{modules}/mod_alias.so"\n{text}\n', "utf-8")
        _restarted(home)
        yield
    finally:
        config.write_text(before, "utf-8")
        _restarted(home)


def _restarted(home: Path) -> None:
    """Until every process of the earlier configuration is gone."""
    (number,) = _servers(home, parents=True)
    old = _servers(home, parents=False)
    os.kill(number, signal.SIGHUP)
    end = time.monotonic() + real_runs.PATIENCE_S
    while set(old) & set(_servers(home, parents=False)) or not _servers(home, parents=False):
        assert time.monotonic() < end
        time.sleep(0.05)


def _servers(home: Path, *, parents: bool) -> list[int]:
    numbers = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{home}/httpd.conf" in (path / "cmdline").read_text("utf-8"):
                numbers[int(path.name)] = int(
                    (path / "stat").read_text("utf-8").rpartition(")")[2].split()[1]
                )
    numbers = {
        one: parent
        for one, parent in numbers.items()
        if b"apache" in _program(one) or b"httpd" in _program(one)
    }
    return [one for one, parent in numbers.items() if (parent not in numbers) is parents]


def _program(number: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{number}/comm").read_bytes()
    return b""


def test_a_server_that_sends_on_to_another_host_is_refused_in_everything(
    lab: Embedded, there: Repository
) -> None:
    with own_repository.served(lab, port=PORT + 2) as other:
        # As it would be on another host; the port alone is another site already.
        elsewhere = f"http://{lab.lab.one(Role.SERVER).address}:{PORT + 2}/svn"
        newest = other.newest(), there.newest()
        with configured(there, f"Redirect permanent /moved {elsewhere}"):
            moved = f"http://{{server}}:{PORT}/moved"
            wanted = own(repository=f"{moved}/trunk", scratch=f"{moved}/branchlab-scratch")
            for deed in (scratch.make, scratch.remove, scratch.revert):
                with pytest.raises(BadInput, match=f"is sent on to {elsewhere}/trunk"):
                    deed(lab.lab, wanted, DRIVER)
            with pytest.raises(BadInput, match="is sent on to"):
                looked(lab, replace(wanted, operations=("get",), scratch=None))
            assert "is sent on to" in failed(lab, wanted).reason
        with configured(there, f"Redirect permanent /svn/gone {elsewhere}/branches"):
            for deed in (scratch.make, scratch.remove):
                with pytest.raises(BadInput, match=f"is sent on to {elsewhere}/branches"):
                    deed(lab.lab, own(scratch=f"{URL}/gone"), DRIVER)
        assert (other.newest(), there.newest()) == newest


def test_a_place_that_is_withdrawn_ends_the_run_and_is_not_made_anew(
    lab: Embedded, marked: Repository
) -> None:
    place = own(scratch=f"{URL}/withdrawn", operations=("check-in",), attempts=3)
    scratch.make(lab.lab, place, DRIVER)
    stop, seen = Stop(), []
    newest = 0
    for event in runner.run(place, Machines(lab.lab), stop):
        seen.append(event)
        if isinstance(event, TrialFinished) and not newest:
            marked.svn("delete", "-m", "not any more", "/withdrawn")
            newest = marked.newest()
    last = seen[-1]
    assert isinstance(last, RunFinished)
    assert last.outcome is Outcome.FAILED
    assert "is gone: somebody deleted it" in last.reason
    assert len([event for event in seen if isinstance(event, TrialFinished)]) == 1
    assert marked.newest() == newest
    assert "withdrawn/" not in marked.names()


# With what was required before: in a section of its own `<Limit>` would ask nobody for a name on other methods, so that
# nothing could be locked either.
DENIED = "<Location /svn>\nAuthMerging And\n<Limit DELETE>\nRequire all denied\n</Limit>\n</Location>"


def test_a_server_that_deletes_nothing_is_found_out_before_the_copy(
    lab: Embedded, marked: Repository
) -> None:
    newest = marked.newest()
    with configured(marked, DENIED):
        *seen, last = runner.run(own(), Machines(lab.lab), Stop())
        assert isinstance(last, RunFinished)
        assert "lets nothing be deleted in the scratch place" in last.reason
        assert "/run-" in last.left
        assert not [event for event in seen if isinstance(event, CommandStarted)]
        assert marked.newest() == newest + 1
        (left,) = scratch.left(lab.lab, own(), DRIVER)
    assert scratch.revert(lab.lab, own(), DRIVER)[0].startswith(f"{left} was deleted")
    assert scratch.left(lab.lab, own(), DRIVER) == []


def test_a_folder_that_cannot_be_removed_is_told_and_the_code_is_not_0(
    lab: Embedded, marked: Repository, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        seen = []
        for event in runner.run(own(operations=("check-out",)), Machines(lab.lab), Stop()):
            seen.append(event)
            if isinstance(event, TrialFinished):
                stack.enter_context(configured(marked, DENIED))
        last, summary = seen[-1], summarised(seen)
        assert isinstance(last, RunFinished)
        assert last.outcome is Outcome.DONE, last
        assert summary.complete
        assert "stays there until the next run or `branchlab revert`" in last.left
        assert story.code_of(summary) == 1
        (noted,) = (event for event in seen if isinstance(event, Noted) and event.grade == "trouble")
        assert noted.text == last.left
        path = real_runs.profile(lab.profile_path, tmp_path / "own.toml", PROFILE)
        (found,) = scratch_places.left(lab.lab, load(path).experiments[0])
        assert (found.ok, "left in the repository: http" in found.text) == (False, True)
    assert scratch.revert(lab.lab, own(), DRIVER)


PROFILE = f"""
[[experiments]]
name = "own"
repository = "{URL}/trunk"
scratch = "{URL}/lab/branchlab-scratch"
lines = ["64/128 kbit/s"]
states = ["disabled"]
"""


class DayAhead(datetime):
    """The clock of a controller that is wrong by more than a day."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime.now(tz) + timedelta(hours=25)


def test_a_folder_of_another_clients_run_is_left_alone_while_that_may_live(
    lab: Embedded, marked: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = "/lab/branchlab-scratch/run-0a1b2c3d"
    marked.svn("mkdir", "-m", "as another client would", folder)
    url = marked.folder.as_uri()
    mark = [
        "svnmucc",
        "-m",
        "by hand",
        "propset",
        scratch.RUN_MARK,
        "0123456789abcdef joe on desk-9",
        url + folder,
    ]
    subprocess.run(mark, check=True, capture_output=True)
    newest = marked.newest()
    with pytest.raises(AgentRefused, match="a run of joe on desk-9 may still go on") as caught:
        looked(lab, own())
    assert caught.value.kind == "busy"
    assert "may still go on" in failed(lab, own()).reason
    with pytest.raises(AgentRefused, match="may still go on"):
        scratch.revert(lab.lab, own(), DRIVER)
    with monkeypatch.context() as patch:
        patch.setattr(scratch, "datetime", DayAhead)
        with pytest.raises(AgentRefused, match="may still go on"):
            scratch.revert(lab.lab, own(), DRIVER)
    # What only reads is not concerned.
    assert looked(lab, own(operations=("get",))) is not None
    assert (marked.newest(), marked.names("/lab/branchlab-scratch")) == (newest, ["run-0a1b2c3d/"])
    (told,) = scratch.revert(lab.lab, own(), DRIVER, force=True)
    assert "run-0a1b2c3d was deleted" in told
    # Nobody changed this one for long, by the server's dates, so that nobody can be there.
    marked.svn("mkdir", "-m", "as another client would", folder)
    subprocess.run(mark, check=True, capture_output=True)
    (marked.folder / "hooks" / "pre-revprop-change").write_text("#!/bin/sh\n", "utf-8")
    (marked.folder / "hooks" / "pre-revprop-change").chmod(0o755)
    old = (datetime.now(UTC) - timedelta(days=2)).isoformat().replace("+00:00", "Z")
    marked.svn("propset", "--revprop", "-r", str(marked.newest()), "svn:date", old, "/")
    (told,) = scratch.revert(lab.lab, own(), DRIVER)
    assert "run-0a1b2c3d was deleted" in told


# A run


@pytest.fixture(scope="module")
def whole(lab: Embedded, marked: Repository, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, int]:
    """Every operation in three states; and the newest revision before."""
    newest = marked.newest()
    wanted = own(operations=OPERATIONS, states=(DISABLED, EMPTY, FULL))
    return real_runs.ran(lab.lab, wanted, tmp_path_factory.mktemp("run") / "run.branchlab"), newest


def test_every_trial_on_a_repository_as_it_is_is_proven(whole: tuple[Ran, int]) -> None:
    ran, newest = whole
    assert ran.last_word.outcome is Outcome.DONE, ran.last_word
    assert len(ran.trials) == 18
    for trial in ran.trials:
        assert trial.standing == Standing.KEPT, trial
        assert set(trial.requests) <= {"proxy"}  # the server's log is not ours to read
    ((_, direct),) = ran.of("get", DISABLED)
    ((_, empty),) = ran.of("get", EMPTY)
    ((_, full),) = ran.of("get", FULL)
    assert direct.direct_bytes > 300_000
    assert empty.served_bytes == 0
    assert empty.relayed_bytes > 250_000
    assert full.served_bytes > 250_000
    (data,) = (event for event in ran.events if isinstance(event, DataMeasured))
    assert (data.facts["revision"], data.facts["files"], data.facts["bytes"]) == (newest, 150, 600_000)
    assert data.facts["repository"] == f"http://198.18.0.1:{PORT}/svn/trunk"


def test_a_run_changes_nothing_outside_of_its_place(whole: tuple[Ran, int], marked: Repository) -> None:
    ran, newest = whole
    changed = {number: paths for number, paths in marked.changed(newest).items() if "run-" in str(paths)}
    assert len(changed) == planning.revisions(own(operations=OPERATIONS, states=(DISABLED, EMPTY, FULL)))
    assert all(path.startswith("/lab/branchlab-scratch/run-") for paths in changed.values() for path in paths)
    assert marked.names("/lab/branchlab-scratch") == []
    assert marked.locks() == []
    for _, trial in ran.of("check-out"):
        assert trial.output.count(" locked by user") == 20


def test_the_account_of_a_run_names_what_was_changed_in_the_repository(whole: tuple[Ran, int]) -> None:
    ran, newest = whole
    told = [event for event in ran.events if isinstance(event, HostChanged) and "http://" in event.what]
    purged = [event for event in told if "taken out of the cache" in event.what]
    assert {event.host for event in purged} == {"proxy"}
    told = [event for event in told if event not in purged]
    assert {event.host for event in told} == {"server"}
    made, locks, added, gone = told
    assert made.what.endswith(f"made in the repository, by revision {newest + 1}")
    assert "20 files in" in locks.what
    count = planning.revisions(own(operations=OPERATIONS, states=(DISABLED, EMPTY, FULL))) - 1
    assert added.what.startswith(f"{count} revisions added below")
    assert added.what.endswith(f"from {newest + 1} to {newest + count}")
    assert gone.what.endswith(f"deleted with the locks in it, by revision {newest + count + 1}")
    assert [event.undone for event in told] == [False, False, False, True]


def test_a_run_that_only_reads_adds_no_revision(lab: Embedded, marked: Repository, tmp_path: Path) -> None:
    newest = marked.newest()
    wanted = own(operations=("get", "undo", "history", "diff"), scratch=None, change=Change(files=0))
    ran = real_runs.ran(lab.lab, wanted, tmp_path / "run.branchlab")
    assert [trial.standing for trial in ran.trials] == [Standing.KEPT] * 4
    assert marked.newest() == newest
    assert marked.locks() == []


def test_more_files_than_there_are_means_all_that_can_be_edited(
    lab: Embedded, marked: Repository, tmp_path: Path
) -> None:
    """The pictures among them are no text: they are locked, and never edited."""
    wanted = own(change=Change(files=10_000), operations=("check-out", "undo"))
    ran = real_runs.ran(lab.lab, wanted, tmp_path / "run.branchlab")
    ((_, out),), ((_, undo),) = ran.of("check-out"), ran.of("undo")
    assert out.output.count(" locked by user") in range(50, 151)  # the tail of it is kept
    assert undo.standing == Standing.KEPT
    assert undo.output.count("Reverted") in range(50, 139)
    assert ".gif" not in undo.output


def test_a_run_that_is_killed_leaves_its_locks_in_its_place_and_the_next_one_clears_it(
    lab: Embedded, marked: Repository, tmp_path: Path
) -> None:
    text = f"""
[[experiments]]
name = "own"
repository = "{URL}/trunk"
scratch = "{URL}/lab/branchlab-scratch"
operations = ["check-out", "check-in"]
lines = ["64/128 kbit/s"]
states = ["disabled"]
attempts = 20
"""
    path = real_runs.profile(lab.profile_path, tmp_path / "own.toml", text)
    with real_runs.command(
        "run", "--headless", str(path), data=tmp_path, code=real_runs.SHORT_LEASE
    ) as process:
        _await_locks(marked)
        process.kill()
        process.wait()
    assert all(name.startswith("/lab/branchlab-scratch/run-") for name in marked.locks())
    real_runs.await_lifted(lab.folder, real_runs.PATIENCE_S)
    (left,) = (name.rstrip("/") for name in marked.names("/lab/branchlab-scratch"))
    # Another run clears it, or `revert` does: here is one of each.
    marked.svn(
        "copy", "-m", "another", "/lab/branchlab-scratch/" + left, "/lab/branchlab-scratch/run-00000000"
    )
    for again in (f"{left} was deleted", "nothing was left in"):
        with real_runs.command("revert", str(path), data=tmp_path) as process:
            told, trouble = process.communicate(timeout=60)
            assert (process.returncode, again in told) == (0, True), told + trouble
    assert marked.locks() == []
    newest = marked.newest()
    marked.svn("copy", "-m", "not ours", "/trunk", "/lab/branchlab-scratch/run-11111111")
    marked.svn("copy", "-m", "not ours", "/trunk", "/lab/branchlab-scratch/kept")
    newest += 2
    # However it is named: no run made it.
    ran = real_runs.ran(lab.lab, own(), tmp_path / "next.branchlab")
    assert [trial.standing for trial in ran.trials] == [Standing.KEPT] * 2
    there = ["kept/", "run-11111111/"]
    assert (marked.names("/lab/branchlab-scratch"), marked.locks()) == (there, [])
    assert marked.newest() == newest + planning.revisions(own())
    for name in there:
        marked.svn("delete", "-m", "not ours", f"/lab/branchlab-scratch/{name}")


def _await_locks(repository: Repository) -> None:
    end = time.monotonic() + real_runs.PATIENCE_S
    while len(repository.locks()) < 5:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_that_is_stopped_takes_its_folder_back(lab: Embedded, marked: Repository) -> None:
    stop, seen = Stop(), []

    def events() -> Iterator[Event]:
        yield from runner.run(own(attempts=10), Machines(lab.lab), stop)

    for event in events():
        seen.append(event)
        if isinstance(event, CommandStarted) and event.trial == 3:
            stop.request()
    assert isinstance(seen[-1], RunFinished)
    assert seen[-1].outcome is Outcome.STOPPED
    assert (marked.names("/lab/branchlab-scratch"), marked.locks()) == ([], [])


STRAY = (
    (Path(vcs.__file__).parents[1] / "resources/vcs/subversion.toml")
    .read_text("utf-8")
    .replace("{lockable}", "{pristine}")
    .replace('name = "subversion"', 'name = "stray"')
)
"""A driver of a user's own that would lock the files of what is measured."""


def test_a_driver_that_would_lock_what_is_measured_is_stopped_at_its_working_copy(
    lab: Embedded, marked: Repository, tmp_path: Path
) -> None:
    (tmp_path / "stray.toml").write_text(STRAY, "utf-8")
    wanted = replace(own(), vcs="stray", operations=("check-out",))
    ran = real_runs.ran(lab.lab, wanted, tmp_path / "run.branchlab", drivers=tmp_path)
    assert ran.last_word.outcome is Outcome.FAILED
    assert "is not below" in ran.last_word.reason
    assert marked.locks() == []
    assert marked.names("/lab/branchlab-scratch") == []


def test_the_command_makes_and_removes_the_place(lab: Embedded, marked: Repository, tmp_path: Path) -> None:
    text = f"""
[[experiments]]
name = "own"
repository = "{URL}/trunk"
scratch = "{URL}/by-command"
lines = ["64/128 kbit/s"]
states = ["disabled"]
"""
    path = real_runs.profile(lab.profile_path, tmp_path / "own.toml", text)
    for words, said in ((["scratch"], "made and marked"), (["scratch", "--remove"], "was deleted")):
        with real_runs.command(*words, str(path), data=tmp_path) as process:
            told, trouble = process.communicate(timeout=60)
            assert (process.returncode, said in told) == (0, True), told + trouble
    assert "by-command/" not in marked.names()
