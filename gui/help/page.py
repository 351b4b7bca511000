"""The page *Help*: short topics, drawn where a drawing says more; F1 comes here at the topic of what has the focus."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from gui.help.drawings import Drawing, drawn
from gui.help.topics import KEYS, TOPICS, Topic
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Label, column, row
from gui.widgets.frame import Head

PROPERTY = "help"
"""The dynamic property of a widget that names its topic; it holds for everything inside of it."""
_WIDTH = 760


class HelpPage(QWidget):
    """Topics one under the other; a list of them at the left."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.head = Head(look)
        self.head.title.say("Help")
        self.head.say(
            "What the words and pictures mean. The guide that came with BranchLab (docs/guide.md) has the rest."
        )
        self.cards: dict[str, QWidget] = {}
        body = QWidget()
        body.setObjectName("scrolled")
        cards = column(body, spacing=12, margins=(0, 0, 8, 0))
        index = column(None, spacing=2)
        self._links: dict[str, Button] = {}
        for topic in TOPICS:
            self.cards[topic.key] = card = _card(look, topic)
            card.setFixedWidth(look.px(_WIDTH))
            cards.addWidget(card)
            self._links[topic.key] = link = Button(look, topic.title, "link", height=28)
            link.setProperty(PROPERTY, topic.key)
            link.clicked.connect(self._pressed)
            index.addWidget(link)
        cards.addStretch(1)
        index.addStretch(1)
        self.scroll = QScrollArea()
        self.scroll.setWidget(body)
        self.scroll.setWidgetResizable(True)
        self.scroll.setAccessibleName("Help")
        self.scroll.setFrameShape(QFrame.Shape.NoFrame)
        self.scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        whole = row(None, spacing=24)
        whole.addLayout(index)
        whole.addWidget(self.scroll, 1)
        layout = self._column = column(self, self.head, spacing=12, margins=(20, 14, 20, 16))
        layout.addLayout(whole, 1)

    def show_topic(self, key: str) -> None:
        """Bring a topic to the top; an unknown one: the first."""
        card = self.cards.get(key) or self.cards[TOPICS[0].key]
        self.scroll.verticalScrollBar().setValue(card.y())

    def _pressed(self) -> None:
        for key, link in self._links.items():
            if link is self.sender():
                self.show_topic(key)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        small = self.height() < 800 - 80
        self.head.small(small)
        margin = 16 if small else 20
        self._column.setContentsMargins(margin, 10 if small else 14, margin, 16)


def topic_of(widget: QWidget | None) -> str:
    """The topic of what has the focus: its own, or that of the nearest around it; else the keys."""
    while widget is not None:
        named = widget.property(PROPERTY)
        if isinstance(named, str) and named:
            return named
        widget = widget.parentWidget()
    return KEYS


def _card(look: Look, topic: Topic) -> Card:
    card = Card()
    card.setAccessibleName(topic.title)
    card.column.addWidget(Label(look, topic.title, 15, 600))
    if drawn(topic.key):
        card.column.addWidget(Drawing(look, topic.key))
    for text in topic.texts:
        label = Label(look, text, 13, 400, "text2" if topic.key == KEYS else "text", wrap=True)
        # A scroll area asks nobody how high a text of its width is.
        inside = look.px(_WIDTH) - 32
        label.setFixedSize(inside, label.heightForWidth(inside))
        card.column.addWidget(label)
    return card
