"""The access log of a service: its requests, and sums of them by what became of each."""

from typing import Any, Dict, Iterable, NamedTuple, Set

TAIL_LINES = 8


class Request(NamedTuple):
    """One request. Times in microseconds; `content_bytes` compressed, without headers."""

    at_us: int
    connection: str
    method: str
    status: int
    content_bytes: int
    received_bytes: int
    sent_bytes: int
    took_us: int
    hit: bool
    """The content came out of the cache; maybe after asking whether it is still good."""
    url: str


def summary(text: str, found: Iterable[Request]) -> Dict[str, Any]:
    """Requests, hits and content bytes, by what became of them; and the last lines of the log's `text`."""
    out: Dict[str, Any] = dict.fromkeys(
        ("requests", "hits", "misses", "hit_bytes", "miss_bytes", "other_bytes", "failed", "sent_bytes"), 0
    )
    methods: Dict[str, int] = {}
    connections: Set[str] = set()
    for request in found:
        out["requests"] += 1
        out["failed"] += request.status >= 400
        out["sent_bytes"] += request.sent_bytes
        methods[request.method] = methods.get(request.method, 0) + 1
        connections.add(request.connection)
        if request.method != "GET":
            out["other_bytes"] += request.content_bytes
        elif request.hit:
            out["hits"] += 1
            out["hit_bytes"] += request.content_bytes
        else:
            out["misses"] += 1
            out["miss_bytes"] += request.content_bytes
    out["by_method"] = methods
    out["connections"] = len(connections)
    out["lines"] = text.splitlines()[-TAIL_LINES:]
    return out
