"""A run as one page that needs nothing else: HTML with its figures inside, or Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources

from lab.export import drawing, titles
from lab.export.canvas import FONTS, variables
from lab.export.contents import Contents
from lab.export.figures import Figure
from lab.export.files import clean
from lab.export.tables import Entry, Table

_MARKS = re.compile(r"([\\`*_\[\]<>|#])")


def html(contents: Contents, figures: Sequence[Figure]) -> bytes:
    """One file: no script, no request to anywhere, light or dark as the reader's screen is, light on paper."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    text = resources.files("resources").joinpath("templates", "report.html").read_text("utf-8")
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(text)
    summary = contents.summary
    drawn = [(f, Markup(drawing.svg(f, by_name=True, titled=False))) for f in figures]  # noqa: S704 - escaped there
    return clean(
        page.render(
            name=contents.name,
            verdict=contents.verdict,
            source=titles.source(summary),
            measured=titles.measured(summary, titles.sub_time(summary.cells)),
            findings=summary.findings,
            figures=drawn,
            tables=contents.tables,
            method=contents.method,
            light=variables("light"),
            dark=variables("dark"),
            fonts=Markup(FONTS),  # noqa: S704 - our own constant
        )
    ).encode()


def markdown(contents: Contents) -> bytes:
    """Verdict, answers, every table, method: for a wiki or an issue."""
    summary = contents.summary
    parts = [
        f"# {_plain(contents.name)}",
        _plain(contents.verdict),
        f"{_plain(titles.source(summary))}.",
        "## Answers",
    ]
    parts += [f"**{_plain(f.asked)}** {_plain(f.headline)}\n\n{_plain(f.text)}" for f in summary.findings]
    parts.append("## Tables")
    for table in contents.tables:
        parts += [f"### {_plain(table.title)}", _table(table)]
        if table.sub:
            parts.append(_plain(f"{table.sub[:1].upper()}{table.sub[1:]}."))
    parts.append("## Method and versions")
    parts.append("\n".join(f"- {_plain(name)}: {_plain(text)}" for name, text in contents.method))
    return ("\n\n".join(parts) + "\n").encode()


def _table(table: Table) -> str:
    sides = ["---:" if numeric else ":---" for numeric in table.numeric]
    rows = [_row([_plain(head) for head in table.heads]), _row(sides)]
    rows += [_row([_entry(entry) for entry in row]) for row in table.rows]
    return "\n".join(rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _entry(entry: Entry) -> str:
    told = _plain(entry.text)
    return f"**{told}**" if entry.bold and told else told


def _plain(text: str) -> str:
    """Text that Markdown takes as it stands, on one line."""
    return _MARKS.sub(r"\\\1", " ".join(clean(text).split(" ")).replace("\n", " "))
