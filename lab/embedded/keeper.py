"""The keeper: a process outside the lab's namespaces that ends the lab when its maker ends, and tidies up.

    keeper FOLDER     standard input: a pipe that only the maker holds; its end ends the lab, unless the
                      maker has let go of it before, by a byte (a lab of `lab up`, once its profile is there)
                      standard output: one JSON line, {"ready": FOLDER} or {"failed": TEXT}
                      descriptor 3: the lock on the folder

The holder watches the keeper the same way, so whichever of the two is killed, the other one tidies up.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from pathlib import Path

from lab.embedded import folders, needs, plan

CONTROL = "control"
"""The socket in the lab's folder that ends the lab when anything connects. Its process goes last."""
LOG = "keeper.log"
LET_GO = b"k"
"""What the maker says on the pipe when the lab is to outlive it."""
_LOCK = 3
_ROOT_OF_PACKAGES = str(Path(__file__).resolve().parents[2])


def command(module: str, folder: str) -> list[str]:
    """How to run `main` of a module of this package, without site packages (finding them takes time)."""
    text = (
        f"import sys; sys.path[:0] = [{_ROOT_OF_PACKAGES!r}]; from lab.embedded.{module} import main; main()"
    )
    return [sys.executable, "-I", "-S", "-c", text, folder]


def main() -> None:
    """Keep one lab until it is to end."""
    os.chdir("/")
    os.umask(0o022)
    # What the maker's own caller left open (a pipe whose end someone waits for) is not the lab's to hold.
    os.closerange(_LOCK + 1, 65536)
    os.set_inheritable(_LOCK, False)
    lab = plan.loaded(Path(sys.argv[1]))
    asked, asking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(asking)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.bind(f"{lab.folder}/{CONTROL}")
        control.listen(8)
        holder = _started(lab)
        _keep(lab, holder, control, asked)
        _end(lab, holder)


def _started(lab: plan.LabPlan) -> subprocess.Popen[bytes]:
    rootless = () if os.geteuid() == 0 else needs.ROOTLESS
    options = ("--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc")
    unshare = needs.program("unshare") or "unshare"
    with (Path(lab.folder) / LOG).open("wb") as log:
        return subprocess.Popen(
            [unshare, *rootless, *options, "--", *command("holder", lab.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=(_LOCK,),
        )


def _keep(lab: plan.LabPlan, holder: subprocess.Popen[bytes], control: socket.socket, asked: int) -> None:
    """Say how it went, then wait for a reason to end."""
    assert holder.stdout is not None  # noqa: S101 a pipe was asked for
    word = holder.stdout.readline() or _why(lab)
    with contextlib.suppress(OSError):
        os.write(1, word)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if not word.startswith(b'{"ready"'):
        return
    selector = selectors.DefaultSelector()
    selector.register(holder.stdout, selectors.EVENT_READ)
    selector.register(control, selectors.EVENT_READ)
    selector.register(asked, selectors.EVENT_READ)
    selector.register(0, selectors.EVENT_READ)
    while [key.fd for key, _ in selector.select()] == [0] and os.read(0, 1) == LET_GO:
        selector.unregister(0)


def _why(lab: plan.LabPlan) -> bytes:
    """The line to say when the holder ended without a word: what unshare or Python wrote last."""
    said = (Path(lab.folder) / LOG).read_text("utf-8", "replace").strip()
    return json.dumps({"failed": said[-2000:] or "unshare ended without a word"}).encode() + b"\n"


def _end(lab: plan.LabPlan, holder: subprocess.Popen[bytes]) -> None:
    """The end of the holder's input tells it to end; what does not listen is killed."""
    assert holder.stdin is not None  # noqa: S101 a pipe was asked for
    with contextlib.suppress(OSError):
        holder.stdin.close()
    try:
        holder.wait(10)
    except subprocess.TimeoutExpired:
        holder.kill()  # and with it, by --kill-child, the whole process namespace
        holder.wait()
    folders.remove(Path(lab.folder))
