"""The page *Run*: the matrix first, then traffic now and times as they come, output with its proofs last."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gui import words
from gui.run.matrix import LEAST_ROW, ROW, SMALL_ROW, Matrix, MatrixView
from gui.run.output import OutputCard
from gui.run.stopping import StopButton
from gui.run.strips import StripsCard
from gui.run.traffic import TrafficCard
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Elided, Empty, Label, Sign, StateMark, column, row
from gui.widgets.frame import Head
from lab.events import Outcome
from lab.live import Live
from lab.model import DISABLED, OPERATION_NAMES

_PLOTS_LEAST, _PLOTS_MOST, _OUTPUT, _OUTPUT_LINE, _OUTPUT_CLOSED = 158, 300, 106, 62, 40
_MATRIX_CHROME = 46
_SILENT_S = 10.0
"""So long nothing is told after a command's end, while it is waited until nothing moves any more."""


class RunPage(QWidget):
    """Shows a live run. It never scrolls as a whole; the matrix gives way first, then the output.

    Signals: `paused()` and `resumed()`; `stopped()` now; `stopped_after(object)` True: after the trial under way,
    False: not after all; `cut()` at once, after stopping took long; `results()` to see what came of it; `wanted()` a
    lab to run in; `cancelled()` before it began; `repeated()` do again what failed.
    """

    paused = Signal()
    resumed = Signal()
    stopped = Signal()
    stopped_after = Signal(object)
    cut = Signal()
    results = Signal()
    wanted = Signal()
    cancelled = Signal()
    repeated = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look, self._live = look, Live()
        self._pausing, self._output_wanted = False, False
        self._about_to_run = ""
        self._head_height = 0
        self.matrix = Matrix()
        self._build_head(look)
        self.view = MatrixView(look, self.matrix)
        self._card = Card(margins=(10, 9, 10, 8))
        self._card.column.setSpacing(2)
        title = row(None, Label(look, "Trials", 13, 600), -1, _Legend(look), margins=(6, 0, 6, 0))
        self._card.column.addLayout(title)
        self._card.column.addWidget(self.view, 1)
        self.traffic, self.strips, self.output = TrafficCard(look), StripsCard(look), OutputCard(look)
        self.output.wanted.connect(self._want_output)
        self._plots = QWidget()
        plots = row(self._plots, spacing=12)
        plots.addWidget(self.traffic, 1)
        plots.addWidget(self.strips, 1)
        self._plots_row = plots
        text = "A run is started from the lab: choose an experiment there."
        self._empty = Empty(look, "play-circle", "No run yet", text, "Go to the lab")
        self._empty.pressed.connect(self.wanted)
        self._looking = _Looking(look)
        self._column = column(self, self.head, self._empty, self._looking, spacing=12)
        for widget in (self._card, self._plots, self.output):
            self._column.addWidget(widget)
        self._column.setContentsMargins(20, 14, 20, 14)
        self.begin(Live())
        look.changed.connect(self.update)

    def begin(self, live: Live) -> None:
        """Another run, or the same one anew."""
        self._live, self._pausing = live, False
        self.stop.begin()
        self._show_parts()
        self.matrix.begin(live)
        self.traffic.begin(live)
        self.strips.begin(live)
        self.output.begin(live)
        self._share_height()
        self.redraw()

    def look(self, experiment: str) -> None:
        """The hosts are looked at for a run of this experiment; the run that was shown steps aside."""
        self._about_to_run = experiment
        self._show_parts()
        self._redraw_head()
        self.cancel.setFocus(Qt.FocusReason.OtherFocusReason)

    def looked(self) -> None:
        """Show again what was shown before `look`."""
        if self._about_to_run:
            self._about_to_run = ""
            self._show_parts()
            self._share_height()
            self.redraw()

    def _show_parts(self) -> None:
        looking, run = bool(self._about_to_run), bool(self._live.run)
        self._looking.setVisible(looking)
        self._empty.setVisible(not looking and not run)
        for widget in (self._card, self._plots, self.output):
            widget.setVisible(run and not looking)
        name = self._live.experiment.name if self._live.experiment else "Run"
        self.head.title.say(self._about_to_run or name)

    def redraw(self) -> None:
        """Show the run as it is now."""
        self.matrix.refresh()
        self.view.follow()
        # Of a run that has ended there is no traffic now; its strips take the room.
        self.traffic.setVisible(self._live.running)
        self.traffic.redraw()
        self.strips.redraw()
        self.output.redraw()
        self._redraw_head()

    @property
    def stopping(self) -> bool:
        """True from *Stop now* to the run's end: the button's own words change with time."""
        return self.stop.stopping and self._live.running

    def _build_head(self, look: Look) -> None:
        self.head = Head(look)
        self._sign = Sign(look, "", 14)
        self._what = Label(look, "", 13, 600)
        self._where = Label(look, "", 13, 400, "text2")
        self._state = StateMark(look, None)
        self._rest = Elided(look, "", 13, 400, "text2")
        for widget in (self._sign, self._what, self._where, self._state):
            self.head.under_row.addWidget(widget)
        self.head.under_row.addWidget(self._rest, 1)
        self.stop = StopButton(look)
        self.pause = Button(look, "Pause", "filled", icon="pause")
        self.next = Button(look, "See results", "filled", icon="chart-line-up")
        self.cancel = Button(look, "Cancel", icon="x")
        self.cancel.setToolTip("Nothing is changed on any host so far")
        self.again = Button(look, "Repeat", icon="arrow-counter-clockwise")
        self.again.setToolTip(
            "On the same lab and into the same run file; what failed stays in it, and is shown"
        )
        self.again.clicked.connect(self.repeated)
        for button in (self.again, self.stop, self.pause, self.next, self.cancel):
            self.head.buttons.addWidget(button)
        self.cancel.clicked.connect(self.cancelled)
        self.stop.now.connect(self._stop)
        self.stop.after.connect(self._stop_after)
        self.stop.cut.connect(self.cut)
        self.pause.clicked.connect(self._pause)
        self.next.clicked.connect(self.results)

    def _stop(self) -> None:
        self.stopped.emit()
        self._redraw_head()

    def _stop_after(self, wanted: bool) -> None:
        self._pausing = False  # a run that waits has no trial to end
        self.stopped_after.emit(wanted)
        self._redraw_head()

    def _pause(self) -> None:
        self._pausing = not self._pausing
        if self._pausing:
            self.paused.emit()
        else:
            self.resumed.emit()
        self._redraw_head()

    def _redraw_head(self) -> None:
        live, looking = self._live, bool(self._about_to_run)
        for button, shown in ((self.stop, live.running), (self.pause, live.running)):
            button.setVisible(shown and not looking)
        self.next.setVisible(not looking and not live.running and live.done > 0)
        self.cancel.setVisible(looking)
        self.again.setVisible(not looking and not live.running and bool(live.run) and live.amiss > 0)
        self.again.rename(_again(live))
        if looking:
            self._where.setVisible(False)
            self._state.setVisible(False)
            self._sign.show_sign(marks.BUSY)
            self._what.say("Looking at the hosts …")
            self._rest.say("nothing is changed on them")
            return
        self.pause.rename("Go on" if self._pausing else "Pause", "play" if self._pausing else "pause")
        self.pause.setEnabled(not (self.stop.stopping or self.stop.ending))
        self.stop.show_run(live)
        trial = live.current.trial if live.current else None
        self._state.show_state(trial.treatment.state if trial else None, self.matrix.states)
        self._where.setVisible(trial is not None)
        if trial is None:
            self._say_idle(live)
            return
        self._sign.show_sign(marks.BUSY)
        treatment = trial.treatment
        self._what.say(OPERATION_NAMES.get(treatment.operation, treatment.operation))
        self._where.say(f"over {words.line(treatment.line)},")
        cell = live.cells[treatment]
        text = f"{words.cache(treatment.state)}, attempt {trial.attempt} of {len(cell.trials)}"
        if trial.warm_up:
            text += ", warm-up"
        current = live.current
        text += f" on {words.hosts(current.host)}" if current and current.host else ": being prepared"
        if live.silent_s >= _SILENT_S:
            text += f", nothing heard for {words.long(live.silent_s)}"
        if self.stop.stopping:
            text += ", given up"
        elif self.stop.ending:
            text += ", then the run stops"
        elif self._pausing:
            text += ", then a pause"
        self._rest.say(text)

    def _say_idle(self, live: Live) -> None:
        self._state.setVisible(False)
        if not live.run:
            said, sign, rest = "No run yet", marks.UNKNOWN, ""
        elif live.outcome is Outcome.DONE:
            said, sign, rest = (
                "Done",
                marks.OK,
                f"{words.count(live.done)} trials in {words.long(live.gone_s)}",
            )
        elif live.outcome is Outcome.STOPPED:
            said, sign = "Stopped", marks.WARN
            rest = f"at {words.count(live.done)} of {words.count(live.total)} trials; "
            rest += live.reason or "finished trials are kept"
        elif live.outcome is Outcome.FAILED:
            said, sign, rest = "Failed", marks.TROUBLE, live.reason
        elif live.paused:
            said, sign, rest = "Paused", marks.WARN, "nothing runs until you go on"
        elif live.lost:
            said, sign = f"Lost: {', '.join(sorted(live.lost))}", marks.TROUBLE
            rest = "looked for again, for at most 5 min; finished trials are kept"
        else:
            said, sign, rest = "Making ready", marks.BUSY, "hosts are checked, caches filled, lines proved"
            if live.done:
                said, rest = "Next trial", ""
        self._sign.show_sign(sign)
        self._what.say(said)
        self._rest.say(rest)

    def _share_height(self) -> None:
        """Rows as high as fit, the output open where there is room; the plots get what is left."""
        height, width = self.height(), self.width()
        small = height < 800 - 84
        margin, gap = (16, 8) if small else (20, 12)
        self.head.small(small)
        self._column.setContentsMargins(margin, 10 if small else 14, margin, 12 if small else 16)
        self._column.setSpacing(gap)
        self._plots_row.setSpacing(gap)
        if not self.matrix.rows or width < 100:
            return
        room = height - self.head.needed() - 3 * gap - 28 - _MATRIX_CHROME
        for rows, output in (
            (ROW, _OUTPUT),
            (SMALL_ROW, _OUTPUT),
            (SMALL_ROW, _OUTPUT_LINE),
            (LEAST_ROW, _OUTPUT_LINE),
            (SMALL_ROW, _OUTPUT_CLOSED),
            (LEAST_ROW, _OUTPUT_CLOSED),
        ):
            if small and (rows == ROW or output == _OUTPUT):
                continue
            if room - self.view.needed(rows) - output >= _PLOTS_LEAST:
                break
        cramped = output != _OUTPUT
        if cramped and self._output_wanted:
            output = _OUTPUT
        self.view.use_height(rows)
        self.output.use_room(text=output == _OUTPUT, line=output == _OUTPUT_LINE, cramped=cramped)
        table = min(self.view.needed(rows), room - output - _PLOTS_LEAST)
        plots = room - output - table
        if plots > _PLOTS_MOST and output == _OUTPUT:
            output += plots - _PLOTS_MOST
            plots = _PLOTS_MOST
        self._card.setFixedHeight(max(120, table + _MATRIX_CHROME))
        self.output.setFixedHeight(output)
        self._plots.setMinimumHeight(0)

    def _want_output(self, wanted: bool) -> None:
        self._output_wanted = wanted
        self._share_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_height()

    def event(self, happened: QEvent) -> bool:
        if happened.type() == QEvent.Type.LayoutRequest and self.head.needed() != self._head_height:
            self._head_height = self.head.needed()
            self._share_height()
        return super().event(happened)


