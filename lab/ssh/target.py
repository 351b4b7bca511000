"""What a host's `ssh` means: an address, a name from ~/.ssh/config, or a UNIX socket."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import BadInput
from lab.model import Host
from lab.ssh.config import Settings, me, settings

CONNECT_S = 15.0
"""How long connecting may take, where `ConnectTimeout` says nothing else."""
SILENT_S = 15.0
"""A host that said nothing for so long, although it was asked, is lost."""
KEEP_ALIVE_S = 5.0
"""A host that said nothing for so long is asked for a sign of life."""
ALGORITHMS = ("ciphers", "macs", "kexalgorithms", "hostkeyalgorithms")
METHODS = {
    "publickey": "pubkeyauthentication",
    "keyboard-interactive": "kbdinteractiveauthentication",
    "password": "passwordauthentication",
}
"""Ways to log in, in the order in which they are tried, and what switches each off."""
BATCH_S = 300
"""Debian's ssh has this ServerAliveInterval under `BatchMode yes`, where nobody wrote one."""
STRICT = {"true": "yes", "false": "no", "off": "no"}


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
    only_named: bool = False
    """Of the agent's keys, only those that are named."""
    agent: str = "SSH_AUTH_SOCK"
    """The agent's socket: `SSH_AUTH_SOCK`, a path, or `none`."""
    methods: tuple[str, ...] = tuple(METHODS)
    known_hosts: tuple[Path, ...] = ()
    strict: str = "ask"
    """What to do about an unknown host key: yes (refuse), ask, accept-new, no. A changed one is always refused."""
    remembers: bool = True
    """Whether accepted keys are to be kept."""
    jump: str = ""
    command: str = ""
    family: int = socket.AF_UNSPEC
    bind: str = ""
    connect_s: float = CONNECT_S
    keep_alive_s: float = KEEP_ALIVE_S
    silent_s: float = SILENT_S
    algorithms: Mapping[str, str] = field(default_factory=dict)
    """Lists of `Ciphers` and the like, by keyword in lower case."""
    unheeded: tuple[str, ...] = ()
    """What the configuration says of this host and has no effect here."""

    @property
    def known_as(self) -> str:
        """The name under which known_hosts files keep its key."""
        name = self.alias or self.name.lower()
        return name if self.port == 22 or self.alias else f"[{name}]:{self.port}"

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"unix:{self.path}" if self.path else f"{self.user}@{name}:{self.port}"


def resolve(host: Host, config: Path | None = None) -> Target:
    """What `host.ssh` means. Raises BadInput if it, or the configuration, means nothing."""
    if host.ssh.startswith("unix:"):
        path = host.ssh.removeprefix("unix:")
        if not path.startswith("/"):
            raise BadInput(f"{host.ssh!r} needs an absolute path", host=host.name, advice="Write unix:/path.")
        own = (Path(host.key).expanduser(),) if host.key else ()
        return Target(name=host.name, user=me(), path=path, keys=own)
    user, name, port = split(host.ssh.removeprefix("ssh://"))
    if not name or name.startswith("-"):
        raise BadInput(
            f"{host.ssh!r} is no address for SSH",
            host=host.name,
            advice="Write [user@]name[:port], a name from ~/.ssh/config, or unix:/path.",
        )
    try:
        said = settings(name, user, port, config)
        return _target(said, host, user, name, port)
    except BadInput as error:
        error.host = host.name
        raise
    except ValueError as error:
        raise BadInput(f"the SSH configuration of {name} is wrong: {error}", host=host.name) from error


def _target(said: Settings, host: Host, user: str, name: str, port: int) -> Target:
    user = user or said.one("user") or me()
    port = port or int(said.one("port", "22"))
    where = said.one("hostname", name).replace("%h", name).replace("%%", "%")
    alias = said.one("hostkeyalias")
    jump = host.jump or said.one("proxyjump")
    command = "" if host.jump else said.one("proxycommand")
    tokens = _tokens(name, where, user, port, alias, jump)
    files = [
        *_files(said.values.get("userknownhostsfile", ("~/.ssh/known_hosts ~/.ssh/known_hosts2",)), tokens),
        *_files(
            said.values.get("globalknownhostsfile", ("/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2",)),
            tokens,
        ),
    ]
    own = _files(said.values.get("userknownhostsfile", ("~",)), tokens)
    strict = said.one("stricthostkeychecking", "ask")
    strict = STRICT.get(strict, strict)
    unheeded = list(said.unheeded)
    if strict == "no":
        unheeded.append("StrictHostKeyChecking no (a changed host key is refused all the same)")
    unknown = [name for name in said.one("preferredauthentications").split(",") if name not in ("", *METHODS)]
    if unknown:
        unheeded.append(f"PreferredAuthentications {','.join(unknown)}")
    keep_alive_s, silent_s, slower = _patience(said)
    unheeded += slower
    return Target(
        name=where,
        user=user,
        port=port,
        alias=alias,
        keys=(Path(host.key).expanduser(),) if host.key else _keys(said, tokens),
        only_named=said.one("identitiesonly") == "yes",
        agent=_agent(said.one("identityagent", "SSH_AUTH_SOCK"), tokens),
        methods=_methods(said),
        known_hosts=tuple(files),
        strict=strict,
        remembers=any(path != Path(os.devnull) for path in own),
        jump="" if jump.lower() == "none" else expanded(jump, tokens),
        command="" if command.lower() == "none" else expanded(command, tokens),
        family={"inet": socket.AF_INET, "inet6": socket.AF_INET6}.get(
            said.one("addressfamily"), socket.AF_UNSPEC
        ),
        bind=said.one("bindaddress"),
        connect_s=_seconds(said.one("connecttimeout"), CONNECT_S) or CONNECT_S,
        keep_alive_s=keep_alive_s,
        silent_s=silent_s,
        algorithms={key: said.one(key) for key in ALGORITHMS if said.one(key)},
        unheeded=tuple(unheeded),
    )


