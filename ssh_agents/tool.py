"""Runs one system tool to its end: found also outside an ordinary user's PATH, never in a shell."""

import os
import shutil
import subprocess
from typing import Dict, List, Optional

from ssh_agents import protocol

_MORE_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin")


def environment() -> Dict[str, str]:
    """The environment for tools: untranslated messages, and the folders of administration tools in PATH."""
    words = os.environ.get("PATH", "").split(os.pathsep)
    words = [word for word in words if word] + [word for word in _MORE_PATH if word not in words]
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
