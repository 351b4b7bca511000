"""A lab and its experiments as TOML: checked whole, with file, line and cure; saved with comments kept."""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import tomlkit
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lab import design, profile_upgrade, toml_places, units
from lab import profile_shape as shape
from lab.errors import BadInput
from lab.model import CHANGING, PLACES, Cache, Change, Experiment, Host, Lab, Role, Until

SCHEMA = profile_upgrade.SCHEMA
Place = tuple[str | int, ...]
"""Where in a profile: `("experiments", 0, "lines", 1)`."""

T = TypeVar("T")
_T = TypeVar("_T", bound=shape.Table)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or (in `Profile.warnings`) doubtful. `line` counts from 1; 0 is nowhere."""

    place: Place
    text: str
    line: int = 0

    def told(self, path: str) -> str:
        """`FILE:LINE: where: what, and what to write instead`."""
        where = ".".join(str(part + 1) if isinstance(part, int) else part for part in self.place)
        at = f"{path}:{self.line}" if self.line else path
        return f"{at}: {where}: {self.text}" if where else f"{at}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile that was checked."""

    lab: Lab
    experiments: tuple[Experiment, ...]
    path: Path
    warnings: tuple[str, ...] = ()

    def experiment(self, name: str | None = None) -> Experiment:
        """The experiment of that name; without one, the first. Raises BadInput."""
        if not self.experiments:
            raise BadInput(f"{self.path}: it has no experiments", advice="Add an [[experiments]] table.")
        if name is None:
            return self.experiments[0]
        names = {experiment.name: experiment for experiment in self.experiments}
        if name not in names:
            raise BadInput(
                f"{self.path}: there is no experiment `{name}`{shape.nearest(name, names)}",
                advice=f"Write one of: {', '.join(names)}.",
            )
        return names[name]


def load(path: str | Path) -> Profile:
    """The profile in a file. Raises BadInput that names every problem, each with its line and cure."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: the profile cannot be read: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}:{line}: this is no UTF-8: save the file as UTF-8.") from error
    return parsed(text, path)


_OLDER = (
    "an older BranchLab wrote this (schema {older}), and it is read as if it said schema = {schema}: saved from the "
    "window it does, and the old file is kept beside it"
)


@dataclass(frozen=True, slots=True)
class Looked:
    """What a text was found to be: a profile, or what is wrong with it; and what is doubtful in either case."""

    profile: Profile | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


def parsed(text: str, path: Path) -> Profile:
    """The profile in a text; `path` is what its problems name. Raises BadInput as `load` does."""
    found = looked_at(text, path)
    if found.profile is None:
        raise BadInput("\n".join(problem.told(str(path)) for problem in found.problems))
    return found.profile


def looked_at(text: str, path: Path) -> Looked:
    """The profile in a text, or every problem with its line, in the text's order. Never raises a LabError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Looked(None, (_syntax(error, text),))
    except (ValueError, RecursionError) as error:  # a number or a nesting beyond what Python reads
        return Looked(None, (Problem((), f"this cannot be read as TOML: {error}"),))
    checker = _Checker()
    older = profile_upgrade.upgrade(document)
    if older is not None:
        checker.warnings.append(Problem(("schema",), _OLDER.format(older=older, schema=SCHEMA)))
    lab, experiments = checker.whole(document, path)
    lines = toml_places.lines(text)
    warnings = tuple(problem.told(str(path)) for problem in _placed(checker.warnings, lines))
    if checker.problems:
        found = sorted(_placed(checker.problems, lines), key=lambda problem: problem.line)
        return Looked(None, tuple(found), warnings)
    made = Profile(lab=lab, experiments=tuple(experiments), path=path, warnings=warnings)
    return Looked(made, (), warnings)


def document(path: Path) -> tomlkit.TOMLDocument:
    """The profile to be edited: comments and order stay. Raises BadInput if it is not right as it stands."""
    load(path)
    with path.open(encoding="utf-8", newline="") as file:
        return tomlkit.parse(file.read().removeprefix("\ufeff"))


def save(edited: tomlkit.TOMLDocument, path: Path) -> Profile:
    """Write an edited profile, if it is right; the file is never half written. Raises BadInput."""
    text = tomlkit.dumps(edited)
    profile = parsed(text, path)
    target = path.resolve()  # a link stays a link
    try:
        number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            Path(name).chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o644)
            Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"{path}: the profile cannot be written: {error.strerror}") from error
    return profile


