"""How quick the window is beside an empty one on the same machine in the same minutes, and agents beside plain `exec`.

    python tests/bench.py --quick      a table, and build/bench.json; `make bench` is the same without --quick

Not a test: nothing here passes or fails, and a figure alone says little of another machine. What can be compared
is the ratio: both sides are measured by turns, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

TICK_MS, SAMPLES = 5, 1_000_000
EMPTY, IDLE, STREAM, OPENING, STORED, BOTH = (
    "empty",
    "idle",
    "stream",
    "opening",
    "stored",
    "stored and stream",
)
GAPS = {
    EMPTY: "an empty window",
    IDLE: "BranchLab, nothing goes on",
    STREAM: "a run goes on, three hosts stream",
    OPENING: "a large stored run is being opened",
    STORED: "that run is open",
    BOTH: "that run is open, another goes on",
}


# What is measured, in processes of their own ---------------------------------------------------------------------


def gaps(what: str, seconds: float, stored: Path | None) -> dict[str, float]:
    """How late a timer of 5 ms is, in ms: that long, and not shorter, the loop was busy or was not let run."""
    from PySide6.QtCore import Qt, QTimer

    late: list[float] = []
    timer, last = QTimer(), [0.0]
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.setInterval(TICK_MS)

    def tick() -> None:
        now = time.monotonic()
        late.append(max(0.0, 1000 * (now - last[0]) - TICK_MS))
        last[0] = now

    timer.timeout.connect(tick)
    window = _empty() if what == EMPTY else _window(what, stored)
    _stay(0.5)
    last[0] = time.monotonic()
    timer.start()
    if what == OPENING:
        window.open_run(stored)
    _stay(seconds)
    if what == OPENING:  # to its end, however long that takes
        while window._jobs:
            _stay(0.1)
    timer.stop()
    assert window.isVisible()
    late.sort()
    return {
        "p50": late[len(late) // 2],
        "p99": late[len(late) * 99 // 100],
        "max": late[-1],
        "ticks": len(late),
    }


def _empty() -> Any:
    from PySide6.QtWidgets import QApplication, QMainWindow

    _kept.append(QApplication.instance() or QApplication(["bench"]))
    window = QMainWindow()
    window.resize(1440, 900)
    window.show()
    return window


def _window(what: str, stored: Path | None) -> Any:
    import frames

    from gui import app

    folder = Path(tempfile.mkdtemp(dir=os.environ["BRANCHLAB_DATA"]))
    window = frames.opened(app.application_made(["bench"]), folder)
    window.show_page(frames.RUN)
    if what in (STORED, BOTH):
        window.open_run(stored)
        _until(lambda: window.summary is not None and not window._jobs)
    if what in (STREAM, BOTH):
        window.start_run(window.document.profile.experiments[0])
        _until(lambda: window.live.running and window.live.done >= 1)
    return window


_kept: list[object] = []


def _stay(seconds: float) -> None:
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(int(1000 * seconds), loop.quit)
    loop.exec()


def _until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 300
    while not true():
        if time.monotonic() > end:
            raise TimeoutError
        _stay(0.05)


def redraws() -> dict[str, float]:
    """CPU milliseconds of the GUI thread: each page painted whole, and the plot, the page *Run* brought up to date."""
    import frames

    window = _window(STREAM, None)
    empty = _empty()
    found = {"empty window, whole": _cpu_ms(empty.grab)}
    for page in frames.PAGES:
        window.show_page(page)
        _stay(0.3)
        found[f"page {page}, whole"] = _cpu_ms(window.grab)
    window.show_page(frames.RUN)
    _stay(0.3)
    found["run: plot brought up to date"] = _cpu_ms(window.run_page.traffic.redraw)
    found["run: page brought up to date"] = _cpu_ms(window.run_page.redraw)
    return found


def _cpu_ms(work: Callable[[], object], times: int = 30) -> float:
    spent = []
    for _ in range(times):
        began = time.thread_time()
        work()
        spent.append(time.thread_time() - began)
        _stay(0.01)
    return 1000 * statistics.median(spent)


def painted(what: str) -> None:
    """Says `painted` once the window has been painted for the first time; its caller has the clock."""
    from PySide6.QtCore import QEvent, QObject
    from PySide6.QtWidgets import QApplication

    class Eye(QObject):
        seen = False

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
            self.seen = self.seen or event.type() == QEvent.Type.Paint
            return False

    eye = Eye()

    def watch(window: Any) -> None:
        window.installEventFilter(eye)
        while not eye.seen:
            QApplication.processEvents()
        print("painted", flush=True)
        os._exit(0)

    if what == EMPTY:
        watch(_empty())
    from gui import app, main_window

    plain = main_window.MainWindow.show
    main_window.MainWindow.show = lambda self: (plain(self), watch(self))  # type: ignore[method-assign]
    app.main(["bench"])


def stored_run(path: Path, samples: int) -> None:
    """A run of so many samples, written as every run is."""
    from fake_testbed import FakeTestbed, experiment

    from lab import design, runner, store
    from lab.stop import Stop

    asked = experiment(attempts=4)
    each = -(-samples // design.size(asked).trials)
    for _ in store.recorded(runner.run(asked, FakeTestbed(samples=each), Stop(), lab_name="bench"), path):
        pass


# The same by turns -----------------------------------------------------------------------------------------------


def child(*words: str) -> Any:
    """One measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--only", *words],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=900,
    )
    return json.loads(done.stdout.splitlines()[-1])


