"""What a run would do to other people's work, looked at beforehand: on stand-ins, a real Apache's cache, real hosts."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import real_runs
import sshd
from netns import OTHER, SERVER, Net, office
from real_runs import EMPTY, QUICK_LINE, experiment
from stand_in_hosts import Args, agent, connected, root
from test_cache import filled, listing, origin, proxy  # noqa: F401 - fixtures
from test_others import _connections

from lab import embedded, machines, runner, vcs
from lab.analysis.summary import summarised
from lab.asking import Question
from lab.cli import story
from lab.credentials import Passwords
from lab.embedded import Embedded
from lab.errors import AgentRefused, BadInput, HostLacks, LabError
from lab.events import CacheFilled, HostSeen, Noted, Outcome, RunFinished, ToolMeasured
from lab.machines import Machines
from lab.model import AS_IT_IS, DISABLED, Cache, Experiment, Lab, Role
from lab.rig import checking, fullness, hosts, looking
from lab.rig.hosts import Connected
from lab.rig.workplace import Workplace
from lab.stop import Stop

REPOSITORY = "http://198.51.100.1:80/svn/"
CACHE = Cache(kind="apache-disk", folder="/var/cache/office")
WANTED = experiment(lines=(QUICK_LINE,), states=(DISABLED, EMPTY))
ASKS = {"line.check", "leases", "others", "cache.list", "probe.serve", "probe.seen"}
"""Verbs that change nothing."""


class Office:
    """Three hosts on a network, with work of others on them."""

    def __init__(self) -> None:
        self.check: Args = {
            "refuse": None, "device": "eth0", "stands": "tbf 1: rate 1mbit", "replace_trouble": None,
            "replaceable": True, "kinds": {"netem": True}, "tun": False,
        }  # fmt: skip
        self.counted: Args = {"desk": {"445": 3}, "proxy": {"111": 1}}
        self.objects = [f"{REPOSITORY}trunk/{n}" for n in range(12)] + [
            "http://198.51.100.1:80/wiki/",
            "http://x:80/",
        ]
        self.held = False
        verbs = {
            "line.check": self._check,
            "leases": lambda args: {"leases": [{"alive": self.held, "held": "alice on desk-7"}]},
            "cache.list": self._listed,
        }
        self.hosts = [
            self._host("server", Role.SERVER, "198.51.100.1", verbs, self.counted, services="/srv/lab"),
            self._host("proxy", Role.PROXY, "198.51.100.2", verbs, {}, cache=CACHE, url="http://198.51.100.2:8081"),
            self._host("desk", Role.CLIENT, "198.51.100.11", verbs, {"server": {"445": 2}}),
        ]  # fmt: skip

    @property
    def lab(self) -> Lab:
        return Lab(name="Office", hosts=tuple(one.host for one in self.hosts))

    def asked(self) -> set[str]:
        agents = [one for host in self.hosts for one in (agent(host), host.root and root(host)) if one]
        return {verb for one in agents for verb, _ in one.asked}

    @staticmethod
    def _host(name: str, role: Role, address: str, verbs: Args, counted: Args, **given: Any) -> Connected:
        ends = {"peer": {"address": "198.51.100.99", "port": 5}, "own": {"address": address, "port": 22}}

        def others(args: Args) -> Args:
            ours = {str(port) for port in args["ports_of_ours"]}
            peers = {
                peer: {p: n for p, n in ports.items() if p not in ours} for peer, ports in counted.items()
            }
            return {"counted": peers}

        there = {**verbs, "others": others}
        return connected(name, role, there, facts={"ssh": ends}, address=address, **given)

    def _check(self, args: Args) -> Args:
        assert args["replace"]  # what an agreement would help is no reason to refuse
        return self.check

    def _listed(self, args: Args) -> Args:
        portions = [self.objects[n : n + 5] for n in range(0, len(self.objects), 5)]
        return {
            "events": [
                ("objects", {"objects": [{"url": url, "key": url, "bytes": 1000, "files": 2} for url in one]})
                for one in portions
            ]
        }


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Office:
    made = Office()

    @contextmanager
    def stand_in(
        lab: Lab, stop: Stop, *, lease_s: float | None, passwords: Passwords
    ) -> Iterator[Sequence[Connected]]:
        assert lease_s is None
        yield tuple(made.hosts)

    monkeypatch.setattr(looking, "connected", stand_in)
    return made


def look(there: Office, wanted: Experiment = WANTED) -> tuple[Question, ...]:
    return looking.look(there.lab, wanted, vcs.driver("subversion"), Passwords())


def test_connections_queues_and_objects_are_asked_about_in_this_order(there: Office) -> None:
    connections, queues, objects = look(there)
    assert [one.kind for one in (connections, queues, objects)] == ["connections", "qdisc", "purge"]
    assert connections.host == "server"
    assert connections.text.startswith("4 connections of others")
    # Each once, although both ends see it.
    assert connections.details == (
        "3 between server and desk on port 445",
        "1 between server and proxy on port 111",
    )
    assert (queues.host, queues.details) == ("server", ("tbf 1: rate 1mbit",))
    assert "on eth0" in queues.text
    assert objects.host == "proxy"
    assert objects.text.startswith(f"12 objects (12.0 kB) of {REPOSITORY} are in the cache /var/cache/office")
    assert "what else it holds (2 objects) stays untouched" in objects.text
    assert objects.details == tuple(f"{REPOSITORY}trunk/{n}" for n in range(10))
    assert there.asked() <= ASKS


def test_colleagues_at_the_production_repository_are_asked_about(
    there: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workplace, "look", lambda self, stop: None)
    there.counted["desk"] = {"80": 5}
    there.counted["proxy"] = {"80": 1}
    own = experiment(lines=(QUICK_LINE,), data=None)
    assert look(there, own)[0].text.startswith("8 connections of others")  # 2 more at port 445
    assert look(there, experiment(lines=(QUICK_LINE,)))[0].text.startswith("2 connections of others")


def test_what_is_not_there_is_not_asked_about(there: Office) -> None:
    there.counted.clear()
    agent(there.hosts[2]).verbs = root(there.hosts[2]).verbs = {  # type: ignore[assignment]
        **root(there.hosts[2]).verbs, "others": lambda args: {"counted": {}},
    }  # fmt: skip
    there.check["stands"] = None
    there.objects = there.objects[12:]
    assert look(there) == ()


def test_what_the_experiment_does_not_do_is_not_even_looked_at(there: Office) -> None:
    assert [one.kind for one in look(there, experiment(lines=(QUICK_LINE,)))] == ["connections", "qdisc"]
    there.hosts[0].root = None
    there.hosts[0].host = replace(there.hosts[0].host, services="/srv/lab", root="direct")
    with pytest.raises(HostLacks, match="server has to be changed"):
        look(there, experiment())


def test_the_line_as_it_is_hurts_nobodys_connections(there: Office) -> None:
    assert [one.kind for one in look(there, experiment(lines=(AS_IT_IS,), states=(EMPTY,)))] == ["purge"]
    assert there.asked() <= ASKS - {"line.check", "others"}


def test_queues_that_would_not_come_back_are_refused_with_what_is_possible(there: Office) -> None:
    there.check.update(refuse="eth0 has queues that could not be put back the same: cake", replaceable=False)
    with pytest.raises(HostLacks, match="cake") as caught:
        look(there)
    assert 'role = "router"' in caught.value.advice
    assert 'lines = ["as it is"]' in caught.value.advice


def test_a_host_that_another_run_holds_is_told_first(there: Office) -> None:
    there.held = True
    with pytest.raises(AgentRefused, match="held by alice on desk-7") as caught:
        look(there)
    assert (caught.value.kind, caught.value.host) == ("busy", "server")
    assert "revert --force" in caught.value.advice
    assert there.asked() == {"leases"}


def test_what_the_profile_lacks_is_told_before_a_host_is_asked(there: Office) -> None:
    there.hosts[0].host = replace(there.hosts[0].host, services=None)
    with pytest.raises(BadInput, match="has no place for it"):
        look(there)
    assert there.asked() == set()


def test_a_proxy_of_our_own_needs_root(there: Office) -> None:
    there.hosts[1].host = replace(there.hosts[1].host, services="/srv/lab", root="none")
    there.hosts[1].root = None
    with pytest.raises(HostLacks, match="proxy has to be changed"):
        look(there)


def purge(proxy: Connected, root: str = REPOSITORY) -> tuple[Question, ...]:  # noqa: F811
    assert proxy.host.cache is not None
    one = fullness.Fullness(proxy, proxy.host.cache, root, lambda operation, stop: None)
    return looking.purge(one, proxy, looking.unasked(one, proxy, Stop()))


@pytest.mark.parametrize(
    ("services", "kind"), [("/srv/lab", None), (None, "missing"), ("/srv/lab", "denied")]
)
def test_a_folder_that_our_own_proxy_will_make_is_no_question(services: str | None, kind: str | None) -> None:
    def refused(args: Args) -> Args:
        raise AgentRefused("no", kind=kind or "missing", host="proxy")

    one = connected("proxy", Role.PROXY, {"cache.list": refused}, services=services, cache=CACHE)
    if kind is None:
        assert purge(one) == ()
    else:
        with pytest.raises(AgentRefused):
            purge(one)


def test_a_name_in_a_cache_is_one_harmless_line(there: Office) -> None:
    there.objects = [f"{REPOSITORY}a\n\x1b[2J\udcff\u202eb"]
    (asked,) = look(there, experiment(states=(EMPTY,)))
    assert asked.details == (f"{REPOSITORY}a\\n\\x1b[2J\\udcff\\u202eb",)


# ---- a real Apache's cache


@pytest.mark.lab
def test_of_a_real_cache_only_what_is_below_the_root_would_go(
    proxy: tuple[int, Path],  # noqa: F811
    origin: int,  # noqa: F811
) -> None:
    port, folder = proxy
    urls = filled(port, origin, folder)

    def _listed(args: Args) -> Args:
        assert args == {"kind": "apache-disk", "folder": str(folder)}
        return {"events": [("objects", {"objects": listing(folder)[0]})]}

    cache = Cache(kind="apache-disk", folder=str(folder))
    one = connected("proxy", Role.PROXY, {"cache.list": _listed}, cache=cache)
    (asked,) = purge(one, f"http://127.0.0.1:{origin}/plain/")
    assert asked.text.startswith("11 objects (")
    assert asked.text.endswith("what else it holds (3 objects) stays untouched.")
    assert len(asked.details) == 10
    assert {url.rstrip("?") for url in asked.details} <= set(urls)
    assert purge(one, f"http://127.0.0.1:{origin}/svn/") == ()


# ---- a real lab, taken for one of others


@pytest.fixture(scope="module")
def lab() -> Iterator[Embedded]:
    with embedded.up() as made:
        yield made


@pytest.mark.lab
def test_a_lab_is_our_own_while_it_stands_and_all_of_it_is(lab: Embedded) -> None:
    assert machines.own(lab.lab)
    first, *rest = lab.lab.hosts
    assert not machines.own(replace(lab.lab, hosts=(*rest, replace(first, ssh="admin@198.51.100.10"))))
    assert not machines.own(replace(lab.lab, hosts=(replace(first, ssh="unix:/run/other/server/ssh"), *rest)))
    elsewhere = tuple(
        replace(one, cache=Cache(kind="apache-disk", folder="/var/cache/office")) if one.cache else one
        for one in lab.lab.hosts
    )
    assert not machines.own(replace(lab.lab, hosts=elsewhere))
    assert not machines.own(Lab(name="Nothing", hosts=()))
    with embedded.up() as other:
        assert machines.own(other.lab)
        mixed = (*rest, *(one for one in other.lab.hosts if one.name == first.name))
        assert not machines.own(replace(lab.lab, hosts=mixed))
    assert not machines.own(other.lab)


@pytest.mark.lab
def test_in_a_lab_of_our_own_nothing_is_asked_and_what_cannot_begin_is_refused(lab: Embedded) -> None:
    assert machines.look(lab.lab, WANTED) == ()
    own = replace(WANTED, data=None, repository="http://{server}:8099/svn/trunk")
    with pytest.raises(LabError):
        machines.look(lab.lab, own)
    with hosts.connected(lab.lab, Stop(), lease_s=30.0, owned_by=hosts.owner("r", "another run")):
        with pytest.raises(AgentRefused, match="held by") as caught:
            machines.look(lab.lab, WANTED)
        assert caught.value.kind == "busy"


GET = experiment(states=(EMPTY,), attempts=1)


def last_word(
    wanted: Experiment, bed: Machines, once_set_up: Callable[[], None] | None = None
) -> RunFinished:
    for word in runner.run(wanted, bed, Stop()):
        if once_set_up is not None and isinstance(word, ToolMeasured):
            once_set_up()
    assert isinstance(word, RunFinished)
    return word


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_what_a_run_did_not_bring_into_a_cache_it_takes_out_only_if_that_was_agreed_to(
    lab: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def objects() -> list[str]:
        (folder,) = (one.cache.folder for one in lab.lab.hosts if one.cache)
        found = real_runs.on(lab.folder, "proxy", f"find {folder} -name '*.header'").splitlines()
        return sorted(line for line in found if line.endswith(".header"))

    (folder,) = (one.cache.folder for one in lab.lab.hosts if one.cache)

    def brought_back() -> None:
        """As a run leaves it that ended with a power cut."""
        real_runs.on(lab.folder, "proxy", f"cp -a {folder}.kept/. {folder}/")

    assert look_at(lab) == ()
    with monkeypatch.context() as broken:
        keep = f"cp -a {folder} {folder}.kept"
        broken.setattr(fullness.Fullness, "clear", lambda *_: real_runs.on(lab.folder, "proxy", keep))
        assert last_word(replace(GET, states=(real_runs.FULL,)), Machines(lab.lab)).outcome is Outcome.DONE
    assert objects() == []  # the service's own undo has emptied it
    brought_back()
    with monkeypatch.context() as ours:  # they came by BranchLab's own proxy: nobody else's
        ours.setattr(machines, "own", lambda lab: False)
        assert machines.look(lab.lab, GET) == ()
        assert last_word(GET, Machines(lab.lab)).outcome is Outcome.DONE
        assert objects() == []
        brought_back()
        taken = checking.revert(lab.lab)["proxy"]
        assert any("is taken out (" in text for text in taken), taken
        assert objects() == []
    brought_back()
    before = objects()
    assert len(before) >= 150
    monkeypatch.setattr(looking, "fills_alone", lambda host: False)  # as in a cache of the office's own
    monkeypatch.setattr(machines, "own", lambda lab: False)
    (asked,) = machines.look(lab.lab, GET)
    assert (asked.kind, asked.host) == ("purge", "proxy")
    assert " objects (" in asked.text
    assert "/svn/" in asked.details[0]
    (told,) = [one for one in machines.check(lab.lab, GET) if "would ask" in one.text]
    assert (told.ok, told.host) == (True, "proxy")
    assert told.text.startswith("a run would ask (--agree purge): ")
    seen = list(runner.run(GET, Machines(lab.lab), Stop()))
    word = seen[-1]
    assert isinstance(word, RunFinished)
    assert (word.outcome, word.declined) == (Outcome.FAILED, True)
    assert "nobody agreed" in word.reason
    # Nothing was made before it, as where a question is answered with no; and so is the exit code.
    assert {type(event) for event in seen[1:-1]} == {HostSeen}
    assert story.code_of(summarised(seen)) == 2
    assert "--agree purge" in word.advice
    assert objects() == before
    assert last_word(GET, Machines(lab.lab, agreed=frozenset({"purge"}))).outcome is Outcome.DONE
    assert objects() == []


def urls_in_cache(lab: Embedded) -> set[str]:
    (folder,) = (one.cache.folder for one in lab.lab.hosts if one.cache)
    seen = real_runs.on(
        lab.folder, "proxy", f"grep -aorhE 'http://[!-~]+[?]' --include=*.header {folder} || true"
    )
    return {word for word in seen.split() if word.startswith("http://")}


def fetched(lab: Embedded, url: str) -> None:
    """A colleague on the client host gets this through the proxy."""
    through = next(one.url for one in lab.lab.hosts if one.role is Role.PROXY)
    get = (
        "import urllib.request as r;"
        f"r.build_opener(r.ProxyHandler({{'http': '{through}'}})).open('{url}', timeout=20).read()"
    )
    real_runs.on(lab.folder, "client", f'python3 -c "{get}"')


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_what_a_colleague_brings_in_while_a_run_fills_stays_and_is_on_no_list(
    lab: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field fault: it became the list of History, and was purged, in a run that was allowed nothing."""
    monkeypatch.setattr(machines, "own", lambda lab: False)
    theirs: list[str] = []
    wanted = experiment(states=(real_runs.FULL,), operations=("get", "history"), attempts=1)
    run_noted = Workplace.run_noted

    def busy(self: Workplace, operation: str, stop: Stop) -> frozenset[str]:
        asked = run_noted(self, operation, stop)
        one = next(url for url in [*sorted(urls_in_cache(lab)), *theirs] if "/100/" in url or url in theirs)
        theirs.append(re.sub(r"/(100|90)/", f"/{90 + len(theirs)}/", one).rstrip("?"))
        fetched(lab, theirs[-1])
        return asked

    remaining: list[set[str]] = []
    (folder,) = (one.cache.folder for one in lab.lab.hosts if one.cache)
    clear = fullness.Fullness.clear

    def cleared(self: fullness.Fullness) -> None:
        clear(self)
        remaining.append({url.rstrip("?") for url in urls_in_cache(lab)})
        real_runs.on(lab.folder, "proxy", f"rm -rf {folder}.kept; cp -a {folder} {folder}.kept")

    monkeypatch.setattr(Workplace, "run_noted", busy)
    monkeypatch.setattr(fullness.Fullness, "clear", cleared)
    events = list(runner.run(wanted, Machines(lab.lab), Stop()))
    seen = [event for event in events if isinstance(event, CacheFilled)]
    assert events[-1].outcome is Outcome.DONE, events[-1]  # type: ignore[attr-defined]
    assert [(one.operation, one.objects, one.list_of) for one in seen] == [
        ("get", 150, "get"),
        ("history", 150, "get"),
    ]
    assert len(theirs) == 2
    assert remaining == [set(theirs)]
    assert urls_in_cache(lab) == set()  # with the proxy of BranchLab's own goes what is in its cache
    assert any("brought in by others" in event.text for event in events if isinstance(event, Noted))
    # In a cache of the office's own they stay. They are asked about before the next run; and what comes after the
    # question is not agreed to by its yes.
    real_runs.on(lab.folder, "proxy", f"cp -a {folder}.kept/. {folder}/")
    monkeypatch.setattr(looking, "fills_alone", lambda host: False)
    (asked,) = machines.look(lab.lab, GET)
    assert asked.text.startswith("2 objects (")
    late = theirs[0].replace("/90/", "/80/")
    word = last_word(GET, Machines(lab.lab, agreed=frozenset({"purge"})), lambda: fetched(lab, late))
    assert word.outcome is Outcome.FAILED
    assert "1 objects (" in word.reason
    assert "came there after it was looked at" in word.reason
    assert len(remaining) == 1  # nothing was taken out, and that run did not come as far as a clean-up
    real_runs.on(lab.folder, "proxy", f"cp -a {folder}.kept/. {folder}/")
    machines.look(lab.lab, GET)
    assert last_word(GET, Machines(lab.lab, agreed=frozenset({"purge"}))).outcome is Outcome.DONE
    assert remaining[1] == {theirs[2]}  # that came during its fill


