"""The person at the window, as threads see them: asked for passwords, and whether a host is the one it should be."""

from __future__ import annotations

from typing import Protocol

from gui.host_key import ChangedKeyDialog, HostKeyDialog
from gui.password import NotRememberedDialog, PasswordDialog, is_secret
from gui.questions import Questions
from gui.theme.look import Look
from lab import credentials
from lab.credentials import Offered
from lab.stop import Stop


class Somebody(Protocol):
    """Who answers questions amid work, from any thread. Declining is an answer."""

    notice: str
    """What was wrong with the last answer, told with the next question."""

    def password(self, question: str) -> str | None:
        """The answer; None if there is none."""

    def trusts(self, offered: Offered) -> bool:
        """True if this key, which is not known, is the right one."""

    def not_remembered(self, what: str) -> None:
        """Hear that the keyring did not take this secret."""


class Person:
    """Asks through the window for as long as `stop` is not requested and the window is there."""

    def __init__(self, look: Look, questions: Questions, stop: Stop) -> None:
        self._look, self._questions, self._stop = look, questions, stop
        self.notice = ""

    def password(self, question: str) -> str | None:
        """A password or passphrase, as Remembered where it is to be; None where the person cancels."""
        notice, self.notice = self.notice, ""
        # Here, in the thread that asks: it may take more than a second to find out.
        keyring = is_secret(question) and credentials.keyring_there()
        answer = self._questions.ask(
            lambda window: PasswordDialog(self._look, question, window, notice=notice, keyring=keyring),
            self._stop,
        )
        return answer if isinstance(answer, str) else None

    def trusts(self, offered: Offered) -> bool:
        """True if the person trusts the key, be it unknown or another than the one known."""
        kind = ChangedKeyDialog if offered.known else HostKeyDialog
        return self._questions.ask(lambda window: kind(self._look, offered, window), self._stop) is True

    def not_remembered(self, what: str) -> None:
        """Say so, and wait until it was read."""
        self._questions.ask(lambda window: NotRememberedDialog(self._look, what, window), self._stop)
