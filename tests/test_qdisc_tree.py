"""Queues that somebody set up: read, told, rehearsed, replaced for the time of a line, and back the same."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from netns import CODE, ROOT, Agent, FailedError, Net, net

from ssh_agents import netlink, qdisc_tree, watch
from ssh_agents.lease import Lease
from ssh_agents.qdisc_tree import CLASS, FILTER, QDISC, Tree

OFFICE = ["10.77.0.11"]
LINE = {"office": OFFICE, "upload_bps": 512_000, "download_bps": 1_024_000}

HTB = """\
qdisc add dev {0} root handle 1: htb default 20
class add dev {0} parent 1: classid 1:1 htb rate 100mbit
class add dev {0} parent 1:1 classid 1:10 htb rate 33333kbit ceil 100mbit burst 12345 cburst 3333 prio 2 quantum 3000
class add dev {0} parent 1:1 classid 1:20 htb rate 7mbit ceil 9mbit
qdisc add dev {0} parent 1:10 handle 10: pfifo limit 77
qdisc add dev {0} parent 1:20 handle 20: tbf rate 3333333bit burst 4321 latency 70ms
filter add dev {0} parent 1: protocol ip prio 3 u32 match ip dst 10.0.0.5/32 match ip dport 80 0xffff flowid 1:10
filter add dev {0} parent 1: protocol ipv6 prio 4 u32 match ip6 dst fd00::/16 flowid 1:20
filter add dev {0} parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:10
filter add dev {0} parent 1: protocol ip prio 1 u32 match ip tos 0x20 0xff flowid 1:20
"""
EXCHANGED = HTB + "filter del dev {0} parent 1: protocol ipv6 prio 4\n"
"""The tables of its filters are not numbered from the first on any more."""
TBF = """\
qdisc add dev {0} root handle 5: tbf rate 1234567bit burst 5000 limit 33333 peakrate 5mbit mtu 1600
qdisc add dev {0} parent 5:1 handle 6: bfifo limit 9999
"""
PFIFO = "qdisc add dev {0} root handle 9: pfifo limit 13\nqdisc add dev {0} ingress\n"
PFIFO_FAST = "qdisc add dev {0} root pfifo_fast\n"
PRIO = """\
qdisc add dev {0} root handle 1: prio bands 4
qdisc add dev {0} parent 1:4 handle 40: pfifo limit 9
filter add dev {0} parent 1: protocol ip prio 1 u32 match ip tos 0x10 0xff flowid 1:4
"""
NETEM = "qdisc add dev {0} root handle 1: netem delay 1ms\n"
TREES = {
    "htb": HTB,
    "exchanged": EXCHANGED,
    "tbf": TBF,
    "pfifo and a bare ingress": PFIFO,
    "fast": PFIFO_FAST,
    "prio": PRIO,
}


@dataclass
class Bench:
    """A server `a` with a device eth0 towards the office, under a lease."""

    net: Net
    root: Agent
    device: str

    def tc(self, *lines: str) -> None:
        for line in lines:
            self.net.run("a", "tc", *line.format(self.device).split())

    def set_up(self, text: str) -> None:
        """Skips where this kernel has no queue of a kind."""
        for line in text.splitlines():
            words = line.format(self.device).split()
            said = self.net.run("a", "tc", *words, check=False)
            if "kind is unknown" in said:
                pytest.skip(f"this kernel has no such queue: {line}")
            assert not said.strip() or "quantum" in said, said

    def dump(self) -> str:
        """What tc shows, without counters."""
        told = []
        for argv in (["qdisc"], ["class"], ["filter", "parent", "1:"], ["filter", "parent", "ffff:"]):
            words = ["tc", argv[0], "show", "dev", self.device, *argv[1:]]
            told.append(self.net.run("a", *words, check=False))
        text = "\n".join(told)
        return "\n".join(line.split(" direct_packets_stat ")[0] for line in text.splitlines())

    def agreed(self) -> str:
        """What `line.apply` may replace, after a person agreed to what stands there now."""
        tree: str = self.root.ask("line.check", office=OFFICE)["tree"]
        return tree

    def tree(self, agent: str = "a") -> str:
        return self.net.run(agent, "tc", "qdisc", "show", "dev", self.device)


TBF = "qdisc add dev {0} root handle 8: tbf rate 50mbit burst 16000 limit 640000"


@contextlib.contextmanager
def bench_of(device: str = "eth0", lease_s: float = 300) -> Iterator[Bench]:
    with net() as made:
        made.host("a")
        made.host("b")
        made.tie("a", device, "b", "eth0")
        made.address("a", device, "10.77.0.1/24", "fd77::1/64")
        made.address("b", "eth0", "10.77.0.11/24", "fd77::11/64")
        root = made.agent("a", privileged=True)
        root.ask("lease.open", lease_s=lease_s)
        yield Bench(made, root, device)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with bench_of() as made:
        yield made


# --- without any kernel


def _message(handle: int, parent: int, kind: str, options: bytes = b"", *more: bytes) -> bytes:
    head = struct.pack("=BBHiIII", 0, 0, 0, 7, handle, parent, 2)
    parts = qdisc_tree._attribute(1, kind.encode() + b"\0") + (
        qdisc_tree._attribute(2, options) if options else b""
    )
    return head + parts + b"".join(more)


class Stated(netlink.Socket):
    """A kernel that says what it is told to: it has more kinds of queues than the one at hand."""

    def __init__(self, queues: list[bytes]) -> None:
        self.queues, self.told = queues, list[tuple[int, bytes, int]]()

    def dump(self, kind: int, body: bytes) -> list[bytes]:
        return self.queues if kind == QDISC + 2 else []

    def tell(self, kind: int, body: bytes, how: int = 0) -> None:
        self.told.append((kind, body, how))


LINK = netlink.Link(7, "eth0", "", True, 1500, 0)
# Laid out as linux/pkt_sched.h has them, not recorded from a kernel: fq_codel with target, limit, interval, ecn,
# quantum, drop batch, memory and flows; fq with limits, quantum and buckets; sfq in the long form.
FQ_CODEL = b"".join(
    struct.pack("=HHI", 8, number, value)
    for number, value in (
        (1, 4999),
        (2, 10240),
        (3, 99_999),
        (4, 1),
        (6, 1514),
        (8, 64),
        (9, 33_554_432),
        (5, 1024),
    )
)
FQ = b"".join(
    struct.pack("=HHI", 8, number, value) for number, value in ((1, 10_000), (2, 100), (3, 3028), (8, 10))
)
SFQ = struct.pack("=IiIII", 1514, 10, 127, 1024, 128) + bytes(52)


def test_kinds_that_this_kernel_lacks_are_asked_for_as_they_were_dumped() -> None:
    """Only by the layout of dumps: mq with fq_codel, fq and sfq below, and one band left to the kernel."""
    root = 0xFFFFFFFF
    kernel = Stated(
        [
            _message(0x10000, root, "mq"),
            _message(0x100000, 0x10001, "fq_codel", FQ_CODEL),
            _message(0x200000, 0x10002, "fq", FQ),
            _message(0x300000, 0x10003, "sfq", SFQ),
            _message(0, 0x10004, "fq_codel", FQ_CODEL),
        ]
    )
    tree = qdisc_tree.read(kernel, LINK)
    assert (tree.troubles, tree.foreign) == ((), True)
    assert qdisc_tree.words(tree) == "mq 1:; fq_codel 10: under 1:1; fq 20: under 1:2; sfq 30: under 1:3"
    qdisc_tree.replay(kernel, qdisc_tree.restored(json.loads(json.dumps(qdisc_tree.saved(tree)))), LINK)
    assert [body[:16] + body[20:] for _, body, _ in kernel.told] == [
        body[:16] + body[20:] for body in kernel.queues[:4]
    ]


@pytest.mark.parametrize(
    ("queue", "word"),
    [
        (_message(0x10000, 0xFFFFFFFF, "cake", b"\4\0\1\0"), "queue cake 1: is of a kind"),
        (_message(0x10000, 0xFFFFFFFF, "pfifo", b"\1\0\0\0", qdisc_tree._attribute(8, b"")), "cannot read"),
        (
            _message(0x10000, 0xFFFFFFFF, "htb", b"", struct.pack("=HHI", 5, 12, 1)),
            "offload",
        ),
    ],
)
def test_what_cannot_be_read_whole_is_never_called_replayable(queue: bytes, word: str) -> None:
    kernel = Stated([queue])
    tree = qdisc_tree.read(kernel, LINK)
    assert word in "; ".join(tree.troubles)
    assert word in qdisc_tree.rehearsed(kernel, tree, LINK)
    assert not kernel.told


def test_the_kernel_s_own_queues_are_nobody_s() -> None:
    kernel = Stated([_message(0, 0xFFFFFFFF, "mq"), _message(0, 1, "fq_codel", FQ_CODEL)])
    assert not qdisc_tree.read(kernel, LINK).foreign
    # But one band of it that somebody exchanged is.
    kernel.queues[1] = _message(0x80010000, 1, "fq", FQ)
    assert qdisc_tree.read(kernel, LINK).foreign


def test_a_part_is_told_from_something_else() -> None:
    root = (QDISC, netlink.TC_ROOT, 0x10000, 0, "htb", b"x")
    one = (CLASS, netlink.TC_ROOT, 0x10001, 0, "htb", b"y")
    rule = (FILTER, 0x10000, 0x80000800, 1 << 16, "u32", b"z")
    whole = Tree("eth0", (root, one, rule), ())
    assert qdisc_tree.part_of(Tree("eth0", (root,), ()), whole)
    assert qdisc_tree.part_of(Tree("eth0", (root, (*one[:5], b"leaf not there yet")), ()), whole)
    assert not qdisc_tree.part_of(Tree("eth0", (root, (CLASS, 0, 0x10002, 0, "htb", b"")), ()), whole)
    assert "class htb 1:1" in qdisc_tree.difference(whole, Tree("eth0", (root, rule), ()))
    assert "is there too" in qdisc_tree.difference(Tree("eth0", (root, rule), ()), whole)


# --- on a kernel


@pytest.mark.lab
@pytest.mark.parametrize("name", TREES)
def test_a_tree_of_somebody_is_back_the_same_after_the_line(bench: Bench, name: str) -> None:
    """Byte for byte as the kernel dumps it: rates in bytes a second, bursts in ticks, handles, filters' numbers."""
    bench.set_up(TREES[name])
    before = bench.dump()
    check = bench.root.ask("line.check", office=OFFICE)
    assert (check["replaceable"], check["replace_trouble"]) == (True, None)
    assert "agree to their replacement" in check["refuse"]
    assert bench.root.ask("line.check", office=OFFICE, replace=True)["refuse"] is None
    with pytest.raises(FailedError, match=r"unsupported.*router"):
        bench.root.ask("line.apply", **LINE)
    assert bench.dump() == before
    for _ in range(2):
        assert bench.root.ask("line.apply", **LINE, replace=bench.agreed())["applied"]
        assert "b1ab:" in bench.dump()
        assert bench.root.ask("line.lift")["put_back"] == [f"{check['stands']} put back on eth0"]
        assert bench.dump() == before
    assert bench.root.ask("line.apply", **LINE, replace=bench.agreed())["applied"]
    undone = bench.root.ask("lease.close")["undone"]
    assert undone == [f"line on eth0 taken off (rate); {check['stands']} put back on eth0"]
    assert bench.dump() == before


