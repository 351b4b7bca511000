"""Text of others (hosts, run files that came by mail) made harmless for a terminal."""

from __future__ import annotations

import re

# C0 and C1 without tab and line feed, and what turns the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """The same text with its control characters spelt out: none of it can clear the screen or write a clipboard."""
    return _CONTROL.sub(_spelt, text)


def _spelt(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
