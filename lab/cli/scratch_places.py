"""`branchlab scratch`: a place in a repository of the user's own where trials may change things."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lab.model import Experiment, Lab


def scratch(lab: Lab, experiment: Experiment, *, remove: bool) -> None:
    """Make the experiment's place, or delete it, and say so. Raises what `lab.rig.scratch` raises."""
    from lab import store, vcs
    from lab.rig import scratch as places

    driver = vcs.driver(experiment.vcs, store.data_folder() / "vcs")
    click.echo((places.remove if remove else places.make)(lab, experiment, driver))
