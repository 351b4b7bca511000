"""Addresses of a repository's folders: which of them lies below which, whatever way it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from lab.errors import BadInput

READING = frozenset(
    (
        *(
            "blame",
            "cat",
            "checkout",
            "cleanup",
            "diff",
            "export",
            "info",
            "list",
            "log",
            "propget",
            "proplist",
        ),
        *("revert", "status", "switch", "update"),
    )
)
"""Subcommands of svn that change nothing in a repository. Whatever is not among them is taken to change it."""
PORTS = {"http": 80, "https": 443}

SPECIAL = "!svn"
"""A name that mod_dav_svn keeps for itself below each repository (its SVNSpecialURI)."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address that can be read in one way only: `host:port` (after `https://` if it is), and its path's names,
    decoded."""

    site: str
    path: tuple[str, ...]

    def within(self, place: Address) -> bool:
        """True for the place itself and everything below it."""
        return self.site == place.site and self.path[: len(place.path)] == place.path


def address(url: str) -> Address:
    """The address that a text is. Raises BadInput for whatever two programs might read differently."""
    told = without_user(url)
    if told != url:  # before anything else: no other message may repeat a password
        raise BadInput(f"`{shown(url)}` has a user or a password in it: take them out")
    try:
        parts = urlsplit(url)
        site = f"{parts.hostname}:{port(url)}"
    except ValueError:
        raise BadInput(f"`{shown(url)}`: its port is no number from 1 to 65535") from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise BadInput(f"`{shown(url)}` is no http address")
    if "?" in url or "#" in url:
        raise BadInput(f"`{shown(url)}`: an address of a repository has no ? and no #: write %3F and %23")
    if "@" in url:
        raise BadInput(f"`{url}`: svn takes what follows an @ for a revision: write %40")
    if not url.isascii() or any(sign <= " " or sign in '"<>\\^`{|}\x7f' for sign in url):
        raise BadInput(f"`{url}` has signs that no address has: write them as %20 and so on")
    names = parts.path.strip("/").split("/") if parts.path.strip("/") else []
    if parts.path.startswith("//") or "" in names:
        raise BadInput(f"`{url}` has two slashes in a row: take one out")
    if parts.scheme == "https":
        site = f"https://{site}"
    return Address(site, tuple(_name(name, url) for name in names))


def port(url: str) -> int:
    """The port of an address. Raises ValueError where it is no number from 1 to 65535."""
    parts = urlsplit(url)
    return parts.port or PORTS.get(parts.scheme, 80)


def without_user(text: str) -> str:
    """An address as it may be shown: whatever stands before an @ in its host is left out."""
    return re.sub(r"^((?:[A-Za-z][A-Za-z0-9+.-]*:)?//)[^/]*@", r"\1…@", text)


def shown(text: str) -> str:
    """An address as a message may repeat it: without a user, and without what may be a token behind a ? or #."""
    return re.sub(r"([?#]).*", r"\1…", without_user(text), flags=re.DOTALL)


def _name(text: str, url: str) -> str:
    try:
        name = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise BadInput(f"`{url}`: `{text}` is no UTF-8") from None
    if name in (".", "..") or not name.isprintable() or "/" in name or "\\" in name:
        raise BadInput(f"`{url}`: `{text}` is no plain name of a folder")
    if name.lower() == SPECIAL:
        raise BadInput(f"`{url}`: `{text}` is where a Subversion server keeps its own, and no folder")
    return name


def changing(argv: Sequence[str]) -> bool:
    """True if this command may change a repository."""
    return bool(argv) and not (argv[0] == "svn" and len(argv) > 1 and argv[1] in READING)


def exact(target: str) -> str:
    """A URL or path as svn takes it whole: with an @ at its end where it would take a part for a revision."""
    return f"{target}@" if "@" in unquote(target) else target


def refuse_change(argv: Sequence[str], stdin: str, place: str) -> None:
    """Raise BadInput if this command of svn might change a repository anywhere but below `place`.

    An empty place: nothing may be changed at all. What a working copy belongs to cannot be seen here.
    """
    told = " ".join(argv)
    if not changing(argv):
        return
    if argv[0] != "svn" or len(argv) < 2:
        raise _outside(told, "it cannot be known what another program than svn would change")
    if not place:
        raise _outside(told, "no scratch place is named")
    if "--targets" in argv and argv[argv.index("--targets") + 1 :][:1] != ["-"]:
        raise _outside(told, "a file with targets could name anything")
    if any(word.startswith(("--revprop", "--targets=")) for word in argv):
        raise _outside(told, "it may change more than can be seen here")
    if any(".." in word.split("/") for word in argv):
        raise _outside(told, "a path with .. in it could lead anywhere")
    if "--parents" in argv and any("://" in word for word in argv[2:]):
        raise _outside(told, "with --parents it would make a place anew that its owner took away")
    targets = [word for word in argv[2:] if "://" in word or word.startswith("^")]
    if argv[1] == "copy":
        # The sources are only read; svn's last word is where they go.
        targets = [argv[-1]]
    for target in targets:
        _refuse_target(target, place, told)
    for line in stdin.splitlines():
        if "://" in line or line.startswith(("^/", "/")) or ".." in line.split("/"):
            raise _outside(told, f"`{line}` is no name below its folder")


def refuse_outside(url: str, place: str) -> None:
    """Raise BadInput if `url` is not below `place` (the place itself is not)."""
    _refuse_target(url, place, url)


def _refuse_target(target: str, place: str, told: str) -> None:
    # An @ at the end says that there is no revision; without it svn takes even %40 for one.
    bare = target.removesuffix("@")
    if bare == target and "%40" in target.rstrip("/").rpartition("/")[2]:
        raise _outside(told, f"`{target}`: svn takes what follows %40 for a revision: end it with an @")
    try:
        found, wanted = address(bare), address(place)
    except BadInput as error:
        raise _outside(told, str(error)) from error
    if found == wanted or not found.within(wanted):
        raise _outside(told, f"`{target}` is not below {place}")


def _outside(told: str, why: str) -> BadInput:
    return BadInput(
        f"refused before it was run: {why}",
        tried=told,
        advice="A repository of your own is changed below its scratch place only: mend the driver.",
    )
