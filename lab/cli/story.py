"""A run in the terminal from its first trial to its answers, and what is said of a run that is over."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lab import exclusions, repeats, runner, store
from lab.analysis.summary import Summary, summarised
from lab.cli import progress, signals, tables, trouble
from lab.events import Event, Outcome, OutputSeen, TrafficSampled
from lab.live import Live
from lab.model import Experiment, Lab
from lab.stop import Stop
from lab.testbed import Testbed


def repeat(path: Path, known: repeats.Told, testbed: Testbed, out: Console) -> int:
    """Do again what went wrong in the run of this file, show that as it passes, then the whole run's results."""
    stop = Stop()
    live = Live()
    with store.opened(path) as record:
        seen: list[Event] = [
            event for event in record.events(samples=False) if not isinstance(event, OutputSeen)
        ]
    going = store.continued(runner.repeat(known, testbed, stop), path)
    for event in seen:
        live.apply(event)
    with progress.screen(out, live) as screen, signals.asking(stop, screen.say):
        for event in going:
            screen.apply(event)
            if not isinstance(event, TrafficSampled | OutputSeen):
                seen.append(event)
    summary = summarised(seen, excluded=exclusions.reasons(path))
    report(summary, path, out)
    return code_of(summary)


def run(lab: Lab, experiment: Experiment, testbed: Testbed, out: Console) -> int:
    """Run an experiment, show it as it passes, then its results. The exit code."""
    path, seen = told(lab, experiment, testbed, out)
    summary = summarised(seen)
    report(summary, path, out)
    return code_of(summary)


def told(lab: Lab, experiment: Experiment, testbed: Testbed, out: Console) -> tuple[Path, list[Event]]:
    """Run an experiment and show it as it passes. Its file, and its events without samples and output."""
    path = store.new_path(experiment.name)
    stop = Stop()
    events = store.recorded(runner.run(experiment, testbed, stop, lab_name=lab.name), path)
    seen: list[Event] = []
    with progress.screen(out) as screen, signals.asking(stop, screen.say):
        for event in events:
            screen.apply(event)
            if not isinstance(event, TrafficSampled | OutputSeen):
                seen.append(event)
    return path, seen


def code_of(summary: Summary) -> int:
    """The exit code of a run that is over."""
    match summary.outcome:
        case Outcome.STOPPED:
            return trouble.INTERRUPTED
        case Outcome.FAILED:
            declined = summary.finished is not None and summary.finished.declined
            return trouble.BAD_INPUT if declined else trouble.HOST_TROUBLE
    left = summary.finished is not None and summary.finished.left
    return trouble.DONE if summary.complete and not left else trouble.INCOMPLETE


def report(summary: Summary, path: Path | None, out: Console) -> None:
    """Tables, answers, and where the run file is, if it has one. Silent if nobody reads any more."""
    try:
        _report(summary, path, out)
    except (OSError, ValueError):
        out.quiet = True


def _ended(summary: Summary) -> str:
    """How the run ended, in the words of `branchlab runs`."""
    if summary.finished is None:
        return "still running"
    return "broke off" if summary.finished.reason == store.NO_LAST_WORD else str(summary.outcome)


def _report(summary: Summary, path: Path | None, out: Console) -> None:
    started = summary.started
    out.print()
    out.print(Text(summary.verdict, style="bold"), soft_wrap=not out.is_terminal)
    if summary.choice is not None:
        out.print(summary.choice.text, soft_wrap=not out.is_terminal)
    out.print(
        summary.source
        or f"{started.experiment.name}, run {started.run}, {started.at[:16].replace('T', ' ')} UTC: "
        f"{_ended(summary)}. Trials: {tables.proven(summary)}.",
        soft_wrap=not out.is_terminal,
    )
    if summary.finished is not None and summary.finished.reason:
        out.print(f"Why: {summary.finished.reason}", soft_wrap=True)
        if summary.finished.advice:
            out.print(f"What to do: {summary.finished.advice}", soft_wrap=True)
    if summary.finished is not None and summary.finished.left:
        out.print(f"Not taken back: {summary.finished.left}", soft_wrap=True)
    for table in tables.results(summary):
        out.print()
        out.print(table)
    out.print()
    for finding in summary.findings:
        out.print(Text(f"{finding.question}. {finding.asked}", style="bold"))
        out.print(f"   {finding.text}", soft_wrap=not out.is_terminal)
        for sentence in finding.more:
            out.print(f"   - {sentence.text}", soft_wrap=not out.is_terminal)
    if (models := tables.models(summary)) is not None:
        out.print()
        out.print(models)
    if summary.proved:
        out.print()
        out.print(tables.lines(summary.proved.values()))
    for remark in tables.remarks(summary):
        out.print(remark, soft_wrap=not out.is_terminal)
    if summary.overhead_s is not None:
        out.print(f"Preparing took {summary.overhead_s:.2f} s per trial on average.")
    if path is not None:
        out.print()
        out.print(where(path), soft_wrap=True)


def where(path: Path) -> str:
    """Where a run's file is, and the command that opens it again."""
    return f"Run file: {path}\nTo see it again: {command()} show {shlex.quote(str(path))}"


def command() -> str:
    """The command as it was called, with its full path, so that it can be pasted anywhere."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m lab"
    found = called if called.parent != Path() else Path(shutil.which(sys.argv[0]) or called)
    # Not resolved through links: a link into a virtual environment is what makes it that environment.
    return shlex.quote(str(found.absolute()))
