"""Fields of the page: a label above, a unit inside, the verdict below; taken with Enter or on leaving."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Label, Sign, column, row
from lab.errors import BadInput

HEIGHT = 32


class Entry(QLineEdit):
    """A line to type in. Signal `left()`: Enter, or the focus went elsewhere; `stepped(int)` Up or Down."""

    left = Signal()
    stepped = Signal(int)

    def __init__(self, look: Look, name: str, unit: str = "", *, mono: bool = False) -> None:
        super().__init__()
        self._look, self._unit = look, unit
        self._before = ""
        self.setFont(look.font(12 if mono else 13, mono=mono))
        self.setFixedHeight(HEIGHT)
        self.setAccessibleName(name)
        if unit:
            self.setTextMargins(0, 0, self._unit_width() + 6, 0)

    def hold(self, text: str) -> None:
        """Show what holds, and go back to it with Esc."""
        self._before = text
        if self.text() != text:
            self.setText(text)
            self.setCursorPosition(0)

    @property
    def before(self) -> str:
        """What it showed before anything was typed."""
        return self._before

    def trouble(self, wrong: bool) -> None:
        """A border in trouble's colour, or no more."""
        if bool(self.property("wrong")) != wrong:
            self.setProperty("wrong", wrong)
            self.style().unpolish(self)
            self.style().polish(self)

    def _unit_width(self) -> int:
        return self.fontMetrics().horizontalAdvance(self._unit)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._unit:
            painter = QPainter(self)
            painter.setFont(self.font())
            painter.setPen(self._look.colour("text3"))
            box = self.rect().adjusted(0, 0, -10, 0)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, self._unit)

    def event(self, event: QEvent) -> bool:
        # With nothing typed, Ctrl Z is the window's: it takes the last edit back.
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            keys = (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo)
            if self.text() == self._before and any(event.matches(one) for one in keys):
                event.ignore()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key == Qt.Key.Key_Escape and self.text() != self._before:
            self.setText(self._before)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.left.emit()
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.stepped.emit(1 if key == Qt.Key.Key_Up else -1)
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() not in (
            Qt.FocusReason.PopupFocusReason,
            Qt.FocusReason.ActiveWindowFocusReason,
        ):
            self.left.emit()


class Field(QWidget):
    """An entry with its label and verdict. `read` makes a value of the text, or raises BadInput with the cure.

    Signal `given(object)`: another value was taken.
    """

    given = Signal(object)

    def __init__(
        self,
        look: Look,
        name: str,
        read: Callable[[str], object],
        *,
        unit: str = "",
        width: int = 0,
        right: bool = False,
        mono: bool = False,
        step: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self._read, self._step = read, step
        self.entry = Entry(look, name, unit, mono=mono)
        if right:
            self.entry.setAlignment(Qt.AlignmentFlag.AlignRight)
        if width:
            self.entry.setFixedWidth(width)
        self.label = Label(look, name, 12, 600, "text2")
        self.label.setBuddy(self.entry)
        self._sign = Sign(look, "", 14)
        self._verdict = Wrapped(look, "", 12, "text2")
        self.verdict = QWidget()
        said = row(self.verdict, spacing=6)
        said.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        said.addWidget(self._verdict, 1)
        self.verdict.hide()
        side = Qt.AlignmentFlag.AlignLeft if width else Qt.AlignmentFlag(0)
        layout = column(self, self.label, spacing=5)
        self._line = row(None, spacing=10)
        self._line.addWidget(self.entry, 0, side)
        layout.addLayout(self._line)
        layout.addWidget(self.verdict)
        layout.addStretch(1)
        self.entry.left.connect(self._take)
        self.entry.stepped.connect(self._stepped)

    def beside(self, widget: QWidget) -> None:
        """Stand at the right of the entry, under the same label."""
        self._line.addWidget(widget)
        self._line.addStretch(1)

    def hold(self, text: str) -> None:
        """Show what holds; what is being typed stays."""
        if self.entry.text() == self.entry.before or not self.entry.hasFocus():
            self.entry.hold(text)
            self.say("", "")

    def say(self, sign: str, text: str) -> None:
        """The verdict; an empty one takes no room."""
        self.entry.trouble(sign == marks.TROUBLE)
        self._sign.show_sign(sign)
        self._sign.setVisible(bool(sign))
        self._verdict.say(text)
        self._verdict.ink({marks.TROUBLE: "trouble", marks.WARN: "warn"}.get(sign, "text2"))
        self.verdict.setVisible(bool(text))
        self.entry.setAccessibleDescription(text)

    def _take(self) -> None:
        text = self.entry.text()
        if text == self.entry.before:
            self.say("", "")
            return
        try:
            value = self._read(text)
        except BadInput as error:
            self.say(marks.TROUBLE, str(error))
            return
        self.say("", "")
        self.entry.hold(text)
        self.given.emit(value)

    def _stepped(self, by: int) -> None:
        text = self.entry.text()
        if self._step is None or not text.isdecimal():
            return
        least, most = self._step
        self.entry.setText(str(min(most, max(least, int(text) + by))))
        self._take()


def labelled(look: Look, name: str, widget: QWidget) -> QVBoxLayout:
    """A widget under its label."""
    label = Label(look, name, 12, 600, "text2")
    label.setBuddy(widget)
    return column(None, label, widget, spacing=5)


class Wrapped(Label):
    """Text in as many lines as it needs: layouts guess too few for what is wrapped within what is wrapped."""

    def __init__(self, look: Look, text: str, size: int = 13, ink: str = "text") -> None:
        super().__init__(look, text, size, 400, ink, wrap=True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)

    def say(self, text: str) -> None:
        """Change the text, and the height."""
        super().say(text)
        self._fit()

    def _fit(self) -> None:
        self.setMinimumHeight(max(0, self.heightForWidth(self.width())))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()


class Pips(QWidget):
    """The attempts of a cell, drawn: warm-ups hollow and small, the others filled."""

    _MOST, _STEP, _ROOM = 12, 24.0, 92.0
    """So many are drawn at most; the widest step from one to the next; so much room is there for all."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._attempts, self._warm_up = 0, 0
        self.setFixedHeight(HEIGHT)

    def show_attempts(self, attempts: int, warm_up: int) -> None:
        """So many, the first ones of them warm-up."""
        self._attempts, self._warm_up = max(0, min(attempts, self._MOST)), max(0, warm_up)
        self.setFixedWidth(max(1, round(self._step * self._attempts) + 4))
        self.setAccessibleName(f"{warm_up} of {attempts} attempts are warm-up")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        x, middle, part = 0.5, self.height() / 2, self._step / self._STEP
        gap = max(2.0, 4 * part)
        for number in range(self._attempts):
            if number < self._warm_up:
                wide = max(4.0, 15 * part - gap)
                painter.setPen(look.colour("edge"))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(QRectF(x, middle - 5.5, wide, 11), 2, 2)
            else:
                wide = self._step - gap
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(look.mixed(look.token("edge"), 0.8))
                painter.drawRoundedRect(
                    QRectF(x, middle - 8, wide, 16), min(3.0, wide / 3), min(3.0, wide / 3)
                )
            x += wide + gap

    @property
    def _step(self) -> float:
        return min(self._STEP, self._ROOM / max(1, self._attempts))
