"""A run's trials as rows for other programs: CSV, JSON lines and Parquet, with plain numbers and UTC."""

from __future__ import annotations

import csv as csv_format
import io
import json
from collections.abc import Iterator

from lab import rows as flat
from lab.errors import BadInput
from lab.export.files import clean
from lab.rows import Value
from lab.store import Record

_FORMULA = ("=", "+", "-", "@", "\t")


def csv(record: Record, *, decimal_comma: bool = False) -> bytes:
    """One row per recorded trial, units in the heads; no thousands, nothing for no value.

    Decimal points and commas between fields, whatever the system's language is. With `decimal_comma` the
    file is what a spreadsheet opens where decimals are written with a comma: semicolons between fields, and
    the mark at the beginning by which it knows UTF-8.
    """
    text = io.StringIO()
    writer = csv_format.writer(text, lineterminator="\n", delimiter=";" if decimal_comma else ",")
    for number, row in enumerate(rows(record)):
        if not number:
            writer.writerow(row)
        writer.writerow([_cell(value, decimal_comma) for value in row.values()])
    return text.getvalue().encode("utf-8-sig" if decimal_comma else "utf-8")


def jsonl(record: Record) -> bytes:
    """The same rows, one JSON object per line; null for no value."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(record)).encode()


def parquet(record: Record) -> bytes:
    """The same rows with their types, times as UTC. Raises BadInput where pyarrow is not installed."""
    from lab import store

    try:
        import pyarrow  # noqa: F401 - pandas asks for it, in words that help nobody here
    except ImportError as error:
        raise BadInput(
            "Parquet needs a package that is not installed",
            advice="Install it (`pip install 'branchlab[parquet]'`), or write .csv or .jsonl.",
        ) from error
    file = io.BytesIO()
    store.frames(record.path).trials.to_parquet(file, index=False)
    return file.getvalue()


def rows(record: Record) -> Iterator[dict[str, Value]]:
    """One row per recorded trial, in the order in which they ended. Raises BadInput for a damaged run."""
    try:
        yield from flat.trials(record.told().whole, record.trials())
    except (KeyError, ValueError) as error:
        raise BadInput(
            f"{record.path}: it is damaged: its trials cannot be read: {error}",
            advice="Take another copy of the file if there is one.",
        ) from error


def _cell(value: Value, decimal_comma: bool = False) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and decimal_comma:
        return repr(value).replace(".", ",")
    if not isinstance(value, str):
        return repr(value)
    told = clean(value)
    # What a host said must not become a formula in someone's spreadsheet.
    return f"'{told}" if told.startswith(_FORMULA) else told
