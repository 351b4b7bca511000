"""No event holds the window for a frame while hosts stream samples; memory and plot stay as large as they were."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import frames
import pytest
import updated

FRAME_MS = 16.0
MOST_EVENTS = 3_000
"""Within the seconds on a page; what streams makes some hundreds of them."""
MOST_GROWTH = 20_000_000


def measured(tmp_path: Path, *words: str, by: str = frames.__file__, seconds: float = 280) -> dict[str, Any]:
    """What a window of its own process says: its application has to count, and a process has only one."""
    done = subprocess.run(
        [sys.executable, by, *words],
        env={**os.environ, "PYTHONPATH": str(Path(frames.__file__).parents[1]), "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=seconds,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.timeout(300)
def test_no_event_holds_the_window_for_a_frame_while_three_hosts_stream(tmp_path: Path) -> None:
    told = measured(tmp_path, "--seconds", "2.5")
    assert set(told["pages"]) == {*frames.PAGES, "the end"}
    assert told["samples"] > 200
    for page in frames.PAGES:
        assert 30 < told["pages"][page]["events"] < MOST_EVENTS, page  # nothing goes round and round
    worst = {page: told["pages"][page]["worst_ms"][:3] for page in frames.PAGES}
    assert not {page: found for page, found in worst.items() if found[0][0] >= FRAME_MS}


@pytest.mark.timeout(300)
def test_an_event_that_is_too_slow_would_be_seen(tmp_path: Path) -> None:
    told = measured(tmp_path, "--seconds", "0.5", "--pages", "run", "--slow")
    assert told["pages"]["run"]["worst_ms"][0][0] > FRAME_MS


def grown(told: dict[str, Any]) -> int:
    """Bytes; the plot has the same items as before."""
    assert told["items"][0] == told["items"][1] > 20
    return told["bytes"][1] - told["bytes"][0]


@pytest.mark.timeout(600)
def test_memory_stays_flat_while_a_plot_is_updated(tmp_path: Path) -> None:
    told = measured(tmp_path, "--updates", "1000", "--warm-up", "500", by=updated.__file__, seconds=580)
    assert grown(told) < MOST_GROWTH


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("what", [(), ("--page",)], ids=["plot", "page"])
def test_memory_stays_flat_over_10_000_plot_updates(tmp_path: Path, what: tuple[str, ...]) -> None:
    told = measured(tmp_path, "--updates", "10000", *what, by=updated.__file__, seconds=3500)
    assert told["updates"] == 10_000
    assert grown(told) < MOST_GROWTH


def test_memory_that_grows_would_be_seen(tmp_path: Path) -> None:
    told = measured(tmp_path, "--updates", "100", "--warm-up", "100", "--leak", "300000", by=updated.__file__)
    assert grown(told) > MOST_GROWTH
