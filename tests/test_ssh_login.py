"""Logging in on real sshd servers: keys locked or not, agents, passwords, prompts; one fake server asks for codes."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
import users

from lab import credentials, ssh
from lab.credentials import Kind, Passwords
from lab.model import Host, Role
from lab.ssh import keyfiles, login
from tests import sshd

lab_only = pytest.mark.lab
SECRET = "a pass phrase Ä"


@pytest.fixture(autouse=True)
def no_keyring_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "stored", lambda name: None)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


class Person:
    """Answers in turn, and keeps what was asked."""

    def __init__(self, *answers: str | None) -> None:
        self.answers, self.asked = list(answers), list[str]()

    def __call__(self, question: str) -> str | None:
        self.asked.append(question)
        return self.answers.pop(0)


def made_key(path: Path, kind: str = "ed25519", phrase: str = "", *more: str) -> Path:
    argv = ["ssh-keygen", "-q", "-t", kind, "-N", phrase, "-f", str(path), *more]
    subprocess.run(argv, check=True)
    return path


def let_in(server: sshd.Sshd, *keys: Path) -> None:
    (server.folder / "authorized").write_text("".join(Path(f"{key}.pub").read_text() for key in keys))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[sshd.Sshd]:
    with sshd.listening(sshd.made(tmp_path / "sshd")) as running:
        yield running


def works(connection: ssh.Connection) -> None:
    with connection:
        assert connection.run(["echo", "in"]).out == b"in\n"


# Keys


@lab_only
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("ed25519", ()),
        ("ed25519", ("-Z", "aes256-gcm@openssh.com")),
        ("ecdsa", ()),
        ("ecdsa", ("-m", "PEM")),
        ("ecdsa", ("-m", "PKCS8")),
        ("rsa", ()),
        ("rsa", ("-Z", "aes256-gcm@openssh.com")),
        ("rsa", ("-m", "PEM")),
        ("rsa", ("-m", "PKCS8")),
    ],
)
def test_a_locked_key_is_unlocked_by_its_passphrase(
    server: sshd.Sshd, tmp_path: Path, kind: str, more: tuple[str, ...]
) -> None:
    key = made_key(tmp_path / "locked", kind, SECRET, *more)
    let_in(server, key)
    person = Person("wrong", SECRET)
    known = Passwords(person)
    host = server.host(key=str(key))
    works(ssh.connect(host, passwords=known))
    works(ssh.connect(host, passwords=known))
    assert len(person.asked) == 2, "once more after the wrong one, and never again"
    assert str(key) in person.asked[0]
    with pytest.raises(login.AuthenticationRefused) as caught:
        ssh.connect(host)
    assert "its passphrase is not known" in caught.value.tried


@lab_only
def test_nobody_is_asked_for_a_passphrase_that_would_not_help(server: sshd.Sshd, tmp_path: Path) -> None:
    wrong, right = made_key(tmp_path / "wrong", phrase=SECRET), made_key(tmp_path / "right")
    let_in(server, right)
    person = Person()
    with pytest.raises(login.AuthenticationRefused):
        ssh.connect(server.host(key=str(wrong)), passwords=Passwords(person))
    config = tmp_path / "config"
    config.write_text(
        f"Host bench\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {wrong}\n IdentityFile {right}\n"
    )
    works(ssh.connect(server.host(ssh="bench", key=None), config=config, passwords=Passwords(person)))
    assert person.asked == []


@lab_only
def test_a_key_that_cannot_be_read_here_is_told_and_the_next_one_tried(
    server: sshd.Sshd, tmp_path: Path
) -> None:
    unread = made_key(tmp_path / "unread", "ed25519", SECRET, "-Z", "chacha20-poly1305@openssh.com")
    right = made_key(tmp_path / "right", "rsa", "", "-m", "PKCS8")
    junk = tmp_path / "junk"
    let_in(server, unread, right)
    config = tmp_path / "config"
    text = (
        f"Host bench\n HostName 127.0.0.1\n Port {server.port}\n IdentitiesOnly yes\n IdentityFile {unread}\n"
    )
    config.write_text(f"{text} IdentityFile {junk}\n IdentityFile {right}\n")
    host = server.host(ssh="bench", key=None)
    for content in (b"", b"hello\n", b"\xff\xfe" * 99, b"PuTTY-User-Key-File-3: ssh-ed25519\n"):
        junk.write_bytes(content)
        works(ssh.connect(host, config=config, passwords=Passwords(Person())))
    config.write_text(text)
    with pytest.raises(login.AuthenticationRefused) as caught:
        ssh.connect(host, config=config, passwords=Passwords(Person()))
    assert f"ssh-keygen -p -Z aes256-ctr -f {unread}" in caught.value.tried
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-Z", "aes256-ctr", "-f", unread, "-P", SECRET, "-N", SECRET], check=True
    )
    works(ssh.connect(host, config=config, passwords=Passwords(Person(SECRET))))


@pytest.mark.parametrize("form", [(), ("-m", "PEM"), ("-m", "PKCS8")])
def test_a_truncated_key_is_not_told_as_a_wrong_passphrase(tmp_path: Path, form: tuple[str, ...]) -> None:
    key = made_key(tmp_path / "key", "rsa", SECRET, *form)
    assert keyfiles.private(key, None) is None
    assert keyfiles.private(key, "wrong") is None
    lines = key.read_text().splitlines()
    half = lines[: len(lines) // 2]
    for left in (half, [*half, lines[-1]] if not form else half):
        key.write_text("\n".join(left))
        with pytest.raises(keyfiles.Unusable):
            keyfiles.private(key, SECRET)


@contextmanager
def agent(folder: Path, monkeypatch: pytest.MonkeyPatch, *keys: Path) -> Iterator[Path]:
    place = folder / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(place)], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while not place.exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        environment = {**os.environ, "SSH_AUTH_SOCK": str(place)}
        subprocess.run(["ssh-add", "-q", *map(str, keys)], env=environment, check=True)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        yield place
    finally:
        process.terminate()
        process.wait(30)


@lab_only
def test_keys_of_the_agent_and_named_ones_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [made_key(tmp_path / f"key{n}", "rsa" if n == 7 else "ed25519") for n in range(8)]
    made = sshd.made(tmp_path / "sshd", "MaxAuthTries 6")
    let_in(made, keys[7])
    with sshd.listening(made) as server, agent(tmp_path, monkeypatch, *keys) as place:
        public = tmp_path / "key7.pub"
        keys[7].unlink()  # only the agent has it now
        with pytest.raises(login.AuthenticationRefused) as caught:
            ssh.connect(server.host(key=None, ssh=f"127.0.0.1:{server.port}"))
        assert "MaxAuthTries" in caught.value.advice
        assert "IdentitiesOnly" in caught.value.advice
        assert caught.value.tried.count("agent:") >= 5
        works(ssh.connect(server.host(key=str(public))))
        config = tmp_path / "config"
        text = f"Host bench\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {public}\n IdentitiesOnly yes\n"
        config.write_text(text)
        works(ssh.connect(server.host(ssh="bench", key=None), config=config))
        monkeypatch.delenv("SSH_AUTH_SOCK")
        config.write_text(f"{text} IdentityAgent {place}\n")
        works(ssh.connect(server.host(ssh="bench", key=None), config=config))
        # What only the agent has is told, not passed over.
        config.write_text(text)
        with pytest.raises(login.AuthenticationRefused) as caught:
            ssh.connect(server.host(ssh="bench", key=None), config=config)
        assert "key7.pub" in caught.value.tried


@lab_only
def test_an_agent_that_says_nothing_is_not_waited_for(
    server: sshd.Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.ssh.keyfiles.AGENT_S", 0.3)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "mute"))
        mute.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "mute"))
        works(ssh.connect(server.host()))


@lab_only
def test_an_agent_that_refuses_one_key_is_asked_for_the_next(
    server: sshd.Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = made_key(tmp_path / "first"), made_key(tmp_path / "second", "ecdsa")
    let_in(server, first, second)
    monkeypatch.setenv("SSH_ASKPASS", "/bin/false")
    monkeypatch.delenv("DISPLAY", raising=False)
    host = server.host(key=None, ssh=f"127.0.0.1:{server.port}")
    with agent(tmp_path, monkeypatch, first):
        subprocess.run(["ssh-add", "-q", "-D"], check=True)
        subprocess.run(["ssh-add", "-q", "-c", first], check=True)  # a person is to confirm each use
        with pytest.raises(login.AuthenticationRefused) as caught:
            ssh.connect(host)
        assert "the agent refused to sign" in caught.value.tried
        subprocess.run(["ssh-add", "-q", second], check=True)
        works(ssh.connect(host))


@pytest.mark.parametrize(
    "answer",
    [
        b"\0\0\0\x09\x0c\xff\xff\xff\xff\0\0\0\x40",  # four thousand million keys
        b"\xff\xff\xff\xff\x0c",
        b"\0\0\0\x01\x05",
        b"",
    ],
)
def test_an_agent_that_talks_nonsense_costs_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "agent"))
        listener.listen()

        def talk() -> None:
            link, _ = listener.accept()
            with link:
                link.recv(99)
                link.sendall(answer)

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            with pytest.raises(paramiko.SSHException), keyfiles.agent(str(tmp_path / "agent")):
                pass
        finally:
            thread.join()


@lab_only
def test_a_certificate_of_the_user(tmp_path: Path) -> None:
    authority, key = made_key(tmp_path / "ca"), made_key(tmp_path / "key", phrase=SECRET)
    made = sshd.made(tmp_path / "sshd", f"TrustedUserCAKeys {authority}.pub")
    (made.folder / "authorized").write_text("")
    person = Passwords(Person(SECRET))
    with sshd.listening(made) as server:
        host = server.host(key=str(key))
        argv = [
            "ssh-keygen",
            "-q",
            "-s",
            str(authority),
            "-I",
            "x",
            "-n",
            host.ssh.split("@")[0],
            f"{key}.pub",
        ]
        subprocess.run(argv, check=True)
        works(ssh.connect(host, passwords=person))
        for dates, told in (("-2w:-1w", "it was valid until 2"), ("+1w:+2w", "it is valid from 2")):
            subprocess.run([*argv[:-1], "-V", dates, argv[-1]], check=True)
            with pytest.raises(login.AuthenticationRefused) as caught:
                ssh.connect(host)
            assert f"{key}-cert.pub ({told}" in caught.value.tried


@lab_only
def test_rsa_keys_sign_with_sha_2(tmp_path: Path) -> None:
    key = made_key(tmp_path / "key", "rsa")
    made = sshd.made(tmp_path / "new", "PubkeyAcceptedAlgorithms rsa-sha2-512")
    let_in(made, key)
    with sshd.listening(made) as server:
        works(ssh.connect(server.host(key=str(key))))
    made = sshd.made(tmp_path / "old", "PubkeyAcceptedAlgorithms ssh-rsa")
    let_in(made, key)
    with sshd.listening(made) as server, pytest.raises(login.AuthenticationRefused) as caught:
        ssh.connect(server.host(key=str(key)))
    assert "(as rsa-sha2-512)" in caught.value.tried
    with fake(FakeServer([], []), old=True) as host, pytest.raises(login.AuthenticationRefused) as caught:
        ssh.connect(replace(host(), key=str(key)))
    assert "only with SHA-1, `ssh-rsa`: use Ed25519" in caught.value.tried


@lab_only
@pytest.mark.parametrize("text", [b"", b"garbage", b"a b c\n", b"\xff\xfe \x00", b"ssh-ed25519 AAAA x\n"])
def test_a_certificate_that_is_none_does_not_hide_its_key(server: sshd.Sshd, text: bytes) -> None:
    beside = Path(f"{server.key}-cert.pub")
    beside.write_bytes(text)
    works(ssh.connect(server.host()))
    locked = made_key(server.folder / "locked", "rsa", SECRET)
    Path(f"{locked}-cert.pub").write_bytes(text)
    let_in(server, locked)
    works(ssh.connect(server.host(key=str(locked)), passwords=Passwords(Person("wrong", SECRET))))
    (server.folder / "authorized").write_text("")
    with pytest.raises(login.AuthenticationRefused) as caught:
        ssh.connect(server.host())
    assert f"{beside}: " in caught.value.tried


@lab_only
def test_a_passphrase_that_was_handed_over_and_is_wrong_is_told_as_wrong(
    server: sshd.Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, other = (
        made_key(tmp_path / "locked", phrase="another"),
        made_key(tmp_path / "other", phrase=SECRET),
    )
    let_in(server, locked)
    monkeypatch.setattr(credentials, "handed_over", lambda kind: SECRET if kind is Kind.KEY else None)
    known = Passwords()
    for _ in range(2):
        with pytest.raises(login.AuthenticationRefused) as caught:
            ssh.connect(server.host(key=str(locked)), passwords=known)
        assert (
            f"{locked}: the host would take it, and the passphrase that was given for it is wrong"
            in caught.value.tried
        )
    let_in(server, other)
    works(ssh.connect(server.host(key=str(other)), passwords=known))


@lab_only
def test_a_named_key_without_its_passphrase_is_what_the_end_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = made_key(tmp_path / "locked", phrase=SECRET)
    keys = [made_key(tmp_path / f"key{n}") for n in range(6)]
    made = sshd.made(tmp_path / "sshd", "MaxAuthTries 4")
    let_in(made, locked)
    with sshd.listening(made) as server, agent(tmp_path, monkeypatch, *keys):
        with pytest.raises(login.AuthenticationRefused, match="its passphrase is not known") as caught:
            ssh.connect(server.host(key=str(locked)))
        assert caught.value.tried.count("agent:") >= 2, "the server gave up for another reason"
        assert "MaxAuthTries" not in caught.value.advice


# Passwords


@pytest.fixture(scope="module")
def somebody() -> Iterator[users.User]:
    with users.user("PasswordAuthentication yes", "Banner /etc/passwd") as made:
        yield made


def nobodys_key(user: users.User) -> str:
    path = user.folder / "nobodys"
    return str(path if path.exists() else made_key(path))


@lab_only
def test_a_password_is_asked_for_once_and_a_wrong_one_told(somebody: users.User) -> None:
    host = somebody.host("none", key=nobodys_key(somebody))
    person = Person("wrong-secret", somebody.password)
    known = Passwords(person)
    with pytest.raises(login.LoginPasswordRefused) as caught:
        ssh.connect(host, passwords=known)
    assert "wrong-secret" not in caught.value.told()
    for _ in range(2):
        works(ssh.connect(host, passwords=known))
    assert len(person.asked) == 2
    assert somebody.name in person.asked[0]
    with pytest.raises(login.AuthenticationRefused) as caught:
        ssh.connect(host)
    assert "password: none is known" in caught.value.tried
    assert "it takes publickey, password" in str(caught.value)


@lab_only
def test_the_password_of_sudo_is_not_taken_for_logging_in(somebody: users.User) -> None:
    known = Passwords(Person(somebody.password, None))
    host = somebody.host("none", key=nobodys_key(somebody))
    target = f"{somebody.name}@127.0.0.1:{somebody.server.port}"
    assert known.password(target, "bench", Kind.SUDO) == somebody.password
    with pytest.raises(login.AuthenticationRefused):
        ssh.connect(host, passwords=known)


@lab_only
def test_what_a_server_says_when_it_hangs_up_is_told(tmp_path: Path) -> None:
    (tmp_path / "banner").write_text("For the staff only.\n")
    with users.user("PasswordAuthentication yes", f"Banner {tmp_path}/banner") as user:
        tmp_path.chmod(0o755)
        subprocess.run(["chage", "-E", "0", user.name], check=True)
        with pytest.raises(login.AuthenticationRefused) as caught:
            ssh.connect(user.host())
        assert "hung up once it had been given the key" in str(caught.value)
        assert "expired" in str(caught.value)
        assert "For the staff" not in str(caught.value)
        assert f"chage -l {user.name}" in caught.value.advice


@lab_only
def test_prompts_of_pam_are_answered_by_the_password() -> None:
    with users.user("KbdInteractiveAuthentication yes", "PubkeyAuthentication no") as user:
        person = Person("wrong", user.password)
        known = Passwords(person)
        with pytest.raises(login.LoginPasswordRefused):
            ssh.connect(user.host("none"), passwords=known)
        works(ssh.connect(user.host("none"), passwords=known))
        assert len(person.asked) == 2
        with pytest.raises(login.AuthenticationRefused, match="it takes keyboard-interactive"):
            ssh.connect(user.host("none"))


@lab_only
def test_a_key_and_a_password_where_both_are_wanted() -> None:
    with users.user("PasswordAuthentication yes", "AuthenticationMethods publickey,password") as user:
        works(ssh.connect(user.host("none"), passwords=Passwords(Person(user.password))))
        with pytest.raises(
            login.AuthenticationRefused, match="after a first step succeeded; it takes password"
        ):
            ssh.connect(user.host("none"))


@lab_only
def test_whoever_thinks_longer_than_the_server_waits_is_not_asked_twice() -> None:
    with users.user("PasswordAuthentication yes", "PubkeyAuthentication no", "LoginGraceTime 2") as user:
        asked: list[str] = []

        def slow(question: str) -> str:
            asked.append(question)
            time.sleep(4)
            return user.password

        works(ssh.connect(user.host("none"), passwords=Passwords(slow)))
        assert len(asked) == 1


# A server that asks for more than a password: a fake, since PAM here has no module that does


class FakeServer(paramiko.ServerInterface):
    """Asks these prompts in turn, one round each, and lets in whoever gives these answers."""

    def __init__(self, rounds: list[list[tuple[str, bool]]], answers: list[str]) -> None:
        self.rounds, self.answers, self.given = rounds, answers, list[str]()

    def get_allowed_auths(self, username: str) -> str:
        return "publickey,keyboard-interactive"

    def check_auth_interactive(self, username: str, submethods: str) -> paramiko.InteractiveQuery:
        self.given.clear()
        self.round = 0
        return self._query(0)

    def _query(self, number: int) -> paramiko.InteractiveQuery:
        return paramiko.InteractiveQuery("Bank", "of \x1b[31mMinsk", *self.rounds[number])

    def check_auth_interactive_response(self, responses: list[str]) -> int | paramiko.InteractiveQuery:
        self.given += responses
        self.round += 1
        if self.round < len(self.rounds):
            return self._query(self.round)
        return paramiko.AUTH_SUCCESSFUL if self.given == self.answers else paramiko.AUTH_FAILED


@contextmanager
def fake(server: FakeServer, *, old: bool = False) -> Iterator[Callable[[], Host]]:
    key = paramiko.ECDSAKey.generate()
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)

        def serve() -> None:
            transports = []
            while not over.is_set():
                try:
                    link, _ = listener.accept()
                except TimeoutError:
                    continue
                transport = paramiko.Transport(link, server_sig_algs=not old)
                transport.add_server_key(key)
                transports.append(transport)
                with suppress(EOFError, paramiko.SSHException):  # a client may go amid the key exchange
                    transport.start_server(server=server)
            for transport in transports:
                transport.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            name = f"me@127.0.0.1:{listener.getsockname()[1]}"
            pinned = f"{key.get_name()} {key.get_base64()}"
            yield lambda: Host(name="bench", role=Role.CLIENT, ssh=name, key="/nowhere", host_key=pinned)
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize(
    "prompt", ["Password: ", "Passwort: ", "Mot de passe : ", "(me@host) Пароль: ", "密码："]
)
def test_a_hidden_prompt_in_any_language_is_the_passwords_and_a_code_is_asked_for(prompt: str) -> None:
    server = FakeServer([[(prompt, False)], [], [("Verification code: ", False)]], ["secret", "123456"])
    person = Person("secret", "123456", "123456")
    known = Passwords(person)
    with fake(server) as host:
        for _ in range(2):
            with ssh.connect(host(), passwords=known) as connection:
                assert connection.one_time
    assert [question.split()[0] for question in person.asked] == ["Password", "bench", "bench"]
    assert "Verification code:" in person.asked[1]
    assert "Bank" in person.asked[1]
    assert "\x1b" not in person.asked[1]


def test_a_code_is_never_answered_by_a_password() -> None:
    server = FakeServer([[("Enter your one-time code: ", False), ("Reason", True)]], ["1", "why"])
    person = Person("1", "why")
    with fake(server) as host:
        ssh.connect(host(), passwords=Passwords(person)).close()
        assert len(person.asked) == 2
        with pytest.raises(login.AuthenticationRefused) as caught:
            ssh.connect(host())
    assert "asks 'Enter your one-time code:', and nobody is there" in caught.value.tried


def test_a_wrong_password_that_is_asked_for_again_in_one_conversation_is_offered_once() -> None:
    server = FakeServer([[("Password: ", False)], [("Password: ", False)]], ["x", "x"])
    with fake(server) as host, pytest.raises(login.LoginPasswordRefused):
        ssh.connect(host(), passwords=Passwords(Person("x")))
    assert server.given == ["x"]


@pytest.mark.parametrize("again", ["Password (try 1): ", "Sorry, try again: ", "Пароль ещё раз: "])
def test_a_wrong_password_is_known_as_wrong_whatever_the_next_prompt_says(again: str) -> None:
    server = FakeServer([[("Password: ", False)], [(again, False)]], ["right", "right"])
    person = Person("wrong", None)
    known = Passwords(person)
    with fake(server) as host:
        with pytest.raises(login.LoginPasswordRefused):
            ssh.connect(host(), passwords=known)
        assert server.given == ["wrong"]
        assert len(person.asked) == 1
        with pytest.raises(login.AuthenticationRefused) as caught:
            ssh.connect(host(), passwords=known)
    assert server.given == [], "it was offered again"
    assert "wrong" not in caught.value.told()


def test_a_code_is_asked_for_three_times_at_most() -> None:
    server = FakeServer([[("Code: ", False)]] * 9, ["x"] * 9)
    person = Person(*"123456789")
    with fake(server) as host, pytest.raises(login.AuthenticationRefused) as caught:
        ssh.connect(host(), passwords=Passwords(person))
    assert len(person.asked) == login.TRIES
    assert "refused (3 typed)" in caught.value.tried


def test_a_right_password_that_has_to_be_changed_is_not_told_as_wrong() -> None:
    server = FakeServer([[("Password: ", False)], [("Current password: ", False)]], ["secret", "secret"])
    known = Passwords(Person("secret"))
    with fake(server) as host:
        for _ in range(2):
            with pytest.raises(login.AuthenticationRefused) as caught:
                ssh.connect(host(), passwords=known)
            assert "wants the password to be changed first" in caught.value.tried
            assert "change it there" in caught.value.advice
            assert not isinstance(caught.value, login.LoginPasswordRefused)


@pytest.mark.parametrize(
    "prompt",
    [
        "Password for bob@vscode.example.com:",
        "Password for factory on tokenring:",
        "(me@codehost) Password:",
        "me's password at pin board: ",
        "Passwort für pin auf duo:",
    ],
)
def test_names_of_people_and_hosts_make_no_code_of_a_password(prompt: str) -> None:
    server = FakeServer([[(prompt, False)]], ["secret"])
    person = Person("secret")
    with fake(server) as host, ssh.connect(host(), passwords=Passwords(person)) as connection:
        assert not connection.one_time
    assert person.asked[0].startswith("Password of")


def test_a_second_password_is_asked_for_and_the_first_stays_right() -> None:
    server = FakeServer([[("Password: ", False)], [("Enter LDAP Password: ", False)]], ["one", "two"])
    person = Person("one", "two", "two")
    known = Passwords(person)
    with fake(server) as host:
        for _ in range(2):
            ssh.connect(host(), passwords=known).close()
        assert len(person.asked) == 3
        assert "Enter LDAP Password:" in person.asked[1]
        with pytest.raises(login.AuthenticationRefused):
            ssh.connect(host(), passwords=Passwords())
