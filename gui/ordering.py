"""Rows of a table as a person wants them: by the value of a column, either way, and only those with some words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPolygonF
from PySide6.QtWidgets import QHeaderView

Row = TypeVar("Row")
Value = float | str | None
UNSORTED = -1


def by_value(rows: Iterable[Row], value: Callable[[Row], Value], *, falling: bool) -> list[Row]:
    """Rows in the order of a value, alike ones as they were; those without one come last, whichever way."""
    listed = list(rows)
    have = [row for row in listed if value(row) is not None]
    none = [row for row in listed if value(row) is None]
    return sorted(have, key=lambda row: _key(value(row)), reverse=falling) + none


def _key(value: Value) -> tuple[int, float, str]:
    return (1, 0.0, value.casefold()) if isinstance(value, str) else (0, value or 0.0, "")


def has_words(cells: Sequence[str], wanted: str) -> bool:
    """True if every word wanted is somewhere in these cells."""
    text = " ".join(" ".join(cells).split()).casefold()
    return all(word in text for word in wanted.casefold().split())


def sortable(header: QHeaderView) -> None:
    """A press on a head sorts by it, the next one the other way, the third as it was."""
    header.setSectionsClickable(True)
    header.setHighlightSections(False)
    header.setSortIndicatorClearable(True)
    header.setSortIndicator(UNSORTED, Qt.SortOrder.AscendingOrder)
    header.setSortIndicatorShown(True)


def turn(header: QHeaderView, column: int) -> None:
    """What a press on a head does, for the keyboard."""
    rising, falling = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
    if header.sortIndicatorSection() != column:
        header.setSortIndicator(column, rising)
    elif header.sortIndicatorOrder() == rising:
        header.setSortIndicator(column, falling)
    else:
        header.setSortIndicator(UNSORTED, rising)


def draw_order(painter: QPainter, header: QHeaderView, box: QRect, section: int, ink: QColor) -> None:
    """A small triangle under the head by which is sorted: up for the least first."""
    if header.sortIndicatorSection() != section:
        return
    up = header.sortIndicatorOrder() == Qt.SortOrder.AscendingOrder
    x, base = box.center().x(), box.bottom() - 2
    foot, top = (base, base - 4) if up else (base - 4, base)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ink)
    painter.drawPolygon(QPolygonF([QPointF(x - 4, foot), QPointF(x + 4, foot), QPointF(x, top)]))
