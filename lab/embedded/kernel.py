"""The few calls to the Linux kernel that Python 3.11 does not offer: namespaces, mounts, offloads."""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_MOVE = 0x2000
MS_REC = 0x4000

_SIOCETHTOOL = 0x8946
# ETHTOOL_S... of linux/ethtool.h. TSO, scatter-gather and checksums depend on one another; this order leaves
# none behind that switches another one on again.
_OFFLOADS = {"tso": 0x1F, "gso": 0x24, "gro": 0x2C, "sg": 0x19, "tx": 0x17, "rx": 0x15}


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces that `flags` (CLONE_NEW...) names for new ones. Raises OSError."""
    libc = _libc()
    if libc.unshare(ctypes.c_int(flags)) != 0:
        raise OSError(ctypes.get_errno(), f"unshare: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: Path, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount `source` on `target`. Raises OSError that names the target."""
    libc = _libc()
    words = (source.encode(), os.fsencode(target), kind.encode())
    if libc.mount(*words, ctypes.c_ulong(flags), options.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount of {kind or source}: {os.strerror(number)}", str(target))


def bind(source: Path, target: Path) -> None:
    """Show `source` (a file, or a folder with all that is mounted in it) at `target` as well. Raises OSError."""
    # What was mounted by a namespace with more rights must be shown as well, or the kernel refuses.
    mount(str(source), target, "", MS_BIND | MS_REC)


def offloads_off(device: str) -> None:
    """Make every packet on `device` travel as itself.

    With offloads on, a veth pair hands over TCP's super-packets of up to 64 kB whole, with one header for
    forty: counters then miss the headers, and a limit lets 64 kB go in one jump. On a real network the card
    cuts them; here nothing would. What the device does not know is left as it is.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in _OFFLOADS.values():
            value = array.array("I", [command, 0])
            address, _length = value.buffer_info()
            request = struct.pack("16sP16x", device.encode(), address)
            try:
                fcntl.ioctl(control, _SIOCETHTOOL, request)
            except OSError:
                continue


def sysctl(name: str, value: str) -> bool:
    """Set a kernel setting of this namespace, its name with slashes. False if this kernel has none such."""
    try:
        Path("/proc/sys", name).write_text(value, "ascii")
    except OSError:
        return False
    return True
