"""What is doubtful about an experiment that is right, in words for people, each with what one press would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gui import words
from gui.experiment.asked import Asked
from gui.experiment.edits import Edits
from lab.model import DISABLED, ProxyState

NUMBERS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
USUAL_DELAY_S = 0.02


@dataclass(frozen=True, slots=True)
class Doubt:
    """A sentence or two; the name of the cure, and the cure."""

    text: str
    cure: str = ""
    do: Callable[[], object] | None = None


def doubts(asked: Asked, edits: Edits) -> list[Doubt]:
    """The weightiest first."""
    return [*_states(asked, edits), *_attempts(asked, edits), *_lines(asked, edits)]


def _states(asked: Asked, edits: Edits) -> list[Doubt]:
    states = asked.known_states
    if states and not any(state.enabled for state in states):
        full = ProxyState(full=100)
        text = "The proxy is not asked about: it is disabled in every trial."
        return [Doubt(text, f"Add 100{words.NBSP}% full", lambda: edits.add_state(full, asked))]
    if states and DISABLED not in states:
        text = "Without the state disabled there is nothing to hold the proxy against."
        return [Doubt(text, "Add disabled", lambda: edits.add_state(DISABLED, asked))]
    return []


def _attempts(asked: Asked, edits: Edits) -> list[Doubt]:
    attempts, warm_up = asked.number("attempts"), asked.number("warm_up")
    found = []
    if 0 < attempts - warm_up < 3:
        wanted, count = warm_up + 3, attempts - warm_up
        counted = f"only {NUMBERS[count]} of each cell"
        told = f"{counted} {'is' if count == 1 else 'are'} counted"
        told = f"a line may end with {counted} counted" if asked.until[0] else told
        text = f"{told[:1].upper()}{told[1:]}. A verdict needs three."
        do = lambda: edits.put(f"make {wanted} attempts per cell", "attempts", wanted)  # noqa: E731
        found.append(Doubt(text, f"Make it {wanted} attempts", do))
    if warm_up == 0:
        text = "The first attempt of each cell counts too, although caches of the hosts are cold then."
        do = lambda: edits.put_all(  # noqa: E731
            "make the first attempt warm-up", {"warm_up": 1, "attempts": attempts + 1}
        )
        found.append(Doubt(text, "Add a warm-up", do))
    return found


def _lines(asked: Asked, edits: Edits) -> list[Doubt]:
    found = []
    for one in asked.lines:
        found += [Doubt(f"{text[:1].upper()}{text[1:]}.") for text in one.warnings]
    limited = [(n, one.line, one.price) for n, one in enumerate(asked.lines) if one.line and one.line.limited]
    if limited and not any(line.delay_s for _, line, _ in limited):
        count = len(limited)
        many = NUMBERS[count] if count < len(NUMBERS) else str(count)
        text = f"None of the {many} lines has a delay. Real ones do."
        if count == 2:
            text = "Neither line has a delay. Real ones do."
        if count == 1:
            text = "The line has no delay. Real ones have one."

        def add() -> None:
            made = [(n, replace(line, delay_s=USUAL_DELAY_S), price) for n, line, price in limited]
            edits.write_lines("add a delay of 20 ms to every line", made)

        each = " each" if count > 1 else ""
        found.append(Doubt(text, f"Add 20{words.NBSP}ms{each}", add))
    return found


def sentence(text: str) -> str:
    """A problem's text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."
