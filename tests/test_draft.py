"""A profile being edited: changes and their taking back, comments, saving, what is kept for a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import draft, profile
from lab.draft import Draft
from lab.errors import BadInput

TEXT = """\
schema = 1   # the first one
name = "Minsk office"

[hosts.server]  # in the cellar
role = "server"
ssh = "admin@198.51.100.10"
address = "198.51.100.10"

[hosts.desk]
role = "client"
ssh = "desk"   # by the window

[[experiments]]
name = "Slow lines"
data = "quick"
lines = [
  "64/128 kbit/s",   # what we have
  "1/2 Mbit/s",      # what they offer
]
states = ["disabled"]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "minsk.toml"
    file.write_text(TEXT)
    return file


def test_a_profile_that_is_opened_is_as_it_was(path: Path) -> None:
    one = Draft.opened(path)
    assert one.text == TEXT
    assert not one.changed
    assert not one.problems
    assert one.profile is not None
    assert one.profile.lab.name == "Minsk office"
    assert (one.undoes, one.redoes) == ("", "")
    assert one.undo() == one.redo() == ""


def test_a_change_is_one_step_and_comments_stay(path: Path) -> None:
    one = Draft.opened(path)
    one.put("attempts", ("experiments", 0, "attempts"), 6)
    assert one.changed
    assert one.profile.experiment().attempts == 6
    for comment in (
        "# the first one",
        "# in the cellar",
        "# by the window",
        "# what we have",
        "# what they offer",
    ):
        assert comment in one.text
    assert one.undoes == "attempts"
    assert one.undo() == "attempts"
    assert one.text == TEXT
    assert not one.changed
    assert one.redoes == "attempts"
    assert one.redo() == "attempts"
    assert one.profile.experiment().attempts == 6


def test_lines_are_added_changed_and_removed_in_their_place(path: Path) -> None:
    one = Draft.opened(path)
    lines = ("experiments", 0, "lines")
    one.put("add a line", (*lines, 2), "2/4 Mbit/s")
    one.put("change a line", (*lines, 0), "128/256 kbit/s")
    one.remove("remove a line", (*lines, 1))
    assert tomlkit.parse(one.text)["experiments"][0]["lines"] == ["128/256 kbit/s", "2/4 Mbit/s"]
    assert "# what we have" in one.text
    assert [one.undo() for _ in range(3)] == ["remove a line", "change a line", "add a line"]
    assert one.text == TEXT


def test_a_host_is_made_and_taken_out(path: Path) -> None:
    one = Draft.opened(path)
    one.put("role", ("hosts", "desk-2", "role"), "client")
    one.put("way", ("hosts", "desk-2", "ssh"), "desk-2")
    assert [host.name for host in one.profile.lab.hosts] == ["server", "desk", "desk-2"]
    one.remove("host", ("hosts", "desk-2"))
    assert [host.name for host in one.profile.lab.hosts] == ["server", "desk"]
    with pytest.raises(LookupError):
        one.remove("host", ("hosts", "nobody"))


def test_what_is_wrong_is_told_while_the_last_right_one_stays(path: Path) -> None:
    one = Draft.opened(path)
    one.put("attempts", ("experiments", 0, "attempts"), 0)
    assert [problem.place for problem in one.problems] == [("experiments", 0, "attempts")]
    assert one.profile.experiment().attempts == 4
    with pytest.raises(BadInput):
        one.save()
    assert path.read_text() == TEXT
    one.undo()
    assert not one.problems


def test_a_text_that_is_no_toml_can_be_typed_and_taken_back(path: Path) -> None:
    one = Draft.opened(path)
    one.replace("typed", TEXT + "[broken")
    assert "no TOML" in one.problems[0].text
    with pytest.raises(BadInput):
        one.put("attempts", ("experiments", 0, "attempts"), 2)
    one.undo()
    assert one.text == TEXT


def test_a_change_after_undo_is_the_only_future(path: Path) -> None:
    one = Draft.opened(path)
    one.put("attempts", ("experiments", 0, "attempts"), 6)
    one.undo()
    one.put("seed", ("experiments", 0, "seed"), 7)
    assert one.redoes == ""
    assert one.profile.experiment().attempts == 4


def test_the_same_text_is_no_step(path: Path) -> None:
    one = Draft.opened(path)
    one.replace("nothing", TEXT)
    one.put("name", ("name",), "Minsk office")
    assert one.undoes == ""


