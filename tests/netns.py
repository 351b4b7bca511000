"""Network namespaces and agents in them, for tests: made with unique names, and gone afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CODE = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); from ssh_agents.__main__ import main; sys.exit(main())"
)


class FailedError(Exception):
    """The agent's last word was `failed`."""

    def __init__(self, word: dict[str, str]) -> None:
        super().__init__(f"{word['kind']}: {word['text']} (tried: {word['tried']})")
        self.kind, self.text = word["kind"], word["text"]


@dataclass
class Talk:
    """One request under way."""

    agent: Agent
    number: int
    words: queue.SimpleQueue[dict[str, Any]] = field(default_factory=queue.SimpleQueue)

    def event(self, timeout_s: float = 30) -> tuple[str, dict[str, Any]]:
        """The next event."""
        word = self.words.get(timeout=timeout_s)
        assert "event" in word, word
        return word["event"], word["data"]

    def changes(self, timeout_s: float = 60) -> list[dict[str, Any]]:
        """What the last word tells of changes on the host."""
        word = self.words.get(timeout=timeout_s)
        assert "done" in word, word
        return word.get("changes", [])

    def done(self, timeout_s: float = 60) -> dict[str, Any]:
        """The last word, past all events. Raises FailedError."""
        while True:
            word = self.words.get(timeout=timeout_s)
            if "failed" in word:
                raise FailedError(word["failed"])
            if "done" in word:
                return word["done"]

    def cancel(self) -> None:
        self.agent.start("cancel", target=self.number).done()


class Agent:
    """A real agent from the source tree, spoken to over pipes."""

    def __init__(self, argv: list[str]) -> None:
        # As where it comes over a UNIX socket: whoever runs the tests may do so over SSH.
        environment = {**os.environ, "SSH_CONNECTION": "UNKNOWN 65535 UNKNOWN 65535"}
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._talks: dict[int, Talk] = {}
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.pid = self.ask("hello")["pid"]

    def start(self, verb: str, /, **args: Any) -> Talk:
        self._number += 1
        talk = self._talks[self._number] = Talk(self, self._number)
        message = json.dumps({"id": self._number, "verb": verb, "args": args}) + "\n"
        self.process.stdin.write(message.encode())
        self.process.stdin.flush()
        return talk

    def ask(self, verb: str, /, **args: Any) -> dict[str, Any]:
        return self.start(verb, **args).done()

    def kill(self) -> None:
        """As `kill -9`."""
        self.process.kill()
        self.process.wait(10)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(20)
        self._reader.join(10)
        self.process.stdout.close()

    def _read(self) -> None:
        for line in self.process.stdout:
            word = json.loads(line)
            self._talks[word["id"]].words.put(word)


