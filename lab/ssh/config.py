"""What ~/.ssh/config says of one name: asked of OpenSSH's own `ssh -G` where there is one, else read here.

Both give the same: each keyword in lower case with its values as written (ssh_config(5)); no token is expanded.
"""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from lab.errors import BadInput

ASKED_S = 5.0
"""`ssh -G` reads files and may run a `Match exec`; after this it is given up."""
MOST_BYTES = 4_000_000
"""So much of a file that somebody names is looked at."""
DEEPEST = 16
"""So deep may files include each other, as for ssh."""
SYSTEM = Path("/etc/ssh/ssh_config")
UNHEEDED = {
    "bindinterface": "BindInterface",
    "casignaturealgorithms": "CASignatureAlgorithms",
    "certificatefile": "CertificateFile",
    "compression": "Compression",
    "connectionattempts": "ConnectionAttempts",
    "gssapiauthentication": "GSSAPIAuthentication",
    "hostbasedauthentication": "HostbasedAuthentication",
    "knownhostscommand": "KnownHostsCommand",
    "pkcs11provider": "PKCS11Provider",
    "proxyusefdpass": "ProxyUseFdpass",
    "pubkeyacceptedalgorithms": "PubkeyAcceptedAlgorithms",
    "remotecommand": "RemoteCommand",
    "requiredrsasize": "RequiredRSASize",
    "revokedhostkeys": "RevokedHostKeys",
    "securitykeyprovider": "SecurityKeyProvider",
    "sendenv": "SendEnv",
    "setenv": "SetEnv",
    "verifyhostkeydns": "VerifyHostKeyDNS",
}
"""What bears on connecting, or on what is started, and has no effect here, as ssh_config(5) spells it."""
SHIPPED = frozenset(("gssapiauthentication", "sendenv", "setenv"))
"""Of these, what the system's own file says for every host is not named: distributions write it there."""
LISTS = frozenset(("identityfile", "certificatefile", "localforward", "remoteforward", "sendenv", "setenv"))
"""Keywords of which every value counts; of the others the first one does."""
UNREAD = {"canonicalizehostname": "CanonicalizeHostname", "revokedhostkeys": "RevokedHostKeys"}
"""More that only `ssh` itself can do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is said of one name. `unheeded` names what has no effect here, for people."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unheeded: tuple[str, ...] = ()

    def one(self, keyword: str, default: str = "") -> str:
        """The value of a keyword that has one."""
        return self.values.get(keyword, (default,))[0]


def settings(name: str, user: str = "", port: int = 0, path: Path | None = None) -> Settings:
    """What the user's and the system's configuration say of `name`; of `path` alone if it is given.

    `user` and `port` are what was written beside the name: `Match user` looks at it. Raises BadInput.
    """
    program = shutil.which("ssh")
    if program is None:
        return read(name, user, [path] if path else [Path("~/.ssh/config").expanduser(), SYSTEM])
    file = [f"-F{path}"] if path else []
    more = [*([f"-l{user}"] if user else []), *([f"-p{port}"] if port else [])]
    said = _asked(program, (*file, *more, "--", name))
    usual = _usual(program, "none")
    if said.get("identityfile") == usual.get("identityfile"):
        said.pop("identityfile", None)  # nobody named any
    shipped = _usual(program, str(SYSTEM)) if SYSTEM.exists() else usual
    unheeded = [
        f"{spelt} {' '.join(said[key]) if key in LISTS else said[key][0]}"
        for key, spelt in UNHEEDED.items()
        if key in said and said[key] != usual.get(key)
        if key not in SHIPPED or said[key] != shipped.get(key)
    ]
    return Settings(said, tuple(unheeded))


@functools.cache
def _usual(program: str, file: str) -> dict[str, tuple[str, ...]]:
    """What ssh says by `file` of a name that no file speaks of."""
    return _asked(program, (f"-F{file}", "--", "nowhere.invalid"))


def _asked(program: str, words: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    # Not pipes: what a `Match exec` leaves running, as it may, would hold them open.
    with tempfile.TemporaryFile() as out_file, tempfile.TemporaryFile() as err_file:
        process = subprocess.Popen(
            [program, "-G", *words],
            stdin=subprocess.DEVNULL,
            stdout=out_file,
            stderr=err_file,
            start_new_session=True,
        )
        try:
            process.wait(ASKED_S)
        except BaseException as error:
            with suppress(OSError, AttributeError):  # Windows has no groups of processes
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise BadInput(
                f"ssh could not say within {ASKED_S:g} s what its configuration means for {words[-1]}",
                advice="A `Match exec` there may hang: look with ssh -G NAME.",
            ) from None
        out, err = _from_start(out_file), _from_start(err_file)
    if process.returncode:
        told = "; ".join(err.decode("utf-8", "replace").splitlines()[:2])
        raise BadInput(
            f"ssh cannot make sense of {words[-1]} by its configuration: {told}",
            advice="Correct the file that is named there; ssh -G NAME shows the same.",
        )
    said: dict[str, tuple[str, ...]] = {}
    for line in out.decode("utf-8", "replace").splitlines():
        keyword, _, value = line.partition(" ")
        if value:
            said[keyword.lower()] = (*said.get(keyword.lower(), ()), value)
    return said


def _from_start(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def chosen(known: Sequence[str], text: str) -> tuple[str, ...]:
    """Of the algorithms `known` here those that a list in ssh_config(5) allows, in its order."""
    names = text.lstrip("+-^").split(",")
    if text.startswith("+"):
        return tuple(known)
    if text.startswith("-"):
        return tuple(one for one in known if not any(fnmatch.fnmatchcase(one, name) for name in names))
    listed = [name for name in names if name in known]
    if text.startswith("^"):
        return (*listed, *(one for one in known if one not in listed))
    return tuple(listed)


def names(path: Path | None = None) -> tuple[str, ...]:
    """The hosts that ~/.ssh/config (or `path`) names without a pattern, in its order, included files too.

    A file that cannot be read names none. Raises BadInput for one that makes no sense.
    """
    found: dict[str, None] = {}
    _named(path or Path("~/.ssh/config").expanduser(), found, depth=0)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Named:
    """How SSH comes to a host that a configuration names: what it connects to, and what is said beside it."""

    host: str
    user: str = ""
    port: str = ""
    jump: str = ""
    key: str = ""


def listed(path: Path) -> dict[str, Named] | None:
    """The hosts that an SSH configuration other than one's own names; None if the file does not look like one.

    Only what is in the file counts, and nothing of it is run. Raises BadInput for one that makes no sense.
    """
    try:
        text = path.read_bytes()[:MOST_BYTES].decode("utf-8", "replace")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    if not re.search(r"(?im)^[ \t]*(?:host|match)(?:[ \t]+|[ \t]*=[ \t]*)\S", text):
        return None
    found = {}
    for name in names(path):
        said = read(name, "", [path])
        jump = said.one("proxyjump")
        found[name] = Named(
            said.one("hostname", name).replace("%h", name),
            said.one("user"),
            said.one("port"),
            "" if jump.lower() == "none" else jump,
            said.one("identityfile"),
        )
    return found


def _named(path: Path, found: dict[str, None], *, depth: int) -> None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for number, line in enumerate(text.splitlines(), 1):
        keyword, words = _words(line, f"{path}:{number}")
        if keyword == "include":
            for one in _included(words):
                if depth >= DEEPEST:
                    raise BadInput(f"{path}:{number}: files include each other too deep")
                _named(one, found, depth=depth + 1)
        elif keyword == "host":
            found.update(dict.fromkeys(word for word in words if not set(word) & set("*?!") and word))


# Where there is no ssh


def read(name: str, user: str, files: list[Path]) -> Settings:
    """The same from files, of which earlier ones win. Raises BadInput."""
    reader = _Reader(name, user)
    for path in files:
        reader.file(path, active=True, depth=0)
    return Settings(
        {key: tuple(values) for key, values in reader.values.items()},
        tuple(dict.fromkeys(reader.unheeded)),
    )


class _Reader:
    def __init__(self, name: str, user: str) -> None:
        self.values: dict[str, list[str]] = {}
        self.unheeded: list[str] = []
        self._name = name
        if user:
            self.values["user"] = [user]

    def file(self, path: Path, *, active: bool, depth: int) -> None:
        """What a file says; `active`: whether the block that includes it holds."""
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        holds = active
        for number, line in enumerate(text.splitlines(), 1):
            keyword, words = _words(line, f"{path}:{number}")
            if keyword == "host":
                holds = active and _listed(words, self._name)
            elif keyword == "match":
                holds = active and self._matches(words, f"{path}:{number}")
            elif keyword == "include":
                for one in _included(words):
                    if depth >= DEEPEST:
                        raise BadInput(f"{path}:{number}: files include each other too deep")
                    self.file(one, active=holds, depth=depth + 1)
            elif keyword and holds and not (path == SYSTEM and keyword in SHIPPED):
                self._take(keyword, words, line)

    def _take(self, keyword: str, words: list[str], line: str) -> None:
        keyword = {"challengeresponseauthentication": "kbdinteractiveauthentication"}.get(keyword, keyword)
        value = " ".join(words)
        if keyword == "proxycommand":  # the rest of the line as it is
            value = line.strip()[len("proxycommand") :].lstrip(" \t=")
        if keyword in ("proxyjump", "proxycommand") and {"proxyjump", "proxycommand"} & set(self.values):
            return
        if keyword in UNHEEDED or keyword in UNREAD:
            if value.lower() in ("no", "none", "false"):  # as here
                return
            self.unheeded.append(f"{(UNHEEDED | UNREAD)[keyword]} {value}")
        elif keyword in LISTS:
            self.values.setdefault(keyword, []).append(value)
        else:
            self.values.setdefault(keyword, [value])

    def _matches(self, words: list[str], place: str) -> bool:
        left = iter(words)
        holds = True
        for word in left:
            criterion, equals, value = word.partition("=")
            negated, criterion = criterion.startswith("!"), criterion.lstrip("!").lower()
            if criterion == "all":
                continue
            if criterion not in ("canonical", "final") and not equals:
                value = next(left, "")
            known = self._known().get(criterion)
            if known is None:
                self.unheeded.append(f"Match {' '.join(words)} ({place}), since there is no ssh to ask")
                return False
            holds = holds and _listed(value.split(","), known) is not negated
        return holds

    def _known(self) -> dict[str, str]:
        name = self.values.get("hostname", [self._name])[0].replace("%h", self._name)
        user = self.values.get("user", [me()])[0]
        return {"host": name, "originalhost": self._name, "user": user, "localuser": me()}


def _words(line: str, place: str) -> tuple[str, list[str]]:
    line = line.strip()
    if not line or line.startswith("#"):
        return "", []
    keyword = line.replace("=", " ").replace("\t", " ").split(" ", 1)[0]
    rest = line[len(keyword) :].lstrip(" \t")
    rest = rest.removeprefix("=").strip()
    if keyword.lower() == "proxycommand":
        return "proxycommand", [rest]
    try:
        return keyword.lower(), shlex.split(rest, comments=True)
    except ValueError as error:
        raise BadInput(f"{place} cannot be read as SSH configuration: {error}") from error


def _listed(patterns: list[str], name: str) -> bool:
    """Whether a list of patterns means `name`; one that is negated and fits rules it out."""
    found = False
    for pattern in patterns:
        if fnmatch.fnmatchcase(name.lower(), pattern.lstrip("!").lower().replace("[", "[[]")):
            if pattern.startswith("!"):
                return False
            found = True
    return found


def _included(words: list[str]) -> Iterator[Path]:
    for word in words:
        path = Path(word).expanduser()
        if not path.is_absolute():
            path = Path("~/.ssh").expanduser() / path
        yield from sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))


def me() -> str:
    """The user of this process. Not $LOGNAME first: `setpriv` and `runuser` leave it behind."""
    try:
        import pwd
    except ImportError:
        import getpass

        return getpass.getuser()
    return pwd.getpwuid(os.getuid()).pw_name
