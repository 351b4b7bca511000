"""Ctrl-C, TERM and HUP, made one request to stop: finished trials stay, hosts are taken back."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from lab.stop import Stop

HINT = (
    "still taking the hosts back; press Ctrl-C once more to leave at once "
    "(the hosts then undo what is left by themselves, within 35 s)"
)
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_END = b"\0"


@contextmanager
def asking(
    stop: Stop,
    say: Callable[[str], None],
    stopping: str = "stopping: the trial under way is given up, and the hosts are taken back",
) -> Iterator[None]:
    """Inside, the first of these signals asks `stop`; a second Ctrl-C gives a hint, a third ends the process.

    `stopping` is said at the first.

    For the main thread; elsewhere it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A handler may run while this thread holds the lock inside Stop, so it must not touch it. The number of
    # the signal goes into a pipe, and a thread of its own asks.
    heard, heard_write = os.pipe()
    os.set_blocking(heard_write, False)
    listener = threading.Thread(
        target=_listen, args=(heard, stop, say, stopping), daemon=True, name="signals"
    )
    before = {number: signal.signal(number, _noted) for number in _wanted()}
    old_wakeup = signal.set_wakeup_fd(heard_write, warn_on_full_buffer=False)
    listener.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(old_wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.write(heard_write, _END)  # closing alone would not do: a forked child may hold this end too
        listener.join(timeout=5)
        os.close(heard_write)


@contextmanager
def as_interrupts() -> Iterator[None]:
    """Inside, TERM and HUP are raised in the main thread as Ctrl-C is, so that everything is taken down."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.default_int_handler) for number in _wanted()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def as_usual() -> Iterator[None]:
    """Inside, TERM and HUP do what they do to any program: for the window, whose loop is not Python's.

    A handler in Python would only run once Qt hands control to Python; the window may set its own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends = [one for one in _wanted() if one is not signal.SIGINT]
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wanted() -> tuple[signal.Signals, ...]:
    """The signals that stop a run. HUP stays ignored where it was (`nohup`)."""
    known = [signal.Signals[name] for name in _NAMES if hasattr(signal, name)]
    return tuple(one for one in known if one.name != "SIGHUP" or signal.getsignal(one) is not signal.SIG_IGN)


def _noted(number: int, frame: FrameType | None) -> None:
    """Handled where the pipe is read."""


def _listen(heard: int, stop: Stop, say: Callable[[str], None], stopping: str) -> None:
    interrupts = 0
    try:
        while numbers := os.read(heard, 64):
            if _END[0] in numbers:
                return
            for number in numbers:
                if number not in _wanted():
                    continue
                asked_before = stop.requested
                stop.request()
                if not asked_before:
                    say(stopping)
                elif number == signal.SIGINT:
                    interrupts += 1
                    if interrupts > 1:
                        sys.stderr.flush()
                        os._exit(130)
                    say(HINT)
    finally:
        os.close(heard)
