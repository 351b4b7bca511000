"""The embedded lab on the real kernel: hosts over real sshd, and nothing left however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
import pytest

from lab import embedded
from lab.embedded import folders, needs, plan
from lab.errors import BadInput, HostLacks, LabError
from lab.model import Role
from ssh_agents import made
from tests import users

CHECKOUT = Path(__file__).resolve().parents[1]
PATIENCE_S = 30
ROOT = os.geteuid() == 0

MAKER = """
import sys, time
from lab import embedded
lab = embedded.up(clients=int(sys.argv[1]), tied=sys.argv[2] == "tied")
print(lab.folder, flush=True)
if sys.argv[2] == "tied":
    time.sleep(600)
"""


def on(folder: Path, host: str, command: str, check: bool = True) -> str:
    """Run a command on a lab host through the plain ssh; what it said, both streams."""
    words = ["ssh", "-F", f"{folder}/ssh_config", host, "--", command]
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert not check or done.returncode == 0, done.stdout
    return done.stdout


def processes(folder: Path) -> dict[int, str]:
    """Processes that have the lab's folder on their command line, except this test."""
    found = {}
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if str(folder) in words and int(each.name) != os.getpid():
                found[int(each.name)] = words
    return found


def namespaces(process: Path) -> set[str]:
    """Those in which it lives; none if it is gone, or not to be looked at by this user."""
    found = set()
    with contextlib.suppress(OSError):
        for link in (process / "ns").iterdir():
            found.add(str(link.readlink()))
    return found


def began(process: Path) -> str:
    """When a process began, which with its number says which process it is; nothing if it is gone."""
    with contextlib.suppress(OSError):
        return (process / "stat").read_text("utf-8").rpartition(")")[2].split()[19]
    return ""


@dataclass
class Outside:
    """What a lab takes up on this machine, seen from outside."""

    folder: Path
    keeper: int
    unshare: int
    holder: int
    namespaces: set[str]
    inhabitants: dict[Path, str]
    """Processes in them, and when they began: others get the numbers of namespaces that are gone."""

    @classmethod
    def of(cls, folder: Path) -> Outside:
        ours = processes(folder)
        keeper = next(pid for pid, words in ours.items() if "lab.embedded.keeper" in words)
        unshare = next(pid for pid, words in ours.items() if "unshare" in words.split()[0])
        holder = int(Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()[0])
        theirs = {one for pid in ours for one in namespaces(Path(f"/proc/{pid}"))}
        theirs -= namespaces(Path("/proc/self"))
        within = {each: began(each) for each in Path("/proc").glob("[0-9]*") if namespaces(each) & theirs}
        return cls(folder, keeper, unshare, holder, theirs, within)

    def left(self) -> list[str]:
        """What is still there of the lab."""
        mounts = Path("/proc/self/mountinfo").read_text("utf-8")
        # A zombie that its parent has not asked about has no command line and no namespaces.
        return [
            *processes(self.folder).values(),
            *(
                f"{each} in {sorted(namespaces(each) & self.namespaces)}"
                for each, then in self.inhabitants.items()
                if began(each) == then and namespaces(each) & self.namespaces
            ),
            *([str(self.folder)] if self.folder.exists() else []),
            *(line for line in mounts.splitlines() if str(self.folder) in line),
        ]

    def assert_gone(self) -> None:
        end = time.monotonic() + PATIENCE_S
        while self.left() and time.monotonic() < end:
            time.sleep(0.02)
        assert self.left() == []


@dataclass
class Maker:
    """A process of its own that made a lab."""

    process: subprocess.Popen[str]
    folder: Path


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def maker(data: Path) -> Iterator[Callable[..., Maker]]:
    made = []

    def make(clients: int = 1, kind: str = "tied") -> Maker:
        command = [sys.executable, "-c", MAKER, str(clients), kind]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)
        made.append(process)
        assert process.stdout is not None
        return Maker(process, Path(process.stdout.readline().strip()))

    yield make
    embedded.down()
    for process in made:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def lab() -> Iterator[embedded.Embedded]:
    with embedded.up(clients=2) as made:
        yield made


# ---- the hosts


