"""Bundles the agents into one source text, starts one on a host, and converses with it."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, Self

from lab.agents import starting
from lab.agents.bundling import bundle as bundle
from lab.agents.starting import START_S, TICK_S, Password, quoted
from lab.agents.starting import PasswordMissing as PasswordMissing
from lab.agents.starting import PasswordRefused as PasswordRefused
from lab.errors import AgentRefused, ConnectionLost, HostLacks, LabError, Stopped
from lab.stop import Stop
from ssh_agents import protocol

log = logging.getLogger(__name__)

CLOSE_S = 10.0
"""How long an agent may take to end its work, and to undo, after the end of its input."""
OPEN_S = 90.0
"""How long opening a lease may take: what a dead session left is taken back first."""
BUSY_ADVICE = (
    "Wait until that run has ended, or agree with its owner. If you know that nobody needs it:"
    " branchlab revert --force PROFILE."
)


class Process(Protocol):
    """A program on a host, as `lab.ssh` starts it."""

    def read(self, timeout_s: float | None = None) -> bytes:
        """Some bytes of its standard output; empty at the end. Raises TimeoutError, ConnectionLost."""
        ...

    def write(self, data: bytes) -> None:
        """All of `data` to its standard input. Raises ConnectionLost."""
        ...

    def close_input(self) -> None:
        """The end of its standard input. Idempotent."""
        ...

    def errors(self) -> str:
        """The last few KiB of its standard error so far."""
        ...

    def exit(self, timeout_s: float) -> int | None:
        """Its exit status; None if it did not end in time, or by a signal, or out of sight."""
        ...

    def close(self) -> None:
        """Let go of it. A blocked `read` returns at once. Idempotent."""
        ...


class Connection(Protocol):
    """A host that programs can be started on."""

    @property
    def name(self) -> str:
        """The host's name in the lab."""
        ...

    def start(self, argv: Sequence[str], *, terminal: bool = False) -> Process:
        """Start a program with these arguments, or a line for any login shell; on request on a raw terminal of its
        own, which mixes both outputs."""
        ...


def started(
    connection: Connection,
    *,
    privileged: bool = False,
    root: str = "none",
    helper: Agent | None = None,
    password: Password | None = None,
    kept: bool = True,
    timeout_s: float = START_S,
    stop: Stop | None = None,
) -> Agent:
    """An agent that has said `hello`. `root` is the host's way to its rights: none, direct, sudo or doas.

    `helper`, the ordinary agent of the same host, looks for an installed copy. `password` is asked only if
    sudo or doas asks. Without `kept` nothing is left in the user's cache folder. Raises HostLacks where Python
    or the rights are missing (PasswordRefused for a wrong password), ConnectionLost, and Stopped.
    """
    if not privileged:
        begun = starting.ordinary(connection, kept=kept, timeout_s=timeout_s, stop=stop)
    elif root == "direct":
        begun = starting.direct(connection, timeout_s=timeout_s, stop=stop)
    elif root in ("sudo", "doas"):
        begun = starting.raised(
            connection, root, helper=helper, password=password, timeout_s=timeout_s, stop=stop
        )
    else:
        raise HostLacks(
            "the lab has no way to change this host (it is given as root = none)",
            host=connection.name,
            advice='Write root = "sudo" or "doas" for this host in the profile, or log in as root'
            ' (root = "direct").',
        )
    return Agent(begun.process, connection.name, begun.hello, begun.rest, begun.notice)


