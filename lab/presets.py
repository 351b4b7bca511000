"""Lines to begin with: known kinds of line, and series that answer one question."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from importlib import resources

from lab import units
from lab.model import Line

UPLOAD_SHARES = (8, 4, 2, 1)
"""*Does upload matter?* tries an eighth, a quarter, a half and all of the download rate."""
LEAST_UPLOAD_BPS = 8_000


@dataclass(frozen=True, slots=True)
class Preset:
    """A named series of lines."""

    name: str
    title: str
    text: str
    lines: tuple[Line, ...]


def presets() -> tuple[Preset, ...]:
    """Those that come with BranchLab, in the order in which they are offered."""
    text = (resources.files("resources") / "lines" / "presets.toml").read_text("utf-8")
    return tuple(
        Preset(
            name=one["name"],
            title=one["title"],
            text=one["text"],
            lines=tuple(units.parse_line(line).line for line in one["lines"]),
        )
        for one in tomllib.loads(text)["presets"]
    )


def does_upload_matter(line: Line) -> Preset:
    """The same download with four uploads, all else as in `line`. Raises ValueError if it has no rates."""
    if line.download_bps is None:
        raise ValueError("the line as it is has no rate that could be divided")
    download = line.download_bps
    # Whole bytes per second are what a kernel can hold.
    rates = [max(LEAST_UPLOAD_BPS, download // share // 8 * 8) for share in UPLOAD_SHARES]
    lines = tuple(replace(line, upload_bps=rate) for rate in dict.fromkeys(rates))
    text = f"Download fixed at {units.rate_text(download)}, upload an eighth, a quarter, a half, all of it"
    return Preset("upload", "Does upload matter?", text, lines)
