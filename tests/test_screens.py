"""`make screenshots`: a run becomes pictures of every page, each in its look."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import screens
from fake_testbed import FakeTestbed, small
from PySide6.QtGui import QImage

from lab import runner, store
from lab.stop import Stop

PAGES = ("start", "run", "lab", "results", "help", "settings", "new-lab", "host-key", "purge", "actions")


def test_pages_and_dialogs_are_written_in_the_look_and_size_that_was_asked_for(tmp_path: Path) -> None:
    run = tmp_path / "run.branchlab"
    for _ in store.recorded(runner.run(small(), FakeTestbed(), Stop(), lab_name="Minsk"), run):
        pass
    words = [sys.executable, screens.__file__, str(run), "--to", str(tmp_path / "made"), "--look", "dark"]
    env = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(screens.CHECKOUT)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for page in PAGES:
        picture = QImage(str(tmp_path / "made" / f"{page}-dark.png"))
        assert (picture.width(), picture.height()) == (1440, 900), page
        assert picture.pixelColor(3, 300).lightness() < 60, page


def test_every_picture_of_the_readme_is_one_that_is_made() -> None:
    looks = {variant.name for variant in screens.VARIANTS}
    assert {name.partition("-")[2] for name in screens.README} <= looks
    named = (screens.CHECKOUT / "README.md").read_text("utf-8")
    assert all(f"docs/images/{name}.png" in named for name in screens.README)
