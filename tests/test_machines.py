"""The real testbed: what it tells and in which order, what makes a trial void, and how one is put back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import real_runs
from real_runs import FULL, Hosts, Ran, experiment

from lab import embedded, machines, runner
from lab.embedded import Embedded
from lab.errors import BadInput, HostLacks, HostTrouble, HostUnreachable, Stopped
from lab.events import (
    CacheFilled,
    CommandStarted,
    DataMeasured,
    Event,
    HostSeen,
    LineProved,
    Noted,
    Outcome,
    OutputSeen,
    RunFinished,
    RunStarted,
    Standing,
    ToolMeasured,
    TrafficSampled,
    TrialFinished,
    TrialStarted,
)
from lab.machines import Machines
from lab.model import AS_IT_IS, DISABLED, PAIRS, Host, Lab, Line, Role, Treatment, Trial
from lab.stop import Stop

FAST = Line(upload_bps=4_000_000, download_bps=8_000_000)
NOWHERE = Lab(name="Nowhere", hosts=(Host(name="desk", role=Role.CLIENT, ssh="unix:/nowhere/desk"),))
TRIAL = Trial(
    number=1, block=1, attempt=1, treatment=Treatment(line=AS_IT_IS, operation="get", state=DISABLED)
)


def test_classes_come_from_the_driver_and_no_host_is_touched() -> None:
    told = Machines(NOWHERE).classes(experiment(operations=("get", "undo", "history")))
    assert told == {"get": "cacheable", "undo": "local", "history": "server"}


def test_an_unknown_driver_is_bad_input() -> None:
    with pytest.raises(BadInput, match="perforce"):
        Machines(NOWHERE).classes(experiment(vcs="perforce"))


def test_nothing_is_measured_that_was_not_opened_and_prepared() -> None:
    bed = Machines(NOWHERE)
    with pytest.raises(AssertionError, match="inside `opened`"):
        next(iter(bed.measure(TRIAL, Stop())))
    with pytest.raises(AssertionError, match="inside `opened`"), bed.treated(TRIAL, Stop()):
        pass


@pytest.mark.parametrize(("error", "tries"), [(HostLacks("no shell"), 1), (HostUnreachable("down"), 3)])
def test_after_a_loss_only_a_host_that_may_come_back_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, error: HostTrouble, tries: int
) -> None:
    calls: list[int] = []
    clock = [0.0]

    def connected(*_: object, **__: object) -> None:
        calls.append(1)
        clock[0] += machines.BACK_S / 3
        raise error

    monkeypatch.setattr(machines, "connected", connected)
    monkeypatch.setattr(machines, "monotonic", lambda: clock[0])
    stop = Stop()
    monkeypatch.setattr(stop, "sleep", lambda _: None)
    bed = Machines(NOWHERE)
    bed._lost = True
    with pytest.raises(type(error)), bed.opened(experiment(), stop):
        pass
    assert len(calls) == tries


# ---- on real hosts


@pytest.fixture(scope="module")
def lab() -> Iterator[Embedded]:
    with embedded.up() as made:
        yield made


@pytest.fixture(scope="module")
def told(lab: Embedded) -> list[Event]:
    """Every event of a small run: Get and Undo, without the proxy and with a full cache."""
    wanted = experiment(lines=(FAST,), operations=("undo", "get"), states=(DISABLED, FULL), warm_up=1)
    return list(runner.run(wanted, Machines(lab.lab), Stop()))


def of(kind: type[Event], told: list[Event]) -> list[Event]:
    return [event for event in told if isinstance(event, kind)]


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_a_run_says_first_what_it_found_then_what_it_does(told: list[Event]) -> None:
    assert isinstance(told[0], RunStarted)
    assert isinstance(told[-1], RunFinished)
    assert told[-1].outcome == Outcome.DONE, told[-1]
    first = {type(event): told.index(event) for event in reversed(told)}
    kinds = (
        HostSeen,
        DataMeasured,
        ToolMeasured,
        CacheFilled,
        TrialStarted,
        LineProved,
        CommandStarted,
        TrialFinished,
    )
    assert [first[kind] for kind in kinds] == sorted(first[kind] for kind in kinds)
    assert [event.host for event in told if isinstance(event, HostSeen)] == ["server", "proxy", "client"]
    assert len(of(LineProved, told)) == 1


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_a_full_cache_is_made_of_get_first_and_lent_to_what_brings_nothing(told: list[Event]) -> None:
    get, undo = (event for event in told if isinstance(event, CacheFilled))
    assert (get.operation, get.objects, get.list_of) == ("get", 150, "get")
    assert get.fetched_bytes > get.cache_bytes > 300_000
    assert get.requests > 150
    assert (undo.operation, undo.objects, undo.list_of) == ("undo", 150, "get")
    assert (undo.fetched_bytes, undo.requests) == (0, 0)


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_each_trial_is_started_run_sampled_and_finished_once(told: list[Event]) -> None:
    numbers = {
        kind: [event.trial for event in told if isinstance(event, kind)]  # type: ignore[attr-defined]
        for kind in (TrialStarted, CommandStarted, TrialFinished)
    }
    assert numbers[TrialStarted] == numbers[CommandStarted] == numbers[TrialFinished] == list(range(1, 9))
    standings = [event.standing for event in told if isinstance(event, TrialFinished)]
    assert standings == [Standing.WARM_UP] * 4 + [Standing.KEPT] * 4


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_samples_grow_to_what_is_counted_at_the_end(told: list[Event]) -> None:
    plan = {trial.number: trial for event in told if isinstance(event, RunStarted) for trial in event.trials}
    for done in (event for event in told if isinstance(event, TrialFinished)):
        samples = [event for event in told if isinstance(event, TrafficSampled) and event.trial == done.trial]
        for before, after in pairwise(samples):
            assert after.t_s > before.t_s
            assert all(after.bytes[pair] >= before.bytes[pair] for pair in PAIRS)
        assert samples
        assert all(samples[-1].bytes[pair] <= done.bytes[pair] for pair in PAIRS)
        assert done.wall_s is not None
        assert (done.user_s or 0) + (done.system_s or 0) > 0
        if plan[done.trial].treatment.operation == "get":
            output = "".join(e.text for e in told if isinstance(e, OutputSeen) and e.trial == done.trial)
            assert "Checked out revision 100." in output
            assert "Checked out revision 100." in done.output


def _line_touched(lab: Embedded) -> None:
    real_runs.on(lab.folder, "server", "tc qdisc del dev eth0 root")


def _connection_held(lab: Embedded) -> None:
    hold = "import socket, time; s = socket.create_connection(('198.18.0.1', 80)); time.sleep(60)"
    real_runs.on(lab.folder, "client", f'setsid python3 -c "{hold}" >/dev/null 2>&1 & sleep 0.3')


@pytest.fixture(scope="module")
def disturbed(lab: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Four times Get; somebody takes the line away in the second, and holds a connection in the last."""
    deeds = {2: _line_touched, 4: _connection_held}

    def during(event: Event) -> None:
        if isinstance(event, CommandStarted) and event.trial in deeds:
            deeds[event.trial](lab)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machines, "QUIET_S", 1.5)
        wanted = experiment(lines=(FAST,), attempts=4)
        run = real_runs.ran(lab.lab, wanted, tmp_path_factory.mktemp("run") / "run.branchlab", during)
    there = real_runs.inhabitants(lab.folder)
    real_runs.kill(number for number, line in there.items() if "create_connection" in line)
    return run


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_a_line_that_somebody_touched_voids_its_trial_and_no_other(disturbed: Ran) -> None:
    assert disturbed.last_word.outcome == Outcome.DONE
    two = disturbed.trials[1]
    assert two.standing == Standing.VOID
    assert "the line read back after the trial was not 4/8 Mbit/s" in two.reason
    assert [proof.name for proof in two.proofs if not proof.ok] == ["line"]
    assert [disturbed.trials[n].standing for n in (0, 2)] == [Standing.KEPT] * 2


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_a_connection_that_does_not_end_voids_its_trial_and_is_named(disturbed: Ran) -> None:
    four = disturbed.trials[3]
    assert four.standing == Standing.VOID
    assert [proof.name for proof in four.proofs if not proof.ok] == ["quiet"]
    assert "not quiet: " in four.reason
    assert "port 80" in four.reason


