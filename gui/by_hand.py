"""Changing a lab by hand from the window: the cache filled or purged, a line held; in a thread, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from gui.agreement import AgreementDialog
from gui.doors import Doors
from gui.lab.hand import NOTHING, CacheKnown, LineKnown
from gui.person import Person
from gui.purge import PurgeDialog
from gui.questions import Questions
from gui.report import Trouble
from gui.theme.look import Look
from gui.worker import Worker
from lab import units
from lab.analysis import words
from lab.asking import Question
from lab.errors import Stopped
from lab.model import Experiment, Lab, Line
from lab.stop import Stop

if TYPE_CHECKING:
    from lab.hands import Applied, Filled, Hands, Inventory, Purged

READ_S, ALIVE_S, COUNT_MS = 10, 1.0, 500
"""So often a line that is held is read back, its leases are looked at, and their time is shown."""
LEFT = Trouble(title="Nothing was changed.", grade="info")


@dataclass(frozen=True, slots=True)
class _Counted:
    """The cache was looked at."""

    found: Inventory


@dataclass(frozen=True, slots=True)
class _Held:
    """The line is held."""

    applied: Applied
    said: str


@dataclass(frozen=True, slots=True)
class _Told:
    """What came of it, and which changes were made on the hosts for it."""

    trouble: Trouble
    filled: Filled | None = None
    purged: Purged | None = None


class ByHand(QObject):
    """Between the Lab page and `lab.hands`.

    Signals: `going(object)` a sentence while something goes, empty at its end; `knows(object)` a `ByHandKnown`;
    `done(object)` a `Trouble` with what came of it; `crashed(object)` an error or a defect; `ended()` nothing goes on.
    """

    going = Signal(object)
    knows = Signal(object)
    done = Signal(object)
    crashed = Signal(object)
    ended = Signal()

    def __init__(self, look: Look, doors: Doors, questions: Questions, window: QWidget) -> None:
        super().__init__(window)
        self._look, self._doors, self._questions = look, doors, questions
        self._stop = Stop()
        self._applied: Applied | None = None
        self._work: Hands | None = None
        self.known = NOTHING
        self._worker = Worker(self)
        self._worker.happened.connect(self._happened)
        self._worker.crashed.connect(self._crashed)
        self._worker.ended.connect(self._over)
        self._count = QTimer(self)
        self._count.setInterval(COUNT_MS)
        self._count.timeout.connect(self._tick)

    @property
    def busy(self) -> bool:
        """True while one of them goes; a line goes for as long as it is held."""
        return bool(self.known.deed)

    def fill(self, lab: Lab, experiment: Experiment) -> None:
        """Bring the cache to full for the experiment's operation."""
        self._begin("fill", self._filling(lab, experiment))

    def purge(self, lab: Lab, experiment: Experiment) -> None:
        """Count what the cache has, ask how much of it goes, take that out."""
        self._begin("purge", self._purging(lab, experiment))

    def hold(self, lab: Lab, line: Line) -> None:
        """Hold this line until it is taken back."""
        self._begin("line", self._holding(lab, line))

    def cancel(self) -> None:
        """Leave it, or take the line back; what was begun on the hosts is taken back before it ends."""
        if self.busy:
            self._stop.request()
            self._questions.withdraw()
            if self.known.line is not None:
                self._know(line=replace(self.known.line, ending=True))
            self.going.emit("Taking the line back …" if self._applied is not None else "Stopping …")

    def cut(self) -> None:
        """Do not wait for hosts that do not answer: they put themselves back when their leases end."""
        self.cancel()
        if self._work is not None:
            self._work.cut()

    def wait(self, seconds: float) -> bool:
        """For tests: wait for the thread's end."""
        return self._worker.wait(seconds)

    # In the main thread

    def _begin(self, deed: str, things: Iterator[object]) -> None:
        self._stop = Stop()
        self._doors.person = Person(self._look, self._questions, self._stop)
        self._know(deed=deed)
        self.going.emit("Signing in on the hosts …")
        self._worker.start(things, deed)

    def _know(self, **changes: object) -> None:
        self.known = replace(self.known, **changes)  # type: ignore[arg-type]
        self.knows.emit(self.known)

    def _happened(self, told: object) -> None:
        match told:
            case str():
                if not self._stop.requested:
                    self.going.emit(told)
            case _Counted():
                self._know(cache=counted(told.found, self.known.cache))
            case _Held():
                self._applied = told.applied
                self._know(line=self._line(told.applied, told.said))
                self._count.start()
                self.going.emit(f"The line is held by hand: {units.line_text(told.applied.line)}.")
            case _Told():
                self._show(told)

    def _show(self, told: _Told) -> None:
        if told.filled is not None:
            self._know(cache=filled(told.filled))
        elif told.purged is not None:
            self._know(cache=counted(told.purged.after, self.known.cache, told.purged))
        self.done.emit(told.trouble)

    def _line(self, applied: Applied, said: str) -> LineKnown:
        return LineKnown(
            line=applied.line,
            said=said,
            left_s=applied.left_s,
            lease_s=applied.lease_s,
            ending=self._stop.requested,
        )

    def _tick(self) -> None:
        if self._applied is not None and self.known.line is not None:
            self._know(line=self._line(self._applied, self.known.line.said))

    def _crashed(self, error: BaseException) -> None:
        self.crashed.emit(error)

    def _over(self) -> None:
        self._count.stop()
        self._applied = self._work = None
        self._know(deed="", line=None)
        self.going.emit("")
        self.ended.emit()

    # In the worker's thread

    def _filling(self, lab: Lab, experiment: Experiment) -> Iterator[object]:
        from lab import hands

        stop, work = self._stop, self._reach(lab, experiment)
        try:
            operation = next(iter(hands.cacheable(experiment)), "get")
            yield "Looking at what the cache has …"
            agreed = self._agreed(work.asked_for_fill(operation), stop, "Fill the cache", "stack")
            if agreed is None:
                yield _Told(LEFT)
                return
            yield f"Filling the cache: {words.operation(operation)} runs once through the proxy …"
            done = work.fill(operation, stop, agreed)
        except Stopped:
            yield _Told(stopped(work, "The fill was stopped."))
        else:
            title = (
                f"The cache is full for {words.operation(operation)}:"
                f" {len(done.here)} of {len(done.listed)} objects."
            )
            text = (
                f"Of the repository it had {hands.counted(done.before)} before, and has {hands.counted(done.after)}"
                f" now. They stay {done.stays}."
            )
            yield _Told(Trouble(title=title, text=text, grade="info", **account(work)), filled=done)

    def _purging(self, lab: Lab, experiment: Experiment) -> Iterator[object]:
        from lab import hands

        stop, work = self._stop, self._reach(lab, experiment)
        try:
            yield "Looking at what the cache has …"
            found = work.inventory(stop)
            yield _Counted(found)
            if not found.objects:
                text = f"{found.folder} holds {found.others} objects of others, which are never touched."
                title = "The cache has no objects of the repository."
                yield _Told(Trouble(title=title, text=text, grade="info"))
                return
            yield "Asking what is to go …"
            make = partial(PurgeDialog, self._look, found, found.ordered(experiment.seed), experiment.seed)
            chosen = self._questions.ask(make, stop)
            stop.check()
            if not isinstance(chosen, tuple):
                yield _Told(LEFT)
                return
            yield f"Taking {len(chosen)} objects out of the cache …"
            done = work.purge(found, chosen, stop, frozenset({"purge"}))
        except Stopped:
            yield _Told(stopped(work, "The purge was stopped."))
        else:
            gone = done.asked - done.removed
            title = f"{done.removed} of {len(done.before.objects)} objects were taken out of the cache."
            text = (
                f"{hands.counted(done.after)} are left, and {done.after.others} objects of others as before."
            )
            text += f" {gone} more were gone already." if gone else ""
            yield _Told(Trouble(title=title, text=text, grade="info", **account(work)), purged=done)

    def _holding(self, lab: Lab, line: Line) -> Iterator[object]:
        from lab import hands

        stop, work = self._stop, self._reach(lab, None)
        applied: Applied | None = None
        try:
            yield "Looking at who would feel the line …"
            agreed = self._agreed(work.asked_for_line(line), stop, "Apply the line", "arrows-left-right")
            if agreed is None:
                yield _Told(LEFT)
                return
            yield f"Applying {units.line_text(line)} …"
            with work.line(line, stop, agreed) as applied:
                yield _Held(applied, hands.said(applied.read))
                while True:
                    for _ in range(READ_S):
                        stop.sleep(ALIVE_S)
                        applied.alive()
                    applied.check(stop)
        except Stopped:
            if applied is None:
                yield _Told(stopped(work, "The line was not applied."))
                return
            said = hands.said(applied.lifted) if applied.lifted is not None else "not known"
            text = f"Read back from the kernel: {said}."
            yield _Told(Trouble(title="The line was taken back.", text=text, grade="info", **account(work)))

    def _reach(self, lab: Lab, experiment: Experiment | None) -> Hands:
        self._work = work = self._doors.hands(lab, experiment)
        return work

    def _agreed(
        self, questions: Sequence[Question], stop: Stop, deed: str, icon: str
    ) -> frozenset[str] | None:
        """The kinds that a person agreed to; None where that was left. Raises Stopped."""
        stop.check()
        if not questions:
            return frozenset()

        def make(window: QWidget) -> AgreementDialog:
            return AgreementDialog(self._look, questions, window, deed=deed, icon=icon)

        answer = self._questions.ask(make, stop)
        stop.check()
        return frozenset(one.kind for one in questions) if answer is True else None


