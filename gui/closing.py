"""Whether the window may close: not over a run, a line held by hand or an unsaved profile without a word."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMainWindow

from gui.asking import CloseDialog
from gui.away import Away
from gui.deeds import Deeds
from gui.document import Document
from gui.opening import Opening
from gui.runs import Runs
from gui.story import Story
from gui.theme.look import Look


class Closing(QObject):
    """Asked by the window's close event; closes the window itself once what it waited for has ended."""

    def __init__(
        self,
        look: Look,
        document: Document,
        runs: Runs,
        deeds: Deeds,
        opening: Opening,
        story: Story,
        away: Away,
        window: QMainWindow,
    ) -> None:
        super().__init__(window)
        self._look, self._document, self._runs, self._deeds = look, document, runs, deeds
        self._opening, self._story, self._away, self._window = opening, story, away, window
        self._dialog: CloseDialog | None = None
        self._once_over = self._given_up = False
        self.asked = False
        """True once the window is to close without a question, as soon as that does no harm"""

    def may(self) -> bool:
        """True if the window can close now; else what comes first is begun: a question, or a wait."""
        if self._deeds.held():
            self._once_over = True
            return False
        if self._runs.busy:
            if not (self.asked or self._once_over or self._dialog):
                self._ask()
            return False
        if self._document.unsaved and not self.asked:
            self._opening.kept_first(self._give_up)
            return False
        return True

    @property
    def forgets(self) -> bool:
        """True if a person gave up what is not saved, or all is; else it is kept, and offered at the next start."""
        return self._given_up or not self._document.unsaved

    def at_once(self) -> None:
        """Stop softly and close without a question, as Ctrl C in the terminal asks."""
        self.asked = True
        self._stop_first()

    def close_if_done(self) -> None:
        """Close, where that was asked for during a run: once it has ended and its answers are known."""
        if self._runs.busy or self._runs.summing or self._deeds.by_hand.busy:
            return
        if self._dialog is not None:
            self._dialog.reject()  # there is nothing more to be asked; what came of the run stays to be seen
        if self._away.on and not self._away.tray.there:
            self.asked = True  # nobody can be asked, and nothing brings it back
        if self.asked or self._once_over:
            self._window.close()

    def _ask(self) -> None:
        self._dialog = dialog = CloseDialog(self._look, self._window, tray=self._away.tray.there)
        dialog.finished.connect(self._answered)
        dialog.stopped.connect(self._stop_first)
        dialog.hidden.connect(self._away.go)
        dialog.open()

    def _answered(self) -> None:
        self._dialog = None

    def _stop_first(self) -> None:
        self._once_over = True
        if self._runs.busy:
            self._story.stop()
        else:
            self._window.close()

    def _give_up(self) -> None:
        self.asked = self._given_up = True
        self._window.close()
