"""The shape of a profile's tables, checked value by value; what is wrong says what to write instead."""

from __future__ import annotations

import difflib
import ipaddress
import re
import string
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from lab import design, places, units
from lab.errors import BadInput
from lab.model import OPERATIONS, ProxyState, Role

ROOTS = ("sudo", "doas", "direct", "none")
HOLES = ("server", "proxy", "client")
"""What may stand in braces in a repository's address."""

MOST_DELAY_S = 60
MOST_BPS = 40_000_000_000
"""The agent's word for `as it is`; every rate is below it."""
LEAST_QUEUE_BYTES, MOST_QUEUE_BYTES = 1600, (1 << 32) - 1
"""What an agent accepts of a line; `tests/test_profile.py` holds the two against each other."""
MOST_PRICE = 1e9
LEAST_LIMIT_S, MOST_LIMIT_S = 1.0, 86_400.0
MOST_NAME = 60
"""Bytes of a host's name, which the counters on the other hosts carry."""

T = TypeVar("T")


class Table(BaseModel):
    """A table in which every key is known and of its type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _read(reader: Callable[[Any], T]) -> PlainValidator:
    """A validator from a function of units, whose BadInput becomes one of pydantic's errors."""

    def read(value: Any) -> T:
        try:
            return reader(value)
        except BadInput as error:
            raise PydanticCustomError("branchlab", "{text}", {"text": str(error)}) from error

    return PlainValidator(read)


def _text(value: Any, example: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"`{value}` is no text: write {example}")
    return value


def _one_of(value: Any, known: Iterable[str], what: str) -> str:
    known = tuple(known)
    if value not in known:
        raise BadInput(f"unknown {what} `{value}`: write one of {', '.join(known)}{nearest(value, known)}")
    return str(value)


