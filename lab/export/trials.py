"""A run's trials as rows for other programs: CSV and JSON lines, with plain numbers and UTC."""

from __future__ import annotations

import csv as csv_format
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from lab import units
from lab.errors import BadInput, LabError
from lab.events import TrialFinished
from lab.model import PAIRS, Trial
from lab.store import Record

Value = str | int | float | bool | None

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_FORMULA = ("=", "+", "-", "@", "\t")


def csv(record: Record, path: Path, *, overwrite: bool = False) -> None:
    """One row per recorded trial, units in the heads; decimal points, no thousands, nothing for no value."""
    text = io.StringIO()
    writer = csv_format.writer(text, lineterminator="\n")
    for number, row in enumerate(rows(record)):
        if not number:
            writer.writerow(row)
        writer.writerow([_cell(value) for value in row.values()])
    _put(text.getvalue(), path, overwrite=overwrite)


def jsonl(record: Record, path: Path, *, overwrite: bool = False) -> None:
    """The same rows, one JSON object per line; null for no value."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(record))
    _put(text, path, overwrite=overwrite)


def rows(record: Record) -> Iterator[dict[str, Value]]:
    """One row per recorded trial, in the order in which they ended."""
    started = record.run_started
    plan = {trial.number: trial for trial in started.trials}
    for finished in record.trials():
        try:
            asked, found = _asked(plan[finished.trial]), _found(finished)
        except (KeyError, ValueError) as error:
            raise BadInput(
                f"{record.path}: it is damaged: its trial {finished.trial} cannot be read: {error}",
                advice="Take another copy of the file if there is one.",
            ) from error
        yield {"run": started.run, "experiment": started.experiment.name, **asked, **found}


def _asked(trial: Trial) -> dict[str, Value]:
    line = trial.treatment.line
    up, down = line.upload_bps, line.download_bps
    return {
        "trial": trial.number,
        "block": trial.block,
        "operation": trial.treatment.operation,
        "state": trial.treatment.state.key,
        "line": units.line_text(line),
        "attempt": trial.attempt,
        "upload_bit_per_s": up,
        "download_bit_per_s": down,
        "delay_s": line.delay_s,
        "jitter_s": line.jitter_s,
        "loss_share": line.loss,
        "queue_upload_bytes": None if up is None else line.queue_for(up),
        "queue_download_bytes": None if down is None else line.queue_for(down),
        "seed": str(trial.seed),  # 63 bits: more than a spreadsheet's numbers hold
    }


def _found(finished: TrialFinished) -> dict[str, Value]:
    failed = [f"{proof.name}: {proof.text}" for proof in finished.proofs if not proof.ok]
    return {
        "ended_utc": utc(finished.at),
        "standing": finished.standing.value,
        "reason": finished.reason,
        "exit_status": finished.exit_status,
        "wall_s": finished.wall_s,
        "user_s": finished.user_s,
        "system_s": finished.system_s,
        "peak_kib": finished.peak_kib,
        "preparing_s": finished.preparing_s,
        **{f"{pair}_bytes": finished.bytes.get(pair) for pair in PAIRS},
        **{f"{pair}_sent_bytes": finished.sent.get(pair) for pair in PAIRS},
        **{f"{pair}_tail_bytes": finished.tail.get(pair) for pair in PAIRS},
        "served_bytes": finished.served_bytes,
        "relayed_bytes": finished.relayed_bytes,
        "direct_bytes": finished.direct_bytes,
        "cache_found_percent": finished.cache_found,
        "cache_objects": finished.cache_objects,
        "purged_objects": len(finished.purged),
        "read_back_upload_bit_per_s": finished.read_upload_bps,
        "read_back_download_bit_per_s": finished.read_download_bps,
        "proofs_failed": "; ".join(failed),
    }


def utc(text: str) -> str:
    """An event's time as `2024-01-02 03:04:05.678`, always UTC; spreadsheets refuse a zone in it."""
    at = datetime.fromisoformat(text)
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return at.replace(tzinfo=None).isoformat(" ", "milliseconds")


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    clean = _CONTROL.sub("", value)
    # What a host said must not become a formula in someone's spreadsheet.
    return f"'{clean}" if clean.startswith(_FORMULA) else clean


def _put(text: str, path: Path, *, overwrite: bool) -> None:
    """The whole file or nothing."""
    try:
        if path.exists() and not overwrite:
            raise BadInput(
                f"{path}: there is a file of this name already",
                advice="Write another name, or agree to lose it: export --overwrite.",
            )
        number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise LabError(
            f"{path}: the file cannot be written: {error.strerror}",
            advice="Free some space there, or name another folder that you may write.",
        ) from error
