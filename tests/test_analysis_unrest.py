"""Outliers are flagged and never dropped; a drift is seen where there is one."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from runs_made import FAST, SLOW

from lab.analysis import unrest
from lab.analysis.unrest import Timed
from lab.model import DISABLED, ProxyState, Treatment

CELLS = [
    Treatment(line=line, operation="get", state=state)
    for line in (SLOW, FAST)
    for state in (DISABLED, ProxyState(full=0), ProxyState(full=100))
]


def made(seed: int = 1, attempts: int = 4, drift: float = 0.0, sd: float = 0.01) -> list[Timed]:
    """Blocks of six cells; each cell with a true time of its own, the whole longer by `drift` at the end."""
    dice = np.random.default_rng(seed)
    count = attempts * len(CELLS)
    return [
        Timed(
            trial=number + 1,
            treatment=(cell := CELLS[number % len(CELLS)]),
            wall_s=(1 + CELLS.index(cell)) * exp(drift * number / (count - 1) + dice.normal(0, sd)),
        )
        for number in range(count)
    ]


def replaced(attempts: list[Timed], factors: dict[int, float]) -> list[Timed]:
    return [
        Timed(trial=one.trial, treatment=one.treatment, wall_s=one.wall_s * factors.get(one.trial, 1))
        for one in attempts
    ]


@pytest.mark.parametrize("factors", [{7: 1.3}, {7: 1.3, 20: 2.0}, {12: 0.5}])
def test_an_attempt_unlike_the_others_is_flagged_with_how_far_it_is(factors: dict[int, float]) -> None:
    found = unrest.outliers(replaced(made(), factors))
    assert {one.trial for one in found} == set(factors)
    for one in found:
        assert one.factor == pytest.approx(factors[one.trial], rel=0.05)
        assert one.p < 0.01
        assert one.wall_s == pytest.approx(one.factor * one.others_s)


def test_hardly_any_calm_run_has_an_outlier() -> None:
    assert sum(bool(unrest.outliers(made(seed, sd=0.03))) for seed in range(300)) / 300 < 0.03


def test_cells_of_two_attempts_say_nothing_of_outliers() -> None:
    assert unrest.outliers(replaced(made(attempts=2), {3: 2.0})) == ()
    assert unrest.outliers(made()[:1]) == ()


def test_a_drift_is_told_with_its_size_and_its_interval() -> None:
    (found,) = unrest.drifts(made(drift=0.10, attempts=6))
    assert found.seen
    assert found.low < exp(0.10) < found.high
    assert found.factor == pytest.approx(exp(0.10), rel=0.03)


def test_a_run_without_a_drift_has_none_in_all_but_5_percent() -> None:
    seen = [one.seen for seed in range(600) for one in unrest.drifts(made(seed))]
    assert 0.02 < sum(seen) / len(seen) < 0.08
    assert not any(one.seen for one in unrest.drifts(made(sd=0.0)))


def test_one_attempt_each_says_nothing_of_a_drift() -> None:
    assert unrest.drifts(made(attempts=1)) == ()
    assert unrest.drifts([]) == ()