class Net:
    """Namespaces by short name, tied together as asked."""

    def __init__(self) -> None:
        self._mark = "bt" + secrets.token_hex(3)
        self._names: list[str] = []
        self._agents: list[Agent] = []

    def host(self, name: str) -> str:
        """A new namespace; its full name."""
        full = f"{self._mark}-{name}"
        run("ip", "netns", "add", full)
        self._names.append(full)
        self.run(name, "ip", "link", "set", "lo", "up")
        return full

    def run(self, name: str, /, *argv: str, check: bool = True) -> str:
        """Run a command to its end within a namespace; what it printed."""
        return run("ip", "netns", "exec", f"{self._mark}-{name}", *argv, check=check)

    def popen(self, name: str, /, *argv: str) -> subprocess.Popen[bytes]:
        """Start a command within a namespace, spoken to over pipes; a context manager that waits for its end."""
        words = ["ip", "netns", "exec", f"{self._mark}-{name}", *argv]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def argv(self, name: str, *argv: str) -> list[str]:
        """The argument list that runs a command within a namespace, as the very process that is started."""
        return ["ip", "netns", "exec", f"{self._mark}-{name}", *argv]

    def pids(self, name: str) -> list[int]:
        """Processes on a host."""
        return [int(word) for word in run("ip", "netns", "pids", f"{self._mark}-{name}").split()]

    @staticmethod
    def command_line(pid: int) -> bytes:
        """Empty once it has ended."""
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        return b""

    @staticmethod
    def kill(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)

    def tie(self, one: str, device: str, other: str, peer: str) -> None:
        """A cable between two namespaces."""
        at = (f"{self._mark}-{one}", f"{self._mark}-{other}")
        run("ip", "link", "add", device, "netns", at[0], "type", "veth", "peer", "name", peer, "netns", at[1])
        self.run(one, "ip", "link", "set", device, "up")
        self.run(other, "ip", "link", "set", peer, "up")

    def address(self, name: str, device: str, *addresses: str) -> None:
        for address in addresses:
            nodad = ["nodad"] if ":" in address else []
            self.run(name, "ip", "addr", "add", address, "dev", device, *nodad)

    def agent(
        self, name: str, privileged: bool = False, python: str = sys.executable, text: str = CODE
    ) -> Agent:
        """An agent on a host."""
        argv = ["ip", "netns", "exec", f"{self._mark}-{name}", python, "-I", "-S", "-c", text]
        agent = Agent(argv + (["privileged"] if privileged else []))
        self._agents.append(agent)
        return agent

    def close(self) -> None:
        with contextlib.ExitStack() as every:  # also when one of them fails
            for name in self._names:
                every.callback(self._remove, name)
            for agent in self._agents:
                every.callback(agent.close)

    def _remove(self, name: str) -> None:
        # A watcher ends by itself, and removes its lease's folder, once it has undone for the second time.
        end = time.monotonic() + 30
        while any(_watches(pid) for pid in run("ip", "netns", "pids", name).split()):
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        for pid in run("ip", "netns", "pids", name).split():
            self.kill(int(pid))
        run("ip", "netns", "del", name)


def _watches(pid: str) -> bool:
    with contextlib.suppress(OSError):
        return b"\0watch\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def run(*argv: str, check: bool = True) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    if check and done.returncode:
        raise AssertionError(f"{argv}: {done.stderr}")
    return done.stdout + ("" if check else done.stderr)


@contextlib.contextmanager
def net() -> Iterator[Net]:
    made = Net()
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def office(hosts: int = 2) -> Iterator[Net]:
    """A server `server`, office hosts `c1`, `c2`, … and a stranger `other`, all on one switch.

    The server's eth0 is one end of a cable within its own namespace; the other end, `eth0p`, is a port of its
    bridge `uplink`, as is `up0`, the cable to the switch: what the embedded lab gives its server.
    """
    with net() as made:
        made.host("switch")
        made.run("switch", "ip", "link", "add", "lan", "type", "bridge", "forward_delay", "0")
        made.run("switch", "ip", "link", "set", "lan", "up")
        names = [f"c{number}" for number in range(1, hosts + 1)] + ["other"]
        for number, name in enumerate(names, 11):
            made.host(name)
            made.tie(name, "eth0", "switch", f"p-{name}")
            made.run("switch", "ip", "link", "set", f"p-{name}", "master", "lan")
            made.address(name, "eth0", f"10.77.0.{number}/24", f"fd77::{number}/64")
        made.host("server")
        made.tie("server", "up0", "switch", "p-server")
        made.run("switch", "ip", "link", "set", "p-server", "master", "lan")
        for words in (
            "link add uplink type bridge forward_delay 0",
            # Or the bridge itself answers for eth0's address, and uploads never pass eth0.
            "link set uplink arp off up",
            "link add eth0 type veth peer name eth0p",
            "link set eth0p up master uplink",
            "link set up0 master uplink",
            "link set eth0 up",
        ):
            made.run("server", "ip", *words.split())
        made.address("server", "eth0", "10.77.0.1/24", "fd77::1/64")
        yield made


OFFICE = ["10.77.0.11", "10.77.0.12", "fd77::11", "fd77::12"]
SERVER, SERVER6, OTHER = "10.77.0.1", "fd77::1", "10.77.0.13"
