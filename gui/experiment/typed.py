"""What people type into fields, before `lab.units` reads it: a decimal comma is as good as a point."""

from __future__ import annotations

import re

from gui.decimals import plain
from lab import units
from lab.errors import BadInput
from lab.model import Line
from lab.profile_shape import ExperimentTable, PricedLine, Table


def line(text: str) -> units.ParsedLine:
    """A line, also held to what a kernel can do. Raises BadInput with the cure."""
    return _shaped(ExperimentTable, "lines", [plain(text)])[0].parsed


def time_ms(text: str) -> float:
    """Seconds of a time; a number alone is in ms. Raises BadInput."""
    text = plain(text).strip()
    return units.parse_duration(f"{text} ms" if re.fullmatch(r"[\d.,]+", text) else text)


def price(text: str) -> float | None:
    """A price a month; nothing, or a dash, is none. Raises BadInput."""
    text = plain(text).strip().replace(units.NBSP, "")
    if text in ("", "—", "-", "–"):
        return None
    if re.fullmatch(r"[0-9]{1,3},[0-9]{3}", text):
        raise BadInput(f"{text} or {text.replace(',', '.')}? Write {text.replace(',', '')}.")
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        raise BadInput(f"`{text}` is no price: write a number such as 45, or nothing.")
    return float(text)


def whole(text: str, least: int, most: int) -> int:
    """A whole number. Raises BadInput."""
    text = text.strip()
    if not re.fullmatch(r"[0-9]+", text) or not least <= int(text) <= most:
        raise BadInput(f"Write a whole number from {least} to {most}.")
    return int(text)


def limit(text: str) -> str:
    """A time limit as the profile has it; a number alone is in minutes, nothing is none. Raises BadInput."""
    text = plain(text).strip()
    if not text:
        return ""
    text = f"{text} min" if re.fullmatch(r"[\d.,]+", text) else text
    _shaped(ExperimentTable, "limit", text)
    return text


def key(name: str, value: object) -> None:
    """Raise BadInput if an experiment's key cannot have this value."""
    _shaped(ExperimentTable, name, value)


def _shaped(table: type[Table], name: str, value: object) -> list[PricedLine]:
    from pydantic import ValidationError

    try:
        made = table.__pydantic_validator__.validate_assignment(table.model_construct(), name, value)
    except ValidationError as error:
        raise BadInput(error.errors(include_url=False)[0]["msg"]) from None
    found = getattr(made, name)
    return found if isinstance(found, list) else []


def understood(line: Line) -> str:
    """`= 2/4 Mbit/s, 40 ms delay`: what was understood of a line while it is typed."""
    if line.upload_bps is None or line.download_bps is None:
        return "= as it is: nothing is applied"
    rates = units.line_text(Line(upload_bps=line.upload_bps, download_bps=line.download_bps))
    parts = [rates]
    if line.delay_s:
        parts.append(f"{line.delay_s * 1000:g} ms delay")
    if line.jitter_s:
        parts.append(f"{line.jitter_s * 1000:g} ms jitter")
    if line.loss:
        parts.append(f"{line.loss * 100:g} % loss")
    queue = units.line_text(line).partition(" queue ")[2]
    if queue:
        parts.append(f"queue {queue}")
    return f"= {', '.join(parts)}"
