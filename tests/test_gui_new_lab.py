"""The wizard *New lab*: entered by mouse and keyboard, on real sshd servers and on stand-ins."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
import sshd
import start_shown
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QWidget
from pytestqt.qtbot import QtBot
from start_shown import AWAY, LOOKING, PASSWORD, UNKNOWN, Meetings

from gui.document import Document
from gui.doors import Doors
from gui.host_key import HostKeyDialog
from gui.new_lab.candidate import PAUSE_MS
from gui.new_lab.wizard import (
    CLIENTS,
    NAME,
    PROXY,
    ROUTER,
    SERVER,
    Made,
    NewLabDialog,
    NewLabWizard,
    taken,
)
from gui.password import PasswordDialog
from gui.theme import marks, sheet
from gui.theme.look import Look
from gui.widgets.basic import Button
from lab import embedded, new_lab, profile
from lab.credentials import Kind, Passwords
from lab.errors import BadInput
from lab.model import Host, Role
from lab.rig.host_checks import Checked
from lab.rig.meeting import ANSWERS, KEY, LOGIN, ROOT, Met, Step
from lab.stop import Stop

FOREVER_MS = 60_000
Opened = Callable[..., NewLabWizard]


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    widget = QWidget()
    widget.resize(1440, 900)
    qtbot.addWidget(widget)
    widget.show()
    return widget


@pytest.fixture
def opened(qapp: QApplication, window: QWidget, tmp_path: Path) -> Iterator[Opened]:
    kept: list[NewLabWizard] = []

    def make(doors: Doors | None = None, theme: str = "light") -> NewLabWizard:
        look = Look(theme)
        sheet.dress(qapp, look)
        doors = doors or Doors(meeting=Meetings())
        wizard = NewLabWizard(look, doors, window, config=start_shown.config(tmp_path))
        kept.append(wizard)
        wizard.open()
        QApplication.processEvents()
        return wizard

    yield make
    for wizard in kept:
        wizard.close()


def dialog_of(wizard: NewLabWizard) -> NewLabDialog:
    assert wizard.dialog is not None
    return wizard.dialog


def typed(qtbot: QtBot, line: QLineEdit, text: str) -> None:
    """Click into the line, select all, type."""
    qtbot.mouseClick(line, Qt.MouseButton.LeftButton)
    qtbot.keyClick(line, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClicks(line, text)


def pressed(qtbot: QtBot, button: QWidget) -> None:
    assert button.isVisible()
    assert button.isEnabled()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def chosen(qtbot: QtBot, dialog: NewLabDialog, name: str) -> None:
    """Click at the host of this name in the list."""
    offers = dialog.choices.list
    (item,) = offers.findItems(name, Qt.MatchFlag.MatchExactly)
    offers.scrollToItem(item)
    at = offers.visualItemRect(item).center()
    qtbot.mouseClick(offers.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(at.x(), at.y()))


# real hosts -----------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sshd.Sshd]:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    with sshd.listening(sshd.made(tmp_path / "sshd")) as one:
        yield one


def test_a_host_of_an_inventory_is_compared_trusted_and_met(
    opened: Opened, qtbot: QtBot, server: sshd.Sshd, tmp_path: Path
) -> None:
    host = server.host()
    user, _, port = host.ssh.replace("@127.0.0.1", "").partition(":")
    file = tmp_path / "hosts"
    file.write_text(
        f"[far]\nserver-1 ansible_host=127.0.0.1 ansible_port={port} ansible_user={user}"
        f" ansible_ssh_private_key_file={server.key}\n"
    )
    dialog = dialog_of(opened(Doors()))
    dialog.read_inventory(file)
    chosen(qtbot, dialog, "server-1")
    form = dialog.pages[SERVER].form
    assert (form.name.line.text(), form.port.line.text()) == ("127.0.0.1", port)
    qtbot.waitUntil(lambda: form.rows[KEY].deed.isVisible(), timeout=FOREVER_MS)
    assert form.rows[ANSWERS].sign.sign == marks.OK
    assert form.rows[ANSWERS].name.text() == f"Answers on port {port}"
    assert dialog.server.met is None

    pressed(qtbot, form.rows[KEY].deed)
    qtbot.waitUntil(lambda: bool(dialog.findChildren(HostKeyDialog)), timeout=FOREVER_MS)
    (question,) = dialog.findChildren(HostKeyDialog)
    qtbot.keyClicks(question.field, question._offered.fingerprint)
    pressed(qtbot, question.trust)
    qtbot.waitUntil(lambda: dialog.server.met is not None, timeout=FOREVER_MS)
    qtbot.waitUntil(lambda: not dialog.server.busy, timeout=FOREVER_MS)
    assert form.rows[KEY].text.text() == "accepted now, ED25519"
    assert form.rows[LOGIN].text.text() == f"by key, as {user}"
    if os.getuid() == 0:
        assert form.rows[ROOT].text.text() == "logged in as root"
        assert dialog.server.entry.root == "direct"
    assert not server.cache.exists()


def test_do_not_connect_leaves_the_key_unknown(opened: Opened, qtbot: QtBot, server: sshd.Sshd) -> None:
    dialog = dialog_of(opened(Doors()))
    form = dialog.pages[SERVER].form
    typed(qtbot, form.name.line, f"127.0.0.1:{server.port}")
    qtbot.waitUntil(lambda: form.rows[KEY].deed.isVisible(), timeout=FOREVER_MS)
    pressed(qtbot, form.rows[KEY].deed)
    qtbot.waitUntil(lambda: bool(dialog.findChildren(HostKeyDialog)), timeout=FOREVER_MS)
    qtbot.keyClick(dialog.findChildren(HostKeyDialog)[0], Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: form.rows[KEY].deed.isVisible() and not dialog.server.busy, timeout=FOREVER_MS)
    assert dialog.server.met is None
    assert dialog.isVisible()


@pytest.mark.lab
def test_the_hosts_of_a_lab_are_entered_compared_and_checked_together(
    opened: Opened, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three real hosts in namespaces, by an inventory: every key is compared by hand, then all are looked at."""
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    with embedded.up(tied=True) as made:
        file = tmp_path / "hosts"
        file.write_text(
            "".join(
                f"{host.name} ansible_host={host.ssh} ansible_ssh_private_key_file={host.key}\n"
                for host in made.lab.hosts
            )
        )
        dialog = dialog_of(opened(Doors()))
        dialog.read_inventory(file)
        for step, name in ((SERVER, "server"), (PROXY, "proxy"), (CLIENTS, "client")):
            assert dialog.step == step
            _compared(qtbot, dialog, name)
            pressed(qtbot, dialog.next)
        found = [one.entry for one in dialog.hosts]
        assert [entry.address for entry in found] == [
            next(host.address for host in made.lab.hosts if host.name == name)
            for name in ("server", "proxy", "client")
        ]
        assert all(entry.root == "direct" for entry in found)
        pressed(qtbot, dialog.name_page.check)
        checked: list[tuple[Checked, ...]] = []
        dialog._checking.done.connect(checked.append)
        qtbot.waitUntil(lambda: bool(checked), timeout=FOREVER_MS)
        texts = [one.text for one in checked[0]]
        assert any("server sees this host as" in text for text in texts), texts


