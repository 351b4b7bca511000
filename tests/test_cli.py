"""The command line as scripts and people call it: names, exit codes, what is printed where."""

from __future__ import annotations

import csv
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fake_testbed import FakeTestbed

from lab import runner, store
from lab.__main__ import DEMO, cli
from lab.asking import Question
from lab.cli import trouble
from lab.cli.parts import Parts
from lab.errors import AgentRefused, BadInput, ConnectionLost, HostLacks, HostTrouble, HostUnreachable
from lab.events import TrialFinished
from lab.model import PAIRS, Experiment, Lab
from lab.profile import load as loaded
from lab.stop import Stop

ROOT = Path(__file__).parent.parent

HOSTS = """
schema = 1
name = "Test office"

[hosts.server]
role = "server"
ssh = "admin@server.example.com"
address = "198.51.100.10"
root = "direct"

[hosts.proxy]
role = "proxy"
ssh = "proxy.example.com"
address = "198.51.100.11"
cache = { kind = "apache-disk", folder = "/var/cache/branchlab" }
url = "http://198.51.100.11:8081"

[hosts.client]
role = "client"
ssh = "desk-1"
address = "198.51.100.12"
"""

SMALL = """
[[experiments]]
name = "Proxy efficiency (quick)"
data = "quick"
operations = ["get", "diff"]
lines = ["512/1024 kbit/s"]
states = ["disabled", "100 %"]
attempts = 4
warm_up = 1
seed = 2008

[[experiments]]
name = "Only Get"
data = "quick"
operations = ["get"]
lines = ["512/1024 kbit/s"]
states = ["disabled"]
attempts = 3
warm_up = 1
seed = 7
"""


TWO = "attempts = 4\nclients = 2"


@dataclass(frozen=True)
class Found:
    """One line of `check`."""

    host: str
    ok: bool
    text: str
    advice: str = ""
    command: str = ""
    asks: str = ""

    @property
    def grade(self) -> str:
        return "trouble" if not self.ok else "warn" if self.advice else "ok"


@dataclass
class World:
    """Parts that work without a host, and what was asked of them."""

    profile: Path
    bed: FakeTestbed = field(default_factory=lambda: FakeTestbed(samples=2))
    touched: list[str] = field(default_factory=list)
    window: list[tuple[str | None, str | None, bool]] = field(default_factory=list)
    display: bool = False
    found: list[Found] = field(default_factory=list)
    window_code: int = 0
    agreed: frozenset[str] | None = frozenset()
    own: bool = True
    questions: list[Question] = field(default_factory=list)
    signals: list[object] = field(default_factory=list)
    refused: Exception | None = None
    checked: list[str] = field(default_factory=list)

    @property
    def parts(self) -> Parts:
        return Parts(
            own=lambda lab: self.own,
            look=self._look,
            testbed=self._testbed,
            check=self._check,
            left=self._left,
            commands=lambda lab, experiment: {"desk-1": [["svn", "checkout", "a b"]]},
            changes=lambda lab, experiment, duration: f"# {experiment.name}: {duration}\n",
            revert=lambda lab, force: {"server": ["the line", *["a living run"] * force], "client": []},
            tied_lab=self._tied,
            window=lambda: self._open,
            display_there=lambda: self.display,
        )

    def call(self, *words: str, input: str = "") -> Result:  # noqa: A002
        return CliRunner().invoke(cli, list(words), obj=self.parts, input=input)

    def _testbed(self, lab: Lab, agreed: frozenset[str]) -> FakeTestbed:
        self.agreed = agreed
        self.touched.append("testbed")
        return self.bed

    def _look(self, lab: Lab, experiment: Experiment) -> tuple[Question, ...]:
        self.touched.append("look")
        if self.refused is not None:
            raise self.refused
        return tuple(self.questions)

    def _check(self, lab: Lab, experiments: Sequence[Experiment]) -> list[Found]:
        self.touched.append("check")
        self.checked = [one.name for one in experiments]
        return self.found

    def _left(self, lab: Lab) -> list[Found]:
        self.touched.append("left")
        return self.found or [Found(host.name, True, "nothing is left there") for host in lab.hosts]

    @contextmanager
    def _tied(self) -> Iterator[Path]:
        self.touched.append("up")
        try:
            yield self.profile
        finally:
            self.touched.append("down")

    def _open(
        self,
        *,
        profile: str | None = None,
        experiment: str | None = None,
        run: bool = False,
        record: str | None = None,
        agreed: frozenset[str] | None = None,
    ) -> int:
        self.agreed = agreed
        self.window.append((profile, experiment, run))
        self.signals = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
        if run and profile and record:  # the window's own run
            made = loaded(profile)
            told = runner.run(made.experiment(experiment), self.bed, Stop(), lab_name=made.lab.name)
            for _ in store.recorded(told, Path(record)):
                pass
        return self.window_code


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    path = tmp_path / "office.toml"
    path.write_text(HOSTS + SMALL)
    return World(path)


