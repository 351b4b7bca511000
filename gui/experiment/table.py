"""The table of lines: edited in place, put in order by drag or Alt and an arrow, with the time of each in this run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QLineEdit,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from gui import copying, decimals, words
from gui.experiment import typed
from gui.experiment.asked import LineAsked
from gui.theme import icons
from gui.theme.look import Look
from lab import units
from lab.errors import BadInput
from lab.model import Line

ROW, HEADER = 30, 28
LINE, DELAY, JITTER, LOSS, PRICE, TIME, AWAY = range(7)
HEADS = ("Line, upload/download", "Delay, one way", "Jitter", "Loss", "Price a month", "Time in this run", "")
_EDITED = (LINE, DELAY, JITTER, LOSS, PRICE)
_Index = QModelIndex | QPersistentModelIndex
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


def changed(one: LineAsked, part: int, text: str) -> tuple[Line, float | None, tuple[str, ...]]:
    """The line (and price, and warnings) that a cell's new text makes of one. Raises BadInput with the cure."""
    if part == LINE:
        parsed = typed.line(text)
        return parsed.line, one.price, parsed.warnings
    if part == PRICE:
        if one.line is None:
            raise BadInput("Mend the line first.")
        return one.line, typed.price(text), ()
    if one.line is None or not one.line.limited:
        raise BadInput("The line as it is has no delay, jitter or loss to be set: nothing is applied.")
    value = decimals.share(text) if part == LOSS else typed.time_ms(text)
    name = {DELAY: "delay_s", JITTER: "jitter_s", LOSS: "loss"}[part]
    line = one.line
    try:
        made = replace(line, **{name: value})
    except ValueError:
        least = f"{1000 * max(line.jitter_s, value if part == JITTER else 0):g} ms"
        raise BadInput(f"The jitter cannot be above the delay: give a delay of {least} first.") from None
    return typed.line(units.line_text(made)).line, one.price, ()


