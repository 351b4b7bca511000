"""What the commands are made of, given and not fetched: machines, the embedded lab, the window."""

from __future__ import annotations

import importlib
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lab.asking import Question
from lab.credentials import Passwords
from lab.errors import HostLacks
from lab.model import Experiment, Lab
from lab.testbed import Testbed

if TYPE_CHECKING:
    from lab.hands import Hands


class Checked(Protocol):
    """One thing that `check` looked at on one host, or between two."""

    @property
    def host(self) -> str:
        """The host's name."""

    @property
    def ok(self) -> bool:
        """False if a run could not be done like this."""

    @property
    def text(self) -> str:
        """What was found."""

    @property
    def advice(self) -> str:
        """What to do about it; empty where nothing is to be done."""

    @property
    def command(self) -> str:
        """The exact command that does it there, if there is one."""

    @property
    def grade(self) -> str:
        """ok, warn or trouble."""

    @property
    def asks(self) -> str:
        """The kind of what a run would have to be agreed to; empty where it is nothing of the sort."""


class Told(Protocol):
    """What is said of one host, line by line."""

    @property
    def host(self) -> str:
        """The host's name."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What is said."""

    @property
    def ok(self) -> bool:
        """False where the host could not be asked."""


class Window(Protocol):
    """`gui.app.main`: opens the window, and comes back with an exit code once it is closed."""

    def __call__(
        self,
        *,
        profile: str | None = None,
        experiment: str | None = None,
        run: bool = False,
        record: str | None = None,
        agreed: frozenset[str] | None = None,
    ) -> int | None: ...


def _drivers() -> Path:
    from lab import store

    return store.data_folder() / "vcs"


@cache
def _signed_in(lab: Lab) -> Passwords:
    """Asked for once per command, however often its hosts are connected to."""
    from lab.cli import passwords

    return passwords.signed_in(lab)


@cache
def _entered(lab: Lab, experiment: Experiment) -> Passwords:
    """The same, with the password of the experiment's repository."""
    from lab.cli import passwords

    known = _signed_in(lab)
    passwords.entered(lab, experiment, known, _drivers())
    return known


def _own(lab: Lab) -> bool:
    from lab import machines

    return machines.own(lab)


def _look(lab: Lab, experiment: Experiment) -> tuple[Question, ...]:
    from lab import machines

    return machines.look(lab, experiment, _drivers(), _entered(lab, experiment))


def _machines(lab: Lab, agreed: frozenset[str]) -> Testbed:
    from lab.machines import Machines

    return Machines(lab, _drivers(), passwords=_signed_in(lab), agreed=agreed)


def _hands(lab: Lab, experiment: Experiment | None) -> Hands:
    from lab import hands

    named = experiment is not None and (experiment.user or any(host.user for host in lab.hosts))
    known = _entered(lab, experiment) if experiment is not None and named else _signed_in(lab)
    return hands.Hands(lab, experiment, _drivers(), passwords=known)


def _check(lab: Lab, experiments: Sequence[Experiment]) -> Sequence[Checked]:
    from lab import machines
    from lab.cli import passwords

    known = _signed_in(lab)

    def enter(experiment: Experiment) -> None:
        passwords.entered(lab, experiment, known, _drivers())

    first, also = (experiments[0], experiments[1:]) if experiments else (None, ())
    found: Sequence[Checked] = machines.check(lab, first, known, _drivers(), entering=enter, also=also)
    return found


def _left(lab: Lab) -> Sequence[Checked]:
    from lab import machines

    found: Sequence[Checked] = machines.left(lab, _signed_in(lab))
    return found


def _commands(lab: Lab, experiment: Experiment) -> Mapping[str, Sequence[str | Sequence[str]]]:
    from lab import machines

    told: Mapping[str, Sequence[str | Sequence[str]]] = machines.commands(lab, experiment, _drivers())
    return told


def _changes(lab: Lab, experiment: Experiment, duration: str) -> str:
    from lab import machines

    return machines.changes(lab, experiment, duration, _drivers())


