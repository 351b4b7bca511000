"""The line held to what was asked: applied on the server's side, read back, proved by a probe, lifted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab import units
from lab.agents import Agent
from lab.errors import AgentRefused, BadInput, HostLacks, HostTrouble, TrialFailed
from lab.events import LineProved
from lab.model import Line, Role
from lab.rig import cures, readback
from lab.rig.hosts import Connected, everywhere, in_role, only
from lab.rig.readback import Readback
from lab.stop import Stop

PROBE_S = 2.0
"""A rate is probed for at least this long, in seconds, and with at least `PROBE_PACKETS`."""
PROBE_PACKETS = 60
PACKET_PAYLOAD = 1448
"""TCP payload of a full packet with time stamps over IPv4 (1500 - 20 - 32)."""
PINGS = 200
PING_BYTES = 64
PING_HEADERS = 42
"""UDP, IPv4 and Ethernet headers of a ping."""
PING_LOAD = 0.1
"""Pings use at most this share of the slower direction."""


@dataclass(frozen=True, slots=True)
class Other:
    """Connections between two hosts of the lab that are none of BranchLab's, told by the port that serves."""

    host: str
    peer: str
    port: int
    count: int
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True)
class Standing:
    """Queues that somebody set up where the line would be. `trouble` is why they would not come back the same."""

    host: str
    device: str
    text: str
    trouble: str = ""
    mark: str = ""
    """the same for the very same queues alone"""

    @property
    def replaceable(self) -> bool:
        """True if it was rehearsed to come back the same, so that it is enough that the user agrees."""
        return not self.trouble


def without_ifb(one: Connected, word: Mapping[str, Any]) -> str:
    """The command that loads IFB, where the kernel lacks nothing else of what a line needs; else empty."""
    kinds = word.get("kinds") or {}
    absent = [kind for kind in ("htb", "tbf", "u32", "ingress", "mirred", "ifb") if not kinds.get(kind, True)]
    return cures.module(one, "ifb") if word["refuse"] and absent == ["ifb"] else ""