SLEEPY = """
schema = 1
name = "sleepy"
title = "A tool that never ends"
tool = ["svn", "--version", "--quiet"]
[[data]]
run = ["svnadmin", "create", "{repository}"]
on = "server"
[operations.get]
traffic = "local"
timed = { run = ["sleep", "600"] }
[operations.diff]
traffic = "local"
timed = { run = ["true"] }
"""


@pytest.fixture
def drivers(tmp_path: Path) -> Path:
    (tmp_path / "vcs").mkdir()
    (tmp_path / "vcs/sleepy.toml").write_text(SLEEPY, "utf-8")
    return tmp_path / "vcs"


@pytest.mark.lab
def test_a_command_that_does_not_end_is_ended_and_the_run_goes_on(
    lab: Embedded, drivers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "LEAST_LIMIT_S", 1.0)
    monkeypatch.setattr(machines, "LIMIT_FACTOR", 0)
    wanted = experiment(vcs="sleepy", operations=("get", "diff"), attempts=1)
    run = real_runs.ran(lab.lab, wanted, tmp_path / "run.branchlab", drivers=drivers)
    assert run.last_word.outcome == Outcome.DONE
    ((_, get),) = run.of("get")
    assert (get.standing, get.reason) == (Standing.FAILED, "not finished within 1 s")
    ((_, diff),) = run.of("diff")
    assert diff.standing == Standing.KEPT
    assert not [line for line in real_runs.inhabitants(lab.folder).values() if line == "sleep 600"]


