"""`provision` in the terminal: the exact commands first, then a question, then what the package managers say."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import click

from lab import machines
from lab.asking import Declined
from lab.cli import agreeing, passwords
from lab.cli.plain import plain
from lab.errors import BadInput
from lab.model import Lab
from lab.rig import provisioning
from lab.rig.provisioning import Missing
from lab.stop import Stop


def provision(lab: Lab, *, yes: bool) -> None:
    """Show what would be installed where, ask unless `yes`, install it. Raises Declined, HostTrouble, AgentRefused."""
    _refuse_own(lab)
    known = passwords.signed_in(lab)
    found = provisioning.look(lab, known)
    _show(found)
    if not any(one.needs for one in found):
        click.echo("everything is there")
        return
    _agreed("Install these packages?", yes)
    for host, came in provisioning.provision(lab, Stop(), _say, known).items():
        if came:
            click.echo(f"{host}: installed {', '.join(came)}")
    click.echo("To take them away again: branchlab provision --remove PROFILE")


def unprovision(lab: Lab, *, yes: bool) -> None:
    """Take away what `provision` installed on these hosts, after asking unless `yes`."""
    _refuse_own(lab)
    known = passwords.signed_in(lab)
    ours = {one.host: one.ours for one in provisioning.look(lab, known) if one.ours}
    for host, names in ours.items():
        click.echo(f"{host}: {', '.join(names)}")
    if not ours:
        click.echo("BranchLab installed nothing on these hosts")
        return
    _agreed("Remove these packages?", yes)
    for host, texts in provisioning.unprovision(lab, Stop(), _say, known).items():
        for text in texts:
            click.echo(f"{host}: {plain(text)}")


def _refuse_own(lab: Lab) -> None:
    if machines.own(lab):
        raise BadInput(
            "the hosts of this lab are on this machine, and use its own programs",
            advice="Install them here: installer/system_packages demo, from BranchLab's folder, does it.",
        )


def _show(found: Iterable[Missing]) -> None:
    for one in found:
        if not one.needs:
            continue
        click.echo(f"{one.host} lacks {', '.join(one.needs)}. To be run there as root:")
        if one.unknown or one.manager is None:
            click.echo("    nothing: no package of this system is known for it")
        for argv in one.commands:
            click.echo(f"    {shlex.join(argv)}")


def _agreed(question: str, yes: bool) -> None:
    if yes:
        return
    if not agreeing.somebody_there():
        raise Declined("nobody is at the terminal to agree", advice="Add --yes to agree beforehand.")
    if not click.confirm(question, default=False, err=True):
        raise Declined("nothing was changed")


def _say(host: str, text: str) -> None:
    click.echo(f"  {host}: {plain(text)}")
