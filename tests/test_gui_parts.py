"""Parts of the window by themselves: what they paint, where they place it, and how the program starts."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from fake_testbed import FakeTestbed, experiment, small
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from pytestqt.qtbot import QtBot

from gui import app
from gui.lab.facts import roles, shown
from gui.lab.places import places
from gui.report import Reporter, Trouble
from gui.results.table import Times
from gui.run.traffic import Lane, _nice
from gui.theme import icons, marks, sheet
from gui.theme.look import Look
from gui.widgets.frame import Parts
from gui.worker import Worker
from lab import runner
from lab.analysis.summary import summarised
from lab.axis import spread
from lab.errors import BadInput, Stopped
from lab.events import Outcome, RunFinished
from lab.live import Live
from lab.model import DISABLED, Experiment, ProxyState
from lab.stop import Stop

FOREVER_MS = 60_000


@pytest.fixture(params=["light", "dark"])
def look(request: pytest.FixtureRequest, qapp: object) -> Look:
    made = Look(request.param)
    sheet.dress(app.application_made([]), made)
    return made


def canvas(look: Look, size: int = 40) -> QImage:
    image = QImage(size, size, QImage.Format.Format_RGB32)
    image.fill(look.colour("surface"))
    return image


def inks(image: QImage) -> set[int]:
    """The colours in the middle of a pip."""
    return {image.pixel(x, y) for x in range(10, 30) for y in range(10, 30)}


@pytest.mark.parametrize("shape", ["square", "down", "diamond", "disc", "pentagon", "hexagon", "star"])
def test_markers_have_size_one(shape: str) -> None:
    box = marks.marker(shape).boundingRect()
    assert 0.8 <= max(box.width(), box.height()) <= 1.2
    assert abs(box.center().x()) < 0.1


def test_a_trial_without_proof_is_hatched_and_a_kept_one_is_filled(look: Look) -> None:
    state = look.state(ProxyState(full=100))
    seen = {}
    for standing in ("kept", "void", "waiting", "running", "failed", "launch"):
        image = canvas(look)
        painter = QPainter(image)
        marks.draw_pip(painter, look, state, standing, QRectF(4, 4, 32, 32))
        painter.end()
        seen[standing] = inks(image)
    ground = look.colour("surface").rgb()
    assert seen["waiting"] == {ground}
    assert len(seen["kept"]) == 1
    assert seen["kept"] != {ground}
    assert len(seen["void"]) > 5
    assert look.colour("trouble").rgb() in seen["failed"]
    assert look.colour("accent").rgb() in seen["running"]
    assert len(seen["launch"]) > 1


def test_hollow_is_not_filled(look: Look) -> None:
    state = look.state(DISABLED)
    centres = []
    for hollow in (False, True):
        image = canvas(look)
        painter = QPainter(image)
        marks.draw_marker(painter, look, state, QPointF(20, 20), 20, hollow=hollow)
        painter.end()
        centres.append(image.pixelColor(20, 20))
    assert centres == [QColor(state.colour), look.colour("surface")]


def test_every_icon_in_use_exists(qapp: object) -> None:
    names = (
        *("tree-structure", "play-circle", "chart-line-up", "desktop", "stack", "hard-drives", "buildings"),
        *("arrows-left-right", "cloud", "play", "pause", "stop", "copy", "export", "folder-open", "moon"),
        *("sun", "plus", "minus", "corners-out", "table", "chart-bar-horizontal", "caret-down"),
    )
    assert not [name for name in names if icons.path(name).isEmpty()]
    assert icons.path("no such icon").isEmpty()


def test_fonts_are_the_shipped_ones(look: Look) -> None:
    from PySide6.QtGui import QFontInfo

    assert QFontInfo(look.font(13)).family() == "Inter"
    assert QFontInfo(look.font(12, mono=True)).family() == "JetBrains Mono"


def test_labels_at_line_ends_keep_apart_and_in_order() -> None:
    moved = spread([100, 101, 102, 103], 15, 0, 300)
    assert moved == sorted(moved)
    assert min(b - a for a, b in itertools.pairwise(moved)) >= 14.9
    assert spread([290, 299], 15, 0, 300)[-1] <= 300.01


def test_lanes_show_small_uploads_and_cut_what_exceeds() -> None:
    lane = Lane("client-server", 0, down=1_000_000, up=10_000, limited=True)
    top, bottom = lane.height(1_000_000, upload=False), lane.height(10_000, upload=True)
    assert 0 < bottom < lane.zero < top < 1
    assert lane.zero - bottom > 0.1
    assert lane.height(9e9, upload=False) < 1
    assert _nice(0) == 1e6
    assert _nice(2_100_000) == 5_000_000


@pytest.mark.parametrize("clients", [1, 3, 7, 25])
@pytest.mark.parametrize("size", [(890, 680), (840, 500)])
@pytest.mark.parametrize("router", [False, True])
def test_the_picture_keeps_hosts_apart(clients: int, size: tuple[int, int], router: bool) -> None:
    placed = places(*size, clients, proxy=True, server=True, router=router, add=True)
    assert len(placed.clients) == clients
    if size[1] > 600 or clients < 25:  # the others scroll a little
        assert placed.area.height() == size[1]
    between = [placed.router_card] if router else []
    boxes = [*placed.clients, placed.add, placed.proxy, *between, placed.server]
    for number, one in enumerate(boxes):
        assert one is not None
        home = placed.far if one is placed.server else placed.office
        assert home.contains(one)
        for other in boxes[number + 1 :]:
            assert other is not None
            assert not one.intersects(other)


def folded(asked: Experiment, until: int = 10**9, **bed: object) -> Live:
    live = Live()
    for number, event in enumerate(runner.run(asked, FakeTestbed(**bed), Stop())):  # type: ignore[arg-type]
        if number >= until:
            break
        live.apply(event)
    return live


def test_roles_tell_the_worst_of_their_hosts() -> None:
    live = folded(small())
    assert roles(shown(None, live)) == (("ok", "client"), ("ok", "proxy"), ("ok", "server"))
    failed = folded(small(), until=3)
    failed.apply(RunFinished(at="", outcome=Outcome.FAILED, reason="client: no answer"))
    assert roles(shown(None, failed))[0] == ("trouble", "client")


def test_the_table_names_the_best_only_where_a_difference_is_seen() -> None:
    asked = experiment()
    summary = summarised(runner.run(asked, FakeTestbed(), Stop()))
    times = Times()
    times.show_operation(summary, "get")
    line = asked.lines[0]
    assert times.best(line) == ProxyState(full=100)
    assert times.text(0, times.columnCount() - 1) == "faster"
    assert times.text(0, 5).endswith("×")
    times.show_operation(summary, "diff")
    assert times.best(line) is None
    assert times.text(0, times.columnCount() - 1) == "no difference"


def test_the_table_tells_failed_from_not_asked() -> None:
    asked = small(disabled_only=("diff",))
    trials = [trial.number for trial in folded(asked).trials if trial.treatment.operation == "get"]
    summary = summarised(runner.run(asked, FakeTestbed(failing=dict.fromkeys(trials, "no")), Stop()))
    times = Times()
    times.show_operation(summary, "get")
    assert times.text(0, 1) == "failed"
    times.show_operation(summary, "diff")
    assert times.text(0, 2) == "—"


def test_progress_tells_readers_how_far_it_is(qtbot: QtBot) -> None:
    parts = Parts(Look("light"))
    qtbot.addWidget(parts)
    parts.show_parts([(0.75, 1.0), (0.25, 0.5)])
    assert parts.accessibleDescription() == "88% done"


def test_a_worker_tells_in_the_main_thread_and_always_ends(qtbot: QtBot) -> None:
    import threading

    def things() -> object:
        yield {1: "x"}
        raise BadInput("no")

    worker, seen = Worker(), []
    worker.happened.connect(lambda thing: seen.append((thing, threading.current_thread())))
    crashed: list[object] = []
    worker.crashed.connect(crashed.append)
    with qtbot.waitSignal(worker.ended, timeout=FOREVER_MS):
        worker.start(things())
    assert seen == [({1: "x"}, threading.main_thread())]
    assert isinstance(crashed[0], BadInput)


def test_reporter_sorts_what_it_is_given(qtbot: QtBot) -> None:
    reporter, told, broken = Reporter(), [], []
    reporter.told.connect(told.append)
    reporter.broken.connect(broken.append)
    reporter.take(BadInput("wrong rate", advice="write 64/128"))
    reporter.take(Stopped("by the user"))
    reporter.take(ZeroDivisionError("oops"))
    assert told == [Trouble(title="wrong rate", text="write 64/128")]
    assert len(broken) == 1
    assert "ZeroDivisionError" in broken[0]


def test_a_thread_that_breaks_reaches_the_reporter(qtbot: QtBot) -> None:
    import threading

    reporter = Reporter()
    reporter.install()
    try:
        with qtbot.waitSignal(reporter.broken, timeout=FOREVER_MS) as heard:
            thread = threading.Thread(target=lambda: 1 / 0)
            thread.start()
            thread.join()
    finally:
        reporter.remove()
    assert "ZeroDivisionError" in heard.args[0]


def child(code: str) -> subprocess.Popen[str]:
    env = dict(os.environ, QT_QPA_PLATFORM="offscreen")
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, env=env
    )


def test_the_window_is_up_before_anything_heavy_is_imported() -> None:
    process = child("""
        import sys
        from gui import app
        from gui.theme import sheet
        from gui.theme.look import Look
        application = app.application_made([])
        look = Look()
        sheet.dress(application, look)
        from gui.doors import Doors
        from gui.main_window import MainWindow
        from gui.report import Reporter
        window = MainWindow(look, Doors(), Reporter())
        window.show()
        application.processEvents()
        print(*sorted({"pyqtgraph", "pandas", "scipy", "paramiko", "keyring"} & set(sys.modules)), "up")
        window.shown.timer.stop()
        """)
    assert process.communicate(timeout=90)[0].split() == ["up"]


def test_ctrl_c_in_the_terminal_closes_the_window(tmp_path: object) -> None:
    process = child(f"""
        import os
        os.environ["BRANCHLAB_DATA"] = {str(tmp_path)!r}
        from PySide6.QtCore import QTimer
        from gui import app
        application = app.application_made([])
        QTimer.singleShot(300, lambda: print("up", flush=True))
        raise SystemExit(app.main([]))
        """)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "up"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert process.returncode == 0


def test_sizes_follow_the_systems_font() -> None:
    large = Look("light", ratio=1.5)
    assert large.font(12).pixelSize() == 18
    assert large.font(11).pixelSize() == 16
