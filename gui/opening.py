"""Opening profiles and runs, and saving the profile that is open: asked for, read in a thread, handed on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMainWindow

from gui import reading
from gui.asking import OverwriteDialog, SaveDialog, ask_file, ask_target
from gui.document import Document
from gui.doors import Doors
from gui.jobs import Jobs
from gui.theme.look import Look

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gui.found import OpenedProfile, OpenedRun
    from lab.draft import Draft

PROFILES, RUNS = "Profiles (*.toml)", "Runs (*.branchlab)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Then:
    """What follows once a profile is open: this experiment (None: the first) is shown or, with `run`, run.

    `record` and `agreed` as in `gui.preparing.Wanted`.
    """

    experiment: str | None = None
    run: bool = False
    record: Path | None = None
    agreed: frozenset[str] | None = None


class Opening(QObject):
    """What was opened is told; whoever hears it and agrees gives it to the document.

    Signals: `profile(object, object)` an `OpenedProfile` and what follows, a `Then`; `run(object)` an `OpenedRun`;
    `making()` hosts are being made.
    """

    profile = Signal(object, object)
    run = Signal(object)
    making = Signal()

    def __init__(self, look: Look, doors: Doors, jobs: Jobs, document: Document, window: QMainWindow) -> None:
        super().__init__(window)
        self._look, self._doors, self._jobs = look, doors, jobs
        self._document, self._window = document, window
        self.refused: Callable[[], bool] = bool
        """True, and told, while something goes on with the lab that is open"""

    # opening

    def read_profile(self, path: Path, then: Then | None = None) -> None:
        """Open a profile, once what was changed in the one that is open is saved or given up."""
        self._replaced(lambda: self._read(self._doors.profile(path), then or Then()))

    def read_draft(self, make: Callable[[], Draft]) -> None:
        """Open a draft, made once what was changed in the one that is open is saved or given up."""
        self._replaced(lambda: self.take_draft(make()))

    def take_draft(self, draft: Draft) -> None:
        """Open a draft, whatever is open."""
        self._read(self._doors.drafted(draft), Then())

    def read_run(self, path: Path) -> None:
        """Open a run file; the profile stays."""
        self._jobs.do(reading.opened(path), self._told_run)

    def read_any(self, path: Path) -> None:
        """A profile or a run, by its ending."""
        if path.suffix == ".toml":
            self.read_profile(path)
        else:
            self.read_run(path)

    def make_hosts(self) -> None:
        """Make hosts on this machine, and open their profile."""
        if not self.refused():
            self._replaced(self._make)

    def ask_profile(self) -> None:
        """Ask which profile."""
        ask_file(self._window, "Open a lab", PROFILES, self.read_profile)

    def ask_run(self) -> None:
        """Ask which run."""
        ask_file(self._window, "Open a run", RUNS, self.read_run)

    def ask_any(self) -> None:
        """Ask which file."""
        ask_file(self._window, "Open", "Runs and profiles (*.branchlab *.toml)", self.read_any)

    def _make(self) -> None:
        self.making.emit()
        self._read(self._doors.hosts(), Then())

    def _read(self, things: Iterable[OpenedProfile], then: Then) -> None:
        # Only a method of this object is called in the main thread; so what follows goes with what was read.
        self._jobs.do(((opened, then) for opened in things), self._told_profile)

    def _told_profile(self, told: tuple[OpenedProfile, Then]) -> None:
        self.profile.emit(*told)

    def _told_run(self, opened: OpenedRun) -> None:
        self.run.emit(opened)

    def _replaced(self, then: Callable[[], None]) -> None:
        if not self.refused():
            self.kept_first(then)

    # saving

    def save(self) -> None:
        """Save where it was opened; ask where it has no file, or where its hosts and file end with BranchLab."""
        self._save_then(_nothing)

    def save_as(self) -> None:
        """Ask for another file, its own from then on."""
        self._ask_target(_nothing)

    def kept_first(self, then: Callable[[], None]) -> None:
        """Go on with `then` once nothing unsaved would be lost by it: a person saves, gives it up, or stays."""
        if not self._document.unsaved:
            then()
            return
        profile = self._document.profile
        dialog = SaveDialog(self._look, self._window, profile.lab.name if profile else "this profile")
        dialog.saved.connect(lambda: self._save_then(then))
        dialog.given_up.connect(then)
        dialog.open()

    def _save_then(self, then: Callable[[], None]) -> None:
        path = self._document.path
        if path is None or self._doors.passing(path):
            self._ask_target(then)
        elif self._document.save():
            then()
        elif not self._document.problems:
            self._ask_over(path, then)

    def _ask_target(self, then: Callable[[], None]) -> None:
        def write(target: Path) -> None:
            # Qt has asked before a file is written over.
            if self._document.save(target, overwrite=True):
                then()

        ask_target(self._window, "Save the profile", PROFILES, write)

    def _ask_over(self, path: Path, then: Callable[[], None]) -> None:
        dialog = OverwriteDialog(self._look, self._window, path.name)
        dialog.replaced.connect(lambda: self._document.save(overwrite=True) and then())
        dialog.elsewhere.connect(lambda: self._ask_target(then))
        dialog.open()


def _nothing() -> None:
    """Nothing follows."""
