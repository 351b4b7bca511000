"""A run as it passes, in a terminal: a bar, the time to go, the trial under way and the line's traffic.

Where the output is no terminal, plain text, one line per trial.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live as Display
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lab import units
from lab.analysis import words
from lab.cli.plain import plain
from lab.cli.tables import trial_words
from lab.events import (
    CacheFilled,
    Event,
    HostSeen,
    LineProved,
    LineSettled,
    Noted,
    RunContinued,
    RunFinished,
    RunStarted,
    Standing,
    TrialFinished,
)
from lab.live import Attempt, Live

REDRAW_S = 0.25
LEAST_SHOWN_BPS = 500
_MOST_CLIENTS = 4
"""So many are named each."""
_GRADES = {"warn": "yellow", "trouble": "red"}


class Screen(Protocol):
    """Shows a run's events. It never fails: what cannot be shown is in the file."""

    def apply(self, event: Event) -> None:
        """Take in one event."""

    def say(self, text: str) -> None:
        """A sentence beside the events; from any thread."""


@contextmanager
def screen(out: Console, live: Live | None = None) -> Iterator[Screen]:
    """The way to show a run on this output; `live` is what a run that goes on has told before."""
    live = live or Live()
    if not out.is_terminal:
        yield PlainScreen(out, live)
        return
    with Display(console=out, auto_refresh=False, transient=True) as display:
        yield TerminalScreen(out, display, live)


class PlainScreen:
    """One line per trial, and one for whatever else is worth knowing."""

    def __init__(self, out: Console, live: Live | None = None) -> None:
        self._out = out
        self._live = live or Live()

    def apply(self, event: Event) -> None:
        """Print the event's line, if it has one."""
        self._live.apply(event)
        if told := line_of(event, self._live):
            self.say(told)

    def say(self, text: str) -> None:
        """Print a line."""
        try:
            self._out.print(text, soft_wrap=True)
        except (OSError, ValueError):
            # The reader is gone. The run and its file go on.
            self._out.quiet = True


class TerminalScreen:
    """A few lines that are drawn anew; what must not be missed scrolls away above them."""

    def __init__(self, out: Console, display: Display, live: Live | None = None) -> None:
        self._out, self._display = out, display
        self._live = live or Live()
        self._drawn = 0.0

    def apply(self, event: Event) -> None:
        """Draw, at most some times a second."""
        self._live.apply(event)
        try:
            if scrolls(event) and (told := line_of(event, self._live)):
                self._out.print(Text(plain(told), style=style_of(event)))
            now = time.monotonic()
            if now - self._drawn >= REDRAW_S or isinstance(event, RunFinished):
                self._drawn = now
                self._display.update(picture(self._live), refresh=True)
        except (OSError, ValueError):
            self._out.quiet = True

    def say(self, text: str) -> None:
        """Print a line above the picture."""
        try:
            self._out.print(text)
        except (OSError, ValueError):
            self._out.quiet = True


def scrolls(event: Event) -> bool:
    """True for what a terminal keeps above the picture."""
    match event:
        case RunStarted() | LineProved() | LineSettled():
            return True
        case Noted(grade=grade):
            return grade in _GRADES
        case TrialFinished(standing=standing):
            return standing in (Standing.FAILED, Standing.VOID)
    return False


def style_of(event: Event) -> str:
    """Colour of a line that scrolls; its words say the same."""
    if isinstance(event, Noted):
        return _GRADES.get(event.grade, "")
    return "yellow" if isinstance(event, TrialFinished) else ""


def line_of(event: Event, live: Live) -> str:
    """What is said of an event in one line; empty for what only moves the picture."""
    match event:
        case RunStarted():
            return f"run {event.run}: {event.experiment.name}, {len(event.trials)} trials"
        case RunContinued():
            return f"run {live.run} goes on: {len(event.trials)} trials are done now"
        case HostSeen():
            return f"{event.host} ({event.role}) answers"
        case CacheFilled() if event.list_of not in ("", event.operation):
            brought = words.operation(event.operation)
            return f"{brought} brings nothing into the cache; full is what {words.operation(event.list_of)} needs"
        case CacheFilled():
            return (
                f"a full cache for {words.operation(event.operation)}: {event.objects} objects, "
                f"{words.amount(event.cache_bytes)}"
            )
        case LineProved():
            return _proved(event)
        case LineSettled():
            return event.text
        case Noted():
            return f"{'note' if event.grade == 'info' else event.grade}: {event.text}"
        case TrialFinished():
            attempt = live.attempts.get(event.trial)
            return _trial(attempt, live) if attempt else ""
    return ""