def _revert(lab: Lab, force: bool) -> Mapping[str, Sequence[str]]:
    from lab import machines

    undone: Mapping[str, Sequence[str]] = machines.revert(lab, force=force, passwords=_signed_in(lab))
    return undone


def _sudoers(lab: Lab) -> Sequence[Told]:
    from lab.cli import passwords
    from lab.rig import requirements

    told: Sequence[Told] = requirements.sudoers(lab, passwords.signed_in(lab, root=False))
    return told


def _requirements(lab: Lab, experiments: Sequence[Experiment]) -> Sequence[Told]:
    from lab.cli import passwords
    from lab.rig import requirements

    known = passwords.signed_in(lab, root=False)
    told: Sequence[Told] = requirements.requirements(lab, tuple(experiments), known)
    return told


def _forget(lab: Lab) -> Mapping[str, Sequence[str]]:
    from lab.rig import requirements

    removed: Mapping[str, Sequence[str]] = requirements.forget(lab, _signed_in(lab))
    return removed


@contextmanager
def _tied_lab() -> Iterator[Path]:
    from lab import embedded

    with embedded.up(tied=True) as made:
        yield Path(made.profile_path)


def _window() -> Window:
    """Raises HostLacks where Qt cannot be loaded."""
    try:
        # By name: the domain's contract is that nothing of it leans on `gui`; only this one door opens it.
        main: Window = importlib.import_module("gui.app").main
    except ImportError as error:
        raise HostLacks(
            f"the window cannot be opened: {error}",
            advice="Install what Qt needs (README, Installing), or work in the terminal: `branchlab --help`.",
        ) from error
    return main


def display_there() -> bool:
    """True if a window can be shown: a display that answers, or a Qt platform chosen by hand.

    Qt ends the process if a display does not answer, so this asks first.
    """
    if os.environ.get("QT_QPA_PLATFORM") or sys.platform in ("win32", "darwin"):
        return True
    wayland = os.environ.get("WAYLAND_DISPLAY")
    if wayland:
        runtime = Path(os.environ.get("XDG_RUNTIME_DIR", "/nowhere"))
        if _answers(socket.AF_UNIX, str(runtime / wayland)):
            return True
    return _x_answers(os.environ.get("DISPLAY", ""))


def _x_answers(display: str) -> bool:
    host, colon, rest = display.rpartition(":")
    number = rest.split(".")[0]
    if not colon or not number.isdigit():
        return False
    if host in ("", "unix"):
        path = f"/tmp/.X11-unix/X{number}"  # noqa: S108 - X's own place for its sockets
        return _answers(socket.AF_UNIX, path) or _answers(socket.AF_UNIX, f"\0{path}")
    return _answers(socket.AF_INET, (host, 6000 + int(number)))


def _answers(family: socket.AddressFamily, address: str | tuple[str, int]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as asked:
        asked.settimeout(3)
        try:
            asked.connect(address)
        except OSError:
            return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a command may use. Tests give others."""

    own: Callable[[Lab], bool] = _own
    look: Callable[[Lab, Experiment], tuple[Question, ...]] = _look
    testbed: Callable[[Lab, frozenset[str]], Testbed] = _machines
    hands: Callable[[Lab, Experiment | None], Hands] = _hands
    check: Callable[[Lab, Sequence[Experiment]], Sequence[Checked]] = _check
    left: Callable[[Lab], Sequence[Checked]] = _left
    commands: Callable[[Lab, Experiment], Mapping[str, Sequence[str | Sequence[str]]]] = _commands
    changes: Callable[[Lab, Experiment, str], str] = _changes
    revert: Callable[[Lab, bool], Mapping[str, Sequence[str]]] = _revert
    sudoers: Callable[[Lab], Sequence[Told]] = _sudoers
    requirements: Callable[[Lab, Sequence[Experiment]], Sequence[Told]] = _requirements
    forget: Callable[[Lab], Mapping[str, Sequence[str]]] = _forget
    tied_lab: Callable[[], AbstractContextManager[Path]] = _tied_lab
    window: Callable[[], Window] = _window
    display_there: Callable[[], bool] = display_there
