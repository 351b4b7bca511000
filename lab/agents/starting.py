"""Starts an agent's process on a host, with the user's rights or with root's, up to its first word.

Nothing is sent before the other side has said that it reads it: sudo may ask for a password or not, and late,
and the agent's own text comes over the same standard input.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.agents import systems
from lab.agents.bundling import PYTHONS, Bundle, bundle, launcher, one_line
from lab.errors import AgentRefused, ConnectionLost, HostLacks, LabError
from lab.stop import Stop
from ssh_agents import protocol

if TYPE_CHECKING:
    from lab.agents import Agent, Connection, Process

log = logging.getLogger(__name__)

TICK_S = 0.1
"""A wait looks at its `Stop` this often."""
START_S = 60.0
"""How long an agent may take for each step from its start to its `hello`: a login may mount a home, or sleep, first.

Not less than `lab.ssh.process.BEGIN_S`, which is for the same wait."""
ROOT_S = 75.0
"""How long sudo or doas may take for each step: PAM may hold a prompt back for a minute."""
KEPT_NOISE = 1 << 16
"""So much of what a host says before its agent's first word is kept."""
MAX_NOISE = 64 << 20
"""What says more than this before it says it without end."""
OWN_CODE = re.compile(
    r"(import binascii;exec\(binascii\.a2b_base64\(')?[A-Za-z0-9+/=]{100,}([A-Za-z0-9+/=]|\\?\s)*('\)\))?"
)
"""The loader, as sudo and tracebacks repeat it: nobody can read it, and it would hide what they say."""
FORBIDDING = r"(?i)unrecognized command|forbidden|restricted|not allowed|not permitted"
"""What shells say that let only some commands be (git-shell, rbash, lshell); they name what they forbid."""
SHELL_ADVICE = (
    "The login shell, its start-up files (.bashrc, .profile) or a ForceCommand end, or run something else, before the"
    " agent begins. Log in by hand with a command (ssh HOST python3 --version): it has to print a version and nothing"
    " else. Give that user a shell, or name another user in the profile."
)
BEGUN_ADVICE = (
    "Look at what it said; log in by hand and see that python3 works there, and how busy the host is."
)
UNSEEN_ADVICE = (
    "Nothing came on standard error, where sudo asks for its password: if a start-up file (.bashrc, .profile) or a"
    " ForceCommand sends it elsewhere (exec 2>/dev/null), let it do so only where a terminal is. Or let an"
    " administrator allow the agent without a password: branchlab check --sudoers PROFILE."
)

COPIES = "/usr/local/lib/branchlab"
"""Where an administrator puts the privileged agent: as ssh_agents.installed has it."""
RULE_FILE = "/etc/sudoers.d/zz-branchlab"
"""Sorts after what else is likely to be there: of rules that fit, sudo takes the last."""

Password = Callable[[], str | None]
"""Gives the password with which the user becomes root, or None where there is none. May wait for a person."""


class PasswordRefused(HostLacks):
    """sudo or doas did not take the password. It was offered once."""


class PasswordMissing(HostLacks):
    """sudo or doas asks for a password, and there is none."""


class NotBegun(HostLacks):
    """The host answers, and something else than the agent runs there, or nothing: again, it would end the same."""


class _NoPython(HostLacks):
    """There is no Python of this name, or it is too old."""


class _NoTool(HostLacks):
    """sudo or doas is not installed there: no other way with it can do."""


class _NeedsTerminal(HostLacks):
    """sudo wants a terminal (`requiretty`)."""


@dataclass(frozen=True, slots=True)
class Started:
    """A process whose agent has said hello; `rest` came after it, `notice` is for the person."""

    process: Process
    hello: dict[str, Any]
    rest: bytes
    notice: str = ""


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to root: the program before the agent's own words, and what is agreed with it."""

    tool: str
    argv: tuple[str, ...]
    source: bytes
    first: re.Pattern[bytes]
    token: str = ""
    """sudo's prompt as it prints it; empty where it is not to ask. No echo of the command line has it."""
    asks: bool = False
    terminal: bool = False


