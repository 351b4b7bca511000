"""What was entered for a new lab, and the profile that it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import design, new_lab, profile, profile_tables
from lab.model import Role
from lab.new_lab import Caching, Entry, NewLab

SERVER = Entry(role=Role.SERVER, ssh="server.example.com", user="admin", address="198.51.100.1", root="sudo")
PROXY = Entry(role=Role.PROXY, ssh="proxy", port="2222", address="192.0.2.7", root="sudo")
DESK = Entry(role=Role.CLIENT, ssh="desk-1.example.com", jump="gate", address="192.0.2.21")


def read(lab: NewLab) -> profile.Profile:
    return profile.parsed(new_lab.text(lab), Path("new"))


def test_a_whole_lab_is_a_whole_profile() -> None:
    found = read(NewLab(name='Minsk "old" office', hosts=(SERVER, PROXY, DESK)))
    assert found.lab.name == 'Minsk "old" office'
    assert [(host.name, host.ssh, host.address) for host in found.lab.hosts] == [
        ("server", "admin@server.example.com", "198.51.100.1"),
        ("proxy", "proxy:2222", "192.0.2.7"),
        ("desk-1", "desk-1.example.com", "192.0.2.21"),
    ]
    assert found.lab.one(Role.CLIENT).jump == "gate"
    assert found.lab.one(Role.PROXY).url == "http://192.0.2.7:8081"
    assert found.warnings == ()
    assert len(design.trials(found.experiments[0])) == 6 * 2 * 4 * 4


def test_without_a_proxy_there_is_no_state_that_needs_one() -> None:
    (experiment,) = read(NewLab(name="x", hosts=(SERVER, DESK))).experiments
    assert [state.key for state in experiment.states] == ["disabled"]


def test_a_repository_of_their_own_is_only_read() -> None:
    own = NewLab(name="x", hosts=(SERVER, PROXY, DESK), repository="http://{server}/svn/trunk")
    found = read(own)
    assert found.experiments[0].data is None
    assert found.lab.one(Role.SERVER).services is None
    assert not {"check-in", "check-out"} & set(found.experiments[0].operations)
    secure = NewLab(name="x", hosts=(SERVER, PROXY, DESK), repository="https://svn.example.com/trunk")
    assert [state.key for state in read(secure).experiments[0].states] == ["disabled"]


@pytest.mark.parametrize("kind", ["apache-disk", "squid", "nginx-proxy-cache", "folder"])
def test_a_proxy_that_runs_there_is_used_as_it_is(kind: str) -> None:
    caching = Caching(own=False, kind=kind, folder="/srv/cache" if kind == "folder" else "")
    found = read(NewLab(name="x", hosts=(SERVER, PROXY, DESK), caching=caching))
    proxy = found.lab.one(Role.PROXY)
    assert proxy.services is None
    assert proxy.cache is not None
    assert proxy.cache.kind == kind
    assert proxy.url


def test_names_are_told_apart() -> None:
    hosts = [
        Entry(role=Role.SERVER, ssh="desk"),
        *(
            Entry(role=Role.CLIENT, ssh=name)
            for name in ("desk.a", "joe@desk.b:22", "10.0.0.3", "server", "[::1]")
        ),
    ]
    assert new_lab.names(hosts) == ("server", "desk", "desk-2", "client-3", "server-2", "client-5")
    assert new_lab.names([Entry(role=Role.CLIENT, ssh="10.0.0.3")]) == ("client",)
    assert new_lab.names([Entry(role=Role.CLIENT, ssh="unix:/run/lab/desk/ssh")]) == ("desk",)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"ssh": "desk"}, "desk"),
        ({"ssh": "joe@desk", "user": "ann"}, "joe@desk"),
        ({"ssh": "desk:22", "port": "23"}, "desk:22"),
        ({"ssh": "2001:db8::1", "port": "23"}, "[2001:db8::1]:23"),
        ({"ssh": "unix:/run/x", "user": "ann"}, "unix:/run/x"),
    ],
)
def test_how_ssh_is_written(given: dict[str, str], written: str) -> None:
    entry = Entry(role=Role.CLIENT, **given)
    assert entry.written == written
    assert entry.trouble == ""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ssh": "two words"}, "names no host"),
        ({"ssh": "joe:secret@desk"}, "has a password in it"),
        ({"ssh": "desk", "port": "0"}, "no port"),
        ({"ssh": "desk", "port": "x"}, "no port"),
        ({"ssh": "desk", "user": "a b"}, "no name of a user"),
        ({"ssh": "desk", "jump": "a b"}, "names no host"),
        ({"ssh": "desk", "jump": "unix:/x"}, "socket"),
        ({"ssh": "desk", "address": "10.0.0"}, "no IPv4 address"),
    ],
)
def test_what_is_wrong_is_told_at_its_host(given: dict[str, str], told: str) -> None:
    trouble = Entry(role=Role.CLIENT, **given).trouble
    assert told in trouble
    assert "secret" not in trouble


def test_an_address_that_two_hosts_have_is_written_once_and_told() -> None:
    twin = Entry(role=Role.CLIENT, ssh="desk-2", address=DESK.address)
    lab = NewLab(name="x", hosts=(SERVER, DESK, twin))
    assert new_lab.doubts(lab) == (
        "192.0.2.21 is the address of desk-1 and of desk-2: each host needs its own",
    )
    assert new_lab.text(lab).count(f'address = "{DESK.address}"') == 1
    assert new_lab.problems(lab) == ()


def test_a_host_without_an_address_is_told() -> None:
    (doubt,) = new_lab.doubts(NewLab(name="x", hosts=(SERVER, Entry(role=Role.CLIENT, ssh="desk-2"))))
    assert doubt.startswith("desk-2 has no address yet")


def test_what_its_file_may_be_called() -> None:
    assert new_lab.file_name("Minsk office (old)") == "minsk-office-old.toml"
    assert new_lab.file_name("Минск") == "минск.toml"
    assert new_lab.file_name(" ../ ") == "new-lab.toml"


def test_what_is_missing_is_told() -> None:
    assert [problem.text for problem in new_lab.problems(NewLab(name="x", hosts=(SERVER,)))]


@pytest.mark.parametrize("role", list(Role))
def test_a_host_that_is_added_leaves_a_profile_right(role: Role) -> None:
    hosts = tuple(entry for entry in (SERVER, PROXY, DESK) if entry.role is not role or role is Role.CLIENT)
    text = new_lab.text(NewLab(name="Minsk", hosts=hosts))
    block = profile_tables.host_table("one-more", new_lab.added(role, "one-more"))
    looked = profile.looked_at(profile_tables.with_host(text, block), Path("x"))
    assert looked.problems == ()
    assert looked.profile is not None
    assert "one-more" in [host.name for host in looked.profile.lab.having(role)]
