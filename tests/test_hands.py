"""A lab changed by hand, on real hosts: the cache filled and purged, a line held, and everything as before."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import own_repository
import pytest
import real_runs
from real_runs import Hosts, experiment

from lab import design, embedded, hands, machines, runner, units
from lab.asking import Declined
from lab.embedded import Embedded
from lab.errors import AgentRefused, BadInput, HostTrouble, Stopped
from lab.events import HostChanged, Outcome, RunFinished
from lab.hands import Hands as ByHand
from lab.hands import Inventory, Kept
from lab.machines import Machines
from lab.model import AS_IT_IS, Cache, Host, Lab, Line, Role
from lab.rig.workplace import Workplace
from lab.stop import Stop

SLOW = Line(upload_bps=64_000, download_bps=128_000)
GET = experiment()
AS_IS = experiment(data=None, repository=f"http://{{server}}:{own_repository.PORT}/svn/trunk")
PURGE = frozenset({"purge"})
WITHOUT = Inventory(host="proxy", folder="/c", origin="http://s/", objects=(), others=3)


def kept(count: int) -> tuple[Kept, ...]:
    return tuple(Kept(f"/svn/{n}", f"http://s/svn/{n}", 100, 2) for n in range(count))


def test_a_cut_is_that_of_a_run_with_the_same_seed() -> None:
    found = replace(WITHOUT, objects=kept(150))
    keys = [one.key for one in found.objects]
    assert {one.key for one in found.cut(0.1, 2008)} == set(design.purge_sample(keys, 90, 2008))
    assert (len(found.cut(0, 1)), len(found.cut(1, 1))) == (0, 150)
    assert found.cut(0.1, 1) != found.cut(0.1, 2)


def test_the_question_names_what_would_go_and_what_stays() -> None:
    found = replace(WITHOUT, objects=kept(150))
    asked = found.question(found.cut(0.1, 7))
    assert (asked.kind, asked.host, len(asked.details)) == ("purge", "proxy", 10)
    assert (
        "15 of 150 objects of http://s/ in the cache /c would be taken out: 1.5 kB of 15.0 kB" in asked.text
    )
    assert "3 objects of others stay" in asked.text


def test_only_what_brings_objects_into_a_cache_and_changes_nothing_fills_it() -> None:
    assert hands.cacheable(experiment(operations=("check-in", "history", "get"))) == ("get",)
    assert hands.cacheable(experiment(operations=("history",))) == ()


def test_what_fills_no_cache_is_refused_before_a_host_is_asked() -> None:
    server = Host(name="server", role=Role.SERVER, ssh="nowhere.invalid")
    proxy = Host(name="proxy", role=Role.PROXY, ssh="nowhere.invalid")
    cold = Lab(name="Nowhere", hosts=(server, proxy))
    warm = replace(cold, hosts=(server, replace(proxy, cache=Cache(kind="apache-disk", folder="/c"))))
    with pytest.raises(BadInput, match="history brings nothing"):
        ByHand(warm, experiment(operations=("history",))).fill("history", Stop())
    with pytest.raises(BadInput, match="names no cache"):
        ByHand(cold, GET).inventory(Stop())


# ---- on real hosts


@pytest.fixture(scope="module")
def lab() -> Iterator[Embedded]:
    with embedded.up() as made:
        yield made


@pytest.fixture
def emptied(lab: Embedded) -> Iterator[Embedded]:
    """The lab with nothing in its cache, before and after."""
    yield lab
    work = ByHand(lab.lab, GET)
    there = work.inventory(Stop())
    work.purge(there, there.objects, Stop())


def in_cache(lab: Embedded) -> int:
    (folder,) = (one.cache.folder for one in lab.lab.hosts if one.cache)
    return len(
        real_runs.on(lab.folder, "proxy", f"find {folder} -name '*.header' -not -path '*.vary/*'").split()
    )


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_a_fill_brings_everything_and_it_stays_a_purge_takes_a_part(emptied: Embedded) -> None:
    before, work = Hosts.of(emptied.folder), ByHand(emptied.lab, GET)
    done = work.fill("get", Stop())
    assert (len(done.before.objects), len(done.after.objects), len(done.listed)) == (0, 150, 150)
    assert len(done.here) == 150
    assert in_cache(emptied) == 150
    told = [one for one in work.account() if isinstance(one, HostChanged)]
    assert {one.host for one in told} == {"server", "proxy", "client"}
    assert sum(one.undone for one in told) == sum(not one.undone for one in told)
    found = work.inventory(Stop())
    assert (found.objects, found.bytes) == (done.after.objects, done.after.bytes)
    chosen = found.cut(0.1, 2008)
    purged = work.purge(found, chosen, Stop())
    assert (purged.removed, len(purged.after.objects), in_cache(emptied)) == (15, 135, 135)
    assert {one.key for one in purged.after.objects} == {o.key for o in found.objects} - {
        o.key for o in chosen
    }
    (told_of,) = [one for one in work.account() if isinstance(one, HostChanged)]
    assert told_of.what.startswith("15 objects (")
    # Anew: 100 % is made, not assumed.
    again = work.fill("get", Stop())
    assert (len(again.after.objects), len(again.here)) == (150, 150)
    real_runs.await_same(emptied.folder, before)
    assert real_runs.scratch(emptied.folder) == []


def told_of_cache(lab: Lab) -> tuple[str, str]:
    (one,) = (one for one in machines.check(lab, GET) if one.text.startswith("cache ("))
    return one.grade, one.text


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_a_check_tells_how_full_the_cache_is_whatever_else_it_finds(emptied: Embedded) -> None:
    (cache,) = (one.cache for one in emptied.lab.hosts if one.cache)
    grade, text = told_of_cache(emptied.lab)
    assert (grade, text.startswith(f"cache (apache-disk) {cache.folder}: "), ": 0 %" in text) == (
        "ok",
        True,
        True,
    ), text
    work = ByHand(emptied.lab, GET)
    done = work.fill("get", Stop())
    size = units.bytes_text(done.after.bytes)
    full = f"cache (apache-disk) {cache.folder}: 150 objects of the repository, {size}: 100 % of the 150 that Get needs"
    assert told_of_cache(emptied.lab) == ("ok", full)
    work.purge(done.after, done.after.cut(0.1, 1), Stop())
    gone = Host(
        name="desk-9", role=Role.CLIENT, ssh="unix:/nowhere/desk-9", host_key=emptied.lab.hosts[0].host_key
    )
    grade, text = told_of_cache(replace(emptied.lab, hosts=(*emptied.lab.hosts, gone)))
    assert grade == "ok"
    assert "135 objects" in text
    assert "90 % of the 150" in text
    # Of a repository of one's own every host is needed to know which objects these are.
    own = replace(GET, data=None, repository="http://{server}:9/svn/trunk")
    (one,) = (
        one
        for one in machines.check(replace(emptied.lab, hosts=(*emptied.lab.hosts, gone)), own)
        if one.text.startswith("cache (")
    )
    assert (one.grade, "was not looked at, since" in one.text) == ("warn", True)


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_in_a_lab_of_others_nothing_goes_that_nobody_agreed_to(
    emptied: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    ByHand(emptied.lab, GET).fill("get", Stop())
    monkeypatch.setattr(machines, "own", lambda lab: False)
    work = ByHand(emptied.lab, GET)
    found = work.inventory(Stop())
    with pytest.raises(Declined, match="15 of 150 objects"):
        work.purge(found, found.cut(0.1, 1), Stop())
    # The cache is that of BranchLab's own proxy, where nobody else brings anything in: a fill begins it anew, unasked.
    assert work.asked_for_fill("get") == ()
    assert in_cache(emptied) == 150
    # What was not there when it was looked at stays, although it would be of the repository.
    looked = replace(found, objects=found.objects[:100])
    done = work.purge(looked, looked.cut(1, 1), Stop(), PURGE)
    assert (done.removed, len(done.after.objects)) == (100, 50)
    gone = work.purge(looked, looked.cut(1, 1), Stop(), PURGE)
    assert (gone.asked, gone.removed) == (100, 0)


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_a_repository_of_the_users_own_is_filled_and_nothing_is_taken_out(
    emptied: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_repository.served(emptied) as repository:
        monkeypatch.setattr(machines, "own", lambda lab: False)
        newest, work = repository.newest(), ByHand(emptied.lab, AS_IS)
        assert work.asked_for_fill("get") == ()
        first = work.fill("get", Stop())
        assert (len(first.before.objects), len(first.here)) == (0, 150)
        found = work.inventory(Stop())
        work.purge(found, found.cut(0.2, 1), Stop(), PURGE)
        second = work.fill("get", Stop())
        assert (len(second.before.objects), len(second.here)) == (120, 150)
        assert repository.newest() == newest
        # Of the cache of BranchLab's own proxy a run asks nothing: what is there was brought in by BranchLab.
        assert machines.look(emptied.lab, replace(AS_IS, states=(real_runs.FULL,))) == ()
        work.purge(found, found.objects, Stop(), PURGE)


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_a_fill_that_is_stopped_leaves_nothing_of_its_own(
    emptied: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, stop, noted = Hosts.of(emptied.folder), Stop(), Workplace.run_noted

    def stopped(self: Workplace, operation: str, stop: Stop) -> frozenset[str]:
        stop.request()
        return noted(self, operation, stop)

    monkeypatch.setattr(Workplace, "run_noted", stopped)
    with pytest.raises(Stopped):
        ByHand(emptied.lab, GET).fill("get", stop)
    real_runs.await_same(emptied.folder, before)
    assert real_runs.scratch(emptied.folder) == []


# ---- the line


def limited(lab: Embedded) -> bool:
    return "htb" in real_runs.on(lab.folder, "server", "tc qdisc show dev eth0")


@pytest.mark.lab
def test_a_line_is_held_read_back_and_taken_back(lab: Embedded) -> None:
    before, work = Hosts.of(lab.folder), ByHand(lab.lab)
    with work.line(SLOW, Stop()) as applied:
        assert limited(lab)
        assert (applied.read.upload_bps, applied.read.download_bps) == (64_000, 128_000)
        assert 0 < applied.left_s <= applied.lease_s == 30
        assert applied.limiting == (("server", "limiting the line to 64/128 kbit/s"),)
        applied.check(Stop())
        said = hands.said(applied.read)
        assert said.startswith("64 kbit/s up, 128 kbit/s down; queues 64.0 kB up, 64.0 kB down (")
        # Locked as by a run, for a run and for whoever else comes by hand.
        with (
            pytest.raises(AgentRefused, match="the line by hand: 64/128 kbit/s") as busy,
            work.line(SLOW, Stop()),
        ):
            pass
        assert busy.value.kind == "busy"
        *_, word = runner.run(GET, Machines(lab.lab), Stop())
        assert isinstance(word, RunFinished)
        assert word.outcome is Outcome.FAILED
        assert "held by" in word.reason
    assert applied.lifted is not None
    assert hands.said(applied.lifted) == "nothing that limits it"
    real_runs.await_same(lab.folder, before)


@pytest.mark.lab
def test_a_line_that_somebody_else_touched_ends_and_says_so(lab: Embedded) -> None:
    before = Hosts.of(lab.folder)
    with ByHand(lab.lab).line(SLOW, Stop()) as applied:
        real_runs.on(lab.folder, "server", "tc qdisc del dev eth0 root")
        with pytest.raises(HostTrouble, match="the line read back is not 64/128 kbit/s"):
            applied.check(Stop())
    real_runs.await_same(lab.folder, before)


@pytest.mark.lab
def test_others_are_asked_about_before_a_line_as_before_a_run(
    lab: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "own", lambda lab: False)
    before, work = Hosts.of(lab.folder), ByHand(lab.lab)
    serve = "import socket, time; s = socket.create_server(('198.18.0.1', 4455)); s.accept(); time.sleep(90)"
    hold = "import socket, time; s = socket.create_connection(('198.18.0.1', 4455)); time.sleep(90)"
    for host, code in (("server", serve), ("client", hold)):
        real_runs.on(lab.folder, host, f'setsid python3 -c "{code}" >/dev/null 2>&1 & sleep 0.5')
    try:
        (asked,) = work.asked_for_line(SLOW)
        assert (asked.kind, asked.details) == ("connections", ("1 between client and server on port 4455",))
        with pytest.raises(Declined, match="this line would do"), work.line(SLOW, Stop()):
            pass
        assert not limited(lab)
        with work.line(SLOW, Stop(), frozenset({"connections"})):
            assert limited(lab)
        assert work.asked_for_line(AS_IT_IS) == ()
    finally:
        there = real_runs.inhabitants(lab.folder)
        real_runs.kill(number for number, line in there.items() if "4455" in line)
    real_runs.await_same(lab.folder, before)


SHORT = """
import sys
from lab.__main__ import cli
from lab.cli import signals
from lab.cli.parts import Parts
from lab.hands import Hands
parts = Parts(hands=lambda lab, experiment: Hands(lab, experiment, lease_s=6))
with signals.as_interrupts():
    cli(sys.argv[1:], obj=parts)
