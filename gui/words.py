"""How values are written on screen, where the sentences of `lab.analysis.words` are too long or too exact."""

from __future__ import annotations

import unicodedata
from datetime import datetime

from lab.analysis import words
from lab.model import Line, ProxyState

NBSP = "\N{NO-BREAK SPACE}"
NONE = "—"


def isolated(text: str) -> str:
    """A name that may be written from right to left, so that it does not turn round the words beside it."""
    turned = any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in text)
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}" if turned else text


def duration(seconds: float | None) -> str:
    """A measured time, empty where there is none."""
    return "" if seconds is None else words.duration(seconds).replace(" ", NBSP)


def roughly(seconds: float) -> str:
    """An expected time or one on an axis: `0:43`, `1:02:10`; under 10 s with a tenth, under 1 s in ms."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}{NBSP}ms"
    if seconds < 9.95:
        return f"0:{seconds:04.1f}"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def hosts(names: str) -> str:
    """Names with commas between, of many the first ones: `desk-1, desk-2 and 8 more`."""
    each = names.split(", ")
    return names if len(each) < 4 else f"{', '.join(each[:2])} and {len(each) - 2} more"


def clock(seconds: float) -> str:
    """A running clock: `0:02.3` below ten seconds, `0:31`, `1:04:10`."""
    if seconds < 10:
        return f"0:{int(seconds * 10) / 10:04.1f}"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def long(seconds: float) -> str:
    """A long time in words: `40 s`, `12 min`, `3 h 21 min`."""
    if seconds < 90:
        return f"{round(seconds)}{NBSP}s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}{NBSP}min"
    return f"{minutes // 60}{NBSP}h{NBSP}{minutes % 60:02d}{NBSP}min"


def span(low: float, high: float) -> str:
    """A duration to come as a range: `2 h 20 – 2 h 45 min`, `3–4 min`, `40–50 s`."""
    if high < 90:
        low, high = round(low / 5) * 5, max(5, round(high / 5) * 5)
        return f"{low:.0f}–{high:.0f}{NBSP}s" if low < high else f"{high:.0f}{NBSP}s"
    least, most = int(low // 60), -int(-high // 60)
    if most < 60:
        return f"{least}–{most}{NBSP}min" if least < most else f"{most}{NBSP}min"
    least, most = round(low / 300) * 5, round(high / 300) * 5
    if least == most:
        return f"{most // 60}{NBSP}h{NBSP}{most % 60:02d}{NBSP}min"
    return f"{_hours(least)} – {_hours(most)}{NBSP}min"


def _hours(minutes: int) -> str:
    return f"{minutes // 60}{NBSP}h{NBSP}{minutes % 60:02d}" if minutes >= 60 else str(minutes)


def state(value: ProxyState, *, full: bool = False) -> str:
    """A proxy state: `disabled`, `90 %`, or `90 % full`."""
    if value.full is None:
        return "disabled"
    return f"{value.full:g}{NBSP}%" + (f"{NBSP}full" if full else "")


def cache(value: ProxyState) -> str:
    """What the proxy is, in the line that tells of a trial: `proxy disabled`, `cache 90 % full`."""
    return "proxy disabled" if value.full is None else f"cache {state(value, full=True)}"


def line(value: Line) -> str:
    """A line by its rates: `64/128 kbit/s`, `2/4 Mbit/s`; `as it is`. The rest is told by `extras`."""
    if value.upload_bps is None or value.download_bps is None:
        return "as it is"
    up, down, unit = _rates(value.upload_bps, value.download_bps)
    return f"{up}/{down}{NBSP}{unit}bit/s"


def tick(value: Line) -> str:
    """A line on an axis in kbit/s: `64/128`, `1/2 M`."""
    if value.upload_bps is None or value.download_bps is None:
        return "as it is"
    up, down, unit = _rates(value.upload_bps, value.download_bps)
    return f"{up}/{down}" + ("" if unit == "k" else f"{NBSP}{unit}")


def _rates(up: int, down: int) -> tuple[str, str, str]:
    for size, unit in ((10**9, "G"), (10**6, "M")):
        if up >= size and up * 10 % size == 0 and down * 10 % size == 0:
            return f"{up / size:g}", f"{down / size:g}", unit
    return f"{up / 1000:g}", f"{down / 1000:g}", "k"


def extras(value: Line) -> str:
    """Delay, jitter and loss of a line: `40 ms delay, 1 % loss`; `no added delay, jitter or loss`."""
    parts = []
    if value.delay_s:
        parts.append(f"{value.delay_s * 1000:g}{NBSP}ms delay")
    if value.jitter_s:
        parts.append(f"{value.jitter_s * 1000:g}{NBSP}ms jitter")
    if value.loss:
        parts.append(f"{value.loss * 100:g}{NBSP}% loss")
    return ", ".join(parts) or "no added delay, jitter or loss"


def rate(bps: float) -> str:
    """A live rate without its unit: `0`, `96 k`, `2.14 M`."""
    if bps < 500:
        return "0"
    if bps < 999_500:
        return f"{bps / 1000:.0f}{NBSP}k"
    return f"{bps / 1e6:.3g}{NBSP}M" if bps < 999.5e6 else f"{bps / 1e9:.3g}{NBSP}G"


def megabytes(count: float) -> str:
    """Bytes in MB, decimal: `5.0`, `0.62`, `0.004`; 0 is 0."""
    mb = count / 1e6
    if mb == 0:
        return "0"
    return f"{mb:.1f}" if mb >= 0.995 else f"{mb:.2f}" if mb >= 0.0095 else f"{mb:.4f}"


def count(number: int) -> str:
    """A count with thousands set apart."""
    return f"{number:,}"


def moment(text: str) -> datetime | None:
    """An ISO 8601 moment as this machine's local time."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        return None


def when(began: str, ended: str = "") -> str:
    """`3 June 2026, 09:12–15:06`."""
    first, last = moment(began), moment(ended)
    if first is None:
        return began
    text = f"{first.day} {first:%B %Y, %H:%M}"
    if last is None or last == first:
        return text
    return f"{text}–{last:%H:%M}" if last.date() == first.date() else f"{text} – {last.day} {last:%B, %H:%M}"
