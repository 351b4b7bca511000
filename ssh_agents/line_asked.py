"""What a session asks of a line, checked before anything is touched."""

from typing import Any, Dict, NamedTuple, Tuple

from ssh_agents import given, line_tc, protocol, system
from ssh_agents.line_tc import Delay, Rates


class Asked(NamedTuple):
    """A checked request for a line."""

    place: str
    """one of `line_tc.PLACES`"""
    office: Tuple[str, ...]
    server: Tuple[str, ...]
    """empty where the line is held on the server itself"""
    exempt: Tuple[Tuple[str, int], ...]
    upload: Rates
    download: Rates
    delay: Delay
    port: str
    leaving: bool
    """True if only what leaves this host is to be limited; the other direction is held where it leaves"""
    apart: bool
    """True if no session of the lab goes over a network: its SSH is behind UNIX sockets"""
    replace: str
    """`qdisc_tree.fingerprint` of somebody's queues of which the user agreed that they are replaced; else empty"""

    def rates(self, upload: bool) -> Rates:
        """Of one direction."""
        return self.upload if upload else self.download

    @property
    def near(self) -> Tuple[str, ...]:
        """The addresses that the rules are about."""
        return self.server if self.place == "office" else self.office

    @property
    def far(self) -> Tuple[str, ...]:
        """Those at the other end, where both must match: a router forwards much else."""
        return self.server if self.place == "router" else ()

    @property
    def limited(self) -> bool:
        """True if rates are asked for."""
        return self.download.rate_bps is not None


def placed(args: Dict[str, Any]) -> Tuple[str, Tuple[str, ...], Tuple[str, ...]]:
    """Where the line is to be held, and the addresses of office and server."""
    place = protocol.need(args, "place", str, "server")
    if place not in line_tc.PLACES:
        raise protocol.Refused("bad-request", "a line is held at one of %s" % ", ".join(line_tc.PLACES))
    return (
        place,
        given.addresses(args, "office"),
        given.addresses(args, "server") if place != "server" else (),
    )


def asked(args: Dict[str, Any]) -> Asked:
    """The request for a line, checked without looking at the host's network. Refuses with `bad-request`."""
    sides = []
    for name in ("upload", "download"):
        rate = args.get(name + "_bps")
        if rate is not None and (not isinstance(rate, int) or isinstance(rate, bool) or rate < 8 or rate % 8):
            raise protocol.Refused(
                "bad-request",
                "%s_bps must be a whole number of bytes per second in bit/s, not %r" % (name, rate),
            )
        if rate is not None and rate >= line_tc.AS_IT_IS_BPS:
            raise protocol.Refused("bad-request", "%s_bps is above what can be limited: %r" % (name, rate))
        queue = protocol.need(args, "queue_%s_bytes" % name, int, 64_000)
        if not 1600 <= queue < 1 << 32:
            raise protocol.Refused(
                "bad-request", "a queue holds at least one packet (1600 bytes), not %d" % queue
            )
        sides.append(Rates(rate, queue))
    if (sides[0].rate_bps is None) != (sides[1].rate_bps is None):
        raise protocol.Refused("bad-request", "a line has both rates or none")
    delay = Delay(*(protocol.need(args, name, float, 0.0) for name in ("delay_s", "jitter_s", "loss")))
    if not (0 <= delay.jitter_s <= delay.delay_s <= 60 and 0 <= delay.loss <= 1):
        raise protocol.Refused("bad-request", "no such delay, jitter or loss: %s" % (tuple(delay),))
    exempt = given.exempt(args)
    leaving, apart = (protocol.need(args, name, bool, False) for name in ("leaving", "apart"))
    replace = protocol.need(args, "replace", str, "")
    if leaving and args.get("place") == "router":
        raise protocol.Refused("bad-request", "a router holds both directions")
    if delay.loss == 1 and not exempt and (not apart or system.session_from()):
        # Not taken at its word: a session that comes over a network is not apart from it.
        raise protocol.Refused(
            "bad-request", "100 % loss would cut this session off, since nothing is exempt"
        )
    port = args.get("delay_port") or ""
    if not isinstance(port, str):
        raise protocol.Refused("bad-request", "delay_port must be text, not %r" % (port,))
    return Asked(*placed(args), exempt, sides[0], sides[1], delay, port, leaving, apart, replace)


def words(asked: Asked) -> str:
    """The line for the journal: `64/128 kbit/s, 20 ms, 1 % lost`; upload first, as everywhere."""
    parts = []
    up, down = asked.upload.rate_bps, asked.download.rate_bps
    if up is not None and down is not None:
        by, unit = (1_000_000, "Mbit/s") if min(up, down) >= 1_000_000 else (1000, "kbit/s")
        parts.append("%g/%g %s" % (up / by, down / by, unit))
    delay = asked.delay
    if delay.delay_s:
        jitter = " ± %g ms" % (1000 * delay.jitter_s) if delay.jitter_s else ""
        parts.append("%g ms%s" % (1000 * delay.delay_s, jitter))
    if delay.loss:
        parts.append("%g %% lost" % (100 * delay.loss))
    return ", ".join(parts)
