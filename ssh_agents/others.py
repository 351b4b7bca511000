"""Who else has connections between the lab's hosts now, so that the person can be asked before a line is applied."""

import os
from typing import Any, Dict, Iterable, List, Sequence, Set, Tuple

from ssh_agents import given, protocol, quiet
from ssh_agents.quiet import Connection

_LISTEN = 0x0A
Exempt = Sequence[Tuple[str, int]]


def look(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Connections of this host with the `peers` ({name, addresses}), as the kernel's tables have them now.

    Those over `exempt` pairs (the lab's own SSH) and `ports_of_ours` (of the experiment's own services) are
    told as `ours`; `counted` has the others, as {peer: {port: count}} with the port of the serving end, `udp` the
    same of UDP, where a socket is connected and the lower port is taken for the serving one. Changes nothing.
    Containers and networks other than this agent's are not seen.
    """
    if not os.path.exists("/proc/net/tcp"):
        raise protocol.Refused("unsupported", "connections cannot be looked at: not on this system")
    peers = _peers(args)
    exempt = given.exempt(args)
    ports = {given.port(port) for port in protocol.need(args, "ports_of_ours", list, [])}
    return {**told(quiet.open_now(), peers, exempt, ports), "udp": over_udp(quiet.open_now("udp"), peers)}


def told(found: List[Connection], peers: Dict[str, str], exempt: Exempt, ports: Set[int]) -> Dict[str, Any]:
    """The answer of `look`, from connections; `peers` is names by address."""
    serving = {one.here_port for one in found if one.state == _LISTEN}
    connections: List[Dict[str, Any]] = []
    counted: Dict[str, Dict[str, int]] = {}
    for one in found:
        if one.far not in peers or quiet.over(one):
            continue
        ours = is_ours(one, exempt, ports)
        connections.append(
            {
                "peer": peers[one.far],
                "local_port": one.here_port,
                "remote_port": one.far_port,
                "ours": ours,
            }
        )
        if not ours:
            # Keys of a JSON object are text.
            port = str(one.here_port if one.here_port in serving else one.far_port)
            of_peer = counted.setdefault(peers[one.far], {})
            of_peer[port] = of_peer.get(port, 0) + 1
    return {"connections": connections, "counted": counted}


def over_udp(found: List[Connection], peers: Dict[str, str]) -> Dict[str, Dict[str, int]]:
    """Of UDP sockets those that are connected with a peer, as `counted`; what only sends and receives names nobody."""
    counted: Dict[str, Dict[str, int]] = {}
    for one in found:
        if one.far in peers and one.far_port:
            of_peer, port = counted.setdefault(peers[one.far], {}), str(min(one.here_port, one.far_port))
            of_peer[port] = of_peer.get(port, 0) + 1
    return counted


def is_ours(one: Connection, exempt: Iterable[Tuple[str, int]], ports: Set[int]) -> bool:
    """True for the lab's own SSH, by far address and port at either end, and for its services' ports."""
    ends = {one.here_port, one.far_port}
    return bool(ends & ports) or any(one.far == address and port in ends for address, port in exempt)


def _peers(args: Dict[str, Any]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for one in protocol.need(args, "peers", list):
        if not isinstance(one, dict):
            raise protocol.Refused("bad-request", "a peer has a name and addresses, not %r" % (one,))
        name = protocol.need(one, "name", str)
        found.update(dict.fromkeys(given.addresses(one, "addresses"), name))
    return found
