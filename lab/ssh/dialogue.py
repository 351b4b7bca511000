"""Logging in as a dialogue: one question to the server at a time, from the caller's thread (RFC 4252, RFC 4256).

paramiko's own logging in cannot ask whether a key would do, and answers prompts in the thread that has to read.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import paramiko
from paramiko import common

from lab.ssh.wire import Wire, plain
from lab.stop import Stop

TICK_S = 0.1


@dataclass(frozen=True, slots=True)
class Reply:
    """The server's answer. `word`: accepted, in, no, key-ok, prompts, change (the password first), gone."""

    word: str
    methods: tuple[str, ...] = ()
    partly: bool = False
    """This step succeeded, and another is wanted."""
    title: str = ""
    prompts: tuple[tuple[str, bool], ...] = ()
    """Text, and whether what is typed may be seen."""


class Dialogue:
    """Logging in, one question at a time, from the caller's thread. paramiko calls it its auth handler."""

    def __init__(self, wire: Wire, user: str, timeout_s: float, stop: Stop | None) -> None:
        self._wire, self._user, self._timeout_s, self._stop = wire, user, timeout_s, stop
        self._replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self._method = ""
        self._authenticated = False
        self.banner = b""
        wire.auth_handler = self  # type: ignore[assignment]
        message = paramiko.Message()
        message.add_byte(common.cMSG_SERVICE_REQUEST)
        message.add_string("ssh-userauth")
        self._asked(message)

    # What paramiko wants of it

    def is_authenticated(self) -> bool:
        """Whether the server let the user in."""
        return self._authenticated

    def get_username(self) -> str:
        """The user."""
        return self._user

    def abort(self) -> None:
        """The connection has ended."""
        self._replies.put(Reply("gone"))

    @property
    def _handler_table(self) -> dict[int, Callable[[paramiko.Message], None]]:
        return {
            common.MSG_SERVICE_ACCEPT: lambda _: self._replies.put(Reply("accepted")),
            common.MSG_USERAUTH_SUCCESS: self._success,
            common.MSG_USERAUTH_FAILURE: self._failure,
            common.MSG_USERAUTH_BANNER: self._banner,
            common.MSG_USERAUTH_INFO_REQUEST: self._more,
        }

    def _success(self, _: paramiko.Message) -> None:
        self._authenticated = True
        self._wire._auth_trigger()  # type: ignore[attr-defined]
        self._replies.put(Reply("in"))

    def _failure(self, message: paramiko.Message) -> None:
        methods = tuple(message.get_list())
        self._replies.put(Reply("no", methods, partly=message.get_boolean()))

    def _banner(self, message: paramiko.Message) -> None:
        self.banner = message.get_binary()[:4096]

    def _more(self, message: paramiko.Message) -> None:
        """Number 60 means something else with each method (RFC 4252, 7 and 8; RFC 4256, 3.2)."""
        if self._method == "publickey":
            self._replies.put(Reply("key-ok"))
        elif self._method == "password":
            self._replies.put(Reply("change"))
        else:
            title = "\n".join(plain(message.get_binary()) for _ in range(2)).strip()
            message.get_binary()
            prompts = [
                (plain(message.get_binary()), message.get_boolean())
                for _ in range(min(message.get_int(), 32))
            ]
            self._replies.put(Reply("prompts", title=title, prompts=tuple(prompts)))

    # Questions and answers

    def none(self) -> Reply:
        """Ask what is allowed; some servers let one in already."""
        return self._asked(self._request("none"))

    def would_take(self, algorithm: str, blob: bytes) -> Reply:
        """Ask whether a public key would do."""
        message = self._request("publickey")
        message.add_boolean(False)
        message.add_string(algorithm)
        message.add_string(blob)
        return self._asked(message)

    def key(self, algorithm: str, blob: bytes, sign: Callable[[bytes], bytes]) -> Reply:
        """Log in by a key; `sign` signs what it is given."""
        message = self._request("publickey")
        message.add_boolean(True)
        message.add_string(algorithm)
        message.add_string(blob)
        signed = paramiko.Message()
        signed.add_string(self._wire.session_id or b"")
        message.add_string(sign(signed.asbytes() + message.asbytes()))
        return self._asked(message)

    def password(self, secret: str) -> Reply:
        """Log in by a password."""
        message = self._request("password")
        message.add_boolean(False)
        message.add_string(secret.encode("utf-8", "surrogateescape"))
        return self._asked(message)

    def interactive(self) -> Reply:
        """Begin a conversation by prompts."""
        message = self._request("keyboard-interactive")
        message.add_string("")
        message.add_string("")
        return self._asked(message)

    def answer(self, answers: Sequence[str]) -> Reply:
        """Answers to the last prompts, as many."""
        message = paramiko.Message()
        message.add_byte(common.cMSG_USERAUTH_INFO_RESPONSE)
        message.add_int(len(answers))
        for one in answers:
            message.add_string(one.encode("utf-8", "surrogateescape"))
        return self._asked(message)

    def _request(self, method: str) -> paramiko.Message:
        self._method = method
        message = paramiko.Message()
        message.add_byte(common.cMSG_USERAUTH_REQUEST)
        for word in (self._user, "ssh-connection", method):
            message.add_string(word)
        return message

    def _say(self, message: paramiko.Message) -> None:
        with suppress(EOFError, OSError, paramiko.SSHException):
            self._wire._send_message(message)  # type: ignore[attr-defined]

    def _asked(self, message: paramiko.Message) -> Reply:
        self._say(message)
        end = time.monotonic() + self._timeout_s
        while time.monotonic() < end:
            if self._stop is not None:
                self._stop.check()
            try:
                return self._replies.get(timeout=TICK_S)
            except queue.Empty:
                if not self._wire.is_active():
                    return Reply("gone")
        raise TimeoutError
