"""The story of a run: the order of its hooks, and its last word whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from fake_testbed import FakeTestbed, small

from lab import runner, sleeping
from lab.analysis.summary import summarised
from lab.asking import Declined
from lab.cli import story
from lab.errors import AgentRefused, BadInput, ConnectionLost, HostUnreachable, LabError, TrialFailed
from lab.events import (
    Event,
    HostSeen,
    Noted,
    Outcome,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    Standing,
    TrafficSampled,
    TrialFinished,
    TrialStarted,
)
from lab.model import Trial
from lab.stop import Stop

TRIALS = 12


def told(bed: FakeTestbed, stop: Stop | None = None) -> list[Event]:
    return list(runner.run(small(), bed, stop or Stop(), lab_name="Fake", run_id="r1"))


def last(events: list[Event]) -> RunFinished:
    assert isinstance(events[-1], RunFinished)
    assert sum(isinstance(event, RunFinished) for event in events) == 1
    return events[-1]


def results(events: list[Event]) -> list[TrialFinished]:
    return [event for event in events if isinstance(event, TrialFinished)]


def pull(events: Iterator[Event], into: list[Event]) -> None:
    for event in events:
        into.append(event)


def test_every_trial_is_prepared_run_and_restored_before_the_next() -> None:
    bed = FakeTestbed()
    events = told(bed)
    hooks = [f"{word} {n}" for n in range(1, TRIALS + 1) for word in ("prepare", "run", "restore")]
    assert bed.log == ["open", *hooks, "close"]
    assert last(events).outcome is Outcome.DONE
    assert bed.line is None


def test_the_first_word_is_the_whole_plan_and_every_trial_starts_before_it_ends() -> None:
    events = told(FakeTestbed())
    first = events[0]
    assert isinstance(first, RunStarted)
    assert (first.run, first.lab, first.experiment, len(first.trials)) == ("r1", "Fake", small(), TRIALS)
    assert first.classes == {"get": "cacheable", "diff": "local"}
    numbers = [
        (type(event).__name__, event.trial)
        for event in events
        if isinstance(event, TrialStarted | TrialFinished)
    ]
    assert numbers == [(name, n) for n in range(1, TRIALS + 1) for name in ("TrialStarted", "TrialFinished")]


def test_nothing_happens_before_the_first_event_is_pulled() -> None:
    bed = FakeTestbed()
    events = runner.run(small(), bed, Stop())
    assert bed.log == []
    assert isinstance(next(events), RunStarted)
    assert bed.log == []
    events.close()


def test_an_impossible_plan_is_refused_before_anything() -> None:
    bed = FakeTestbed()
    with pytest.raises(BadInput):
        next(runner.run(small(attempts=1), bed, Stop()))
    assert bed.log == []


def test_stop_in_the_middle_restores_then_says_stopped() -> None:
    bed, stop, seen = FakeTestbed(), Stop(), []
    for event in runner.run(small(), bed, stop):
        seen.append(event)
        if isinstance(event, TrafficSampled) and event.trial == 3:
            stop.request()
    assert last(seen).outcome is Outcome.STOPPED
    assert bed.log[-3:] == ["run 3", "restore 3", "close"]
    assert [result.trial for result in results(seen)] == [1, 2]


def test_a_stop_asked_before_is_noticed_before_any_trial() -> None:
    bed, stop = FakeTestbed(), Stop()
    stop.request()
    assert last(told(bed, stop)).outcome is Outcome.STOPPED
    assert "prepare 1" not in bed.log


def test_a_stop_between_two_trials_is_noticed_before_the_next_is_prepared() -> None:
    bed, stop = FakeTestbed(), Stop()
    for event in runner.run(small(), bed, stop):
        if isinstance(event, TrialFinished):
            stop.request()
    assert bed.log[-3:] == ["run 1", "restore 1", "close"]


def test_a_failed_trial_fails_alone() -> None:
    bed = FakeTestbed(failing={2: "exit status 1: proxy refused the connection"})
    events = told(bed)
    assert last(events).outcome is Outcome.DONE
    failed = results(events)[1]
    assert failed.standing is Standing.FAILED
    assert failed.reason == "client: exit status 1: proxy refused the connection"
    assert len(results(events)) == TRIALS
    assert "restore 2" in bed.log


def test_a_trial_without_proof_is_void_and_the_run_goes_on() -> None:
    events = told(FakeTestbed(void={5: "the line was touched"}))
    assert results(events)[4].standing is Standing.VOID
    assert last(events).outcome is Outcome.DONE


def test_a_host_out_of_reach_fails_the_run_with_advice() -> None:
    bed = FakeTestbed(at={4: HostUnreachable("no answer", host="proxy")})
    events = told(bed)
    end = last(events)
    assert (end.outcome, end.reason) == (Outcome.FAILED, "proxy: no answer")
    assert end.advice == HostUnreachable.advice
    assert len(results(events)) == 3
    assert bed.log[-2:] == ["restore 4", "close"]


def test_a_lost_connection_fails_its_trial_and_the_hosts_are_made_ready_anew() -> None:
    bed = FakeTestbed(at={4: ConnectionLost("silent for 15 s", host="proxy")})
    events = told(bed)
    assert last(events).outcome is Outcome.DONE
    assert [one.trial for one in results(events)] == list(range(1, TRIALS + 1))
    lost = results(events)[3]
    assert (lost.standing, lost.reason) == (Standing.FAILED, "proxy: silent for 15 s")
    assert bed.log.count("open") == bed.log.count("close") == 2
    where = bed.log.index("restore 4")
    assert bed.log[where : where + 4] == ["restore 4", "close", "open", "prepare 5"]
    notes = [one for one in events if isinstance(one, Noted) and "connected to again" in one.text]
    assert [one.grade for one in notes] == ["trouble"]


def test_connections_that_are_lost_again_and_again_fail_the_run() -> None:
    lost = {number: ConnectionLost("silent", host="proxy") for number in range(2, TRIALS)}
    bed = FakeTestbed(at=lost)
    events = told(bed)
    assert (last(events).outcome, last(events).reason) == (Outcome.FAILED, "proxy: silent")
    assert len(results(events)) == 2 + runner.AGAIN
    assert bed.log.count("open") == 1 + runner.AGAIN


@pytest.mark.parametrize("trial", ["first", "last", "stopped"])
def test_where_going_on_makes_no_sense_a_lost_connection_fails_the_run(trial: str) -> None:
    stop = Stop()
    number = TRIALS if trial == "last" else 4
    bed = FakeTestbed(at={number: ConnectionLost("silent")})
    if trial == "first":
        bed = FakeTestbed(opening=ConnectionLost("silent"))
    events: list[Event] = []
    for event in runner.run(small(), bed, stop):
        events.append(event)
        if trial == "stopped" and isinstance(event, TrialStarted) and event.trial == number:
            stop.request()
    assert last(events).outcome in (Outcome.FAILED, Outcome.STOPPED)
    assert bed.log.count("open") == 1


def test_failing_to_connect_fails_the_run() -> None:
    bed = FakeTestbed(opening=HostUnreachable("no answer", host="server"))
    end = last(told(bed))
    assert (end.outcome, end.reason) == (Outcome.FAILED, "server: no answer")
    assert bed.log == ["open"]


def test_a_failure_while_undoing_replaces_stopped() -> None:
    stop = Stop()
    stop.request()
    end = last(told(FakeTestbed(closing=LabError("the line could not be lifted", host="server")), stop))
    assert (end.outcome, end.reason) == (Outcome.FAILED, "server: the line could not be lifted")


def test_a_failure_while_undoing_is_told_after_a_finished_run_too() -> None:
    events = told(FakeTestbed(closing=LabError("the line could not be lifted")))
    assert last(events).outcome is Outcome.FAILED
    assert len(results(events)) == TRIALS


def test_a_measured_trial_that_could_not_be_put_back_is_told_once_and_noted() -> None:
    events = told(FakeTestbed(restoring={2: TrialFailed("locks are left")}))
    assert [result.trial for result in results(events)] == list(range(1, TRIALS + 1))
    notes = [event for event in events if isinstance(event, Noted)]
    assert [(note.trial, note.grade, note.text) for note in notes] == [(2, "trouble", "locks are left")]


def test_a_run_that_nobody_agreed_to_says_so_in_its_last_word() -> None:
    events = told(FakeTestbed(opening=Declined("nobody agreed", advice="Agree.")))
    assert (last(events).outcome, last(events).declined) == (Outcome.FAILED, True)
    assert story.code_of(summarised(events)) == 2
    other = told(FakeTestbed(opening=HostUnreachable("no answer")))
    assert not last(other).declined
    assert story.code_of(summarised(other)) == 3


def test_what_could_not_be_taken_back_is_in_the_last_word_and_in_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = [Noted(text="a folder stays", grade="trouble"), Noted(text="by the way")]
    assert story.code_of(summarised(told(FakeTestbed()))) == 0
    monkeypatch.setattr(FakeTestbed, "account", lambda _: iter(notes))
    events = told(FakeTestbed())
    assert (last(events).outcome, last(events).left) == (Outcome.DONE, "a folder stays")
    assert events[-3:-1] == notes
    assert story.code_of(summarised(events)) == 1


def test_a_defect_says_the_last_word_and_then_crashes() -> None:
    bed = FakeTestbed(at={2: ZeroDivisionError("oh")})
    seen: list[Event] = []
    with pytest.raises(ZeroDivisionError):
        pull(runner.run(small(), bed, Stop()), seen)
    assert last(seen).outcome is Outcome.FAILED
    assert "defect" in last(seen).reason
    assert bed.log[-2:] == ["restore 2", "close"]


def test_abandoning_the_run_takes_everything_back() -> None:
    bed = FakeTestbed()
    events = runner.run(small(), bed, Stop())
    for event in events:
        if isinstance(event, TrafficSampled):
            break
    events.close()
    assert bed.log == ["open", "prepare 1", "run 1", "restore 1", "close"]


def test_a_pause_waits_before_the_next_trial() -> None:
    bed, stop, seen = FakeTestbed(), Stop(), []
    for event in runner.run(small(), bed, stop):
        seen.append(event)
        if isinstance(event, TrafficSampled) and event.trial == 1:
            stop.pause()
        if isinstance(event, RunPaused):
            assert bed.log[-1] == "restore 1"
            threading.Timer(0.01, stop.resume).start()
    kinds = [type(event) for event in seen]
    assert kinds.index(RunResumed) == kinds.index(RunPaused) + 1
    assert last(seen).outcome is Outcome.DONE


def test_stop_ends_a_pause() -> None:
    stop, seen = Stop(), []
    for event in runner.run(small(), FakeTestbed(), stop):
        seen.append(event)
        if isinstance(event, TrialFinished):
            stop.pause()
        if isinstance(event, RunPaused):
            stop.request()
    assert last(seen).outcome is Outcome.STOPPED
    assert not any(isinstance(event, RunResumed) for event in seen)


def test_runs_have_names_of_their_own() -> None:
    assert runner.new_id() != runner.new_id()


def test_stop_after_this_trial_measures_it_to_its_end() -> None:
    bed, stop, events = FakeTestbed(), Stop(), []
    for event in runner.run(small(), bed, stop):
        events.append(event)
        if isinstance(event, TrialStarted) and event.trial == 3:
            stop.request_after_trial()
    assert last(events).outcome is Outcome.STOPPED
    assert [one.trial for one in results(events)] == [1, 2, 3]
    assert results(events)[-1].standing is not Standing.FAILED
    assert bed.log[-2:] == ["restore 3", "close"]


def test_stop_after_this_trial_can_be_taken_back() -> None:
    stop, events = Stop(), []
    for event in runner.run(small(), FakeTestbed(), stop):
        events.append(event)
        if isinstance(event, TrialStarted) and event.trial == 3:
            stop.request_after_trial()
        if isinstance(event, TrafficSampled) and event.trial == 3:
            stop.withdraw_after_trial()
    assert last(events).outcome is Outcome.DONE


def test_a_paused_run_that_is_to_stop_after_its_trial_ends_at_once() -> None:
    stop, events = Stop(), []
    for event in runner.run(small(), FakeTestbed(), stop):
        events.append(event)
        if isinstance(event, TrialStarted) and event.trial == 2:
            stop.pause()
        if isinstance(event, RunPaused):
            stop.request_after_trial()
            stop.pause()  # too late
    assert last(events).outcome is Outcome.STOPPED
    assert len(results(events)) == 2


class Drowsy(FakeTestbed):
    """This machine sleeps for so many (made-up) seconds in the middle of the named trials."""

    def __init__(self, sleeps: dict[int, float], monkeypatch: pytest.MonkeyPatch, **given: object) -> None:
        super().__init__(**given)  # type: ignore[arg-type]
        self._sleeps, self.asleep_s = sleeps, 1000.0
        monkeypatch.setattr(sleeping, "asleep_s", lambda: self.asleep_s)

    def measure(self, trial: Trial, stop: Stop) -> Iterator[Event]:
        self.asleep_s += self._sleeps.pop(trial.number, 0.0)
        yield from super().measure(trial, stop)


def test_a_trial_during_which_this_machine_slept_is_void_and_the_hosts_are_made_ready_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bed = Drowsy({4: 312.0}, monkeypatch)
    events = told(bed)
    fourth = results(events)[3]
    assert (fourth.trial, fourth.standing) == (4, Standing.VOID)
    assert fourth.reason == "this machine slept for 5 min meanwhile"
    assert [proof.ok for proof in fourth.proofs if proof.name == "awake"] == [False]
    assert bed.log.count("open") == bed.log.count("close") == 2
    assert [one.trial for one in results(events)] == list(range(1, TRIALS + 1))
    assert sum(one.standing is Standing.VOID for one in results(events)) == 1
    assert last(events).outcome is Outcome.DONE
    notes = [event.text for event in events if isinstance(event, Noted)]
    assert "this machine slept for 5 min" in notes[0]
    assert notes[1] == "The hosts were found again; 8 trials are left"


def test_a_machine_that_sleeps_every_night_still_ends_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    nights = dict.fromkeys(range(2, 2 + 2 * runner.AGAIN), 30000.0)
    events = told(Drowsy(nights, monkeypatch))
    assert last(events).outcome is Outcome.DONE
    assert sum(one.standing is Standing.VOID for one in results(events)) == 2 * runner.AGAIN


def test_clocks_that_differ_by_a_blink_are_no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    events = told(Drowsy(dict.fromkeys(range(1, 6), 0.4), monkeypatch))
    assert not [one for one in results(events) if one.standing is Standing.VOID]


def test_a_trial_that_fails_since_this_machine_slept_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    bed = Drowsy({2: 60.0}, monkeypatch, failing={2: "svn: no answer"})
    second = results(told(bed))[1]
    assert (second.standing, second.reason) == (
        Standing.FAILED, "this machine slept for 60 s; client: svn: no answer",
    )  # fmt: skip


def test_a_lease_that_ended_in_a_sleep_costs_a_trial_and_not_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    lapsed = AgentRefused("the lease was not renewed in time", kind="lapsed", host="server")
    events = told(Drowsy({2: 60.0}, monkeypatch, at={2: lapsed}))
    assert last(events).outcome is Outcome.DONE
    assert results(events)[1].standing is Standing.FAILED
    assert last(told(FakeTestbed(at={2: lapsed}))).outcome is Outcome.FAILED  # nobody slept


def test_a_sleep_while_it_is_paused_is_noticed_before_the_next_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    bed, stop, events = Drowsy({}, monkeypatch), Stop(), []
    for event in runner.run(small(), bed, stop):
        events.append(event)
        if isinstance(event, TrialStarted) and event.trial == 2 and bed.asleep_s == 1000.0:
            stop.pause()
        if isinstance(event, RunPaused):
            bed.asleep_s += 5000.0
            stop.resume()
    assert bed.log.count("open") == 2
    assert len(results(events)) == TRIALS
    assert not [one for one in results(events) if one.standing is Standing.VOID]


def test_a_host_that_is_lost_and_found_again_is_told_both_times() -> None:
    bed = FakeTestbed(at={3: ConnectionLost("silent for 30 s", host="proxy")})
    events = told(bed)
    notes = [event for event in events if isinstance(event, Noted)]
    assert [(note.lost, note.grade) for note in notes] == [("proxy", "trouble"), ("", "info")]
    assert notes[1].text == "proxy was found again; 9 trials are left"
    lost, found = events.index(notes[0]), events.index(notes[1])
    assert any(isinstance(event, HostSeen) and event.host == "proxy" for event in events[lost:found])
