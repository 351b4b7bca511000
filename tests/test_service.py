"""Services: refused before anything is touched; started for real; stopped for sure, whatever happened."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import netns
import pytest
import two_apaches
from two_apaches import PROXY, SERVER, Promises, Services, free_port, place, repository, services

from lab.recipes import QUICK
from ssh_agents import access_log, apache, grounds, made, service
from ssh_agents.protocol import Refused

needs_apache = pytest.mark.skipif(bool(two_apaches.missing()), reason="missing: " + two_apaches.missing())
lab = pytest.mark.lab


@pytest.fixture
def folder() -> Iterator[Path]:
    with place() as path:
        yield path


@pytest.fixture
def both(folder: Path) -> Iterator[Services]:
    with services(folder, repository(QUICK, folder / "repository")) as running:
        yield running


def proxy_args(below: Path, **changed: Any) -> dict[str, Any]:
    options = {"allow": ["127.0.0.1"], "origins": [SERVER], "listen": [PROXY]}
    args = {
        "kind": "caching-proxy",
        "folder": str(below / "proxy"),
        "port": free_port(PROXY),
        "options": options,
    }
    return {**args, **changed}


# Refused


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "mail-server"}, "no such service"),
        ({"folder": "relative"}, "absolute path"),
        ({"folder": "/tmp/../etc/x"}, "absolute path"),
        ({"folder": '/tmp/a"\nLoadModule'}, "cannot hold"),
        ({"port": 0}, "1 to 65535"),
        ({"port": "80"}, "must be int"),
        ({"options": {}}, "needs option allow"),
        ({"options": {"allow": ["0.0.0.0/0"]}}, "no IP address"),
        ({"options": {"allow": ["127.0.0.1"], "config": "x"}}, "has no option 'config'"),
        ({"options": {"allow": ["127.0.0.1"], "origin_ports": ["80"]}}, "list of ports"),
        ({"options": {"allow": ["127.0.0.1"]}}, "needs option origins"),
        ({"options": {"allow": ["127.0.0.1"], "origins": ["10.0.0.0/8"]}}, "no IP address"),
        ({"options": {"allow": ["127.0.0.1"], "origins": ["127.1"]}}, "no IP address"),
        ({"options": {"allow": ["127.0.0.1"], "origins": ["fe80::1%a b"]}}, "no IP address"),
        ({"options": {"allow": ["127.0.0.1"], "origins": ['a"1;']}}, "no IP address"),
        ({"options": {"allow": ["127.0.0.1"], "origins": [".example.com"]}}, "no IP address"),
        ({"kind": "svn-server", "options": {"repository": "/srv/a/b"}}, "svn-server needs option allow"),
        ({"options": {"allow": ["127.0.0.1"], "listen": ["eth0"]}}, "no IP address"),
    ],
)
def test_what_cannot_be_right_is_refused_and_touches_nothing(
    tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    promises = Promises()
    with pytest.raises(Refused) as refused:
        service.start(proxy_args(tmp_path, **changed), promises.call())
    assert refused.value.kind == "bad-request"
    assert words in refused.value.text
    assert (promises.made, list(tmp_path.iterdir())) == (0, [])


def test_a_folder_of_somebody_else_is_refused_and_kept(folder: Path) -> None:
    (folder / "proxy").mkdir()
    (folder / "proxy" / "letter").write_text("mine")
    promises = Promises()
    with pytest.raises(Refused, match="not made for a service"):
        service.start(proxy_args(folder), promises.call())
    service.stop({"kind": "caching-proxy", "folder": str(folder / "proxy")}, promises.call())
    assert (folder / "proxy" / "letter").read_text() == "mine"
    assert promises.held == {}


def test_a_cache_folder_with_other_things_in_it_keeps_its_owner(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos" / "cat").write_text("mine")
    options = {"allow": ["127.0.0.1"], "origins": [SERVER], "cache": str(folder / "photos")}
    with pytest.raises(Refused, match=r"none of BranchLab's caches"):
        service.start(proxy_args(folder, options=options), Promises().call())
    assert (folder / "photos" / "cat").stat().st_uid == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be misled so")
def test_root_keeps_no_service_below_a_folder_of_somebody_else(folder: Path) -> None:
    home = folder / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    with pytest.raises(Refused) as refused:
        service.start(proxy_args(home), Promises().call())
    assert refused.value.kind == "denied"
    assert str(home) in refused.value.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be misled so")
def test_root_takes_no_folder_that_somebody_else_has_laid_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = folder / "svn-server"  # empty, in a place where everybody may make folders, such as /tmp
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    with pytest.raises(Refused, match="is there already"):
        grounds.make_folder(str(theirs))
    with pytest.raises(Refused, match="svn-server can be changed by others"):
        made.opened(str(theirs))
    assert not list(theirs.iterdir())
    make = os.mkdir

    def in_between(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        """What another user does between the making and the next look."""
        make(path, mode, dir_fd=dir_fd)
        if path == "middle":
            os.chown(path, 65534, 65534, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", in_between)
    with pytest.raises(Refused, match="middle can be changed by others"):
        grounds.make_folder(str(folder / "middle" / "svn-server"))
    assert made.record(str(folder / "middle" / "svn-server")) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be misled so")
def test_a_link_laid_in_roots_way_leads_no_mark_into_another_folder(folder: Path) -> None:
    (folder / "precious").mkdir()
    (folder / "precious" / "ledger").write_text("x")
    (folder / "link").symlink_to(folder / "precious")
    about = {"path": str(folder / "link"), "what": "cache", "parents": []}
    for mark in (grounds.MARK, grounds.CACHE_MARK):
        with pytest.raises(Refused):
            grounds._made(str(folder / "link"), mark, about, "a folder")  # as after a swap behind every look
        with pytest.raises(Refused, match="is a link"):
            made.opened(str(folder / "link"))
    with pytest.raises(Refused):
        grounds.make_cache(str(folder / "link"))
    assert os.listdir(folder / "precious") == ["ledger"]


@pytest.mark.skipif(os.geteuid() != 0, reason="the record is root's")
def test_a_mark_in_a_folder_is_no_proof_for_root(folder: Path) -> None:
    for name in (grounds.MARK, grounds.CACHE_MARK):
        theirs = folder / f"with{name}"
        theirs.mkdir()
        (theirs / name).write_text(json.dumps({"path": str(theirs), "what": "cache", "parents": []}))
        (theirs / "ledger").write_text("x")
        assert not grounds.remove_cache(str(theirs))
        grounds.remove(str(theirs))
        assert grounds.emptied(str(theirs)) == 0
        with pytest.raises(Refused, match="is there already"):
            grounds.make_cache(str(theirs))
        with pytest.raises(Refused, match="is there already"):
            grounds.make_folder(str(theirs))
        assert sorted(os.listdir(theirs)) == [name, "ledger"]


def test_no_folder_that_was_there_before_is_taken_not_even_an_empty_one(folder: Path) -> None:
    promises = Promises()
    for name in ("empty", "cache"):
        (folder / name).mkdir(mode=0o755)
    cache = {"allow": ["127.0.0.1"], "origins": [SERVER], "cache": str(folder / "cache")}
    for args in (proxy_args(folder, folder=str(folder / "empty")), proxy_args(folder, options=cache)):
        with pytest.raises(Refused, match="is there already") as refused:
            service.start(args, promises.call())
        assert "/branchlab" in refused.value.tried
    service.stop({"kind": "caching-proxy", "folder": str(folder / "empty")}, promises.call())
    for name in ("empty", "cache"):
        seen = (folder / name).stat()
        assert (stat.S_IMODE(seen.st_mode), seen.st_uid) == (0o755, os.geteuid())
    assert promises.made == 0
    assert sorted(os.listdir(folder)) == [".branchlab-scratch", "cache", "empty"]


@pytest.mark.parametrize(
    "place", ["/var/lib/dpkg/x", "/home/branchlab-nobody", "/var/log/x", "/var/lib/branchlab/made/x"]
)
def test_a_service_or_cache_is_made_only_where_one_can_be(folder: Path, place: str) -> None:
    options = {"allow": ["127.0.0.1"], "origins": [SERVER], "cache": place}
    promises = Promises()
    for args in (proxy_args(folder, folder=place), proxy_args(folder, options=options)):
        with pytest.raises(Refused, match=r"is not taken for|where BranchLab writes down"):
            service.start(args, promises.call())
    assert (promises.made, os.listdir(folder)) == (0, [".branchlab-scratch"])


@pytest.mark.skipif(os.geteuid() != 0, reason="a system looks for root's files")
@pytest.mark.parametrize("above", ["/run", "/var/lib", "/dev/shm"])
def test_root_makes_a_folder_below_run_and_var_only_under_its_own_name(above: str) -> None:
    """Where /run/nologin is there, whatever it is, nobody but root may log in."""
    promises = Promises()
    for name in ("branch-nologin", "branch-nologin/branchlab/x"):
        place = f"{above}/{name}"
        options = {"allow": ["127.0.0.1"], "origins": [SERVER], "cache": place}
        for args in (
            proxy_args(Path("/"), folder=place),
            proxy_args(Path("/"), folder=f"{above}/branchlab-x/p", options=options),
        ):
            with pytest.raises(Refused, match="only what has branchlab in its name"):
                service.start(args, promises.call())
    assert promises.made == 0
    assert not os.path.lexists(f"{above}/branch-nologin")
    assert not os.path.lexists(f"{above}/branchlab-x")
    grounds.refuse_unnamed(f"{above}/branchlab-x/p")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root lets others pass")
@pytest.mark.parametrize("bar", ["letters", "with-a-mark"])
def test_a_private_folder_is_opened_only_by_its_own_name(folder: Path, bar: str) -> None:
    theirs = folder / bar
    theirs.mkdir(mode=0o700)
    (theirs / ".branchlab-x").mkdir()
    for name in (".branchlab-x/proxy", "new/proxy"):
        with pytest.raises(Refused, match="bars"):
            service.start(proxy_args(theirs, folder=str(theirs / name)), Promises().call())
    assert (stat.S_IMODE(theirs.stat().st_mode), theirs.stat().st_gid) == (0o700, 0)
    assert os.listdir(theirs) == [".branchlab-x"]


@needs_apache
@lab
@pytest.mark.parametrize("how", ["stop", "undo", "refused"])
def test_what_was_made_and_opened_on_the_way_is_given_back(
    folder: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = folder / "branchlab-keep"
    keep.mkdir(mode=0o700)
    before = {path: _seen(path) for path in (folder, keep)}
    args = proxy_args(keep, folder=str(keep / "a" / "b" / "proxy"))
    promises = Promises()
    if how == "refused":
        monkeypatch.setattr(service, "_launched", lambda commands, asked: 1 / 0)
        args["options"]["cache"] = str(keep / "c" / "cache")
        with pytest.raises(ZeroDivisionError):
            service.start(args, promises.call())
    else:
        service.start(args, promises.call())
        (entry,) = promises.held.values()
        assert entry["about"]["parents"] == [str(keep / "a"), str(keep / "a" / "b")]
        if os.geteuid() == 0:
            assert {one[0] for one in entry["about"]["opened"]} == {str(folder), str(keep)}
        if how == "stop":
            service.stop({"kind": "caching-proxy", "folder": args["folder"]}, promises.call())
        else:
            service.undo(entry)
            service.undo(entry)
    assert {path: _seen(path) for path in (folder, keep)} == before
    assert os.listdir(keep) == []


@needs_apache
@lab
@pytest.mark.skipif(os.geteuid() != 0, reason="only root lets others pass")
def test_a_way_stays_open_while_another_service_needs_it(both: Services) -> None:
    assert stat.S_IMODE(both.folder.stat().st_mode) == 0o710
    service.stop({"kind": "svn-server", "folder": str(both.folder / "svn-server")}, both.promises.call())
    assert stat.S_IMODE(both.folder.stat().st_mode) == 0o710
    assert (both.repository / "db" / "current").stat().st_uid == 0  # as it was
    service.stop(
        {"kind": "caching-proxy", "folder": str(both.folder / "caching-proxy")}, both.promises.call()
    )
    assert stat.S_IMODE(both.folder.stat().st_mode) == 0o700


def _seen(path: Path) -> tuple[int, int, int]:
    seen = path.stat()
    return stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes owners")
def test_a_private_folder_of_somebody_elses_kind_is_not_opened(folder: Path) -> None:
    bar = folder / "letters"
    bar.mkdir(mode=0o700)
    with pytest.raises(Refused, match="bars"):
        service.start(proxy_args(bar), Promises().call())
    assert stat.S_IMODE(bar.stat().st_mode) == 0o700


# The log


LINES = """\
1796058626384040\t10.0.0.3:41000\tGET\t200\t1000\t180\t1290\t90\tcache hit\thttp://s:80/svn/!svn/rvr/9/a.cs
1796058626384041\t10.0.0.3:41000\tGET\t200\t2000\t180\t2290\t90\tcache miss: attempting entity save\thttp://s:80/b
1796058626384042\t10.0.0.3:41002\tREPORT\t200\t300\t900\t700\t90\t-\thttp://s:80/svn/!svn/me
1796058626384043\t10.0.0.3:41002\tGET\t404\t50\t180\t300\t90\tcache miss: not cacheable\thttp://s:80/c
half a line
"""


def test_a_log_is_summed_by_what_became_of_the_requests() -> None:
    found = access_log.summary(LINES, apache.requests(LINES))
    lines = found.pop("lines")
    assert found == {
        "requests": 4,
        "hits": 1,
        "misses": 2,
        "hit_bytes": 1000,
        "miss_bytes": 2050,
        "other_bytes": 300,
        "failed": 1,
        "sent_bytes": 4580,
        "by_method": {"GET": 3, "REPORT": 1},
        "connections": 2,
    }
    assert lines[-1] == "half a line"


def test_a_log_is_read_from_where_one_stopped_and_by_whole_lines(folder: Path) -> None:
    log = _as_of_a_service(folder / "svn-server") / "access.log"
    log.write_text(LINES[: LINES.index("half")] + "179605")
    args = {"kind": "svn-server", "folder": str(log.parent)}
    first = service.log({**args, "since": 0}, Promises().call())
    assert (first["requests"], first["offset"]) == (4, LINES.index("half"))
    assert service.log({**args, "since": first["offset"]}, Promises().call())["requests"] == 0
    with pytest.raises(Refused) as refused:
        service.log({**args, "since": 10**6}, Promises().call())
    assert refused.value.kind == "touched"


def _as_of_a_service(path: Path) -> Path:
    """Made as for a service; as if an svn-server worked there."""
    grounds.make_folder(str(path))
    grounds.write(str(path / "service.json"), json.dumps({"kind": "svn-server", "engine": "apache"}))
    return path


def test_no_other_folders_log_is_read(folder: Path) -> None:
    secret = 'a.log "GET /x?token=SECRET HTTP/1.1"\n'
    marked = _as_of_a_service(folder / "caching-proxy")
    (folder / "apache2").mkdir(mode=0o750)
    for path in (folder / "apache2", marked):
        (path / "access.log").write_text(secret)
    for path, kind in ((folder / "apache2", "svn-server"), (marked, "caching-proxy")):
        with pytest.raises(Refused, match=r"no .* of BranchLab's works") as refused:
            service.log({"kind": kind, "folder": str(path)}, Promises().call())
        assert (refused.value.kind, "SECRET" in str(refused.value.__dict__)) == ("missing", False)


def test_a_log_that_is_not_there_is_missing(folder: Path) -> None:
    with pytest.raises(Refused) as refused:
        service.log({"kind": "svn-server", "folder": str(folder)}, Promises().call())
    assert refused.value.kind == "missing"


# Real services


@needs_apache
@lab
def test_both_start_and_stop_and_leave_nothing(folder: Path) -> None:
    repo = repository(QUICK, folder / "repository")
    with services(folder, repo) as both:
        assert len(both.promises.held) == 2
        assert fetched(both.root + "/trunk/") == 200
        # The question whether it answers is not a request of anybody's.
        server, proxy = both.counts(server=1)
        assert (server["requests"], proxy["requests"]) == (1, 0)
    assert both.promises.held == {}
    assert sorted(path.name for path in folder.iterdir()) == [
        ".branchlab-scratch",
        "branchlab-cache",
        "repository",
        "repository.dump",
    ]
    assert apaches(folder) == []


@needs_apache
@lab
def test_the_proxy_serves_whom_it_was_told_and_from_its_cache(both: Services) -> None:
    file = f"{both.root}/!svn/rvr/100/trunk/{QUICK.locks()[0]}"
    assert [fetched(file, both) for _ in range(3)] == [200, 200, 200]
    server, proxy = both.counts(1, 3)
    assert (server["requests"], proxy["hits"], proxy["misses"]) == (1, 2, 1)
    assert proxy["hit_bytes"] == 2 * proxy["miss_bytes"] > 0
    # What is in the cache, too, is only for those who are allowed.
    assert fetched(file, both, source="127.0.0.9") == 403
    assert both.counts(0, 1)[1]["hits"] == 0


@needs_apache
@lab
def test_a_commit_is_seen_through_a_full_cache(both: Services, tmp_path: Path) -> None:
    """Field fault: a cache serves stale refs. The newest revision is the newest, and the rest comes from the cache."""
    through = [
        f"--config-option=servers:global:http-proxy-host={PROXY}",
        f"--config-option=servers:global:http-proxy-port={both.proxy_port}",
        "--config-option=servers:global:http-bulk-updates=no",
    ]

    def svn(*words: str) -> str:
        argv = ["svn", *words, "--non-interactive", "--config-dir", str(tmp_path / "config")]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    name = QUICK.locks()[0]
    svn("checkout", "-q", f"{both.root}/trunk", str(tmp_path / "first"), *through)
    both.counts()
    (tmp_path / "first" / name).write_text("what was committed since\n")
    svn("commit", "-q", "-m", "since", str(tmp_path / "first"))
    svn("checkout", "-q", f"{both.root}/trunk", str(tmp_path / "second"), *through)
    assert (tmp_path / "second" / name).read_text() == "what was committed since\n"
    revisions = [svn("info", "--show-item", "revision", str(tmp_path / one)) for one in ("first", "second")]
    assert int(revisions[1]) == int(revisions[0]) + 1
    assert both.counts()[1]["hits"] > 0  # all else came from the cache: it was full


@needs_apache
@lab
def test_a_second_service_in_the_folder_or_on_the_port_is_refused(both: Services) -> None:
    args = proxy_args(both.folder, folder=str(both.folder / "caching-proxy"))
    with pytest.raises(Refused) as refused:
        service.start(args, Promises().call())
    assert refused.value.kind == "busy"
    promises = Promises()
    with pytest.raises(Refused, match=f"port {both.proxy_port} cannot be had") as refused:
        service.start(proxy_args(both.folder, port=both.proxy_port), promises.call())
    assert refused.value.kind == "busy"
    assert (promises.made, fetched(both.root + "/trunk/", both)) == (0, 200)


@needs_apache
@lab
def test_what_does_not_start_says_why_and_leaves_nothing(folder: Path) -> None:
    repo = repository(QUICK, folder / "repository")
    (repo / "format").write_text("99\n")
    args = {
        "kind": "svn-server",
        "folder": str(folder / "svn"),
        "port": free_port(SERVER),
        "options": {"repository": str(repo), "allow": ["127.0.0.1"], "listen": [SERVER]},
    }
    promises = Promises()
    with pytest.raises(Refused) as refused:
        service.start(args, promises.call())
    assert "99" in refused.value.text
    assert (promises.made, promises.held, (folder / "svn").exists(), apaches(folder)) == (1, {}, False, [])


@needs_apache
@lab
def test_nobody_but_the_office_reads_or_writes_without_a_password(both: Services) -> None:
    assert fetched(both.root + "/trunk/", source="127.0.0.1") == 200
    for method in ("GET", "MKCOL", "OPTIONS", "PROPFIND", "REPORT", "PUT", "LOCK"):
        assert fetched(both.root + "/trunk/new", source="127.0.0.9", method=method) == 403
    # Who is let in hears what mod_dav_svn says of a folder made past any transaction.
    assert fetched(both.root + "/trunk/new", source="127.0.0.1", method="MKCOL") == 409


@needs_apache
@lab
def test_a_stranger_on_the_network_cannot_commit(folder: Path) -> None:
    repo = repository(QUICK, folder / "repository")
    url = "http://10.79.{}.1:8080/svn/trunk/new"
    with netns.net() as net:
        for number, name in enumerate(("server", "desk", "stranger")):
            net.host(name)
            if number:
                net.tie(name, "eth0", "server", f"eth{number}")
                net.address(name, "eth0", f"10.79.{number}.2/24")
                net.address("server", f"eth{number}", f"10.79.{number}.1/24")
        server = net.agent("server", privileged=True)
        server.ask("lease.open", lease_s=300)
        options = {"repository": str(repo), "allow": ["10.79.1.2"], "listen": ["10.79.1.1", "10.79.2.1"]}
        args = {"kind": "svn-server", "folder": str(folder / "svn-server")}
        server.ask("service.start", **args, port=8080, options=options)
        words = ["svn", "mkdir", "-q", "--non-interactive", "--config-dir", str(folder / "config"), "-m", "x"]
        told = net.run("stranger", *words, url.format(2), check=False)
        new = ["svnlook", "tree", "-N", str(repo), "trunk"]
        assert "new/" not in subprocess.run(new, check=True, capture_output=True, text=True).stdout, told
        net.run("desk", *words, url.format(1))
        assert "new/" in subprocess.run(new, check=True, capture_output=True, text=True).stdout
        assert server.ask("service.stop", **args)["stopped"] > 0


@lab
@pytest.mark.parametrize("address", ["::", "::1", "127.0.0.1"])
def test_a_port_taken_in_either_family_is_told_and_refused(folder: Path, address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as other:
        if family == socket.AF_INET6:
            other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        other.bind((address, 0))
        port = other.getsockname()[1]
        asked = {"port": port}
        assert service.port(asked, Promises().call()) == {"taken": []}
        other.listen()
        assert service.port(asked, Promises().call()) == {"taken": [address]}
        seen = service.port({**asked, "listen": ["127.0.0.2"]}, Promises().call())
        assert seen == {"taken": ["::"] if address == "::" else []}
        options = {"allow": ["127.0.0.1"], "origins": [SERVER]}
        promises = Promises()
        with pytest.raises(Refused, match=f"port {port} cannot be had") as refused:
            service.start(proxy_args(folder, port=port, options=options), promises.call())
        assert (refused.value.kind, promises.made) == ("busy", 0)


@needs_apache
@lab
def test_an_undo_ends_orphans_too_and_can_be_done_twice(both: Services) -> None:
    entry = next(one for one in both.promises.held.values() if one["service"] == "svn-server")
    first = min(pid for pid in apaches(both.folder / "svn-server"))
    os.kill(first, signal.SIGKILL)
    while first in apaches(both.folder / "svn-server"):
        time.sleep(0.01)
    assert apaches(both.folder / "svn-server") != []
    assert "1 processes" in service.undo(entry)
    assert service.undo(entry) == ""
    assert (apaches(both.folder / "svn-server"), (both.folder / "svn-server").exists()) == ([], False)


@needs_apache
@lab
def test_an_undo_hits_no_other_process(folder: Path) -> None:
    decoy = folder / "svn-server" / "apache-1.conf"
    other = subprocess.Popen(["sleep", "60", str(decoy)], stderr=subprocess.DEVNULL)
    try:
        entry = {"kind": "service", "service": "svn-server", "folder": str(folder / "svn-server")}
        assert service.undo(entry) == ""
        assert other.poll() in (None, 1)  # 1: sleep itself did not like its argument
    finally:
        other.kill()
        other.wait()


@needs_apache
@lab
@pytest.mark.skipif(os.geteuid() != 0, reason="it is an ordinary user already")
def test_an_ordinary_user_can_do_it(folder: Path) -> None:
    python = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin")
    if python is None:
        pytest.skip("no Python that an ordinary user can run")
    folder.chmod(0o755)
    shutil.copytree(Path(service.__file__).parent, folder / "code" / "ssh_agents")
    home = folder / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    script = f"""
