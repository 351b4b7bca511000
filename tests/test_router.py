"""A router between office and server: it shapes and counts what passes it, and nothing else; real packets."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import real_runs
import routed
from netns import CODE, Agent, FailedError
from real_runs import experiment
from routed import OFFICE, OFFICE6, SERVER, SERVER6, WEB, Routed

from lab.events import HostChanged, Noted, Outcome, Standing
from lab.model import AS_IT_IS, Line, Role
from lab.rig.doubts import doubts
from lab.rig.hosts import Connected, connected, in_role
from lab.rig.line import HeldLine
from lab.rig.meter import Meter
from lab.stop import Stop

LINE = Line(upload_bps=512_000, download_bps=1_024_000)
RATES = {"upload_bps": 512_000, "download_bps": 1_024_000}
FAST_BPS = 20_000_000
"""What nobody limits is at least so fast here, even on a busy machine."""


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Routed]:
    with routed.office(tmp_path) as made:
        yield made


def dumps(bed: Routed, *names: str) -> list[str]:
    """What the kernel has of queues, filters, devices and tables."""
    told = []
    for name in names or ("router",):
        for words in ("tc qdisc show", "ip -br link", "nft list tables"):
            told.append(bed.net.run(name, *words.split()))
        told += [bed.net.run(name, "tc", "filter", "show", "dev", device, "ingress") for device in ("eth0",)]
    return told


def tc(bed: Routed, words: str) -> str:
    """What tc says on the router."""
    return bed.net.run("router", *words.split())


def rate(server: Agent, client: Agent, address: str, direction: str, size: int = 300_000) -> float:
    """Payload bit/s from one transfer."""
    serving = server.start("probe.serve", address=address)
    port = serving.event()[1]["port"]
    word = client.ask("probe.fetch", address=address, port=port, bytes=size, direction=direction)
    serving.cancel()
    return float(word["rate_bps"])


def client_of(hosts: tuple[Connected, ...]) -> Connected:
    return in_role(hosts, Role.CLIENT)[0]


@pytest.mark.lab
@pytest.mark.parametrize("families", [(4,), (6,)])
def test_a_line_through_a_router_holds_is_counted_and_is_gone_afterwards(
    tmp_path: Path, families: tuple[int, ...]
) -> None:
    """Client, proxy and server have no rights at all: everything is the router's doing."""
    with routed.office(tmp_path, families) as bed:
        before = dumps(bed)
        with connected(bed.lab(router="direct"), Stop()) as hosts:
            line, meter = HeldLine(hosts), Meter(hosts)
            line.refuse([LINE], Stop())
            meter.start(Stop())
            assert line.apply(LINE, Stop()).matches(LINE)
            start = meter.read(Stop())
            proved = routed.proved(line, LINE, client_of(hosts))
            moved = meter.read(Stop()).since(start)
            assert doubts(proved).disproved == ()
            for asked, got in (
                (LINE.upload_bps, proved.achieved_upload_bps),
                (LINE.download_bps, proved.achieved_download_bps),
            ):
                assert asked is not None
                assert got is not None
                assert 0.90 <= got / asked <= 0.98
            assert meter.uncounted == ("client>proxy", "proxy>client")
            assert set(moved.arrived) == {"client>server", "server>client", "proxy>server", "server>proxy"}
            # 2 s of each rate, and the other direction's acknowledgements; headers are a twentieth at most.
            assert 256_000 <= moved.arrived["server>client"] <= 1.25 * 256_000
            assert 128_000 <= moved.arrived["client>server"] <= 1.35 * 128_000
            assert (moved.arrived["proxy>server"], moved.arrived["server>proxy"]) == (0, 0)
            assert line.read(Stop()).matches(LINE)
            line.lift(Stop())
            assert line.read(Stop()).matches(AS_IT_IS)
        assert dumps(bed) == before


