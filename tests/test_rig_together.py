"""Several clients at one moment: clocks compared, one time made of several, each one's own kept."""

from __future__ import annotations

from typing import Any

import pytest
from stand_in_hosts import agent, connected

from lab.model import Role
from lab.rig import together
from lab.rig.hosts import Connected
from lab.rig.together import Clock, Part
from lab.rig.workplace import Job
from lab.stop import Stop
from lab.vcs import Command, Phase


def desk(name: str, verbs: Any = None) -> Connected:
    return connected(name, Role.CLIENT, verbs)


def job(name: str) -> Job:
    return Job(desk(name), Command(phase=Phase.TIMED, on="client", verb="command", args={"argv": ["svn"]}))


def word(began: float, wall_s: float, status: int = 0, **more: Any) -> dict[str, Any]:
    times = {"user_s": 0.5, "system_s": 0.25, "peak_kib": 1000 + round(wall_s)}
    ended = {"exit": status, "signal": None, "timed_out": False, "tail": f"{began}"}
    return {"began": began, "wall_s": wall_s, **times, **ended, **more}


def test_one_clock_alone_is_not_asked_for() -> None:
    assert together.clocks([desk("one")], Stop()) == {}
    assert together.moment({}) == {}


def test_the_quickest_of_some_answers_tells_how_far_a_clock_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    delays = iter([0.4, 0.02, 0.4, 0.4, 0.4])

    def tell(_: dict[str, Any]) -> dict[str, Any]:
        delay = next(delays)
        now[0] += delay
        read = now[0] + 5000  # at the very end of what it took: as wrong as it may be
        return {"monotonic_s": read}

    monkeypatch.setattr(together, "monotonic", lambda: now[0])
    other = desk("b", {"clock": lambda _: {"monotonic_s": now[0]}})
    found = together.clocks([desk("a", {"clock": tell}), other], Stop())
    assert found["a"].error_s == pytest.approx(0.01)
    assert found["a"].offset_s == pytest.approx(5000, abs=found["a"].error_s + 1e-9)
    assert found["b"] == Clock(0.0, 0.0)
    assert len(agent(other).args("clock")) == together.ASKED


def test_all_are_told_the_same_moment_each_on_its_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "monotonic", lambda: 100.0)
    at = together.moment({"near": Clock(5000.0, 0.001), "far": Clock(-20.0, 0.25)})
    assert at["near"] - 5000 == pytest.approx(at["far"] + 20)
    assert at["near"] - 5000 == pytest.approx(100 + together.LEAD_S + 8 * 0.25)


def test_a_trials_time_is_from_the_first_start_to_the_last_end() -> None:
    clocks = {"a": Clock(0.0, 0.001), "b": Clock(1000.0, 0.002), "c": Clock(-50.0, 0.004)}
    words = {"a": word(100.010, 3.0), "b": word(1100.000, 5.0), "c": word(50.030, 4.99)}
    done = together.parts([job("a"), job("b"), job("c")], words, clocks)
    assert [part.host for part in done] == ["a", "b", "c"]
    assert [part.started_s for part in done] == pytest.approx([0.010, 0.0, 0.030])
    assert [part.error_s for part in done] == pytest.approx([0.003, 0.0, 0.006])
    one = together.joined(done)
    assert one["wall_s"] == pytest.approx(5.02)  # c began last and ended last, though b took longest
    assert (one["user_s"], one["system_s"], one["peak_kib"]) == (1.5, 0.75, 1005)
    assert (one["exit"], one["tail"]) == (0, "50.03")
    assert together.spread_s(done) == pytest.approx((0.030, 0.006))


def test_the_first_failure_is_what_the_trial_says() -> None:
    words = {"a": word(1.0, 9.0), "b": word(1.0, 1.0, 1), "c": word(1.0, 2.0, 0, timed_out=True)}
    done = together.parts([job("a"), job("b"), job("c")], words, {name: Clock() for name in "abc"})
    assert [part.ok for part in done] == [True, False, False]
    assert together.joined(done)["exit"] == 1
    assert together.joined(done)["wall_s"] == 9.0
    kept = together.told(done, {"a": {"server>client": 7}})
    assert [(one.host, one.ok, one.exit_status, one.bytes) for one in kept] == [
        ("a", True, 0, {"server>client": 7}), ("b", False, 1, {}), ("c", False, 0, {}),
    ]  # fmt: skip


def test_of_one_client_everything_is_as_its_word_says() -> None:
    only = together.parts([job("a")], {"a": word(7.0, 2.5)}, {})
    assert together.joined(only) == word(7.0, 2.5)
    assert only == (Part("a", True, word(7.0, 2.5), 0.0, 0.0),)
    assert together.told(only, {}) == ()
