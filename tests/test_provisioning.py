"""Packages for the hosts of a lab: what each needs, what is refused before anything is installed, what is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
import pytest
from click.testing import CliRunner
from stand_in_hosts import Args, connected, root

from lab import machines
from lab.asking import Declined
from lab.cli import agreeing, passwords
from lab.cli import provisioning as terminal
from lab.errors import BadInput, HostLacks
from lab.model import Cache, Host, Lab, Role
from lab.rig import provisioning
from lab.rig.hosts import Connected
from lab.stop import Stop
from ssh_agents import package_names


class Debian:
    """One host's package manager, as its agent tells of it."""

    def __init__(self, lacking: Sequence[str] = (), *, known: bool = True, keep: str = "") -> None:
        self.lacking, self.known, self.keep = list(lacking), known, keep
        self.ours: list[str] = []

    def verbs(self) -> dict[str, Any]:
        return {"packages.look": self.look, "packages.install": self.install, "packages.remove": self.remove}

    def look(self, args: Args) -> Args:
        apt = package_names.MANAGERS[0]
        missing = [need for need in args["needs"] if need in self.lacking]
        wanted = package_names.packages(apt, missing)
        commands = [list(apt.refresh), [*apt.install, *wanted]] if wanted and self.known else []
        return {
            "manager": apt.name if self.known else None,
            "missing": missing,
            "unknown": [] if self.known else missing,
            "packages": wanted,
            "all": [],
            "commands": commands,
            "ours": self.ours,
        }

    def install(self, args: Args) -> Args:
        self.ours = package_names.packages(package_names.MANAGERS[0], args["needs"])
        self.lacking = []
        said = [("output", {"text": f"Setting up {name}"}) for name in self.ours]
        return {"events": said, "installed": self.ours}

    def remove(self, args: Args) -> Args:
        gone = [name for name in self.ours if name != self.keep]
        kept = [name for name in self.ours if name == self.keep]
        self.ours = []
        return {"removed": gone, "kept": kept, "why": ""}


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[Connected]:
    hosts: list[Connected] = []

    @contextmanager
    def reach(lab: Lab, stop: Stop, **given: Any) -> Iterator[tuple[Connected, ...]]:
        yield tuple(one for one in hosts if one.host in lab.hosts)

    monkeypatch.setattr(provisioning, "connected", reach)
    monkeypatch.setattr(passwords, "signed_in", lambda lab: None)
    monkeypatch.setattr(machines, "own", lambda lab: False)
    return hosts


def lab_of(hosts: Sequence[Connected]) -> Lab:
    return Lab(name="office", hosts=tuple(one.host for one in hosts))


def office(server: Debian, desk: Debian, **given: Any) -> list[Connected]:
    return [
        connected("server", Role.SERVER, server.verbs(), services="/srv/lab"),
        connected("desk", Role.CLIENT, desk.verbs(), **given),
    ]


def host(role: Role, **given: Any) -> Host:
    return Host(name="one", role=role, ssh="one", **given)


@pytest.mark.parametrize(
    ("one", "needs"),
    [
        (host(Role.CLIENT), ("svn",)),
        (host(Role.CLIENT, root="sudo"), ("svn", "nft")),
        (host(Role.SERVER, root="direct"), ("tc", "nft")),
        (
            host(Role.SERVER, root="direct", services="/s"),
            ("tc", "nft", "apache2", "mod_dav_svn", "svnadmin"),
        ),
        (host(Role.PROXY, services="/s"), ("apache2",)),
        (host(Role.PROXY, services="/s", cache=Cache(kind="squid", folder="/c/c")), ("squid",)),
        (host(Role.PROXY, services="/s", cache=Cache(kind="nginx-proxy-cache", folder="/c/c")), ("nginx",)),
        (host(Role.PROXY, cache=Cache(kind="squid", folder="/c/c")), ()),
        (host(Role.ROUTER, root="sudo"), ("tc", "nft")),
        (host(Role.SERVER, root="sudo", delay="tap0"), ("tc", "nft", "wirefilter")),
    ],
)
def test_each_role_needs_what_it_does(one: Host, needs: tuple[str, ...]) -> None:
    assert provisioning.needs(one, Lab(name="", hosts=(one,))) == needs
    assert set(needs) <= set(package_names.NEEDS)


def test_where_each_office_host_holds_its_line_the_server_needs_no_tc() -> None:
    server, desk = host(Role.SERVER, root="sudo"), Host(name="desk", role=Role.CLIENT, ssh="d", root="sudo")
    lab = Lab(name="", hosts=(server, desk), line="office")
    assert "tc" not in provisioning.needs(server, lab)
    assert "tc" in provisioning.needs(desk, lab)


