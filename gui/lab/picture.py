"""The picture of the lab: office, line, far away; cables live while bytes arrive. A QGraphicsView."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QFrame, QGraphicsScene, QGraphicsView

from gui.lab.facts import ROLE_NAMES, HostShown, Shown
from gui.lab.items import THE_LINE, Dots, Ground, HostCard, Pipe
from gui.lab.places import SMALL, places
from gui.lab.rates import Rates
from gui.theme.look import Look
from lab.model import Role

_LEAST, _MOST = 0.5, 2.0
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Right: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_Left: -1}


class Picture(QGraphicsView):
    """Signals: `chosen(object)` the name of a host, `THE_LINE`, or an empty text for nothing; `entered()` by Enter,
    to what is beside the picture; `zoomed()`.
    """

    chosen = Signal(object)
    entered = Signal()
    zoomed = Signal()

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
        self._dots = Dots(look)
        self._ground = Ground(look)
        self._pipe = Pipe(look, self.select)
        self._cards: list[HostCard] = []
        self._scene.addItem(self._dots)
        self._scene.addItem(self._ground)
        self._scene.addItem(self._pipe)
        self.rates = Rates(look)
        self._scene.addItem(self.rates)
        look.changed.connect(self._scene.update)

    @property
    def scale_percent(self) -> int:
        """How large it is drawn."""
        return round(self._scale * 100)

    def show_lab(self, shown: Shown) -> None:
        """Hosts and line as they are known now."""
        if shown == self._shown:
            return
        again = [(h.name, h.role) for h in shown.hosts] != [(h.name, h.role) for h in self._shown.hosts]
        self._shown = shown
        if again or not self._cards:
            self._arrange()
        for card, host in zip(self._cards, self._ordered(), strict=False):
            card.show_host(host, shown.cache, shown.cache_word)
        self._ground.show_lab(shown)
        self._pipe.show_line(shown.line)
        self._describe()

    def show_traffic(self, rates: dict[str, float], host: str) -> None:
        """Rates by direction in bit/s, and the client that works now."""
        self._pipe.show_rates(rates)
        self._ground.show_rates(rates, host)
        self.rates.show_rates(rates)

    def select(self, name: str) -> None:
        """Select a host, the line or nothing; tells."""
        self._selected = name
        for card in self._cards:
            card.mark(card.host.name == name)
        self._pipe.mark(name == THE_LINE)
        self.chosen.emit(name)

    def zoom(self, factor: float) -> None:
        """Larger or smaller; 0 for as large as designed."""
        self._scale = 1.0 if factor == 0 else min(_MOST, max(_LEAST, self._scale * factor))
        self.resetTransform()
        self.scale(self._scale, self._scale)
        self.zoomed.emit()

    def remembered(self) -> object:
        """How large it is drawn, in per cent."""
        return self.scale_percent

    def remember(self, kept: object) -> None:
        """Draw it so large again."""
        if type(kept) is int and _LEAST <= kept / 100 <= _MOST:
            self.zoom(0)
            self.zoom(kept / 100)

    def _ordered(self) -> list[HostShown]:
        clients = [host for host in self._shown.hosts if host.role is Role.CLIENT]
        kept = clients[: len(clients) - self._ground.places.left_out] if self._ground.places else clients
        first = {role: next((h for h in self._shown.hosts if h.role is role), None) for role in Role}
        return kept + [host for role in (Role.PROXY, Role.SERVER) if (host := first[role]) is not None]

    def _arrange(self) -> None:
        for card in self._cards:
            self._scene.removeItem(card)
        hosts = self._shown.hosts
        area = self.viewport().size()
        width, height = max(560, area.width()), max(380, area.height())
        self._scene.setSceneRect(0, 0, width, height)
        placed = places(
            width,
            height,
            sum(host.role is Role.CLIENT for host in hosts),
            proxy=any(host.role is Role.PROXY for host in hosts),
            server=any(host.role is Role.SERVER for host in hosts),
        )
        self._dots.place(QRectF(0, 0, width, height))
        self._ground.place(placed, QRectF(0, 0, width, height))
        self._pipe.place(placed)
        self.rates.place(QRectF(0, 0, width, height))
        boxes = placed.clients + [box for box in (placed.proxy, placed.server) if box is not None]
        self._cards = []
        for host, box in zip(self._ordered(), boxes, strict=False):
            card = HostCard(self._look, self.select, host, box, small=height < SMALL)
            card.show_host(host, self._shown.cache, self._shown.cache_word)
            card.mark(host.name == self._selected)
            self._scene.addItem(card)
            self._cards.append(card)

    def _describe(self) -> None:
        told = [f"{host.name}, {ROLE_NAMES[host.role]}: {host.word}" for host in self._shown.hosts]
        self.setAccessibleDescription("; ".join([*told, f"the line: {self._shown.line.word}"]))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        names = [card.host.name for card in self._cards] + [THE_LINE]
        step = _STEPS.get(Qt.Key(event.key()))
        if step is not None and names:
            at = names.index(self._selected) + step if self._selected in names else 0
            self.select(names[at % len(names)])
        elif event.key() in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(1.1)
        elif event.key() == Qt.Key.Key_Minus:
            self.zoom(1 / 1.1)
        elif event.key() == Qt.Key.Key_0:
            self.zoom(0)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._selected:
            self.entered.emit()
        elif event.key() == Qt.Key.Key_Escape:
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

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.itemAt(event.position().toPoint()) in (None, self._ground, self._dots):
            self.select("")
        super().mousePressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
        self._describe()
