"""When a line has been repeated often enough: only at whole blocks, by the pooled intervals, and with a cap."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from math import exp, sqrt

from lab import units
from lab.analysis import spread, words
from lab.analysis.comparing import LEAST_DIFFERENCE_S
from lab.analysis.sentences import Sentence
from lab.events import Event, LineSettled, Standing, TrialFinished
from lab.model import Experiment, Line, Treatment, Trial


class Settling:
    """The trials that are left of a plan, and which of them a line needs no more.

    A line is settled once every cell's interval of 95 % reaches no further than asked, as a share or as less than
    what is ever called a difference. The spread is pooled over an operation's cells of all lines so far, as the
    answers have it (`lab.analysis.spread`). Nothing is spared where the experiment has no `until`.
    """

    def __init__(self, experiment: Experiment, plan: Sequence[Trial]) -> None:
        self.trials = deque(plan)
        self._experiment = experiment
        self._times: dict[Treatment, list[float]] = {}
        for trial in plan if experiment.until is not None else ():
            if trial.counted:
                self._times.setdefault(trial.treatment, [])

    def take(self, trial: Trial, event: Event) -> None:
        """Hear what came of a trial."""
        kept = isinstance(event, TrialFinished) and event.standing is Standing.KEPT and trial.counted
        if kept and isinstance(event, TrialFinished) and event.wall_s is not None:
            self._times.setdefault(trial.treatment, []).append(event.wall_s)

    def settled(self, trial: Trial) -> Iterator[LineSettled]:
        """After a trial: the line's end, where that trial ended a block after which no more are needed or allowed."""
        until = self._experiment.until
        within_block = bool(self.trials) and self.trials[0].block == trial.block
        if until is None or within_block or trial.launch or trial.attempt < self._experiment.attempts:
            return
        line = trial.treatment.line
        rest = {one.number for one in self.trials if one.treatment.line == line and not one.launch}
        widest = self._widest(line)
        enough = widest is not None and widest <= until.within
        if rest and not enough:
            return
        self.trials = deque(one for one in self.trials if one.number not in rest)
        yield LineSettled(
            line=line,
            attempts=trial.attempt,
            within=until.within,
            widest=widest,
            spared=tuple(sorted(rest)),
        )

    def _widest(self, line: Line) -> float | None:
        """How far the widest interval of a line's cells reaches to one side; None while a cell has none."""
        widest = 0.0
        for operation in dict.fromkeys(cell.operation for cell in self._times if cell.line == line):
            cells = {cell: times for cell, times in self._times.items() if cell.operation == operation}
            found = spread.spreads(list(cells.values()))
            for (cell, times), scatter in zip(cells.items(), found, strict=True):
                if cell.line != line:
                    continue
                if scatter is None or len(times) < 2:
                    return None
                reach = exp(spread.quantile(scatter.degrees) * scatter.sd / sqrt(len(times))) - 1
                # Differences so small are never called one, so that nothing is gained by repeating.
                if reach * spread.geometric(times) > LEAST_DIFFERENCE_S:
                    widest = max(widest, reach)
        return widest


def sentences(settled: Sequence[LineSettled]) -> list[Sentence]:
    """What an answer says of where the run stopped repeating, and why; nothing where it was not asked to."""
    stable = [one for one in settled if one.stable]
    told = []
    if stable:
        where = words.listed([f"{_name(one.line)} after {one.attempts}" for one in stable])
        told.append(
            f"Repeating stopped by width, once every interval of 95 % reached {_within(stable[0].within)} or less "
            f"to either side: on {where} attempts per cell. Intervals that ended a run so are a little too narrow."
        )
    for one in settled:
        if not one.stable:
            why = (
                f"an interval of ± {_within(one.widest)}"
                if one.widest is not None
                else "a cell without an interval"
            )
            told.append(
                f"On {_name(one.line)} {one.attempts} attempts per cell, the most that were allowed, left {why}; "
                f"± {_within(one.within)} was asked for."
            )
    return [Sentence(rule="stopping", text=text, lead=False) for text in told]


def _name(line: Line) -> str:
    return units.line_text(line) if line.limited else "the line as it is"


def _within(share: float | None) -> str:
    return words.percent(share or 0.0)
