"""The lab as the profile's text has it, also where it is not right yet: what the fields show. No widgets."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.draft import Draft
from lab.model import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWritten:
    """A host's table. `wrong` has what is wrong with a key, by the key; of the whole table under an empty one."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)

    @property
    def role(self) -> Role:
        """Its role; a client where none is said that there is."""
        said = self.values.get("role")
        return Role(said) if said in list(Role) else Role.CLIENT

    @property
    def root(self) -> str:
        """How one becomes root there."""
        return "sudo" if self.values.get("sudo") is True else self.text("root") or "none"

    def text(self, key: str) -> str:
        """A key as text; empty where it is left out. `cache.folder` is one of the cache's."""
        outer, _, inner = key.partition(".")
        value = self.values.get(outer)
        if inner:
            value = value.get(inner) if isinstance(value, Mapping) else None
        if isinstance(value, list):
            return shlex.join(str(word) for word in value)
        return "" if value is None else str(value)

    @property
    def owns(self) -> bool:
        """True if everything in the cache's folder may be purged."""
        cache = self.values.get("cache")
        return isinstance(cache, Mapping) and cache.get("owns") is True


@dataclass(frozen=True, slots=True, kw_only=True)
class LabWritten:
    """All hosts of a profile in its order, where the line is held as written, and what is wrong, worst first."""

    hosts: tuple[HostWritten, ...] = ()
    line: str = ""
    line_wrong: str = ""
    wrong: tuple[str, ...] = ()
    """sentences, each with where it is"""
    cached: tuple[str, ...] = ()
    """names of experiments that have states with the proxy"""

    def host(self, name: str) -> HostWritten | None:
        """The host of that name."""
        return next((host for host in self.hosts if host.name == name), None)

    def having(self, role: Role) -> tuple[HostWritten, ...]:
        """The hosts with this role."""
        return tuple(host for host in self.hosts if host.role is role)


def lab(draft: Draft | None) -> LabWritten | None:
    """The lab of a draft; None without one, and where its text is no TOML."""
    if draft is None:
        return None
    try:
        document = tomllib.loads(draft.text)
    except (ValueError, RecursionError):
        return None
    hosts = document.get("hosts", {})
    hosts = hosts if isinstance(hosts, dict) else {}
    wrong: dict[str, dict[str, str]] = {}
    line_wrong = ""
    for problem in reversed(draft.problems):
        if problem.place[:1] == ("hosts",) and len(problem.place) > 1:
            key = ".".join(str(part) for part in problem.place[2:4])
            wrong.setdefault(str(problem.place[1]), {})[key] = sentence(problem.text)
        elif problem.place[:1] == ("line",):
            line_wrong = sentence(problem.text)
    return LabWritten(
        hosts=tuple(
            HostWritten(name=name, values=table, wrong=wrong.get(name, {}))
            for name, table in hosts.items()
            if isinstance(table, dict)
        ),
        line=document["line"] if isinstance(document.get("line"), str) else "",
        line_wrong=line_wrong,
        wrong=tuple(_told(problem.place, problem.text) for problem in draft.problems),
        cached=_cached(document.get("experiments")),
    )


def sentence(text: str) -> str:
    """A problem's text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def is_disabled(state: object) -> bool:
    """True for a state without the proxy, as an experiment has it."""
    return isinstance(state, str) and state.strip().lower() == "disabled"


def _told(place: tuple[str | int, ...], text: str) -> str:
    if place[:1] == ("hosts",) and len(place) > 1:
        return f"{place[1]}: {text.rstrip('.')}."
    if place[:1] == ("experiments",) and len(place) > 1:
        return f"Experiment {int(place[1]) + 1}: {text.rstrip('.')}."
    return sentence(text)


def _cached(experiments: object) -> tuple[str, ...]:
    found = []
    for table in experiments if isinstance(experiments, list) else []:
        states = table.get("states") if isinstance(table, dict) else None
        if isinstance(states, list) and not all(map(is_disabled, states)):
            found.append(str(table.get("name", "")))
    return tuple(found)
