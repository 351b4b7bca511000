"""A cache's folders and files by their paths, for systems that have no descriptors of folders: Windows.

Nothing pins a folder there while it is walked through. So it is looked at again before it is listed and before
each file in it is deleted: it must be the same folder, and no reparse point (a link, a junction, a mounted volume).
That leaves a moment in which whoever may write there could exchange it; nobody lends rights for this: it is done
with those of the user who logs in.
"""

import errno
import ntpath
import os
import re
import stat
from typing import List, Mapping, NamedTuple, Optional

from ssh_agents import protocol

REPARSE = 0x400  # FILE_ATTRIBUTE_REPARSE_POINT in winnt.h
SYSTEM = (
    "windows",
    "program files",
    "program files (x86)",
    "perflogs",
    "recovery",
    "$recycle.bin",
    "boot",
    "efi",
)
"""Nothing at or below these, on any drive, is a cache; nor anything below `System Volume Information`."""
THEMSELVES = ("users", "programdata", "inetpub", "temp", "tmp")
"""Never a cache themselves."""
BELOW_HOME = (
    "appdata",
    "appdata\\local",
    "appdata\\locallow",
    "appdata\\roaming",
    "desktop",
    "documents",
    "downloads",
)
HOME_SIGNS = ("ntuser.dat", ".ssh", ".gnupg", ".bashrc", ".bash_history", ".profile")
_TFS_PROXY = re.compile(r"program files( \(x86\))?\\([^\\]+\\)+version ?control ?proxy\\.+")
"""Where TFS Proxy keeps its cache if nobody moves it (CacheRoot in the Proxy.config of 2005 and later): below the
system's folder of programs, and nevertheless a cache."""


class Folder(NamedTuple):
    """A folder as it was found: by its path, file system and number there."""

    path: str
    device: int
    number: int


def root(path: str) -> Folder:
    """The cache's folder, after the guard. Refuses with `denied` or `missing`."""
    if os.sep == "\\":  # elsewhere the caller has a guard of its own
        guard(path)
    found = _at(path)
    if found is None:
        if not os.path.lexists(path):
            raise protocol.Refused("missing", "%s: there is no such folder" % path)
        raise refused(path, "it is a link, or no folder")
    if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path.rstrip("\\/")):
        raise refused(path, "there is a link in it, or another name for it")
    signs = sorted({name.lower() for name in names(found)} & set(HOME_SIGNS))
    if signs:
        raise refused(path, "%s is in it, so it is a home folder" % signs[0])
    return found


def guard(path: str, what: str = "a cache") -> None:
    """Refuse a folder of Windows that can be no cache, or nothing else that BranchLab makes, by its place."""
    why = guarded(path, os.environ)
    if why:
        raise refused(path, why, what)


def guarded(path: str, environment: Mapping[str, str]) -> str:
    """Why a folder of Windows can be no cache by its place; empty where it can."""
    drive, rest = ntpath.splitdrive(path)
    parts = [part for part in rest.lower().split("\\") if part]
    if not re.fullmatch("[A-Za-z]:", drive) or not rest.startswith("\\") or "/" in path:
        return "it must be an absolute path on a drive, such as D:\\Cache"
    if ntpath.normpath(path) != path.rstrip("\\") or any(sign in rest for sign in ':*?"<>|\0'):
        return "it must be an absolute path without '.', '..' and signs that no name has"
    if any(re.search(r"~\d|[. ]$", part) for part in parts):
        return "a short name, or one that ends in a dot or a space, may be another folder"
    if not parts or (len(parts) == 1 and parts[0] in THEMSELVES):
        return "it is a folder of the system"
    if _TFS_PROXY.fullmatch("\\".join(parts)):
        return ""
    if parts[0] in (*SYSTEM, "system volume information") or parts[:2] == ["programdata", "microsoft"]:
        return "it is a folder of the system"
    if {".ssh", ".gnupg"} & set(parts):
        return "it is below a folder of keys"
    if parts[0] == "users" and (len(parts) == 2 or "\\".join(parts[2:]) in BELOW_HOME):
        return "it is a home folder, or one that a system makes there"
    return _held(ntpath.normcase(path.rstrip("\\")), environment)


