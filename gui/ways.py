"""What the doors do with hosts unless a test gives others: `lab.machines`, `lab.rig` and `lab.hands`.

Each is imported where it is first wanted: the window must be up in a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lab.model import Experiment, Host, Lab
from lab.stop import Stop

if TYPE_CHECKING:
    from lab.asking import Question
    from lab.credentials import Passwords
    from lab.hands import Hands
    from lab.rig.host_checks import Checked
    from lab.rig.meeting import Met, Step
    from lab.rig.provisioning import Missing
    from lab.testbed import Testbed


def testbed(lab: Lab, *, passwords: Passwords, agreed: frozenset[str]) -> Testbed:
    """The hosts of a lab, for a run."""
    from lab import store
    from lab.machines import Machines

    return Machines(lab, store.data_folder() / "vcs", passwords=passwords, agreed=agreed)


def look(lab: Lab, experiment: Experiment, passwords: Passwords) -> tuple[Question, ...]:
    """What a person must agree to before this run."""
    from lab import machines, store

    return machines.look(lab, experiment, store.data_folder() / "vcs", passwords)


def sign_in(host: Host, passwords: Passwords) -> None:
    """Sign in on a host, as a run would."""
    from lab.rig import hosts

    hosts.signed_in(host, passwords)


def enter(lab: Lab, experiment: Experiment, passwords: Passwords) -> None:
    """Enter the experiment's repository, and the hosts' own users, with a password."""
    from lab import machines, store

    machines.signed_in(lab, experiment, passwords, store.data_folder() / "vcs")


def revert(lab: Lab, passwords: Passwords) -> Mapping[str, Sequence[str]]:
    """Take back what any run left: what that was, by host."""
    from lab import machines

    return machines.revert(lab, passwords=passwords)


def check(
    lab: Lab,
    experiment: Experiment | None,
    passwords: Passwords,
    stop: Stop,
    say: Callable[[str], None],
) -> Sequence[Checked]:
    """What a run would need on every host, looked at."""
    from lab import machines, store

    return machines.check(lab, experiment, passwords, store.data_folder() / "vcs", stop, say)


def meet(host: Host, passwords: Passwords, stop: Stop, say: Callable[[Step], None]) -> Met | None:
    """A host met for the first time; None if somebody stopped it."""
    from lab.rig import meeting

    return meeting.meet(host, passwords, stop, say)


def lacking(lab: Lab, host: str, passwords: Passwords) -> Missing:
    """What one host lacks."""
    from lab.rig import provisioning

    (found,) = provisioning.look(lab, passwords, only=(host,))
    return found


def install(
    lab: Lab, host: str, stop: Stop, say: Callable[[str, str], None], passwords: Passwords
) -> Sequence[str]:
    """Install what one host lacks; what was done, in words."""
    from lab.rig import provisioning

    return provisioning.provision(lab, stop, say, passwords, only=(host,))[host]


def uninstall(
    lab: Lab, host: str, stop: Stop, say: Callable[[str, str], None], passwords: Passwords
) -> Sequence[str]:
    """Take away what was installed on one host; what was done, in words."""
    from lab.rig import provisioning

    return provisioning.unprovision(lab, stop, say, passwords, only=(host,))[host]


def handed(lab: Lab, experiment: Experiment | None, passwords: Passwords) -> Hands:
    """To change a lab by hand."""
    from lab import hands, store

    return hands.Hands(lab, experiment, store.data_folder() / "vcs", passwords=passwords)


def own(lab: Lab) -> bool:
    """True if BranchLab made this lab itself."""
    from lab import machines

    return machines.own(lab)
