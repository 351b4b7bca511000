"""Where the operations happen: repository and services on their hosts, working copies on the client."""

from __future__ import annotations

import logging
import re
import secrets
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from lab import design, places, recipes, vcs
from lab.credentials import Passwords
from lab.errors import BadInput, HostTrouble, LabError, TrialFailed
from lab.events import DataMeasured, Event, Noted, ToolMeasured
from lab.model import CHANGING, Experiment, Role, Trial
from lab.rig import entry, scratch, services
from lab.rig.hosts import Connected, in_role, only, taking_part
from lab.rig.line import listening
from lab.rig.logs import LogCount, Logs
from lab.rig.peers import Seen
from lab.stop import Stop
from lab.vcs import Command, Driver, Phase

log = logging.getLogger(__name__)

STARTS = 5
"""So many starts of the VCS's tool are timed."""
STEP_S = 600.0
"""No untimed step takes longer than this."""

T = TypeVar("T")


@dataclass(slots=True)
class Desk:
    """One client's part: where its working copies are, and what takes back what the last operation did there."""

    client: Connected
    holes: dict[str, vcs.Value] = field(default_factory=dict)
    cleanup: list[Command] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Job:
    """The command that is to be timed on a client."""

    client: Connected
    command: Command


def origin(url: str, root: str = "") -> str:
    """The root of what is kept of a repository at `url`; of one that BranchLab makes, its path's first part."""
    parts = urlsplit(root or url)
    path = parts.path.strip("/")
    path = path if root else path.split("/")[0]
    return f"{parts.scheme}://{parts.hostname}:{places.port(url)}/{path}{'/' if path else ''}"


def _full(said: str) -> str:
    """What to do where a program says that a disk, or the share of it that a user may have, is full."""
    if not re.search(r"(?i)no space left on device|disk quota exceeded|not enough space on the disk", said):
        return ""
    return (
        "Make room on that host where scratch folders are made (TMPDIR or /tmp there), or let TMPDIR name a larger"
        " disk; branchlab check tells how much is free."
    )


