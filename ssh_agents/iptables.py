"""Counts IP bytes with iptables where there is no nft: rules without a target, in chains of our own in table mangle.

A rule's comment is the name that an nftables counter would have. Both backends of iptables (legacy and nf_tables)
read the same text. What others have in table mangle stays as it is; a jump to our chains comes first.
"""

import re
from typing import Dict, Iterable, List, Sequence, Tuple

from ssh_agents import protocol, tool

PREFIX = "BRANCHLAB-"
HOOKS = (("INPUT", "I"), ("OUTPUT", "O"), ("FORWARD", "F"))
"""The built-in chains of table mangle from which ours are jumped to. INPUT comes after an IFB's queue."""
PROGRAMS = {
    4: ("iptables", "iptables-restore", "iptables-save"),
    6: ("ip6tables", "ip6tables-restore", "ip6tables-save"),
}
MOST_JUMPS = 50
NEIGHBOURS = (135, 136)
"""ICMPv6 types of neighbour discovery (RFC 4861, 4.3 and 4.4), which is nobody's traffic, as ARP is none of IPv4."""
_RULE = re.compile(r'\[(\d+):(\d+)\] -A BRANCHLAB-[IOF] .*--comment "?(\w+)"?')

Rule = Tuple[str, Sequence[str], str]
"""The letter of a chain, the rule's conditions, the counter's name; an empty name is not counted and ends the chain."""


def there() -> bool:
    """True if this host has what it takes for IPv4."""
    return all(tool.found(name) for name in PROGRAMS[4])


def begin(rules: Iterable[Tuple[int, Rule]]) -> None:
    """Count by these rules (each with its family, 4 or 6), from zero, in place of an earlier set."""
    rules = list(rules)
    for family in PROGRAMS:
        mine = [rule for number, rule in rules if number == family]
        end(family)
        if mine:
            _, restore, _ = PROGRAMS[family]
            tool.run([restore, "--noflush", "--wait"], ruleset(mine))


def ruleset(rules: Iterable[Rule]) -> str:
    """What iptables-restore reads: our chains made and filled, and jumped to, in one transaction."""
    rules = list(rules)
    used = [(hook, letter) for hook, letter in HOOKS if any(rule[0] == letter for rule in rules)]
    lines = ["*mangle", *(":%s%s - [0:0]" % (PREFIX, letter) for _, letter in used)]
    for letter, conditions, name in rules:
        what = ["-m", "comment", "--comment", name] if name else ["-j", "RETURN"]
        lines.append(" ".join(["-A", PREFIX + letter, *conditions, *what]))
    lines += ["-I %s 1 -j %s%s" % (hook, PREFIX, letter) for hook, letter in used]
    return "\n".join([*lines, "COMMIT", ""])


def counters() -> Dict[str, Tuple[int, int]]:
    """Bytes and packets by counter's name; empty where nobody counts. Both families are added up."""
    found: Dict[str, Tuple[int, int]] = {}
    for family in PROGRAMS:
        for name, (size, packets) in parsed(_saved(family)).items():
            before = found.get(name, (0, 0))
            found[name] = (before[0] + size, before[1] + packets)
    return found


def parsed(text: str) -> Dict[str, Tuple[int, int]]:
    """The same from what `iptables-save -c -t mangle` printed: `[packets:bytes] -A CHAIN …`."""
    found: Dict[str, Tuple[int, int]] = {}
    for line in text.splitlines():
        match = _RULE.match(line)
        if match:
            before = found.get(match[3], (0, 0))
            found[match[3]] = (before[0] + int(match[2]), before[1] + int(match[1]))
    return found


def counting(family: int) -> bool:
    """True if there are chains of ours."""
    return ":%s" % PREFIX in _saved(family)


def end(family: int) -> bool:
    """Take our jumps and chains away, whoever made them; True if there were any. Idempotent."""
    program = PROGRAMS[family][0]
    text = _saved(family)
    ours = [letter for _, letter in HOOKS if ":%s%s " % (PREFIX, letter) in text]
    if not ours:
        return False
    for hook, letter in HOOKS:
        if letter in ours:
            jump = ["-j", PREFIX + letter]
            for _ in range(min(MOST_JUMPS, text.count("-A %s -j %s%s\n" % (hook, PREFIX, letter)))):
                tool.run([program, "--wait", "-t", "mangle", "-D", hook, *jump])
            tool.run([program, "--wait", "-t", "mangle", "-F", PREFIX + letter])
            tool.run([program, "--wait", "-t", "mangle", "-X", PREFIX + letter])
    return True


def _saved(family: int) -> str:
    """Table mangle as text; empty where this family's program or table is not there."""
    save = PROGRAMS[family][2]
    if tool.found(save) is None:
        return ""
    try:
        return tool.run([save, "-c", "-t", "mangle"])
    except protocol.Refused:
        if family == 6:  # a kernel without IPv6
            return ""
        raise


def family(address: str) -> int:
    """4 or 6."""
    return 6 if ":" in address else 4


def rules(
    peers: Sequence[Tuple[str, Sequence[str]]],
    exempt: Iterable[Tuple[str, int]],
    ways: Iterable[Tuple[str, str, str]],
    named: Dict[str, Tuple[str, str]],
) -> List[Tuple[int, Rule]]:
    """Rules for `peers` (names of counters for in and out in `named`), past the `exempt` addresses and ports.

    `ways` are (source, target, name) of what a router passes on.
    """
    made: List[Tuple[int, Rule]] = []
    sides = [letter for letter, wanted in (("I", peers), ("O", peers), ("F", list(ways))) if wanted]
    for address, port in exempt:
        for letter in sides:
            for side in {"I": ("-s",), "O": ("-d",), "F": ("-s", "-d")}[letter]:
                for end_ in ("--sport", "--dport"):
                    made.append(
                        (family(address), (letter, [side, address, "-p", "tcp", end_, str(port)], ""))
                    )
    for letter in (
        ("I", "O") if any(":" in address for _, addresses in peers for address in addresses) else ()
    ):
        for kind in NEIGHBOURS:
            made.append((6, (letter, ["-p", "ipv6-icmp", "--icmpv6-type", str(kind)], "")))
    for name, addresses in peers:
        for address in addresses:
            made.append((family(address), ("I", ["-s", address], named[name][0])))
            made.append((family(address), ("O", ["-d", address], named[name][1])))
    for source, target, name in ways:
        made.append((family(source), ("F", ["-s", source, "-d", target], name)))
    return made
