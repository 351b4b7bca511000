"""Where things are in the window, kept from one start to the next: size and place, zoom, columns of tables.

One small file in the data folder, `layout.json`. It is of no worth to anyone else: one that cannot be read is as none.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QGuiApplication, QRegion
from PySide6.QtWidgets import QWidget

from lab import store
from lab.errors import BadInput

_TITLE = 32
"""A window that is moved has its title bar in sight too, by which it can be moved again."""
log = logging.getLogger(__name__)


class Remembers(Protocol):
    """A part of the window that has something to keep. `remember` takes whatever a file holds, and keeps what fits."""

    def remembered(self) -> object:
        """What is to be kept."""

    def remember(self, kept: object) -> None:
        """What was kept."""


class Layout:
    """Puts a window and its parts as they were left, and keeps that."""

    def __init__(self, window: QWidget, parts: Mapping[str, Remembers]) -> None:
        self._window, self._parts = window, parts

    def restore(self) -> None:
        """As the file has it; what it does not have stays."""
        kept = _read()
        screens = [screen.availableGeometry() for screen in QGuiApplication.screens()]
        window = kept.get("window")
        window = window if isinstance(window, dict) else {}
        box = _box(window.get("box"))
        if box is not None:
            self._window.setGeometry(fitting(box, screens, self._window.minimumSize()))
        if window.get("maximised") is True:
            self._window.setWindowState(Qt.WindowState.WindowMaximized)
        for name, part in self._parts.items():
            if name in kept:
                part.remember(kept[name])

    def keep(self) -> None:
        """Write it; a folder that cannot be written is no reason not to close."""
        normal = self._window.normalGeometry()
        box = normal if normal.isValid() else self._window.geometry()
        held: dict[str, object] = {
            "window": {
                "box": [box.x(), box.y(), box.width(), box.height()],
                "maximised": self._window.isMaximized(),
            }
        }
        held |= {name: part.remembered() for name, part in self._parts.items()}
        try:
            file = _file()
            file.parent.mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(".new")
            partial.write_text(json.dumps(held, indent=1, ensure_ascii=False), "utf-8")
            partial.replace(file)
        except (OSError, BadInput) as error:
            log.warning("the layout was not kept: %s", error)


def fitting(box: QRect, screens: Sequence[QRect], least: QSize) -> QRect:
    """The box, or where part of it would be out of sight, the box moved (and made smaller) into one screen.

    The screen is the one that holds most of it; where its monitor is gone, the first.
    """
    seen = QRegion()
    for screen in screens:
        seen += QRegion(screen)
    if not screens or QRegion(box).subtracted(seen).isEmpty():
        return QRect(box.topLeft(), box.size().expandedTo(least))
    screen = max(screens, key=lambda one: _area(one.intersected(box)))
    screen = screen.adjusted(0, _TITLE, 0, 0)
    size = box.size().boundedTo(screen.size()).expandedTo(least)
    left = max(screen.left(), min(box.left(), screen.right() - size.width() + 1))
    top = max(screen.top(), min(box.top(), screen.bottom() - size.height() + 1))
    return QRect(left, top, size.width(), size.height())


def _area(box: QRect) -> int:
    return max(0, box.width()) * max(0, box.height())


def _box(value: object) -> QRect | None:
    if not isinstance(value, list) or len(value) != 4 or not all(type(one) is int for one in value):
        return None
    x, y, width, height = value
    small = all(abs(one) < 100_000 for one in value)
    return QRect(x, y, width, height) if small and width > 0 and height > 0 else None


def _file() -> Path:
    return store.data_folder() / "layout.json"


def _read() -> dict[str, object]:
    try:
        found = json.loads(_file().read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, BadInput) as error:  # the settings page tells what is wrong with settings
        log.warning("the layout begins anew: %s", error)
        return {}
    return found if isinstance(found, dict) else {}
