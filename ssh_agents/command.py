"""Runs one command and times it: wall, user, system, peak memory; streams output, ends the group in time."""

import codecs
import contextlib
import os
import select
import shutil
import signal
import sys
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

from ssh_agents import command_plain, orphans, protocol, system

PIECE = 65536
"""Bytes per read, and at most per event: escaped as JSON they stay below the protocol's limit."""
GATHER_S = 0.05
"""Output is gathered this long before it is said, so that telling does not disturb what is timed."""
AFTER_S = 1.0
"""How long output is still read after the command's end, when something of its group keeps a pipe open."""
GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""
TICK_S = 0.1
LONGEST_WAIT_S = 60.0
"""A command is begun within this time, or not at all: who asks for more has another host's clock in mind."""
SECRET_BYTES = 4096
_CMDS_OWN = frozenset('"%&|<>^!\r\n')


def run(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `command`: run `argv` (never by a shell) and say how it went.

    `cwd` (absolute), `env` (null takes a variable away), `timeout_s`, `stdin` (text; /dev/null without),
    `secret` (a text that the command can read once, from its descriptor 3: it is in a pipe, and on no disk), `tail`
    (bytes of output kept), `at` (it begins no sooner than this, on this host's monotonic clock; so that several hosts
    begin together). Events: `started` {began, pid}, `output` {stream, text}. Times are seconds:
    `wall_s` on the monotonic clock from just before the spawn to the exit; `user_s` and `system_s` of the
    command and of those children that it waited for. `peak_kib` is the largest resident size of one
    process; the kernel never counts less than the agent's own. `left`: something of its group still runs.
    """
    return _Command(args, call).run()


class _Command:
    """One run. The verb's thread spawns and waits; one thread reads; one watches for time-out and cancel."""

    def __init__(self, args: Dict[str, Any], call: protocol.Call) -> None:
        self._call = call
        self._argv = protocol.need_strings(args, "argv")
        self._timeout_s = protocol.need(args, "timeout_s", float)
        self._keep = protocol.need(args, "tail", int, 8192)
        self._cwd = args.get("cwd")
        self._stdin = args.get("stdin")
        self._secret = args.get("secret")
        self._at = protocol.need(args, "at", float, 0.0)
        self._env = _environment(args.get("env") or {})
        self._check()
        self._program = _found(self._argv[0], self._env, self._cwd)
        self._spawned = threading.Event()
        self._exited = threading.Event()
        self._lock = threading.Lock()  # held to signal the group, and to reap, so that no other is ever hit
        self._pid = 0
        self._began = 0.0
        self._reason = ""
        self._tail = bytearray()

    def _check(self) -> None:
        if not self._argv or not self._argv[0]:
            raise protocol.Refused("bad-request", "argv is empty")
        if not 0 < self._timeout_s < 1e7:
            raise protocol.Refused("bad-request", "timeout_s must be above zero, not %r" % self._timeout_s)
        if self._keep < 0:
            raise protocol.Refused("bad-request", "tail must be zero or more bytes, not %d" % self._keep)
        for name in ("cwd", "stdin", "secret"):
            value = getattr(self, "_" + name)
            if value is not None and not isinstance(value, str):
                raise protocol.Refused("bad-request", "argument %r must be str, not %r" % (name, value))
        if self._at - time.monotonic() > LONGEST_WAIT_S:
            raise protocol.Refused("bad-request", "at is more than %g s from now" % LONGEST_WAIT_S)
        # What a pipe takes at once, on every system: nobody reads it before the command does.
        if self._secret is not None and len(self._secret.encode("utf-8", "surrogatepass")) > SECRET_BYTES:
            raise protocol.Refused("bad-request", "argument 'secret' is longer than %d bytes" % SECRET_BYTES)
        if self._cwd is not None and ("\0" in self._cwd or not os.path.isabs(self._cwd)):
            raise protocol.Refused("bad-request", "cwd must be an absolute path, not %r" % self._cwd)

    def run(self) -> Dict[str, Any]:
        self._wait_for_the_moment()
        if hasattr(os, "posix_spawn"):
            return self._run_by_spawn()
        if self._secret is not None:
            raise protocol.Refused(
                "missing", "a command can be given a secret in a pipe on POSIX systems only"
            )
        return self._run_plain()

    def _wait_for_the_moment(self) -> None:
        left = self._at - time.monotonic()
        if left > 0 and self._call.wait_cancelled(left):
            raise protocol.Refused("cancelled", "it was cancelled before it began")

    def _run_plain(self) -> Dict[str, Any]:
        if system.by_cmd(self._program) and any(set(word) & _CMDS_OWN for word in self._argv[1:]):
            raise protocol.Refused(
                "bad-request",
                "%s is a batch file, and cmd.exe, which runs it, would read signs in its words as its own: name the "
                "program itself" % self._program,
            )
        asked = command_plain.Asked(
            self._program,
            self._argv,
            self._cwd,
            self._env,
            None if self._stdin is None else self.stdin,
            self._timeout_s,
        )
        try:
            told = command_plain.run(asked, self.say, self._call)
        except OSError as error:
            raise _refusal(error, self._program) from None
        return {**told, "tail": self._kept()}

    def _run_by_spawn(self) -> Dict[str, Any]:
        ours, theirs = _pipes(self._stdin is not None)
        if self._secret is not None:
            theirs.append(_filled_pipe(self._secret.encode("utf-8", "surrogatepass")))
        reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        watcher = threading.Thread(target=self._watch, daemon=True)
        # Both before the spawn: starting a thread after it would delay the look at the exit.
        reader.start()
        watcher.start()
        orphans.GUARD.ready()
        try:
            self._spawn(theirs)
        except BaseException:
            self._exited.set()
            raise
        finally:
            self._spawned.set()
            for number in theirs:
                os.close(number)
            if not self._pid:
                reader.join()
        status, usage, ended = self._wait()
        reader.join()
        return self._told(status, usage, ended)

    def _spawn(self, theirs: List[int]) -> None:
        actions = [(os.POSIX_SPAWN_DUP2, number, to) for to, number in enumerate(theirs)]
        options: Dict[str, Any] = {
            "file_actions": actions,
            "setsigmask": [],
            # Python ignores SIGPIPE, and a child would inherit that.
            "setsigdef": [
                signal.SIGPIPE,
                signal.SIGXFSZ,
                signal.SIGINT,
                signal.SIGQUIT,
                signal.SIGHUP,
                signal.SIGTERM,
            ],
        }
        # posix_spawn knows no folder. A process has one for all its threads, so it is changed for the length
        # of the spawn, with a lock around it; no other verb uses a relative path. `env -C` would cost an exec
        # inside the time that is measured, and is missing on older hosts.
        with _FOLDER:
            home = _entered(self._cwd)
            try:
                self._began = time.monotonic()
                self._pid = _spawned(self._program, self._argv, self._env, options)
                orphans.GUARD.began(self._pid)
            except OSError as error:
                raise _refusal(error, self._program) from None
            finally:
                _left(home)

    def _wait(self) -> Tuple[int, Any, float]:
        if hasattr(os, "waitid"):
            # Not reaped yet: until the lock is held its number cannot become another process's.
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
            ended = time.monotonic()
            with self._lock:
                self._exited.set()
                if self._reason:
                    _signal(self._pid, signal.SIGKILL)  # what of the group outlived its leader
                _, status, usage = os.wait4(self._pid, 0)
        else:
            _, status, usage = os.wait4(self._pid, 0)
            ended = time.monotonic()
            self._exited.set()
        orphans.GUARD.ended(self._pid)
        return status, usage, ended

    def _watch(self) -> None:
        self._spawned.wait()
        end = self._began + self._timeout_s
        while not self._exited.is_set():
            left = end - time.monotonic()
            if left <= 0:
                self._end("timed-out")
                return
            if self._call.wait_cancelled(min(TICK_S, left)):
                self._end("cancelled")
                return

    def _end(self, reason: str) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self._lock:
                if self._exited.is_set():
                    return
                self._reason = self._reason or reason
                _signal(self._pid, number)
            if self._exited.wait(GRACE_S):
                return

    def _read(self, ours: List[int]) -> None:
        self._spawned.wait()
        streams = _Streams(self, ours)
        try:
            if self._pid:
                self._call.say("started", {"began": self._began, "pid": self._pid})
                streams.run()
        finally:
            streams.close()

    def say(self, stream: str, data: bytes, text: str) -> None:
        """For the reading thread: keep the end of the output, and tell it."""
        self._tail += data
        if len(self._tail) > 2 * self._keep + PIECE:
            del self._tail[: len(self._tail) - self._keep]
        if text:
            self._call.say("output", {"stream": stream, "text": text})

    @property
    def stdin(self) -> bytes:
        """The text for its standard input, as bytes."""
        return (self._stdin or "").encode("utf-8", "surrogatepass")

    @property
    def exited(self) -> threading.Event:
        """Set when the command has ended."""
        return self._exited

    def _told(self, status: int, usage: Any, ended: float) -> Dict[str, Any]:
        return {
            "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "timed_out": self._reason == "timed-out",
            "cancelled": self._reason == "cancelled",
            "wall_s": ended - self._began,
            "user_s": usage.ru_utime,
            "system_s": usage.ru_stime,
            "peak_kib": usage.ru_maxrss // 1024 if sys.platform == "darwin" else usage.ru_maxrss,
            "began": self._began,
            "ended": ended,
            "left": _alive(self._pid),
            "tail": self._kept(),
        }

    def _kept(self) -> str:
        tail = self._tail[len(self._tail) - self._keep :] if len(self._tail) > self._keep else self._tail
        data = bytes(tail)
        if os.name == "nt" and len(self._tail) > self._keep:
            # Else half a sign of UTF-8 at the cut would make all that follows the code page's.
            cut = next((at for at in range(min(4, len(data))) if data[at] & 0xC0 != 0x80), 0)
            data = data[cut:]
        return system.Reading().decode(data, True)


class _Streams:
    """Both outputs and the input of a command, served by one thread so that no side waits for another."""

    def __init__(self, command: _Command, ours: List[int]) -> None:
        self._command = command
        self._names = {ours[0]: "stdout", ours[1]: "stderr"}
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {number: decoder("replace") for number in self._names}
        self._waiting: Dict[int, bytearray] = {number: bytearray() for number in self._names}
        self._input = ours[2] if len(ours) > 2 else -1
        self._stdin = memoryview(command.stdin)
        self._poll = select.poll()
        self._open = set(self._names)
        for number in self._names:
            self._poll.register(number, select.POLLIN)
        if self._input >= 0:
            os.set_blocking(self._input, False)
            self._poll.register(self._input, select.POLLOUT)

    def run(self) -> None:
        """Until both outputs have ended, or are silent after the command's end."""
        flush: Optional[float] = None
        until: Optional[float] = None
        while self._open:
            if self._command.exited.is_set() and until is None:
                until = time.monotonic() + AFTER_S
            wait = TICK_S if flush is None else max(0.0, flush - time.monotonic())
            ready = self._poll.poll(0 if until is not None else wait * 1000)
            for number, _ in ready:
                self._serve(number)
            now = time.monotonic()
            if flush is None and any(self._waiting.values()):
                flush = now + GATHER_S
            if flush is not None and (now >= flush or self._large()):
                flush = None
                self._flush()
            if until is not None and (now > until or not ready):
                break
        self._flush(final=True)

    def close(self) -> None:
        """Close what is still open. Each number once: it may be another thread's a moment later."""
        for number in self._names:
            os.close(number)
        if self._input >= 0:
            os.close(self._input)
            self._input = -1

    def _large(self) -> bool:
        return any(len(data) >= PIECE for data in self._waiting.values())

    def _serve(self, number: int) -> None:
        if number == self._input:
            self._feed()
            return
        data = os.read(number, PIECE)
        if data:
            self._waiting[number] += data
        else:
            self._open.discard(number)
            self._poll.unregister(number)

    def _feed(self) -> None:
        try:
            self._stdin = self._stdin[os.write(self._input, self._stdin[:PIECE]) :]
        except BlockingIOError:
            return
        except OSError:  # the command does not read it
            self._stdin = self._stdin[:0]
        if not self._stdin:
            self._poll.unregister(self._input)
            os.close(self._input)
            self._input = -1

    def _flush(self, final: bool = False) -> None:
        for number, name in self._names.items():
            data = bytes(self._waiting[number])
            self._waiting[number].clear()
            for begin in range(0, len(data) or 1, PIECE):
                piece = data[begin : begin + PIECE]
                last = final and begin + PIECE >= len(data)
                self._command.say(name, piece, self._decoders[number].decode(piece, last))


_FOLDER = threading.Lock()


def _environment(changes: Any) -> Dict[str, str]:
    if not isinstance(changes, dict):
        raise protocol.Refused("bad-request", "argument 'env' must be dict, not %r" % (changes,))
    env = dict(os.environ, LC_ALL="C.UTF-8")
    for name, value in changes.items():
        if not name or "=" in name or "\0" in name or not (value is None or isinstance(value, str)):
            raise protocol.Refused("bad-request", "not an environment variable: %r = %r" % (name, value))
        if value is None:
            env.pop(name, None)
        elif "\0" in value:
            raise protocol.Refused("bad-request", "a zero byte in the variable %r" % name)
        else:
            env[name] = value
    return env


def _found(name: str, env: Dict[str, str], cwd: Optional[str]) -> str:
    if os.name == "nt":  # extensions of programs are many there
        places = [env.get("PATH", ""), *system.program_folders()]
        program = shutil.which(name, path=os.pathsep.join(places))
        if program is not None:
            return program
    if "/" in name or os.sep in name:
        return name if os.path.isabs(name) or cwd is None else os.path.join(cwd, name)
    folders = [*env.get("PATH", os.defpath).split(os.pathsep), "/usr/local/sbin", "/usr/sbin", "/sbin"]
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise protocol.Refused(
        "missing", "the program %s is not on this host" % name, "looked in " + ":".join(folders)
    )


def _pipes(with_input: bool) -> Tuple[List[int], List[int]]:
    """Our ends (stdout, stderr, stdin if any) and the command's (stdin, stdout, stderr)."""
    out, out_w = os.pipe()
    err, err_w = os.pipe()
    if not with_input:
        return [out, err], [os.open(os.devnull, os.O_RDONLY), out_w, err_w]
    read, write = os.pipe()
    return [out, err, write], [read, out_w, err_w]


def _filled_pipe(data: bytes) -> int:
    """The end of a pipe that gives these bytes, and then ends."""
    read, write = os.pipe()
    try:
        os.write(write, data)
    finally:
        os.close(write)
    if read != 3:
        return read
    other = os.dup(read)  # moved onto itself it would be closed by some C libraries
    os.close(read)
    return other


def _entered(cwd: Optional[str]) -> Optional[int]:
    if cwd is None:
        return None
    home = os.open(".", os.O_RDONLY)
    try:
        os.chdir(cwd)
    except OSError as error:
        os.close(home)
        raise _refusal(error, cwd) from None
    return home


def _left(home: Optional[int]) -> None:
    if home is not None:
        try:
            os.fchdir(home)
        finally:
            os.close(home)


def _spawned(program: str, argv: List[str], env: Dict[str, str], options: Dict[str, Any]) -> int:
    try:
        # A session of its own: no terminal can be asked for a password, and its group is its own too.
        return os.posix_spawn(program, argv, env, setsid=True, **options)
    except NotImplementedError:  # a C library without POSIX_SPAWN_SETSID
        return os.posix_spawn(program, argv, env, setpgroup=0, **options)


def _refusal(error: OSError, path: str) -> protocol.Refused:
    kind = {FileNotFoundError: "missing", NotADirectoryError: "missing", PermissionError: "denied"}
    return protocol.Refused(
        kind.get(type(error), "failed"), "%s: %s" % (path, error.strerror or error), "to run or enter " + path
    )


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True