@pytest.mark.lab
def test_hosts_have_roles_names_and_addresses(lab: embedded.Embedded) -> None:
    assert [host.name for host in lab.lab.hosts] == ["server", "proxy", "client", "client-2"]
    assert [host.name for host in lab.lab.having(Role.CLIENT)] == ["client", "client-2"]
    for host in lab.lab.hosts:
        seen = on(lab.folder, host.name, "hostname; ip -br addr show dev eth0").split()
        assert seen[0] == host.name
        assert f"{host.address}/24" in seen
        assert f"{host.address6}/64" in seen


@pytest.mark.lab
def test_profile_says_the_same_as_the_lab(lab: embedded.Embedded) -> None:
    profile = tomllib.loads(lab.profile_path.read_text("utf-8"))
    assert list(profile["hosts"]) == [host.name for host in lab.lab.hosts]
    for host in lab.lab.hosts:
        said = profile["hosts"][host.name]
        assert said["role"] == host.role.value
        for name in ("ssh", "key", "host_key", "address", "address6", "root", "url", "services", "delay"):
            assert said.get(name) == getattr(host, name)
        assert said.get("cache", {}).get("folder") == (host.cache and host.cache.folder)
    names = [experiment["name"] for experiment in profile["experiments"]]
    assert names == [
        "Proxy efficiency (quick)",
        "Proxy efficiency as published in 2008",
        "Proxy efficiency (full)",
    ]


@pytest.mark.lab
def test_paramiko_verifies_the_host_key_of_the_profile(lab: embedded.Embedded) -> None:
    host = lab.lab.one(Role.PROXY)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(host.ssh.removeprefix("unix:"))
        transport = paramiko.Transport(connection)
        try:
            transport.start_client(timeout=30)
            assert f"ssh-ed25519 {transport.get_remote_server_key().get_base64()}" == host.host_key
            user = pwd.getpwuid(os.geteuid()).pw_name
            transport.auth_publickey(user, paramiko.Ed25519Key.from_private_key_file(host.key or ""))
            sftp = paramiko.SFTPClient.from_transport(transport)
            assert sftp is not None
            assert sftp.normalize(".") == f"{lab.folder}/proxy/home"
            sftp.close()
        finally:
            transport.close()