def _tokens(name: str, where: str, user: str, port: int, alias: str, jump: str) -> dict[str, str]:
    """Tokens of ssh_config(5), TOKENS."""
    here, home = socket.gethostname(), str(Path("~").expanduser())
    mixed = f"{here}{where}{port}{user}{jump if jump.lower() != 'none' else ''}"
    return {
        "%": "%",
        "C": hashlib.sha1(mixed.encode()).hexdigest(),  # noqa: S324 - a name, as ssh makes it
        "d": home,
        "h": where,
        "i": str(os.getuid()) if hasattr(os, "getuid") else "",
        "j": jump,
        "k": alias or name,
        "L": here.partition(".")[0],
        "l": here,
        "n": name,
        "p": str(port),
        "r": user,
        "u": me(),
    }


def expanded(text: str, tokens: Mapping[str, str], *, leniently: bool = False) -> str:
    """`text` with the tokens of ssh_config(5) in it expanded. Raises ValueError for an unknown one.

    `leniently`, that stays as it is: `ssh -G` has expanded some values already.
    """

    def token(found: re.Match[str]) -> str:
        if leniently and found[1] not in tokens:
            return found[0]
        if found[1] not in tokens:
            raise ValueError(f"there is no %{found[1]} in {text!r}")
        return tokens[found[1]]

    return re.sub(r"%(.?)", token, text)


def _path(text: str, tokens: Mapping[str, str], *, leniently: bool = False) -> Path:
    text = expanded(text, tokens, leniently=leniently)
    text = re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], ""), text)
    return Path(text).expanduser()


def _files(values: Sequence[str], tokens: Mapping[str, str]) -> list[Path]:
    """Paths from lists with blanks between them; a piece that begins like no path belongs to the one before,

    unless it is a file itself, in the folder where we are, and both together are none.
    """
    words: list[str] = []
    for value in values:
        for word in value.split(" "):
            relative = not word.startswith(("/", "~", "%", "$", "\\")) and word[1:2] != ":"
            if words and word and relative and not _own_file(words[-1], word):
                words[-1] += f" {word}"
            elif word:
                words.append(word)
    return [_path(word, tokens, leniently=True) for word in words if word.lower() != "none"]


def _own_file(before: str, word: str) -> bool:
    return Path(word).is_file() and not Path(f"{before} {word}").expanduser().exists()


def _keys(said: Settings, tokens: Mapping[str, str]) -> tuple[Path, ...]:
    named = said.values.get("identityfile", ())
    return tuple(_path(name, tokens) for name in named if name.lower() != "none")


def _agent(value: str, tokens: Mapping[str, str]) -> str:
    if value in ("SSH_AUTH_SOCK", "none"):
        return value
    if value.startswith("$"):
        return os.environ.get(value.strip("${}"), "") or "none"
    return str(_path(value, tokens))


def _methods(said: Settings) -> tuple[str, ...]:
    wanted = said.one("preferredauthentications")
    order = [name for name in wanted.split(",") if name in METHODS] if wanted else list(METHODS)
    if not order:
        raise BadInput(
            f"PreferredAuthentications {wanted}: of these ways to log in none is known here",
            advice=f"Write more of them for this host in ~/.ssh/config: {', '.join(METHODS)}.",
        )
    return tuple(name for name in order if said.one(METHODS[name], "yes") not in ("no", "false"))


def _seconds(text: str, default: float) -> float:
    """A time as sshd_config(5) writes it: 90, 1m30s. Raises ValueError."""
    if not text or text == "none":
        return default
    if not re.fullmatch(r"(\d+[smhdwSMHDW]?)+", text):
        raise ValueError(f"{text!r} is no time")
    units = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    return float(sum(int(n) * units[unit.lower()] for n, unit in re.findall(r"(\d+)([smhdwSMHDW]?)", text)))


def _patience(said: Settings) -> tuple[float, float, list[str]]:
    """After how long a silent host is asked, and given up. Longer than usual is not heeded, and named."""
    every = _seconds(said.one("serveraliveinterval"), 0)
    by_batch = said.one("batchmode") == "yes" and every == BATCH_S
    if not every or by_batch:
        return KEEP_ALIVE_S, SILENT_S, []
    limit = every * max(1, int(said.one("serveralivecountmax", "3")))
    slower = [f"ServerAliveInterval {every:g} (a host that is silent for {SILENT_S:g} s is lost)"]
    return min(every, KEEP_ALIVE_S), min(limit, SILENT_S), slower if limit > SILENT_S else []


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
