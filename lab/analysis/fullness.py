"""Question 5: how the proxy's settings, its state of fullness first of all, change an operation's time."""

from __future__ import annotations

from collections.abc import Sequence

from lab.analysis import words
from lab.analysis.cells import Cell
from lab.analysis.comparing import CHANCE
from lab.analysis.sentences import Sentence, chance, gain, instead, longer, said, unanswered
from lab.analysis.view import Use, View, slowest
from lab.model import Line, ProxyState

_EMPTY, _FULL = ProxyState(full=0), ProxyState(full=100)


def fullness(view: View) -> tuple[Sequence[Sentence], str]:
    """The sentences, that of the headline first, and what a partly full cache has of a full one's gain."""
    more = [*_empty(view), *_partly(view), *_advice(view)]
    name = next((name for name in _by_use(view) if _best_line(view, name)), None)
    line = _best_line(view, name) if name else None
    if name is None or line is None:
        reason = "no operation has three kept attempts in two states of fullness on one line"
        return [unanswered(view, reason), *more], words.NO_NUMBER
    timed = _timed(view, name, line)
    emptiest, fullest = timed[0], timed[-1]
    told, base = _told(view, timed), view.base(fullest)
    verdict = view.compared(fullest, emptiest)
    if verdict == "no-difference":
        ends = f"{words.cache(emptiest.proxy)} and {words.cache(fullest.proxy)}"
        seen = f"Between {ends} no difference was seen on {words.line(line)}."
        return [said("fullness-alike", seen, [emptiest, fullest]), told, *more], "none"
    shared = _share(view, timed)
    if shared:
        return [said("fullness-share", shared[0], [*shared[2], base]), told, *more], shared[1]
    quicker, slower = (fullest, emptiest) if verdict == "faster" else (emptiest, fullest)
    headline = words.times(words.ratio(slower.median_s or 0, quicker.median_s or 0))
    return [told, *more], headline


def _told(view: View, timed: Sequence[Cell]) -> Sentence:
    times = words.listed(
        [f"{words.duration(cell.median_s or 0)} {words.state(cell.proxy)}" for cell in timed]
    )
    base = view.base(timed[-1])
    against = ""
    if base is not None and base.median_s is not None:
        against = f", and {words.duration(base.median_s)} without a proxy"
    where = f"{words.operation(timed[0].operation)} on {words.line(timed[0].line)}"
    return said("fullness", f"{where} takes {times}{against} ({words.rests(*timed)}).", [*timed, base])


def _by_use(view: View) -> list[str]:
    """Operations, the one that traffic speaks of first, then those served, then the rest."""
    main = view.main()
    served = [name for name in view.operations if view.use(name) is Use.SERVED]
    return list(dict.fromkeys([*([main] if main else []), *served, *view.operations]))


def _best_line(view: View, operation: str) -> Line | None:
    """The slowest line on which at least two states of fullness are timed."""
    return slowest(line for line in view.lines if len(_timed(view, operation, line)) > 1)


def _timed(view: View, operation: str, line: Line) -> list[Cell]:
    """Enabled cells of three kept attempts or more, emptiest first."""
    found = [view.at(operation, line, proxy) for proxy in view.states]
    return [cell for cell in found if cell is not None and view.compared(cell, cell) != "too-few"]


def _share(view: View, timed: Sequence[Cell]) -> tuple[str, str, tuple[Cell, Cell]] | None:
    """How much of a full cache's gain a partly full one gives, where both are seen to be faster."""
    fullest, base = timed[-1], view.base(timed[-1])
    partly = [cell for cell in timed[:-1] if cell.verdict == "faster"]
    if base is None or base.median_s is None or fullest.verdict != "faster" or not partly:
        return None
    cell, full = partly[-1], words.cache(fullest.proxy)
    start = words.capital(words.state(cell.proxy))
    name, times = words.operation(cell.operation), [words.duration(c.median_s or 0) for c in (cell, fullest)]
    if view.compared(cell, fullest) == "faster":
        return None
    if view.compared(cell, fullest) != "slower":
        seen = f"{start} no difference from {full} was seen: {name} takes {times[0]} and {times[1]}."
        return seen, "same", (cell, fullest)
    gained = base.median_s - (cell.median_s or 0)
    share = words.share(gained, base.median_s - (fullest.median_s or 0))
    there = f"{name} takes {times[0]} instead of {times[1]}"
    return f"{start} {share} of what {full} gains is there: {there}.", share, (cell, fullest)


