"""The folder of a cache: opened only where it can be one, and walked through without ever leaving it.

Everything below the root is reached by descriptors of folders, so that no link, however quickly it is put there,
leads out of it; what is mounted below it is not entered, not even if it is the same file system (a bind mount).
Where a system has no such descriptors (Windows), the same is done by paths: see `cache_paths`.
"""

import errno
import os
import re
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple, Union

from ssh_agents import cache_paths, protocol, system

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
STATE_BELOW = (
    *("/run/dbus", "/run/sshd", "/run/systemd", "/run/udev"),
    *("/var/backups", "/var/log", "/var/mail", "/var/spool/anacron", "/var/spool/at", "/var/spool/cron"),
    *("/var/spool/cups", "/var/spool/exim4", "/var/spool/mail", "/var/spool/postfix", "/var/spool/rsyslog"),
    *(
        "/var/lib/" + name
        for name in (
            *(
                "AccountsService",
                "NetworkManager",
                "alternatives",
                "apt",
                "aptitude",
                "containerd",
                "containers",
                "dbus",
            ),
            *("docker", "dpkg", "grub", "ldap", "libvirt", "logrotate", "mysql", "pam"),
            *("pacman", "polkit-1", "postgresql", "rpm", "samba", "snapd", "sss", "sudo"),
            *("systemd", "ucf"),
        )
    ),
)
"""Nothing at or below these is a cache: what a system or its services cannot make again."""
SECRETS = frozenset((".ssh", ".gnupg"))
HOME_SIGNS = frozenset((".ssh", ".gnupg", ".bashrc", ".bash_history", ".profile"))
"""A folder with one of these in it is a home, whoever knows its account."""
HOMES = ("/home", "/Users")

HEAD_PART = 16_384
"""So much of a file is read to tell whose it is."""
DEPTH = 16

Where = Tuple[str, ...]
"""Names of the folders between the root and what is looked at."""
Folder = Union[int, cache_paths.Folder]
"""A folder that is open: a descriptor, or, where systems have none of folders, its path."""
Seen = Callable[[Folder, Where, List[str]], List[str]]
"""Told of a folder: its place below the root, the sorted names in it; answers which to enter."""


def walk(root: Folder, call: protocol.Call, seen: Seen, foreign: Callable[[Where, str], None]) -> None:
    """Go through the folder `root`, depth first.

    `foreign` is told of a name that was to be entered and is no folder of this file system.
    """
    _walked(root, (), place(root), call, seen, foreign)


