"""Sentences around a figure: a title that says what is to be seen, what its points are, how it was measured.

The titles repeat the verdicts of the cells; they judge nothing themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from lab import palette, units
from lab.analysis import words
from lab.analysis.cells import Cell
from lab.analysis.comparing import STRAY_BYTES
from lab.analysis.summary import Summary
from lab.analysis.view import View, rate_key
from lab.model import Line, ProxyState
from lab.rows import utc
from lab.units import NBSP

INSIDE = palette.PAIR_DIRECTIONS["client-proxy"]
"""Directions that stay inside the office."""
OVER = (*palette.PAIR_DIRECTIONS["proxy-server"], *palette.PAIR_DIRECTIONS["client-server"])
"""Directions that cross the line."""
_BASIS = re.compile(r" \((?![^()]*published)(?=[^()]*(?:kept attempt|median|range|trial|\d cells))[^()]*\)")


def brief(text: str) -> str:
    """The sentences of an answer without what they rest on, which stands in brackets in them."""
    return _BASIS.sub("", text)


def short(text: str, most: int = 240) -> str:
    """The first sentences of an answer, so many that they have not many more characters than `most`."""
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z])", brief(text))
    told = sentences[0]
    for sentence in sentences[1:]:
        if len(told) + len(sentence) > most:
            break
        told += f" {sentence}"
    return told


def state(proxy: ProxyState) -> str:
    """A state's name in a legend or a head: `disabled`, `90 % full`."""
    return "disabled" if proxy.full is None else f"{units.percent_text(proxy.full)}{NBSP}full"


def by_operation(view: View, line: Line) -> str:
    """What the fullest cache does to the operations on one line."""
    proxy = _fullest(view)
    where, cells = words.line(line), [cell for cell in view.cells if cell.line == line]
    judged = [cell for cell in cells if cell.proxy == proxy]
    if proxy is None:
        return f"The times of {_many(len(view.operations), 'operation')} on {where}, in one proxy state only."
    told = [
        f"{words.listed([words.operation(cell.operation) for cell in judged if cell.verdict == verdict])} {verdict}"
        for verdict in ("faster", "slower")
        if any(cell.verdict == verdict for cell in judged)
    ]
    cache = words.cache(proxy)
    if told:
        return f"On {where} {cache} makes {words.listed(told)}."
    if any(cell.verdict == "no-difference" for cell in judged):
        return f"On {where} {cache} makes no operation faster or slower."
    return f"On {where} too few attempts were kept to compare the proxy's states."


def against_line(view: View, operation: str, among: Sequence[Cell]) -> str:
    """What the fullest cache does to one operation, and on which line most, by its cells on some lines."""
    proxy, name = _fullest(view), words.operation(operation)
    cells = [cell for cell in among if cell.proxy == proxy]
    gains = sorted((cell for cell in cells if cell.verdict == "faster"), key=lambda cell: -_gain(view, cell))
    timed = [cell for cell in among if cell.median_s is not None]
    if proxy is None or not any(cell.proxy.enabled for cell in timed):
        return _by_rate(timed) if timed else f"No attempt of {name} was kept."
    cache = words.cache(proxy)
    if gains:
        best = words.times(_gain(view, gains[0])).removesuffix("×")
        return f"{words.capital(cache)} makes {name} {best} times as fast on {words.line(gains[0].line)}{_rest(cells)}."
    slower = [cell for cell in cells if cell.verdict == "slower"]
    if slower:
        where = words.listed([words.line(cell.line) for cell in slower])
        return f"{words.capital(cache)} makes {name} slower on {where}."
    if any(cell.verdict == "no-difference" for cell in cells):
        return f"{words.capital(cache)} makes no difference to {name}."
    return f"Too few attempts of {name} were kept to compare the proxy's states."


def traffic(view: View, operation: str, cells: Sequence[Cell]) -> str:
    """How much crosses the line, without a proxy and with the fullest cache."""
    name = words.operation(operation)
    known = [cell for cell in cells if cell.traffic_trials and cell.over(*OVER) is not None]
    if not known:
        return f"No trial of {name} has its traffic on record."
    line = min((cell.line for cell in known), key=rate_key)
    here = sorted(
        (c for c in known if c.line == line), key=lambda c: -1.0 if c.proxy.full is None else c.proxy.full
    )
    most, least = here[0], here[-1]
    told = f"{'An' if name[:1] in 'AEIOU' else 'A'} {name} {_moved(least)} {words.state(least.proxy)}"
    if most is not least:
        if _moved(most) == _moved(least):
            told = told.replace(" over the line", " over the line,") + f" as {words.state(most.proxy)}"
        else:
            other = _moved(most).removeprefix("moves ").removesuffix(" over the line")
            told += f", and {other} {words.state(most.proxy)}"
    return f"{told} ({words.line(line)})." if len({cell.line for cell in cells}) > 1 else f"{told}."