def ordinary(connection: Connection, *, kept: bool, timeout_s: float, stop: Stop | None) -> Started:
    """The user's own agent. `kept`: in the user's cache folder, for the next time."""
    return _plainly(connection, False, kept, timeout_s, stop)


def direct(connection: Connection, *, timeout_s: float, stop: Stop | None) -> Started:
    """The privileged agent where the user is root already, or has the rights."""
    return _plainly(connection, True, False, timeout_s, stop)


def _plainly(
    connection: Connection, privileged: bool, kept: bool, timeout_s: float, stop: Stop | None
) -> Started:
    """By the login shell, whatever it is, with the first Python that there is."""
    made = bundle()
    troubles: list[_NoPython] = []
    for python in PYTHONS:
        mark = secrets.token_hex(8)
        process = connection.start(one_line(made, mark, privileged, kept=kept, python=python))
        try:
            return _greeted(process, connection, _sent(made, mark, ()), None, timeout_s, stop)
        except _NoPython as error:
            log.info("%s: %s is not to be had: %s", connection.name, python, error)
            troubles.append(error)
    troubles[0].command = systems.command(connection, "python3")
    raise troubles[0]


def raised(
    connection: Connection,
    root: str,
    *,
    helper: Agent | None,
    password: Password | None,
    timeout_s: float,
    stop: Stop | None,
) -> Started:
    """The privileged agent by sudo or doas: the installed copy where there is a sound one, else from memory.

    Each way is tried once, those that ask for no password first. Raises PasswordRefused, HostLacks,
    ConnectionLost, Stopped.
    """
    made = bundle()
    installed, notice = _installed(helper, made, stop)
    known = None if password is None else _Once(password)
    ways = _ways(root, made, installed, known is not None)
    terminal = ""
    while True:
        way = ways.pop(0)
        try:
            begun = _raised(connection, way, known, timeout_s, stop)
        except (PasswordRefused, NotBegun):
            raise
        except _NoTool as error:
            error.command = systems.command(connection, root)
            raise
        except _NeedsTerminal as error:
            if way.terminal:
                raise
            terminal = f"{way.tool} insists on a terminal (requiretty), so it was given one"
            log.warning("%s: %s: %s", connection.name, terminal, error)
            ways = [_on_terminal(one) for one in (way, *ways)]
        except HostLacks as error:
            if not ways:
                if isinstance(error, _NoPython):
                    error.command = systems.command(connection, "python3")
                error.advice = _in_the_way(root, made, installed, helper) or error.advice
                raise
            log.info("%s: the next way to root is tried, since: %s", connection.name, error)
        else:
            told = "; ".join(text for text in (notice, terminal) if text)
            return Started(begun.process, begun.hello, begun.rest, told)


class _Once:
    """A password that is asked for once and then known for as long as one agent is being started."""

    def __init__(self, ask: Password) -> None:
        self._ask, self._asked = ask, False
        self._secret: str | None = None

    def __call__(self) -> str | None:
        if not self._asked:
            self._secret, self._asked = self._ask(), True
        return self._secret


_Inner = tuple[tuple[str, ...], bytes, re.Pattern[bytes]]
"""The agent's own words, the source it is sent, and what it says first."""


@dataclass(frozen=True, slots=True)
class _Installed:
    python: str
    path: str


