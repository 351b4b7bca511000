"""A FAKE of what an agent meets on Windows, put before its source: POSIX is hidden, kernel32 and taskkill are made up.

Paths stay POSIX's (`os.sep` is a slash), for the files are this system's; the guard that reads Windows' paths has tests
of its own. What the standard library itself needs is loaded first. No Windows was ever seen by these tests.
"""

# ruff: noqa: F401, N802, SIM905, UP031 - loaded early on purpose; Windows' names; any Python from 3.8 on

import ctypes
import fcntl
import getpass
import os
import platform
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

platform.platform()
platform.processor()  # asks a program, once
tempfile.gettempdir()


class FakeMsvcrt:
    """Locks as Windows has them, made of this system's."""

    LK_NBLCK = 2

    def __init__(self, flock, how):
        self._flock, self._how = flock, how

    def locking(self, handle, mode, count):
        self._flock(handle, self._how)

    def setmode(self, handle, mode):
        return 0


class FakePopen(subprocess.Popen):
    """Refuses to start what would open a console window, and what only POSIX can be asked for."""

    def __init__(self, *args, creationflags=0, start_new_session=False, **others):
        if not creationflags & (subprocess.CREATE_NO_WINDOW | subprocess.DETACHED_PROCESS):
            raise AssertionError("a console window would appear: %r" % (args,))
        if start_new_session or others.get("preexec_fn") or others.get("pass_fds"):
            raise ValueError("not supported on Windows platforms")
        if creationflags & subprocess.CREATE_BREAKAWAY_FROM_JOB:
            raise PermissionError(13, "the job of this SSH session lets nothing go")
        super().__init__(*args, **others)
        self._handle = self.pid


def _stat(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            words = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else words


class FakeKernel32:
    """The few calls that agents make; a handle is a process's number."""

    def __init__(self):
        self.OpenProcess = lambda access, inherit, pid: pid if _stat(pid) else 0

    def GetExitCodeProcess(self, handle, code):
        code._obj.value = 259 if _stat(handle.value) else 0
        return 1

    def GetProcessTimes(self, handle, creation, ended, kernel, user):
        words = _stat(handle.value)
        creation._obj.value = int(words[19]) if words else 0
        kernel._obj.value, user._obj.value = 2000000, 1000000  # units of 100 ns
        return 1

    def K32GetProcessMemoryInfo(self, handle, counters, size):
        struct.pack_into("@IIN", counters, 0, size, 0, 5 << 20)
        return 1

    def GlobalMemoryStatusEx(self, status):
        if struct.unpack_from("@I", status)[0] != 64:
            return 0
        struct.pack_into("@IIQ", status, 0, 64, 0, 8 << 30)
        return 1

    def GetACP(self):
        return 936  # a Chinese Windows

    def CloseHandle(self, handle):
        return 1


def hide():
    """From here on, this is as little POSIX as can be had."""
    sys.modules["msvcrt"] = FakeMsvcrt(fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for name in "fcntl pwd grp resource termios tty pty".split():
        sys.modules[name] = None
    for module, names in {
        os: "getuid geteuid getgid getegid getppid fork forkpty setsid killpg posix_spawn wait3 wait4 waitid pread"
        " pwrite fchmod fchown chown getloadavg sched_getaffinity uname mkfifo O_NOFOLLOW O_DIRECTORY O_CLOEXEC",
        signal: "SIGHUP SIGQUIT SIGPIPE SIGXFSZ pthread_sigmask sigtimedwait",
        select: "poll",
        socket: "AF_UNIX AF_NETLINK",
        time: "CLOCK_BOOTTIME",
    }.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    os.supports_dir_fd = set()
    subprocess._USE_POSIX_SPAWN = shutil._use_fd_functions = False  # the standard library's own use of them
    subprocess.CREATE_NEW_PROCESS_GROUP = 0x200
    subprocess.DETACHED_PROCESS = 0x8
    subprocess.CREATE_BREAKAWAY_FROM_JOB = 0x01000000
    subprocess.CREATE_NO_WINDOW = 0x08000000
    subprocess.Popen = FakePopen
    ctypes.WinDLL = lambda name: {"kernel32": kernel}[name]
    os.name = "nt"


kernel = FakeKernel32()
hide()