@pytest.mark.lab
def test_a_tree_that_came_after_the_agreement_is_not_replaced(bench: Bench) -> None:
    """Agreed to was tbf 8: of 50 Mbit/s; between two trials the admin sets another, by number or by rate alone."""
    bench.set_up(TBF)
    agreed = bench.agreed()
    assert bench.root.ask("line.apply", **LINE, replace=agreed)["applied"]
    bench.root.ask("line.lift")
    for other in (TBF.replace("handle 8:", "handle 9:"), TBF.replace("50mbit", "51mbit")):
        bench.tc("qdisc del dev {0} root")
        bench.set_up(other)
        before = bench.dump()
        with pytest.raises(FailedError, match=r"somebody set up tbf [89]: meanwhile"):
            bench.root.ask("line.apply", **LINE, replace=agreed)
        assert bench.dump() == before
    bench.tc("qdisc del dev {0} root")
    bench.set_up(TBF)  # and the one that was agreed to is known again
    assert bench.root.ask("line.apply", **LINE, replace=agreed)["applied"]


@pytest.mark.lab
def test_the_tree_is_told_in_words(bench: Bench) -> None:
    bench.set_up(HTB)
    check = bench.root.ask("line.check", office=OFFICE)
    assert (
        check["stands"]
        == "htb 1: with 3 classes and 4 filters (u32); pfifo 10: under 1:10; tbf 20: under 1:20"
    )
    assert check["stands"] in check["refuse"]
    bench.tc("qdisc del dev {0} root")
    check = bench.root.ask("line.check", office=OFFICE)
    assert (check["stands"], check["replaceable"], check["refuse"]) == (None, False, None)