def _proved(event: LineProved) -> str:
    told = f"line {words.line(event.line)}"
    if event.achieved_upload_bps is not None and event.achieved_download_bps is not None:
        upload, download = event.achieved_upload_bps / 1000, event.achieved_download_bps / 1000
        told += f": a probe got {upload:.4g}/{download:.4g} kbit/s"
    if event.round_trip_s is not None:
        told += f", round trip {event.round_trip_s * 1000:.1f} ms"
    return told


def _trial(attempt: Attempt, live: Live) -> str:
    to_go = eta(live)
    place = f"{live.done:>{len(str(live.total))}}/{live.total}"
    return f"{place}  {attempt_words(attempt)}{f'  [{to_go} to go]' if to_go else ''}"


def attempt_words(attempt: Attempt) -> str:
    """A finished trial: `Get, 100 %, 512/1024 kbit/s, attempt 2: 0:06.05`, with why it does not count."""
    trial = attempt.trial
    name = trial_words(trial.treatment.operation, trial.treatment.state, trial.treatment.line)
    took = "no time" if attempt.wall_s is None else words.duration(attempt.wall_s)
    told = f"{name}, attempt {trial.attempt}: {took}"
    match attempt.standing:
        case Standing.KEPT:
            return f"{told}{clients_words(attempt)}"
        case Standing.VOID:
            return f"{told}, without proof: {attempt.reason}"
        case Standing.FAILED:
            return f"{name}, attempt {trial.attempt}: failed: {attempt.reason}"
        case Standing.LAUNCH:
            return f"{told} (for its traffic only)"
    return f"{told}{clients_words(attempt)} (warm-up, not counted)"


def clients_words(attempt: Attempt) -> str:
    """What each of several clients took: ` (desk-1 0:07.72, desk-2 0:08.66)`; of many the quickest and the slowest."""
    times = sorted((one.wall_s, one.host) for one in attempt.clients if one.wall_s is not None)
    if len(times) > _MOST_CLIENTS:
        times = [times[0], times[-1]]
        return " (" + " to ".join(f"{words.duration(took)} on {host}" for took, host in times) + ")"
    order = {one.host: n for n, one in enumerate(attempt.clients)}
    told = [f"{host} {words.duration(took)}" for took, host in sorted(times, key=lambda pair: order[pair[1]])]
    return f" ({', '.join(told)})" if told else ""


def eta(live: Live) -> str:
    """Time to go as a range: `3 – 4 min`; empty before anything was measured."""
    left = live.eta()
    if left is None:
        return ""
    return units.coming_text(*left)


def picture(live: Live) -> Group:
    """Bar, time to go, trial under way, traffic, last trial."""
    bar = Table.grid(padding=(0, 2))
    to_go = eta(live)
    bar.add_row(
        ProgressBar(total=max(live.total, 1), completed=live.done, width=40),
        Text(f"{live.done} of {live.total} trials"),
        Text(f"{to_go} to go" if to_go else "time to go: not known yet"),
    )
    rows: list[Text] = [Text(_now(live), no_wrap=True, overflow="ellipsis")]
    rows.append(Text(_traffic(live), no_wrap=True, overflow="ellipsis"))
    if live.last is not None:
        rows.append(Text(plain(f"last   {attempt_words(live.last)}"), no_wrap=True, overflow="ellipsis"))
    return Group(bar, *rows)


def _now(live: Live) -> str:
    if live.current is None:
        return "now    between trials" if live.done else "now    making the lab ready"
    trial = live.current.trial
    name = trial_words(trial.treatment.operation, trial.treatment.state, trial.treatment.line)
    if live.current.timed_since is None:
        return f"now    preparing {name}, attempt {trial.attempt}"
    return f"now    {name}, attempt {trial.attempt}: {words.duration(live.elapsed_s() or 0.0)}"


def _traffic(live: Live) -> str:
    moving = [
        f"{pair.replace('>', '→')} {curve.now / 1000:.0f} kbit/s"
        for pair, curve in live.curves.items()
        if curve.now >= LEAST_SHOWN_BPS
    ]
    return f"line   {', '.join(moving) or 'quiet'}"
