"""Where operations happen: what a host is asked for, in which order, and what is put back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

import pytest
from real_runs import EMPTY, experiment
from stand_in_hosts import Args, Connection, agent, connected, office, root

from lab import recipes, vcs
from lab.errors import BadInput, HostTrouble, TrialFailed
from lab.events import DataMeasured, HostChanged, Noted, ToolMeasured
from lab.model import AS_IT_IS, DISABLED, Cache, Change, Experiment, ProxyState, Role, Treatment, Trial
from lab.rig import services, workplace
from lab.rig.hosts import Connected
from lab.rig.logs import LogCount
from lab.rig.peers import Seen
from lab.rig.workplace import Workplace
from lab.stop import Stop

SUBVERSION = (resources.files("resources") / "vcs" / "subversion.toml").read_text("utf-8")


@dataclass
class Machine:
    """Runs commands by keeping their words; a command with `fails` in it ends with that status."""

    fails: dict[str, int] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    services: list[str] = field(default_factory=list)
    log: Args = field(
        default_factory=lambda: {
            "requests": 5, "hits": 4, "misses": 1, "hit_bytes": 40, "miss_bytes": 10, "other_bytes": 3,
        }
    )  # fmt: skip

    def verbs(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "files.scratch": self.scratch,
            "files.copy": lambda args: self.ran.append("copy") or {},  # type: ignore[func-returns-value]
            "files.edit": lambda args: self.ran.append(f"edit {args['seed']}") or {},  # type: ignore[func-returns-value]
            "files.remove": self.remove,
            "service.start": lambda args: self.services.append(args["kind"]) or {"pid": 1},  # type: ignore[func-returns-value]
            "service.stop": lambda args: self.services.remove(args["kind"]) or {},  # type: ignore[func-returns-value]
            "service.log": lambda args: {**self.log, "offset": args["since"] + 100},
        }

    def command(self, args: Args) -> Args:
        words = " ".join(args["argv"])
        self.ran.append(words)
        status = next((code for part, code in self.fails.items() if part in words), 0)
        return {"exit": status, "tail": "svn: E1: no\n" if status else "1.14.2\n", "wall_s": 0.01}

    def scratch(self, args: Args) -> Args:
        self.folders.append(f"/tmp/lab/{args['name']}")
        return {"path": self.folders[-1]}

    def remove(self, args: Args) -> Args:
        if args["path"] in self.folders:
            self.folders.remove(args["path"])
        else:
            self.ran.append("remove")
        return {}


def hosts_of(machine: Machine) -> Sequence[Connected]:
    server, proxy, *desks = office(machine.verbs())
    cache = Cache(kind="apache-disk", folder="/var/cache/lab")
    proxy.host = replace(proxy.host, services="/srv/proxy", cache=cache)
    return [server, proxy, *desks]


def place(machine: Machine, hosts: Sequence[Connected] | None = None, **changes: Any) -> Workplace:
    wanted: Experiment = experiment(**changes)
    return Workplace(hosts or hosts_of(machine), wanted, vcs.driver("subversion"))


def trial(operation: str, state: ProxyState = DISABLED, seed: int = 77) -> Trial:
    treatment = Treatment(line=AS_IT_IS, operation=operation, state=state)
    return Trial(number=1, block=1, treatment=treatment, attempt=1, seed=seed)


def set_up(machine: Machine, **changes: Any) -> Workplace:
    one = place(machine, **changes)
    list(one.set_up(Stop()))
    machine.ran.clear()
    return one


def test_set_up_makes_repository_services_and_working_copy_in_this_order() -> None:
    machine = Machine()
    hosts = hosts_of(machine)
    one = place(machine, hosts)
    events = list(one.set_up(Stop()))
    (data,) = (event for event in events if isinstance(event, DataMeasured))
    assert (data.facts["files"], data.facts["revision"], data.facts["seed"]) == (150, 100, 2008)
    assert one.data_bytes == data.facts["bytes"] == 600_000
    (tool,) = (event for event in events if isinstance(event, ToolMeasured))
    assert (tool.tool, tool.version, tool.start_s) == ("svn", "1.14.2", 0.01)
    assert [words.split()[:2] for words in machine.ran] == [
        ["svnadmin", "create"], ["svnadmin", "load"], *[["svn", "--version"]] * 5, ["svn", "checkout"],
    ]  # fmt: skip
    assert machine.services == ["svn-server", "caching-proxy"]
    (dump,) = hosts[0].connection.files.values()  # type: ignore[attr-defined]
    assert dump == b"".join(recipes.recipe("quick").dump(2008))
    # The one that prepares nothing goes past the proxy.
    assert "http-proxy-host" not in machine.ran[-1]


def test_services_get_their_places_ports_and_whom_they_serve() -> None:
    machine = Machine()
    hosts = hosts_of(machine)
    list(place(machine, hosts).set_up(Stop()))
    (server,) = root(hosts[0]).args("service.start")
    assert (server["folder"], server["port"]) == ("/srv/lab/svn-server", 80)
    assert server["options"]["path"] == "/svn"
    assert server["options"]["allow"] == ["198.51.100.11", "2001:db8::11", "198.51.100.12", "198.51.100.2"]
    (proxy,) = root(hosts[1]).args("service.start")
    assert (proxy["folder"], proxy["port"]) == ("/srv/proxy/caching-proxy", 8081)
    assert proxy["options"] == {
        "engine": "apache",
        "cache": "/var/cache/lab",
        "allow": ["198.51.100.11", "2001:db8::11", "198.51.100.12", "198.51.100.2"],
        "origins": ["198.51.100.1"],
        "origin_ports": [80],
    }


def served(seen: Sequence[Seen] = (), **changes: Any) -> tuple[Args, Args]:
    """What server and proxy are asked to be; `changes` are of the server."""
    hosts = hosts_of(Machine())
    facts = changes.pop("facts", {})
    hosts[0].host, hosts[0].facts = replace(hosts[0].host, **changes), facts
    (_, server), (_, proxy) = services.wanted(hosts, experiment(repository="http://{server}/svn/trunk"), seen)
    return server["options"], proxy["options"]


def test_whom_nat_hides_is_let_in_under_the_address_that_is_seen() -> None:
    seen = [
        Seen("server", "desk", "198.51.100.11", "203.0.113.5", "198.51.100.11"),
        Seen("server", "proxy", "198.51.100.2", "203.0.113.5", "198.51.100.2"),
        Seen("server", "desk-2", "198.51.100.12", trouble="nobody answers"),
        Seen("proxy", "desk", "198.51.100.11", "10.0.0.7", "10.0.0.7"),
    ]
    server, proxy = served(seen)
    said = ["198.51.100.11", "2001:db8::11", "198.51.100.12", "198.51.100.2"]
    assert server["allow"] == [*said, "203.0.113.5"]
    assert proxy["allow"] == [*said, "10.0.0.7"]


def test_the_server_listens_on_its_own_addresses_where_the_profile_has_them() -> None:
    own = {"addresses": ["198.51.100.1", "10.1.1.1"]}
    assert served(facts=own)[0]["listen"] == ["198.51.100.1"]
    # Before a NAT, or where it does not tell, or if another of its addresses may be meant by a name.
    assert served(facts={"addresses": ["10.1.1.1"]})[0]["listen"] == []
    assert served()[0]["listen"] == []
    hosts = hosts_of(Machine())
    hosts[0].facts = own
    named = experiment(repository="http://svn.example.com:8080/svn/trunk")
    (_, server), (_, proxy) = services.wanted(hosts, named)
    assert (server["options"]["listen"], server["port"]) == ([], 8080)
    assert proxy["options"]["origins"] == ["198.51.100.1", "svn.example.com"]
    assert proxy["options"]["origin_ports"] == [8080]


def test_clear_stops_and_removes_everything_although_some_of_it_fails() -> None:
    machine = Machine()
    hosts = hosts_of(machine)
    one = place(machine, hosts)
    list(one.set_up(Stop()))
    assert len(machine.folders) == 2
    verbs = root(hosts[1]).verbs
    root(hosts[1]).verbs = {name: verb for name, verb in verbs.items() if name != "service.stop"}
    one.clear()
    assert machine.services == ["caching-proxy"]  # refused; the lease's end stops it
    assert machine.folders == []


def test_scratch_folders_of_two_hosts_and_two_runs_never_meet() -> None:
    machine = Machine()
    set_up(machine)
    set_up(machine)
    assert len(set(machine.folders)) == 4


def test_prepare_does_the_untimed_steps_and_returns_the_timed_command() -> None:
    machine = Machine()
    one = set_up(machine)
    (job,) = one.prepare(trial("undo", EMPTY), Stop())
    assert machine.ran == ["remove", "copy", "edit 77"]
    assert job.client.name == "desk"
    assert job.command.argv[:2] == ("svn", "revert")
    assert "servers:global:http-proxy-host=198.51.100.2" in job.command.argv
    assert "servers:global:http-proxy-port=8081" in job.command.argv
    assert not any("http-proxy" in word for word in one.prepare(trial("undo"), Stop())[0].command.argv)


def test_clean_up_takes_back_what_the_trial_did_once_and_only_that() -> None:
    machine = Machine()
    one = set_up(machine)
    one.clean_up(Stop())
    assert machine.ran == []
    one.prepare(trial("check-out"), Stop())
    machine.ran.clear()
    one.clean_up(Stop())
    assert [words.split()[:3] for words in machine.ran] == [["svn", "unlock", "--force"]]
    one.clean_up(Stop())
    assert len(machine.ran) == 1


def test_every_check_in_has_a_branch_of_its_own_that_was_never_there() -> None:
    machine = Machine()
    one = set_up(machine)
    for state in (DISABLED, EMPTY, DISABLED):
        one.prepare(trial("check-in", state), Stop())
    one.run_untimed("check-in", Stop())
    branches = [words.split()[-1] for words in machine.ran if words.startswith("svn copy")]
    assert len(branches) == len(set(branches)) == 4
    assert all(branch.startswith("http://198.51.100.1/svn/branches/trial-") for branch in branches)


def test_a_step_that_fails_fails_the_trial_with_its_own_words() -> None:
    machine = Machine(fails={"svn copy": 1})
    one = set_up(machine)
    with pytest.raises(TrialFailed, match="untimed step ended with exit status 1: svn: E1: no") as caught:
        one.prepare(trial("check-in"), Stop())
    assert caught.value.host == "desk"
    assert caught.value.tried.startswith("svn copy")


def test_an_untimed_run_cleans_up_also_when_it_fails() -> None:
    machine = Machine(fails={"svn lock": 1})
    one = set_up(machine)
    with pytest.raises(TrialFailed, match="exit status 1"):
        one.run_untimed("check-out", Stop())
    assert machine.ran[-1].startswith("svn unlock")
    # It goes through the proxy: that is what a fill is for.
    assert "http-proxy-host=198.51.100.2" in machine.ran[-2]


def test_a_clean_up_that_fails_is_logged_and_the_rest_is_done(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine(fails={"svn unlock": 2})
    one = set_up(machine)
    one.prepare(trial("check-out"), Stop())
    with caplog.at_level(logging.WARNING):
        one.clean_up(Stop())
    assert "exit status 2" in caplog.text


def test_some_files_that_were_not_locked_are_no_trouble_for_the_clean_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine = Machine(fails={"svn unlock": 1})
    one = set_up(machine)
    one.prepare(trial("check-out"), Stop())
    with caplog.at_level(logging.WARNING):
        one.clean_up(Stop())
    assert caplog.text == ""


def test_a_tool_that_does_not_start_is_the_hosts_trouble() -> None:
    with pytest.raises(HostTrouble, match="svn does not start: svn: E1: no") as caught:
        set_up(Machine(fails={"svn --version": 1}))
    assert caught.value.host == "desk"


def test_logs_are_read_from_where_the_last_reading_ended_and_add_up() -> None:
    machine = Machine()
    hosts = hosts_of(machine)
    one = place(machine, hosts)
    list(one.set_up(Stop()))
    first = one.logs(Stop())
    assert first.since(first).requests() == {"server": 0, "proxy": 0}
    second = one.logs(Stop())
    assert second.since(first).proxy == LogCount(5, 4, 1, 40, 10, 3)
    assert [args["since"] for args in root(hosts[1]).args("service.log")] == [0, 100]


def test_a_proxy_that_is_not_ours_is_left_alone_and_its_log_is_unknown() -> None:
    machine = Machine()
    server, proxy, *desks = hosts_of(machine)
    proxy.host = replace(proxy.host, services=None)
    one = place(machine, [server, proxy, *desks])
    list(one.set_up(Stop()))
    assert machine.services == ["svn-server"]
    assert one.logs(Stop()).proxy is None


@pytest.mark.parametrize(
    ("repository", "origin", "ports"),
    [
        ("http://{server}/svn/trunk", "http://198.51.100.1:80/svn/", [80, 8081]),
        ("http://{server}:8080/svn/trunk", "http://198.51.100.1:8080/svn/", [8080, 8081]),
    ],
)
def test_objects_are_told_by_where_they_come_from(repository: str, origin: str, ports: list[int]) -> None:
    one = place(Machine(), repository=repository)
    assert (one.origin, one.ports) == (origin, ports)


def test_the_port_of_a_service_that_is_the_users_own_is_not_ours() -> None:
    """Colleagues at the production repository, and at the office's own proxy, are somebody else."""
    hosts = list(hosts_of(Machine()))
    assert place(Machine(), hosts).own_ports == [80, 8081]
    assert place(Machine(), hosts, data=None).own_ports == [8081]
    hosts[1].host = replace(hosts[1].host, services=None)
    assert place(Machine(), hosts).own_ports == [80]
    assert place(Machine(), hosts, data=None).own_ports == []


