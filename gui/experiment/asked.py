"""An experiment as the profile's text has it, also where it is not right yet: what the cards show. No widgets."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab import units
from lab.draft import Draft
from lab.errors import BadInput
from lab.model import OPERATIONS, Experiment, Line, ProxyState
from lab.profile import Problem
from lab.profile_shape import ExperimentTable


@dataclass(frozen=True, slots=True)
class LineAsked:
    """One entry of `lines`: its text, the line that it means (None where it means none), and its price."""

    text: str
    line: Line | None
    price: float | None = None
    trouble: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateAsked:
    """One entry of `states`: the state that it means, None where it means none."""

    text: str
    state: ProxyState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An experiment's table. `place` counts from 0; `checked` is the experiment where the whole profile is right."""

    place: int
    name: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[LineAsked, ...] = ()
    states: tuple[StateAsked, ...] = ()
    operations: tuple[str, ...] = OPERATIONS
    checked: Experiment | None = None

    def number(self, key: str) -> int:
        """A key that is a whole number; its default where it is left out or is none."""
        value = self.values.get(key)
        default = ExperimentTable.model_fields[key].default
        return value if isinstance(value, int) and not isinstance(value, bool) else int(default)

    def text(self, key: str) -> str:
        """A key that is a text; its default, or nothing, where it is left out."""
        value = self.values.get(key, ExperimentTable.model_fields[key].default)
        return value if isinstance(value, str) else "" if value is None else str(value)

    def names(self, key: str) -> tuple[str, ...]:
        """A key that is a list of texts."""
        value = self.values.get(key)
        return tuple(str(one) for one in value) if isinstance(value, list) else ()

    def flag(self, key: str) -> bool:
        """A key that is true or false."""
        return self.values.get(key) is True

    @property
    def known_lines(self) -> tuple[Line, ...]:
        """The lines that can be read."""
        return tuple(one.line for one in self.lines if one.line is not None)

    @property
    def known_states(self) -> tuple[ProxyState, ...]:
        """The states that can be read."""
        return tuple(one.state for one in self.states if one.state is not None)

    @property
    def until(self) -> tuple[str, int]:
        """The share within which intervals are to be (empty: all attempts are made), and the most attempts."""
        table = self.values.get("until")
        if not isinstance(table, dict):
            return "", 12
        most = table.get("at_most", 12)
        return str(table.get("within", "")), (most if isinstance(most, int) else 12)

    @property
    def change(self) -> tuple[int, str]:
        """Files that the edit touches (0: all), and the share of their lines as text."""
        table = self.values.get("change")
        table = table if isinstance(table, dict) else {}
        files, lines = table.get("files", 50), table.get("lines", "10 %")
        return (files if isinstance(files, int) else 50), str(lines)


def experiments(draft: Draft | None) -> tuple[Asked, ...]:
    """All experiments of a profile, in its order; none where its text is no TOML."""
    if draft is None:
        return ()
    try:
        tables = tomllib.loads(draft.text).get("experiments", [])
    except (ValueError, RecursionError):
        return ()
    tables = tables if isinstance(tables, list) else []
    right = draft.profile.experiments if draft.profile is not None and not draft.problems else ()
    return tuple(
        _asked(place, table, right[place] if place < len(right) else None)
        for place, table in enumerate(tables)
        if isinstance(table, dict)
    )


def _asked(place: int, table: Mapping[str, Any], checked: Experiment | None) -> Asked:
    lines, states, operations = (table.get(key) for key in ("lines", "states", "operations"))
    return Asked(
        place=place,
        name=str(table.get("name", "")),
        values=table,
        lines=tuple(_line(one) for one in lines) if isinstance(lines, list) else (),
        states=tuple(_state(one) for one in states) if isinstance(states, list) else (),
        operations=tuple(str(one) for one in operations) if isinstance(operations, list) else OPERATIONS,
        checked=checked,
    )


def _line(value: object) -> LineAsked:
    price = None
    if isinstance(value, Mapping):
        told = value.get("price")
        price = float(told) if isinstance(told, int | float) and not isinstance(told, bool) else None
        value = value.get("line", "")
    text = str(value)
    try:
        parsed = units.parse_line(text)
    except BadInput as error:
        return LineAsked(text, None, price, trouble=str(error))
    return LineAsked(text, parsed.line, price, warnings=parsed.warnings)


def _state(value: object) -> StateAsked:
    try:
        return StateAsked(str(value), units.parse_state(value))
    except BadInput:
        return StateAsked(str(value), None)


def problems_of(draft: Draft | None, place: int) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """What is wrong with one experiment, and what is wrong elsewhere in the profile."""
    found = draft.problems if draft is not None else ()
    here = tuple(one for one in found if one.place[:2] == ("experiments", place))
    return here, tuple(one for one in found if one not in here)