def all_gaps(rounds: int, seconds: float, stored: Path) -> dict[str, dict[str, float]]:
    """Medians over the rounds of p50 and p99, and the longest of all; each beside the empty window's as a ratio."""
    found: dict[str, list[dict[str, float]]] = {what: [] for what in GAPS}
    for _ in range(rounds):
        for what in GAPS:
            found[what].append(child("gaps", what, str(seconds), str(stored)))
    told = {}
    for what, ones in found.items():
        told[what] = {name: statistics.median(one[name] for one in ones) for name in ("p50", "p99")}
        told[what]["max"] = max(one["max"] for one in ones)
        told[what]["median of max"] = statistics.median(one["max"] for one in ones)
    for one in told.values():
        one["p99 ratio"] = one["p99"] / max(0.001, told[EMPTY]["p99"])
        one["max ratio"] = one["median of max"] / max(0.001, told[EMPTY]["median of max"])
    return told


def starts(rounds: int) -> dict[str, float]:
    """Seconds from the start of a process until its window has been painted."""
    found: dict[str, list[float]] = {EMPTY: [], IDLE: []}
    for _ in range(rounds):
        for what, ones in found.items():
            began = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, __file__, "--only", "painted", what], stdout=subprocess.PIPE, text=True
            )
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "painted"
            ones.append(time.monotonic() - began)
            process.wait(60)
            process.stdout.close()
    told = {what: statistics.median(ones) for what, ones in found.items()}
    return {**told, "ratio": told[IDLE] / told[EMPTY]}


def requests(rounds: int) -> dict[str, float]:
    """Seconds of an agent's answer to a request, of `exec true` over the same connection, and of a new connection."""
    import sshd

    from lab import agents, ssh

    if sshd.SSHD is None:
        return {}
    found: dict[str, list[float]] = {"request": [], "exec": [], "connect": []}
    with (
        tempfile.TemporaryDirectory(prefix="bench") as name,
        sshd.listening(sshd.made(Path(name) / "s")) as server,
        ssh.connect(server.host()) as connection,
        agents.started(connection) as agent,
    ):
        ways: dict[str, Callable[[], object]] = {
            "request": lambda: agent.ask("hello"),
            "exec": lambda: connection.run(["true"]),
            "connect": lambda: ssh.connect(server.host()).close(),
        }
        for number in count():
            for way, do in ways.items():
                if way == "connect" and number % 10:
                    continue
                began = time.monotonic()
                do()
                found[way].append(time.monotonic() - began)
            if number >= rounds * 20:
                break
    told = {way: statistics.median(ones) for way, ones in found.items()}
    return {**told, "exec over request": told["exec"] / told["request"]}


def table(told: dict[str, Any]) -> str:
    """For people."""
    lines = [f"Event loop: how late a timer of 5 ms is, ms (by turns; the stored run has {told['samples']:,} samples)", f"{'':44}{'p50':>8}{'p99':>8}{'max':>9}  p99 and max against an empty window"]  # fmt: skip  # noqa: E501
    for what, one in told["gaps_ms"].items():
        ratios = "" if what == EMPTY else f"  {one['p99 ratio']:.1f}×  {one['max ratio']:.1f}×"
        lines.append(f"{GAPS[what]:44}{one['p50']:8.2f}{one['p99']:8.2f}{one['max']:9.1f}{ratios}")
    lines += ["", "Redraws, CPU ms of the GUI thread (median of 30)"]
    lines += [f"{name:44}{ms:8.2f}" for name, ms in told["redraws_ms"].items()]
    start = told["start_s"]
    lines += ["", "Until the window is painted, s", f"{GAPS[EMPTY]:44}{start[EMPTY]:8.2f}"]
    lines += [f"{'BranchLab':44}{start[IDLE]:8.2f}  {start['ratio']:.1f}×"]
    if told["requests_s"]:
        one = told["requests_s"]
        lines += [
            "",
            "Over SSH on this machine, ms (median)",
            f"{'a request to an agent':44}{1000 * one['request']:8.2f}",
        ]
        lines += [
            f"{'exec, with the login shell it starts':44}{1000 * one['exec']:8.2f}  {one['exec over request']:.0f}×"
        ]
        lines += [f"{'a new connection':44}{1000 * one['connect']:8.2f}"]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all of it, or one thing for the process that asks."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--quick", action="store_true", help="one round of each, and a tenth of the samples")
    words.add_argument("--out", type=Path, default=HERE.parent / "build" / "bench.json")
    words.add_argument("--only", nargs="+", help=argparse.SUPPRESS)
    given = words.parse_args(argv)
    if given.only:
        return _only(*given.only)
    rounds, seconds = (1, 3.0) if given.quick else (5, 6.0)
    samples = SAMPLES // 10 if given.quick else SAMPLES
    with tempfile.TemporaryDirectory(prefix="bench") as name:
        os.environ["BRANCHLAB_DATA"] = f"{name}/data"
        (Path(name) / "data").mkdir()
        stored = Path(name) / "large.branchlab"
        stored_run(stored, samples)
        told = {
            "machine": {"system": platform.platform(), "python": platform.python_version()},
            "processors": os.cpu_count(), "load": os.getloadavg(), "rounds": rounds,
            "samples": samples, "file_bytes": stored.stat().st_size,
            "gaps_ms": all_gaps(rounds, seconds, stored), "redraws_ms": child("redraws"), "start_s": starts(rounds),
            "requests_s": requests(rounds),
        }  # fmt: skip
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    print(table(told))
    print(f"\nload {told['load'][0]:.1f} on {os.cpu_count()} processors; as JSON in {given.out}")
    return 0


def _only(what: str, *words: str) -> int:
    if what == "painted":
        painted(*words)
    told = redraws() if what == "redraws" else gaps(words[0], float(words[1]), Path(words[2]))
    print(json.dumps(told), flush=True)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
