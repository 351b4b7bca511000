"""Check from the window: by keys alone, in a thread, left amid it, and what it found on page, cards and bar."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from checks_shown import INSTALL, LONG_PATH, lacks, some, thirty, well
from click.testing import CliRunner
from fake_testbed import FakeTestbed, experiment, small
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, HOSTS, made, ran

from gui import ways
from gui.doors import Doors
from gui.lab.checked import CURED, OWN, CheckedLab, printable
from gui.lab.checks import Command
from gui.lab.items import THE_LINE
from gui.main_window import MainWindow
from gui.password import PasswordDialog
from gui.telling import LAB
from gui.widgets.basic import Label
from lab import embedded
from lab.__main__ import cli
from lab.agents import PasswordRefused
from lab.credentials import Passwords
from lab.errors import HostUnreachable
from lab.model import Experiment, Host, Lab, Role
from lab.rig.host_checks import Checked
from lab.stop import Stop

__all__ = ["made"]
Made = Callable[..., MainWindow]
FOREVER_S = FOREVER_MS / 1000
OFFICE = Lab(
    name="Office",
    hosts=(
        Host(name="client", role=Role.CLIENT, ssh="client"),
        Host(name="server", role=Role.SERVER, ssh="s"),
    ),
)


class FakeCheck:
    """A stand-in for `lab.machines.check`: looks at every host, and waits in the middle where told to."""

    def __init__(self, found: Sequence[Checked] | Exception, wait: bool = False) -> None:
        self.found, self.wait = found, wait
        self.go, self.there = threading.Event(), threading.Event()
        self.asked: list[Experiment | None] = []
        self.ended: list[str] = []
        self.told: list[str | None] = []

    def __call__(
        self,
        lab: Lab,
        asked: Experiment | None,
        passwords: Passwords,
        stop: Stop,
        say: Callable[[str], None],
    ) -> Sequence[Checked]:
        """As `gui.ways.check`."""
        self.asked.append(asked)
        try:
            for number, host in enumerate(lab.hosts):
                say(host.name)
                if number == 1 and self.wait:
                    self.there.set()
                    assert self.go.wait(FOREVER_S)
                stop.check()
            say("")
            self.told.append(passwords.password("a", "b"))
            if isinstance(self.found, Exception):
                raise self.found
            return self.found
        finally:
            self.ended.append("stopped" if stop.requested else "done")


def nobody_asks(host: Host, passwords: Passwords) -> None:
    """A host that asks for nothing."""


def key(qtbot: QtBot, window: MainWindow, which: Qt.Key, *, ctrl: bool = False) -> None:
    target = QApplication.focusWidget() or window
    qtbot.keyClick(
        target, which, Qt.KeyboardModifier.ControlModifier if ctrl else Qt.KeyboardModifier.NoModifier
    )


def checked(qtbot: QtBot, window: MainWindow) -> CheckedLab:
    """Press Check, and wait for what came of it."""
    window.show_page(LAB)
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        qtbot.mouseClick(window.lab_page.check, Qt.MouseButton.LeftButton)
    QApplication.processEvents()
    found = window.lab_page.checked
    assert found is not None
    return found


def texts(window: MainWindow) -> list[str]:
    """Everything that stands in the inspector, in its order, without places to break."""
    QApplication.processEvents()
    labels = window.lab_page.inspector.findChildren(Label)
    return [label.text().replace("\N{ZERO WIDTH SPACE}", "") for label in labels if label.isVisible()]


def test_check_is_told_host_by_host_and_holds_nothing_up(made: Made, qtbot: QtBot) -> None:
    check = FakeCheck(some(), wait=True)
    window = made(checking=check, signing=nobody_asks)
    page = window.lab_page
    window.show_page(LAB)
    said: list[str] = []
    window.deeds.checking.going.connect(said.append)
    qtbot.mouseClick(page.check, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.know().hosts[1].word == "checking", timeout=FOREVER_MS)
    assert page.shown.hosts[1].sign == "running"
    assert page.check.word == "Cancel"
    window.swap_theme()
    window.swap_theme()
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        check.go.set()
    assert [one for one in said if one.startswith("Checking ")][1:] == [
        "Checking client (1 of 3) …",
        "Checking proxy (2 of 3) …",
        "Checking server (3 of 3) …",
        "Checking the line, and how the hosts see each other …",
    ]
    assert check.asked == [small()]
    assert page.check.word == "Check again"


def test_cards_list_bar_and_navigation_carry_the_worst_sign(made: Made, qtbot: QtBot) -> None:
    window = made(checking=FakeCheck(some()), signing=nobody_asks, own=lambda lab: False)
    found = checked(qtbot, window)
    signs = {
        card.host.name: (card.host.sign, card.host.word) for card in window.lab_page.picture._cards.values()
    }
    assert signs == {
        "client": ("ok", "ready"),
        "proxy": ("warn", "2 warnings"),
        "server": ("trouble", "3 not right"),
    }
    entries = window.lab_page.inspector._entries
    assert [entry._said.sign.sign for entry in entries[:3]] == ["ok", "warn", "trouble"]
    assert "server, version control, 3 not right" in entries[2].name.accessibleName()
    window.shown.tell_frame()
    assert list(window._top._shown) == [("ok", "client"), ("warn", "proxy"), ("trouble", "server")]
    assert window._navigation.buttons[LAB]._sign == "trouble"
    assert found.sentence() == "3 of 13 are not as a run needs them"
    assert f"{found.sentence()}. Checked at {found.when}." in window.lab_page.head._under_text.text()


def test_the_summary_tells_the_worst_first_and_leads_to_the_host(made: Made, qtbot: QtBot) -> None:
    window = made(checking=FakeCheck(some()), signing=nobody_asks, own=lambda lab: False)
    checked(qtbot, window)
    seen = texts(window)
    order = [
        "3 of 13 are not as a run needs them",
        "tc (iproute2) is missing",
        "nft (nftables) is missing",
        "no way to change this host is given, so no line can be limited",
        "1.1 GB free in /var/cache/branchlab (xfs)",
        "All hosts",
    ]
    assert [text for text in seen if text in order] == order
    link = next(
        button
        for button in window.lab_page.inspector.findChildren(type(window.lab_page.check))
        if button.accessibleName() == "All that was found on server"
    )
    link.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(link, Qt.Key.Key_Space)
    assert window.lab_page.picture._selected == "server"


def test_a_host_lists_all_its_items_with_cure_and_command_the_worst_first(made: Made, qtbot: QtBot) -> None:
    window = made(checking=FakeCheck(some()), signing=nobody_asks, own=lambda lab: False)
    checked(qtbot, window)
    window.lab_page.picture.select("server")
    seen = texts(window)
    at = seen.index("Checks")
    assert seen[at + 1].startswith("at ")
    assert "for “Small”" not in seen
    assert seen[at + 2 :] == [
        "tc (iproute2) is missing",
        "nft (nftables) is missing",
        CURED,
        INSTALL,
        "no way to change this host is given, so no line can be limited",
        'Write root = "sudo" (or "doas", or "direct") under [hosts.server].',
        "Debian GNU/Linux 12 (bookworm), kernel 6.1.0-18, 8 processors, Python 3.11.2",
    ]
    (command,) = window.lab_page.inspector.findChildren(Command)
    QGuiApplication.clipboard().clear()
    command.button.click()
    assert QGuiApplication.clipboard().text() == INSTALL
    QGuiApplication.clipboard().clear()
    command.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(command, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == INSTALL
    window.lab_page.picture.select(THE_LINE)
    assert "what client and proxy say to each other is counted on the client alone" in texts(window)


def test_keys_alone_check_choose_and_copy(made: Made, qtbot: QtBot) -> None:
    window = made(checking=FakeCheck(some()), signing=nobody_asks, own=lambda lab: False)
    with qtbot.waitActive(window):
        window.activateWindow()
    key(qtbot, window, Qt.Key.Key_K, ctrl=True)
    qtbot.keyClicks(window.keys.actions.field, "check the")
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        key(qtbot, window, Qt.Key.Key_Return)
    assert window._page == LAB
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        key(qtbot, window, Qt.Key.Key_F5)
    window.lab_page.picture.setFocus(Qt.FocusReason.ShortcutFocusReason)
    for _ in range(2):  # from the client to the proxy, to the server
        key(qtbot, window, Qt.Key.Key_Tab)
    key(qtbot, window, Qt.Key.Key_Return)
    QApplication.processEvents()
    for _ in range(40):
        key(qtbot, window, Qt.Key.Key_Tab)
        if isinstance(QApplication.focusWidget(), Command):
            break
    assert isinstance(QApplication.focusWidget(), Command)
    assert [one for one in QApplication.topLevelWidgets() if one.isVisible()] == [window]
    key(qtbot, window, Qt.Key.Key_C, ctrl=True)
    assert QGuiApplication.clipboard().text() == INSTALL


def test_cancel_midway_leaves_what_was_known(made: Made, qtbot: QtBot) -> None:
    check = FakeCheck(some(), wait=True)
    window = made(checking=check, signing=nobody_asks)
    window.show_page(LAB)
    qtbot.mouseClick(window.lab_page.check, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(check.there.is_set, timeout=FOREVER_MS)
    qtbot.mouseClick(window.lab_page.check, Qt.MouseButton.LeftButton)
    assert not window.deeds.checking.busy
    assert window.lab_page.check.word == "Check"
    assert window.lab_page.checked is None
    assert {host.word for host in window.lab_page.know().hosts} == {"not checked"}
    check.go.set()
    qtbot.waitUntil(lambda: check.ended == ["stopped"], timeout=FOREVER_MS)
    QApplication.processEvents()
    assert window.lab_page.checked is None
    assert not window._banner.isVisible()
    check.wait = False
    checked(qtbot, window)


def test_the_window_closes_at_once_while_checking(made: Made, qtbot: QtBot) -> None:
    check = FakeCheck(some(), wait=True)
    window = made(checking=check, signing=nobody_asks)
    window.show_page(LAB)
    qtbot.mouseClick(window.lab_page.check, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(check.there.is_set, timeout=FOREVER_MS)
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        window.close()
    check.go.set()
    qtbot.waitUntil(lambda: check.ended == ["stopped"], timeout=FOREVER_MS)


def test_a_run_takes_the_place_of_a_check(made: Made, qtbot: QtBot) -> None:
    check = FakeCheck(some(), wait=True)
    window = made(FakeTestbed(), checking=check, signing=nobody_asks)
    window.show_page(LAB)
    qtbot.mouseClick(window.lab_page.check, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(check.there.is_set, timeout=FOREVER_MS)
    ran(qtbot, window, small())
    check.go.set()
    qtbot.waitUntil(lambda: check.ended == ["stopped"], timeout=FOREVER_MS)
    assert not window.deeds.checking.busy


def test_while_a_run_goes_nothing_is_checked(made: Made, qtbot: QtBot) -> None:
    check = FakeCheck(some())
    window = made(FakeTestbed(pace=0.02), checking=check, signing=nobody_asks)
    window.start_run(experiment())
    qtbot.waitUntil(lambda: window.live.done >= 1, timeout=FOREVER_MS)
    window.show_page(LAB)
    window.lab_page.refresh()
    assert not window.lab_page.check.isVisible()
    window.keys.check()
    assert not check.asked


def test_what_was_found_is_kept_until_the_profile_changes(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(), checking=FakeCheck(some()), signing=nobody_asks, own=lambda lab: True)
    found = checked(qtbot, window)
    window.show_lab(HOSTS, (small(), experiment()), {"Small": 12})
    assert window.lab_page.checked is found
    ran(qtbot, window, small())
    window.show_page(LAB)
    window.lab_page.refresh()
    server = next(host for host in window.lab_page.shown.hosts if host.name == "server")
    assert server.sign == "ok"  # the run is newer, and used it
    assert len(server.checks) > 2
    window.show_lab(OFFICE, (small(),), {})
    assert window.lab_page.checked is None


def test_check_is_the_next_step_where_something_is_wrong(made: Made, qtbot: QtBot) -> None:
    check = FakeCheck(some())
    window = made(checking=check, signing=nobody_asks, own=lambda lab: False)
    page = window.lab_page
    checked(qtbot, window)
    buttons = page.head.buttons

    def filled() -> tuple[str, str]:
        last = buttons.itemAt(buttons.count() - 1).widget()
        kinds = {one.word: one.property("kind") for one in (page.check, page.start, page.provision)}
        return last.word, next(word for word, kind in kinds.items() if kind == "filled")

    assert filled() == ("Check again", "Check again")
    assert page.provision.isVisible()
    check.found = well()
    checked(qtbot, window)
    assert filled() == ("Run 12 trials", "Run 12 trials")
    assert not page.provision.isVisible()
    assert page.checked is not None
    assert page.checked.sentence() == "Everything is there: 6 looked at"


def test_a_lab_of_this_machine_says_why_nothing_is_provisioned(made: Made, qtbot: QtBot) -> None:
    window = made(checking=FakeCheck([lacks("server", "nft")]), own=lambda lab: True)
    checked(qtbot, window)
    assert window.lab_page.provision.isVisible()
    assert not window.lab_page.provision.isEnabled()
    window.lab_page.picture.select("server")
    assert OWN in texts(window)
    assert not window.lab_page.inspector.findChildren(Command)


def test_a_defect_of_a_check_is_told_and_leaves_the_window_well(made: Made, qtbot: QtBot) -> None:
    window = made(checking=FakeCheck(HostUnreachable("no answer", host="proxy")), signing=nobody_asks)
    window.show_page(LAB)
    qtbot.mouseClick(window.lab_page.check, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(window._banner.isVisible, timeout=FOREVER_MS)
    assert "proxy: no answer" in window._banner._title.text()
    assert window.lab_page.check.word == "Check"


def test_passwords_are_asked_for_before_and_never_amid_it(made: Made, qtbot: QtBot) -> None:
    def signing(host: Host, passwords: Passwords) -> None:
        if host.name == "server" and passwords.password("me@server:22", "server") is None:
            raise PasswordRefused("no password", host="server")

    check = FakeCheck(well())
    window = made(checking=check, signing=signing)
    window.show_lab(OFFICE, (small(),), {})
    window.show_page(LAB)
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        qtbot.mouseClick(window.lab_page.check, Qt.MouseButton.LeftButton)
        for _ in range(3):
            qtbot.waitUntil(lambda: bool(_asked(window)), timeout=FOREVER_MS)
            dialog = _asked(window)[0]
            qtbot.keyClick(dialog, Qt.Key.Key_Escape)
            qtbot.waitUntil(lambda dialog=dialog: dialog not in _asked(window), timeout=FOREVER_MS)
    assert check.told == [None]


def test_cancel_while_a_password_is_asked_for(made: Made, qtbot: QtBot) -> None:
    def signing(host: Host, passwords: Passwords) -> None:
        passwords.password("me@server:22", "server")

    check = FakeCheck(well())
    window = made(checking=check, signing=signing)
    window.show_lab(OFFICE, (small(),), {})
    window.show_page(LAB)
    qtbot.mouseClick(window.lab_page.check, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(_asked(window)), timeout=FOREVER_MS)
    window.deeds.checking.cancel()
    qtbot.waitUntil(lambda: not _asked(window), timeout=FOREVER_MS)
    assert not check.asked


def _asked(window: MainWindow) -> list[Any]:
    return [dialog for dialog in window.findChildren(PasswordDialog) if dialog.isVisible()]


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720)])
def test_thirty_items_with_long_texts_stay_inside(made: Made, qtbot: QtBot, size: tuple[int, int]) -> None:
    window = made(checking=FakeCheck(thirty()), signing=nobody_asks, own=lambda lab: False)
    window.resize(*size)
    checked(qtbot, window)
    for name in ("client", ""):
        window.lab_page.picture.select(name)
        for _ in range(3):  # a list that grew asks for its room in the next round
            QApplication.processEvents()
        inspector = window.lab_page.inspector
        right = inspector.mapToGlobal(inspector.rect().topRight()).x()
        seen = [one for one in inspector.findChildren(Label) if one.isVisible()]
        assert len(seen) > 30
        for label in seen:
            assert label.mapToGlobal(label.rect().topRight()).x() <= right
            assert label.height() >= label.heightForWidth(label.width()) or not label.wordWrap()
    assert (window.width(), window.height()) == size
    joined = "\n".join(texts(window))
    assert "缺少 Subversion 客户端" in joined
    assert "\x1b" not in joined
    assert "\u202e" not in joined


def test_a_long_command_is_copied_exactly(made: Made, qtbot: QtBot) -> None:
    window = made(checking=FakeCheck(thirty()), signing=nobody_asks, own=lambda lab: False)
    checked(qtbot, window)
    window.lab_page.picture.select("client")
    first = window.lab_page.inspector.findChildren(Command)[0]
    first.button.click()
    assert QGuiApplication.clipboard().text() == f"ls -l '{LONG_PATH}' # 0"


def test_the_whole_list_is_copied_as_text(made: Made, qtbot: QtBot) -> None:
    window = made(checking=FakeCheck(some()), signing=nobody_asks, own=lambda lab: False)
    checked(qtbot, window)
    window.lab_page.picture.select("server")
    copy = next(
        button
        for button in window.lab_page.inspector.findChildren(type(first_copy(window)))
        if button.accessibleName() == "Copy what the check found, as text"
    )
    copy.click()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "trouble  server: tc (iproute2) is missing"
    assert lines[3].strip() == INSTALL


def first_copy(window: MainWindow) -> Any:
    return window.lab_page.inspector.findChildren(Command)[0].button


def test_yesterdays_check_says_its_date() -> None:
    now = datetime.now().astimezone()
    old = CheckedLab(items=(), at=now - timedelta(days=2))
    assert CheckedLab(items=(), at=now).when == f"{now:%H:%M}"
    assert str(old.at.day) in old.when
    assert old.sign == "unknown"


def test_what_nobody_sees_is_not_shown() -> None:
    assert printable("a\tb\n\x1b[0m c\u202ed") == "a b [0m c d"


def test_the_doors_check_asks_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    doors = Doors(checking=FakeCheck(well()), signing=nobody_asks)
    (found,) = doors.check(OFFICE, small(), Stop(), said.append)
    assert found == well()
    assert [(one.what, one.host) for one in said] == [
        ("Signing in on", "client"),
        ("Signing in on", "server"),
        ("Checking", "client"),
        ("Checking", "server"),
        ("Checking", ""),
    ]


def without_numbers(text: str) -> str:
    """What two checks in a row say alike: times, loads and free space differ."""
    return re.sub(r"[-+]?\d+([.,]\d+)?", "#", " ".join(text.split()))


@pytest.mark.lab
def test_the_window_shows_what_the_terminal_prints(made: Made, qtbot: QtBot) -> None:
    with embedded.up() as lab:
        window = made(checking=ways.check, signing=ways.sign_in, own=ways.own)
        window.open_profile(lab.profile_path)
        qtbot.waitUntil(lambda: window._page == LAB, timeout=FOREVER_MS)
        found = checked(qtbot, window)
        printed = CliRunner().invoke(cli, ["check", str(lab.profile_path)])
        lines = printed.output.splitlines()
        hosts = [host.name for host in lab.lab.hosts]
        shown = []
        for host in [*hosts, THE_LINE]:
            window.lab_page.picture.select(host)
            QApplication.processEvents()
            for label in window.lab_page.inspector.findChildren(Label):
                grade, _, _ = label.accessibleName().partition(":")
                if label.isVisible() and grade in ("right", "warning", "not right"):
                    shown.append((grade, label.text().replace("\N{ZERO WIDTH SPACE}", "")))
    told = {"ok": "right", "warn": "warning", "trouble": "not right"}
    expected = []
    for line in lines[:-1]:
        grade, _, rest = line.partition("  ")
        if grade.strip() in told:
            expected.append((told[grade.strip()], rest.strip().partition(": ")[2]))
    assert len(expected) > 10
    # Load comes and goes with the machine.
    steady = [[without_numbers(f"{g} {t}") for g, t in some if "busy" not in t] for some in (shown, expected)]
    assert sorted(steady[0]) == sorted(steady[1])
    wrong = f"{found.wrong} of {len(found.items)} are not as a run needs them"
    assert lines[-1] == (wrong if found.wrong else "everything is there")
