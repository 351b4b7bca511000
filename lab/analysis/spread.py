"""How much times scatter, and what may be said of them: one spread per operation, intervals, a test, Holm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt

LEVEL = 0.95
"""Every interval is one of 95 %."""
UNEQUAL = 0.05
"""Below this p of Bartlett's test spreads are called unequal."""
LEAST_TIME_S = 1e-6
"""Shorter times are taken for this long: no clock of a host is finer, and zero has no logarithm."""
LEAST_SD = 1e-4
"""A smaller spread than a ten-thousandth is the clock's own; no test tells two such apart."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviation of the natural log of the time (0.01: about 1 %), and its degrees of freedom.

    `own` is True where it is the cell's own, since spreads of the operation are unequal.
    """

    sd: float
    degrees: int
    own: bool = False


@dataclass(frozen=True, slots=True)
class Ratio:
    """How long one cell takes in units of another: ratio of geometric means, its interval of 95 %, and p.

    `p` is that of the two-sided test that the ratio is 1. `half` is half the interval's width, of logs.
    """

    value: float
    low: float
    high: float
    p: float
    half: float


def logs(times: Sequence[float]) -> list[float]:
    """Natural logs of times in seconds."""
    return [log(max(time, LEAST_TIME_S)) for time in times]


def geometric(times: Sequence[float]) -> float:
    """The geometric mean, in seconds: exp of the mean of the logs."""
    return exp(sum(logs(times)) / len(times))


def spreads(samples: Sequence[Sequence[float]]) -> tuple[Spread | None, ...]:
    """The spread for each sample (the kept times of one cell) of one operation.

    The pooled one, s² = Σ Σ (ln t − mean of its cell)² / (attempts − cells), with attempts − cells degrees of
    freedom (the error mean square of a one-way analysis of variance; Box, Hunter & Hunter, Statistics for
    Experimenters, ch. 4), so that three attempts a cell are enough. Where Bartlett's test finds unequal
    spreads, each cell of two attempts or more has its own. None where no cell has two attempts.
    """
    filled = [logs(times) for times in samples if times]
    squares = [_squares(values) for values in filled]
    degrees = sum(len(values) - 1 for values in filled)
    if degrees < 1:
        return tuple(None for _ in samples)
    pooled = Spread(sqrt(sum(squares) / degrees), degrees)
    if unequal(samples) >= UNEQUAL:
        return tuple(pooled for _ in samples)
    return tuple(
        Spread(sqrt(_squares(logs(times)) / (len(times) - 1)), len(times) - 1, own=True)
        if len(times) > 1
        else pooled
        for times in samples
    )


def unequal(samples: Sequence[Sequence[float]]) -> float:
    """p of Bartlett's test that all samples scatter alike, of logs; 1 where fewer than two have a spread.

    Bartlett, Properties of sufficiency and statistical tests (1937): T = (f ln s² − Σ fᵢ ln sᵢ²) / C with
    C = 1 + (Σ 1/fᵢ − 1/f) / 3(k − 1), against χ² of k − 1. It is sensitive to outliers on purpose here: where
    one is, the cell's own wider spread is the honest one.
    """
    from scipy.special import chdtrc

    kept = [logs(times) for times in samples if len(times) > 1]
    if len(kept) < 2:
        return 1.0
    free = [len(values) - 1 for values in kept]
    least = LEAST_SD**2
    variances = [max(_squares(values) / degrees, least) for values, degrees in zip(kept, free, strict=True)]
    whole = sum(free)
    together = sum(degrees * variance for degrees, variance in zip(free, variances, strict=True)) / whole
    apart = sum(degrees * log(variance) for degrees, variance in zip(free, variances, strict=True))
    correction = 1 + (sum(1 / degrees for degrees in free) - 1 / whole) / (3 * (len(kept) - 1))
    return float(chdtrc(len(kept) - 1, max(0.0, (whole * log(together) - apart) / correction)))


def interval(mean_s: float, count: int, spread: Spread) -> tuple[float, float]:
    """The t-interval of 95 % on a geometric mean: exp(ln mean ± t · s / √n); seconds."""
    half = quantile(spread.degrees) * spread.sd / sqrt(count)
    return mean_s * exp(-half), mean_s * exp(half)


def ratio(here: tuple[float, int, Spread], there: tuple[float, int, Spread]) -> Ratio:
    """The first cell's time in units of the second's; each as geometric mean, attempts and spread.

    On logs: t-interval with the pooled spread, s √(1/n₁ + 1/n₂); with the cells' own spreads Welch's, whose
    degrees of freedom are Satterthwaite's (Welch, The generalization of Student's problem, 1947).
    """
    from scipy.special import stdtr

    (mean, count, spread), (base, base_count, base_spread) = here, there
    one, other = spread.sd**2 / count, base_spread.sd**2 / base_count
    error = sqrt(one + other)
    degrees = float(spread.degrees)
    if (spread.own or base_spread.own) and error > 0:
        degrees = (one + other) ** 2 / (one**2 / spread.degrees + other**2 / base_spread.degrees)
    apart = log(mean / base)
    half = quantile(degrees) * error
    statistic = abs(apart) / error if error > 0 else (0.0 if apart == 0 else inf)
    p = min(1.0, 2 * float(stdtr(degrees, -statistic)))
    return Ratio(mean / base, mean / base * exp(-half), mean / base * exp(half), p, half)


def needed(apart: float, spread: Spread, most: int = 1000) -> int | None:
    """How many attempts per cell would have told this difference of logs, with this spread; three at least.

    The smallest n with t · s · √(2/n) < |apart|, where t has 2(n − 1) degrees of freedom. None above `most`.
    """
    for count in range(3, most + 1):
        if quantile(2 * (count - 1)) * spread.sd * sqrt(2 / count) < abs(apart):
            return count
    return None


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number, in the same order.

    Holm, A simple sequentially rejective multiple test procedure (1979): of m values the smallest is
    multiplied by m, the next by m − 1 and so on, none falling below the one before.
    """
    order = sorted(range(len(values)), key=lambda place: values[place])
    corrected, least = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = least
    return corrected


def quantile(degrees: float) -> float:
    """Student's t that 95 % of its distribution lies within."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + LEVEL / 2))


def _squares(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)
