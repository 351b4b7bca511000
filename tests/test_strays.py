"""What nobody promises to take back any more is found and taken away: services, and notes that cannot be read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import two_apaches
from netns import OFFICE, SERVER, Agent, FailedError, Net, office
from test_watch import Toys, place, toys
from two_apaches import place as short_place

from ssh_agents import lease as leases
from ssh_agents import made
from ssh_agents.lease import Lease

__all__ = ["place", "toys"]
needs_apache = pytest.mark.skipif(bool(two_apaches.missing()), reason="missing: " + two_apaches.missing())
lab = pytest.mark.lab
FOREIGN = (
    "qdisc add dev eth0 root handle 1: htb default 10",
    "class add dev eth0 parent 1: classid 1:10 htb rate 50mbit",
    f"filter add dev eth0 parent 1: protocol ip prio 3 u32 match ip dst {OFFICE[0]} flowid 1:10",
)


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_place() as path:
        yield path


def promised(toys: Toys, place: Path, *names: str) -> tuple[Agent, list[Path]]:
    """An agent with a lease of a minute, under which these files were made."""
    agent = toys.agent()
    agent.ask("lease.open", lease_s=60.0, owner={"user": "eve"})
    files = [place.parent / name for name in names]
    for file in files:
        agent.ask("toy.make", path=str(file))
    return agent, files


def only_lease(place: Path) -> Lease:
    (found,) = place.glob("lease-*")
    return Lease(str(found))


def abandoned(agent: Agent, of: Lease) -> None:
    """Agent and watcher killed at once."""
    watcher = int(Path(of.path("watching")).read_text().split()[0])
    os.kill(watcher, 9)
    agent.kill()


# --- notes that cannot be read


@pytest.mark.parametrize("text", ["", '{"kind": "to', "null", "[1]", "3"])
def test_a_promise_that_cannot_be_read_keeps_no_other_from_being_taken_back(
    toys: Toys, place: Path, text: str
) -> None:
    agent, (one, two) = promised(toys, place, "one", "two")
    lease = only_lease(place)
    abandoned(agent, lease)
    Path(lease.path("000001.json")).write_text(text)
    other = toys.agent()
    (listed,) = other.ask("leases")["leases"]
    assert len(listed["entries"]) == 1
    undone = other.ask("revert", owner={})["undone"]
    assert undone[0] == "removed two"
    assert any("could not be read" in told and "000001.json" in told for told in undone)
    assert (one.exists(), two.exists(), toys.leases()) == (True, False, [])
    assert other.ask("revert", owner={})["undone"] == []


def test_a_change_of_a_newer_branchlab_is_named_and_stays_written_down(toys: Toys, place: Path) -> None:
    agent, (one,) = promised(toys, place, "one")
    lease = only_lease(place)
    abandoned(agent, lease)
    Path(lease.path("000007.json")).write_text(json.dumps({"kind": "sysctl", "what": "x set"}))
    other = toys.agent()
    for verb, more in (("revert", {}), ("revert", {"force": True}), ("lease.open", {"lease_s": 5.0})):
        with pytest.raises(FailedError) as refused:
            other.ask(verb, owner={}, **more)
        assert "`sysctl`" in str(refused.value)
        assert "newer" in str(refused.value)
        assert "KeyError" not in str(refused.value)
    assert not one.exists()
    assert Path(lease.path("000007.json")).exists()


def test_a_lease_of_which_nobody_knows_whose_it_is_is_told_and_removed(toys: Toys, place: Path) -> None:
    agent, _ = promised(toys, place, "one")
    lease = only_lease(place)
    abandoned(agent, lease)
    Path(lease.path("lease.json")).write_text('{"owner": ')
    other = toys.agent()
    (told,) = (one for one in other.ask("leases")["unpromised"] if one["kind"] == "lease")
    assert lease.folder in told["what"]
    assert any(lease.folder in text for text in other.ask("revert", owner={})["undone"])
    assert toys.leases() == []


def test_the_lease_of_an_agent_that_lives_is_none_of_these(toys: Toys, place: Path) -> None:
    agent, _ = promised(toys, place, "one")
    Path(only_lease(place).path("lease.json")).write_text("")
    assert leases.broken() == []
    agent.kill()


# --- services


def started(agent: Agent, folder: Path) -> dict[str, object]:
    options = {"allow": [OFFICE[0]], "origins": [SERVER], "cache": str(folder / "cache")}
    agent.ask("lease.open", lease_s=60.0, owner={"user": "eve"})
    return agent.ask(
        "service.start", kind="caching-proxy", folder=str(folder / "proxy"), port=8099, options=options
    )


def running(folder: Path) -> list[str]:
    found = subprocess.run(
        ["pgrep", "-f", "--", f"{folder}/apache-"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


def without_lease(hosts: Net, folder: Path) -> Agent:
    """A proxy whose agent, watcher and lease are gone; another agent of that host."""
    agent = hosts.agent("server", privileged=True)
    started(agent, folder)
    (listed,) = agent.ask("leases")["leases"]
    lease = Lease(listed["folder"])
    abandoned(agent, lease)
    shutil.rmtree(lease.folder)
    assert running(folder / "proxy")
    return hosts.agent("server", privileged=True)


@lab
@needs_apache
def test_a_service_that_nobody_promises_to_end_is_told_and_ended(folder: Path) -> None:
    with office() as hosts:
        other = without_lease(hosts, folder)
        (told,) = other.ask("leases")["unpromised"]
        assert told["kind"] == "service"
        assert str(folder / "proxy") in told["what"]
        undone = other.ask("revert", owner={})["undone"]
        assert any("stopped the service" in text for text in undone)
        assert running(folder / "proxy") == []
        assert not (folder / "proxy").exists()
        assert other.ask("revert", owner={})["undone"] == []
        assert started(other, folder)["pid"]
        other.ask("lease.close")


@lab
@needs_apache
def test_forget_ends_what_still_runs_before_its_folder_goes(folder: Path) -> None:
    with office() as hosts:
        other = without_lease(hosts, folder)
        other.ask("forget", services=[str(folder / "proxy")], caches=[str(folder / "cache")])
        assert running(folder / "proxy") == []
        assert not (folder / "proxy").exists()


@lab
@needs_apache
def test_after_a_power_cut_folders_and_modes_are_taken_back_by_revert(folder: Path) -> None:
    keep = folder / "branchlab-keep"
    keep.mkdir(mode=0o700)
    with office() as hosts:
        other = without_lease(hosts, keep)
        for pid in running(keep / "proxy"):
            os.kill(int(pid), 9)
        assert keep.stat().st_mode & 0o777 == 0o710
        for about in [one for one in made.every() if one["path"].startswith(str(keep))]:
            made.noted({**about, "boot_id": "an earlier one", "net": "1"})
        undone = other.ask("revert", owner={})["undone"]
        assert any(str(keep / "proxy") in text for text in undone)
        assert keep.stat().st_mode & 0o777 == 0o700
        assert not (keep / "proxy").exists()


# --- others' queues, and the journal


@lab
def test_others_queues_come_back_on_a_device_that_has_another_name_by_now() -> None:
    with office() as hosts:
        for command in FOREIGN:
            hosts.run("server", "tc", *command.split())
        agent = hosts.agent("server", privileged=True)
        agent.ask("lease.open", lease_s=60.0, owner={})
        asked = {"place": "server", "office": OFFICE, "server": [SERVER]}
        tree = agent.ask("line.check", **asked)["tree"]
        agent.ask("line.apply", **asked, exempt=[], download_bps=128_000, upload_bps=64_000, replace=tree)
        hosts.run("server", "ip", "link", "set", "eth0", "down")
        hosts.run("server", "ip", "link", "set", "eth0", "name", "wan0")
        hosts.run("server", "ip", "link", "set", "wan0", "up")
        (undone,) = agent.ask("lease.close")["undone"]
        assert "put back on wan0" in undone
        assert "rate 50Mbit" in hosts.run("server", "tc", "class", "show", "dev", "wan0")
        assert "0a4d" in hosts.run("server", "tc", "filter", "show", "dev", "wan0")


@lab
def test_others_queues_on_a_device_that_is_gone_are_told_with_what_they_were() -> None:
    with office() as hosts:
        for command in FOREIGN:
            hosts.run("server", "tc", *command.split())
        agent = hosts.agent("server", privileged=True)
        agent.ask("lease.open", lease_s=60.0, owner={})
        asked = {"place": "server", "office": OFFICE, "server": [SERVER]}
        tree = agent.ask("line.check", **asked)["tree"]
        agent.ask("line.apply", **asked, exempt=[], download_bps=128_000, upload_bps=64_000, replace=tree)
        hosts.run("server", "ip", "link", "delete", "eth0")
        undone = " ".join(agent.ask("lease.close")["undone"])
        assert "htb 1: with 1 class and 1 filter (u32)" in undone
        assert "it could not be put back" in undone


@lab
def test_every_change_of_the_line_is_told_with_its_rate() -> None:
    with office() as hosts:
        agent = hosts.agent("server", privileged=True)
        agent.ask("lease.open", lease_s=60.0, owner={})

        def told(rate: int | None) -> list[str]:
            up = None if rate is None else rate // 2
            asked = {"place": "server", "office": OFFICE, "server": [SERVER], "exempt": []}
            talk = agent.start("line.apply", **asked, download_bps=rate, upload_bps=up)
            return [change["what"] for change in talk.changes()]

        assert "line on eth0: 64/128 kbit/s" in told(128_000)
        assert "line on eth0: 1/2 Mbit/s" in told(2_000_000)
        assert told(None) == ["line on eth0 taken off"]
        assert told(None) == []
        told(128_000)
        lifted = agent.start("line.lift")
        assert [change["what"] for change in lifted.changes()] == ["line on eth0 taken off"]
        assert agent.start("line.lift").changes() == []
