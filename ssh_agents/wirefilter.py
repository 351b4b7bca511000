"""Delay, jitter and loss in user space where the kernel has no netem: Debian's vde2 between two bridges.

A port of a bridge is moved into a second bridge of our own; two virtual switches with a tap each join the two
bridges, and between the switches wirefilter holds packets back, both ways, in whole milliseconds, in order:

    BRIDGE -- tap blw-near -- switch -- wirefilter -- switch -- tap blw-far -- bl-far -- PORT
"""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

from ssh_agents import netlink, private, protocol, tool
from ssh_agents.line_tc import Delay

FAR, TAP_NEAR, TAP_FAR = "bl-far", "blw-near", "blw-far"
TUN = "/dev/net/tun"
_PROMPT = b"VDEwf$ "
_PORT = "port.json"
_PORT_WORDS = {
    "cost": "cost",
    "group_fwd_mask_str": "group_fwd_mask",
    "multicast_router": "mcast_router",
    "priority": "priority",
}
"""How `ip` calls, when it shows them, settings of a port that are not on or off, and when it sets them."""


def folder() -> str:
    """Where its sockets are: one folder per network."""
    return os.path.join(private.folder(), "wire-%s" % private.net_namespace())


def tun_trouble() -> str:
    """Why no tap can be made here; empty if one can."""
    try:
        os.close(os.open(TUN, os.O_RDWR))
    except OSError as error:
        try:
            mode = " (mode %04o, owner %d)" % (os.stat(TUN).st_mode & 0o7777, os.stat(TUN).st_uid)
        except OSError:
            mode = ""
        return "%s%s cannot be opened: %s" % (TUN, mode, error.strerror)
    return ""


def there(links: Dict[str, netlink.Link]) -> bool:
    """True if any part of a wire of ours is on this host's network."""
    return any(name in links for name in (FAR, TAP_NEAR, TAP_FAR)) or os.path.isdir(folder())


def entry(bridge: str, port: str) -> Dict[str, str]:
    """What undoing needs to know."""
    return {"bridge": bridge, "port": port, "folder": folder()}


def refuse_unless_possible(bridge: str, port: str, delay: Delay, links: Dict[str, netlink.Link]) -> None:
    """Refuse, before anything is touched, what cannot be done here."""
    for name in (bridge, port):
        if name not in links:
            raise protocol.Refused("bad-request", "there is no device %r for the delay" % name)
    if links[port].master not in (links[bridge].number, links[FAR].number if FAR in links else -1):
        raise protocol.Refused("touched", "%s is not a port of the bridge %s" % (port, bridge))
    if links[port].master == links[bridge].number:  # else our wire is there already
        _refuse_unrestorable(bridge, port)
    if abs(delay.delay_s * 1000 - round(delay.delay_s * 1000)) > 1e-6:
        raise protocol.Refused(
            "unsupported",
            "this host delays by whole milliseconds (wirefilter), not by %g ms" % (delay.delay_s * 1000),
        )
    trouble = tun_trouble()
    if trouble:
        raise protocol.Refused(
            "unsupported", "delay, jitter and loss need a tap here, and " + trouble, "open " + TUN
        )
    for name in ("vde_switch", "wirefilter"):
        if tool.found(name) is None:
            raise protocol.Refused("missing", "%s is not installed (Debian: package vde2)" % name)


def up(bridge: str, port: str, delay: Delay) -> None:
    """Put the wire between the bridge and its port, and wait until it carries packets."""
    base = folder()
    os.makedirs(base, mode=0o700, exist_ok=True)
    with open(os.path.join(base, _PORT), "w") as file:
        json.dump(_port_words(port), file)
    for tap, name in ((TAP_NEAR, "near"), (TAP_FAR, "far")):
        argv = ["vde_switch", "-d", "-s", os.path.join(base, name), "-t", tap]
        tool.run(argv)
        # It ends with status 0 also without a tap.
        _wait_for(functools.partial(_device, tap), "the tap %s did not appear" % tap, argv)
    ends = "%s:%s" % (os.path.join(base, "near"), os.path.join(base, "far"))
    argv = ["wirefilter", "--daemon", "-v", ends, "-M", os.path.join(base, "wire")]
    argv += ["-d", _delay_word(delay), "-l", _loss_word(delay)]
    tool.run(argv)
    _wait_for(lambda: does() is not None, "wirefilter does not answer", argv)
    tool.run(["ip", "-batch", "-"], "link add %s type bridge forward_delay 0\n" % FAR)
    for name in (FAR, TAP_NEAR, TAP_FAR):
        quiet_ipv6(name)
    lines = [
        "link set %s up master %s" % (TAP_FAR, FAR),
        # Without ARP, or the bridge would answer for this host's own addresses.
        "link set %s arp off up" % FAR,
        "link set %s up master %s" % (TAP_NEAR, bridge),
        "link set %s master %s" % (port, FAR),
    ]
    tool.run(["ip", "-batch", "-"], "\n".join(lines) + "\n")


