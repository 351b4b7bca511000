"""The answers to the questions of a run: plain sentences from its numbers alone, with what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.analysis import words
from lab.analysis.cells import Cell
from lab.analysis.view import Use, View, comparable_lines, slowest
from lab.model import DISABLED, Line, ProxyState

NO_NUMBER = "—"
"""The headline of an answer that the run does not give."""

_FROM_SERVER = ("server>client", "server>proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One answer. `headline` is its number (`7.4×`, `3 of 6`, `97 %`) or `—` where the run gives none."""

    question: int
    text: str
    headline: str = NO_NUMBER

    @property
    def asked(self) -> str:
        """The question in words."""
        return words.QUESTIONS[self.question]


def findings(view: View) -> tuple[Finding, ...]:
    """The five answers, in order. Each is there in every run; where nothing can be said, it says why."""
    return (gains(view), unused(view), traffic(view), rates(view), fullness(view))


def gains(view: View) -> Finding:
    """1: which operations get faster with the proxy, and how much."""
    faster = {name: _best(view, name) for name in view.operations}
    found = sorted(((_gain(view, cell), cell) for cell in faster.values() if cell), key=_by_gain)
    slower = _slower_though_served(view)
    if found:
        text = _gain_text(view, [cell for _, cell in found])
        return Finding(question=1, text=_sentences(text, slower), headline=words.times(found[0][0]))
    compared = [cell for name in view.operations for cell in view.judged(name, "no-difference", "slower")]
    if not compared:
        return Finding(question=1, text=_unanswered(view, _why_not_compared(view)))
    text = (
        f"None: of {len(compared)} cell{'' if len(compared) == 1 else 's'} with the proxy none was faster "
        f"than the same operation without it on the same line (medians of {words.attempts(*compared)})."
    )
    return Finding(question=1, text=_sentences(text, slower), headline="none")


def unused(view: View) -> Finding:
    """2: which operations do not use the proxy at all, and what passing through it costs them."""
    uses = {name: view.use(name) for name in view.operations}
    known = [name for name, use in uses.items() if use not in (Use.UNKNOWN, Use.UNSEEN)]
    if not known:
        reason = "no trial with the proxy enabled has its traffic on record, or only with an empty cache"
        return Finding(question=2, text=_unanswered(view, reason))
    idle = [name for name in known if uses[name] is not Use.SERVED]
    parts = [_use_text(use, [name for name in idle if uses[name] is use]) for use in Use]
    told = "; ".join(part for part in parts if part)
    if not told:
        told = (
            f"All {len(known)} were served by it" if len(known) > 1 else f"{_names(known)} was served by it"
        )
    seen = [cell for name in known for cell in view.enabled(name) if cell.traffic_trials]
    text = f"{told} ({_basis(*seen)})."
    unseen = _names([name for name, use in uses.items() if use is Use.UNSEEN])
    open_ = f"{unseen} met an empty cache only, so nothing could be served." if unseen else ""
    unknown = _unknown_text(view, [name for name, use in uses.items() if use is Use.UNKNOWN])
    headline = f"{len(idle)} of {len(known)}"
    return Finding(
        question=2, text=_sentences(text, _cost_text(view, idle), open_, unknown), headline=headline
    )


def traffic(view: View) -> Finding:
    """3: how the traffic is shared between client, proxy and server."""
    name = view.main()
    cell = _fullest(view, name) if name else None
    if cell is None:
        return Finding(question=3, text=_unanswered(view, "no trial has its traffic on record"))
    parts = (cell.served_bytes, cell.relayed_bytes, cell.direct_bytes)
    whole = sum(part or 0 for part in parts)
    where = f"{words.operation(cell.operation)} {words.state(cell.proxy)} on {words.line(cell.line)}"
    if not cell.proxy.enabled or not whole or None in parts:
        return Finding(question=3, text=_sentences(f"{where}: {_pairs_text(cell)} ({_basis(cell)})."))
    served, relayed = words.amount(cell.served_bytes or 0), words.amount(cell.relayed_bytes or 0)
    past = words.amount(cell.direct_bytes) if cell.direct_bytes else "nothing"
    share = words.share(cell.served_bytes or 0, whole)
    text = (
        f"Of the {words.amount(whole)} of content of {where}, the proxy served {served} ({share}) "
        f"from its cache, fetched {relayed} from the server, and {past} went past it ({_basis(cell)})."
    )
    return Finding(question=3, text=_sentences(text, _arrived_text(view, cell)), headline=share)


