"""Published figures as a run that can be shown: cells without attempts, by the same rules as those of any run."""

from __future__ import annotations

import csv
import io
import tomllib
from importlib import resources
from typing import Any

from lab.analysis import words
from lab.analysis.cells import Cell, judged
from lab.analysis.choice import choice
from lab.analysis.findings import findings
from lab.analysis.line_model import models
from lab.analysis.summary import Summary
from lab.analysis.verdict import verdict
from lab.analysis.view import Use, View
from lab.errors import BadInput
from lab.events import Outcome, RunFinished, RunStarted
from lab.model import DISABLED, OPERATIONS, Experiment, Line, ProxyState

_STATES = {"disabled": DISABLED} | {f"cached-{full}": ProxyState(full=full) for full in (0, 90, 100)}
_UNITS = {"MB": "{} MB", "MB (about)": "about {} MB"}


def names() -> tuple[str, ...]:
    """The published sources that can be shown like a run: `published-2008`."""
    return tuple(name for name, source in sources().items() if "times" in source)


def summary(name: str, *, base: ProxyState = DISABLED) -> Summary:
    """A published source as a run would be summed up. Raises BadInput for another name than those of `names`.

    `base` is the state that the tables hold the others against.
    """
    source = sources().get(name, {})
    if "times" not in source:
        raise BadInput(f"`{name}` is no published source", advice=f"Write one of: {', '.join(names())}.")
    read = rows(str(source["times"]))
    lines = tuple(dict.fromkeys(_line(row) for row in read))
    operations = tuple(name for name in OPERATIONS if any(row["operation"] == name for row in read))
    known = {
        (_line(row), row["operation"], _STATES[row["proxy_state"]]): float(row["seconds"]) for row in read
    }
    figures = [
        Cell(line=line, operation=operation, proxy=proxy, median_s=seconds, bytes={}, published=True)
        for line in lines
        for operation in operations
        for proxy in _STATES.values()
        if (seconds := known.get((line, operation, proxy))) is not None
    ]
    cells = judged(figures)
    started = _started(name, source, lines, operations)
    view = View(
        cells=cells,
        classes=started.classes,
        uses={name: Use.PAST if name in source["unused"] else Use.SERVED for name in operations},
        why=str(source["unused_why"]),
        volumes=_volumes(rows(str(source["traffic"]))),
    )
    return Summary(
        started=started,
        finished=RunFinished(at=started.at, outcome=Outcome.DONE),
        cells=cells if base == DISABLED else judged(figures, base=base),
        base=base,
        findings=findings(view),
        verdict=verdict(view),
        choice=choice(view),
        models=models(cells),
        source=f"{source['title']}, {source['year']}: {source['about']}",
    )


def _started(
    name: str, source: dict[str, Any], lines: tuple[Line, ...], operations: tuple[str, ...]
) -> RunStarted:
    experiment = Experiment(
        name=f"{source['title']}, {source['year']} (published)",
        vcs="tfs",
        repository="",
        data=None,
        operations=operations,
        lines=lines,
        states=tuple(_STATES.values()),
        disabled_only=tuple(source["unused"]),
        order="published",
    )
    classes = {one: "server" if one in source["unused"] else "cacheable" for one in operations}
    return RunStarted(run=name, at=str(source["year"]), experiment=experiment, trials=(), classes=classes)


def _volumes(rows: list[dict[str, str]]) -> tuple[str, ...]:
    """What the source's text says of traffic, as sentences: volumes received, and what came directly."""
    received = [
        f"{words.operation(row['operation'])} {_UNITS[row['unit']].format(row['value'])}"
        for row in rows
        if row["quantity"] == "received"
    ]
    direct = [
        f"{row['value']} {row['unit']} for {words.operation(row['operation'])}"
        for row in rows
        if row["quantity"] == "direct from server"
    ]
    told = []
    if received:
        told.append(
            f"Received over the line (published; in which state is not said): {words.listed(received)}."
        )
    if direct:
        told.append(
            f"With the proxy there still came directly from the server (published): {words.listed(direct)}."
        )
    return tuple(told)


def _line(row: dict[str, str]) -> Line:
    return Line(upload_bps=1000 * int(row["upload_kbit_s"]), download_bps=1000 * int(row["download_kbit_s"]))


def sources() -> dict[str, dict[str, Any]]:
    """Where the published figures come from, and what their files hold."""
    return tomllib.loads(_text("sources.toml"))


def rows(file: str) -> list[dict[str, str]]:
    """The rows of a published file."""
    return list(csv.DictReader(io.StringIO(_text(file))))


def _text(file: str) -> str:
    return resources.files("resources").joinpath("reference", file).read_text("utf-8")
