"""From factors and levels to an ordered list of trials: pure, and the same for the same seed everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor

from lab.errors import BadInput
from lab.model import OPERATIONS, Experiment, Line, ProxyState, Treatment, Trial

ORDERS = ("blocks", "published")
"""`blocks`: one attempt of every cell of a line, shuffled, again and again; `published`: as in 2008."""

REHEARSAL = " (rehearsal)"
"""The end of a rehearsal's name."""

LEAST_WITHIN = 0.001
MOST_TRIALS = 100_000
"""A longer plan is a slip: it would take months, and fill the memory before it began."""


def trials(experiment: Experiment) -> tuple[Trial, ...]:
    """The whole plan in the order in which it is executed, numbered from 1.

    Raises BadInput if the experiment cannot be planned.
    """
    if found := problems(experiment):
        raise BadInput("\n".join(f"{experiment.name}: {field}: {text}" for field, text in found))
    planned = _published(experiment) if experiment.order == "published" else _blocks(experiment)
    return tuple(_numbered(experiment, planned))


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a plan is: `cells` of `attempts` each, of which `warm_up` never count, and launches.

    `least` is how many attempts are made in any case; fewer than `attempts` where blocks are repeated until all is
    stable.
    """

    cells: int
    attempts: int
    warm_up: int
    launches: int = 0
    least: int

    @property
    def trials(self) -> int:
        """All that may be executed."""
        return self.cells * self.attempts + self.launches

    @property
    def least_trials(self) -> int:
        """All that is executed in any case."""
        return self.cells * self.least + self.launches

    @property
    def counted(self) -> int:
        """Those whose times count."""
        return self.cells * max(0, self.attempts - self.warm_up)


def size(experiment: Experiment) -> Size:
    """How large the plan is, without making it."""
    pairs = [(operation, state) for operation in experiment.operations for state in experiment.states]
    timed = sum(_timed(experiment, operation, state) for operation, state in pairs)
    return Size(
        cells=timed * len(experiment.lines),
        attempts=most_attempts(experiment),
        least=experiment.attempts,
        warm_up=experiment.warm_up,
        launches=(len(pairs) - timed) * len(experiment.lines) if experiment.launches else 0,
    )


def most_attempts(experiment: Experiment) -> int:
    """So many attempts of each cell are planned; some are spared where all is stable before."""
    return experiment.until.at_most if experiment.until is not None else experiment.attempts


def cells(experiment: Experiment, *, least: bool = False) -> Iterator[tuple[Treatment, int]]:
    """Every combination of levels that the plan has, and how many trials there are of it (`least`: in any case)."""
    attempts = experiment.attempts if least else most_attempts(experiment)
    for line in experiment.lines:
        for operation in experiment.operations:
            for state in experiment.states:
                treatment = Treatment(line=line, operation=operation, state=state)
                if _timed(experiment, operation, state):
                    yield treatment, attempts
                elif experiment.launches:
                    yield treatment, 1


def rehearsal(experiment: Experiment) -> Experiment:
    """One shortest trial of each kind: every operation in every state that is timed, on the fastest limited line.

    No warm-up, no launches. Where no line is limited, the first one is taken.
    """
    limited = [line for line in experiment.lines if line.limited]
    fastest = max(limited, key=lambda line: (line.download_bps or 0, line.upload_bps or 0), default=None)
    return replace(
        experiment,
        name=f"{experiment.name.removesuffix(REHEARSAL)}{REHEARSAL}",
        lines=experiment.lines[:1] if fastest is None else (fastest,),
        attempts=1,
        warm_up=0,
        launches=False,
        prices=(),
        until=None,
    )


def is_rehearsal(experiment: Experiment) -> bool:
    """True for what `rehearsal` made: it says that everything works, and nothing of how fast it is."""
    return experiment.name.endswith(REHEARSAL)


def problems(experiment: Experiment) -> tuple[tuple[str, str], ...]:
    """What makes an experiment impossible to plan: the field's name and a sentence with the cure."""
    found = []
    if experiment.order not in ORDERS:
        found.append(("order", f"unknown order `{experiment.order}`: write one of {', '.join(ORDERS)}"))
    found += [
        (field, f"unknown operation `{name}`: write one of {', '.join(OPERATIONS)}")
        for field, names in _named(experiment)
        for name in names
        if name not in OPERATIONS
    ]
    levels: dict[str, tuple[object, ...]] = {
        "operations": experiment.operations,
        "lines": experiment.lines,
        "states": experiment.states,
    }
    for field, known in levels.items():
        if not known:
            found.append((field, f"no {field}: write at least one"))
        elif len(set(known)) < len(known):
            found.append((field, f"one of the {field} stands there twice: write each once"))
    if experiment.warm_up < 0 or experiment.attempts <= experiment.warm_up:
        found.append(
            (
                "attempts",
                f"{experiment.attempts} attempts, {experiment.warm_up} of them warm-up, leave none to count: "
                f"write attempts = {max(experiment.warm_up, 0) + 3} or more, since a verdict needs three that count",
            )
        )
    found += _until_problems(experiment)
    count = len(experiment.lines) * len(experiment.operations) * len(experiment.states)
    if count * most_attempts(experiment) > MOST_TRIALS:
        found.append(
            (
                "attempts",
                f"{count} cells of {most_attempts(experiment)} attempts each are more than {MOST_TRIALS} trials: "
                "write fewer attempts, lines, operations or states",
            )
        )
    if experiment.disabled_only and all(state.enabled for state in experiment.states):
        cure = 'write states with "disabled" among them, or disabled_only = []'
        found.append(
            ("disabled_only", f"these run in the state disabled only, which is not asked for: {cure}")
        )
    return tuple(found)


