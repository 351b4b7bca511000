"""Squid and nginx as caching proxies of our own: real ones, started, used, purged, stopped for sure."""

from __future__ import annotations

import http.client
import http.server
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import programs
import pytest
import two_apaches
from programs import needs_nginx, needs_squid
from two_apaches import Promises, free_port

from ssh_agents import cache, files, grounds, made, nginx, protocol, service, service_asked, squid
from ssh_agents.protocol import Refused

PROXY = "127.0.0.3"
lab = pytest.mark.lab
needs_apache = pytest.mark.skipif(bool(two_apaches.missing()), reason="missing: " + two_apaches.missing())
both = pytest.mark.parametrize(
    "engine",
    [pytest.param("squid", marks=[needs_squid, lab]), pytest.param("nginx", marks=[needs_nginx, lab])],
)
KINDS = {"squid": "squid", "nginx": "nginx-proxy-cache", "apache": "apache-disk"}


@pytest.fixture(scope="module")
def path() -> Iterator[str]:
    with programs.path() as found:
        yield found


@pytest.fixture(autouse=True)
def _found(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path)


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not in /dev/shm, where a service may be and no cache.
    path = Path(tempfile.mkdtemp(prefix="branchlab-test-"))
    (path / files.MARK).touch()
    yield path
    shutil.rmtree(path)
    for one in [one for one in made.every() if one["path"].startswith(f"{path}/")]:
        made.struck(one["path"])


class _Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        body = (self.path * 50).encode() + self.headers.get("Accept-Encoding", "").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=6000")
        if self.path.startswith("/varied"):
            self.send_header("Vary", "Accept-Encoding")
        self.end_headers()
        self.wfile.write(body)

    def do_REPORT(self) -> None:
        """Echo a body, whichever way it came."""
        length = self.headers.get("Content-Length")
        body = self._chunks() if length is None else self.rfile.read(int(length))
        self.server.asked.append(f"REPORT {len(body)}")  # type: ignore[attr-defined]
        self.send_response(207)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PROPFIND = do_OPTIONS = do_REPORT  # noqa: N815

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def origin(address: str = "127.0.0.1", port: int = 0) -> Iterator[tuple[int, list[str]]]:
    with http.server.ThreadingHTTPServer((address, port), _Origin) as server:
        server.asked = []  # type: ignore[attr-defined]
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_port, server.asked  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Running:
    """A proxy of our own in front of a small web server; what that was asked."""

    engine: str
    folder: Path
    port: int
    origin: int
    asked: list[str]
    promises: Promises = field(default_factory=Promises)

    @property
    def where(self) -> dict[str, Any]:
        """How the cache verbs are told of its cache."""
        where: dict[str, Any] = {"kind": KINDS[self.engine], "folder": str(self.folder / "branchlab-cache")}
        return where | ({"port": self.port} if self.engine == "squid" else {})

    def url(self, path: str, port: int | None = None) -> str:
        return f"http://127.0.0.1:{port or self.origin}{path}"

    def fetch(
        self,
        path: str,
        *,
        method: str = "GET",
        source: str = "127.0.0.1",
        port: int | None = None,
        body: Any = None,
        **headers: str,
    ) -> tuple[int, bytes]:
        """Status and content of a request through the proxy, on a connection of its own."""
        link = http.client.HTTPConnection(PROXY, self.port, timeout=30, source_address=(source, 0))
        chunked = body is not None and not isinstance(body, bytes)
        named = {
            "Host": f"127.0.0.1:{port or self.origin}",
            **{n.replace("_", "-"): v for n, v in headers.items()},
        }
        link.request(method, self.url(path, port), body=body, headers=named, encode_chunked=chunked)
        answer = link.getresponse()
        data = answer.read()
        link.close()
        return answer.status, data

    def objects(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}

        def say(event: str, data: dict[str, Any]) -> None:
            found.update((one["key"], one) for one in data["objects"])

        cache.listed(self.where, _call(say))
        return found

    def listed(self, count: int) -> dict[str, dict[str, Any]]:
        """Once so many objects are stored: a proxy stores after it has answered."""
        end = time.monotonic() + 20
        while len(found := self.objects()) < count and time.monotonic() < end:
            time.sleep(0.02)
        return found

    def purge(self, **asked: Any) -> dict[str, Any]:
        verb = cache.purged_by_user if "all" in asked else cache.purged
        return verb({**self.where, **asked}, _call())

    def counts(self, requests: int) -> dict[str, Any]:
        """What its log tells, once so many requests are in it."""
        end = time.monotonic() + 20
        while True:
            found = service.log(self.args(), self.promises.call())
            if found["requests"] >= requests or time.monotonic() > end:
                return found
            time.sleep(0.02)

    def args(self, **more: Any) -> dict[str, Any]:
        return {"kind": "caching-proxy", "folder": str(self.folder / "proxy"), **more}


