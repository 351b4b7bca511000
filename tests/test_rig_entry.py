"""A repository that wants a user, a password and a trusted certificate: entered, refused once, and nothing leaks."""

from __future__ import annotations

import os
import pty
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import leaks
import own_repository
import pytest
import real_runs
import two_apaches
from own_repository import PORT, Authority, Repository
from real_runs import EMPTY, FULL, experiment

from lab import embedded, machines, runner, store, vcs
from lab.credentials import VARIABLES, Kind, Passwords
from lab.embedded import Embedded
from lab.errors import BadInput, HostLacks
from lab.events import (
    CommandStarted,
    Event,
    HostSeen,
    Outcome,
    RunFinished,
    RunStarted,
    Standing,
    TrialFinished,
    TrialStarted,
)
from lab.machines import Machines
from lab.model import DISABLED, Change, Experiment, Line, Role
from lab.rig import planning, scratch
from lab.rig.entry import Entry, RepositoryPasswordRefused
from lab.stop import Stop

lab_only = [
    pytest.mark.lab,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(two_apaches.missing()), reason="missing: " + two_apaches.missing()),
]
SECRET = f"s3cret {secrets.token_hex(8)} ü"
PROXY_SECRET = f"pr0xy%{secrets.token_hex(8)} ü"
FAST = Line(upload_bps=4_000_000, download_bps=8_000_000)
URL = f"https://{{server}}:{PORT}/svn"
DRIVER = vcs.driver("subversion")


@pytest.fixture(scope="module")
def lab() -> Iterator[Embedded]:
    with embedded.up() as made:
        yield made


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("company") / "company.pem")


@pytest.fixture(scope="module")
def locked(lab: Embedded, company: Authority) -> Iterator[Repository]:
    with own_repository.served(lab, password="reads", anna=SECRET, tls=company) as repository:
        yield repository


def own(company: Authority, **changes: object) -> Experiment:
    """The least that is entered by a user, over https."""
    fields: dict[str, object] = {
        "data": None,
        "repository": f"{URL}/trunk",
        "user": "anna",
        "ca": str(company.file),
        "lines": (FAST,),
        "states": (DISABLED,),
        "attempts": 1,
        "change": Change(files=20),
    }
    return experiment(**{**fields, **changes})


def knowing(secret: str = SECRET) -> Passwords:
    """A person is there who types this, whatever is asked."""
    return Passwords(lambda question: secret)


class Asked:
    """A person who keeps the questions, and types one answer after another."""

    def __init__(self, *answers: str) -> None:
        self.questions: list[str] = []
        self._answers = list(answers)

    def __call__(self, question: str) -> str | None:
        self.questions.append(question)
        return self._answers.pop(0) if self._answers else None


def ran(
    lab: Embedded, wanted: Experiment, known: Passwords | None, record: Path | None = None
) -> list[Event]:
    told = runner.run(wanted, Machines(lab.lab, passwords=known), Stop())
    return list(store.recorded(told, record) if record else told)


# svn's own words, in whatever language


SAID = "svn: E170013: Verbindung fehlgeschlagen\nsvn: E215004: Keine weiteren Anmeldedaten\n"


def test_what_svn_asked_for_is_named() -> None:
    nobody = Entry(site="svn:443", server="far")
    assert isinstance(nobody.trouble(SAID, "desk", "svn info"), BadInput)
    assert 'user = "NAME"' in nobody.trouble(SAID, "desk", "svn info").advice  # type: ignore[union-attr]
    assert nobody.trouble("svn: E175002: irgendetwas\n", "desk", "svn info") is None
    assert nobody.trouble("svn: E125009: kaputt\n", "desk", "svn info") is None
    asked = nobody.trouble("svn: E230001: nicht vertraut\n", "desk", "svn info")
    assert "certificate of svn:443" in str(asked)


def test_a_wrong_password_is_known_to_be_wrong_from_then_on() -> None:
    person = Asked("first", "second")
    anna = Entry(site="svn:443", server="far", user="anna", passwords=Passwords(person))
    assert anna.line() == "first\n"
    assert isinstance(anna.trouble(SAID, "desk", "svn info"), RepositoryPasswordRefused)
    with pytest.raises(RepositoryPasswordRefused, match="did not take the password of anna@svn:443"):
        anna.line()
    assert (len(person.questions), "first" in repr(anna)) == (1, False)


