"""Who works on a host and what they do there, in words: for the host's journal, and for whoever comes second."""

import math
import time
from typing import Any, Dict

from ssh_agents import protocol
from ssh_agents.lease import Lease

Owner = Dict[str, str]
"""Of a session: user, controller (their machine), run, purpose; and the session's own token, the same on all
hosts and for both agents of each. What was not given is empty."""
FIELDS = ("user", "controller", "run", "purpose", "session")
LONGEST = 200
UNDO_S = 5
"""A lease that lapses is taken back so many seconds later at the latest."""


def owner(args: Dict[str, Any]) -> Owner:
    """The request's checked `owner`."""
    given = protocol.need(args, "owner", dict, {})
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        raise protocol.Refused("bad-request", "an owner has %s, not %r" % (", ".join(FIELDS), unknown))
    return {name: line(protocol.need(given, name, str, ""))[:LONGEST] for name in FIELDS}


def owner_of(lease: Lease) -> Owner:
    """Who opened a lease."""
    found = lease.about().get("owner")
    return {name: str(found.get(name, "")) for name in FIELDS} if isinstance(found, dict) else {}


def who(of: Owner) -> str:
    """`alice on desk-7, run 2026… (Do we need the proxy?)`."""
    text = of.get("user") or "somebody"
    if of.get("controller"):
        text += " on " + of["controller"]
    if of.get("run"):
        text += ", run " + of["run"]
    if of.get("purpose"):
        text += " (%s)" % of["purpose"]
    return text


def held(lease: Lease) -> str:
    """Who holds this host, since when, and when that ends at the latest if nobody renews it."""
    since = str(lease.about().get("since", ""))
    return "%s, since %s; it ends by itself within %d s if that BranchLab is gone" % (
        who(owner_of(lease)),
        since[:16].replace("T", " ") + " UTC" if since else "an unknown time",
        max(0, math.ceil(lease.left_s())) + UNDO_S,
    )


def promised(entry: Dict[str, Any]) -> str:
    """A promised change in words; an entry's own "what" is such words."""
    if isinstance(entry.get("what"), str):
        return line(entry["what"])
    kind = str(entry.get("kind"))
    if kind == "line":
        return line("line on %s limited" % entry.get("device"))
    if kind == "traffic" and entry.get("how") == "iptables":
        return "bytes counted per host (iptables: chains BRANCHLAB-…)"
    if kind == "traffic":
        return "bytes counted per host (nftables: table inet branchlab)"
    if kind == "service":
        return line("%s started in %s" % (entry.get("service"), entry.get("folder")))
    if kind == "scratch":
        return line("scratch folder %s made" % entry.get("path"))
    return line("changed: %s" % kind)


def now() -> str:
    """The host's own time, UTC, ISO 8601, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())


def line(text: str) -> str:
    """Without anything that would end a line of a journal or act on a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)