def _installed(helper: Agent | None, made: Bundle, stop: Stop | None) -> tuple[_Installed | None, str]:
    """The sound copy of this version on the host, if there is one, and what is to be said of others."""
    if helper is None:
        return None, ""
    try:
        seen = helper.ask("installed", {"digest": made.digest}, stop=stop)
    except AgentRefused as error:
        log.info("%s: %s", helper.host, error)
        return None, ""
    if seen["state"] == "right" and seen["python"]:
        return _Installed(seen["python"], seen["path"]), ""
    again = "an administrator puts the right one there: branchlab check --sudoers PROFILE"
    if seen["state"] == "unsafe":
        return None, f"the installed agent is not used, since {seen['reason']}"
    if seen["state"] == "changed":
        return None, f"the installed agent {seen['path']} is not what its name says, and is not used; {again}"
    if seen["others"]:
        return None, f"the installed agent is of another version and is not used; {again}"
    return None, ""


def _in_the_way(root: str, made: Bundle, installed: _Installed | None, helper: Agent | None) -> str:
    """What an administrator has half done, or a later rule undoes; empty where neither is seen."""
    rules = _rules(helper) if root == "sudo" and helper is not None else ""
    path = installed.path if installed else f"{COPIES}/agent-{made.digest}.py"
    ask = "branchlab check --sudoers PROFILE"
    order = (
        "Of all rules that fit the last one counts, and files in /etc/sudoers.d are read in the order of their names:"
        f" put the line into {RULE_FILE}, so that it comes last"
    )
    if installed and path in rules:
        lists = f"sudo -l -U {_user(helper)} lists them in order"
        return f"The copy is installed, but sudo still asks: a later rule overrides the line for it ({lists}). {order}."
    if installed and root == "sudo":
        return f"The copy is installed ({path}), but sudo shows no line for it. Print the line with {ask}. {order}."
    if installed:
        return (
            f"The copy is installed ({path}), but {root} has no rule for it, or a later one overrides it: of rules that"
            f" fit the last one counts. {ask} prints the one line."
        )
    if path in rules:
        return (
            f"The line for sudo is there, but not the copy of the agent that it allows, {path}. {ask} prints the"
            " commands that put it there."
        )
    if COPIES in rules:
        return (
            "The line for sudo is there, but allows the copy of another version of BranchLab. Replace both line and"
            f" copy: {ask}."
        )
    return ""


def _rules(helper: Agent) -> str:
    """What sudo lists for this user without asking, as one line of words; empty where it tells nothing."""
    asked = {"argv": ["sudo", "-n", "-l"], "env": {"LC_ALL": "C"}, "timeout_s": 20.0, "tail": 1 << 16}
    try:
        word = helper.ask("command", asked, timeout_s=30)
    except LabError as error:
        log.info("%s: %s", helper.host, error)
        return ""
    return " ".join(str(word["tail"]).split()) if word["exit"] == 0 else ""


def _user(helper: Agent | None) -> str:
    try:
        return str(helper.ask("facts", {"tools": []}).get("user") or "") if helper else ""
    except LabError:
        return ""


def _sent(made: Bundle, mark: str, before: tuple[str, ...], tool: str = "") -> _Way:
    """The way on which the agent's text comes over standard input."""
    first = re.compile(rb"%s (have|need)\r?\n" % mark.encode())
    return _Way(tool, before, made.source, first)


def _ways(root: str, made: Bundle, installed: _Installed | None, asks: bool) -> list[_Way]:
    mark = secrets.token_hex(8)
    # sudo prints `%%` as `%` (sudo(8), --prompt), so a shell's or a wrapper's echo of the command is no prompt.
    token = f"{secrets.token_hex(6)}%{secrets.token_hex(6)}"
    memory: _Inner = (
        tuple(launcher(made, mark, True)),
        made.source,
        re.compile(rb"%s (need)\r?\n" % mark.encode()),
    )
    inner = [memory]
    if installed is not None:
        argv = (installed.python, "-I", "-S", installed.path, "privileged")
        inner.insert(0, (argv, b"", re.compile(rb"branchlab (%s)\r?\n" % made.digest.encode())))
    ways = []
    for words, source, first in inner:
        silent = installed is not None and words != memory[0]
        if not asks or silent or root == "doas":
            ways.append(_Way(root, (*_BEGIN[root], "-n", *_END[root], *words), source, first))
        if asks and root == "sudo":
            asking = (*_BEGIN[root], "-S", "-p", token.replace("%", "%%"), *_END[root], *words)
            ways.append(_Way(root, asking, source, first, token, asks=True))
    if asks and root == "doas":  # it reads passwords from a terminal only
        ways += [
            _Way(root, (*_BEGIN[root], *words), source, first, asks=True, terminal=True)
            for words, source, first in inner
        ]
    return ways