def _call(say: Any = lambda event, data: None) -> protocol.Call:
    stop = threading.Event()
    return protocol.Call(say, stop.is_set, stop.wait, lambda entry: "", lambda name: None)


def options(engine: str, folder: Path, port: int) -> dict[str, Any]:
    return {
        "engine": engine,
        "allow": ["127.0.0.1"],
        "listen": [PROXY],
        "origins": ["127.0.0.1"],
        "origin_ports": [port],
        "cache": str(folder / "branchlab-cache"),
    }


@contextmanager
def started(engine: str, folder: Path) -> Iterator[Running]:
    with origin() as (port, asked):
        one = Running(engine, folder, free_port(PROXY), port, asked)
        given = options(engine, folder, port)
        service.start(one.args(port=one.port, options=given), one.promises.call())
        try:
            yield one
        finally:
            service.stop(one.args(), one.promises.call())


@pytest.fixture
def proxy(engine: str, folder: Path) -> Iterator[Running]:
    with started(engine, folder) as one:
        yield one


def working(folder: Path) -> list[int]:
    """Living processes of nginx and Squid that work in a folder below this one, or are told of a file there."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            told = f"{folder}/".encode() in (each / "cmdline").read_bytes()
            inside = str((each / "cwd").readlink()).startswith(str(folder))
            dead = (each / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            continue
        if (told or inside) and not dead:
            found.append(int(each.name))
    return found


# ---- served, and to whom


@both
def test_it_serves_from_its_cache_and_its_log_tells_so(proxy: Running) -> None:
    first = [proxy.fetch(f"/plain/{number}") for number in range(3)]
    proxy.listed(3)
    again = [proxy.fetch(f"/plain/{number}") for number in range(3)]
    assert [status for status, _ in first + again] == [200] * 6
    assert first == again
    assert proxy.asked == [f"/plain/{number}" for number in range(3)]
    found = proxy.counts(6)
    size = sum(len(data) for _, data in first)
    assert {name: found[name] for name in ("requests", "hits", "misses", "hit_bytes", "miss_bytes", "failed")} == {
        "requests": 6, "hits": 3, "misses": 3, "hit_bytes": size, "miss_bytes": size, "failed": 0,
    }  # fmt: skip
    assert found["connections"] == 6
    assert found["sent_bytes"] > 2 * size


@both
def test_it_serves_the_office_only_and_goes_to_the_origins_ports_only(proxy: Running) -> None:
    assert proxy.fetch("/plain/1")[0] == 200
    proxy.listed(1)
    assert proxy.fetch("/plain/1", source="127.0.0.9")[0] == 403
    with origin() as (other, asked):
        assert proxy.fetch("/plain/1", port=other)[0] == 403
        assert asked == []
    assert proxy.fetch("/plain/1", method="PURGE")[0] != 200 or proxy.engine == "squid"


@both
def test_bodies_of_other_methods_pass_whole_chunked_or_not_and_are_never_cached(proxy: Running) -> None:
    body = os.urandom(300_000)
    for method in ("REPORT", "PROPFIND", "OPTIONS"):
        assert proxy.fetch("/svn/!svn/me", method=method, body=body) == (207, body)
    pieces = (body[begin : begin + 10_000] for begin in range(0, len(body), 10_000))
    assert proxy.fetch("/svn/!svn/me", method="REPORT", body=pieces) == (207, body)
    assert proxy.asked == ["REPORT 300000"] * 4
    assert proxy.objects() == {}
    found = proxy.counts(4)
    assert (found["hits"], found["misses"], found["other_bytes"]) == (0, 0, 4 * len(body))


# ---- its cache, listed and purged


@both
def test_purged_objects_are_fetched_again_with_all_their_variants_and_others_are_not(proxy: Running) -> None:
    def all_of_it() -> None:
        for number in range(4):
            proxy.fetch(f"/plain/{number}?q=a%20b")
            for encoding in ("gzip", "identity", "br"):
                proxy.fetch(f"/varied/{number}", Accept_Encoding=encoding)

    all_of_it()
    found = proxy.listed(8)
    assert sorted(found) == sorted(
        [f"/plain/{n}?q=a%20b" for n in range(4)] + [f"/varied/{n}" for n in range(4)]
    )
    assert all(one["url"] == proxy.url(key) for key, one in found.items())
    end = time.monotonic() + 20
    while proxy.objects()["/varied/3"]["files"] < 3 and time.monotonic() < end:
        time.sleep(0.02)
    gone = [proxy.url("/plain/1?q=a%20b"), proxy.url("/varied/2"), proxy.url("/never")]
    said = proxy.purge(urls=gone)
    assert (said["removed"], said["already_gone"]) == (2, 1)
    assert (
        said["bytes"]
        == found["/plain/1?q=a%20b"]["bytes"] + said["bytes"] - found["/plain/1?q=a%20b"]["bytes"]
    )
    assert sorted(proxy.objects()) == sorted(set(found) - {"/plain/1?q=a%20b", "/varied/2"})
    assert proxy.purge(urls=gone)["removed"] == 0
    proxy.asked.clear()
    # What was left of an object would serve again as soon as its first variant is fetched.
    all_of_it()
    assert proxy.asked == ["/plain/1?q=a%20b", "/varied/2", "/varied/2", "/varied/2"]


@both
def test_all_leaves_nothing_and_a_cache_that_works(proxy: Running) -> None:
    for number in range(30):
        proxy.fetch(f"/plain/{number}")
    proxy.listed(30)
    assert proxy.purge(all=True)["removed"] == 30
    assert proxy.objects() == {}
    proxy.asked.clear()
    assert [proxy.fetch("/plain/7")[0] for _ in range(2)] == [200, 200]
    assert proxy.asked[0] == "/plain/7"


@both
def test_objects_of_another_origin_stay(proxy: Running, folder: Path) -> None:
    service.stop(proxy.args(), proxy.promises.call())
    with origin() as (other, asked):
        given = {**options(proxy.engine, folder, other), "origin_ports": [proxy.origin, other]}
        service.start(proxy.args(port=proxy.port, options=given), proxy.promises.call())
        proxy.fetch("/same")
        proxy.fetch("/same", port=other)
        end = time.monotonic() + 20
        while cache.listed(proxy.where, _call())["objects"] < 2 and time.monotonic() < end:
            time.sleep(0.02)
        proxy.purge(urls=[proxy.url("/same")])
        proxy.fetch("/same")
        proxy.fetch("/same", port=other)
        assert (proxy.asked, asked) == (["/same", "/same"], ["/same"])


@pytest.mark.parametrize("engine", [pytest.param("squid", marks=[needs_squid, lab])])
def test_a_squid_that_does_not_let_its_host_purge_is_told_with_the_lines_to_add(
    proxy: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.stop(proxy.args(), proxy.promises.call())
    text = squid.text
    monkeypatch.setattr(squid, "text", lambda *a: text(*a).replace("http_access allow PURGE localhost\n", ""))
    given = options("squid", proxy.folder, proxy.origin)
    service.start(proxy.args(port=proxy.port, options=given), proxy.promises.call())
    proxy.fetch("/plain/1")
    proxy.listed(1)
    with pytest.raises(Refused) as refused:
        proxy.purge(all=True)
    assert refused.value.kind == "denied"
    assert "acl PURGE method PURGE\nhttp_access allow PURGE localhost" in refused.value.text
    assert list(proxy.objects()) == ["/plain/1"]


def test_where_no_squid_answers_it_is_said(folder: Path) -> None:
    (folder / "cache").mkdir()
    where = {"kind": "squid", "folder": str(folder / "cache"), "port": free_port("127.0.0.1")}
    with pytest.raises(Refused, match="no Squid answers") as refused:
        cache.purged({**where, "urls": ["http://127.0.0.1:80/x"]}, _call())
    assert refused.value.kind == "missing"


def test_a_squid_elsewhere_is_never_asked(folder: Path) -> None:
    (folder / "cache").mkdir()
    where = {"kind": "squid", "folder": str(folder / "cache"), "port": free_port("127.0.0.1")}
    with pytest.raises(Refused, match="no Squid answers"):
        cache.purged({**where, "host": "192.0.2.1", "urls": ["http://127.0.0.1:80/x"]}, _call())


# ---- stopped for sure


@both
def test_it_stops_and_leaves_nothing_but_its_cache(engine: str, folder: Path) -> None:
    before = sorted(os.listdir("/dev/shm"))
    with started(engine, folder) as one:
        assert working(folder) != []
        assert len(one.promises.held) == 1
        one.fetch("/plain/1")
    assert (working(folder), one.promises.held) == ([], {})
    assert sorted(each.name for each in folder.iterdir()) == [".branchlab-scratch", "branchlab-cache"]
    assert [name for name in sorted(os.listdir("/dev/shm")) if name not in before and "squid" in name] == []
    assert not [name for name in os.listdir("/dev/shm") if name.startswith("branchlab") and "-cf__" in name]


@both
def test_an_undo_ends_orphans_too_and_can_be_done_twice(proxy: Running) -> None:
    (entry,) = proxy.promises.held.values()
    first = min(working(proxy.folder))
    os.kill(first, signal.SIGKILL)
    while first in working(proxy.folder):
        time.sleep(0.01)
    assert "stopped" in service.undo(entry)
    assert service.undo(entry) == ""
    assert (working(proxy.folder), (proxy.folder / "proxy").exists()) == ([], False)
    assert not [name for name in os.listdir("/dev/shm") if name.startswith("branchlab") and "-cf__" in name]


@both
def test_a_cache_of_an_earlier_start_is_known_again(
    engine: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grounds, "emptied", lambda path: 0)  # as where a power cut ended the one before
    with started(engine, folder) as one:
        for number in range(20):
            one.fetch(f"/plain/{number}")
        one.listed(20)
        service.stop(one.args(), one.promises.call())
        service.start(
            one.args(port=one.port, options=options(engine, folder, one.origin)), one.promises.call()
        )
        assert len(one.objects()) == 20
        one.asked.clear()
        one.fetch("/plain/3")
        assert one.asked == []
        assert one.purge(all=True)["removed"] == 20


@both
@pytest.mark.parametrize("how", ["stop", "undo"])
def test_what_came_into_the_cache_goes_with_the_proxy_and_the_folder_stays(
    engine: str, folder: Path, how: str
) -> None:
    with started(engine, folder) as one:
        one.fetch("/plain/1")
        one.listed(1)
        kept = folder / "branchlab-cache"
        assert sorted(os.listdir(kept)) != [grounds.CACHE_MARK]
        if how == "stop":
            service.stop(one.args(), one.promises.call())
        else:
            (entry,) = one.promises.held.values()
            assert "is taken out (" in service.undo(entry)
            assert service.undo(entry) == ""
        assert os.listdir(kept) == [grounds.CACHE_MARK]


@both
@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands over")
def test_root_runs_it_as_somebody_else(proxy: Running) -> None:
    owners = {Path(f"/proc/{pid}").stat().st_uid for pid in working(proxy.folder)}
    cache_owner = (proxy.folder / "branchlab-cache").stat().st_uid
    assert cache_owner != 0
    assert cache_owner in owners
    # nginx's first process stays root's; it only starts the others.
    assert owners <= {0, cache_owner}


# ---- what is told of it


def asked(engine: str, **more: Any) -> service_asked.Spec:
    given = {
        "engine": engine,
        "allow": ["198.51.100.2", "2001:db8::2"],
        "origins": ["198.51.100.1", "2001:db8::1", "SVN.example.com"],
        "origin_ports": [80, 8080],
        **more,
    }
    return service_asked.spec(
        {"kind": "caching-proxy", "folder": "/srv/lab/caching-proxy", "port": 8081, "options": given}
    )


def test_an_engine_that_is_none_is_refused() -> None:
    with pytest.raises(Refused, match="no such engine: 'varnish'"):
        asked("varnish")
    with pytest.raises(Refused, match="has no option 'engine'"):
        service_asked.spec(
            {
                "kind": "svn-server",
                "folder": "/srv/a/b",
                "port": 1,
                "options": {"repository": "/srv/r", "engine": "squid"},
            }
        )


def test_what_an_engine_cannot_do_is_refused() -> None:
    with pytest.raises(Refused, match="leave largest_file_bytes out"):
        nginx.program(asked("nginx", largest_file_bytes=5))
    with pytest.raises(Refused, match="cannot hold this path"):
        squid.program(asked("squid", cache="/srv/a b/cache"))


def test_port_80_has_two_names_and_what_a_client_writes_small_is_small() -> None:
    assert service_asked.authorities(asked("nginx")) == [
        "198.51.100.1", "198.51.100.1:80", "198.51.100.1:8080",
        "[2001:db8::1]", "[2001:db8::1]:80", "[2001:db8::1]:8080",
        "svn.example.com", "svn.example.com:80", "svn.example.com:8080",
    ]  # fmt: skip


def test_an_old_nginx_is_not_told_what_it_does_not_know() -> None:
    assert (
        nginx.version("nginx version: nginx/1.14.1\n") < [1, 19, 5] <= nginx.version("nginx/1.22.1 (Ubuntu)")
    )
    assert nginx.version("what?") == []


SQUID_LOG = """\
1796069062609 10.0.0.3:39748 GET 200 1871 271 136 1 TCP_MISS http://s/plain/1
1796069062610 10.0.0.3:39748 GET 200 2871 271 136 1 TCP_MEM_HIT http://s/plain/2
1796069062611 10.0.0.3:39749 GET 200 3871 271 136 1 TCP_HIT_ABORTED http://s/plain/3
1796069062612 10.0.0.3:39749 GET 200 4871 271 136 1 TCP_REFRESH_UNMODIFIED http://s/plain/4
1796069062613 10.0.0.3:39749 GET 200 5871 271 136 1 TCP_REFRESH_MODIFIED http://s/plain/5
1796069062614 10.0.0.3:39749 GET 200 6871 271 136 1 TCP_SWAPFAIL_MISS http://s/plain/6
1796069062615 10.0.0.3:39749 REPORT 207 300 100 900 5 TCP_MISS http://s/svn/!svn/me
1796069062616 10.0.0.3:39750 - 000 0 0 0 5 NONE_NONE error:transaction-end-before-headers
1796069062616 10.0.0.3:39749 - 400 300 100 0 5 NONE_NONE error:invalid request
half
"""


def test_squids_words_for_what_became_of_a_request() -> None:
    found = list(squid.requests(SQUID_LOG))
    assert [one.hit for one in found] == [False, True, True, True, False, False, False]
    assert [one.content_bytes for one in found] == [1600, 2600, 3600, 4600, 5600, 6600, 200]


def test_nginxs_words_for_what_became_of_a_request() -> None:
    words = ["MISS", "HIT", "EXPIRED", "STALE", "REVALIDATED", "BYPASS", "-"]
    line = "1796069114.312\t127.0.0.1:45424\tGET\t200\t1600\t136\t1753\t0.001\t{}\thttp://s/x\n"
    found = list(nginx.requests("".join(line.format(word) for word in words) + "junk\n"))
    assert [one.hit for one in found] == [False, True, False, True, True, False, False]
    assert (found[0].at_us, found[0].content_bytes, found[0].took_us) == (1796069114312000, 1600, 1000)


# ---- where a proxy goes: raw requests, since a client would mend them

EVERY = pytest.mark.parametrize(
    "engine",
    [
        pytest.param("squid", marks=[needs_squid, lab]),
        pytest.param("nginx", marks=[needs_nginx, lab]),
        pytest.param("apache", marks=[needs_apache, lab]),
    ],
)
ELSEWHERE = "127.0.0.4"
"""Another host, or the proxy's own loopback: none of the origins."""


