"""Trials that a person leaves out of a run's figures, with the reason, kept in the run file beside them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from lab import store
from lab.errors import BadInput, LabError
from lab.events import Standing

_TABLE = (
    "CREATE TABLE IF NOT EXISTS excluded (trial INTEGER PRIMARY KEY, reason TEXT NOT NULL, at TEXT NOT NULL)"
)


def reasons(path: Path) -> dict[int, str]:
    """Numbers of the trials of a run file that are left out, each with its reason; {} for a file without any.

    A file that cannot be read has none here: `lab.store.opened` says what is wrong with it.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            return {
                int(trial): str(reason) for trial, reason in db.execute("SELECT trial, reason FROM excluded")
            }
    except (sqlite3.Error, ValueError):
        return {}


def exclude(path: Path, trial: int, reason: str) -> None:
    """Leave a kept trial out of the figures from now on; its record stays as it is.

    Raises BadInput without a reason, for a trial that is not kept, and for a run that is still going on;
    LabError if the file cannot be written.
    """
    if not reason.strip():
        raise BadInput(
            f"trial {trial}: no reason was given", advice="Say why it is left out; it is kept and shown."
        )
    with store.opened(path) as record:
        _refuse_live(record)
        kept = {one.trial for one in record.trials() if one.standing is Standing.KEPT}
    if trial not in kept:
        raise BadInput(
            f"{path}: trial {trial} is no kept attempt, so it counts nowhere already",
            advice="`branchlab export RUN FILE.csv` lists every trial with its number and standing.",
        )
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    _write(path, "INSERT OR REPLACE INTO excluded VALUES (?, ?, ?)", (trial, reason.strip(), at))


def include(path: Path, trial: int) -> None:
    """Take a trial back into the figures. Raises BadInput if it was not left out."""
    with store.opened(path) as record:
        _refuse_live(record)
    if trial not in reasons(path):
        raise BadInput(
            f"{path}: trial {trial} is not left out", advice="`branchlab show RUN` lists those that are."
        )
    _write(path, "DELETE FROM excluded WHERE trial = ?", (trial,))


def _refuse_live(record: store.Record) -> None:
    if record.live:
        raise BadInput(
            f"{record.path}: {store.STILL_WRITTEN}", advice="Leave trials out once the run is over."
        )


def _write(path: Path, statement: str, values: tuple[object, ...]) -> None:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as db, db:
            db.execute(_TABLE)
            db.execute(statement, values)
    except sqlite3.Error as error:
        raise LabError(
            f"{path}: what is left out cannot be recorded: {error}",
            advice="Copy the run file to a folder that you may write, and name the copy.",
        ) from error
