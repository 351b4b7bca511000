"""The lab's own SSH while a line is limited or severed: between the same two addresses, over both families."""

from __future__ import annotations

import contextlib
import getpass
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sshd
from netns import CODE, OFFICE, SERVER, SERVER6, Agent, FailedError, Net, office

PORT = 2222
PEERS = [{"name": "c1", "addresses": ["10.77.0.11", "fd77::11"]}]
EXEMPT = [{"address": address, "port": PORT} for address in ("10.77.0.11", "fd77::11", SERVER, SERVER6)]
SEVERED = {"upload_bps": 64_000, "download_bps": 64_000, "loss": 1.0}
LINES = [{"upload_bps": 64_000, "download_bps": 64_000}, SEVERED, {"loss": 1.0}, {"delay_s": 0.0}]


@dataclass
class Bench:
    """An sshd on the server, reached from c1 over the network that the line is on."""

    net: Net
    root: Agent
    server: sshd.Sshd

    def argv(self, address: str, *command: str) -> list[str]:
        words = ["ssh", "-F", "none", "-i", str(self.server.key), "-p", str(PORT), "-o", "BatchMode=yes"]
        words += [
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
        ]
        return [*words, f"{getpass.getuser()}@{address}", *command]

    def megabytes(self, address: str, count: int) -> float:
        """Seconds that so many MB take from the server to c1 over a new SSH session."""
        began = time.monotonic()
        argv = self.argv(address, f"head -c {count}000000 /dev/zero")
        told = self.net.run("c1", "sh", "-c", '"$@" | wc -c', "sh", *argv)
        assert int(told) == count * 1_000_000
        return time.monotonic() - began


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    server = sshd.made(tmp_path / "sshd")
    with office() as net, contextlib.ExitStack() as stack:
        argv = [str(sshd.SSHD), "-D", "-f", f"{server.folder}/config", "-E", f"{server.folder}/log"]
        argv += ["-o", f"ListenAddress=0.0.0.0:{PORT}", "-o", f"ListenAddress=[::]:{PORT}"]
        process = stack.enter_context(net.popen("server", *argv))
        stack.callback(process.kill)
        root = net.agent("server", privileged=True)
        root.ask("lease.open", lease_s=300)
        made = Bench(net, root, server)
        end = time.monotonic() + 30
        while f":{PORT} " not in net.run("server", "ss", "-Hltn") and time.monotonic() < end:
            time.sleep(0.02)
        yield made


@pytest.mark.lab
def test_ssh_between_the_same_addresses_is_neither_limited_nor_counted(bench: Bench) -> None:
    """Field faults: 100 % loss on the live NIC locks the admin out; control traffic exempted.

    4 MB take 500 s at 64 kbit/s, and never arrive where everything is lost.
    """
    serving = bench.net.agent("server").start("probe.serve", address="::")
    port = serving.event()[1]["port"]
    client = bench.net.agent("c1")
    ping = {"port": port, "count": 5, "size": 64, "interval_s": 0.001, "timeout_s": 1.0}
    # A session that stays over all changes of the line.
    with bench.net.popen("c1", *bench.argv(SERVER, "cat")) as held:
        held.stdin.write(b"before\n")
        held.stdin.flush()
        assert held.stdout.readline() == b"before\n"
        for wanted in LINES:
            read = bench.root.ask("line.apply", office=OFFICE, exempt=EXEMPT, **wanted)
            lost = wanted.get("loss", 0.0)
            assert (read["loss"], read["applied"]) == (lost, len(wanted) > 1 or lost > 0)
            bench.root.ask("traffic.start", peers=PEERS, exempt=EXEMPT)
            for address in (SERVER, SERVER6):
                assert bench.megabytes(address, 4) < 60
            held.stdin.write(b"during\n")
            held.stdin.flush()
            assert held.stdout.readline() == b"during\n"
            counted = bench.root.ask("traffic.read")["counters"]["c1"]
            # Neighbour discovery of IPv6 is no SSH; nothing else may be there.
            assert counted["in_bytes"] + counted["out_bytes"] < 1000
            for address in (SERVER, SERVER6):
                got = client.ask("probe.ping", address=address, **ping)["received"]
                assert got == (0 if lost else 5)
        held.stdin.close()
        assert held.wait(30) == 0


@pytest.mark.lab
def test_all_lost_is_refused_unless_ours_is_exempt_or_on_no_network(bench: Bench) -> None:
    """Field fault: 100 % loss on the only NIC: refusal unless the control connection is exempt and a lease is set."""
    before = bench.net.run("server", "tc", "qdisc")
    with pytest.raises(FailedError, match=r"bad-request.*cut this session off"):
        bench.root.ask("line.apply", office=OFFICE, **SEVERED)
    assert bench.net.run("server", "tc", "qdisc") == before
    over = {"SSH_CONNECTION": "10.77.0.11 40000 10.77.0.1 2222"}  # said to be apart, and is not
    argv = bench.net.argv("server", "env", *(f"{name}={value}" for name, value in over.items()))
    doubted = Agent([*argv, sys.executable, "-I", "-S", "-c", CODE, "privileged"])
    with contextlib.closing(doubted), pytest.raises(FailedError, match=r"bad-request.*cut this session off"):
        doubted.ask("line.apply", office=OFFICE, apart=True, **SEVERED)
    read = bench.root.ask("line.apply", office=OFFICE, apart=True, **SEVERED)
    assert (read["applied"], read["loss"], read["method"]) == (True, 1.0, "tc+bfifo")
    bench.root.ask("lease.close")
    assert bench.net.run("server", "tc", "qdisc") == before
    with pytest.raises(FailedError, match="no lease is open"):
        bench.root.ask("line.apply", office=OFFICE, exempt=EXEMPT, **SEVERED)


@pytest.mark.lab
def test_a_wire_that_would_hold_back_our_ssh_is_refused(bench: Bench) -> None:
    """wirefilter delays all that passes its port, so it is only for hosts behind UNIX sockets."""
    check = bench.root.ask("line.check", office=OFFICE)
    if check["kinds"]["netem"] or not check["tun"]:
        pytest.skip("no wirefilter here")
    before = bench.net.run("server", "tc", "qdisc")
    wanted = {"office": OFFICE, "exempt": EXEMPT, "delay_s": 0.04, "delay_port": "wirefilter:uplink:up0"}
    with pytest.raises(FailedError, match="own SSH"):
        bench.root.ask("line.apply", **wanted)
    assert bench.net.run("server", "tc", "qdisc") == before


@pytest.mark.lab
def test_an_agent_killed_while_all_is_lost_leaves_nothing(bench: Bench) -> None:
    """Field fault: shaping persists after the tool ends. The lease takes everything back."""
    before = bench.net.run("server", "tc", "qdisc")
    bench.root.ask("line.apply", office=OFFICE, exempt=EXEMPT, **SEVERED)
    bench.root.kill()
    end = time.monotonic() + 60
    while bench.net.run("server", "tc", "qdisc") != before and time.monotonic() < end:
        time.sleep(0.05)
    assert bench.net.run("server", "tc", "qdisc") == before
