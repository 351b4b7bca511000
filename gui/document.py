"""The profile that is open: every edit of it from any page, taken back from anywhere, saved, and kept for a crash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from gui.report import Trouble
from lab.draft import Draft, Edit
from lab.errors import BadInput
from lab.profile import Place, Problem, Profile


class Document(QObject):
    """One profile at a time, or none. Every page reads `profile` and edits through `change`, `put` and `remove`.

    Signals: `opened()` it is another one (also none); `changed()` it says something else, by an edit, undo or redo;
    `saved()` it is in its file; `told(object)` a `Trouble`: an edit or a save that could not be made.
    """

    opened = Signal()
    changed = Signal()
    saved = Signal()
    told = Signal(object)

    def __init__(self, parent: QObject | None = None, *, keep_in: Path | None = None) -> None:
        super().__init__(parent)
        self._keep_in = keep_in
        self._draft: Draft | None = None

    # what it says

    @property
    def draft(self) -> Draft | None:
        """The text and its history."""
        return self._draft

    @property
    def profile(self) -> Profile | None:
        """The newest text that was right."""
        return self._draft.profile if self._draft is not None else None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the text as it is; a run waits until there are none."""
        return self._draft.problems if self._draft is not None else ()

    @property
    def path(self) -> Path | None:
        """Its file; None if it was never saved."""
        return self._draft.path if self._draft is not None else None

    @property
    def unsaved(self) -> bool:
        """True if there is something that its file does not say."""
        return self._draft is not None and self._draft.changed

    @property
    def undoes(self) -> str:
        """What `undo` would take back; empty if nothing can be."""
        return self._draft.undoes if self._draft is not None else ""

    @property
    def redoes(self) -> str:
        """What `redo` would do again; empty if nothing can be."""
        return self._draft.redoes if self._draft is not None else ""

    # opening

    def take(self, draft: Draft | None) -> None:
        """Have this one open from now on; what was kept of the one before is forgotten."""
        if self._draft is not None and self._draft is not draft:
            self._draft.close()
        self._draft = draft
        self.opened.emit()

    def open(self, path: Path) -> None:
        """Open a profile, also one that is wrong. Raises BadInput where it is no readable text."""
        self.take(Draft.opened(path, keep_in=self._keep_in))

    def begin(self, text: str, what: str = "") -> None:
        """Open a text that has no file yet; with `what`, it can be taken back to an empty profile."""
        draft = Draft(keep_in=self._keep_in)
        draft.replace(what or "new profile", text)
        self.take(draft)

    # editing

    def change(self, what: str, edit: Edit) -> bool:
        """Let `edit` change the document in one step, named `what` as in *remove the line*. True if it could."""
        return self._edited(lambda draft: draft.change(what, edit))

    def rewrite(self, what: str, edit: Callable[[str], str]) -> bool:
        """Take the text that `edit` makes of this one, in one step named `what`. True if it could."""
        return self._edited(lambda draft: draft.replace(what, edit(draft.text)))

    def put(self, what: str, place: Place, value: Any) -> bool:
        """Give the key at `place` a value; comments beside it stay. True if it could."""
        return self._edited(lambda draft: draft.put(what, place, value))

    def remove(self, what: str, place: Place) -> bool:
        """Take out the key, table or member of a list at `place`. True if it could."""
        return self._edited(lambda draft: draft.remove(what, place))

    def _edited(self, edit: Callable[[Draft], None]) -> bool:
        if self._draft is None:
            return False
        try:
            edit(self._draft)
        except (BadInput, LookupError, ValueError) as error:
            advice = error.advice if isinstance(error, BadInput) else ""
            self.told.emit(Trouble(title=str(error), text=advice, grade="warn"))
            return False
        self.changed.emit()
        return True

    def undo(self) -> str:
        """Take back the last edit; what that was."""
        what = self._draft.undo() if self._draft is not None else ""
        if what:
            self.changed.emit()
        return what

    def redo(self) -> str:
        """Do again what was taken back last; what that was."""
        what = self._draft.redo() if self._draft is not None else ""
        if what:
            self.changed.emit()
        return what

    # saving

    def save(self, path: Path | None = None, *, overwrite: bool = False) -> bool:
        """Write it to its file, or to `path`, its file from then on; True if that could be done, else it is told."""
        if self._draft is None:
            return False
        try:
            self._draft.save(path, overwrite=overwrite)
        except (BadInput, OSError) as error:
            advice = error.advice if isinstance(error, BadInput) else ""
            self.told.emit(Trouble(title=f"Not saved: {error}", text=advice or "", grade="warn"))
            return False
        self.saved.emit()
        return True
