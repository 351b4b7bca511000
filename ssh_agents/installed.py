"""The copy of the privileged agent that an administrator may have put on a host: where it is, whether it is sound.

With it, sudo needs to allow one exact command and no Python program in general. The name holds the SHA-256 of
its text, so a file of another version is never taken for this one.
"""

import hashlib
import os
import re
import shutil
import stat
from typing import Any, Dict, List, Tuple

from ssh_agents import protocol, tool

FOLDER = "/usr/local/lib/branchlab"
NAME = re.compile(r"agent-([0-9a-f]{64})\.py")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LARGEST = 1 << 24


def look(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `installed`: the copy with this `digest`, as the user sees it. Changes nothing.

    `state` is right, absent, changed (another text under this name) or unsafe (`reason`: somebody else than
    root could exchange it); `python` is where an administrator's PATH has python3; `others` are the names of
    copies of other versions.
    """
    digest = protocol.need(args, "digest", str)
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise protocol.Refused("bad-request", "not a digest: %r" % digest)
    path = os.path.join(FOLDER, "agent-%s.py" % digest)
    state, reason = _state(path, digest)
    return {
        "path": path,
        "python": shutil.which("python3", path=_PATH),
        "state": state,
        "reason": reason,
        "others": [name for name in names() if name != os.path.basename(path)],
    }


def names() -> List[str]:
    """The names of installed copies of any version, sorted."""
    try:
        return sorted(name for name in os.listdir(FOLDER) if NAME.fullmatch(name))
    except OSError:
        return []


def _state(path: str, digest: str) -> Tuple[str, str]:
    try:
        seen = os.lstat(path)
    except FileNotFoundError:
        return "absent", ""
    except OSError as error:
        return "unsafe", "%s: %s" % (path, error.strerror)
    reason = tool.open_to_others(path)
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
