"""A message of the desktop's own where there is no tray: the notification portal, over QtDBus.

The interface is `org.freedesktop.portal.Notification` (flatpak.github.io/xdg-desktop-portal). The older
`org.freedesktop.Notifications` wants an unsigned number among its arguments, and PySide6 sends all as signed.
"""

from __future__ import annotations

from PySide6.QtCore import SLOT, QObject, Signal, Slot
from PySide6.QtDBus import QDBusConnection, QDBusMessage

SERVICE, PATH = "org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop"
INTERFACE = "org.freedesktop.portal.Notification"
_ACTION = "show"


class Portal(QObject):
    """One message at a time. Signals: `pressed()` somebody pressed it."""

    pressed = Signal()

    def __init__(self, name: str, parent: QObject, bus: QDBusConnection | None = None) -> None:
        """`name` tells this program's message from others; `bus` is the session's unless a test gives another."""
        super().__init__(parent)
        self._name = name
        self._bus = bus or QDBusConnection.sessionBus()
        self._bus.connect("", PATH, INTERFACE, "ActionInvoked", self, SLOT("acted(QDBusMessage)"))

    def tell(self, title: str, text: str) -> None:
        """Ask the desktop to show it, in place of the one before; where it has no portal nothing comes of it."""
        shown = {"title": title, "body": text, "priority": "normal", "default-action": _ACTION}
        self._send("AddNotification", [self._name, shown])

    def withdraw(self) -> None:
        """Take it away, if it is still there."""
        self._send("RemoveNotification", [self._name])

    def _send(self, what: str, arguments: list[object]) -> None:
        message = QDBusMessage.createMethodCall(SERVICE, PATH, INTERFACE, what)
        message.setArguments(arguments)
        self._bus.send(message)

    @Slot(QDBusMessage)
    def acted(self, message: QDBusMessage) -> None:
        """An action of some program's message."""
        if list(message.arguments()[:2]) == [self._name, _ACTION]:
            self.pressed.emit()