def test_run_prints_one_line_per_trial_then_table_answers_and_the_file(world: World) -> None:
    told = world.call("run", str(world.profile))
    assert told.exit_code == 0, told.output
    assert all(f"{n:>2}/16  " in told.stdout for n in range(1, 17))
    heads = next(line for line in told.stdout.splitlines() if line.startswith("operation"))
    assert heads.split() == ["operation", "disabled", "100", "%", "100", "%", "against", "disabled"]
    assert "On 512/1024 kbit/s a full cache pays for Get." in told.stdout
    assert "1. Which operations get faster with the proxy, and how much?" in told.stdout
    (head,) = store.runs()
    assert f"Run file: {head.file}" in told.stdout
    assert f" show {head.file}" in told.stdout
    assert told.stderr == ""


def test_the_experiment_is_chosen_by_name_or_a_part_of_it(world: World) -> None:
    assert "Only Get, 3 trials" in world.call("run", str(world.profile), "--experiment", "only").stdout
    told = world.call("run", str(world.profile), "--experiment", "Nothing")
    assert told.exit_code == 2
    assert "`Only Get`" in told.stderr


def test_show_json_is_the_promise(world: World) -> None:
    assert world.call("run", str(world.profile)).exit_code == 0
    told = json.loads(world.call("show", "last", "--json").stdout)
    assert list(told) == [
        "run", "experiment", "outcome", "seed", "order", "cells", "lines", "overhead_s", "findings",
        "verdict", "choice", "source", "base", "excluded", "outliers", "drift", "models",
        "repeated", "clients",
    ]  # fmt: skip
    assert (told["outcome"], told["seed"], told["order"]) == ("done", 2008, "blocks")
    assert [(cell["operation"], cell["state"]) for cell in told["cells"]] == [
        ("get", "disabled"), ("get", "100 %"), ("diff", "disabled"), ("diff", "100 %"),
    ]  # fmt: skip
    first = told["cells"][0]
    assert list(first) == [
        "operation", "state", "line", "kept", "void", "excluded", "median_s", "low_s", "high_s", "bytes",
        "served_bytes", "relayed_bytes", "direct_bytes", "verdict", "published", "attempts_s", "mean_s",
        "geometric_mean_s", "interval_s", "spread", "middle", "against",
    ]  # fmt: skip
    assert first["line"] == {
        "upload_bps": 512_000, "download_bps": 1_024_000, "delay_s": 0, "jitter_s": 0, "loss": 0,
        "queue_bytes": 128_000,
    }  # fmt: skip
    assert (first["kept"], first["void"], first["excluded"], first["verdict"]) == (3, 0, 0, "base")
    assert first["low_s"] <= first["median_s"] <= first["high_s"]
    assert tuple(first["bytes"]) == PAIRS
    assert told["cells"][1]["verdict"] == "faster"
    assert told["lines"] == [
        {
            "asked": {"upload_bps": 512_000, "download_bps": 1_024_000},
            "read_back": {"upload_bps": 512_000, "download_bps": 1_024_000},
            "achieved": {"upload_bps": 0.95 * 512_000, "download_bps": 0.95 * 1_024_000},
        }
    ]
    assert [finding["question"] for finding in told["findings"]] == [1, 2, 3, 4, 5]
    assert told["overhead_s"] == pytest.approx(0.4)


