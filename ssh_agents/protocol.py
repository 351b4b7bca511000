"""The agent's protocol: messages, encoding and decoding. No I/O, and no idea which side it is on.

One JSON object per line, UTF-8, at most `MAX_LINE` bytes.

    request   {"id": 7, "verb": "command", "args": {...}}
    event     {"id": 7, "event": "output", "data": {...}}
    last word {"id": 7, "done": {...}}
              {"id": 7, "failed": {"kind": "missing", "text": "...", "tried": "..."}}
              either with "changes": [{"what": "...", "undone": false}], what was changed on the host meanwhile

Every request gets exactly one last word. `cancel` with {"target": 7} asks request 7 to end early.
"""

import json
from typing import Any, Callable, Dict, Iterator, List, Optional

VERSION = 1
MAX_LINE = 1 << 20

KINDS = (
    "bad-request",  # not in the table, or arguments that cannot be right; nothing was touched
    "missing",  # a program, file or kernel feature is not there
    "denied",  # the system refused
    "unsupported",  # not on this system
    "time-out",
    "busy",  # someone else holds it
    "touched",  # what was applied is not there any more, or was changed by someone else
    "lapsed",  # the lease ran out
    "failed",  # a tool that was run said no
    "cancelled",
    "defect",  # a fault of the agent itself
)


class Refused(Exception):
    """A verb's expected failure; becomes the request's last word."""

    def __init__(self, kind: str, text: str, tried: str = "") -> None:
        super().__init__(text)
        if kind not in KINDS:
            raise ValueError("unknown kind of failure: %r" % (kind,))
        self.kind = kind
        self.text = text
        self.tried = tried


class BadLine(ValueError):
    """A line that is no message; `str()` quotes its beginning."""


class Call:
    """What a verb is given beside its arguments: a way to stream, to notice cancelling, and to promise undo."""

    def __init__(
        self,
        say: Callable[[str, Dict[str, Any]], None],
        cancelled: Callable[[], bool],
        wait_cancelled: Callable[[float], bool],
        promise: Callable[[Dict[str, Any]], str],
        keep: Callable[[str], None],
        tell: Callable[[str], None] = lambda what: None,
    ) -> None:
        self.say = say
        """Stream one event: its name and data."""
        self.cancelled = cancelled
        """True once the other side cancelled this request or went away."""
        self.wait_cancelled = wait_cancelled
        """Sleep up to so many seconds; True as soon as the request is cancelled."""
        self.promise = promise
        """Write down, on disk, under the session's lease, how a change will be taken back, *before* it is
        made. The entry has a "kind" of the undo table. Returns the entry's name. Refuses without a lease."""
        self.keep = keep
        """Strike out a promise by its name, after the change was taken back."""
        self.tell = tell
        """Put into the host's journal, and into the run's account, what was done and cannot be taken back."""


Verb = Callable[[Dict[str, Any], Call], Dict[str, Any]]


def encode(message: Dict[str, Any]) -> bytes:
    """One message as a line. Raises ValueError if it would be too long."""
    line = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
    if len(line) > MAX_LINE:
        raise ValueError("a message of %d bytes is above %d" % (len(line), MAX_LINE))
    return line


def decode(line: bytes) -> Dict[str, Any]:
    """The message on a line. Raises BadLine on anything else."""
    try:
        message = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadLine("not a message (%s): %r" % (error, line[:120])) from None
    if not isinstance(message, dict) or not isinstance(message.get("id"), int):
        raise BadLine("a message is an object with an integer id: %r" % (line[:120],))
    return message


class Decoder:
    """Bytes in, messages out, however the bytes are split."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Whole lines, without their end. Raises BadLine when a line grows too long."""
        lines: List[bytes] = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if line.strip():
                yield line
        if len(self._rest) > MAX_LINE:
            begin, self._rest = self._rest[:120], b""
            raise BadLine("a line above %d bytes: %r" % (MAX_LINE, begin))


def need(args: Dict[str, Any], name: str, kind: type, default: Optional[Any] = None) -> Any:
    """A checked argument. Refuses with `bad-request` if it is absent without default, or of another type."""
    value = args.get(name, default)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise Refused("bad-request", "argument %r must be %s, not %r" % (name, kind.__name__, value))
    return value


def need_strings(args: Dict[str, Any], name: str, default: Optional[List[str]] = None) -> List[str]:
    """A checked list of strings."""
    value = args.get(name, default)
    if not isinstance(value, list) or not all(isinstance(item, str) and "\0" not in item for item in value):
        raise Refused("bad-request", "argument %r must be a list of strings, not %r" % (name, value))
    return value
