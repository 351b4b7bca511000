"""On which line of a TOML text each key and each member of a list stands. For texts that are valid TOML."""

from __future__ import annotations

import re

Place = tuple[str | int, ...]

_KEY = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEYS = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*")
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)

_WORD = re.compile(r"[^\s,\]}#]+")


def lines(text: str) -> dict[Place, int]:
    """Line (from 1) of every table, key and list member: `("experiments", 0, "lines", 1)`."""
    reader = _Reader(text)
    reader.read()
    return reader.found


def headers(text: str) -> list[tuple[Place, int]]:
    """The head of every table in the text's order, each with its line (from 1)."""
    reader = _Reader(text)
    reader.read()
    return reader.headers


class _Reader:
    """Walks over the text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.found: dict[Place, int] = {}
        self.headers: list[tuple[Place, int]] = []
        self._counts: dict[Place, int] = {}

    def read(self) -> None:
        """All tables."""
        table: Place = ()
        while self._skip():
            if self._text.startswith("[[", self._at):
                table = self._header(2)
                number = self._counts[table] = self._counts.get(table, -1) + 1
                self.found.setdefault(table, self._line())
                table = (*table, number)
            elif self._text[self._at] == "[":
                table = self._header(1)
            else:
                self._pair(table)
                continue
            self.found[table] = self._line()
            self.headers.append((table, self._line()))

    def _header(self, brackets: int) -> Place:
        keys = self._keys(self._at + brackets)
        place: Place = ()
        for number, key in enumerate(keys):
            place = (*place, key)
            last = number == len(keys) - 1
            if place in self._counts and not last:  # a table below the latest one of a list
                place = (*place, self._counts[place])
            if not last:
                self.found.setdefault(place, self._line())
        self._at = max(self._text.find("]", self._at), self._at) + brackets
        return place

    def _pair(self, table: Place) -> None:
        place, begin = table, self._line()
        for key in self._keys(self._at):
            place = (*place, key)
            self.found.setdefault(place, begin)
        self._at += 1  # over the sign =
        self._skip()
        self._value(place)

    def _value(self, place: Place) -> None:
        self.found.setdefault(place, self._line())
        opening = self._text[self._at : self._at + 1]
        if opening == "[":
            self._members(place)
        elif opening == "{":
            self._at += 1
            while self._skip(",") and self._text[self._at] != "}":
                self._pair(place)
            self._at += 1
        else:
            match = _STRING.match(self._text, self._at) or _WORD.match(self._text, self._at)
            self._at = match.end() if match else self._at + 1

    def _members(self, place: Place) -> None:
        self._at += 1
        number = 0
        while self._skip(",") and self._text[self._at] != "]":
            self._value((*place, number))
            number += 1
        self._at += 1

    def _keys(self, start: int) -> list[str]:
        match = _KEYS.match(self._text, start)
        if match is None:
            self._at += 1
            return []
        self._at = match.end()
        return [key.strip("\"'") for key in re.findall(_KEY, match[1])]

    def _skip(self, more: str = "") -> bool:
        """Over blanks, line ends, comments and `more`; False at the end of the text."""
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif sign.isspace() or sign in more:
                self._at += 1
            else:
                return True
        return False

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1
