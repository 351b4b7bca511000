"""The model of a line: known truths come back, the published fits too, and nothing is said outside the lines."""

from __future__ import annotations

import csv
from math import exp
from pathlib import Path

import numpy as np
import pytest

from lab.analysis import line_model
from lab.analysis.line_model import Point

FILE = Path(__file__).parent.parent / "resources/reference/tfs_proxy_2008.csv"
RATES = (64, 128, 256, 512, 1000, 2000)


def published(operation: str, state: str) -> list[Point]:
    with FILE.open(encoding="utf-8") as file:
        return [
            Point(
                1000 * float(row["upload_kbit_s"]),
                1000 * float(row["download_kbit_s"]),
                0.0,
                float(row["seconds"]),
            )
            for row in csv.DictReader(file)
            if (row["operation"], row["proxy_state"]) == (operation, state)
        ]


def made(
    time_s: object, *, sd: float = 0.0, seed: int = 1, up: float = 0.5, trips: tuple[float, ...] = (0.0,)
) -> list[Point]:
    dice = np.random.default_rng(seed)
    found = []
    for place, rate in enumerate(RATES):
        one = Point(rate * 2000 * up, rate * 2000, trips[place % len(trips)])
        seconds = time_s(one) * exp(dice.normal(0, sd))  # type: ignore[operator]
        found.append(Point(one.upload_bps, one.download_bps, one.round_trip_s, seconds))
    return found


# Fixed seconds and MB as our design has them, found with another program than this.
FITS = {
    ("get", "disabled"): (5.5, 4.92), ("get", "cached-0"): (8.4, 4.97),
    ("get", "cached-90"): (20.1, 1.27), ("get", "cached-100"): (19.5, 1.13),
    ("undo", "disabled"): (9.2, 4.87), ("undo", "cached-0"): (13.1, 4.91),
    ("undo", "cached-90"): (22.5, 1.29), ("undo", "cached-100"): (22.1, 1.16),
    ("check-out", "disabled"): (19.1, 1.09), ("check-in", "disabled"): (2.7, 1.00),
    ("history", "disabled"): (2.4, 1.51), ("diff", "disabled"): (11.3, 0.98),
    ("diff", "cached-0"): (18.8, 0.93), ("diff", "cached-90"): (14.8, 0.54),
    ("diff", "cached-100"): (12.4, 0.55),
}  # fmt: skip


@pytest.mark.parametrize(("operation", "state"), FITS)
def test_fits_of_the_published_times(operation: str, state: str) -> None:
    found = line_model.additive(published(operation, state), relative=False)
    assert found is not None
    assert (round(found.fixed_s, 1), round(found.down_bytes / 1e6, 2)) == FITS[operation, state]


def test_at_the_fast_end_a_floor_fits_better() -> None:
    get = published("get", "disabled")
    simple, chosen = line_model.additive(get, relative=False), line_model.fit(get)
    assert simple is not None
    assert chosen is not None
    fastest = get[-1]
    assert simple.time(fastest) == pytest.approx(15.3, abs=0.1)
    assert chosen.floor_s == pytest.approx(20.93)
    assert chosen.time(fastest) == pytest.approx(20.93)
    out = line_model.fit(published("check-out", "disabled"))
    assert out is not None
    assert out.floor_s is None


def test_a_known_sum_comes_back_with_its_round_trips() -> None:
    def truth(point: Point) -> float:
        return 1.5 + 20 * point.round_trip_s + 4e6 * 8 / point.download_bps

    found = line_model.fit(made(truth, trips=(0.0, 0.1, 0.3)))
    assert found is not None
    assert (found.fixed_s, found.round_trips, found.down_bytes) == pytest.approx((1.5, 20, 4e6))
    assert (found.up_bytes, found.floor_s) == (None, None)


def test_upload_and_download_are_told_apart_only_where_both_were_varied() -> None:
    def truth(point: Point) -> float:
        return 1 + 3e6 * 8 / point.download_bps + 1e6 * 8 / point.upload_bps

    together = line_model.fit(made(truth))
    assert together is not None
    assert together.up_bytes is None
    assert together.down_bytes == pytest.approx(5e6)
    apart = line_model.fit([*made(truth), *made(truth, up=1.0)])
    assert apart is not None
    assert (apart.down_bytes, apart.up_bytes) == pytest.approx((3e6, 1e6))


def test_a_known_floor_comes_back() -> None:
    found = line_model.fit(made(lambda point: max(20.0, 2 + 4e6 * 8 / point.download_bps)))
    assert found is not None
    assert (found.floor_s, found.fixed_s, found.down_bytes) == pytest.approx((20.0, 2.0, 4e6))


def test_what_a_line_would_take_lies_within_the_interval_as_often_as_said() -> None:
    def truth(point: Point) -> float:
        return 5 + 2e6 * 8 / point.download_bps

    there = Point(384_000, 768_000, 0.0)
    within = 0
    dice = np.random.default_rng(9)
    for seed in range(800):
        found = line_model.additive(made(truth, sd=0.03, seed=seed))
        assert found is not None
        told = found.predicted(there)
        assert told is not None
        within += told[1] <= truth(there) * exp(dice.normal(0, 0.03)) <= told[2]
    assert 0.92 <= within / 800 <= 0.98


def test_two_lines_give_a_curve_and_no_interval_and_one_none() -> None:
    two = line_model.fit(made(lambda point: 1 + 8e6 / point.download_bps)[:2])
    assert two is not None
    assert two.predicted(Point(1e5, 2e5, 0.0)) is None
    steep = line_model.fit(made(lambda point: 8e6 / point.download_bps * (1 + 1e5 / point.download_bps))[:2])
    assert steep is not None
    assert (steep.fixed_s, steep.residual) == (0.0, None)
    assert line_model.fit(made(lambda point: 1.0)[:1]) is None


def test_what_comes_out_below_zero_costs_nothing() -> None:
    found = line_model.fit(made(lambda point: 8e6 / point.download_bps * (1 + 1e5 / point.download_bps)))
    assert found is not None
    assert min(found.fixed_s, found.down_bytes) >= 0


def test_a_break_even_is_said_between_measured_lines_and_above_the_residual_only() -> None:
    none = line_model.fit(made(lambda point: 1 + 4e6 * 8 / point.download_bps, sd=0.01, seed=1))
    full = line_model.fit(made(lambda point: 20 + 0.4e6 * 8 / point.download_bps, sd=0.01, seed=2))
    assert none is not None
    assert full is not None
    found = line_model.break_even(full, none)
    assert found is not None
    assert found.download_bps == pytest.approx(3.6e6 * 8 / 19, rel=0.05)
    assert found.below.download_bps < found.download_bps < found.above.download_bps
    loud = line_model.fit(made(lambda point: 20 + 0.4e6 * 8 / point.download_bps, sd=0.6, seed=3))
    assert loud is not None
    assert line_model.break_even(loud, none) is None
    always = line_model.fit(made(lambda point: 0.5 + 0.4e6 * 8 / point.download_bps))
    assert always is not None
    assert line_model.break_even(always, none) is None


def test_the_published_get_has_no_break_even() -> None:
    """A full cache never loses on these lines, and what 90 % loses at the fast end is below the residual."""
    none, *cached = (line_model.fit(published("get", s)) for s in ("disabled", "cached-100", "cached-90"))
    assert none is not None
    for one in cached:
        assert one is not None
        assert line_model.break_even(one, none) is None
