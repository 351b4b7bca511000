"""What was taken back on this host, by watchers or agents, while nobody was there: `revert` tells it once."""

import contextlib
import json
import os
import time
from typing import Any, Dict, List

from ssh_agents import private

NAME = "taken-back.jsonl"
MOST = 200
"""So many lines are kept; older ones go."""


def note(what: str) -> None:
    """Remember that this was taken back, now. Never fails: undoing matters more."""
    try:
        path = _path()
        lines = [*_lines(path)[1 - MOST :], json.dumps({"at": time.time(), "what": what})]
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.replace(path + ".new", path)
    except Exception:  # noqa: BLE001 - whatever it is, the watcher must go on
        return


def noted(undone: List[str]) -> None:
    """Remember all of these."""
    for what in undone:
        note(what)


def told(word: Dict[str, Any]) -> Dict[str, Any]:
    """A last word, with what was remembered as `earlier`: oldest first, with the host's own time. It is told once."""
    path = _path()
    found = []
    for line in _lines(path):
        try:
            one = json.loads(line)
            at = time.strftime("%Y-%m-%d %H:%M", time.localtime(one["at"]))
            found.append("already taken back by the host at %s: %s" % (at, one["what"]))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
    with contextlib.suppress(OSError):
        os.unlink(path)
    return dict(word, earlier=found) if found else word


def _path() -> str:
    net = private.net_namespace()  # several hosts of one machine may see one folder
    return os.path.join(private.folder(), NAME + ("-" + net if net else ""))


def _lines(path: str) -> List[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, ValueError):
        return []