def test_a_proxys_password_that_svns_configuration_would_read_differently_is_refused() -> None:
    def settings(secret: str) -> str:
        known = Passwords(lambda question: secret)
        return Entry(site="p:1", server="desk", user="joe", kind=Kind.PROXY, passwords=known).settings()

    assert settings("a b%c") == "[global]\nhttp-proxy-username = joe\nhttp-proxy-password = a b%c\n"
    for secret in (" xyz", "xyz ", "x\nyz", "%(x)s", "xyz\x7f"):
        with pytest.raises(
            BadInput, match=r"password of joe@p:1 has a line break|hold the password of joe@p:1"
        ) as caught:
            settings(secret)
        assert secret.strip() not in caught.value.told()


@pytest.mark.parametrize(
    ("version", "old"), [("1.9.7", True), ("1.10.0", False), ("1.14.2", False), (None, False)]
)
def test_an_svn_that_takes_passwords_as_arguments_only_is_refused(version: str | None, old: bool) -> None:
    anna = Entry(site="svn:443", server="far", user="anna")
    Entry(site="svn:443", server="far").refuse_old("1.6.11", "desk")  # nobody is named
    if not old:
        return anna.refuse_old(version, "desk")
    with pytest.raises(HostLacks, match="takes a password only as an argument"):
        anna.refuse_old(version, "desk")
    return None


