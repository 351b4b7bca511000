"""What an experiment would take and do: worked out in a thread, always from what it says now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gui import words
from gui.jobs import Jobs
from lab import design
from lab.analysis import forecast
from lab.analysis.forecast import Basis, Forecast
from lab.errors import LabError
from lab.model import OPERATIONS, Experiment, Lab, Role, TrafficClass, Treatment

if TYPE_CHECKING:
    from lab.rig.planning import Step


@dataclass(frozen=True, slots=True)
class Outlook:
    """Of one experiment on one lab. `trouble` says why there are no commands, where that is so."""

    lab: Lab
    experiment: Experiment
    forecast: Forecast | None = None
    example: Treatment | None = None
    steps: tuple[Step, ...] = ()
    commands: Mapping[str, tuple[str, ...]] | None = None
    trouble: str = ""


class Outlooks(QObject):
    """Works out one at a time; of those asked for meanwhile, the newest.

    Signals: `told(object)` an `Outlook`; `crashed(object)` the exception that ended one.
    """

    told = Signal(object)
    crashed = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = Jobs(self)
        self._jobs.failed.connect(self.crashed)
        self._jobs.ended.connect(self._next)
        self._known: dict[tuple[object, ...], Basis | None] = {}
        self._waiting: tuple[Lab, Experiment] | None = None

    @property
    def busy(self) -> bool:
        """True while one is worked out."""
        return len(self._jobs) > 0

    def ask(self, lab: Lab, experiment: Experiment) -> None:
        """Have it worked out."""
        self._waiting = (lab, experiment)
        if not self.busy:
            self._next()

    def drop(self) -> None:
        """What was asked for is wanted no more."""
        self._waiting = None

    def forget(self) -> None:
        """There may be more runs to learn from."""
        self._known = {}

    def _next(self) -> None:
        if self._waiting is not None:
            (lab, experiment), self._waiting = self._waiting, None
            self._jobs.do(looked(lab, experiment, self._known), self._tell)

    def _tell(self, outlook: Outlook) -> None:
        if self._waiting is None:  # else a newer one is on its way
            self.told.emit(outlook)


def looked(
    lab: Lab, experiment: Experiment, known: dict[tuple[object, ...], Basis | None]
) -> Iterator[Outlook]:
    """The outlook; `known` keeps what was read of earlier runs."""
    key = (experiment.vcs, experiment.data, experiment.repository, experiment.at_once)
    if key not in known:
        known[key] = forecast.basis(experiment)
    expected = forecast.forecast(experiment, known[key])
    try:
        from lab import recipes, store, vcs
        from lab.rig import planning

        driver = vcs.driver(experiment.vcs, store.data_folder() / "vcs")
        recipes.asked(experiment)
        example = telling(experiment, {name: driver.traffic_class(name) for name in OPERATIONS})
        steps = planning.one_trial(lab, experiment, driver, example)
        told = planning.commands(lab, experiment, driver)
    except (LabError, LookupError) as error:
        advice = f" {error.advice}" if isinstance(error, LabError) and error.advice else ""
        yield Outlook(lab, experiment, expected, trouble=f"{error}.{advice}")
        return
    commands = {host: tuple(texts) for host, texts in told.items()}
    yield Outlook(lab, experiment, expected, example, steps, commands)


def telling(experiment: Experiment, classes: Mapping[str, TrafficClass]) -> Treatment:
    """The trial that shows most: an operation that uses the cache, neither empty nor full, on the first line."""
    cells = [treatment for treatment, _ in design.cells(experiment)]

    def rank(one: Treatment) -> tuple[bool, bool, bool, bool]:
        cacheable = classes.get(one.operation) is TrafficClass.CACHEABLE
        partly = one.state.full not in (None, 0.0, 100.0)
        return not cacheable, not one.line.limited, not one.state.enabled, not partly

    return min(cells, key=rank)


@dataclass(frozen=True, slots=True)
class Brief:
    """A step, or several of one kind, in a line; `whole` is all of it."""

    role: Role
    host: str
    text: str
    whole: str


def brief(steps: tuple[Step, ...]) -> tuple[Brief, ...]:
    """What one trial does, in so few lines that they fit beside the experiment."""
    at = next((n for n, step in enumerate(steps) if step.timed), len(steps))
    made: list[Brief] = []
    for step in steps[: at + 1]:
        counting = step.text.startswith("read the counters")
        text = "count bytes, before and after" if counting else step.text
        several, host = ", " in step.host, words.hosts(step.host)
        text = f"at once: {text}" if several and step.timed else text
        if counting and (
            step.role is not Role.SERVER and any(one.role is Role.SERVER for one in _counting(steps))
        ):
            continue
        last = made[-1] if made else None
        preparing = not step.timed and step.role is Role.CLIENT and not counting
        if preparing and last is not None and last.text.startswith("prepare") and last.host == host:
            whole = f"{last.whole}\n{step.text}"
            made[-1] = Brief(step.role, host, f"prepare: {whole.count(chr(10)) + 1} steps", whole)
            continue
        made.append(Brief(step.role, host, f"prepare: {text}" if preparing else text, step.text))
    return tuple(made)


def _counting(steps: tuple[Step, ...]) -> list[Step]:
    return [step for step in steps if step.text.startswith("read the counters")]


def script(outlook: Outlook) -> str:
    """One trial step by step, then everything by host, to be copied."""
    parts = []
    if outlook.steps and outlook.example is not None:
        width = max(len(words.hosts(step.host)) for step in outlook.steps)
        parts.append("# One trial, step by step")
        parts += [
            f"{words.hosts(step.host):<{width}}  {'timed: ' * step.timed}{step.text}"
            for step in outlook.steps
        ]
    for host, texts in (outlook.commands or {}).items():
        parts += ["", f"# On {host}, in the whole run", *texts]
    return "\n".join(parts)
