"""The cache verbs against a real Apache, against htcacheclean, and against who would lead them astray."""

from __future__ import annotations

import contextlib
import http.server
import os
import pwd
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ssh_agents import cache, cache_folder, cache_tree, protocol

MODULES = "mpm_event authz_core proxy proxy_http cache cache_disk"
MODULE_FOLDERS = ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules")


class Heard:
    """A call that remembers what was said."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.stop = threading.Event()
        self.call = protocol.Call(
            say=lambda event, data: self.said.append((event, data)),
            cancelled=self.stop.is_set,
            wait_cancelled=self.stop.wait,
            promise=lambda entry: "",
            keep=lambda name: None,
        )


def listing(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    heard = Heard()
    last = cache.listed({"kind": "apache-disk", "folder": str(folder)}, heard.call)
    return [item for _, data in heard.said for item in data["objects"]], last


def purge(folder: Path | str, **args: Any) -> dict[str, Any]:
    verb = cache.purged_by_user if "all" in args else cache.purged
    return verb({"kind": "apache-disk", "folder": str(folder), **args}, Heard().call)


class Origin(http.server.BaseHTTPRequestHandler):
    """A small web server: /plain/... and, with Vary, /varied/...; counts its requests."""

    asked: list[str] = []  # noqa: RUF012
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        Origin.asked.append(self.path)
        body = (self.path * 200).encode() + self.headers.get("Accept-Encoding", "").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=6000")
        if self.path.startswith("/varied"):
            self.send_header("Vary", "Accept-Encoding")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def origin() -> Iterator[int]:
    Origin.asked.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def proxy(tmp_path: Path, origin: int) -> Iterator[tuple[int, Path]]:
    """A real Apache as caching forward proxy: its port and its cache's folder."""
    program = shutil.which("apache2", path="/usr/sbin:/usr/bin") or shutil.which(
        "httpd", path="/usr/sbin:/usr/bin"
    )
    modules = next((Path(folder) for folder in MODULE_FOLDERS if Path(folder).is_dir()), None)
    if program is None or modules is None:
        pytest.skip("no Apache here")
    port, folder = free_port(), tmp_path / "cache"
    folder.mkdir()
    tmp_path.chmod(0o755)
    lines = [f"LoadModule {name}_module {modules}/mod_{name}.so" for name in MODULES.split()]
    lines += [
        f"ServerRoot {tmp_path}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {tmp_path}/pid",
        f"ErrorLog {tmp_path}/error.log\nDefaultRuntimeDir {tmp_path}\nProxyRequests On",
        f"CacheRoot {folder}\nCacheEnable disk http://*:{origin}/\nCacheLock off\nCacheQuickHandler on",
    ]
    if os.getuid() == 0:
        shutil.chown(folder, "nobody")
        lines.append("User nobody\nGroup nogroup")
        for above in (tmp_path, *tmp_path.parents[:3]):
            if above != Path("/tmp"):  # so that nobody can reach the folder
                above.chmod(above.stat().st_mode | 0o011)
    config = tmp_path / "httpd.conf"
    config.write_text("\n".join(lines) + "\n")
    server = subprocess.Popen([program, "-DFOREGROUND", "-f", str(config)])
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, (tmp_path / "error.log").read_text()
            time.sleep(0.02)
        yield port, folder
    finally:
        server.terminate()
        server.wait(30)


