"""Dialogs, account and taking back: what is seen of them, whether it fits, keys, names, contrast."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from dialogs_shown import DIALOGS, QUESTIONS, offered
from fake_testbed import FakeTestbed, experiment, small
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, made, ran, started

from gui.agreement import AgreementDialog
from gui.dialogs import WIDTH
from gui.doable import doable
from gui.found import TakenBack
from gui.host_key import HostKeyDialog, compared
from gui.main_window import MainWindow
from gui.password import PasswordDialog
from gui.run.output import ACCOUNT
from gui.taking_back import summary
from gui.telling import LAB, RUN
from gui.widgets.basic import Check, Label
from lab import colour, palette
from lab.credentials import Passwords, Remembered
from lab.errors import AgentRefused, HostTrouble
from lab.events import HostChanged
from lab.live import Live
from lab.model import Lab

__all__ = ["made"]
Made = Callable[..., MainWindow]


def opened(window: MainWindow, name: str) -> QWidget:
    dialog = DIALOGS[name](window._look, window)
    dialog.open()
    for _ in range(5):
        QApplication.processEvents()
    return dialog


# what is seen ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1.0, 1.3])
@pytest.mark.parametrize("size", [(1440, 900), (1280, 720)])
def test_a_dialog_fits_its_window_and_cuts_nothing(
    made: Made, qtbot: QtBot, size: tuple[int, int], ratio: float
) -> None:
    window = made()
    window._look._ratio = ratio
    window._look._fonts.clear()
    window.resize(*size)
    for name in DIALOGS:
        _fits(window, name)


def _fits(window: MainWindow, name: str) -> None:
    dialog = opened(window, name)
    assert dialog.width() == window._look.px(WIDTH)
    assert dialog.height() <= window.height()
    labels = [label for label in dialog.findChildren(Label) if label.isVisible()]
    cut = [
        (label.text(), label.size(), label.sizeHint())
        for label in labels
        if (label.wordWrap() and label.height() < label.heightForWidth(label.width()))
        or (not label.wordWrap() and label.width() < label.minimumSizeHint().width())
    ]
    assert not cut, name
    for check in dialog.findChildren(Check):
        assert check.height() >= check.heightForWidth(check.width())
    for button in dialog.findChildren(QPushButton):
        assert button.height() >= min(button.sizeHint().height(), 28)
        assert button.width() >= button.minimumSizeHint().width()
    dialog.done(0)


def test_everything_in_a_dialog_is_reached_by_tab_and_has_a_name(made: Made, qtbot: QtBot) -> None:
    window = made()
    for name in DIALOGS:
        _reached(qtbot, window, name)


def _reached(qtbot: QtBot, window: MainWindow, name: str) -> None:
    dialog = opened(window, name)
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    wanted = {
        widget
        for widget in dialog.findChildren(QWidget)
        if widget.isVisible() and widget.isEnabled() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if widget.focusProxy() is None
    }
    assert dialog.accessibleName()
    assert not [type(widget).__name__ for widget in wanted if not widget.accessibleName()]
    seen = set()
    for _ in range(2 * len(wanted) + 2):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        seen.add(QApplication.focusWidget())
    assert not [widget for widget in wanted - seen if not _by_arrows(widget, seen)]
    dialog.done(0)


def _by_arrows(widget: QWidget, seen: Collection[QWidget | None]) -> bool:
    """True for one of several choices of which Tab reached another: from there the arrows go to it."""
    group = widget.group() if isinstance(widget, QAbstractButton) else None
    return group is not None and any(button in seen for button in group.buttons())


def test_escape_is_the_harmless_way(made: Made, qtbot: QtBot) -> None:
    window = made()
    for name in DIALOGS:
        dialog = opened(window, name)
        if name == "installing":  # amid it, it does nothing at all
            qtbot.keyClick(dialog, Qt.Key.Key_Escape)
            assert dialog.isVisible()
            dialog.done(0)
            continue
        with qtbot.waitSignal(dialog.rejected, timeout=FOREVER_MS):
            qtbot.keyClick(dialog, Qt.Key.Key_Escape)
        assert dialog.answer is None


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("ink", ["text", "text2", "ok", "warn", "trouble"])
def test_what_dialogs_say_is_legible_on_their_ground(theme: str, ink: str) -> None:
    tokens = palette.load(theme).tokens
    grounds = ["raised"] if ink in ("ok", "warn", "trouble") else ["raised", "sunken", "accent_soft"]
    assert min(colour.contrast(tokens[ink], tokens[ground]) for ground in grounds) >= 4.5
    assert colour.contrast(tokens["edge"], tokens["raised"]) >= 3


def test_tab_brings_the_next_box_into_sight(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.resize(1280, 720)
    dialog = AgreementDialog(window._look, QUESTIONS * 2, window)
    dialog.open()
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    assert dialog.height() <= window.height()
    last = dialog.checks[-1]
    assert last.visibleRegion().isEmpty()
    while QApplication.focusWidget() is not last:
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert not last.visibleRegion().isEmpty()
    dialog.reject()


def test_run_is_off_until_all_is_agreed_to_and_off_again(made: Made) -> None:
    window = made()
    dialog = AgreementDialog(window._look, QUESTIONS, window)
    for check in dialog.checks:
        assert not dialog.run.isEnabled()
        assert dialog.cancel.isDefault()
        check.click()
    assert dialog.run.isEnabled()
    assert dialog.run.isDefault()
    dialog.checks[1].click()
    assert not dialog.run.isEnabled()
    assert [check.text() for check in dialog.checks] == [f"Agree: {one.allows}" for one in QUESTIONS]
    dialog.deleteLater()


def test_a_password_is_hidden_until_it_is_asked_to_be_shown(made: Made, qtbot: QtBot) -> None:
    window = made()
    dialog = PasswordDialog(window._look, "Password of me@proxy:22: ", window)
    dialog.open()
    assert not dialog.give.isEnabled()
    dialog.field.setText("s3cret")
    assert dialog.field.displayText() != "s3cret"
    dialog.shows.click()
    assert dialog.field.displayText() == "s3cret"
    assert dialog.shows.accessibleName() == "Hide the password"
    dialog.shows.click()
    assert dialog.field.echoMode() is QLineEdit.EchoMode.Password
    assert dialog.give.isEnabled()
    dialog.reject()
    assert dialog.field.text() == ""


@pytest.mark.parametrize("checked", [True, False])
def test_a_password_is_remembered_only_where_it_was_asked_for(
    made: Made, qtbot: QtBot, checked: bool
) -> None:
    dialog = PasswordDialog(made()._look, "Password of me@proxy:22: ", made(), keyring=True)
    dialog.open()
    assert not dialog.remember.isChecked()
    assert "Otherwise kept in memory until BranchLab ends" in said(dialog)
    dialog.field.setText("s3cret")
    if checked:
        qtbot.keyClick(dialog.remember, Qt.Key.Key_Space)
    dialog.give.click()
    assert dialog.answer == "s3cret"
    assert isinstance(dialog.answer, Remembered) == checked


def test_without_a_keyring_the_box_is_off_and_the_dialog_says_where_it_is(made: Made, qtbot: QtBot) -> None:
    dialog = PasswordDialog(made()._look, "Password of me@proxy:22: ", made())
    dialog.open()
    assert dialog.remember.isVisible()
    assert not dialog.remember.isEnabled()
    assert "No system keyring answers on this machine: kept in memory until BranchLab ends" in said(dialog)
    dialog.reject()


def test_what_is_good_once_cannot_be_remembered(made: Made, qtbot: QtBot) -> None:
    dialog = PasswordDialog(
        made()._look, "proxy (me@proxy:22) asks: Verification code: ", made(), keyring=True
    )
    dialog.open()
    assert not dialog.remember.isVisible()
    assert "Used once, and not kept" in said(dialog)
    dialog.reject()


def said(dialog: PasswordDialog) -> str:
    return " ".join(label.text() for label in dialog.findChildren(Label))


# the key of a host ----------------------------------------------------------------------------------------------

KEY = offered().fingerprint


@pytest.mark.parametrize(
    ("pasted", "same"),
    [
        (KEY, True),
        (KEY.removeprefix("SHA256:"), True),
        (f"256 {KEY} root@desk-3 (ED25519)\n", True),
        (f"3072 SHA256:{'x' * 43} (RSA)\n256 {KEY} (ED25519)", True),
        (KEY[:-1] + "C", False),
        (KEY + "C", None),
        (KEY[:-1], None),
        (KEY.lower(), False),
        ("256 MD5:aa:bb:cc:dd:ee:ff:00:11:22:33:44:55:66:77:88:99 (ED25519)", None),
        ("", None),
        ("ssh-keygen: no such file", None),
    ],
)
def test_fingerprints_are_compared_whole(pasted: str, same: bool | None) -> None:
    assert compared(KEY, pasted) is same


@pytest.mark.parametrize(
    ("pasted", "trust", "filled", "default"),
    [
        ("", True, "", "refuse"),
        (KEY, True, "trust", "trust"),
        ("SHA256:" + "x" * 43, False, "refuse", "refuse"),
    ],
)
def test_trust_is_filled_only_once_the_two_are_the_same(
    made: Made, pasted: str, trust: bool, filled: str, default: str
) -> None:
    window = made()
    dialog = HostKeyDialog(window._look, offered(), window)
    dialog.field.setText(pasted)
    buttons = {"trust": dialog.trust, "refuse": dialog.refuse}
    assert dialog.trust.isEnabled() is trust
    assert [name for name, button in buttons.items() if button.property("kind") == "filled"] == [
        filled
    ] * bool(filled)
    assert [name for name, button in buttons.items() if button.isDefault()] == [default]
    dialog.deleteLater()


def test_the_fingerprint_is_copied_without_gaps_and_the_command_as_it_is(made: Made) -> None:
    window = made()
    dialog = HostKeyDialog(window._look, offered(kind="ecdsa-sha2-nistp256"), window)
    dialog.copy.click()
    assert QGuiApplication.clipboard().text() == KEY
    dialog.command.copy.click()
    assert QGuiApplication.clipboard().text() == "ssh-keygen -lf /etc/ssh/ssh_host_ecdsa_key.pub"
    dialog.deleteLater()


# the account ----------------------------------------------------------------------------------------------------


def with_account(window: MainWindow, changes: Sequence[tuple[str, str, bool]]) -> None:
    live = window.live
    for number, (host, what, undone) in enumerate(changes):
        live.apply(
            HostChanged(host=host, at=f"2026-06-03T09:12:{number % 60:02d}+00:00", what=what, undone=undone)
        )
    window.show_page(RUN)
    window.run_page.output._tabs.button(ACCOUNT).click()
    window.run_page.redraw()
    QApplication.processEvents()


def test_the_account_lists_changes_and_copies_them(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    window.live.changed.clear()
    with_account(
        window,
        [("server", "line applied", False), ("proxy", "made", False), ("server", "taken back: line", True)],
    )
    output = window.run_page.output
    assert output.account.isVisible()
    assert not output._text.isVisible()
    assert output._about.text() == "What was changed on the hosts, and taken back"
    output.account.setFocus()
    qtbot.keyClick(output.account, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert lines[0] == ["Time", "Host", "Changed or taken back", "What"]
    assert [line[1:] for line in lines[1:]] == [
        ["server", "changed", "line applied"],
        ["proxy", "changed", "made"],
        ["server", "taken back", "line"],
    ]
    output.account.selectRow(1)
    qtbot.keyClick(output.account, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert len(QGuiApplication.clipboard().text().splitlines()) == 2
    index = output.account.model().index(2, 0)
    assert "server, taken back, line" in index.data(Qt.ItemDataRole.AccessibleTextRole)


def test_what_a_run_changes_is_in_its_account_and_no_more_among_events(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    window.show_page(RUN)
    output = window.run_page.output
    output._tabs.button(ACCOUNT).click()
    assert output.account.model().rowCount() == len(window.live.changed) > 0
    output._tabs.button(1).click()
    assert "line applied" not in output._text.toPlainText()
    assert output._text.isVisible()
    assert not output.account.isVisible()
    output._tabs.button(0).click()
    assert any(said.isVisible() for said in output._said)  # proofs are back


def test_a_flood_of_changes_is_cheap_and_follows_its_end(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.show_live(Live())
    ran(qtbot, window, small())
    with_account(window, [("server", f"change {n}", bool(n % 2)) for n in range(900)])
    view = window.run_page.output.account
    assert view.model().rowCount() == 300
    assert "the newest 300" in window.run_page.output._about.text()
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    view.verticalScrollBar().setValue(0)
    with_account(window, [("server", "one more", False)])
    assert view.verticalScrollBar().value() == 0  # whoever reads is not moved


def test_the_account_opens_over_a_full_matrix(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.02))
    started(qtbot, window, experiment(), done=1)
    window.resize(1280, 720)
    window.show_page(RUN)
    QApplication.processEvents()
    output = window.run_page.output
    assert not output._text.isVisible()
    tab = output._tabs.button(ACCOUNT)
    tab.click()
    QApplication.processEvents()
    assert output.account.isVisible()
    assert output.account.height() >= 40
    tab.click()
    QApplication.processEvents()
    assert not output.account.isVisible()


# taking everything back -----------------------------------------------------------------------------------------


def nobody_asks(host: object, passwords: Passwords) -> None:
    """No host asks for anything."""


class Left:
    """A stand-in for hosts on which something was left."""

    def __init__(self, left: Mapping[str, list[str] | Exception]) -> None:
        self.left = dict(left)

    def revert(self, lab: Lab, passwords: Passwords) -> dict[str, list[str]]:
        """As `lab.machines.revert`."""
        (host,) = lab.hosts
        found = self.left.get(host.name, [])
        if isinstance(found, Exception):
            raise found
        self.left[host.name] = []
        return {host.name: found}


def test_everything_is_taken_back_and_told_host_by_host(made: Made, qtbot: QtBot) -> None:
    left = Left({"server": ["line on eth0", "table inet branchlab"], "proxy": ["cache folder"]})
    window = made(reverting=left.revert, signing=nobody_asks)
    window.show_page(LAB)
    said: list[str] = []
    window.deeds.taking_back.going.connect(said.append)
    with qtbot.waitSignal(window.deeds.taking_back.done, timeout=FOREVER_MS):
        window.lab_page.revert.click()
        assert not window.lab_page.revert.isEnabled()
        window.start_run(small())
        assert window._banner._title.text() == "Everything is being taken back."
    assert said[1:] == [
        f"Taking everything back: {n} ({i} of 3) …" for i, n in enumerate(("client", "proxy", "server"), 1)
    ] + [""]
    banner = window._banner
    assert banner._title.text() == "Everything was taken back: 3 changes."
    assert banner._text.text().splitlines() == [
        "client: nothing was left",
        "proxy: 1 change",
        "server: 2 changes",
    ]
    assert banner._more.word == "What was taken back"
    banner._more.click()
    assert "server: line on eth0" in banner._tried.text()
    assert window.lab_page.revert.isEnabled()
    assert window.live.total == 0
    with qtbot.waitSignal(window.deeds.taking_back.done, timeout=FOREVER_MS):  # twice does no harm
        next(a for a in doable(window) if a.name == "Take everything back").do()
    assert banner._title.text() == "Nothing was left on any of the 3 hosts."


def test_a_host_that_cannot_be_put_back_keeps_no_other_from_it(made: Made, qtbot: QtBot) -> None:
    busy = AgentRefused("run 7 of ann@desk holds it", kind="busy", advice="Wait for it.")
    away = HostTrouble(
        "client: no answer on port 22\n  tried: ssh client\nother hosts: none", advice="Run it again."
    )
    window = made(
        reverting=Left({"client": away, "proxy": busy, "server": ["line"]}).revert, signing=nobody_asks
    )
    window.show_page(LAB)
    with qtbot.waitSignal(window.deeds.taking_back.done, timeout=FOREVER_MS):
        window.deeds.take_back()
    banner = window._banner
    assert banner._title.text() == "Not everything could be taken back: client, proxy."
    assert banner._text.text().splitlines() == [
        "client: no answer on port 22; tried: ssh client; what to do: Run it again.",
        "proxy: run 7 of ann@desk holds it; what to do: Wait for it.",
        "server: 1 change",
    ]


def test_nothing_is_taken_back_while_a_run_goes(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.02))
    started(qtbot, window, experiment(), done=1)
    window.show_page(LAB)
    window.lab_page.refresh()
    assert not window.lab_page.revert.isVisible()
    assert "Take everything back" not in [action.name for action in doable(window)]


def test_one_host_is_told_by_its_name() -> None:
    assert summary([TakenBack(host="server")]).title == "Nothing was left on server."
