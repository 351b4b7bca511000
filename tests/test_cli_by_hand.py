"""`fill`, `purge` and `line` as scripts and people call them: what is asked, what is said, exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from test_cli import HOSTS, SMALL

from lab import asking
from lab.__main__ import cli
from lab.asking import Question
from lab.cli import agreeing
from lab.cli.parts import Parts
from lab.errors import AgentRefused, Stopped
from lab.events import HostChanged
from lab.hands import Filled, Inventory, Kept, Purged
from lab.model import Experiment, Lab, Line
from lab.rig.readback import NOTHING, Readback
from lab.stop import Stop

OBJECTS = tuple(Kept(f"/svn/{n}", f"http://s/svn/{n}", 100, 2) for n in range(150))
FOUND = Inventory(
    host="proxy", folder="/var/cache/branchlab", origin="http://s/svn/", objects=OBJECTS, others=3
)
CONNECTIONS = Question("connections", "server", "3 connections of others would share it.", ("3 to desk-9",))


@dataclass
class FakeHands:
    """Does nothing, and keeps what it was asked to do."""

    own: bool = True
    questions: tuple[Question, ...] = ()
    done: list[str] = field(default_factory=list)
    agreed: list[frozenset[str]] = field(default_factory=list)
    trouble: Exception | None = None
    given: list[str | None] = field(default_factory=list)

    def asked_for_fill(self, operation: str) -> tuple[Question, ...]:
        self.done.append(f"looked for {operation}")
        return self.questions

    def asked_for_line(self, line: Line) -> tuple[Question, ...]:
        self.done.append("looked for a line")
        return self.questions

    def inventory(self, stop: Stop) -> Inventory:
        self.done.append("counted")
        return FOUND

    def fill(self, operation: str, stop: Stop, agreed: frozenset[str]) -> Filled:
        self._did(f"filled for {operation}", agreed)
        listed = frozenset(one.key for one in OBJECTS)
        before = replace(FOUND, objects=OBJECTS[:10])
        return Filled(operation=operation, before=before, after=FOUND, listed=listed)

    def purge(self, found: Inventory, chosen: tuple[Kept, ...], stop: Stop, agreed: frozenset[str]) -> Purged:
        self._did(f"purged {len(chosen)}", agreed)
        left = tuple(one for one in OBJECTS if one not in chosen)
        return Purged(
            before=found, after=replace(found, objects=left), asked=len(chosen), removed=len(chosen) - 1
        )

    @contextmanager
    def line(self, line: Line, stop: Stop, agreed: frozenset[str]) -> Iterator[Any]:
        self._did("held", agreed)
        read = Readback(line.upload_bps, line.download_bps, 0, 0, 0, 0, "tc", line.limited, 64_000, 64_000)

        def alive() -> None:
            raise Stopped("stopped by the user")  # as if somebody pressed Ctrl C

        applied = SimpleNamespace(
            line=line, read=read, lifted=None, left_s=29.0, lease_s=30.0, alive=alive,
            limiting=(("server", "limiting the line to 64/128 kbit/s"),) if line.limited else (),
        )  # fmt: skip
        try:
            yield applied
        finally:
            applied.lifted = NOTHING
            self.done.append("lifted")

    def account(self) -> Iterator[HostChanged]:
        yield HostChanged(host="proxy", at="", what="a change")
        yield HostChanged(host="proxy", at="", what="a change")
        yield HostChanged(host="proxy", at="", what="a change", undone=True)

    def _did(self, what: str, agreed: frozenset[str]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.done.append(what)
        self.agreed.append(agreed)


@dataclass
class World:
    profile: Path
    work: FakeHands = field(default_factory=FakeHands)

    @property
    def parts(self) -> Parts:
        def given(lab: Lab, experiment: Experiment | None) -> FakeHands:
            self.work.given.append(experiment.name if experiment else None)
            return self.work

        return Parts(hands=given)  # type: ignore[arg-type]

    def call(self, command: str, *words: str) -> Result:
        return CliRunner().invoke(cli, [command, str(self.profile), *words], obj=self.parts)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    path = tmp_path / "office.toml"
    path.write_text(HOSTS + SMALL, "utf-8")
    return World(path)


def test_a_fill_says_what_was_there_and_is_there(world: World) -> None:
    result = world.call("fill", "--experiment", "Only")
    assert (result.exit_code, world.work.given) == (0, ["Only Get"])
    assert "proxy: the cache is full for Get: 150 of 150 objects, 15.0 kB" in result.stdout
    assert "it had 10 objects, 1.0 kB before, and has 150 objects, 15.0 kB now" in result.stdout
    assert "proxy: changed: a change\nproxy: taken back: a change\n" in result.stdout
    assert world.work.done == ["looked for get", "filled for get"]


def test_a_purge_says_what_goes_and_what_stays(world: World) -> None:
    result = world.call("purge", "10%")
    assert result.exit_code == 0
    assert "has 150 objects, 15.0 kB of http://s/svn/, and 3 of others" in result.stdout
    assert "14 of 150 objects were taken out; 135 objects, 13.5 kB are left" in result.stdout
    assert "1 more were gone already" in result.stdout
    assert world.work.done == ["counted", "purged 15"]


@pytest.mark.parametrize(("percent", "count"), [("10 %", 15), ("10", 15), ("0.7%", 1), ("100%", 150)])
def test_per_cent_are_of_the_objects_that_are_there(world: World, percent: str, count: int) -> None:
    assert world.call("purge", percent).exit_code == 0
    assert world.work.done[-1] == f"purged {count}"


def test_nought_per_cent_asks_nobody_and_changes_nothing(world: World) -> None:
    world.work.own = False
    result = world.call("purge", "0%")
    assert (result.exit_code, world.work.done) == (0, ["counted"])
    assert "nothing was taken out" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("purge", "101%"), "more than all"),
        (("purge", "10,5%"), "the decimal sign is a point"),
        (("purge", "many"), "many"),
        (("purge", "10%", "--yes"), "--yes"),
        (("purge", "10%", "--agree", "everything"), "everything"),
        (("purge",), "PERCENT"),
        (("fill", "--operation", "diff"), "brings nothing into a cache"),
        (("fill", "--experiment", "Nobody"), "no experiment"),
        (("line", "fast"), "fast"),
        (("line", "0/1 Mbit/s"), "0"),
    ],
)
def test_bad_input_is_refused_before_any_host_is_touched(
    world: World, words: tuple[str, ...], said: str
) -> None:
    result = world.call(*words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert world.work.done == []


def test_without_a_cache_in_the_profile_there_is_nothing_to_fill_or_purge(world: World) -> None:
    lines = world.profile.read_text("utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith(("cache =", "url =")))
    world.profile.write_text(text.replace('states = ["disabled", "100 %"]', 'states = ["disabled"]'), "utf-8")
    for words in (("fill",), ("purge", "10%")):
        result = world.call(*words)
        assert result.exit_code == 2
        assert "names no cache" in result.stderr
    assert world.call("line", "as it is").exit_code == 0


@pytest.mark.parametrize("words", [("fill",), ("purge", "10%"), ("line", "64/128 kbit/s")])
def test_unattended_and_nothing_agreed_to_nothing_is_done(world: World, words: tuple[str, ...]) -> None:
    world.work.own, world.work.questions = False, (CONNECTIONS,)
    result = world.call(*words)
    assert result.exit_code == 2
    assert "nobody is at the terminal" in result.stderr
    assert f"this {words[0]} may touch" in result.stderr
    assert set(world.work.done) <= {"counted"}


@pytest.mark.parametrize(
    ("words", "kind"), [(("purge", "10%"), "purge"), (("line", "64/128 kbit/s"), "connections")]
)
def test_what_was_agreed_to_beforehand_is_done_and_nothing_else_is(
    world: World, words: tuple[str, ...], kind: str
) -> None:
    world.work.own, world.work.questions = False, (CONNECTIONS,)
    refused = world.call(*words, "--agree", "nothing")
    assert refused.exit_code == 2
    assert f"branchlab {words[0]} --agree {kind} PROFILE" in refused.stderr
    assert not world.work.agreed
    assert world.call(*words, "--agree", kind).exit_code in (0, 130)
    assert world.work.agreed == [frozenset({kind})]


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_a_person_is_shown_what_would_go(
    world: World, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr(agreeing, "somebody_there", lambda: True)
    world.work.own = False
    words = ["purge", str(world.profile), "10%"]
    result = CliRunner().invoke(cli, words, obj=world.parts, input=answer)
    assert result.exit_code == code
    assert (
        "15 of 150 objects of http://s/svn/ in the cache /var/cache/branchlab would be taken out"
        in result.stderr
    )
    assert len([line for line in result.stderr.splitlines() if line.startswith("    http://s/svn/")]) == 10
    assert "3 objects of others stay untouched" in result.stderr
    assert world.work.agreed == ([frozenset({"purge"})] if code == 0 else [])


def test_a_line_is_held_until_it_is_stopped_and_then_is_taken_back(world: World) -> None:
    result = world.call("line", "64/128 kbit/s")
    assert (result.exit_code, world.work.given) == (130, [None])
    lines = result.stdout.splitlines()
    assert lines[0] == "server: limiting the line to 64/128 kbit/s"
    assert (
        lines[1]
        == "read back from the kernel: 64 kbit/s up, 128 kbit/s down; queues 64.0 kB up, 64.0 kB down (tc)"
    )
    assert "under a lease of 30 s" in lines[2]
    assert "taken back; read back from the kernel: nothing that limits it" in lines
    assert world.work.done == ["looked for a line", "held", "lifted"]


def test_as_it_is_takes_back_and_ends(world: World) -> None:
    world.work.own = False
    result = world.call("line", "as it is")
    assert (result.exit_code, world.work.done) == (0, ["held", "lifted"])
    assert "No line of BranchLab's limits these hosts." in result.stdout


def test_the_larger_rate_first_is_done_and_noted(world: World) -> None:
    result = world.call("line", "128/64 kbit/s")
    assert "note: " in result.stderr
    assert world.work.done[-1] == "lifted"


@pytest.mark.parametrize("words", [("fill",), ("purge", "10%"), ("line", "64/128 kbit/s")])
def test_a_host_that_is_held_is_told_with_who_holds_it(world: World, words: tuple[str, ...]) -> None:
    world.work.trouble = AgentRefused("this host is held by alice", kind="busy", host="server")
    result = world.call(*words)
    assert result.exit_code == 3
    assert "server: this host is held by alice" in result.stderr


def test_every_kind_that_may_be_agreed_to_is_known() -> None:
    assert {"purge", "connections", "qdisc"} == set(asking.KINDS)
