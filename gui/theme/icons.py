"""Phosphor's regular icons as painter paths, read straight from the font that qtawesome ships.

Importing qtawesome itself costs 0.2 s and loads a dozen fonts; one outline of one font is all that is needed.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPainterPath, QPixmap, QRawFont, QTransform

_EM = 256.0


@cache
def path(name: str) -> QPainterPath:
    """The outline of an icon in a square of size 1 with its origin at the top left; empty if unknown."""
    font, codes = _font()
    code = codes.get(name)
    if font is None or code is None:
        return QPainterPath()
    glyphs = font.glyphIndexesForString(chr(int(code, 16)))
    if not glyphs:
        return QPainterPath()
    outline = font.pathForGlyph(glyphs[0])
    return QTransform.fromTranslate(0, 1).scale(1 / _EM, 1 / _EM).map(outline)


def draw(painter: QPainter, name: str, hue: QColor, box: QRectF) -> None:
    """Paint an icon into a square."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(box.topLeft())
    painter.scale(box.width(), box.height())
    painter.fillPath(path(name), hue)
    painter.restore()


def icon(name: str, hue: str, off: str = "", size: int = 18) -> QIcon:
    """A QIcon in one colour, and another one where the control is off; crisp up to 300 %."""
    made = QIcon()
    for mode, colour in ((QIcon.Mode.Normal, hue), (QIcon.Mode.Disabled, off or hue)):
        for scale in (1, 2, 3):
            pixmap = QPixmap(QSize(size * scale, size * scale))
            pixmap.fill(Qt.GlobalColor.transparent)
            painter = QPainter(pixmap)
            draw(painter, name, QColor(colour), QRectF(QPointF(0, 0), QPointF(size * scale, size * scale)))
            painter.end()
            pixmap.setDevicePixelRatio(scale)
            made.addPixmap(pixmap, mode)
    return made


@cache
def _font() -> tuple[QRawFont | None, dict[str, str]]:
    found = importlib.util.find_spec("qtawesome")
    for place in (found.submodule_search_locations or ()) if found else ():
        for file in sorted((Path(place) / "fonts").glob("phosphor-[0-9]*.ttf")):
            for codes in file.parent.glob("phosphor-charmap-*.json"):
                return QRawFont(str(file), _EM), json.loads(codes.read_text("utf-8"))
    return None, {}
