"""Squid and nginx as an office's proxy, in an embedded lab: all four states of the cache, proven."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import programs
import pytest
import real_runs
from programs import needs_nginx, needs_squid
from real_runs import EMPTY, FULL, NINETY, QUICK_LINE, Ran

from lab import embedded, vcs
from lab.credentials import Passwords
from lab.errors import AgentRefused
from lab.events import CacheFilled, Standing, TrialFinished
from lab.model import DISABLED, Cache, Host, Lab, Role
from lab.rig import looking
from ssh_agents import cache_squid, cache_tree, grounds, nginx, service_asked, squid

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


SQUID = """\
http_port {port}
visible_hostname own
cache_effective_user nobody
cache_effective_group nogroup
pid_filename none
coredump_dir {folder}
cache_log {folder}/log/cache.log
access_log none
pinger_enable off
netdb_filename none
shutdown_lifetime 1 second
maximum_object_size 100 MB
cache_dir ufs {folder}/cache 500 16 16
{beside}
refresh_pattern . 0 20% 4320
{purge}
http_access deny PURGE
http_access allow all
"""
"""As somebody would write it for an office, with a cache in memory too; BranchLab's own configuration is another."""
BESIDE = """\
mime_table /usr/local/share/squid/mime.conf
icon_directory /usr/local/share/squid/icons
error_directory /usr/local/share/squid/errors/templates
unlinkd_program /usr/local/lib/squid/unlinkd
"""
"""Where its data lie for a Squid that was unpacked elsewhere than it was built for."""
SQUID_PORT, WEB_PORT = 3129, 8099
WEB = "exec python3 -m http.server {port} --directory {folder}"
THEIRS = ("/theirs/1", "/theirs/2")


@contextmanager
def own_squid(lab: embedded.Embedded, lines: str = cache_squid.LINES) -> Iterator[Lab]:
    """The lab with a Squid that the user runs on the proxy host, allowed to purge by these lines."""
    folder = Path(lab.lab.one(Role.PROXY).services or "").parent / "tmp" / "own-squid"
    beside = BESIDE if programs.UNPACKED.is_dir() else ""
    text = SQUID.format(port=SQUID_PORT, folder=folder, purge=lines, beside=beside)
    config = lab.folder / "own-squid.conf"
    config.write_text(text, "utf-8")
    owner = f"chown nobody:nogroup {folder}/cache {folder}/log;" if os.geteuid() == 0 else ""
    words = f"squid -N -n ownsquid -f {config}"
    make = f"mkdir -p {folder}/cache {folder}/log; {owner} {words} -z >{folder}/made 2>&1"
    begin = f"{make}; setsid {words} >{folder}/said 2>&1 </dev/null & echo $!"
    path = "export PATH=/usr/local/sbin:/usr/sbin:$PATH"
    number = real_runs.on(lab.folder, "proxy", f"{path}; {begin}").split()[-1]
    end = time.monotonic() + real_runs.PATIENCE_S
    log = f"cat {folder}/log/cache.log {folder}/made {folder}/said"
    while squid.READY.decode() not in (said := real_runs.on(lab.folder, "proxy", log)):
        assert time.monotonic() < end, said
        time.sleep(0.1)
    try:
        yield replace(lab.lab, hosts=tuple(_used_as_it_is(host, folder) for host in lab.lab.hosts))
    finally:
        gone = f"kill {number}; while kill -0 {number} 2>/dev/null; do sleep 0.1; done"
        real_runs.on(lab.folder, "proxy", f"{gone}; rm -r {folder}; rm -f /dev/shm/ownsquid-*")


def _used_as_it_is(host: Host, folder: Path) -> Host:
    if host.cache is None:
        return host
    cache = Cache(kind="squid", folder=f"{folder}/cache")
    return replace(host, cache=cache, services=None, url=f"http://{host.address}:{SQUID_PORT}")


