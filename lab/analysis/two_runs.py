"""One run held against another, cell by cell: what became faster or slower, what differs, what was foretold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from lab import units
from lab.analysis import spread, words
from lab.analysis.cells import Cell
from lab.analysis.comparing import CHANCE, Comparison
from lab.analysis.line_model import Model, points
from lab.analysis.summary import Summary
from lab.analysis.view import View
from lab.model import Line, ProxyState


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One cell that both runs have: `b` held against `a`, corrected for the number of cells (Holm).

    `against.ratio` is the time in B in units of that in A.
    """

    a: Cell
    b: Cell
    against: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """A cell that A has not: what A's model of the line says of it, and what B measured; seconds.

    `low_s` and `high_s` are the interval of 95 % for one more measurement (None where the points left no residual).
    `within` is False where the line is slower or faster than every line that A measured.
    """

    b: Cell
    time_s: float
    low_s: float | None
    high_s: float | None
    within: bool

    @property
    def held(self) -> bool | None:
        """True if the measured median lies in the interval; None without one."""
        if self.low_s is None or self.high_s is None or self.b.median_s is None:
            return None
        return self.low_s <= self.b.median_s <= self.high_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Differs:
    """A fact of the lab, the data or the plan; `b` is the same text as `a` where it does not differ."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two runs. `changes` have a time in both; `only_a`, `only_b` are cells with a time in one of them."""

    a: Summary
    b: Summary
    changes: tuple[Change, ...]
    only_a: tuple[Cell, ...]
    only_b: tuple[Cell, ...]
    foretold: tuple[Foretold, ...]
    differs: tuple[Differs, ...]
    same: tuple[Differs, ...]

    def with_verdict(self, verdict: str) -> tuple[Change, ...]:
        """The changes of this verdict."""
        return tuple(change for change in self.changes if change.against.verdict == verdict)

    @property
    def published(self) -> bool:
        """True if one of them has single figures without attempts, so that no interval can be given."""
        return any(change.a.published or change.b.published for change in self.changes)

    @property
    def totals_s(self) -> tuple[float, float]:
        """The medians of all cells that both have, added up, in A and in B; seconds."""
        return _total([change.a for change in self.changes]), _total([change.b for change in self.changes])

    @property
    def title(self) -> str:
        """What came out, in a sentence."""
        if not self.changes:
            return "The two runs have no cell in common."
        count = _cells(len(self.changes))
        faster, slower = (len(self.with_verdict(verdict)) for verdict in ("faster", "slower"))
        if faster and slower:
            return f"B is faster in {faster} and slower in {slower} of {count}{self._in_all}."
        if faster or slower:
            word, found = ("faster", faster) if faster else ("slower", slower)
            part = f"{found} of {count}" if len(self.changes) > 1 else _told(self.changes[0].b)
            return f"B is {word} in {part}{self._in_all}."
        if len(self.with_verdict("too-few")) == len(self.changes):
            return f"Too few attempts to hold {count} of B against A."
        return f"No difference is seen between A and B in {count}{self._in_all}."

    @property
    def text(self) -> str:
        """The sentences behind the title: the largest changes, what was not seen, what rests on single figures."""
        parts = []
        for verdict in ("faster", "slower"):
            found = sorted(self.with_verdict(verdict), key=_size, reverse=True)
            if found:
                parts.append(f"{verdict.capitalize()} most: {_said(found[0])}.")
        unseen = self.with_verdict("no-difference")
        if unseen and not self.published:
            least = max((one.against.smallest or 0.0 for one in unseen), default=0.0)
            seen = f"; one of {words.percent(least)} would have been" if least else ""
            parts.append(f"In {_cells(len(unseen))} no difference was seen{seen}.")
        few = self.with_verdict("too-few")
        if few and len(few) < len(self.changes):
            parts.append(f"{_cells(len(few)).capitalize()} had too few attempts.")
        if self.published:
            parts.append(
                "Published figures have no single attempts, so there is no interval: "
                f"a difference under {words.percent(CHANCE)} may be chance."
            )
        return " ".join(parts)

    @property
    def _in_all(self) -> str:
        if len(self.changes) < 2:
            return ""
        before, after = self.totals_s
        return f": {words.duration(after)} instead of {words.duration(before)} in all"


def compared(
    a: Summary, b: Summary, facts_a: Mapping[str, str] | None = None, facts_b: Mapping[str, str] | None = None
) -> Compared:
    """B held against A: cells of the same operation, line and proxy state.

    Each operation's spread is pooled over both runs' cells, unless Bartlett's test finds them unequal (then each has
    its own, and Welch's test), as `lab.analysis.spread` does within a run; all cells are one family for Holm's
    correction. Lines are the same if rates, delay, jitter, loss and queue are. `facts_a` and `facts_b` are names and
    texts of what was measured, with what.
    """
    here, there = _timed(a), _timed(b)
    common = [key for key in here if key in there]
    pairs = _pooled([(here[key], there[key]) for key in common])
    tool_start_s = max(a.tool_start_s, b.tool_start_s)
    held = View(cells=(), tool_start_s=tool_start_s).held([(after, before) for before, after in pairs])
    only_b = tuple(cell for key, cell in there.items() if key not in here)
    facts = _facts(facts_a or {}, facts_b or {}, published=bool(a.source or b.source))
    return Compared(
        a=a,
        b=b,
        changes=tuple(
            Change(a=before, b=after, against=one) for (before, after), one in zip(pairs, held, strict=True)
        ),
        only_a=tuple(cell for key, cell in here.items() if key not in there),
        only_b=only_b,
        foretold=tuple(_foretold(a, b, only_b)),
        differs=tuple(one for one in facts if one.a != one.b),
        same=tuple(one for one in facts if one.a == one.b),
    )


