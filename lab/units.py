"""Text to plain SI values and back: rates, lines, proxy states, times, bytes. 1 k is 1000, always.

What cannot be right raises BadInput, whose text says what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from lab.errors import BadInput
from lab.model import AS_IT_IS, DISABLED, Line, ProxyState

NBSP = "\u00a0"
"""No-break space: between a number and its unit on screen; files have an ordinary one."""
NOTHING = "—"
"""What stands where a value was not asked for or is not known."""
MAX_BPS = 10**12

_POWERS: dict[str, int] = {
    "": 1,
    "k": 10**3,
    "kilo": 10**3,
    "m": 10**6,
    "mega": 10**6,
    "g": 10**9,
    "giga": 10**9,
}
_BINARY_POWERS: dict[str, int] = {"k": 2**10, "m": 2**20, "g": 2**30}
_PREFIX = r"(?P<prefix>(?i:kilo|mega|giga|[kmg]))?"
_PER_SECOND = r"(?i:/s|/sec|ps)?"
_BITS = re.compile(rf"{_PREFIX}(?i:bits?|b(?=/|ps|$))?{_PER_SECOND}")
_BYTES = re.compile(rf"{_PREFIX}(?:(?i:bytes?)|B){_PER_SECOND}")
_BINARY = re.compile(rf"(?P<prefix>(?i:[kmg]))i(?P<what>(?i:bits?|bytes?|b))?{_PER_SECOND}")
_SECONDS = {
    "s": Decimal(1),
    "sec": Decimal(1),
    "ms": Decimal("0.001"),
    "us": Decimal("0.000001"),
    "µs": Decimal("0.000001"),
    "min": Decimal(60),
}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:[.,'’][0-9]+)*)|(?P<word>[A-Za-zµ]+(?:/s(?:ec)?(?![A-Za-z]))?|%)"
    r"|(?P<sign>/)|(?P<gap>[,;]))\s*"
)
_UP, _DOWN = ("up", "upload"), ("down", "download")
_OPTIONS = ("delay", "jitter", "loss", "queue")
_EXAMPLE = "64/128 kbit/s 40 ms"

Token = tuple[str, str]
"""Kind (number, word, sign, gap) and text."""


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A line as understood, and what the person who wrote it should know."""

    line: Line
    warnings: tuple[str, ...] = ()


# --- reading


def rate(text: str) -> int:
    """Bits per second of `128 kbit/s`, `2M`, `64 kbps`. Raises BadInput; for bytes, 1024s and zero too."""
    match _tokens(text, "128 kbit/s"):
        case [("number", number), ("word", unit)]:
            return _bits(number, unit)
        case [("number", number)]:
            raise BadInput(f"{number} of what? Write {number} kbit/s.")
    raise BadInput(f"`{text.strip()}` is no rate: write for example 128 kbit/s.")


def parse_line(text: str) -> ParsedLine:
    """A line: `64/128 kbit/s 40 ms jitter 5 ms loss 1 % queue 1 s`, `128 down 64 up`, `2M/4M`, `as it is`.

    `a/b` is upload/download; the larger one first draws a warning, and so does a missing unit, which is
    read as kbit/s. A time without a name is the delay. Raises BadInput.
    """
    if " ".join(text.lower().replace(NBSP, " ").split()) == "as it is":
        return ParsedLine(AS_IT_IS)
    return _LineReader(text).read()


def parse_state(value: object) -> ProxyState:
    """A proxy state from `disabled`, `90 %` or `{"purge": "10 %"}`. Raises BadInput."""
    example = '"disabled", "90 %" or { purge = "10 %" }'
    if isinstance(value, Mapping) and set(value) == {"purge"}:
        return ProxyState(full=float(100 - _percent(value["purge"], example)))
    if isinstance(value, str) and value.strip().lower() == "disabled":
        return DISABLED
    return ProxyState(full=float(_percent(value, example)))


def parse_share(value: object) -> float:
    """A share from 0 to 1, of `10 %`. Raises BadInput."""
    return float(_percent(value, '"10 %"') / 100)


def parse_duration(text: str) -> float:
    """Seconds of `40 ms`, `1 s`, `2 min`. Raises BadInput."""
    match _tokens(text, "40 ms"):
        case [("number", number), ("word", unit)]:
            return _duration(number, unit)
        case [("number", number)]:
            raise BadInput(f"{number} of what? Write {number} ms.")
    raise BadInput(f"`{text.strip()}` is no time: write for example 40 ms.")


def parse_bytes(text: str) -> int:
    """Bytes of `100 kB`, `64 KiB`, `1500 bytes`. Raises BadInput."""
    match _tokens(text, "100 kB"):
        case [("number", number), ("word", unit)]:
            return _size(number, unit)
    raise BadInput(f"`{text.strip()}` is no size: write for example 100 kB.")


