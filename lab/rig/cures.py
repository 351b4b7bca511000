"""The exact command that cures what a host lacks, for its own system. As root there."""

from __future__ import annotations

from lab.rig.hosts import Connected

_FEDORAS = ("fedora", "red hat", "rocky", "alma", "centos", "oracle", "amazon")
"""Words in the names of systems with Fedora's packages."""


def module(one: Connected, name: str) -> str:
    """What loads this module of the kernel, with its package where a system keeps rare ones apart."""
    system = str(one.facts.get("os") or "").lower()
    load = f"modprobe {name}"
    if "ubuntu" in system:
        return f"{load} || {{ apt-get install linux-modules-extra-$(uname -r) && {load}; }}"
    if any(word in system for word in _FEDORAS):
        return f"{load} || {{ dnf install kernel-modules-extra-$(uname -r) && {load}; }}"
    return load


def clock(one: Connected) -> str:
    """What lets the clock be set by NTP from now on."""
    if one.facts.get("windows"):
        return "w32tm /resync"
    if "alpine" in str(one.facts.get("os") or "").lower():
        return "setup-ntp chrony"
    return "timedatectl set-ntp true"
