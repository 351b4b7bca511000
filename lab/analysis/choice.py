"""The question of money in one sentence: the proxy on the old line, against a wider line without it."""

from __future__ import annotations

from collections.abc import Sequence

from lab.analysis import words
from lab.analysis.cells import Cell
from lab.analysis.comparing import Comparison
from lab.analysis.sentences import Sentence, said
from lab.analysis.view import Use, View, comparable_lines, rate_key
from lab.model import DISABLED, Line


def choice(view: View) -> Sentence | None:
    """The old line is the slowest of those that differ in rate alone; the operation is the main one that is served.

    None where the run has no such line with the proxy and a wider one without. Its comparisons are one family.
    """
    lines = comparable_lines(view.lines)
    for name in _served(view):
        for line in lines[:-1]:
            here, base = _fullest(view, name, line), view.at(name, line, DISABLED)
            wider = [
                cell
                for other in lines
                if rate_key(other) > rate_key(line) and (cell := view.at(name, other, DISABLED))
            ]
            if here is None or base is None:
                continue
            pairs = [(here, cell) for cell in wider if view.compared(here, cell) != "too-few"]
            if pairs and view.compared(here, base) != "too-few":
                return _told(here, base, pairs, view.held(pairs))
    return None


def _served(view: View) -> list[str]:
    main = view.main()
    served = [name for name in view.operations if view.use(name) is Use.SERVED]
    return list(dict.fromkeys([*([main] if main in served and main else []), *served]))


def _fullest(view: View, name: str, line: Line) -> Cell | None:
    found = [
        cell
        for cell in view.enabled(name)
        if cell.line == line and cell.verdict in ("faster", "slower", "no-difference")
    ]
    return max(found, key=lambda cell: cell.proxy.full or 0.0, default=None)


def _told(here: Cell, base: Cell, pairs: Sequence[tuple[Cell, Cell]], held: Sequence[Comparison]) -> Sentence:
    """Up to which wider line the proxy on the old line is the quicker one, and from which on the wider line is."""
    wins = [(cell, one) for (_, cell), one in zip(pairs, held, strict=True) if one.verdict == "faster"]
    alike = [
        (cell, one) for (_, cell), one in zip(pairs, held, strict=True) if one.verdict == "no-difference"
    ]
    loses = [(cell, one) for (_, cell), one in zip(pairs, held, strict=True) if one.verdict == "slower"]
    old = words.line(here.line)
    parts = []
    if wins:
        cell, one = wins[-1]
        parts.append(f"quicker than {words.line(cell.line)} without one ({_against(here, cell, one)})")
    if alike:
        parts.append(
            f"as quick as {words.listed([words.line(cell.line) for cell, _ in alike])} without one, as far as was seen"
        )
    if loses:
        cell, one = loses[0]
        parts.append(f"slower than {words.line(cell.line)} without one ({_against(here, cell, one)})")
    rest = words.medians(here, base, *(cell for _, cell in pairs))
    text = (
        f"Proxy or wider line: {words.operation(here.operation)} on {old} takes {words.duration(here.median_s or 0)} "
        f"{words.state(here.proxy)} instead of {words.duration(base.median_s or 0)}, which is "
        f"{words.listed(parts)} ({rest}; {len(pairs)} wider line{'s' * (len(pairs) > 1)})."
    )
    return said("choice", text, [here, base, *(cell for _, cell in pairs)])


def _against(here: Cell, cell: Cell, one: Comparison) -> str:
    there, value = cell.median_s or 0.0, here.median_s or 0.0
    ratio = words.times(words.ratio(max(there, value), min(there, value)))
    return f"{words.duration(there)}, {ratio}{words.sure(one)}"