@pytest.mark.lab
def test_the_office_shares_a_routers_line_and_all_else_passes_at_full_speed(bed: Routed) -> None:
    net = bed.net
    router = net.agent("router", privileged=True)
    agents = {name: net.agent(name) for name in ("c1", "proxy", "other", "server", "web")}
    router.ask("lease.open", lease_s=300)
    where = {"place": "router", "office": OFFICE + OFFICE6, "server": [SERVER, SERVER6]}
    word = router.ask("line.apply", **where, **RATES)
    assert word["applied"]
    assert word["device"] == "eth1 and eth0"
    assert (word["office"], word["server"]) == (sorted(OFFICE + OFFICE6), sorted([SERVER, SERVER6]))
    # Another host of the office to the server; an office host to another far host; both ways.
    for direction in ("up", "down"):
        assert rate(agents["server"], agents["other"], SERVER, direction, 10_000_000) > FAST_BPS
        assert rate(agents["web"], agents["c1"], WEB, direction, 10_000_000) > FAST_BPS
    # Two at once, over two families: one line.
    talks = []
    for name, address in (("c1", SERVER), ("proxy", SERVER6)):
        serving = agents["server"].start("probe.serve", address=address)
        port = serving.event()[1]["port"]
        talks.append(
            agents[name].start("probe.fetch", address=address, port=port, bytes=256_000, direction="down")
        )
    began = time.monotonic()
    for talk in talks:
        talk.done()
    assert 512_000 * 8 / (time.monotonic() - began) <= 0.98 * RATES["download_bps"]
    # Changed in place, then to another set of hosts, then lifted.
    word = router.ask("line.apply", **where, upload_bps=2_000_000, download_bps=4_000_000)
    assert (word["applied"], word["upload_bps"], word["download_bps"]) == (True, 2_000_000, 4_000_000)
    assert 0.8 <= rate(agents["server"], agents["c1"], SERVER, "up") / 2_000_000 <= 0.98
    word = router.ask("line.apply", place="router", office=OFFICE[:1], server=[SERVER], **RATES)
    assert (word["applied"], word["office"], word["server"]) == (True, OFFICE[:1], [SERVER])
    assert rate(agents["server"], agents["proxy"], SERVER, "down", 10_000_000) > FAST_BPS
    assert not router.ask("line.lift")["put_back"]
    assert not router.ask("line.read")["applied"]


@pytest.mark.lab
def test_a_router_exempts_the_labs_ssh_from_line_and_counters(bed: Routed) -> None:
    """A controller on an office host talks to sshd's port on the server, and the other way round."""
    net = bed.net
    router, server, client = net.agent("router", privileged=True), net.agent("server"), net.agent("c1")
    router.ask("lease.open", lease_s=300)
    exempt = [{"address": address, "port": 2222} for address in (OFFICE[0], SERVER)]
    where = {"place": "router", "office": OFFICE, "server": [SERVER], "exempt": exempt}
    peers = {
        "near": [{"name": "c1", "addresses": OFFICE[:1]}],
        "far": [{"name": "server", "addresses": [SERVER]}],
    }
    router.ask("line.apply", **where, **RATES)
    router.ask("traffic.start", **peers, exempt=exempt)
    for one, other, address in ((server, client, SERVER), (client, server, OFFICE[0])):
        for direction in ("up", "down"):
            serving = one.start("probe.serve", address=address, port=2222)
            serving.event()
            word = other.ask("probe.fetch", address=address, port=2222, bytes=5_000_000, direction=direction)
            serving.cancel()
            serving.done()
            assert word["rate_bps"] > FAST_BPS
    passed = router.ask("traffic.read")["passed"]
    assert {one["bytes"] for others in passed.values() for one in others.values()} == {0}


@pytest.mark.lab
def test_counters_of_a_router_are_after_the_line(bed: Routed) -> None:
    """What the queue dropped has not passed: counted is what arrived, both ways."""
    net = bed.net
    router, server, client = net.agent("router", privileged=True), net.agent("server"), net.agent("c1")
    router.ask("lease.open", lease_s=300)
    queues = {"queue_upload_bytes": 4000, "queue_download_bytes": 4000}
    router.ask("line.apply", place="router", office=OFFICE, server=[SERVER], **RATES, **queues)
    router.ask(
        "traffic.start",
        near=[{"name": "c1", "addresses": OFFICE[:1]}],
        far=[{"name": "server", "addresses": [SERVER]}],
    )
    counted = (
        "table inet mine { counter up { }; counter down { };"
        " chain i { type filter hook input priority -400; ip saddr %s counter name %s\n}\n}"
    )
    net.run("server", "nft", counted % (OFFICE[0], "up"))
    net.run("c1", "nft", counted % (SERVER, "down"))
    for direction in ("up", "down"):
        rate(server, client, SERVER, direction, 200_000)
    assert client.ask("quiet.wait")["quiet"]
    assert router.ask("line.read")["dropped"] > 0
    passed = router.ask("traffic.read")["passed"]
    arrived = {
        name: net.run(name, "nft", "list", "counters", "table", "inet", "mine") for name in ("server", "c1")
    }
    assert f"bytes {passed['c1']['server']['bytes']}\n" in arrived["server"]
    assert f"bytes {passed['server']['c1']['bytes']}\n" in arrived["c1"]


