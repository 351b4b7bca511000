"""Where the line is held, chosen beside the picture while the line is selected."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from gui.lab.edits import HostEdits
from gui.lab.host_box import StillChoice
from gui.lab.written import LabWritten
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Label, Said, column, rule
from gui.widgets.fields import labelled
from lab.model import PLACES, Role

NAMES = {
    "server": "on the server",
    "router": "on the router between",
    "office": "at each office host, for itself",
    "senders": "at whoever sends",
}
MEANS = {
    "server": "One line for all office hosts, both ways. The server’s kernel needs IFB for the upload.",
    "router": "One line for all office hosts, both ways, on a router of yours that all their traffic passes.",
    "office": "Each office host has a line of its own, so that it is per host; the server is not touched.",
    "senders": "The download on the server, shared; the upload at each office host, per host. It takes no IFB.",
}


class PlaceBox(QWidget):
    """Edits `line` of the profile."""

    def __init__(self, look: Look, edits: HostEdits) -> None:
        super().__init__()
        self._edits = edits
        self._places: list[str] = []
        self._line = ""
        self.choice = StillChoice(look, "Where the line is held")
        self.choice.setMinimumWidth(120)
        self._means = Label(look, "", 12, 400, "text2", wrap=True)
        self._verdict = Said(look, "", "", 12, 400, "trouble")
        self._verdict.label.setWordWrap(True)
        layout = column(self, rule(), margins=(0, 12, 0, 0), spacing=6)
        layout.addLayout(labelled(look, "Where the line is held", self.choice))
        for one in (self._verdict, self._means):
            layout.addWidget(one)
        self.choice.activated.connect(self._give)

    def show_lab(self, lab: LabWritten, why_not: str) -> None:
        """The lab as it is written; `why_not`: why nothing can be edited now."""
        router = bool(lab.having(Role.ROUTER))
        usual = "router" if router else "server"
        places = ["", *(place for place in PLACES if place != "router" or router or lab.line == place)]
        if places != self._places or self.choice.itemText(0) != _usual(usual):
            self._places = places
            self.choice.offer([NAMES.get(place, _usual(usual)) for place in places])
            self.choice.setMinimumWidth(120)
        self._line = lab.line
        self.choice.setCurrentIndex(places.index(lab.line) if lab.line in places else 0)
        self.choice.setEnabled(not why_not)
        self._means.say(why_not or MEANS[lab.line if lab.line in MEANS else usual])
        self._verdict.say(marks.TROUBLE if lab.line_wrong else "", lab.line_wrong)
        self._verdict.setVisible(bool(lab.line_wrong))

    def _give(self, number: int) -> None:
        if self._places[number] != self._line:
            self._edits.place_line(self._places[number])


def _usual(place: str) -> str:
    return f"as usual: {NAMES[place]}"
