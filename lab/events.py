"""What a run says, in the order in which it says it: frozen events, to JSON and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

import pydantic_core
from pydantic import Field, TypeAdapter

from lab import units
from lab.model import Experiment, Line, Trial


class Outcome(StrEnum):
    """How a run ended."""

    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class Standing(StrEnum):
    """What a finished trial is worth: counted, kept apart, void (without proof) or failed."""

    KEPT = "kept"
    WARM_UP = "warm-up"
    LAUNCH = "launch"
    VOID = "void"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The first word: the experiment as asked and the whole plan. `at` is UTC, ISO 8601."""

    run: str
    at: str
    experiment: Experiment
    trials: tuple[Trial, ...]
    classes: dict[str, str]
    """Traffic class of each operation: server, cacheable, local or n/a."""
    lab: str = ""
    version: str = ""
    kind: Literal["run-started"] = "run-started"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContinued:
    """After the last word of a run: these of its trials are done now, on the same lab (see `lab.repeats`)."""

    at: str
    trials: tuple[Trial, ...]
    version: str = ""
    kind: Literal["run-continued"] = "run-continued"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSeen:
    """A host answered `hello`; its facts as the agent told them."""

    host: str
    role: str
    facts: dict[str, Any]
    kind: Literal["host-seen"] = "host-seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataMeasured:
    """The data set's own table: files, folders, bytes, by extension; revision; size of a full cache."""

    facts: dict[str, Any]
    kind: Literal["data-measured"] = "data-measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMeasured:
    """What starting the VCS's tool costs by itself, in seconds (median of a few starts)."""

    tool: str
    version: str
    start_s: float
    kind: Literal["tool-measured"] = "tool-measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFilled:
    """A fill made 100 % for an operation: objects and bytes of its list, bytes and requests that it cost.

    `fetched_bytes` is None where nobody counts between server and proxy.
    `list_of` is the operation whose list it is: another one's where this one brings nothing into a cache.
    """

    operation: str
    objects: int
    cache_bytes: int
    fetched_bytes: int | None
    requests: int
    list_of: str = ""
    kind: Literal["cache-filled"] = "cache-filled"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineProved:
    """A line was applied for the first time in this run (or after lost contact) and probed.

    `achieved_*` are bits per second of TCP payload; round trips in seconds; `loss` as 200 probes tell.
    """

    line: Line
    read_upload_bps: int | None
    read_download_bps: int | None
    achieved_upload_bps: float | None
    achieved_download_bps: float | None
    round_trip_s: float | None
    round_trip_low_s: float | None = None
    round_trip_high_s: float | None = None
    loss: float | None = None
    method: str = ""
    kind: Literal["line-proved"] = "line-proved"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarted:
    """A trial is being prepared; its clock starts with the first sample."""

    trial: int
    at: str
    kind: Literal["trial-started"] = "trial-started"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStarted:
    """Preparing is over; this command is timed now on this host. Of several clients each has one, begun together."""

    trial: int
    host: str
    argv: tuple[str, ...]
    kind: Literal["command-started"] = "command-started"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSampled:
    """Bytes that have arrived since the trial's clock started, by pair (`lab.model.PAIRS`)."""

    trial: int
    t_s: float
    bytes: dict[str, int]
    kind: Literal["traffic-sampled"] = "traffic-sampled"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSeen:
    """Output of the timed command, as text; undecodable bytes are replaced."""

    trial: int
    stream: str
    text: str
    host: str = ""
    """where it was printed, if several clients have a part in the trial"""
    kind: Literal["output-seen"] = "output-seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One thing that a trial proved about itself, or failed to."""

    name: str
    """line, cache, path, quiet, exit, together, busy, awake"""
    ok: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDone:
    """One client's part in a trial of several. Its own duration is in seconds on its own clock.

    `started_s` is how long after the first of them its command began, known to ± `error_s`, since that takes
    comparing clocks over the network; `bytes` are those of its own pairs, as they arrived.
    """

    host: str
    started_s: float
    error_s: float
    exit_status: int | None = None
    wall_s: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    peak_kib: int | None = None
    bytes: dict[str, int] = field(default_factory=dict)
    ok: bool = True
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFinished:
    """A trial's record. Durations in seconds on the client's own clock; bytes as they arrived.

    Of several clients, which `clients` has each for itself, `wall_s` is from the first one's start to the last one's
    end; processor times are sums, `peak_kib` is the largest; exit status and output are those of the first that
    failed, or else of the last to end.
    """

    trial: int
    at: str
    standing: Standing
    reason: str = ""
    exit_status: int | None = None
    wall_s: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    peak_kib: int | None = None
    bytes: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    tail: dict[str, int] = field(default_factory=dict)
    served_bytes: int | None = None
    relayed_bytes: int | None = None
    direct_bytes: int | None = None
    requests: dict[str, int] = field(default_factory=dict)
    cache_asked: str = ""
    cache_found: float | None = None
    cache_objects: int | None = None
    purged: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    preparing_s: float = 0.0
    read_upload_bps: int | None = None
    read_download_bps: int | None = None
    output: str = ""
    clients: tuple[ClientDone, ...] = ()
    kind: Literal["trial-finished"] = "trial-finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSettled:
    """A line is done with: every interval is within what was asked, or no more attempts are allowed.

    `widest` is how far the widest interval of 95 % reaches to one side, as a share (None: a cell has none);
    `attempts` were made of each cell; `spared` are the trials that are not executed.
    """

    line: Line
    attempts: int
    within: float
    widest: float | None = None
    spared: tuple[int, ...] = ()
    kind: Literal["line-settled"] = "line-settled"

    @property
    def stable(self) -> bool:
        """True if all that was asked for was reached."""
        return self.widest is not None and self.widest <= self.within

    @property
    def text(self) -> str:
        """For people: `64/128 kbit/s: stable after 6 attempts per cell (± 3.1 %)`."""
        name, times = units.line_text(self.line), f"{self.attempts} attempts per cell"
        reach = "a cell without an interval" if self.widest is None else f"± {100 * self.widest:.1f} %"
        if self.stable:
            return f"{name}: stable after {times} ({reach}, asked for ± {100 * self.within:g} %)"
        return f"{name}: not stable after {times}, the most allowed ({reach}, asked for ± {100 * self.within:g} %)"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChanged:
    """One change on a host, for the run's account: who asked is the run; `undone` once it was taken back."""

    host: str
    at: str
    what: str
    undone: bool = False
    kind: Literal["host-changed"] = "host-changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A warning or remark for the person who watches; `grade` is info, warn or trouble.

    `lost` names a host whose connection was lost and that is looked for again: until its next `HostSeen`.
    """

    text: str
    grade: str = "info"
    trial: int | None = None
    lost: str = ""
    kind: Literal["noted"] = "noted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaused:
    """The run waits before its next trial."""

    kind: Literal["run-paused"] = "run-paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed:
    """The run goes on."""

    kind: Literal["run-resumed"] = "run-resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The last word; it always comes.

    `declined`: it ended before any trial because nobody agreed to what it would do to others. `left` is what could
    not be taken back, in words; empty where everything was.
    """

    at: str
    outcome: Outcome
    reason: str = ""
    advice: str = ""
    declined: bool = False
    left: str = ""
    kind: Literal["run-finished"] = "run-finished"


Event = (
    RunStarted
    | RunContinued
    | HostSeen
    | DataMeasured
    | ToolMeasured
    | CacheFilled
    | LineProved
    | TrialStarted
    | CommandStarted
    | TrafficSampled
    | OutputSeen
    | TrialFinished
    | LineSettled
    | HostChanged
    | Noted
    | RunPaused
    | RunResumed
    | RunFinished
)

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


def to_json(event: Event) -> str:
    """One event as a line of JSON."""
    return _ADAPTER.dump_json(event).decode()


def from_json(text: str | bytes) -> Event:
    """The event that `to_json` wrote. Raises ValueError on anything else; no number of a run is NaN or infinite."""
    return _ADAPTER.validate_python(pydantic_core.from_json(text, allow_inf_nan=False))