class Lines(QAbstractTableModel):
    """One row a line. `times` are seconds in this run, by line; empty while they are not known."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: Sequence[LineAsked] = ()
        self.times: Mapping[Line, float] = {}

    def show_lines(self, lines: Sequence[LineAsked]) -> None:
        """Other lines."""
        if lines and len(lines) == len(self.lines):
            self.lines = lines
            self.dataChanged.emit(self.index(0, 0), self.index(len(lines) - 1, AWAY))
        else:
            self.beginResetModel()
            self.lines = lines
            self.endResetModel()

    def show_times(self, times: Mapping[Line, float]) -> None:
        """How long each takes."""
        self.times = times
        if self.lines:
            self.dataChanged.emit(self.index(0, TIME), self.index(len(self.lines) - 1, TIME))

    def seconds(self, row: int) -> float | None:
        """How long a line takes in this run, None while that is not known."""
        line = self.lines[row].line
        return self.times.get(line) if line is not None else None

    def text(self, row: int, column: int) -> str:
        """What stands in a cell."""
        one = self.lines[row]
        if column == PRICE:
            return words.NONE if one.price is None else f"{one.price:g}"
        if column == TIME:
            seconds = self.seconds(row)
            return "" if seconds is None else f"~ {words.long(seconds)}"
        line = one.line
        if line is None:
            return one.text if column == LINE else ""
        if column == LINE:
            queue = units.line_text(line).partition(" queue ")[2]
            return words.line(line) + (f"  queue {queue}" if queue else "")
        if not line.limited:
            return words.NONE if column < PRICE else ""
        if column == LOSS:
            return f"{line.loss * 100:g}{words.NBSP}%"
        if column in (DELAY, JITTER):
            return f"{(line.delay_s if column == DELAY else line.jitter_s) * 1000:g}{words.NBSP}ms"
        return ""

    def typed(self, row: int, column: int) -> str:
        """What an editor begins with."""
        one = self.lines[row]
        if column == LINE:
            return units.line_text(one.line) if one.line is not None else one.text
        return "" if self.text(row, column) == words.NONE else self.text(row, column)

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.lines)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(HEADS)

    def flags(self, index: _Index) -> Qt.ItemFlag:
        plain = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return plain | Qt.ItemFlag.ItemIsEditable if index.column() in _EDITED else plain

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        return HEADS[section]

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row, column = index.row(), index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(row, column)
        if role == Qt.ItemDataRole.EditRole:
            return self.typed(row, column)
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return self._told(row, column)
        return None

    def _told(self, row: int, column: int) -> str:
        one = self.lines[row]
        name = one.text if one.line is None else words.line(one.line)
        if column == AWAY:
            return f"Remove {name} (Delete)"
        told = f"{name}, {HEADS[column]}: {self.text(row, column)}"
        return f"{told}. {one.trouble}" if one.trouble else told

    def copied(self) -> str:
        """The whole table as a table of tabs."""
        rows = [[self.text(r, c) for c in range(AWAY)] for r in range(self.rowCount())]
        return copying.table(HEADS[:AWAY], rows)


class _Header(QHeaderView):
    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._look = look
        self.setFixedHeight(HEADER)
        self.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        painter.save()
        painter.setFont(self._look.font(12, 600))
        painter.setPen(self._look.colour("text2"))
        painter.drawText(
            rect.adjusted(0, 0, -4 * (section > 0), 0), _RIGHT if section else _LEFT, HEADS[section]
        )
        painter.setPen(QPen(self._look.colour("hair"), 1))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        painter.restore()


class _Delegate(QStyledItemDelegate):
    """Paints a cell and edits it. Signals: `understood(sign, text)` while one types; `written(row, column, text)`."""

    understood = Signal(str, str)
    written = Signal(int, int, str)

    def __init__(self, look: Look, lines: Lines, view: LinesView) -> None:
        super().__init__(view)
        self._look, self._lines, self._view = look, lines, view
        self._at = (0, 0)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        editor = QLineEdit(parent)
        editor.setFont(self._look.font(13, 500 if index.column() == LINE else 400))
        editor.setAlignment(_LEFT if index.column() == LINE else _RIGHT)
        editor.setProperty("cell", True)
        self._at = (index.row(), index.column())
        name = words.line(line) if (line := self._lines.lines[index.row()].line) else "the line"
        editor.setAccessibleName(f"{HEADS[index.column()]} of {name}")
        editor.textEdited.connect(self._typing)
        return editor

    def setEditorData(self, editor: QWidget, index: _Index) -> None:
        if isinstance(editor, QLineEdit) and not editor.isModified():
            editor.setText(self._lines.typed(index.row(), index.column()))

    def setModelData(self, editor: QWidget, model: object, index: _Index) -> None:
        """Nothing: what was typed went out as `written`."""

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:
        box = QRect(option.rect)
        if index.column() == LINE:  # room for a line with all its parts
            box.setWidth(max(box.width(), 250))
            box.moveLeft(0)
        editor.setGeometry(box.adjusted(0, 0, 0, -1))

    def eventFilter(self, editor: QObject, event: QEvent) -> bool:
        if not isinstance(editor, QLineEdit):
            return False
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            key = event.key()
            if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._commit(editor)
                return True
            if key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
                if self._commit(editor):
                    self._view.edit_beside(1 if key == Qt.Key.Key_Tab else -1)
                return True
            if key == Qt.Key.Key_Escape:
                self._close(editor)
                self.understood.emit("", "")
                return True
        elif isinstance(event, QFocusEvent) and event.type() == QEvent.Type.FocusOut:
            if event.reason() == Qt.FocusReason.PopupFocusReason:
                return False
            if editor.isVisible() and not self._commit(editor):
                self._close(editor)  # the verdict stays, what was there holds
            return False
        return super().eventFilter(editor, event)

    def _commit(self, editor: QLineEdit) -> bool:
        """Take what is typed; False, and the verdict told, where it is wrong."""
        row, column = self._at
        if not editor.isModified():
            self._close(editor)
            return True
        try:
            changed(self._lines.lines[row], column, editor.text())
        except BadInput as error:
            editor.setProperty("wrong", True)
            editor.style().unpolish(editor)
            editor.style().polish(editor)
            self.understood.emit("trouble", f"{editor.accessibleName()}: {error}")
            return False
        except IndexError:  # the row went away meanwhile
            self._close(editor)
            return True
        text = editor.text()
        self.understood.emit("", "")
        self._close(editor)
        self.written.emit(row, column, text)
        return True

    def _close(self, editor: QLineEdit) -> None:
        editor.setModified(False)
        self.closeEditor.emit(editor, QAbstractItemDelegate.EndEditHint.NoHint)

    def _typing(self, text: str) -> None:
        row, column = self._at
        try:
            line, _, warnings = changed(self._lines.lines[row], column, text)
        except BadInput as error:
            self.understood.emit("", str(error) if text.strip() else "")
            return
        if warnings:
            self.understood.emit("warn", f"{warnings[0][:1].upper()}{warnings[0][1:]}.")
        elif column != PRICE:
            self.understood.emit("", typed.understood(line))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, lines = self._look, self._lines
        box, row, column = option.rect, index.row(), index.column()
        one, view = lines.lines[row], self._view
        if view.hovered == row:
            painter.fillRect(box, look.colour("canvas"))
        painter.setPen(QPen(look.colour("grid"), 1))
        painter.drawLine(box.bottomLeft(), box.bottomRight())
        if column == AWAY:
            hue = look.colour("text2")
            icons.draw(painter, "x", hue, QRectF(box.center().x() - 6, box.center().y() - 6, 13, 13))
        elif column == TIME:
            self._time(painter, box, row)
        else:
            bold, ink = column == LINE, "text" if column == LINE else "text2"
            painter.setFont(look.font(13, 500 if bold else 400))
            painter.setPen(look.colour("trouble" if one.line is None else ink))
            inner = box.adjusted(0, 0, -4, 0)
            text = painter.fontMetrics().elidedText(
                lines.text(row, column), Qt.TextElideMode.ElideRight, inner.width()
            )
            painter.drawText(inner, _LEFT if bold else _RIGHT, text)
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(look.colour("accent"), 2))
            painter.drawRoundedRect(box.adjusted(1, 2, -2, -3), 4, 4)
        painter.restore()

    def _time(self, painter: QPainter, box: QRect, row: int) -> None:
        look, lines = self._look, self._lines
        seconds = lines.seconds(row)
        if seconds is None:
            return
        longest = max(lines.times.values(), default=0.0) or 1.0
        track = box.width() - 36 - 96
        if track > 24:
            wide = max(3.0, track * seconds / longest)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.mixed(look.token("edge"), 0.45))
            painter.drawRoundedRect(QRectF(box.left() + 36, box.center().y() - 3.5, wide, 8), 2, 2)
        painter.setFont(look.font(12, 400))
        painter.setPen(look.colour("text3"))
        painter.drawText(box.adjusted(0, 0, -4, 0), _RIGHT, lines.text(row, TIME))


class LinesView(QTableView):
    """The table, as high as its rows.

    Signals: `written(row, column, text)` a cell was given another text, which is right; `moved(row, to)`;
    `removed(row)`; `understood(sign, text)` what is to be said of what is typed.
    """

    written = Signal(int, int, str)
    moved = Signal(int, int)
    removed = Signal(int)
    understood = Signal(str, str)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.lines = Lines()
        self.hovered = -1
        self._pressed: QPoint | None = None
        self._drop = -1
        self.setModel(self.lines)
        self._delegate = _Delegate(look, self.lines, self)
        self.setItemDelegate(self._delegate)
        self._delegate.written.connect(self.written)
        self._delegate.understood.connect(self.understood)
        self.setHorizontalHeader(_Header(look, self))
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.setShowGrid(False)
        self.setMouseTracking(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        triggers = QAbstractItemView.EditTrigger
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed | triggers.AnyKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabKeyNavigation(False)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Lines")
        self.setAccessibleDescription(
            "Enter edits, Delete removes, Alt with Up or Down puts in order, Ctrl C copies"
        )
        self.lines.modelReset.connect(self._shape)

    def show_lines(self, lines: Sequence[LineAsked]) -> None:
        """Other lines; the place of the keyboard stays."""
        at = self.currentIndex()
        row, column = at.row(), max(0, at.column())
        self.lines.show_lines(lines)
        if row >= 0 and lines:
            self.setCurrentIndex(self.lines.index(min(row, len(lines) - 1), column))
        self.viewport().update()

    def go(self, row: int, column: int = LINE) -> None:
        """Bring the keyboard's place to a cell."""
        if 0 <= row < self.lines.rowCount():
            self.setCurrentIndex(self.lines.index(row, column))

    def edit_beside(self, step: int) -> None:
        """Edit the next cell of the row, or the one before."""
        at = self.currentIndex()
        column = at.column() + step
        if column in _EDITED:
            self.go(at.row(), column)
            self.begin_edit()
        else:
            self.setFocus()

    def begin_edit(self) -> None:
        """Edit the cell where the keyboard is, unless one is being edited."""
        at = self.currentIndex()
        if at.isValid() and self.state() != QAbstractItemView.State.EditingState:
            self.edit(at, QAbstractItemView.EditTrigger.AllEditTriggers, None)

    def copy(self) -> None:
        """The table to the clipboard, as text and as a picture."""
        copying.put(self, self.copied())

    def copied(self) -> str:
        """The table as text."""
        return self.lines.copied()

    def _shape(self) -> None:
        self.setFixedHeight(HEADER + ROW * self.lines.rowCount() + 1)
        self._share_width()

    def _share_width(self) -> None:
        room = self.viewport().width()
        delay, jitter, loss, price = (92, 80, 68, 122) if room > 780 else (88, 66, 54, 104)
        first = 148 if room > 780 else 142
        long = max(
            (
                self.fontMetrics().horizontalAdvance(self.lines.text(row, LINE)) + 10
                for row in range(self.lines.rowCount())
            ),
            default=0,
        )
        first = max(first, min(long, room - delay - jitter - loss - price - 28 - 110))
        widths = [first, delay, jitter, loss, price]
        widths += [max(100, room - sum(widths) - 28), 28]
        for column, width in enumerate(widths):
            self.setColumnWidth(column, width)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        at, key = self.currentIndex(), event.key()
        alt = event.modifiers() == Qt.KeyboardModifier.AltModifier
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif alt and key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and at.isValid():
            to = at.row() + (1 if key == Qt.Key.Key_Down else -1)
            if 0 <= to < self.lines.rowCount():
                self.moved.emit(at.row(), to)
                self.go(to, at.column())
        elif key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and at.isValid():
            self.removed.emit(at.row())
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and at.isValid():
            if at.column() == AWAY:
                self.removed.emit(at.row())
            elif at.column() in _EDITED:
                self.begin_edit()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if not self.currentIndex().isValid():
            self.go(0)

    # dragging a row

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        at = self.indexAt(event.position().toPoint())
        left = event.button() == Qt.MouseButton.LeftButton
        self._pressed = event.position().toPoint() if left and at.isValid() else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = event.position().toPoint()
        row = self.rowAt(point.y())
        if row != self.hovered:
            self.hovered = row
            self.viewport().update()
        away = self.columnAt(point.x()) == AWAY
        self.viewport().setCursor(
            Qt.CursorShape.PointingHandCursor if away and row >= 0 else Qt.CursorShape.ArrowCursor
        )
        if self._pressed is None or not event.buttons() & Qt.MouseButton.LeftButton:
            super().mouseMoveEvent(event)
            return
        if abs(point.y() - self._pressed.y()) >= QApplication.startDragDistance() or self._drop >= 0:
            self._drop = max(0, min(self.lines.rowCount(), round(point.y() / ROW)))
            self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
            self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, drop = self._pressed, self._drop
        self._pressed, self._drop = None, -1
        self.viewport().update()
        if pressed is not None and drop >= 0:
            row = self.rowAt(pressed.y())
            to = drop - 1 if drop > row else drop
            if to != row:
                self.moved.emit(row, to)
                self.go(to)
            return
        super().mouseReleaseEvent(event)
        at = self.indexAt(event.position().toPoint())
        if pressed is not None and at.isValid() and at.column() == AWAY and self.indexAt(pressed) == at:
            self.removed.emit(at.row())

    def leaveEvent(self, event: QEvent) -> None:
        self.hovered = -1
        self.viewport().update()
        super().leaveEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._drop >= 0:
            painter = QPainter(self.viewport())
            painter.setPen(QPen(self._look.colour("accent"), 2))
            y = min(self._drop * ROW, self.viewport().height() - 1)
            painter.drawLine(0, y, self.viewport().width(), y)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the page scrolls

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_width()