def _held(path: str, environment: Mapping[str, str]) -> str:
    """Why it is none by what this very system has elsewhere than others."""
    for name in ("SystemRoot", "ProgramFiles", "ProgramFiles(x86)", "ProgramW6432"):
        place = ntpath.normcase(environment.get(name, "")).rstrip("\\")
        if place and (path == place or path.startswith(place + "\\") or place.startswith(path + "\\")):
            return "it is a folder of the system"
    for name in ("USERPROFILE", "PUBLIC", "ALLUSERSPROFILE", "APPDATA", "LOCALAPPDATA"):
        place = ntpath.normcase(environment.get(name, "")).rstrip("\\")
        if place and (path == place or place.startswith(path + "\\")):
            return "it is a home folder, or holds one"
    return ""


def _at(path: str) -> Optional[Folder]:
    """The folder at this path; None for anything else, and for a reparse point."""
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    if leads_away(seen) or not stat.S_ISDIR(seen.st_mode):
        return None
    return Folder(path, seen.st_dev, seen.st_ino)


def leads_away(seen: os.stat_result) -> bool:
    """True for a link, a junction, a mounted volume, and whatever else a reparse point is."""
    return stat.S_ISLNK(seen.st_mode) or bool(getattr(seen, "st_file_attributes", 0) & REPARSE)


def opened(folder: Folder, name: str) -> Folder:
    """A folder inside of another. Raises FileNotFoundError, and NotADirectoryError for what leads away too."""
    path = os.path.join(folder.path, name)
    found = _at(path)
    if found is None:
        missing = not os.path.lexists(path)
        raise OSError(errno.ENOENT if missing else errno.ENOTDIR, "no folder", path)
    return found


def names(folder: Folder) -> List[str]:
    """What is in it, sorted; nothing if it went meanwhile."""
    _refuse_exchanged(folder)
    try:
        return sorted(os.listdir(folder.path))
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise protocol.Refused("denied", "%s: %s" % (folder.path, error.strerror), "to list it") from None


def plain(seen: os.stat_result) -> bool:
    """True for a file that is nothing else."""
    return stat.S_ISREG(seen.st_mode) and not leads_away(seen)


def looked(folder: Folder, name: str) -> Optional[os.stat_result]:
    """What is there under this name, a link itself; None for nothing."""
    try:
        return os.lstat(os.path.join(folder.path, name))
    except FileNotFoundError:
        return None


def head(folder: Folder, name: str, length: int) -> bytes:
    """The first bytes of a plain file; empty where it cannot be opened."""
    try:
        seen = looked(folder, name)
        if seen is None or not plain(seen):
            return b""
        number = os.open(os.path.join(folder.path, name), os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""
    try:
        return os.read(number, length)
    finally:
        os.close(number)


def unlinked(folder: Folder, name: str) -> bool:
    """Delete a file, if its folder is still the one in which it was found; False if it was not there."""
    _refuse_exchanged(folder)
    seen = looked(folder, name)
    if seen is None or not plain(seen):
        return False
    path = os.path.join(folder.path, name)
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except PermissionError as error:  # there, also of a file that some program has open
        raise protocol.Refused("denied", "%s: %s" % (path, error.strerror), "to delete it") from None
    return True


def removed(folder: Folder, name: str) -> None:
    """Remove an empty folder inside of another. Raises OSError."""
    opened(folder, name)  # not through a junction
    os.rmdir(os.path.join(folder.path, name))


def _refuse_exchanged(folder: Folder) -> None:
    found = _at(folder.path)
    if found != folder and os.path.lexists(folder.path):
        raise protocol.Refused("denied", "%s was exchanged for something else meanwhile" % folder.path)


def refused(path: str, why: str, what: str = "a cache") -> protocol.Refused:
    """Of a folder that is none by its place, or by what it is."""
    return protocol.Refused("denied", "%r is not taken for %s: %s" % (path, what, why), "to open it")
