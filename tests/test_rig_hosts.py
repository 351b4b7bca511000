"""The lab's hosts: had all at once or named, asked in the same moment, put back however it ends."""

from __future__ import annotations

import logging
from typing import cast

import pytest
from stand_in_hosts import Connection, office
from stand_in_hosts import connected as stand_in

from lab import ssh
from lab.errors import AgentRefused, BadInput, ConnectionLost, HostLacks, HostTrouble, Stopped, TrialFailed
from lab.model import Host, Lab, Line, Role
from lab.rig.hosts import connected, everywhere, in_role, only, taken_back
from lab.rig.line import HeldLine
from lab.ssh.target import Target
from lab.stop import Stop

SEVERED = Line(upload_bps=64_000, download_bps=128_000, loss=1.0)


def test_all_requests_are_out_before_the_first_answer_is_awaited() -> None:
    log: list[str] = []
    hosts = office({"clock": lambda args: {"of": args["name"]}}, log)
    words = everywhere(((one, one.agent, "clock", {"name": one.name}) for one in hosts), Stop())
    assert words == {one.name: {"of": one.name} for one in hosts}
    assert [line.split()[0] for line in log] == ["asked"] * 4 + ["heard"] * 4


def test_a_refusal_of_one_host_is_raised() -> None:
    hosts = [*office({"clock": lambda args: {}}), stand_in("old", Role.CLIENT)]
    with pytest.raises(AgentRefused, match="unknown verb") as caught:
        everywhere(((one, one.agent, "clock", {}) for one in hosts), Stop())
    assert caught.value.host == "old"


def test_hosts_by_role() -> None:
    hosts = office()
    assert [one.name for one in in_role(hosts, Role.CLIENT)] == ["desk", "desk-2"]
    assert only(hosts, Role.CLIENT).name == "desk"
    with pytest.raises(HostTrouble, match="no router") as caught:
        only(hosts, Role.ROUTER)
    assert 'role = "router"' in caught.value.advice


def test_a_host_without_root_says_what_to_write() -> None:
    one = stand_in("proxy", Role.PROXY, root="none")
    with pytest.raises(HostLacks, match="proxy has to be changed") as caught:
        _ = one.privileged
    assert "[hosts.proxy]" in caught.value.advice


def test_both_ends_of_our_ssh_are_exempt_and_a_unix_socket_has_none() -> None:
    ends = {
        "own": {"address": "198.51.100.1", "port": 2222},
        "peer": {"address": "203.0.113.7", "port": 50000},
    }
    assert stand_in("server", Role.SERVER, facts={"ssh": ends}).exempt() == [
        {"address": "203.0.113.7", "port": 2222},
        {"address": "198.51.100.1", "port": 2222},
    ]
    assert stand_in("server", Role.SERVER, facts={"ssh": None}).exempt() == []


@pytest.mark.parametrize(
    ("own", "peer", "dialled", "exempt"),
    [
        # A redirect on the host: its devices see the port that was dialled.
        ("198.51.100.1", "203.0.113.7", "198.51.100.1", ["203.0.113.7", "198.51.100.1"]),
        # A relay there: sshd sees neither end.
        ("127.0.0.1", "127.0.0.1", "198.51.100.1", ["127.0.0.1", "203.0.113.7", "198.51.100.1"]),
    ],
)
def test_what_was_dialled_is_exempt_too_where_sshd_sees_another_end(
    own: str, peer: str, dialled: str, exempt: list[str]
) -> None:
    ends = {"own": {"address": own, "port": 22}, "peer": {"address": peer, "port": 50000}}
    one = stand_in("server", Role.SERVER, {"line.check": lambda args: {}}, facts={"ssh": ends})
    one.connection = cast(
        "ssh.Connection", Connection(Target(name="x", user="u", port=2222), ends=("203.0.113.7", dialled))
    )
    assert one.redirected
    assert one.exempt() == [{"address": one, "port": port} for port in (22, 2222) for one in exempt]
    desk = stand_in("desk", Role.CLIENT, address="203.0.113.7")
    with pytest.raises(HostLacks, match="100 % loss may cut off") as caught:
        HeldLine([one, desk], place="server").refuse([SEVERED], Stop())
    assert "sshd's own address and port" in caught.value.advice
    with pytest.raises(BadInput, match="port 2222, as what is to be measured"):
        HeldLine([one], place="server").refuse_shared([80, 2222])
    HeldLine([one], place="server").refuse_shared([22, 80])


def test_every_host_that_cannot_be_had_is_named() -> None:
    hosts = tuple(
        Host(
            name=name,
            role=role,
            ssh=f"unix:/nowhere/{name}",
            host_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        )
        for name, role in (("server", Role.SERVER), ("desk", Role.CLIENT))
    )
    with (
        pytest.raises(HostTrouble) as caught,
        connected(Lab(name="Nowhere", hosts=hosts), Stop(), lease_s=None),
    ):
        raise AssertionError("nobody is there")
    assert "server" in str(caught.value)
    assert "desk" in str(caught.value)
    with (
        pytest.raises(HostTrouble) as alone,
        connected(Lab(name="Nowhere", hosts=hosts[1:]), Stop(), lease_s=None),
    ):
        raise AssertionError("nobody is there")
    assert alone.value.host == "desk"
    assert alone.value.advice


class Putting:
    """Something that is taken back, and may fail at it."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.times = 0
        self._trouble = trouble

    def back(self) -> None:
        self.times += 1
        if self._trouble:
            raise self._trouble


LOST = ConnectionLost("lease.close could not be asked", host="server")


@pytest.mark.parametrize(
    "first", [None, Stopped("by the user"), TrialFailed("no"), ConnectionLost("gone"), KeyError("a defect")]
)
def test_whatever_happens_it_is_taken_back_once(first: Exception | None) -> None:
    putting = Putting()
    if first is None:
        with taken_back(putting.back):
            pass
    else:
        with pytest.raises(type(first)), taken_back(putting.back):
            raise first
    assert putting.times == 1


@pytest.mark.parametrize(
    "first",
    [
        ConnectionLost("line.read got no last word", host="server"),
        AgentRefused("the lease ran out", kind="lapsed"),
    ],
)
def test_what_ended_the_work_is_told_and_not_that_putting_back_failed_too(
    first: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    putting = Putting(LOST)
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(type(first), match=str(first)),
        taken_back(putting.back),
    ):
        raise first
    assert putting.times == 1
    assert "lease.close could not be asked" in caplog.text


@pytest.mark.parametrize("first", [Stopped("by the user"), TrialFailed("svn failed")])
def test_a_host_that_may_still_be_changed_outweighs_a_stop_and_a_failed_trial(first: Exception) -> None:
    with pytest.raises(ConnectionLost, match="could not be asked"), taken_back(Putting(LOST).back):
        raise first
    with pytest.raises(ConnectionLost, match="could not be asked"), taken_back(Putting(LOST).back):
        pass