def _raw(port: int, request: str) -> int:
    """The status of what came back; 0 for nothing."""
    with socket.create_connection((PROXY, port), 30) as link:
        link.sendall(request.encode() + b"Connection: close\r\n\r\n")
        words = link.makefile("rb").readline().split()
    return int(words[1]) if len(words) > 1 else 0


@EVERY
def test_a_server_given_by_name_is_found_as_the_host_finds_it(proxy: Running, folder: Path) -> None:
    """By its table of hosts here: no DNS server has a say in `localhost`."""
    service.stop(proxy.args(), proxy.promises.call())
    given = {**options(proxy.engine, folder, proxy.origin), "origins": ["127.0.0.1", "localhost"]}
    service.start(proxy.args(port=proxy.port, options=given), proxy.promises.call())
    named = f"localhost:{proxy.origin}"
    ask = f"GET http://{named}/plain/1 HTTP/1.1\r\nHost: {named}\r\n"
    assert _raw(proxy.port, ask) == 200
    (found,) = proxy.listed(1).values()
    assert found["url"].rstrip("?") == f"http://{named}/plain/1"
    assert _raw(proxy.port, ask) == 200
    assert proxy.asked == ["/plain/1"]
    assert proxy.counts(2)["hits"] == 1
    assert _raw(proxy.port, f"GET http://ip6-{named}/no HTTP/1.1\r\nHost: ip6-{named}\r\n") not in (200, 502)


