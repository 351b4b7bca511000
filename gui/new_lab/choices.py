"""Hosts to choose from: those that ~/.ssh/config names, and those of an inventory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from gui.theme.look import Look
from gui.widgets.basic import Button, Label, column

CONFIG = "~/.ssh/config"
_MANY = 7
"""With more than these a field to search in is shown."""
_NAME, _UNDER, _MARK = Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1
_OFFERED = Qt.ItemDataRole.UserRole + 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A host that can be chosen: what is entered for it, and where it is from."""

    name: str
    source: str
    ssh: str
    user: str = ""
    port: str = ""
    jump: str = ""
    key: str = ""


class Choices(QWidget):
    """Signals: `chosen(object)` an `Offer`; `wanted()` an inventory is to be read."""

    chosen = Signal(object)
    wanted = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._offers: list[Offer] = []
        self._used: Mapping[str, str] = {}
        self._now = ""
        self._places: dict[str, list[int]] = {}
        """Where each host stands in the list, by what is entered for it."""
        self.search = QLineEdit()
        self.search.setFont(look.font(12))
        self.search.setFixedHeight(look.px(30))
        self.search.setPlaceholderText("Find a host or a group")
        self.search.setAccessibleName("Find a host or a group")
        self.search.setClearButtonEnabled(True)
        self.search.setAcceptDrops(False)
        self.list = _List()
        self.list.setItemDelegate(_Cards(look, self.list))
        self.list.setAccessibleName("Hosts to choose from")
        self.list.setFrameShape(QListWidget.Shape.NoFrame)
        self.list.setUniformItemSizes(True)
        self.list.setMouseTracking(True)
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.none = Label(look, "~/.ssh/config names no host.", 12, 400, "text2", wrap=True)
        self.inventory = Button(look, "Read an Ansible inventory …", icon="file-text", height=30)
        self.note = Label(look, "", 12, 400, "text2", wrap=True)
        self.note.hide()
        layout = column(self, Label(look, "Or choose", 13, 600), self.search, self.none, spacing=7)
        layout.addWidget(self.list, 1)
        layout.addWidget(self.note)
        layout.addWidget(self.inventory)
        self.search.textChanged.connect(self._filter)
        self.list.itemClicked.connect(self._pressed)
        self.list.itemActivated.connect(self._pressed)
        self.inventory.clicked.connect(self.wanted)

    def offer(self, offers: Iterable[Offer]) -> None:
        """These, in this order."""
        self._offers = list(offers)
        self.list.clear()
        self._places = {}
        for number, offer in enumerate(self._offers):
            item = QListWidgetItem(offer.name)
            item.setData(_OFFERED, offer)
            self.list.addItem(item)
            self._places.setdefault(offer.ssh, []).append(number)
        self.search.setVisible(len(self._offers) > _MANY)
        self.none.setVisible(not self._offers)
        self._mark(self._places)

    def mark(self, now: str, used: Mapping[str, str]) -> None:
        """Which one is entered now, and which others are some other host already, as `is the server`."""
        if (now, dict(used)) != (self._now, self._used):
            # There may be thousands, and a key pressed changes few.
            changed = {self._now, now, *self._used, *used}
            self._now, self._used = now, dict(used)
            self._mark(changed)

    def say(self, text: str) -> None:
        """What came of reading an inventory."""
        self.note.say(text)
        self.note.setVisible(bool(text))

    def _mark(self, hosts: Iterable[str]) -> None:
        for number in [place for host in hosts for place in self._places.get(host, ())]:
            offer = self._offers[number]
            item = self.list.item(number)
            used = self._used.get(offer.ssh, "") if offer.ssh != self._now else ""
            now = offer.ssh == self._now
            item.setData(_UNDER, used or offer.source)
            item.setData(_MARK, "chosen" if now else "")
            flags = Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEnabled
            item.setFlags(Qt.ItemFlag.NoItemFlags if used else flags)
            item.setData(
                Qt.ItemDataRole.AccessibleTextRole,
                f"{offer.name}, {used or offer.source}{', chosen' if now else ''}",
            )
            item.setToolTip(f"{offer.name}\n{used or offer.source}")

    def _filter(self, text: str) -> None:
        words = text.lower().split()
        for number, offer in enumerate(self._offers):
            told = f"{offer.name} {offer.source} {offer.ssh}".lower()
            self.list.item(number).setHidden(not all(word in told for word in words))

    def _pressed(self, item: QListWidgetItem) -> None:
        if item.flags() & Qt.ItemFlag.ItemIsEnabled:
            self.chosen.emit(item.data(_OFFERED))


class _List(QListWidget):
    """Enter chooses, and does nothing else."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            if (item := self.currentItem()) is not None:
                self.itemActivated.emit(item)
            event.accept()
        else:
            super().keyPressEvent(event)


class _Cards(QStyledItemDelegate):
    """Each host a card: its name, where it is from, and *chosen*."""

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(100, self._look.px(47))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        look = self._look
        enabled = bool(index.flags() & Qt.ItemFlag.ItemIsEnabled)
        mark = str(index.data(_MARK) or "")
        state = option.state
        box = QRectF(option.rect).adjusted(1, 1, -1, -5)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focus = bool(state & QStyle.StateFlag.State_HasFocus)
        over = bool(state & QStyle.StateFlag.State_MouseOver) and enabled
        ground = "accent_soft" if mark else "canvas" if over and not look.palette.dark else "raised"
        painter.setBrush(look.colour("sunken" if over and look.palette.dark and not mark else ground))
        painter.setPen(QPen(look.colour("accent" if mark or focus else "hair"), 2 if focus else 1))
        painter.drawRoundedRect(box, 6, 6)
        inside = box.adjusted(11, 5, -10, -5)
        room = inside.width()
        if mark:
            painter.setFont(look.font(11, 600))
            painter.setPen(look.colour("accent"))
            flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(inside, flags, mark)
            room -= painter.fontMetrics().horizontalAdvance(mark) + 8
        half = inside.height() / 2
        for text, font, ink, top in (
            (str(index.data(_NAME)), look.font(13, 600), "text" if enabled else "text3", inside.top()),
            (str(index.data(_UNDER)), look.font(11), "text2" if enabled else "text3", inside.top() + half),
        ):
            painter.setFont(font)
            painter.setPen(look.colour(ink))
            line = QRectF(inside.left(), top, room, half)
            shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(room))
            painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
        painter.restore()
