"""Real runs for tests: an embedded lab looked at from outside, experiments on it, and the command as a process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import runner, store
from lab.events import Event, LineProved, RunFinished, TrialFinished
from lab.machines import Machines
from lab.model import AS_IT_IS, DISABLED, Experiment, Lab, Line, ProxyState, Trial
from lab.stop import Stop

CHECKOUT = Path(__file__).resolve().parents[1]
PATIENCE_S = 60.0
"""So long something is awaited that should be there at once; only a failure takes that long."""

QUICK_LINE = Line(upload_bps=512_000, download_bps=1_024_000)
EMPTY, NINETY, FULL = (ProxyState(full=n) for n in (0, 90, 100))


def experiment(**changes: object) -> Experiment:
    """Get without a proxy on the line as it is, twice: the least that can be run. Any field can be changed."""
    fields: dict[str, object] = {
        "name": "Acceptance",
        "lines": (AS_IT_IS,),
        "operations": ("get",),
        "states": (DISABLED,),
        "attempts": 2,
        "warm_up": 0,
    }
    return Experiment(**{**fields, **changes})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Ran:
    """A run that is over, as its file tells it."""

    path: Path
    events: tuple[Event, ...]
    plan: tuple[Trial, ...]
    trials: tuple[TrialFinished, ...]

    @property
    def last_word(self) -> RunFinished:
        (word,) = (event for event in self.events if isinstance(event, RunFinished))
        return word

    @property
    def proved(self) -> tuple[LineProved, ...]:
        return tuple(event for event in self.events if isinstance(event, LineProved))

    def of(self, operation: str, state: ProxyState | None = None) -> list[tuple[Trial, TrialFinished]]:
        """The trials of an operation (in one state), with their place in the plan."""
        finished = {one.trial: one for one in self.trials}
        return [
            (trial, finished[trial.number])
            for trial in self.plan
            if trial.treatment.operation == operation
            and trial.number in finished
            and state in (None, trial.treatment.state)
        ]


def read(path: Path) -> Ran:
    """What a run file holds."""
    with store.opened(path) as record:
        return Ran(
            path=path,
            events=tuple(record.events(samples=False)),
            plan=record.run_started.trials,
            trials=record.trials(),
        )


def ran(
    lab: Lab,
    wanted: Experiment,
    path: Path,
    during: Callable[[Event], object] = lambda event: None,
    drivers: Path | None = None,
) -> Ran:
    """Run an experiment on the lab into the file at `path`; `during` sees every event."""
    for event in store.recorded(runner.run(wanted, Machines(lab, drivers), Stop()), path):
        during(event)
    return read(path)


# ---- what is on the hosts


HOSTS = ("server", "proxy", "client")
LOOK = """
tc qdisc show
for device in $(ls /sys/class/net); do
    echo "$device"; tc filter show dev "$device"; tc filter show dev "$device" ingress 2>/dev/null
done
nft list ruleset
find /run/branchlab "$TMPDIR/../services" -mindepth 1 -not -name "taken-back*" 2>/dev/null
"""
"""Line, devices, counters, leases and services of a host. What an undo noted for `revert` is none of these."""
SCRATCH = """find "$TMPDIR" -mindepth 2 -maxdepth 2"""
"""Scratch folders of a host; the empty folder in which they are may stay."""


def on(folder: Path, host: str, words: str) -> str:
    """Run a command on a host of the lab in `folder`, through the plain ssh; what it said, both streams."""
    return subprocess.run(
        ["ssh", "-F", f"{folder}/ssh_config", host, "--", words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    ).stdout


def inhabitants(folder: Path) -> dict[int, str]:
    """Process numbers (as seen from here) and command lines of what lives in the lab, but for its hosts' own."""
    found: dict[int, str] = {}
    spaces: dict[int, str] = {}
    own = str(Path("/proc/self/ns/pid").readlink())
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (each / "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ")
            if words:
                found[int(each.name)] = words.decode("utf-8", "replace")
                spaces[int(each.name)] = str((each / "ns/pid").readlink())
    hosts = [n for n, words in found.items() if f"lab.embedded.holder import main; main() {folder}" in words]
    homes = {spaces[number] for number in hosts if number in spaces} - {own}
    return {
        n: words
        for n, words in found.items()
        if spaces.get(n) in homes and n not in hosts and not words.startswith("sshd")
    }


