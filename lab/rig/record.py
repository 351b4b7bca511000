"""A trial's record: what was measured, what it proved, and what it is worth by that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lab.events import Proof, Standing, TrialFinished
from lab.rig import together
from lab.rig.fullness import Found
from lab.rig.meter import Reading
from lab.rig.proofs import Evidence, proofs
from lab.rig.readback import Readback
from lab.rig.workplace import Job


@dataclass(slots=True)
class Held:
    """What holding the hosts to a treatment found out, for the trial's record."""

    jobs: tuple[Job, ...]
    """what is timed, of several clients each one's"""
    line: Readback
    found: Found | None
    quiet: str
    """empty, or why it was not quiet"""
    limit_s: float
    preparing_s: float = 0.0


def record(evidence: Evidence, held: Held, tail: Reading) -> TrialFinished:
    """The trial's record; `tail` is what came after its command had ended."""
    told, trial = evidence.told, evidence.trial
    given = proofs(evidence)
    moved = evidence.moved
    return TrialFinished(
        trial=trial.number,
        at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        standing=_standing(evidence, given),
        reason=_reason(evidence, given),
        exit_status=told["exit"],
        wall_s=told["wall_s"],
        user_s=told["user_s"],
        system_s=told["system_s"],
        peak_kib=told["peak_kib"],
        bytes=dict(moved.arrived),
        sent=dict(moved.sent),
        tail={pair: count for pair, count in tail.arrived.items() if count},
        served_bytes=evidence.served_bytes(),
        relayed_bytes=evidence.relayed_bytes(),
        direct_bytes=evidence.direct_bytes(),
        requests=evidence.logs.requests(),
        cache_asked=trial.treatment.state.key,
        cache_found=held.found.full if held.found else None,
        cache_objects=held.found.objects if held.found else None,
        purged=held.found.purged if held.found else (),
        proofs=given,
        preparing_s=held.preparing_s,
        read_upload_bps=evidence.line_after.upload_bps,
        read_download_bps=evidence.line_after.download_bps,
        output=told["tail"],
        clients=together.told(evidence.parts, moved.each),
    )


def _standing(evidence: Evidence, given: Sequence[Proof]) -> Standing:
    if not evidence.exit_ok:
        return Standing.FAILED
    if not all(proof.ok for proof in given):
        return Standing.VOID
    if evidence.trial.launch:
        return Standing.LAUNCH
    return Standing.WARM_UP if evidence.trial.warm_up else Standing.KEPT


def _reason(evidence: Evidence, given: Sequence[Proof]) -> str:
    """Why it does not count. What a failed command did not prove either is no reason, but a consequence."""
    missing = [proof.text for proof in given if not proof.ok]
    return "; ".join(missing if evidence.exit_ok else missing[:1])
