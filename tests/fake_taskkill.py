#!/usr/bin/env python3
"""A FAKE of Windows' taskkill, for tests: `taskkill /T /F /PID NUMBER` ends a process and all that it started."""

import os
import signal
import sys
from pathlib import Path


def tree(pid: int) -> list[int]:
    """The process and its living descendants."""
    below: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        below.setdefault(int(words[1]), []).append(int(path.parent.name))
    found = [pid]
    for one in found:
        found += below.get(one, [])
    return found


def main() -> None:
    if sys.argv[1:4] != ["/T", "/F", "/PID"]:
        sys.exit("ERROR: Invalid argument/option")
    for pid in tree(int(sys.argv[4])):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            sys.exit(128)  # as the real one says of a process that is not there


if __name__ == "__main__":
    main()
