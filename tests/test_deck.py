"""Slides, read back with python-pptx and from their XML: values, gaps, error bars, log base, looks, templates."""

from __future__ import annotations

import io
import math
import re
import shutil
import subprocess
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import export_runs as runs
import pptx
import pytest
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.util import Emu

from lab import palette
from lab.errors import BadInput
from lab.export import deck, deck_charts, deck_template, figures, fitting
from lab.export.contents import Contents
from lab.export.figures import Kind
from lab.model import DISABLED, ProxyState

C = {"c": "http://schemas.openxmlformats.org/drawingml/2006/chart"}
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    wanted = runs.asked(runs.SIX[:3])
    lost = runs.trials(wanted, operation="get", line=runs.SIX[1], state=ProxyState(full=90))
    return runs.made(tmp_path_factory.mktemp("deck"), wanted, lost, "\x1b[31mnull\x07 it broke")


def opened(data: bytes) -> Any:
    return pptx.Presentation(io.BytesIO(data))


def shapes(made: Any, prefix: str) -> dict[str, Any]:
    """BranchLab's charts and tables by the figure's key."""
    return {
        shape.name.removeprefix("BranchLab "): shape
        for slide in made.slides
        for shape in slide.shapes
        if shape.name.startswith("BranchLab ") and getattr(shape, prefix)
    }


def texts(made: Any) -> list[str]:
    found = []
    for slide in made.slides:
        for shape in slide.shapes:
            if shape.has_text_frame:
                found.append(shape.text_frame.text)
            if shape.has_table:
                found += [cell.text for row in shape.table.rows for cell in row.cells]
        found.append(slide.notes_slide.notes_text_frame.text)
    return found


def test_every_value_of_a_chart_is_the_figures(contents: Contents) -> None:
    made = opened(deck.written(contents, contents.figures))
    charts = shapes(made, "has_chart")
    drawn = {figure.key: figure for figure in contents.figures if not figure.empty}
    assert set(charts) == set(drawn)
    for key, figure in drawn.items():
        plot = charts[key].chart.plots[0]
        for shown, series in zip(plot.series, figure.series, strict=True):
            sign = -1 if series.left else 1
            expected = [None if p.value is None else sign * p.value for p in series.points]
            assert list(shown.values) == expected, key
            assert shown.name == series.name
    assert list(charts["get-line"].chart.plots[0].categories) == ["64/128", "128/256", "256/512"]
    levels = charts["get-traffic"].chart.plots[0].categories.flattened_labels
    assert levels[0] == ("64/128", "disabled")


def test_a_gap_is_a_gap_and_never_a_word_or_zero(contents: Contents) -> None:
    data = deck.written(contents, contents.usual)
    made = opened(data)
    chart = shapes(made, "has_chart")["get-line"].chart
    assert list(chart.plots[0].series[2].values)[1] is None
    assert chart._chartSpace.xpath(".//c:dispBlanksAs/@val") == ["gap"]
    assert any("90\xa0%\xa0full on 128/256 kbit/s (failed)" in text for text in texts(made))
    table = shapes(made, "has_table")["get-table"].table
    assert table.cell(2, 3).text == "failed"
    told = "\n".join(texts(made)).lower()
    assert not re.search(r"\b(null|nan|none|inf)\b", told.replace("none of", ""))
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        for name in package.namelist():
            if "charts/chart" in name and name.endswith(".xml"):
                assert not re.search(rb"(?i)\b(null|nan|none)\b</c:v>", package.read(name))


