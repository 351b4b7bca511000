"""Questions that the answers ask of a run's cells: who is where, what uses the proxy, what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lab.analysis import spread
from lab.analysis.cells import Cell
from lab.analysis.comparing import STRAY_BYTES, Comparison, compare
from lab.events import LineSettled
from lab.model import Line, ProxyState


class Use(StrEnum):
    """What an operation does with the proxy, by the bytes that arrived."""

    SERVED = "served"
    """the proxy sent content that it had not to fetch"""
    PASSES = "passes"
    """its traffic goes through the proxy, and none of it was served"""
    PAST = "past"
    """its traffic goes past the proxy"""
    SILENT = "silent"
    """it sends nothing"""
    UNSEEN = "unseen"
    """a cacheable operation tried with an empty cache only: nothing could have been served"""
    UNKNOWN = "unknown"
    """no trial with the proxy has its traffic"""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The cells of a run, looked at from the questions' side.

    Of published figures `uses` holds what their text says of operations without their traffic, `why` how it is
    known, and `volumes` what it says of traffic, in whole sentences. `settled` says where a run stopped repeating.
    """

    cells: tuple[Cell, ...]
    classes: Mapping[str, str] = field(default_factory=dict)
    tool_start_s: float = 0.0
    uses: Mapping[str, Use] = field(default_factory=dict)
    why: str = ""
    volumes: tuple[str, ...] = ()
    settled: tuple[LineSettled, ...] = ()

    @property
    def operations(self) -> tuple[str, ...]:
        """Operations in the order of the cells; those that the driver does not know are left out."""
        names = dict.fromkeys(cell.operation for cell in self.cells)
        return tuple(name for name in names if self.classes.get(name) != "n/a")

    @property
    def lines(self) -> tuple[Line, ...]:
        """Lines in the order of the cells."""
        return tuple(dict.fromkeys(cell.line for cell in self.cells))

    @property
    def states(self) -> tuple[ProxyState, ...]:
        """Enabled proxy states, emptiest first."""
        enabled = {cell.proxy for cell in self.cells if cell.proxy.enabled}
        return tuple(sorted(enabled, key=lambda proxy: proxy.full or 0.0))

    def of(self, operation: str, test: Callable[[Cell], bool] = lambda cell: True) -> tuple[Cell, ...]:
        """The cells of an operation that pass `test`."""
        return tuple(cell for cell in self.cells if cell.operation == operation and test(cell))

    def at(self, operation: str, line: Line, proxy: ProxyState) -> Cell | None:
        """The one cell of these levels, if the plan has it."""
        found = self.of(operation, lambda cell: cell.line == line and cell.proxy == proxy)
        return found[0] if found else None

    def base(self, cell: Cell) -> Cell | None:
        """The same line and operation without a proxy."""
        return self.at(cell.operation, cell.line, ProxyState(full=None))

    def against(self, cell: Cell) -> Cell:
        """As `base`, for a cell that has one, as every cell with a verdict of difference does."""
        base = self.base(cell)
        if base is None:
            raise LookupError(f"{cell.operation} was not measured without a proxy on this line")
        return base

    def enabled(self, operation: str) -> tuple[Cell, ...]:
        """The operation's cells with the proxy enabled."""
        return self.of(operation, lambda cell: cell.proxy.enabled)

    def judged(self, operation: str, *verdicts: str) -> tuple[Cell, ...]:
        """The operation's enabled cells with one of these verdicts."""
        return tuple(cell for cell in self.enabled(operation) if cell.verdict in verdicts)

    def compared(self, cell: Cell, base: Cell) -> str:
        """One cell against another by the rule of the verdicts."""
        return compare(cell, base, self.tool_start_s).verdict

    def held(self, pairs: Sequence[tuple[Cell, Cell]]) -> tuple[Comparison, ...]:
        """Each first cell against its second, corrected for their number: one family of comparisons (Holm)."""
        return _corrected([compare(cell, base, self.tool_start_s) for cell, base in pairs])

    def corrected(self, of: Callable[[Cell], bool] = lambda cell: True, *, together: bool = False) -> View:
        """The same with the verdicts of enabled cells that pass `of` corrected for their number (Holm).

        Each operation is a family, since a sentence speaks of one; `together` makes all of them one.
        """
        families: dict[str, list[Cell]] = {}
        for cell in self.cells:
            if cell.proxy.enabled and cell.against is not None and of(cell):
                families.setdefault("" if together else cell.operation, []).append(cell)
        verdicts: dict[int, str] = {}
        for family in families.values():
            found = _corrected([cell.against for cell in family if cell.against is not None])
            verdicts |= {
                id(cell): one.verdict
                for cell, one in zip(family, found, strict=True)
                if one.verdict != "too-few"
            }
        return replace(
            self,
            cells=tuple(replace(cell, verdict=verdicts.get(id(cell), cell.verdict)) for cell in self.cells),
        )

    def use(self, operation: str) -> Use:
        """What the operation does with the proxy."""
        if operation in self.uses:
            return self.uses[operation]
        seen = [cell for cell in self.enabled(operation) if cell.traffic_trials]
        if not seen:
            return Use.UNKNOWN
        if any(cell.served_bytes for cell in seen):
            return Use.SERVED
        if any(_moved(cell, "client>proxy", "proxy>client") or cell.relayed_bytes for cell in seen):
            empty_only = all(cell.proxy.full == 0 for cell in seen)
            return Use.UNSEEN if empty_only and self.classes.get(operation) == "cacheable" else Use.PASSES
        if not any(_known(cell, "client>proxy", "proxy>client") for cell in seen):
            return Use.UNKNOWN  # nobody could count what client and proxy exchanged
        past = any(_moved(cell, "client>server", "server>client") for cell in seen)
        return Use.PAST if past else Use.SILENT

    def main(self) -> str | None:
        """The operation that the questions on traffic and fullness look at: of those served, the largest.

        Where none is served, the largest of those that pass through; `None` if no trial has its traffic.
        """
        if self.uses:
            return next((name for name in self.operations if self.use(name) is Use.SERVED), None)
        for uses in ((Use.SERVED,), (Use.PASSES, Use.UNSEEN), tuple(Use)):
            names = [name for name in self.operations if self.use(name) in uses and self._weight(name)]
            if names:
                return max(names, key=self._weight)
        return None

    def _weight(self, operation: str) -> int:
        return max((_all(cell) for cell in self.of(operation)), default=0)


