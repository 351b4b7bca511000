"""Several clients at the same moment: their clocks compared, their commands begun together, their words as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from lab.events import ClientDone
from lab.rig.hosts import Connected
from lab.rig.workplace import Job
from lab.stop import Stop

ASKED = 5
"""So often each host's clock is asked."""
LEAD_S = 0.25
"""Commands are asked for so long before they begin, and four times what an answer takes: all hosts know in time."""
SPREAD_S = 0.5
"""Starts that lie further apart are no common moment."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How far a host's monotonic clock is ahead of this machine's, and the error of that, in seconds."""

    offset_s: float = 0.0
    error_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """What one client did. `word` is the last one of its command; `started_s` counts from the first one's start."""

    host: str
    ok: bool
    word: Mapping[str, Any]
    started_s: float = 0.0
    error_s: float = 0.0

    @property
    def ended_s(self) -> float:
        """When its command ended, after the first one's start: only its start is told by comparing clocks."""
        return self.started_s + float(self.word["wall_s"])


def clocks(clients: Sequence[Connected], stop: Stop) -> dict[str, Clock]:
    """Every client's clock, by name, just before they begin; nothing of one alone, who need not be compared.

    The host's time was read somewhere between asking and being answered; the middle is off by half of that at
    most (Cristian, Probabilistic clock synchronization, 1989). The quickest of `ASKED` answers is taken.
    """
    return {one.name: _clock(one, stop) for one in clients} if len(clients) > 1 else {}


def _clock(one: Connected, stop: Stop) -> Clock:
    best = Clock(0.0, float("inf"))
    for _ in range(ASKED):
        begin = monotonic()
        there = float(one.agent.ask("clock", stop=stop)["monotonic_s"])
        end = monotonic()
        if (end - begin) / 2 < best.error_s:
            best = Clock(there - (begin + end) / 2, (end - begin) / 2)
    return best


def moment(known: Mapping[str, Clock]) -> dict[str, float]:
    """When each client is to begin, on its own clock: all at once, as soon as every one of them was told."""
    if not known:
        return {}
    at = monotonic() + LEAD_S + 8 * max(clock.error_s for clock in known.values())
    return {name: at + clock.offset_s for name, clock in known.items()}


def parts(
    jobs: Sequence[Job], words: Mapping[str, Mapping[str, Any]], known: Mapping[str, Clock]
) -> tuple[Part, ...]:
    """What each client did, in the order of `jobs`."""
    began = {
        job.client.name: float(words[job.client.name]["began"]) - known.get(job.client.name, Clock()).offset_s
        for job in jobs
    }
    first = min(began, key=lambda name: began[name])
    found = []
    for job in jobs:
        name, word = job.client.name, words[job.client.name]
        ok = job.command.succeeded(word["exit"]) and not word["timed_out"]
        error_s = 0.0 if name == first else sum(known.get(one, Clock()).error_s for one in (name, first))
        found.append(Part(name, ok, word, began[name] - began[first], error_s))
    return tuple(found)


def joined(done: Sequence[Part]) -> dict[str, Any]:
    """One word for all: from the first start to the last end; of exit and output the first failure, or the last end."""
    if len(done) == 1:
        return dict(done[0].word)
    telling = next((part for part in done if not part.ok), max(done, key=lambda part: part.ended_s))
    return {
        **telling.word,
        "wall_s": max(part.ended_s for part in done),
        "user_s": sum(part.word["user_s"] for part in done),
        "system_s": sum(part.word["system_s"] for part in done),
        "peak_kib": max(part.word["peak_kib"] for part in done),
    }


def spread_s(done: Sequence[Part]) -> tuple[float, float]:
    """How far apart the first and the last start were, and the error of that, in seconds."""
    last = max(done, key=lambda part: part.started_s)
    return last.started_s, max(part.error_s for part in done)


def told(done: Sequence[Part], each: Mapping[str, Mapping[str, int]]) -> tuple[ClientDone, ...]:
    """For the run's record; `each` are the bytes by client and pair. Nothing of one client: the trial tells it all."""
    if len(done) < 2:
        return ()
    return tuple(
        ClientDone(
            host=part.host,
            started_s=part.started_s,
            error_s=part.error_s,
            exit_status=part.word["exit"],
            wall_s=part.word["wall_s"],
            user_s=part.word["user_s"],
            system_s=part.word["system_s"],
            peak_kib=part.word["peak_kib"],
            bytes=dict(each.get(part.host, {})),
            ok=part.ok,
            output=part.word["tail"],
        )
        for part in done
    )
