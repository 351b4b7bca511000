"""What a person does to a lab by hand: its cache filled or purged, a line held. As a run does it, and no other way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lab import asking, design, machines, settings, units, vcs
from lab.asking import Question
from lab.credentials import Passwords
from lab.errors import AgentRefused, BadInput, HostTrouble
from lab.events import HostChanged, Noted
from lab.model import AS_IT_IS, CHANGING, Cache, Experiment, Host, Lab, Line, ProxyState, Role, TrafficClass
from lab.rig import checking, looking, peers, planning
from lab.rig.consent import Consent
from lab.rig.fullness import Fullness, Ours
from lab.rig.hosts import Connected, connected, only, owner, taken_back
from lab.rig.line import HeldLine
from lab.rig.readback import Readback
from lab.rig.workplace import Workplace
from lab.stop import Stop

FULL = ProxyState(full=100)


@dataclass(frozen=True, slots=True)
class Kept:
    """One object of the repository in the cache."""

    key: str
    url: str
    bytes: int
    files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What is in a cache now: the repository's objects by key, and how many there are of others."""

    host: str
    folder: str
    origin: str
    """the repository's root; empty where objects have no URLs, and all of them are counted"""
    objects: tuple[Kept, ...]
    others: int = 0

    @property
    def bytes(self) -> int:
        """Of the repository's objects, in the cache."""
        return sum(one.bytes for one in self.objects)

    def cut(self, share: float, seed: int) -> tuple[Kept, ...]:
        """This share (0 to 1) of the objects, as a run with this seed would choose them."""
        return self.ordered(seed)[: self.count(share)]

    def count(self, share: float) -> int:
        """How many objects this share (0 to 1) is."""
        return design.purge_count(len(self.objects), 100 * (1 - share))

    def ordered(self, seed: int) -> tuple[Kept, ...]:
        """The objects in the order in which ever larger cuts take them."""
        by_key = {one.key: one for one in self.objects}
        return tuple(by_key[key] for key in design.purge_order(by_key, seed))

    def question(self, chosen: tuple[Kept, ...]) -> Question:
        """Whether these may be taken out; others' objects are not among them."""
        of = f" of {self.origin}" if self.origin else ""
        text = (
            f"{len(chosen)} of {len(self.objects)} objects{of} in the cache {self.folder} would be taken out:"
            f" {units.bytes_text(sum(one.bytes for one in chosen))} of {units.bytes_text(self.bytes)}."
            f" {self.others} objects of others stay untouched."
        )
        return Question("purge", self.host, text, looking.names(one.url for one in chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What a fill did: the repository's objects before and after, and which of them are the operation's list."""

    operation: str
    before: Inventory
    after: Inventory
    listed: frozenset[str]
    """keys of the objects that are 100 % for this operation"""
    passing: bool = False
    """The cache is that of BranchLab's own proxy, which a run empties"""

    @property
    def stays(self) -> str:
        """How long what was brought in stays: `until they are purged` …"""
        return "until they are purged" + (
            ", the next run, or everything is taken back" if self.passing else ""
        )

    @property
    def here(self) -> tuple[Kept, ...]:
        """The objects of the list that are in the cache."""
        return tuple(one for one in self.after.objects if one.key in self.listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What a purge did. `asked` were to go, `removed` were there still and went."""

    before: Inventory
    after: Inventory
    asked: int
    removed: int


class Applied:
    """A line that is held now, under the leases of all hosts of the lab."""

    def __init__(self, line: Line, held: HeldLine, hosts: tuple[Connected, ...], read: Readback) -> None:
        self.line = line
        self.read = read
        """what the kernels said when it was read back last"""
        self.lifted: Readback | None = None
        """what they said once it had been taken back"""
        self.limiting = tuple((one.name, what) for one, what in held.limiting(line))
        """what each holder does, in words"""
        self._held, self._hosts = held, hosts

    @property
    def left_s(self) -> float:
        """In so many seconds the line would go by itself, if it were not renewed until then."""
        return min((lease.left_s for one in self._hosts for lease in one.leases), default=0.0)

    @property
    def lease_s(self) -> float:
        """How long it outlives the last sign of life of BranchLab, in seconds."""
        return min((lease.lease_s for one in self._hosts for lease in one.leases), default=0.0)

    def alive(self) -> None:
        """Raise what ended a lease, if anything did."""
        for one in self._hosts:
            for lease in one.leases:
                lease.check()

    def check(self, stop: Stop) -> None:
        """Read it back once more. Raises what ended a lease, or HostTrouble if the line is another now."""
        self.alive()
        self.read = self._held.read(stop)
        self.refuse_other()

    def refuse_other(self) -> None:
        """Raise HostTrouble if what was read back is not the line asked."""
        if not self.read.matches(self.line):
            raise HostTrouble(
                f"the line read back is not {units.line_text(self.line)}, but {said(self.read)}",
                host=self._held.holder.name,
                tried="applied it, then read it back from the kernel",
                advice="Somebody else changes queues there; take it back and apply it again.",
            )

    def lift(self) -> None:
        """Take it back, and read back that it is gone."""
        self._held.lift(Stop())
        self.lifted = self._held.read(Stop())


class Hands:
    """One lab, changed by hand. Every deed connects, opens leases on all hosts, and takes back what it made.

    `experiment` says which repository and which operations; a line needs none. `agreed` of a deed is what a person
    agreed to of what was found just before; in a lab that BranchLab made itself nobody is asked. Every deed raises what
    a run would: Declined, HostTrouble, AgentRefused (`busy` where another BranchLab holds a host), Stopped.
    """

    def __init__(
        self,
        lab: Lab,
        experiment: Experiment | None = None,
        drivers: Path | None = None,
        *,
        lease_s: float | None = None,
        passwords: Passwords | None = None,
    ) -> None:
        self.lab, self.own = lab, machines.own(lab)
        self._wanted, self._drivers = experiment, drivers
        self._lease_s = settings.lease_s() if lease_s is None else lease_s
        self._passwords = passwords or Passwords()
        self._reached: tuple[Connected, ...] = ()

    def cut(self) -> None:
        """Close every connection at once, from any thread: the deed fails, and the hosts put themselves back."""
        for one in self._reached:
            one.connection.close()

    def account(self) -> Iterator[HostChanged | Noted]:
        """What the last deed changed on the hosts, and what was taken back. Also once it is over."""
        for one in self._reached:
            yield from one.account()

    # What would be asked

    def asked_for_fill(self, operation: str) -> tuple[Question, ...]:
        """What must be agreed to before a fill: only of a repository that is made anew, whose old objects would go."""
        wanted = self._narrowed(operation)
        driver = vcs.driver(wanted.vcs, self._drivers)
        planning.commands(self.lab, wanted, driver)
        if self.own or wanted.data is None:
            return ()
        return looking.look(self.lab, wanted, driver, self._passwords)

    def asked_for_line(self, line: Line) -> tuple[Question, ...]:
        """What must be agreed to before this line is applied: connections and queues of others."""
        return () if self.own else looking.line(self.lab, (line,), self._passwords)

    def inventory(self, stop: Stop) -> Inventory:
        """What is in the cache. Changes nothing."""
        self._cache()
        with connected(self.lab, stop, lease_s=None, passwords=self._passwords) as hosts:
            for one in hosts:
                checking.refuse_held(one)
            workplace = self._workplace(hosts, "get")
            workplace.look(stop)
            return self._counted(self._fullness(hosts, workplace), hosts, stop)

    # Deeds

    def fill(self, operation: str, stop: Stop, agreed: frozenset[str] = frozenset()) -> Filled:
        """Bring the cache to full for this operation, by running it once through the proxy, untimed.

        Of a repository that BranchLab makes anew, what the cache has of it goes first; of one of the user's own
        nothing does. What was brought in stays.
        """
        wanted = self._narrowed(operation)
        consent = Consent(agreed, everything=self.own, command="fill")
        with self._held(f"filling the cache: {wanted.name}", stop) as (hosts, stack):
            workplace = self._workplace(hosts, operation, peers.look(hosts, stop))
            workplace.look(stop)
            if wanted.data is not None:
                consent.fullness(hosts, workplace, looking.never_filled, stop)
            stack.callback(workplace.clear)
            for _ in workplace.set_up(stop):
                pass
            made = (workplace.run_untimed, workplace.run_noted)
            if wanted.data is not None:
                fullness = consent.fullness(hosts, workplace, made[0], stop, made[1])
            else:
                fullness = Fullness(
                    only(hosts, Role.PROXY), self._cache(), workplace.origin, made[0], noted=made[1]
                )
            before = self._counted(fullness, hosts, stop)
            (fullness.learn if wanted.data is not None else fullness.add)(operation, stop)
            fullness.refuse_empty(operation)
            after = self._counted(fullness, hosts, stop)
            return Filled(
                operation=operation,
                before=before,
                after=after,
                listed=fullness.keys(operation),
                passing=bool(cache_of(self.lab)[0].services),
            )

    def purge(
        self, found: Inventory, chosen: tuple[Kept, ...], stop: Stop, agreed: frozenset[str] = frozenset()
    ) -> Purged:
        """Take these objects out, as far as they are still there, and nothing that came since."""
        if not self.own and chosen:
            asking.refuse_unanswered([found.question(chosen)], agreed, "purge")
        keys = {one.key for one in chosen}
        with self._held("purging the cache", stop) as (hosts, stack):
            squid = self._cache().kind == "squid"
            workplace = self._workplace(hosts, "get", peers.look(hosts, stop) if squid else ())
            workplace.look(stop)
            fullness = self._fullness(hosts, workplace, Ours(keys=set(keys)))
            if squid:  # which takes out its objects itself, and has to run for that
                stack.callback(workplace.clear)
                workplace.start_proxy(stop)
            before = self._counted(fullness, hosts, stop)
            removed = fullness.take_out(keys, stop) if before.objects else 0
            after = self._counted(fullness, hosts, stop)
            return Purged(before=before, after=after, asked=len(keys), removed=removed)

    @contextmanager
    def line(self, line: Line, stop: Stop, agreed: frozenset[str] = frozenset()) -> Iterator[Applied]:
        """The line, held inside and read back; taken back at the end, whatever ends it."""
        consent = Consent(agreed, everything=self.own, command="line")
        with self._held(f"the line by hand: {units.line_text(line)}", stop) as (hosts, _):
            held, _ = consent.line(hosts, self.lab.place, (line,), stop)
            consent.others(held, hosts, (line,), (), stop)
            applied: Applied | None = None

            def undo() -> None:
                if applied is not None:
                    applied.lift()
                else:
                    held.lift(Stop())

            with taken_back(undo):
                applied = Applied(line, held, hosts, held.apply(line, stop))
                applied.refuse_other()
                yield applied

    # Their parts

    @contextmanager
    def _held(self, purpose: str, stop: Stop) -> Iterator[tuple[tuple[Connected, ...], ExitStack]]:
        """All hosts, under leases that name the purpose; and a stack of what is done before these are given back."""
        with (
            connected(
                self.lab,
                stop,
                lease_s=self._lease_s,
                owned_by=owner(purpose=purpose),
                passwords=self._passwords,
            ) as hosts,
            ExitStack() as stack,
        ):
            self._reached = hosts
            yield hosts, stack

    def _workplace(
        self, hosts: tuple[Connected, ...], operation: str, seen: Sequence[peers.Seen] = ()
    ) -> Workplace:
        wanted = self._narrowed(operation, refuse=False)
        driver = vcs.driver(wanted.vcs, self._drivers)
        return Workplace(hosts, wanted, driver, self._passwords, seen, keep_cache=True)

    def _fullness(
        self, hosts: tuple[Connected, ...], workplace: Workplace, ours: Ours | None = None
    ) -> Fullness:
        proxy = only(hosts, Role.PROXY)
        return Fullness(proxy, self._cache(), workplace.origin, looking.never_filled, ours=ours)

    def _counted(self, fullness: Fullness, hosts: tuple[Connected, ...], stop: Stop) -> Inventory:
        proxy = only(hosts, Role.PROXY)
        try:
            found, others = fullness.standing(stop)
        except AgentRefused as error:
            if not looking.still_to_make(error, proxy):
                raise
            found, others = {}, 0
        return Inventory(
            host=proxy.name,
            folder=fullness.folder,
            origin=fullness.origin,
            objects=tuple(
                Kept(one["key"], one["url"], one["bytes"], one.get("files", 0)) for one in found.values()
            ),
            others=others,
        )

    def _narrowed(self, operation: str, *, refuse: bool = True) -> Experiment:
        """The experiment with this one operation, by one client, the proxy enabled, on the line as it is."""
        if self._wanted is None:
            raise AssertionError("only a line is held without an experiment")
        self._cache()
        if refuse and operation not in cacheable(self._wanted, self._drivers):
            raise BadInput(
                f"{operation} brings nothing into a cache in {self._wanted.name}",
                advice=f"Write one of: {', '.join(cacheable(self._wanted, self._drivers)) or 'none of it does'}.",
            )
        return replace(
            self._wanted,
            operations=(operation,),
            lines=(AS_IT_IS,),
            states=(FULL,),
            disabled_only=(),
            clients=tuple(host.name for host in self.lab.taking_part(self._wanted)[:1]),
        )

    def _cache(self) -> Cache:
        return cache_of(self.lab)[1]


def cache_of(lab: Lab) -> tuple[Host, Cache]:
    """The proxy and its cache. Raises BadInput where the profile names none."""
    for host in lab.having(Role.PROXY)[:1]:
        if host.cache is not None:
            return host, host.cache
    raise BadInput(
        "the profile names no cache that could be filled or purged",
        advice='Write cache = { kind = "…", folder = "…" } under the host with role = "proxy".',
    )


def cacheable(experiment: Experiment, drivers: Path | None = None) -> tuple[str, ...]:
    """The operations of an experiment that bring objects into a cache and change no repository; Get first."""
    driver = vcs.driver(experiment.vcs, drivers)
    found = [
        one
        for one in experiment.operations
        if driver.traffic_class(one) is TrafficClass.CACHEABLE and one not in CHANGING
    ]
    return tuple(sorted(found, key=lambda name: name != "get"))


def said(read: Readback) -> str:
    """What was read back from the kernels, in words: rates, delay, queues and by what means."""
    if not read.applied:
        return "nothing that limits it" if not (read.upload_bps or read.download_bps) else read.method
    rates = (
        f"{units.rate_text(read.upload_bps)} up, {units.rate_text(read.download_bps)} down"
        if read.upload_bps and read.download_bps
        else "no limit"
    )
    words = [rates]
    if read.delay_s or read.jitter_s or read.loss:
        words.append(
            f"delay {read.delay_s * 1000:g} ms, jitter {read.jitter_s * 1000:g} ms, loss {read.loss:.3g}"
        )
    if read.queue_upload_bytes and read.queue_download_bytes:
        sizes = (units.bytes_text(size) for size in (read.queue_upload_bytes, read.queue_download_bytes))
        words.append(f"queues {' up, '.join(sizes)} down")
    return f"{'; '.join(words)} ({read.method})"


def counted(found: Inventory, objects: Iterable[Kept] | None = None) -> str:
    """`150 objects, 602.1 kB`: of the whole inventory, or of these objects of it."""
    listed = found.objects if objects is None else tuple(objects)
    return f"{len(listed)} objects, {units.bytes_text(sum(one.bytes for one in listed))}"