def _moved(cell: Cell) -> str:
    count = cell.over(*OVER) or 0
    return (
        f"moves {words.amount(count)} over the line" if count > STRAY_BYTES else "moves nothing over the line"
    )


def attempts(operation: str, line: Line, count: int) -> str:
    """The attempts of one operation."""
    name, where = words.operation(operation), words.line(line)
    if not count:
        return f"No attempt of {name} on {where} was kept."
    return f"{_many(count, 'attempt')} of {name} on {where} stand in the order in which they were made."


def sub_time(cells: Sequence[Cell]) -> str:
    """What the points of a figure of times are."""
    timed = [cell for cell in cells if cell.median_s is not None]
    if not timed:
        return "no kept attempt"
    counts = sorted({cell.kept for cell in timed})
    if not counts[-1]:
        return "published times, without single attempts"
    kept = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    bars = ""
    if counts[-1] > 1:
        interval = any(getattr(cell, "mean_low_s", None) is not None for cell in timed)
        bars = f"; bars: {'95 % interval of the geometric mean' if interval else 'their range'}"
    return f"median of {kept} kept attempt{'' if counts[-1] == 1 else 's'}{bars}"


def sub_traffic(cells: Sequence[Cell]) -> str:
    """What the bars of a figure of traffic are."""
    counts = sorted({cell.traffic_trials for cell in cells if cell.traffic_trials})
    if not counts:
        return "no traffic on record"
    trials = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"median of {trials} trial{'' if counts[-1] == 1 else 's'}, counted where it arrives; pale: upload"


def source(summary: Summary) -> str:
    """The foot of a slide: which run, when; or who published it."""
    if summary.source:
        return f"published: {summary.source.partition(':')[0]}"
    return f"BranchLab, run {summary.started.run}, {day(summary.started.at)}"


def day(at: str) -> str:
    """`3 June 2026 UTC`, or the text itself if it is no moment."""
    try:
        moment: datetime = utc(at)
    except ValueError:
        return at
    return f"{moment.day} {moment:%B %Y} UTC"


def measured(summary: Summary, sub: str) -> str:
    """For who speaks about a figure: how it was measured, and how much of it stands."""
    started, experiment = summary.started, summary.started.experiment
    if summary.source:
        return f"Shown: {sub}. Not measured with BranchLab, but published: {summary.source}."
    order = {
        "blocks": "in blocks (one attempt of every cell, shuffled), so that a drift touches all states alike"
    }.get(experiment.order, f"in the order `{experiment.order}`")
    warm = (
        f", of which the first {experiment.warm_up} {'is' if experiment.warm_up == 1 else 'are'} not counted"
    )
    standings = ", ".join(f"{count} {name}" for name, count in sorted(summary.standings.items()))
    return (
        f"Shown: {sub}. Measured in the lab {started.lab or 'of this run'} with {experiment.vcs}, "
        f"{_many(experiment.attempts, 'attempt')} per cell{warm if experiment.warm_up else ''}, {order}. "
        "A limited line was read back from the kernel before and after every trial; a trial that could not prove "
        f"its line, its cache's fullness and its way is not counted. Trials by standing: {standings or 'none'}. "
        f"Run {started.run}, begun {day(started.at)}, seed {experiment.seed}."
    )


def _fullest(view: View) -> ProxyState | None:
    return view.states[-1] if view.states and any(not cell.proxy.enabled for cell in view.cells) else None


def _gain(view: View, cell: Cell) -> float:
    base = view.base(cell)
    if base is None or base.median_s is None or cell.median_s is None:
        return 0.0
    return words.ratio(base.median_s, cell.median_s)


def _rest(cells: Sequence[Cell]) -> str:
    """Where it is not faster, in the words of the verdicts."""
    even = [words.line(cell.line) for cell in cells if cell.verdict == "no-difference"]
    slower = [words.line(cell.line) for cell in cells if cell.verdict == "slower"]
    told = f"; no difference is seen on {words.listed(even)}" if even else ""
    return told + (f"; it is slower on {words.listed(slower)}" if slower else "")


def _by_rate(timed: Sequence[Cell]) -> str:
    ordered = sorted(timed, key=lambda cell: rate_key(cell.line))
    ends = [f"{words.duration(cell.median_s or 0)} on {words.line(cell.line)}" for cell in ordered]
    told = ends[0] if len(ends) == 1 else f"{ends[0]} and {ends[-1]}"
    return f"{words.operation(ordered[0].operation)} takes {told}."


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
