"""Ways to a host and their faults: jump hosts, proxy commands, few sessions, old algorithms, silence."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from lab import agents, ssh
from lab.errors import BadInput, ConnectionLost, HostUnreachable
from lab.model import Host, Role
from lab.ssh import process, wire
from tests import sshd
from tests.netns import ROOT, SERVER, office

lab_only = pytest.mark.lab


@pytest.fixture
def server(tmp_path: Path) -> Iterator[sshd.Sshd]:
    with sshd.listening(sshd.made(tmp_path / "sshd")) as running:
        yield running


def sends(connection: ssh.Connection) -> None:
    """Every byte comes back as it was."""
    data = bytes(range(256)) * 400
    with connection:
        assert connection.run(["cat"], data).out == data


# Ways


@lab_only
@pytest.mark.parametrize("ways", ["one list", "each from the other"])
def test_two_jump_hosts_each_by_the_configuration(tmp_path: Path, ways: str) -> None:
    with ExitStack() as stack:
        far, near, target = (
            stack.enter_context(sshd.listening(sshd.made(tmp_path / name)))
            for name in ("far", "near", "target")
        )
        known = tmp_path / "known"
        known.write_text("".join(f"[127.0.0.1]:{one.port} {one.host_key()}\n" for one in (far, near, target)))
        jumps = ("near,far", "") if ways == "one list" else ("far", " ProxyJump near\n")
        config = tmp_path / "config"
        config.write_text(
            f"Host near\n Port {near.port}\n IdentityFile {near.key}\n"
            f"Host far\n Port {far.port}\n IdentityFile {far.key}\n{jumps[1]}"
            f"Host target\n Port {target.port}\n ProxyJump {jumps[0]}\n VerifyHostKeyDNS yes\n"
            "Host *\n HostName 127.0.0.1\n"
        )
        host = target.host(ssh="target", host_key=None)
        connection = ssh.connect(host, known_hosts=[known], config=config)
        assert any("VerifyHostKeyDNS" in text for text in connection.unheeded)
        sends(connection)
        for one in (near, far):
            assert "Accepted publickey" in one.log(), "it was not jumped over"
        near_key = (near.folder / "authorized").read_text()
        (near.folder / "authorized").write_text("")
        with pytest.raises(HostUnreachable) as caught:
            ssh.connect(host, known_hosts=[known], config=config)
        assert "by way of" in caught.value.host
        (near.folder / "authorized").write_text(near_key)


def test_jump_hosts_that_go_in_a_circle_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "config"
    for text, why in (
        ("Host *\n ProxyJump gate\n", "loop|circle"),  # ssh itself notices this one
        ("Host office\n ProxyJump a\nHost a\n ProxyJump b\nHost b\n ProxyJump a\n", "circle"),
    ):
        config.write_text(text)
        with pytest.raises(BadInput, match=why):
            ssh.connect(Host(name="x", role=Role.CLIENT, ssh="office"), config=config)


RELAY = """
import socket, sys, threading, os
link = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def out():
    while data := link.recv(65536): os.write(1, data)
    os._exit(0)
threading.Thread(target=out).start()
try:
    while data := os.read(0, 65536): link.sendall(data)
finally:  # also where the client hung up before it had read everything
    link.shutdown(socket.SHUT_WR)
