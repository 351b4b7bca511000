"""Numbers as people type them: a decimal comma is as good as a point, and what may mean two things is refused."""

from __future__ import annotations

import re

from lab import units
from lab.errors import BadInput

_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d+)(?![\d.,])")
_BARE = re.compile(r"[\d.,]+")


def plain(text: str) -> str:
    """The text with decimal points for commas; `1,024` stays as it is, since it may mean two things."""
    return _COMMA.sub(lambda found: found[0] if _both(found[1], found[2]) else f"{found[1]}.{found[2]}", text)


def share(text: str) -> float:
    """A share from 0 to 1; a number alone is in per cent. Raises BadInput, for `1,000` too, with what to write."""
    text = plain(text).strip()
    doubtful = _COMMA.search(text)
    if doubtful is not None:
        number = doubtful[0]
        right = f"{float(number.replace(',', '.')):g}"
        raise BadInput(f"{number} or {number.replace(',', '')} %? Write {right}.")
    return units.parse_share(f"{text} %" if _BARE.fullmatch(text) else text)


def _both(before: str, after: str) -> bool:
    return len(after) == 3 and len(before) <= 3 and not before.startswith("0")


def number(text: str) -> float:
    """A number from 0 on. Raises BadInput, for `1,024` too, with what to write."""
    text = plain(text).strip()
    if _COMMA.fullmatch(text):
        raise BadInput(f"{text} or {text.replace(',', '.')}? Write {text.replace(',', '')}.")
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        raise BadInput("Write a number such as 45.")
    return float(text)
