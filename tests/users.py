"""Ordinary users of this machine, made for one test and removed after it: with a password, sudo, doas or none."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab.model import Host
from tests import sshd

NEEDED = ("useradd", "userdel", "chpasswd", "visudo", "sudo")


@dataclass
class User:
    """A user who may log in by key on a real sshd on loopback."""

    name: str
    password: str
    server: sshd.Sshd
    folder: Path
    made: list[Path] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return Path("/home") / self.name

    @property
    def cache(self) -> Path:
        return self.home / ".cache" / "branchlab"

    def host(self, root: str = "sudo", **changes: str | None) -> Host:
        values = {"ssh": f"{self.name}@127.0.0.1:{self.server.port}", "root": root, **changes}
        return self.server.host(**values)

    def sudoers(self, *lines: str) -> None:
        """What sudo allows this user; `USER` stands for the name. Replaces what it allowed before."""
        text = "".join(f"{line.replace('USER', self.name)}\n" for line in lines)
        self.write(Path("/etc/sudoers.d") / self.name, text, 0o440)
        subprocess.run(["visudo", "-c", "-q"], check=True)

    def write(self, path: Path, text: str, mode: int = 0o644) -> Path:
        """A file of root's that goes with the user. It must not have been there before."""
        assert path in self.made or not path.exists(), f"{path} is somebody's"
        self.made.append(path)
        part = path.with_name(f"{path.name}~")  # sudo passes over such names
        part.write_text(text)
        part.chmod(mode)
        part.rename(path)
        return path

    def forgotten(self) -> None:
        """As if nothing had been written for it, or in its home."""
        for path in self.made:
            path.unlink(missing_ok=True)
        self.made.clear()
        Path(f"/run/sudo/ts/{self.name}").unlink(missing_ok=True)
        for path in [*self.home.iterdir(), *(self.folder / name for name in ("sudo.log", "ran", "trace"))]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["runuser", "-u", self.name, "--", *argv], capture_output=True, text=True, check=False, cwd="/"
        )


@contextmanager
def user(*config: str) -> Iterator[User]:
    """A user, and an sshd with Debian's PAM and these lines in its configuration, for as long as the block lasts."""
    if os.getuid() != 0:
        pytest.skip("users can be made by root only")
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"missing: {', '.join(missing)}")
    name, password = f"bl-test-{secrets.token_hex(3)}", f"pw-{secrets.token_hex(8)}-Ä"
    folder = Path(tempfile.mkdtemp(prefix="bl-test-"))
    folder.chmod(0o755)
    subprocess.run(["useradd", "-m", "-s", "/bin/bash", name], check=True)
    try:
        subprocess.run(["chpasswd"], input=f"{name}:{password}\n".encode(), check=True)
        made = sshd.made(folder / "sshd", *config, "UsePAM yes", "SetEnv PATH=/usr/bin:/bin")
        with sshd.listening(made) as server:
            found = User(name, password, server, folder)
            try:
                yield found
            finally:
                found.forgotten()
    finally:
        _gone(name)
        shutil.rmtree(folder)


def _gone(name: str) -> None:
    end = time.monotonic() + 30
    while subprocess.run(["userdel", "-r", name], capture_output=True, check=False).returncode == 8:
        subprocess.run(["pkill", "-u", name], check=False)  # of this test's own user only
        assert time.monotonic() < end
        time.sleep(0.1)
    Path(f"/run/sudo/ts/{name}").unlink(missing_ok=True)
