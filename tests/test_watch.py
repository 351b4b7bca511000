"""Leases and their watcher, with real agents that are killed, cut off or left alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from netns import CODE, OFFICE, ROOT, SERVER, Agent, FailedError, Net, net, office

from ssh_agents import lease as leases
from ssh_agents import private, protocol, session, watch
from ssh_agents.lease import Lease
from ssh_agents.memory import Memory

NO_CALL = protocol.Call(
    say=lambda event, data: None,
    cancelled=lambda: False,
    wait_cancelled=lambda seconds: False,
    promise=lambda entry: "",
    keep=lambda name: None,
)
# An agent whose one undo removes a file, and says that it did; it needs no network.
TOY = f"""
import os, sys
import signal, threading
sys.path.insert(0, {str(ROOT)!r})
from ssh_agents import __main__ as agent
from ssh_agents import tool
def undo(entry):
    if not os.path.exists(entry["path"]):
        return ""
    if entry.get("locked") and os.path.exists(entry["locked"]):
        raise OSError("locked")
    os.unlink(entry["path"])
    return "removed " + os.path.basename(entry["path"])
def make(args, call):
    name = call.promise(dict(args, kind="toy"))
    if args.get("stop"):
        # To this thread: another one could take it, and this one go on for a moment.
        signal.pthread_kill(threading.get_ident(), 19)
    open(args["path"], "w").close()
    return {{"name": name}}
def slowly(args, call):
    call.promise(dict(args, kind="toy"))
    # Itself, and what it runs in turn, as a script around a tool does.
    tool.run(["sh", "-c", "touch %s.under-way; sh -c 'sleep 4; touch %s'" % (args["path"], args["path"])])
agent.UNDO.clear()
agent.UNDO["toy"] = undo
agent.PRIVILEGED["toy.make"] = make
agent.PRIVILEGED["toy.slowly"] = slowly
sys.exit(agent.main())
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where leases are kept, apart from everybody else's."""
    base = tmp_path / "run"
    base.mkdir(mode=0o700)
    monkeypatch.setattr(private, "folder", lambda: str(base))
    return base


