"""Becoming root on real hosts: sudo with and without a password, terminals, doas, none; and nothing leaks."""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import os
import pty
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import leaks
import pytest
import users
from leaks import found_in_processes, holding
from two_apaches import Promises

from lab import agents, credentials, runner, ssh, store
from lab.agents import starting
from lab.credentials import Kind, Passwords
from lab.errors import AgentRefused, BadInput, HostLacks, Stopped
from lab.machines import Machines
from lab.model import DISABLED, Experiment, Lab, Line, Role
from lab.rig import hosts
from lab.stop import Stop
from ssh_agents import __main__ as agent_main
from ssh_agents import command, files, given, grounds, installed, service, service_asked, tool
from ssh_agents.protocol import Refused

ROOT = Path(__file__).parent.parent
ALL = "USER ALL=(root) ALL"
NOPASSWD = "USER ALL=(root) NOPASSWD: ALL"
FOLDER = Path("/usr/local/lib/branchlab")
lab_only = pytest.mark.lab
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be misled so")


@pytest.fixture(scope="module")
def somebody() -> Iterator[users.User]:
    with users.user() as made:
        yield made


@pytest.fixture
def user(somebody: users.User) -> Iterator[users.User]:
    yield somebody
    somebody.forgotten()


class Asked:
    """A person who answers, and a count of how often they were asked."""

    def __init__(self, secret: str | None) -> None:
        self.secret, self.times = secret, 0

    def __call__(self) -> str | None:
        self.times += 1
        return self.secret


@contextmanager
def privileged(
    user: users.User, password: Callable[[], str | None] | None = None, root: str = "sudo", **more: Any
) -> Iterator[agents.Agent]:
    with (
        ssh.connect(user.host(root)) as connection,
        agents.started(connection) as helper,
        agents.started(
            connection, privileged=True, root=root, password=password, helper=helper, **more
        ) as agent,
    ):
        assert (agent.hello["uid"], agent.hello["privileged"]) == (0, True)
        yield agent


def works(agent: agents.Agent) -> None:
    """Answers, also long ones, arrive whole; its end is the end of its process, and soon."""
    for _ in range(3):
        assert agent.ask("clock")["utc"] > 1e9
    with pytest.raises(AgentRefused) as caught:
        agent.ask("x" * 70_000)
    assert caught.value.kind == "bad-request"
    with pytest.raises(AgentRefused, match="unknown verb"):
        agent.ask("command", {"argv": ["true"], "timeout_s": 9})
    begin = time.monotonic()
    agent.close()
    assert time.monotonic() - begin < agents.CLOSE_S, "it did not hear the end of its input"
    assert not Path(f"/proc/{agent.hello['pid']}").exists()


# sudo


@lab_only
def test_sudo_without_a_password_asks_nobody(user: users.User) -> None:
    user.sudoers(NOPASSWD)
    asked = Asked("not asked for")
    with privileged(user, asked) as agent:
        works(agent)
    assert asked.times == 0


@lab_only
def test_sudo_with_a_password_asks_once_and_not_while_it_remembers(user: users.User) -> None:
    user.sudoers("Defaults:USER timestamp_type=global, lecture=always", ALL)
    for expected in (1, 0):  # the second time nothing but the agent's text may be sent
        asked = Asked(user.password)
        with privileged(user, asked) as agent:
            works(agent)
        assert asked.times == expected


@lab_only
@pytest.mark.parametrize("tries", [1, 3])
def test_a_wrong_password_is_one_attempt_and_one_error(user: users.User, tries: int) -> None:
    log = user.folder / "sudo.log"
    user.sudoers(f"Defaults:USER passwd_tries={tries}, logfile={log}", ALL)
    asked = Asked("wrong-secret")
    with pytest.raises(agents.PasswordRefused) as caught, privileged(user, asked):
        pass
    assert asked.times == 1
    assert "wrong-secret" not in caught.value.told()
    assert caught.value.host == "bench"
    assert "1 incorrect password attempt" in log.read_text().replace("\n    ", " ")


@lab_only
def test_a_host_after_one_that_refused_what_was_handed_over_is_told_so(
    user: users.User, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.sudoers("Defaults:USER timestamp_type=global", ALL)
    monkeypatch.setattr(credentials, "stored", lambda name: None)
    monkeypatch.setattr(credentials, "handed_over", lambda kind: user.password if kind is Kind.SUDO else None)
    known = Passwords()
    assert known.password("me@proxy:22", "proxy") == user.password
    known.refused("me@proxy:22")
    with ssh.connect(user.host()) as connection, agents.started(connection) as helper:
        with pytest.raises(agents.PasswordMissing, match="was refused by me@proxy:22, and is not") as caught:
            hosts.rooted(connection, helper, known)
        assert "--sudoers" in caught.value.advice
        assert user.password not in caught.value.told()
        hosts.rooted(connection, helper, Passwords()).close()


@lab_only
def test_without_a_known_password_the_person_is_told_the_ways(user: users.User) -> None:
    user.sudoers(ALL)
    for password in (None, Asked(None)):
        with pytest.raises(HostLacks) as caught, privileged(user, password):
            pass
        assert "password" in str(caught.value)
        assert "--sudoers" in caught.value.advice


@pytest.fixture
def german() -> Iterator[None]:
    """A German locale on this machine, made if there is none."""
    there = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True).stdout.split()
    made = Path("/usr/lib/locale/de_DE.utf8")
    if "de_DE.utf8" in there:
        yield
        return
    argv = ["localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", str(made)]
    if shutil.which("localedef") is None or subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("no German locale can be made here")
    yield
    shutil.rmtree(made)


