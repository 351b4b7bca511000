"""What an export says of a run: its method from the run's own words, tables as text and numbers, titles."""

from __future__ import annotations

import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import export_runs as runs
import pytest
from runs_made import CLASSES, FAST, SLOW, cells_experiment, finished, started

from lab import export, store
from lab.analysis.summary import Summary, summarised
from lab.analysis.view import View
from lab.errors import BadInput
from lab.events import DataMeasured, HostSeen, Outcome, RunFinished, ToolMeasured
from lab.export import making, tables, titles
from lab.model import DISABLED, ProxyState, Trial

FULL = ProxyState(full=100)


def summed(
    wall_s: dict[ProxyState, float | None], count: dict[str, int] | None = None, **levels: object
) -> Summary:
    """A run of Get whose trials took these times, in order a little longer each."""
    first = started(cells_experiment(states=tuple(wall_s), **levels), CLASSES)  # type: ignore[arg-type]

    def time_of(trial: Trial) -> float | None:
        base = wall_s[trial.treatment.state]
        return None if base is None else base + trial.attempt / 1000

    traffic = {"bytes": count} if count else {}
    return summarised([first, *(finished(trial, time_of(trial), **traffic) for trial in first.trials)])


def line_title(summary: Summary) -> str:
    return tables.tables(summary)[0].title


@pytest.mark.parametrize(
    ("times", "title"),
    [
        ({DISABLED: 8.0, FULL: 2.0}, "A full cache makes Get 4.0 times as fast on 512/1024 kbit/s."),
        ({DISABLED: 2.0, FULL: 8.0}, "A full cache makes Get slower on 512/1024 kbit/s."),
        ({DISABLED: 2.0, FULL: 2.001}, "A full cache makes no difference to Get."),
        ({DISABLED: None, FULL: 2.0}, "Too few attempts of Get were kept to compare the proxy's states."),
        ({DISABLED: None, FULL: None}, "No attempt of Get was kept."),
        ({DISABLED: 8.0}, "Get takes 0:08.00 on 512/1024 kbit/s."),
    ],
)
def test_titles_repeat_the_verdicts(times: dict[ProxyState, float | None], title: str) -> None:
    assert line_title(summed(times)) == title


def test_titles_where_a_line_gains_and_another_does_not() -> None:
    first = started(cells_experiment((SLOW, FAST), states=(DISABLED, FULL)))

    def time_of(trial: Trial) -> float:
        gains = trial.treatment.line == SLOW and trial.treatment.state == FULL
        return (2.0 if gains else 8.0) + trial.attempt / 1000

    summary = summarised([first, *(finished(trial, time_of(trial)) for trial in first.trials)])
    assert line_title(summary) == (
        "A full cache makes Get 4.0 times as fast on 512/1024 kbit/s; no difference is seen on 2/4 Mbit/s."
    )
    (slow, fast) = [figure.title for figure in making.figures(summary) if figure.key.startswith("bars")]
    assert slow == "On 512/1024 kbit/s a full cache makes Get faster."
    assert fast == "On 2/4 Mbit/s a full cache makes no operation faster or slower."


def test_titles_of_traffic() -> None:
    through = {"client>server": 1000, "server>client": 500_000}
    found = making.figures(summed({DISABLED: 8.0, FULL: 2.0}, through))
    traffic = next(figure for figure in found if figure.key == "get-traffic")
    assert traffic.title == "A Get moves 501.0 kB over the line, with a full cache as without a proxy."
    without = summed({DISABLED: 8.0})
    view = View(cells=without.cells, classes=without.started.classes)
    assert titles.traffic(view, "get", without.cells) == "No trial of Get has its traffic on record."


def test_an_answer_on_a_slide_is_its_first_sentences() -> None:
    text = "Get takes 1.5 s (medians of 3 kept attempts). No more. " + "It goes on and on. " * 30
    assert titles.short(text, 40) == "Get takes 1.5 s. No more."
    assert titles.short("One sentence " * 40) == "One sentence " * 40


def test_moments_that_are_none_are_told_as_they_are() -> None:
    assert titles.day("2024-01-02T03:04:05+00:00") == "2 January 2024 UTC"
    assert titles.day("yesterday") == "yesterday"


def test_the_method_is_the_runs_own_words(tmp_path: Path) -> None:
    first = started(cells_experiment())
    facts = {"os": "Debian \x1b[31m12", "kernel": "6.1", "tools": {"svn": "1.14.2", "apache2": "Apache/2.4"}}
    events = [
        first,
        HostSeen(host="desk-1", role="client", facts=facts),
        HostSeen(host="bare", role="proxy", facts={}),
        DataMeasured(facts={"recipe": "quick", "files": 150, "bytes": 600_000, "revision": 100}),
        DataMeasured(facts={}),
        ToolMeasured(tool="svn", version="1.14.2", start_s=0.012),
        *(finished(trial) for trial in first.trials),
        RunFinished(at="2024-01-02T04:00:00+00:00", outcome=Outcome.FAILED, reason="it broke"),
    ]
    path = tmp_path / "a.branchlab"
    list(store.recorded(iter(events), path))
    told = dict(runs.gathered(path).method)
    assert told["Host desk-1"] == "client, Debian 12, kernel 6.1, svn 1.14.2; Apache/2.4"
    assert told["Host bare"] == "proxy"
    assert told["Tool"] == "svn 1.14.2; starting it costs 12 ms"
    assert told["Run"].endswith("begun 2024-01-02 03:04 UTC, failed 2024-01-02 04:00 UTC: it broke")
    assert ("Data", "`quick`, 150 files, 600.0 kB, revision 100") in runs.gathered(path).method


def test_a_damaged_run_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    path = runs.written(tmp_path / "a.branchlab", runs.asked(runs.SIX[:1], operations=("get",)))
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE events SET json = json_set(json, '$.trial', 999) WHERE kind = 'trial-finished'")
    db.close()
    with store.opened(path) as record, pytest.raises(BadInput, match="damaged"):
        export.written(record, tmp_path / "a.xlsx")
    assert not (tmp_path / "a.xlsx").exists()


def test_tables_have_text_and_the_number_it_was_written_from() -> None:
    table = tables.tables(summed({DISABLED: 8.0, FULL: 2.0}))[0]
    assert [entry.text for entry in table.rows[0]] == [
        "512/1024 kbit/s",
        "0:08.00",
        "0:02.00",
        "4.00×",
        "faster",
    ]
    assert table.rows[0][2].value == 2.002
    assert table.rows[0][2].bold
    assert table.numeric == (False, True, True, True, False)


def test_parquet_says_which_package_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = runs.written(tmp_path / "a.branchlab", runs.asked(runs.SIX[:1], operations=("get",)))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with store.opened(path) as record, pytest.raises(BadInput, match="not installed") as told:
        export.written(record, tmp_path / "a.parquet")
    assert "branchlab[parquet]" in told.value.advice


def test_a_run_without_a_name_or_a_verdict_has_words_all_the_same(tmp_path: Path) -> None:
    wanted = runs.asked(runs.SIX[:1], operations=("get",), name=" \x1b[0m\n ")
    found = runs.made(tmp_path, wanted)
    assert found.name == "A run of BranchLab"
    assert replace(found, summary=replace(found.summary, verdict="")).verdict == "This run gives no verdict."
