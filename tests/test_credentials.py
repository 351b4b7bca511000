"""Secrets of every kind: where they come from, where they are kept, and that they are nowhere else."""

from __future__ import annotations

import gc
import io
import logging
import os
import pty
import secrets
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import leaks
import pytest
import users
from keyring.errors import PasswordDeleteError

from lab import agents, credentials, runner, ssh, store
from lab.cli import agreeing
from lab.cli import passwords as cli_passwords
from lab.credentials import VARIABLES, Kind, Offered, Passwords, Remembered, Taken
from lab.errors import BadInput, HostLacks, LabError
from lab.machines import Machines
from lab.model import DISABLED, Experiment, Host, Lab, Line, Role
from lab.rig import hosts
from lab.stop import Stop

ROOT = Path(__file__).parent.parent
lab_only = pytest.mark.lab
PHRASE = f"phrase-{secrets.token_hex(6)}-Ä"
OTHERS = {kind: f"{kind}-{secrets.token_hex(6)}" for kind in (Kind.VCS, Kind.PROXY)}


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    credentials.handed_over.cache_clear()
    credentials._first_line.cache_clear()
    monkeypatch.setattr(credentials, "stored", lambda name: None)
    yield
    credentials.handed_over.cache_clear()
    credentials._first_line.cache_clear()


class Keyring:
    """A fake of the module `keyring`."""

    kept: ClassVar[dict[str, str]] = {}

    @classmethod
    def get_password(cls, service: str, name: str) -> str | None:
        assert service == "branchlab"
        return cls.kept.get(name)

    @classmethod
    def set_password(cls, service: str, name: str, secret: str) -> None:
        assert service == "branchlab"
        cls.kept[name] = secret

    @classmethod
    def delete_password(cls, service: str, name: str) -> None:
        if name not in cls.kept or name in cls.stubborn:
            raise PasswordDeleteError(name)
        del cls.kept[name]

    stubborn: ClassVar[set[str]] = set()
    priority: ClassVar[float] = 5

    @classmethod
    def get_keyring(cls) -> type[Keyring]:
        return cls


@pytest.fixture(autouse=True)
def _looked_for_anew() -> Iterator[None]:
    credentials.keyring_there.cache_clear()
    credentials.unread.cache_clear()
    credentials._silent.clear()
    yield
    credentials.keyring_there.cache_clear()
    credentials.unread.cache_clear()
    credentials._silent.clear()


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> type[Keyring]:
    credentials.handed_over.cache_clear()
    credentials._first_line.cache_clear()
    Keyring.kept.clear()
    monkeypatch.setattr(Keyring, "stubborn", set())
    monkeypatch.setitem(sys.modules, "keyring", Keyring)
    return Keyring


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_its_own_place_in_the_keyring(keyring: type[Keyring], kind: Kind) -> None:
    keyring.kept[f"{kind} me@h:22"] = "kept"
    known = Passwords()
    assert known.password("me@h:22", "h", kind) == "kept"
    for other in set(Kind) - {kind}:
        assert known.password("me@h:22", "h", other) is None


def test_a_secret_that_was_right_can_be_remembered(keyring: type[Keyring]) -> None:
    known = Passwords(lambda question: "typed")
    assert known.password("/home/me/key", "h", Kind.KEY) == "typed"
    assert known.remember("/home/me/key", Kind.KEY)
    assert keyring.kept == {"key /home/me/key": "typed", "remembered": '["key /home/me/key"]'}
    assert Passwords().password("/home/me/key", "h", Kind.KEY) == "typed"
    assert not known.remember("never asked for", Kind.KEY)