# In their own language, so that what they complain of can be told apart and is told in one language.
_BEGIN = {"sudo": ("env", "LC_ALL=C", "sudo"), "doas": ("env", "LC_ALL=C", "doas")}
_END: dict[str, tuple[str, ...]] = {"sudo": ("--",), "doas": ()}


def _on_terminal(way: _Way) -> _Way:
    return _Way(way.tool, way.argv, way.source, way.first, way.token, way.asks, terminal=True)


def _raised(
    connection: Connection, way: _Way, password: _Once | None, timeout_s: float, stop: Stop | None
) -> Started:
    process = (
        connection.start(list(way.argv), terminal=True) if way.terminal else connection.start(list(way.argv))
    )
    prompt = _Prompt(way, password) if way.asks and password is not None else None
    return _greeted(process, connection, way, prompt, max(timeout_s, ROOT_S), stop)


def _greeted(
    process: Process,
    connection: Connection,
    way: _Way,
    prompt: _Prompt | None,
    timeout_s: float,
    stop: Stop | None,
) -> Started:
    try:
        greeting = _Greeting(process, connection.name, way, prompt, timeout_s, stop)
        if greeting.first() == b"need":
            greeting.send(way.source)
        hello = greeting.hello()
    except BaseException:
        process.close()
        raise
    return Started(process, hello, greeting.rest)


class _Prompt:
    """Notices that sudo or doas asks for the password, and answers once.

    sudo's prompt counts only where it stands last: then sudo waits, and nobody else reads what is written.
    """

    # sudo-rs puts what `-p` says into a prompt of its own.
    SUDO = r"%s(\] Password:)?[ \t]*$"
    # doas has no prompt of one's own choosing; PAM's is `Password: `.
    DOAS = re.compile(rb"(?i)password[^\n]{0,80}:[ \t]*$")

    def __init__(self, way: _Way, password: _Once) -> None:
        self._way, self._password = way, password
        self._until = self._gone = 0
        self.answered = False

    def asks(self, errors: str, out: bytes) -> bool:
        """True if it is the password's turn. Raises PasswordRefused when it is asked for again."""
        if token := self._way.token:
            said = out.decode("utf-8", "replace")
            count = errors.count(token) + said.count(token) + self._gone
            last = re.compile(self.SUDO % re.escape(token))
            if count == 1 and not (last.search(errors) or last.search(said)):
                return False
        else:
            count = int(self.answered) + bool(self.DOAS.search(out, self._until))
        if count > 1:
            raise _refused(self._way)
        return count == 1 and not self.answered

    def gone(self, out: bytes) -> None:
        """This, the beginning of what came, is no longer there to be looked at."""
        self._until = max(0, self._until - len(out))
        self._gone += out.count(self._way.token.encode()) if self._way.token else 0

    def answer(self, process: Process, out: bytes, host: str) -> None:
        """Hand the password over, on standard input alone. Raises HostLacks where there is none."""
        secret = self._password()
        if secret is None:
            raise PasswordMissing(
                f"{self._way.tool} asks for a password, and none is known",
                host=host,
                advice="Run it from a terminal, which asks for it; or store it in the keyring; or hand it over in"
                " BRANCHLAB_SUDO_PASSWORD_FD (the guide, Secrets); or let an administrator install the agent:"
                " branchlab check --sudoers PROFILE.",
            )
        self.answered, self._until = True, len(out)
        process.write(secret.encode("utf-8", "surrogateescape") + b"\n")


