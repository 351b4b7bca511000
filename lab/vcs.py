"""Drivers of version control systems: TOML that says which commands an operation is, with holes to fill."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lab import places
from lab.errors import BadInput
from lab.model import OPERATIONS, TrafficClass

HOLES: dict[str, str] = {
    "user": "who enters a repository of the user's own",
    "ca": "a file with the certificates of those who vouch for such a repository's server, on the client",
    "proxy_config": "another, for a proxy that asks for a password: what it needs is in a pipe, by a link in there",
    "config": "a private folder for the tool's own configuration, on the client",
    "work": "the trial's working copy, on the client; absent or left by the trial before",
    "pristine": "the working copy that setup makes and trials copy, on the client",
    "lockable": "the working copy whose files may be locked: {pristine}, or for a repository as it is one of a copy",
    "url": "the URL that operations work on, without a slash at its end",
    "revision": "the experiment's revision",
    "branch_url": "the URL of the trial's own branch (or of a client's, in `branch`), which is not there yet",
    "seed": "the trial's seed, a number",
    "edit_files": "how many files the change touches; 0 means all that match",
    "edit_pattern": "the names of the files that the change may touch, as *.cs",
    "edit_share": "the share of their lines, above 0 and at most 1",
    "locks": "the files to reserve, relative to the working copy, one a line",
    "repository": "the folder of the data set's repository, on the server",
    "dump": "the file with the data set's history, on the server",
}
"""What a run fills in, beside {options}, {proxy}, {proxy_host} and {proxy_port}."""

PROXY_HOLES = ("proxy_host", "proxy_port")
LISTS = ("options", "proxy")
VERBS: dict[str, tuple[str, ...]] = {
    "files.copy": ("source", "target"),
    "files.remove": ("path",),
    "files.edit": ("folder", "seed", "files", "pattern", "share"),
}
"""Steps that the ordinary agent does by itself, and what they need."""
_NOT_THROUGH = "{proxy} belongs into timed alone: other steps never go through the proxy"
_HOLE = re.compile(r"\{([a-z_]*)\}")

Value = str | int | float


class Phase(StrEnum):
    """When a command is run within a trial, or before the trials."""

    DATA = "data"
    SETUP = "setup"
    PREPARE = "prepare"
    TIMED = "timed"
    CLEANUP = "cleanup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One request for an ordinary agent, with every hole filled.

    `verb` is `command` or one of `VERBS`, `args` its arguments (without a time limit); `on` is the role of
    the host, `client` or `server`; `success` the exit codes that mean success. `login`: the repository's password
    is the one line of its standard input, and is no part of this; `file` is then what else it would have read there:
    path and text, to be written first. `proxy_login`: what the proxy wants to know is in the pipe at descriptor 3.
    """

    phase: Phase
    on: str
    verb: str
    args: Mapping[str, object]
    success: tuple[int, ...] = (0,)
    login: bool = False
    proxy_login: bool = False
    file: tuple[str, str] | None = None

    @property
    def timed(self) -> bool:
        """True for the one command that the trial measures."""
        return self.phase is Phase.TIMED

    @property
    def argv(self) -> tuple[str, ...]:
        """The command's argument list; empty for another verb."""
        found = self.args.get("argv", ())
        return tuple(found) if isinstance(found, list) else ()

    def succeeded(self, exit_status: int | None) -> bool:
        """True if this exit status (None: ended by a signal) means success."""
        return exit_status in self.success

    def __str__(self) -> str:
        """For people to read: `plan` prints it. Never for a shell."""
        if self.verb == "command":
            return " ".join(self.argv)
        return f"{self.verb} " + " ".join(f"{name}={value}" for name, value in self.args.items())


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Step(_Strict):
    """A command (`run`), or something that the agent does (`verb`)."""

    run: Annotated[list[str], Field(min_length=1)] | None = None
    verb: Literal["files.copy", "files.remove", "files.edit"] | None = None
    args: dict[str, Value] = {}
    on: Literal["client", "server"] = "client"
    cwd: str | None = None
    stdin: str | None = None
    success: Annotated[list[int], Field(min_length=1)] = [0]

    @model_validator(mode="after")
    def _one_kind(self) -> _Step:
        if (self.run is None) == (self.verb is None):
            raise ValueError("a step has either run (a command) or verb")
        if self.verb is not None and set(self.args) != set(VERBS[self.verb]):
            raise ValueError(f"{self.verb} needs exactly the args {', '.join(VERBS[self.verb])}")
        if self.run is not None and self.args:
            raise ValueError("args belong to a verb; a command has all its arguments in run")
        for hole in self._holes():
            if hole not in HOLES and hole not in LISTS:
                near = difflib.get_close_matches(hole, [*HOLES, *LISTS], n=1)
                hint = f"; do you mean {{{near[0]}}}?" if near else ""
                raise ValueError(f"there is no hole {{{hole}}}{hint}")
        return self

    def _holes(self) -> Iterator[str]:
        texts = [*(self.run or ()), self.cwd or "", self.stdin or ""]
        texts += [value for value in self.args.values() if isinstance(value, str)]
        for text in texts:
            for hole in _HOLE.findall(text):
                if hole in LISTS and (text != f"{{{hole}}}" or text not in (self.run or ())):
                    raise ValueError(f"{{{hole}}} is a list and must be an argument of run by itself")
                yield hole