def rates(view: View) -> Finding:
    """4: how the line's rate changes each operation's time."""
    lines = comparable_lines(view.lines)
    if len(lines) < 2:
        only = (
            f"the run has one rate only, {words.line(lines[0])}" if lines else "the run has no limited line"
        )
        return Finding(question=4, text=_unanswered(view, f"{only}; a second rate would show it"))
    ends = (lines[0], lines[-1])
    states = [proxy for proxy in (DISABLED, *reversed(view.states)) if _changes(view, ends, proxy)]
    if not states:
        reason = (
            f"no operation has three kept attempts on both {words.line(ends[0])} and {words.line(ends[1])}"
        )
        return Finding(question=4, text=_unanswered(view, reason))
    told, headline = _rate_text(view, ends, states[0])
    fuller, other = _rate_text(view, ends, states[1], brief=True) if len(states) > 1 else ("", NO_NUMBER)
    return Finding(
        question=4, text=_sentences(told, fuller), headline=headline if headline != "none" else other
    )


def fullness(view: View) -> Finding:
    """5: how the proxy's settings, its state of fullness first of all, change it."""
    name = next((name for name in _by_use(view) if _best_line(view, name)), None)
    line = _best_line(view, name) if name else None
    if name is None or line is None:
        reason = "no operation has three kept attempts in two states of fullness on one line"
        return Finding(question=5, text=_unanswered(view, reason))
    timed = _timed(view, name, line)
    emptiest, fullest = timed[0], timed[-1]
    told = words.listed([f"{words.duration(cell.median_s or 0)} {words.state(cell.proxy)}" for cell in timed])
    base = view.base(fullest)
    against = ""
    if base is not None and base.median_s is not None:
        against = f", and {words.duration(base.median_s)} without a proxy"
    where = f"{words.operation(name)} on {words.line(line)}"
    text = f"{where} takes {told}{against} ({words.rests(*timed)})."
    verdict = view.compared(fullest, emptiest)
    gain = _share_text(view, timed)
    if verdict == "no-difference":
        seen = (
            f"Between {words.cache(emptiest.proxy)} and {words.cache(fullest.proxy)} no difference was seen."
        )
        return Finding(question=5, text=_sentences(text, seen), headline="none")
    if gain:
        return Finding(question=5, text=_sentences(text, gain[0]), headline=gain[1])
    quicker, slower = (fullest, emptiest) if verdict == "faster" else (emptiest, fullest)
    headline = words.times(words.ratio(slower.median_s or 0, quicker.median_s or 0))
    return Finding(question=5, text=_sentences(text), headline=headline)


# 1 ------------------------------------------------------------------------------------------------------


def _best(view: View, operation: str) -> Cell | None:
    return max(view.judged(operation, "faster"), key=lambda cell: _gain(view, cell), default=None)


def _gain(view: View, cell: Cell) -> float:
    """How many times faster than without a proxy (below 1: slower)."""
    base = view.against(cell)
    return words.ratio(base.median_s or 0, cell.median_s or 0)


def _by_gain(pair: tuple[float, Cell]) -> float:
    return -pair[0]


def _gain_text(view: View, best: Sequence[Cell]) -> str:
    first, base = best[0], view.against(best[0])
    told = [
        f"{words.operation(first.operation)} is up to {words.times(_gain(view, first))} as fast: "
        f"{_where(first)} {_instead(view, first)} ({words.rests(first, base)})"
    ]
    for cell in best[1:]:
        told.append(
            f"{words.operation(cell.operation)} up to {words.times(_gain(view, cell))} "
            f"({_where(cell)} {_instead(view, cell)})"
        )
    return f"{'; '.join(told)}."


def _where(cell: Cell) -> str:
    return f"{words.state(cell.proxy)} on {words.line(cell.line)}"


def _instead(view: View, cell: Cell) -> str:
    base = view.against(cell)
    return f"{words.duration(cell.median_s or 0)} instead of {words.duration(base.median_s or 0)}"


