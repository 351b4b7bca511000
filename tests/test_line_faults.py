"""Faults seen in the field with lines and counters, each tried on BranchLab; those not here are in test_line.

Every docstring names the symptom.
"""

from __future__ import annotations

import statistics
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_testbed import experiment
from netns import OFFICE, ROOT, SERVER, FailedError
from test_line import PORT, Bed, bed_of

from lab import design
from lab.events import LineProved
from lab.model import DISABLED, Line, ProxyState
from lab.rig.doubts import doubts
from lab.rig.readback import of as _readback
from ssh_agents import line_can, line_tc, netlink

EXEMPT = [{"address": "10.77.0.11", "port": 2222}]
HTB_CLASS = """
import sys; sys.path.insert(0, {root!r})
from ssh_agents import netlink
with netlink.route_socket() as ask:
    links = netlink.links(ask)
    for name in ("eth0", "bl-ifb"):
        found = [one for one in netlink.classes(ask, links[name].number) if one.handle == netlink.LINE_CLASS]
        print(name, netlink.htb_rate(found[0].options), netlink.attributes(found[0].options)[1].hex())
"""


@pytest.fixture
def bed() -> Iterator[Bed]:
    with bed_of() as made:
        yield made


def _classes(bed: Bed) -> dict[str, tuple[int, bytes]]:
    """Bytes per second and raw settings of the class on each device, straight from the kernel."""
    told = bed.net.run("server", sys.executable, "-c", HTB_CLASS.format(root=str(ROOT)))
    words = [row.split() for row in told.splitlines()]
    return {name: (int(rate), bytes.fromhex(options)) for name, rate, options in words}


@pytest.mark.lab
def test_a_rate_is_bits_to_people_and_a_burst_is_bytes(bed: Bed) -> None:
    """User's "bps" is read as bytes by tc (factor 8); burst given in bits but read as bytes."""
    bed.apply(128_000, 8_000_000)
    found = _classes(bed)
    assert {name: rate for name, (rate, _) in found.items()} == {"bl-ifb": 16_000, "eth0": 1_000_000}
    for name, rate_bps in (("bl-ifb", 128_000), ("eth0", 8_000_000)):
        rate, options = found[name]
        # struct tc_htb_opt: two rates of 12 bytes, then burst and cburst in ticks of 64 ns at the rate.
        for ticks in struct.unpack_from("=II", options, 24):
            assert abs(ticks * 64e-9 * rate - line_tc.burst_bytes(rate_bps)) < 1
    assert line_tc.burst_bytes(8_000_000) == 5_000


def test_a_fast_line_that_achieves_two_thirds_is_told() -> None:
    """Burst clamp too small caps at two thirds of the rate: the burst grows with it, and the probe says if not."""
    assert line_tc.burst_bytes(900_000_000) == 562_500  # 5 ms
    fast = Line(upload_bps=900_000_000, download_bps=900_000_000)
    proved = LineProved(
        line=fast,
        read_upload_bps=900_000_000,
        read_download_bps=900_000_000,
        achieved_upload_bps=855e6,
        achieved_download_bps=600e6,
        round_trip_s=0.0001,
    )
    assert ["download" in text for text in doubts(proved).doubtful] == [True]
    assert not doubts(replace(proved, achieved_download_bps=850e6)).doubtful


@pytest.mark.lab
def test_packets_larger_than_the_mtu_do_not_jump_and_offloads_stay(bed: Bed) -> None:
    """Offload hands over packets larger than MTU, so slow links jump."""
    bed.net.run("server", "ethtool", "-K", "eth0", "tso", "on", "gso", "on")
    before = bed.net.run("server", "ethtool", "-k", "eth0")
    assert "tcp-segmentation-offload: on" in before
    bed.apply(64_000, 64_000)
    # 10 kB need 1.25 s; without cutting them up TCP would hand all of it over at once.
    assert bed.fetch("c1", 10_000, "down", pause_s=1)["seconds"] > 0.7 * 1.25
    assert bed.net.run("server", "ethtool", "-k", "eth0") == before
    bed.root.ask("line.lift")
    assert bed.net.run("server", "ethtool", "-k", "eth0") == before


