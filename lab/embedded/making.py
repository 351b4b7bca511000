"""The maker's side of an embedded lab: keys and files, the keeper started, the lab handed over and ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from lab import model
from lab.embedded import folders, host, keeper, needs, plan, profile_text
from lab.errors import HostLacks, LabError

_START_S = 60.0
_END_S = 30.0
_LOCK = 3


class Embedded:
    """A lab that is up. `lab` are its hosts, `profile_path` its profile, `folder` all its files."""

    def __init__(
        self, planned: plan.LabPlan, lab: model.Lab, lifeline: int | None, keeper_pid: int | None
    ) -> None:
        self.plan = planned
        self.lab = lab
        self.folder = Path(planned.folder)
        self.profile_path = Path(planned.profile)
        self._lifeline = lifeline
        self._keeper = keeper_pid

    def close(self) -> None:
        """End the lab and wait until nothing of it is left. Idempotent."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        else:
            end(self.folder)
        if self._keeper is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._keeper, 0)
            self._keeper = None
        folders.sweep(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make(planned: plan.LabPlan, lock: int) -> Embedded:
    """Make this lab in its folder, which is there and locked. Raises HostLacks, and then nothing is left."""
    try:
        hosts = _write(planned)
        with contextlib.ExitStack() as undo:
            lifeline, pid = _keeper(planned, lock, undo)
            _write_profile(planned, hosts)
            undo.pop_all()
    except BaseException:
        folders.remove(Path(planned.folder))
        raise
    if not planned.tied:
        os.write(lifeline, keeper.LET_GO)
        os.close(lifeline)
    lab = model.Lab(name=profile_text.NAME, hosts=hosts, path=planned.profile)
    return Embedded(planned, lab, lifeline if planned.tied else None, pid)


def _write(planned: plan.LabPlan) -> tuple[model.Host, ...]:
    """Everything that stands in the lab's folder before its processes start."""
    folder = Path(planned.folder)
    # Written after the folder was locked: from now on the lab can be found, and is seen to be living.
    (folder / plan.MARK).write_text(planned.dumped(), "utf-8")
    host.write_shared_files(planned)
    for each in planned.hosts:
        Path(each.folder).mkdir()
        Path(each.folder).chmod(0o711 if os.geteuid() == 0 else 0o700)
    keys = {"": folder / "key"} | {each.name: Path(each.folder) / "host_key" for each in planned.hosts}
    _make_keys(list(keys.values()))
    for each in planned.hosts:
        host.write_files(planned, each, keys[each.name])
    public = {
        name: " ".join(Path(f"{path}.pub").read_text("ascii").split()[:2]) for name, path in keys.items()
    }
    known = "".join(f"{each.name} {public[each.name]}\n" for each in planned.hosts)
    (folder / "known_hosts").write_text(known, "ascii")
    (folder / "ssh_config").write_text(_ssh_config(planned), "utf-8")
    return tuple(profile_text.host_of(planned, each, public[each.name]) for each in planned.hosts)


def _make_keys(paths: list[Path]) -> None:
    """One ed25519 key without password for each path, all at the same time."""
    tool = needs.program("ssh-keygen") or "ssh-keygen"
    running = []
    for path in paths:
        command = [tool, "-q", "-t", "ed25519", "-N", "", "-C", "branchlab", "-f", str(path)]
        running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE))
    for process in running:
        _out, said = process.communicate(timeout=60)
        if process.returncode:
            raise HostLacks(f"ssh-keygen: {said.decode('utf-8', 'replace').strip()}", tried=str(process.args))


def _ssh_config(planned: plan.LabPlan) -> str:
    """For the plain ssh: `ssh -F FOLDER/ssh_config server`."""
    blocks = []
    for each in planned.hosts:
        pass_socket = Path(__file__).with_name("pass_socket.py")
        blocks.append(
            f"Host {each.name}\n"
            f'  ProxyCommand "{sys.executable}" -I -S "{pass_socket}" {each.ssh}\n'
            "  ProxyUseFdpass yes\n"
            f"  HostKeyAlias {each.name}\n"
        )
    folder = planned.folder
    blocks.append(
        f"Host *\n  IdentityFile {folder}/key\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        f"  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n  BatchMode yes\n  LogLevel ERROR\n"
    )
    return "".join(blocks)


