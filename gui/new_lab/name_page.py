"""The last step: the lab's name, its hosts as they stand, and a look at all of them together."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from gui.new_lab.candidate import Candidate
from gui.new_lab.host_form import Field
from gui.report import breakable
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Elided, Label, Said, Sign, column, emptied, row, rule
from lab.profile import Problem
from lab.rig.host_checks import Checked

_MOST = 3
"""So many of a host's troubles are told here; the page Lab tells all."""


class NamePage(QWidget):
    """Signals: `typed()` the name was changed; `checked()` all hosts are to be looked at; `left()` no longer."""

    typed = Signal()
    checked = Signal()
    left = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._found: Sequence[Checked] = ()
        self._busy, self._at = "", ""
        self.name = Field(look, "Name of the lab", "Minsk office")
        self.name.setMaximumWidth(look.px(392))
        self.check = Button(look, "Check the lab", icon="magnifying-glass")
        self.check.clicked.connect(self._pressed)
        self.state = Said(look, "", "", 12, 400, "text2")
        self.state.label.setWordWrap(True)
        inside = QWidget()
        inside.setObjectName("scrolled")
        self._rows = column(inside, spacing=0, margins=(14, 6, 14, 6))
        box = QFrame()
        box.setObjectName("facts")
        scroll = QScrollArea()
        scroll.setWidget(inside)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        column(box, scroll, margins=(1, 1, 1, 1))
        layout = column(self, Label(look, "What is it called?", 16, 600), spacing=10, margins=(2, 0, 2, 0))
        layout.addWidget(self.name)
        layout.addSpacing(2)
        layout.addWidget(box, 1)
        line = row(None, self.check, spacing=12)
        line.addWidget(self.state, 1)
        layout.addLayout(line)
        self.name.typed.connect(lambda text: self.typed.emit())

    def show_lab(
        self, hosts: Sequence[tuple[str, Candidate]], problems: Sequence[Problem], doubts: Sequence[str]
    ) -> None:
        """The hosts by their names in the profile, what keeps it from being complete, and what is doubtful."""
        emptied(self._rows)
        for number, (name, candidate) in enumerate(hosts):
            if number:
                self._rows.addWidget(rule())
            self._rows.addLayout(self._host(name, candidate))
        told = [(marks.TROUBLE, problem.text) for problem in problems]
        told += [(marks.WARN, doubt) for doubt in doubts]
        for sign, text in told[:4]:
            said = Said(self._look, sign, breakable(text), 12, 400, "text")
            said.label.setWordWrap(True)
            self._rows.addSpacing(6)
            self._rows.addWidget(said)
        self._rows.addStretch(1)
        self.check.setEnabled(bool(self._busy) or not problems)

    def say(self, text: str) -> None:
        """What the check is doing; empty at its end."""
        self._busy = text
        self.check.rename("Cancel" if text else "Check the lab", "x" if text else "magnifying-glass")
        if text:
            self.state.say(marks.BUSY, text)
        elif self.state.sign.sign == marks.BUSY:
            self.state.say("", "")

    def found(self, found: Sequence[Checked]) -> None:
        """What a check of all hosts found; an empty one: what is here now was not checked."""
        self._found = found
        if not found:
            if not self._busy:
                text = "Looks at every host, and how they reach each other. Nothing is changed there."
                self.state.say("", text)
            return
        wrong = [one for one in found if not one.ok]
        doubts = [one for one in found if one.ok and one.advice]
        if wrong:
            text = f"{len(wrong)} of {len(found)} are not as a run needs them; the page Lab says what cures each."
            self.state.say(marks.TROUBLE, text)
        else:
            text = "Everything is there that a run needs."
            self.state.say(
                marks.WARN if doubts else marks.OK, text if not doubts else f"{text[:-1]}, with doubts."
            )

    def _pressed(self) -> None:
        (self.left if self._busy else self.checked).emit()

    def _host(self, name: str, candidate: Candidate) -> QWidget:
        look = self._look
        found = [one for one in self._found if one.host == name]
        wrong = [one for one in found if not one.ok] or [one for one in found if one.advice]
        sign = candidate.sign
        said = "ready" if sign == marks.OK else candidate.said
        if found:
            grade = marks.TROUBLE if any(not one.ok for one in found) else marks.WARN if wrong else marks.OK
            sign, said = grade, "checked" if grade == marks.OK else f"{len(wrong)} to look at"
        line = row(None, Sign(look, sign or marks.UNKNOWN, 13), Label(look, name, 13, 600), spacing=8)
        where = Elided(look, "", 12, 400, "text2")
        where.say(f"{candidate.entry.role.value}, {candidate.entry.written}")
        line.addWidget(where, 3)
        told = Elided(look, "", 12, 400, "text2")
        told.say(said)
        told.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(told, 2)
        whole = column(None, spacing=2, margins=(0, 6, 0, 6))
        whole.addLayout(line)
        for one in wrong[:_MOST]:
            label = Label(look, breakable(one.text), 12, 400, "text2", wrap=True)
            label.setContentsMargins(21, 0, 0, 0)
            whole.addWidget(label)
        return whole
