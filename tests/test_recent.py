"""What this machine remembers of profiles."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from lab import new_lab, profile, recent
from lab.model import Role
from lab.new_lab import Entry, NewLab
from lab.profile import Profile

TEXT = new_lab.text(
    NewLab(
        name="Minsk office",
        hosts=(
            Entry(role=Role.SERVER, ssh="server", address="10.0.0.1"),
            Entry(role=Role.CLIENT, ssh="desk-1", address="10.0.0.2"),
        ),
    )
)


def saved(path: Path, name: str = "Minsk office") -> Profile:
    path.write_text(TEXT.replace("Minsk office", name), "utf-8")
    return profile.load(path)


def test_newest_first_each_once_with_what_was_in_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert recent.profiles(data) == ()
    recent.opened(saved(tmp_path / "a.toml", "A"), data)
    recent.opened(saved(tmp_path / "b.toml", "B"), data)
    recent.opened(saved(tmp_path / "a.toml", "A2"), data)
    first, second = recent.profiles(data)
    assert (first.name, first.hosts, first.experiments, first.gone) == ("A2", 2, 1, False)
    assert second.path == tmp_path / "b.toml"


def test_one_that_is_gone_is_told_and_can_be_taken_out(tmp_path: Path) -> None:
    data = tmp_path / "data"
    recent.opened(saved(tmp_path / "a.toml"), data)
    recent.opened(saved(tmp_path / "b.toml"), data)
    (tmp_path / "b.toml").unlink()
    assert [one.gone for one in recent.profiles(data)] == [True, False]
    recent.forget(tmp_path / "b.toml", data)
    assert [one.path.name for one in recent.profiles(data)] == ["a.toml"]
    assert (tmp_path / "a.toml").exists()


def test_no_more_than_most_are_kept(tmp_path: Path) -> None:
    data = tmp_path / "data"
    one = saved(tmp_path / "a.toml")
    for number in range(recent.MOST + 3):
        recent.opened(Profile(lab=one.lab, experiments=(), path=tmp_path / f"{number}.toml"), data)
    assert len(recent.profiles(data)) == recent.MOST


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "[1]", '[{"path": "/x"}]', '[{"path": 1, "name": "x", "opened": "y"}]']
)
def test_a_damaged_list_is_a_shorter_one(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    (tmp_path / "recent.json").write_text(text)
    assert recent.profiles(tmp_path) == ()
    recent.opened(saved(tmp_path / "a.toml"), tmp_path)
    assert len(recent.profiles(tmp_path)) == 1


def test_a_folder_that_cannot_be_written_is_no_trouble(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    recent.opened(saved(tmp_path / "a.toml"), file)
    recent.agree(TEXT, file)
    assert recent.profiles(file) == ()
    assert not recent.familiar(TEXT, file)


def test_what_was_agreed_to_is_known_by_what_it_says(tmp_path: Path) -> None:
    assert not recent.familiar(TEXT, tmp_path)
    recent.agree(TEXT, tmp_path)
    assert recent.familiar(TEXT, tmp_path)
    assert recent.familiar(f"# a remark\n{TEXT}\n", tmp_path)
    assert not recent.familiar(TEXT.replace("attempts = 4", "attempts = 5"), tmp_path)
    assert not recent.familiar("no toml at all [", tmp_path)
