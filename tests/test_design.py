"""The plan: complete, in order, and the same for the same seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from fake_testbed import EMPTY, FULL, NINETY, experiment, small
from hypothesis import given
from hypothesis import strategies as st

from lab import design
from lab.errors import BadInput
from lab.model import AS_IT_IS, DISABLED, OPERATIONS, Experiment, Line, ProxyState, Trial

SIX = tuple(Line(upload_bps=up * 1000, download_bps=2 * up * 1000) for up in (64, 128, 256, 512, 1000, 2000))


def published(**changes: object) -> Experiment:
    return experiment(
        **{
            "lines": SIX,
            "order": "published",
            "disabled_only": ("check-out", "check-in", "history"),
            "launches": True,
            **changes,
        }
    )


def test_quick_is_192_trials_in_blocks_of_24() -> None:
    plan = design.trials(experiment())
    assert len(plan) == 192
    assert [trial.number for trial in plan] == list(range(1, 193))
    for start in range(0, 192, 24):
        block = plan[start : start + 24]
        assert len({trial.block for trial in block}) == 1
        assert len({trial.treatment.line for trial in block}) == 1
        assert len({trial.attempt for trial in block}) == 1
        assert len({trial.treatment for trial in block}) == 24
        assert all(trial.warm_up == (trial.attempt == 1) for trial in block)
    assert [plan[n].treatment.line for n in (0, 96)] == list(experiment().lines)


def test_blocks_are_shuffled_and_not_all_alike() -> None:
    plan = design.trials(experiment())
    orders = [tuple(trial.treatment for trial in plan[start : start + 24]) for start in range(0, 96, 24)]
    assert len(set(orders)) == 4
    straight = tuple((op, state) for op in OPERATIONS for state in experiment().states)
    assert all(tuple((t.operation, t.state) for t in order) != straight for order in orders)


def test_one_seed_one_plan_another_seed_another_plan() -> None:
    assert design.trials(experiment()) == design.trials(experiment())
    assert design.trials(experiment()) != design.trials(experiment(seed=1))


def test_the_order_is_the_same_on_every_machine() -> None:
    """A fixed point: whoever changes the shuffle changes what a stored seed means."""
    plan = design.trials(small())
    told = [(t.treatment.operation, t.treatment.state.key, t.seed) for t in plan[:4]]
    assert told == [
        ("diff", "100 %", 4600787263012543731),
        ("get", "100 %", 3550567849464467645),
        ("diff", "disabled", 8696083787767368598),
        ("get", "disabled", 4748933518830748469),
    ]


def test_every_trial_has_a_seed_of_its_own() -> None:
    plan = design.trials(published())
    assert len({trial.seed for trial in plan}) == len(plan)
    assert all(0 <= trial.seed < 2**63 for trial in plan)


def test_as_published_360_timed_trials_and_54_launches() -> None:
    plan = design.trials(published())
    timed = [trial for trial in plan if not trial.launch]
    launches = [trial for trial in plan if trial.launch]
    assert (len(timed), len(launches)) == (360, 54)
    assert len({(trial.treatment) for trial in timed}) == 90
    assert not any(trial.counted or trial.warm_up for trial in launches)
    assert all(n == 1 for n in Counter(trial.treatment for trial in launches).values())
    assert all(trial.treatment.state.enabled for trial in launches)


def test_the_published_order() -> None:
    def told(trial: Trial) -> tuple[str, str, int]:
        return trial.treatment.operation, trial.treatment.state.key, trial.attempt

    plan = [told(trial) for trial in design.trials(published())]
    assert plan[:16] == [
        ("get", state, attempt) for state in ("disabled", "0 %", "100 %", "90 %") for attempt in (1, 2, 3, 4)
    ]
    assert plan[16:23] == [("check-out", "disabled", n) for n in (1, 2, 3, 4)] + [
        ("check-out", state, 1) for state in ("0 %", "100 %", "90 %")
    ]
    assert list(dict.fromkeys(name for name, _, _ in plan)) == list(OPERATIONS)
    lines = [trial.treatment.line for trial in design.trials(published())]
    assert list(dict.fromkeys(lines)) == list(SIX)


def test_without_disabled_only_published_is_full() -> None:
    assert len(design.trials(published(disabled_only=()))) == 576
    assert len(design.trials(experiment(lines=SIX))) == 576


def test_launches_in_blocks_come_after_the_timed_trials_of_their_line() -> None:
    plan = design.trials(published(order="blocks", lines=SIX[:2]))
    flags = [trial.launch for trial in plan]
    assert flags == ([False] * 60 + [True] * 9) * 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"order": "random"}, "unknown order `random`"),
        ({"operations": ("get", "fetch")}, "unknown operation `fetch`"),
        ({"disabled_only": ("fetch",)}, "unknown operation `fetch`"),
        ({"operations": ()}, "no operations"),
        ({"lines": ()}, "no lines"),
        ({"states": ()}, "no states"),
        ({"states": (DISABLED, DISABLED)}, "stands there twice"),
        ({"attempts": 1}, "write attempts = 4 or more"),
        ({"attempts": 0, "warm_up": 0}, "write attempts = 3 or more"),
        ({"warm_up": -1}, "attempts"),
        ({"states": (FULL,), "disabled_only": ("get",)}, "disabled_only"),
    ],
)
def test_what_cannot_be_planned_is_refused(changes: dict[str, object], told: str) -> None:
    with pytest.raises(BadInput) as error:
        design.trials(experiment(**changes))
    assert told in str(error.value)


KEYS = [f"/svn/!svn/rvr/100/trunk/{n}.cs" for n in range(150)]


@pytest.mark.parametrize(("full", "count"), [(100, 0), (90, 15), (37.5, 94), (0, 150), (99.9, 0), (99.5, 1)])
def test_a_purge_deletes_its_share(full: float, count: int) -> None:
    sample = design.purge_sample(KEYS, full, seed=1)
    assert len(sample) == count
    assert set(sample) <= set(KEYS)


@given(st.lists(st.text(max_size=20), unique=True), st.integers(), st.randoms())
def test_a_sample_depends_on_keys_and_seed_only(keys: list[str], seed: int, random: object) -> None:
    mixed = list(keys)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert design.purge_sample(keys, 50, seed) == design.purge_sample(mixed, 50, seed)


def test_samples_are_nested_and_differ_between_seeds() -> None:
    small_cut, large_cut = (set(design.purge_sample(KEYS, full, seed=3)) for full in (90, 50))
    assert small_cut < large_cut
    assert design.purge_sample(KEYS, 90, seed=3) != design.purge_sample(KEYS, 90, seed=4)


@given(
    st.lists(st.sampled_from(OPERATIONS), min_size=1, unique=True),
    st.lists(st.sampled_from([DISABLED, EMPTY, NINETY, FULL, ProxyState(full=50)]), min_size=1, unique=True),
    st.integers(1, 5),
    st.integers(0, 4),
    st.sampled_from(design.ORDERS),
    st.booleans(),
)
def test_every_plan_is_complete(
    operations: list[str], states: list[ProxyState], attempts: int, warm_up: int, order: str, cut: bool
) -> None:
    disabled_only = tuple(operations[:1]) if cut and DISABLED in states else ()
    asked = experiment(
        operations=tuple(operations),
        states=tuple(states),
        attempts=warm_up + attempts,
        warm_up=warm_up,
        order=order,
        disabled_only=disabled_only,
    )
    plan = design.trials(asked)
    cells = Counter(trial.treatment for trial in plan if trial.counted)
    untimed = len(disabled_only) * sum(state.enabled for state in states)
    assert set(cells.values()) == {attempts}
    assert len(cells) == 2 * (len(operations) * len(states) - untimed)
    assert all(trial.warm_up == (trial.attempt <= warm_up) for trial in plan)


def test_a_rehearsal_is_each_kind_once_on_the_fastest_limited_line() -> None:
    slow, fast = (Line(upload_bps=n, download_bps=2 * n) for n in (64_000, 2_000_000))
    asked = experiment(
        lines=(AS_IT_IS, slow, fast), states=(DISABLED, EMPTY, NINETY), operations=("get", "history"),
        disabled_only=("history",), launches=True, attempts=4, warm_up=1,
    )  # fmt: skip
    for order in design.ORDERS:
        shown = design.rehearsal(replace(asked, order=order))
        cells = [(one.treatment.operation, one.treatment.state) for one in design.trials(shown)]
        assert sorted(cells, key=str) == sorted(
            [("get", DISABLED), ("get", EMPTY), ("get", NINETY), ("history", DISABLED)], key=str
        )
        assert {one.treatment.line for one in design.trials(shown)} == {fast}
        assert all(one.counted and one.attempt == 1 for one in design.trials(shown))
    assert shown.name == f"{asked.name} (rehearsal)"
    assert design.is_rehearsal(shown)
    assert not design.is_rehearsal(asked)
    assert design.rehearsal(shown) == shown
    assert design.rehearsal(replace(asked, lines=(AS_IT_IS,))).lines == (AS_IT_IS,)


def test_the_size_of_a_plan_is_that_of_the_plan() -> None:
    state = ProxyState(full=100)
    for launches in (False, True):
        for order in design.ORDERS:
            asked = experiment(
                states=(DISABLED, state),
                disabled_only=("check-in", "history"),
                launches=launches,
                order=order,
            )
            plan = design.trials(asked)
            size = design.size(asked)
            assert size.trials == len(plan)
            assert size.counted == sum(trial.counted for trial in plan)
            assert size.launches == sum(trial.launch for trial in plan)
            kinds = dict(design.cells(asked))
            assert sum(kinds.values()) == len(plan)
            assert set(kinds) == {trial.treatment for trial in plan}
