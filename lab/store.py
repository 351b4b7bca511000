"""The record of a run: one SQLite file, written before anything is shown, replayed as the same events."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sqlite3
import struct
import tempfile
import zlib
from array import array
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import platformdirs

from lab import repeats, rows, settings
from lab.errors import BadInput, LabError
from lab.events import (
    Event,
    LineSettled,
    Outcome,
    OutputSeen,
    RunContinued,
    RunFinished,
    RunStarted,
    TrafficSampled,
    TrialFinished,
    from_json,
    to_json,
)
from lab.model import Trial

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

SUFFIX = ".branchlab"
SCHEMA = 2
"""2: trials were done again. A file without any still says 1, so that an older BranchLab opens it."""
APPLICATION = 0x42724C62
"""`BrLb`: what SQLite's header says a run file is."""
OUTPUT_CHARS = 200_000
"""About so much of one trial's output is kept as it came; the end of all of it is in the trial's record."""
NO_LAST_WORD = "it ended without a last word"
STILL_WRITTEN = "it is still being written"

_BITS, _DOUBLE = struct.Struct("<q"), struct.Struct("<d")
_TABLES = """
CREATE TABLE head (
    run TEXT NOT NULL, experiment TEXT NOT NULL, lab TEXT NOT NULL, started TEXT NOT NULL,
    planned INTEGER NOT NULL, outcome TEXT, reason TEXT, finished TEXT
);
CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, trial INTEGER, json TEXT NOT NULL);
CREATE INDEX events_by_kind ON events (kind);
CREATE TABLE trials (
    trial INTEGER PRIMARY KEY, operation TEXT NOT NULL, state TEXT NOT NULL,
    upload_bps INTEGER, download_bps INTEGER, standing TEXT NOT NULL, wall_s REAL
);
CREATE TABLE samples (trial INTEGER NOT NULL, pairs TEXT NOT NULL, data BLOB NOT NULL);
CREATE INDEX samples_by_trial ON samples (trial);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the list of runs shows of a file. `started` is UTC, ISO 8601; `planned` counts trials."""

    run: str
    experiment: str
    outcome: str
    started: str
    file: Path
    reason: str = ""
    planned: int = 0
    finished: int = 0
    """Trials with a record."""

    @property
    def told(self) -> str:
        """The outcome in a word for people: a run that goes on, or was killed, has none yet."""
        return {STILL_WRITTEN: "running", NO_LAST_WORD: "broke off"}.get(self.reason, self.outcome)


def data_folder() -> Path:
    """Where data lives: `BRANCHLAB_DATA`, else what is set, else the platform's folder for user data. Not made here."""
    named = os.environ.get("BRANCHLAB_DATA") or settings.held().data
    return (
        Path(named).expanduser().absolute()
        if named
        else platformdirs.user_data_path("branchlab", appauthor=False)
    )


def runs_folder() -> Path:
    """Where run files live; not made here."""
    return data_folder() / "runs"


