"""Every page and dialog walked: names, words beside signs, all of it by Tab, the ring; and nothing cut at any scale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
import walked
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from test_gui_layout import _another_of_its_group, stops
from test_gui_window import Made, made

from gui.theme import marks
from gui.widgets.basic import Label, Sign

__all__ = ["made"]


def test_every_control_has_a_name_and_every_sign_a_word(made: Made, tmp_path: Path) -> None:
    window = made()
    window.resize(1440, 900)
    amiss, seen = {}, 0
    for page in walked.pages(window, tmp_path):
        found = walked.nameless(window) + walked.wordless(window)
        seen += len(walked.controls(window))
        if found:
            amiss[page] = found
    for name, dialog in walked.dialogs(window):
        if found := walked.nameless(dialog) + walked.wordless(dialog):
            amiss[name] = found
    assert not amiss
    assert seen > 200


def test_tab_goes_to_every_control_of_every_page_and_the_ring_shows_where(
    made: Made, qtbot: QtBot, tmp_path: Path
) -> None:
    window = made()
    window.resize(1440, 900)
    lost, ringless = {}, {}
    for page in walked.pages(window, tmp_path):
        with qtbot.waitActive(window):
            window.activateWindow()
        wanted, seen, dark = set(stops(window)), [], set()
        for _ in range(2 * len(wanted) + 10):
            qtbot.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
            focus = QApplication.focusWidget()
            seen.append(focus)
            if focus is not None and not _shown(window, focus):
                dark.add(f"{type(focus).__name__} {focus.accessibleName()}")
            if wanted <= set(seen):
                break
        missed = {one for one in wanted - set(seen) if not _another_of_its_group(one, seen)}
        if missed:
            lost[page] = [f"{type(one).__name__} {one.accessibleName()}" for one in missed]
        if dark:
            ringless[page] = sorted(dark)
    assert not lost
    assert not ringless


def _shown(window: QWidget, focus: QWidget) -> bool:
    """The ring is round it, or it is a field, whose border is its ring; what is scrolled away has none."""
    if isinstance(focus, QLineEdit | QComboBox) or focus.visibleRegion().isEmpty():
        return True
    ring = window.pages.ring
    return ring.isVisible() and ring.geometry().center() == focus.mapTo(window, focus.rect().center())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scale", ["1.25", "1.5", "2"])
def test_no_text_is_cut_at_any_scale(tmp_path: Path, scale: str) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(walked.__file__)), str(tmp_path)],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(walked.__file__).parents[1]),
            "QT_SCALE_FACTOR": scale,
            "QT_QPA_PLATFORM": "offscreen",
        },
        stdout=subprocess.PIPE,
        text=True,
        timeout=280,
        check=True,
    )
    told = json.loads(done.stdout)
    assert told["ratio"] == float(scale)
    assert told["cut"] == {}


# the helpers can fail ---------------------------------------------------------------------------------------------


def test_what_is_amiss_is_found(made: Made, qtbot: QtBot) -> None:
    look = made()._look
    root = QWidget()
    qtbot.addWidget(root)
    root.resize(300, 200)
    narrow, low = Label(look, "Too long for its place"), Label(look, "One line and another " * 4, wrap=True)
    button, far, sign = QPushButton("Press this, please"), Label(look, "far"), Sign(look, marks.OK)
    alone = QWidget(root)
    for widget, box in (
        (narrow, (0, 0, 40, 20)),
        (low, (0, 30, 80, 14)),
        (button, (0, 60, 30, 20)),
        (far, (290, 90, 60, 20)),
    ):
        widget.setParent(root)
        widget.setGeometry(*box)
    alone.setGeometry(0, 120, 20, 20)
    sign.setParent(alone)
    root.show()
    told = " ".join(walked.cut(root))
    assert told.count("Label") == 2 or told.count("Label") == 3
    for word in ("Too long", "One line", "Press this"):
        assert word in told
    assert walked.nameless(root) == ["QPushButton in QWidget"]
    for label in (narrow, low, far, button):
        label.setParent(None)
    assert walked.wordless(root) == ["Sign in QWidget"]
