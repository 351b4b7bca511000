"""The card *What is done*: version control, data, client, operations; and what is rarely changed, folded."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QWidget

from gui import decimals
from gui.experiment import known, typed
from gui.experiment.asked import Asked
from gui.experiment.check_card import CheckCard
from gui.experiment.clients import Clients
from gui.experiment.edits import Edits
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Choice, Label, Sign, column, row
from gui.widgets.fields import Field, labelled
from lab import units
from lab.analysis import words
from lab.model import OPERATION_NAMES, OPERATIONS, Lab, Role, TrafficClass

MADE_AT = "http://{server}/svn/trunk"
PAST = ("timed in every state", "timed without the proxy only", "… and once with it, for its traffic")
_OTHER = "as the profile says"
_OWN = "Your own, as it is"
_MOST_SEED = (1 << 63) - 1


class WhatCard(Card):
    """Edits what an experiment does."""

    def __init__(self, look: Look, edits: Edits) -> None:
        super().__init__(margins=(14, 10, 14, 12))
        self._look, self._edits = look, edits
        self._asked: Asked | None = None
        self._own = False
        self.unfold = Button(look, "Edits, seed, sign-in", "link", "caret-down", height=20)
        self.unfold.setCheckable(True)
        self.unfold.toggled.connect(self._unfolded)
        self.column.addLayout(row(None, Label(look, "What is done", 13, 600), -1, self.unfold))
        self.vcs = Choice(look, "Version control")
        self.data = Choice(look, "Data")
        self.data.offer([*(known.data_text(one) for one in known.DATA), _OWN])
        self.data.setMinimumWidth(150)
        self.repository = Field(look, "Repository", self._repository, mono=True)
        self.repository.entry.setTextMargins(0, 0, 22, 0)
        self._right = Sign(look, marks.OK, 14)
        self._right.setParent(self.repository.entry)
        self.repository.entry.installEventFilter(self)
        self.clients = Clients(look)
        fields = row(None, spacing=12)
        for name, widget in (("Version control", self.vcs), ("Data", self.data)):
            fields.addLayout(labelled(look, name, widget))
        fields.addWidget(self.repository, 1)
        fields.addLayout(labelled(look, "Clients", self.clients))
        fields.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.column.addLayout(fields)
        self.cards: dict[str, CheckCard] = {}
        cards = row(None, spacing=8)
        for name in OPERATIONS:
            card = self.cards[name] = CheckCard(look, OPERATION_NAMES[name], "asks the server")
            card.clicked.connect(self._asked_for)
            cards.addWidget(card, card.sizeHint().width())
        self.column.addLayout(cards)
        self._build_more(look)
        self.vcs.activated.connect(self._vcs)
        self.data.activated.connect(self._data)
        self.repository.given.connect(self._give_repository)
        self.clients.given.connect(self._give_clients)

    def _build_more(self, look: Look) -> None:
        self.files = Field(
            look,
            "Files edited",
            lambda text: typed.whole(text, 0, 100_000),
            width=92,
            right=True,
            step=(0, 100_000),
        )
        self.files.setToolTip(
            "How many files Undo, Check-In and Diff find edited; 0: all that the data set marks"
        )
        self.share = Field(look, "of their lines", decimals.share, unit="%", width=92, right=True)
        self.seed = Field(
            look,
            "Seed",
            lambda text: typed.whole(text, 0, _MOST_SEED),
            width=110,
            right=True,
            step=(0, _MOST_SEED),
        )
        self.seed.setToolTip("Order, edits and purges are drawn from it: the same seed gives the same plan")
        self.scratch = Field(look, "Scratch place", self._text("scratch"), mono=True)
        self.user = Field(look, "User", self._text("user"), width=110)
        self.ca = Field(look, "CA file on the client", self._text("ca"), mono=True)
        self._folded = QWidget()
        self.past = Choice(look, "What the cache cannot serve is")
        self.past.offer(PAST)
        self.past.setMinimumWidth(120)
        self.past.setToolTip(
            "Operations that get nothing from the cache need not be timed in every state: as published, "
            "they are timed without the proxy only"
        )
        made = row(None, self.files, self.share, self.seed, spacing=12)
        made.addLayout(labelled(look, "What the cache cannot serve is", self.past))
        made.addStretch(1)
        made.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._own_fields = QWidget()
        own = row(self._own_fields, spacing=12)
        for field, stretch in ((self.scratch, 3), (self.user, 0), (self.ca, 2)):
            own.addWidget(field, stretch, Qt.AlignmentFlag.AlignTop)
        box = column(self._folded, spacing=8)
        box.addLayout(made)
        box.addWidget(self._own_fields)
        self._folded.hide()
        self.column.addWidget(self._folded)
        self.past.activated.connect(self._past)
        self.files.given.connect(self._give_change)
        self.share.given.connect(self._give_change)
        self.seed.given.connect(lambda value: self._edits.put("change the seed", "seed", value))
        for key, field in (("scratch", self.scratch), ("user", self.user), ("ca", self.ca)):
            field.given.connect(lambda value, key=key: self._give(key, value))

    def show_asked(self, asked: Asked, lab: Lab | None, wrong: Mapping[str, str]) -> None:
        """The experiment; `wrong` has what is wrong with a key, by the key."""
        self._asked = asked
        titles = known.titles()
        names = [*titles, *([asked.text("vcs")] if asked.text("vcs") not in titles else [])]
        if names != [self.vcs.itemData(n) for n in range(self.vcs.count())]:
            self.vcs.offer([titles.get(name, name) for name in names])
            for number, name in enumerate(names):
                self.vcs.setItemData(number, name)
        self.vcs.setCurrentIndex(names.index(asked.text("vcs")))
        data = asked.values.get("data")
        recipes = [one.name for one in known.DATA]
        self.data.setCurrentIndex(recipes.index(data) if data in recipes else len(recipes))
        self.data.setToolTip(
            known.DATA[recipes.index(data)].title
            if data in recipes
            else "A repository of your own, at its newest revision"
        )
        self.repository.hold(asked.text("repository") or MADE_AT)
        self._verdict(self.repository, wrong.get("repository", wrong.get("data", "")))
        self._right.show_sign("" if "repository" in wrong else marks.OK)
        clients = [host.name for host in lab.having(Role.CLIENT)] if lab is not None else []
        self.clients.show_clients(clients, asked.values.get("clients"), wrong.get("clients", ""))
        self._show_operations(asked)
        self._show_folded(asked, wrong, own=data is None)

    def _show_operations(self, asked: Asked) -> None:
        classes = known.classes(asked.text("vcs"))
        for name, card in self.cards.items():
            kind = classes.get(name)
            about = known.CLASS_WORDS.get(kind, "") if kind is not None else ""
            if about != card.about:
                card.describe(about)
            there = kind is not TrafficClass.NOT_APPLICABLE
            card.setChecked(name in asked.operations)
            card.setEnabled(there or card.isChecked())

    def _show_folded(self, asked: Asked, wrong: Mapping[str, str], *, own: bool) -> None:
        files, share = asked.change
        self.files.hold(str(files))
        self.share.hold(share.replace("%", "").replace(units.NBSP, " ").strip())
        self.seed.hold(str(asked.number("seed")))
        for key, field in (("scratch", self.scratch), ("user", self.user), ("ca", self.ca)):
            field.hold(asked.text(key))
            self._verdict(field, wrong.get(key, ""))
        needs = wrong.get("", "")
        if own and "scratch" in needs:
            self._verdict(self.scratch, needs)
        self._own_fields.setVisible(own)
        self._show_past(asked)
        if own and not self._own:
            self.unfold.setChecked(True)
        self._own = own

    def _show_past(self, asked: Asked) -> None:
        past, said = self._passing(asked), set(asked.names("disabled_only"))
        number = 0 if not said else 1 + asked.flag("launches") if said == set(past) else len(PAST)
        texts = [*PAST, _OTHER] if number == len(PAST) else list(PAST)
        if self.past.count() != len(texts):
            self.past.offer(texts)
        self.past.setCurrentIndex(number)
        self.past.setEnabled(bool(past) or bool(said))

    @staticmethod
    def _passing(asked: Asked) -> list[str]:
        classes = known.classes(asked.text("vcs"))
        return [name for name in asked.operations if classes.get(name) is TrafficClass.SERVER]

    @staticmethod
    def _verdict(field: Field, text: str) -> None:
        if not field.entry.hasFocus() or text:
            field.say(marks.TROUBLE if text else "", text)

    def _unfolded(self, on: bool) -> None:
        self._folded.setVisible(on)
        self.unfold.rename(self.unfold.word, "caret-up" if on else "caret-down")

    def _text(self, key: str) -> Callable[[str], str]:
        def read(text: str) -> str:
            if text.strip():
                typed.key(key, text.strip())
            return text.strip()

        return read

    @staticmethod
    def _repository(text: str) -> str:
        typed.key("repository", text.strip())
        return text.strip()

    # edits

    def _asked_for(self) -> None:
        for name, card in self.cards.items():
            if card is self.sender() and self._asked is not None:
                self._edits.ask_operation(name, card.isChecked(), self._asked)

    def _vcs(self, number: int) -> None:
        name = self.vcs.itemData(number)
        if self._asked is not None and name != self._asked.text("vcs"):
            self._edits.put(f"take {self.vcs.itemText(number)}", "vcs", name)

    def _data(self, number: int) -> None:
        if self._asked is None:
            return
        name = known.DATA[number].name if number < len(known.DATA) else None
        if name == self._asked.values.get("data"):
            return
        if name is None:
            address = self._asked.text("repository") or MADE_AT
            self._edits.put_all("take a repository as it is", {"data": None, "repository": address})
            self.repository.entry.setFocus(Qt.FocusReason.OtherFocusReason)
            return
        made = {"data": name, **dict.fromkeys(("scratch", "user", "ca"))}
        if self._asked.values.get("data") is None:
            made["repository"] = MADE_AT
        self._edits.put_all(f"have the data set {name} made", made)

    def _give_repository(self, value: object) -> None:
        self._edits.put("change the repository", "repository", value)

    def _give_clients(self, value: object) -> None:
        if value == 1:
            self._edits.take_out("have the first client do it alone", "clients")
        elif isinstance(value, int):
            self._edits.put(f"have all {value} clients do it at once", "clients", value)
        elif isinstance(value, list):
            self._edits.put(f"have {words.listed(value)} do it", "clients", value)

    def _give(self, key: str, value: object) -> None:
        name = {"scratch": "scratch place", "user": "user", "ca": "CA file"}[key]
        if value:
            self._edits.put(f"change the {name}", key, value)
        else:
            self._edits.take_out(f"take out the {name}", key)

    def _give_change(self, _value: object) -> None:
        share = f"{100 * decimals.share(self.share.entry.text()):g} %"
        self._edits.change("change the edit", int(self.files.entry.text()), share)

    def _past(self, number: int) -> None:
        if self._asked is None or number >= len(PAST):
            return
        names = self._passing(self._asked) if number else []
        self._edits.put_all(
            f"what the cache cannot serve is {PAST[number].removeprefix('… and ')}",
            {"disabled_only": names or None, "launches": True if number == 2 else None},
        )

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            entry = self.repository.entry
            self._right.move(entry.width() - 24, (entry.height() - 14) // 2)
        return False
