"""The five answers: question, number, sentence, and the way to the figure that shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSizePolicy, QWidget

from gui import words
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Label, row
from lab.analysis.findings import Finding
from lab.export import titles

SHORT = {
    1: "Which operations get faster?",
    2: "Which do not use the proxy?",
    3: "How is the traffic shared?",
    4: "What does the line’s rate change?",
    5: "What does the fullness change?",
}
_FIGURES = {
    1: ("Table", "table"),
    2: ("Traffic", "chart-bar-horizontal"),
    3: ("Traffic", "chart-bar-horizontal"),
}
_UNIT = re.compile(r"(?<=\d) (?=%|(?:ms|s|min|h|kB|MB|GB|bytes|kbit|Mbit|Gbit|bit)\b)")
_CHART = ("Chart", "chart-line-up")


class Answers(QWidget):
    """A row of cards. Signal `asked(object)`: the name of a figure, `Table`, `Chart` or `Traffic`."""

    asked = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._cards = [_Answer(look, number) for number in range(1, 6)]
        self._row = row(self, spacing=12)
        for card in self._cards:
            self._row.addWidget(card, 1)
            card.link.clicked.connect(self._pressed)

    def show_answers(self, found: Sequence[Finding]) -> None:
        """The findings of a run."""
        by_question = {finding.question: finding for finding in found}
        for number, card in enumerate(self._cards, 1):
            card.show_answer(by_question.get(number))

    def small(self, small: bool) -> None:
        """Lay out for a small window."""
        self._row.setSpacing(8 if small else 12)

    def _pressed(self) -> None:
        for card in self._cards:
            if card.link is self.sender():
                self.asked.emit(card.figure)


class _Answer(Card):
    def __init__(self, look: Look, question: int) -> None:
        super().__init__(margins=(14, 12, 12, 10))
        self.column.setSpacing(4)
        self.figure, icon = _FIGURES.get(question, _CHART)
        self._asked = Label(look, SHORT[question], 12, 600, "text2", wrap=True)
        self._number = Label(look, "", 26, 600)
        self._text = Label(look, "", 12, 400, "text2", wrap=True)
        self._text.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._text.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.MinimumExpanding)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.link = Button(look, self.figure, "link", icon, height=20)
        self.link.setAccessibleName(f"{SHORT[question]} Show the {self.figure.lower()}")
        self._basis = Button(look, "What it rests on", "link", height=20)
        self._basis.setFont(look.font(12, 500))
        self._basis.setCheckable(True)
        self._basis.clicked.connect(self._fill)
        self._finding: Finding | None = None
        for widget in (self._asked, self._number):
            self.column.addWidget(widget)
        self.column.addWidget(self._text, 1)
        self.column.addLayout(row(None, self.link, -1, self._basis))

    def show_answer(self, finding: Finding | None) -> None:
        self._number.say(finding.headline if finding else "—")
        self._finding = finding
        self._fill()
        if finding:
            self._basis.setVisible(brief(finding.text) != whole(finding.text))
            self._asked.setToolTip(finding.asked)
            self.setAccessibleName(f"{finding.asked} {finding.headline}. {finding.text}")

    def _fill(self) -> None:
        text = self._finding.text if self._finding else ""
        self._text.say(whole(text) if self._basis.isChecked() else brief(text))


def brief(text: str) -> str:
    """The sentences of an answer without what they rest on, which stands in brackets in them."""
    return whole(titles.brief(text))


def whole(text: str) -> str:
    """The text with figures and their units kept on one line."""
    return _UNIT.sub(words.NBSP, text).replace("/s", "/\N{WORD JOINER}s")
