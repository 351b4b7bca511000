"""How a window that is away is found again: BranchLab, started once more on the same data, calls it."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from PySide6.QtCore import QObject, QStandardPaths, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

_PLACES = 8
"""So many windows of one data folder may be away at once, and be called."""
_CALL, _HERE = b"show\n", b"shown\n"
_FIND_MS, _ANSWER_MS = 500, 3000


class Reachable(QObject):
    """Signals: `called()` somebody started BranchLab again, and wants this window."""

    called = Signal()

    def __init__(self, folder: Path, parent: QObject) -> None:
        """`folder` is that of the data."""
        super().__init__(parent)
        self._folder = folder
        self._server: QLocalServer | None = None

    def listen(self) -> bool:
        """Be found from now on, by this user alone; False if that cannot be."""
        for name in _names(self._folder):
            server = QLocalServer(self)
            server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
            if not _found(name):
                QLocalServer.removeServer(name)  # left by one that was killed
                if server.listen(name):
                    server.newConnection.connect(self._heard)
                    self._server = server
                    return True
            server.deleteLater()
        return False

    def close(self) -> None:
        """Be found no more."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            server.deleteLater()

    def _heard(self) -> None:
        while self._server is not None and (caller := self._server.nextPendingConnection()) is not None:
            caller.setParent(self)
            caller.readyRead.connect(self._answer)
            caller.disconnected.connect(caller.deleteLater)
            if caller.canReadLine():
                self._reply(caller)

    def _answer(self) -> None:
        caller = self.sender()
        if isinstance(caller, QLocalSocket) and caller.canReadLine():
            self._reply(caller)

    def _reply(self, caller: QLocalSocket) -> None:
        if caller.readLine().data() == _CALL:
            self.called.emit()
            caller.write(_HERE)
            caller.flush()
        caller.disconnectFromServer()


def call(folder: Path) -> bool:
    """Bring back a window of this data folder that is away; True if there was one, and it came."""
    for name in _names(folder):
        line = QLocalSocket()
        line.connectToServer(name)
        if not line.waitForConnected(_FIND_MS):
            continue
        line.write(_CALL)
        line.flush()
        if line.waitForReadyRead(_ANSWER_MS) and line.readAll().data() == _HERE:
            return True
    return False


def _found(name: str) -> bool:
    line = QLocalSocket()
    line.connectToServer(name)
    return line.waitForConnected(_FIND_MS)


def _names(folder: Path) -> list[str]:
    key = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    place = ""
    if sys.platform == "linux":  # there, the folder of this user's own sockets; elsewhere Qt knows where
        place = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.RuntimeLocation)
    return [f"{place}/branchlab-{key}-{n}" if place else f"branchlab-{key}-{n}" for n in range(_PLACES)]
