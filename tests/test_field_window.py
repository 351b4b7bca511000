"""What went wrong in the field with windows and plots: each row of that list is a test here, or named where it is one.

row                                           where
PySide6 6.9.1, pyqtgraph before 0.14          here: the packages are refused by their pins
a zero on a log axis                          here: it stands in a lane marked 0
a gap joined by a line                        here (live plot, results), tests/test_drawing.py (exports)
memory grows with updates                     tests/test_gui_frames.py
a worker's thread touches a widget            tests/test_gui_threads.py
wrong sizes at fractional scaling             here (another screen's ratio), tests/test_gui_walk.py (125, 150, 200 %)
SVG without a shown window                    here: without any display, and without Qt
a clock that is set amid a run                here: the axis goes by a clock of its own; UTC is stored
Qt 6.11 under Wayland: axis items misplaced   not tried there, for want of a compositor; here: ticks at their values
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import FakeTestbed, experiment, small
from packaging.requirements import Requirement
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from runs_made import cells_experiment, results, started

from gui import app
from gui.results.chart import ZERO_LANE, TimeChart, _Scale
from gui.run.traffic import TrafficCard
from gui.theme import sheet
from gui.theme.look import Look
from lab import runner, store
from lab.analysis.summary import summarised
from lab.events import RunFinished, TrafficSampled
from lab.live import Live
from lab.model import Line
from lab.stop import Stop

HOUSE = Path(__file__).parents[1]


@pytest.fixture
def look(qapp: QApplication) -> Look:
    made = Look("light")
    sheet.dress(app.application_made([]), made)
    return made


@pytest.mark.parametrize(
    ("package", "bad", "good"),
    [
        ("PySide6-Essentials", ["6.9.1", "6.7.3"], ["6.9.0", "6.9.2", "6.10.0"]),
        ("pyqtgraph", ["0.13.7"], ["0.14.0"]),
    ],
)
def test_versions_that_break_plots_are_refused(package: str, bad: list[str], good: list[str]) -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text("utf-8"))["project"]
    pins = [one for text in project["dependencies"] if (one := Requirement(text)).name == package]
    assert pins
    for pin in pins:
        assert not any(pin.specifier.contains(version) for version in bad)
        assert all(pin.specifier.contains(version) for version in good)


# zeros and gaps --------------------------------------------------------------------------------------------------


def chart(look: Look, qtbot: QtBot, seconds: dict[int, float | None]) -> TimeChart:
    """Get, disabled, over three lines: the median of each by its download rate; None: not measured."""
    lines = tuple(Line(upload_bps=rate // 2, download_bps=rate) for rate in seconds)
    first = started(cells_experiment(lines, ("get",), (cells_experiment().states[0],)))
    ended = results(first, lambda trial: seconds[trial.treatment.line.download_bps or 0])
    summary = summarised([first, *ended, RunFinished(at=first.at, outcome="done")])  # type: ignore[arg-type]
    made = TimeChart(look)
    qtbot.addWidget(made)
    made.resize(600, 300)
    made.use_log(True)
    made.show_cells("Get", summary.cells, lines)
    made.show()
    made.grab()
    return made


def test_a_zero_stands_in_a_lane_of_its_own_below_a_log_axis(look: Look, qtbot: QtBot) -> None:
    shown = chart(look, qtbot, {128_000: 40.0, 256_000: 0.0, 512_000: 10.0})
    heights = [point.at.y() for point in shown._points]
    assert len(heights) == 3
    assert heights[1] > max(heights[0], heights[2]) + ZERO_LANE / 4
    assert heights[1] < shown.height()


def test_the_lane_is_there_only_where_it_is_needed() -> None:
    plot = QRectF(0, 0, 100, 200)
    with_zero, without = (_Scale(plot, [1.0, 10.0], log=True, zero=zero) for zero in (True, False))
    assert with_zero.lane is not None
    assert with_zero.y(0.0) == with_zero.lane > with_zero.y(1.0) + ZERO_LANE / 4
    assert without.lane is None
    assert _Scale(plot, [1.0, 10.0], log=False, zero=True).lane is None


def test_nothing_but_zeros_is_drawn_too(look: Look, qtbot: QtBot) -> None:
    shown = chart(look, qtbot, {128_000: 0.0, 256_000: 0.0})
    assert len(shown._points) == 2


def test_a_line_is_not_drawn_over_what_was_not_measured(look: Look, qtbot: QtBot) -> None:
    """Between the first line and the third there is nothing of the state's colour, but at the markers."""
    joined = _middle_inks(chart(look, qtbot, {128_000: 20.0, 256_000: 20.0, 512_000: 20.0}))
    gap = _middle_inks(chart(look, qtbot, {128_000: 20.0, 256_000: None, 512_000: 20.0}))
    zero = _middle_inks(chart(look, qtbot, {128_000: 20.0, 256_000: 0.0, 512_000: 20.0}))
    assert joined > 20
    assert gap == 0
    assert zero == 0


def _middle_inks(shown: TimeChart) -> int:
    """How many pixels between the first point and the middle have the state's colour."""
    image: QImage = shown.grab().toImage()
    hue = shown._look.state(shown._states[0], shown._states).colour.lower()
    first, last = shown._points[0].at, shown._points[-1].at
    row = round(first.y())
    return sum(
        image.pixelColor(x, y).name() == hue
        for x in range(round(first.x()) + 12, round((first.x() + last.x()) / 2) - 12)
        for y in (row - 1, row, row + 1)
    )


