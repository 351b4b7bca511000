"""What the kernels of those who hold a line say of it, as one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lab.model import Line


@dataclass(frozen=True, slots=True)
class Readback:
    """What the kernel says is applied. Rates in bit/s, None where nothing limits."""

    upload_bps: int | None
    download_bps: int | None
    delay_s: float
    jitter_s: float
    loss: float
    dropped: int
    method: str
    applied: bool = True
    queue_upload_bytes: int | None = None
    queue_download_bytes: int | None = None

    def matches(self, line: Line) -> bool:
        """True if this is exactly the line asked."""
        if not line.limited and not line.delayed:
            held = (self.upload_bps, self.download_bps, self.delay_s, self.jitter_s, self.loss)
            return not any(held) and not self.applied
        queues = (self.queue_upload_bytes, self.queue_download_bytes)
        wanted = tuple(
            line.queue_for(rate) if rate else None for rate in (line.upload_bps, line.download_bps)
        )
        return (
            self.applied
            and (queues == wanted or not line.limited)
            and self.upload_bps == line.upload_bps
            and self.download_bps == line.download_bps
            and abs(self.delay_s - line.delay_s) < 1e-4
            and abs(self.jitter_s - line.jitter_s) < 1e-4
            and abs(self.loss - line.loss) < 1e-4
        )


NOTHING = Readback(None, None, 0.0, 0.0, 0.0, 0, "nothing applied", applied=False)
"""Where nothing of ours is."""


def of(word: Mapping[str, Any]) -> Readback:
    """From the last word of `line.read` or `line.apply`."""
    return Readback(
        upload_bps=word["upload_bps"],
        download_bps=word["download_bps"],
        delay_s=word["delay_s"],
        jitter_s=word["jitter_s"],
        loss=word["loss"],
        dropped=word["dropped"],
        method=word["method"],
        applied=bool(word["applied"]),
        queue_upload_bytes=word["queue_upload_bytes"],
        queue_download_bytes=word["queue_download_bytes"],
    )


def together(reads: Mapping[str, Readback]) -> Readback:
    """What all holders have in common. Where they differ, one that has something, called not applied."""
    found = list(reads.values())
    if len({replace(one, dropped=0) for one in found}) == 1:
        return replace(found[0], dropped=sum(one.dropped for one in found))
    has = next((one for one in found if one.upload_bps or one.delay_s or one.loss or one.applied), found[0])
    told = ", ".join(f"{name}: {one.method}" for name, one in reads.items())
    return replace(has, applied=False, method=f"not the same on all office hosts ({told})")


def halves(down: Readback, up: Readback) -> Readback:
    """One line of a download and an upload that are held by different hosts."""
    delays = {(one.delay_s, one.jitter_s, one.loss) for one in (down, up)}
    odd = down.upload_bps is not None or up.download_bps is not None or len(delays) != 1
    has = up if any((up.delay_s, up.loss)) else down
    return Readback(
        upload_bps=up.upload_bps,
        download_bps=down.download_bps,
        delay_s=has.delay_s,
        jitter_s=has.jitter_s,
        loss=has.loss,
        dropped=up.dropped + down.dropped,
        method=up.method if up.method == down.method else f"download {down.method}, upload {up.method}",
        applied=down.applied and up.applied and not odd,
        queue_upload_bytes=up.queue_upload_bytes,
        queue_download_bytes=down.queue_download_bytes,
    )