def change(delay: Delay) -> None:
    """Another delay, jitter and loss, while it runs."""
    _converse(["delay " + _delay_word(delay), "loss " + _loss_word(delay)])


def does() -> Optional[Delay]:
    """What wirefilter says it does; None if there is none that answers."""
    try:
        return parsed(_converse(["showinfo"]))
    except OSError:
        return None


def parsed(text: str) -> Optional[Delay]:
    """From wirefilter's `showinfo`; None unless both directions do the same."""
    found = {}
    for name in ("Loss", "Delay"):
        match = re.search(r"^%s\s+L->R (\S+)\+(\S+)[UN]\s+R->L (\S+)\+(\S+)[UN]" % name, text, re.MULTILINE)
        if match is None or match.group(1, 2) != match.group(3, 4):
            return None
        found[name] = (float(match.group(1)), float(match.group(2)))
    delay, jitter = found["Delay"]
    return Delay(round(delay / 1000, 9), round(jitter / 1000, 9), round(found["Loss"][0] / 100, 9))


def whole(bridge: str, port: str, links: Dict[str, netlink.Link]) -> bool:
    """True if the way from the bridge to the port goes through the wire."""
    if not all(name in links for name in (FAR, TAP_NEAR, TAP_FAR, bridge, port)):
        return False
    far = links[FAR].number
    return (
        links[port].master == far == links[TAP_FAR].master and links[TAP_NEAR].master == links[bridge].number
    )


def place(links: Dict[str, netlink.Link]) -> Optional["tuple[str, str]"]:
    """The bridge and the port between which a wire of ours is, as the kernel has it."""
    if FAR not in links or TAP_NEAR not in links:
        return None
    bridges = [one.name for one in links.values() if one.number == links[TAP_NEAR].master]
    ports = [one.name for one in links.values() if one.master == links[FAR].number and one.name != TAP_FAR]
    return (bridges[0], ports[0]) if bridges and ports else None


def down(bridge: str, port: str, base: str, links: Dict[str, netlink.Link]) -> bool:
    """Restore the direct way and end what was started. False if nothing was there. Idempotent."""
    far = links[FAR].number if FAR in links else -1
    if port in links and bridge in links and links[port].master in (far, 0):
        with _unless_gone(port, bridge):
            tool.run(["ip", "link", "set", port, "master", bridge])
    if FAR in links:
        with _unless_gone(FAR):
            tool.run(["ip", "link", "del", FAR])
    ended = _end_processes(base)
    for tap in (TAP_NEAR, TAP_FAR):
        if _device(tap):
            with _unless_gone(tap):
                tool.run(["ip", "link", "del", tap])
    if port in links and bridge in links:
        with _unless_gone(port, bridge):
            _port_restored(port, base)
    known = os.path.isdir(base)
    shutil.rmtree(base, ignore_errors=True)
    return far >= 0 or ended or known


def _refuse_unrestorable(bridge: str, port: str) -> None:
    """Refuse what a port would lose by leaving its bridge, and what is not put back."""
    if _link_info(bridge).get("info_data", {}).get("vlan_filtering"):
        lost = "the VLANs of %s, since its bridge filters VLANs" % port
    elif _link_info(port).get("info_slave_data", {}).get("backup_port"):
        lost = "the backup port of %s" % port
    else:
        return
    text = "a delay by wirefilter would take %s out of %s for a while, and lose %s"
    raise protocol.Refused("unsupported", text % (port, bridge, lost), "ip -d link show dev " + port)


