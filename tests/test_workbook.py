"""The workbook for Excel, read back with openpyxl: every value of the run, dates in UTC, safe names, native charts."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import export_runs as runs
import openpyxl
import pytest

from lab import rows
from lab.export import workbook, workbook_charts
from lab.export.contents import Contents
from lab.export.figures import Kind
from lab.model import ProxyState

C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
WHY = "=HYPERLINK(1) \x1b[31mnull\x07 \x0b it broke"


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    wanted = runs.asked(
        runs.SIX[:3], operations=("get", "check-out", "history"), name="/".join(["long name"] * 9)
    )
    lost = runs.trials(wanted, operation="get", line=runs.SIX[1], state=ProxyState(full=90))
    return runs.made(tmp_path_factory.mktemp("book"), wanted, lost, WHY)


@pytest.fixture(scope="module")
def data(contents: Contents) -> bytes:
    return workbook.written(contents)


@pytest.fixture(scope="module")
def book(data: bytes) -> Any:
    return openpyxl.load_workbook(io.BytesIO(data))


def table(sheet: Any) -> list[dict[str, Any]]:
    heads = [cell.value for cell in sheet[1]]
    return [dict(zip(heads, (cell.value for cell in row), strict=True)) for row in sheet.iter_rows(min_row=2)]


def test_every_trial_is_there_with_numbers_and_dates(contents: Contents, book: Any) -> None:
    read = table(book["Trials"])
    expected = list(rows.trials(contents.summary.started, contents.results))
    assert len(read) == len(expected)
    for found, wished in zip(read, expected, strict=True):
        for name, value in wished.items():
            if name == "ended_utc":
                at = found["ended (UTC)"]
                assert isinstance(at, datetime)
                assert abs((at - rows.utc(str(value))).total_seconds()) < 0.001
            elif name == "reason":
                continue
            elif isinstance(value, float):
                assert found[name] == pytest.approx(value, rel=1e-14)
            else:
                assert found[name] == (None if value == "" else value), name
    assert (
        "yyyy"
        in book["Trials"].cell(2, [c.value for c in book["Trials"][1]].index("ended (UTC)") + 1).number_format
    )


def test_what_hosts_said_is_clean_text_and_no_formula(book: Any, data: bytes) -> None:
    reasons = {row["reason"] for row in table(book["Trials"]) if row["reason"]}
    assert reasons == {"client: =HYPERLINK(1) null  it broke"}
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        for name in package.namelist():
            assert b"<f>" not in package.read(name) or "worksheets" not in name
            if name.endswith((".xml", ".rels")):
                ET.fromstring(package.read(name))  # noqa: S314 - our own
    told = [str(c.value) for sheet in book for row in sheet.iter_rows() for c in row if c.value is not None]
    assert not [text for text in told if re.fullmatch(r"(?i)null|nan|none|inf|#\w+[!?]?", text)]
    assert not [text for text in told if re.search(r"[\x00-\x08\x0b-\x1f]|_x00", text)]


def test_every_cell_of_the_run_is_there_and_gaps_are_empty(contents: Contents, book: Any) -> None:
    read = table(book["Cells"])
    for found, cell in zip(read, contents.summary.cells, strict=True):
        assert found["median (s)"] == (
            None if cell.median_s is None else pytest.approx(cell.median_s, rel=1e-14)
        )
        assert found["kept"] == cell.kept
        assert found["server>client (bytes)"] == cell.bytes["server>client"]
        assert found["verdict"] == cell.verdict
    lost = next(row for row in read if row["median (s)"] is None)
    assert (lost["missing"], lost["error bar from (s)"]) == ("failed", None)
    times = next(row for row in table(book["Times"]) if row["missing"])
    assert times["missing"] == "90\xa0%\xa0full: failed"
    assert times["90\xa0%\xa0full (s)"] is None


def test_tables_have_frozen_heads_and_filters(book: Any) -> None:
    for name in ("Times", "Cells", "Trials", "Lines", "Findings", "Method"):
        sheet = book[name]
        assert sheet.freeze_panes == "B2"
        assert sheet.auto_filter.ref == f"A1:{sheet.cell(1, sheet.max_column).coordinate[:-1]}{sheet.max_row}"


def test_names_of_sheets_are_such_as_excel_takes(book: Any) -> None:
    names = book.sheetnames
    assert "History (operation)" in names
    assert names[:3] == ["Summary", "Times", "Get"]
    assert workbook.sheet_name("x" * 60, ()) == "x" * 31
    assert workbook.sheet_name("a/b:c*d?[e]\\f'", ()) == "a b c d  e  f"
    assert workbook.sheet_name("Get", ["get", "GET 2"]) == "Get 3"
    assert workbook.sheet_name("x" * 60, ["x" * 31]) == f"{'x' * 29} 2"
    assert workbook.sheet_name("\x07''", ()) == "Sheet"
    assert workbook.sheet_name("History", ()) != "History"


def chart_files(data: bytes) -> list[ET.Element]:
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        found = sorted(
            (n for n in package.namelist() if "charts/chart" in n), key=lambda n: int(re.sub(r"\D", "", n))
        )
        return [ET.fromstring(package.read(name)) for name in found]  # noqa: S314


def test_charts_are_native_and_draw_the_cells_beside_them(contents: Contents, data: bytes, book: Any) -> None:
    figures = [figure for figure in contents.figures if not figure.empty]
    drawn = chart_files(data)
    assert len(drawn) == len(figures)
    kinds = {
        Kind.BAR: "barChart",
        Kind.STACKED: "barChart",
        Kind.LINE: "lineChart",
        Kind.SCATTER: "scatterChart",
    }
    for figure in figures:
        root = next(
            r
            for r in drawn
            if "".join(t.text or "" for t in r.find(f".//{C}title").iter() if t.text) == figure.title
        )
        assert root.find(f".//{C}{kinds[figure.kind]}") is not None
        assert (
            root.find(f".//{C}dispBlanksAs") is None or root.find(f".//{C}dispBlanksAs").get("val") == "gap"
        )
        for series, element in zip(figure.series, root.iter(f"{C}ser"), strict=True):
            where = element.find(f"{C}yVal//{C}f" if figure.kind is Kind.SCATTER else f"{C}val//{C}f").text
            name, _, area = where.rpartition("!")
            cells = book[name.strip("'")][area.replace("$", "")]
            values = [row[0].value for row in (cells if isinstance(cells, tuple) else ((cells,),))]
            sign = -1 if series.left else 1
            expected = [None if p.value is None else pytest.approx(sign * p.value) for p in series.points]
            assert values == expected, figure.key


def test_error_bars_log_base_markers_and_colours(contents: Contents, data: bytes, book: Any) -> None:
    root = next(r for r in chart_files(data) if r.find(f".//{C}lineChart") is not None)
    figure = next(figure for figure in contents.figures if figure.kind is Kind.LINE)
    assert root.find(f".//{C}valAx/{C}scaling/{C}logBase").get("val") == "2"
    for series, element in zip(figure.series, root.iter(f"{C}ser"), strict=True):
        for side, name in (("plus", "above"), ("minus", "below")):
            where = element.find(f"{C}errBars/{C}{side}/{C}numRef/{C}f").text
            sheet, _, area = where.rpartition("!")
            cells = [row[0].value for row in book[sheet.strip("'")][area.replace("$", "")]]
            lengths = [getattr(point, name) for point in series.points]
            assert cells == [None if length is None else pytest.approx(length) for length in lengths]
    markers = [e.find(f"{C}marker/{C}symbol").get("val") for e in root.iter(f"{C}ser")]
    assert markers == ["square", "triangle", "diamond", "circle"]
    text = ET.tostring(root, "unicode")
    assert all(series.look.colour.removeprefix("#") in text for series in figure.series)


def test_the_numbers_of_a_figure(contents: Contents) -> None:
    figure = next(figure for figure in contents.figures if figure.key == "get-traffic")
    found = dict(workbook_charts.columns(figure))
    assert found["line"][:5] == ["64/128", None, None, None, "128/256"]
    assert found["proxy → client (kB)"][1] == -figure.series[0].points[1].value


def test_a_run_of_which_nothing_is_left(tmp_path: Path) -> None:
    wanted = runs.asked(runs.SIX[:2], operations=("get",))
    contents = runs.made(tmp_path, wanted, runs.trials(wanted))
    book = openpyxl.load_workbook(io.BytesIO(workbook.written(contents)))
    assert len(table(book["Trials"])) == len(contents.results)
    assert "Get" not in book.sheetnames


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason="no LibreOffice here")
def test_another_program_opens_it(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(data)
    done = subprocess.run(
        ["soffice", "--headless", f"-env:UserInstallation=file://{tmp_path}/home", "--convert-to", "pdf", "a.xlsx"],
        cwd=tmp_path, capture_output=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
