"""Packages that a host lacks: looked at, installed by FAKE package managers, recorded, taken away again.

The fakes keep a list of packages in a file and refuse as the real ones do; apt's own answers are recorded ones.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ssh_agents import footprint, package_names, packages, private, protocol, strays, tool

FAKE = '''#!{python} -IS
"""A FAKE package manager: every package brings `NAME-lib`, and is itself a program where the test says so."""
import json, os, sys
folder = {folder!r}
def read(name):
    with open(os.path.join(folder, name)) as file:
        return json.load(file)
def write(name, value):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(value, file)
with open(os.path.join(folder, "calls"), "a") as file:
    file.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + chr(10))
here, words = read("here"), sys.argv[1:]
if {{"--show", "--all", "info", "-Qq"}} & set(words):
    tag = "ii " if "--show" in words else ""
    for name in here:
        print(tag + name)
elif {{"update", "refresh"}} & set(words):
    if read("unreadable"):
        sys.exit("the repository 'file:/nonexistent ./' has no Release file")
    print("read anew")
elif {{"--simulate", "--print"}} & set(words):
    known, program = read("known"), os.path.basename(sys.argv[0])
    for name in [word for word in words if word in known]:
        for one in (name, name + "-lib"):
            print({{"apt-get": "Inst %s (1.0 stable)", "apk": "(1/2) Installing %s (1.0)"}}.get(program, "%s") % one)
elif {{"--remove", "--erase", "del", "-R"}} & set(words):
    if read("stuck"):
        sys.exit("dpkg frontend lock was locked by another process")
    names = [word for word in words if word in here]
    needed = {{name: by for name, by in read("needed").items() if by in here and by not in names}}
    for name in names:
        if name in needed:
            sys.exit("%s is needed by %s" % (name, needed[name]))
    write("here", [name for name in here if name not in names])
elif {{"install", "add", "-S"}} & set(words):
    policy = {policy!r}
    write("policy", os.path.exists(policy) and open(policy).read())
    known, brings = read("known"), read("brings")
    names = [word for word in words if word in known]
    here += read("meanwhile")
    write("here", here)
    for link in read("links"):
        os.symlink("/etc/hostname", link)
    if read("broken"):
        print("Unpacking", names[0])
        sys.exit("the disk is full")
    for name in names:
        for one in (name, name + "-lib"):
            if one not in here:
                here.append(one)
                print("Setting up", one)
        for program in brings.get(name, []):
            with open(os.path.join(folder, "bin", program), "w") as file:
                file.write("#!/bin/sh" + chr(10))
            os.chmod(os.path.join(folder, "bin", program), 0o755)
    write("here", here)
'''


class Host:
    """A folder that is all there is of a host: its PATH, its package manager, its record."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        self.policy = folder / "policy-rc.d"
        self.promises: list[dict[str, object]] = []
        self.kept: list[str] = []
        self.told: list[str] = []
        monkeypatch.setenv("PATH", str(self.bin))
        monkeypatch.setattr(tool, "_MORE_PATH", ())
        monkeypatch.setattr(packages, "RECORD", str(folder / "record" / "packages.json"))
        monkeypatch.setattr(packages, "POLICY", str(self.policy))
        monkeypatch.setattr(packages, "DAV_SVN", (str(self.bin / "mod_dav_svn.so"),))
        monkeypatch.setattr(packages, "_refuse_elsewhere", lambda: None)
        self.say(here=["base"], known=[], brings={}, needed={}, broken=False, policy=None)
        self.say(unreadable=False, stuck=False, meanwhile=[], links=[])
        self.lock = folder / "lock-frontend"
        self.lock.write_text("")
        monkeypatch.setattr(packages, "DPKG_LOCK", str(self.lock))
        monkeypatch.setattr(packages, "MODULES", (str(folder / "mods-enabled" / "*"),))
        (folder / "mods-enabled").mkdir()

    def say(self, **values: object) -> None:
        for name, value in values.items():
            (self.folder / name).write_text(json.dumps(value))

    def read(self, name: str) -> object:
        return json.loads((self.folder / name).read_text())

    def has(self, *programs: str) -> Host:
        text = FAKE.format(python=sys.executable, folder=str(self.folder), policy=str(self.policy))
        for program in programs:
            path = self.bin / program
            path.write_text(text)
            path.chmod(0o755)
        return self

    def calls(self) -> list[list[str]]:
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def call(self) -> protocol.Call:
        def promise(entry: dict[str, object]) -> str:
            self.promises.append(entry)
            return "1"

        return protocol.Call(
            say=lambda event, data: self.told.append(data["text"]),
            cancelled=lambda: False,
            wait_cancelled=lambda seconds: False,
            promise=promise,
            keep=self.kept.append,
        )


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