def test_without_a_proxy_only_the_servers_port_matters() -> None:
    hosts = [host for host in office() if host.host.role is not Role.PROXY]
    assert place(Machine(), hosts).ports == [80]


@pytest.mark.parametrize(
    ("changes", "missing", "cure"),
    [
        ({"server": {"address": None}}, "how to reach server", "[hosts.server]"),
        ({"proxy": {"address": None, "url": None}}, "how to reach proxy", "[hosts.proxy]"),
        ({"server": {"services": None}}, "no place for it", "[hosts.server]"),
    ],
)
def test_what_the_profile_must_say_is_asked_for(changes: dict[str, Any], missing: str, cure: str) -> None:
    machine = Machine()
    hosts = list(hosts_of(machine))
    for one in hosts:
        one.host = replace(one.host, **changes.get(one.name, {}))
    with pytest.raises(BadInput, match=missing) as caught:
        list(place(machine, hosts).set_up(Stop()))
    assert cure in caught.value.advice
    assert machine.services == []


def test_a_proxy_without_a_port_in_its_url_is_asked_on_its_usual_one() -> None:
    machine = Machine()
    hosts = list(hosts_of(machine))
    hosts[1].host = replace(hosts[1].host, url=None)
    one = place(machine, hosts)
    assert one.ports == [80, 8081]
    assert isinstance(hosts[0].connection, Connection)
    assert agent(hosts[0]).asked == []


