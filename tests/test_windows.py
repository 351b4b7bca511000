"""What can be known of Windows hosts without Windows: agents where POSIX is hidden, and started by FAKE shells."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import sshd
from netns import ROOT
from test_agent_main import VERSIONS, Talk, gone, python_of, until
from test_cache import store
from test_cache_kinds import nginx_file, squid_file
from two_apaches import free_port

from lab import agents, ssh
from lab.errors import AgentRefused, HostLacks
from ssh_agents import apache, service_asked, system
from ssh_agents.protocol import Refused

HIDDEN = Path(__file__).with_name("fake_windows.py").read_text()
"""Put before the agent: what Windows lacks is not there, and what it has is a fake."""
TASKKILL = Path(__file__).with_name("fake_taskkill.py")
SVNADMIN = "#!/bin/sh\necho 1.14.2\n"


POSIX_ONLY = {"fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "posix", "syslog"}


@pytest.mark.parametrize("file", sorted((ROOT / "ssh_agents").glob("*.py")), ids=lambda file: file.stem)
def test_no_module_of_posix_is_imported_unguarded(file: Path) -> None:
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Import):
            assert not POSIX_ONLY & {name.name for name in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            assert statement.module not in POSIX_ONLY


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("agent") / "agent.py"
    path.write_bytes(HIDDEN.encode() + agents.bundle().source)
    return path


@pytest.fixture(autouse=True)
def fake_system(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A FAKE taskkill, alone in PATH, and a folder of programs with one tool that is in no PATH. The latter's path."""
    tools, programs = tmp_path / "System32", tmp_path / "Program Files"
    tools.mkdir()
    (tmp_path / "Temp").mkdir()
    tempfile.gettempdir()  # found once, before it is another one for the agents
    monkeypatch.setenv("TMPDIR", str(tmp_path / "Temp"))
    script = TASKKILL.read_text().replace("/usr/bin/env python3", sys.executable)
    (tools / "taskkill").write_text(script)
    (programs / "VisualSVN Server" / "bin").mkdir(parents=True)
    (programs / "VisualSVN Server" / "bin" / "svnadmin").write_text(SVNADMIN)
    for path in (tools / "taskkill", programs / "VisualSVN Server" / "bin" / "svnadmin"):
        path.chmod(0o755)
    if "shell" not in request.fixturenames:  # there, this system's sshd is started
        monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("ProgramFiles", str(programs))
    return programs


@pytest.fixture(params=VERSIONS)
def agent(request: pytest.FixtureRequest, bundle: Path) -> Iterator[Talk]:
    talk = Talk(python_of(request.param), bundle)
    yield talk
    assert talk.close()[0] == 0


@pytest.fixture(params=["3.8", f"{sys.version_info[0]}.{sys.version_info[1]}"])
def one(request: pytest.FixtureRequest, bundle: Path) -> Iterator[Talk]:
    """An agent of the oldest Python, and of this one."""
    talk = Talk(python_of(request.param), bundle)
    yield talk
    assert talk.close()[0] == 0


def test_nothing_that_only_posix_has_is_needed_to_start(agent: Talk) -> None:
    hello = agent.ask(1, "hello")["done"]
    assert hello["uid"] is None
    assert agent.ask(2, "clock")["done"]["utc"] > 1e9
    facts = agent.ask(3, "facts", tools=["git", "svn"])["done"]
    assert (facts["uid"], facts["loadavg"], facts["windows"]) == (None, None, True)
    assert not any(facts["offloads"].values())
    assert facts["cpus"] >= 1
    assert facts["memory_bytes"] > 0
    assert agent.ask(4, "packages.look", needs=["nginx", "squid"])["done"]["ours"] == []


def test_programs_are_found_below_the_folder_of_programs_too(one: Talk, fake_system: Path) -> None:
    """VisualSVN Server puts its own into no PATH."""
    assert one.ask(1, "facts", tools=["svnadmin"])["done"]["tools"] == {"svnadmin": "1.14.2"}
    assert one.ask(2, "packages.look", needs=["svnadmin"])["done"]["missing"] == []
    assert one.ask(3, "command", argv=["svnadmin"], timeout_s=60)["done"]["tail"] == "1.14.2\n"


