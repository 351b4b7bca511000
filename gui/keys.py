"""The keys of the whole window, and its list of actions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QMenu

from gui import copying
from gui.actions import Actions
from gui.doable import doable, with_the_profile
from gui.help.page import topic_of
from gui.report import Trouble
from gui.telling import EXPERIMENT, LAB, PLACES
from gui.theme.look import Look

if TYPE_CHECKING:
    from gui.main_window import MainWindow

_NOTHING_TO_COPY = Trouble(
    title="There is nothing to copy here.",
    text="Point at a table, a chart or what a check found, or go there with Tab; then press Ctrl C.",
    grade="info",
)


class Keys(QObject):
    """Each does what a press on its page would do."""

    def __init__(self, look: Look, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.actions = Actions(look, window)
        for number, place in enumerate(PLACES, 1):
            self._key(f"Alt+{number}", partial(window.show_page, place.key))
        self._key("F1", self.help)
        self._key("F6", window.pages.next_part)
        self._key("Ctrl+R", self.run)
        self._key("F5", self.check)
        self._key("Ctrl+N", window.starting.new_lab)
        self._key("Ctrl+O", window.opening.ask_any)
        self._key("Ctrl+S", window.opening.save)
        self._key("Ctrl+Shift+S", window.opening.save_as)
        self._key("Ctrl+Z", self._undo)
        self._key("Ctrl+Shift+Z", self._redo)
        self._key("Ctrl+K", self.offer_actions)
        self._key("Ctrl+C", self._copy)

    def _key(self, keys: str, slot: Callable[[], None]) -> None:
        QShortcut(QKeySequence(keys), self._window).activated.connect(slot)

    def run(self) -> None:
        """The experiment that is seen, or that of the Lab page."""
        window = self._window
        if window.running:
            return
        shown = window.experiment_page.experiment if window.pages.seen == EXPERIMENT else None
        if shown is not None:
            window.start_run(shown)
        else:
            window.show_page(LAB)
            window.lab_page.start.click()

    def check(self) -> None:
        """The hosts."""
        if not self._window.running:
            self._window.deeds.check(self._window.lab_page.experiment)

    def help(self) -> None:
        """At the topic of what has the focus."""
        self._window.explain(topic_of(QApplication.focusWidget()))

    def offer_actions(self) -> None:
        """All that can be done now, to be searched."""
        self.actions.offer(doable(self._window))

    def offer_profile(self, place: QPoint) -> None:
        """What can be done with the profile that is open, as a menu at this place of the screen."""
        menu = QMenu(self._window)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for action in with_the_profile(self._window):
            menu.addAction(f"{action.name}\t{action.keys}", action.do)
        menu.popup(place)

    def _undo(self) -> None:
        self._window.document.undo()

    def _redo(self) -> None:
        self._window.document.redo()

    def _copy(self) -> None:
        if not copying.copy_here(self._window):
            self._window.pages.banner.tell(_NOTHING_TO_COPY)
