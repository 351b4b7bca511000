"""The card *How often*: attempts, warm-up, order, time limit, and when to stop."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt

from gui.experiment import typed
from gui.experiment.asked import Asked
from gui.experiment.edits import Edits
from gui.experiment.pips import Pips
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Card, Choice, Label, row
from gui.widgets.fields import Field, labelled

ORDERS = (("blocks", "blocks, shuffled"), ("published", "as published in 2008"))
WITHIN = tuple((f"{share} %", f"within ± {share} %") for share in (10, 5, 2))
MOST = 1000


class OftenCard(Card):
    """Edits how often an experiment does it."""

    def __init__(self, look: Look, edits: Edits) -> None:
        super().__init__(margins=(14, 10, 14, 12))
        self._edits = edits
        self._asked: Asked | None = None
        self.setProperty("help", "warm-up")
        self.column.addWidget(Label(look, "How often", 13, 600))
        self.attempts = Field(
            look,
            "Attempts per cell",
            lambda text: typed.whole(text, 1, MOST),
            width=56,
            right=True,
            step=(1, MOST),
        )
        self.pips = Pips(look)
        self.warm_up = Field(
            look,
            "of them warm-up",
            lambda text: typed.whole(text, 0, MOST - 1),
            width=96,
            right=True,
            step=(0, MOST),
        )
        self.order = Choice(look, "Order")
        self.order.offer([text for _, text in ORDERS])
        self.order.setToolTip(
            "Blocks: one attempt of every cell of a line, shuffled, again and again, so that drift meets all alike. "
            "As published: all attempts of a cell one after the other"
        )
        self.limit = Field(look, "Limit per trial", typed.limit, width=118, right=True)
        self.limit.entry.setPlaceholderText("10 × expected")
        self.limit.setToolTip("How long a command may take; left empty, ten times what is expected of it")
        self.attempts.beside(self.pips)
        fields = row(None, self.attempts, self.warm_up, spacing=12)
        fields.addLayout(labelled(look, "Order", self.order))
        fields.addWidget(self.limit)
        self.until = Choice(look, "Stop a line early")
        self.until.setToolTip(
            "Repeat a line's blocks until every interval of 95 % reaches no further than that to either side, "
            "but no more often than is allowed"
        )
        self.most = Field(
            look, "at most", lambda text: typed.whole(text, 2, MOST), width=64, right=True, step=(2, MOST)
        )
        fields.addLayout(labelled(look, "Stop a line early", self.until))
        fields.addWidget(self.most)
        fields.addStretch(1)
        fields.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._fields = fields
        self.column.addLayout(fields)
        self.attempts.given.connect(self._give_attempts)
        self.warm_up.given.connect(self._give_warm_up)
        self.limit.given.connect(self._give_limit)
        self.order.activated.connect(self._order)
        self.until.activated.connect(self._until)
        self.most.given.connect(self._give_most)

    def show_asked(self, asked: Asked, wrong: Mapping[str, str]) -> None:
        """The experiment; `wrong` has what is wrong with a key, by the key."""
        self._asked = asked
        attempts, warm_up = asked.number("attempts"), asked.number("warm_up")
        self.attempts.hold(str(attempts))
        self.warm_up.hold(str(warm_up))
        self.pips.show_attempts(attempts, warm_up)
        for key, field in (("attempts", self.attempts), ("warm_up", self.warm_up), ("limit", self.limit)):
            field.entry.trouble(key in wrong)
            field.entry.setToolTip(wrong.get(key, ""))
        names = [name for name, _ in ORDERS]
        order = asked.text("order")
        self.order.setCurrentIndex(names.index(order) if order in names else 0)
        self.limit.hold(asked.text("limit"))
        self._show_until(asked, wrong.get("until", ""))

    def _show_until(self, asked: Asked, wrong: str) -> None:
        within, most = asked.until
        shares = [share for share, _ in WITHIN]
        texts = [f"no, do all {asked.number('attempts')}", *(text for _, text in WITHIN)]
        if within and within not in shares:
            texts.append(f"within ± {within}")
        if texts != [self.until.itemText(n) for n in range(self.until.count())]:
            self.until.offer(texts)
            self.until.setMinimumWidth(120)
        at = shares.index(within) + 1 if within in shares else len(texts) - 1
        self.until.setCurrentIndex(at if within else 0)
        self.most.setVisible(bool(within))
        self.most.hold(str(most))
        self.most.entry.trouble(bool(wrong))
        self.most.entry.setToolTip(wrong)

    def say(self, key: str, text: str) -> None:
        """A verdict under a field."""
        {"attempts": self.attempts, "limit": self.limit}[key].say(marks.TROUBLE if text else "", text)

    # edits

    def _give_attempts(self, value: object) -> None:
        self._edits.put(f"make {value} attempts per cell", "attempts", value)

    def _give_warm_up(self, value: object) -> None:
        self._edits.put(f"make {value} of the attempts warm-up", "warm_up", value)

    def _give_limit(self, value: object) -> None:
        if value:
            self._edits.put(f"limit a trial to {value}", "limit", value)
        else:
            self._edits.take_out("take out the limit per trial", "limit")

    def _order(self, number: int) -> None:
        name, text = ORDERS[number]
        if self._asked is not None and name != self._asked.text("order"):
            self._edits.put(f"order: {text}", "order", name)

    def _until(self, number: int) -> None:
        if self._asked is None:
            return
        within, most = self._asked.until
        if number == 0:
            if within:
                self._edits.take_out("do all attempts", "until")
        elif number <= len(WITHIN) and WITHIN[number - 1][0] != within:
            share = WITHIN[number - 1][0]
            most = max(most, self._asked.number("attempts") + 2)
            self._edits.until(f"repeat until all are within {share}", share, most)

    def _give_most(self, value: object) -> None:
        if self._asked is not None and isinstance(value, int):
            self._edits.until(f"repeat {value} times at most", self._asked.until[0], value)