class Toys:
    """Agents with the toy undo, keeping their leases in a folder of their own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        # The watcher is started from the bundle's text: what runs is what was given.
        self.text = TOY.replace(
            "import os, sys", f"import os, sys\nBUNDLE_TEXT = open({str(place / 'toy.py')!r}).read()", 1
        ).replace(
            "def undo",
            f"from ssh_agents import private\nprivate.folder = lambda: {str(place)!r}\ndef undo",
            1,
        )
        (place / "toy.py").write_text(self.text)
        self._agents: list[Agent] = []

    def agent(self) -> Agent:
        made = Agent([sys.executable, "-I", "-S", "-c", self.text, "privileged"])
        self._agents.append(made)
        return made

    def leases(self) -> list[str]:
        return [path.name for path in self.place.glob("lease-*")]

    def close(self) -> None:
        for agent in self._agents:
            agent.close()


@pytest.fixture
def toys(place: Path) -> Iterator[Toys]:
    made = Toys(place)
    yield made
    made.close()


def until(met: Callable[[], bool], timeout_s: float = 50) -> float:
    """Wait for something; how long that took."""
    began = time.monotonic()
    while not met():
        assert time.monotonic() - began < timeout_s, "it did not come"
        time.sleep(0.02)
    return time.monotonic() - began


def test_close_undoes_newest_first_and_ends_the_watcher(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    opened = agent.ask("lease.open", lease_s=30)
    pid, start = map(int, Path(opened["folder"], "watching").read_text().split())
    assert leases.started_at(pid) == start
    for name in ("one", "two"):
        agent.ask("toy.make", path=str(tmp_path / name))
    assert agent.ask("lease.close", lease=opened["lease"]) == {"undone": ["removed two", "removed one"]}
    assert not toys.leases()
    assert leases.started_at(pid) != start
    with pytest.raises(FailedError, match="lapsed"):
        agent.ask("lease.close", lease=opened["lease"])


def test_the_folder_is_private_and_the_watcher_runs_a_copy_in_it(toys: Toys) -> None:
    opened = toys.agent().ask("lease.open", lease_s=30)
    folder = Path(opened["folder"])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "agent.py").stat().st_mode & 0o777 == 0o600
    pid = int((folder / "watching").read_text().split()[0])
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert [str(folder / "agent.py").encode(), b"watch", str(folder / "lease.json").encode()] == words[3:6]
    # Outside the agent's session, and no child of it.
    assert os.getsid(pid) not in (os.getsid(0), pid)


def test_nothing_can_be_promised_without_a_lease(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    with pytest.raises(FailedError, match="lapsed: no lease is open"):
        agent.ask("toy.make", path=str(tmp_path / "one"))
    assert not (tmp_path / "one").exists()


def test_who_waits_for_a_turn_does_not_keep_a_folder_that_is_being_removed(place: Path) -> None:
    lease = session._made(30)
    folder = Path(lease.folder)
    assert sorted(item.name for item in folder.iterdir()) == ["deadline", "turn"]
    # As far as a removal has come when another process takes its turn.
    for item in folder.iterdir():
        item.unlink()
    with lease.turn():
        assert lease.gone
    folder.rmdir()


def test_a_renewal_replaces_a_watcher_that_was_killed(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    opened = agent.ask("lease.open", lease_s=300)
    watching = Path(opened["folder"], "watching")
    first = watching.read_text()
    agent.ask("lease.renew", lease=opened["lease"])
    assert watching.read_text() == first
    agent.ask("toy.make", path=str(tmp_path / "one"))
    pid, start = map(int, first.split())
    os.kill(pid, signal.SIGKILL)
    until(lambda: leases.started_at(pid) != start)
    agent.ask("lease.renew", lease=opened["lease"])
    assert watching.read_text() != first
    agent.process.kill()
    until(lambda: not toys.leases())
    assert not (tmp_path / "one").exists()


def test_kill_9_of_the_agent_undoes(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    agent.ask("lease.open", lease_s=300)
    agent.ask("toy.make", path=str(tmp_path / "one"))
    agent.kill()
    assert until(lambda: not (tmp_path / "one").exists()) < 5
    until(lambda: not toys.leases())


def test_the_end_of_input_undoes(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    agent.ask("lease.open", lease_s=300)
    agent.ask("toy.make", path=str(tmp_path / "one"))
    agent.close()
    assert not (tmp_path / "one").exists()
    assert not toys.leases()


def test_a_stopped_agent_lapses(toys: Toys, tmp_path: Path) -> None:
    """As on a host whose agent hangs: nobody renews, and nobody ends."""
    agent = toys.agent()
    agent.ask("lease.open", lease_s=2)
    agent.ask("toy.make", path=str(tmp_path / "one"))
    os.kill(agent.pid, signal.SIGSTOP)
    try:
        assert until(lambda: not (tmp_path / "one").exists()) < 7
    finally:
        os.kill(agent.pid, signal.SIGCONT)


def test_a_lease_lives_while_it_is_renewed_and_lapses_then(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    lease = agent.ask("lease.open", lease_s=2)["lease"]
    agent.ask("toy.make", path=str(tmp_path / "one"))
    for _ in range(10):
        time.sleep(0.3)
        agent.ask("lease.renew", lease=lease)
    assert (tmp_path / "one").exists()
    # Within lease + 5 s, and not before the lease ended.
    assert 1.5 < until(lambda: not (tmp_path / "one").exists()) < 7
    for verb in ("lease.renew", "lease.close"):
        with pytest.raises(FailedError, match="lapsed"):
            agent.ask(verb, lease=lease)
    with pytest.raises(FailedError, match="lapsed"):
        agent.ask("toy.make", path=str(tmp_path / "two"))
    until(lambda: not toys.leases())
    assert agent.ask("lease.open", lease_s=30)["lease"] != lease


def test_a_change_under_way_when_the_agent_was_killed_is_undone_too(toys: Toys, tmp_path: Path) -> None:
    """As by a tool that the agent had started, and that lives on."""
    agent = toys.agent()
    opened = agent.ask("lease.open", lease_s=300)
    agent.ask("toy.make", path=str(tmp_path / "one"))
    agent.kill()
    until(lambda: not (tmp_path / "one").exists())
    (tmp_path / "one").touch()
    until(lambda: not Path(opened["folder"]).exists())
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize("by", ["its watcher", "the next session"])
@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGSTOP])
def test_a_tool_that_outlives_its_agent_changes_nothing_after_the_undo(
    toys: Toys, tmp_path: Path, by: str, ends: int
) -> None:
    agent = toys.agent()
    agent.ask("lease.open", lease_s=2.0)
    agent.start("toy.slowly", path=str(tmp_path / "one"))
    until((tmp_path / "one.under-way").exists)
    if by != "its watcher":
        watcher = int((toys.place / toys.leases()[0] / "watching").read_text().split()[0])
        os.kill(watcher, signal.SIGKILL)
    os.kill(agent.pid, ends)
    try:
        if by != "its watcher":
            until(lambda: not Lease(str(toys.place / toys.leases()[0])).alive)
            toys.agent().ask("revert")
        until(lambda: toys.leases() == [])
        time.sleep(4)
        assert not (tmp_path / "one").exists()
    finally:
        os.kill(agent.pid, signal.SIGCONT) if ends == signal.SIGSTOP else None


def test_a_change_under_way_when_the_lease_lapsed_is_undone_too(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    opened = agent.ask("lease.open", lease_s=2)
    agent.ask("toy.make", path=str(tmp_path / "one"))
    until(lambda: not (tmp_path / "one").exists())
    (tmp_path / "one").touch()  # the change comes after its undo
    until(lambda: not Path(opened["folder"]).exists())
    assert not (tmp_path / "one").exists()


def _stopped(agent: Agent) -> bool:
    return Path(f"/proc/{agent.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_change_long_after_its_lease_is_taken_back_by_whoever_made_it(toys: Toys, tmp_path: Path) -> None:
    """The agent is stopped between promise and change; when it goes on, watcher and lease are gone."""
    agent = toys.agent()
    agent.ask("lease.open", lease_s=2)
    made = agent.start("toy.make", path=str(tmp_path / "one"), stop=True)
    until(lambda: _stopped(agent))
    until(lambda: not toys.leases())
    os.kill(agent.pid, signal.SIGCONT)
    with pytest.raises(FailedError, match="lapsed: the lease ran out"):
        made.done()
    assert not (tmp_path / "one").exists()


def test_who_is_stopped_with_his_turn_holds_up_nobody(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    folder = agent.ask("lease.open", lease_s=1)["folder"]
    agent.ask("toy.make", path=str(tmp_path / "one"))
    os.kill(agent.pid, signal.SIGSTOP)
    try:
        with Lease(folder).turn():  # as by an agent that was stopped while it wrote a promise
            assert until(lambda: not (tmp_path / "one").exists()) < 6
            assert toys.agent().ask("revert")["undone"] == []
    finally:
        os.kill(agent.pid, signal.SIGCONT)
    with pytest.raises(FailedError, match="lapsed"):
        agent.ask("toy.make", path=str(tmp_path / "two"))
    assert not (tmp_path / "two").exists()


def test_where_the_watcher_is_stopped_the_agent_takes_back(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    folder = agent.ask("lease.open", lease_s=2)["folder"]
    watcher = watch.found(Lease(folder))
    assert watcher is not None
    os.kill(watcher[0], signal.SIGSTOP)
    try:
        agent.ask("toy.make", path=str(tmp_path / "one"))
        assert until(lambda: not (tmp_path / "one").exists()) < 7
        until(lambda: not toys.leases())
    finally:
        os.kill(watcher[0], signal.SIGCONT)
    until(lambda: leases.started_at(watcher[0]) != watcher[1])


@pytest.mark.parametrize("ends", [False, True])
def test_a_folder_removed_by_hand_is_no_loss_while_the_agent_lives(
    toys: Toys, tmp_path: Path, ends: bool
) -> None:
    agent = toys.agent()
    folder = agent.ask("lease.open", lease_s=300)["folder"]
    agent.ask("toy.make", path=str(tmp_path / "one"))
    shutil.rmtree(folder)
    if ends:
        agent.close()
        assert not (tmp_path / "one").exists()
    else:
        until(lambda: not (tmp_path / "one").exists())


NO_ROOM = f"""
import os, subprocess, sys
sys.path.insert(0, {str(ROOT)!r})
from ssh_agents import lease, watch
how, base = sys.argv[1:]
os.makedirs(base + "/lease-x")
one = lease.Lease(base + "/lease-x")
lease.write(one.path("turn"), "")
lease.write(one.path("lease.json"), '{{"pid": 1}}')
for number in (1, 2):
    one.add({{"kind": "toy", "n": number}})
