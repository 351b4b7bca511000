"""The campaign: whatever is killed, cut or stopped while a line is limited, the host is as before in time."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from netns import Net, net

from lab.stop import Stop
from tests import sshd

LEASE_S = 3.0
MARGIN_S = 5.0
"""The promise: within the lease and so many seconds the line is as before."""
DESK, HOST, PORT = "10.78.0.11", "10.78.0.1", 2222
CHECKOUT = Path(__file__).resolve().parents[1]
CONTROLLER = """
import random, sys, time
from lab.errors import LabError
from lab.model import Host, Lab, Role
from lab.rig.hosts import connected
from lab.stop import Stop

ssh, key, host_key, desk, seed, lease_s = sys.argv[1:]
chance = random.Random(int(seed))
host = Host(name="host", role=Role.SERVER, ssh=ssh, key=key, host_key=host_key, root="direct")
try:
    with connected(Lab(name="campaign", hosts=(host,)), Stop(), lease_s=float(lease_s)) as (one,):
        path = one.agent.ask("files.scratch", {"name": "campaign"})["path"]
        one.privileged.ask("traffic.start", {"peers": [{"name": "desk", "addresses": [desk]}], "exempt": one.exempt()})
        said = False
        while True:
            rate = chance.choice((64_000, 512_000, 10_000_000))
            asked = {"office": [desk], "exempt": one.exempt(), "upload_bps": rate, "download_bps": 2 * rate}
            one.privileged.ask("line.apply", asked)
            if not said:
                print("limited", flush=True)
                said = True
            write = ["sh", "-c", f"mkdir -p {path}/a/b; echo x > {path}/a/b/$$"]
            one.agent.ask("command", {"argv": write, "timeout_s": 60.0})
            time.sleep(chance.random() / 5)
except LabError as error:
    print(error.told(), file=sys.stderr)
    sys.exit(3)
"""
LOOK = """
tc qdisc show
for device in $(ls /sys/class/net); do
    tc filter show dev "$device"; tc filter show dev "$device" ingress 2>/dev/null
done
ip -o link
nft list ruleset
"""
"""Queues, filters, links and tables, without counters."""


@dataclass
class Round:
    """One host with a real sshd, and a controller at another desk that limits its line."""

    net: Net
    server: sshd.Sshd
    listener: subprocess.Popen[bytes]
    chance: random.Random
    controller: subprocess.Popen[str] = field(init=False)
    paused: list[int] = field(default_factory=list)

    def look(self) -> str:
        return self.net.run("host", "sh", "-c", LOOK)

    def left(self) -> list[str]:
        """Scratch folders, and whatever of BranchLab still runs on the host."""
        scratch = [str(path) for path in (self.server.folder / "tmp").glob("branchlab-*/*")]
        return scratch + [str(pid) for pid in self.agents("watch")]

    def agents(self, way: str) -> list[int]:
        """Process numbers of agents, or of watchers."""
        words = {pid: self.net.command_line(pid).split(b"\0") for pid in self.net.pids("host")}
        return [pid for pid, line in words.items() if b"-I" in line and way.encode() in line]

    def listen(self) -> None:
        self.listener = listening(self.net, self.server)


def agent(one: Round) -> None:
    """The privileged agent, or both."""
    pids = one.agents("privileged")
    assert pids
    for pid in pids + (one.agents("cached") if one.chance.random() < 0.5 else []):
        Net.kill(pid)


def cut(one: Round) -> None:
    """Nothing of the desk's gets anywhere any more, and nobody is told."""
    chain = "chain {0} {{ type filter hook {0} priority 0; policy drop; }}"
    rules = "\n".join(["table inet cut {", chain.format("input"), chain.format("output"), "}"])
    one.net.run("desk", "nft", rules)


def controller(one: Round) -> None:
    one.controller.kill()


def suspended(one: Round) -> None:
    one.controller.send_signal(signal.SIGSTOP)


def paused(one: Round) -> None:
    """The agents, amid whatever they do; they go on once all was taken back without them."""
    one.paused = one.agents("privileged") + (one.agents("cached") if one.chance.random() < 0.5 else [])
    assert one.paused
    for pid in one.paused:
        os.kill(pid, signal.SIGSTOP)


def server(one: Round) -> None:
    """Every sshd of the host, also those of sessions; then it is started again."""
    for pid in one.net.pids("host"):
        if one.net.command_line(pid).startswith((b"sshd", str(sshd.SSHD).encode())):
            Net.kill(pid)
    one.listener.wait(20)
    one.listen()


def session(one: Round) -> None:
    """The login session's processes, as by a hang-up or by force."""
    sign = one.chance.choice((signal.SIGHUP, signal.SIGTERM, signal.SIGKILL))
    sessions = {os.getsid(pid) for pid in one.agents("privileged") + one.agents("cached")}
    assert sessions
    for pid in one.net.pids("host"):
        with suppress(ProcessLookupError):
            if os.getsid(pid) in sessions:
                os.kill(pid, sign)


