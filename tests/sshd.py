"""Real sshd servers for tests: on a loopback port, or one per connection behind a UNIX socket."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab.model import Host, Role

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")


@dataclass
class Sshd:
    """A server that runs: its port (0 behind a UNIX socket), its folder, and the key that it lets in."""

    folder: Path
    port: int = 0
    path: str = ""
    sessions: list[tuple[subprocess.Popen[bytes], socket.socket]] = field(default_factory=list)
    """Of a server behind a UNIX socket."""

    def cut(self) -> None:
        """End all sessions behind the UNIX socket without a word."""
        for process, link in self.sessions:
            process.kill()
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    @property
    def key(self) -> Path:
        return self.folder / "client"

    def host_key(self, kind: str = "ed25519") -> str:
        """The server's own key, as a profile pins it."""
        return " ".join((self.folder / f"host_{kind}.pub").read_text().split()[:2])

    def host(self, **changes: str | None) -> Host:
        """This server as a host of a lab, with its key pinned."""
        ssh = f"unix:{self.path}" if self.path else f"{getpass.getuser()}@127.0.0.1:{self.port}"
        values: dict[str, str | None] = {"ssh": ssh, "key": str(self.key)}
        if "host_key" not in changes:
            values["host_key"] = self.host_key()
        return Host(name="bench", role=Role.CLIENT, **{**values, **changes})  # type: ignore[arg-type]

    @property
    def cache(self) -> Path:
        """Where agents keep themselves in sessions of this server."""
        return self.folder / "xdg" / "branchlab"

    def log(self) -> str:
        with suppress(OSError):
            return (self.folder / "log").read_text()
        return ""


def made(folder: Path, *lines: str, kinds: tuple[str, ...] = ("ed25519",)) -> Sshd:
    """Keys and configuration of a server, with more `lines` for its configuration."""
    if SSHD is None:
        pytest.skip("no sshd here")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd wants it when it is started as root
    folder.mkdir(parents=True, exist_ok=True)
    for name, kind in [("client", "ed25519"), *((f"host_{kind}", kind) for kind in kinds)]:
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized").write_text((folder / "client.pub").read_text())
    config = [
        *lines,
        *(f"HostKey {folder}/host_{kind}" for kind in kinds),
        f"AuthorizedKeysFile {folder}/authorized\nPidFile none\nUsePAM no\nStrictModes no\nPrintMotd no",
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password",
        f"SetEnv XDG_CACHE_HOME={folder}/xdg PATH=/usr/bin:/bin\nSubsystem sftp internal-sftp",
        "LogLevel VERBOSE",
    ]
    (folder / "config").write_text("\n".join(config) + "\n")
    return Sshd(folder)


@contextmanager
def listening(server: Sshd) -> Iterator[Sshd]:
    """The server on a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        server.port = probe.getsockname()[1]
    argv = [str(SSHD), "-D", "-f", f"{server.folder}/config", "-E", f"{server.folder}/log"]
    argv += ["-o", f"ListenAddress=127.0.0.1:{server.port}"]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                    break
            assert process.poll() is None, server.log()
            time.sleep(0.02)
        yield server
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def behind_socket(server: Sshd, folder: Path) -> Iterator[Sshd]:
    """An `sshd -i` for each connection to a UNIX socket, as the embedded lab has it."""
    argv = [str(SSHD), "-i", "-f", f"{server.folder}/config", "-E", f"{server.folder}/log"]

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            process = subprocess.Popen(argv, stdin=self.request, stdout=self.request)
            server.sessions.append((process, self.request))
            process.wait()

    server.path = str(folder / "sshd.sock")
    with socketserver.ThreadingUnixStreamServer(server.path, Handler) as sockets:
        thread = threading.Thread(target=sockets.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            sockets.shutdown()
            thread.join()
