"""Values refuse nonsense when they are made."""

from __future__ import annotations

import dataclasses
from math import inf, nan

import pytest

from lab.model import AS_IT_IS, DISABLED, Host, Lab, Line, ProxyState, Role, Treatment, Trial


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"upload_bps": 0, "download_bps": 1}, "above zero"),
        ({"upload_bps": 1, "download_bps": -1}, "above zero"),
        ({"upload_bps": None, "download_bps": 1}, "both rates or none"),
        ({"upload_bps": 1, "download_bps": 1, "delay_s": -1}, "delay"),
        ({"upload_bps": 1, "download_bps": 1, "delay_s": nan}, "delay"),
        ({"upload_bps": 1, "download_bps": 1, "delay_s": inf}, "delay"),
        ({"upload_bps": 1, "download_bps": 1, "jitter_s": 0.1}, "larger than the delay"),
        ({"upload_bps": 1, "download_bps": 1, "loss": 1.1}, "loss"),
        ({"upload_bps": 1, "download_bps": 1, "queue_s": 1.0, "queue_bytes": 1}, "not in both"),
    ],
)
def test_a_line_that_cannot_be_is_refused(fields: dict[str, float | None], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Line(**fields)  # type: ignore[arg-type]


def test_the_default_queue_is_a_second_of_the_rate_and_at_least_64_kb() -> None:
    line = Line(upload_bps=64_000, download_bps=10_000_000)
    assert line.queue_for(64_000) == 64_000
    assert line.queue_for(10_000_000) == 1_250_000


def test_a_queue_in_seconds_follows_the_rate_and_holds_two_packets() -> None:
    line = Line(upload_bps=64_000, download_bps=1_000_000, queue_s=0.3)
    assert line.queue_for(64_000) == 3028
    assert line.queue_for(1_000_000) == 37_500


def test_a_queue_in_bytes_is_the_same_both_ways() -> None:
    line = Line(upload_bps=64_000, download_bps=1_000_000, queue_bytes=8000)
    assert line.queue_for(64_000) == line.queue_for(1_000_000) == 8000


def test_the_line_as_it_is_has_no_limit() -> None:
    assert not AS_IT_IS.limited
    assert not AS_IT_IS.delayed
    assert Line(upload_bps=1, download_bps=1, delay_s=0.1).delayed


@pytest.mark.parametrize(
    ("full", "key"), [(None, "disabled"), (0, "0 %"), (90, "90 %"), (37.5, "37.5 %"), (100.0, "100 %")]
)
def test_a_state_has_a_key_with_an_ordinary_space(full: float | None, key: str) -> None:
    state = ProxyState(full=full)
    assert state.key == key
    assert state.enabled == (full is not None)


@pytest.mark.parametrize("full", [-1, 101, nan])
def test_a_cache_is_between_empty_and_full(full: float) -> None:
    with pytest.raises(ValueError, match="full"):
        ProxyState(full=full)


def test_warm_ups_and_launches_do_not_count() -> None:
    cell = Treatment(line=AS_IT_IS, operation="get", state=DISABLED)
    trial = Trial(number=1, block=1, treatment=cell, attempt=1)
    assert trial.counted
    assert not dataclasses.replace(trial, warm_up=True).counted
    assert not dataclasses.replace(trial, launch=True).counted


def test_a_lab_finds_its_hosts_by_role() -> None:
    hosts = tuple(
        Host(name=name, role=role, ssh=name)
        for name, role in (("a", Role.CLIENT), ("s", Role.SERVER), ("b", Role.CLIENT))
    )
    lab = Lab(name="x", hosts=hosts)
    assert [host.name for host in lab.having(Role.CLIENT)] == ["a", "b"]
    assert lab.one(Role.SERVER).name == "s"
    with pytest.raises(LookupError, match="proxy"):
        lab.one(Role.PROXY)