def test_json_numbers_are_those_of_the_trials(world: World) -> None:
    world.call("run", str(world.profile))
    told = json.loads(world.call("show", "last", "--json").stdout)
    with store.opened(store.found("last")) as record:
        plan = {trial.number: trial for trial in record.run_started.trials}
        kept: list[TrialFinished] = [
            one
            for one in record.trials()
            if plan[one.trial].treatment.operation == "get" and plan[one.trial].counted
            if not plan[one.trial].treatment.state.enabled
        ]
    walls = sorted(one.wall_s or 0 for one in kept)
    assert told["cells"][0]["median_s"] == pytest.approx(walls[1])
    assert [told["cells"][0]["low_s"], told["cells"][0]["high_s"]] == [walls[0], walls[-1]]


def test_runs_are_listed_newest_first(world: World) -> None:
    assert "no runs yet" in world.call("runs").stdout
    assert json.loads(world.call("runs", "--json").stdout) == []
    world.call("run", str(world.profile))
    world.call("run", str(world.profile), "--experiment", "Only Get")
    told = json.loads(world.call("runs", "--json").stdout)
    assert [list(one) for one in told] == [["run", "experiment", "outcome", "started", "file"]] * 2
    assert told[0]["experiment"] == "Only Get"
    assert told[0]["started"] > told[1]["started"]
    assert "Only Get" in world.call("runs").stdout


@pytest.mark.parametrize("name", ["last", "id", "prefix", "path"])
def test_a_run_is_named_in_four_ways(world: World, name: str) -> None:
    world.call("run", str(world.profile))
    (head,) = store.runs()
    named = {"last": "last", "id": head.run, "prefix": head.run[:-2], "path": str(head.file)}[name]
    told = world.call("show", named)
    assert told.exit_code == 0, told.output
    assert f"run {head.run}" in told.stdout


def test_a_run_that_is_not_there_is_bad_input(world: World) -> None:
    for words in (["show", "nothing"], ["show", "nothing", "--json"], ["export", "nothing", "a.csv"]):
        told = world.call(*words)
        assert (told.exit_code, told.stdout) == (2, "")
        assert "there is no run `nothing`" in told.stderr


def test_export_writes_what_the_ending_says(world: World, tmp_path: Path) -> None:
    world.call("run", str(world.profile))
    assert world.call("export", "last", str(tmp_path / "a.csv")).exit_code == 0
    assert world.call("export", "last", str(tmp_path / "a.jsonl")).exit_code == 0
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert len(rows) == len(lines) == 16
    assert [float(row["wall_s"]) for row in rows] == [line["wall_s"] for line in lines]
    assert world.call("export", "last", str(tmp_path / "a.xls")).exit_code == 2
    assert world.call("export", "last", str(tmp_path / "a.csv")).exit_code == 2
    assert world.call("export", "last", str(tmp_path / "a.csv"), "--overwrite").exit_code == 0


def test_plan_prints_trials_commands_and_duration_and_touches_no_host(world: World) -> None:
    told = world.call("plan", str(world.profile))
    assert told.exit_code == 0, told.output
    assert "16 trials, order blocks, seed 2008" in told.stdout
    assert sum("attempt " in line for line in told.stdout.splitlines()) == 16
    assert "On desk-1:\n  svn checkout 'a b'" in told.stdout
    assert "a rough guess from the" in told.stdout
    assert world.touched == []
    assert store.runs() == ()
    world.call("run", str(world.profile))
    (head,) = store.runs()
    assert f"(estimated from run {head.run})" in world.call("plan", str(world.profile)).stdout


def test_plan_says_which_clients_begin_together(world: World) -> None:
    desk = '[hosts.desk-2]\nrole = "client"\nssh = "desk-2"\naddress = "198.51.100.13"\n'
    world.profile.write_text(f"{HOSTS}\n{desk}\n{SMALL.replace('attempts = 4', TWO, 1)}")
    told = world.call("plan", str(world.profile)).stdout
    assert (
        "At the same moment on client, desk-2, timed from the first one's start to the last one's end."
        in told
    )
    assert "from one to 2 times that, since 2 clients share the line" in told
    assert (
        "At the same moment" not in world.call("plan", str(world.profile), "--experiment", "Only Get").stdout
    )


def test_the_changes_of_a_plan_are_a_page_alone_and_touch_no_host(world: World) -> None:
    told = world.call("plan", "--changes", str(world.profile), "--experiment", "Only Get")
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("# Only Get: ")
    assert "a rough guess" in told.stdout
    assert told.stdout.count("\n") == 1
    assert (world.touched, store.runs()) == ([], ())