def test_commands_run_by_subprocess(agent: Talk) -> None:
    script = (
        "import sys; print(sys.stdin.read()); sys.stdout.flush(); sys.stderr.write(' Łódź '); sys.exit(3)"
    )
    word = agent.ask(1, "command", argv=[sys.executable, "-c", script], timeout_s=60, stdin="hé\n")["done"]
    assert (word["exit"], word["signal"], word["timed_out"], word["cancelled"]) == (3, None, False, False)
    assert sorted(word["tail"].split()) == ["hé", "Łódź"]
    assert 0 < word["wall_s"] < 60
    # As the FAKE kernel32 says it: GetProcessTimes has the system's before the user's, in units of 100 ns.
    assert (word["user_s"], word["system_s"], word["peak_kib"]) == (0.1, 0.2, 5 << 10)
    missing = agent.ask(2, "command", argv=["no-such-program-here"], timeout_s=5)["failed"]
    assert missing["kind"] == "missing"
    endless = [sys.executable, "-c", "import time; time.sleep(600)"]
    word = agent.ask(3, "command", argv=endless, timeout_s=0.3)["done"]
    assert (word["timed_out"], word["exit"]) == (True, None)
    agent.send({"id": 4, "verb": "command", "args": {"argv": endless, "timeout_s": 600}})
    agent.ask(5, "cancel", target=4)
    assert agent.last(4)["done"]["cancelled"]


def test_output_in_the_code_page_of_the_system_is_readable(agent: Talk) -> None:
    """Field fault: a Chinese Windows' output in code page 936 is garbled. What is UTF-8 stays so."""
    for number, encoding in enumerate(("gbk", "utf-8"), 1):
        words = "工作副本 3 个文件".encode(encoding)
        # Cut within a sign, so that it comes in two pieces.
        pieces = [words[:3], words[3:]]
        script = f"import os, time\nfor piece in {pieces}: os.write(1, piece); time.sleep(0.2)"
        asked = {"argv": [sys.executable, "-c", script], "timeout_s": 60}
        agent.send({"id": number, "verb": "command", "args": asked})
        text = ""
        while "done" not in (message := agent.next()):
            text += message["data"].get("text", "")
        assert text == message["done"]["tail"] == "工作副本 3 个文件"
    asked["tail"] = 8  # which is within a sign
    assert agent.ask(3, "command", **asked)["done"]["tail"] == "文件"


def test_megabytes_come_whole_and_in_order(agent: Talk) -> None:
    script = "for n in range(200000): print('%09d' % n)"
    agent.send(
        {
            "id": 1,
            "verb": "command",
            "args": {"argv": [sys.executable, "-c", script], "timeout_s": 60, "tail": 20},
        }
    )
    text = ""
    while True:
        message = agent.next()
        if "done" in message:
            break
        text += message["data"].get("text", "")
    assert [int(line) for line in text.split()] == list(range(200_000))
    assert message["done"]["tail"] == "000199998\n000199999\n"[-20:]


@pytest.mark.parametrize("python", VERSIONS)
@pytest.mark.parametrize("killed", [False, True])
def test_scratch_folders_are_promised_and_taken_back_without_an_agent(
    python: str, killed: bool, bundle: Path
) -> None:
    """The watcher is started in the system's own way, and looks at locks of the system's own kind."""
    agent = Talk(python_of(python), bundle)
    assert agent.ask(1, "files.scratch", name="t")["failed"]["kind"] == "lapsed"
    assert "done" in agent.ask(2, "lease.open", lease_s=60)
    folder = Path(agent.ask(3, "files.scratch", name="t")["done"]["path"])
    assert folder.is_dir()
    assert agent.ask(4, "lease.renew")["done"]["left_s"] == 60
    assert any(one["alive"] and one["mine"] for one in agent.ask(5, "leases")["done"]["leases"])
    if killed:
        agent.process.kill()
        agent.process.wait(10)
        agent.drop()
    else:
        assert "t" in str(agent.ask(6, "lease.close")["done"]["undone"])
        assert agent.close()[0] == 0
    end = time.monotonic() + 60
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.exists()