@pytest.fixture
def without_nft(lab: Embedded) -> Iterator[None]:
    if shutil.which("iptables-restore") is None:
        pytest.skip("no iptables here")
    nft = shutil.which("nft", path="/usr/sbin:/usr/bin:/sbin")
    for host in lab.lab.hosts:
        real_runs.on(lab.folder, host.name, f"mount --bind /dev/null {nft}")
    yield
    for host in lab.lab.hosts:
        real_runs.on(lab.folder, host.name, f"umount {nft}")


@pytest.mark.lab
@pytest.mark.usefixtures("without_nft")
def test_hosts_without_nft_count_by_iptables_in_a_run(lab: Embedded) -> None:
    wanted = experiment(lines=(FAST,), operations=("get",), states=(DISABLED,), warm_up=0)
    found = machines.check(lab.lab, wanted)
    assert [one.text for one in found if "nft" in one.text] == [
        "nft (nftables): not there; iptables counts instead"
    ] * 3
    assert not [one for one in found if "nobody can count" in one.text]
    told = list(runner.run(wanted, Machines(lab.lab), Stop()))
    assert not [one.text for one in told if isinstance(one, Noted) and "nobody can count" in one.text]
    trials = [event for event in told if isinstance(event, TrialFinished)]
    assert trials
    for trial in trials:
        assert trial.standing is Standing.KEPT, trial
        assert trial.bytes["server>client"] > 100_000


@pytest.mark.lab
def test_a_stop_in_the_middle_ends_the_command_and_puts_everything_back(lab: Embedded, drivers: Path) -> None:
    before, stop, seen = Hosts.of(lab.folder), Stop(), []
    wanted = experiment(vcs="sleepy", operations=("get",), lines=(FAST,))
    for event in runner.run(wanted, Machines(lab.lab, drivers), stop):
        seen.append(event)
        if isinstance(event, TrafficSampled):
            stop.request()
    assert isinstance(seen[-1], RunFinished)
    assert (seen[-1].outcome, seen[-1].reason) == (Outcome.STOPPED, "")
    assert not of(TrialFinished, seen)
    real_runs.await_same(lab.folder, before)
    assert real_runs.scratch(lab.folder) == []


