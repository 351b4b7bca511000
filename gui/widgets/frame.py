"""The window's frame: top bar, navigation, status bar, the head of a page, and the ring of the focus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QFrame,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gui.theme import icons, marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Elided, Icon, IconButton, Label, Said, column, emptied, row, rule

WIDE, NARROW = 184, 84
_FOOT = 2
SMALL_WIDTH, SMALL_HEIGHT = 1360, 800
"""Windows below these are laid out small."""
LEAST_PAGE = (1280 - NARROW, 720 - 48 - 36)
"""Pages are laid out down to this, as in a window of 1280×720; in less they scroll as a whole."""


class Mark(QWidget):
    """The mark of BranchLab."""

    def __init__(self, look: Look, size: int = 20) -> None:
        super().__init__()
        self._look = look
        self.setFixedSize(size, size)

    def paintEvent(self, event: QPaintEvent) -> None:
        marks.draw_mark(QPainter(self), self._look, QRectF(self.rect()))


class TopBar(QFrame):
    """Mark, name, what is open; each role with its sign; the line as last verified; light or dark.

    Signals: `home()` the mark was pressed; `themed()` the other palette is asked for; `sought()` an action;
    `asked(object)` what can be done with the profile, to be shown at this place of the screen.
    """

    home = Signal()
    themed = Signal()
    sought = Signal()
    asked = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.setObjectName("topbar")
        self.setFixedHeight(48)
        self._name = Button(look, "BranchLab", "flat", height=36)
        self._name.setFont(look.font(15, 600))
        self._name.setStyleSheet("padding: 0 6px; color: palette(window-text);")
        self._name.setAccessibleName("BranchLab: to the start")
        self._icon = Icon(look, "buildings", 16)
        self._open = Elided(look, "", 13, 600)
        self._more = IconButton(look, "caret-down", "This profile: save, undo …", 14)
        self._more.setFixedSize(24, 24)
        self._more.clicked.connect(self._ask)
        self._kind = Elided(look, "", 12, 400, "text3")
        self._kind.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self._roles = QWidget()
        self._roles_row = row(self._roles, spacing=16)
        self._line = Said(look, "", "", 12, 600, "text")
        self._search = _Search(look)
        self._glass = IconButton(look, "magnifying-glass", "Find an action (Ctrl K)")
        self._glass.setProperty("framed", True)
        self._theme = IconButton(look, "moon", "Dark colours")
        self._divider, self._divider2 = rule(vertical=True), rule(vertical=True)
        for divider in (self._divider, self._divider2):
            divider.setFixedHeight(20)
        self._open.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        layout = row(self, Mark(look), self._name, margins=(18, 0, 14, 0), spacing=4)
        layout.addSpacing(34)
        layout.addWidget(self._divider)
        layout.addSpacing(10)
        for widget in (self._icon, self._open, self._more, self._kind):
            layout.addWidget(widget)
            layout.addSpacing(4)
        layout.addStretch(1)
        layout.addWidget(self._roles)
        layout.addSpacing(10)
        layout.addWidget(self._divider2)
        layout.addSpacing(10)
        layout.addWidget(self._line)
        layout.addSpacing(8)
        for widget in (self._search, self._glass):
            layout.addWidget(widget)
        layout.addSpacing(8)
        layout.addWidget(self._theme)
        self._shown: Sequence[tuple[str, str]] = ()
        self._name.clicked.connect(self.home)
        self._theme.clicked.connect(self.themed)
        self._search.clicked.connect(self.sought)
        self._glass.clicked.connect(self.sought)
        self.narrow(False)
        self.show_open("", "")
        self.show_roles(())
        self.show_line("", "")

    def narrow(self, small: bool) -> None:
        """Lay out for a small window."""
        self._search.setVisible(not small)
        self._glass.setVisible(small)

    def show_open(self, name: str, kind: str, *, profile: bool = False) -> None:
        """The profile or run that is open; `profile`: it can be saved."""
        self._open.say(name)
        self._open.setFixedWidth(min(320, self._open.fontMetrics().horizontalAdvance(name) + 4))
        self._kind.say(kind)
        for widget in (self._icon, self._open, self._kind, self._divider):
            widget.setVisible(bool(name))
        self._more.setVisible(profile)

    def _ask(self) -> None:
        self.asked.emit(self._more.mapToGlobal(QPoint(0, self._more.height() + 4)))

    def show_roles(self, roles: Sequence[tuple[str, str]]) -> None:
        """Signs and words, as `("ok", "2 clients")`."""
        if roles == self._shown:
            return
        self._shown = roles
        emptied(self._roles_row)
        for sign, word in roles:
            self._roles_row.addWidget(Said(self._look, sign, word, 12, 500, "text"))

    def show_line(self, sign: str, text: str) -> None:
        """The line as last verified."""
        self._line.say(sign, text)
        self._line.setVisible(bool(text))
        self._divider2.setVisible(bool(text))

    def show_theme(self) -> None:
        """The sign of the palette that a press would bring."""
        dark = self._look.palette.dark
        self._theme.use("sun" if dark else "moon", "Light colours" if dark else "Dark colours")


class _Search(QPushButton):
    """Looks like a field, and opens the list of actions."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.setObjectName("search")
        self.setFixedSize(214, 32)
        self.setAutoDefault(False)
        self.setAccessibleName("Find an action, Ctrl K")
        cap = Label(look, "Ctrl K", 11, 600, "text2")
        cap.setObjectName("keycap")
        cap.setFixedHeight(20)
        text = Label(look, "Find an action", 12, 400, "text2")
        for widget in (cap, text):
            widget.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        row(self, Icon(look, "magnifying-glass", 16), text, -1, cap, margins=(10, 0, 6, 0), spacing=8)


