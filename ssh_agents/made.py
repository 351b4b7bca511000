"""What BranchLab made here for its services: written down where only root writes, and reached by descriptors.

A file inside of a folder is no proof for root: it could have been laid there, or come with a backup. So root keeps a
record of each folder that it made, of the folders on the way to it, and of whom it let pass on that way.
Anybody else could remove no more than what is his own anyway; there the folder's own mark is the record.
"""

import contextlib
import errno
import hashlib
import json
import os
import secrets
import stat
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ssh_agents import lease, private, system
from ssh_agents.protocol import Refused

FOLDER = "/var/lib/branchlab/made"
"""One file for each folder that root made: {path, what, parents, opened, given}."""
About = Dict[str, Any]
"""`parents` made on the way, from the top; `opened`: [path, uid, gid, mode] as each was; `given`: [path, its uid,
its gid, the user that has it now], or nothing."""
Chain = Tuple[int, ...]


def opened(path: str, owners: Chain = (0,), make: bool = False) -> int:
    """A descriptor of a folder, which root reaches part by part, through nothing that somebody else could exchange.

    Each part is a real folder of root's that nobody else may write to (but for a sticky one on the way); the last one
    may belong to any of `owners`. `make`: what is missing is made; the last part must be missing.
    """
    if system.user() != 0:
        return _plainly_opened(path, make)
    number, place, parts = os.open("/", _flags()), "", path.strip("/").split("/")
    for index, part in enumerate(parts):
        place, last = "%s/%s" % (place, part), index == len(parts) - 1
        try:
            inner = _next(number, part, place, make, last)
        finally:
            os.close(number)
        number = inner
        try:
            _refuse_shared(os.fstat(number), place, path, owners if last else (0,), last)
        except BaseException:
            os.close(number)
            raise
    return number


def _next(folder: int, part: str, place: str, make: bool, last: bool) -> int:
    try:
        if make and last:
            os.mkdir(part, 0o700, dir_fd=folder)
        try:
            return os.open(part, _flags(), dir_fd=folder)
        except FileNotFoundError:
            if not make:
                raise
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
            return os.open(part, _flags(), dir_fd=folder)
    except FileExistsError:
        raise Refused("bad-request", "%s has come into being meanwhile" % place) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Refused("bad-request", "%s is a link or a file" % place, "root follows no links") from None
        raise


def make(folder: str, inner: str = "") -> None:
    """Make a folder that is not there yet, and one in it, as `opened` does. Raises FileExistsError, and Refused."""
    if not system.POSIX:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        os.mkdir(folder)
        if inner:
            os.mkdir(os.path.join(folder, inner))
        return
    number = opened(folder, make=True)
    try:
        if inner:
            os.mkdir(inner, dir_fd=number)
    finally:
        os.close(number)


def _plainly_opened(path: str, make: bool) -> int:
    if make:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkdir(path, 0o700)
    return os.open(path, _flags())


def _flags() -> int:
    return os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _refuse_shared(seen: os.stat_result, place: str, path: str, owners: Chain, last: bool) -> None:
    sticky = seen.st_mode & stat.S_ISVTX and not last
    if seen.st_uid not in owners or (seen.st_mode & 0o022 and not sticky):
        raise Refused(
            "denied",
            "%s can be changed by others than root, so root will not keep a service %s"
            % (place, "there" if place == path else "below it"),
            "a folder below /run or /var/lib serves",
        )


def write_in(folder: int, name: str, text: str, mode: int = 0o644) -> None:
    """Write a file under a new name, then rename it, so that nothing is ever written through a link."""
    new = "%s.%s" % (name, secrets.token_hex(4))
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=folder)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def write_at(folder: str, name: str, text: str, mode: int = 0o644) -> None:
    """See `write_in`: where there are no descriptors of folders, by its path."""
    if system.POSIX:
        number = opened(folder)
        try:
            write_in(number, name, text, mode)
        finally:
            os.close(number)
        return
    path = os.path.join(folder, name)
    new = "%s.%s" % (path, secrets.token_hex(4))
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(new, path)


# The record


def here() -> Dict[str, Any]:
    """This boot and this network: several hosts may keep their record in one file system; and the agent."""
    agent = [os.getpid(), system.started_at(os.getpid())]
    return {"boot_id": lease.boot_id(), "net": private.net_namespace(), "agent": agent}


def agent_lives(about: About) -> bool:
    """True while the agent that made it runs: it takes it back itself."""
    pid, begun = about.get("agent") or (0, None)
    return about.get("boot_id") == lease.boot_id() and bool(pid) and system.started_at(pid) == begun


