"""Counting with iptables where a host has no nft: rules as text, and real packets through real iptables."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from netns import CODE, SERVER, SERVER6, Agent, FailedError, Net, office
from test_traffic import PEERS, _transfer

from ssh_agents import iptables, traffic, watch
from ssh_agents.lease import Lease

WITHOUT_NFT = (
    "from ssh_agents import tool; real = tool.found; "
    "tool.found = lambda name: None if name == 'nft' else real(name); "
)
"""Hides nft from an agent; everything else on the host is as it is."""
HIDING = CODE.replace("from ssh_agents.__main__", WITHOUT_NFT + "from ssh_agents.__main__")

real = pytest.mark.skipif(shutil.which("iptables-restore") is None, reason="no iptables here")


def test_rules_pass_over_the_exempt_first_and_count_by_name() -> None:
    peers = [("c1", ["10.0.0.1", "fd00::1"])]
    made = traffic._by_iptables(peers, [("10.0.0.1", 22)], traffic.Passing())
    text = iptables.ruleset(rule for family, rule in made if family == 4)
    lines = text.splitlines()
    assert lines[:3] == ["*mangle", ":BRANCHLAB-I - [0:0]", ":BRANCHLAB-O - [0:0]"]
    assert lines[-3:] == ["-I INPUT 1 -j BRANCHLAB-I", "-I OUTPUT 1 -j BRANCHLAB-O", "COMMIT"]
    assert lines.index("-A BRANCHLAB-I -s 10.0.0.1 -p tcp --dport 22 -j RETURN") < lines.index(
        "-A BRANCHLAB-I -s 10.0.0.1 -m comment --comment i6331"
    )
    assert "fd00" not in text
    assert "-s fd00::1 -m comment --comment i6331" in iptables.ruleset(rule for six, rule in made if six == 6)


def test_a_router_counts_what_passes_between_addresses_of_one_family() -> None:
    passing = traffic.Passing([("c", ["10.0.0.1", "fd00::1"])], [("s", ["10.0.1.1"])])
    made = traffic._by_iptables([], [("10.0.0.1", 22)], passing)
    text = iptables.ruleset(rule for _, rule in made)
    assert "-A BRANCHLAB-F -s 10.0.0.1 -d 10.0.1.1 -m comment --comment f63x73" in text
    assert "-A BRANCHLAB-F -d 10.0.0.1 -p tcp --sport 22 -j RETURN" in text
    assert "fd00" not in text
    assert "INPUT" not in text


def test_what_iptables_saves_is_read_and_rules_of_one_name_are_added_up() -> None:
    text = """\
