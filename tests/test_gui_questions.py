"""Questions amid work: threads that wait for a person, agreement before a run, passwords; and nobody left hanging."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from dialogs_shown import CONNECTIONS, PURGE, QDISC, QUESTIONS, offered
from fake_testbed import FakeTestbed, small
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, HOSTS, made, ran

from gui import app
from gui.agreement import AgreementDialog
from gui.dialogs import Dialog, Shade
from gui.doable import doable
from gui.doors import Doors
from gui.host_key import HostKeyDialog
from gui.main_window import MainWindow
from gui.password import NotRememberedDialog, PasswordDialog
from gui.person import Person
from gui.telling import LAB, RUN
from gui.widgets.basic import Label
from lab import store
from lab.agents import PasswordRefused
from lab.asking import Question
from lab.credentials import Passwords
from lab.errors import HostLacks, HostUnreachable
from lab.events import Outcome
from lab.model import Experiment, Host, Lab, Role
from lab.stop import Stop
from tests import users

__all__ = ["made"]
Made = Callable[..., MainWindow]
FOREVER_S = FOREVER_MS / 1000
SUDO = Lab(
    name="Office",
    hosts=(
        Host(name="client", role=Role.CLIENT, ssh="client"),
        Host(name="proxy", role=Role.PROXY, ssh="me@proxy", root="sudo"),
        Host(name="server", role=Role.SERVER, ssh="me@server", root="doas"),
    ),
)


class Asker(threading.Thread):
    """A worker's thread that asks one thing and keeps the answer."""

    def __init__(self, ask: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._ask = ask
        self.answer: object = "none yet"
        self.start()

    def run(self) -> None:
        self.answer = self._ask()

    def ended(self) -> bool:
        """True once the thread is gone."""
        self.join(FOREVER_S)
        return not self.is_alive()


def shown(window: MainWindow, kind: type[Dialog] = Dialog) -> list[Any]:
    return [dialog for dialog in window.findChildren(kind) if dialog.isVisible()]


def asked(qtbot: QtBot, window: MainWindow, kind: type[Dialog] = Dialog) -> Any:
    """The dialog of this kind, once it is there."""
    qtbot.waitUntil(lambda: bool(shown(window, kind)), timeout=FOREVER_MS)
    return shown(window, kind)[0]


def typed(qtbot: QtBot, dialog: PasswordDialog, text: str) -> None:
    qtbot.keyClicks(dialog.field, text)
    qtbot.keyClick(dialog.field, Qt.Key.Key_Return)


def gone(qtbot: QtBot, window: MainWindow, dialog: Dialog) -> None:
    """Wait until it is put away."""
    qtbot.waitUntil(lambda: dialog not in shown(window), timeout=FOREVER_MS)


# the bridge -----------------------------------------------------------------------------------------------------


def person(window: MainWindow, stop: Stop | None = None) -> Person:
    return Person(window._look, window._questions, stop or Stop())


def test_a_thread_gets_the_answer_and_the_window_goes_on(made: Made, qtbot: QtBot) -> None:
    window = made()
    asker = Asker(lambda: person(window).password("Password of me@proxy:22: "))
    dialog = asked(qtbot, window, PasswordDialog)
    window.show_page(RUN)  # nothing is held up meanwhile
    assert window._page == RUN
    typed(qtbot, dialog, "s3cret")
    assert asker.ended()
    assert asker.answer == "s3cret"
    assert not [shade for shade in window.findChildren(Shade) if shade.isVisible()]


def test_several_at_once_queue_up_in_their_order(made: Made, qtbot: QtBot) -> None:
    window = made()
    askers = []
    for name in ("one", "two", "three"):
        askers.append(Asker(lambda name=name: person(window).password(f"Password of {name}: ")))
        qtbot.waitUntil(lambda: window._questions.waiting == len(askers), timeout=FOREVER_MS)
    for number, answer in enumerate(("a", None, "c")):
        dialog = asked(qtbot, window, PasswordDialog)
        assert len(shown(window)) == 1
        if answer is None:
            qtbot.keyClick(dialog, Qt.Key.Key_Escape)
        else:
            typed(qtbot, dialog, answer)
        assert askers[number].ended()
        assert askers[number].answer == answer
    assert window._questions.waiting == 0


def test_closing_the_window_lets_every_thread_go(made: Made, qtbot: QtBot) -> None:
    window = made()
    askers = [Asker(lambda: person(window).trusts(offered())) for _ in range(3)]
    asked(qtbot, window, HostKeyDialog)
    qtbot.waitUntil(lambda: window._questions.waiting == 3, timeout=FOREVER_MS)
    window.close()
    assert all(asker.ended() for asker in askers)
    assert [asker.answer for asker in askers] == [False] * 3
    assert not shown(window)
    late = Asker(lambda: person(window).password("Password: "))
    assert late.ended()
    assert late.answer is None


def test_a_stop_takes_back_its_own_questions_only(made: Made, qtbot: QtBot) -> None:
    window = made()
    mine, other = Stop(), Stop()
    first = Asker(lambda: person(window, mine).password("first: "))
    qtbot.waitUntil(lambda: window._questions.waiting == 1, timeout=FOREVER_MS)
    second = Asker(lambda: person(window, other).password("second: "))
    qtbot.waitUntil(lambda: window._questions.waiting == 2, timeout=FOREVER_MS)
    asked(qtbot, window)
    mine.request()
    window._questions.withdraw()
    assert first.ended()
    assert first.answer is None
    dialog = asked(qtbot, window, PasswordDialog)
    typed(qtbot, dialog, "x")
    assert second.ended()
    assert second.answer == "x"


def test_a_question_that_comes_just_when_it_was_stopped_is_never_shown(made: Made, qtbot: QtBot) -> None:
    window = made()
    stop = Stop()
    asker = Asker(lambda: person(window, stop).password("first: "))
    qtbot.waitUntil(lambda: window._questions.waiting == 1, timeout=FOREVER_MS) if not shown(window) else None
    stop.request()  # nobody says `withdraw`
    window._questions._next()
    assert asker.ended()
    assert not shown(window)


def test_the_main_thread_must_not_wait_for_itself(made: Made) -> None:
    window = made()
    with pytest.raises(RuntimeError, match="main thread"):
        person(window).password("Password: ")


def test_a_changed_key_is_never_asked_about(made: Made, qtbot: QtBot) -> None:
    window = made()
    asker = Asker(lambda: person(window).trusts(offered(known="SHA256:" + "y" * 43)))
    assert asker.ended()
    assert asker.answer is False
    assert not shown(window)


def test_a_key_is_trusted_only_by_its_button(made: Made, qtbot: QtBot) -> None:
    window = made()
    asker = Asker(lambda: person(window).trusts(offered()))
    dialog = asked(qtbot, window, HostKeyDialog)
    dialog.field.setText(offered().fingerprint)
    qtbot.keyClick(dialog.field, Qt.Key.Key_Return)
    assert asker.ended()
    assert asker.answer is True
    asker = Asker(lambda: person(window).trusts(offered()))
    dialog = asked(qtbot, window, HostKeyDialog)
    qtbot.keyClick(dialog.field, Qt.Key.Key_Return)  # nothing was compared: Enter is the harmless way
    assert asker.ended()
    assert asker.answer is False


# before a run ---------------------------------------------------------------------------------------------------


class Hosts:
    """A stand-in for hosts of others: what a look at them finds, and what runs on them were given."""

    def __init__(self, *questions: Question, error: Exception | None = None) -> None:
        self.questions, self.error = questions, error
        self.looked = 0
        self.gate = threading.Event()
        self.gate.set()
        self.given: list[dict[str, Any]] = []
        self.bed = FakeTestbed()

    def look(self, lab: Lab, experiment: Experiment, passwords: Passwords) -> Sequence[Question]:
        """As `lab.machines.look`."""
        self.looked += 1
        assert self.gate.wait(FOREVER_S)
        if self.error is not None:
            raise self.error
        return self.questions

    def testbed(self, lab: Lab, **given: Any) -> FakeTestbed:
        """As `lab.machines.Machines`."""
        self.given.append(given)
        return self.bed

    def doors(self) -> dict[str, object]:
        """For `made`."""
        return {
            "own": lambda lab: False,
            "looking": self.look,
            "testbed": self.testbed,
            "signing": lambda host, passwords: None,
        }


def runs() -> list[Path]:
    return [head.file for head in store.runs()]


def test_without_a_question_the_run_begins_by_itself(made: Made, qtbot: QtBot) -> None:
    hosts = Hosts()
    window = made(**hosts.doors())
    ran(qtbot, window, small())
    assert (hosts.looked, window.live.done) == (1, 12)
    assert hosts.given[0]["agreed"] == frozenset()
    assert isinstance(hosts.given[0]["passwords"], Passwords)


def test_a_lab_of_our_own_is_neither_looked_at_nor_asked_about(made: Made, qtbot: QtBot) -> None:
    hosts = Hosts(CONNECTIONS)
    window = made(**{**hosts.doors(), "own": lambda lab: True})
    ran(qtbot, window, small())
    assert (hosts.looked, window.live.done) == (0, 12)


def test_keys_alone_agree_and_run(made: Made, qtbot: QtBot) -> None:
    hosts = Hosts(*QUESTIONS)
    window = made(**hosts.doors())
    window.start_run(small())
    dialog = asked(qtbot, window, AgreementDialog)
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    assert not hosts.bed.log
    for number in range(3):
        while QApplication.focusWidget() is not dialog.checks[number]:
            qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        assert not dialog.run.isEnabled()
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Space)
    assert dialog.run.isEnabled()
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Return)
    assert window.live.done == 12
    assert hosts.given[0]["agreed"] == {"connections", "purge", "qdisc"}
    qtbot.waitUntil(lambda: window.summary is not None and not window._jobs, timeout=FOREVER_MS)


