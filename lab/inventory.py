"""Hosts of an Ansible inventory, INI or YAML: names, where SSH reaches them, their groups. Nothing of it is run.

After Ansible's documentation, "How to build your inventory": a group's variables hold for its hosts, those of a
child group win over its parents', the host's own win over all.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab import inventory_yaml
from lab.errors import BadInput

MOST_BYTES = 4_000_000
MOST_HOSTS = 5_000
ALL = "all"
_HOST, _USER, _PORT = (
    ("ansible_host", "ansible_ssh_host"),
    ("ansible_user", "ansible_ssh_user"),
    ("ansible_port", "ansible_ssh_port"),
)
_ARGS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
_KEY = ("ansible_ssh_private_key_file", "ansible_private_key_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A host of an inventory. `where` is what SSH connects to; `user`, `port` (0), `jump` and `key` if it says so."""

    name: str
    where: str
    user: str = ""
    port: int = 0
    jump: str = ""
    key: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """The hosts in the file's order, and what was passed over, for people."""

    hosts: tuple[Listed, ...]
    notes: tuple[str, ...] = ()


@dataclass
class Group:
    """A group as it stands in the file."""

    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)


def read(path: Path) -> Inventory:
    """The hosts of an inventory file. Raises BadInput, with the line, for what is none."""
    try:
        if path.is_dir():
            raise BadInput(f"{path} is a folder", advice="Choose one file in it.")
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: the inventory cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise BadInput(f"{path} is too large for an inventory ({len(data) // 1_000_000} MB)")
    if data.startswith(b"#!"):
        raise BadInput(
            f"{path} is a program that makes an inventory, and is not run here",
            advice="Write what it prints into a file: ansible-inventory -i FILE --list --yaml > inventory.yml",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: this is no text in UTF-8, and no inventory") from error
    if text.startswith("$ANSIBLE_VAULT"):
        raise BadInput(f"{path} is encrypted", advice="Decrypt a copy: ansible-vault decrypt --output FILE")
    return parsed(text, str(path))


def parsed(text: str, name: str) -> Inventory:
    """The same from a text; `name` is what errors call it."""
    groups = _from_yaml(text, name) if _looks_yaml(text, name) else _from_ini(text, name)
    return _flat(groups, name)


def _looks_yaml(text: str, name: str) -> bool:
    if name.endswith((".yml", ".yaml", ".json")):
        return True
    first = next(
        (line.strip() for line in text.splitlines() if line.strip(" \t-") and line[0] not in "#;"), ""
    )
    return text.startswith("---") or bool(re.fullmatch(r"[\w.-]+:", first)) or first.startswith("{")


# INI


def _from_ini(text: str, name: str) -> dict[str, Group]:
    groups: dict[str, Group] = {ALL: Group(), "ungrouped": Group()}
    group, part = "ungrouped", "hosts"
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        header = re.fullmatch(r"\[([^\[\]:]+)(?::(\w+))?\]\s*([#;].*)?", line)
        if header:
            group, part = header[1].strip(), header[2] or "hosts"
            if part not in ("hosts", "vars", "children"):
                raise BadInput(f"{name}:{number}: [{group}:{part}] is no section of an inventory")
            groups.setdefault(group, Group())
            continue
        if line.startswith("["):
            raise BadInput(f"{name}:{number}: this is no section of an inventory: {line[:60]}")
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise BadInput(f"{name}:{number}: a quote is not closed: {line[:60]}") from error
        _take(groups, groups[group], part, words, f"{name}:{number}")
    return groups


def _take(groups: dict[str, Group], group: Group, part: str, words: list[str], at: str) -> None:
    if part == "vars":
        key, equals, value = " ".join(words).partition("=")
        if not equals:
            raise BadInput(f"{at}: a variable is written NAME=VALUE: {' '.join(words)[:60]}")
        group.variables[key.strip()] = value.strip().strip("\"'")
    elif part == "children":
        if len(words) != 1:
            raise BadInput(f"{at}: one group stands on a line here: {' '.join(words)[:60]}")
        group.children.append(words[0])
        groups.setdefault(words[0], Group())
    else:
        variables = {}
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if not equals or not re.fullmatch(r"[A-Za-z_]\w*", key):
                raise BadInput(f"{at}: after a host's name come variables, NAME=VALUE, and not {word[:40]!r}")
            variables[key] = value
        for one in _ranged(words[0], at):
            _refuse_no_name(one, at)
            group.hosts.setdefault(one, {}).update(variables)


def _refuse_no_name(word: str, at: str) -> None:
    if not re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[\w.-]+)(:\d+)?|[0-9A-Fa-f:]+", word):
        raise BadInput(f"{at}: {word[:40]!r} is no name of a host")


def _ranged(word: str, at: str) -> Iterator[str]:
    """`web[01:12].example.com` and `db[a:c]` as all that they mean."""
    found = re.search(r"\[(\w+):(\w+)(?::(\d+))?\]", word)
    if found is None or (found.start() == 0 and ":" in word[found.end() :]):
        yield word
        return
    first, last, step = found[1], found[2], int(found[3] or 1)
    if first.isdigit() and last.isdigit():
        count = [str(n).zfill(len(first)) for n in range(int(first), min(int(last), 10**6) + 1, max(1, step))]
    elif len(first) == len(last) == 1:
        count = [chr(n) for n in range(ord(first), ord(last) + 1, max(1, step))]
    else:
        raise BadInput(f"{at}: {found[0]} is no range of numbers or letters")
    if not count or len(count) > MOST_HOSTS:
        raise BadInput(f"{at}: {found[0]} means {len(count)} hosts")
    for one in count:
        yield from _ranged(word[: found.start()] + one + word[found.end() :], at)


