"""Between the profile and the page Lab: hosts added, taken out, duplicated and renamed from wherever that is asked."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from gui.document import Document
from gui.lab.edits import HostEdits
from gui.lab.inspector import Inspector
from gui.lab.items import THE_LINE
from gui.lab.picture import Picture
from gui.lab.removing import RemoveDialog
from gui.lab.written import HostWritten, LabWritten
from gui.report import Trouble
from gui.theme.look import Look
from lab.model import Role

_ADDABLE = (Role.CLIENT, Role.PROXY, Role.ROUTER, Role.SERVER)


@dataclass(frozen=True, slots=True)
class Deed:
    """An entry of a menu; one that cannot be done now has nothing to `do`. No name at all: a line between."""

    name: str = ""
    do: Callable[[], object] | None = None
    keys: str = ""


class Editing(QObject):
    """Edits the document; picture and inspector show what came of it.

    Signals: `told(object)` a `Trouble`; `checked(object)` the host of this name is to be looked at; `filled()` and
    `purged()` the cache is to be.
    """

    told = Signal(object)
    checked = Signal(object)
    filled = Signal()
    purged = Signal()

    def __init__(
        self,
        look: Look,
        document: Document,
        edits: HostEdits,
        picture: Picture,
        inspector: Inspector,
        page: QWidget,
    ) -> None:
        super().__init__(page)
        self._look, self._document, self._page = look, document, page
        self._edits, self._picture, self._inspector = edits, picture, inspector
        self._lab: LabWritten | None = None
        self._why_not = ""
        self._menu: QMenu | None = None
        document.opened.connect(self._opened)
        document.changed.connect(self.refresh)
        for part in (picture, inspector):
            part.asked.connect(self._offer)
        picture.added.connect(self.add_client)
        picture.removed.connect(self.remove)
        picture.duplicated.connect(self.duplicate)
        picture.renamed.connect(self.rename)

    # showing

    @property
    def lab(self) -> LabWritten | None:
        """The lab as the profile that is open has it."""
        return self._lab

    @property
    def possible(self) -> bool:
        """True if it can be edited now."""
        return self._lab is not None and not self._why_not

    def hold(self, why_not: str) -> None:
        """Why nothing can be edited now; empty: it can."""
        if why_not != self._why_not:
            self._why_not = why_not
            self._show()

    def refresh(self) -> None:
        """Look again at what the profile says; a host that was renamed, also by undo, is followed."""
        before, self._lab = self._lab, self._edits.lab
        names = [[host.name for host in lab.hosts] if lab is not None else [] for lab in (before, self._lab)]
        gone, come = ([name for name in one if name not in other] for one, other in (names, names[::-1]))
        self._show()
        if len(gone) == len(come) == 1 and len(names[0]) == len(names[1]):
            self._picture.follow(gone[0], come[0])
        elif self._picture_selects(gone):
            self._picture.select("")

    def _picture_selects(self, names: list[str]) -> bool:
        return self._inspector.selected in names

    def _opened(self) -> None:
        self._inspector.host.forget()
        self._picture.select("")
        self.refresh()

    def _show(self) -> None:
        self._inspector.show_written(self._lab, self._why_not)
        self._picture.allow(self.possible)

    # deeds

    def add_client(self) -> None:
        """One more client."""
        self.add(Role.CLIENT)

    def add(self, role: Role) -> None:
        """One more host of this role, selected, its SSH name to be written over."""
        if self.possible and (name := self._edits.add(role)):
            self._select(name, "ssh")

    def duplicate(self, name: str) -> None:
        """A client like this one."""
        host = self._lab.host(name) if self._lab is not None else None
        if (
            self.possible
            and host is not None
            and host.role is Role.CLIENT
            and (made := self._edits.duplicate(host))
        ):
            self._select(made, "ssh")

    def rename(self, name: str) -> None:
        """The name is to be written over."""
        if self.possible:
            self._select(name, "name")

    def remove(self, name: str) -> None:
        """Take a host out; asked first where experiments name it."""
        host = self._lab.host(name) if self._lab is not None else None
        if not self.possible or host is None or self._lab is None:
            return
        if why := self._needed(host):
            self.told.emit(Trouble(title=why[0], text=why[1], grade="warn"))
        elif host.role is Role.PROXY and self._lab.cached:
            dialog = RemoveDialog(self._look, self._page.window(), name, self._lab.cached)
            dialog.agreed.connect(partial(self._remove, name))
            dialog.open()
        else:
            self._remove(name)

    def _remove(self, name: str) -> None:
        if self._edits.remove(name):
            self._picture.setFocus(Qt.FocusReason.OtherFocusReason)
            text = "It is out of the profile; nothing was changed on the host. Ctrl Z brings it back."
            self.told.emit(Trouble(title=f"{name} was removed.", text=text, grade="info"))

    def _needed(self, host: HostWritten) -> tuple[str, str] | None:
        """Why a host cannot go, and what to do; None where it can."""
        lab = self._lab or LabWritten()
        if host.role in (Role.CLIENT, Role.SERVER) and len(lab.having(host.role)) == 1:
            role = host.role.value
            text = "Enter another machine in its fields" + (
                ", or add another client first." if host.role is Role.CLIENT else "."
            )
            return f"A lab has a {role}, and {host.name} is the only one.", text
        return None

    def _select(self, name: str, key: str) -> None:
        self._picture.select(name)
        self._inspector.edit(key)

    # menus

    def deeds(self, name: str) -> list[Deed]:
        """What can be done with a host, with the line, or with the lab for an empty name."""
        if name == THE_LINE:
            return [Deed("Apply a line …", self._go_in), Deed("Where it is held", self._go_in)]
        host = self._lab.host(name) if self._lab is not None else None
        if host is not None:
            return self._of_host(host)
        made = []
        for role in self.addable():
            do = partial(self.add, role) if self.possible else None
            made.append(Deed(f"Add a {role.value}", do, "Ins" if role is Role.CLIENT else ""))
        moved = bool(self._picture.moved)
        made += [Deed(), Deed("Reset placement", self._picture.put_back if moved else None)]
        return [*made, Deed("Fit", partial(self._picture.zoom, 0), "Ctrl 0")]

    def addable(self) -> list[Role]:
        """Roles of which the lab may have one more."""
        lab = self._lab or LabWritten()
        return [role for role in _ADDABLE if role is Role.CLIENT or not lab.having(role)]

    def _of_host(self, host: HostWritten) -> list[Deed]:
        name, can = host.name, self.possible
        free = self._free
        made = [Deed("Edit", partial(self._enter, name), "Enter")]
        made.append(Deed("Check this host", free(partial(self.checked.emit, name))))
        if host.role is Role.PROXY:
            made += [
                Deed("Fill the cache", free(self.filled.emit)),
                Deed("Purge the cache …", free(self.purged.emit)),
            ]
        command = ssh_command(host)
        made.append(Deed("Copy the ssh command", partial(_copy, command) if command else None))
        made += [Deed(), Deed("Rename", partial(self.rename, name) if can else None, "F2")]
        if host.role is Role.CLIENT:
            made.append(Deed("Duplicate", partial(self.duplicate, name) if can else None, "Ctrl D"))
        if name in self._picture.moved:
            made.append(Deed("Put back in its place", partial(self._picture.put_back, name)))
        return [*made, Deed("Remove …", partial(self.remove, name) if can else None, "Del")]

    def _free(self, do: Callable[[], object]) -> Callable[[], object] | None:
        """What is done to hosts, where nothing else goes on and the profile is right."""
        return None if self._why_not or self._document.problems else do

    def _enter(self, name: str) -> None:
        self._picture.select(name)
        self._inspector.enter()

    def _go_in(self) -> None:
        self._enter(THE_LINE)

    def _offer(self, name: str, place: QPoint) -> None:
        menu = self._menu = QMenu(self._page)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for deed in self.deeds(name):
            if not deed.name:
                menu.addSeparator()
                continue
            action = menu.addAction(f"{deed.name}\t{deed.keys}" if deed.keys else deed.name)
            action.setEnabled(deed.do is not None)
            if deed.do is not None:
                action.triggered.connect(partial(_done, deed.do))
        menu.popup(place)


def ssh_command(host: HostWritten) -> str:
    """What one types in a terminal to come to a host; empty for a socket, to which no plain ssh leads."""
    ssh = host.text("ssh")
    if not ssh or ssh.startswith("unix:"):
        return ""
    found = re.fullmatch(r"(.+?)(?::(\d+))?", ssh)
    where, port = (found[1], found[2] or "") if found else (ssh, "")
    words = ["ssh"]
    for option, value in (("-i", host.text("key")), ("-J", host.text("jump")), ("-p", port)):
        words += [option, value] if value else []
    return shlex.join([*words, where.replace("[", "").replace("]", "")])


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)


def _done(do: Callable[[], object], _checked: bool = False) -> None:
    do()