@pytest.mark.parametrize("way", ["escape", "cancel", "enter"])
def test_declining_leaves_everything_untouched_and_says_so(made: Made, qtbot: QtBot, way: str) -> None:
    hosts = Hosts(CONNECTIONS)
    window = made(**hosts.doors())
    window.show_page(LAB)
    window.start_run(small())
    dialog = asked(qtbot, window, AgreementDialog)
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    if way == "cancel":
        qtbot.mouseClick(dialog.cancel, Qt.MouseButton.LeftButton)
    else:
        key = Qt.Key.Key_Escape if way == "escape" else Qt.Key.Key_Return
        qtbot.keyClick(dialog.checks[0], key)
    qtbot.waitUntil(lambda: not window.looking, timeout=FOREVER_MS)
    assert (hosts.bed.log, hosts.given, runs()) == ([], [], [])
    assert window._page == LAB
    assert window._banner._title.text() == "The run was not started."
    assert not window.running
    assert app._code(window) == app.INTERRUPTED


def test_what_was_agreed_to_before_is_not_asked_and_another_kind_is_refused(made: Made, qtbot: QtBot) -> None:
    hosts = Hosts(CONNECTIONS, PURGE)
    window = made(**hosts.doors())
    for agreed in (frozenset({"connections", "qdisc"}), frozenset[str]()):
        window.start_run(small(), agreed=agreed)
        qtbot.waitUntil(lambda: not window.looking, timeout=FOREVER_MS)
        assert not shown(window)
        assert not window.running
        assert "nobody agreed" in window._banner._title.text()
        assert app._code(window) == app.DECLINED
    assert (hosts.given, runs()) == ([], [])
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small(), agreed=frozenset({"connections", "purge"}))
    assert hosts.given[0]["agreed"] == {"connections", "purge"}
    window.start_run(small())  # each run is asked about anew
    assert len(asked(qtbot, window, AgreementDialog).checks) == 2
    window.story.preparing.cancel()