def filled(done: Filled) -> CacheKnown:
    """What is known of the cache after a fill."""
    size = sum(one.bytes for one in done.here)
    return CacheKnown(
        objects=len(done.after.objects),
        bytes=done.after.bytes,
        others=done.after.others,
        operation=words.operation(done.operation),
        listed=len(done.listed),
        here=len(done.here),
        here_bytes=size,
        listed_bytes=size,
    )


def counted(found: Inventory, before: CacheKnown | None, purged: Purged | None = None) -> CacheKnown:
    """What is known once the cache was counted: how full, only if all its objects were of a fill's list before."""
    now = CacheKnown(objects=len(found.objects), bytes=found.bytes, others=found.others)
    was = len(purged.before.objects) if purged is not None else len(found.objects)
    if before is None or not before.listed or before.objects != before.here or before.objects != was:
        return now
    return replace(
        before,
        objects=now.objects,
        bytes=now.bytes,
        others=now.others,
        here=now.objects,
        here_bytes=now.bytes,
    )


def stopped(work: Hands, title: str) -> Trouble:
    """What is told of something that was left."""
    return Trouble(
        title=title, text="What was begun on the hosts was taken back.", grade="info", **account(work)
    )


def account(work: Hands) -> dict[str, str]:
    """What was changed on each host, and taken back, as what a banner unfolds."""
    from lab.events import HostChanged

    told: dict[str, None] = {}
    for event in work.account():
        if isinstance(event, HostChanged):
            told[f"{event.host}: {'taken back: ' if event.undone else ''}{event.what}"] = None
        else:
            told[event.text] = None
    return {"tried": "\n".join(told), "more": "What was changed"}