def test_saving_writes_and_what_somebody_else_wrote_meanwhile_is_not_lost(path: Path) -> None:
    one = Draft.opened(path)
    one.put("attempts", ("experiments", 0, "attempts"), 6)
    one.save()
    assert not one.changed
    assert "attempts = 6" in path.read_text()
    path.write_text(path.read_text() + "# by hand\n")
    one.put("seed", ("experiments", 0, "seed"), 7)
    with pytest.raises(BadInput, match="changed by another program"):
        one.save()
    assert "# by hand" in path.read_text()
    one.save(overwrite=True)
    assert "seed = 7" in path.read_text()


def test_save_as_does_not_replace_another_file_unasked(path: Path, tmp_path: Path) -> None:
    one, other = Draft.opened(path), tmp_path / "other.toml"
    other.write_text("mine")
    with pytest.raises(BadInput, match="is there already"):
        one.save(other)
    one.save(tmp_path / "new.toml")
    assert one.path == tmp_path / "new.toml"
    assert path.read_text() == TEXT


def test_a_new_profile_has_no_place_until_it_is_given_one(tmp_path: Path) -> None:
    one = Draft()
    assert one.changed
    with pytest.raises(BadInput, match="no file yet"):
        one.save()
    with pytest.raises(BadInput):  # no hosts yet
        one.save(tmp_path / "new.toml")
    assert not (tmp_path / "new.toml").exists()


def test_windows_line_ends_stay(path: Path) -> None:
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    one = Draft.opened(path)
    one.put("attempts", ("experiments", 0, "attempts"), 6)
    one.undo()
    assert one.text == TEXT.replace("\n", "\r\n")


# ---- a crash


KILLED = """
import os, sys
from pathlib import Path
from lab.draft import Draft
one = Draft.opened(Path(sys.argv[1]), keep_in=Path(sys.argv[2]))
one.put("attempts", ("experiments", 0, "attempts"), 9)
os.kill(os.getpid(), 9)
"""


def test_what_was_not_saved_is_found_after_a_crash(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recovery"
    subprocess.run([sys.executable, "-c", KILLED, str(path), str(folder)], check=False)
    (one,) = draft.recovered(folder)
    assert one.path == path
    assert "attempts = 9" in one.text
    assert path.read_text() == TEXT
    again = Draft.opened(path)
    again.replace("what was kept", one.text)
    assert again.profile.experiment().attempts == 9


def test_nothing_is_kept_of_what_was_saved_taken_back_or_closed(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recovery"
    one = Draft.opened(path, keep_in=folder)
    assert not folder.exists()
    one.put("attempts", ("experiments", 0, "attempts"), 6)
    assert len(list(folder.iterdir())) == 1
    one.undo()
    assert not list(folder.iterdir())
    one.redo()
    one.save()
    assert not list(folder.iterdir())
    one.put("seed", ("experiments", 0, "seed"), 1)
    one.close()
    assert not list(folder.iterdir())


def test_a_draft_of_a_program_that_runs_is_not_offered_nor_is_a_damaged_one(
    path: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "recovery"
    one = Draft.opened(path, keep_in=folder)
    one.put("attempts", ("experiments", 0, "attempts"), 6)
    (folder / "damaged.json").write_text("{")
    (folder / "odd.json").write_text(json.dumps({"pid": "x", "path": 3}))
    assert draft.recovered(folder) == ()
    assert draft.recovered(tmp_path / "absent") == ()


def test_a_folder_that_cannot_be_written_does_not_stop_editing(path: Path) -> None:
    one = Draft.opened(path, keep_in=Path(os.devnull) / "x")
    one.put("attempts", ("experiments", 0, "attempts"), 6)
    assert one.profile.experiment().attempts == 6


# ---- any changes


EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("attempts"), st.integers(-1, 9)),
        st.tuples(st.just("seed"), st.integers(0, 99)),
        st.tuples(st.just("name"), st.text(max_size=8)),
    ),
    max_size=12,
)


@given(EDITS)
@settings(max_examples=60, deadline=None)
def test_undoing_everything_is_where_one_began_and_redoing_where_one_was(
    edits: list[tuple[str, object]],
) -> None:
    one = Draft(TEXT)
    for key, value in edits:
        one.put(key, ("experiments", 0, key), value)
    end = one.text
    while one.undo():
        pass
    assert one.text == TEXT
    assert one.profile is not None
    while one.redo():
        pass
    assert one.text == end
    assert (not one.problems) == (profile.looked_at(end, Path("x")).profile is not None)
