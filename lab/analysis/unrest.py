"""What disturbs a run: attempts unlike the others of their cell, and times that drift from first to last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt

from lab.analysis import spread
from lab.analysis.comparing import LEAST_DIFFERENCE_S
from lab.model import Treatment

UNLIKE = 0.01
"""Below this corrected p an attempt is called unlike the others."""
MOST = 20
"""So many attempts of an operation are looked at; where more are unlike, the run is not one to trust."""
LEAST_SHARE = 0.05
"""Nearer to its cell's other attempts than this, an attempt is never flagged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One kept attempt: its trial's number, its cell, seconds."""

    trial: int
    treatment: Treatment
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """An attempt unlike the others of its cell. It is flagged, and counted like every other.

    `factor` is its time over the geometric mean of the cell's other attempts, `p` corrected for their number.
    """

    trial: int
    treatment: Treatment
    wall_s: float
    others_s: float
    factor: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How an operation's times changed from the first to the last trial: factor with its interval of 95 %.

    `p` is corrected for the number of operations (Holm); `time_s` is the operation's geometric mean.
    """

    operation: str
    time_s: float
    factor: float
    low: float
    high: float
    p: float

    @property
    def seen(self) -> bool:
        """True if a drift is seen: p below 0.05, and 20 ms at least."""
        return self.p < 1 - spread.LEVEL and abs(self.factor - 1) * self.time_s >= LEAST_DIFFERENCE_S


def outliers(attempts: Sequence[Timed]) -> tuple[Outlier, ...]:
    """The attempts of one operation that are unlike the others of their cells, by trial.

    Rosner's generalized extreme Studentized deviate test (Technometrics 25, 1983), on logs and within cells:
    again and again the attempt is taken out that lies farthest from the others of its cell, in units of the
    spread of all that is left; all up to the last one whose p, corrected for the number left, is below 0.01
    are unlike. At most a tenth of the attempts, and 20; cells of fewer than three say nothing.
    """
    cells = {cell: number for number, cell in enumerate(dict.fromkeys(one.treatment for one in attempts))}
    left = {
        one.trial: (cells[one.treatment], value)
        for one, value in zip(attempts, spread.logs([one.wall_s for one in attempts]), strict=True)
    }
    taken: list[tuple[int, float]] = []
    for _ in range(min(MOST, max(1, len(attempts) // 10))):
        farthest = _farthest(left)
        if farthest is None:
            break
        taken.append(farthest)
        del left[farthest[0]]
    last = max((place for place, (_, p) in enumerate(taken) if p < UNLIKE), default=-1)
    chosen = dict(taken[: last + 1])
    found = [_outlier(one, attempts, chosen) for one in attempts if one.trial in chosen]
    return tuple(one for one in found if abs(one.factor - 1) >= LEAST_SHARE)


def _farthest(left: Mapping[int, tuple[int, float]]) -> tuple[int, float] | None:
    """The attempt farthest from the others of its cell, and its corrected p."""
    from scipy.special import stdtr

    groups: dict[int, list[float]] = {}
    for cell, value in left.values():
        groups.setdefault(cell, []).append(value)
    means = {cell: sum(values) / len(values) for cell, values in groups.items()}
    squares = sum((value - means[cell]) ** 2 for cell, value in left.values())
    degrees = len(left) - len(groups) - 1
    if degrees < 1:
        return None
    worst, statistic = None, 0.0
    for trial, (cell, value) in left.items():
        count = len(groups[cell])
        if count < 3:
            continue
        own = (value - means[cell]) ** 2 * count / (count - 1)
        rest = max(squares - own, 0.0) / degrees
        far = sqrt(own / rest) if rest > spread.LEAST_SD**2 else sqrt(own) / spread.LEAST_SD
        if far > statistic:
            worst, statistic = trial, far
    if worst is None:
        return None
    return worst, min(1.0, 2 * len(left) * float(stdtr(degrees, -statistic)))


def _outlier(one: Timed, attempts: Sequence[Timed], chosen: Mapping[int, float]) -> Outlier:
    others = [
        other.wall_s for other in attempts if other.treatment == one.treatment and other.trial not in chosen
    ]
    others_s = spread.geometric(others or [one.wall_s])
    return Outlier(
        trial=one.trial,
        treatment=one.treatment,
        wall_s=one.wall_s,
        others_s=others_s,
        factor=one.wall_s / others_s,
        p=chosen[one.trial],
    )


def drifts(attempts: Sequence[Timed]) -> tuple[Drift, ...]:
    """For each operation whether its times changed over the run, in the order of the operations.

    Least squares of the log of the time on the trial's number, within cells (a slope common to all cells of
    the operation, each cell with its own level; Draper & Smith, Applied Regression Analysis, ch. 14), told as
    the factor from the first trial to the last. Blocks keep a drift out of the comparison of cells; in the
    published order nothing does.
    """
    names = dict.fromkeys(one.treatment.operation for one in attempts)
    found = [
        one for name in names if (one := _drift(name, [a for a in attempts if a.treatment.operation == name]))
    ]
    corrected = spread.holm([one.p for one in found])
    return tuple(replace(one, p=p) for one, p in zip(found, corrected, strict=True))


def _drift(operation: str, attempts: Sequence[Timed]) -> Drift | None:
    from scipy.special import stdtr

    groups: dict[Treatment, list[tuple[float, float]]] = {}
    for one in attempts:
        groups.setdefault(one.treatment, []).append((one.trial, spread.logs([one.wall_s])[0]))
    xx = xy = yy = 0.0
    for pairs in groups.values():
        mean_x, mean_y = (sum(side) / len(pairs) for side in zip(*pairs, strict=True))
        for x, y in pairs:
            xx += (x - mean_x) ** 2
            xy += (x - mean_x) * (y - mean_y)
            yy += (y - mean_y) ** 2
    degrees = sum(len(pairs) for pairs in groups.values()) - len(groups) - 1
    if degrees < 1 or not xx:
        return None
    slope = xy / xx
    error = sqrt(max((yy - slope * xy) / degrees, spread.LEAST_SD**2) / xx)
    length = max(one.trial for one in attempts) - min(one.trial for one in attempts)
    half = spread.quantile(degrees) * error * length
    # A slope from a few trials, carried over a long run, may overflow; such a drift is not known at all.
    if abs(slope * length) + half > 50:
        return None
    return Drift(
        operation=operation,
        time_s=exp(sum(value for pairs in groups.values() for _, value in pairs) / len(attempts)),
        factor=exp(slope * length),
        low=exp(slope * length - half),
        high=exp(slope * length + half),
        p=min(1.0, 2 * float(stdtr(degrees, -abs(slope) / error))),
    )
