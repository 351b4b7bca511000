"""How long a plan will take: from an earlier run, from what is published, from its volume; and by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_testbed import FakeTestbed, small

from lab import runner, store
from lab.analysis import forecast
from lab.model import DISABLED, Experiment, Line, ProxyState
from lab.stop import Stop

SLOW, FAST = Line(upload_bps=64_000, download_bps=128_000), Line(upload_bps=2_000_000, download_bps=4_000_000)
FULL = ProxyState(full=100)


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path))


def asked(**changes: object) -> Experiment:
    fields: dict[str, object] = {"name": "x", "lines": (SLOW, FAST), "states": (DISABLED, FULL), **changes}
    return Experiment(**fields)  # type: ignore[arg-type]


def test_from_volume_the_lines_differ_as_their_rates_do() -> None:
    experiment = asked(operations=("get",), states=(DISABLED,))
    found = forecast.forecast(experiment, forecast.basis(experiment))
    assert found is not None
    assert found.low_s < found.high_s
    assert found.lines[SLOW] > 10 * found.lines[FAST]
    assert "a rough guess from the 600.0 kB" in found.basis
    assert sum(found.lines.values()) == pytest.approx((found.low_s + found.high_s) / 2)


def test_the_data_of_2008_takes_what_is_published_for_it() -> None:
    experiment = asked(
        data="2008", operations=("get",), states=(DISABLED,), lines=(SLOW,), attempts=1, warm_up=0
    )
    found = forecast.forecast(experiment, forecast.basis(experiment))
    assert found is not None
    assert found.low_s < 315.52 < found.high_s  # Get over 64/128 kbit/s without the proxy
    assert "as published in 2008" in found.basis


def test_a_line_that_was_not_published_is_scaled_and_another_state_is_as_the_nearest() -> None:
    one = {"data": "2008", "operations": ("get",), "attempts": 1, "warm_up": 0}
    half = Line(upload_bps=32_000, download_bps=64_000)
    known = forecast.basis(asked(**one))

    def takes(line: Line, state: ProxyState) -> float:
        found = forecast.forecast(asked(**one, lines=(line,), states=(state,)), known)
        assert found is not None
        return found.high_s - forecast.EACH_S

    assert takes(half, DISABLED) == pytest.approx(2 * takes(SLOW, DISABLED))
    assert takes(SLOW, ProxyState(full=80)) == pytest.approx(takes(SLOW, ProxyState(full=90)))
    assert takes(Line(upload_bps=None, download_bps=None), DISABLED) < takes(FAST, DISABLED) * 1.001


def test_an_earlier_run_of_the_same_data_is_learned_from() -> None:
    experiment = small()
    for _ in store.recorded(runner.run(experiment, FakeTestbed(), Stop()), store.new_path("earlier")):
        pass
    found = forecast.forecast(experiment, forecast.basis(experiment))
    assert found is not None
    assert "estimated from run " in found.basis
    more = forecast.forecast(small(attempts=6), forecast.basis(experiment))
    assert more is not None
    assert more.low_s == pytest.approx(2 * found.low_s)
    wider = small(operations=("get", "diff", "history"))
    unsure = forecast.forecast(wider, forecast.basis(wider))
    assert unsure is not None
    assert unsure.high_s / unsure.low_s > found.high_s / found.low_s  # it has cells that were not measured
    other = small(data="2008")
    assert "published" in getattr(forecast.basis(other), "text", "")


def test_of_a_repository_as_it_is_nothing_is_known() -> None:
    experiment = asked(data=None, repository="http://svn.example.com/svn/trunk")
    assert forecast.basis(experiment) is None
    assert forecast.forecast(experiment, None) is None
    assert forecast.basis(asked(data="unheard-of")) is None


def test_several_clients_share_the_line_and_an_earlier_run_is_of_as_many() -> None:
    one, three = small(operations=("get",)), small(operations=("get",), clients=3)
    basis = forecast.basis(one)
    alone, together = forecast.forecast(one, basis), forecast.forecast(three, basis)
    assert alone is not None
    assert together is not None
    assert together.low_s == pytest.approx(alone.low_s)
    assert together.high_s == pytest.approx(3 * alone.high_s)
    assert together.basis.endswith("; from one to 3 times that, since 3 clients share the line")
    for earlier, other in ((one, three), (three, None)):
        for _ in store.recorded(runner.run(earlier, FakeTestbed(), Stop()), store.new_path("earlier")):
            pass
        found = forecast.forecast(earlier, forecast.basis(earlier))
        assert found is not None
        assert found.basis.startswith("estimated from run")
        assert "times that" not in found.basis
        assert other is None or "estimated from run" not in getattr(forecast.basis(other), "text", "")
