"""The Lab page edited by mouse and keys: each edit one step of the profile, wrong values said at their field."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from experiment_shown import OFFICE
from fake_testbed import FakeTestbed, experiment
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QContextMenuEvent, QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QWidget
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, Made, made, started

from gui.asking import SaveDialog
from gui.doable import doable
from gui.lab.add_card import ADD
from gui.lab.editing import ssh_command
from gui.lab.hand_boxes import HELD_BY_RUN
from gui.lab.items import THE_LINE
from gui.lab.removing import RemoveDialog
from gui.lab.written import HostWritten
from gui.main_window import MainWindow
from gui.telling import LAB
from gui.words import isolated
from lab import store
from lab.model import Lab
from lab.rig.host_checks import Checked

__all__ = ["made"]
CTRL, SHIFT, NONE = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.NoModifier,
)
LEFT = Qt.MouseButton.LeftButton
COMMENTED = OFFICE.replace("[hosts.proxy]", "# under the stairs\n[hosts.proxy]").replace(
    'role = "proxy"', 'role = "proxy"  # of the office'
)
ROUTER = '[hosts.gate]\nrole = "router"\nssh = "gate"\nroot = "sudo"\n\n'
Opened = Callable[..., MainWindow]


@pytest.fixture
def opened(made: Made, qtbot: QtBot, tmp_path: Path) -> Opened:
    """A window on the Lab page with a profile of its own; nothing unsaved is asked about at its end."""

    def make(text: str = COMMENTED, bed: FakeTestbed | None = None, **given: object) -> MainWindow:
        path = tmp_path / "minsk.toml"
        path.write_text(text, "utf-8")
        window = made(bed, **given)
        window.open_profile(path)
        qtbot.waitUntil(lambda: window.document.path == path, timeout=FOREVER_MS)
        window.show_page(LAB)
        window.resize(1440, 900)
        with qtbot.waitActive(window):
            window.activateWindow()
        return window

    return make


def table(window: MainWindow, name: str) -> dict[str, object]:
    """A host as the profile has it now."""
    found = hosts(window)[name]
    assert isinstance(found, dict)
    return found


def text(window: MainWindow) -> str:
    assert window.document.draft is not None
    return window.document.draft.text


def hosts(window: MainWindow) -> dict[str, object]:
    found = tomllib.loads(text(window))["hosts"]
    assert isinstance(found, dict)
    return found


def press(window: MainWindow, name: str, button: Qt.MouseButton = LEFT) -> QPoint:
    """Press a host, the line or the card that adds, in the picture; where that is in it."""
    picture = window.lab_page.picture
    at = picture.viewport().mapFromGlobal(picture.point(name))
    QTest.mouseClick(picture.viewport(), button, pos=at)
    QApplication.processEvents()
    return at


def write(entry: QLineEdit, what: str, end: Qt.Key = Qt.Key.Key_Return) -> None:
    entry.setFocus()
    entry.selectAll()
    QTest.keyClick(entry, Qt.Key.Key_Delete)
    QTest.keyClicks(entry, what)
    QTest.keyClick(entry, end)


def field(window: MainWindow, key: str) -> QLineEdit:
    entry = window.lab_page.inspector.host.fields[key].entry
    assert entry.isVisible()
    return entry


def choose(window: MainWindow, box: QWidget, text: str) -> None:
    """By keys, as one does in a list box."""
    box.setFocus()
    number = box.findText(text)  # type: ignore[attr-defined]
    assert number >= 0
    while box.currentIndex() != number:  # type: ignore[attr-defined]
        down = number > box.currentIndex()  # type: ignore[attr-defined]
        QTest.keyClick(box, Qt.Key.Key_Down if down else Qt.Key.Key_Up)


def menu(window: MainWindow) -> dict[str, object]:
    """The menu that is open: its entries by name; closed."""
    (found,) = [one for one in window.findChildren(QMenu) if one.isVisible()]
    entries = {action.text().partition("\t")[0]: action for action in found.actions()}
    found.hide()
    return dict(entries)


# fields


def test_fields_edit_the_host_and_nothing_but_their_value_changes(opened: Opened, qtbot: QtBot) -> None:
    window = opened()
    press(window, "proxy")
    write(field(window, "ssh"), "admin@cache.example.com:2222")
    assert text(window) == COMMENTED.replace(
        'ssh = "proxy.office.example.com"', 'ssh = "admin@cache.example.com:2222"'
    )
    assert window.document.undoes == "change the SSH name of proxy"
    QTest.keyClick(window, Qt.Key.Key_Z, CTRL)
    assert text(window) == COMMENTED
    assert field(window, "ssh").text() == "proxy.office.example.com"
    QTest.keyClick(window, Qt.Key.Key_Z, CTRL | SHIFT)
    assert field(window, "ssh").text() == "admin@cache.example.com:2222"
    write(field(window, "address"), "")
    assert "address" not in table(window, "proxy")
    write(field(window, "address6"), "2001:db8::23")
    assert table(window, "proxy")["address6"] == "2001:db8::23"
    choose(window, window.lab_page.inspector.host.root, "by doas")
    assert table(window, "proxy")["root"] == "doas"
    choose(window, window.lab_page.inspector.host.root, "not at all")
    assert "root" not in table(window, "proxy")
    assert "# under the stairs\n[hosts.proxy]" in text(window)
    assert 'role = "proxy"  # of the office' in text(window)


def test_a_wrong_value_is_told_at_its_field_kept_with_its_host_and_never_written(opened: Opened) -> None:
    window = opened()
    press(window, "proxy")
    write(field(window, "address"), "198.51.100")
    told = window.lab_page.inspector.host.fields["address"]
    assert told.verdict.isVisible()
    assert "write one such as 198.51.100.10" in told.entry.accessibleDescription()
    assert text(window) == COMMENTED
    press(window, "desk-1")
    assert field(window, "address").text() != "198.51.100"
    assert not told.verdict.isVisible()
    press(window, "proxy")
    assert field(window, "address").text() == "198.51.100"
    assert told.verdict.isVisible()
    QTest.keyClick(field(window, "address"), Qt.Key.Key_Escape)
    assert field(window, "address").text() == "198.51.100.23"
    for key, wrong in (("ssh", ""), ("url", "https://x/y"), ("cache.folder", "var"), ("name", "a b")):
        write(field(window, key), wrong)
        assert window.lab_page.inspector.host.fields[key].verdict.isVisible()
    assert text(window) == COMMENTED


def test_what_contradicts_another_host_is_told_at_the_field_and_no_run_begins(opened: Opened) -> None:
    window = opened()
    press(window, "desk-1")
    write(field(window, "address"), "198.51.100.23")
    assert "is the address of" in field(window, "address").accessibleDescription() or window.document.problems
    assert window.lab_page.head._under_text.text().startswith("Not right yet")
    window.lab_page.start.click()
    assert not window.running
    assert not window.looking
    QTest.keyClick(window, Qt.Key.Key_Z, CTRL)
    assert not window.document.problems
    assert not window.lab_page.head._under_text.text().startswith("Not right yet")


def test_a_host_is_renamed_followed_and_named_back_by_undo(opened: Opened) -> None:
    window = opened()
    press(window, "proxy")
    write(field(window, "name"), "cache-1")
    assert text(window) == COMMENTED.replace("[hosts.proxy]", "[hosts.cache-1]")
    assert window.lab_page.inspector.selected == "cache-1"
    assert [host.name for host in window.lab_page.shown.hosts if host.name == "cache-1"]
    write(field(window, "name"), "server")
    assert "There is another host server" in field(window, "name").accessibleDescription()
    QTest.keyClick(field(window, "name"), Qt.Key.Key_Escape)
    QTest.keyClick(window, Qt.Key.Key_Z, CTRL)
    assert window.lab_page.inspector.selected == "proxy"


def test_the_cache_changes_its_kind_and_its_folder_must_be_owned_first(opened: Opened) -> None:
    window = opened()
    press(window, "proxy")
    box = window.lab_page.inspector.host
    choose(window, box.proxy, "the one that runs there")
    assert "services" not in table(window, "proxy")
    choose(window, box.kind, "Squid")
    assert table(window, "proxy")["cache"] == {"kind": "squid", "folder": "/var/cache/branchlab"}
    choose(window, box.kind, "a folder of files")
    assert window.document.problems
    assert box._cache_wrong.isVisible()
    QTest.mouseClick(box.owns, LEFT, pos=QPoint(9, 9))
    assert table(window, "proxy")["cache"] == {
        "kind": "folder",
        "folder": "/var/cache/branchlab",
        "owns": True,
    }
    assert not window.document.problems
    choose(window, box.kind, "commands of your own")
    write(field(window, "cache.list"), "/usr/bin/list 'a b'")
    write(field(window, "cache.purge"), "/usr/bin/purge {url}")
    assert table(window, "proxy")["cache"] == {
        "kind": "command", "list": ["/usr/bin/list", "a b"], "purge": ["/usr/bin/purge", "{url}"],
    }  # fmt: skip
    assert not window.document.problems
    choose(window, box.proxy, "BranchLab’s own, while a run goes on")
    assert table(window, "proxy")["cache"]["kind"] == "apache-disk"  # type: ignore[index]


def test_where_the_line_is_held_is_chosen_with_the_line_selected(opened: Opened) -> None:
    window = opened()
    press(window, THE_LINE)
    box = window.lab_page.inspector.place
    choose(window, box.choice, "at each office host, for itself")
    assert tomllib.loads(text(window))["line"] == "office"
    assert window.lab_page.lab is not None
    assert window.lab_page.lab.place == "office"
    assert box.choice.findText("on the router between") < 0
    choose(window, box.choice, "as usual: on the server")
    assert text(window).replace("\n\n\n", "\n\n") == COMMENTED
    window.document.change("x", lambda document: None)
    assert "# under the stairs" in text(window)


def test_nothing_is_edited_while_a_run_goes(opened: Opened, qtbot: QtBot) -> None:
    window = opened(bed=FakeTestbed(pace=0.05))
    started(qtbot, window, experiment())
    window.show_page(LAB)
    window.lab_page.refresh()
    window.lab_page.picture.select("proxy")
    assert field(window, "ssh").isReadOnly()
    assert not window.lab_page.inspector.host.root.isEnabled()
    assert window.lab_page.inspector.host._why.text() == HELD_BY_RUN
    window.lab_page.picture.setFocus()
    QTest.keyClick(window.lab_page.picture, Qt.Key.Key_Insert)
    assert text(window) == COMMENTED


# hosts added and taken out


def test_a_client_is_added_by_its_card_by_key_and_by_menu(opened: Opened) -> None:
    window = opened()
    press(window, ADD)
    assert table(window, "client") == {"role": "client", "ssh": "client"}
    assert QApplication.focusWidget() is field(window, "ssh")
    QTest.keyClicks(field(window, "ssh"), "desk-3.office.example.com")
    QTest.keyClick(field(window, "ssh"), Qt.Key.Key_Return)
    assert table(window, "client")["ssh"] == "desk-3.office.example.com"
    window.lab_page.picture.setFocus()
    QTest.keyClick(window.lab_page.picture, Qt.Key.Key_Insert)
    assert "client-2" in hosts(window)
    assert not window.document.problems
    assert text(window).index("[hosts.client-2]") < text(window).index("[[experiments]]")
    window.lab_page.picture.select("")
    window.lab_page.inspector.asked.emit("", QPoint(0, 0))
    entries = menu(window)
    assert {"Add a client", "Add a router", "Fit"} <= set(entries)
    assert "Add a proxy" not in entries
    entries["Add a router"].trigger()  # type: ignore[attr-defined]
    assert table(window, "router") == {"role": "router", "ssh": "router"}
    assert window.lab_page.lab is not None
    assert window.lab_page.lab.place == "router"


def test_a_client_is_duplicated_by_key_without_what_is_its_own(opened: Opened) -> None:
    window = opened()
    press(window, "desk-1")
    window.lab_page.picture.setFocus()
    QTest.keyClick(window.lab_page.picture, Qt.Key.Key_D, CTRL)
    new = (set(hosts(window)) - set(tomllib.loads(COMMENTED)["hosts"])).pop()
    assert new == "desk-3"
    own = {key: value for key, value in table(window, "desk-1").items() if key != "address"}
    assert table(window, new) == own
    assert "has the same SSH name" in field(window, "ssh").accessibleDescription()


def test_hosts_are_taken_out_and_the_last_of_a_role_is_not(opened: Opened) -> None:
    window = opened()
    picture = window.lab_page.picture
    for name in ("desk-2", "desk-1", "server"):
        press(window, name)
        picture.setFocus()
        QTest.keyClick(picture, Qt.Key.Key_Delete)
    assert list(hosts(window)) == ["server", "proxy", "desk-1"]
    assert "the only one" in window._banner.accessibleName() + window._banner._title.text()
    QTest.keyClick(window, Qt.Key.Key_Z, CTRL)
    assert text(window) == COMMENTED


def test_a_proxy_that_experiments_name_is_asked_about_and_goes_with_its_states(opened: Opened) -> None:
    window = opened()
    press(window, "proxy")
    window.lab_page.picture.setFocus()
    QTest.keyClick(window.lab_page.picture, Qt.Key.Key_Delete)
    dialog = next(one for one in window.findChildren(RemoveDialog) if one.isVisible())
    assert dialog.focusWidget() is dialog.cancel
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert text(window) == COMMENTED
    QTest.keyClick(window.lab_page.picture, Qt.Key.Key_Delete)
    dialog = next(one for one in window.findChildren(RemoveDialog) if one.isVisible())
    QTest.mouseClick(dialog.remove, LEFT)
    assert "proxy" not in hosts(window)
    assert not window.document.problems
    assert all(one["states"] == ["disabled"] for one in tomllib.loads(text(window))["experiments"])
    QTest.keyClick(window, Qt.Key.Key_Z, CTRL)
    assert text(window) == COMMENTED


def test_a_router_goes_with_its_being_where_the_line_is(opened: Opened) -> None:
    at = OFFICE.index("[[experiments]]")
    routed = OFFICE[:at] + ROUTER + OFFICE[at:]
    window = opened(routed.replace("schema = 1\n", 'schema = 1\nline = "router"\n'))
    press(window, "gate")
    assert window.lab_page.inspector.selected == "gate"
    window.lab_page.picture.setFocus()
    QTest.keyClick(window.lab_page.picture, Qt.Key.Key_Delete)
    assert text(window) == OFFICE


# the picture


def test_a_host_is_dragged_kept_in_its_zone_and_remembered(opened: Opened, qtbot: QtBot) -> None:
    window = opened()
    picture = window.lab_page.picture
    before, port = picture._cards["desk-1"].box, picture.viewport()
    at = port.mapFromGlobal(picture.point("desk-1"))
    QTest.mousePress(port, LEFT, pos=at)
    for step in (QPoint(8, 8), QPoint(60, 120), QPoint(70, 140)):
        QTest.mouseMove(port, at + step)
        QApplication.processEvents()
    QTest.mouseRelease(port, LEFT, pos=at + QPoint(70, 140))
    after = picture._cards["desk-1"].box
    assert (after.topLeft() - before.topLeft()).toPoint() == QPoint(70, 140)
    assert picture._places is not None
    assert picture._places.clients[0] == after  # so its cables
    picture.place("desk-1", after.topLeft() + QPoint(9000, 9000))
    assert picture._places.office.contains(picture._cards["desk-1"].box)
    assert text(window) == COMMENTED
    window.resize(1280, 720)
    assert picture._places.office.contains(picture._cards["desk-1"].box)
    window.close()
    kept = json.loads((store.data_folder() / "layout.json").read_text("utf-8"))["picture"]
    (places,) = kept["places"].values()
    assert places == {"desk-1": [1.0, 1.0]}


def test_where_hosts_were_put_comes_back_and_can_be_reset(opened: Opened) -> None:
    window = opened()
    picture = window.lab_page.picture
    home = picture._cards["server"].box
    picture.setFocus()
    press(window, "server")
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Right):
        QTest.keyClick(picture, key)
    QTest.keyClick(picture, Qt.Key.Key_Left, SHIFT)
    moved = picture._cards["server"].box
    assert round(moved.y() - home.y()) == 16
    assert 0 < moved.x() - home.x() < 8  # its zone ends there, and one pixel back
    kept = json.loads(json.dumps(picture.remembered()))
    picture.put_back()
    assert picture._cards["server"].box == home
    picture.remember(kept)
    assert (picture._cards["server"].box.topLeft() - moved.topLeft()).manhattanLength() < 0.01
    picture.remember({"percent": "x", "places": {"a": {"b": [None, 2]}, "c": 3}})
    picture.remember(110)
    assert picture.scale_percent == 110


def test_tab_goes_through_hosts_in_reading_order_and_on(opened: Opened) -> None:
    window = opened()
    picture = window.lab_page.picture
    picture.setFocus(Qt.FocusReason.TabFocusReason)
    seen = [picture.current]
    while QApplication.focusWidget() is picture:
        QTest.keyClick(picture, Qt.Key.Key_Tab)
        seen.append(picture.current)
    assert seen[:6] == ["desk-1", "desk-2", "proxy", "server", THE_LINE, ADD]
    assert len(seen) == 7
    assert window.lab_page.inspector.selected == ""  # going through is not selecting
    picture.setFocus(Qt.FocusReason.BacktabFocusReason)
    QTest.keyClick(picture, Qt.Key.Key_Backtab)
    assert picture.current == THE_LINE
    QTest.keyClick(picture, Qt.Key.Key_Backtab)
    QTest.keyClick(picture, Qt.Key.Key_Return)
    assert window.lab_page.inspector.selected == "server"
    assert window.lab_page.inspector.isAncestorOf(QApplication.focusWidget())


def test_the_menu_of_a_host_by_right_click_by_key_and_by_its_button(opened: Opened) -> None:
    window = opened()
    picture = window.lab_page.picture
    at = picture.viewport().mapFromGlobal(picture.point("proxy"))
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, picture.viewport().mapToGlobal(at))
    QApplication.sendEvent(picture.viewport(), event)
    entries = menu(window)
    assert {"Fill the cache", "Purge the cache …", "Copy the ssh command", "Rename", "Remove …"} <= set(
        entries
    )
    assert "Duplicate" not in entries
    entries["Copy the ssh command"].trigger()  # type: ignore[attr-defined]
    assert QGuiApplication.clipboard().text() == "ssh proxy.office.example.com"
    press(window, "desk-1")
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(0, 0), QPoint(0, 0))
    QApplication.sendEvent(picture, event)
    entries = menu(window)
    assert {"Duplicate", "Check this host"} <= set(entries)
    entries["Rename"].trigger()  # type: ignore[attr-defined]
    assert window.focusWidget() is field(window, "name")


def test_one_host_is_looked_at_and_the_others_keep_what_was_found(opened: Opened, qtbot: QtBot) -> None:
    seen: list[tuple[str, ...]] = []

    def look(lab: Lab, asked: object, passwords: object, stop: object, say: object) -> tuple[Checked, ...]:
        names = tuple(host.name for host in lab.hosts)
        seen.append(names)
        return tuple(Checked(name, len(names) > 1, f"look {len(seen)}") for name in names)

    window = opened(checking=look, signing=lambda host, passwords: None)
    window.deeds.agreed_first = lambda go: go()

    def asked(name: str) -> None:
        with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
            entries = {deed.name: deed.do for deed in window.lab_page.editing.deeds(name)}
            entries["Check this host"]()  # type: ignore[misc]

    asked("proxy")
    assert window.lab_page.checked is not None
    assert window.lab_page.checked.wrong == 1
    assert {host.name: host.word for host in window.lab_page.shown.hosts}["desk-1"] == "not checked"
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        window.lab_page.check.click()
    assert window.lab_page.checked.wrong == 0
    asked("proxy")
    assert seen == [("proxy",), ("server", "proxy", "desk-1", "desk-2"), ("proxy",)]
    words = {host.name: host.word for host in window.lab_page.shown.hosts}
    assert words == {"server": "ready", "desk-1": "ready", "desk-2": "ready", "proxy": "look 3"}


def test_the_list_of_actions_adds_hosts_and_resets_the_picture(opened: Opened) -> None:
    window = opened()
    named = {action.name: action.do for action in doable(window)}
    assert "Add a proxy" not in named
    assert "Reset the placement of hosts" not in named
    named["Add a router"]()
    assert window.lab_page.inspector.selected == "router"
    window.lab_page.picture.place("router", QPointF(0, 0))
    assert "Reset the placement of hosts" in {action.name for action in doable(window)}


def test_the_ssh_command_has_what_the_profile_says() -> None:
    values = {"ssh": "admin@[2001:db8::1]:2222", "jump": "gate", "key": "/home/a/my key"}
    told = ssh_command(HostWritten(name="x", values=values))
    assert told == "ssh -i '/home/a/my key' -J gate -p 2222 admin@2001:db8::1"
    assert ssh_command(HostWritten(name="x", values={"ssh": "me@host"})) == "ssh me@host"
    assert ssh_command(HostWritten(name="x", values={"ssh": "unix:/run/x"})) == ""


def test_twenty_five_clients_all_have_their_place(opened: Opened) -> None:
    at = OFFICE.index("[[experiments]]")
    more = "".join(f'[hosts.pc-{n}]\nrole = "client"\nssh = "pc-{n}"\n\n' for n in range(23))
    window = opened(OFFICE[:at] + more + OFFICE[at:])
    picture = window.lab_page.picture
    for size in ((1440, 900), (1280, 720)):
        window.resize(*size)
        QApplication.processEvents()
        assert len(picture._cards) == 27
        assert not picture.horizontalScrollBar().isVisible()
        view = picture.mapToScene(picture.viewport().rect()).boundingRect()
        assert all(view.contains(card.box) for card in picture._cards.values())


def test_a_name_from_right_to_left_stays_among_the_words_around_it(opened: Opened) -> None:
    window = opened(OFFICE.replace("Minsk office", "הסניף"))
    assert window.lab_page.head._under_text.text().startswith("\u2068הסניף\u2069: 4 hosts")
    assert isolated("Minsk") == "Minsk"


# dropped


def dropped(target: QWidget, file: Path) -> None:
    """A file let go over a widget, as a desktop does it."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(file))])
    copy, at = Qt.DropAction.CopyAction, QPoint(30, 30)
    entering = QDragEnterEvent(at, copy, data, LEFT, NONE)
    QApplication.sendEvent(target, entering)
    assert entering.isAccepted()
    QApplication.sendEvent(target, QDropEvent(at, copy, data, LEFT, NONE))


def test_a_profile_that_is_dropped_opens_once_changes_are_agreed_to(
    opened: Opened, qtbot: QtBot, tmp_path: Path
) -> None:
    window = opened()
    press(window, "proxy")
    write(field(window, "ssh"), "other")
    other = tmp_path / "other.toml"
    other.write_text(OFFICE.replace("Minsk office", "Brest"), "utf-8")
    dropped(window, other)
    dialog = next(one for one in window.findChildren(SaveDialog) if one.isVisible())
    dialog.lose.click()
    qtbot.waitUntil(lambda: window.document.path == other, timeout=FOREVER_MS)
    assert window.lab_page.lab is not None
    assert window.lab_page.lab.name == "Brest"
    assert window.lab_page.inspector.selected == ""


def test_a_file_dropped_on_a_field_is_not_written_into_it(opened: Opened, tmp_path: Path) -> None:
    window = opened()
    press(window, "proxy")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "x.toml"))])
    event = QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, data, LEFT, NONE)
    field(window, "ssh").dragEnterEvent(event)
    assert not event.isAccepted()
