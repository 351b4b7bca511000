"""Start, the wizard and its dialogs with made-up content, for tests of the window and for looking at them.

Hosts that are met here are stand-ins: `Meetings` says what each of them tells.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QWidget

from gui.doors import Doors
from gui.new_lab.candidate import Candidate
from gui.new_lab.wizard import NewLabDialog, NewLabWizard
from gui.theme.look import Look
from lab import new_lab, profile
from lab.model import Host, Role
from lab.new_lab import Entry, NewLab
from lab.profile import Profile
from lab.recent import Recent
from lab.rig.meeting import ANSWERS, KEY, LOGIN, PROGRAMS, ROOT, Met, Step
from lab.stop import Stop
from lab.store import Head

CONFIG = """\
Host desk-1
Host desk-2
Host proxy.office.example.com
Host server.example.com
Host *.example.com
    User lab
"""
_CLIENTS = "".join(
    f'''
[hosts."{name}"]
role = "client"
ssh = "lab@{number}.office.example.com"
'''
    for number, name in enumerate(
        ["desk-1", "a-desk-whose-name-is-longer-than-any-card-is-wide", *(f"desk-{n}" for n in range(3, 11))]
    )
)
MANY = f"""\
schema = 1
name = "東京, מינסק: the lab of everybody who works there or did so once"

[hosts.server]
role = "server"
ssh = "admin@tfs.example.com"
services = "/srv/branchlab"
root = "sudo"

[hosts.proxy]
role = "proxy"
ssh = "proxy.office.example.com"
root = "sudo"
cache = {{ kind = "apache-disk", folder = "/var/cache/branchlab" }}
url = "http://proxy.office.example.com:8081"
{_CLIENTS}
[[experiments]]
name = "Do we need the proxy, or is a line that is twice as wide what all of us have waited for since 2008?"
vcs = "subversion"
repository = "http://{{server}}/svn/trunk"
data = "2008"
operations = ["get", "check-out", "undo", "check-in", "history", "diff"]
lines = [
    "64/128 kbit/s 40 ms", "128/256 kbit/s", "256/512 kbit/s 100 ms jitter 10 ms loss 1 %", "512/1024 kbit/s",
    "1/2 Mbit/s", "2/4 Mbit/s", "4/8 Mbit/s", "8/16 Mbit/s", "16/32 Mbit/s",
    "33.3/99.9 Mbit/s 333 ms queue 300 ms", "50/100 Mbit/s",
    "as it is",
]
states = ["disabled", "0 %", "37.5 %", "90 %", "100 %"]
attempts = 12
warm_up = 2
until = {{ within = "5 %", at_most = 20 }}
"""
GOOD = (
    Step(ANSWERS, "ok", "OpenSSH 9.2", port=22),
    Step(KEY, "ok", "accepted now, ED25519"),
    Step(LOGIN, "ok", "by key, as lab"),
    Step(PROGRAMS, "ok", "Apache 2.4.57"),
    Step(ROOT, "ok", "sudo, no prompt"),
)
UNKNOWN = (GOOD[0], Step(KEY, "warn", "not known yet, ED25519", "", "key"))
PASSWORD = (
    GOOD[0],
    Step(KEY, "ok", "known, RSA"),
    Step(LOGIN, "warn", "a password is asked for", "", "password"),
)
AWAY = (
    Step(
        ANSWERS,
        "trouble",
        "lab@desk-9.example.com:22 refuses connections: nothing listens there",
        "Check the address, the port and that sshd is running there.",
        port=22,
    ),
)
LOOKING = (*GOOD[:3], Step(PROGRAMS, "running", "looking for Apache, Squid or nginx"))


def met(address: str = "198.51.100.7", **given: Any) -> Met:
    """What a Debian host is found to be."""
    values: dict[str, Any] = {
        "user": "lab",
        "system": "Debian GNU/Linux 12",
        "root": "sudo",
        "address": address,
    }
    return Met(**{**values, "tools": {"apache2": "2.4.57"}, **given})


class Meetings:
    """Stand-in for `lab.rig.meeting.meet`: by the host's `ssh` what is told of it; others are well."""

    def __init__(self, told: dict[str, Sequence[Step]] | None = None) -> None:
        self.told = dict(told or {})
        self.met: list[Host] = []

    def __call__(self, host: Host, passwords: object, stop: Stop, say: Callable[[Step], None]) -> Met | None:
        self.met.append(host)
        steps = self.told.get(host.ssh, GOOD)
        for step in steps:
            say(step)
        while steps[-1].grade == "running":
            stop.sleep(30)
        wrong = any(step.grade != "ok" for step in steps) or len(steps) < len(GOOD)
        return None if wrong else met(f"198.51.100.{10 + len(self.met)}")


def config(folder: Path) -> Path:
    """A configuration with four hosts."""
    file = folder / "ssh_config"
    file.write_text(CONFIG, "utf-8")
    return file


def profiles(folder: Path, many: int | None = None) -> tuple[Recent, ...]:
    """Two that are there and one that is gone; or so many that are there."""
    made = []
    known = [("Minsk office", 5, 2), ("Vienna", 3, 1), ("An old one", 4, 1)]
    if many is not None:
        known = [
            (f"{n}. 東京 office מינסק, with a name as long as names of offices are", 5, n)
            for n in range(1, many + 1)
        ]
    for name, hosts, experiments in known:
        path = folder / f"{name.split()[0].lower()}.toml"
        if "old" not in name:
            path.write_text("schema = 1\n")
        at = "2026-06-03T09:12:00+00:00"
        made.append(Recent(path=path, name=name, opened=at, hosts=hosts, experiments=experiments))
    return tuple(made)


def heads() -> tuple[Head, ...]:
    """A run that is done, one that was stopped, one that failed."""
    return tuple(
        Head(
            run=f"run-{number}",
            experiment="Do we need the proxy?",
            outcome=outcome,
            started=f"2026-06-0{number}T09:12:00+00:00",
            file=Path(f"/runs/2026060{number}-do-we-need-the-proxy.branchlab"),
            planned=288,
            finished=61 if outcome == "stopped" else 288,
        )
        for number, outcome in enumerate(("done", "stopped", "failed"), 1)
    )


def stranger_profile(folder: Path) -> Profile:
    """A profile from somebody else, with a jump host."""
    text = new_lab.text(
        NewLab(
            name="Minsk office",
            hosts=(
                Entry(role=Role.SERVER, ssh="lab@server.example.com", address="198.51.100.10", root="sudo"),
                Entry(
                    role=Role.PROXY, ssh="proxy", address="192.0.2.7", root="sudo", jump="gate.example.com"
                ),
                Entry(role=Role.CLIENT, ssh="desk-1", address="192.0.2.21"),
            ),
        )
    )
    return profile.parsed(text, folder / "minsk.toml")


def settle(seconds: float = 0.3) -> None:
    """Let the window paint."""
    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


def entered(candidate: Candidate, **given: str) -> None:
    """Enter a host and have it tested at once."""
    candidate.enter(**given)
    candidate.test()
    end = time.monotonic() + 3
    while candidate.busy and time.monotonic() < end and candidate.sign != "running":
        settle(0.05)
    settle(0.2)


def wizard(look: Look, window: QWidget, folder: Path, steps: dict[str, Sequence[Step]]) -> NewLabDialog:
    """The wizard, open, on stand-in hosts."""
    doors = Doors(meeting=Meetings(steps), own=lambda lab: False)
    made = NewLabWizard(look, doors, window, config=config(folder))
    made.open()
    assert made.dialog is not None
    return made.dialog