def test_what_is_missing_is_installed_and_told_and_then_nothing_is(joined: list[Connected]) -> None:
    server, desk = Debian(["nft", "mod_dav_svn"]), Debian()
    joined += office(server, desk)
    said: list[tuple[str, str]] = []
    came = provisioning.provision(lab_of(joined), Stop(), lambda *words: said.append(words))
    assert came == {"server": ["nftables", "libapache2-mod-svn"], "desk": []}
    assert ("server", "Setting up nftables") in said
    assert root(joined[1]).args("packages.install") == []
    again = provisioning.provision(lab_of(joined), Stop(), lambda *words: None)
    assert again == {"server": [], "desk": []}


def test_only_hosts_that_are_named_are_reached_and_still_need_what_the_whole_lab_asks(
    joined: list[Connected],
) -> None:
    server, desk = Debian(["nft", "tc"]), Debian(["svn"], known=False)
    joined += office(server, desk)
    lab = lab_of(joined)
    (found,) = provisioning.look(lab, only=("server",))
    assert found.needs == ("tc", "nft")
    came = provisioning.provision(lab, Stop(), lambda *words: None, only=("server",))
    assert came == {"server": ["iproute2", "nftables"]}
    assert root(joined[1]).args("packages.look") == []
    gone = provisioning.unprovision(lab, Stop(), lambda *words: None, only=("server",))
    assert gone == {"server": ["removed: iproute2", "removed: nftables"]}


def test_one_host_that_cannot_be_helped_keeps_all_as_they_are(joined: list[Connected]) -> None:
    joined += office(Debian(["nft"]), Debian(["svn"], known=False))
    with pytest.raises(HostLacks, match="knows no package") as caught:
        provisioning.provision(lab_of(joined), Stop(), lambda *words: None)
    assert caught.value.host == "desk"
    assert root(joined[0]).args("packages.install") == []


def test_where_nobody_may_become_root_the_commands_are_told(joined: list[Connected]) -> None:
    joined += office(Debian(), Debian(["svn"]), root="none")
    with pytest.raises(HostLacks, match="no way to become root") as caught:
        provisioning.provision(lab_of(joined), Stop(), lambda *words: None)
    assert "install subversion" in caught.value.advice
    assert 'root = "sudo"' in caught.value.advice


def test_taking_away_tells_what_stays(joined: list[Connected]) -> None:
    server = Debian(["nft", "tc"], keep="nftables")
    joined += office(server, Debian())
    provisioning.provision(lab_of(joined), Stop(), lambda *words: None)
    told = provisioning.unprovision(lab_of(joined), Stop(), lambda *words: None)
    assert told["server"] == ["removed: iproute2", "kept, since something else needs it: nftables"]


# ---- in the terminal


def called(
    lab: Lab, answer: str = "", *, yes: bool = False, remove: bool = False
) -> tuple[str, Exception | None]:
    @click.command()
    def command() -> None:
        (terminal.unprovision if remove else terminal.provision)(lab, yes=yes)

    result = CliRunner().invoke(command, input=answer)
    return result.output, result.exception if not isinstance(result.exception, SystemExit) else None


def test_the_commands_are_shown_and_nothing_is_done_without_a_yes(
    joined: list[Connected], monkeypatch: pytest.MonkeyPatch
) -> None:
    joined += office(Debian(["nft"]), Debian())
    told, error = called(lab_of(joined))
    assert "apt-get --quiet update" in told
    assert "install nftables" in told
    assert isinstance(error, Declined)
    assert "--yes" in error.advice
    monkeypatch.setattr(agreeing, "somebody_there", lambda: True)
    _, error = called(lab_of(joined), "\n")
    assert isinstance(error, Declined)
    assert root(joined[0]).args("packages.install") == []
    told, error = called(lab_of(joined), "y\n")
    assert error is None
    assert "server: installed nftables" in told
    assert "provision --remove" in told
    assert called(lab_of(joined)) == ("everything is there\n", None)


def test_taking_away_shows_the_packages_first(joined: list[Connected]) -> None:
    joined += office(Debian(["nft"]), Debian())
    assert called(lab_of(joined), remove=True)[0] == "BranchLab installed nothing on these hosts\n"
    called(lab_of(joined), yes=True)
    told, error = called(lab_of(joined), remove=True)
    assert "server: nftables" in told
    assert isinstance(error, Declined)
    told, error = called(lab_of(joined), yes=True, remove=True)
    assert "removed: nftables" in told
    assert error is None


def test_a_lab_of_this_machine_is_not_provisioned(
    joined: list[Connected], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "own", lambda lab: True)
    joined += office(Debian(["nft"]), Debian())
    _, error = called(lab_of(joined), yes=True)
    assert isinstance(error, BadInput)
    assert "installer/system_packages" in error.advice
