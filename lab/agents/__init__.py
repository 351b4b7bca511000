"""Bundles the agents into one source text, starts one on a host, and converses with it."""

from __future__ import annotations

import logging
import queue
import re
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol, Self

from lab.agents.bundling import bundle, launcher
from lab.errors import AgentRefused, ConnectionLost, HostLacks, LabError, Stopped
from lab.stop import Stop
from ssh_agents import protocol

log = logging.getLogger(__name__)

TICK_S = 0.1
"""A wait looks at its `Stop` this often."""
START_S = 20.0
"""How long an agent may take from its start to its `hello`."""
CLOSE_S = 10.0
"""How long an agent may take to end its work, and to undo, after the end of its input."""
MAX_NOISE = 1 << 20


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

    def start(self, argv: Sequence[str]) -> Process:
        """Start a program with these arguments."""
        ...


def started(
    connection: Connection,
    *,
    privileged: bool = False,
    root: str = "none",
    timeout_s: float = START_S,
    stop: Stop | None = None,
) -> Agent:
    """An agent that has said `hello`. `root` is the host's way to its rights: none, direct or sudo.

    Raises HostLacks where Python or the rights are missing, ConnectionLost, and Stopped.
    """
    made, mark = bundle(), secrets.token_hex(8)
    argv = launcher(made, mark, privileged)
    if privileged and root not in ("direct", "sudo"):
        raise HostLacks(
            "the lab has no way to change this host (it is given as root = none)",
            host=connection.name,
            advice="Set sudo = true for this host in the profile, or log in as root.",
        )
    if privileged and root == "sudo":
        argv = ["sudo", "-n", "--", *argv]
    process = connection.start(argv)
    try:
        greeting = _Greeting(process, connection.name, time.monotonic() + timeout_s, stop)
        if privileged or greeting.needs_source(mark):
            greeting.send(made.source)
        hello = greeting.hello()
    except BaseException:
        process.close()
        raise
    return Agent(process, connection.name, hello, greeting.rest)


class _Greeting:
    """The part of a conversation in which the login shell's own words may still come."""

    def __init__(self, process: Process, host: str, end: float, stop: Stop | None) -> None:
        self.rest = b""
        self._process, self._host, self._end, self._stop = process, host, end, stop

    def send(self, data: bytes) -> None:
        try:
            self._process.write(data)
        except ConnectionLost:
            log.debug("%s: did not take the agent", self._host)  # reading tells why

    def needs_source(self, mark: str) -> bool:
        """The loader's word on whether the host has this version already."""
        return self._until(re.compile(rb"%s (have|need)\n" % mark.encode())).group(1) == b"need"

    def _until(self, mark: re.Pattern[bytes]) -> re.Match[bytes]:
        """Read up to and including `mark`; what comes before it is noise."""
        while (found := mark.search(self.rest)) is None:
            if len(self.rest) > MAX_NOISE:
                raise self._trouble("printed more than 1 MiB before the agent spoke")
            self._more()
        if found.start():
            noise = self.rest[: found.start()][:200]
            log.info("%s: noise before the agent's first word: %r", self._host, noise)
        self.rest = self.rest[found.end() :]
        return found

    def hello(self) -> dict[str, Any]:
        """Ask for the first word under a random number, which also marks the end of the noise."""
        number = secrets.randbelow(1 << 40) + (1 << 40)
        self.send(protocol.encode({"id": number, "verb": "hello", "args": {}}))
        line = self._until(re.compile(rb'\{"id":%d,.*\n' % number)).group()
        facts = protocol.decode(line).get("done")
        if not isinstance(facts, dict) or facts.get("version") != protocol.VERSION:
            raise self._trouble(f"answered {line[:200]!r} instead of hello")
        return facts

    def _more(self) -> None:
        while True:
            if self._stop is not None:
                self._stop.check()
            if time.monotonic() > self._end:
                raise self._trouble("did not say hello in time")
            with suppress(TimeoutError):
                data = self._process.read(TICK_S)
                break
        if not data:
            raise self._ended()
        self.rest += data

    def _trouble(self, text: str) -> ConnectionLost:
        return ConnectionLost(f"the agent {text}{_quoted(self._process.errors())}", host=self._host)

    def _ended(self) -> LabError:
        status, said = self._process.exit(5), self._process.errors()
        # sudo speaks its user's language; its name before the agent's first word says enough.
        if "sudo:" in said or "sudo-rs:" in said:
            return HostLacks(
                f"sudo did not start the agent{_quoted(said)}",
                host=self._host,
                tried="sudo -n python3",
                advice="Let this user run python3 under sudo without a password (NOPASSWD in sudoers), or"
                " log in as root. Typing sudo's password into BranchLab comes in a later version.",
            )
        if status in (126, 127) or "branchlab: python3" in said:
            return HostLacks(
                f"the agent needs python3, version 3.8 or newer{_quoted(said)}",
                host=self._host,
                tried="python3 -I -S",
                advice="Install python3 on the host (Debian, Ubuntu: apt-get install python3).",
            )
        before = _quoted(self.rest.decode("utf-8", "replace")) if self.rest else ""
        return self._trouble(f"ended before its first word (exit status {status}){before}")


def _quoted(text: str) -> str:
    tail = text.strip()[-600:]
    return f"; it said: {tail}" if tail else ""


class Conversation:
    """One request under way: iterate its events; `result` is its last word."""

    def __init__(self, agent: Agent, number: int, verb: str) -> None:
        self.agent, self.verb = agent, verb
        self.result: dict[str, Any] | None = None
        self._number = number
        self._ended = False
        self._lock = threading.Lock()
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
            self.agent.cancel(self._number)

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
        with self._lock:
            self._queue.put((self, message))

    def divert(self, to: queue.SimpleQueue[tuple[Conversation, dict[str, Any] | None]]) -> None:
        """From now on, and with what waits already, into another queue."""
        with self._lock:
            with suppress(queue.Empty):
                while True:
                    to.put(self._queue.get_nowait())
            self._queue = to

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
        for conversation in conversations:
            conversation.divert(queue.SimpleQueue())
        _give_back(shared)


def _give_back(shared: queue.SimpleQueue[tuple[Conversation, dict[str, Any] | None]]) -> None:
    with suppress(queue.Empty):
        while True:
            conversation, message = shared.get_nowait()
            conversation.put(message)


class Agent:
    """An agent that runs on a host: requests go out from any thread, one pump brings the answers in.

    Attributes: `host`, the host's name; `hello`, what the agent said of itself.
    """

    def __init__(self, process: Process, host: str, hello: dict[str, Any], begun: bytes = b"") -> None:
        self.host, self.hello = host, hello
        self._process = process
        self._lock = threading.Lock()
        self._number = 0
        self._open: dict[int, Conversation] = {}
        self._ended = False
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
        return ConnectionLost(f"{text}: the agent has ended{_quoted(self._process.errors())}", host=self.host)

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
        return self.trouble is None and time.monotonic() - self._renewed < self.lease_s

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
def renewed(agent: Agent, lease_s: float = 30.0) -> Iterator[Lease]:
    """A lease on the agent's host, renewed each sixth of its time by a thread; given back at the end.

    A failure while giving back is raised, since the host may still be limited until the lease ends.
    """
    opened = agent.ask("lease.open", {"lease_s": lease_s})
    lease = Lease(agent, str(opened["lease"]), lease_s)
    try:
        yield lease
    finally:
        lease.close()
