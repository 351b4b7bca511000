"""A run as a workbook for Excel: sheets with real numbers and dates, filters, frozen heads and native charts."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lab import palette, rows
from lab.analysis import words
from lab.analysis.cells import Cell
from lab.export import fitting, titles, workbook_charts
from lab.export.contents import Contents
from lab.export.figures import Figure, Kind
from lab.export.files import clean
from lab.export.making import missing, spread
from lab.model import PAIRS
from lab.rows import utc

MOST_CHARS = 32_000
"""Excel refuses cells with more than 32,767 characters."""
_NAME_CHARS = 31
_BAD = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
_RESERVED = {"history"}
"""Excel keeps this name for itself, and repairs files that have it."""

Value = str | int | float | bool | datetime | None


def written(contents: Contents) -> bytes:
    """The workbook. Times are UTC, and their heads say so; what has no value is an empty cell."""
    from xlsxwriter import Workbook

    file = io.BytesIO()
    options = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
    }
    with Workbook(file, options) as book:
        book.set_properties({"title": contents.name, "comments": titles.source(contents.summary)})
        sheets = _Sheets(book)
        _summary(sheets, contents)
        sheets.table("Times", _times(contents))
        _figures(sheets, contents)
        sheets.table("Cells", [_cell(cell) for cell in contents.summary.cells])
        sheets.table("Trials", [_trial(row) for row in contents.trials])
        sheets.table("Lines", _lines(contents))
        sheets.table("Findings", _findings(contents), {"question": 60, "answer, with what it rests on": 200})
        method: list[dict[str, Value]] = [{"what": name, "how": text} for name, text in contents.method]
        sheets.table("Method", method, {"how": 110})
    return file.getvalue()


def sheet_name(wished: str, taken: Iterable[str]) -> str:
    """A name that Excel takes: at most 31 characters, none that it refuses, and no name twice."""
    plain = _BAD.sub(" ", clean(wished)).strip(" '")[:_NAME_CHARS].strip(" '") or "Sheet"
    if plain.lower() in _RESERVED:
        plain = f"{plain} (operation)"
    known = {name.lower() for name in taken}
    name, number = plain, 1
    while name.lower() in known:
        number += 1
        end = f" {number}"
        name = f"{plain[: _NAME_CHARS - len(end)]}{end}"
    return name


class _Sheets:
    """Sheets of one workbook, in one look."""

    def __init__(self, book: Any) -> None:
        light = palette.load("light")
        self.book = book
        hair = {"bottom": 1, "bottom_color": light.tokens["hair"]}
        self.head = book.add_format({"bold": True, "text_wrap": True, "valign": "top", **hair})
        self.title = book.add_format({"bold": True, "font_size": 14})
        self.quiet = book.add_format({"font_color": light.tokens["text2"]})
        self.wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        self.bold = book.add_format({"bold": True, "font_size": 14, "valign": "top"})
        self.formats = {
            "s": book.add_format({"num_format": "0.000"}),
            "signed": book.add_format({"num_format": "#,##0.000;#,##0.000"}),
            "bytes": book.add_format({"num_format": "#,##0"}),
            "×": book.add_format({"num_format": "0.00"}),
            "date": book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"}),
            "number": book.add_format({"num_format": "General"}),
        }

    def add(self, wished: str) -> Any:
        """A new sheet under a name that Excel takes."""
        sheet = self.book.add_worksheet(sheet_name(wished, self.book.sheetnames))
        sheet.set_landscape()
        sheet.set_paper(9)  # A4
        sheet.fit_to_pages(1, 0)
        return sheet

    def put(self, sheet: Any, row: int, column: int, value: Value, unit: str = "") -> None:
        """One value as what it is."""
        if value is None or value == "":
            return
        if isinstance(value, bool):
            sheet.write_boolean(row, column, value)
        elif isinstance(value, int | float):
            sheet.write_number(row, column, value, self.formats.get(unit, self.formats["number"]))
        elif isinstance(value, datetime):
            sheet.write_datetime(row, column, value, self.formats["date"])
        else:
            told = clean(value)
            sheet.write_string(row, column, told if len(told) <= MOST_CHARS else f"{told[:MOST_CHARS]} …")

    def rows(
        self, sheet: Any, top: int, table: Sequence[Mapping[str, Value]], wide: Mapping[str, int]
    ) -> None:
        """Heads in row `top`, frozen and filtered, and the rows under them."""
        heads = list(dict.fromkeys(head for row in table for head in row))
        for column, head in enumerate(heads):
            sheet.write_string(top, column, head, self.head)
            longest = max((len(str(row.get(head) or "")) for row in table[:200]), default=0)
            sheet.set_column(
                column, column, wide.get(head, min(44, max(9, longest + 2, len(head) * 0.7 + 2)))
            )
        for number, row in enumerate(table, top + 1):
            for column, head in enumerate(heads):
                self.put(sheet, number, column, row.get(head), _unit(head))
        sheet.set_row(top, 32)
        sheet.freeze_panes(top + 1, 1)
        if table:
            sheet.autofilter(top, 0, top + len(table), len(heads) - 1)

    def table(
        self, name: str, table: Sequence[Mapping[str, Value]], wide: Mapping[str, int] | None = None
    ) -> Any:
        """A sheet that is a table and nothing else."""
        sheet = self.add(name)
        if table:
            self.rows(sheet, 0, table, wide or {})
        else:
            sheet.write_string(0, 0, "There is nothing on record.")
        return sheet


def _unit(head: str) -> str:
    if "bytes" in head:
        return "bytes"
    if head.endswith(("(s)", "_s")):
        return "s"
    return "×" if "times" in head else "number"


def _summary(sheets: _Sheets, contents: Contents) -> None:
    sheet = sheets.add("Summary")
    sheet.set_column(0, 0, 44)
    sheet.set_column(1, 1, 12)
    sheet.set_column(2, 2, 110)
    sheet.write_string(0, 0, contents.name, sheets.title)
    sheet.write_string(1, 0, clean(contents.verdict))
    sheet.write_string(2, 0, f"{titles.source(contents.summary)}. Times are UTC.", sheets.quiet)
    for column, head in enumerate(("question", "number", "answer")):
        sheet.write_string(4, column, head, sheets.head)
    for row, finding in enumerate(contents.summary.findings, 5):
        sheet.write_string(row, 0, finding.asked, sheets.wrapped)
        sheet.write_string(row, 1, finding.headline, sheets.bold)
        told = clean(titles.brief(finding.text))
        sheet.write_string(row, 2, told, sheets.wrapped)
        sheet.set_row(row, 17 * max(1, math.ceil(fitting.breadth(told) / 55)))
    sheet.freeze_panes(5, 0)


def _findings(contents: Contents) -> list[dict[str, Value]]:
    return [
        {"question": f.asked, "number": f.headline, "answer, with what it rests on": f.text}
        for f in contents.summary.findings
    ]


def _figures(sheets: _Sheets, contents: Contents) -> None:
    """Sheets of figures, each with the numbers that its chart is drawn from: a sheet per operation, then by kind."""
    found = [figure for figure in contents.figures if not figure.empty]
    named: dict[str, list[Figure]] = {}
    for figure in found:
        key = figure.key.partition("-line")[0]
        kinds = {Kind.BAR: "By line", Kind.STACKED: "Traffic", Kind.SCATTER: "Attempts"}
        named.setdefault(kinds.get(figure.kind, words.operation(key)), []).append(figure)
    for name in sorted(named, key=lambda name: name in ("By line", "Traffic", "Attempts")):
        sheet = sheets.add(name)
        tops = [0]
        for figure in named[name]:
            tops.append(_block(sheets, sheet, tops[-1], figure))
        sheet.set_h_pagebreaks(tops[1:-1])


def _block(sheets: _Sheets, sheet: Any, top: int, figure: Figure) -> int:
    """A figure's title, its numbers and under them its chart; returns the row under it."""
    left = "What stays inside the office is below zero, so that its bars grow to the left."
    around = [
        f"{figure.sub[:1].upper()}{figure.sub[1:]}.",
        figure.note,
        left if figure.kind is Kind.STACKED else "",
    ]
    sheet.write_string(top, 0, clean(figure.title), sheets.title)
    sheet.write_string(top + 1, 0, clean(" ".join(part for part in around if part)), sheets.quiet)
    sheet.set_row(top + 2, 32)
    columns = workbook_charts.columns(figure)
    unit = "s" if figure.kind is not Kind.STACKED else "signed"
    for place, (head, values) in enumerate(columns):
        sheet.write_string(top + 2, place, head, sheets.head)
        sheet.set_column(place, place, 18 if not place else 13)
        for row, value in enumerate(values, top + 3):
            sheets.put(sheet, row, place, value, unit)
    workbook_charts.insert(sheets.book, sheet, figure, top + 2, columns)
    return top + 3 + len(columns[0][1]) + 1 + workbook_charts.ROWS


