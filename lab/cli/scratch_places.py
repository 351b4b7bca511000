"""`branchlab scratch`: a place in a repository of the user's own where trials may change things."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lab.model import Experiment, Lab
    from lab.profile import Profile
    from lab.rig.host_checks import Checked


def scratch(lab: Lab, experiment: Experiment, *, remove: bool) -> None:
    """Make the experiment's place, or delete it, and say so. Raises what `lab.rig.scratch` raises."""
    from lab import store, vcs
    from lab.cli import passwords
    from lab.rig import scratch as places

    driver = vcs.driver(experiment.vcs, store.data_folder() / "vcs")
    known = passwords.signed_in(lab, root=False)
    passwords.entered(lab, experiment, known, store.data_folder() / "vcs")
    click.echo((places.remove if remove else places.make)(lab, experiment, driver, known))


def revert(profile: Profile, *, force: bool = False) -> None:
    """Take back what runs left in the scratch places of a profile's experiments, each place once.

    `force`: also what runs of other clients left that may still go on.
    """
    from lab import store, vcs
    from lab.cli import passwords
    from lab.credentials import Passwords
    from lab.model import Role
    from lab.rig import scratch as places

    named = {one.scratch: one for one in profile.experiments if one.scratch}
    known = passwords.signed_in(profile.lab, root=False) if named else Passwords()
    for place, experiment in named.items():
        passwords.entered(profile.lab, experiment, known, store.data_folder() / "vcs")
        driver = vcs.driver(experiment.vcs, store.data_folder() / "vcs")
        undone = places.revert(profile.lab, experiment, driver, known, force=force)
        for text in undone or [f"nothing was left in {places.filled(place, profile.lab.one(Role.SERVER))}"]:
            click.echo(text)


def left(lab: Lab, experiment: Experiment) -> tuple[Checked, ...]:
    """What runs have left in the experiment's scratch place, looked at; nothing where it names none."""
    if not experiment.scratch:
        return ()
    from lab import store, vcs
    from lab.cli import passwords
    from lab.errors import LabError
    from lab.model import Role
    from lab.rig import scratch as places
    from lab.rig.host_checks import Checked

    server = lab.one(Role.SERVER).name
    driver = vcs.driver(experiment.vcs, store.data_folder() / "vcs")
    try:
        found = places.left(lab, experiment, driver, passwords.signed_in(lab, root=False))
    except LabError as error:
        return (
            Checked(server, False, f"{experiment.scratch} could not be looked at: {error}", error.advice),
        )
    cure = "branchlab revert PROFILE deletes it, if the server lets it."
    return tuple(Checked(server, False, f"left in the repository: {url}", cure) for url in found)
