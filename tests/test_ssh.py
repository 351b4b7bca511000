"""lab.ssh against real sshd servers: keys known, unknown, changed; both streams; files; noise; lost hosts."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lab import ssh
from lab.errors import BadInput, ConnectionLost, HostTrouble, HostUnreachable
from lab.model import Host, Role
from lab.ssh import hostkeys, login, target
from tests import sshd

KINDS = ("rsa", "ecdsa", "ed25519")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Sshd]:
    made = sshd.made(tmp_path_factory.mktemp("sshd"), kinds=KINDS)
    with sshd.listening(made) as running:
        yield running


@pytest.fixture
def connection(server: sshd.Sshd) -> Iterator[ssh.Connection]:
    with ssh.connect(server.host()) as made:
        yield made


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("host", ("", "host", 0)),
        ("me@host", ("me", "host", 0)),
        ("me@host:2222", ("me", "host", 2222)),
        ("dom@me@host:22", ("dom@me", "host", 22)),
        ("[2001:db8::1]:22", ("", "2001:db8::1", 22)),
        ("me@2001:db8::1", ("me", "2001:db8::1", 0)),
        ("", ("", "", 0)),
        ("@host", ("", "", 0)),
        ("host:0", ("", "", 0)),
        ("host:99999", ("", "", 0)),
        ("host:x", ("", "", 0)),
        ("ho st", ("", "", 0)),
    ],
)
def test_an_address_is_split(text: str, parts: tuple[str, str, int]) -> None:
    assert target.split(text) == parts


@pytest.mark.parametrize("text", ["unix:relative", "a b", "me@", ":22"])
def test_what_is_no_address_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput):
        target.resolve(Host(name="x", role=Role.CLIENT, ssh=text))


KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519 not a real key").decode()


def hashed(name: str) -> str:
    salt = b"0123456789abcdef0123"
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    ("line", "name", "found"),
    [
        (f"host ssh-ed25519 {KEY}", "host", True),
        (f"other,HOST ssh-ed25519 {KEY} comment", "host", True),
        (f"[host]:2222 ssh-ed25519 {KEY}", "[host]:2222", True),
        (f"[host]:2222 ssh-ed25519 {KEY}", "host", False),
        (f"[host]:22 ssh-ed25519 {KEY}", "h", False),
        (f"*.example.com ssh-ed25519 {KEY}", "a.example.com", True),
        (f"*.example.com,!a.example.com ssh-ed25519 {KEY}", "a.example.com", False),
        (f"{hashed('host')} ssh-ed25519 {KEY}", "host", True),
        (f"{hashed('host')} ssh-ed25519 {KEY}", "tsoh", False),
        (f"|1|junk ssh-ed25519 {KEY}", "host", False),
        (f"@cert-authority * ssh-ed25519 {KEY}", "host", False),
        ("host ssh-ed25519", "host", False),
        ("host ssh-ed25519 !!!", "host", False),
        ("\x00\xff junk", "host", False),
        ("# host", "host", False),
    ],
)
def test_a_line_of_known_hosts(tmp_path: Path, line: str, name: str, found: bool) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"{line}\n", encoding="latin-1")
    assert bool(hostkeys.known([file, tmp_path / "absent"], name).keys) is found


def test_a_pinned_key_that_is_none_is_bad_input() -> None:
    for text in ("", "ssh-ed25519", "ssh-ed25519 ???"):
        with pytest.raises(BadInput):
            hostkeys.pinned(text)


@pytest.mark.lab
def test_a_program_runs_and_its_ends_are_told(connection: ssh.Connection) -> None:
    done = connection.run(["sh", "-c", 'cat; echo "$1" >&2; exit 3', "sh", "it's; $HOME `x` \n!"], b"in\xff")
    assert (done.exit, done.out) == (3, b"in\xff")
    assert done.err == "it's; $HOME `x` \n!\n"
    # A login shell that did not replace itself tells 128 + 9 instead.
    assert connection.run(["sh", "-c", "kill -9 $$"]).exit in (None, 137)
    assert connection.alive


@pytest.mark.lab
def test_ten_mebibytes_on_both_streams_do_not_block(connection: ssh.Connection) -> None:
    script = "head -c 10485760 /dev/zero >&2; head -c 10485760 /dev/zero; echo end >&2"
    done = connection.run(["sh", "-c", script], timeout_s=100)
    assert (done.exit, len(done.out)) == (0, 10485760)
    assert done.err.endswith("end\n")


@pytest.mark.lab
def test_a_program_that_does_not_end_is_a_time_out(connection: ssh.Connection) -> None:
    mark = f"600.{time.monotonic_ns()}"
    with pytest.raises(ConnectionLost, match="did not end"):
        connection.run(["sleep", mark], timeout_s=0.5)
    end = time.monotonic() + 30
    if os.getuid() == 0:  # sshd signals nothing for root
        find = ["pgrep", "-fx", f"sleep {mark}"]
        while not (shown := subprocess.run(find, capture_output=True, text=True, check=False).stdout):
            assert time.monotonic() < end  # a busy sshd may not have begun it yet
        os.kill(int(shown), signal.SIGTERM)
    while mark in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert connection.run(["echo", "on"]).out == b"on\n"


@pytest.mark.lab
def test_a_file_is_put_whole_with_its_mode(connection: ssh.Connection, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4000
    for mode in (0o600, 0o755):
        connection.put(data, str(tmp_path / "file"), mode)
        assert (tmp_path / "file").read_bytes() == data
        assert (tmp_path / "file").stat().st_mode & 0o777 == mode
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(HostTrouble, match="could not be written"):
        connection.put(b"", str(tmp_path / "absent" / "file"))


@pytest.mark.lab
@pytest.mark.parametrize("kind", KINDS)
def test_the_type_of_key_that_is_known_is_asked_for(server: sshd.Sshd, tmp_path: Path, kind: str) -> None:
    """Field fault: known_hosts holds ECDSA, the client negotiates another type and calls the host unknown."""
    file = tmp_path / "known_hosts"
    file.write_text(
        f"a line of junk\n[127.0.0.1]:{server.port} {server.host_key(kind)}\n@cert-authority * x\n"
    )
    with ssh.connect(server.host(host_key=None), known_hosts=[file]) as made:
        assert made.run(["echo", "in"]).out == b"in\n"
    with ssh.connect(server.host(host_key=server.host_key(kind))) as made:
        assert made.alive


@pytest.mark.lab
def test_an_unknown_key_is_refused_with_its_fingerprint(server: sshd.Sshd, tmp_path: Path) -> None:
    with pytest.raises(hostkeys.HostKeyRefused) as caught:
        ssh.connect(server.host(host_key=None), known_hosts=[tmp_path / "absent"])
    told = caught.value.told()
    shown = subprocess.run(
        ["ssh-keygen", "-lf", server.folder / "host_ed25519.pub"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split()[1] in told
    assert f"ssh -p {server.port}" in told
    assert server.host_key() in told
    assert isinstance(caught.value, HostUnreachable)
    assert not (tmp_path / "absent").exists()


@pytest.mark.lab
def test_a_changed_key_is_refused_wherever_it_is_known_from(server: sshd.Sshd, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    other = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    file = tmp_path / "known_hosts"
    file.write_text(f"[127.0.0.1]:{server.port} {other}\n")
    for refused in (server.host(host_key=other), server.host(host_key=None)):
        with pytest.raises(hostkeys.HostKeyRefused, match="another machine may be answering"):
            ssh.connect(refused, known_hosts=[file])
    file.write_text(f"[127.0.0.1]:{server.port} {server.host_key()}\n@revoked * {server.host_key()}\n")
    with pytest.raises(hostkeys.HostKeyRefused, match="revoked"):
        ssh.connect(server.host(host_key=None), known_hosts=[file])


@pytest.mark.lab
def test_keys_that_are_refused_locked_or_absent_are_told(
    server: sshd.Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "none"))
    for name, phrase in (("plain", ""), ("locked", "secret")):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-f", tmp_path / name], check=True)
    with pytest.raises(login.AuthenticationRefused, match="did not let"):
        ssh.connect(server.host(key=str(tmp_path / "plain")))
    with pytest.raises(login.AuthenticationRefused) as caught:
        ssh.connect(server.host(key=str(tmp_path / "locked")))
    assert "locked: refused" in caught.value.tried, (
        "nobody is asked for the passphrase of a key that would not do"
    )
    with pytest.raises(login.AuthenticationRefused) as caught:
        ssh.connect(server.host(key=str(tmp_path / "absent")))
    assert "absent" in caught.value.tried


@pytest.mark.lab
def test_a_server_without_keys_says_so(tmp_path: Path) -> None:
    made = sshd.made(tmp_path / "s", "PubkeyAuthentication no\nPasswordAuthentication yes")
    with (
        sshd.listening(made) as server,
        pytest.raises(login.AuthenticationRefused, match="it takes password"),
    ):
        ssh.connect(server.host())


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(HostUnreachable, match="nothing listens"):
        ssh.connect(Host(name="x", role=Role.CLIENT, ssh="127.0.0.1:1"))
    with pytest.raises(HostUnreachable, match="not known"):
        ssh.connect(Host(name="x", role=Role.CLIENT, ssh="no-such-name.invalid"))
    with pytest.raises(HostUnreachable, match="not up"):
        ssh.connect(Host(name="x", role=Role.CLIENT, ssh=f"unix:{tmp_path}/absent"))


def test_one_that_listens_and_says_nothing_is_given_up(tmp_path: Path) -> None:
    import socket

    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        begin = time.monotonic()
        with pytest.raises(HostUnreachable):
            ssh.connect(
                Host(name="x", role=Role.CLIENT, ssh=f"127.0.0.1:{mute.getsockname()[1]}"), timeout_s=1
            )
        assert time.monotonic() - begin < 15


@pytest.mark.lab
def test_over_a_unix_socket(tmp_path: Path) -> None:
    with sshd.behind_socket(sshd.made(tmp_path / "s"), tmp_path) as server:
        with ssh.connect(server.host()) as made:
            assert made.run(["echo", "in"]).out == b"in\n"
        with pytest.raises(hostkeys.HostKeyRefused):
            ssh.connect(server.host(host_key=None))


@pytest.mark.lab
def test_by_way_of_a_jump_host(server: sshd.Sshd, tmp_path: Path) -> None:
    config, known = tmp_path / "config", tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{server.port} {server.host_key()}\n")
    user = server.host().ssh.split("@")[0]
    config.write_text(
        f"Host jump\n  HostName 127.0.0.1\n  Port {server.port}\n  User {user}\n  IdentityFile {server.key}\n"
        f"Host far\n  HostName 127.0.0.1\n  Port {server.port}\n  ProxyJump jump\n  User {user}\n"
    )
    with ssh.connect(server.host(ssh="far", host_key=None), known_hosts=[known], config=config) as made:
        assert made.run(["echo", "in"]).out == b"in\n"


@pytest.mark.lab
def test_noise_of_the_login_shell_breaks_sftp_and_is_explained(tmp_path: Path) -> None:
    made = sshd.made(
        tmp_path / "s", "ForceCommand echo hello from .bashrc; exec /usr/lib/openssh/sftp-server"
    )
    with sshd.listening(made) as server, ssh.connect(server.host()) as connection:
        with pytest.raises(HostTrouble) as caught:
            connection.put(b"x", str(tmp_path / "file"))
        assert ".bashrc" in caught.value.advice


@pytest.mark.lab
def test_a_connection_that_is_lost_while_a_file_is_begun_is_lost(tmp_path: Path) -> None:
    with (
        sshd.behind_socket(sshd.made(tmp_path / "s", "ForceCommand sleep 60"), tmp_path) as server,
        ssh.connect(server.host()) as connection,
    ):
        cut = threading.Timer(1.0, server.cut)
        cut.start()
        with pytest.raises(ConnectionLost, match="while a file was begun"):
            connection.put(b"x", str(tmp_path / "file"))
        cut.join()


@pytest.mark.lab
def test_closing_from_another_thread_wakes_a_blocked_read(server: sshd.Sshd) -> None:
    connection = ssh.connect(server.host())
    process = connection.start(["cat"])
    threading.Timer(0.2, connection.close).start()
    assert process.read(60) == b""
    assert process.exit(5) is None
    with pytest.raises(ConnectionLost):
        connection.start(["true"])
    process.close()


@pytest.mark.lab
def test_a_transport_cut_under_load_ends_reading_and_writing(tmp_path: Path) -> None:
    with sshd.behind_socket(sshd.made(tmp_path / "s"), tmp_path) as server:
        connection = ssh.connect(server.host())
        process = connection.start(["cat", "/dev/zero"])
        assert process.read(30)
        threading.Timer(0.2, server.cut).start()
        with suppress(ConnectionLost):
            while process.read(30):
                pass
        with pytest.raises(ConnectionLost):
            process.write(b"x")
        connection.close()


def test_paramikos_own_tracebacks_stay_out_of_sight() -> None:
    assert not logging.getLogger("paramiko.transport").isEnabledFor(logging.ERROR)
