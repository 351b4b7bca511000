"""What can be known of Windows hosts without Windows: agents where POSIX is hidden, and started by FAKE shells."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sshd
from netns import ROOT
from test_agent_main import VERSIONS, Talk, python_of

from lab import agents, ssh
from lab.errors import AgentRefused, HostLacks
from ssh_agents import command, command_plain, facts, protocol, system

HIDDEN = '''
import getpass, os, platform, select, shutil, signal, socket, subprocess, sys, tempfile, threading, time, fcntl

class FakeMsvcrt:
    """Locks as Windows has them, made of this system's."""
    LK_NBLCK = 2
    def __init__(self, flock, how): self._flock, self._how = flock, how
    def locking(self, handle, mode, count): self._flock(handle, self._how)
    def setmode(self, handle, mode): return 0

sys.modules["msvcrt"] = FakeMsvcrt(fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB)
for name in "fcntl pwd grp resource termios tty pty".split():
    sys.modules[name] = None
for module, names in {
    os: "getuid geteuid getgid getegid getppid fork forkpty setsid killpg posix_spawn wait3 wait4 waitid pread pwrite"
    " fchmod fchown chown getloadavg sched_getaffinity uname mkfifo O_NOFOLLOW",
    signal: "SIGHUP SIGQUIT SIGPIPE SIGXFSZ pthread_sigmask sigtimedwait",
    select: "poll", socket: "AF_UNIX AF_NETLINK", time: "CLOCK_BOOTTIME",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os.supports_dir_fd = set()
subprocess._USE_POSIX_SPAWN = False  # the standard library's own use of it
'''
"""Put before the agent: what Windows lacks is not there. What the standard library itself needs is loaded first."""


POSIX_ONLY = {"fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "posix", "syslog"}


@pytest.mark.parametrize("file", sorted((ROOT / "ssh_agents").glob("*.py")), ids=lambda file: file.stem)
def test_no_module_of_posix_is_imported_unguarded(file: Path) -> None:
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Import):
            assert not POSIX_ONLY & {name.name for name in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            assert statement.module not in POSIX_ONLY


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("agent") / "agent.py"
    path.write_bytes(HIDDEN.encode() + agents.bundle().source)
    yield path
    shutil.rmtree(Path(tempfile.gettempdir()) / "branchlab-run")  # where leases are without POSIX


@pytest.fixture(params=VERSIONS)
def agent(request: pytest.FixtureRequest, bundle: Path) -> Iterator[Talk]:
    talk = Talk(python_of(request.param), bundle)
    yield talk
    assert talk.close()[0] == 0


def test_nothing_that_only_posix_has_is_needed_to_start(agent: Talk) -> None:
    hello = agent.ask(1, "hello")["done"]
    assert hello["uid"] is None
    assert agent.ask(2, "clock")["done"]["utc"] > 1e9
    facts = agent.ask(3, "facts", tools=["git", "svn"])["done"]
    assert (facts["uid"], facts["loadavg"]) == (None, None)
    assert not any(facts["offloads"].values())
    assert facts["cpus"] >= 1


def test_commands_run_by_subprocess(agent: Talk) -> None:
    script = (
        "import sys; print(sys.stdin.read()); sys.stdout.flush(); sys.stderr.write(' Łódź '); sys.exit(3)"
    )
    word = agent.ask(1, "command", argv=[sys.executable, "-c", script], timeout_s=60, stdin="hé\n")["done"]
    assert (word["exit"], word["signal"], word["timed_out"], word["cancelled"]) == (3, None, False, False)
    assert sorted(word["tail"].split()) == ["hé", "Łódź"]
    assert 0 < word["wall_s"] < 60
    # Only Windows itself tells what a process used: elsewhere that is unknown, and no zero.
    assert (word["user_s"], word["system_s"], word["peak_kib"]) == (None, None, None)
    missing = agent.ask(2, "command", argv=["no-such-program-here"], timeout_s=5)["failed"]
    assert missing["kind"] == "missing"
    endless = [sys.executable, "-c", "import time; time.sleep(600)"]
    word = agent.ask(3, "command", argv=endless, timeout_s=0.3)["done"]
    assert (word["timed_out"], word["exit"]) == (True, None)
    agent.send({"id": 4, "verb": "command", "args": {"argv": endless, "timeout_s": 600}})
    agent.ask(5, "cancel", target=4)
    assert agent.last(4)["done"]["cancelled"]


def test_megabytes_come_whole_and_in_order(agent: Talk) -> None:
    script = "for n in range(200000): print('%09d' % n)"
    agent.send(
        {
            "id": 1,
            "verb": "command",
            "args": {"argv": [sys.executable, "-c", script], "timeout_s": 60, "tail": 20},
        }
    )
    text = ""
    while True:
        message = agent.next()
        if "done" in message:
            break
        text += message["data"].get("text", "")
    assert [int(line) for line in text.split()] == list(range(200_000))
    assert message["done"]["tail"] == "000199998\n000199999\n"[-20:]


@pytest.mark.parametrize("python", VERSIONS)
@pytest.mark.parametrize("killed", [False, True])
def test_scratch_folders_are_promised_and_taken_back_without_an_agent(
    python: str, killed: bool, bundle: Path
) -> None:
    """The watcher is started in the system's own way, and looks at locks of the system's own kind."""
    agent = Talk(python_of(python), bundle)
    assert agent.ask(1, "files.scratch", name="t")["failed"]["kind"] == "lapsed"
    assert "done" in agent.ask(2, "lease.open", lease_s=60)
    folder = Path(agent.ask(3, "files.scratch", name="t")["done"]["path"])
    assert folder.is_dir()
    assert agent.ask(4, "lease.renew")["done"]["left_s"] == 60
    assert any(one["alive"] and one["mine"] for one in agent.ask(5, "leases")["done"]["leases"])
    if killed:
        agent.process.kill()
        agent.process.wait(10)
        agent.drop()
    else:
        assert "t" in str(agent.ask(6, "lease.close")["done"]["undone"])
        assert agent.close()[0] == 0
    end = time.monotonic() + 60
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.exists()


def test_a_folder_of_files_is_listed_and_purged_by_paths(agent: Talk) -> None:
    """Only by who logs in, only where the folder says so, and never through a link."""
    folder = Path(tempfile.mkdtemp(prefix="branchlab-test-"))
    cache, theirs = folder / "cache", folder / "theirs"
    (cache / "1f" / "a").mkdir(parents=True)
    theirs.mkdir()
    for path in (cache / "1f" / "a" / "one", cache / "two", theirs / "three"):
        path.write_bytes(b"123")
    (cache / "out").symlink_to(theirs)
    where = {"kind": "folder", "folder": str(cache), "owns": True}
    refused = agent.ask(1, "cache.list", **where)["failed"]
    assert (refused["kind"], ".branchlab-may-purge" in refused["text"]) == ("denied", True)
    (cache / ".branchlab-may-purge").touch()
    assert agent.ask(2, "cache.list", **where)["done"]["objects"] == 2
    assert agent.ask(3, "cache.purge", **where, urls=["two", "out/three"])["done"]["removed"] == 1
    assert agent.ask(4, "cache.purge", **where, all=True)["done"]["removed"] == 1
    assert agent.ask(5, "cache.list", **where)["done"]["objects"] == 0
    assert (theirs / "three").exists()
    assert (cache / ".branchlab-may-purge").exists()
    apache = agent.ask(6, "cache.list", kind="apache-disk", folder=str(cache))["failed"]
    assert apache["kind"] == "unsupported"
    shutil.rmtree(folder)


@pytest.mark.parametrize("python", VERSIONS)
def test_what_is_linuxs_own_answers_that_it_is_not_on_this_system(python: str, bundle: Path) -> None:
    root = Talk(python_of(python), bundle, "privileged")
    for number, verb in enumerate(
        (
            "line.check",
            "line.apply",
            "line.read",
            "line.lift",
            "traffic.start",
            "traffic.read",
            "traffic.stream",
        ),
        1,
    ):
        failed = root.ask(number, verb)["failed"]
        assert failed["kind"] == "unsupported"
        assert "not on this system" in failed["text"]
    requests: list[tuple[str, dict[str, Any]]] = [
        ("cache.list", {"kind": "apache-disk", "folder": "/var/cache/branchlab-none/cache"}),
        ("service.start", {"kind": "svn-server", "folder": "/tmp/none", "options": {}}),
        ("footprint", {}),
    ]
    for number, (verb, args) in enumerate(requests, 100):
        word = root.ask(number, verb, **args)
        # Done, or refused in words; nothing may fall over for want of POSIX.
        assert "done" in word or word["failed"]["kind"] not in ("defect",), (verb, word)
    assert root.close()[0] == 0


def test_what_a_process_used_and_when_it_began_is_asked_of_windows_only_there() -> None:
    assert system.started_at(1) is not None
    assert system.quiet_flags() == 0
    assert system.apart() == {"start_new_session": True, "cwd": "/"}


def test_output_is_read_in_the_hosts_code_page_unless_it_is_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "code_page", lambda: 936)  # as a Chinese Windows says
    script = (
        "import sys, time; out = sys.stdout.buffer; both = '找不到文件'.encode('gbk')\n"
        "for byte in both: out.write(bytes([byte])); out.flush(); time.sleep(0.01)\n"
        "out.write(b'\\r\\n' + 'Łódź'.encode() + b'\\n' + both)"
    )
    call = protocol.Call(
        lambda event, data: None,
        lambda: False,
        lambda seconds: bool(time.sleep(seconds)),
        lambda entry: "",
        lambda name: None,
    )
    said: list[str] = []
    asked = command_plain.Asked(
        sys.executable, [sys.executable, "-c", script], None, dict(os.environ), None, 60.0
    )
    command_plain.run(asked, lambda stream, data, text: said.append(text), call)
    assert "".join(said) == "找不到文件\r\nŁódź\n找不到文件"
    one = command._Command({"argv": [sys.executable, "-c", script], "timeout_s": 60.0}, call)
    assert one._run_plain()["tail"] == "找不到文件\r\nŁódź\n找不到文件"
    assert facts.tell({"tools": []}, call)["code_page"] == 936
    assert system.text_of(b"\xff", 99999) == "\ufffd"  # a page that nobody knows


# ---- shells


@pytest.mark.lab
@pytest.mark.parametrize("shell", ["cmd", "powershell"])
@pytest.mark.parametrize("python", ["python", "py"])
def test_agents_start_under_a_fake_of_windows_shells(tmp_path: Path, shell: str, python: str) -> None:
    fake = Path(__file__).with_name("fake_windows_shell.py")
    force = f'exec {shlex.quote(sys.executable)} {fake} {shell} {python} "$SSH_ORIGINAL_COMMAND"'
    with (
        sshd.listening(sshd.made(tmp_path / "s", f"ForceCommand {force}")) as server,
        ssh.connect(server.host()) as connection,
    ):
        for privileged in (False, False, True):  # the second time it is kept already
            with agents.started(connection, privileged=privileged, root="direct") as agent:
                assert agent.ask("clock")["utc"] > 1e9
                assert agent.hello["privileged"] is privileged
        with pytest.raises(AgentRefused, match="unknown verb"):
            agents.started(connection).ask("nonsense")


@pytest.mark.lab
@pytest.mark.parametrize("shell", ["cmd", "powershell"])
def test_a_windows_without_python_is_told_so(tmp_path: Path, shell: str) -> None:
    fake = Path(__file__).with_name("fake_windows_shell.py")
    force = f'exec {shlex.quote(sys.executable)} {fake} {shell} none "$SSH_ORIGINAL_COMMAND"'
    with (
        sshd.listening(sshd.made(tmp_path / "s", f"ForceCommand {force}")) as server,
        ssh.connect(server.host()) as connection,
        pytest.raises(HostLacks, match="needs python3") as caught,
    ):
        agents.started(connection)
    assert "Windows" in caught.value.advice
    assert "py -3" in caught.value.tried
