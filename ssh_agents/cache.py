"""A proxy's cache on disk: its objects listed, and purged without ever leaving its folder.

Kind `apache-disk` is mod_cache_disk of Apache 2.4; what is known of its files is from httpd's
modules/cache/cache_disk_common.h (the head of a `.header` file), mod_cache_disk.c (two formats, names) and
cache_util.c (the alphabet of hashed names, and the key, which is the URL with its port and a question mark).
"""

import errno
import os
import re
import stat
import struct
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from ssh_agents import protocol

PORTION = 500
PORTION_BYTES = 200_000
"""A portion of a listing is at most so many objects, and about so many bytes of URLs."""

FORBIDDEN = frozenset(
    (
        *("/", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp", "/var", "/var/cache"),  # noqa: S108
        *("/var/lib", "/var/lock", "/var/log", "/var/mail", "/var/run", "/var/spool", "/var/www"),
        *(
            "/var/tmp",  # noqa: S108
            "/run/user",
            "/run/lock",
            "/private/tmp",
            "/private/var",
        ),
    )
)
"""Never a cache themselves; a folder below them may be one."""
FORBIDDEN_BELOW = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr"),
    *("/Applications", "/Library", "/System"),
)
"""Nothing at or below these is a cache."""

PLAIN = 6  # DISK_FORMAT_VERSION in cache_disk_common.h; the other format only names variants
HEAD = struct.Struct("@IiN")  # format, status, name_len: the first members of disk_cache_info_t
HEAD_PART = 16_384
HASHED = re.compile(r"[A-Za-z0-9_@]+")
TEMPORARY = re.compile(r"aptmp[A-Za-z0-9]{6}")  # AP_TEMPFILE: an object that is being written
DEPTH = 16

Found = Callable[[int, str, str, int, int], None]
"""Told of an object: the descriptor of its folder, its header's name, URL, bytes and files."""


