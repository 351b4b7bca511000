"""What this machine must have for an embedded lab, and what stands in the way where it has not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from lab.errors import HostLacks

SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where a lab host looks for programs: an ordinary user's PATH lacks sbin, where half of these are."""

PROGRAMS = {
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "nft": "nftables",
    "svn": "subversion",
    "svnadmin": "subversion",
    "apache2": "apache2-bin",
    "htcacheclean": "apache2-utils",
    "python3": "python3",
}
FILES = {"/usr/lib/apache2/modules/mod_dav_svn.so": "libapache2-mod-svn"}

ROOTLESS = ("--user", "--map-current-user", "--keep-caps")


def program(name: str) -> str | None:
    """The full path of a program, looked for where a lab host does, then on the user's own PATH."""
    return shutil.which(name, path=SEARCH) or shutil.which(name)


def missing(
    find: Callable[[str], str | None] = program, exists: Callable[[str], bool] = os.path.exists
) -> dict[str, str]:
    """What is not there: program or file, and the Debian package that brings it."""
    lacking = {name: package for name, package in PROGRAMS.items() if find(name) is None}
    return lacking | {name: package for name, package in FILES.items() if not exists(name)}


def check_programs(
    find: Callable[[str], str | None] = program, exists: Callable[[str], bool] = os.path.exists
) -> None:
    """Raise HostLacks that names every missing program and its package, all at once."""
    lacking = missing(find, exists)
    if not lacking:
        return
    packages = " ".join(sorted(set(lacking.values())))
    listed = ", ".join(f"{name} ({package})" for name, package in lacking.items())
    # apache2-bin alone: the package apache2 would start a web server on this machine.
    raise HostLacks(
        f"this machine lacks what an embedded lab is made of: {listed}",
        tried=f"looked in {SEARCH}",
        advice="run installer/system_packages (`make demo` and `make test` do), or: "
        f"sudo apt-get install --no-install-recommends {packages}",
    )


def setting(name: str) -> str | None:
    """A kernel setting's value, or None if this kernel has none such."""
    try:
        return Path("/proc/sys", name.replace(".", "/")).read_text("ascii").strip()
    except OSError:
        return None


_SWITCHES = (
    ("user.max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ("kernel.unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
)


def no_namespaces(
    tried: str, said: str, *, root: bool, read: Callable[[str], str | None] = setting
) -> HostLacks:
    """Why namespaces could not be made: the settings in the way, and the ways out.

    `said` is what the failing program said. With AppArmor's restriction (Ubuntu 23.10 and later) `unshare`
    succeeds, but no capability follows, and the first mount or veth pair is refused.
    """
    if root:
        return HostLacks(
            f"root may not make the namespaces of an embedded lab here: {said}",
            tried=tried,
            advice="in a container, start it with --privileged, or with "
            "--cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined",
        )
    found = [(name, cure) for name, bad, cure in _SWITCHES if read(name) == bad]
    if not found:
        return HostLacks(
            f"an ordinary user may not make the namespaces of an embedded lab here: {said}",
            tried=tried,
            advice="run the command as root (sudo); in a container, allow user namespaces (seccomp)",
        )
    names = " and ".join(f"{name} = {read(name)}" for name, _cure in found)
    cures = " ".join(cure for _name, cure in found)
    return HostLacks(
        f"the setting {names} keeps ordinary users from making the namespaces of an embedded lab ({said})",
        tried=tried,
        advice=f"run the command as root (sudo), or allow it until the next boot: sudo sysctl -w {cures}",
    )
