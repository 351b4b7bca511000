"""What a probe disproves of a line, and what it only makes doubtful."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.events import LineProved
from lab.model import Line
from lab.rig.doubts import doubts

PLAIN = LineProved(
    line=Line(upload_bps=512_000, download_bps=1_024_000),
    read_upload_bps=512_000,
    read_download_bps=1_024_000,
    achieved_upload_bps=489_000.0,
    achieved_download_bps=978_000.0,
    round_trip_s=0.0001,
    loss=0.0,
)
DELAYED = replace(PLAIN, line=replace(PLAIN.line, delay_s=0.040), round_trip_s=0.0807)
LOSSY = replace(PLAIN, line=replace(PLAIN.line, loss=0.10), loss=0.19)


@pytest.mark.parametrize("proved", [PLAIN, DELAYED])
def test_a_line_that_holds_raises_no_doubt(proved: LineProved) -> None:
    assert doubts(proved).disproved == ()
    assert doubts(proved).doubtful == ()


@pytest.mark.parametrize(
    ("proved", "words"),
    [
        (replace(PLAIN, achieved_upload_bps=57_000_000.0), "upload"),
        (replace(PLAIN, achieved_download_bps=1_010_000.0), "download"),
        (replace(DELAYED, round_trip_s=0.041), "round trip"),
        (replace(LOSSY, loss=0.0), "lost"),
    ],
)
def test_a_line_that_is_not_there_is_disproved(proved: LineProved, words: str) -> None:
    (text,) = doubts(proved).disproved
    assert words in text


def test_a_slow_probe_is_doubtful_and_no_more() -> None:
    found = doubts(replace(PLAIN, achieved_download_bps=700_000.0))
    assert found.disproved == ()
    assert "download: 700 kbit/s" in found.doubtful[0]


def test_loss_is_said_with_what_200_probes_can_tell() -> None:
    found = doubts(LOSSY)
    assert found.disproved == ()
    assert "19.0 % of 200 round trips were lost" in found.doubtful[0]
    assert "±" in found.doubtful[0]
