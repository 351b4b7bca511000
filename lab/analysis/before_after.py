"""Published figures that are no operation × line × state: what took how long before, and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lab.analysis import published, words
from lab.analysis.comparing import CHANCE
from lab.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case: its name, and the two figures."""

    case: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """A published comparison. `more_is_better` is True for operations per second, False for times."""

    name: str
    source: str
    unit: str
    before: str
    after: str
    more_is_better: bool
    rows: tuple[Row, ...]

    def gain(self, row: Row) -> float:
        """The share by which the second figure is better than the first; below zero where it is worse."""
        change = row.after / row.before - 1
        return change if self.more_is_better else -change

    @property
    def text(self) -> str:
        """What changed, from the smallest to the greatest change."""
        better = [row for row in self.rows if self.gain(row) > 0]
        least, most = min(self.rows, key=self.gain), max(self.rows, key=self.gain)
        doubt = ", which may be chance" if abs(self.gain(least)) < CHANCE else ""
        ends = [f"{words.percent(self.gain(row))} ({row.case}" for row in (least, most)]
        return (
            f"With {self.after} instead of {self.before}, {len(better)} of {len(self.rows)} cases are better: "
            f"the least by {ends[0]}{doubt}), the most by {ends[1]}) (published)."
        )


def names() -> tuple[str, ...]:
    """The published sources of this kind: `bazaar-2008`, `sync-2013`, `files-2011`."""
    return tuple(name for name, source in published.sources().items() if "pairs" in source)


def pairs(name: str) -> Pairs:
    """A published comparison. Raises BadInput for another name than those of `names`."""
    source = published.sources().get(name, {})
    if "pairs" not in source:
        raise BadInput(f"`{name}` is no published comparison", advice=f"Write one of: {', '.join(names())}.")
    told = source["pairs"]
    rows = [
        Row(case=_case(row, told["case"]), before=float(row[told["before"]]), after=float(row[told["after"]]))
        for row in published.rows(told["file"])
        if row[told["before"]] and row[told["after"]]
    ]
    return Pairs(
        name=name,
        source=f"{source['title']}, {source['year']}: {source['about']}",
        unit=told["unit"],
        before=told["named"][0],
        after=told["named"][1],
        more_is_better=bool(told["more_is_better"]),
        rows=tuple(rows),
    )


def _case(row: dict[str, str], columns: Sequence[str]) -> str:
    return ", ".join(row[column] for column in columns if row[column])


def as_json(one: Pairs) -> dict[str, Any]:
    """The promise of `show NAME --json` for these."""
    return {
        "run": one.name,
        "source": one.source,
        "unit": one.unit,
        "before": one.before,
        "after": one.after,
        "rows": [{**asdict(row), "gain": one.gain(row)} for row in one.rows],
        "text": one.text,
    }
