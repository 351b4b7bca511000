"""Fields: a label above, a unit inside, the verdict below; taken with Enter or on leaving."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
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

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():  # a file that is dropped here is meant for the window
            event.ignore()
        else:
            super().dragEnterEvent(event)

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

    @property
    def untaken(self) -> str | None:
        """What was typed and not taken, since it is wrong or not left yet; None where nothing was."""
        return None if self.entry.text() == self.entry.before else self.entry.text()

    def retype(self, text: str) -> None:
        """Show what was typed here before, and what is wrong with it; it is taken when it is left."""
        self.entry.setText(text)
        try:
            self._read(text)
        except BadInput as error:
            self.say(marks.TROUBLE, str(error))

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
