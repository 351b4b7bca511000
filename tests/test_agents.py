"""lab.agents with the real bundle: over a local process, and over real sshd servers."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import re
import select
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from lab import agents, ssh
from lab.agents import bundling, starting, systems
from lab.agents.bundling import launcher
from lab.errors import AgentRefused, ConnectionLost, HostLacks, LabError, Stopped
from lab.ssh import process
from lab.stop import Stop
from tests import sshd

SLEEP = {"argv": ["sleep", "600"], "timeout_s": 900}


class Local:
    """A process on this machine, as `lab.ssh.Process` is one over SSH."""

    def __init__(self, argv: Sequence[str], errors: Path) -> None:
        self._errors = errors
        with errors.open("wb") as to:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=to, bufsize=0
            )
        assert self.process.stdout is not None
        self._out = self.process.stdout
        self._lock = threading.Lock()

    def read(self, timeout_s: float | None = None) -> bytes:
        with self._lock:
            if self._out.closed:
                return b""
            if not select.select([self._out], [], [], timeout_s)[0]:
                raise TimeoutError
            return self._out.read(65536) or b""

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
        except (OSError, ValueError) as error:
            raise ConnectionLost(str(error)) from error

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def errors(self) -> str:
        return self._errors.read_text()

    def exit(self, timeout_s: float) -> int | None:
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.close_input()
        with self._lock:
            self._out.close()


class Machine:
    """This machine as a host; `wrap` changes the argument list as a login shell or sudo would."""

    name = "here"

    def __init__(self, folder: Path, wrap: Callable[[list[str]], list[str]] = list) -> None:
        self._folder, self._wrap = folder, wrap
        self.last: Local | None = None

    def start(self, argv: Sequence[str]) -> Local:
        env = ["env", f"XDG_CACHE_HOME={self._folder}/xdg", f"HOME={self._folder}"]
        words = shlex.split(argv) if isinstance(argv, str) else argv
        python = [sys.executable if word == "python3" else word for word in words]
        self.last = Local([*env, *self._wrap(python)], self._folder / "errors")
        return self.last


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    if made.last is not None:
        made.last.close()


@pytest.fixture
def agent(machine: Machine) -> Iterator[agents.Agent]:
    with agents.started(machine) as made:
        yield made


def test_the_bundle_is_the_same_each_time_and_says_where_sources_lack(tmp_path: Path) -> None:
    made = agents.bundle()
    assert made == agents.bundle()
    assert made.digest == hashlib.sha256(made.source).hexdigest()
    assert b"BUNDLE_TEXT" in made.source
    (tmp_path / "__init__.pyc").write_bytes(b"")
    with pytest.raises(LabError, match="lacks the sources"):
        agents.bundle(tmp_path)  # type: ignore[arg-type]  # a Path is as good a Traversable


def test_the_bundle_knows_its_own_text_as_a_file_and_from_the_loader(tmp_path: Path) -> None:
    """The watcher's file is written from sys.modules["__main__"].BUNDLE_TEXT."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "__init__.py").write_text("")
    (tmp_path / "p" / "__main__.py").write_text(
        "import sys, ssh_agents.other\ndef main():\n"
        " print(len(sys.modules['__main__'].BUNDLE_TEXT), sys.argv[1:], ssh_agents.other.SIGN)\n"
    )
    (tmp_path / "p" / "other.py").write_text("SIGN = 'é\\n'.strip()\n", encoding="utf-8")
    made = agents.bundle(tmp_path / "p")  # type: ignore[arg-type]
    (tmp_path / "agent.py").write_bytes(made.source)
    isolated = [sys.executable, "-I", "-S", "-X", "utf8"]
    told = subprocess.run([*isolated, tmp_path / "agent.py", "watch", "F"], capture_output=True, check=True)
    assert told.stdout.decode() == f"{len(made.source)} ['watch', 'F'] é\n"
    argv = bundling.launcher(made, "mark", True)
    told = subprocess.run([*isolated, *argv[3:]], input=made.source, capture_output=True, check=True)
    assert told.stdout.decode() == f"mark need\n{len(made.source)} ['privileged'] é\n"
    told = subprocess.run(
        [*isolated, *argv[3:]], input=made.source[:-1] + b" ", capture_output=True, check=False
    )
    assert (told.returncode, told.stdout) == (1, b"mark need\n")
    assert b"arrived changed" in told.stderr
    told = subprocess.run([*isolated, *argv[3:]], input=made.source[:-1], capture_output=True, check=False)
    assert b"did not arrive whole" in told.stderr


