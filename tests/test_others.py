"""Who else has connections between the lab's hosts: told apart from ours, on tables and on real connections."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from netns import SERVER, SERVER6, FailedError, Net, office

from lab.errors import HostLacks
from lab.model import Host, Line, Role
from lab.rig.hosts import Connected
from lab.rig.line import HeldLine, Other, Standing, merged_others
from lab.stop import Stop
from ssh_agents import others
from ssh_agents.quiet import Connection

PEERS = {"10.0.0.11": "desk", "fd00::11": "desk", "10.0.0.12": "proxy"}
LISTEN, ESTABLISHED, TIME_WAIT = 0x0A, 1, 6
TABLE = [
    Connection("::", 445, "::", 0, LISTEN),
    Connection("::", 22, "::", 0, LISTEN),
    Connection("10.0.0.1", 445, "10.0.0.11", 50_001, ESTABLISHED),
    Connection("10.0.0.1", 445, "10.0.0.11", 50_002, ESTABLISHED),
    Connection("fd00::1", 445, "fd00::11", 50_003, ESTABLISHED),
    Connection("10.0.0.1", 41_000, "10.0.0.12", 3306, ESTABLISHED),
    Connection("10.0.0.1", 445, "10.0.0.11", 50_004, TIME_WAIT),
    Connection("10.0.0.1", 22, "10.0.0.11", 50_005, ESTABLISHED),
    Connection("10.0.0.1", 22, "10.0.0.12", 50_006, ESTABLISHED),
    Connection("10.0.0.1", 8080, "10.0.0.12", 50_007, ESTABLISHED),
    Connection("10.0.0.1", 445, "203.0.113.9", 50_008, ESTABLISHED),
]
EXEMPT = [("10.0.0.11", 22)]


def test_connections_are_counted_by_peer_and_the_port_that_serves() -> None:
    found = others.told(TABLE, PEERS, EXEMPT, {8080})
    assert found["counted"] == {"desk": {"445": 3}, "proxy": {"3306": 1, "22": 1}}
    assert [
        (one["peer"], one["local_port"], one["remote_port"]) for one in found["connections"] if one["ours"]
    ] == [
        ("desk", 22, 50_005),
        ("proxy", 8080, 50_007),
    ]
    assert len(found["connections"]) == 7


def test_connected_udp_is_counted_by_peer_and_the_lower_port() -> None:
    table = [
        Connection("::", 1194, "::", 0, 7),
        Connection("10.0.0.1", 1194, "10.0.0.11", 50_001, ESTABLISHED),
        Connection("10.0.0.1", 50_002, "10.0.0.12", 4500, ESTABLISHED),
        Connection("10.0.0.1", 50_003, "203.0.113.9", 53, ESTABLISHED),
    ]
    assert others.over_udp(table, PEERS) == {"desk": {"1194": 1}, "proxy": {"4500": 1}}


def test_a_connection_seen_from_both_ends_is_one() -> None:
    counted = {
        "server": {"desk": {"445": 3}, "proxy": {"22": 1}},
        "desk": {"server": {"445": 2, "111": 1}},
        "proxy": {"server": {"22": 1}},
    }
    assert merged_others(counted) == (
        Other("desk", "server", 111, 1),
        Other("proxy", "server", 22, 1),
        Other("server", "desk", 445, 3),
    )


# --- hosts of a lab, whose agents look at tables given here


class Standin:
    """An agent that answers `others` from a table of its own, and `line.check` with words of its own."""

    def __init__(self, table: list[Connection], check: dict[str, Any] | None = None) -> None:
        self._table, self._check, self.asked = table, check, list[str]()

    def stream(self, verb: str, args: dict[str, Any]) -> Any:
        self.asked.append(verb)
        if verb == "line.check":
            word = {**cast(dict[str, Any], self._check), "replace": args["replace"]}
            return SimpleNamespace(events=lambda stop, timeout_s: [], result=word)
        assert verb == "others"
        peers = {address: one["name"] for one in args["peers"] for address in one["addresses"]}
        exempt = [(one["address"], one["port"]) for one in args["exempt"]]
        result = others.told(self._table, peers, exempt, set(args["ports_of_ours"]))
        return SimpleNamespace(events=lambda stop, timeout_s: [], result=result)


def _host(name: str, role: Role, address: str, agent: Standin, ssh: str | None, path: str = "") -> Connected:
    facts = {
        "ssh": ssh and {"peer": {"address": "10.0.0.99", "port": 5}, "own": {"address": ssh, "port": 22}}
    }
    made = SimpleNamespace(
        name=name,
        host=Host(name=name, role=role, ssh=f"unix:{path}" if path else name, address=address),
        addresses=[address],
        agent=agent,
        root=agent,
        privileged=agent,
        facts=facts,
        connection=SimpleNamespace(target=SimpleNamespace(path=path, port=22), ends=None),
        redirected=False,
    )
    made.exempt = lambda: Connected.exempt(cast(Connected, made))
    return cast(Connected, made)


KINDS = {"netem": False}
STANDS = {
    "device": "eth0",
    "stands": "tbf 1:",
    "replace_trouble": None,
    "replaceable": False,
    "refuse": "no",
    "kinds": KINDS,
    "tun": False,
}
FREE = {
    "device": "eth0",
    "stands": None,
    "replace_trouble": None,
    "replaceable": False,
    "refuse": None,
    "kinds": KINDS,
    "tun": False,
}


def _lab(
    check: dict[str, Any], paths: bool = False, desk_ssh: str | None = "10.0.0.11"
) -> tuple[list[Connected], Standin]:
    server = Standin(TABLE, check)
    desk = Standin([Connection("10.0.0.11", 50_001, "10.0.0.1", 445, ESTABLISHED)])
    path = "/run/x" if paths else ""
    hosts = [
        _host("server", Role.SERVER, "10.0.0.1", server, None if paths else "10.0.0.1", path),
        _host("desk", Role.CLIENT, "10.0.0.11", desk, None if paths else desk_ssh, path),
    ]
    return hosts, server


def test_the_lab_is_asked_for_others_on_every_host_and_its_own_ssh_is_not_told() -> None:
    hosts, _ = _lab(FREE)
    assert HeldLine(hosts).others(hosts, Stop(), [8080]) == (Other("server", "desk", 445, 2),)
    assert HeldLine(hosts).others(hosts, Stop(), [445]) == ()


def test_hosts_behind_a_unix_socket_are_asked_like_any_other() -> None:
    """Anybody may write `unix:/path`; that a lab is BranchLab's own is known elsewhere (`lab.machines.own`)."""
    hosts, _ = _lab(FREE, paths=True)
    # Nothing is known of an SSH of ours there, so that the admin's is somebody's.
    expected = (Other("server", "desk", 22, 1), Other("server", "desk", 445, 2))
    assert HeldLine(hosts).others(hosts, Stop(), [8080]) == expected


