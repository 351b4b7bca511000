"""What the window's doors yield: frozen values, made in threads and shown by whoever asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.live import Live

if TYPE_CHECKING:
    from lab.analysis.summary import Summary
    from lab.draft import Draft
    from lab.profile import Profile


@dataclass(frozen=True, slots=True)
class OpenedProfile:
    """A profile that can be edited, and how many trials each of its experiments plans."""

    draft: Draft
    profile: Profile
    trials: dict[str, int]


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run from a file: folded, and summed up."""

    path: Path
    live: Live
    summary: Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """What taking everything back did on one host; `trouble` says why nothing could be done there."""

    host: str
    undone: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Doing:
    """What is being done on a host; the name is empty for what is between the hosts."""

    what: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """What one host lacks in words, the command that would install it, and what BranchLab installed before.

    `by_hand`: nobody here may become root there; `unknown`: no package is known; `trouble`: why it is not known.
    """

    host: str
    needs: tuple[str, ...] = ()
    command: str = ""
    unknown: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    by_hand: bool = False
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Printed:
    """A line that a host's package manager printed."""

    host: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What came of installing or taking away on one host; `trouble` says why it went wrong."""

    host: str
    texts: tuple[str, ...] = ()
    trouble: str = ""
