"""Every event goes to JSON and comes back as it was."""

from __future__ import annotations

import typing

import pytest
from fake_testbed import FakeTestbed, experiment

from lab import events, runner
from lab.events import (
    Event,
    HostChanged,
    LineSettled,
    Noted,
    RunContinued,
    RunPaused,
    RunResumed,
    ToolMeasured,
    from_json,
    to_json,
)
from lab.model import AS_IT_IS
from lab.stop import Stop

MORE: tuple[Event, ...] = (
    HostChanged(host="server", at="2024-01-02T03:04:05.000+00:00", what="line applied", undone=True),
    Noted(text="a cache „voll“", grade="warn", trial=3),
    LineSettled(line=AS_IT_IS, attempts=5, within=0.05, widest=0.031, spared=(9, 10)),
    RunPaused(),
    RunResumed(),
    RunContinued(at="2024-01-02T03:04:05.000+00:00", trials=()),
)


def test_every_kind_of_event_comes_back_as_it_was() -> None:
    told = [*runner.run(experiment(), FakeTestbed(void={2: "touched"}), Stop()), *MORE]
    assert {type(event) for event in told} == set(typing.get_args(Event))
    for event in told:
        assert from_json(to_json(event)) == event


def test_an_event_is_one_line() -> None:
    assert "\n" not in to_json(Noted(text="two\nlines"))


def test_kinds_are_all_different() -> None:
    kinds = [cls.__dataclass_fields__["kind"].default for cls in typing.get_args(Event)]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "nothing"}', '{"kind": "noted"}', "[1]"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        events.from_json(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(number: str) -> None:
    whole = to_json(ToolMeasured(tool="svn", version="1", start_s=0.5))
    assert from_json(whole) == ToolMeasured(tool="svn", version="1", start_s=0.5)
    with pytest.raises(ValueError):
        from_json(whole.replace("0.5", number))
