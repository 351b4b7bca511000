"""Quiet: parsers on recorded text, and the waiting itself on real connections and queues."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from netns import OFFICE, SERVER, office

from ssh_agents import netlink, protocol, quiet

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 01004D0A:0050 0B004D0A:C350 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 01004D0A:0050 0B004D0A:C351 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0
   3: 01004D0A:0050 0C004D0A:C352 08 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue
   0: 0000000000000000FFFF000001004D0A:1F90 0000000000000000FFFF00000B004D0A:C353 05 00000000:00000000
   1: 000077FD000000000000000001000000:0050 000077FD000000000000000011000000:C354 01 00000000:00000000
"""


def test_connections_are_read_from_both_tables() -> None:
    found = quiet.connections(TCP)
    assert found[1] == quiet.Connection("10.77.0.1", 80, "10.77.0.11", 50_000, 1)
    assert str(found[1]) == "10.77.0.1 port 80 with 10.77.0.11 port 50000"
    six = quiet.connections(TCP6)
    assert (six[0].far, six[0].here_port, six[0].state) == ("10.77.0.11", 8080, 5)
    assert six[1].far == "fd77::11:0:0" or six[1].far.startswith("fd77")


def test_listening_and_time_wait_are_quiet() -> None:
    found = quiet.connections(TCP)
    assert [one.far_port for one in quiet.busy(found, set(), {80})] == [50_000, 50_002]
    assert [one.far_port for one in quiet.busy(found, {"10.77.0.12"}, {80})] == [50_002]
    assert quiet.busy(found, set(), {443}) == []
    # The port may be the far one: a client looks at its own table.
    assert [one.here_port for one in quiet.busy(found, set(), {50_000})] == [80]


def test_an_open_connection_is_idle_only_while_nothing_waits_in_it() -> None:
    row = "   1: 01004D0A:0050 0B004D0A:C350 {} {} 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1\n"
    for state, waiting, still in (
        ("01", "00000000:00000000", True),
        ("01", "00000001:00000000", False),
        ("01", "00000000:00000A00", False),
        ("08", "00000000:00000000", False),
    ):
        (one,) = quiet.connections("head\n" + row.format(state, waiting))
        assert quiet.idle(one) is still


def test_only_the_line_s_own_queues_count() -> None:
    def queue(handle: int, waiting: int) -> netlink.Queue:
        return netlink.Queue(1, "tbf", handle, 0, b"", 0, 0, waiting)

    found = [queue(netlink.QUEUE_HANDLE, 1500), queue(netlink.QUEUE_HANDLE, 60), queue(0x80010000, 9000)]
    assert quiet.backlog(found) == 1560


def _call(cancelled: bool = False) -> protocol.Call:
    event = threading.Event()
    return protocol.Call(
        say=lambda name, data: None,
        cancelled=lambda: cancelled,
        wait_cancelled=lambda seconds: event.wait(seconds) or cancelled,
        promise=lambda entry: "",
        keep=lambda name: None,
    )


def _looks(*looks: tuple[str, dict[str, tuple[int, int]]]) -> Callable[[], Any]:
    left = list(looks)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_moving_counters_begin_the_wait_anew() -> None:
    looks = [("", {"i": (number, 1)}) for number in range(10)]
    found = quiet._waited(_call(), _looks(*looks), 0.1, 30)
    assert found["quiet"]
    assert found["waited_s"] >= 0.1 + 9 * 0.02


def test_what_kept_it_busy_is_said() -> None:
    found = quiet._waited(_call(), _looks(("7 bytes wait in the line's queues", {})), 0.1, 0.2)
    assert (found["quiet"], found["why"]) == (False, "7 bytes wait in the line's queues")
    with pytest.raises(protocol.Refused, match="cancelled"):
        quiet._waited(_call(cancelled=True), _looks(("busy", {})), 0.1, 5)


@contextmanager
def _connected() -> Iterator[tuple[int, socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as one:
            other, _ = listener.accept()
            with other:
                yield port, one, other


def test_an_open_connection_is_not_quiet_and_a_closed_one_is() -> None:
    args: dict[str, Any] = {"peers": ["127.0.0.1"], "still_s": 0.1, "timeout_s": 0.3}
    with _connected() as (port, _, _):
        args["ports"] = [port]
        found = quiet.wait(args, _call())
        assert not found["quiet"]
        assert f"port {port}" in found["why"]
        assert quiet.wait({**args, "peers": ["127.0.0.2"]}, _call())["quiet"]
    assert quiet.wait({**args, "timeout_s": 10}, _call())["quiet"]


def test_a_connection_that_a_proxy_keeps_is_quiet_until_bytes_wait_in_it() -> None:
    args: dict[str, Any] = {"peers": ["127.0.0.1"], "still_s": 0.1, "timeout_s": 0.5}
    with _connected() as (port, one, other):
        kept = {**args, "ports": [port], "keeps": ["127.0.0.1"]}
        assert quiet.wait({**kept, "timeout_s": 10}, _call())["quiet"]
        assert not quiet.wait({**kept, "keeps": ["127.0.0.2"]}, _call())["quiet"]
        one.sendall(b"not read yet")
        assert f"port {port}" in quiet.wait(kept, _call())["why"]
        other.recv(100)
        assert quiet.wait({**kept, "timeout_s": 10}, _call())["quiet"]
        one.shutdown(socket.SHUT_WR)
        assert not quiet.wait(kept, _call())["quiet"]


@pytest.mark.parametrize("args", [{"ports": ["80"]}, {"ports": [0]}, {"peers": ["desk-1"], "ports": [80]}])
def test_wrong_arguments_are_refused(args: dict[str, Any]) -> None:
    with pytest.raises(protocol.Refused):
        quiet.wait(args, _call())


@pytest.mark.lab
def test_bytes_in_the_line_s_queue_are_waited_for() -> None:
    with office() as hosts:
        root = hosts.agent("server", privileged=True)
        root.ask("lease.open", lease_s=60)
        root.ask("line.apply", office=OFFICE, upload_bps=64_000, download_bps=128_000)
        serving = hosts.agent("server").start("probe.serve", address=SERVER)
        port = serving.event()[1]["port"]
        # 20 kB of UDP take 2.5 s on their way up, and no connection is open meanwhile.
        hosts.agent("c1").ask(
            "probe.ping", address=SERVER, port=port, count=20, size=1000, interval_s=0.001, timeout_s=0.01
        )
        found = root.ask("quiet.wait", peers=[], ports=[1], still_s=0.2, timeout_s=0.5)
        assert not found["quiet"]
        assert "queue" in found["why"]
        assert root.ask("quiet.wait", peers=[], ports=[1], still_s=0.2, timeout_s=60)["quiet"]
        assert root.ask("line.read")["backlog_bytes"] == 0
