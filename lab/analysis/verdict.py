"""The one sentence that a results page carries as its title: where the proxy pays in time, and where not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lab.analysis import words
from lab.analysis.cells import Cell
from lab.analysis.comparing import CHANCE
from lab.analysis.sentences import unclear
from lab.analysis.view import Use, View, comparable_lines, rate_key
from lab.model import Line, ProxyState


def verdict(view: View) -> str:
    """The title, from the verdicts of the fullest state that was compared. Always a whole sentence.

    The lines of an operation are one family (Holm); a published difference that may be chance is none here.
    """
    proxy = _fullest(view)
    if proxy is None:
        return "Not enough kept attempts to say whether the proxy pays."
    held = _sure(view.corrected(lambda cell: cell.proxy == proxy))
    gaining = [name for name in held.operations if _verdicts(held, name, proxy, "faster")]
    if not gaining:
        return f"{words.capital(words.cache(proxy))} made no operation faster on {_measured(held, proxy)}."
    main = _leading(held, gaining, proxy)
    alike = [name for name in gaining if _pattern(held, name, proxy) == _pattern(held, main, proxy)]
    return _where(held, main, alike, proxy)


def _sure(view: View) -> View:
    cells = [
        replace(cell, verdict="no-difference")
        if cell.published and cell.against and abs((cell.against.ratio or 1.0) - 1) < CHANCE
        else cell
        for cell in view.cells
    ]
    return replace(view, cells=tuple(cells))


def _fullest(view: View) -> ProxyState | None:
    compared = {
        cell.proxy
        for name in view.operations
        for cell in view.judged(name, "faster", "slower", "no-difference")
    }
    return max(compared, key=lambda proxy: proxy.full or 0.0, default=None)


def _verdicts(view: View, operation: str, proxy: ProxyState, *verdicts: str) -> list[Cell]:
    return [cell for cell in view.judged(operation, *verdicts) if cell.proxy == proxy]


def _leading(view: View, names: Sequence[str], proxy: ProxyState) -> str:
    """The operation that is faster on most lines; of equals the one that the proxy serves, then the first."""

    def rank(name: str) -> tuple[int, bool]:
        return len(_verdicts(view, name, proxy, "faster")), view.use(name) is Use.SERVED

    return max(names, key=rank)


def _pattern(view: View, operation: str, proxy: ProxyState) -> list[tuple[Line, str]]:
    """The operation's lines and verdicts, slowest line first."""
    cells = _verdicts(view, operation, proxy, "faster", "slower", "no-difference")
    return sorted(((cell.line, cell.verdict) for cell in cells), key=lambda pair: rate_key(pair[0]))


def _where(view: View, operation: str, alike: Sequence[str], proxy: ProxyState) -> str:
    """On which lines this operation, and those that behave alike, gain: up to a rate, or by name."""
    cells = _pattern(view, operation, proxy)
    gains = [line for line, verdict in cells if verdict == "faster"]
    name, cache = words.listed([words.operation(key) for key in alike]), words.cache(proxy)
    ordered = comparable_lines([line for line, _ in cells])
    if len(ordered) != len(cells) or [line for line, _ in cells[: len(gains)]] != gains:
        lines = words.listed([words.line(line) for line in gains])
        return f"On {lines} {cache} pays for {name}."
    comma = "," if gains[-1].delayed else ""
    up_to = f"Up to {words.line(gains[-1])}{comma} {cache} pays for {name}."
    if len(cells) == 1:
        return f"On {words.line(gains[-1])} {cache} pays for {name}."
    others = _others(view, [key for key in view.operations if key not in alike], proxy)
    if others:
        up_to = f"{up_to.removesuffix('.')}, {others}."
    if len(gains) == len(cells):
        return up_to
    rest = cells[len(gains) :]
    names = {line for line, _ in rest}
    doubtful = any(
        unclear(cell)
        for cell in view.judged(operation, "no-difference")
        if cell.line in names and cell.proxy == proxy
    )
    seen = "it is not clear" if doubtful else _rest_text({verdict for _, verdict in rest})
    return f"{up_to} From {words.line(rest[0][0])} on {seen}."


def _others(view: View, operations: Sequence[str], proxy: ProxyState) -> str:
    """`up to 1/2 Mbit/s for Get`: operations that gain up to another rate."""
    ends: dict[Line, list[str]] = {}
    for name in operations:
        cells = _pattern(view, name, proxy)
        gains = [line for line, verdict in cells if verdict == "faster"]
        if gains and [line for line, _ in cells[: len(gains)]] == gains:
            ends.setdefault(gains[-1], []).append(words.operation(name))
    told = [f"up to {words.line(line)} for {words.listed(names)}" for line, names in ends.items()]
    return words.listed(told)


def _rest_text(verdicts: set[str]) -> str:
    if verdicts == {"slower"}:
        return "it costs time"
    if verdicts == {"no-difference"}:
        return "we see no difference"
    return "it does not"


def _measured(view: View, proxy: ProxyState) -> str:
    lines: list[Line] = []
    for name in view.operations:
        for cell in _verdicts(view, name, proxy, "slower", "no-difference"):
            if cell.line not in lines:
                lines.append(cell.line)
    return words.listed([words.line(line) for line in lines])
