"""Kinds of cache: TOML that says what an object is, which service keeps them, and what to know first."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from lab.errors import BadInput


class _Note(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str


class Kind(BaseModel):
    """One kind of cache, as its file describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal[1]
    name: str
    title: str
    object: str
    """What is counted, filled and purged as one."""
    service: str = ""
    """The kind of service that an agent starts for a lab of its own; none for what is used only as it is."""
    engine: str = ""
    """The program that this service is."""
    urls: bool = True
    """Objects are named by their URL, so that those of the repository can be told from all others."""
    tools: tuple[str, ...]
    """Programs of which the proxy host has one."""
    notes: tuple[_Note, ...] = ()
    """What the user must know before a run on a proxy of his own."""


def kind(name: str, folder: Path | None = None) -> Kind:
    """The kind of this name, from the user's `folder` first, then from what is shipped. Raises BadInput."""
    own = folder / f"{name}.toml" if folder is not None and "/" not in name else None
    if own is not None and own.is_file():
        return _read(own.read_text(encoding="utf-8"), str(own))
    if name not in names():
        known = ", ".join(names())
        raise BadInput(f"there is no kind of cache named {name!r}", advice=f"Known kinds: {known}.")
    file = resources.files("resources") / "caches" / f"{name}.toml"
    return _read(file.read_text(encoding="utf-8"), str(file))


def names() -> tuple[str, ...]:
    """The kinds that are shipped, sorted."""
    found = (item.name for item in (resources.files("resources") / "caches").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


def _read(text: str, path: str) -> Kind:
    try:
        values = tomllib.loads(text)
        return Kind.model_validate({"schema_": values.pop("schema", None), **values})
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is no TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]).replace("schema_", "schema")
        raise BadInput(f"{path}: {where}: {first['msg']}") from error
