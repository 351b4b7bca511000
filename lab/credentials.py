"""Passwords: asked for, kept in memory, from the keyring, or handed over in a file descriptor. keyring only here.

None is ever put into an argument, a variable of the environment, a file, a log or an error's text.
"""

from __future__ import annotations

import functools
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from lab.errors import BadInput

log = logging.getLogger(__name__)

VARIABLE = "BRANCHLAB_SUDO_PASSWORD_FD"
"""Names the number of an open file descriptor whose first line is the password; there is none that holds it."""
SERVICE = "branchlab"
"""Under this name, and `sudo USER@ADDRESS:PORT` as the user, the keyring keeps a password."""
KEYRING_S = 1.5
"""A keyring that does not answer within this time is none: without a desktop it may wait for ever."""
UNLOCKING_S = 60.0
"""Where a desktop is, the keyring may ask the person to unlock it."""
HANDED_S = 10.0
LONGEST = 4096

Ask = Callable[[str], str | None]
"""Asks a person the question, waits, and gives the answer; None if there was none."""


class Passwords:
    """What is known of passwords, for one lab, from any thread. `ask` is for a person's answer, if one is there."""

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask = ask
        self._known: dict[str, str] = {}
        self._handed = handed_over()
        self._keyring_silent = False
        self._turn = threading.Lock()  # one question at a time

    def password(self, target: str, name: str) -> str | None:
        """The password of `target` (USER@ADDRESS:PORT), the host `name`, for sudo or doas; None if none is known.

        Known from before, else from the keyring, else handed over, else a person is asked and may take long.
        """
        with self._turn:
            if target not in self._known:
                found = self._stored(target) or self._handed or self._answer(target, name)
                if found is None:
                    return None
                self._known[target] = found
            return self._known[target]

    def refused(self, target: str) -> None:
        """Forget one that was wrong, so that it is not offered again."""
        with self._turn:
            if self._known.pop(target, None) == self._handed:
                self._handed = None

    @contextmanager
    def asking(self, ask: Ask | None) -> Iterator[None]:
        """Meanwhile a person is there."""
        before, self._ask = self._ask, ask
        try:
            yield
        finally:
            self._ask = before

    def _answer(self, target: str, name: str) -> str | None:
        if self._ask is None:
            return None
        return self._ask(f"Password of {target} to become root on {name}: ") or None

    def _stored(self, target: str) -> str | None:
        if self._keyring_silent:
            return None
        begin = time.monotonic()
        found = stored(f"sudo {target}")
        # Not for every host anew.
        self._keyring_silent = found is None and time.monotonic() - begin > KEYRING_S
        return found


@functools.cache  # a descriptor can be read once, and belongs to the whole process
def handed_over() -> str | None:
    """The password that was handed over in the descriptor that `VARIABLE` names; the variable is removed.

    None where the variable is absent. Raises BadInput where it is there and nothing can be read.
    """
    number = os.environ.pop(VARIABLE, None)
    if number is None:
        return None
    text = _first_line(int(number)) if number.isdigit() and len(number) < 10 else b""
    if not text:
        raise BadInput(
            f"{VARIABLE} names a file descriptor that holds no password",
            advice=f"Open it for this command, for example: {VARIABLE}=3 branchlab run PROFILE 3<FILE.",
        )
    return text.decode("utf-8", "surrogateescape")


def _first_line(descriptor: int) -> bytes:
    text, end = b"", time.monotonic() + HANDED_S
    try:
        while b"\n" not in text and len(text) < LONGEST:
            if not select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0]:
                return b""
            piece = os.read(descriptor, LONGEST)
            if not piece:
                break
            text += piece
        os.close(descriptor)
    except (OSError, ValueError):
        return b""
    return text.partition(b"\n")[0].rstrip(b"\r")


def stored(name: str) -> str | None:
    """What the keyring has under `name`; None where it has nothing, or there is no keyring. Never hangs."""

    def look() -> str | None:
        import keyring

        return keyring.get_password(SERVICE, name)

    return _within(UNLOCKING_S if _desktop(os.environ) else KEYRING_S, look)


def _desktop(environment: Mapping[str, str]) -> bool:
    """True where somebody could see a window that asks to unlock the keyring."""
    return sys.platform in ("win32", "darwin") or bool(
        (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))
        and environment.get("DBUS_SESSION_BUS_ADDRESS")
    )


def _within(limit_s: float, look: Callable[[], str | None]) -> str | None:
    """What `look` gives in time. A thread that hangs in a keyring is left behind; it keeps nobody from ending."""
    found: list[str | None] = []

    def work() -> None:
        try:
            found.append(look())
        except Exception as error:  # noqa: BLE001 - a keyring may fail in any way, and is not needed
            log.info("no keyring: %s", type(error).__name__)

    thread = threading.Thread(target=work, name="keyring", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        log.warning("the keyring did not answer within %g s, and is not asked again", limit_s)
    return found[0] if found else None
