"""Question 4: how the line's rate changes each operation's time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lab.analysis import line_model, words
from lab.analysis.cells import Cell
from lab.analysis.comparing import Comparison
from lab.analysis.sentences import Sentence, chance, named, said, unanswered
from lab.analysis.view import View, comparable_lines
from lab.model import DISABLED, Line, ProxyState

_Change = tuple[Cell, Cell, Comparison]
"""A cell on the slow line, the same on the fast one, and the second held against the first."""


def rates(view: View) -> tuple[Sequence[Sentence], str]:
    """The sentences, and how many times as fast the fastest line makes what gains most."""
    lines = comparable_lines(view.lines)
    if len(lines) < 2:
        only = (
            f"the run has one rate only, {words.line(lines[0])}" if lines else "the run has no limited line"
        )
        return [unanswered(view, f"{only}; a second rate would show it")], words.NO_NUMBER
    ends = (lines[0], lines[-1])
    states = [proxy for proxy in (DISABLED, *reversed(view.states)) if _changes(view, ends, proxy)]
    if not states:
        reason = (
            f"no operation has three kept attempts on both {words.line(ends[0])} and {words.line(ends[1])}"
        )
        return [unanswered(view, reason)], words.NO_NUMBER
    found, headline = _ends(view, ends, states[0])
    if len(states) > 1:
        fuller, other = _brief(view, ends, states[1])
        found.append(fuller)
        headline = headline if headline != "none" else other
    if (one := _proportion(view, ends)) is not None:
        found.append(one)
    return [*found, *_steps(view, lines), *_directions(view)], headline


def _changes(view: View, ends: tuple[Line, Line], proxy: ProxyState) -> list[_Change]:
    """Per operation its cells on the slow and on the fast line, where both can be compared: one family."""
    pairs = []
    for name in view.operations:
        slow, fast = view.at(name, ends[0], proxy), view.at(name, ends[1], proxy)
        if slow and fast and view.compared(fast, slow) != "too-few":
            pairs.append((slow, fast))
    held = view.held([(fast, slow) for slow, fast in pairs])
    return [(slow, fast, one) for (slow, fast), one in zip(pairs, held, strict=True)]


def _moved(changes: Sequence[_Change]) -> list[_Change]:
    moved = [change for change in changes if change[2].verdict == "faster"]
    return sorted(moved, key=lambda change: -_speed(change))


def _speed(change: _Change) -> float:
    return words.ratio(change[0].median_s or 0, change[1].median_s or 0)


def _headline(moved: Sequence[_Change]) -> str:
    return words.times(_speed(moved[0])) if moved else "none"


def _ends(view: View, ends: tuple[Line, Line], proxy: ProxyState) -> tuple[list[Sentence], str]:
    """What gains most, and then the others."""
    changes = _changes(view, ends, proxy)
    moved = _moved(changes)
    told = [_faster(change, whole=not place) for place, change in enumerate(moved)]
    alike = [slow.operation for slow, _, one in changes if one.verdict == "no-difference"]
    slower = [slow.operation for slow, _, one in changes if one.verdict == "slower"]
    rest = [f"no difference was seen for {named(alike)}"] if alike else []
    rest += [f"slower on the faster line: {named(slower)}"] if slower else []
    rate = words.times(words.ratio(ends[1].download_bps or 0, ends[0].download_bps or 0))
    start = f"{words.line(ends[1])} instead of {words.line(ends[0])} is {rate} the download rate"
    used = [cell for slow, fast, _ in changes for cell in (slow, fast)]
    first, cells = (told[0], moved[0][:2]) if told else ("; ".join(rest), used)
    found = [said("rate", f"{start}; {words.state(proxy)}: {first}.", cells)]
    others = [f"the others: {words.listed(told[1:])}"] if told[1:] else []
    if told and (others or rest):
        found.append(said("rate-others", f"{words.capital('; '.join([*others, *rest]))}.", used))
    return found, _headline(moved)


def _brief(view: View, ends: tuple[Line, Line], proxy: ProxyState) -> tuple[Sentence, str]:
    """One operation shows it: the one that the proxy serves, where it changed."""
    changes = _changes(view, ends, proxy)
    moved = _moved(changes)
    shown = [change for change in moved if change[0].operation == view.main()] or moved[:1]
    if shown:
        parts = words.listed([_faster(change, whole=False) for change in shown])
        used = [
            cell
            for slow, fast, _ in (shown if shown[0][0].operation == view.main() else changes)
            for cell in (slow, fast)
        ]
    else:
        parts = f"no difference was seen for {named([slow.operation for slow, _, _ in changes])}"
        used = [cell for slow, fast, _ in changes for cell in (slow, fast)]
    return said("rate-full", f"{words.capital(words.state(proxy))}: {parts}.", used), _headline(shown)


def _faster(change: _Change, *, whole: bool) -> str:
    slow, fast, one = change
    name, value = words.operation(slow.operation), words.times(_speed(change))
    if not whole:
        return f"{name} {value} as fast"
    return (
        f"{name} is {value} as fast{words.sure(one)} ({words.duration(fast.median_s or 0)} "
        f"instead of {words.duration(slow.median_s or 0)}, {words.rests(fast, slow)})"
    )


def _proportion(view: View, ends: tuple[Line, Line]) -> Sentence | None:
    """That time falls with the rate, and less than the rate grows, where every operation that changed shows it."""
    moved = _moved(_changes(view, ends, DISABLED))
    grown = words.ratio(ends[1].download_bps or 0, ends[0].download_bps or 0)
    if not moved or any(_fastest(change) >= grown for change in moved):
        return None
    first, last = (words.times(_speed(change)) for change in (moved[0], moved[-1]))
    between = f"{first}" if len(moved) == 1 else f"{last} to {first}"
    text = (
        f"Time falls with the rate, but not in proportion: {words.times(grown)} the rate makes "
        f"{len(moved)} operation{'s' * (len(moved) > 1)} {between} as fast."
    )
    return said("proportion", text, [cell for slow, fast, _ in moved for cell in (slow, fast)])


def _fastest(change: _Change) -> float:
    """The most that the change may be, within its interval."""
    low = change[2].low
    return 1 / low if low else _speed(change)


def _steps(view: View, lines: Sequence[Line]) -> list[Sentence]:
    """What each operation gains from one line to the next, where there are more than two; a family each."""
    found = []
    for name in view.operations if len(lines) > 2 else ():
        row = [
            cell for line in lines if (cell := view.at(name, line, DISABLED)) and cell.median_s is not None
        ]
        pairs = [(fast, slow) for slow, fast in pairwise(row) if view.compared(fast, slow) != "too-few"]
        steps = [_step(*pair, one) for pair, one in zip(pairs, view.held(pairs), strict=True)]
        if steps:
            told = words.listed(words.once(steps))
            text = f"Without a proxy {words.operation(name)} {told} ({words.medians(*row)})."
            found.append(said("rate-step", text, [cell for pair in pairs for cell in pair], lead=False))
    return found


def _directions(view: View) -> list[Sentence]:
    """Volumes down and up, where both rates were varied and the model of a line can tell them apart."""
    found = []
    for name in view.operations:
        row = view.of(name, lambda cell: not cell.proxy.enabled)
        fit = line_model.fit(line_model.points(row))
        if fit is None or fit.up_bytes is None or fit.residual is None:
            continue
        down, up = words.amount(round(fit.down_bytes)), words.amount(round(fit.up_bytes))
        text = (
            f"Upload and download told apart: the times of {words.operation(name)} without a proxy fit {down} down "
            f"and {up} up (a model of {len(fit.points)} lines, residual {words.percent(fit.residual)})."
        )
        found.append(said("directions", text, row, lead=False))
    return found


def _step(fast: Cell, slow: Cell, one: Comparison) -> str:
    ends = f"between {words.line(slow.line)} and {words.line(fast.line)}"
    if one.verdict == "no-difference":
        return f"shows no difference {ends}"
    share = 1 - (fast.median_s or 0.0) / (slow.median_s or 1.0)
    verb = "gains" if share > 0 else "loses"
    return f"{verb} {words.percent(abs(share))} {ends}{chance(share, [slow])}"