def test_an_ipv6_server_is_written_in_brackets() -> None:
    machine = Machine()
    server = connected("server", Role.SERVER, machine.verbs(), address6="2001:db8::1", services="/srv/lab")
    one = place(machine, [server, *hosts_of(machine)[1:]])
    events = list(one.set_up(Stop()))
    assert events
    assert any("http://[2001:db8::1]/svn/trunk@100" in words for words in machine.ran)


# ---- a repository as it is


INFO = """<?xml version="1.0"?><info><entry kind="dir" revision="4711"><url>{url}</url><repository>
<root>{root}</root><uuid>12ab</uuid></repository></entry></info>"""
PLACE = "http://198.51.100.1/svn/project/lab"
LONG_AGO = "<commit revision='1'><date>2008-01-01T00:00:00.000000Z</date></commit>"
RUN = (
    "<properties><target><property name='branchlab:run'>0123 alice on desk-7</property></target></properties>"
)
MARKED = "<properties><target><property name='branchlab:scratch'>12ab /lab</property></target></properties>"


@dataclass
class Somebodys(Machine):
    """A machine from which a repository of somebody's own is seen; working copies belong to `belongs`."""

    belongs: str = ""
    files: int = 30
    texts: int = 4

    def verbs(self) -> dict[str, Any]:
        looked = {"files": self.files, "folders": 3, "bytes": 9000, "texts": self.texts}
        names = [f"f{number}@2" for number in range(self.files)]
        return {
            **super().verbs(),
            "files.look": lambda args: {**looked, "events": [("names", {"names": names})]},
        }

    def command(self, args: Args) -> Args:
        target, word = args["argv"][-1], super().command(args)
        said = ""
        if args["argv"][1] == "info":
            url = self.belongs if target.startswith("/") else target.removesuffix("@")
            said = INFO.format(url=url, root=url.partition("/svn/")[0] + "/svn/project")
        elif args["argv"][1] == "proplist":
            said = MARKED if "run-" not in target else RUN
        elif args["argv"][1] in ("commit", "delete"):
            said = "Committed revision 4712.\n"
        elif args["argv"][1] == "log":
            said = "<log><logentry revision='4712'/><logentry revision='4714'/></log>"
        elif args["argv"][1] == "list":
            there = (f"<entry><name>{name}</name>{LONG_AGO}</entry>" for name in ("run-0a1b2c3d", "notes"))
            said = f"<lists><list>{''.join(there)}</list></lists>"
        return {**word, "events": [("output", {"stream": "stdout", "text": said})]}