def place(folder: Folder) -> Tuple[int, str]:
    """File system and mount of an open folder; where the system does not tell mounts, "" for it."""
    if isinstance(folder, cache_paths.Folder):
        return folder.device, ""
    number, told = folder, b""
    try:  # by hand, since this is done for every folder of a cache
        info = os.open("/proc/self/fdinfo/%d" % number, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        pass
    else:
        try:
            told = os.read(info, 4096).partition(b"mnt_id:")[2].partition(b"\n")[0]
        finally:
            os.close(info)
    return os.fstat(number).st_dev, told.strip().decode("ascii")


def _walked(
    folder: Folder,
    where: Where,
    mounted: Tuple[int, str],
    call: protocol.Call,
    seen: Seen,
    foreign: Callable[[Where, str], None],
) -> None:
    if call.cancelled():
        raise protocol.Refused("cancelled", "the walk through the cache was cancelled")
    for name in seen(folder, where, names(folder)):
        if len(where) >= DEPTH:
            foreign(where, name)
            continue
        try:
            with opened(folder, name) as inner:
                if place(inner) == mounted:
                    _walked(inner, (*where, name), mounted, call, seen, foreign)
                    continue
        except FileNotFoundError:
            continue  # emptied and removed meanwhile
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
        foreign(where, name)


def foreign_to(kind: str) -> Callable[[Where, str], None]:
    """A `foreign` that refuses the whole walk: this holds what no such cache makes."""

    def refuse(where: Where, name: str) -> None:
        raise protocol.Refused(
            "denied",
            "this does not look like a cache of %s: it holds %r, which no such cache makes"
            % (kind, "/".join((*where, name))),
            "to walk through it",
        )

    return refuse


def by_descriptor() -> bool:
    """Whether this system can go through folders by descriptors, without following links."""
    return os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


@contextmanager
def root(args: Dict[str, Any]) -> Iterator[Folder]:
    """The cache's `folder`, opened after the guard. Foreign errors become refusals here."""
    path = protocol.need(args, "folder", str)
    if os.sep == "/":
        guard(path)
    folder: Optional[Folder] = None
    try:
        folder = _opened_root(path) if by_descriptor() else cache_paths.root(path)
        yield folder
    except PermissionError as error:
        raise protocol.Refused("denied", "%s: %s" % (path, error), "to walk through the cache") from None
    finally:
        if isinstance(folder, int):
            os.close(folder)


@contextmanager
def opened(folder: Folder, name: str) -> Iterator[Folder]:
    """A folder inside of another; never through a link."""
    if isinstance(folder, cache_paths.Folder):
        yield cache_paths.opened(folder, name)
        return
    number = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield number
    finally:
        os.close(number)


def names(folder: Folder) -> List[str]:
    """What is in a folder, sorted."""
    return cache_paths.names(folder) if isinstance(folder, cache_paths.Folder) else sorted(os.listdir(folder))


def looked(folder: Folder, name: str) -> Optional[os.stat_result]:
    """What is there under this name, a link itself; None for nothing."""
    if isinstance(folder, cache_paths.Folder):
        return cache_paths.looked(folder, name)
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def size(folder: Folder, name: str) -> Optional[int]:
    """Bytes of a plain file; None for anything else."""
    try:
        seen = looked(folder, name)
    except OSError:
        return None
    return seen.st_size if seen is not None and cache_paths.plain(seen) else None


def owner(folder: Folder, name: str) -> Optional[int]:
    """Whose a file or folder is, itself and not what a link leads to; None where there is none."""
    try:
        seen = looked(folder, name)
    except OSError:
        return None
    return None if seen is None else seen.st_uid


def refuse_others(folder: Folder, name: str, of: Optional[int]) -> None:
    """As root, refuse what does not belong to the user whose header names it.

    In a shared folder anybody may lay a header beside a file that only its owner could delete.
    """
    found = owner(folder, name) if system.user() == 0 else None
    if found is not None and found != of:
        raise protocol.Refused(
            "denied",
            "%r belongs to user %d, and the header that names it to another: root deletes only objects that are of"
            " one owner" % (name, found),
            "to walk through the cache",
        )


def head(folder: Folder, name: str) -> bytes:
    """The first bytes of a file; empty where it cannot be opened, or is a link."""
    if isinstance(folder, cache_paths.Folder):
        return cache_paths.head(folder, name, HEAD_PART)
    try:
        number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return b""
    try:
        return os.read(number, HEAD_PART)
    finally:
        os.close(number)


def unlinked(folder: Folder, name: str) -> bool:
    """Delete a file; False if it was not there."""
    if isinstance(folder, cache_paths.Folder):
        return cache_paths.unlinked(folder, name)
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


def removed(folder: Folder, name: str) -> None:
    """Remove an empty folder inside of another. Raises OSError."""
    if isinstance(folder, cache_paths.Folder):
        cache_paths.removed(folder, name)
    else:
        os.rmdir(name, dir_fd=folder)


def _opened_root(path: str) -> int:
    try:
        number = _descended(path)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise cache_paths.refused(path, "there is a link in it, or it is no folder") from None
        raise protocol.Refused(
            "missing" if missing else "denied", "%s: %s" % (path, error.strerror)
        ) from None
    try:
        signs = sorted(HOME_SIGNS & set(os.listdir(number)))
        if signs:
            raise cache_paths.refused(path, "%s is in it, so it is a home folder" % signs[0])
    except BaseException:
        os.close(number)
        raise
    return number


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


def guard(path: str, what: str = "a cache") -> None:
    """Refuse a folder that can be no cache, or nothing else that BranchLab makes, by its place."""
    if not path.startswith("/") or "\0" in path or os.path.normpath(path) != path.rstrip("/") or path == "//":
        raise cache_paths.refused(path, "it must be an absolute path without '.' or '..'", what)
    path = path.rstrip("/")
    if path in FORBIDDEN or path.count("/") < 2:
        raise cache_paths.refused(path, "it is a folder of the system", what)
    if any((path + "/").startswith(above + "/") for above in FORBIDDEN_BELOW + STATE_BELOW):
        raise cache_paths.refused(path, "it is a folder of the system", what)
    if SECRETS & set(path.split("/")):
        raise cache_paths.refused(path, "it is below a folder of keys", what)
    if os.path.dirname(path) in HOMES:
        raise cache_paths.refused(path, "it is a home folder", what)
    if any(home == path or home.startswith(path + "/") for home in _homes()):
        raise cache_paths.refused(path, "it is a home folder, or holds one", what)
    mounted = mount_points(_text("/proc/self/mountinfo"))
    if os.path.ismount(path) or path in mounted:
        raise cache_paths.refused(path, "it is the root of a mounted file system", what)
    below = sorted(point for point in mounted if point.startswith(path + "/"))
    if below:
        raise cache_paths.refused(path, "something else is mounted in it, at %s" % below[0], what)


def _homes() -> List[str]:
    homes = [os.path.expanduser("~"), os.environ.get("HOME", "")]
    try:
        import pwd
    except ImportError:
        pass
    else:
        homes += [entry.pw_dir for entry in pwd.getpwall() if not _of_a_program(entry.pw_uid, entry.pw_shell)]
    return [home.rstrip("/") for home in homes if home.startswith("/") and home != "/"]


def _of_a_program(uid: int, shell: str) -> bool:
    """True for an account that nobody logs in to: its home may be a cache, as squid's is on Fedora."""
    return 0 < uid < 1000 and os.path.basename(shell) in ("nologin", "false")


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