def test_a_pause_between_trials_is_drawn_as_nothing_not_as_a_slope(look: Look, qtbot: QtBot) -> None:
    """The live curves are steps, and come back to zero where a trial's samples end."""
    now = [0.0]
    live = Live(lambda: now[0])
    card = TrafficCard(look)
    qtbot.addWidget(card)
    card.ready()
    sampled = 0
    for event in runner.run(small(), FakeTestbed(samples=20), Stop()):
        live.apply(event)
        if isinstance(event, TrafficSampled):
            now[0] += 0.1
            sampled += 1
        if event.kind == "trial-finished":
            break
    assert sampled == 20
    now[0] += 5.0  # nothing is told for a while
    card.begin(live)
    for pair, upload in card._plot._curves:
        x, y = card._plot._curves[pair, upload].getData()
        zero = card._plot._lanes[pair].zero
        assert abs(y[-1] - zero) < 1e-6
        assert all(x[n] == x[n + 1] or y[n] == y[n + 1] for n in range(len(x) - 1)), (
            "a slope, where a step is meant"
        )


# sizes and places ------------------------------------------------------------------------------------------------


def test_ticks_of_the_live_plot_stand_at_their_values(look: Look, qtbot: QtBot) -> None:
    """As after a move to a screen of another ratio, the plot is laid out anew: labels and grid still agree."""
    card = TrafficCard(look)
    qtbot.addWidget(card)
    card.ready()
    card.begin(Live(lambda: 0.0))
    card.show()
    for size in ((620, 240), (1240, 480), (700, 300)):
        card.resize(*size)
        QApplication.processEvents()
        card.redraw()
        card.grab()
        plot = card._plot
        box = plot.widget.getPlotItem().vb
        for second in (-50, -10):
            grid = box.mapViewToScene(QPointF(second, 1)).x()
            left, right = box.sceneBoundingRect().left(), box.sceneBoundingRect().right()
            assert grid == pytest.approx(left + (right - left) * (second + 60) / 61, abs=1.5)
        axis = plot._left.geometry()
        assert axis.top() == pytest.approx(box.geometry().top(), abs=1.5)
        assert axis.height() == pytest.approx(box.geometry().height(), abs=1.5)


def test_a_figure_is_exported_without_a_display_and_without_qt(tmp_path: Path) -> None:
    path = tmp_path / "run.branchlab"
    for _ in store.recorded(runner.run(small(), FakeTestbed(samples=2), Stop()), path):
        pass
    code = (
        "import sys\nfrom pathlib import Path\nfrom lab import export, store\n"
        f"with store.opened(Path({str(path)!r})) as record:\n"
        f"    export.written(record, Path({str(tmp_path / 'figure.svg')!r}), overwrite=True)\n"
        f"    export.written(record, Path({str(tmp_path / 'figure.png')!r}), overwrite=True)\n"
        "assert not [name for name in sys.modules if name.startswith(('PySide6', 'pyqtgraph'))]\n"
    )
    without = {
        k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }
    subprocess.run(
        [sys.executable, "-c", code], env={**without, "PYTHONPATH": str(HOUSE)}, check=True, timeout=110
    )
    pictures = sorted(one.suffix for one in tmp_path.glob("figure*"))
    assert ".svg" in pictures
    assert ".png" in pictures


# time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "UTC"])
def test_what_is_stored_is_utc_in_every_zone(zone: str, tmp_path: Path) -> None:
    """Also in the hour that a switch of daylight saving tells twice: 2024-10-27 01:30 UTC is 02:30 in Berlin, again."""
    code = (
        "import sys, json\nsys.path.insert(0, 'tests')\n"
        "from fake_testbed import FakeTestbed, small\nfrom lab import runner\nfrom lab.stop import Stop\n"
        "print(json.dumps([e.at for e in runner.run(small(), FakeTestbed(samples=1), Stop()) if hasattr(e, 'at')]))"
    )
    before = datetime.now(UTC)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TZ": zone, "PYTHONPATH": str(HOUSE)},
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=True,
        timeout=110,
    )
    import json

    told = [datetime.fromisoformat(at) for at in json.loads(done.stdout)]
    assert all(at.utcoffset() is not None and not at.utcoffset() for at in told)
    assert abs((told[0] - before).total_seconds()) < 600


def test_the_axis_goes_forward_where_the_clock_of_the_wall_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Curves stand on a clock that only goes forward; dates of events are for people, and move no point."""
    now = [100.0]
    live = Live(lambda: now[0])
    hours = iter(("2024-10-27T00:59:59+00:00", "2024-10-27T00:00:01+00:00"))
    for event in runner.run(experiment(), FakeTestbed(samples=10), Stop()):
        if event.kind == "trial-started" and (at := next(hours, None)):
            event = replace(event, at=at)
        live.apply(event)
        now[0] += 0.05
        if live.done == 3:
            break
    for curve in live.curves.values():
        times = [at for at, _ in curve.points]
        assert times == sorted(times)
    assert live.gone_s >= 0
