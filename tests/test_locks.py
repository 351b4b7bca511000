"""Who holds a host: the second session is told, dead ones are taken back, and everything is accounted for."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from netns import ROOT, Agent, FailedError

from lab import agents, embedded, machines
from lab.embedded import Embedded
from lab.errors import AgentRefused, HostTrouble, LabError
from lab.rig import checking
from lab.rig.hosts import connected, owner
from lab.stop import Stop
from ssh_agents import account, files, protocol
from ssh_agents import lease as leases
from ssh_agents.lease import Lease

ALICE = {"user": "alice", "controller": "desk-7", "run": "20261130-140200-abcd", "session": "a"}
BOB = {"user": "bob", "controller": "desk-8", "session": "b"}


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + 50
    while not met():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


class Host:
    """A host with places of its own for leases, scratch folders and its journal; agents are started as asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places = {name: folder / name for name in ("run", "tmp", "bin")}
        for place in self.places.values():
            place.mkdir(mode=0o700)
        logger = self.places["bin"] / "logger"
        logger.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {folder}/journal\n')
        logger.chmod(0o755)
        self.code = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
            f"from ssh_agents import private; private.folder = lambda: {str(self.places['run'])!r}\n"
            "from ssh_agents.__main__ import main; sys.exit(main())"
        )
        self._agents: list[Agent] = []

    def agent(self, *words: str) -> Agent:
        path = f"{self.places['bin']}:{os.environ['PATH']}"
        environment = ["env", f"TMPDIR={self.places['tmp']}", f"PATH={path}"]
        made = Agent([*environment, sys.executable, "-I", "-S", "-c", self.code, *words])
        self._agents.append(made)
        return made

    def journal(self) -> list[str]:
        path = self.folder / "journal"
        return path.read_text().splitlines() if path.exists() else []

    def leases(self) -> list[Lease]:
        return [Lease(str(path)) for path in sorted(self.places["run"].glob("lease-*"))]

    def scratch(self) -> list[Path]:
        return sorted(self.places["tmp"].glob("branchlab-*/*"))

    def killed_with_its_watcher(self, agent: Agent) -> Lease:
        """As when memory runs out: nobody is left to take anything back."""
        (lease,) = self.leases()
        pid, start = map(int, Path(lease.path("watching")).read_text().split())
        os.kill(pid, signal.SIGKILL)
        until(lambda: leases.started_at(pid) != start)
        agent.kill()
        return lease

    def close(self) -> None:
        for agent in self._agents:
            agent.close()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("first", ["", "privileged"])
@pytest.mark.parametrize("second", ["", "privileged"])
def test_the_second_is_told_who_has_it(host: Host, first: str, second: str) -> None:
    mine, other = host.agent(*first.split()), host.agent(*second.split())
    mine.ask("lease.open", lease_s=22, owner={**ALICE, "purpose": "Do we need\nthe proxy?"})
    with pytest.raises(FailedError, match="busy") as refused:
        other.ask("lease.open", lease_s=30, owner=BOB)
    text = refused.value.text
    assert "alice on desk-7, run 20261130-140200-abcd (Do we need?the proxy?)" in text
    assert f"since {account.now()[:11].replace('T', ' ')}" in text
    assert "ends by itself within 27 s" in text or "within 26 s" in text
    assert len(host.leases()) == 1
    mine.ask("lease.close")
    assert other.ask("lease.open", lease_s=30, owner=BOB)


def test_both_agents_of_one_session_and_a_host_named_twice_do_not_lock_each_other(host: Host) -> None:
    for way in ((), ("privileged",), ("privileged",)):
        host.agent(*way).ask("lease.open", lease_s=30, owner=ALICE)
    assert len(host.leases()) == 3


def test_a_lease_that_lapsed_locks_nobody_out(host: Host) -> None:
    mine = host.agent()
    mine.ask("lease.open", lease_s=3, owner=ALICE)
    mine.ask("files.scratch", name="a")
    os.kill(mine.pid, signal.SIGSTOP)
    try:
        until(lambda: not any(lease.alive for lease in host.leases()))
        assert host.agent().ask("lease.open", lease_s=30, owner=BOB)
        assert not host.scratch()
    finally:
        os.kill(mine.pid, signal.SIGCONT)


def test_an_owner_is_checked(host: Host) -> None:
    agent = host.agent()
    for wrong in ({"name": "alice"}, {"user": 7}, "alice"):
        with pytest.raises(FailedError, match="bad-request"):
            agent.ask("lease.open", lease_s=30, owner=wrong)
    assert not host.leases()


