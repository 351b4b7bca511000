"""The five answers: question, number, a sentence or two, the way to the figure; and all that is told, on demand."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QSizePolicy, QWidget

from gui import words
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, IconButton, Label, column, emptied, row
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
_MOST = 160
"""So many characters fill the five lines that a card has room for, on the narrowest window."""
_UNIT = re.compile(r"(?<=\d) (?=%|(?:ms|s|min|h|kB|MB|GB|bytes|kbit|Mbit|Gbit|bit)\b)")
_HYPHEN = re.compile(r"(?<=Check)-(?=Out|In)")
_GLUE = "\N{ZERO WIDTH NO-BREAK SPACE}"
"""A word joiner would do the same, but Inter has none, and the font that lends it makes its lines higher."""
_CHART = ("Chart", "chart-line-up")
_READING = 900
"""The widest that running text gets, in px."""


class Answers(QWidget):
    """A row of cards, and below them all that one of them has to tell.

    Signals: `asked(object)` the name of a figure, `Table`, `Chart` or `Traffic`; `unfolded()` there is more to see.
    """

    asked = Signal(object)
    unfolded = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._cards = [_Answer(look, number) for number in range(1, 6)]
        self.whole = _Whole(look)
        self._row = row(None, spacing=12)
        for card in self._cards:
            self._row.addWidget(card, 1)
            card.link.clicked.connect(self._pressed)
            card.all.clicked.connect(self._unfold)
        self._column = column(self, spacing=12)
        self._column.addLayout(self._row)
        self._column.addWidget(self.whole)
        self.whole.close.clicked.connect(self.fold)
        self.whole.hide()

    def show_answers(self, found: Sequence[Finding]) -> None:
        """The findings of a run."""
        by_question = {finding.question: finding for finding in found}
        for number, card in enumerate(self._cards, 1):
            card.show_answer(by_question.get(number))
        open_card = next((card for card in self._cards if card.all.isChecked()), None)
        if open_card is not None and open_card.finding is not None:
            self.whole.show_finding(open_card.finding)
        else:
            self.fold()

    def small(self, small: bool) -> None:
        """Lay out for a small window."""
        self._row.setSpacing(8 if small else 12)
        self._column.setSpacing(8 if small else 12)

    def fold(self) -> None:
        """Only the cards."""
        for card in self._cards:
            card.all.setChecked(False)
        self.whole.hide()

    def _pressed(self) -> None:
        for card in self._cards:
            if card.link is self.sender():
                self.asked.emit(card.figure)

    def _unfold(self) -> None:
        pressed = next(card for card in self._cards if card.all is self.sender())
        for card in self._cards:
            card.all.setChecked(card is pressed and card.all.isChecked())
        if pressed.all.isChecked() and pressed.finding is not None:
            self.whole.show_finding(pressed.finding)
            self.whole.show()
            self.unfolded.emit()
        else:
            self.whole.hide()


class _Answer(Card):
    def __init__(self, look: Look, question: int) -> None:
        super().__init__(margins=(14, 12, 12, 10))
        self.column.setSpacing(4)
        self.figure, icon = _FIGURES.get(question, _CHART)
        self.finding: Finding | None = None
        self._asked = Label(look, SHORT[question], 12, 600, "text2", wrap=True)
        self._number = Label(look, "", 26, 600)
        self._text = Label(look, "", 12, 400, "text2", wrap=True)
        self._text.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._text.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.MinimumExpanding)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.link = Button(look, self.figure, "link", icon, height=20)
        self.link.setAccessibleName(f"{SHORT[question]} Show the {self.figure.lower()}")
        self.all = Button(look, "All of it", "link", height=20)
        self.all.setFont(look.font(12, 500))
        self.all.setCheckable(True)
        self.all.setAccessibleName(f"{SHORT[question]} All of it, with what it rests on")
        for widget in (self._asked, self._number):
            self.column.addWidget(widget)
        self.column.addWidget(self._text, 1)
        self.column.addLayout(row(None, self.link, -1, self.all))

    def show_answer(self, finding: Finding | None) -> None:
        self.finding = finding
        self._number.say(finding.headline if finding else "—")
        self._text.say(first(finding.text) if finding else "")
        if finding:
            told = " ".join(sentence.text for sentence in finding.sentences)
            self.all.setVisible(self._text.text() != whole(told))
            self._asked.setToolTip(finding.asked)
            self.setAccessibleName(f"{finding.asked} {finding.headline}. {finding.text}")


class _Whole(Card):
    """Everything that an answer has to tell: its sentences with what they rest on, then what is told beside."""

    def __init__(self, look: Look) -> None:
        super().__init__(margins=(16, 10, 12, 14))
        self._look = look
        self._title = Label(look, "", 13, 600)
        self.close = IconButton(look, "x", "Fold it up again", 14)
        self.column.addLayout(row(None, self._title, -1, self.close))
        body = QWidget()
        body.setMaximumWidth(look.px(_READING))
        self._sentences = column(body, spacing=6)
        self.column.addWidget(body)

    def show_finding(self, finding: Finding) -> None:
        """This answer."""
        self._title.say(finding.asked)
        self.setAccessibleName(finding.asked)
        emptied(self._sentences)
        for sentence in sorted(finding.sentences, key=lambda one: not one.lead):
            size, ink = (13, "text") if sentence.lead else (12, "text2")
            label = Label(self._look, whole(sentence.text), size, 400, ink, wrap=True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._sentences.addWidget(label)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, super().minimumSizeHint().height())


def first(text: str) -> str:
    """The first sentences of an answer, as many as a card has room for, without what they rest on."""
    return whole(titles.short(text, _MOST))


def brief(text: str) -> str:
    """The sentences of an answer without what they rest on, which stands in brackets in them."""
    return whole(titles.brief(text))


def whole(text: str) -> str:
    """The text with figures and their units, and the names of operations, kept on one line."""
    return _HYPHEN.sub(f"-{_GLUE}", _UNIT.sub(words.NBSP, text)).replace("/s", f"/{_GLUE}s")