class HeldLine:
    """The line between the office hosts and the server, held at `place` (one of `lab.model.PLACES`).

    On the server or a router it is one line that all office hosts share; at the office each host has its own.
    Of `senders`, the server holds the download, shared, and each office host its own upload.
    With `replace`, which is given only after the user agreed, queues that somebody set up on the device are
    replaced for as long as a line is applied: those that `refuse` saw, and none that come later.
    """

    def __init__(self, hosts: Sequence[Connected], *, replace: bool = False, place: str = "") -> None:
        routers = in_role(hosts, Role.ROUTER)
        self.server = only(hosts, Role.SERVER)
        self.place = place or ("router" if routers else "server")
        self._office = in_role(hosts, Role.CLIENT) + in_role(hosts, Role.PROXY)
        self._router = routers[0].name if routers else ""
        self.holders = {
            "server": (self.server,),
            "router": routers[:1],
            "office": self._office,
            "senders": (self.server, *self._office),
        }[self.place]
        self._exempt = [entry for one in hosts for entry in one.exempt()]
        self._replace = replace
        self._bound: dict[str, str] | None = None
        self._agreed: dict[str, str] = {}  # holder -> what `line.check` calls the queues that may be replaced
        # Those behind a UNIX socket have no SSH on any network; of the others it must be known what to leave alone.
        networked = [one for one in hosts if not _behind_socket(one)]
        self._apart = not networked
        self._unknown = [one.name for one in networked if not one.exempt()]
        self._redirected = [one for one in networked if one.redirected]
        self.applied: Line | None = None

    @property
    def holder(self) -> Connected:
        """The host that holds the line; of several the first. Raises HostTrouble without one."""
        if not self.holders:
            raise HostTrouble(
                f"no host can hold the line, which the profile wants at the {self.place}",
                advice='Write line = "server", or give a host that role.',
            )
        return self.holders[0]

    @property
    def shared(self) -> bool:
        """True if all office hosts share this line."""
        return len(self.holders) < 2

    def what(self, name: str) -> str:
        """What a host of this name limits, in words."""
        if self.shared:
            return "the line"
        if self.place == "senders":
            return "the download" if name == self.server.name else "its own upload (per host, not shared)"
        return "its own line (per host, not shared)"

    def limiting(self, line: Line) -> list[tuple[Connected, str]]:
        """What each holder does to hold this line, in words for the account; nothing for the line as it is."""
        if not line.limited and not line.delayed:
            return []
        return [(one, f"limiting {self.what(one.name)} to {units.line_text(line)}") for one in self.holders]

    def probers(self, client: Connected) -> tuple[Connected, ...]:
        """The hosts from which it is to be probed; the client's probe comes last, and is the one that stays."""
        others = () if self.shared else [one for one in reversed(self._office) if one is not client]
        return (*others, client)

    @property
    def office(self) -> list[str]:
        """The addresses that are limited."""
        return [address for one in self._office for address in one.addresses]

    def check(self, stop: Stop) -> dict[str, Any]:
        """What the holder's kernel can do, and why it would refuse; of several, one that would. Changes nothing."""
        words = self.checks(stop)
        return next((word for word in words.values() if word["refuse"]), words[self.holder.name])

    def checks(self, stop: Stop) -> dict[str, dict[str, Any]]:
        """As `check`, of every holder by its name."""
        self._refuse_nobody()
        requests = [
            (one, one.privileged, "line.check", {**self._where(one), "replace": self._replace})
            for one in self._held()
        ]
        try:
            return everywhere(requests, stop)
        except AgentRefused as error:
            if error.kind == "unsupported":  # no place here where it could be held
                error.advice = error.advice or self.advice({})
            raise

    def _held(self) -> tuple[Connected, ...]:
        """The holders, at least one."""
        return (self.holder, *self.holders[1:])

    def standing(self, stop: Stop) -> tuple[Standing, ...]:
        """What somebody set up where the line would be, on each holder. Changes nothing."""
        return tuple(
            Standing(
                name,
                word["device"],
                word["stands"],
                word["replace_trouble"] or "",
                word.get("tree") or "",
            )
            for name, word in self.checks(stop).items()
            if word["stands"]
        )

    def _replaced(self, holder: str) -> str:
        """What the agent may replace there: the queues of the run's beginning, if they are those that were shown."""
        tree = self._agreed.get(holder, "")
        return tree if self._bound is None or self._bound.get(holder) == tree else ""

    def bind(self, standing: Sequence[Standing]) -> None:
        """From now on replace these queues and no others, whatever comes in their place."""
        self._bound = {one.host: one.mark for one in standing}

    def others(self, hosts: Sequence[Connected], stop: Stop, ports: Iterable[int] = ()) -> tuple[Other, ...]:
        """Who else has connections between these hosts now; `ports` are those of BranchLab's own services."""
        requests = [
            (one, one.root or one.agent, "others", self._asking(one, hosts, ports))
            for one in hosts
            if not one.facts.get("windows")  # which shows nobody its connections; the other end does
        ]
        words = everywhere(requests, stop)
        over_tcp = merged_others({name: word["counted"] for name, word in words.items()})
        over_udp = merged_others({name: word.get("udp", {}) for name, word in words.items()})
        return over_tcp + tuple(replace(one, protocol="UDP") for one in over_udp)

    def refuse_shared(self, ports: Iterable[int]) -> None:
        """Raise BadInput where what is exempt for SSH would exempt a service at one of these `ports`, too."""
        shared = [one for one in self._redirected if one.connection.target.port in set(ports)]
        for one in shared[:1]:
            port = one.connection.target.port
            raise BadInput(
                f"SSH to {one.name} comes in by port {port}, as what is to be measured does: to leave SSH alone would"
                " be neither to limit nor to count that",
                host=one.name,
                advice="Name in `ssh` a port that is SSH's alone, such as sshd's own.",
            )

    def _asking(self, one: Connected, hosts: Sequence[Connected], ports: Iterable[int]) -> dict[str, Any]:
        peers = [
            {"name": peer.name, "addresses": peer.addresses}
            for peer in hosts
            if peer is not one and peer.addresses
        ]
        return {"peers": peers, "exempt": self._exempt, "ports_of_ours": sorted(set(ports))}

    def refuse(self, lines: Sequence[Line], stop: Stop) -> None:
        """Raise HostLacks if one of these lines cannot be made here. Changes nothing."""
        if not any(line.limited or line.delayed for line in lines):
            return
        words = self.checks(stop)
        if self._replace:
            self._agreed = {name: word.get("tree", "") for name, word in words.items()}
        if self._unknown and any(line.loss >= 1 for line in lines):
            raise HostLacks(
                f"100 % loss would cut off BranchLab's own SSH to {', '.join(self._unknown)}",
                tried="SSH_CONNECTION there, to leave that connection alone: it is not set",
                advice="Log in without a program between sshd and the shell, or leave 100 % loss out.",
            )
        if self._redirected and any(line.loss >= 1 for line in lines):
            raise HostLacks(
                "100 % loss may cut off BranchLab's own SSH to"
                f" {', '.join(one.name for one in self._redirected)}: sshd there sees another address or port than was"
                " dialled (a redirect, a relay, NAT), so it is not known for sure what to leave alone",
                tried="SSH_CONNECTION there, held against what was dialled here",
                advice="Name sshd's own address and port in `ssh`, or leave 100 % loss out.",
            )
        for one in self._held():
            self._refuse_on(one, words[one.name], lines)

    def _refuse_on(self, one: Connected, word: dict[str, Any], lines: Sequence[Line]) -> None:
        if word["refuse"]:
            lacks = HostLacks(str(word["refuse"]), host=one.name, advice=self.advice(word))
            lacks.command = without_ifb(one, word)
            raise lacks
        if (
            any(line.delayed and not _severed(line) for line in lines)
            and not word["kinds"].get("netem")
            and not (one.host.delay and word["tun"])
        ):
            lacks = HostLacks(
                "delay, jitter or loss was asked, and this host can do none of them",
                host=one.name,
                tried="netem in the kernel; /dev/net/tun for wirefilter",
                advice="Leave delay, jitter and loss out, or load the kernel's module sch_netem there, as root:",
            )
            lacks.command = cures.module(one, "sch_netem")
            raise lacks

    def advice(self, word: Mapping[str, Any]) -> str:
        """What to do where `checks` said in `word` why a host refuses: agree, or hold the line elsewhere."""
        ways = (
            [] if self.place == "office" else ['write line = "office": each office host holds its own line']
        )
        if self._router and self.place != "router":
            ways.append(f'write line = "router": {self._router} holds the line')
        elif not self._router:
            ways.append('give a Linux machine between office and server role = "router": it holds the line')
        if word.get("replaceable"):
            ways.insert(0, "agree to the replacement: branchlab run --agree qdisc PROFILE")
        else:
            ways.append('measure the line as it is: lines = ["as it is"]')
        text = "; or ".join(ways)
        return f"{text[0].upper()}{text[1:]}."

    def apply(self, line: Line, stop: Stop) -> Readback:
        """Hold the hosts to `line`; what the kernels then say. Raises AgentRefused or TrialFailed."""
        if not line.limited and not line.delayed:
            self.lift(stop)
            return self.read(stop)
        self.applied = line
        requests = [(one, one.privileged, "line.apply", self._wanted(one, line)) for one in self._held()]
        return self._joined({name: readback.of(word) for name, word in everywhere(requests, stop).items()})

    def read(self, stop: Stop) -> Readback:
        """What the kernels say now; of several, one that matches only if all are the same."""
        words = everywhere(self._asked_of_holders("line.read"), stop)
        reads = {name: readback.of(word) for name, word in words.items()}
        # On a host that may not be changed nothing of ours can be.
        return self._joined({one.name: reads.get(one.name, readback.NOTHING) for one in self._held()})

    def _joined(self, reads: dict[str, Readback]) -> Readback:
        """What all holders say, as one line."""
        if self.place == "senders":
            return readback.halves(reads.pop(self.server.name), readback.together(reads))
        return readback.together(reads)

    def lift(self, stop: Stop) -> None:
        """Take the limit away. Succeeds where there is none, and where none can be."""
        everywhere(self._asked_of_holders("line.lift"), stop)
        self.applied = None

    def _asked_of_holders(self, verb: str) -> list[tuple[Connected, Agent, str, dict[str, Any]]]:
        return [(one, one.root, verb, {}) for one in self._held() if one.root is not None]

    def prove(self, line: Line, client: Connected, stop: Stop) -> LineProved:
        """Probe rate and round trip of the line as it is applied now."""
        read = self.read(stop)
        if not read.matches(line) and line.limited:
            raise TrialFailed(f"the line read back is not the line asked: {read}", host=self.holder.name)
        with self.server.agent.stream("probe.serve", {"address": self.server.addresses[0]}) as serving:
            port = listening(serving, stop)
            where = {"address": self.server.addresses[0], "port": port}
            pings = client.agent.ask("probe.ping", {**where, **_pinging(line)}, timeout_s=300, stop=stop)
            # Where everything is lost, no transfer would end.
            rates = (None, None) if line.loss >= 1 else (line.download_bps, line.upload_bps)
            down = _probed(client.agent, where, "down", rates[0], stop)
            up = _probed(client.agent, where, "up", rates[1], stop)
            serving.cancel()
        return LineProved(
            line=line,
            read_upload_bps=read.upload_bps,
            read_download_bps=read.download_bps,
            achieved_upload_bps=up,
            achieved_download_bps=down,
            round_trip_s=pings["median_s"],
            round_trip_low_s=pings["min_s"],
            round_trip_high_s=pings["max_s"],
            loss=1 - pings["received"] / pings["sent"],
            method=read.method,
        )

    def _refuse_nobody(self) -> None:
        if not self.office:
            raise HostLacks(
                "no office host has an address, so nothing could be limited",
                advice='Write address = "…" under each client and proxy of the profile.',
            )

        if self.place != "server" and not self.server.addresses:
            raise HostLacks(
                "the server has no address, so nothing could be limited",
                advice=f'Write address = "…" under [hosts.{self.server.name}].',
                host=self.server.name,
            )

    def _where(self, one: Connected) -> dict[str, Any]:
        """What tells a holder which packets are meant."""
        half = {"leaving": True} if self.place == "senders" else {}
        if self.place == "server" or (half and one is self.server):
            return {"office": self.office, **half}
        if half:
            return {"place": "office", "office": one.addresses, "server": self.server.addresses, **half}
        office = one.addresses if self.place == "office" else self.office
        return {"place": self.place, "office": office or self.office, "server": self.server.addresses}

    def _wanted(self, one: Connected, line: Line) -> dict[str, Any]:
        self._refuse_nobody()
        wanted = {
            **self._where(one),
            "exempt": self._exempt,
            "upload_bps": line.upload_bps,
            "download_bps": line.download_bps,
            "queue_upload_bytes": line.queue_for(line.upload_bps or 0),
            "queue_download_bytes": line.queue_for(line.download_bps or 0),
            "delay_s": line.delay_s,
            "jitter_s": line.jitter_s,
            "loss": line.loss,
            "apart": self._apart,
            "replace": self._replaced(one.name),
        }
        if one.host.delay:
            wanted["delay_port"] = one.host.delay
        return wanted