"""


@lab_only
def test_a_proxy_command_and_its_end(server: sshd.Sshd, tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    config = tmp_path / "config"
    config.write_text(
        f"Host bench\n HostName 127.0.0.1\n Port {server.port}\n"
        f" ProxyCommand {shlex.quote(sys.executable)} {relay} %h %p\n"
        "Host wrong\n ProxyCommand echo it is 'so and so' >&2; exit 3\n"
        "Host mute\n ProxyCommand sleep 600\n"
    )
    sends(ssh.connect(server.host(ssh="bench"), config=config))
    assert subprocess.run(["pgrep", "-f", str(relay)], check=False, capture_output=True).stdout == b""
    with pytest.raises(HostUnreachable, match="by its ProxyCommand; it said: it is so and so"):
        ssh.connect(server.host(ssh="wrong"), config=config)
    begin = time.monotonic()
    with pytest.raises(HostUnreachable, match="ProxyCommand"):
        ssh.connect(server.host(ssh="mute"), config=config, timeout_s=1)
    assert time.monotonic() - begin < 15


@lab_only
def test_a_server_that_hangs_up_at_first_is_tried_again(server: sshd.Sshd) -> None:
    """As sshd does with too many at once (MaxStartups)."""
    calls: list[int] = []
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)

        def serve() -> None:
            while not over.is_set():
                try:
                    link, _ = listener.accept()
                except TimeoutError:
                    continue
                calls.append(1)
                if len(calls) < 3:
                    link.close()
                    continue
                argv = [sys.executable, "-c", RELAY, "127.0.0.1", str(server.port)]
                with link:
                    subprocess.run(argv, stdin=link, stdout=link, check=False)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            name = server.host().ssh.replace(f":{server.port}", f":{listener.getsockname()[1]}")
            sends(ssh.connect(server.host(ssh=name)))
        finally:
            over.set()
            thread.join()
    assert len(calls) == 3


@lab_only
def test_a_firewall_that_forgets_idle_connections_sees_none(server: sshd.Sshd, tmp_path: Path) -> None:
    """A fake firewall cuts what is idle for 4 s, as real ones do after minutes."""
    config = tmp_path / "config"
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config.write_text(
            f"Host bench\n HostName 127.0.0.1\n Port {listener.getsockname()[1]}\n ServerAliveInterval 1\n"
            " ServerAliveCountMax 9\n"
        )

        def relay() -> None:
            outer, _ = listener.accept()
            with (
                suppress(ConnectionError),
                outer,
                socket.create_connection(("127.0.0.1", server.port)) as inner,
            ):
                while not over.is_set():
                    ready, _, _ = select.select([outer, inner], [], [], 4)
                    if not ready:
                        return
                    for one in ready:
                        data = one.recv(65536)
                        if not data:
                            return
                        (inner if one is outer else outer).sendall(data)

        thread = threading.Thread(target=relay)
        thread.start()
        try:
            connection = ssh.connect(server.host(ssh="bench"), config=config)
            time.sleep(10)
            sends(connection)
        finally:
            over.set()
            thread.join(30)


@lab_only
def test_a_jump_host_that_cannot_reach_the_target_says_so(server: sshd.Sshd, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        f"Host gate\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {server.key}\n"
        "Host bench\n HostName 127.0.0.1\n Port 1\n ProxyJump gate\n"
    )
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{server.port} {server.host_key()}\n")
    with pytest.raises(HostUnreachable, match="could not be reached from its jump host"):
        ssh.connect(server.host(ssh="bench"), config=config, known_hosts=[known])


@lab_only
def test_a_host_that_never_begins_is_not_waited_for(
    server: sshd.Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "BEGIN_S", 0.5)
    with ssh.connect(server.host()) as connection:
        table = connection._wired[0].wire._channel_handler_table
        with monkeypatch.context() as deaf:
            deaf.setitem(table, 99, lambda channel, message: None)  # its answers get lost
            with pytest.raises(ConnectionLost, match="could not be started"):
                connection.start(["true"])
        assert connection.run(["echo", "in"]).out == b"in\n"


# Few sessions


@lab_only
def test_one_session_at_a_time_is_enough(tmp_path: Path) -> None:
    with sshd.listening(sshd.made(tmp_path / "sshd", "MaxSessions 1")) as server:
        with ssh.connect(server.host()) as connection:
            with (
                agents.started(connection) as one,
                agents.started(connection, privileged=True, root="direct") as two,
            ):
                connection.put(b"data", str(tmp_path / "file"))
                assert connection.run(["echo", "in"]).out == b"in\n"
                assert one.ask("clock")["utc"] > 1e9
                assert two.ask("clock")["utc"] > 1e9
            for _ in range(5):
                assert connection.run(["echo", "in"]).out == b"in\n"
        accepted = server.log().count("Accepted publickey")
        assert 2 <= accepted <= 5, "what has room again is used again"
    assert (tmp_path / "file").read_bytes() == b"data"


@lab_only
def test_no_session_at_all_is_told(tmp_path: Path) -> None:
    with (
        sshd.listening(sshd.made(tmp_path / "sshd", "MaxSessions 0")) as server,
        ssh.connect(server.host()) as connection,
        pytest.raises(ConnectionLost, match=r"could not be started.*MaxSessions 0"),
    ):
        connection.start(["true"])


# What is no sshd: fakes


@contextmanager
def answering(said: bytes, *, ends: bool) -> Iterator[list[int]]:
    """A server that says this to everybody, whatever it hears; the port, then one entry for each connection."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as links:
        listener.settimeout(0.1)
        calls = [listener.getsockname()[1]]

        def serve() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    link, _ = listener.accept()
                    calls.append(1)
                    link.sendall(said)
                    if ends:
                        link.recv(100)
                        link.close()
                    else:
                        links.enter_context(link)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield calls
        finally:
            over.set()
            thread.join()


