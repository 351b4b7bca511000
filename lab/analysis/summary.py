"""A run from its events: cells, lines, cost of preparing, the answers and their title; and all as JSON."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from lab.analysis.cells import Cell, cells
from lab.analysis.findings import Finding, findings
from lab.analysis.verdict import verdict
from lab.analysis.view import View
from lab.events import (
    Event,
    LineProved,
    Outcome,
    RunFinished,
    RunStarted,
    Standing,
    ToolMeasured,
    TrialFinished,
)
from lab.model import PAIRS, Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run came to. `outcome` of a run that has no last word (its program was killed) is `stopped`.

    `overhead_s` is the mean preparing time of its finished trials; `tool_start_s` what starting the tool
    costs (0 if it was not measured); `standings` counts finished trials by `lab.events.Standing`.
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

    @property
    def outcome(self) -> Outcome:
        """How the run ended."""
        return self.finished.outcome if self.finished else Outcome.STOPPED

    @property
    def complete(self) -> bool:
        """True if no trial failed and every cell that is timed has a kept attempt."""
        failed = self.standings.get(Standing.FAILED, 0)
        return not failed and all(cell.kept or not cell.planned for cell in self.cells)


def summarised(events: Iterable[Event], *, excluded: Collection[int] = ()) -> Summary:
    """The summary of a run's events, finished or not. Raises ValueError if its first word is missing."""
    started: RunStarted | None = None
    finished: RunFinished | None = None
    tool_start_s = 0.0
    proved: dict[Line, LineProved] = {}
    results: list[TrialFinished] = []
    for event in events:
        match event:
            case RunStarted():
                started = event
            case ToolMeasured():
                tool_start_s = max(tool_start_s, event.start_s)
            case LineProved():
                proved[event.line] = event
            case TrialFinished():
                results.append(event)
            case RunFinished():
                finished = event
    if started is None:
        raise ValueError("these events do not begin with run-started")
    rows = cells(started, results, tool_start_s=tool_start_s, excluded=excluded)
    view = View(cells=rows, classes=started.classes, tool_start_s=tool_start_s)
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
    )


def as_json(summary: Summary) -> dict[str, Any]:
    """The promise of `show RUN --json`: names and shapes that scripts rely on. Unknown numbers are None."""
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
        "findings": [{"question": finding.question, "text": finding.text} for finding in summary.findings],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    line = cell.line
    # One number for both directions: where they differ, the larger, which is the download's.
    queue = None if line.download_bps is None else line.queue_for(line.download_bps)
    return {
        "operation": cell.operation,
        "state": cell.state,
        "line": {
            "upload_bps": line.upload_bps,
            "download_bps": line.download_bps,
            "delay_s": line.delay_s,
            "jitter_s": line.jitter_s,
            "loss": line.loss,
            "queue_bytes": queue,
        },
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
