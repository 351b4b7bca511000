"""Figures as data: every value is a cell's, gaps are gaps, titles say what the verdicts say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import export_runs as runs
import pytest

from lab import palette
from lab.errors import BadInput
from lab.export import figures, making, titles
from lab.export.contents import Contents
from lab.export.figures import Figure, Kind
from lab.model import DISABLED, ProxyState


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    return runs.made(tmp_path_factory.mktemp("six"), runs.asked())


def by_key(contents: Contents, key: str) -> Figure:
    return next(figure for figure in contents.figures if figure.key == key)


def test_time_against_line_is_the_medians_of_the_cells(six: Contents) -> None:
    figure = by_key(six, "get-line")
    assert figure.kind is Kind.LINE
    assert figure.categories == ("64/128", "128/256", "256/512", "512/1024", "1/2 M", "2/4 M")
    assert figure.up.title == "time, s, log"
    cells = {(c.line, c.proxy): c for c in six.summary.cells if c.operation == "get"}
    for series, proxy in zip(figure.series, runs.STATES, strict=True):
        for point, line in zip(series.points, runs.SIX, strict=True):
            cell = cells[line, proxy]
            low, high = making.spread(cell)
            assert (point.value, point.low, point.high) == (cell.median_s, low, high)
            assert point.above == max(0.0, high - cell.median_s)
    assert figure.places == pytest.approx((0, 0.2012, 0.4024, 0.6036, 0.7988, 1), abs=0.002)


def test_series_keep_their_look_and_order_everywhere(six: Contents) -> None:
    light = palette.load("light")
    for figure in six.figures:
        if figure.kind is not Kind.STACKED:
            assert [series.key for series in figure.series] == ["disabled", "0 %", "90 %", "100 %"]
            assert [series.look for series in figure.series] == [light.state(state) for state in runs.STATES]
        else:
            assert [series.left for series in figure.series] == [True] * 2 + [False] * 4
            assert figure.series[0].look.colour == light.pairs["client-proxy"]


def test_traffic_has_a_row_per_state_and_line_from_slow_to_fast(six: Contents) -> None:
    figure = by_key(six, "get-traffic")
    assert figure.categories == tuple(titles.state(state) for state in runs.STATES) * 3
    assert figure.groups == ("64/128",) * 4 + ("128/256",) * 4 + ("256/512",) * 4
    assert by_key(six, "get-traffic-2").groups[0] == "512/1024"
    cell = next(c for c in six.summary.cells if c.operation == "get" and c.line == runs.SIX[0])
    down = next(series for series in figure.series if series.key == "server>client")
    assert down.points[0].value == cell.bytes["server>client"] / 1e3
    assert figure.up.unit == "kB"


def test_what_sends_nothing_has_no_bars_of_traffic(six: Contents) -> None:
    assert not any(figure.key.startswith("diff-traffic") for figure in six.figures)


def test_attempts_stand_in_their_order(six: Contents) -> None:
    figure = by_key(six, "get-attempts")
    numbers = {result.trial: place for place, result in enumerate(six.results, 1)}
    kept = [t.number for t in runs.trials(runs.asked(), operation="get", line=runs.SIX[0]) if t.counted]
    assert sorted(p.x for s in figure.series for p in s.points) == sorted(numbers[n] for n in kept)


def test_a_failed_cell_is_a_gap_with_its_word(tmp_path: Path) -> None:
    wanted = runs.asked(runs.SIX[:3])
    lost = runs.trials(wanted, operation="get", line=runs.SIX[1], state=ProxyState(full=90))
    contents = runs.made(tmp_path, wanted, lost)
    figure = by_key(contents, "get-line")
    point = figure.series[2].points[1]
    assert (point.value, point.low, point.missing) == (None, None, "failed")
    assert figure.note == "Gap: 90\xa0%\xa0full on 128/256 kbit/s (failed)."
    assert "128/256 failed" in figure.alternative
    assert "None" not in figure.alternative
    traffic = by_key(contents, "get-traffic")
    assert traffic.series[0].points[6].value is None


def test_titles_say_what_the_verdicts_say(six: Contents) -> None:
    assert by_key(six, "get-line").title == "A full cache makes Get 24 times as fast on 64/128 kbit/s."
    assert by_key(six, "diff-line").title == "A full cache makes no difference to Diff."
    assert by_key(six, "bars-1").title.startswith("On 64/128 kbit/s a full cache makes Get faster")
    assert by_key(six, "get-traffic").title == (
        "A Get moves 23.0 kB over the line with a full cache, and 650.0 kB without a proxy (64/128 kbit/s)."
    )
    assert by_key(six, "check-out-traffic").title == (
        "A Check-Out moves 85.0 kB over the line, with a full cache as without a proxy (64/128 kbit/s)."
    )
    for figure in six.figures:
        assert figure.title.endswith(".")
        assert figure.sub
        assert "seed 2008" in figure.measured


def test_what_was_not_asked_is_no_gap_and_no_series(tmp_path: Path) -> None:
    contents = runs.made(tmp_path, runs.asked(runs.SIX[:2], disabled_only=("check-out",)))
    figure = by_key(contents, "check-out-line")
    assert [series.key for series in figure.series] == ["disabled"]
    assert figure.note == ""
    assert figure.title.startswith("Check-Out takes 0:0")
    bars = by_key(contents, "bars-1")
    assert [series.key for series in bars.series] == ["disabled", "0 %", "90 %", "100 %"]
    assert bars.series[1].points[1].missing == "not asked"
    assert bars.note == ""
    table = contents.table("check-out-table")
    assert table is not None
    assert [entry.text for entry in table.rows[0][2:]] == ["—", "—", "—", "", "—"]


def test_lines_that_differ_in_delay_are_not_joined(tmp_path: Path) -> None:
    far = [replace(line, delay_s=0.04) for line in runs.SIX[:2]]
    contents = runs.made(tmp_path, runs.asked([*far, *runs.SIX[:2]]))
    assert by_key(contents, "get-line").categories == ("64/128", "128/256")
    assert by_key(contents, "get-line-2").categories == ("64/128 40 ms", "128/256 40 ms")


def test_one_state_one_line_and_nothing_kept(tmp_path: Path) -> None:
    wanted = runs.asked(runs.SIX[:1], states=(DISABLED,))
    contents = runs.made(tmp_path, wanted)
    assert [figure.key for figure in contents.figures if figure.kind is Kind.BAR] == ["bars"]
    assert (
        by_key(contents, "bars").title
        == "The times of 3 operations on 64/128 kbit/s, in one proxy state only."
    )
    (tmp_path / "none").mkdir()
    empty = runs.made(tmp_path / "none", wanted, runs.trials(wanted))
    assert all(figure.empty for figure in empty.figures)
    assert empty.usual == ()


def test_the_usual_figures_begin_with_the_main_operation(six: Contents) -> None:
    assert [figure.key for figure in six.usual] == ["get-line", "get-traffic", "bars-1", "bars-6"]


def test_figures_are_chosen_by_key_and_beginning(six: Contents) -> None:
    assert [f.key for f in figures.chosen(six.figures, "diff-line, get-line")] == ["diff-line", "get-line"]
    assert len(figures.chosen(six.figures, "all")) == len(six.figures)
    assert [f.key for f in figures.chosen(six.figures, "get-traffic")] == ["get-traffic"]
    assert len(figures.chosen(six.figures, "bars")) == 6
    with pytest.raises(BadInput, match=r"no figure `moon`") as told:
        figures.chosen(six.figures, "moon")
    assert "get-line" in told.value.advice


def test_an_interval_of_the_analysis_goes_before_the_range(six: Contents) -> None:
    class Cell:
        kept, low_s, high_s = 3, 1.0, 2.0

    class Judged(Cell):
        mean_low_s, mean_high_s = 1.2, 1.8

    assert making.spread(Cell()) == (1.0, 2.0)  # type: ignore[arg-type]
    assert making.spread(Judged()) == (1.2, 1.8)  # type: ignore[arg-type]
