"""A run as it is now: folds events into standings, cells, curves and what is left to do. No Qt, no I/O.

Every event costs a constant time and memory is bounded: curves hold a minute, output and notes their last
lines, and of a finished trial only what a picture needs.
"""

from __future__ import annotations

import re
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from lab import events, sleeping, units
from lab.model import PAIRS, Experiment, Line, Treatment, Trial

WINDOW_S = 60.0
"""How far back the live curves reach."""

STALE_S = 2.0
"""Samples come ten a second: a rate older than this is none of now."""

WAITING = "waiting"
RUNNING = "running"

_DOWN = ("server>client", "server>proxy")
_UP = ("client>server", "proxy>server")
_OUTPUT_LINES = 200
_NOTES = 300
_LINE_CHARACTERS = 2000
_EDGE_S = 0.05
_WITHIN = ("traffic-sampled", "output-seen")
"""Events of a trial under way, many a second, that change nothing of what others should take."""
_POINTS = 4000
"""A minute has some hundreds of samples; so many only where something floods."""
_CONTROLS = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x1b\\|\x07|$)|[ -/]*[0-~]|$)|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
"""What a terminal would obey and not show: colours, titles, moves; and other control characters but tab."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What is kept of a finished trial. Seconds, bytes by pair as they arrived."""

    trial: Trial
    standing: str
    wall_s: float | None
    reason: str
    bytes: dict[str, int]
    proofs: tuple[events.Proof, ...]
    served_bytes: int | None
    relayed_bytes: int | None
    direct_bytes: int | None
    cache_found: float | None
    clients: tuple[events.ClientDone, ...] = ()
    """of several, each for itself; without their output"""

    @property
    def line_bytes(self) -> tuple[int, int]:
        """Bytes that crossed the line: upload, download."""
        return sum(self.bytes.get(p, 0) for p in _UP), sum(self.bytes.get(p, 0) for p in _DOWN)


@dataclass(slots=True)
class Cell:
    """One combination of levels: its planned trials and what came of them so far."""

    treatment: Treatment
    trials: list[Trial] = field(default_factory=list)
    done: int = 0
    last: Attempt | None = None
    """The newest attempt that measured a time: kept or warm-up."""
    _kept: list[float] = field(default_factory=list)

    @property
    def kept(self) -> int:
        """Number of kept attempts."""
        return len(self._kept)

    @property
    def median_s(self) -> float | None:
        """Median of the kept attempts, None without any."""
        if not self._kept:
            return None
        half = len(self._kept) // 2
        if len(self._kept) % 2:
            return self._kept[half]
        return (self._kept[half - 1] + self._kept[half]) / 2

    @property
    def range_s(self) -> tuple[float, float] | None:
        """Least and greatest kept time."""
        return (self._kept[0], self._kept[-1]) if self._kept else None

    @property
    def left(self) -> int:
        """Trials that have not finished."""
        return len(self.trials) - self.done

    def add(self, attempt: Attempt) -> None:
        """Take in a finished trial of this cell."""
        self.done += 1
        if attempt.wall_s is None or attempt.standing not in (events.Standing.KEPT, events.Standing.WARM_UP):
            return
        self.last = attempt
        if attempt.standing == events.Standing.KEPT:
            insort(self._kept, attempt.wall_s)


@dataclass(slots=True)
class Current:
    """The trial under way. `since` is on the clock that `Live` was given."""

    trial: Trial
    since: float
    host: str = ""
    """the client; of several their names"""
    argv: tuple[str, ...] = ()
    timed_since: float | None = None
    """When the timed command began; None while the trial is being prepared."""


@dataclass(slots=True)
class Curve:
    """Rate in bit/s over the last minute, of one pair in one direction; `points` are (clock, rate)."""

    points: deque[tuple[float, float]] = field(default_factory=partial(deque, maxlen=_POINTS))

    @property
    def now(self) -> float:
        """The newest rate."""
        return self.points[-1][1] if self.points else 0.0

    def add(self, at: float, rate: float) -> None:
        """One more point; time never runs backwards. Forgets what is older than the window."""
        if self.points and at < self.points[-1][0]:
            at = self.points[-1][0]
        self.points.append((at, rate))
        while len(self.points) > 2 and self.points[1][0] < at - WINDOW_S:
            self.points.popleft()


