"""svn on the client, asked by the lab itself: what it tells of a repository as XML, and what it may change there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote
from xml.etree import ElementTree

from lab import places
from lab.errors import HostTrouble, LabError
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

    def seen(self, target: str, stop: Stop) -> Seen | None:
        """What is at a URL or in a working copy; None if nothing is there."""
        status, out, told = self._run(["info", "--xml", places.exact(target)], stop)
        entry = _tree(out).find("entry") if status == 0 else None
        if entry is None:
            if status and not any(code in told for code in NOT_THERE):
                raise self._trouble(["info", target], told)
            return None
        return Seen(
            url=_url(entry, "url"),
            root=_url(entry, "repository/root"),
            uuid=entry.findtext("repository/uuid", ""),
            revision=int(entry.get("revision", "0")),
            folder=entry.get("kind") == "dir",
        )

    def property(self, name: str, url: str, stop: Stop) -> str | None:
        """A folder's own property; None if it has none of this name."""
        out = self.done(["proplist", "--verbose", "--xml", places.exact(url)], stop)
        for one in _tree(out).iterfind("target/property"):
            if one.get("name") == name:
                return one.text or ""
        return None

    def names(self, url: str, stop: Stop) -> list[str]:
        """What a folder holds."""
        return [
            name.text or ""
            for name in _tree(self.done(["list", "--xml", places.exact(url)], stop)).iter("name")
        ]

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


def _url(entry: ElementTree.Element, key: str) -> str:
    # svn writes an @ as it is, and reads it as the begin of a revision.
    return entry.findtext(key, "").replace("@", "%40")


def _tree(text: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - written by svn itself, which escapes what others named
    except ElementTree.ParseError as error:
        raise HostTrouble(f"svn's answer is no XML: {error}: {text[:200]!r}") from error
