"""The summary of a run's events, and the JSON that scripts rely on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_testbed import TOOL_S, FakeTestbed, experiment, small
from hypothesis import given
from runs_made import SLOW, cells_experiment, events, few, finished, made, results, started
from scipy import stats

from lab import runner, store
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
from lab.export import trials
from lab.model import DISABLED, Line, ProxyState
from lab.stop import Stop

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
        "repeated", "clients",
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


def test_every_figure_can_be_computed_anew_from_the_exported_trials(tmp_path: Path) -> None:
    """With SciPy's own functions, from the JSON lines alone."""
    asked = experiment(attempts=6)
    path = tmp_path / "run.branchlab"
    for _ in store.recorded(runner.run(asked, FakeTestbed(samples=1), Stop()), path):
        pass
    with store.opened(path) as record:
        (tmp_path / "run.jsonl").write_bytes(trials.jsonl(record))
        told = as_json(summarised(record.events()))
    rows = pd.read_json(tmp_path / "run.jsonl", lines=True)
    rows = rows[rows["standing"] == "kept"]
    rows["log"] = np.log(rows["wall_s"])
    grouped = rows.groupby(["operation", "download_bit_per_s", "state"])
    groups = {key: group for key, group in grouped}  # noqa: C416 - dict() would ask it for its keys
    for cell in told["cells"]:
        rate, name = cell["line"]["download_bps"], cell["operation"]
        mine = groups[name, rate, cell["state"]]
        assert cell["median_s"] == pytest.approx(mine["wall_s"].median())
        assert cell["mean_s"] == pytest.approx(mine["wall_s"].mean())
        assert cell["geometric_mean_s"] == pytest.approx(stats.gmean(mine["wall_s"]))
        same = rows[rows["operation"] == name]
        cells = [group["log"] for _, group in same.groupby(["download_bit_per_s", "state"])]
        pooled = sum(((values - values.mean()) ** 2).sum() for values in cells)
        degrees = len(same) - len(cells)
        own = stats.bartlett(*cells).pvalue < 0.05
        assert cell["spread"]["own"] is bool(own)
        sd = mine["log"].std() if own else (pooled / degrees) ** 0.5
        free = len(mine) - 1 if own else degrees
        low, high = stats.t.interval(0.95, free, mine["log"].mean(), sd / len(mine) ** 0.5)
        assert cell["interval_s"] == pytest.approx([np.exp(low), np.exp(high)])
        if cell["against"] is None:
            continue
        base = groups[name, rate, "disabled"]
        apart = mine["log"].mean() - base["log"].mean()
        assert cell["against"]["ratio"] == pytest.approx(np.exp(apart))
        if own:
            expected = stats.ttest_ind(mine["log"], base["log"], equal_var=False).pvalue
        else:
            expected = 2 * stats.t.sf(abs(apart) / (sd * (2 / len(mine)) ** 0.5), degrees)
        assert cell["against"]["p"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("drift", [0.0, 0.05])
def test_a_difference_that_is_not_there_is_claimed_in_under_6_percent_of_runs(drift: float) -> None:
    """Whole runs in blocks, three attempts, five states that are truly alike; also where times drift by 5 %."""
    asked = cells_experiment(states=[DISABLED, *(ProxyState(full=n) for n in (0, 50, 90, 100))])
    first = started(asked)
    dice = np.random.default_rng(2008)
    claimed = compared = families = 0
    for _ in range(500):
        scatter = dice.normal(0, 0.02, len(first.trials))
        ended = results(
            first,
            lambda trial, scatter=scatter: (
                5 * np.exp(scatter[trial.number - 1] + drift * trial.number / len(first.trials))
            ),
        )
        summary = summarised([first, *ended])
        verdicts = [cell.verdict for cell in summary.cells if cell.proxy.enabled]
        claimed += sum(verdict in ("faster", "slower") for verdict in verdicts)
        compared += len(verdicts)
        families += "as fast" in summary.findings[0].text.split("None:")[0]
    assert claimed / compared < 0.06
    assert families / 500 < 0.06
