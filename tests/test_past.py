"""What a watcher took back while nobody was there is told by the next `revert`, once, with the time."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import netns
import pytest

from ssh_agents import past, private


def test_it_is_told_once_oldest_first_and_never_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private, "_candidates", lambda: [str(tmp_path / "run")])
    word = {"undone": ["x"]}
    assert past.told(word) == word
    for number in range(past.MOST + 5):
        past.note(f"line {number}")
    earlier = past.told(word)["earlier"]
    assert len(earlier) == past.MOST
    assert earlier[-1].endswith(f": line {past.MOST + 4}")
    assert earlier[0].startswith(f"already taken back by the host at {time.strftime('%Y-%m-%d')}")
    assert (past.told(word), os.listdir(tmp_path / "run")) == (word, [])
    Path(past._path()).write_text("no JSON\n[1]\n")
    assert past.told(word) == word
    monkeypatch.setattr(private, "_candidates", lambda: ["/proc/none"])
    past.note("nowhere to write")


@pytest.mark.lab
def test_what_the_watcher_undid_is_told_by_revert() -> None:
    with netns.net() as net:
        net.host("h")
        first = net.agent("h", privileged=True)
        first.ask("lease.open", lease_s=30.0)
        first.ask("traffic.start", peers=[{"name": "peer", "addresses": ["10.77.0.99"]}])
        os.kill(first.pid, signal.SIGKILL)
        second = net.agent("h", privileged=True)
        end = time.monotonic() + 60
        while second.ask("leases")["leases"] and time.monotonic() < end:
            time.sleep(0.1)
        word = second.ask("revert")
        assert word["undone"] == []
        (told,) = word["earlier"]
        assert told.startswith("already taken back by the host at ")
        assert "earlier" not in second.ask("revert")
