"""Counters on arrival: nftables rules as text, and real packets between namespaces."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from netns import OFFICE, SERVER, SERVER6, FailedError, Net, office

from ssh_agents import traffic

PEERS = [
    {"name": "c1", "addresses": ["10.77.0.11", "fd77::11"]},
    {"name": "the “proxy” of Łódź", "addresses": ["10.77.0.12", "fd77::12"]},
]


def test_a_peer_s_name_survives_in_the_counter_s() -> None:
    names = [traffic.counter(letter, "Łódź 1") for letter in "io"]
    assert all(name.isalnum() and name.isascii() for name in names)
    found = traffic.by_peer({names[0]: (10, 1), names[1]: (20, 2), "x": (9, 9), "ifoo": (9, 9)})
    assert found == {"Łódź 1": {"in_bytes": 10, "in_packets": 1, "out_bytes": 20, "out_packets": 2}}


def test_exempt_tuples_are_passed_over_before_anything_is_counted() -> None:
    text = traffic.ruleset([("c1", ["10.0.0.1"])], [("10.0.0.1", 22)]).splitlines()
    assert text.index("ip saddr 10.0.0.1 tcp dport 22 return") < text.index(
        "ip saddr 10.0.0.1 counter name i6331"
    )
    assert text.index("ip daddr 10.0.0.1 tcp sport 22 return") < text.index(
        "ip daddr 10.0.0.1 counter name o6331"
    )


def test_who_asks_for_an_ipv6_neighbour_is_not_counted_as_traffic() -> None:
    text = traffic.ruleset([("c1", ["10.0.0.1", "fd00::1"])], []).splitlines()
    for kind in (135, 136):
        assert text.count(f"icmpv6 type {kind} return") == 2  # in and out
    assert text.index("icmpv6 type 136 return") < text.index("ip6 saddr fd00::1 counter name i6331")
    assert "icmpv6" not in traffic.ruleset([("c1", ["10.0.0.1"])], [])


def test_what_a_router_passes_on_is_counted_by_sender_and_receiver() -> None:
    names = traffic.passed("Łódź 1", "proxy"), traffic.passed("proxy", "Łódź 1")
    assert names[0] != names[1]
    assert all(name.isalnum() and name.isascii() for name in names)
    found = {names[0]: (10, 1), names[1]: (20, 2), traffic.counter("i", "proxy"): (9, 9), "fxx": (9, 9)}
    assert traffic.by_pair(found) == {
        "Łódź 1": {"proxy": {"bytes": 10, "packets": 1}},
        "proxy": {"Łódź 1": {"bytes": 20, "packets": 2}},
    }
    assert set(traffic.by_peer(found)) == {"proxy"}
    # The longest names that a profile has fit into a counter's (nf_tables.h: 255 bytes).
    assert len(traffic.passed("d" * 60, "e" * 60)) <= 255
    text = traffic.ruleset(
        [],
        [("10.0.0.1", 22)],
        traffic.Passing([("c", ["10.0.0.1", "fd00::1"])], [("s", ["10.0.1.1", "fd00::2"])]),
    )
    assert "ip6 saddr fd00::1 ip6 daddr fd00::2 counter name f63x73" in text
    assert text.index("ip daddr 10.0.0.1 tcp sport 22 return") < text.index(
        "ip saddr 10.0.0.1 ip daddr 10.0.1.1"
    )
    assert "hook input" not in text


@pytest.fixture
def hosts() -> Iterator[Net]:
    with office() as made:
        yield made


def _transfer(hosts: Net, name: str, address: str, size: int, direction: str) -> int:
    serving = hosts.agent("server").start("probe.serve", address=address)
    port: int = serving.event()[1]["port"]
    hosts.agent(name).ask("probe.fetch", address=address, port=port, bytes=size, direction=direction)
    serving.cancel()
    return port


@pytest.mark.lab
def test_bytes_are_counted_by_peer_family_and_direction(hosts: Net) -> None:
    root = hosts.agent("server", privileged=True)
    root.ask("lease.open", lease_s=60)
    # The line cuts TCP's large packets, so that each one's headers are counted.
    queue = {"queue_upload_bytes": 1_000_000, "queue_download_bytes": 1_000_000}
    root.ask("line.apply", office=OFFICE, upload_bps=40_000_000, download_bps=40_000_000, **queue)
    assert root.ask("traffic.start", peers=PEERS) == {"table": "inet branchlab"}
    _transfer(hosts, "c1", SERVER, 100_000, "up")
    assert root.ask("quiet.wait")["quiet"]  # the connection's end is counted too
    first = root.ask("traffic.read")["counters"]
    assert 100_000 * 1500 / 1448 <= first["c1"]["in_bytes"] <= 106_000
    assert first["c1"]["in_packets"] >= 69
    assert 0 < first["c1"]["out_bytes"] < 5000
    _transfer(hosts, "c2", SERVER6, 200_000, "down")
    _transfer(hosts, "other", SERVER, 50_000, "up")
    second = root.ask("traffic.read")["counters"]
    assert second["c1"] == first["c1"]
    # Leaving ones are counted before the queue cuts them.
    assert 200_000 <= second[PEERS[1]["name"]]["out_bytes"] <= 212_000
    assert root.ask("traffic.start", peers=PEERS[:1])
    assert set(root.ask("traffic.read")["counters"]) == {"c1"}


@pytest.mark.lab
def test_looking_for_an_ipv6_neighbour_moves_no_counter(hosts: Net) -> None:
    """It comes seconds after a connection, and looked like use of a proxy that was disabled."""
    root = hosts.agent("server", privileged=True)
    root.ask("lease.open", lease_s=60)
    _transfer(hosts, "c1", SERVER6, 1000, "up")
    peer = PEERS[0]["addresses"][1]
    known = hosts.run("server", "ip", "-6", "neigh", "show", "to", peer).split()
    root.ask("quiet.wait")
    root.ask("traffic.start", peers=PEERS)
    hosts.run("server", "ip", "-6", "neigh", "change", *known[:5], "nud", "delay")
    end = time.monotonic() + 60
    while "REACHABLE" not in hosts.run("server", "ip", "-6", "neigh", "show", "to", peer):  # it has asked c1
        assert time.monotonic() < end
        time.sleep(0.05)
    counted = root.ask("traffic.read")["counters"]["c1"]
    assert (counted["in_bytes"], counted["out_bytes"]) == (0, 0)


@pytest.mark.lab
def test_the_lab_s_own_ssh_is_not_counted(hosts: Net) -> None:
    root = hosts.agent("server", privileged=True)
    root.ask("lease.open", lease_s=60)
    serving = hosts.agent("server").start("probe.serve", address="::")
    port = serving.event()[1]["port"]
    exempt = [{"address": address, "port": port} for address in PEERS[0]["addresses"]]
    root.ask("traffic.start", peers=PEERS, exempt=exempt)
    for name, address in (("c1", SERVER), ("c1", SERVER6), ("c2", SERVER)):
        hosts.agent(name).ask("probe.fetch", address=address, port=port, bytes=10_000, direction="down")
    found = root.ask("traffic.read")["counters"]
    # Neighbour discovery of IPv6 is no SSH; nothing else may be there.
    assert found["c1"]["in_bytes"] + found["c1"]["out_bytes"] < 500
    assert found[PEERS[1]["name"]]["out_bytes"] > 10_000


@pytest.mark.lab
def test_samples_come_ten_a_second_until_cancelled(hosts: Net) -> None:
    root = hosts.agent("server", privileged=True)
    root.ask("lease.open", lease_s=60)
    root.ask("traffic.start", peers=PEERS)
    talk = root.start("traffic.stream", period_s=0.1)
    began = time.monotonic()
    samples = [talk.event() for _ in range(11)]
    assert 0.9 <= time.monotonic() - began < 10
    assert {name for name, _ in samples} == {"sample"}
    times = [data["t"] for _, data in samples]
    assert times == sorted(times)
    talk.cancel()
    assert set(talk.done()["counters"]) == {"c1", PEERS[1]["name"]}


@pytest.mark.lab
def test_a_table_that_vanished_is_said(hosts: Net) -> None:
    root = hosts.agent("server", privileged=True)
    root.ask("lease.open", lease_s=60)
    for verb in ("traffic.read", "traffic.stream"):
        with pytest.raises(FailedError, match="touched"):
            root.ask(verb)
    before = hosts.run("server", "nft", "list", "ruleset")
    hosts.run("server", "nft", "add", "table", "inet", "somebody")
    others = hosts.run("server", "nft", "list", "ruleset")
    root.ask("traffic.start", peers=PEERS)
    talk = root.start("traffic.stream", period_s=0.05)
    talk.event()
    hosts.run("server", "nft", "delete", "table", "inet", "branchlab")
    with pytest.raises(FailedError, match="touched"):
        talk.done()
    assert root.ask("lease.close") == {"undone": []}
    assert hosts.run("server", "nft", "list", "ruleset") == others != before


FOREIGN = """\
table inet firewall {
  counter i6331 { packets 5 bytes 500 }
  chain input { type filter hook input priority 0; policy accept;
    ip saddr 10.77.0.11 tcp dport 22 accept
    counter name i6331
  }
  chain output { type filter hook output priority -310; policy accept; }
}
table ip branchlab {
  chain input { type filter hook input priority 5; policy accept;
    meta mark 7 drop
  }
}
table ip6 branchlab {
  chain output { type filter hook output priority 5; policy accept;
    meta mark 7 drop
  }
}
"""
"""Tables of somebody else: chains and a counter of the very names that ours have, and a table of our name."""


def _rules(hosts: Net) -> list[str]:
    """What each table of theirs holds, with the kernel's numbers of rules and without counters' figures."""
    names = (["inet", "firewall"], ["ip", "branchlab"], ["ip6", "branchlab"])
    return [hosts.run("server", "nft", "-s", "-a", "list", "table", *name) for name in names]


@pytest.mark.lab
def test_tables_of_others_are_never_touched(hosts: Net) -> None:
    hosts.run("server", "sh", "-c", 'printf %s "$1" | nft -f -', "sh", FOREIGN)
    before = _rules(hosts)
    everything = hosts.run("server", "nft", "-s", "-a", "list", "ruleset")
    root = hosts.agent("server", privileged=True)
    root.ask("lease.open", lease_s=60)
    root.ask("traffic.start", peers=PEERS)
    assert _rules(hosts) == before
    _transfer(hosts, "c1", SERVER, 10_000, "up")
    assert root.ask("traffic.read")["counters"]["c1"]["in_bytes"] >= 10_000
    root.ask("traffic.start", peers=PEERS[:1])
    assert set(root.ask("traffic.read")["counters"]) == {"c1"}
    root.ask("lease.close")
    assert _rules(hosts) == before
    assert root.ask("revert")["undone"] == []
    assert _rules(hosts) == before
    assert hosts.run("server", "nft", "-s", "-a", "list", "ruleset") == everything


@pytest.mark.lab
def test_wrong_peers_are_refused(hosts: Net) -> None:
    root = hosts.agent("server", privileged=True)
    root.ask("lease.open", lease_s=60)
    for peers in (
        [],
        [{"name": "c1"}],
        [{"name": "", "addresses": ["::1"]}],
        [{"name": "c", "addresses": ["x"]}],
    ):
        with pytest.raises(FailedError, match="bad-request"):
            root.ask("traffic.start", peers=peers)
    with pytest.raises(FailedError, match="bad-request"):
        root.ask("traffic.start", peers=PEERS, exempt=[{"address": "::1"}])
    assert "branchlab" not in hosts.run("server", "nft", "list", "ruleset")
