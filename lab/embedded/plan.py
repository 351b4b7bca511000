"""What an embedded lab consists of: its hosts, their addresses, and where their files are. Values only."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

MARK = "lab.json"
"""The file that makes a folder a lab's folder: the plan itself."""

MAX_CLIENTS = 200
# 198.18.0.0/15 is set aside for measuring networks (RFC 2544), fd00::/8 for private use (RFC 4193): no
# office and no server on the internet has these.
IPV4 = "198.18.0.{}"
IPV6 = "fd00:b1ab::{}"
IPV4_BITS = 24
IPV6_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan:
    """One host to be made. `ssh` is the socket behind which its sshd answers."""

    name: str
    role: str
    number: int
    folder: str

    @property
    def address(self) -> str:
        """Its IPv4 address."""
        return IPV4.format(self.number)

    @property
    def address6(self) -> str:
        """Its IPv6 address."""
        return IPV6.format(self.number)

    @property
    def ssh(self) -> Path:
        """The UNIX socket behind which its sshd answers."""
        return Path(self.folder) / "ssh"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPlan:
    """A lab to be made. `profile` is where its profile goes; a `tied` lab ends with its maker."""

    folder: str
    profile: str
    tied: bool
    hosts: tuple[HostPlan, ...]

    def host(self, name: str) -> HostPlan | None:
        """The host of that name."""
        return next((host for host in self.hosts if host.name == name), None)

    def dumped(self) -> str:
        """This plan as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"


def planned(folder: Path, profile: Path, clients: int, *, tied: bool) -> LabPlan:
    """The plan of a lab with so many clients. Raises ValueError for a number that cannot be."""
    if not 1 <= clients <= MAX_CLIENTS:
        raise ValueError(f"a lab has 1 to {MAX_CLIENTS} clients, not {clients}")
    named = [("server", "server", 1), ("proxy", "proxy", 2)]
    named += [("client" if n == 1 else f"client-{n}", "client", 10 + n) for n in range(1, clients + 1)]
    hosts = tuple(
        HostPlan(name=name, role=role, number=number, folder=str(folder / name))
        for name, role, number in named
    )
    return LabPlan(folder=str(folder), profile=str(profile), tied=tied, hosts=hosts)


def loaded(folder: Path) -> LabPlan:
    """The plan of the lab in `folder`. Raises OSError or ValueError if there is none."""
    data = json.loads((folder / MARK).read_text("utf-8"))
    try:
        hosts = tuple(HostPlan(**host) for host in data.pop("hosts"))
        return LabPlan(hosts=hosts, **data)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{folder / MARK} is not a lab's plan: {error}") from None
