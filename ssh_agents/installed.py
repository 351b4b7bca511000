"""The copy of the privileged agent that an administrator may have put on a host: where it is, whether it is sound.

With it, sudo needs to allow one exact command and no Python program in general. The name holds the SHA-256 of
its text, so a file of another version is never taken for this one.
"""

import hashlib
import os
import re
import shutil
import stat
from typing import Any, Dict, List, Optional, Tuple

from ssh_agents import protocol, tool

FOLDER = "/usr/local/lib/branchlab"
NAME = re.compile(r"agent-[0-9a-f]{64}\.(py|new)")
"""A copy, or one whose text was never checked, as where an administrator was interrupted: it is never run."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LARGEST = 1 << 24
_ROOT = (0,)


def look(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `installed`: the copy with this `digest`, as the user sees it. Changes nothing.

    `state` is right, absent, changed (another text under this name) or unsafe (`reason`: somebody else than
    root could exchange it); `python` is the first python3 of an administrator's PATH that nobody but root could
    exchange (null if there is none; `python_reason`: why those before it, or all, are none); `others` are the
    names of copies of other versions; `folder` is true where their folder is there.
    """
    digest = protocol.need(args, "digest", str)
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise protocol.Refused("bad-request", "not a digest: %r" % digest)
    path = os.path.join(FOLDER, "agent-%s.py" % digest)
    state, reason = _state(path, digest)
    python, why = _python()
    return {
        "path": path,
        "python": python,
        "python_reason": why,
        "state": state,
        "reason": reason,
        "others": [name for name in names() if name.endswith(".py") and name != os.path.basename(path)],
        "folder": os.path.isdir(FOLDER),
    }


def _python() -> Tuple[Optional[str], str]:
    """A rule that lets root run what a user could exchange would give that user everything."""
    reasons: List[str] = []
    for folder in _PATH.split(":"):
        found = shutil.which("python3", path=folder)
        if found is None:
            continue
        # Both the name, whatever it leads to, and what it leads to.
        reason = tool.exchangeable(found, _ROOT)
        if not reason:
            return found, "; ".join(reasons)
        reasons.append("%s is not to be trusted: %s" % (found, reason))
    return None, "; ".join(reasons)


def names() -> List[str]:
    """The names of installed copies of any version, checked or not, sorted."""
    try:
        return sorted(name for name in os.listdir(FOLDER) if NAME.fullmatch(name))
    except OSError:
        return []


def empty() -> bool:
    """True if the folder of copies is there, and nothing is in it."""
    try:
        return os.listdir(FOLDER) == [] and not os.path.islink(FOLDER)
    except OSError:
        return False


def _state(path: str, digest: str) -> Tuple[str, str]:
    try:
        seen = os.lstat(path)
    except FileNotFoundError:
        return "absent", ""
    except OSError as error:
        return "unsafe", "%s: %s" % (path, error.strerror)
    reason = tool.open_to_others(path, _ROOT)
    if not reason and not stat.S_ISREG(seen.st_mode):
        reason = "%s is no file" % path
    if not reason and seen.st_uid != 0:
        reason = "%s does not belong to root" % path
    if reason:
        return "unsafe", reason
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            text = file.read(_LARGEST)
    except OSError as error:
        return "unsafe", "%s cannot be read: %s" % (path, error.strerror)
    return ("right", "") if hashlib.sha256(text).hexdigest() == digest else ("changed", "")