@pytest.mark.parametrize(
    ("was", "becomes", "named"),
    [
        ('role = "client"', 'role = "clerk"', "clerk"),
        ("512/1024 kbit/s", "0/1024 kbit/s", "0"),
        ("512/1024 kbit/s", "128 kilobananas", "kilobananas"),
        (', folder = "/var/cache/branchlab"', "", "folder"),
        ('kind = "apache-disk"', 'kind = "memcached"', "no kind of cache named 'memcached'"),
        ("warm_up = 1", "warm_up = 4", "warm"),
        ('data = "quick"', 'data = "slow"', "no data set named 'slow'"),
        ('data = "quick"', "change = { files = 50 }", "neither data nor a repository is named"),
        ('data = "quick"', 'data = "quick"\nvcs = "../x"', "version control system named '../x'"),
        ('data = "quick"', 'data = "quick"\nchange = { files = 999 }', "999 files are to be changed"),
    ],
)
def test_a_wrong_profile_is_refused_before_any_host_is_touched(
    world: World, was: str, becomes: str, named: str
) -> None:
    world.profile.write_text(world.profile.read_text().replace(was, becomes))
    for command in ("run", "plan", "check"):
        told = world.call(command, str(world.profile))
        assert (told.exit_code, told.stdout) == (2, ""), told.output
        assert named in told.stderr
    assert world.touched == []
    assert store.runs() == ()


def test_a_profile_that_is_not_there_is_bad_input(world: World) -> None:
    told = world.call("run", "/nowhere/at/all.toml")
    assert told.exit_code == 2
    assert "/nowhere/at/all.toml" in told.stderr


def test_failed_trials_make_exit_code_1(world: World) -> None:
    world.bed = FakeTestbed(failing={5: "svn: E175002: no such proxy"}, samples=2)
    told = world.call("run", str(world.profile))
    assert told.exit_code == 1
    assert "failed: client: svn: E175002: no such proxy" in told.stdout
    assert "1 failed" in told.stdout


def test_a_cell_without_a_kept_attempt_makes_exit_code_1(world: World) -> None:
    world.bed = FakeTestbed(
        void=dict.fromkeys(range(1, 17), "bypassed: nothing went through the proxy"), samples=2
    )
    told = world.call("run", str(world.profile))
    assert told.exit_code == 1
    assert "without proof: bypassed" in told.stdout
    assert "16 trials are without proof" not in told.stdout  # the warm-ups are none of it
    assert "12 trials are without proof" in told.stdout


def test_a_host_out_of_reach_makes_exit_code_3_with_reason_and_advice(world: World) -> None:
    world.bed = FakeTestbed(opening=HostUnreachable("no answer on port 22", host="desk-1"))
    told = world.call("run", str(world.profile))
    assert told.exit_code == 3
    assert "Why: desk-1: no answer on port 22" in told.stdout
    assert f"What to do: {HostUnreachable.advice}" in told.stdout
    (head,) = store.runs()
    assert head.outcome == "failed"


def test_contact_lost_in_the_middle_keeps_what_is_finished(world: World) -> None:
    world.bed = FakeTestbed(at={7: HostUnreachable("the stream ended", host="server")}, samples=4)
    told = world.call("run", str(world.profile))
    assert told.exit_code == 3
    assert "failed. Trials: 2 kept, 4 warm-up (of 16 planned)." in told.stdout


def test_a_connection_that_was_lost_is_told_and_the_run_goes_on(world: World) -> None:
    world.bed = FakeTestbed(at={7: ConnectionLost("silent for 15 s", host="server")}, samples=4)
    told = world.call("run", str(world.profile))
    assert told.exit_code == 1
    assert "server: silent for 15 s. The hosts are connected to again" in told.stdout
    (head,) = store.runs()
    assert head.outcome == "done"


def test_a_defect_is_one_sentence_and_a_report(world: World, tmp_path: Path) -> None:
    world.bed = FakeTestbed(at={3: ZeroDivisionError("oh")}, samples=4)
    told = world.call("run", str(world.profile))
    assert told.exit_code == trouble.DEFECT
    assert "this is a defect of BranchLab, not of your hosts: ZeroDivisionError: oh" in told.stderr
    assert "Traceback" not in told.output
    (report,) = (tmp_path / "data" / "reports").iterdir()
    assert str(report) in told.stderr
    assert "Traceback" in report.read_text()


