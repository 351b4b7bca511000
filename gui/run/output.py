"""Output of the command under way, with the proofs of the trial; and the run's events."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QButtonGroup, QPlainTextEdit, QSizePolicy, QWidget

from gui import words
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Label, Said, emptied, row
from lab.events import Proof
from lab.live import Live


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
        self._proofs_row = row(self._proofs, spacing=16)
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
        emptied(self._proofs_row)
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
        emptied(self._proofs_row)
        self._about.say(f"trial {words.count(last.trial.number)}")
        room = self.width() - 260
        if last.standing == "failed":
            self._proofs_row.addWidget(self._said(marks.TROUBLE, last.reason or "failed"))
        for proof in sorted(last.proofs, key=lambda proof: proof.ok):
            said = self._said(marks.OK if proof.ok else marks.TROUBLE, _told(proof))
            room -= said.sizeHint().width() + 16
            if room < 0:
                said.deleteLater()
                break
            self._proofs_row.addWidget(said)
        self._proofs_row.addStretch(1)

    def _said(self, sign: str, text: str) -> Said:
        said = Said(self._look, sign, text if len(text) < 60 else text[:58] + "…", 11, 400, "text2")
        said.setToolTip(text)
        return said


def _told(proof: Proof) -> str:
    return proof.text or proof.name
