"""Kinds of cache beside Apache's: what is listed and purged, and against who would lead the purge astray."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ssh_agents import (
    cache,
    cache_command,
    cache_folder,
    cache_nginx,
    cache_squid,
    cache_tree,
    protocol,
    system,
)

URL = "http://198.51.100.1:80/svn/{}"
OTHER = "http://203.0.113.9:80/somebody/elses"


def call(said: list[dict[str, Any]] | None = None) -> protocol.Call:
    stop = threading.Event()

    def say(event: str, data: dict[str, Any]) -> None:
        if said is not None:
            said.extend(data["objects"])

    return protocol.Call(say, stop.is_set, stop.wait, lambda entry: "", lambda name: None)


def listing(args: dict[str, Any]) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    cache.listed_by_user(args, call(said))
    return said


def purge(args: dict[str, Any], **asked: Any) -> dict[str, Any]:
    return cache.purged_by_user({**args, **asked}, call())


def refused(args: dict[str, Any], **asked: Any) -> protocol.Refused:
    with pytest.raises(protocol.Refused) as caught:
        purge(args, **(asked or {"all": True}))
    return caught.value


# ---- files as the real programs write them


def nginx_file(folder: Path, key: bytes, variant: bytes | None = None, body: bytes = b"abc") -> Path:
    """A file of nginx 1.22 on a 64-bit machine: struct ngx_http_file_cache_header_t, the key, the answer."""
    main = hashlib.md5(key).digest()  # noqa: S324
    name = (variant or main).hex()
    place = folder / name[-1:] / name[-3:-1]
    place.mkdir(parents=True, exist_ok=True)
    head = struct.pack("=6QIHHHB128sB128s16s4x", 5, *[9] * 5, 7, 0, 9, 9, 0, b"", 0, b"", variant or b"")
    assert len(head) == 336
    (place / name).write_bytes(head + b"\nKEY: " + key + b"\nHTTP/1.1 200 OK\r\n\r\n" + body)
    return place / name


def squid_file(folder: Path, number: int, url: bytes, vary: bytes = b"", body: bytes = b"abc") -> Path:
    """A swap file of Squid 5: a head of typed values, then the answer."""

    def value(kind: int, data: bytes) -> bytes:
        return struct.pack("=bi", kind, len(data)) + data

    values = value(3, b"k" * 16) + value(9, bytes(44)) + value(4, url + b"\0")
    values += value(8, vary) if vary else b""
    place = folder / f"{number // 256:02X}" / "00"
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{number:08X}"
    path.write_bytes(struct.pack("=bi", 3, 5 + len(values)) + values + b"HTTP/1.1 200 OK\r\n\r\n" + body)
    return path


def tree_file(folder: Path, number: int) -> Path:
    path = folder / "depot" / f"{number % 3}" / f"file,v{number}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"abc")
    return path


@dataclass
class Made:
    """A cache of ten objects, and how the agent is told of it."""

    args: dict[str, Any]
    folder: Path
    add: Callable[[int], Path]

    def files(self) -> set[Path]:
        return {path for path in self.folder.rglob("*") if path.is_file() and path.name != cache_tree.MAY}


KINDS = ("nginx-proxy-cache", "squid", "folder")


@pytest.fixture(params=["by descriptors", "by paths"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """As on POSIX, and as on Windows, which has no descriptors of folders."""
    if request.param == "by paths":
        monkeypatch.setattr(cache_folder, "by_descriptor", lambda: False)
    return str(request.param)


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    folder = tmp_path / "cache"
    folder.mkdir()
    adds: dict[str, Callable[[int], Path]] = {
        "nginx-proxy-cache": lambda n: nginx_file(folder, f"http198.51.100.1:80/svn/{n}".encode()),
        "squid": lambda n: squid_file(folder, n, f"http://198.51.100.1/svn/{n}".encode()),
        "folder": lambda n: tree_file(folder, n),
    }
    args: dict[str, Any] = {"kind": request.param, "folder": str(folder)}
    args |= {"owns": True} if request.param == "folder" else {}
    one = Made(args, folder, adds[request.param])
    if request.param == "folder":
        (folder / cache_tree.MAY).touch()  # these tests may be run by root
    for number in range(10):
        one.add(number)
    return one


@pytest.fixture
def no_squid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake of the Squid that would be asked: it has forgotten everything, so that files alone are left."""

    class Silent(cache_squid._Squid):
        def __init__(self, args: dict[str, Any]) -> None: ...
        def __exit__(self, *_: object) -> None: ...
        def purge(self, url: str, headers: Any) -> bool:
            return False

    monkeypatch.setattr(cache_squid, "_Squid", Silent)


