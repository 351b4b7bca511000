"""Every edit of an experiment as a step of the document: named, in place, with comments kept."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import tomlkit
from tomlkit.items import Array

from gui.document import Document
from gui.experiment.asked import Asked, LineAsked
from lab import profile_tables, units
from lab.model import OPERATION_NAMES, OPERATIONS, Line, ProxyState

NEW = "New experiment"


class Edits:
    """Changes the experiment at `place` of the document; each deed is one step that can be taken back."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.place = 0

    # one key

    def put(self, what: str, key: str, value: Any) -> bool:
        """Give a key a value."""
        return self._document.put(what, ("experiments", self.place, key), value)

    def take_out(self, what: str, key: str) -> bool:
        """Take a key out, where it is there."""
        return self._edit(what, lambda table: table.pop(key, None))

    def put_all(self, what: str, values: Mapping[str, Any]) -> bool:
        """Give several keys their values in one step; None takes a key out."""

        def edit(table: Any) -> None:
            for key, value in values.items():
                if value is None:
                    table.pop(key, None)
                else:
                    table[key] = value

        return self._edit(what, edit)

    def change(self, what: str, files: int, share: str) -> bool:
        """The seeded edit."""
        made = tomlkit.inline_table()
        made.update({"files": files, "lines": share})
        return self.put(what, "change", made)

    def until(self, what: str, within: str, at_most: int) -> bool:
        """Repeat until all is within a share, and at most so often."""
        made = tomlkit.inline_table()
        made.update({"within": within, "at_most": at_most})
        return self.put(what, "until", made)

    # lines

    def add_lines(self, what: str, lines: Sequence[Line]) -> bool:
        """Add lines at the end."""
        return self._list(what, "lines", lambda held: [held.append(units.line_text(line)) for line in lines])

    def remove_lines(self, what: str, places: Sequence[int]) -> bool:
        """Take lines out."""

        def edit(held: Array) -> None:
            for place in sorted(places, reverse=True):
                del held[place]

        return self._list(what, "lines", edit)

    def write_line(self, what: str, place: int, line: Line, price: float | None) -> bool:
        """Another line, or price, in the place of one."""
        return self._list(what, "lines", lambda held: _set(held, place, _entry(line, price)))

    def write_lines(self, what: str, lines: Sequence[tuple[int, Line, float | None]]) -> bool:
        """Several in one step."""

        def edit(held: Array) -> None:
            for place, line, price in lines:
                _set(held, place, _entry(line, price))

        return self._list(what, "lines", edit)

    def move_line(self, what: str, place: int, to: int) -> bool:
        """Put a line at another place; its comment goes with it."""
        return self._list(what, "lines", lambda held: _move(held, place, to))

    # states and operations

    def add_state(self, state: ProxyState, asked: Asked) -> bool:
        """Ask for a state too: in its place, disabled first, then by how full."""
        before = sum(_rank(one.state) < _rank(state) for one in asked.states)
        what = f"add the state {units.state_text(state, ' ')}"
        return self._list(what, "states", lambda held: held.insert(before, state.key))

    def remove_state(self, state: ProxyState, asked: Asked) -> bool:
        """Ask for it no more."""
        places = [n for n, one in enumerate(asked.states) if one.state == state]

        def edit(held: Array) -> None:
            for place in reversed(places):
                del held[place]

        return self._list(f"leave out the state {units.state_text(state, ' ')}", "states", edit)

    def ask_operation(self, name: str, wanted: bool, asked: Asked) -> bool:
        """Ask for an operation, or no more; what was said of it alone goes with it."""
        verb = "add" if wanted else "leave out"
        names = [one for one in OPERATIONS if (one in asked.operations or one == name)]
        if not wanted:
            names.remove(name)

        def edit(table: Any) -> None:
            held = table.get("operations")
            if not isinstance(held, Array):
                table["operations"] = names
            elif wanted:
                held.insert(sum(_order(str(one)) < _order(name) for one in held), name)
            else:
                _drop(held, name)
            if not wanted and isinstance(table.get("disabled_only"), Array):
                _drop(table["disabled_only"], name)

        return self._edit(f"{verb} {OPERATION_NAMES.get(name, name)}", edit)

    # whole experiments

    def add(self, name: str) -> bool:
        """A new experiment at the end, to begin with."""

        def edit(document: tomlkit.TOMLDocument) -> None:
            table = tomlkit.table()
            table.update(
                {
                    "name": name,
                    "vcs": "subversion",
                    "data": "quick",
                    "operations": ["get", "history"],
                    "lines": ["512/1024 kbit/s", "2/4 Mbit/s"],
                    "states": ["disabled", "0 %", "90 %", "100 %"],
                    "attempts": 4,
                    "warm_up": 1,
                }
            )
            if "experiments" not in document:
                document["experiments"] = tomlkit.aot()
            document["experiments"].append(table)

        return self._document.change(f"add the experiment {name}", edit)

    def duplicate(self, name: str, copied: str) -> bool:
        """The same once more, behind it."""

        def edit(document: tomlkit.TOMLDocument) -> None:
            tables = document["experiments"]
            made = copy.deepcopy(tables[self.place])
            made["name"] = copied
            tables.insert(self.place + 1, made)

        return self._document.change(f"duplicate the experiment {name}", edit)

    def move(self, name: str, to: int) -> bool:
        """Have the experiment stand at another place of the profile; its comments go with it."""
        here = self.place
        return self._document.rewrite(
            f"move the experiment {name} {'up' if to < here else 'down'}",
            lambda text: profile_tables.experiment_moved(text, here, to),
        )

    def remove(self, name: str) -> bool:
        """Take the experiment out of the profile."""

        def edit(document: tomlkit.TOMLDocument) -> None:
            tables = document["experiments"]
            if len(tables) == 1:
                del document["experiments"]
            else:
                del tables[self.place]

        return self._document.change(f"remove the experiment {name}", edit)

    def _edit(self, what: str, edit: Callable[[Any], object]) -> bool:
        def inside(document: tomlkit.TOMLDocument) -> None:
            edit(document["experiments"][self.place])

        return self._document.change(what, inside)

    def _list(self, what: str, key: str, edit: Callable[[Array], object]) -> bool:
        def inside(table: Any) -> None:
            if not isinstance(table.get(key), Array):
                table[key] = tomlkit.array()
            edit(table[key])

        return self._edit(what, inside)