def _refused(way: _Way) -> PasswordRefused:
    return PasswordRefused(
        f"{way.tool} did not take the password",
        advice="Look whether it is the password of this user on this host; it was offered once, and is not"
        " tried again.",
    )


class _Greeting:
    """The part of a conversation in which the login shell's own words, sudo's and PAM's may still come."""

    def __init__(
        self,
        process: Process,
        host: str,
        way: _Way,
        prompt: _Prompt | None,
        timeout_s: float,
        stop: Stop | None,
    ) -> None:
        self.rest = b""
        self._noise = 0
        self._begun = False
        self._process, self._host, self._stop = process, host, stop
        self._way, self._prompt = way, prompt
        self._timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s

    def first(self) -> bytes:
        """The loader's word: whether it needs the source, has it, or which installed copy it is."""
        word = self._until(self._way.first).group(1)
        self._begun = True
        return word

    def send(self, data: bytes) -> None:
        try:
            self._process.write(data)
        except ConnectionLost:
            log.debug("%s: did not take the agent", self._host)  # reading tells why

    def hello(self) -> dict[str, Any]:
        """Ask for the first word under a random number, which also marks the end of the noise."""
        self._prompt = None
        self._end = time.monotonic() + self._timeout_s
        number = secrets.randbelow(1 << 40) + (1 << 40)
        self.send(protocol.encode({"id": number, "verb": "hello", "args": {}}))
        line = self._until(re.compile(rb'\{"id":%d,.*\n' % number)).group()
        facts = protocol.decode(line).get("done")
        if not isinstance(facts, dict) or facts.get("version") != protocol.VERSION:
            raise self._trouble(f"answered {line[:200]!r} instead of hello")
        return facts

    def _until(self, mark: re.Pattern[bytes]) -> re.Match[bytes]:
        """Read up to and including `mark`; what comes before it is noise."""
        while (found := mark.search(self.rest)) is None:
            if len(self.rest) > 2 * KEPT_NOISE:
                gone, self.rest = self.rest[:-KEPT_NOISE], self.rest[-KEPT_NOISE:]
                if self._prompt is not None:
                    self._prompt.gone(gone)
                self._noise += len(gone)
            if self._noise > MAX_NOISE:
                advice = "Let the login shell's start-up files (.bashrc, .cshrc) print nothing where no terminal is."
                raise self._trouble(
                    f"did not begin: the host printed more than {MAX_NOISE >> 20} MiB before it", advice
                )
            self._more()
        if found.start():
            noise = self.rest[: found.start()][:200]
            log.info("%s: noise before the agent's first word: %r", self._host, noise)
        self.rest = self.rest[found.end() :]
        return found

    def _more(self) -> None:
        while True:
            if self._stop is not None:
                self._stop.check()
            self._answer()
            if time.monotonic() > self._end:
                raise self._trouble(f"did not say hello within {self._timeout_s:g} s")
            with suppress(TimeoutError):
                data = self._process.read(TICK_S)
                break
        if not data:
            raise self._ended()
        self.rest += data
        self._answer()

    def _answer(self) -> None:
        try:
            # On standard output too: a start-up file may send errors there (exec 2>&1).
            if self._prompt is not None and self._prompt.asks(self._process.errors(), self.rest):
                self._prompt.answer(self._process, self.rest, self._host)
                self._end = time.monotonic() + self._timeout_s  # a person may have taken long
        except PasswordRefused as error:
            error.host = self._host
            raise

    def _said(self) -> str:
        """What sudo and others complained of, without the prompt that was agreed upon."""
        out = self.rest.decode("utf-8", "replace") if self._way.terminal else ""
        said = f"{self._process.errors()}\n{out}".strip()
        return said.replace(self._way.token, "") if self._way.token else said

    def _heard(self) -> str:
        """All that came instead of the agent's word, whatever it is of."""
        out = "" if self._way.terminal else self.rest.decode("utf-8", "replace")
        return f"{out}\n{self._said()}".strip()

    def _trouble(self, text: str, advice: str = "") -> NotBegun:
        unasked = self._prompt is not None and not self._prompt.answered and not self._process.errors()
        advice = advice or (BEGUN_ADVICE if self._begun else UNSEEN_ADVICE if unasked else SHELL_ADVICE)
        return NotBegun(f"the agent {text}{quoted(self._heard())}", host=self._host, advice=advice)

    def _ended(self) -> LabError:
        status, said = self._process.exit(5), self._said()
        tool = self._way.tool
        if tool and status in (126, 127) and re.search(rf"(?m)^env: [^\n]*\b{tool}\b", said):
            return _NoTool(
                f"{tool} is not installed there{quoted(said)}",
                host=self._host,
                advice=f'Install {tool} there as root and allow this user to use it, or write another `root`: "doas",'
                ' "sudo", or "direct" with a login as root.',
            )
        named = r"branchlab: python3|python3: command not found"
        if not tool and status and "Traceback" not in said and not re.search(FORBIDDING, said):
            # cmd.exe, PowerShell and the store's stand-in say it in their own language, and name the program.
            named = r"(?i)\bpy(thon)?3?\b"
        # A start-up file may end with these numbers too, and then says nothing of Python.
        pythonless = (status in (126, 127) and (tool or "py" in self._heard())) or re.search(named, said)
        # Some of what sudo says has its name before it, some has not.
        own = re.search(rf"\b{tool}(-rs)?:", said) or (status == 1 and said and "Traceback" not in said)
        if tool and own and not pythonless:
            return self._tool_refused(said)
        if pythonless:
            return _NoPython(
                f"the agent needs python3, version 3.8 or newer{quoted(said)}",
                host=self._host,
                tried="python3 -I -S" if tool else " -I -S, ".join((*PYTHONS, ""))[:-2],
                advice="Install python3 there, as root (on Windows from python.org, for all users).",
            )
        if lacking := re.search(r"No module named '([\w.]+)'", said):
            return NotBegun(
                f"the agent needs Python's standard library, and the python3 there lacks a part of it ({lacking[1]})",
                host=self._host,
                advice="Install python3 whole, not python3-minimal alone (Debian, Ubuntu: apt-get install python3).",
            )
        if status is None:  # out of sight, or killed: the next one may live
            return ConnectionLost(
                f"the agent ended before its first word{quoted(self._heard())}", host=self._host
            )
        self._begun = self._begun or "Traceback" in said
        return self._trouble(f"ended before its first word (exit status {status})")

    def _tool_refused(self, said: str) -> HostLacks:
        tool = self._way.tool
        answered = self._prompt is not None and self._prompt.answered
        if answered and (tool == "doas" or "incorrect password" in said):
            error = _refused(self._way)
            error.host = self._host
            return error
        text = f"{tool} did not start the agent{quoted(said)}"
        if not answered and not self._way.terminal and re.search(r"\b(tty|terminal|Terminal)\b", said):
            return _NeedsTerminal(text, host=self._host, tried=" ".join(self._way.argv[:5]))
        return HostLacks(
            text,
            host=self._host,
            tried=f"{tool} {'-n ' if '-n' in self._way.argv[:5] else ''}python3",
            advice="Let an administrator install the agent and allow just it: branchlab check --sudoers PROFILE."
            f" Or let this user run python3 under {tool}, give the password, or log in as root.",
        )


def quoted(text: str) -> str:
    """The end of what a program said, to be put behind a sentence; nothing if it said nothing.

    Without our own code, and without anything that a terminal would obey.
    """
    shown = "".join(
        char if char.isprintable() or char == "\n" else " " for char in OWN_CODE.sub("…", text[-20_000:])
    )
    tail = shown.strip()[-600:]
    return f"; it said: {tail}" if tail else ""
