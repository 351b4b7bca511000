"""What Help says, topic by topic, beside what is drawn."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """`key` is what a widget's property `help` names; `texts` are its paragraphs."""

    key: str
    title: str
    texts: tuple[str, ...]


STATES, WARM_UP, LINE, PROOF, SAFETY, KEYS = "states", "warm-up", "line", "proof", "safety", "keys"
TOPICS = (
    Topic(
        STATES,
        "What the proxy states mean",
        (
            "Disabled: the client asks the server itself. What the office has without a proxy; all else is held "
            "against it.",
            "0 % full: the proxy is asked, and has nothing yet. It fetches every object over the line and keeps it: "
            "the first morning, and never faster than without.",
            "90 % full: a tenth of the objects has changed since the cache was filled, and only these cross the line. "
            "The usual day. BranchLab fills the cache, then takes out that tenth, the same objects every time.",
            "100 % full: every object comes from inside the office. The best case. What no cache may keep, such as "
            "History or a Check-In, crosses the line all the same.",
            "Full is counted in objects of this operation’s own list, found by watching what it asks for; objects of "
            "others in the same cache are neither counted nor touched.",
        ),
    ),
    Topic(
        WARM_UP,
        "Why the first attempt is thrown away",
        (
            "The first attempt of a cell pays for what later ones find done: programs and disks are cold, names are "
            "looked up, connections opened for the first time. It measures the machine’s waking, not the line.",
            "It is done and shown, as a small hollow square, and counts nowhere. Three kept attempts are the least "
            "from which BranchLab gives a verdict; more attempts make smaller differences visible.",
            "With order “blocks”, every cell has had its first attempt before any has its second: what drifts over "
            "the run, such as other people’s traffic, meets all cells alike.",
        ),
    ),
    Topic(
        LINE,
        "How the line is made narrow",
        (
            "On the host between office and server (the server itself, a router, or each office host) the kernel lets "
            "packets to the other side out at the line’s rate only, and holds back the rest in a queue: download one "
            "way, upload the other. A delay holds each packet for its time; loss drops some.",
            "All clients and the proxy share the one line, as in an office. Traffic between client and proxy, "
            "BranchLab’s own SSH and everybody else’s connections to other places are not limited.",
            "The kernel is asked what it holds before and after every trial, and a probe sends bytes over it once: a "
            "line that is not what was asked for gives no figure.",
        ),
    ),
    Topic(
        PROOF,
        "When an attempt counts",
        (
            "An attempt is kept only with its proofs: the line read back, the cache as full as it should be, the bytes "
            "counted where they arrive fitting the state (with a full cache nearly nothing crosses the line), and the "
            "command’s own end.",
            "Without proof it is drawn hatched and counts nowhere. A failed one is a gap, never a zero.",
        ),
    ),
    Topic(
        SAFETY,
        "What happens to the hosts",
        (
            "Every change is written down on the host, with its undo, before it is made, and holds only while "
            "BranchLab renews a lease. When BranchLab, this machine or the network is gone, the host takes "
            "everything back by itself.",
            "What would touch other people’s connections, queues or cached objects is asked before anything is "
            "changed. “Take everything back” on the Lab page does so at any later time.",
        ),
    ),
    Topic(
        KEYS,
        "Keys",
        (
            "Ctrl K: find any action    ·    F1: help for what has the focus    ·    F6: from part to part",
            "Alt 1, 2, 3 …: pages    ·    Ctrl R: run    ·    F5: check the hosts    ·    Ctrl O: open",
            "Ctrl Z, Ctrl Shift Z: undo, redo    ·    Ctrl S: save    ·    Ctrl C: copy a table or chart, as text and "
            "as a picture    ·    S: sort a table by the column of the keyboard",
            "Arrows inside the matrix, the picture and lists    ·    +, −, 0: zoom    ·    Space: check    ·    "
            "Esc: the harmless way out",
        ),
    ),
)
