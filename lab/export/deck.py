"""A run as slides for PowerPoint: title, answers, a figure a slide, tables, method and versions."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from lab.export import deck_template, titles
from lab.export.contents import Contents
from lab.export.figures import Figure
from lab.export.slides import Slides
from lab.export.tables import Entry, Table

ASKED = {
    1: "Which operations get faster?",
    2: "Which do not use the proxy?",
    3: "How is the traffic shared?",
    4: "What does the line’s rate change?",
    5: "What does the fullness change?",
}


def written(
    contents: Contents, figures: Sequence[Figure], *, template: Path | None = None, size: str = "16:9"
) -> bytes:
    """The deck. `template` is a company's `.pptx` or `.potx`; else BranchLab's own in `size`.

    Raises BadInput for a template that is none.
    """
    made = deck_template.theirs(template) if template else deck_template.own(size)
    slides = Slides(made, titles.source(contents.summary))
    notes = titles.measured(contents.summary, titles.sub_time(contents.summary.cells))
    under = f"{contents.verdict} {titles.source(contents.summary)}."
    slides.opening(contents.name, under, notes)
    slides.answers(contents.verdict, _answers(contents), _told(contents))
    shown = set()
    for figure in figures:
        slides.figure(figure)
        table = contents.table(f"{figure.key.partition('-line')[0]}-table")
        if table is not None and table.key not in shown and "-line" in figure.key:
            shown.add(table.key)
            slides.table(table, notes, f"{table.sub.partition(':')[0]}: every time that was measured")
    if not shown:
        for table in contents.tables[:1]:
            slides.table(table, notes)
    lines = contents.table("lines-table")
    if lines is not None:
        slides.table(lines, notes)
    slides.table(appendix(contents), notes)
    file = io.BytesIO()
    made.save(file)
    return file.getvalue()


def _answers(contents: Contents) -> list[tuple[str, str, str]]:
    return [
        (finding.headline, ASKED.get(finding.question, finding.asked), titles.short(finding.text))
        for finding in contents.summary.findings
    ]


def _told(contents: Contents) -> str:
    """The answers whole, with what they rest on, for the notes."""
    return "\n".join(f"{finding.asked} {finding.text}" for finding in contents.summary.findings)


def appendix(contents: Contents) -> Table:
    """The table of the last slide: how it was measured, and with what."""
    return Table(
        key="method",
        title="Method and versions",
        heads=("", ""),
        rows=tuple((Entry(text=name, bold=True), Entry(text=text)) for name, text in contents.method),
        units=("", ""),
    )