@pytest.mark.lab
def test_no_rate_asked_is_no_rate_left(bed: Bed) -> None:
    """`tc change` without `rate` keeps the old cap."""
    lost = {"loss": 1.0, "exempt": EXEMPT}
    assert bed.apply(2_000_000, 2_000_000, **lost)["download_bps"] == 2_000_000
    read = bed.apply(None, None, **lost)
    assert (read["upload_bps"], read["download_bps"], read["loss"], read["applied"]) == (
        None,
        None,
        1.0,
        True,
    )
    assert bed.apply(2_000_000, 2_000_000)["loss"] == 0.0
    read = bed.apply(None, None)
    assert (read["download_bps"], read["applied"], read["method"]) == (None, False, "none")
    assert bed.fetch("c1", 4_000_000, "down")["rate_bps"] > 10e6


@pytest.mark.lab
def test_no_rate_and_no_delay_after_both(bed: Bed) -> None:
    """`tc change` without `rate` keeps the old cap: 2 Mbit/s and 100 ms, then unlimited and 0 ms."""
    check = bed.root.ask("line.check", office=OFFICE)
    if not check["tun"] and not check["kinds"]["netem"]:
        pytest.skip("no delay here")
    before = bed.qdiscs()
    bed.apply(2_000_000, 2_000_000, delay_s=0.1, delay_port=PORT)
    read = bed.apply(None, None)
    assert (read["download_bps"], read["delay_s"], read["applied"]) == (None, 0.0, False)
    assert bed.qdiscs() == before


STRANGERS = "filter add dev eth0 ingress protocol ip prio {} u32 match ip src 10.9.9.9/32 classid 1:1"


def _reaches(bed: Bed) -> int:
    ping = {"port": bed.port, "count": 3, "size": 64, "interval_s": 0.001, "timeout_s": 1.0}
    got: int = bed.host("c1").ask("probe.ping", address=SERVER, **ping)["received"]
    return got


def _ingress(bed: Bed) -> str:
    return bed.net.run("server", "tc", "filter", "show", "dev", "eth0", "ingress", check=False)


@pytest.mark.lab
@pytest.mark.parametrize("pref", [50, 1201])
@pytest.mark.parametrize("way", ["lifted", "killed"])
def test_an_ingress_that_somebody_else_uses_too_cuts_nobody_off(bed: Bed, way: str, pref: int) -> None:
    """Redirects of ours stayed there when their IFB went, and lost every packet, for ever."""
    bed.net.run("server", "tc", *["qdisc", "add", "dev", "eth0", "handle", "ffff:", "ingress"])
    bed.net.run("server", "tc", *STRANGERS.format(pref).split())
    alone = _ingress(bed)
    bed.net.run("server", "tc", *["qdisc", "del", "dev", "eth0", "ingress"])
    bed.apply(64_000, 64_000)
    bed.net.run("server", "tc", *STRANGERS.format(pref).split())
    assert not bed.root.ask("line.read")["applied"]
    if way == "lifted":
        bed.root.ask("line.lift")
    else:
        bed.root.kill()
        end = time.monotonic() + 60
        while any(b"\0watch\0" in bed.net.command_line(pid) for pid in bed.net.pids("server")):
            assert time.monotonic() < end
            time.sleep(0.05)
    links = bed.net.run("server", "ip", "-o", "link")
    assert "bl-ifb" not in links
    assert "mirred" not in _ingress(bed)
    assert "0a090909/ffffffff at 12" in _ingress(bed)
    assert pref == 1201 or "pref 1201" not in _ingress(bed)
    assert len(_ingress(bed).splitlines()) >= len(alone.splitlines())
    assert _reaches(bed) == 3


@pytest.mark.lab
def test_redirects_to_a_device_that_is_gone_are_found_and_removed(bed: Bed) -> None:
    """As an earlier version left them, or somebody who removed all the rest of the line."""
    bed.apply(64_000, 64_000)
    bed.net.run("server", "tc", *STRANGERS.format(50).split())
    bed.net.run("server", "tc", *["qdisc", "del", "dev", "eth0", "root"])
    bed.net.run("server", "ip", *["link", "del", "bl-ifb"])
    assert _reaches(bed) == 0
    read = bed.root.ask("line.read")
    assert (read["applied"], read["method"]) == (False, "tc")
    (said,) = bed.root.ask("lease.close")["undone"]
    assert said.startswith(
        "line on eth0 taken off (rate); but on eth0 not all is as before: queue ingress ffff:"
    )
    assert _reaches(bed) == 3
    assert "0a090909/ffffffff at 12" in _ingress(bed)


