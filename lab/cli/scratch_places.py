"""`branchlab scratch`: a place in a repository of the user's own where trials may change things."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lab.model import Experiment, Lab
    from lab.profile import Profile


def scratch(lab: Lab, experiment: Experiment, *, remove: bool) -> None:
    """Make the experiment's place, or delete it, and say so. Raises what `lab.rig.scratch` raises."""
    from lab import store, vcs
    from lab.cli import passwords
    from lab.rig import scratch as places

    driver = vcs.driver(experiment.vcs, store.data_folder() / "vcs")
    known = passwords.signed_in(lab, root=False)
    passwords.entered(lab, experiment, known, store.data_folder() / "vcs")
    click.echo((places.remove if remove else places.make)(lab, experiment, driver, known))


def revert(profile: Profile) -> None:
    """Take back what runs left in the scratch places of a profile's experiments, each place once."""
    from lab import store, vcs
    from lab.cli import passwords
    from lab.credentials import Passwords
    from lab.rig import scratch as places

    named = {one.scratch: one for one in profile.experiments if one.scratch}
    known = passwords.signed_in(profile.lab, root=False) if named else Passwords()
    for place, experiment in named.items():
        passwords.entered(profile.lab, experiment, known, store.data_folder() / "vcs")
        driver = vcs.driver(experiment.vcs, store.data_folder() / "vcs")
        for text in places.revert(profile.lab, experiment, driver, known) or [f"nothing was left in {place}"]:
            click.echo(text)
