"""Which packages hold what a host needs, and the exact commands of five package managers. A fixed table.

Names are those of the distributions' own indexes: Debian 12 and 13 and Ubuntu 24.04 (apt), Fedora 41 and
RHEL 9 (dnf), openSUSE Leap 15.6 (zypper), Alpine 3.20 (apk), Arch (pacman). Only apt was run by us.
"""

import re
from typing import Dict, List, NamedTuple, Tuple

Argv = Tuple[str, ...]
Names = Dict[str, Tuple[str, ...]]


class Manager(NamedTuple):
    """One package manager: its program, its commands, and what its packages are called."""

    name: str
    refresh: Argv
    """reads anew which packages there are; empty where installing does it"""
    install: Argv
    """followed by the packages' names; asks nothing"""
    remove: Argv
    """followed by names; removes these alone, and refuses where another package needs one of them"""
    listing: Argv
    """prints the name of each package that is installed, one a line, without its version"""
    simulate: Argv
    """followed by names; tells what installing them would bring, and does nothing. Empty where that is not read"""
    brings: str
    """what of that names a package, as a regular expression with one group"""
    packages: Names


NEEDS = ("svn", "svnadmin", "apache2", "mod_dav_svn", "tc", "nft", "squid", "nginx", "wirefilter")
"""What may be asked for. All but mod_dav_svn are programs; it is a module of Apache."""

_APT: Names = {
    "svn": ("subversion",),
    "svnadmin": ("subversion",),
    # Not apache2, which is a service that starts.
    "apache2": ("apache2-bin",),
    "mod_dav_svn": ("libapache2-mod-svn",),
    "tc": ("iproute2",),
    "nft": ("nftables",),
    "squid": ("squid",),
    "nginx": ("nginx",),
    "wirefilter": ("vde2",),
}
_DNF: Names = {
    "svn": ("subversion",),
    "svnadmin": ("subversion",),
    "apache2": ("httpd",),
    "mod_dav_svn": ("mod_dav_svn",),
    "tc": ("iproute-tc",),
    "nft": ("nftables",),
    "squid": ("squid",),
    "nginx": ("nginx",),
}
_ZYPPER: Names = {
    "svn": ("subversion",),
    "svnadmin": ("subversion",),
    "apache2": ("apache2",),
    "mod_dav_svn": ("subversion-server",),
    "tc": ("iproute2",),
    "nft": ("nftables",),
    "squid": ("squid",),
    "nginx": ("nginx",),
}
_APK: Names = {
    "svn": ("subversion",),
    "svnadmin": ("subversion",),
    "apache2": ("apache2", "apache2-proxy"),
    "mod_dav_svn": ("mod_dav_svn", "apache2-webdav"),
    "tc": ("iproute2",),
    "nft": ("nftables",),
    "squid": ("squid",),
    "nginx": ("nginx",),
}
_PACMAN: Names = {
    "svn": ("subversion",),
    "svnadmin": ("subversion",),
    "apache2": ("apache",),
    "mod_dav_svn": ("subversion",),
    "tc": ("iproute2",),
    "nft": ("nftables",),
    "squid": ("squid",),
    "nginx": ("nginx",),
}

MANAGERS = (
    Manager(
        name="apt-get",
        refresh=("apt-get", "--quiet", "update"),
        # Another apt may be at work; configuration files that somebody changed stay as they are.
        install=(
            *("apt-get", "--quiet", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"),
            *("-o", "Dpkg::Options::=--force-confold", "install"),
        ),
        remove=("dpkg", "--remove"),
        listing=("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev}${Package}\n"),
        simulate=("apt-get", "--simulate", "--no-install-recommends", "install"),
        brings=r"^Inst ([a-z0-9][a-z0-9+.-]*)",
        packages=_APT,
    ),
    Manager(
        name="dnf",
        refresh=(),
        install=("dnf", "--quiet", "--assumeyes", "--setopt=install_weak_deps=False", "install"),
        remove=("rpm", "--erase"),
        listing=("rpm", "--query", "--all", "--queryformat", "%{NAME}\n"),
        simulate=(),
        brings="",
        packages=_DNF,
    ),
    Manager(
        name="zypper",
        refresh=("zypper", "--non-interactive", "--quiet", "refresh"),
        install=("zypper", "--non-interactive", "--quiet", "install", "--no-recommends"),
        remove=("rpm", "--erase"),
        listing=("rpm", "--query", "--all", "--queryformat", "%{NAME}\n"),
        simulate=(),
        brings="",
        packages=_ZYPPER,
    ),
    Manager(
        name="apk",
        refresh=(),
        install=("apk", "--quiet", "--no-progress", "--update-cache", "add"),
        remove=("apk", "--quiet", "del"),
        listing=("apk", "--quiet", "info"),
        simulate=("apk", "--no-progress", "add", "--simulate"),
        brings=r"^\(\d+/\d+\) Installing (\S+) \(",
        packages=_APK,
    ),
    Manager(
        name="pacman",
        refresh=(),
        # Not with a new list of packages: installing from one without upgrading the rest breaks Arch.
        install=("pacman", "--noconfirm", "--needed", "-S"),
        remove=("pacman", "--noconfirm", "-R"),
        listing=("pacman", "-Qq"),
        simulate=("pacman", "-S", "--needed", "--print", "--print-format", "%n"),
        brings=r"^([a-z0-9@_+][a-z0-9@._+-]*)$",
        packages=_PACMAN,
    ),
)
"""In the order in which they are looked for: a system with a foreign one beside its own has its own first."""


def packages(manager: Manager, needs: List[str]) -> List[str]:
    """The packages that hold these needs, each once, in the table's order."""
    return list(dict.fromkeys(name for need in needs for name in manager.packages.get(need, ())))


def brought(manager: Manager, text: str) -> List[str]:
    """What installing would bring, from what `Manager.simulate` printed."""
    return sorted(set(re.findall(manager.brings, text, re.MULTILINE)))


def installed(manager: Manager, text: str) -> List[str]:
    """The names of installed packages, from what `Manager.listing` printed, sorted.

    dpkg also lists what was removed but for its configuration; only `ii`, installed, counts.
    """
    lines = (line.strip() for line in text.splitlines())
    if manager.name == "apt-get":
        return sorted({line[2:].strip() for line in lines if line.startswith("ii")})
    return sorted({line for line in lines if line and " " not in line and line != "gpg-pubkey"})