def test_exit_codes_by_kind_of_failure() -> None:
    assert trouble.code_of(HostLacks("no netem")) == 3
    assert trouble.code_of(AgentRefused("no", kind="missing")) == 3


def test_check_says_what_is_missing(world: World) -> None:
    world.found = [Found("server", True, "HTB, IFB and netem are there")]
    told = world.call("check", str(world.profile))
    assert told.exit_code == 0
    assert "everything is there" in told.stdout
    world.found.append(Found("desk", True, "the clock is 90 s off", "Set it."))
    told = world.call("check", str(world.profile))
    assert told.exit_code == 0
    assert "warn     desk: the clock is 90 s off" in told.stdout
    world.found.append(
        Found("proxy", False, "no apache2", "Install apache2-bin.", "apt-get install apache2-bin")
    )
    told = world.call("check", str(world.profile), "--experiment", "Only Get")
    assert told.exit_code == 3
    assert "ok       server: HTB" in told.stdout
    assert "trouble  proxy: no apache2" in told.stdout
    assert "           apt-get install apache2-bin" in told.stdout
    assert "what to do: Install apache2-bin." in told.stdout
    assert "1 of 3" in told.stdout


def test_check_looks_at_all_experiments_or_the_one_that_is_named(world: World) -> None:
    world.call("check", str(world.profile))
    assert len(world.checked) == 2
    assert "Only Get" in world.checked
    world.call("check", str(world.profile), "--experiment", "Only Get")
    assert world.checked == ["Only Get"]


def test_revert_says_what_it_took_back(world: World) -> None:
    told = world.call("revert", str(world.profile))
    assert told.exit_code == 0
    assert told.stdout == "server: the line\nclient: nothing was left to take back\n"


def test_revert_takes_from_the_living_only_when_told_to(world: World) -> None:
    assert "living" not in world.call("revert", str(world.profile)).stdout
    assert "server: a living run" in world.call("revert", "--force", str(world.profile)).stdout


def test_demo_makes_a_lab_runs_and_takes_it_down(world: World) -> None:
    told = world.call("demo")
    assert told.exit_code == 0, told.output
    assert world.touched == ["up", "look", "testbed", "down"]
    assert DEMO in told.stdout
    assert world.window == []


def test_demo_takes_its_lab_down_also_when_the_run_fails(world: World) -> None:
    world.bed = FakeTestbed(at={3: ZeroDivisionError("oh")}, samples=4)
    assert world.call("demo").exit_code == trouble.DEFECT
    assert world.touched[-1] == "down"


def test_with_a_display_demo_and_run_open_the_window_and_headless_does_not(world: World) -> None:
    world.display = True
    told = world.call("demo")
    assert told.exit_code == 0
    (head,) = store.runs()
    assert "1. Which operations get faster" in told.stdout
    assert f"Run file: {head.file}\nTo see it again: " in told.stdout
    assert world.signals == [signal.SIG_DFL, signal.SIG_DFL]
    assert world.call("run", str(world.profile), "--experiment", "Only Get").exit_code == 0
    assert world.window == [(str(world.profile), DEMO, True), (str(world.profile), "Only Get", True)]
    assert world.call("demo", "--headless").exit_code == 0
    assert world.call("run", str(world.profile), "--headless").exit_code == 0
    assert len(world.window) == 2
    world.window_code = 1
    assert world.call("demo").exit_code == 1


def test_without_a_command_the_window_opens_or_the_way_out_is_named(world: World) -> None:
    told = world.call()
    assert told.exit_code == 3
    assert "there is no display to open a window on" in told.stderr
    assert "what to do:" in told.stderr
    world.display = True
    assert world.call().exit_code == 0
    assert world.window == [(None, None, False)]


def test_unknown_words_are_bad_input(world: World) -> None:
    for words in (["walk"], ["run"], ["run", "--fast", "x"], ["lab", "up", "--clients", "0"]):
        assert world.call(*words).exit_code == 2


CHILD = """
import sys
sys.path[:0] = {paths!r}
from fake_testbed import FakeTestbed
from lab.__main__ import cli
from lab.cli import signals
from lab.cli.parts import Parts
bed = FakeTestbed(pace=0.2, samples=4)
try:
    with signals.as_interrupts():
        cli(["run", {profile!r}], obj=Parts(
            own=lambda lab: True, look=lambda *_: (), testbed=lambda lab, agreed: bed, display_there=lambda: False
        ))
finally:
    print("LAST", bed.log[-1], bed.line)
"""


