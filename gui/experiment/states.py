"""The card *With which proxy states*: check cards, painted, and another N % full."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QGridLayout, QStackedLayout, QWidget

from gui import decimals, words
from gui.experiment.asked import Asked
from gui.experiment.check_card import CheckCard
from gui.experiment.edits import Edits
from gui.theme import icons, marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Label, Said, column, row
from gui.widgets.fields import Entry
from lab import units
from lab.errors import BadInput
from lab.model import DISABLED, ProxyState

USUAL = (DISABLED, *(ProxyState(full=full) for full in (0, 90, 100)))
_COLUMNS = 5
_TEXTS = {
    None: "The client asks the server. What the office has without a proxy.",
    0: "The first morning: everything is fetched and stored on the way.",
    100: "The best case: all contents come from the office.",
}


class StatesCard(Card):
    """Signal `explained()`: what the states mean is wanted, drawn."""

    explained = Signal()

    def __init__(self, look: Look, edits: Edits) -> None:
        super().__init__(margins=(14, 10, 14, 12))
        self._look, self._edits = look, edits
        self._asked: Asked | None = None
        self._others: set[float] = set()
        self.cards: dict[ProxyState, StateCard] = {}
        self.setProperty("help", "states")
        self.why = Button(look, "what they mean, drawn", "link", height=20)
        self.why.setAccessibleName("What the proxy states mean, drawn")
        self.why.clicked.connect(self.explained)
        head = row(None, Label(look, "With which proxy states", 13, 600), -1, self.why, spacing=10)
        self._key = Label(look, "F1", 12, 400, "accent")
        head.addWidget(self._key)
        self.column.addLayout(head)
        self._grid = QGridLayout()
        self._grid.setSpacing(8)
        self.another = Another(look)
        self.another.wanted.connect(self._add)
        self.column.addLayout(self._grid)

    def offer_help(self, there: bool) -> None:
        """The way to what the states mean, where there is one."""
        self.why.setVisible(there)
        self._key.setVisible(there)

    def show_asked(self, asked: Asked) -> None:
        """The experiment's states; another one than those four stays here, to be asked for again."""
        if self._asked is None or self._asked.place != asked.place:
            self._others.clear()
        self._asked = asked
        self._others |= {one.full for one in asked.known_states if one.full not in (None, 0, 90, 100)}
        shown = (DISABLED, *sorted({*USUAL[1:], *_made(self._others)}, key=lambda one: one.full or 0.0))
        if tuple(self.cards) != shown:
            self._lay(shown)
        for state, card in self.cards.items():
            card.among = shown
            card.setChecked(state in asked.known_states)
            card.update()

    def _lay(self, shown: tuple[ProxyState, ...]) -> None:
        focused = next((state for state, card in self.cards.items() if card.hasFocus()), None)
        for card in self.cards.values():
            self._grid.removeWidget(card)
            card.hide()
            card.deleteLater()
        self._grid.removeWidget(self.another)
        self.cards = {state: StateCard(self._look, state) for state in shown}
        columns = {6: 3, 7: 4, 8: 4}.get(len(shown) + 1, _COLUMNS)
        places = [(n // columns, n % columns) for n in range(len(shown) + 1)]
        before: QWidget = self.why
        for place, card in zip(places, [*self.cards.values(), self.another], strict=True):
            self._grid.addWidget(card, *place)
            card.setVisible(True)
            QWidget.setTabOrder(before, card)
            before = card
        for card in self.cards.values():
            card.clicked.connect(self._pressed)
        for number in range(_COLUMNS):
            last = number == _COLUMNS - 1 and len(shown) == _COLUMNS - 1
            self._grid.setColumnStretch(number, 0 if number >= columns else 2 if last else 3)
        if focused in self.cards:
            self.cards[focused].setFocus()

    def _pressed(self) -> None:
        for state, card in self.cards.items():
            if card is self.sender() and self._asked is not None:
                if card.isChecked():
                    self._edits.add_state(state, self._asked)
                else:
                    self._edits.remove_state(state, self._asked)
                return

    def _add(self, state: ProxyState) -> None:
        if self._asked is None:
            return
        if state in self._asked.known_states:
            self.another.say(marks.TROUBLE, f"{words.state(state, full=True)} is asked for already.")
            return
        self.another.close_field()
        self._edits.add_state(state, self._asked)
        if state in self.cards:
            self.cards[state].setFocus(Qt.FocusReason.OtherFocusReason)


def _made(fulls: set[float]) -> tuple[ProxyState, ...]:
    return tuple(ProxyState(full=full) for full in fulls)


def title(state: ProxyState) -> str:
    """A state's name on its card."""
    if state.full is None:
        return "Disabled"
    return f"Empty, 0{words.NBSP}% full" if state.full == 0 else words.state(state, full=True)


def sentence(state: ProxyState) -> str:
    """What a state means, in a sentence or two."""
    if state.full in _TEXTS:
        return _TEXTS[state.full]
    purged = units.percent_text(round(100 - (state.full or 0), 3))
    usual = (
        "The usual day: a tenth has changed." if state.full == 90 else "Which files are gone, the seed draws."
    )
    return f"{purged} purged. {usual}"


class StateCard(CheckCard):
    """A proxy state with its marker and its cache, drawn."""

    HEIGHT = 97

    def __init__(self, look: Look, state: ProxyState) -> None:
        self.state, self.among = state, USUAL
        super().__init__(look, title(state), sentence(state))

    def sizeHint(self) -> QSize:
        return QSize(176, self.HEIGHT)

    def minimumSizeHint(self) -> QSize:
        bold = QFontMetrics(self._look.font(13, 600))
        return QSize(bold.horizontalAdvance(self.text()) + 58, self.HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        self.paint_ground(painter)
        shown = look.state(self.state, self.among)
        marks.draw_marker(painter, look, shown, QPointF(38.5, 17), 10)
        painter.setFont(look.font(13, 600))
        painter.setPen(look.colour("text"))
        painter.drawText(QPointF(50, 21.5), self.text())
        draw_cache(painter, look, self.state, QRectF(12.5, 34.5, 22, 55), QColor(shown.colour))
        painter.setPen(look.colour("text2"))
        painter.setFont(look.font(12 if self.width() >= 230 else 11, 400))
        room = QRectF(45, 32, self.width() - 45 - 7, self.height() - 36)
        painter.drawText(room, Qt.TextFlag.TextWordWrap, self.about)


def draw_cache(painter: QPainter, look: Look, state: ProxyState, box: QRectF, hue: QColor) -> None:
    """A cache filled so far; the disabled one dashed and struck through."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(look.colour("surface"))
    pen = QPen(hue, 1.6)
    if state.full is None:
        pen.setDashPattern([3, 2])
    painter.setPen(pen)
    painter.drawRoundedRect(box, 4, 4)
    painter.setPen(QPen(hue, 1.4))
    if state.full is None:
        painter.drawLine(box.bottomLeft() + QPointF(4, -6), box.topRight() + QPointF(-4, 6))
    elif state.full:
        inner = box.adjusted(0.8, 0.8, -0.8, -0.8)
        inner.setTop(inner.bottom() - inner.height() * state.full / 100)
        painter.setClipRect(inner)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(hue)
        painter.drawRoundedRect(box, 4, 4)
    painter.restore()


class Another(QFrame):
    """*Another N % full*: pressed, it is a field. Signal `wanted(object)`: a `ProxyState`."""

    wanted = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.setMinimumHeight(StateCard.HEIGHT)
        self._stack = QStackedLayout(self)
        self.open_button = _Dashed(look)
        self.open_button.clicked.connect(self.open_field)
        self.entry = Entry(look, "How full the cache is, in percent", f"%{words.NBSP}full")
        self.entry.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._said = Said(look, "", "", 11, 400, "text2")
        self._said.label.setWordWrap(True)
        page = QWidget()
        column(page, self.entry, self._said, -1, margins=(6, 10, 6, 4), spacing=4)
        self._stack.addWidget(self.open_button)
        self._stack.addWidget(page)
        self.entry.textEdited.connect(self._typed)
        self.entry.left.connect(self._take)

    def open_field(self) -> None:
        """Ask how full."""
        self._stack.setCurrentIndex(1)
        self.entry.hold("")
        self.say("", "75 is a quarter purged; Enter adds it")
        self.entry.setFocus(Qt.FocusReason.TabFocusReason)

    def close_field(self) -> None:
        """Ask no more."""
        self._stack.setCurrentIndex(0)

    def say(self, sign: str, text: str) -> None:
        """What was understood, or what is wrong."""
        self.entry.trouble(sign == marks.TROUBLE)
        self._said.say(sign, text)
        self._said.label.ink("trouble" if sign == marks.TROUBLE else "text2")
        self.entry.setAccessibleDescription(text)

    def _state(self) -> ProxyState:
        return ProxyState(full=round(decimals.share(self.entry.text()) * 100, 3))

    def _typed(self, text: str) -> None:
        try:
            state = self._state()
        except (BadInput, ValueError) as error:
            self.say("", str(error) if text.strip() else "")
            return
        left = units.percent_text(round(100 - (state.full or 0), 3))
        self.say("", f"= {words.state(state, full=True)}, {left} purged")

    def _take(self) -> None:
        if self._stack.currentIndex() != 1:
            return
        if not self.entry.text().strip():
            self.close_field()
            return
        try:
            state = self._state()
        except (BadInput, ValueError) as error:
            self.say(marks.TROUBLE, str(error))
            return
        self.wanted.emit(state)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._stack.currentIndex() == 1:
            self.entry.hold("")
            self.close_field()
            self.open_button.setFocus()
        else:
            super().keyPressEvent(event)


class _Dashed(CheckCard):
    """The dashed card with a plus."""

    HEIGHT = StateCard.HEIGHT

    def __init__(self, look: Look) -> None:
        super().__init__(look, f"Another N{words.NBSP}% full", "")
        self.setCheckable(False)
        self.setToolTip("Another share of the cache, such as 75 %")

    def sizeHint(self) -> QSize:
        return QSize(96, self.HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(92, self.HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(look.colour("edge"), 1)
        pen.setDashPattern([3, 3])
        painter.setPen(pen)
        painter.setBrush(look.colour("canvas" if self.underMouse() else "surface"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        icons.draw(painter, "plus", look.colour("text2"), QRectF(self.width() / 2 - 8, 22, 16, 16))
        painter.setFont(look.font(12, 600))
        painter.setPen(look.colour("text2"))
        for number, text in enumerate(("Another", f"N{words.NBSP}% full")):
            box = QRectF(0, 46 + 17 * number, self.width(), 17)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