class Conversation:
    """One request under way: iterate its events; `result` is its last word."""

    def __init__(self, agent: Agent, number: int, verb: str) -> None:
        self.agent, self.verb = agent, verb
        self.result: dict[str, Any] | None = None
        self._number = number
        self._ended = False
        self.lock = threading.Lock()
        self._queue: queue.SimpleQueue[tuple[Conversation, dict[str, Any] | None]] = queue.SimpleQueue()

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        return self.events()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    @property
    def ended(self) -> bool:
        """True once the last word was read, or the connection was found lost."""
        return self._ended

    def events(
        self, stop: Stop | None = None, timeout_s: float | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Events until the last word. `timeout_s` bounds the whole wait.

        Raises AgentRefused (kind `time-out` also when the host was silent), ConnectionLost, Stopped.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._ended:
            _, message = _next(self._queue, stop, end, self)
            event = self.read(message)
            if event is not None:
                yield event

    def cancel(self) -> None:
        """Ask the agent to end this request early; its last word still comes. Idempotent."""
        if not self._ended:
            try:
                self.agent.cancel(self._number)
            except ConnectionLost as error:
                raise self.agent.lost(f"{self.verb} got no last word") from error

    def finish(self, timeout_s: float = CLOSE_S) -> dict[str, Any] | None:
        """Cancel if need be, pass over what is left, and return the last word; None if it was a refusal."""
        if not self._ended:
            self.cancel()
            try:
                for _ in self.events(timeout_s=timeout_s):
                    pass
            except AgentRefused as error:
                log.info("%s: %s ended with: %s", self.agent.host, self.verb, error)
        return self.result

    def put(self, message: dict[str, Any] | None) -> None:
        """For the agent's pump: a message, or None when the stream has ended."""
        with self.lock:
            self._queue.put((self, message))

    def divert(self, to: queue.SimpleQueue[tuple[Conversation, dict[str, Any] | None]]) -> None:
        """From now on, and with what waits already, into another queue."""
        with self.lock:
            with suppress(queue.Empty):
                while True:
                    to.put(self._queue.get_nowait())
            self._queue = to

    def part(self) -> queue.SimpleQueue[tuple[Conversation, dict[str, Any] | None]]:
        """A new queue of its own, from now on; called while `lock` is held."""
        self._queue = queue.SimpleQueue()
        return self._queue

    def read(self, message: dict[str, Any] | None) -> tuple[str, dict[str, Any]] | None:
        """One message's meaning: an event, or None when it was the last word. Raises what the word says."""
        if message is None:
            self._ended = True
            raise self.agent.lost(f"{self.verb} got no last word")
        if "event" in message:
            return str(message["event"]), message.get("data") or {}
        self._ended = True
        failed = message.get("failed")
        if failed is None:
            self.result = message.get("done") or {}
            return None
        raise AgentRefused(
            str(failed.get("text")),
            kind=str(failed.get("kind")),
            host=self.agent.host,
            tried=str(failed.get("tried") or ""),
        )


def _next(
    waiting: queue.SimpleQueue[tuple[Conversation, dict[str, Any] | None]],
    stop: Stop | None,
    end: float | None,
    asked: Conversation | None,
) -> tuple[Conversation, dict[str, Any] | None]:
    while True:
        if stop is not None:
            stop.check()
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            raise AgentRefused(
                "the agent did not answer in time",
                kind="time-out",
                host=asked.agent.host if asked else "",
                tried=asked.verb if asked else "",
            )
        ticks = [seconds for seconds in (left, None if stop is None else TICK_S) if seconds is not None]
        with suppress(queue.Empty):
            return waiting.get(timeout=min(ticks, default=None))


def merged(
    conversations: Sequence[Conversation], stop: Stop | None = None
) -> Iterator[tuple[Conversation, str | None, dict[str, Any]]]:
    """Events of several conversations as they come; a last word comes as event None with its result.

    Ends after the last of the last words. A refusal or a lost connection of any of them is raised; the others
    go on, and are ended by their own `with`. Stop is noticed within 0.1 s.
    """
    shared: queue.SimpleQueue[tuple[Conversation, dict[str, Any] | None]] = queue.SimpleQueue()
    for conversation in conversations:
        conversation.divert(shared)
    try:
        while not all(conversation.ended for conversation in conversations):
            conversation, message = _next(shared, stop, None, None)
            event = conversation.read(message)
            if event is None:
                yield conversation, None, conversation.result or {}
            else:
                yield conversation, *event
    finally:
        _part(conversations, shared)


def _part(
    conversations: Sequence[Conversation],
    shared: queue.SimpleQueue[tuple[Conversation, dict[str, Any] | None]],
) -> None:
    """Each listens to a queue of its own again, in which what waited for it comes before anything new."""
    with ExitStack() as held:
        for conversation in conversations:
            held.enter_context(conversation.lock)
        own = {id(conversation): conversation.part() for conversation in conversations}
        with suppress(queue.Empty):
            while True:
                conversation, message = shared.get_nowait()
                own[id(conversation)].put((conversation, message))


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was changed on a host, or taken back (`undone`). `at` is when this side heard of it."""

    at: str
    what: str
    undone: bool


class Agent:
    """An agent that runs on a host: requests go out from any thread, one pump brings the answers in.

    Attributes: `host`, the host's name; `hello`, what the agent said of itself; `notice`, what a person should
    know of how it was started (empty: nothing).
    """

    def __init__(
        self, process: Process, host: str, hello: dict[str, Any], begun: bytes = b"", notice: str = ""
    ) -> None:
        self.host, self.hello, self.notice = host, hello, notice
        self._process = process
        self._lock = threading.Lock()
        self._number = 0
        self._open: dict[int, Conversation] = {}
        self._changes: deque[Change] = deque()
        self._ended = False
        self._broke = ""
        self._pump = threading.Thread(target=self._pull, args=(begun,), name=f"agent-{host}", daemon=True)
        self._pump.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """False once the stream has ended."""
        return not self._ended

    def changes(self) -> Iterator[Change]:
        """What was changed on the host through this agent, and taken back, since this was last asked."""
        with suppress(IndexError):
            while True:
                yield self._changes.popleft()

    def ask(
        self, verb: str, args: dict[str, Any] | None = None, timeout_s: float = 30, stop: Stop | None = None
    ) -> dict[str, Any]:
        """One request and its last word; events are passed over.

        Raises AgentRefused (kind `time-out` when no word came in `timeout_s`), ConnectionLost, Stopped; in
        the first and the last case the request is cancelled.
        """
        conversation = self.stream(verb, args)
        try:
            for _ in conversation.events(stop, timeout_s):
                pass
        except (AgentRefused, Stopped):
            with suppress(ConnectionLost):
                conversation.cancel()
            raise
        return conversation.result or {}

    def stream(self, verb: str, args: dict[str, Any] | None = None) -> Conversation:
        """Begin a request whose events matter. Use it in a `with`, which cancels what has not ended."""
        with self._lock:
            if self._ended:
                raise self.lost(f"{verb} could not be asked")
            self._number += 1
            number = self._number
            conversation = self._open[number] = Conversation(self, number, verb)
        self._send({"id": number, "verb": verb, "args": args or {}})
        return conversation

    def cancel(self, target: int) -> None:
        """Ask that a request ends early. Its own answer is not waited for."""
        with self._lock:
            self._number += 1
            number = self._number
        self._send({"id": number, "verb": "cancel", "args": {"target": target}})

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """End its input, which means stop and undo; wait for its end. Idempotent."""
        self._process.close_input()
        self._pump.join(timeout_s)
        if self._pump.is_alive():
            log.warning("%s: the agent did not end within %g s", self.host, timeout_s)
        self._process.close()
        self._pump.join(timeout_s)

    def lost(self, text: str) -> ConnectionLost:
        """The error for a conversation that cannot go on, with the end of what the agent complained of."""
        why = self._broke or "the agent has ended"
        return ConnectionLost(f"{text}: {why}{quoted(self._process.errors())}", host=self.host)

    def _send(self, message: dict[str, Any]) -> None:
        data = protocol.encode(message)
        try:
            with self._lock:
                self._process.write(data)
        except ConnectionLost as error:
            # Its output ends now too, and behind that stands what it complained of.
            self._pump.join(1)
            raise self.lost(f"{message['verb']} could not be asked") from error

    def _pull(self, begun: bytes) -> None:
        decoder, data = protocol.Decoder(), begun
        try:
            while True:
                try:
                    for line in decoder.feed(data):
                        self._hand_out(line)
                except protocol.BadLine as error:
                    log.warning("%s: %s", self.host, error)
                data = self._process.read()
                if not data:
                    break
        except (LabError, OSError) as error:
            log.info("%s: the agent's stream broke: %s", self.host, error)
            self._broke = str(error)
        finally:
            with self._lock:
                self._ended = True
                left = list(self._open.values())
                self._open.clear()
            for conversation in left:
                conversation.put(None)

    def _hand_out(self, line: bytes) -> None:
        message = protocol.decode(line)
        number = message["id"]
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        for one in message.get("changes", ()):
            self._changes.append(Change(at=at, what=str(one["what"]), undone=bool(one["undone"])))
        with self._lock:
            conversation = self._open.get(number)
            if "event" not in message:
                self._open.pop(number, None)
        if conversation is not None:
            conversation.put(message)
        elif "failed" in message:
            log.warning("%s: the agent complains: %s", self.host, message["failed"])


class Lease:
    """A change to a host that lasts only while it is renewed.

    Attributes: `id`; `undone`, what the agent took back when the lease was closed; `trouble`, the error
    that ended the renewing.
    """

    def __init__(self, agent: Agent, number: str, lease_s: float) -> None:
        self.id, self.lease_s = number, lease_s
        self.undone: list[str] = []
        self.trouble: LabError | None = None
        self._agent = agent
        self._renewed = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease-{agent.host}", daemon=True)
        self._thread.start()

    def __str__(self) -> str:
        return self.id

    @property
    def alive(self) -> bool:
        """True while the last renewal is younger than the lease and none was refused."""
        return self.trouble is None and self.left_s > 0

    @property
    def left_s(self) -> float:
        """How long the change would stay, in seconds, if the lease were not renewed any more."""
        return max(0.0, self.lease_s - (time.monotonic() - self._renewed))

    def check(self) -> None:
        """Raise what ended the lease, if anything did."""
        if self.trouble is not None:
            raise self.trouble
        if not self.alive:
            raise AgentRefused("the lease was not renewed in time", kind="lapsed", host=self._agent.host)

    def close(self) -> None:
        """End the renewing and let the agent take back what was changed under the lease."""
        self._over.set()
        self._thread.join(self.lease_s)
        said = self._agent.ask("lease.close", {"lease": self.id}, timeout_s=max(30.0, self.lease_s))
        self.undone = [str(text) for text in said.get("undone", [])]
        for text in self.undone:
            log.info("%s: took back: %s", self._agent.host, text)

    def _renew(self) -> None:
        while not self._over.wait(self.lease_s / 6):
            asked = time.monotonic()
            try:
                self._agent.ask("lease.renew", {"lease": self.id}, timeout_s=self.lease_s / 2)
            except AgentRefused as error:
                if error.kind != "time-out":
                    self._lose(error)
                    return
                log.warning("%s: a renewal of the lease was not answered in time", self._agent.host)
            except LabError as error:
                self._lose(error)
                return
            else:
                self._renewed = asked

    def _lose(self, error: LabError) -> None:
        log.warning("%s: the lease is lost: %s", self._agent.host, error)
        self.trouble = error


@contextmanager
def renewed(agent: Agent, lease_s: float = 30.0, owner: Mapping[str, str] | None = None) -> Iterator[Lease]:
    """A lease on the agent's host, renewed each sixth of its time by a thread; given back at the end.

    `owner` (user, controller, run, purpose, session) is told to whoever comes second: to them this raises
    AgentRefused, `busy`. What dead sessions left on the host is taken back first. A failure while giving back
    is raised, since the host may still be limited until the lease ends.
    """
    asked: dict[str, Any] = {"lease_s": lease_s} | ({"owner": dict(owner)} if owner else {})
    try:
        opened = agent.ask("lease.open", asked, timeout_s=OPEN_S)
    except AgentRefused as error:
        if error.kind == "busy":
            error.advice = BUSY_ADVICE
        raise
    lease = Lease(agent, str(opened["lease"]), lease_s)
    try:
        yield lease
    finally:
        lease.close()
