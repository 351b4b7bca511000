"""Kind `apache-disk`: mod_cache_disk of Apache 2.4.

What is known of its files is from httpd's modules/cache/cache_disk_common.h (the head of a `.header` file),
mod_cache_disk.c (two formats, names) and cache_util.c (the alphabet of hashed names, and the key, which is the
URL with its port and a question mark).
"""

import re
import struct
from typing import Any, Callable, Dict, List, Optional, Tuple

from ssh_agents import cache_folder, protocol
from ssh_agents.cache_folder import DEPTH, HEAD_PART, Folder, Where

PLAIN = 6  # DISK_FORMAT_VERSION in cache_disk_common.h; the other format only names variants
HEAD = struct.Struct("@IiN")  # format, status, name_len: the first members of disk_cache_info_t
HASHED = re.compile(r"[A-Za-z0-9_@]+")
TEMPORARY = re.compile(r"aptmp[A-Za-z0-9]{6}")  # AP_TEMPFILE: an object that is being written

Found = Callable[[Folder, str, str, int, int], None]
"""Told of an object: its folder, its header's name, URL, bytes and files."""


def listed(args: Dict[str, Any], call: protocol.Call, tell: Callable[[str, int, int], None]) -> int:
    """Tell each object: URL, bytes and files. Half-written ones are passed over. Returns 0: all are read."""
    with cache_folder.root(args) as root:
        _Walk(root, lambda folder, name, url, length, files: tell(url, length, files), call).run()
    return 0


def purged(
    args: Dict[str, Any], call: protocol.Call, wanted: Optional[List[str]], tell: Callable[[str, int], None]
) -> None:
    """Delete the objects of these URLs, or all (None), and tell each: URL and bytes."""
    urls = None if wanted is None else set(wanted)

    def found(folder: Folder, name: str, url: str, length: int, files: int) -> None:
        if (urls is None or url in urls) and _removed(folder, name):
            tell(url, length)

    with cache_folder.root(args) as root:
        _Walk(root, found, call).run()


def named(head: bytes) -> Optional[str]:
    """The URL in the first bytes of a `.header` file; None if it names variants, or is no such file."""
    if len(head) < HEAD.size:
        return None
    kind, _, length = HEAD.unpack_from(head)
    if kind != PLAIN or not 0 < length < HEAD_PART:
        return None
    # The name follows the structure, whose length depends on the build; nothing before it can look like one.
    scheme_end = head.find(b"://", HEAD.size, 400)
    begin = head.rfind(b"http", HEAD.size, scheme_end)
    name = head[begin : begin + length]
    if scheme_end < 0 or begin < 0 or len(name) < length or b"\0" in name:
        return None
    return name.decode("utf-8", "backslashreplace")


class _Walk:
    """Every object below a cache's root."""

    def __init__(self, root: Folder, found: Found, call: protocol.Call) -> None:
        self._root, self._found, self._call = root, found, call
        self._mounted = cache_folder.place(root)
        self._foreign = cache_folder.foreign_to("Apache")

    def run(self) -> None:
        """Tell of each object. Refuses with `denied` at the first name that such a cache does not make."""
        cache_folder.walk(self._root, self._call, self._folder, self._foreign)

    def _folder(self, folder: Folder, where: Where, names: List[str]) -> List[str]:
        inner = []
        for name in names:
            if name.endswith(".header"):
                self._checked(name[:-7], where, name)
                self._object(folder, name)
            elif name.endswith((".header.vary", ".data")):
                stem = name[:-12] if name.endswith(".vary") else name[:-5]
                self._checked(stem, where, name)
            elif HASHED.fullmatch(name) and not TEMPORARY.fullmatch(name):
                inner.append(name)
            elif not TEMPORARY.fullmatch(name) and not name.startswith(".branchlab"):
                self._foreign(where, name)
        return inner

    def _object(self, folder: Folder, name: str) -> None:
        length = cache_folder.size(folder, name)
        if length is None:
            return
        url = named(cache_folder.head(folder, name))
        files = 1
        of = cache_folder.owner(folder, name)
        if of is None:
            return  # gone meanwhile
        for other in (name[:-7] + ".data", name + ".vary"):
            cache_folder.refuse_others(folder, other, of)
        if url is None:
            url, more, count = _variants(folder, name + ".vary", self._mounted, of)
        else:
            data = cache_folder.size(folder, name[:-7] + ".data")
            more, count = data or 0, 0 if data is None else 1
        if url is not None:
            self._found(folder, name, url, length + more, files + count)

    def _checked(self, stem: str, where: Where, name: str) -> None:
        if not HASHED.fullmatch(stem):
            self._foreign(where, name)


def _variants(
    folder: Folder, name: str, mounted: Tuple[int, str], of: Optional[int], depth: int = 0
) -> Tuple[Optional[str], int, int]:
    """URL, bytes and files of a folder of variants; no URL if none is whole."""
    url: Optional[str] = None
    size = files = 0
    try:
        with cache_folder.opened(folder, name) as inner:
            if cache_folder.place(inner) != mounted:
                return None, 0, 0
            for entry in cache_folder.names(inner):
                cache_folder.refuse_others(inner, entry, of)
                if entry.endswith((".header", ".data")):
                    length = cache_folder.size(inner, entry)
                    if length is not None:
                        size, files = size + length, files + 1
                    if url is None and entry.endswith(".header"):
                        url = named(cache_folder.head(inner, entry))
                elif HASHED.fullmatch(entry) and depth < DEPTH:
                    deeper, length, count = _variants(inner, entry, mounted, of, depth + 1)
                    url, size, files = url or deeper, size + length, files + count
    except OSError:
        pass  # gone, or no folder at all
    return url, size, files


def _removed(folder: Folder, name: str) -> bool:
    """Delete an object by its header's name: header first, so that it is never found without its data."""
    found = cache_folder.unlinked(folder, name)
    found = cache_folder.unlinked(folder, name[:-7] + ".data") or found
    return _emptied(folder, name + ".vary") or found


def _emptied(folder: Folder, name: str, depth: int = 0) -> bool:
    """Delete a folder of variants; what is no variant's stays, and so does its folder."""
    found = False
    try:
        with cache_folder.opened(folder, name) as inner:
            if cache_folder.place(inner) != cache_folder.place(folder):
                return False
            for entry in cache_folder.names(inner):
                if entry.endswith((".header", ".data")):
                    found = cache_folder.unlinked(inner, entry) or found
                elif HASHED.fullmatch(entry) and depth < DEPTH:
                    found = _emptied(inner, entry, depth + 1) or found
        cache_folder.removed(folder, name)
    except OSError:
        pass  # none there, or a variant was written meanwhile
    return found
