"""Counters of hosts become bytes per pair of roles, as they arrived and as they were sent."""

from __future__ import annotations

from dataclasses import replace

import pytest
import stand_in_hosts
from stand_in_hosts import connected, office, root

from lab.errors import AgentRefused
from lab.model import PAIRS, Role
from lab.rig.meter import LiveCounters, Meter, Reading
from lab.stop import Stop


def count(arrived: int, sent: int) -> dict[str, int]:
    """One peer's counters; the packets are there to be left out."""
    return {"in_bytes": arrived, "in_packets": 1_000_000, "out_bytes": sent, "out_packets": 1_000_000}


S, D = "198.51.100.1", "198.51.100.11"
COUNTERS = {
    "server": {"proxy": count(5, 6), "desk": count(10, 20), "desk-2": count(100, 200)},
    "proxy": {"server": count(7, 8), "desk": count(1, 2), "desk-2": count(3, 4)},
    "desk": {"server": count(19, 11), "proxy": count(1_000, 2_000), "desk-2": count(50, 60)},
    "desk-2": {"server": count(190, 110), "proxy": count(10_000, 20_000), "desk": count(70, 80)},
}
ARRIVED = {
    "client>server": 110,
    "server>client": 209,
    "client>proxy": 4,
    "proxy>client": 11_000,
    "proxy>server": 5,
    "server>proxy": 7,
}
SENT = {
    "client>server": 121,
    "server>client": 220,
    "client>proxy": 22_000,
    "proxy>client": 6,
    "proxy>server": 8,
    "server>proxy": 6,
}


def test_arrivals_are_those_of_the_receiver_summed_over_a_role_and_clients_among_themselves_are_left_out() -> (
    None
):
    assert Meter(office()).summed(COUNTERS) == Reading(ARRIVED, SENT)


def test_a_host_that_does_not_count_is_missing_at_its_own_end_only() -> None:
    some = {name: counters for name, counters in COUNTERS.items() if name != "desk"}
    summed = Meter(office()).summed(some)
    assert (summed.arrived["server>client"], summed.arrived["client>server"]) == (190, 110)


def test_a_router_is_no_end_of_any_pair() -> None:
    hosts = [*office(), connected("router", Role.ROUTER, address="198.51.100.254")]
    assert Meter(hosts).summed({**COUNTERS, "router": {"desk": count(9, 9)}}) == Reading(ARRIVED, SENT)


def test_what_came_between_two_readings() -> None:
    double = Reading({pair: 2 * n for pair, n in ARRIVED.items()}, {pair: 3 * n for pair, n in SENT.items()})
    assert double.since(Reading(ARRIVED, SENT)) == Reading(ARRIVED, {pair: 2 * n for pair, n in SENT.items()})


def test_packets_are_counted_where_bytes_arrive_or_pass() -> None:
    counters = {"server": {"desk": {"in_bytes": 1500, "in_packets": 3, "out_bytes": 9, "out_packets": 8}}}
    meter = Meter(office())
    before, after = meter.summed({}), meter.summed(counters)
    assert after.since(before).packets["client>server"] == 3
    router = connected("router", Role.ROUTER)
    hosts = [
        *(connected(one.name, one.host.role, root="none", address=one.host.address) for one in office()),
        router,
    ]
    passed = {"desk": {"server": {"bytes": 999, "packets": 7}}}
    assert Meter(hosts).summed({}, passed).packets["client>server"] == 7


def test_every_host_counts_for_all_others_and_past_everybodys_ssh() -> None:
    hosts = office({"traffic.start": lambda args: {"table": "inet branchlab"}})
    ends = {
        "own": {"address": "198.51.100.11", "port": 2222},
        "peer": {"address": "203.0.113.7", "port": 50000},
    }
    hosts[2].facts["ssh"] = ends
    dialled = hosts[2].connection
    dialled.target = replace(dialled.target, path="", port=2222)  # as sshd sees it
    Meter(hosts).start(Stop())
    for one in hosts:
        (args,) = root(one).args("traffic.start")
        assert {peer["name"]: peer["addresses"] for peer in args["peers"]} == {
            peer.name: peer.addresses for peer in hosts if peer is not one
        }
        # sshd's port at either end: the desk may itself be one of the lab's hosts.
        assert args["exempt"] == [
            {"address": "203.0.113.7", "port": 2222},
            {"address": "198.51.100.11", "port": 2222},
        ]


def test_what_nobody_counts_is_absent_and_told_and_no_zero() -> None:
    hosts = [
        connected(
            "server", Role.SERVER, {"traffic.read": lambda args: {"counters": COUNTERS["server"]}}, address=S
        ),
        connected("desk", Role.CLIENT, root="none", address=D),
        connected("desk-2", Role.CLIENT, root="none", address="198.51.100.12"),
        connected("proxy", Role.PROXY, root="none", address="198.51.100.2"),
    ]
    meter = Meter(hosts)
    assert meter.read(Stop()) == Reading(
        {"client>server": 110, "proxy>server": 5}, {"server>client": 220, "server>proxy": 6}
    )
    assert meter.uncounted == ("server>client", "client>proxy", "proxy>client", "server>proxy")
    assert "client to proxy" in next(meter.notes())
    assert LiveCounters(meter, meter.read(Stop())).bytes() == {"client>server": 0, "proxy>server": 0}


