"""What a person set for this program on this machine, in one small file; everything has a default."""

from __future__ import annotations

import os
import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import platformdirs

from lab.errors import BadInput

THEMES = ("system", "light", "dark")
LEASE_S = 30
LEAST_LEASE_S, MOST_LEASE_S = 15, 300
"""Shorter than this, and a slow line may let a lease lapse; longer, and a limit outlives BranchLab for minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`theme` is one of `THEMES`; `motion`: what runs turns; `notify`: the desktop tells of a run's end to somebody who
    looks elsewhere; `data`: the folder for runs and all else, empty for the system's own; `lease_s`: so many seconds
    a change on a host outlives BranchLab at most, and the few that its watcher takes.
    """

    theme: str = "system"
    motion: bool = True
    notify: bool = True
    data: str = ""
    lease_s: int = LEASE_S

    def __post_init__(self) -> None:
        """Raises ValueError, in words for a person, for what no setting can be."""
        if self.theme not in THEMES:
            raise ValueError(f"theme: write one of {', '.join(THEMES)}")
        for name in ("motion", "notify"):
            if getattr(self, name).__class__ is not bool:
                raise ValueError(f"{name}: write true or false")
        if not isinstance(self.data, str) or (self.data and not Path(self.data).expanduser().is_absolute()):
            raise ValueError("data: write a whole path, as /srv/branchlab, or nothing")
        whole = isinstance(self.lease_s, int) and not isinstance(self.lease_s, bool)
        if not whole or not LEAST_LEASE_S <= self.lease_s <= MOST_LEASE_S:
            raise ValueError(f"lease_s: write whole seconds from {LEAST_LEASE_S} to {MOST_LEASE_S}")


def path() -> Path:
    """The file. Beside the data where `BRANCHLAB_DATA` names a folder for it, else among the user's settings."""
    named = os.environ.get("BRANCHLAB_DATA")
    folder = (
        Path(named).expanduser().absolute()
        if named
        else platformdirs.user_config_path("branchlab", appauthor=False)
    )
    return folder / "settings.toml"


def load() -> Settings:
    """What is set. Raises BadInput where the file is wrong, with what to write instead."""
    file = path()
    try:
        found: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(file, str(error)) from error
    known = {entry.name for entry in fields(Settings)}
    unknown = sorted(set(found) - known)
    if unknown:
        raise _wrong(file, f"unknown key {unknown[0]}: write one of {', '.join(sorted(known))}")
    try:
        return Settings(**found)
    except (TypeError, ValueError) as error:
        raise _wrong(file, str(error)) from error


def held() -> Settings:
    """What holds now: where the file is wrong, every default. Each way in tells that it is wrong (`load`)."""
    try:
        return load()
    except BadInput:
        return Settings()


def lease_s() -> float:
    """The lease that holds, in seconds."""
    return float(held().lease_s)


def save(settings: Settings) -> None:
    """Keep these; comments in the file stay. Raises OSError."""
    import tomlkit  # for this alone; every command reads the settings

    file = path()
    try:
        document = tomlkit.parse(file.read_text("utf-8"))
    except (OSError, ValueError):
        document = tomlkit.document()
    for name, value in asdict(settings).items():
        document[name] = value
    for name in set(document) - set(asdict(settings)):
        del document[name]
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".new")
    partial.write_text(tomlkit.dumps(document), "utf-8")
    partial.replace(file)


def _wrong(file: Path, text: str) -> BadInput:
    return BadInput(f"{file}: {text}", advice="Correct the file, or remove it: everything has a default.")
