"""Each thing that a trial must prove about itself can fail, alone, and says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lab.events import Proof
from lab.model import AS_IT_IS, DISABLED, PAIRS, Line, ProxyState, TrafficClass, Treatment, Trial
from lab.rig.fullness import Found
from lab.rig.logs import LogCount, Logs
from lab.rig.meter import Reading
from lab.rig.proofs import Evidence, proofs
from lab.rig.readback import Readback
from lab.rig.together import Part

LINE = Line(upload_bps=512_000, download_bps=1_024_000)
APPLIED = Readback(
    512_000, 1_024_000, 0.0, 0.0, 0.0, 0, "tc", queue_upload_bytes=64_000, queue_download_bytes=128_000
)
LIFTED = Readback(None, None, 0.0, 0.0, 0.0, 0, "nothing applied", applied=False)
TOLD: dict[str, Any] = {"exit": 0, "signal": None, "timed_out": False, "tail": "done\n"}


def trial(full: float | None = 100, line: Line = LINE, operation: str = "get") -> Trial:
    treatment = Treatment(line=line, operation=operation, state=ProxyState(full=full))
    return Trial(number=1, block=1, treatment=treatment, attempt=2)


def moved(**bytes_: int) -> Reading:
    """By pairs, with a `_` for the `>`."""
    arrived = dict.fromkeys(PAIRS, 0) | {pair.replace("_", ">"): n for pair, n in bytes_.items()}
    return Reading(arrived, dict(arrived))


THROUGH = moved(client_proxy=43_000, proxy_client=371_000, proxy_server=4_300, server_proxy=18_000)
PAST = moved(client_server=43_000, server_client=362_000)


def evidence(**changes: Any) -> Evidence:
    """A Get with a full cache that proves everything; a field can be changed by name."""
    fields: dict[str, Any] = {
        "trial": trial(),
        "traffic_class": TrafficClass.CACHEABLE,
        "line_before": APPLIED,
        "line_after": APPLIED,
        "lease_alive": True,
        "found": Found(full=100.0, objects=150, cache_bytes=375_000, purged=()),
        "listed": 150,
        "moved": THROUGH,
        "logs": Logs(
            server=LogCount(requests=5),
            proxy=LogCount(requests=155, hits=150, hit_bytes=286_000, other_bytes=13_000),
        ),
        "unquiet": "",
        "exit_ok": True,
        "told": TOLD,
        "limit_s": 60.0,
    }
    return Evidence(**{**fields, **changes})


def without_proxy(**changes: Any) -> Evidence:
    """A Get past the proxy that proves everything."""
    fields: dict[str, Any] = {
        "trial": trial(full=None),
        "found": None,
        "listed": 0,
        "moved": PAST,
        "logs": Logs(server=LogCount(requests=155), proxy=LogCount()),
    }
    return evidence(**{**fields, **changes})


def failed(given: tuple[Proof, ...]) -> list[Proof]:
    return [proof for proof in given if not proof.ok]


def test_a_good_trial_proves_everything_in_the_order_of_the_questions() -> None:
    given = proofs(evidence())
    assert [proof.name for proof in given] == ["exit", "line", "cache", "path", "counters", "quiet"]
    assert failed(given) == []
    texts = {proof.name: proof.text for proof in given}
    assert texts["line"] == "line read back: 512/1024 kbit/s"
    assert texts["cache"] == "cache found: 100.0 % (150 of 150 objects)"
    assert texts["path"] == "proxy in use: 286,000 bytes served, 13,000 relayed"


def test_without_the_proxy_no_cache_is_looked_at() -> None:
    given = proofs(without_proxy())
    assert [proof.name for proof in given] == ["exit", "line", "path", "counters", "quiet"]
    assert failed(given) == []


def ended(**told: Any) -> Evidence:
    """A command that did not succeed."""
    return evidence(exit_ok=False, told=TOLD | told)


@pytest.mark.parametrize(
    ("broken", "name", "words"),
    [
        (ended(exit=1, tail="A  x\nsvn: E1: no\n\n"), "exit", "status 1: svn: E1: no"),
        (ended(exit=1, tail=""), "exit", "exit status 1"),
        (ended(exit=None, signal=9), "exit", "ended by signal 9"),
        (ended(exit=None, signal=15, timed_out=True), "exit", "not finished within 60 s"),
        (evidence(line_before=replace(APPLIED, upload_bps=511_000)), "line", "before the trial was not 512/1024"),
        (evidence(line_after=replace(APPLIED, download_bps=2_000_000)), "line", "after the trial was not 512/1024"),
        (evidence(line_after=LIFTED), "line", "after the trial"),
        (evidence(line_after=replace(APPLIED, queue_upload_bytes=63_000)), "line", "after the trial"),
        (evidence(line_after=replace(APPLIED, delay_s=0.04)), "line", "after the trial"),
        (evidence(trial=trial(line=AS_IT_IS), line_before=LIFTED), "line", "after the trial was not as it is"),
        (evidence(lease_alive=False), "line", "a lease was not renewed in time"),
        (evidence(found=None), "cache", "not measured"),
        (evidence(found=Found(90.0, 135, 1, ()), logs=Logs(None, None)), "cache", "90.0 % (135 of 150 objects)"),
        (evidence(found=Found(100 * 149 / 150, 149, 1, ()), logs=Logs(None, None)), "cache", "149 of 150"),
        (evidence(logs=Logs(None, LogCount(requests=0)), moved=moved()), "path", "bypassed"),
        (evidence(logs=Logs(None, None), moved=PAST), "path", "bypassed"),
        (evidence(logs=Logs(None, LogCount(requests=9, hits=99, misses=50, hit_bytes=1))), "path", "149 of the 150"),
        (evidence(trial=trial(full=90), found=Found(90.0, 135, 1, ())), "path", "served 150 objects, and 135 were"),
        (
            without_proxy(content_bytes=600_000, moved=moved(client_server=900, server_client=1_100)),
            "path",
            "client and server exchanged 2,000 bytes, and what was fetched holds 600,000: it came from another host",
        ),
        (without_proxy(moved=THROUGH), "path", "the proxy was used (414,000 bytes) though it was disabled"),
        (evidence(moved=Reading({**THROUGH.arrived, "server>proxy": -1}, THROUGH.sent)), "counters", "ran backwards"),
        (evidence(moved=Reading(THROUGH.arrived, {**THROUGH.sent, "client>proxy": -1})), "counters", "ran backwards"),
        (evidence(unquiet="server: bytes arrived"), "quiet", "not quiet: server: bytes arrived"),
    ],
)  # fmt: skip
def test_each_proof_can_fail(broken: Evidence, name: str, words: str) -> None:
    missing = {proof.name: proof.text for proof in failed(proofs(broken))}
    assert words in missing.pop(name)
    # A command that failed proves no path either; nothing else goes with anything.
    assert set(missing) <= ({"path"} if name == "exit" else set())
    assert "bypassed" not in missing.get("path", "")


def test_a_queue_that_was_dropped_from_is_no_fault_of_the_trial() -> None:
    assert failed(proofs(evidence(line_after=replace(APPLIED, dropped=17)))) == []


def test_the_right_share_of_a_cache_is_proved_to_the_nearest_object() -> None:
    ninety = evidence(
        trial=trial(full=90),
        found=Found(90.0, 135, 1, ()),
        logs=Logs(None, LogCount(requests=155, hits=135, misses=15, hit_bytes=9, miss_bytes=1)),
    )
    assert failed(proofs(ninety)) == []
    third = replace(
        ninety, trial=trial(full=33.3), found=Found(100 * 50 / 150, 50, 1, ()),
        logs=Logs(None, LogCount(requests=155, hits=50, misses=100, hit_bytes=9, miss_bytes=1)),
    )  # fmt: skip
    assert failed(proofs(third)) == []


def test_an_empty_cache_relays_and_is_not_bypassed() -> None:
    empty = evidence(
        trial=trial(full=0),
        found=Found(0.0, 0, 0, ()),
        logs=Logs(None, LogCount(requests=155, misses=150, miss_bytes=286_000, other_bytes=13_000)),
    )
    assert failed(proofs(empty)) == []
    assert (empty.served_bytes(), empty.relayed_bytes(), empty.direct_bytes()) == (0, 299_000, 0)


def test_what_is_local_needs_no_proxy_and_what_is_service_needs_no_objects() -> None:
    nothing = {"moved": moved(), "logs": Logs(LogCount(), LogCount())}
    assert failed(proofs(evidence(traffic_class=TrafficClass.LOCAL, **nothing))) == []
    passed = Logs(LogCount(requests=3), LogCount(requests=3, other_bytes=9_500))
    assert failed(proofs(evidence(traffic_class=TrafficClass.SERVER, logs=passed))) == []


def test_without_a_log_the_counters_tell_served_from_relayed() -> None:
    no_logs = Logs(None, None)
    full = evidence(logs=no_logs)
    assert (full.served_bytes(), full.relayed_bytes()) == (371_000 - 18_000, 18_000)
    # With an empty cache proxy and server differ by some headers: that is not service.
    relayed = evidence(logs=no_logs, moved=moved(proxy_client=374_000, server_proxy=370_000))
    assert (relayed.served_bytes(), relayed.relayed_bytes()) == (0, 370_000)
    assert without_proxy(logs=no_logs).direct_bytes() == 405_000


def test_without_a_log_headers_and_what_no_cache_can_serve_are_not_called_served() -> None:
    """Field fault: "All 2 were served by it" of History, for 2247 bytes of packet headers."""
    no_logs = Logs(None, None)
    history = moved(proxy_client=52_247, server_proxy=50_000)
    asked = evidence(logs=no_logs, traffic_class=TrafficClass.SERVER, moved=history)
    assert (asked.served_bytes(), asked.relayed_bytes()) == (0, 50_000)
    # The same content in more packets: one way of 300, the other of 100.
    packed = Reading(
        {**history.arrived, "proxy>client": 60_400, "server>proxy": 50_000},
        history.sent,
        {"proxy>client": 300, "server>proxy": 100},
    )
    assert evidence(logs=no_logs, moved=packed).served_bytes() == 0
    whole = replace(packed, packets={"proxy>client": 100, "server>proxy": 100})
    assert evidence(logs=no_logs, moved=whole).served_bytes() == 10_400


def test_disabled_is_one_state_for_all() -> None:
    assert without_proxy().trial.treatment.state == DISABLED


def test_how_little_may_come_from_the_server_is_told_of_what_was_counted_and_fetched_only() -> None:
    little = moved(client_server=900, server_client=1_100)
    for given in (
        without_proxy(content_bytes=100_000, moved=little),
        without_proxy(content_bytes=0, moved=little),
        without_proxy(content_bytes=600_000, moved=little, traffic_class=TrafficClass.SERVER),
        without_proxy(content_bytes=600_000, moved=Reading({}, {})),
    ):
        assert not [proof for proof in failed(proofs(given)) if proof.name == "path"]


def part(host: str, started_s: float = 0.0, error_s: float = 0.001, **told: Any) -> Part:
    word = TOLD | {"wall_s": 2.0} | told
    return Part(host, word["exit"] == 0 and not word["timed_out"], word, started_s, error_s)


def several(*parts: Part, each: dict[str, dict[str, int]] | None = None, **changes: Any) -> Evidence:
    """A Get of two clients with a full cache that proves everything."""
    fields: dict[str, Any] = {
        "parts": parts or (part("desk-1"), part("desk-2", 0.004)),
        "logs": Logs(None, LogCount(requests=310, hits=300, hit_bytes=572_000, other_bytes=26_000)),
        "moved": replace(THROUGH, each=each or {}),
        "exit_ok": all(one.ok for one in parts),
    }
    return evidence(**{**fields, **changes})


def test_several_clients_prove_that_they_began_together_and_each_for_itself_the_rest() -> None:
    given = {proof.name: proof for proof in proofs(several())}
    assert all(proof.ok for proof in given.values())
    assert given["exit"].text == "exit status 0 on 2 clients"
    assert given["together"].text == "2 clients began within 4.0 ms (± 1.0 ms)"
    # What one brought into an empty cache may be served to the other.
    empty = {"trial": trial(full=0), "found": Found(0.0, 0, 0, ())}
    half = Logs(None, LogCount(requests=310, hits=120, misses=180, hit_bytes=9, miss_bytes=9))
    assert failed(proofs(several(logs=half, **empty))) == []


PAST_BOTH = {
    "desk-1": {"client>server": 20_000, "server>client": 180_000, "client>proxy": 0, "proxy>client": 0},
    "desk-2": {"client>server": 20_000, "server>client": 180_000, "client>proxy": 0, "proxy>client": 0},
}


@pytest.mark.parametrize(
    ("broken", "name", "words"),
    [
        (several(part("desk-1"), part("desk-2", exit=1, tail="svn: E1: no\n")), "exit", "desk-2: exit status 1"),
        (several(part("a", exit=None, signal=9), part("b", timed_out=True)), "exit",
         "ended by signal 9; b: not finished"),
        (several(part("desk-1"), part("desk-2", 0.9)), "together", "2 clients began within 900.0 ms (± 1.0 ms)"),
        (several(logs=evidence().logs), "path", "150 of the 150 objects that it needs on each of 2 clients"),
        (
            several(
                trial=trial(full=0), found=Found(0.0, 0, 0, ()),
                logs=Logs(None, LogCount(requests=310, hits=200, misses=100, hit_bytes=9, miss_bytes=9)),
            ), "path", "fetched 100 objects, and 150 were not in it before",
        ),
        (
            several(each={"desk-1": {"proxy>client": 371_000}, "desk-2": {"proxy>client": 0}}, logs=Logs(None, None)),
            "path", "bypassed by desk-2",
        ),
        (
            several(
                trial=trial(full=None), found=None, listed=0, content_bytes=600_000, logs=Logs(None, None),
                moved=replace(PAST, each={**PAST_BOTH, "desk-2": {"client>server": 9, "server>client": 91}}),
            ), "path", "desk-2 and server exchanged 100 bytes, and what was fetched holds 600,000",
        ),
    ],
)  # fmt: skip
def test_what_one_of_several_clients_does_not_prove_fails_for_all(
    broken: Evidence, name: str, words: str
) -> None:
    missing = {proof.name: proof.text for proof in failed(proofs(broken))}
    assert words in missing.pop(name)
    assert set(missing) <= ({"path"} if name == "exit" else set())


def test_starts_that_clocks_cannot_tell_apart_are_together() -> None:
    assert failed(proofs(several(part("desk-1"), part("desk-2", 0.9, error_s=0.6)))) == []


def test_past_the_proxy_each_of_several_clients_fetched_its_own() -> None:
    past = several(
        trial=trial(full=None), found=None, listed=0, content_bytes=600_000, logs=Logs(None, None),
        moved=replace(PAST, each=PAST_BOTH),
    )  # fmt: skip
    assert failed(proofs(past)) == []