def test_the_launcher_has_no_character_that_a_shell_would_take(machine: Machine) -> None:
    for word in bundling.launcher(agents.bundle(), "mark", False):
        assert not set(word) & set('"!$`\\\n~*?[]{}#&|<>%^')
    # As one line: the same words to sh, and short enough for cmd.exe (8191 characters).
    line = bundling.one_line(agents.bundle(), "mark", False)
    assert shlex.split(line) == bundling.launcher(agents.bundle(), "mark", False)
    assert len(line) < 8000


def test_an_agent_is_kept_checked_and_replaced(machine: Machine, tmp_path: Path) -> None:
    digest = agents.bundle().digest
    kept = tmp_path / "xdg" / "branchlab" / f"agent-{digest}.py"
    for spoil in (None, b"print('evil')\n", None):
        with agents.started(machine) as made:
            assert made.hello["python"] == sys.version.split()[0]
            assert not made.hello["privileged"]
        assert kept.read_bytes() == agents.bundle().source
        assert kept.stat().st_mode & 0o777 == 0o600
        assert sorted(path.name for path in kept.parent.iterdir()) == [kept.name, "made-cache"]
        if spoil is not None:
            kept.write_bytes(spoil)
    kept.unlink()
    kept.mkdir()  # cannot be written: it runs all the same
    with agents.started(machine) as made:
        assert made.ask("clock")["monotonic_s"] > 0


def test_a_privileged_agent_reads_nothing_that_a_user_can_write(machine: Machine, tmp_path: Path) -> None:
    kept = tmp_path / "xdg" / "branchlab" / f"agent-{agents.bundle().digest}.py"
    kept.parent.mkdir(parents=True)
    kept.write_text("raise SystemExit('evil')")
    with agents.started(machine, privileged=True, root="direct") as made:
        assert made.hello["privileged"]
        with pytest.raises(AgentRefused) as caught:
            made.ask("command", {"argv": ["true"], "timeout_s": 9})
        assert caught.value.kind == "bad-request"
    assert kept.read_text() == "raise SystemExit('evil')"


def test_without_a_way_to_root_the_host_lacks_it(machine: Machine) -> None:
    with pytest.raises(HostLacks, match="root = none"):
        agents.started(machine, privileged=True)


def test_sudo_that_asks_for_a_password_is_told(tmp_path: Path) -> None:
    script = "echo 'sudo: es ist ein Passwort notwendig' >&2; exit 1"
    seen: list[list[str]] = []

    def sudo(argv: list[str]) -> list[str]:
        seen.append(argv)
        return ["sh", "-c", script]

    with pytest.raises(HostLacks) as caught:
        agents.started(Machine(tmp_path, sudo), privileged=True, root="sudo")
    assert seen[0][:5] == ["env", "LC_ALL=C", "sudo", "-n", "--"]
    assert "Passwort" in str(caught.value)
    assert "--sudoers" in caught.value.advice


def test_no_python_an_old_one_and_a_shell_that_ends(tmp_path: Path) -> None:
    def missing(argv: list[str]) -> list[str]:
        return ["sh", "-c", "branchlab-no-such-python"]

    def old(argv: list[str]) -> list[str]:
        if "-c" not in argv:
            return argv
        at = argv.index("-c")
        return [*argv[: at + 1], "import sys;sys.version_info=(3,6);" + argv[at + 1], *argv[at + 2 :]]

    def nologin(argv: list[str]) -> list[str]:
        return ["sh", "-c", "echo This account is currently not available.; exit 1"]

    for wrap, kind in ((missing, HostLacks), (old, HostLacks), (nologin, starting.NotBegun)):
        with pytest.raises(kind) as caught:
            agents.started(Machine(tmp_path, wrap))
        assert "python3" in str(caught.value) or "not available" in str(caught.value)


