"""An edited deck with new numbers: charts and tables of BranchLab change, and nothing else does."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import export_runs as runs
import pptx
import pytest
from click.testing import CliRunner
from pptx.util import Emu

from lab.__main__ import cli
from lab.errors import BadInput
from lab.export import deck, deck_charts, deck_update, figures
from lab.export.contents import Contents
from lab.model import ProxyState

C = {"c": "http://schemas.openxmlformats.org/drawingml/2006/chart"}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    return runs.made(tmp_path_factory.mktemp("old"), runs.asked(runs.SIX[:3], operations=("get",)))


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    wanted = runs.asked(runs.SIX[:4], operations=("get",), seed=7)
    lost = runs.trials(wanted, operation="get", line=runs.SIX[1], state=ProxyState(full=90))
    return runs.made(tmp_path_factory.mktemp("new"), wanted, lost)


def named(made: Any) -> dict[str, Any]:
    return {
        s.name.removeprefix("BranchLab "): s
        for slide in made.slides
        for s in slide.shapes
        if "BranchLab " in s.name
    }


def edited(contents: Contents, path: Path) -> Path:
    """A deck in which somebody changed a title, moved a chart, wrote a text and added a chart of their own."""
    made = pptx.Presentation(io.BytesIO(deck.written(contents, contents.figures)))
    slide = next(slide for slide in made.slides if any(s.name == "BranchLab get-line" for s in slide.shapes))
    slide.shapes.title.text = "Our own words"
    named(made)["get-line"].left = Emu(123456)
    slide.shapes.add_textbox(0, 0, 914400, 914400).text_frame.text = "ours"
    figure = figures.chosen(contents.figures, "bars-1")[0]
    box = (0, 0, 914400, 914400)
    slide.shapes.add_chart(deck_charts.kind(figure), *box, deck_charts.data(figure)).name = "Chart of ours"
    made.save(str(path))
    return path


def test_charts_have_the_new_numbers_and_all_else_stays(old: Contents, new: Contents, tmp_path: Path) -> None:
    path = edited(old, tmp_path / "a.pptx")
    told = deck_update.update(new, path)
    made = pptx.Presentation(str(path))
    shapes = named(made)
    for figure in new.figures:
        if figure.key not in shapes:
            continue
        for shown, series in zip(shapes[figure.key].chart.plots[0].series, figure.series, strict=True):
            sign = -1 if series.left else 1
            assert list(shown.values) == [None if p.value is None else sign * p.value for p in series.points]
    chart = shapes["get-line"].chart
    assert shapes["get-line"].left == 123456
    for element in chart._chartSpace.xpath(".//c:ser"):
        order = [child.tag.rpartition("}")[2] for child in element]
        assert order.count("errBars") == order.count("dLbls") == 1
        assert order.index("dLbls") < order.index("errBars") < order.index("cat")
    assert len(chart._chartSpace.xpath(".//c:logBase")) == 1
    assert len(list(chart._chartSpace.iter("{*}custDash"))) == 3
    texts = [s.text_frame.text for slide in made.slides for s in slide.shapes if s.has_text_frame]
    assert "Our own words" in texts
    assert "ours" in texts
    note = shapes["get-line note"].text_frame.text
    assert note.startswith("Median of 3 kept attempts; bars: ")
    assert note.endswith(". Gap: 90\xa0%\xa0full on 128/256 kbit/s (failed).")
    theirs = next(s for slide in made.slides for s in slide.shapes if s.name == "Chart of ours")
    assert next(iter(theirs.chart.plots[0].series)).values[0] == old.figures[0].series[0].points[0].value
    assert any(
        "chart get-line is up to date; its title is yours, and this run says: " in line for line in told
    )


def test_tables_grow_and_are_refilled(old: Contents, new: Contents, tmp_path: Path) -> None:
    path = edited(old, tmp_path / "a.pptx")
    deck_update.update(new, path)
    grid = named(pptx.Presentation(str(path)))["get-table"].table
    table = new.table("get-table")
    assert table is not None
    assert [[cell.text for cell in row.cells] for row in grid.rows][1:] == [
        [e.text for e in r] for r in table.rows
    ]
    assert grid.cell(2, 3).text == "failed"
    assert grid.cell(1, 4).text_frame.paragraphs[0].runs[0].font.bold is True
    back = deck_update.update(old, path)
    assert "table get-table: up to date" in back
    assert len(named(pptx.Presentation(str(path)))["get-table"].table.rows) == 4


def test_twice_is_the_same_as_once(old: Contents, new: Contents, tmp_path: Path) -> None:
    path = edited(old, tmp_path / "a.pptx")
    deck_update.update(new, path)
    before = named(pptx.Presentation(str(path)))["get-line"].chart._chartSpace.xml
    deck_update.update(new, path)
    assert named(pptx.Presentation(str(path)))["get-line"].chart._chartSpace.xml == before


def test_what_the_run_does_not_have_is_left_and_told(old: Contents, tmp_path: Path) -> None:
    path = edited(old, tmp_path / "a.pptx")
    (tmp_path / "run").mkdir()
    other = runs.made(tmp_path / "run", runs.asked(runs.SIX[:1], operations=("diff",)))
    values = list(named(pptx.Presentation(str(path)))["get-line"].chart.plots[0].series[0].values)
    told = deck_update.update(other, path)
    assert any("nothing for the chart get-line: it was left as it was" in line for line in told)
    assert "table get-table: this run has none: it was left as it was" in told
    assert list(named(pptx.Presentation(str(path)))["get-line"].chart.plots[0].series[0].values) == values


def test_a_deck_without_anything_of_ours_is_refused(old: Contents, tmp_path: Path) -> None:
    path = tmp_path / "a.pptx"
    pptx.Presentation().save(str(path))
    before = path.read_bytes()
    with pytest.raises(BadInput, match="no chart or table of BranchLab"):
        deck_update.update(old, path)
    assert path.read_bytes() == before


def test_the_command_says_what_it_did(old: Contents, tmp_path: Path) -> None:
    path = edited(old, tmp_path / "a.pptx")
    run = str(runs.written(tmp_path / "a.branchlab", runs.asked(runs.SIX[:3], operations=("get",))))
    told = CliRunner().invoke(cli, ["export", run, str(path), "--update"])
    assert told.exit_code == 0, told.output
    assert f"{path}: table get-table: up to date" in told.output
    for words in (
        [str(path), "--update", "--figures", "all"],
        ["a.xlsx", "--update"],
        ["none.pptx", "--update"],
    ):
        assert CliRunner().invoke(cli, ["export", run, *words]).exit_code == 2
