"""A monkey at the window: nothing it does makes a traceback, loses an edit or a run, or leads to a dead page."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import monkey
import pytest

SEED = 2008
NAMED = "BRANCHLAB_MONKEY_SEED"
"""Another seed for the long play; without one it is drawn, and told where something breaks."""


def played(tmp_path: Path, *words: str, first: str = "", seconds: float) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which whatever the monkey does can end; `first` is done before."""
    code = f"import sys; sys.path.insert(0, {str(Path(monkey.__file__).parent)!r})\n{first}\n"
    code += f"import monkey; sys.exit(monkey.main({list(words)!r}))"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(monkey.__file__).parents[1]), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=seconds + 400,
        check=False,
    )


def nothing_broke(done: subprocess.CompletedProcess[str], seed: int) -> None:
    again = f"python tests/monkey.py --seed {seed} plays it again"
    assert done.returncode == 0, f"{again}\n{done.stderr[-6000:]}"
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["seed"] == seed
    assert told["deeds"] > 50
    assert told["looks"] >= 1


@pytest.mark.timeout(500)
def test_a_monkey_breaks_nothing_in_20_seconds(tmp_path: Path) -> None:
    nothing_broke(played(tmp_path, "--seed", str(SEED), "--seconds", "20", seconds=20), SEED)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_monkey_breaks_nothing_in_two_minutes(tmp_path: Path) -> None:
    seed = int(os.environ.get(NAMED) or random.SystemRandom().randrange(10**6))
    nothing_broke(played(tmp_path, "--seed", str(seed), "--seconds", "120", seconds=120), seed)


@pytest.mark.timeout(500)
def test_what_it_breaks_is_told_with_its_seed_and_its_last_deeds(tmp_path: Path) -> None:
    broken = (
        "from gui.main_window import MainWindow\n"
        "plain = MainWindow.show_page\n"
        "def broken(self, key):\n"
        "    plain(self, key)\n"
        "    if key != 'start': raise ZeroDivisionError('planted')\n"
        "MainWindow.show_page = broken\n"
    )
    done = played(tmp_path, "--seed", "5", "--deeds", "200", "--seconds", "60", first=broken, seconds=60)
    assert done.returncode == 1
    assert "ZeroDivisionError: planted" in done.stderr
    assert "of seed 5" in done.stderr
    assert "the last deeds" in done.stderr