@pytest.mark.parametrize(
    ("os_release", "program", "expected"),
    [
        ("ID=debian", "python3", "apt-get install python3"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"', "sudo", "apt-get install sudo"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"', "python3", "dnf install python3"),
        ('ID="opensuse-leap"', "doas", "zypper install opendoas"),
        ("ID=alpine", "doas", "apk add doas"),
        ("ID=arch", "python3", "pacman -S python"),
        ("ID=plan9", "python3", ""),
        ("", "python3", ""),
    ],
)
def test_the_command_of_a_system_is_known_without_python(
    os_release: str, program: str, expected: str
) -> None:
    assert systems.install(os_release, program) == expected


def test_where_python_is_missing_the_command_of_that_system_is_told(tmp_path: Path) -> None:
    def without(argv: list[str]) -> list[str]:
        if argv[0] == "cat":
            return ["echo", "ID=alpine"]
        return ["sh", "-c", "echo 'sh: python3: not found' >&2; exit 127"]

    with pytest.raises(HostLacks, match="needs python3") as caught:
        agents.started(Machine(tmp_path, without))
    assert caught.value.command == "apk add python3"
    assert "    apk add python3" in caught.value.told()


@pytest.mark.parametrize("tool", ["sudo", "doas"])
def test_a_tool_that_is_not_there_is_not_told_as_a_missing_python(tmp_path: Path, tool: str) -> None:
    def without(argv: list[str]) -> list[str]:
        if argv[0] == "cat":
            return ["echo", "ID=debian"]
        argv = [*argv[:2], f"no-such-dir/{tool}", *argv[3:]]
        return ["sh", "-c", 'echo "+ a wrapper says python3" >&2; exec "$@"', "sh", *argv]

    for password in (None, lambda: "x"):
        with pytest.raises(HostLacks, match=f"^{tool} is not installed there") as caught:
            agents.started(Machine(tmp_path, without), privileged=True, root=tool, password=password)
        assert caught.value.command == f"apt-get install {tool}"
        assert "direct" in caught.value.advice


@pytest.mark.parametrize(
    "script",
    [
        "exit 127",
        "echo 'fatal: unrecognized command '\"'python3 -I -S'\" >&2; exit 128",  # git-shell
        "exit 126",
    ],
)
def test_a_start_up_that_ends_with_a_number_of_shells_is_no_missing_python(
    tmp_path: Path, script: str
) -> None:
    def ending(argv: list[str]) -> list[str]:
        return ["sh", "-c", script]

    with pytest.raises(starting.NotBegun) as caught:
        agents.started(Machine(tmp_path, ending))
    assert "login shell" in caught.value.advice


def test_noise_before_the_first_word_is_passed_over(tmp_path: Path) -> None:
    few = 'echo hello; printf \'{"id":1,"done":{}}\\n{"id": no newline\'; exec "$@"'
    many = 'yes hello | head -c 3000000; head -c 3000000 /dev/zero; yes | head -c 3000000 >&2; exec "$@"'
    for noise in (few, many):

        def noisy(argv: list[str], noise: str = noise) -> list[str]:
            return ["sh", "-c", noise, "sh", *argv]

        for privileged in (False, True, False):
            with agents.started(Machine(tmp_path, noisy), privileged=privileged, root="direct") as made:
                assert made.ask("clock")["utc"] > 1e9


def test_one_that_never_says_hello_is_given_up(tmp_path: Path) -> None:
    def mute(argv: list[str]) -> list[str]:
        return ["sleep", "600"]

    with pytest.raises(starting.NotBegun, match="did not say hello within"):
        agents.started(Machine(tmp_path, mute), timeout_s=0.5)
    stop = Stop()
    stop.request()
    with pytest.raises(Stopped):
        agents.started(Machine(tmp_path, mute), stop=stop)

    def chatty(argv: list[str]) -> list[str]:
        return ["yes"]

    with pytest.raises(starting.NotBegun, match="64 MiB") as caught:
        agents.started(Machine(tmp_path, chatty))
    assert ".bashrc" in caught.value.advice


@pytest.mark.lab
@pytest.mark.parametrize(
    ("force", "told"),
    [
        ("/usr/sbin/nologin", "exit status 1.*not available"),
        ("/bin/false", "exit status 1"),
        ("true", "exit status 0"),
        ("echo restricted", "exit status 0.*it said: restricted"),
        ("internal-sftp", "sftp connections only"),
    ],
)
def test_a_host_that_runs_something_else_is_not_lost(tmp_path: Path, force: str, told: str) -> None:
    made = sshd.made(tmp_path / "s", f"ForceCommand {force}")
    with (
        sshd.listening(made) as server,
        ssh.connect(server.host()) as connection,
        pytest.raises(starting.NotBegun, match=told) as caught,
    ):
        agents.started(connection)
    assert "a ForceCommand" in caught.value.advice


@pytest.mark.lab
def test_a_bashrc_that_exits_and_one_that_is_slow(tmp_path: Path) -> None:
    force = f'exec env HOME={tmp_path} SHLVL=0 bash -c "$SSH_ORIGINAL_COMMAND"'
    with (
        sshd.listening(sshd.made(tmp_path / "s", f"ForceCommand {force}")) as server,
        ssh.connect(server.host()) as connection,
    ):
        (tmp_path / ".bashrc").write_text("exit 0\n")
        with pytest.raises(starting.NotBegun, match="exit status 0") as caught:
            agents.started(connection)
        assert ".bashrc" in caught.value.advice
        (tmp_path / ".bashrc").write_text("sleep 2\n")
        with agents.started(connection) as agent:
            assert agent.ask("clock")["utc"] > 1e9


def test_an_agent_is_waited_for_as_long_as_a_login_may_take() -> None:
    assert process.BEGIN_S <= starting.START_S <= starting.ROOT_S


def test_a_python_without_its_library_is_told(tmp_path: Path) -> None:
    def minimal(argv: list[str]) -> list[str]:
        at = argv.index("-c")
        return [*argv[: at + 1], "import hashlib,sys;sys.path[:]=[];" + argv[at + 1], *argv[at + 2 :]]

    with pytest.raises(starting.NotBegun, match="lacks a part of it") as caught:
        agents.started(Machine(tmp_path, minimal))
    assert "not python3-minimal" in caught.value.advice


def test_our_own_code_is_not_quoted() -> None:
    words = " ".join(launcher(agents.bundle(), "ab12", True))
    for text in (words, words.replace("(", r"\(").replace(")", r"\)"), words[: len(words) // 2]):
        said = starting.quoted(f"Sorry, user me is not allowed to execute '{text}' as root on here.")
        assert said.startswith("; it said: Sorry, user me is not allowed to execute 'python3 -I -S -c ")
        assert said.endswith("as root on here.")
        assert not re.search("[A-Za-z0-9+/=]{65}", said.replace(agents.bundle().digest, ""))
    assert "\x1b" not in starting.quoted("\x1b[31mred")


def test_ask_and_its_refusals(agent: agents.Agent) -> None:
    assert agent.ask("facts", {"tools": []})["tools"] == {}
    with pytest.raises(AgentRefused) as caught:
        agent.ask("no-such-verb")
    assert (caught.value.kind, caught.value.host) == ("bad-request", "here")
    with pytest.raises(AgentRefused) as caught:
        agent.ask("command", SLEEP, timeout_s=0.3)
    assert caught.value.kind == "time-out"
    assert agent.ask("clock")


def test_a_stream_is_iterated_cancelled_and_ends_with_its_word(agent: agents.Agent) -> None:
    with agent.stream(
        "command", {"argv": ["sh", "-c", "echo a; exec sleep 600"], "timeout_s": 900}
    ) as stream:
        seen = []
        for event, data in stream:
            seen.append(event)
            if event == "output":
                assert data == {"stream": "stdout", "text": "a\n"}
                stream.cancel()
    assert seen == ["started", "output"]
    assert stream.result is not None
    assert stream.result["cancelled"]
    assert not stream.result["timed_out"]
    with agent.stream("command", SLEEP) as left:
        pass  # leaving the block ends it
    assert left.ended
    assert left.result is not None
    assert left.result["signal"] == 15


def test_stop_is_noticed_soon(agent: agents.Agent) -> None:
    stop = Stop()
    threading.Timer(0.3, stop.request).start()
    begin = time.monotonic()
    with pytest.raises(Stopped):
        agent.ask("command", SLEEP, timeout_s=900, stop=stop)
    assert time.monotonic() - begin < 5
    stop = Stop()
    with agent.stream("command", SLEEP) as one, agent.stream("command", SLEEP) as other:
        threading.Timer(0.3, stop.request).start()
        with pytest.raises(Stopped):
            for _ in agents.merged([one, other], stop):
                pass
    assert one.ended
    assert other.ended


def test_merged_tells_events_and_last_words_of_all(agent: agents.Agent) -> None:
    def shell(script: str) -> agents.Conversation:
        return agent.stream("command", {"argv": ["sh", "-c", script], "timeout_s": 60})

    with shell("echo one") as one, shell("echo two >&2; exit 5") as two, shell("exec sleep 600") as endless:
        words: dict[agents.Conversation, list[str | None]] = {one: [], two: [], endless: []}
        for conversation, event, data in agents.merged([one, two, endless]):
            words[conversation].append(event)
            if conversation is two and event is None:
                assert data["exit"] == 5
            if words[one][-1:] == [None] and words[two][-1:] == [None]:
                endless.cancel()
        assert words[one] == words[two] == ["started", "output", None]
        assert words[endless][-1] is None
    with agent.stream("nonsense") as bad, shell("true") as good:
        with pytest.raises(AgentRefused):
            for _ in agents.merged([bad, good]):
                pass
        assert good.finish() == good.result


def test_messages_that_waited_are_kept_when_merging_ends_early(agent: agents.Agent) -> None:
    args = {"argv": ["sh", "-c", "echo out"], "timeout_s": 60}
    with agent.stream("command", args) as one, agent.stream("command", args) as two:
        for _ in agents.merged([one, two]):
            time.sleep(0.2)  # so that messages of both wait
            break
        for conversation in (one, two):
            for _ in conversation:
                pass
            assert conversation.result is not None
            assert conversation.result["exit"] == 0


def test_when_the_agent_dies_all_who_wait_hear_of_it(agent: agents.Agent, machine: Machine) -> None:
    heard: list[str] = []

    def wait() -> None:
        try:
            agent.ask("command", SLEEP, timeout_s=900)
        except ConnectionLost as error:
            heard.append(error.told())

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    with agent.stream("command", SLEEP) as stream:
        _, data = next(iter(stream))
        assert machine.last is not None
        machine.last.process.kill()
        with pytest.raises(ConnectionLost):
            for _ in stream:
                pass
    for thread in threads:
        thread.join(30)
    assert len(heard) == 3
    assert "no last word" in heard[0]
    assert "here" in heard[0]
    assert not agent.alive
    with pytest.raises(ConnectionLost):
        agent.ask("clock")
    until(lambda: not Path(f"/proc/{data['pid']}").exists())


def test_what_the_agent_complained_of_is_in_the_error(tmp_path: Path) -> None:
    def dying(argv: list[str]) -> list[str]:
        return ["sh", "-c", '"$@" & sleep 0.1; wait; echo Segmentation fault >&2', "sh", *argv]

    made = agents.started(
        Machine(tmp_path, lambda argv: ["sh", "-c", '"$@" <&0; echo It broke >&2', "sh", *argv])
    )
    pid = made.hello["pid"]
    subprocess.run(["kill", "-9", str(pid)], check=True)
    with pytest.raises(ConnectionLost, match="It broke"):
        made.ask("command", SLEEP)
    made.close()


def test_it_is_also_when_asking_itself_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = Machine(
        tmp_path, lambda argv: ["sh", "-c", '"$@" <&0; sleep 0.2; echo It broke >&2', "sh", *argv]
    )
    made = agents.started(wrapped)

    def refusing(data: bytes) -> None:
        subprocess.run(["kill", "-9", str(made.hello["pid"])], check=True)
        raise ConnectionLost("Broken pipe")

    monkeypatch.setattr(made._process, "write", refusing)
    with pytest.raises(
        ConnectionLost, match=r"clock could not be asked: the agent has ended; it said: (Killed\n)?It broke"
    ):
        made.ask("clock")
    made.close()


def test_closing_ends_commands_and_the_agent(machine: Machine) -> None:
    made = agents.started(machine)
    stream = made.stream("command", SLEEP)
    _, data = next(iter(stream))
    made.close()
    assert subprocess.run(["kill", "-0", str(data["pid"])], capture_output=True, check=False).returncode != 0
    made.close()


class Book:
    """An agent's process with leases and nothing else, that obeys the protocol and keeps a log."""

    def __init__(self, refuse_after: int = 1000) -> None:
        self.log: list[str] = []
        self._left = refuse_after
        self._out: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read(self, timeout_s: float | None = None) -> bytes:
        return self._out.get()

    def write(self, data: bytes) -> None:
        asked = json.loads(data)
        self.log.append(asked["verb"])
        word: dict[str, object] = {"done": {"lease": "L1", "undone": ["the line"]}}
        if asked["verb"] == "lease.renew":
            self._left -= 1
            if self._left < 0:
                word = {"failed": {"kind": "lapsed", "text": "the lease ran out", "tried": ""}}
        self._out.put(json.dumps({"id": asked["id"], **word}).encode() + b"\n")

    def close_input(self) -> None:
        self._out.put(b"")

    def errors(self) -> str:
        return ""

    def exit(self, timeout_s: float) -> int | None:
        return 0

    def close(self) -> None:
        self._out.put(b"")


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_lease_is_renewed_and_given_back() -> None:
    book = Book()
    with agents.Agent(book, "x", {}) as agent:
        with agents.renewed(agent, 0.6) as lease:
            assert (lease.id, str(lease)) == ("L1", "L1")
            until(lambda: book.log.count("lease.renew") >= 3)
            assert lease.alive
            lease.check()
        assert lease.undone == ["the line"]
        assert (book.log[0], book.log[-1]) == ("lease.open", "lease.close")


def test_a_lease_that_is_refused_or_lost_knows_it() -> None:
    book = Book(refuse_after=1)
    with agents.Agent(book, "x", {}) as agent, agents.renewed(agent, 0.6) as lease:
        until(lambda: not lease.alive)
        assert book.log.count("lease.renew") == 2
        with pytest.raises(AgentRefused, match="ran out"):
            lease.check()
    book = Book()
    agent = agents.Agent(book, "x", {})
    with pytest.raises(ConnectionLost), agents.renewed(agent, 0.6) as lease:  # noqa: PT012
        book.close()
        until(lambda: not lease.alive)


def test_a_failure_to_give_back_replaces_stopped() -> None:
    book = Book()
    agent = agents.Agent(book, "x", {})
    with pytest.raises(ConnectionLost), agents.renewed(agent, 30):  # noqa: PT012
        agent.close()
        raise Stopped("stopped by the user")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Sshd]:
    with sshd.listening(sshd.made(tmp_path_factory.mktemp("sshd"))) as running:
        yield running


@pytest.mark.lab
def test_over_ssh_the_agent_is_sent_once_and_answers(server: sshd.Sshd) -> None:
    with ssh.connect(server.host()) as connection:
        for _ in range(2):
            with agents.started(connection) as agent:
                facts = agent.ask("facts", {"tools": []})
                assert facts["ssh"]["own"] == {"address": "127.0.0.1", "port": server.port}
                assert agent.ask("command", {"argv": ["echo", "in"], "timeout_s": 60})["tail"] == "in\n"
        kept = server.cache / f"agent-{agents.bundle().digest}.py"
        assert kept.read_bytes() == agents.bundle().source
        with agents.started(connection, privileged=True, root="direct") as agent:
            assert agent.hello["privileged"]


@pytest.mark.lab
def test_sudo_starts_the_privileged_agent(server: sshd.Sshd) -> None:
    if subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no sudo without a password here")
    with (
        ssh.connect(server.host()) as connection,
        agents.started(connection, privileged=True, root="sudo") as agent,
    ):
        assert (agent.hello["privileged"], agent.hello["uid"]) == (True, 0)
        assert agent.ask("leases")


@pytest.mark.lab
def test_a_lease_of_the_real_agent(server: sshd.Sshd) -> None:
    if os.getuid() != 0:
        pytest.skip("leases need root here")
    with (
        ssh.connect(server.host()) as connection,
        agents.started(connection, privileged=True, root="direct") as agent,
    ):
        with agents.renewed(agent, 3) as lease:
            assert lease.alive
            time.sleep(1.2)
            assert lease.alive
        assert lease.undone == []


@pytest.mark.lab
def test_ten_mebibytes_on_both_streams_over_ssh(server: sshd.Sshd) -> None:
    script = "head -c 10485760 /dev/zero | tr '\\0' x >&2 & head -c 10485760 /dev/zero | tr '\\0' y; wait"
    with ssh.connect(server.host()) as connection, agents.started(connection) as agent:
        got = {"stdout": 0, "stderr": 0}
        with agent.stream("command", {"argv": ["sh", "-c", script], "timeout_s": 100}) as stream:
            for event, data in stream:
                if event == "output":
                    got[data["stream"]] += len(data["text"])
        assert got == {"stdout": 10485760, "stderr": 10485760}
        assert stream.result is not None
        assert stream.result["exit"] == 0


@pytest.mark.lab
@pytest.mark.parametrize("shell", ["bash", "dash", "csh", "tcsh", "zsh", "fish"])
def test_any_login_shell_and_a_bashrc_that_talks(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    (tmp_path / ".bashrc").write_text("echo hello\necho -n '> '\n")
    # SHLVL and SSH_CLIENT as sshd's own child would have them, so that bash reads .bashrc.
    force = f'exec env HOME={tmp_path} SHLVL=0 {shell} -c "$SSH_ORIGINAL_COMMAND"'
    with (
        sshd.listening(sshd.made(tmp_path / "s", f"ForceCommand {force}")) as server,
        ssh.connect(server.host()) as connection,
    ):
        if shell == "bash":
            assert connection.run(["true"]).out == b"hello\n> ", (
                "the noise is not there: the test proves nothing"
            )
        for privileged in (False, True):
            with agents.started(connection, privileged=privileged, root="direct") as agent:
                assert agent.ask("clock")["utc"] > 1e9


@pytest.mark.lab
def test_a_transport_cut_under_load_is_heard_by_all(tmp_path: Path) -> None:
    with sshd.behind_socket(sshd.made(tmp_path / "s"), tmp_path) as server:
        connection = ssh.connect(server.host())
        agent = agents.started(connection)
        flood = {"argv": ["sh", "-c", "while :; do echo $$; done"], "timeout_s": 900}
        pids: list[int] = []
        with (  # noqa: PT012
            pytest.raises(ConnectionLost),
            agent.stream("command", flood) as one,
            agent.stream("command", SLEEP) as two,
        ):
            for conversation, event, data in agents.merged([one, two]):
                if event == "output" and conversation is one and not pids:
                    pids.append(int(data["text"].split()[0]))
                    threading.Timer(0.2, server.cut).start()
        assert pids
        # The agent ended its commands by itself.
        until(lambda: not Path(f"/proc/{pids[0]}").exists())
        agent.close()
        connection.close()
