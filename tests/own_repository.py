"""A repository that stands in for a user's own, on the embedded lab's server: no run started its Apache."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import real_runs
import two_apaches

from lab.embedded import Embedded
from lab.recipes import QUICK
from ssh_agents import apache, grounds, service_asked

PORT = 8088


@dataclass(frozen=True)
class Repository:
    """Looked at past every server: what it holds is what is on its disk."""

    folder: Path

    def newest(self) -> int:
        return int(self._told("svnlook", "youngest", str(self.folder)))

    def changed(self, since: int) -> dict[int, list[str]]:
        """Revision -> the paths that it changed, of those after `since`."""
        log = ["svn", "log", "--xml", "-v", "-r", f"{since + 1}:HEAD", self.folder.as_uri()]
        if self.newest() == since:
            return {}
        entries = ElementTree.fromstring(self._told(*log)).iter("logentry")  # noqa: S314
        return {
            int(entry.get("revision", "0")): [str(path.text) for path in entry.iter("path")]
            for entry in entries
        }

    def locks(self) -> list[str]:
        return [
            line.partition(":")[2].strip()
            for line in self._told("svnadmin", "lslocks", str(self.folder)).splitlines()
            if line.startswith("Path:")
        ]

    def names(self, path: str = "") -> list[str]:
        return self._told("svn", "list", f"{self.folder.as_uri()}{path}").split()

    def svn(self, *words: str) -> str:
        """Somebody's own work on it; `/x` words become its URLs."""
        root = self.folder.as_uri()
        return self._told("svn", *(root + word if word.startswith("/") else word for word in words))

    def _told(self, *argv: str) -> str:
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@contextmanager
def served(lab: Embedded, password: str = "", port: int = PORT) -> Iterator[Repository]:
    """The quick data set's repository at http://SERVER:8088/svn/.

    `password`: "reads" or "writes" ask for one; "never": nobody has a name.
    """
    with two_apaches.place() as place:
        folder = two_apaches.repository(QUICK, place / "repository")
        home = place / "apache"
        grounds.make_folder(str(home))
        options = {"repository": str(folder)}
        spec = service_asked.spec(
            {"kind": "svn-server", "folder": str(home), "port": port, "options": options}
        )
        user = grounds.hand_over(str(home), str(folder))
        apache.write(spec, str(home / "httpd.conf"), user)
        config = (home / "httpd.conf").read_text("utf-8").rstrip()
        if password:
            # Nobody is anybody by himself any more.
            config = "\n".join(line for line in config.splitlines() if "set Authorization" not in line)
            if password == "writes":
                config = config.replace(
                    "Require valid-user",
                    "<LimitExcept GET PROPFIND OPTIONS REPORT>\nRequire valid-user\n</LimitExcept>",
                )
            if password == "never":
                config = config.replace("Require valid-user", "Require all granted")
        (home / "httpd.conf").write_text(config + "\n", "utf-8")
        start = f"setsid {apache.found()} -f {home}/httpd.conf -DFOREGROUND >{home}/said 2>&1 </dev/null &"
        real_runs.on(lab.folder, "server", start)
        try:
            _await_answer(lab, home, port)
            yield Repository(folder)
        finally:
            real_runs.kill(
                number for number, line in real_runs.inhabitants(lab.folder).items() if str(home) in line
            )


def _await_answer(lab: Embedded, home: Path, port: int) -> None:
    end = time.monotonic() + real_runs.PATIENCE_S
    while time.monotonic() < end:
        asked = f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}))\" && echo yes"
        if "yes" in real_runs.on(lab.folder, "server", asked):
            return
        time.sleep(0.1)
    said = [file.read_text("utf-8") for file in (home / "said", home / "error.log") if file.exists()]
    raise AssertionError(f"the Apache of the user's own did not start: {said}")
