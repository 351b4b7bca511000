"""Passwords and keys of hosts, asked of a person amid work; what was typed wrong is asked for again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gui import ways
from lab.model import Experiment, Host, Lab

if TYPE_CHECKING:
    from gui.person import Somebody
    from lab.credentials import Offered, Passwords

TRIES = 3
"""So often a person may type a password for one host; each wrong one is told."""


@dataclass(slots=True, kw_only=True)
class Signing:
    """`person` answers questions amid work; `signing` and `entering` do what their names in `gui.ways` do."""

    signing: Callable[[Host, Passwords], None] = ways.sign_in
    entering: Callable[[Lab, Experiment, Passwords], None] = ways.enter
    person: Somebody | None = None
    _passwords: Passwords | None = None

    def passwords(self) -> Passwords:
        """Those of this window, kept in memory for as long as it is there; whoever is `person` now is asked."""
        from lab.credentials import Passwords

        if self._passwords is None:
            self._passwords = Passwords(self._ask, self._accept)
        return self._passwords

    def sign_in(self, host: Host) -> None:
        """Get whatever a host asks for, and its key accepted. Raises what the last of `TRIES` raises."""
        # Hosts of this machine: their keys are in the profile, and nobody has a password.
        if host.root in ("sudo", "doas") or not host.ssh.startswith("unix:"):
            self._tried(lambda: self.signing(host, self.passwords()))

    def enter(self, lab: Lab, experiment: Experiment | None) -> None:
        """Get the passwords of the repository and of a proxy's user, where the profile names one.

        Raises what the last of `TRIES` raises.
        """
        if experiment is not None and (experiment.user or any(host.user for host in lab.hosts)):
            self._tried(partial(self.entering, lab, experiment, self.passwords()))

    def forget_passwords(self) -> Iterator[tuple[str, ...] | None]:
        """Take out of the keyring what BranchLab put there: the names of it, None where no keyring answers."""
        from lab import credentials

        yield credentials.forget()

    def _ask(self, question: str) -> str | None:
        return self.person.password(question) if self.person is not None else None

    def _accept(self, offered: Offered) -> bool:
        return self.person is not None and self.person.trusts(offered)

    def _tried(self, enter: Callable[[], None]) -> None:
        from lab.agents import PasswordRefused
        from lab.rig.entry import RepositoryPasswordRefused
        from lab.ssh.login import LoginPasswordRefused, TookTooLong

        for attempt in range(TRIES):
            try:
                enter()
                self._remember()
                break
            except (PasswordRefused, LoginPasswordRefused, RepositoryPasswordRefused, TookTooLong) as error:
                if attempt == TRIES - 1 or self.person is None:
                    raise
                self.person.notice = f"{error}. This is try {attempt + 2} of {TRIES}."

    def _remember(self) -> None:
        """Put what the person wanted remembered, and was right, into the keyring; say so where it is not taken."""
        passwords = self.passwords()
        for one in passwords.taken():
            if one.wished and not passwords.remember(one.target, one.kind) and self.person is not None:
                self.person.not_remembered(one.what)
