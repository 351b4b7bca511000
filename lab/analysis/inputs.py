"""The inputs of a decision as a file that people edit: TOML, refused with the place and the cure where it is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from lab import units
from lab.analysis.decision import Inputs
from lab.analysis.summary import Summary
from lab.analysis.view import comparable_lines
from lab.errors import BadInput
from lab.model import OPERATIONS, Line

ASSUMED = {"get": 1.0, "check-out": 2.0, "undo": 0.5, "check-in": 2.0, "history": 1.0, "diff": 4.0}
"""Operations per person and day where nobody has said: a guess to be edited, told as one."""


def assumed(summary: Summary) -> Inputs:
    """Inputs to begin with: the run's operations and lines, with the prices that its profile gave."""
    experiment = summary.started.experiment
    names = {cell.operation for cell in summary.cells}
    return Inputs(
        per_day={name: often for name, often in ASSUMED.items() if name in names},
        lines={line: experiment.price(line) for line in comparable_lines(experiment.lines)},
    )


def text(inputs: Inputs) -> str:
    """The file that `read` reads back."""
    lines = [
        f"currency = {_quoted(inputs.currency)}",
        f"people = {inputs.people}",
        f"days = {inputs.days:g}                # working days a month",
        f"hour = {inputs.hour:g}                 # what an hour of waiting costs; 0 leaves it out",
        _priced("proxy", inputs.proxy, "a month: its machine, power, care"),
        f"nights = {inputs.nights:g}              # how often a month the cache is filled again",
        f'renewed = "{100 * inputs.renewed:g} %"         # how much of its content is new each time',
        f"per_gb = {inputs.per_gb:g}               # what a GB over the line costs; 0 leaves it out",
    ]
    if inputs.full is not None:
        lines.append(f'full = "{inputs.full:g} %"            # how full the cache is in daily use')
    lines += ["", "[per_day]                # how often each person does it on a working day"]
    lines += [f"{name} = {often:g}" for name, often in inputs.per_day.items()]
    lines += [
        "",
        "[lines]                  # what each costs a month; lines that were not measured are predicted",
    ]
    lines += [_priced(_quoted(units.line_text(line)), price, "") for line, price in inputs.lines.items()]
    lines += ["", '[wished]                 # the longest that it may take, for example: get = "1 min"']
    lines += [f'{name} = "{seconds:g} s"' for name, seconds in inputs.wished_s.items()]
    return "\n".join(lines) + "\n"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _priced(name: str, price: float | None, note: str) -> str:
    told = f"   # {note}" if note else ""
    return f"# {name} = 0{told}" if price is None else f"{name} = {price:g}{told}"


def read(source: str, where: str) -> Inputs:
    """The inputs of a file's text; `where` names it. Raises BadInput, with every fault in it."""
    try:
        told = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(
            f"{where}: {error}", advice="`branchlab decide RUN` prints a file to begin with."
        ) from error
    faults: list[str] = []
    given: dict[str, Any] = {}
    for name, value in told.items():
        reader = _READERS.get(name)
        if reader is None:
            faults.append(f"{name}: unknown; write one of {', '.join(_READERS)}")
            continue
        try:
            given[_FIELDS.get(name, name)] = reader(value)
        except BadInput as error:
            faults.append(f"{name}: {error}")
    if not given.get("per_day") and not faults:
        faults.append("per_day: nothing is done: write for example [per_day] and get = 1")
    if faults:
        raise BadInput("\n".join(f"{where}: {fault}" for fault in faults))
    return Inputs(**given)


def _number(value: object, least: float = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < least:
        raise BadInput(f"`{value}` is no number from {least:g} on")
    return float(value)


def _people(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f"`{value}` is no number of people: write 1 or more")
    return value


def _currency(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or value == "s":
        raise BadInput(f"`{value}` is no currency: write for example EUR")
    return value.strip()


def _full(value: object) -> float | None:
    state = units.parse_state(value)
    if not state.enabled:
        raise BadInput("write how full the cache is, for example 90 %")
    return state.full


def _table(value: object, key: Callable[[str], Any], each: Callable[[object], float]) -> Mapping[Any, float]:
    if not isinstance(value, dict):
        raise BadInput("this is a table: write its name in brackets, and its values below")
    found: dict[Any, float] = {}
    for name, one in value.items():
        place = key(name)
        if place in found:
            raise BadInput(f"`{name}` stands there twice")
        found[place] = each(one)
    return found


def _operation(name: str) -> str:
    if name not in OPERATIONS:
        raise BadInput(f"unknown operation `{name}`: write one of {', '.join(OPERATIONS)}")
    return name


def _line(name: str) -> Line:
    line = units.parse_line(name).line
    if not line.limited:
        raise BadInput(f"`{name}` has no rate: write for example 2/4 Mbit/s")
    return line


def _wish(value: object) -> float:
    if not isinstance(value, str):
        raise BadInput(f'`{value}` is no time: write for example "40 s"')
    return units.parse_duration(value)


_FIELDS = {"wished": "wished_s"}
_READERS: dict[str, Callable[[object], Any]] = {
    "currency": _currency,
    "people": _people,
    "days": _number,
    "hour": _number,
    "proxy": _number,
    "nights": _number,
    "per_gb": _number,
    "renewed": units.parse_share,
    "full": _full,
    "per_day": lambda value: _table(value, _operation, _number),
    "lines": lambda value: _table(value, _line, _number),
    "wished": lambda value: _table(value, _operation, _wish),
}
