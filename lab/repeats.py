"""Trials done again in the same run: which would be, which of several stands for a planned one, which gave way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lab.errors import BadInput
from lab.events import (
    DataMeasured,
    Event,
    HostSeen,
    LineSettled,
    RunContinued,
    RunStarted,
    Standing,
    TrialFinished,
    TrialStarted,
)
from lab.model import Experiment, Lab, Trial

AMISS = (Standing.FAILED, Standing.VOID)


@dataclass(slots=True)
class Told:
    """What a run's events told so far of its plan. A trial that was begun once has its number for ever: done again it
    gets another, and names the planned one in `repeats`; one that never began keeps its own.
    """

    started: RunStarted
    trials: dict[int, Trial]
    """All of them, by number"""
    begun: set[int] = field(default_factory=set)
    finished: dict[int, TrialFinished] = field(default_factory=dict)
    data: dict[str, object] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    """Name and role of every host that was seen"""
    spared: set[int] = field(default_factory=set)
    """Planned, and not needed: everything was stable before"""

    @property
    def whole(self) -> RunStarted:
        """The first word with every trial in it, also those that were added."""
        return replace(self.started, trials=tuple(self.trials.values()))

    @property
    def standing(self) -> tuple[Trial, ...]:
        """For each planned trial, in the plan's order, the newest of those that ended, or itself."""
        newest = {trial.number: trial for trial in self.started.trials if trial.number not in self.spared}
        for trial in self.trials.values():
            if trial.repeats and trial.number in self.finished:
                newest[trial.repeats] = trial
        return tuple(newest.values())

    @property
    def gave_way(self) -> dict[int, int]:
        """Numbers of trials whose record counts no more, each with the number of the one that stands for it."""
        stands = {trial.repeats or trial.number: trial.number for trial in self.standing}
        return {
            number: stands[root]
            for number in self.finished
            if number in self.trials and stands[root := self.trials[number].repeats or number] != number
        }

    @property
    def amiss(self) -> tuple[Trial, ...]:
        """Those that stand, and failed, are without proof, or have no record."""
        return tuple(
            trial
            for trial in self.standing
            if (found := self.finished.get(trial.number)) is None or found.standing in AMISS
        )

    @property
    def again(self) -> tuple[Trial, ...]:
        """What is done again, numbered: `amiss`, and before the counted ones their cell's warm-ups, in plan's order."""
        wanted = self.amiss
        cold = {trial.treatment for trial in wanted if trial.counted}
        places = {trial.repeats or trial.number for trial in wanted}
        number, found = max(self.trials), []
        for trial in self.standing:
            root = trial.repeats or trial.number
            if root not in places and not (trial.warm_up and trial.treatment in cold):
                continue
            if trial.number in self.begun:
                number += 1
                trial = replace(trial, number=number, repeats=root)
            found.append(trial)
        return tuple(found)


def told(events: Iterable[Event]) -> Told:
    """What these events tell. Raises ValueError if the first word is missing."""
    known: Told | None = None
    for event in events:
        match event:
            case RunStarted():
                known = Told(event, {trial.number: trial for trial in event.trials})
            case RunContinued() if known:
                known.trials |= {trial.number: trial for trial in event.trials}
            case TrialStarted() if known:
                known.begun.add(event.trial)
            case TrialFinished() if known:
                known.finished[event.trial] = event
            case DataMeasured() if known:
                known.data = event.facts
            case LineSettled() if known:
                known.spared |= set(event.spared)
            case HostSeen() if known:
                known.hosts[event.host] = event.role
    if known is None:
        raise ValueError("these events do not begin with run-started")
    return known


def refuse_others(known: Told, lab: Lab, experiment: Experiment) -> None:
    """Raise BadInput unless this lab and experiment are those of the run, and there is something to repeat."""
    started = known.started
    here = {host.name: host.role.value for host in lab.hosts}
    strangers = [name for name, role in known.hosts.items() if here.get(name) != role]
    if started.lab != lab.name or strangers:
        what = (
            f"it has no {known.hosts[strangers[0]]} `{strangers[0]}`"
            if strangers
            else f"this is `{lab.name}`"
        )
        raise BadInput(
            f"run {started.run} was measured in the lab `{started.lab}`: {what}",
            advice="Open the profile of that lab; a run in another one is a run of its own.",
        )
    if started.experiment != experiment:
        wrong = [
            name
            for name in type(experiment).__dataclass_fields__
            if getattr(experiment, name) != getattr(started.experiment, name)
        ]
        raise BadInput(
            f"run {started.run} asked something else than `{experiment.name}` of this profile does: {', '.join(wrong)}",
            advice="Put that back in the profile, or start a run of its own.",
        )
    if not known.amiss:
        raise BadInput(f"run {started.run}: every trial has its proof, so there is nothing to repeat")


def refuse_other_data(known: Mapping[str, object], facts: Mapping[str, object]) -> None:
    """Raise BadInput where the data is not what the run measured before."""
    for name in ("repository", "recipe", "seed", "revision", "files", "bytes"):
        if name in known and facts.get(name) != known[name]:
            raise BadInput(
                f"the data has changed since the run began: {name} was {known[name]}, and is {facts.get(name)}",
                advice="Start a run of its own: its trials would not be attempts of the same.",
            )