def _times(contents: Contents) -> list[dict[str, Value]]:
    """All tables of times in one: a row per operation and line."""
    found = []
    for table in contents.tables:
        if "s" not in table.units or table.key == "lines-table":
            continue
        for row in table.rows:
            told: dict[str, Value] = {"operation": words.operation(table.key.removesuffix("-table"))}
            lost = []
            for head, unit, entry in zip(table.heads, table.units, row, strict=True):
                name = (
                    f"{head} (s)" if unit == "s" else f"times as fast, {head}" if unit else head or "verdict"
                )
                told[name] = entry.value if unit else entry.text
                if unit == "s" and entry.value is None:
                    lost.append(f"{head}: {entry.text or 'not measured'}")
            found.append({**told, "missing": "; ".join(lost)})
    return found


def _lines(contents: Contents) -> list[dict[str, Value]]:
    table = contents.table("lines-table")
    return [
        {
            head if not unit else f"{head} ({unit})": entry.value if unit else entry.text
            for head, unit, entry in zip(table.heads, table.units, row, strict=True)
        }
        for row in (table.rows if table else ())
        if table
    ]


def _cell(cell: Cell) -> dict[str, Value]:
    low, high = spread(cell)
    return {
        "operation": words.operation(cell.operation),
        "line": words.line(cell.line),
        "proxy": cell.state,
        "upload (bit/s)": cell.line.upload_bps,
        "download (bit/s)": cell.line.download_bps,
        "delay (s)": cell.line.delay_s,
        "planned": cell.planned,
        "kept": cell.kept,
        "without proof": cell.void,
        "failed": cell.failed,
        "excluded": cell.excluded,
        "median (s)": cell.median_s,
        "error bar from (s)": low,
        "error bar to (s)": high,
        "verdict": cell.verdict,
        "missing": "" if cell.median_s is not None else missing(cell),
        **{f"{pair} (bytes)": cell.bytes.get(pair) for pair in PAIRS},
        "served (bytes)": cell.served_bytes,
        "relayed (bytes)": cell.relayed_bytes,
        "direct (bytes)": cell.direct_bytes,
    }


def _trial(row: Mapping[str, rows.Value]) -> dict[str, Value]:
    """A trial's row, whose end is a date and not a text."""
    return {
        "ended (UTC)" if name == "ended_utc" else name: utc(str(value)) if name == "ended_utc" else value
        for name, value in row.items()
    }