def look_at(lab: Embedded) -> tuple[Question, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machines, "own", lambda lab: False)
        return machines.look(lab.lab, GET)


# ---- hosts on a network, with a real sshd each

PORT = 2222
PROFILE = """
schema = 1
name = "Namespaces"
{hosts}
[[experiments]]
name = "Get"
data = "quick"
operations = ["get"]
lines = ["4/8 Mbit/s"]
states = ["disabled"]
attempts = 1
warm_up = 0
"""
HOST = """
[hosts.{name}]
role = "{role}"
ssh = "{user}@{address}:{port}"
key = "{server.key}"
host_key = "{key}"
address = "{address}"
root = "direct"
{more}
"""


class Bench:
    """A server and a client of an office with an sshd each; BranchLab runs on a third host."""

    def __init__(self, net: Net, server: sshd.Sshd, folder: Path, stack: contextlib.ExitStack) -> None:
        self.net, self.folder, self.server = net, folder, server
        self.profile = folder / "office.toml"
        told = {"user": getpass.getuser(), "port": PORT, "server": server, "key": server.host_key()}
        # Where Apache's own user gets to.
        self.services = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.services.chmod(0o711)
        services = f'services = "{self.services}/services"'
        hosts = HOST.format(name="server", role="server", address=SERVER, more=services, **told)
        hosts += HOST.format(name="c1", role="client", address="10.77.0.11", more="", **told)
        self.profile.write_text(PROFILE.format(hosts=hosts))

    def branchlab(self, *words: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
        """The command on the third host, with nobody at a terminal."""
        start = ["-m", "lab"] if code is None else ["-c", code]
        argv = self.net.argv("other", sys.executable, *start, *words)
        return subprocess.run(
            argv, cwd=real_runs.CHECKOUT, env={**os.environ, "BRANCHLAB_DATA": str(self.folder / "data")},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

    def accepted(self) -> int:
        """How many connections the servers have had."""
        return self.server.log().count("Connection from ")

    def runs(self) -> list[Path]:
        return list((self.folder / "data").glob("runs/*"))

    def qdiscs(self) -> str:
        return self.net.run("server", "tc", "qdisc", "show", "dev", "eth0")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    server = sshd.made(tmp_path / "sshd")
    with office(hosts=1) as net, contextlib.ExitStack() as stack:
        argv = [str(sshd.SSHD), "-D", "-f", f"{server.folder}/config", "-E", f"{server.folder}/log"]
        for name in ("server", "c1"):
            process = stack.enter_context(net.popen(name, *argv, "-o", f"ListenAddress=0.0.0.0:{PORT}"))
            stack.callback(process.kill)
            end = time.monotonic() + 30
            while f":{PORT} " not in net.run(name, "ss", "-Hltn") and time.monotonic() < end:
                time.sleep(0.02)
        yield Bench(net, server, tmp_path, stack)


@pytest.mark.lab
def test_others_are_found_on_real_hosts_before_anything_is_changed(bench: Bench) -> None:
    """Field fault: work of others between the same hosts. Their number and port are told; nobody is hurt."""
    run = ("run", "--headless", str(bench.profile))
    told = bench.branchlab(*run)
    assert (told.returncode, bench.accepted(), bench.runs()) == (2, 0, []), told.stderr
    assert "--agree connections,qdisc" in told.stderr
    before = bench.qdiscs()
    with _connections(bench.net, SERVER, 3) as port:
        told = bench.branchlab(*run, "--agree", "nothing")
        assert (told.returncode, bench.runs()) == (2, []), told.stderr
        assert bench.accepted() > 0
        assert "3 connections of others" in told.stderr
        assert f"between c1 and server on port {port}" in told.stderr
        assert "branchlab run --agree connections PROFILE" in told.stderr
        assert str(PORT) not in told.stderr  # the lab's own SSH is none of others'
        told = bench.branchlab("check", str(bench.profile))
        assert "a run would ask (--agree connections): 3 connections" in told.stdout, told.stdout
    assert OTHER not in told.stdout
    assert bench.qdiscs() == before


@pytest.mark.lab
def test_queues_of_somebody_are_asked_about_on_real_hosts_and_stay(bench: Bench) -> None:
    bench.net.run(
        "server", "sh", "-c", "tc qdisc add dev eth0 root tbf rate 100mbit burst 16000 limit 640000"
    )
    before = bench.qdiscs()
    told = bench.branchlab("run", "--headless", str(bench.profile), "--agree", "connections")
    assert (told.returncode, bench.runs()) == (2, []), told.stderr
    assert "Somebody set up queues on eth0" in told.stderr
    assert "tbf" in told.stderr
    assert "branchlab run --agree connections,qdisc PROFILE" in told.stderr
    assert bench.qdiscs() == before


TBF = "tc qdisc add dev eth0 root tbf rate 100mbit burst 16000 limit 640000"


@pytest.mark.lab
def test_what_was_agreed_to_is_done_and_everything_is_as_before(bench: Bench) -> None:
    bench.net.run("server", "sh", "-c", TBF)
    before = bench.qdiscs()
    run = ("run", "--rehearse", "--agree", "connections,qdisc", str(bench.profile))
    with _connections(bench.net, SERVER, 2):
        told = bench.branchlab(*run)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "1 proved themselves" in told.stdout
    assert "server: nothing is left there" in told.stdout
    assert bench.qdiscs() == before
    assert len(bench.runs()) == 1


UNSEEN = """
import sys
from lab.__main__ import cli
from lab.cli.parts import Parts
cli(sys.argv[1:], obj=Parts(look=lambda lab, experiment: ()))
"""
"""The command, as if what is on the hosts had come after they were looked at."""


@pytest.mark.lab
def test_what_came_between_looking_and_running_ends_the_run_before_anything_is_changed(bench: Bench) -> None:
    run = ("run", "--headless", str(bench.profile), "--agree")
    with _connections(bench.net, SERVER, 2) as port:
        told = bench.branchlab(*run, "qdisc", code=UNSEEN)
    assert told.returncode == 2, told.stdout
    assert f"2 between c1 and server on port {port}" in told.stdout
    assert "--agree connections,qdisc" in told.stdout
    bench.net.run("server", "sh", "-c", TBF)
    before = bench.qdiscs()
    told = bench.branchlab(*run, "connections", code=UNSEEN)
    assert told.returncode == 2, told.stdout
    assert "branchlab run --agree connections,qdisc PROFILE" in told.stdout
    assert bench.qdiscs() == before
    assert not list(bench.services.iterdir())