def own_place(machine: Machine, hosts: Sequence[Connected] | None = None, **changes: Any) -> Workplace:
    asked = {
        "data": None,
        "repository": "http://{server}/svn/project/trunk",
        "scratch": "http://{server}/svn/project/lab",
        "operations": ("check-out", "check-in", "undo"),
    }
    return place(machine, hosts, **{**asked, **changes})


def changing(machine: Machine) -> list[str]:
    """The words of what changed the repository: subcommand and last word."""
    return [
        f"{words.split()[1]} {words.split()[-1]}"
        for words in machine.ran
        if words.startswith("svn ") and words.split()[1] in ("copy", "delete", "lock", "unlock", "commit")
    ]


def test_a_repository_as_it_is_is_looked_at_first_and_its_place_cleared_and_filled() -> None:
    machine = Somebodys()
    one = own_place(machine)
    list(one.set_up(Stop()))
    assert machine.ran[0].split()[:2] == ["svn", "info"]
    assert machine.services == ["caching-proxy"]  # no server of our own
    may_lock, left, begin, tried, work, *_ = changing(machine)
    assert may_lock == f"lock {PLACE}"  # a folder, which never can be: nothing is changed
    assert left == f"delete {PLACE}/run-0a1b2c3d"  # and not `notes`
    assert begin.endswith("/place")
    assert tried == f"delete {PLACE}/run-{one._token}/try"
    assert not any("--parents" in words for words in machine.ran)
    assert work.startswith(f"copy {PLACE}/run-")
    assert work.endswith("/work")
    empty, *checkouts = [words.split()[-2:] for words in machine.ran if words.startswith("svn checkout")]
    assert empty[0] == PLACE
    assert checkouts[0] == ["http://198.51.100.1/svn/project/trunk@4711", checkouts[0][1]]
    assert checkouts[1][0] == work.removeprefix("copy ") + "@HEAD"
    assert checkouts[1][1].endswith("/lockable")
    assert one.origin == "http://198.51.100.1:80/svn/project/"
    assert one.data_bytes == 9000


