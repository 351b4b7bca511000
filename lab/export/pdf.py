"""A run as a report to print or mail: PDF with text as text, figures as vectors, fonts embedded; always light."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from importlib import resources

from lab.export import drawing, titles
from lab.export.canvas import FONTS, variables
from lab.export.contents import Contents
from lab.export.figures import Figure
from lab.export.files import clean

_LONG = re.compile(r"(\S{20})(?=\S)")


def written(contents: Contents, figures: Sequence[Figure]) -> bytes:
    """The report, tagged for screen readers. A letter that no font has is an empty box, as elsewhere."""
    import typst

    root = resources.files("resources")
    with resources.as_file(root.joinpath("fonts")) as fonts:
        made = typst.compile(
            root.joinpath("templates", "report.typ").read_bytes(),
            format="pdf",
            font_paths=typst.Fonts(include_embedded_fonts=False, font_paths=[fonts]),
            sys_inputs={"run": json.dumps(_told(contents, figures), ensure_ascii=False)},
        )
    return bytes(made)


def _told(contents: Contents, figures: Sequence[Figure]) -> dict[str, object]:
    """What the template is filled with; text only, since nothing of it may be taken for markup."""
    summary = contents.summary
    return {
        "name": _text(contents.name),
        "short": textwrap.shorten(_text(contents.name), 90, placeholder=" …"),
        "verdict": _text(contents.verdict),
        "source": _text(titles.source(summary)),
        "measured": _text(titles.measured(summary, titles.sub_time(summary.cells))),
        "fonts": [name.strip(" '") for name in FONTS.split(",")][:-1],
        "colours": variables("light"),
        "findings": [
            {"headline": _text(one.headline), "asked": _text(one.asked), "text": _text(one.text)}
            for one in summary.findings
        ],
        "figures": [
            {
                "title": _text(figure.title),
                "sub": _text(figure.sub),
                "note": _text(figure.note),
                "svg": drawing.svg(figure, titled=False),
            }
            for figure in figures
        ],
        "tables": [
            {
                "title": _text(table.title),
                "sub": _text(table.sub),
                "heads": [_text(head) for head in table.heads],
                "numeric": table.numeric,
                "rows": [
                    [{"text": _text(entry.text), "bold": entry.bold, "tone": entry.tone} for entry in row]
                    for row in table.rows
                ],
            }
            for table in contents.tables
        ],
        "method": [[_text(name), _text(told)] for name, told in contents.method],
    }


def _text(text: str) -> str:
    """Clean, with places where a word that is wider than a page may be broken."""
    return _LONG.sub("\\1\u200b", clean(text))