HTTP = b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"


@pytest.mark.parametrize(
    ("said", "ends", "text", "advice"),
    [
        (HTTP, True, "is no SSH server; it said: HTTP/1.1 400 Bad Request", "something else than sshd"),
        (HTTP, False, "is no SSH server; it said: HTTP/1.1 400 Bad Request", "something else than sshd"),
        (bytes(range(128, 256)) * 3, True, "is no SSH server", "something else than sshd"),
        (bytes(range(256)) * 3, False, "is no SSH server", "something else than sshd"),
        (b"", False, "did not say in time that it is an SSH server", "Check the address"),
        (b"SSH-2.0-x\r\n", False, "SSH-2.0-x.* fell silent while keys were exchanged", "Check the address"),
        (b"SSH-2.0-x\r\n" + b"\xff\x00" * 400, False, "calls itself SSH-2.0-x and then speaks no SSH", "Check the"),
        (b"Exceeded MaxStartups\r\n", True, "takes no connection now; it said: Exceeded MaxStartups", "Check the"),
    ],
)  # fmt: skip
def test_what_is_no_ssh_server_is_told(said: bytes, ends: bool, text: str, advice: str) -> None:
    with answering(said, ends=ends) as calls, pytest.raises(HostUnreachable, match=text) as caught:
        ssh.connect(Host(name="x", role=Role.CLIENT, ssh=f"127.0.0.1:{calls[0]}"), timeout_s=2.0)
    assert advice in caught.value.advice
    assert "\x1b" not in str(caught.value)
    assert len(calls) == (4 if b"MaxStartups" in said else 2), "tried again in vain, or not where it may help"


def test_a_proxy_command_that_talks_and_what_the_configuration_says_in_vain(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "Host bench\n ProxyCommand sh -c 'echo no key >&2; echo Welcome to the gate; sleep 1'\n VerifyHostKeyDNS yes\n"
    )
    with pytest.raises(HostUnreachable, match=r"complained: no key.* it said: Welcome to the gate") as caught:
        ssh.connect(Host(name="x", role=Role.CLIENT, ssh="bench"), config=config)
    assert "Look at ProxyCommand" in caught.value.advice
    assert "VerifyHostKeyDNS" in caught.value.advice


def test_a_proxy_commands_complaints_are_kept_within_bounds(tmp_path: Path) -> None:
    link = wire.by_command("sh -c 'yes first | head -c 5000000 >&2; yes last >&2'")
    time.sleep(0.5)
    link.close()
    assert link.said.startswith("first\nfirst")
    assert len(link.said) <= wire.KEPT_ERRORS
    assert "last" not in link.said
    link.close()


# Noise


@lab_only
def test_banners_and_messages_of_the_day_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "banner").write_bytes(b"\xff\xfe WELCOME \x1b[31m\n" * 2000)
    made = sshd.made(tmp_path / "sshd", f"Banner {tmp_path}/banner", "PrintMotd yes", "PrintLastLog yes")
    with sshd.listening(made) as server, ssh.connect(server.host()) as connection:
        assert connection.run(["printf", "\\351\\n"]).out == b"\xe9\n"
        with agents.started(connection) as agent:
            assert agent.ask("clock")["utc"] > 1e9


