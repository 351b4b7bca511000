"""How values are written on screen."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtGui import QFontMetrics, QTextLayout

from gui import words
from gui.app import application_made
from gui.results.answers import brief, whole
from gui.theme.look import Look
from lab.axis import log_ticks, ticks, time_label, time_ticks
from lab.model import AS_IT_IS, Line, ProxyState

NB = words.NBSP


def line(up: int, down: int, **more: float) -> Line:
    return Line(upload_bps=up, download_bps=down, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.0625, f"62{NB}ms"),
        (0.9999, "0:01.00"),
        (89.99, "1:29.99"),
        (59.999, "1:00.00"),
        (3725.4, "1:02:05"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.31, f"310{NB}ms"), (2.04, "0:02.0"), (43.4, "0:43"), (3599.6, "1:00:00")]
)
def test_what_is_expected(seconds: float, text: str) -> None:
    assert words.roughly(seconds) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (41, 52, f"40–50{NB}s"),
        (0, 0, f"0–5{NB}s"),
        (190, 230, f"3–4{NB}min"),
        (8400, 9900, f"2{NB}h{NB}20 – 2{NB}h{NB}45{NB}min"),
        (2000, 3700, f"35 – 1{NB}h{NB}00{NB}min"),
    ],
)
def test_what_is_to_go(low: float, high: float, text: str) -> None:
    assert words.span(low, high) == text


@pytest.mark.parametrize(
    ("value", "name", "tick"),
    [
        (line(64_000, 128_000), f"64/128{NB}kbit/s", "64/128"),
        (line(512_000, 1_024_000), f"512/1024{NB}kbit/s", "512/1024"),
        (line(1_000_000, 2_000_000), f"1/2{NB}Mbit/s", f"1/2{NB}M"),
        (line(1_500_000, 10_000_000), f"1.5/10{NB}Mbit/s", f"1.5/10{NB}M"),
        (AS_IT_IS, "as it is", "as it is"),
    ],
)
def test_lines(value: Line, name: str, tick: str) -> None:
    assert words.line(value) == name
    assert words.tick(value) == tick


def test_what_else_a_line_does() -> None:
    assert words.extras(line(1, 1)) == "no added delay, jitter or loss"
    told = words.extras(line(1, 1, delay_s=0.04, loss=0.01))
    assert told == f"40{NB}ms delay, 1{NB}% loss"


def test_states() -> None:
    assert words.state(ProxyState(full=None), full=True) == "disabled"
    assert words.state(ProxyState(full=37.5)) == f"37.5{NB}%"
    assert words.cache(ProxyState(full=90)) == f"cache 90{NB}%{NB}full"


@pytest.mark.parametrize(("bps", "text"), [(0, "0"), (96_400, f"96{NB}k"), (2_140_000, f"2.14{NB}M")])
def test_rates(bps: float, text: str) -> None:
    assert words.rate(bps) == text


def test_zero_bytes_are_a_zero_and_few_are_not() -> None:
    assert words.megabytes(0) == "0"
    assert words.megabytes(300) == "0.0003"
    assert words.megabytes(5_040_000) == "5.0"


def test_axes_begin_at_zero_and_reach_the_top() -> None:
    for top in (0.013, 0.4, 1.2, 7.0, 95.0, 320.0, 9000.0):
        found = time_ticks(top)
        assert found[0] == 0
        assert top <= found[-1] <= 2.5 * top
        assert len(found) <= 9
    assert ticks(4.9, 4)[-1] >= 4.9


def test_log_axis_has_round_times_only() -> None:
    assert log_ticks(17.0, 400.0) == [20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 300.0]
    found = log_ticks(0.15, 9.0)
    assert 3 <= len(found) <= 8
    assert found == sorted(found)


def test_axis_times() -> None:
    assert time_label(0, 60) == "0:00"
    assert time_label(0.5, 1.5) == f"0.5{NB}s"
    assert time_label(0.5) == f"500{NB}ms"
    assert time_label(90, 120) == "1:30"


def test_an_answer_without_what_it_rests_on() -> None:
    text = "Get takes 402 ms on 512/1024 kbit/s (medians of 3 kept attempts, ranges 1–2). So 97 % (3 of 4)."
    glue = "\N{ZERO WIDTH NO-BREAK SPACE}"
    told = f"Get takes 402{NB}ms on 512/1024{NB}kbit/{glue}s. So 97{NB}% (3 of 4)."
    assert brief(text) == told
    assert whole("Undo Check-Out") == f"Undo Check-{glue}Out"


def test_what_keeps_figures_together_leaves_lines_as_high_as_they_are() -> None:
    application_made([])
    look = Look("light")
    high = [QFontMetrics(look.font(12)).lineSpacing()]
    for text in ("512/1024 kbit/s", "Check-Out and Check-In", "90 %"):
        layout = QTextLayout(whole(text), look.font(12))
        layout.beginLayout()
        row = layout.createLine()
        row.setLineWidth(1000)
        high.append(round(row.height()))
        layout.endLayout()
    assert len(set(high)) == 1, "a sign from another font makes lines of other heights"


def test_when() -> None:
    assert words.when("nonsense") == "nonsense"
    told = words.when("2026-06-03T09:12:00+00:00", "2026-06-03T09:14:00+00:00")
    assert "June 2026" in told
    assert "–" in told


def test_of_many_hosts_the_first_are_named() -> None:
    assert words.hosts("desk-1") == "desk-1"
    assert words.hosts("a, b, c") == "a, b, c"
    assert words.hosts("a, b, c, d") == "a, b and 2 more"
