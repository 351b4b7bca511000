"""What a host's `ssh` means: an address, a name from ~/.ssh/config, or a UNIX socket."""

from __future__ import annotations

import getpass
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path

import paramiko

from lab.errors import BadInput
from lab.model import Host

log = logging.getLogger(__name__)

MATCHED = frozenset(("all", "host", "originalhost", "user", "localuser"))
"""Criteria of `Match` in ~/.ssh/config that are understood; blocks with others are skipped with a notice."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where and as whom to connect, after ~/.ssh/config was asked."""

    name: str
    user: str
    port: int = 22
    path: str = ""
    """Of a UNIX socket; then `name` and `port` are only for messages."""
    alias: str = ""
    keys: tuple[Path, ...] = ()
    known_hosts: tuple[Path, ...] = ()
    jump: str = ""
    command: str = ""

    @property
    def known_as(self) -> str:
        """The name under which known_hosts files keep its key."""
        name = self.alias or self.name.lower()
        return name if self.port == 22 or self.alias else f"[{name}]:{self.port}"

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path else f"{self.user}@{self.name}:{self.port}"


def resolve(host: Host, config: Path | None = None) -> Target:
    """What `host.ssh` means. Raises BadInput if it means nothing."""
    if host.ssh.startswith("unix:"):
        path = host.ssh.removeprefix("unix:")
        if not path.startswith("/"):
            raise BadInput(f"{host.ssh!r} needs an absolute path", host=host.name, advice="Write unix:/path.")
        own = (Path(host.key).expanduser(),) if host.key else ()
        return Target(name=host.name, user=_me(), path=path, keys=own)
    user, name, port = split(host.ssh)
    if not name:
        raise BadInput(
            f"{host.ssh!r} is no address for SSH",
            host=host.name,
            advice="Write [user@]name[:port], a name from ~/.ssh/config, or unix:/path.",
        )
    said = _config(config or Path("~/.ssh/config").expanduser()).lookup(name)
    files = said.get("userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2").split()
    keys = [host.key] if host.key else list(said.get("identityfile", []))
    jump, command = said.get("proxyjump", ""), said.get("proxycommand", "")
    return Target(
        name=said.get("hostname", name),
        user=user or said.get("user", "") or _me(),
        port=port or int(said.get("port", 22)),
        alias=said.get("hostkeyalias", ""),
        keys=tuple(Path(key).expanduser() for key in keys),
        known_hosts=tuple(Path(file).expanduser() for file in [*files, "/etc/ssh/ssh_known_hosts"]),
        jump="" if jump.lower() == "none" else jump,
        command="" if command.lower() == "none" else command,
    )


def _me() -> str:
    """The user of this process. Not $LOGNAME first: `setpriv` and `runuser` leave it behind."""
    try:
        import pwd
    except ImportError:
        return getpass.getuser()
    return pwd.getpwuid(os.getuid()).pw_name


def split(text: str) -> tuple[str, str, int]:
    """User, name and port of `[user@]name[:port]`; empty or 0 where not given, all empty if it is none."""
    user, at, rest = text.rpartition("@")
    if rest.count(":") > 1 and not rest.startswith("["):
        rest = f"[{rest}]"  # an IPv6 address alone
    found = re.fullmatch(r"(?:\[([^\]\s]+)\]|([^:\s\[\]]+))(?::(\d{1,5}))?", rest)
    if (
        found is None
        or (at and not user)
        or re.search(r"\s", user)
        or int(found[3] or 22) not in range(1, 65536)
    ):
        return "", "", 0
    return user, found[1] or found[2], int(found[3] or 0)


def _config(path: Path) -> paramiko.SSHConfig:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return paramiko.SSHConfig.from_text("")
    try:
        return paramiko.SSHConfig.from_text(understood(text, str(path)))
    except paramiko.SSHException as error:
        raise BadInput(f"{path} cannot be read as an SSH configuration: {error}") from error


def understood(text: str, path: str) -> str:
    """An SSH configuration without the parts that cannot be honoured here; each is named in the log."""
    kept: list[str] = []
    skipping = False
    for number, line in enumerate(text.splitlines(), 1):
        words = re.split(r"[\s=]+", line.strip())
        keyword = words[0].lower()
        if keyword == "match":
            criteria = {word.lower().lstrip("!") for word in words[1:] if word.lower().lstrip("!") in MATCHED}
            skipping = not criteria or bool(_foreign(words[1:]))
            if skipping:
                log.warning("%s:%d: skipped, since it cannot be told here: %s", path, number, line.strip())
        elif keyword == "host":
            skipping = False
        elif keyword == "include":
            log.warning("%s:%d: not followed: %s", path, number, line.strip())
            continue
        if not skipping:
            kept.append(" ".join(words) if keyword == "match" else line)  # paramiko takes no `=` in a Match
    return "\n".join(kept) + "\n"


def _foreign(words: list[str]) -> list[str]:
    """Criteria of a `Match` line that are not understood. All but `all` take one value."""
    foreign, at = [], 0
    while at < len(words) and words[at]:
        criterion = words[at].lower().lstrip("!")
        if criterion not in MATCHED:
            foreign.append(criterion)
        at += 1 if criterion in ("all", "canonical", "final") else 2
    return foreign
