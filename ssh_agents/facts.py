"""What a host is: system, processor, memory, disk, tools, addresses. Parsers take text; all is read only."""

import hashlib
import os
import platform
import shutil
import socket
import struct
import subprocess
import sys
from typing import Any, Dict, List, Optional, Tuple

from ssh_agents import files, iptables, protocol, system, tool

TOOLS: Dict[str, Tuple[str, ...]] = {
    # Else it would make ~/.subversion, and to ask is to change nothing.
    "svn": ("--version", "--quiet", "--config-dir", "/dev/null/none"),
    "svnadmin": ("--version", "--quiet"),
    "svnserve": ("--version", "--quiet"),
    "apache2": ("-v",),
    "httpd": ("-v",),
    "htcacheclean": (),  # has no version of its own; its first line says that it is there
    "squid": ("-v",),
    "nginx": ("-v",),
    "nft": ("--version",),
    "tc": ("-V",),
    "ip": ("-V",),
    "git": ("--version",),
    "vde_switch": ("--version",),
    "wirefilter": ("--help",),
    "python3": ("--version",),
}
"""How each tool tells its version. The table is fixed: a request names tools, never arguments."""

TOOL_S = 5.0
CAP_NET_ADMIN = 12  # linux/capability.h
OFFLOADS = {"tso": 0x1E, "gso": 0x23, "gro": 0x2B}  # ETHTOOL_GTSO, GGSO, GGRO in linux/ethtool.h
SIOCETHTOOL = 0x8946  # linux/sockios.h


def tell(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `facts`: everything below in one answer; unknown values are null.

    `counter` is by what bytes can be counted here (nftables, iptables).

    `tools` (default: all of the table) names the programs whose version is asked; `path` (default: where
    scratch folders are made) the place whose disk is looked at, or would be: the nearest folder above it that
    is there. Refuses a tool that the table lacks.
    """
    names = protocol.need_strings(args, "tools", sorted(TOOLS))
    unknown = [name for name in names if name not in TOOLS]
    if unknown:
        raise protocol.Refused("bad-request", "no such tool in the table: %s" % ", ".join(unknown))
    path = protocol.need(args, "path", str, files.place())
    return {
        "windows": os.name == "nt",
        "code_page": system.code_page() or None,
        "os": system_name(_text("/etc/os-release") or _text("/usr/lib/os-release")) or platform.platform(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "hostname": socket.gethostname(),
        "python": platform.python_version(),
        "cpus": _cpus(),
        "cpu": processor(_text("/proc/cpuinfo")) or platform.processor() or None,
        "memory_bytes": memory(_text("/proc/meminfo")) or system.memory_bytes(),
        "loadavg": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "disk": _disk(path),
        "congestion": _text("/proc/sys/net/ipv4/tcp_congestion_control").strip() or None,
        "boot_id": _text("/proc/sys/kernel/random/boot_id").strip() or None,
        "host_id": _host_id(),
        "user": _user(),
        "uid": os.getuid() if hasattr(os, "getuid") else None,
        "capabilities": net_admin(_text("/proc/self/status")),
        "tools": {name: _version(name) for name in names},
        "counter": "nftables" if tool.found("nft") else "iptables" if iptables.there() else None,
        "addresses": _addresses(),
        "offloads": _offloads(),
        "ssh": ssh_ends(os.environ.get("SSH_CONNECTION", "")),
    }


def system_name(text: str) -> Optional[str]:
    """The system's own name for itself, from the text of os-release(5)."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "PRETTY_NAME":
            return value.strip().strip("\"'") or None
    return None


def memory(text: str) -> Optional[int]:
    """Bytes of memory, from the text of /proc/meminfo (kB there means KiB)."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["MemTotal:"] and len(words) >= 2 and words[1].isdigit():
            return int(words[1]) * 1024
    return None


def processor(text: str) -> Optional[str]:
    """The processor's name, from the text of /proc/cpuinfo; some architectures give none."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model"):
            return value.strip() or None
    return None


def net_admin(text: str) -> bool:
    """True if network devices may be changed, from the text of /proc/self/status."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff" and value.strip():
            return bool(int(value, 16) >> CAP_NET_ADMIN & 1)
    return False


def file_system(text: str, path: str) -> Optional[str]:
    """The kind of file system that `path` (real, absolute) is on, from the text of /proc/self/mountinfo."""
    best, kind = "", None
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        words, kinds = left.split(" "), right.split(" ")
        if len(words) < 6 or not kinds[0]:
            continue
        place = _unescaped(words[4])
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):  # the last of equals lies on top
            best, kind = place, kinds[0]
    return kind


def local_addresses(fib_trie: str, if_inet6: str) -> List[str]:
    """This host's own addresses but loopback and link-local ones, from two files of /proc/net."""
    found: List[str] = []
    last = ""
    for line in fib_trie.splitlines():
        words = line.split()
        if words[:1] == ["|--"] and len(words) == 2:
            last = words[1]
        elif words == ["/32", "host", "LOCAL"] and not last.startswith("127.") and last not in found:
            found.append(last)
    for line in if_inet6.splitlines():
        words = line.split()
        if (
            len(words) == 6 and len(words[0]) == 32 and words[3] not in ("10", "20")
        ):  # host, link (addrconf.h)
            found.append(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(words[0])))
    return found