@dataclass(frozen=True, slots=True)
class Place:
    """One page in the navigation."""

    key: str
    name: str
    icon: str
    group: int = 0
    """0 above, 1 under the rule, 2 at the foot"""


class NavButton(QAbstractButton):
    """A page in the navigation: icon and word side by side, or the icon over the word in small windows."""

    def __init__(self, look: Look, place: Place, shortcut: str) -> None:
        super().__init__()
        self._look, self._place = look, place
        self._word, self._sign, self._narrow = "", "", False
        self.setText(place.name)
        self.setCheckable(True)
        self.setAutoExclusive(True)
        self.setToolTip(f"{place.name} ({shortcut})")
        self.setAccessibleName(place.name)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def tell(self, word: str, sign: str = "") -> None:
        """The word (and sign) of state at its right."""
        if (word, sign) != (self._word, self._sign):
            self._word, self._sign = word, sign
            self.setAccessibleName(f"{self._place.name}, {word}" if word else self._place.name)
            self.update()

    def narrow(self, small: bool) -> None:
        """Lay out for a small window."""
        self._narrow = small
        self.setFixedSize(*((NARROW - 17, 50) if small else (WIDE - 17, 36)))
        self.update()

    def sizeHint(self) -> QSize:
        return self.size()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect())
        chosen = self.isChecked()
        if chosen or self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.colour("accent_soft" if chosen else "sunken"))
            painter.drawRoundedRect(box, 6, 6)
        if chosen:
            painter.setBrush(look.colour("accent"))
            painter.drawRoundedRect(QRectF(0, 9 if not self._narrow else 6, 3, 18), 1.5, 1.5)
        ink = look.colour("accent" if chosen else "text2")
        painter.setPen(ink if chosen else look.colour("text"))
        if self._narrow:
            icons.draw(painter, self._place.icon, ink, QRectF(box.center().x() - 9, 6, 18, 18))
            painter.setFont(look.font(11, 600 if chosen else 400))
            painter.drawText(box.adjusted(0, 26, 0, 0), Qt.AlignmentFlag.AlignHCenter, self._place.name)
            return
        icons.draw(painter, self._place.icon, ink, QRectF(12, 9, 18, 18))
        painter.setFont(look.font(13, 600 if chosen else 500))
        painter.drawText(box.adjusted(39, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, self._place.name)
        right = box.right() - 10
        if self._sign:
            marks.draw_sign(painter, look, self._sign, QRectF(right - 13, box.center().y() - 6.5, 13, 13))
            right -= 18
        painter.setPen(ink if chosen else look.colour("text2"))
        painter.setFont(look.font(11, 500 if chosen else 400))
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(QRectF(0, 0, right, box.height()), flags, self._word)


class Navigation(QFrame):
    """Left: the pages that exist. Signal `chosen(object)`: the key of a page."""

    chosen = Signal(object)

    def __init__(self, look: Look, places: Sequence[Place]) -> None:
        super().__init__()
        self.setObjectName("navigation")
        self.setAccessibleName("Pages")
        self.buttons: dict[str, NavButton] = {}
        layout = column(self, margins=(8, 16, 8, 16), spacing=2)
        group = 0
        for number, place in enumerate(places, 1):
            if place.group != group:
                group = place.group
                layout.addStretch(1) if group == _FOOT else _ruled(layout)
            button = NavButton(look, place, f"Alt+{number}")
            button.clicked.connect(self._pressed)
            self.buttons[place.key] = button
            layout.addWidget(button)
        if group != _FOOT:
            layout.addStretch(1)
        self.narrow(False)

    def narrow(self, small: bool) -> None:
        """Lay out for a small window."""
        self.setFixedWidth(NARROW if small else WIDE)
        for button in self.buttons.values():
            button.narrow(small)

    def show_page(self, key: str) -> None:
        """Mark a page as shown; none of them for another key."""
        for name, button in self.buttons.items():
            button.setAutoExclusive(False)
            button.setChecked(name == key)
            button.setAutoExclusive(key in self.buttons)

    def _pressed(self) -> None:
        for key, button in self.buttons.items():
            if button is self.sender():
                self.chosen.emit(key)


def _ruled(layout: QVBoxLayout) -> None:
    layout.addSpacing(8)
    layout.addWidget(rule())
    layout.addSpacing(8)


class Parts(QWidget):
    """A bar with one part per line of a run, as long as its expected time, filled as far as it is done."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._parts: list[tuple[float, float]] = []
        self.setMinimumWidth(80)
        self.setFixedHeight(12)
        self.setAccessibleName("Progress")

    def show_parts(self, parts: list[tuple[float, float]]) -> None:
        """Shares of the whole, and of each how much is done."""
        if parts != self._parts:
            self._parts = parts
            done = sum(share * part for share, part in parts)
            self.setAccessibleDescription(f"{done:.0%} done")
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        gap, top, x = 3.0, self.height() / 2 - 3.5, 0.0
        whole = self.width() - gap * max(0, len(self._parts) - 1)
        for share, done in self._parts:
            width = whole * share
            painter.setBrush(look.mixed(look.token("accent"), 0.25))
            painter.drawRoundedRect(QRectF(x, top, width, 7), 2, 2)
            if done > 0:
                painter.setBrush(look.colour("accent"))
                painter.drawRoundedRect(QRectF(x, top, max(3.0, width * done), 7), 2, 2)
            x += width + gap


class StatusBar(QFrame):
    """Bottom: what is true now; while a run goes, how far it is."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.setObjectName("statusbar")
        self._said = Said(look, "", "", 12, 400, "text2")
        self._right = Label(look, "", 12, 400, "text2")
        self._done = Label(look, "", 13, 600)
        self._gone = Label(look, "", 12, 400, "text2")
        self._parts = Parts(look)
        self._eta = Label(look, "", 13, 600)
        layout = row(self, margins=(16, 0, 16, 0), spacing=14)
        for widget in (self._said, self._done, self._gone):
            layout.addWidget(widget)
        layout.addWidget(self._parts, 1)
        layout.addStretch(0)
        layout.addWidget(self._eta)
        layout.addWidget(self._right)
        self.say("", "", "")

    def say(self, sign: str, text: str, right: str) -> None:
        """A sentence, and a remark at the right."""
        self._said.say(sign, text)
        self._right.say(right)
        self._swap(False)

    def progress(self, done: str, gone: str, parts: list[tuple[float, float]], eta: str) -> None:
        """How far a run is."""
        self._done.say(done)
        self._gone.say(gone)
        self._parts.show_parts(parts)
        self._eta.say(eta)
        self._swap(True)

    def _swap(self, running: bool) -> None:
        height = 36 if running else 32
        if self.height() != height or self.minimumHeight() != height:
            self.setFixedHeight(height)
        for widget in (self._done, self._gone, self._parts, self._eta):
            widget.setVisible(running)
        self._said.setVisible(not running)
        self._right.setVisible(not running)


class Whole(QScrollArea):
    """Room for a page: as large as there is, but never less than `least`; then it scrolls."""

    def __init__(self, page: QWidget) -> None:
        super().__init__()
        self._least = QSize(0, 0)
        # Not `setWidgetResizable`: it asks for the height for a width, which a page that shares its height
        # among its cards changes with every answer.
        self.setWidget(page)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def least(self, width: int, height: int) -> None:
        """The page is laid out down to this size."""
        self._least = QSize(width, height)
        self._fit()

    def _fit(self) -> None:
        self.widget().resize(self.viewport().size().expandedTo(self._least))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


class Head(QWidget):
    """The head of a page: title and a line under it; buttons at the right end, the filled one last; a banner."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.title = Elided(look, "", 20, 600)
        self.title.setFixedHeight(26)
        self.under = QWidget()
        self.under_row = row(self.under, spacing=6)
        self._under_text: Label | None = None
        left = column(None, self.title, self.under, spacing=1)
        self.buttons = row(None, spacing=8)
        self._top = QWidget()
        self._top.setFixedHeight(48)
        top = row(self._top, spacing=16)
        top.addLayout(left, 1)
        top.addLayout(self.buttons)
        self._column = column(self, self._top, spacing=0)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def small(self, small: bool) -> None:
        """Lay out for a small window."""
        self.title.setFont(self._look.font(18 if small else 20, 600))
        self._top.setFixedHeight(44 if small else 48)

    def hold(self, banner: QWidget) -> None:
        """Take in the banner, which stands under the head of the page that is shown."""
        self._column.addWidget(banner)

    def needed(self) -> int:
        """The head's height, with the banner where there is one."""
        # Texts that are wrapped make a size hint guess too high: it knows no width.
        return self._column.totalHeightForWidth(self.width())

    def say(self, text: str) -> None:
        """A plain line under the title."""
        if self._under_text is None:
            self._under_text = Elided(self._look, "", 13, 400, "text2")
            self.under_row.addWidget(self._under_text, 1)
        self._under_text.say(text)


class FocusRing(QWidget):
    """A ring 2 px outside whatever in a window the keyboard brought the focus to; fields have one of their own."""

    _FIELDS = (QComboBox, QLineEdit)

    _KEYS = (
        Qt.FocusReason.TabFocusReason,
        Qt.FocusReason.BacktabFocusReason,
        Qt.FocusReason.ShortcutFocusReason,
    )

    def __init__(self, look: Look, window: QWidget) -> None:
        super().__init__(window)
        self._look = look
        self._target: QWidget | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()
        if (application := QApplication.instance()) is not None:
            application.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.FocusIn and isinstance(watched, QWidget):
            by_keys = isinstance(event, QFocusEvent) and event.reason() in self._KEYS
            if by_keys and self._inside(watched) and not isinstance(watched, self._FIELDS):
                self._target = watched
                self._place()
        elif self._target is None:
            return False
        elif kind in (QEvent.Type.FocusOut, QEvent.Type.Hide) and watched is self._target:
            self._target = None
            self.hide()
        elif kind in (QEvent.Type.Move, QEvent.Type.Resize) and isinstance(watched, QWidget):
            near = watched is self._target or watched.isAncestorOf(self._target)
            if near:  # it, or what it stands in, was moved or scrolled
                self._place()
        return False

    def _inside(self, widget: QWidget) -> bool:
        return widget.window() is self.parentWidget()

    def _place(self) -> None:
        window = self.parentWidget()
        if self._target is not None and window is not None:
            corner = self._target.mapTo(window, QPoint(0, 0))
            self.setGeometry(QRect(corner, self._target.size()).adjusted(-4, -4, 4, 4))
            self.raise_()
            self.setVisible(not self._target.visibleRegion().isEmpty())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._look.colour("accent"), 2))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