UNREADABLE = {
    "action": (
        HTB
        + "filter add dev {0} parent 1: protocol ip prio 9 u32 match ip tos 0x40 0xff flowid 1:10"
        + " action mirred egress redirect dev {0}\n",
        "does more than match and name a class",
    ),
    "hash table": (
        HTB + "filter add dev {0} parent 1: protocol ip prio 9 handle 7: u32 divisor 16\n",
        "does more than match and name a class",
    ),
    "two places": (
        HTB + "filter add dev {0} parent 1:1 protocol ip prio 1 u32 match ip tos 0x40 0xff flowid 1:10\n",
        "several classes of 1:",
    ),
    "clsact": ("qdisc add dev {0} clsact\n", "clsact ffff: is of a kind"),
    "netem": (NETEM, "netem 1: is of a kind"),
    "size table": (
        "qdisc add dev {0} root handle 1: stab linklayer atm overhead 4 htb default 0\n",
        "cannot read",
    ),
}


@pytest.mark.lab
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_could_not_come_back_is_refused_although_the_user_agreed(bench: Bench, name: str) -> None:
    text, word = UNREADABLE[name]
    bench.set_up(text)
    before = bench.dump()
    check = bench.root.ask("line.check", office=OFFICE, replace=True)
    assert word in check["replace_trouble"]
    assert not check["replaceable"]
    with pytest.raises(FailedError, match="could not be put back the same") as failed:
        bench.root.ask("line.apply", **LINE, replace=bench.agreed())
    assert word in failed.value.text
    assert bench.dump() == before
    assert bench.root.ask("leases")["leases"][0]["entries"] == []


