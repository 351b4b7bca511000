"""The page *Start*: the question; trying it here is the big card; then labs and runs, new, recent and published."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeySequence, QPainter, QPaintEvent, QPen, QResizeEvent, QShortcut
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QSizePolicy, QWidget

from gui import words
from gui.start.entries import Entry, ListCard, Removable
from gui.start.recovery import Recovery
from gui.theme import icons, marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Icon, Label, Said, column, row
from lab.draft import Recovered
from lab.recent import Recent
from lab.store import Head

_WIDTH = 1080
_PROFILES, _RUNS = 9, 6
"""So many of each are listed; the profiles have a key each."""
_SMALL = 760
"""Lower than that, the lists come up to where they are seen."""
_UNDER = (
    "Measure it on your own machines: the same operations over the lines you choose, "
    "with the proxy and without."
)
_LAB = (
    "Your server, proxy and clients, over SSH. Names can come from your SSH configuration or an Ansible "
    "inventory."
)
_RUN = "A .branchlab file, your own or a colleague’s. Dropping it on this window does the same."
_SIGNS = {"done": marks.OK, "stopped": marks.WARN, "failed": marks.TROUBLE}
_PUBLISHED = (
    (
        "published-2008",
        "TFS Proxy efficiency test, 2008",
        "six operations, six lines, four proxy states",
        "90 figures",
    ),
    ("bazaar-2008", "Bazaar smart push, 2008", "eight pushes over a long line, old against new", "8 figures"),
    (
        "sync-2013",
        "time cockpit synchronisation, 2013",
        "first sync, one at a time or many",
        "before / after",
    ),
    (
        "files-2011",
        "File handling on Windows, 2011",
        "creating, writing, renaming, deleting; 1 and 2 threads",
        "7 tests",
    ),
)
"""The sources of `lab.analysis.published`, as they are listed."""


class StartPage(QScrollArea):
    """Signals: `made()` hosts are wanted on this machine; `new_lab()` the wizard is; `profile()` and `run()` one is
    to be opened; `recent(object)` the file of a run; `known(object)` that of a profile which was open before;
    `forgotten(object)` one that is gone, to be taken out of the list; `published(object)` the name of published
    figures; `recovered(object)` and `thrown(object)` a `Recovered` to be opened, or not.
    """

    made = Signal()
    new_lab = Signal()
    profile = Signal()
    run = Signal()
    recent = Signal(object)
    known = Signal(object)
    forgotten = Signal(object)
    published = Signal(object)
    recovered = Signal(object)
    thrown = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._heads: list[tuple[Entry, Head]] = []
        self._profiles: list[tuple[Entry, Recent]] = []
        self._open_cards: list[Card] = []
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
        self.recovery = Recovery(look)
        self.recovery.wanted.connect(self.recovered)
        self.recovery.thrown.connect(self.thrown)
        inner.addWidget(self.recovery)
        inner.addWidget(self._try(look))
        inner.addLayout(self._open(look))
        inner.addLayout(self._lists(look))
        self._list_card = ListCard(look, "Recent runs")
        inner.addWidget(self._list_card)
        inner.addStretch(1)
        outer = row(body, margins=(24, 0, 24, 0))
        outer.addStretch(1)
        outer.addWidget(middle, 1000)
        outer.addStretch(1)
        self.setWidget(body)
        self._list_card.hide()
        for number in range(1, 10):
            QShortcut(QKeySequence(f"Ctrl+{number}"), self).activated.connect(partial(self._by_key, number))
        self.show_profiles(())

    def hold(self, banner: QWidget) -> None:
        """Take in the banner, over everything."""
        self._inner.insertWidget(0, banner)

    def show_runs(self, heads: Sequence[Head]) -> None:
        """The newest runs of this machine."""
        self._list_card.clear()
        self._heads.clear()
        for head in heads[:_RUNS]:
            said = f"{words.when(head.started)}   {head.told}"
            if head.outcome != "done":
                said += f" at {head.finished} of {head.planned}"
            sign = _SIGNS.get(head.outcome, marks.UNKNOWN)
            entry = Entry(self._look, "chart-line-up", head.experiment, head.file.name, said, sign)
            entry.setAccessibleName(f"Open {head.experiment}, {head.told}, {words.when(head.started)}")
            entry.clicked.connect(partial(self._emit, self.recent, head.file))
            self._heads.append((entry, head))
            self._list_card.add(entry)
        self._list_card.setVisible(bool(heads))

    def heads(self) -> list[Head]:
        """The runs that are listed."""
        return [head for _, head in self._heads]

    def show_profiles(self, profiles: Sequence[Recent]) -> None:
        """The profiles that were opened last, newest first; those that are gone can be taken out of the list."""
        look = self._look
        self._recent_card.clear()
        self._profiles.clear()
        for one in profiles[:_PROFILES]:
            self._recent_card.add(self._profile(one))
        known = len(self._profiles)
        self._recent_card.hint("" if not known else "Ctrl 1" if known == 1 else f"Ctrl 1 … {known}")
        name = "Open another profile" if profiles else "Open a profile"
        other = Entry(look, "folder-open", f"{name} …", "or drop a .toml file here", "Ctrl O")
        other.setAccessibleName(name)
        other.clicked.connect(self.profile)
        self.another = other
        self._recent_card.add(other)

    def profiles(self) -> list[Recent]:
        """The profiles that are listed and can be opened."""
        return [one for _, one in self._profiles]

    def offer_recovered(self, found: Sequence[Recovered]) -> None:
        """Offer what a crash left unsaved."""
        self.recovery.offer(found)

    def busy(self, text: str) -> None:
        """What is being done meanwhile; an empty text when it is over."""
        self._make.setEnabled(not text)
        self._state.say(marks.BUSY if text else "", text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        small = self.height() < self._look.px(_SMALL)
        top, below, gap, inside = (20, 16, 12, 18) if small else (44, 32, 16, 24)
        self._inner.setContentsMargins(0, top, 0, below)
        self._inner.setSpacing(gap)
        self._try_card.column.setContentsMargins(inside, inside, inside, inside)
        self._drawing.setMinimumHeight(138 if small else 182)
        for card in self._open_cards:
            card.column.setContentsMargins(20, gap, 20, gap)

    def _profile(self, one: Recent) -> QWidget:
        counts = f"{_counted(one.hosts, 'host')}, {_counted(one.experiments, 'experiment')}"
        if one.gone:
            gone = Entry(self._look, "file-x", one.name, str(one.path), "gone", marks.WARN)
            line = Removable(self._look, gone, one.name)
            line.removed.connect(partial(self._emit, self.forgotten, one.path))
            return line
        when = words.when(one.opened).partition(",")[0]
        entry = Entry(self._look, "buildings", one.name, f"{counts}; {one.path.name}", f"opened {when}")
        entry.setAccessibleName(f"Open {one.name}, {counts}, {one.path.name}")
        entry.setToolTip(str(one.path))
        entry.clicked.connect(partial(self._emit, self.known, one.path))
        self._profiles.append((entry, one))
        return entry

    def _by_key(self, number: int) -> None:
        if number <= len(self._profiles):
            self._profiles[number - 1][0].click()

    @staticmethod
    def _emit(signal: Signal, value: Path | str) -> None:
        signal.emit(value)

    def _lists(self, look: Look) -> QHBoxLayout:
        self._recent_card = ListCard(look, "Recent")
        self._published_card = ListCard(look, "Published runs, ready to read")
        self.published_entries: list[Entry] = []
        for name, title, under, count in _PUBLISHED:
            entry = Entry(look, "chart-line-up", title, under, count)
            entry.clicked.connect(partial(self._emit, self.published, name))
            self.published_entries.append(entry)
            self._published_card.add(entry)
        line = row(None, spacing=16)
        line.addWidget(self._recent_card, 1)
        line.addWidget(self._published_card, 1)
        return line

    def _try(self, look: Look) -> QWidget:
        card = self._try_card = Card("bigcard", (24, 24, 24, 24))
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
        self._drawing = _Drawing(look)
        line.addWidget(self._drawing, 7)
        card.column.addLayout(line)
        return card

    def _open(self, look: Look) -> QHBoxLayout:
        line = row(None, spacing=16)
        for icon, title, text, signal in (
            ("tree-structure", "New lab", _LAB, self.new_lab),
            ("folder-open", "Open a run", _RUN, self.run),
        ):
            card = Card("bigcard", (20, 18, 20, 18))
            self._open_cards.append(card)
            square = QFrame()
            square.setObjectName("softsquare")
            square.setFixedSize(36, 36)
            row(square, Icon(look, icon, 18, "accent"), margins=(9, 9, 9, 9))
            press = Button(look, "New lab …" if signal is self.new_lab else "Open …")
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
        painter.drawPath(marks.rounded(corners, 8))


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")
