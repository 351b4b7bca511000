"""Labels, cards, buttons, signs and switches in the look of BranchLab."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from gui.theme import icons, marks
from gui.theme.look import Look
from lab.model import ProxyState

_TURN_S = 1.2
_WIDEST_CHOICE = 320
_TURN_STEP_MS = 80


class Label(QLabel):
    """Text in a size, weight and ink of the look."""

    def __init__(
        self,
        look: Look,
        text: str = "",
        size: int = 13,
        weight: int = 400,
        ink: str = "text",
        *,
        mono: bool = False,
        wrap: bool = False,
    ) -> None:
        super().__init__(text)
        self.setFont(look.font(size, weight, mono=mono))
        self.setProperty("ink", ink)
        self.setWordWrap(wrap)
        self.setTextFormat(Qt.TextFormat.PlainText)

    def say(self, text: str) -> None:
        """Change the text, only where it is another one."""
        if text != self.text():
            self.setText(text)

    def ink(self, token: str) -> None:
        """Change the colour."""
        if self.property("ink") != token:
            self.setProperty("ink", token)
            self.style().unpolish(self)
            self.style().polish(self)


class Elided(Label):
    """A label that ends in … where it has no room, and tells the whole in its tip."""

    def __init__(
        self, look: Look, text: str = "", size: int = 13, weight: int = 400, ink: str = "text"
    ) -> None:
        super().__init__(look, text, size, weight, ink)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(40)

    def say(self, text: str) -> None:
        """Change the text and the tip."""
        super().say(text)
        self.setToolTip(text)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), self.alignment() | Qt.TextFlag.TextSingleLine, text)


class Card(QFrame):
    """A surface with a hair line around it, and a column inside."""

    def __init__(self, name: str = "card", margins: tuple[int, int, int, int] = (16, 12, 16, 14)) -> None:
        super().__init__()
        self.setObjectName(name)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(*margins)
        self.column.setSpacing(8)


class Button(QPushButton):
    """A button; `kind` is filled, delete, plain, flat, link, tab or segment."""

    def __init__(self, look: Look, text: str, kind: str = "plain", icon: str = "", height: int = 32) -> None:
        super().__init__()
        self._look, self._icon, self._kind, self.word = look, icon, kind, ""
        self.setProperty("kind", kind)
        self.setFixedHeight(height)
        weight = 600 if kind in ("filled", "delete", "link") else 500
        self.setFont(look.font(12 if kind == "link" else 13, weight))
        self.setCursor(Qt.CursorShape.PointingHandCursor if kind == "link" else Qt.CursorShape.ArrowCursor)
        self.setAutoDefault(False)
        look.changed.connect(self._dress)
        self.rename(text)

    def rename(self, text: str, icon: str = "") -> None:
        """Another text (and icon) on the same button."""
        if text != self.word or (icon and icon != self._icon):
            self.word, self._icon = text, icon or self._icon
            # a figure space keeps icon and word apart, for which style sheets have no property
            self.setText(f"\N{FIGURE SPACE}{text}" if self._icon else text)
            self.setAccessibleName(text)
            self._dress()

    def use(self, kind: str) -> None:
        """Another kind of the same button."""
        if kind != self._kind:
            self._kind = kind
            self.setProperty("kind", kind)
            self.setFont(self._look.font(13, 600 if kind == "filled" else 500))
            self.style().unpolish(self)
            self.style().polish(self)
            self._dress()

    def _dress(self) -> None:
        if not self._icon:
            return
        ink = {"filled": "on_accent", "delete": "on_trouble", "link": "accent"}.get(self._kind, "text2")
        size = 14 if self._kind == "link" else 16
        self.setIcon(icons.icon(self._icon, self._look.token(ink), self._look.token("text3"), size))
        self.setIconSize(QSize(size, size))


class IconButton(QToolButton):
    """An icon alone, with a tip and a name."""

    def __init__(self, look: Look, icon: str, name: str, size: int = 18) -> None:
        super().__init__()
        self._look, self._icon, self._size = look, icon, size
        self.setToolTip(name)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        look.changed.connect(self._dress)
        self._dress()

    def use(self, icon: str, name: str) -> None:
        """Another icon and name."""
        self._icon = icon
        self.setToolTip(name)
        self.setAccessibleName(name)
        self._dress()

    def _dress(self) -> None:
        hue = self._look.token("text2")
        self.setIcon(icons.icon(self._icon, hue, self._look.token("text3"), self._size))
        self.setIconSize(QSize(self._size, self._size))


class Check(QCheckBox):
    """A box to check; its text takes as many lines as it needs."""

    _BOX, _LEFT = 18, 26

    def __init__(self, look: Look, text: str) -> None:
        super().__init__(text)
        self._look = look
        self.setFont(look.font(13, 500))
        self.setAccessibleName(text)
        policy = self.sizePolicy()
        policy.setHorizontalPolicy(QSizePolicy.Policy.Expanding)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        look.changed.connect(self.update)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return max(self._BOX + 4, self._text_box(width).height() + 4)

    def sizeHint(self) -> QSize:
        return QSize(300, self.heightForWidth(300))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._BOX + 4)

    def hitButton(self, at: QPoint) -> bool:
        return self.rect().contains(at)

    def _text_box(self, width: int) -> QRect:
        room = QRect(self._LEFT, 2, max(40, width - self._LEFT), 2000)
        return self.fontMetrics().boundingRect(room, Qt.TextFlag.TextWordWrap, self.text())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(0.5, 2.5, self._BOX - 1, self._BOX - 1)
        on = self.isChecked()
        edge, ground = ("accent", "accent") if on else ("edge", "field")
        if not self.isEnabled():
            edge, ground = "hair", "sunken"
        painter.setPen(QPen(look.colour(edge), 1))
        painter.setBrush(look.colour(ground))
        painter.drawRoundedRect(box, 4, 4)
        if on:
            tick = QPainterPath(QPointF(box.left() + 4, box.center().y()))
            tick.lineTo(box.left() + 7.5, box.bottom() - 4.5)
            tick.lineTo(box.right() - 3.5, box.top() + 5)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(look.colour("on_accent"), 2))
            painter.drawPath(tick)
        painter.setPen(look.colour("text" if self.isEnabled() else "text3"))
        painter.drawText(self._text_box(self.width()), Qt.TextFlag.TextWordWrap, self.text())


class Icon(QWidget):
    """An icon of the set, painted in a token's colour."""

    def __init__(self, look: Look, name: str, size: int = 18, ink: str = "text2") -> None:
        super().__init__()
        self._look, self._name, self._ink = look, name, ink
        self.setFixedSize(size, size)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        icons.draw(painter, self._name, self._look.colour(self._ink), QRectF(self.rect()))


