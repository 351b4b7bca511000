"""Lines to begin with: each can be written into a profile and held by a kernel."""

from __future__ import annotations

import pytest

from lab import presets, profile_shape, units
from lab.model import AS_IT_IS, Line


def test_every_preset_is_what_a_profile_accepts() -> None:
    found = presets.presets()
    assert [one.name for one in found][:2] == ["published", "adsl"]
    assert len({one.name for one in found}) == len(found)
    for one in found:
        assert one.title
        assert one.text
        for line in one.lines:
            assert profile_shape._line(units.line_text(line)).line == line


def test_the_published_six_are_those_of_the_test() -> None:
    (published,) = (one for one in presets.presets() if one.name == "published")
    assert [(line.upload_bps, line.download_bps) for line in published.lines] == [
        (64_000 * 2**n, 128_000 * 2**n) if n < 3 else pair
        for n, pair in enumerate(
            [(), (), (), (512_000, 1_024_000), (1_000_000, 2_000_000), (2_000_000, 4_000_000)]
        )
    ]


def test_no_delay_is_below_what_light_needs() -> None:
    kinds = {one.name: one for one in presets.presets()}
    assert all(line.delay_s >= 2 * 35_786e3 / 299_792_458 for line in kinds["satellite"].lines)
    london_new_york, london_sydney = kinds["intercontinental"].lines
    assert london_new_york.delay_s >= 5_570e3 / 2e8
    assert london_sydney.delay_s >= 17_000e3 / 2e8


def test_upload_is_varied_alone() -> None:
    line = units.parse_line("1/8 Mbit/s 12 ms queue 300 ms").line
    lines = presets.does_upload_matter(line).lines
    assert [one.upload_bps for one in lines] == [1_000_000, 2_000_000, 4_000_000, 8_000_000]
    assert {(one.download_bps, one.delay_s, one.queue_s) for one in lines} == {(8_000_000, 0.012, 0.3)}


def test_a_slow_line_has_fewer_uploads_and_each_once() -> None:
    lines = presets.does_upload_matter(Line(upload_bps=8_000, download_bps=20_000)).lines
    assert [one.upload_bps for one in lines] == [8_000, 10_000, 20_000]
    assert all(one.upload_bps % 8 == 0 for one in lines)


def test_the_line_as_it_is_has_nothing_to_divide() -> None:
    with pytest.raises(ValueError, match="no rate"):
        presets.does_upload_matter(AS_IT_IS)