def listed(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `cache.list`: events `objects` with up to 500 each; the last word counts objects and bytes.

    An object is one URL with all its variants: `url`, `key` (path and query alone), `bytes` and `files`.
    Objects that come or go meanwhile may be missing or told; half-written ones are passed over.
    """
    portion: List[Dict[str, Any]] = []
    total = {"objects": 0, "bytes": 0}
    size = 0

    def found(folder: int, name: str, url: str, length: int, files: int) -> None:
        nonlocal size
        portion.append({"url": url, "key": key(url), "bytes": length, "files": files})
        total["objects"] += 1
        total["bytes"] += length
        size += 2 * len(url)
        if len(portion) >= PORTION or size > PORTION_BYTES:
            call.say("objects", {"objects": portion[:]})
            portion.clear()
            size = 0

    with _root(args) as root:
        _Walk(root, found, call).run()
    if portion:
        call.say("objects", {"objects": portion})
    return total


def purged(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `cache.purge`: take out the objects with these `urls`, or `all` of them, with all their variants.

    Returns `removed` (objects), their `bytes`, and `already_gone`: asked URLs that were not there. Refuses
    before anything is touched where the folder holds a file that this kind of cache does not make.
    """
    everything = protocol.need(args, "all", bool, False)
    urls = set(protocol.need_strings(args, "urls", []))
    if everything == bool(urls) and (everything or "urls" not in args):
        raise protocol.Refused("bad-request", "either urls or all must be given")
    seen: Set[str] = set()
    total = {"removed": 0, "bytes": 0}

    def found(folder: int, name: str, url: str, length: int, files: int) -> None:
        if (everything or url in urls) and _removed(folder, name):
            seen.add(url)
            total["removed"] += 1
            total["bytes"] += length

    with _root(args) as root:
        _Walk(root, None, call).run()  # refuses foreign files before the first is deleted
        _Walk(root, found, call, orphans=everything).run()
    return dict(total, already_gone=0 if everything else len(urls - seen))


def key(url: str) -> str:
    """Path and query of a URL as this cache names it: the same for every host, scheme and port."""
    rest = url.partition("://")[2]
    path = rest[rest.find("/") :] if "/" in rest else "/"
    return path[:-1] if path.endswith("?") else path


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
    """Every object below a cache's root, folder by folder; links and other file systems are never entered."""

    def __init__(self, root: int, found: Optional[Found], call: protocol.Call, orphans: bool = False) -> None:
        self._root, self._found, self._call, self._orphans = root, found, call, orphans
        self._device = os.fstat(root).st_dev

    def run(self) -> None:
        """Tell of each object. Refuses with `denied` at the first name that such a cache does not make."""
        self._folder(self._root, "", 0)

    def _folder(self, folder: int, where: str, depth: int) -> None:
        if self._call.cancelled():
            raise protocol.Refused("cancelled", "the walk through the cache was cancelled")
        names = set(os.listdir(folder))
        for name in sorted(names):
            if name.endswith(".header"):
                self._checked(name[:-7], where, name)
                self._object(folder, name)
            elif name.endswith((".header.vary", ".data")):
                stem = name[:-12] if name.endswith(".vary") else name[:-5]
                self._checked(stem, where, name)
                if self._orphans and stem + ".header" not in names:
                    _removed(folder, stem + ".header")
            elif HASHED.fullmatch(name) and depth < DEPTH and not TEMPORARY.fullmatch(name):
                self._enter(folder, name, where, depth)
            elif not TEMPORARY.fullmatch(name) and not name.startswith(".branchlab"):
                self._foreign(where, name)

    def _enter(self, folder: int, name: str, where: str, depth: int) -> None:
        try:
            with _opened(folder, name) as inner:
                if os.fstat(inner).st_dev != self._device:
                    self._foreign(where, name)
                self._folder(inner, where + name + "/", depth + 1)
        except FileNotFoundError:
            pass  # emptied and removed meanwhile
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            self._foreign(where, name)

    def _object(self, folder: int, name: str) -> None:
        length = None if self._found is None else _size(folder, name)
        if length is None or self._found is None:
            return
        url = named(_head(folder, name))
        files = 1
        if url is None:
            url, more, count = _variants(folder, name + ".vary", self._device)
        else:
            data = _size(folder, name[:-7] + ".data")
            more, count = data or 0, 0 if data is None else 1
        if url is not None:
            self._found(folder, name, url, length + more, files + count)

    def _checked(self, stem: str, where: str, name: str) -> None:
        if not HASHED.fullmatch(stem):
            self._foreign(where, name)

    def _foreign(self, where: str, name: str) -> None:
        raise protocol.Refused(
            "denied",
            "this does not look like a cache of Apache: it holds %r, which no such cache makes"
            % (where + name),
            "to walk through it",
        )


def _variants(folder: int, name: str, device: int, depth: int = 0) -> Tuple[Optional[str], int, int]:
    """URL, bytes and files of a folder of variants; no URL if none is whole."""
    url: Optional[str] = None
    size = files = 0
    try:
        with _opened(folder, name) as inner:
            if os.fstat(inner).st_dev != device:
                return None, 0, 0
            for entry in sorted(os.listdir(inner)):
                if entry.endswith((".header", ".data")):
                    length = _size(inner, entry)
                    if length is not None:
                        size, files = size + length, files + 1
                    if url is None and entry.endswith(".header"):
                        url = named(_head(inner, entry))
                elif HASHED.fullmatch(entry) and depth < DEPTH:
                    deeper, length, count = _variants(inner, entry, device, depth + 1)
                    url, size, files = url or deeper, size + length, files + count
    except OSError:
        pass  # gone, or no folder at all
    return url, size, files


def _removed(folder: int, name: str) -> bool:
    """Delete an object by its header's name: header first, so that it is never found without its data."""
    found = _unlinked(folder, name)
    found = _unlinked(folder, name[:-7] + ".data") or found
    return _emptied(folder, name + ".vary") or found


def _unlinked(folder: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    except IsADirectoryError:
        return False
    except PermissionError as error:
        raise protocol.Refused(
            "denied", "%s: %s" % (name, error.strerror), "to delete it from the cache"
        ) from None
    return True


def _emptied(folder: int, name: str, depth: int = 0) -> bool:
    """Delete a folder of variants; what is no variant's stays, and so does its folder."""
    found = False
    try:
        with _opened(folder, name) as inner:
            if os.fstat(inner).st_dev != os.fstat(folder).st_dev:
                return False
            for entry in os.listdir(inner):
                if entry.endswith((".header", ".data")):
                    found = _unlinked(inner, entry) or found
                elif HASHED.fullmatch(entry) and depth < DEPTH:
                    found = _emptied(inner, entry, depth + 1) or found
        os.rmdir(name, dir_fd=folder)
    except OSError:
        pass  # none there, or a variant was written meanwhile
    return found


def _size(folder: int, name: str) -> Optional[int]:
    try:
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    return seen.st_size if stat.S_ISREG(seen.st_mode) else None


def _head(folder: int, name: str) -> bytes:
    try:
        number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return b""
    try:
        return os.read(number, HEAD_PART)
    finally:
        os.close(number)


@contextmanager
def _opened(folder: int, name: str) -> Iterator[int]:
    number = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield number
    finally:
        os.close(number)


@contextmanager
def _root(args: Dict[str, Any]) -> Iterator[int]:
    """The cache's folder as a descriptor, after the guard. Foreign errors become refusals here."""
    kind, path = protocol.need(args, "kind", str), protocol.need(args, "folder", str)
    if kind != "apache-disk":
        raise protocol.Refused("bad-request", "no such kind of cache: %r; known is apache-disk" % kind)
    if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        raise protocol.Refused(
            "unsupported", "this system cannot walk through folders without following links"
        )
    _guard(path)
    try:
        number = _descended(path)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise _refused(path, "there is a link in it, or it is no folder") from None
        raise protocol.Refused(
            "missing" if missing else "denied", "%s: %s" % (path, error.strerror)
        ) from None
    try:
        yield number
    except PermissionError as error:
        raise protocol.Refused("denied", "%s: %s" % (path, error), "to walk through the cache") from None
    finally:
        os.close(number)


def _descended(path: str) -> int:
    """Open `path` part by part, following no link on the way."""
    number = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in path.strip("/").split("/"):
        try:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=number)
        finally:
            os.close(number)
        number = inner
    return number


def _guard(path: str) -> None:
    """Refuse a folder that can be no cache by its place."""
    if not path.startswith("/") or "\0" in path or os.path.normpath(path) != path.rstrip("/") or path == "//":
        raise _refused(path, "it must be an absolute path without '.' or '..'")
    path = path.rstrip("/")
    if path in FORBIDDEN or path.count("/") < 2:
        raise _refused(path, "it is a folder of the system")
    if any((path + "/").startswith(above + "/") for above in FORBIDDEN_BELOW):
        raise _refused(path, "it is a folder of the system")
    if any(home == path or home.startswith(path + "/") for home in _homes()):
        raise _refused(path, "it is a home folder, or holds one")
    if os.path.ismount(path) or path in mount_points(_text("/proc/self/mountinfo")):
        raise _refused(path, "it is the root of a mounted file system")


def _refused(path: str, why: str) -> protocol.Refused:
    return protocol.Refused("denied", "%r is not taken for a cache: %s" % (path, why), "to open it")


def _homes() -> List[str]:
    homes = [os.path.expanduser("~"), os.environ.get("HOME", "")]
    try:
        import pwd
    except ImportError:
        pass
    else:
        homes += [entry.pw_dir for entry in pwd.getpwall()]
    return [home.rstrip("/") for home in homes if home.startswith("/") and home != "/"]


def mount_points(text: str) -> Set[str]:
    """The places where file systems are mounted, from the text of /proc/self/mountinfo."""
    found = set()
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) > 4:
            found.add(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code.group(1), 8)), words[4]))
    return found


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