"""


def held(process: subprocess.Popen[str]) -> str:
    return real_runs.read_until(process, "It is held for as long as")


@pytest.mark.lab
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_takes_its_line_back_when_it_is_told_to_end(
    lab: Embedded, tmp_path: Path, number: int
) -> None:
    before = Hosts.of(lab.folder)
    with real_runs.command("line", str(lab.profile_path), "64/128 kbit/s", data=tmp_path) as process:
        said = held(process)
        assert "server: limiting the line to 64/128 kbit/s" in said
        assert "read back from the kernel: 64 kbit/s up, 128 kbit/s down" in said
        assert "under a lease of 30 s" in said
        assert limited(lab)
        process.send_signal(number)
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 130
    assert "taking the line back" in errors
    assert "taken back; read back from the kernel: nothing that limits it" in out
    assert "server: taken back: line on " in out
    real_runs.await_same(lab.folder, before)


@pytest.mark.lab
def test_a_killed_commands_line_ends_with_its_lease(lab: Embedded, tmp_path: Path) -> None:
    before = Hosts.of(lab.folder)
    words = ("line", str(lab.profile_path), "64/128 kbit/s")
    with real_runs.command(*words, data=tmp_path, code=SHORT) as process:
        held(process)
        process.kill()
        killed = time.monotonic()
        real_runs.await_lifted(lab.folder, within_s=real_runs.PATIENCE_S)
        assert time.monotonic() - killed < real_runs.PATIENCE_S
    with real_runs.command("line", str(lab.profile_path), "as it is", data=tmp_path) as process:
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert "No line of BranchLab's limits these hosts." in out
    real_runs.await_same(lab.folder, before)


@pytest.mark.lab
def test_force_takes_a_line_from_the_living(lab: Embedded, tmp_path: Path) -> None:
    with real_runs.command("line", str(lab.profile_path), "64/128 kbit/s", data=tmp_path) as process:
        held(process)
        assert machines.revert(lab.lab, force=True)["server"]
        assert not limited(lab)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 3
        assert "server" in errors