@pytest.mark.lab
def test_the_promise_holds_the_tree_before_anything_is_changed(bench: Bench) -> None:
    """The agent is killed while the line is on: its watcher puts the tree back from the promise alone."""
    bench.set_up(HTB)
    before = bench.dump()
    assert bench.root.ask("line.apply", **LINE, replace=bench.agreed())["applied"]
    entries = bench.root.ask("leases")["leases"][0]["entries"]
    kept = [entry["before"] for entry in entries if "before" in entry]
    assert len(kept) == len(entries) == 1
    assert "in place of htb 1: with 3 classes" in entries[0]["what"]
    assert qdisc_tree.restored(kept[0]).foreign
    bench.root.kill()
    end = time.monotonic() + 60
    while bench.dump() != before and time.monotonic() < end:
        time.sleep(0.05)
    assert bench.dump() == before


AMID = CODE.replace(
    "from ssh_agents.__main__",
    "import os; from ssh_agents import qdisc_tree as q; r = q.remove\n"
    "def remove(*args):\n q.remove = r; BEFORE; r(*args); AFTER\n"
    "q.remove = remove; from ssh_agents.__main__",
)
"""An agent to which something happens before or after it removes somebody's queues."""
SIGNAL = "os.kill(os.getpid(), %d)"


@pytest.mark.lab
def test_who_goes_on_after_the_lease_loses_nobody_s_tree(bench: Bench) -> None:
    """All was undone and forgotten while the agent was stopped, and only it knows what stood there."""
    bench.set_up(HTB)
    before = bench.dump()
    replace = bench.agreed()
    bench.root.ask("lease.close")
    text = AMID.replace("BEFORE", SIGNAL % signal.SIGSTOP).replace("AFTER", "0")
    agent = bench.net.agent("a", privileged=True, text=text)
    folder = Path(agent.ask("lease.open", lease_s=2)["folder"])
    applied = agent.start("line.apply", **LINE, replace=replace)
    end = time.monotonic() + 60
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert bench.dump() == before
    os.kill(agent.pid, signal.SIGCONT)
    with pytest.raises(FailedError, match="lapsed"):
        applied.done()
    assert bench.dump() == before


