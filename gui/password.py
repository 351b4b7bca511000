"""The dialog that asks for a password, a passphrase, or what else a host wants to hear."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QWidget

from gui.dialogs import Dialog
from gui.report import breakable
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Check, IconButton, Label, Said, row
from lab.credentials import Remembered

_WORDS = {"Password": "password", "Passphrase": "passphrase"}
"""How the questions of `lab.credentials` begin; any other one is a host's own, and its answer is good once."""
_TITLES = {
    "password": "BranchLab needs a password",
    "passphrase": "BranchLab needs a passphrase",
    "answer": "A host asks for an answer",
}
_ONCE = "Used once, and not kept; never written to a file or a log."
_IN_MEMORY = "kept in memory until BranchLab ends; never written to a file or a log."
_REMEMBER = "Remember in the system keyring"


def is_secret(question: str) -> bool:
    """True if it asks for a password or a passphrase, false for what is good once."""
    return _word(question) in _WORDS.values()


def _word(question: str) -> str:
    return _WORDS.get(question.partition(" of ")[0], "answer")


class PasswordDialog(Dialog):
    """The answer is what was typed, as Remembered where the box is checked; `notice` says what was wrong before.

    `keyring`: whether there is one that could remember it.
    """

    def __init__(
        self, look: Look, question: str, window: QWidget, *, notice: str = "", keyring: bool = False
    ) -> None:
        word = _word(question)
        super().__init__(look, window, _TITLES[word], icon="key")
        asked = question.strip().removesuffix(":")
        self.body.addWidget(Label(look, breakable(asked), 13, wrap=True))
        if notice:
            wrong = Said(look, marks.TROUBLE, breakable(notice), 13, 500, "trouble")
            wrong.label.setWordWrap(True)
            self.body.addWidget(wrong)
        name = Label(look, word.capitalize(), 12, 600, "text2")
        self.field = QLineEdit()
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.setFont(look.font(13))
        self.field.setFixedHeight(32)
        self.field.setMaxLength(4096)
        self.field.setTextMargins(0, 0, 32, 0)
        self.field.setAccessibleName(word.capitalize())
        self.field.setAccessibleDescription(f"{notice} {asked}".strip())
        name.setBuddy(self.field)
        self.shows = IconButton(look, "eye", f"Show the {word}", 16)
        self.shows.setCheckable(True)
        self.shows.toggled.connect(self._show)
        row(self.field, -1, self.shows, margins=(0, 0, 4, 0))
        self._word = word
        self.body.addSpacing(2)
        self.body.addWidget(name)
        self.body.addSpacing(-6)
        self.body.addWidget(self.field)
        self.body.addSpacing(-4)
        self.remember = Check(look, _REMEMBER)
        self.remember.setEnabled(keyring)
        self.remember.setAccessibleDescription(_kept(word, keyring))
        if is_secret(question):
            self.body.addSpacing(2)
            self.body.addWidget(self.remember)
            self.body.addSpacing(-6)
        self.body.addWidget(Label(look, _kept(word, keyring), 12, 400, "text2", wrap=True))
        self.cancel = self.button("Cancel")
        self.give = self.button(f"Use this {word}", "filled")
        self.give.setEnabled(False)
        self.give.setDefault(True)
        self.field.textChanged.connect(self._typed)
        self.cancel.clicked.connect(self.reject)
        self.give.clicked.connect(self._given)
        self.field.setFocus(Qt.FocusReason.TabFocusReason)

    def _typed(self, text: str) -> None:
        self.give.setEnabled(bool(text))

    def _show(self, shown: bool) -> None:
        mode = QLineEdit.EchoMode.Normal if shown else QLineEdit.EchoMode.Password
        self.field.setEchoMode(mode)
        self.shows.use("eye-slash" if shown else "eye", f"{'Hide' if shown else 'Show'} the {self._word}")

    def _given(self) -> None:
        text = self.field.text()
        self.answer = Remembered(text) if self.remember.isChecked() else text
        self.accept()

    def done(self, result: int) -> None:
        """Close, whatever was answered; nothing of the password stays in the field."""
        self.field.clear()
        super().done(result)


class NotRememberedDialog(Dialog):
    """Says that the keyring did not take a secret; there is nothing to choose."""

    def __init__(self, look: Look, what: str, window: QWidget) -> None:
        super().__init__(look, window, "The keyring did not take it", icon="key")
        text = f"{what[0].upper()}{what[1:]} is {_IN_MEMORY} Is the keyring locked?"
        self.body.addWidget(Label(look, breakable(text), 13, wrap=True))
        self.read = self.button("Close", "filled")
        self.read.setDefault(True)
        self.read.clicked.connect(self.accept)
        self.read.setFocus(Qt.FocusReason.TabFocusReason)


def _kept(word: str, keyring: bool) -> str:
    """Where it will be, in plain words."""
    if word == "answer":
        return _ONCE
    if keyring:
        return f"Once it was right. Otherwise {_IN_MEMORY}"
    return f"No system keyring answers on this machine: {_IN_MEMORY}"