def _again(live: Live) -> str:
    """What is offered of trials that failed or have no proof, and of those that were never done."""
    bad = live.counts.get("failed", 0) + live.counts.get("void", 0)
    left = live.amiss - bad
    if not left:
        return f"Repeat {words.count(bad)} failed trial{'s' * (bad != 1)}"
    missing = f"{words.count(left)} missing trial{'s' * (left != 1)}"
    return f"Repeat {words.count(bad)} failed, do {missing}" if bad else f"Do {missing}"


class _Looking(QWidget):
    """In place of a run, while the hosts are looked at."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        card = Card("sunken", (40, 40, 40, 40))
        text = (
            "BranchLab looks who else has connections between these hosts, and what stands there already. "
            "Where the run would touch other people’s work it asks before anything is changed."
        )
        said = Label(look, text, 13, 400, "text2", wrap=True)
        said.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        said.setFixedSize(520, said.heightForWidth(520))
        title = Label(look, "Would others feel this run?", 15, 600)
        for widget in (Sign(look, marks.BUSY, 20), title, said):
            card.column.addWidget(widget, 0, Qt.AlignmentFlag.AlignHCenter)
        column(self, card, -1)
        self.hide()


class _Legend(QWidget):
    """What the pips mean; without colour of any state, since every state has its own."""

    _ENTRIES = (
        ("warm-up", "warm-up, not counted"),
        ("kept", "kept"),
        ("running", "running"),
        ("waiting", "waiting"),
        ("failed", "failed"),
        ("void", "without proof"),
    )

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.setFixedHeight(20)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Legend: " + ", ".join(name for _, name in self._ENTRIES))
        look.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        used = QFontMetrics(self._look.font(11))
        return QSize(sum(used.horizontalAdvance(name) + 34 for _, name in self._ENTRIES) - 12, 20)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setFont(look.font(11))
        shown = look.state(DISABLED)
        x, middle = 6.0, self.height() / 2
        for standing, name in self._ENTRIES:
            if standing == "warm-up":
                marks.draw_warm_up(painter, look, shown, "done", QRectF(x + 6, middle - 3, 6, 6))
            elif standing == "kept":
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(shown.colour))
                painter.drawRoundedRect(QRectF(x, middle - 6, 12, 12), 2, 2)
            else:
                marks.draw_pip(painter, look, shown, standing, QRectF(x, middle - 6, 12, 12))
            painter.setPen(look.colour("text2"))
            at = QPointF(x + 17, middle + painter.fontMetrics().ascent() / 2 - 1)
            painter.drawText(at, name)
            x += painter.fontMetrics().horizontalAdvance(name) + 34
