"""A run from its events: cells, lines, cost of preparing, the answers and their title; and all as JSON."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lab import repeats
from lab.analysis import unrest
from lab.analysis.cells import Cell, cells
from lab.analysis.choice import choice
from lab.analysis.comparing import LEAST_DIFFERENCE_S, Comparison
from lab.analysis.findings import Finding, findings
from lab.analysis.line_model import Model, models
from lab.analysis.sentences import Sentence
from lab.analysis.verdict import verdict
from lab.analysis.view import View
from lab.events import (
    CacheFilled,
    Event,
    LineProved,
    LineSettled,
    Outcome,
    OutputSeen,
    RunFinished,
    RunStarted,
    Standing,
    ToolMeasured,
    TrafficSampled,
    TrialFinished,
)
from lab.model import DISABLED, PAIRS, Line, ProxyState


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run came to. `outcome` of a run that has no last word (its program was killed) is `stopped`.

    `overhead_s` is the mean preparing time of its finished trials; `tool_start_s` what starting the tool
    costs (0 if it was not measured); `standings` counts finished trials by `lab.events.Standing`. `excluded` are
    the trials left out, with the reason; `outliers` are flagged and counted all the same; `base` is the state
    that the others are held against. `source` names where published figures come from, and is empty for a run.
    """

    started: RunStarted
    finished: RunFinished | None
    cells: tuple[Cell, ...]
    proved: dict[Line, LineProved] = field(default_factory=dict)
    overhead_s: float | None = None
    tool_start_s: float = 0.0
    standings: dict[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    verdict: str = ""
    excluded: dict[int, str] = field(default_factory=dict)
    outliers: tuple[unrest.Outlier, ...] = ()
    drifts: tuple[unrest.Drift, ...] = ()
    base: ProxyState = DISABLED
    source: str = ""
    choice: Sentence | None = None
    fills: tuple[CacheFilled, ...] = ()
    models: tuple[Model, ...] = ()
    repeated: dict[int, int] = field(default_factory=dict)
    """Trials that failed or had no proof and were done again: number, and that of the trial which counts instead."""

    @property
    def outcome(self) -> Outcome:
        """How the run ended."""
        return self.finished.outcome if self.finished else Outcome.STOPPED

    @property
    def complete(self) -> bool:
        """True if no trial failed and every cell that is timed has a kept attempt."""
        failed = self.standings.get(Standing.FAILED, 0)
        return not failed and all(cell.kept or not cell.planned for cell in self.cells)


def summarised(
    events: Iterable[Event],
    *,
    excluded: Mapping[int, str] | Collection[int] = (),
    base: ProxyState = DISABLED,
) -> Summary:
    """The summary of a run's events, finished or not. Raises ValueError if its first word is missing.

    `excluded` are the numbers of trials that are left out, with the reason where one is known; `base` is the
    state that the others are held against.
    """
    finished: RunFinished | None = None
    tool_start_s = 0.0
    proved: dict[Line, LineProved] = {}
    fills: list[CacheFilled] = []
    results: list[TrialFinished] = []
    settled: list[LineSettled] = []
    events = [event for event in events if not isinstance(event, OutputSeen | TrafficSampled)]
    for event in events:
        match event:
            case LineSettled():
                settled.append(event)
            case ToolMeasured():
                tool_start_s = max(tool_start_s, event.start_s)
            case LineProved():
                proved[event.line] = event
            case CacheFilled():
                fills.append(event)
            case TrialFinished():
                results.append(event)
            case RunFinished():
                finished = event
    known = repeats.told(events)
    started, repeated = replace(known.started, trials=known.standing), known.gave_way
    results = [result for result in results if result.trial not in repeated]
    rows = cells(started, results, tool_start_s=tool_start_s, excluded=excluded, base=base)
    attempts = _attempts(started, results, excluded)
    held = rows if base == DISABLED else cells(started, results, tool_start_s=tool_start_s, excluded=excluded)
    # The answers speak of the proxy against none, whatever the tables are held against.
    view = View(cells=held, classes=started.classes, tool_start_s=tool_start_s, settled=tuple(settled))
    return Summary(
        started=started,
        finished=finished,
        cells=rows,
        proved=proved,
        overhead_s=statistics.fmean(result.preparing_s for result in results) if results else None,
        tool_start_s=tool_start_s,
        standings=dict(Counter(str(result.standing) for result in results)),
        findings=findings(view),
        verdict=verdict(view),
        choice=choice(view),
        excluded={
            trial: excluded[trial] if isinstance(excluded, Mapping) else "" for trial in sorted(excluded)
        },
        outliers=_outliers(attempts),
        drifts=unrest.drifts(attempts),
        base=base,
        fills=tuple(fills),
        repeated={old: new for old, new in repeated.items() if known.finished[old].standing in repeats.AMISS},
        models=models(rows, {line: one.round_trip_s for line, one in proved.items() if one.round_trip_s}),
    )


def _attempts(
    started: RunStarted, results: Iterable[TrialFinished], excluded: Collection[int]
) -> tuple[unrest.Timed, ...]:
    """The kept attempts, in the plan's order."""
    finished = {result.trial: result for result in results}
    kept = []
    for trial in started.trials:
        result = finished.get(trial.number)
        if not trial.counted or result is None or trial.number in excluded:
            continue
        if result.standing is Standing.KEPT and result.wall_s is not None:
            kept.append(unrest.Timed(trial=trial.number, treatment=trial.treatment, wall_s=result.wall_s))
    return tuple(kept)


def _outliers(attempts: tuple[unrest.Timed, ...]) -> tuple[unrest.Outlier, ...]:
    names = dict.fromkeys(one.treatment.operation for one in attempts)
    found = [
        one
        for name in names
        for one in unrest.outliers([a for a in attempts if a.treatment.operation == name])
        if abs(one.wall_s - one.others_s) >= LEAST_DIFFERENCE_S
    ]
    return tuple(sorted(found, key=lambda one: one.trial))


def as_json(summary: Summary) -> dict[str, Any]:
    """The promise of `show RUN --json`: names and shapes that scripts rely on. Unknown numbers are None.

    What is there stays; new names are added behind.
    """
    started = summary.started
    return {
        "run": started.run,
        "experiment": started.experiment.name,
        "outcome": str(summary.outcome),
        "seed": started.experiment.seed,
        "order": started.experiment.order,
        "cells": [_cell(cell) for cell in summary.cells],
        "lines": [_line(line, summary.proved.get(line)) for line in started.experiment.lines],
        "overhead_s": summary.overhead_s,
        "findings": [_finding(finding) for finding in summary.findings],
        "verdict": summary.verdict,
        "choice": _sentence(summary.choice) if summary.choice else None,
        "source": summary.source,
        "base": summary.base.key,
        "excluded": [{"trial": trial, "reason": reason} for trial, reason in summary.excluded.items()],
        "outliers": [_outlier(one) for one in summary.outliers],
        "drift": [{**asdict(one), "seen": one.seen} for one in summary.drifts],
        "models": [_model(one) for one in summary.models],
        "repeated": [{"trial": old, "by": new} for old, new in summary.repeated.items()],
        "clients": started.experiment.at_once,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "question": finding.question,
        "text": finding.text,
        "headline": finding.headline,
        "sentences": [_sentence(one) for one in finding.sentences],
    }


def _sentence(one: Sentence) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "text": one.text,
        "shown": one.shown,
        "cells": [
            {
                "operation": cell.operation,
                "state": cell.state.key,
                "upload_bps": cell.line.upload_bps,
                "download_bps": cell.line.download_bps,
                "delay_s": cell.line.delay_s,
            }
            for cell in one.cells
        ],
    }