@pytest.mark.parametrize(("asked", "locked", "edited"), [(2, 2, 2), (10, 10, 4), (50, 30, 4), (0, 30, 4)])
def test_never_more_files_are_changed_than_there_are(asked: int, locked: int, edited: int) -> None:
    machine = Somebodys()
    one = own_place(machine, change=Change(files=asked))
    list(one.set_up(Stop()))
    machine.belongs = f"{PLACE}/run-{one._token}/work"
    (job,) = one.prepare(trial("check-out"), Stop())
    lines = str(job.command.args["stdin"]).splitlines()
    assert len(set(lines)) == len(lines) == locked
    assert all(line.endswith("@2@") for line in lines)
    assert one._holes["edit_files"] == edited


def test_what_holds_no_text_cannot_be_edited() -> None:
    with pytest.raises(BadInput, match="holds no file of text"):
        list(own_place(Somebodys(texts=0)).set_up(Stop()))
    with pytest.raises(BadInput, match="holds no file, and"):
        list(own_place(Somebodys(files=0), operations=("check-out",)).set_up(Stop()))
    list(own_place(Somebodys(texts=0), operations=("check-out",)).set_up(Stop()))


@pytest.mark.parametrize(
    "elsewhere",
    ["http://198.51.100.1/svn/project/trunk", f"{PLACE}/run-00000000/work", f"{PLACE}/run-TOKEN/../x", ""],
)
def test_a_working_copy_that_belongs_elsewhere_is_neither_locked_nor_committed(elsewhere: str) -> None:
    for operation in ("check-out", "check-in"):
        machine = Somebodys()
        one = own_place(machine)
        list(one.set_up(Stop()))
        machine.belongs = elsewhere.replace("TOKEN", one._token)
        machine.ran.clear()
        with pytest.raises(BadInput, match="refused before it was run"):
            one.prepare(trial(operation), Stop())
        assert not [words for words in changing(machine) if words.startswith(("lock", "commit"))]


