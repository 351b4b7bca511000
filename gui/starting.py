"""What Start leads to: recent profiles, what a crash left, the wizard *New lab*, published figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMainWindow

from gui import reading
from gui.document import Document
from gui.doors import Doors
from gui.jobs import Jobs
from gui.opening import Opening
from gui.report import Trouble
from gui.start.page import StartPage
from gui.theme.look import Look
from lab import draft, recent
from lab.draft import Draft, Recovered
from lab.errors import BadInput

if TYPE_CHECKING:
    from gui.new_lab.wizard import Made, NewLabWizard
    from lab.analysis.before_after import Pairs
    from lab.analysis.summary import Summary


class Starting(QObject):
    """Follows the page and the document; opens through `Opening`.

    Signals: `told(object)` a `Trouble`; `answers(object)` a `Summary` of published figures, for *Results*.
    """

    told = Signal(object)
    answers = Signal(object)

    def __init__(
        self,
        look: Look,
        doors: Doors,
        jobs: Jobs,
        document: Document,
        opening: Opening,
        page: StartPage,
        window: QMainWindow,
    ) -> None:
        super().__init__(window)
        self._look, self._doors, self._jobs, self._window = look, doors, jobs, window
        self._document, self._opening, self._page = document, opening, page
        self._wizard: NewLabWizard | None = None
        page.new_lab.connect(self.new_lab)
        page.known.connect(opening.read_profile)
        page.forgotten.connect(self._forget)
        page.published.connect(self.show_published)
        page.recovered.connect(self._restore)
        page.thrown.connect(draft.forget)
        document.opened.connect(self._remember)
        document.saved.connect(self._remember)

    @property
    def wizard(self) -> NewLabWizard:
        """The wizard *New lab*, made when it is first wanted: what it knows of SSH is not needed for a window."""
        if self._wizard is None:
            from gui.new_lab.wizard import NewLabWizard

            self._wizard = NewLabWizard(self._look, self._doors, self._window)
            self._wizard.made.connect(self._made)
        return self._wizard

    def refresh(self) -> None:
        """List the recent profiles anew, whenever Start is shown."""
        self._jobs.do(reading.remembered(), self._page.show_profiles)

    def offer(self) -> None:
        """Offer what a crash left unsaved; once, after the window was painted."""
        self._page.offer_recovered(draft.recovered(self._doors.drafts()))

    def new_lab(self) -> None:
        """Open the wizard, once nothing unsaved would be lost by what comes of it."""
        if not self._opening.refused():
            self._opening.kept_first(lambda: self.wizard.open())

    def show_published(self, name: str) -> None:
        """Show published figures."""
        self._jobs.do(reading.published(name), self._published)

    def leave(self) -> None:
        """The window is going."""
        if self._wizard is not None:
            self._wizard.close()

    def _published(self, found: Summary | Pairs) -> None:
        from lab.analysis.before_after import Pairs

        if isinstance(found, Pairs):
            from gui.start.pairs import PairsDialog

            PairsDialog(self._look, found, self._window).open()
        else:
            self.answers.emit(found)

    def _made(self, made: Made) -> None:
        new = Draft(keep_in=self._doors.drafts())
        new.replace("new lab", made.text)
        if made.path is not None:
            try:
                new.save(made.path, overwrite=True)  # Qt has asked before a file is written over
                recent.agree(new.text)
            except BadInput as error:
                self.told.emit(Trouble(title=f"Not saved: {error}", text=error.advice, grade="warn"))
        self._opening.take_draft(new)

    def _restore(self, found: Recovered) -> None:
        self._opening.read_draft(lambda: draft.restored(found, keep_in=self._doors.drafts()))

    def _forget(self, path: Path) -> None:
        recent.forget(path)
        self.refresh()

    def _remember(self) -> None:
        profile, path = self._document.profile, self._document.path
        if profile is None or path is None or self._doors.passing(path) or self._doors.own(profile.lab):
            return
        recent.opened(profile)
        self.refresh()
