"""What differs between systems: who runs this, locks on files, how a process is started apart, what it used.

Modules that only POSIX has are imported here, guarded; so are the calls that only Windows has (kernel32, psapi),
whose layouts are those of processthreadsapi.h and psapi.h.
"""

import codecs
import contextlib
import os
import subprocess
import tempfile
import time
from typing import Any, Dict, List, NamedTuple, Optional

fcntl: Any = None
with contextlib.suppress(ImportError):  # Windows has none
    import fcntl

POSIX = hasattr(os, "geteuid")
_FAR = 1 << 30
"""Windows locks bytes, and nobody else can read those: one far behind a file's end is locked."""
_QUERY, _RUNNING = 0x1000, 259  # PROCESS_QUERY_LIMITED_INFORMATION, STILL_ACTIVE


class Usage(NamedTuple):
    """What a process used; None where the system does not tell."""

    user_s: Optional[float] = None
    system_s: Optional[float] = None
    peak_kib: Optional[int] = None


def user() -> int:
    """The number of the user with whose rights this runs; -1 where users have none."""
    return os.geteuid() if POSIX else -1


def binary_streams() -> None:
    """No line end is translated on standard input and output."""
    with contextlib.suppress(ImportError):
        import msvcrt

        for number in (0, 1):
            getattr(msvcrt, "setmode")(number, getattr(os, "O_BINARY", 0))  # noqa: B009 - absent elsewhere