def test_a_command_is_ended_with_all_that_it_started(one: Talk, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    inner = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    outer = f"import subprocess, sys; subprocess.call([sys.executable, '-c', {inner!r}])"
    one.send({"id": 1, "verb": "command", "args": {"argv": [sys.executable, "-c", outer], "timeout_s": 600}})
    while not (note.exists() and note.read_text()):
        time.sleep(0.01)
    one.ask(2, "cancel", target=1)
    assert one.last(1)["done"]["cancelled"]
    until(lambda: gone(int(note.read_text())))


def test_a_batch_file_is_handed_nothing_that_cmd_would_read_itself(one: Talk, tmp_path: Path) -> None:
    """cmd.exe runs it, and reads its words once more: whoever names an object could name a command in it."""
    batch = tmp_path / "purge.cmd"
    batch.write_text("#!/bin/sh\nwhile read line; do :; done\necho $#\n")
    batch.chmod(0o755)
    word = one.ask(1, "command", argv=[str(batch), "plain", "10%"], timeout_s=60)["failed"]
    assert (word["kind"], "batch file" in word["text"]) == ("bad-request", True)
    assert one.ask(2, "command", argv=[str(batch), "plain"], timeout_s=60)["done"]["tail"] == "1\n"
    listing = [sys.executable, "-c", "print('a&calc')"]
    where: dict[str, Any] = {"kind": "command", "list": listing, "purge": [str(batch), "{url}"]}
    word = one.ask(3, "cache.purge", **where, urls=["a&calc"])["failed"]
    assert (word["kind"], "standard input" in word["text"]) == ("bad-request", True)
    where["purge"] = [str(batch)]
    word = one.ask(4, "cache.purge", **where, urls=["a&calc"])["failed"]
    assert word["kind"] == "touched"  # it ran, and took nothing out


# ---- caches


@pytest.fixture
def folder() -> Iterator[Path]:
    """Below no folder that is nobody's cache."""
    path = Path(tempfile.mkdtemp(prefix="branchlab-test-"))
    yield path
    shutil.rmtree(path)


def test_a_folder_of_files_is_listed_and_purged_by_paths(one: Talk, folder: Path) -> None:
    """Only by who logs in, only where the folder says so, and never through a link."""
    cache, theirs = folder / "cache", folder / "theirs"
    (cache / "1f" / "a").mkdir(parents=True)
    theirs.mkdir()
    for path in (cache / "1f" / "a" / "one", cache / "two", theirs / "three"):
        path.write_bytes(b"123")
    (cache / "out").symlink_to(theirs)
    where = {"kind": "folder", "folder": str(cache), "owns": True}
    refused = one.ask(1, "cache.list", **where)["failed"]
    assert (refused["kind"], ".branchlab-may-purge" in refused["text"]) == ("denied", True)
    (cache / ".branchlab-may-purge").touch()
    assert one.ask(2, "cache.list", **where)["done"]["objects"] == 2
    assert one.ask(3, "cache.purge", **where, urls=["two", "out/three"])["done"]["removed"] == 1
    assert one.ask(4, "cache.purge", **where, all=True)["done"]["removed"] == 1
    assert one.ask(5, "cache.list", **where)["done"]["objects"] == 0
    assert (theirs / "three").exists()
    assert (cache / ".branchlab-may-purge").exists()


@pytest.mark.parametrize("kind", ["apache-disk", "nginx-proxy-cache"])
def test_a_proxys_cache_is_listed_and_purged_by_paths(one: Talk, folder: Path, kind: str) -> None:
    urls = [f"http://198.51.100.1:80/svn/{number}" for number in range(3)]
    for number, url in enumerate(urls):
        if kind == "apache-disk":
            store(folder, f"Ab{number:02d}cdefgh", url)
        else:
            nginx_file(folder, url.replace("://", "", 1).encode())
    where = {"kind": kind, "folder": str(folder)}
    assert one.ask(1, "cache.list", **where)["done"]["objects"] == 3
    assert one.ask(2, "cache.purge", **where, urls=urls[:1])["done"]["removed"] == 1
    assert one.ask(3, "cache.list", **where)["done"]["objects"] == 2
    (folder / "theirs.txt").write_text("mine")
    word = one.ask(4, "cache.purge", **where, urls=urls[1:])["failed"]
    assert (word["kind"], "theirs.txt" in word["text"]) == ("denied", True)
    (folder / "theirs.txt").unlink()
    assert one.ask(5, "cache.list", **where)["done"]["objects"] == 2


def test_squid_is_asked_to_purge_by_http(one: Talk, folder: Path) -> None:
    """By a FAKE Squid that answers PURGE and deletes the file."""
    url = "http://198.51.100.1:80/svn/1"
    path = squid_file(folder, 1, b"http://198.51.100.1/svn/1")
    squid_file(folder, 2, b"http://198.51.100.1/svn/2")
    asked: list[str] = []

    class FakeSquid(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PURGE(self) -> None:
            asked.append(self.path)
            there = path.exists() and self.path.endswith("/1")
            path.unlink(missing_ok=True)
            self.send_response(200 if there else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), FakeSquid) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = {"kind": "squid", "folder": str(folder), "port": server.server_address[1]}
        assert one.ask(1, "cache.purge", **where, urls=[url])["done"]["removed"] == 1
        assert one.ask(2, "cache.list", **where)["done"]["objects"] == 1
        server.shutdown()
    assert set(asked) == {url}


def test_commands_of_ones_own_open_no_console_window(one: Talk, folder: Path) -> None:
    script = folder / "list.py"
    script.write_text("print('one'); print('two')")
    where = {"kind": "command", "list": [sys.executable, str(script)], "purge": [sys.executable, "-c", ""]}
    assert one.ask(1, "cache.list", **where)["done"]["objects"] == 2


@pytest.mark.parametrize("python", VERSIONS)
def test_what_is_linuxs_own_answers_that_it_is_not_on_this_system(python: str, bundle: Path) -> None:
    root = Talk(python_of(python), bundle, "privileged")
    for number, verb in enumerate(
        (
            "line.check",
            "line.apply",
            "line.read",
            "line.lift",
            "traffic.start",
            "traffic.read",
            "traffic.stream",
        ),
        1,
    ):
        failed = root.ask(number, verb)["failed"]
        assert failed["kind"] == "unsupported"
        assert "not on this system" in failed["text"]
    requests: list[tuple[str, dict[str, Any]]] = [
        ("cache.list", {"kind": "apache-disk", "folder": "/var/cache/branchlab-none/cache"}),
        ("footprint", {}),
    ]
    for number, (verb, args) in enumerate(requests, 100):
        word = root.ask(number, verb, **args)
        # Done, or refused in words; nothing may fall over for want of POSIX.
        assert "done" in word or word["failed"]["kind"] not in ("defect",), (verb, word)
    assert root.close()[0] == 0


def test_what_a_process_used_and_when_it_began_is_asked_of_windows_only_there() -> None:
    assert system.started_at(1) is not None
    assert system.quiet_flags() == 0
    assert system.memory_bytes() is None
    assert system.program_folders() == []
    assert not system.by_cmd("purge.cmd")
    assert system.apart() == {"start_new_session": True, "cwd": "/"}


# ---- services


ORIGIN = b"what the origin has" * 100


class FakeOrigin(BaseHTTPRequestHandler):
    """A FAKE server whose answers may be stored."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(ORIGIN)))
        self.send_header("Cache-Control", "max-age=3600")
        self.end_headers()
        self.wfile.write(ORIGIN)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def origin() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeOrigin) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture
def httpd(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A FAKE httpd.exe with the modules of this system's Apache, in a folder of programs that anybody may enter.

    For as nobody it runs where root runs the tests; `folder` is opened too.
    """
    there = [path for path in map(Path, apache.MODULE_FOLDERS) if path.is_dir()]
    if not there or not any(os.access(f"/usr/sbin/{name}", os.X_OK) for name in apache.PROGRAMS):
        pytest.skip("no Apache here")
    folder.chmod(0o755)
    monkeypatch.setenv("ProgramFiles", str(folder / "Program Files"))
    program = folder / "Program Files" / "Apache24" / "bin" / "httpd.exe"
    program.parent.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("fake_httpd.sh"), program)
    program.chmod(0o755)
    (program.parent.parent / "modules").symlink_to(there[0])
    return program


