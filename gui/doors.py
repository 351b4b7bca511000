"""The ways out of the window, as generators for its worker; tests give others.

Everything heavy is imported where it is needed: the window must be up in a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gui import ways
from gui.found import OpenedProfile
from gui.lab_doors import LabDoors
from lab.errors import BadInput
from lab.events import Event, OutputSeen
from lab.model import Experiment, Lab
from lab.stop import Stop

if TYPE_CHECKING:
    from lab.draft import Draft
    from lab.embedded import Embedded
    from lab.profile import Profile
    from lab.testbed import Testbed


@dataclass(slots=True, kw_only=True)
class Doors(LabDoors):
    """Profiles and runs, and what is done with a lab. `testbed` makes the hosts of a lab for a run.

    `held` are labs that must be closed at the end; `recording` is the file of the newest run.
    """

    testbed: Callable[..., Testbed] = ways.testbed
    held: list[Embedded] = field(default_factory=list)
    recording: Path | None = None
    _bed: Testbed | None = None

    def profile(self, path: Path) -> Iterator[OpenedProfile]:
        """Read and check a profile. Raises BadInput that names every problem where it is wrong."""
        from lab import profile
        from lab.draft import Draft

        draft = Draft.opened(path, keep_in=self.drafts())
        found = draft.profile if draft.profile is not None else profile.load(path)
        yield OpenedProfile(draft, found, planned(found))

    def drafted(self, draft: Draft) -> Iterator[OpenedProfile]:
        """A draft that is here already. Raises BadInput that names every problem where it was never right."""
        if draft.profile is None:
            name = str(draft.path or "this profile")
            raise BadInput("\n".join(problem.told(name) for problem in draft.problems))
        yield OpenedProfile(draft, draft.profile, planned(draft.profile))

    def data(self) -> Path:
        """The folder of everything that BranchLab keeps."""
        from lab import store

        return store.data_folder()

    def drafts(self) -> Path:
        """The folder where what was not saved is kept for a crash."""
        return self.data() / "drafts"

    def passing(self, path: Path) -> bool:
        """True for the profile of hosts that this window made: it ends with them."""
        return any(made.profile_path == path for made in self.held)

    def hosts(self) -> Iterator[OpenedProfile]:
        """Make hosts on this machine, which end with this process; their profile."""
        from lab import embedded

        made = embedded.up(tied=True)
        self.held.append(made)
        yield from self.profile(made.profile_path)

    def run(
        self,
        lab: Lab,
        experiment: Experiment,
        stop: Stop,
        path: Path | None,
        agreed: frozenset[str] = frozenset(),
    ) -> Iterator[Event]:
        """A run, each event recorded before it is told. The path is chosen where none is given."""
        from lab import runner, store

        self._bed = self.testbed(lab, passwords=self.passwords(), agreed=agreed)
        told = runner.run(experiment, self._bed, stop, lab_name=lab.name)
        self.recording = path or store.new_path(experiment.name)
        yield from store.recorded(told, self.recording)

    def repeat(
        self, lab: Lab, experiment: Experiment, stop: Stop, path: Path, agreed: frozenset[str] = frozenset()
    ) -> Iterator[Event]:
        """What the run in this file told, then, added to it, what is done again. Raises BadInput where it cannot be."""
        from lab import repeats, runner, store

        with store.opened(path) as record:
            told = [event for event in record.events(samples=False) if not isinstance(event, OutputSeen)]
        known = repeats.told(told)
        repeats.refuse_others(known, lab, experiment)
        self.recording = path
        yield from told
        self._bed = self.testbed(lab, passwords=self.passwords(), agreed=agreed)
        yield from store.continued(runner.repeat(known, self._bed, stop), path)

    def cut(self) -> bool:
        """Cut the connections of the run under way, where its testbed can; True if it could."""
        cut = getattr(self._bed, "cut", None)
        if cut is None:
            return False
        cut()
        return True

    def close(self) -> None:
        """Take down what this window made."""
        while self.held:
            self.held.pop().close()


def planned(profile: Profile) -> dict[str, int]:
    """How many trials each experiment of a profile plans, by its name."""
    from lab import design

    return {experiment.name: design.size(experiment).trials for experiment in profile.experiments}
