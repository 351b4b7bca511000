"""The lines of a run as they were proved: asked, read back from the kernel, achieved by a probe."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from gui import copying, words
from gui.theme.look import Look
from gui.widgets.basic import Card, Elided, Label, emptied
from lab.analysis.summary import Summary
from lab.events import LineProved

_HEADS = ("asked", "read back", "achieved", "round trip")
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class LinesCard(Card):
    """A row per line."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._rows: list[tuple[str, ...]] = []
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("The lines, as proved")
        self.column.addWidget(Label(look, "The lines, as proved", 13, 600))
        self._body = QWidget()
        self._grid = QGridLayout(self._body)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(7)
        self.column.addWidget(self._body)
        self._note = Label(look, "", 11, 400, "text3", wrap=True)
        self.column.addWidget(self._note)
        self.column.addStretch(1)

    def show_lines(self, summary: Summary) -> None:
        """The lines of a run."""
        emptied(self._grid)
        self._rows = []
        for column, head in enumerate(_HEADS):
            self._put(0, column, head, 12, 600, "text2")
        at = 1
        for line in summary.started.experiment.lines:
            proved = summary.proved.get(line)
            self._put(at, 0, words.line(line), 13, 500, "text")
            self._rows.append((words.line(line), *_proved(proved), words.extras(line)))
            for column, text in enumerate(_proved(proved), 1):
                self._put(at, column, text, 13, 400, "text" if proved else "text3")
            if line.delay_s or line.jitter_s or line.loss:
                at += 1
                under = Elided(self._look, words.extras(line), 12, 400, "text2")
                self._grid.addWidget(under, at, 0, 1, len(_HEADS))
            at += 1
        for column in range(len(_HEADS)):
            self._grid.setColumnStretch(column, 1)
        methods = sorted({proved.method for proved in summary.proved.values() if proved.method})
        self._note.say(
            "up/down. Achieved is TCP payload, in each direction, when the line was first applied; "
            "the line was read back before and after every trial"
            + (f" ({'; '.join(methods)})." if methods else ".")
        )

    def copied(self) -> str:
        """The lines as a table of tabs."""
        return copying.table([*_HEADS, "besides"], self._rows) if self._rows else ""

    def _put(self, row: int, column: int, text: str, size: int, weight: int, ink: str) -> None:
        label = Label(self._look, text, size, weight, ink)
        if column:
            label.setAlignment(_RIGHT)
        self._grid.addWidget(label, row, column)


def _proved(proved: LineProved | None) -> tuple[str, str, str]:
    if proved is None:
        return "not yet", "", ""
    read = _pair(proved.read_upload_bps, proved.read_download_bps)
    achieved = _pair(proved.achieved_upload_bps, proved.achieved_download_bps)
    return read, achieved, _trip(proved.round_trip_s)


def _trip(seconds: float | None) -> str:
    if seconds is None:
        return ""
    ms = seconds * 1000
    return f"{ms:.1f}{words.NBSP}ms" if ms >= 0.095 else f"{ms:.2f}{words.NBSP}ms"


def _pair(up: float | None, down: float | None) -> str:
    if up is None or down is None:
        return "not limited"
    if min(up, down) >= 1e6:
        return f"{up / 1e6:.3g}/{down / 1e6:.3g}{words.NBSP}Mbit/s"
    return f"{up / 1e3:.4g}/{down / 1e3:.4g}{words.NBSP}kbit/s"