def asked(below: Path, origin: int, **options: Any) -> dict[str, Any]:
    more = {
        "allow": ["127.0.0.1"],
        "origins": ["127.0.0.1"],
        "origin_ports": [origin],
        "listen": ["127.0.0.1"],
    }
    port = free_port("127.0.0.1")
    folder = str(below / "lab" / "caching-proxy")
    return {"kind": "caching-proxy", "folder": folder, "port": port, "options": {**more, **options}}


def fetched(port: int, url: str) -> bytes:
    way = urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{port}"})
    with urllib.request.build_opener(way).open(url, timeout=60) as answer:
        found: bytes = answer.read()
    return found


@pytest.mark.lab
@pytest.mark.parametrize("end", ["stop", "killed"])
@pytest.mark.parametrize("version", ["3.8", f"{sys.version_info[0]}.{sys.version_info[1]}"])
def test_apache_is_started_as_a_proxy_and_ended_whatever_becomes_of_the_agent(
    version: str, end: str, bundle: Path, folder: Path, httpd: Path, origin: int
) -> None:
    agent = Talk(python_of(version), bundle, "privileged")
    assert "done" in agent.ask(1, "lease.open", lease_s=60)
    args = asked(folder, origin)
    word = agent.ask(2, "service.start", **args)
    assert "done" in word, word
    assert word["done"]["port"] == args["port"], word
    url = f"http://127.0.0.1:{origin}/svn/1"
    assert [fetched(args["port"], url) for _ in range(2)] == [ORIGIN, ORIGIN]
    cache = {"kind": "apache-disk", "folder": args["folder"] + "/cache"}
    agent.send({"id": 3, "verb": "cache.list", "args": cache})
    assert agent.next()["data"]["objects"][0]["url"] == url + "?"
    assert agent.last(3)["done"]["objects"] == 1
    where = {"kind": "caching-proxy", "folder": args["folder"]}
    log = agent.ask(4, "service.log", **where)["done"]
    assert (log["hits"], log["misses"]) == (1, 1)
    assert agent.ask(5, "service.start", **args)["failed"]["kind"] == "busy"
    pid = int(word["done"]["pid"])
    if end == "stop":
        assert agent.ask(6, "service.stop", **where)["done"]["stopped"] == 1
        assert agent.ask(7, "service.stop", **where)["done"]["stopped"] == 0
        assert agent.ask(8, "lease.close")["done"]["undone"] == []
        assert agent.close()[0] == 0
    else:
        agent.process.kill()
        agent.process.wait(10)
        agent.drop()
    until(lambda: gone(pid) and not (folder / "lab").exists())
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", args["port"]))