@lab_only
@pytest.mark.usefixtures("german")
@pytest.mark.parametrize("chosen", [True, False])
def test_a_prompt_in_german_is_known_by_its_token(monkeypatch: pytest.MonkeyPatch, chosen: bool) -> None:
    if not chosen:
        monkeypatch.setitem(starting._BEGIN, "sudo", ("sudo",))  # as if the language could not be chosen
    with users.user("SetEnv LC_ALL=de_DE.UTF-8 PATH=/usr/bin:/bin") as user:
        user.sudoers(ALL)
        with ssh.connect(user.host()) as connection:
            said = connection.run(["sudo", "-n", "true"]).err
            assert "Passwort" in said, "the host speaks no German: the test proves nothing"
        with privileged(user, Asked(user.password)) as agent:
            works(agent)
        with pytest.raises(agents.PasswordRefused), privileged(user, Asked("falsch")):
            pass


ECHOING = {"set -x": "set -x\n", "set -x to stdout": "exec 2>&1\nset -x\n", "stdout": "exec 2>&1\n"}


@lab_only
@pytest.mark.parametrize("shell", ["set -x", "set -x to stdout", "stdout", "audit"])
def test_an_echo_of_the_command_line_is_no_prompt(user: users.User, shell: str) -> None:
    wrapper = user.folder / "audit"
    if shell == "audit":
        # As the wrappers of companies do it: set in the login shell's own file, before the command.
        wrapper.write_text('echo "audit: $BASH_EXECUTION_STRING" >&2\n')
        (user.home / ".bashrc").write_text(f". {wrapper}\n")
    else:
        (user.home / ".bashrc").write_text(ECHOING[shell])
    user.sudoers("Defaults:USER timestamp_timeout=0", ALL)
    asked = Asked(user.password)
    with privileged(user, asked) as agent:
        works(agent)
    assert asked.times == 1
    with pytest.raises(agents.PasswordRefused), privileged(user, Asked("wrong-secret")):
        pass
    user.sudoers(NOPASSWD)
    for secret in (None, "not asked for"):
        asked = Asked(secret)
        with privileged(user, asked) as agent:
            works(agent)
        assert asked.times == 0


@lab_only
def test_a_prompt_that_nobody_can_see_is_told(user: users.User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "ROOT_S", 3.0)
    (user.home / ".bashrc").write_text("exec 2>/dev/null\n")
    user.sudoers(ALL)
    with pytest.raises(starting.NotBegun) as caught, privileged(user, Asked(user.password), timeout_s=1):
        pass
    assert "exec 2>/dev/null" in caught.value.advice


@pytest.mark.parametrize("said", ["%s", "[sudo: %s] Password: "])
def test_only_a_prompt_that_stands_last_is_answered(said: str) -> None:
    way = starting._Way("sudo", (), b"", starting.re.compile(b""), "ab%cd", asks=True)
    secret = starting._Once(Asked("x"))
    for errors, out, expected in [
        ("+ sudo -S -p ab%%cd -- python3", b"", False),
        (f"+ sudo -S -p ab%%cd -- python3\n{said % 'ab%cd'}", b"", True),
        ("", (said % "ab%cd").encode(), True),
        ("prompt is ab%cd, says a wrapper\n", b"", False),
    ]:
        assert starting._Prompt(way, secret).asks(errors, out) is expected


@lab_only
def test_a_prompt_may_come_late_and_the_answer_to_it_too(user: users.User) -> None:
    slow = ["auth required pam_exec.so quiet /bin/sleep 3", "@include common-auth"]
    user.write(
        Path("/etc/pam.d") / user.name, "\n".join([*slow, slow[0], "account required pam_permit.so\n"])
    )
    user.sudoers("Defaults:USER pam_service=USER, pam_login_service=USER", ALL)
    begin = time.monotonic()
    with privileged(user, Asked(user.password), timeout_s=0.5) as agent:
        assert time.monotonic() - begin > 6
        works(agent)


@lab_only
def test_stop_is_heard_while_a_prompt_does_not_come(user: users.User) -> None:
    user.write(Path("/etc/pam.d") / user.name, "auth required pam_exec.so quiet /bin/sleep 20\n")
    user.sudoers("Defaults:USER pam_service=USER", ALL)
    stop = Stop()
    threading.Timer(0.5, stop.request).start()
    begin = time.monotonic()
    with (
        ssh.connect(user.host()) as connection,
        pytest.raises(Stopped),
    ):
        agents.started(connection, privileged=True, root="sudo", password=Asked("x"), stop=stop)
    assert time.monotonic() - begin < 15


