"""Provision from the window: what is missing and the exact commands first, then what came; never by Enter."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from checks_shown import lacks, missing, well
from fake_testbed import small
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from test_gui_check import FakeCheck, checked, key, nobody_asks
from test_gui_window import FOREVER_MS, HOSTS, made

from gui.doable import doable
from gui.doors import Doors
from gui.found import Came, Doing, Printed
from gui.lab.checks import Command
from gui.main_window import MainWindow
from gui.packages import PackagesDialog, ProgressDialog
from gui.telling import LAB
from gui.widgets.basic import Label
from lab.credentials import Passwords
from lab.errors import AgentRefused, HostUnreachable, Stopped
from lab.model import Lab
from lab.rig.provisioning import Missing
from lab.stop import Stop

__all__ = ["made"]
Made = Callable[..., MainWindow]
FOREVER_S = FOREVER_MS / 1000


class FakePackages:
    """A stand-in for `lab.rig.provisioning` over hosts that lack something."""

    def __init__(
        self, lacking: Mapping[str, Missing | Exception], failing: Mapping[str, Exception] | None = None
    ) -> None:
        self.lacking, self.failing = dict(lacking), dict(failing or {})
        self.log: list[str] = []
        self.wait = ""
        self.there, self.go = threading.Event(), threading.Event()

    def look(self, lab: Lab, host: str, passwords: Passwords) -> Missing:
        """As `gui.ways.lacking`."""
        self.log.append(f"look {host}")
        found = self.lacking.get(host, missing(host, ()))
        if isinstance(found, Exception):
            raise found
        return found

    def install(
        self, lab: Lab, host: str, stop: Stop, say: Callable[[str, str], None], passwords: Passwords
    ) -> Sequence[str]:
        """As `gui.ways.install`."""
        return self._work("install", host, say)

    def remove(
        self, lab: Lab, host: str, stop: Stop, say: Callable[[str, str], None], passwords: Passwords
    ) -> Sequence[str]:
        """As `gui.ways.uninstall`."""
        return [f"removed: {name}" for name in self._work("remove", host, say)]

    def _work(self, what: str, host: str, say: Callable[[str, str], None]) -> Sequence[str]:
        self.log.append(f"{what} {host}")
        say(host, f"Setting up nftables on {host} ...")
        if host == self.wait:
            self.there.set()
            assert self.go.wait(FOREVER_S)
        if host in self.failing:
            raise self.failing[host]
        self.lacking.pop(host, None)
        self.log.append(f"end {host}")
        return ["iproute2", "nftables"]

    def changed(self) -> list[str]:
        """The hosts on which something was begun."""
        return [one for one in self.log if one.startswith(("install", "remove"))]

    def doors(self, check: FakeCheck | None = None, **given: object) -> dict[str, object]:
        """What a window is made with."""
        return {
            "lacking": self.look,
            "installing": self.install,
            "uninstalling": self.remove,
            "checking": check or FakeCheck(well()),
            "signing": nobody_asks,
            "own": lambda lab: False,
            **given,
        }


def shown(qtbot: QtBot, window: MainWindow, kind: type[Any]) -> Any:
    """The dialog of this kind, once it is there."""

    def there() -> list[Any]:
        return [dialog for dialog in window.findChildren(kind) if dialog.isVisible()]

    qtbot.waitUntil(lambda: bool(there()), timeout=FOREVER_MS)
    return there()[0]


def texts(dialog: PackagesDialog | ProgressDialog) -> str:
    QApplication.processEvents()
    return "\n".join(label.text() for label in dialog.findChildren(Label)).replace("\N{ZERO WIDTH SPACE}", "")


def over(qtbot: QtBot, dialog: ProgressDialog) -> None:
    qtbot.waitUntil(lambda: not dialog.going, timeout=FOREVER_MS)


def test_from_a_check_to_what_came_by_keys(made: Made, qtbot: QtBot) -> None:
    hosts = FakePackages({"client": missing("client", ("svn",)), "server": missing("server")})
    check = FakeCheck([lacks("server", "nft (nftables)")])
    window = made(**hosts.doors(check))
    with qtbot.waitActive(window):
        window.activateWindow()
    checked(qtbot, window)
    window.lab_page.provision.setFocus(Qt.FocusReason.TabFocusReason)
    key(qtbot, window, Qt.Key.Key_Space)
    dialog = shown(qtbot, window, PackagesDialog)
    assert dialog.cancel.isDefault()
    assert dialog.focusWidget() is dialog.cancel
    assert dialog.go.word == "Install on 2 hosts"
    assert "lacks tc (iproute2), nft (nftables)" in texts(dialog)
    commands = [command.text for command in dialog.findChildren(Command)]
    assert commands[0].startswith("apt-get --quiet update && apt-get --quiet --yes")
    assert commands[0].endswith("install subversion")
    assert not hosts.changed()
    check.found, check.asked = well(), []
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        dialog.go.setFocus(Qt.FocusReason.TabFocusReason)
        qtbot.keyClick(dialog.go, Qt.Key.Key_Space)
        progress = shown(qtbot, window, ProgressDialog)
    over(qtbot, progress)
    assert progress.lines.toPlainText().splitlines() == [
        "client: Setting up nftables on client ...",
        "server: Setting up nftables on server ...",
    ]
    assert "server: installed iproute2, nftables" in texts(progress)
    assert "Done. The hosts are checked again." in texts(progress)
    assert check.asked == [small()]
    qtbot.keyClick(progress, Qt.Key.Key_Escape)
    assert not progress.isVisible()
    assert not window.lab_page.provision.isVisible()
    assert hosts.log[3:] == ["install client", "end client", "install server", "end server"]


@pytest.mark.parametrize("which", [Qt.Key.Key_Escape, Qt.Key.Key_Return])
def test_esc_and_enter_change_nothing(made: Made, qtbot: QtBot, which: Qt.Key) -> None:
    hosts = FakePackages({"server": missing("server")})
    window = made(**hosts.doors())
    window.lab_page.provided.emit()
    dialog = shown(qtbot, window, PackagesDialog)
    assert dialog.go.word == "Install on server"
    qtbot.keyClick(dialog, which)
    qtbot.waitUntil(lambda: not window.deeds.provisioning.busy, timeout=FOREVER_MS)
    assert hosts.log == ["look client", "look proxy", "look server"]
    window.lab_page.provided.emit()  # and it can be asked for again
    shown(qtbot, window, PackagesDialog).reject()


def test_hosts_without_root_are_for_their_administrator(made: Made, qtbot: QtBot) -> None:
    hosts = FakePackages(
        {
            "client": missing("client", ("svn",), by_hand=True),
            "proxy": missing("proxy", ("squid", "wirefilter"), unknown=("wirefilter",)),
            "server": HostUnreachable("no answer on port 22", host="server", tried="ssh server"),
        }
    )
    window = made(**hosts.doors())
    window.lab_page.provided.emit()
    dialog = shown(qtbot, window, PackagesDialog)
    assert dialog.hosts == ()
    assert not dialog.go.isVisible()
    assert dialog.cancel.word == "Close"
    told = texts(dialog)
    assert "Hand this to whoever administers it" in told
    assert "[hosts.client]" in told
    assert "No package of this system is known for wirefilter (vde2)" in told
    assert "no answer on port 22" in told
    command = dialog.findChildren(Command)[0]
    qtbot.keyClick(command, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().endswith("install subversion")
    dialog.reject()


def test_only_the_hosts_that_can_be_are_installed_on(made: Made, qtbot: QtBot) -> None:
    hosts = FakePackages({"client": missing("client", ("svn",), by_hand=True), "server": missing("server")})
    window = made(**hosts.doors())
    window.lab_page.provided.emit()
    dialog = shown(qtbot, window, PackagesDialog)
    assert dialog.go.word == "Install on server"
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        dialog.go.click()
    assert hosts.changed() == ["install server"]


def test_one_host_that_fails_keeps_no_other_from_it(made: Made, qtbot: QtBot) -> None:
    failed = AgentRefused("apt-get ended with 100", kind="failed", host="client", advice="Mend it there.")
    hosts = FakePackages({name: missing(name) for name in ("client", "server")}, {"client": failed})
    window = made(**hosts.doors())
    window.lab_page.provided.emit()
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        shown(qtbot, window, PackagesDialog).go.click()
    told = texts(shown(qtbot, window, ProgressDialog))
    assert "client: apt-get ended with 100; what to do: Mend it there." in told
    assert "server: installed iproute2, nftables" in told
    assert "Not everything was done" in told


def test_stop_lets_the_package_manager_finish_and_begins_no_other(made: Made, qtbot: QtBot) -> None:
    hosts = FakePackages({name: missing(name) for name in ("client", "proxy", "server")})
    hosts.wait = "proxy"
    window = made(**hosts.doors())
    window.lab_page.provided.emit()
    shown(qtbot, window, PackagesDialog).go.click()
    qtbot.waitUntil(hosts.there.is_set, timeout=FOREVER_MS)
    progress = shown(qtbot, window, ProgressDialog)
    qtbot.keyClick(progress, Qt.Key.Key_Escape)
    assert progress.isVisible()  # Esc is no way out amid it
    window.start_run(small())
    assert "being looked at, or installed" in window._banner._title.text()
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        progress.stop.click()
        hosts.go.set()
    assert hosts.log[-2:] == ["install proxy", "end proxy"]
    assert "Stopped. The hosts are checked again." in texts(progress)


def test_the_window_waits_for_a_package_manager(made: Made, qtbot: QtBot) -> None:
    hosts = FakePackages({name: missing(name) for name in ("client", "server")})
    hosts.wait = "client"
    check = FakeCheck(well())
    window = made(**hosts.doors(check))
    window.lab_page.provided.emit()
    shown(qtbot, window, PackagesDialog).go.click()
    qtbot.waitUntil(hosts.there.is_set, timeout=FOREVER_MS)
    progress = shown(qtbot, window, ProgressDialog)
    window.interrupt()
    assert window.isVisible()
    assert "The window closes once" in texts(progress)
    with qtbot.waitSignal(window.closed, timeout=FOREVER_MS):
        hosts.go.set()
    assert hosts.log[-1] == "end client"
    assert not check.asked


def test_looking_can_be_left(made: Made, qtbot: QtBot) -> None:
    hosts = FakePackages({"server": missing("server")})
    gate = threading.Event()

    def slow(lab: Lab, host: str, passwords: Passwords) -> Missing:
        assert gate.wait(FOREVER_S)
        return hosts.look(lab, host, passwords)

    window = made(**hosts.doors(lacking=slow))
    window.lab_page.provided.emit()
    qtbot.waitUntil(lambda: "(1 of 3)" in window.lab_page.head._under_text.text(), timeout=FOREVER_MS)
    assert window.lab_page.provision.word == "Cancel"
    qtbot.mouseClick(window.lab_page.provision, Qt.MouseButton.LeftButton)
    assert not window.deeds.provisioning.busy
    gate.set()
    qtbot.waitUntil(lambda: hosts.log == ["look client"], timeout=FOREVER_MS)
    QApplication.processEvents()
    assert not [one for one in window.findChildren(PackagesDialog) if one.isVisible()]


def test_nothing_missing_is_told(made: Made, qtbot: QtBot) -> None:
    window = made(**FakePackages({}).doors())
    window.lab_page.provided.emit()
    qtbot.waitUntil(window._banner.isVisible, timeout=FOREVER_MS)
    assert window._banner._title.text() == "Every package is there."


def test_what_was_installed_is_taken_away_with_the_same_care(made: Made, qtbot: QtBot) -> None:
    hosts = FakePackages({"server": missing("server", (), ours=("iproute2", "nftables"))})
    window = made(**hosts.doors())
    action = next(one for one in doable(window) if one.name == "Take installed packages away …")
    action.do()
    dialog = shown(qtbot, window, PackagesDialog)
    assert dialog.cancel.isDefault()
    assert dialog.go.word == "Take away from server"
    assert "iproute2, nftables" in texts(dialog)
    assert not hosts.changed()
    with qtbot.waitSignal(window.deeds.checking.done, timeout=FOREVER_MS):
        dialog.go.click()
    progress = shown(qtbot, window, ProgressDialog)
    assert "server: removed: iproute2, removed: nftables" in texts(progress)
    qtbot.keyClick(progress, Qt.Key.Key_Return)
    assert not progress.isVisible()
    action.do()
    qtbot.waitUntil(window._banner.isVisible, timeout=FOREVER_MS)
    assert window._banner._title.text() == "BranchLab installed nothing on these hosts."


def test_a_lab_of_this_machine_is_not_offered_it(made: Made, qtbot: QtBot) -> None:
    hosts = FakePackages({"server": missing("server")})
    window = made(**hosts.doors(own=lambda lab: True))
    window.show_page(LAB)
    assert not [one for one in doable(window) if "install" in one.name.lower()]
    window.lab_page.provided.emit()
    assert "use its own programs" in window._banner._text.text()
    assert not hosts.log


def test_a_thousand_lines_are_kept_and_scrolled(made: Made, qtbot: QtBot) -> None:
    window = made()
    progress = ProgressDialog(window._look, ("server",), window, remove=False)
    progress.open()
    for number in range(6000):
        progress.line("server", f"{number}: " + "缺少 مساحة " * 8)
    assert progress.lines.document().blockCount() == 5000
    bar = progress.lines.verticalScrollBar()
    assert bar.value() == bar.maximum()
    assert not progress.stop.isVisible()
    progress.over("Done.", "ok")
    progress.reject()


def test_the_doors_tell_host_by_host() -> None:
    hosts = FakePackages({"client": missing("client"), "proxy": missing("proxy")}, {"proxy": Stopped("now")})
    doors = Doors(**hosts.doors())  # type: ignore[arg-type]
    *steps, found = doors.packages(HOSTS, Stop())
    assert [step.host for step in steps if isinstance(step, Doing)] == ["client", "proxy", "server"]
    assert isinstance(found, tuple)
    assert [one.needs for one in found] == [("tc (iproute2)", "nft (nftables)")] * 2 + [()]
    said: list[Printed] = []
    told = list(doors.provision(HOSTS, ("client", "proxy", "server"), Stop(), said.append))
    assert [type(one) for one in told] == [Doing, Came, Doing]
    assert [one.host for one in said] == ["client", "proxy"]