class Sign(QWidget):
    """One of the five signs; *running* turns, nothing else moves."""

    def __init__(self, look: Look, sign: str = marks.OK, size: int = 14) -> None:
        super().__init__()
        self._look, self.sign = look, sign
        self.setFixedSize(size, size)
        self._timer = QTimer(self)
        self._timer.setInterval(_TURN_STEP_MS)
        self._timer.timeout.connect(self.update)

    def show_sign(self, sign: str) -> None:
        """Show another sign; an empty one shows nothing."""
        if sign != self.sign:
            self.sign = sign
            self._animate()
            self.update()

    def _animate(self) -> None:
        if self.sign == marks.BUSY and self.isVisible() and self._look.motion:
            self._timer.start()
        else:
            self._timer.stop()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.sign:
            turn = time.monotonic() % _TURN_S / _TURN_S if self._look.motion else 0.0
            box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
            marks.draw_sign(QPainter(self), self._look, self.sign, box, turn)

    def showEvent(self, event: object) -> None:
        self._animate()

    def hideEvent(self, event: object) -> None:
        self._timer.stop()


class Said(QWidget):
    """A sign and its word."""

    def __init__(
        self,
        look: Look,
        sign: str = "",
        text: str = "",
        size: int = 12,
        weight: int = 400,
        ink: str = "text2",
    ) -> None:
        super().__init__()
        self.sign = Sign(look, sign, 14)
        self.label = Label(look, text, size, weight, ink)
        row(self, self.sign, self.label, spacing=6)
        self.label.setVisible(bool(text))

    def say(self, sign: str, text: str) -> None:
        """Change both."""
        self.sign.show_sign(sign)
        self.sign.setVisible(bool(sign))
        self.label.setVisible(bool(text))
        self.label.say(text)


class StateMark(QWidget):
    """A proxy state's marker."""

    def __init__(self, look: Look, state: ProxyState | None, size: float = 10) -> None:
        super().__init__()
        self._look, self.state, self._size = look, state, size
        self._among: Sequence[ProxyState] = ()
        self.setFixedSize(14, 14)

    def show_state(self, state: ProxyState | None, among: Sequence[ProxyState]) -> None:
        """Show another state."""
        self.state, self._among = state, among
        self.setVisible(state is not None)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.state is not None:
            centre = QPointF(self.width() / 2, self.height() / 2)
            shown = self._look.state(self.state, self._among)
            marks.draw_marker(QPainter(self), self._look, shown, centre, self._size)


