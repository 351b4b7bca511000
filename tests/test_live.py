"""The live view of a run: standings, cells, what to expect, curves of a minute, output; all bounded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from fake_testbed import FakeTestbed, experiment, small

from lab import events, runner
from lab.events import (
    ClientDone,
    CommandStarted,
    Event,
    HostSeen,
    Noted,
    Outcome,
    OutputSeen,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    Standing,
    TrafficSampled,
    TrialFinished,
    TrialStarted,
)
from lab.live import RUNNING, WAITING, WINDOW_S, Curve, Live
from lab.model import DISABLED, Experiment, Line, ProxyState, Treatment, Trial
from lab.stop import Stop

SLOW, FAST = Line(upload_bps=64_000, download_bps=128_000), Line(upload_bps=128_000, download_bps=256_000)
DOWN = "server>client"
AT = "2026-01-02T03:04:05+00:00"


@dataclass
class Clock:
    """A clock that a test moves."""

    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


def told(asked: Experiment, **bed: object) -> Iterator[Event]:
    return runner.run(asked, FakeTestbed(**bed), Stop(), lab_name="fake")  # type: ignore[arg-type]


def plan(*treatments: Treatment, attempts: int = 2) -> RunStarted:
    """A run whose first attempt of every cell is warm-up."""
    counted = itertools.count(1)
    trials = tuple(
        Trial(number=next(counted), block=attempt, treatment=treatment, attempt=attempt, warm_up=attempt == 1)
        for attempt in range(1, attempts + 1)
        for treatment in treatments
    )
    asked = Experiment(
        name="x",
        lines=tuple(dict.fromkeys(t.line for t in treatments)),
        states=tuple(dict.fromkeys(t.state for t in treatments)),
    )
    return RunStarted(run="r", at=AT, experiment=asked, trials=trials, classes={})


def get(line: Line = SLOW, state: ProxyState = DISABLED) -> Treatment:
    return Treatment(line=line, operation="get", state=state)


def ended(number: int, wall_s: float, standing: Standing = Standing.KEPT, **more: object) -> TrialFinished:
    return TrialFinished(trial=number, at=AT, standing=standing, wall_s=wall_s, **more)  # type: ignore[arg-type]


def folded(*events: Event, clock: Clock | None = None) -> Live:
    live = Live(clock or Clock())
    for event in events:
        live.apply(event)
    return live


def test_a_whole_run_folds_into_cells_and_counts() -> None:
    live = folded(*told(small(), failing={4: "no answer"}, void={6: "not quiet"}))
    assert live.outcome is Outcome.DONE
    assert not live.running
    assert (live.done, live.total) == (12, 12)
    assert live.standing[4] == "failed"
    assert live.standing[6] == "void"
    assert sum(live.counts.values()) == 12
    assert sum(cell.kept for cell in live.cells.values()) == live.counts["kept"] == 12 - 4 - live_bad(live)
    assert all(cell.left == 0 for cell in live.cells.values())
    assert set(live.hosts) == {"client", "proxy", "server"}
    assert live.proved
    assert live.lab == "fake"


def live_bad(live: Live) -> int:
    """Counted trials that were not kept."""
    planned = {trial.number: trial for trial in live.trials}
    return sum(planned[n].counted and s in ("failed", "void") for n, s in live.standing.items())


def test_standing_while_a_trial_runs() -> None:
    live = folded(plan(get()), TrialStarted(trial=1, at=AT))
    assert live.standing == {1: RUNNING, 2: WAITING}
    assert live.current is not None
    assert live.current.timed_since is None
    live.apply(CommandStarted(trial=1, host="desk", argv=("svn", "checkout")))
    assert live.current.host == "desk"
    live.apply(ended(1, 3.0, Standing.WARM_UP))
    assert live.current is None
    assert live.standing[1] == "warm-up"


def test_a_run_that_stops_leaves_its_trial_waiting() -> None:
    finished = RunFinished(at=AT, outcome=Outcome.STOPPED)
    live = folded(plan(get()), TrialStarted(trial=1, at=AT), finished)
    assert live.standing[1] == WAITING
    assert live.current is None
    assert live.outcome is Outcome.STOPPED


def test_a_second_record_of_a_trial_is_not_counted_again() -> None:
    live = folded(plan(get()), ended(2, 1.0), ended(2, 9.0))
    assert live.cells[get()].median_s == 1.0
    assert live.done == 1


def test_median_and_range_of_kept_attempts_only() -> None:
    live = folded(plan(get(), attempts=5), ended(1, 99.0, Standing.WARM_UP), ended(2, 3.0), ended(3, 1.0))
    cell = live.cells[get()]
    assert (cell.kept, cell.median_s, cell.range_s) == (2, 2.0, (1.0, 3.0))
    live.apply(ended(4, 50.0, Standing.VOID))
    live.apply(ended(5, 1.5))
    assert (cell.kept, cell.median_s) == (3, 1.5)


def test_nothing_is_expected_before_anything_was_measured() -> None:
    live = folded(plan(get(), get(FAST)))
    assert live.expected_s(get()) is None
    assert live.eta() is None


def test_expectation_comes_from_the_cell_itself_first() -> None:
    live = folded(plan(get(), attempts=3), ended(1, 9.0, Standing.WARM_UP))
    assert live.expected_s(get()) == 9.0
    live.apply(ended(2, 4.0))
    assert live.expected_s(get()) == 4.0


def test_expectation_on_another_line_scales_the_transfer_only() -> None:
    # 160 kB down need 10 s at 128 kbit/s and 5 s at 256; the other 2 s do not depend on the line
    moved = {"server>client": 160_000, "client>server": 1000}
    live = folded(plan(get(), get(FAST)), ended(1, 12.0, Standing.WARM_UP, bytes=moved))
    assert live.expected_s(get(FAST)) == pytest.approx(7.0)
    assert live.expected_s(get(FAST, ProxyState(full=0))) is None


def test_expectation_of_what_a_failed_trial_left() -> None:
    live = folded(plan(get()), TrialFinished(trial=1, at=AT, standing=Standing.FAILED, reason="no"))
    assert live.expected_s(get()) is None


def test_eta_is_a_range_that_holds() -> None:
    live = Live(Clock())
    truth: list[float] = []
    guesses: list[tuple[float, tuple[float, float] | None]] = []
    spent = 0.0
    for event in told(experiment(lines=(SLOW,), attempts=3)):
        live.apply(event)
        if isinstance(event, TrialFinished):
            spent += (event.wall_s or 0) + event.preparing_s
            truth.append(spent)
            guesses.append((spent, live.eta()))
    done, guess = guesses[len(guesses) // 2]
    assert guess is not None
    left = truth[-1] - done
    assert guess[0] * 0.9 <= left <= guess[1] * 1.1
    assert guesses[-1][1] == (0.0, 0.0)


def test_parts_have_a_share_per_line_and_end_full() -> None:
    live = folded(*told(experiment(lines=(SLOW, FAST), operations=("get",))))
    parts = list(live.parts())
    assert [line for line, _, _ in parts] == [SLOW, FAST]
    assert sum(share for _, share, _ in parts) == pytest.approx(1)
    assert parts[0][1] > parts[1][1]
    assert [done for _, _, done in parts] == [1.0, 1.0]


def test_curves_are_rates_of_what_arrived() -> None:
    clock = Clock()
    live = folded(plan(get()), TrialStarted(trial=1, at=AT), clock=clock)
    for n in range(1, 4):
        clock.now_s += 0.1
        live.apply(TrafficSampled(trial=1, t_s=n / 10, bytes={"server>client": 1600 * n}))
    curve = live.curves["server>client"]
    assert [round(rate) for _, rate in curve.points] == [0, 128_000, 128_000, 128_000]
    assert curve.now == pytest.approx(128_000)
    assert live.curves["client>server"].now == 0
    live.apply(ended(1, 0.3))
    assert curve.now == 0


def test_curves_begin_anew_with_each_trial_and_never_run_backwards() -> None:
    clock = Clock()
    live = folded(plan(get()), TrialStarted(trial=1, at=AT), clock=clock)
    live.apply(TrafficSampled(trial=1, t_s=5.0, bytes={"server>client": 10_000}))
    live.apply(ended(1, 5.0))
    clock.now_s += 0.01
    live.apply(TrialStarted(trial=2, at=AT))
    live.apply(TrafficSampled(trial=2, t_s=0.1, bytes={"server>client": 100}))
    times = [t for t, _ in live.curves["server>client"].points]
    assert times == sorted(times)
    assert live.curves["server>client"].now == pytest.approx(8000)


def test_a_rate_that_is_old_is_none_of_now() -> None:
    """As where a host is lost, or this machine slept; until the next sample."""
    clock = Clock()
    live = folded(plan(get()), TrialStarted(trial=1, at=AT), clock=clock)
    assert live.rate(DOWN) == 0.0
    for n in range(1, 4):
        clock.now_s += 0.1
        live.apply(TrafficSampled(trial=1, t_s=0.1 * n, bytes={DOWN: 1000 * n}))
    assert live.rate(DOWN) == pytest.approx(80_000)
    assert live.silent_s == 0.0
    clock.now_s += 600
    assert live.rate(DOWN) is None
    assert live.silent_s == pytest.approx(600)
    live.apply(TrafficSampled(trial=1, t_s=600.4, bytes={DOWN: 63_000}))
    assert live.rate(DOWN) == pytest.approx(60_000 * 8 / 600.1)
    live.apply(ended(1, 601.0))
    clock.now_s += 600
    assert live.rate(DOWN) == 0.0
    assert live.silent_s == 0.0


def test_no_line_is_held_on_hosts_that_are_made_ready_anew() -> None:
    live = folded(plan(get()), HostSeen(host="server", role="server", facts={}))
    live.apply(TrialStarted(trial=1, at=AT))
    assert live.applied_line == SLOW
    live.apply(HostSeen(host="server", role="server", facts={}))
    assert live.applied_line is None


def test_a_pair_that_nobody_counts_has_no_curve_rather_than_one_at_zero() -> None:
    live = folded(plan(get()), TrialStarted(trial=1, at=AT), clock=Clock())
    live.apply(TrafficSampled(trial=1, t_s=0.1, bytes={"server>client": 100}))
    assert [pair for pair, curve in live.curves.items() if curve.points] == ["server>client"]


def test_memory_is_bounded() -> None:
    clock = Clock()
    live = folded(plan(get()), TrialStarted(trial=1, at=AT), clock=clock)
    live.apply(CommandStarted(trial=1, host="desk", argv=("svn",)))
    for n in range(1, 5000):
        clock.now_s += 0.1
        live.apply(TrafficSampled(trial=1, t_s=n / 10, bytes={"server>client": n}))
        live.apply(OutputSeen(trial=1, stream="stdout", text=f"A file{n}\n"))
        live.apply(Noted(text=str(n)))
    points = live.curves["server>client"].points
    assert len(points) <= WINDOW_S * 10 + 3
    assert points[-1][0] - points[1][0] <= WINDOW_S + 0.2
    assert len(live.output) == 200
    assert live.output[-1].text == "A file4999"
    assert len(live.notes) == 300


def test_output_is_joined_where_a_chunk_ends_within_a_line() -> None:
    live = folded(plan(get()), TrialStarted(trial=1, at=AT))
    live.apply(CommandStarted(trial=1, host="desk", argv=("svn", "up")))
    for text in ("A  fi", "le1\nA  file2\n", "A"):
        live.apply(OutputSeen(trial=1, stream="stdout", text=text))
    live.apply(OutputSeen(trial=1, stream="stderr", text="warning\n"))
    assert [line.text for line in live.output] == ["svn up", "A  file1", "A  file2", "A", "warning"]


def test_one_endless_line_stays_short() -> None:
    live = folded(plan(get()), TrialStarted(trial=1, at=AT))
    for _ in range(50):
        live.apply(OutputSeen(trial=1, stream="stdout", text="." * 1000))
    assert sum(len(line.text) for line in live.output) <= 2000


def test_pause_and_going_on() -> None:
    live = folded(plan(get()), RunPaused())
    assert live.paused
    live.apply(RunResumed())
    assert not live.paused


def test_another_run_starts_from_nothing() -> None:
    live = folded(*told(small()))
    live.apply(plan(get()))
    assert (live.done, live.total, live.outcome) == (0, 2, None)
    assert not live.counts
    assert live.running


def test_overhead_is_what_trials_take_beside_their_command() -> None:
    live = folded(plan(get()), TrialStarted(trial=1, at="2026-01-02T03:04:05+00:00"))
    done = TrialFinished(trial=1, at="2026-01-02T03:04:09+00:00", standing=Standing.WARM_UP, wall_s=3.0)
    live.apply(done)
    assert live.overhead_s == pytest.approx(1.0)


def test_what_a_terminal_would_obey_is_not_shown() -> None:
    live = Live()
    for event in runner.run(small(), FakeTestbed(), Stop()):
        live.apply(event)
        if event.kind == "command-started":
            break
    number = live.trials[0].number
    text = "\x1b[1;31mA  \x1b[0mfile\x07\tone\x1b]0;title\x07\x00\x9b2J\n\x1b(Bplain\x1b[K\n\x1b[3"
    live.apply(events.OutputSeen(trial=number, stream="stdout", text=text))
    assert [line.text for line in live.output][1:] == ["A  file\tone2J", "plain", "3"]


def test_a_flood_of_samples_is_bounded() -> None:
    curve = Curve()
    for number in range(50_000):
        curve.add(number / 10_000, 1.0)
    assert len(curve.points) <= 4000
    assert curve.now == 1.0


def test_the_output_of_several_clients_says_where_and_its_lines_are_not_mixed() -> None:
    live = folded(plan(get()), TrialStarted(trial=1, at=AT))
    for host in ("desk-1", "desk-2"):
        live.apply(CommandStarted(trial=1, host=host, argv=("svn", "up", host)))
    for host, text in (("desk-1", "A  fi"), ("desk-2", "A  x"), ("desk-1", "le1\nA"), ("desk-2", "y\n")):
        live.apply(OutputSeen(trial=1, stream="stdout", text=text, host=host))
    assert live.current is not None
    assert live.current.host == "desk-1, desk-2"
    assert [line.told for line in live.output] == [
        "desk-1  $ svn up desk-1", "desk-2  $ svn up desk-2", "desk-1  A  file1", "desk-2  A  xy", "desk-1  A",
    ]  # fmt: skip
    parts = (
        ClientDone(host="desk-1", started_s=0.0, error_s=0.0, exit_status=0, wall_s=2.5, output="long"),
        ClientDone(host="desk-2", started_s=0.0021, error_s=0.001, exit_status=1, wall_s=0.25, ok=False),
    )
    live.apply(ended(1, 2.5, Standing.FAILED, clients=parts))
    assert [line.told for line in live.output][-2:] == [
        "desk-1  exit status 0 after 0:02.50, begun first",
        "desk-2  exit status 1 after 250 ms, begun 2.1 ms after the first",
    ]
    assert [one.output for one in live.attempts[1].clients] == ["", ""]