def test_the_runs_folder_goes_at_the_end_also_when_making_it_failed() -> None:
    machine = Somebodys()
    hosts = hosts_of(machine)
    one = own_place(machine, hosts)
    list(one.set_up(Stop()))
    machine.ran.clear()
    one.clear()
    assert changing(machine) == [f"delete {PLACE}/run-{one._token}"]
    told = [event for event in hosts[0].told if isinstance(event, HostChanged)]
    assert [(event.host, event.undone) for event in told] == [
        *[("server", True), ("server", False), ("server", False), ("server", False), ("server", True)]
    ]
    assert "run-0a1b2c3d was deleted" in told[0].what
    assert "made in the repository, by revision 4712" in told[1].what
    assert "are locked by each Check-Out" in told[2].what
    assert told[3].what == f"2 revisions added below {PLACE}/run-{one._token}, from 4712 to 4714"
    assert f"run-{one._token} deleted with the locks in it, by revision 4712" in told[4].what
    machine = Somebodys(fails={"svn copy": 1})
    one = own_place(machine)
    with pytest.raises(HostTrouble, match="svn could not do this"):
        list(one.set_up(Stop()))
    one.clear()
    assert changing(machine)[-1] == f"delete {PLACE}/run-{one._token}"
    assert machine.folders == []