@contextmanager
def child(world: World) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own, in which a virtual second takes a fifth of a real one."""
    code = CHILD.format(paths=[str(ROOT), str(ROOT / "tests")], profile=str(world.profile))
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ}, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], test: Callable[[str], bool]) -> str:
    """Output up to a line that passes; waits on words, and the suite's time-out ends it."""
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if test(line):
            return seen
    raise AssertionError(f"it never came: {seen} {process.stderr and process.stderr.read()}")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_keeps_what_is_finished_and_takes_back(world: World, number: int) -> None:
    with child(world) as process:
        read_until(process, lambda line: "2/16  " in line)
        process.send_signal(number)
        rest = read_until(process, lambda line: line.startswith("LAST"))
        assert process.wait() == 130
    assert "stopping: the trial under way is given up" in rest
    assert "LAST close None" in rest
    (head,) = store.runs()
    assert head.outcome == "stopped"
    assert 2 <= head.finished < 16
    told = json.loads(world.call("show", "last", "--json").stdout)
    assert told["outcome"] == "stopped"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_run_whose_reader_is_gone_goes_on_to_its_end(world: World) -> None:
    with child(world) as process:
        read_until(process, lambda line: "2/16  " in line)
        assert process.stdout is not None
        process.stdout.close()
        process.wait()
    (head,) = store.runs()
    assert (head.outcome, head.finished) == ("done", 16)


@pytest.mark.parametrize(
    ("environment", "there"),
    [
        ({}, False),
        ({"DISPLAY": ":4711"}, False),
        ({"DISPLAY": "x"}, False),
        ({"QT_QPA_PLATFORM": "offscreen"}, True),
    ],
)
def test_a_display_counts_only_if_it_answers(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], there: bool
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", "linux")
    assert Parts().display_there() is there


# ---- the same run again


def test_what_failed_is_repeated_into_the_same_run(world: World) -> None:
    world.profile.write_text(
        world.profile.read_text().replace("hosts.desk-1]", "hosts.client]"), encoding="utf-8"
    )
    world.bed = FakeTestbed(samples=2, failing={6: "svn: no"})
    first = world.call("run", "--headless", str(world.profile))
    assert first.exit_code == 1, first.output
    world.bed, world.display = FakeTestbed(samples=2), True  # it stays in the terminal all the same
    again = world.call("run", "--repeat", "last", str(world.profile))
    assert again.exit_code == 0, again.output
    assert "Repeated, since they failed or had no proof: 1 trials (6 by " in again.stdout
    assert world.window == []
    (head,) = store.runs()
    assert (head.outcome, head.planned, head.finished) == ("done", head.finished, head.planned)
    nothing = world.call("run", "--repeat", "last", str(world.profile))
    assert nothing.exit_code == 2
    assert "nothing to repeat" in nothing.output
    assert world.call("run", "--repeat", "last", "--rehearse", str(world.profile)).exit_code == 2


# ---- a rehearsal


def test_a_rehearsal_runs_each_kind_once_and_looks_whether_anything_is_left(world: World) -> None:
    world.display = True  # it stays in the terminal all the same
    told = world.call("run", "--rehearse", str(world.profile))
    assert told.exit_code == 0, told.output
    assert "Rehearsed 4 of 4 kinds of trial, once each; 4 proved themselves." in told.stdout
    assert "server: changed: " in told.stdout
    assert "server: nothing is left there" in told.stdout
    assert "1. Which operations" not in told.stdout
    assert world.touched == ["look", "testbed", "left"]
    assert world.window == []
    (head,) = store.runs()
    assert (head.experiment, head.planned) == ("Proxy efficiency (quick) (rehearsal)", 4)
    shown = world.call("show", "last").stdout
    assert "Rehearsed 4 of 4 kinds" in shown
    assert "1. Which operations" not in shown