def test_a_look_that_hangs_is_cancelled_at_once_and_asks_nothing_later(made: Made, qtbot: QtBot) -> None:
    hosts = Hosts(CONNECTIONS)
    hosts.gate.clear()
    window = made(**hosts.doors())
    window.show_page(LAB)
    window.start_run(small())
    page = window.run_page
    assert window._page == RUN
    assert page._what.text() == "Looking at the hosts …"
    assert [w for w in (page.cancel, page.stop, page.pause, page.next) if w.isVisible()] == [page.cancel]
    worker = window.story.preparing._worker
    window.start_run(small())  # a second one waits for the first
    assert window._banner._title.text() == "The hosts are being looked at."
    assert "Cancel" in [action.name for action in doable(window) if action.group == "Run"]
    qtbot.mouseClick(page.cancel, Qt.MouseButton.LeftButton)
    assert not window.looking
    assert window._page == LAB
    assert window._banner._title.text() == "The run was not started."
    with qtbot.waitSignal(worker.ended, timeout=FOREVER_MS):
        hosts.gate.set()
    QApplication.processEvents()
    assert not shown(window)
    assert (hosts.bed.log, runs()) == ([], [])


def test_what_goes_wrong_while_looking_is_told_and_nothing_begins(made: Made, qtbot: QtBot) -> None:
    hosts = Hosts(error=HostUnreachable("no answer on port 22", host="proxy", tried="ssh proxy"))
    window = made(**hosts.doors())
    window.show_page(LAB)
    window.start_run(small())
    qtbot.waitUntil(window._banner.isVisible, timeout=FOREVER_MS)
    assert "proxy: no answer on port 22" in window._banner._title.text()
    assert (window.looking, hosts.bed.log, window._page) == (False, [], LAB)
    assert app._code(window) == app.TROUBLE


