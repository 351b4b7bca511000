"""Meets one host for the first time: does it answer, is its key known, who is let in, what is there; nothing changes.

The agent runs from memory, so that not even its own file is left in the user's cache folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lab import agents, ssh
from lab.credentials import Passwords
from lab.errors import LabError, Stopped
from lab.model import Host, Role
from lab.rig.hosts import TOOLS
from lab.ssh.hostkeys import HostKeyRefused
from lab.ssh.login import AuthenticationRefused, LoginPasswordRefused, TookTooLong
from lab.ssh.target import Target, resolve
from lab.stop import Stop

ANSWERS, KEY, LOGIN, PROGRAMS, ROOT = STEPS = ("answers", "key", "login", "programs", "root")
"""What is looked at, in this order; the first one that goes wrong is the last."""
Grade = Literal["running", "ok", "warn", "trouble"]

LONGEST_S = 20.0
"""A host's sudo may ask a server of names and rights first."""
WANTED = {
    Role.CLIENT: ("svn",),
    Role.PROXY: ("apache2", "squid", "nginx"),
    Role.SERVER: ("svnadmin", "apache2"),
    Role.ROUTER: ("tc", "nft"),
}
"""The programs whose presence is told, by role; of a proxy's one is enough."""
CALLED = {
    "svn": "Subversion",
    "svnadmin": "Subversion",
    "apache2": "Apache",
    "squid": "Squid",
    "nginx": "nginx",
    "tc": "tc",
    "nft": "nft",
}
KEYS = {"ssh-ed25519": "ED25519", "ssh-rsa": "RSA"}
METHODS = {"publickey": "by key", "none": "without a password"}


