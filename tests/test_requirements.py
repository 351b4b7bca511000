"""What an administrator is told does what it says: printed commands are run, printed files are found and removed."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import users
from stand_in_hosts import Args, connected
from test_cli import World
from test_cli import world as world  # a fixture
from two_apaches import Promises

from lab import agents, ssh
from lab.errors import HostLacks, HostTrouble, HostUnreachable
from lab.model import DISABLED, Cache, Experiment, Host, Lab, Line, Role
from lab.rig import checking, hosts, requirements
from ssh_agents import footprint, grounds, installed, made, package_names, private, system
from ssh_agents.protocol import Refused

FOLDER = Path(requirements.FOLDER)
lab_only = pytest.mark.lab
EXPERIMENT = Experiment(name="x", lines=(Line(upload_bps=None, download_bps=None),), states=(DISABLED,))


@pytest.fixture(scope="module")
def somebody() -> Iterator[users.User]:
    with users.user() as made:
        yield made


@pytest.fixture
def user(somebody: users.User) -> Iterator[users.User]:
    if FOLDER.exists():
        pytest.skip(f"{FOLDER} is there already")
    yield somebody
    somebody.forgotten()
    shutil.rmtree(FOLDER, ignore_errors=True)


def named(host: Host, name: str, role: Role, **more: Any) -> Host:
    return dataclasses.replace(host, name=name, role=role, **more)


def lab(*found: Host) -> Lab:
    return Lab(name="x", hosts=found)


def told(found: tuple[requirements.Told, ...]) -> str:
    assert all(one.ok for one in found), found
    return "\n".join(text for one in found for text in one.lines)


def printed(text: str) -> list[str]:
    """The commands for an administrator."""
    return [
        line.strip() for line in text.splitlines() if line.strip().startswith(("install", "test", "echo"))
    ]


@lab_only
def test_what_is_printed_for_sudo_is_enough_and_is_all(user: users.User) -> None:
    """As an administrator would do it: paste the commands, then the one line."""
    bench = lab(user.host())
    text = told(requirements.sudoers(bench))
    commands = printed(text)
    rules = [line.strip() for line in text.splitlines() if "NOPASSWD" in line]
    assert (len(commands), len(rules)) == (3, 1)
    assert "*" not in rules[0]
    subprocess.run(["sh", "-e", "-c", "\n".join(commands)], check=True, cwd="/")
    user.sudoers(rules[0])
    again = told(requirements.sudoers(bench))
    assert "is installed" in again
    assert "install -" not in again
    with ssh.connect(user.host()) as connection, agents.started(connection) as helper:
        with agents.started(connection, privileged=True, root="sudo", helper=helper) as agent:
            assert agent.hello["uid"] == 0
        path = FOLDER / f"agent-{agents.bundle().digest}.py"
        path.rename(FOLDER / f"agent-{'a' * 64}.py")
        left = told(requirements.sudoers(bench))
        assert f"rm {FOLDER}/agent-{'a' * 64}.py" in left


@lab_only
def test_a_later_rule_or_a_missing_copy_is_told_as_such(user: users.User) -> None:
    bench = lab(user.host())
    text = told(requirements.sudoers(bench))
    assert "/etc/sudoers.d/zz-branchlab" in text
    assert "the last one counts" in text
    commands = printed(text)
    rule = next(line.strip() for line in text.splitlines() if "NOPASSWD" in line)

    def advice(*rules: str) -> str:
        user.sudoers(*rules)
        with ssh.connect(user.host()) as connection, agents.started(connection) as helper:
            with pytest.raises(HostLacks) as caught:
                agents.started(connection, privileged=True, root="sudo", helper=helper)
            return caught.value.advice

    assert "not the copy of the agent that it allows" in advice(rule)
    assert "of another version" in advice(re.sub("agent-[0-9a-f]{64}", f"agent-{'a' * 64}", rule))
    subprocess.run(["sh", "-e", "-c", "\n".join(commands)], check=True, cwd="/")
    said = advice(rule, "USER ALL=(ALL) ALL")
    assert "a later rule overrides the line" in said
    assert f"sudo -l -U {user.name}" in said
    assert "sudo shows no line for it" in advice("USER ALL=(ALL) ALL")


def test_no_line_is_printed_for_a_python_that_somebody_could_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("owners are changed by root only")
    tmp_path.chmod(0o755)
    for name in ("theirs", "ours", "pyenv"):
        (tmp_path / name).mkdir(mode=0o755)
    (tmp_path / "pyenv" / "python3.11").write_text("#!/bin/sh\n")
    (tmp_path / "pyenv" / "python3.11").chmod(0o755)
    os.chown(tmp_path / "pyenv" / "python3.11", 1234, -1)
    (tmp_path / "theirs" / "python3").symlink_to(tmp_path / "pyenv" / "python3.11")
    monkeypatch.setattr(installed, "_PATH", f"{tmp_path}/theirs:{tmp_path}/ours")
    asked = {"digest": "a" * 64}
    seen = installed.look(asked, Promises().call())
    assert (seen["python"], "belongs to user 1234" in seen["python_reason"]) == (None, True)
    assert "others could exchange" in "\n".join(requirements._no_python(seen["python_reason"]))
    shutil.copy(tmp_path / "pyenv" / "python3.11", tmp_path / "ours" / "python3")
    assert installed.look(asked, Promises().call())["python"] == f"{tmp_path}/ours/python3"
    monkeypatch.setattr(system, "user", lambda: 1234)  # also if it is the one who asks
    assert installed.look(asked, Promises().call())["python"] == f"{tmp_path}/ours/python3"


@lab_only
def test_a_copy_that_was_changed_on_the_way_is_removed(user: users.User) -> None:
    commands = printed(told(requirements.sudoers(lab(user.host()))))
    (user.cache / f"agent-{agents.bundle().digest}.py").write_text("evil")
    subprocess.run(["sh", "-c", "\n".join(commands)], capture_output=True, check=False)
    assert list(FOLDER.iterdir()) == []


@lab_only
def test_a_copy_has_its_name_only_once_its_text_is_checked(user: users.User) -> None:
    """The line for sudo may be there already: what lies under that name can be run as root by that user."""
    make, copy, check = printed(told(requirements.sudoers(lab(user.host()))))
    kept = user.cache / f"agent-{agents.bundle().digest}.py"
    ours = kept.read_text()
    kept.write_text("evil")
    subprocess.run(["sh", "-e", "-c", f"{make}\n{copy}"], check=True, cwd="/")
    (unchecked,) = FOLDER.iterdir()
    assert (unchecked.name, unchecked.stat().st_mode & 0o777) == (f"{kept.stem}.new", 0o600)
    assert any(str(unchecked) in one["path"] for one in footprint.roots({}, Promises().call())["entries"])
    subprocess.run(["sh", "-c", check], capture_output=True, check=False)
    assert list(FOLDER.iterdir()) == []
    kept.unlink()
    os.mkfifo(kept)  # whoever reads it waits until its writer likes
    subprocess.run(["sh", "-c", f"{copy}\n{check}"], capture_output=True, check=False, timeout=60)
    assert list(FOLDER.iterdir()) == []
    kept.unlink()
    kept.write_text(ours)
    subprocess.run(["sh", "-e", "-c", f"{copy}\n{check}"], check=True, cwd="/")
    assert "is installed" in told(requirements.sudoers(lab(user.host())))


@lab_only
def test_hosts_that_need_none_or_use_doas_are_told_their_own(user: users.User) -> None:
    text = told(requirements.sudoers(lab(user.host("none"), user.host("direct"))))
    assert text.count("nothing is needed") == 2
    text = told(requirements.sudoers(lab(user.host("doas"))))
    rule = next(line.strip() for line in text.splitlines() if "permit" in line)
    if shutil.which("doas"):
        conf = user.folder / "doas.conf"
        conf.write_text(rule + "\n")
        words = rule.partition(" cmd ")[2].replace(" args ", " ").split()
        said = subprocess.run(["doas", "-C", str(conf), *words], capture_output=True, text=True, check=False)
        assert said.stderr == ""


@pytest.mark.parametrize("name", ["admin", "DOM\\admin", "a.b", "x@y", "#5", "a b"])
def test_the_line_escapes_what_sudoers_takes_for_its_own(tmp_path: Path, name: str) -> None:
    if shutil.which("visudo") is None:
        pytest.skip("no visudo here")
    rule = requirements.line("sudo", name, "/usr/bin/python3", f"{FOLDER}/agent-{'0' * 64}.py")
    (tmp_path / "rule").write_text(rule + "\n")
    said = subprocess.run(
        ["visudo", "-cf", str(tmp_path / "rule")], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr


@lab_only
def test_requirements_name_packages_ports_rights_and_files(user: users.User) -> None:
    server = named(user.host(), "server", Role.SERVER, services="/run/branchlab-test")
    proxy = named(
        user.host(), "proxy", Role.PROXY, services="/run/branchlab-test", url="http://192.0.2.1:8099",
        cache=Cache(kind="apache-disk", folder="/var/cache/branchlab-test/cache"),
    )  # fmt: skip
    desk = named(user.host("none"), "desk", Role.CLIENT)
    experiment = dataclasses.replace(EXPERIMENT, repository="http://{server}:8443/svn/trunk")
    found = requirements.requirements(lab(server, proxy, desk), (experiment,))
    told(found)
    at_server, at_proxy, at_desk = ("\n".join(one.lines) for one in found)
    assert "Packages: apache2-bin iproute2 libapache2-mod-svn nftables python3 subversion" in at_server
    assert "TCP 8443 for the repository" in at_server
    assert f"TCP {user.server.port} for SSH" in at_server
    assert "/run/branchlab-test/svn-server" in at_server
    assert "NOPASSWD" in at_server
    assert "TCP 8099 for the proxy" in at_proxy
    assert "/var/cache/branchlab-test/cache" in at_proxy
    assert f"{user.cache}/agent-DIGEST.py: the agent, kept for the next time (there now)" in at_desk
    assert "/run/branchlab" not in at_desk.replace("/tmp/branchlab", "")
    uid = user.run("id", "-u").stdout.strip()
    assert f"/branchlab-run-{uid}: leases" in at_desk
    assert f"/branchlab-{uid}: scratch folders" in at_desk
    assert "taken-back.jsonl-…, what this host took back" in at_desk
    assert "/run/branchlab: leases" in at_server
    assert "taken-back.jsonl-…" in at_server
    assert "/var/lib/branchlab/made" in at_server
    assert "until branchlab forget" not in at_server
    assert "the cache's until branchlab forget" in at_proxy


def test_other_systems_get_plain_names() -> None:
    host = Host(name="s", role=Role.SERVER, ssh="s", root="sudo", services="/run/x")
    lab = Lab(name="", hosts=(host,))
    fedora = package_names.MANAGERS[1]

    def look(args: Args) -> Args:
        return {"manager": fedora.name, "unknown": [], "all": package_names.packages(fedora, args["needs"])}

    one = connected("s", Role.SERVER, {"packages.look": look})
    text = "\n".join(requirements._packages(host, lab, one.agent))
    assert text == "Packages: httpd iproute-tc mod_dav_svn nftables python3 subversion"
    nothing = connected(
        "s", Role.SERVER, {"packages.look": lambda args: {"manager": None, "unknown": ["tc"]}}
    )
    text = "\n".join(requirements._packages(host, lab, nothing.agent))
    assert text.startswith("Programs: Python 3.8 or newer; tc (iproute2)")
    assert "mod_dav_svn" in text


@lab_only
def test_a_host_out_of_reach_does_not_keep_the_others_from_being_told(user: users.User) -> None:
    gone = Host(name="gone", role=Role.CLIENT, ssh="127.0.0.1:1", host_key=user.server.host_key())
    found = requirements.sudoers(lab(gone, user.host()))
    assert [one.ok for one in found] == [False, True]
    assert "refuses connections" in found[0].lines[0]
    with pytest.raises(HostTrouble, match="refuses connections"):
        requirements.forget(lab(gone, user.host("none")))
    assert not user.cache.exists()


@lab_only
def test_forget_removes_the_last_file_and_nothing_of_others_and_twice_succeeds(user: users.User) -> None:
    base = Path(f"/var/cache/branchlab-test-{user.name}")
    services = Path(f"/run/branchlab-test-{user.name}")
    user.sudoers("USER ALL=(root) NOPASSWD: ALL")
    FOLDER.mkdir()
    (FOLDER / f"agent-{'b' * 64}.py").write_text("old")
    (FOLDER / "theirs.py").write_text("not ours")
    proxy = named(
        user.host(), "proxy", Role.PROXY, services=str(services),
        cache=Cache(kind="apache-disk", folder=str(base / "cache")),
    )  # fmt: skip
    try:
        with ssh.connect(user.host()) as connection, agents.started(connection):
            assert list(user.cache.iterdir())
        (user.cache / "theirs").write_text("not ours")
        scratch = Path(f"/tmp/branchlab-{user.home.stat().st_uid}")
        for name in ("ours", "theirs"):
            user.run("mkdir", "-p", "-m", "700", str(scratch / name))
        user.run("touch", str(scratch / "ours" / ".branchlab-scratch"))
        grounds.make_cache(str(base / "cache"))
        (base / "cache" / "Ab").mkdir()
        grounds.make_folder(str(services / "caching-proxy"))

        removed = requirements.forget(lab(proxy))["proxy"]
        assert [path.name for path in user.cache.iterdir()] == ["theirs"]
        assert [path.name for path in scratch.iterdir()] == ["theirs"]
        assert [path.name for path in FOLDER.iterdir()] == ["theirs.py"]
        assert not base.exists()
        assert not services.exists()
        for path in (user.cache, scratch / "ours", base / "cache", services / "caching-proxy", FOLDER):
            assert any(str(path) in text for text in removed), (path, removed)
        assert requirements.forget(lab(proxy))["proxy"] == [
            f"left, since something of others is in it: {FOLDER}"
        ]
        assert (user.cache / "theirs").read_text() == "not ours"
    finally:
        for path in (base, services, scratch):
            shutil.rmtree(path, ignore_errors=True)


@lab_only
def test_forget_without_root_says_what_stays(user: users.User) -> None:
    FOLDER.mkdir()
    (FOLDER / f"agent-{'b' * 64}.py").write_text("old")
    with ssh.connect(user.host()) as connection, agents.started(connection):
        pass
    removed = requirements.forget(lab(user.host("none")))["bench"]
    assert any(text.startswith("left, since only root") for text in removed)
    assert (FOLDER / f"agent-{'b' * 64}.py").exists()
    assert not user.cache.exists()
    assert not user.cache.parent.exists()  # it was made for the agent


@lab_only
def test_an_empty_folder_of_copies_goes_and_a_folder_of_caches_that_was_there_stays(user: users.User) -> None:
    user.sudoers("USER ALL=(root) NOPASSWD: ALL")
    FOLDER.mkdir()
    user.run("mkdir", str(user.cache.parent))
    with ssh.connect(user.host()) as connection, agents.started(connection):
        pass
    removed = requirements.forget(lab(user.host()))["bench"]
    assert any(str(FOLDER) in text for text in removed)
    assert not FOLDER.exists()
    assert (user.cache.exists(), user.cache.parent.exists()) == (False, True)


def test_the_last_words_fit_what_went_wrong() -> None:
    asks = HostLacks(
        "sudo asks for a password, and none is known", host="a", advice="Run it from a terminal."
    )
    silent = HostUnreachable("does not answer", host="b")
    again = "Run it again once they answer."
    alone = checking.unfinished([asks], {}, "removed", again)
    assert (str(alone), alone.advice) == (asks.told(), "")
    both = checking.unfinished([asks, silent], {"c": ["x", "y"]}, "removed", again)
    assert str(both).endswith("\nother hosts: c: 2 removed")
    assert both.advice == again


@lab_only
def test_signing_in_leaves_a_host_as_it_was(user: users.User) -> None:
    user.sudoers("USER ALL=(root) ALL")
    known = hosts.Passwords(lambda question: user.password)
    hosts.signed_in(user.host(), known)
    text = known.password(f"{user.name}@127.0.0.1:{user.server.port}", "bench")
    assert text == user.password


@pytest.mark.skipif(os.geteuid() != 0, reason="these folders are root's")
def test_only_what_is_marked_and_cannot_be_exchanged_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private, "_candidates", lambda: [str(tmp_path / "run")])
    monkeypatch.setattr(footprint.installed, "FOLDER", str(tmp_path / "installed"))
    monkeypatch.setattr(made, "FOLDER", str(tmp_path / "state" / "made"))
    tmp_path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    grounds.make_cache(str(home / "cache"))
    grounds.make_cache(str(tmp_path / "deep" / "kept"))
    for name in ("photos", "marked"):
        (tmp_path / name).mkdir()
    (tmp_path / "marked" / grounds.CACHE_MARK).write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "kept")
    call = Promises().call()

    def forget(**what: list[str]) -> list[str]:
        word: list[str] = footprint.forget_roots(what, call)["removed"]
        return word

    assert forget(caches=[str(tmp_path / "absent")]) == []
    asked = [str(tmp_path / name) for name in ("photos", "marked", "link")]
    word = footprint.forget_roots({"caches": asked, "services": asked}, call)
    assert word["removed"] == []
    assert [text.split(" ")[0] for text in word["left"]] == asked * 2
    os.chown(home, 65534, 65534)
    with pytest.raises(Refused, match="can be changed by others"):
        forget(caches=[str(home / "cache")])
    for place in ("/", "/etc/x", "relative", "/tmp/../etc"):
        with pytest.raises(Refused):
            forget(caches=[place])
    assert (home / "cache" / grounds.CACHE_MARK).exists()
    assert (tmp_path / "deep" / "kept" / grounds.CACHE_MARK).exists()
    assert len(forget(caches=[str(tmp_path / "deep" / "kept")])) == 1
    assert not (tmp_path / "deep").exists()
    os.chown(home, 0, 0)
    assert len(forget(caches=[str(home / "cache")])) == 1
    grounds.make_cache(str(tmp_path / "deep" / "kept"))
    shutil.rmtree(tmp_path / "deep" / "kept")  # by hand
    assert forget(caches=[str(tmp_path / "deep" / "kept")]) == []
    assert not (tmp_path / "deep").exists()
    assert not (tmp_path / "state").exists()


# The commands


def test_the_commands_say_it_host_by_host(world: World) -> None:
    said = [requirements.Told("server", ("one", "two")), requirements.Told("desk-1", ("three",), ok=False)]
    parts = dataclasses.replace(
        world.parts,
        sudoers=lambda lab: said[:1],
        requirements=lambda lab, experiments: said,
        forget=lambda lab: {"server": ["removed: x"], "desk-1": []},
    )
    from click.testing import CliRunner

    from lab.__main__ import cli

    def call(*words: str) -> Any:
        return CliRunner().invoke(cli, [*words, str(world.profile)], obj=parts)

    assert call("check", "--sudoers").output == "On server:\n  one\n  two\n"
    assert call("check", "--sudoers").exit_code == 0
    result = call("check", "--requirements")
    assert (result.exit_code, "On desk-1:\n  three" in result.output) == (3, True)
    assert call("forget").output == "server: removed: x\ndesk-1: nothing was left\n"
    assert world.touched == []