def fetch(port: int, url: str, encoding: str = "identity") -> bytes:
    """One GET through the proxy, on a connection of its own."""
    host = url.split("/")[2]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
        fields = [f"Host: {host}", f"Accept-Encoding: {encoding}", "Connection: close", "", ""]
        link.sendall("\r\n".join([f"GET {url} HTTP/1.1", *fields]).encode())
        answer = b"".join(iter(lambda: link.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200"), answer[:300]
    return answer


def filled(port: int, origin: int, folder: Path) -> list[str]:
    """Ten plain objects, one with a query, three in two variants each; waits until they are stored."""
    urls = [f"http://127.0.0.1:{origin}/plain/{number}" for number in range(10)]
    urls.append(f"http://127.0.0.1:{origin}/plain/search?q=a%20b&c")
    varied = [f"http://127.0.0.1:{origin}/varied/{number}" for number in range(3)]
    for url in urls:
        fetch(port, url)
    for url in varied:
        fetch(port, url, "gzip")
        fetch(port, url, "identity")
    end = time.monotonic() + 20
    while len(list(folder.rglob("*.data"))) < 17 and time.monotonic() < end:
        time.sleep(0.02)
    return urls + varied


@pytest.mark.lab
def test_what_a_real_apache_stored_is_listed_as_htcacheclean_lists_it(
    proxy: tuple[int, Path], origin: int
) -> None:
    port, folder = proxy
    filled(port, origin, folder)
    objects, last = listing(folder)
    told = subprocess.run(
        ["htcacheclean", "-a", "-p", str(folder)], capture_output=True, text=True, check=True
    )
    urls = [item["url"] for item in objects]
    # It names a URL once for each of its variants; to us an object is one URL.
    assert sorted(urls) == sorted(set(told.stdout.split()))
    assert len(told.stdout.split()) == 17
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert last == {"objects": 14, "bytes": sum(path.stat().st_size for path in files), "others": 0}
    assert sum(item["files"] for item in objects) == len(files)
    keys = {item["key"] for item in objects}
    assert {"/plain/3", "/varied/1", "/plain/search?q=a%20b&c"} <= keys
    by_key = {item["key"]: item for item in objects}
    assert by_key["/plain/3"]["files"] == 2
    assert by_key["/varied/1"]["files"] == 5  # one that names the variants, and two pairs


@pytest.mark.lab
def test_purged_objects_are_fetched_again_and_the_others_are_not(
    proxy: tuple[int, Path], origin: int
) -> None:
    port, folder = proxy
    urls = filled(port, origin, folder)
    Origin.asked.clear()
    for url in urls:
        fetch(port, url)
    assert Origin.asked == []
    gone = [item["url"] for item in listing(folder)[0] if item["key"] in ("/plain/2", "/varied/0")]
    said = purge(folder, urls=[*gone, "http://nowhere:80/x?"])
    assert (said["removed"], said["already_gone"]) == (2, 1)
    assert said["bytes"] > 2 * 1000
    assert purge(folder, urls=gone) == {"removed": 0, "bytes": 0, "already_gone": 2}
    assert len(listing(folder)[0]) == 12
    for url in urls:
        fetch(port, url)
    assert Origin.asked == ["/plain/2", "/varied/0"]
    end = time.monotonic() + 20
    while len(listing(folder)[0]) < 14 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(listing(folder)[0]) == 14


@pytest.mark.lab
def test_all_leaves_no_file_and_a_cache_that_works(proxy: tuple[int, Path], origin: int) -> None:
    port, folder = proxy
    urls = filled(port, origin, folder)
    assert purge(folder, all=True)["removed"] == 14
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert listing(folder) == ([], {"objects": 0, "bytes": 0, "others": 0})
    Origin.asked.clear()
    fetch(port, urls[0])
    assert Origin.asked == ["/plain/0"]
    told = subprocess.run(
        ["htcacheclean", "-a", "-p", str(folder)], capture_output=True, text=True, check=True
    )
    end = time.monotonic() + 20
    while not listing(folder)[0] and time.monotonic() < end:
        time.sleep(0.02)
    assert told.returncode == 0
    assert [item["key"] for item in listing(folder)[0]] == ["/plain/0"]


def header(url: bytes) -> bytes:
    """A `.header` file as Apache 2.4 writes it on a 64-bit machine."""
    return (
        struct.pack("@IiNN", 6, 200, len(url), 1)
        + bytes(96)
        + url
        + b"Content-Length: 3\r\n\r\nHost: x\r\n\r\n"
    )


def store(folder: Path, name: str, url: str) -> Path:
    place = folder / name[:2] / name[2:4]
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name[4:]}.header").write_bytes(header(url.encode()))
    (place / f"{name[4:]}.data").write_bytes(b"abc")
    return place / f"{name[4:]}.header"


@pytest.fixture(params=["by descriptors", "by paths"])
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "by paths":  # as on Windows
        monkeypatch.setattr(cache_folder, "by_descriptor", lambda: False)
    folder = tmp_path / "cache"
    folder.mkdir()
    for number in range(30):
        store(folder, f"Ab{number:02d}cdefgh_@{number}", f"http://server.example:8080/file/{number}?")
    return folder


def test_a_made_cache_is_listed(made: Path) -> None:
    objects, last = listing(made)
    assert last["objects"] == 30
    assert sorted(item["key"] for item in objects)[:2] == ["/file/0", "/file/1"]
    assert objects[0]["bytes"] == (made / "Ab/00/cdefgh_@0.header").stat().st_size + 3


def test_listing_comes_in_portions(tmp_path: Path) -> None:
    for number in range(1101):
        store(tmp_path, f"{number % 97:02d}{number:08d}", f"http://s:80/{number}?")
    heard = Heard()
    cache.listed({"kind": "apache-disk", "folder": str(tmp_path)}, heard.call)
    assert [len(data["objects"]) for _, data in heard.said] == [500, 500, 101]


def test_what_is_taken_out_is_told_for_the_journal_and_the_account(made: Path) -> None:
    """Field fault: of all that a run changed, only the objects that it purged were in no account."""
    told: list[str] = []
    heard = Heard()
    heard.call.tell = told.append
    urls = [one["url"] for one in listing(made)[0]][:1]
    asked = {"kind": "apache-disk", "folder": str(made), "origin": "http://o:80/svn/"}
    removed = cache.purged({**asked, "urls": urls}, heard.call)
    text = f"1 objects ({removed['bytes']} bytes) of http://o:80/svn/ taken out of the cache {made}"
    assert (removed["removed"], told) == (1, [text])
    assert removed["bytes"] > 0
    cache.purged({**asked, "urls": urls}, heard.call)
    assert len(told) == 1  # nothing was there any more


def test_root_takes_out_only_what_was_named_and_nobody_a_file_without_a_header(made: Path) -> None:
    books = made.parent / "books"
    (books / "y2026").mkdir(parents=True)
    for name in ("ledger.data", "y2026/accounts.data"):
        (books / name).write_text("precious")
    for folder in (books, made):
        with pytest.raises(protocol.Refused, match="only objects that are named"):
            cache.purged({"kind": "apache-disk", "folder": str(folder), "all": True}, Heard().call)
    assert len(listing(made)[0]) == 30
    assert purge(books, all=True)["removed"] == 0
    assert purge(books, urls=["http://s:80/y2026/accounts?"])["already_gone"] == 1
    assert sorted(path.name for path in books.rglob("*.data")) == ["accounts.data", "ledger.data"]


def test_half_written_and_broken_files_are_passed_over(made: Path) -> None:
    (made / "aptmpAB12cd").write_bytes(b"half")
    place = made / "zz" / "zz"
    place.mkdir(parents=True)
    (place / "short.header").write_bytes(b"\6\0")
    (place / "empty.header").write_bytes(b"")
    (place / "long.header").write_bytes(struct.pack("@IiNN", 6, 200, 1 << 40, 1) + b"http://x:80/")
    (place / "cut.header").write_bytes(header(b"http://x:80/abc?")[:125])
    (place / "old.header").write_bytes(struct.pack("@I", 3) + bytes(200))
    (place / "lonely.header").write_bytes(struct.pack("@I", 5) + bytes(8) + b"Accept-Encoding\r\n\r\n")
    assert len(listing(made)[0]) == 30
    assert purge(made, all=True)["removed"] == 30
    assert (made / "aptmpAB12cd").exists()


def test_objects_may_vanish_and_appear_while_listing(made: Path) -> None:
    over = threading.Event()

    def churn() -> None:
        number = 0
        while not over.is_set():
            shutil.rmtree(made / "Ab" / f"{number % 30:02d}", ignore_errors=True)
            store(made, f"Xy{number % 50:02d}new{number}", f"http://s:80/new/{number}?")
            shutil.rmtree(made / "Xy" / f"{(number + 25) % 50:02d}", ignore_errors=True)
            number += 1

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(60):
            listing(made)
        # By paths a folder that was made anew meanwhile cannot be told from one that was exchanged.
        with contextlib.suppress(protocol.Refused):
            purge(made, all=True)
    finally:
        over.set()
        thread.join()


def refused(folder: Path | str, **args: Any) -> protocol.Refused:
    with pytest.raises(protocol.Refused) as caught:
        purge(folder, **(args or {"all": True}))
    return caught.value


@pytest.mark.parametrize(
    "folder",
    [
        *(
            "/",
            "/etc",
            "/etc/apache2",
            "/var",
            "/var/cache",
            "/tmp",
            "/home",
            "/root",
            "/usr/local/x",
            "/opt",
        ),
        *("/proc/self", "/dev/shm", "/nonsense", "relative/x", "/var/cache/../cache/x", "/var//cache", "//"),
        *("/a\0b/c", "/run/user", ""),
    ],
)
def test_odd_roots_are_refused_by_their_place(folder: str) -> None:
    assert refused(folder).kind == "denied"


@pytest.mark.parametrize(
    "folder",
    [
        *("/home/of-ldap", "/home/x/.ssh", "/home/x/.ssh/keys", "/root/x/.ssh", "/srv/.gnupg/x"),
        *(
            "/var/lib/dpkg",
            "/var/lib/apt/lists",
            "/var/spool/cron",
            "/var/spool/cron/crontabs",
            "/var/log/svn",
        ),
        *("/var/backups/x", "/var/lib/postgresql/15"),
    ],
)
def test_homes_keys_and_what_a_system_keeps_are_refused_by_their_place(folder: str) -> None:
    """Field fault: homes that are in no passwd, keys and a packager's own records were taken for caches."""
    assert refused(folder).kind == "denied"
    assert "is not taken for a cache" in refused(folder).text


def test_caches_have_their_usual_places() -> None:
    for folder in (
        "/var/cache/apache2/mod_cache_disk",
        "/var/spool/squid",
        "/var/lib/nginx/cache",
        "/home/p4/cache",
    ):
        cache_folder.guard(folder)


def test_a_home_is_known_by_what_is_in_it(made: Path) -> None:
    (made / ".bashrc").touch()
    assert ".bashrc is in it, so it is a home folder" in refused(made).text


def test_homes_and_what_holds_them_are_refused(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(made))
    assert "home" in refused(made).text
    monkeypatch.setenv("HOME", str(made / "Ab"))
    assert "home" in refused(made).text
    monkeypatch.setenv("HOME", str(made.parent))
    assert purge(made, all=True)["removed"] == 30


def test_the_home_of_an_account_that_nobody_logs_in_to_may_be_a_cache(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def account(uid: int, shell: str) -> None:
        entry = pwd.struct_passwd(("squid", "x", uid, 23, "", str(made), shell))
        monkeypatch.setattr(pwd, "getpwall", lambda: [entry])

    for uid, shell in (
        (23, "/bin/bash"),
        (1000, "/sbin/nologin"),
        (0, "/sbin/nologin"),
        (65534, "/bin/false"),
    ):
        account(uid, shell)
        assert "home" in refused(made).text
    account(23, "/sbin/nologin")
    assert purge(made, all=True)["removed"] == 30


def test_a_missing_folder_a_file_and_a_link_on_the_way(made: Path, tmp_path: Path) -> None:
    assert refused(tmp_path / "absent").kind == "missing"
    (tmp_path / "file").write_text("")
    assert refused(tmp_path / "file").kind == "denied"
    (tmp_path / "link").symlink_to(made)
    assert "link" in refused(tmp_path / "link").text
    (tmp_path / "up").symlink_to(tmp_path)
    assert "link" in refused(tmp_path / "up" / "cache").text
    assert len(listing(made)[0]) == 30


def test_the_root_of_a_mount_is_refused() -> None:
    text = "36 35 98:0 / /mnt/my\\040cache rw - ext4 /dev/sda1 rw\n37 36 0:5 / /proc rw - proc proc rw\n"
    assert cache_folder.mount_points(text) == {"/mnt/my cache", "/proc"}


BOUND = """
import sys
from pathlib import Path
from ssh_agents import cache, cache_folder, cache_tree, protocol
kind, folder, unseen = sys.argv[1:]
if unseen:  # as if it were mounted once the walk has begun
    cache_folder.mount_points = lambda text: set()
call = protocol.Call(lambda *_: None, lambda: False, lambda s: False, lambda entry: "", lambda name: None)
try:
    print(cache.purged_by_user({"kind": kind, "folder": folder, "owns": True, "all": True}, call))
except protocol.Refused as error:
    print(error.kind, error.text)
"""


@pytest.mark.lab
@pytest.mark.parametrize("unseen", ["", "unseen"])
@pytest.mark.parametrize("kind", ["folder", "apache-disk", "nginx-proxy-cache"])
def test_a_bind_mount_of_the_same_file_system_is_not_entered(tmp_path: Path, kind: str, unseen: str) -> None:
    """Field fault: by the file system alone it cannot be told, and a precious file was deleted."""
    folder, precious = tmp_path / "cache", tmp_path / "precious"
    (folder / "ab").mkdir(parents=True)
    (folder / cache_tree.MAY).touch()
    precious.mkdir()
    files = {"folder": "a.txt", "apache-disk": "ab.header", "nginx-proxy-cache": "0123456789.0000000001"}
    (precious / files[kind]).write_text("precious")
    bind = 'mount --bind "$1" "$2/ab" && shift && exec "$PYTHON" -c "$CODE" "$2" "$1" "$3"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", bind, "sh", str(precious), str(folder), kind, unseen],
        cwd=Path(__file__).parents[1], env={**os.environ, "CODE": BOUND, "PYTHON": sys.executable},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (precious / files[kind]).read_text() == "precious", done.stdout + done.stderr
    if not unseen:
        assert done.stdout.startswith("denied"), done.stdout + done.stderr
        assert f"something else is mounted in it, at {folder}/ab" in done.stdout
    else:
        assert done.stderr == ""


@pytest.mark.parametrize(
    "name", ["README.txt", "Ab/notes", "Ab/00/svn-base.db", "Ab/00/a b.header", "Ab/.hidden", "x.y.data"]
)
def test_what_no_cache_makes_refuses_the_whole_purge_before_anything_is_touched(
    made: Path, name: str
) -> None:
    path = made / name
    path.write_text("precious") if "." in name else (
        path.mkdir(),
        (path / "thesis.tex").write_text("precious"),
    )
    before = sorted(made.rglob("*"))
    assert refused(made).kind == "denied"
    assert refused(made, urls=["http://server.example:8080/file/1?"]).kind == "denied"
    assert sorted(made.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="anybody else deletes only what is his already")
@pytest.mark.parametrize("beside", ["payroll.data", "payroll.header.vary/x.data", "payroll.header.vary"])
def test_root_deletes_nothing_that_is_of_another_than_the_header_beside_it(made: Path, beside: str) -> None:
    """In a folder that all may write to, somebody lays a header beside what only its owner could delete."""
    url = "http://server.example:8080/payroll?"
    (made / "payroll.header").write_bytes(header(url.encode()))
    path = made / beside
    path.parent.mkdir(exist_ok=True)
    path.mkdir() if beside.endswith(".vary") else path.write_text("precious")
    variants = beside.count("/") == 1
    if variants:  # the header names no URL then; that of a variant does
        (made / "payroll.header").write_bytes(struct.pack("@I", 5) + bytes(40))
        (path.parent / "x.header").write_bytes(header(url.encode()))
    for theirs in ("payroll.header", *(("payroll.header.vary", "payroll.header.vary/x.header") * variants)):
        os.chown(made / theirs, 65534, 65534)
    before = sorted(made.rglob("*"))
    word = refused(made, urls=[url])
    assert (word.kind, "one owner" in word.text) == ("denied", True)
    assert sorted(made.rglob("*")) == before
    os.chown(path, 65534, 65534)
    assert purge(made, urls=[url])["removed"] == 1


def test_names_with_newlines_and_bytes_that_are_no_text_are_refused(made: Path) -> None:
    for name in (b"new\nline", b"\xff\xfe.data"):
        path = made / os.fsdecode(name)
        path.write_text("x")
        assert refused(made).kind == "denied"
        path.unlink()


def test_links_inside_lead_nowhere(made: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    kept = store(outside, "AAAAprecious", "http://server.example:8080/precious?")
    (made / "Ln").symlink_to(outside)
    assert refused(made).kind == "denied"
    (made / "Ln").unlink()
    (made / "Ab" / "00" / "linked.header").symlink_to(kept)
    (made / "Ab" / "00" / "linked.data").symlink_to(kept.with_suffix(".data"))
    (made / "Ab" / "00" / "way.header").write_bytes(
        struct.pack("@I", 5) + bytes(8) + b"Accept-Encoding\r\n\r\n"
    )
    (made / "Ab" / "00" / "way.header.vary").symlink_to(outside)
    assert {item["key"] for item in listing(made)[0]}.isdisjoint({"/precious"})
    purge(made, all=True)
    assert kept.exists()
    assert kept.with_suffix(".data").exists()


@pytest.mark.parametrize(
    "wrong", [{}, {"all": True, "urls": ["x"]}, {"urls": "x"}, {"urls": [1]}, {"all": "yes"}]
)
def test_wrong_arguments_are_refused(made: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(protocol.Refused) as caught:
        purge(made, **wrong)
    assert caught.value.kind == "bad-request"
    with pytest.raises(protocol.Refused):
        cache.purged({"kind": "memcached", "folder": str(made), "all": True}, Heard().call)


def test_a_race_that_swaps_a_folder_for_a_link_cannot_get_out(tmp_path: Path) -> None:
    """Another process swaps a folder of the cache for a link to a treasure, as fast as it can."""
    made, treasure = tmp_path / "cache", tmp_path / "treasure"
    (made / "Sw").mkdir(parents=True)
    kept = [store(treasure, f"AA{number:02d}gold", f"http://s:80/gold/{number}?") for number in range(20)]
    script = (
        "import os, sys\n"
        "cache, treasure = sys.argv[1:]\n"
        "os.symlink(treasure, cache + '/../link')\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    os.rename(cache + '/Sw', cache + '/../real')\n"
        "    os.rename(cache + '/../link', cache + '/Sw')\n"
        "    os.rename(cache + '/Sw', cache + '/../link')\n"
        "    os.rename(cache + '/../real', cache + '/Sw')\n"
    )
    racer = subprocess.Popen(["python3", "-c", script, str(made), str(treasure)], stdout=subprocess.PIPE)
    assert racer.stdout is not None
    try:
        assert racer.stdout.readline() == b"ready\n"
        outcomes = {"went": 0, "refused": 0}
        for number in range(300):
            store(made, f"Qq{number:02d}x", f"http://s:80/x/{number}?")
            try:
                purge(made, all=True)
                outcomes["went"] += 1
            except protocol.Refused:
                outcomes["refused"] += 1
        assert racer.poll() is None
    finally:
        racer.kill()
        racer.wait()
        racer.stdout.close()
    assert all(path.exists() and path.with_suffix(".data").exists() for path in kept)
    assert outcomes["refused"] > 0, "the race was never met; the test proves nothing"