@lab_only
@pytest.mark.parametrize("shell", ["csh", "tcsh"])
def test_a_talking_cshrc_and_sftp(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    (tmp_path / ".cshrc").write_text("echo hello from .cshrc\nstty erase '^h'\n")
    force = f'exec env HOME={tmp_path} {shell} -c "$SSH_ORIGINAL_COMMAND"'
    made = sshd.made(tmp_path / "sshd", f"ForceCommand {force}")
    with sshd.listening(made) as server, ssh.connect(server.host()) as connection:
        assert connection.run(["true"]).out.startswith(b"hello"), "the noise is not there"
        with agents.started(connection) as agent:
            assert agent.ask("clock")["utc"] > 1e9


# Old servers


@lab_only
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("KexAlgorithms diffie-hellman-group14-sha1", "exchanging keys .* diffie-hellman-group14-sha1"),
        ("HostKeyAlgorithms ssh-rsa", "its own key .* ssh-rsa"),
        ("Ciphers chacha20-poly1305@openssh.com", "encrypting that this program knows.* chacha20"),
        (
            "KexAlgorithms sntrup761x25519-sha512@openssh.com",
            "exchanging keys that this program knows.* sntrup",
        ),
        (
            "MACs umac-64@openssh.com\nCiphers aes128-ctr",
            "checking what arrives that this program knows.* umac-64",
        ),
    ],
)
def test_the_algorithm_of_an_old_server_is_named(tmp_path: Path, line: str, told: str) -> None:
    with (
        sshd.listening(sshd.made(tmp_path / "sshd", line, kinds=("rsa",))) as server,
        pytest.raises(HostUnreachable, match=told) as caught,
    ):
        ssh.connect(server.host(host_key=server.host_key("rsa")))
    assert "sshd_config" in caught.value.advice
    assert ("Update sshd" in caught.value.advice) == ("this program" not in told)


@lab_only
@pytest.mark.parametrize(
    "line", ["KexAlgorithms curve25519-sha256", "KexAlgorithms curve25519-sha256@libssh.org"]
)
def test_the_usual_curve_goes_by_both_its_names(tmp_path: Path, line: str) -> None:
    with sshd.listening(sshd.made(tmp_path / "sshd", line)) as server:
        config = tmp_path / "config"
        config.write_text(f"Host bench\n HostName 127.0.0.1\n Port {server.port}\n {line}\n")
        ssh.connect(server.host(ssh="bench"), config=config).close()
        config.write_text(
            f"Host bench\n HostName 127.0.0.1\n Port {server.port}\n KexAlgorithms ecdh-sha2-nistp256\n"
        )
        with pytest.raises(HostUnreachable, match="that the SSH configuration allows") as caught:
            ssh.connect(server.host(ssh="bench"), config=config)
        assert "KexAlgorithms in ~/.ssh/config: curve25519" in caught.value.advice


@lab_only
def test_sound_algorithms_are_not_told_as_unsafe(tmp_path: Path) -> None:
    made = sshd.made(tmp_path / "sshd", "KexAlgorithms diffie-hellman-group18-sha512")
    with sshd.listening(made) as server, pytest.raises(HostUnreachable) as caught:
        ssh.connect(server.host())
    assert str(caught.value).endswith("that this program knows, only diffie-hellman-group18-sha512")
    assert "Nothing is wrong with these" in caught.value.advice


@lab_only
def test_a_jump_host_that_lets_nothing_through_and_an_address_to_come_from(tmp_path: Path) -> None:
    with ExitStack() as stack:
        jump = stack.enter_context(sshd.listening(sshd.made(tmp_path / "jump", "AllowTcpForwarding no")))
        target = stack.enter_context(sshd.listening(sshd.made(tmp_path / "target")))
        config = tmp_path / "config"
        common = f"Host *\n HostName 127.0.0.1\n IdentityFile {jump.key}\n"
        config.write_text(
            f"Host jump\n Port {jump.port}\nHost target\n Port {target.port}\n ProxyJump jump\n{common}"
        )
        known = tmp_path / "known"
        known.write_text(f"[127.0.0.1]:{jump.port} {jump.host_key()}\n")
        with pytest.raises(HostUnreachable, match="from its jump host") as caught:
            ssh.connect(target.host(ssh="target"), known_hosts=[known], config=config)
        assert "AllowTcpForwarding yes" in caught.value.advice
        config.write_text(f"Host target\n Port {target.port}\n BindAddress 203.0.113.5\n{common}")
        with pytest.raises(HostUnreachable, match=r"could not be reached from 203\.0\.113\.5") as caught:
            ssh.connect(target.host(ssh="target"), config=config)
        assert "BindAddress" in caught.value.advice
        config.write_text(f"Host target\n Port {target.port}\n AddressFamily inet6\n{common}")
        with pytest.raises(HostUnreachable, match=r"127\.0\.0\.1 has no IPv6 address"):
            ssh.connect(target.host(ssh="target"), config=config)


def deaf(stack: ExitStack) -> tuple[str, int]:
    """An address whose connections never come about: its queue is full."""
    listener = stack.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    for _ in range(4):
        link = stack.enter_context(socket.socket())
        link.setblocking(False)
        with suppress(BlockingIOError):
            link.connect(listener.getsockname())
    time.sleep(0.1)
    return listener.getsockname()