if how == "read-only":
    subprocess.run(["mount", "-o", "remount,ro", base], check=True)
try:
    while how != "read-only":
        with open("%s/%d" % (base, len(os.listdir(base))), "wb", buffering=0) as file:
            file.write(b"x" * 4096 * (how == "bytes"))
except OSError as error:
    print(error.errno, flush=True)
watch.AGAIN_S = 0.01
watch._lapse(one, {{"toy": lambda entry: print("undone", entry["n"]) or "toy"}}, "its agent ended")
print(one.gone)
"""


@pytest.mark.lab
@pytest.mark.parametrize("how", ["files", "bytes", "read-only"])
def test_undoing_needs_no_room_on_the_disk(tmp_path: Path, how: str) -> None:
    script = 'mount -t tmpfs -o nr_inodes=20,size=64k none "$4" && exec "$@"'
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", NO_ROOM, how, str(tmp_path)]
    argv[4] = script.replace("$4", str(tmp_path))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    twice = ["undone 2", "undone 1"] * 2
    assert done.stdout.splitlines() == ([] if how == "read-only" else ["28"]) + twice + [
        str(how != "read-only")
    ]


def test_what_another_session_promised_meanwhile_stays(place: Path) -> None:
    """An agent that takes back late, from memory, takes nothing from whoever came after it."""
    mine, others = (session._made(30) for _ in range(2))
    for lease in (mine, others):
        leases.write(lease.path("lease.json"), session._about(30, {}))
    held = others.hold()
    undone: list[object] = []
    memory = Memory(mine, dict.fromkeys(("line", "service"), lambda entry: str(undone.append(entry))))
    line, service = {"kind": "line", "exclusive": True}, {"kind": "service", "folder": "/a", "config": "1"}
    alone = {"kind": "service", "folder": "/b"}
    for entry in (line, service, alone):
        memory.add(entry)
    others.add({"kind": "line", "exclusive": True, "device": "eth1"})
    others.add({"kind": "service", "folder": "/a", "config": "2"})
    memory.taken_back(lambda entry, said: None, surely=[line])
    assert undone == [alone, line]
    assert (mine.gone, others.gone) == (True, False)
    os.close(held)


def test_a_lease_is_no_longer_than_ten_minutes(toys: Toys) -> None:
    with pytest.raises(FailedError, match=r"bad-request: a lease is 0.2 to 600 seconds, not 601"):
        toys.agent().ask("lease.open", lease_s=601)


def test_revert_takes_back_what_others_left_twice(toys: Toys, tmp_path: Path) -> None:
    first, second = toys.agent(), toys.agent()
    opened = first.ask("lease.open", lease_s=300)
    first.ask("toy.make", path=str(tmp_path / "one"))
    # Agent and watcher die together, as when memory runs out.
    pid = int(Path(opened["folder"], "watching").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    until(lambda: leases.started_at(pid) is None)
    first.kill()
    found = second.ask("leases")["leases"]
    assert [(one["lease"], one["alive"], one["mine"]) for one in found] == [(opened["lease"], False, False)]
    assert second.ask("revert") == {"undone": ["removed one"]}
    assert second.ask("revert") == {"undone": []}
    assert not (tmp_path / "one").exists()


def test_undo_from_the_command_line(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    agent.ask("lease.open", lease_s=300)
    agent.ask("toy.make", path=str(tmp_path / "one"))
    for said in ("removed one\n", ""):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", toys.text, "undo"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, said)
    with pytest.raises(FailedError, match="lapsed"):
        agent.ask("toy.make", path=str(tmp_path / "two"))


def test_what_cannot_be_undone_is_said_kept_and_tried_again(toys: Toys, tmp_path: Path) -> None:
    agent = toys.agent()
    lease = agent.ask("lease.open", lease_s=300)["lease"]
    lock = tmp_path / "lock"
    lock.touch()
    agent.ask("toy.make", path=str(tmp_path / "one"), locked=str(lock))
    agent.ask("toy.make", path=str(tmp_path / "two"))
    with pytest.raises(FailedError, match=r"failed: toy could not be taken back.*locked.*tried: removed two"):
        agent.ask("lease.close", lease=lease)
    lock.unlink()
    assert agent.ask("lease.close", lease=lease) == {"undone": ["removed one"]}


def test_only_one_lease_at_a_time_and_only_ones_own(toys: Toys) -> None:
    agent = toys.agent()
    agent.ask("lease.open", lease_s=30)
    with pytest.raises(FailedError, match="busy"):
        agent.ask("lease.open", lease_s=30)
    with pytest.raises(FailedError, match="bad-request"):
        agent.ask("lease.renew", lease="lease-of-somebody")
    with pytest.raises(FailedError, match="bad-request"):
        toys.agent().ask("lease.open", lease_s=-1)


def test_the_same_promise_is_written_once_and_can_be_struck_out(place: Path) -> None:
    one = session.Session({"toy": lambda entry: str(entry["n"])})
    (place / "lease-x").mkdir()
    lease = Lease(str(place / "lease-x"))
    lease.renew(60)
    leases.write(lease.path("lease.json"), json.dumps({"net": private.net_namespace()}))
    one._memory = Memory(lease, one._how)
    first = one.promise({"kind": "toy", "n": 1})
    assert one.promise({"kind": "toy", "n": 1}) == first
    second = one.promise({"kind": "toy", "n": 2})
    one.keep(first)
    one.keep(first)
    one.keep("../../etc/passwd")
    assert [name for name, _ in lease.entries()] == [second]
    assert one.promise({"kind": "toy", "n": 1}) not in (first, second)
    assert one.close({}, NO_CALL) == {"undone": ["1", "2"]}


def test_a_promise_of_an_earlier_boot_is_told_and_never_replayed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lease = Lease(str(place / "lease-x"))
    Path(lease.folder).mkdir()
    about = {"net": "of then", "boot_id": "another", "pid": 1}
    leases.write(lease.path("lease.json"), json.dumps(about))
    lease.add({"kind": "toy"})
    undone: list[object] = []
    how = {"toy": lambda entry: str(undone.append(entry))}
    listed = session.Session(how).listed({}, NO_CALL)["leases"]
    assert [(one["earlier_boot"], one["entries"]) for one in listed] == [(True, [{"kind": "toy"}])]
    assert session.undo_all(how) == 0
    assert not undone
    assert "earlier boot (toy): forgotten, not replayed" in capsys.readouterr().out
    assert not leases.every()


def test_a_lease_of_another_network_is_left_alone(place: Path) -> None:
    lease = Lease(str(place / "lease-x"))
    Path(lease.folder).mkdir()
    leases.write(lease.path("lease.json"), json.dumps({"net": "0-0", "boot_id": leases.boot_id()}))
    assert leases.every() == []


@pytest.mark.lab
def test_a_network_that_is_gone_is_not_mistaken_for_a_later_one() -> None:
    """Its number is used again at once."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    code += "from ssh_agents import private; print(private.net_namespace())"
    found = [
        subprocess.run(
            ["unshare", "--net", sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(4)
    ]
    if found[0].count("-") < 2:
        pytest.skip("this kernel gives networks no cookie (before 5.14)")
    assert len(set(found)) == 4


def test_an_unsafe_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    assert "written by others" in private._made(str(tmp_path / "shared"))
    (tmp_path / "link").symlink_to(tmp_path / "shared")
    assert "not a folder" in private._made(str(tmp_path / "link"))
    assert private._made(str(tmp_path / "mine")) == ""
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


@pytest.fixture
def hosts() -> Iterator[Net]:
    with office(1) as made:
        yield made


@pytest.mark.lab
def test_the_line_and_the_counters_go_with_a_killed_agent(hosts: Net) -> None:
    before = [hosts.run("server", *words.split()) for words in ("tc qdisc", "nft list ruleset", "ip -o link")]
    agent = hosts.agent("server", privileged=True)
    agent.ask("lease.open", lease_s=30)
    agent.ask("line.apply", office=OFFICE[:1], upload_bps=64_000, download_bps=128_000)
    agent.ask("traffic.start", peers=[{"name": "c1", "addresses": OFFICE[:1]}])
    assert "table inet branchlab" in hosts.run("server", "nft", "list", "ruleset")
    agent.kill()
    until(lambda: not hosts.pids("server"))
    after = [hosts.run("server", *words.split()) for words in ("tc qdisc", "nft list ruleset", "ip -o link")]
    assert after == before


@pytest.mark.lab
@pytest.mark.parametrize("name", ["server", "c1"])
def test_a_line_and_counters_that_no_lease_tells_of_are_told_and_go_with_revert(
    hosts: Net, name: str
) -> None:
    """Agent and watcher killed, and the lease's folder removed: on an office host as well as on the server."""
    before = [hosts.run(name, *words.split()) for words in ("tc qdisc", "nft list ruleset", "ip -o link")]
    agent = hosts.agent(name, privileged=True)
    folder = agent.ask("lease.open", lease_s=300)["folder"]
    where = {"office": OFFICE[:1]}
    if name != "server":
        where = {"place": "office", "office": OFFICE[:1], "server": [SERVER]}
    agent.ask("line.apply", **where, upload_bps=64_000, download_bps=128_000)
    agent.ask("traffic.start", peers=[{"name": "peer", "addresses": ["10.77.0.99"]}])
    assert agent.ask("leases")["unpromised"] == []
    watcher = watch.found(Lease(folder))
    assert watcher is not None
    os.kill(watcher[0], signal.SIGKILL)
    agent.kill()
    shutil.rmtree(folder)
    second = hosts.agent(name, privileged=True)
    told = second.ask("leases")["unpromised"]
    assert [one["kind"] for one in told] == ["line", "traffic"]
    assert told[0]["what"] == "a line on eth0"
    undone = second.ask("revert")["undone"]
    assert undone == ["line on eth0 taken off", "traffic counters (table inet branchlab) removed"]
    after = [hosts.run(name, *words.split()) for words in ("tc qdisc", "nft list ruleset", "ip -o link")]
    assert after == before
    assert second.ask("leases")["unpromised"] == []
    assert second.ask("revert") == {"undone": []}


@pytest.mark.lab
def test_a_line_and_counters_without_a_lease_end_before_the_next_begins(hosts: Net) -> None:
    before = [hosts.run("server", *words.split()) for words in ("tc qdisc", "nft list ruleset", "ip -o link")]
    agent = hosts.agent("server", privileged=True)
    folder = agent.ask("lease.open", lease_s=300)["folder"]
    agent.ask("line.apply", office=OFFICE[:1], upload_bps=64_000, download_bps=128_000)
    agent.ask("traffic.start", peers=[{"name": "peer", "addresses": ["10.77.0.99"]}])
    watcher = watch.found(Lease(folder))
    assert watcher is not None
    os.kill(watcher[0], signal.SIGKILL)
    agent.kill()
    shutil.rmtree(folder)
    changes = hosts.agent("server", privileged=True).start("lease.open", lease_s=30).changes()
    assert changes == [
        {"what": "line on eth0 taken off", "undone": True},
        {"what": "traffic counters (table inet branchlab) removed", "undone": True},
    ]
    after = [hosts.run("server", *words.split()) for words in ("tc qdisc", "nft list ruleset", "ip -o link")]
    assert after == before


@pytest.mark.lab
def test_a_line_that_somebody_removed_by_hand_reverts(hosts: Net) -> None:
    agent = hosts.agent("server", privileged=True)
    agent.ask("lease.open", lease_s=30)
    agent.ask("line.apply", office=OFFICE[:1], upload_bps=64_000, download_bps=128_000)
    for words in ("tc qdisc del dev eth0 root", "tc qdisc del dev eth0 ingress", "ip link del bl-ifb"):
        hosts.run("server", *words.split())
    assert agent.ask("revert") == {"undone": []}
    assert agent.ask("revert") == {"undone": []}


@pytest.mark.lab
def test_an_old_python_will_do() -> None:
    old = Path.home() / ".pyenv/versions/3.8.18/bin/python"
    if not old.exists():
        pytest.skip("no Python 3.8 here")
    with net() as made:
        made.host("a")
        made.host("b")
        made.tie("a", "eth0", "b", "eth0")
        made.address("a", "eth0", "10.77.0.1/24")
        agent = made.agent("a", privileged=True, python=str(old), text=CODE)
        agent.ask("lease.open", lease_s=30)
        assert agent.ask("line.apply", office=OFFICE[:1], upload_bps=64_000, download_bps=128_000)["applied"]
        agent.ask("traffic.start", peers=[{"name": "c1", "addresses": OFFICE[:1]}])
        assert agent.ask("quiet.wait", ports=[80], still_s=0.1)["quiet"]
        assert len(agent.ask("lease.close")["undone"]) == 2