def test_what_a_dead_session_left_goes_before_the_next_begins(host: Host) -> None:
    first = host.agent()
    first.ask("lease.open", lease_s=300, owner=ALICE)
    Path(first.ask("files.scratch", name="a")["path"], "kept").write_text("x")
    host.killed_with_its_watcher(first)
    assert host.scratch()
    second = host.agent()
    (found,) = second.ask("leases")["leases"]
    assert (found["alive"], found["who"]) == (False, "alice on desk-7, run 20261130-140200-abcd")
    second.ask("lease.open", lease_s=30, owner=BOB)
    assert not host.scratch()
    assert [account.owner_of(lease)["user"] for lease in host.leases()] == ["bob"]


def test_what_cannot_be_put_back_is_not_built_on(host: Host) -> None:
    first = host.agent()
    first.ask("lease.open", lease_s=300, owner=ALICE)
    path = Path(first.ask("files.scratch", name="a")["path"])
    precious = path.rename(host.folder / "precious")
    path.symlink_to(precious)  # somebody moved it
    lease = host.killed_with_its_watcher(first)
    second = host.agent()
    with pytest.raises(
        FailedError, match=r"failed: an earlier session left.*scratch could not be taken back"
    ):
        second.ask("lease.open", lease_s=30, owner=BOB)
    assert (precious / files.MARK).exists()
    path.unlink()
    second.ask("lease.open", lease_s=30, owner=BOB)
    assert not Path(lease.folder).exists()
    assert (precious / files.MARK).exists()


@pytest.mark.parametrize("way", ["", "privileged"])
def test_revert_asks_before_it_takes_from_the_living(host: Host, way: str) -> None:
    mine, other = host.agent(), host.agent(*way.split())
    mine.ask("lease.open", lease_s=300, owner=ALICE)
    path = mine.ask("files.scratch", name="a")["path"]
    running = mine.start("command", argv=["sleep", "600"], timeout_s=900)
    running.event()
    with pytest.raises(FailedError, match="busy: this host is held by alice on desk-7"):
        other.ask("revert", owner=BOB)
    assert Path(path).exists()
    assert mine.ask("lease.renew")
    assert other.ask("revert", owner=BOB, force=True) == {"undone": [f"scratch folder {path} removed"]}
    assert other.ask("revert", owner=BOB) == {"undone": []}
    assert not host.scratch()
    # What ran under that lease is ended, and its owner is told.
    assert running.done()["cancelled"]
    with pytest.raises(FailedError, match="lapsed"):
        mine.ask("lease.renew")


@pytest.mark.parametrize("way", ["", "privileged"])
def test_after_a_reboot_only_folders_are_removed_and_the_rest_is_told(host: Host, way: str) -> None:
    first = host.agent()
    first.ask("lease.open", lease_s=300, owner=ALICE)
    path = Path(first.ask("files.scratch", name="a")["path"])
    lease = host.killed_with_its_watcher(first)
    leases.write(lease.path("lease.json"), json.dumps({**lease.about(), "boot_id": "another"}))
    second = host.agent(*way.split())
    (found,) = second.ask("leases")["leases"]
    assert (found["alive"], found["earlier_boot"]) == (False, True)
    assert found["what"] == [f"scratch folder {path} made"]
    lease.add({"kind": "line", "device": "eth0"})  # eth0 is another device by now
    text = f"{lease.name} is of an earlier boot (line): forgotten, not replayed"
    if way:
        assert second.ask("revert") == {"undone": [f"scratch folder {path} removed", text]}
    else:
        second.ask("lease.open", lease_s=30, owner=BOB)
    assert not path.exists()
    assert not Path(lease.folder).exists()
    assert (
        host.journal()[-1]
        == f"-t branchlab -- {'somebody' if way else 'bob on desk-8'}: {text} [left by an earlier session]"
    )


def test_a_scratch_folder_that_no_lease_tells_of_is_told_and_goes_with_revert(host: Host) -> None:
    """Agent and watcher killed, and the leases removed by hand; nothing but the mark says whose it is."""
    first = host.agent()
    first.ask("lease.open", lease_s=300, owner=ALICE)
    path = Path(first.ask("files.scratch", name="a")["path"])
    assert first.ask("leases")["unpromised"] == []
    shutil.rmtree(host.killed_with_its_watcher(first).folder)
    (path.parent / "not-marked").mkdir()
    at_another_host = path.parent / "c"  # of this machine: its leases are not seen from here
    at_another_host.mkdir(mode=0o700)
    (at_another_host / files.MARK).write_text(json.dumps({"boot_id": leases.boot_id(), "net": "0-0"}))
    elsewhere = host.places["run"] / "lease-of-another-network"
    elsewhere.mkdir()
    lease = Lease(str(elsewhere))
    leases.write(lease.path("lease.json"), json.dumps({"net": "0-0", "boot_id": leases.boot_id()}))
    others = path.parent / "b"
    others.mkdir(mode=0o700)
    shutil.copy(path / files.MARK, others)
    lease.add({"kind": "scratch", "path": str(others)})
    second = host.agent()
    found = second.ask("leases")
    assert (found["leases"], found["unpromised"]) == (
        [],
        [{"kind": "scratch", "what": f"scratch folder {path}"}],
    )
    assert second.ask("revert") == {"undone": [f"scratch folder {path} removed"]}
    assert second.ask("revert") == {"undone": []}
    assert sorted(one.name for one in others.parent.iterdir()) == ["b", "c", "not-marked"]
    (at_another_host / files.MARK).write_text(json.dumps({"boot_id": "another", "net": "0-0"}))
    assert second.ask("revert") == {"undone": [f"scratch folder {at_another_host} removed"]}


