"""The dialog that lists what a run would do to other people's work, before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QScrollArea, QSizePolicy, QWidget

from gui.dialogs import Dialog
from gui.report import breakable
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Check, Label, Sign, column, row, rule
from lab.asking import Question

_DETAIL_LINES, _SCROLL_BAR = 4, 14
_CHROME = 230
"""Of the window's height, what head, foot and margins take."""


class AgreementDialog(Dialog):
    """One box to check per question; accepted only once all are. Esc and Cancel leave everything as it is.

    `deed` is what is asked about, as its button says it: `Run`, `Fill`.
    """

    def __init__(
        self,
        look: Look,
        questions: Sequence[Question],
        window: QWidget,
        *,
        deed: str = "Run",
        icon: str = "play",
    ) -> None:
        super().__init__(
            look,
            window,
            f"{deed} although others would feel it?",
            f"Nothing was changed so far. What you agree to holds for this {deed.split()[0].lower()} only.",
            grade=marks.WARN,
        )
        self.checks: list[Check] = []
        inside = QWidget()
        inside.setObjectName("scrolled")
        listed = column(inside, spacing=16)
        for number, question in enumerate(questions):
            if number:
                listed.addWidget(rule())
            self._add(listed, question)
        self._scroll = Scroll(inside, self.inside, max(160, window.height() - _CHROME))
        self.body.addWidget(self._scroll)
        self.cancel = self.button("Cancel")
        self.run = self.button(deed, "filled", icon)
        self.run.setEnabled(False)
        self.cancel.setDefault(True)
        self.cancel.clicked.connect(self.reject)
        self.run.clicked.connect(self.accept)
        self.checks[0].setFocus(Qt.FocusReason.TabFocusReason)

    def _add(self, listed: object, question: Question) -> None:
        look = self._look
        listed_here = column(None, spacing=8)
        said = column(None, Label(look, question.host, 13, 600), spacing=2)
        said.addWidget(Label(look, breakable(question.text), 13, 400, "text", wrap=True))
        head = row(None, spacing=10)
        head.addWidget(Sign(look, marks.WARN, 15), 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(said, 1)
        listed_here.addLayout(head)
        if question.details:
            listed_here.addWidget(_details(look, question, self.inside))
        check = Check(look, f"Agree: {question.allows}")
        check.setAccessibleDescription(f"{question.host}: {question.text}")
        check.toggled.connect(self._checked)
        self.checks.append(check)
        listed_here.addWidget(check)
        listed.addLayout(listed_here)  # type: ignore[attr-defined]

    def accept(self) -> None:
        """Everything was agreed to."""
        self.answer = True
        super().accept()

    def _checked(self) -> None:
        agreed = all(check.isChecked() for check in self.checks)
        self.run.setEnabled(agreed)
        # Enter does the filled button once there is one to press, and until then the harmless one.
        (self.run if agreed else self.cancel).setDefault(True)


class Scroll(QScrollArea):
    """As high as what is inside, up to `most`; then it scrolls, and follows the focus."""

    def __init__(self, inside: QWidget, width: int, most: int) -> None:
        super().__init__()
        self._inside, self._width, self._most = inside, width, most
        self.setWidget(inside)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        needed_for = self._inside.layout().heightForWidth
        width = self._width if needed_for(self._width) <= self._most else self._width - _SCROLL_BAR
        self._inside.setFixedSize(width, needed_for(width))
        return QSize(self._width, min(self._inside.height(), self._most))


def _details(look: Look, question: Question, width: int) -> QFrame:
    box = QFrame()
    box.setObjectName("facts")
    text = QPlainTextEdit("\n".join(question.details))
    text.setReadOnly(True)
    text.setTabChangesFocus(True)
    text.setFont(look.font(12, mono=True))
    text.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
    text.document().setDocumentMargin(0)
    text.setAccessibleName(f"{question.host}: what exactly, {len(question.details)} lines")
    text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    a_row = (width - 48) // max(1, text.fontMetrics().horizontalAdvance("0"))
    rows = sum(max(1, -(-len(line) // a_row)) for line in question.details)
    text.setFixedHeight(min(_DETAIL_LINES, rows) * text.fontMetrics().lineSpacing() + 2)
    column(box, text, margins=(12, 8, 6, 8))
    return box
