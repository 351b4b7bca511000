"""What this machine remembers of profiles: which were opened last, and whose content a person agreed to run.

Two small files in the data folder. One that is damaged, or cannot be written, remembers nothing: then a list is
shorter, and a question is asked again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tomllib
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab import store
from lab.profile import Profile

log = logging.getLogger(__name__)

MOST = 20
"""So many profiles are remembered; those that were opened longest ago go."""
MOST_FAMILIAR = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """A profile that was opened here. `opened` is UTC, ISO 8601; names and counts are as of then."""

    path: Path
    name: str
    opened: str
    hosts: int = 0
    experiments: int = 0

    @property
    def gone(self) -> bool:
        """True if there is no such file any more."""
        return not self.path.is_file()


def profiles(folder: Path | None = None) -> tuple[Recent, ...]:
    """The profiles that were opened here, newest first."""
    found = []
    for one in _read(_file("recent", folder)):
        with suppress(TypeError, ValueError, AttributeError):
            found.append(Recent(**{**one, "path": Path(one["path"])}))
    return tuple(found)


def opened(profile: Profile, folder: Path | None = None) -> None:
    """Remember that this profile was opened now. One without a file is not remembered."""
    if not profile.path.is_absolute() and not profile.path.is_file():
        return
    now = Recent(
        path=profile.path.absolute(),
        name=profile.lab.name or profile.path.stem,
        opened=datetime.now(UTC).isoformat(timespec="seconds"),
        hosts=len(profile.lab.hosts),
        experiments=len(profile.experiments),
    )
    _write([now, *(one for one in profiles(folder) if one.path != now.path)], folder)


def forget(path: Path, folder: Path | None = None) -> None:
    """Take a profile out of the list; the file itself stays where it is."""
    _write([one for one in profiles(folder) if one.path != path], folder)


def _write(recents: list[Recent], folder: Path | None) -> None:
    rows = [{**asdict(one), "path": str(one.path)} for one in recents[:MOST]]
    _put(_file("recent", folder), rows)


# whose content was agreed to


def familiar(text: str, folder: Path | None = None) -> bool:
    """True if a person here agreed to run a profile with this content, or it was made here."""
    return _content(text) in _read(_file("familiar", folder))


def agree(text: str, folder: Path | None = None) -> None:
    """Remember that a person agreed to run a profile with this content, or made it."""
    known = [one for one in _read(_file("familiar", folder)) if one != _content(text)]
    _put(_file("familiar", folder), [_content(text), *known][:MOST_FAMILIAR])


def _content(text: str) -> str:
    """A hash of what a profile says: comments, order of keys and blanks are no part of it."""
    try:
        said = json.dumps(tomllib.loads(text), sort_keys=True, default=str)
    except (ValueError, RecursionError):
        said = text
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


# files


def _file(name: str, folder: Path | None) -> Path:
    return (store.data_folder() if folder is None else folder) / f"{name}.json"


def _read(file: Path) -> list[Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        log.warning("%s is not read: %s", file, error)
        return []
    return found if isinstance(found, list) else []


def _put(file: Path, value: list[Any]) -> None:
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
        part.replace(file)
    except OSError as error:
        log.warning("%s is not written: %s", file, error)
        with suppress(OSError):
            part.unlink(missing_ok=True)
