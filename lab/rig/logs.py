"""What the access logs of server and proxy tell of a trial: requests, and content by where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LogCount:
    """Requests and content bytes of one service since it was started."""

    requests: int = 0
    hits: int = 0
    """objects that the cache had"""
    misses: int = 0
    """objects that were fetched and could have been cached"""
    hit_bytes: int = 0
    """content that the cache had"""
    miss_bytes: int = 0
    """content that was fetched and could have been cached"""
    other_bytes: int = 0
    """content of requests that no cache can answer"""

    def plus(self, word: dict[str, Any]) -> LogCount:
        """With one more `service.log` answer added."""
        return LogCount(
            self.requests + word["requests"],
            self.hits + word["hits"],
            self.misses + word["misses"],
            self.hit_bytes + word["hit_bytes"],
            self.miss_bytes + word["miss_bytes"],
            self.other_bytes + word["other_bytes"],
        )

    def since(self, before: LogCount) -> LogCount:
        """What came between two counts."""
        return LogCount(
            self.requests - before.requests,
            self.hits - before.hits,
            self.misses - before.misses,
            self.hit_bytes - before.hit_bytes,
            self.miss_bytes - before.miss_bytes,
            self.other_bytes - before.other_bytes,
        )


@dataclass(frozen=True, slots=True)
class Logs:
    """Both access logs; None where BranchLab did not start the service and so has no log of its own."""

    server: LogCount | None
    proxy: LogCount | None

    def since(self, before: Logs) -> Logs:
        """What came between two readings."""
        return Logs(
            self.server.since(before.server) if self.server and before.server else None,
            self.proxy.since(before.proxy) if self.proxy and before.proxy else None,
        )

    def requests(self) -> dict[str, int]:
        """Requests by role, where known."""
        known = {"server": self.server, "proxy": self.proxy}
        return {role: count.requests for role, count in known.items() if count is not None}