# YAML


def _from_yaml(text: str, name: str) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    for key, value in inventory_yaml.mapping(text, name).items():
        if key.startswith("_"):  # `ansible-inventory --list` in JSON
            raise BadInput(
                f"{name}: this is what ansible-inventory prints without --yaml", advice="Add --yaml."
            )
        _group(key, value, groups, name)
    return groups


def _group(key: str, value: object, groups: dict[str, Group], name: str, depth: int = 0) -> None:
    group = groups.setdefault(key, Group())
    if not isinstance(value, Mapping):
        if value not in (None, ""):
            raise BadInput(f"{name}: the group {key} should have hosts, children or vars below it")
        return
    for part, inside in value.items():
        if part not in ("hosts", "vars", "children"):
            raise BadInput(
                f"{name}: below the group {key} come hosts, children or vars, and not {part[:40]!r}"
            )
        if inside in (None, ""):
            continue
        if not isinstance(inside, Mapping):
            raise BadInput(f"{name}: {part} of the group {key} should be names with a colon each")
        if part == "vars":
            group.variables.update(_scalars(inside))
        elif part == "children":
            if depth > 30:
                raise BadInput(f"{name}: groups lie too deep in each other: {key}")
            for child, below in inside.items():
                group.children.append(child)
                _group(child, below, groups, name, depth + 1)
        else:
            for word, variables in inside.items():
                for one in _ranged(word, name):
                    _refuse_no_name(one, name)
                    known = group.hosts.setdefault(one, {})
                    known.update(_scalars(variables) if isinstance(variables, Mapping) else {})


def _scalars(given: Mapping[str, object]) -> dict[str, str]:
    return {key: value for key, value in given.items() if isinstance(value, str)}


# both


def _flat(groups: dict[str, Group], name: str) -> Inventory:
    order: dict[str, None] = {}
    for group in groups.values():
        order.update(dict.fromkeys(group.hosts))
    if len(order) > MOST_HOSTS:
        raise BadInput(f"{name}: {len(order)} hosts are more than can be shown")
    parents: dict[str, list[str]] = {}
    for key, group in groups.items():
        for child in group.children:
            parents.setdefault(child, []).append(key)
    found, notes = [], []
    for host in order:
        within = _above([key for key, group in groups.items() if host in group.hosts], parents)
        variables: dict[str, str] = {}
        there = [groups[key] for key in within if key in groups]
        for group in there:
            variables.update(group.variables)
        for group in there:
            variables.update(group.hosts.get(host, {}))
        named = tuple(key for key in reversed(within) if key not in (ALL, "ungrouped"))
        try:
            found.append(_listed(host, variables, named))
        except BadInput as error:
            notes.append(str(error))
    if not found:
        raise BadInput(
            f"{name}: no host stands in it" + (f": {notes[0]}" if notes else ""),
            advice="An inventory lists hosts, as INI (a name a line, below [groups]) or as YAML (all: hosts: …).",
        )
    return Inventory(tuple(found), tuple(notes))


def _above(groups: list[str], parents: Mapping[str, list[str]]) -> list[str]:
    """The groups and all that hold them, the outermost first; one that holds itself counts once."""
    levels, seen, here = [], set(groups), list(groups)
    while here:
        levels.append(here)
        above = dict.fromkeys(
            parent for group in here for parent in parents.get(group, ()) if parent not in seen
        )
        seen |= set(above)
        here = list(above)
    found = [group for level in reversed(levels) for group in level if group != ALL]
    return [ALL, *found]


def _listed(name: str, variables: Mapping[str, str], groups: tuple[str, ...]) -> Listed:
    def said(keys: tuple[str, ...]) -> str:
        value = next((variables[key] for key in keys if variables.get(key)), "")
        if "{{" in value:
            raise BadInput(f"{name}: {value[:40]} is only known to Ansible, so it is left out")
        return value

    if variables.get("ansible_connection", "ssh") not in ("ssh", "smart", "paramiko", "paramiko_ssh"):
        raise BadInput(f"{name}: reached by {variables['ansible_connection']}, not by SSH, so it is left out")
    where, port = said(_HOST) or name, said(_PORT)
    inline = re.fullmatch(r"(\[[^\]]+\]|[^:\s]+):(\d+)", where)
    if inline:
        where, port = inline[1].strip("[]"), port or inline[2]
    if port and not (port.isdigit() and 0 < int(port) < 65536):
        raise BadInput(f"{name}: {port[:20]!r} is no port, so it is left out")
    jump = re.search(r"(?:-J\s*|ProxyJump[= ]\s*)([^\s'\"]+)", " ".join(said((key,)) for key in _ARGS))
    return Listed(
        name=name,
        where=where,
        user=said(_USER),
        port=int(port or 0),
        jump=jump[1] if jump else "",
        key=said(_KEY),
        groups=groups,
    )
