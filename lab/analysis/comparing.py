"""One cell held against another: the plain verdict, and the figures that it rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from typing import TYPE_CHECKING

from lab.analysis import robust, spread

if TYPE_CHECKING:
    from lab.analysis.cells import Cell

LEAST_DIFFERENCE_S = 0.020
"""Medians closer than this are never called different."""
STRAY_BYTES = 500
"""Fewer bytes on a pair are stray packets (a late close, a retransmission), no use of it."""
LEAST_KEPT = 3
"""With fewer kept attempts a cell is not compared."""
CHANCE = 0.05
"""A published difference below this share may be chance: nobody knows how its attempts scattered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How one cell's time stands to another's.

    `verdict` is `faster`, `slower`, `no-difference` or `too-few`. `ratio` is the cell's geometric mean in units
    of the other's, with its interval of 95 % and the p of their being equal; of published figures only the
    ratio is known. `shift` is the same by Hodges–Lehmann, from 12 attempts on. `smallest` is the share by
    which times would have had to differ to be seen, where no difference was; `needed` how many kept attempts
    per cell would tell the difference there is, where they were too few (None: not known, or above 1000).
    """

    verdict: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    shift: tuple[float, float, float] | None = None
    smallest: float | None = None
    needed: int | None = None


def compare(cell: Cell, base: Cell, tool_start_s: float = 0.0) -> Comparison:
    """`cell` held against `base`, two cells of one operation.

    A difference is one if the interval of the ratio leaves out 1 (`lab.analysis.spread.ratio`), and the medians
    are apart the same way by 20 ms and by more than a tool's start. An operation that sends nothing cannot be
    changed by a line or a proxy: what differs there is the client's own unrest, and is never called different.
    """
    if cell.published or base.published:
        return _published(cell, base)
    if cell.median_s is None or base.median_s is None:
        return Comparison(verdict="too-few", needed=LEAST_KEPT)
    found = _ratio(cell, base)
    if found is None or min(cell.kept, base.kept) < LEAST_KEPT:
        return _too_few(found, cell)
    told = Comparison(
        verdict="no-difference",
        ratio=found.value,
        low=found.low,
        high=found.high,
        p=found.p,
        shift=robust.shift(cell.times, base.times),
    )
    if _silent(cell) and _silent(base):
        return told
    least_s = max(LEAST_DIFFERENCE_S, tool_start_s)
    apart = (base.median_s - cell.median_s) if found.value < 1 else (cell.median_s - base.median_s)
    clear = apart >= LEAST_DIFFERENCE_S and apart > tool_start_s
    if found.p < 1 - spread.LEVEL and clear:
        return replace(told, verdict="faster" if found.value < 1 else "slower")
    smallest = max(exp(found.half) - 1, least_s / base.median_s) if base.median_s else None
    return replace(told, smallest=smallest)


def _ratio(cell: Cell, base: Cell) -> spread.Ratio | None:
    if cell.geometric_s is None or base.geometric_s is None or not cell.spread or not base.spread:
        return None
    return spread.ratio(
        (cell.geometric_s, cell.kept, cell.spread), (base.geometric_s, base.kept, base.spread)
    )


def _too_few(found: spread.Ratio | None, cell: Cell) -> Comparison:
    if found is None or cell.spread is None:
        return Comparison(verdict="too-few", needed=LEAST_KEPT)
    apart = abs(log(found.value))
    return Comparison(
        verdict="too-few", ratio=found.value, needed=spread.needed(apart, cell.spread) if apart else None
    )


def _published(cell: Cell, base: Cell) -> Comparison:
    """By sign alone, since published figures have no attempts."""
    if cell.median_s is None or base.median_s is None:
        return Comparison(verdict="too-few")
    value = cell.median_s / base.median_s
    verdict = "faster" if value < 1 else "slower" if value > 1 else "no-difference"
    return Comparison(verdict=verdict, ratio=value)


def _silent(cell: Cell) -> bool:
    counts = list(cell.bytes.values())
    return bool(counts and cell.traffic_trials) and all(
        count is not None and count <= STRAY_BYTES for count in counts
    )
