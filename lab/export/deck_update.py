"""A deck that somebody has edited since, with this run's numbers: only BranchLab's own charts and tables change."""

from __future__ import annotations

import copy
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lab.errors import BadInput
from lab.export import deck, deck_charts, deck_template, files, fitting
from lab.export.contents import Contents
from lab.export.figures import Figure
from lab.export.slides import CHART_PX, MARK, NOTE, PT, beneath, described, inked
from lab.export.tables import Entry, Table

_PAGE = re.compile(r" \d+$")


def updated(contents: Contents, path: Path) -> tuple[bytes, tuple[str, ...]]:
    """The deck with the numbers of `contents`, and what was done and what is left to a person, line by line.

    Charts and tables are known by the names that BranchLab gave them; titles, notes, places and everything else
    stay as they are. Raises BadInput for a file that is no deck, or has nothing of BranchLab's in it.
    """
    made = deck_template.presentation(path)
    figures = {figure.key: figure for figure in contents.figures}
    tables = {table.key: table for table in (*contents.tables, deck.appendix(contents))}
    pages: dict[str, list[Any]] = {}
    told = []
    for number, slide, shape in _ours(made):
        key = shape.name.removeprefix(MARK)
        if shape.has_table:
            pages.setdefault(_PAGE.sub("", key), []).append(shape)
        else:
            told.append(f"slide {number}: {_chart(shape, figures.get(key), slide)}")
            _note(slide, figures.get(key))
    for key, shapes in pages.items():
        told.append(f"table {key}: {_table(shapes, tables.get(key))}")
    if not told:
        raise BadInput(
            f"{path}: there is no chart or table of BranchLab in it",
            advice="Write a new deck without --update. They are known by their names in PowerPoint's selection pane.",
        )
    told.append("titles, answers and notes are yours and may still tell of the run before: look at them")
    file = io.BytesIO()
    made.save(file)
    return file.getvalue(), tuple(told)


def update(contents: Contents, path: Path) -> tuple[str, ...]:
    """Update the deck at `path` in its place; what was done, line by line. Raises as `updated` does, and LabError."""
    data, told = updated(contents, path)
    files.put(data, path, overwrite=True)
    return told


def _ours(made: Any) -> Iterator[tuple[int, Any, Any]]:
    for number, slide in enumerate(made.slides, 1):
        for shape in slide.shapes:
            if shape.name.startswith(MARK) and (shape.has_chart or shape.has_table):
                yield number, slide, shape


def _chart(shape: Any, figure: Figure | None, slide: Any) -> str:
    if figure is None or figure.empty:
        return f"this run has nothing for the chart {shape.name.removeprefix(MARK)}: it was left as it was"
    chart = shape.chart
    size = chart.font.size
    for element in chart._chartSpace.xpath(".//c:ser/c:errBars | .//c:ser/c:dLbls | .//c:scaling/c:logBase"):
        element.getparent().remove(element)
    for element in [*chart._chartSpace.iter("{*}custDash"), *chart._chartSpace.iter("{*}prstDash")]:
        element.getparent().remove(element)
    chart.replace_data(deck_charts.data(figure))
    deck_charts.dressed(chart, figure, size.pt if size is not None else CHART_PX * PT)
    described(shape, figure.alternative)
    title = slide.shapes.title.text_frame.text if slide.shapes.title is not None else ""
    if title and title != figure.title:
        return f"chart {figure.key} is up to date; its title is yours, and this run says: {figure.title}"
    return f"chart {figure.key} is up to date"


def _note(slide: Any, figure: Figure | None) -> None:
    """The text under a chart says what its points are, and what is missing in it."""
    if figure is None or figure.empty:
        return
    for shape in slide.shapes:
        if shape.name == f"{MARK}{figure.key}{NOTE}" and shape.has_text_frame:
            paragraph = shape.text_frame.paragraphs[0]
            run = paragraph.runs[0] if paragraph.runs else paragraph.add_run()
            run.text = files.clean(beneath(figure))


def _table(shapes: Sequence[Any], table: Table | None) -> str:
    if table is None:
        return "this run has none: it was left as it was"
    heads = fitting.head_row(table)
    room = [len(shape.table.rows) - len(heads) for shape in shapes]
    if any(len(shape.table.columns) != len(table.heads) for shape in shapes):
        return f"it has {len(table.heads)} columns now: it was left as it was; write a new deck for it"
    if sum(room) != len(table.rows):
        if len(shapes) > 1:
            return f"it has {len(table.rows)} rows now: it was left as it was; write a new deck for it"
        _resize(shapes[0].table, len(heads) + len(table.rows))
        room = [len(table.rows)]
    first = 0
    for shape, count in zip(shapes, room, strict=True):
        entries = [*heads, *table.rows[first : first + count]]
        first += count
        for row, texts in zip(shape.table.rows, entries, strict=True):
            for cell, entry in zip(row.cells, texts, strict=True):
                _said(cell, entry)
    return "up to date"


def _resize(grid: Any, count: int) -> None:
    """As many rows as asked, new ones like the last."""
    rows = grid._tbl.tr_lst
    for row in rows[count:]:
        grid._tbl.remove(row)
    for _ in range(count - len(rows)):
        grid._tbl.append(copy.deepcopy(rows[-1]))


def _said(cell: Any, entry: Entry) -> None:
    paragraph = cell.text_frame.paragraphs[0]
    run = paragraph.runs[0] if paragraph.runs else paragraph.add_run()
    for other in paragraph.runs[1:]:
        other._r.getparent().remove(other._r)
    run.text = files.clean(entry.text)
    run.font.bold = entry.bold
    run.font.color.rgb = inked(entry.tone or "text")
