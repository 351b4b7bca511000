"""A repository that belongs to others: looked at, and changed below one marked place in it and nowhere else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote, unquote, urlsplit

from lab import places, settings
from lab.credentials import Passwords
from lab.errors import AgentRefused, BadInput, HostTrouble, LabError
from lab.events import HostChanged, Noted
from lab.model import CHANGING, Experiment, Host, Lab, Role
from lab.rig import entry
from lab.rig.entry import Entry
from lab.rig.hosts import Connected, connected, in_role, only, owner, taking_part
from lab.rig.subversion import Seen, Svn
from lab.stop import Stop
from lab.vcs import Driver

MARK = "branchlab:scratch"
"""The property of a place where BranchLab may change things: the repository's UUID and the place's own path in it.

A copy of the place carries the property along, and is told from it by its path.
"""
TRIED = 10
"""So many files are locked at once before the trials."""
PROXY_PORT = 8081
"""Where a proxy of our own listens when the profile's url names no port."""
RUN_MARK = "branchlab:run"
"""The property of a run's folder: which client made it, by a digest, and who, in words."""
LIVES_S = 24 * 3600.0
"""Another client's run may still go on if its folder was changed within this time, by the server's clock."""
_TRY = "try"
"""A folder that a run makes in its own, to be deleted at once."""
_RUN = re.compile(r"run-[0-9a-f]{8}")
_COMMITTED = re.compile(r"revision (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A repository as it is, as it was when the run began."""

    url: str
    root: str
    uuid: str
    revision: int
    """the newest one then: what Get, History and the rest name"""
    host: str
    """the server's name in the profile"""
    place: str
    """URL of the marked place; empty where the experiment changes nothing"""


def filled(text: str, server: Host) -> str:
    """A profile's URL with `{server}` replaced. Raises BadInput where the profile does not say how to reach it."""
    if "{server}" not in text:
        return text
    address = server.address or server.address6
    if not address:
        raise BadInput(
            f"the office hosts need to know how to reach {server.name}",
            advice=f'Write address = "…" under [hosts.{server.name}].',
        )
    return text.replace("{server}", f"[{address}]" if ":" in address else address)


def proxy_at(proxy: Host) -> tuple[str, int]:
    """Where clients reach a proxy: host and port. Raises BadInput where the profile does not say."""
    parts = urlsplit(proxy.url or "")
    name = parts.hostname or proxy.address or proxy.address6 or ""
    if not name:
        raise BadInput(
            f"the clients need to know how to reach {proxy.name}",
            advice=f'Write url = "http://…" under [hosts.{proxy.name}].',
        )
    return name, parts.port or PROXY_PORT


# What is looked at


def refuse_unmarked(
    hosts: Sequence[Connected],
    experiment: Experiment,
    driver: Driver,
    stop: Stop,
    entered: Entry | None = None,
) -> Own | None:
    """Look at the experiment's own repository from every client that takes part; None where BranchLab makes it itself.

    Changes nothing. Raises BadInput where it is not to be had as the experiment wants it: under another
    host's address, with a password that is unknown or before a proxy, or without a marked place for what changes it;
    and RepositoryPasswordRefused, so that a wrong one is offered once, and not in each trial.
    """
    if experiment.data is not None:
        return None
    _refuse_other_tool(driver)
    server, clients = only(hosts, Role.SERVER), taking_part(hosts, experiment)
    client = clients[0]
    url = filled(experiment.repository, server.host)
    if "{server}" not in experiment.repository:
        for one in (*in_role(hosts, Role.CLIENT), *in_role(hosts, Role.PROXY)):
            _refuse_other_host(one, server, url, stop)
    entered = entered or entry.of(experiment, url, server.name, None)
    for one in clients:
        entered.refuse_old((one.facts.get("tools") or {}).get("svn"), one.name)
        if any(state.enabled for state in experiment.states):
            _refuse_named_reads(Svn(one, driver, replace(entered, user="")), url, stop)
    svn = Svn(client, driver, entered)
    seen = _folder(svn, url, stop)
    for one in clients[1:]:
        _folder(Svn(one, driver, entered), url, stop)
    place = ""
    if experiment.scratch and any(name in CHANGING for name in experiment.operations):
        place = filled(experiment.scratch, server.host)
        _refuse_place(svn, seen, place, stop)
        if "check-out" in experiment.operations:
            _refuse_lockless(Svn(client, driver, entered, place.rpartition("/")[0]), place, stop)
        _refuse_living(svn, client, place, stop)
    return Own(
        url=url,
        root=seen.root,
        uuid=seen.uuid,
        revision=seen.revision,
        host=server.name,
        place=place,
    )


def _refuse_other_tool(driver: Driver) -> None:
    if driver.tool[:1] != ("svn",):
        raise BadInput(
            f"a repository of your own can be used with Subversion only so far, not with {driver.title}",
            advice='Write data = "quick": BranchLab then makes the repository itself.',
        )


def _refuse_other_host(one: Connected, server: Connected, url: str, stop: Stop) -> None:
    """Else neither the line nor the counters would touch what goes there."""
    name = urlsplit(url).hostname or ""
    found = one.agent.ask("probe.resolve", {"name": name}, stop=stop)["addresses"]
    others = [address for address in found if address not in server.addresses]
    if others or not found:
        raise BadInput(
            f"for {one.name}, {name} is {', '.join(others) or 'unknown'}, and the profile says that "
            f"{server.name} is {' and '.join(server.addresses) or 'without an address'}: what went to {name} "
            "would be neither limited nor counted",
            host=one.name,
            tried=f"looked up {name} as programs on {one.name} do",
            advice=f"Name {name}'s own host as [hosts.{server.name}], with all its addresses (address, address6), "
            "or write {server} in the repository's URL.",
        )


def _refuse_named_reads(nameless: Svn, url: str, stop: Stop) -> None:
    """Raise BadInput where reading needs a password: no proxy may keep what comes then."""
    try:
        nameless.seen(url, stop)
    except BadInput as error:
        error.advice = (
            'Write states = ["disabled"], or let the lab\'s hosts read without a password, by their addresses'
            " (Require ip): what was read with one no cache may store, so no proxy could be measured."
        )
        raise


def _folder(svn: Svn, url: str, stop: Stop) -> Seen:
    seen = svn.seen(url, stop)
    if seen is None or not seen.folder:
        what = "no folder of a repository" if seen is None else "a file"
        raise BadInput(
            f"there is {what} at {url}", advice="Write the URL of the folder that is to be measured."
        )
    return seen


def _refuse_place(svn: Svn, repository: Seen, place: str, stop: Stop) -> None:
    """Unless the place is one that BranchLab made and marked, in this repository."""
    seen = svn.seen(place, stop)
    if seen is None:
        raise BadInput(
            f"there is no scratch place at {place}, and nothing of a repository that is not BranchLab's own is "
            "changed anywhere else",
            advice="Make it (one revision): branchlab scratch PROFILE",
        )
    _refuse_wrong_place(seen, repository)
    if svn.property(MARK, place, stop) != _mark(seen):
        raise _unmarked(place)


def _refuse_lockless(svn: Svn, place: str, stop: Stop) -> None:
    """Raise HostTrouble where the server lets nobody lock, or not this user: asked for the place itself.

    Which is a folder, and no folder can be locked: who may is told so (W160017), who may not the same as of a file. So
    nothing is locked, and no revision made. A hook's word is not taken: of files it may have another.
    """
    told = svn.tried(["lock", places.exact(place)], stop)
    if any(code in told for code in _LOCKLESS):
        raise _lockless(f"svn could not do this: {entry.shortened(told)}", svn.host, f"svn lock {place}")


_LOCKLESS = ("E200007", "160039", "E175013")
"""Of svn's words: not supported (nobody has a name), not authorized, forbidden (svn_error_codes.h)."""


def _lockless(text: str, host: str, tried: str) -> HostTrouble:
    return HostTrouble(
        f"the server locks no file in the scratch place, so there can be no Check-Out: {text}",
        host=host,
        tried=tried,
        advice="A Subversion server only locks for users who have a name, and may (LOCK). Give the run one (user = in"
        " the experiment), or take check-out out of the operations.",
    )


def _refuse_wrong_place(place: Seen, repository: Seen) -> None:
    if place.uuid != repository.uuid or place.root != repository.root:
        raise BadInput(
            f"{place.url} is in another repository ({place.root}) than what is measured ({repository.root})",
            advice="Write scratch as a place in the same repository.",
        )
    here, there = places.address(place.url), places.address(repository.url)
    if place.url == place.root or here.within(there) or there.within(here):
        raise BadInput(
            f"{place.url} is the whole repository, or holds what is measured, or lies within it",
            advice="Write scratch as a place of its own, beside what is measured.",
        )


def _unmarked(place: str) -> BadInput:
    return BadInput(
        f"{place} is there, and is no place that BranchLab made and marked: nothing in it is touched",
        advice='Write another scratch = "…", where nothing is yet, and make it: branchlab scratch PROFILE. '
        "(A place that was moved or copied is no longer marked.)",
    )


def _mark(place: Seen) -> str:
    return f"{place.uuid} {place.path}"


# The place


def make(lab: Lab, experiment: Experiment, driver: Driver, passwords: Passwords | None = None) -> str:
    """Make and mark the experiment's scratch place by one revision; what was done, for people. Idempotent.

    Raises BadInput where something else is at that URL.
    """
    with _at_client(lab, experiment, driver, passwords) as (client, place, repository, entered):
        svn = Svn(client, driver, entered, place)
        stop = Stop()
        seen = svn.seen(place, stop)
        if seen is not None:
            _refuse_wrong_place(seen, repository)
            if svn.property(MARK, place, stop) != _mark(seen):
                raise _unmarked(place)
            return f"{place} is there already, made and marked by BranchLab; nothing was changed"
        above = _nearest(svn, place, repository, stop)
        folder = str(client.agent.ask("files.scratch", {"name": "scratch-place"})["path"])
        try:
            revision = _committed(svn, above, place, f"{folder}/copy", stop)
        finally:
            client.agent.ask("files.remove", {"path": folder})
        made = _folder(svn, place, stop)
        _refuse_wrong_place(made, repository)
        return f"{place} was made and marked, by revision {revision}"


def remove(lab: Lab, experiment: Experiment, driver: Driver, passwords: Passwords | None = None) -> str:
    """Delete the marked place by one revision, locks in it first; what was done, for people. Idempotent."""
    with _at_client(lab, experiment, driver, passwords) as (client, place, repository, entered):
        stop = Stop()
        svn = Svn(client, driver, entered, place.rpartition("/")[0])
        if svn.seen(place, stop) is None:
            return f"there is nothing at {place}"
        _refuse_place(svn, repository, place, stop)
        revision = _deleted(svn, place, "BranchLab: the scratch place is no longer needed", stop)
        return f"{place} was deleted, by revision {revision}"


def revert(
    lab: Lab,
    experiment: Experiment,
    driver: Driver,
    passwords: Passwords | None = None,
    *,
    force: bool = False,
) -> list[str]:
    """Delete what runs that were cut off left in the experiment's place; what that was. Idempotent.

    Refused (AgentRefused, `busy`) while a run goes on, or, without `force`, where one of another client may; nothing
    is done where the place is not marked.
    """
    with _at_client(lab, experiment, driver, passwords) as (client, place, repository, entered):
        stop = Stop()
        svn = Svn(client, driver, entered, place)
        seen = svn.seen(place, stop)
        if seen is None or svn.property(MARK, place, stop) != _mark(seen):
            return []
        _refuse_wrong_place(seen, repository)
        if not force:
            _refuse_living(svn, client, place, stop)
        return list(_cleared(svn, client, place, stop, force=force))


def left(lab: Lab, experiment: Experiment, driver: Driver, passwords: Passwords | None = None) -> list[str]:
    """The folders of runs in the experiment's place, by URL; changes nothing there."""
    with _at_client(lab, experiment, driver, passwords) as (client, place, _, entered):
        svn = Svn(client, driver, entered)
        if svn.seen(place, Stop()) is None:
            return []
        return [one.url for one in _run_folders(svn, client, place, Stop())]


@contextmanager
def _at_client(
    lab: Lab, experiment: Experiment, driver: Driver, passwords: Passwords | None
) -> Iterator[tuple[Connected, str, Seen, Entry]]:
    """The client alone, held; the place's URL, what is measured, and how it is entered."""
    _refuse_other_tool(driver)
    if experiment.data is not None or experiment.scratch is None:
        raise BadInput(
            f"{experiment.name} names no scratch place",
            advice='Write scratch = "http://…/project/branchlab-scratch" in it, and no data.',
        )
    server, host = lab.one(Role.SERVER), lab.taking_part(experiment)[0]
    url, place = filled(experiment.repository, server), filled(experiment.scratch, server)
    if places.address(place).within(places.address(url)) or places.address(url).within(places.address(place)):
        raise BadInput(
            f"{place} holds what is measured, or lies within it", advice="Write a place beside it."
        )
    # Nothing of this needs root, so no password for it is asked either.
    alone = Lab(name=lab.name, hosts=(replace(host, root="none"),))
    held = owner(purpose="scratch place")
    entered = entry.of(experiment, url, server.name, passwords)
    with connected(alone, Stop(), lease_s=settings.lease_s(), owned_by=held, passwords=passwords) as (
        client,
    ):
        entered.refuse_old((client.facts.get("tools") or {}).get("svn"), client.name)
        yield client, place, _folder(Svn(client, driver, entered), url, Stop()), entered


def signed_in(lab: Lab, experiment: Experiment, driver: Driver, passwords: Passwords) -> None:
    """Enter the experiment's repository once, from the client, so that `passwords` knows what it wants; and its proxy.

    Does nothing where no user is named and no https spoken. Changes nothing. Raises RepositoryPasswordRefused for a
    wrong password, and BadInput for one that is not known or a certificate that is not trusted.
    """
    server, host = lab.one(Role.SERVER), lab.taking_part(experiment)[0]
    own = experiment.data is None and (experiment.user or experiment.repository.startswith("https:"))
    proxy = next(iter(lab.having(Role.PROXY)), None)
    asks = proxy is not None and proxy.user and any(state.enabled for state in experiment.states)
    if not (own or asks):
        return
    url = filled(experiment.repository, server)
    alone = Lab(name=lab.name, hosts=(replace(host, root="none"),))
    with connected(alone, Stop(), lease_s=None, passwords=passwords) as (client,):
        if proxy is not None and asks:
            at = proxy_at(proxy)
            passing = entry.of_proxy(proxy, at, passwords)
            if passing is not None:
                entry.try_proxy(client, passing, url, at, Stop())
        if own:
            _refuse_other_tool(driver)
            entered = entry.of(experiment, url, server.name, passwords)
            entered.refuse_old((client.facts.get("tools") or {}).get("svn"), client.name)
            Svn(client, driver, entered).seen(url, Stop())
            passwords.right(entered.target, entered.kind)


def _nearest(svn: Svn, place: str, repository: Seen, stop: Stop) -> str:
    """The nearest folder above the place that is there."""
    above = place
    while len(above := above.rpartition("/")[0]) >= len(repository.root):
        seen = svn.seen(above, stop)
        if seen is not None and seen.folder and seen.root == repository.root:
            return above
    raise BadInput(
        f"{place} is not in the repository {repository.root}",
        advice="Write scratch as a place in the same repository.",
    )


def _committed(svn: Svn, above: str, place: str, copy: str, stop: Stop) -> str:
    """Folders and mark in one commit, from an empty working copy of what is above; the revision."""
    svn.done(["checkout", "--quiet", "--depth", "empty", places.exact(above), copy], stop)
    here = svn.seen(copy, stop)
    if here is None:
        raise HostTrouble(f"{copy} is no working copy although svn made it")
    names = unquote(place[len(above) + 1 :])
    path = f"{here.path.rstrip('/')}/{names}"
    folder = places.exact(f"{copy}/{names}")
    svn.done(["mkdir", "--quiet", "--parents", folder], stop)
    svn.done(["propset", "--quiet", MARK, f"{here.uuid} {path}", folder], stop)
    return _revision(
        svn.done(
            ["commit", "--message", "BranchLab: a place for trials, which change nothing else", copy], stop
        )
    )


def _revision(said: str) -> str:
    found = _COMMITTED.search(said)
    return found[1] if found else "(svn did not say which)"


def _deleted(svn: Svn, url: str, message: str, stop: Stop) -> str:
    """One revision; where locks are in the way they are released first."""
    words = ["delete", "--message", message, places.exact(url)]
    try:
        return _revision(svn.done(words, stop))
    except HostTrouble:
        locked = [places.exact(one) for one in svn.locked(url, stop)]
        if not locked:
            raise
        for begin in range(0, len(locked), 100):
            svn.done(["unlock", "--force", *locked[begin : begin + 100]], stop)
        return _revision(svn.done(words, stop))


@dataclass(frozen=True, slots=True)
class _RunFolder:
    """A run's folder in a marked place, as it is found there."""

    url: str
    who: str
    changed: datetime
    now: datetime
    """both by the server's clock, if it tells the time"""
    ours: bool
    """made from this very client, whose lease is ours now: whoever made it is gone"""

    @property
    def living(self) -> bool:
        """True if the run may still go on."""
        return not self.ours and (self.now - self.changed).total_seconds() < LIVES_S


def _run_folders(svn: Svn, client: Connected, place: str, stop: Stop) -> list[_RunFolder]:
    """Every folder there that a run made. What is not marked as one is somebody else's, whatever its name."""
    found = []
    now = _servers_now(client, place, stop)
    for name, changed in svn.dated(place, stop).items():
        mark = svn.property(RUN_MARK, f"{place}/{name}", stop) if _RUN.fullmatch(name) else None
        if mark is not None:
            made_by, _, who = mark.partition(" ")
            ours = made_by == _identity(client)
            found.append(_RunFolder(f"{place}/{name}", who, changed, now, ours))
    return found


def _servers_now(client: Connected, place: str, stop: Stop) -> datetime:
    """The time as the server's answers have it (RFC 9110, 6.6.1); over https this machine's."""
    if urlsplit(place).scheme == "http":
        with suppress(AgentRefused, ValueError):
            told = client.agent.ask("http.look", {"url": place, "method": "OPTIONS"}, stop=stop)
            return parsedate_to_datetime(told["headers"].get("date", "")).astimezone(UTC)
    return datetime.now(UTC)


def _identity(client: Connected) -> str:
    """The same for each run from this client as this user, whoever steers it; tells nothing to who reads it."""
    facts = (
        client.facts.get("host_id"),
        client.facts.get("hostname"),
        client.facts.get("user"),
        client.host.ssh,
        *client.addresses,
    )
    return hashlib.sha256("\n".join(str(one) for one in facts).encode()).hexdigest()[:16]


def _refuse_living(svn: Svn, client: Connected, place: str, stop: Stop) -> None:
    """Raise AgentRefused, `busy`, while another client's run may go on in this place."""
    for one in _run_folders(svn, client, place, stop):
        if one.living:
            raise AgentRefused(
                f"a run of {one.who} may still go on in {place}: its folder was changed last at "
                f"{one.changed:%Y-%m-%d %H:%M} UTC",
                kind="busy",
                host=client.name,
                tried=f"svn propget {RUN_MARK} {one.url}: another client made it",
                advice="Wait for its end, or write a scratch place of your own. If that run is gone: branchlab revert "
                f"with its own profile, or with this one and --force. After {LIVES_S / 3600:g} hours without a "
                "change the next run deletes it.",
            )


def _cleared(svn: Svn, client: Connected, place: str, stop: Stop, *, force: bool = False) -> Iterator[str]:
    """Delete what runs that were cut off left in a marked place; what that was."""
    for one in _run_folders(svn, client, place, stop):
        if force or not one.living:
            revision = _deleted(svn, one.url, "BranchLab: left by a run that was cut off", stop)
            yield f"{one.url} was deleted with the locks in it, by revision {revision}"


class RunPlace:
    """One run's folder in the marked place: made, filled and at its end deleted, each by a revision.

    What was done is told to `told`, the account of the server's host.
    """

    def __init__(
        self,
        client: Connected,
        driver: Driver,
        own: Own,
        token: str,
        entered: Entry,
        told: list[HostChanged | Noted],
    ) -> None:
        self.url = f"{own.place}/run-{token}"
        self.work = f"{self.url}/work"
        self._own = own
        self._entered = entered
        self._client = client
        self._driver = driver
        self._told = told
        self._since = ""
        """the revision that made the folder; empty before"""
        # The leftovers of other runs lie beside this one's folder.
        self._svn = Svn(client, driver, entered, own.place)

    def make(self, folder: str, stop: Stop) -> None:
        """Delete what runs that were cut off left here; copy the repository on its server, which costs nothing.

        `folder` is a path on the client where nothing is yet. Raises HostTrouble where the place is gone or nothing
        can be deleted in it.
        """
        for text in _cleared(self._svn, self._client, self._own.place, stop):
            self._tell(text, undone=True)
        self._since = self._begun(folder, stop)
        self._tell(f"{self.url} made in the repository, by revision {self._since}")
        self._try_delete(stop)
        self._copy(self.work, "", stop)

    def _begun(self, folder: str, stop: Stop) -> str:
        """The folder with its mark, by one commit from an empty working copy of the place; the revision."""
        svn, name = self._svn, self.url.rpartition("/")[2]
        by = owner()
        svn.done(["checkout", "--quiet", "--depth", "empty", places.exact(self._own.place), folder], stop)
        # Never --parents: where the place was taken away, it must not come back.
        svn.done(["mkdir", "--quiet", f"{folder}/{name}", f"{folder}/{name}/{_TRY}"], stop)
        mark = f"{_identity(self._client)} {by['user'] or 'somebody'} on {by['controller']}"
        svn.done(["propset", "--quiet", RUN_MARK, mark, f"{folder}/{name}"], stop)
        return _revision(svn.done(["commit", "--message", f"BranchLab: begin of {name}", folder], stop))

    def _try_delete(self, stop: Stop) -> None:
        try:
            _deleted(self._svn, f"{self.url}/{_TRY}", "BranchLab: tried whether things can be deleted", stop)
        except HostTrouble as error:
            raise HostTrouble(
                f"the server lets nothing be deleted in the scratch place, so what a run makes would stay: {error}",
                host=error.host,
                tried=error.tried,
                advice="Allow DELETE below the scratch place, or take check-out and check-in out of the operations.",
            ) from error

    def refuse_gone(self, stop: Stop) -> None:
        """Raise HostTrouble where the folder is no longer there: whoever owns the repository took it away."""
        if self._svn.seen(self.url, stop) is None:
            raise HostTrouble(
                f"{self.url} is gone: somebody deleted it, or the place above it, while the run went on",
                host=self._client.name,
                tried=f"svn info {self.url}",
                advice="Ask whoever owns the repository. To make the place again: branchlab scratch PROFILE",
            )

    def copied(self, number: int, stop: Stop) -> str:
        """One more copy of the repository, for the client of this number: its URL. One revision."""
        url = f"{self.work}-{number}"
        self._copy(url, f", client {number}", stop)
        return url

    def _copy(self, url: str, whose: str, stop: Stop) -> None:
        source = f"{self._own.url}@{self._own.revision}"
        message = f"BranchLab: copy for the trials of run {self.url.rpartition('-')[2]}{whose}"
        self._svn.done(["copy", "--message", message, source, url], stop)

    def tell_locks(self, count: int, clients: int = 1) -> None:
        """Say in the account that so many files are locked by each Check-Out, of each client in its own copy."""
        where = self.work if clients == 1 else f"each of the {clients} copies below {self.url}"
        self._tell(f"{count} files in {where} are locked by each Check-Out, and released after it")

    def _tell(self, what: str, *, undone: bool = False) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        host = self._own.host
        self._told.append(HostChanged(host=host, at=at, what=what, undone=undone))

    def try_lock(self, names: Sequence[str], stop: Stop) -> None:
        """Lock a few files of the copy and release them. Raises what keeps the server from it, before any trial."""
        urls = [places.exact(f"{self.work}/{quote(name)}") for name in names[:TRIED]]
        self._try_one(urls[0], stop)
        if self._entered.user and len(urls) > 1:
            told = self._svn.tried(["lock", *urls], stop)
            for url in urls:
                self._svn.tried(["unlock", "--force", url], stop)
            if any(code in told for code in entry.PASSWORD):
                raise BadInput(
                    "svn locks one file here, but not several at once: the server asks for a password on writes only,"
                    f" and svn answers the first such question alone: {entry.shortened(told)}",
                    tried=f"svn lock of {len(urls)} files",
                    advice="Let the server ask on reads too (then states with the proxy cannot be measured), or take"
                    " check-out out of the operations.",
                )

    def _try_one(self, url: str, stop: Stop) -> None:
        try:
            self._svn.done(["lock", url], stop)
        except HostTrouble as error:
            raise _lockless(str(error), error.host, error.tried) from error
        self._svn.done(["unlock", url], stop)

    def refuse_elsewhere(self, folder: str, client: Connected, stop: Stop) -> None:
        """Raise BadInput unless this working copy on a client belongs below this run's folder."""
        seen = Svn(client, self._driver, self._entered, self._own.place).seen(folder, stop)
        places.refuse_outside(seen.url if seen else folder, self.url)
        if seen is not None and seen.uuid != self._own.uuid:
            raise BadInput(f"{folder} belongs to another repository, {seen.root}")

    def remove(self, stop: Stop) -> None:
        """Delete it, with whatever locks are left in it. What fails is told as trouble: the next run tries again."""
        try:
            if self._svn.seen(self.url, stop) is None:
                if self._since:
                    self._tell(f"{self.url} was gone already", undone=True)
                return
            self._tell_revisions(stop)
            revision = _deleted(self._svn, self.url, "BranchLab: the run is over", stop)
            self._tell(f"{self.url} deleted with the locks in it, by revision {revision}", undone=True)
        except LabError as error:
            text = f"{self.url} stays there until the next run or `branchlab revert`: {error}"
            self._told.append(Noted(text=text, grade="trouble"))

    def _tell_revisions(self, stop: Stop) -> None:
        if not self._since.isdigit():
            return
        try:
            added = self._svn.revisions(self.url, self._since, stop)
        except LabError as error:  # which is no reason to leave the folder there
            self._tell(f"revisions added below {self.url}; how many is not known: {error}")
            return
        if added:
            self._tell(f"{len(added)} revisions added below {self.url}, from {added[0]} to {added[-1]}")
