"""What `check` says of hosts as they are, and what `revert` takes back: on stand-ins, and in a real lab."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import real_runs
from real_runs import Hosts, experiment
from stand_in_hosts import Args, Verb, connected

from lab import embedded, machines
from lab.embedded import Embedded
from lab.errors import AgentRefused, HostTrouble, Stopped
from lab.model import Cache, Host, Lab, Line, Role
from lab.rig import checking
from lab.rig import hosts as rig_hosts
from lab.rig.host_checks import NAMES, Checked
from lab.stop import Stop
from ssh_agents import package_names

FACTS = {"os": "Debian GNU/Linux 12", "kernel": "6.1.0", "cpus": 2, "python": "3.11.2"}
ALL = {
    "svn": "1.14.2",
    "apache2": "2.4",
    "htcacheclean": "",
    "squid": "6.13",
    "nginx": "1.22.1",
    "svnadmin": "1.14.2",
    "tc": "6.1",
    "nft": "1.0.6",
}


TOOLS = {"mod_dav_svn": "apache2"}
"""Missing together here."""


def apt(*lacking: str) -> Callable[[Args], Args]:
    """What the agent of a Debian host that lacks these says."""

    def look(args: Args) -> Args:
        missing = [need for need in args["needs"] if TOOLS.get(need, need) in lacking]
        manager = package_names.MANAGERS[0]
        wanted = package_names.packages(manager, missing)
        return {
            "manager": manager.name,
            "missing": missing,
            "unknown": [],
            "packages": wanted,
            "all": package_names.packages(manager, args["needs"]),
            "commands": [[*manager.install, *wanted]] if wanted else [],
            "ours": [],
        }

    return look


def verbs(*lacking: str, leases: Sequence[Args] = (), ahead_s: float = 0.0) -> dict[str, Verb]:
    return {
        "leases": lambda args: {"leases": list(leases)},
        "packages.look": apt(*lacking),
        "clock": lambda args: {"utc": time.time() + ahead_s},
        "facts": lambda args: {"disk": {"path": args["path"], "free_bytes": 9e9, "fs": "ext4", "device": 7}},
    }


def seen(role: Role, without: str = "", leases: int = 0, **given: Any) -> list[Checked]:
    """What is said of a host that lacks one program."""
    asked = {name: None if name == without else ALL[name] for name in rig_hosts.TOOLS[role]}
    dead = [
        {
            "lease": f"lease-{number}", "alive": False, "earlier_boot": False, "held": "",
            "who": f"alice on desk-{number}", "what": ["the line"],
        }
        for number in range(leases)
    ]  # fmt: skip
    told = verbs(*([without] if without else []), leases=dead)
    one = connected("host", role, told, facts={**FACTS, "tools": asked}, **given)
    roles = [Role.SERVER, *([Role.ROUTER] if role is Role.ROUTER else [])]
    others = tuple(connected(f"the {other}", other).host for other in roles if other is not role)
    return list(checking._host(one, Lab(name="office", hosts=(one.host, *others))))


@pytest.mark.parametrize("role", list(Role))
def test_a_host_that_has_everything_lacks_nothing(role: Role) -> None:
    found = seen(role, services="/srv/lab")
    assert found[0].text == "Debian GNU/Linux 12, kernel 6.1.0, 2 processors, Python 3.11.2"
    assert all(one.ok and not one.advice for one in found)
    # Whatever is needed is asked of the host: what was not asked would always be missing.
    assert len(found) >= 2


@pytest.mark.parametrize(
    ("role", "tool", "package"),
    [
        (Role.CLIENT, "svn", "subversion"),
        (Role.CLIENT, "nft", "nftables"),
        (Role.PROXY, "nft", "nftables"),
        (Role.PROXY, "apache2", "apache2-bin"),
        (Role.SERVER, "tc", "iproute2"),
        (Role.SERVER, "nft", "nftables"),
        (Role.SERVER, "apache2", "libapache2-mod-svn"),
        (Role.SERVER, "svnadmin", "subversion"),
        (Role.ROUTER, "tc", "iproute2"),
        (Role.ROUTER, "nft", "nftables"),
    ],
)
def test_what_is_missing_is_named_with_its_package(role: Role, tool: str, package: str) -> None:
    missing = [one for one in seen(role, without=tool, services="/srv/lab") if not one.ok]
    assert missing[0].text == f"{NAMES[tool]} is missing"
    assert missing[0].grade == "trouble"
    assert "branchlab provision" in missing[0].advice
    assert f" {package}" in missing[0].command
    assert missing[0].command.startswith("apt-get ")


def test_only_what_packages_cure_says_so() -> None:
    found = seen(Role.SERVER, without="tc", services="/srv/lab", root="none")
    assert [one.text for one in found if one.packages] == [f"{NAMES['tc']} is missing"]
    assert len([one for one in found if not one.ok]) == 2


def test_check_tells_each_host_before_and_is_left_between_two(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(lab: Lab, stop: Stop, **given: Any) -> Any:
        raise HostTrouble("no answer", host=lab.hosts[0].name)

    monkeypatch.setattr(checking, "connected", unreachable)
    lab = Lab(name="office", hosts=tuple(Host(name=n, role=Role.CLIENT, ssh=n) for n in ("one", "two")))
    said: list[str] = []
    found = checking.check(lab, None, stop=Stop(), say=said.append)
    assert said == ["one", "two"]
    assert [(one.host, one.ok) for one in found] == [("one", False), ("two", False)]
    stop = Stop()

    def first(name: str) -> None:
        said.append(name)
        stop.request()

    said.clear()
    with pytest.raises(Stopped):
        machines.check(lab, None, stop=stop, say=first)
    assert said == ["one"]


@pytest.mark.parametrize(("role", "tool"), [(Role.PROXY, "apache2"), (Role.SERVER, "svnadmin")])
def test_a_host_whose_service_is_the_users_own_needs_no_programs_for_ours(role: Role, tool: str) -> None:
    assert all(one.ok for one in seen(role, without=tool))


@pytest.mark.parametrize(("kind", "tool"), [("squid", "squid"), ("nginx-proxy-cache", "nginx")])
def test_a_proxy_of_our_own_needs_the_program_of_its_cache(kind: str, tool: str) -> None:
    given = {"services": "/srv/lab", "cache": Cache(kind=kind, folder="/var/cache/lab")}
    (missing,) = (one for one in seen(Role.PROXY, without=tool, **given) if not one.ok)
    assert missing.text == f"{NAMES[tool]} is missing"
    assert all(one.ok for one in seen(Role.PROXY, without="apache2", **given))


def test_where_nothing_may_be_changed_nothing_has_to_be_there_to_count() -> None:
    assert all(one.ok for one in seen(Role.CLIENT, without="nft", root="none"))


@pytest.mark.parametrize("role", [Role.SERVER, Role.ROUTER])
def test_a_server_that_cannot_be_changed_can_hold_no_line(role: Role) -> None:
    (missing,) = (one for one in seen(role, root="none") if not one.ok)
    assert "no line can be limited" in missing.text
    assert 'root = "sudo"' in missing.advice


def test_what_the_ssh_configuration_says_without_effect_is_named_once() -> None:
    one = connected("host", Role.CLIENT, verbs(), facts={**FACTS, "tools": ALL})
    lab = Lab(name="office", hosts=(one.host,))
    one.connection.unheeded = ("VerifyHostKeyDNS yes", "RequiredRSASize 4096")  # type: ignore[misc]
    (found,) = (seen for seen in checking._host(one, lab) if "VerifyHostKeyDNS" in seen.text)
    assert found.ok
    assert found.text.endswith("VerifyHostKeyDNS yes; RequiredRSASize 4096")
    assert found.advice


def test_a_router_that_may_be_changed_counts_for_those_that_may_not() -> None:
    one = connected("desk", Role.CLIENT, verbs(), root="none", facts={
        **FACTS, "tools": {"svn": "1.14"}
    })  # fmt: skip
    gate = connected("gate", Role.ROUTER).host
    told = [found.text for found in checking._host(one, Lab(name="", hosts=(one.host, gate)))]
    assert any("counted on gate if they pass it" in text for text in told)
    told = [found.text for found in checking._host(one, Lab(name="", hosts=(one.host,)))]
    assert any("are not counted" in text for text in told)


def test_a_windows_host_needs_no_tool_of_linux_and_holds_no_line() -> None:
    one = connected("desk", Role.CLIENT, verbs("tc", "nft"), facts={
        **FACTS, "windows": True, "tools": {"svn": "1.14", "tc": None, "nft": None}
    })  # fmt: skip
    server = connected("server", Role.SERVER).host
    assert all(found.ok for found in checking._host(one, Lab(name="", hosts=(one.host, server))))
    told = list(checking._host(one, Lab(name="", hosts=(one.host, server), line="office")))
    (wrong,) = (found for found in told if not found.ok)
    assert (wrong.text, 'role = "router"' in wrong.advice) == ("no line can be held on Windows", True)


def test_what_earlier_runs_left_is_told_and_is_no_fault() -> None:
    left = seen(Role.CLIENT, leases=2)[-2:]
    assert all(one.ok for one in left)
    assert [one.text for one in left] == [
        f"left by alice on desk-{number}: the line. The next run takes it back" for number in range(2)
    ]
    assert "revert" in left[0].advice


# ---- a real lab


LINE = Line(upload_bps=512_000, download_bps=1_024_000)
LIMITED = {
    "office": ["198.18.0.11"], "exempt": [], "upload_bps": 64_000, "download_bps": 128_000, "delay_s": 0.0,
    "queue_upload_bytes": 64_000, "queue_download_bytes": 64_000, "jitter_s": 0.0, "loss": 0.0,
}  # fmt: skip
"""What a run asks of the server's agent."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Embedded]:
    with embedded.up() as made:
        yield made


