"""Output of the command under way, with the proofs of the trial; and the run's events."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QButtonGroup, QPlainTextEdit, QSizePolicy, QWidget

from gui import words
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Label, Said, row
from lab.live import Live

_MOST = 8
"""So many proofs find a place."""


class OutputCard(Card):
    """Two texts, one at a time; proofs at the right of their names. Closed, only the proofs are left."""

    def __init__(self, look: Look) -> None:
        super().__init__(margins=(16, 6, 16, 8))
        self._look, self._live = look, Live()
        self.column.setSpacing(4)
        self._tabs = QButtonGroup(self)
        head = row(None, spacing=4)
        for number, name in enumerate(("Output", "Events")):
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
        self.column.addLayout(head)
        self._text = QPlainTextEdit()
        self._text.setReadOnly(True)
        self._text.setFont(look.font(12, mono=True))
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._text.setMaximumBlockCount(300)
        self._text.setUndoRedoEnabled(False)
        self._text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._text.document().setDocumentMargin(0)
        self._text.setAccessibleName("Output of the command under way")
        self.column.addWidget(self._text, 1)
        self._tabs.idClicked.connect(self._chosen)
        self._seen: tuple[object, ...] = ()
        self._proved: tuple[object, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def begin(self, live: Live) -> None:
        """Another run."""
        self._live, self._seen, self._proved = live, (), ()
        self._text.clear()
        for said in self._said:
            said.hide()
        self._about.say("")

    def close_text(self, closed: bool) -> None:
        """Leave the proofs alone in a small window."""
        self._text.setVisible(not closed)

    def redraw(self) -> None:
        """Show what is new."""
        self._show_proofs()
        if self._text.isVisible():
            self._show_text()

    def _chosen(self, number: int) -> None:
        self._text.setAccessibleName("Events of the run" if number else "Output of the command under way")
        self._seen = ()
        self.redraw()

    def _show_text(self) -> None:
        live = self._live
        if self._tabs.checkedId() == 0:
            last = live.output[-1] if live.output else None
            seen: tuple[object, ...] = (0, len(live.output), last, live.output[0] if live.output else None)
            lines = ["$ " + line.text if line.stream == "command" else line.text for line in live.output]
        else:
            seen = (1, len(live.notes), len(live.changed), live.notes[-1] if live.notes else None)
            lines = [note.text for note in live.notes]
            lines += [f"{c.host}: {c.what}{' (taken back)' if c.undone else ''}" for c in live.changed]
        if seen != self._seen:
            self._seen = seen
            self._text.setPlainText("\n".join(lines))
            bar = self._text.verticalScrollBar()
            bar.setValue(bar.maximum())

    def _show_proofs(self) -> None:
        last = self._live.last
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
        room = self.width() - 260
        for said, (ok, text) in zip(self._said, told, strict=False):
            said.say(marks.OK if ok else marks.TROUBLE, text if len(text) < 60 else text[:58] + "…")
            said.setToolTip(text)
            room -= said.sizeHint().width() + 16
            said.setVisible(room >= 0)
        for said in self._said[len(told) :]:
            said.hide()