@lab_only
@pytest.mark.parametrize("pty", ["use_pty", "!use_pty"])
@pytest.mark.parametrize("rule", [ALL, NOPASSWD])
def test_where_a_terminal_is_required_it_gets_one_and_says_so(user: users.User, rule: str, pty: str) -> None:
    user.sudoers(f"Defaults:USER requiretty, {pty}", rule)
    with privileged(user, Asked(user.password)) as agent:
        assert "requiretty" in agent.notice
        works(agent)
    if rule == ALL:
        with pytest.raises(agents.PasswordRefused), privileged(user, Asked("wrong-secret")):
            pass
        with pytest.raises(HostLacks) as caught, privileged(user, Asked(None)):
            pass
        assert not isinstance(caught.value, agents.PasswordRefused)


@lab_only
def test_on_a_terminal_that_is_cut_the_agent_ends_and_takes_back(user: users.User) -> None:
    user.sudoers("Defaults:USER requiretty", NOPASSWD)
    with ssh.connect(user.host()) as connection:
        agent = agents.started(connection, privileged=True, root="sudo")
        pid = agent.hello["pid"]
        connection.close()
        until(lambda: not Path(f"/proc/{pid}").exists())
        assert not agent.alive
        agent.close()


@lab_only
def test_a_user_without_rights_is_told_so(user: users.User) -> None:
    for password in (None, Asked(user.password)):
        with pytest.raises(HostLacks) as caught, privileged(user, password):
            pass
        assert "sudo" in str(caught.value)
    with ssh.connect(user.host("none")) as connection:
        with pytest.raises(HostLacks, match="root = none"):
            agents.started(connection, privileged=True, root="none")
        with agents.started(connection) as agent:  # what needs none is there
            assert agent.ask("facts", {"tools": []})["user"] == user.name


# doas


@pytest.fixture
def doas(user: users.User) -> users.User:
    if shutil.which("doas") is None:
        pytest.skip("no doas here (Debian: doas)")
    if Path("/etc/doas.conf").exists():
        pytest.skip("this machine's doas is configured already")
    return user


@lab_only
def test_doas_without_and_with_a_password(doas: users.User) -> None:
    conf = Path("/etc/doas.conf")
    doas.write(conf, f"permit nopass {doas.name} as root\n", 0o600)
    asked = Asked(doas.password)
    with privileged(doas, asked, "doas") as agent:
        assert agent.notice == ""
        works(agent)
    assert asked.times == 0
    doas.write(conf, f"permit {doas.name} as root\n", 0o600)
    with privileged(doas, asked, "doas") as agent:
        works(agent)
    assert asked.times == 1
    for wrong, kind in (("wrong-secret", agents.PasswordRefused), (None, HostLacks)):
        with pytest.raises(kind) as caught, privileged(doas, Asked(wrong), "doas"):
            pass
        assert "wrong-secret" not in caught.value.told()
    doas.write(conf, "permit nopass nobody as root\n", 0o600)
    with pytest.raises(HostLacks), privileged(doas, None, "doas"):
        pass


# The user's own login shell, as sshd starts it

SHELLS = ("bash", "dash", "csh", "tcsh", "fish", "zsh", "rbash")


@pytest.fixture
def shell(request: pytest.FixtureRequest, user: users.User) -> Iterator[str]:
    path = shutil.which(request.param)
    if path is None:
        pytest.skip(f"no {request.param} here")
    subprocess.run(["usermod", "-s", path, user.name], check=True)
    yield request.param
    subprocess.run(["usermod", "-s", "/bin/bash", user.name], check=True)


@lab_only
@pytest.mark.parametrize("shell", SHELLS, indirect=True)
@pytest.mark.parametrize("tool", ["sudo", "doas"])
def test_a_password_is_asked_for_once_under_any_login_shell(
    request: pytest.FixtureRequest, user: users.User, shell: str, tool: str
) -> None:
    if tool == "doas":
        request.getfixturevalue("doas")
        user.write(Path("/etc/doas.conf"), f"permit {user.name} as root\n", 0o600)
    else:
        user.sudoers("USER ALL=(root) ALL")
    # What a start-up file says stands before the agent's first word, and sudo's question.
    for name in (".bashrc", ".cshrc", ".zshenv"):
        (user.home / name).write_text("echo hello\n")
    asked = Asked(user.password)
    with ssh.connect(user.host()) as connection:
        assert connection.run(["echo", "a b;$HOME*"]).out.endswith(b"a b;$HOME*\n")
    with privileged(user, asked, tool) as agent:
        works(agent)
    assert asked.times == 1
    with pytest.raises(agents.PasswordRefused), privileged(user, Asked("wrong-secret"), tool):
        pass


@lab_only
@pytest.mark.parametrize("shell", ["nologin", "false"], indirect=True)
def test_a_login_shell_that_runs_nothing_is_told_as_that(user: users.User, shell: str) -> None:
    with ssh.connect(user.host()) as connection, pytest.raises(starting.NotBegun) as caught:
        agents.started(connection)
    assert "Give that user a shell" in caught.value.advice
    assert ("not available" in str(caught.value)) == (shell == "nologin")


# The installed agent


@pytest.fixture
def install() -> Iterator[Callable[[bytes], Path]]:
    """Puts a text where an administrator puts the agent, under the name of this version's."""
    if FOLDER.exists():
        pytest.skip(f"{FOLDER} is there already")

    def put(text: bytes) -> Path:
        FOLDER.mkdir(exist_ok=True, mode=0o755)
        FOLDER.chmod(0o755)
        path = FOLDER / f"agent-{agents.bundle().digest}.py"
        path.write_bytes(text)
        path.chmod(0o644)
        return path

    yield put
    shutil.rmtree(FOLDER, ignore_errors=True)


