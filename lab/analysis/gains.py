"""Question 1: which operations get faster with the proxy, and how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab import units
from lab.analysis import line_model, words
from lab.analysis.cells import Cell
from lab.analysis.sentences import (
    Sentence,
    best_of,
    chance,
    gain,
    instead,
    longer,
    said,
    unanswered,
    unclear,
    where,
)
from lab.analysis.view import Use, View, comparable_lines
from lab.model import DISABLED, Line, ProxyState


def gains(view: View) -> tuple[Sequence[Sentence], str]:
    """The sentences, and the greatest gain. The cells of an operation are one family of comparisons."""
    held = view.corrected()
    faster = [(gain(held, cell), cell) for name in held.operations if (cell := _best(held, name))]
    faster.sort(key=lambda pair: -pair[0])
    losses = _losses(held)
    by_line = [one for name in view.operations if (one := _by_line(view, name))]
    by_line += [one for name in view.operations for one in _break_evens(view, name)]
    if faster:
        told = [_gain(held, cell, whole=not place) for place, (_, cell) in enumerate(faster)]
        return [*told, *losses, *by_line], words.times(faster[0][0])
    compared = [cell for name in held.operations for cell in held.judged(name, "no-difference", "slower")]
    if not compared:
        return [unanswered(view, _why_not_compared(view))], words.NO_NUMBER
    text = (
        f"None: of {len(compared)} cell{'' if len(compared) == 1 else 's'} with the proxy none was faster "
        f"than the same operation without it on the same line ({words.medians(*compared)})."
    )
    none = said("no-gain", text, [*compared, *map(held.base, compared)])
    return [none, *losses, *by_line], "none"


def _best(view: View, operation: str) -> Cell | None:
    return max(view.judged(operation, "faster"), key=lambda cell: gain(view, cell), default=None)


def _all_compared(view: View, operation: str) -> tuple[Cell, ...]:
    return view.judged(operation, "faster", "slower", "no-difference")


def _gain(view: View, cell: Cell, *, whole: bool) -> Sentence:
    base, others = view.against(cell), _all_compared(view, cell.operation)
    rest = words.rests(cell, base) if whole else words.medians(cell, base)
    text = (
        f"{words.operation(cell.operation)} is up to {words.times(gain(view, cell))} as fast"
        f"{words.sure(cell.against)}: {where(cell)} {instead(view, cell)} ({rest}{best_of(others)})."
    )
    return said("gain", text, [cell, base, *others, *map(view.base, others)])


def _losses(view: View) -> list[Sentence]:
    """The slower cells of operations that question 2 does not speak of."""
    found = []
    for name in view.operations:
        slower = view.judged(name, "slower")
        if not slower or view.use(name) not in (Use.SERVED, Use.UNSEEN, Use.UNKNOWN):
            continue
        worst = min(slower, key=lambda cell: gain(view, cell))
        # What an empty cache costs is told by question 5.
        found.append(loss(view, worst, _all_compared(view, name), lead=worst.proxy.full != 0))
    return found


def loss(
    view: View, worst: Cell, others: Sequence[Cell], *, lead: bool = True, whole: bool = True
) -> Sentence:
    """`Get takes 1.4× the time with …`: the greatest loss of an operation; without its times if not `whole`."""
    base = view.against(worst)
    value = words.times(words.ratio(worst.median_s or 0, base.median_s or 0))
    used = [worst, base, *others, *map(view.base, others)]
    if not whole:
        text = f"{words.operation(worst.operation)} takes {value} the time{_in_brackets(others)}."
        return said("loss", text, used, lead=lead)
    text = (
        f"{words.operation(worst.operation)} takes {value} the time{words.sure(worst.against)} {where(worst)} "
        f"({instead(view, worst)}{chance(longer(view, worst), [worst])}){_in_brackets(others)}."
    )
    return said("loss", text, used, lead=lead)


def _in_brackets(others: Sequence[Cell]) -> str:
    many = best_of(others, "worst").removeprefix("; ")
    return f" ({many})" if many else ""


def _by_line(view: View, operation: str) -> Sentence | None:
    """What the fullest state gains on each line, from slow to fast; these are one family."""
    every = _all_compared(view, operation)
    proxy = max((cell.proxy for cell in every), key=lambda state: state.full or 0.0, default=None)
    held = view.corrected(lambda cell: cell.proxy == proxy)
    here = {cell.line: cell for cell in _all_compared(held, operation) if cell.proxy == proxy}
    row = [here[line] for line in comparable_lines(tuple(here))]
    if proxy is None or len(row) < 2 or not any(cell.verdict == "faster" for cell in row):
        return None
    told = words.listed(words.once([_on_line(view, cell) for cell in row]))
    text = f"{words.capital(words.state(proxy))} {words.operation(operation)} {told} ({words.medians(*row)})."
    return said("gain-by-line", text, [*row, *map(view.base, row)], lead=False)


def _on_line(view: View, cell: Cell) -> str:
    base = view.against(cell).median_s or 0.0
    share = 1 - (cell.median_s or 0.0) / base if base else 0.0
    line = words.line(cell.line)
    if unclear(cell):
        return f"shows no clear difference on {line}"
    if cell.verdict == "no-difference":
        smallest = cell.against.smallest if cell.against else None
        seen = f" ({words.percent(smallest)} would show)" if smallest is not None else ""
        return f"shows no difference on {line}{seen}"
    verb = "gains" if share > 0 else "loses"
    return f"{verb} {words.percent(abs(share))} on {line}{chance(share, [cell])}"


def _break_evens(view: View, operation: str) -> list[Sentence]:
    """The rate at which a state and none take the same time, where the model of a line may say so."""
    rows = {proxy: view.of(operation, _in(proxy)) for proxy in (DISABLED, *view.states)}
    fits = {proxy: line_model.fit(line_model.points(row)) for proxy, row in rows.items()}
    none = fits.pop(DISABLED)
    found = []
    for proxy, one in fits.items():
        at = line_model.break_even(one, none) if one is not None and none is not None else None
        if at is None:
            continue
        ends = " and ".join(words.line(_line(rows[proxy], point)) for point in (at.below, at.above))
        start = f"{words.capital(words.state(proxy))} and without one {words.operation(operation)} takes the same time"
        rate = f"about {units.rate_text(at.download_bps)} of download"
        text = f"{start} at {rate}, between {ends} (a model of {len(rows[proxy])} lines)."
        found.append(said("break-even", text, [*rows[proxy], *rows[DISABLED]], lead=False))
    return found


def _in(proxy: ProxyState) -> Callable[[Cell], bool]:
    return lambda cell: cell.proxy == proxy


def _line(row: Sequence[Cell], point: line_model.Point) -> Line:
    rates = (point.upload_bps, point.download_bps)
    return next(cell.line for cell in row if (cell.line.upload_bps, cell.line.download_bps) == rates)


def _why_not_compared(view: View) -> str:
    enabled = [cell for name in view.operations for cell in view.enabled(name)]
    if not enabled:
        return "the run has no trial with the proxy enabled"
    if not any(view.base(cell) for cell in enabled):
        return "the run has no trial without a proxy to compare with"
    void = sum(cell.void for cell in enabled)
    if void and not any(cell.kept for cell in enabled):
        return (
            f"{void} trial{' is' if void == 1 else 's are'} without proof, and none with the proxy was kept"
        )
    return "no line and operation has three kept attempts both with and without the proxy"
