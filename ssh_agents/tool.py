"""Runs one system tool to its end: found also outside an ordinary user's PATH, never in a shell."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from ssh_agents import protocol, system

_MORE_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin")
_KEPT = ("HOME", "USER", "LOGNAME", "SSH_CONNECTION", "SSH_CLIENT", "SUDO_USER", "SUDO_UID", "DOAS_USER")
"""Of its starter's environment a privileged agent keeps these; no tool takes a program or library from them."""
_KEPT_UNLESS_ROOT = ("XDG_RUNTIME_DIR", "TMPDIR")
_MARK = "BRANCHLAB_TOOL_OF"
MARK = os.urandom(16).hex()
"""In the environment of every tool that this process runs, by which `end_those_of` knows them."""
_only_roots = False
"""True in root's privileged agent and its watcher, once settled: they run only what nobody but root could exchange."""


def settle() -> None:
    """Depend no more on whoever started this process: the first act of whatever runs with more rights.

    Nothing that is run later is looked for, or told to load anything, by a starter's variable; what is
    written is never left open to others by a starter's umask; no file is found by a starter's folder.
    """
    if not system.POSIX:
        return  # there, nobody has been given more rights on the way
    os.umask(0o022)
    os.chdir("/")
    global _only_roots
    root = _only_roots = system.user() == 0
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


def exchangeable(path: str, owners: Optional[Tuple[int, ...]] = None) -> str:
    """Why somebody else than `owners` could exchange what `path` leads to, link by link; empty if nobody can."""
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    for _ in range(40):
        reason = open_to_others(os.path.dirname(path), owners)
        if reason:
            return reason
        if not os.path.islink(path):
            return open_to_others(path, owners)
        target = os.path.join(os.path.dirname(path), os.readlink(path))
        path = os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
    return "too many links"


def environment() -> Dict[str, str]:
    """The environment for tools: untranslated messages, and the folders of administration tools in PATH."""
    words = [word for word in _places() if not (_only_roots and open_to_others(os.path.realpath(word)))]
    return {**os.environ, "PATH": os.pathsep.join(words), "LC_ALL": "C"}


def found(name: str, folders: Sequence[str] = ()) -> Optional[str]:
    """The tool's path, or None where it is not installed. Root's agent passes over what others could exchange."""
    return next((path for path, why in _found(name, folders) if not why), None)


def passed_over(name: str, folders: Sequence[str] = ()) -> str:
    """What is to be said behind "not installed" where root's agent does not trust the tool that is there."""
    return "".join("; %s is not run as root: %s" % one for one in _found(name, folders) if one[1])


def _places() -> List[str]:
    words = os.environ.get("PATH", "").split(os.pathsep)
    more = system.program_folders() if os.name == "nt" else _MORE_PATH
    return [word for word in words if word] + [word for word in more if word not in words]


def _found(name: str, folders: Sequence[str]) -> Iterator[Tuple[str, str]]:
    for folder in folders or _places():
        path = shutil.which(name, path=folder)
        if path is not None:
            yield path, exchangeable(path) if _only_roots else ""


def run(argv: List[str], text: str = "", timeout_s: float = 10.0) -> str:
    """What the tool printed. `text` is its standard input.

    Refuses with `missing` where it is not installed, `time-out`, `denied` where the system said no, else
    `failed` with the tool's own words.
    """
    path = found(argv[0])
    if path is None:
        text = "%s is not installed on this host%s" % (argv[0], passed_over(argv[0]))
        raise protocol.Refused("missing", text, " ".join(argv))
    try:
        done = subprocess.run(
            [path, *argv[1:]],
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            env={**environment(), _MARK: MARK},
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


def end_those_of(mark: str) -> None:
    """Kill what a process with this `MARK` ran and left behind, so that it changes nothing any more. Linux only.

    Whoever was killed could not wait for its tool; one that is slow would make its change after the change's undo.
    """
    end = time.monotonic() + 1
    while mark and mark != MARK and time.monotonic() < end:
        found = list(_marked(mark))
        if not found:
            break
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)  # it may be amid a call of the kernel


def _marked(mark: str) -> Iterator[int]:
    wanted = ("\0%s=%s\0" % (_MARK, mark)).encode()
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            with contextlib.suppress(OSError), open("/proc/%s/environ" % name, "rb") as file:
                if wanted in b"\0" + file.read():
                    yield int(name)