def _compared(qtbot: QtBot, dialog: NewLabDialog, name: str) -> None:
    """Choose a host, and trust its key once what was pasted is the same."""
    chosen(qtbot, dialog, name)
    candidate = dialog._shown()
    deed = dialog.pages[dialog.step].form.rows[KEY].deed
    qtbot.waitUntil(lambda: deed.isVisible() and not candidate.busy, timeout=FOREVER_MS)
    pressed(qtbot, deed)
    qtbot.waitUntil(
        lambda: any(one.isVisible() for one in dialog.findChildren(HostKeyDialog)), timeout=FOREVER_MS
    )
    (question,) = (one for one in dialog.findChildren(HostKeyDialog) if one.isVisible())
    question.field.setText(question._offered.fingerprint)
    pressed(qtbot, question.trust)
    qtbot.waitUntil(lambda: candidate.met is not None and not candidate.busy, timeout=FOREVER_MS)


# the whole way --------------------------------------------------------------------------------------------------


def test_a_lab_from_nothing_to_its_file_by_mouse_and_keys(
    opened: Opened, qtbot: QtBot, tmp_path: Path
) -> None:
    wizard = opened()
    dialog = dialog_of(wizard)
    assert not dialog.next.isEnabled()
    assert QApplication.focusWidget() is dialog.pages[SERVER].form.name.line
    qtbot.keyClicks(QApplication.focusWidget(), "server.example.com")
    qtbot.waitUntil(lambda: dialog.server.sign == marks.OK, timeout=FOREVER_MS)
    assert dialog.pages[SERVER].form.address.line.text() == dialog.server.entry.address != ""
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Return)
    assert dialog.step == PROXY
    chosen(qtbot, dialog, "proxy.office.example.com")
    qtbot.waitUntil(lambda: dialog.proxy.sign == marks.OK, timeout=FOREVER_MS)
    pressed(qtbot, dialog.next)
    assert dialog.step == CLIENTS
    chosen(qtbot, dialog, "desk-1")
    pressed(qtbot, dialog.pages[CLIENTS].add)
    chosen(qtbot, dialog, "desk-2")
    qtbot.waitUntil(lambda: all(one.sign == marks.OK for one in dialog.clients), timeout=FOREVER_MS)
    pressed(qtbot, dialog.next)
    assert dialog.step == NAME
    qtbot.keyClicks(QApplication.focusWidget(), "Minsk office")
    made: list[Made] = []
    wizard.made.connect(made.append)
    pressed(qtbot, dialog.next)
    (files,) = dialog.findChildren(QFileDialog)
    files.fileSelected.emit(str(tmp_path / "minsk.toml"))
    document = Document(keep_in=tmp_path / "kept")
    assert taken(document, made[0])
    found = profile.load(tmp_path / "minsk.toml")
    assert found.lab.name == "Minsk office"
    assert [host.name for host in found.lab.hosts] == ["server", "proxy", "desk-1", "desk-2"]
    assert all(host.address and host.root == "sudo" for host in found.lab.hosts)
    assert not document.unsaved
    assert wizard.dialog is None
    wizard.open()
    assert not dialog_of(wizard).server.entered


