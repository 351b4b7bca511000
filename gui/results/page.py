"""The page *Results*: the verdict as title, five answers, per operation table, chart and traffic, and the money."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QGridLayout, QLineEdit, QScrollArea, QSizePolicy, QWidget

from gui import words
from gui.results.answers import Answers, brief, whole
from gui.results.bars import PairLegend, TrafficBars
from gui.results.chart import TimeChart
from gui.results.lines import LinesCard
from gui.results.money import MoneyCard
from gui.results.table import Times, TimesView
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import (
    Button,
    Card,
    Choice,
    Elided,
    Empty,
    IconButton,
    Label,
    Said,
    Segments,
    column,
    emptied,
    row,
)
from gui.widgets.frame import Head
from lab.analysis.summary import Summary
from lab.analysis.words import at_once
from lab.events import Standing
from lab.export import titles
from lab.model import OPERATION_NAMES, Line

_FEW = 3
"""So many lines are found without a search."""


class ResultsPage(QWidget):
    """Shows a summary. It scrolls under a fixed head.

    Signals: `exported()` the run is wanted as a file; `opened()` another run is wanted; `published()` the published
    one is.
    """

    exported = Signal()
    opened = Signal()
    published = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.summary: Summary | None = None
        self._operation = ""
        self._line: Line | None = None
        self._hint = ""
        self.times = Times()
        self._build_head(look)
        self.answers = Answers(look)
        self.answers.asked.connect(self._show_figure)
        self.answers.unfolded.connect(self._show_whole)
        self._money_question = Label(look, "", 13, 400, "text", wrap=True)
        self._money_question.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._tabs_row = row(None, spacing=4)
        self._tabs = QButtonGroup(self)
        self._tabs.idClicked.connect(self._tab)
        self._tab_names: list[str] = []
        text = "Results appear here with the first kept attempt."
        out = "or read the published run of 2008"
        self._empty = Empty(look, "chart-line-up", "No run yet", text, "Open a run …", out)
        self._empty.pressed.connect(self.opened)
        self._empty.left.connect(self.published)
        body = QWidget()
        body.setObjectName("scrolled")
        self._body = column(body, self._money_question, self.answers, spacing=12)
        self._body.addLayout(self._tabs_row)
        self._body.addLayout(self._build_figures(look))
        self._body.addStretch(1)
        self._scroll = QScrollArea()
        self._scroll.setWidget(body)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._column = column(self, self.head, self._empty, self._scroll, spacing=12)
        self._column.setContentsMargins(20, 14, 0, 0)
        self._show_empty()

    def show_summary(self, summary: Summary, *, running: bool = False) -> None:
        """Another run, or the same one further on."""
        known = self.summary is not None and self.summary.started.run == summary.started.run
        self.summary = summary
        operations = _operations(summary)
        if not known or self._operation not in operations:
            self._operation = operations[0] if operations else ""
            self._line = None
            self._scroll.verticalScrollBar().setValue(0)
        self._empty.hide()
        self._scroll.show()
        for button in (self.export, self.other):
            button.show()
        self.export.setEnabled(not running)
        self._say_head(summary, running=running)
        self._say_choice(summary)
        self.answers.show_answers(summary.findings)
        self._show_tabs(operations)
        self._lines.setVisible(not summary.source)
        self._lines.show_lines(summary)
        self._bars_card.setVisible(not summary.source)
        self._figures.addWidget(self.money, 1, 0 if summary.source else 1, 1, 2 if summary.source else 1)
        self.money.setVisible(not running)
        if not running:
            self.money.show_summary(summary)
        self._show_operation()

    def doable(self) -> list[tuple[str, str, Callable[[], None]]]:
        """What the list of actions offers of this page: name, icon, deed."""
        made: list[tuple[str, str, Callable[[], None]]] = [
            (f"Figures of {OPERATION_NAMES.get(name, name)}", "chart-line-up", partial(self._tab, number))
            for number, name in enumerate(self._tab_names)
        ]
        for figure, icon in (
            ("Table", "table"),
            ("Chart", "chart-line-up"),
            ("Traffic", "chart-bar-horizontal"),
        ):
            made.append(
                (
                    f"{figure} of times" if figure != "Traffic" else figure,
                    icon,
                    partial(self._show_figure, figure),
                )
            )
        return [*made, ("Copy the table", "copy", self.table.copy)]

    def _build_head(self, look: Look) -> None:
        self.head = Head(look)
        self.other = Button(look, "Open a run …", icon="folder-open")
        self.export = Button(look, "Export …", "filled", icon="export")
        self.other.clicked.connect(self.opened)
        self.export.clicked.connect(self.exported)
        self._about = Elided(look, "", 13, 400, "text2")
        self._about.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self._proven = Said(look, "", "", 13, 400, "text2")
        self._amiss = Said(look, "", "", 13, 400, "text2")
        self.head.under_row.setSpacing(14)
        self.head.under_row.addWidget(self._about)
        self.head.under_row.addWidget(self._proven)
        self.head.under_row.addWidget(self._amiss)
        self.head.under_row.addStretch(1)
        for button in (self.other, self.export):
            self.head.buttons.addWidget(button)

    def _build_figures(self, look: Look) -> QGridLayout:
        self._table_card, self._chart_card, self._bars_card = Card(), Card(), Card()
        self._table_title, self._table_hint = Label(look, "", 13, 600), Label(look, "", 12, 400, "text2")
        copy = IconButton(look, "copy", "Copy the table", 16)
        self.table = TimesView(look, self.times)
        copy.clicked.connect(self.table.copy)
        self.search = QLineEdit()
        self.search.setFont(look.font(12))
        self.search.setFixedSize(116, 26)
        self.search.setPlaceholderText("Only lines with")
        self.search.setClearButtonEnabled(False)
        self.search.setAccessibleName("Show only the lines with these words")
        self.search.textChanged.connect(self._find)
        title = row(None, self._table_title, self._table_hint, -1, self.search, copy)
        self._table_card.column.addLayout(title)
        self._table_card.column.addWidget(self.table)
        self._table_note = Label(look, "", 12, 400, "text2", wrap=True)
        self._table_card.column.addWidget(self._table_note)
        self._table_card.column.addStretch(1)
        self.chart = TimeChart(look)
        scale = Segments(look, ("linear", "log"), "Time axis")
        scale.choose("log")
        scale.chosen.connect(self._scaled)
        hint = Elided(look, "kbit/s up/down; bars: least – most", 12, 400, "text2")
        title = Label(look, "Time against line", 13, 600)
        head = row(None, title, hint, Label(look, "Time", 12, 400, "text2"), scale)
        head.setStretch(1, 1)
        self._chart_card.column.addLayout(head)
        self._chart_card.column.addWidget(self.chart, 1)
        self.bars = TrafficBars(look)
        self._bars_title = Label(look, "", 13, 600)
        self._choice = Choice(look, "Line whose traffic is shown", 26)
        self._choice.currentIndexChanged.connect(self._line_chosen)
        self._bars_card.column.addLayout(row(None, self._bars_title, self._choice, -1, PairLegend(look)))
        self._bars_card.column.addWidget(self.bars, 1)
        self._lines = LinesCard(look)
        figures = self._figures = QGridLayout()
        figures.setSpacing(12)
        self.money = MoneyCard(look)
        cards = (self._table_card, self._chart_card, self._bars_card, self.money)
        for number, card in enumerate(cards):
            figures.addWidget(card, number // 2, number % 2)
        figures.addWidget(self._lines, 2, 0, 1, 2)
        figures.setColumnStretch(0, 54)
        figures.setColumnStretch(1, 46)
        return figures

    def _show_empty(self) -> None:
        self.head.title.say("Results")
        self._scroll.hide()
        self._empty.show()
        for widget in (self.export, self.other, self._proven, self._amiss):
            widget.hide()
        self._about.hide()

    def _say_head(self, summary: Summary, *, running: bool) -> None:
        started, finished = summary.started, summary.finished
        self.head.title.say(summary.verdict)
        when = words.when(started.at, finished.at if finished else "")
        together = at_once(started.experiment)
        about = f"“{started.experiment.name}”, {f'{together}, ' if together else ''}{when}"
        about += ", still running" if running else ""
        self._about.say(titles.source(summary).removeprefix("published: ") if summary.source else about)
        self._about.show()
        if summary.source:
            self._about.setToolTip(summary.source)
            self._proven.say("", "published figures, not measured here")
            self._proven.show()
            self._amiss.hide()
            return
        failed, void = (summary.standings.get(s, 0) for s in (Standing.FAILED, Standing.VOID))
        done = sum(summary.standings.values())
        proven = done - failed - void
        self._proven.say(
            marks.OK if proven else marks.UNKNOWN,
            f"{words.count(proven)} of {words.count(len(started.trials))} trials proven",
        )
        self._proven.show()
        amiss = [f"{failed} failed"] * bool(failed) + [f"{void} without proof"] * bool(void)
        if finished is None or finished.outcome != "done":
            amiss.append("running" if running else f"{summary.outcome} at {words.count(done)}")
        self._amiss.setVisible(bool(amiss))
        self._amiss.say(marks.BUSY if running and not (failed or void) else marks.WARN, ", ".join(amiss))

    def _say_choice(self, summary: Summary) -> None:
        """The sentence of the whole: the proxy on the old line, against a wider one."""
        told = summary.choice.text if summary.choice else ""
        self._money_question.say(brief(told))
        self._money_question.setToolTip(whole(told))
        self._money_question.setVisible(bool(told))

    def _show_tabs(self, operations: Sequence[str]) -> None:
        if list(operations) != self._tab_names:
            self._tab_names = list(operations)
            for button in self._tabs.buttons():
                self._tabs.removeButton(button)
            emptied(self._tabs_row)
            for number, operation in enumerate(operations):
                button = Button(self._look, OPERATION_NAMES.get(operation, operation), "tab", height=30)
                button.setCheckable(True)
                self._tabs.addButton(button, number)
                self._tabs_row.addWidget(button)
            self._tabs_row.addStretch(1)
        for button in self._tabs.buttons():
            chosen = self._tab_names[self._tabs.id(button)] == self._operation
            button.setChecked(chosen)
            button.setFont(self._look.font(13, 600 if chosen else 500))

    def _tab(self, number: int) -> None:
        self._operation = self._tab_names[number]
        self._show_tabs(self._tab_names)
        self._show_operation()

    def _show_operation(self) -> None:
        summary, operation = self.summary, self._operation
        if summary is None or not operation:
            return
        name = OPERATION_NAMES.get(operation, operation)
        cells = [cell for cell in summary.cells if cell.operation == operation]
        kept = max((cell.kept for cell in cells), default=0)
        article = "an" if name[:1] in "AEIOU" else "a"
        self._table_title.say(f"Time of {article} {name}")
        self._hint = (
            f"median of {kept} kept attempt{'s' * (kept > 1)}, min:s" if kept else "no kept attempt yet"
        )
        if kept and (together := at_once(summary.started.experiment)):
            self._hint = f"{together}, until the last is done; {self._hint}"
        if summary.source:
            self._hint = "as published, min:s"
        self.times.show_operation(summary, operation)
        self.search.setVisible(len(self.times.plan) > _FEW or bool(self.search.text()))
        self._say_shown()
        self._table_note.say(_note(summary, operation) + self._shared())
        self.chart.show_cells(name, cells, summary.started.experiment.lines)
        self._show_lines_of(cells)
        self._show_traffic()
        self.money.show_operation(operation)

    def _shared(self) -> str:
        """What all lines have besides their rates."""
        lines = self.times.plan
        if (
            not lines
            or self.times.extras_differ
            or not (lines[0].delay_s or lines[0].jitter_s or lines[0].loss)
        ):
            return ""
        return f" Every line has {words.extras(lines[0])}."

    def _show_lines_of(self, cells: Sequence[object]) -> None:
        summary = self.summary
        lines = list(summary.started.experiment.lines) if summary else []
        if self._line not in lines:
            self._line = lines[0] if lines else None
        self._choice.blockSignals(True)
        self._choice.offer([words.line(line) for line in lines])
        if self._line is not None:
            self._choice.setCurrentIndex(lines.index(self._line))
        self._choice.blockSignals(False)

    def _line_chosen(self, number: int) -> None:
        if self.summary is not None and number >= 0:
            self._line = self.summary.started.experiment.lines[number]
            self._show_traffic()

    def _show_traffic(self) -> None:
        if self.summary is None:
            return
        name = OPERATION_NAMES.get(self._operation, self._operation)
        article = "an" if name[:1] in "AEIOU" else "a"
        self._bars_title.say(f"Traffic of {article} {name} over")
        cells = [c for c in self.summary.cells if c.operation == self._operation and c.line == self._line]
        self.bars.show_cells(name, cells)

    def _find(self, text: str) -> None:
        self.times.want(text)
        self._say_shown()

    def _say_shown(self) -> None:
        shown, whole = self.times.rowCount(), len(self.times.plan)
        self._table_hint.say(self._hint if shown == whole else f"{shown} of {whole} lines")

    def _scaled(self, word: str) -> None:
        self.chart.use_log(word == "log")

    def _show_figure(self, figure: str) -> None:
        card = {"Table": self._table_card, "Chart": self._chart_card}.get(figure, self._bars_card)
        self._scroll.ensureWidgetVisible(card, 0, 12)
        shown = {"Table": self.table, "Chart": self.chart}.get(figure, self.bars)
        shown.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_whole(self) -> None:
        # once the layout has made room for it
        QTimer.singleShot(0, self, lambda: self._scroll.ensureWidgetVisible(self.answers.whole, 0, 12))

    def minimumSizeHint(self) -> QSize:
        return QSize(600, 300)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        small = self.height() < 800 - 80
        margin, gap = (16, 8) if small else (20, 12)
        self.head.small(small)
        self._column.setContentsMargins(margin, 10 if small else 14, 0, 0)
        self._column.setSpacing(gap)
        self.head.setContentsMargins(0, 0, margin, 0)
        self._empty.setContentsMargins(0, 0, margin, 0)
        self._body.setContentsMargins(0, 0, margin - 10 if small else 10, margin)
        self._body.setSpacing(gap)
        self._figures.setSpacing(gap)
        self.answers.small(small)


def _operations(summary: Summary) -> list[str]:
    classes = summary.started.classes
    return [name for name in summary.started.experiment.operations if classes.get(name) != "n/a"]


def _note(summary: Summary, operation: str) -> str:
    """What kind of traffic the driver says this operation has, and what a difference must exceed."""
    kind = summary.started.classes.get(operation, "")
    told = {
        "cacheable": "The proxy can serve the contents of this operation.",
        "server": "Only the server answers this operation; the proxy can pass it on, not serve it.",
        "local": "This operation needs no other host.",
    }.get(kind, "")
    least = max(0.020, summary.tool_start_s)
    return f"{told} No difference under {round(least * 1000)} ms is called one.".strip()
