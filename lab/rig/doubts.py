"""Whether a probe bears out the line that was asked: what it disproves, and what it makes doubtful."""

from __future__ import annotations

from dataclasses import dataclass

from lab import units
from lab.events import LineProved
from lab.rig.line import PINGS

CEILING = 0.98
"""TCP payload is at most 1448/1514 of the rate; what exceeds this share was not limited."""
FLOOR = 0.90
"""Less than this share of the rate: the host was busy, or something else is narrower."""
ROUND_TRIP_S = 0.002
"""A round trip may be so much longer or shorter than what was asked (and what there was before)."""
SIGMAS = 4.0
"""Loss is disproved when it lies so many standard deviations off; by chance that happens once in 15,000 times."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """`disproved` ends the run, `doubtful` is told to the person; both empty when the line holds."""

    disproved: tuple[str, ...]
    doubtful: tuple[str, ...]


def doubts(proved: LineProved) -> Doubts:
    """Hold a probe against what was asked."""
    disproved: list[str] = []
    doubtful: list[str] = []
    line = proved.line
    for name, asked, achieved in (
        ("upload", line.upload_bps, proved.achieved_upload_bps),
        ("download", line.download_bps, proved.achieved_download_bps),
    ):
        if asked is None or achieved is None:
            continue
        text = f"{name}: {units.rate_text(round(achieved))} of payload came through {units.rate_text(asked)}"
        if achieved > CEILING * asked:
            disproved.append(f"{text}, so it is not limited")
        elif achieved < FLOOR * asked and not line.loss:
            doubtful.append(f"{text}; the hosts may be busy, or the network between them narrower")
    if proved.round_trip_s is not None and line.delay_s:
        asked_s = 2 * line.delay_s
        text = (
            f"a round trip takes {1000 * proved.round_trip_s:.1f} ms, and {1000 * asked_s:.0f} ms were asked"
        )
        if proved.round_trip_s < asked_s - ROUND_TRIP_S - 2 * line.jitter_s:
            disproved.append(text)
        elif proved.round_trip_s > asked_s + ROUND_TRIP_S + 2 * line.jitter_s:
            doubtful.append(f"{text}; what there is without the line comes on top")
    if proved.loss is not None and line.loss:
        expected = 1 - (1 - line.loss) ** 2
        sigma = (expected * (1 - expected) / PINGS) ** 0.5
        text = f"{100 * proved.loss:.1f} % of {PINGS} round trips were lost, and {100 * expected:.1f} % are expected"
        if abs(proved.loss - expected) > SIGMAS * sigma:
            disproved.append(text)
        else:
            doubtful.append(f"{text}; {PINGS} cannot tell it closer than ± {200 * sigma:.1f} %")
    return Doubts(tuple(disproved), tuple(doubtful))
