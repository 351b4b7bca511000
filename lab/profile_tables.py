"""Whole tables of a profile's text taken out, put in, renamed and moved, with the comments that belong to them.

A comment belongs to the table whose head it stands right above. What comes of every change is read again and held
against what it was to be; texts that have their hosts in another form (`hosts.proxy.role = …`) are edited value by
value instead, and keep their comments as far as tomlkit keeps them.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from lab import toml_places
from lab.errors import BadInput
from lab.toml_places import Place

_NAMED = re.compile(
    r"""(\s*\[\s*(?:hosts|"hosts"|'hosts')\s*\.\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
)
_BY_HAND = "Edit the profile's file by hand, and open it again."


@dataclass(frozen=True, slots=True)
class _Block:
    """A table: lines `first` to `end` (not with it), comments right above its head included; `last` is behind the
    last line that is neither blank nor a comment."""

    place: Place
    first: int
    head: int
    last: int
    end: int


def renamed(text: str, old: str, new: str) -> str:
    """The host `old` is called `new`; its place and all comments stay. Raises BadInput."""

    def by_text() -> str:
        lines = text.splitlines(keepends=True)
        for block in _blocks(text):
            if block.place[:2] == ("hosts", old):
                lines[block.head] = _NAMED.sub(rf"\g<1>{new}", lines[block.head], count=1)
        return "".join(lines)

    def by_value(document: Any) -> None:
        table = document["hosts"][old]
        del document["hosts"][old]
        document["hosts"][new] = table

    wanted = _read(text)
    hosts = wanted.get("hosts", {})
    wanted["hosts"] = {new if name == old else name: table for name, table in hosts.items()}
    return _made(text, wanted, by_text, by_value)


def without(text: str, name: str) -> str:
    """The same without the host `name`. Raises BadInput."""

    def by_text() -> str:
        lines = text.splitlines(keepends=True)
        for block in reversed(_blocks(text)):
            if block.place[:2] == ("hosts", name):
                end = block.last
                while end < block.end and not lines[end].strip():
                    end += 1
                del lines[block.first : end]
        return "".join(lines)

    def by_value(document: Any) -> None:
        del document["hosts"][name]

    wanted = _read(text)
    wanted.get("hosts", {}).pop(name, None)
    return _made(text, wanted, by_text, by_value)


def taking_part(text: str, old: str, new: str = "") -> str:
    """The same where experiments name the host `old` among their clients: it is called `new`, or is gone (empty), and
    nobody wants more clients than there are. Raises BadInput."""
    document: Any = tomlkit.parse(text)
    hosts = document.get("hosts", {}).values()
    there = max(1, sum(isinstance(host, Mapping) and host.get("role") == "client" for host in hosts))
    before = tomlkit.dumps(document)
    for table in document.get("experiments", []):
        clients = table.get("clients")
        if isinstance(clients, list) and old in clients:
            place = clients.index(old)
            if new:
                clients[place] = new
            else:
                del clients[place]
            if not clients:
                del table["clients"]
        elif isinstance(clients, int) and clients > there and not new:
            table["clients"] = there
    after = tomlkit.dumps(document)
    return text if after == before else after


def with_host(text: str, block: str, after: str = "") -> str:
    """The same with one more table of a host, `[hosts.NAME]` and its keys, behind the host `after`, else behind all
    hosts. Raises BadInput."""
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    block = block.strip().replace("\r\n", "\n").replace("\n", end_of_line)

    def by_text() -> str:
        lines = text.splitlines(keepends=True)
        every = _blocks(text)
        hosts = [one for one in every if one.place[:1] == ("hosts",) and len(one.place) > 1]
        hosts = [one for one in hosts if one.place[1] == after] or hosts
        others = [one for one in every if one.place[:1] == ("experiments",)]
        at = hosts[-1].last if hosts else others[0].first if others else len(lines)
        before, behind = "".join(lines[:at]), "".join(lines[at:])
        before = before if before.endswith("\n") or not before else before + end_of_line
        gap = "" if not before or before.endswith(end_of_line * 2) else end_of_line
        close = "" if not behind.strip() or behind.startswith(end_of_line) else end_of_line
        return f"{before}{gap}{block}{end_of_line}{close}{behind}"

    (name, table), *_ = tomllib.loads(block)["hosts"].items()

    def by_value(document: Any) -> None:
        made = tomlkit.table()
        made.update(table)
        document.setdefault("hosts", tomlkit.table())[name] = made

    wanted = _read(text)
    wanted.setdefault("hosts", {})[name] = table
    return _made(text, wanted, by_text, by_value)


def host_table(name: str, table: Mapping[str, Any]) -> str:
    """The text of a host's table, as `with_host` takes it."""
    made = tomlkit.table()
    for key, value in table.items():
        if isinstance(value, dict):
            inner = tomlkit.inline_table()
            inner.update(value)
            value = inner
        made[key] = value
    return f"[hosts.{name}]\n{made.as_string()}"


def experiment_moved(text: str, place: int, to: int) -> str:
    """The experiment at `place` (from 0) stands at `to`, its comments with it. Raises BadInput."""

    def by_text() -> str:
        lines = text.splitlines(keepends=True)
        end_of_line = "\r\n" if "\r\n" in text else "\n"
        slots = _slots([one for one in _blocks(text) if one.place[:1] == ("experiments",)])
        texts = ["".join(lines[first:end]).rstrip() + end_of_line for first, end in slots]
        gaps = [lines[end - 1].strip() == "" for _, end in slots]
        texts.insert(to, texts.pop(place))
        for number in range(len(slots) - 1, -1, -1):
            first, end = slots[number]
            gap = gaps[number] or (end < len(lines) and number < len(slots) - 1)
            lines[first:end] = [texts[number], end_of_line if gap else ""]
        return "".join(lines)

    def by_value(document: Any) -> None:
        tables = document["experiments"]
        tables.insert(to, copy.deepcopy(tables.pop(place)))

    wanted = _read(text)
    tables = wanted["experiments"]
    tables.insert(to, tables.pop(place))
    return _made(text, wanted, by_text, by_value)


def _slots(blocks: Sequence[_Block]) -> list[tuple[int, int]]:
    """First line and end of each experiment, with the tables below it."""
    slots: dict[object, tuple[int, int]] = {}
    for block in blocks:
        key = block.place[1] if len(block.place) > 1 else -1
        first, _ = slots.get(key, (block.first, block.end))
        slots[key] = (first, block.end)
    return list(slots.values())


def _blocks(text: str) -> list[_Block]:
    lines = text.splitlines()
    heads = toml_places.headers(text)
    firsts = []
    for _, number in heads:
        first = number - 1
        while first > 0 and lines[first - 1].lstrip().startswith("#"):
            first -= 1
        firsts.append(first)
    found = []
    for number, (place, line) in enumerate(heads):
        end = firsts[number + 1] if number + 1 < len(heads) else len(lines)
        last = end
        while last > line and (not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#")):
            last -= 1
        found.append(_Block(place, firsts[number], line - 1, last, end))
    return found


def _made(
    text: str, wanted: dict[str, Any], by_text: Callable[[], str], by_value: Callable[[Any], None]
) -> str:
    """What the first of the two ways gives that says what is `wanted`."""
    with suppress(LookupError):  # of a text in another form
        made = by_text()
        if _says(made, wanted):
            return made
    try:
        document = tomlkit.parse(text)
        by_value(document)
        made = tomlkit.dumps(document)
    except (TOMLKitError, LookupError, TypeError, ValueError) as error:
        raise BadInput(f"this cannot be edited by clicking: {error}", advice=_BY_HAND) from error
    if not _says(made, wanted):
        raise BadInput("this cannot be edited by clicking in a text of this form", advice=_BY_HAND)
    return made


def _says(text: str, wanted: dict[str, Any]) -> bool:
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return {key: value for key, value in found.items() if value != {}} == {
        key: value for key, value in wanted.items() if value != {}
    }


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"this is no TOML, and cannot be edited by clicking: {error}") from error