def test_error_bars_are_real_and_stand_in_the_data_sheet(contents: Contents) -> None:
    import openpyxl

    figure = next(f for f in contents.figures if f.key == "get-line")
    chart = shapes(opened(deck.written(contents, [figure])), "has_chart")["get-line"].chart
    book = openpyxl.load_workbook(io.BytesIO(chart.part.chart_workbook.xlsx_part.blob))
    sheet = book["Sheet1"]
    assert [cell.value for cell in sheet["A"]][1:] == list(figure.categories)
    for series, element in zip(figure.series, chart._chartSpace.xpath(".//c:ser"), strict=True):
        assert element.find("c:errBars/c:errValType", C).get("val") == "cust"
        order = [child.tag.rpartition("}")[2] for child in element]
        assert order.index("errBars") < order.index("cat")
        for side, name in (("plus", "above"), ("minus", "below")):
            bars = element.find(f"c:errBars/c:{side}", C)
            cached = {int(p.get("idx")): float(p[0].text) for p in bars.iterfind(".//c:pt", C)}
            expected = {n: v for n, p in enumerate(series.points) if (v := getattr(p, name)) is not None}
            assert cached == expected
            cells = sheet[bars.find(".//c:f", C).text.rpartition("!")[2].replace("$", "")]
            for cell, value in zip(cells, (getattr(p, name) for p in series.points), strict=True):
                assert cell[0].value == (None if value is None else pytest.approx(value, rel=1e-14))
    gap = chart._chartSpace.xpath(".//c:ser")[2].find("c:errBars/c:plus", C)
    assert [p.get("idx") for p in gap.iterfind(".//c:pt", C)] == ["0", "2"]


def test_a_log_axis_has_its_base_and_ends_at_powers_of_it(contents: Contents) -> None:
    charts = shapes(opened(deck.written(contents, contents.usual)), "has_chart")
    scaling = charts["get-line"].chart.value_axis._element.find("c:scaling", C)
    assert [child.tag.rpartition("}")[2] for child in scaling] == ["logBase", "max", "min"]
    assert scaling.find("c:logBase", C).get("val") == "2"
    assert [float(scaling.find(f"c:{end}", C).get("val")) for end in ("min", "max")] == [0.5, 64]
    bars = charts["bars-1"].chart.value_axis
    assert bars.minimum_scale == 0
    assert bars._element.find("c:scaling/c:logBase", C) is None


def test_lines_have_their_names_and_last_values_at_their_ends(contents: Contents) -> None:
    figure = next(f for f in contents.figures if f.key == "get-line")
    chart = shapes(opened(deck.written(contents, [figure])), "has_chart")["get-line"].chart
    assert not chart.has_legend
    places = []
    for series, element in zip(figure.series, chart._chartSpace.xpath(".//c:ser"), strict=True):
        order = [child.tag.rpartition("}")[2] for child in element]
        assert order.index("marker") < order.index("dLbls") < order.index("errBars") < order.index("cat")
        (label,) = element.findall("c:dLbls/c:dLbl", C)
        assert label.find("c:idx", C).get("val") == "2"
        shown = {child.tag.rpartition("}")[2]: child.get("val") for child in label}
        assert (shown["showSerName"], shown["showVal"], shown["showLegendKey"]) == ("1", "1", "1")
        value = series.points[2].value or 0.0
        share = math.log(value / 0.5) / math.log(64 / 0.5)
        moved = float(label.find("c:layout/c:manualLayout/c:y", C).get("val"))
        places.append(deck_charts._INNER[1] + deck_charts._INNER[3] * (1 - share) + moved)
    places.sort()
    assert min(b - a for a, b in pairwise(places)) > 0.05


def test_axes_have_numbers_that_the_schema_allows(contents: Contents) -> None:
    for frame in shapes(opened(deck.written(contents, contents.figures)), "has_chart").values():
        space = frame.chart._chartSpace
        numbers = [int(n) for n in space.xpath(".//c:axId/@val | .//c:crossAx/@val")]
        assert min(numbers) >= 0
        assert len(set(numbers)) == 2


