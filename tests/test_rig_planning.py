"""What a run would do, as text: the very commands that a run asks for, and no host is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from real_runs import EMPTY, FULL, experiment

from lab import machines, vcs
from lab.errors import BadInput
from lab.model import AS_IT_IS, DISABLED, OPERATIONS, Cache, Host, Lab, Line, ProxyState, Role, Treatment
from lab.rig import planning

SERVER = Host(
    name="server", role=Role.SERVER, ssh="nowhere.invalid", address="198.51.100.1", services="/srv/lab",
    root="direct",
)  # fmt: skip
PROXY = Host(
    name="proxy", role=Role.PROXY, ssh="nowhere.invalid", address="198.51.100.2", root="sudo",
    url="http://proxy.example.com:3128", services="/srv/lab", cache=Cache(kind="apache-disk", folder="/var/cache/lab"),
)  # fmt: skip
DESK = Host(
    name="desk", role=Role.CLIENT, ssh="nowhere.invalid", address="198.51.100.11", address6="2001:db8::11"
)
LAB = Lab(name="Office", hosts=(SERVER, PROXY, DESK))
LINE = Line(upload_bps=512_000, download_bps=1_024_000)


def told(lab: Lab = LAB, **changes: Any) -> dict[str, list[str]]:
    wanted = experiment(**{"lines": (LINE,), "states": (DISABLED, EMPTY, FULL), **changes})
    return planning.commands(lab, wanted, vcs.driver("subversion"))


def timed(commands: list[str]) -> list[str]:
    return [text for text in commands if text.startswith("timed: ")]


def test_every_host_has_its_part() -> None:
    plan = told()
    assert list(plan) == ["server", "proxy", "desk"]
    assert plan["server"][0] == "svnadmin create SCRATCH/repository"
    assert "start an Apache of its own in /srv/lab/svn-server" in plan["server"]
    assert (
        "limit the line to 512/1024 kbit/s for 198.51.100.11, 2001:db8::11, 198.51.100.2; lift it"
        in plan["server"]
    )
    assert plan["proxy"] == [
        "start an Apache of its own in /srv/lab/caching-proxy",
        "list, fill and purge objects of the repository in /var/cache/lab",
        "count bytes per host in a table of its own (nftables: inet branchlab)",
    ]
    assert not any("count bytes" in text for text in plan["desk"])  # no way to change it is given


def test_the_commands_are_those_of_a_run_with_its_own_values_left_open() -> None:
    for operation in OPERATIONS:
        plain, proxied = timed(told(operations=(operation,))["desk"])
        assert "http-proxy" not in plain
        assert "http-proxy-host=proxy.example.com " in proxied
        assert "http-proxy-port=3128 " in proxied
        assert "{" not in plain + proxied
    (get, _) = timed(told()["desk"])
    assert get.startswith(
        "timed: svn checkout --ignore-externals --config-dir SCRATCH/config --non-interactive"
    )
    assert get.endswith("http://198.51.100.1/svn/trunk@100 SCRATCH/work")


def test_nothing_is_said_twice() -> None:
    for commands in told(operations=OPERATIONS).values():
        assert len(commands) == len(set(commands))


def test_without_an_enabled_state_nothing_goes_through_the_proxy() -> None:
    assert "http-proxy" not in " ".join(told(states=(DISABLED,), operations=OPERATIONS)["desk"])


@pytest.mark.parametrize(("launches", "ways"), [(False, 1), (True, 2)])
def test_what_is_timed_disabled_only_goes_through_the_proxy_for_its_launch(launches: bool, ways: int) -> None:
    commands = told(operations=("check-in",), disabled_only=("check-in",), launches=launches)["desk"]
    assert len(timed(commands)) == ways


def test_the_line_as_it_is_is_left_alone() -> None:
    plan = told(lines=(AS_IT_IS, LINE))
    assert "leave the line as it is" in plan["server"]
    assert sum("limit the line" in text for text in plan["server"]) == 1


def test_a_router_holds_the_line() -> None:
    router = Host(name="router", role=Role.ROUTER, ssh="nowhere.invalid", root="direct")
    plan = told(replace(LAB, hosts=(*LAB.hosts, router)))
    assert any("limit the line" in text for text in plan["router"])
    assert not any("limit the line" in text for text in plan["server"])


def test_at_the_office_each_host_limits_its_own_line_and_the_plan_says_so() -> None:
    plan = told(replace(LAB, line="office"))
    for name in ("desk", "proxy"):
        assert any("this host's own line" in text and "not shared" in text for text in plan[name])
    assert not any("limit" in text for text in plan["server"])
    plan = told(replace(LAB, line="senders"))
    assert any("own upload" in text and "not shared" in text for text in plan["desk"])
    assert any("limit the download" in text for text in plan["server"])


def test_a_proxy_of_the_users_own_is_not_started_and_its_usual_port_is_assumed() -> None:
    own = replace(PROXY, services=None, url=None)
    plan = told(replace(LAB, hosts=(SERVER, own, DESK)))
    assert not any("Apache" in text for text in plan["proxy"])
    assert "http-proxy-host=198.51.100.2 " in timed(plan["desk"])[1]
    assert "http-proxy-port=8081 " in timed(plan["desk"])[1]


def test_an_ipv6_server_is_written_in_brackets() -> None:
    server = replace(SERVER, address=None, address6="2001:db8::1")
    assert "http://[2001:db8::1]/svn/trunk@100" in " ".join(
        told(replace(LAB, hosts=(server, PROXY, DESK)))["desk"]
    )


def test_a_repository_of_the_users_own_is_not_made() -> None:
    plan = told(data=None)
    assert not any("svnadmin" in text or "Apache" in text for text in plan["server"])
    assert "@REVISION" in timed(plan["desk"])[0]
    assert "leave the repository as it is: it is only read" in plan["server"]


OWN: dict[str, Any] = {
    "data": None,
    "repository": "http://svn.example.com/p/trunk",
    "scratch": "http://svn.example.com/p/branchlab-scratch",
}


def test_what_changes_a_repository_of_the_users_own_is_said_with_the_place() -> None:
    plan = told(**OWN, operations=OPERATIONS, attempts=3, warm_up=1)
    place = "http://svn.example.com/p/branchlab-scratch/run-TOKEN"
    first, changing = (
        plan["desk"][0],
        [text for text in plan["desk"] if text.startswith(("svn copy", "svn delete"))],
    )
    assert "svn mkdir" in first
    assert changing.pop(0) == f"svn delete --message TEXT {place}/try"
    assert not any("--parents" in text for text in plan["desk"])
    assert changing[0].endswith(f"http://svn.example.com/p/trunk@REVISION {place}/work")
    assert changing[1].endswith(f"{place}/trial-N")
    assert changing[2] == plan["desk"][-1] == f"svn delete --message TEXT {place}"
    assert "files.copy source=SCRATCH/lockable target=SCRATCH/work" in plan["desk"]
    assert any(f"{place}/work@HEAD SCRATCH/lockable" in text for text in plan["desk"])
    # Three states of Check-In, three attempts each, two revisions each; the fill; folder, its test, copy and end.
    assert any(f"add {3 * 3 * 2 + 2 + 4} revisions at least" in text for text in plan["server"])


@pytest.mark.parametrize(
    ("changes", "added"),
    [
        ({"operations": ("check-in",), "states": (DISABLED,), "attempts": 3, "warm_up": 1}, 10),
        ({"operations": ("check-out",), "states": (DISABLED,), "attempts": 3}, 4),
        ({"operations": ("check-out", "get"), "states": (DISABLED, FULL)}, 4),
        ({"operations": ("get", "history")}, 0),
        ({"operations": OPERATIONS, "data": "quick"}, 0),
        ({"operations": ("check-in",), "states": (DISABLED,), "attempts": 3, "warm_up": 1, "clients": 3}, 22),
        ({"operations": ("check-out",), "states": (DISABLED,), "attempts": 3, "clients": 3}, 6),
        ({"operations": ("check-in",), "states": (FULL,), "attempts": 3, "clients": 2}, 4 + 2 * 3 * 2 + 2),
    ],
)
def test_the_revisions_that_a_run_adds_are_known_before(changes: dict[str, Any], added: int) -> None:
    assert planning.revisions(experiment(**{**OWN, **changes})) == added


def test_the_door_that_the_command_line_uses_is_the_same() -> None:
    wanted = experiment(lines=(LINE,), states=(DISABLED, FULL))
    assert machines.commands(LAB, wanted) == planning.commands(LAB, wanted, vcs.driver("subversion"))


def test_a_repository_of_our_own_needs_a_place() -> None:
    homeless = replace(SERVER, services=None)
    with pytest.raises(BadInput, match="has no place for it") as caught:
        told(Lab(name="Office", hosts=(homeless, PROXY, DESK)))
    assert "services" in caught.value.advice


@pytest.mark.parametrize(
    ("cache", "services", "told_"),
    [
        (Cache(kind="squid", folder="/sq"), "/srv/lab", "start a Squid of its own in /srv/lab/caching-proxy"),
        (
            Cache(kind="squid", folder="/sq"),
            None,
            "list and fill objects of the repository in /sq; have Squid purge",
        ),
        (Cache(kind="nginx-proxy-cache", folder="/n"), "/srv/lab", "start an nginx of its own in"),
        (Cache(kind="folder", folder="/p4p", owns=True), None, "list, fill and purge all files in /p4p"),
        (Cache(kind="command", list=("find", "/a b"), purge=("rm", "{url}")), None, "find '/a b'"),
        (Cache(kind="command", list=("find", "/a b"), purge=("rm", "{url}")), None, "rm '{url}'"),
    ],
)
def test_what_is_done_with_a_cache_is_told_by_its_kind(
    cache: Cache, services: str | None, told_: str
) -> None:
    own = replace(PROXY, cache=cache, services=services)
    plan = told(replace(LAB, hosts=(SERVER, own, DESK)))
    assert any(text.startswith(told_) for text in plan["proxy"]), plan["proxy"]


def one_trial(
    full: float | None, operation: str = "get", lab: Lab = LAB, **changes: Any
) -> list[tuple[str, str, bool]]:
    state = DISABLED if full is None else ProxyState(full=full)
    wanted = experiment(**{"lines": (LINE,), "states": (state,), "operations": (operation,), **changes})
    treatment = Treatment(line=wanted.lines[0], operation=operation, state=state)
    steps = planning.one_trial(lab, wanted, vcs.driver("subversion"), treatment)
    return [(step.host, step.text, step.timed) for step in steps]


def test_one_trial_is_told_in_its_order() -> None:
    steps = one_trial(90)
    assert steps[0] == ("proxy", "cache to 90 %: fill, then purge 10 %", False)
    hosts = [host for host, _, _ in steps]
    texts = [text for _, text, _ in steps]
    (timed,) = [n for n, step in enumerate(steps) if step[2]]
    assert hosts[timed] == "desk"
    assert texts.index("files.remove path=SCRATCH/work") < timed
    limit = "limit the line to 512/1024 kbit/s for 198.51.100.11, 2001:db8::11, 198.51.100.2"
    assert texts.index(limit) < timed < texts.index("lift the line")
    assert texts[timed + 1 :].count("read counters and line again") == 2  # of those that can count
    assert f"timed: {texts[timed]}" in told(operations=("get",))["desk"]


def test_without_the_proxy_nothing_is_done_to_its_cache() -> None:
    assert not any(host == "proxy" and "cache" in text for host, text, _ in one_trial(None))
    assert one_trial(0)[0][1] == "purge the cache to 0 %"
    assert one_trial(100)[0][1] == "fill the cache to 100 %"


def test_what_a_trial_leaves_behind_is_told_after_the_line_is_lifted() -> None:
    texts = [text for _, text, _ in one_trial(None, "check-out")]
    assert texts[-1].startswith("svn unlock")
    plain = [text for _, text, _ in one_trial(None, lines=(AS_IT_IS,))]
    assert "leave the line as it is" in plain
    assert "lift the line" not in plain


DESKS = replace(LAB, hosts=(*LAB.hosts, replace(DESK, name="desk-2", address="198.51.100.12", address6=None)))


def test_several_clients_have_the_same_part_and_the_others_none() -> None:
    plan = told(DESKS, operations=("get", "check-in"), clients=2)
    assert plan["desk"] == plan["desk-2"]
    assert len(timed(plan["desk"])) == 4
    assert told(DESKS, clients=("desk-2",))["desk"] == []
    assert told(DESKS, clients=("desk-2",))["desk-2"] == told()["desk"]


def test_what_each_of_several_clients_locks_is_its_own() -> None:
    plan = told(DESKS, operations=("check-out",), clients=2)
    for number, name in enumerate(("desk", "desk-2"), 1):
        branch = f"http://198.51.100.1/svn/branches/client-{number}"
        (copied,) = [text for text in plan[name] if text.startswith("svn copy")]
        assert copied.endswith(f"/svn/trunk@100 {branch}")
        assert any(text.endswith(f"{branch}@HEAD SCRATCH/lockable") for text in plan[name])
        assert "files.copy source=SCRATCH/lockable target=SCRATCH/work" in plan[name]
    own = told(DESKS, **{**OWN, "operations": ("check-out",), "clients": 2})
    (place,) = {
        text.rpartition(" ")[2]
        for text in own["desk"]
        if text.startswith("svn delete") and "/try" not in text
    }
    assert any(text.endswith(f"{place}/work-2") for text in own["desk"])
    assert not any("svn copy" in text for text in own["desk-2"])
    assert any(text.endswith(f"{place}/work-2@HEAD SCRATCH/lockable") for text in own["desk-2"])


def test_one_trial_of_several_clients_is_told_once_for_all_of_them() -> None:
    steps = one_trial(90, lab=DESKS, clients=2)
    assert [host for host, _, timed in steps if timed] == ["desk, desk-2"]
    assert [text for _, text, _ in steps if "198.51.100" not in text] == [
        text for _, text, _ in one_trial(90) if "198.51.100" not in text
    ]


@pytest.mark.parametrize("clients", [2, ("desk-2",)])
def test_clients_that_are_not_there_are_bad_input(clients: Any) -> None:
    with pytest.raises(BadInput, match="the lab has"):
        told(clients=clients)
    with pytest.raises(BadInput, match="the lab has"):
        one_trial(90, clients=clients)