@pytest.mark.lab
def test_a_cache_beside_its_proxy_is_emptied_and_used_again(
    bundle: Path, folder: Path, httpd: Path, origin: int
) -> None:
    agent = Talk(sys.executable, bundle, "privileged")
    agent.ask(1, "lease.open", lease_s=60)
    place = folder / "kept" / "cache"
    for number in (10, 20):
        args = asked(folder, origin, cache=str(place))  # another port: here the first one rests for a while
        where = {"kind": "caching-proxy", "folder": args["folder"]}
        word = agent.ask(number, "service.start", **args)
        assert "done" in word, word
        assert fetched(args["port"], f"http://127.0.0.1:{origin}/svn/1") == ORIGIN
        cache = {"kind": "apache-disk", "folder": str(place)}
        assert agent.ask(number + 1, "cache.list", **cache)["done"]["objects"] == 1
        assert agent.ask(number + 2, "service.stop", **where)["done"]["stopped"] == 1
        assert [path.name for path in place.iterdir()] == [".branchlab-cache"]
    assert not (folder / "lab").exists()
    assert agent.close()[0] == 0


@pytest.mark.lab
def test_an_apache_that_does_not_start_leaves_nothing(
    bundle: Path, folder: Path, httpd: Path, origin: int
) -> None:
    httpd.write_text("#!/bin/sh\necho 'Syntax error: this is a fake' >&2\nexit 1\n")
    agent = Talk(sys.executable, bundle, "privileged")
    agent.ask(1, "lease.open", lease_s=60)
    word = agent.ask(2, "service.start", **asked(folder, origin))["failed"]
    assert (word["kind"], "this is a fake" in word["text"]) == ("failed", True)
    assert not (folder / "lab").exists()
    assert agent.close()[0] == 0


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("svn-server", {"repository": "/tmp/none/repository", "allow": ["127.0.0.1"]}, "Name the repository"),
        ("caching-proxy", {"engine": "squid"}, "use the squid that is there as it is"),
        ("caching-proxy", {"engine": "nginx"}, "use the nginx that is there as it is"),
        ("caching-proxy", {}, "put its bin folder, with httpd.exe, into the PATH"),
    ],
)
def test_what_cannot_be_started_there_says_what_to_do_before_anything_is_touched(
    kind: str, options: dict[str, Any], words: str, bundle: Path, folder: Path
) -> None:
    args = asked(folder, 80, **options)
    args["options"] = options if kind == "svn-server" else args["options"]
    agent = Talk(sys.executable, bundle, "privileged")
    agent.ask(1, "lease.open", lease_s=60)
    word = agent.ask(2, "service.start", **{**args, "kind": kind})["failed"]
    assert word["kind"] in ("unsupported", "missing")
    assert words.lower() in word["text"].lower()
    assert agent.ask(3, "lease.close")["done"]["undone"] == []
    assert list(folder.iterdir()) == []
    assert agent.close()[0] == 0


