"""A window that is away while its run goes on, and how it comes back: from the tray, or when BranchLab starts again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QWidget

from gui.run.stopping import StopButton
from gui.shown import Shown
from gui.single import Reachable
from gui.tray import Tray

_TELL_MS = 1000


class Away(QObject):
    """Hides and shows the window. With a tray it stays away beyond the run's end, until somebody is told of it."""

    def __init__(
        self, tray: Tray, shown: Shown, stop: StopButton, folder: Callable[[], Path], window: QWidget
    ) -> None:
        """`folder` gives that of the data, by which the window is found."""
        super().__init__(window)
        self.tray, self._shown, self._stop, self._folder, self._window = tray, shown, stop, folder, window
        self._reachable: Reachable | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(_TELL_MS)
        self._timer.timeout.connect(self._tell)
        tray.opened.connect(self.come_back)
        tray.ending.connect(self._end)

    @property
    def on(self) -> bool:
        """True while the window is away."""
        return self._reachable is not None

    def go(self) -> None:
        """Hide the window."""
        self._reachable = Reachable(self._folder(), self)
        self._reachable.called.connect(self.come_back)
        self._reachable.listen()
        if self.tray.there:
            self.tray.keep(True)
        self._tell()
        self._timer.start()
        self._window.hide()

    def come_back(self) -> None:
        """Show the window, before all others."""
        self.end()
        self._window.setWindowState(self._window.windowState() & ~Qt.WindowState.WindowMinimized)
        self._window.show()
        self._window.raise_()
        self._window.activateWindow()

    def end(self) -> None:
        """Be away no more."""
        reachable, self._reachable = self._reachable, None
        if reachable is not None:
            reachable.close()
            reachable.deleteLater()
        self._timer.stop()
        self.tray.keep(False)

    def _tell(self) -> None:
        live = self._shown.live
        if not self.tray.there:
            return
        ways = self._stop.ways() if live.running and not self._stop.stopping else []
        self.tray.show_run(live, ways[0][0] if ways else "")

    def _end(self) -> None:
        if self._shown.live.running and not self._stop.stopping:
            self._stop.ways()[0][2]()
            self._tell()