def exact(path: Path) -> str:
    python = shutil.which("python3", path=installed._PATH)
    return f"USER ALL=(root) NOPASSWD: {python} -I -S {path} privileged"


def arguments(agent: agents.Agent) -> list[str]:
    return Path(f"/proc/{agent.hello['pid']}/cmdline").read_text().split("\0")[:-1]


@lab_only
@pytest.mark.parametrize("tty", ["!requiretty", "requiretty"])
def test_with_an_installed_agent_one_exact_command_is_enough(
    user: users.User, install: Callable[[bytes], Path], tty: str
) -> None:
    path = install(agents.bundle().source)
    user.sudoers(f"Defaults:USER {tty}", exact(path))
    for password in (None, Asked("not asked for")):
        with privileged(user, password) as agent:
            assert arguments(agent)[1:] == ["-I", "-S", str(path), "privileged"]
            works(agent)
    for words in (
        ["true"],
        ["python3", "-c", "0"],
        ["/usr/bin/python3", "-I", "-S", str(path), "watch", "/x"],
    ):
        assert user.run("sudo", "-n", *words).returncode == 1


@lab_only
def test_an_installed_agent_that_is_not_sound_is_not_used(
    user: users.User, install: Callable[[bytes], Path]
) -> None:
    user.sudoers(NOPASSWD)
    path = install(agents.bundle().source + b"#")
    for spoil, words in (
        (lambda: None, "not what its name says"),
        (lambda: path.chmod(0o666), "written by others"),
        (lambda: (path.chmod(0o644), os.chown(path, 65534, 0)), "belongs to user"),
        (lambda: (os.chown(path, 0, 0), FOLDER.chmod(0o777)), "written by others"),
        (lambda: (FOLDER.chmod(0o755), path.rename(FOLDER / f"agent-{'0' * 64}.py")), "another version"),
        (lambda: path.symlink_to(FOLDER / f"agent-{'0' * 64}.py"), "is a link"),
    ):
        spoil()
        with privileged(user) as agent:
            assert words in agent.notice
            assert str(FOLDER) not in " ".join(arguments(agent))


@lab_only
def test_what_was_checked_again_by_the_user_falls_back_when_sudo_does_not_allow_it(
    user: users.User, install: Callable[[bytes], Path]
) -> None:
    install(agents.bundle().source)
    user.sudoers(ALL)
    asked = Asked(user.password)
    with privileged(user, asked) as agent:
        works(agent)
    assert asked.times == 1


# Leaks


@lab_only
def test_the_password_is_nowhere(
    user: users.User, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In no argument, environment, file, log or error, while sudo holds it and after."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("paramiko").setLevel(logging.DEBUG)
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    slow = (
        "@include common-auth\nauth required pam_exec.so quiet /bin/sleep 1\naccount required pam_permit.so\n"
    )
    user.write(Path("/etc/pam.d") / user.name, slow)
    secret = user.password.encode()
    try:
        with leaks.watched(secret) as seen:
            for tty in ("!requiretty", "requiretty"):
                user.sudoers(f"Defaults:USER pam_service=USER, pam_login_service=USER, {tty}", ALL)
                record = tmp_path / f"{tty}.run"
                told = run_that_fails(user, Passwords(lambda question: user.password), record)
                assert "has no place for it" in told, "the run did not come past the password"
                assert secret not in record.read_bytes()
    finally:
        logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    assert seen == []
    assert user.password not in caplog.text
    places = [user.home, tmp_path, Path("/run/branchlab"), user.folder]
    assert [path for place in places for path in holding(place, secret)] == []


def run_that_fails(user: users.User, passwords: Passwords, record: Path) -> str:
    """A run up to where it finds that the host has no place for a repository; why it ended."""
    hosts = [user.host(), user.host()]
    lab = Lab(
        name="x",
        hosts=tuple(named(host, name, role) for host, (name, role) in zip(hosts, ROLES, strict=True)),
    )
    experiment = Experiment(
        name="x", operations=("get",), lines=(Line(upload_bps=None, download_bps=None),), states=(DISABLED,)
    )
    machines = Machines(lab, passwords=passwords)
    events = list(store.recorded(runner.run(experiment, machines, Stop()), record))
    return str(events[-1])


ROLES = (("server", Role.SERVER), ("desk", Role.CLIENT))


def profile(user: users.User, folder: Path) -> Path:
    """A profile of one machine, twice."""
    host = user.host()
    hosts = "".join(
        f'[hosts.{name}]\nrole = "{role}"\nssh = "{host.ssh}"\nroot = "sudo"\naddress = "127.0.0.{last}"\n'
        f'key = "{host.key}"\nhost_key = "{host.host_key}"\n'
        for name, role, last in (("server", "server", 1), ("desk", "client", 2))
    )
    path = folder / "profile.toml"
    path.write_text(f'schema = 1\nname = "x"\n{hosts}')
    return path


@lab_only
def test_an_unattended_command_takes_the_password_from_a_descriptor(user: users.User, tmp_path: Path) -> None:
    user.sudoers(ALL)
    command = [sys.executable, "-m", "lab", "revert", str(profile(user, tmp_path))]
    for secret, code in ((user.password, 0), ("wrong-secret", 3)):
        (tmp_path / "secret").write_text(f"{secret}\n")
        with (tmp_path / "secret").open() as file:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
                pass_fds=[file.fileno()], env={**os.environ, credentials.VARIABLE: str(file.fileno())},
            )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        assert secret not in done.stdout + done.stderr
    assert done.stderr.count("did not take the password") == 1, "the second host was not offered it again"


