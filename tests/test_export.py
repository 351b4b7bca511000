"""What other programs read: one row per trial, plain numbers, UTC, nothing over another file."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_testbed import FakeTestbed, small

from lab import export, runner, store
from lab.errors import BadInput, LabError
from lab.export import trials
from lab.stop import Stop


@pytest.fixture
def record(tmp_path: Path) -> Iterator[store.Record]:
    bed = FakeTestbed(failing={9: "=HYPERLINK(1)\x1b[31m\x07, she said"}, void={6: "touched"})
    path = tmp_path / "a.branchlab"
    list(store.recorded(runner.run(small(), bed, Stop(), run_id="r1"), path))
    with store.opened(path) as opened:
        yield opened


def test_csv_has_a_row_per_trial_with_units_in_the_heads(record: store.Record, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    export.written(record, path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    results = record.trials()
    assert [int(row["trial"]) for row in rows] == [result.trial for result in results]
    for row, result in zip(rows, results, strict=True):
        assert row["wall_s"] == ("" if result.wall_s is None else repr(result.wall_s))
        assert row["standing"] == result.standing.value
    get = next(row for row in rows if row["operation"] == "get" and row["state"] == "disabled")
    assert get["line"] == "512/1024 kbit/s"
    assert (get["upload_bit_per_s"], get["download_bit_per_s"]) == ("512000", "1024000")
    assert (get["queue_upload_bytes"], get["queue_download_bytes"]) == ("64000", "128000")
    assert get["server>client_bytes"] == "620000"
    assert get["direct_bytes"] == "620000"
    assert get["ended_utc"].startswith("2024-01-02 03:")
    assert rows[5]["proofs_failed"] == "quiet: touched"


def test_what_a_host_said_is_no_formula_and_no_control_character(
    record: store.Record, tmp_path: Path
) -> None:
    export.written(record, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        reason = list(csv.DictReader(file))[8]["reason"]
    assert reason == "client: =HYPERLINK(1), she said"
    assert trials._cell("=1+1") == "'=1+1"
    assert trials._cell(-1.5) == "-1.5"


def test_json_lines_are_the_same_rows_with_null_for_no_value(record: store.Record, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    export.written(record, path)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows == list(trials.rows(record))
    assert rows[8]["wall_s"] is None
    assert rows[0]["wall_s"] == record.trials()[0].wall_s


def test_no_file_is_written_over_unless_asked(record: store.Record, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("mine")
    with pytest.raises(BadInput, match="already"):
        export.written(record, path)
    assert path.read_text() == "mine"
    export.written(record, path, overwrite=True)
    assert path.read_text("utf-8").startswith("run,experiment,trial,")


def test_unknown_endings_and_missing_folders_are_told(record: store.Record, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"ending in \.csv or \.jsonl"):
        export.written(record, tmp_path / "a.xls")
    with pytest.raises(LabError, match="cannot be written"):
        export.written(record, tmp_path / "none" / "a.csv")


@pytest.mark.parametrize(
    "text", ["2024-01-02T04:04:05.678+01:00", "2024-01-02T03:04:05.678Z", "2024-01-02T03:04:05.678"]
)
def test_times_are_utc_without_a_zone(text: str) -> None:
    assert trials.utc(text) == "2024-01-02 03:04:05.678"


@pytest.mark.parametrize(("key", "value"), [("$.trial", 999), ("$.at", "junk")])
def test_a_trial_that_means_nothing_is_damage(
    record: store.Record, tmp_path: Path, key: str, value: object
) -> None:
    db = sqlite3.connect(record.path, isolation_level=None)
    change = "UPDATE events SET json = json_set(json, ?, ?) WHERE kind = 'trial-finished'"
    db.execute(change, (key, value))
    db.close()
    with pytest.raises(BadInput, match=r"a\.branchlab: it is damaged: its trial"):
        export.written(record, tmp_path / "a.csv")
    assert not (tmp_path / "a.csv").exists()