class _LineReader:
    """Reads the words of one line from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._left = _tokens(text, _EXAMPLE)
        self._warnings: list[str] = []

    def read(self) -> ParsedLine:
        upload, download = self._rates()
        told: dict[str, float] = {}
        while self._over_gaps():
            name, value = self._option()
            if name in told:
                raise BadInput(f"`{self._text}` says {name} twice: write it once.")
            told[name] = value
        delay, jitter, queue = told.get("delay", 0.0), told.get("jitter", 0.0), told.get("queue")
        if jitter > delay:
            least = _exact(jitter * 1000)
            raise BadInput(
                f"a jitter of {least} ms needs a delay of as much: write {least} ms jitter {least} ms."
            )
        line = Line(
            upload_bps=upload,
            download_bps=download,
            delay_s=delay,
            jitter_s=jitter,
            loss=told.get("loss", 0.0),
            queue_bytes=queue if isinstance(queue, int) else None,
            queue_s=queue if isinstance(queue, float) else None,
        )
        return ParsedLine(line, tuple(self._warnings))

    def _rates(self) -> tuple[int, int]:
        """Upload and download."""
        before = self._way()
        a, a_unit = self._number(), self._unit()
        first_way = before or self._way()
        if not self._take("sign") and not first_way:
            unit = a_unit or "kbit/s"
            _bits(a, unit)
            raise BadInput(f"`{self._text}` has one rate: write upload/download, as in {a}/{a} {unit}.")
        before = self._way()
        b, b_unit = self._number(), self._unit()
        second_way = before or self._way()
        if not (a_unit or b_unit):
            self._warnings.append(f"{a} and {b} have no unit: read as kbit/s")
        first = _bits(a, a_unit or b_unit or "kbit/s")
        second = _bits(b, b_unit or a_unit or "kbit/s")
        if not (first_way or second_way):
            if first > second:
                self._warnings.append(
                    f"the upload, {rate_text(first)}, is above the download, {rate_text(second)}: "
                    "the first of the two is the upload"
                )
            return first, second
        if first_way == second_way:
            raise BadInput(f"`{self._text}` says {first_way} twice: write for example 128 down 64 up.")
        return (first, second) if first_way == "up" or second_way == "down" else (second, first)

    def _option(self) -> tuple[str, float]:
        """The name of the next field, and its value; a queue's is an int if it is bytes, else seconds."""
        name = self._name()
        number = self._number()
        if not self._left or self._left[0][0] != "word":
            raise BadInput(f"{number} of what? Write for example {name or 'delay'} {number} ms.")
        unit = self._left.pop(0)[1]
        unnamed = "loss" if unit == "%" else "delay" if unit.lower() in _SECONDS else ""
        name = name or self._name_after(unnamed) or unnamed
        if name == "loss":
            return name, float(_percent(f"{number} {unit}", "loss 1 %") / 100)
        if name == "queue" and unit.lower() not in _SECONDS:
            return name, _size(number, unit)
        if name:
            return name, _duration(number, unit)
        raise BadInput(
            f"`{number} {unit}` in `{self._text}` says nothing of a line: "
            f"write for example {_EXAMPLE} jitter 5 ms loss 1 % queue 1 s."
        )

    def _name_after(self, unnamed: str) -> str:
        """A name behind its value (`40 ms delay`), unless it belongs to the next (`40 ms jitter 5 ms`)."""
        follows = self._left[0][1].lower() if self._left else ""
        bound = len(self._left) > 1 and self._left[1][0] == "number"
        return self._name() if follows == unnamed or not bound else ""

    def _over_gaps(self) -> bool:
        """Past commas; False at the end."""
        while self._left and self._left[0][0] == "gap":
            self._left.pop(0)
        return bool(self._left)

    def _take(self, kind: str) -> str:
        return self._left.pop(0)[1] if self._left and self._left[0][0] == kind else ""

    def _name(self) -> str:
        named = self._left and self._left[0][1].lower() in _OPTIONS
        return self._left.pop(0)[1].lower() if named else ""

    def _way(self) -> str:
        word = self._left[0][1].lower() if self._over_gaps() else ""
        if word not in (*_UP, *_DOWN):
            return ""
        self._left.pop(0)
        return "up" if word in _UP else "down"

    def _unit(self) -> str:
        """The next word, unless it is a direction or an option's name."""
        word = self._left[0][1].lower() if self._left else ""
        return "" if word in (*_UP, *_DOWN, *_OPTIONS) else self._take("word")

    def _number(self) -> str:
        number = self._take("number")
        if not number:
            found = f"before `{self._left[0][1]}`" if self._left else "at its end"
            raise BadInput(f"`{self._text}` lacks a number {found}: write for example {_EXAMPLE}.")
        return number


