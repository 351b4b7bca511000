"""A program that runs on a host, over one channel of a connection."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

import paramiko

from lab.errors import ConnectionLost
from lab.ssh.wire import Wire

log = logging.getLogger(__name__)

KEPT_ERRORS = 65_536
PIECE = 65_536
BEGIN_S = 60.0
"""How long a host may take to begin a program: its login may mount a home first."""
END_OF_INPUT = b"\4"
RAW_MODES = (34, 35, 36, 38, 39, 40, 50, 51, 53, 54, 55, 56, 59, 70, 72)
"""What a terminal must not do (RFC 4254, 8): change line ends, stop, make signals, edit, echo, translate output."""


@contextlib.contextmanager
def bounded(channel: paramiko.Channel) -> Iterator[None]:
    """What is asked for on a channel is answered within `BEGIN_S`, or the channel is closed: paramiko would wait."""
    limit = threading.Timer(BEGIN_S, channel.close)
    limit.daemon = True
    limit.start()
    try:
        yield
    finally:
        limit.cancel()


def give_terminal(channel: paramiko.Channel) -> None:
    """A terminal without echo from its first moment: a password must not come back. Raises SSHException."""
    message = paramiko.Message()
    message.add_byte(paramiko.common.cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string("pty-req")  # RFC 4254, 6.2; paramiko's own method gives no modes
    message.add_boolean(True)
    message.add_string("dumb")
    for number in (80, 24, 0, 0):
        message.add_int(number)
    modes = b"".join(bytes([mode, 0, 0, 0, 0]) for mode in RAW_MODES)
    message.add_string(modes + b"\0")
    channel._event_pending()  # type: ignore[attr-defined]
    channel.transport._send_user_message(message)  # type: ignore[union-attr]
    channel._wait_for_event()  # type: ignore[attr-defined]


class Process:
    """A program on a host. A thread drains its standard error, so that neither stream blocks the other."""

    def __init__(self, channel: paramiko.Channel, name: str, wire: Wire, *, terminal: bool = False) -> None:
        self._channel, self._name, self._terminal = channel, name, terminal
        self._wire = wire
        self._errors = bytearray()
        self._lock = threading.Lock()
        self._drain = threading.Thread(target=self._drained, name=f"stderr-{name}", daemon=True)
        self._drain.start()

    def read(self, timeout_s: float | None = None) -> bytes:
        """Some bytes of its standard output; empty at its or the connection's end.

        Raises TimeoutError, and ConnectionLost where the host fell silent or the connection broke.
        """
        self._channel.settimeout(timeout_s)
        try:
            data = self._channel.recv(PIECE)
        except TimeoutError:
            raise
        except (OSError, EOFError, paramiko.SSHException) as error:
            # Reading also tells the other side that there is room again, and that fails first when it is gone.
            log.debug("%s: the connection broke while reading: %r", self._name, error)
            data = b""
        if not data and self._wire.fault:
            raise ConnectionLost(self._wire.fault, host=self._name)
        return data

    def write(self, data: bytes) -> None:
        """All of `data` to its standard input. Raises ConnectionLost."""
        try:
            self._channel.sendall(data)
        except (OSError, EOFError, paramiko.SSHException) as error:
            why = self._wire.fault or str(error) or type(error).__name__
            text = f"the program does not listen any more: {why}"
            raise ConnectionLost(text, host=self._name) from error

    def close_input(self) -> None:
        """The end of its standard input. Idempotent."""
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            if self._terminal:
                self._terminal = False
                self._channel.sendall(END_OF_INPUT)
            self._channel.shutdown_write()

    def errors(self) -> str:
        """The last 64 KiB of its standard error so far."""
        with self._lock:
            return self._errors.decode("utf-8", "replace")

    def exit(self, timeout_s: float) -> int | None:
        """Its exit status; None if it did not end in time, ended by a signal, or out of sight."""
        end = time.monotonic() + timeout_s
        if not self._channel.status_event.wait(timeout_s):
            return None
        self._drain.join(max(0.0, end - time.monotonic()))
        status = self._channel.exit_status
        return None if status < 0 else status

    def end(self) -> None:
        """Ask the host to end it by SIGTERM. OpenSSH does so from 8.1 on, and not for root."""
        message = paramiko.Message()
        message.add_byte(paramiko.common.cMSG_CHANNEL_REQUEST)
        message.add_int(self._channel.remote_chanid)
        message.add_string("signal")  # RFC 4254, 6.9; paramiko has no method for it
        message.add_boolean(False)
        message.add_string("TERM")
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.transport._send_user_message(message)  # type: ignore[union-attr]

    def close(self) -> None:
        """Let go of it. A blocked `read` returns at once. Idempotent."""
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.close()
        self._drain.join(5)

    def _drained(self) -> None:
        while True:
            try:
                data = self._channel.recv_stderr(PIECE)
            except TimeoutError:
                continue
            except (OSError, EOFError, paramiko.SSHException):
                return
            if not data:
                return
            log.debug("%s: %s", self._name, data.decode("utf-8", "replace").rstrip())
            with self._lock:
                self._errors += data
                del self._errors[:-KEPT_ERRORS]
