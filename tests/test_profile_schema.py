"""The JSON Schema of profiles, held against the profiles' own checker."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as some

from lab import new_lab, profile, profile_schema
from lab.__main__ import cli
from lab.embedded import profile_text
from lab.model import Host, Role
from lab.new_lab import Caching, Entry, NewLab

SCHEMA = profile_schema.schema()
HOSTS = (
    Entry(role=Role.SERVER, ssh="admin@server", address="198.51.100.1", root="sudo"),
    Entry(
        role=Role.PROXY, ssh="proxy", address="192.0.2.7", address6="2001:db8::7", jump="gate", root="doas"
    ),
    Entry(role=Role.CLIENT, ssh="desk-1", key="~/.ssh/lab"),
)
GUIDE = (Path(__file__).parent.parent / "docs" / "guide.md").read_text("utf-8")
WHOLE = [
    block
    for block in re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    if block.startswith(("schema =", "#:schema")) and "[[experiments]]" in block
]
PROFILES = {
    "new lab": new_lab.text(NewLab(name="x", hosts=HOSTS)),
    "its own proxy": new_lab.text(
        NewLab(name="x", hosts=HOSTS, caching=Caching(own=False, kind="folder", folder="/srv/cache"))
    ),
    "embedded": profile_text.text((
        Host(name="client", role=Role.CLIENT, ssh="unix:/a", address="10.0.0.1"),
        Host(name="proxy", role=Role.PROXY, ssh="unix:/b", address="10.0.0.2", url="http://10.0.0.2:1",
             services="/x", cache=profile.Cache(kind="apache-disk", folder="/y")),
        Host(name="server", role=Role.SERVER, ssh="unix:/c", address="10.0.0.3", services="/x", delay="wirefilter:a:b"),
    )),
    **{f"guide {number}": block for number, block in enumerate(WHOLE)},
}  # fmt: skip


def wrong(value: object, schema: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """What a validator would say: as much of JSON Schema as ours uses."""
    if "$ref" in schema:
        yield from wrong(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], where)
    if "const" in schema and (value != schema["const"] or isinstance(value, bool)):
        yield f"{where}: not {schema['const']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: none of {schema['enum']}"
    if "anyOf" in schema and all(any(wrong(value, one, where)) for one in schema["anyOf"]):
        yield f"{where}: nothing of what it may be"
    kinds: dict[str, Any] = {
        "string": str, "object": dict, "array": list, "integer": int, "boolean": bool, "number": int | float
    }  # fmt: skip
    kind = kinds.get(schema.get("type", ""))
    if kind is not None and (
        not isinstance(value, kind) or (kind in (int, int | float) and isinstance(value, bool))
    ):
        yield f"{where}: no {schema['type']}"
        return
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{where}: not like {schema['pattern']}"
        if len(value) < schema.get("minLength", 0):
            yield f"{where}: too short"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value >= schema.get("exclusiveMaximum", value + 1):
            yield f"{where}: out of bounds"
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{where}: too few"
        for number, one in enumerate(value):
            yield from wrong(one, schema.get("items", {}), f"{where}.{number}")
    elif isinstance(value, dict):
        yield from _table(value, schema, where)


def _table(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (f"{where}.{key}: missing" for key in schema.get("required", []) if key not in value)
    for key, one in value.items():
        if not re.search(schema.get("propertyNames", {}).get("pattern", ""), key):
            yield f"{where}.{key}: no name"
        if key in known:
            yield from wrong(one, known[key], f"{where}.{key}")
        elif other is False:
            yield f"{where}.{key}: unknown"
        elif isinstance(other, dict):
            yield from wrong(one, other, f"{where}.{key}")


def right(text: str) -> bool:
    return profile.looked_at(text, Path("x")).profile is not None


@pytest.mark.parametrize("name", PROFILES)
def test_what_the_checker_takes_the_schema_takes(name: str) -> None:
    assert right(PROFILES[name])
    assert list(wrong(tomllib.loads(PROFILES[name]), SCHEMA)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('role = "client"', 'role = "clinet"'),
        ('role = "client"', 'role = "client"\nsuod = true'),
        ('root = "doas"', 'root = "su"'),
        ('ssh = "desk-1"', "ssh = 1"),
        ('ssh = "desk-1"\n', ""),
        ("schema = 1", "schema = 2"),
        ("schema = 1", "schema = true"),
        ("attempts = 4", "attempts = 0"),
        ("attempts = 4", "attempts = true"),
        ('"get"', '"gte"'),
        ('"90 %"', '"90"'),
        ('"10 %"', "10"),
        ("files = 50", "files = -1"),
        ('kind = "apache-disk"', 'kind = "apache-disk", fodler = "/x"'),
        ("warm_up = 1", 'warm_up = 1\norder = "block"'),
        ("warm_up = 1", "warm_up = 1\nnmae = 1"),
        ('name = "x"', "name = 1"),
        ('name = "x"', 'name = "x"\nline = "far"'),
        ('data = "quick"', "data = 1"),
        ("[hosts.desk-1]", '[hosts."desk 1"]'),
        ('"512/1024 kbit/s"', "{ price = 45 }"),
        ('"512/1024 kbit/s"', '{ line = "1/2 Mbit/s", price = -1 }'),
        ("warm_up = 1", "warm_up = 1\nlimit = 5"),
        ("warm_up = 1", "warm_up = 1\nuntil = { at_most = 3 }"),
        ("warm_up = 1", 'warm_up = 1\nuntil = { within = "5" }'),
        ("warm_up = 1", "warm_up = 1\nclients = 0"),
        ("warm_up = 1", "warm_up = 1\nclients = []"),
        ("warm_up = 1", "warm_up = 1\nclients = [1]"),
        ("warm_up = 1", 'warm_up = 1\nclients = "desk-1"'),
    ],
)
def test_what_is_misshapen_both_refuse(before: str, after: str) -> None:
    text = PROFILES["new lab"]
    assert before in text
    changed = text.replace(before, after, 1)
    assert not right(changed)
    assert list(wrong(tomllib.loads(changed), SCHEMA))


_PLACES = [("hosts", "server", key) for key in profile_schema.DESCRIBED[profile_schema.HostTable]] + [
    ("experiments", 0, key) for key in profile_schema.DESCRIBED[profile_schema.ExperimentTable]
]
_VALUES = some.one_of(
    some.booleans(),
    some.integers(-1, 5),
    some.sampled_from(
        ["", "x", "/x", "10 %", "http://{server}/svn/trunk", "server", "sudo", "unix:/x", "10.0.0.9"]
    ),
    some.lists(some.sampled_from(["get", "as it is", "1/2 Mbit/s", "disabled", "50 %"]), max_size=2),
)


@settings(max_examples=300, deadline=None)
@given(some.sampled_from(_PLACES), _VALUES)
def test_the_schema_is_never_stricter_than_the_checker(place: tuple[str | int, ...], value: object) -> None:
    document: Any = copy.deepcopy(tomllib.loads(PROFILES["new lab"]))
    holder = document
    for part in place[:-1]:
        holder = holder[part]
    holder[place[-1]] = value
    checker = profile._Checker()
    checker.whole(document, Path("x"))
    if not checker.problems:
        assert list(wrong(document, SCHEMA)) == []


def test_a_line_may_have_a_price_and_a_run_a_limit_and_an_end() -> None:
    text = PROFILES["new lab"].replace('"512/1024 kbit/s"', '{ line = "512/1024 kbit/s", price = 45.5 }')
    text = text.replace(
        "warm_up = 1", 'warm_up = 1\nlimit = "15 min"\nuntil = { within = "5 %", at_most = 12 }'
    )
    assert right(text)
    assert list(wrong(tomllib.loads(text), SCHEMA)) == []


@pytest.mark.parametrize("clients", ["1", '["desk-1"]'])
def test_an_experiment_may_have_clients(clients: str) -> None:
    text = PROFILES["new lab"].replace("warm_up = 1", f"warm_up = 1\nclients = {clients}")
    assert right(text)
    assert list(wrong(tomllib.loads(text), SCHEMA)) == []


def test_every_key_is_described() -> None:
    for table, described in profile_schema.DESCRIBED.items():
        assert set(described) == set(table.model_fields), (
            f"describe it in lab.profile_schema: {table.__name__}"
        )
    assert all(
        "description" in one for table in SCHEMA["$defs"].values() for one in table["properties"].values()
    )


def test_branchlab_schema_prints_it() -> None:
    result = CliRunner().invoke(cli, ["schema"])
    assert result.exit_code == 0
    assert json.loads(result.output) == json.loads(json.dumps(SCHEMA))