def new_path(experiment: str, folder: Path | None = None) -> Path:
    """A name for a new run file: date, time (UTC) and the experiment's name; never that of another file.

    Makes the folder. Raises LabError if it cannot be made or written.
    """
    folder = runs_folder() if folder is None else folder
    with _in_words(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass  # only to see that files can be made here
    slug = re.sub(r"[^a-z0-9]+", "-", experiment.lower()).strip("-")[:40].strip("-") or "run"
    stem = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{slug}"
    path, n = folder / f"{stem}{SUFFIX}", 1
    while path.exists():
        n += 1
        path = folder / f"{stem}-{n}{SUFFIX}"
    return path


def recorded(events: Iterator[Event], path: Path) -> Iterator[Event]:
    """The same events, each written to a new file at `path` before it is passed on.

    Raises LabError before the first event is passed on if the file exists or cannot be made. If it
    cannot be written later, that error is raised inside `events` (where it is a generator), so that the
    run takes back what it did and still says its last word. The file is closed however this ends.
    """
    first = next(events, None)
    if not isinstance(first, RunStarted):
        raise TypeError(f"a run begins with RunStarted, not with {first!r}")
    yield from _passed_on(events, first, _Recorder(path, first))


def continued(events: Iterator[Event], path: Path) -> Iterator[Event]:
    """The same events, each added to the run in the file at `path` before it is passed on; as `recorded`.

    They begin with RunContinued. Raises BadInput before the first one for a file that is none, or still written.
    """
    with opened(path) as record:
        if record.live:
            raise BadInput(f"{path}: {STILL_WRITTEN}", advice="Repeat its trials once it is over.")
        plan = record.told().trials
    first = next(events, None)
    if not isinstance(first, RunContinued):
        raise TypeError(f"a run goes on with RunContinued, not with {first!r}")
    yield from _passed_on(events, first, _Recorder(path, first, plan))


def _passed_on(events: Iterator[Event], first: Event, recorder: _Recorder) -> Iterator[Event]:
    try:
        yield first
        for event in events:
            try:
                recorder.write(event)
            except LabError as error:
                yield event
                yield from _told(events, error)
                return
            yield event
    finally:
        if isinstance(events, Generator):
            events.close()  # first the hosts, then the file
        recorder.close()


def _told(events: Iterator[Event], error: LabError) -> Iterator[Event]:
    """What is left of `events` after `error` was raised inside them."""
    if not isinstance(events, Generator):
        raise error
    yield events.throw(error)
    yield from events


def opened(path: Path) -> Record:
    """The record in a run file, also while another process writes it, and on media that is read-only.

    Raises BadInput if there is no such file, if it is no run file, damaged, or from a newer BranchLab.
    """
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file", advice="`branchlab runs` lists the runs there are.")
    live = _tidied(path)
    record = Record(path, live)
    try:
        record.check()
    except BaseException:
        record.close()
        raise
    return record


def runs(folder: Path | None = None) -> tuple[Head, ...]:
    """All runs of a folder, newest first. Files that cannot be read are left out, and logged."""
    heads = []
    for path in (runs_folder() if folder is None else folder).glob(f"*{SUFFIX}"):
        try:
            with opened(path) as record:
                heads.append(record.head)
        except LabError as error:
            log.warning("left out: %s", error)
    return tuple(sorted(heads, key=lambda head: (head.started, head.file.name), reverse=True))


def found(text: str, folder: Path | None = None) -> Path:
    """The file of a run, named by its path, its file's name, its id, the beginning of one, or `last`.

    Raises BadInput if none or several are meant.
    """
    if Path(text).is_file():
        return Path(text)
    heads = runs(folder)
    if text == "last" and heads:
        return heads[0].file
    exact = [h for h in heads if text in (h.run, h.file.name, h.file.stem)]
    meant = exact or [h for h in heads if text and (h.run.startswith(text) or h.file.name.startswith(text))]
    if len(meant) == 1:
        return meant[0].file
    several = f"several runs begin with `{text}`: {', '.join(h.run for h in meant[:3])}"
    raise BadInput(
        several if meant else f"there is no run `{text}`",
        advice="Write a run's id as `branchlab runs` lists it, `last`, or the path of a run file.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """A run in pandas. Columns carry their units; times are UTC; what is unknown is missing."""

    trials: pd.DataFrame
    """A row per finished trial, as `branchlab export RUN FILE.csv` writes it."""
    samples: pd.DataFrame
    """A row per trial, moment (`t_s`, from the trial's start) and pair: bytes that had arrived by then."""


def frames(path: str | Path) -> Frames:
    """A run file, opened in pandas in one line. Raises BadInput as `opened` does, and for a damaged run."""
    import pandas as pd

    with opened(Path(path)) as record:
        try:
            trials = pd.DataFrame(list(rows.trials(record.told().whole, record.trials())))
            if len(trials):
                trials["ended_utc"] = pd.to_datetime(trials["ended_utc"], utc=True)
                empty = trials.columns[trials.isna().all()]
                trials[empty] = trials[empty].astype(float)
        except (KeyError, ValueError) as error:
            raise BadInput(f"{path}: it is damaged: its trials cannot be read: {error}") from error
        samples = [
            {"trial": sample.trial, "t_s": sample.t_s, "pair": pair, "bytes": count}
            for trial in record.trials()
            for sample in record.samples(trial.trial)
            for pair, count in sample.bytes.items()
        ]
    return Frames(trials=trials, samples=pd.DataFrame(samples, columns=["trial", "t_s", "pair", "bytes"]))


class Record:
    """A run as its file tells it. A context manager; made by `opened`."""

    def __init__(self, path: Path, live: bool) -> None:
        self.path = path
        self.live = live
        """True if a process was still writing the file when it was opened."""
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        with _read_in_words(path):
            self._db = self._connected()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file. Idempotent."""
        self._db.close()
        if self._copy:
            self._copy.cleanup()

    def check(self) -> None:
        """Raise BadInput unless this is a run file that this version can read."""
        with _read_in_words(self.path):
            (application,) = self._db.execute("PRAGMA application_id").fetchone()
            (schema,) = self._db.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION:
                raise BadInput(
                    f"{self.path}: this is no run of BranchLab", advice=f"Its runs end in {SUFFIX}."
                )
            if schema > SCHEMA:
                raise BadInput(
                    f"{self.path}: a newer BranchLab wrote it (schema {schema}; this one knows {SCHEMA})",
                    advice="Open it with that version, or update this one.",
                )
            if self._db.execute("SELECT count(*) FROM head").fetchone() != (1,):
                raise BadInput(f"{self.path}: it is damaged: it names no run")
            first = self._db.execute("SELECT kind FROM events ORDER BY id LIMIT 1").fetchone()
            if first != ("run-started",):
                raise BadInput(f"{self.path}: it is damaged: its first event is missing")

    @property
    def head(self) -> Head:
        """The run in short."""
        with _read_in_words(self.path):
            run, experiment, started, planned = self._db.execute(
                "SELECT run, experiment, started, planned FROM head"
            ).fetchone()
            (finished,) = self._db.execute("SELECT count(*) FROM trials").fetchone()
        return Head(
            run=run,
            experiment=experiment,
            outcome=self.outcome.value,
            started=started,
            file=self.path,
            reason=self.reason,
            planned=planned,
            finished=finished,
        )

    @property
    def run_started(self) -> RunStarted:
        """The first word: experiment and plan."""
        first = next(self._of_kind("run-started"), None)
        if not isinstance(first, RunStarted):
            raise BadInput(f"{self.path}: it is damaged: its first event is missing")
        return first

    def told(self) -> repeats.Told:
        """The whole plan, with what was added to it, and what came of it."""
        return repeats.told(self.events(samples=False))

    @property
    def outcome(self) -> Outcome:
        """How the run ended; stopped, if it ended without a last word or is still being written."""
        with _read_in_words(self.path):
            (outcome,) = self._db.execute("SELECT outcome FROM head").fetchone()
            return Outcome(outcome) if outcome else Outcome.STOPPED

    @property
    def reason(self) -> str:
        """Why it ended so; empty if there is nothing to say."""
        with _read_in_words(self.path):
            outcome, reason = self._db.execute("SELECT outcome, reason FROM head").fetchone()
        return str(reason or "") if outcome else STILL_WRITTEN if self.live else NO_LAST_WORD

    def trials(self) -> tuple[TrialFinished, ...]:
        """All finished trials in the order in which they ended."""
        return tuple(event for event in self._of_kind("trial-finished") if isinstance(event, TrialFinished))

    def events(self, *, samples: bool = True) -> Iterator[Event]:
        """All events in order, samples in their places (or left out).

        A file that nobody writes any more and that has no last word is given one (stopped, with the reason).
        """
        last, at = None, ""
        known, places = None, dict[int, list[TrafficSampled]]()
        with _read_in_words(self.path):
            for number, trial, text in self._db.execute("SELECT id, trial, json FROM events ORDER BY id"):
                last = from_json(text)
                at = getattr(last, "at", at)
                yield last
                if samples and trial is not None:
                    if trial != known:
                        known, places = trial, self._samples(trial)
                    yield from places.get(number, ())
            if not isinstance(last, RunFinished) and not self.live:
                yield RunFinished(at=at, outcome=Outcome.STOPPED, reason=NO_LAST_WORD)

    def samples(self, trial: int) -> tuple[TrafficSampled, ...]:
        """The samples of one trial, in order."""
        with _read_in_words(self.path):
            return tuple(sample for samples in self._samples(trial).values() for sample in samples)

    def _samples(self, trial: int) -> dict[int, list[TrafficSampled]]:
        """Samples of a trial by the event after which they came."""
        found: dict[int, list[TrafficSampled]] = {}
        rows = self._db.execute("SELECT pairs, data FROM samples WHERE trial = ? ORDER BY rowid", (trial,))
        for pairs, data in rows:
            for place, sample in _unpacked(trial, json.loads(pairs), data):
                found.setdefault(place, []).append(sample)
        return found

    def _of_kind(self, kind: str) -> Iterator[Event]:
        with _read_in_words(self.path):
            for (text,) in self._db.execute("SELECT json FROM events WHERE kind = ? ORDER BY id", (kind,)):
                yield from_json(text)

    def _connected(self) -> sqlite3.Connection:
        try:
            return _reading(self.path)
        except sqlite3.OperationalError:
            # Written to the end of a crash, and now in a folder where SQLite may not put its index of the
            # write-ahead log: the same in a folder where it may.
            self._copy = tempfile.TemporaryDirectory(prefix="branchlab-")
            for name in (self.path.name, f"{self.path.name}-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(self.path.with_name(name), Path(self._copy.name, name))
            return _reading(Path(self._copy.name, self.path.name))


class _Recorder:
    """Writes one file. Raises LabError, in words, when it cannot."""

    def __init__(
        self, path: Path, first: RunStarted | RunContinued, plan: Mapping[int, Trial] | None = None
    ) -> None:
        self._path = path
        self._plan = {**(plan or {}), **{trial.number: trial for trial in first.trials}}
        self._samples: list[tuple[int, TrafficSampled]] = []
        self._place = 0
        self._output = (0, 0)  # trial, characters of its output so far
        if isinstance(first, RunStarted):
            with _in_words(path):
                path.open("x").close()  # never over another file
        # The generator that owns this may be closed by another thread than the one that pulled it.
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            with _in_words(path):
                if isinstance(first, RunContinued):
                    self._continue(first)
                else:
                    self._begin(first)
        except BaseException:
            self.close()
            if isinstance(first, RunStarted):
                path.unlink(missing_ok=True)
            raise

    def write(self, event: Event) -> None:
        """One event; samples wait for the trial's end. Of a trial's output no more than `OUTPUT_CHARS` is kept."""
        if isinstance(event, TrafficSampled):
            if self._samples and self._samples[0][1].trial != event.trial:
                self._flush()
            self._samples.append((self._place, event))
            return
        if isinstance(event, OutputSeen):
            known = self._output[1] if self._output[0] == event.trial else 0
            self._output = (event.trial, known + len(event.text))
            if known > OUTPUT_CHARS:
                return
        with _in_words(self._path):
            if isinstance(event, TrialFinished | RunFinished):
                self._end(event)
            else:
                self._insert(event)

    def close(self) -> None:
        """Write what waits, and make the file one file again. Never raises: the hosts come first."""
        try:
            with suppress(LabError):
                self._flush()
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.Error as error:
            log.warning("%s: left with its write-ahead log beside it: %s", self._path, error)
        finally:
            self._db.close()

    def _begin(self, first: RunStarted) -> None:
        self._db.execute(f"PRAGMA application_id={APPLICATION}")
        self._db.execute("PRAGMA user_version=1")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.executescript("BEGIN;" + _TABLES + "COMMIT;")
        self._db.execute("BEGIN")
        self._db.execute(
            "INSERT INTO head (run, experiment, lab, started, planned) VALUES (?, ?, ?, ?, ?)",
            (first.run, first.experiment.name, first.lab, first.at, len(first.trials)),
        )
        self._insert(first)
        self._db.execute("COMMIT")
        self._db.execute("PRAGMA synchronous=NORMAL")

    def _continue(self, first: RunContinued) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        with _transaction(self._db):
            self._db.execute(f"PRAGMA user_version={SCHEMA}")
            self._db.execute("UPDATE head SET outcome = NULL, reason = NULL, finished = NULL")
            self._insert(first)
        self._db.execute("PRAGMA synchronous=NORMAL")

    def _insert(self, event: Event) -> None:
        if isinstance(event, LineSettled) and event.spared:
            self._db.execute("UPDATE head SET planned = planned - ?", (len(event.spared),))
        row = (event.kind, getattr(event, "trial", None), to_json(event))
        self._place = self._db.execute(
            "INSERT INTO events (kind, trial, json) VALUES (?, ?, ?)", row
        ).lastrowid or (self._place + 1)

    def _end(self, event: TrialFinished | RunFinished) -> None:
        """The end of a trial or of the run, on the disk before anyone hears of it."""
        self._flush()
        self._db.execute("PRAGMA synchronous=FULL")
        with _transaction(self._db):
            self._insert(event)
            if isinstance(event, RunFinished):
                self._db.execute(
                    "UPDATE head SET outcome = ?, reason = ?, finished = ?",
                    (event.outcome.value, event.reason, event.at),
                )
            else:
                self._result(event)
        self._db.execute("PRAGMA synchronous=NORMAL")

    def _result(self, event: TrialFinished) -> None:
        treatment = self._plan[event.trial].treatment
        row = (
            event.trial,
            treatment.operation,
            treatment.state.key,
            treatment.line.upload_bps,
            treatment.line.download_bps,
            event.standing.value,
            event.wall_s,
        )
        if root := self._plan[event.trial].repeats:  # this table has what counts; the events have everything
            gone = [n for n, one in self._plan.items() if root in (n, one.repeats) and n != event.trial]
            self._db.executemany("DELETE FROM trials WHERE trial = ?", [(n,) for n in gone])
        self._db.execute("INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _flush(self) -> None:
        samples, self._samples = self._samples, []
        with _in_words(self._path), _transaction(self._db):
            for trial, pairs, data in _packed(samples):
                self._db.execute("INSERT INTO samples VALUES (?, ?, ?)", (trial, json.dumps(pairs), data))


def _packed(samples: list[tuple[int, TrafficSampled]]) -> Iterator[tuple[int, list[str], bytes]]:
    """Samples, each with its place among the events, as one compressed array per set of pairs.

    A row of the array is: place, the bits of the time in seconds, bytes of each pair; all of 64 bits,
    little-endian.
    """
    while samples:
        trial, pairs = samples[0][1].trial, list(samples[0][1].bytes)
        rows = array("q")
        taken = 0
        for place, sample in samples:
            if list(sample.bytes) != pairs:
                break
            taken += 1
            rows.extend((place, *_BITS.unpack(_DOUBLE.pack(sample.t_s)), *sample.bytes.values()))
        samples = samples[taken:]
        yield trial, pairs, zlib.compress(_little_endian(rows).tobytes())


def _unpacked(trial: int, pairs: list[str], data: bytes) -> Iterator[tuple[int, TrafficSampled]]:
    rows = array("q")
    rows.frombytes(zlib.decompress(data))
    rows = _little_endian(rows)
    width = 2 + len(pairs)
    for n in range(0, len(rows), width):
        place, bits, *values = rows[n : n + width]
        (t_s,) = _DOUBLE.unpack(_BITS.pack(bits))
        yield place, TrafficSampled(trial=trial, t_s=t_s, bytes=dict(zip(pairs, values, strict=True)))


def _little_endian(rows: array[int]) -> array[int]:
    if array("H", [1]).tobytes() != b"\x01\x00":
        rows.byteswap()
    return rows


def _tidied(path: Path) -> bool:
    """Make a file that a crash left in two parts one file again; True if someone is still writing it."""
    if not path.with_name(f"{path.name}-wal").exists():
        return False
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0)
        try:
            db.execute("PRAGMA journal_mode=DELETE")  # refused while another connection has the file open
        finally:
            db.close()
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    except sqlite3.DatabaseError:
        return False  # opening it will say what is wrong
    return False


def _reading(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """What SQLite and the system say while writing, as an error for people."""
    try:
        yield
    except FileExistsError as error:
        raise BadInput(f"{path}: there is a file of this name already") from error
    except (OSError, sqlite3.Error) as error:
        raise LabError(
            f"{path}: the run cannot be recorded: {getattr(error, 'strerror', None) or error}",
            advice="Free some space there, or name another folder in BRANCHLAB_DATA.",
        ) from error


@contextmanager
def _read_in_words(path: Path) -> Iterator[None]:
    """What SQLite and JSON say of a file that is none of ours, or broken, as an error for people."""
    try:
        yield
    except (sqlite3.Error, ValueError, zlib.error, OSError) as error:
        raise BadInput(
            f"{path}: it is damaged, or no run of BranchLab: {str(error).splitlines()[0]}",
            advice="Take another copy of the file if there is one.",
        ) from error
