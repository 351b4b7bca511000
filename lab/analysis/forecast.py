"""How long a plan will take, before it is run: from an earlier run of this machine, else from what is published,
else from its volume.

Finding out what is known reads run files and takes its time; the forecast from it is quick and pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Protocol

from lab import design, store
from lab.analysis import published, words
from lab.errors import LabError
from lab.events import TrafficSampled
from lab.live import Live
from lab.model import DISABLED, Experiment, Line, ProxyState, Treatment

LOOK_BACK = 20
"""So many of the newest runs are looked at."""
EACH_S = 3.0
"""What a trial takes beside its command, where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Least and most seconds, what that rests on in words, and the seconds of each line (the middle of both)."""

    low_s: float
    high_s: float
    basis: str
    lines: Mapping[Line, float]


class Basis(Protocol):
    """What is known of how long trials take."""

    @property
    def text(self) -> str:
        """What that rests on, in words."""

    def trials(self, wanted: Mapping[Treatment, int]) -> Mapping[Treatment, tuple[float, float]] | None:
        """Least and most seconds of one trial of each kind, all counted; None if nothing is known of any."""


def basis(experiment: Experiment) -> Basis | None:
    """The best there is on this machine; None where nothing of the experiment is known. Reads run files."""
    earlier = _earlier(experiment)
    if earlier is not None:
        return earlier
    if experiment.data is None:
        return None
    from lab import recipes

    try:
        recipe = recipes.recipe(experiment.data)
    except LabError:
        return None
    if recipe is recipes.LIKE_2008:
        return _Published(_published())
    return _Volume(sum(extension.bytes for extension in recipe.extensions))


def forecast(experiment: Experiment, known: Basis | None) -> Forecast | None:
    """How long the experiment takes by what is known; None where that is nothing."""
    wanted = dict(design.cells(experiment))
    times = known.trials(wanted) if known is not None else None
    # Several clients share the line: at best one waits as long as it would alone, at worst for all the others.
    many = 1 if isinstance(known, _Measured) else experiment.at_once
    if known is None or not times:
        return None
    low = high = 0.0
    lines = dict.fromkeys(experiment.lines, 0.0)
    fewest = dict(design.cells(experiment, least=True))
    for treatment, count in wanted.items():
        least, most = times[treatment]
        least, most = fewest[treatment] * least, count * many * most
        low, high = low + least, high + most
        lines[treatment.line] += (least + most) / 2
    several = f"; from one to {many} times that, since {many} clients share the line" if many > 1 else ""
    return Forecast(low, high, f"{known.text}{several}", lines)


def _earlier(experiment: Experiment) -> _Measured | None:
    """The newest run of the same tool on the same data, by as many clients at once, that finished trials."""
    for head in store.runs()[:LOOK_BACK]:
        if not head.finished:
            continue
        try:
            with store.opened(head.file) as record:
                asked = record.run_started.experiment
                if _same(asked) != _same(experiment):
                    continue
                live = Live()
                for event in record.events(samples=False):
                    if not isinstance(event, TrafficSampled):
                        live.apply(event)
        except LabError:
            continue
        if any(cell.last is not None for cell in live.cells.values()):
            return _Measured(live)
    return None


def _same(experiment: Experiment) -> tuple[str, str | None, str, int]:
    return experiment.vcs, experiment.data, experiment.repository, experiment.at_once


@dataclass(frozen=True, slots=True)
class _Measured:
    live: Live

    @property
    def text(self) -> str:
        return f"estimated from run {self.live.run}"

    def trials(self, wanted: Mapping[Treatment, int]) -> Mapping[Treatment, tuple[float, float]] | None:
        found = {one: seconds for one in wanted if (seconds := self.live.expected_s(one)) is not None}
        if not found:
            return None
        # Cells that the earlier run did not have are taken as long as its average one.
        typical = sum(seconds * wanted[one] for one, seconds in found.items()) / sum(
            wanted[one] for one in found
        )
        sure, each = (0.1 if len(found) == len(wanted) else 0.4), self.live.overhead_s or 0.0
        times = {one: found.get(one, typical) + each for one in wanted}
        return {one: (seconds * (1 - sure), seconds * (1 + sure)) for one, seconds in times.items()}


_Figures = Mapping[tuple[str, ProxyState], Mapping[Line, float]]


def _published() -> _Figures:
    """The published times by operation and state."""
    found: dict[tuple[str, ProxyState], dict[Line, float]] = {}
    for row in published.rows("tfs_proxy_2008.csv"):
        line = Line(
            upload_bps=1000 * int(row["upload_kbit_s"]), download_bps=1000 * int(row["download_kbit_s"])
        )
        full = row["proxy_state"].removeprefix("cached-")
        state = DISABLED if full == "disabled" else ProxyState(full=float(full))
        found.setdefault((row["operation"], state), {})[line] = float(row["seconds"])
    return found


@dataclass(frozen=True, slots=True)
class _Published:
    figures: _Figures
    text: str = "as published in 2008 for another system; nothing is measured here yet"

    def trials(self, wanted: Mapping[Treatment, int]) -> Mapping[Treatment, tuple[float, float]] | None:
        times = {one: self._seconds(one) for one in wanted}
        return {one: (0.4 * seconds, 1.3 * seconds + EACH_S) for one, seconds in times.items()}

    def _seconds(self, treatment: Treatment) -> float:
        operation, state = treatment.operation, treatment.state
        known = {
            s.full or 0.0: at for (name, s), at in self.figures.items() if name == operation and s.enabled
        }
        disabled = self.figures.get((operation, DISABLED), {})
        if not state.enabled or not known:
            return _scaled(disabled, treatment.line)
        nearest = min(known, key=lambda full: abs(full - (state.full or 0.0)))
        return _scaled(known[nearest], treatment.line)


def _scaled(times: Mapping[Line, float], line: Line) -> float:
    """The time on the nearest published line, as if all of it were transfer."""
    if not times:
        return 0.0
    if line.download_bps is None:
        return min(times.values())
    wanted = line.download_bps
    near = min(times, key=lambda one: abs(log((one.download_bps or 1) / wanted)))
    return times[near] * (near.download_bps or 1) / wanted


@dataclass(frozen=True, slots=True)
class _Volume:
    """From the data set's size alone: the content that a Get moves over each line."""

    bytes: int

    @property
    def text(self) -> str:
        amount = words.amount(self.bytes)
        return f"a rough guess from the {amount} of the data set alone; nothing is measured yet"

    def trials(self, wanted: Mapping[Treatment, int]) -> Mapping[Treatment, tuple[float, float]] | None:
        times = {one: self._moved_s(one) for one in wanted}
        # Text shrinks to about a third when the server compresses; other operations and preparing come on top.
        return {one: (0.3 * seconds + 0.2, seconds + EACH_S) for one, seconds in times.items()}

    def _moved_s(self, treatment: Treatment) -> float:
        line, full = treatment.line, treatment.state.full or 0.0
        if treatment.operation != "get" or line.download_bps is None:
            return 0.0
        return self.bytes * 8 * (1 - full / 100) / line.download_bps