def test_a_rehearsal_names_what_did_not_prove_itself_and_what_is_left(world: World) -> None:
    world.bed = FakeTestbed(failing={2: "svn: E1: no"}, void={3: "bypassed: nothing"}, samples=2)
    told = world.call("run", "--rehearse", str(world.profile))
    assert told.exit_code == 1
    assert "4 of 4 kinds of trial, once each; 2 proved themselves" in told.stdout
    assert "failed: client: svn: E1: no" in told.stdout
    assert "void: bypassed: nothing" in told.stdout
    world.bed = FakeTestbed(at={3: HostTrouble("the stream ended", host="server")}, samples=4)
    told = world.call("run", "--rehearse", str(world.profile))
    assert told.exit_code == 3
    assert told.stdout.count(": not reached") >= 1
    assert "It broke off: server: the stream ended" in told.stdout
    world.bed, world.found = FakeTestbed(samples=2), [Found("server", False, "left there: a line", "revert")]
    told = world.call("run", "--rehearse", str(world.profile))
    assert told.exit_code == 3
    assert "server: left there: a line\n   what to do: revert" in told.stdout


def test_a_rehearsal_asks_as_a_run_does(world: World) -> None:
    world.own, world.questions = False, [OTHERS]
    assert world.call("run", "--rehearse", str(world.profile)).exit_code == 2
    assert world.call("run", "--rehearse", str(world.profile), "--agree", "nothing").exit_code == 2
    assert world.touched == ["look"]


# ---- what a run would do to other people's work


OTHERS = Question(
    "connections", "server", "3 connections of others.", ("3 between desk and server on port 445",)
)
OBJECTS = Question("purge", "proxy", "7 objects would go.", ("http://198.51.100.10:80/svn/\x1b[2J",))


def test_what_is_agreed_to_reaches_the_hosts_and_a_wrong_word_nobody(world: World) -> None:
    world.own, world.questions = False, [OTHERS, OBJECTS]
    told = world.call("run", str(world.profile), "--agree", "connections, purge,qdisc")
    assert told.exit_code == 0, told.output
    assert world.touched == ["look", "testbed"]
    assert world.agreed == {"connections", "purge", "qdisc"}
    world.touched.clear()
    told = world.call("run", str(world.profile), "--agree", "connection")
    assert told.exit_code == 2
    assert "connections, purge, qdisc" in told.stderr
    assert world.touched == []


def test_what_was_agreed_to_is_passed_on_to_the_window(world: World) -> None:
    world.own, world.display, world.questions = False, True, [OTHERS]
    told = world.call("run", str(world.profile), "--experiment", "Only Get", "--agree", "qdisc")
    assert told.exit_code == 0, told.output
    assert (world.window, world.agreed) == ([(str(world.profile), "Only Get", True)], {"qdisc"})
    assert world.touched == []  # the window looks, and refuses what was not agreed to
    assert (
        world.call("run", str(world.profile), "--experiment", "Only Get", "--agree", "nothing").exit_code == 0
    )
    assert world.agreed == frozenset()
    assert world.call("run", str(world.profile), "--experiment", "Only Get").exit_code == 0
    assert world.agreed is None  # only then it asks


@pytest.mark.parametrize("words", [[], ["--headless"]])
def test_unattended_and_nothing_agreed_to_no_host_is_touched(world: World, words: list[str]) -> None:
    world.own = False
    told = world.call("run", str(world.profile), *words)
    assert (told.exit_code, told.stdout, world.touched, store.runs()) == (2, "", [], ())
    assert "nobody is at the terminal" in told.stderr
    assert "--agree connections,purge,qdisc" in told.stderr
    assert "--agree nothing" in told.stderr
    told = world.call("run", str(world.profile), "--experiment", "Only Get")
    assert "--agree connections,qdisc" in told.stderr


def test_what_can_need_no_agreement_runs_unattended(world: World) -> None:
    world.own = False
    world.profile.write_text(world.profile.read_text().replace("512/1024 kbit/s", "as it is"))
    told = world.call("run", str(world.profile), "--experiment", "Only Get")
    assert told.exit_code == 0, told.output
    assert world.touched == ["look", "testbed"]


@pytest.mark.parametrize(("agreed", "left"), [("nothing", "3 connections"), ("connections", "7 objects")])
def test_a_kind_that_was_not_agreed_to_is_named_and_nothing_is_begun(
    world: World, agreed: str, left: str
) -> None:
    world.own, world.questions = False, [OTHERS, OBJECTS]
    told = world.call("run", str(world.profile), "--agree", agreed)
    assert (told.exit_code, told.stdout, world.touched, store.runs()) == (2, "", ["look"], ())
    assert left in told.stderr
    assert "branchlab run --agree connections,purge PROFILE" in told.stderr
    assert "\x1b" not in told.stderr
    world.questions = []
    assert world.call("run", str(world.profile), "--agree", "nothing").exit_code == 0


