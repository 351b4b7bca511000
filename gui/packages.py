"""The dialogs of provisioning: what is missing with the exact commands, then what the package managers say."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout, QWidget

from gui.agreement import Scroll
from gui.dialogs import Dialog
from gui.found import Came, Lacking
from gui.lab.checks import Command
from gui.report import breakable
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Label, Said, Sign, column, row, rule

_CHROME = 230
"""Of the window's height, what head, foot and margins take."""
_LONGEST = 50
"""A word of a command longer than this may be broken."""
_MOST_LINES, _BOX_PX, _NAMED = 5000, 220, 8


class PackagesDialog(Dialog):
    """What would be installed where, or taken away: accepted only by its button, never by Enter."""

    def __init__(self, look: Look, found: Sequence[Lacking], window: QWidget, *, remove: bool) -> None:
        title = "Take installed packages away?" if remove else "Install what is missing?"
        under = (
            "BranchLab installed these. What something else needs by now stays, and is named."
            if remove
            else "Nothing was changed so far. These commands are run there as root, exactly as they stand here."
        )
        super().__init__(look, window, title, under, icon="trash" if remove else "stack")
        self.hosts = tuple(one.host for one in found if _goes(one, remove))
        inside = QWidget()
        inside.setObjectName("scrolled")
        listed = column(inside, spacing=14)
        self._signed = any(not _goes(one, remove) for one in found)
        for number, one in enumerate(sorted(found, key=lambda one: not _goes(one, remove))):
            if number:
                listed.addWidget(rule())
            self._add(listed, one, remove)
        self.body.addWidget(Scroll(inside, self.inside, max(160, window.height() - _CHROME)))
        self.cancel = self.button("Cancel" if self.hosts else "Close")
        self.cancel.clicked.connect(self.reject)
        self.cancel.setDefault(True)
        where = self.hosts[0] if len(self.hosts) == 1 else f"{len(self.hosts)} hosts"
        self.go = self.button(f"Take away from {_short(where)}" if remove else f"Install on {_short(where)}")
        self.go.setVisible(bool(self.hosts))
        self.go.use("plain" if remove else "filled")
        self.go.clicked.connect(self.accept)
        self.cancel.setFocus(Qt.FocusReason.TabFocusReason)

    def _add(self, listed: QVBoxLayout, one: Lacking, remove: bool) -> None:
        look = self._look
        sign = marks.TROUBLE if one.trouble else "" if _goes(one, remove) else marks.WARN
        texts = column(None, Label(look, one.host, 13, 600), spacing=6)
        for text in _texts(one, remove):
            texts.addWidget(Label(look, breakable(text, 40), 13, 400, "text", wrap=True))
        if one.command and not remove:
            texts.addWidget(Command(look, one.command, one.host, _LONGEST))
        line = row(None, spacing=10)
        if self._signed:  # also where this one needs none, so that names stand below each other
            line.addWidget(Sign(look, sign, 15), 0, Qt.AlignmentFlag.AlignTop)
        line.addLayout(texts, 1)
        listed.addLayout(line)