def on_host(folder: Path, host: str) -> dict[int, str]:
    """Those of the lab's inhabitants that live on one host."""
    space = on(folder, host, "readlink /proc/self/ns/net").strip()
    here = {}
    for number, line in inhabitants(folder).items():
        with contextlib.suppress(OSError):
            if str(Path(f"/proc/{number}/ns/net").readlink()) == space:
                here[number] = line
    return here


@dataclass(frozen=True)
class Hosts:
    """What can be seen of a lab's hosts: what is there before a run must be all that is there after it."""

    looks: dict[str, str]
    processes: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path) -> Hosts:
        looks = {name: on(folder, name, LOOK) for name in HOSTS}
        return cls(looks, tuple(sorted(inhabitants(folder).values())))


def scratch(folder: Path) -> list[str]:
    """The scratch folders on all hosts."""
    return [line for name in HOSTS for line in on(folder, name, SCRATCH).splitlines()]


def await_same(folder: Path, before: Hosts, within_s: float = PATIENCE_S) -> None:
    """Wait until the hosts are as they were. Fails with what is different."""
    end = time.monotonic() + within_s
    while (now := Hosts.of(folder)) != before and time.monotonic() < end:
        time.sleep(0.1)
    assert now == before


def await_lifted(folder: Path, within_s: float) -> None:
    """Wait until nothing limits the server's line and nobody counts on it."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if not on(folder, "server", "tc qdisc show | grep htb; nft list tables"):
            return
        time.sleep(0.1)
    raise AssertionError(on(folder, "server", LOOK))


def await_timed_get(folder: Path) -> None:
    """Wait until a trial's own checkout is under way (that of the set-up goes to another folder)."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        lines = inhabitants(folder).values()
        if any(line.startswith("svn checkout") and line.endswith("/work") for line in lines):
            return
        time.sleep(0.02)
    raise AssertionError(f"no checkout among {inhabitants(folder)}")


def kill(numbers: Iterable[int]) -> None:
    """Kill processes without a warning."""
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


# ---- the command as a process


SHORT_LEASE_S = 6.0
SHORT_LEASE = f"""
import sys
from lab.__main__ import cli
from lab.cli import signals
from lab.cli.parts import Parts
from lab.machines import Machines
parts = Parts(testbed=lambda lab, agreed: Machines(lab, agreed=agreed, lease_s={SHORT_LEASE_S}))
with signals.as_interrupts():
    cli(sys.argv[1:], obj=parts)
"""
"""The command, with leases that a test can wait for."""


@contextmanager
def command(*words: str, data: Path, code: str | None = None) -> Iterator[subprocess.Popen[str]]:
    """`branchlab WORDS` as a process of its own, in a process group of its own; killed at the end."""
    start = ["-c", code] if code is not None else ["-m", "lab"]
    with subprocess.Popen(
        [sys.executable, "-u", *start, *words],
        cwd=CHECKOUT,
        env={**os.environ, "BRANCHLAB_DATA": str(data)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """What the command printed, up to a line that has `words`."""
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if words in line:
            return seen
    raise AssertionError(f"it never said {words!r}: {seen} {process.stderr and process.stderr.read()}")


def profile(hosts: Path, path: Path, experiment_text: str) -> Path:
    """The hosts of one profile with another experiment, written to `path`."""
    text, _, _ = hosts.read_text("utf-8").partition("[[experiments]]")
    path.write_text(text + experiment_text, "utf-8")
    return path