@pytest.mark.lab
def test_a_tree_whose_promise_is_gone_too_is_back_before_the_next_lease(bench: Bench) -> None:
    """Agent and watcher killed when it was removed and no line was there yet, and the lease removed by hand."""
    bench.set_up(HTB)
    before = bench.dump()
    replace = bench.agreed()
    bench.root.ask("lease.close")
    agent = bench.net.agent(
        "a", privileged=True, text=AMID.replace("BEFORE", "0").replace("AFTER", SIGNAL % 9)
    )
    folder = agent.ask("lease.open", lease_s=300)["folder"]
    watcher = watch.found(Lease(folder))
    assert watcher is not None
    os.kill(watcher[0], signal.SIGKILL)
    agent.start("line.apply", **LINE, replace=replace)
    agent.process.wait(30)
    shutil.rmtree(folder)
    assert bench.dump() != before
    assert [one["kind"] for one in bench.root.ask("leases")["unpromised"]] == ["line"]
    changes = bench.root.start("lease.open", lease_s=30).changes()
    assert "put back on eth0" in changes[0]["what"]
    assert bench.dump() == before


@pytest.mark.lab
def test_putting_back_what_was_cut_off_half_way_is_finished(bench: Bench) -> None:
    bench.set_up(HTB)
    before = bench.dump()
    bench.root.ask("line.apply", **LINE, replace=bench.agreed())
    # As if the line had been taken off, and the first three messages sent.
    bench.tc("qdisc del dev {0} root", "qdisc del dev {0} ingress")
    bench.tc(*HTB.splitlines()[:3])
    assert bench.dump() != before
    undone = bench.root.ask("lease.close")["undone"]
    assert "put back on eth0" in undone[0]
    assert bench.dump() == before


@pytest.mark.lab
def test_what_somebody_set_up_meanwhile_stays(bench: Bench) -> None:
    bench.set_up(HTB)
    bench.root.ask("line.apply", **LINE, replace=bench.agreed())
    bench.tc("qdisc del dev {0} root", "qdisc add dev {0} root handle 77: pfifo limit 5")
    other = bench.tree()
    undone = bench.root.ask("lease.close")["undone"]
    assert "was not put back on eth0, where somebody set up pfifo 77:" in undone[0]
    assert bench.tree().splitlines()[0] == other.splitlines()[0]
    assert "b1ab" not in bench.dump()


