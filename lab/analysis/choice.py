"""The question of money in one sentence: the proxy on the old line, against a wider line without it."""

from __future__ import annotations

from collections.abc import Sequence

from lab.analysis import words
from lab.analysis.cells import Cell
from lab.analysis.comparing import Comparison
from lab.analysis.sentences import Sentence, named, said
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
                return _told(view, here, base, pairs)
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


def _told(view: View, here: Cell, base: Cell, pairs: Sequence[tuple[Cell, Cell]]) -> Sentence:
    """The widest line that the proxy on the old one beats, the first that beats it, and those alike between."""
    held = list(zip([cell for _, cell in pairs], view.held(pairs), strict=True))
    wins = [pair for pair in held if pair[1].verdict == "faster"][-1:]
    alike = [pair for pair in held if pair[1].verdict == "no-difference"]
    loses = [pair for pair in held if pair[1].verdict == "slower"][:1]
    parts = words.listed([_against(here, *pair) for pair in (*wins, *alike, *loses)])
    idle, idle_cells = _wider_only(view, here.line, pairs[-1][1].line)
    others = f"; {named(idle)} gain{'s' * (len(idle) == 1)} by a wider line only" if idle else ""
    rest = words.medians(here, base, *(cell for _, cell in pairs))
    text = (
        f"Proxy or wider line: {words.operation(here.operation)} takes {words.duration(here.median_s or 0)} on "
        f"{words.line(here.line)} {words.state(here.proxy)} ({words.duration(base.median_s or 0)} without a proxy), "
        f"against {parts}{others} ({rest}; {len(pairs)} wider line{'s' * (len(pairs) > 1)})."
    )
    return said("choice", text, [here, base, *(cell for _, cell in pairs), *idle_cells])


def _against(here: Cell, cell: Cell, one: Comparison) -> str:
    there, value = cell.median_s or 0.0, here.median_s or 0.0
    ratio = words.times(words.ratio(max(there, value), min(there, value)))
    if one.verdict == "no-difference":
        seen = "no difference was seen"
    else:
        seen = (
            f"the {'proxy' if one.verdict == 'faster' else 'wider line'} is {ratio} as fast{words.sure(one)}"
        )
    return f"{words.duration(there)} on {words.line(cell.line)} without one ({seen})"


def _wider_only(view: View, old: Line, widest: Line) -> tuple[list[str], list[Cell]]:
    """Operations that the proxy does not serve, and that are faster on the widest line; one family."""
    pairs = [
        (fast, slow)
        for name in view.operations
        if view.use(name) in (Use.PASSES, Use.PAST)
        and (fast := view.at(name, widest, DISABLED)) is not None
        and (slow := view.at(name, old, DISABLED)) is not None
    ]
    held = zip(pairs, view.held(pairs), strict=True)
    found = [pair for pair, one in held if one.verdict == "faster"]
    return [fast.operation for fast, _ in found], [cell for pair in found for cell in pair]