@pytest.mark.lab
def test_a_key_of_someone_else_is_refused(lab: embedded.Embedded, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    config = (lab.folder / "ssh_config").read_text("utf-8").replace(f"{lab.folder}/key\n", f"{other}\n")
    (tmp_path / "config").write_text(config, "utf-8")
    words = ["ssh", "-F", f"{tmp_path}/config", "client", "true"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 255
    assert "Permission denied" in done.stderr


@pytest.mark.lab
def test_files_are_private(lab: embedded.Embedded) -> None:
    group_and_others = {path: path.stat().st_mode & 0o077 for path in (lab.folder, lab.folder / "server")}
    assert set(group_and_others.values()) == {0o011 if ROOT else 0}
    for name in ("key", "server/ssh", "server/host_key", "client/home"):
        assert (lab.folder / name).stat().st_mode & 0o077 == 0, name


@pytest.mark.lab
def test_nothing_reaches_the_users_own_home(lab: embedded.Embedded) -> None:
    said = on(
        lab.folder, "client", 'echo "$HOME" "$TMPDIR" "$XDG_CACHE_HOME" ~; pwd; cd; pwd; svn --version -q'
    )
    assert pwd.getpwuid(os.geteuid()).pw_dir not in said.split()
    assert said.count(f"{lab.folder}/client/") == 6


@pytest.mark.lab
@pytest.mark.parametrize("name", ["server", "proxy", "client-2"])
def test_hosts_reach_one_another_over_both_protocols(lab: embedded.Embedded, name: str) -> None:
    host = next(host for host in lab.lab.hosts if host.name == name)
    listen = (
        "import socket; s = socket.create_server(('::', 7007), family=socket.AF_INET6, dualstack_ipv6=True)\n"
        "print('listening', flush=True)\n"
        "for _ in range(3): c, a = s.accept(); c.sendall(a[0].encode()); c.close()\n"
    )
    words = ["ssh", "-F", f"{lab.folder}/ssh_config", name, "--", "python3 -u -"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(listen)
        server.stdin.close()
        assert server.stdout.readline() == "listening\n"
        fetch = "import socket; print(socket.create_connection(('{}', 7007), 20).recv(99).decode())"
        heard = [
            on(lab.folder, "client", f'python3 -c "{fetch.format(target)}"').strip()
            for target in (name, host.address, host.address6)
        ]
    client = lab.lab.one(Role.CLIENT)
    assert heard[0].removeprefix("::ffff:") in (client.address, client.address6)
    assert heard[1:] == [f"::ffff:{client.address}", client.address6]


@pytest.mark.lab
def test_every_packet_is_counted_as_itself(lab: embedded.Embedded) -> None:
    """A bulk transfer arrives in packets of at most the MTU, so that counters and limits see each."""
    client = lab.lab.one(Role.CLIENT)
    on(
        lab.folder,
        "server",
        "nft add table inet t && nft add chain inet t c '{ type filter hook input priority 0; }' && "
        f"nft add rule inet t c ip saddr {client.address} tcp dport 7008 counter",
    )
    receive = (
        "import socket; s = socket.create_server(('', 7008)); print('listening', flush=True)\n"
        "c, a = s.accept(); n = 0\n"
        "while d := c.recv(65536): n += len(d)\n"
        "print(n)\n"
    )
    words = ["ssh", "-F", f"{lab.folder}/ssh_config", "server", "--", "python3 -u -"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(receive)
        server.stdin.close()
        server.stdout.readline()
        address = lab.lab.one(Role.SERVER).address
        send = f"import socket; socket.create_connection(('{address}', 7008), 20).sendall(bytes(4_000_000))"
        on(lab.folder, "client", f'python3 -c "{send}"')
        assert server.stdout.readline().strip() == "4000000"
    listed = json.loads(on(lab.folder, "server", "nft -j list table inet t"))
    on(lab.folder, "server", "nft delete table inet t")
    rule = next(item["rule"] for item in listed["nftables"] if "rule" in item)
    counter = next(part["counter"] for part in rule["expr"] if "counter" in part)
    assert counter["bytes"] > 4_000_000
    assert counter["bytes"] / counter["packets"] <= 1500


@pytest.mark.lab
def test_line_and_counter_tools_work_on_a_host(lab: embedded.Embedded) -> None:
    said = on(
        lab.folder,
        "server",
        "ip link add ifb9 type ifb && ip link set ifb9 up && "
        "tc qdisc add dev ifb9 root tbf rate 1mbit burst 1600 limit 64000 && "
        "tc qdisc show dev ifb9; ip link del ifb9",
    )
    assert "qdisc tbf" in said


@pytest.mark.lab
def test_the_server_can_be_cut_into(lab: embedded.Embedded) -> None:
    server = lab.lab.one(Role.SERVER)
    assert server.delay is not None
    _kind, bridge, port = server.delay.split(":")
    ports = on(lab.folder, "server", "bridge link show")
    assert f"{port}@{bridge}" in ports or f"{port}: " in ports
    assert "eth0p" in ports
    assert on(lab.folder, "server", f"ip -br addr show dev {bridge}").split()[2:] == []


@pytest.mark.lab
def test_a_terminal_can_be_had(lab: embedded.Embedded) -> None:
    words = ["ssh", "-tt", "-F", f"{lab.folder}/ssh_config", "proxy", "--", "tty"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("/dev/pts/"), done.stderr


@pytest.mark.lab
def test_users_added_to_this_machine_meanwhile_change_nothing_in_the_lab(lab: embedded.Embedded) -> None:
    """A package that somebody installs does so, and took the lab's own users away: root could log in no more."""
    files = ["passwd", "group", "hosts", *(["shadow"] if ROOT else [])]
    look = f"cd /etc && cat {' '.join(files)}"
    before = on(lab.folder, "server", look)
    assert lab.lab.one(Role.PROXY).address in before
    with users.user():
        assert on(lab.folder, "server", look) == before


@pytest.mark.lab
def test_a_host_changes_nothing_in_the_machines_etc(lab: embedded.Embedded) -> None:
    assert "Read-only" in on(lab.folder, "server", "touch /etc/bl-test", check=False)
    assert not Path("/etc/bl-test").exists()
    # Often a symbolic link to a folder beside /etc.
    assert on(lab.folder, "server", "cat /etc/os-release") == Path("/etc/os-release").read_text("utf-8")


@pytest.mark.lab
def test_two_labs_side_by_side_do_not_meet(lab: embedded.Embedded) -> None:
    with embedded.up() as other:
        assert other.folder != lab.folder
        on(other.folder, "server", "tc qdisc add dev eth0 root tbf rate 1mbit burst 1600 limit 64000")
        assert "tbf" in on(other.folder, "server", "tc qdisc show dev eth0")
        assert "tbf" not in on(lab.folder, "server", "tc qdisc show dev eth0")
        outside = Outside.of(other.folder)
    outside.assert_gone()
    assert on(lab.folder, "client", "hostname") == "client\n"


# ---- the end


@pytest.mark.lab
def test_close_leaves_nothing_although_the_hosts_are_busy() -> None:
    with embedded.up() as lab:
        on(lab.folder, "client", "setsid nohup sleep 600 >/dev/null 2>&1 & touch $HOME/busy")
        outside = Outside.of(lab.folder)
        assert len(outside.namespaces) >= 10
    assert outside.left() == []
    lab.close()


@pytest.mark.lab
@pytest.mark.parametrize("victim", ["maker", "keeper", "unshare", "holder"])
def test_nothing_is_left_when_one_is_killed(maker: Callable[..., Maker], victim: str) -> None:
    made = maker()
    on(made.folder, "server", "setsid nohup sleep 600 >/dev/null 2>&1 & touch $HOME/busy")
    outside = Outside.of(made.folder)
    os.kill(_pid(made, outside, victim), signal.SIGKILL)
    if victim == "maker":
        made.process.wait(PATIENCE_S)
    outside.assert_gone()


def _pid(made: Maker, outside: Outside, victim: str) -> int:
    return {
        "maker": made.process.pid,
        "keeper": outside.keeper,
        "unshare": outside.unshare,
        "holder": outside.holder,
    }[victim]


@pytest.mark.lab
def test_what_is_left_when_both_are_killed_is_found(maker: Callable[..., Maker]) -> None:
    made = maker()
    outside = Outside.of(made.folder)
    # The keeper cannot act while it is stopped, so both are dead before either has noticed.
    os.kill(outside.keeper, signal.SIGSTOP)
    os.kill(outside.holder, signal.SIGKILL)
    os.kill(outside.keeper, signal.SIGKILL)
    end = time.monotonic() + PATIENCE_S
    while len(outside.left()) > 1 and time.monotonic() < end:
        time.sleep(0.02)
    assert outside.left() == [str(made.folder)]
    assert embedded.down() == [made.folder]
    assert outside.left() == []


@pytest.mark.lab
def test_a_living_lab_is_not_swept(lab: embedded.Embedded) -> None:
    assert embedded.sweep() == []
    assert lab.folder in [each.folder for each in embedded.status()]


# ---- lab up, lab down


@pytest.mark.lab
def test_up_outlives_its_maker_and_down_ends_it(maker: Callable[..., Maker], data: Path) -> None:
    assert embedded.down() == []
    made = maker(2, "untied")
    assert made.process.wait(PATIENCE_S) == 0
    outside = Outside.of(made.folder)
    profile = data / "labs" / "embedded.toml"
    # Whoever runs the tests may have a lab of `lab up` of their own.
    (standing,) = [each for each in embedded.status() if not each.tied and each.folder == made.folder]
    assert standing.profile == profile
    assert standing.hosts == ("server", "proxy", "client", "client-2")
    assert embedded.shell("client-2", ["sh", "-c", "test $(hostname) = client-2"]) == 0
    assert embedded.shell("client-2", ["sh", "-c", "exit 7"]) == 7
    with pytest.raises(BadInput, match="no host desk"):
        embedded.shell("desk", [])
    with pytest.raises(BadInput, match="up already"):
        embedded.up(tied=False)
    assert embedded.down() == [made.folder]
    assert outside.left() == []
    assert not profile.exists()
    assert embedded.down() == []
    with pytest.raises(BadInput, match="no lab is up"):
        embedded.shell("client", [])


@pytest.mark.lab
def test_an_edited_profile_is_put_aside(data: Path) -> None:
    with embedded.up(tied=False) as lab:
        text = lab.profile_path.read_text("utf-8")
        lab.profile_path.write_text(text + "# mine\n", "utf-8")
    assert not lab.profile_path.exists()
    assert lab.profile_path.with_name("embedded.toml.edited").read_text("utf-8").endswith("# mine\n")


@pytest.mark.lab
def test_up_without_a_place_for_its_profile_leaves_no_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_text("a file, no folder", "utf-8")
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    before = {lab.folder for lab in folders.found()}
    with pytest.raises(LabError, match="profile cannot be written"):
        embedded.up(tied=False)
    assert {lab.folder for lab in folders.found()} <= before


@pytest.mark.lab
def test_up_that_is_interrupted_or_killed_leaves_no_lab(data: Path) -> None:
    interrupted = """
import os, signal, sys
from lab import embedded
from lab.embedded import making
def hit(planned, hosts):
    print(planned.folder, flush=True)
    os.kill(os.getpid(), int(sys.argv[1]))
    signal.pause()
making._write_profile = hit
embedded.up(tied=False)
"""
    for number in (signal.SIGINT, signal.SIGKILL):
        command = [sys.executable, "-c", interrupted, str(int(number))]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=CHECKOUT
        ) as process:
            assert process.stdout is not None
            folder = Path(process.stdout.readline().strip())
            process.wait(PATIENCE_S)
        assert folder.name.startswith("branchlab-")
        end = time.monotonic() + PATIENCE_S
        while (processes(folder) or folder.exists()) and time.monotonic() < end:
            time.sleep(0.02)
        assert not processes(folder)
        assert not folder.exists()


# ---- an ordinary user


ORDINARY = """
import subprocess
from lab import embedded
def on(host, command):
    words = ["ssh", "-F", f"{lab.folder}/ssh_config", host, command]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
with embedded.up() as lab:
    print(lab.folder)
    done = on("server", "tc qdisc add dev eth0 root tbf rate 1mbit burst 1600 limit 64000 && "
        "tc qdisc show dev eth0 && "
        "ip link add ifb0 type ifb && nft add table inet t && nft list tables && id -u")
    print(done.stdout, done.stderr)
    print(on("proxy", "python3 -c 'import socket; socket.create_server((str(), 80)); print(80)'"))
"""


def ordinary_python() -> str | None:
    """An interpreter that any user may start, able to import the lab."""
    for python in (sys.executable, "/usr/bin/python3"):
        command = [python, "-c", "import sys; assert sys.version_info >= (3, 11); import lab.embedded"]
        with contextlib.suppress(OSError):
            if not subprocess.run(
                command, env=_environment(), cwd="/", capture_output=True, **_someone()
            ).returncode:
                return python
    return None


def _someone() -> dict[str, object]:
    user = pwd.getpwnam("daemon")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _environment() -> dict[str, str]:
    return {"PATH": needs.SEARCH, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"}


def as_someone(script: str, *before: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a user with no rights at all, after the words of another command."""
    if not ROOT:
        pytest.skip("only root can become another user; as an ordinary user every other test shows the same")
    python = ordinary_python()
    if python is None:
        pytest.skip("no Python 3.11 here that an ordinary user may start and that may read this checkout")
    command = [*before, python, "-c", script]
    return subprocess.run(
        command, env=_environment(), cwd="/", capture_output=True, text=True, timeout=100, **_someone()
    )


@pytest.mark.lab
def test_an_ordinary_user_has_a_whole_lab() -> None:
    done = as_someone(ORDINARY)
    assert done.returncode == 0, done.stderr
    assert "qdisc tbf" in done.stdout
    assert "table inet t" in done.stdout
    assert f"\n{pwd.getpwnam('daemon').pw_uid}\n" in done.stdout
    assert "stdout='80\\n'" in done.stdout
    assert not Path(done.stdout.split()[0]).exists()


REFUSED = """
from lab import embedded
from lab.errors import HostLacks
try:
    embedded.up()
except HostLacks as error:
    print(error.told())
"""


@pytest.mark.lab
def test_namespaces_that_are_used_up_are_named() -> None:
    """A user namespace with a limit of its own: there user.max_user_namespaces can be 0 without harm."""
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    done = as_someone(REFUSED, "unshare", *needs.ROOTLESS, "sh", "-c", limit, "sh")
    assert "user.max_user_namespaces = 0" in done.stdout, done.stderr
    assert "sudo sysctl -w user.max_user_namespaces=" in done.stdout


@pytest.mark.lab
def test_namespaces_without_their_rights_are_noticed_and_nothing_is_left() -> None:
    """As AppArmor does it: unshare succeeds, and the first device is refused."""
    if not ROOT:
        pytest.skip("only root can give up a right that it would have in a namespace")
    before = labs()
    command = [
        "setpriv",
        "--bounding-set",
        "-net_admin",
        "--inh-caps",
        "-net_admin",
        sys.executable,
        "-c",
        REFUSED,
    ]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=100)
    assert "Operation not permitted" in done.stdout, done.stdout + done.stderr
    assert "--cap-add NET_ADMIN" in done.stdout
    assert labs() <= before


def labs() -> set[Path]:
    """Folders of labs of this test process."""
    return set(Path(tempfile.gettempdir()).glob(f"{folders.PREFIX}*"))


# ---- without a kernel


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user.max_user_namespaces", "0"),
        ("kernel.unprivileged_userns_clone", "0"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1"),
    ],
)
def test_the_setting_in_the_way_is_named(name: str, value: str) -> None:
    settings = {
        "user.max_user_namespaces": "15000",
        "kernel.unprivileged_userns_clone": "1",
        "kernel.apparmor_restrict_unprivileged_userns": "0",
    } | {name: value}
    told = needs.no_namespaces("unshare", "refused", root=False, read=settings.get).told()
    assert f"{name} = {value}" in told
    assert told.count("kernel.") + told.count("user.max") == 2  # what is in the way, and its cure
    assert "sudo" in told


def test_without_a_known_setting_the_ways_out_are_still_named() -> None:
    told = needs.no_namespaces("unshare", "refused", root=False, read=lambda _name: None).told()
    assert "refused" in told
    assert "as root" in told


def test_all_missing_programs_are_named_at_once_with_their_packages() -> None:
    with pytest.raises(HostLacks) as caught:
        needs.check_programs(find=lambda _name: None, exists=lambda _path: False)
    told = caught.value.told()
    for name, package in (needs.PROGRAMS | needs.FILES).items():
        assert f"{name} ({package})" in told
    assert " apache2 " not in caught.value.advice  # that package would start a web server


def test_one_missing_program_is_named_alone() -> None:
    with pytest.raises(HostLacks, match=r"made of: nft \(nftables\)$"):
        needs.check_programs(find=lambda name: None if name == "nft" else name, exists=lambda _path: True)


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    planned = plan.planned(tmp_path, tmp_path / "profile.toml", 3, tied=True)
    (tmp_path / plan.MARK).write_text(planned.dumped(), "utf-8")
    assert plan.loaded(tmp_path) == planned
    assert len({host.address for host in planned.hosts}) == 5


@pytest.mark.parametrize("clients", [0, -1, 201])
def test_a_lab_has_one_to_two_hundred_clients(tmp_path: Path, clients: int) -> None:
    with pytest.raises(ValueError, match="1 to 200"):
        plan.planned(tmp_path, tmp_path / "profile.toml", clients, tied=True)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"hosts": [{"name": 1}]}'])
def test_junk_is_no_plan(tmp_path: Path, text: str) -> None:
    (tmp_path / plan.MARK).write_text(text, "utf-8")
    with pytest.raises(ValueError):
        plan.loaded(tmp_path)


@pytest.mark.parametrize("name", ["with space", "x" * 90, "per%cent"])
def test_a_folder_in_which_sshd_could_not_live_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(BadInput, match="cannot be made in"):
        folders.made(tmp_path / name)


def test_a_folder_that_is_no_labs_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / f"{folders.PREFIX}mine"
    mine.mkdir()
    (mine / "letter").write_text("dear", "utf-8")
    assert embedded.sweep(tmp_path) == []
    assert (mine / "letter").exists()


@pytest.mark.skipif(not ROOT, reason="the record is root's")
def test_what_root_wrote_down_of_a_labs_folders_goes_with_the_lab(tmp_path: Path) -> None:
    lab, other = tmp_path / "branchlab-x", tmp_path / "branchlab-xy"
    try:
        for one in (lab, other):
            one.mkdir()
            made.noted({"path": f"{one}/cache", "what": "cache", "parents": []})
        folders.remove(lab)
        assert made.record(f"{lab}/cache") is None
        assert made.record(f"{other}/cache") is not None
    finally:
        for one in (lab, other):
            made.struck(f"{one}/cache")