def test_a_router_of_ours_between_has_a_step_of_its_own(opened: Opened, qtbot: QtBot) -> None:
    dialog = dialog_of(opened())
    assert not dialog.steps.buttons[ROUTER].isVisible()
    assert "step 3" in dialog.steps.buttons[CLIENTS].accessibleName()
    typed(qtbot, dialog.pages[SERVER].form.name.line, "server")
    qtbot.mouseClick(dialog.pages[SERVER].router, Qt.MouseButton.LeftButton, pos=QPoint(9, 9))
    assert dialog.steps.buttons[ROUTER].isVisible()
    assert "step 4" in dialog.steps.buttons[CLIENTS].accessibleName()
    pressed(qtbot, dialog.next)
    pressed(qtbot, dialog.skip)
    assert dialog.step == ROUTER
    assert dialog.next.word == "Next: clients"
    typed(qtbot, dialog.pages[ROUTER].form.name.line, "gate.office.example.com")
    qtbot.waitUntil(lambda: dialog.router.sign == marks.OK, timeout=FOREVER_MS)
    pressed(qtbot, dialog.next)
    typed(qtbot, dialog.pages[CLIENTS].form.name.line, "desk")
    pressed(qtbot, dialog.next)
    looked = profile.looked_at(new_lab.text(dialog.lab), Path("x"))
    assert looked.profile is not None
    assert [host.role.value for host in looked.profile.lab.hosts] == ["server", "router", "client"]
    assert looked.profile.lab.place == "router"
    dialog.show_step(SERVER)
    qtbot.mouseClick(dialog.pages[SERVER].router, Qt.MouseButton.LeftButton, pos=QPoint(9, 9))
    assert [host.role.value for host in dialog.lab.hosts] == ["server", "client"]
    pressed(qtbot, dialog.next)
    pressed(qtbot, dialog.skip)
    assert dialog.step == CLIENTS
    pressed(qtbot, dialog.back)
    assert dialog.step == PROXY


