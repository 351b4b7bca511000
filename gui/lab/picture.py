"""The picture of the lab: office, line, far away; cables live while bytes arrive. A QGraphicsView."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QGraphicsScene, QGraphicsView

from gui.lab.add_card import ADD, AddCard
from gui.lab.facts import ROLE_NAMES, HostShown, Shown
from gui.lab.host_card import HostCard
from gui.lab.items import THE_LINE, Dots, Ground, Pipe
from gui.lab.places import Places, places, put, room_of, share_of
from gui.lab.rates import Rates
from gui.theme.look import Look
from lab.model import Role

_LEAST, _MOST = 0.25, 2.0
_LABS_KEPT = 20
_STEP = 8
_MOVES = {
    Qt.Key.Key_Down: QPointF(0, 1),
    Qt.Key.Key_Up: QPointF(0, -1),
    Qt.Key.Key_Right: QPointF(1, 0),
    Qt.Key.Key_Left: QPointF(-1, 0),
}
Share = tuple[float, float]


class Picture(QGraphicsView):
    """Hosts are pressed, dragged, and gone through by Tab; arrows move the one where the keyboard is.

    Signals: `chosen(object)` the name of a host, `THE_LINE`, or an empty text for nothing; `entered()` by Enter, to
    what is beside the picture; `zoomed()`; `asked(object, object)` what can be done with one of these is wanted, and
    where on the screen; `added()` one more client; `removed(object)`, `duplicated(object)`, `renamed(object)` a host
    is to be, by a key.
    """

    chosen = Signal(object)
    entered = Signal()
    zoomed = Signal()
    asked = Signal(object, object)
    added = Signal()
    removed = Signal(object)
    duplicated = Signal(object)
    renamed = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._scene = QGraphicsScene(self)
        self.setScene(self._scene)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.AnchorUnderMouse)
        self.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.MinimalViewportUpdate)
        self.setAccessibleName("Picture of the lab")
        self._shown = Shown()
        self._selected, self._scale = "", 1.0
        self._current, self._keys = "", False
        self._editable = False
        self._shares: dict[str, dict[str, Share]] = {}
        """by lab and host, where hosts were put, as shares of the room that there is"""
        self._places: Places | None = None
        self._dots = Dots(look)
        self._ground = Ground(look)
        self._pipe = Pipe(look, self._press)
        self._cards: dict[str, HostCard] = {}
        self._add: AddCard | None = None
        self._scene.addItem(self._dots)
        self._scene.addItem(self._ground)
        self._scene.addItem(self._pipe)
        self.rates = Rates(look)
        self._scene.addItem(self.rates)
        look.changed.connect(self._recolour)

    # what the page asks for

    @property
    def scale_percent(self) -> int:
        """How large it is drawn."""
        return round(self._scale * 100)

    @property
    def current(self) -> str:
        """Where the keyboard is: a host, `THE_LINE`, `ADD`, or an empty text."""
        return self._current

    @property
    def moved(self) -> Mapping[str, Share]:
        """The hosts of this lab that were put elsewhere."""
        return self._shares.get(self._shown.key, {})

    def allow(self, editable: bool) -> None:
        """Whether hosts can be added and taken out now."""
        if editable != self._editable:
            self._editable = editable
            self._arrange()

    def show_lab(self, shown: Shown) -> None:
        """Hosts and line as they are known now."""
        if shown == self._shown:
            return
        again = [(h.name, h.role) for h in shown.hosts] != [(h.name, h.role) for h in self._shown.hosts]
        again = again or shown.key != self._shown.key
        self._shown = shown
        if again or not self._cards:
            self._arrange()
        for host in shown.hosts:
            if host.name in self._cards:
                self._cards[host.name].show_host(host, shown.cache, shown.cache_word)
        self._ground.show_lab(shown)
        self._pipe.show_line(shown.line, shared=shown.shared)
        self._describe()

    def show_traffic(self, rates: dict[str, float], host: str) -> None:
        """Rates by direction in bit/s, and the client that works now."""
        self._pipe.show_rates(rates)
        self._ground.show_rates(rates, host)
        self.rates.show_rates(rates)

    def select(self, name: str) -> None:
        """Select a host, the line or nothing; tells."""
        self._selected = name
        self._current = name
        self._mark()
        self.chosen.emit(name)

    def point(self, name: str) -> QPoint:
        """The middle of a host, of `THE_LINE` or of `ADD` on the screen."""
        return self.viewport().mapToGlobal(self.mapFromScene(self._box(name).center()))

    def place(self, name: str, at: QPointF) -> None:
        """Put a host with its upper left corner there, or as near as its zone allows."""
        card = self._cards.get(name)
        if card is not None and self._places is not None:
            room = room_of(self._zone(card.host.role))
            box = QRectF(at, card.box.size())
            self._shares.setdefault(self._shown.key, {})[name] = share_of(box, room)
            card.setPos(put(box, room, self.moved[name]).topLeft())
            self._place_cables()

    def put_back(self, name: str = "") -> None:
        """Have a host stand where it stands by itself again; all of them for an empty name."""
        kept = self._shares.get(self._shown.key, {})
        if name:
            kept.pop(name, None)
        else:
            kept.clear()
        self._arrange()

    def follow(self, old: str, new: str) -> None:
        """A host has another name: it stays selected, and where it was put."""
        kept = self._shares.get(self._shown.key, {})
        if old in kept:
            kept[new] = kept.pop(old)
        if self._selected == old:
            self.select(new)

    def zoom(self, factor: float) -> None:
        """Larger or smaller; 0 for all of it, and as large as designed where that fits."""
        if factor == 0:
            high, room = self._scene.height(), self.viewport().height()
            self._scale = max(_LEAST, min(1.0, room / high if high else 1.0))
        else:
            self._scale = min(_MOST, max(_LEAST, self._scale * factor))
        self.resetTransform()
        self.scale(self._scale, self._scale)
        self.zoomed.emit()

    def _recolour(self) -> None:
        # Not the scene's own `update`: items that are kept once painted would stay as they are.
        for item in self._scene.items():
            item.update()

    def remembered(self) -> object:
        """How large it is drawn, in per cent; and where hosts were put, by lab."""
        kept = {key: shares for key, shares in self._shares.items() if shares}
        newest = dict(list(kept.items())[-_LABS_KEPT:])
        return {"percent": self.scale_percent, "places": newest}

    def remember(self, kept: object) -> None:
        """Draw it so large, and put hosts there again."""
        percent = kept.get("percent") if isinstance(kept, dict) else kept
        if type(percent) is int and _LEAST <= percent / 100 <= _MOST:
            self._scale = percent / 100
            self.zoom(1)
        labs = kept.get("places") if isinstance(kept, dict) else None
        for key, hosts in labs.items() if isinstance(labs, dict) else ():
            for name, share in hosts.items() if isinstance(hosts, dict) else ():
                if (
                    isinstance(share, list)
                    and len(share) == 2
                    and all(type(n) in (int, float) for n in share)
                ):
                    self._shares.setdefault(key, {})[name] = (float(share[0]), float(share[1]))
        self._arrange()

    # laying out

    def _ordered(self) -> list[HostShown]:
        """Clients, then the one host of each other role."""
        clients = [host for host in self._shown.hosts if host.role is Role.CLIENT]
        first = [
            next((h for h in self._shown.hosts if h.role is role), None)
            for role in (Role.PROXY, Role.ROUTER, Role.SERVER)
        ]
        return clients + [host for host in first if host is not None]

    def _arrange(self) -> None:
        for card in self._cards.values():
            self._scene.removeItem(card)
        if self._add is not None:
            self._scene.removeItem(self._add)
        area = self.maximumViewportSize()
        placed = self._laid_out(area.width(), area.height())
        if placed.area.height() > area.height():  # beside the scroll bar that it takes then
            placed = self._laid_out(area.width() - self.verticalScrollBar().sizeHint().width(), area.height())
        self._places = placed
        self._scene.setSceneRect(placed.area)
        self._make_cards(placed)
        self._add = None
        if placed.add is not None:
            self._add = AddCard(self._look, self._add_soon, placed.add)
            self._scene.addItem(self._add)
        self._place_cables()
        self._mark()

    def _add_soon(self) -> None:
        # Not at once: the card that was pressed is made anew by what follows, and is still at work here.
        QTimer.singleShot(0, self, self.added.emit)

    def _laid_out(self, width: int, height: int) -> Places:
        roles = [host.role for host in self._shown.hosts]
        return places(
            max(560, width),
            max(380, height),
            roles.count(Role.CLIENT),
            proxy=Role.PROXY in roles,
            server=Role.SERVER in roles,
            router=Role.ROUTER in roles,
            add=self._editable,
        )

    def _make_cards(self, placed: Places) -> None:
        others = {Role.PROXY: placed.proxy, Role.ROUTER: placed.router_card, Role.SERVER: placed.server}
        clients = iter(placed.clients)
        self._cards = {}
        for host in self._ordered():
            box = next(clients) if host.role is Role.CLIENT else others[host.role]
            if box is None:
                continue
            if host.name in self.moved:
                box = put(box, room_of(self._zone(host.role)), self.moved[host.name])
            small = box.height() < 84 or (placed.small and host.role is Role.PROXY)
            card = HostCard(self._look, self._press, self.place, host, box, small=small)
            card.show_host(host, self._shown.cache, self._shown.cache_word)
            self._scene.addItem(card)
            self._cards[host.name] = card
        router = next((host.name for host in self._ordered() if host.role is Role.ROUTER), "")
        self._pipe.show_router(router)

    def _place_cables(self) -> None:
        """Cables and the line, as the cards stand."""
        placed = self._places
        if placed is None:
            return
        boxes = {role: [c.box for c in self._cards.values() if c.host.role is role] for role in Role}
        placed.clients = boxes[Role.CLIENT]
        placed.proxy = next(iter(boxes[Role.PROXY]), None)
        placed.server = next(iter(boxes[Role.SERVER]), None)
        self._dots.place(placed.area)
        self._ground.place(placed, placed.area)
        self._pipe.place(placed)
        self.rates.place(placed.area)

    def _zone(self, role: Role) -> QRectF:
        if self._places is None:
            return QRectF()
        return self._places.far if role is Role.SERVER else self._places.office

    def _box(self, name: str) -> QRectF:
        if name in self._cards:
            return self._cards[name].box
        if name == ADD and self._places is not None and self._places.add is not None:
            return self._places.add
        return self._places.pipe if name == THE_LINE and self._places is not None else QRectF()

    # marking

    def _mark(self) -> None:
        ring = self._keys and self.hasFocus()
        for name, card in self._cards.items():
            card.mark(name == self._selected)
            card.ring(ring and name == self._current)
        self._pipe.mark(self._selected == THE_LINE)
        self._pipe.ring(ring and self._current == THE_LINE)
        if self._add is not None:
            self._add.ring(ring and self._current == ADD)
        self._describe()

    def _describe(self) -> None:
        told = [f"{host.name}, {ROLE_NAMES[host.role]}: {host.word}" for host in self._shown.hosts]
        here = {THE_LINE: "the line", ADD: "add a client"}.get(self._current, self._current)
        at = [f"at {here}"] if here else []
        self.setAccessibleDescription("; ".join([*at, *told, f"the line: {self._shown.line.word}"]))

    def _press(self, name: str) -> None:
        self._keys = False
        self.select(name)

    def _stops(self) -> list[str]:
        """What Tab goes through, in reading order."""
        line = [THE_LINE] if self._cards else []
        return [*self._cards, *line, *([ADD] if self._add is not None else [])]

    def _go(self, name: str) -> None:
        self._current, self._keys = name, True
        self._mark()
        if name:
            self.ensureVisible(self._box(name), 20, 20)

    def _move(self, key: Qt.Key, step: int) -> None:
        if self._current in self._cards:
            self.place(self._current, self._cards[self._current].pos() + _MOVES[key] * step)
            self.ensureVisible(self._box(self._current), 20, 20)
        elif not self._current and self._stops():
            self._go(self._stops()[0])

    def _do(self, name: str) -> None:
        """Enter: what is there is shown beside, and the keyboard goes there."""
        if name == ADD:
            self.added.emit()
        elif name:
            self.select(name)
            self.entered.emit()

    # Qt's

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002 (Qt's name)
        stops = self._stops()
        at = stops.index(self._current) if self._current in stops else (-1 if next else len(stops))
        to = at + (1 if next else -1)
        if 0 <= to < len(stops):
            self._go(stops[to])
            return True
        return super().focusNextPrevChild(next)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        stops = self._stops()
        if stops and event.reason() == Qt.FocusReason.TabFocusReason:
            self._go(stops[0])
        elif stops and event.reason() == Qt.FocusReason.BacktabFocusReason:
            self._go(stops[-1])
        elif event.reason() == Qt.FocusReason.ShortcutFocusReason:
            self._go(self._current or next(iter(stops), ""))
        else:
            self._mark()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._mark()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, here = Qt.Key(event.key()), self._current
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        host = here if here in self._cards else ""
        if key in _MOVES:
            self._keys = True
            self._move(key, 1 if modifiers & Qt.KeyboardModifier.ShiftModifier else _STEP)
            self._mark()
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(1.1)
        elif key == Qt.Key.Key_Minus:
            self.zoom(1 / 1.1)
        elif key == Qt.Key.Key_0:
            self.zoom(0)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and here:
            self._do(here)
        elif key == Qt.Key.Key_Space and here and here != ADD:
            self.select(here)
        elif key == Qt.Key.Key_Insert and self._editable:
            self.added.emit()
        elif key == Qt.Key.Key_Delete and host and self._editable:
            self.removed.emit(host)
        elif key == Qt.Key.Key_F2 and host and self._editable:
            self.renamed.emit(host)
        elif (
            key == Qt.Key.Key_D
            and modifiers == Qt.KeyboardModifier.ControlModifier
            and host
            and self._editable
        ):
            self.duplicated.emit(host)
        elif key == Qt.Key.Key_Escape and (self._selected or here):
            self.select("")
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            if event.angleDelta().y():
                self.zoom(1.1 if event.angleDelta().y() > 0 else 1 / 1.1)
            event.accept()
        else:
            super().wheelEvent(event)

    def _at(self, place: QPoint) -> str:
        item = self.itemAt(place)
        if isinstance(item, HostCard):
            return item.host.name
        if isinstance(item, Pipe):
            return item.at(item.mapFromScene(self.mapToScene(place)))
        return ADD if isinstance(item, AddCard) else ""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self._at(event.position().toPoint()) and event.button() == Qt.MouseButton.LeftButton:
            self.select("")
        super().mousePressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            name = self._current or self._selected
            self.asked.emit(
                "" if name == ADD else name, self.point(name) if name else self.mapToGlobal(QPoint(40, 40))
            )
        else:
            name = self._at(event.pos())
            if name not in ("", ADD):
                self._press(name)
            self.asked.emit("" if name == ADD else name, event.globalPos())
        event.accept()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
