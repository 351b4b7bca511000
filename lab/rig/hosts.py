"""The lab's hosts, connected: one SSH connection, two agents and one lease for each."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from lab import agents, settings, ssh
from lab.agents import Agent, Lease
from lab.credentials import Passwords
from lab.errors import AgentRefused, HostLacks, HostTrouble, LabError
from lab.events import HostChanged, Noted
from lab.model import Experiment, Host, Lab, Role
from lab.stop import Stop

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Connected:
    """One host with its two agents. `root` is None where nothing that needs root is to be done."""

    host: Host
    connection: ssh.Connection
    agent: Agent
    root: Agent | None
    facts: dict[str, Any]
    leases: list[Lease] = field(default_factory=list)
    told: list[HostChanged | Noted] = field(default_factory=list)
    """what was changed there by commands, which no agent tells, and was not told yet"""

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

    def account(self) -> Iterator[HostChanged | Noted]:
        """What was changed on this host, and taken back, since this was last asked; and what could not be."""
        while self.told:  # the list itself stays: others add to it
            yield self.told.pop(0)
        for agent in (self.root, self.agent):
            for change in agent.changes() if agent is not None else ():
                yield HostChanged(host=self.name, at=change.at, what=change.what, undone=change.undone)

    def exempt(self) -> list[dict[str, Any]]:
        """Both ends of our own SSH connection with sshd's port: never limited, never counted.

        The desk may itself be one of the lab's hosts, so either address may be a peer to some host. Where sshd sees
        another end than was dialled, also the ends and the port that were.
        """
        ends = self.facts.get("ssh")
        if not ends:
            return []  # a UNIX socket: nothing of it is on the network
        addresses, ports = [ends[end]["address"] for end in ("peer", "own")], [ends["own"]["port"]]
        if self.redirected:
            addresses += self.connection.ends or ()
            ports.append(self.connection.target.port)
        return [
            {"address": address, "port": port}
            for port in dict.fromkeys(ports)
            for address in dict.fromkeys(addresses)
        ]

    @property
    def redirected(self) -> bool:
        """Whether our connection comes to sshd by another address or port than was dialled: a redirect, a relay, NAT.

        What of it passes the host's devices is not known for sure then.
        """
        ends, dialled = self.facts.get("ssh"), self.connection.ends
        if not ends:
            return False
        if dialled is not None and dialled[1] != ends["own"]["address"]:
            return True
        return bool(self.connection.target.port != ends["own"]["port"])


def owner(run: str = "", purpose: str = "") -> dict[str, str]:
    """Who opens leases from here, as those are told who find the host held. One for all hosts of a session."""
    return {
        "user": _me(),
        "controller": socket.gethostname(),
        "run": run,
        "purpose": purpose,
        "session": secrets.token_hex(8),
    }


def _me() -> str:
    """Whoever called sudo, else this process's user. Not $LOGNAME first: `setpriv` and `runuser` leave it behind."""
    if os.environ.get("SUDO_USER"):
        return os.environ["SUDO_USER"]
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):  # Windows; a user without a name
        return os.environ.get("USERNAME", "")


@contextmanager
def connected(
    lab: Lab,
    stop: Stop,
    *,
    lease_s: float | None = settings.LEASE_S,
    owned_by: Mapping[str, str] | None = None,
    passwords: Passwords | None = None,
) -> Iterator[tuple[Connected, ...]]:
    """All hosts of the lab, connected side by side; with a lease under both agents of each (None: without).

    Leaving gives the leases back first (what was changed is taken back), then ends the agents. Raises
    HostTrouble that names each host that could not be had, and AgentRefused, `busy`, with who holds a host.
    """
    known = passwords or Passwords()
    with ExitStack() as stack:
        with ThreadPoolExecutor(max_workers=8) as pool:
            jobs = [(host, pool.submit(_connect, host, known)) for host in lab.hosts]
        troubles: list[HostTrouble] = []
        others: list[Exception] = []
        hosts: list[Connected] = []
        for host, job in jobs:
            try:
                one, closing = job.result()
            except HostTrouble as trouble:
                trouble.host = trouble.host or host.name
                troubles.append(trouble)
            except Exception as error:  # noqa: BLE001 - raised below, once the other hosts are sure to be let go
                others.append(error)
            else:
                stack.push(closing)
                hosts.append(one)
        if others:
            raise others[0]
        if troubles:
            if len(troubles) == 1:
                raise troubles[0]
            # Whoever waits for hosts to come back need not wait for these.
            kind = HostLacks if all(isinstance(trouble, HostLacks) for trouble in troubles) else HostTrouble
            raise kind("\n".join(trouble.told() for trouble in troubles))
        stop.check()
        if lease_s is not None:
            _lease_all(hosts, lease_s, owned_by or owner(), stack)
        yield tuple(hosts)


