"""Where the keyboard goes next, part by part."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget


def next_part(parts: Sequence[QWidget]) -> None:
    """Bring the focus to the first place in the visible part after the one that has it, round and round."""
    seen = [part for part in parts if part.isVisible()]
    focus = QApplication.focusWidget()
    inside = [part for part in seen if focus is not None and (part is focus or part.isAncestorOf(focus))]
    at = seen.index(inside[-1]) if inside else -1
    first = first_in(seen[(at + 1) % len(seen)])
    if first is not None:
        first.setFocus(Qt.FocusReason.ShortcutFocusReason)


def first_in(part: QWidget) -> QWidget | None:
    """The first widget inside that takes the focus by Tab."""
    for widget in part.findChildren(QWidget):
        takes = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if takes and widget.isVisible() and widget.isEnabled():
            return widget
    return None