def _tokens(text: str, example: str) -> list[Token]:
    text = text.replace(NBSP, " ").replace("\u202f", " ").strip()
    apart = re.search(r"[0-9]{1,3}(?: [0-9]{3})+(?![0-9])", text)
    if apart:
        raise BadInput(f"`{apart[0]}` has gaps: write {apart[0].replace(' ', '')}.")
    if not text:
        raise BadInput(f"there is nothing here: write for example {example}.")
    found, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if not match:
            raise BadInput(f"`{text[place]}` in `{text}` says nothing here: write for example {example}.")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        place = match.end()
    return found


def _decimal(number: str) -> Decimal:
    if re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{3})+", number):
        plain = number.replace(",", "")
        raise BadInput(f"{number} or {number.replace(',', '.')}? Write {plain}.")
    if "," in number and number.count(",") == 1:
        raise BadInput(f"`{number}`: the decimal sign is a point: write {number.replace(',', '.')}.")
    if not re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", number):
        raise BadInput(f"`{number}` is no number: write it without signs between thousands, as in 1024.")
    return Decimal(number)


def _bits(number: str, unit: str) -> int:
    value = _decimal(number)
    if match := _BINARY.fullmatch(unit):
        bits = value * _BINARY_POWERS[match["prefix"].lower()]
        bits *= 8 if (match["what"] or "b") in ("B", "byte", "bytes") else 1
        raise BadInput(f"{number} {unit}: Ki is 1024, and rates count in 1000: write {_rate_exact(bits)}.")
    if match := _BYTES.fullmatch(unit):
        right = _rate_exact(value * _power(match) * 8)
        raise BadInput(f"{number} {unit} are bytes, and a rate is in bits: write {right}.")
    match = _BITS.fullmatch(unit)
    if not match or not unit:
        raise BadInput(f"`{unit}` is no unit of a rate: write for example {number} kbit/s.")
    bps = round(value * _power(match))
    if bps < 1:
        raise BadInput(
            f"a rate of {number} {unit} lets nothing through: write 1 kbit/s or more, or `as it is`."
        )
    if bps > MAX_BPS:
        raise BadInput(f"{number} {unit} is above any line: write {_rate_exact(Decimal(MAX_BPS))} or less.")
    return bps


def _size(number: str, unit: str) -> int:
    value = _decimal(number)
    if unit == "B":
        return round(value)
    if (match := _BINARY.fullmatch(unit)) and (match["what"] or "B") in ("B", "byte", "bytes"):
        return round(value * _BINARY_POWERS[match["prefix"].lower()])
    if match := _BYTES.fullmatch(unit):
        return round(value * _power(match))
    raise BadInput(f"`{unit}` is no unit of a size: write for example {number} kB.")


def _power(match: re.Match[str]) -> int:
    return _POWERS[str(match["prefix"] or "").lower()]


def _duration(number: str, unit: str) -> float:
    if unit.lower() not in _SECONDS:
        raise BadInput(f"`{unit}` is no unit of a time: write for example {number} ms.")
    return float(_decimal(number) * _SECONDS[unit.lower()])


def _percent(value: object, example: str) -> Decimal:
    tokens = _tokens(value, example) if isinstance(value, str) else []
    if len(tokens) != 2 or tokens[0][0] != "number" or tokens[1][1] != "%":
        raise BadInput(f"`{value}` is no share: write {example}.")
    percent = _decimal(tokens[0][1])
    if percent > 100:
        raise BadInput(f"{percent} % is more than all: write 100 % or less.")
    if percent != round(percent, 3):
        raise BadInput(f"{percent} % is finer than can be told apart: write at most three decimals.")
    return percent


# --- writing


def line_text(line: Line) -> str:
    """The canonical text of a line, which `parse_line` reads back: `64/128 kbit/s 40 ms jitter 5 ms`."""
    if line.upload_bps is None or line.download_bps is None:
        return "as it is"
    power, unit = _common(line.upload_bps, line.download_bps)
    parts = [f"{_exact(line.upload_bps, power)}/{_exact(line.download_bps, power)} {unit}"]
    if line.delay_s:
        parts.append(_time_exact(line.delay_s))
    if line.jitter_s:
        parts.append(f"jitter {_time_exact(line.jitter_s)}")
    if line.loss:
        parts.append(f"loss {_exact(Decimal(repr(line.loss)) * 100)} %")
    if line.queue_bytes is not None:
        parts.append(f"queue {_exact(line.queue_bytes, 1000)} kB")
    if line.queue_s is not None:
        parts.append(f"queue {_time_exact(line.queue_s)}")
    return " ".join(parts)


def line_short(line: Line) -> str:
    """A line's name on an axis and over a column: `64/128` (kbit/s), `1/2 M`, `1/2 M 40 ms`."""
    text = line_text(line)
    for unit, short in ((" kbit/s", ""), (" Mbit/s", " M"), (" Gbit/s", " G")):
        text = text.replace(unit, short, 1)
    return text


