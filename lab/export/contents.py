"""All that an export can say of a run, gathered once from its file: summary, trials, figures, tables, method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from lab import exclusions, repeats, rows, store, units
from lab.analysis import before_after, words
from lab.analysis import published as published_figures
from lab.analysis.summary import Summary, summarised
from lab.errors import BadInput
from lab.events import DataMeasured, Event, HostSeen, RunStarted, Standing, ToolMeasured, TrialFinished
from lab.export import making, tables, titles
from lab.export.figures import Figure
from lab.export.files import clean
from lab.export.tables import Table
from lab.model import Experiment
from lab.rows import Value, utc
from lab.store import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What an export chooses from. `trials` are flat rows, `method` is name and text, one a line of the appendix."""

    summary: Summary
    results: tuple[TrialFinished, ...]
    trials: tuple[dict[str, Value], ...]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    method: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The experiment's name, fit for a title."""
        return clean(self.summary.started.experiment.name).replace("\n", " ").strip() or "A run of BranchLab"

    @property
    def verdict(self) -> str:
        """What the run came to, in a sentence."""
        return self.summary.verdict or "This run gives no verdict."

    @property
    def usual(self) -> tuple[Figure, ...]:
        """The figures that are shown where nobody chose."""
        return making.usual(self.summary, self.figures)

    @property
    def facts(self) -> dict[str, str]:
        """The method by name, without what any two runs differ in."""
        version = self.summary.started.version
        known = {name: text for name, text in self.method if name not in ("Run", "BranchLab")}
        return {**known, "BranchLab": version} if version else known

    def table(self, key: str) -> Table | None:
        """The table of this key."""
        return next((table for table in self.tables if table.key == key), None)


def named(name: str) -> Contents:
    """The contents of a run by its name or file, or of published times. Raises BadInput."""
    if name in published_figures.names():
        return published(name)
    if name in before_after.names():
        raise BadInput(
            f"{name} is a comparison itself",
            advice=f"No run can be held against it. See it with: branchlab show {name}.",
        )
    with store.opened(store.found(name)) as record:
        return gathered(record)


def gathered(record: Record) -> Contents:
    """The contents of a run file. Raises BadInput for one that is damaged."""
    events = tuple(record.events(samples=False))
    try:
        summary = summarised(events, excluded=exclusions.reasons(record.path))
        results = tuple(event for event in events if isinstance(event, TrialFinished))
        return Contents(
            summary=summary,
            results=results,
            trials=tuple(rows.trials(repeats.told(events).whole, results)),
            figures=making.figures(summary, results),
            tables=tables.tables(summary),
            method=tuple(_method(summary, events)),
        )
    except (KeyError, ValueError) as error:
        raise BadInput(
            f"{record.path}: it is damaged: {error}",
            advice="Take another copy of the file if there is one.",
        ) from error


def published(name: str) -> Contents:
    """The contents of published figures. Raises BadInput for a name that is none of theirs."""
    summary = published_figures.summary(name)
    return Contents(
        summary=summary,
        results=(),
        trials=(),
        figures=making.figures(summary),
        tables=tables.tables(summary),
        method=(
            ("Published", clean(summary.source)),
            ("Lines", _lines(summary)),
            ("BranchLab", f"exported by {_version()}"),
        ),
    )


def _lines(summary: Summary) -> str:
    return "upload/download: " + "; ".join(words.line(line) for line in summary.started.experiment.lines)


def _method(summary: Summary, events: Iterable[Event]) -> list[tuple[str, str]]:
    """How it was measured and with what, for the appendix."""
    started, experiment = summary.started, summary.started.experiment
    names = [words.operation(name) for name in experiment.operations]
    found = [
        ("Run", f"{started.run}, begun {_moment(started.at)}, {_ended(summary)}"),
        ("Attempts", _attempts(summary, started)),
        ("Operations", f"{words.listed(names)} ({experiment.vcs})"),
        ("Lines", _lines(summary)),
        ("Proxy states", ", ".join(titles.state(proxy) for proxy in experiment.states)),
        ("Order", f"{experiment.order}, seed {experiment.seed}"),
        ("Times", f"{_clock(experiment)}; medians of kept attempts"),
        ("Traffic", "IP bytes, counted with nftables at the host where they arrive, after the line"),
        ("Differences", _differences(summary)),
    ]
    for event in events:
        if isinstance(event, DataMeasured):
            found.append(("Data", _data(event.facts)))
        elif isinstance(event, ToolMeasured):
            cost = words.duration(event.start_s)
            found.append(("Tool", f"{event.tool} {event.version}; starting it costs {cost}"))
        elif isinstance(event, HostSeen):
            found.append((f"Host {event.host}", _host(event)))
    found.append(("BranchLab", f"{started.version or 'version not on record'}; exported by {_version()}"))
    return [(clean(name), clean(text)) for name, text in found]


def _clock(experiment: Experiment) -> str:
    if together := words.at_once(experiment):
        return f"{together}: from the first one's start to the last one's end, each timed on itself"
    return "wall clock of the command, on the client"


def _version() -> str:
    try:
        return metadata.version("branchlab")
    except metadata.PackageNotFoundError:
        return "a version that is not installed"


def _moment(at: str) -> str:
    try:
        return f"{utc(at):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return at


def _ended(summary: Summary) -> str:
    finished = summary.finished
    why = f": {finished.reason}" if finished and finished.reason else ""
    when = f" {_moment(finished.at)}" if finished and finished.at else ""
    return f"{summary.outcome}{when}{why}"


def _attempts(summary: Summary, started: RunStarted) -> str:
    experiment = started.experiment
    order = {Standing.KEPT: "kept", Standing.WARM_UP: "warm-up", Standing.VOID: "without proof"}
    told = [f"{count} {order.get(Standing(key), key)}" for key, count in summary.standings.items()]
    if summary.repeated:
        told.append(f"{len(summary.repeated)} of them in place of trials that failed or had no proof")
    warm = f", the first {experiment.warm_up} not counted" if experiment.warm_up else ""
    return f"{experiment.attempts} per cell{warm}; {len(started.trials)} trials planned: {', '.join(told) or 'none'}"


def _differences(summary: Summary) -> str:
    least = max(0.020, summary.tool_start_s)
    return f"a difference under {round(least * 1000)} ms is never called one"


def _data(facts: dict[str, Any]) -> str:
    size = facts.get("bytes")
    parts = [
        f"`{facts['recipe']}`" if "recipe" in facts else "",
        f"{facts['files']} files" if "files" in facts else "",
        units.bytes_text(size) if isinstance(size, int) else "",
        f"revision {facts['revision']}" if "revision" in facts else "",
    ]
    return ", ".join(part for part in parts if part) or "measured, with no facts on record"


def _host(event: HostSeen) -> str:
    facts = event.facts
    tools = facts.get("tools")
    shown = _tools(tools.values(), tools) if isinstance(tools, dict) else ""
    kernel = f"kernel {facts['kernel']}" if facts.get("kernel") else ""
    parts = [event.role, str(facts.get("os") or ""), kernel, shown]
    return ", ".join(part for part in parts if part)


def _tools(versions: Iterable[object], names: Iterable[str]) -> str:
    """Tools by name, with what of their version can be told shortly."""
    told: Sequence[str] = [
        f"{name} {version}" if str(version)[:1].isdigit() else str(version)
        for name, version in zip(names, versions, strict=True)
    ]
    return "; ".join(told)