def noted(about: About) -> None:
    """Root: write down what is about to be made. Kept until `struck`."""
    again = 5
    while True:
        try:
            folder = opened(FOLDER) if os.path.isdir(FOLDER) else opened(FOLDER, make=True)
            try:
                write_in(folder, _name(about["path"]), json.dumps(about), 0o600)
            finally:
                os.close(folder)
            break
        except (FileNotFoundError, Refused) as error:  # another service of this host may just have removed it
            again -= 1
            if not again:
                text = "what is made cannot be written down: %s" % getattr(error, "text", error)
                raise Refused("denied", text, FOLDER) from None
        except OSError as error:
            raise Refused("denied", "%s cannot be written: %s" % (FOLDER, error.strerror), FOLDER) from None


def struck(path: str) -> None:
    """Root: forget a folder that is gone; and the record itself once it is empty. Idempotent."""
    with contextlib.suppress(OSError, Refused):
        folder = opened(FOLDER)
        try:
            os.unlink(_name(path), dir_fd=folder)
        finally:
            os.close(folder)
    for empty in (FOLDER, os.path.dirname(FOLDER)):
        with contextlib.suppress(OSError):
            os.rmdir(empty)


def record(path: str) -> Optional[About]:
    """What root wrote down about a folder; None where it made none of this path."""
    return next((one for one in every() if one["path"] == path), None)


def every() -> Iterator[About]:
    """All records that are sound."""
    try:
        folder = opened(FOLDER)
    except (OSError, Refused):
        return
    try:
        for name in sorted(os.listdir(folder)):
            found = _read(folder, name) if name.endswith(".json") else None
            if found is not None and _name(found["path"]) == name:
                yield found
    finally:
        os.close(folder)


def of_this_host() -> List[About]:
    """Those that are about this host: of another network they may be another host's, whose services work."""
    now = here()
    return [one for one in every() if one.get("boot_id") != now["boot_id"] or one.get("net") == now["net"]]


def _read(folder: int, name: str) -> Optional[About]:
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("path"), str) else None


def _name(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32] + ".json"


# Given back


def given_back(about: About) -> None:
    """Take back what was changed and made on the way to a folder, once that is gone. Idempotent.

    A folder that was opened stays so while another of our services needs it; that one's end closes it.
    """
    if system.user() == 0:
        _data_back(about.get("given") or [])
        needed = {
            one[0] for other in every() if other["path"] != about["path"] for one in other.get("opened", [])
        }
        for path, uid, gid, mode in about.get("opened", []):
            if path not in needed:
                _closed(path, uid, gid, mode)
    for path in reversed(about.get("parents", [])):
        with contextlib.suppress(OSError, Refused):
            if not system.POSIX:
                os.rmdir(path)
                continue
            folder = opened(os.path.dirname(path))
            try:
                os.rmdir(os.path.basename(path), dir_fd=folder)
            finally:
                os.close(folder)


def _closed(path: str, uid: int, gid: int, mode: int) -> None:
    """A folder's group and mode as they were, unless somebody else has changed them since."""
    with contextlib.suppress(OSError, Refused):
        folder = opened(path)
        try:
            seen = os.fstat(folder)
            if seen.st_uid == uid and stat.S_IMODE(seen.st_mode) == mode | 0o010:
                os.fchown(folder, -1, gid)
                os.fchmod(folder, mode)
        finally:
            os.close(folder)


def _data_back(given: List[Any]) -> None:
    """A tree that was root's and was given to a service's user is root's again."""
    if not given:
        return
    path, uid, gid, user = given
    with contextlib.suppress(OSError, Refused):
        handed(path, (user,), uid, gid)


def handed(path: str, owners: Chain, uid: int, gid: int) -> None:
    """Root: a tree, with all in it that belongs to one of `owners`, becomes somebody else's. No link is followed."""
    folder = opened(path, (0, *owners))
    try:
        for _, folders, files, place in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
            for name in folders + files:
                with contextlib.suppress(FileNotFoundError):
                    seen = os.stat(name, dir_fd=place, follow_symlinks=False)
                    # A second name of a file may be anywhere.
                    if seen.st_uid in owners and (stat.S_ISDIR(seen.st_mode) or seen.st_nlink == 1):
                        os.chown(name, uid, gid, dir_fd=place, follow_symlinks=False)
        os.fchown(folder, uid, gid)
    finally:
        os.close(folder)
