"""What is known of the selected host or the line; with nothing selected a list of them, for keys and readers."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget

from gui.lab.facts import ROLE_ICONS, ROLE_NAMES, HostShown, Shown
from gui.lab.picture import THE_LINE
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Icon, Label, Said, column, emptied, row, rule

WIDTH = 312


class Inspector(Card):
    """Read-only for now. Signal `chosen(object)`: a name, `THE_LINE` or an empty text."""

    chosen = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__(margins=(16, 14, 6, 12))
        self._look = look
        self._shown, self._selected = Shown(), ""
        self.setFixedWidth(WIDTH)
        self.setAccessibleName("Inspector")
        body = QWidget()
        body.setObjectName("scrolled")
        self._body = column(body, margins=(0, 0, 10, 0), spacing=0)
        scroll = QScrollArea()
        scroll.setWidget(body)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.column.addWidget(scroll)
        self._names: list[tuple[Button, str]] = []

    def show_lab(self, shown: Shown) -> None:
        """Hosts and line as known now."""
        if shown != self._shown:
            self._shown = shown
            self._fill()

    def select(self, name: str) -> None:
        """Show one, or the list for an empty text."""
        if name != self._selected:
            self._selected = name
            self._fill()

    def _fill(self) -> None:
        emptied(self._body)
        self._names.clear()
        host = next((host for host in self._shown.hosts if host.name == self._selected), None)
        if self._selected == THE_LINE:
            self._line()
        elif host is not None:
            self._host(host)
        else:
            self._list()
        self._body.addStretch(1)

    def _list(self) -> None:
        look = self._look
        self._body.addWidget(Label(look, "Hosts and line", 15, 600))
        self._body.addSpacing(8)
        if not self._shown.hosts:
            text = "No lab is open. Make hosts on this machine from the start page, or open a profile."
            self._body.addWidget(Label(look, text, 13, 400, "text2", wrap=True))
            return
        for host in self._shown.hosts:
            self._entry(
                host.name, host.name, ROLE_NAMES[host.role], ROLE_ICONS[host.role], host.sign, host.word
            )
        line = self._shown.line
        self._entry(
            THE_LINE, "The line", "one for all office hosts", "arrows-left-right", line.sign, line.word
        )

    def _entry(self, key: str, name: str, about: str, icon: str, sign: str, word: str) -> None:
        look = self._look
        button = Button(look, name, "link", height=20)
        button.setFont(look.font(13, 600))
        button.setAccessibleName(f"{name}, {about}, {word}")
        button.clicked.connect(self._pressed)
        self._names.append((button, key))
        brief = len(word) <= 16
        words = column(
            None, button, Label(look, about if brief else word, 12, 400, "text2", wrap=True), spacing=0
        )
        line = row(None, Icon(look, icon, 18), spacing=10, margins=(0, 7, 0, 7))
        line.addLayout(words, 1)
        said = Said(look, sign, word if brief else "", 12, 400, "text2")
        said.setToolTip(word)
        line.addWidget(said)
        self._body.addWidget(rule())
        self._body.addLayout(line)

    def _host(self, host: HostShown) -> None:
        remark = ROLE_NAMES[host.role]
        system = dict(host.rows).get("System")
        self._head(ROLE_ICONS[host.role], host.name, f"{remark}, {system}" if system else remark)
        self._body.addWidget(Said(self._look, host.sign, host.word, 13, 500, "text"))
        self._body.addSpacing(10)
        self._rows(host.rows)
        if not any(name == "System" for name, _ in host.rows):
            text = "More is known once a run has spoken to this host."
            self._body.addSpacing(8)
            self._body.addWidget(Label(self._look, text, 12, 400, "text3", wrap=True))

    def _line(self) -> None:
        line = self._shown.line
        self._head("arrows-left-right", "The line", "one for all office hosts, both ways")
        self._body.addWidget(Said(self._look, line.sign, line.word, 13, 500, "text"))
        self._body.addSpacing(10)
        self._rows(line.rows)

    def _head(self, icon: str, name: str, about: str) -> None:
        look = self._look
        square = QFrame()
        square.setObjectName("sunken")
        square.setFixedSize(36, 36)
        row(square, Icon(look, icon, 18, "text"), margins=(9, 9, 9, 9))
        about_label = Label(look, about, 12, 400, "text2", wrap=True)
        line = row(None, square, spacing=12)
        line.addLayout(column(None, Label(look, name, 15, 600), about_label, spacing=1), 1)
        back = Button(look, "All", "flat", height=28)
        back.setToolTip("Back to the list (Esc)")
        back.setAccessibleName("Back to the list of hosts and line")
        back.clicked.connect(self._back)
        line.addWidget(back)
        self._body.addLayout(line)
        self._body.addSpacing(12)
        self._body.addWidget(rule())
        self._body.addSpacing(10)

    def _rows(self, rows: tuple[tuple[str, str], ...]) -> None:
        for number, (name, value) in enumerate(rows):
            if number:
                self._body.addWidget(rule())
            label = Label(self._look, value, 12, 400, "text", wrap=True)
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
            line = row(None, Label(self._look, name, 12, 400, "text2"), spacing=10, margins=(0, 5, 0, 5))
            line.addWidget(label, 1)
            self._body.addLayout(line)

    def _pressed(self) -> None:
        for button, key in self._names:
            if button is self.sender():
                self.chosen.emit(key)
                return

    def _back(self) -> None:
        self.chosen.emit("")
