"""One run held against another: ratios as scipy has them, one family of comparisons, what is not in both, forecasts."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from runs_made import FAST, SLOW, cells_experiment, few, made, results, started

from lab import store
from lab.__main__ import cli
from lab.analysis import published, two_runs
from lab.analysis.cells import Cell
from lab.analysis.comparing import compare
from lab.analysis.summary import Summary, summarised
from lab.analysis.two_runs import Compared, compared
from lab.events import Outcome, RunFinished, RunStarted, TrialFinished
from lab.model import DISABLED, Line, ProxyState, Trial

FULL = ProxyState(full=100)
NOISE = (0.99, 1.0, 1.01)


def run(times: dict[tuple[str, Line, ProxyState], float], scatter: tuple[float, ...] = NOISE) -> Summary:
    """A run whose cells took these times, each attempt off by its part of `scatter`."""
    lines = list(dict.fromkeys(line for _, line, _ in times))
    names = list(dict.fromkeys(name for name, _, _ in times))
    states = list(dict.fromkeys(state for _, _, state in times))
    first = started(cells_experiment(lines, names, states, attempts=len(scatter)))

    def took(trial: Trial) -> float | None:
        what = trial.treatment
        base = times.get((what.operation, what.line, what.state))
        return None if base is None else base * scatter[trial.attempt - 1]

    kept = [one for one in results(first, took) if one.wall_s is not None]
    return summarised([first, *kept])


def get(
    time_s: float, line: Line = SLOW, state: ProxyState = DISABLED
) -> dict[tuple[str, Line, ProxyState], float]:
    return {("get", line, state): time_s}


def held(a: Summary, b: Summary) -> Compared:
    found = compared(a, b)
    json.dumps(two_runs.as_json(found))
    return found


def test_the_ratio_and_its_interval_are_those_of_the_t_test_on_logs() -> None:
    from scipy import stats

    a, b = run(get(10.0)), run(get(8.0), (1.02, 0.99, 1.0))
    (change,) = held(a, b).changes
    one, other = ([math.log(time) for time in cell.times] for cell in (change.b, change.a))
    expected = stats.ttest_ind(one, other)
    low, high = expected.confidence_interval(0.95)
    assert change.against.verdict == "faster"
    assert change.against.p == pytest.approx(expected.pvalue)
    assert change.against.low == pytest.approx(math.exp(low))
    assert change.against.high == pytest.approx(math.exp(high))


def test_a_run_against_itself_differs_nowhere() -> None:
    one = run(get(10.0) | get(2.0, state=FULL))
    found = held(one, one)
    assert [change.against.verdict for change in found.changes] == ["no-difference"] * 2
    assert found.title.startswith("No difference is seen between A and B in 2 cells")
    assert "would have been" in found.text


def test_a_to_b_is_the_inverse_of_b_to_a() -> None:
    a, b = run(get(10.0)), run(get(7.0), (0.97, 1.0, 1.03))
    (there,), (back,) = held(a, b).changes, held(b, a).changes
    assert there.against.ratio is not None
    assert back.against.ratio == pytest.approx(1 / there.against.ratio)
    assert (there.against.verdict, back.against.verdict) == ("faster", "slower")


def test_what_one_comparison_would_show_is_lost_among_many() -> None:
    scatter = (0.97, 1.0, 1.03)
    lines = [Line(upload_bps=rate, download_bps=2 * rate) for rate in range(64_000, 84_000, 1000)]
    before = {("get", line, DISABLED): 10.0 for line in lines}
    a, b = run(before, scatter), run(before | {("get", lines[0], DISABLED): 9.4}, scatter)
    uncorrected = compare(*_first(a, b)).p
    change = held(a, b).changes[0]
    assert uncorrected is not None
    assert uncorrected < 0.05
    assert change.against.p == pytest.approx(len(lines) * uncorrected)
    assert change.against.verdict == "no-difference"


def _first(a: Summary, b: Summary) -> tuple[Cell, Cell]:
    """The first cells of both, as they are held against each other."""
    change = compared(a, b).changes[0]
    return change.b, change.a


def test_the_title_adds_up_what_both_have_and_names_the_largest_change() -> None:
    a = run(get(10.0) | get(60.0, FAST))
    b = run(get(5.0) | get(6.0, FAST))
    found = held(a, b)
    assert found.totals_s == (pytest.approx(70.0), pytest.approx(11.0))
    assert found.title == "B is faster in 2 of 2 cells: 0:11.00 instead of 1:10.00 in all."
    assert "Faster most: Get on 2/4 Mbit/s without a proxy, 0:06.00 instead of 1:00.00 (10×;" in found.text
    assert "slower" in held(b, a).title
    mixed = held(a, run(get(5.0) | get(80.0, FAST)))
    assert mixed.title.startswith("B is faster in 1 and slower in 1 of 2 cells")


def test_cells_of_one_run_only_are_told_and_never_compared() -> None:
    found = held(run(get(10.0) | get(1.0, state=FULL)), run(get(10.0) | get(2.0, FAST)))
    assert [change.a.proxy for change in found.changes] == [DISABLED]
    assert [cell.proxy for cell in found.only_a] == [FULL]
    assert [cell.line for cell in found.only_b] == [FAST]
    nothing = held(run(get(1.0)), run(get(1.0, FAST)))
    assert nothing.changes == ()
    assert nothing.title == "The two runs have no cell in common."


def test_a_queue_written_out_is_the_same_line_another_one_is_not() -> None:
    queue = SLOW.queue_for(1_024_000)
    assert SLOW.queue_for(512_000) != queue
    written = replace(SLOW, queue_s=1.0)
    other = replace(SLOW, queue_s=0.1)
    assert len(held(run(get(10.0)), run(get(10.0, written))).changes) == 1
    assert held(run(get(10.0)), run(get(10.0, other))).changes == ()


def test_two_kept_attempts_are_too_few() -> None:
    found = held(run(get(10.0)), run(get(5.0), (1.0, 1.01)))
    assert found.changes[0].against.verdict == "too-few"
    assert found.title == "Too few attempts to hold one cell of B against A."


def test_published_figures_are_told_without_an_interval() -> None:
    line = Line(upload_bps=64_000, download_bps=128_000)
    found = held(published.summary("published-2008"), run(get(48.0, line)))
    (change,) = found.changes
    assert change.against.verdict == "faster"
    assert change.against.low is None
    assert "no interval" in found.text
    assert "95 %" not in found.text


def _on(line: Line) -> float:
    """Half a second, and two megabytes down."""
    assert line.download_bps
    return 0.5 + 8 * 2_000_000 / line.download_bps


def test_a_line_bought_since_is_held_against_what_the_first_run_foretold() -> None:
    rates = (256_000, 512_000, 1_000_000, 4_000_000)
    known = [Line(upload_bps=rate // 2, download_bps=rate) for rate in rates]
    wobble = dict(zip(known, (1.01, 0.99, 1.01, 0.99), strict=True))
    a = run({("get", line, DISABLED): _on(line) * wobble[line] for line in known})
    bought = Line(upload_bps=1_000_000, download_bps=2_000_000)
    (one,) = held(a, run(get(_on(bought), bought))).foretold
    assert one.time_s == pytest.approx(_on(bought), rel=0.05)
    assert one.low_s is not None
    assert one.within
    assert one.held
    (missed,) = held(a, run(get(3 * _on(bought), bought))).foretold
    assert missed.held is False
    faster = Line(upload_bps=5_000_000, download_bps=10_000_000)
    (beyond,) = held(a, run(get(1.0, faster))).foretold
    assert not beyond.within


@few
@given(made(), made())
def test_any_two_runs_can_be_held_against_each_other(
    one: tuple[RunStarted, list[TrialFinished]], other: tuple[RunStarted, list[TrialFinished]]
) -> None:
    a, b = (summarised([first, *ended]) for first, ended in (one, other))
    found = held(a, b)
    timed = [cell for cell in a.cells if cell.median_s is not None]
    assert len(found.changes) + len(found.only_a) == len(timed)
    assert found.title
    assert sum(len(found.with_verdict(v)) for v in ("faster", "slower", "no-difference", "too-few")) == len(
        found.changes
    )


def test_facts_that_differ_stand_apart_from_those_that_do_not() -> None:
    one = run(get(1.0))
    found = compared(
        one, one, {"Tool": "svn 1.14.2", "Order": "blocks"}, {"Tool": "svn 1.14.5", "Data": "quick"}
    )
    assert [(fact.name, fact.a, fact.b) for fact in found.differs] == [
        ("Tool", "svn 1.14.2", "svn 1.14.5"),
        ("Order", "blocks", "—"),
        ("Data", "—", "quick"),
    ]
    assert found.same == ()


def _file(path: Path, time_s: float) -> str:
    first = started(cells_experiment([SLOW], states=[DISABLED]))
    ended = results(first, lambda trial: time_s * NOISE[trial.attempt - 1])
    last = RunFinished(at=first.at, outcome=Outcome.DONE)
    list(store.recorded(iter([first, *ended, last]), path))
    return str(path)


def test_the_command_tells_it_in_words_and_for_scripts(tmp_path: Path) -> None:
    a, b = _file(tmp_path / "a.branchlab", 10.0), _file(tmp_path / "b.branchlab", 5.0)
    told = CliRunner().invoke(cli, ["compare", a, b])
    assert told.exit_code == 0, told.output
    assert "B is faster in Get on 512/1024 kbit/s without a proxy." in told.output
    assert "2.00× faster" in told.output or "2.0× faster" in told.output
    script = CliRunner().invoke(cli, ["compare", a, b, "published-2008", "--json"])
    (first, second) = json.loads(script.output)
    assert first["changes"][0]["ratio"] == pytest.approx(0.5)
    assert [change["operation"] for change in second["changes"]] == ["get"]


def test_a_published_comparison_is_refused_kindly() -> None:
    told = CliRunner().invoke(cli, ["compare", "bazaar-2008", "published-2008"])
    assert told.exit_code == 2
    assert "branchlab show bazaar-2008" in told.output