@pytest.mark.lab
def test_an_embedded_lab_has_what_a_run_needs_and_is_not_changed_by_looking(lab: Embedded) -> None:
    before = Hosts.of(lab.folder)
    found = machines.check(lab.lab, experiment(lines=(LINE,)))
    assert [one for one in found if not one.ok] == []
    assert {one.host for one in found} == {"server", "proxy", "client"}
    assert any(
        one.text.startswith("the line can be limited on eth0 (queue there now: ") and "HTB, TBF" in one.text
        for one in found
    )
    real_runs.await_same(lab.folder, before)


@pytest.mark.lab
def test_what_only_a_later_experiment_lacks_is_told_with_its_name(lab: Embedded) -> None:
    first, same = experiment(lines=(LINE,)), experiment(name="The same again", lines=(LINE,))
    other = experiment(name="Elsewhere", data=None, repository="http://{server}:9/nothing/trunk")
    alone = machines.check(lab.lab, first)
    found = machines.check(lab.lab, first, also=(same, other))
    assert all(one.ok for one in alone)
    (told,) = (one for one in found if not one.ok)
    assert told.text.startswith("Elsewhere: http://")
    assert any(one.text.startswith("the line can be limited on eth0") for one in found)
    assert not [one for one in found if "The same again" in one.text]


