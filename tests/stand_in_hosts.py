"""Hosts that work without a machine: agents whose verbs are functions, connected as `lab.rig` knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

from lab import ssh
from lab.agents import Agent
from lab.errors import AgentRefused
from lab.model import Host, Role
from lab.rig.hosts import Connected
from lab.ssh.target import Target
from lab.stop import Stop

Args = dict[str, Any]
Verb = Callable[[Args], Args]
"""From a request's arguments to its last word; `events` in it are said before, and are no part of it."""


class Talk:
    """A request under way: its events, then its last word. Nothing happens before it is listened to."""

    def __init__(self, agent: StandInAgent, verb: str, args: Args) -> None:
        self.result: Args | None = None
        self._agent, self._verb, self._args = agent, verb, args
        self.cancelled = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    def __iter__(self) -> Iterator[tuple[str, Args]]:
        return self.events()

    def events(self, stop: Stop | None = None, timeout_s: float | None = None) -> Iterator[tuple[str, Args]]:
        if stop is not None:
            stop.check()
        word = dict(self._agent.answer(self._verb, self._args))
        yield from word.pop("events", ())
        self.result = word

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class StandInAgent:
    """Keeps a log of what it was asked, and refuses what it has no verb for, as a real agent does."""

    host: str
    verbs: Mapping[str, Verb] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    asked: list[tuple[str, Args]] = field(default_factory=list)
    notice: str = ""

    def ask(
        self, verb: str, args: Args | None = None, timeout_s: float = 30, stop: Stop | None = None
    ) -> Args:
        talk = self.stream(verb, args)
        for _ in talk.events(stop, timeout_s):
            pass
        return talk.result or {}

    def stream(self, verb: str, args: Args | None = None) -> Talk:
        self.log.append(f"asked {self.host} {verb}")
        self.asked.append((verb, args or {}))
        return Talk(self, verb, args or {})

    def answer(self, verb: str, args: Args) -> Args:
        self.log.append(f"heard {self.host} {verb}")
        if verb not in self.verbs:
            raise AgentRefused(f"unknown verb: {verb}", kind="bad-request", host=self.host)
        return self.verbs[verb](args)

    def args(self, verb: str) -> list[Args]:
        """What came with each request of this verb."""
        return [args for name, args in self.asked if name == verb]


def connected(
    name: str,
    role: Role,
    verbs: Mapping[str, Verb] | None = None,
    *,
    log: list[str] | None = None,
    facts: Args | None = None,
    **given: Any,
) -> Connected:
    """A host of the lab whose two agents have these verbs; `given` are fields of `model.Host`.

    Without `root` in `given` it is `direct`; `root="none"` leaves the privileged agent out.
    """
    host = Host(name=name, role=role, ssh=f"unix:/nowhere/{name}", **{"root": "direct", **given})
    kept: list[str] = [] if log is None else log
    root = StandInAgent(name, verbs or {}, kept) if host.root != "none" else None
    return Connected(
        host=host,
        connection=cast(
            "ssh.Connection",
            # Without ends of an SSH connection among its facts, a host is behind a UNIX socket.
            Connection(_target(name, (facts or {}).get("ssh"))),
        ),
        agent=cast("Agent", StandInAgent(name, verbs or {}, kept)),
        root=cast("Agent | None", root),
        facts=facts or {},
    )


def _target(name: str, seen: Args | None) -> Target:
    if seen is None:
        return Target(name=name, user="admin", path=f"/nowhere/{name}")
    return Target(name=name, user="admin", port=seen["own"]["port"])


@dataclass
class Connection:
    """Takes files."""

    target: Target
    files: dict[str, bytes] = field(default_factory=dict)
    unheeded: tuple[str, ...] = ()
    software: str = "SSH-2.0-OpenSSH_9.2p1"
    shown: str = "ssh-ed25519 SHA256:abc"
    ends: tuple[str, str] | None = None

    def put(self, data: bytes, path: str, mode: int = 0o600, timeout_s: float = 60) -> None:
        self.files[path] = data


def agent(one: Connected) -> StandInAgent:
    """Its ordinary agent, with the log."""
    return cast("StandInAgent", one.agent)


def root(one: Connected) -> StandInAgent:
    """Its privileged agent, with the log."""
    return cast("StandInAgent", one.privileged)


def office(verbs: Mapping[str, Verb] | None = None, log: list[str] | None = None) -> Sequence[Connected]:
    """Server, proxy, two clients."""
    return (
        connected("server", Role.SERVER, verbs, log=log, address="198.51.100.1", services="/srv/lab"),
        connected(
            "proxy", Role.PROXY, verbs, log=log, address="198.51.100.2", url="http://198.51.100.2:8081"
        ),
        connected("desk", Role.CLIENT, verbs, log=log, address="198.51.100.11", address6="2001:db8::11"),
        connected("desk-2", Role.CLIENT, verbs, log=log, address="198.51.100.12"),
    )