def scope(one: Round) -> None:
    """All that the login session ever started, watchers too, as logind does where it is told to."""
    for pid in one.net.pids("host"):
        if pid != one.listener.pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


KINDS: dict[str, Callable[[Round], None]] = {
    kind.__name__: kind for kind in (agent, cut, controller, suspended, paused, server, session, scope)
}


def listening(made: Net, server: sshd.Sshd) -> subprocess.Popen[bytes]:
    argv = [str(sshd.SSHD), "-D", "-f", f"{server.folder}/config", "-E", f"{server.folder}/log"]
    argv += ["-o", f"ListenAddress={HOST}:{PORT}"]
    return subprocess.Popen(made.argv("host", *argv), stdin=subprocess.DEVNULL)


@contextmanager
def limited(folder: Path, seed: int, lease_s: float) -> Iterator[tuple[Round, str]]:
    """A round whose line is limited; and what the host looked like before."""
    environment = f"SetEnv XDG_CACHE_HOME={folder}/xdg TMPDIR={folder}/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin"
    server = sshd.made(folder, environment)
    (folder / "tmp").mkdir()
    with net() as made:
        made.host("host")
        made.host("desk")
        made.tie("host", "eth0", "desk", "eth0")
        made.address("host", "eth0", f"{HOST}/24")
        made.address("desk", "eth0", f"{DESK}/24")
        words = [f"root@{HOST}:{PORT}", str(server.key), server.host_key(), DESK, str(seed), str(lease_s)]
        one = Round(made, server, listening(made, server), chance=random.Random(seed))
        try:
            awaited(lambda: "listening" in server.log())
            before = one.look()
            with subprocess.Popen(
                made.argv("desk", sys.executable, "-c", CONTROLLER, *words),
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as one.controller:
                try:
                    assert one.controller.stdout is not None
                    assert one.controller.stderr is not None
                    assert one.controller.stdout.readline() == "limited\n", one.controller.stderr.read()
                    yield one, before
                finally:
                    one.controller.kill()
        finally:
            one.listener.kill()
            one.listener.wait(20)


def awaited(met: Callable[[], bool], within_s: float = 50) -> float:
    """How long it took; fails if it did not come."""
    began = time.monotonic()
    while not met():
        assert time.monotonic() - began < within_s, "it did not come"
        time.sleep(0.05)
    return time.monotonic() - began


def fought(kind: str, seed: int, folder: Path, lease_s: float = LEASE_S) -> None:
    """One round: strike at a random moment, and see that the host is as before, in time."""
    with limited(folder, seed, lease_s) as (one, before):
        time.sleep(one.chance.uniform(0, 1.5))
        now = one.look()
        assert "htb" in now
        assert "inet branchlab" in now
        assert one.left()
        KINDS[kind](one)
        struck = time.monotonic()
        while (now := one.look()) != before:
            assert time.monotonic() - struck < lease_s + MARGIN_S, f"after {lease_s} + {MARGIN_S} s: {now}"
            time.sleep(0.05)
        if kind == "suspended":
            one.controller.send_signal(signal.SIGCONT)
        if kind == "paused":
            time.sleep(one.chance.uniform(0, 3))  # while the watcher looks once more, or when it has gone
            for pid in one.paused:
                os.kill(pid, signal.SIGCONT)
        if kind not in ("cut", "controller"):
            assert one.controller.wait(60) == 3, "the controller did not notice"
        awaited(lambda: not one.left())
        if kind == "paused":  # until an agent has taken back what it went on with
            awaited(lambda: not one.agents("privileged"))
        assert one.look() == before


def campaign(rounds: list[tuple[str, int]], folder: Path, workers: int, lease_s: float = LEASE_S) -> None:
    """All rounds, several at once side by side; every failure is told."""
    stop, failed = Stop(), []

    def alone(job: tuple[str, int]) -> None:
        kind, seed = job
        stop.check()
        try:
            fought(kind, seed, folder / f"{kind}-{seed}", lease_s)
        except Exception as error:  # noqa: BLE001 - all are told together
            failed.append(f"{kind}, seed {seed}: {error!r}")

    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            list(pool.map(alone, rounds))
        except BaseException:
            stop.request()
            raise
    assert not failed, "\n".join([f"{len(failed)} of {len(rounds)} rounds:", *failed])


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="network namespaces with an sshd need root here")


@needs_root
@pytest.mark.lab
def test_whatever_is_killed_the_line_is_as_before_in_time(tmp_path: Path) -> None:
    campaign([(kind, seed) for seed in (1, 2) for kind in KINDS], tmp_path, workers=5)


@needs_root
@pytest.mark.campaign
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
def test_fifty_times(tmp_path: Path, kind: str) -> None:
    campaign([(kind, seed) for seed in range(100, 150)], tmp_path, workers=6)


@needs_root
@pytest.mark.campaign
@pytest.mark.timeout(7200)
def test_once_with_the_lease_that_is_usual(tmp_path: Path) -> None:
    campaign([(kind, 1000) for kind in KINDS], tmp_path, workers=len(KINDS), lease_s=30.0)