def _until_problems(experiment: Experiment) -> list[tuple[str, str]]:
    until = experiment.until
    if until is None:
        return []
    found = []
    if experiment.order != "blocks":
        text = 'only whole blocks are repeated: write order = "blocks", or take `until` out'
        found.append(("until", text))
    if not LEAST_WITHIN <= until.within < 1:
        found.append(("until", 'an interval is within 0.1 % to 99 %: write for example within = "5 %"'))
    if until.at_most <= experiment.attempts:
        found.append(
            (
                "until",
                f"at most {until.at_most} attempts, and {experiment.attempts} are made in any case: "
                f"write at_most = {experiment.attempts + 6} or fewer attempts",
            )
        )
    return found


def purge_sample(keys: Iterable[str], full: float, seed: int) -> tuple[str, ...]:
    """The keys of objects to delete so that a full cache becomes `full` percent full, sorted.

    `keys` are the objects that make 100 %, without host and port, so that the sample is the same in
    another lab. Of the same keys and seed, the sample of a lower fullness contains that of a higher one.
    """
    known = purge_order(keys, seed)
    return tuple(sorted(known[: purge_count(len(known), full)]))


def purge_order(keys: Iterable[str], seed: int) -> tuple[str, ...]:
    """The keys in the order in which ever larger samples take them."""
    return tuple(sorted(set(keys), key=lambda key: (_hash("purge", seed, key), key)))


def purge_count(of: int, full: float) -> int:
    """How many of so many objects go, so that `full` percent of them stay."""
    return floor((100 - full) * of / 100 + 0.5)


def chosen(names: Iterable[str], count: int, seed: int) -> tuple[str, ...]:
    """So many of the names, sorted; the same ones for the same names and seed."""
    return tuple(sorted(sorted(set(names), key=lambda name: (_hash("chosen", seed, name), name))[:count]))


def published_states(states: Sequence[ProxyState]) -> tuple[ProxyState, ...]:
    """States in the published order: disabled, 0 %, then from the fullest down."""
    return tuple(sorted(states, key=lambda s: (s.enabled, s.full != 0, -(s.full or 0))))


def _named(experiment: Experiment) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("operations", experiment.operations), ("disabled_only", experiment.disabled_only)


_Planned = tuple[int, Treatment, int, bool]
"""Block, treatment, attempt, launch."""


def _blocks(experiment: Experiment) -> Iterator[_Planned]:
    block = 0
    for line in experiment.lines:
        cells = [
            Treatment(line=line, operation=operation, state=state)
            for operation in experiment.operations
            for state in experiment.states
            if _timed(experiment, operation, state)
        ]
        for attempt in range(1, most_attempts(experiment) + 1):
            block += 1
            for cell in _shuffled(cells, experiment.seed, block):
                yield block, cell, attempt, False
        launches = [
            launch
            for operation in experiment.operations
            for launch in _launches(experiment, line, operation, experiment.states)
        ]
        if launches:
            block += 1
            for cell in _shuffled(launches, experiment.seed, block):
                yield block, cell, 1, True


def _published(experiment: Experiment) -> Iterator[_Planned]:
    block = 0
    states = published_states(experiment.states)
    for line in experiment.lines:
        for operation in sorted(experiment.operations, key=OPERATIONS.index):
            block += 1
            for state in states:
                if _timed(experiment, operation, state):
                    cell = Treatment(line=line, operation=operation, state=state)
                    for attempt in range(1, experiment.attempts + 1):
                        yield block, cell, attempt, False
            for cell in _launches(experiment, line, operation, states):
                yield block, cell, 1, True


def _timed(experiment: Experiment, operation: str, state: ProxyState) -> bool:
    return not (state.enabled and operation in experiment.disabled_only)


def _launches(
    experiment: Experiment, line: Line, operation: str, states: Sequence[ProxyState]
) -> list[Treatment]:
    if not experiment.launches:
        return []
    return [
        Treatment(line=line, operation=operation, state=state)
        for state in states
        if not _timed(experiment, operation, state)
    ]


def _numbered(experiment: Experiment, planned: Iterable[_Planned]) -> Iterator[Trial]:
    for number, (block, cell, attempt, launch) in enumerate(planned, start=1):
        yield Trial(
            number=number,
            block=block,
            treatment=cell,
            attempt=attempt,
            warm_up=not launch and attempt <= experiment.warm_up,
            launch=launch,
            seed=_hash("trial", experiment.seed, _key(cell), attempt, launch) >> 1,  # SQLite's are signed
        )


def _shuffled(cells: Sequence[Treatment], seed: int, block: int) -> list[Treatment]:
    # By hash and not by `random`: the order is then the same on every version of Python.
    return sorted(cells, key=lambda cell: _hash("order", seed, block, _key(cell)))


def _key(cell: Treatment) -> str:
    line = cell.line
    numbers = (line.upload_bps, line.download_bps, line.delay_s, line.jitter_s, line.loss)
    return f"{numbers} {line.queue_bytes} {line.queue_s} {cell.operation} {cell.state.key}"


def _hash(*parts: object) -> int:
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
