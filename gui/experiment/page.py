"""The page *Experiment*: four cards that are edited, and beside them what that takes, always true."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, QMetaMethod, QObject, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QApplication, QFrame, QLineEdit, QMenu, QScrollArea, QWidget

from gui.document import Document
from gui.experiment import asked, doubts, known
from gui.experiment.asked import Asked
from gui.experiment.beside import Beside
from gui.experiment.commands import CommandsDialog
from gui.experiment.edits import NEW, Edits, free_name
from gui.experiment.lines import LinesCard
from gui.experiment.often import OftenCard
from gui.experiment.outlook import Outlook, Outlooks
from gui.experiment.states import StatesCard
from gui.experiment.what import WhatCard
from gui.theme.look import Look
from gui.widgets.basic import Button, Choice, Empty, column, row
from gui.widgets.frame import Head
from lab import design
from lab.analysis import words
from lab.errors import BadInput
from lab.model import Experiment
from lab.profile import Problem

_SMALL_HEIGHT = 800 - 80


class ExperimentPage(QWidget):
    """Reads and edits the document's profile; one experiment of it is shown.

    Signals: `run(object)` the `Experiment` is to be run; `shown(object)` another one is shown (its name), or it is
    another size; `wanted()` there is no profile, and one is wanted; `explained(object)` a topic of the help is
    wanted: `states`; `crashed(object)` an exception of a thread.
    """

    run = Signal(object)
    shown = Signal(object)
    wanted = Signal()
    explained = Signal(object)
    crashed = Signal(object)

    def __init__(self, look: Look, document: Document) -> None:
        super().__init__()
        self._look, self._document = look, document
        self._name, self._before, self._count = "", "", 0
        self._asked: Asked | None = None
        self._outlook: Outlook | None = None
        self._busy = ""
        self.edits = Edits(document)
        self._outlooks = Outlooks(self)
        self._build_head(look)
        self.what, self.lines = WhatCard(look, self.edits), LinesCard(look, self.edits)
        self.states, self.often = StatesCard(look, self.edits), OftenCard(look, self.edits)
        self.beside = Beside(look)
        self._build_body(look)
        self._wire()
        self.refresh()

    # what the window asks for

    @property
    def experiment(self) -> Experiment | None:
        """The experiment that is shown, if it and its profile are right."""
        return self._asked.checked if self._asked is not None else None

    @property
    def trials(self) -> int | None:
        """How many trials it plans; None while something is wrong, and without an experiment."""
        return design.size(self.experiment).trials if self.experiment is not None else None

    def choose(self, name: str) -> None:
        """Show this experiment of the profile; the first one where it has no such name."""
        self._name = name
        self._show()

    def refresh(self) -> None:
        """Look again at everything: drivers, runs to learn from, the profile."""
        known.forget()
        self._outlooks.forget()
        self._show()

    def hold(self, why: str) -> None:
        """No run can be begun from here, for this reason; an empty one: it can again."""
        if why != self._busy:
            self._busy = why
            self._show()

    def doable(self) -> list[tuple[str, str, Callable[[], object]]]:
        """What the list of actions offers of this page: name, icon, deed."""
        if self._document.profile is None:
            return []
        made: list[tuple[str, str, Callable[[], object]]] = [("New experiment", "plus", self.add)]
        if self._asked is None:
            return made
        made += [
            ("Duplicate the experiment", "copy", self.duplicate),
            ("Rename the experiment", "pencil", self.rename),
            ("Move the experiment up", "caret-up", self.move_up),
            ("Move the experiment down", "caret-down", self.move_down),
            ("Remove the experiment", "trash", self.remove),
            ("Does upload matter?", "arrows-left-right", self.lines.upload_matters),
            ("Copy the table of lines", "copy", self.lines.table.copy),
        ]
        if self._outlook is not None and self._outlook.commands is not None:
            made.append(("All commands of the experiment", "info", self._show_commands))
        for one in asked.experiments(self._document.draft):
            if one.place != self._asked.place:
                made.append((f"Experiment {one.name}", "flask", partial(self.choose, one.name)))
        return made

    # deeds

    def add(self) -> None:
        """A new experiment, shown."""
        name = free_name(NEW, self._names())
        self._before, self._name = self._name, name
        if not self.edits.add(name):
            self._name = self._before
        self._show()

    def duplicate(self) -> None:
        """The same once more, shown."""
        if self._asked is None:
            return
        name, copied = self._asked.name, free_name(f"{self._asked.name}, copy", self._names())
        self._before, self._name = name, copied
        if not self.edits.duplicate(name, copied):
            self._name = name
        self._show()

    def remove(self) -> None:
        """Take the experiment out; Ctrl Z brings it back."""
        if self._asked is not None:
            self._before = ""
            self.edits.remove(self._asked.name)

    def move_up(self) -> None:
        """Have it stand before the one above it."""
        self._move(-1)

    def move_down(self) -> None:
        """Have it stand behind the one below it."""
        self._move(1)

    def _move(self, by: int) -> None:
        if self._asked is not None and 0 <= self._asked.place + by < len(self._names()):
            self.edits.move(self._asked.name, self._asked.place + by)

    def rename(self) -> None:
        """Edit the title in its place."""
        if self._asked is not None:
            self._title.begin(self._asked.name)

    # building

    def _build_head(self, look: Look) -> None:
        self.head = Head(look)
        self.others = Button(look, "Other experiments", "flat", "list")
        self.duplicates = Button(look, "Duplicate", icon="copy")
        self.menu = QMenu(self)
        self.others.clicked.connect(self._offer)
        self.duplicates.clicked.connect(self.duplicate)
        for button in (self.others, self.duplicates):
            self.head.buttons.addWidget(button)
        self._title = _Title(look, self.head)
        self._title.given.connect(self._rename)
        self.head.title.setToolTip("Press twice, or F2, to rename")
        self.head.title.installEventFilter(self)
        self.head.say("")

    def _build_body(self, look: Look) -> None:
        text = (
            "What is measured, over which lines, in which proxy states and how often, is put together here."
        )
        self._empty = Empty(look, "flask", "No experiment yet", text, "New experiment")
        self._empty.pressed.connect(self._press_empty)
        inside = QWidget()
        inside.setObjectName("scrolled")
        self._cards = column(inside, self.what, self.lines, self.states, self.often, spacing=12)
        self._cards.addStretch(1)
        self._scroll = QScrollArea()
        self._scroll.setWidget(inside)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setAccessibleName("The experiment, to scroll")
        self._middle = QWidget()
        self._sides = row(self._middle, spacing=2)
        self._sides.addWidget(self._scroll, 1)
        self._sides.addWidget(self.beside)
        self._column = column(self, self.head, self._empty, spacing=12)
        self._column.addWidget(self._middle, 1)

    def _wire(self) -> None:
        self._document.opened.connect(self._opened)
        self._document.changed.connect(self._show)
        self._outlooks.told.connect(self._show_outlook)
        self._outlooks.crashed.connect(self.crashed)
        self.beside.run.connect(self._run)
        self.beside.commands.connect(self._show_commands)
        self.states.explained.connect(partial(self.explained.emit, "states"))
        for choice in self.findChildren(Choice):
            choice.installEventFilter(self)
        shortcut = QShortcut(QKeySequence("F2"), self)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(self._f2)
        QApplication.instance().focusChanged.connect(self._follow)  # type: ignore[union-attr]

    # showing

    def _opened(self) -> None:
        self._name = ""
        self._outlook = None
        self._scroll.verticalScrollBar().setValue(0)
        self.refresh()

    def _names(self) -> list[str]:
        return [one.name for one in asked.experiments(self._document.draft)]

    def _found(self) -> Asked | None:
        """The one of that name. Where it was renamed, the one in its place; where adding it was taken back, the one
        that was shown before."""
        every = asked.experiments(self._document.draft)
        fewer, self._count = len(every) < self._count, len(every)
        if not every:
            return None
        at = self._asked.place if self._asked is not None and self._name else 0
        named = [one for one in every if one.name == self._name]
        if not named and fewer:
            named = [one for one in every if one.name == self._before]
        same = [one for one in named if one.place == at]
        return (same or named or [every[min(at, len(every) - 1)]])[0]

    def _show(self) -> None:
        found = self._found()
        draft, profile = self._document.draft, self._document.profile
        self._asked = found
        for widget in (self._middle, self.others, self.duplicates):
            widget.setVisible(found is not None)
        self._empty.setVisible(found is None)
        if found is None:
            self._outlooks.drop()
            self._say_empty()
            self.shown.emit("")
            return
        self._name, self.edits.place = found.name, found.place
        here, elsewhere = asked.problems_of(draft, found.place)
        wrong = {_key(problem): doubts.sentence(problem.text) for problem in reversed(here)}
        self._say_head()
        self.what.show_asked(found, profile.lab if profile is not None else None, wrong)
        self.lines.show_asked(found)
        self.states.show_asked(found)
        self.often.show_asked(found, wrong)
        self._show_beside(here, elsewhere)
        self.shown.emit(found.name)

    def _show_beside(self, here: tuple[Problem, ...], elsewhere: tuple[Problem, ...]) -> None:
        found, profile = self._asked, self._document.profile
        checked = self.experiment
        self.beside.show_size(
            design.size(checked) if checked is not None else None,
            len(here) + len(elsewhere),
            self._busy,
            words.at_once(checked) if checked is not None else "",
        )
        self._say(here, elsewhere)
        if checked is not None and profile is not None and found is not None:
            self._outlooks.ask(profile.lab, checked)
        else:
            self._outlooks.drop()
            self.lines.show_times({})

    def _say(self, here: tuple[Problem, ...], elsewhere: tuple[Problem, ...]) -> None:
        if self._asked is None:
            return
        problems = [doubts.sentence(problem.text) for problem in here]
        problems += [f"{_where(problem)}: {doubts.sentence(problem.text)}" for problem in elsewhere]
        doubtful = doubts.doubts(self._asked, self.edits) if not here else []
        trouble = self._outlook.trouble if self._outlook is not None and not problems else ""
        self.beside.show_said(problems, doubtful, trouble)

    def _show_outlook(self, outlook: Outlook) -> None:
        if outlook.experiment != self.experiment:
            return
        self._outlook = outlook
        self.beside.show_outlook(outlook)
        self.lines.show_times(outlook.forecast.lines if outlook.forecast is not None else {})
        if self._asked is not None:
            self._say(*asked.problems_of(self._document.draft, self._asked.place))

    def _say_head(self) -> None:
        profile, found = self._document.profile, self._asked
        self.head.title.say(found.name if found is not None else "Experiment")
        name = profile.lab.name if profile is not None and profile.lab.name else ""
        count = len(self._names())
        which = "The one experiment" if count == 1 else f"One of {count} experiments"
        of = f" of the profile {name}" if name else ""
        self.head.say(f"{which}{of}. Every change is kept as you make it; Ctrl Z takes it back.")

    def _say_empty(self) -> None:
        self.head.title.say("Experiment")
        there = self._document.draft is not None
        self.head.say("The profile that is open has no experiment." if there else "No profile is open.")
        self._empty.setAccessibleName("No experiment yet")
        for button in self._empty.findChildren(Button):
            button.rename("New experiment" if there else "Open or make a lab")

    # asking

    def _press_empty(self) -> None:
        if self._document.draft is None:
            self.wanted.emit()
        else:
            self.add()

    def _offer(self) -> None:
        self.menu.clear()
        for one in asked.experiments(self._document.draft):
            action = self.menu.addAction(one.name)
            action.setCheckable(True)
            action.setChecked(self._asked is not None and one.place == self._asked.place)
            action.triggered.connect(partial(self._choose_place, one))
        self.menu.addSeparator()
        at, last = (self._asked.place if self._asked is not None else 0), len(self._names()) - 1
        for text, do, can in (
            ("New experiment", self.add, True),
            ("Duplicate", self.duplicate, True),
            ("Rename\tF2", self.rename, True),
            ("Move up", self.move_up, at > 0),
            ("Move down", self.move_down, at < last),
            ("Remove", self.remove, True),
        ):
            action = self.menu.addAction(text)
            action.setEnabled(can)
            action.triggered.connect(partial(_do, do))
        self.menu.popup(self.others.mapToGlobal(self.others.rect().bottomLeft()))

    def _choose_place(self, one: Asked, _checked: bool = False) -> None:
        self._asked = one
        self.choose(one.name)
        self._scroll.verticalScrollBar().setValue(0)

    def _rename(self, name: str) -> None:
        if self._asked is None or name == self._asked.name:
            return
        if name in self._names():
            self._title.refuse(f"There is another experiment {name}: write another name.")
            return
        self._name = name
        self._title.end()
        self.edits.put(f"rename the experiment {self._asked.name}", "name", name)

    def _f2(self) -> None:
        focus = QApplication.focusWidget()
        table = self.lines.table
        if focus is table and table.currentIndex().isValid():
            table.begin_edit()
        else:
            self.rename()

    def _run(self) -> None:
        if self.experiment is not None and not self._busy:
            self.run.emit(self.experiment)

    def _show_commands(self) -> None:
        if self._outlook is not None and self._outlook.commands is not None:
            CommandsDialog(self._look, self.window(), self._outlook).open()

    # Qt's

    def _follow(self, _before: QWidget | None, now: QWidget | None) -> None:
        """Scroll to what the keyboard came to."""
        if now is not None and self._scroll.isAncestorOf(now) and now is not self.lines.table:
            self._scroll.ensureWidgetVisible(now, 0, 24)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.states.offer_help(self.isSignalConnected(QMetaMethod.fromSignal(self.explained)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel:  # a wheel that turns over a list box scrolls the page
            event.ignore()
            return True
        if watched is self.head.title and event.type() == QEvent.Type.MouseButtonDblClick:
            self.rename()
            return True
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        small = self.height() < _SMALL_HEIGHT
        margin, gap = (16, 8) if small else (20, 10)
        self.beside.small(small)
        self.head.small(small)
        self._column.setContentsMargins(margin, 10 if small else 14, margin, 10 if small else 14)
        self._column.setSpacing(8)
        self._cards.setContentsMargins(0, 0, 10, 0)
        self._cards.setSpacing(gap)
        self._title.place()


class _Title(QLineEdit):
    """Lies over the title while it is edited. Signal `given(str)`: another name."""

    given = Signal(str)

    def __init__(self, look: Look, head: Head) -> None:
        super().__init__(head)
        self._head = head
        self.setFont(look.font(18, 600))
        self.setAccessibleName("Name of the experiment")
        self.hide()

    def begin(self, name: str) -> None:
        """Edit it."""
        self.refuse("")
        self.setText(name)
        self.selectAll()
        self.show()
        self.place()
        self.raise_()
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def end(self) -> None:
        """Edit no more."""
        self.hide()

    def refuse(self, why: str) -> None:
        """Say that the name cannot be; an empty reason: nothing is wrong."""
        self.setProperty("wrong", bool(why))
        self.style().unpolish(self)
        self.style().polish(self)
        self.setToolTip(why)
        self.setAccessibleDescription(why)
        if why:
            self._head.say(why)

    def place(self) -> None:
        """Over the title, wherever that is."""
        title = self._head.title
        corner = title.mapTo(self._head, title.rect().topLeft())
        self.setGeometry(corner.x() - 9, corner.y() - 3, min(520, title.width()), 32)

    def _take(self) -> None:
        from gui.experiment import typed

        name = self.text().strip()
        try:
            typed.key("name", name)
        except BadInput as error:
            self.refuse(str(error))
            return
        self.given.emit(name)
        if not self.property("wrong"):
            self.end()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.end()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.refuse("")
            self._take()
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if self.isVisible() and event.reason() not in (
            Qt.FocusReason.PopupFocusReason,
            Qt.FocusReason.ActiveWindowFocusReason,
        ):
            self.refuse("")
            self._take()
            self.end()


def _do(deed: Callable[[], object], _checked: bool = False) -> None:
    deed()


def _key(problem: Problem) -> str:
    """The key of an experiment that a problem is about; empty for the whole."""
    return str(problem.place[2]) if len(problem.place) > 2 else ""


def _where(problem: Problem) -> str:
    """A problem's place elsewhere in the profile, in words."""
    if not problem.place:
        return f"Line {problem.line}"
    if problem.place[0] == "experiments" and len(problem.place) > 1:
        return f"Experiment {int(problem.place[1]) + 1}"
    if problem.place[0] == "hosts" and len(problem.place) > 1:
        return f"Host {problem.place[1]}"
    return str(problem.place[0]).capitalize()
