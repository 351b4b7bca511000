"""The lab's hosts, connected: one SSH connection, two agents and one lease for each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from lab import agents, ssh
from lab.agents import Agent, Lease
from lab.errors import AgentRefused, HostLacks, HostTrouble, LabError
from lab.model import Host, Lab, Role
from lab.stop import Stop

log = logging.getLogger(__name__)

LEASE_S = 30.0
"""How long a change on a host outlives the last sign of life of BranchLab, in seconds."""


@dataclass(slots=True)
class Connected:
    """One host with its two agents. `root` is None where nothing that needs root is to be done."""

    host: Host
    connection: ssh.Connection
    agent: Agent
    root: Agent | None
    facts: dict[str, Any]
    leases: list[Lease] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The host's name in the profile."""
        return self.host.name

    @property
    def addresses(self) -> list[str]:
        """How the lab's other hosts reach it."""
        return [address for address in (self.host.address, self.host.address6) if address]

    @property
    def privileged(self) -> Agent:
        """The agent that may change the host. Raises HostLacks where the profile gives none."""
        if self.root is None:
            raise HostLacks(
                f"{self.name} has to be changed for this, but its profile gives no way to become root",
                advice=f'Write root = "sudo" (or "direct") under [hosts.{self.name}].',
                host=self.name,
            )
        return self.root

    def exempt(self) -> list[dict[str, Any]]:
        """Both ends of our own SSH connection with sshd's port: never limited, never counted.

        The desk may itself be one of the lab's hosts, so either address may be a peer to some host.
        """
        ends = self.facts.get("ssh")
        if not ends:
            return []  # a UNIX socket: nothing of it is on the network
        port = ends["own"]["port"]
        return [{"address": ends[end]["address"], "port": port} for end in ("peer", "own")]


@contextmanager
def connected(lab: Lab, stop: Stop, *, lease_s: float | None = LEASE_S) -> Iterator[tuple[Connected, ...]]:
    """All hosts of the lab, connected side by side; with a lease on each that can be changed (None: without).

    Leaving gives the leases back first (what was changed is taken back), then ends the agents. Raises
    HostTrouble that names each host that could not be had.
    """
    with ExitStack() as stack:
        with ThreadPoolExecutor(max_workers=8) as pool:
            jobs = [(host, pool.submit(_connect, host)) for host in lab.hosts]
        troubles: list[HostTrouble] = []
        hosts: list[Connected] = []
        for host, job in jobs:
            try:
                one, closing = job.result()
            except HostTrouble as trouble:
                trouble.host = trouble.host or host.name
                troubles.append(trouble)
            else:
                stack.push(closing)
                hosts.append(one)
        if troubles:
            raise (
                troubles[0]
                if len(troubles) == 1
                else HostTrouble("\n".join(trouble.told() for trouble in troubles))
            )
        stop.check()
        if lease_s is not None:
            for one in hosts:
                if one.root is not None:
                    one.leases.append(stack.enter_context(_leased(one.root, lease_s)))
        yield tuple(hosts)


@contextmanager
def taken_back(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` at the end. Where a lost host ended what was done inside, that is told, not that undoing failed too.

    After anything else, a wish to stop above all, it matters more that a host may still be changed.
    """
    try:
        yield
    except (HostTrouble, AgentRefused):
        try:
            undo()
        except LabError as error:
            log.warning("not taken back: %s", error.told())
        raise
    except BaseException:
        undo()
        raise
    undo()


@contextmanager
def _leased(agent: Agent, lease_s: float) -> Iterator[Lease]:
    with ExitStack() as stack:
        lease = stack.enter_context(agents.renewed(agent, lease_s))
        with taken_back(stack.close):
            yield lease


def _connect(host: Host) -> tuple[Connected, ExitStack]:
    with ExitStack() as stack:
        connection = stack.enter_context(ssh.connect(host))
        agent = agents.started(connection)
        stack.callback(agent.close)
        root = None
        if host.root != "none":
            root = agents.started(connection, privileged=True, root=host.root)
            stack.callback(root.close)
        facts = agent.ask("facts", {"tools": TOOLS[host.role]}, timeout_s=60)
        return Connected(
            host=host, connection=connection, agent=agent, root=root, facts=facts
        ), stack.pop_all()
    raise AssertionError("an ExitStack swallowed an error")


TOOLS: dict[Role, list[str]] = {
    Role.CLIENT: ["svn", "nft"],
    Role.PROXY: ["apache2", "htcacheclean", "nft"],
    Role.SERVER: ["svnadmin", "apache2", "tc", "nft"],
    Role.ROUTER: ["tc", "nft"],
}
"""The programs whose versions a run stores, by role."""


def everywhere(
    requests: Iterable[tuple[Connected, Agent, str, dict[str, Any]]], stop: Stop, timeout_s: float = 30.0
) -> dict[str, dict[str, Any]]:
    """The same moment on several hosts: all requests are sent before the first answer is awaited.

    Returns each host's last word by its name. Raises what `Agent.ask` raises.
    """
    under_way = [(one, agent.stream(verb, args)) for one, agent, verb, args in requests]
    words = {}
    for one, talk in under_way:
        for _ in talk.events(stop, timeout_s):
            pass
        words[one.name] = talk.result or {}
    return words


def in_role(hosts: Sequence[Connected], role: Role) -> tuple[Connected, ...]:
    """The hosts with this role."""
    return tuple(one for one in hosts if one.host.role is role)


def only(hosts: Sequence[Connected], role: Role) -> Connected:
    """The first host with this role. Raises HostTrouble if there is none."""
    for one in hosts:
        if one.host.role is role:
            return one
    raise HostTrouble(f"the lab has no {role.value}", advice=f'Give one host role = "{role.value}".')
