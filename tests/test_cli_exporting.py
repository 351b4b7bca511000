"""`branchlab export`: each file by its ending, wishes handed on, nothing written where something is wrong."""

from __future__ import annotations

import zipfile
from pathlib import Path

import export_runs as runs
import pytest
from click.testing import CliRunner, Result

from lab.__main__ import cli


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    return runs.written(folder / "a.branchlab", runs.asked(runs.SIX[:2], operations=("get", "diff")))


def called(*words: object) -> Result:
    return CliRunner().invoke(cli, ["export", *map(str, words)])


def test_one_run_into_every_form(run_file: Path, tmp_path: Path) -> None:
    names = ["a.pptx", "a.xlsx", "a.csv", "a.jsonl", "a.parquet", "a.md", "a.html", "a.svg", "a.png"]
    told = called(run_file, *(tmp_path / name for name in names), "--figures", "get-line")
    assert told.exit_code == 0, told.output
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert told.output.splitlines() == [f"written: {tmp_path / name}" for name in names]
    heads = {
        "pptx": b"PK",
        "xlsx": b"PK",
        "parquet": b"PAR1",
        "html": b"<!doctype",
        "svg": b"<svg",
        "png": b"\x89PNG",
    }
    for ending, head in heads.items():
        assert (tmp_path / f"a.{ending}").read_bytes().startswith(head)
    assert (tmp_path / "a.html").read_text("utf-8").count("<figure") == 1


def test_published_figures_are_exported_as_published(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("a.pptx", "a.xlsx", "a.html", "a.md")]
    told = CliRunner().invoke(cli, ["export", "published-2008", *map(str, names)])
    assert told.exit_code == 0, told.output
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "published: TFS Proxy efficiency test, 2008" in page
    assert "5:15.52" in page
    assert "counted where it arrives" not in page
    assert "a trial that could not prove" not in page
    told = CliRunner().invoke(cli, ["export", "published-2008", str(tmp_path / "a.csv")])
    assert (told.exit_code, "these figures have no trials" in told.output) == (2, True)


def test_several_figures_become_several_pictures(run_file: Path, tmp_path: Path) -> None:
    told = called(run_file, tmp_path / "a.svg", "--figures", "get-line,diff-line")
    assert told.exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-diff-line.svg", "a-get-line.svg"]


def test_wishes_reach_the_files(run_file: Path, tmp_path: Path) -> None:
    told = called(run_file, tmp_path / "a.csv", tmp_path / "a.pptx", "--decimal-comma", "--size", "4:3")
    assert told.exit_code == 0
    assert ";" in (tmp_path / "a.csv").read_text("utf-8-sig").splitlines()[0]
    with zipfile.ZipFile(tmp_path / "a.pptx") as package:
        assert b'cx="9144000"' in package.read("ppt/presentation.xml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["b.doc"], "the ending says nothing"),
        (["b.svg", "--figures", "moon"], "no figure `moon`"),
        (["b.pptx", "--size", "1:1"], "no slides of 1:1"),
        (["b.pptx", "--template", "none.potx"], "cannot be read"),
        (["b.csv", "--size", "4:3"], "--size says nothing to these files"),
        (["b.pptx", "--decimal-comma"], "--decimal-comma says nothing to these files"),
        (["b.xlsx", "--figures", "get-line"], "--figures says nothing to these files"),
        (["b.pptx", "--size", "4:3", "--template", "a.potx"], "a size of its own"),
        (["b.csv", "there.csv"], "already"),
        (["no/folder/a.csv"], "cannot be written"),
    ],
)
def test_what_is_wrong_is_told(
    run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.csv").write_text("mine")
    told = called(run_file, *words)
    assert told.exit_code != 0
    assert said in told.output
    assert (tmp_path / "there.csv").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["there.csv"]


def test_no_file_is_begun_where_a_later_ending_is_unknown(run_file: Path, tmp_path: Path) -> None:
    assert called(run_file, tmp_path / "a.csv", tmp_path / "b.doc").exit_code == 2
    assert not list(tmp_path.iterdir())