def _write_profile(planned: plan.LabPlan, hosts: tuple[model.Host, ...]) -> None:
    """The profile where it is wanted, and beside the lab, to tell later whether the user changed it."""
    text = profile_text.text(hosts)
    (Path(planned.folder) / "profile.toml").write_text(text, "utf-8")
    if Path(planned.profile) != Path(planned.folder) / "profile.toml":
        try:
            Path(planned.profile).parent.mkdir(parents=True, exist_ok=True)
            Path(planned.profile).write_text(text, "utf-8")
        except OSError as error:
            raise LabError(
                f"{planned.profile}: the lab's profile cannot be written: {error.strerror}",
                advice="Free some space there, or name another folder in BRANCHLAB_DATA.",
            ) from error


def _keeper(planned: plan.LabPlan, lock: int, undo: contextlib.ExitStack) -> tuple[int, int]:
    """Start the keeper and wait for its word: the lifeline's end that it watches, and its process number.

    posix_spawn gives it exactly the descriptors it must have, whatever other threads open meanwhile.
    """
    their_life, lifeline = _pipe()
    word, their_word = _pipe()
    undo.callback(os.close, lifeline)
    with (Path(planned.folder) / keeper.LOG).open("wb") as errors:
        streams = [
            (os.POSIX_SPAWN_DUP2, their_life, 0),
            (os.POSIX_SPAWN_DUP2, their_word, 1),
            (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
            (os.POSIX_SPAWN_DUP2, lock, _LOCK),
        ]
        environment = {"PATH": needs.SEARCH, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        command = keeper.command("keeper", planned.folder)
        pid = os.posix_spawn(sys.executable, command, environment, file_actions=streams, setsid=True)
    undo.pop_all()
    undo.callback(_dismissed, lifeline, pid)
    os.close(their_life)
    os.close(their_word)
    with contextlib.closing(os.fdopen(word, "rb")) as pipe:
        ready, _, _ = select.select([pipe], [], [], _START_S)
        said = (
            json.loads(pipe.readline() or b"{}")
            if ready
            else {"failed": f"no answer within {_START_S:.0f} s"}
        )
    if "ready" not in said:
        root = os.geteuid() == 0
        tried = " ".join(["unshare", *(() if root else needs.ROOTLESS), "--net --mount --pid ..."])
        raise needs.no_namespaces(
            tried, said.get("failed", "the lab's keeper ended without a word"), root=root
        )
    return lifeline, pid


def _dismissed(lifeline: int, pid: int) -> None:
    """Let go of a keeper whose lab nobody gets: it ends with the pipe, and the lab with it."""
    process = os.pidfd_open(pid)
    os.close(lifeline)
    try:
        if select.select([process], [], [], _END_S)[0]:
            os.waitpid(pid, 0)
    finally:
        os.close(process)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are no standard stream, even where this process was started without any."""
    read, write = (folders.above_standard_streams(end) for end in os.pipe())
    return read, write


def end(folder: Path) -> None:
    """Ask a living lab's keeper to end it, and wait until it is gone. Raises LabError if it does not go."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.settimeout(_END_S)
        try:
            control.connect(str(folder / keeper.CONTROL))
            pid, _uid, _gid = struct.unpack(
                "3i", control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            )
            process = os.pidfd_open(pid)
        except OSError:
            return  # it is ending already
    # The process's end, not the socket's: the connection above was the request.
    try:
        if not select.select([process], [], [], _END_S)[0]:
            raise LabError(f"the lab in {folder} did not end within {_END_S:.0f} s", tried=f"process {pid}")
    finally:
        os.close(process)
