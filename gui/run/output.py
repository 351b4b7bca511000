"""Output of the command under way, with the proofs of the trial; the run's events; and its account."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QButtonGroup, QLineEdit, QPlainTextEdit, QSizePolicy, QWidget

from gui import ordering, words
from gui.run.account import Account, AccountView
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Elided, Label, Said, row
from lab.live import Live

_FIND = 150
_MOST = 8
"""So many proofs find a place."""
OUTPUT, EVENTS, ACCOUNT = range(3)
_NAMES = ("Output", "Events", "Account")
_TEXTS = ("Output of the command under way", "Events of the run")


class OutputCard(Card):
    """Two texts and a table, one at a time; proofs at the right of their names. Where there is no room for one,
    the command under way in one line, or only the proofs.

    Signal `wanted(object)`: True if a text is to be seen although there is no room, False if it is no more.
    """

    wanted = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__(margins=(16, 6, 16, 8))
        self._look, self._live = look, Live()
        self._cramped, self._wanted, self._open = False, False, True
        self.column.setSpacing(4)
        self._tabs = QButtonGroup(self)
        head = row(None, spacing=4)
        for number, name in enumerate(_NAMES):
            button = Button(look, name, "tab", height=26)
            button.setFont(look.font(12, 600))
            button.setCheckable(True)
            button.setChecked(number == 0)
            self._tabs.addButton(button, number)
            head.addWidget(button)
        head.addSpacing(10)
        self._about = Label(look, "", 11, 400, "text3")
        self._proofs = QWidget()
        self._said = [Said(look, "", "", 11, 400, "text2") for _ in range(_MOST)]
        row(self._proofs, *self._said, -1, spacing=16)
        head.addWidget(self._about)
        head.addSpacing(6)
        head.addWidget(self._proofs, 1)
        self.search = QLineEdit()
        self.search.setFont(look.font(12))
        self.search.setFixedSize(_FIND, 24)
        self.search.setPlaceholderText("Only with the words")
        self.search.setAccessibleName("Show only events and changes with these words")
        self.search.textChanged.connect(self._find)
        self.search.hide()
        head.addWidget(self.search)
        self.column.addLayout(head)
        self._text = QPlainTextEdit()
        self._text.setReadOnly(True)
        self._text.setFont(look.font(12, mono=True))
        self._text.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        self._command = Elided(look, "", 12, 400, "text2")
        self._command.setFont(look.font(12, mono=True))
        self._command.setAccessibleName("Command under way")
        self._text.setMaximumBlockCount(300)
        self._text.setUndoRedoEnabled(False)
        self._text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._text.document().setDocumentMargin(0)
        self._text.setAccessibleName(_TEXTS[OUTPUT])
        self._account = Account(look)
        self.account = AccountView(look, self._account)
        self.account.hide()
        self.column.addWidget(self._text, 1)
        self.column.addWidget(self.account, 1)
        self.column.addWidget(self._command)
        self._tabs.idClicked.connect(self._chosen)
        self._seen: tuple[object, ...] = ()
        self._number = 0
        self._proved: tuple[object, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def begin(self, live: Live) -> None:
        """Another run."""
        self._live, self._seen, self._proved = live, (), ()
        self._text.clear()
        for said in self._said:
            said.hide()
        self._about.say("")
        self._command.say("")

    def use_room(self, *, text: bool, line: bool, cramped: bool) -> None:
        """Show the text, or the command in one line, or neither; `cramped`: a text takes what others need."""
        self._cramped, self._open = cramped, text
        self._show_chosen()
        self._command.setVisible(line and not text)

    def redraw(self) -> None:
        """Show what is new."""
        self._show_proofs()
        if self._live.command:
            self._command.say(f"$ {self._live.command}")
        if self._text.isVisible():
            self._show_text()
        elif self.account.isVisible():
            self._show_account()

    def _show_chosen(self) -> None:
        self._text.setVisible(self._open and self._number != ACCOUNT)
        self.account.setVisible(self._open and self._number == ACCOUNT)
        self.search.setVisible(self._open and self._number != OUTPUT)

    def _show_account(self) -> None:
        bar = self.account.verticalScrollBar()
        at_end = bar.value() >= bar.maximum()
        if self._account.show_run(self._live) and at_end and self._account.newest_last:
            self.account.scrollToBottom()
        self._about.say(self._account.told)

    def _find(self, text: str) -> None:
        self._account.want(text)
        self._seen = ()
        self.redraw()

    def _chosen(self, number: int) -> None:
        again = number == self._number
        self._number = number
        if self._cramped:  # a press opens the text over the matrix, the same one again closes it
            self._wanted = not (self._wanted and again)
            self.wanted.emit(self._wanted)
        if number != ACCOUNT:
            self._text.setAccessibleName(_TEXTS[number])
        self._show_chosen()
        self._seen, self._proved = (), ()
        self.redraw()

    def _show_text(self) -> None:
        live = self._live
        if self._tabs.checkedId() == 0:
            last = live.output[-1] if live.output else None
            seen: tuple[object, ...] = (0, len(live.output), last, live.output[0] if live.output else None)
            lines = [line.told for line in live.output]
        else:
            seen = (1, len(live.notes), live.notes[-1] if live.notes else None)
            lines = [note.text for note in live.notes if ordering.has_words([note.text], self.search.text())]
        if seen != self._seen:
            self._seen = seen
            self._text.setPlainText("\n".join(lines))
            bar = self._text.verticalScrollBar()
            bar.setValue(bar.maximum())

    def _show_proofs(self) -> None:
        if self._number == ACCOUNT:
            for said in self._said:
                said.hide()
            return
        last = self._live.last
        if last is None:
            self._about.say("")
        seen: tuple[object, ...] = () if last is None else (last.trial.number, self.width() // 60)
        if last is None or seen == self._proved:
            return
        self._proved = seen
        self._about.say(f"trial {words.count(last.trial.number)}")
        told = [
            (proof.ok, proof.text or proof.name) for proof in sorted(last.proofs, key=lambda proof: proof.ok)
        ]
        if last.standing == "failed":
            told.insert(0, (False, last.reason or "failed"))
        room = self.width() - 260 - (_FIND if self._number != OUTPUT else 0)
        for said, (ok, text) in zip(self._said, told, strict=False):
            said.say(marks.OK if ok else marks.TROUBLE, text if len(text) < 60 else text[:58] + "…")
            said.setToolTip(text)
            room -= said.sizeHint().width() + 16
            said.setVisible(room >= 0)
        for said in self._said[len(told) :]:
            said.hide()