BY_MANAGER = {
    "apt-get": ("apt-get", "dpkg", "dpkg-query"),
    "dnf": ("dnf", "rpm"),
    "zypper": ("zypper", "rpm"),
    "apk": ("apk",),
    "pacman": ("pacman",),
}


@pytest.mark.parametrize("name", BY_MANAGER)
def test_each_manager_installs_what_is_missing_and_takes_it_away_again(host: Host, name: str) -> None:
    manager = next(one for one in package_names.MANAGERS if one.name == name)
    host.has(*BY_MANAGER[name])
    nft, svn = manager.packages["nft"][0], manager.packages["svn"][0]
    host.say(known=[nft, svn], brings={nft: ["nft"], svn: ["svn"]})

    seen = packages.look({"needs": ["nft", "svn"]}, host.call)
    assert seen["manager"] == name
    assert seen["missing"] == ["nft", "svn"]
    assert seen["packages"] == [nft, svn]
    assert seen["commands"][-1] == [*manager.install, nft, svn]
    assert seen["ours"] == []

    word = packages.install({"needs": ["nft", "svn"]}, host.call)
    # Without a simulation that is read, only what was named is known to be ours; the rest stays.
    brings = ["", "-lib"] if manager.simulate else [""]
    assert word["installed"] == sorted(f"{name}{more}" for name in (nft, svn) for more in brings)
    assert f"Setting up {nft}" in host.told
    assert packages.look({"needs": ["nft", "svn"]}, host.call)["missing"] == []
    # Once more changes nothing.
    before = len(host.calls())
    assert packages.install({"needs": ["nft", "svn"]}, host.call) == {"installed": []}
    assert len(host.calls()) == before

    gone = packages.remove({}, host.call)
    assert gone == {"removed": word["installed"], "kept": [], "why": ""}
    stays = [] if manager.simulate else [f"{nft}-lib", f"{svn}-lib"]
    assert host.read("here") == ["base", *stays]
    assert packages.remove({}, host.call) == {"removed": [], "kept": [], "why": ""}
    assert not Path(packages.RECORD).parent.exists()


def test_what_was_there_before_is_never_taken_away(host: Host) -> None:
    host.has(*BY_MANAGER["apt-get"]).say(
        here=["base", "subversion"], known=["subversion", "nftables"], brings={"nftables": ["nft"]}
    )
    (host.bin / "svn").write_text("")
    (host.bin / "svn").chmod(0o755)
    packages.install({"needs": ["svn", "nft"]}, host.call)
    assert packages.remove({}, host.call)["removed"] == ["nftables", "nftables-lib"]
    assert host.read("here") == ["base", "subversion"]


def test_what_something_else_needs_by_now_stays_and_is_told(host: Host) -> None:
    host.has(*BY_MANAGER["apk"]).say(known=["nftables"], brings={"nftables": ["nft"]})
    packages.install({"needs": ["nft"]}, host.call)
    host.say(here=[*host.read("here"), "firewall"], needed={"nftables": "firewall"})
    word = packages.remove({}, host.call)
    assert word["kept"] == ["nftables"]
    assert word["removed"] == ["nftables-lib"]
    assert "needed by firewall" in word["why"]
    assert "firewall" in host.read("here")


def test_on_debian_no_service_is_started_meanwhile_and_may_be_afterwards(host: Host) -> None:
    host.has(*BY_MANAGER["apt-get"], "update-rc.d").say(known=["squid"], brings={"squid": ["squid"]})
    packages.install({"needs": ["squid"]}, host.call)
    assert host.read("policy") == packages.POLICY_TEXT
    assert ["update-rc.d", "squid", "disable"] in host.calls()  # nor at the next boot
    assert not host.policy.exists()
    (promise,) = host.promises
    assert promise["what"] == "packages being installed, their services kept from starting: squid"
    assert host.kept == ["1"]


def test_an_administrators_own_word_on_services_stands(host: Host) -> None:
    host.has(*BY_MANAGER["apt-get"], "update-rc.d").say(known=["squid"], brings={"squid": ["squid"]})
    host.policy.write_text("#!/bin/sh\nexit 0\n")
    packages.install({"needs": ["squid"]}, host.call)
    assert host.policy.read_text() == "#!/bin/sh\nexit 0\n"
    packages.undo({"names": "squid"})
    assert host.policy.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may take it away")