def merged_others(counted: Mapping[str, Mapping[str, Mapping[str, int]]]) -> tuple[Other, ...]:
    """Of what each host counted ({host: {peer: {port: count}}}), each connection once.

    Both ends see it; one end may not be asked, or see fewer, so the larger count of the two stands.
    """
    found: dict[tuple[frozenset[str], int], Other] = {}
    for host, peers in sorted(counted.items()):
        for peer, ports in sorted(peers.items()):
            for port, count in ports.items():
                key = (frozenset((host, peer)), int(port))
                if key not in found or found[key].count < count:
                    found[key] = Other(host, peer, int(port), count)
    return tuple(sorted(found.values(), key=lambda one: (one.host, one.peer, one.port)))


def _behind_socket(one: Connected) -> bool:
    return bool(one.connection.target.path)


def _severed(line: Line) -> bool:
    """100 % loss and nothing else, which needs no netem."""
    return line.loss >= 1 and not (line.delay_s or line.jitter_s)


def listening(serving: Any, stop: Stop) -> int:
    """The port on which a `probe.serve` under way listens. Raises TrialFailed if it ends before that."""
    for event, data in serving:
        if event == "listening":
            return int(data["port"])
        stop.check()
    raise TrialFailed("the probe ended before it listened")


def _probed(
    agent: Agent, where: dict[str, Any], direction: str, rate: int | None, stop: Stop
) -> float | None:
    """Payload bit/s in one direction; None on a line that is not limited there."""
    if rate is None:
        return None
    size = max(PROBE_PACKETS * PACKET_PAYLOAD, round(rate / 8 * PROBE_S))
    word = agent.ask(
        "probe.fetch",
        {**where, "bytes": size, "direction": direction},
        timeout_s=60 + 20 * size * 8 / rate,
        stop=stop,
    )
    return float(word["rate_bps"])


def _pinging(line: Line) -> dict[str, Any]:
    rate = min(line.upload_bps or 10**8, line.download_bps or 10**8)
    bits = (PING_BYTES + PING_HEADERS) * 8
    return {"count": PINGS, "size": PING_BYTES, "interval_s": max(0.002, bits / (rate * PING_LOAD))}