*mangle
:INPUT ACCEPT [7:700]
:BRANCHLAB-I - [0:0]
[3:300] -A INPUT -j BRANCHLAB-I
[1:60] -A BRANCHLAB-I -s 10.0.0.1/32 -p tcp -m tcp --sport 22 -j RETURN
[2:240] -A BRANCHLAB-I -s 10.0.0.1/32 -m comment --comment i6331
[5:500] -A BRANCHLAB-I -s 10.0.0.9/32 -m comment --comment "i6331"
[9:999] -A SOMEBODY -s 10.0.0.9/32 -m comment --comment i6331
COMMIT
"""
    assert iptables.parsed(text) == {"i6331": (740, 7)}


@pytest.fixture
def hosts() -> Iterator[Net]:
    with office() as made:
        yield made


def hidden(hosts: Net, name: str = "server") -> Agent:
    return hosts.agent(name, privileged=True, text=HIDING)


@real
@pytest.mark.lab
def test_bytes_are_counted_the_same_without_nft(hosts: Net) -> None:
    root = hidden(hosts)
    root.ask("lease.open", lease_s=60)
    assert root.ask("traffic.start", peers=PEERS) == {"table": "mangle, by iptables"}
    assert hosts.run("server", "nft", "list", "tables").find("branchlab") < 0
    _transfer(hosts, "c1", SERVER, 100_000, "up")
    first = root.ask("traffic.read")["counters"]
    assert 100_000 <= first["c1"]["in_bytes"] <= 110_000
    assert 0 < first["c1"]["out_bytes"] < 8000
    _transfer(hosts, "c2", SERVER6, 200_000, "down")
    _transfer(hosts, "other", SERVER, 50_000, "up")
    second = root.ask("traffic.read")["counters"]
    assert second["c1"]["in_bytes"] - first["c1"]["in_bytes"] < 500  # the end of the first connection
    assert 200_000 <= second[PEERS[1]["name"]]["out_bytes"] <= 220_000
    # From zero, and only those that are asked for now.
    assert root.ask("traffic.start", peers=PEERS[:1])
    assert root.ask("traffic.read")["counters"] == {
        "c1": {"in_bytes": 0, "in_packets": 0, "out_bytes": 0, "out_packets": 0}
    }


@real
@pytest.mark.lab
def test_rules_of_others_stay_and_ours_go_with_the_lease_by_hand_and_after_a_kill(hosts: Net) -> None:
    hosts.run(
        "server",
        "iptables",
        "-t",
        "mangle",
        "-A",
        "INPUT",
        "-s",
        "192.0.2.1",
        "-j",
        "MARK",
        "--set-mark",
        "7",
    )
    hosts.run("server", "iptables", "-A", "INPUT", "-s", "192.0.2.2", "-j", "DROP")

    def table() -> str:
        text = hosts.run("server", "iptables-save") + hosts.run("server", "ip6tables-save")
        return "\n".join(line for line in text.splitlines() if line.startswith("-A") or "BRANCHLAB" in line)

    before = table()
    assert "MARK" in before
    root = hidden(hosts)
    lease = root.ask("lease.open", lease_s=60)["lease"]
    root.ask("traffic.start", peers=PEERS)
    assert "BRANCHLAB" in table()
    undone = root.ask("lease.close", lease=lease)["undone"]
    assert undone == ["traffic counters (iptables) removed"]
    assert table() == before

    lease = root.ask("lease.open", lease_s=60)["lease"]
    root.ask("traffic.start", peers=PEERS)
    iptables_off = ["iptables", "-t", "mangle", "-D", "INPUT", "-j", "BRANCHLAB-I"]
    hosts.run("server", *iptables_off)
    root.ask("lease.close", lease=lease)  # somebody was quicker with a part of it
    assert table() == before

    root.ask("lease.open", lease_s=3)
    root.ask("traffic.start", peers=PEERS)
    assert "BRANCHLAB" in table()
    root.kill()
    hosts.agent("server", privileged=True).ask("revert")
    assert table() == before


@real
@pytest.mark.lab
def test_counters_that_vanished_are_said(hosts: Net) -> None:
    root = hidden(hosts)
    root.ask("lease.open", lease_s=60)
    root.ask("traffic.start", peers=PEERS)
    hosts.run("server", "iptables", "-t", "mangle", "-F")
    hosts.run("server", "ip6tables", "-t", "mangle", "-F")
    with pytest.raises(FailedError, match="touched"):
        root.ask("traffic.read")


@real
@pytest.mark.lab
def test_chains_that_no_lease_tells_of_are_told_and_go_with_revert(hosts: Net) -> None:
    before = hosts.run("server", "iptables-save", "-t", "mangle")
    root = hidden(hosts)
    folder = root.ask("lease.open", lease_s=60)["folder"]
    root.ask("traffic.start", peers=PEERS[:1])
    watcher = watch.found(Lease(folder))
    assert watcher is not None
    os.kill(watcher[0], signal.SIGKILL)
    root.kill()
    shutil.rmtree(folder)
    second = hidden(hosts)
    (told,) = second.ask("leases")["unpromised"]
    assert (told["kind"], "iptables" in told["what"]) == ("traffic", True)
    assert second.ask("revert") == {"undone": ["traffic counters (iptables) removed"]}
    assert "BRANCHLAB" not in hosts.run("server", "iptables-save", "-t", "mangle")
    assert second.ask("leases")["unpromised"] == []
    assert ":BRANCHLAB" not in before