def test_the_run_that_was_shown_comes_back_when_the_next_is_cancelled(made: Made, qtbot: QtBot) -> None:
    hosts = Hosts()
    window = made(**hosts.doors())
    ran(qtbot, window, small())
    hosts.questions = (QDISC,)
    window.show_page(RUN)
    window.start_run(small(name="Another"))
    assert window.run_page.head.title.text() == "Another"
    assert not window.run_page._card.isVisible()
    asked(qtbot, window, AgreementDialog).reject()
    qtbot.waitUntil(lambda: not window.looking, timeout=FOREVER_MS)
    assert window.run_page.head.title.text() == "Small"
    assert window.run_page._card.isVisible()
    assert window.live.outcome is Outcome.DONE


def test_closing_while_hosts_are_looked_at_or_agreement_is_asked(made: Made, qtbot: QtBot) -> None:
    for waits in (True, False):
        hosts = Hosts(CONNECTIONS)
        window = made(**hosts.doors())
        if waits:
            hosts.gate.clear()
        window.start_run(small())
        worker = window.story.preparing._worker
        if not waits:
            asked(qtbot, window, AgreementDialog)
        with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
            window.close()
        hosts.gate.set()
        assert worker.wait(FOREVER_S)
        assert not window.looking
        assert hosts.bed.log == []


# passwords ------------------------------------------------------------------------------------------------------


class Keeper:
    """A stand-in for hosts that want a password; each has its own, and refuses another as sudo does."""

    def __init__(self, **right: str) -> None:
        self.right = right
        self.tried: list[tuple[str, str]] = []

    def sign_in(self, host: Host, passwords: Passwords) -> None:
        """As `lab.rig.hosts.signed_in`."""
        if host.name not in self.right:
            return
        given = passwords.password(host.ssh, host.name)
        if given is None:
            raise HostLacks("sudo asks for a password, and none is known", host=host.name)
        self.tried.append((host.name, given))
        if given != self.right[host.name]:
            passwords.refused(host.ssh)
            raise PasswordRefused("sudo did not take the password", host=host.name)
        passwords.right(host.ssh)


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    from lab import credentials

    monkeypatch.setattr(credentials, "stored", lambda name: None)


def secretive(made: Made, keeper: Keeper, hosts: Hosts) -> MainWindow:
    window = made(**{**hosts.doors(), "signing": keeper.sign_in})
    window.show_lab(SUDO, (small(),), {})
    return window


def test_a_wrong_password_is_told_and_asked_again_a_right_one_is_kept(
    made: Made, qtbot: QtBot, no_keyring: None
) -> None:
    keeper, hosts = Keeper(proxy="p", server="s"), Hosts()
    window = secretive(made, keeper, hosts)
    window.start_run(small())
    for name, text, notice in (("proxy", "wrong", ""), ("proxy", "p", "try 2 of 3"), ("server", "s", "")):
        dialog = asked(qtbot, window, PasswordDialog)
        assert name in dialog.field.accessibleDescription()
        assert notice in dialog.field.accessibleDescription()
        assert ("did not take" in dialog.field.accessibleDescription()) == bool(notice)
        typed(qtbot, dialog, text)
        gone(qtbot, window, dialog)
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        pass
    assert keeper.tried == [("proxy", "wrong"), ("proxy", "p"), ("server", "s")]
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.start_run(small())  # the session knows them
    assert not shown(window)
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)


