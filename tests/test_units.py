"""Text to values and back."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import units
from lab.errors import BadInput
from lab.model import AS_IT_IS, DISABLED, Line, ProxyState


def line(up: int, down: int, **more: object) -> Line:
    return Line(upload_bps=up, download_bps=down, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("128 kbit/s", 128_000),
        ("64K", 64_000),
        ("2M", 2_000_000),
        ("64 kbps", 64_000),
        ("64kb/s", 64_000),
        ("1.5 Mbit/s", 1_500_000),
        ("1 Gbit/s", 1_000_000_000),
        ("500 bit/s", 500),
        ("128\u00a0kbit/s", 128_000),
        ("2 megabit/s", 2_000_000),
    ],
)
def test_a_rate_is_decimal_bits_per_second(text: str, bps: int) -> None:
    assert units.rate(text) == bps


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("128 kilobananas", "`kilobananas` is no unit of a rate: write for example 128 kbit/s"),
        ("1,024 kbit/s", "1,024 or 1.024? Write 1024."),
        ("1,5 Mbit/s", "write 1.5"),
        ("1 024 kbit/s", "write 1024"),
        ("1'024 kbit/s", "as in 1024"),
        ("0 kbit/s", "a rate of 0 kbit/s lets nothing through"),
        ("0.0001 bit/s", "lets nothing through"),
        ("128 kB/s", "are bytes, and a rate is in bits: write 1024 kbit/s"),
        ("2 MB/s", "write 16 Mbit/s"),
        ("128 kilobytes/s", "write 1024 kbit/s"),
        ("64 Kib", "write 65.536 kbit/s"),
        ("64 KiB/s", "write 524.288 kbit/s"),
        ("128", "128 of what? Write 128 kbit/s"),
        ("9000 Gbit/s", "above any line"),
        ("fast", "write for example 128 kbit/s"),
        ("", "write for example 128 kbit/s"),
        ("-5 kbit/s", "write for example 128 kbit/s"),
    ],
)
def test_a_wrong_rate_is_told_what_to_write(text: str, told: str) -> None:
    with pytest.raises(BadInput) as error:
        units.rate(text)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("64/128 kbit/s", line(64_000, 128_000)),
        ("64 kbit/s / 128 kbit/s", line(64_000, 128_000)),
        ("64k/128", line(64_000, 128_000)),
        ("512 kbit/s/1 Mbit/s", line(512_000, 1_000_000)),
        ("2M/4M 40 ms", line(2_000_000, 4_000_000, delay_s=0.04)),
        ("1/2 Mbit/s 40 ms", line(1_000_000, 2_000_000, delay_s=0.04)),
        ("128 kbit/s down 64 kbit/s up", line(64_000, 128_000)),
        ("up 64, down 128 kbit/s", line(64_000, 128_000)),
        (
            "64/128 kbit/s 40 ms jitter 5 ms loss 1 % queue 1 s",
            line(64_000, 128_000, delay_s=0.04, jitter_s=0.005, loss=0.01, queue_s=1.0),
        ),
        ("64/128 kbit/s jitter 5 ms delay 40 ms", line(64_000, 128_000, delay_s=0.04, jitter_s=0.005)),
        (
            "64/128 kbit/s, 40 ms delay, 5 ms jitter, 1 % loss",
            line(64_000, 128_000, delay_s=0.04, jitter_s=0.005, loss=0.01),
        ),
        ("64/128 kbit/s queue 100 kB", line(64_000, 128_000, queue_bytes=100_000)),
        ("As  it is", AS_IT_IS),
    ],
)
def test_a_line_is_understood(text: str, expected: Line) -> None:
    parsed = units.parse_line(text)
    assert parsed.line == expected
    assert parsed.warnings == ()


def test_the_larger_one_first_draws_a_warning() -> None:
    parsed = units.parse_line("128/64 kbit/s")
    assert (parsed.line.upload_bps, parsed.line.download_bps) == (128_000, 64_000)
    assert "the first of the two is the upload" in parsed.warnings[0]
    assert units.parse_line("128 kbit/s up 64 kbit/s down").warnings == ()


def test_a_missing_unit_is_read_as_kbit_and_told() -> None:
    parsed = units.parse_line("128 down 64 up")
    assert parsed.line == line(64_000, 128_000)
    assert "read as kbit/s" in parsed.warnings[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("128 kbit/s", "as in 128/128 kbit/s"),
        ("128 kilobananas", "`kilobananas`"),
        ("64/128 kilobananas", "`kilobananas`"),
        ("0/128 kbit/s", "lets nothing through"),
        ("64/128 kB/s", "write 512 kbit/s"),
        ("64/128 kbit/s 40", "40 of what?"),
        ("64/128 kbit/s loss 1", "1 of what?"),
        ("64/128 kbit/s 40 ms 50 ms", "delay twice"),
        ("64/128 kbit/s 40 ms jitter 50 ms", "a jitter of 50 ms needs a delay"),
        ("64/128 kbit/s loss 101 %", "more than all"),
        ("64/128 kbit/s queue 5 bananas", "`bananas`"),
        ("64/128 kbit/s 5 bananas", "says nothing of a line"),
        ("64/128 kbit/s delay 5 bananas", "`bananas` is no unit of a time"),
        ("64/ kbit/s", "lacks a number"),
        ("64/128/256 kbit/s", "lacks a number"),
        ("64 up 128 up", "says up twice"),
        ("64:128", "`:`"),
        ("as it is 40 ms", "lacks a number"),
        ("", "there is nothing here"),
    ],
)
def test_a_wrong_line_is_told_what_to_write(text: str, told: str) -> None:
    with pytest.raises(BadInput) as error:
        units.parse_line(text)
    assert told in str(error.value)
    assert "rite" in str(error.value)


@pytest.mark.parametrize(
    ("value", "text", "short"),
    [
        (line(64_000, 128_000, delay_s=0.04), "64/128 kbit/s 40 ms", "64/128 40 ms"),
        (line(512_000, 1_024_000), "512/1024 kbit/s", "512/1024"),
        (line(1_000_000, 2_000_000), "1/2 Mbit/s", "1/2 M"),
        (line(1_500_000, 16_000_000), "1.5/16 Mbit/s", "1.5/16 M"),
        (line(1_000_000_000, 2_000_000_000), "1/2 Gbit/s", "1/2 G"),
        (line(500, 1_000), "500/1000 bit/s", "500/1000 bit/s"),
        (line(64_500, 128_000, queue_s=0.3), "64.5/128 kbit/s queue 300 ms", "64.5/128 queue 300 ms"),
        (AS_IT_IS, "as it is", "as it is"),
    ],
)
def test_a_line_has_one_text(value: Line, text: str, short: str) -> None:
    assert units.line_text(value) == text
    assert units.line_short(value) == short


seconds = st.floats(min_value=0, max_value=1000, allow_subnormal=False)
lines = st.builds(
    lambda up, down, delays, loss, queue: Line(
        upload_bps=up,
        download_bps=down,
        delay_s=max(delays),
        jitter_s=min(delays),
        loss=loss / 100_000,
        queue_bytes=queue if isinstance(queue, int) else None,
        queue_s=queue if isinstance(queue, float) else None,
    ),
    st.integers(1, units.MAX_BPS),
    st.integers(1, units.MAX_BPS),
    st.tuples(seconds, seconds),
    st.integers(0, 100_000),
    st.none() | st.integers(0, 10**9) | st.floats(min_value=0.001, max_value=100),
)


@given(lines)
def test_every_line_is_read_back_as_it_was_written(value: Line) -> None:
    assert units.parse_line(units.line_text(value)).line == value


@given(st.text(max_size=40))
def test_any_text_is_a_line_or_is_refused_in_words(text: str) -> None:
    with suppress(BadInput):
        assert isinstance(units.parse_line(text).line, Line)


@given(st.integers(1, units.MAX_BPS))
def test_every_asked_rate_is_read_back(bps: int) -> None:
    assert units.rate(units.rate_text(bps)) == bps


def test_states() -> None:
    assert units.parse_state("disabled") == DISABLED
    assert units.parse_state("90 %") == units.parse_state("90%") == ProxyState(full=90)
    assert units.parse_state("37.5\u00a0%") == ProxyState(full=37.5)
    assert units.parse_state({"purge": "10 %"}) == ProxyState(full=90)
    assert units.parse_state({"purge": "62.5 %"}).key == "37.5 %"


@pytest.mark.parametrize(
    "value", ["", "full", 90, None, "90", "101 %", {"purge": 10}, {"fill": "10 %"}, "9.12345 %"]
)
def test_a_wrong_state_is_refused(value: object) -> None:
    with pytest.raises(BadInput, match="write"):
        units.parse_state(value)


@given(st.integers(0, 100_000))
def test_states_are_read_back_by_their_key(thousandths: int) -> None:
    state = ProxyState(full=thousandths / 1000)
    assert units.parse_state(state.key) == state


def test_shares_durations_and_sizes() -> None:
    assert units.parse_share("10 %") == 0.1
    assert units.parse_duration("40 ms") == 0.04
    assert units.parse_duration("2 min") == 120
    assert units.parse_bytes("100 kB") == 100_000
    assert units.parse_bytes("64 KiB") == 65_536
    assert units.parse_bytes("1500 B") == units.parse_bytes("1500 bytes") == 1500
    for reader, text in (
        (units.parse_duration, "40"),
        (units.parse_duration, "soon"),
        (units.parse_bytes, "40 kbit"),
        (units.parse_bytes, "much"),
        (units.parse_share, "ten"),
    ):
        with pytest.raises(BadInput, match="rite"):
            reader(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (0, "0.0 ms"),
        (0.0042, "4.2 ms"),
        (0.2099, "210 ms"),
        (0.9994, "999 ms"),
        (0.9996, "0:01.00"),
        (59.994, "0:59.99"),
        (59.996, "1:00.00"),
        (315.52, "5:15.52"),
        (3599.99, "59:59.99"),
        (3599.996, "1:00:00"),
        (36_603, "10:10:03"),
        (-1.5, "−0:01.50"),
    ],
)
def test_times(seconds: float | None, text: str) -> None:
    assert units.time_text(seconds) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (40, None, "40 s"),
        (30, 50, "30 – 50 s"),
        (700, 1000, "12 – 17 min"),
        (3000, 4200, "50 min – 1 h 10 min"),
        (20_400, 23_400, "5 h 40 – 6 h 30 min"),
        (3600, 3600, "1 h"),
        (80, 200, "80 s – 3 min"),
    ],
)
def test_durations_to_come(low: float, high: float | None, text: str) -> None:
    assert units.coming_text(low, high) == text


def test_bytes_rates_ratios_and_percents() -> None:
    assert [units.bytes_text(n) for n in (None, 512, 999_999, 3_100_000, 2e9)] == [
        "—",
        "512 bytes",
        "1.0 MB",
        "3.1 MB",
        "2.0 GB",
    ]
    assert units.rate_text(121_734.2) == "121.7 kbit/s"
    assert units.rate_text(1_024_000) == "1024 kbit/s"
    assert units.rate_text(999_999.9) == "1.0 Mbit/s"
    assert units.rate_text(12.0) == "12 bit/s"
    assert units.rate_short(256_000) == "256 k"
    assert units.rate_short(1_234_567) == "1.23 M"
    assert units.rate_short(0) == "0"
    assert (units.ratio_text(3.514), units.ratio_text(None), units.ratio_spoken(3.514)) == (
        "3.51×",
        "—",
        "3.5×",
    )
    assert units.percent_text(90) == "90\u00a0%"
    assert units.percent_text(37.5, " ") == "37.5 %"
    assert units.state_text(ProxyState(full=90)) == "90\u00a0% full (10\u00a0% purged)"
    assert units.state_text(ProxyState(full=100), " ") == "100 % full"
    assert units.state_text(DISABLED) == "disabled"
    assert (units.clock_text(43), units.clock_text(3603)) == ("0:43", "1:00:03")
    assert units.duration(60) == "60 s"