@pytest.mark.lab
def test_a_testbed_that_is_closed_can_be_opened_again(lab: Embedded, drivers: Path) -> None:
    bed, stop = Machines(lab.lab, drivers), Stop()
    wanted = experiment(vcs="sleepy", operations=("diff",), attempts=1)
    with suppress(Stopped), bed.opened(wanted, stop) as setting_up:
        list(setting_up)
        raise Stopped("in the middle")
    with pytest.raises(AssertionError, match="inside `opened`"), bed.treated(TRIAL, stop):
        pass
    assert [event.standing for event in of(TrialFinished, list(runner.run(wanted, bed, stop)))] == [
        Standing.KEPT
    ]  # type: ignore[union-attr]


@pytest.mark.lab
def test_a_delay_that_no_host_can_make_ends_the_run_before_anything_is_made(lab: Embedded) -> None:
    changes: Mapping[str, None] = {"delay": None}
    hosts = tuple(replace(one, **changes) if one.role is Role.SERVER else one for one in lab.lab.hosts)
    delayed = experiment(lines=(replace(FAST, delay_s=0.04),))
    *_, last = runner.run(delayed, Machines(replace(lab.lab, hosts=hosts)), Stop())
    assert isinstance(last, RunFinished)
    if last.outcome == Outcome.DONE:
        pytest.skip("this kernel has netem, so nothing is missing")
    assert last.outcome == Outcome.FAILED
    assert last.reason.startswith("server: delay, jitter or loss was asked")
    assert HostLacks("x").advice != last.advice
    assert real_runs.scratch(lab.folder) == []


@pytest.mark.lab
def test_connections_cut_from_outside_end_the_run_at_once(lab: Embedded, drivers: Path) -> None:
    """The timed command of this driver never ends by itself, and the run is not asked to stop."""
    testbed = Machines(lab.lab, drivers)
    wanted = experiment(vcs="sleepy", operations=("get",), lines=(FAST,))
    last = None
    for event in runner.run(wanted, testbed, Stop()):
        if isinstance(event, CommandStarted):
            testbed.cut()
        last = event
    assert isinstance(last, RunFinished)
    assert last.outcome is Outcome.FAILED
    testbed.cut()  # once more, after the end: nothing happens


@pytest.mark.lab
@pytest.mark.timeout(300)
@pytest.mark.parametrize("role", [Role.SERVER])
def test_after_a_lost_connection_the_run_goes_on(
    lab: Embedded, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial that it met fails; the hosts are made ready anew, and every trial after it counts."""
    before = Hosts.of(lab.folder)
    wanted = experiment(lines=(FAST,), operations=("get",), states=(DISABLED, FULL), attempts=4, warm_up=1)
    bed = Machines(lab.lab, lease_s=6)
    seen: list[Event] = []
    for event in runner.run(wanted, bed, Stop()):
        seen.append(event)
        if isinstance(event, CommandStarted) and event.trial == 3:
            next(one for one in bed._reached if one.host.role is role).connection.close()
    assert seen[-1].outcome == Outcome.DONE, seen[-1]  # type: ignore[attr-defined]
    ended = [event for event in seen if isinstance(event, TrialFinished)]
    assert [one.trial for one in ended] == list(range(1, 9))
    failed = [one.trial for one in ended if one.standing is Standing.FAILED]
    assert failed == [3], [one.reason for one in ended]
    assert any("connected to again" in one.text for one in seen if isinstance(one, Noted))
    assert sum(isinstance(one, LineProved) for one in seen) == 2, "proved again after the loss of contact"
    real_runs.await_same(lab.folder, before)