@dataclass(frozen=True, slots=True)
class Printed:
    """A line of a command's output; `stream` is `command`, `stdout`, `stderr`, or `end` for how one of several ended.

    `host` is where it was printed, if several clients have a part in the trial.
    """

    stream: str
    text: str
    host: str = ""

    @property
    def told(self) -> str:
        """For people: `$ svn …`, and before it where, if that is not plain."""
        text = f"$ {self.text}" if self.stream == "command" else self.text
        return f"{self.host}  {text}" if self.host else text


class Live:
    """Folds a run's events. `clock` is monotonic, in seconds, and goes on while this machine sleeps, as its hosts
    do; for a replay any clock serves.
    """

    def __init__(self, clock: Callable[[], float] = sleeping.elapsed_s) -> None:
        self._clock = clock
        self._forget()

    def _forget(self) -> None:
        self.run = ""
        self.lab = ""
        self.started_at = ""
        self.last_at = ""
        self.experiment: Experiment | None = None
        self.trials: tuple[Trial, ...] = ()
        self.classes: dict[str, str] = {}
        self.lines: tuple[Line, ...] = ()
        self.standing: dict[int, str] = {}
        self.attempts: dict[int, Attempt] = {}
        self.cells: dict[Treatment, Cell] = {}
        self.current: Current | None = None
        self.last: Attempt | None = None
        self.command = ""
        """The newest command, as one line."""
        self.curves: dict[str, Curve] = {pair: Curve() for pair in PAIRS}
        self.output: deque[Printed] = deque(maxlen=_OUTPUT_LINES)
        self.notes: deque[events.Noted] = deque(maxlen=_NOTES)
        self.hosts: dict[str, events.HostSeen] = {}
        self.lost: dict[str, str] = {}
        """Hosts that were lost and are looked for again, with what is said of it"""
        self.repeated: dict[int, int] = {}
        """Ended trials that are done again, each with the number of its newest repeat"""
        self._began_at, self._gone_before = "", 0.0
        self.found_again: set[str] = set()
        """Hosts that were lost and came back"""
        self.proved: dict[Line, events.LineProved] = {}
        self.settled: dict[Line, events.LineSettled] = {}
        self.fills: dict[str, events.CacheFilled] = {}
        self.data: dict[str, Any] = {}
        self.tool: events.ToolMeasured | None = None
        self.counts: dict[str, int] = {}
        self.paused = False
        self.outcome: events.Outcome | None = None
        self.reason = ""
        self.advice = ""
        self.changed: deque[events.HostChanged] = deque(maxlen=_NOTES)
        self.applied_line: Line | None = None
        self._by_number: dict[int, Trial] = {}
        self._zero = 0.0
        self._sample: events.TrafficSampled | None = None
        self._open_lines: dict[tuple[str, str], Printed] = {}
        """By host and stream what was printed last there, and not to its line's end."""
        self._heard = 0.0
        self._overhead: tuple[float, int] = (0.0, 0)
        self._trial_at = ""
        self._guesses: dict[Treatment, tuple[float | None, float]] = {}

    def apply(self, event: events.Event) -> None:
        """Fold one event in."""
        if event.kind not in _WITHIN:
            self._guesses.clear()
        handler = _HANDLERS.get(event.kind)
        if handler is not None:
            handler(self, event)

    @property
    def done(self) -> int:
        """Trials that have finished, whatever they are worth."""
        return len(self.attempts) - len(self.repeated)

    @property
    def total(self) -> int:
        """Trials of the whole plan."""
        return len(self.trials)

    @property
    def amiss(self) -> int:
        """Trials of the plan that failed, have no proof, or have no record (yet)."""
        wrong = (events.Standing.FAILED, events.Standing.VOID, WAITING, RUNNING)
        return sum(self.standing[trial.number] in wrong for trial in self.trials)

    @property
    def running(self) -> bool:
        """True between the first and the last word of a run."""
        return bool(self.run) and self.outcome is None

    @property
    def gone_s(self) -> float:
        """Seconds from the run's start to its newest dated event, without what lay between its end and going on."""
        return self._gone_before + max(0.0, _seconds(self._began_at or self.started_at, self.last_at))

    def elapsed_s(self) -> float | None:
        """Seconds since the current trial's command began (or since its preparing began)."""
        if self.current is None:
            return None
        began = self.current.timed_since
        return self._clock() - (self.current.since if began is None else began)

    @property
    def silent_s(self) -> float:
        """Seconds since the newest sample of the trial under way, as where a host is lost or this machine slept; 0
        before the first one, and where the newest is not older than `STALE_S`.
        """
        gone = self._clock() - self._heard if self._sample is not None else 0.0
        return gone if gone > STALE_S else 0.0

    def rate(self, direction: str) -> float | None:
        """bit/s now, 0 where no trial is sampled; None where nothing was heard lately, so that nobody knows."""
        if not self.running or self._sample is None:
            return 0.0
        return None if self.silent_s else self.curves[direction].now

    def now(self) -> float:
        """The clock on which curves and `since` stand."""
        return self._clock()

    def expected_s(self, treatment: Treatment) -> float | None:
        """Seconds that one attempt should take, from this run's own measurements only.

        Attempts of the same cell, else the same operation and state on the nearest line, its transfer time
        scaled to this line's rates. None while neither was measured.
        """
        known = self._guessed().get(treatment)
        return self._scaled_s(treatment) if known is None else known[0]

    def eta(self) -> tuple[float, float] | None:
        """Least and most seconds to go, preparing included; None before anything was measured."""
        guessed = zip(self.cells.values(), self._guessed().values(), strict=True)
        known = [(cell, seconds, sure) for cell, (seconds, sure) in guessed if cell.left]
        measured = [(cell.left, s) for cell, s, _ in known if s is not None]
        if not known or not (measured or self._overhead[1]):
            return (0.0, 0.0) if self.total and self.done == self.total else None
        if not measured:
            return None
        typical = sum(n * s for n, s in measured) / sum(n for n, _ in measured)
        low = high = 0.0
        each = self.overhead_s or 0.0
        gone = self.elapsed_s() or 0.0
        for cell, seconds, sure in known:
            one = typical if seconds is None else seconds
            least, most = one * (1 - sure) + each * 0.9, one * (1 + sure) + each * 1.1
            low += cell.left * least
            high += cell.left * most
            if self.current is not None and self.current.trial.treatment == cell.treatment:
                # No more than its own share: one trial that hangs makes none of the others shorter.
                low -= min(gone, least)
                high -= min(gone, most)
        return max(0.0, low), max(0.0, high)

    @property
    def overhead_s(self) -> float | None:
        """Mean seconds per trial outside the timed command; None before the first trial ended."""
        total, number = self._overhead
        return total / number if number else None

    def parts(self) -> Iterator[tuple[Line, float, float]]:
        """Per line: its share of the whole run's expected time, and the part of it that is done (0 to 1)."""
        weights: dict[Line, list[float]] = {line: [0.0, 0.0] for line in self.lines}
        guessed = [seconds for seconds, _ in self._guessed().values()]
        known = [seconds for seconds in guessed if seconds is not None]
        fallback = sum(known) / len(known) if known else 1.0
        for cell, seconds in zip(self.cells.values(), guessed, strict=True):
            one = (seconds or fallback) + (self.overhead_s or 0.0)
            weights[cell.treatment.line][0] += one * len(cell.trials)
            weights[cell.treatment.line][1] += one * cell.done
        whole = sum(weight for weight, _ in weights.values()) or 1.0
        for line, (weight, done) in weights.items():
            yield line, weight / whole, done / weight if weight else 0.0

    def cells_of(self, operation: str, line: Line) -> list[Cell]:
        """The cells of one operation on one line, in the order of the experiment's states."""
        states = self.experiment.states if self.experiment else ()
        found = (self.cells.get(Treatment(line=line, operation=operation, state=state)) for state in states)
        return [cell for cell in found if cell is not None]

    def _guessed(self) -> dict[Treatment, tuple[float | None, float]]:
        """What an attempt in each cell should take, in their order; worked out anew after each trial, not each look."""
        if not self._guesses:
            self._guesses = {treatment: self._guess(cell) for treatment, cell in self.cells.items()}
        return self._guesses

    def _guess(self, cell: Cell) -> tuple[float | None, float]:
        """Expected seconds, and how far off they may be, as a share."""
        if (median := cell.median_s) is not None:
            return median, 0.04
        if cell.last is not None:
            return cell.last.wall_s, 0.08
        scaled = self._scaled_s(cell.treatment)
        return (scaled, 0.2) if scaled is not None else (None, 0.5)

    def _scaled_s(self, treatment: Treatment) -> float | None:
        best: tuple[float, Cell] | None = None
        for line in self.lines:
            if line == treatment.line:
                continue
            other = Treatment(line=line, operation=treatment.operation, state=treatment.state)
            cell = self.cells.get(other)
            if cell is None or cell.last is None or cell.last.wall_s is None:
                continue
            distance = _distance(line, treatment.line)
            if best is None or distance < best[0]:
                best = (distance, cell)
        if best is None:
            return None
        cell = best[1]
        attempt = cell.last
        assert attempt is not None  # noqa: S101 (held above)
        seconds = cell.median_s or attempt.wall_s or 0.0
        there = _transfer_s(attempt.line_bytes, cell.treatment.line)
        here = _transfer_s(attempt.line_bytes, treatment.line)
        return max(0.0, seconds - there) + here

    def _on_run_started(self, event: events.RunStarted) -> None:
        self._forget()
        self.run, self.lab, self.started_at = event.run, event.lab, event.at
        self.last_at = event.at
        self.experiment, self.trials, self.classes = event.experiment, event.trials, event.classes
        self.lines = tuple(dict.fromkeys(trial.treatment.line for trial in event.trials))
        asked = event.experiment.lines
        self.lines = tuple(sorted(self.lines, key=lambda line: asked.index(line) if line in asked else 99))
        for trial in event.trials:
            self._by_number[trial.number] = trial
            self.standing[trial.number] = WAITING
            self.cells.setdefault(trial.treatment, Cell(trial.treatment)).trials.append(trial)
        for cell in self.cells.values():
            cell.trials.sort(key=lambda trial: trial.attempt)

    def _on_run_continued(self, event: events.RunContinued) -> None:
        if self.current is not None:  # its program was killed amid a trial
            self._on_run_finished(
                events.RunFinished(at=self.last_at, outcome=events.Outcome.STOPPED, reason="")
            )
        self.outcome, self.reason, self.advice = None, "", ""
        self._began_at, self._gone_before = event.at, self.gone_s
        self.last_at = event.at
        for trial in event.trials:
            self._by_number[trial.number] = trial
            self.standing[trial.number] = WAITING
            if trial.repeats:
                self._take_the_place(trial)

    def _take_the_place(self, trial: Trial) -> None:
        """In its cell and in the plan, of the planned trial or of the one that did it again before."""
        cell = self.cells[trial.treatment]
        place = next(n for n, one in enumerate(cell.trials) if trial.repeats in (one.number, one.repeats))
        before, cell.trials[place] = cell.trials[place], trial
        self.trials = tuple(trial if one.number == before.number else one for one in self.trials)
        if (ended := self.attempts.get(before.number)) is not None:
            cell.done -= 1
            self.counts[ended.standing] -= 1
            self.repeated[before.number] = trial.number

    def _on_trial_started(self, event: events.TrialStarted) -> None:
        trial = self._by_number.get(event.trial)
        if trial is None:
            return
        self.last_at = self._trial_at = event.at
        self.paused = False
        self.standing[trial.number] = RUNNING
        self.current = Current(trial=trial, since=self._clock())
        self.applied_line = trial.treatment.line
        self._sample = None

    def _on_command_started(self, event: events.CommandStarted) -> None:
        if self.current is None or self.current.trial.number != event.trial:
            return
        current, words = self.current, " ".join(event.argv)
        if current.timed_since is not None:  # one more client of several
            if len(self.output) == 1:
                self.output[0] = Printed("command", self.command, current.host)
            current.host += f", {event.host}"
            self.output.append(Printed("command", words, event.host))
            return
        current.host, current.argv = event.host, event.argv
        current.timed_since = self._clock()
        self.output.clear()
        self._open_lines.clear()
        self.command = words
        self.output.append(Printed("command", words))

    def _on_traffic_sampled(self, event: events.TrafficSampled) -> None:
        last = self._sample
        if last is None or last.trial != event.trial or event.t_s <= last.t_s:
            self._zero = self._clock() - event.t_s
            for pair in event.bytes:
                self.curves[pair].add(self._zero, 0.0)
            last = events.TrafficSampled(trial=event.trial, t_s=0.0, bytes={})
        passed = event.t_s - last.t_s
        if passed > 0:
            for pair, count in event.bytes.items():  # what nobody counts has no curve
                arrived = count - last.bytes.get(pair, 0)
                self.curves[pair].add(self._zero + event.t_s, max(0.0, arrived * 8 / passed))
        self._sample, self._heard = event, self._clock()

    def _on_output_seen(self, event: events.OutputSeen) -> None:
        key = (event.host, event.stream)
        for line in event.text.splitlines(keepends=True)[-_OUTPUT_LINES:]:
            text, before = line.rstrip("\r\n"), self._open_lines.pop(key, None)
            # Of one command alone, what another stream said in between begins a line.
            place = (
                self._place_of(before) if event.host or (self.output and self.output[-1] is before) else None
            )
            if before is not None and place is not None:
                text = before.text + text
            shown = _CONTROLS.sub("", text[: 2 * _LINE_CHARACTERS])[:_LINE_CHARACTERS]
            printed = Printed(event.stream, shown, event.host)
            if place is None:
                self.output.append(printed)
            else:
                self.output[place] = printed
            if not line.endswith(("\n", "\r")):
                self._open_lines[key] = printed

    def _place_of(self, printed: Printed | None) -> int | None:
        """Where that line still is in the output."""
        return next((n for n in reversed(range(len(self.output))) if self.output[n] is printed), None)

    def _on_trial_finished(self, event: events.TrialFinished) -> None:
        trial = self._by_number.get(event.trial)
        if trial is None or event.trial in self.attempts:
            return
        attempt = Attempt(
            trial=trial,
            standing=event.standing.value,
            wall_s=event.wall_s,
            reason=event.reason,
            bytes=dict(event.bytes),
            proofs=event.proofs,
            served_bytes=event.served_bytes,
            relayed_bytes=event.relayed_bytes,
            direct_bytes=event.direct_bytes,
            cache_found=event.cache_found,
            clients=tuple(replace(one, output="") for one in event.clients),
        )
        for one in event.clients:
            self.output.append(Printed("end", ended_words(one), one.host))
        self.attempts[event.trial] = self.last = attempt
        self.standing[event.trial] = attempt.standing
        self.counts[attempt.standing] = self.counts.get(attempt.standing, 0) + 1
        self.cells[trial.treatment].add(attempt)
        self._account(event)
        self._rest(event.trial)
        self.current = None
        self.last_at = event.at

    def _account(self, event: events.TrialFinished) -> None:
        spent = _seconds(self._trial_at, event.at) - (event.wall_s or 0.0)
        total, number = self._overhead
        self._overhead = (total + max(spent, event.preparing_s), number + 1)

    def _rest(self, number: int) -> None:
        """Bring the curves to zero after the trial's last sample."""
        if self._sample is not None and self._sample.trial == number:
            for curve in self.curves.values():
                curve.add(self._zero + self._sample.t_s + _EDGE_S, 0.0)
            self._sample = None

    def _on_line_settled(self, event: events.LineSettled) -> None:
        """What is spared is in the plan no more."""
        gone = set(event.spared)
        self.trials = tuple(trial for trial in self.trials if trial.number not in gone)
        for number in gone & self._by_number.keys():
            cell = self.cells[self._by_number.pop(number).treatment]
            cell.trials = [trial for trial in cell.trials if trial.number not in gone]
            self.standing.pop(number, None)
        self.settled[event.line] = event
        self.notes.append(events.Noted(text=event.text, grade="info" if event.stable else "warn"))

    def _on_noted(self, event: events.Noted) -> None:
        self.notes.append(event)
        if event.lost:
            self.lost[event.lost] = event.text

    def _on_host_seen(self, event: events.HostSeen) -> None:
        if self.lost.pop(event.host, ""):
            self.found_again.add(event.host)
        if event.host in self.hosts:  # it is made ready anew, and no line is held meanwhile
            self.applied_line = None
        self.hosts[event.host] = event

    def _on_data_measured(self, event: events.DataMeasured) -> None:
        self.data = event.facts

    def _on_tool_measured(self, event: events.ToolMeasured) -> None:
        self.tool = event

    def _on_cache_filled(self, event: events.CacheFilled) -> None:
        self.fills[event.operation] = event

    def _on_line_proved(self, event: events.LineProved) -> None:
        self.proved[event.line] = event
        self.applied_line = event.line

    def _on_host_changed(self, event: events.HostChanged) -> None:
        self.changed.append(event)
        self.last_at = event.at

    def _on_run_paused(self, event: events.RunPaused) -> None:
        self.paused = True

    def _on_run_resumed(self, event: events.RunResumed) -> None:
        self.paused = False

    def _on_run_finished(self, event: events.RunFinished) -> None:
        if self.current is not None:
            self.standing[self.current.trial.number] = WAITING
            self._rest(self.current.trial.number)
        self.current = None
        self.paused = False
        self.applied_line = None
        self.lost.clear()
        self.outcome, self.reason, self.advice = event.outcome, event.reason, event.advice
        self.last_at = event.at