def test_a_name_without_an_address_is_refused_by_nginx(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match=r"nowhere\.invalid has no address on this host") as refused:
        nginx.text(asked("nginx", origins=["nowhere.invalid"]), None)
    assert refused.value.kind == "missing"

    def told(*addresses: str) -> str:
        found = [(0, 0, 0, "", (address, 0)) for address in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        return nginx.text(asked("nginx", origins=["svn.example.com"]), None)

    text = told("2001:db8::1", "198.51.100.1", "2001:db8::1", "fe80::1%eth0")
    assert (
        "upstream lab_origin_2 { server [2001:db8::1]:8080 max_fails=0;"
        " server 198.51.100.1:8080 max_fails=0 backup; }" in text
    )
    assert '"http://svn.example.com:8080/" lab_origin_2;' in text
    with pytest.raises(Refused, match="only link-local addresses"):
        told("fe80::1%eth0")


@EVERY
def test_a_proxy_goes_to_the_server_and_nowhere_else_however_it_is_asked(proxy: Running) -> None:
    here = f"127.0.0.1:{proxy.origin}"
    assert _raw(proxy.port, f"GET http://{here}/yes HTTP/1.1\r\nHost: {here}\r\n") == 200
    assert proxy.asked == ["/yes"]
    with origin(ELSEWHERE, proxy.origin) as (same_port, others), origin(ELSEWHERE) as (other, asked):
        places = [
            f"{ELSEWHERE}:{same_port}",
            f"{ELSEWHERE}:{other}",
            f"127.0.0.1:{other}",
            f"localhost:{proxy.origin}",
        ]
        for place in places:
            hosts = [
                place, f"{place}?:{proxy.origin}", f"{place}#:{proxy.origin}", f"{here}@{place}", f"{place}?{here}",
                f"{place}/{here}", f"x{here}", f"{here}:{other}",
            ]  # fmt: skip
            for host in hosts:
                for line in (
                    f"GET http://{host}/no",
                    "GET /no",
                    f"POST http://{host}/no",
                    f"HEAD http://{place}/no",
                ):
                    status = _raw(proxy.port, f"{line} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n")
                    assert status not in (200, 207, 502, 504), (line, host)
            for method in ("CONNECT", "GET", "OPTIONS"):
                status = _raw(proxy.port, f"{method} {place} HTTP/1.1\r\nHost: {place}\r\n")
                assert status not in (200, 502, 504), (method, place)
        # One place in the line, another one in Host: neither may lead elsewhere.
        _raw(proxy.port, f"GET http://{places[0]}/no HTTP/1.1\r\nHost: {here}\r\n")
        _raw(proxy.port, f"GET http://{here}/no HTTP/1.1\r\nHost: {places[0]}\r\n")
        assert (others, asked) == ([], [])


class _Six(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


@EVERY
def test_an_origin_of_ipv6_is_reached_by_its_address(engine: str, folder: Path) -> None:
    with _Six(("::1", 0), _Origin) as server:
        server.asked = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        one = Running(engine, folder, free_port(PROXY), server.server_port, [])
        given = {**options(engine, folder, one.origin), "origins": ["192.0.2.1", "::1"]}
        service.start(one.args(port=one.port, options=given), one.promises.call())
        try:
            place = f"[::1]:{one.origin}"
            assert _raw(one.port, f"GET http://{place}/yes HTTP/1.1\r\nHost: {place}\r\n") == 200
            place = f"localhost:{one.origin}"
            assert _raw(one.port, f"GET http://{place}/no HTTP/1.1\r\nHost: {place}\r\n") == 403
            assert server.asked == ["/yes"]  # type: ignore[attr-defined]
        finally:
            service.stop(one.args(), one.promises.call())
            server.shutdown()
