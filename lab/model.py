"""Frozen values of the domain: lines, proxy states, treatments, trials, experiments, hosts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite

OPERATIONS = ("get", "check-out", "undo", "check-in", "history", "diff")
"""The six operations of the flagship experiment, in the order of the published tables."""

OPERATION_NAMES = {
    "get": "Get",
    "check-out": "Check-Out",
    "undo": "Undo Check-Out",
    "check-in": "Check-In",
    "history": "History",
    "diff": "Diff",
}
"""The names on screen."""

CHANGING = ("check-out", "check-in")
"""Those that change a repository: locks and revisions."""

MIN_QUEUE_BYTES = 64_000
"""A default queue is never smaller than this, whatever the rate."""


class Role(StrEnum):
    """What a host is in the lab."""

    CLIENT = "client"
    PROXY = "proxy"
    SERVER = "server"
    ROUTER = "router"


class TrafficClass(StrEnum):
    """What an operation of a driver does on the wire."""

    SERVER = "server"
    CACHEABLE = "cacheable"
    LOCAL = "local"
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The emulated line between office and server. Rates in bit/s, `None` for both: the line as it is.

    `queue_bytes` is the same for both directions; left out, each direction's queue holds `queue_s` seconds
    of its own rate, and at least `MIN_QUEUE_BYTES` where `queue_s` was left out too (then it is 1 s).
    """

    upload_bps: int | None
    download_bps: int | None
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    queue_bytes: int | None = None
    queue_s: float | None = None

    def __post_init__(self) -> None:
        if (self.upload_bps is None) != (self.download_bps is None):
            raise ValueError("a line has both rates or none")
        for rate in (self.upload_bps, self.download_bps):
            if rate is not None and rate <= 0:
                raise ValueError(f"a rate must be above zero, not {rate} bit/s")
        for name, value in (("delay", self.delay_s), ("jitter", self.jitter_s)):
            if not (isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be zero or more seconds, not {value}")
        if not 0 <= self.loss <= 1:
            raise ValueError(f"loss is a share from 0 to 1, not {self.loss}")
        if self.queue_bytes is not None and self.queue_s is not None:
            raise ValueError("a queue is given in bytes or in seconds, not in both")
        if self.jitter_s > self.delay_s:
            raise ValueError("jitter cannot be larger than the delay")

    @property
    def limited(self) -> bool:
        """False for the line as it is."""
        return self.download_bps is not None

    @property
    def delayed(self) -> bool:
        """True if packets are held back or dropped on purpose."""
        return bool(self.delay_s or self.jitter_s or self.loss)

    def queue_for(self, rate_bps: int) -> int:
        """Bytes that wait before this line drops, in a direction of `rate_bps`."""
        if self.queue_bytes is not None:
            return self.queue_bytes
        if self.queue_s is not None:
            return max(3028, round(rate_bps / 8 * self.queue_s))
        return max(MIN_QUEUE_BYTES, rate_bps // 8)


AS_IT_IS = Line(upload_bps=None, download_bps=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyState:
    """Disabled (`full` is None), or enabled with the cache `full` percent full (0 to 100)."""

    full: float | None

    def __post_init__(self) -> None:
        if self.full is not None and not 0 <= self.full <= 100:
            raise ValueError(f"a cache is 0 to 100 % full, not {self.full} %")

    @property
    def enabled(self) -> bool:
        """True if the client is told to use the proxy."""
        return self.full is not None

    @property
    def key(self) -> str:
        """The state's name in files: `disabled`, `0 %`, `37.5 %`."""
        return "disabled" if self.full is None else f"{self.full:g} %"


DISABLED = ProxyState(full=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """One combination of factor levels: a cell of the plan."""

    line: Line
    operation: str
    state: ProxyState


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt as planned. `number` counts from 1; `attempt` from 1 within its cell.

    `counted` is False for warm-ups and for traffic launches (`launch`), which measure traffic and no time.
    `repeats` is the number of the planned trial that this one does again, 0 for a planned one.
    """

    number: int
    block: int
    treatment: Treatment
    attempt: int
    warm_up: bool = False
    launch: bool = False
    seed: int = 0
    repeats: int = 0

    @property
    def counted(self) -> bool:
        """True if its time may enter a median."""
        return not (self.warm_up or self.launch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The seeded edit: how many files (0: all that the data set marks), and the share of their lines."""

    files: int = 50
    share: float = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """Repeat a line's blocks until every cell's interval of 95 % reaches no further than `within` (a share) to
    either side, but make no more than `at_most` attempts per cell."""

    within: float
    at_most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is asked of the lab, whole and frozen.

    `data` names a recipe; None is the repository as it is, which belongs to others: it is changed only below
    `scratch`, the URL of a place in it that `branchlab scratch` made. Such a repository may want to know a `user`
    (the password is in no profile) and be served by https, `ca` being a file with the company's certificates on
    the client. `prices` are what the lines cost a month, in their order (None: not said; empty: none is);
    `limit_s` is the longest that a trial's command may take, None: ten times what is expected of it. With `until`,
    `attempts` is the least number of attempts per cell. `clients` do each operation at the same moment: so many of the
    lab's, in its order, or those of these names.
    """

    name: str
    vcs: str = "subversion"
    repository: str = "http://{server}/svn/trunk"
    data: str | None = "quick"
    scratch: str | None = None
    user: str | None = None
    ca: str | None = None
    change: Change = field(default_factory=Change)
    operations: tuple[str, ...] = OPERATIONS
    lines: tuple[Line, ...]
    states: tuple[ProxyState, ...]
    disabled_only: tuple[str, ...] = ()
    launches: bool = False
    attempts: int = 4
    warm_up: int = 1
    order: str = "blocks"
    seed: int = 2008
    prices: tuple[float | None, ...] = ()
    limit_s: float | None = None
    until: Until | None = None
    clients: int | tuple[str, ...] = 1

    def price(self, line: Line) -> float | None:
        """What a line costs a month; None where that is not said."""
        return dict(zip(self.lines, self.prices, strict=False)).get(line)

    @property
    def at_once(self) -> int:
        """How many clients do each operation at the same moment."""
        return self.clients if isinstance(self.clients, int) else len(self.clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """The proxy's cache: a kind that `resources/caches` describes, and where and how it is listed and purged.

    `folder` is on the proxy host; what a user's own commands `list` and `purge` has none.
    `owns`: everything in the folder may be purged.
    """

    kind: str
    folder: str | None = None
    owns: bool = False
    list: tuple[str, ...] = ()
    purge: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine of the lab, as the profile names it.

    `ssh` is `[user@]name[:port]` or `unix:/path`; `address` and `address6` are how the lab's other hosts
    reach it; `jump` are hosts that SSH goes by way of; `root` is one of `sudo`, `doas`, `direct` (already root,
    or the capabilities are there), `none`; `user` is who is let in by a proxy that asks for a password.
    """

    name: str
    role: Role
    ssh: str
    key: str | None = None
    jump: str | None = None
    host_key: str | None = None
    address: str | None = None
    address6: str | None = None
    root: str = "none"
    cache: Cache | None = None
    url: str | None = None
    user: str | None = None
    services: str | None = None
    delay: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """All hosts of a profile. `line` is one of `PLACES`, or empty for what `place` says."""

    name: str
    hosts: tuple[Host, ...]
    path: str = ""
    line: str = ""

    @property
    def place(self) -> str:
        """Where the line is held: as the profile says, else on the router if there is one, else on the server."""
        return self.line or ("router" if self.having(Role.ROUTER) else "server")

    @property
    def holders(self) -> tuple[Host, ...]:
        """The hosts that hold the line; more than one if each office host limits its own."""
        office = (Role.CLIENT, Role.PROXY)
        roles = {
            "server": (Role.SERVER,),
            "router": (Role.ROUTER,),
            "office": office,
            "senders": (Role.SERVER, *office),
        }[self.place]
        return tuple(host for role in roles for host in self.having(role))

    def having(self, role: Role) -> tuple[Host, ...]:
        """The hosts with this role, in the profile's order."""
        return tuple(host for host in self.hosts if host.role is role)

    def taking_part(self, experiment: Experiment) -> tuple[Host, ...]:
        """The clients that do this experiment's operations. Raises LookupError where they are not in the lab."""
        there = self.having(Role.CLIENT)
        if isinstance(experiment.clients, int):
            if not there:
                raise LookupError("the lab has no client")
            if not 1 <= experiment.clients <= len(there):
                raise LookupError(
                    f"the lab has {len(there)} client{'s' * (len(there) != 1)}, and the experiment wants "
                    f"{experiment.clients}"
                )
            return there[: experiment.clients]
        named = {host.name: host for host in there}
        if missing := [name for name in experiment.clients if name not in named]:
            raise LookupError(f"the lab has no client {', '.join(missing)}")
        return tuple(named[name] for name in experiment.clients)

    def one(self, role: Role) -> Host:
        """The first host with this role. Raises LookupError if there is none."""
        for host in self.hosts:
            if host.role is role:
                return host
        raise LookupError(f"the lab has no {role.value}")


PLACES = ("server", "router", "office", "senders")
"""Where a line may be held: on the server, on a router between, on every office host for itself; or the download
on the server and the upload on every office host, which takes no IFB."""

PAIRS = (
    "client>server",
    "server>client",
    "client>proxy",
    "proxy>client",
    "proxy>server",
    "server>proxy",
)
"""Directions in which bytes are counted, by role, summed over the hosts of a role."""