def _model(one: Model) -> dict[str, Any]:
    fit = one.fit
    return {
        "operation": one.operation,
        "state": one.proxy.key,
        "form": "sum" if fit.floor_s is None else "floor",
        "fixed_s": fit.fixed_s,
        "round_trips": fit.round_trips,
        "down_bytes": fit.down_bytes,
        "up_bytes": fit.up_bytes,
        "floor_s": fit.floor_s,
        "residual": fit.residual,
        "counted_down_bytes": one.counted_down_bytes,
        "counted_up_bytes": one.counted_up_bytes,
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "operation": cell.operation,
        "state": cell.state,
        "line": _line_as_asked(cell.line),
        "kept": cell.kept,
        "void": cell.void,
        "excluded": cell.excluded,
        "median_s": cell.median_s,
        "low_s": cell.low_s,
        "high_s": cell.high_s,
        "bytes": {pair: cell.bytes.get(pair) for pair in PAIRS},
        "served_bytes": cell.served_bytes,
        "relayed_bytes": cell.relayed_bytes,
        "direct_bytes": cell.direct_bytes,
        "verdict": cell.verdict,
        "published": cell.published,
        "attempts_s": list(cell.times),
        "mean_s": cell.mean_s,
        "geometric_mean_s": cell.geometric_s,
        "interval_s": _pair(cell.mean_low_s, cell.mean_high_s),
        "spread": asdict(cell.spread) if cell.spread else None,
        "middle": asdict(cell.middle) if cell.middle else None,
        "against": _against(cell.against) if cell.against else None,
    }


def _against(one: Comparison) -> dict[str, Any]:
    return {
        "ratio": one.ratio,
        "interval": _pair(one.low, one.high),
        "p": one.p,
        "hodges_lehmann": list(one.shift) if one.shift else None,
        "smallest_seen": one.smallest,
        "attempts_needed": one.needed,
    }


def _pair(low: float | None, high: float | None) -> list[float] | None:
    return None if low is None or high is None else [low, high]


def _outlier(one: unrest.Outlier) -> dict[str, Any]:
    return {
        "trial": one.trial,
        "operation": one.treatment.operation,
        "state": one.treatment.state.key,
        "line": _line_as_asked(one.treatment.line),
        "wall_s": one.wall_s,
        "others_s": one.others_s,
        "factor": one.factor,
        "p": one.p,
    }


def _line_as_asked(line: Line) -> dict[str, Any]:
    # One number for both directions: where they differ, the larger, which is the download's.
    queue = None if line.download_bps is None else line.queue_for(line.download_bps)
    return {
        "upload_bps": line.upload_bps,
        "download_bps": line.download_bps,
        "delay_s": line.delay_s,
        "jitter_s": line.jitter_s,
        "loss": line.loss,
        "queue_bytes": queue,
    }


def _line(line: Line, proved: LineProved | None) -> dict[str, Any]:
    return {
        "asked": _rates(line.upload_bps, line.download_bps),
        "read_back": _rates(
            proved.read_upload_bps if proved else None, proved.read_download_bps if proved else None
        ),
        "achieved": _rates(
            proved.achieved_upload_bps if proved else None, proved.achieved_download_bps if proved else None
        ),
    }


def _rates(upload: float | None, download: float | None) -> dict[str, float | None]:
    return {"upload_bps": upload, "download_bps": download}
