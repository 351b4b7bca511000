"""From the trials of a run to one row of values per cell, and to the verdict of one cell against another."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from lab.analysis import robust, spread
from lab.analysis.comparing import Comparison, compare
from lab.events import RunStarted, Standing, TrialFinished
from lab.model import DISABLED, OPERATIONS, PAIRS, Line, ProxyState, Treatment, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of line, operation and proxy state, with what its trials came to.

    Times in seconds, over kept attempts (`low_s`, `high_s`: their range); bytes are medians per kept trial,
    or per traffic launch where a cell has nothing else. `None` is unknown. `planned` counts the attempts that
    may be kept; `kept`, `void`, `failed` and `excluded` are those of them that are finished. `traffic_trials`
    says how many trials the bytes rest on.

    `times` are the kept attempts in the plan's order. `geometric_s` is their geometric mean, with its interval
    of 95 % (`mean_low_s`, `mean_high_s`) from `spread`; `middle` is there from 12 attempts on. `against` holds
    the cell against the base state. A `published` cell has one time, `median_s`, and no attempts.
    """

    line: Line
    operation: str
    proxy: ProxyState
    planned: int = 0
    kept: int = 0
    void: int = 0
    failed: int = 0
    excluded: int = 0
    median_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    traffic_trials: int = 0
    bytes: dict[str, int | None]
    served_bytes: int | None = None
    relayed_bytes: int | None = None
    direct_bytes: int | None = None
    verdict: str = "too-few"
    times: tuple[float, ...] = ()
    mean_s: float | None = None
    geometric_s: float | None = None
    mean_low_s: float | None = None
    mean_high_s: float | None = None
    spread: spread.Spread | None = None
    middle: robust.Middle | None = None
    against: Comparison | None = None
    published: bool = False

    @property
    def state(self) -> str:
        """The proxy state's name in files: `disabled`, `0 %`, `37.5 %`."""
        return self.proxy.key

    def over(self, *pairs: str) -> int | None:
        """Bytes over these pairs together; `None` if none of them is known."""
        known = [count for pair in pairs if (count := self.bytes.get(pair)) is not None]
        return sum(known) if known else None


def cells(
    started: RunStarted,
    results: Iterable[TrialFinished],
    *,
    tool_start_s: float = 0.0,
    excluded: Collection[int] = (),
    base: ProxyState = DISABLED,
) -> tuple[Cell, ...]:
    """Every cell of the plan, by line, operation and state in the experiment's order.

    `tool_start_s` is the measured cost of starting the tool: no smaller difference is called one.
    `excluded` are numbers of trials that a person or a rule left out; `base` is the state that the others are
    held against. The order of `results` does not matter.
    """
    finished = {result.trial: result for result in results}
    planned: dict[Treatment, list[Trial]] = {}
    for trial in started.trials:
        planned.setdefault(trial.treatment, []).append(trial)
    rows = {treatment: _row(treatment, trials, finished, excluded) for treatment, trials in planned.items()}
    ordered = [rows[treatment] for treatment in sorted(rows, key=_rank(started))]
    return judged(ordered, tool_start_s=tool_start_s, base=base)


def judged(
    rows: Sequence[Cell], *, tool_start_s: float = 0.0, base: ProxyState = DISABLED
) -> tuple[Cell, ...]:
    """The same cells with the spread of their operation, intervals, and each held against the base state."""
    spreads: dict[tuple[Line, str, ProxyState], spread.Spread | None] = {}
    for name in dict.fromkeys(row.operation for row in rows):
        same = [row for row in rows if row.operation == name]
        found = spread.spreads([row.times for row in same])
        spreads.update(
            {(row.line, row.operation, row.proxy): one for row, one in zip(same, found, strict=True)}
        )
    known = [_estimated(row, spreads[row.line, row.operation, row.proxy]) for row in rows]
    places = {(row.line, row.operation, row.proxy): row for row in known}
    return tuple(
        _judged(row, places.get((row.line, row.operation, base)), tool_start_s=tool_start_s) for row in known
    )


