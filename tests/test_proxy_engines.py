"""Squid and nginx as an office's proxy, in an embedded lab: all four states of the cache, proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import programs
import pytest
import real_runs
from programs import needs_nginx, needs_squid
from real_runs import EMPTY, FULL, NINETY, QUICK_LINE, Ran

from lab import embedded
from lab.events import CacheFilled, Standing, TrialFinished
from lab.model import DISABLED, Cache, Lab, Role

pytestmark = pytest.mark.lab
STATES = (DISABLED, EMPTY, NINETY, FULL)


@pytest.fixture(scope="module")
def lab() -> Iterator[embedded.Embedded]:
    with embedded.up() as made:
        if programs.UNPACKED.is_dir():
            # In the host's own mount namespace, which goes with the lab.
            assert real_runs.on(made.folder, "proxy", f"mount --bind {programs.UNPACKED} /usr/local") == ""
        yield made


def with_cache(made: Lab, kind: str) -> Lab:
    """The same lab with a proxy of another kind."""

    def changed(cache: Cache) -> Cache:
        return replace(cache, kind=kind, folder=f"{cache.folder}-{kind}")

    hosts = (replace(host, cache=changed(host.cache)) if host.cache else host for host in made.hosts)
    return replace(made, hosts=tuple(hosts))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("squid", marks=needs_squid),
        pytest.param("nginx-proxy-cache", marks=needs_nginx),
    ],
)
def ran(
    request: pytest.FixtureRequest, lab: embedded.Embedded, tmp_path_factory: pytest.TempPathFactory
) -> Ran:
    before = real_runs.Hosts.of(lab.folder)
    wanted = real_runs.experiment(lines=(QUICK_LINE,), states=STATES, attempts=2)
    path: Path = tmp_path_factory.mktemp(request.param) / "run.branchlab"
    seen = real_runs.ran(with_cache(lab.lab, request.param), wanted, path)
    real_runs.await_same(lab.folder, before)
    return seen


def test_every_trial_is_kept_with_all_its_proofs(ran: Ran) -> None:
    assert ran.last_word.outcome.value == "done", ran.last_word
    assert len(ran.trials) == len(ran.plan) == 2 * 4
    for one in ran.trials:
        assert one.standing == Standing.KEPT, one
        assert all(proof.ok for proof in one.proofs), one.proofs
        assert {proof.name for proof in one.proofs} >= {"exit", "line", "path", "counters", "quiet"}
    for state in (EMPTY, NINETY, FULL):
        assert all("cache" in {proof.name for proof in one.proofs} for _, one in ran.of("get", state))


def test_the_cache_is_as_full_as_asked(ran: Ran) -> None:
    (learnt,) = (event for event in ran.events if isinstance(event, CacheFilled))
    assert learnt.objects > 100
    for state in (EMPTY, NINETY, FULL):
        for _, one in ran.of("get", state):
            assert one.cache_found == pytest.approx(state.full, abs=100 / learnt.objects)
            assert one.cache_objects == round(learnt.objects * (state.full or 0) / 100)


def over_the_line(one: TrialFinished) -> int:
    return sum(one.bytes[pair] for pair in ("server>client", "server>proxy"))


def test_what_the_cache_holds_does_not_come_over_the_line(ran: Ran) -> None:
    whole = {state.key: [over_the_line(one) for _, one in ran.of("get", state)] for state in STATES}
    assert max(whole["100 %"]) < min(whole["0 %"]) / 3
    for some, none, full in zip(whole["90 %"], whole["0 %"], whole["100 %"], strict=True):
        assert full < some < full + (none - full) / 2


def test_with_the_proxy_disabled_nothing_passes_it(ran: Ran) -> None:
    for _, one in ran.of("get", DISABLED):
        assert one.requests.get("proxy", 0) == 0
    for _, one in ran.of("get", FULL):
        assert one.requests["proxy"] > one.requests["server"]


def test_the_lab_has_a_proxy(lab: embedded.Embedded) -> None:
    assert lab.lab.one(Role.PROXY).services
