"""Meeting a host for the first time, step by step: real sshd servers, and what each kind of trouble is told as."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import sshd
import users

from lab import embedded, new_lab, profile, ssh
from lab.credentials import Offered, Passwords
from lab.errors import Stopped
from lab.model import Host, Role
from lab.new_lab import Entry, NewLab
from lab.rig import meeting
from lab.rig.meeting import ANSWERS, KEY, LOGIN, PROGRAMS, ROOT, Met, Step
from lab.stop import Stop


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sshd.Sshd]:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    with sshd.listening(sshd.made(tmp_path / "sshd")) as one:
        yield one


def met(host: Host, passwords: Passwords | None = None) -> tuple[Met | None, dict[str, Step], list[Step]]:
    told: list[Step] = []
    found = meeting.meet(host, passwords or Passwords(), Stop(), told.append)
    return found, {step.what: step for step in told}, told


def test_a_host_that_is_known_is_met_whole_and_nothing_is_left_there(server: sshd.Sshd) -> None:
    found, steps, told = met(server.host())
    assert found is not None
    assert list(steps) == list(meeting.STEPS)
    assert [step.grade for step in told if step.what == LOGIN] == ["running", "ok"]
    assert steps[ANSWERS].text.startswith("OpenSSH ")
    assert steps[KEY].text == "as the profile says, ED25519"
    assert steps[LOGIN].text == f"by key, as {getpass.getuser()}"
    assert steps[ANSWERS].port == server.port
    assert not server.cache.exists()
    if os.getuid() == 0:
        assert found.root == "direct"
        assert steps[ROOT].text == "logged in as root"
    assert found.address == "" or not found.address.startswith("127.")


def test_an_unknown_key_waits_for_a_person_and_is_known_from_then_on(server: sshd.Sshd) -> None:
    host = server.host(host_key=None)
    found, steps, _ = met(host)
    assert found is None
    assert (steps[KEY].grade, steps[KEY].wants) == ("warn", "key")
    assert LOGIN not in steps
    seen: list[Offered] = []

    def trusts(offered: Offered) -> bool:
        seen.append(offered)
        return True

    found, steps, _ = met(host, Passwords(None, trusts))
    assert found is not None
    assert steps[KEY].text == "accepted now, ED25519"
    assert len(seen) == 1
    found, steps, _ = met(host)
    assert found is not None
    assert steps[KEY].text == "known, ED25519"


def test_a_changed_key_is_refused_and_no_person_can_help(server: sshd.Sshd, tmp_path: Path) -> None:
    other = sshd.made(tmp_path / "other")
    _, steps, _ = met(server.host(host_key=other.host_key()))
    assert steps[KEY].grade == "trouble"
    assert "another machine may be answering" in steps[KEY].text
    assert steps[KEY].wants == ""


def test_who_is_not_let_in_is_told_at_the_login(server: sshd.Sshd, tmp_path: Path) -> None:
    other = sshd.made(tmp_path / "other")
    _, steps, _ = met(server.host(key=str(other.key)))
    assert steps[KEY].grade == "ok"
    assert (steps[LOGIN].grade, steps[LOGIN].wants) == ("trouble", "")
    assert "did not let" in steps[LOGIN].text


def test_a_password_that_is_asked_for_is_what_a_person_can_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    # Of two lines in sshd's configuration the first counts.
    made = sshd.made(tmp_path / "sshd", "PasswordAuthentication yes", "PermitRootLogin yes")
    other = sshd.made(tmp_path / "other")
    with sshd.listening(made) as one:
        _, steps, _ = met(one.host(key=str(other.key)))
    assert (steps[LOGIN].grade, steps[LOGIN].wants) == ("warn", "password")


def test_a_wrong_password_may_be_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    made = sshd.made(tmp_path / "sshd", "PasswordAuthentication yes", "PermitRootLogin yes")
    other = sshd.made(tmp_path / "other")
    with sshd.listening(made) as one:
        _, steps, _ = met(one.host(key=str(other.key)), Passwords(lambda question: "wrong"))
    assert (steps[LOGIN].grade, steps[LOGIN].wants) == ("trouble", "password")
    assert "did not take the password" in steps[LOGIN].text


@pytest.mark.parametrize("what", ["refused", "no name", "no ssh"])
def test_what_does_not_answer_is_told_at_the_first_step(what: str) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        ssh = f"127.0.0.1:{port}"
        if what == "no name":
            ssh = "nowhere.invalid"
        if what == "no ssh":
            ssh = "bad host"
        _, steps, told = met(Host(name="x", role=Role.CLIENT, ssh=ssh))
    assert steps[ANSWERS].grade == "trouble"
    assert steps[ANSWERS].text
    assert [step.what for step in told] == ([ANSWERS] if what == "no ssh" else [ANSWERS, ANSWERS])


def test_it_can_be_left(server: sshd.Sshd) -> None:
    stop = Stop()

    def say(step: Step) -> None:
        stop.request()

    with pytest.raises(Stopped):
        meeting.meet(server.host(), Passwords(), stop, say)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3", "OpenSSH 9.2"),
        ("SSH-2.0-OpenSSH_for_Windows_8.1", "OpenSSH 8.1"),
        ("SSH-2.0-dropbear_2022.83", "dropbear_2022.83"),
        ("SSH-1.99-Cisco-1.25", "Cisco-1.25"),
    ],
)
def test_how_a_server_calls_itself(said: str, told: str) -> None:
    assert meeting.version(said) == told


@pytest.mark.parametrize(
    ("role", "tools", "grade", "text"),
    [
        (Role.CLIENT, {"svn": "1.14.2"}, "ok", "Subversion 1.14.2"),
        (Role.PROXY, {"squid": "Squid Cache: Version 5.7", "nginx": None}, "ok", "Squid 5.7"),
        (Role.PROXY, {}, "warn", "no Apache, Squid or nginx"),
        (Role.SERVER, {"svnadmin": "1.14.2", "apache2": None}, "warn", "Apache missing"),
    ],
)
def test_programs(role: Role, tools: dict[str, str | None], grade: str, text: str) -> None:
    step = meeting._programs(role, {"tools": tools})
    assert (step.what, step.grade, step.text) == (PROGRAMS, grade, text)


# ways to root, as ordinary users ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def somebody() -> Iterator[users.User]:
    with users.user() as made:
        yield made


@pytest.mark.parametrize(
    ("rule", "root", "text"),
    [
        ("USER ALL=(root) NOPASSWD: ALL", "sudo", "sudo, no prompt"),
        ("USER ALL=(root) ALL", "sudo", "sudo, asks for a password"),
    ],
)
def test_the_way_to_root_is_found_without_going_it(
    somebody: users.User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rule: str, root: str, text: str
) -> None:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    somebody.sudoers(rule)
    try:
        before = sorted(path.name for path in somebody.home.iterdir())
        found, steps, _ = met(somebody.host(root="none"))
        assert found is not None
        assert (found.root, found.user, steps[ROOT].text) == (root, somebody.name, text)
        assert sorted(path.name for path in somebody.home.iterdir()) == before
    finally:
        somebody.forgotten()


# other ways ------------------------------------------------------------------------------------------------------


def test_the_steps_told_are_those_of_the_host_and_not_of_its_jump_host(
    server: sshd.Sshd, tmp_path: Path
) -> None:
    gate = sshd.made(tmp_path / "gate")
    (gate.folder / "authorized").write_text((server.folder / "client.pub").read_text())
    with sshd.listening(gate):
        config = tmp_path / "config"
        config.write_text(f"Host *\n  IdentityFile {server.key}\n  UserKnownHostsFile {tmp_path}/known\n")
        (tmp_path / "known").write_text(f"[127.0.0.1]:{gate.port} {gate.host_key()}\n")
        host = server.host(jump=f"127.0.0.1:{gate.port}")
        told: list[ssh.Step] = []
        with ssh.connect(host, config=config, say=told.append) as connection:
            assert connection.run(["true"]).exit == 0
    assert [step.what for step in told] == ["answers", "key", "login"]
    assert "Accepted publickey" in gate.log()


@pytest.mark.lab
def test_hosts_of_a_lab_are_met_and_make_its_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real hosts in namespaces: what is proposed for each is what the lab's own profile says."""
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    entries = []
    with embedded.up(tied=True) as made:
        for host in made.lab.hosts:
            blank = Host(name=host.name, role=host.role, ssh=host.ssh, key=host.key, host_key=host.host_key)
            found, steps, _ = met(blank)
            assert found is not None, steps
            assert all(step.grade == "ok" for step in steps.values()), steps
            assert (found.address, found.root) == (host.address, "direct")
            assert steps[ANSWERS].port == 0
            entries.append(
                Entry(
                    role=host.role, ssh=host.ssh, key=host.key or "", address=found.address, root=found.root
                )
            )
    text = new_lab.text(NewLab(name="x", hosts=tuple(entries)))
    assert [host.role for host in profile.parsed(text, tmp_path / "x").lab.hosts] == [
        host.role for host in made.lab.hosts
    ]