def nearest(value: object, known: Iterable[str]) -> str:
    """` (did you mean server?)`, or nothing if no known word is near."""
    near = difflib.get_close_matches(str(value), list(known), n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""


def _ssh(value: Any) -> str:
    example = '"admin@server.example.com:22", a name from ~/.ssh/config, or "unix:/path"'
    text = _text(value, example)
    if text.startswith("unix:"):
        if not text.startswith("unix:/"):
            raise BadInput(f"`{text}`: the path of a socket is absolute: write unix:/path")
        return text
    user, at, host = text.rpartition("@")
    if at and ":" in user:
        raise BadInput(
            f"`{user.partition(':')[0]}:…@{host}` has a password in it: take it out, and write {example}"
        )
    match = re.fullmatch(r"(?:[^@\s]+@)?(?:\[[0-9A-Fa-f:.%]+\]|[^@:\s/\[\]]+)(?::([0-9]{1,5}))?", text)
    if not match and text.count(":") > 1 and "[" not in text:
        raise BadInput(f"`{text}`: an IPv6 address stands in brackets: write [{text.split('@')[-1]}]:22")
    if not match or (match[1] and not 0 < int(match[1]) < 65536):
        raise BadInput(f"`{text}` names no host: write {example}")
    return text


def _jump(value: Any) -> str:
    """Hosts as ProxyJump in ssh_config(5) has them, with commas between."""
    text = _text(value, '"gate.example.com"')
    for hop in text.split(","):
        if hop.strip().startswith("unix:"):
            raise BadInput(f"`{hop.strip()}`: nothing goes by way of a socket: write a host")
        _ssh(hop.strip())
    return text


def _address(value: Any) -> str:
    try:
        return str(ipaddress.IPv4Address(value if isinstance(value, str) else ""))
    except ValueError as error:
        raise BadInput(f"`{value}` is no IPv4 address: write one such as 198.51.100.10") from error


def _address6(value: Any) -> str:
    try:
        return str(ipaddress.IPv6Address(value if isinstance(value, str) else ""))
    except ValueError as error:
        raise BadInput(f"`{value}` is no IPv6 address: write one such as 2001:db8::10") from error


def _url(value: Any) -> str:
    example = '"http://proxy.example.com:8081"'
    text = _text(value, example)
    with suppress(ValueError):
        parts = urlsplit(text)
        if re.fullmatch(r"http://[^\s/@?#]+/?", text) and parts.hostname and parts.port != 0:
            return text
    raise BadInput(
        f"`{places.shown(text)}` is no address of a proxy: write for example {example}, "
        "without a password, a user and a path"
    )


def _name(value: Any) -> str:
    text = _text(value, '"Minsk office"')
    if not text.strip() or not text.isprintable():
        raise BadInput(f"{text!r} cannot be shown as a name: write one line of plain text")
    return text


def _line(value: Any) -> units.ParsedLine:
    """A line that a kernel can hold exactly: what cannot be would fail trial by trial, hours later."""
    parsed = units.parse_line(_text(value, '"64/128 kbit/s"'))
    line = parsed.line
    if line.delay_s > MOST_DELAY_S:
        raise BadInput(f"`{value}`: no delay above {MOST_DELAY_S} s can be made: write less")
    if line.loss == 1:
        raise BadInput(f"`{value}`: a loss of 100 % lets nothing through: write less")
    for rate in (line.upload_bps, line.download_bps):
        if rate is None:
            continue
        if rate % 8 or rate >= MOST_BPS:
            near = units.rate_text(min(max(8, round(rate / 8) * 8), MOST_BPS // 10))
            raise BadInput(
                f"{units.rate_text(rate)} cannot be limited to (whole bytes per second): write {near}"
            )
        if not LEAST_QUEUE_BYTES <= line.queue_for(rate) <= MOST_QUEUE_BYTES:
            raise BadInput(
                f"`{value}`: a queue holds from {LEAST_QUEUE_BYTES} bytes (one packet) to "
                f"{units.bytes_text(MOST_QUEUE_BYTES)}: write for example queue 64 kB"
            )
    return parsed


def _folder(value: Any) -> str:
    text = _text(value, '"/var/cache/branchlab"')
    absolute = text.startswith("/") or re.match(r"[A-Za-z]:[\\/]", text)
    if ".." in re.split(r"[\\/]", text) or not text.isprintable():
        raise BadInput(f"{text!r} is no plain path: write it without `..` and control characters")
    if not absolute or not re.sub(r"^[A-Za-z]:|[\\/.]", "", text):
        raise BadInput(
            f"`{text}` is no folder of its own: write an absolute path such as /var/cache/branchlab"
        )
    return text


def _repository(value: Any) -> str:
    example = '"http://{server}/svn/trunk"'
    text = _text(value, example)
    try:
        holes = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise BadInput(f"`{places.shown(text)}` has a brace too many: write for example {example}") from error
    for hole in holes:
        _one_of(hole, HOLES, "name in braces")
    return text.rstrip("/")


def _user(value: Any) -> str:
    text = _text(value, '"anna"')
    if not re.fullmatch(r"[^\s:-][^\s:]*", text) or not text.isprintable():
        # Not the text: it may be a password.
        raise BadInput("this is no name of a user: write it without a password, spaces and colons")
    return text


def made_trouble(repository: str) -> str:
    """Why BranchLab cannot serve a repository of its own at this address; empty if it can."""
    match = re.fullmatch(r"http://\{server\}(?::([0-9]{1,5}))?/[A-Za-z0-9_-]+/trunk", repository)
    if match and (not match[1] or 0 < int(match[1]) < 65536):
        return ""
    return (
        f"`{places.shown(repository)}` is no place where BranchLab can serve a repository: "
        'write "http://{server}/NAME/trunk", with a port behind {server} if need be'
    )


def own_address(text: str) -> places.Address:
    """The address of a repository as it is, `{server}` being some host. Raises BadInput."""
    return places.address(re.sub(r"^(https?)://\{server\}(?=[:/]|$)", r"\1://branchlab.invalid", text))


def entry_trouble(repository: str, ca: str | None, states: list[ProxyState]) -> tuple[str, str]:
    """Which key about entering a repository of the user's own is wrong, and why; both empty if none is."""
    if not repository.startswith("https:"):
        return ("ca", "the repository is not on https: take `ca` out") if ca else ("", "")
    if any(state.enabled for state in states):
        return "repository", (
            f"`{places.shown(repository)}`: nothing of what goes over https can be cached, so no proxy can be measured "
            'with it: write states = ["disabled"], or serve the repository by http too, for the lab\'s hosts alone'
        )
    return "", ""


def scratch_trouble(scratch: str, repository: places.Address) -> str:
    """Why this cannot be the scratch place of that repository; empty if it can."""
    try:
        place = own_address(scratch)
    except BadInput as error:
        return str(error)
    if place.site != repository.site:
        return f"`{scratch}` is on another server than the repository: write the same host and port"
    if place.within(repository) or repository.within(place):
        return (
            f"`{scratch}` holds the repository that is measured, or lies within it: write a place beside it, "
            "such as http://…/project/branchlab-scratch beside http://…/project/trunk"
        )
    return ""


@dataclass(frozen=True, slots=True)
class PricedLine:
    """A line as an experiment names it, and what it costs a month, if that is said."""

    parsed: units.ParsedLine
    price: float | None = None


def _priced(value: Any) -> PricedLine:
    if not isinstance(value, Mapping):
        return PricedLine(_line(value))
    unknown = sorted(set(value) - {"line", "price"})
    if unknown or "line" not in value:
        raise BadInput(f"a line's table has a line and a price: write {EXAMPLES['price']}")
    price = value.get("price")
    if price is not None and (
        isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < MOST_PRICE
    ):
        raise BadInput(f"`{price}` is no price a month: write a number such as 45")
    return PricedLine(_line(value["line"]), None if price is None else float(price))


def _limit(value: Any) -> float:
    seconds = units.parse_duration(_text(value, '"15 min"'))
    if not LEAST_LIMIT_S <= seconds <= MOST_LIMIT_S:
        raise BadInput(f"`{value}`: a trial may take from 1 s to 24 h: write for example 15 min")
    return seconds


def _clients(value: Any) -> int | tuple[str, ...]:
    """How many clients, or which. Whether the lab has them `lab.profile` knows."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise BadInput(f"`{value}`: at least one client does the work: write {EXAMPLES['clients']}")
        return value
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadInput(
            f"`{value}` is neither a number of clients nor a list of them: write {EXAMPLES['clients']}"
        )
    if not value:
        raise BadInput(f"no client is named: write {EXAMPLES['clients']}, or take `clients` out")
    return tuple(value)


_Rate = Annotated[PricedLine, _read(_priced)]
_State = Annotated[ProxyState, _read(units.parse_state)]
_Operation = Annotated[str, _read(lambda value: _one_of(value, OPERATIONS, "operation"))]


_Words = list[str]

CACHE_KEYS = {
    "folder": ("folder", "owns"),
    "command": ("list", "purge"),
}
"""What the table of a cache has beside its kind; with any other kind it is the folder alone."""
SERVED = ("apache-disk", "squid", "nginx-proxy-cache")
"""The kinds of cache that a proxy of BranchLab's own can have."""


class CacheTable(Table):
    """The cache of a proxy."""

    kind: str = Field(min_length=1)
    folder: Annotated[str, _read(_folder)] | None = None
    owns: bool = False
    list: _Words | None = None
    purge: _Words | None = None

    @model_validator(mode="after")
    def _keys_of_the_kind(self) -> CacheTable:
        """Refuse what the kind lacks, and what it knows nothing of."""
        needed = CACHE_KEYS.get(self.kind, ("folder",))
        for key in needed:
            if getattr(self, key) in (None, False, []):
                example = EXAMPLES.get(f"{self.kind} {key}", EXAMPLES.get(key, ""))
                _no(f"`{key}` is missing: write {example}")
        for key in ("folder", "owns", "list", "purge"):
            if getattr(self, key) not in (None, False) and key not in needed:
                _no(f"a cache of kind {self.kind} has no `{key}`: take it out")
        for key in ("list", "purge"):
            words = getattr(self, key) or []
            if words and (not words[0] or any(not word.isprintable() for word in words)):
                _no(f"`{key}` is a program and its words: write {EXAMPLES[f'command {key}']}")
        return self


def _no(text: str) -> NoReturn:
    raise PydanticCustomError("branchlab", "{text}", {"text": text})


class HostTable(Table):
    """A host, `[hosts.NAME]`."""

    role: Annotated[str, _read(lambda value: _one_of(value, [role.value for role in Role], "role"))]
    ssh: Annotated[str, _read(_ssh)]
    key: str | None = None
    jump: Annotated[str, _read(_jump)] | None = None
    host_key: str | None = None
    address: Annotated[str, _read(_address)] | None = None
    address6: Annotated[str, _read(_address6)] | None = None
    root: Annotated[str, _read(lambda value: _one_of(value, ROOTS, "way to root"))] = "none"
    sudo: bool = False
    cache: CacheTable | None = None
    url: Annotated[str, _read(_url)] | None = None
    user: Annotated[str, _read(lambda value: _user(value))] | None = None
    services: Annotated[str, _read(_folder)] | None = None
    delay: str | None = None

    @model_validator(mode="after")
    def _services_with_a_cache_of_theirs(self) -> HostTable:
        """Refuse a proxy of BranchLab's own whose cache no such proxy could have."""
        kind = self.cache.kind if self.cache else ""
        if self.role == Role.PROXY and self.services and kind in ("folder", "command"):
            _no(f"a cache of kind {kind} is of a proxy that is used as it is: take `services` out")
        if self.user and (self.role != Role.PROXY or self.services):
            _no("only a proxy that is used as it is asks for a `user`: take it out")
        return self


_HOST_TEXTS: dict[str, Callable[[Any], str]] = {
    "ssh": _ssh,
    "jump": _jump,
    "address": _address,
    "address6": _address6,
    "url": _url,
    "user": _user,
    "services": _folder,
    "folder": _folder,
}
_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def host_text(key: str, value: str) -> str:
    """What a host's key has for this text. Raises BadInput with the cure; keys without a shape take any text."""
    return _HOST_TEXTS.get(key, str)(value)


def host_name_trouble(name: str) -> str:
    """Why no host can have this name; empty if one can."""
    if not _HOST_NAME.fullmatch(name):
        return f"`{name}` is no name of a host: write letters, digits, - and _ only"
    if len(name) > MOST_NAME:
        return f"the host's name is too long: write {MOST_NAME} letters at most"
    return ""


class ChangeTable(Table):
    """The seeded edit."""

    files: int = Field(default=50, ge=0)
    lines: Annotated[float, _read(units.parse_share)] = 0.1


class UntilTable(Table):
    """Until when blocks are repeated."""

    within: Annotated[float, _read(units.parse_share)]
    at_most: int = Field(default=12, ge=1)


class ExperimentTable(Table):
    """An experiment, `[[experiments]]`."""

    name: Annotated[str, _read(_name)]
    vcs: str = Field(default="subversion", min_length=1)
    repository: Annotated[str, _read(_repository)] = "http://{server}/svn/trunk"
    data: str | None = None
    scratch: Annotated[str, _read(_repository)] | None = None
    user: Annotated[str, _read(_user)] | None = None
    ca: Annotated[str, _read(_folder)] | None = None
    change: ChangeTable = ChangeTable()
    operations: list[_Operation] = list(OPERATIONS)
    lines: list[_Rate]
    states: list[_State]
    disabled_only: list[_Operation] = []
    launches: bool = False
    attempts: int = Field(default=4, ge=1)
    warm_up: int = Field(default=1, ge=0)
    order: Annotated[str, _read(lambda value: _one_of(value, design.ORDERS, "order"))] = "blocks"
    seed: int = Field(default=2008, ge=0, lt=1 << 63)
    limit: Annotated[float, _read(_limit)] | None = None
    until: UntilTable | None = None
    clients: Annotated[int | tuple[str, ...], _read(_clients)] = 1


EXAMPLES = {
    "schema": "schema = 1",
    "name": 'name = "Minsk office"',
    "line": 'line = "server", "router", "office" or "senders"',
    "role": 'role = "client", "proxy", "server" or "router"',
    "ssh": 'ssh = "admin@server.example.com:22"',
    "kind": 'kind = "apache-disk"',
    "folder": 'folder = "/var/cache/branchlab"',
    "folder owns": "owns = true, if everything in this folder may be purged",
    "command list": 'list = ["/usr/local/bin/list-cache"], a command that prints one object a line',
    "command purge": 'purge = ["/usr/local/bin/purge", "{url}"], or a command that reads one object a line',
    "lines": 'lines = ["64/128 kbit/s", "1/2 Mbit/s 40 ms"]',
    "price": '{ line = "1/2 Mbit/s", price = 45 }',
    "limit": 'limit = "15 min"',
    "until": 'until = { within = "5 %", at_most = 12 }',
    "within": 'within = "5 %"',
    "at_most": "at_most = 12",
    "states": 'states = ["disabled", "0 %", "90 %", "100 %"]',
    "operations": 'operations = ["get", "history"]',
    "disabled_only": 'disabled_only = ["check-in"]',
    "cache": 'cache = { kind = "apache-disk", folder = "/var/cache/branchlab" }',
    "change": 'change = { files = 50, lines = "10 %" }',
    "attempts": "attempts = 4",
    "warm_up": "warm_up = 1",
    "seed": "seed = 2008",
    "files": "files = 50",
    "sudo": "sudo = true",
    "launches": "launches = true",
    "data": 'data = "quick"',
    "scratch": 'scratch = "http://{server}/svn/project/branchlab-scratch"',
    "user": 'user = "anna"',
    "ca": 'ca = "/etc/ssl/company.pem"',
    "clients": 'clients = 3 (the first three) or clients = ["desk-1", "desk-2"]',
}
"""What to write for a key."""