def ssh_ends(text: str) -> Optional[Dict[str, Any]]:
    """Both ends of the SSH connection that started this agent, as this host sees them.

    From the text of $SSH_CONNECTION; None over a UNIX socket, where sshd knows none.
    """
    words = text.split()
    if len(words) != 4 or not (words[1].isdigit() and words[3].isdigit()) or words[0] == "UNKNOWN":
        return None
    return {
        "peer": {"address": words[0], "port": int(words[1])},
        "own": {"address": words[2], "port": int(words[3])},
    }


def first_line(text: str) -> Optional[str]:
    """The first line that is not empty."""
    for line in text.splitlines():
        if line.strip():
            return line.strip()[:200]
    return None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _unescaped(text: str) -> str:
    for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, sign)
    return text


def _cpus() -> Optional[int]:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _host_id() -> Optional[str]:
    """Tells this host from others of the same name and address; a digest, as systemd's machine-id(5) asks for."""
    known = (_text("/etc/machine-id") or _text("/var/lib/dbus/machine-id")).strip()
    return hashlib.sha256(b"branchlab " + known.encode()).hexdigest()[:16] if known else None


def _user() -> Optional[str]:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None


def _disk(path: str) -> Optional[Dict[str, Any]]:
    real = os.path.realpath(path)
    while True:
        try:
            free, device = shutil.disk_usage(real).free, os.stat(real).st_dev
            break
        except OSError:
            above = os.path.dirname(real)
            if above == real:
                return None
            real = above
    kind = file_system(_text("/proc/self/mountinfo"), real)
    return {"path": real, "free_bytes": free, "fs": kind, "device": device}


def _version(name: str) -> Optional[str]:
    program = tool.found(name)
    if program is None:
        return None
    try:
        ended = subprocess.run(
            [program, *TOOLS[name]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TOOL_S,
            env=dict(os.environ, LC_ALL="C.UTF-8"),
            check=False,
            creationflags=system.quiet_flags(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print("facts: %s: %s" % (program, error), file=sys.stderr)
        return None
    said = [
        line for line in ended.stdout.decode("utf-8", "replace").splitlines() if ": warning: " not in line
    ]
    return first_line("\n".join(said)) or "there, but silent"


def _addresses() -> List[str]:
    found = local_addresses(_text("/proc/net/fib_trie"), _text("/proc/net/if_inet6"))
    if found or os.path.exists("/proc/net/fib_trie"):
        return found
    try:
        infos = socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return []
    named = sorted({str(info[4][0]).partition("%")[0] for info in infos})
    return [address for address in named if not address.startswith(("127.", "::1", "fe80:"))]


def _offloads() -> Dict[str, Dict[str, bool]]:
    """Per network device but loopback, which offloads are on; empty where the kernel does not tell."""
    if not sys.platform.startswith("linux"):
        return {}
    found: Dict[str, Dict[str, bool]] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, device in socket.if_nameindex():
            if device != "lo":
                values = {name: _offload(asked, device, code) for name, code in OFFLOADS.items()}
                found[device] = {name: value for name, value in values.items() if value is not None}
    return found


def _offload(asked: socket.socket, device: str, code: int) -> Optional[bool]:
    import array

    try:
        import fcntl
    except ImportError:
        return None

    value = array.array("I", [code, 0])  # struct ethtool_value
    try:
        fcntl.ioctl(asked, SIOCETHTOOL, struct.pack("16sP", device.encode(), value.buffer_info()[0]))
    except OSError:
        return None
    return bool(value[1])
