"""One step of the wizard that enters a host, or several clients one after another."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QWidget

from gui.new_lab.candidate import Candidate
from gui.new_lab.host_form import Field, HostForm
from gui.theme import icons, marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Check, Choice, Label, column, emptied, row
from lab.model import Role
from lab.new_lab import FOLDERS, KINDS, PORTS, Caching

_UNDER = "Any name that ssh would take. BranchLab tests it as you type, and changes nothing on the host."
_IN_A_ROW = 3
_TITLES = {
    Role.SERVER: "Where is the server?",
    Role.PROXY: "Where is the proxy?",
    Role.ROUTER: "Where is the router?",
    Role.CLIENT: "Where are the clients?",
}
_PROXIES = (
    ("BranchLab’s own, while a run goes on", ""),
    ("Apache that runs there", "apache-disk"),
    ("Squid that runs there", "squid"),
    ("nginx that runs there", "nginx-proxy-cache"),
    ("One that keeps a folder of files", "folder"),
)


class HostPage(QScrollArea):
    """Title, form, and what else has to be known of a host of this role.

    Signals: `typed()` something beside the form was entered; `picked(object)` another client is to be shown;
    `added()` one more client; `removed()` the one that is shown goes.
    """

    typed = Signal()
    picked = Signal(object)
    added = Signal()
    removed = Signal()

    def __init__(self, look: Look, role: Role) -> None:
        super().__init__()
        self._look, self._role = look, role
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside = QWidget()
        inside.setObjectName("scrolled")
        self.form = HostForm(look, role)
        layout = column(inside, Label(look, _TITLES[role], 16, 600), spacing=8, margins=(2, 0, 10, 4))
        layout.addWidget(Label(look, _UNDER, 13, 400, "text2", wrap=True))
        layout.addSpacing(4)
        self.clients = QWidget()
        self._clients_grid = QGridLayout(self.clients)
        self._clients_grid.setContentsMargins(0, 0, 0, 0)
        self._clients_grid.setSpacing(4)
        self._clients_grid.setColumnStretch(_IN_A_ROW, 1)
        self.buttons: list[Button] = []
        self.add = Button(look, "Another client", "flat", "plus", height=28)
        self.remove = Button(look, "Take this client out", "flat", "x", height=28)
        if role is Role.CLIENT:
            layout.addWidget(self.clients)
            layout.addLayout(row(None, self.add, self.remove, -1, spacing=4))
            self.add.clicked.connect(self.added)
            self.remove.clicked.connect(self.removed)
        layout.addWidget(self.form)
        self.repository = Field(
            look, "Repository (left empty: BranchLab makes one for each run)", "http://…/svn/project/trunk"
        )
        if role is Role.SERVER:
            layout.addWidget(self.repository)
            self.repository.typed.connect(lambda text: self.typed.emit())
        self.router = Check(look, "A router of ours is between office and server, and is to hold the line")
        if role is Role.SERVER:
            layout.addWidget(self.router)
            self.router.toggled.connect(lambda on: self.typed.emit())
        self.cache = CacheForm(look)
        if role is Role.PROXY:
            layout.addWidget(self.cache)
            self.cache.typed.connect(self.typed)
            self.cache.unfolded.connect(self._see)
        layout.addStretch(1)
        self.setWidget(inside)

    def _see(self, part: QWidget) -> None:
        """Bring what unfolded into sight, once it has its place."""
        QTimer.singleShot(0, part, lambda: self.ensureWidgetVisible(part))

    def show_clients(self, clients: Sequence[Candidate], shown: int) -> None:
        """All clients as buttons, the one that is entered now pressed in."""
        if len(clients) != len(self.buttons):
            emptied(self._clients_grid)
            self.buttons = []
            for number in range(len(clients)):
                button = Button(self._look, "", "tab", height=28)
                button.setCheckable(True)
                button.clicked.connect(lambda _=False, number=number: self.picked.emit(number))
                self.buttons.append(button)
                self._clients_grid.addWidget(button, number // _IN_A_ROW, number % _IN_A_ROW)
        signs = {marks.OK: "check-circle", marks.WARN: "warning", marks.TROUBLE: "x-square"}
        for number, (button, client) in enumerate(zip(self.buttons, clients, strict=True)):
            name = client.entry.ssh.strip() or f"client {number + 1}"
            button.setText(name if len(name) <= 18 else name[:17] + "…")
            button.setAccessibleName(f"{name}, {client.said}")
            sign = client.sign
            ink = {marks.OK: "ok", marks.WARN: "warn", marks.TROUBLE: "trouble"}.get(sign, "text3")
            token = self._look.token(ink)
            button.setIcon(icons.icon(signs.get(sign, "circle-dashed"), token, token, 14))
            button.setChecked(number == shown)
        self.remove.setVisible(len(clients) > 1)


class CacheForm(QWidget):
    """Which proxy is used, and where its cache is. Signals: `typed()`; `unfolded(object)` a part of it is shown now."""

    typed = Signal()
    unfolded = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.kind = Choice(look, "Which proxy", look.px(34))
        self.kind.offer([text for text, _ in _PROXIES])
        label = Label(look, "Which proxy", 12, 600, "text2")
        label.setBuddy(self.kind)
        self.folder = Field(look, "Folder of its cache")
        self.url = Field(look, "Address for the clients")
        self._there = QWidget()
        row(self._there, self.folder, self.url, spacing=11)
        layout = column(self, label, self.kind, spacing=5)
        layout.addSpacing(4)
        layout.addWidget(self._there)
        self.kind.currentIndexChanged.connect(self._chosen)
        self.folder.typed.connect(lambda text: self.typed.emit())
        self.url.typed.connect(lambda text: self.typed.emit())
        self._there.hide()

    def caching(self) -> Caching:
        """What is entered."""
        kind = _PROXIES[max(0, self.kind.currentIndex())][1]
        return Caching(
            own=not kind,
            kind=kind or "apache-disk",
            folder=self.folder.line.text(),
            url=self.url.line.text(),
        )

    def propose(self, address: str, tools: Sequence[str]) -> None:
        """What is likely, where nothing was entered: `tools` are the programs that the host has."""
        kind = self.caching().kind
        self.folder.line.setPlaceholderText(FOLDERS.get(kind, "/srv/cache"))
        self.url.line.setPlaceholderText(f"http://{address or 'proxy'}:{PORTS.get(kind, 8080)}")
        there = [KINDS[tool] for tool in tools if tool in KINDS]
        for number, (_, one) in enumerate(_PROXIES):
            known = not tools or not one or one == "folder" or one in there
            self.kind.setItemData(number, None if known else "not found there", Qt.ItemDataRole.ToolTipRole)

    def _chosen(self) -> None:
        self._there.setVisible(not self.caching().own)
        if not self.caching().own:
            self.unfolded.emit(self._there)
        self.typed.emit()
