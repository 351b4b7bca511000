"""From the trials of a run to one row of values per cell, and to the verdict of one cell against another."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from lab.events import RunStarted, Standing, TrialFinished
from lab.model import OPERATIONS, PAIRS, Line, ProxyState, Treatment, Trial

LEAST_DIFFERENCE_S = 0.020
"""Medians closer than this are never called different."""
STRAY_BYTES = 500
"""Fewer bytes on a pair are stray packets (a late close, a retransmission), no use of it."""

LEAST_KEPT = 2
"""With fewer kept attempts a cell is not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of line, operation and proxy state, with what its trials came to.

    Times in seconds, over kept attempts (`low_s`, `high_s`: their range); bytes are medians per kept trial,
    or per traffic launch where a cell has nothing else. `None` is unknown. `planned` counts the attempts that
    may be kept; `kept`, `void`, `failed` and `excluded` are those of them that are finished. `traffic_trials`
    says how many trials the bytes rest on.
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
) -> tuple[Cell, ...]:
    """Every cell of the plan, by line, operation and state in the experiment's order.

    `tool_start_s` is the measured cost of starting the tool: no smaller difference is called one.
    `excluded` are numbers of trials that a person or a rule left out. The order of `results` does not matter.
    """
    finished = {result.trial: result for result in results}
    planned: dict[Treatment, list[Trial]] = {}
    for trial in started.trials:
        planned.setdefault(trial.treatment, []).append(trial)
    rows = {treatment: _row(treatment, trials, finished, excluded) for treatment, trials in planned.items()}
    ordered = sorted(rows, key=_rank(started))
    return tuple(_judged(rows[treatment], rows, tool_start_s) for treatment in ordered)


def compared(cell: Cell, base: Cell, tool_start_s: float = 0.0) -> str:
    """`faster`, `slower`, `no-difference` or `too-few`: `cell` held against `base`.

    A difference needs ranges that do not overlap, and medians apart by 20 ms and by more than a tool's start.
    An operation that sends nothing cannot be changed by a line or a proxy: what differs there is the client's
    own unrest, and is never called a difference.
    """
    if min(cell.kept, base.kept) < LEAST_KEPT:
        return "too-few"
    if cell.median_s is None or base.median_s is None:
        return "too-few"
    if _silent(cell) and _silent(base):
        return "no-difference"
    apart = abs(cell.median_s - base.median_s)
    if apart < LEAST_DIFFERENCE_S or apart <= tool_start_s:
        return "no-difference"
    if _below(cell, base):
        return "faster"
    return "slower" if _below(base, cell) else "no-difference"


def _silent(cell: Cell) -> bool:
    counts = list(cell.bytes.values())
    return bool(counts and cell.traffic_trials) and all(
        count is not None and count <= STRAY_BYTES for count in counts
    )


def _below(one: Cell, other: Cell) -> bool:
    return one.high_s is not None and other.low_s is not None and one.high_s < other.low_s


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


def _judged(row: Cell, rows: dict[Treatment, Cell], tool_start_s: float) -> Cell:
    return replace(row, verdict=_verdict(row, rows, tool_start_s))


def _verdict(row: Cell, rows: dict[Treatment, Cell], tool_start_s: float) -> str:
    if not row.kept:
        return "void" if row.void and not row.failed else "too-few"
    if not row.proxy.enabled:
        return "base"
    base = rows.get(Treatment(line=row.line, operation=row.operation, state=ProxyState(full=None)))
    return "too-few" if base is None else compared(row, base, tool_start_s)
