"""The line: read back as asked or not, who shares it, what a host cannot do, and how much a probe asks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from stand_in_hosts import Args, agent, connected, office, root

from lab.errors import AgentRefused, HostLacks, HostTrouble, TrialFailed
from lab.model import AS_IT_IS, Line, Role
from lab.rig.line import PACKET_PAYLOAD, PING_BYTES, PING_HEADERS, HeldLine
from lab.rig.readback import Readback
from lab.stop import Stop

LINE = Line(upload_bps=64_000, download_bps=1_024_000, delay_s=0.04, jitter_s=0.01, loss=0.02)
NOTHING: Args = {
    "upload_bps": None, "download_bps": None, "queue_upload_bytes": None, "queue_download_bytes": None,
    "delay_s": 0.0, "jitter_s": 0.0, "loss": 0.0, "dropped": 0, "method": "none", "applied": False,
}  # fmt: skip


@dataclass
class Kernel:
    """A line that can be applied, read, lifted, probed."""

    held: Args = field(default_factory=lambda: dict(NOTHING))
    can: Args = field(
        default_factory=lambda: {"refuse": None, "kinds": {"htb": True, "netem": True}, "tun": False}
    )
    lost: int = 0

    def verbs(self) -> dict[str, Any]:
        return {
            "line.check": lambda args: {"device": "eth0", **self.can},
            "line.apply": self.apply,
            "line.read": lambda args: dict(self.held),
            "line.lift": self.lift,
            "probe.serve": lambda args: {"events": [("listening", {"port": 4711})]},
            "probe.ping": lambda args: {
                "sent": args["count"], "received": args["count"] - self.lost, "median_s": 0.08, "min_s": 0.07,
                "max_s": 0.09,
            },
            "probe.fetch": lambda args: {"rate_bps": 0.95 * self.held[f"{args['direction']}load_bps"]},
        }  # fmt: skip

    def apply(self, args: Args) -> Args:
        self.held = {
            **NOTHING,
            **{key: args[key] for key in NOTHING if key in args},
            "applied": True,
            "method": "tc",
        }
        return dict(self.held)

    def lift(self, args: Args) -> Args:
        self.held = dict(NOTHING)
        return {}


def readback(line: Line) -> Readback:
    return Readback(
        line.upload_bps, line.download_bps, line.delay_s, line.jitter_s, line.loss, 0, "tc",
        queue_upload_bytes=line.queue_for(line.upload_bps or 0),
        queue_download_bytes=line.queue_for(line.download_bps or 0),
    )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"upload_bps": 64_001},
        {"download_bps": None},
        {"delay_s": 0.041},
        {"jitter_s": 0.0},
        {"loss": 0.021},
        {"queue_upload_bytes": 63_999},
        {"queue_download_bytes": None},
        {"applied": False},
    ],
)
def test_a_line_read_back_is_the_line_asked_in_every_respect(change: dict[str, Any]) -> None:
    assert readback(LINE).matches(LINE)
    assert not replace(readback(LINE), **change).matches(LINE)


def test_a_kernels_rounding_is_no_difference_and_drops_are_none_either() -> None:
    assert replace(readback(LINE), delay_s=0.04000003, loss=0.0200000001, dropped=99).matches(LINE)


def test_the_line_as_it_is_means_that_nothing_is_applied() -> None:
    nothing = Readback(None, None, 0.0, 0.0, 0.0, 0, "none", applied=False)
    assert nothing.matches(AS_IT_IS)
    assert not replace(nothing, applied=True).matches(AS_IT_IS)
    assert not readback(LINE).matches(AS_IT_IS)
    assert not nothing.matches(LINE)


def test_apply_read_and_lift_on_the_server() -> None:
    hosts = office(Kernel().verbs())
    line = HeldLine(hosts)
    assert line.apply(LINE, Stop()).matches(LINE)
    (wanted,) = root(hosts[0]).args("line.apply")
    # Clients and proxy share the one line, over both protocols; 1 s of each direction's own rate waits.
    assert wanted["office"] == ["198.51.100.11", "2001:db8::11", "198.51.100.12", "198.51.100.2"]
    assert (wanted["queue_upload_bytes"], wanted["queue_download_bytes"]) == (64_000, 128_000)
    assert "delay_port" not in wanted
    assert line.read(Stop()).matches(LINE)
    line.lift(Stop())
    assert line.read(Stop()).matches(AS_IT_IS)
    assert line.apply(AS_IT_IS, Stop()).matches(AS_IT_IS)
    assert len(root(hosts[0]).args("line.apply")) == 1
    assert not any(agent(one).asked or root(one).asked for one in hosts[1:])


def test_a_router_holds_the_line_where_there_is_one() -> None:
    router = connected("router", Role.ROUTER, Kernel().verbs(), delay="wirefilter:br0:eth1")
    line = HeldLine([*office(), router])
    line.apply(LINE, Stop())
    assert line.holder is router
    (wanted,) = root(router).args("line.apply")
    assert wanted["delay_port"] == "wirefilter:br0:eth1"
    assert (wanted["place"], wanted["server"]) == ("router", ["198.51.100.1"])
    assert len(wanted["office"]) == 4
    on_server = HeldLine([*office(Kernel().verbs()), router], place="server")
    on_server.apply(LINE, Stop())
    assert on_server.holder is on_server.server


def at_the_office() -> tuple[HeldLine, dict[str, Kernel]]:
    kernels = {name: Kernel() for name in ("desk", "proxy")}
    hosts = [
        connected("server", Role.SERVER, {}, root="none", address="198.51.100.1"),
        connected("desk", Role.CLIENT, kernels["desk"].verbs(), address="198.51.100.11"),
        connected("proxy", Role.PROXY, kernels["proxy"].verbs(), address="198.51.100.2"),
    ]
    return HeldLine(hosts, place="office"), kernels


def test_at_the_office_each_host_has_a_line_of_its_own_towards_the_server() -> None:
    line, kernels = at_the_office()
    assert not line.shared
    assert line.apply(LINE, Stop()).matches(LINE)
    for one, address in zip(line.holders, ("198.51.100.11", "198.51.100.2"), strict=True):
        (wanted,) = root(one).args("line.apply")
        assert (wanted["place"], wanted["office"], wanted["server"]) == (
            "office",
            [address],
            ["198.51.100.1"],
        )
    assert line.read(Stop()).matches(LINE)
    kernels["desk"].held["dropped"], kernels["proxy"].held["dropped"] = 3, 4
    assert line.read(Stop()).dropped == 7
    line.lift(Stop())
    assert line.read(Stop()).matches(AS_IT_IS)


@pytest.mark.parametrize("odd", ["desk", "proxy"])
def test_one_office_host_that_differs_is_neither_the_line_asked_nor_none(odd: str) -> None:
    line, kernels = at_the_office()
    line.apply(LINE, Stop())
    kernels[odd].held = dict(NOTHING)
    found = line.read(Stop())
    assert not found.matches(LINE)
    assert not found.matches(AS_IT_IS)
    assert "not the same on all office hosts" in found.method


def test_one_office_host_that_refuses_is_named_and_a_router_is_offered_by_name() -> None:
    line, kernels = at_the_office()
    kernels["proxy"].can.update(
        refuse="eth0 has queues", replaceable=False, stands="sfq 8:", replace_trouble="x"
    )
    kernels["desk"].can.update(stands=None)
    with pytest.raises(HostLacks, match="has queues") as caught:
        line.refuse([PLAIN], Stop())
    assert caught.value.host == "proxy"
    (standing,) = line.standing(Stop())
    assert (standing.host, standing.trouble) == ("proxy", "x")
    kernel = Kernel()
    kernel.can.update(refuse="eth0 has queues", replaceable=False)
    hosts = [*office(kernel.verbs()), connected("gate", Role.ROUTER)]
    with pytest.raises(HostLacks) as caught:
        HeldLine(hosts, place="server").refuse([PLAIN], Stop())
    assert 'write line = "router": gate holds the line' in caught.value.advice


def test_the_labs_own_ssh_is_exempt_on_whichever_host_it_ends() -> None:
    hosts = office(Kernel().verbs())
    hosts[1].facts["ssh"] = {
        "own": {"address": "198.51.100.2", "port": 22},
        "peer": {"address": "198.51.100.11", "port": 54321},
    }
    HeldLine(hosts).apply(LINE, Stop())
    assert root(hosts[0]).args("line.apply")[0]["exempt"] == [
        {"address": "198.51.100.11", "port": 22},
        {"address": "198.51.100.2", "port": 22},
    ]


def test_a_lab_without_a_server_or_without_addresses_is_told_what_to_write() -> None:
    with pytest.raises(HostTrouble, match="no server") as no_server:
        HeldLine([connected("desk", Role.CLIENT)])
    assert 'role = "server"' in no_server.value.advice
    alone = [connected("server", Role.SERVER, Kernel().verbs()), connected("desk", Role.CLIENT)]
    with pytest.raises(HostLacks, match="no office host has an address") as no_address:
        HeldLine(alone).apply(LINE, Stop())
    assert 'address = "…"' in no_address.value.advice


def test_an_office_behind_several_devices_is_told_where_else_its_line_can_be() -> None:
    def told(args: Args) -> Args:
        raise AgentRefused("the office is reached over more than one device", kind="unsupported", host="gate")

    gate = connected("gate", Role.ROUTER, {"line.check": told})
    server = connected("server", Role.SERVER, address="10.0.0.1")
    with pytest.raises(AgentRefused) as refused:
        HeldLine([server, gate, connected("desk", Role.CLIENT, address="10.0.0.11")]).checks(Stop())
    assert refused.value.advice.startswith('Write line = "office": each office host holds its own line; or')
    assert 'lines = ["as it is"]' in refused.value.advice


PLAIN = replace(LINE, delay_s=0.0, jitter_s=0.0, loss=0.0)
LOSSY = replace(PLAIN, loss=0.02)


@pytest.mark.parametrize(
    ("can", "line", "delay", "refused"),
    [
        ({}, LINE, None, ""),
        ({"refuse": "no HTB in this kernel", "replaceable": False}, PLAIN, None, "no HTB"),
        ({"refuse": "no HTB in this kernel"}, AS_IT_IS, None, ""),
        ({"kinds": {}}, PLAIN, None, ""),
        ({"kinds": {}}, LINE, None, "can do none of them"),
        ({"kinds": {}}, LOSSY, None, "can do none of them"),
        ({"kinds": {}, "tun": True}, LINE, None, "can do none of them"),
        ({"kinds": {}, "tun": True}, LINE, "wirefilter:br0:eth1", ""),
        ({"kinds": {}, "tun": False}, LINE, "wirefilter:br0:eth1", "can do none of them"),
    ],
)
def test_what_a_host_cannot_do_is_refused_before_anything_is_changed(
    can: Args, line: Line, delay: str | None, refused: str
) -> None:
    kernel = Kernel()
    kernel.can.update(can)
    server = connected("server", Role.SERVER, kernel.verbs(), delay=delay)
    held = HeldLine([server, connected("desk", Role.CLIENT, address="198.51.100.11")])
    if refused:
        with pytest.raises(HostLacks, match=refused) as caught:
            held.refuse([AS_IT_IS, line], Stop())
        assert caught.value.host == "server"
    else:
        held.refuse([AS_IT_IS, line], Stop())
    assert not root(server).args("line.apply")


@pytest.mark.parametrize(
    ("replaceable", "router", "advice"),
    [
        (True, False, '--agree qdisc PROFILE; or write line = "office"'),
        (False, False, 'lines = ["as it is"]'),
        (False, True, 'Write line = "office": each office host'),
    ],
)
def test_where_a_line_is_refused_what_is_possible_is_offered(
    replaceable: bool, router: bool, advice: str
) -> None:
    kernel = Kernel()
    kernel.can.update(refuse="eth0 has queues that somebody set up", replaceable=replaceable)
    hosts = [*office(kernel.verbs())]
    if router:
        hosts.append(connected("router", Role.ROUTER, kernel.verbs()))
    with pytest.raises(HostLacks, match="queues that somebody set up") as caught:
        HeldLine(hosts).refuse([LINE], Stop())
    assert advice in caught.value.advice


def test_the_account_has_no_limit_where_none_is_applied() -> None:
    hosts = office(Kernel().verbs())
    line = HeldLine(hosts, place="office")
    assert [
        (one.name, what) for one, what in line.limiting(Line(upload_bps=64_000, download_bps=128_000))
    ] == [
        (name, "limiting its own line (per host, not shared) to 64/128 kbit/s")
        for name in ("desk", "desk-2", "proxy")
    ]
    assert line.limiting(AS_IT_IS) == []


def test_only_the_queues_that_were_there_when_the_run_began_are_replaced() -> None:
    kernel = Kernel()
    kernel.can.update(stands="tbf 8:", tree="first")
    hosts = office(kernel.verbs())
    line = HeldLine(hosts, replace=True)
    line.refuse([PLAIN], Stop())
    kernel.can.update(stands="tbf 9:", tree="second")
    line.check(Stop())
    line.apply(PLAIN, Stop())
    unasked = HeldLine(hosts)
    unasked.refuse([PLAIN], Stop())
    unasked.apply(PLAIN, Stop())
    assert [args["replace"] for args in root(hosts[0]).args("line.apply")] == ["first", ""]


def test_a_host_that_cannot_be_changed_can_have_the_line_as_it_is_and_nothing_else() -> None:
    hosts = [connected("server", Role.SERVER, root="none"), *office()[1:]]
    line = HeldLine(hosts)
    line.refuse([AS_IT_IS], Stop())
    assert line.apply(AS_IT_IS, Stop()).matches(AS_IT_IS)
    line.lift(Stop())
    with pytest.raises(HostLacks, match="no way to become root") as caught:
        line.refuse([PLAIN], Stop())
    assert "[hosts.server]" in caught.value.advice


@pytest.mark.parametrize(
    "line",
    [
        Line(upload_bps=64_000, download_bps=128_000),
        Line(upload_bps=2_000_000, download_bps=4_000_000),
        Line(upload_bps=10_000_000, download_bps=100_000_000),
    ],
)
def test_a_probe_asks_for_60_packets_or_2_seconds_and_pings_take_a_tenth_at_most(line: Line) -> None:
    kernel = Kernel(lost=4)
    hosts = office(kernel.verbs())
    held = HeldLine(hosts)
    held.apply(line, Stop())
    proved = held.prove(line, hosts[2], Stop())
    assert (proved.read_upload_bps, proved.read_download_bps) == (line.upload_bps, line.download_bps)
    assert proved.achieved_upload_bps == pytest.approx(0.95 * (line.upload_bps or 0))
    assert proved.achieved_download_bps == pytest.approx(0.95 * (line.download_bps or 0))
    assert (proved.round_trip_s, proved.round_trip_low_s, proved.round_trip_high_s) == (0.08, 0.07, 0.09)
    assert proved.loss == pytest.approx(4 / 200)
    (ping,) = agent(hosts[2]).args("probe.ping")
    assert ping["count"] == 200
    # Both ways at once: what 200 pings take of the slower direction, with their headers.
    assert (PING_BYTES + PING_HEADERS) * 8 / ping["interval_s"] <= 0.1 * (line.upload_bps or 0) * 1.001
    for asked in agent(hosts[2]).args("probe.fetch"):
        rate = line.download_bps if asked["direction"] == "down" else line.upload_bps
        assert asked["bytes"] >= 60 * PACKET_PAYLOAD
        assert asked["bytes"] * 8 / (rate or 1) >= 1.999
        assert (asked["address"], asked["port"]) == ("198.51.100.1", 4711)


def test_of_the_line_as_it_is_only_the_round_trip_is_probed() -> None:
    hosts = office(Kernel().verbs())
    proved = HeldLine(hosts).prove(AS_IT_IS, hosts[2], Stop())
    assert (proved.achieved_upload_bps, proved.achieved_download_bps) == (None, None)
    assert proved.round_trip_s == 0.08
    assert agent(hosts[2]).args("probe.fetch") == []


def test_a_line_that_is_not_there_is_not_probed() -> None:
    hosts = office(Kernel().verbs())
    with pytest.raises(TrialFailed, match="is not the line asked"):
        HeldLine(hosts).prove(PLAIN, hosts[2], Stop())


def test_a_probe_that_ends_before_it_listens_is_an_error_and_no_hang() -> None:
    hosts = office({**Kernel().verbs(), "probe.serve": lambda args: {}})
    with pytest.raises(TrialFailed, match="before it listened"):
        HeldLine(hosts).prove(AS_IT_IS, hosts[2], Stop())


def test_each_direction_held_where_it_is_sent_is_one_line_together() -> None:
    kernels = {name: Kernel() for name in ("server", "desk", "proxy")}

    def half(name: str) -> dict[str, Any]:
        kernel, other = kernels[name], "upload" if name == "server" else "download"

        def apply(args: Args) -> Args:
            kernel.apply({**args, f"{other}_bps": None, f"queue_{other}_bytes": None})
            return dict(kernel.held)

        return {**kernel.verbs(), "line.apply": apply}

    hosts = [
        connected("server", Role.SERVER, half("server"), address="198.51.100.1"),
        connected("desk", Role.CLIENT, half("desk"), address="198.51.100.11"),
        connected("proxy", Role.PROXY, half("proxy"), address="198.51.100.2"),
    ]
    line = HeldLine(hosts, place="senders")
    assert [line.what(one.name) for one in line.holders] == [
        "the download",
        *["its own upload (per host, not shared)"] * 2,
    ]
    assert line.apply(LINE, Stop()).matches(LINE)
    assert root(hosts[0]).args("line.apply")[0]["leaving"] is True
    (wanted,) = root(hosts[1]).args("line.apply")
    assert (wanted["place"], wanted["office"], wanted["leaving"]) == ("office", ["198.51.100.11"], True)
    for name in kernels:
        kept, kernels[name].held = kernels[name].held, dict(NOTHING)
        assert not line.read(Stop()).matches(LINE)
        assert not line.read(Stop()).matches(AS_IT_IS)
        kernels[name].held = kept
    assert line.read(Stop()).matches(LINE)
    assert [one.name for one in line.probers(hosts[1])] == ["proxy", "desk"]
    line.lift(Stop())
    assert line.read(Stop()).matches(AS_IT_IS)
