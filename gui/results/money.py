"""What each option costs a month: every line, with the proxy and without, in waiting and, with prices, in money."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLineEdit, QWidget

from gui import copying, decimals, words
from gui.results.answers import whole
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Elided, Label, Said, column, emptied, row
from lab import units
from lab.analysis import decision, inputs
from lab.analysis import words as told
from lab.analysis.decision import SECONDS, Decision, Inputs, Option
from lab.analysis.summary import Summary
from lab.errors import BadInput
from lab.model import OPERATION_NAMES, Line

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_MOST = 1_000_000


class MoneyCard(Card):
    """The sixth answer. What is typed holds for every run shown later, where the run has such lines and operations."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._summary: Summary | None = None
        self._inputs = Inputs()
        self.found: Decision | None = None
        self._operation = ""
        self._rows: list[list[str]] = []
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("A month with each line, with the proxy and without")
        self._hint = Elided(look, "", 12, 400, "text2")
        head = row(None, Label(look, "What each line means in a month", 13, 600), self._hint)
        head.setStretch(1, 1)
        self._answer = Label(look, "", 13, 500, wrap=True)
        table = QWidget()
        self._grid = QGridLayout(table)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(6)
        self._grid.setHorizontalSpacing(10)
        self.people = _Number(look, "People", 56, whole_number=True)
        self.often = _Number(look, "", 56)
        self.prices_button = Button(look, "Prices …", height=28)
        self.prices_button.setCheckable(True)
        self._prices = QWidget()
        self._prices_head = Label(look, "", 12, 400, "text2")
        self._price_fields = QGridLayout()
        self._price_fields.setHorizontalSpacing(12)
        column(self._prices, self._prices_head).addLayout(self._price_fields)
        self._note = Label(look, "", 11, 400, "text3", wrap=True)
        self.column.addLayout(head)
        self.column.addWidget(self._answer)
        self.column.addWidget(table)
        self.column.addStretch(1)
        self.column.addLayout(row(None, self.people, self.often, -1, self.prices_button, spacing=12))
        self.column.addWidget(self._prices)
        self.column.addWidget(self._note)
        self._prices.hide()
        self.prices_button.toggled.connect(self._prices.setVisible)
        self.people.changed.connect(lambda value: self._keep(people=int(value)))
        self.often.changed.connect(self._keep_often)

    def show_summary(self, summary: Summary) -> None:
        """The options of this run, or of published figures."""
        begun = inputs.assumed(summary)
        kept = self._inputs
        self._inputs = replace(
            kept,
            per_day={name: kept.per_day.get(name, often) for name, often in begun.per_day.items()},
            lines={line: kept.lines.get(line) or price for line, price in begun.lines.items()},
        )
        self._summary = summary
        self._show_fields()
        self._decide()

    def show_operation(self, name: str) -> None:
        """Ask how often this operation is done."""
        self._operation = name
        self.often.setVisible(name in self._inputs.per_day)
        self.often.rename(f"{OPERATION_NAMES.get(name, name)}, a day each")
        self.often.hold(self._inputs.per_day.get(name))

    def copied(self) -> str:
        """The options as a table of tabs."""
        return copying.table(self._rows[0], self._rows[1:]) if len(self._rows) > 1 else ""

    def _show_fields(self) -> None:
        emptied(self._price_fields)
        self.people.hold(self._inputs.people)
        self._prices_head.say(f"Prices in {self._inputs.currency}, a month each; an empty field is not known")
        self.show_operation(self._operation)
        asked: list[tuple[str, float | None, Callable[[float | None], None]]] = [
            ("Hour of waiting", self._inputs.hour or None, lambda v: self._keep(hour=v or 0.0)),
            ("Proxy, a month", self._inputs.proxy, lambda v: self._keep(proxy=v)),
            *(
                (words.line(line), price, partial(self._keep_line, line))
                for line, price in self._inputs.lines.items()
            ),
        ]
        for number, (name, value, keep) in enumerate(asked):
            field = _Number(self._look, name, 88, above=True)
            field.hold(value)
            field.changed.connect(keep)
            self._price_fields.addWidget(field, number // 4, number % 4)
        self._price_fields.setColumnStretch(4, 1)

    def _keep(self, **given: object) -> None:
        self._inputs = replace(self._inputs, **given)  # type: ignore[arg-type]
        self._decide()

    def _keep_often(self, value: float | None) -> None:
        self._keep(per_day={**self._inputs.per_day, self._operation: value or 0.0})

    def _keep_line(self, line: Line, value: float | None) -> None:
        self._keep(lines={**self._inputs.lines, line: value})

    def _decide(self) -> None:
        if self._summary is None:
            return
        found = self.found = decision.decided(self._summary, self._inputs)
        sentences = list(decision.sentences(found))
        self._answer.say(whole(sentences[0]) if sentences else "")
        self._answer.setVisible(bool(sentences))
        self.setAccessibleDescription(" ".join(sentences))
        asked = self._inputs
        self._hint.say(f"waiting of {asked.people} people, {asked.days:g} days")
        self._show_rows(found)
        self._note.say(_note(found))
        self._note.setVisible(bool(self._note.text()))

    def _show_rows(self, found: Decision) -> None:
        emptied(self._grid)
        options = {(one.line, one.proxy.enabled): one for one in found.options}
        enabled = next((one.proxy for one in found.options if one.proxy.enabled), None)
        heads = ["upload/download", "no proxy"]
        if enabled is not None:
            heads += [told.cache(enabled).removeprefix("a "), "proxy saves", "saves from"]
        self._rows = [heads]
        for at, head in enumerate(heads):
            self._put(0, at, head, 12, 600, "text2")
        best = found.cheapest or _quickest(found)
        for at, line in enumerate(found.fullness, 1):
            pair = [options.get((line, False)), options.get((line, True))][: 1 + (enabled is not None)]
            texts = [words.line(line), *(_month(one, asked=found.inputs) for one in pair)]
            if enabled is not None:
                texts += [_saved(*pair), _from(found, line)]
            self._rows.append([text.replace("\n", ", ") for text in texts])
            for column_, text in enumerate(texts):
                one = pair[column_ - 1] if 0 < column_ <= len(pair) else None
                leads = one is not None and one is best
                weight = 600 if leads else 500 if not column_ else 400
                label = self._put(at, column_, text, 13, weight, "text" if text != words.NONE else "text3")
                label.setToolTip(_sum(one) if one is not None else "")
        for column_ in range(len(heads)):
            self._grid.setColumnStretch(column_, 1)

    def _put(self, at: int, column_: int, text: str, size: int, weight: int, ink: str) -> Label:
        label = Label(self._look, text, size, weight, ink)
        if column_:
            label.setAlignment(_RIGHT)
        self._grid.addWidget(label, at, column_)
        return label


class _Number(QWidget):
    """A field for a number, its name beside it or `above`. Signal `changed(object)`: the number, or None."""

    changed = Signal(object)

    def __init__(
        self, look: Look, name: str, width: int, *, above: bool = False, whole_number: bool = False
    ) -> None:
        super().__init__()
        self._whole = whole_number
        self._held: float | None = None
        self._name = Label(look, name, 12, 600)
        self.field = QLineEdit()
        self.field.setFont(look.font(13))
        self.field.setFixedSize(look.px(width), 28)
        self.field.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._verdict = Said(look, "", "", 12, 400, "trouble")
        if above:
            column(self, self._name, self.field, self._verdict, spacing=4)
        else:
            row(self, self._name, self.field, self._verdict, spacing=8)
        self._verdict.hide()
        self.rename(name)
        self.field.editingFinished.connect(self._left)

    def rename(self, name: str) -> None:
        """Ask for something else."""
        self._name.say(name)
        self.field.setAccessibleName(name)

    def hold(self, value: float | None) -> None:
        """Show a number; nothing for None."""
        self._held = value
        self.field.setText("" if value is None else f"{value:g}")
        self._judge("")

    def _left(self) -> None:
        try:
            value = _typed(self.field.text(), whole_number=self._whole)
        except BadInput as error:
            self._judge(str(error))
            return
        self._judge("")
        if value != self._held:
            self._held = value
            self.changed.emit(value)

    def _judge(self, wrong: str) -> None:
        self._verdict.say(marks.TROUBLE if wrong else "", wrong)
        self._verdict.setVisible(bool(wrong))
        self.field.setProperty("wrong", bool(wrong))
        self.field.style().unpolish(self.field)
        self.field.style().polish(self.field)


def _typed(text: str, *, whole_number: bool) -> float | None:
    """The number; nothing is None where that may be. Raises BadInput."""
    text = text.strip().replace(words.NBSP, "")
    if not text and not whole_number:
        return None
    value = decimals.number(text)
    if whole_number and (value < 1 or value != math.floor(value)):
        raise BadInput("Write a whole number from 1 on.")
    if value > _MOST:
        raise BadInput(f"Write a number up to {words.count(_MOST)}.")
    return value


def _quickest(found: Decision) -> Option | None:
    timed = [one for one in found.options if one.time_s is not None]
    return min(timed, key=lambda one: one.time_s or 0.0, default=None)


def _month(one: Option | None, *, asked: Inputs) -> str:
    if one is None or one.time_s is None:
        return words.NONE
    waits = units.duration(one.time_s).replace(" ", words.NBSP)
    return waits if one.money is None else f"{waits}\n{_money(one.money, asked)}"


def _money(value: float, asked: Inputs) -> str:
    return f"{value:,.0f}{words.NBSP}{asked.currency}".replace("-", "−")


def _saved(without: Option | None, with_proxy: Option | None) -> str:
    if without is None or with_proxy is None or without.time_s is None or with_proxy.time_s is None:
        return words.NONE
    saved = without.time_s - with_proxy.time_s
    sign = "−" if saved < 0 else ""
    return sign + units.duration(abs(saved)).replace(" ", words.NBSP)


def _from(found: Decision, line: Line) -> str:
    """How full the cache must be to save time."""
    least, times = found.saves_from.get(line), found.fullness.get(line, {})
    if least is None:
        return "never" if None in times and len(times) > 1 else words.NONE
    return f"{least:.0f}{words.NBSP}% full"


def _sum(one: Option) -> str:
    """Each part of the sum, a line each."""
    lines = []
    for part in one.parts:
        each = told.duration(part.each) if part.unit == SECONDS else f"{part.each:g} {part.unit}"
        lines.append(f"{part.what}: {part.count:g} × {each} ({part.basis})")
    return "\n".join([*lines, *(f"not known: {what}" for what in (*one.unknown_times, *one.unknown_prices))])


def _note(found: Decision) -> str:
    """What it rests on, and what keeping the cache full costs on the slowest line."""
    note = "How often each operation is done is a guess until you type it; a measured time is a median."
    night = next(iter(found.nights.items()), None)
    if night is None:
        return note
    line, one = night
    return (
        f"{note} Keeping the cache full takes {told.amount(round(one.bytes))} a night on {words.line(line)}, "
        f"{told.duration(one.seconds) if one.seconds < 90 else units.duration(one.seconds)} of the whole line "
        f"({one.basis})."
    )