def test_who_has_a_port_is_found_by_trying(one: Talk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        word = one.ask(1, "service.port", port=port, listen=["127.0.0.1"])["done"]
        assert word["taken"] == ["127.0.0.1"]
    assert one.ask(2, "service.port", port=port, listen=["127.0.0.1"])["done"]["taken"] == []


def test_a_place_for_a_service_on_windows_is_a_folder_on_a_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_asked.os, "sep", "\\")
    place = service_asked.absolute({"folder": "D:\\Lab/caching-proxy"}, "folder")
    assert place == "D:/Lab/caching-proxy"
    for path in ("D:/", "C:\\Windows\\x", "lab", "\\\\server\\share\\x", "D:\\a'b\\c", "D:\\100%\\c"):
        with pytest.raises(Refused):
            service_asked.absolute({"folder": path}, "folder")


# ---- shells


ECHO = "import json, sys; print(json.dumps(sys.argv[1:]))"
ODD = ["$env:TFSPROXY", '{"a": "b"}', "%PATH%", "a & b | c > d", "`whoami`", "'", "C:\\x y\\", "é"]
"""Field faults: cmd.exe strips double quotes, PowerShell expands `$...`: words reach a command as they are."""


@pytest.mark.lab
@pytest.mark.parametrize("shell", ["cmd", "powershell"])
@pytest.mark.parametrize("python", ["python", "py"])
def test_agents_start_under_a_fake_of_windows_shells(tmp_path: Path, shell: str, python: str) -> None:
    fake = Path(__file__).with_name("fake_windows_shell.py")
    force = f'exec {shlex.quote(sys.executable)} {fake} {shell} {python} "$SSH_ORIGINAL_COMMAND"'
    with (
        sshd.listening(sshd.made(tmp_path / "s", f"ForceCommand {force}")) as server,
        ssh.connect(server.host()) as connection,
    ):
        for privileged in (False, False, True):  # the second time it is kept already
            with agents.started(connection, privileged=privileged, root="direct") as agent:
                assert agent.ask("clock")["utc"] > 1e9
                assert agent.hello["privileged"] is privileged
                if not privileged:
                    asked = {"argv": [sys.executable, "-c", ECHO, *ODD], "timeout_s": 60}
                    assert json.loads(agent.ask("command", asked)["tail"]) == ODD
        with pytest.raises(AgentRefused, match="unknown verb"):
            agents.started(connection).ask("nonsense")


@pytest.mark.lab
@pytest.mark.parametrize("shell", ["cmd", "powershell"])
def test_a_windows_without_python_is_told_so(tmp_path: Path, shell: str) -> None:
    fake = Path(__file__).with_name("fake_windows_shell.py")
    force = f'exec {shlex.quote(sys.executable)} {fake} {shell} none "$SSH_ORIGINAL_COMMAND"'
    with (
        sshd.listening(sshd.made(tmp_path / "s", f"ForceCommand {force}")) as server,
        ssh.connect(server.host()) as connection,
        pytest.raises(HostLacks, match="needs python3") as caught,
    ):
        agents.started(connection)
    assert "Windows" in caught.value.advice
    assert "py -3" in caught.value.tried