def as_json(found: Compared) -> dict[str, Any]:
    """The promise of `compare A B --json`: what is there stays, new names are added behind."""
    before, after = found.totals_s
    return {
        "a": found.a.started.run,
        "b": found.b.started.run,
        "title": found.title,
        "text": found.text,
        "total_a_s": before,
        "total_b_s": after,
        "changes": [
            {**_place(one.b), "a_s": one.a.median_s, "b_s": one.b.median_s, **_held(one.against)}
            for one in found.changes
        ],
        "only_a": [_place(cell) for cell in found.only_a],
        "only_b": [_place(cell) for cell in found.only_b],
        "foretold": [
            {
                **_place(one.b),
                "b_s": one.b.median_s,
                "foretold_s": one.time_s,
                "interval_s": None if one.low_s is None else [one.low_s, one.high_s],
                "within_lines_measured": one.within,
                "held": one.held,
            }
            for one in found.foretold
        ],
        "differs": [asdict(one) for one in found.differs],
        "same": [asdict(one) for one in found.same],
    }


_Key = tuple[str, ProxyState, tuple[object, ...]]


def _timed(summary: Summary) -> dict[_Key, Cell]:
    return {_key(cell): cell for cell in summary.cells if cell.median_s is not None}


def _key(cell: Cell) -> _Key:
    line = cell.line
    rates = (line.upload_bps, line.download_bps)
    queues = tuple(None if rate is None else line.queue_for(rate) for rate in rates)
    return cell.operation, cell.proxy, (*rates, line.delay_s, line.jitter_s, line.loss, *queues)


def _pooled(pairs: Sequence[tuple[Cell, Cell]]) -> list[tuple[Cell, Cell]]:
    """The same cells with one spread per operation over both runs."""
    found = list(pairs)
    for name in dict.fromkeys(before.operation for before, _ in pairs):
        places = [place for place, (before, _) in enumerate(pairs) if before.operation == name]
        times = [cell.times for place in places for cell in pairs[place]]
        known = iter(spread.spreads(times))
        for place in places:
            before, after = pairs[place]
            found[place] = (replace(before, spread=next(known)), replace(after, spread=next(known)))
    return found


def _foretold(a: Summary, b: Summary, only_b: Sequence[Cell]) -> list[Foretold]:
    models = {(model.operation, model.proxy): model for model in a.models}
    trips = {line: one.round_trip_s for line, one in b.proved.items() if one.round_trip_s}
    found = []
    for cell in only_b:
        model, there = models.get((cell.operation, cell.proxy)), points([cell], trips)
        if model is None or not there or cell.published:
            continue
        told = model.fit.predicted(there[0])
        time_s, low_s, high_s = told if told else (model.fit.time(there[0]), None, None)
        found.append(
            Foretold(b=cell, time_s=time_s, low_s=low_s, high_s=high_s, within=_within(model, cell.line))
        )
    return found


def _within(model: Model, line: Line) -> bool:
    measured = model.fit.points
    downloads = [point.download_bps for point in measured]
    uploads = [point.upload_bps for point in measured]
    return bool(
        measured
        and min(downloads) <= (line.download_bps or 0) <= max(downloads)
        and min(uploads) <= (line.upload_bps or 0) <= max(uploads)
    )


def _facts(a: Mapping[str, str], b: Mapping[str, str], *, published: bool) -> list[Differs]:
    """All that is known of one of them; beside published figures, of which little is, what is known of both."""
    names = [name for name in dict.fromkeys((*a, *b)) if not published or (name in a and name in b)]
    return [Differs(name=name, a=a.get(name, "—"), b=b.get(name, "—")) for name in names]


def _total(cells: Sequence[Cell]) -> float:
    return sum(cell.median_s or 0.0 for cell in cells)


def _cells(count: int) -> str:
    return "one cell" if count == 1 else f"{count} cells"


def _told(cell: Cell) -> str:
    return f"{words.operation(cell.operation)} on {words.line(cell.line)} {words.state(cell.proxy)}"


def _said(change: Change) -> str:
    """`Get on 64/128 kbit/s with a full cache, 1:29.99 instead of 5:15.52 (3.5×; 95 %: 3.4–3.6×)`."""
    ratio = change.against.ratio
    factor = "" if not ratio else words.times(max(ratio, 1 / ratio))
    sure = words.sure(change.against).strip(" ()")
    inside = "; ".join(part for part in (factor, sure) if part)
    after, before = (words.duration(cell.median_s or 0.0) for cell in (change.b, change.a))
    return f"{_told(change.b)}, {after} instead of {before}{f' ({inside})' if inside else ''}"


def _size(change: Change) -> float:
    ratio = change.against.ratio or 1.0
    return max(ratio, 1 / ratio) if ratio else 0.0


def _place(cell: Cell) -> dict[str, Any]:
    return {"operation": cell.operation, "state": cell.state, "line": units.line_text(cell.line)}


def _held(one: Comparison) -> dict[str, Any]:
    return {
        "verdict": one.verdict,
        "ratio": one.ratio,
        "interval": None if one.low is None else [one.low, one.high],
        "p": one.p,
        "smallest_seen": one.smallest,
    }
