"""Cells and verdicts: medians, ranges, bytes, and when a difference is called one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs_made import FAST, SLOW, cells_experiment, few, finished, made, results, started

from lab.analysis.cells import Cell, cells, compared
from lab.analysis.comparing import LEAST_KEPT, compare
from lab.events import RunStarted, Standing, TrialFinished
from lab.model import DISABLED, PAIRS, ProxyState, Trial

FULL = ProxyState(full=100)


def one(wall: dict[ProxyState, list[float]], **more: object) -> dict[str, Cell]:
    """Cells by state of a Get on one line, with these times per attempt."""
    states = tuple(wall)
    first = started(cells_experiment(states=states, attempts=max(map(len, wall.values()))))
    ended = [
        finished(trial, wall[trial.treatment.state][trial.attempt - 1])
        for trial in first.trials
        if trial.attempt <= len(wall[trial.treatment.state])
    ]
    return {cell.state: cell for cell in cells(first, ended, **more)}  # type: ignore[arg-type]


def test_median_and_range_come_from_kept_attempts_only() -> None:
    first = started(cells_experiment(states=[DISABLED], attempts=5, warm_up=1))
    times = {1: 9.0, 2: 3.0, 3: 1.0, 4: 2.0, 5: 99.0}
    ended = [
        finished(trial, times[trial.attempt], **({"standing": Standing.VOID} if trial.attempt == 5 else {}))
        for trial in first.trials
    ]
    (cell,) = cells(first, ended)
    assert (cell.planned, cell.kept, cell.void, cell.failed, cell.excluded) == (4, 3, 1, 0, 0)
    assert (cell.median_s, cell.low_s, cell.high_s) == (2.0, 1.0, 3.0)


def test_an_excluded_trial_is_counted_as_excluded_and_as_nothing_else() -> None:
    first = started(cells_experiment(states=[DISABLED]))
    ended = results(first, lambda trial: float(trial.number))
    (cell,) = cells(first, ended, excluded={3})
    assert (cell.kept, cell.excluded, cell.high_s) == (2, 1, 2.0)


def test_bytes_are_medians_per_kept_trial_and_unknown_stays_unknown() -> None:
    first = started(cells_experiment(states=[FULL]))
    ended = [
        finished(trial, 1.0, bytes={"client>proxy": 100 * trial.attempt}, served_bytes=10 * trial.attempt)
        for trial in first.trials
    ]
    (cell,) = cells(first, ended)
    assert cell.bytes["client>proxy"] == 200
    assert cell.bytes["client>server"] is None
    assert (cell.served_bytes, cell.direct_bytes, cell.traffic_trials) == (20, None, 3)


def test_a_launch_gives_bytes_and_no_time() -> None:
    first = started(
        cells_experiment(
            operations=["history"], states=[DISABLED, FULL], disabled_only=("history",), launches=True
        )
    )
    ended = [finished(trial, 5.0, bytes={"server>proxy": 77}) for trial in first.trials]
    base, launched = cells(first, ended)
    assert (launched.state, launched.planned, launched.kept, launched.median_s) == ("100 %", 0, 0, None)
    assert (launched.bytes["server>proxy"], launched.traffic_trials, launched.verdict) == (77, 1, "too-few")
    assert (base.kept, base.verdict) == (3, "base")


def test_cells_come_by_line_operation_and_state_with_disabled_first() -> None:
    first = started(
        cells_experiment(
            [FAST, SLOW], ["diff", "get"], [FULL, ProxyState(full=37.5), DISABLED], order="published"
        )
    )
    told = [(cell.line, cell.operation, cell.state) for cell in cells(first, [])]
    one_line = [(name, state) for name in ("get", "diff") for state in ("disabled", "37.5 %", "100 %")]
    assert told == [(line, *rest) for line in (FAST, SLOW) for rest in one_line]


@pytest.mark.parametrize(
    ("base", "other", "tool_start_s", "verdict"),
    [
        ([6.0, 6.1, 6.2], [0.8, 0.9, 1.0], 0.0, "faster"),
        ([0.8, 0.9, 1.0], [6.0, 6.1, 6.2], 0.0, "slower"),
        ([6.0, 6.1, 6.2], [5.0, 5.1, 6.0], 0.0, "no-difference"),  # the ranges touch
        ([0.100, 0.101, 0.102], [0.085, 0.085, 0.085], 0.0, "no-difference"),  # 16 ms
        ([0.100, 0.101, 0.102], [0.060, 0.061, 0.062], 0.0, "faster"),  # 40 ms
        ([0.100, 0.101, 0.102], [0.060, 0.061, 0.062], 0.050, "no-difference"),  # the tool's start
        ([6.0, 6.1, 6.2], [0.8], 0.0, "too-few"),
        ([6.0], [0.8, 0.9, 1.0], 0.0, "too-few"),
    ],
)
def test_the_rule_of_a_difference(
    base: list[float], other: list[float], tool_start_s: float, verdict: str
) -> None:
    told = one({DISABLED: base, FULL: other}, tool_start_s=tool_start_s)
    assert told["100 %"].verdict == verdict
    assert told["disabled"].verdict == "base"


def test_without_a_base_nothing_is_claimed() -> None:
    told = one({ProxyState(full=0): [6.0, 6.1], FULL: [1.0, 1.1]})
    assert {cell.verdict for cell in told.values()} == {"too-few"}


def test_only_void_trials_make_a_void_cell() -> None:
    first = started(cells_experiment(states=[DISABLED, FULL]))
    ended = [
        finished(trial, 1.0, **({"standing": Standing.VOID} if trial.treatment.state == FULL else {}))
        for trial in first.trials
    ]
    assert [cell.verdict for cell in cells(first, ended)] == ["base", "void"]


@few
@given(made(), st.randoms(use_true_random=False))
def test_the_order_of_trials_does_not_matter(
    run: tuple[RunStarted, list[TrialFinished]], dice: random.Random
) -> None:
    first, ended = run
    shuffled = list(ended)
    dice.shuffle(shuffled)
    assert cells(first, shuffled) == cells(first, ended)


@few
@given(made())
def test_every_cell_adds_up(run: tuple[RunStarted, list[TrialFinished]]) -> None:
    first, ended = run
    told = cells(first, ended)
    assert {(cell.line, cell.operation, cell.proxy) for cell in told} == {
        (t.treatment.line, t.treatment.operation, t.treatment.state) for t in first.trials
    }
    for cell in told:
        assert cell.kept + cell.void + cell.failed + cell.excluded <= cell.planned
        assert (cell.median_s is None) == (cell.kept == 0)
        if cell.median_s is not None:
            assert cell.low_s is not None
            assert cell.high_s is not None
            assert cell.low_s <= cell.median_s <= cell.high_s


@few
@given(st.lists(st.floats(0, 10), min_size=2, max_size=4), st.lists(st.floats(0, 10), min_size=2, max_size=4))
def test_faster_and_slower_mirror_each_other(base: list[float], other: list[float]) -> None:
    told = one({DISABLED: base, FULL: other})
    mirror = {"faster": "slower", "slower": "faster"}
    forth = compared(told["100 %"], told["disabled"])
    assert compared(told["disabled"], told["100 %"]) == mirror.get(forth, forth)


def test_results_of_trials_that_are_not_planned_are_left_alone() -> None:
    first = started(cells_experiment(states=[DISABLED]))
    stranger = Trial(number=99, block=1, treatment=first.trials[0].treatment, attempt=9)
    (cell,) = cells(first, [finished(stranger, 1.0)])
    assert cell.kept == 0


@pytest.mark.parametrize(("moved", "verdict"), [(0, "no-difference"), (501, "slower")])
def test_what_sends_nothing_is_never_called_different(moved: int, verdict: str) -> None:
    first = started(cells_experiment(states=[DISABLED, FULL]))
    ended = [
        finished(
            trial,
            (1.0 if trial.treatment.state == FULL else 0.5) + trial.attempt / 1000,
            bytes=dict.fromkeys(PAIRS, moved),
        )
        for trial in first.trials
    ]
    found = {cell.state: cell.verdict for cell in cells(first, ended)}
    assert found == {"disabled": "base", "100 %": verdict}


def test_a_verdict_needs_three_and_says_how_many_would_tell() -> None:
    told = one({DISABLED: [6.0, 6.6, 6.3], FULL: [5.4, 5.7]})["100 %"].against
    assert told is not None
    assert (told.verdict, told.low, told.p) == ("too-few", None, None)
    assert told.needed is not None
    assert told.needed > 2
    only = one({DISABLED: [6.0], FULL: [5.0]})["100 %"].against
    assert only is not None
    assert only.needed == LEAST_KEPT


def test_no_difference_says_which_one_would_have_been_seen() -> None:
    told = one({DISABLED: [6.0, 6.1, 6.2], FULL: [6.05, 6.1, 6.1]})["100 %"].against
    assert told is not None
    assert told.smallest is not None
    assert told.low is not None
    assert told.high is not None
    assert told.low < 1 < told.high
    assert told.high < 1 + 2 * told.smallest
    for factor, verdict in ((1 + 1.1 * told.smallest, "slower"), (1 + 0.5 * told.smallest, "no-difference")):
        moved = one({DISABLED: [6.0, 6.1, 6.2], FULL: [time * factor for time in (6.05, 6.1, 6.1)]})
        assert moved["100 %"].verdict == verdict
    short = one({DISABLED: [0.1, 0.1, 0.1], FULL: [0.1, 0.1, 0.1]})["100 %"].against
    assert short is not None
    assert short.smallest == pytest.approx(0.2)  # 20 ms


def test_the_ranges_may_overlap_where_the_interval_leaves_out_1() -> None:
    calm = {ProxyState(full=full): [3.0, 3.01, 3.02, 3.03] for full in (10, 20, 30)}
    told = one({DISABLED: [3.10, 3.11, 3.12, 3.13], FULL: [3.07, 3.08, 3.09, 3.10], **calm})
    assert told["100 %"].verdict == "faster"


def test_medians_that_disagree_with_the_means_are_no_difference() -> None:
    told = one({DISABLED: [1.0, 1.0, 1.0, 9.0], FULL: [1.1, 1.1, 1.1, 1.1]})
    assert told["100 %"].verdict == "no-difference"


def test_another_state_may_be_the_base() -> None:
    walls = {DISABLED: [6.0, 6.1, 6.2], ProxyState(full=0): [7.0, 7.1, 7.2], FULL: [1.0, 1.1, 1.2]}
    told = one(walls, base=ProxyState(full=0))
    assert {name: cell.verdict for name, cell in told.items()} == {
        "disabled": "faster",
        "0 %": "base",
        "100 %": "faster",
    }


def test_from_twelve_attempts_on_the_middle_stands_beside_the_mean() -> None:
    told = one({DISABLED: [6.0 + n / 100 for n in range(12)], FULL: [1.0 + n / 100 for n in range(12)]})
    assert told["100 %"].middle is not None
    assert told["100 %"].against is not None
    assert told["100 %"].against.shift is not None
    assert told["100 %"].against.shift[0] == pytest.approx(1.055 / 6.055, rel=0.01)


def test_published_figures_are_held_against_each_other_by_sign_alone() -> None:
    def cell(median_s: float | None) -> Cell:
        return Cell(
            line=SLOW,
            operation="get",
            proxy=FULL,
            median_s=median_s,
            bytes={},
            published=True,
            verdict="base",
        )

    told = compare(cell(20.71), cell(20.93))
    assert (told.verdict, told.low, told.p) == ("faster", None, None)
    assert told.ratio == pytest.approx(20.71 / 20.93)
    assert [compare(cell(other), cell(20.0)).verdict for other in (20.0, 21.0, None)] == [
        "no-difference",
        "slower",
        "too-few",
    ]
