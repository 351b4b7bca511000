"""Every edit of a lab as a step of the document: named, in place, with comments kept."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import tomlkit

from gui.document import Document
from gui.lab import written
from gui.lab.written import HostWritten, LabWritten
from lab import new_lab, profile_tables
from lab.model import Role
from lab.profile_shape import CACHE_KEYS, SERVED

WORDS = {
    "ssh": "SSH name",
    "address": "address",
    "address6": "IPv6 address",
    "root": "way to root",
    "jump": "jump host",
    "key": "key file",
    "host_key": "host key",
    "url": "address for the clients",
    "user": "user",
    "services": "folder for services",
    "delay": "place of the delay",
    "cache.folder": "cache folder",
    "cache.list": "command that lists",
    "cache.purge": "command that purges",
}
"""What a key is called in the name of a step."""
_LISTS = ("cache.list", "cache.purge")
_OF_A_PROXY = ("cache", "url", "user")


class HostEdits:
    """Changes hosts and line of the document; each deed is one step that can be taken back, True if it could be."""

    def __init__(self, document: Document) -> None:
        self._document = document

    @property
    def lab(self) -> LabWritten | None:
        """The lab as it is written now."""
        return written.lab(self._document.draft)

    # one host

    def put(self, name: str, key: str, text: str) -> bool:
        """Give a key a text; an empty one takes it out."""
        if not text:
            return self._edit(name, f"take out the {WORDS[key]} of {name}", lambda table: _drop(table, key))
        value = shlex.split(text) if key in _LISTS else text
        return self._edit(name, f"change the {WORDS[key]} of {name}", lambda table: _put(table, key, value))

    def root(self, name: str, way: str) -> bool:
        """How one becomes root there."""

        def edit(table: Any) -> None:
            table.pop("sudo", None)
            if way == "none":
                table.pop("root", None)
            else:
                table["root"] = way

        return self._edit(name, f"change the way to root on {name}", edit)

    def owns(self, name: str, owns: bool) -> bool:
        """Whether everything in the folder of its cache may be purged."""
        what = f"{'allow' if owns else 'no longer allow'} everything in the cache of {name} to be purged"

        def edit(table: Any) -> None:
            if owns:
                _put(table, "cache.owns", True)
            else:
                _drop(table, "cache.owns")

        return self._edit(name, what, edit)

    def kind(self, name: str, kind: str) -> bool:
        """Another kind of cache: the folder stays, what the kind has no use for goes."""
        keys = CACHE_KEYS.get(kind, ("folder",))

        def edit(table: Any) -> None:
            _put(table, "cache.kind", kind)
            for key in ("folder", "owns", "list", "purge"):
                if key not in keys:
                    _drop(table, f"cache.{key}")
            if "folder" in keys and "folder" not in table["cache"]:
                own = new_lab.OWN_CACHE if "services" in table else new_lab.FOLDERS.get(kind, "")
                if own:
                    _put(table, "cache.folder", own)

        return self._edit(name, f"take another kind of cache on {name}", edit)

    def own_proxy(self, name: str, own: bool) -> bool:
        """A proxy of BranchLab's own while a run goes on, or the one that runs there."""

        def edit(table: Any) -> None:
            if not own:
                table.pop("services", None)
                return
            table["services"] = new_lab.SERVICES
            table.pop("user", None)
            if "cache" not in table or table["cache"].get("kind") not in SERVED:
                made = tomlkit.inline_table()
                made.update({"kind": "apache-disk", "folder": new_lab.OWN_CACHE})
                table["cache"] = made

        what = "have a proxy of BranchLab’s own" if own else "use the proxy that runs there"
        return self._edit(name, f"{what} on {name}", edit)

    def role(self, name: str, role: Role) -> bool:
        """Another role; what only a proxy has goes, and what a proxy needs comes."""

        def edit(document: Any) -> None:
            table = document["hosts"][name]
            was = table.get("role")
            table["role"] = role.value
            if was == Role.PROXY:
                for key in (*_OF_A_PROXY, "services"):
                    table.pop(key, None)
            if was == Role.ROUTER and document.get("line") == Role.ROUTER:
                document.pop("line")
            if role is Role.PROXY:
                for key, value in new_lab.added(role, name).items():
                    if key not in table:
                        table[key] = value

        return self._document.change(f"make {name} the {role.value}", edit)

    def rename(self, name: str, new: str) -> bool:
        """Another name, also where an experiment names it among its clients; nothing else of the profile does."""
        return self._document.rewrite(
            f"rename {name} to {new}",
            lambda text: profile_tables.taking_part(profile_tables.renamed(text, name, new), name, new),
        )

    # whole hosts

    def add(self, role: Role) -> str:
        """One more host of this role; its name, empty where it could not be added."""
        known = self.lab or LabWritten()
        name = self._free(role.value)
        block = profile_tables.host_table(name, new_lab.added(role, name))
        after = known.having(role)[-1].name if known.having(role) else ""
        return self._added(f"add the {role.value} {name}", name, block, after)

    def duplicate(self, host: HostWritten) -> str:
        """A client like this one, without what is each host's own; its name, empty where it could not be added."""
        numbered = re.fullmatch(r"(.+)-(\d+)", host.name)
        stem, number = (numbered[1], int(numbered[2]) + 1) if numbered else (host.name, 2)
        name = self._free(stem, number)
        own = ("address", "address6", "host_key")
        block = profile_tables.host_table(name, {k: v for k, v in host.values.items() if k not in own})
        return self._added(f"duplicate {host.name}", name, block, host.name)

    def remove(self, name: str) -> bool:
        """Take a host out; with a proxy the states that need it, with a router that the line is held there."""
        host = self.lab.host(name) if self.lab is not None else None
        role = host.role if host is not None else None

        def edit(text: str) -> str:
            text = profile_tables.taking_part(profile_tables.without(text, name), name)
            if role not in (Role.PROXY, Role.ROUTER):
                return text
            document = tomlkit.parse(text)
            if role is Role.PROXY:
                _without_states(document)
            elif document.get("line") == Role.ROUTER:
                document.pop("line")
            return tomlkit.dumps(document)

        return self._document.rewrite(f"remove {name}", edit)

    def place_line(self, place: str) -> bool:
        """Where the line is held; empty: as usual."""
        if place:
            return self._document.put("change where the line is held", ("line",), place)
        return self._document.change(
            "hold the line where it is usual", lambda document: document.pop("line", None)
        )

    # inside

    def _added(self, what: str, name: str, block: str, after: str) -> str:
        could = self._document.rewrite(what, lambda text: profile_tables.with_host(text, block, after))
        return name if could else ""

    def _free(self, stem: str, number: int = 1) -> str:
        """`stem`, or with the first number from this one on that is free."""
        taken = [host.name for host in (self.lab or LabWritten()).hosts]
        made = f"{stem}-{number}" if number > 1 else stem
        while made in taken:
            number += 1
            made = f"{stem}-{number}"
        return made

    def _edit(self, name: str, what: str, edit: Callable[[Any], object]) -> bool:
        return self._document.change(what, lambda document: edit(document["hosts"][name]))


def _put(table: Any, key: str, value: Any) -> None:
    outer, _, inner = key.partition(".")
    if not inner:
        table[outer] = value
        return
    if outer not in table:
        table[outer] = tomlkit.inline_table()
    table[outer][inner] = value


def _drop(table: Any, key: str) -> None:
    outer, _, inner = key.partition(".")
    if inner:
        table.get(outer, {}).pop(inner, None)
    else:
        table.pop(outer, None)


def _without_states(document: Any) -> None:
    """No experiment has a state with the proxy any more; one that had no other is without the proxy."""
    for table in document.get("experiments", []):
        states = table.get("states")
        if not isinstance(states, list):
            continue
        for place in reversed([n for n, state in enumerate(states) if not written.is_disabled(state)]):
            del states[place]
        if not states:
            states.append("disabled")