class Choice(QComboBox):
    """A list box with a caret of the set."""

    def __init__(self, look: Look, name: str, height: int = 32) -> None:
        super().__init__()
        self._look = look
        self.setAccessibleName(name)
        self.setFixedHeight(height)
        self.setFont(look.font(12 if height < 30 else 13, 500))
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)

    def offer(self, texts: Sequence[str]) -> None:
        """These choices, and as much room as the longest takes."""
        self.clear()
        self.addItems(list(texts))
        widest = max((self.fontMetrics().horizontalAdvance(text) for text in texts), default=60)
        self.setMinimumWidth(min(widest + 44, _WIDEST_CHOICE))
        self.setMaximumWidth(max(_WIDEST_CHOICE, self.minimumWidth()))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        box = QRectF(self.width() - 22, self.height() / 2 - 6, 12, 12)
        icons.draw(QPainter(self), "caret-down", self._look.colour("text2"), box)


class Segments(QFrame):
    """Up to three words of which one holds. Signal `chosen(object)`: the word."""

    chosen = Signal(object)

    def __init__(self, look: Look, words: Sequence[str], name: str) -> None:
        super().__init__()
        self.setObjectName("segments")
        self.setAccessibleName(name)
        self._group = QButtonGroup(self)
        layout = row(self, margins=(1, 1, 1, 1), spacing=0)
        for number, word in enumerate(words):
            button = Button(look, word, "segment", height=24)
            button.setFont(look.font(12, 500))
            button.setCheckable(True)
            button.setAccessibleName(f"{name}: {word}")
            self._group.addButton(button, number)
            layout.addWidget(button)
        self._group.idClicked.connect(self._clicked)
        self.choose(words[0])

    def choose(self, word: str) -> None:
        """Check a word without telling; none, where it is no word of these."""
        known = [button for button in self._group.buttons() if button.text() == word]
        for (
            button
        ) in known:  # the group lets go of the others, and of their place among those that Tab reaches
            button.setChecked(True)
        if not known and (checked := self._group.checkedButton()) is not None:
            self._group.setExclusive(False)
            checked.setChecked(False)
            self._group.setExclusive(True)

    def _clicked(self, number: int) -> None:
        self.chosen.emit(self._group.button(number).text())


class Empty(QWidget):
    """An empty page: what will be here, how to get it, one filled button, and a way out where one is given.

    Signals: `pressed()`; `left()` the way out is taken.
    """

    pressed = Signal()
    left = Signal()

    def __init__(self, look: Look, icon: str, title: str, text: str, deed: str, out: str = "") -> None:
        super().__init__()
        card = Card("sunken", (40, 40, 40, 40))
        square = QFrame()
        square.setObjectName("softsquare")
        square.setFixedSize(40, 40)
        row(square, Icon(look, icon, 20, "accent"), margins=(10, 10, 10, 10))
        press = Button(look, deed, "filled", height=40)
        press.clicked.connect(self.pressed)
        for widget in (square, Label(look, title, 15, 600), Label(look, text, 13, 400, "text2"), press):
            card.column.addWidget(widget, 0, Qt.AlignmentFlag.AlignHCenter)
        if out:
            link = Button(look, out, "link", height=24)
            link.clicked.connect(self.left)
            card.column.addWidget(link, 0, Qt.AlignmentFlag.AlignHCenter)
        column(self, card, -1)


def row(
    parent: QWidget | None,
    *widgets: QWidget | int,
    margins: tuple[int, int, int, int] = (0, 0, 0, 0),
    spacing: int = 8,
) -> QHBoxLayout:
    """A row of widgets; a negative number is a stretch, a positive one a gap."""
    layout = QHBoxLayout(parent) if parent is not None else QHBoxLayout()
    _fill(layout, widgets, margins, spacing)
    return layout


def column(
    parent: QWidget | None,
    *widgets: QWidget | int,
    margins: tuple[int, int, int, int] = (0, 0, 0, 0),
    spacing: int = 8,
) -> QVBoxLayout:
    """A column of widgets; as `row`."""
    layout = QVBoxLayout(parent) if parent is not None else QVBoxLayout()
    _fill(layout, widgets, margins, spacing)
    return layout


def _fill(
    layout: QHBoxLayout | QVBoxLayout,
    widgets: Sequence[QWidget | int],
    margins: tuple[int, int, int, int],
    spacing: int,
) -> None:
    layout.setContentsMargins(*margins)
    layout.setSpacing(spacing)
    for widget in widgets:
        if isinstance(widget, int):
            if widget < 0:
                layout.addStretch(1)
            else:
                layout.addSpacing(widget)
        else:
            layout.addWidget(widget)


def emptied(layout: QLayout) -> None:
    """Take everything out of a layout and forget it."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.setParent(None)
            # A layout shows its widgets a moment later; without this, one that is gone by then as a window.
            widget.hide()
            widget.deleteLater()
        elif (inner := item.layout()) is not None:
            emptied(inner)


def rule(*, vertical: bool = False) -> QFrame:
    """A hair line."""
    line = QFrame()
    line.setObjectName("rule")
    if vertical:
        line.setFixedWidth(1)
    else:
        line.setFixedHeight(1)
    return line