def rate_text(bps: float, space: str = " ") -> str:
    """A rate: `128 kbit/s`, `2 Mbit/s`. What was asked (an int) is exact; a measured one has one decimal."""
    if isinstance(bps, int):
        return _rate_exact(Decimal(bps)).replace(" ", space)
    for power, unit in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s")):
        if bps >= power * 0.99995:
            return f"{bps / power:.1f}{space}{unit}"
    return f"{bps:.0f}{space}bit/s"


def rate_short(bps: float) -> str:
    """A rate on a live axis, whose head says bit/s: `256 k`, `1 M`."""
    for power, unit in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if bps >= power:
            return f"{round(bps / power, 2):g}{unit}"
    return f"{bps:g}"


def bytes_text(count: float | None, space: str = " ") -> str:
    """A size with decimal units: `512 bytes`, `12.3 kB`, `3.1 MB`."""
    if count is None:
        return NOTHING
    for power, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= power * 0.99995:
            return f"{count / power:.1f}{space}{unit}"
    return f"{count:.0f}{space}bytes"


def time_text(seconds: float | None, space: str = " ") -> str:
    """A measured time: `210 ms` under a second, `1:02.50`, from one hour `1:00:03`."""
    if seconds is None:
        return NOTHING
    if seconds < 0:
        return f"−{time_text(-seconds, space)}"
    if seconds < 0.9995:
        return f"{seconds * 1000:.1f}{space}ms" if seconds < 0.00995 else f"{seconds * 1000:.0f}{space}ms"
    hundredths = round(seconds * 100)
    if hundredths < 360_000:
        return f"{hundredths // 6000}:{hundredths % 6000 / 100:05.2f}"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def clock_text(seconds: float) -> str:
    """A time to come or on an axis, without hundredths: `0:43`, `12:05`, `1:00:03`."""
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def duration(seconds: float, space: str = " ") -> str:
    """A round duration in words: `40 s`, `12 min`, `6 h 30 min`."""
    return coming_text(seconds, space=space)


def coming_text(low_s: float, high_s: float | None = None, space: str = " ") -> str:
    """A duration to come, as one or as a range: `40 s`, `12 min`, `5 h 40 – 6 h 30 min`."""
    low, high = _coming(low_s), _coming(low_s if high_s is None else high_s)
    if low == high:
        return " ".join(high).replace(" ", space)
    if low[-1] == high[-1] and len(low) == len(high):
        low = low[:-1]
    return f"{' '.join(low)} – {' '.join(high)}".replace(" ", space)


def ratio_text(ratio: float | None) -> str:
    """A ratio in a table: `3.51×`."""
    return NOTHING if ratio is None else f"{ratio:.2f}×"


def ratio_spoken(ratio: float) -> str:
    """A ratio in a sentence: `3.5×`."""
    return f"{ratio:.1f}×"


def percent_text(percent: float, space: str = NBSP) -> str:
    """`90 %`, with a no-break space; in files give an ordinary one."""
    return f"{percent:g}{space}%"


def state_text(state: ProxyState, space: str = NBSP) -> str:
    """A state in words on screen: `disabled`, `90 % full (10 % purged)`, `100 % full`."""
    if state.full is None:
        return "disabled"
    text = f"{percent_text(state.full, space)} full"
    if state.full in (0, 100):
        return text
    return f"{text} ({percent_text(round(100 - state.full, 3), space)} purged)"


def _coming(seconds: float) -> list[str]:
    """Number and unit, coarser the longer it takes."""
    if seconds < 90:
        return [str(round(seconds)), "s"]
    minutes = round(seconds / 60)
    if minutes < 60:
        return [str(minutes), "min"]
    if minutes >= 300:
        minutes = round(minutes / 10) * 10
    return [f"{minutes // 60} h"] if minutes % 60 == 0 else [f"{minutes // 60} h", str(minutes % 60), "min"]


def _common(*rates: int) -> tuple[int, str]:
    """The largest unit in which all rates are short."""
    for power, unit in ((10**9, "Gbit/s"), (10**6, "Mbit/s")):
        if all(bps >= power and bps % (power // 10) == 0 for bps in rates):
            return power, unit
    return (10**3, "kbit/s") if min(rates) >= 1000 else (1, "bit/s")


def _rate_exact(bps: Decimal) -> str:
    power, unit = _common(int(bps)) if bps == int(bps) else (1, "bit/s")
    return f"{_exact(bps, power)} {unit}"


def _time_exact(seconds: float) -> str:
    value = Decimal(repr(seconds))
    return f"{_exact(value)} s" if value >= 1 else f"{_exact(value * 1000)} ms"


def _exact(value: Decimal | float, over: int = 1) -> str:
    """All digits and no others."""
    return f"{(Decimal(str(value)) / over).normalize():f}"
