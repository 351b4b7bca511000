"""Where hosts, zones and line stand in a picture of a size. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF

SMALL = 620
"""A picture lower than this shows smaller cards."""
LARGE_CARD, SMALL_CARD, CHIP = 84.0, 57.0, 34.0
"""Heights of a client's card: with all that is known, with name and state, with its name and sign alone."""
_LEAST_CHIP = 26.0
_HEAD, _ADD = 54.0, 32.0


@dataclass(slots=True)
class Places:
    """Where everything stands. `area` is the whole, higher than the picture where there are more clients than fit."""

    area: QRectF
    office: QRectF
    far: QRectF
    clients: list[QRectF]
    proxy: QRectF | None
    server: QRectF | None
    router: QPointF
    pipe: QRectF
    bus: float
    """where the cables of clients go up and down"""
    router_card: QRectF | None = None
    add: QRectF | None = None
    small: bool = False
    """True where proxy and server are small cards too"""


def places(
    width: float,
    height: float,
    clients: int,
    *,
    proxy: bool,
    server: bool,
    router: bool = False,
    add: bool = False,
) -> Places:
    """Lay the picture out in a size: the more clients, the smaller their cards, at last in two columns."""
    small = height < SMALL
    edge, foot, head = 22.0, 56.0, 16.0 if small else 22.0
    office = QRectF(edge, head, width * 0.525 - edge, height - foot - head)
    far_left = width * 0.735
    card, gap, columns = _card(clients + add, office.height() - _HEAD - 10, small=small)
    other = SMALL_CARD if small else LARGE_CARD
    disc = QPointF(office.right() - 26, office.top() + office.height() * 0.45)
    proxy_w, proxy_h = min(168.0, office.width() * (0.38 if columns > 1 else 0.42)), 94.0 if small else 138.0
    proxy_box = QRectF(office.right() - proxy_w - 16, office.bottom() - proxy_h - 28, proxy_w, proxy_h)
    rows = -(-(clients + 1) // columns)
    left, top = office.left() + 17, office.top() + _HEAD
    card_w = min(190.0, office.width() * 0.44)
    if columns > 1:
        card_w = min(160.0, (proxy_box.left() - 22 - left - 8) / 2)
    if clients == 1:
        top = max(top, disc.y() - card - 60)
    boxes = [
        QRectF(left + n // rows * (card_w + 8), top + n % rows * (card + gap), card_w, card)
        for n in range(clients + 1)
    ]
    last = boxes.pop()
    add_box = last if columns > 1 else QRectF(left, last.top() - gap + 13, card_w, _ADD)
    right = max((box.right() for box in boxes), default=left)
    ends = proxy_box.left() if proxy else disc.x()
    server_w = min(190.0, width - edge - far_left - 34)
    server_box = QRectF(far_left + 20, disc.y() - other / 2, server_w, other)
    needed = max((box.bottom() for box in [*boxes, add_box] if add or box is not add_box), default=0.0)
    more = max(0.0, needed + 10 - office.bottom())
    office.setHeight(office.height() + more)
    router_w = min(158.0, office.right() - 10 - right - 24)
    return Places(
        area=QRectF(0, 0, width, height + more),
        office=office,
        far=QRectF(far_left, office.top(), width - edge - far_left, office.height()),
        clients=boxes,
        proxy=proxy_box if proxy else None,
        server=server_box if server else None,
        router=disc,
        pipe=QRectF(disc.x() + 14, disc.y() - 18, server_box.left() - disc.x() - 14, 36),
        bus=min(right + 60, (right + ends) / 2) - 5,
        router_card=QRectF(office.right() - 10 - router_w, disc.y() - 32 - SMALL_CARD, router_w, SMALL_CARD)
        if router
        else None,
        add=add_box if add else None,
        small=small,
    )


def _card(cards: int, room: float, *, small: bool) -> tuple[float, float, int]:
    """The height of a client's card, the gap below it, and the number of columns."""
    for card, gap in ((LARGE_CARD, 28.0), (SMALL_CARD, 13.0), (CHIP, 6.0)):
        if cards * (card + gap) - gap <= room and not (small and card == LARGE_CARD):
            return card, gap, 1
    each = room / -(-cards // 2)
    return min(CHIP, max(_LEAST_CHIP, each - 4)), 4.0, 2


def room_of(zone: QRectF) -> QRectF:
    """Where cards may be put in a zone: not on its head."""
    return zone.adjusted(8, 40, -8, -8)


def put(box: QRectF, room: QRectF, share: tuple[float, float]) -> QRectF:
    """A card of this size at a share of the room that is left for it, from 0 to 1."""
    across, down = max(0.0, room.width() - box.width()), max(0.0, room.height() - box.height())
    x, y = (min(1.0, max(0.0, one)) for one in share)
    return QRectF(room.left() + x * across, room.top() + y * down, box.width(), box.height())


def share_of(box: QRectF, room: QRectF) -> tuple[float, float]:
    """The share of the room at which a card is, from 0 to 1: `put` takes it there again."""
    across, down = max(1.0, room.width() - box.width()), max(1.0, room.height() - box.height())
    x, y = (box.left() - room.left()) / across, (box.top() - room.top()) / down
    return min(1.0, max(0.0, x)), min(1.0, max(0.0, y))
