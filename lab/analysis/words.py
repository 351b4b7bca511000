"""How a result is said: times, bytes, shares, ratios, lines and proxy states in plain English."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from lab import units
from lab.analysis.cells import Cell
from lab.analysis.comparing import Comparison
from lab.model import OPERATION_NAMES, Experiment, Line, ProxyState

NO_NUMBER = "—"
"""The headline of an answer that the run does not give."""

QUESTIONS = {
    1: "Which operations get faster with the proxy, and how much?",
    2: "Which operations do not use the proxy at all?",
    3: "How is the traffic shared between client, proxy and server?",
    4: "How does the line's rate change each operation's time?",
    5: "How does the proxy's state of fullness change it?",
}
"""The questions that a run answers by itself."""


def operation(key: str) -> str:
    """The operation's name on screen."""
    return OPERATION_NAMES.get(key, key)


def listed(words: Sequence[str]) -> str:
    """`Get`, `Get and Diff`, `Get, Undo Check-Out and Diff`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def at_once(experiment: Experiment) -> str:
    """`3 clients at once`, `desk-1 and desk-2 at once`; empty where one does it alone."""
    if experiment.at_once < 2:
        return ""
    clients = experiment.clients
    if isinstance(clients, int) or len(clients) > 3:
        return f"{experiment.at_once} clients at once"
    return f"{listed(clients)} at once"


def once(parts: Sequence[str]) -> list[str]:
    """The same parts, each without its first word where that of the part before is the same."""
    first = ""
    found = []
    for part in parts:
        verb, _, rest = part.partition(" ")
        found.append(rest if verb == first else part)
        first = verb
    return found


def duration(seconds: float) -> str:
    """A measured time: `840 ms` under a second, else `m:ss.ss`, from an hour on `h:mm:ss`."""
    return units.time_text(seconds)


def amount(count: int) -> str:
    """Bytes: `340 bytes`, `22.1 kB`, `3.1 MB`; 1 kB = 1000 bytes."""
    return "1 byte" if count == 1 else units.bytes_text(count)


def share(part: float, whole: float) -> str:
    """A share in percent. Never `0 %` or `100 %` for what only comes near it."""
    percent = 100 * part / whole
    if 0 < percent < 1 or 99 < percent < 100:
        return f"{min(max(percent, 0.1), 99.9):.1f} %"
    return f"{percent:.0f} %"


def ratio(larger: float, smaller: float) -> float:
    """How many times `smaller` goes into `larger`; infinite for zero."""
    return larger / smaller if smaller > 0 else float("inf")


def times(value: float) -> str:
    """A ratio: `1.04×`, `7.4×`, `15×`."""
    if not isfinite(value):
        return "many times"
    return f"{value:.2f}×" if value < 1.095 else f"{value:.1f}×" if value < 9.95 else f"{value:.0f}×"


def cache(proxy: ProxyState) -> str:
    """An enabled state: `an empty cache`, `a full cache`, `a cache 90 % full`."""
    full = proxy.full or 0
    if full in (0, 100):
        return "a full cache" if full else "an empty cache"
    return f"a cache {full:g} % full"


def state(proxy: ProxyState) -> str:
    """`without a proxy`, `with an empty cache`, `with a full cache`, `with a cache 90 % full`."""
    return f"with {cache(proxy)}" if proxy.enabled else "without a proxy"


def capital(text: str) -> str:
    """The text with a capital letter, as a sentence begins."""
    return text[:1].upper() + text[1:]


def line(value: Line) -> str:
    """`512/1024 kbit/s`, `2/4 Mbit/s 40 ms`, `the line as it is`."""
    return units.line_text(value) if value.limited else "the line as it is"


def medians(*cells: Cell) -> str:
    """What times rest on: `medians of 3 kept attempts`; `published`."""
    if any(cell.published for cell in cells):
        return "published"
    return f"median{'s' * (len(cells) > 1)} of {attempts(*cells)}"


def attempts(*cells: Cell) -> str:
    """What medians rest on, in words: `3 kept attempts`, `2 to 3 kept attempts`."""
    low, high = min(cell.kept for cell in cells), max(cell.kept for cell in cells)
    if low == high:
        return f"{low} kept attempt{'' if low == 1 else 's'}"
    return f"{low} to {high} kept attempts"


def span(cell: Cell) -> str:
    """The range of a cell's kept attempts: `0:06.02–0:06.11`."""
    if cell.low_s is None or cell.high_s is None:
        return "no range"
    low, high = duration(cell.low_s), duration(cell.high_s)
    if low == high:
        return low
    return f"{low.removesuffix(' ms')}–{high}" if high.endswith(" ms") else f"{low}–{high}"


def rests(*cells: Cell) -> str:
    """What a sentence rests on: `medians of 3 kept attempts, ranges 800–840 ms and …`; `published`."""
    if any(cell.published for cell in cells):
        return "published"
    spans = listed([span(cell) for cell in cells])
    return f"{medians(*cells)}, range{'s' * (len(cells) > 1)} {spans}"


def percent(share: float) -> str:
    """A share or a change in percent, whole; what lies half-way keeps its half: `9 %`, `10.5 %`, `0.4 %`."""
    if not isfinite(share) or share >= 100:
        return "many times"
    value = f"{100 * share:.1f}"
    if abs(100 * share) < 0.95 or value.endswith(".5"):
        return f"{value} %"
    return f"{100 * share:.0f} %"


def change(factor: float) -> str:
    """A change of time: `3 % slower`, `9 % faster`, `no slower` for none."""
    if factor == 1:
        return "no slower"
    return f"{percent(abs(factor - 1))} {'slower' if factor > 1 else 'faster'}"


def sure(one: Comparison | None) -> str:
    """The interval of a ratio, as times faster or slower, in brackets: ` (95 %: 7.2–7.6×)`; empty for none."""
    if one is None or one.ratio is None or one.low is None or one.high is None:
        return ""
    low, high = (1 / one.high, 1 / one.low) if one.ratio < 1 else (one.low, one.high)
    ends = dict.fromkeys(f"{end:.2f}" if end < 1.995 else times(end).removesuffix("×") for end in (low, high))
    return f" (95 %: {'–'.join(ends)}×)"