def test_in_a_lab_of_our_own_nothing_is_asked_but_it_is_looked_whether_the_run_can_begin(
    world: World,
) -> None:
    world.questions = [OTHERS]
    assert world.call("run", str(world.profile)).exit_code == 0
    assert world.call("demo").exit_code == 0
    world.touched.clear()
    world.refused = BadInput("there is no scratch place")
    assert world.call("run", str(world.profile)).exit_code == 2
    assert world.touched == ["look"]  # no run has begun, and none is in the library


def test_a_host_in_trouble_is_told_before_there_is_a_run_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(self: World, lab: Lab, experiment: Experiment) -> tuple[Question, ...]:
        raise AgentRefused("this host is held by alice", kind="busy", host="server", advice="Wait.")

    monkeypatch.setattr(World, "_look", held)
    world.own = False
    told = world.call("run", str(world.profile), "--agree", "nothing")
    assert (told.exit_code, world.touched, store.runs()) == (3, [], ())
    assert "server: this host is held by alice" in told.stderr


PERSON = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.path[:0] = {paths!r}
from fake_testbed import FakeTestbed
from lab.__main__ import cli
from lab.asking import Question
from lab.cli.parts import Parts
def bed(lab, agreed):
    print("AGREED", sorted(agreed), flush=True)
    return FakeTestbed(samples=2)
asked = (
    Question("connections", "server", "3 connections of others.", ("3 between desk and server on port 445",)),
    Question("purge", "proxy", "7 objects would go."),
)
cli({words!r}, obj=Parts(own=lambda lab: False, look=lambda *_: asked, testbed=bed, display_there=lambda: False))
"""


def at_a_terminal(world: World, answers: list[bytes], *words: str) -> tuple[int, str]:
    """`run` with a person at the terminal, who gives one answer for each question; exit code and what they saw."""
    import pty  # where there are terminals of POSIX

    code = PERSON.format(
        paths=[str(ROOT), str(ROOT / "tests")],
        words=["run", str(world.profile), "--experiment", "Only Get", *words],
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", code], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "dumb"}, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    seen, given = "", 0
    try:
        while True:
            # A signal is lost if it comes just before Python begins to read; people press the keys again.
            if not select.select([ours], [], [], 2)[0]:
                os.write(ours, b"".join(one for one in answers[:given] if one == b"\x03"))
                continue
            try:
                seen += os.read(ours, 4096).decode("utf-8", "replace")
            except OSError:  # EIO: the other end is closed
                break
            if given < len(answers) and seen.count("[y/N]: ") > given:
                given += 1
                os.write(ours, answers[given - 1])
    finally:
        os.close(ours)
    return process.wait(60), seen


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
def test_a_person_at_the_terminal_says_yes_to_each_and_it_runs(world: World) -> None:
    code, seen = at_a_terminal(world, [b"y\n", b"yes\n"])
    assert code == 0, seen
    assert "server: 3 connections of others." in seen
    assert "    3 between desk and server on port 445" in seen
    assert "Agree to limit the line although others have connections between these hosts? [y/N]:" in seen
    assert "AGREED ['connections', 'purge']" in seen
    assert len(store.runs()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
@pytest.mark.parametrize("answers", [[b"\n"], [b"n\n"], [b"y\n", b"\n"], [b"\x04"]])
def test_a_person_who_says_no_or_nothing_changes_nothing(world: World, answers: list[bytes]) -> None:
    code, seen = at_a_terminal(world, answers)
    assert code == 2, seen
    assert "not agreed to: " in seen
    assert "Nothing was changed" in seen
    assert "AGREED" not in seen
    assert store.runs() == ()


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
def test_what_was_said_beforehand_is_not_asked(world: World) -> None:
    code, seen = at_a_terminal(world, [], "--agree", "connections,purge")
    assert code == 0, seen
    assert "[y/N]" not in seen
    code, seen = at_a_terminal(world, [], "--agree", "connections")
    assert code == 2, seen
    assert "7 objects would go." in seen


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
def test_ctrl_c_at_a_question_interrupts(world: World) -> None:
    code, seen = at_a_terminal(world, [b"\x03"])
    assert (code, store.runs()) == (130, ()), seen