@lab_only
def test_a_person_at_the_terminal_is_asked_before_the_work_begins(user: users.User, tmp_path: Path) -> None:
    user.sudoers(ALL)
    command = [sys.executable, "-m", "lab", "revert", str(profile(user, tmp_path))]
    terminal, end = pty.openpty()
    process = subprocess.Popen(["setsid", "-c", *command], cwd=ROOT, stdin=end, stdout=end, stderr=end)
    os.close(end)
    seen = ""
    for answer, before in (("wrong-secret", "on server: "), (user.password, "did not take the password")):
        while before not in seen or not seen.endswith(": "):
            seen += os.read(terminal, 1000).decode()
        os.write(terminal, answer.encode() + b"\n")
    with suppress(OSError):  # the terminal's other end is gone
        while piece := os.read(terminal, 1000):
            seen += piece.decode()
    os.close(terminal)
    assert process.wait(60) == 0, seen
    assert seen.count("Password of") == 2, "the second host is the same user's"
    assert "desk: nothing was left" in seen
    assert user.password not in seen


def named(host: Any, name: str, role: Role) -> Any:
    import dataclasses

    return dataclasses.replace(host, name=name, role=role, address="127.0.0.1")


def test_the_scan_for_leaks_finds_one(tmp_path: Path) -> None:
    secret = "leak-" + tmp_path.name
    (tmp_path / "log").write_text(f"x {secret} y")
    process = subprocess.Popen(["sleep", "60"], env={"A": secret})
    other = subprocess.Popen(["sh", "-c", "sleep 60; true", secret])
    try:
        until(lambda: len(found_in_processes(secret.encode())) >= 2)
        assert holding(tmp_path, secret.encode()) == [tmp_path / "log"]
    finally:
        for one in (process, other):
            one.kill()
            one.wait()


# Where passwords come from


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    credentials.handed_over.cache_clear()
    credentials._first_line.cache_clear()
    monkeypatch.setattr(credentials, "stored", lambda name: None)
    yield
    credentials.handed_over.cache_clear()
    credentials._first_line.cache_clear()


def handed(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    monkeypatch.setenv(credentials.VARIABLE, str(reader))


@pytest.mark.usefixtures("fresh")
def test_a_password_is_handed_over_in_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    handed("geheim Ä\r\nmore".encode(), monkeypatch)
    number = int(os.environ[credentials.VARIABLE])
    first, second = Passwords(), Passwords()
    assert credentials.VARIABLE not in os.environ
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    assert first.password("a@b:22", "b") == second.password("a@c:22", "c") == "geheim Ä"
    first.refused("a@b:22")
    assert first.password("a@b:22", "b") is None


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("value", ["", "x", "-1", "1000000", "99999999999999999999"])
def test_a_descriptor_without_a_password_is_bad_input(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(credentials.VARIABLE, value)
    with pytest.raises(BadInput, match="holds no password"):
        Passwords()
    assert credentials.VARIABLE not in os.environ


@pytest.mark.usefixtures("fresh")
def test_a_descriptor_that_says_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "HANDED_S", 0.2)
    reader, writer = os.pipe()
    monkeypatch.setenv(credentials.VARIABLE, str(reader))
    with pytest.raises(BadInput):
        Passwords()
    os.close(writer)
    os.close(reader)


@pytest.mark.usefixtures("fresh")
def test_a_person_is_asked_once_and_again_after_a_wrong_answer() -> None:
    questions: list[str] = []
    answers = iter(["wrong", "right", ""])

    def ask(question: str) -> str:
        questions.append(question)
        return next(answers)

    known = Passwords(ask)
    assert known.password("me@h:22", "server") == known.password("me@h:22", "server") == "wrong"
    known.refused("me@h:22")
    assert known.password("me@h:22", "server") == "right"
    assert known.password("me@i:22", "proxy") is None
    assert len(questions) == 3
    assert "me@h:22" in questions[0]
    assert "server" in questions[0]


def test_a_keyring_that_hangs_or_fails_is_none_within_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    credentials.handed_over.cache_clear()
    credentials._first_line.cache_clear()
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    over = threading.Event()

    class Hanging:
        asked: ClassVar[list[tuple[str, str]]] = []

        @classmethod
        def get_password(cls, service: str, name: str) -> str | None:
            cls.asked.append((service, name))
            over.wait(60)
            return None

    class Failing:
        @staticmethod
        def get_password(service: str, name: str) -> str | None:
            raise RuntimeError("no backend")

    class Knowing:
        @staticmethod
        def get_password(service: str, name: str) -> str | None:
            return {"sudo me@h:22": "kept"}.get(name)

    monkeypatch.setitem(sys.modules, "keyring", Failing)
    assert Passwords().password("me@h:22", "h") is None
    monkeypatch.setitem(sys.modules, "keyring", Knowing)
    assert Passwords().password("me@h:22", "h") == "kept"
    monkeypatch.setitem(sys.modules, "keyring", Hanging)
    known, begin = Passwords(), time.monotonic()
    for host in ("h", "i", "j"):
        assert known.password(f"me@{host}:22", host) is None
    took = time.monotonic() - begin
    over.set()
    assert Hanging.asked == [("branchlab", "sudo me@h:22")]
    assert took < 2


def test_the_real_keyring_of_a_machine_without_one_is_found_out_soon() -> None:
    script = "from lab import credentials as c; print(c.stored('sudo nobody@nowhere:22'), c.keyring_there())"
    environment = {
        key: value
        for key, value in os.environ.items()
        if not any(word in key for word in ("DBUS", "DISPLAY", "KEYRING"))
    }
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=20
    )
    assert done.stdout == "None False\n", done.stderr


