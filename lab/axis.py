"""Round ticks for axes of time and bytes, their labels, and labels kept apart. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lab import units

_TIME_STEPS = (
    *(m * 10.0**e for e in range(-4, 1) for m in (1, 2, 5)),
    10.0,
    15.0,
    20.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    900.0,
    1800.0,
    3600.0,
    7200.0,
    14400.0,
)
_LOG_STEPS = (1, 1.5, 2, 3, 5, 7)


def time_ticks(top: float, most: int = 7) -> list[float]:
    """Ticks from zero to at least `top` seconds, at round times."""
    step = next((step for step in _TIME_STEPS if top / step <= most), _TIME_STEPS[-1])
    return [step * n for n in range(math.ceil(top / step - 1e-9) + 1)]


def ticks(top: float, most: int = 5) -> list[float]:
    """Ticks from zero to at least `top`, in steps of 1, 2 or 5 times a power of ten."""
    if top <= 0:
        return [0.0, 1.0]
    size = 10.0 ** math.floor(math.log10(top / most))
    step = next(m * size for m in (1, 2, 5, 10) if top / (m * size) <= most)
    return [step * n for n in range(math.ceil(top / step - 1e-9) + 1)]


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round times (seconds) from `low` to `high` for a log axis, thinned to at most `most`."""
    for steps in (_LOG_STEPS, (1, 2, 5), (1, 3), (1,)):
        found = [value for value in _round_times(low, high, steps) if low <= value <= high]
        if len(found) <= most:
            return found
    return found


def _round_times(low: float, high: float, steps: tuple[float, ...]) -> Iterator[float]:
    """Below ten seconds decades; above, round minutes: 0:10 0:15 0:20 0:30 1:00 2:00 5:00 ..."""
    decade = math.floor(math.log10(low))
    while 10.0**decade < min(10.0, high):
        yield from (step * 10.0**decade for step in steps if step * 10.0**decade < 9.9)
        decade += 1
    minutes = {6: (10, 15, 20, 30, 45), 3: (10, 20, 30), 2: (10, 30), 1: (10,)}[len(steps)]
    yield from (float(second) for second in minutes)
    size = 60.0
    while size < high:
        yield from (step * size for step in steps if step in (1, 2, 3, 5))
        size *= 10


def time_label(seconds: float, top: float = 0.0) -> str:
    """A round time on an axis that reaches `top`: `200 ms`, `1.5 s` below ten, then `0:30`, `5:00`."""
    if seconds == 0:
        return "0:00" if top >= 9.95 else "0"
    if seconds < 0.9995 and top < 1:
        return f"{seconds * 1000:g}{units.NBSP}ms"
    if seconds < 9.95 and top < 9.95:
        return f"{seconds:g}{units.NBSP}s"
    return units.clock_text(seconds)


def spread(places: Sequence[float], step: float, low: float, high: float) -> list[float]:
    """Move sorted places apart until none is nearer than `step`, and all are between `low` and `high`."""
    moved = list(places)
    for _ in range(60):
        changed = False
        for number in range(len(moved) - 1):
            short = step - (moved[number + 1] - moved[number])
            if short > 0.01:
                moved[number] -= short / 2
                moved[number + 1] += short / 2
                changed = True
        if moved and moved[-1] > high:
            moved = [place - (moved[-1] - high) for place in moved]
            changed = True
        if moved and moved[0] < low:
            moved[0] = low
            changed = True
        if not changed:
            break
    return moved