def compared(cell: Cell, base: Cell, tool_start_s: float = 0.0) -> str:
    """`faster`, `slower`, `no-difference` or `too-few`: the verdict of `lab.analysis.comparing.compare`."""
    return compare(cell, base, tool_start_s).verdict


def _rank(started: RunStarted) -> _Rank:
    experiment = started.experiment
    return _Rank(experiment.lines, experiment.operations, experiment.states)


@dataclass(frozen=True, slots=True)
class _Rank:
    """Sort key of treatments: as the experiment names them, disabled first, strangers last."""

    lines: Sequence[Line]
    operations: Sequence[str]
    states: Sequence[ProxyState]

    def __call__(self, treatment: Treatment) -> tuple[int, int, float]:
        operations = [*(name for name in OPERATIONS if name in self.operations), *self.operations]
        full = treatment.state.full
        return (
            _place(treatment.line, self.lines),
            _place(treatment.operation, operations),
            -1.0 if full is None else full,
        )


def _place(value: object, values: Sequence[object]) -> int:
    return values.index(value) if value in values else len(values)


def _row(
    treatment: Treatment,
    trials: Sequence[Trial],
    finished: dict[int, TrialFinished],
    excluded: Collection[int],
) -> Cell:
    counted = [trial for trial in trials if trial.counted]
    ended = [finished[trial.number] for trial in counted if trial.number in finished]
    left_out = [result for result in ended if result.trial in excluded]
    judged = [result for result in ended if result.trial not in excluded]
    kept = [result for result in judged if result.standing is Standing.KEPT and result.wall_s is not None]
    launches = [
        result
        for trial in trials
        if trial.launch
        and (result := finished.get(trial.number)) is not None
        and result.standing is Standing.LAUNCH
        and trial.number not in excluded
    ]
    times = [result.wall_s for result in kept if result.wall_s is not None]
    row = Cell(
        line=treatment.line,
        operation=treatment.operation,
        proxy=treatment.state,
        planned=len(counted),
        kept=len(kept),
        void=_standing(judged, Standing.VOID),
        failed=_standing(judged, Standing.FAILED),
        excluded=len(left_out),
        median_s=statistics.median(times) if times else None,
        low_s=min(times, default=None),
        high_s=max(times, default=None),
        times=tuple(times),
        bytes={},
    )
    return _with_traffic(row, kept or launches)


def _standing(results: Iterable[TrialFinished], standing: Standing) -> int:
    return sum(1 for result in results if result.standing is standing)


def _with_traffic(row: Cell, trials: Sequence[TrialFinished]) -> Cell:
    return replace(
        row,
        traffic_trials=sum(1 for trial in trials if trial.bytes or trial.served_bytes is not None),
        bytes={pair: _median([trial.bytes.get(pair) for trial in trials]) for pair in PAIRS},
        served_bytes=_median([trial.served_bytes for trial in trials]),
        relayed_bytes=_median([trial.relayed_bytes for trial in trials]),
        direct_bytes=_median([trial.direct_bytes for trial in trials]),
    )


def _median(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return round(statistics.median(known)) if known else None


def _estimated(row: Cell, scatter: spread.Spread | None) -> Cell:
    if not row.times:
        return replace(row, spread=scatter)
    mean_s = spread.geometric(row.times)
    low, high = spread.interval(mean_s, row.kept, scatter) if scatter else (None, None)
    return replace(
        row,
        mean_s=statistics.fmean(row.times),
        geometric_s=mean_s,
        mean_low_s=low,
        mean_high_s=high,
        spread=scatter,
        middle=robust.middle(row.times),
    )


def _judged(row: Cell, base: Cell | None, *, tool_start_s: float) -> Cell:
    if base is not None and base.proxy == row.proxy:
        return replace(row, verdict="base" if row.median_s is not None else _unmeasured(row))
    against = compare(row, base, tool_start_s) if base is not None else None
    if row.median_s is None:
        return replace(row, verdict=_unmeasured(row), against=against)
    return replace(row, verdict=against.verdict if against else "too-few", against=against)


def _unmeasured(row: Cell) -> str:
    return "void" if row.void and not row.failed else "too-few"
