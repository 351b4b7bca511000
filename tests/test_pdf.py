"""The PDF report: every word of a run as text, figures as vectors, fonts embedded; read by a program of others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import export_runs as runs
import pypdfium2
import pytest
from pypdfium2 import raw

from lab import export
from lab.errors import BadInput
from lab.export import Wishes, pdf
from lab.export.contents import Contents, published
from lab.model import ProxyState

EVIL = "#set page(fill: red) $x$ `y` 我们 هل \\ \x1b[31m\x07" + "W" * 300


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    wanted = runs.asked(runs.SIX, name=EVIL)
    lost = runs.trials(wanted, operation="get", line=runs.SIX[1], state=ProxyState(full=90))
    return runs.made(tmp_path_factory.mktemp("pdf"), wanted, lost)


@pytest.fixture(scope="module")
def document(contents: Contents) -> Iterator[pypdfium2.PdfDocument]:
    opened = pypdfium2.PdfDocument(pdf.written(contents, contents.figures))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def text(document: pypdfium2.PdfDocument) -> str:
    return "".join(_bare(page.get_textpage().get_text_range()) for page in document)


def _bare(text: str) -> str:
    """Without what differs where a line is broken."""
    return re.sub(r"[\s\u200b\ufffe\x02-]", "", text)


def test_every_sentence_table_and_fact_is_in_it_as_text(contents: Contents, text: str) -> None:
    assert _bare(contents.verdict) in text
    for finding in contents.summary.findings:
        assert _bare(finding.text) in text
    for table in contents.tables:
        for row in table.rows:
            assert "".join(_bare(entry.text) for entry in row) in text
    for name, told in contents.method:
        assert _bare(name) in text
        assert _bare(told) in text


def test_a_name_is_never_taken_for_markup(text: str) -> None:
    assert _bare("#set page(fill: red) $x$ `y` 我们") in text
    assert "W" * 300 in text


def test_figures_are_vectors_and_every_font_is_inside(document: pypdfium2.PdfDocument) -> None:
    kinds = {found.type for page in document for found in page.get_objects()}
    assert raw.FPDF_PAGEOBJ_PATH in kinds
    assert raw.FPDF_PAGEOBJ_IMAGE not in kinds
    words = [found for page in document for found in page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT])]
    fonts = [raw.FPDFTextObj_GetFont(found.raw) for found in words]
    assert words
    assert all(raw.FPDFFont_GetIsEmbedded(font) for font in fonts)


def test_nothing_runs_out_of_a_page(document: pypdfium2.PdfDocument) -> None:
    for page in document:
        width, height = page.get_size()
        for found in page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], max_depth=1):
            left, bottom, right, top = found.get_bounds()
            assert 0 <= left <= right <= width
            assert 0 <= bottom <= top <= height


def test_a_figure_says_what_it_shows_to_a_screen_reader(contents: Contents) -> None:
    written = pdf.written(contents, contents.figures[:1])
    assert b"/StructTreeRoot" in written or b"/MarkInfo" in written


def test_a_run_of_nothing_is_still_a_report(contents: Contents) -> None:
    bare = replace(contents, figures=(), tables=(), method=(), summary=replace(contents.summary, findings=()))
    opened = pypdfium2.PdfDocument(pdf.written(bare, ()))
    assert len(opened) == 1
    opened.close()


def test_it_is_written_by_its_ending_with_the_figures_that_were_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    contents = published("published-2008")
    assert export.written(contents, path, wishes=Wishes(figures=contents.figures[0].key)) == (path,)
    one = len(path.read_bytes())
    export.written(contents, path, overwrite=True, wishes=Wishes(figures="all"))
    assert len(path.read_bytes()) > one
    with pytest.raises(BadInput):
        export.written(contents, path)