SSH_CONFIG = """\
Host server-9
  HostName far.example.com
  User admin
  Port 2222
  ProxyJump gate.example.com
Host *.example.com
  User nobody
Host desk-9
"""


@pytest.mark.parametrize(
    ("name", "text", "entered"),
    [
        ("config", SSH_CONFIG, ("far.example.com", "admin", "2222", "gate.example.com")),
        (
            "hosts.ini",
            "[far]\nserver-9 ansible_host=far.example.com ansible_user=admin\n",
            ("far.example.com", "admin", "", ""),
        ),
    ],
)
def test_a_file_let_go_over_the_dialog_offers_its_hosts(
    opened: Opened, qtbot: QtBot, tmp_path: Path, name: str, text: str, entered: tuple[str, ...]
) -> None:
    dialog = dialog_of(opened())
    file = tmp_path / name
    file.write_text(text)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(file))])
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    entering = QDragEnterEvent(QPoint(9, 9), copy, data, left, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(dialog, entering)
    assert entering.isAccepted()
    assert not dialog.pages[SERVER].form.name.line.acceptDrops()
    QApplication.sendEvent(dialog, QDropEvent(QPoint(9, 9), copy, data, left, Qt.KeyboardModifier.NoModifier))
    assert name in dialog.choices.note.text()
    chosen(qtbot, dialog, "server-9")
    form = dialog.pages[SERVER].form
    assert tuple(field.line.text() for field in (form.name, form.user, form.port, form.jump)) == entered


def test_opened_without_saving_it_is_a_document_without_a_file(
    opened: Opened, qtbot: QtBot, tmp_path: Path
) -> None:
    wizard = opened()
    dialog = dialog_of(wizard)
    typed(qtbot, dialog.pages[SERVER].form.name.line, "server")
    pressed(qtbot, dialog.next)
    pressed(qtbot, dialog.skip)
    assert dialog.step == CLIENTS
    typed(qtbot, dialog.pages[CLIENTS].form.name.line, "desk")
    pressed(qtbot, dialog.next)
    made: list[Made] = []
    wizard.made.connect(made.append)
    pressed(qtbot, dialog.unsaved)
    document = Document(keep_in=tmp_path / "kept")
    assert taken(document, made[0])
    assert document.path is None
    assert document.unsaved
    assert document.profile is not None
    assert [host.role for host in document.profile.lab.hosts] == [Role.SERVER, Role.CLIENT]


def test_a_password_is_asked_for_only_when_its_button_is_pressed(opened: Opened, qtbot: QtBot) -> None:
    """A stand-in that wants one, and takes any."""

    def wants(host: Host, passwords: Passwords, stop: Stop, say: Callable[[Step], None]) -> Met | None:
        known = passwords.password("lab@server:22", host.name, Kind.LOGIN)
        for step in PASSWORD if known is None else start_shown.GOOD:
            say(step)
        return None if known is None else start_shown.met()

    dialog = dialog_of(opened(Doors(meeting=wants)))
    form = dialog.pages[SERVER].form
    typed(qtbot, form.name.line, "server")
    qtbot.waitUntil(lambda: form.rows[LOGIN].deed.isVisible() and not dialog.server.busy, timeout=FOREVER_MS)
    assert not dialog.findChildren(PasswordDialog)
    pressed(qtbot, form.rows[LOGIN].deed)
    qtbot.waitUntil(lambda: bool(dialog.findChildren(PasswordDialog)), timeout=FOREVER_MS)
    (question,) = dialog.findChildren(PasswordDialog)
    qtbot.keyClicks(question.field, "secret")
    pressed(qtbot, question.give)
    qtbot.waitUntil(lambda: dialog.server.met is not None, timeout=FOREVER_MS)
    assert form.rows[LOGIN].text.text() == "by key, as lab"


def test_a_host_is_chosen_by_the_keyboard_and_nothing_else_happens(opened: Opened, qtbot: QtBot) -> None:
    dialog = dialog_of(opened())
    offers = dialog.choices.list
    offers.setFocus()
    qtbot.keyClick(offers, Qt.Key.Key_Home)
    qtbot.keyClick(offers, Qt.Key.Key_Down)
    qtbot.keyClick(offers, Qt.Key.Key_Return)
    assert dialog.server.entry.ssh == "desk-2"
    assert dialog.step == SERVER


# what is kept, left and refused ---------------------------------------------------------------------------------


def test_esc_closes_and_what_was_entered_is_there_again(opened: Opened, qtbot: QtBot) -> None:
    wizard = opened(Doors(meeting=Meetings({"proxy": LOOKING})))
    dialog = dialog_of(wizard)
    typed(qtbot, dialog.pages[SERVER].form.name.line, "server")
    pressed(qtbot, dialog.next)
    typed(qtbot, dialog.pages[PROXY].form.name.line, "proxy")
    qtbot.waitUntil(lambda: "programs" in dialog.proxy.steps, timeout=FOREVER_MS)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
    assert not dialog.proxy.busy
    wizard.open()
    assert dialog_of(wizard) is dialog
    assert dialog.isVisible()
    assert dialog.step == PROXY
    assert dialog.pages[PROXY].form.name.line.text() == "proxy"
    # and a test that was left is begun again
    qtbot.waitUntil(lambda: "programs" in dialog.proxy.steps, timeout=FOREVER_MS)


def test_a_host_is_met_once_the_keys_rest_and_never_by_half_a_name(opened: Opened, qtbot: QtBot) -> None:
    meetings = Meetings()
    dialog = dialog_of(opened(Doors(meeting=meetings)))
    line = dialog.pages[SERVER].form.name.line
    for letter in "server.example.com":
        qtbot.keyClicks(line, letter)
        qtbot.wait(PAUSE_MS // 20)
    qtbot.waitUntil(lambda: dialog.server.sign == marks.OK, timeout=FOREVER_MS)
    assert [host.ssh for host in meetings.met] == ["server.example.com"]


def test_another_name_amid_a_test_leaves_the_first_one(opened: Opened, qtbot: QtBot) -> None:
    dialog = dialog_of(opened(Doors(meeting=Meetings({"slow": LOOKING}))))
    form = dialog.pages[SERVER].form
    typed(qtbot, form.name.line, "slow")
    qtbot.waitUntil(lambda: "programs" in dialog.server.steps, timeout=FOREVER_MS)
    typed(qtbot, form.name.line, "quick")
    assert dialog.server.steps == {}
    qtbot.waitUntil(lambda: dialog.server.sign == marks.OK, timeout=FOREVER_MS)
    assert dialog.server.met is not None


def test_an_address_of_ones_own_stays_whatever_the_test_finds(opened: Opened, qtbot: QtBot) -> None:
    dialog = dialog_of(opened())
    form = dialog.pages[SERVER].form
    typed(qtbot, form.name.line, "server")
    typed(qtbot, form.address.line, "203.0.113.5")
    qtbot.waitUntil(lambda: dialog.server.sign == marks.OK, timeout=FOREVER_MS)
    assert dialog.server.entry.address == "203.0.113.5"


def test_what_is_not_written_right_is_never_asked_for(opened: Opened, qtbot: QtBot) -> None:
    meetings = Meetings()
    dialog = dialog_of(opened(Doors(meeting=meetings)))
    form = dialog.pages[SERVER].form
    typed(qtbot, form.name.line, "joe:secret@server")
    qtbot.wait(2 * PAUSE_MS)
    assert meetings.met == []
    assert form.verdict.isVisible()
    assert "has a password in it" in form.verdict.label.text()
    assert not dialog.next.isEnabled()
    assert dialog.server.sign == marks.TROUBLE


@pytest.mark.parametrize(
    ("steps", "sign", "deed"),
    [(UNKNOWN, marks.WARN, True), (PASSWORD, marks.WARN, True), (AWAY, marks.TROUBLE, False)],
)
def test_trouble_is_told_and_one_may_go_on(
    opened: Opened, qtbot: QtBot, steps: tuple[object, ...], sign: str, deed: bool
) -> None:
    dialog = dialog_of(opened(Doors(meeting=Meetings({"server": steps}))))  # type: ignore[dict-item]
    form = dialog.pages[SERVER].form
    typed(qtbot, form.name.line, "server")
    qtbot.waitUntil(lambda: dialog.server.sign == sign, timeout=FOREVER_MS)
    qtbot.waitUntil(lambda: not dialog.server.busy, timeout=FOREVER_MS)
    assert any(line.deed.isVisible() for line in form.rows.values()) is deed
    pressed(qtbot, dialog.next)
    assert dialog.steps.buttons[SERVER]._sign == sign


def test_a_host_that_is_taken_cannot_be_chosen_again(opened: Opened, qtbot: QtBot) -> None:
    dialog = dialog_of(opened())
    chosen(qtbot, dialog, "server.example.com")
    pressed(qtbot, dialog.next)
    chosen(qtbot, dialog, "server.example.com")
    assert not dialog.proxy.entered
    (item,) = dialog.choices.list.findItems("server.example.com", Qt.MatchFlag.MatchExactly)
    assert "is the server" in item.data(Qt.ItemDataRole.AccessibleTextRole)


def test_clients_are_added_shown_and_taken_out(opened: Opened, qtbot: QtBot) -> None:
    dialog = dialog_of(opened())
    dialog.show_step(CLIENTS)
    page = dialog.pages[CLIENTS]
    for number in range(10):
        typed(qtbot, page.form.name.line, f"pc-{number}")
        if number < 9:
            pressed(qtbot, page.add)
    assert [one.entry.ssh for one in dialog.clients] == [f"pc-{n}" for n in range(10)]
    pressed(qtbot, page.add)
    pressed(qtbot, page.add)  # an empty one is enough
    assert len(dialog.clients) == 11
    QApplication.processEvents()
    page.ensureWidgetVisible(page.buttons[3])
    pressed(qtbot, page.buttons[3])
    assert page.form.name.line.text() == "pc-3"
    pressed(qtbot, page.remove)
    assert "pc-3" not in [one.entry.ssh for one in dialog.clients]


def test_an_inventory_that_is_junk_is_told_beside_the_list(
    opened: Opened, qtbot: QtBot, tmp_path: Path
) -> None:
    dialog = dialog_of(opened())
    bad = tmp_path / "hosts"
    bad.write_text("[web:hots]\n")
    dialog.read_inventory(bad)
    assert "hosts:1" in dialog.choices.note.text()
    assert dialog.choices.list.count() == 4


def test_many_hosts_are_searched(opened: Opened, qtbot: QtBot, tmp_path: Path) -> None:
    dialog = dialog_of(opened())
    many = tmp_path / "hosts"
    many.write_text("[office]\npc[1:300]\n[far]\nsrv-9\n")
    dialog.read_inventory(many)
    qtbot.keyClicks(dialog.choices.search, "far 9")
    seen = [
        item.text()
        for n in range(dialog.choices.list.count())
        if not (item := dialog.choices.list.item(n)).isHidden()
    ]
    assert seen == ["srv-9"]


def test_a_key_among_thousands_of_hosts_takes_no_frame(opened: Opened, qtbot: QtBot, tmp_path: Path) -> None:
    dialog = dialog_of(opened())
    many = tmp_path / "hosts"
    many.write_text("[office]\npc[1:4000]\n")
    dialog.read_inventory(many)
    QApplication.processEvents()
    spent = []
    for letter in "pc39":
        begin = time.process_time()
        dialog.server.enter(ssh=dialog.server.entry.ssh + letter)
        spent.append(time.process_time() - begin)
    assert min(spent) < 0.016
    (item,) = dialog.choices.list.findItems("pc39", Qt.MatchFlag.MatchExactly)
    assert "chosen" in item.data(Qt.ItemDataRole.AccessibleTextRole)
    (item,) = dialog.choices.list.findItems("pc3", Qt.MatchFlag.MatchExactly)
    assert "chosen" not in item.data(Qt.ItemDataRole.AccessibleTextRole)


def test_the_whole_lab_is_checked_where_it_is_named(opened: Opened, qtbot: QtBot) -> None:
    found = (Checked("server", False, "tc is missing", "Install it."), Checked("desk", True, "all well"))
    doors = Doors(
        meeting=Meetings(), checking=lambda *_: found, signing=lambda *_: None, own=lambda lab: False
    )
    dialog = dialog_of(opened(doors))
    typed(qtbot, dialog.pages[SERVER].form.name.line, "server")
    pressed(qtbot, dialog.next)
    pressed(qtbot, dialog.skip)
    typed(qtbot, dialog.pages[CLIENTS].form.name.line, "desk")
    pressed(qtbot, dialog.next)
    pressed(qtbot, dialog.name_page.check)
    qtbot.waitUntil(lambda: dialog.name_page.state.sign.sign == marks.TROUBLE, timeout=FOREVER_MS)
    assert dialog.name_page.state.label.text().startswith("1 of 2")
    # what was checked is this lab, and no other
    typed(qtbot, dialog.name_page.name.line, "another")
    assert dialog.name_page.state.sign.sign != marks.TROUBLE


def test_everything_in_it_is_reached_by_tab_and_has_a_name(opened: Opened, qtbot: QtBot) -> None:
    dialog = dialog_of(opened())
    for step in (SERVER, PROXY, CLIENTS, NAME):
        dialog.show_step(step)
        with qtbot.waitActive(dialog):
            dialog.activateWindow()
        wanted = {
            widget
            for widget in dialog.findChildren(QWidget)
            if widget.isVisible() and widget.isEnabled() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            if widget.focusProxy() is None
        }
        assert not [type(widget).__name__ for widget in wanted if not widget.accessibleName()]
        seen = set()
        for _ in range(2 * len(wanted) + 2):
            qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
            seen.add(QApplication.focusWidget())
        assert wanted <= seen, [(type(w).__name__, w.accessibleName()) for w in wanted - seen]


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720)])
def test_it_fits_its_window_and_no_button_is_cut(
    opened: Opened, window: QWidget, qtbot: QtBot, size: tuple[int, int]
) -> None:
    window.resize(*size)
    dialog = dialog_of(opened())
    assert dialog.height() <= window.height()
    assert dialog.width() <= window.width()
    for step in (SERVER, PROXY, CLIENTS, NAME):
        dialog.show_step(step)
        QApplication.processEvents()
        for button in dialog.findChildren(Button):
            if button.isVisible():
                assert button.width() >= button.minimumSizeHint().width(), button.word


def test_a_defect_in_a_test_is_told_in_its_row(opened: Opened, qtbot: QtBot) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("made up")

    dialog = dialog_of(opened(Doors(meeting=broken)))
    typed(qtbot, dialog.pages[SERVER].form.name.line, "server")
    qtbot.waitUntil(lambda: dialog.server.sign == marks.TROUBLE, timeout=FOREVER_MS)
    assert "made up" in dialog.pages[SERVER].form.rows[ANSWERS].text.text()


def test_a_configuration_that_makes_no_sense_is_told(
    opened: Opened, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lab.ssh import config

    def refuse(path: object = None) -> tuple[str, ...]:
        raise BadInput("~/.ssh/config:3 cannot be read as SSH configuration")

    monkeypatch.setattr(config, "names", refuse)
    dialog = dialog_of(opened())
    assert "config:3" in dialog.choices.note.text()
    assert dialog.choices.list.count() == 0