def _syntax(error: tomllib.TOMLDecodeError, text: str) -> Problem:
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error), re.DOTALL)
    what, line = (match[1], match[2]) if match else (str(error), None)
    number = int(line) if line else text.count("\n") + 1
    quoted = text.splitlines()[number - 1].strip()[:60] if number <= len(text.splitlines()) else ""
    return Problem((), f"this is no TOML: {what[:1].lower()}{what[1:]}: `{quoted}`", number)


def _placed(problems: Iterable[Problem], lines: Mapping[Place, int]) -> list[Problem]:
    """The same problems with the line of the nearest thing in the file that their place names."""
    placed = []
    for problem in problems:
        place = problem.place
        while place and place not in lines:
            place = place[:-1]
        placed.append(Problem(problem.place, problem.text, lines.get(place, 1)))
    return placed


@dataclass
class _Checker:
    """Collects everything that is wrong with one profile."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def whole(self, document: Mapping[str, Any], path: Path) -> tuple[Lab, list[Experiment]]:
        """The lab and its experiments, as far as they could be read."""
        self._head(document)
        hosts, experiments = document.get("hosts", {}), document.get("experiments", [])
        if not isinstance(hosts, dict):
            self._wrong(("hosts",), "hosts are tables: write [hosts.server] and so on")
            hosts = {}
        if not isinstance(experiments, list):
            self._wrong(("experiments",), "experiments are a list of tables: write [[experiments]]")
            experiments = []
        read_hosts = [self._host(str(name), table) for name, table in hosts.items()]
        self._roles(hosts)
        self._addresses([host for host in read_hosts if host])
        read = [self._experiment(number, table) for number, table in enumerate(experiments)]
        found = [experiment for experiment in read if experiment is not None]
        self._names(read)
        self._cache_for(hosts, found)
        self._clients_of(hosts, read)
        name = document.get("name", "")
        lab = Lab(
            name=name if isinstance(name, str) else "",
            hosts=tuple(h for h in read_hosts if h),
            path=str(path),
            line=self._line(document.get("line"), hosts),
        )
        return lab, found

    def _wrong(self, place: Place, text: str) -> None:
        self.problems.append(Problem(place, text))

    def _head(self, document: Mapping[str, Any]) -> None:
        schema = document.get("schema")
        if isinstance(schema, int) and not isinstance(schema, bool) and schema > SCHEMA:
            self._wrong(("schema",), f"a newer BranchLab wrote this (schema {schema}): update this one")
        elif schema != SCHEMA or isinstance(schema, bool):
            self._wrong(("schema",), f"the first line should be: schema = {SCHEMA}")
        name = document.get("name", "")
        if not isinstance(name, str) or not name.isprintable():
            self._wrong(("name",), f"this should be a text of one line: write {shape.EXAMPLES['name']}")
        for key in document:
            if key not in ("schema", "name", "line", "hosts", "experiments"):
                self._unknown((key,), ("schema", "name", "line", "hosts", "experiments"))

    def _line(self, place: object, hosts: Mapping[str, object]) -> str:
        """Where the line is held, as the profile says it; empty if it does not."""
        if place is None:
            return ""
        if not isinstance(place, str) or place not in PLACES:
            near = shape.nearest(place, PLACES)
            self._wrong(
                ("line",), f"`{place}` is no place for the line{near}: write {shape.EXAMPLES['line']}"
            )
            return ""
        roles = [table.get("role") for table in hosts.values() if isinstance(table, dict)]
        if place == "router" and Role.ROUTER not in roles:
            self._wrong(("line",), 'no host is the router: give one role = "router", or take this out')
        return place

    def _read(self, model: type[_T], table: object, place: Place) -> _T | None:
        """A table in its shape, or its problems."""
        try:
            return model.model_validate(table)
        except ValidationError as errors:
            for error in errors.errors(include_url=False):
                self._shape(model, place, error)
            return None

    def _shape(self, model: type[shape.Table], place: Place, error: ErrorDetails) -> None:
        where: Place = (
            *place,
            *(part for part in error["loc"] if not str(part).startswith("function-plain")),
        )
        key = next((part for part in reversed(where) if isinstance(part, str)), "")
        example = f": write {shape.EXAMPLES[key]}" if key in shape.EXAMPLES else ""
        if error["type"] == "extra_forbidden":
            inner: dict[str, type[shape.Table]] = {
                "cache": shape.CacheTable,
                "change": shape.ChangeTable,
                "until": shape.UntilTable,
            }
            self._unknown(where, inner.get(str(where[-2]), model).model_fields)
        elif error["type"] == "missing":
            self._wrong(where[:-1], f"`{key}` is missing{example}")
        elif error["type"] == "branchlab":
            self._wrong(where, error["msg"])
        else:
            self._wrong(where, f"`{error['input']}`: {error['msg'].lower()}{example}")

    def _unknown(self, place: Place, known: Iterable[str]) -> None:
        known = tuple(known)
        near = shape.nearest(place[-1], known)
        self._wrong(
            place, f"unknown key `{place[-1]}`{near}: write one of {', '.join(known)}, or take it out"
        )

    def _host(self, name: str, table: object) -> Host | None:
        place = ("hosts", name)
        if trouble := shape.host_name_trouble(name):
            self._wrong(place, trouble)
        read = self._read(shape.HostTable, table, place)
        if read is None:
            return None
        if read.sudo and read.root not in ("none", "sudo"):
            self._wrong((*place, "sudo"), f'root is "{read.root}" and sudo is true: take one of them out')
        return Host(
            name=name,
            role=Role(read.role),
            root="sudo" if read.sudo else read.root,
            cache=_cache(read.cache),
            **read.model_dump(
                include={
                    "ssh",
                    "key",
                    "jump",
                    "host_key",
                    "address",
                    "address6",
                    "url",
                    "user",
                    "services",
                    "delay",
                }
            ),
        )

    def _roles(self, hosts: Mapping[str, object]) -> None:
        roles = [(name, t.get("role")) for name, t in hosts.items() if isinstance(t, dict)]
        for role in (Role.CLIENT, Role.SERVER):
            if role.value not in [known for _, known in roles] and not any(
                known not in list(Role)
                for _, known in roles  # that is told already, and may have been meant
            ):
                self._wrong(("hosts",), f'no host is the {role.value}: add one with role = "{role.value}"')
        for role in (Role.PROXY, Role.SERVER, Role.ROUTER):
            same = [name for name, known in roles if known == role.value]
            for name in same[1:]:
                self._wrong(
                    ("hosts", name, "role"), f"{same[0]} is the {role.value} already: a lab has one of them"
                )

    def _addresses(self, hosts: Iterable[Host]) -> None:
        """Bytes are counted by address: what two hosts share would be counted for both."""
        known: dict[str, str] = {}
        for host in hosts:
            for key in ("address", "address6"):
                address = getattr(host, key)
                if address in known:
                    self._wrong(
                        ("hosts", host.name, key),
                        f"{address} is the address of {known[address]} already: each host has its own, "
                        "else its bytes could not be told apart",
                    )
                elif address is not None:
                    known[address] = host.name

    def _experiment(self, number: int, table: object) -> Experiment | None:
        place = ("experiments", number)
        read = self._read(shape.ExperimentTable, table, place)
        if read is None:
            return None
        lines = tuple(asked.parsed.line for asked in read.lines)
        for n, asked in enumerate(read.lines):
            self.warnings += [Problem((*place, "lines", n), text) for text in asked.parsed.warnings]
        prices = tuple(asked.price for asked in read.lines)
        twice = [
            self._twice((*place, "operations"), read.operations, str),
            self._twice((*place, "lines"), lines, units.line_text),
            self._twice((*place, "states"), read.states, lambda state: state.key),
        ]
        experiment = Experiment(
            lines=lines,
            states=tuple(read.states),
            operations=tuple(read.operations),
            disabled_only=tuple(read.disabled_only),
            change=Change(files=read.change.files, share=read.change.lines),
            prices=prices if any(price is not None for price in prices) else (),
            limit_s=read.limit,
            until=Until(within=read.until.within, at_most=read.until.at_most) if read.until else None,
            **read.model_dump(
                include={
                    "name",
                    "vcs",
                    "repository",
                    "data",
                    "scratch",
                    "user",
                    "ca",
                    "launches",
                    "attempts",
                    "warm_up",
                    "order",
                    "seed",
                    "clients",
                }
            ),
        )
        for n, name in enumerate(read.disabled_only):
            if name not in read.operations:
                self._wrong(
                    (*place, "disabled_only", n), f"`{name}` is not among the operations: add it there"
                )
        self._repository(place, read)
        if not any(twice):
            for key, text in design.problems(experiment):
                self._wrong((*place, key), text)
        return experiment

    def _repository(self, place: Place, read: shape.ExperimentTable) -> None:
        """A repository that BranchLab makes, or one as it is: then whatever changes it needs a scratch place."""
        if read.data is not None:
            if trouble := shape.made_trouble(read.repository):
                self._wrong((*place, "repository"), trouble)
            if read.scratch is not None:
                self._wrong(
                    (*place, "scratch"),
                    f'data = "{read.data}" makes a repository of BranchLab\'s own, which needs no scratch place: '
                    "take one of them out",
                )
            for key in ("user", "ca"):
                if getattr(read, key) is not None:
                    self._wrong(
                        (*place, key),
                        f'data = "{read.data}" makes a repository of BranchLab\'s own, which everyone may use: '
                        f"take `{key}` out",
                    )
            return
        if "repository" not in read.model_fields_set:
            self._wrong(
                place,
                'neither data nor a repository is named: write data = "quick", and BranchLab makes one, '
                'or repository = "http://…", and it is used as it is',
            )
            return
        try:
            repository = shape.own_address(read.repository)
        except BadInput as error:
            self._wrong((*place, "repository"), str(error))
            return
        key, trouble = shape.entry_trouble(read.repository, read.ca, read.states)
        if trouble:
            self._wrong((*place, key), trouble)
        changing = [name for name in read.operations if name in CHANGING]
        if read.scratch is not None:
            if trouble := shape.scratch_trouble(read.scratch, repository):
                self._wrong((*place, "scratch"), trouble)
        elif changing:
            self._wrong(
                place,
                f"{' and '.join(changing)} would change the repository as it is: write "
                f'scratch = "{read.repository.rpartition("/")[0]}/branchlab-scratch", a place beside what is '
                "measured, and make it with `branchlab scratch PROFILE`; or take them out of the operations",
            )

    def _twice(self, place: Place, levels: Iterable[T], name: Callable[[T], str]) -> bool:
        seen: set[T] = set()
        found = False
        for number, level in enumerate(levels):
            if level in seen:
                self._wrong((*place, number), f"`{name(level)}` stands there twice: take one out")
                found = True
            seen.add(level)
        return found

    def _names(self, experiments: Iterable[Experiment | None]) -> None:
        seen: set[str] = set()
        for number, experiment in enumerate(experiments):
            if experiment is not None and experiment.name in seen:
                self._wrong(
                    ("experiments", number, "name"),
                    f"there is another experiment `{experiment.name}`: write another name",
                )
            if experiment is not None:
                seen.add(experiment.name)

    def _clients_of(self, hosts: Mapping[str, object], experiments: Iterable[Experiment | None]) -> None:
        """Clients that an experiment wants are there, and are clients."""
        roles = {name: table.get("role") for name, table in hosts.items() if isinstance(table, dict)}
        there = [name for name, role in roles.items() if role == Role.CLIENT]
        for number, experiment in enumerate(experiments):
            if experiment is None:
                continue
            place: Place = ("experiments", number, "clients")
            if isinstance(experiment.clients, int):
                # Without any client that is told already.
                if there and experiment.clients > len(there):
                    self._wrong(
                        place,
                        f"{experiment.clients} clients are wanted, and the lab has {len(there)} ({', '.join(there)}): "
                        f'write {len(there)} at most, or add hosts with role = "client"',
                    )
                continue
            if not self._twice(place, experiment.clients, str):
                for n, name in enumerate(experiment.clients):
                    self._client_of((*place, n), name, roles, there)

    def _client_of(self, place: Place, name: str, roles: Mapping[str, object], there: list[str]) -> None:
        if name not in roles:
            near = shape.nearest(name, there)
            self._wrong(place, f"there is no host `{name}`{near}: write one of {', '.join(there)}")
        elif name not in there:
            self._wrong(
                place,
                f"`{name}` is no client, but the {roles[name]}: write one of {', '.join(there)}, or take it out",
            )

    def _cache_for(self, hosts: Mapping[str, object], experiments: Iterable[Experiment]) -> None:
        """A state with the proxy needs a proxy, and that a cache that can be filled and purged."""
        if not any(state.enabled for experiment in experiments for state in experiment.states):
            return
        proxies = [(n, t) for n, t in hosts.items() if isinstance(t, dict) and t.get("role") == Role.PROXY]
        if not proxies and all(isinstance(t, dict) and t.get("role") in list(Role) for t in hosts.values()):
            self._wrong(
                ("hosts",),
                'an experiment has states with the proxy, and no host is it: add one with role = "proxy", '
                'or write states = ["disabled"]',
            )
        for name, table in proxies:
            if "cache" not in table:
                self._wrong(
                    ("hosts", name),
                    f"its cache is missing, and an experiment fills and purges it: "
                    f"write {shape.EXAMPLES['cache']}",
                )


def _cache(table: shape.CacheTable | None) -> Cache | None:
    if table is None:
        return None
    words = {key: tuple(getattr(table, key) or ()) for key in ("list", "purge")}
    return Cache(kind=table.kind, folder=table.folder, owns=table.owns, **words)