def free_name(name: str, taken: Sequence[str]) -> str:
    """`name`, or `name 2`, whichever is free."""
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{name} {number}"
    return made


def spoken(one: LineAsked) -> str:
    """A line's name in the name of a step."""
    return units.line_text(one.line) if one.line is not None else one.text


def _entry(line: Line, price: float | None) -> Any:
    text = units.line_text(line)
    if price is None:
        return text
    made = tomlkit.inline_table()
    made.update({"line": text, "price": int(price) if price == int(price) else price})
    return made


def _set(held: Array, place: int, value: Any) -> None:
    held[place] = value


def _move(held: Array, place: int, to: int) -> None:
    step = 1 if to > place else -1
    for here in range(place, to, step):
        _swap(held, here, here + step)


def _swap(held: Array, one: int, other: int) -> None:
    first, second = held[one], held[other]
    held[one], held[other] = second, first
    # Comments belong to what they stand beside. tomlkit has no word for it; where its inside is another one, they stay.
    with suppress(AttributeError, LookupError, TypeError):
        groups, places = held._value, held._index_map
        here, there = groups[places[one]], groups[places[other]]
        here.comment, there.comment = there.comment, here.comment


def _drop(held: Array, name: str) -> None:
    for place in reversed([n for n, one in enumerate(held) if one == name]):
        del held[place]


def _order(name: str) -> int:
    return OPERATIONS.index(name) if name in OPERATIONS else len(OPERATIONS)


def _rank(state: ProxyState | None) -> float:
    if state is None:
        return 1000.0
    return -1.0 if state.full is None else state.full