# What the privileged agent can be made to do


def test_the_privileged_table_has_nothing_that_runs_or_writes_what_was_sent() -> None:
    agent = agent_main.Agent(1, privileged=True)
    table = agent._verbs
    found = [name for name in table if re.search("command|file|blob|put|exec|run|shell|install", name)]
    assert found == ["packages.install"]  # of needs in a fixed table, by the host's own package manager
    for name, verb in table.items():
        assert getattr(verb, "__module__", "") not in (command.__name__, files.__name__), name
    # Whoever adds a verb looks here whether its arguments are guarded.
    assert {name.partition(".")[0] for name in table} <= {
        "facts", "clock", "line", "traffic", "quiet", "cache", "service", "lease", "leases", "revert",
        "footprint", "forget", "connections", "others", "lock", "account", "office", "packages",
    }  # fmt: skip


@pytest.mark.parametrize("path", sorted((ROOT / "ssh_agents").glob("*.py")), ids=lambda path: path.name)
def test_no_agent_has_a_shell_or_runs_text(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        assert name not in ("os.system", "os.popen", "eval", "exec", "compile", "__import__"), name
        assert not any(word.arg == "shell" for word in node.keywords), ast.unparse(node)
        if name in ("subprocess.run", "subprocess.Popen", "tool.run"):
            assert not isinstance(node.args[0], ast.Constant | ast.JoinedStr | ast.BinOp), ast.unparse(node)


@pytest.mark.parametrize(
    "text",
    [
        "::1%x\nflush ruleset",
        "fe80::1%eth0",
        "10.0.0.1\n",
        "10.0.0.1;touch x",
        "10.0.0.1/8",
        "$(id)",
        "",
        None,
        7,
    ],
)
def test_an_address_is_an_address_and_nothing_else(text: object) -> None:
    for refusing in (
        lambda: given.address(text),
        lambda: service_asked.addresses({"listen": [text]}, "listen"),
    ):
        with pytest.raises(Refused) as caught:
            refusing()
        assert caught.value.kind == "bad-request"


@pytest.mark.parametrize("place", ["/etc/x", "/usr/lib/x/y", "/dev/x", "/proc/1/x", "/boot/x"])
def test_services_and_caches_are_nowhere_in_the_system(place: str) -> None:
    args = {"kind": "caching-proxy", "folder": place, "port": 8081, "options": {"allow": ["127.0.0.1"]}}
    other = {**args, "folder": "/tmp/x/y", "options": {"allow": ["127.0.0.1"], "cache": place}}
    for one in (args, other):
        with pytest.raises(Refused, match="folder of the system"):
            service.start(one, Promises().call())


@as_root
def test_roots_agent_reads_no_log_that_a_user_put_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root's own\n")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "access.log").symlink_to(secret)
    (theirs / grounds.MARK).write_text("")
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o755)
    (ours / "access.log").symlink_to(secret)
    os.chown(theirs, 65534, 65534)
    for folder in (theirs, ours, theirs / "deeper"):
        args = {"kind": "caching-proxy", "folder": str(folder)}
        with pytest.raises(Refused) as caught:
            service.log(args, Promises().call())
        assert "root's own" not in caught.value.text
    with pytest.raises(Refused):
        service.stop({"kind": "caching-proxy", "folder": str(theirs)}, Promises().call())
    assert (theirs / grounds.MARK).exists()


@as_root
def test_nobody_is_let_pass_through_a_link(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o700)
    link = tmp_path / "branchlab-link"
    link.symlink_to(kept)
    (kept / "data").mkdir()
    with pytest.raises(Refused):
        grounds._let_pass(str(link / "data"), grounds.User("nobody", 65534, 65534))
    assert (kept.stat().st_mode & 0o777, kept.stat().st_gid) == (0o700, 0)


