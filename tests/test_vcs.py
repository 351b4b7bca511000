"""Drivers: refused with file, key and cure; filled; and Subversion's run for real, with proxy and without."""

from __future__ import annotations

import logging
import subprocess
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import two_apaches
from two_apaches import PROXY, Services, place, repository, services

from lab import units, vcs
from lab.errors import BadInput
from lab.model import OPERATIONS, TrafficClass
from lab.recipes import LIKE_2008, QUICK, Recipe
from lab.vcs import Command, Driver, Phase
from ssh_agents import command, files
from ssh_agents.protocol import Refused

log = logging.getLogger(__name__)
needs_apache = pytest.mark.skipif(bool(two_apaches.missing()), reason="missing: " + two_apaches.missing())
lab = pytest.mark.lab
SUBVERSION = (resources.files("resources") / "vcs" / "subversion.toml").read_text("utf-8")
HOLES: dict[str, vcs.Value] = {
    "config": "/w/config",
    "work": "/w/work",
    "pristine": "/w/pristine",
    "lockable": "/w/pristine",
    "url": "http://s/svn/trunk",
    "revision": 100,
    "branch_url": "http://s/svn/branches/trial-1",
    "seed": 7,
    "edit_files": 50,
    "edit_pattern": "*.cs",
    "edit_share": 0.1,
    "locks": "a.cs\nb.cs\n",
    "repository": "/r/repo",
    "dump": "/r/dump",
}


# A driver's file


@pytest.mark.parametrize(
    ("old", "new", "where", "cure"),
    [
        ("schema = 1", "schema = 2", "d.toml: schema", "schema"),
        ("schema = 1", "schema = ", "d.toml is not TOML", "line"),
        ('title = "Subversion"', "", "d.toml: title is missing", "title ="),
        ("tool =", "tols =", "d.toml: t", ""),
        ('traffic = "cacheable"', 'traffic = "often"', "operations.get.traffic", "operations.get.traffic"),
        ('traffic = "cacheable"', 'trafic = "cacheable"', "operations.get", ""),
        ("[operations.get]", "[operations.fetch]", "operations.fetch", ""),
        ("timed = { run", "timed = { rum", "operations.get.timed.rum", "Write run"),
        ("cleanup = [", "quiet = [", "operations.check-out.quiet", "Known here are"),
        ("{work}", "{wrok}", "do you mean {work}?", ""),
        ("args = { path", "args = { file", "needs exactly the args path", ""),
        ('verb = "files.remove"', 'verb = "files.shred"', "verb", ""),
        ('"svn", "copy",', '"svn", "copy", "{proxy}",', "{proxy} belongs into timed alone", ""),
        ('"{options}", "{proxy}", "{url}', '"x{options}", "{proxy}", "{url}', "is a list", ""),
        ("{proxy_host}", "{proxy_name}", "no hole {proxy_name} in proxy", ""),
        ('name = "subversion"', 'name = "svn"', "name is 'svn'", 'name = "subversion"'),
        ("timed = { run", 'timed = { on = "server", run', "on the client", ""),
    ],
)
def test_a_wrong_driver_is_refused_with_file_key_and_cure(old: str, new: str, where: str, cure: str) -> None:
    assert old in SUBVERSION
    with pytest.raises(BadInput) as refused:
        vcs.parsed(SUBVERSION.replace(old, new, 1), "d.toml", "subversion")
    assert "d.toml" in str(refused.value)
    assert where in str(refused.value)
    assert refused.value.advice
    assert cure in refused.value.advice


def test_an_operation_that_a_system_does_not_have_is_said_so() -> None:
    begin = SUBVERSION.index("[operations.check-out]")
    text = SUBVERSION[:begin] + '[operations.check-out]\ntraffic = "n/a"\n'
    driver = vcs.parsed(text, "d.toml", "subversion")
    assert driver.traffic_class("check-out") is TrafficClass.NOT_APPLICABLE
    assert driver.traffic_class("undo") is TrafficClass.NOT_APPLICABLE
    assert driver.operations == ("get",)
    with pytest.raises(BadInput, match="no operation 'check-out'"):
        driver.commands("check-out", HOLES)


