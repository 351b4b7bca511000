"""What runs between each pair of hosts now, in figures under the legend of the picture."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from gui import words
from gui.theme.look import Look
from lab.palette import PAIR_DIRECTIONS, PAIR_NAMES

UNKNOWN = math.nan
"""In place of a rate that nobody knows now."""


class Rates(QGraphicsItem):
    """Download and upload of each pair while bytes arrive; nothing while none do."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._area = QRectF()
        self.texts: dict[str, str] = {}

    def place(self, area: QRectF) -> None:
        """Stand at the foot of the picture."""
        self.prepareGeometryChange()
        self._area = area

    def show_rates(self, rates: dict[str, float]) -> None:
        """Rates by direction, bit/s; `UNKNOWN` is one."""
        texts = {}
        for pair, (down, up) in PAIR_DIRECTIONS.items():
            if any(rates.get(one, 0.0) != 0 for one in (down, up)):
                texts[pair] = f"↓ {_told(rates.get(down, 0.0))}  ↑ {_told(rates.get(up, 0.0))} bit/s"
        if texts != self.texts:
            self.texts = texts
            self.update()

    def boundingRect(self) -> QRectF:
        return QRectF(self._area.left(), self._area.bottom() - 22, self._area.width(), 20)

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        look, x = self._look, self._area.left() + 50
        names = QFontMetricsF(look.font(12))
        painter.setFont(look.font(11))
        painter.setPen(look.colour("text2"))
        for pair, (name, where) in PAIR_NAMES.items():
            box = QRectF(x, self._area.bottom() - 21, 200, 18)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, self.texts.get(pair, ""))
            # As the legend above sets its names apart.
            x += names.horizontalAdvance(f"{name}, past the proxy" if "past" in where else name) + 48


def _told(rate: float) -> str:
    return words.NONE if math.isnan(rate) else words.rate(rate)