def test_what_stands_there_is_told_and_the_agreement_passed_on() -> None:
    hosts, _ = _lab(STANDS)
    assert HeldLine(hosts).standing(Stop()) == (Standing("server", "eth0", "tbf 1:"),)
    assert HeldLine(hosts, replace=True).check(Stop())["replace"]
    assert not HeldLine(hosts).check(Stop())["replace"]
    (trouble,) = HeldLine(_lab({**STANDS, "replace_trouble": "cake"})[0]).standing(Stop())
    assert not trouble.replaceable
    assert HeldLine(_lab(FREE)[0]).standing(Stop()) == ()


def test_only_the_queues_that_were_agreed_to_are_replaced() -> None:
    hosts, _ = _lab({**FREE, "stands": "tbf 1:", "replaceable": True, "tree": "0a1b", "refuse": None})
    line = HeldLine(hosts, replace=True)
    asked = Line(upload_bps=512_000, download_bps=1_024_000)
    assert line._wanted(hosts[0], asked)["replace"] == ""
    line.refuse([asked], Stop())
    assert line._wanted(hosts[0], asked)["replace"] == "0a1b"
    line.bind(line.standing(Stop()))
    assert line._wanted(hosts[0], asked)["replace"] == "0a1b"
    line.bind(())  # nothing stood there when it was shown
    assert line._wanted(hosts[0], asked)["replace"] == ""


