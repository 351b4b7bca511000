"""The page *Compare*: two runs chosen, what came out as title, every cell as a dumbbell, and what differs beside it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget

from gui import copying, words
from gui.compare.table import Changes, ChangesView, Dot
from gui.theme.look import Look
from gui.widgets.basic import (
    Button,
    Card,
    Choice,
    Elided,
    Empty,
    IconButton,
    Label,
    Segments,
    column,
    emptied,
    row,
    rule,
)
from gui.widgets.frame import Head
from lab.analysis.two_runs import Compared, Differs, Foretold
from lab.model import OPERATION_NAMES
from lab.store import Head as RunHead

_SIDE, _WIDEST = 300, 16_777_215
_ORDERS = ("as measured", "biggest change")
_PUBLISHED = {"published-2008": "TFS Proxy efficiency test, 2008 (published)"}
_NONE_YET = "Two runs are held against each other here, cell by cell; or a run against published figures."


class ComparePage(QWidget):
    """Shows two runs.

    Signals: `wanted(str, str)` names of the runs to hold against each other; `opened()` a run file is wanted.
    """

    wanted = Signal(str, str)
    opened = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.compared: Compared | None = None
        self._names: list[str] = []
        self._labels: list[str] = []
        self.head = Head(look)
        self.copy = Button(look, "Copy", "filled", icon="copy")
        self.copy.clicked.connect(self._copy)
        self.head.buttons.addWidget(self.copy)
        self._empty = Empty(look, "arrows-left-right", "No run to compare yet", _NONE_YET, "Open a run …")
        self._empty.pressed.connect(self.opened)
        self._body = QWidget()
        inner = self._inner = column(self._body, spacing=12)
        inner.addLayout(self._build_choices(look))
        middle = self._middle = row(None, spacing=12)
        middle.addWidget(self._build_table(look), 1)
        middle.addWidget(self._build_side(look))
        inner.addLayout(middle, 1)
        self._column = column(self, self.head, self._empty, self._body, spacing=12)
        self._column.setContentsMargins(20, 14, 20, 16)
        self._show_nothing()

    def offer(self, heads: Sequence[RunHead]) -> None:
        """The runs that can be chosen, newest first; what was chosen stays."""
        chosen = self.chosen
        runs = [(str(head.file), _told(head)) for head in heads if head.finished]
        listed = [*runs, *_PUBLISHED.items()]
        for name in (name for name in chosen if name and name not in dict(listed)):
            listed.insert(0, (name, self._labels[self._names.index(name)]))
        if [name for name, _ in listed] == self._names:
            return
        self._names, self._labels = [name for name, _ in listed], [label for _, label in listed]
        for number, choice in enumerate((self.a, self.b)):
            choice.blockSignals(True)
            choice.offer(self._labels)
            choice.setMaximumWidth(_WIDEST)
            choice.setCurrentIndex(self._names.index(chosen[number]) if chosen[number] else -1)
            choice.blockSignals(False)
        if not any(chosen):
            self._choose_first(len(runs))

    @property
    def chosen(self) -> tuple[str, str]:
        """The names of A and B; empty where none is chosen."""
        a, b = (
            self._names[one.currentIndex()] if 0 <= one.currentIndex() < len(self._names) else ""
            for one in (self.a, self.b)
        )
        return a, b

    def choose(self, a: str, b: str) -> None:
        """Hold these against each other; both must be offered."""
        for choice, name in ((self.a, a), (self.b, b)):
            choice.blockSignals(True)
            choice.setCurrentIndex(self._names.index(name))
            choice.blockSignals(False)
        self._ask()

    def ask_again(self) -> None:
        """The page is turned to: what is chosen is wanted, where it is not shown yet."""
        if self.compared is None:
            self._ask()

    def show_compared(self, found: Compared) -> None:
        """These two runs."""
        self.compared = found
        self.head.title.say(found.title)
        self.head.say(found.text)
        self._empty.hide()
        self._body.show()
        self.copy.show()
        self.changes.show_compared(found)
        self._show_beside(found)
        self._foot.say(_foot(found))
        self._foot.setVisible(bool(_foot(found)))

    def _show_nothing(self, runs: int = 0) -> None:
        self.head.title.say("Compare")
        self._body.setVisible(bool(runs))
        self._empty.setVisible(not runs)
        self.copy.hide()

    def _choose_first(self, runs: int) -> None:
        """The newest run is B, the one before it A; or else the published figures."""
        self._show_nothing(runs)
        if not runs:
            return
        for choice, number in ((self.b, 0), (self.a, 1)):
            choice.blockSignals(True)
            choice.setCurrentIndex(number)
            choice.blockSignals(False)

    def _ask(self) -> None:
        a, b = self.chosen
        if a and b:
            self.wanted.emit(a, b)

    def _swap(self) -> None:
        a, b = self.chosen
        if a and b:
            self.choose(b, a)

    def _copy(self) -> None:
        copying.put(self.table, f"{self.head.title.text()}\n\n{self.changes.copied()}")

    # building ---------------------------------------------------------------------------------------------

    def _build_choices(self, look: Look) -> object:
        self.a, self.b = Choice(look, "Run A", 40), Choice(look, "Run B", 40)
        swap = IconButton(look, "arrows-left-right", "Swap A and B", 18)
        swap.clicked.connect(self._swap)
        layout = row(None, spacing=10)
        for letter, choice, filled in (("A", self.a, False), ("B", self.b, True)):
            choice.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            choice.currentIndexChanged.connect(self._ask)
            layout.addWidget(Dot(look, filled=filled))
            layout.addWidget(Label(look, letter, 13, 600))
            layout.addWidget(choice, 1)
            if not filled:
                layout.addWidget(swap)
        return layout

    def _build_table(self, look: Look) -> Card:
        card = Card(margins=(16, 12, 8, 8))
        self.changes = Changes()
        self.table = ChangesView(look, self.changes)
        order = Segments(look, _ORDERS, "Sort")
        order.chosen.connect(lambda word: self.changes.order(biggest=word == _ORDERS[1]))
        hint = Elided(look, "min:s, medians; log axis: equal distances are equal ratios", 12, 400, "text2")
        head = row(None, Label(look, "Time of each cell", 13, 600), hint, order, spacing=10)
        head.setStretch(1, 1)
        head.setContentsMargins(0, 0, 8, 0)
        self._foot = Label(look, "", 12, 400, "text2", wrap=True)
        card.column.addLayout(head)
        card.column.addWidget(self.table, 1)
        card.column.addWidget(self._foot)
        return card

    def _build_side(self, look: Look) -> QScrollArea:
        inner = QWidget()
        inner.setObjectName("scrolled")
        self._totals = Totals(look)
        self._totals_card = Card()
        self._totals_card.column.addWidget(Label(look, "In all", 13, 600))
        self._totals_card.column.addWidget(self._totals)
        self._forecasts, self._differs = Card(), Card()
        column(inner, self._totals_card, self._forecasts, self._differs, -1, spacing=12)
        scroll = QScrollArea()
        scroll.setWidget(inner)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFixedWidth(look.px(_SIDE))
        return scroll

    def _show_beside(self, found: Compared) -> None:
        self._totals_card.setVisible(len(found.changes) > 1)
        self._totals.show_totals(*found.totals_s)
        came = [one for one in found.foretold if one.held]
        others = [one for one in found.foretold if not one.held]
        title = f"As A foretold: {len(came)} of {len(found.foretold)}"
        self._fill(self._forecasts, title, [self._foretold(one) for one in (*others, *came)])
        differs = [self._fact(one) for one in found.differs]
        self._fill(self._differs, "What differs", differs)
        if found.same:
            self._differs.column.addWidget(Label(self._look, "What is the same", 13, 600))
            told = ", ".join(_lower(one.name) for one in found.same)
            self._differs.column.addWidget(Label(self._look, told, 12, 400, "text2", wrap=True))
        self._differs.setVisible(bool(found.differs or found.same))

    def _fill(self, card: Card, title: str, parts: Sequence[QWidget]) -> None:
        emptied(card.column)
        card.setVisible(bool(parts))
        if parts:
            card.column.addWidget(Label(self._look, title, 13, 600))
        for number, part in enumerate(parts):
            if number:
                card.column.addWidget(rule())
            card.column.addWidget(part)

    def _fact(self, one: Differs) -> QWidget:
        made = QWidget()
        texts = [
            Label(self._look, f"{side}  {text}", 12, 400, wrap=True)
            for side, text in (("A", one.a), ("B", one.b))
        ]
        column(made, Label(self._look, one.name, 12, 600, "text2"), *texts, spacing=2)
        return made

    def _foretold(self, one: Foretold) -> QWidget:
        made = QWidget()
        name = OPERATION_NAMES.get(one.b.operation, one.b.operation)
        what = f"{name}, {words.line(one.b.line)}, {words.state(one.b.proxy, full=True)}"
        column(
            made,
            Label(self._look, what, 12, 600, "text2", wrap=True),
            Label(self._look, _forecast(one), 12, 400, wrap=True),
            spacing=2,
        )
        return made

    def minimumSizeHint(self) -> QSize:
        return QSize(600, 300)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        small = self.height() < 800 - 80
        margin, gap = (16, 8) if small else (20, 12)
        self.head.small(small)
        self._column.setContentsMargins(margin, 10 if small else 14, margin, margin)
        for layout in (self._column, self._inner, self._middle):
            layout.setSpacing(gap)


class Totals(QWidget):
    """Two bars from zero: all cells of A, hollow, and of B, filled."""

    _ROW = 28

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._totals = (0.0, 0.0)
        self.setFixedHeight(look.px(2 * self._ROW))

    def show_totals(self, a_s: float, b_s: float) -> None:
        """Seconds."""
        self._totals = (a_s, b_s)
        self.setAccessibleName(f"In all: A {words.duration(a_s)}, B {words.duration(b_s)}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        high, most = self.height() / 2, max(*self._totals, 1e-9)
        painter.setFont(look.font(13, 600))
        texts = [words.duration(total) for total in self._totals]
        wide = max(painter.fontMetrics().horizontalAdvance(text) for text in texts) + 12
        for number, (letter, total, text) in enumerate(zip("AB", self._totals, texts, strict=True)):
            line = QRectF(0, number * high, self.width(), high)
            painter.setFont(look.font(12, 600))
            painter.setPen(look.colour("text2"))
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, letter)
            bar = QRectF(18, line.top() + high / 2 - 7, (self.width() - 18 - wide) * total / most, 14)
            painter.setPen(QPen(look.colour("text"), 1.2))
            painter.setBrush(look.colour("text") if number else Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(bar.adjusted(0.6, 0.6, -0.6, -0.6), 2, 2)
            painter.setFont(look.font(13, 600))
            painter.setPen(look.colour("text"))
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, text)


def _told(head: RunHead) -> str:
    told = "" if head.told == "done" else f", {head.told}"
    return f"{head.experiment}, {words.when(head.started)}{told}"


def _foot(found: Compared) -> str:
    """What is in one of them only."""
    counts = [(len(found.only_a), "A"), (len(found.only_b), "B")]
    parts = [f"{count} cell{'s' * (count != 1)} of {letter} only" for count, letter in counts if count]
    return f"Not compared: {' and '.join(parts)}." if parts else ""


def _forecast(one: Foretold) -> str:
    measured = words.duration(one.b.median_s)
    if one.low_s is None or one.high_s is None:
        return f"{words.duration(one.time_s)} foretold without an interval; measured {measured}."
    ends = f"{words.duration(one.low_s)} – {words.duration(one.high_s)}"
    came = "as foretold" if one.held else "not as foretold"
    beyond = "" if one.within else " The line is beyond those that A measured."
    return f"{words.duration(one.time_s)} (95 %: {ends}); measured {measured}, {came}.{beyond}"


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]