def _corrected(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Holm's correction of these; what is then no longer clear shows no difference."""
    known = [one.p for one in comparisons if one.p is not None]
    corrected = iter(spread.holm(known))
    found = []
    for one in comparisons:
        p = next(corrected) if one.p is not None else None
        unclear = p is not None and p >= 1 - spread.LEVEL and one.verdict in ("faster", "slower")
        found.append(replace(one, p=p, verdict="no-difference") if unclear else one)
    return tuple(found)


def slowest(lines: Iterable[Line]) -> Line | None:
    """The line with the lowest rates; one that is not limited counts as fast."""
    return min(lines, key=rate_key, default=None)


def rate_key(line: Line) -> tuple[float, float]:
    """Sort key of lines by rate."""
    if line.download_bps is None or line.upload_bps is None:
        return (float("inf"), float("inf"))
    return (line.download_bps, line.upload_bps)


def comparable_lines(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Limited lines that differ in rate alone, slowest first: the largest such group, the first of equals."""
    groups: dict[tuple[float, float, float], dict[tuple[float, float], Line]] = {}
    for line in lines:
        if line.limited:
            group = groups.setdefault((line.delay_s, line.jitter_s, line.loss), {})
            group.setdefault(rate_key(line), line)
    largest = max(groups.values(), key=len, default={})
    return tuple(sorted(largest.values(), key=rate_key))


def _moved(cell: Cell, *pairs: str) -> bool:
    return any((cell.bytes.get(pair) or 0) > STRAY_BYTES for pair in pairs)


def _known(cell: Cell, *pairs: str) -> bool:
    return cell.served_bytes is not None or any(cell.bytes.get(pair) is not None for pair in pairs)


def _all(cell: Cell) -> int:
    return sum(count or 0 for count in cell.bytes.values())