def test_a_folder_that_cannot_be_deleted_is_told_as_trouble_and_the_rest_is_cleared() -> None:
    machine = Somebodys()
    hosts = hosts_of(machine)
    one = own_place(machine, hosts)
    list(one.set_up(Stop()))
    machine.fails = {"svn delete": 1}
    one.clear()
    (trouble,) = (told for told in hosts[0].told if isinstance(told, Noted))
    assert f"{PLACE}/run-{one._token} stays there until the next run" in trouble.text
    assert trouble.grade == "trouble"
    assert (machine.folders, machine.services) == ([], [])


def test_what_only_reads_has_no_place_and_changes_nothing() -> None:
    machine = Somebodys()
    one = own_place(machine, operations=("get", "diff"), scratch=None)
    list(one.set_up(Stop()))
    one.prepare(trial("get"), Stop())
    one.clear()
    assert changing(machine) == []


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ({}, ""),
        (
            {"desk-2": ["203.0.113.5"]},
            "for desk-2, svn.example.com is 203.0.113.5, and the profile says that server",
        ),
        ({"proxy": ["198.51.100.1", "2001:db8::5"]}, "for proxy, svn.example.com is 2001:db8::5"),
        ({"desk": []}, "for desk, svn.example.com is unknown"),
    ],
)
def test_a_name_must_mean_the_server_for_every_office_host(seen: dict[str, list[str]], told: str) -> None:
    """Else the line would not touch what goes there, and nobody would count it."""
    machine = Somebodys()
    hosts = hosts_of(machine)
    for one in hosts:
        found = seen.get(one.name, ["198.51.100.1"])
        agent(one).verbs = {
            **agent(one).verbs,
            "probe.resolve": lambda args, found=found: {"addresses": found},
        }
    wanted = experiment(data=None, repository="http://svn.example.com/svn/project/trunk", operations=("get",))
    one_place = Workplace(hosts, wanted, vcs.driver("subversion"))
    if not told:
        one_place.look(Stop())
        assert agent(hosts[0]).args("probe.resolve") == []
        return
    with pytest.raises(BadInput, match="neither limited nor counted") as caught:
        one_place.look(Stop())
    assert str(caught.value).startswith(told)
    assert "198.51.100.1" in str(caught.value)
    assert machine.ran == []


def test_a_full_disk_is_told_by_its_name() -> None:
    assert "TMPDIR" in workplace._full("svn: E000028: Can't write: No space left on device")
    assert workplace._full("svn: E170013: Unable to connect") == ""


def desks(machine: Machine, **changes: Any) -> Workplace:
    one = place(machine, clients=2, **changes)
    list(one.set_up(Stop()))
    return one


def folder_of(one: Workplace, number: int) -> str:
    return str(one.desks[number].holes["pristine"]).removesuffix("/pristine")


def test_several_clients_have_working_copies_and_branches_of_their_own() -> None:
    machine = Machine()
    one = desks(machine)
    assert [desk.client.name for desk in one.desks] == ["desk", "desk-2"]
    checkouts = [words.split()[-1] for words in machine.ran if words.startswith("svn checkout")]
    assert sorted(checkouts) == sorted(f"{folder_of(one, n)}/pristine" for n in (0, 1))
    assert len(set(checkouts)) == 2
    machine.ran.clear()
    jobs = one.prepare(trial("check-in"), Stop())
    assert [job.client.name for job in jobs] == ["desk", "desk-2"]
    branches = [words.split()[-1] for words in machine.ran if words.startswith("svn copy")]
    assert sorted(url.rpartition("/")[2] for url in branches) == ["trial-1", "trial-2"]
    for number, job in enumerate(jobs):
        assert job.command.argv[-1] == f"{folder_of(one, number)}/work"
    one.prepare(trial("check-in"), Stop())
    assert len({words.split()[-1] for words in machine.ran if words.startswith("svn copy")}) == 4


