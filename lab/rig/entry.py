"""How a repository of the user's own is entered: as whom, with which password, and who vouches for its server."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lab import places
from lab.credentials import VARIABLES, Kind, Passwords
from lab.errors import BadInput, HostLacks, LabError
from lab.model import Experiment

PASSWORD = ("E215004", "E170001")
"""svn's codes, the same in every language: the server wants to know who is asking, or does not believe it."""
CERTIFICATE = "E230001"
"""Nobody who is known vouches for the server's certificate."""
CA_FILE = "E125009"
"""A value of svn's configuration is wrong; of what it is given here only the CA file can be."""
SINCE = (1, 10)
"""The first svn with --password-from-stdin."""


class RepositoryPasswordRefused(HostLacks):
    """The repository's server did not take the password. It was offered once."""


@dataclass(slots=True)
class Entry:
    """One repository's. The password stays in `passwords`, and is asked for again by whoever needs it."""

    site: str
    """HOST:PORT"""
    server: str
    """its host's name in the profile"""
    user: str = ""
    ca: str = ""
    passwords: Passwords = field(default_factory=Passwords, repr=False)
    refused: bool = False

    @property
    def target(self) -> str:
        """USER@HOST:PORT, as the keyring has it after `vcs `."""
        return f"{self.user}@{self.site}"

    def line(self) -> str:
        """The password, as a line of standard input. Raises what keeps it from being known, or right."""
        if self.refused:
            raise self._refusal()
        found = self.passwords.password(self.target, self.server, Kind.VCS)
        if found is None:
            raise BadInput(
                f"the password of {self.target} for the repository is not known, and nobody is there to be asked",
                host=self.server,
                advice=f'Store it: keyring set branchlab "{Kind.VCS} {self.target}", or hand it over in a descriptor: '
                f"{VARIABLES[Kind.VCS]}=3 branchlab run PROFILE 3<FILE.",
            )
        return f"{found}\n"

    def refuse_old(self, version: str | None, host: str) -> None:
        """Raise HostLacks where this version of svn cannot be given a password without everyone seeing it."""
        numbers = re.match(r"(\d+)\.(\d+)", version or "")
        if self.user and numbers and (int(numbers[1]), int(numbers[2])) < SINCE:
            raise HostLacks(
                f"svn {version} takes a password only as an argument, which every user of {host} could read",
                host=host,
                tried="looked for --password-from-stdin, which svn has since 1.10",
                advice="Install a newer Subversion there, or let the lab's hosts in by their addresses (Require ip).",
            )

    def trouble(self, told: str, host: str, tried: str) -> LabError | None:
        """What svn wanted and was not given, in a sentence; None if it failed by something else."""
        last = shortened(told)
        if CERTIFICATE in told:
            return BadInput(
                f"svn asked whether to trust the certificate of {self.site}, which nobody answers: {last}",
                host=host,
                tried=tried,
                advice=f"{self.ca} does not vouch for it: it must hold who issued the certificate, which must name the"
                " host as the repository's address does, and be valid today."
                if self.ca
                else 'Write ca = "/path/on/the/client.pem" in the experiment: who issued the certificate.',
            )
        if self.ca and CA_FILE in told:
            return BadInput(
                f"svn cannot use {self.ca}: {last}",
                host=host,
                tried=tried,
                advice="Write ca as a readable file in PEM on that host.",
            )
        if not any(code in told for code in PASSWORD):
            return None
        if self.user:
            self.refused = True
            self.passwords.refused(self.target, Kind.VCS)
            return self._refusal(last, tried)
        return BadInput(
            f"the repository asks for a user and a password, and BranchLab has none to give: {last}",
            host=host,
            tried=tried,
            advice='Write user = "NAME" in the experiment, or let the lab\'s hosts in without one, by their addresses'
            " (Require ip). What was read with a password no cache may store, so a proxy can only be measured"
            " where reading needs none.",
        )

    def _refusal(self, told: str = "", tried: str = "") -> RepositoryPasswordRefused:
        return RepositoryPasswordRefused(
            f"the repository's server did not take the password of {self.target}{': ' if told else ''}{told}",
            host=self.server,
            tried=tried,
            advice="It was offered once, and is not offered again: correct it where it is kept, or `user`.",
        )


def of(experiment: Experiment, url: str, server: str, passwords: Passwords | None) -> Entry:
    """How this experiment's repository, at `url` on the host of that name, is entered."""
    name = urlsplit(url).hostname or ""
    return Entry(
        site=f"{f'[{name}]' if ':' in name else name}:{places.port(url)}",
        server=server,
        user=experiment.user or "",
        ca=experiment.ca or "",
        passwords=passwords or Passwords(),
    )


def shortened(told: str) -> str:
    """The end of what svn said, without what it says of a missing configuration."""
    return "\n".join(line for line in told.splitlines() if "warning: W000020" not in line)[-600:]