def _servable(view: View) -> list[str]:
    return [name for name in view.operations if view.use(name) in (Use.SERVED, Use.UNSEEN)]


def _compared(view: View, proxy: ProxyState) -> list[Cell]:
    """Cells of this state that were compared, of operations that the proxy can serve."""
    return [
        cell
        for name in _servable(view)
        for cell in view.judged(name, "faster", "slower", "no-difference")
        if cell.proxy == proxy
    ]


def _empty(view: View) -> list[Sentence]:
    """Where an empty cache is slower than none, and by how much at most."""
    names = _servable(view)
    held = view.corrected(lambda cell: cell.proxy == _EMPTY and cell.operation in names, together=True)
    compared = _compared(held, _EMPTY)
    slower = [cell for cell in compared if cell.verdict == "slower"]
    if not slower:
        return []
    worst = [
        min((c for c in slower if c.operation == name), key=lambda c: gain(held, c))
        for name in dict.fromkeys(cell.operation for cell in slower)
    ]
    told = words.listed(
        [f"{words.operation(c.operation)} by up to {words.percent(longer(held, c))}" for c in worst]
    )
    everywhere = len(slower) == len(compared)
    count = (
        f"everywhere ({len(compared)} cells)" if everywhere else f"in {len(slower)} of {len(compared)} cells"
    )
    small = sum(longer(held, c) < CHANCE for c in slower if c.published)
    doubt = f", {small} of them below 5 %, which may be chance" if small else ""
    text = f"An empty cache is slower than none {count}: {told} ({words.medians(*compared)}{doubt})."
    return [said("empty", text, [*compared, *map(held.base, compared)])]


def _partly(view: View) -> list[Sentence]:
    """Lines on which a cache that is partly full is already slower than none."""
    found = []
    for proxy in (state for state in view.states if state not in (_EMPTY, _FULL)):
        held = view.corrected(lambda cell, proxy=proxy: cell.proxy == proxy)  # type: ignore[misc]
        for name in view.operations:
            slower = [
                cell for cell in _compared(held, proxy) if cell.operation == name and cell.verdict == "slower"
            ]
            if not slower:
                continue
            told = words.listed([_slower(held, cell) for cell in slower])
            start = f"{words.capital(words.state(proxy))} {words.operation(name)}"
            text = f"{start} is already slower than without a proxy {told} ({words.medians(*slower)})."
            found.append(said("partly-full", text, [*slower, *map(held.base, slower)], lead=False))
    return found


def _slower(view: View, cell: Cell) -> str:
    share = longer(view, cell)
    return f"on {words.line(cell.line)} ({instead(view, cell)}, {words.percent(share)} more{chance(share, [cell])})"


def _advice(view: View) -> list[Sentence]:
    """Keep it full, and do not run it empty: where a full one gains, and an empty one only loses."""
    names = _servable(view)
    held = view.corrected(
        lambda cell: cell.proxy in (_EMPTY, _FULL) and cell.operation in names, together=True
    )
    full, empty = _compared(held, _FULL), _compared(held, _EMPTY)
    gains = [cell for cell in full if cell.verdict == "faster"]
    losses = [cell for cell in empty if cell.verdict == "slower"]
    if not gains or not losses or any(cell.verdict == "faster" for cell in empty):
        return []
    text = (
        f"Keep the cache full; do not run with an empty one (full, it is faster than none in {len(gains)} of "
        f"{len(full)} cells; empty, slower in {len(losses)} of {len(empty)} and faster in none)."
    )
    used = [*full, *empty]
    return [said("advice", text, [*used, *map(held.base, used)])]
