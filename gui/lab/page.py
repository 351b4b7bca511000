"""The page *Lab*: the picture, alive, and the inspector; the next step is a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QWidget

from gui import words
from gui.document import Document
from gui.lab import facts
from gui.lab.checked import OWN, CheckedLab
from gui.lab.editing import Editing
from gui.lab.edits import HostEdits
from gui.lab.hand import NOTHING, ByHandKnown
from gui.lab.hand_boxes import HELD_BY_RUN, WAIT
from gui.lab.inspector import Inspector
from gui.lab.items import THE_LINE
from gui.lab.picture import Picture
from gui.lab.rates import UNKNOWN
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Choice, IconButton, Label, column, row
from gui.widgets.frame import Head
from lab.live import Live
from lab.model import PAIRS, Experiment, Lab

_AGAIN = "arrows-clockwise"


class LabPage(QWidget):
    """Edits hosts and line of the document's profile.

    Signals: `run(object)` the experiment to run; `wanted()` a lab to be opened; `taken_back()` what any run left is to
    be taken back; `looked(object)` the hosts are to be checked for this experiment or None, `looked_at(object)` the
    host of this name alone, `left()` that is to be left; `provided()` what is missing is to be installed, and
    `unprovided()` what was installed is to be taken away; `filled(object)` and `purged(object)` the cache, for this
    experiment; `held(object)` this line is to be held; `hand_left()` what is done by hand is to end; `told(object)` a
    `Trouble`.
    """

    run = Signal(object)
    wanted = Signal()
    taken_back = Signal()
    looked = Signal(object)
    looked_at = Signal(object)
    left = Signal()
    provided = Signal()
    unprovided = Signal()
    filled = Signal(object)
    purged = Signal(object)
    held = Signal(object)
    hand_left = Signal()
    told = Signal(object)

    def __init__(self, look: Look, document: Document) -> None:
        super().__init__()
        self._look = look
        self._lab: Lab | None = None
        self._live, self._past = Live(), False
        self._checked: CheckedLab | None = None
        self._newer, self._looking = False, ""
        self._hand = NOTHING
        self._experiments: Sequence[Experiment] = ()
        self._trials: dict[str, int] = {}
        self.shown = facts.Shown()
        self.head = Head(look)
        self.head.title.say("Lab")
        self._choice = Choice(look, "Experiment")
        self._choice.currentIndexChanged.connect(self._named)
        self.start = Button(look, "Run", "filled", icon="play")
        self.start.clicked.connect(self._run)
        self._going, self._checking, self._providing = "", False, False
        self.revert = Button(look, "Take everything back", "flat", icon="arrow-counter-clockwise")
        self.revert.setToolTip(
            "What any run left on these hosts, of whoever began it; a run that still goes is left alone"
        )
        self.revert.clicked.connect(self.taken_back)
        self.provision = Button(look, "Provision …")
        self.provision.clicked.connect(self._provide)
        self.check = Button(look, "Check", icon=_AGAIN)
        self.check.clicked.connect(self._check)
        for widget in (self.revert, self.provision, self._choice, self.check, self.start):
            self.head.buttons.addWidget(widget)
        edits = HostEdits(document)
        self.picture, self.inspector = Picture(look), Inspector(look, edits)
        self.editing = Editing(look, document, edits, self.picture, self.inspector, self)
        card = _PictureCard(margins=(1, 1, 1, 1))
        card.column.addWidget(self.picture)
        card.corner = self._build_zoom(look, card)
        self.picture.chosen.connect(self.inspector.select)
        self.inspector.chosen.connect(self.picture.select)
        self.picture.entered.connect(self.inspector.enter)
        self.picture.zoomed.connect(self._tell_zoom)
        self.editing.told.connect(self.told)
        self.editing.checked.connect(self.looked_at)
        self.editing.filled.connect(self.fill)
        self.editing.purged.connect(self.purge)
        self.inspector.cache.filled.connect(self.fill)
        self.inspector.cache.purged.connect(self.purge)
        self.inspector.cache.left.connect(self.hand_left)
        self.inspector.line.held.connect(self.held)
        self.inspector.line.left.connect(self.hand_left)
        for keys, zoom in (
            ("Ctrl++", self._larger),
            ("Ctrl+=", self._larger),
            ("Ctrl+-", self._smaller),
            ("Ctrl+0", self._fit),
        ):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(zoom)
        document.changed.connect(self._say)
        self._body = row(None, spacing=12)
        self._body.addWidget(card, 1)
        self._body.addWidget(self.inspector)
        self._column = column(self, self.head, spacing=12)
        self._column.addLayout(self._body, 1)
        self._column.setContentsMargins(20, 14, 20, 16)
        self.show_lab(None, (), {})

    def show_lab(self, lab: Lab | None, experiments: Sequence[Experiment], trials: dict[str, int]) -> None:
        """The lab of a profile, its experiments, and how many trials each plans."""
        if lab != self._lab:
            self._hand = replace(self._hand, cache=None)
        if lab != self._lab or tuple(experiments) != tuple(self._experiments):
            self._checked = None  # of a profile that is no longer this one
        self._lab, self._experiments, self._trials = lab, experiments, trials
        self._choice.offer([experiment.name for experiment in experiments])
        self._choice.setVisible(len(experiments) > 1)
        self.refresh()

    def begin(self, live: Live, *, past: bool = False) -> None:
        """Another run; `past`: one that was read from a file."""
        self._live, self._past = live, past
        self._newer = self._newer and (past or not live.run)
        if live.running:
            self._hand = replace(self._hand, cache=None)  # which the run makes anew
        if self.isVisible():
            QTimer.singleShot(
                0, self, self.refresh
            )  # the other pages begin too: together it takes more than a frame

    def choose(self, experiment: str) -> None:
        """Choose an experiment by its name."""
        at = self._choice.findText(experiment)
        if at >= 0:
            self._choice.setCurrentIndex(at)

    def offered(self) -> list[tuple[str, Experiment]]:
        """Experiments that can be run on the lab that is open, each with its name."""
        return [(experiment.name, experiment) for experiment in self._experiments]

    @property
    def lab(self) -> Lab | None:
        """The lab that is open, not that of a run from a file."""
        return self._lab

    def know(self) -> facts.Shown:
        """What is known of hosts and line now, without showing it."""
        self.shown = facts.shown(
            self._lab,
            self._live,
            past=self._past,
            checked=self._checked,
            newer=self._newer,
            looking=self._looking,
            hand=self._hand,
        )
        return self.shown

    def refresh(self) -> None:
        """Hosts and line as they are known now; costs more than `redraw`."""
        self.know()
        self.picture.show_lab(self.shown)
        self.inspector.show_lab(self.shown)
        running = self._live.running
        self.start.setVisible(not running and (bool(self._experiments) or not self.shown.hosts))
        self._choice.setEnabled(not running)
        self.revert.setVisible(self._lab is not None and not running)
        self.check.setVisible(self._lab is not None and not running)
        self._offer_packages(running)
        self._refresh_check()
        self._named()
        self._say()

    @property
    def hand(self) -> ByHandKnown:
        """What is done by hand now, and known from it."""
        return self._hand

    def show_hand(self, known: ByHandKnown) -> None:
        """What is done by hand now, and known from it."""
        before, self._hand = self._hand, known
        if before.still() == known.still():  # only the lease's time has passed
            self._tell_hand()
        else:
            self.refresh()

    def say_by_hand(self, going: str) -> None:
        """Say how far something by hand is; an empty text: not under way."""
        self._going = going
        self._tell_hand()
        self._refresh_check()
        self._offer_packages(self._live.running)
        self._say()

    def fill(self) -> None:
        """The cache is to be filled, for the experiment that is chosen."""
        if (chosen := self._chosen()) is not None:
            self.filled.emit(chosen)

    def purge(self) -> None:
        """A part of the cache is to go."""
        if (chosen := self._chosen()) is not None:
            self.purged.emit(chosen)

    def show_line(self) -> None:
        """The line selected, and the field in which one is written."""
        self.picture.select(THE_LINE)
        self.inspector.line.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _tell_hand(self) -> None:
        chosen, box = self._chosen(), self.inspector
        busy = bool(self._going) and not self._checking and not self._hand.deed
        why = HELD_BY_RUN if self._live.running else WAIT if busy else ""
        self.editing.hold(why or (WAIT if self._going or self._hand.deed else ""))
        lacks = "" if chosen is not None else "The profile has no experiment, which says what is cached."
        full = self.shown.cache if self._hand.cache is None else None
        box.show_hand(self._hand, full, why, why or lacks)
        box.line.offer(chosen.lines if chosen is not None else ())

    def take_back(self, going: str) -> None:
        """Say how far taking everything back is; an empty text: not under way."""
        self._going = going
        self.revert.setEnabled(not going)
        self._say()

    def say_checking(self, going: str) -> None:
        """Say how far a check is; an empty text: not under way."""
        self._going, self._checking = going, bool(going)
        self._refresh_check()
        self._say()

    def say_providing(self, going: str) -> None:
        """Say how far looking at the packages is; an empty text: not under way."""
        self._going, self._providing = going, bool(going)
        self._offer_packages(self._live.running)
        self._refresh_check()
        self._say()

    def look_at(self, host: str) -> None:
        """This host is being checked; none for an empty name."""
        self._looking = host
        self.refresh()

    def show_check(self, checked: CheckedLab) -> None:
        """What a check of this lab found."""
        self._checked, self._newer = checked, True
        self.refresh()

    @property
    def checked(self) -> CheckedLab | None:
        """What the last check of this profile's lab found."""
        return self._checked

    @property
    def checking(self) -> bool:
        """True while a check goes."""
        return self._checking

    @property
    def experiment(self) -> Experiment | None:
        """The one that is chosen."""
        return self._chosen()

    def _offer_packages(self, running: bool) -> None:
        lacks = self._checked is not None and self._checked.lacks_packages
        own = self._checked is not None and self._checked.own
        self.provision.setVisible((lacks or self._providing) and not running)
        self.provision.setEnabled(self._providing or not (own or self._going))
        self.provision.rename("Cancel" if self._providing else "Provision …")
        self.provision.setToolTip(
            OWN if own else "What is missing, and the exact commands; nothing is done yet"
        )

    def _refresh_check(self) -> None:
        """Its word, and which of check and run is the next step: that one is filled, and last."""
        busy, checked = bool(self._checking), self._checked
        self.check.rename(
            "Cancel" if busy else "Check again" if checked else "Check", "x" if busy else _AGAIN
        )
        wrong = checked is not None and checked.wrong > 0 and self._newer and not busy
        self.check.setEnabled(busy or not self._going)
        self.check.use("filled" if wrong else "plain")
        self.start.use("plain" if wrong else "filled")
        last = self.check if wrong else self.start
        buttons = self.head.buttons
        if buttons.itemAt(buttons.count() - 1).widget() is not last:
            buttons.removeWidget(last)
            buttons.addWidget(last)

    def _provide(self) -> None:
        if self._providing:
            self.left.emit()
        else:
            self.provided.emit()

    def _check(self) -> None:
        if self._checking:
            self.left.emit()
        else:
            self.looked.emit(self._chosen())

    def redraw(self) -> None:
        """Traffic as it is now."""
        live = self._live
        told = {pair: live.rate(pair) for pair in PAIRS}
        rates = {pair: UNKNOWN if rate is None else rate for pair, rate in told.items()}
        host = live.current.host if live.current else ""
        self.picture.show_traffic(rates, host)

    def _say(self) -> None:
        hosts, written = self.shown.hosts, self.editing.lab
        if self._going:
            self.head.say(self._going)
        elif written is not None and written.wrong and not self._live.running:
            self.head.say(f"Not right yet: {written.wrong[0]}")
        elif not hosts:
            self.head.say("No lab is open.")
        elif self._past and self._lab is None:
            self.head.say("The hosts of the run that is open. Nothing is connected.")
        elif self._checked is not None and self._newer and not self._live.running:
            self.head.say(f"{self._checked.sentence()}. Checked at {self._checked.when}.")
        elif self._live.running:
            used = [host.name for host in hosts if host.name in self._live.hosts]
            told = f"{', '.join(used[:-1])} and {used[-1]}" if len(used) > 1 else "this lab"
            self.head.say(f"A run is using {told}.")
        else:
            own = self._lab is not None and self._lab.place in ("office", "senders")
            line = (
                "a line to the server for each office host" if own else "one line between office and server"
            )
            self.head.say(f"{words.isolated(self.shown.name) or 'The lab'}: {len(hosts)} hosts, {line}.")

    def _named(self) -> None:
        self._tell_hand()
        chosen = self._chosen()
        if chosen is None:
            self.start.rename("Open a lab", "folder-open")
        else:
            number = self._trials.get(chosen.name, 0)
            self.start.rename(f"Run {number:,} trials" if number else "Run", "play")

    def _chosen(self) -> Experiment | None:
        at = max(0, self._choice.currentIndex())
        return self._experiments[at] if at < len(self._experiments) else None

    def _run(self) -> None:
        chosen = self._chosen()
        if chosen is not None:
            self.run.emit(chosen)
        else:
            self.wanted.emit()

    def _build_zoom(self, look: Look, card: Card) -> QWidget:
        bar = QWidget(card)
        self._percent = Label(look, "100 %", 12, 400, "text2")
        smaller, larger = (
            IconButton(look, "minus", "Smaller (Ctrl −)", 16),
            IconButton(look, "plus", "Larger (Ctrl +)", 16),
        )
        fit = IconButton(look, "corners-out", "Fit (Ctrl 0)", 16)
        smaller.clicked.connect(self._smaller)
        larger.clicked.connect(self._larger)
        fit.clicked.connect(self._fit)
        for button in (smaller, larger, fit):
            button.setProperty("framed", True)
            button.setFixedSize(30, 30)
        row(bar, smaller, self._percent, larger, fit, spacing=6)
        bar.adjustSize()
        return bar

    def _smaller(self) -> None:
        self._zoomed(1 / 1.1)

    def _larger(self) -> None:
        self._zoomed(1.1)

    def _fit(self) -> None:
        self._zoomed(0)

    def _zoomed(self, factor: float) -> None:
        self.picture.zoom(factor)

    def _tell_zoom(self) -> None:
        self._percent.say(f"{self.picture.scale_percent} %")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        small = self.height() < 800 - 80
        margin, gap = (16, 8) if small else (20, 12)
        self.head.small(small)
        self._column.setContentsMargins(margin, 10 if small else 14, margin, 12 if small else 16)
        self._column.setSpacing(gap)
        self._body.setSpacing(gap)


class _PictureCard(Card):
    """The picture's card, with a widget in its lower right corner."""

    corner: QWidget | None = None

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.corner is not None:
            size = self.corner.sizeHint()
            self.corner.resize(size)
            self.corner.move(self.width() - size.width() - 18, self.height() - size.height() - 12)
