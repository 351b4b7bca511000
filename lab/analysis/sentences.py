"""A sentence of an answer, with its rule and the cells that it rests on; and what all rules say alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.analysis import words
from lab.analysis.cells import Cell
from lab.analysis.comparing import CHANCE
from lab.analysis.view import View
from lab.model import Treatment

TIMES, TRAFFIC = "times", "traffic"
"""Which of the tables and charts shows a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """What one rule says. Without one of its `cells` it is not said, or says something else.

    `shown` names the table or chart with its figures. Those that `lead` make up the answer; the others tell more.
    """

    rule: str
    text: str
    cells: tuple[Treatment, ...] = ()
    shown: str = TIMES
    lead: bool = True


def said(
    rule: str, text: str, cells: Iterable[Cell | None] = (), *, shown: str = TIMES, lead: bool = True
) -> Sentence:
    """A sentence and the cells that it used."""
    used = dict.fromkeys(
        Treatment(line=cell.line, operation=cell.operation, state=cell.proxy)
        for cell in cells
        if cell is not None
    )
    return Sentence(rule=rule, text=text, cells=tuple(used), shown=shown, lead=lead)


def named(operations: Sequence[str]) -> str:
    """Operations in words: `Get, Undo Check-Out and Diff`."""
    return words.listed([words.operation(name) for name in operations])


def where(cell: Cell) -> str:
    """`with a full cache on 512/1024 kbit/s`."""
    return f"{words.state(cell.proxy)} on {words.line(cell.line)}"


def instead(view: View, cell: Cell) -> str:
    """`0:06.02 instead of 0:45.10`."""
    base = view.against(cell)
    return f"{words.duration(cell.median_s or 0)} instead of {words.duration(base.median_s or 0)}"


def gain(view: View, cell: Cell) -> float:
    """How many times faster than without a proxy (below 1: slower)."""
    return words.ratio(view.against(cell).median_s or 0, cell.median_s or 0)


def longer(view: View, cell: Cell) -> float:
    """The share by which a cell takes longer than the same without a proxy; infinite against nothing."""
    return words.ratio(cell.median_s or 0, view.against(cell).median_s or 0) - 1


def unclear(cell: Cell) -> bool:
    """True where a comparison by itself showed a difference, and as one of several no longer does."""
    alone = cell.against.verdict if cell.against else ""
    return cell.verdict == "no-difference" and alone in ("faster", "slower")


def best_of(cells: Sequence[Cell], what: str = "best") -> str:
    """`; the best of 6 cells`: out of how many a greatest was taken. Empty for one."""
    return f"; the {what} of {len(cells)} cells" if len(cells) > 1 else ""


def chance(share: float, cells: Iterable[Cell]) -> str:
    """`, which may be chance` for a published difference below 5 %; empty for measured ones."""
    small = abs(share) < CHANCE and any(cell.published for cell in cells)
    return ", which may be chance" if small else ""


def unanswered(view: View, reason: str) -> Sentence:
    """Why a question has no answer."""
    if not any(cell.kept or cell.traffic_trials or cell.published for cell in view.cells):
        void = sum(cell.void for cell in view.cells)
        why = f": {void} trial{' is' if void == 1 else 's are'} without proof" if void else ""
        return said("unanswered", f"Not answered: the run has no kept attempt{why}.")
    return said("unanswered", f"Not answered: {reason}.")
