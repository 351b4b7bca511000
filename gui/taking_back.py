"""Taking back at once what any run left on the hosts of a lab, told host by host."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from gui.doors import Doors
from gui.found import TakenBack
from gui.person import Person
from gui.questions import Questions
from gui.report import Trouble
from gui.theme.look import Look
from gui.worker import Worker
from lab.model import Lab
from lab.stop import Stop


class TakingBack(QObject):
    """One lab at a time, in a thread.

    Signals: `going(object)` a sentence while it goes, empty at its end; `done(object)` a `Trouble` with what
    came of it on each host; `crashed(object)` a defect.
    """

    going = Signal(object)
    done = Signal(object)
    crashed = Signal(object)

    def __init__(self, look: Look, doors: Doors, questions: Questions, window: QWidget) -> None:
        super().__init__(window)
        self._look, self._doors, self._questions = look, doors, questions
        self._stop = Stop()
        self._busy = False
        self._hosts: list[str] = []
        self._results: list[TakenBack] = []
        self._worker = Worker(self)
        self._worker.happened.connect(self._happened)
        self._worker.crashed.connect(self.crashed)
        self._worker.ended.connect(self._ended)

    @property
    def busy(self) -> bool:
        """True while hosts are being put back."""
        return self._busy

    def begin(self, lab: Lab) -> None:
        """Take back on every host, one after another; on a host that is out of reach nothing is done."""
        self._stop, self._results, self._busy = Stop(), [], True
        self._hosts = [host.name for host in lab.hosts]
        self._doors.person = Person(self._look, self._questions, self._stop)
        self.going.emit("Taking everything back …")
        self._worker.start(self._doors.revert(lab), "revert")

    def leave(self) -> None:
        """Nobody is here any more: nothing more is asked."""
        self._stop.request()

    def _happened(self, told: str | TakenBack) -> None:
        if isinstance(told, TakenBack):
            self._results.append(told)
        else:
            at = self._hosts.index(told) + 1
            self.going.emit(f"Taking everything back: {told} ({at} of {len(self._hosts)}) …")

    def _ended(self) -> None:
        self._busy = False
        self.going.emit("")
        if len(self._results) == len(self._hosts):
            self.done.emit(summary(self._results))


def summary(results: Sequence[TakenBack]) -> Trouble:
    """What came of it: a sentence, then one line per host; each change in what unfolds."""
    count = sum(len(one.undone) for one in results)
    hosts = f"any of the {len(results)} hosts" if len(results) > 1 else results[0].host
    failed = [one.host for one in results if one.trouble]
    if failed:
        title = f"Not everything could be taken back: {', '.join(failed)}."
    elif count:
        title = f"Everything was taken back: {_changes(count)}."
    else:
        title = f"Nothing was left on {hosts}."
    lines = [f"{one.host}: {one.trouble or _changes(len(one.undone))}" for one in results]
    details = [f"{one.host}: {text}" for one in results for text in one.undone]
    return Trouble(
        title=title,
        text="\n".join(lines),
        tried="\n".join(details),
        more="What was taken back",
        grade="trouble" if failed else "info",
    )


def _changes(count: int) -> str:
    return f"{count} change{'s' * (count != 1)}" if count else "nothing was left"