def test_every_change_and_its_end_is_one_line_in_the_journal(host: Host) -> None:
    agent = host.agent()
    lease = agent.ask("lease.open", lease_s=300, owner=ALICE)["lease"]
    assert host.journal() == []
    path = agent.ask("files.scratch", name="a")["path"]
    agent.ask("files.scratch", name="a")
    who = "-t branchlab -- alice on desk-7, run 20261130-140200-abcd:"
    made = f"{who} scratch folder {path} made [{lease}]"
    assert host.journal() == [made]
    agent.ask("files.remove", path=path)
    agent.ask("lease.close")
    assert host.journal() == [made, f"{who} gone already: scratch folder {path} made [{lease}]"]
    second = host.agent()
    other = second.ask("lease.open", lease_s=300, owner=BOB)["lease"]
    second.ask("files.scratch", name="b")
    second.kill()
    until(lambda: not host.leases())
    removed = f"scratch folder {path[:-1]}b removed"
    assert host.journal()[-1] == f"-t branchlab -- bob on desk-8: {removed} [{other}, its agent ended]"


def test_a_watcher_that_is_told_to_end_takes_back_first(host: Host) -> None:
    """As at the end of a login session whose processes are all ended."""
    agent = host.agent()
    opened = agent.ask("lease.open", lease_s=300, owner=ALICE)
    agent.ask("files.scratch", name="a")
    pid, start = map(int, Path(opened["folder"], "watching").read_text().split())
    os.kill(pid, signal.SIGTERM)
    until(lambda: leases.started_at(pid) != start)
    assert not host.scratch()
    assert not host.leases()
    with pytest.raises(FailedError, match="lapsed"):
        agent.ask("lease.renew")


def test_words_for_changes() -> None:
    assert account.promised({"kind": "line", "device": "eth0\n"}) == "line on eth0? limited"
    assert account.promised({"kind": "other"}) == "changed: other"
    assert account.promised({"kind": "line", "what": "told so"}) == "told so"
    assert account.who({}) == "somebody"


def test_an_undo_of_a_scratch_folder_removes_nothing_else(tmp_path: Path) -> None:
    base = tmp_path / f"branchlab-{os.getuid()}"
    (base / "mine").mkdir(parents=True)
    (tmp_path / "other" / "x").mkdir(parents=True)
    (base / "link").symlink_to(tmp_path / "other")
    (tmp_path / "way").symlink_to(tmp_path)
    (tmp_path / "other" / files.MARK).touch()
    for path in (
        tmp_path / "other",
        base,
        base / "link",
        base / "mine" / "..",
        tmp_path / "way" / base.name / "mine",
        "",
        base.name,
    ):
        with pytest.raises(protocol.Refused):
            files.undo({"kind": "scratch", "path": str(path)})
    assert (tmp_path / "other" / "x").exists()
    # Made, but not marked yet when everything died; or made anew by a command that outlived its lease.
    (base / "mine" / "x").mkdir()
    assert files.undo({"kind": "scratch", "path": str(base / "mine")}).endswith("mine removed")
    assert files.undo({"kind": "scratch", "path": str(base / "mine")}) == ""
    (base / "mine").mkdir(parents=True)
    base.chmod(0o777)  # others may have put it there
    with pytest.raises(protocol.Refused):
        files.undo({"kind": "scratch", "path": str(base / "mine")})


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Others get to what lies in it; pytest's own are private."""
    with tempfile.TemporaryDirectory(prefix="branchlab-test-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_users_watcher_is_that_users_and_so_is_its_code(open_folder: Path) -> None:
    uid = 64123
    place = open_folder / "tmp"
    place.mkdir()
    os.chown(place, uid, uid)
    bundle = open_folder / "agent.py"
    bundle.write_bytes(agents.bundle().source)
    start = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "env", f"TMPDIR={place}"]
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    agent = Agent([*start, python, "-I", "-S", str(bundle)])
    opened = agent.ask("lease.open", lease_s=300, owner=ALICE)
    folder = Path(opened["folder"])
    assert folder.parent == place / f"branchlab-run-{uid}"
    for one in (folder, folder.parent):
        assert (one.stat().st_uid, stat.S_IMODE(one.stat().st_mode)) == (uid, 0o700)
    pid = int((folder / "watching").read_text().split()[0])
    assert Path(f"/proc/{pid}").stat().st_uid == uid
    assert str(folder / "agent.py").encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    scratch = Path(agent.ask("files.scratch", name="a")["path"])
    # A folder that its own user may not write into any more.
    made = f"mkdir -p {scratch}/a/b; touch {scratch}/a/b/c; chmod 500 {scratch}/a/b {scratch}/a"
    agent.ask("command", argv=["sh", "-c", made], timeout_s=60)
    agent.kill()
    until(lambda: not folder.exists())
    assert not scratch.exists()
    agent.close()