@contextmanager
def web(lab: embedded.Embedded) -> Iterator[None]:
    """Others' web server beside the repository, on the server host."""
    place = lab.folder / "web"
    for path in THEIRS:
        Path(f"{place}{path}").parent.mkdir(parents=True, exist_ok=True)
        Path(f"{place}{path}").write_text(path * 1000, "utf-8")
        os.utime(f"{place}{path}", (1, 1))  # old enough to be kept without a lifetime of its own
    begin = f"setsid sh -c '{WEB.format(port=WEB_PORT, folder=place)}' >/dev/null 2>&1 </dev/null & echo $!"
    number = real_runs.on(lab.folder, "server", begin).split()[-1]
    try:
        yield
    finally:
        real_runs.on(lab.folder, "server", f"kill {number}")


def fetched(lab: embedded.Embedded, port: int, path: str) -> str:
    """What a client gets through the office's Squid: the answer's head."""
    proxy, server = (lab.lab.one(role).address for role in (Role.PROXY, Role.SERVER))
    url = f"http://{server}:{port}{path}"
    code = (
        "import http.client as h, time\n"
        f"for _ in range(100):\n  c = h.HTTPConnection('{proxy}', {SQUID_PORT}, timeout=20)\n"
        f"  c.request('GET', '{url}'); a = c.getresponse(); a.read()\n"
        "  if a.status == 200: break\n  time.sleep(0.1)\nprint(a.status, a.headers)"
    )
    return real_runs.on(lab.folder, "client", f'python3 -c "{code}"')


@needs_squid
def test_a_squid_of_the_users_own_is_filled_purged_and_counted_and_what_others_keep_stays(
    lab: embedded.Embedded, tmp_path: Path
) -> None:
    wanted = real_runs.experiment(lines=(QUICK_LINE,), states=STATES, attempts=1)
    with own_squid(lab) as changed, web(lab):
        for path in THEIRS:
            assert fetched(lab, WEB_PORT, path).startswith("200")
        found = looking.look(changed, wanted, vcs.driver("subversion"), Passwords())
        assert [one for one in found if one.kind == "purge"] == []  # another port is another's
        ran = real_runs.ran(changed, wanted, tmp_path / "run.branchlab")
        assert ran.last_word.outcome.value == "done", ran.last_word
        for one in ran.trials:
            assert one.standing == Standing.KEPT, [(t.standing, t.reason) for t in ran.trials]
            assert all(proof.ok for proof in one.proofs), one.proofs
        (learnt,) = (event for event in ran.events if isinstance(event, CacheFilled))
        for state in (EMPTY, NINETY, FULL):
            (trial,) = (one for _, one in ran.of("get", state))
            assert trial.cache_found == pytest.approx(state.full, abs=100 / learnt.objects)
        came = {state.key: over_the_line(one) for state in STATES for _, one in ran.of("get", state)}
        assert came["100 %"] < came["90 %"] < came["0 %"] / 2
        assert came["disabled"] > came["100 %"] * 3
        # At its end it took out what it brought in, and nothing else.
        for path in THEIRS:
            assert "X-Cache: HIT" in fetched(lab, WEB_PORT, path)
        assert looking.look(changed, wanted, vcs.driver("subversion"), Passwords()) == ()


@needs_squid
def test_a_squid_with_objects_of_the_repository_is_asked_about(lab: embedded.Embedded) -> None:
    server = lab.lab.one(Role.SERVER).address
    wanted = real_runs.experiment(
        states=(EMPTY,), attempts=1, repository=f"http://{server}:{WEB_PORT}/theirs/trunk"
    )
    with own_squid(lab) as changed, web(lab):
        for path in THEIRS:
            fetched(lab, WEB_PORT, path)
        (question,) = looking.look(changed, wanted, vcs.driver("subversion"), Passwords())
        assert question.kind == "purge"
        assert "2 objects" in question.text
        for path in THEIRS:
            assert "X-Cache: HIT" in fetched(lab, WEB_PORT, path)


@needs_squid
def test_a_squid_that_does_not_let_its_host_purge_is_refused_before_the_run_with_the_lines_to_add(
    lab: embedded.Embedded,
) -> None:
    wanted = real_runs.experiment(states=(EMPTY,), attempts=1)
    with own_squid(lab, lines="acl PURGE method PURGE") as changed:
        with pytest.raises(AgentRefused) as refused:
            looking.look(changed, wanted, vcs.driver("subversion"), Passwords())
        assert refused.value.host == "proxy"
        assert "(status 403)" in str(refused.value)
        assert cache_squid.LINES in str(refused.value)
