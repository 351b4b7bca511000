"""A run's trials as flat rows of plain values, units in the names, for tables of other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from lab import units
from lab.events import RunStarted, TrialFinished
from lab.model import PAIRS, Trial

Value = str | int | float | bool | None


def trials(started: RunStarted, results: Iterable[TrialFinished]) -> Iterator[dict[str, Value]]:
    """One row per finished trial, in the order in which they ended; `started` has those that were added, too.

    `repeats` is the planned trial that this one does again; `repeated_by` the one that counts in this one's place.

    Raises ValueError or KeyError for a trial that means nothing: its plan is missing, its time is no time.
    """
    plan = {trial.number: trial for trial in started.trials}
    results = tuple(results)
    newest = {
        plan[one.trial].repeats or one.trial: one.trial for one in sorted(results, key=lambda one: one.trial)
    }
    for finished in results:
        trial = plan[finished.trial]
        stands = newest[trial.repeats or trial.number]
        again = {
            "repeats": trial.repeats or None,
            "repeated_by": stands if stands != trial.number else None,
        }
        asked, found = _asked(trial), _found(finished)
        yield {"run": started.run, "experiment": started.experiment.name, **asked, **found, **again}


def utc(text: str) -> datetime:
    """An event's time in UTC, without a zone: spreadsheets refuse one. Raises ValueError if it is none."""
    at = datetime.fromisoformat(text)
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return at.replace(tzinfo=None)


def utc_text(text: str) -> str:
    """The same as `2024-01-02 03:04:05.678`."""
    return utc(text).isoformat(" ", "milliseconds")


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
        "ended_utc": utc_text(finished.at),
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
        "clients": len(finished.clients) or 1,
        "clients_wall_s": "; ".join(f"{one.host} {one.wall_s}" for one in finished.clients),
    }