pytestmark = pytest.mark.usefixtures("no_squid")


# ---- what all kinds have in common


def test_every_object_is_listed_and_the_asked_ones_are_purged(made: Made) -> None:
    found = sorted(one["url"] for one in listing(made.args))
    assert len(found) == 10
    said = purge(made.args, urls=[*found[:3], "http://198.51.100.1:80/never"])
    assert (said["removed"], said["already_gone"]) == (3, 1)
    assert sorted(one["url"] for one in listing(made.args)) == found[3:]
    assert len(made.files()) == 7
    assert purge(made.args, all=True)["removed"] == 7
    assert made.files() == set()


def test_files_in_sizes_add_up(made: Made) -> None:
    found = listing(made.args)
    assert sum(one["bytes"] for one in found) == sum(path.stat().st_size for path in made.files())
    assert sum(one["files"] for one in found) == 10


@pytest.mark.parametrize(
    "folder",
    ["/", "/etc", "/var", "/home", "/tmp", "/usr/local/x", "/proc/self", "relative/x", "/a\0b/c", "", "//"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_odd_roots_are_refused_by_their_place(kind: str, folder: str) -> None:
    assert refused({"kind": kind, "folder": folder, "owns": True, "port": 1}).kind == "denied"


def test_homes_links_on_the_way_files_and_missing_folders_are_refused(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(made.folder)
    assert "link" in refused({**made.args, "folder": str(tmp_path / "link")}).text
    (tmp_path / "file").touch()
    assert refused({**made.args, "folder": str(tmp_path / "file")}).kind == "denied"
    assert refused({**made.args, "folder": str(tmp_path / "absent")}).kind == "missing"
    monkeypatch.setenv("HOME", str(made.folder))
    assert "home" in refused(made.args).text
    assert len(made.files()) == 10


def test_links_inside_lead_nowhere(made: Made, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis").write_text("mine")
    kept = made.add(11)
    outside = precious / kept.name
    kept.rename(outside)
    kept.symlink_to(outside)  # an object's name, and a folder's
    inner = next(path for path in made.folder.rglob("*") if path.is_dir() and not list(path.glob("*/*")))
    (inner.parent / "zz-way").symlink_to(precious)
    error = None
    try:
        purge(made.args, all=True)
    except protocol.Refused as caught:
        error = caught.kind
    assert error in (None, "denied")
    assert (precious / "thesis").read_text() == "mine"
    assert outside.exists()


def test_a_race_that_swaps_a_folder_for_a_link_cannot_get_out(made: Made, tmp_path: Path) -> None:
    """Another process swaps a folder of the cache for a link to a treasure, as fast as it can."""
    inner = made.add(0).parent
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    kept = []
    for path in sorted(inner.iterdir()):
        (treasure / path.name).write_bytes(path.read_bytes())
        kept.append(treasure / path.name)
    # Beside the folder that is swapped.
    again = [path for path in (made.add(number * 256 + 1) for number in range(40)) if path.parent != inner]
    whole = again[0].read_bytes()
    again = (
        again[:1] if made.args["kind"] == "nginx-proxy-cache" else again
    )  # its name is that of its content
    script = (
        "import os, sys\n"
        "inner, treasure = sys.argv[1:]\n"
        "aside = os.path.dirname(treasure)\n"
        "os.symlink(treasure, aside + '/link')\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    os.rename(inner, aside + '/real')\n"
        "    os.rename(aside + '/link', inner)\n"
        "    os.rename(inner, aside + '/link')\n"
        "    os.rename(aside + '/real', inner)\n"
    )
    racer = subprocess.Popen(
        [sys.executable, "-c", script, str(inner), str(treasure)], stdout=subprocess.PIPE
    )
    assert racer.stdout is not None
    try:
        assert racer.stdout.readline() == b"ready\n"
        for number in range(150):
            try:
                again[number % len(again)].write_bytes(whole)
                purge(made.args, all=True)
            except (protocol.Refused, OSError):
                continue
        assert racer.poll() is None
    finally:
        racer.kill()
        racer.wait()
        racer.stdout.close()
    assert all(path.exists() for path in kept)
    assert kept


def test_an_object_that_comes_back_is_an_error_that_names_three(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = cache.KINDS[made.args["kind"]]

    def and_back(*args: Any) -> None:
        kind.purged(*args)
        for number in range(5):
            made.add(number)

    monkeypatch.setitem(cache.KINDS, made.args["kind"], kind._replace(purged=and_back))
    error = refused(made.args)
    assert error.kind == "touched"
    assert error.text.startswith("5 of 10 objects are in the cache still, or again, after the purge: ")
    assert error.text.count(", ") == 2 + 2


# ---- nginx


@pytest.fixture
def nginx(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "cache").mkdir()
    return {"kind": "nginx-proxy-cache", "folder": str(tmp_path / "cache")}


@pytest.mark.parametrize(
    ("key", "url"),
    [
        (b"http198.51.100.1:8080/svn/a?q=1", "http://198.51.100.1:8080/svn/a?q=1"),
        (b"http://Server.Example/svn/a", "http://server.example:80/svn/a"),
        (b"https[2001:db8::1]/x", "https://[2001:db8::1]:443/x"),
        (b"httpserver", "http://server:80/"),
        (b"httpsvn.example.com/svn/a", "http://svn.example.com:80/svn/a"),
        (b"https://vn.example.com/svn/a", "https://vn.example.com:443/svn/a"),
        (b"/svn/a", None),
        (b"http198.51.100.1:80@evil.example/x", None),
        (b"http198.51.100.1/a b", None),
        (b"http198.51.100.1/\xff", None),
        (b"", None),
    ],
)
def test_a_key_of_nginx_says_a_url_or_none(key: bytes, url: str | None) -> None:
    assert cache_nginx.url_of(key) == url


def test_variants_of_nginx_go_together_and_another_origin_stays(nginx: dict[str, Any]) -> None:
    folder = Path(nginx["folder"])
    key = b"http198.51.100.1/svn/a"
    ours = [nginx_file(folder, key), nginx_file(folder, key, variant=bytes(range(16)))]
    theirs = nginx_file(folder, b"http203.0.113.9/svn/a")
    nameless = nginx_file(folder, b"/svn/a")
    found = {one["url"]: one["files"] for one in listing(nginx)}
    assert found == {URL.format("a"): 2, "http://203.0.113.9:80/svn/a": 1}
    assert cache.listed(nginx, call())["others"] == 1
    assert purge(nginx, urls=[URL.format("a")])["removed"] == 1
    assert [path.exists() for path in [*ours, theirs, nameless]] == [False, False, True, True]
    purge(nginx, all=True)  # what names no URL is nobody's that could be asked for
    assert (theirs.exists(), nameless.exists()) == (False, True)


def test_a_key_with_a_line_end_names_nothing(nginx: dict[str, Any]) -> None:
    forged = nginx_file(Path(nginx["folder"]), b"http203.0.113.9/x\nKEY: http198.51.100.1/svn/a")
    assert refused(nginx).kind == "denied"
    assert forged.exists()


@pytest.mark.parametrize(
    "name",
    ["README", "a/bc/" + "0" * 32, "notes/thesis", "f/ff/" + "f" * 32, "0/00/" + "0" * 31 + "\n"],
)
def test_what_nginx_does_not_make_refuses_the_purge_before_anything_is_touched(
    nginx: dict[str, Any], name: str
) -> None:
    ours = nginx_file(Path(nginx["folder"]), b"http198.51.100.1/svn/a")
    path = Path(nginx["folder"]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"precious \nKEY: http198.51.100.1/svn/a\n")
    assert refused(nginx).kind == "denied"
    assert (ours.exists(), path.exists()) == (True, True)


def test_files_that_nginx_is_writing_are_passed_by(nginx: dict[str, Any]) -> None:
    ours = nginx_file(Path(nginx["folder"]), b"http198.51.100.1/svn/a")
    (ours.parent / f"{ours.name}.0000000012").write_bytes(b"half")
    (Path(nginx["folder"]) / "0000000013").write_bytes(b"half")
    assert purge(nginx, all=True)["removed"] == 1
    assert len([path for path in Path(nginx["folder"]).rglob("*") if path.is_file()]) == 2


# ---- Squid


@pytest.fixture
def squid(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "cache").mkdir()
    return {"kind": "squid", "folder": str(tmp_path / "cache"), "port": 1}


def test_variants_of_squid_go_together_and_another_origin_stays(squid: dict[str, Any]) -> None:
    folder = Path(squid["folder"])
    vary = [b"", b'accept-encoding="gzip"', b'accept-encoding="br%2C%20gzip", accept-language']
    ours = [squid_file(folder, n, b"http://198.51.100.1/svn/a", one) for n, one in enumerate(vary)]
    theirs = squid_file(folder, 9, b"http://203.0.113.9/svn/a")
    (folder / "swap.state").write_bytes(b"log")
    assert {one["url"]: one["files"] for one in listing(squid)} == {
        URL.format("a"): 3, "http://203.0.113.9:80/svn/a": 1,
    }  # fmt: skip
    assert purge(squid, urls=[URL.format("a")])["removed"] == 1
    assert [path.exists() for path in [*ours, theirs]] == [False] * 3 + [True]
    assert (folder / "swap.state").exists()


def test_a_swap_file_that_cannot_be_read_is_no_missing_object(
    squid: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    squid_file(Path(squid["folder"]), 1, b"http://198.51.100.1/svn/a")
    # As for a user who may not read it; root may read everything.
    monkeypatch.setattr(cache_folder, "head", lambda folder, name: b"")
    with pytest.raises(protocol.Refused, match="00000001 cannot be read") as caught:
        listing(squid)
    assert caught.value.kind == "denied"


def test_what_selects_a_variant_is_sent_as_the_request_had_it() -> None:
    assert cache_squid.selection(b'accept-encoding="gzip%2C%20br", accept-language\0') == (
        ("accept-encoding", "gzip, br"),
        ("accept-language", ""),
    )
    assert cache_squid.selection(b"") == ()


def test_no_program_of_squids_is_needed() -> None:
    """Field fault: `squidclient` and purge tools are gone with Squid 7. HTTP is spoken here."""
    for file in Path(cache_squid.__file__).parent.glob("*.py"):
        assert "squidclient" not in file.read_text("utf-8")
    assert not hasattr(cache_squid, "subprocess")


@pytest.mark.parametrize(
    "url",
    [
        "http://198.51.100.1:80/a b",
        "http://198.51.100.1:80/a\r\nHost: x",
        "x",
        "http://h:80",
        "http://h:80/\xff",
    ],
)
def test_what_is_no_url_is_not_sent_to_squid(squid: dict[str, Any], url: str) -> None:
    assert refused(squid, urls=[url]).kind == "bad-request"


@pytest.mark.parametrize(
    "data", [b"", b"\3", b"\3\xff\xff\xff\x7f", b"\3\x10\0\0\0\4\xff\0\0\0http", bytes(100)]
)
def test_half_written_and_broken_swap_files_are_passed_by(squid: dict[str, Any], data: bytes) -> None:
    path = squid_file(Path(squid["folder"]), 1, b"http://198.51.100.1/svn/a")
    broken = path.with_name("000000FF")
    broken.write_bytes(data)
    assert len(listing(squid)) == 1
    assert purge(squid, all=True)["removed"] == 1
    assert broken.exists()


@pytest.mark.parametrize(
    "name", ["README", "00/thesis", "00/00/notes.txt", "00/00/0000000G", "00/00/00/00000000"]
)
def test_what_squid_does_not_make_refuses_the_purge_before_anything_is_touched(
    squid: dict[str, Any], name: str
) -> None:
    ours = squid_file(Path(squid["folder"]), 1, b"http://198.51.100.1/svn/a")
    path = Path(squid["folder"]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"precious")
    assert refused(squid).kind == "denied"
    assert (ours.exists(), path.exists()) == (True, True)


def test_a_cache_that_only_squid_can_read_is_refused_by_its_name(squid: dict[str, Any]) -> None:
    (Path(squid["folder"]) / "rock").write_bytes(b"x")
    error = refused(squid)
    assert (error.kind, "type rock" in error.text) == ("unsupported", True)


# ---- any folder


def test_a_folder_that_may_not_be_purged_whole_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for owns in ({}, {"owns": False}):
        args = {"kind": "folder", "folder": str(tmp_path), **owns}
        assert refused(args).kind == "bad-request"
        with pytest.raises(protocol.Refused, match="owns"):
            listing(args)


def test_names_with_line_ends_and_bytes_that_are_no_text_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    names = [b"new\nline", b"\xff\xfe", b"\\xff\\xfe", b"plain", b" ", b"-rf"]
    for name in names:
        (folder / os.fsdecode(name)).write_bytes(name)
    (folder / cache_tree.MAY).touch()
    args = {"kind": "folder", "folder": str(folder), "owns": True}
    found = [one["url"] for one in listing(args)]
    assert len(set(found)) == len(names)
    assert purge(args, urls=["\\xff\\xfe"])["removed"] == 1
    may = os.fsencode(cache_tree.MAY)
    assert set(os.listdir(os.fsencode(folder))) == {*names, may} - {b"\xff\xfe"}
    purge(args, all=True)
    assert os.listdir(os.fsencode(folder)) == [may]
    assert cache_tree.path_of(("a", "b"), "c") == "a/b/c"


def test_what_is_no_plain_file_stays(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    (folder / "sub").mkdir(parents=True)
    os.mkfifo(folder / "pipe")
    (folder / "sub" / "link").symlink_to("/etc/passwd")
    (folder / ".branchlab-cache").touch()
    (folder / "sub" / "file").touch()
    (folder / cache_tree.MAY).touch()
    assert purge({"kind": "folder", "folder": str(folder), "owns": True}, all=True)["removed"] == 1
    assert sorted(path.name for path in folder.rglob("*")) == [
        ".branchlab-cache", cache_tree.MAY, "link", "pipe", "sub",
    ]  # fmt: skip


@pytest.mark.parametrize("uid", [0, 1000])
def test_a_folder_is_emptied_only_if_that_is_said_in_it_too(
    uid: int, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field fault: any folder, one's own documents among them, was taken for a cache because a profile said so."""
    folder = tmp_path / "Documents"
    folder.mkdir()
    (folder / "thesis").touch()
    monkeypatch.setattr(system, "user", lambda: uid)
    args = {"kind": "folder", "folder": str(folder), "owns": True}
    assert refused(args).kind == "denied"
    with pytest.raises(protocol.Refused, match=f"make a file {cache_tree.MAY}"):
        listing(args)
    (folder / cache_tree.MAY).symlink_to("thesis")
    assert refused(args).kind == "denied"
    assert (folder / "thesis").exists()
    (folder / cache_tree.MAY).unlink()
    (folder / cache_tree.MAY).touch()
    assert purge(args, all=True)["removed"] == 1


# ---- commands of one's own


@pytest.fixture
def commands(tmp_path: Path) -> dict[str, Any]:
    store = tmp_path / "store"
    store.write_text("a\nb\nc d\n$(touch x)\n")
    code = "import sys; names = {names}; s = open({store!r}).read().splitlines();"
    code += "open({store!r}, 'w').write(''.join(n + '\\n' for n in s if n not in names))"
    one = code.format(names="sys.argv[1:]", store=str(store))
    return {
        "kind": "command",
        "list": [sys.executable, "-c", f"print(open({str(store)!r}).read(), end='')"],
        "purge": [sys.executable, "-c", one, "{url}"],
    }


def test_commands_list_and_purge_one_by_one_or_by_lines(commands: dict[str, Any], tmp_path: Path) -> None:
    assert [one["key"] for one in listing(commands)] == ["a", "b", "c d", "$(touch x)"]
    assert purge(commands, urls=["c d", "$(touch x)"])["removed"] == 2
    assert [one["key"] for one in listing(commands)] == ["a", "b"]
    lines = {
        **commands,
        "purge": [
            *commands["purge"][:2],
            commands["purge"][2].replace("sys.argv[1:]", "sys.stdin.read().split()"),
        ],
    }
    assert purge(lines, all=True)["removed"] == 2
    assert listing(commands) == []
    assert purge(lines, all=True) == {"removed": 0, "bytes": 0, "already_gone": 0}
    assert not (tmp_path / "x").exists()


def test_a_command_that_does_nothing_is_found_out(commands: dict[str, Any]) -> None:
    error = refused({**commands, "purge": ["true"]})
    assert error.kind == "touched"
    assert error.text.endswith("after the purge: $(touch x), a, b")


def test_a_command_that_fails_says_why(commands: dict[str, Any]) -> None:
    error = refused({**commands, "purge": [sys.executable, "-c", "import sys; sys.exit('no such cache')"]})
    assert (error.kind, error.text) == ("failed", "exit 1: no such cache")
    assert refused({**commands, "list": ["/nowhere/no-such-program"]}).kind == "missing"
    assert refused({**commands, "list": []}).kind == "bad-request"
    assert refused({**commands, "purge": ["{url}"]}).kind == "bad-request"


@pytest.mark.parametrize("url", ["-rf", "a\nb", "a\rb"])
def test_names_that_a_command_could_mistake_are_not_handed_to_it(commands: dict[str, Any], url: str) -> None:
    assert refused(commands, urls=[url]).kind == "bad-request"


def test_lines_that_are_no_text_are_counted_and_not_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"a\n\xff\r\n\nb\r\n")
    args = {"kind": "command", "list": ["cat", str(tmp_path / "out")], "purge": ["true"]}
    assert [one["key"] for one in listing(args)] == ["a", "b"]
    assert cache_command.listed(args, call(), lambda *_: None) == 1


def test_roots_agent_runs_no_commands_and_deletes_no_files_that_anybody_could_have(
    commands: dict[str, Any], tmp_path: Path
) -> None:
    folder = {"kind": "folder", "folder": str(tmp_path), "owns": True}
    for verb in (cache.listed, cache.purged):
        for args in (commands, folder):
            with pytest.raises(protocol.Refused, match="ordinary agent only") as caught:
                verb({**args, "all": True}, call())
            assert caught.value.kind == "denied"
