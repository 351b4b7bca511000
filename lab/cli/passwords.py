"""A person at the terminal is asked for passwords: before the work begins, never amid it, and never in a script."""

from __future__ import annotations

import getpass
import sys

import click

from lab.cli import agreeing
from lab.credentials import Passwords
from lab.errors import HostTrouble
from lab.model import Host, Lab

TRIES = 3
"""So often a person may type a password for one host; each wrong one is told."""


def signed_in(lab: Lab) -> Passwords:
    """Every password that the lab's hosts ask for, got now where a person is at the terminal.

    Raises PasswordRefused after the last wrong one. What else is wrong with a host is not told here.
    """
    passwords = Passwords()
    wanted = [host for host in lab.hosts if host.root in ("sudo", "doas")]
    if wanted and agreeing.somebody_there():
        with passwords.asking(_ask):
            for host in wanted:
                _signed_in(host, passwords)
    return passwords


def _signed_in(host: Host, passwords: Passwords) -> None:
    from lab.agents import PasswordRefused
    from lab.rig import hosts

    for attempt in range(TRIES):
        try:
            return hosts.signed_in(host, passwords)
        except PasswordRefused as error:
            if attempt == TRIES - 1:
                raise
            click.echo(str(error), err=True)
        except HostTrouble:
            return None  # what follows meets the same, and knows what it means
    return None


def _ask(question: str) -> str | None:
    try:
        return getpass.getpass(question, stream=sys.stderr)
    except EOFError:
        return None
