"""The form for one host: its name for SSH and what goes with it, and beside each step of the test what it found."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLineEdit, QVBoxLayout, QWidget

from gui.new_lab.candidate import Candidate
from gui.report import breakable
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Elided, Label, Said, Sign, column, row, rule
from lab.model import Role
from lab.rig.meeting import ANSWERS, KEY, LOGIN, PROGRAMS, ROOT, STEPS

_PROGRAMS = {
    Role.CLIENT: "Subversion",
    Role.PROXY: "Cache",
    Role.SERVER: "Subversion server",
    Role.ROUTER: "tc and nft",
}
_DEEDS = {"key": "Compare the key …", "password": "Enter it …"}


class Field(QWidget):
    """A line to write in, with its label above and its verdict under it. Signal `typed(object)`: the text."""

    typed = Signal(object)

    def __init__(self, look: Look, name: str, placeholder: str = "", *, right: bool = False) -> None:
        super().__init__()
        label = Label(look, name, 12, 600, "text2")
        self.line = QLineEdit()
        self.line.setFont(look.font(13))
        self.line.setFixedHeight(look.px(34))
        self.line.setPlaceholderText(placeholder)
        self.line.setAccessibleName(name)
        self.line.setMaxLength(500)
        self.line.setAcceptDrops(False)  # a file that is dropped here is meant for the dialog
        if right:
            self.line.setAlignment(Qt.AlignmentFlag.AlignRight)
        label.setBuddy(self.line)
        column(self, label, self.line, spacing=5)
        self.line.textEdited.connect(self.typed.emit)

    def say(self, text: str) -> None:
        """Show a text, and leave the cursor where it is if it is there already."""
        if text != self.line.text():
            self.line.setText(text)


class HostForm(QWidget):
    """Shows one candidate at a time, and what it is told it enters there."""

    def __init__(self, look: Look, role: Role) -> None:
        super().__init__()
        self._candidate: Candidate | None = None
        self.name = Field(look, "SSH name", "a name, or user@address")
        self.user = Field(look, "User", "as in ~/.ssh/config")
        self.port = Field(look, "Port", "22", right=True)
        self.jump = Field(look, "Jump host", "none")
        self.address = Field(look, "Address that the other hosts use", "found by the test")
        self.fields = {
            "ssh": self.name,
            "user": self.user,
            "port": self.port,
            "jump": self.jump,
            "address": self.address,
        }
        self.verdict = Said(look, "", "", 12, 400, "trouble")
        self.verdict.label.setWordWrap(True)
        self.rows = {what: _Row(look, what, role) for what in STEPS}
        self.more = Label(look, "", 12, 400, "text2", wrap=True)
        self.more.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        more = row(None, spacing=11)
        for field, share in ((self.user, 6), (self.port, 3), (self.jump, 5)):
            more.addWidget(field, share)
        self.layout_ = column(self, self.name, spacing=9)
        self.layout_.addLayout(more)
        self.layout_.addWidget(self.verdict)
        self.layout_.addWidget(self._facts())
        self.layout_.addWidget(self.more)
        self.layout_.addWidget(self.address)
        for key, field in self.fields.items():
            field.typed.connect(lambda text, key=key: self._typed(key, text))
        for line in self.rows.values():
            line.asked.connect(self._ask)

    def show_candidate(self, candidate: Candidate) -> None:
        """Another host is entered here from now on."""
        if self._candidate is not None:
            self._candidate.changed.disconnect(self.refresh)
        self._candidate = candidate
        candidate.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show what is entered, and what the test said of it."""
        candidate = self._candidate
        if candidate is None:
            return
        for key, field in self.fields.items():
            field.say(getattr(candidate.entry, key))
        trouble = candidate.entry.trouble
        self.verdict.say(marks.TROUBLE if trouble else "", breakable(trouble))
        self.verdict.setVisible(bool(trouble))
        for what, line in self.rows.items():
            line.show_step(candidate)
            if what == ANSWERS:
                step = candidate.steps.get(what)
                line.rename(f"Answers on port {step.port}" if step is not None and step.port else "Answers")
        self.more.say(breakable(_more(candidate)))
        self.more.setVisible(bool(self.more.text()))

    def _facts(self) -> QFrame:
        box = QFrame()
        box.setObjectName("facts")
        box.setAccessibleName("What the test found")
        layout = QVBoxLayout(box)
        layout.setContentsMargins(14, 4, 14, 4)
        layout.setSpacing(0)
        for number, line in enumerate(self.rows.values()):
            if number:
                layout.addWidget(rule())
            layout.addWidget(line)
        return box

    def _typed(self, key: str, text: object) -> None:
        if self._candidate is not None:
            self._candidate.enter(**{key: str(text)})

    def _ask(self) -> None:
        if self._candidate is not None:
            self._candidate.test(asking=True)


class _Row(QWidget):
    """One step of the test. Signal `asked()`: a person wants to give what it lacks."""

    asked = Signal()

    def __init__(self, look: Look, what: str, role: Role) -> None:
        super().__init__()
        self._what = what
        names = {ANSWERS: "Answers", KEY: "Host key", LOGIN: "Login", PROGRAMS: _PROGRAMS[role], ROOT: "sudo"}
        self.sign = Sign(look, marks.UNKNOWN, 13)
        self.name = Label(look, names[what], 12)
        self.text = Elided(look, "", 12, 400, "text2")
        self.text.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.deed = Button(look, "", "link", height=20)
        self.deed.hide()
        self.deed.clicked.connect(self.asked)
        layout = row(self, self.sign, self.name, margins=(0, 3, 0, 3), spacing=8)
        layout.addWidget(self.text, 1)
        layout.addWidget(self.deed)
        self.setFixedHeight(look.px(27))

    def rename(self, name: str) -> None:
        """Another name of the step."""
        self.name.say(name)

    def show_step(self, candidate: Candidate) -> None:
        """What became of this step."""
        step = candidate.steps.get(self._what)
        if step is None:
            ahead = candidate.busy and self._what == ANSWERS
            self.sign.show_sign(marks.BUSY if ahead else marks.UNKNOWN)
            self._say("in a moment" if ahead else "not asked yet")
            self.deed.hide()
            return
        self.sign.show_sign(step.grade)
        self._say(step.text)
        self.deed.rename(_DEEDS.get(step.wants, "Ask"))
        self.deed.setVisible(bool(step.wants))
        self.setAccessibleDescription(f"{self.name.text()}: {step.text}")

    def _say(self, text: str) -> None:
        self.text.say(text)


def _more(candidate: Candidate) -> str:
    """The whole of the first thing that is wrong, and what to do about it."""
    for grade in (marks.TROUBLE, marks.WARN):
        for step in candidate.steps.values():
            if step.grade == grade and (step.advice or grade == marks.TROUBLE):
                return f"{step.text[:300]}. {step.advice}".replace("..", ".")
    return ""