@pytest.mark.lab
def test_a_routers_own_queues_stay_and_an_ingress_of_somebody_is_refused(bed: Routed) -> None:
    net = bed.net
    tc(bed, "tc qdisc add dev eth1 root handle 7: tbf rate 1gbit burst 10000 limit 100000")
    router = net.agent("router", privileged=True)
    router.ask("lease.open", lease_s=300)
    where = {"place": "router", "office": OFFICE, "server": [SERVER]}
    before = dumps(bed)
    assert router.ask("line.check", **where)["refuse"] is None
    assert router.ask("line.apply", **where, **RATES)["applied"]
    assert "tbf 7: " in net.run("router", "tc", "qdisc", "show", "dev", "eth1")
    router.ask("lease.close")
    assert dumps(bed) == before
    tc(bed, "tc qdisc add dev eth0 ingress")
    tc(bed, "tc filter add dev eth0 parent ffff: protocol ip prio 9 u32 match ip src 10.9.9.9 flowid :1")
    word = router.ask("line.check", **where)
    assert (word["replaceable"], "on a router nothing is replaced" in word["refuse"]) == (False, True)
    assert 'line = "office"' in word["refuse"]
    assert "tc qdisc del dev eth0 ingress" in word["refuse"]
    router.ask("lease.open", lease_s=300)
    with pytest.raises(FailedError, match="somebody set up"):
        router.ask("line.apply", **where, **RATES)
    assert "0a090909/ffffffff" in net.run("router", "tc", "filter", "show", "dev", "eth0", "ingress")


@pytest.mark.lab
def test_a_host_that_forwards_nothing_or_is_not_between_is_no_router(bed: Routed) -> None:
    router = bed.net.agent("router", privileged=True)
    where = {"place": "router", "office": OFFICE, "server": [SERVER]}
    bed.net.run("router", "sysctl", "-qw", "net.ipv4.ip_forward=0")
    assert "does not forward IPv4" in router.ask("line.check", **where)["refuse"]
    with pytest.raises(FailedError, match="over the same device, eth0: it is not between"):
        router.ask("line.check", place="router", office=OFFICE[:1], server=OFFICE[1:])
    several = r"the office is reached over more than one device \(10.78.1.11 by eth0, 10.78.2.3 by eth1\), and a line"
    with pytest.raises(FailedError, match=several):
        router.ask("line.check", place="router", office=[OFFICE[0], WEB], server=[SERVER])
    with pytest.raises(FailedError, match="list of strings"):
        router.ask("line.check", place="router", office=OFFICE)
    with pytest.raises(FailedError, match="held at one of"):
        router.ask("line.check", place="moon", office=OFFICE)


@pytest.mark.lab
def test_an_agent_killed_takes_a_routers_line_with_it(bed: Routed) -> None:
    before = dumps(bed)
    router = bed.net.agent("router", privileged=True)
    router.ask("lease.open", lease_s=3)
    router.ask("line.apply", place="router", office=OFFICE, server=[SERVER], **RATES)
    assert dumps(bed) != before
    router.kill()
    end = time.monotonic() + 60
    while dumps(bed) != before and time.monotonic() < end:
        time.sleep(0.1)
    assert dumps(bed) == before


@pytest.mark.lab
def test_quiet_is_seen_without_any_rights(bed: Routed) -> None:
    argv = bed.net.argv("c1", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    agent = Agent([*argv, sys.executable, "-I", "-S", "-c", CODE])
    try:
        server = bed.net.agent("server")
        serving = server.start("probe.serve", address=SERVER)
        port = serving.event()[1]["port"]
        assert agent.ask("quiet.wait", ports=[port])["quiet"]
        fetch = agent.start("probe.fetch", address=SERVER, port=port, bytes=1, direction="down", pause_s=5)
        time.sleep(0.5)
        assert "a connection is open" in agent.ask("quiet.wait", ports=[port], timeout_s=0.5)["why"]
        fetch.done()
        serving.cancel()
    finally:
        agent.close()


@pytest.mark.lab
def test_a_whole_run_through_a_router_whose_client_has_no_rights(tmp_path: Path) -> None:
    # Where Apache's own user finds its way, unlike in the folders of pytest.
    with (
        tempfile.TemporaryDirectory(prefix="branchlab-test-", dir="/run") as services,
        routed.office(tmp_path, (4,), powerless=False) as bed,
    ):
        Path(services).chmod(0o755)
        before = dumps(bed, "router", "server", "c1")
        lab = bed.lab(services=f"{services}/lab", router="direct", server="direct")
        wanted = experiment(lines=(LINE,))
        run = real_runs.ran(lab, wanted, tmp_path / "run.branchlab")
        assert run.last_word.outcome is Outcome.DONE, run.last_word
        assert [one.standing for one in run.trials] == [Standing.KEPT] * 2, [one.reason for one in run.trials]
        assert all(doubts(proved).disproved == () for proved in run.proved)
        (note,) = (event.text for event in run.events if isinstance(event, Noted) and "count" in event.text)
        assert note.startswith("client to proxy, proxy to client: nobody")
        for one in run.trials:
            # The router counted for the client; what passes no router is absent.
            assert one.bytes["server>client"] > 300_000
            assert "proxy>client" not in one.bytes
            assert one.direct_bytes == one.bytes["server>client"] + one.bytes["client>server"]
            assert (one.served_bytes, one.relayed_bytes) == (None, None)
            assert "path" not in [proof.name for proof in one.proofs]
        changed = [event for event in run.events if isinstance(event, HostChanged) and event.host == "router"]
        assert any("eth1 and eth0 limited" in event.what for event in changed)
        assert dumps(bed, "router", "server", "c1") == before
