"""The real bundle, alone, under each Python that is here: nothing that comes in may kill it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import agents

OTHERS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


def pythons() -> dict[str, str]:
    """Interpreters by version: this one, those on the path, and those of pyenv."""
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    for version in OTHERS:
        places = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python3"))
        path = str(places[-1]) if places else shutil.which(f"python{version}")
        if path and version not in found:
            found[version] = path
    return found


PYTHONS = pythons()
VERSIONS = sorted({*OTHERS, *PYTHONS}, key=lambda version: int(version.split(".")[1]))


def python_of(version: str) -> str:
    """The interpreter; skips the test by name where this version is not here."""
    if version not in PYTHONS:
        pytest.skip(f"no Python {version} here")
    return PYTHONS[version]


class Talk:
    """A bundle that runs, and a canned way to speak with it."""

    def __init__(self, python: str, bundle: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [python, "-I", "-S", str(bundle), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self._lines = iter(self.stdout.readline, b"")

    def send(self, data: bytes | dict[str, Any]) -> None:
        self.stdin.write(json.dumps(data).encode() + b"\n" if isinstance(data, dict) else data)

    def next(self) -> dict[str, Any]:
        line = next(self._lines, b"")
        assert line, self.process.stderr.read().decode()  # type: ignore[union-attr]
        message: dict[str, Any] = json.loads(line)
        return message

    def last(self, number: int) -> dict[str, Any]:
        """The last word on a request; others' messages are passed over."""
        while True:
            message = self.next()
            if message["id"] == number and "event" not in message:
                return message

    def ask(self, number: int, verb: Any, **args: Any) -> dict[str, Any]:
        self.send({"id": number, "verb": verb, "args": args})
        return self.last(number)

    def alive(self) -> bool:
        return "done" in self.ask(999_999, "clock")

    def close(self) -> tuple[int, str]:
        self.stdin.close()
        error = self.process.stderr.read().decode()  # type: ignore[union-attr]
        status = self.process.wait(60)
        self.drop()
        return status, error

    def drop(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "agent.py"
    path.write_bytes(agents.bundle().source)
    return path


@pytest.fixture(params=VERSIONS)
def talk(request: pytest.FixtureRequest, bundle: Path) -> Iterator[Talk]:
    made = Talk(python_of(request.param), bundle)
    yield made
    made.drop()


@pytest.fixture
def one(bundle: Path) -> Iterator[Talk]:
    made = Talk(sys.executable, bundle)
    yield made
    made.drop()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_python_3_8_is_looked_for() -> None:
    """The promise is 3.8 or newer; where it is not installed, the tests below say so by its absence."""
    if "3.8" not in PYTHONS:
        pytest.skip("no Python 3.8 here")


def test_it_says_hello_runs_a_command_and_ends_with_its_input(talk: Talk) -> None:
    hello = talk.ask(1, "hello")["done"]
    assert hello["version"] == 1
    assert hello["pid"] == talk.process.pid
    assert "command" in hello["verbs"]
    word = talk.ask(2, "command", argv=["sh", "-c", "echo é; exit 3"], timeout_s=60)["done"]
    assert (word["exit"], word["tail"]) == (3, "é\n")
    facts = talk.ask(3, "facts", tools=["python3"])["done"]
    assert facts["python"] == hello["python"]
    status, error = talk.close()
    assert (status, error) == (0, "")


def test_a_purge_is_in_the_account(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/one").write_text("12345")
    (tmp_path / "cache/.branchlab-may-purge").touch()
    asked = {"kind": "folder", "folder": str(tmp_path / "cache"), "owns": True, "urls": ["one"]}
    word = talk.ask(1, "cache.purge", **asked)
    assert word["done"]["removed"] == 1
    what = f"1 objects (5 bytes) taken out of the cache {tmp_path}/cache"
    assert word["changes"] == [{"what": what, "undone": False}]


def test_scratch_edit_and_remove_work_under_it(talk: Talk) -> None:
    assert "lease" in talk.ask(4, "lease.open", lease_s=60)["done"]
    made = talk.ask(1, "files.scratch", name=f"test-{os.getpid()}")
    path = made["done"]["path"]
    assert made["changes"] == [{"what": f"scratch folder {path} made", "undone": False}]
    try:
        Path(path, "a.cs").write_text("one\ntwo\n" * 20)
        args = {"folder": path, "seed": 5, "files": 1, "pattern": "*.cs", "share": 0.1}
        assert talk.ask(2, "files.edit", **args)["done"] == {
            "files": 1,
            "lines": 4,
            "bytes": 4 * len("one 0123456789ab\n"),
            "names": ["a.cs"],
        }
    finally:
        assert talk.ask(3, "files.remove", path=path)["done"] == {"removed": True}


JUNK = [
    *(b"junk\n", b"{}\n", b"[]\n", b'{"id":"x","verb":"clock"}\n', b"\xff\xfe\x00\n", b"[" * 100_000 + b"\n"),
    *(b'{"id":5}\n', b'{"id":5,"verb":null}\n', b'{"id":5,"verb":["clock"]}\n', b'{"id":5,"verb":{}}\n'),
    *(
        b'{"id":5,"verb":"clock","args":[]}\n',
        b'{"id":5,"verb":"clock","args":null}\n',
        b'{"id":5,"verb":""}\n',
    ),
    *(
        b'{"id":5,"verb":"cancel","args":{"target":[]}}\n',
        b'{"id":5,"verb":"cancel","args":{"target":"x"}}\n',
    ),
    b'{"id":5,"verb":"command","args":{"argv":["\\ud800"],"timeout_s":5}}\n',
    b'{"id":5,"verb":"command","args":{"argv":["true"],"timeout_s":NaN}}\n',
    b'{"id":5,"verb":"command","args":{"argv":["true"],"timeout_s":1e400}}\n',
    b'{"id":5,"verb":"\\ud800"}\n',
    b'{"id":5,"verb":"line.apply","args":{}}\n',
    b'{"id":1' + b"0" * 5000 + b',"verb":"clock"}\n',
    b"x" * (1 << 20) + b"yz\n",
]


@pytest.mark.parametrize("number", range(len(JUNK)))
def test_junk_gets_an_answer_and_does_not_kill(one: Talk, number: int) -> None:
    one.send(JUNK[number])
    assert one.alive()
    status, error = one.close()
    assert status == 0
    assert "Traceback" not in error


def test_all_junk_at_once_on_the_oldest_python(bundle: Path) -> None:
    talk = Talk(PYTHONS[min(PYTHONS, key=lambda version: int(version.split(".")[1]))], bundle)
    try:
        for junk in JUNK:
            talk.send(junk)
        assert talk.alive()
        assert talk.close()[0] == 0
    finally:
        talk.drop()


def test_bytes_may_come_one_at_a_time(one: Talk) -> None:
    for byte in b'{"id":4,"verb":"clock","args":{}}\n':
        one.send(bytes([byte]))
    assert "done" in one.last(4)


def test_a_number_twice_is_refused_and_the_first_goes_on(one: Talk) -> None:
    one.send({"id": 7, "verb": "command", "args": {"argv": ["sleep", "600"], "timeout_s": 900}})
    assert one.next()["event"] == "started"
    one.send({"id": 7, "verb": "clock", "args": {}})
    refused = one.next()
    assert (refused["id"], refused["failed"]["kind"]) == (0, "bad-request")
    assert one.ask(8, "cancel", target=7)["done"] == {"found": True}
    assert one.last(7)["done"]["cancelled"]
    assert one.ask(7, "clock")["done"]


def test_what_is_no_verb_quotes_the_line(one: Talk) -> None:
    told = one.ask(3, "command.run")
    assert told["failed"]["kind"] == "bad-request"
    assert "command.run" in told["failed"]["text"]


def test_requests_run_beside_each_other(one: Talk) -> None:
    one.send({"id": 1, "verb": "command", "args": {"argv": ["sleep", "600"], "timeout_s": 900}})
    assert one.ask(2, "command", argv=["true"], timeout_s=60)["done"]["exit"] == 0
    one.send({"id": 3, "verb": "cancel", "args": {"target": 1}})
    assert one.last(1)["done"]["cancelled"]


def test_a_stray_print_of_a_child_does_not_reach_the_stream(one: Talk) -> None:
    word = one.ask(1, "command", argv=["sh", "-c", "echo stray >&1; echo stray >&2"], timeout_s=60)
    assert word["done"]["exit"] == 0
    assert one.alive()


def test_the_end_of_input_ends_its_commands(one: Talk) -> None:
    one.send({"id": 1, "verb": "command", "args": {"argv": ["sleep", "600"], "timeout_s": 900}})
    pid = one.next()["data"]["pid"]
    begin = time.monotonic()
    assert one.close()[0] == 0
    assert gone(pid)
    assert time.monotonic() - begin < 20


def test_a_command_that_heeds_no_signal_ends_with_it_too(one: Talk) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    one.send({"id": 1, "verb": "command", "args": {"argv": ["sh", "-c", script], "timeout_s": 900}})
    pid = one.next()["data"]["pid"]
    assert one.next()["data"]["text"] == "ready\n"
    assert one.close()[0] == 0
    assert gone(pid)


def test_a_cut_stdout_ends_its_commands_and_waits_for_the_end_of_input(one: Talk) -> None:
    script = "echo $$; while :; do echo flood; done"
    one.send({"id": 1, "verb": "command", "args": {"argv": ["sh", "-c", script], "timeout_s": 900}})
    pid = one.next()["data"]["pid"]
    one.stdout.close()
    until(lambda: gone(pid))
    assert one.process.poll() is None
    status, error = one.close()
    assert status == 0
    assert "Traceback" not in error


def test_killed_without_a_word_it_leaves_no_command(one: Talk) -> None:
    """Also one that heeds no signal; and what has ended by then is not looked for."""
    assert one.ask(1, "command", argv=["true"], timeout_s=60)["done"]["exit"] == 0
    for number, script in ((2, "exec sleep 600"), (3, "trap '' TERM HUP; sleep 600 & wait; sleep 600")):
        one.send({"id": number, "verb": "command", "args": {"argv": ["sh", "-c", script], "timeout_s": 900}})
    pids = [one.next()["data"]["pid"] for _ in range(2)]
    one.process.kill()
    one.process.wait()
    until(lambda: all(gone(pid) for pid in pids))


def test_killed_by_a_signal_it_leaves_nothing_that_waits(one: Talk) -> None:
    one.send({"id": 1, "verb": "command", "args": {"argv": ["cat"], "timeout_s": 900, "stdin": "x"}})
    assert one.last(1)["done"]["tail"] == "x"
    one.process.send_signal(signal.SIGTERM)
    assert one.process.wait(30) != 0


def test_the_privileged_table_runs_no_commands_and_no_workloads(bundle: Path) -> None:
    talk = Talk(sys.executable, bundle, "privileged")
    try:
        verbs = talk.ask(1, "hello")["done"]["verbs"]
        assert {"line.apply", "lease.open", "cache.purge", "revert"} <= set(verbs)
        assert not [verb for verb in verbs if verb.startswith(("command", "files", "probe"))]
        assert talk.ask(2, "command", argv=["true"], timeout_s=9)["failed"]["kind"] == "bad-request"
        assert talk.close()[0] == 0
    finally:
        talk.drop()