def test_what_was_typed_is_told_once_it_was_right_and_only_then() -> None:
    answers = {"a": "plain", "b": Remembered("kept"), "c": Remembered("wrong")}
    known = Passwords(lambda question: answers[question.split()[2]])
    given = {target: known.password(target, "h", Kind.LOGIN) for target in answers}
    assert given == answers
    assert {type(secret) for secret in given.values()} == {str}  # no mark goes on from here
    assert known.taken() == ()
    known.right("b", Kind.SUDO)
    known.refused("c", Kind.LOGIN)
    for target in answers:
        known.right(target, Kind.LOGIN)
    assert known.taken() == (Taken(Kind.LOGIN, "a", False), Taken(Kind.LOGIN, "b", True))
    assert known.taken() == ()
    assert "kept" not in repr(known.taken())


def test_what_came_from_elsewhere_is_never_offered(keyring: type[Keyring]) -> None:
    keyring.kept["sudo me@h:22"] = "kept"
    known = Passwords(lambda question: "typed")
    assert known.password("me@h:22", "h") == "kept"
    known.right("me@h:22")
    assert known.taken() == ()


def test_what_was_remembered_is_named_and_forgotten_and_nothing_else(keyring: type[Keyring]) -> None:
    keyring.kept["sudo by@hand:22"] = "theirs"
    assert (credentials.remembered(), credentials.forget()) == ((), ())
    names = ["sudo a@h:22", "key /k"]
    assert all(credentials.store(name, "s") for name in [*names, names[0]])
    assert credentials.remembered() == tuple(names)
    del keyring.kept["key /k"]  # by hand
    assert credentials.forget() == ("sudo a@h:22",)
    assert keyring.kept == {"sudo by@hand:22": "theirs"}
    assert credentials.forget() == ()


def test_what_a_keyring_does_not_let_go_is_told_and_stays_noted(keyring: type[Keyring]) -> None:
    for name in ("sudo a@h:22", "key /k"):
        credentials.store(name, "s")
    keyring.stubborn.add("key /k")
    with pytest.raises(BadInput, match="does not let go of key /k") as refused:
        credentials.forget()
    assert 'keyring del branchlab "key /k"' in refused.value.advice
    assert credentials.remembered() == ("key /k",)
    assert "sudo a@h:22" not in keyring.kept