import os, sys
sys.path.insert(0, {str(folder / "code")!r})
from ssh_agents import footprint, private, protocol, service
private._candidates = lambda: [{str(home / "run")!r}]
call = protocol.Call(lambda e, d: None, lambda: False, lambda s: False, lambda e: "1", lambda n: None)
folder = {str(home / "proxy")!r}
args = {{"kind": "caching-proxy", "folder": folder, "port": {free_port(PROXY)},
        "options": {{"allow": ["127.0.0.1"], "origins": [{SERVER!r}], "listen": [{PROXY!r}]}}}}
print(service.start(args, call)["user"])
print(service.stop({{"kind": "caching-proxy", "folder": folder}}, call)["stopped"])
args["options"]["cache"] = {str(home / "deep" / "kept")!r}
for _ in range(2):  # the second time in the cache that the first one made
    service.start(args, call)
    open(args["options"]["cache"] + "/object", "w").close()
    service.stop({{"kind": "caching-proxy", "folder": folder}}, call)
    print(*os.listdir(args["options"]["cache"]))
print(footprint.forget_roots({{"caches": [args["options"]["cache"]]}}, call)["left"], os.listdir({str(home)!r}))
"""
    done = subprocess.run(
        [python, "-I", "-S", "-c", script],
        user=65534,
        group=65534,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    mark = grounds.CACHE_MARK
    assert (done.stderr, done.stdout.splitlines()) == ("", ["None", "2", mark, mark, "[] []"])


@needs_apache
@lab
@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands over")
def test_root_hands_the_repository_over_and_runs_apache_as_somebody_else(both: Services) -> None:
    owner = (both.repository / "db" / "current").stat().st_uid
    assert owner not in (0, None)
    workers = [pid for pid in apaches(both.folder) if Path(f"/proc/{pid}").stat().st_uid == owner]
    assert len(workers) == 2
    assert stat.S_IMODE((both.folder / "svn-server").stat().st_mode) == 0o710


def test_a_folder_is_written_to_by_a_new_name(folder: Path) -> None:
    (folder / "secret").write_text("old")
    (folder / "users").symlink_to(folder / "secret")
    grounds.write(str(folder / "users"), "new")
    assert (folder / "secret").read_text() == "old"
    assert not (folder / "users").is_symlink()


def apaches(folder: Path) -> list[int]:
    """Living processes with a path below `folder` among their arguments."""
    out = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                argv = (path / "cmdline").read_bytes()
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"{folder}/".encode() in argv and b"-DFOREGROUND" in argv and state != "Z":
                out.append(int(path.name))
    return out


class _From(urllib.request.HTTPHandler):
    """Requests from a chosen address."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self._source = source

    def http_open(self, request: urllib.request.Request) -> Any:
        import http.client

        def connection(host: str, **given: Any) -> http.client.HTTPConnection:
            return http.client.HTTPConnection(host, source_address=(self._source, 0), **given)

        return self.do_open(connection, request)  # type: ignore[arg-type]


def fetched(url: str, through: Services | None = None, source: str = "127.0.0.1", method: str = "GET") -> int:
    """The status of a request, through the proxy if one is given."""
    proxies = {"http": f"http://{PROXY}:{through.proxy_port}"} if through else {}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies), _From(source))
    try:
        with opener.open(urllib.request.Request(url, method=method), timeout=20) as answer:  # noqa: S310
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except TimeoutError:
        return 0
