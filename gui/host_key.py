"""The dialog that asks whether a host is the one it should be: its key, and a way to compare it."""

from __future__ import annotations

import re

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QWidget

from gui.dialogs import Code, Dialog
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Elided, Label, Said, column, row, rule
from lab.credentials import Offered

_KINDS = {
    "ssh-ed25519": ("ED25519, 256 bit", "ed25519"),
    "ecdsa-sha2-nistp256": ("ECDSA, 256 bit", "ecdsa"),
    "ecdsa-sha2-nistp384": ("ECDSA, 384 bit", "ecdsa"),
    "ecdsa-sha2-nistp521": ("ECDSA, 521 bit", "ecdsa"),
    "ssh-rsa": ("RSA", "rsa"),
}
"""Kinds of keys as SSH names them: for people, and in the name of the host's file (OpenSSH's own names)."""
_SHA256 = re.compile(r"(?:SHA256:|(?<![A-Za-z0-9+/]))([A-Za-z0-9+/]{43})(?![A-Za-z0-9+/])")
_IN_A_ROW = 6


def compared(fingerprint: str, text: str) -> bool | None:
    """True or False for whether the text has this fingerprint or others; None where it has none at all."""
    found = _SHA256.findall(text)
    return fingerprint.removeprefix("SHA256:") in found if found else None


class HostKeyDialog(Dialog):
    """Trust is the filled button only once what was pasted is the same; where it differs there is none."""

    def __init__(self, look: Look, offered: Offered, window: QWidget) -> None:
        super().__init__(
            look,
            window,
            f"Is this really {offered.host}?",
            "BranchLab meets this host for the first time.",
            icon="fingerprint",
        )
        self._offered = offered
        kind, file = _KINDS.get(offered.kind, (offered.kind, offered.kind.removeprefix("ssh-")))
        self.body.addWidget(self._facts(look, kind))
        where = f"At {offered.host} itself, or over a connection that you already trust, run:"
        self.body.addWidget(Label(look, where, 13, wrap=True))
        self.command = Code(look, f"ssh-keygen -lf /etc/ssh/ssh_host_{file}_key.pub", "the command")
        self.body.addWidget(self.command)
        self.body.addSpacing(2)
        self.body.addWidget(Label(look, "Paste what it prints, and BranchLab compares", 12, 600, "text2"))
        self.body.addSpacing(-6)
        self.field = QLineEdit()
        self.field.setFont(look.font(12, mono=True))
        self.field.setFixedHeight(32)
        self.field.setAccessibleName("What ssh-keygen prints on the host")
        self.field.setPlaceholderText("SHA256:…")
        self.body.addWidget(self.field)
        self.verdict = Said(look, "", " ", 13, 600, "text2")
        self.verdict.setFixedHeight(20)
        self.body.addSpacing(-4)
        self.body.addWidget(self.verdict)
        self.refuse = self.button("Do not connect")
        self.trust = self.button(f"Trust {_short(offered.host)}")
        self.refuse.clicked.connect(self.reject)
        self.trust.clicked.connect(self._trust)
        self.field.textChanged.connect(self._compare)
        self._compare("")
        self.field.setFocus(Qt.FocusReason.TabFocusReason)

    def _facts(self, look: Look, kind: str) -> QFrame:
        box = QFrame()
        box.setObjectName("facts")
        layout = column(box, margins=(16, 12, 16, 8), spacing=5)
        for name, value in (("Host", f"{self._offered.host}, {self._offered.target}"), ("Key", kind)):
            label = Label(look, name, 12, 400, "text2")
            label.setFixedWidth(64)
            line = row(None, label)
            line.addWidget(Elided(look, "", 13, 600), 1)
            line.itemAt(1).widget().say(value)  # type: ignore[union-attr]
            layout.addLayout(line)
        layout.addSpacing(6)
        layout.addWidget(rule())
        layout.addSpacing(6)
        layout.addWidget(Groups(look, self._offered.fingerprint))
        self.copy = Button(look, "Copy", "flat", "copy", height=28)
        self.copy.setAccessibleName("Copy the fingerprint")
        self.copy.clicked.connect(self._copy)
        said = Label(look, "Grouped for the eye; copied without gaps.", 12, 400, "text2")
        layout.addLayout(row(None, said, -1, self.copy))
        return box

    def _compare(self, text: str) -> None:
        same = compared(self._offered.fingerprint, text)
        told = {
            True: (marks.OK, "The two are the same.", "ok"),
            False: (marks.TROUBLE, "They differ: what answers is not this host. Do not connect.", "trouble"),
            None: (marks.WARN, "That holds no SHA256 fingerprint.", "warn"),
        }
        sign, said, ink = told[same] if text.strip() else ("", "Not compared yet.", "text2")
        self.verdict.say(sign, said)
        self.verdict.label.ink(ink)
        self.trust.setEnabled(same is not False)
        for button, filled in ((self.trust, same is True), (self.refuse, same is False)):
            button.use("filled" if filled else "plain")
        # Enter never trusts what was not compared.
        (self.trust if same else self.refuse).setDefault(True)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._offered.fingerprint)

    def _trust(self) -> None:
        self.answer = True
        self.accept()