@pytest.mark.usefixtures("locked")
class TestOnARealServer:
    """Apache with mod_dav_svn, Basic auth on everything, and TLS by a company's CA."""

    pytestmark = lab_only

    def test_every_operation_is_proven_and_the_password_is_nowhere(
        self, lab: Embedded, company: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        wanted = own(
            company,
            scratch=f"{URL}/lab/branchlab-scratch",
            operations=("get", "check-out", "undo", "check-in", "history", "diff"),
        )
        caplog.set_level("DEBUG")
        record = tmp_path / "run.branchlab"
        with leaks.watched(SECRET.encode()) as seen:
            scratch.make(lab.lab, wanted, DRIVER, knowing())
            events = ran(lab, wanted, knowing(), record)
            left = scratch.revert(lab.lab, wanted, DRIVER, knowing())
        finished = [event for event in events if isinstance(event, TrialFinished)]
        assert [(one.standing, one.reason) for one in finished] == [(Standing.KEPT, "")] * 6, events[-1]
        assert left == []
        named = [event for event in events if isinstance(event, CommandStarted) and "anna" in event.argv]
        assert len(named) == 6
        assert seen == []
        assert SECRET not in caplog.text + repr(events) + repr(planning.commands(lab.lab, wanted, DRIVER))
        assert leaks.holding(tmp_path, SECRET.encode()) == []
        assert leaks.holding(lab.folder, SECRET.encode()) == []

    def test_a_wrong_password_is_offered_once_before_the_first_change(
        self, lab: Embedded, company: Authority, locked: Repository
    ) -> None:
        before, person = locked.newest(), Asked("wrong-one", SECRET)
        known = Passwords(person)
        wanted = own(company, operations=("get",), attempts=3)
        last = ran(lab, wanted, known)[-1]
        assert isinstance(last, RunFinished)
        assert last.outcome is Outcome.FAILED
        assert "did not take the password of anna@" in last.reason
        assert "wrong-one" not in last.reason
        assert (len(person.questions), locked.newest()) == (1, before)
        server = lab.lab.one(Role.SERVER)
        assert person.questions == [
            f"Password of anna@{server.address}:{PORT} for the repository on {server.name}: "
        ]
        # Signing in again asks again, and now it is right.
        machines.signed_in(lab.lab, wanted, known)
        assert ran(lab, wanted, known)[-1].outcome is Outcome.DONE  # type: ignore[attr-defined]

    def test_a_password_that_changes_amid_a_run_ends_it_at_its_first_trial(
        self, lab: Embedded, company: Authority, locked: Repository
    ) -> None:
        wanted, events = own(company, operations=("get",), attempts=3), []
        try:
            for event in runner.run(wanted, Machines(lab.lab, passwords=knowing()), Stop()):
                events.append(event)
                if isinstance(event, TrialStarted):
                    locked.let_in("another")
        finally:
            locked.let_in(SECRET)
        (trial,) = (event for event in events if isinstance(event, TrialFinished))
        assert trial.standing is Standing.FAILED
        assert "did not take the password" in events[-1].reason  # type: ignore[attr-defined]

    def test_nobody_who_could_be_asked_is_told_where_to_keep_the_password(
        self, lab: Embedded, company: Authority
    ) -> None:
        last = ran(lab, own(company), None)[-1]
        assert isinstance(last, RunFinished)
        assert "is not known, and nobody is there to be asked" in last.reason
        assert f'keyring set branchlab "vcs anna@{lab.lab.one(Role.SERVER).address}:{PORT}"' in last.advice
        assert "BRANCHLAB_VCS_PASSWORD_FD" in last.advice

    def test_a_certificate_that_nobody_vouches_for_is_named(
        self, lab: Embedded, company: Authority, tmp_path: Path
    ) -> None:
        with pytest.raises(BadInput, match="asked whether to trust the certificate of") as caught:
            machines.signed_in(lab.lab, own(company, ca=None), knowing())
        assert 'Write ca = "' in caught.value.advice
        other = Authority(tmp_path / "other.pem")
        with pytest.raises(BadInput, match="asked whether to trust the certificate of") as caught:
            machines.signed_in(lab.lab, own(company, ca=str(other.file)), knowing())
        assert f"{other.file} does not vouch for it" in caught.value.advice
        with pytest.raises(BadInput, match=f"svn cannot use {tmp_path}/nothing.pem"):
            machines.signed_in(lab.lab, own(company, ca=f"{tmp_path}/nothing.pem"), knowing())

    def test_check_says_who_is_let_in(self, lab: Embedded, company: Authority) -> None:
        found = machines.check(lab.lab, own(company), knowing())
        texts = [one.text for one in found]
        assert any("speaks https" in text for text in texts)
        assert "the repository lets anna in, or asks nobody on reads" in texts
        wrong = machines.check(lab.lab, own(company), knowing("wrong-one"))[-1]
        assert (wrong.ok, "did not take the password of anna@" in wrong.text) == (False, True)
        nobody = machines.check(lab.lab, own(company, user=None), Passwords())[-1]
        assert (nobody.ok, "asks for a user and a password" in nobody.text) == (False, True)

    def test_a_proxy_that_asks_for_a_password_is_measured_and_the_password_is_nowhere(
        self, lab: Embedded, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG")
        made = f"http://{{server}}:{PORT + 2}/svn/trunk"
        wanted = experiment(repository=made, states=(DISABLED, EMPTY, FULL), attempts=1)
        record = tmp_path / "run.branchlab"
        with own_repository.proxied(lab, PROXY_SECRET, PORT + 2, 3129) as there:
            bed = Machines(there, passwords=knowing(PROXY_SECRET), agreed=frozenset({"purge"}))
            with leaks.watched(PROXY_SECRET.encode()) as seen:
                events = list(store.recorded(runner.run(wanted, bed, Stop()), record))
            person = Asked("wrong-one", PROXY_SECRET)
            wrong = Passwords(person)
            *told, refused = runner.run(wanted, Machines(there, passwords=wrong), Stop())
            found = machines.check(there, wanted, Passwords(Asked(PROXY_SECRET)))
            machines.signed_in(there, wanted, wrong)
        finished = [event for event in events if isinstance(event, TrialFinished)]
        assert [(one.standing, one.reason) for one in finished] == [(Standing.KEPT, "")] * 3, events[-1]
        assert sorted(one.served_bytes > 200_000 for one in finished) == [False, False, True]
        assert seen == []
        assert PROXY_SECRET not in caplog.text + repr(events)
        assert [
            path for place in (tmp_path, lab.folder) for path in leaks.holding(place, PROXY_SECRET.encode())
        ] == []
        # Refused before the first change.
        proxy = there.one(Role.PROXY)
        assert f"the proxy did not take the password of joe@{proxy.address}:3129" in str(refused)
        assert person.questions == [f"Password of joe@{proxy.address}:3129 at the proxy {proxy.name}: "] * 2
        assert {type(event) for event in told} == {RunStarted, HostSeen}
        assert all(one.ok for one in found), found

    def test_with_a_password_on_writes_only_every_state_can_be_measured_but_several_locks_cannot(
        self, lab: Embedded
    ) -> None:
        with own_repository.served(lab, password="writes", anna=SECRET, port=PORT + 1) as repository:
            url = f"http://{{server}}:{PORT + 1}/svn"
            wanted = experiment(
                data=None, repository=f"{url}/trunk", scratch=f"{url}/place", user="anna", attempts=1,
                states=(DISABLED, FULL), operations=("get", "check-in"), change=Change(files=20),
            )  # fmt: skip
            scratch.make(lab.lab, wanted, DRIVER, knowing())
            events = ran(lab, wanted, knowing())
            finished = [event for event in events if isinstance(event, TrialFinished)]
            assert [(one.standing, one.reason) for one in finished] == [(Standing.KEPT, "")] * 4, events[-1]
            known = Passwords(Asked(SECRET))
            *told, last = ran(lab, replace(wanted, operations=("check-out",)), known)
            assert isinstance(last, RunFinished)
            assert "svn locks one file here, but not several at once" in last.reason
            assert "take check-out out of the operations" in last.advice
            assert not [event for event in told if isinstance(event, CommandStarted)]
            assert (repository.locks(), repository.names("/place")) == ([], [])
            machines.signed_in(lab.lab, wanted, known)  # the password is not taken for a wrong one

    def test_a_proxy_is_refused_where_reading_needs_a_password(self, lab: Embedded) -> None:
        with own_repository.served(lab, password="reads", anna=SECRET, port=PORT + 1):
            url = f"http://{{server}}:{PORT + 1}/svn/trunk"
            wanted = experiment(data=None, repository=url, user="anna", states=(DISABLED, EMPTY))
            last = ran(lab, wanted, knowing())[-1]
            assert isinstance(last, RunFinished)
            assert "asks for a user and a password" in last.reason
            assert 'Write states = ["disabled"]' in last.advice
            checked = machines.check(lab.lab, wanted, knowing())
            assert [one.grade for one in checked if "a password is asked for on reads" in one.text] == [
                "trouble"
            ]

    def test_an_unattended_command_takes_the_password_from_a_descriptor(
        self, lab: Embedded, company: Authority, tmp_path: Path
    ) -> None:
        text = f"""
[[experiments]]
name = "own"
repository = "{URL}/trunk"
scratch = "{URL}/by-command"
user = "anna"
ca = "{company.file}"
lines = ["64/128 kbit/s"]
states = ["disabled"]
"""
        path = real_runs.profile(lab.profile_path, tmp_path / "own.toml", text)
        for secret, code, said in (
            (SECRET, 0, "made and marked"),
            ("wrong-one", 3, "did not take the password of anna@"),
        ):
            reader, writer = os.pipe()
            os.write(writer, secret.encode() + b"\n")
            os.close(writer)
            done = subprocess.run(
                [sys.executable, "-m", "lab", "scratch", str(path)],
                cwd=real_runs.CHECKOUT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
                pass_fds=[reader],
                env={**os.environ, "BRANCHLAB_DATA": str(tmp_path), VARIABLES[Kind.VCS]: str(reader)},
            )  # fmt: skip
            os.close(reader)
            told = done.stdout + done.stderr
            assert (done.returncode, said in told, secret in told) == (code, True, False), told

    @pytest.mark.parametrize("words", [["check"], ["run", "--headless"]])
    def test_at_the_terminal_the_password_is_typed_and_a_wrong_one_told(
        self, words: list[str], lab: Embedded, company: Authority, tmp_path: Path
    ) -> None:
        text = f"""
[[experiments]]
name = "own"
repository = "{URL}/trunk"
user = "anna"
ca = "{company.file}"
operations = ["get"]
lines = ["as it is"]
states = ["disabled"]
attempts = 1
warm_up = 0
"""
        path = real_runs.profile(lab.profile_path, tmp_path / "own.toml", text)
        terminal, end = pty.openpty()
        process = subprocess.Popen(
            ["setsid", "-c", sys.executable, "-m", "lab", *words, str(path)],
            cwd=real_runs.CHECKOUT, stdin=end, stdout=end, stderr=end,
            env={**os.environ, "BRANCHLAB_DATA": str(tmp_path)},
        )  # fmt: skip
        os.close(end)
        seen, answers = b"", ["wrong-one", SECRET]
        with suppress(OSError):  # the terminal's other end is gone
            while piece := os.read(terminal, 1000):
                seen += piece
                if seen.endswith(b"for the repository on server: "):
                    os.write(terminal, answers.pop(0).encode() + b"\n")
                    seen += b"\n"
        os.close(terminal)
        told = seen.decode()
        assert process.wait(60) == 0, told
        assert told.count("did not take the password of anna@") == 1
        assert (answers, SECRET in told, "wrong-one" in told) == ([], False, False)
