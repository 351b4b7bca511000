"""The page *Settings*: how the window looks, where data lives, how long a change on a host may outlive BranchLab."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QIntValidator, QResizeEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QLineEdit, QScrollArea, QWidget

from gui.report import Trouble
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Check, Label, Said, Segments, column, row
from gui.widgets.frame import Head
from lab import settings
from lab.errors import BadInput
from lab.settings import LEAST_LEASE_S, MOST_LEASE_S, Settings

_WIDTH = 720
_THEMES = {"As the system": "system", "Light": "light", "Dark": "dark"}


class SettingsPage(QWidget):
    """Every change is kept at once. Signals: `changed(object)` the `Settings` now; `told(object)` a `Trouble`."""

    changed = Signal(object)
    told = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.settings = Settings()
        self.head = Head(look)
        self.head.title.say("Settings")
        self.theme = Segments(look, list(_THEMES), "Colours")
        self.motion = Check(
            look, "Show that something is at work by a sign that turns; without this, nothing moves by itself"
        )
        self.notify = Check(look, "Tell me when a run has ended and I look elsewhere")
        self.data = Label(look, "", 12, 400, "text", mono=True, wrap=True)
        self.choose = Button(look, "Choose a folder …", icon="folder-open")
        self.reset = Button(look, "Use the usual one", "flat")
        self.lease = QLineEdit()
        self._verdict = Said(look, "", "", 12, 400, "text2")
        self._build(look)
        self.theme.chosen.connect(self._use_theme)
        self.motion.toggled.connect(self._use_motion)
        self.notify.toggled.connect(self._use_notify)
        self.choose.clicked.connect(self._ask_folder)
        self.reset.clicked.connect(lambda: self._keep(data=""))
        self.lease.textEdited.connect(self._judge)
        self.lease.editingFinished.connect(self._use_lease)
        self._show()

    def read(self) -> Settings:
        """Read what is kept, and show it; a file that is wrong is told, and every default holds."""
        try:
            self.settings = settings.load()
        except BadInput as error:
            self.settings = Settings()
            self.told.emit(Trouble(title=str(error), text=error.advice, grade="warn"))
        self._show()
        return self.settings

    def use_theme(self, theme: str) -> None:
        """Keep another theme, as the switch in the top bar does."""
        self._keep(theme=theme)

    def _build(self, look: Look) -> None:
        body = self._body = QWidget()
        body.setObjectName("scrolled")
        cards = column(body, spacing=12, margins=(0, 0, 8, 0))
        for card in (
            self._appearance(look),
            self._ends(look),
            self._folder(look),
            self._safety(look),
        ):
            card.setMaximumWidth(look.px(_WIDTH))
            cards.addWidget(card)
        cards.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidget(body)
        scroll.setWidgetResizable(True)
        scroll.setAccessibleName("Settings")
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        layout = self._column = column(self, self.head, scroll, spacing=12, margins=(20, 14, 20, 16))
        layout.setStretch(1, 1)

    def _appearance(self, look: Look) -> Card:
        card = _card(look, "How it looks")
        card.column.addWidget(Label(look, "Colours", 12, 600))
        card.column.addLayout(row(None, self.theme, -1))
        card.column.addSpacing(4)
        card.column.addWidget(self.motion)
        text = (
            "Sizes follow the system’s font and scale. BranchLab speaks English only, so far; numbers may be typed "
            "with a decimal comma or point."
        )
        card.column.addWidget(Label(look, text, 12, 400, "text2", wrap=True))
        return card

    def _ends(self, look: Look) -> Card:
        card = _card(look, "When a run ends")
        card.column.addWidget(self.notify)
        text = (
            "By a message of the desktop’s own, which brings the window with the results. Nothing is said while "
            "the window has the keyboard."
        )
        card.column.addWidget(Label(look, text, 12, 400, "text2", wrap=True))
        return card

    def _folder(self, look: Look) -> Card:
        card = _card(look, "Where runs and everything else of BranchLab’s are kept")
        card.column.addWidget(self.data)
        self._why = Label(look, "", 12, 400, "text2", wrap=True)
        card.column.addWidget(self._why)
        card.column.addLayout(row(None, self.choose, self.reset, -1))
        return card

    def _safety(self, look: Look) -> Card:
        card = _card(look, "Safety of the hosts")
        label = Label(look, "Lease", 12, 600)
        label.setBuddy(self.lease)
        card.column.addWidget(label)
        self.lease.setFont(look.font(13))
        self.lease.setFixedSize(look.px(72), 32)
        self.lease.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.lease.setValidator(QIntValidator(0, 9999, self))
        self.lease.setAccessibleName("Lease in seconds")
        unit = Label(look, "seconds", 13, 400, "text3")
        card.column.addLayout(row(None, self.lease, unit, self._verdict, -1))
        text = (
            "When BranchLab, this machine or the network to a host is gone, the host itself takes back every change "
            f"once the lease has run out. From {LEAST_LEASE_S} to {MOST_LEASE_S}; 30 is right for nearly every line."
        )
        card.column.addWidget(Label(look, text, 12, 400, "text2", wrap=True))
        return card

    def _show(self) -> None:
        self.head.say(f"Kept in {settings.path()}, as you change them.")
        held = self.settings
        self.theme.choose(next(word for word, theme in _THEMES.items() if theme == held.theme))
        self.motion.setChecked(held.motion)
        self.notify.setChecked(held.notify)
        self.lease.setText(str(held.lease_s))
        self._verdict.say("", "")
        named = os.environ.get("BRANCHLAB_DATA")
        self.data.say(named or held.data or "The system’s usual folder for a program’s data")
        self.choose.setEnabled(not named)
        self.reset.setVisible(bool(held.data) and not named)
        self._why.say(
            "BRANCHLAB_DATA names it, in the environment in which BranchLab was started."
            if named
            else "Another folder holds for new runs; what was measured stays where it is."
        )

    def _keep(self, **given: object) -> None:
        if all(getattr(self.settings, name) == value for name, value in given.items()):
            return
        try:
            held = replace(self.settings, **given)  # type: ignore[arg-type]
            settings.save(held)
        except (ValueError, OSError) as error:
            self.told.emit(Trouble(title=f"Not kept: {error}", grade="warn"))
        else:
            self.settings = held
            self.changed.emit(held)
        self._show()

    def _use_theme(self, word: str) -> None:
        self._keep(theme=_THEMES[word])

    def _use_motion(self, moves: bool) -> None:
        self._keep(motion=moves)

    def _use_notify(self, wanted: bool) -> None:
        self._keep(notify=wanted)

    def _ask_folder(self) -> None:
        dialog = QFileDialog(self, "Where to keep runs", self.settings.data)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda name: self._keep(data=str(Path(name))))
        dialog.open()

    def _judge(self, text: str) -> None:
        right = text.isdigit() and LEAST_LEASE_S <= int(text) <= MOST_LEASE_S
        told = "" if right else f"write {LEAST_LEASE_S} to {MOST_LEASE_S}"
        self._verdict.say("" if right else marks.TROUBLE, told)

    def _use_lease(self) -> None:
        text = self.lease.text()
        self._judge(text)
        if text.isdigit() and LEAST_LEASE_S <= int(text) <= MOST_LEASE_S:
            self._keep(lease_s=int(text))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        small = self.height() < 800 - 80
        self.head.small(small)
        margin = 16 if small else 20
        self._column.setContentsMargins(margin, 10 if small else 14, margin, 16)
        # A scroll area asks nobody how high a text of its width is.
        self._body.setMinimumHeight(self._body.layout().totalHeightForWidth(self._look.px(_WIDTH)))


def _card(look: Look, title: str) -> Card:
    card = Card()
    card.column.addWidget(Label(look, title, 13, 600))
    return card
