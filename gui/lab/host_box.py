"""The fields of one host beside the picture: each edit a step of the document, what is wrong said at its field."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QWidget

from gui.lab.edits import HostEdits
from gui.lab.facts import ROLE_NAMES
from gui.lab.written import HostWritten, LabWritten, sentence
from gui.report import breakable
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Check, Choice, Label, Said, column
from gui.widgets.fields import Field, labelled
from lab import profile_shape
from lab.errors import BadInput
from lab.model import Role

ROOTS = {"none": "not at all", "sudo": "by sudo", "doas": "by doas", "direct": "already root"}
KINDS = {
    "apache-disk": "Apache disk cache",
    "squid": "Squid",
    "nginx-proxy-cache": "nginx",
    "folder": "a folder of files",
    "command": "commands of your own",
}
PROXIES = ("BranchLab’s own, while a run goes on", "the one that runs there")
_LONG = 26
"""Longer texts have no room in a field; their tip has them whole."""
_FOLDED = ("jump", "key", "host_key")


class HostBox(QWidget):
    """Edits the host that is shown. What was typed and is wrong stays with its host until it is right or taken back."""

    def __init__(self, look: Look, edits: HostEdits) -> None:
        super().__init__()
        self._look, self._edits = look, edits
        self._host: HostWritten | None = None
        self._lab = LabWritten()
        self._roles: list[Role] = []
        self._typed: dict[tuple[str, str], str] = {}
        self.fields: dict[str, Field] = {}
        self._verdict = Said(look, "", "", 12, 400, "trouble")
        self._verdict.label.setWordWrap(True)
        self._why = Label(look, "", 12, 400, "text2", wrap=True)
        self._column = column(self, self._verdict, spacing=9)
        self._build()

    # building

    def _build(self) -> None:
        look = self._look
        self._field("name", "Name", self._read_name)
        self.role = self._choice("Role")
        self._field("ssh", "SSH name", self._must("ssh"))
        self._field("address", "Address in the lab")
        self._field("address6", "IPv6 address in the lab")
        self.proxy = self._choice("Which proxy", PROXIES)
        self._field("url", "Address the clients use")
        self.kind = self._choice("Kind of cache", KINDS.values())
        self._field("cache.folder", "Cache folder")
        self.owns = Check(look, "Everything in this folder may be purged")
        self._column.addWidget(self.owns)
        self._field("cache.list", "Command that lists the objects", self._command)
        self._field("cache.purge", "Command that purges", self._command)
        self._cache_wrong = Said(look, "", "", 12, 400, "trouble")
        self._cache_wrong.label.setWordWrap(True)
        self._column.addWidget(self._cache_wrong)
        self._field("user", "User of the proxy")
        self._field("services", "Folder for services while a run goes on")
        self.root = self._choice("Root on this host", ROOTS.values())
        self.unfold = Button(look, "Jump host, keys", "link", "caret-down", height=20)
        self.unfold.setCheckable(True)
        self._column.addWidget(self.unfold, 0, Qt.AlignmentFlag.AlignLeft)
        self._field("jump", "Jump host")
        self._field("key", "Key file")
        self._field("host_key", "Host key, as in known_hosts")
        self._field("delay", "Where packets are held back without netem")
        self._column.addWidget(self._why)
        self._why.hide()
        self.fields["ssh"].entry.setPlaceholderText("admin@server.example.com:22")
        self.fields["address"].entry.setPlaceholderText("none")
        self.fields["address6"].entry.setPlaceholderText("none")
        self.role.activated.connect(self._give_role)
        self.proxy.activated.connect(self._give_proxy)
        self.kind.activated.connect(self._give_kind)
        self.root.activated.connect(self._give_root)
        self.owns.clicked.connect(self._give_owns)
        self.unfold.toggled.connect(self._unfolded)

    def _field(self, key: str, name: str, read: Callable[[str], object] | None = None) -> None:
        field = self.fields[key] = Field(self._look, name, read or self._may(key))
        field.given.connect(lambda value: self._give(key, str(value)))
        self._column.addWidget(field)

    def _choice(self, name: str, texts: Iterable[str] = ()) -> Choice:
        choice = StillChoice(self._look, name)
        choice.offer(list(texts))
        choice.setMinimumWidth(120)
        holder = QWidget()
        holder.setLayout(labelled(self._look, name, choice))
        self._column.addWidget(holder)
        return choice

    # showing

    @property
    def shown(self) -> str:
        """The name of the host that is shown."""
        return self._host.name if self._host is not None else ""

    def show_host(self, host: HostWritten, lab: LabWritten, why_not: str) -> None:
        """This host of the lab as it is written; `why_not`: why nothing can be edited now."""
        other = host.name != self.shown
        if other:
            self._keep_typed()
        self._host, self._lab = host, lab
        for key, field in self.fields.items():
            self._show_field(key, field, host, other)
        self._show_choices(host)
        self._show_parts(host)
        told = host.wrong.get("", "") or host.wrong.get("role", "") or host.wrong.get("root", "")
        self._say(self._verdict, told)
        self._say(self._cache_wrong, host.wrong.get("cache", "") or host.wrong.get("cache.owns", ""))
        self._hold(why_not)

    def forget(self) -> None:
        """Another profile is open: what was typed belongs to none of its hosts."""
        self._typed.clear()
        self._host = None

    def _keep_typed(self) -> None:
        for key, field in self.fields.items():
            if self._host is not None and field.untaken is not None:
                self._typed[self._host.name, key] = field.untaken

    def _show_field(self, key: str, field: Field, host: HostWritten, other: bool) -> None:
        text = host.name if key == "name" else host.text(key)
        field.entry.setToolTip(text if len(text) > _LONG else "")
        if other:
            field.entry.hold(text)
            field.say("", "")
            if (typed := self._typed.pop((host.name, key), None)) is not None:
                field.retype(typed)
                return
        elif field.untaken is not None:  # still being typed, or wrong
            return
        else:
            field.hold(text)
        wrong, doubt = host.wrong.get(key, ""), self._doubt(key, host)
        if wrong or doubt:
            field.say(marks.TROUBLE if wrong else marks.WARN, breakable(wrong or doubt))

    def _doubt(self, key: str, host: HostWritten) -> str:
        if key == "ssh":
            same = [
                one.name for one in self._lab.hosts if one is not host and one.text("ssh") == host.text("ssh")
            ]
            if same:
                return f"{same[0]} has the same SSH name: a lab’s hosts are machines of their own."
        return ""

    def _show_choices(self, host: HostWritten) -> None:
        roles, self._roles = self._roles, self._possible(host)
        if roles != self._roles:
            self.role.offer([ROLE_NAMES[role] for role in self._roles])
        self.role.setCurrentIndex(self._roles.index(host.role))
        self.role.setEnabled(len(self._roles) > 1)
        self.role.setToolTip("" if len(self._roles) > 1 else self._only(host))
        self.root.setCurrentIndex(list(ROOTS).index(host.root) if host.root in ROOTS else 0)
        self.proxy.setCurrentIndex(0 if host.text("services") else 1)
        kind = host.text("cache.kind")
        self.kind.setCurrentIndex(list(KINDS).index(kind) if kind in KINDS else -1)
        self.owns.setChecked(host.owns)

    def _possible(self, host: HostWritten) -> list[Role]:
        """Its own role, and those that it could have too."""
        if host.role is Role.SERVER or (host.role is Role.CLIENT and len(self._lab.having(Role.CLIENT)) == 1):
            return [host.role]
        if host.role is Role.PROXY and self._lab.cached:
            return [host.role]
        free = [role for role in (Role.PROXY, Role.ROUTER) if not self._lab.having(role)]
        return [role for role in Role if role in (host.role, Role.CLIENT, *free)]

    def _only(self, host: HostWritten) -> str:
        if host.role is Role.PROXY:
            return f"The experiment “{self._lab.cached[0]}” has states with this proxy."
        return f"A lab has a {host.role.value}, and this is the only one."

    def _show_parts(self, host: HostWritten) -> None:
        proxy, own = host.role is Role.PROXY, bool(host.text("services"))
        kind = host.text("cache.kind")
        there = {
            "url": proxy,
            "cache.folder": proxy and kind != "command",
            "cache.list": proxy and kind == "command",
            "cache.purge": proxy and kind == "command",
            "user": proxy and not own,
            "services": host.role is Role.SERVER or (proxy and own),
            "delay": False,
            **dict.fromkeys(_FOLDED, self.unfold.isChecked()),
        }
        for key, field in self.fields.items():
            field.setVisible(there.get(key, True) or bool(host.text(key)) or key in host.wrong)
        for choice in (self.proxy, self.kind):
            choice.parentWidget().setVisible(proxy)
        self.owns.setVisible(proxy and (kind == "folder" or host.owns))

    def _say(self, said: Said, text: str) -> None:
        said.say(marks.TROUBLE if text else "", breakable(text))
        said.setVisible(bool(text))

    def _hold(self, why_not: str) -> None:
        for field in self.fields.values():
            field.entry.setReadOnly(bool(why_not))
        for choice in (self.proxy, self.kind, self.root, self.owns):
            choice.setEnabled(not why_not)
        self.role.setEnabled(not why_not and len(self._roles) > 1)
        self._why.say(why_not)
        self._why.setVisible(bool(why_not))

    def _unfolded(self, on: bool) -> None:
        self.unfold.rename(self.unfold.word, "caret-up" if on else "caret-down")
        if self._host is not None:
            self._show_parts(self._host)

    # reading what is typed

    def _read_name(self, text: str) -> str:
        text = text.strip()
        if trouble := profile_shape.host_name_trouble(text):
            raise BadInput(sentence(trouble))
        if any(one.name == text for one in self._lab.hosts if one is not self._host):
            raise BadInput(f"There is another host {text}: write another name.")
        return text

    def _must(self, key: str) -> Callable[[str], str]:
        def read(text: str) -> str:
            return _shaped(key, text.strip())

        return read

    def _may(self, key: str) -> Callable[[str], str]:
        def read(text: str) -> str:
            return _shaped(key, text.strip()) if text.strip() else ""

        return read

    @staticmethod
    def _command(text: str) -> str:
        try:
            shlex.split(text)
        except ValueError as error:
            raise BadInput(f"A quotation mark is missing: {error}.") from None
        return text.strip()

    # giving

    def _give(self, key: str, value: str) -> None:
        if self._host is None:
            return
        if key != "name":
            self._edits.put(self._host.name, key, value)
        elif value != self._host.name:
            self._edits.rename(self._host.name, value)

    def _give_role(self, number: int) -> None:
        if self._host is not None and self._roles[number] is not self._host.role:
            self._edits.role(self._host.name, self._roles[number])

    def _give_proxy(self, number: int) -> None:
        if self._host is not None and (number == 0) is not bool(self._host.text("services")):
            self._edits.own_proxy(self._host.name, number == 0)

    def _give_kind(self, number: int) -> None:
        kind = list(KINDS)[number]
        if self._host is not None and kind != self._host.text("cache.kind"):
            self._edits.kind(self._host.name, kind)

    def _give_root(self, number: int) -> None:
        way = list(ROOTS)[number]
        if self._host is not None and way != self._host.root:
            self._edits.root(self._host.name, way)

    def _give_owns(self) -> None:
        if self._host is not None:
            self._edits.owns(self._host.name, self.owns.isChecked())


class StillChoice(Choice):
    """A list box over which the wheel scrolls what it stands in, and that is as wide as that."""

    def __init__(self, look: Look, name: str) -> None:
        super().__init__(look, name)
        self.setSizeAdjustPolicy(Choice.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def _shaped(key: str, text: str) -> str:
    try:
        return profile_shape.host_text(key.rpartition(".")[2], text)
    except BadInput as error:
        raise BadInput(sentence(str(error))) from None
