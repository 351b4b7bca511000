"""The dialog that asks how much of a cache is to go: the cut drawn, what stays and what is deleted counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from gui import decimals, words
from gui.dialogs import Dialog
from gui.report import breakable
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Label, Said, Segments, Sign, column, row, rule
from lab import units
from lab.errors import BadInput
from lab.model import ProxyState

if TYPE_CHECKING:
    from lab.hands import Inventory, Kept

SHARES = ("0 %", "10 %", "100 %")
NAMED = 2
_PERCENT = re.compile(r"\s*(\d+(?:[.,]\d{1,3})?)\s*%?\s*")


def percent_of(text: str) -> float:
    """From 0 to 100, of `10`, `10 %`, `37.5` or `37,5`. Raises BadInput."""
    match = _PERCENT.fullmatch(text)
    if match is None or float(match[1].replace(",", ".")) > 100:
        raise BadInput("Write a number from 0 to 100.")
    return 100 * decimals.share(text)


class PurgeDialog(Dialog):
    """The answer is the objects to delete. Esc and *Keep all* leave everything as it is; Enter only redraws the cut.

    `ordered` are the objects in the order in which ever larger cuts take them.
    """

    def __init__(
        self, look: Look, found: Inventory, ordered: Sequence[Kept], seed: int, window: QWidget
    ) -> None:
        super().__init__(
            look,
            window,
            f"Purge the cache of {found.host}",
            "Part of it is deleted, so that the rest is N % full.",
            icon="trash",
            grade=marks.TROUBLE,
        )
        self._found, self._ordered = found, ordered
        self._sizes = [0, *accumulate(one.bytes for one in ordered)]
        self._files = [0, *accumulate(one.files for one in ordered)]
        self._chosen: tuple[Kept, ...] = ()
        self.body.addLayout(self._asked(look))
        self._bar = CutBar(look)
        self.body.addWidget(self._bar)
        self._stay = Label(look, "", 13, 600)
        self._go = Label(look, "", 13, 600, "trouble")
        said = row(None, self._stay, -1, self._go)
        self.body.addLayout(said)
        self.body.addWidget(self._facts(look, seed))
        warning = row(None, spacing=10)
        warning.addWidget(Sign(look, marks.WARN, 15), 0, Qt.AlignmentFlag.AlignTop)
        text = (
            "This cannot be undone. Filling the cache again takes one Get through the proxy, without a limit."
        )
        warning.addWidget(Label(look, text, 12, 400, "text2", wrap=True), 1)
        self.body.addLayout(warning)
        self.keep = self.button("Keep all")
        self.delete = self.button("Delete", "delete", "trash")
        self.delete.setAutoDefault(False)
        self.keep.clicked.connect(self.reject)
        self.delete.clicked.connect(self._delete)
        self.field.textChanged.connect(self._typed)
        self._typed(self.field.text())
        self.field.setFocus(Qt.FocusReason.TabFocusReason)
        self.field.selectAll()

    def _asked(self, look: Look) -> QVBoxLayout:
        self.field = QLineEdit("10")
        self.field.setFont(look.font(13))
        self.field.setFixedSize(96, 32)
        self.field.setMaxLength(8)
        self.field.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.field.setTextMargins(0, 0, 18, 0)
        self.field.setAccessibleName("Take out, in per cent of the objects")
        unit = Label(look, "%", 13, 400, "text3")
        row(self.field, -1, unit, margins=(0, 0, 10, 0))
        name = Label(look, "Take out", 12, 600, "text2")
        name.setBuddy(self.field)
        self.shares = Segments(look, SHARES, "Take out")
        self.shares.chosen.connect(self._share)
        self._verdict = Said(look, "", "", 12, 400, "text2")
        fields = row(None, self.field, self.shares, self._verdict, -1, spacing=12)
        asked = column(None, name, spacing=4)
        asked.addLayout(fields)
        return asked

    def _facts(self, look: Look, seed: int) -> QFrame:
        found, box = self._found, QFrame()
        box.setObjectName("facts")
        listed = column(box, margins=(14, 6, 14, 6), spacing=0)
        self._file_count = Label(look, "", 12, 500)
        named = "\n".join(breakable(one.url) for one in self._ordered[:NAMED])
        others = f"{words.count(found.others)} objects of others stay untouched"
        rows = [
            ("On", Label(look, found.host, 12, 500)),
            ("In", Label(look, breakable(f"{found.folder} and nowhere else"), 12, 500, wrap=True)),
            ("Files", self._file_count),
            ("Found now", Label(look, self._found_now(), 12, 500, wrap=True)),
            ("Others", Label(look, others, 12, 500, wrap=True)),
            ("Chosen by", Label(look, f"seed {seed}, as a run would; the first are", 12, 500)),
            ("", Label(look, named, 11, 400, "text2", wrap=True, mono=True)),
        ]
        for number, (name, value) in enumerate(rows):
            if number and name:
                listed.addWidget(rule())
            line = row(None, spacing=10, margins=(0, 5, 0, 5))
            label = Label(look, name, 12, 400, "text2")
            label.setFixedWidth(look.px(84))
            line.addWidget(label, 0, Qt.AlignmentFlag.AlignTop)
            line.addWidget(value, 1)
            listed.addLayout(line)
        return box

    def _found_now(self) -> str:
        found = self._found
        of = f" of {found.origin}" if found.origin else ""
        return breakable(f"{words.count(len(found.objects))} objects{of}, {units.bytes_text(found.bytes)}")

    def _share(self, word: str) -> None:
        self.field.setText(word.removesuffix(" %"))
        self.field.setFocus(Qt.FocusReason.OtherFocusReason)

    def _typed(self, text: str) -> None:
        self.shares.choose(f"{text.strip().removesuffix('%').strip()} %")
        try:
            percent = percent_of(text)
        except BadInput as error:
            self._verdict.say(marks.TROUBLE, str(error))
            self._chosen = ()
            self._stay.say("")
            self._go.say("")
            self._bar.show_cut(100.0)
            self.delete.setEnabled(False)
            self.delete.rename("Delete", "trash")
            return
        self._verdict.say("", "")
        self._cut(percent)

    def _cut(self, percent: float) -> None:
        count = self._found.count(percent / 100)
        whole, size = len(self._ordered), self._sizes[count]
        self._chosen = tuple(self._ordered[:count])
        left = 100 * (whole - count) / whole if whole else 0.0
        self._bar.show_cut(left)
        stays = f"{words.count(whole - count)} objects stay, {units.bytes_text(self._sizes[-1] - size)}"
        goes = f"{words.count(count)} are deleted, {units.bytes_text(size)}"
        self._stay.say(stays)
        self._go.say(goes)
        self._bar.setAccessibleName(f"{stays}: {left:.1f} % of what is there; {goes}")
        self._file_count.say(words.count(self._files[count]) if self._files[-1] else words.NONE)
        self.delete.rename(f"Delete {words.count(count)} objects", "trash")
        self.delete.setEnabled(count > 0)

    def _delete(self) -> None:
        self.answer = self._chosen
        self.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._typed(self.field.text())  # what Enter does on a button, the button itself has heard
            return
        super().keyPressEvent(event)


class CutBar(QWidget):
    """What stays, in the colour of the state that it becomes; what goes, hatched."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look, self._left = look, 100.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_cut(self, left: float) -> None:
        """So many per cent stay."""
        self._left = left
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, 30)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, box = self._look, QRectF(self.rect()).adjusted(1, 1, -1, -1)
        gap = 3 if 0 < self._left < 100 else 0
        stays = QRectF(box.left(), box.top(), (box.width() - gap) * self._left / 100, box.height())
        if stays.width() > 0:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(look.state(ProxyState(full=round(self._left, 1))).colour))
            painter.drawRoundedRect(stays, 4, 4)
        goes = QRectF(stays.right() + gap, box.top(), box.right() - stays.right() - gap, box.height())
        if goes.width() > 1:
            path = QPainterPath()
            path.addRoundedRect(goes, 4, 4)
            marks.hatch(painter, path, look.colour("trouble"), 7)
            painter.strokePath(path, look.colour("trouble"))