@pytest.mark.parametrize("takes", [True, False])
def test_only_a_right_password_goes_into_the_keyring_and_a_keyring_that_refuses_is_told(
    made: Made, qtbot: QtBot, no_keyring: None, monkeypatch: pytest.MonkeyPatch, takes: bool
) -> None:
    from lab import credentials

    kept: dict[str, str] = {}
    asked_in: set[str] = set()

    def there() -> bool:
        asked_in.add(threading.current_thread().name)
        return True

    def store(name: str, secret: str) -> bool:
        if takes:
            kept[name] = secret
        return takes

    monkeypatch.setattr(credentials, "keyring_there", there)
    monkeypatch.setattr(credentials, "store", store)
    window = secretive(made, Keeper(proxy="p", server="s"), Hosts())
    window.start_run(small())
    for text, remembered in (("wrong", True), ("p", True), ("s", False)):
        dialog = asked(qtbot, window, PasswordDialog)
        dialog.remember.setChecked(remembered)
        typed(qtbot, dialog, text)
        gone(qtbot, window, dialog)
        if text == "p" and not takes:
            told = asked(qtbot, window, NotRememberedDialog)
            assert "is kept in memory" in " ".join(label.text() for label in told.findChildren(Label))
            qtbot.keyClick(told, Qt.Key.Key_Return)
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        pass
    (proxy,) = (host.ssh for host in SUDO.hosts if host.name == "proxy")
    assert kept == ({f"sudo {proxy}": "p"} if takes else {})
    assert threading.main_thread().name not in asked_in
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (("sudo a@h:22", "key /k"), "2 passwords taken out of the system keyring."),
        (("key /k",), "1 password taken out of the system keyring."),
        ((), "No passwords were remembered."),
        (None, "No system keyring answers on this machine, so nothing is remembered."),
    ],
)
def test_remembered_passwords_are_forgotten_from_the_list_of_actions(
    made: Made, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...] | None, title: str
) -> None:
    from lab import credentials

    monkeypatch.setattr(credentials, "forget", lambda: names)
    window = made()
    (action,) = (one for one in doable(window) if one.name == "Forget remembered passwords")
    action.do()
    qtbot.waitUntil(window._banner.isVisible, timeout=FOREVER_MS)
    assert window._banner._title.text() == title
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)


def test_passwords_of_the_session_ask_for_keys_and_codes_too(made: Made, qtbot: QtBot) -> None:
    window = made()
    doors = window._doors
    assert doors._accept(offered()) is False  # nobody is there before anything was begun
    doors.person = person(window)
    accept = doors.passwords().accept
    assert accept is not None
    asker = Asker(lambda: accept(offered()))
    asked(qtbot, window, HostKeyDialog).trust.click()
    assert asker.ended()
    assert asker.answer is True
    asker = Asker(lambda: doors.passwords().answer("proxy (me@proxy:22) asks: Verification code: "))
    dialog = asked(qtbot, window, PasswordDialog)
    assert dialog.field.accessibleName() == "Answer"
    assert any("not kept" in label.text() for label in dialog.findChildren(Label))
    typed(qtbot, dialog, "123456")
    assert asker.ended()
    assert asker.answer == "123456"


def test_three_wrong_ones_end_it(made: Made, qtbot: QtBot, no_keyring: None) -> None:
    keeper, hosts = Keeper(proxy="p", server="s"), Hosts()
    window = secretive(made, keeper, hosts)
    window.start_run(small())
    for _ in range(3):
        dialog = asked(qtbot, window, PasswordDialog)
        typed(qtbot, dialog, "wrong")
        gone(qtbot, window, dialog)
    qtbot.waitUntil(window._banner.isVisible, timeout=FOREVER_MS)
    assert "did not take the password" in window._banner._title.text()
    assert len(keeper.tried) == 3
    assert (hosts.looked, hosts.bed.log, window.looking) == (0, [], False)


def test_cancel_refuses_with_the_sentence_and_asks_for_no_other_host(
    made: Made, qtbot: QtBot, no_keyring: None
) -> None:
    keeper, hosts = Keeper(proxy="p", server="s"), Hosts()
    window = secretive(made, keeper, hosts)
    window.start_run(small())
    qtbot.keyClick(asked(qtbot, window, PasswordDialog), Qt.Key.Key_Escape)
    qtbot.waitUntil(window._banner.isVisible, timeout=FOREVER_MS)
    assert "none is known" in window._banner._title.text()
    assert not shown(window)
    assert (hosts.looked, keeper.tried, runs()) == (0, [], [])


def test_closing_while_a_password_is_asked_for_leaves_no_thread(
    made: Made, qtbot: QtBot, no_keyring: None
) -> None:
    window = secretive(made, Keeper(proxy="p", server="s"), Hosts())
    window.start_run(small())
    asked(qtbot, window, PasswordDialog)
    worker = window.story.preparing._worker
    window.close()
    assert worker.wait(FOREVER_S)
    assert not [thread.name for thread in threading.enumerate() if thread.name == "look"]