def test_series_keep_colour_marker_and_pattern(contents: Contents) -> None:
    chart = shapes(opened(deck.written(contents, contents.usual)), "has_chart")["get-line"].chart
    light = palette.load("light")
    markers = ["square", "triangle", "diamond", "circle"]
    for shown, state, marker in zip(chart.plots[0].series, runs.STATES, markers, strict=True):
        look = light.state(state)
        assert str(shown.format.line.color.rgb) == look.colour.removeprefix("#")
        assert shown._element.find("c:marker/c:symbol", C).get("val") == marker
        stops = shown._element.find("c:spPr", C).findall(f"{A}ln/{A}custDash/{A}ds")
        assert [(int(s.get("d")), int(s.get("sp"))) for s in stops] == [
            (look.dash[n] * 50000, look.dash[n + 1] * 50000) for n in range(0, len(look.dash), 2)
        ]
        assert shown.smooth is False


def test_every_kind_of_figure_is_a_native_chart(contents: Contents) -> None:
    charts = shapes(opened(deck.written(contents, contents.figures)), "has_chart")
    kinds = {
        figure.kind: charts[figure.key].chart.plots[0].__class__.__name__
        for figure in contents.figures
        if figure.key in charts
    }
    assert kinds == {
        Kind.BAR: "BarPlot",
        Kind.LINE: "LinePlot",
        Kind.STACKED: "BarPlot",
        Kind.SCATTER: "XyPlot",
    }


def test_every_slide_has_title_notes_and_alternative_text(contents: Contents) -> None:
    made = opened(deck.written(contents, contents.usual))
    for slide in made.slides:
        assert slide.shapes.title.text
        assert (
            "seed 2008" in slide.notes_slide.notes_text_frame.text
            or "?" in slide.notes_slide.notes_text_frame.text
        )
        for shape in slide.shapes:
            assert not (shape.is_placeholder and shape.has_text_frame and not shape.text_frame.text)
            if shape.has_chart or shape.has_table:
                assert shape._element.xpath(".//p:cNvPr/@descr")[0]
    assert made.slides[0].shapes.title.text == "Do we need the proxy?"
    assert made.slides[1].shapes.title.text == contents.verdict
    assert "Method and versions" in made.slides[len(made.slides) - 1].shapes.title.text


@pytest.mark.parametrize(("size", "width"), [("16:9", 1280), ("4:3", 960)])
def test_everything_stands_on_the_slide(contents: Contents, size: str, width: int) -> None:
    made = opened(deck.written(contents, contents.usual, size=size))
    assert (made.slide_width, made.slide_height) == (width * 9525, 720 * 9525)
    for slide in made.slides:
        for shape in slide.shapes:
            assert 0 <= shape.left <= shape.left + shape.width <= made.slide_width + 1, shape.name
            assert 0 <= shape.top <= shape.top + shape.height <= made.slide_height + 1, shape.name


def test_other_sizes_are_refused(contents: Contents) -> None:
    with pytest.raises(BadInput, match="no slides of 3:2"):
        deck.written(contents, (), size="3:2")


def company(path: Path, *, template: bool) -> Path:
    """A template as companies have them: a slide of its own, another font, another size, no *title only*."""
    made = pptx.Presentation()
    made.slide_width, made.slide_height = Emu(12192000), Emu(6858000)
    made.slide_layouts.remove(made.slide_layouts[5])
    part = made.slide_master.part.part_related_by(
        "http://schemas.openxmlformats.org/officeDocument/2006/relationships/theme"
    )
    part._blob = part.blob.replace(b"Calibri", b"Company Sans")
    made.slides.add_slide(made.slide_layouts[0]).shapes.title.text = "ours"
    made.save(str(path))
    if template:
        with zipfile.ZipFile(path) as package:
            kept = {item: package.read(item) for item in package.namelist()}
        types = kept["[Content_Types].xml"]
        kept["[Content_Types].xml"] = types.replace(b"presentation.main+xml", b"template.main+xml")
        with zipfile.ZipFile(path, "w") as package:
            for name, data in kept.items():
                package.writestr(name, data)
    return path