@pytest.mark.lab
def test_redirects_that_no_lease_tells_of_are_strays(bed: Bed) -> None:
    bed.apply(64_000, 64_000)
    bed.root.ask("lease.close")
    for words in (
        "tc qdisc add dev eth0 handle ffff: ingress",
        "tc filter add dev eth0 parent ffff: protocol ip prio 1201 u32 match ip src 10.9.9.9/32 flowid b1ab:10",
    ):
        bed.net.run("server", *words.split())
    assert bed.root.ask("leases")["unpromised"] == [{"kind": "line", "what": "a line on eth0"}]
    assert bed.root.ask("revert") == {"undone": ["line on eth0 taken off"]}
    assert "ingress" not in bed.net.run("server", "tc", "qdisc", "show", "dev", "eth0")


@pytest.mark.lab
def test_a_revert_during_a_transfer_voids_the_trial(bed: Bed) -> None:
    """Deleting the root qdisc drops queued packets: the line read back after is not the line asked."""
    asked = Line(upload_bps=512_000, download_bps=512_000)
    queue = asked.queue_for(512_000)
    read = bed.apply(512_000, 512_000, queue_upload_bytes=queue, queue_download_bytes=queue)
    assert _readback(read).matches(asked)
    talk = bed.host("c1").start("probe.fetch", address=SERVER, port=bed.port, bytes=250_000, direction="down")
    while not bed.root.ask("line.read")["backlog_bytes"]:
        time.sleep(0.01)
    bed.net.agent("server", privileged=True).ask("revert", force=True)
    talk.done()
    assert not _readback(bed.root.ask("line.read")).matches(asked)
    with pytest.raises(FailedError, match="lapsed"):
        bed.root.ask("lease.renew")


def test_without_ifb_the_person_is_told_what_to_do() -> None:
    """Ingress shaping fails: no IFB module. A kernel without it is not to be had here; the text is."""
    text = line_can.lacking_text(["ifb"])
    assert "modprobe ifb" in text
    assert 'role = "router"' in text
    assert 'line = "office"' in text
    assert 'line = "senders"' in text
    assert "modprobe" not in line_can.lacking_text(["htb", "ifb"])


@pytest.mark.lab
def test_counters_never_go_back_when_a_device_vanishes(bed: Bed) -> None:
    """Sum over NICs shrinks when a veth disappears; a bridge counts the same packet twice.

    The server's eth0 is reached over a bridge and two cables, all in its own network: one packet is one packet.
    """
    bed.net.run("server", "ip", "link", "add", "gone0", "type", "veth", "peer", "name", "gone1")
    bed.root.ask("traffic.start", peers=[{"name": "c1", "addresses": ["10.77.0.11"]}])
    stream = bed.root.start("traffic.stream", period_s=0.02)
    for number in range(3):
        bed.fetch("c1", 100_000, "up")
        if number == 1:
            bed.net.run("server", "ip", "link", "del", "gone0")
    bed.root.ask("quiet.wait")
    stream.cancel()
    samples: list[dict[str, Any]] = []
    while not stream.words.empty():
        word = stream.words.get()
        samples.append((word.get("data") or word.get("done"))["counters"]["c1"])
    arrived = [sample["in_bytes"] for sample in samples]
    assert arrived == sorted(arrived)
    # Headers of at most 40 + 12 bytes on packets of 1448: 1.04, and what opens and ends a connection.
    assert 300_000 <= arrived[-1] < 1.08 * 300_000


@pytest.mark.parametrize(("order", "biased"), [("blocks", False), ("published", True)])
def test_a_drift_is_not_blamed_on_the_second_command(order: str, biased: bool) -> None:
    """Thermal/cache drift blamed on the second command: +1 % a trial; in blocks the difference stays unbiased."""
    found = []
    for seed in range(60):
        asked = experiment(order=order, seed=seed, operations=("get",), attempts=8)
        times: dict[ProxyState, list[float]] = {}
        for trial in design.trials(replace(asked, lines=asked.lines[:1])):
            times.setdefault(trial.treatment.state, []).append(10.0 * 1.01**trial.number)
        first, *_, last = (statistics.mean(times[state]) for state in asked.states)
        assert asked.states[0] == DISABLED
        found.append(last / first - 1)
    assert (abs(statistics.mean(found)) > 0.05) == biased, statistics.mean(found)


def test_ticks_are_what_the_kernel_says() -> None:
    """The burst above is read in ticks of 64 ns: /proc/net/psched says so on every kernel since 2.6.31."""
    per_us, per_tick, _, _ = (int(word, 16) for word in Path("/proc/net/psched").read_text().split())
    assert per_us / per_tick == 1000 / 64
    assert netlink.htb_rate(b"") is None