def _lease_all(
    hosts: Sequence[Connected], lease_s: float, owned_by: Mapping[str, str], stack: ExitStack
) -> None:
    """The server's host first, alone: of two BranchLabs that come at once, one wins. The others side by side."""
    first = min(hosts, key=lambda one: one.host.role is not Role.SERVER)
    stack.push(_lease(first, lease_s, owned_by))
    with ThreadPoolExecutor(max_workers=8) as pool:
        jobs = [pool.submit(_lease, one, lease_s, owned_by) for one in hosts if one is not first]
    troubles = [error for job in jobs if (error := job.exception()) is not None]
    for job in jobs:
        if job.exception() is None:
            stack.push(job.result())
    if troubles:
        raise troubles[0]


def _lease(one: Connected, lease_s: float, owned_by: Mapping[str, str]) -> ExitStack:
    """Both agents' leases; the privileged one's ends first, so that no service loses its folder while it runs."""
    with ExitStack() as stack:
        for agent in (one.agent, one.root):
            if agent is not None:
                one.leases.append(stack.enter_context(_leased(agent, lease_s, owned_by)))
        return stack.pop_all()
    raise AssertionError("an ExitStack swallowed an error")


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
def _leased(agent: Agent, lease_s: float, owned_by: Mapping[str, str]) -> Iterator[Lease]:
    with ExitStack() as stack:
        lease = stack.enter_context(agents.renewed(agent, lease_s, owned_by))
        with taken_back(stack.close):
            yield lease


def _connect(host: Host, passwords: Passwords) -> tuple[Connected, ExitStack]:
    with ExitStack() as stack:
        connection = stack.enter_context(reached(host, passwords))
        agent = agents.started(connection)
        stack.callback(agent.close)
        root = None
        if host.root != "none":
            root = rooted(connection, agent, passwords)
            stack.callback(root.close)
        facts = agent.ask("facts", {"tools": TOOLS[host.role]}, timeout_s=60)
        return Connected(
            host=host, connection=connection, agent=agent, root=root, facts=facts
        ), stack.pop_all()
    raise AssertionError("an ExitStack swallowed an error")


@contextmanager
def reached(host: Host, passwords: Passwords) -> Iterator[ssh.Connection]:
    """The host, connected: anew, or as a person let BranchLab in by a code that is good once."""
    kept = passwords.kept.get(host.ssh)
    if isinstance(kept, ssh.Connection) and kept.alive:
        yield kept
        return
    with ssh.connect(host, passwords=passwords, accept=passwords.accept) as connection:
        yield connection


def signed_in(host: Host, passwords: Passwords, *, root: bool = True) -> None:
    """Log in on a host, and become root, once, so that `passwords` knows what it wants. Changes nothing there."""
    with ExitStack() as stack:
        connection = ssh.connect(host, passwords=passwords, accept=passwords.accept)
        if connection.one_time:
            passwords.kept[host.ssh] = connection
        else:
            stack.callback(connection.close)
        if root and host.root in ("sudo", "doas"):
            agent = stack.enter_context(agents.started(connection))
            stack.enter_context(rooted(connection, agent, passwords))


def rooted(connection: ssh.Connection, agent: Agent, passwords: Passwords) -> Agent:
    """The privileged agent of a host whose ordinary one runs. Raises what `agents.started` raises."""
    target, host = str(connection.target), connection.host
    try:
        started = agents.started(
            connection,
            privileged=True,
            root=host.root,
            helper=agent,
            password=lambda: passwords.password(target, host.name),
        )
    except agents.PasswordRefused:
        passwords.refused(target)
        raise
    except agents.PasswordMissing as error:
        why = passwords.astray()
        if not why:
            raise
        raise agents.PasswordMissing(
            f"{host.root} asks for a password, and {why}",
            host=host.name,
            advice="One descriptor serves all hosts. Where their passwords differ, the keyring has one for each (the"
            " guide, Secrets); or an administrator lets this user start just the agent, without a password:"
            " branchlab check --sudoers PROFILE.",
        ) from error
    passwords.right(target)
    return started


TOOLS: dict[Role, list[str]] = {
    Role.CLIENT: ["svn", "tc", "nft"],
    Role.PROXY: ["apache2", "htcacheclean", "squid", "nginx", "tc", "nft"],
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


def taking_part(hosts: Sequence[Connected], experiment: Experiment) -> tuple[Connected, ...]:
    """The clients that do this experiment's operations. Raises HostTrouble where they are not there."""
    try:
        chosen = Lab(name="", hosts=tuple(one.host for one in hosts)).taking_part(experiment)
    except LookupError as error:
        raise HostTrouble(
            str(error), advice='Give hosts role = "client", or mend `clients` in the experiment.'
        ) from error
    known = {one.name: one for one in hosts}
    return tuple(known[host.name] for host in chosen)


def only(hosts: Sequence[Connected], role: Role) -> Connected:
    """The first host with this role. Raises HostTrouble if there is none."""
    for one in hosts:
        if one.host.role is role:
            return one
    raise HostTrouble(f"the lab has no {role.value}", advice=f'Give one host role = "{role.value}".')
