"""What this host can do of a line, tried out, and the words for what it cannot or must not."""

from typing import Dict, List, Optional, Sequence

from ssh_agents import line_found, line_tc, netlink, protocol, qdisc_tree, tool
from ssh_agents.line_tc import Way
from ssh_agents.qdisc_tree import Tree

_TRIED_KINDS = {
    "htb": ["qdisc add dev lo root handle 1: htb", "class add dev lo parent 1: classid 1:1 htb rate 1mbit"],
    "tbf": ["qdisc add dev lo parent 1:1 handle 2: tbf rate 1gbit burst 1600 limit 10000"],
    "netem": ["qdisc add dev lo parent 2:1 handle 3: netem delay 1ms"],
    "ingress": ["qdisc add dev lo handle ffff: ingress"],
    "u32": ["filter add dev lo parent 1: protocol ip prio 1 u32 match u32 0 0 at 0 flowid 1:0"],
    "mirred": [
        "filter add dev lo parent ffff: protocol ip prio 1 u32 match u32 0 0 at 0"
        " action mirred egress redirect dev lo"
    ],
}
_FORWARDING = {4: "/proc/sys/net/ipv4/ip_forward", 6: "/proc/sys/net/ipv6/conf/all/forwarding"}
_ELSEWHERE = {
    "server": 'limit it at each office host instead (line = "office" in the profile), give a host between office '
    'and server role = "router"',
    "router": 'limit it at each office host instead (line = "office" in the profile)',
    "office": 'limit it on the server (line = "server" in the profile), give a host between office and server '
    'role = "router"',
}
"""Other places for a line than this one."""


def kinds() -> Dict[str, bool]:
    """What this kernel can do, tried out in a network namespace that ends with the trial."""
    lines: List[str] = []
    last: Dict[int, str] = {}
    for kind, tried in _TRIED_KINDS.items():
        lines += tried
        last.update({len(lines) - number: kind for number in range(len(tried))})
    able = dict.fromkeys(_TRIED_KINDS, True)
    try:
        tool.run(["unshare", "--net", "tc", "-force", "-batch", "-"], "\n".join(lines) + "\n")
    except protocol.Refused as refused:
        failed = [
            word.rsplit(":", 1)[-1] for word in refused.text.splitlines() if word.startswith("Command failed")
        ]
        if not failed and "Command failed" not in refused.text:
            raise
        for number in failed:
            able[last[int(number)]] = False
    try:
        tool.run(["unshare", "--net", "ip", "link", "add", line_tc.IFB, "type", "ifb"])
        able["ifb"] = True
    except protocol.Refused:
        able["ifb"] = False
    return able


def lacking(able: Dict[str, bool], place: str, leaving: bool = False) -> str:
    """What this host's kernel lacks of what a line needs, and what to do; empty if nothing."""
    needed = ("htb", "tbf", "u32") if leaving else ("htb", "tbf", "u32", "ingress", "mirred", "ifb")
    absent = [kind for kind in needed if not able[kind]]
    return lacking_text(absent, place) if absent else ""


def lacking_text(absent: List[str], place: str = "server") -> str:
    """The sentence for it."""
    text = "this host's kernel lacks what a line needs: %s" % ", ".join(absent)
    if absent == ["ifb"]:
        text += (
            ". Without IFB only what leaves this host can be limited: load it there (modprobe ifb), or limit each"
            ' direction where it is sent (line = "senders" in the profile), or ' + _ELSEWHERE[place]
        )
    return text


def not_forwarding(addresses: Sequence[str]) -> str:
    """Why a router is none for these addresses; empty if it forwards them."""
    for family in sorted({6 if ":" in address else 4 for address in addresses}):
        try:
            with open(_FORWARDING[family]) as file:
                forwards = file.read().strip() != "0"
        except FileNotFoundError:
            forwards = False
        if not forwards:
            return "this host does not forward IPv%d, so that it is no router: %s is 0" % (
                family,
                _FORWARDING[family],
            )
    return ""


def refusal(stands: Optional[Tree], trouble: str, replace: bool, place: str) -> Optional[str]:
    """Why this device must not be touched; None if it may. `trouble` is why what `stands` would not come back."""
    if stands is None or (replace and not trouble):
        return None
    text = "%s has queues that somebody set up (%s)" % (stands.device, qdisc_tree.words(stands))
    if trouble:
        text += ", and they could not be put back the same: %s. Either" % trouble
    else:
        text += "; they can be put back the same, so agree to their replacement for the time of a line, or"
    text += " %s, or give these queues up: " % _ELSEWHERE[place]
    roots = {parent for _, parent, handle, _, _, _ in stands.items if handle}
    where = [word for word, at in (("root", netlink.TC_ROOT), ("ingress", netlink.TC_INGRESS)) if at in roots]
    if place == "router":
        where = ["ingress"]
    return text + "; ".join("tc qdisc del dev %s %s" % (stands.device, word) for word in where)


def trouble_with(
    ask: netlink.Socket, stands: Optional[Tree], seen: line_found.Found, ways: Sequence[Way]
) -> str:
    """Why what stands there would not come back the same; empty if it would, or if nothing stands there."""
    if stands is None:
        return ""
    if all(way.ingress for way in ways):
        return "on a router nothing is replaced"
    return qdisc_tree.rehearsed(ask, stands, seen.links[stands.device])
