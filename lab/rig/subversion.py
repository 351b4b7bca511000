"""svn on the client, asked by the lab itself: what it tells of a repository as XML, and what it may change there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote
from xml.etree import ElementTree

from lab import places
from lab.errors import BadInput, HostTrouble, LabError
from lab.rig.entry import Entry, shortened
from lab.rig.hosts import Connected
from lab.stop import Stop
from lab.vcs import Driver

STEP_S = 600.0
"""No command takes longer than this."""
NOT_THERE = ("E200009", "E145000", "E160013")
"""svn's codes, which are the same in every language: nothing is there."""
NO_FOLDER = "/dev/null/branchlab"
"""As the tool's private folder: nothing is read there, and nothing can be written."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is at a URL, or what a working copy belongs to."""

    url: str
    root: str
    uuid: str
    revision: int
    """the newest of the repository when a URL was asked"""
    folder: bool

    @property
    def path(self) -> str:
        """From the repository's root, decoded: `/project/trunk`."""
        return unquote(self.url[len(self.root) :]) or "/"


class Svn:
    """svn on a client, by its ordinary agent, with the driver's own options; never asks for anything.

    Nothing of a repository is changed but below `place`. It is entered as `entry` says.
    """

    def __init__(self, client: Connected, driver: Driver, entry: Entry, place: str = "") -> None:
        self._client = client
        self._place = place
        self._entry = entry
        self._options = driver.entering(entry.user, entry.ca).options(NO_FOLDER)

    @property
    def host(self) -> str:
        """The client's name in the profile."""
        return self._client.name

    def seen(self, target: str, stop: Stop) -> Seen | None:
        """What is at a URL or in a working copy; None if nothing is there.

        Raises BadInput where the server sends on to another address.
        """
        status, out, told = self._run(["info", "--xml", places.exact(target)], stop)
        entry = _tree(out).find("entry") if status == 0 else None
        if entry is None:
            if status and not any(code in told for code in NOT_THERE):
                raise self._trouble(["info", target], told)
            return None
        seen = Seen(
            url=_url(entry, "url"),
            root=_url(entry, "repository/root"),
            uuid=entry.findtext("repository/uuid", ""),
            revision=int(entry.get("revision", "0")),
            folder=entry.get("kind") == "dir",
        )
        if "://" in target and not _at(target, seen):
            raise BadInput(
                f"{target} is sent on to {places.without_user(seen.url)}: what goes there would be neither limited nor"
                " counted, and would change what is kept there",
                host=self._client.name,
                tried=f"svn info {target}",
                advice="Write that address, if its host is the one that is to be measured.",
            )
        return seen

    def property(self, name: str, url: str, stop: Stop) -> str | None:
        """A folder's own property; None if it has none of this name."""
        out = self.done(["proplist", "--verbose", "--xml", places.exact(url)], stop)
        for one in _tree(out).iterfind("target/property"):
            if one.get("name") == name:
                return one.text or ""
        return None

    def dated(self, url: str, stop: Stop) -> dict[str, datetime]:
        """What a folder holds, and when each of it was changed last, by the server's clock."""
        entries = _tree(self.done(["list", "--xml", places.exact(url)], stop)).iter("entry")
        return {one.findtext("name", ""): _date(one.findtext("commit/date", "")) for one in entries}

    def revisions(self, url: str, since: str, stop: Stop) -> list[int]:
        """The revisions since `since` that changed something at or below a URL, oldest first."""
        words = ["log", "--quiet", "--xml", "--revision", f"{since}:HEAD", places.exact(url)]
        return [int(one.get("revision", "0")) for one in _tree(self.done(words, stop)).iter("logentry")]

    def locked(self, url: str, stop: Stop) -> list[str]:
        """URLs of everything below a folder that somebody holds a lock on."""
        found = _tree(self.done(["info", "--recursive", "--xml", places.exact(url)], stop))
        return [_url(one, "url") for one in found.iter("entry") if one.find("lock") is not None]

    def done(self, words: Sequence[str], stop: Stop) -> str:
        """Run `svn WORDS` and return what it said. Raises what keeps it from being done."""
        status, out, told = self._run(words, stop)
        if status != 0:
            raise self._trouble(words, told)
        return out

    def tried(self, words: Sequence[str], stop: Stop) -> str:
        """Run `svn WORDS`; what it complained of, empty if it was done."""
        status, _, told = self._run(words, stop)
        return told or "failed" if status != 0 else ""

    def _run(self, words: Sequence[str], stop: Stop) -> tuple[int | None, str, str]:
        said = {"stdout": "", "stderr": ""}
        argv = ["svn", words[0], *self._options, *words[1:]]
        places.refuse_change(argv, "", self._place)
        request = {"argv": argv, "env": {"LC_ALL": "C.UTF-8"}, "timeout_s": STEP_S}
        if self._entry.user:
            request["stdin"] = self._entry.line()
        with self._client.agent.stream("command", request) as command:
            for event, data in command.events(stop, STEP_S + 30):
                if event == "output":
                    said[data["stream"]] += data["text"]
        word = command.result or {}
        told = said["stderr"].strip() or (
            f"not finished within {STEP_S:g} s" if word.get("timed_out") else ""
        )
        return word.get("exit"), said["stdout"], told

    def _trouble(self, words: Sequence[str], told: str) -> LabError:
        tried = f"svn {' '.join(words)}"
        trouble = self._entry.trouble(told, self._client.name, tried)
        return trouble or HostTrouble(
            f"svn could not do this: {shortened(told) or 'it said nothing'}",
            host=self._client.name,
            tried=tried,
            advice="Try the same command there by hand.",
        )


def _date(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise HostTrouble(f"svn told no date: {text[:40]!r}") from error


def _at(url: str, seen: Seen) -> bool:
    """True if what was seen is at this very address, in a repository that holds it."""
    try:
        here, found, root = (places.address(one) for one in (url, seen.url, seen.root))
    except BadInput:
        return False
    return found == here and here.within(root)


def _url(entry: ElementTree.Element, key: str) -> str:
    # svn writes an @ as it is, and reads it as the begin of a revision.
    return entry.findtext(key, "").replace("@", "%40")


def _tree(text: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - written by svn itself, which escapes what others named
    except ElementTree.ParseError as error:
        raise HostTrouble(f"svn's answer is no XML: {error}: {text[:200]!r}") from error
