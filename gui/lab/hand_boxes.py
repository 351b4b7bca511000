"""What the inspector offers to be done by hand: to the proxy's cache, and to the line."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QComboBox, QSizePolicy, QWidget

from gui import decimals, words
from gui.lab.hand import NOTHING, ByHandKnown, CacheKnown
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Choice, Label, Said, StateMark, column, row, rule
from lab import units
from lab.errors import BadInput
from lab.model import Line, ProxyState

HELD_BY_RUN = "Held by the run until it ends."
WAIT = "Wait until what goes on has ended."


class CacheBox(QWidget):
    """How full the cache is, *Fill* and *Purge …*. Signals: `filled()`, `purged()`, `left()` what goes on is to end."""

    filled = Signal()
    purged = Signal()
    left = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._said = Label(look, "", 13, 600)
        self._mark = StateMark(look, None)
        head = row(None, Label(look, "Cache", 13, 600), -1, self._mark, self._said, spacing=8)
        self._bar = _Bar(look)
        self._count = Label(look, "", 12, 400, "text2", wrap=True)
        self.fill = Button(look, "Fill", height=28)
        self.fill.setToolTip(
            "Run Get once through the proxy, with no limit on the line; what it brings in stays"
        )
        self.purge = Button(look, "Purge …", height=28)
        self.purge.setToolTip("Take a part of the repository’s objects out; what would go is shown first")
        self.cancel = Button(look, "Cancel", icon="x", height=28)
        buttons = row(None, spacing=8)
        for button in (self.fill, self.purge, self.cancel):
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            buttons.addWidget(button, 1)
        self._why = Label(look, "", 12, 400, "text2", wrap=True)
        layout = column(self, rule(), margins=(0, 12, 0, 0), spacing=8)
        layout.addLayout(head)
        layout.addWidget(self._bar)
        layout.addWidget(self._count)
        layout.addLayout(buttons)
        layout.addWidget(self._why)
        self.fill.clicked.connect(self.filled)
        self.purge.clicked.connect(self.purged)
        self.cancel.clicked.connect(self.left)
        self.show_known(NOTHING, None, "")

    def show_known(self, known: ByHandKnown, full: float | None, why_not: str) -> None:
        """What is known by hand, how full a run found it (per cent), and why nothing may be done now."""
        cache = known.cache
        percent = cache.full if cache is not None else full
        state = None if percent is None else ProxyState(full=round(min(100.0, max(0.0, percent)), 1))
        self._mark.setVisible(state is not None)
        if state is not None:
            self._mark.show_state(state, (state,))
        self._said.say("not counted yet" if cache is None and state is None else "")
        if state is not None:
            self._said.say(f"{percent:.1f}{words.NBSP}% full")
        self._bar.show_full(percent, state)
        self._bar.setVisible(state is not None)
        self._count.say(sentence(cache))
        self._count.setVisible(bool(self._count.text()))
        going = known.deed in ("fill", "purge")
        self.cancel.setVisible(going)
        for button in (self.fill, self.purge):
            button.setVisible(not going)
            button.setEnabled(not why_not and not known.deed)
        self._why.say(why_not or ("" if going or not known.deed else WAIT))
        self._why.setVisible(bool(self._why.text()))


class LineBox(QWidget):
    """*Apply this line*, and while it is held its lease. Signals: `held(object)` the line, `left()` take it back."""

    held = Signal(object)
    left = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._line: Line | None = None
        self._blocked = False
        self._offered: tuple[str, ...] = ()
        name = self._name = Label(look, "Line", 12, 600, "text2")
        self.field = Choice(look, "Line to apply")
        self.field.setEditable(True)
        self.field.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.field.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.field.setFont(look.font(13))
        self.field.lineEdit().setAccessibleName("Line to apply")
        self.field.lineEdit().setPlaceholderText("64/128 kbit/s 40 ms")
        name.setBuddy(self.field)
        self._verdict = Said(look, "", "", 12, 400, "text2")
        self._verdict.label.setWordWrap(True)
        self.apply = Button(look, "Apply this line", height=28)
        self.back = Button(look, "Take it back", icon="arrow-counter-clockwise", height=28)
        self._lease = Label(look, "", 12, 400, "text2", wrap=True)
        layout = column(self, rule(), margins=(0, 12, 0, 0), spacing=6)
        layout.addWidget(Label(look, "By hand", 13, 600))
        for one in (name, self.field, self._verdict, self.apply, self.back, self._lease):
            layout.addWidget(one)
        self.field.editTextChanged.connect(self._typed)
        self.field.lineEdit().returnPressed.connect(self._apply)
        self.apply.clicked.connect(self._apply)
        self.back.clicked.connect(self.left)
        self._typed("")

    def offer(self, lines: Sequence[Line]) -> None:
        """The lines of the experiment that is chosen; what was typed stays."""
        texts = tuple(units.line_text(line) for line in lines if line.limited or line.delayed)
        if texts != self._offered:
            typed = self.field.currentText() if self.field.currentText() not in self._offered else ""
            self._offered = texts
            self.field.blockSignals(True)
            self.field.clear()
            self.field.addItems(list(texts))
            self.field.blockSignals(False)
            self.field.setEditText(typed or next(iter(texts), ""))
            self._typed(self.field.currentText())

    def show_known(self, known: ByHandKnown, why_not: str) -> None:
        """What is held, how long its lease lasts, and why nothing may be applied now."""
        held, going = known.line, known.deed == "line"
        self._blocked = bool(why_not or known.deed)
        self.field.setEnabled(not self._blocked)
        for one in (self._name, self.field, self._verdict):
            one.setVisible(held is None and (one is not self._verdict or bool(self._verdict.label.text())))
        self.apply.setVisible(not going)
        self.back.setVisible(going)
        self.back.rename("Take it back" if held is not None else "Cancel")
        self.back.setEnabled(held is None or not held.ending)
        if held is None:
            self._lease.say(why_not or (WAIT if known.deed and not going else ""))
        elif held.ending:
            self._lease.say("It is being taken back …")
        else:
            self._lease.say(
                f"Held for as long as this window is open. Its lease has {held.left_s:.0f} s left of {held.lease_s:g},"
                " and is renewed."
            )
        self._lease.setVisible(bool(self._lease.text()))
        self._allow()

    def _typed(self, text: str) -> None:
        self._line = None
        if not text.strip():
            self._verdict.say("", "")
        else:
            try:
                parsed = units.parse_line(decimals.plain(text))
            except BadInput as error:
                self._verdict.say(marks.TROUBLE, f"{error} {error.advice}".strip())
            else:
                self._line = parsed.line if parsed.line.limited or parsed.line.delayed else None
                told = "; ".join(parsed.warnings) or f"= {units.line_text(parsed.line)}"
                if self._line is None:
                    told = "As it is: nothing is applied."
                self._verdict.say(marks.WARN if parsed.warnings else "", told)
        self._verdict.setVisible(bool(self._verdict.label.text()))
        self._allow()

    def _allow(self) -> None:
        self.apply.setEnabled(self._line is not None and not self._blocked)

    def _apply(self) -> None:
        if self._line is not None and not self._blocked:
            self.held.emit(self._line)


class _Bar(QWidget):
    """How full, in the state's colour."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look, self._percent, self._state = look, 0.0, ProxyState(full=0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_full(self, percent: float | None, state: ProxyState | None) -> None:
        """So many per cent; nothing is drawn where it is not known."""
        if percent is not None and state is not None:
            self._percent, self._state = percent, state
            self.setAccessibleName(f"{percent:.1f} % full")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, 9)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shown, box = self._look.state(self._state), QRectF(self.rect())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._look.mixed(shown.colour, 0.2))
        painter.drawRoundedRect(box, 2, 2)
        painter.setBrush(QColor(shown.colour))
        painter.drawRoundedRect(QRectF(0, 0, box.width() * self._percent / 100, box.height()), 2, 2)


def sentence(cache: CacheKnown | None) -> str:
    """`135 of 150 objects, 350.1 of 375.4 kB; 3 of others`."""
    if cache is None:
        return ""
    others = f"; {words.count(cache.others)} of others" if cache.others else ""
    if not cache.listed:
        told = f"{words.count(cache.objects)} objects of the repository, {units.bytes_text(cache.bytes)}"
        return f"{told}{others}. How full that is, a fill tells."
    told = f"{words.count(cache.here)} of {words.count(cache.listed)} objects for {cache.operation}"
    return f"{told}, {units.bytes_text(cache.here_bytes)} of {units.bytes_text(cache.listed_bytes)}{others}"