class _Operation(_Strict):
    """What one operation is in this system."""

    traffic: TrafficClass
    prepare: list[_Step] = []
    timed: _Step | None = None
    cleanup: list[_Step] = []

    @model_validator(mode="after")
    def _whole(self) -> _Operation:
        if self.traffic is TrafficClass.NOT_APPLICABLE:
            if self.timed is not None or self.prepare or self.cleanup:
                raise ValueError('an operation with traffic = "n/a" has no steps')
        elif self.timed is None:
            raise ValueError('timed is missing: the one command that is measured (or write traffic = "n/a")')
        elif self.timed.run is None or self.timed.on != "client":
            raise ValueError("timed must be a command (run) on the client")
        for step in (*self.prepare, *self.cleanup):
            if step.run is not None and "{proxy}" in step.run:
                raise ValueError(_NOT_THROUGH)
        return self


class _Driver(_Strict):
    """A driver's file."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: str
    title: str
    tool: Annotated[list[str], Field(min_length=1)]
    env: dict[str, str] = {}
    options: list[str] = []
    proxy: list[str] = []
    login: list[str] = []
    proxy_login: list[str] = []
    trust: list[str] = []
    data: list[_Step] = []
    setup: list[_Step] = []
    branch: list[_Step] = []
    operations: dict[Literal["get", "check-out", "undo", "check-in", "history", "diff"], _Operation]

    @model_validator(mode="after")
    def _lists(self) -> _Driver:
        for name in ("options", "proxy", "login", "proxy_login", "trust"):
            texts = getattr(self, name)
            known = {*HOLES, *(PROXY_HOLES if name == "proxy" else ())}
            for hole in _HOLE.findall(" ".join(texts)):
                if hole not in known:
                    raise ValueError(f"there is no hole {{{hole}}} in {name}")
        if any("{proxy}" in (step.run or ()) for step in (*self.data, *self.setup, *self.branch)):
            raise ValueError(_NOT_THROUGH)
        return self


@dataclass(frozen=True, slots=True)
class Driver:
    """How one version control system does the operations."""

    name: str
    title: str
    tool: tuple[str, ...]
    """Starts the tool and prints its version: what starting it costs is measured with this."""
    _file: _Driver = field(repr=False)
    _place: str | None = None
    """None: the repository is BranchLab's own. Else nothing is changed but below this URL."""
    _user: str = ""
    _ca: str = ""

    def confined(self, place: str) -> Driver:
        """The same driver for a repository of somebody's own: what may change anything but what lies below
        `place` (empty: anything at all) is refused where its holes are filled, with BadInput."""
        return replace(self, _place=place)

    def entering(self, user: str | None, ca: str | None) -> Driver:
        """The same driver for a repository that wants to know a user, or is vouched for by `ca`.

        Raises BadInput where its file does not say how.
        """
        for wanted, key, words in ((user, "login", self._file.login), (ca, "trust", self._file.trust)):
            if wanted and not words:
                raise BadInput(
                    f"the driver {self.name} has no list `{key}`, so it cannot be used with a user or a CA file",
                    advice="Add it as resources/vcs/subversion.toml has it, or take user and ca out.",
                )
        return replace(self, _user=user or "", _ca=ca or "")

    def options(self, config: str) -> list[str]:
        """The tool's own options, with `config` as its private folder."""
        return self._filler({"config": config}).options()

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that every command gets beside the agent's own."""
        return dict(self._file.env)

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that this system has, in the published order."""
        return tuple(
            name for name in OPERATIONS if self.traffic_class(name) is not TrafficClass.NOT_APPLICABLE
        )

    def traffic_class(self, operation: str) -> TrafficClass:
        """What the operation does on the wire; `n/a` for one that this system does not have."""
        found = self._operation(operation)
        return TrafficClass.NOT_APPLICABLE if found is None else found.traffic

    def commands(
        self, operation: str, holes: Mapping[str, Value], proxy: tuple[str, int] | None = None
    ) -> tuple[Command, ...]:
        """Everything that one trial runs, in order: prepare, the one timed command, cleanup.

        `proxy` is (host, port), or None while it is disabled. Raises BadInput for an operation that this
        system does not have, and ValueError for a hole that is not filled.
        """
        found = self._operation(operation)
        if found is None or found.timed is None:
            raise BadInput(
                f"{self.title} has no operation {operation!r}",
                advice=f"It has {', '.join(self.operations)}.",
            )
        fill = self._filler(holes, proxy)
        return (
            *(fill.command(step, Phase.PREPARE) for step in found.prepare),
            fill.command(found.timed, Phase.TIMED),
            *(fill.command(step, Phase.CLEANUP) for step in found.cleanup),
        )

    def data(self, holes: Mapping[str, Value]) -> tuple[Command, ...]:
        """What makes {repository} from {dump}, on the server, before the service is started."""
        fill = self._filler(holes)
        return tuple(fill.command(step, Phase.DATA) for step in self._file.data)

    def setup(self, holes: Mapping[str, Value]) -> tuple[Command, ...]:
        """What each client needs once for a run, past the proxy."""
        fill = self._filler(holes)
        return tuple(fill.command(step, Phase.SETUP) for step in self._file.setup)

    @property
    def branches(self) -> bool:
        """True if its file says how a client gets a branch of its own."""
        return bool(self._file.branch)

    def branch(self, holes: Mapping[str, Value]) -> tuple[Command, ...]:
        """What makes {branch_url} of {url}, of several clients for each one, before the trials."""
        fill = self._filler(holes)
        return tuple(fill.command(step, Phase.SETUP) for step in self._file.branch)

    def _filler(self, holes: Mapping[str, Value], proxy: tuple[str, int] | None = None) -> _Filler:
        return _Filler(self._file, {**holes, "user": self._user, "ca": self._ca}, proxy, self._place)

    def _operation(self, operation: str) -> _Operation | None:
        return next((found for name, found in self._file.operations.items() if name == operation), None)


class _Filler:
    """Puts values into holes."""

    def __init__(
        self,
        file: _Driver,
        holes: Mapping[str, Value],
        proxy: tuple[str, int] | None,
        place: str | None = None,
    ) -> None:
        self._env = file.env
        self._place = place
        self._values = dict(holes)
        if proxy is not None:
            self._values.update(zip(PROXY_HOLES, proxy, strict=True))
        options = [
            *file.options,
            *(file.trust if holes.get("ca") else ()),
            *(file.login if holes.get("user") else ()),
        ]
        self._proxy_login = bool(proxy and holes.get("proxy_config"))
        through = [*file.proxy, *(file.proxy_login if self._proxy_login else ())] if proxy else []
        self._lists = {"{options}": options, "{proxy}": through}

    def command(self, step: _Step, phase: Phase) -> Command:
        """The step with its holes filled."""
        args: dict[str, object]
        if step.run is None:
            args = {name: self._value(value) for name, value in step.args.items()}
            return Command(phase=phase, on=step.on, verb=str(step.verb), args=args)
        argv = [self._text(part) for word in step.run for part in self._lists.get(word, [word])]
        args = {"argv": argv}
        args["env"] = {name: self._text(value) for name, value in self._env.items()}
        if step.cwd is not None:
            args["cwd"] = self._text(step.cwd)
        if step.stdin is not None:
            args["stdin"] = self._text(step.stdin)
        if self._place is not None:
            places.refuse_change(argv, str(args.get("stdin", "")), self._place)
        login = bool(self._values.get("user")) and "{options}" in step.run
        return Command(
            phase=phase,
            on=step.on,
            verb="command",
            args=args,
            success=tuple(step.success),
            login=login,
            proxy_login=self._proxy_login and "{proxy}" in step.run,
            file=self._moved(args) if login and "stdin" in args else None,
        )

    def _moved(self, args: dict[str, object]) -> tuple[str, str]:
        """What a step reads from its standard input, moved to a file, since the password goes there: path, text."""
        argv = args["argv"]
        path = f"{self._filled('config')}.targets"
        if not isinstance(argv, list) or "--targets" not in argv[:-1]:
            raise BadInput(
                "a step reads its own standard input, where the repository's password has to go",
                tried=str(argv),
                advice="Only the words --targets - can be given a file instead: mend the driver, or take user out.",
            )
        argv[argv.index("--targets") + 1] = path
        return path, str(args.pop("stdin"))

    def options(self) -> list[str]:
        """The list {options}."""
        return [self._text(part) for part in self._lists["{options}"]]

    def _value(self, value: Value) -> Value:
        """A hole by itself keeps the value's type."""
        if isinstance(value, str) and (whole := _HOLE.fullmatch(value)):
            return self._filled(whole[1])
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        # One pass: what stands in a value is never taken for a hole.
        return _HOLE.sub(lambda hole: str(self._filled(hole[1])), text)

    def _filled(self, hole: str) -> Value:
        if hole not in self._values:
            raise ValueError(f"the hole {{{hole}}} was not filled: it is {HOLES.get(hole, 'unknown')}")
        return self._values[hole]


