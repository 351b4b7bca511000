"""Passwords and passphrases: asked for, kept in memory, from the keyring, or handed over. keyring only here.

None is ever put into an argument, a variable of the environment, a file, a log or an error's text.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from lab.errors import BadInput

log = logging.getLogger(__name__)
T = TypeVar("T")


class Kind(StrEnum):
    """What a secret is for; its value is the first word of its name in the keyring."""

    LOGIN = "login"
    KEY = "key"
    SUDO = "sudo"
    VCS = "vcs"
    PROXY = "proxy"


QUESTIONS = {
    Kind.LOGIN: "Password of {target} to log in on {name}: ",
    Kind.KEY: "Passphrase of the key {target} for {name}: ",
    Kind.SUDO: "Password of {target} to become root on {name}: ",
    Kind.VCS: "Password of {target} for the repository on {name}: ",
    Kind.PROXY: "Password of {target} at the proxy {name}: ",
}
WORDS = {
    Kind.LOGIN: "the password of {target} to log in",
    Kind.KEY: "the passphrase of the key {target}",
    Kind.SUDO: "the password of {target} to become root",
    Kind.VCS: "the repository's password of {target}",
    Kind.PROXY: "the proxy's password of {target}",
}
VARIABLES = {
    Kind.LOGIN: "BRANCHLAB_LOGIN_PASSWORD_FD",
    Kind.KEY: "BRANCHLAB_KEY_PASSPHRASE_FD",
    Kind.SUDO: "BRANCHLAB_SUDO_PASSWORD_FD",
    Kind.VCS: "BRANCHLAB_VCS_PASSWORD_FD",
    Kind.PROXY: "BRANCHLAB_PROXY_PASSWORD_FD",
}
"""Each names the number of an open file descriptor whose first line is the secret; there is none that holds it."""
VARIABLE = VARIABLES[Kind.SUDO]
SERVICE = "branchlab"
"""Under this name, and `KIND TARGET` as the user (`sudo USER@ADDRESS:PORT`), the keyring keeps a secret."""
KEYRING_S = 1.5
"""A keyring that does not answer within this time is none: without a desktop it may wait for ever."""
UNLOCKING_S = 60.0
"""Where a desktop is, the keyring may ask the person to unlock it."""
NOTED = "remembered"
"""Under this user the keyring keeps the names of what was put there by `store`, as JSON."""
HANDED_S = 10.0
LONGEST = 4096
_silent = threading.Event()
"""The keyring did not answer: for the whole process, since nothing can be asked of it that would not wait, too."""

Ask = Callable[[str], str | None]
"""Asks a person the question, waits, and gives the answer; None if there was none."""


class Remembered(str):
    """A person's answer that is to be put into the keyring, once it was right."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Taken:
    """A secret that a person typed, and a host took; `wished` if it was given as Remembered."""

    kind: Kind
    target: str
    wished: bool

    @property
    def what(self) -> str:
        """Which it is, for people."""
        return WORDS[self.kind].format(target=self.target)


@dataclass(frozen=True, slots=True)
class Offered:
    """A key that an unknown host showed, or a known one a new one, for a person to accept or not.

    `host` is its name in the profile, `target` is USER@ADDRESS:PORT, `kind` the key's type as in known_hosts,
    `fingerprint` as OpenSSH prints it. `known` has its known keys, `KIND FINGERPRINT, …`, where it shows another.
    """

    host: str
    target: str
    kind: str
    fingerprint: str
    known: str = ""


Accept = Callable[[Offered], bool]
"""Asks a person whether the key is the host's, and waits."""


