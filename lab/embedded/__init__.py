"""The embedded lab: three or more hosts on this Linux machine, which are only more SSH hosts.

with embedded.up(clients=2) as lab:     # ends with this process, however it ends
    ... lab.lab.hosts, lab.profile_path

embedded.up(tied=False)                 # stays until embedded.down(), or until the machine ends
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lab.embedded import folders, making, needs, plan, profile_text
from lab.embedded.making import Embedded
from lab.errors import BadInput, HostLacks, LabError
from lab.model import Lab

__all__ = ["Embedded", "Status", "down", "is_own", "shell", "status", "up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One lab of this user. `tied`: it ends with the process that made it, not with `down`."""

    folder: Path
    profile: Path
    hosts: tuple[str, ...]
    tied: bool


def up(clients: int = 1, *, tied: bool = True, folder: Path | None = None) -> Embedded:
    """Make a lab of a server, a proxy and so many clients, in about a second.

    Its own folder is made inside `folder` (default: the system's folder for temporary files). A tied lab's
    profile is in that folder; the other's goes to the user's data folder, of which there can be one.
    Raises BadInput for what cannot be, HostLacks where this machine cannot hold a lab.
    """
    if sys.platform != "linux":
        raise HostLacks("an embedded lab needs Linux", advice="name hosts of your own in a profile")
    needs.check_programs()
    sweep(folder)
    if not tied and (standing := _standing(folder)):
        raise BadInput(
            f"a lab is up already: {standing[0].profile}",
            advice="use it, or end it first: branchlab lab down",
        )
    place = folders.made(folder)
    lock = folders.lock(place)
    try:
        profile = place / "profile.toml" if tied else _profile()
        try:
            planned = plan.planned(place, profile, clients, tied=tied)
        except ValueError as error:
            folders.remove(place)
            raise BadInput(str(error)) from None
        return making.make(planned, lock)
    finally:
        os.close(lock)


def down(folder: Path | None = None) -> list[Path]:
    """End the lab of `lab up`, if there is one, and remove what killed labs left. Gives the folders gone."""
    gone = sweep(folder)
    for lab in _standing(folder):
        making.end(Path(lab.folder))
        folders.sweep(Path(lab.folder))
        if Path(lab.folder).exists():
            raise LabError(f"the lab in {lab.folder} is still there")
        gone.append(Path(lab.folder))
    return gone


def status(folder: Path | None = None) -> list[Status]:
    """This user's living labs, the one of `lab up` first. Removes what killed labs left."""
    sweep(folder)
    living = [lab for lab in folders.found(folder) if not folders.abandoned(Path(lab.folder))]
    return [
        Status(
            folder=Path(lab.folder),
            profile=Path(lab.profile),
            hosts=tuple(host.name for host in lab.hosts),
            tied=lab.tied,
        )
        for lab in sorted(living, key=lambda lab: (lab.tied, lab.folder))
    ]


def is_own(lab: Lab) -> bool:
    """True if every host of this profile belongs to one lab of this user that stands on this machine.

    A cache that somebody wrote into its profile and that is none of the lab's own makes it another lab.
    """
    first, _, path = lab.hosts[0].ssh.partition("unix:") if lab.hosts else ("-", "", "")
    folder = Path(path).parent.parent
    try:
        if first or not folder.is_absolute() or folder.lstat().st_uid != os.geteuid():
            return False
        planned = plan.loaded(folder)
    except (OSError, ValueError):
        return False
    sockets = {f"unix:{host.ssh}" for host in planned.hosts}
    # A cache without a folder is reached by commands of the user's own.
    caches = [Path(host.cache.folder or "/") for host in lab.hosts if host.cache is not None]
    return (
        Path(planned.folder) == folder
        and all(host.ssh in sockets for host in lab.hosts)
        and all(".." not in cache.parts and cache.is_relative_to(folder) for cache in caches)
        and not folders.abandoned(folder)
    )


def shell(host: str, command: list[str], folder: Path | None = None) -> int:
    """A shell or one command on a host of the lab of `lab up`. Its exit status (255: no connection)."""
    standing = _standing(folder)
    if not standing:
        raise BadInput("no lab is up", advice="make one first: branchlab lab up")
    if standing[0].host(host) is None:
        names = ", ".join(each.name for each in standing[0].hosts)
        raise BadInput(f"the lab has no host {host}", advice=f"name one of: {names}")
    words = [needs.program("ssh") or "ssh", "-F", f"{standing[0].folder}/ssh_config"]
    # ssh joins its words with spaces, and the host's shell takes them apart again.
    asked = ["--", shlex.join(command)] if command else []
    return subprocess.run([*words, host, *asked], check=False).returncode


def sweep(folder: Path | None = None) -> list[Path]:
    """Remove the folders of this user's labs in which nobody lives any more, and give their names."""
    return [Path(lab.folder) for lab in folders.found(folder) if folders.sweep(Path(lab.folder))]


def _profile() -> Path:
    return profile_text.data_folder() / "labs" / "embedded.toml"


def _standing(folder: Path | None) -> list[plan.LabPlan]:
    """The living lab of `lab up`, if there is one, wherever its folder is."""
    labs = list(folders.found(folder))
    return [
        lab
        for lab in labs
        if not lab.tied and Path(lab.profile) == _profile() and not folders.abandoned(Path(lab.folder))
    ]
