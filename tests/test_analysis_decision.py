"""The decision: sums that can be followed, recomputed here by hand; inputs that people edit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_testbed import FakeTestbed, experiment
from runs_made import FAST, SLOW, events

from lab.__main__ import cli
from lab.analysis import inputs, published
from lab.analysis.decision import SECONDS, Inputs, decided, night, option
from lab.analysis.summary import Summary, summarised
from lab.errors import BadInput
from lab.model import DISABLED, Line, ProxyState

FULL, NINETY, EMPTY = ProxyState(full=100), ProxyState(full=90), ProxyState(full=0)
OLD = Line(upload_bps=64_000, download_bps=128_000)
WIDER = Line(upload_bps=256_000, download_bps=512_000)


@pytest.fixture(scope="module")
def told() -> Summary:
    return published.summary("published-2008")


def asked(**more: object) -> Inputs:
    given = {
        "people": 10, "days": 20.0, "per_day": {"get": 2.0, "history": 1.0}, "hour": 30.0, "proxy": 50.0,
        "lines": {OLD: 20.0, WIDER: 100.0}, **more,
    }  # fmt: skip
    return Inputs(**given)  # type: ignore[arg-type]


def test_the_sum_is_that_of_a_pocket_calculator(told: Summary) -> None:
    one = option(told, asked(), OLD, FULL)
    waiting = 10 * 20 * 2 * 89.99 + 10 * 20 * 1 * 96.80
    assert one.time_s == pytest.approx(waiting)
    assert one.money == pytest.approx(20 + 50 + 30 * waiting / 3600)
    assert [(part.what, part.unit) for part in one.parts] == [
        ("Get", SECONDS), ("History", SECONDS), ("the line", "EUR"), ("the proxy", "EUR"), ("waiting", "EUR"),
    ]  # fmt: skip
    assert one.time_s == sum(part.count * part.each for part in one.parts if part.unit == SECONDS)
    assert one.parts[1].basis == "published, as without a proxy: it was timed so only"


def test_the_cheapest_is_that_which_keeps_the_wish(told: Summary) -> None:
    costs = {}
    for line, price, get, history, proxy in (
        (OLD, 20, 315.52, 96.80, None), (OLD, 20, 89.99, 96.80, 50), (WIDER, 100, 79.51, 25.71, None),
        (WIDER, 100, 39.97, 25.71, 50),
    ):  # fmt: skip
        hours = (400 * get + 200 * history) / 3600
        costs[line, proxy is not None] = price + (proxy or 0) + 30 * hours
    found = decided(told, asked())
    assert found.cheapest is not None
    least = min(costs, key=lambda key: costs[key])
    assert (found.cheapest.line, found.cheapest.proxy.enabled) == least
    assert found.cheapest.money == pytest.approx(costs[least])
    assert [one.money for one in found.options] == pytest.approx(sorted(costs.values()))
    free = decided(told, asked(hour=0.0))
    assert free.cheapest is not None
    assert free.cheapest.name == "64/128 kbit/s without a proxy"
    wished = decided(told, asked(hour=0.0, wished_s={"get": 100.0}))
    assert wished.cheapest is not None
    assert wished.cheapest.name == "64/128 kbit/s with a full cache"
    assert decided(told, asked(wished_s={"get": 1.0})).cheapest is None


def test_without_a_price_there_is_time_and_no_money(told: Summary) -> None:
    found = decided(told, inputs.assumed(told))
    assert found.cheapest is None
    assert all(one.money is None and one.time_s is not None for one in found.options)
    assert found.options[0].unknown_prices == ("price of the line", "price of the proxy")
    times = [one.time_s or 0 for one in found.options]
    assert times == sorted(times)


def test_fullness_is_weighed_and_the_proxy_saves_from_some_of_it_on(told: Summary) -> None:
    found = decided(told, asked(per_day={"get": 1.0}))
    times = found.fullness[OLD]
    assert times == pytest.approx({None: 63104.0, 0.0: 64524.0, 90.0: 20142.0, 100.0: 17998.0})
    # On a straight line from 322.62 s empty to 100.71 s at 90 %, 315.52 s is reached at 2.9 %.
    assert found.saves_from[OLD] == pytest.approx(90 * (322.62 - 315.52) / (322.62 - 100.71))
    fast = Line(upload_bps=2_000_000, download_bps=4_000_000)
    late = decided(told, asked(per_day={"get": 1.0}, lines={fast: 1.0}, full=90.0))
    assert late.saves_from[fast] == pytest.approx(90 + 10 * (21.95 - 20.93) / (21.95 - 20.71))
    assert {one.proxy for one in late.options} == {DISABLED, NINETY}


def test_a_line_that_was_not_measured_is_predicted_with_an_interval(told: Summary) -> None:
    between = Line(upload_bps=192_000, download_bps=384_000)
    one = option(told, asked(lines={between: 50.0}), between, FULL)
    get = one.parts[0]
    assert get.basis == "predicted from 6 lines"
    assert get.low is not None
    assert get.high is not None
    assert 39.97 < get.each < 53.38
    assert get.low < get.each < get.high
    beyond = Line(upload_bps=10_000_000, download_bps=20_000_000)
    assert "beyond the measured rates" in option(told, asked(), beyond, FULL).parts[0].basis


def test_what_is_not_known_is_named_and_nothing_is_made_up() -> None:
    summary = summarised(events(experiment(operations=("get",))))
    elsewhere = Line(upload_bps=100_000, download_bps=200_000)
    one = option(summary, asked(), elsewhere, FULL)  # two lines leave no residual, so nothing is predicted
    assert one.unknown_times[0] == "time of Get with a full cache on 100/200 kbit/s"
    assert (one.time_s, one.money) == (None, None)


def test_the_night_is_that_of_the_run_s_own_fill(told: Summary) -> None:
    summary = summarised(events(experiment()))
    fill = max(one.fetched_bytes for one in summary.fills)
    one = night(summary, asked(renewed=0.2, nights=10.0), SLOW)
    assert one is not None
    assert (one.bytes, one.seconds) == pytest.approx((0.2 * fill, 0.2 * fill * 8 / 1_024_000))
    assert one.month_bytes == pytest.approx(10 * 0.2 * fill)
    fitted = night(told, asked(), OLD)
    assert fitted is not None
    assert fitted.bytes == pytest.approx(0.10 * 4.92e6, rel=0.01)
    assert "fitted" in fitted.basis
    parts = option(told, asked(per_gb=8.0), OLD, FULL).parts
    (filling,) = [part for part in parts if part.what == "filling by night"]
    assert filling.total == pytest.approx(8.0 * fitted.month_bytes / 1e9)
    assert not [p for p in option(told, asked(per_gb=8.0), OLD, DISABLED).parts if p.what == filling.what]


def test_inputs_are_read_back_as_they_were_written(told: Summary) -> None:
    whole = asked(wished_s={"get": 60.0}, full=90.0, renewed=0.25, per_gb=3.5)
    assert inputs.read(inputs.text(whole), "office.toml") == whole
    again = inputs.read(inputs.text(inputs.assumed(told)), "office.toml")
    assert (again.per_day, again.lines, again.proxy) == (inputs.assumed(told).per_day, {}, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("people = 0", "people: `0` is no number of people"),
        ("proxy = -1", "proxy: `-1` is no number from 0 on"),
        ("hour = nan", "hour"),
        ("days = true", "days"),
        ("persons = 3", "persons: unknown; write one of currency, people"),
        ("[per_day]\nfetch = 1", "unknown operation `fetch`"),
        ('[lines]\n"64/128 kilobananas" = 3', "kilobananas"),
        ('[lines]\n"as it is" = 3', "has no rate"),
        ('[lines]\n"1/2 Mbit/s" = 3\n"1000/2000 kbit/s" = 4', "stands there twice"),
        ("[wished]\nget = 60", "write for example"),
        ('renewed = "lots"', "renewed"),
        ("per_day = 3", "this is a table"),
        ("people", "office.toml"),
        ("people = 3", "nothing is done"),
        ("currency = 3", "is no currency"),
        ('full = "disabled"', "how full"),
    ],
)
def test_wrong_inputs_are_refused_with_the_place_and_the_cure(text: str, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        inputs.read(text, "office.toml")
    assert words in str(refused.value)
    assert str(refused.value).startswith("office.toml")


OFFICE = """
people = 25
hour = 40
proxy = 90
[per_day]
get = 2
history = 1
[lines]
"512/1024 kbit/s" = 40
"2/4 Mbit/s" = 200
[wished]
get = "40 s"
"""


def call(*words: str) -> str:
    found = CliRunner().invoke(cli, ["decide", *words])
    assert found.exit_code == 0, found.output
    return found.stdout


def test_the_command_line_tells_sum_and_answer(tmp_path: Path) -> None:
    file = tmp_path / "office.toml"
    file.write_text(OFFICE)
    shown = call("published-2008", "--inputs", str(file))
    told = json.loads(call("published-2008", "--inputs", str(file), "--json"))
    best = told["cheapest"]
    assert shown.startswith(f"Cheapest that has Get within 40 s: {best['line']} with")
    assert f"{best['money']:.2f} EUR a month" in shown
    assert best["meets"] is True
    assert all(one["total"] == pytest.approx(one["count"] * one["each"]) for one in best["parts"])
    money = [one["total"] for one in best["parts"] if one["unit"] == "EUR"]
    assert sum(money) == pytest.approx(best["money"])
    assert "assumed" not in shown


def test_without_inputs_they_are_assumed_and_said_to_be(tmp_path: Path) -> None:
    shown = call("published-2008")
    assert "These inputs are assumed, not yours." in shown
    file = tmp_path / "again.toml"
    file.write_text(shown[shown.index("currency = ") :])
    assert call("published-2008", "--inputs", str(file)).startswith("Quickest: 2/4 Mbit/s with a full cache")


def test_what_cannot_be_read_or_decided_is_bad_input(tmp_path: Path) -> None:
    for words in (("published-2008", "--inputs", str(tmp_path / "none.toml")), ("nothing-like-it",)):
        assert CliRunner().invoke(cli, ["decide", *words]).exit_code != 0


def test_a_run_of_one_s_own_is_decided_too(tmp_path: Path) -> None:
    from lab import runner, store
    from lab.stop import Stop

    path = tmp_path / "run.branchlab"
    for _ in store.recorded(runner.run(experiment(), FakeTestbed(samples=1), Stop()), path):
        pass
    told = json.loads(call(str(path), "--json"))
    assert {one["line"] for one in told["options"]} == {"512/1024 kbit/s", "2/4 Mbit/s"}
    assert all(one["time_s"] for one in told["options"])
    assert told["nights"][0]["bytes"] > 0
    assert {SLOW, FAST} == set(inputs.assumed(summarised(events(experiment()))).lines)


def test_prices_that_the_profile_gave_are_the_first_inputs() -> None:
    priced = experiment(prices=(20.0, None))
    found = inputs.assumed(summarised(events(priced)))
    assert found.lines == {SLOW: 20.0, FAST: None}
