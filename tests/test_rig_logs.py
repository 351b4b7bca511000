"""Access logs as counts: added up as they are read, and told apart by trial."""

from __future__ import annotations

from dataclasses import astuple

from lab.rig.logs import LogCount, Logs

WORD = {
    "offset": 4711, "requests": 155, "hits": 135, "misses": 15, "hit_bytes": 250_000, "miss_bytes": 36_000,
    "other_bytes": 13_000, "by_method": {"GET": 150}, "lines": [],
}  # fmt: skip
COUNT = LogCount(155, 135, 15, 250_000, 36_000, 13_000)


def test_answers_add_up_field_by_field() -> None:
    assert LogCount().plus(WORD) == COUNT
    assert astuple(COUNT.plus(WORD)) == tuple(2 * count for count in astuple(COUNT))


def test_what_came_between_two_readings() -> None:
    assert COUNT.plus(WORD).since(COUNT) == COUNT
    assert Logs(COUNT, COUNT.plus(WORD)).since(Logs(COUNT, COUNT)) == Logs(LogCount(), COUNT)


def test_a_log_that_is_not_ours_stays_unknown() -> None:
    assert Logs(COUNT, None).since(Logs(LogCount(), None)) == Logs(COUNT, None)
    assert Logs(COUNT, None).since(Logs(None, None)) == Logs(None, None)
    assert Logs(COUNT, None).requests() == {"server": 155}
    assert Logs(COUNT, LogCount()).requests() == {"server": 155, "proxy": 0}
    assert Logs(None, None).requests() == {}
