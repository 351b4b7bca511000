"""The summary of a run's events, and the JSON that scripts rely on."""

from __future__ import annotations

import json

import pytest
from fake_testbed import TOOL_S, FakeTestbed, experiment, small
from hypothesis import given
from runs_made import SLOW, cells_experiment, events, few, finished, made, results, started

from lab.analysis.summary import as_json, summarised
from lab.events import (
    LineProved,
    Outcome,
    RunFinished,
    RunStarted,
    Standing,
    ToolMeasured,
    TrialFinished,
    from_json,
    to_json,
)
from lab.model import DISABLED, Line, ProxyState

FULL = ProxyState(full=100)
CELL = {
    "operation", "state", "line", "kept", "void", "excluded", "median_s", "low_s", "high_s", "bytes",
    "served_bytes", "relayed_bytes", "direct_bytes", "verdict", "published", "attempts_s", "mean_s",
    "geometric_mean_s", "interval_s", "spread", "middle", "against",
}  # fmt: skip
VERDICTS = {"base", "faster", "slower", "no-difference", "too-few", "void"}


@few
@given(made())
def test_every_run_keeps_the_promise_to_scripts(run: tuple[RunStarted, list[TrialFinished]]) -> None:
    first, ended = run
    told = json.loads(json.dumps(as_json(summarised([first, *ended])), allow_nan=False))
    assert set(told) == {
        "run", "experiment", "outcome", "seed", "order", "cells", "lines", "overhead_s", "findings",
        "verdict", "choice", "source", "base", "excluded", "outliers", "drift", "models",
    }  # fmt: skip
    assert told["outcome"] in {"done", "stopped", "failed"}
    for cell in told["cells"]:
        assert set(cell) == CELL
        assert cell["verdict"] in VERDICTS
    assert len(told["lines"]) == len(first.experiment.lines)
    assert [finding["question"] for finding in told["findings"]] == [1, 2, 3, 4, 5]


def test_a_run_without_a_last_word_is_stopped_and_shows_what_it_has() -> None:
    first = started(cells_experiment(states=[DISABLED]))
    summary = summarised([first, *results(first, lambda trial: 2.0)[:2]])
    assert summary.outcome is Outcome.STOPPED
    assert summary.cells[0].kept == 2
    assert as_json(summary)["overhead_s"] == 0


def test_without_a_first_word_there_is_nothing_to_sum_up() -> None:
    with pytest.raises(ValueError, match="run-started"):
        summarised([RunFinished(at="", outcome=Outcome.DONE)])


def test_unknown_numbers_are_null() -> None:
    first = started(cells_experiment([Line(upload_bps=None, download_bps=None)], states=[DISABLED]))
    told = as_json(summarised([first]))
    assert told["overhead_s"] is None
    assert told["lines"] == [
        {name: {"upload_bps": None, "download_bps": None} for name in ("asked", "read_back", "achieved")}
    ]
    (cell,) = told["cells"]
    assert cell["line"]["queue_bytes"] is None
    assert cell["median_s"] is cell["served_bytes"] is cell["bytes"]["client>server"] is None


def test_the_newest_proof_of_a_line_is_told() -> None:
    first = started(cells_experiment(states=[DISABLED]))
    proofs = [
        LineProved(
            line=SLOW, read_upload_bps=512_000, read_download_bps=1_024_000,
            achieved_upload_bps=achieved, achieved_download_bps=2 * achieved, round_trip_s=0.001,
        )
        for achieved in (400_000.0, 480_000.0)
    ]  # fmt: skip
    assert as_json(summarised([first, *proofs]))["lines"] == [
        {
            "asked": {"upload_bps": 512_000, "download_bps": 1_024_000},
            "read_back": {"upload_bps": 512_000, "download_bps": 1_024_000},
            "achieved": {"upload_bps": 480_000.0, "download_bps": 960_000.0},
        }
    ]


def test_the_measured_start_of_the_tool_bounds_differences() -> None:
    first = started(cells_experiment(states=[DISABLED, FULL]))
    ended = [
        finished(trial, 0.06 if trial.treatment.state == FULL else 0.1, preparing_s=float(trial.number))
        for trial in first.trials
    ]
    for start_s, verdict in ((0.01, "faster"), (0.05, "no-difference")):
        tool = ToolMeasured(tool="svn", version="1", start_s=start_s)
        summary = summarised([first, tool, *ended])
        assert summary.cells[1].verdict == verdict
        assert summary.overhead_s == pytest.approx(3.5)
    assert summarised(events(small())).tool_start_s == TOOL_S


def test_complete_means_no_failure_and_a_kept_attempt_everywhere() -> None:
    assert summarised(events(small())).complete
    assert not summarised(events(small(), FakeTestbed(failing={1: "no"}, samples=1))).complete
    first = started(cells_experiment(states=[DISABLED]))
    void = [finished(trial, 1.0, standing=Standing.VOID) for trial in first.trials]
    assert not summarised([first, *void]).complete
    assert summarised([first, void[0], *results(first, lambda trial: 1.0)[1:]]).complete


def test_launches_need_no_kept_attempt_to_be_complete() -> None:
    asked = experiment(disabled_only=("history",), launches=True, operations=("get", "history"))
    assert summarised(events(asked)).complete


def test_a_replayed_run_is_summed_up_to_the_same_values() -> None:
    told = events(small())
    assert as_json(summarised(from_json(to_json(event)) for event in told)) == as_json(summarised(told))
