"""Kind `command`: a cache that the user's own commands list and purge. The ordinary agent alone runs them.

`list` prints one object a line. `purge` is run once for each object, with `{url}` in its words replaced; without
that word once, with the objects on its standard input, one a line. Nothing passes through a shell.
"""

import shutil
import subprocess
from typing import Any, Callable, Dict, List, Optional

from ssh_agents import protocol, system

HOLE = "{url}"
TIMEOUT_S = 100.0
"""A list or a purge of many objects takes no longer than this."""


def listed(args: Dict[str, Any], call: protocol.Call, tell: Callable[[str, int, int], None]) -> int:
    """Tell each line that `list` prints; bytes are unknown (0). Returns how many lines are no text."""
    others = 0
    for line in _run(_words(args, "list"), b"").split(b"\n"):
        text = line.rstrip(b"\r").decode("utf-8", "replace")
        if "\ufffd" in text:
            others += 1
        elif text:
            tell(text, 0, 1)
    return others


def purged(
    args: Dict[str, Any], call: protocol.Call, wanted: Optional[List[str]], tell: Callable[[str, int], None]
) -> None:
    """Hand these objects, or all that are listed (None), to `purge`, and tell each."""
    argv = _words(args, "purge")
    if wanted is None:
        found: List[str] = []
        listed(args, call, lambda url, size, files: found.append(url))
        wanted = found
    for url in wanted:
        # As a word of its own the latter could be taken for an option.
        if "\n" in url or "\r" in url or url.startswith("-"):
            raise protocol.Refused("bad-request", "%r cannot be handed to a command" % url)
    if not wanted:
        return
    if not any(HOLE in word for word in argv):
        _run(argv, "".join(url + "\n" for url in wanted).encode("utf-8", "replace"))
    for url in wanted:
        if call.cancelled():
            raise protocol.Refused("cancelled", "the purge was cancelled")
        if any(HOLE in word for word in argv):
            _run([word.replace(HOLE, url) for word in argv], b"")
        tell(url, 0)


def _words(args: Dict[str, Any], name: str) -> List[str]:
    argv = protocol.need_strings(args, name)
    if not argv or not argv[0] or HOLE in argv[0]:
        raise protocol.Refused("bad-request", "%s must be a program and its words, not %r" % (name, argv))
    if any(HOLE in word for word in argv) and system.by_cmd(shutil.which(argv[0]) or argv[0]):
        raise protocol.Refused(
            "bad-request",
            "%s is a batch file, and cmd.exe, which runs it, would read signs in an object's name as its own: take "
            "%s out, and let it read the objects from its standard input, or name a program"
            % (argv[0], HOLE),
        )
    return argv


def _run(argv: List[str], text: bytes) -> bytes:
    try:
        with subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            creationflags=system.quiet_flags(),
        ) as process:
            try:
                out, err = process.communicate(text, timeout=TIMEOUT_S)
            except BaseException:
                system.end_tree(process)
                raise
    except FileNotFoundError:
        raise protocol.Refused("missing", "%s is not on this host" % argv[0], " ".join(argv)) from None
    except subprocess.TimeoutExpired:
        raise protocol.Refused(
            "time-out", "%s did not end within %g s" % (argv[0], TIMEOUT_S), " ".join(argv)
        ) from None
    except OSError as error:
        raise protocol.Refused("failed", "%s cannot be run: %s" % (argv[0], error), " ".join(argv)) from None
    if process.returncode:
        said = (err or out).decode("utf-8", "replace").strip()
        raise protocol.Refused(
            "failed", "exit %d: %s" % (process.returncode, said[-1000:]), " ".join(argv)[:1000]
        )
    return out
