"""What is known of a lab from what was done to it by hand: its cache, and the line that is held. No widgets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lab.model import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheKnown:
    """A cache as it was counted last. `listed` of its objects are 100 % for `operation`; 0 where that is not known."""

    objects: int
    bytes: int
    others: int = 0
    operation: str = ""
    listed: int = 0
    here: int = 0
    """of the listed, those that are in the cache"""
    here_bytes: int = 0
    listed_bytes: int = 0

    @property
    def full(self) -> float | None:
        """Percent; None where 100 % is not known."""
        return 100 * self.here / self.listed if self.listed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineKnown:
    """The line that is held by hand, and what the kernels said of it. `left_s`: its lease, if it were not renewed."""

    line: Line
    said: str
    left_s: float
    lease_s: float
    ending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ByHandKnown:
    """All of it. `deed` is what goes on now: `fill`, `purge`, `line`, or empty."""

    deed: str = ""
    cache: CacheKnown | None = None
    line: LineKnown | None = None

    def still(self) -> ByHandKnown:
        """The same without how much time a lease has left."""
        return self if self.line is None else replace(self, line=replace(self.line, left_s=0.0))


NOTHING = ByHandKnown()
