"""Hodges–Lehmann and the bootstrap of the median, from twelve attempts on."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import exp, log

import numpy as np
import pytest

from lab.analysis import robust


def test_they_are_what_their_names_say() -> None:
    dice = np.random.default_rng(1)
    times, base = dice.lognormal(0, 0.1, 13).tolist(), dice.lognormal(0.2, 0.1, 12).tolist()
    one = robust.middle(times)
    assert one is not None
    pairs = [(log(a) + log(b)) / 2 for a, b in combinations_with_replacement(times, 2)]
    assert one.middle_s == pytest.approx(exp(float(np.median(pairs))))
    two = robust.shift(times, base)
    assert two is not None
    assert two[0] == pytest.approx(exp(float(np.median([log(a) - log(b) for a, b in product(times, base)]))))
    assert one.low_s <= one.middle_s <= one.high_s
    assert one.median_low_s <= float(np.median(times)) <= one.median_high_s


def test_below_twelve_attempts_there_are_none() -> None:
    assert robust.middle([1.0] * 11) is None
    assert robust.shift([1.0] * 12, [1.0] * 11) is None


def test_the_same_attempts_have_the_same_interval_each_time() -> None:
    times = np.random.default_rng(2).lognormal(0, 0.1, 15).tolist()
    assert robust.middle(times) == robust.middle(times)


@pytest.mark.parametrize("attempts", [12, 20])
def test_their_intervals_cover_the_truth_with_outliers_too(attempts: int) -> None:
    dice = np.random.default_rng(attempts)
    runs, covered = 600, np.zeros(3)
    for _ in range(runs):
        times = np.exp(dice.normal(0, 0.03, (2, attempts)))
        times = np.where(dice.random(times.shape) < 0.05, times * 2, times)
        one, two = robust.middle(times[0].tolist()), robust.shift(times[0].tolist(), times[1].tolist())
        assert one is not None
        assert two is not None
        covered += [
            one.low_s <= 1 <= one.high_s,
            one.median_low_s <= 1 <= one.median_high_s,
            two[1] <= 1 <= two[2],
        ]
    assert all(share >= 0.90 for share in covered / runs), covered / runs
