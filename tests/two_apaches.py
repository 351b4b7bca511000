"""A real Subversion server and a real caching proxy on loopback addresses; verbs called without an agent."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.recipes import Recipe
from ssh_agents import apache, files, made, protocol, service

SERVER, PROXY = "127.0.0.2", "127.0.0.3"


@dataclass
class Promises:
    """What a lease would hold: entries by name; struck out by `keep`."""

    held: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: int = 0

    def call(self) -> protocol.Call:
        return protocol.Call(
            say=lambda event, data: None,
            cancelled=lambda: False,
            wait_cancelled=lambda seconds: False,
            promise=self._promise,
            keep=lambda name: self.held.pop(name, None),
        )

    def _promise(self, entry: dict[str, Any]) -> str:
        self.made += 1
        self.held[str(self.made)] = entry
        return str(self.made)


def missing() -> str:
    """What the tests with real services lack here; empty if nothing."""
    tools = [tool for tool in ("svn", "svnadmin") if shutil.which(tool) is None]
    try:
        apache.found()
        for kind in apache.MODULES:
            apache.modules(kind)
    except protocol.Refused as refused:
        tools.append(refused.text)
    return ", ".join(tools)


def free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


@contextmanager
def place() -> Iterator[Path]:
    """A marked scratch folder that a service's own user can be let through: pytest's own are private.

    In memory where that is possible: loading a repository makes many thousand small files.
    """
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 300_000_000 else None
    path = Path(tempfile.mkdtemp(prefix="branchlab-test-", dir=where))
    (path / files.MARK).touch()
    try:
        yield path
    finally:
        shutil.rmtree(path)
        for one in [one for one in made.every() if one["path"].startswith(f"{path}/")]:
            made.struck(one["path"])  # root's record of a cache that was kept


def repository(recipe: Recipe, path: Path, seed: int | None = None) -> Path:
    """The recipe's repository, loaded."""
    dump = path.with_suffix(".dump")
    with dump.open("wb") as file:
        file.writelines(recipe.dump(seed))
    subprocess.run(["svnadmin", "create", path], check=True)
    load = ["svnadmin", "load", "-q", "--no-flush-to-disk", "-M", "64", "-F", dump, path]
    subprocess.run(load, check=True)
    return path


@dataclass
class Services:
    """Both services of a lab, started; `counts` is what their logs told since it was last asked."""

    folder: Path
    repository: Path
    server_port: int
    proxy_port: int
    promises: Promises
    _seen: dict[str, int] = field(default_factory=dict)

    @property
    def root(self) -> str:
        return f"http://{SERVER}:{self.server_port}/svn"

    @property
    def cache(self) -> Path:
        return self.folder / "branchlab-cache"

    def counts(self, server: int = 0, proxy: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
        """Server's, proxy's: once so many requests are there, since Apache logs after it has answered."""
        end = time.monotonic() + 20
        while True:
            time.sleep(0.1)  # for a request too many
            found = self._log("svn-server"), self._log("caching-proxy")
            whole = found[0]["requests"] >= server and found[1]["requests"] >= proxy
            if whole or time.monotonic() > end:
                break
        self._seen = {"svn-server": found[0]["offset"], "caching-proxy": found[1]["offset"]}
        return found

    def _log(self, kind: str) -> dict[str, Any]:
        asked = {"kind": kind, "folder": str(self.folder / kind), "since": self._seen.get(kind, 0)}
        return service.log(asked, self.promises.call())


@contextmanager
def services(folder: Path, repository: Path) -> Iterator[Services]:
    """Both, until the end of the block."""
    both = Services(folder, repository, free_port(SERVER), free_port(PROXY), Promises())
    server = {"repository": str(repository), "allow": ["127.0.0.1"], "listen": [SERVER]}
    proxy = {
        "allow": ["127.0.0.1"],
        "listen": [PROXY],
        "origins": [SERVER],
        "origin_ports": [both.server_port],
        "cache": str(both.cache),
    }
    asked = [
        {
            "kind": "svn-server",
            "folder": str(folder / "svn-server"),
            "port": both.server_port,
            "options": server,
        },
        {
            "kind": "caching-proxy",
            "folder": str(folder / "caching-proxy"),
            "port": both.proxy_port,
            "options": proxy,
        },
    ]
    try:
        for one in asked:
            service.start(one, both.promises.call())
        yield both
    finally:
        for one in asked:
            service.stop(one, both.promises.call())
