"""What one host is like, item by item: each item right, doubtful and wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from stand_in_hosts import Args, connected

from lab.errors import AgentRefused
from lab.model import Cache, Lab, Role
from lab.rig import cures, host_checks
from lab.rig.host_checks import Checked
from lab.rig.hosts import Connected
from lab.rig.line import without_ifb

URL = "http://svn.example.com/svn/trunk"


def a_host(
    facts: Args | None = None, verbs: dict[str, Callable[[Args], Args]] | None = None, **given: Any
) -> Connected:
    facts = {"os": "Debian GNU/Linux 12", "tools": {}, **(facts or {})}
    return connected("desk", Role.CLIENT, verbs or {}, facts=facts, **given)


def only(found: Iterable[Checked]) -> Checked:
    (one,) = found
    return one


@pytest.mark.parametrize(
    ("free", "grade"), [(100_000_000, "trouble"), (1_000_000_000, "warn"), (50_000_000_000, "ok")]
)
def test_a_disk_that_is_nearly_full_is_told(free: int, grade: str) -> None:
    one = a_host({"disk": {"path": "/home/anna", "free_bytes": free, "fs": "ext4"}})
    found = only(host_checks._disk(one))
    assert found.grade == grade
    assert "/home/anna" in found.text
    assert list(host_checks._disk(a_host())) == []


def test_the_disks_of_cache_and_services_are_looked_at_where_they_are_other_ones() -> None:
    disks = {
        "/var/cache/lab": {"path": "/var/cache", "free_bytes": 600_000, "fs": "tmpfs", "device": 2},
        "/srv/lab": {"path": "/srv", "free_bytes": 50_000_000_000, "fs": "ext4", "device": 1},
    }
    one = connected(
        "proxy",
        Role.PROXY,
        {"facts": lambda args: {"disk": disks[args["path"]]}},
        facts={"disk": {"path": "/root", "free_bytes": 50_000_000_000, "fs": "ext4", "device": 1}},
        cache=Cache(kind="apache-disk", folder="/var/cache/lab"),
        services="/srv/lab",
    )
    found = list(host_checks._disk(one))
    assert [check.grade for check in found] == ["ok", "trouble"]
    assert "0.6 MB free in /var/cache (tmpfs)" in found[1].text or "600.0 kB" in found[1].text


@pytest.mark.parametrize(("ahead", "grade"), [(0.0, "ok"), (30.0, "ok"), (-90.0, "warn"), (4000.0, "warn")])
def test_a_clock_that_is_far_off_is_told_with_its_sign_and_error(ahead: float, grade: str) -> None:
    one = a_host(verbs={"clock": lambda args: {"utc": time.time() + ahead}})
    found = only(host_checks._clock(one))
    assert found.grade == grade
    offset, error = host_checks.offset_s(one.agent)
    assert abs(offset - ahead) <= error + 0.05
    assert ("+" if ahead > 0.01 else "-" if ahead < -0.01 else "s from") in found.text


def test_the_quickest_answer_of_a_clock_counts() -> None:
    pauses = iter([0.2, 0.0, 0.2, 0.2, 0.2])

    def slow_to_answer(args: Args) -> Args:
        seen = time.time()
        time.sleep(next(pauses))
        return {"utc": seen + 7}

    offset, error = host_checks.offset_s(a_host(verbs={"clock": slow_to_answer}).agent)
    assert error < 0.1
    assert abs(offset - 7) < 0.1


def test_an_address_that_is_none_of_the_hosts_own_is_doubtful() -> None:
    one = a_host(
        {"addresses": ["198.51.100.11", "127.0.0.1"]}, address="198.51.100.11", address6="2001:db8::11"
    )
    found = [one for one in host_checks._network(one) if one.grade != "ok"]
    assert len(found) == 1
    assert "2001:db8::11" in found[0].text
    assert found[0].grade == "warn"


def test_offloads_and_congestion_control_are_told() -> None:
    facts = {"offloads": {"eth0": {"tso": True, "gro": False}}, "congestion": "cubic"}
    text = only(host_checks._network(a_host(facts))).text
    both = [one.text for one in host_checks._network(a_host({"addresses": ["10.0.0.1"], **facts}))]
    assert both[0] == "IPv4: 10.0.0.1; IPv6: none"
    assert "offloads on: tso;" in text
    assert "cubic" in text


@pytest.mark.parametrize(("load", "told"), [(0.3, 0), (2.0, 0), (2.5, 1)])
def test_a_busy_host_is_told(load: float, told: int) -> None:
    assert len(list(host_checks._load(a_host({"loadavg": [load, 0, 0], "cpus": 2})))) == told


# ---- routes


def a_route(devices: dict[str, str | None]) -> dict[str, Callable[[Args], Args]]:
    return {
        "routes.look": lambda args: {"devices": {address: devices[address] for address in args["addresses"]}}
    }


SERVER = connected("server", Role.SERVER, address="198.51.100.1")
SSH = {"peer": {"address": "203.0.113.9", "port": 5022}, "own": {"address": "198.51.100.11", "port": 22}}


@pytest.mark.parametrize(
    ("desk", "told"), [("eth0", "shares eth0, and is left out"), ("eth1", "BranchLab's SSH comes by eth1")]
)
def test_which_device_leads_where_and_whether_ssh_shares_it(desk: str, told: str) -> None:
    one = a_host({"ssh": SSH}, a_route({"198.51.100.1": "eth0", "203.0.113.9": desk}))
    found = only(host_checks.routes(one, (one, SERVER)))
    assert found.ok
    assert "reaches server by eth0" in found.text
    assert told in found.text


def test_two_families_by_one_device_are_told_once_and_by_two_devices_apart() -> None:
    server = connected("server", Role.SERVER, address="198.51.100.1", address6="2001:db8::1")
    same = a_host(verbs=a_route({"198.51.100.1": "eth0", "2001:db8::1": "eth0"}))
    assert only(host_checks.routes(same, (same, server))).text.startswith("reaches server by eth0;")
    apart = a_host(verbs=a_route({"198.51.100.1": "eth0", "2001:db8::1": "eth1"}))
    text = only(host_checks.routes(apart, (apart, server))).text
    assert text.startswith("reaches server by eth0 (IPv4), server by eth1 (IPv6);")


def test_a_peer_that_no_route_leads_to_is_a_fault() -> None:
    one = a_host(verbs=a_route({"198.51.100.1": None}))
    found = only(host_checks.routes(one, (one, SERVER)))
    assert found.grade == "trouble"
    assert "no route leads to server (198.51.100.1)" in found.text


def test_windows_and_hosts_without_peers_are_not_asked() -> None:
    assert list(host_checks.routes(a_host({"windows": True}), (SERVER,))) == []
    assert list(host_checks.routes(a_host(), ())) == []


# ---- services of the user's own


@pytest.mark.parametrize(
    ("status", "grade", "told"),
    [
        (200, "ok", "answers without a password"),
        (301, "trouble", "sends on to https://svn.example.com/svn/trunk"),
        (401, "trouble", "a password is asked for on reads"),
        (407, "trouble", "the proxy asks for a password"),
        (403, "trouble", "answers 403 Reason"),
        (404, "trouble", "answers 404 Reason"),
        (502, "trouble", "answers 502 Reason"),
    ],
)
def test_what_a_service_says_to_who_sends_no_password(status: int, grade: str, told: str) -> None:
    asked: list[Args] = []

    def look(args: Args) -> Args:
        asked.append(args)
        headers = {"location": "https://svn.example.com/svn/trunk"} if status == 301 else {}
        return {"status": status, "reason": "Reason", "headers": headers}

    one = a_host(verbs={"http.look": look})
    found = only(host_checks.answers(one, URL, ("198.51.100.7", 8081)))
    assert (found.grade, told in found.text) == (grade, True)
    assert "198.51.100.7:8081" in found.text
    assert asked == [{"url": URL, "proxy": {"host": "198.51.100.7", "port": 8081}}]
    assert only(host_checks.answers(one, URL)).text.startswith(f"{URL}: ")
    assert "proxy" not in asked[1]


def service(*words: Args) -> Callable[[Args], Args]:
    """Says these one after another."""
    told = iter(words)
    return lambda args: next(told)


def said(status: int, **headers: str) -> Args:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"status": status, "reason": "Reason", "headers": named}


def test_a_folder_that_is_asked_for_without_its_slash_is_right() -> None:
    one = a_host(verbs={"http.look": service(said(301, location=f"{URL}/"), said(200))})
    assert only(host_checks.answers(one, URL)).grade == "ok"
    elsewhere = a_host(verbs={"http.look": service(said(301, location=f"{URL}2/"))})
    assert only(host_checks.answers(elsewhere, URL)).grade == "trouble"


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        (said(302), "Look at the server's configuration."),
        (said(301, location="HTTPS://svn.example.com/"), "Nothing can be cached over https."),
        (said(500), "Look into its log"),
        (said(404), "Correct the address"),
    ],
)
def test_the_cure_fits_the_answer(word: Args, advice: str) -> None:
    found = only(host_checks.answers(a_host(verbs={"http.look": service(word)}), URL))
    assert found.grade == "trouble"
    assert advice in found.advice
    assert "another address" not in found.text


@pytest.mark.parametrize(
    ("dav", "ok"),
    [("1,2, http://subversion.tigris.org/xmlns/dav/svn/depth", True), ("1,2", False), ("", False)],
)
def test_what_is_no_subversion_server_is_told(dav: str, ok: bool) -> None:
    one = a_host(verbs={"http.look": service(said(200), said(200, dav=dav))})
    found = only(host_checks.answers(one, URL, subversion=True))
    assert found.ok is ok
    assert ("as a Subversion server does" in found.text) is not ok


@pytest.mark.parametrize(
    "headers", [{"cache_control": "no-store"}, {"cache_control": "Private, max-age=3"}, {"vary": "*"}]
)
def test_answers_that_nobody_may_store_are_told(headers: dict[str, str]) -> None:
    found = only(host_checks.answers(a_host(verbs={"http.look": service(said(200, **headers))}), URL))
    assert found.grade == "warn"
    assert "forbids to store it" in found.text


def test_a_password_on_reads_is_no_trouble_to_a_run_that_has_one_and_needs_no_cache() -> None:
    one = a_host(verbs={"http.look": lambda args: {"status": 401, "reason": "No", "headers": {}}})
    found = only(host_checks.answers(one, URL, named=True))
    assert (found.grade, found.text) == ("warn", f"{URL}: a password is asked for on reads")
    assert "Nothing can be cached then" in found.advice


def test_a_proxy_that_asks_for_a_password_is_no_trouble_to_a_run_that_has_one() -> None:
    one = a_host(verbs={"http.look": lambda args: {"status": 407, "reason": "No", "headers": {}}})
    found = only(host_checks.answers(one, URL, ("198.51.100.7", 8081), named=True))
    assert (found.grade, "the proxy asks for a password" in found.text) == ("ok", True)
    # But who passes the proxy may still be asked by the server, and nothing can be cached then.
    one = a_host(verbs={"http.look": lambda args: {"status": 401, "reason": "No", "headers": {}}})
    assert only(host_checks.answers(one, URL, ("198.51.100.7", 8081), named=True)).grade == "trouble"


def test_a_service_that_does_not_answer_is_told() -> None:
    def refuse(args: Args) -> Args:
        raise AgentRefused("svn.example.com:80 does not answer", kind="missing", host="desk")

    found = only(host_checks.answers(a_host(verbs={"http.look": refuse}), URL))
    assert found.grade == "trouble"
    assert "does not answer" in found.text


@pytest.mark.parametrize(("status", "grade"), [(200, "ok"), (400, "ok"), (403, "ok"), (407, "trouble")])
def test_a_proxy_that_is_there_is_told_from_one_that_asks_for_a_password(status: int, grade: str) -> None:
    asked: list[Args] = []

    def look(args: Args) -> Args:
        asked.append(args)
        return {"status": status, "reason": "", "headers": {}}

    one = a_host(verbs={"http.look": look})
    assert only(host_checks.listens(one, "proxy", ("2001:db8::7", 3128))).grade == grade
    assert asked == [{"url": "http://[2001:db8::7]:3128/"}]


def test_a_proxy_that_is_not_there_is_told() -> None:
    def refuse(args: Args) -> Args:
        raise AgentRefused("198.51.100.7:3128 does not answer", kind="missing", host="desk")

    one = a_host(verbs={"http.look": refuse})
    found = only(host_checks.listens(one, "proxy", ("198.51.100.7", 3128)))
    assert found.grade == "trouble"
    assert "`url`" in found.advice


def test_a_check_has_one_of_three_grades() -> None:
    assert [
        Checked("h", True, "t").grade,
        Checked("h", True, "t", "a").grade,
        Checked("h", False, "t", "a").grade,
    ] == [
        "ok",
        "warn",
        "trouble",
    ]


def test_what_a_system_without_a_package_lacks_is_told_without_a_command() -> None:
    look = {
        "manager": None,
        "missing": ["svn"],
        "unknown": ["svn"],
        "packages": [],
        "all": [],
        "commands": [],
        "ours": [],
    }
    one = a_host(verbs={"packages.look": lambda args: look}, root="none")
    found = only(host_checks._programs(one, Lab(name="", hosts=(one.host, SERVER.host))))
    assert (found.grade, found.command) == ("trouble", "")
    assert "Subversion's client is missing" in found.text


@pytest.mark.parametrize(
    ("system", "module", "clock"),
    [
        ("Debian GNU/Linux 12 (bookworm)", "modprobe ifb", "timedatectl set-ntp true"),
        ("Ubuntu 24.04 LTS", "apt-get install linux-modules-extra-", "timedatectl set-ntp true"),
        ("Rocky Linux 9.4 (Blue Onyx)", "dnf install kernel-modules-extra-", "timedatectl set-ntp true"),
        ("Alpine Linux v3.20", "modprobe ifb", "setup-ntp chrony"),
    ],
)
def test_cures_are_commands_of_that_system(system: str, module: str, clock: str) -> None:
    one = a_host({"os": system})
    assert module in cures.module(one, "ifb")
    assert cures.clock(one) == clock


def test_a_kernel_that_lacks_ifb_alone_is_told_how_to_load_it() -> None:
    one = a_host()
    kinds = dict.fromkeys(("htb", "tbf", "u32", "ingress", "mirred"), True)
    assert without_ifb(one, {"refuse": "no", "kinds": {**kinds, "ifb": False}}) == "modprobe ifb"
    for word in (
        {"refuse": None, "kinds": {**kinds, "ifb": False}},
        {"refuse": "no", "kinds": {"htb": False}},
    ):
        assert without_ifb(one, word) == ""