@pytest.mark.lab
def test_a_host_out_of_reach_is_one_line_among_the_others(lab: Embedded) -> None:
    gone = Host(
        name="desk-9", role=Role.CLIENT, ssh="unix:/nowhere/desk-9", host_key=lab.lab.hosts[0].host_key
    )
    found = machines.check(replace(lab.lab, hosts=(*lab.lab.hosts, gone)), None)
    (missing,) = (one for one in found if not one.ok)
    assert missing.host == "desk-9"
    assert missing.advice
    assert {"server", "proxy", "client"} < {one.host for one in found}


@pytest.mark.lab
def test_a_delay_that_cannot_be_had_is_said(lab: Embedded) -> None:
    server = lab.lab.one(Role.SERVER)
    hosts = tuple(replace(one, delay=None) if one is server else one for one in lab.lab.hosts)
    delayed = experiment(lines=(replace(LINE, delay_s=0.04),))
    missing = [one for one in machines.check(replace(lab.lab, hosts=hosts), delayed) if not one.ok]
    if not missing:
        pytest.skip("this kernel has netem, so nothing is missing")
    assert [(one.host, "delay, jitter or loss" in one.text) for one in missing] == [("server", True)]


@pytest.mark.lab
def test_revert_takes_back_a_line_and_counters_that_were_left(lab: Embedded) -> None:
    before = Hosts.of(lab.folder)
    # Whoever holds the lease is told that somebody else ended it.
    with pytest.raises(AgentRefused, match="the lease ran out"):
        _revert_somebody_elses(lab, before)
    real_runs.await_same(lab.folder, before)
    assert machines.revert(lab.lab) == {"server": [], "proxy": [], "client": []}


def _revert_somebody_elses(lab: Embedded, before: Hosts) -> None:
    with rig_hosts.connected(lab.lab, Stop(), lease_s=60.0) as hosts:
        server = rig_hosts.only(hosts, Role.SERVER)
        server.privileged.ask("line.apply", LIMITED)
        assert Hosts.of(lab.folder).looks["server"] != before.looks["server"]
        with pytest.raises(HostTrouble, match="this host is held by"):
            machines.revert(lab.lab)
        assert "htb" in real_runs.on(lab.folder, "server", "tc qdisc show")
        undone = machines.revert(lab.lab, force=True)
        assert list(undone) == ["server", "proxy", "client"]
        assert any("line" in text for text in undone["server"])
        assert undone["proxy"] == undone["client"] == []
        assert "htb" not in real_runs.on(lab.folder, "server", "tc qdisc show")


ORPHANED = f"""
tc qdisc add dev eth0 root handle b1ab: htb
nft add table inet branchlab
python3 - <<'END'
import sys
sys.path.insert(0, {str(real_runs.CHECKOUT)!r})
from types import SimpleNamespace
from ssh_agents import files
files.scratch({{"name": "run-orphaned"}}, SimpleNamespace(promise=lambda entry: None))
END
"""
"""What is left of a run whose agents, watchers and leases are all gone."""


