"""Runs one system tool to its end: found also outside an ordinary user's PATH, never in a shell."""

import os
import shutil
import stat
import subprocess
import sys
from typing import Dict, List, Optional, Tuple

from ssh_agents import protocol, system

_MORE_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin")
_KEPT = ("HOME", "USER", "LOGNAME", "SSH_CONNECTION", "SSH_CLIENT", "SUDO_USER", "SUDO_UID", "DOAS_USER")
"""Of its starter's environment a privileged agent keeps these; no tool takes a program or library from them."""
_KEPT_UNLESS_ROOT = ("XDG_RUNTIME_DIR", "TMPDIR")


def settle() -> None:
    """Depend no more on whoever started this process: the first act of whatever runs with more rights.

    Nothing that is run later is looked for, or told to load anything, by a starter's variable; what is
    written is never left open to others by a starter's umask; no file is found by a starter's folder.
    """
    if not system.POSIX:
        return  # there, nobody has been given more rights on the way
    os.umask(0o022)
    os.chdir("/")
    root = system.user() == 0
    if root:
        _refuse_two_starters()
    words = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/local/bin", *_MORE_PATH]
    # Real paths: a link on the way could be pointed elsewhere later.
    places = dict.fromkeys(os.path.realpath(word) for word in words if word.startswith("/"))
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or (name in _KEPT_UNLESS_ROOT and not root)
    }
    if root:
        kept["HOME"] = "/root"
    os.environ.clear()
    os.environ.update(
        kept, PATH=os.pathsep.join(place for place in places if not open_to_others(place)), LC_ALL="C"
    )


def _refuse_two_starters() -> None:
    """End where it cannot be told whose rights were raised: doas may keep a SUDO_UID that its user wrote, and
    sudo a DOAS_USER."""
    number, name = os.environ.get("SUDO_UID", ""), os.environ.get("DOAS_USER", "")
    if not (number and name):
        return
    import pwd  # absent on Windows, where this module is loaded too

    try:
        same = str(pwd.getpwnam(name).pw_uid) == number
    except KeyError:
        same = False
    if not same:
        sys.exit(
            "refused: SUDO_UID says that user %s started this by sudo, DOAS_USER that %s did by doas; only one"
            " can be true. Take the other one out of that user's environment" % (number[:20], name[:40])
        )


def open_to_others(path: str, owners: Optional[Tuple[int, ...]] = None) -> str:
    """Why somebody else than `owners` could exchange what lies at `path` (real); empty if nobody can.

    They are root and this user, unless others are given.
    """
    owners = (0, system.user()) if owners is None else owners
    place = path
    while True:
        try:
            seen = os.lstat(place)
        except OSError as error:
            return "%s: %s" % (place, error.strerror)
        if stat.S_ISLNK(seen.st_mode):
            return "%s is a link" % place
        if seen.st_uid not in owners:
            return "%s belongs to user %d" % (place, seen.st_uid)
        # In a sticky folder nobody exchanges what is another's; but a file there is no folder.
        sticky = stat.S_ISDIR(seen.st_mode) and seen.st_mode & stat.S_ISVTX and place != path
        if seen.st_mode & 0o022 and not sticky:
            return "%s can be written by others (mode %04o)" % (place, stat.S_IMODE(seen.st_mode))
        if place == "/":
            return ""
        place = os.path.dirname(place)


def environment() -> Dict[str, str]:
    """The environment for tools: untranslated messages, and the folders of administration tools in PATH."""
    words = os.environ.get("PATH", "").split(os.pathsep)
    more = system.program_folders() if os.name == "nt" else _MORE_PATH
    words = [word for word in words if word] + [word for word in more if word not in words]
    return {**os.environ, "PATH": os.pathsep.join(words), "LC_ALL": "C"}


def found(name: str) -> Optional[str]:
    """The tool's path, or None where it is not installed."""
    return shutil.which(name, path=environment()["PATH"])


def run(argv: List[str], text: str = "", timeout_s: float = 10.0) -> str:
    """What the tool printed. `text` is its standard input.

    Refuses with `missing` where it is not installed, `time-out`, `denied` where the system said no, else
    `failed` with the tool's own words.
    """
    path = found(argv[0])
    if path is None:
        raise protocol.Refused("missing", "%s is not installed on this host" % argv[0], " ".join(argv))
    try:
        done = subprocess.run(
            [path, *argv[1:]],
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            env=environment(),
            check=False,
            creationflags=system.quiet_flags(),
        )
    except subprocess.TimeoutExpired:
        raise protocol.Refused(
            "time-out", "%s did not end within %g s" % (argv[0], timeout_s), " ".join(argv)
        ) from None
    except OSError as error:
        raise protocol.Refused("failed", "%s cannot be run: %s" % (path, error), " ".join(argv)) from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        denied = "not permitted" in said or "Permission denied" in said
        tried = " ".join(argv) + ("\n" + text if text else "")
        raise protocol.Refused("denied" if denied else "failed", "%s: %s" % (argv[0], said), tried[:4000])
    return done.stdout.decode("utf-8", "replace")
