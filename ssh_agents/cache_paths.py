"""A folder's files by their paths, for systems that have no descriptors of folders: Windows.

Nothing pins a folder there while it is walked through. So it is looked at again before it is listed and before
each file in it is deleted: it must be the same folder, and no reparse point (a link, a junction, a mounted volume).
That leaves a moment in which whoever may write there could exchange it; nobody lends rights for this: it is done
with those of the user who logs in.
"""

import ntpath
import os
import re
import stat
from typing import Callable, List, Mapping, NamedTuple, Optional, Tuple

from ssh_agents import cache_folder, protocol

REPARSE = 0x400  # FILE_ATTRIBUTE_REPARSE_POINT in winnt.h
DEPTH = 16
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
HOME_SIGNS = ("ntuser.dat", ".ssh", ".gnupg")

Where = Tuple[str, ...]


class Folder(NamedTuple):
    """A folder as it was found: by its path, file system and number there."""

    path: str
    device: int
    number: int


class File(NamedTuple):
    """A plain file in one, at `where` below the root."""

    folder: Folder
    where: Where
    name: str
    length: int


def root(path: str) -> Folder:
    """The cache's folder, after the guard. Refuses with `denied` or `missing`."""
    if os.name == "nt":
        why = guarded(path, os.environ)
        if why:
            raise _refused(path, why)
    else:
        cache_folder.guard(path)
    found = opened(path)
    if found is None:
        if not os.path.lexists(path):
            raise protocol.Refused("missing", "%s: there is no such folder" % path)
        raise _refused(path, "it is a link, or no folder")
    if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path.rstrip("\\/")):
        raise _refused(path, "there is a link in it, or another name for it")
    signs = sorted({name.lower() for name in _names(found)} & set(HOME_SIGNS))
    if signs:
        raise _refused(path, "%s is in it, so it is a home folder" % signs[0])
    return found


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


def opened(path: str) -> Optional[Folder]:
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


def walk(folder: Folder, call: protocol.Call, one: Callable[[File], None], where: Where = ()) -> None:
    """Tell each plain file below the folder, in the order of names; what leads away is passed by."""
    if call.cancelled():
        raise protocol.Refused("cancelled", "the walk through the cache was cancelled")
    for name in _names(folder):
        path = os.path.join(folder.path, name)
        try:
            seen = os.lstat(path)
        except FileNotFoundError:
            continue
        if leads_away(seen) or seen.st_dev != folder.device:
            continue
        if stat.S_ISDIR(seen.st_mode) and len(where) < DEPTH:
            walk(Folder(path, seen.st_dev, seen.st_ino), call, one, (*where, name))
        elif stat.S_ISREG(seen.st_mode):
            one(File(folder, where, name, seen.st_size))


def deleted(file: File) -> bool:
    """Delete it, if its folder is still the one in which it was found; False if it was not there."""
    _refuse_exchanged(file.folder)
    path = os.path.join(file.folder.path, file.name)
    try:
        seen = os.lstat(path)
        if leads_away(seen) or not stat.S_ISREG(seen.st_mode):
            return False
        os.unlink(path)
    except FileNotFoundError:
        return False
    except PermissionError as error:
        raise protocol.Refused("denied", "%s: %s" % (path, error.strerror), "to delete it") from None
    return True


def _names(folder: Folder) -> List[str]:
    _refuse_exchanged(folder)
    try:
        return sorted(os.listdir(folder.path))
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise protocol.Refused("denied", "%s: %s" % (folder.path, error.strerror), "to list it") from None


def _refuse_exchanged(folder: Folder) -> None:
    found = opened(folder.path)
    if found != folder and os.path.lexists(folder.path):
        raise protocol.Refused("denied", "%s was exchanged for something else meanwhile" % folder.path)


def _refused(path: str, why: str) -> protocol.Refused:
    return protocol.Refused("denied", "%r is not taken for a cache: %s" % (path, why), "to open it")