@lab_only
def test_a_name_with_an_address_that_is_dead_costs_its_share_and_only_once(
    server: sshd.Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "AFTER_S", 0.3)
    begun = []
    begin_to = wire._begun

    def counted(sock: socket.socket, address: tuple[str, int], bind: str) -> socket.socket:
        begun.append(address)
        return begin_to(sock, address, bind)

    with ExitStack() as stack:
        dead, alive = deaf(stack), ("127.0.0.1", server.port)
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", one) for one in (dead, alive)]
        monkeypatch.setattr(wire.socket, "getaddrinfo", lambda *_, **__: list(found))
        monkeypatch.setattr(wire, "_begun", counted)
        host = server.host(ssh=f"two.invalid:{server.port}")
        begin = time.monotonic()
        ssh.connect(host).close()
        assert time.monotonic() - begin < 10
        assert begun == [dead, alive]
        ssh.connect(host).close()
        assert begun[2:] == [alive], "the one that answered comes first"
        found.pop()
        with pytest.raises(HostUnreachable, match="did not answer in time"):
            ssh.connect(host, timeout_s=0.5)


@lab_only
def test_the_users_choice_of_algorithms_counts(server: sshd.Sshd, tmp_path: Path) -> None:
    config = tmp_path / "config"
    text = f"Host bench\n HostName 127.0.0.1\n Port {server.port}\n"
    config.write_text(f"{text} Ciphers aes256-gcm@openssh.com\n KexAlgorithms ecdh-sha2-nistp521\n")
    with ssh.connect(server.host(ssh="bench"), config=config) as connection:
        wire = connection._wired[0].wire
        assert wire.local_cipher == "aes256-gcm@openssh.com"
        assert list(wire.get_security_options().kex) == ["ecdh-sha2-nistp521"]
    config.write_text(f"{text} Ciphers chacha20-poly1305@openssh.com\n")
    with pytest.raises(HostUnreachable, match="none is known here"):
        ssh.connect(server.host(ssh="bench"), config=config)


# Silence

WAITING = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from lab import agents, ssh
from lab.errors import ConnectionLost
from lab.model import Host, Role
from lab.ssh import process
host = Host(name="bench", role=Role.CLIENT, ssh=sys.argv[1], key=sys.argv[2], host_key=sys.argv[3])
connection = ssh.connect(host)
agent = agents.started(connection)
time.sleep(float(sys.argv[4]))
agent.ask("clock")
print("up", flush=True)
sys.stdin.readline()
begin = time.monotonic()
try:
    for _ in agent.stream("command", {{"argv": ["sleep", "600"], "timeout_s": 900}}):
        pass
except ConnectionLost as error:
    print(round(time.monotonic() - begin, 1), error, flush=True)
connection.close()
"""


@lab_only
def test_a_host_that_falls_silent_is_noticed_in_15_seconds(tmp_path: Path) -> None:
    """Packets are dropped, nothing is closed. Before that, a session of which nobody wants anything stays."""
    if os.getuid() != 0:
        pytest.skip("sshd in a namespace needs root here")
    server = sshd.made(tmp_path / "sshd")
    with office() as net, ExitStack() as stack:
        argv = [str(sshd.SSHD), "-D", "-f", f"{server.folder}/config", "-E", f"{server.folder}/log"]
        process = stack.enter_context(net.popen("server", *argv, "-o", "ListenAddress=0.0.0.0:2222"))
        stack.callback(process.kill)
        end = time.monotonic() + 30
        while ":2222 " not in net.run("server", "ss", "-Hltn") and time.monotonic() < end:
            time.sleep(0.02)
        argv = [
            sys.executable,
            "-c",
            WAITING,
            f"root@{SERVER}:2222",
            str(server.key),
            server.host_key(),
            "18",
        ]
        client = subprocess.Popen(
            net.argv("c1", *argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with client:
            stack.callback(client.kill)
            assert client.stdout is not None
            assert client.stdin is not None
            assert client.stdout.readline() == "up\n", "idle for longer than the limit, it was lost"
            net.run(
                "server",
                "nft",
                "add table inet t; add chain inet t c { type filter hook input priority 0; policy drop; }",
            )
            client.stdin.write("now\n")
            client.stdin.flush()
            took, _, error = client.stdout.readline().partition(" ")
    assert "nothing was heard from it for 15 s" in error
    assert 10 < float(took) < 15 * 2
