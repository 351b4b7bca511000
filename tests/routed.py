"""An office and a server with a router between, in namespaces, reached by real sshd behind UNIX sockets; for tests.

c1 .11, proxy .12, other .13 ── lan (10.78.1.0/24) ── router ── far (10.78.2.0/24) ── server .2, web .3
"""

from __future__ import annotations

import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import netns
import sshd

from lab.events import LineProved
from lab.model import Host, Lab, Line, Role
from lab.rig.hosts import Connected
from lab.rig.line import HeldLine
from lab.stop import Stop

PLACES = {
    "router": [("lan", 1), ("far", 1)],
    "c1": [("lan", 11)],
    "proxy": [("lan", 12)],
    "other": [("lan", 13)],
    "server": [("far", 2)],
    "web": [("far", 3)],
}
NUMBER = {"lan": 1, "far": 2}
SERVER, SERVER6, WEB = "10.78.2.2", "fd78:2::2", "10.78.2.3"
OFFICE, OFFICE6 = ["10.78.1.11", "10.78.1.12"], ["fd78:1::11", "fd78:1::12"]
POWERLESS = ["setpriv", "--bounding-set=-net_admin,-sys_admin", "--inh-caps=-all"]
"""What is run so has no rights over the network, whoever runs it."""


@dataclass(frozen=True)
class Routed:
    """The namespaces, and how to get into them."""

    net: netns.Net
    key: Path
    host_key: str
    sockets: dict[str, str]
    families: tuple[int, ...]

    def host(self, name: str, role: Role, root: str = "none", **given: str | None) -> Host:
        """One of them as a host of a lab."""
        net, number = PLACES[name][0]
        values: dict[str, str | None] = {
            "address": f"10.78.{NUMBER[net]}.{number}" if 4 in self.families else None,
            "address6": f"fd78:{NUMBER[net]}::{number}" if 6 in self.families else None,
            **given,
        }
        if role is Role.ROUTER:
            values |= {"address": None, "address6": None}
        return Host(
            name=name,
            role=role,
            ssh=f"unix:{self.sockets[name]}",
            root=root,
            key=str(self.key),
            host_key=self.host_key,
            **values,  # type: ignore[arg-type]
        )

    def lab(self, line: str = "", services: str | None = None, **roots: str) -> Lab:
        """All four; `roots` says on which of them BranchLab may change things, `services` is for the server's own."""
        roles = {"server": Role.SERVER, "proxy": Role.PROXY, "c1": Role.CLIENT, "router": Role.ROUTER}
        hosts = [
            self.host(name, role, roots.get(name, "none"), services=services if role is Role.SERVER else None)
            for name, role in roles.items()
            if name != "router" or "router" in roots
        ]
        return Lab(name="routed", hosts=tuple(hosts), line=line)


@contextmanager
def office(folder: Path, families: tuple[int, ...] = (4, 6), powerless: bool = True) -> Iterator[Routed]:
    """The picture above; `powerless` takes from all but the router what it takes to change a network."""
    with netns.net() as net, ExitStack() as stack:
        for name in NUMBER:
            net.host(name)
            net.run(name, "ip", "link", "add", "switch", "type", "bridge", "forward_delay", "0")
            net.run(name, "ip", "link", "set", "switch", "up")
        for name, cables in PLACES.items():
            net.host(name)
            for number, (switch, last) in enumerate(cables):
                net.tie(name, f"eth{number}", switch, f"p-{name}")
                net.run(switch, "ip", "link", "set", f"p-{name}", "master", "switch")
                for family in families:
                    _addressed(net, name, f"eth{number}", NUMBER[switch], last, family)
        for key in ("ipv4.ip_forward", "ipv6.conf.all.forwarding"):
            net.run("router", "sysctl", "-qw", f"net.{key}=1")
        server = sshd.made(folder / "sshd")
        sockets = {
            name: stack.enter_context(_reached(net, name, server, folder, powerless and name != "router"))
            for name in ("router", "c1", "proxy", "server")
        }
        yield Routed(net, server.key, server.host_key(), sockets, families)


def _addressed(net: netns.Net, name: str, device: str, number: int, last: int, family: int) -> None:
    there = 3 - number
    if family == 4:
        net.address(name, device, f"10.78.{number}.{last}/24")
        way = [f"10.78.{there}.0/24", "via", f"10.78.{number}.1"]
    else:
        net.address(name, device, f"fd78:{number}::{last}/64")
        way = [f"fd78:{there}::/64", "via", f"fd78:{number}::1"]
    if name != "router":
        net.run(name, "ip", "route", "add", *way)


@contextmanager
def _reached(net: netns.Net, name: str, server: sshd.Sshd, folder: Path, powerless: bool) -> Iterator[str]:
    """A socket; whoever connects to it talks to an sshd within the namespace."""
    words = [str(sshd.SSHD), "-i", "-f", f"{server.folder}/config", "-E", f"{server.folder}/log"]
    argv = net.argv(name, *(POWERLESS if powerless else []), *words)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            subprocess.Popen(argv, stdin=self.request, stdout=self.request).wait()

    path = str(folder / f"{name}.sock")
    with socketserver.ThreadingUnixStreamServer(path, Handler) as sockets:
        thread = threading.Thread(target=sockets.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield path
        finally:
            sockets.shutdown()
            thread.join()


def proved(line: HeldLine, wanted: Line, client: Connected) -> LineProved:
    """A probe of the line. A busy machine can make a transfer slower, never faster: too slow is tried again."""
    for _ in range(4):
        found = line.prove(wanted, client, Stop())
        pairs = (
            (found.achieved_upload_bps, wanted.upload_bps),
            (found.achieved_download_bps, wanted.download_bps),
        )
        if all(rate and asked and rate >= 0.9 * asked for rate, asked in pairs):
            break
    return found