def _losses(view: View, worst: Sequence[Cell]) -> str:
    """`Get takes 1.4× the time with …`: the greatest loss with its two times, the others by their ratio."""
    told: list[str] = []
    for cell in sorted(worst, key=lambda cell: _gain(view, cell)):
        base = view.against(cell)
        value = words.times(words.ratio(cell.median_s or 0, base.median_s or 0))
        name = words.operation(cell.operation)
        detail = f"takes {value} the time {_where(cell)} ({_instead(view, cell)})"
        told.append(f"{name} {value}" if told else f"{name} {detail}")
    return "; ".join(told)


def _worst(view: View, operation: str) -> Cell | None:
    return min(view.judged(operation, "slower"), key=lambda cell: _gain(view, cell), default=None)


def _slower_though_served(view: View) -> str:
    """The slower cells of operations that question 2 does not speak of."""
    told = [view.use(name) in (Use.SERVED, Use.UNSEEN, Use.UNKNOWN) for name in view.operations]
    names = [name for name, here in zip(view.operations, told, strict=True) if here]
    worst = [cell for name in names if (cell := _worst(view, name))]
    if not worst:
        return ""
    return f"{_losses(view, worst)}."


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


# 2 ------------------------------------------------------------------------------------------------------


def _use_text(use: Use, names: Sequence[str]) -> str:
    if not names:
        return ""
    many = len(names) > 1
    told = {
        Use.PASSES: f"pass{'' if many else 'es'} through the proxy without being served",
        Use.PAST: f"go{'' if many else 'es'} past it, straight to the server",
        Use.SILENT: f"send{'' if many else 's'} nothing at all",
    }
    return f"{_names(names)} {told[use]}" if use in told else ""


def _cost_text(view: View, names: Sequence[str]) -> str:
    """What the proxy costs the operations that it does not serve."""
    worst = [cell for name in names if (cell := _worst(view, name))]
    if worst:
        rest = words.attempts(*worst, *(view.against(cell) for cell in worst))
        return (
            f"With the proxy enabled {_losses(view, worst)} (medians of {rest}, whose ranges do not overlap)."
        )
    alike = [name for name in names if view.judged(name, "no-difference") and not view.judged(name, "faster")]
    if not alike:
        return ""
    return f"No difference was seen in the time of {_names(alike)}."


def _unknown_text(view: View, names: Sequence[str]) -> str:
    """Operations of which nothing can be said although the plan has them with the proxy."""
    planned = [name for name in names if view.enabled(name)]
    if not planned:
        return ""
    void = sum(cell.void for name in planned for cell in view.enabled(name))
    why = f" ({void} without proof)" if void else ""
    return f"Of {_names(planned)} no trial with the proxy was kept{why}."


# 3 ------------------------------------------------------------------------------------------------------


def _fullest(view: View, operation: str) -> Cell | None:
    """The operation's cell with its traffic: fullest state first, then the slowest line."""
    for proxy in (*reversed(view.states), DISABLED):
        seen = {cell.line: cell for cell in view.of(operation) if cell.proxy == proxy and cell.traffic_trials}
        if (line := slowest(seen)) is not None:
            return seen[line]
    return None


def _pairs_text(cell: Cell) -> str:
    names = (("client>server", "client and server"), ("client>proxy", "client and proxy"))
    backs = {"client>server": "server>client", "client>proxy": "proxy>client"}
    told: list[str] = []
    for pair, name in names:
        count = cell.over(pair, backs[pair])
        told.append(
            f"{words.amount(count)} between {name}" if count is not None else f"unknown between {name}"
        )
    count = cell.over("proxy>server", "server>proxy")
    last = (
        f"{words.amount(count)} between proxy and server" if count is not None else "unknown beyond the proxy"
    )
    return words.listed([*told, last])


def _arrived_text(view: View, cell: Cell) -> str:
    base, here = view.base(cell), cell.over(*_FROM_SERVER)
    if base is None or here is None:
        return ""
    there = base.over(*_FROM_SERVER)
    if not there:
        return ""
    return (
        f"Over the line came {words.amount(here)} from the server instead of {words.amount(there)} "
        f"without a proxy ({words.share(here, there)} of it)."
    )


# 4 ------------------------------------------------------------------------------------------------------