@pytest.mark.parametrize("ending", ["pptx", "potx"])
def test_a_companys_template_keeps_its_layouts_and_theme(
    contents: Contents, tmp_path: Path, ending: str
) -> None:
    path = company(tmp_path / f"company.{ending}", template=ending == "potx")
    data = deck.written(contents, contents.usual, template=path)
    made = opened(data)
    assert "ours" not in texts(made)
    assert made.slides[2].slide_layout.name == "Title and Content"
    chart = next(shape for shape in made.slides[2].shapes if shape.has_chart)
    assert chart.is_placeholder
    assert chart.placeholder_format.type in (PP_PLACEHOLDER.OBJECT, PP_PLACEHOLDER.CHART)
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        assert b"presentation.main+xml" in package.read("[Content_Types].xml")
        assert b"Company Sans" in package.read("ppt/theme/theme1.xml")
        assert len([n for n in package.namelist() if n.startswith("ppt/slides/slide")]) == len(made.slides)


@pytest.mark.parametrize("junk", [b"", b"PK\x03\x04 no zip", b"<html>"])
def test_a_template_that_is_none_is_refused(contents: Contents, tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "a.potx"
    path.write_bytes(junk)
    with pytest.raises(BadInput, match="no PowerPoint"):
        deck.written(contents, (), template=path)
    with pytest.raises(BadInput, match="cannot be read"):
        deck.written(contents, (), template=tmp_path / "none.pptx")


@pytest.mark.parametrize(
    ("name", "direction"),
    [("a" * 300, None), ("我们需要代理服务器吗？" * 20, None), ("هل نحتاج إلى وكيل؟ " * 5, "1")],
)
def test_long_and_foreign_titles_fit(tmp_path: Path, name: str, direction: str | None) -> None:
    contents = runs.made(tmp_path, runs.asked(runs.SIX[:1], operations=("get",), name=name))
    title = opened(deck.written(contents, ())).slides[0].shapes.title
    own = title.text_frame.paragraphs[0].runs[0].font.size
    size = 34 if own is None else own.pt / 0.75
    assert fitting.breadth(title.text) * size / 1152 <= 150 / size / 1.2
    assert title.text_frame.paragraphs[0]._p.pPr is None or direction
    assert (title._element.xpath(".//a:pPr/@rtl") or [None])[0] == direction


def test_no_kept_attempt_is_said_and_drawn_by_nothing(tmp_path: Path) -> None:
    wanted = runs.asked(runs.SIX[:2], operations=("get",))
    contents = runs.made(tmp_path, wanted, runs.trials(wanted))
    made = opened(deck.written(contents, figures.chosen(contents.figures, "get-line")))
    assert not shapes(made, "has_chart")
    assert "No kept attempt to draw." in texts(made)


def test_markers_and_bases() -> None:
    assert set(deck_charts.MARKERS) == {"square", "down", "diamond", "disc", *palette.OTHER_MARKERS}
    assert deck_charts.log_base([1.0, 200.0]) == 2
    assert deck_charts.log_base([0.1, 200.0]) == 10


def test_the_theme_has_the_palette_in_the_order_of_the_look() -> None:
    made = deck_template.own()
    part = made.slide_master.part.part_related_by(
        "http://schemas.openxmlformats.org/officeDocument/2006/relationships/theme"
    )
    colours = re.findall(r'<a:(\w+)><a:srgbClr val="(\w+)"/>', part.blob.decode())
    light = palette.load("light")
    assert dict(colours)["dk1"] == light.tokens["text"].removeprefix("#")
    assert dict(colours)["accent1"] == light.state(DISABLED).colour.removeprefix("#")
    assert dict(colours)["accent6"] == light.tokens["accent"].removeprefix("#")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason="no LibreOffice here")
def test_another_program_opens_it(contents: Contents, tmp_path: Path) -> None:
    (tmp_path / "a.pptx").write_bytes(deck.written(contents, contents.figures))
    done = subprocess.run(
        [
            "soffice",
            "--headless",
            f"-env:UserInstallation=file://{tmp_path}/home",
            "--convert-to",
            "pdf",
            "a.pptx",
        ],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
