"""Spread, intervals and corrections: against SciPy's own, and against runs whose truth is known."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from scipy import stats

from lab.analysis import spread

RUNS = 2000


def test_the_pooled_spread_is_the_error_mean_square_of_an_analysis_of_variance() -> None:
    samples = [[1.0, 1.02, 1.01], [5.0, 5.05, 4.9], [0.3, 0.302, 0.299, 0.301], [9.0]]
    squares = sum(float(np.sum((np.log(s) - np.mean(np.log(s))) ** 2)) for s in samples)
    for one in spread.spreads(samples):
        assert one is not None
        assert one.sd == pytest.approx((squares / 7) ** 0.5)
        assert (one.degrees, one.own) == (7, False)


def test_a_cell_that_scatters_otherwise_has_its_own_spread() -> None:
    calm = [[1.0, 1.001, 0.999, 1.0005], [2.0, 2.002, 1.999, 2.001]]
    found = spread.spreads([*calm, [1.0, 1.5, 0.7, 1.2]])
    assert all(one is not None and one.own and one.degrees == 3 for one in found)
    assert found[2] is not None
    assert found[2].sd == pytest.approx(float(np.std(np.log([1.0, 1.5, 0.7, 1.2]), ddof=1)))


def test_bartletts_test_is_that_of_scipy() -> None:
    samples = [[1.0, 1.1, 0.95], [2.0, 2.5, 2.2, 1.9], [3.0, 3.05, 3.02]]
    expected = stats.bartlett(*[np.log(s) for s in samples]).pvalue
    assert spread.unequal(samples) == pytest.approx(expected)
    assert spread.unequal([[1.0, 1.0], [2.0, 2.0]]) == 1
    assert spread.unequal([[1.0, 1.1]]) == 1


def test_nothing_scatters_where_no_cell_has_two_attempts() -> None:
    assert spread.spreads([[1.0], [2.0], []]) == (None, None, None)
    found = spread.spreads([[1.0, 1.1], [2.0], []])
    assert [one.degrees if one else None for one in found] == [1, 1, 1]


def test_intervals_are_those_of_students_t() -> None:
    times, base = [1.0, 1.1, 1.05], [2.0, 2.1, 1.95, 2.2]
    own = spread.Spread(float(np.std(np.log(times), ddof=1)), 2, own=True)
    other = spread.Spread(float(np.std(np.log(base), ddof=1)), 3, own=True)
    low, high = stats.t.interval(0.95, 2, np.mean(np.log(times)), own.sd / 3**0.5)
    assert spread.interval(spread.geometric(times), 3, own) == pytest.approx((exp(low), exp(high)))
    welch = stats.ttest_ind(np.log(times), np.log(base), equal_var=False)
    found = spread.ratio((spread.geometric(times), 3, own), (spread.geometric(base), 4, other))
    low, high = welch.confidence_interval(0.95)
    assert (found.low, found.high, found.p) == pytest.approx((exp(low), exp(high), welch.pvalue))
    (pooled, _) = spread.spreads([times, base])
    assert pooled is not None
    student = stats.ttest_ind(np.log(times), np.log(base))
    found = spread.ratio((spread.geometric(times), 3, pooled), (spread.geometric(base), 4, pooled))
    low, high = student.confidence_interval(0.95)
    assert (found.low, found.high, found.p) == pytest.approx((exp(low), exp(high), student.pvalue))


def test_times_without_any_scatter_are_told_apart_and_zero_has_a_logarithm() -> None:
    still = spread.Spread(0.0, 4)
    assert spread.ratio((2.0, 3, still), (1.0, 3, still)).p == 0
    assert spread.ratio((1.0, 3, still), (1.0, 3, still)).p == 1
    assert spread.geometric([0.0, 0.0]) == pytest.approx(spread.LEAST_TIME_S)


def test_holm_is_the_published_example_and_never_loses_the_order() -> None:
    # Holm (1979): p-values 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02.
    assert spread.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert spread.holm([]) == []
    assert spread.holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("apart", [0.02, 0.05, 0.3])
def test_so_many_attempts_as_said_would_tell(apart: float) -> None:
    one = spread.Spread(0.03, 10)
    count = spread.needed(apart, one)
    assert count is not None
    for attempts, tells in ((count, True), (count - 1, False)):
        if attempts >= 3:
            half = stats.t.ppf(0.975, 2 * (attempts - 1)) * 0.03 * (2 / attempts) ** 0.5
            assert bool(half < apart) is tells
    assert spread.needed(1e-6, one) is None


# Runs with known truth. Every cell's true time is 1, so an interval is right if 1 lies within.


def drawn(kind: str, attempts: int, dice: np.random.Generator, cells: int = 4) -> list[list[float]]:
    if kind == "log-normal":
        return np.exp(dice.normal(0, 0.03, (cells, attempts))).tolist()  # type: ignore[no-any-return]
    times = dice.normal(1, 0.03, (cells, attempts))
    if kind == "one outlier in twenty":
        times = np.where(dice.random(times.shape) < 0.05, times * dice.uniform(1.3, 3, times.shape), times)
    return times.tolist()  # type: ignore[no-any-return]


def estimated(samples: list[list[float]]) -> list[tuple[float, int, spread.Spread]]:
    found = []
    for times, one in zip(samples, spread.spreads(samples), strict=True):
        assert one is not None
        found.append((spread.geometric(times), len(times), one))
    return found


@pytest.mark.parametrize("attempts", [3, 5, 10, 20])
@pytest.mark.parametrize("kind", ["normal", "log-normal", "one outlier in twenty"])
def test_an_interval_of_95_percent_is_one_and_nothing_is_claimed_that_is_not_there(
    kind: str, attempts: int
) -> None:
    dice = np.random.default_rng(2008 + attempts)
    covered = shared = claimed = 0
    for _ in range(RUNS):
        here, there, *_ = estimated(drawn(kind, attempts, dice))
        low, high = spread.interval(*here)
        covered += low <= 1 <= high
        found = spread.ratio(here, there)
        shared += found.low <= 1 <= found.high
        claimed += found.p < 0.05
    least, most = (0.90, 1.0) if kind == "one outlier in twenty" else (0.93, 0.97)
    assert least <= covered / RUNS <= most
    assert least <= shared / RUNS <= most
    assert claimed / RUNS < 0.06


def test_unequal_spreads_are_still_covered() -> None:
    """Cells that scatter by 0.5 and by 5 %: the pretest must send each to its own."""
    dice = np.random.default_rng(5)
    covered = np.zeros(2)
    for _ in range(RUNS):
        samples = [np.exp(dice.normal(0, sd, 5)).tolist() for sd in (0.05, 0.005, 0.05, 0.005)]
        for place, one in enumerate(estimated(samples)[:2]):
            low, high = spread.interval(*one)
            covered[place] += low <= 1 <= high
    assert all(0.92 <= share <= 0.98 for share in covered / RUNS), covered / RUNS


def test_a_difference_of_5_percent_is_found_by_three_attempts_that_scatter_by_1() -> None:
    dice = np.random.default_rng(7)
    found = right = 0
    for _ in range(RUNS):
        samples = [np.exp(dice.normal(log(true), 0.01, 3)).tolist() for true in (1.05, 1.0, 1.0)]
        here, there, *_ = estimated(samples)
        told = spread.ratio(here, there)
        found += told.p < 0.05 and told.value > 1
        right += told.low <= 1.05 <= told.high
    assert found / RUNS > 0.95
    assert 0.93 <= right / RUNS <= 0.97
