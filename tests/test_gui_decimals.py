"""What people type: a comma is a decimal sign, as a point is; what may mean two things is refused with the cure."""

from __future__ import annotations

import pytest

from gui import decimals
from gui.experiment import typed
from lab import units
from lab.errors import BadInput


@pytest.mark.parametrize(
    ("text", "share"),
    [("37,5", 0.375), ("37.5", 0.375), (" 37,5 % ", 0.375), ("0,125", 0.00125), ("7", 0.07)],
)
def test_a_comma_is_as_good_as_a_point_in_a_share(text: str, share: float) -> None:
    assert decimals.share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["1,024", "37,125 %", "1.000,5", "1,5,2", "ten", "", "-3"])
def test_a_share_of_two_meanings_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"[Ww]rite"):
        decimals.share(text)


@pytest.mark.parametrize("sign", [",", "."])
def test_either_sign_in_every_field_that_takes_a_part(sign: str) -> None:
    assert typed.line(f"1{sign}5/2{sign}5 Mbit/s").line.upload_bps == 1_500_000
    assert typed.time_ms(f"2{sign}5") == 0.0025
    assert typed.price(f"45{sign}90") == 45.9
    assert typed.limit(f"1{sign}5") == "1.5 min"
    assert units.parse_line(decimals.plain(f"1{sign}5M/2M")).line.upload_bps == 1_500_000


def test_thousands_or_a_part_is_asked_not_guessed() -> None:
    for read in (typed.line, typed.price, decimals.share):
        text = "1,024/2 Mbit/s" if read is typed.line else "1,024"
        with pytest.raises(BadInput, match=r"1,024 or 1\.?024"):
            read(text)
    for text in ("2,0", "2.5", "1,000"):
        with pytest.raises(BadInput, match="whole number"):
            typed.whole(text, 1, 10_000)
