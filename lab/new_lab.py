"""What a person enters for a new lab, host by host, and the profile that it makes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from lab import profile
from lab import profile_shape as shape
from lab.model import Host, Role

SERVICES = "/run/branchlab-lab"
"""Where BranchLab's own repository and proxy are while a run goes on; gone after a restart at the latest."""
OWN_CACHE = "/var/cache/branchlab/cache"
REPOSITORY_PORT, PROXY_PORT = 8080, 8081
"""Of services of BranchLab's own: 80 is likely to be taken on a host that serves something already."""
FOLDERS = {
    "apache-disk": "/var/cache/apache2/mod_cache_disk",
    "squid": "/var/spool/squid",
    "nginx-proxy-cache": "/var/cache/nginx",
}
"""Where Debian's packages keep each kind of cache, as a proposal."""
KINDS = {"apache2": "apache-disk", "squid": "squid", "nginx": "nginx-proxy-cache"}
"""Which kind of cache a program keeps."""
PORTS = {"apache-disk": 8080, "squid": 3128, "nginx-proxy-cache": 8080}
LINES = ("512/1024 kbit/s", "2/4 Mbit/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One host as it was entered: `ssh` is any name that ssh would take; what is empty is as ~/.ssh/config says."""

    role: Role
    ssh: str = ""
    user: str = ""
    port: str = ""
    jump: str = ""
    key: str = ""
    address: str = ""
    address6: str = ""
    root: str = "none"

    @property
    def written(self) -> str:
        """The host as the profile has it: `[user@]name[:port]`."""
        name = self.ssh.strip()
        if not name or name.startswith("unix:"):
            return name
        if ":" in name and "[" not in name and name.count(":") > 1:
            name = f"[{name}]"
        user = f"{self.user.strip()}@" if self.user.strip() and "@" not in name else ""
        there = re.search(r"(?<=[\w\]]):\d+$", name)
        port = f":{self.port.strip()}" if self.port.strip() and not there else ""
        return f"{user}{name}{port}"

    @property
    def trouble(self) -> str:
        """What is wrong with it and what to write instead; empty where nothing is, or nothing was entered."""
        if not self.ssh.strip():
            return ""
        if self.port.strip() and not (self.port.strip().isdigit() and 0 < int(self.port) < 65536):
            return f"`{self.port.strip()}` is no port: write a number from 1 to 65535"
        if re.search(r"[\s:@]", self.user.strip()):
            return f"`{self.user.strip()}` is no name of a user"
        table = {"role": self.role.value, "ssh": self.written}
        for key in ("jump", "address", "address6"):
            if value := getattr(self, key).strip():
                table[key] = value
        try:
            shape.HostTable.model_validate(table)
        except ValidationError as errors:
            return str(errors.errors(include_url=False)[0]["msg"])
        return ""

    def host(self, name: str) -> Host:
        """The host as the rest of the program knows it."""
        return Host(
            name=name,
            role=self.role,
            ssh=self.written,
            key=self.key or None,
            jump=self.jump.strip() or None,
            address=self.address.strip() or None,
            address6=self.address6.strip() or None,
            root=self.root,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """The proxy: one of BranchLab's own (`own`), or the one that runs there, at `url`."""

    own: bool = True
    kind: str = "apache-disk"
    folder: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLab:
    """A lab as it was entered. Without a `repository` BranchLab makes one on the server while a run goes on."""

    name: str
    hosts: tuple[Entry, ...]
    caching: Caching = Caching()
    repository: str = ""

    def having(self, role: Role) -> tuple[Entry, ...]:
        """The hosts of this role that were entered."""
        return tuple(entry for entry in self.hosts if entry.role is role and entry.ssh.strip())


def names(hosts: Sequence[Entry]) -> tuple[str, ...]:
    """The hosts' names in the profile, in their order: the role's, a client's after its name for ssh."""
    found: list[str] = []
    clients, number = sum(entry.role is Role.CLIENT for entry in hosts), 0
    for entry in hosts:
        number += entry.role is Role.CLIENT
        first = entry.ssh.rpartition("@")[2].split(".")[0].split(":")[0]
        if entry.ssh.startswith("unix:/"):
            first = PurePosixPath(entry.ssh.removeprefix("unix:")).parent.name
        plain = re.sub(r"[^A-Za-z0-9-]+", "-", first).strip("-")[:40]
        name = entry.role.value
        if entry.role is Role.CLIENT:
            name = (
                plain if re.search(r"[A-Za-z]", plain) else "client" if clients == 1 else f"client-{number}"
            )
        made, more = name, 2
        while made in found:
            made, more = f"{name}-{more}", more + 1
        found.append(made)
    return tuple(found)


def text(lab: NewLab) -> str:
    """The profile, with an experiment to begin with."""
    entered = [entry for entry in lab.hosts if entry.ssh.strip()]
    blocks = [f"schema = {profile.SCHEMA}\nname = {_quoted(lab.name.strip() or 'New lab')}\n"]
    taken: set[str] = set()
    for name, entry in zip(names(entered), entered, strict=True):
        blocks.append("\n".join([f"\n[hosts.{name}]", *_host(lab, entry, taken)]) + "\n")
    blocks.append("\n".join(["\n[[experiments]]", *_experiment(lab)]) + "\n")
    return "".join(blocks)


def problems(lab: NewLab) -> tuple[profile.Problem, ...]:
    """What keeps the profile from being complete."""
    return profile.looked_at(text(lab), Path("new lab")).problems


def doubts(lab: NewLab) -> tuple[str, ...]:
    """What the profile may have, and a run could not do with: hosts without an address, or with the same."""
    entered = [entry for entry in lab.hosts if entry.ssh.strip()]
    found: list[str] = []
    of: dict[str, str] = {}
    for name, entry in zip(names(entered), entered, strict=True):
        address = entry.address.strip()
        if not address and not entry.address6.strip():
            found.append(
                f"{name} has no address yet by which the other hosts reach it: enter one at its step"
            )
        elif address in of:
            found.append(f"{address} is the address of {of[address]} and of {name}: each host needs its own")
        elif address:
            of[address] = name
    return tuple(found)


def added(role: Role, name: str) -> dict[str, object]:
    """The table of a host that is added to a profile, to begin with: its SSH name is its own name."""
    table: dict[str, object] = {"role": role.value, "ssh": name}
    if role is Role.SERVER:
        table["services"] = SERVICES
    if role is Role.PROXY:
        table |= {"url": f"http://{name}:{PROXY_PORT}", "services": SERVICES}
        table["cache"] = {"kind": "apache-disk", "folder": OWN_CACHE}
    return table


def file_name(name: str) -> str:
    """What the profile's file may be called."""
    plain = re.sub(r"[^\w-]+", "-", name.strip().lower()).strip("-_")
    return f"{plain or 'new-lab'}.toml"


def _host(lab: NewLab, entry: Entry, taken: set[str]) -> Iterator[str]:
    yield f"role = {_quoted(entry.role.value)}"
    yield f"ssh = {_quoted(entry.written)}"
    for key in ("key", "jump"):
        if value := getattr(entry, key).strip():
            yield f"{key} = {_quoted(value)}"
    for key in ("address", "address6"):
        value = getattr(entry, key).strip()
        if value and value not in taken:
            taken.add(value)
            yield f"{key} = {_quoted(value)}"
    if entry.root != "none":
        yield f"root = {_quoted(entry.root)}"
    if entry.role is Role.SERVER and not lab.repository.strip():
        yield f"services = {_quoted(SERVICES)}  # a repository of BranchLab's own, while a run goes on"
    if entry.role is Role.PROXY:
        yield from _caching(lab.caching, entry)


def _caching(caching: Caching, entry: Entry) -> Iterator[str]:
    where = entry.address.strip() or entry.ssh.rpartition("@")[2].strip()
    if caching.own:
        yield f"url = {_quoted(f'http://{where}:{PROXY_PORT}')}"
        yield f"services = {_quoted(SERVICES)}  # a proxy of BranchLab's own, while a run goes on"
        folder = OWN_CACHE
    else:
        yield f"url = {_quoted(caching.url.strip() or f'http://{where}:{PORTS.get(caching.kind, 8080)}')}"
        folder = caching.folder.strip() or FOLDERS.get(caching.kind, "")
    owns = ", owns = true" if caching.kind == "folder" else ""
    yield f"cache = {{ kind = {_quoted(caching.kind)}, folder = {_quoted(folder)}{owns} }}"


def _experiment(lab: NewLab) -> Iterator[str]:
    cached = bool(lab.having(Role.PROXY)) and not lab.repository.strip().startswith("https:")
    yield f"name = {_quoted('Do we need the proxy?' if cached else 'What does a wider line bring?')}"
    yield 'vcs = "subversion"'
    if lab.repository.strip():
        yield f"repository = {_quoted(lab.repository.strip())}"
        # Check-Out and Check-In would change it, and need a scratch place first.
        operations: tuple[str, ...] = ("get", "undo", "history", "diff")
    else:
        yield f'repository = "http://{{server}}:{REPOSITORY_PORT}/svn/trunk"'
        yield 'data = "quick"'
        yield 'change = { files = 50, lines = "10 %" }'
        operations = ("get", "check-out", "undo", "check-in", "history", "diff")
    yield f"operations = {json.dumps(list(operations))}"
    yield f"lines = {json.dumps(list(LINES))}"
    yield f"states = {json.dumps(['disabled', '0 %', '90 %', '100 %'] if cached else ['disabled'])}"
    yield "attempts = 4"
    yield "warm_up = 1"


def _quoted(value: str) -> str:
    """A TOML basic string; JSON's escapes are a part of TOML's."""
    return json.dumps(value, ensure_ascii=False)