class Passwords:
    """What is known of secrets, for one lab, from any thread. `ask` and `accept` are for a person, if one is there.

    Secrets are found by their kind and their target: USER@ADDRESS:PORT, the path of a key, or an address.
    """

    def __init__(self, ask: Ask | None = None, accept: Accept | None = None) -> None:
        self._ask, self._accept = ask, accept
        self._known: dict[tuple[Kind, str], str] = {}
        self._wrong: set[tuple[Kind, str, str]] = set()
        self._typed: dict[tuple[Kind, str], bool] = {}
        self._taken: list[Taken] = []
        self._handed = {kind: handed_over(kind) for kind in Kind}
        self._refusers: dict[Kind, str] = {}
        self._unread = {kind for kind in Kind if unread(kind)}
        self._keyring_silent = False
        self.kept: dict[str, object] = {}
        """Connections that could not be made again without the person, by the host's `ssh`."""
        self._turn = threading.Lock()  # one question at a time

    def password(self, target: str, name: str, kind: Kind = Kind.SUDO) -> str | None:
        """The secret of `target`, needed on the host `name`; None if none is known.

        Known from before, else from the keyring, else handed over, else a person is asked and may take long.
        One that was refused is not offered again. Raises BadInput for one of more than a line: whoever reads it
        would take what stands behind the line's end for something else.
        """
        with self._turn:
            key = (kind, target)
            if key not in self._known:
                found = self._unasked(kind, target) or self._answer(kind, target, name)
                if found is None:
                    return None
                _refuse_lines(found, WORDS[kind].format(target=target))
                self._known[key] = found
            return self._known[key]

    def refused(self, target: str, kind: Kind = Kind.SUDO) -> None:
        """Forget one that was wrong, so that it is not offered again."""
        with self._turn:
            found = self._known.pop((kind, target), None)
            self._typed.pop((kind, target), None)
            if found is not None:
                self._wrong.add((kind, target, found))
                if found == self._handed[kind] and kind is not Kind.KEY:
                    # Nor to another host, where it may be of the same account; a key file locks nobody out.
                    self._handed[kind] = None
                    self._refusers[kind] = target

    def was_wrong(self, target: str, kind: Kind = Kind.SUDO) -> bool:
        """Whether one was refused before."""
        with self._turn:
            return any((kind, target) == (one, of) for one, of, _ in self._wrong)

    def astray(self, kind: Kind = Kind.SUDO) -> str:
        """What became of the one that somebody meant to be used, for people; empty where nobody did."""
        if by := self._refusers.get(kind):
            return f"the one that was handed over was refused by {by}, and is not tried anywhere else"
        if kind in self._unread:
            variable = VARIABLES[kind]
            return (
                f"{variable.removesuffix('_FD')} is not read, since it would hold the secret itself: write"
                f" {variable}=3 and 3< <(command that prints it)"
            )
        return ""

    def right(self, target: str, kind: Kind = Kind.SUDO) -> None:
        """Note that a host took it: what was typed may then be remembered. Waits for nobody."""
        wished = self._typed.pop((kind, target), None)
        if wished is not None:
            self._taken.append(Taken(kind, target, wished))

    def taken(self) -> tuple[Taken, ...]:
        """What was typed and right since this was last asked."""
        found, self._taken = tuple(self._taken), []
        return found

    def remember(self, target: str, kind: Kind = Kind.SUDO) -> bool:
        """Put the secret, once it was right, into the keyring; False where there is none that would take it."""
        with self._turn:
            found = self._known.get((kind, target))
        return found is not None and store(f"{kind} {target}", found)

    @property
    def attended(self) -> bool:
        """Whether a person is there who can be asked."""
        return self._ask is not None

    def answer(self, question: str) -> str | None:
        """A person's answer to a question of a host, which is not kept; None where nobody is there."""
        with self._turn:
            found = None if self._ask is None else self._ask(question)
            _refuse_lines(found or "", "the answer")
            return found

    @property
    def accept(self) -> Accept | None:
        """Asks whether an unknown host key is right; None where nobody is there."""
        ask = self._accept
        if ask is None:
            return None

        def accepted(offered: Offered) -> bool:
            with self._turn:
                return ask(offered)

        return accepted

    @contextmanager
    def asking(self, ask: Ask | None, accept: Accept | None = None) -> Iterator[None]:
        """Meanwhile a person is there."""
        before = self._ask, self._accept
        self._ask, self._accept = ask, accept
        try:
            yield
        finally:
            self._ask, self._accept = before

    def _answer(self, kind: Kind, target: str, name: str) -> str | None:
        if self._ask is None:
            return None
        found = self._ask(QUESTIONS[kind].format(target=target, name=name)) or None
        if found is not None:
            self._typed[kind, target] = isinstance(found, Remembered)
            found = str(found)
        return found

    def _unasked(self, kind: Kind, target: str) -> str | None:
        for found in (self._stored(kind, target), self._handed[kind]):
            if found and (kind, target, found) not in self._wrong:
                return found
        return None

    def _stored(self, kind: Kind, target: str) -> str | None:
        if self._keyring_silent:
            return None
        begin = time.monotonic()
        found = stored(f"{kind} {target}")
        # Not for every host anew.
        self._keyring_silent = found is None and time.monotonic() - begin > KEYRING_S
        return found


def _refuse_lines(secret: str, what: str) -> None:
    if any(sign in secret for sign in "\n\r\0"):
        raise BadInput(
            f"{what} has a line break or a NUL in it, and nothing of it was sent",
            advice="A password is one line. Look at what was pasted, or at what is stored in the keyring.",
        )


