"""One way to stop or pause a run: a flag that the run itself looks at."""

from __future__ import annotations

import threading
import time

from lab.errors import Stopped


class Stop:
    """Asked from any thread; noticed by the run at `check` and `sleep`."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._going = threading.Event()
        self._going.set()
        self._after_trial = threading.Event()

    @property
    def requested(self) -> bool:
        """True once someone asked to stop."""
        return self._asked.is_set()

    @property
    def after_trial(self) -> bool:
        """True while the run is asked to end once the trial under way is over."""
        return self._after_trial.is_set()

    @property
    def paused(self) -> bool:
        """True while the run is asked to wait before its next trial."""
        return not self._going.is_set()

    def request(self) -> None:
        """Ask the run to stop. Idempotent."""
        self._asked.set()
        self._going.set()

    def request_after_trial(self) -> None:
        """Ask the run to end once the trial under way is over; a paused run ends at once. Idempotent."""
        self._after_trial.set()
        self._going.set()

    def withdraw_after_trial(self) -> None:
        """Let the run go on after the trial under way all the same. Nothing where it has ended by then."""
        self._after_trial.clear()

    def pause(self) -> None:
        """Ask the run to wait before its next trial."""
        if not (self.requested or self.after_trial):
            self._going.clear()

    def resume(self) -> None:
        """Let a paused run go on."""
        self._going.set()

    def check(self) -> None:
        """Raise `Stopped` if someone asked."""
        if self.requested:
            raise Stopped("stopped by the user")

    def check_between_trials(self) -> None:
        """Raise `Stopped` if someone asked, be it only for the time after a trial."""
        if self.after_trial:
            raise Stopped("stopped by the user after a trial")
        self.check()

    def wait_while_paused(self) -> None:
        """Block until resumed, or raise `Stopped`."""
        self._going.wait()
        self.check()

    def sleep(self, seconds: float) -> None:
        """Sleep at most `seconds`; raise `Stopped` as soon as someone asks."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self._asked.wait(min(left, 1.0)):
                self.check()
        self.check()
