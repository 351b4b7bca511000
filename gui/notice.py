"""The word at a run's end for somebody who looks elsewhere: from the tray, else from the desktop's portal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from gui import words
from gui.tray import Tray
from lab.events import Outcome
from lab.live import Live

if TYPE_CHECKING:
    from gui.portal import Portal

_ENDS = {Outcome.DONE: "done", Outcome.STOPPED: "stopped", Outcome.FAILED: "failed"}


class Notice(QObject):
    """Signals: `pressed()` somebody wants to see what came of the run."""

    pressed = Signal()

    def __init__(self, tray: Tray, window: QWidget) -> None:
        super().__init__(window)
        self._tray, self._window = tray, window
        self._portal: Portal | None = None
        self._told = False
        tray.told.connect(self.pressed)
        window.installEventFilter(self)

    def tell(self, live: Live) -> None:
        """Say how the run ended, unless somebody looks at a window of ours."""
        if QApplication.activeWindow() is not None:
            return
        self._told = True
        title, text = ended(live)
        QApplication.alert(self._window)
        if self._tray.there:
            self._tray.tell(title, text)
            return
        if self._portal is None and (portal := self._tray.portal()) is not None:
            self._portal = portal
            portal.pressed.connect(self.pressed)
        if self._portal is not None:
            self._portal.tell(title, text)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.WindowActivate and self._told:
            self._told = False
            if self._portal is not None:
                self._portal.withdraw()
            self._tray.put_away()
        return super().eventFilter(watched, event)


def ended(live: Live) -> tuple[str, str]:
    """How a run ended, in a title and a line: its outcome, how many trials are kept, how long it took."""
    name = live.experiment.name if live.experiment else "The run"
    title = f"{name}: {_ENDS[live.outcome] if live.outcome else 'ended'}"
    kept, bad = live.counts.get("kept", 0), live.counts.get("failed", 0) + live.counts.get("void", 0)
    text = f"{words.count(kept)} trial{'s' * (kept != 1)} kept"
    if bad:
        text += f", {words.count(bad)} failed or without proof"
    text += f", in {words.long(live.gone_s)}."
    return title, f"{live.reason}\n{text}" if live.outcome is Outcome.FAILED and live.reason else text
