"""What other programs read: one row per trial, plain numbers, UTC, nothing over another file."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_testbed import FakeTestbed, small

from lab import export, rows, runner, store
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
        read = list(csv.DictReader(file))
    results = record.trials()
    assert [int(row["trial"]) for row in read] == [result.trial for result in results]
    for row, result in zip(read, results, strict=True):
        assert row["wall_s"] == ("" if result.wall_s is None else repr(result.wall_s))
        assert row["standing"] == result.standing.value
    get = next(row for row in read if row["operation"] == "get" and row["state"] == "disabled")
    assert get["line"] == "512/1024 kbit/s"
    assert (get["upload_bit_per_s"], get["download_bit_per_s"]) == ("512000", "1024000")
    assert (get["queue_upload_bytes"], get["queue_download_bytes"]) == ("64000", "128000")
    assert get["server>client_bytes"] == "620000"
    assert get["direct_bytes"] == "620000"
    assert get["ended_utc"].startswith("2024-01-02 03:")
    assert read[5]["proofs_failed"] == "quiet: touched"


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
    read = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert read == list(trials.rows(record))
    assert read[8]["wall_s"] is None
    assert read[0]["wall_s"] == record.trials()[0].wall_s


def test_no_file_is_written_over_unless_asked(record: store.Record, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("mine")
    with pytest.raises(BadInput, match="already"):
        export.written(record, path)
    assert path.read_text() == "mine"
    export.written(record, path, overwrite=True)
    assert path.read_text("utf-8").startswith("run,experiment,trial,")


def test_unknown_endings_and_missing_folders_are_told(record: store.Record, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"unknown kind of file `\.xls`"):
        export.written(record, tmp_path / "a.xls")
    with pytest.raises(LabError, match="cannot be written"):
        export.written(record, tmp_path / "none" / "a.csv")


def test_a_comma_for_decimals_is_a_choice_whatever_the_system_says(
    record: store.Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    wall_s = record.trials()[0].wall_s
    export.written(record, tmp_path / "a.csv")
    assert f",{wall_s!r}," in (tmp_path / "a.csv").read_text("utf-8")
    export.written(record, tmp_path / "b.csv", wishes=export.Wishes(decimal_comma=True))
    data = (tmp_path / "b.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfrun;experiment;")
    with (tmp_path / "b.csv").open(encoding="utf-8-sig", newline="") as file:
        first = next(csv.DictReader(file, delimiter=";"))
    assert first["wall_s"] == repr(wall_s).replace(".", ",")
    assert first["ended_utc"].startswith("2024-01-02 03:")


def test_parquet_has_the_same_rows_with_their_types(record: store.Record, tmp_path: Path) -> None:
    import pandas as pd

    export.written(record, tmp_path / "a.parquet")
    read = pd.read_parquet(tmp_path / "a.parquet")
    assert list(read["trial"]) == [result.trial for result in record.trials()]
    assert str(read["ended_utc"].dt.tz) == "UTC"
    assert read["wall_s"].dtype == float
    assert read["wall_s"].isna().sum() == 1


def test_nothing_is_written_where_one_of_several_files_is_there(record: store.Record, tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text("mine")
    wishes = export.Wishes(figures="all")
    names = export.written(record, tmp_path / "b.svg", wishes=wishes)
    assert {name.name for name in names} >= {"b-bars.svg", "b-get-traffic.svg"}
    names[-1].write_text("mine")
    names[0].unlink()
    with pytest.raises(BadInput, match="already"):
        export.written(record, tmp_path / "b.svg", wishes=wishes)
    assert not names[0].exists()
    assert names[-1].read_text() == "mine"


@pytest.mark.parametrize(
    "text", ["2024-01-02T04:04:05.678+01:00", "2024-01-02T03:04:05.678Z", "2024-01-02T03:04:05.678"]
)
def test_times_are_utc_without_a_zone(text: str) -> None:
    assert rows.utc_text(text) == "2024-01-02 03:04:05.678"


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