def test_what_a_power_cut_left_of_an_install_lets_services_start_again(
    host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = tmp_path_factory.mktemp("run")
    monkeypatch.setattr(private, "_candidates", lambda: [str(run / "branchlab")])
    host.has(*BY_MANAGER["apt-get"], "update-rc.d").say(known=["squid"], brings={"squid": ["squid"]})
    host.policy.write_text(packages.POLICY_TEXT)
    (found,) = strays._policy()
    assert str(host.policy) in found.what
    entries = footprint.roots({}, host.call)["entries"]
    assert [one["there"] for one in entries if one["path"] == str(host.policy)] == [True]
    with held(host.lock):  # somebody installs now: it is that one's
        assert strays._policy() == []
    assert "services again" in found.remove()
    assert (found.remove(), strays._policy(), host.policy.exists()) == ("", [], False)
    host.policy.write_text(packages.POLICY_TEXT)
    packages.install({"needs": ["squid"]}, host.call)  # takes it for ours
    assert not host.policy.exists()
    host.policy.write_text(packages.POLICY_TEXT)
    footprint.forget_roots({}, host.call)
    assert not host.policy.exists()
    host.policy.write_text("#!/bin/sh\nexit 101\n")
    assert strays._policy() == []
    assert not footprint.forget_roots({}, host.call)["removed"]


def test_undo_lets_services_start_again_where_the_agent_died(host: Host) -> None:
    host.has(*BY_MANAGER["apt-get"], "update-rc.d").say(here=["base", "squid", "squid-lib", "figlet"])
    host.policy.write_text(packages.POLICY_TEXT)
    work = {
        "manager": "apt-get",
        "brings": ["squid", "squid-lib"],
        "before": ["base"],
        "modules": [],
        "names": "squid",
    }
    with held(host.lock) as let_go:  # the package manager goes on without its agent
        threading.Timer(1.0, let_go).start()
        begun = time.monotonic()
        assert "squid" in packages.undo(work)
        assert time.monotonic() - begun >= 0.5
    assert not host.policy.exists()
    assert ["update-rc.d", "squid", "disable"] in host.calls()
    assert packages.look({"needs": []}, host.call)["ours"] == ["squid", "squid-lib"]
    packages.undo(work)
    assert packages.look({"needs": []}, host.call)["ours"] == ["squid", "squid-lib"]


def test_an_installation_that_fails_tells_the_last_words_and_leaves_services_alone(host: Host) -> None:
    host.has(*BY_MANAGER["apt-get"]).say(known=["nftables"], broken=True)
    with pytest.raises(protocol.Refused) as caught:
        packages.install({"needs": ["nft"]}, host.call)
    assert "the disk is full" in caught.value.text
    assert not host.policy.exists()
    # Nothing came: what an administrator installs now is his.
    host.say(here=["base", "nftables"])
    assert packages.remove({}, host.call)["removed"] == []


def test_what_others_installed_meanwhile_is_theirs(host: Host) -> None:
    host.has(*BY_MANAGER["apt-get"]).say(
        known=["nftables"], brings={"nftables": ["nft"]}, meanwhile=["figlet"]
    )
    assert packages.install({"needs": ["nft"]}, host.call)["installed"] == ["nftables", "nftables-lib"]
    packages.remove({}, host.call)
    assert host.read("here") == ["base", "figlet"]


def test_a_source_out_of_reach_is_told_and_is_no_reason_not_to_try(host: Host) -> None:
    host.has(*BY_MANAGER["apt-get"]).say(known=["nftables"], brings={"nftables": ["nft"]}, unreadable=True)
    assert packages.install({"needs": ["nft"]}, host.call)["installed"]
    assert any("no Release file" in text for text in host.told)


def test_what_could_not_be_removed_for_another_reason_stays_known_as_ours(host: Host) -> None:
    host.has(*BY_MANAGER["apt-get"]).say(known=["nftables"], brings={"nftables": ["nft"]})
    packages.install({"needs": ["nft"]}, host.call)
    host.say(stuck=True)
    with pytest.raises(protocol.Refused, match="locked by another process"):
        packages.remove({}, host.call)
    host.say(stuck=False)
    assert packages.remove({}, host.call)["removed"] == ["nftables", "nftables-lib"]


def test_removing_waits_for_another_package_manager(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.has(*BY_MANAGER["apt-get"]).say(known=["nftables"], brings={"nftables": ["nft"]})
    packages.install({"needs": ["nft"]}, host.call)
    monkeypatch.setattr(packages, "WAIT_S", 0.5)
    with held(host.lock), pytest.raises(protocol.Refused) as caught:
        packages.remove({}, host.call)
    assert caught.value.kind == "busy"
    assert packages.remove({}, host.call)["removed"] == ["nftables", "nftables-lib"]


def test_the_systems_own_apache_loads_nothing_new(host: Host) -> None:
    mods = host.folder / "mods-enabled"
    (mods / "status.load").symlink_to("/etc/hostname")
    host.has(*BY_MANAGER["apt-get"]).say(
        known=["libapache2-mod-svn"],
        brings={"libapache2-mod-svn": ["mod_dav_svn.so"]},
        links=[str(mods / "dav.load"), str(mods / "dav_svn.load")],
    )
    packages.install({"needs": ["mod_dav_svn"]}, host.call)
    assert [path.name for path in mods.iterdir()] == ["status.load"]


HOLDING = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print(flush=True)
input()
"""


@contextmanager
def held(path: Path) -> Iterator[Callable[[], None]]:
    """Another process has the lock until it is let go."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process.kill
    finally:
        process.kill()
        process.communicate()


def test_a_package_that_does_not_bring_its_program_is_told(host: Host) -> None:
    host.has(*BY_MANAGER["apk"]).say(known=["nftables"], brings={})
    with pytest.raises(protocol.Refused, match="still not there: nft"):
        packages.install({"needs": ["nft"]}, host.call)


def test_a_host_without_a_known_manager_or_package_is_told_what_it_lacks(host: Host) -> None:
    seen = packages.look({"needs": ["nft"]}, host.call)
    assert seen == {
        "manager": None,
        "missing": ["nft"],
        "unknown": ["nft"],
        "packages": [],
        "all": [],
        "commands": [],
        "ours": [],
    }
    with pytest.raises(protocol.Refused, match="no package manager"):
        packages.install({"needs": ["nft"]}, host.call)
    host.has(*BY_MANAGER["dnf"])
    with pytest.raises(protocol.Refused, match="dnf has no package for wirefilter"):
        packages.install({"needs": ["wirefilter"]}, host.call)


@pytest.mark.parametrize("need", ["bash", "svn; rm -rf /", "--allow-downgrades", "subversion", ""])
def test_only_what_the_table_has_can_be_asked_for(host: Host, need: str) -> None:
    host.has(*BY_MANAGER["apt-get"])
    for verb in (packages.look, packages.install):
        with pytest.raises(protocol.Refused, match="no such need"):
            verb({"needs": [need]}, host.call)
    assert host.calls() == []


def test_a_record_that_others_can_write_is_not_believed(host: Host) -> None:
    host.has(*BY_MANAGER["apt-get"]).say(here=["base", "libc6"])
    record = Path(packages.RECORD)
    record.parent.mkdir()
    record.write_text(json.dumps({"installed": ["libc6"]}))
    record.chmod(0o666)
    assert packages.remove({}, host.call)["removed"] == []
    record.chmod(0o644)
    assert packages.remove({}, host.call)["removed"] == ["libc6"]


def test_the_record_is_for_root_alone_to_write(host: Host) -> None:
    host.has(*BY_MANAGER["apt-get"]).say(known=["nftables"], brings={"nftables": ["nft"]})
    packages.install({"needs": ["nft"]}, host.call)
    seen = os.stat(packages.RECORD)
    assert not stat.S_IMODE(seen.st_mode) & 0o022


def test_dpkgs_list_has_removed_packages_whose_configuration_stays() -> None:
    apt = package_names.MANAGERS[0]
    text = "ii adduser\nrc apache2\niU nginx\nii  zlib1g\nhi linux-image-amd64\n"
    assert package_names.installed(apt, text) == ["adduser", "zlib1g"]


def test_rpms_list_has_keys_that_are_no_packages() -> None:
    dnf = package_names.MANAGERS[1]
    assert package_names.installed(dnf, "bash\ngpg-pubkey\nglibc\nglibc\n") == ["bash", "glibc"]


def test_every_need_has_a_way_to_be_found_and_apt_has_a_package_for_each() -> None:
    for need in package_names.NEEDS:
        packages.there(need)
        assert package_names.MANAGERS[0].packages[need]
    for manager in package_names.MANAGERS:
        assert set(manager.packages) <= set(package_names.NEEDS)
