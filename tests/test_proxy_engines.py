"""Squid and nginx as an office's proxy, in an embedded lab: all four states of the cache, proven."""

from __future__ import annotations

import os
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
from ssh_agents import cache_tree, grounds, nginx, service_asked

pytestmark = pytest.mark.lab
OWN_PORT = 3128
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
    wanted = real_runs.experiment(lines=(QUICK_LINE,), states=STATES, attempts=1)
    path: Path = tmp_path_factory.mktemp(request.param) / "run.branchlab"
    seen = real_runs.ran(with_cache(lab.lab, request.param), wanted, path)
    real_runs.await_same(lab.folder, before)
    return seen


def test_every_trial_is_kept_with_all_its_proofs(ran: Ran) -> None:
    assert ran.last_word.outcome.value == "done", ran.last_word
    assert len(ran.trials) == len(ran.plan) == 4
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


@needs_nginx
def test_nginx_goes_to_a_server_whose_name_only_the_hosts_own_tables_know(
    lab: embedded.Embedded, tmp_path: Path
) -> None:
    named = lab.folder / "hosts-of-this-test"
    named.write_text(f"127.0.0.1 localhost\n{lab.lab.one(Role.SERVER).address} svn.office.test\n", "utf-8")
    for host in real_runs.HOSTS:
        assert real_runs.on(lab.folder, host, f"mount --bind {named} /etc/hosts") == ""
    wanted = real_runs.experiment(
        states=(EMPTY, FULL), attempts=1, repository="http://svn.office.test/svn/trunk"
    )
    ran = real_runs.ran(with_cache(lab.lab, "nginx-proxy-cache"), wanted, tmp_path / "run.branchlab")
    for host in real_runs.HOSTS:
        real_runs.on(lab.folder, host, "umount /etc/hosts")
    assert ran.last_word.outcome.value == "done", ran.last_word
    for one in ran.trials:
        assert one.standing == Standing.KEPT, one
    assert sorted(round(one.cache_found or 0) for one in ran.trials) == [0, 100]


# ---- a proxy of the user's own, used as it is


@pytest.fixture(scope="module")
def own(lab: embedded.Embedded) -> Iterator[Path]:
    """An nginx that the user runs on the proxy host; its cache's folder."""
    host = lab.lab.one(Role.PROXY)
    folder = Path(host.services or "").parent / "tmp" / "own-proxy"
    asked = service_asked.spec(
        {
            "kind": "caching-proxy",
            "folder": str(folder),
            "port": OWN_PORT,
            "options": {
                "engine": "nginx",
                "allow": [one.address for one in lab.lab.hosts],
                "origins": [lab.lab.one(Role.SERVER).address],
            },
        }
    )
    text = nginx.text(asked, grounds.User("root", 0, 0) if os.geteuid() == 0 else None)
    config = lab.folder / "own-nginx.conf"
    config.write_text(text, "utf-8")
    begin = f"setsid nginx -p {folder}/ -c {config} >/dev/null 2>&1 </dev/null &"
    real_runs.on(lab.folder, "proxy", f"mkdir -p {folder}/run; {begin}")
    yield folder / "cache"
    real_runs.on(lab.folder, "proxy", f"kill $(cat {folder}/run/nginx.pid); sleep 1; rm -r {folder}")


@needs_nginx
@pytest.mark.parametrize("kind", ["nginx-proxy-cache", "folder", "command"])
def test_a_proxy_of_the_users_own_is_filled_and_purged_as_it_is(
    kind: str, own: Path, lab: embedded.Embedded, tmp_path: Path
) -> None:
    caches = {
        "nginx-proxy-cache": Cache(kind=kind, folder=str(own)),
        "folder": Cache(kind=kind, folder=str(own), owns=True),
        "command": Cache(kind=kind, list=("find", str(own), "-type", "f"), purge=("rm", "{url}")),
    }
    hosts = [
        replace(host, cache=caches[kind], services=None, url=f"http://{host.address}:{OWN_PORT}")
        if host.cache
        else host
        for host in lab.lab.hosts
    ]
    if kind == "folder":  # root has to say it in the folder too
        real_runs.on(lab.folder, "proxy", f"touch {own}/{cache_tree.MAY}")
    states = STATES if kind == "nginx-proxy-cache" else (EMPTY, NINETY)
    wanted = real_runs.experiment(lines=(QUICK_LINE,), states=states, attempts=1)
    ran = real_runs.ran(replace(lab.lab, hosts=tuple(hosts)), wanted, tmp_path / "run.branchlab")
    real_runs.on(lab.folder, "proxy", f"rm -f {own}/{cache_tree.MAY}")  # to `find` it is an object
    assert ran.last_word.outcome.value == "done", ran.last_word
    assert len(ran.trials) == len(states)
    for one in ran.trials:
        assert one.standing == Standing.KEPT, one
        assert all(proof.ok for proof in one.proofs), one.proofs
    for state in set(states) - {DISABLED}:
        (trial,) = (one for _, one in ran.of("get", state))
        assert trial.cache_found == pytest.approx(state.full, abs=1)
    came = {state.key: over_the_line(one) for state in states for _, one in ran.of("get", state)}
    assert came["90 %"] < came["0 %"] / 2
