"""What many attempts allow beside the means: Hodges–Lehmann estimates, and a bootstrap of the median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, sqrt
from typing import TYPE_CHECKING

from lab.analysis.spread import LEAST_TIME_S, LEVEL

if TYPE_CHECKING:
    import numpy as np

LEAST = 12
"""From so many kept attempts on. With fewer, ranks cannot exclude anything at 95 % that is worth saying."""
DRAWS = 2000
_Z = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class Middle:
    """A cell's middle without a normal distribution: Hodges–Lehmann and its interval, the median's interval; s."""

    middle_s: float
    low_s: float
    high_s: float
    median_low_s: float
    median_high_s: float


def middle(times: Sequence[float]) -> Middle | None:
    """From the kept times of a cell, in seconds; None below `LEAST` of them.

    Hodges–Lehmann: the median of the means of all pairs, of logs, with the interval of Wilcoxon's signed
    ranks (Hollander & Wolfe, Nonparametric Statistical Methods, 3.2 and 3.3, normal approximation). The
    median's interval is a percentile bootstrap (Efron & Tibshirani, An Introduction to the Bootstrap, ch. 13)
    of 2000 draws with a fixed seed.
    """
    if len(times) < LEAST:
        return None
    import numpy as np

    values = _logs(times)
    count = len(values)
    first, second = np.triu_indices(count)
    means = np.sort((values[first] + values[second]) / 2)
    spread = sqrt(count * (count + 1) * (2 * count + 1) / 24)
    low, centre, high = np.exp(_within(means, count * (count + 1) / 4, spread))
    draws = np.random.default_rng(2008).choice(values, size=(DRAWS, count))
    edge = (1 - LEVEL) / 2
    below, above = np.exp(np.quantile(np.median(draws, axis=1), [edge, 1 - edge]))
    return Middle(
        middle_s=float(centre),
        low_s=float(low),
        high_s=float(high),
        median_low_s=float(below),
        median_high_s=float(above),
    )


def shift(times: Sequence[float], base: Sequence[float]) -> tuple[float, float, float] | None:
    """One cell's time in units of another's, with its interval; None below `LEAST` attempts in either.

    Hodges–Lehmann: the median of all differences of logs, with the interval of Wilcoxon's rank sum
    (Hollander & Wolfe, 4.2 and 4.3, normal approximation).
    """
    if min(len(times), len(base)) < LEAST:
        return None
    import numpy as np

    apart = np.sort(np.subtract.outer(_logs(times), _logs(base)).ravel())
    spread = sqrt(apart.size * (len(times) + len(base) + 1) / 12)
    low, centre, high = np.exp(_within(apart, apart.size / 2, spread))
    return float(centre), float(low), float(high)


def _logs(times: Sequence[float]) -> np.ndarray:
    import numpy as np

    found: np.ndarray = np.log(np.maximum(np.asarray(times, dtype=float), LEAST_TIME_S))
    return found


def _within(ordered: np.ndarray, mean: float, spread: float) -> list[float]:
    """Lower end, middle and upper end, by the rank statistic's mean and spread."""
    place = max(0, floor(mean - _Z * spread))
    half = len(ordered) // 2
    middle = (ordered[half] + ordered[-1 - half]) / 2
    return [float(ordered[place]), float(middle), float(ordered[-1 - place])]
