"""Lets the user in: by a key that was named, one of the agent's or a usual one; by prompts; by a password."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import paramiko

from lab.credentials import Kind, Passwords
from lab.errors import HostUnreachable
from lab.model import Host
from lab.ssh import certificates, keyfiles
from lab.ssh.dialogue import Dialogue, Reply
from lab.ssh.target import Target
from lab.ssh.wire import CERTIFIED, Wire, plain
from lab.stop import Stop

DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
ANSWER_S = 45.0
"""How long a server may think about one step: PAM may be slow on purpose."""
ROUNDS = 10
"""So many times a server may ask in one conversation."""
PASSPHRASES = 3
TRIES = 3
"""So often a person may answer the same prompt on one connection: accounts are locked after few more."""
PATIENCE_S = 20.0
"""Whoever takes longer to answer may find that the server has given up meanwhile (LoginGraceTime)."""
HASTY_S = 2.0
"""A server that hangs up, having refused nothing, after less of a wait did so for another reason."""
ONE_TIME = re.compile(
    r"(?i)code|token|otp|one.?time|einmal|verif|pin\b|authenticator|duo|yubi|challenge|respon|factor|unique"
)
"""Prompts for what no stored password can answer."""
PASSWORD = re.compile(
    r"(?i)^(\W*(?:enter |your |the )*(?:\S* ?password|\S*passwort|kennwort|mot de passe|contraseña))"
    r"\s+(?:for|of|at|on|für|von|auf|pour|de|para)\s.*"
)
"""A prompt for the password of somebody or something, whose name says nothing."""
AGAIN = re.compile(
    r"(?i)again|sorry|wrong|incorrect|invalid|denied|fail|\btry|retry|erneut|noch ?mal|falsch|ungültig"
    r"|incorrecte|réessay|ещё раз|снова|повтор|неверн|再|错误"
)
"""Words of a host that did not take what it was given."""
CHANGE = re.compile(r"(?i)\b(new|current|retype|expired|change|neues|aktuelles|nouveau|actuel)\b")
"""Prompts of a host that wants the password to be changed, after it was right."""
CHANGE_FIRST = "the host wants the password to be changed first; log in by hand to do so"


class AuthenticationRefused(HostUnreachable):
    """The host is there, and lets this user not in."""

    unanswered = False
    """A password, a passphrase or an answer was wanted, and nobody gave it."""


class LoginPasswordRefused(AuthenticationRefused):
    """The host did not take the password. It was offered once."""


class TookTooLong(AuthenticationRefused):
    """The server gave up while a person was asked: it is worth trying again, with what is known now."""


@dataclass(slots=True)
class Login:
    """One attempt to log in, and what was tried in it."""

    host: Host
    target: Target
    wire: Wire
    passwords: Passwords
    stop: Stop | None = None
    tried: list[str] = field(default_factory=list)
    asked_s: float = 0.0
    wrong: bool = False
    """A password was refused."""
    proved: bool = False
    """The password was right, and another step was wanted."""
    lacking: str = ""
    """A key that the host would take, and what is wrong with its passphrase."""
    answered: int = 0
    """So many prompts a person answered."""
    used: set[str] = field(default_factory=set)
    by: str = "none"
    """The method by which the last step went well."""
    given: str = ""
    """What the server was given last, for people."""
    unanswered: bool = False
    dialogue: Dialogue = field(init=False)

    def authenticate(self) -> None:
        """Log in, or raise AuthenticationRefused with all that was tried."""
        self.dialogue = Dialogue(self.wire, self.target.user, max(ANSWER_S, self.target.connect_s), self.stop)
        reply = self.dialogue.none()
        self.dialogue.banner = b""  # what is said to everybody, before anything was tried
        for _ in range(ROUNDS):
            if reply.word != "no":
                break
            reply, went_on = self._step(reply)
            if not went_on:
                break
        if reply.word != "in":
            refused = self._refused(reply)
            refused.unanswered = self.unanswered
            raise refused
        if "password" in self.used and not self.wrong:
            self.passwords.right(str(self.target), Kind.LOGIN)

    def _step(self, reply: Reply) -> tuple[Reply, bool]:
        """One step of what the server wants (it may want several); whether that went well."""
        for method in self.target.methods:
            if method in reply.methods:
                reply = WAYS[method](self, reply)
                if reply.word != "no" or reply.partly:
                    self.by = method
                    return reply, True
        return reply, False

    # Keys

    def by_key(self, reply: Reply) -> Reply:
        """Offer key after key until one is taken."""
        with ExitStack() as stack:
            for name, public, sign in self._keys(stack):
                answer = self._offered(name, public, sign)
                if answer is None:
                    continue
                if answer.word == "no" and not answer.partly:
                    reply = answer
                    if "publickey" not in answer.methods:
                        break
                    continue
                return answer
        return Reply("no", reply.methods)

    def _offered(
        self, name: str, public: keyfiles.Public | None, sign: Callable[[], paramiko.PKey | None]
    ) -> Reply | None:
        """Ask whether the public half will do before anybody is asked for a passphrase."""
        if public is not None:
            answer = self.dialogue.would_take(self._algorithm(public.kind), public.blob)
            if answer.word != "key-ok":
                self._note(f"{name}: {'refused' if answer.word == 'no' else answer.word}", public.kind)
                return answer
        try:
            key = sign()
            if key is None:
                return None
            shown = public or keyfiles.Public(key.get_name(), key.asbytes())
            algorithm = self._algorithm(shown.kind)
            self.given = f"the key {name}"
            answer = self.dialogue.key(
                algorithm, shown.blob, lambda data: keyfiles.signed(key, data, algorithm)
            )
        except keyfiles.Unusable as error:
            self.lacking = f"{name}: the host would take it, and {error}"
            self.tried.append(self.lacking)
            return None
        if answer.word == "no" and not answer.partly:
            self._note(f"{name}: refused", shown.kind)
        return answer

    def _note(self, text: str, kind: str) -> None:
        if kind.startswith("ssh-rsa"):
            text += f" (as {self._algorithm(kind)}"
            if not self.wire.signatures:
                text += "; a server of before 2017 knows RSA keys only with SHA-1, `ssh-rsa`: use Ed25519 or ECDSA"
            text += ")"
        self.tried.append(text)

    def _algorithm(self, kind: str) -> str:
        """How a key of this type signs: RSA keys in one of two ways, as the server has it."""
        if not kind.startswith("ssh-rsa"):
            return kind
        names = self.wire.signatures
        weaker = "rsa-sha2-512" not in names and "rsa-sha2-256" in names
        return ("rsa-sha2-256" if weaker else "rsa-sha2-512") + (CERTIFIED if CERTIFIED in kind else "")

    def _keys(
        self, stack: ExitStack
    ) -> Iterator[tuple[str, keyfiles.Public | None, Callable[[], paramiko.PKey | None]]]:
        """Keys to offer: those named, then the agent's, then the usual ones if none is named."""
        held: dict[bytes, paramiko.AgentKey] = {}
        try:
            held = {key.blob: key for key in stack.enter_context(keyfiles.agent(self.target.agent))}
        except (OSError, paramiko.SSHException) as error:
            self.tried.append(f"the SSH agent: {str(error) or type(error).__name__}")
        offered: set[bytes] = set()
        for path in self.target.keys:
            yield from self._file(path, held, offered)
        if not self.target.only_named:
            for blob, key in held.items():
                if blob not in offered:
                    yield _of_agent(key)
        if not self.target.keys:
            for name in DEFAULT_KEYS:
                path = Path("~/.ssh").expanduser() / name
                if path.exists():
                    yield from self._file(path, held, offered)

    def _file(
        self, path: Path, held: dict[bytes, paramiko.AgentKey], offered: set[bytes]
    ) -> Iterator[tuple[str, keyfiles.Public | None, Callable[[], paramiko.PKey | None]]]:
        try:
            public = keyfiles.public(path)
            if public is not None:
                if public.blob in offered:
                    return
                offered.add(public.blob)
                if public.blob in held:
                    yield _of_agent(held[public.blob])
                    return
            key = None if keyfiles.locked(path) else keyfiles.private(path, None)
            certified = self._certificate(path)
            if certified is not None:
                dates = certificates.outdated(certified.blob)
                name = f"{path}-cert.pub{f' ({dates})' if dates else ''}"
                yield name, certified, lambda: key or self._unlocked(path)
            yield str(path), public, lambda: key or self._unlocked(path)
        except (keyfiles.Unusable, OSError, ValueError) as error:
            self.tried.append(f"{path}: {error}")

    def _certificate(self, path: Path) -> keyfiles.Public | None:
        """The certificate beside a key; None where there is none, or none that can be read: the key may do alone."""
        file = path.with_name(f"{path.name}-cert.pub")
        if not file.exists():
            return None
        try:
            blob = paramiko.pkey.PublicBlob.from_string(" ".join(file.read_text().split()[:2]))
        except (OSError, ValueError, IndexError, paramiko.SSHException) as error:
            self.tried.append(f"{file}: no certificate: {error}")
            return None
        return keyfiles.Public(blob.key_type, blob.key_blob)

    def _unlocked(self, path: Path) -> paramiko.PKey | None:
        """The key in an encrypted file, its passphrase found or asked for. Raises Unusable."""
        keyfiles.private(path, None)
        for _ in range(PASSPHRASES):
            secret = self._secret(str(path), Kind.KEY)
            if secret is None:
                wrong = self.passwords.was_wrong(str(path), Kind.KEY)
                why = (
                    "the passphrase that was given for it is wrong"
                    if wrong
                    else "its passphrase is not known"
                )
                self.lacking = f"{path}: the host would take it, and {why}"
                self.tried.append(self.lacking)
                return None
            key = keyfiles.private(path, secret)
            if key is not None:
                self.passwords.right(str(path), Kind.KEY)
                return key
            self.passwords.refused(str(path), Kind.KEY)
        self.lacking = f"{path}: the host would take it, and {PASSPHRASES} passphrases were wrong"
        self.tried.append(self.lacking)
        return None

    def _secret(self, target: str, kind: Kind) -> str | None:
        begin = time.monotonic()
        try:
            found = self.passwords.password(target, self.host.name, kind)
            self.unanswered = self.unanswered or found is None
            return found
        finally:
            self.asked_s += time.monotonic() - begin

    # Passwords and prompts

    def by_password(self, reply: Reply) -> Reply:
        """Offer the password once."""
        if self.wrong:  # by prompts already
            return reply
        secret = self._secret(str(self.target), Kind.LOGIN)
        if secret is None:
            known = self.passwords.was_wrong(str(self.target), Kind.LOGIN)
            why = self.passwords.astray(Kind.LOGIN) or "none is known"
            self.tried.append(f"password: {'the one that was given is wrong' if known else why}")
            return reply
        self.given = "the password"
        answer = self.dialogue.password(secret)
        self.used.add("password")
        if answer.word == "change":
            self.tried.append(f"password: {CHANGE_FIRST}")
            return Reply("no", reply.methods)
        return self._judged(answer, "password")

    def by_prompts(self, reply: Reply) -> Reply:
        """Answer what the server asks: the first hidden prompt by the password, others by the person."""
        answer = self.dialogue.interactive()
        asked: list[str] = []
        handed = False  # the password, in a round before this one
        for _ in range(ROUNDS):
            if answer.word != "prompts":
                break
            if handed and any(CHANGE.search(f"{answer.title} {text}") for text, _ in answer.prompts):
                self.tried.append(f"keyboard-interactive: {CHANGE_FIRST}")
                return Reply("no", reply.methods)
            if self._in_vain(answer, asked, handed):
                return self._judged(Reply("no", reply.methods), "keyboard-interactive")
            before = "password" in self.used
            answers: list[str] = []
            for text, visible in answer.prompts:
                given = self._prompted(answer.title, text, visible)
                if given is None:
                    self.tried.append(f"keyboard-interactive: asks {text.strip()!r}, and nobody is there")
                    return Reply("no", reply.methods)
                asked.append(text)
                answers.append(given)
            handed = handed or ("password" in self.used and not before)
            self.given = "the answers to its questions"
            answer = self.dialogue.answer(answers)
        return self._judged(answer, "keyboard-interactive")

    def _in_vain(self, answer: Reply, asked: list[str], handed: bool) -> bool:
        """Whether the server asks again for what it was given, in whatever words."""
        for text, visible in answer.prompts:
            code = self._is_code(text, answer.title)
            if asked.count(text) >= TRIES or (text in asked and "password" in self.used and not code):
                return True
            if visible or code or not (handed or self.wrong):
                continue
            # Another password, perhaps: whoever is there can tell.
            if self.wrong or AGAIN.search(f"{answer.title} {text}") or not self.passwords.attended:
                return True
        return False

    def _is_code(self, text: str, title: str = "") -> bool:
        """Whether a prompt is for what no stored password can answer. Names of people and hosts tell nothing."""
        names = {self.target.user, self.target.name, self.target.alias, self.host.name}
        names = {name for name in names if name and not ONE_TIME.fullmatch(name)}
        known = re.compile(rf"\S+@\S+|(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")
        left = PASSWORD.sub(r"\1", known.sub("", text).strip())
        return ONE_TIME.search(f"{known.sub('', title)} {left}") is not None

    def _prompted(self, title: str, text: str, visible: bool) -> str | None:
        if not visible and "password" not in self.used and not self._is_code(text):
            secret = self._secret(str(self.target), Kind.LOGIN)
            if secret is not None:
                self.used.add("password")
            return secret
        begin = time.monotonic()
        try:
            lines = [part.strip() for part in (title, text) if part.strip()]
            given = self.passwords.answer(f"{self.host.name} ({self.target}) asks: {' '.join(lines)} ")
            self.wire.one_time = self.wire.one_time or given is not None
            self.answered += given is not None
            self.unanswered = self.unanswered or given is None
            return given
        finally:
            self.asked_s += time.monotonic() - begin

    def _judged(self, answer: Reply, method: str) -> Reply:
        self.proved = self.proved or (answer.partly and "password" in self.used)
        if answer.word == "no" and not answer.partly:
            answers = f" ({self.answered} typed)" if self.answered and method != "password" else ""
            self.tried.append(f"{method}: refused{answers}")
            if "password" in self.used and not self.proved:
                self.wrong = True
                self.passwords.refused(str(self.target), Kind.LOGIN)
        return answer

    # The end

    def _refused(self, reply: Reply) -> AuthenticationRefused:
        tried = "; ".join(self.tried) or "no key was found"
        if reply.word == "gone":
            said = plain(self.dialogue.banner).strip()
            refused = any("refused" in text for text in self.tried)
            if self.asked_s > PATIENCE_S or (self.asked_s > HASTY_S and not refused and not said):
                return TookTooLong(
                    f"{self.target} gave up while the answer was waited for", host=self.host.name
                )
            if self.lacking:
                return AuthenticationRefused(
                    f"{self.target} did not let {self.target.user} in; {self.lacking}",
                    host=self.host.name,
                    tried=tried,
                    advice="Give the passphrase: in a terminal, or in the window; or store it in the keyring; or hand"
                    " it over in BRANCHLAB_KEY_PASSPHRASE_FD (the guide, Connecting).",
                )
            if not refused and self.given:
                return AuthenticationRefused(
                    f"{self.target} hung up once it had been given {self.given}"
                    + (f"; it said: {said[-500:]}" if said else ""),
                    host=self.host.name,
                    tried=tried,
                    advice=f"The account {self.target.user} may be locked or expired there (as root: chage -l"
                    f" {self.target.user}), or not be let in by AllowUsers or PAM: the host's log says why"
                    " (journalctl -u ssh -u sshd, or /var/log/auth.log).",
                )
            keys = sum("refused" in text for text in self.tried)
            return AuthenticationRefused(
                f"{self.target} ended the connection after {keys or 'no'} refused attempts to log in",
                host=self.host.name,
                tried=tried,
                advice="Servers allow six or fewer (MaxAuthTries). Name the right key: key in the profile, or"
                " IdentityFile with IdentitiesOnly in ~/.ssh/config.",
            )
        if self.wrong:
            return LoginPasswordRefused(
                f"{self.target} did not take the password"
                + (f", or one of {self.answered} further answers" if self.answered else ""),
                host=self.host.name,
                tried=tried,
                advice="Look whether it is the password of this user on this host; it was offered once, and is not"
                " tried again.",
            )
        if any(CHANGE_FIRST in text for text in self.tried):
            return AuthenticationRefused(
                f"{self.target} wants the password to be changed before it lets {self.target.user} in",
                host=self.host.name,
                tried=tried,
                advice="Log in by hand once, and change it there.",
            )
        takes = ", ".join(reply.methods) or "nothing"
        further = " after a first step succeeded" if reply.partly else ""
        return AuthenticationRefused(
            f"{self.target} did not let {self.target.user} in{further}; it takes {takes}",
            host=self.host.name,
            tried=tried,
            advice='Name a key that it knows (key = "~/.ssh/...") and put its public half into'
            " ~/.ssh/authorized_keys there. Passwords and passphrases: answer in a terminal, or in the window; or"
            " store them in the keyring; or hand them over in a file descriptor (the guide, Connecting).",
        )


WAYS = {
    "publickey": Login.by_key,
    "keyboard-interactive": Login.by_prompts,
    "password": Login.by_password,
}


def _of_agent(key: paramiko.AgentKey) -> tuple[str, keyfiles.Public, Callable[[], paramiko.PKey]]:
    return f"agent: {key.comment or key.get_name()}", keyfiles.Public(key.get_name(), key.blob), lambda: key
