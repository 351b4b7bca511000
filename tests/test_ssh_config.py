"""~/.ssh/config by its effect: the same whether OpenSSH itself is asked or the files are read here."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import BadInput
from lab.model import Host, Role
from lab.ssh import config, target
from lab.ssh.target import Target

HOME = Path("~").expanduser()


@pytest.fixture(params=["ssh -G", "read here"])
def resolve(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Target]:
    """What `ssh = NAME` means under a configuration, asked in both ways."""
    if request.param == "read here":
        monkeypatch.setattr(config.shutil, "which", lambda program: None)
    elif shutil.which("ssh") is None:
        pytest.skip("no ssh here")

    def made(text: str, ssh: str = "office", **more: str) -> Target:
        path = tmp_path / "config"
        path.write_text(text)
        return target.resolve(Host(name="x", role=Role.CLIENT, ssh=ssh, **more), path)  # type: ignore[arg-type]

    return made


def test_names_ports_users_and_keys(resolve: Callable[..., Target]) -> None:
    text = (
        "Host office\n  HostName %h.example.com\n  Port = 2200\n  User admin\n"
        "  IdentityFile ~/.ssh/%h-%r\n  IdentityFile \"~/.ssh/with blank\"\n  IdentitiesOnly yes\n"
        "Host *\n  User later\n  Port 1\n  IdentityFile /etc/key-%n-%p\n"
    )  # fmt: skip
    found = resolve(text)
    assert (found.name, found.user, found.port) == ("office.example.com", "admin", 2200)
    assert found.keys == (
        HOME / ".ssh/office.example.com-admin", HOME / ".ssh/with blank", Path("/etc/key-office-2200"),
    )  # fmt: skip
    assert found.only_named
    assert found.unheeded == ()
    own = resolve(text, "me@office:22", key="~/own")
    assert (own.name, own.user, own.port) == ("office.example.com", "me", 22)
    assert own.keys == (HOME / "own",)


def test_what_nobody_speaks_of_is_as_usual(resolve: Callable[..., Target]) -> None:
    found = resolve("", "198.51.100.10")
    assert (found.name, found.user, found.port) == ("198.51.100.10", config.me(), 22)
    assert (found.keys, found.only_named, found.agent) == ((), False, "SSH_AUTH_SOCK")
    assert (found.jump, found.command, found.strict, found.remembers) == ("", "", "ask", True)
    assert found.methods == ("publickey", "keyboard-interactive", "password")
    assert found.known_hosts[:2] == (HOME / ".ssh/known_hosts", HOME / ".ssh/known_hosts2")
    assert (found.connect_s, found.silent_s, found.unheeded) == (15, 15, ())
    assert resolve("", "2001:db8::1").known_as == "2001:db8::1"
    assert resolve("", "[2001:db8::1]:2222").known_as == "[2001:db8::1]:2222"


def test_files_are_included_where_they_stand(resolve: Callable[..., Target], tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/1.conf").write_text("Host office\n  User first\n")
    (tmp_path / "d/2.conf").write_text("Host other\n  HostName wrong\nMatch all\n  Port 2022\n")
    inner = tmp_path / "inner"
    inner.write_text("Host *\n  HostName inside\n")
    found = resolve(
        f"Include {tmp_path}/d/*.conf {tmp_path}/absent\nHost other\n  Include {inner}\n"
        f"Host office\n  User second\n  Include {inner}\n  ConnectTimeout 7\n"
    )
    assert (found.name, found.user, found.port, found.connect_s) == ("inside", "first", 2022, 7)
    assert resolve(f"Host other\n  Include {inner}\nHost *\n  Port 5\n").name == "office"


def test_matching_by_host_and_user(resolve: Callable[..., Target]) -> None:
    text = (
        "Match host=office*,!office-2 user admin\n  Port 1001\n"
        "Match originalhost office-2\n  Port 1002\n"
        "Match !host office,office-2\n  Port 1003\n"
        f"Match localuser {config.me()} host office\n  Port 1004\n"
        "Match all\n  HostKeyAlias known\n"
    )
    assert resolve(text, "admin@office").port == 1001
    assert resolve(text, "admin@office-2").port == 1002
    assert resolve(text, "elsewhere").port == 1003
    assert resolve(text, "me@office").port == 1004
    assert resolve(text, "office").known_as == "known"


def test_ways_through_others(resolve: Callable[..., Target]) -> None:
    text = (
        "Host cmd\n  ProxyCommand nc -X 5 %h %p %%\n  ProxyJump late\n"
        "Host jump\n  ProxyJump me@a:2022,b\n  ProxyCommand late\n"
        "Host none\n  ProxyJump none\nHost *\n  ProxyJump gate\n"
    )
    assert resolve(text, "cmd:7").command == "nc -X 5 cmd 7 %"
    assert (resolve(text, "cmd").jump, resolve(text, "jump").command) == ("", "")
    assert resolve(text, "jump").jump == "me@a:2022,b"
    assert resolve(text, "none").jump == ""
    assert resolve(text, "else").jump == "gate"


def test_host_keys_and_their_files(resolve: Callable[..., Target]) -> None:
    for word, meant in (
        ("yes", "yes"),
        ("no", "no"),
        ("off", "no"),
        ("accept-new", "accept-new"),
        ("ask", "ask"),
    ):
        assert resolve(f"StrictHostKeyChecking {word}\n").strict == meant
    found = resolve('UserKnownHostsFile "~/one file" /two-%h\nGlobalKnownHostsFile /three\n')
    assert found.known_hosts == (HOME / "one file", Path("/two-office"), Path("/three"))
    assert found.remembers
    for nothing in ("none", "/dev/null"):
        assert not resolve(f"UserKnownHostsFile {nothing}\n").remembers
    assert resolve("UserKnownHostsFile none\nGlobalKnownHostsFile none\n").known_hosts == ()


def test_patience_has_a_limit_and_that_is_said(resolve: Callable[..., Target]) -> None:
    quick = resolve("ServerAliveInterval 2\nServerAliveCountMax 2\n")
    assert (quick.keep_alive_s, quick.silent_s, quick.unheeded) == (2, 4, ())
    slow = resolve("ServerAliveInterval 60\n")
    assert (slow.keep_alive_s, slow.silent_s) == (5, 15)
    assert slow.unheeded == ("ServerAliveInterval 60 (a host that is silent for 15 s is lost)",)


def test_ways_to_log_in_and_algorithms(
    resolve: Callable[..., Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = resolve("PreferredAuthentications password,publickey,gssapi-with-mic\nPubkeyAuthentication no\n")
    assert found.methods == ("password",)
    assert resolve("KbdInteractiveAuthentication no\n").methods == ("publickey", "password")
    assert resolve("IdentityAgent none\n").agent == "none"
    assert resolve("IdentityAgent ~/agent-%r\nUser me\n").agent == str(HOME / "agent-me")
    monkeypatch.setenv("OTHER_AGENT", "/somewhere")
    assert resolve("IdentityAgent $OTHER_AGENT\n").agent == "/somewhere"
    assert resolve("AddressFamily inet6\n").family == socket.AF_INET6
    ciphers = resolve("Ciphers aes256-ctr,chacha20-poly1305@openssh.com\n").algorithms["ciphers"]
    assert config.chosen(("aes128-ctr", "aes256-ctr"), ciphers) == ("aes256-ctr",)


def test_what_has_no_effect_is_named_once(resolve: Callable[..., Target]) -> None:
    found = resolve(
        "Host office\n  RevokedHostKeys /etc/ssh/revoked\n  VerifyHostKeyDNS yes\n  ForwardX11 yes\n"
        "  StrictHostKeyChecking no\n"
    )
    assert sorted(found.unheeded) == [
        "RevokedHostKeys /etc/ssh/revoked",
        "StrictHostKeyChecking no (a changed host key is refused all the same)",
        f"VerifyHostKeyDNS {'true' if 'VerifyHostKeyDNS true' in found.unheeded else 'yes'}",
    ]


def test_what_is_wrong_is_bad_input(resolve: Callable[..., Target]) -> None:
    for text in ("Port many\n", 'IdentityFile "open\n', "IdentityFile %Z\n"):
        with pytest.raises(BadInput):
            resolve(text)


def test_match_exec_is_left_to_ssh_or_named(resolve: Callable[..., Target]) -> None:
    found = resolve('Match exec "true"\n  Port 77\nMatch final\n  ConnectTimeout 9\n')
    if shutil.which("ssh") and config.shutil.which("ssh"):
        assert (found.port, found.connect_s, found.unheeded) == (77, 9, ())
    else:
        assert (found.port, found.connect_s, len(found.unheeded)) == (22, 15, 2)
        assert "Match exec true" in found.unheeded[0]


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh here")
def test_a_configuration_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "ASKED_S", 0.5)
    (tmp_path / "config").write_text('Match exec "sleep 600"\n  Port 1\n')
    begin = time.monotonic()
    with pytest.raises(BadInput, match="could not say"):
        config.settings("office", path=tmp_path / "config")
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    ("known", "text", "left"),
    [
        (("a", "b"), "b,c,a", ("b", "a")),
        (("a", "b"), "+c", ("a", "b")),
        (("a1", "a2", "b"), "-a*", ("b",)),
        (("a", "b"), "^b", ("b", "a")),
        (("a",), "c", ()),
    ],
)
def test_lists_of_algorithms(known: tuple[str, ...], text: str, left: tuple[str, ...]) -> None:
    assert config.chosen(known, text) == left


def test_files_that_include_each_other_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.shutil, "which", lambda program: None)
    path = tmp_path / "config"
    path.write_text(f"Include {path}\n")
    with pytest.raises(BadInput, match="too deep"):
        config.settings("office", path=path)


def test_nothing_is_read_into_options_of_ssh() -> None:
    for name in ("-oProxyCommand=x", "-x"):
        with pytest.raises(BadInput):
            target.resolve(Host(name="x", role=Role.CLIENT, ssh=name))


def test_names_without_patterns_are_found_in_included_files_too(tmp_path: Path) -> None:
    inner = tmp_path / "conf.d"
    inner.mkdir()
    (inner / "a").write_text("Host far-1 *.far !far-2\n  Include other\nMatch host x\n")
    (inner / "b").write_text('host=far-3 far-1 # again\nHost "with blank"\n')
    path = tmp_path / "config"
    path.write_text(f"Host near\n  User x\nInclude {inner}/*\nHost last\nHost *\n")
    assert config.names(path) == ("near", "far-1", "far-3", "with blank", "last")
    assert config.names(tmp_path / "none") == ()
    path.write_text(f"Host a\nInclude {path}\n")
    with pytest.raises(BadInput, match="too deep"):
        config.names(path)
    path.write_text('Host "a\n')
    with pytest.raises(BadInput, match="config:1"):
        config.names(path)


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh here")
def test_what_a_match_exec_leaves_running_is_left_running(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    (tmp_path / "config").write_text(f'Match exec "sleep 600 & echo $! > {noted}"\n  Port 99\n')
    begin = time.monotonic()
    assert config.settings("office", path=tmp_path / "config").one("port") == "99"
    assert time.monotonic() - begin < config.ASKED_S
    pid = int(noted.read_text())
    os.kill(pid, 0)
    os.kill(pid, signal.SIGKILL)


def test_settings_for_what_is_started_are_named_too(resolve: Callable[..., Target]) -> None:
    text = "SetEnv A=1 B=2\nSendEnv FOO BAR\nRemoteCommand /opt/enter\nCompression yes\n"
    named = " ".join(resolve(f"{text}PreferredAuthentications gssapi-with-mic,password\n").unheeded)
    assert resolve("GSSAPIAuthentication no\nCompression no\nVerifyHostKeyDNS no\n").unheeded == ()
    for word in ("A=1 B=2", "FOO BAR", "RemoteCommand /opt/enter", "Compression yes", "ns gssapi-with-mic"):
        assert word in named
    with pytest.raises(BadInput, match="gssapi-with-mic: of these ways to log in none is known here"):
        resolve("PreferredAuthentications gssapi-with-mic\n")


def test_an_ipv6_address_is_told_in_brackets() -> None:
    assert (
        str(target.resolve(Host(name="x", role=Role.CLIENT, ssh="me@[2001:db8::1]:2222")))
        == "me@[2001:db8::1]:2222"
    )


def test_the_hosts_of_somebody_elses_configuration_are_listed_with_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "theirs"
    file.write_text(
        "Host far\n  HostName %h.example.com\n  User admin\n  Port 2222\n  ProxyJump gate\n  IdentityFile ~/key\n"
        "Host *.example.com\n  User nobody\nHost near\n  ProxyJump none\n"
    )
    found = config.listed(file)
    assert found == {
        "far": config.Named("far.example.com", "admin", "2222", "gate", "~/key"),
        "near": config.Named("near"),
    }
    for other in (
        "[web]\nhost1\nhost-2 ansible_host=1.2.3.4\n",
        "all:\n  hosts:\n    host1:\n",
        "hosts = 3\n",
    ):
        file.write_text(other)
        assert config.listed(file) is None
    with pytest.raises(BadInput, match="cannot be read"):
        config.listed(tmp_path)
