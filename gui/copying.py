"""Ctrl C: what has the focus, or else what the mouse is on, goes to the clipboard as text and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtGui import QCursor, QGuiApplication, QImage, QStandardItemModel
from PySide6.QtWidgets import QApplication, QTableView, QWidget

SCALE = 2
"""A picture is so many times as large as on screen, to be sharp in a letter or on a slide."""


@runtime_checkable
class Copyable(Protocol):
    """A table or chart: `copied` is its text, tab separated with heads; nothing where there is nothing to copy."""

    def copied(self) -> str:
        """The text."""


def put(widget: QWidget, text: str) -> None:
    """Put a text and the widget's picture on the clipboard; whoever pastes takes the one that fits."""
    # Not `QMimeData()`: the clipboard outlives Python, and one that Python made then ends the program with a fault.
    model = QStandardItemModel(1, 1)
    both = model.mimeData([model.index(0, 0)])
    both.clear()
    if text:
        both.setText(text)
    both.setImageData(picture(widget))
    QGuiApplication.clipboard().setMimeData(both)


def picture(widget: QWidget) -> QImage:
    """The widget as it is seen, on its ground. What is scrolled out of sight is in its text only."""
    made = QImage(widget.size() * SCALE, QImage.Format.Format_ARGB32_Premultiplied)
    made.setDevicePixelRatio(SCALE)
    made.fill(widget.palette().base().color())
    widget.render(made)
    return made


def copy_here(window: QWidget) -> bool:
    """Copy what has the focus in this window, or what the mouse is on; False where neither can be copied."""
    for start in (QApplication.focusWidget(), window.childAt(window.mapFromGlobal(QCursor.pos()))):
        for widget in _around(start, window):
            if isinstance(widget, Copyable) and (text := widget.copied()):
                put(widget, text)
                return True
    return False


def _around(widget: QWidget | None, window: QWidget) -> Iterator[QWidget]:
    """The widget and what it stands in, inside out, but for the window itself."""
    while widget is not None and widget is not window:
        yield widget
        widget = widget.parentWidget()


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of tabs: what is inside a cell stays one cell."""
    return "\n".join("\t".join(" ".join(cell.split()) for cell in row) for row in [heads, *rows])


def of_view(view: QTableView, rows: Sequence[int] = ()) -> str:
    """A view's columns as they stand, without hidden ones; these rows, or all for none."""
    model = view.model()
    order = [view.horizontalHeader().logicalIndex(at) for at in range(model.columnCount())]
    columns = [column for column in order if not view.isColumnHidden(column)]
    heads = [_said(model.headerData(column, Qt.Orientation.Horizontal)) for column in columns]
    chosen = rows or range(model.rowCount())
    return table(heads, ([_cell(model, row, column) for column in columns] for row in chosen))


def _cell(model: QAbstractItemModel, row: int, column: int) -> str:
    return _said(model.index(row, column).data())


def _said(value: object) -> str:
    return "" if value is None else str(value)
