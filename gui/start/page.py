"""The page *Start*: the question; trying it here is the big card; then opening, and recent runs."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QSizePolicy, QWidget

from gui import words
from gui.theme import icons, marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Icon, Label, Said, column, emptied, row, rule
from lab.store import Head

_WIDTH = 1080
_UNDER = (
    "Measure it on your own machines: the same operations over the lines you choose, "
    "with the proxy and without."
)
_LAB = (
    "A profile (.toml) that names your server, proxy and clients, reached over SSH. "
    "Dropping it on this window does the same."
)
_RUN = "A .branchlab file, your own or a colleague’s. Dropping it on this window does the same."
_SIGNS = {"done": marks.OK, "stopped": marks.WARN, "failed": marks.TROUBLE}


class StartPage(QScrollArea):
    """Signals: `made()` hosts are wanted on this machine; `profile()` and `run()` one is to be opened;
    `recent(object)` the file of a run.
    """

    made = Signal()
    profile = Signal()
    run = Signal()
    recent = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._heads: list[tuple[Button, Head]] = []
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        body = QWidget()
        body.setObjectName("canvas")
        middle = QWidget()
        middle.setMaximumWidth(_WIDTH)
        inner = self._inner = column(middle, spacing=16, margins=(0, 44, 0, 32))
        inner.addWidget(Label(look, "A proxy, a wider line, or neither?", 32, 600))
        inner.addWidget(Label(look, _UNDER, 15, 400, "text2", wrap=True))
        inner.addSpacing(12)
        inner.addWidget(self._try(look))
        inner.addLayout(self._open(look))
        self._list_card = Card("bigcard", (18, 14, 16, 8))
        self._list_card.column.setSpacing(0)
        self._list = column(None, spacing=0)
        self._list_card.column.addWidget(Label(look, "Recent runs", 13, 600))
        self._list_card.column.addSpacing(8)
        self._list_card.column.addLayout(self._list)
        inner.addWidget(self._list_card)
        inner.addStretch(1)
        outer = row(body, margins=(24, 0, 24, 0))
        outer.addStretch(1)
        outer.addWidget(middle, 1000)
        outer.addStretch(1)
        self.setWidget(body)
        self._list_card.hide()

    def hold(self, banner: QWidget) -> None:
        """Take in the banner, over everything."""
        self._inner.insertWidget(0, banner)

    def show_runs(self, heads: Sequence[Head]) -> None:
        """The newest runs of this machine."""
        emptied(self._list)
        self._heads.clear()
        for number, head in enumerate(heads[:6]):
            if number:
                self._list.addWidget(rule())
            self._list.addLayout(self._entry(head))
        self._list_card.setVisible(bool(heads))

    def heads(self) -> list[Head]:
        """The runs that are listed."""
        return [head for _, head in self._heads]

    def busy(self, text: str) -> None:
        """What is being done meanwhile; an empty text when it is over."""
        self._make.setEnabled(not text)
        self._state.say(marks.BUSY if text else "", text)

    def _entry(self, head: Head) -> QHBoxLayout:
        look = self._look
        name = Button(look, head.experiment, "link", height=20)
        name.setFont(look.font(13, 600))
        name.setAccessibleName(f"Open {head.experiment}, {head.told}, {words.when(head.started)}")
        name.clicked.connect(self._pressed)
        self._heads.append((name, head))
        texts = column(None, name, Label(look, head.file.name, 12, 400, "text2"), spacing=1)
        when = Label(look, words.when(head.started), 12, 400, "text2")
        said = head.told
        if head.outcome != "done":
            said += f" at {head.finished} of {head.planned}"
        line = row(None, Icon(look, "chart-line-up", 18), spacing=14, margins=(0, 8, 0, 8))
        line.addLayout(texts, 1)
        line.addWidget(when)
        line.addWidget(Said(look, _SIGNS.get(head.outcome, marks.UNKNOWN), said, 12, 400, "text2"))
        return line

    def _pressed(self) -> None:
        for button, head in self._heads:
            if button is self.sender():
                self.recent.emit(head.file)
                return

    def _try(self, look: Look) -> QWidget:
        card = Card("bigcard", (24, 24, 24, 24))
        text = (
            "Three hosts are made here, with a real server, a real caching proxy and a line as narrow as "
            "you like. Nothing stays behind."
        )
        self._make = Button(look, "Make the hosts", "filled", icon="play", height=40)
        self._make.clicked.connect(self.made)
        self._state = Said(look, "", "", 12, 400, "text2")
        self._state.say("", "")
        texts = column(None, Label(look, "Try it on this machine", 20, 600), spacing=8)
        texts.addWidget(Label(look, text, 13, 400, "text2", wrap=True))
        texts.addStretch(1)
        texts.addLayout(row(None, self._make, self._state, -1, spacing=16))
        line = row(None, spacing=36)
        line.addLayout(texts, 5)
        line.addWidget(_Drawing(look), 7)
        card.column.addLayout(line)
        return card

    def _open(self, look: Look) -> QHBoxLayout:
        line = row(None, spacing=16)
        for icon, title, text, signal in (
            ("tree-structure", "Open a lab", _LAB, self.profile),
            ("folder-open", "Open a run", _RUN, self.run),
        ):
            card = Card("bigcard", (20, 18, 20, 18))
            square = QFrame()
            square.setObjectName("softsquare")
            square.setFixedSize(36, 36)
            row(square, Icon(look, icon, 18, "accent"), margins=(9, 9, 9, 9))
            press = Button(look, "Open …")
            press.setAccessibleName(title)
            press.clicked.connect(signal)
            card.column.addLayout(row(None, square, Label(look, title, 15, 600), -1, press, spacing=12))
            card.column.addWidget(Label(look, text, 13, 400, "text2", wrap=True))
            line.addWidget(card, 1)
        return line


class _Drawing(QWidget):
    """The lab in small: what is made when the button is pressed."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.setMinimumSize(360, 182)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Client and proxy in the office, one narrow line, the server far away")
        look.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        wide, high = float(self.width()), float(self.height())
        office, far = (
            QRectF(0.5, 0.5, wide * 0.5, high - 1),
            QRectF(wide * 0.77, 0.5, wide * 0.23 - 1, high - 1),
        )
        for zone, name in ((office, "office"), (far, "far away")):
            painter.setPen(QPen(look.colour("hair"), 1))
            painter.setBrush(look.colour("zone"))
            painter.drawRoundedRect(zone, 8, 8)
            painter.setPen(look.colour("text2"))
            painter.setFont(look.font(11, 600))
            painter.drawText(QPointF(zone.left() + 12, zone.top() + 20), name)
        line = high * 0.42
        router, client = QPointF(office.right() - 14, line), QRectF(16, line - 14, 48, 40)
        proxy = QRectF(office.center().x() + 4, high * 0.6, 48, 40)
        server = QRectF(far.left() + 42 if far.width() > 110 else far.left() + 26, line - 20, 48, 40)
        self._cable(painter, "client-server", [(client.right(), line), (router.x(), line)])
        middle = (client.right() + proxy.left()) / 2
        below = proxy.center().y()
        self._cable(
            painter,
            "client-proxy",
            [(client.right(), line + 11), (middle, line + 11), (middle, below), (proxy.left(), below)],
        )
        self._cable(
            painter, "proxy-server", [(proxy.right(), below), (router.x(), below), (router.x(), line)]
        )
        pipe = QRectF(router.x(), line - 9, server.left() - router.x(), 18)
        painter.setPen(QPen(look.colour("edge"), 1.2))
        painter.setBrush(look.colour("surface"))
        painter.drawRoundedRect(pipe, 5, 5)
        painter.drawEllipse(router, 8, 8)
        self._packets(painter, pipe)
        painter.setPen(look.colour("text2"))
        painter.setFont(look.font(11, 600))
        painter.drawText(pipe.translated(0, -24), Qt.AlignmentFlag.AlignCenter, "one narrow line")
        for box, icon in ((client, "desktop"), (proxy, "stack"), (server, "hard-drives")):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(0, 0, 0, 22))
            painter.drawRoundedRect(box.translated(0, 2), 7, 7)
            painter.setPen(QPen(look.colour("hair"), 1))
            painter.setBrush(look.colour("surface"))
            painter.drawRoundedRect(box, 7, 7)
            icons.draw(
                painter, icon, look.colour("text"), QRectF(box.center().x() - 9, box.center().y() - 9, 18, 18)
            )

    def _packets(self, painter: QPainter, pipe: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        for number in range(5):
            pair = ("client-server", "proxy-server")[number % 2]
            painter.setBrush(self._look.pair(pair))
            x = pipe.left() + pipe.width() * (number + 1) / 6
            painter.drawRoundedRect(QRectF(x - 5, pipe.center().y() - 3.5, 10, 7), 2, 2)

    def _cable(self, painter: QPainter, pair: str, corners: list[tuple[float, float]]) -> None:
        pen = QPen(self._look.pair(pair), 2.2)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline([QPointF(x, y) for x, y in corners])