def test_a_keyring_that_fails_amid_it_leaves_nothing_that_could_not_be_forgotten(
    keyring: type[Keyring], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(service: str, name: str, secret: str) -> None:
        raise RuntimeError("locked")

    monkeypatch.setattr(keyring, "set_password", failing)
    assert not credentials.store("key /k", "s")
    assert keyring.kept == {}


def test_notes_that_somebody_spoilt_are_none(keyring: type[Keyring]) -> None:
    for spoilt in ("junk", '{"a": 1}', "[1, null]"):
        keyring.kept["remembered"] = spoilt
        assert credentials.remembered() == ()


def test_a_plain_file_is_no_keyring(keyring: type[Keyring], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "priority", 0.5)
    assert not credentials.keyring_there()
    assert not credentials.store("key /k", "s")
    assert (credentials.remembered(), credentials.forget()) == (None, None)
    assert keyring.kept == {}


def test_whether_there_is_a_keyring_is_found_out_within_two_seconds_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over = threading.Event()

    class Hanging:
        """A fake of `keyring`, waiting for a D-Bus that does not answer."""

        @staticmethod
        def get_keyring() -> None:
            over.wait(60)

    monkeypatch.setitem(sys.modules, "keyring", Hanging)
    begin = time.monotonic()
    assert not any(credentials.keyring_there() for _ in range(5))
    took = time.monotonic() - begin
    over.set()
    assert took < 2


@pytest.mark.parametrize("display", [":99", ""])
def test_a_bus_that_is_silent_costs_less_than_two_seconds_in_all(
    monkeypatch: pytest.MonkeyPatch, display: str
) -> None:
    """Also where somebody could unlock a keyring: that there is none is found out before."""
    over = threading.Event()

    class Hanging:
        """A fake of `keyring`, waiting for a D-Bus that does not answer."""

        @staticmethod
        def wait(*_: object) -> None:
            over.wait(60)

        get_keyring = get_password = set_password = wait

    monkeypatch.setitem(sys.modules, "keyring", Hanging)
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
    begin = time.monotonic()
    known = Passwords(lambda question: "typed")
    assert [known.password(f"me@h{number}:22", "h") for number in range(3)] == ["typed"] * 3
    assert not known.remember("me@h1:22")
    assert Passwords().password("me@h:22", "h") is None
    took = time.monotonic() - begin
    over.set()
    assert took < 2


BACKEND = """
import json, pathlib
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

class File(KeyringBackend):
    priority = PRIORITY
    path = pathlib.Path(__file__).with_suffix(".json")
    def _all(self): return json.loads(self.path.read_text()) if self.path.exists() else {}
    def _put(self, all): self.path.write_text(json.dumps(all))
    def get_password(self, service, name): return self._all().get(service + " " + name)
    def set_password(self, service, name, secret): self._put({**self._all(), service + " " + name: secret})
    def delete_password(self, service, name):
        all = self._all()
        if all.pop(service + " " + name, None) is None: raise PasswordDeleteError
        self._put(all)
"""


@pytest.mark.parametrize("priority", [5, 0.5])
def test_the_command_with_the_real_keyring_and_a_backend_of_its_own(tmp_path: Path, priority: float) -> None:
    (tmp_path / "fake_backend.py").write_text(BACKEND.replace("PRIORITY", str(priority)))
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
        "PYTHON_KEYRING_BACKEND": "fake_backend.File",
        "BRANCHLAB_DATA": str(tmp_path),
    }

    def told(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    put = "from lab import credentials as c; print(c.store('sudo me@h:22', 's3cret'))"
    if priority < 1:
        assert told("-c", put) == "False\n"
        assert "no system keyring answers here" in told("-m", "lab", "passwords", "--forget")
        return
    assert told("-c", put) == "True\n"
    assert told("-m", "lab", "passwords") == "sudo me@h:22\n"
    assert "s3cret" in (tmp_path / "fake_backend.json").read_text()
    assert told("-m", "lab", "passwords", "--forget") == "forgotten: sudo me@h:22\n"
    assert (tmp_path / "fake_backend.json").read_text() == "{}"
    assert told("-m", "lab", "passwords") == "nothing is remembered\n"


@pytest.mark.parametrize("answer", ["yes\n", "y\n", "\n"])
def test_at_the_terminal_it_is_offered_once_it_was_right(
    keyring: type[Keyring], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str
) -> None:
    def signing(host: Host, passwords: Passwords, root: bool) -> None:
        passwords.password("me@h:22", host.name)
        passwords.right("me@h:22")

    monkeypatch.setattr(agreeing, "somebody_there", lambda: True)
    monkeypatch.setattr(cli_passwords, "_ask", lambda question: "typed")
    monkeypatch.setattr(cli_passwords, "_signed_in", signing)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    host = Host(name="a", role=Role.CLIENT, ssh="me@h", root="sudo", address="192.0.2.1")
    cli_passwords.signed_in(Lab(name="x", hosts=(host,)))
    said = capsys.readouterr().err
    assert said.count("Remember the password of me@h:22 to become root in the system keyring?") == 1
    assert (keyring.kept.get("sudo me@h:22") == "typed") == (answer == "yes\n")


def test_a_stale_one_in_the_keyring_is_offered_once_and_then_a_person_is_asked(
    keyring: type[Keyring],
) -> None:
    keyring.kept["login me@h:22"] = "stale"
    known = Passwords(lambda question: "typed")
    assert known.password("me@h:22", "h", Kind.LOGIN) == "stale"
    known.refused("me@h:22", Kind.LOGIN)
    assert known.password("me@h:22", "h", Kind.LOGIN) == "typed"


def test_without_a_keyring_remembering_says_so_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        @staticmethod
        def get_password(service: str, name: str) -> str | None:
            raise RuntimeError("no backend")

        set_password = get_password
        get_keyring = get_password

    credentials.handed_over.cache_clear()
    credentials._first_line.cache_clear()
    monkeypatch.setitem(sys.modules, "keyring", Failing)
    known = Passwords(lambda question: "typed")
    assert known.password("a", "h") == "typed"
    assert not known.remember("a")


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_is_handed_over_in_a_descriptor(monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    reader, writer = os.pipe()
    os.write(writer, f"{kind}-Ä\n".encode())
    os.close(writer)
    monkeypatch.setenv(VARIABLES[kind], str(reader))
    known = Passwords()
    assert VARIABLES[kind] not in os.environ
    assert {one: known.password("a", "b", one) for one in Kind} == {
        one: f"{kind}-Ä" if one is kind else None for one in Kind
    }


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("number", ["²", "٣", "-1", "", "x", "99999"])
def test_what_is_no_descriptor_is_told(monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    monkeypatch.setenv(VARIABLES[Kind.LOGIN], number)
    with pytest.raises(BadInput, match="names a file descriptor that holds no password"):
        Passwords()


def test_what_was_handed_over_and_refused_by_one_host_is_told_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(credentials, "handed_over", lambda kind: "s3cret" if kind is Kind.SUDO else None)
    monkeypatch.setattr(credentials, "stored", lambda name: None)
    known = Passwords()
    assert known.astray() == ""
    assert known.password("me@a:22", "a") == known.password("me@b:22", "b") == "s3cret"
    known.right("me@a:22")
    known.refused("me@b:22")
    assert known.password("me@c:22", "c") is None
    assert known.astray() == (
        "the one that was handed over was refused by me@b:22, and is not tried anywhere else"
    )
    assert known.password("me@a:22", "a") == "s3cret"
    assert known.astray(Kind.LOGIN) == ""


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("kind", list(Kind))
def test_a_secret_in_a_variable_is_told_and_taken_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: Kind
) -> None:
    variable = VARIABLES[kind].removesuffix("_FD")
    monkeypatch.setenv(variable, "s3cret")
    for _ in range(2):
        known = Passwords()
        assert known.password("me@h:22", "h", kind) is None
        assert f"{variable} is not read" in known.astray(kind)
        assert f"{VARIABLES[kind]}=3" in known.astray(kind)
    assert variable not in os.environ
    assert caplog.text.count(f"{variable} is not read") == 1
    assert "s3cret" not in caplog.text


@pytest.mark.usefixtures("fresh")
def test_one_descriptor_for_two_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"both\n")
    os.close(writer)
    for kind in (Kind.LOGIN, Kind.SUDO):
        monkeypatch.setenv(VARIABLES[kind], str(reader))
    known = Passwords()
    assert [known.password("a", "b", kind) for kind in (Kind.LOGIN, Kind.SUDO, Kind.KEY)] == [
        "both",
        "both",
        None,
    ]


@lab_only
def test_a_password_of_sudo_in_another_encoding(user: users.User) -> None:
    """Its bytes are handed on as they came: the host knows what they mean."""
    secret = b"p\xe4ss-%s" % user.name.encode()
    user.sudoers("USER ALL=(root) ALL")
    try:
        subprocess.run(["chpasswd"], input=user.name.encode() + b":" + secret + b"\n", check=True)
        with ssh.connect(user.host()) as connection:
            given = secret.decode("utf-8", "surrogateescape")
            with agents.started(connection, privileged=True, root="sudo", password=lambda: given) as agent:
                assert agent.ask("clock")["utc"] > 1e9
    finally:
        subprocess.run(["chpasswd"], input=f"{user.name}:{user.password}\n".encode(), check=True)


@lab_only
def test_what_sudo_says_about_python_is_not_hidden_by_our_code(user: users.User) -> None:
    user.sudoers("USER ALL=(root) NOPASSWD: /bin/true")
    with ssh.connect(user.host()) as connection, pytest.raises(HostLacks) as caught:
        agents.started(connection, privileged=True, root="sudo", password=lambda: user.password)
    assert "is not allowed to execute" in str(caught.value)
    assert "a2b_base64" not in str(caught.value)


@pytest.mark.usefixtures("fresh")
def test_one_question_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, most = [0], [0]

    def ask(question: str) -> str:
        asking[0] += 1
        most[0] = max(most[0], asking[0])
        time.sleep(0.02)
        asking[0] -= 1
        return "x"

    known = Passwords(ask, lambda offered: bool(ask("key")))
    accept = known.accept
    assert accept is not None
    jobs = [threading.Thread(target=known.password, args=(f"a{n}", "h")) for n in range(5)]
    jobs += [threading.Thread(target=accept, args=(Offered("h", "t", "k", "f"),)) for _ in range(5)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(30)
    assert most == [1]
    with known.asking(None):
        assert known.accept is None
        assert known.answer("?") is None
        assert known.password("new", "h") is None


# Nowhere else


@pytest.fixture(scope="module")
def somebody() -> Iterator[users.User]:
    with users.user("PasswordAuthentication yes") as made:
        yield made


@pytest.fixture
def user(somebody: users.User) -> Iterator[users.User]:
    yield somebody
    somebody.forgotten()


def locked_key(user: users.User) -> Path:
    """A key with a passphrase that lets the user in, beside the one without that always does."""
    path = user.server.folder / "locked"
    if not path.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", PHRASE, "-f", path], check=True)
        with (user.server.folder / "authorized").open("a") as file:
            file.write(Path(f"{path}.pub").read_text())
    return path


def bench(user: users.User, folder: Path) -> Lab:
    """One machine twice: logged in on by a password, and by a locked key; sudo wants a password on both."""
    by_password = folder / "nobodys"
    if not by_password.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", by_password], check=True)
    made = [
        replace(user.host(key=str(by_password)), name="server", role=Role.SERVER, address="127.0.0.2"),
        replace(user.host(key=str(locked_key(user))), name="desk", role=Role.CLIENT, address="127.0.0.1"),
    ]
    return Lab(name="x", hosts=tuple(made))


def answers(user: users.User, *, wrong: Kind | None = None) -> Passwords:
    def ask(question: str) -> str:
        kind = Kind.KEY if "Passphrase" in question else Kind.SUDO if "root" in question else Kind.LOGIN
        secret = PHRASE if kind is Kind.KEY else user.password
        return f"{secret}-wrong" if kind is wrong else secret

    return Passwords(ask)


@pytest.mark.parametrize("secret", ["a\nb", "a\r", "a\0b"])
@pytest.mark.parametrize("kind", list(Kind))
def test_a_secret_of_more_than_a_line_is_refused_and_not_kept(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, secret: str
) -> None:
    monkeypatch.setattr(credentials, "stored", lambda name: None)
    known = Passwords(lambda question: secret)
    with pytest.raises(BadInput, match="line break or a NUL") as caught:
        known.password("me@desk:22", "desk", kind)
    assert secret not in caught.value.told()
    with pytest.raises(BadInput):
        known.answer("Code: ")
    with known.asking(lambda question: "right"):
        assert known.password("me@desk:22", "desk", kind) == "right"


@lab_only
@pytest.mark.usefixtures("fresh")
def test_no_secret_of_any_kind_is_anywhere(
    user: users.User, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In no argument, environment, file, log, error, traceback or run: while they are used, and after."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("paramiko").setLevel(logging.DEBUG)
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    user.sudoers("USER ALL=(root) ALL")
    lab = bench(user, tmp_path)
    experiment = Experiment(
        name="x", operations=("get",), lines=(Line(upload_bps=None, download_bps=None),), states=(DISABLED,)
    )
    hidden = [text.encode() for text in (user.password, PHRASE, *OTHERS.values())]
    told = []
    with ExitStack() as stack:
        stack.callback(logging.getLogger("paramiko").setLevel, logging.CRITICAL)
        seen = stack.enter_context(leaks.watched(*hidden))
        for number, wrong in enumerate((None, Kind.LOGIN, Kind.KEY, Kind.SUDO)):
            known = answers(user, wrong=wrong)
            for kind, secret in OTHERS.items():  # as whoever uses them will get them
                with known.asking(lambda question, secret=secret: secret):
                    assert known.password("me@proxy:8080", "proxy", kind) == secret
            machines = Machines(lab, passwords=known)
            record = tmp_path / f"{number}.branchlab"
            events = list(store.recorded(runner.run(experiment, machines, Stop()), record))
            told.append(str(events[-1]))
            for host in lab.hosts:
                try:
                    ssh.connect(host, passwords=answers(user, wrong=wrong)).close()
                except LabError as error:
                    told.append(error.told() + "".join(traceback.format_exception(error)))
    assert "has no place for it" in told[0], f"the run did not come past the secrets: {told[0]}"
    assert any("did not take the password" in text for text in told), told
    assert seen == []
    texts = [
        *told,
        caplog.text,
        repr(known),
        repr([one for one in gc.get_objects() if isinstance(one, Host)]),
    ]
    assert [text for text in texts if any(secret.decode() in text for secret in hidden)] == []
    places = [user.home, tmp_path, Path("/run/branchlab"), user.folder]
    found = [path for place in places for path in leaks.holding(place, *hidden)]
    assert found == []


def profile(lab: Lab, folder: Path) -> Path:
    path = folder / "profile.toml"
    hosts = "".join(
        f'[hosts.{host.name}]\nrole = "{host.role}"\nssh = "{host.ssh}"\nroot = "sudo"\nkey = "{host.key}"\n'
        f'address = "{host.address}"\n' + (f'host_key = "{host.host_key}"\n' if host.host_key else "")
        for host in lab.hosts
    )
    path.write_text(f'schema = 1\nname = "x"\n{hosts}')
    return path


@lab_only
@pytest.mark.usefixtures("fresh")
def test_real_hosts_tell_which_of_the_typed_were_right(user: users.User, tmp_path: Path) -> None:
    server, desk = bench(user, tmp_path).hosts
    known = answers(user)
    user.sudoers("USER ALL=(root) ALL")
    for host in (server, desk):
        hosts.signed_in(host, known)
    assert {(one.kind, one.wished) for one in known.taken()} == {
        (Kind.LOGIN, False), (Kind.KEY, False), (Kind.SUDO, False),
    }  # fmt: skip
    known = answers(user, wrong=Kind.SUDO)
    with pytest.raises(agents.PasswordRefused):
        hosts.signed_in(server, known)
    assert [one.kind for one in known.taken()] == [Kind.LOGIN]


@lab_only
def test_an_unattended_command_takes_every_secret_from_descriptors(user: users.User, tmp_path: Path) -> None:
    user.sudoers("USER ALL=(root) ALL")
    path = profile(bench(user, tmp_path), tmp_path)
    handed = {Kind.LOGIN: user.password, Kind.SUDO: user.password, Kind.KEY: PHRASE}
    environment = {**os.environ, "BRANCHLAB_DATA": str(tmp_path / "data")}
    with ExitStack() as stack:
        numbers = []
        for kind, secret in handed.items():
            reader, writer = os.pipe()
            os.write(writer, secret.encode() + b"\n")
            os.close(writer)
            stack.callback(os.close, reader)
            numbers.append(reader)
            environment[VARIABLES[kind]] = str(reader)
        seen = stack.enter_context(leaks.watched(user.password.encode(), PHRASE.encode()))
        done = subprocess.run(
            [sys.executable, "-m", "lab", "revert", str(path)],
            cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
            pass_fds=numbers, env=environment,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert seen == []


@lab_only
def test_at_the_terminal_a_key_is_accepted_and_passwords_are_typed(user: users.User, tmp_path: Path) -> None:
    user.sudoers("USER ALL=(root) ALL")
    lab = bench(user, tmp_path)
    lab = replace(lab, hosts=tuple(replace(host, host_key=None) for host in lab.hosts))
    command = [sys.executable, "-m", "lab", "revert", str(profile(lab, tmp_path))]
    environment = {**os.environ, "BRANCHLAB_DATA": str(tmp_path / "data")}
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "-c", *command], cwd=ROOT, stdin=end, stdout=end, stderr=end, env=environment
    )
    os.close(end)
    seen = ""
    for before, answer in (
        ("accept it and keep it [no]: ", "yes"),
        ("to log in on server: ", "wrong-secret"),
        ("to log in on server: ", user.password),
        ("to become root on server: ", user.password),
        (" for desk: ", PHRASE),
    ):
        while not seen.endswith(before):
            seen += os.read(terminal, 1000).decode()
        os.write(terminal, answer.encode() + b"\n")
        seen += "\n"
    with suppress(OSError):  # the terminal's other end is gone
        while piece := os.read(terminal, 1000):
            seen += piece.decode()
    os.close(terminal)
    assert process.wait(60) == 0, seen
    assert "did not take the password" in seen
    assert "desk: nothing was left" in seen
    assert seen.count("is not known here") == 1, "both hosts are the same machine"
    assert user.password not in seen
    assert PHRASE not in seen
    kept = (tmp_path / "data" / "known_hosts").read_text()
    assert kept == f"[127.0.0.1]:{user.server.port} {user.server.host_key()}\n"


def checked_at_a_terminal(lab: Lab, tmp_path: Path, answer: bytes) -> tuple[int, str]:
    """`branchlab check` of a lab of one host, its questions answered so: how it ended, and all that was seen."""
    path = tmp_path / "profile.toml"
    path.write_text(
        f'schema = 1\nname = "x"\n[hosts.desk]\nrole = "client"\nssh = "{lab.hosts[0].ssh}"\n'
        f'key = "{lab.hosts[0].key}"\naddress = "127.0.0.1"\n'
        '[hosts.server]\nrole = "server"\nssh = "unix:/nowhere"\naddress = "127.0.0.2"\n'
    )
    environment = {**os.environ, "BRANCHLAB_DATA": str(tmp_path / "data")}
    command = [sys.executable, "-m", "lab", "check", str(path)]
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "-c", *command], cwd=ROOT, stdin=end, stdout=end, stderr=end, env=environment
    )
    os.close(end)
    seen = ""
    with suppress(OSError):
        while piece := os.read(terminal, 1000):
            seen += piece.decode()
            if seen.endswith("[no]: "):
                os.write(terminal, answer)
    os.close(terminal)
    return process.wait(60), seen


