"""A person at the terminal is asked for passwords and host keys: before the work begins, and never in a script."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

import click

from lab import credentials
from lab.cli import agreeing
from lab.cli.plain import plain
from lab.credentials import Offered, Passwords
from lab.errors import BadInput, HostTrouble
from lab.model import Experiment, Host, Lab

IN_MEMORY = "it is kept in memory until BranchLab ends"
NO_KEYRING = (
    f"no system keyring answers here, so nothing is remembered: a password is asked for, and {IN_MEMORY}"
)
TRIES = 3
"""So often a person may type a password for one host; each wrong one is told."""


def signed_in(lab: Lab, *, root: bool = True) -> Passwords:
    """Every password that the lab's hosts ask for, got now where a person is at the terminal; and host keys accepted.

    Without `root` only what is needed to log in. Raises PasswordRefused or LoginPasswordRefused after the last
    wrong one. What else is wrong with a host is not told here.
    """
    passwords = Passwords()
    if agreeing.somebody_there():
        with passwords.asking(_ask, _accepted):
            for host in lab.hosts:
                # A lab of this machine: its keys are in the profile, and nobody has a password.
                if host.root in ("sudo", "doas") or not host.ssh.startswith("unix:"):
                    _signed_in(host, passwords, root)
                    _offer(passwords)
    return passwords


def entered(lab: Lab, experiment: Experiment, passwords: Passwords, drivers: Path) -> None:
    """The password of the experiment's repository, got now where a user is named, each tried once.

    Raises RepositoryPasswordRefused after the last wrong one, and BadInput where none is known and nobody is there.
    """
    from lab import machines
    from lab.rig.entry import RepositoryPasswordRefused

    there = agreeing.somebody_there()
    with passwords.asking(_ask if there else None, _accepted if there else None):
        for attempt in range(TRIES):
            try:
                machines.signed_in(lab, experiment, passwords, drivers)
                return _offer(passwords)
            except RepositoryPasswordRefused as error:
                if attempt == TRIES - 1 or not there:
                    raise
                click.echo(str(error), err=True)
    return None


def _signed_in(host: Host, passwords: Passwords, root: bool) -> None:
    from lab.agents import PasswordRefused
    from lab.rig import hosts
    from lab.ssh.login import LoginPasswordRefused

    for attempt in range(TRIES):
        try:
            return hosts.signed_in(host, passwords, root=root)
        except (PasswordRefused, LoginPasswordRefused) as error:
            if attempt == TRIES - 1:
                raise
            click.echo(str(error), err=True)
        except (HostTrouble, BadInput):
            return None  # what follows meets the same, and knows what it means
    return None


def _offer(passwords: Passwords) -> None:
    """Ask whether what was typed, and was right, is to be kept in the keyring; not where there is none."""
    for one in passwords.taken():
        if not credentials.keyring_there():
            continue
        click.echo(plain(f"Remember {one.what} in the system keyring? Type yes [no]: "), err=True, nl=False)
        if sys.stdin.readline().strip().lower() == "yes" and not passwords.remember(one.target, one.kind):
            click.echo(f"The keyring did not take it: {IN_MEMORY}.", err=True)


def forgotten() -> str:
    """Take out of the keyring whatever BranchLab put there; what that was, in lines for people."""
    gone = credentials.forget()
    if gone is None:
        return NO_KEYRING
    return "\n".join(f"forgotten: {name}" for name in gone) or "nothing was remembered"


def remembered() -> str:
    """The names of what BranchLab put into the keyring, a line each."""
    names = credentials.remembered()
    if names is None:
        return NO_KEYRING
    return "\n".join(names) or "nothing is remembered"


def _ask(question: str) -> str | None:
    try:
        return getpass.getpass(question, stream=sys.stderr)
    except EOFError:
        return None


def _accepted(offered: Offered) -> bool:
    """Whether a person typed `yes`, of a key that changed the host's name; anything else is no."""
    if offered.known:
        return _changed(offered)
    click.echo(
        f"The key of {offered.host} ({offered.target}) is not known here:\n"
        f"  {offered.kind} {offered.fingerprint}\n"
        "Compare it with what the host itself says: ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub",
        err=True,
    )
    click.echo("Is it the same? Type yes to accept it and keep it [no]: ", err=True, nl=False)
    return sys.stdin.readline().strip().lower() == "yes"


def _changed(offered: Offered) -> bool:
    known = "\n".join(f"  known  {one}" for one in offered.known.split(", "))
    click.echo(
        plain(
            f"The key of {offered.host} ({offered.target}) is not the one that is known: another machine may be"
            f" answering.\n{known}\n  shown  {offered.kind} {offered.fingerprint}\n"
            "Only if the host was set up anew, and it says the same itself: ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub"
        ),
        err=True,
    )
    click.echo(
        plain(f"To trust the new key, type the host's name, {offered.host} [no]: "), err=True, nl=False
    )
    return sys.stdin.readline().strip() == offered.host
