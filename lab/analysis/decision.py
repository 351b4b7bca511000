"""What each option costs a month, in time and money: a line, with or without a proxy. Each part of a sum is data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from lab import units
from lab.analysis import line_model, words
from lab.analysis.cells import Cell
from lab.analysis.line_model import Model, Point
from lab.analysis.summary import Summary
from lab.analysis.view import comparable_lines, rate_key
from lab.model import DISABLED, Line, ProxyState

SECONDS = "s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the office says of itself. Money in `currency` a month; None is a price that was not given.

    `per_day` counts operations per person and working day; `hour` is what an hour of waiting costs (0: nothing);
    `full` is how full the cache is in daily use (None: the fullest measured); `wished_s` the longest that an
    operation may take. The cache is filled `nights` times a month, `renewed` of its content each time; `per_gb`
    is what 10⁹ bytes over the line cost (0: nothing).
    """

    people: int = 10
    days: float = 21.0
    per_day: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    currency: str = "EUR"
    hour: float = 0.0
    proxy: float | None = None
    lines: Mapping[Line, float | None] = field(default_factory=lambda: MappingProxyType({}))
    full: float | None = None
    wished_s: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    nights: float = 30.0
    renewed: float = 0.10
    per_gb: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One line of a sum: `count` times `each` is `total`, in seconds or in money; `basis` says whence `each` is.

    `low` and `high` are the ends of `each`'s interval of 95 % where it has one: of a measured time that of its
    geometric mean, of a predicted one that of one more measurement.
    """

    what: str
    count: float
    each: float
    unit: str
    basis: str
    low: float | None = None
    high: float | None = None

    @property
    def total(self) -> float:
        """The product."""
        return self.count * self.each


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A line, with or without the proxy, and the parts of its month; and which times and prices are not known.

    `meets` is True where every wished time is kept, False where one is not, None where nothing was wished.
    """

    line: Line
    proxy: ProxyState
    parts: tuple[Part, ...]
    unknown_times: tuple[str, ...] = ()
    unknown_prices: tuple[str, ...] = ()
    meets: bool | None = None

    @property
    def name(self) -> str:
        """`512/1024 kbit/s with a full cache`."""
        return f"{words.line(self.line)} {words.state(self.proxy)}"

    @property
    def time_s(self) -> float | None:
        """Seconds that all people wait a month; None if an operation's time is not known."""
        if self.unknown_times:
            return None
        return sum(part.total for part in self.parts if part.unit == SECONDS)

    @property
    def money(self) -> float | None:
        """What the option costs a month, waiting included; None if a price or a time is not known."""
        if self.unknown_times or self.unknown_prices:
            return None
        return sum(part.total for part in self.parts if part.unit != SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What keeping the cache full costs on a line: bytes a night, seconds of the whole line, bytes a month."""

    bytes: float
    seconds: float
    month_bytes: float
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """All options of a run, cheapest first where prices are known, else quickest; `cheapest` of those that may be.

    `fullness` has, per line, the waiting of a month by fullness of the cache; None stands for no proxy.
    `saves_from` is how full the cache must be on a line to save time at all, by straight lines between states.
    """

    inputs: Inputs
    options: tuple[Option, ...]
    cheapest: Option | None
    fullness: Mapping[Line, Mapping[float | None, float]]
    saves_from: Mapping[Line, float | None]
    nights: Mapping[Line, Night]


def decided(summary: Summary, inputs: Inputs) -> Decision:
    """What a run (or published figures) says to these inputs. Pure; changes nothing."""
    lines = tuple(sorted(inputs.lines or comparable_lines(summary.started.experiment.lines), key=rate_key))
    states = sorted({cell.proxy for cell in summary.cells if cell.proxy.enabled}, key=lambda s: s.full or 0.0)
    daily = next((state for state in states if state.full == inputs.full), states[-1] if states else None)
    options = [option(summary, inputs, line, DISABLED) for line in lines]
    options += [option(summary, inputs, line, daily) for line in lines if daily is not None]
    ordered = sorted(options, key=_rank)
    allowed = [one for one in ordered if one.meets is not False and one.money is not None]
    fullness = {line: _by_fullness(summary, inputs, line, states) for line in lines}
    return Decision(
        inputs=inputs,
        options=tuple(ordered),
        cheapest=allowed[0] if allowed else None,
        fullness=fullness,
        saves_from={line: _saves_from(times) for line, times in fullness.items()},
        nights={line: one for line in lines if states and (one := night(summary, inputs, line)) is not None},
    )


def option(summary: Summary, inputs: Inputs, line: Line, proxy: ProxyState) -> Option:
    """One line in one state: its month, part by part."""
    parts: list[Part] = []
    times: list[str] = []
    prices: list[str] = []
    keeps: list[bool] = []
    for name, often in inputs.per_day.items():
        each = _time(summary, name, line, proxy)
        if each is None:
            times.append(f"time of {words.operation(name)} {words.state(proxy)} on {words.line(line)}")
            continue
        count = inputs.people * inputs.days * often
        seconds, low, high, basis = each
        parts.append(
            Part(
                what=words.operation(name),
                count=count,
                each=seconds,
                unit=SECONDS,
                basis=basis,
                low=low,
                high=high,
            )
        )
        if name in inputs.wished_s:
            keeps.append(seconds <= inputs.wished_s[name])
    waiting_h = sum(part.total for part in parts) / 3600
    priced = [("the line", inputs.lines.get(line))] + ([("the proxy", inputs.proxy)] if proxy.enabled else [])
    for what, price in priced:
        if price is None:
            prices.append(f"price of {what}")
        else:
            parts.append(
                Part(what=what, count=1, each=price, unit=inputs.currency, basis="price a month, as given")
            )
    filled = night(summary, inputs, line) if proxy.enabled and inputs.per_gb else None
    if filled is not None:
        volume = filled.month_bytes / 1e9
        parts.append(
            Part(
                what="filling by night",
                count=volume,
                each=inputs.per_gb,
                unit=inputs.currency,
                basis=filled.basis,
            )
        )
    if inputs.hour:
        basis = "hours waited, at the price of an hour"
        parts.append(
            Part(what="waiting", count=waiting_h, each=inputs.hour, unit=inputs.currency, basis=basis)
        )
    return Option(
        line=line,
        proxy=proxy,
        parts=tuple(parts),
        unknown_times=tuple(times),
        unknown_prices=tuple(prices),
        meets=all(keeps) if keeps else None,
    )


def _rank(one: Option) -> tuple[bool, float, float]:
    money, time_s = one.money, one.time_s
    return money is None, money or 0.0, float("inf") if time_s is None else time_s


_Time = tuple[float, float | None, float | None, str]
"""Seconds, the interval's ends where it is a prediction, and whence it is."""


def _time(summary: Summary, operation: str, line: Line, proxy: ProxyState) -> _Time | None:
    """Measured; else as the model of a line predicts; else, for what was timed without a proxy only, as there."""
    cell = _cell(summary, operation, line, proxy)
    if cell is not None and cell.median_s is not None:
        basis = "published" if cell.published else f"median of {words.attempts(cell)}"
        return cell.median_s, cell.mean_low_s, cell.mean_high_s, basis
    predicted = _predicted(summary, operation, line, proxy)
    if predicted is not None:
        return predicted
    if proxy.enabled and operation in summary.started.experiment.disabled_only:
        there = _time(summary, operation, line, DISABLED)
        return (*there[:3], f"{there[3]}, as without a proxy: it was timed so only") if there else None
    return None


def _cell(summary: Summary, operation: str, line: Line, proxy: ProxyState) -> Cell | None:
    found = (c for c in summary.cells if (c.operation, c.line, c.proxy) == (operation, line, proxy))
    return next(found, None)


def _model(summary: Summary, operation: str, proxy: ProxyState) -> Model | None:
    return next((one for one in summary.models if (one.operation, one.proxy) == (operation, proxy)), None)


def _predicted(summary: Summary, operation: str, line: Line, proxy: ProxyState) -> _Time | None:
    one = _model(summary, operation, proxy)
    if one is None or line.upload_bps is None or line.download_bps is None or line.loss:
        return None
    found = one.fit.predicted(Point(line.upload_bps, line.download_bps, 2 * line.delay_s))
    if found is None:
        return None
    low, high = (point.download_bps for point in (one.fit.points[0], one.fit.points[-1]))
    beyond = "" if low <= line.download_bps <= high else ", beyond the measured rates"
    return (*found, f"predicted from {len(one.fit.points)} lines{beyond}")


def _by_fullness(
    summary: Summary, inputs: Inputs, line: Line, states: Sequence[ProxyState]
) -> dict[float | None, float]:
    times = {proxy.full: option(summary, inputs, line, proxy).time_s for proxy in (DISABLED, *states)}
    return {full: seconds for full, seconds in times.items() if seconds is not None}


def _saves_from(times: Mapping[float | None, float]) -> float | None:
    """The least fullness, in percent, from which on the proxy saves time; None if it never does."""
    none = times.get(None)
    known = sorted((full, seconds) for full, seconds in times.items() if full is not None)
    if none is None or not known or known[-1][1] >= none:
        return None
    place = known[0][0]
    for (low, slow), (high, fast) in pairwise(known):
        if slow >= none > fast:
            place = low + (high - low) * (slow - none) / (slow - fast)
    return place


def night(summary: Summary, inputs: Inputs, line: Line) -> Night | None:
    """Filling the cache again by night. The content of a whole fill is measured, or fitted to published times."""
    if line.download_bps is None:
        return None
    fill = max((one.fetched_bytes or 0 for one in summary.fills), default=0)
    basis = "of the bytes that the run's fill fetched"
    if not fill:
        fitted = [
            line_model.additive(one.fit.points, relative=False)
            for one in summary.models
            if one.proxy == DISABLED
        ]
        fill = round(max((one.down_bytes for one in fitted if one is not None), default=0.0))
        basis = "of the largest volume fitted to the times"
    if not fill:
        return None
    count = fill * inputs.renewed
    return Night(
        bytes=count,
        seconds=count * 8 / line.download_bps,
        month_bytes=count * inputs.nights,
        basis=f"{words.percent(inputs.renewed)} {basis}, {words.amount(fill)}",
    )


def sentences(found: Decision) -> Iterator[str]:
    """The answer in words."""
    asked, best = found.inputs, found.cheapest
    wish = words.listed(
        [f"{words.operation(name)} within {units.duration(s)}" for name, s in asked.wished_s.items()]
    )
    with_wish = f" that has {wish}" if wish else ""
    if best is not None and best.money is not None:
        yield f"Cheapest{with_wish}: {best.name}, {best.money:.2f} {asked.currency} a month, {_waits(best)} of waiting."
    elif asked.wished_s and not any(one.meets for one in found.options):
        yield f"No option has {wish}."
    else:
        quickest = min(
            (one for one in found.options if one.time_s is not None and one.meets is not False),
            key=lambda one: one.time_s or 0.0,
            default=None,
        )
        if quickest is not None:
            told = f"{quickest.name}, {_waits(quickest)} of waiting a month"
            yield f"Quickest{with_wish}: {told}. Prices are not all given."
    for line in found.fullness:
        yield from _pays(found, line)


def _pays(found: Decision, line: Line) -> Iterator[str]:
    """What the proxy saves and costs on one line."""
    both = {one.proxy.enabled: one for one in found.options if one.line == line}
    times = [both[enabled].time_s for enabled in (False, True)] if len(both) == 2 else [None, None]
    if times[0] is None or times[1] is None:
        return
    saved = times[0] - times[1]
    time = f"{units.duration(abs(saved))} of waiting a month {'less' if saved >= 0 else 'more'}"
    with_proxy, without = both[True].money, both[False].money
    if with_proxy is None or without is None:
        yield f"On {words.line(line)} the proxy means {time}."
        return
    gain = without - with_proxy
    verdict = "it pays" if gain > 0 else "it does not pay"
    yield (
        f"On {words.line(line)} {verdict}: {time}, and {abs(gain):.2f} {found.inputs.currency} "
        f"{'less' if gain > 0 else 'more'} in all."
    )


def _waits(one: Option) -> str:
    return "an unknown time" if one.time_s is None else units.duration(one.time_s)
