"""Whether the window may close: not over a run, a line held by hand or an unsaved profile without a word."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMainWindow

from gui.asking import CloseDialog
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
        window: QMainWindow,
    ) -> None:
        super().__init__(window)
        self._look, self._document, self._runs, self._deeds = look, document, runs, deeds
        self._opening, self._story, self._window = opening, story, window
        self.asked = False
        """True once the window is to close as soon as that does no harm"""

    def may(self) -> bool:
        """True if the window can close now; else what comes first is begun: a question, or a wait."""
        if self._deeds.held():
            self.asked = True
            return False
        if not self._runs.busy:
            if self._document.unsaved and not self.asked:
                self._opening.kept_first(self.stop_first)
                return False
            return True
        if not self.asked:
            dialog = CloseDialog(self._look, self._window)
            dialog.stopped.connect(self.stop_first)
            dialog.hidden.connect(self._go_on_unseen)
            dialog.open()
        return False

    def stop_first(self) -> None:
        """Stop softly and close."""
        self.asked = True
        if self._runs.busy:
            self._story.stop()
        else:
            self._window.close()

    def close_if_done(self) -> None:
        """Close, where that was asked for during a run: once it has ended and its answers are known."""
        if self.asked and not self._runs.busy and not self._runs.summing and not self._deeds.by_hand.busy:
            self._window.close()

    def _go_on_unseen(self) -> None:
        self.asked = True
        self._window.hide()