def driver(name: str, folder: Path | None = None) -> Driver:
    """The driver of this name: from the user's own `folder` if it is there, else the one that BranchLab has.

    Raises BadInput that names file, key and cure.
    """
    known = sorted(names(folder))
    if name not in known:
        raise BadInput(
            f"there is no driver for a version control system named {name!r}",
            advice=f"Known are {', '.join(known)}. Your own belong into the folder vcs of your data.",
        )
    own = folder / f"{name}.toml" if folder is not None else None
    if own is not None and own.is_file():
        return parsed(_read(own), str(own), name)
    shipped = resources.files("resources") / "vcs" / f"{name}.toml"
    return parsed(shipped.read_text("utf-8"), f"resources/vcs/{name}.toml", name)


def names(folder: Path | None = None) -> set[str]:
    """The drivers there are."""
    shipped = (resources.files("resources") / "vcs").iterdir()
    own = folder.glob("*.toml") if folder is not None else ()
    return {file.name.removesuffix(".toml") for file in (*shipped, *own) if file.name.endswith(".toml")}


def parsed(text: str, file: str, name: str) -> Driver:
    """The driver that a file's text describes. Raises BadInput that names `file`, key and cure."""
    try:
        shape = _Driver.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file} is not TOML: {error}", advice="Mend that line.") from None
    except ValidationError as error:
        raise _refusal(error, file) from None
    if shape.name != name:
        raise BadInput(
            f"{file}: name is {shape.name!r}",
            advice=f'Write name = "{name}": the file\'s own name, by which a profile calls the driver.',
        )
    return Driver(shape.name, shape.title, tuple(shape.tool), shape)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{path} cannot be read: {error}", advice="Make it a readable text in UTF-8."
        ) from error


def _refusal(error: ValidationError, file: str) -> BadInput:
    """The first fault of a file, as a sentence: where, what, and what to write instead."""
    first = error.errors(include_url=False)[0]
    where = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(
        "."
    )
    if first["type"] == "extra_forbidden":
        allowed = _keys(first["loc"])
        near = difflib.get_close_matches(str(first["loc"][-1]), allowed, n=1)
        text = f"{file}: {where} is no key that a driver knows"
        cure = f"Write {near[0]} instead." if near else f"Known here are {', '.join(allowed)}."
    elif first["type"] == "missing":
        text, cure = f"{file}: {where} is missing", f"Write a line {where.rpartition('.')[2]} = …"
    else:
        said = first["msg"].removeprefix("Value error, ")
        text, cure = f"{file}: {where or 'the file'}: {said}", f"Mend {where or 'it'} in {file}."
    return BadInput(text, advice=cure)


def _keys(place: tuple[str | int, ...]) -> list[str]:
    """The keys allowed at a place of a driver's file."""
    model: type[_Strict] = _Driver
    if len(place) > 1:
        model = _Operation if place[0] == "operations" and len(place) == 3 else _Step
    return [info.alias or name for name, info in model.model_fields.items()]
