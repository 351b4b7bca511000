"""Several clients at the same moment, on real hosts: what they wait for each other, and what happens when one fails."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import own_repository
import pytest
import real_runs
from real_runs import FULL, experiment, read

from lab import embedded, runner, store, vcs
from lab.embedded import Embedded
from lab.events import (
    CommandStarted,
    Event,
    HostSeen,
    Noted,
    Outcome,
    OutputSeen,
    RunFinished,
    Standing,
    TrafficSampled,
    TrialFinished,
    TrialStarted,
)
from lab.hands import Hands
from lab.machines import Machines
from lab.model import AS_IT_IS, DISABLED, Change, Experiment, Line
from lab.rig import planning, scratch
from lab.stop import Stop

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
NARROW = Line(upload_bps=500_000, download_bps=1_000_000)


@pytest.fixture(scope="module")
def lab() -> Iterator[Embedded]:
    with embedded.up(clients=3) as made:
        yield made


def told(
    lab: Embedded,
    wanted: Experiment,
    path: Path | None = None,
    seen: Callable[[Event], None] = lambda event: None,
) -> list[Event]:
    going = runner.run(wanted, Machines(lab.lab, lease_s=8.0), Stop())
    events = []
    for event in going if path is None else store.recorded(going, path):
        events.append(event)
        seen(event)
    return events


def trials(events: Sequence[Event]) -> list[TrialFinished]:
    return [event for event in events if isinstance(event, TrialFinished)]


def last(events: Sequence[Event]) -> RunFinished:
    assert isinstance(events[-1], RunFinished)
    return events[-1]


def median(events: Sequence[Event], wanted: Experiment, state: object) -> float:
    from lab import design

    plan = {trial.number: trial.treatment.state for trial in design.trials(wanted)}
    times = [one.wall_s for one in trials(events) if plan[one.trial] == state and one.wall_s is not None]
    return statistics.median(times)


@pytest.fixture(scope="module")
def gets(
    lab: Embedded, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, tuple[Path, list[Event], Experiment]]:
    """Get over a narrow line, by one client and by three."""
    found = {}
    for clients in (1, 3):
        path = tmp_path_factory.mktemp("runs") / f"{clients}.branchlab"
        wanted = experiment(lines=(NARROW,), states=(DISABLED, FULL), clients=clients)
        found[clients] = path, told(lab, wanted, path), wanted
    return found


Gets = dict[int, tuple[Path, list[Event], Experiment]]


def test_past_the_proxy_three_clients_wait_about_three_times_as_long_and_with_a_full_cache_they_do_not(
    gets: Gets,
) -> None:
    for _, events, _ in gets.values():
        assert last(events).outcome is Outcome.DONE, last(events)
        assert {one.standing for one in trials(events)} == {Standing.KEPT}, [
            one.reason for one in trials(events)
        ]
    (_, one, wanted), (_, three, other) = gets[1], gets[3]
    alone, together = median(one, wanted, DISABLED), median(three, other, DISABLED)
    assert 2.2 < together / alone < 4
    # What the office saves by the cache is more the more clients there are.
    saved = median(three, other, FULL)
    assert saved < alone
    assert together / saved > alone / median(one, wanted, FULL) * 0.8


def test_each_client_is_timed_on_itself_and_the_trial_from_the_first_start_to_the_last_end(
    gets: Gets,
) -> None:
    path, events, _ = gets[3]
    for one in trials(events):
        assert [part.host for part in one.clients] == ["client", "client-2", "client-3"]
        assert min(part.started_s for part in one.clients) == 0
        ends = [part.started_s + (part.wall_s or 0) for part in one.clients]
        assert one.wall_s == pytest.approx(max(ends))
        assert all(part.exit_status == 0 and part.output.endswith("revision 100.\n") for part in one.clients)
        for pair in ("client>server", "server>client", "client>proxy", "proxy>client"):
            assert one.bytes[pair] == sum(part.bytes[pair] for part in one.clients)
        assert "3 clients began within" in next(p.text for p in one.proofs if p.name == "together")
    assert [one.clients for one in read(path).trials] == [one.clients for one in trials(events)]
    assert all(one.clients == () for one in trials(gets[1][1]))


def test_commands_and_output_say_on_which_client(gets: Gets) -> None:
    _, events, _ = gets[3]
    begun = [event for event in events if isinstance(event, CommandStarted)]
    for _, several in groupby(begun, key=lambda event: event.trial):
        assert [event.host for event in several] == ["client", "client-2", "client-3"]
    assert {event.host for event in events if isinstance(event, OutputSeen)} == {
        "client",
        "client-2",
        "client-3",
    }
    assert {event.host for event in gets[1][1] if isinstance(event, OutputSeen)} == {""}
    assert any(isinstance(event, TrafficSampled) for event in events)


def test_two_chosen_clients_check_out_and_check_in_at_once_without_a_conflict(lab: Embedded) -> None:
    wanted = experiment(
        operations=("get", "check-out", "check-in", "undo"),
        states=(DISABLED, FULL),
        clients=("client-3", "client-2"),
        attempts=1,
    )
    events = told(lab, wanted)
    assert last(events).outcome is Outcome.DONE, last(events)
    done = trials(events)
    assert len(done) == 8
    assert {one.standing for one in done} == {Standing.KEPT}, [one.reason for one in done]
    assert {tuple(part.host for part in one.clients) for one in done} == {("client-3", "client-2")}


def test_when_one_of_several_fails_the_trial_fails_and_says_which(lab: Embedded) -> None:
    spoilt: list[int] = []

    def spoil(event: Event) -> None:
        # A file stands where its working copy is to be: the trial is prepared already.
        if isinstance(event, CommandStarted) and event.trial == 2 and event.host == "client-2":
            real_runs.on(lab.folder, "client-2", f"touch {event.argv[-1]}")
            spoilt.append(event.trial)

    wanted = experiment(clients=2, attempts=3)
    events = told(lab, wanted, seen=spoil)
    assert spoilt == [2]
    assert [one.standing for one in trials(events)] == [Standing.KEPT, Standing.FAILED, Standing.KEPT]
    failed = trials(events)[1]
    assert failed.reason.startswith("client-2: exit status 1: svn: E")
    assert [(part.host, part.ok) for part in failed.clients] == [("client", True), ("client-2", False)]
    assert failed.exit_status == 1
    assert "svn: E" in failed.output


def test_a_client_that_is_lost_costs_its_trial_and_the_run_goes_on_with_all(lab: Embedded) -> None:
    cut: list[str] = []
    bed = Machines(lab.lab, lease_s=4.0)
    wanted = experiment(lines=(NARROW,), clients=3, attempts=3)
    events = []
    for event in runner.run(wanted, bed, Stop()):
        events.append(event)
        if isinstance(event, TrafficSampled) and event.trial == 2 and not cut:
            (lost,) = (one for one in bed._reached if one.name == "client-2")
            lost.connection.close()
            cut.append(lost.name)
    assert last(events).outcome is Outcome.DONE, last(events)
    assert [one.standing for one in trials(events)] == [Standing.KEPT, Standing.FAILED, Standing.KEPT]
    (note,) = (event for event in events if isinstance(event, Noted) and event.lost)
    assert note.lost == "client-2"
    assert [event.host for event in events if isinstance(event, HostSeen)].count("client-3") == 2
    assert len(trials(events)[2].clients) == 3


def test_stop_ends_all_of_them_and_takes_everything_back(lab: Embedded) -> None:
    stop = Stop()
    events = []
    for event in runner.run(experiment(lines=(NARROW,), clients=3), Machines(lab.lab), stop):
        events.append(event)
        if isinstance(event, TrafficSampled):
            stop.request()
    assert last(events).outcome is Outcome.STOPPED
    assert last(events).left == ""
    assert trials(events) == []
    assert [event.trial for event in events if isinstance(event, TrialStarted)] == [1]
    for name in ("client", "client-2", "client-3"):
        assert not any("checkout" in words for words in real_runs.on_host(lab.folder, name).values())


def test_the_first_client_alone_is_as_before(lab: Embedded) -> None:
    events = told(lab, experiment(lines=(AS_IT_IS,), clients=1))
    assert {one.standing for one in trials(events)} == {Standing.KEPT}
    assert all("together" not in [proof.name for proof in one.proofs] for one in trials(events))


def test_a_cache_is_filled_by_hand_by_one_client(lab: Embedded) -> None:
    by_hand = Hands(lab.lab, experiment(states=(DISABLED, FULL), clients=("client-3", "client")))
    assert len(by_hand.fill("get", Stop()).here) == 150
    assert by_hand._narrowed("get").clients == ("client-3",)


def test_two_clients_lock_and_commit_in_a_repository_as_it_is_below_its_place_alone(
    lab: Embedded, tmp_path: Path
) -> None:
    url = f"http://{{server}}:{own_repository.PORT}/svn"
    wanted = experiment(
        data=None,
        repository=f"{url}/trunk",
        scratch=f"{url}/lab/branchlab-scratch",
        operations=("check-out", "check-in"),
        change=Change(files=20),
        clients=("client", "client-3"),
    )
    with own_repository.served(lab) as repository:
        scratch.make(lab.lab, wanted, vcs.driver("subversion"))
        newest = repository.newest()
        ran = real_runs.ran(lab.lab, wanted, tmp_path / "own.branchlab")
        assert ran.last_word.outcome is Outcome.DONE, ran.last_word
        assert {one.standing for one in ran.trials} == {Standing.KEPT}, [one.reason for one in ran.trials]
        for _, one in ran.of("check-out"):
            assert [part.output.count(" locked by user") for part in one.clients] == [20, 20]
        changed = repository.changed(newest)
        assert len(changed) == planning.revisions(wanted) == 2 + 2 + 2 * 2 * 2 + 1
        assert all(
            path.startswith("/lab/branchlab-scratch/run-") for paths in changed.values() for path in paths
        )
        assert (repository.locks(), repository.names("/lab/branchlab-scratch")) == ([], [])
