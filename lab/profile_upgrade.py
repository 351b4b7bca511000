"""Profiles of an older form, brought to this one: the same steps for what is checked and for what is edited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from lab.errors import BadInput

SCHEMA = 1
"""The form of this version."""
Document = MutableMapping[str, Any]


def _numbered(document: Document) -> None:
    """From 0, which had no number, to 1, in which it stands first."""


STEPS: Mapping[int, Callable[[Document], None]] = {0: _numbered}
"""By the form from which each leads to the next one. The number itself is written by `upgrade`."""


def older(document: Mapping[str, Any]) -> int | None:
    """The form of a document that is older than this one's; None where it is this one, newer, or none at all."""
    found = document.get("schema", 0 if "hosts" in document else None)
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return found if found in STEPS and found < SCHEMA else None


def upgrade(document: Document) -> int | None:
    """Bring a document to this form, in place; from which form, or None where there was nothing to do."""
    found = older(document)
    if found is not None:
        for number in range(found, SCHEMA):
            STEPS[number](document)
        document["schema"] = SCHEMA
    return found


def upgraded(text: str) -> tuple[str, int | None]:
    """The same for a text: comments and order stay. Raises BadInput where it is no TOML."""
    try:
        document = tomlkit.parse(text)
        found = older(document)
        if found is None:
            return text, None
        if "schema" not in document:
            # In front of everything, where a person looks for it.
            document = tomlkit.parse(f"schema = {found}\n{text}")
        upgrade(document)
        return tomlkit.dumps(document), found
    except TOMLKitError as error:
        raise BadInput(f"this is no TOML: {error}") from error
