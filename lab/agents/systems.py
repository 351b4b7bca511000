"""How a program is installed on a system that has no Python yet: known by its os-release(5), read over SSH."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lab.errors import LabError

if TYPE_CHECKING:
    from lab.agents import Connection

READ_S = 10.0
_MANAGERS = (
    ("apt-get install", ("debian", "ubuntu")),
    ("dnf install", ("fedora", "rhel", "centos", "amzn")),
    ("zypper install", ("suse", "opensuse", "sles", "sled")),
    ("apk add", ("alpine",)),
    ("pacman -S", ("arch",)),
)
"""By what packages are installed, and the words of ID and ID_LIKE that say so."""
_NAMED = {
    ("python3", "pacman -S"): "python",
    ("doas", "dnf install"): "opendoas",
    ("doas", "zypper install"): "opendoas",
    ("doas", "pacman -S"): "opendoas",
}
"""Packages that are called otherwise than the program."""


def install(os_release: str, program: str) -> str:
    """The command that installs `program` on this system, as root; empty where the system is not known."""
    values = dict(line.partition("=")[::2] for line in os_release.splitlines())
    words = [word for key in ("ID", "ID_LIKE") for word in values.get(key, "").strip("\"' ").lower().split()]
    for word in words:
        for manager, names in _MANAGERS:
            if word.partition("-")[0] in names:
                return f"{manager} {_NAMED.get((program, manager), program)}"
    return ""


def command(connection: Connection, program: str) -> str:
    """The same for the system of a host that is connected; empty where it does not tell. Raises nothing."""
    text, end = b"", time.monotonic() + READ_S
    try:
        process = connection.start("cat /etc/os-release /usr/lib/os-release")
        try:
            process.close_input()
            while len(text) < 1 << 16 and (piece := process.read(max(0.01, end - time.monotonic()))):
                text += piece
        finally:
            process.close()
    except (LabError, TimeoutError):
        return ""
    return install(text.decode("utf-8", "replace"), program)