@pytest.mark.parametrize("counter", ["nftables", "iptables"])
def test_a_host_counts_with_what_its_agent_says_it_has(counter: str) -> None:
    facts = {"tools": {"nft": None}, "counter": counter}
    hosts = [
        connected("server", Role.SERVER, address=S, facts=facts),
        connected("desk", Role.CLIENT, address=D, facts=facts),
    ]
    assert Meter(hosts).uncounted == ()


def test_a_sum_with_one_part_missing_is_no_sum() -> None:
    hosts = [*office()[:3], connected("desk-2", Role.CLIENT, root="none", address="198.51.100.12")]
    assert set(PAIRS) - set(Meter(hosts).summed(COUNTERS).arrived) == {"server>client", "proxy>client"}


@pytest.mark.parametrize(
    "cannot", [{"root": "none"}, {"facts": {"counter": None}}, {"facts": {"windows": True}}]
)
def test_a_router_counts_what_passes_it_for_those_who_cannot(cannot: dict[str, object]) -> None:
    router_says = {
        "counters": {},
        "passed": {"server": {"desk": {"bytes": 7}}, "desk": {"server": {"bytes": 5}}},
    }
    hosts = [
        connected("server", Role.SERVER, address=S, **cannot),  # type: ignore[arg-type]
        connected("desk", Role.CLIENT, address=D, **cannot),  # type: ignore[arg-type]
        connected("proxy", Role.PROXY, root="none", address="198.51.100.2"),
        connected(
            "router",
            Role.ROUTER,
            {"traffic.read": lambda args: router_says, "traffic.start": lambda args: {}},
        ),
    ]
    meter = Meter(hosts)
    meter.start(Stop())
    (args,) = root(hosts[3]).args("traffic.start")
    assert [one["name"] for one in args["near"]] == ["desk", "proxy"]
    assert args["far"] == [{"name": "server", "addresses": [S]}]
    # What client and proxy exchange passes no router.
    assert meter.uncounted == ("client>proxy", "proxy>client")
    assert meter.read(Stop()).arrived == {
        "client>server": 5, "server>client": 7, "proxy>server": 0, "server>proxy": 0
    }  # fmt: skip
    assert meter.lead == "router"


def test_a_receiver_that_counts_is_believed_before_a_router() -> None:
    hosts = [*office(), connected("router", Role.ROUTER)]
    passed = {"desk": {"server": {"bytes": 999}}}
    assert Meter(hosts).summed(COUNTERS, passed) == Reading(ARRIVED, SENT)


def test_behind_nat_an_upload_is_counted_where_it_is_sent_and_that_is_told() -> None:
    meter = Meter(office(), hidden={"desk", "desk-2", "proxy"})
    found = meter.summed(COUNTERS)
    # The server's counters of these hosts would say nothing.
    assert found.arrived == ARRIVED | {"client>server": 121, "proxy>server": 8}
    assert {"server>client", "server>proxy"}.isdisjoint(found.sent)
    assert meter.as_sent == ("client>server", "proxy>server")
    assert "NAT" in next(meter.notes())


def test_counters_that_somebody_took_away_are_refused() -> None:
    def gone(args: stand_in_hosts.Args) -> stand_in_hosts.Args:
        raise AgentRefused("the counters are gone", kind="touched", host="server")

    with pytest.raises(AgentRefused, match="gone"):
        Meter(office({"traffic.read": gone})).read(Stop())


def test_live_samples_count_from_the_baseline_and_never_below() -> None:
    meter = Meter(office())
    live = LiveCounters(meter, Reading(ARRIVED, SENT))
    assert live.bytes() == dict.fromkeys(PAIRS, 0)
    live.take("server", {"t": 1.0, "counters": {"desk": count(115, 0)}})
    # The proxy and the clients were not heard yet; nothing of theirs is counted backwards.
    assert live.bytes() == dict.fromkeys(PAIRS, 0) | {"client>server": 5}
    live.take("server", {"t": 1.1, "counters": {"desk": count(125, 0)}})
    assert live.bytes()["client>server"] == 15


def test_streams_end_with_the_trial() -> None:
    meter = Meter(office({"traffic.stream": lambda args: {}}))
    with meter.streaming() as talks:
        assert sorted(talks.values()) == ["desk", "desk-2", "proxy", "server"]
        kept = list(talks)
    assert all(talk.cancelled for talk in kept)  # type: ignore[attr-defined]


def test_what_each_client_has_to_do_with_is_told_beside_the_sum() -> None:
    counters = {
        "server": {"desk": count(100, 0), "desk-2": count(30, 0)},
        "desk": {"server": count(7, 0)},
        "desk-2": {"proxy": count(5, 0)},
    }
    summed = Meter(office()).summed(counters)
    assert summed.arrived["client>server"] == 130
    assert {pair: n for pair, n in summed.each["desk"].items() if n} == {
        "client>server": 100,
        "server>client": 7,
    }
    assert {pair: n for pair, n in summed.each["desk-2"].items() if n} == {
        "client>server": 30,
        "proxy>client": 5,
    }
    assert set(summed.each) == {"desk", "desk-2"}
    since = summed.since(Meter(office()).summed({"server": {"desk-2": count(10, 0)}}))
    assert (since.each["desk-2"]["client>server"], since.each["desk"]["client>server"]) == (20, 100)