class Workplace:
    """Makes what the experiment's operations need, prepares each trial, and clears everything away.

    Several clients do each operation with working copies of their own; where it changes the repository, also in a
    copy (Check-Out) or on a branch (Check-In) of their own, so that no lock and no commit is in another's way. Caches
    are filled by the first client.

    `seen` is how hosts see each other: as such the services of our own let them in.
    """

    def __init__(
        self,
        hosts: Sequence[Connected],
        experiment: Experiment,
        driver: Driver,
        passwords: Passwords | None = None,
        seen: Sequence[Seen] = (),
        *,
        keep_cache: bool = False,
    ) -> None:
        self._hosts = hosts
        self._keep_cache = keep_cache
        self._seen = seen
        self.desks = tuple(Desk(one) for one in taking_part(hosts, experiment))
        self.client = self.desks[0].client
        """the first of those that take part: it looks at a repository, and fills the cache"""
        self.driver = driver.entering(experiment.user, experiment.ca)
        self._server = only(hosts, Role.SERVER)
        self._proxies = in_role(hosts, Role.PROXY)
        self._experiment = experiment
        self._url = scratch.filled(experiment.repository, self._server.host)
        self._entry = entry.of(experiment, self._url, self._server.name, passwords)
        self._recipe = recipes.recipe(experiment.data) if experiment.data else None
        self._logs: dict[str, tuple[int, LogCount]] = {}
        self._services: list[tuple[Connected, dict[str, Any]]] = []
        self._folders: list[tuple[Connected, str]] = []
        self._holes: dict[str, vcs.Value] = {}
        self._branches = 0
        self._token = secrets.token_hex(4)
        self._own: scratch.Own | None = None
        self._run_place: scratch.RunPlace | None = None
        self._passing: entry.Entry | None = None
        if self._proxies:
            at = self._proxy()  # what the profile lacks is said before anything is made
            if any(state.enabled for state in experiment.states):
                self._passing = entry.of_proxy(self._proxies[0].host, at, passwords)
        self.data_bytes = 0
        self.content_bytes = 0
        """of what Get fetches, each different content once; svn fetches no other"""

    @property
    def origin(self) -> str:
        """Where the repository's objects come from: `http://host:port/svn/`, its root as the cache names it."""
        return origin(self._url, self._own.root if self._own else "")

    @property
    def passing(self) -> str:
        """What is in the path of every object that goes with the run; empty where the whole repository goes."""
        return f"/run-{self._token}/" if self._own else ""

    @property
    def ports(self) -> list[int]:
        """The ports on which the VCS and the proxy are reached."""
        ports = [places.port(self._url)]
        return ports + ([self._proxy()[1]] if self._proxies else [])

    @property
    def own_ports(self) -> list[int]:
        """Of `ports` those at which BranchLab's own services listen: whoever is at another is somebody else."""
        ports = [urlsplit(self._url).port or 80] if self._recipe is not None else []
        return ports + [self._proxy()[1] for one in self._proxies[:1] if one.host.services and one.host.cache]

    # Before the trials

    def look(self, stop: Stop) -> None:
        """Look at a repository as it is, from the client; from then on `origin` is its root. Changes nothing.

        Raises what `scratch.refuse_unmarked` raises; does nothing where BranchLab makes the repository itself. A
        proxy that wants a password is asked whether it takes it.
        """
        if self._passing is not None:
            for desk in self.desks:
                entry.try_proxy(desk.client, self._passing, self._url, self._proxy(), stop)
        self._own = scratch.refuse_unmarked(self._hosts, self._experiment, self.driver, stop, self._entry)

    def set_up(self, stop: Stop) -> Iterator[Event]:
        """Repository, services, the tool's starting cost, the working copy that trials copy."""
        if self._own is None:
            self.look(stop)
        for desk in self.desks:
            self._furnish(desk, stop)
        self._holes = {
            "url": self._url,
            "seed": 0,
            "edit_files": self._experiment.change.files,
            "edit_pattern": "*",
            "edit_share": self._experiment.change.share,
            "locks": "",
            "branch_url": "",
        }
        if self._recipe is not None:
            yield self._data(stop)
        self._start_services(stop)
        yield from self._tool(stop)
        if self._own is not None:
            self._confine(self._own, stop)
        self._each(lambda desk: self._working_copy(desk, stop))
        if self._own is not None:
            yield self._survey(self._own, stop)
        elif len(self.desks) > 1 and "check-out" in self._experiment.operations:
            self._branch_each(stop)

    def _furnish(self, desk: Desk, stop: Stop) -> None:
        folder = self._made_folder(desk.client)
        desk.holes = {
            "config": f"{folder}/config",
            "work": f"{folder}/work",
            "pristine": f"{folder}/pristine",
            "lockable": f"{folder}/pristine",
        }
        if self._passing is not None:
            desk.holes["proxy_config"] = _linked(desk.client, f"{folder}/proxy", stop)

    def _holes_of(self, desk: Desk, **more: vcs.Value) -> dict[str, vcs.Value]:
        return {**self._holes, **desk.holes, **more}

    def _working_copy(self, desk: Desk, stop: Stop, **instead: vcs.Value) -> None:
        for command in self.driver.setup(self._holes_of(desk, **instead)):
            self._done(desk, command, stop)

    def _branch_each(self, stop: Stop) -> None:
        """Of a repository of BranchLab's own: a branch for each client whose files it alone locks."""
        if not self.driver.branches:
            raise BadInput(
                f"the driver {self.driver.name} has no list `branch`, so several clients would lock the same files",
                advice="Add it as resources/vcs/subversion.toml has it, or take check-out out of the operations.",
            )
        for number, desk in enumerate(self.desks, 1):
            url = f"{self._url.rsplit('/', 1)[0]}/branches/client-{number}"
            for command in self.driver.branch(self._holes_of(desk, branch_url=url)):
                self._done(desk, command, stop)
            self._lockable_of(desk, url, stop)

    def _lockable_of(self, desk: Desk, url: str, stop: Stop) -> None:
        """A working copy of what only this client locks."""
        desk.holes["lockable"] = str(desk.holes["pristine"]).removesuffix("pristine") + "lockable"
        self._working_copy(desk, stop, url=url, pristine=desk.holes["lockable"], revision="HEAD")

    def _each(self, deed: Callable[[Desk], T]) -> list[T]:
        """The same on all clients side by side. What went wrong on one is raised once all have ended."""
        if len(self.desks) == 1:
            return [deed(self.desks[0])]
        with ThreadPoolExecutor(max_workers=8) as pool:
            jobs = [pool.submit(deed, desk) for desk in self.desks]
        return [job.result() for job in jobs]

    def _confine(self, own: scratch.Own, stop: Stop) -> None:
        """This run's folder in the marked place; from now on the driver changes nothing beside it."""
        self._holes["revision"] = own.revision
        if own.place:
            told = self._server.told
            place = scratch.RunPlace(self.client, self.driver, own, self._token, self._entry, told)
            self._run_place = place  # before it is made: what is half made is removed too
            config = str(self.desks[0].holes["config"])
            place.make(f"{config.removesuffix('config')}place", stop)
        self.driver = self.driver.confined(self._run_place.url if self._run_place else "")

    def _survey(self, own: scratch.Own, stop: Stop) -> DataMeasured:
        """What there is to be locked and edited, in the working copy as it was checked out."""
        names: list[str] = []
        request = {"folder": self.desks[0].holes["pristine"]}
        with self.client.agent.stream("files.look", request) as looking:
            for event, data in looking.events(stop, STEP_S):
                if event == "names":
                    names += data["names"]
        found = looking.result or {}
        self.data_bytes = int(found["bytes"])
        with self.client.agent.stream(
            "files.look", {"folder": f"{request['folder']}/.svn/pristine"}
        ) as contents:
            for _ in contents.events(stop, STEP_S):
                pass
        self.content_bytes = int((contents.result or {})["bytes"])
        self._holes["edit_files"] = self._wanted(found["texts"], ("undo", "check-in", "diff"), "file of text")
        if "check-out" in self._experiment.operations:
            self._lockable(own, names, stop)
        told = {key: found[key] for key in ("files", "folders", "bytes", "texts")}
        facts = asdict(own)
        del facts["host"]  # which the lab names
        return DataMeasured(facts={"repository": facts.pop("url"), **facts, **told})

    def _lockable(self, own: scratch.Own, names: list[str], stop: Stop) -> None:
        """A working copy of a copy of this run's, and the files of it that Check-Out locks, chosen by the seed.

        Every client has a copy of its own, and locks the same files of it.
        """
        place = self._run_place
        if place is None:
            raise AssertionError("an experiment with Check-Out was accepted without a scratch place")
        count = self._wanted(len(names), ("check-out",), "file")
        chosen = design.chosen(names, count, self._experiment.seed)
        place.try_lock(chosen, stop)
        place.tell_locks(count, len(self.desks))
        self._holes["locks"] = "".join(f"{places.exact(name)}\n" for name in chosen)
        for number, desk in enumerate(self.desks, 1):
            self._lockable_of(desk, place.work if number == 1 else place.copied(number, stop), stop)

    def _wanted(self, there: int, operations: tuple[str, ...], what: str) -> int:
        """As many files as the profile asks for (0: all), and never more than there are."""
        if not there and any(name in operations for name in self._experiment.operations):
            raise BadInput(
                f"{self._url} holds no {what}, and {self._experiment.name} needs one",
                advice=f"Take {', '.join(operations)} out of the operations.",
            )
        return min(self._experiment.change.files or there, there)

    def _data(self, stop: Stop) -> DataMeasured:
        recipe, seed = self._recipe, self._experiment.seed
        if recipe is None:
            raise AssertionError("only called with a recipe")
        if not self._server.host.services:
            raise BadInput(
                f'data = "{recipe.name}" makes a repository of our own, and {self._server.name} has no place for it',
                advice=f'Write services = "/a/folder" under [hosts.{self._server.name}], or leave data out.',
            )
        folder = self._made_folder(self._server)
        self._server.connection.put(b"".join(recipe.dump(seed)), f"{folder}/dump", timeout_s=STEP_S)
        self._holes |= {
            "dump": f"{folder}/dump",
            "repository": f"{folder}/repository",
            "revision": recipe.revision,
            "edit_pattern": recipe.edit_pattern,
            "edit_files": self._experiment.change.files or recipe.edit_files,
            "locks": "".join(f"{name}\n" for name in recipe.locks(seed)),
        }
        for command in self.driver.data(self._holes_of(self.desks[0])):
            self._done(self.desks[0], command, stop)
        table = recipe.table(seed)
        self.data_bytes = table.bytes
        return DataMeasured(facts={"recipe": recipe.name, "seed": seed, **asdict(table)})

    def _start_services(self, stop: Stop) -> None:
        repository = str(self._holes.get("repository", ""))
        for one, service in services.wanted(self._hosts, self._experiment, self._seen, repository):
            self._start(one, service, stop)

    def start_proxy(self, stop: Stop) -> None:
        """Start the proxy of BranchLab's own, where the profile gives it a place, and no server."""
        without = replace(self._experiment, data=None)
        for one, service in services.wanted(self._hosts, without, self._seen):
            self._start(one, service, stop)

    def _start(self, one: Connected, wanted: dict[str, Any], stop: Stop) -> None:
        if self._keep_cache and wanted["kind"] == "caching-proxy":
            wanted = {**wanted, "options": {**wanted["options"], "keep_cache": True}}
        one.privileged.ask("service.start", wanted, timeout_s=120, stop=stop)
        where = {"kind": wanted["kind"], "folder": wanted["folder"]}
        self._services.append((one, where))
        self._logs[one.name] = (0, LogCount())

    def _tool(self, stop: Stop) -> Iterator[Event]:
        """What starting it costs on the first client; that it starts on the others, and which it is there."""
        walls: list[float] = []
        version = ""
        for _ in range(STARTS):
            wall_s, version = self._started(self.client, stop)
            walls.append(wall_s)
        yield ToolMeasured(tool=self.driver.tool[0], version=version, start_s=statistics.median(walls))
        for desk in self.desks[1:]:
            _, other = self._started(desk.client, stop)
            if other != version:
                text = f"{desk.client.name} has {self.driver.tool[0]} {other}, and {self.client.name} has {version}"
                yield Noted(text=f"{text}: their times differ for that reason too", grade="warn")

    def _started(self, client: Connected, stop: Stop) -> tuple[float, str]:
        """Seconds of one start of the tool, and its version."""
        request = {"argv": list(self.driver.tool), "timeout_s": 60.0}
        word = client.agent.ask("command", request, timeout_s=90, stop=stop)
        if word["exit"] != 0:
            raise HostTrouble(
                f"{self.driver.tool[0]} does not start: {word['tail'].strip()}", host=client.name
            )
        return float(word["wall_s"]), str(word["tail"]).strip()

    # Each trial

    def prepare(self, trial: Trial, stop: Stop) -> tuple[Job, ...]:
        """Run the operation's untimed steps on every client; the commands that are to be timed, in their order."""
        operation = trial.treatment.operation
        through = self._proxy() if trial.treatment.state.enabled else None
        self._refuse_gone(operation, stop)
        branches = {desk.client.name: self._new_branch() for desk in self.desks}
        return tuple(
            self._each(
                lambda desk: Job(
                    desk.client,
                    self._prepared(desk, operation, branches[desk.client.name], trial.seed, through, stop),
                )
            )
        )

    def run_untimed(self, operation: str, stop: Stop, through: tuple[str, int] | None = None) -> None:
        """The whole operation once on the first client, through the proxy, untimed. Raises TrialFailed if it fails.

        With `through` another way to the proxy is taken.
        """
        desk = self.desks[0]
        try:
            self._refuse_gone(operation, stop)
            branch = self._new_branch()
            command = self._prepared(desk, operation, branch, 0, through or self._proxy(), stop)
            self._done(desk, command, stop)
        finally:
            self.clean_up(Stop())

    def run_noted(self, operation: str, stop: Stop) -> frozenset[str]:
        """As `run_untimed`; which URLs the proxy was asked for, as the client saw it: nobody else's are among them."""
        host, port = self._proxy()
        asked: set[str] = set()
        with self.client.agent.stream("relay", {"host": host, "port": port}) as relay:
            self.run_untimed(operation, stop, ("127.0.0.1", listening(relay, stop)))
            relay.cancel()
            for event, data in relay.events(stop, STEP_S):
                if event == "urls":
                    asked.update(data["urls"])
        return frozenset(asked)

    def clean_up(self, stop: Stop) -> None:
        """The steps that take back what the last operation did. Failures are logged: the next trial tells."""
        self._each(lambda desk: self._cleaned_up(desk, stop))

    def _cleaned_up(self, desk: Desk, stop: Stop) -> None:
        commands, desk.cleanup = desk.cleanup, []
        for command in commands:
            try:
                self._done(desk, command, stop)
            except LabError as error:
                log.warning("clean-up: %s", error)

    def _refuse_gone(self, operation: str, stop: Stop) -> None:
        if self._run_place is not None and operation in CHANGING:
            self._run_place.refuse_gone(stop)

    def _new_branch(self) -> str:
        """A URL that no earlier operation of this repository has had."""
        self._branches += 1
        branches = self._run_place.url if self._run_place else f"{self._url.rsplit('/', 1)[0]}/branches"
        return f"{branches}/trial-{self._branches}"

    def _prepared(
        self, desk: Desk, operation: str, branch: str, seed: int, through: tuple[str, int] | None, stop: Stop
    ) -> Command:
        # 31 bits are enough for an edit, and every agent's JSON can carry them.
        holes = self._holes_of(desk, seed=seed % (1 << 31), branch_url=branch)
        timed: Command | None = None
        for command in self.driver.commands(operation, holes, through):
            if command.phase is Phase.PREPARE:
                self._done(desk, command, stop)
            elif command.timed:
                timed = command
            else:
                desk.cleanup.append(command)
        if timed is None:
            raise AssertionError("a driver was accepted without a timed command")
        self._refuse_elsewhere(desk, timed, stop)
        _put_file(desk.client, timed)
        return timed

    def request(self, command: Command) -> dict[str, Any]:
        """The command's arguments for the agent; with the passwords that it needs, so never kept."""
        secrets: dict[str, Any] = {"stdin": self._entry.line()} if command.login else {}
        if command.proxy_login and self._passing is not None:
            secrets["secret"] = self._passing.settings()
        return {**command.args, **secrets}

    def refuse_unentered(self, job: Job, told: str) -> None:
        """Raise what a server that asked again for a user or a certificate means: no trial after this one could do
        better, and an account may be locked after a few wrong passwords."""
        command = job.command
        if command.proxy_login and self._passing is not None and entry.OF_A_PROXY in told:
            raise self._passing.refuse(entry.shortened(told), str(command))
        if command.login or self._entry.ca:
            trouble = self._entry.trouble(told, job.client.name, str(command))
            if trouble is not None:
                raise trouble

    def _refuse_elsewhere(self, desk: Desk, command: Command, stop: Stop) -> None:
        """What a working copy belongs to cannot be seen in a command: it is asked of the copy itself."""
        if self._own is None or not places.changing(command.argv):
            return
        config = desk.holes["config"]
        listed = command.file[0] if command.file else ""
        folders = {word for word in command.argv if word.startswith("/") and word not in (config, listed)}
        folders |= {str(command.args["cwd"])} if "cwd" in command.args else set()
        urls = [word for word in command.argv if "://" in word]
        if self._run_place is None or not (folders or urls):
            raise BadInput(
                "refused before it was run: it names neither a working copy nor a URL",
                tried=str(command),
                advice="A repository of your own is changed below its scratch place only: mend the driver.",
            )
        for folder in folders:
            self._run_place.refuse_elsewhere(folder, desk.client, stop)

    def logs(self, stop: Stop) -> Logs:
        """The access logs' counts up to now."""
        for one, where in self._services:
            offset, count = self._logs[one.name]
            word = one.privileged.ask("service.log", {**where, "since": offset}, stop=stop)
            self._logs[one.name] = (word["offset"], count.plus(word))
        by_role = {one.host.role: self._logs[one.name][1] for one, _ in self._services}
        return Logs(server=by_role.get(Role.SERVER), proxy=by_role.get(Role.PROXY))

    # After the trials

    def clear(self) -> None:
        """Stop the services and remove every folder made. Tries everything; says what failed in the log."""
        stop = Stop()
        self.clean_up(stop)
        if self._run_place is not None:
            self._run_place.remove(stop)
        for one, where in reversed(self._services):
            with suppress(LabError):  # the lease's end stops it too
                one.privileged.ask("service.stop", where, timeout_s=60, stop=stop)
        for one, path in self._folders:
            with suppress(LabError):
                one.agent.ask("files.remove", {"path": path}, timeout_s=STEP_S, stop=stop)

    def _made_folder(self, one: Connected) -> str:
        # With the host's name in it: two hosts of a lab may be one machine.
        path = str(one.agent.ask("files.scratch", {"name": f"run-{self._token}-{one.name}"[:64]})["path"])
        self._folders.append((one, path))
        return path

    def _done(self, desk: Desk, command: Command, stop: Stop) -> None:
        one = self._server if command.on == "server" else desk.client
        self._refuse_elsewhere(desk, command, stop)
        if command.verb != "command":
            one.agent.ask(command.verb, dict(command.args), timeout_s=STEP_S, stop=stop)
            return
        _put_file(desk.client, command)
        request = {**self.request(command), "timeout_s": STEP_S}
        word = one.agent.ask("command", request, timeout_s=STEP_S + 30, stop=stop)
        if not command.succeeded(word["exit"]):
            self.refuse_unentered(Job(desk.client, command), word["tail"])
            raise TrialFailed(
                f"an untimed step ended with exit status {word['exit']}: {word['tail'].strip()[-400:]}",
                host=one.name,
                tried=str(command),
                advice=_full(word["tail"]),
            )

    def _proxy(self) -> tuple[str, int]:
        return scratch.proxy_at(self._proxies[0].host)


def _linked(client: Connected, folder: str, stop: Stop) -> str:
    """A folder of configuration in which `servers` is the pipe that svn is started with: no secret is on a disk."""
    for argv in (["mkdir", folder], ["ln", "-s", "/dev/fd/3", f"{folder}/servers"]):
        word = client.agent.ask("command", {"argv": argv, "timeout_s": 60.0}, timeout_s=90, stop=stop)
        if word["exit"] != 0:
            raise HostTrouble(word["tail"].strip(), host=client.name, tried=" ".join(argv))
    return folder


def _put_file(client: Connected, command: Command) -> None:
    if command.file is not None:
        path, text = command.file
        client.connection.put(text.encode("utf-8"), path, timeout_s=STEP_S)
