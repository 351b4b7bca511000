"""Repeating until stable: at whole blocks only, by the pooled intervals, with a cap, and said so."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_testbed import FakeTestbed, experiment, small

from lab import design, runner, store
from lab.analysis.summary import summarised
from lab.errors import BadInput
from lab.events import Event, LineSettled, RunStarted, TrialFinished
from lab.live import Live
from lab.model import DISABLED, Experiment, Line, ProxyState, Until
from lab.stop import Stop

SLOW, FAST = Line(upload_bps=64_000, download_bps=128_000), Line(upload_bps=512_000, download_bps=1_024_000)


def asked(within: float, at_most: int = 12, **changes: object) -> Experiment:
    fields: dict[str, object] = {
        "lines": (SLOW, FAST),
        "operations": ("get",),
        "attempts": 3,
        "until": Until(within=within, at_most=at_most),
        **changes,
    }
    return small(**fields)


def told(experiment: Experiment, **bed: object) -> list[Event]:
    return list(runner.run(experiment, FakeTestbed(samples=1, **bed), Stop(), run_id="r1"))  # type: ignore[arg-type]


def settled(events: list[Event]) -> list[LineSettled]:
    return [event for event in events if isinstance(event, LineSettled)]


def finished(events: list[Event]) -> list[int]:
    return [event.trial for event in events if isinstance(event, TrialFinished)]


def test_what_is_stable_at_once_is_done_the_least_number_of_times() -> None:
    events = told(asked(0.2))
    assert [(one.line, one.attempts, one.stable) for one in settled(events)] == [
        (SLOW, 3, True),
        (FAST, 3, True),
    ]
    assert len(finished(events)) == 2 * 2 * 3
    first = events[0]
    assert isinstance(first, RunStarted)
    assert len(first.trials) == 2 * 2 * 12  # all that may be needed is planned
    spared = {number for one in settled(events) for number in one.spared}
    assert spared | set(finished(events)) == {trial.number for trial in first.trials}
    assert not spared & set(finished(events))


def test_it_is_repeated_until_the_widest_interval_is_narrow_enough() -> None:
    events = told(asked(0.02, lines=(SLOW,)), noise=0.04)
    (one,) = settled(events)
    assert one.attempts > 3
    assert one.stable
    assert one.widest == pytest.approx(reach(events))
    block_before = [
        e for e in events if not (isinstance(e, TrialFinished) and e.trial > 2 * (one.attempts - 1))
    ]
    assert reach(block_before) > 0.02  # one block earlier it was too wide


def reach(events: list[Event]) -> float:
    """How far the widest interval of the answers reaches upward."""
    found = [(cell.mean_high_s, cell.geometric_s) for cell in summarised(events).cells]
    return max(high / middle - 1 for high, middle in found if high and middle)


def test_stopping_is_at_whole_blocks_only() -> None:
    events = told(asked(0.02), noise=0.04)
    first = events[0]
    assert isinstance(first, RunStarted)
    block = {trial.number: trial.block for trial in first.trials}
    done = set(finished(events))
    for number in {block[n] for n in done}:
        assert {n for n, b in block.items() if b == number} <= done
    for one in settled(events):
        place = events.index(one)
        before = next(e for e in reversed(events[:place]) if isinstance(e, TrialFinished))
        assert all(block[before.trial] < block[number] for number in one.spared)


def test_the_cap_holds_and_is_told() -> None:
    events = told(asked(0.001, at_most=5), noise=0.05)
    assert [(one.attempts, one.stable, one.spared) for one in settled(events)] == [
        (5, False, ()),
        (5, False, ()),
    ]
    assert len(finished(events)) == 2 * 2 * 5
    finding = summarised(events).findings[0]
    (text, other) = [one.text for one in finding.sentences if one.rule == "stopping"]
    assert text.startswith(
        "On 64/128 kbit/s 5 attempts per cell, the most that were allowed, left an interval of ± "
    )
    assert "± 0.1 % was asked for" in text
    assert other != text


def test_the_answer_says_that_stopping_was_by_width() -> None:
    finding = summarised(told(asked(0.2))).findings[0]
    (one,) = [one for one in finding.sentences if one.rule == "stopping"]
    assert one.text.startswith("Repeating stopped by width, once every interval of 95 % reached 20 % or less")
    assert "on 64/128 kbit/s after 3 and 512/1024 kbit/s after 3 attempts per cell" in one.text
    assert not one.lead
    assert not [one for one in summarised(told(small())).findings[0].sentences if one.rule == "stopping"]


def test_a_difference_that_is_never_called_one_needs_no_repeating() -> None:
    """Diff takes 50 ms: a tenth of that is less than what is called a difference."""
    events = told(asked(0.001, operations=("diff",)), noise=0.1)
    assert all(one.stable and one.attempts == 3 for one in settled(events))


def test_cells_without_proof_keep_a_line_from_being_stable() -> None:
    experiment = asked(0.5, at_most=6)
    void = {
        trial.number: "no proof" for trial in design.trials(experiment) if trial.treatment.state == DISABLED
    }
    events = told(experiment, void=void)
    assert [(one.stable, one.widest, one.attempts) for one in settled(events)] == [
        (False, None, 6),
        (False, None, 6),
    ]


def test_launches_are_made_all_the_same() -> None:
    experiment = asked(
        0.5,
        operations=("get", "history"),
        disabled_only=("history",),
        launches=True,
        states=(DISABLED, ProxyState(full=100)),
    )
    events = told(experiment)
    first = events[0]
    assert isinstance(first, RunStarted)
    launches = {trial.number for trial in first.trials if trial.launch}
    assert launches
    assert launches <= set(finished(events))
    assert len(settled(events)) == 2


def test_a_run_as_it_goes_forgets_what_is_spared() -> None:
    live = Live()
    events = told(asked(0.2))
    for event in events:
        live.apply(event)
    assert live.done == live.total == 12
    assert all(cell.left == 0 for cell in live.cells.values())
    assert live.eta() == (0.0, 0.0)
    assert [share for _, _, share in live.parts()] == [1.0, 1.0]
    assert any("stable after 3 attempts per cell" in note.text for note in live.notes)
    summary = summarised(events)
    assert len(summary.started.trials) == 12
    assert all(cell.planned == cell.kept == 2 for cell in summary.cells)
    assert summary.complete


def test_a_run_file_knows_how_many_were_planned_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "x.branchlab"
    events = list(store.recorded(iter(told(asked(0.2))), path))
    with store.opened(path) as record:
        assert (record.head.planned, record.head.finished) == (12, 12)
        assert settled(list(record.events())) == settled(events)


def test_without_it_nothing_is_spared() -> None:
    events = told(experiment(lines=(FAST,)))
    assert not settled(events)
    assert len(finished(events)) == 96


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"order": "published"}, 'write order = "blocks"'),
        ({"until": Until(within=0.05, at_most=3)}, "write at_most = 9"),
        ({"until": Until(within=0.0, at_most=12)}, 'within = "5 %"'),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_touched(changes: dict[str, object], words: str) -> None:
    bed = FakeTestbed()
    with pytest.raises(BadInput, match=words):
        next(iter(runner.run(asked(0.05, **changes), bed, Stop())))
    assert bed.log == []


def test_the_size_of_a_plan_has_a_least_and_a_most() -> None:
    size = design.size(asked(0.05))
    assert (size.least_trials, size.trials) == (12, 48)
    assert size.trials == len(design.trials(asked(0.05)))
    assert sum(n for _, n in design.cells(asked(0.05), least=True)) == 12
    assert design.rehearsal(asked(0.05)).until is None
