"""Where hosts, zones and line stand in a picture of a size. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF

SMALL = 620
"""A picture lower than this shows smaller cards."""


@dataclass(slots=True)
class Places:
    """Where everything stands in a picture of a size."""

    office: QRectF
    far: QRectF
    clients: list[QRectF]
    proxy: QRectF | None
    server: QRectF | None
    router: QPointF
    pipe: QRectF
    left_out: int = 0


def places(width: float, height: float, clients: int, *, proxy: bool, server: bool) -> Places:
    """Lay the picture out in a size. Clients that do not fit are left out and counted."""
    small = height < SMALL
    edge, foot = 22.0, 56.0
    office = QRectF(
        edge, 22 if not small else 16, width * 0.525 - edge, height - foot - (22 if not small else 16)
    )
    far_left = width * 0.735
    far = QRectF(far_left, office.top(), width - edge - far_left, office.height())
    card_w, card_h = min(190.0, office.width() * 0.44), 57.0 if small else 84.0
    router = QPointF(office.right() - 26, office.top() + office.height() * 0.45)
    proxy_w, proxy_h = min(168.0, office.width() * 0.42), 94.0 if small else 138.0
    proxy_box = QRectF(office.right() - proxy_w - 16, office.bottom() - proxy_h - 28, proxy_w, proxy_h)
    step = card_h + (13 if small else 28)
    fit = max(1, int((office.height() - 58) // step))
    shown = clients if clients <= fit else max(1, fit - 1)
    top = office.top() + 54
    if clients == 1:
        top = max(top, router.y() - card_h - 60)
    boxes = [QRectF(office.left() + 17, top + n * step, card_w, card_h) for n in range(shown)]
    server_w = min(190.0, far.width() - 34)
    server_box = QRectF(far.left() + 20, router.y() - card_h / 2, server_w, card_h)
    pipe = QRectF(router.x() + 14, router.y() - 18, server_box.left() - router.x() - 14, 36)
    return Places(
        office,
        far,
        boxes,
        proxy_box if proxy else None,
        server_box if server else None,
        router,
        pipe,
        clients - shown,
    )