def test_an_own_driver_goes_before_the_shipped_one_and_a_new_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "subversion.toml").write_text(SUBVERSION.replace('title = "Subversion"', 'title = "Mine"'))
    (tmp_path / "git.toml").write_text(SUBVERSION.replace('name = "subversion"', 'name = "git"'))
    assert vcs.driver("subversion").title == "Subversion"
    assert vcs.driver("subversion", tmp_path).title == "Mine"
    assert vcs.driver("git", tmp_path).name == "git"
    assert vcs.driver("subversion", tmp_path / "absent").title == "Subversion"
    assert vcs.names(tmp_path) == {"subversion", "git"}


@pytest.mark.parametrize("name", ["tfs", "../vcs/subversion", ""])
def test_an_unknown_driver_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(BadInput) as refused:
        vcs.driver(name)
    assert "subversion" in refused.value.advice


# Its commands


def test_traffic_classes_are_those_of_the_published_test() -> None:
    driver = vcs.driver("subversion")
    classes = {name: driver.traffic_class(name).value for name in OPERATIONS}
    assert classes == {
        "get": "cacheable",
        "check-out": "server",
        "undo": "local",
        "check-in": "server",
        "history": "server",
        "diff": "local",
    }


@pytest.mark.parametrize("operation", OPERATIONS)
def test_one_command_is_timed_and_only_it_goes_through_the_proxy(operation: str) -> None:
    for proxy in (None, ("10.0.0.2", 8081)):
        commands = vcs.driver("subversion").commands(operation, HOLES, proxy)
        phases = [one.phase for one in commands]
        assert phases == sorted(phases, key=[Phase.PREPARE, Phase.TIMED, Phase.CLEANUP].index)
        assert phases.count(Phase.TIMED) == 1
        for one in commands:
            uses = "servers:global:http-proxy-host=10.0.0.2" in one.argv
            assert uses == (one.timed and proxy is not None)
            assert "{" not in str(one)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_command_of_subversion_can_ask_or_choose_for_itself(operation: str) -> None:
    driver = vcs.driver("subversion")
    for one in (*driver.commands(operation, HOLES), *driver.setup(HOLES)):
        if one.verb == "command":
            assert "--non-interactive" in one.argv
            assert one.argv[one.argv.index("--config-dir") + 1] == "/w/config"
            assert "servers:global:http-bulk-updates=no" in one.argv
            assert "servers:global:http-timeout=60" in one.argv
            assert one.args["env"] == {"LC_ALL": "C.UTF-8", "SVN_EDITOR": "false"}


def test_numbers_stay_numbers_in_arguments_of_verbs() -> None:
    edit = next(one for one in vcs.driver("subversion").commands("undo", HOLES) if one.verb == "files.edit")
    wanted = {"folder": "/w/work", "seed": 7, "files": 50, "pattern": "*.cs", "share": 0.1}
    assert edit.args == wanted
    assert str(edit).startswith("files.edit folder=/w/work")


def test_what_stands_in_a_value_is_never_a_hole() -> None:
    commands = vcs.driver("subversion").commands("history", {**HOLES, "url": "http://s/{seed}{options}"})
    assert commands[0].argv[-1] == "http://s/{seed}{options}@100"


def test_a_hole_that_is_not_filled_is_a_defect() -> None:
    with pytest.raises(ValueError, match=r"\{locks\} was not filled: it is the files to reserve"):
        vcs.driver("subversion").commands("check-out", {k: v for k, v in HOLES.items() if k != "locks"})


def test_a_user_is_named_and_the_password_is_left_to_standard_input() -> None:
    driver = vcs.driver("subversion").entering("anna", "/etc/ssl/company.pem")
    for operation in OPERATIONS:
        for one in driver.commands(operation, HOLES):
            named = [
                word for word in one.argv if word in ("--username", "anna", "--password-from-stdin")
            ] == ["--username", "anna", "--password-from-stdin"]
            assert named == one.login == (one.argv[:1] == ("svn",))
            assert ("servers:global:ssl-authority-files=/etc/ssl/company.pem" in one.argv) == one.login
            assert "stdin" not in one.args
    (lock,) = (one for one in driver.commands("check-out", HOLES) if one.timed)
    assert lock.file == (f"{HOLES['config']}.targets", HOLES["locks"])
    assert lock.argv[-2:] == ("--targets", f"{HOLES['config']}.targets")
    assert driver.entering(None, None) == vcs.driver("subversion")


