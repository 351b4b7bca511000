"""Kind `folder`: any tree whose files are objects, as TFS Proxy and Perforce's p4p keep them.

An object is one plain file, named by its path below the root. Nothing in such a tree tells whose it is, so it is
purged only where the profile says that the whole folder may go (`owns`) and somebody has said so in the folder too
(`MAY`): a profile may be another's, and a folder of documents is as good a tree. Links and other file systems are
passed by.
"""

import os
import stat
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Set

from ssh_agents import cache_folder, cache_paths, protocol
from ssh_agents.cache_folder import Folder, Where

MAY = ".branchlab-may-purge"
"""A file of this name in a folder says that all in it may be purged."""


def listed(args: Dict[str, Any], call: protocol.Call, tell: Callable[[str, int, int], None]) -> int:
    """Tell each file: its path below the root, its bytes, 1. Returns 0: all are read."""
    _walked(args, call, lambda path, length, delete: tell(path, length, 1))
    return 0


def purged(
    args: Dict[str, Any], call: protocol.Call, wanted: Optional[List[str]], tell: Callable[[str, int], None]
) -> None:
    """Delete the files of these paths, or all (None), and tell each. Folders stay."""
    paths: Optional[Set[str]] = None if wanted is None else set(wanted)

    def one(path: str, length: int, delete: Callable[[], bool]) -> None:
        if (paths is None or path in paths) and delete():
            tell(path, length)

    _walked(args, call, one)


def path_of(where: Where, name: str) -> str:
    """A file's path as text: bytes that are no text, and backslashes, are escaped."""
    raw = os.fsencode("/".join((*where, name))).replace(b"\\", b"\\\\")
    return raw.decode("utf-8", "backslashreplace")


One = Callable[[str, int, Callable[[], bool]], None]
"""Told of a file: its path, its bytes, and how it is deleted."""


def _walked(args: Dict[str, Any], call: protocol.Call, one: One) -> None:
    if not protocol.need(args, "owns", bool, False):
        raise protocol.Refused(
            "bad-request", "a cache of this kind is looked at only where owns says that all in it may go"
        )

    def seen(folder: Folder, where: Where, names: List[str]) -> List[str]:
        inner = []
        for name in names:
            found = cache_folder.looked(folder, name)
            if found is None:
                continue
            if stat.S_ISDIR(found.st_mode):
                inner.append(name)
            elif cache_paths.plain(found) and not name.startswith(".branchlab"):
                delete = partial(cache_folder.unlinked, folder, name)
                one(path_of(where, name), found.st_size, delete)
        return inner

    with cache_folder.root(args) as root:
        if cache_folder.size(root, MAY) is None:
            text = (
                "nothing in %s says that its files may be deleted: make a file %s in it if all of them may go"
            )
            raise protocol.Refused("denied", text % (args["folder"], MAY), "to look for the file")
        cache_folder.walk(root, call, seen, lambda where, name: None)
