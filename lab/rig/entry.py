"""How a repository of the user's own is entered: as whom, with which password, and who vouches for its server."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lab import places
from lab.credentials import VARIABLES, Kind, Passwords
from lab.errors import BadInput, HostLacks, LabError
from lab.model import Experiment, Host
from lab.rig.hosts import Connected
from lab.stop import Stop

PASSWORD = ("E215004", "E170001")
"""svn's codes, the same in every language: the server wants to know who is asking, or does not believe it."""
OF_A_PROXY = "Proxy authentication"
"""svn has the same code for that; the language is set for all its commands."""
CERTIFICATE = "E230001"
"""Nobody who is known vouches for the server's certificate."""
CA_FILE = "E125009"
"""A value of svn's configuration is wrong; of what it is given here only the CA file can be."""
SINCE = (1, 10)
"""The first svn with --password-from-stdin."""


class RepositoryPasswordRefused(HostLacks):
    """The repository's server, or the proxy before it, did not take the password. It was offered once."""


@dataclass(slots=True)
class Entry:
    """One repository's. The password stays in `passwords`, and is asked for again by whoever needs it."""

    site: str
    """HOST:PORT"""
    server: str
    """its host's name in the profile"""
    user: str = ""
    ca: str = ""
    kind: Kind = Kind.VCS
    """or PROXY: then it is the proxy that is passed"""
    passwords: Passwords = field(default_factory=Passwords, repr=False)
    refused: bool = False

    @property
    def target(self) -> str:
        """USER@HOST:PORT, as the keyring has it after `vcs ` or `proxy `."""
        return f"{self.user}@{self.site}"

    @property
    def what(self) -> str:
        """Who wants to know it, for people."""
        return "proxy" if self.kind is Kind.PROXY else "repository's server"

    def line(self) -> str:
        """The password, as a line of standard input."""
        return f"{self.password()}\n"

    def settings(self) -> str:
        """User and password of a proxy, as svn's configuration has them. Raises BadInput where it cannot hold them."""
        found = self.password()
        if found != found.strip() or "%(" in found or not found.isprintable():
            raise BadInput(
                f"svn's configuration cannot hold the password of {self.target}",
                host=self.server,
                advice="One without spaces at its ends, control characters and %( can be used.",
            )
        return f"[global]\nhttp-proxy-username = {self.user}\nhttp-proxy-password = {found}\n"

    def password(self) -> str:
        """The password. Raises what keeps it from being known, or right."""
        if self.refused:
            raise self._refusal()
        found = self.passwords.password(self.target, self.server, self.kind)
        if found is None:
            why = self.passwords.astray(self.kind)
            raise BadInput(
                f"the {self.what} wants the password of {self.target}, which is not known, and nobody is there to be"
                f" asked{'; ' if why else ''}{why}",
                host=self.server,
                advice=f'Store it: keyring set branchlab "{self.kind} {self.target}", or hand it over in a descriptor: '
                f"{VARIABLES[self.kind]}=3 branchlab run PROFILE 3<FILE.",
            )
        return found

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
        if not any(code in told for code in PASSWORD) or OF_A_PROXY in told:
            return None
        if self.user:
            return self.refuse(last, tried)
        return BadInput(
            f"the repository asks for a user and a password, and BranchLab has none to give: {last}",
            host=host,
            tried=tried,
            advice='Write user = "NAME" in the experiment, or let the lab\'s hosts in without one, by their addresses'
            " (Require ip). What was read with a password no cache may store, so a proxy can only be measured"
            " where reading needs none.",
        )

    def refuse(self, told: str = "", tried: str = "") -> RepositoryPasswordRefused:
        """Never offer the password again; what to raise."""
        self.refused = True
        self.passwords.refused(self.target, self.kind)
        return self._refusal(told, tried)

    def _refusal(self, told: str = "", tried: str = "") -> RepositoryPasswordRefused:
        return RepositoryPasswordRefused(
            f"the {self.what} did not take the password of {self.target}{': ' if told else ''}{told}",
            host=self.server,
            tried=tried,
            advice="It was offered once, and is not offered again: correct it where it is kept, or `user`.",
        )


def of_proxy(proxy: Host, at: tuple[str, int], passwords: Passwords | None) -> Entry | None:
    """How a proxy of the user's own, reached `at`, is passed; None where it asks nobody."""
    if not proxy.user:
        return None
    name, port = at
    return Entry(
        site=f"{f'[{name}]' if ':' in name else name}:{port}",
        server=proxy.name,
        user=proxy.user,
        kind=Kind.PROXY,
        passwords=passwords or Passwords(),
    )


def try_proxy(client: Connected, passing: Entry, url: str, at: tuple[str, int], stop: Stop) -> None:
    """Offer the proxy its password once. Raises RepositoryPasswordRefused, or HostLacks on a client without pipes.

    One that does not know the Basic way is not tried beforehand.
    """
    if client.facts.get("windows"):
        raise HostLacks(
            f"{passing.server} asks for a password, which svn can be given through a pipe on POSIX systems only",
            host=client.name,
            advice="Let the client's address in without a password, or take states with the proxy out.",
        )
    passing.settings()
    login = {"user": passing.user, "password": passing.password()}
    args = {"url": url, "proxy": {"host": at[0], "port": at[1]}, "login": login}
    word = client.agent.ask("http.look", args, timeout_s=60, stop=stop)
    ways = word["headers"].get("proxy-authenticate", "").lower()
    if word["status"] == 407 and "basic" in ways:
        raise passing.refuse(tried=f"GET {url} through it, from {client.name}")
    if word["status"] != 407:
        passing.passwords.right(passing.target, passing.kind)


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
