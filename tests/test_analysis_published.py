"""The published figures of 2008 as a run: what the source states is stated, each sentence with its cells."""

from __future__ import annotations

import csv
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from lab.__main__ import cli
from lab.analysis import published
from lab.analysis.cells import judged
from lab.analysis.choice import choice
from lab.analysis.findings import findings
from lab.analysis.sentences import Sentence
from lab.analysis.summary import Summary
from lab.analysis.view import Use, View
from lab.errors import BadInput
from lab.model import Treatment

FOLDER = Path(__file__).parent.parent / "resources/reference"


@pytest.fixture(scope="module")
def told() -> Summary:
    return published.summary("published-2008")


def said(summary: Summary, rule: str, operation: str = "") -> Sentence:
    (found,) = [
        one
        for finding in summary.findings
        for one in finding.sentences
        if one.rule == rule and (not operation or one.cells[0].operation == operation)
    ]
    return found


def test_every_published_time_is_a_cell_and_none_has_an_interval(told: Summary) -> None:
    with (FOLDER / "tfs_proxy_2008.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(told.cells) == len(rows) == 90
    states = {"disabled": "disabled", "cached-0": "0 %", "cached-90": "90 %", "cached-100": "100 %"}
    expected = {
        (row["operation"], int(row["download_kbit_s"]), states[row["proxy_state"]]): float(row["seconds"])
        for row in rows
    }
    for cell in told.cells:
        assert cell.line.download_bps is not None
        assert expected[cell.operation, cell.line.download_bps // 1000, cell.state] == cell.median_s
        assert (cell.published, cell.kept, cell.low_s, cell.mean_low_s) == (True, 0, None, None)
        if cell.against:
            assert (cell.against.low, cell.against.p) == (None, None)


@pytest.mark.parametrize(("operation", "name", "times"), [
    ("get", "Get", "3.5×"), ("undo", "Undo Check-Out", "3.4×"), ("diff", "Diff", "1.6×"),
])  # fmt: skip
def test_on_the_slowest_line_it_is_so_many_times_as_fast(
    told: Summary, operation: str, name: str, times: str
) -> None:
    one = said(told, "gain", operation)
    assert one.text.startswith(f"{name} is up to {times} as fast: with a full cache on 64/128 kbit/s ")
    assert "(published; " in one.text
    assert len(one.cells) == 24


def test_get_gains_9_percent_at_1_and_1_percent_at_2_where_90_percent_full_is_already_slower(
    told: Summary,
) -> None:
    get = said(told, "gain-by-line", "get").text
    assert "9 % on 1/2 Mbit/s and 1 % on 2/4 Mbit/s, which may be chance (published)" in get
    partly = said(told, "partly-full", "get")
    assert "With a cache 90 % full Get is already slower than without a proxy on 2/4 Mbit/s" in partly.text
    assert "0:21.95 instead of 0:20.93" in partly.text
    assert len(partly.cells) == 2


def test_check_out_gains_16_percent_and_diff_10_and_a_half(told: Summary) -> None:
    assert "16 % between 512/1024 kbit/s and 1/2 Mbit/s" in said(told, "rate-step", "check-out").text
    assert "10.5 % on 256/512 kbit/s" in said(told, "gain-by-line", "diff").text


def test_an_empty_cache_is_slower_than_none_everywhere_for_diff_by_up_to_half(told: Summary) -> None:
    one = said(told, "empty")
    assert one.text.startswith("An empty cache is slower than none everywhere (18 cells): ")
    assert "Diff by up to 47 %" in one.text
    assert len(one.cells) == 36


def test_three_operations_do_not_use_the_proxy(told: Summary) -> None:
    one = said(told, "use")
    assert one.text.startswith("Check-Out, Check-In and History do not use the proxy (published: ")
    assert {cell.operation for cell in one.cells} == {"check-out", "check-in", "history"}
    assert told.findings[1].headline == "3 of 6"


def test_time_falls_with_the_rate_and_not_in_proportion(told: Summary) -> None:
    assert "Time falls with the rate, but not in proportion: 31× the rate" in said(told, "proportion").text


def test_keep_the_cache_full_and_do_not_run_with_an_empty_one(told: Summary) -> None:
    one = said(told, "advice")
    assert one.text.startswith(
        "Keep the cache full; do not run with an empty one (full, it is faster than none in 18 of 18 cells; "
    )
    assert len(one.cells) == 54


def test_volumes_are_those_of_the_text_and_those_fitted_to_the_times(told: Summary) -> None:
    text = told.findings[2].text
    assert "Get 4.7 MB, Undo Check-Out 5.2 MB and Diff about 1 MB" in text
    assert "Get 4.92 MB without a proxy, 4.97 MB with an empty cache, 1.27 MB with a cache 90 % full" in text
    assert text.count("Fitted to the times") == 3


def test_the_title_and_the_question_of_money(told: Summary) -> None:
    assert told.verdict == (
        "Up to 2/4 Mbit/s a full cache pays for Undo Check-Out and Diff, up to 1/2 Mbit/s for Get."
    )
    assert told.choice is not None
    assert told.choice.text == (
        "Proxy or wider line: Get takes 1:29.99 on 64/128 kbit/s with a full cache (5:15.52 without a proxy), against "
        "2:36.54 on 128/256 kbit/s without one (the proxy is 1.7× as fast) and 1:19.51 on 256/512 kbit/s without one "
        "(the wider line is 1.1× as fast); Check-Out, Check-In and History gain by a wider line only "
        "(published; 5 wider lines)."
    )


def test_a_sentence_names_the_published_cells_that_it_used_and_no_others(told: Summary) -> None:
    everything = [*(one for finding in told.findings for one in finding.sentences), told.choice]
    view = View(
        cells=told.cells,
        uses={cell.operation: Use.SERVED for cell in told.cells if cell.proxy.enabled}
        | dict.fromkeys(("check-out", "check-in", "history"), Use.PAST),
        why="published: one traffic launch per state had shown it, so they were timed without a proxy only",
        volumes=tuple(one.text for one in told.findings[2].sentences if one.rule == "published"),
    )
    assert [one.text for one in findings(view)] == [one.text for one in told.findings]
    for gone in told.cells:
        key = Treatment(line=gone.line, operation=gone.operation, state=gone.proxy)
        rest = replace(view, cells=judged([cell for cell in told.cells if cell is not gone]))
        left = {one.text for finding in findings(rest) for one in finding.sentences}
        left |= {one.text for one in [choice(rest)] if one}
        for one in everything:
            assert one is None or (key in one.cells) == (one.text not in left), (key, one)


def test_the_command_line_shows_it_as_a_run() -> None:
    plain = CliRunner().invoke(cli, ["show", "published-2008"])
    assert plain.exit_code == 0, plain.output
    assert "TFS Proxy efficiency test, 2008" in plain.stdout
    assert "Run file" not in plain.stdout
    shown = json.loads(CliRunner().invoke(cli, ["show", "published-2008", "--json"]).stdout)
    assert shown["run"] == "published-2008"
    assert shown["source"].startswith("TFS Proxy efficiency test, 2008: ")
    assert all(cell["published"] and cell["interval_s"] is None for cell in shown["cells"])
    sentences = [one for finding in shown["findings"] for one in finding["sentences"]]
    assert all(one["cells"] for one in sentences if one["rule"] != "published")


def test_another_state_may_be_the_base_and_nothing_can_be_left_out() -> None:
    shown = json.loads(CliRunner().invoke(cli, ["show", "published-2008", "--base", "0 %", "--json"]).stdout)
    assert shown["base"] == "0 %"
    verdicts = {cell["state"]: cell["verdict"] for cell in shown["cells"] if cell["operation"] == "get"}
    assert verdicts == {"disabled": "faster", "0 %": "base", "90 %": "faster", "100 %": "faster"}
    assert (
        shown["findings"]
        == json.loads(CliRunner().invoke(cli, ["show", "published-2008", "--json"]).stdout)["findings"]
    )
    for words in (("--base", "37 %"), ("--exclude", "3", "slow")):
        assert CliRunner().invoke(cli, ["show", "published-2008", *words]).exit_code == 2


def test_every_file_of_figures_has_its_source_named() -> None:
    sources = tomllib.loads((FOLDER / "sources.toml").read_text("utf-8"))
    named = [file for source in sources.values() for file in source["files"]]
    assert sorted(named) == sorted(file.name for file in FOLDER.glob("*.csv"))
    assert all(source["title"] and source["year"] and source["about"] for source in sources.values())


def test_another_name_is_refused() -> None:
    with pytest.raises(BadInput, match="no published source"):
        published.summary("bazaar-2008")