@as_root
@pytest.mark.parametrize(
    ("environment", "starts"),
    [
        ({"SUDO_UID": "0", "DOAS_USER": "nobody"}, False),
        ({"SUDO_UID": "65534", "DOAS_USER": "root"}, False),
        ({"SUDO_UID": "65534", "DOAS_USER": "nobody-of-this-host"}, False),
        ({"SUDO_UID": "65534", "DOAS_USER": "nobody"}, True),
        ({"SUDO_UID": "65534"}, True),
        ({"DOAS_USER": "nobody"}, True),
    ],
)
def test_who_raised_whose_rights_is_not_taken_from_what_a_user_may_write(
    environment: dict[str, str], starts: bool
) -> None:
    """doas with `keepenv` lets its user set SUDO_UID, and sudo with -E DOAS_USER; the true one is always set."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from ssh_agents import tool; tool.settle()"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == starts
    assert starts or "only one can be true" in done.stderr


def test_where_a_session_comes_from_is_known_behind_sudo_too() -> None:
    """sudo takes SSH_CONNECTION away from what it starts, but not from itself."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from ssh_agents import system; print(system.session_from())"
    inner = [sys.executable, "-I", "-S", "-c", code]
    outer = f"import subprocess; subprocess.run({inner!r}, env={{}})"
    for connection, address in (
        ("198.51.100.7 40000 198.51.100.10 22", "198.51.100.7"),
        ("UNKNOWN 65535 UNKNOWN 65535", ""),
    ):
        for words in (inner, [sys.executable, "-I", "-S", "-c", outer]):
            environment = {"SSH_CONNECTION": connection}
            done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
            assert done.stdout.strip() == address


@as_root
def test_only_ones_own_repository_is_served_to_a_user_with_raised_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repository").mkdir()
    monkeypatch.setenv("SUDO_UID", "65534")
    with pytest.raises(Refused, match="belongs to user 0"):
        grounds.refuse_others_data(str(tmp_path / "repository"))
    os.chown(tmp_path / "repository", 65534, -1)
    grounds.refuse_others_data(str(tmp_path / "repository"))
    monkeypatch.delenv("SUDO_UID")
    grounds.refuse_others_data(str(tmp_path / "repository"))


def test_a_privileged_agent_depends_on_nothing_of_its_starter(tmp_path: Path) -> None:
    evil, fine = tmp_path / "evil", tmp_path / "fine"
    for folder in (evil, fine):
        folder.mkdir(mode=0o755)
    evil.chmod(0o777)
    (tmp_path / "link").symlink_to(evil)
    script = (
        "import json, os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from ssh_agents import tool; tool.settle()\n"
        "mask = os.umask(0); print(json.dumps([dict(os.environ), mask, os.getcwd()]))"
    )
    hostile = {
        "PATH": f".:relative::{evil}:{tmp_path}/link:{fine}:{tmp_path}/absent:/usr/bin",
        "LD_PRELOAD": "",
        "LD_LIBRARY_PATH": str(evil),
        "PYTHONPATH": str(evil),
        "PYTHONSTARTUP": "x",
        "TMPDIR": str(evil),
        "IFS": "x",
        "LC_ALL": "de_DE.UTF-8",
        "SSH_CONNECTION": "192.0.2.1 5 192.0.2.2 22",
    }
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(ROOT)],
        env=hostile, cwd=evil, capture_output=True, text=True, check=True, umask=0,
    )  # fmt: skip
    environment, mask, folder = json.loads(done.stdout)
    assert (mask, folder) == (0o022, "/")
    assert not [name for name in environment if name.startswith(("LD_", "PYTHON", "IFS"))]
    assert ("TMPDIR" in environment) == (os.geteuid() != 0)
    assert (environment["LC_ALL"], environment["SSH_CONNECTION"]) == ("C", hostile["SSH_CONNECTION"])
    path = environment["PATH"].split(":")
    assert str(fine) in path
    assert "/usr/bin" in path
    assert all(word.startswith("/") and not word.startswith(str(evil)) for word in path)