_HANDLERS: dict[str, Callable[[Live, Any], None]] = {
    "run-started": Live._on_run_started,
    "run-continued": Live._on_run_continued,
    "host-seen": Live._on_host_seen,
    "data-measured": Live._on_data_measured,
    "tool-measured": Live._on_tool_measured,
    "cache-filled": Live._on_cache_filled,
    "line-proved": Live._on_line_proved,
    "trial-started": Live._on_trial_started,
    "command-started": Live._on_command_started,
    "traffic-sampled": Live._on_traffic_sampled,
    "output-seen": Live._on_output_seen,
    "trial-finished": Live._on_trial_finished,
    "line-settled": Live._on_line_settled,
    "host-changed": Live._on_host_changed,
    "noted": Live._on_noted,
    "run-paused": Live._on_run_paused,
    "run-resumed": Live._on_run_resumed,
    "run-finished": Live._on_run_finished,
}


def ended_words(one: events.ClientDone) -> str:
    """How one of several clients ended: `exit status 0 after 0:07.72, begun 0.4 ms after the first`."""
    status = "ended by a signal" if one.exit_status is None else f"exit status {one.exit_status}"
    told = f"{status} after {units.time_text(one.wall_s)}"
    return (
        f"{told}, begun {1000 * one.started_s:.1f} ms after the first"
        if one.started_s
        else f"{told}, begun first"
    )


def _seconds(began: str, ended: str) -> float:
    """Seconds between two ISO 8601 moments; 0 where one is missing or unreadable."""
    try:
        return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def _transfer_s(line_bytes: tuple[int, int], line: Line) -> float:
    """Seconds that these bytes (upload, download) need at the line's rates; both directions run at once."""
    if line.upload_bps is None or line.download_bps is None:
        return 0.0
    up, down = line_bytes
    return max(up * 8 / line.upload_bps, down * 8 / line.download_bps)


def _distance(a: Line, b: Line) -> float:
    """How many times one line is as fast as the other; far for the line as it is."""
    if a.download_bps is None or b.download_bps is None:
        return float("inf")
    return max(a.download_bps / b.download_bps, b.download_bps / a.download_bps)