def test_a_driver_that_cannot_name_a_user_is_refused() -> None:
    lines = [line for line in SUBVERSION.splitlines() if not line.startswith(("login =", "trust ="))]
    nameless = vcs.parsed("\n".join(lines), "d.toml", "subversion")
    for user, ca, key in (("anna", None, "login"), (None, "/c.pem", "trust")):
        with pytest.raises(BadInput, match=f"has no list `{key}`"):
            nameless.entering(user, ca)


def test_a_step_that_needs_its_standard_input_itself_takes_no_password() -> None:
    driver = vcs.parsed(SUBVERSION.replace('"--targets", "-"', '"-F", "-"'), "d.toml", "subversion")
    assert driver.commands("check-out", HOLES)
    with pytest.raises(BadInput, match="where the repository's password has to go"):
        driver.entering("anna", None).commands("check-out", HOLES)


def test_the_data_set_is_made_on_the_server() -> None:
    made = vcs.driver("subversion").data(HOLES)
    assert [one.on for one in made] == ["server", "server"]
    assert made[-1].argv[-1] == "/r/repo"


# For real


@dataclass
class Desk:
    """A client: runs a driver's commands as its ordinary agent would."""

    driver: Driver
    both: Services
    recipe: Recipe
    trials: int = 0

    @property
    def through(self) -> tuple[str, int]:
        return PROXY, self.both.proxy_port

    def holes(self) -> Mapping[str, vcs.Value]:
        folder = self.both.folder
        return {
            "config": str(folder / "config"),
            "work": str(folder / "work"),
            "pristine": str(folder / "pristine"),
            "lockable": str(folder / "pristine"),
            "url": self.both.root + "/trunk",
            "revision": self.recipe.revision,
            "branch_url": f"{self.both.root}/branches/trial-{self.trials}",
            "seed": self.trials,
            "edit_files": self.recipe.edit_files,
            "edit_pattern": self.recipe.edit_pattern,
            "edit_share": 0.1,
            "locks": "\n".join(self.recipe.locks()) + "\n",
        }

    def setup(self) -> None:
        for one in self.driver.setup(self.holes()):
            self.run(one)

    def trial(self, operation: str, proxy: tuple[str, int] | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """What server's and proxy's logs tell of the timed command alone."""
        self.trials += 1
        counts: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        for one in self.driver.commands(operation, self.holes(), proxy):
            if one.timed:
                self.both.counts()
            self.run(one)
            if one.timed:
                counts = self.both.counts()
        return counts

    def run(self, one: Command) -> None:
        begin, call = time.monotonic(), self.both.promises.call()
        if one.verb == "command":
            told = command.run({**one.args, "timeout_s": 100}, call)
            assert one.succeeded(told["exit"]), (str(one), told["tail"])
        else:
            verb = {"files.copy": files.copy, "files.edit": files.edit, "files.remove": files.remove}[
                one.verb
            ]
            verb(dict(one.args), call)
        log.info("%s %s: %.3f s", one.phase.value, " ".join(str(one).split()[:2]), time.monotonic() - begin)


def desk(recipe: Recipe, driver: Driver) -> Iterator[Desk]:
    with place() as folder, services(folder, repository(recipe, folder / "repository")) as both:
        made = Desk(driver, both, recipe)
        made.setup()
        yield made


@pytest.fixture
def quick() -> Iterator[Desk]:
    yield from desk(QUICK, vcs.driver("subversion"))


@needs_apache
@lab
def test_a_get_is_relayed_once_and_served_after(quick: Desk) -> None:
    server, proxy = quick.trial("get", None)
    assert (server["by_method"]["GET"], server["requests"], proxy["requests"]) == (150, 155, 0)
    direct = server["miss_bytes"]
    server, proxy = quick.trial("get", quick.through)
    assert (proxy["misses"], proxy["miss_bytes"], server["by_method"]["GET"]) == (150, direct, 150)
    server, proxy = quick.trial("get", quick.through)
    assert (proxy["hits"], proxy["misses"], proxy["hit_bytes"]) == (150, 0, direct)
    assert "GET" not in server["by_method"]
    objects = list(quick.both.cache.rglob("*.data"))
    assert len(objects) == 150


@needs_apache
@lab
@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("operation", ["history", "check-in", "check-out"])
def test_what_only_the_server_can_answer_is_never_served(quick: Desk, operation: str, enabled: bool) -> None:
    server, proxy = quick.trial(operation, quick.through if enabled else None)
    assert (server["requests"] > 2, proxy["requests"]) == (True, server["requests"] if enabled else 0)
    assert (proxy["hits"], proxy["misses"], server["failed"]) == (0, 0, 0)
    methods = {"history": ("REPORT", 1), "check-in": ("PUT", 50), "check-out": ("LOCK", 50)}
    name, times = methods[operation]
    assert server["by_method"][name] == times


@needs_apache
@lab
@pytest.mark.parametrize("operation", ["undo", "diff"])
def test_what_the_client_does_alone_asks_nobody(quick: Desk, operation: str) -> None:
    server, proxy = quick.trial(operation, quick.through)
    assert (server["requests"], proxy["requests"]) == (0, 0)


@needs_apache
@lab
def test_every_trial_starts_from_the_same(quick: Desk) -> None:
    """Locks are gone, the trial's branch is its own, and trunk's history has not grown."""
    history = quick.trial("history", None)[0]["other_bytes"]
    for operation in ("check-in", "check-out", "check-in", "check-out"):
        quick.trial(operation, None)
    assert abs(quick.trial("history", None)[0]["other_bytes"] - history) < 0.02 * history
    held = subprocess.check_output(["svnadmin", "lslocks", quick.both.repository], text=True)
    assert held == ""


@needs_apache
@lab
def test_content_travels_in_reports_and_is_not_cacheable_unless_the_driver_forbids_it() -> None:
    text = SUBVERSION.replace("http-bulk-updates=no", "http-bulk-updates=yes")
    for made in desk(QUICK, vcs.parsed(text, "d.toml", "subversion")):
        server, proxy = made.trial("get", made.through)
        assert (server["by_method"].get("GET", 0), proxy["misses"]) == (0, 0)


@needs_apache
@lab
def test_a_driver_whose_proxy_does_nothing_leaves_no_trace_at_the_proxy() -> None:
    begin = SUBVERSION.index("proxy = [")
    text = SUBVERSION[:begin] + "proxy = []" + SUBVERSION[SUBVERSION.index("]", begin) + 1 :]
    for made in desk(QUICK, vcs.parsed(text, "d.toml", "subversion")):
        server, proxy = made.trial("get", made.through)
        assert (server["by_method"]["GET"], proxy["requests"]) == (150, 0)


@needs_apache
@lab
def test_a_proxy_that_is_down_fails_the_command_soon(quick: Desk) -> None:
    begin = time.monotonic()
    with pytest.raises(AssertionError, match=r"E000111|refused"):
        quick.trial("get", (PROXY, 1))
    assert time.monotonic() - begin < 50


@needs_apache
@lab
def test_2008_is_as_many_requests_as_files() -> None:
    for made in desk(LIKE_2008, vcs.driver("subversion")):
        server, _ = made.trial("get", None)
        assert server["by_method"]["GET"] == 1732
        assert 3_000_000 < server["sent_bytes"] < 3_300_000
        made.trial("get", made.through)
        server, proxy = made.trial("get", made.through)
        assert (proxy["hits"], proxy["misses"]) == (1732, 0)
        server, _ = made.trial("check-out", None)
        assert server["by_method"]["LOCK"] == 1732
        for operation in ("undo", "check-in", "history", "diff"):
            made.trial(operation, made.through)


def test_an_agent_refuses_a_working_copy_outside_of_its_scratch(tmp_path: Path) -> None:
    """The drivers lean on this guard: a hole filled wrongly deletes nothing."""
    (tmp_path / "letters").mkdir()
    removing = vcs.driver("subversion").commands("get", {**HOLES, "work": str(tmp_path / "letters")})[0]
    with pytest.raises(Refused):
        files.remove(dict(removing.args), two_apaches.Promises().call())
    assert (tmp_path / "letters").is_dir()


def test_the_lines_to_choose_from_can_be_read() -> None:
    presets = tomllib.loads((resources.files("resources") / "lines" / "presets.toml").read_text("utf-8"))
    for line in presets["lines"]:
        for queue in presets["queues"]:
            assert units.parse_line(f"{line} queue {queue}").line.limited
