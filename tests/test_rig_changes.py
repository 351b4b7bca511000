"""The page for a change board: every host, every change with its end, and no host is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from real_runs import EMPTY, FULL, experiment
from test_rig_planning import DESK, LAB, LINE, PROXY, SERVER

from lab import machines, vcs
from lab.asking import KINDS
from lab.errors import BadInput
from lab.model import AS_IT_IS, DISABLED, Cache, Experiment, Host, Lab, Role
from lab.rig import changes, planning
from lab.settings import LEASE_S


def wanted(**given: Any) -> Experiment:
    return experiment(**{"lines": (LINE,), "states": (DISABLED, EMPTY, FULL), **given})


def page(lab: Lab = LAB, duration: str = "", **given: Any) -> str:
    return machines.changes(lab, wanted(**given), duration)


def of(host: str, text: str) -> str:
    """The part of a page that is about one host's changes."""
    return text.split(f"### {host} (")[1].split("\n#")[0]


def rows(host: str, text: str) -> list[list[str]]:
    lines = [line for line in of(host, text).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_change_has_its_end_and_says_how_long_it_can_stay() -> None:
    text = page()
    assert [line for line in text.splitlines() if line.startswith("### ")][:3] == [
        "### server (server, 198.51.100.1)",
        "### proxy (proxy, 198.51.100.2)",
        "### desk (client, 198.51.100.11, 2001:db8::11)",
    ]
    for host in ("server", "proxy", "desk"):
        for row in rows(host, text):
            assert len(row) == 3, row
            assert all(row)
    server = rows("server", text)
    assert server[0][0].startswith("the line towards 198.51.100.2, 198.51.100.11, 2001:db8::11 limited")
    assert "512/1024 kbit/s" in server[0][0]
    assert all(row[2] == f"{LEASE_S + 5:.0f} s" for row in server[:-2])
    assert "/srv/lab/svn-server" in server[1][0]
    assert any("/var/cache/lab" in row[0] for row in rows("proxy", text))
    assert not any("nftables" in row[0] for row in rows("desk", text))  # nothing is done there as root
    assert "TCP 80 for the repository" in of("server", text)
    assert "TCP 3128 for the proxy" in of("proxy", text)
    office = "198.51.100.2, 198.51.100.11, 2001:db8::11 alone (behind NAT: the address seen for them)"
    assert f"for the repository, answering this host and {office}" in of("server", text)
    assert f"answering {office}, and going to the repository's host on port 80 alone" in of("proxy", text)


def test_the_page_has_what_a_board_asks_for() -> None:
    text = page(duration="4 min (as measured)")
    for words in (
        "6 trials of get",
        "Expected duration: 4 min (as measured)",
        "- When: ___",
        "## What is never touched",
        "branchlab revert Office" if LAB.path else "    branchlab revert PROFILE",
        "made for this run, and removed with it",
        f"--agree {','.join(KINDS)}",
    ):
        assert words in text
    assert "not known" in page()
    assert "    branchlab revert /etc/office.toml" in page(replace(LAB, path="/etc/office.toml"))
    for commands in planning.commands(LAB, wanted(), vcs.driver("subversion")).values():
        assert all(f"    {command}\n" in text for command in commands)


def test_folders_of_services_are_named_with_what_is_made_and_opened_on_the_way() -> None:
    for host in ("server", "proxy"):
        ends = {row[0]: row[1:] for row in rows(host, page())}
        (made,) = [
            ends[what] for what in ends if "what is missing on the way there" in what and "cache" not in what
        ]
        assert "those on the way that were made" in made[0]
        assert any("mode 0710" in what for what in ends)
    (filled,) = [row for row in rows("proxy", page()) if "filled and purged" in row[0]]
    assert filled[1:] == ["the whole cache is emptied when its proxy is stopped", "35 s"]
    assert any(
        "never taken" in row[0] and "/var/lib/branchlab/made" in row[1] for row in rows("proxy", page())
    )
    own = page(replace(LAB, hosts=(SERVER, replace(PROXY, services=None), LAB.hosts[2])))
    assert not any("0710" in row[0] for row in rows("proxy", own))


def test_every_file_that_stays_is_named() -> None:
    text = page()
    for host, places in {"server": ["/run/branchlab", "/var/lib/branchlab/made"], "desk": []}.items():
        told = [row for row in rows(host, text) if "leases" in row[0]]
        assert [("taken-back.jsonl" in row[1], "branchlab revert" in row[2]) for row in told] == [
            (True, True)
        ]
        assert "branchlab-run-UID" in told[0][0]
        for place in places:
            assert place in of(host, text)
    assert "/run/branchlab" not in of("desk", text)
    assert "`branchlab-UID`" in of("desk", text)


def test_what_is_not_done_is_not_on_the_page() -> None:
    text = page(lines=(AS_IT_IS,), states=(DISABLED,))
    assert not any("the line towards" in row[0] for row in rows("server", text))
    assert "Nothing: neither a line nor a cache is changed." in text
    assert "--agree" not in text
    assert not any("filled and purged" in row[0] for row in rows("proxy", text))
    assert any("filled and purged" in row[0] for row in rows("proxy", page()))
    own = replace(PROXY, services=None)
    assert not any(
        "Apache" in row[0] for row in rows("proxy", page(replace(LAB, hosts=(SERVER, own, LAB.hosts[2]))))
    )


@pytest.mark.parametrize(
    ("cache", "named"),
    [
        (Cache(kind="folder", folder="/p4p", owns=True), "/p4p"),
        (
            Cache(kind="command", list=("tool", "ls"), purge=("tool", "rm")),
            "the cache that `tool ls` lists",
        ),
    ],
)
def test_where_objects_name_no_url_nobody_is_told_that_those_of_others_stay(cache: Cache, named: str) -> None:
    """Field fault: the page promised it of a folder, all of which goes, and called a command's cache None."""
    lab = replace(LAB, hosts=(SERVER, replace(PROXY, services=None, cache=cache), LAB.hosts[2]))
    text = page(lab)
    never = text.split("## What is never touched")[1].split("\n## ")[0]
    assert "Objects of others in" not in never
    assert f"Not so in {named}, where objects name no URL" in never
    assert any(
        row[0] == f"objects, of others too, filled and purged in {named}" for row in rows("proxy", text)
    )
    assert "None" not in text
    assert "Objects of others in /var/cache/lab: only those" in page()
    assert "cache" not in page(states=(DISABLED,)).split("## What is never touched")[1].split("\n## ")[0]


def test_a_router_holds_the_line_and_a_name_breaks_no_table() -> None:
    router = Host(
        name="router", role=Role.ROUTER, ssh="nowhere.invalid", root="direct", address="198.51.100.3"
    )
    text = page(replace(LAB, hosts=(*LAB.hosts, router)))
    assert rows("router", text)[0][0].startswith("the line towards")
    assert not any(row[0].startswith("the line towards") for row in rows("server", text))
    odd = replace(SERVER, services="/srv/a|b")
    assert "/srv/a\\|b/svn-server" in page(replace(LAB, hosts=(odd, *LAB.hosts[1:])))


def test_what_cannot_be_run_has_no_page() -> None:
    with pytest.raises(BadInput, match="has no place for it"):
        page(replace(LAB, hosts=(replace(SERVER, services=None), *LAB.hosts[1:])))
    with pytest.raises(BadInput, match="attempts"):
        page(attempts=0)
    assert changes.WATCHER_S > 0


def test_a_repository_of_the_users_own_is_told_how_many_revisions_come() -> None:
    given = {"data": None, "repository": "http://{server}/svn/web/trunk"}
    assert "nothing in it is changed" in page(operations=("get", "history"), **given)
    place = "http://{server}/svn/web/branchlab"
    text = page(operations=("get", "check-in"), scratch=place, **given)
    own = wanted(operations=("get", "check-in"), scratch=place, **given)
    assert f"{planning.revisions(own)} revisions" in text
    assert place in text
    assert "A refill of the cache" in text
    calm = {"states": (DISABLED,), "operations": ("check-in",)}
    assert "A refill" not in page(scratch=place, **calm, **given)


@pytest.mark.parametrize(
    ("place", "server", "desk"),
    [
        ("server", "the line towards", None),
        ("office", None, "this host's own line, not shared, towards 198.51.100.1 limited"),
        ("senders", "the line (download) towards", "this host's own line (upload), not shared, towards"),
    ],
)
def test_whoever_holds_a_line_has_it_on_the_page(place: str, server: str | None, desk: str | None) -> None:
    text = page(replace(LAB, line=place))
    for host, told in (("server", server), ("desk", desk)):
        limits = [row[0] for row in rows(host, text) if "limited (tc" in row[0]]
        assert len(limits) == (told is not None)
        assert told is None or limits[0].startswith(told)


def test_clients_that_work_at_the_same_moment_are_named_and_others_left_alone() -> None:
    desks = [replace(DESK, name=f"desk-{n}", address=f"198.51.100.1{n}", address6=None) for n in (1, 2, 3)]
    text = page(replace(LAB, hosts=(SERVER, PROXY, *desks)), clients=2)
    assert "- Clients: desk-1, desk-2, which do each operation at the same moment" in text
    assert any("working copies" in row[0] for row in rows("desk-2", text))
    assert not any("working copies" in row[0] for row in rows("desk-3", text))
    assert "Clients:" not in page()