@dataclass(frozen=True, slots=True)
class Step:
    """What became of one of `STEPS`, in words of a line; `wants` is what only a person can give: `key`, `password`.

    `port` is where the host was asked to answer, known in its first step; 0 for a UNIX socket.
    """

    what: str
    grade: Grade
    text: str
    advice: str = ""
    wants: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A host that was logged in on. `address` and `address6` are the ones to propose to the other hosts: where SSH
    came in, else the first of its own (`addresses`). `root` is the way to its rights as a profile says it.
    """

    user: str
    system: str
    root: str
    address: str = ""
    address6: str = ""
    addresses: tuple[str, ...] = ()
    tools: Mapping[str, str]
    windows: bool = False


def meet(host: Host, passwords: Passwords, stop: Stop, say: Callable[[Step], None]) -> Met | None:
    """Look at a host step by step; None where a step went wrong, which `say` was told. Raises Stopped alone."""
    told: list[Step] = []

    def telling(step: Step) -> None:
        stop.check()
        told.append(step)
        say(step)

    try:
        target = resolve(host)
        port = 0 if target.path else target.port
        telling(Step(ANSWERS, "running", "connecting", port=port))
        with ssh.connect(
            host,
            stop=stop,
            passwords=passwords,
            accept=passwords.accept,
            say=lambda step: _connected(step, host, target, telling),
        ) as connection:
            telling(Step(PROGRAMS, "running", f"looking for {_listed(host.role, 'or')}"))
            with agents.started(connection, kept=False, stop=stop) as agent:
                facts = agent.ask("facts", {"tools": TOOLS[host.role]}, timeout_s=60, stop=stop)
            telling(_programs(host.role, facts))
            telling(Step(ROOT, "running", "asking"))
            root, step = _root(connection, facts)
            telling(step)
            return _met(connection.target.user, facts, root)
    except Stopped:
        raise
    except LabError as error:
        stop.check()
        last = told[-1] if told else Step(ANSWERS, "running", "")
        say(_wrong(error, last))
        return None


def _connected(step: ssh.Step, host: Host, target: Target, say: Callable[[Step], None]) -> None:
    """What SSH itself told, and what comes next."""
    if step.what == "answers":
        say(Step(ANSWERS, "ok", version(step.text), port=0 if target.path else target.port))
        say(Step(KEY, "running", "comparing"))
    elif step.what == "key":
        kind = KEYS.get(step.text, step.text)
        pinned = "as the profile says" if host.host_key else "known"
        say(Step(KEY, "ok", f"accepted now, {kind}" if step.fresh else f"{pinned}, {kind}"))
        say(Step(LOGIN, "running", "logging in"))
    else:
        say(Step(LOGIN, "ok", f"{METHODS.get(step.text, 'by password')}, as {target.user}"))


def version(text: str) -> str:
    """`SSH-2.0-OpenSSH_9.2p1 Debian-2` as `OpenSSH 9.2`; anything else as the server calls itself."""
    name = re.sub(r"^SSH-[\d.]+-", "", text).strip()
    found = re.match(r"OpenSSH_(?:for_Windows_)?(\d+\.\d+)", name)
    return f"OpenSSH {found[1]}" if found else name[:40]


def _wrong(error: LabError, last: Step) -> Step:
    """An error as the step at which it came."""
    if isinstance(error, HostKeyRefused):
        if error.offered is None:
            return Step(KEY, "trouble", _first(error), error.cure)
        kind = KEYS.get(error.offered.kind, error.offered.kind)
        return Step(KEY, "warn", f"not known yet, {kind}", "", "key")
    if isinstance(error, AuthenticationRefused):
        if error.unanswered:
            return Step(LOGIN, "warn", "a password is asked for", "", "password")
        again = "password" if isinstance(error, (LoginPasswordRefused, TookTooLong)) else ""
        return Step(LOGIN, "trouble", _first(error), error.cure, again)
    return Step(last.what, "trouble", _first(error), error.cure, port=last.port)


def _first(error: LabError) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _programs(role: Role, facts: Mapping[str, Any]) -> Step:
    tools: Mapping[str, str | None] = facts.get("tools") or {}
    there = [_told(name, tools.get(name)) for name in WANTED[role] if tools.get(name) is not None]
    lacking = [CALLED[name] for name in WANTED[role] if tools.get(name) is None]
    enough = bool(there) if role is Role.PROXY else not lacking
    if enough:
        return Step(PROGRAMS, "ok", ", ".join(there))
    advice = "Provision on the page Lab installs what is missing."
    if facts.get("windows"):
        advice = "Install it there; BranchLab installs nothing on Windows."
    missing = f"no {_listed(role, 'or')}" if role is Role.PROXY else f"{' and '.join(lacking)} missing"
    return Step(PROGRAMS, "warn", missing, advice)


def _told(name: str, said: str | None) -> str:
    found = re.search(r"\d+(\.\d+)+", said or "")
    return f"{CALLED[name]} {found[0]}" if found else CALLED[name]


def _listed(role: Role, word: str) -> str:
    names = list(dict.fromkeys(CALLED[name] for name in WANTED[role]))
    return f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _root(connection: ssh.Connection, facts: Mapping[str, Any]) -> tuple[str, Step]:
    """The way to the host's rights, without using it for anything."""
    if facts.get("windows"):
        return "none", Step(ROOT, "ok", "none on Windows")
    if facts.get("uid") == 0:
        return "direct", Step(ROOT, "ok", "logged in as root")
    if facts.get("capabilities"):
        return "direct", Step(ROOT, "ok", "has the rights already")
    for tool in ("sudo", "doas"):
        answer = connection.run(["env", "LC_ALL=C", tool, "-n", "true"], timeout_s=LONGEST_S)
        if answer.exit == 0:
            return tool, Step(ROOT, "ok", f"{tool}, no prompt")
        if re.search(r"(?i)password|authentication required", answer.err):
            return tool, Step(ROOT, "ok", f"{tool}, asks for a password")
        if "not allowed to execute" in answer.err:
            return tool, Step(ROOT, "ok", f"{tool}, for some commands")
    return "none", Step(
        ROOT,
        "warn",
        "neither sudo nor doas",
        "No line can be held and nothing counted on this host. Log in as a user who may use sudo.",
    )


def _met(user: str, facts: Mapping[str, Any], root: str) -> Met:
    own = tuple(facts.get("addresses") or ())
    ends = facts.get("ssh") or {}
    came = str(ends["own"]["address"]) if ends else ""
    usable = [one for one in (came, *own) if one and not one.startswith(("127.", "169.254.", "fe80", "::1"))]
    return Met(
        user=user,
        system=str(facts.get("os") or ""),
        root=root,
        address=next((one for one in usable if ":" not in one), ""),
        address6=next((one for one in usable if ":" in one), ""),
        addresses=own,
        tools={name: said or "" for name, said in (facts.get("tools") or {}).items() if said is not None},
        windows=bool(facts.get("windows")),
    )