def test_each_of_several_clients_locks_on_a_branch_of_its_own_and_unlocks_it() -> None:
    machine = Machine()
    one = desks(machine, operations=("check-out",))
    branches = [words.split()[-1] for words in machine.ran if words.startswith("svn copy")]
    assert branches == [f"http://198.51.100.1/svn/branches/client-{n}" for n in (1, 2)]
    lockables = [words.split()[-2:] for words in machine.ran if words.endswith("/lockable")]
    assert lockables == [[f"{url}@HEAD", f"{folder_of(one, n)}/lockable"] for n, url in enumerate(branches)]
    first, second = one.prepare(trial("check-out"), Stop())
    assert first.command.args["stdin"] == second.command.args["stdin"]
    assert first.command.args["cwd"] != second.command.args["cwd"]
    machine.ran.clear()
    one.clean_up(Stop())
    assert [words.split()[:2] for words in machine.ran] == [["svn", "unlock"]] * 2


def test_a_cache_is_filled_by_the_first_client_alone() -> None:
    machine = Machine()
    one = desks(machine)
    asked = [len(agent(desk.client).args("command")) for desk in one.desks]
    one.run_untimed("get", Stop())
    assert [
        len(agent(desk.client).args("command")) - n for desk, n in zip(one.desks, asked, strict=True)
    ] == [1, 0]


def test_a_driver_that_gives_clients_no_branch_cannot_have_several_lock() -> None:
    machine = Machine()
    text = SUBVERSION.replace("[[branch]]", "[[unused]]").split("[[unused]]")
    without = text[0] + "[operations.get]" + text[1].partition("[operations.get]")[2]
    driver = vcs.parsed(without, "subversion.toml", "subversion")
    wanted = experiment(clients=2, operations=("check-out",))
    with pytest.raises(BadInput, match="no list `branch`"):
        list(Workplace(hosts_of(machine), wanted, driver).set_up(Stop()))
    list(Workplace(hosts_of(machine), replace(wanted, operations=("get",)), driver).set_up(Stop()))


def test_a_client_without_the_tool_or_with_another_is_told_before_any_trial() -> None:
    machine = Machine()
    hosts = hosts_of(machine)
    other = {**machine.verbs(), "command": lambda args: {**machine.command(args), "tail": "1.9.0\n"}}
    agent(hosts[3]).verbs = other
    (note,) = (event for event in place(machine, hosts, clients=2).set_up(Stop()) if isinstance(event, Noted))
    assert note.text.startswith("desk-2 has svn 1.9.0, and desk has 1.14.2")
    agent(hosts[3]).verbs = {**other, "command": lambda args: {"exit": 1, "tail": "not found", "wall_s": 0.1}}
    with pytest.raises(HostTrouble, match="svn does not start: not found") as error:
        list(place(machine, hosts, clients=2).set_up(Stop()))
    assert error.value.host == "desk-2"


def test_several_clients_lock_in_copies_of_their_own_of_a_repository_as_it_is() -> None:
    machine = Somebodys()
    one = own_place(machine, clients=2, operations=("check-out",))
    events = list(one.set_up(Stop()))
    url = f"{PLACE}/run-{one._token}/work"
    copies = [words.split()[-1] for words in machine.ran if words.startswith("svn copy")]
    assert copies == [url, f"{url}-2"]
    lockables = [words.split()[-2] for words in machine.ran if words.endswith("/lockable")]
    assert lockables == [f"{url}@HEAD", f"{url}-2@HEAD"]
    assert any(isinstance(event, DataMeasured) for event in events)
    machine.belongs = url
    assert len(one.prepare(trial("check-out"), Stop())) == 2


def test_clients_that_are_not_there_are_refused_before_anything_is_made() -> None:
    with pytest.raises(HostTrouble, match="the lab has 2 clients, and the experiment wants 3"):
        place(Machine(), clients=3)
    with pytest.raises(HostTrouble, match="no client desk-9"):
        place(Machine(), clients=("desk", "desk-9"))