def test_no_password_is_left_in_what_the_window_keeps(made: Made, qtbot: QtBot, no_keyring: None) -> None:
    secret = "p4ss-that-nobody-types"
    window = secretive(made, Keeper(proxy=secret, server=secret), Hosts())
    window.start_run(small())
    for _ in range(2):
        dialog = asked(qtbot, window, PasswordDialog)
        typed(qtbot, dialog, secret)
        assert secret not in dialog.field.text()
        gone(qtbot, window, dialog)
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        pass
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)
    assert window.run_path is not None
    assert secret.encode() not in window.run_path.read_bytes()


def test_doors_pass_what_was_agreed_to_and_the_passwords_to_the_machines() -> None:
    from lab.machines import Machines

    doors = Doors()
    bed = doors.testbed(HOSTS, passwords=doors.passwords(), agreed=frozenset({"purge"}))
    assert isinstance(bed, Machines)
    assert bed._consent.agreed == {"purge"}
    assert bed._passwords is doors.passwords()


@pytest.mark.parametrize("wrong", [0, 2, 3])
def test_a_repository_that_names_a_user_is_entered_after_the_hosts_and_a_wrong_password_asked_again(
    wrong: int,
) -> None:
    from lab.rig.entry import RepositoryPasswordRefused

    done: list[str] = []

    def enter(lab: Lab, experiment: Experiment, passwords: Passwords) -> None:
        done.append("entered")
        if len(done) <= wrong + len(HOSTS.hosts):
            raise RepositoryPasswordRefused("it did not take the password of anna@svn:80")

    doors = Doors(
        looking=lambda *asked: done.append("looked") or (),  # type: ignore[func-returns-value]
        signing=lambda host, passwords: done.append("signed in"),
        entering=enter,
    )
    person = Person(None, None, Stop())  # type: ignore[arg-type]
    doors.person = person
    hosts = replace(HOSTS, hosts=tuple(replace(host, ssh="anna@bench") for host in HOSTS.hosts))
    signed = ["signed in"] * len(hosts.hosts)
    if wrong == 3:
        with pytest.raises(RepositoryPasswordRefused):
            next(doors.look(hosts, replace(small(), user="anna")))
        assert done == [*signed, *["entered"] * 3]
        return
    assert next(doors.look(hosts, replace(small(), user="anna"))) == ()
    assert done == [*signed, *["entered"] * (wrong + 1), "looked"]
    assert ("try 3 of 3" in person.notice) == (wrong == 2)
    done.clear()
    assert next(doors.look(hosts, small())) == ()
    assert done == [*signed, "looked"]  # nobody is named, so nobody is asked


@pytest.mark.lab
@pytest.mark.usefixtures("no_keyring")
def test_a_real_host_asks_for_its_key_the_login_and_sudo(made: Made, qtbot: QtBot) -> None:
    """Unknown key, wrong password, right one, sudo's: then everything is taken back there."""
    with users.user("PasswordAuthentication yes", "PubkeyAuthentication no") as user:
        user.sudoers("USER ALL=(ALL) ALL")
        host = user.host(host_key=None, key=None)
        window = made()
        window.show_lab(Lab(name="Real", hosts=(host,)), (small(),), {})
        window.deeds.take_back()
        key = asked(qtbot, window, HostKeyDialog)
        key.field.setText(fingerprint(user.server.host_key()))
        assert key.trust.isDefault()
        qtbot.keyClick(key.field, Qt.Key.Key_Return)
        for text, purpose in (("wrong", "log in"), (user.password, "log in"), (user.password, "become root")):
            dialog = asked(qtbot, window, PasswordDialog)
            assert purpose in dialog.field.accessibleDescription()
            typed(qtbot, dialog, text)
            gone(qtbot, window, dialog)
        qtbot.waitUntil(lambda: not window.deeds.taking_back.busy, timeout=FOREVER_MS)
        qtbot.waitUntil(window._banner.isVisible, timeout=FOREVER_MS)
        assert window._banner._title.text() == "Nothing was left on bench."


def fingerprint(public: str) -> str:
    """Of a public key in a line, as ssh-keygen prints it."""
    print_ = subprocess.run(
        ["ssh-keygen", "-lf", "-"], input=public, capture_output=True, text=True, check=True
    )
    return print_.stdout