class ChangedKeyDialog(Dialog):
    """A host whose key is another than the known one: both shown; trust only after its name was typed."""

    def __init__(self, look: Look, offered: Offered, window: QWidget) -> None:
        super().__init__(
            look,
            window,
            f"The key of {offered.host} has changed",
            "Another machine may be answering in its place, or the host was set up anew.",
            grade="trouble",
        )
        self._offered = offered
        self.body.addWidget(self._facts(look))
        _, file = _KINDS.get(offered.kind, (offered.kind, offered.kind.removeprefix("ssh-")))
        where = f"At {offered.host} itself, or over a connection that you already trust, this says which is right:"
        self.body.addWidget(Label(look, where, 13, wrap=True))
        self.command = Code(look, f"ssh-keygen -lf /etc/ssh/ssh_host_{file}_key.pub", "the command")
        self.body.addWidget(self.command)
        said = f"To trust the new key, type the host's name: {offered.host}"
        self.body.addWidget(Label(look, said, 12, 600, "text2", wrap=True))
        self.field = QLineEdit()
        self.field.setFixedHeight(32)
        self.field.setAccessibleName(f"The name of the host, {offered.host}")
        self.body.addWidget(self.field)
        self.refuse = self.button("Do not connect", "filled")
        self.trust = self.button(f"Trust {_short(offered.host)}")
        self.refuse.setDefault(True)
        self.trust.setEnabled(False)
        self.refuse.clicked.connect(self.reject)
        self.trust.clicked.connect(self._trust)
        self.field.textChanged.connect(self._typed)
        self.refuse.setFocus(Qt.FocusReason.TabFocusReason)

    def _facts(self, look: Look) -> QFrame:
        box = QFrame()
        box.setObjectName("facts")
        layout = column(box, margins=(16, 12, 16, 12), spacing=5)
        shown = f"{self._offered.kind} {self._offered.fingerprint}"
        for name, keys in (("Known", self._offered.known.split(", ")), ("Shown now", [shown])):
            for key in keys:
                kind, _, print_ = key.rpartition(" ")
                layout.addWidget(Label(look, f"{name}: {_KINDS.get(kind, (kind,))[0]}", 12, 600, "text2"))
                layout.addWidget(Groups(look, print_))
        return box

    def _typed(self, text: str) -> None:
        self.trust.setEnabled(text.strip() == self._offered.host)

    def _trust(self) -> None:
        self.answer = True
        self.accept()


class Groups(QWidget):
    """A fingerprint in groups of four, every other one on a ground of its own."""

    def __init__(self, look: Look, fingerprint: str) -> None:
        super().__init__()
        self._look = look
        self._kind, _, text = fingerprint.rpartition(":")
        self._groups = [text[at : at + 4] for at in range(0, len(text), 4)]
        self.setAccessibleName(f"Fingerprint {fingerprint}")
        rows = 1 + -(-len(self._groups) // _IN_A_ROW)
        self._step = QFontMetrics(look.font(15, mono=True)).height() + 6
        self.setFixedHeight(rows * self._step)

    def sizeHint(self) -> QSize:
        return QSize(300, self.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(look.font(13, mono=True))
        painter.setPen(look.colour("text2"))
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignHCenter
        whole = QRectF(0, 0, self.width(), self._step)
        painter.drawText(whole, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, f"{self._kind}:")
        painter.setFont(look.font(15, 500, mono=True))
        wide = painter.fontMetrics().horizontalAdvance("0000") + 10
        for number, group in enumerate(self._groups):
            line, place = divmod(number, _IN_A_ROW)
            room = painter.fontMetrics().horizontalAdvance(group) + 10
            box = QRectF(place * (wide + 6), (line + 1) * self._step, room, self._step).adjusted(0, 2, 0, -2)
            if number % 2 == 0:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(look.colour("accent_soft"))
                painter.drawRoundedRect(box, 4, 4)
            painter.setPen(look.colour("text"))
            painter.drawText(box, flags, group)


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"