@pytest.mark.lab
def test_putting_back_by_hand_first_succeeds_and_twice_too(bench: Bench) -> None:
    """Field fault: clean-up aborts if someone already cleaned."""
    bench.set_up(TBF)
    before = bench.dump()
    bench.root.ask("line.apply", **LINE, replace=bench.agreed())
    bench.tc("qdisc del dev {0} root", "qdisc del dev {0} ingress")
    bench.set_up(TBF)
    bench.root.ask("line.lift")
    assert bench.root.ask("revert")["undone"] == []
    assert bench.root.ask("revert")["undone"] == []
    assert bench.dump() == before


KEEP_STALE = """
import sys; sys.path.insert(0, {root!r})
from ssh_agents import line_before, qdisc_tree
line_before.keep(qdisc_tree.restored({saved!r}))
"""


@pytest.mark.lab
def test_a_file_that_a_dead_network_of_the_same_number_left_is_not_believed(bench: Bench) -> None:
    """Numbers of networks are given out again; whatever is kept is of the line that is on now."""
    before = bench.dump()
    stale = Tree("eth0", ((QDISC, netlink.TC_ROOT, 0x90000, 0, "pfifo", b"\1\0\0\0"),), ())
    text = KEEP_STALE.format(root=str(ROOT), saved=qdisc_tree.saved(stale))
    bench.net.run("a", sys.executable, "-c", text)
    assert bench.root.ask("line.lift") == {"put_back": []}
    assert bench.root.ask("line.apply", **LINE)["applied"]
    assert bench.root.ask("line.lift") == {"put_back": []}
    assert bench.dump() == before


@pytest.mark.lab
def test_the_kernel_s_own_queue_is_compared_before_and_after(bench: Bench) -> None:
    before = bench.dump()
    assert bench.root.ask("line.apply", **LINE)["applied"]
    bench.net.run("a", "ip", "link", "set", "eth0", "mtu", "1400")  # nothing that the queue knows of
    assert bench.root.ask("lease.close")["undone"] == ["line on eth0 taken off (rate)"]
    assert bench.dump() == before
    bench.root.ask("lease.open", lease_s=60)
    bench.root.ask("line.apply", **LINE)
    bench.tc("qdisc del dev {0} root", "qdisc add dev {0} root handle 77: pfifo limit 5")
    (undone,) = bench.root.ask("lease.close")["undone"]
    assert undone.startswith("line on eth0 taken off (rate); but on eth0 not all is as before: queue ")
    assert "pfifo 77:" in bench.dump()


@pytest.mark.lab
def test_a_device_that_vanished_is_no_trouble_and_what_stood_there_is_told(bench: Bench) -> None:
    bench.set_up(TBF)
    bench.root.ask("line.apply", **LINE, replace=bench.agreed())
    bench.net.run("b", "ip", "link", "del", "eth0")
    undone = bench.root.ask("lease.close")["undone"]
    assert any("it could not be put back" in text for text in undone)


@pytest.mark.lab
def test_a_line_that_cannot_be_built_leaves_the_tree_as_it_was(bench: Bench) -> None:
    bench.set_up(HTB)
    before = bench.dump()
    # An IFB of the very name that ours would have; not ours, since nothing of a line is there.
    bench.net.run("a", "ip", "link", "add", "bl-ifb", "type", "bridge")
    with contextlib.suppress(FailedError):
        bench.root.ask("line.apply", **LINE, replace=bench.agreed())
    bench.root.ask("lease.close")
    assert bench.dump() == before


@pytest.mark.lab
def test_the_line_changes_in_place_over_a_replaced_tree(bench: Bench) -> None:
    bench.set_up(HTB)
    before = bench.dump()
    wanted: dict[str, Any] = {**LINE, "replace": bench.agreed()}
    bench.root.ask("line.apply", **wanted)
    read = bench.root.ask("line.apply", **{**wanted, "download_bps": 2_000_000})
    assert (read["download_bps"], read["applied"]) == (2_000_000, True)
    # And once more over a line that somebody broke.
    bench.tc("qdisc del dev {0} root")
    assert bench.root.ask("line.apply", **wanted)["applied"]
    bench.root.ask("lease.close")
    assert bench.dump() == before