def _changes(view: View, ends: tuple[Line, Line], proxy: ProxyState) -> list[tuple[str, Cell, Cell]]:
    """Per operation its cells on the slow and on the fast line, where both can be compared."""
    found = []
    for name in view.operations:
        slow, fast = view.at(name, ends[0], proxy), view.at(name, ends[1], proxy)
        if slow and fast and view.compared(fast, slow) != "too-few":
            found.append((name, slow, fast))
    return found


def _rate_text(
    view: View, ends: tuple[Line, Line], proxy: ProxyState, *, brief: bool = False
) -> tuple[str, str]:
    changes = _changes(view, ends, proxy)
    moved = [(slow, fast) for _, slow, fast in changes if view.compared(fast, slow) == "faster"]
    moved.sort(key=lambda pair: -words.ratio(pair[0].median_s or 0, pair[1].median_s or 0))
    alike = [name for name, slow, fast in changes if view.compared(fast, slow) == "no-difference"]
    slower = [name for name, slow, fast in changes if view.compared(fast, slow) == "slower"]
    if brief:  # one operation shows it: the one that the proxy serves, where it changed
        moved = [pair for pair in moved if pair[0].operation == view.main()] or moved[:1]
    told = [_speed_text(slow, fast, brief=brief or bool(place)) for place, (slow, fast) in enumerate(moved)]
    rest = []
    if alike and not (brief and moved):
        rest.append(f"no difference was seen for {_names(alike)}")
    if slower:
        rest.append(f"slower on the faster line: {_names(slower)}")
    state = words.state(proxy)
    said = "; ".join([*([words.listed(told)] if told else []), *rest])
    if brief:
        return f"{words.capital(state)}: {said}.", _speed(moved)
    rate = words.times(words.ratio(ends[1].download_bps or 0, ends[0].download_bps or 0))
    start = f"{words.line(ends[1])} instead of {words.line(ends[0])} is {rate} the download rate"
    return f"{start}; {state}: {said}.", _speed(moved)


def _speed(moved: Sequence[tuple[Cell, Cell]]) -> str:
    if not moved:
        return "none"
    return words.times(words.ratio(moved[0][0].median_s or 0, moved[0][1].median_s or 0))


def _speed_text(slow: Cell, fast: Cell, *, brief: bool) -> str:
    value = words.times(words.ratio(slow.median_s or 0, fast.median_s or 0))
    if brief:
        return f"{words.operation(slow.operation)} {value} as fast"
    return (
        f"{words.operation(slow.operation)} is {value} as fast ({words.duration(fast.median_s or 0)} "
        f"instead of {words.duration(slow.median_s or 0)}, {words.rests(fast, slow)})"
    )


# 5 ------------------------------------------------------------------------------------------------------


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


def _share_text(view: View, timed: Sequence[Cell]) -> tuple[str, str] | None:
    """How much of a full cache's gain a partly full one gives, where both are seen to be faster."""
    fullest, base = timed[-1], view.base(timed[-1])
    partly = [cell for cell in timed[:-1] if cell.verdict == "faster"]
    if base is None or base.median_s is None or fullest.verdict != "faster" or not partly:
        return None
    cell, full = partly[-1], words.cache(fullest.proxy)
    start = words.capital(words.state(cell.proxy))
    if view.compared(cell, fullest) == "faster":
        return None
    if view.compared(cell, fullest) != "slower":
        return f"{start} no difference from {full} was seen.", "same"
    gained = base.median_s - (cell.median_s or 0)
    share = words.share(gained, base.median_s - (fullest.median_s or 0))
    return f"{start} {share} of what {full} gains is there.", share


# all ----------------------------------------------------------------------------------------------------


def _names(names: Sequence[str]) -> str:
    return words.listed([words.operation(name) for name in names])


def _sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _basis(*seen: Cell) -> str:
    """What bytes rest on."""
    low, high = min(cell.traffic_trials for cell in seen), max(cell.traffic_trials for cell in seen)
    count = f"{low}" if low == high else f"{low} to {high}"
    return f"median bytes of {count} trial{'' if high == 1 else 's'}{' per cell' if len(seen) > 1 else ''}"


def _unanswered(view: View, reason: str) -> str:
    if not any(cell.kept or cell.traffic_trials for cell in view.cells):
        void = sum(cell.void for cell in view.cells)
        why = f": {void} trial{' is' if void == 1 else 's are'} without proof" if void else ""
        return f"Not answered: the run has no kept attempt{why}."
    return f"Not answered: {reason}."
