"""A profile that is new on this machine: before its first run, every command that it would run, and where, is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from gui.dialogs import Dialog
from gui.document import Document
from gui.doors import Doors
from gui.jobs import Jobs
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Label, column
from lab import recent
from lab.profile import Profile

_CHROME = 250
"""Of the window's height, what head, foot and margins take."""


class StrangerDialog(Dialog):
    """Accepted by *Run it* alone; Esc and Enter leave everything as it is."""

    def __init__(self, look: Look, name: str, text: str, window: QWidget) -> None:
        super().__init__(
            look,
            window,
            f"Run {name}, which is new on this machine?",
            "This is every command that it would run, and where. Nothing was run so far.",
            grade=marks.WARN,
        )
        self.setFixedWidth(min(look.px(820), window.width() - 24))
        box = QFrame()
        box.setObjectName("facts")
        self.text = QPlainTextEdit(text)
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setFont(look.font(12, mono=True))
        self.text.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.text.setAccessibleName("Every command that it would run, by host")
        self.text.setFixedHeight(max(180, min(look.px(440), window.height() - _CHROME)))
        column(box, self.text, margins=(12, 8, 6, 8))
        self.body.addWidget(box)
        said = "Passwords are asked for by BranchLab alone, and stand in no command."
        self.body.addWidget(Label(look, said, 12, 400, "text2", wrap=True))
        self.refuse = self.button("Do not")
        self.run = self.button("Run it")
        self.refuse.setDefault(True)
        self.refuse.clicked.connect(self.reject)
        self.run.clicked.connect(self.accept)
        self.refuse.setFocus()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The text that is shown, and what is done once a person said yes, or no."""

    text: str
    go: Callable[[], None]
    left: Callable[[], None]


class Strangers(QObject):
    """Follows a document: whether what is open came from somebody else, and was not agreed to yet.

    A profile that was begun here is none; what its user saves, or agreed to once, is known from then on, whatever
    its comments. Signals: `crashed(object)` why its commands could not be told.
    """

    crashed = Signal(object)

    def __init__(self, look: Look, doors: Doors, document: Document, window: QWidget) -> None:
        super().__init__(window)
        self._look, self._doors, self._document, self._window = look, doors, document, window
        self._strange = False
        self._wanted: _Wanted | None = None
        self._jobs = Jobs(self)
        self._jobs.failed.connect(self._failed)
        document.opened.connect(self._opened)
        document.saved.connect(self._saved)

    @property
    def strange(self) -> bool:
        """True if the profile that is open is to be shown before it is run."""
        return self._strange

    def before(self, go: Callable[[], None], left: Callable[[], None] = lambda: None) -> None:
        """Call `go` at once where the profile is known, else once a person agreed; `left` if nobody did.

        To be called before anything of a profile is run on its hosts. One that BranchLab itself made is known.
        """
        profile = self._document.profile
        if not self._strange or profile is None or self._doors.own(profile.lab):
            go()
            return
        if self._wanted is None:  # else it is asked already
            self._wanted = _Wanted(self._text, go, left)
            self._jobs.do(told(profile), self._ask)

    @property
    def _text(self) -> str:
        return self._document.draft.text if self._document.draft is not None else ""

    def _ask(self, said: str) -> None:
        path = self._document.path
        dialog = StrangerDialog(self._look, path.name if path else "this profile", said, self._window)
        dialog.accepted.connect(self._agreed)
        dialog.rejected.connect(self._left)
        dialog.open()

    def _agreed(self) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            return
        recent.agree(wanted.text)
        if self._text == wanted.text:  # else another one came meanwhile, which nobody was shown
            self._strange = False
            wanted.go()
        else:
            wanted.left()

    def _left(self) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            wanted.left()

    def _failed(self, error: BaseException) -> None:
        self._wanted = None
        self.crashed.emit(error)

    def _opened(self) -> None:
        draft = self._document.draft
        self._strange = draft is not None and draft.path is not None and not recent.familiar(draft.text)

    def _saved(self) -> None:
        draft = self._document.draft
        if draft is not None and not self._strange:
            recent.agree(draft.text)


def told(profile: Profile) -> Iterator[str]:
    """Every command of every experiment of a profile, by host, as plain text. No host is asked."""
    from lab import machines, store

    drivers = store.data_folder() / "vcs"
    hosts = {host.name: f"{host.name} ({host.role.value}, {host.ssh})" for host in profile.lab.hosts}
    parts = [f"Profile {profile.path}, lab “{profile.lab.name}”"]
    parts += [_hops(profile)]
    for experiment in profile.experiments:
        parts.append(f"EXPERIMENT “{experiment.name}”")
        for host, commands in machines.commands(profile.lab, experiment, drivers).items():
            parts.append("\n".join([f"On {hosts.get(host, host)}:", *(f"    {one}" for one in commands)]))
        parts.append(
            machines.changes(profile.lab, experiment, "", drivers).partition("## Commands")[0].strip()
        )
    if not profile.experiments:
        parts.append("It has no experiment, and runs nothing by itself.")
    yield plain("\n\n".join(part for part in parts if part))


def plain(text: str) -> str:
    """The text with every sign in it seen: one that is not drawn, or turns others round, by its number."""
    return "".join(one if one.isprintable() or one == "\n" else f"\\u{ord(one):04x}" for one in text)


def _hops(profile: Profile) -> str:
    """By way of which hosts SSH would go, and with which keys, where the profile says so."""
    lines = [f"    {host.name}: by way of {host.jump}" for host in profile.lab.hosts if host.jump]
    lines += [f"    {host.name}: with the key {host.key}" for host in profile.lab.hosts if host.key]
    return "\n".join(["SSH goes:", *lines]) if lines else ""