# ---- labs


@pytest.fixture(scope="module")
def labs() -> Iterator[tuple[Embedded, Embedded]]:
    with embedded.up() as one, embedded.up() as two:
        yield one, two


def held(checked: Any) -> list[str]:
    return [one.host for one in checked if one.text.startswith("held by") and not one.ok]


@pytest.mark.lab
def test_two_labs_side_by_side_do_not_lock_each_other_and_the_second_of_one_is_told(
    labs: tuple[Embedded, Embedded],
) -> None:
    one, two = labs
    by = owner("r1", "Do we need it?")
    with connected(one.lab, Stop(), owned_by=by) as hosts, connected(two.lab, Stop()) as others:
        assert [len(host.leases) for host in (*hosts, *others)] == [2] * 6
        with (
            pytest.raises(AgentRefused, match=r"held by .*, run r1 \(Do we need it\?\)") as refused,
            connected(one.lab, Stop()),
        ):
            pass
        assert (refused.value.kind, refused.value.host) == ("busy", "server")
        assert "--force" in refused.value.advice
        assert held(machines.check(one.lab, None)) == ["server", "proxy", "client"]
        with pytest.raises(HostTrouble, match="server: this host is held by"):
            machines.revert(one.lab)
        for host in (*hosts, *others):
            for lease in host.leases:
                lease.check()
    assert held(machines.check(one.lab, None)) == []
    assert machines.revert(one.lab) == {"server": [], "proxy": [], "client": []}


@pytest.mark.lab
def test_a_forced_revert_ends_the_other_run_and_twice_in_a_row_succeeds(
    labs: tuple[Embedded, Embedded],
) -> None:
    lab = labs[0].lab
    with pytest.raises(LabError, match="lease ran out"), connected(lab, Stop(), lease_s=3) as hosts:  # noqa: PT012
        path = hosts[0].agent.ask("files.scratch", {"name": "x"})["path"]
        assert machines.revert(lab, force=True) == {
            hosts[0].name: [f"scratch folder {path} removed"],
            hosts[1].name: [],
            hosts[2].name: [],
        }
        assert machines.revert(lab) == {host.name: [] for host in hosts}
        until(lambda: not any(lease.alive for host in hosts for lease in host.leases))


@pytest.mark.lab
def test_what_was_changed_comes_back_to_the_controller(labs: tuple[Embedded, Embedded]) -> None:
    with connected(labs[0].lab, Stop()) as hosts:
        server, client = hosts[0], hosts[-1]
        path = client.agent.ask("files.scratch", {"name": "x"})["path"]
        peers = [{"name": client.name, "addresses": client.addresses}]
        server.privileged.ask("traffic.start", {"peers": peers})
        told = [(one.host, one.what, one.undone) for host in hosts for one in host.account()]
        counted = "bytes counted per host (nftables: table inet branchlab)"
        assert told == [
            (server.name, counted, False),
            (client.name, f"scratch folder {path} made", False),
        ]
        assert [list(host.account()) for host in hosts] == [[]] * 3
    told = [(one.host, one.what, one.undone) for host in hosts for one in host.account()]
    assert told == [
        (server.name, "traffic counters (table inet branchlab) removed", True),
        (client.name, f"scratch folder {path} removed", True),
    ]


def test_check_tells_what_the_dead_left() -> None:
    found = {
        "lease": "lease-x",
        "alive": False,
        "earlier_boot": False,
        "who": "alice on desk-7",
        "held": "alice on desk-7; ends",
        "what": ["line on eth0 limited"],
    }

    class Told:
        def ask(self, verb: str) -> dict[str, Any]:
            return {"leases": [found, {**found, "lease": "lease-y", "earlier_boot": True}]}

    class One:
        name, root, agent = "server", Told(), Told()

    texts = [one.text for one in checking._left(One())]  # type: ignore[arg-type]
    assert texts == [
        "left by alice on desk-7: line on eth0 limited. The next run takes it back",
        "before the last start here alice on desk-7 wrote down: line on eth0 limited. Of that only folders are left",
    ]
