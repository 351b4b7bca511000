"""The list of actions (Ctrl K): what can be done now, found by a few letters, done by Enter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QApplication,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from gui.theme import icons
from gui.theme.look import Look
from gui.widgets.basic import Card, Icon, Label, column, row, rule

_WIDTH, _TOP, _ROW, _GROUP, _MOST = 600, 96, 38, 30, 380
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_ACTION, _FOUND = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 8, Qt.Key.Key_PageUp: -8}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done now; `keys` do it without the list."""

    group: str
    name: str
    icon: str
    do: Callable[[], object]
    keys: str = ""


def found(actions: Sequence[Action], text: str) -> list[Action]:
    """The actions whose name or group has every word of the text in it."""
    asked = text.casefold().split()
    return [a for a in actions if all(word in f"{a.group} {a.name}".casefold() for word in asked)]


class Actions(QWidget):
    """Lies over the whole window, which is dimmed; Esc or a press beside it changes nothing."""

    def __init__(self, look: Look, window: QWidget) -> None:
        super().__init__(window)
        self._look = look
        self._actions: Sequence[Action] = ()
        self._before: QWidget | None = None
        self.setAccessibleName("Actions")
        self._card = Card("dialog", (0, 10, 0, 0))
        self._card.setParent(self)
        self.field = QLineEdit()
        self.field.setFont(look.font(13))
        self.field.setFixedHeight(40)
        self.field.setPlaceholderText("Find an action")
        self.field.setAccessibleName("Find an action")
        self.field.setTextMargins(26, 0, 0, 0)
        glass = Icon(look, "magnifying-glass", 16)
        glass.setParent(self.field)
        glass.move(11, 12)
        self.list = QListWidget()
        self.list.setItemDelegate(_Delegate(look))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setAccessibleName("Actions found")
        self._count = Label(look, "", 11, 400, "text2")
        foot = row(None, spacing=16, margins=(18, 8, 18, 10))
        for text in ("Up, Down to choose", "Enter to do it", "Esc to leave"):
            foot.addWidget(Label(look, text, 11, 400, "text2"))
        foot.addStretch(1)
        foot.addWidget(self._count)
        self._card.column.setSpacing(0)
        self._card.column.addLayout(column(None, self.field, 8, self.list, margins=(10, 0, 10, 8), spacing=0))
        self._card.column.addWidget(rule())
        self._card.column.addLayout(foot)
        self.field.textChanged.connect(self._fill)
        self.field.installEventFilter(self)
        self.list.itemClicked.connect(self._clicked)
        window.installEventFilter(self)
        self.hide()

    def offer(self, actions: Sequence[Action]) -> None:
        """Show these, and take the focus."""
        self._actions, self._before = actions, QApplication.focusWidget()
        self.field.clear()
        self._fill("")
        self._place()
        self.show()
        self.raise_()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def leave(self) -> None:
        """Hide, and give the focus back to where it was."""
        self.hide()
        if self._before is not None and self._before.isVisible():
            self._before.setFocus(Qt.FocusReason.OtherFocusReason)
        self._before = None

    def _fill(self, text: str) -> None:
        self.list.clear()
        shown, group = found(self._actions, text), ""
        for action in shown:
            if action.group != group:
                group = action.group
                head = QListWidgetItem(group, self.list)
                head.setFlags(Qt.ItemFlag.NoItemFlags)
                head.setSizeHint(QSize(0, _GROUP))
            item = QListWidgetItem(action.name, self.list)
            item.setData(_ACTION, action)
            item.setData(_FOUND, text)
            item.setSizeHint(QSize(0, _ROW))
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{action.name} {action.keys}".strip())
        if shown:
            self.list.setCurrentRow(1)
        self._count.say(
            f"{len(shown)} of {len(self._actions)} actions" if shown else "No action has that name"
        )
        self._place()

    def _place(self) -> None:
        window = self.parentWidget()
        self.setGeometry(window.rect())
        groups = sum(self.list.item(n).data(_ACTION) is None for n in range(self.list.count()))
        needed = groups * _GROUP + (self.list.count() - groups) * _ROW + 2
        room = max(_ROW, min(_MOST, window.height() - _TOP - 140))
        self.list.setFixedHeight(min(needed, room))
        self._card.setFixedWidth(min(_WIDTH, window.width() - 32))
        # A layout inside a layout keeps its old size until the next event, unless told.
        self._card.layout().activate()
        self._card.adjustSize()
        self._card.move((window.width() - self._card.width()) // 2, min(_TOP, window.height() // 8))

    def _step(self, by: int) -> None:
        rows = [n for n in range(self.list.count()) if self.list.item(n).data(_ACTION) is not None]
        if rows:
            now = rows.index(self.list.currentRow()) if self.list.currentRow() in rows else 0
            self.list.setCurrentRow(rows[max(0, min(len(rows) - 1, now + by))])

    def _clicked(self, item: QListWidgetItem) -> None:
        action = item.data(_ACTION)
        if isinstance(action, Action):
            self.leave()
            action.do()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.parentWidget() and event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        if watched is not self.field or not isinstance(event, QKeyEvent):
            return False
        if event.type() != QEvent.Type.KeyPress:
            return False
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape:
            self.leave()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if (item := self.list.currentItem()) is not None:
                self._clicked(item)
        elif key in _STEPS:
            self._step(_STEPS[key])
        elif key not in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):  # nothing else here takes the focus
            return False
        return True

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self._card.geometry().contains(event.position().toPoint()):
            self.leave()

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), QColor(0, 0, 0, 90))


class _Delegate(QStyledItemDelegate):
    """A head of a group, or an action: icon, name with what was typed in bold, keys."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        look, box, action = self._look, option.rect, index.data(_ACTION)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not isinstance(action, Action):
            painter.setFont(look.font(12, 600))
            painter.setPen(look.colour("text2"))
            painter.drawText(box.adjusted(10, 4, 0, 0), _LEFT, str(index.data()))
            painter.restore()
            return
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        if chosen:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.colour("accent_soft"))
            painter.drawRoundedRect(QRectF(box).adjusted(0, 1, 0, -1), 6, 6)
        ink = look.colour("accent" if chosen else "text2")
        icons.draw(painter, action.icon, ink, QRectF(box.left() + 12, box.center().y() - 8, 18, 18))
        painter.setFont(look.font(12, 500))
        painter.setPen(look.colour("text2"))
        painter.drawText(box.adjusted(0, 0, -12, 0), _RIGHT, action.keys)
        keys = painter.fontMetrics().horizontalAdvance(action.keys) + 24
        self._name(painter, box.adjusted(42, 0, -keys, 0), action.name, str(index.data(_FOUND) or ""))
        painter.restore()

    def _name(self, painter: QPainter, box: QRect, name: str, asked: str) -> None:
        painter.setFont(self._look.font(13))
        name = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, box.width())
        painter.setPen(self._look.colour("text"))
        at = name.casefold().find(asked.strip().casefold()) if asked.strip() else -1
        parts = [(name, 400)]
        if at >= 0:
            end = at + len(asked.strip())
            parts = [(name[:at], 400), (name[at:end], 600), (name[end:], 400)]
        for text, weight in parts:
            painter.setFont(self._look.font(13, weight))
            painter.drawText(box, _LEFT, text)
            box = box.adjusted(painter.fontMetrics().horizontalAdvance(text), 0, 0, 0)