def _port_words(port: str) -> Dict[str, str]:
    """What a port of a bridge is set to, in `ip`'s own words: it is forgotten when the port leaves the bridge."""
    told = _link_info(port).get("info_slave_data", {})
    found = {name: "on" if value else "off" for name, value in told.items() if isinstance(value, bool)}
    found.update({word: str(told[name]) for name, word in _PORT_WORDS.items() if name in told})
    if "fastleave" in found:
        found["mcast_fast_leave"] = found.pop("fastleave")
    return found


def _port_restored(port: str, base: str) -> None:
    """Set a port as it was before the wire. Idempotent; nothing happens where that was not written down."""
    try:
        with open(os.path.join(base, _PORT)) as file:
            before = json.load(file)
    except (OSError, ValueError):
        return
    now = _port_words(port)
    other = [word for name, value in before.items() if now.get(name) != value for word in (name, value)]
    if other:
        tool.run(["ip", "link", "set", "dev", port, "type", "bridge_slave", *other])


def _link_info(name: str) -> Dict[str, Any]:
    text = tool.run(["ip", "-json", "-details", "link", "show", "dev", name])
    try:
        return dict(json.loads(text)[0].get("linkinfo", {}))
    except (ValueError, IndexError):
        raise protocol.Refused("unsupported", "this host's ip tells nothing as JSON", text[:200]) from None


def quiet_ipv6(name: str) -> None:
    """No neighbour discovery of its own on a device that only carries others' packets."""
    with contextlib.suppress(OSError), open("/proc/sys/net/ipv6/conf/%s/disable_ipv6" % name, "w") as file:
        file.write("1")


@contextlib.contextmanager
def _unless_gone(*names: str) -> Iterator[None]:
    """Let a tool fail if the device has vanished meanwhile."""
    try:
        yield
    except protocol.Refused:
        if all(_device(name) for name in names):
            raise


def _device(name: str) -> bool:
    try:
        socket.if_nametoindex(name)
    except OSError:
        return False
    return True


def _delay_word(delay: Delay) -> str:
    return "%.6g+%.6g" % (round(delay.delay_s * 1000), delay.jitter_s * 1000)


def _loss_word(delay: Delay) -> str:
    return "%.6g" % (delay.loss * 100)


def _converse(commands: List[str]) -> str:
    """Say commands on the management socket, one after another: it takes one per read. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(2)
        line.connect(os.path.join(folder(), "wire"))
        heard = _until_prompt(line)
        for command in commands:
            line.sendall(command.encode() + b"\n")
            heard = _until_prompt(line)
            if not re.search(r"^1000 ", heard, re.MULTILINE):
                raise protocol.Refused("failed", "wirefilter: %s" % heard.strip()[:200], command)
    return heard


def _until_prompt(line: socket.socket) -> str:
    heard = b""
    while not heard.endswith(_PROMPT):
        data = line.recv(4096)
        if not data:
            raise OSError("wirefilter closed its management socket")
        heard += data
    return heard.decode("utf-8", "replace")


def _wait_for(met: Callable[[], bool], trouble: str, argv: List[str]) -> None:
    end = time.monotonic() + 5
    while not met():
        if time.monotonic() > end:
            raise protocol.Refused("failed", trouble, " ".join(argv))
        time.sleep(0.005)


def _end_processes(base: str) -> bool:
    """End the switches and the wire that name our folder on their command line; True if there was one."""
    found = _processes(base)
    for number, sent in enumerate((signal.SIGTERM, signal.SIGKILL)):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sent)
        end = time.monotonic() + 1
        while _processes(base) and time.monotonic() < end:
            time.sleep(0.005)
        if not _processes(base):
            break
        if number:
            raise protocol.Refused("failed", "processes of the wire do not end: %s" % _processes(base))
    return bool(found)


def _processes(base: str) -> List[int]:
    found = []
    mark = (base + "/").encode()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if os.path.basename(words[0]) in (b"vde_switch", b"wirefilter") and any(
            mark in word for word in words[1:]
        ):
            found.append(int(name))
    return found
