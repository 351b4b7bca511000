"""The lab's folder on this machine: made, locked while anyone lives in it, found again, removed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lab.embedded import plan
from lab.errors import BadInput

PREFIX = "branchlab-"
_LONGEST = 100 - len("/client-200/ssh")  # a UNIX socket's path has at most 107 bytes


def made(base: Path | None) -> Path:
    """A new private folder for a lab, inside `base` (default: the system's folder for temporary files).

    Raises BadInput where a lab could not live there.
    """
    within = Path(base or tempfile.gettempdir()).resolve()
    if not re.fullmatch(r"[A-Za-z0-9._/+-]+", str(within)):
        raise BadInput(
            f"a lab cannot be made in {within}: sshd's configuration takes no spaces or signs there",
            advice="set TMPDIR to a folder with a plain name, such as /tmp",
        )
    if within.is_relative_to("/run") or len(str(within)) + len(PREFIX) + 8 > _LONGEST:
        raise BadInput(
            f"a lab cannot be made in {within}: every host has a /run of its own, and the path of a socket "
            "must be short",
            advice="set TMPDIR to a short path outside /run, such as /tmp",
        )
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))
    except OSError as error:
        raise BadInput(f"no folder can be made in {within}: {error.strerror}", advice="set TMPDIR") from error
    if os.geteuid() == 0:
        # Root's Apache works as www-data, which must get to its files; their names are random and what is
        # private among them (keys, sockets) is so by its own mode.
        folder.chmod(0o711)
    return folder


def lock(folder: Path) -> int:
    """A descriptor that shows, as long as any copy of it is open, that the lab in `folder` lives.

    It also keeps systemd-tmpfiles away, which spares folders that are locked.
    """
    number = above_standard_streams(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    fcntl.flock(number, fcntl.LOCK_SH)
    return number


def above_standard_streams(number: int) -> int:
    """Move an open descriptor out of the way of those that a child is given as 0 to 3."""
    moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(number)
    return moved


def abandoned(folder: Path) -> bool:
    """True if nobody lives in this lab's folder any more."""
    try:
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return not folder.exists()
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(number)
    return True


def found(base: Path | None = None) -> Iterator[plan.LabPlan]:
    """The plans of this user's labs, living or abandoned. One that is just being made is not among them."""
    within = Path(base or tempfile.gettempdir()).resolve()
    for folder in sorted(within.glob(PREFIX + "*")):
        with contextlib.suppress(OSError, ValueError):
            if not folder.is_symlink() and folder.lstat().st_uid == os.geteuid():
                lab = plan.loaded(folder)
                if Path(lab.folder) == folder:
                    yield lab


def sweep(folder: Path) -> bool:
    """Remove a lab's folder if nobody lives in it. True if it was removed now."""
    if not folder.exists() or not abandoned(folder):
        return False
    remove(folder)
    return True


def remove(folder: Path) -> None:
    """Remove a lab's folder, and the profile that was written for it. Idempotent.

    Processes that were killed a moment ago may still finish a write: hence more than one try.
    """
    with contextlib.suppress(OSError, ValueError):
        drop_profile(plan.loaded(folder))
    for _ in range(20):
        # The mark goes last, so that what a killed removal leaves is found again.
        for item in _inside(folder):
            if item.name != plan.MARK:
                _remove_item(item)
        if all(item.name == plan.MARK for item in _inside(folder)):
            shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(0.05)
    if os.geteuid() == 0:
        _drop_records(folder)


def _drop_records(folder: Path) -> None:
    """What root's agents wrote down of the folders that they made in this lab: this machine is their host too."""
    records = Path("/var/lib/branchlab/made")  # as ssh_agents.made has it
    for record in records.glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if Path(json.loads(record.read_text("utf-8"))["path"]).is_relative_to(folder):
                record.unlink()
    for empty in (records, records.parent):
        with contextlib.suppress(OSError):
            empty.rmdir()


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _remove_item(item: Path) -> None:
    if item.is_dir() and not item.is_symlink():
        shutil.rmtree(item, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            item.unlink()


def drop_profile(lab: plan.LabPlan) -> None:
    """Remove the profile of a lab that is gone; one that the user has edited is put aside instead."""
    profile = Path(lab.profile)
    if profile.is_relative_to(lab.folder):
        return
    with contextlib.suppress(OSError):
        if profile.read_bytes() == (Path(lab.folder) / "profile.toml").read_bytes():
            profile.unlink()
        elif lab.folder in profile.read_text("utf-8", "replace"):
            profile.replace(profile.with_name(profile.name + ".edited"))
