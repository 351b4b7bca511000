"""Made-up results of checks: for tests of the window, and for looking at them."""

from __future__ import annotations

from lab.rig.host_checks import Checked
from lab.rig.provisioning import Missing

APT = (
    *("apt-get", "--quiet", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"),
    *("-o", "Dpkg::Options::=--force-confold"),
)

INSTALL = (
    "apt-get --quiet update && apt-get --quiet --yes --no-install-recommends -o DPkg::Lock::Timeout=120 "
    "-o Dpkg::Options::=--force-confold install iproute2 nftables"
)
BY_PACKAGES = "branchlab provision PROFILE installs it, or somebody there as root:"
LONG_PATH = "/srv/" + "a-very-long-folder-without-any-place-to-break/" * 4


def lacks(host: str, name: str) -> Checked:
    return Checked(host, False, f"{name} is missing", BY_PACKAGES, INSTALL, True)


def some(client: str = "client", lab: str = "Test lab") -> tuple[Checked, ...]:
    """Two things missing that packages cure, one trouble, two warnings, and what is right."""
    return (
        Checked(client, True, "Debian GNU/Linux 12 (bookworm), kernel 6.1.0-18, 4 processors, Python 3.11.2"),
        Checked(client, True, "Subversion's client: svn, version 1.14.2"),
        Checked(client, True, "41.2 GB free in /home/anna (ext4)"),
        Checked(client, True, "clock +0.003 s from this machine's, ± 0.001 s"),
        Checked("proxy", True, "Debian GNU/Linux 12 (bookworm), kernel 6.1.0-18, 2 processors, Python 3.11.2"),
        Checked("proxy", True, "Apache httpd: 2.4.57"),
        Checked("proxy", True, "1.1 GB free in /var/cache/branchlab (xfs)",
                "Enough for a small data set; a large one may fill the disk."),
        Checked("proxy", True, "clock -312.004 s from this machine's, ± 0.002 s",
                "Set the clock there (NTP), or its journal will be hard to compare."),
        Checked("server", True, "Debian GNU/Linux 12 (bookworm), kernel 6.1.0-18, 8 processors, Python 3.11.2"),
        lacks("server", "tc (iproute2)"),
        lacks("server", "nft (nftables)"),
        Checked("server", False, "no way to change this host is given, so no line can be limited",
                'Write root = "sudo" (or "doas", or "direct") under [hosts.server].'),
        Checked(lab, True, "what client and proxy say to each other is counted on the client alone"),
    )  # fmt: skip


def well() -> tuple[Checked, ...]:
    """Nothing to be done."""
    return tuple(
        Checked(host, True, text)
        for host in ("client", "proxy", "server")
        for text in ("Alpine Linux 3.20, kernel 6.6, 2 processors, Python 3.12", "no offloads are on")
    )


def thirty() -> tuple[Checked, ...]:
    """30 items of one host, with long texts, in several scripts, and with what nobody should be shown."""
    texts = (
        f"the profile's address is none of this host's own: {LONG_PATH}",
        "缺少 Subversion 客户端，请联系管理员安装后再试一次，否则无法开始测量",
        "المساحة الحرة على القرص لا تكفي لنسخة العمل وذاكرة التخزين المؤقت",
        "two\nlines, a \x1b[31mcolour\x1b[0m and a \u202eturned\u202c word",
        "x" * 300,
    )
    return tuple(
        Checked(
            "client",
            n % 3 != 0,
            f"{n}: {texts[n % len(texts)]}",
            f"Do this: {texts[(n + 1) % len(texts)]}" if n % 3 != 2 else "",
            f"ls -l '{LONG_PATH}' # {n}" if n % 3 == 0 else "",
        )
        for n in range(30)
    )


def missing(
    host: str,
    needs: tuple[str, ...] = ("tc", "nft"),
    *,
    unknown: tuple[str, ...] = (),
    by_hand: bool = False,
    ours: tuple[str, ...] = (),
) -> Missing:
    """What a Debian host lacks."""
    names = {"tc": "iproute2", "nft": "nftables", "svn": "subversion"}
    packages = tuple(names.get(need, need) for need in needs)
    commands = (("apt-get", "--quiet", "update"), (*APT, "install", *packages)) if needs else ()
    return Missing(
        host=host, needs=needs, packages=packages, commands=commands, unknown=unknown, manager="apt-get",
        ours=ours, by_hand=by_hand,
    )  # fmt: skip