@pytest.mark.lab
def test_what_no_lease_tells_of_is_told_on_every_host_and_reverted(lab: Embedded) -> None:
    before = Hosts.of(lab.folder)
    assert [one.text for one in machines.left(lab.lab) if not one.ok] == []
    real_runs.on(lab.folder, "client", ORPHANED)
    told = {one.host: one for one in machines.left(lab.lab)}
    assert [name for name, one in told.items() if not one.ok] == ["client"]
    assert "a line on eth0; bytes counted per host (nftables: table inet branchlab); scratch folder /" in (
        told["client"].text
    )
    assert told["client"].advice == "branchlab revert PROFILE takes it back."
    seen = [one for one in machines.check(lab.lab, None) if "nobody is there to take it back" in one.text]
    assert [(one.host, one.ok) for one in seen] == [("client", False), ("client", True), ("client", True)]
    undone = machines.revert(lab.lab)
    assert undone["client"][0] == "line on eth0 taken off"
    assert undone["client"][1] == "traffic counters (table inet branchlab) removed"
    assert undone["client"][2].startswith("scratch folder ")
    assert undone["server"] == undone["proxy"] == []
    assert [one.text for one in machines.left(lab.lab) if not one.ok] == []
    real_runs.await_same(lab.folder, before)


@pytest.mark.lab
def test_revert_tries_every_host_and_then_names_the_one_out_of_reach(lab: Embedded) -> None:
    gone = Host(
        name="router", role=Role.ROUTER, ssh="unix:/nowhere/router", root="direct", host_key=lab.lab.hosts[0].host_key
    )  # fmt: skip
    with pytest.raises(HostTrouble) as caught:
        machines.revert(Lab(name="Lab", hosts=(gone, *lab.lab.hosts)))
    assert "router" in str(caught.value)
    assert "server: 0 taken back" in str(caught.value)
    assert caught.value.advice


# ---- ports of services of our own


def ports(taken: list[str], *leases: Args) -> list[Checked]:
    told: dict[str, Verb] = {
        "leases": lambda args: {"leases": list(leases)},
        "service.port": lambda args: {"taken": taken},
    }
    cache = Cache(kind="squid", folder="/var/cache/lab")
    hosts = [
        connected("server", Role.SERVER, told, address="198.51.100.1", services="/srv/lab"),
        connected("proxy", Role.PROXY, told, address="198.51.100.2", services="/srv/lab", cache=cache),
        connected("desk", Role.CLIENT, told, address="198.51.100.11"),
    ]
    return list(checking._ports(experiment(), hosts, ()))


def test_a_port_that_a_service_of_our_own_needs_and_somebody_has_is_trouble() -> None:
    assert [(one.host, one.grade) for one in ports([])] == [("server", "ok"), ("proxy", "ok")]
    server, proxy = ports(["0.0.0.0", "::"])  # noqa: S104
    assert (server.grade, proxy.grade) == ("trouble", "trouble")
    assert "port 80, which BranchLab's own svn-server would listen on, is taken" in server.text
    assert "somebody listens on 0.0.0.0, ::" in server.text
    assert 'repository = "http://{server}:PORT/' in server.advice
    assert "url = " in proxy.advice
    assert server.command == "ss -ltnp 'sport = :80'"


def test_a_runs_own_service_is_not_told_as_somebody_elses() -> None:
    assert ports(["0.0.0.0"], {"alive": True}) == []  # noqa: S104


@pytest.mark.lab
def test_check_tells_of_a_server_that_listens_where_ours_would(lab: Embedded) -> None:
    serving = (
        "import socket, time; s = socket.create_server(('::', 80), family=socket.AF_INET6, dualstack_ipv6=True);"
        " time.sleep(300)"
    )
    real_runs.on(lab.folder, "server", f'setsid python3 -c "{serving}" >/dev/null 2>&1 </dev/null &')
    try:
        end = time.monotonic() + 60
        while True:
            found = [one for one in machines.check(lab.lab, experiment()) if "svn-server" in one.text]
            if not found[0].ok or time.monotonic() > end:
                break
    finally:
        real_runs.kill(n for n, line in real_runs.inhabitants(lab.folder).items() if "dualstack_ipv6" in line)
    assert [(one.host, one.ok, "port 80" in one.text) for one in found] == [("server", False, True)]


def test_where_loss_is_made_is_told_unless_it_is_on_the_way() -> None:
    """Field fault: loss on the sender's own egress is hidden by local TCP; where it is made matters."""
    lossy, sound = (Line(upload_bps=10**6, download_bps=10**6, loss=loss) for loss in (0.1, 0.0))
    (told,) = checking.loss_placed([sound, lossy], "server", "depot")
    assert (told.host, told.ok, "router" in told.advice) == ("depot", True, True)
    assert list(checking.loss_placed([lossy], "router", "depot")) == []
    assert list(checking.loss_placed([sound], "server", "depot")) == []