@functools.cache  # a descriptor can be read once, and belongs to the whole process
def handed_over(kind: Kind = Kind.SUDO) -> str | None:
    """The secret that was handed over in the descriptor that the kind's variable names; the variable is removed.

    None where the variable is absent. Raises BadInput where it is there and nothing can be read.
    """
    variable = VARIABLES[kind]
    number = os.environ.pop(variable, None)
    if number is None:
        return None
    text = _first_line(int(number)) if number.isascii() and number.isdecimal() and len(number) < 10 else b""
    if not text:
        raise BadInput(
            f"{variable} names a file descriptor that holds no password",
            advice=f"Open it for this command, for example: {variable}=3 branchlab run PROFILE 3<FILE.",
        )
    return text.decode("utf-8", "surrogateescape")


@functools.cache  # once it is out, nothing tells of it
def unread(kind: Kind) -> bool:
    """Whether somebody put a secret itself into a variable. It is taken out: what is started would have it, too."""
    variable = VARIABLES[kind].removesuffix("_FD")
    if os.environ.pop(variable, None) is None:
        return False
    log.warning("%s is not read: a secret comes in the descriptor that %s_FD names", variable, variable)
    return True


@functools.cache  # two variables may name the same one
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


@functools.cache  # for the whole process: it can take KEYRING_S to find out
def keyring_there() -> bool:
    """Whether this machine keeps secrets for people: a keyring of the desktop or the system, never a plain file."""

    def look() -> bool:
        import keyring

        # A file that anybody who is this user can read has a priority below 1, and none at all has 0.
        return bool(keyring.get_keyring().priority >= 1)

    return _within(KEYRING_S, look) is True


def stored(name: str) -> str | None:
    """What the keyring has under `name`; None where it has nothing, or there is no keyring. Never hangs."""

    def look() -> str | None:
        import keyring

        return keyring.get_password(SERVICE, name)

    # A person may take long to unlock it; that there is one at all is found out soon.
    if _desktop(os.environ) and _within(KEYRING_S, _begun) is None:
        return None
    return _within(_patience(), look)


def _begun() -> bool:
    import keyring

    return keyring.get_keyring() is not None


def store(name: str, secret: str) -> bool:
    """Put a secret into the keyring under `name`; False where there is none, or it does not take it. Never hangs.

    The name is noted there first, so that nothing is in it that `forget` does not find.
    """

    def put() -> bool:
        import keyring

        names = _noted()
        if name not in names:
            keyring.set_password(SERVICE, NOTED, json.dumps([*names, name]))
        keyring.set_password(SERVICE, name, secret)
        return True

    return keyring_there() and _within(_patience(), put) is True


def remembered() -> tuple[str, ...] | None:
    """The names of what `store` put into the keyring; None where none answers. Never hangs."""
    return _within(_patience(), lambda: tuple(_noted())) if keyring_there() else None


def forget() -> tuple[str, ...] | None:
    """Take all of that out again; the names of what was there. None where no keyring answers. Never hangs.

    Raises BadInput for what it does not let go.
    """

    def take() -> tuple[list[str], list[str]]:
        import keyring
        from keyring.errors import PasswordDeleteError

        gone, left = [], []
        for name in _noted():
            try:
                keyring.delete_password(SERVICE, name)
                gone.append(name)
            except PasswordDeleteError:  # also: somebody took it out by hand
                if keyring.get_password(SERVICE, name) is not None:
                    left.append(name)
        if left:
            keyring.set_password(SERVICE, NOTED, json.dumps(left))
        elif keyring.get_password(SERVICE, NOTED) is not None:
            keyring.delete_password(SERVICE, NOTED)
        return gone, left

    found = _within(_patience(), take) if keyring_there() else None
    if found is not None and found[1]:
        raise BadInput(
            f"the keyring does not let go of {', '.join(found[1])}",
            advice=f'Take it out by hand: keyring del {SERVICE} "{found[1][0]}".',
        )
    return None if found is None else tuple(found[0])


def _noted() -> list[str]:
    import keyring

    try:
        names = json.loads(keyring.get_password(SERVICE, NOTED) or "[]")
    except ValueError:
        names = []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _patience() -> float:
    return UNLOCKING_S if _desktop(os.environ) else KEYRING_S


def _desktop(environment: Mapping[str, str]) -> bool:
    """True where somebody could see a window that asks to unlock the keyring."""
    return sys.platform in ("win32", "darwin") or bool(
        (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))
        and environment.get("DBUS_SESSION_BUS_ADDRESS")
    )


def _within(limit_s: float, look: Callable[[], T]) -> T | None:
    """What `look` gives in time. A thread that hangs in a keyring is left behind; it keeps nobody from ending."""
    found: list[T] = []
    if _silent.is_set():
        return None

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
        if limit_s == KEYRING_S:  # else it may wait for a person
            _silent.set()
    return found[0] if found else None
