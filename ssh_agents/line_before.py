"""What stood on a device before our line: kept on disk while the line is on, and put back after it.

The promise to undo holds it too; the file is for `line.lift`, which is asked between trials and knows no promises.
"""

import contextlib
import json
import os
from typing import Dict, List, Optional

from ssh_agents import lease, netlink, private, protocol, qdisc_tree
from ssh_agents.qdisc_tree import Tree

_PREFIX = "before-"


def keep(tree: Tree) -> None:
    """Write a tree down, surely, before it is removed."""
    entry = {"boot_id": lease.boot_id(), **qdisc_tree.saved(tree)}
    lease.write(_path(tree.device), json.dumps(entry))


def kept() -> List[Tree]:
    """The trees that were removed from devices of this network and are not put back yet."""
    mine = os.path.basename(_path(""))
    names = sorted(name for name in os.listdir(private.folder()) if name.startswith(mine))
    found = [_kept(os.path.join(private.folder(), name)) for name in names if not name.endswith(".new")]
    return [tree for tree in found if tree is not None]


def _kept(path: str) -> Optional[Tree]:
    try:
        with open(path) as file:
            entry = json.load(file)
        if entry["boot_id"] == lease.boot_id():
            return qdisc_tree.restored(entry)
    except FileNotFoundError:
        return None  # somebody put it back just now
    except (ValueError, KeyError):
        pass  # nobody wrote it so
    with contextlib.suppress(OSError):
        os.unlink(path)  # of an earlier boot: what stood there ended with it
    return None


def put_back(ask: netlink.Socket, links: Dict[str, netlink.Link], tree: Tree) -> str:
    """Put a tree back on its device, from which ours was taken off already. Says what it did; idempotent.

    Finishes what an earlier attempt began; what somebody else set up meanwhile stays, and is told. Refuses
    with `failed` if what then stands there differs from what stood there. The kernel's own queues come by
    themselves, so that they are only compared. A device that has another name by now is found by its number.
    """
    link = _link(links, tree)
    if link is None:
        lost = "%s was on %s, which is gone: it could not be put back" % (qdisc_tree.words(tree), tree.device)
        said = lost if os.path.exists(_path(tree.device)) else ""  # told once
    else:
        said = _put_back(ask, link, tree)
    forget(tree.device)
    return said


def _link(links: Dict[str, netlink.Link], tree: Tree) -> Optional[netlink.Link]:
    """The device, under whichever name it has by now."""
    same = [link for link in links.values() if tree.number and link.number == tree.number]
    return same[0] if same else links.get(tree.device)


def _put_back(ask: netlink.Socket, link: netlink.Link, tree: Tree) -> str:
    now = qdisc_tree.read(ask, link)
    if not tree.foreign:
        differs = qdisc_tree.difference(tree, now)
        return "but on %s not all is as before: %s" % (link.name, differs) if differs else ""
    if now.foreign and qdisc_tree.difference(tree, now) and not qdisc_tree.part_of(now, tree):
        return "%s was not put back on %s, where somebody set up %s meanwhile" % (
            qdisc_tree.words(tree),
            link.name,
            qdisc_tree.words(now),
        )
    if not qdisc_tree.difference(tree, now):
        return ""
    qdisc_tree.remove(ask, now, link)
    qdisc_tree.replay(ask, tree, link)
    differs = qdisc_tree.difference(tree, qdisc_tree.read(ask, link))
    if differs:
        raise protocol.Refused("failed", "%s was put back, but: %s" % (link.name, differs))
    return "%s put back on %s" % (qdisc_tree.words(tree), link.name)


def forget(device: str) -> None:
    """Nothing of this device is kept any more: it is back, or nobody set up anything there."""
    with contextlib.suppress(OSError):  # gone, or on a disk that became read-only
        os.unlink(_path(device))


def _path(device: str) -> str:
    # A device's name may hold anything but a slash.
    return os.path.join(
        private.folder(), "%s%s-%s" % (_PREFIX, private.net_namespace(), device.encode().hex())
    )