def session_from() -> str:
    """The address from which the SSH session comes in which this runs; empty if over a UNIX socket, or if in none.

    sshd tells it to what it starts (SSH_CONNECTION); sudo and doas may take it away, so whoever started those is
    looked at too, as far as their environments may be read.
    """
    pid, found = os.getpid(), os.environ.get("SSH_CONNECTION", "")
    while not found and pid > 1:
        try:
            with open("/proc/%d/environ" % pid, "rb") as file:
                words = [word for word in file.read().split(b"\0") if word.startswith(b"SSH_CONNECTION=")]
            with open("/proc/%d/stat" % pid) as text:
                pid = int(text.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            break
        found = words[0].decode("utf-8", "replace").partition("=")[2] if words else ""
    peer = found.split(" ")[0]
    return "" if peer == "UNKNOWN" else peer


def lock(handle: int, shared: bool = False, wait: bool = True) -> None:
    """Lock an open file until it is closed. Raises OSError where somebody else has it, and `wait` is False."""
    if fcntl is not None:
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(handle, how if wait else how | fcntl.LOCK_NB)
        return
    import msvcrt

    while True:
        os.lseek(handle, _FAR, os.SEEK_SET)
        try:
            getattr(msvcrt, "locking")(handle, getattr(msvcrt, "LK_NBLCK"), 1)  # noqa: B009
        except OSError:
            if not wait:
                raise
            time.sleep(0.02)
        else:
            return


def apart() -> Dict[str, Any]:
    """Arguments for `Popen` of a process that outlives this one and its session."""
    if POSIX:
        return {"start_new_session": True, "cwd": "/"}
    names = ("DETACHED_PROCESS", "CREATE_NEW_PROCESS_GROUP", "CREATE_BREAKAWAY_FROM_JOB")
    return {"creationflags": _flags(*names), "cwd": os.path.abspath(os.sep)}


def started_apart(argv: List[str]) -> "subprocess.Popen[bytes]":
    """Start a process that outlives this one and its session. Raises OSError.

    On Windows the SSH session may be in a job that lets nothing go; what is started then ends with the session.
    """
    how = apart()
    silent: Dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    try:
        return subprocess.Popen(argv, **silent, **how)
    except PermissionError:
        away = _flags("CREATE_BREAKAWAY_FROM_JOB")
        if not away:
            raise
        return subprocess.Popen(argv, **silent, **dict(how, creationflags=how["creationflags"] & ~away))


def of_its_own() -> Dict[str, Any]:
    """Arguments for `Popen` of a service: a session of its own; on Windows no window, and a group of its own."""
    return {"start_new_session": True} if POSIX else {"creationflags": quiet_flags()}


def program_folders() -> List[str]:
    """Where Windows' programs of this trade are beside PATH; none elsewhere.

    Only below the folder of programs, which administrators alone may write: anybody may make a folder on a drive.
    """
    if os.name != "nt":
        return []
    above = [os.environ.get(name, "") for name in ("ProgramFiles", "ProgramW6432", "ProgramFiles(x86)")]
    found = [os.path.join(folder, *names) for folder in dict.fromkeys(above) if folder for names in _PROGRAMS]
    return [folder for folder in found if os.path.isdir(folder)]


_PROGRAMS = (
    ("VisualSVN Server", "bin"),
    ("TortoiseSVN", "bin"),
    ("SlikSvn", "bin"),
    ("Subversion", "bin"),
    ("Git", "cmd"),
    ("Apache24", "bin"),
    ("Apache Software Foundation", "Apache2.4", "bin"),
    ("nginx",),
    ("Squid", "bin"),
)


def by_cmd(program: str) -> bool:
    """True for a batch file: Windows runs it by cmd.exe, which reads `&`, `%` and others in its words as its own."""
    return os.name == "nt" and program.lower().endswith((".bat", ".cmd"))


def quiet_flags() -> int:
    """Popen's flags for a command with no window and a group of its own; 0 where there are none such."""
    return _flags("CREATE_NO_WINDOW", "CREATE_NEW_PROCESS_GROUP")


def _flags(*names: str) -> int:
    found = 0
    for name in names:
        found |= getattr(subprocess, name, 0)
    return found


def end_tree(process: "subprocess.Popen[bytes]") -> None:
    """End a process and what it started, by force."""
    end_tree_of(process.pid)
    with contextlib.suppress(OSError):
        process.kill()


def end_tree_of(pid: int) -> None:
    """On Windows: end a process and what it started, by force; nothing elsewhere."""
    if os.name != "nt":
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            ["taskkill", "/T", "/F", "/PID", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=False,
            creationflags=quiet_flags(),
        )


def started_at(pid: int) -> Optional[int]:
    """When a process began, in the system's own ticks; None if it is not there or ended already."""
    if os.name == "nt":
        return _windows_start(pid)
    try:
        with open("/proc/%d/stat" % pid) as file:
            # The name in brackets may hold anything, also spaces and brackets.
            words = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else int(words[19])


def used(process: "subprocess.Popen[bytes]") -> Usage:
    """What a process that has ended used, without its children. Known on Windows only."""
    handle = getattr(process, "_handle", None)
    if os.name != "nt" or handle is None:
        return Usage()
    times = _windows_times(int(handle))
    return Usage(
        None if times is None else times[3] / 1e7,
        None if times is None else times[2] / 1e7,
        _windows_peak_kib(int(handle)),
    )


def code_page() -> Optional[str]:
    """In what Windows' programs without a console write, as Python calls it (GetACP); None elsewhere."""
    return "cp%d" % _kernel().GetACP() if os.name == "nt" else None


class Reading:
    """Bytes of a command as text: UTF-8; on Windows, from the first that are none on, the system's code page."""

    def __init__(self) -> None:
        other = code_page()
        self._other: Optional[str] = other
        self._decoder: Any = codecs.getincrementaldecoder("utf-8")("replace" if other is None else "strict")

    def decode(self, data: bytes, final: bool = False) -> str:
        """The text of these bytes, as far as its signs are whole."""
        waiting: bytes = self._decoder.getstate()[0]
        try:
            return str(self._decoder.decode(data, final))
        except UnicodeDecodeError:
            try:
                self._decoder = codecs.getincrementaldecoder(str(self._other))("replace")
            except LookupError:  # a page that Python does not know
                self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
            return str(self._decoder.decode(waiting + data, final))


def memory_bytes() -> Optional[int]:
    """How much memory Windows has: ullTotalPhys of MEMORYSTATUSEX (sysinfoapi.h); None elsewhere."""
    if os.name != "nt":
        return None
    import ctypes

    status = ctypes.create_string_buffer(64)
    ctypes.c_uint32.from_buffer(status).value = len(status)
    done = _kernel().GlobalMemoryStatusEx(status)
    return int(ctypes.c_uint64.from_buffer(status, 8).value) if done else None


def _kernel() -> Any:
    import ctypes  # not in every small Python

    found = getattr(ctypes, "WinDLL")("kernel32")  # noqa: B009 - absent elsewhere
    found.OpenProcess.restype = ctypes.c_void_p
    return found


def _windows_times(handle: int) -> Optional["tuple[int, ...]"]:
    """Creation, exit, kernel and user time in units of 100 ns."""
    import ctypes

    found = [ctypes.c_uint64() for _ in range(4)]  # FILETIME is two 32-bit halves, the low one first
    done = _kernel().GetProcessTimes(ctypes.c_void_p(handle), *(ctypes.byref(one) for one in found))
    return tuple(one.value for one in found) if done else None


def _windows_start(pid: int) -> Optional[int]:
    import ctypes

    kernel, code = _kernel(), ctypes.c_uint32()
    handle = kernel.OpenProcess(_QUERY, 0, pid)
    if not handle:
        return None
    try:
        runs = kernel.GetExitCodeProcess(ctypes.c_void_p(handle), ctypes.byref(code))
        times = _windows_times(handle) if runs and code.value == _RUNNING else None
        return None if times is None else times[0]
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))


def _windows_peak_kib(handle: int) -> Optional[int]:
    """PeakWorkingSetSize of PROCESS_MEMORY_COUNTERS."""
    import ctypes

    size = 8 + 8 * ctypes.sizeof(ctypes.c_size_t)
    counters = ctypes.create_string_buffer(size)
    done = _kernel().K32GetProcessMemoryInfo(ctypes.c_void_p(handle), counters, size)
    return int(ctypes.c_size_t.from_buffer(counters, 8).value) // 1024 if done else None


def temporary() -> str:
    """The folder for temporary files. Not `tempfile`'s own search on POSIX, which makes and removes a file in each."""
    if not POSIX:
        return tempfile.gettempdir()
    named = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    for path in [path for path in named if os.path.isabs(path)] + ["/tmp", "/var/tmp"]:  # noqa: S108 - only looked at
        if os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK):
            return path
    return "/tmp"  # noqa: S108 - whoever makes something in it hears why not
