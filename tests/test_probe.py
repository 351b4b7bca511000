"""Probes: their figures from recorded arrivals, and real ones over loopback."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from netns import CODE, Agent, FailedError

from ssh_agents import probe


def test_the_first_two_packets_say_nothing_of_the_rate() -> None:
    # One packet at once, then one each 0.1 s: 1448 bytes in 0.1 s are 115 840 bit/s.
    times = [10.0, 10.1, 10.2, 10.3, 10.4]
    sizes = [1448 * number for number in range(1, 6)]
    found = probe.figures(probe.Arrivals(times, sizes), asked=9.5)
    assert found["rate_bps"] == pytest.approx(115_840)
    assert found["seconds"] == pytest.approx(0.4)
    assert found["first_s"] == pytest.approx(0.5)


def test_a_transfer_of_two_packets_has_no_rate() -> None:
    assert probe.figures(probe.Arrivals([1.0, 2.0], [1448, 2896]))["rate_bps"] is None
    assert probe.figures(probe.Arrivals([1.0], [100]))["seconds"] == 0


def test_round_trips_are_told_by_their_middle_and_edges() -> None:
    found = probe.spread([number / 1000 for number in range(101)])
    assert found == {"min_s": 0.0, "p5_s": 0.005, "median_s": 0.05, "p95_s": 0.095, "max_s": 0.1}
    assert set(probe.spread([]).values()) == {None}


@pytest.fixture
def agent() -> Iterator[Agent]:
    made = Agent([sys.executable, "-I", "-S", "-c", CODE])
    yield made
    made.close()


@pytest.fixture
def port(agent: Agent) -> Iterator[int]:
    talk = agent.start("probe.serve", address="127.0.0.1")
    name, data = talk.event()
    assert name == "listening"
    yield data["port"]
    talk.cancel()
    assert talk.done() == {}


@pytest.mark.parametrize("direction", ["down", "up"])
def test_bytes_arrive_whole_in_both_directions(agent: Agent, port: int, direction: str) -> None:
    found = agent.ask("probe.fetch", address="127.0.0.1", port=port, bytes=3_000_001, direction=direction)
    assert found["bytes"] == 3_000_001
    assert found["rate_bps"] > 0
    assert (found["first_s"] is None) == (direction == "up")


@pytest.mark.parametrize("direction", ["down", "up"])
def test_silence_comes_before_and_is_not_timed(agent: Agent, port: int, direction: str) -> None:
    found = agent.ask(
        "probe.fetch",
        address="127.0.0.1",
        port=port,
        bytes=5000,
        direction=direction,
        pause_s=0.5,
        source="127.0.0.1",
    )
    assert found["seconds"] < 0.4
    assert (found["first_s"] or 0) < 0.4


def test_pings_overlap(agent: Agent, port: int) -> None:
    found = agent.ask("probe.ping", address="127.0.0.1", port=port, count=200, size=64, interval_s=0.001)
    assert (found["sent"], found["received"]) == (200, 200)
    assert 0 < found["min_s"] <= found["median_s"] <= found["p95_s"] <= found["max_s"]


def test_pings_are_sent_at_their_time_whatever_comes_back(agent: Agent) -> None:
    """An echo that keeps every packet for 0.3 s: with one under way at a time, 50 would take 15 s."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(20)

        def echo() -> None:
            for number in range(50):
                data, where = udp.recvfrom(2000)
                if number % 5:
                    threading.Timer(0.3, udp.sendto, (data, where)).start()

        thread = threading.Thread(target=echo)
        thread.start()
        found = agent.ask(
            "probe.ping",
            address="127.0.0.1",
            port=udp.getsockname()[1],
            count=50,
            interval_s=0.01,
            timeout_s=3.0,
        )
        thread.join()
    assert (found["sent"], found["received"]) == (50, 40)
    assert 0.3 <= found["min_s"] < 2


def test_nobody_there_is_said(agent: Agent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(FailedError, match="nobody answers probes"):
        agent.ask("probe.fetch", address="127.0.0.1", port=port, bytes=10, direction="up")
    found = agent.ask("probe.ping", address="127.0.0.1", port=port, count=3, timeout_s=0.2)
    assert (found["received"], found["median_s"]) == (0, None)


def test_a_probe_that_breaks_off_is_said(agent: Agent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        talk = agent.start(
            "probe.fetch", address="127.0.0.1", port=listener.getsockname()[1], bytes=10_000, direction="down"
        )
        line, _ = listener.accept()
        with line:
            line.recv(100)
            line.sendall(b"x" * 100)
        with pytest.raises(FailedError, match="ended after 100 of 10000"):
            talk.done()


def test_a_probe_can_be_cancelled(agent: Agent, port: int) -> None:
    talk = agent.start("probe.fetch", address="127.0.0.1", port=port, bytes=10, direction="down", pause_s=50)
    talk.cancel()
    with pytest.raises(FailedError, match="cancelled"):
        talk.done(20)


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": 0},
        {"bytes": 1 << 40},
        {"direction": "sideways"},
        {"pause_s": -1},
        {"address": None},
        {"port": "x"},
    ],
)
def test_wrong_arguments_are_refused(agent: Agent, change: dict[str, Any]) -> None:
    args = {"address": "127.0.0.1", "port": 9, "bytes": 10, "direction": "up", **change}
    with pytest.raises(FailedError, match="bad-request"):
        agent.ask("probe.fetch", **args)


def test_a_taken_port_is_said(agent: Agent, port: int) -> None:
    with pytest.raises(FailedError, match="cannot listen"):
        agent.ask("probe.serve", address="127.0.0.1", port=port)


def test_a_name_has_the_addresses_that_programs_here_find(agent: Agent) -> None:
    assert agent.ask("probe.resolve", name="127.0.0.1") == {"addresses": ["127.0.0.1"]}
    assert agent.ask("probe.resolve", name="::1") == {"addresses": ["::1"]}
    assert set(agent.ask("probe.resolve", name="localhost")["addresses"]) <= {"127.0.0.1", "::1"}
    for name in ("nowhere.invalid", "a..b", "x" * 300):
        assert agent.ask("probe.resolve", name=name) == {"addresses": []}
