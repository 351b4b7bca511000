"""The plots of a window updated again and again, each time by a sample and painted; what that costs in memory.

    python tests/updated.py --updates 10000      JSON: memory in bytes and items of the plot, before and after

With `--page` the whole page *Run* instead of its plot.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).parents[1]))

from fake_testbed import FakeTestbed, experiment
from PySide6.QtWidgets import QApplication, QWidget

from gui import app
from gui.run.page import RunPage
from gui.run.traffic import TrafficCard
from gui.theme import sheet
from gui.theme.look import Look
from lab import runner
from lab.events import TrafficSampled
from lab.live import Live
from lab.stop import Stop

WARM_UP, SAMPLES, EVERY_S = 1_000, 40, 0.1


class Clock:
    """A tenth of a second later with each sample, as hosts tell them."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def sampled(live: Live, clock: Clock) -> Iterator[int]:
    """One run after another folded in; yields at each sample."""
    for number in count():
        for event in runner.run(experiment(seed=number), FakeTestbed(samples=SAMPLES), Stop()):
            live.apply(event)
            if isinstance(event, TrafficSampled):
                clock.now += EVERY_S
                yield number


def items(widget: QWidget) -> int:
    """Of the plot: curves, lines, axes and whatever stands in them."""
    plot = (widget.traffic if isinstance(widget, RunPage) else widget)._plot
    return len(plot.widget.scene().items())


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(argv: Sequence[str] | None = None) -> int:
    """Update, and tell."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--updates", type=int, default=10_000)
    words.add_argument("--warm-up", type=int, default=WARM_UP)
    words.add_argument("--page", action="store_true")
    words.add_argument(
        "--leak", type=int, default=0, help="so many bytes kept with each update, to see them found"
    )
    given = words.parse_args(argv)
    application = app.application_made([])
    look, clock = Look("light"), Clock()
    sheet.dress(application, look)
    live = Live(clock)
    widget: RunPage | TrafficCard = RunPage(look) if given.page else TrafficCard(look)
    (widget.traffic if isinstance(widget, RunPage) else widget).ready()
    widget.resize(*((1260, 780) if given.page else (620, 240)))
    widget.show()
    kept: list[bytearray] = []
    samples, shown = sampled(live, clock), ""

    def update(times: int) -> tuple[int, int]:
        nonlocal shown
        for _ in islice(samples, times):
            if live.run != shown:
                shown = live.run
                widget.begin(live)
            widget.redraw()
            QApplication.processEvents()
            if given.leak:
                kept.append(bytearray(given.leak))
        gc.collect()
        return resident(), items(widget)

    before, after = update(given.warm_up), update(given.updates)
    told = {"updates": given.updates, "bytes": [before[0], after[0]], "items": [before[1], after[1]]}
    print(json.dumps(told), flush=True)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