@as_root
def test_roots_agent_runs_no_tool_that_others_could_exchange(tmp_path: Path) -> None:
    """Also where a folder that an administrator's PATH has belongs to a group, as /usr/local/sbin once did."""
    for name in ("group", "theirs", "fine", "links"):
        (tmp_path / name).mkdir(mode=0o755)
    for name in ("group/one", "theirs/two", "fine/one", "fine/two", "fine/three", "theirs/four"):
        (tmp_path / name).write_text("#!/bin/sh\necho $0\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "links" / "three").symlink_to(tmp_path / "fine" / "three")
    (tmp_path / "links" / "four").symlink_to(tmp_path / "theirs" / "four")
    (tmp_path / "group").chmod(0o2775)
    for name in ("two", "four"):
        os.chown(tmp_path / "theirs" / name, 65534, -1)
    folders = [str(tmp_path / name) for name in ("group", "theirs", "links", "fine")]
    script = (
        "import json, os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from ssh_agents import apache, facts, protocol, tool\n"
        "tool._MORE_PATH = apache.PROGRAM_FOLDERS = sys.argv[2:]; apache.PROGRAMS = ('four', 'two')\n"
        "facts.TOOLS['one'] = ()\n"
        "settled = [tool.found('one')]; tool.settle()\n"
        "settled += [tool.found(name) for name in ('one', 'two', 'three', 'four')]\n"
        "settled += [apache.found(), facts._version('one')]\n"
        "try: tool.run(['four'])\n"
        "except protocol.Refused as error: settled.append(error.text)\n"
        "print(json.dumps([settled, tool.environment()['PATH'].split(':')]))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(ROOT), *folders], capture_output=True, text=True, check=True
    )
    (before, one, two, three, four, program, version, said), path = json.loads(done.stdout)
    assert before == f"{folders[0]}/one"
    assert (one, two) == (f"{folders[3]}/one", f"{folders[3]}/two")
    assert (three, four) == (f"{folders[2]}/three", None)
    assert (program, version) == (two, one)
    assert f"{folders[2]}/four is not run as root: {folders[1]}/four belongs to user 65534" in said
    assert folders[0] not in path
    assert folders[3] in path


def test_who_could_exchange_a_file_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    path.chmod(0o644)
    assert tool.open_to_others(str(path)) == ""
    path.chmod(0o664)
    assert "written by others" in tool.open_to_others(str(path))
    (tmp_path / "link").symlink_to(path)
    assert "link" in tool.open_to_others(str(tmp_path / "link"))
    assert "No such file" in tool.open_to_others(str(tmp_path / "absent"))
    path.chmod(0o644)
    tmp_path.chmod(0o777)
    assert str(tmp_path) in tool.open_to_others(str(path))


@lab_only
def test_roots_agent_runs_nothing_of_the_users(user: users.User, install: Callable[[bytes], Path]) -> None:
    """With all that a user can put in the way: programs, libraries, modules, a spoilt cache, variables."""
    path = install(agents.bundle().source)
    bad = user.home / "bin"
    touch = f"#!/bin/sh\necho $0 >> {user.folder}/ran\nexit 1\n"
    (user.folder / "ran").write_text("")
    (user.folder / "ran").chmod(0o666)
    bad.mkdir()
    for name in ("tc", "ip", "nft", "unshare", "logger", "python3", "systemd-run", "sh"):
        (bad / name).write_text(touch)
        (bad / name).chmod(0o755)
    module = f"open({str(user.folder / 'ran')!r}, 'a').write(__name__)\n"
    for name in ("json", "sitecustomize", "usercustomize", "ssh_agents", "os", "tty"):
        (user.home / f"{name}.py").write_text(module)
    user.cache.mkdir(parents=True, exist_ok=True)
    (user.cache / f"agent-{agents.bundle().digest}.py").write_text(module)
    subprocess.run(["chown", "-R", user.name, str(user.home)], check=True)
    keep = "PATH PYTHONPATH PYTHONHOME PYTHONSTARTUP TMPDIR HOME XDG_CACHE_HOME"
    user.sudoers(f'Defaults:USER env_keep += "{keep}"', "Defaults:USER !secure_path", exact(path))
    hostile = [
        f"PATH={bad}:/usr/bin:/bin",
        f"PYTHONPATH={user.home}",
        f"TMPDIR={user.home}",
        f"HOME={user.home}",
    ]
    argv = ["env", *hostile, "sudo", "-n", "--", *exact(path).partition("NOPASSWD: ")[2].split()]
    with ssh.connect(user.host()) as connection:
        process = connection.start(argv)
        first = b"branchlab %s\n" % agents.bundle().digest.encode()
        assert process.read(30) == first
        for number, verb in enumerate(("facts", "line.check", "lease.open", "revert"), 1):
            args = {"office": ["127.0.0.1"]} if verb == "line.check" else {}
            process.write(json.dumps({"id": number, "verb": verb, "args": args}).encode() + b"\n")
            answer = b""
            while not re.search(rb'"id":%d,"(done|failed)".*\n' % number, answer):
                piece = process.read(60)
                assert piece, process.errors()
                answer += piece
        process.close_input()
        assert process.exit(30) == 0
    assert (user.folder / "ran").read_text() == ""


@lab_only
def test_roots_agent_opens_no_file_that_the_user_can_write(user: users.User) -> None:
    """As the kernel sees it: every file that is opened or executed belongs to root and is closed to others."""
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "-o", "/dev/null", "true"], check=False).returncode != 0:
        pytest.skip("no strace here")
    made = agents.bundle()
    argv = agents.bundling.launcher(made, "mark", True)
    asked = {"id": 1, "verb": "facts", "args": {}}
    log = user.folder / "trace"
    done = subprocess.run(
        [strace, "-f", "-qq", "-e", "trace=open,openat,execve", "-o", str(log), "/usr/bin/python3", *argv[1:]],
        input=made.source + json.dumps(asked).encode() + b"\n",
        capture_output=True, cwd=user.home, env={"HOME": str(user.home), "PATH": "/usr/bin:/bin"}, check=True,
    )  # fmt: skip
    assert b'"done"' in done.stdout
    opened = set(re.findall(r'(?:open|openat|execve)\((?:[A-Z_]+, )?"(/[^"]+)".*= \d', log.read_text()))
    assert any(path.endswith("json/decoder.py") or "json/__pycache__" in path for path in opened)
    kernel = ("/proc/", "/dev/", "/sys/")
    writable = [
        path for path in opened if not path.startswith(kernel) and tool.open_to_others(os.path.realpath(path))
    ]
    assert writable == []


@lab_only
@as_root
def test_the_watchers_copy_is_roots_alone(user: users.User) -> None:
    user.sudoers(NOPASSWD)
    with privileged(user) as agent:
        folder = Path(agent.ask("lease.open", {"lease_s": 30})["folder"])
        copy = folder / "agent.py"
        assert hashlib.sha256(copy.read_bytes()).hexdigest() == agents.bundle().digest
        for path, mode in ((folder, 0o700), (copy, 0o600)):
            assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (0, mode)
        assert user.run("cat", str(copy)).returncode != 0
        agent.ask("lease.close")


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
