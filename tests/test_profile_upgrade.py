"""Profiles of an older form: read as they are, brought to this form when edited, kept beside when saved."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from lab import profile, profile_upgrade
from lab.draft import Draft
from lab.errors import BadInput

OLD = """\
# our office
name = "Minsk office" # the old router

[hosts.server]
role = "server"
ssh = "server" # by its alias
address = "10.0.0.1"

[hosts.desk-1]
role = "client"
ssh = "desk-1"
address = "10.0.0.2"
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "minsk.toml"
    path.write_text(OLD, "utf-8")
    return path


def test_an_older_profile_is_read_and_the_file_stays_as_it_is(old: Path) -> None:
    found = profile.load(old)
    assert [host.name for host in found.lab.hosts] == ["server", "desk-1"]
    assert "an older BranchLab wrote this (schema 0)" in found.warnings[0]
    assert old.read_text("utf-8") == OLD


def test_what_is_wrong_in_it_is_told_by_its_own_lines(old: Path) -> None:
    old.write_text(OLD.replace('role = "client"', 'role = "clinet"'), "utf-8")
    with pytest.raises(BadInput, match=r"minsk.toml:10: hosts.desk-1.role"):
        profile.load(old)


def test_opened_to_be_edited_it_is_brought_here_with_its_comments_in_one_step(old: Path) -> None:
    draft = Draft.opened(old)
    assert draft.text == f"schema = 1\n{OLD}"
    assert draft.undoes == "bring it from schema 0 to 1"
    assert draft.changed
    assert draft.warnings == ()
    draft.undo()
    assert draft.text == OLD


def test_saved_the_old_file_is_kept_beside_it_once(old: Path) -> None:
    draft = Draft.opened(old)
    draft.put("rename", ("name",), "Minsk")
    draft.save()
    kept = old.with_name("minsk.schema-0.toml")
    assert draft.backup == kept
    assert kept.read_text("utf-8") == OLD
    assert old.read_text("utf-8").startswith("schema = 1\n# our office\n")
    draft.put("rename", ("name",), "Minsk again")
    draft.save()
    assert sorted(path.name for path in old.parent.iterdir()) == ["minsk.schema-0.toml", "minsk.toml"]


def test_no_backup_is_written_over(old: Path) -> None:
    kept = old.with_name("minsk.schema-0.toml")
    kept.write_text("an earlier one")
    Draft.opened(old).save()
    assert kept.read_text() == "an earlier one"
    assert old.with_name("minsk.schema-0-2.toml").read_text("utf-8") == OLD


def test_a_newer_one_is_refused_kindly_and_can_still_be_looked_at(old: Path) -> None:
    old.write_text(f"schema = 2\n{OLD}", "utf-8")
    with pytest.raises(
        BadInput, match=r"minsk.toml:1: schema: a newer BranchLab wrote this \(schema 2\): update"
    ):
        profile.load(old)
    draft = Draft.opened(old)
    assert draft.profile is None
    assert not draft.changed
    with pytest.raises(BadInput):
        draft.save()


def test_what_has_no_hosts_is_no_older_profile() -> None:
    assert profile_upgrade.older({"project": {}}) is None
    assert profile_upgrade.older({"schema": True, "hosts": {}}) is None
    assert profile_upgrade.older({"schema": -1, "hosts": {}}) is None


def test_steps_follow_each_other_on_both_kinds_of_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up forms, since there is one real step so far."""

    def second(document: Any) -> None:
        document["name"] = document.pop("title")

    def third(document: Any) -> None:
        for host in document["hosts"].values():
            host["root"] = "sudo" if host.pop("sudo", False) else "none"

    monkeypatch.setattr(profile_upgrade, "STEPS", {0: lambda document: None, 1: second, 2: third})
    monkeypatch.setattr(profile_upgrade, "SCHEMA", 3)
    text = 'schema = 1\ntitle = "x" # kept\n[hosts.a]\nsudo = true\n'
    plain = tomllib.loads(text)
    assert profile_upgrade.upgrade(plain) == 1
    made, found = profile_upgrade.upgraded(text)
    assert found == 1
    assert tomllib.loads(made) == plain
    assert plain == {"schema": 3, "name": "x", "hosts": {"a": {"root": "sudo"}}}
    assert profile_upgrade.upgraded(made) == (made, None)
    assert tomlkit.parse(made)["schema"] == 3


def test_every_older_form_has_its_step() -> None:
    assert sorted(profile_upgrade.STEPS) == list(range(profile_upgrade.SCHEMA))