@pytest.mark.parametrize("typed", ["yes", "desk"])
@lab_only
def test_at_the_terminal_a_changed_key_is_trusted_only_by_the_hosts_name(
    user: users.User, tmp_path: Path, typed: str
) -> None:
    lab = Lab(name="x", hosts=(replace(user.host("none", host_key=None), name="desk"),))
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    line = f"[127.0.0.1]:{user.server.port} {' '.join(Path(f'{other}.pub').read_text().split()[:2])}\n"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "known_hosts").write_text(line)
    status, seen = checked_at_a_terminal(lab, tmp_path, f"{typed}\n".encode())
    question = seen.partition("To trust the new key")[0]
    assert question.count("SHA256:") == 2, seen
    kept = (tmp_path / "data" / "known_hosts").read_text()
    if typed == "desk":
        assert kept == f"[127.0.0.1]:{user.server.port} {user.server.host_key()}\n"
        assert "another machine may be answering" not in seen.partition("To trust")[2]
    else:
        assert kept == line
        assert seen.partition("To trust")[2].count("SHA256:") >= 2
        assert status == 3


@lab_only
def test_at_the_terminal_anything_but_yes_is_no(user: users.User, tmp_path: Path) -> None:
    lab = Lab(name="x", hosts=(replace(user.host("none", host_key=None), name="desk"),))
    status, seen = checked_at_a_terminal(lab, tmp_path, b"y\n")
    assert status == 3, seen
    assert "is not known: ssh-ed25519 SHA256:" in seen
    assert "ssh-keyscan" in seen.replace("\r\n", " ")
    assert not (tmp_path / "data" / "known_hosts").exists()
