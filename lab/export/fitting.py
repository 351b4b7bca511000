"""How large a text may be: sizes that fit a box, rows of a table that fit a slide. In pixels, by estimate."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

from lab.export.tables import Entry, Table

LINE = 1.2
"""Height of a line of text in its own size."""


def breadth(text: str) -> float:
    """How broad a text is in Arial, in ems, rather too broad than too narrow; Chinese and the like are an em wide."""
    return sum(_char(char) for char in text)


def _char(char: str) -> float:
    if char in " .,:;/|'!il\N{NO-BREAK SPACE}":
        return 0.3
    if char.isupper() or char in "mw%×—…&@":
        return 0.74
    return 1.0 if unicodedata.east_asian_width(char) in "WF" else 0.57


def fitted(text: str, width: float, height: float, wished: float, least: float = 14) -> float:
    """The largest size in pixels, up to the wished one, at which the text fits a box; at least `least`."""
    size = wished
    while size > least and line_count(text, width, size) * size * LINE > height:
        size -= 1
    return size


def cut(text: str, width: float, height: float, size: float) -> str:
    """The text, ended with … where even this size leaves no room for all of it."""
    lines = max(1, int(height / (size * LINE)))
    room = lines * width / size * 0.94
    if breadth(text) <= room:
        return text
    kept = text
    while kept and breadth(kept) > room - 1:
        kept = kept[:-8]
    return f"{kept.rstrip()}…"


def line_count(text: str, width: float, size: float) -> int:
    """How many lines a text takes in a width."""
    # Words that do not fit leave room at the end of a line.
    return math.ceil(breadth(text) * size / (width * 0.95))


def head_row(table: Table) -> list[tuple[Entry, ...]]:
    """The row of heads, if there are any."""
    if not any(table.heads):
        return []
    return [tuple(Entry(text=head, bold=True, tone="text2") for head in table.heads)]


def shares(table: Table) -> list[float]:
    """Shares of the width by what is longest in each column; heads may take several lines."""
    weights = []
    for n, head in enumerate(table.heads):
        texts = [row[n].text for row in table.rows]
        word = max((breadth(word) for word in head.split(" ")), default=0.0)
        weights.append(min(34.0, max([word, 3.0, *(breadth(text) for text in texts)]) + 1.5))
    return [weight / sum(weights) for weight in weights]


def row_heights(
    table: Table, rows: Sequence[Sequence[Entry]], widths: Sequence[float], wide: float, size: float
) -> list[float]:
    """How high each row is at least, heads first."""
    return [
        max(line_count(entry.text, share * wide - 12, size) for entry, share in zip(row, widths, strict=True))
        * size
        * LINE
        + 8
        for row in (*head_row(table), *rows)
    ]


def text_size(table: Table, widths: Sequence[float], wide: float, room: float, scale: float) -> float:
    """The largest size of text, 24 px at most, at which the whole table fits on a slide; at least 12 px."""
    size = 24 * scale
    while size > 12 * scale and (
        sum(row_heights(table, table.rows, widths, wide, size)) > room
        or any(
            line_count(row[n].text, share * wide - 12, size) > 1
            for row in table.rows
            for n, share in enumerate(widths)
            if breadth(row[n].text) < 30
        )
    ):
        size -= 1
    return size


def pages_of(
    table: Table, widths: Sequence[float], wide: float, room: float, size: float
) -> list[list[tuple[Entry, ...]]]:
    """The rows of each slide."""
    heads = len(head_row(table))
    heights = row_heights(table, table.rows, widths, wide, size)
    head = sum(heights[:heads])
    pages: list[list[tuple[Entry, ...]]] = [[]]
    used = head
    for row, high in zip(table.rows, heights[heads:], strict=True):
        if pages[-1] and used + high > room:
            pages.append([])
            used = head
        pages[-1].append(row)
        used += high
    return pages
