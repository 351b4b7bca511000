"""A stand-in for the desktop's notification portal on a real bus: prints each call, and presses what it is shown.

Run as a program; it serves until it is ended.
"""

from __future__ import annotations

import json
import sys

from PySide6.QtCore import QCoreApplication
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusVirtualObject

SERVICE, PATH = "org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop"
INTERFACE = "org.freedesktop.portal.Notification"


class FakePortal(QDBusVirtualObject):
    """Two methods of the real one; a message is pressed as soon as it is shown, after one of somebody else's."""

    def introspect(self, path: str) -> str:
        """Nothing is said of it."""
        return ""

    def handleMessage(self, message: QDBusMessage, bus: QDBusConnection) -> bool:  # noqa: N802 - Qt's name
        """One call."""
        if message.interface() != INTERFACE:
            return False
        name = message.arguments()[0]  # PySide6 cannot read the map after it
        print(json.dumps([message.member(), message.signature(), name]), flush=True)
        bus.send(message.createReply())
        for whose in ("another program's", name) if message.member() == "AddNotification" else ():
            pressed = QDBusMessage.createSignal(PATH, INTERFACE, "ActionInvoked")
            pressed.setArguments([whose, "show", []])
            bus.send(pressed)
        return True


if __name__ == "__main__":
    application = QCoreApplication([])
    session, portal = QDBusConnection.sessionBus(), FakePortal()
    if not (session.registerVirtualObject(PATH, portal) and session.registerService(SERVICE)):
        sys.exit("the bus does not want it")
    print("there", flush=True)
    sys.exit(application.exec())
