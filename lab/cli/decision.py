"""`decide`: what each option costs a month, and the sums behind it, in a terminal."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lab import units
from lab.analysis import decision, inputs, words
from lab.analysis.decision import SECONDS, Decision, Inputs, Option, Part
from lab.analysis.summary import Summary
from lab.errors import BadInput


def given(file: str | None, seen: Summary) -> Inputs:
    """The inputs of a file; without one, some to begin with."""
    if file is None:
        return inputs.assumed(seen)
    path = Path(file)
    try:
        return inputs.read(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{path}: it cannot be read: {getattr(error, 'strerror', None) or error}",
            advice="`branchlab decide RUN` prints a file to begin with: save it, and fill in your prices.",
        ) from error


def report(found: Decision, out: Console, *, assumed: bool) -> None:
    """Options, the sums of the cheapest and of today's line, fullness, nights; and the inputs, to be edited."""
    wrapped = not out.is_terminal
    for text in decision.sentences(found):
        out.print(text, soft_wrap=wrapped)
    out.print()
    out.print(_options(found))
    for one in _shown(found):
        out.print()
        out.print(_sum(one))
    if len(fullness := _fullness(found)) > 1:
        out.print()
        out.print(fullness[0])
        for text in fullness[1:]:
            out.print(text, soft_wrap=wrapped)
    out.print()
    if assumed:
        out.print(
            "These inputs are assumed, not yours. Save them, edit them, and give the file with --inputs:"
        )
        out.print()
    out.print(inputs.text(found.inputs), soft_wrap=True)


def _options(found: Decision) -> Table:
    table = Table(
        title=f"a month of {found.inputs.people} people", title_justify="left", title_style="bold", box=None,
        pad_edge=False, padding=(0, 2, 0, 0),
    )  # fmt: skip
    table.add_column("option", no_wrap=True)
    table.add_column("waiting", justify="right", no_wrap=True)
    table.add_column(found.inputs.currency, justify="right", no_wrap=True)
    table.add_column("as wished", no_wrap=True)
    table.add_column("not known", no_wrap=False)
    for one in found.options:
        money = "—" if one.money is None else f"{one.money:.2f}"
        meets = {True: "yes", False: "no", None: ""}[one.meets]
        table.add_row(
            one.name, _hours(one.time_s), money, meets, "; ".join((*one.unknown_times, *one.unknown_prices))
        )
    return table


def _shown(found: Decision) -> list[Option]:
    """Today's line without a proxy, which is the slowest, and the option that leads."""
    today = min(
        (one for one in found.options if not one.proxy.enabled),
        key=lambda one: one.line.download_bps or 0,
        default=None,
    )
    best = found.cheapest or (found.options[0] if found.options else None)
    return list(dict.fromkeys(one for one in (best, today) if one is not None))


def _sum(one: Option) -> Table:
    table = Table(
        title=f"the sum of {one.name}", title_justify="left", title_style="bold", box=None, pad_edge=False,
        padding=(0, 2, 0, 0),
    )  # fmt: skip
    for head in ("", "times", "each", "makes"):
        table.add_column(head, justify="left" if not head else "right", no_wrap=True)
    table.add_column("whence", no_wrap=True)
    for part in one.parts:
        table.add_row(part.what, f"{part.count:.6g}", _each(part), _total(part), part.basis)
    table.add_row("together", "", "", _hours(one.time_s), "waiting of all people")
    if one.money is not None:
        table.add_row("", "", "", f"{one.money:.2f}", "money")
    return table


def _hours(seconds: float | None) -> str:
    return "—" if seconds is None else f"{seconds / 3600:.2f} h"


def _each(part: Part) -> str:
    if part.unit != SECONDS:
        return f"{part.each:.2f} {part.unit}"
    told = words.duration(part.each)
    if part.low is None or part.high is None:
        return told
    return f"{told} (95 %: {words.duration(part.low)}–{words.duration(part.high)})"


def _total(part: Part) -> str:
    return _hours(part.total) if part.unit == SECONDS else f"{part.total:.2f} {part.unit}"


def _fullness(found: Decision) -> list[Any]:
    """The table of waiting by fullness, and sentences on it and on the nights."""
    fulls = sorted({full for times in found.fullness.values() for full in times if full is not None})
    table = Table(
        title="waiting a month, by how full the cache is", title_justify="left", title_style="bold", box=None,
        pad_edge=False, padding=(0, 2, 0, 0),
    )  # fmt: skip
    table.add_column("line", no_wrap=True)
    for head in ("no proxy", *(f"{full:g} %" for full in fulls), "saves time from"):
        table.add_column(head, justify="right", no_wrap=True)
    for line, times in found.fullness.items():
        row = [_hours(times.get(full)) for full in (None, *fulls)]
        least = found.saves_from[line]
        never = "never" if None in times and len(times) > 1 else "—"
        table.add_row(words.line(line), *row, never if least is None else f"{least:.0f} % full")
    if not fulls:
        return []
    told: list[Any] = [table]
    for line, one in found.nights.items():
        night, month = words.amount(round(one.bytes)), words.amount(round(one.month_bytes))
        told.append(
            f"Keeping the cache full on {words.line(line)}: {night} a night, "
            f"{_whole(one.seconds)} of the whole line, {month} a month ({one.basis})."
        )
    return told


def _whole(seconds: float) -> str:
    return words.duration(seconds) if seconds < 90 else units.duration(seconds)


def as_json(found: Decision) -> dict[str, Any]:
    """The promise of `decide RUN --json`. Unknown numbers are None."""
    asked = found.inputs
    return {
        "inputs": {
            "currency": asked.currency,
            "people": asked.people,
            "days": asked.days,
            "hour": asked.hour,
            "proxy": asked.proxy,
            "full": asked.full,
            "nights": asked.nights,
            "renewed": asked.renewed,
            "per_gb": asked.per_gb,
            "per_day": dict(asked.per_day),
            "lines": {units.line_text(line): price for line, price in asked.lines.items()},
            "wished_s": dict(asked.wished_s),
        },
        "options": [_option(one) for one in found.options],
        "cheapest": _option(found.cheapest) if found.cheapest else None,
        "fullness": [
            {
                "line": units.line_text(line),
                "time_s": {"disabled" if full is None else f"{full:g} %": s for full, s in times.items()},
                "saves_from_percent": found.saves_from[line],
            }
            for line, times in found.fullness.items()
        ],
        "nights": [{"line": units.line_text(line), **asdict(one)} for line, one in found.nights.items()],
        "sentences": list(decision.sentences(found)),
    }


def _option(one: Option) -> dict[str, Any]:
    return {
        "line": units.line_text(one.line),
        "state": one.proxy.key,
        "time_s": one.time_s,
        "money": one.money,
        "meets": one.meets,
        "unknown": [*one.unknown_times, *one.unknown_prices],
        "parts": [{**asdict(part), "total": part.total} for part in one.parts],
    }


def decided(seen: Summary, asked: Inputs) -> Decision:
    """As `lab.analysis.decision.decided`; BadInput where the run has none of the operations."""
    if not {cell.operation for cell in seen.cells} & set(asked.per_day):
        names = ", ".join(sorted({cell.operation for cell in seen.cells}))
        raise BadInput("per_day names no operation of this run", advice=f"It has {names}.")
    return decision.decided(seen, asked)
