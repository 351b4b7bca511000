"""What a terminal shows of a run, and how signals become a request to stop."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from fake_testbed import FakeTestbed, small
from rich.console import Console
from runs_made import events

from lab.analysis.summary import summarised
from lab.cli import progress, signals, story, tables
from lab.events import (
    ClientDone,
    CommandStarted,
    Event,
    LineProved,
    Noted,
    RunFinished,
    TrafficSampled,
    TrialFinished,
)
from lab.live import Live
from lab.stop import Stop


def terminal() -> Console:
    """A terminal that remembers."""
    return Console(file=io.StringIO(), force_terminal=True, width=120, highlight=False, markup=False)


def text_of(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_a_terminal_shows_bar_time_to_go_trial_traffic_and_last_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "REDRAW_S", 0.0)
    out = terminal()
    with progress.screen(out) as screen:
        for event in events(small(), FakeTestbed(samples=4)):
            screen.apply(event)
    told = text_of(out)
    for words in (
        "0 of 12 trials",
        "time to go: not known yet",
        "12 of 12 trials",
        " to go",
        "now    Get, disabled, 512/1024 kbit/s, attempt 1: ",
        "server→client ",
        "last   Get, 100 %, 512/1024 kbit/s, attempt 3: ",
    ):
        assert words in told


def test_what_must_not_be_missed_scrolls_away_above_the_picture() -> None:
    out = terminal()
    told = events(small(), FakeTestbed(failing={2: "svn: no such proxy"}, samples=1))
    with progress.screen(out) as screen:
        for event in [*told[:-1], Noted(text="the clock jumped", grade="warn"), Noted(text="calm"), told[-1]]:
            screen.apply(event)
    assert "failed: client: svn: no such proxy" in text_of(out)
    assert "warn: the clock jumped" in text_of(out)
    assert "calm" not in text_of(out)


def test_plain_output_has_one_line_per_trial_and_nothing_of_samples() -> None:
    out = Console(file=io.StringIO(), width=140)
    told = events(small(), FakeTestbed(samples=50))
    with progress.screen(out) as screen:
        for event in told:
            screen.apply(event)
    lines = text_of(out).splitlines()
    assert sum("attempt" in line for line in lines) == 12
    assert len(lines) < 30


def test_the_picture_is_true_between_and_inside_trials() -> None:
    live = Live(clock=lambda: 0.0)
    for event in events(small(), FakeTestbed(samples=2)):
        live.apply(event)
        told = text(progress.picture(live))
        assert f"{live.done} of {live.total} trials" in told
        if isinstance(event, CommandStarted | TrafficSampled):
            assert "now    preparing" not in told
        if isinstance(event, RunFinished):
            assert "now    between trials" in told


def text(shown: object) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(shown)
    return text_of(console)


def test_an_output_that_fails_does_not_fail_the_run() -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(5, "Input/output error")

    seen: list[Event] = []
    for out in (Console(file=Gone()), Console(file=Gone(), force_terminal=True)):
        shown: progress.Screen = progress.PlainScreen(out)
        for event in events(small(), FakeTestbed(samples=1)):
            shown.apply(event)
            seen.append(event)
        story.report(story.summarised(seen), Path("x"), out)
    assert isinstance(seen[-1], RunFinished)


def test_a_proved_line_says_what_the_probe_got() -> None:
    proved = next(event for event in events(small()) if isinstance(event, LineProved))
    told = progress.line_of(proved, Live())
    assert told == "line 512/1024 kbit/s: a probe got 486.4/972.8 kbit/s, round trip 0.2 ms"
    assert "486.4/972.8 kbit/s" in text(tables.lines([proved]))


def test_the_command_is_named_so_that_it_can_be_pasted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "my tools" / "branchlab"), "run"])
    assert story.command() == f"'{tmp_path}/my tools/branchlab'"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "lab" / "__main__.py")])
    assert story.command() == f"{sys.executable} -m lab"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bin/branchlab"])
    assert story.command() == f"{tmp_path}/bin/branchlab"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_the_first_signal_asks_and_the_second_ctrl_c_gives_a_hint() -> None:
    stop, said, heard = Stop(), [], threading.Semaphore(0)

    def say(text: str) -> None:
        said.append(text)
        heard.release()

    before = signal.getsignal(signal.SIGINT)
    with signals.asking(stop, say):
        os.kill(os.getpid(), signal.SIGINT)
        assert heard.acquire(timeout=30)
        assert stop.requested
        os.kill(os.getpid(), signal.SIGINT)
        assert heard.acquire(timeout=30)
    assert said == ["stopping: the trial under way is given up, and the hosts are taken back", signals.HINT]
    assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_outside_of_a_run_term_is_an_interrupt() -> None:
    with signals.as_interrupts(), pytest.raises(KeyboardInterrupt):  # noqa: PT012
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(30)


def test_the_module_can_be_called_and_help_names_every_command() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "lab", "--help"],
        cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in ("demo", "check", "plan", "run", "runs", "show", "export", "revert", "lab"):
        assert f"\n  {name} " in told.stdout


HOSTILE = "\x1b]52;c;cHduCg==\x07\x1b[2J\u202e said\x9b"


@pytest.mark.parametrize("terminal", [True, False])
def test_what_a_host_said_cannot_steer_the_terminal(terminal: bool) -> None:
    out = tables.Patient(
        file=io.StringIO(), force_terminal=terminal, width=200, highlight=False, markup=False, emoji=False
    )
    told = events(small(), FakeTestbed(failing=dict.fromkeys(range(1, 13), HOSTILE)))
    with progress.screen(out) as screen:
        for event in told:
            screen.apply(event)
    story.report(summarised(told), Path(f"a{HOSTILE}.branchlab"), out)
    shown = text_of(out)
    assert shown.count("\\x1b]52;c;") >= 12
    for sign in ("\x1b]52", "\x1b[2J", "\x07", "\u202e", "\x9b"):
        assert sign not in shown


def test_errors_and_other_encodings_are_shown_too(tmp_path: Path) -> None:
    profile = tmp_path / "office.toml"
    profile.write_text('schema = 1\n[hosts."a\\u001b[2Jb"]\nrole = "client"\nssh = "a"\n', "utf-8")
    command = [sys.executable, "-m", "lab", "check", str(profile)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert "a\\x1b[2Jb" in done.stderr
    dash = "import click; from lab import __main__ as m; m.cli = lambda: click.echo('a \u2013 b'); m.main()"
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [sys.executable, "-c", dash], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert (done.stdout, done.stderr) == ("a ? b\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_under_the_output_is_no_defect(tmp_path: Path) -> None:
    environment = {**os.environ, "BRANCHLAB_DATA": str(tmp_path)}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lab", "runs", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            env=environment,
        )
    assert done.returncode == 1
    assert done.stderr == "branchlab: the output cannot be written: No space left on device\n"


def test_of_several_clients_each_ones_time_stands_behind_the_trials() -> None:
    live = Live()
    told = events(small(), FakeTestbed(samples=1))
    parts = tuple(
        ClientDone(host=f"desk-{n}", started_s=0.0, error_s=0.0, exit_status=0, wall_s=float(n))
        for n in range(1, 6)
    )
    for event in told:
        live.apply(replace(event, clients=parts[:2]) if isinstance(event, TrialFinished) else event)
    assert progress.attempt_words(live.attempts[1]).endswith(
        " (desk-1 0:01.00, desk-2 0:02.00) (warm-up, not counted)"
    )
    many = replace(live.attempts[1], clients=parts, standing="kept")
    assert progress.attempt_words(many).endswith(" (0:01.00 on desk-1 to 0:05.00 on desk-5)")
    assert progress.clients_words(replace(many, clients=())) == ""


def test_what_a_time_of_several_clients_is_stands_under_the_tables() -> None:
    def remarks(clients: object) -> list[str]:
        return list(tables.remarks(summarised(events(small(clients=clients), FakeTestbed()))))

    assert remarks(3)[0].startswith(
        "3 clients at once: a time is from the first one's start to the last one's end"
    )
    assert remarks(("desk-1", "desk-4"))[0].startswith("desk-1 and desk-4 at once: ")
    assert not any("at once" in text for text in (*remarks(1), *remarks(("desk-2",))))
