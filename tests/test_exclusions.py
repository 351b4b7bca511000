"""A trial left out by a person: its reason stays in the run file, and its record too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_testbed import FakeTestbed, small

from lab import exclusions, runner, store
from lab.__main__ import cli
from lab.errors import BadInput
from lab.stop import Stop


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "run.branchlab"
    for _ in store.recorded(runner.run(small(attempts=5), FakeTestbed(samples=1), Stop()), file):
        pass
    return file


def kept(path: Path) -> int:
    with store.opened(path) as record:
        return next(one.trial for one in record.trials() if one.standing == "kept")


def told(path: Path, *words: str) -> dict[str, object]:
    found = CliRunner().invoke(cli, ["show", str(path), "--json", *words])
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)  # type: ignore[no-any-return]


def test_it_counts_nowhere_and_its_reason_is_kept_and_shown(path: Path) -> None:
    number = kept(path)
    before = told(path)
    with store.opened(path) as record:
        trials = record.trials()
    after = told(path, "--exclude", str(number), "the backup ran")
    assert after["excluded"] == [{"trial": number, "reason": "the backup ran"}]
    assert sum(cell["excluded"] for cell in after["cells"]) == 1  # type: ignore[attr-defined]
    assert sum(cell["kept"] for cell in after["cells"]) == 15  # type: ignore[attr-defined]
    with store.opened(path) as record:
        assert record.trials() == trials
    assert (
        f"Left out: trial {number} (the backup ran)." in CliRunner().invoke(cli, ["show", str(path)]).stdout
    )
    assert told(path, "--include", str(number)) == before


def test_what_cannot_be_left_out_is_refused(path: Path) -> None:
    for trial, reason in ((kept(path), "  "), (999, "no such trial")):
        with pytest.raises(BadInput):
            exclusions.exclude(path, trial, reason)
    with pytest.raises(BadInput, match="is not left out"):
        exclusions.include(path, kept(path))
    assert exclusions.reasons(path) == {}


def test_a_file_that_is_no_run_has_nothing_left_out(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no database")
    assert exclusions.reasons(tmp_path / "x") == exclusions.reasons(tmp_path / "none") == {}
