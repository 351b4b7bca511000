"""Kind `folder`: any tree whose files are objects, as TFS Proxy and Perforce's p4p keep them.

An object is one plain file, named by its path below the root. Nothing in such a tree tells whose it is, so it is
purged only where the profile says that the whole folder may go (`owns`); and by root, whom no system keeps from
anything, only where somebody has said so in the folder too (`MAY`). Links and other file systems are passed by.
"""

import os
import stat
from typing import Any, Callable, Dict, List, Optional, Set

from ssh_agents import cache_folder, protocol, system
from ssh_agents.cache_folder import Where

MAY = ".branchlab-may-purge"
"""A file of this name in a folder says that root may purge it."""


def listed(args: Dict[str, Any], call: protocol.Call, tell: Callable[[str, int, int], None]) -> int:
    """Tell each file: its path below the root, its bytes, 1. Returns 0: all are read."""
    _walked(args, call, lambda folder, name, path, length: tell(path, length, 1))
    return 0


def purged(
    args: Dict[str, Any], call: protocol.Call, wanted: Optional[List[str]], tell: Callable[[str, int], None]
) -> None:
    """Delete the files of these paths, or all (None), and tell each. Folders stay."""
    paths: Optional[Set[str]] = None if wanted is None else set(wanted)

    def one(folder: int, name: str, path: str, length: int) -> None:
        if (paths is None or path in paths) and cache_folder.unlinked(folder, name):
            tell(path, length)

    _walked(args, call, one)


def path_of(where: Where, name: str) -> str:
    """A file's path as text: bytes that are no text, and backslashes, are escaped."""
    raw = os.fsencode("/".join((*where, name))).replace(b"\\", b"\\\\")
    return raw.decode("utf-8", "backslashreplace")


def _walked(args: Dict[str, Any], call: protocol.Call, one: Callable[[int, str, str, int], None]) -> None:
    if not protocol.need(args, "owns", bool, False):
        raise protocol.Refused(
            "bad-request", "a cache of this kind is looked at only where owns says that all in it may go"
        )

    def seen(folder: int, where: Where, names: List[str]) -> List[str]:
        inner = []
        for name in names:
            try:
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(found.st_mode):
                inner.append(name)
            elif stat.S_ISREG(found.st_mode) and not name.startswith(".branchlab"):
                one(folder, name, path_of(where, name), found.st_size)
        return inner

    with cache_folder.root(args) as root:
        if system.user() == 0 and cache_folder.size(root, MAY) is None:
            raise protocol.Refused(
                "denied",
                "as root any folder could be emptied: make a file %s in %s if all in it may go, or log in as its owner"
                % (MAY, args["folder"]),
                "to look for the file",
            )
        cache_folder.walk(root, call, seen, lambda where, name: None)
