"""As much of YAML as inventories are written in: mappings below each other, texts, comments, `{a: b}` on a line.

Lists are passed over, since nothing that is wanted of an inventory stands in one. Anchors, tags and several
documents are refused by line: guessing what they mean would name the wrong host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lab.errors import BadInput

Value = str | dict[str, "Value"] | None
DEEPEST = 60
_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#'"\[\]{},&*!|>%@`:?-][^#\n]*?|[?:-][^\s#][^#\n]*?)\s*:(?=\s|$)"""
)


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    indent: int
    text: str


def mapping(text: str, name: str) -> dict[str, Value]:
    """The mapping that a text is. Raises BadInput with the line."""
    if text.lstrip().startswith("{"):
        return _json(text, name)
    lines = list(_lines(text, name))
    if not lines:
        raise BadInput(f"{name}: there is nothing in it")
    value, rest = _block(lines, 0, lines[0].indent, name, 0)
    if rest < len(lines):
        raise _no(name, lines[rest], "this stands further left than what it belongs to")
    return value


def _json(text: str, name: str) -> dict[str, Value]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name}: this is no JSON: {error}") from error

    def plain(value: object, depth: int) -> Value:
        if depth > DEEPEST:
            raise BadInput(f"{name}: it lies too deep in itself")
        if isinstance(value, dict):
            return {str(key): plain(one, depth + 1) for key, one in value.items()}
        return None if value is None or isinstance(value, (list, bool)) else str(value)

    value = plain(found, 0)
    if not isinstance(value, dict):
        raise BadInput(f"{name}: this is no mapping")
    return value


def _lines(text: str, name: str) -> Iterator[_Line]:
    begun = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.rstrip()
        bare = line.lstrip(" ")
        if not bare or bare.startswith("#"):
            continue
        if line.startswith(("---", "...")):
            if begun and line.startswith("---"):
                raise BadInput(f"{name}:{number}: a second document begins here: only one is read")
            if line.rstrip(" -."):
                raise BadInput(f"{name}:{number}: nothing may stand beside {line[:3]}")
            continue
        if line.startswith("%") and not begun:
            continue
        if bare.startswith("\t"):
            raise BadInput(f"{name}:{number}: YAML is indented by spaces, and here is a tab")
        begun = True
        yield _Line(number, len(line) - len(bare), bare)


def _block(lines: list[_Line], at: int, indent: int, name: str, depth: int) -> tuple[dict[str, Value], int]:
    """The mapping whose keys stand at `indent`, and where it ends."""
    if depth > DEEPEST:
        raise _no(name, lines[at], "it lies too deep in itself")
    found: dict[str, Value] = {}
    while at < len(lines) and lines[at].indent >= indent:
        line = lines[at]
        if line.indent > indent:
            raise _no(name, line, "this stands further right than what is beside it")
        match = _KEY.match(line.text)
        if match is None:
            raise _no(name, line, "a name with a colon was expected here")
        key, rest = _text(match[1]), _uncommented(line.text[match.end() :]).strip()
        if key in found:
            raise _no(name, line, f"{key!r} stands there twice")
        at += 1
        if rest.startswith(("|", ">")):
            found[key], at = None, _over(lines, at, indent)
        elif rest:
            found[key] = _inline(rest, line, name)
            if at < len(lines) and lines[at].indent > indent:  # a plain text may go on
                at = _over(lines, at, indent)
        elif _is_list(lines, at, indent):
            found[key], at = None, _list(lines, at)
        elif at < len(lines) and lines[at].indent > indent:
            found[key], at = _block(lines, at, lines[at].indent, name, depth + 1)
        else:
            found[key] = None
    return found, at


def _over(lines: list[_Line], at: int, indent: int) -> int:
    while at < len(lines) and lines[at].indent > indent:
        at += 1
    return at


def _is_list(lines: list[_Line], at: int, indent: int) -> bool:
    return at < len(lines) and lines[at].indent >= indent and bool(re.match(r"-(\s|$)", lines[at].text))


def _list(lines: list[_Line], at: int) -> int:
    """Over a list."""
    indent = lines[at].indent
    while at < len(lines) and (
        lines[at].indent > indent or (lines[at].indent == indent and lines[at].text.startswith("-"))
    ):
        at += 1
    return at


def _inline(text: str, line: _Line, name: str) -> Value:
    if text[0] in "&*" or text.startswith("<<"):
        raise _no(name, line, "anchors (& and *) are not read here: write out what they stand for")
    if text[0] == "!":
        return None  # a tag, as of !vault: a secret, which is not wanted
    if text[0] == "[":
        return None
    if text[0] != "{":
        return None if text in ("~", "null") else _text(text)
    if not text.endswith("}"):
        raise _no(name, line, "a brace is not closed on its line")
    found: dict[str, Value] = {}
    for piece in re.findall(r"""(?:"[^"]*"|'[^']*'|[^,"'])+""", text[1:-1]):
        key, colon, value = piece.strip().partition(":")
        if not piece.strip():
            continue
        if not colon or "{" in value:
            raise _no(name, line, "between braces NAME: VALUE is read, with commas between")
        found[_text(key.strip())] = _text(value.strip())
    return found


def _uncommented(text: str) -> str:
    """Without a comment that follows; a # within quotes is none."""
    found = re.match(r"""((?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^#"']|(?<!\s)#|(?<=\S)["'])*)""", text)
    return found[1] if found else text


def _text(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def _no(name: str, line: _Line, why: str) -> BadInput:
    return BadInput(f"{name}:{line.number}: this cannot be read as an inventory: {why}: {line.text[:60]}")