class ProgressDialog(Dialog):
    """What the package managers say, and what came on each host. Left only once it is over.

    Signal `stopped()`: no further host is to be begun.
    """

    stopped = Signal()

    def __init__(self, look: Look, hosts: Sequence[str], window: QWidget, *, remove: bool) -> None:
        super().__init__(
            look,
            window,
            "Taking packages away" if remove else "Installing packages",
            "A package manager that has begun is let finish.",
            icon="trash" if remove else "stack",
        )
        self._hosts, self._remove, self._going, self._closing = tuple(hosts), remove, True, False
        self.said = Said(look, marks.BUSY, "Connecting …", 13, 500, "text")
        self.body.addWidget(self.said)
        self.lines = _box(look)
        box = QFrame()
        box.setObjectName("facts")
        column(box, self.lines, margins=(12, 8, 6, 8))
        self.body.addWidget(box)
        self.results = column(None, spacing=4)
        self.body.addLayout(self.results)
        self.stop = self.button("Stop after this host")
        self.stop.setVisible(len(self._hosts) > 1)
        self.stop.clicked.connect(self._stop)
        self.close_it = self.button("Close", "filled")
        self.close_it.setEnabled(False)
        self.close_it.clicked.connect(self.accept)
        self.lines.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def going(self) -> bool:
        """True until `over`."""
        return self._going

    def at(self, host: str) -> None:
        """This host's turn."""
        if not self._closing:
            self.said.say(marks.BUSY, f"{host} ({self._hosts.index(host) + 1} of {len(self._hosts)}) …")

    def line(self, host: str, text: str) -> None:
        """A line that its package manager printed."""
        self.lines.appendPlainText(f"{host}: {text}")

    def came(self, one: Came) -> None:
        """What came of one host."""
        sign = marks.TROUBLE if one.trouble else marks.OK
        said = one.trouble or _came(one.texts, self._remove)
        label = Label(self._look, breakable(f"{one.host}: {said}", 40), 13, 400, "text", wrap=True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setToolTip("\n".join(one.texts))
        line = row(None, spacing=8)
        line.addWidget(Sign(self._look, sign, 14), 0, Qt.AlignmentFlag.AlignTop)
        line.addWidget(label, 1)
        self.results.addLayout(line)
        self._fit()

    def over(self, text: str, sign: str) -> None:
        """It has ended; the way out is open."""
        self._going = False
        self.title.say("Packages taken away" if self._remove else "Packages installed")
        self.said.say(sign, text)
        self.stop.hide()
        self.close_it.setEnabled(True)
        self.close_it.setDefault(True)
        self.close_it.setFocus(Qt.FocusReason.TabFocusReason)
        self._fit()

    def closing(self) -> None:
        """The window was told to close: it does once this has ended."""
        self._closing = True
        self.said.say(marks.BUSY, "The window closes once this host's package manager has ended …")
        self.stop.setEnabled(False)

    def reject(self) -> None:
        """Esc is harmless: amid it nothing, afterwards the way out."""
        if not self._going:
            super().reject()

    def _stop(self) -> None:
        self.stop.setEnabled(False)
        self.stop.rename("Stopping …")
        self.stopped.emit()

    def _fit(self) -> None:
        self.layout().activate()
        self.setFixedHeight(self.layout().totalHeightForWidth(self.width()))


def _goes(one: Lacking, remove: bool) -> bool:
    """True where something can be done there by us."""
    if remove:
        return bool(one.ours)
    return bool(one.needs and one.command) and not (one.by_hand or one.unknown or one.trouble)


def _texts(one: Lacking, remove: bool) -> list[str]:
    if one.trouble:
        return [one.trouble]
    if remove:
        return [", ".join(one.ours)]
    texts = [f"lacks {', '.join(one.needs)}"]
    if one.unknown:
        texts.append(
            f"No package of this system is known for {', '.join(one.unknown)}. Install it there by hand, "
            "then check again; nothing is installed here."
        )
    if one.by_hand and one.command:
        texts.append(
            "The profile gives no way to become root here. Hand this to whoever administers it, or write "
            f'root = "sudo" under [hosts.{one.host}].'
        )
    return texts


def _came(texts: Sequence[str], remove: bool) -> str:
    if not texts:
        return "nothing to be done"
    shown = ", ".join(texts[:_NAMED])
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return f"{shown}{more}" if remove else f"installed {shown}{more}"


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def _box(look: Look) -> QPlainTextEdit:
    box = QPlainTextEdit()
    box.setReadOnly(True)
    box.setTabChangesFocus(True)
    box.setMaximumBlockCount(_MOST_LINES)
    box.setFont(look.font(12, mono=True))
    box.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
    box.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    box.document().setDocumentMargin(0)
    box.setFixedHeight(_BOX_PX)
    box.setAccessibleName("What the package managers say")
    return box
