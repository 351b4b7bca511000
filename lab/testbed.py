"""What a run needs from machines: a Protocol of few methods, real or a stand-in that works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from lab.events import Event
from lab.model import Experiment, Trial
from lab.stop import Stop


class Testbed(Protocol):
    """Hosts and the line between them, held to a treatment.

    `opened` connects, checks and makes ready, and takes everything back at its end; `treated` holds the
    hosts to one trial's treatment; `measure` runs it, and its last event is `TrialFinished`. Events that
    opening and treating have to tell come as the managers' values. `TrialFailed` fails one trial, any
    other `LabError` the run; after `ConnectionLost` it may be opened once more for the trials that are left.
    """

    def classes(self, experiment: Experiment) -> dict[str, str]:
        """Traffic class of each of the experiment's operations, from its driver. Touches nothing."""
        ...

    def opened(
        self, experiment: Experiment, stop: Stop, run: str = ""
    ) -> AbstractContextManager[Iterator[Event]]:
        """Ready for trials inside; the value yields what setting up has to say, as it happens.

        `run` is the run's name, for those who find the hosts held by it.
        """
        ...

    def treated(self, trial: Trial, stop: Stop) -> AbstractContextManager[Iterator[Event]]:
        """Prepared for `trial` inside."""
        ...

    def account(self) -> Iterator[Event]:
        """What was changed on the hosts, and taken back, and was not told yet; asked once more at the end."""
        ...

    def measure(self, trial: Trial, stop: Stop) -> Iterator[Event]:
        """Run it: samples and output as they come, then one `TrialFinished`."""
        ...
