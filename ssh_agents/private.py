"""The folder on a host where a session keeps what only it may read: leases, sockets. Root-only under root."""

import os
import socket
import stat
import struct
from typing import List, Optional

from ssh_agents import protocol, system

_SO_NETNS_COOKIE = 71


def net_namespace() -> Optional[str]:
    """Which network this process sees, as a short word; None where the system has no such thing.

    Several hosts of an embedded lab share one file system, so what is kept names its network.
    """
    try:
        found = os.stat("/proc/self/ns/net")
    except OSError:
        return None
    return "%d-%d" % (found.st_dev, found.st_ino) + _cookie()


def _cookie() -> str:
    """Numbers of namespaces are used again once they are gone; the kernel's cookie (5.14, 2021) never is."""
    try:
        with socket.socket(getattr(socket, "AF_UNIX", 1)) as one:
            return "-%d" % struct.unpack("Q", one.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8))[0]
    except (OSError, struct.error):
        return ""


def folder() -> str:
    """The session folder of this user, made if absent. Refuses with `denied` where there is no safe place."""
    reasons: List[str] = []
    for path in _candidates():
        reason = _made(path)
        if not reason:
            return path
        reasons.append(reason)
    raise protocol.Refused(
        "denied", "no private folder can be made: " + "; ".join(reasons), ", ".join(_candidates())
    )


def usual() -> str:
    """The session folder of this user as it usually is, made or not."""
    return _candidates()[0 if system.user() == 0 else -1]


def _candidates() -> List[str]:
    # Not $XDG_RUNTIME_DIR: it goes with the user's last login session, when undoing has just begun.
    if not system.POSIX:  # its folder for temporary files is the user's own
        return [os.path.join(system.temporary(), "branchlab-run")]
    return ["/run/branchlab", os.path.join(system.temporary(), "branchlab-run-%d" % system.user())]


def _made(path: str) -> str:
    """Nothing if the folder is there and ours alone, else the reason why not."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        return "%s: %s" % (path, error.strerror)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        return "%s is not a folder" % path
    if not system.POSIX:
        return ""
    if found.st_uid != system.user():
        return "%s belongs to user %d" % (path, found.st_uid)
    if found.st_mode & 0o022:
        return "%s can be written by others" % path
    return ""
