"""The shape of a profile as JSON Schema (draft 2020-12), for editors that complete and check TOML while one types.

Made of the same tables by which profiles are checked (`lab.profile_shape`), so that no key is missing. What a
schema cannot say, as that an address belongs to one host, `lab.profile` alone knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab import design
from lab.model import OPERATIONS, PLACES, Role
from lab.profile import SCHEMA
from lab.profile_shape import ROOTS, CacheTable, ChangeTable, ExperimentTable, HostTable, Table, UntilTable

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": "string"}
_PERCENT = {"type": "string", "pattern": "^\\s*[0-9.,]+\\s*%\\s*$", "examples": ["10 %", "90 %"]}
_FOLDER = {"type": "string", "pattern": "^(/|[A-Za-z]:)", "examples": ["/var/cache/branchlab"]}
_ADDRESS = {"type": "string", "pattern": "^http", "examples": ["http://{server}/svn/trunk"]}

_LINE = {"type": "string", "examples": ["64/128 kbit/s", "1/2 Mbit/s 40 ms", "as it is"]}
_PRICED = {
    "type": "object",
    "properties": {"line": _LINE, "price": {"type": "number", "minimum": 0}},
    "required": ["line"],
    "additionalProperties": False,
}

_HOST: dict[str, tuple[str, Mapping[str, Any]]] = {
    "role": ("What the host is in the lab.", {"enum": [role.value for role in Role]}),
    "ssh": ("[user@]name[:port], a name from ~/.ssh/config, or unix:/path.", {**_TEXT, "minLength": 1}),
    "key": ("The file of the key to log in with; else as ~/.ssh/config says.", _TEXT),
    "jump": ("By way of which host SSH goes; else as ~/.ssh/config says.", _TEXT),
    "host_key": ("The host's own key, as in its .pub file: ssh-ed25519 AAAA…", _TEXT),
    "address": (
        "The IPv4 address by which the lab's other hosts reach it.",
        {"type": "string", "format": "ipv4"},
    ),
    "address6": (
        "The IPv6 address by which the lab's other hosts reach it.",
        {"type": "string", "format": "ipv6"},
    ),
    "root": ("How BranchLab becomes root there; none: it changes nothing there.", {"enum": list(ROOTS)}),
    "sudo": ('The same as root = "sudo".', {"type": "boolean"}),
    "cache": ("What a run fills and purges.", {}),
    "url": ("How the clients reach the proxy.", {**_TEXT, "examples": ["http://proxy.example.com:8081"]}),
    "user": ("Who is let in by a proxy that asks for a password.", _TEXT),
    "services": ("A folder for services of BranchLab's own while a run goes on.", _FOLDER),
    "delay": ("Where packets are held back on a host without netem.", _TEXT),
}
_CACHE: dict[str, tuple[str, Mapping[str, Any]]] = {
    "kind": ("apache-disk, squid, nginx-proxy-cache, folder, command, or one of your own.", _TEXT),
    "folder": ("Where the cache is on the proxy.", _FOLDER),
    "owns": ("True: everything in the folder may be purged.", {}),
    "list": ("A command that prints one object a line.", {}),
    "purge": ("A command that takes objects out.", {}),
}
_CHANGE: dict[str, tuple[str, Mapping[str, Any]]] = {
    "files": ("How many files are edited; 0: all that the data set marks.", {}),
    "lines": ("The share of their lines.", _PERCENT),
}
_EXPERIMENT: dict[str, tuple[str, Mapping[str, Any]]] = {
    "name": ("What it asks, in one line.", {**_TEXT, "minLength": 1}),
    "vcs": ("The driver of the version-control system.", {}),
    "repository": ("Its address; {server} is the server's.", _ADDRESS),
    "data": ("The data set of a repository that BranchLab makes; left out: the repository as it is.", _TEXT),
    "scratch": ("A place beside what is measured, for Check-Out and Check-In.", _ADDRESS),
    "user": ("Who is let in by the repository.", _TEXT),
    "ca": ("A file with the company's certificates, on the client.", _TEXT),
    "change": ("The seeded edit.", {}),
    "operations": ("What is measured.", {"items": {"enum": list(OPERATIONS)}}),
    "lines": (
        "Upload/download, delay, jitter, loss, queue; or as it is. { line = …, price = … }: what it costs a month.",
        {"items": {"anyOf": [_LINE, _PRICED]}, "minItems": 1},
    ),
    "states": (
        'Of the proxy: "disabled", "90 %" (full), or { purge = "10 %" }.',
        {
            "items": {
                "anyOf": [
                    {
                        "type": "string",
                        "pattern": "^\\s*([Dd][Ii][Ss][Aa][Bb][Ll][Ee][Dd]|[0-9.,]+\\s*%)\\s*$",
                    },
                    {
                        "type": "object",
                        "properties": {"purge": _PERCENT},
                        "required": ["purge"],
                        "additionalProperties": False,
                    },
                ]
            },
            "minItems": 1,
        },
    ),
    "disabled_only": ("Operations that do not use the proxy.", {"items": {"enum": list(OPERATIONS)}}),
    "launches": ("One launch of each of them per state, for its traffic.", {}),
    "attempts": ("How often each cell is measured, warm-ups among them.", {}),
    "warm_up": ("How many of the first attempts are not counted.", {}),
    "limit": ("How long a trial may take.", {**_TEXT, "examples": ["15 min"]}),
    "until": ("Blocks are repeated until the answer is this certain.", {}),
    "order": ("In blocks against drift, or as published in 2008.", {"enum": list(design.ORDERS)}),
    "seed": ("What shuffles the order, and chooses what is purged and edited.", {}),
    "clients": (
        "How many clients do each operation at the same moment, or which; left out: the first one.",
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "array", "items": _TEXT, "minItems": 1, "uniqueItems": True},
            ],
            "examples": [3, ["desk-1", "desk-2"]],
        },
    ),
}
_UNTIL: dict[str, tuple[str, Mapping[str, Any]]] = {
    "within": ("How wide the pooled interval may be.", _PERCENT),
    "at_most": ("How many blocks at most.", {}),
}
DESCRIBED: dict[type[Table], Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    HostTable: _HOST,
    CacheTable: _CACHE,
    ChangeTable: _CHANGE,
    UntilTable: _UNTIL,
    ExperimentTable: _EXPERIMENT,
}
"""What each key says, and what the tables themselves cannot tell of it."""


def schema() -> dict[str, Any]:
    """The whole schema."""
    return {
        "$schema": DIALECT,
        "title": "A BranchLab profile",
        "type": "object",
        "properties": {
            "schema": {"description": f"The version of this form: {SCHEMA}.", "const": SCHEMA},
            "name": {"description": "What the lab is called.", **_TEXT},
            "line": {"description": "Where the line is held.", "enum": list(PLACES)},
            "hosts": {
                "description": "The hosts by their names: [hosts.NAME].",
                "type": "object",
                "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$"},
                "additionalProperties": {"$ref": "#/$defs/HostTable"},
            },
            "experiments": {
                "description": "What is measured: [[experiments]].",
                "type": "array",
                "items": {"$ref": "#/$defs/ExperimentTable"},
            },
        },
        "required": ["schema", "hosts"],
        "additionalProperties": False,
        "$defs": {table.__name__: _table(table) for table in DESCRIBED},
    }


def _table(table: type[Table]) -> dict[str, Any]:
    made = table.model_json_schema(ref_template="#/$defs/{model}")
    properties = {key: _key(table, key, value) for key, value in made["properties"].items()}
    found = {"type": "object", "description": made.get("description", ""), "properties": properties}
    if "required" in made:
        found["required"] = made["required"]
    return {**found, "additionalProperties": False}


def _key(table: type[Table], key: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """One key: TOML has no null, and what a table says of a default is Python's, not the file's."""
    said, more = DESCRIBED[table].get(key, ("", {}))
    plain = {name: inside for name, inside in value.items() if name not in ("title", "default", "anyOf")}
    if "anyOf" in value:
        plain |= next((one for one in value["anyOf"] if one.get("type") != "null"), {})
    return {**({"description": said} if said else {}), **plain, **more}