def test_all_lost_is_refused_where_an_ssh_of_ours_is_not_known() -> None:
    """Field fault: 100 % loss on the live NIC locks the admin out."""
    lost = Line(upload_bps=64_000, download_bps=128_000, loss=1.0)
    hosts, _ = _lab(FREE, desk_ssh=None)
    with pytest.raises(HostLacks, match="BranchLab's own SSH to desk"):
        HeldLine(hosts).refuse([lost], Stop())
    for known in (_lab(FREE)[0], _lab(FREE, paths=True)[0]):
        HeldLine(known).refuse([lost], Stop())  # and no netem is needed
    with pytest.raises(HostLacks, match="delay, jitter or loss"):
        HeldLine(_lab(FREE)[0]).refuse([Line(upload_bps=8, download_bps=8, loss=0.5)], Stop())


# --- on real hosts

SERVE = """
import socket, sys
listener = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print(listener.getsockname()[1], flush=True)
kept = []
while True:
    kept.append(listener.accept()[0])
    kept[-1].sendall(b"x")
"""
CONNECT = """
import socket, sys
kept = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(int(sys.argv[3]))]
assert all(one.recv(1) == b"x" for one in kept)
print("connected", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def _connections(hosts: Net, address: str, count: int) -> Iterator[int]:
    """Connections of somebody else from c1 to a port of the server; the port."""
    with (
        hosts.popen("server", "python3", "-c", SERVE, address) as server,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(server.kill)
        port = int(server.stdout.readline())
        client = stack.enter_context(
            hosts.popen("c1", "python3", "-c", CONNECT, address, str(port), str(count))
        )
        stack.callback(client.kill)
        assert client.stdout.readline() == b"connected\n"
        yield port


TALK = """
import socket, sys
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind((sys.argv[1], 1194 if sys.argv[1] == sys.argv[3] else 40_000))
one.connect((sys.argv[2], 40_000 if sys.argv[1] == sys.argv[3] else 1194))
print("connected", flush=True)
sys.stdin.read()
"""


@pytest.mark.lab
def test_real_udp_is_seen_from_either_end() -> None:
    with office() as hosts, contextlib.ExitStack() as stack:
        for name, here, far in (("server", SERVER, "10.77.0.11"), ("c1", "10.77.0.11", SERVER)):
            talk = stack.enter_context(hosts.popen(name, "python3", "-c", TALK, here, far, SERVER))
            stack.callback(talk.kill)
            assert talk.stdout.readline() == b"connected\n"
        for name, peer, address in (("server", "c1", "10.77.0.11"), ("c1", "server", SERVER)):
            asked = [{"name": peer, "addresses": [address]}]
            word = hosts.agent(name, privileged=True).ask("others", peers=asked)
            assert (word["counted"], word["udp"]) == ({}, {peer: {"1194": 1}})


@pytest.mark.lab
def test_real_connections_of_both_families_are_seen_from_either_end() -> None:
    peers = {"server": [SERVER, SERVER6], "c1": ["10.77.0.11", "fd77::11"], "c2": ["10.77.0.12"]}
    with office() as hosts:
        agents = {name: hosts.agent(name, privileged=True) for name in ("server", "c1", "c2")}

        def counted(name: str, **more: Any) -> dict[str, Any]:
            asked = [{"name": peer, "addresses": found} for peer, found in peers.items() if peer != name]
            return agents[name].ask("others", peers=asked, **more)["counted"]

        assert counted("server") == counted("c1") == {}
        with _connections(hosts, SERVER, 3) as port, _connections(hosts, SERVER6, 2) as six:
            assert counted("server") == {"c1": {str(port): 3, str(six): 2}}
            assert counted("c1") == {"server": {str(port): 3, str(six): 2}}
            assert counted("c2") == {}
            assert counted("c1", ports_of_ours=[six]) == {"server": {str(port): 3}}
            exempt = [{"address": "10.77.0.11", "port": port}, {"address": SERVER, "port": port}]
            assert counted("server", exempt=exempt) == {"c1": {str(six): 2}}
            assert counted("c1", exempt=exempt) == {"server": {str(six): 2}}
        for wrong in ({"peers": ["c1"]}, {"peers": [{"name": "c1"}]}, {"peers": [], "ports_of_ours": [0]}):
            with pytest.raises(FailedError, match="bad-request"):
                agents["c1"].ask("others", **wrong)
