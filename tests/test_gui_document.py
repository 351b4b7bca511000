"""The profile that is open in the window: edited, taken back, saved, and kept for a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from gui.document import Document
from lab import draft

TEXT = """\
schema = 1
name = "Minsk office"  # the one with the old router

[hosts.desk-1]
role = "client"
ssh = "desk-1"
address = "10.0.0.1"

[hosts.server-1]
role = "server"
ssh = "server-1"
address = "10.0.0.2"
"""


@pytest.fixture
def heard() -> list[str]:
    return []


@pytest.fixture
def document(qapp: object, tmp_path: Path, heard: list[str]) -> Document:
    document = Document(keep_in=tmp_path / "kept")
    document.opened.connect(lambda: heard.append("opened"))
    document.changed.connect(lambda: heard.append("changed"))
    document.saved.connect(lambda: heard.append("saved"))
    document.told.connect(lambda trouble: heard.append(trouble.title))
    return document


def test_without_a_profile_nothing_can_be_edited_or_saved(document: Document, heard: list[str]) -> None:
    assert document.profile is None
    assert document.path is None
    assert not document.unsaved
    assert not document.put("rename", ("name",), "x")
    assert not document.remove("x", ("name",))
    assert not document.save()
    assert document.undo() == ""
    assert document.redo() == ""
    assert heard == []


def test_an_edit_keeps_the_comment_and_can_be_taken_back(
    document: Document, heard: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "minsk.toml"
    path.write_text(TEXT, "utf-8")
    document.open(path)
    assert not document.unsaved
    assert document.put("rename the lab", ("name",), "Minsk")
    assert document.unsaved
    assert document.undoes == "rename the lab"
    assert document.save()
    assert not document.unsaved
    assert path.read_text("utf-8") == TEXT.replace("Minsk office", "Minsk")
    assert document.undo() == "rename the lab"
    assert document.redoes == "rename the lab"
    assert document.unsaved
    assert heard == ["opened", "changed", "saved", "changed"]


def test_a_save_over_what_another_program_wrote_is_told_and_not_done(
    document: Document, heard: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "minsk.toml"
    path.write_text(TEXT, "utf-8")
    document.open(path)
    document.put("rename the lab", ("name",), "Minsk")
    path.write_text(TEXT + "# by hand\n", "utf-8")
    assert not document.save()
    assert path.read_text("utf-8").endswith("# by hand\n")
    assert document.unsaved
    assert "changed by another program" in heard[-1]


def test_an_edit_that_cannot_be_made_is_told_and_changes_nothing(
    document: Document, heard: list[str]
) -> None:
    document.begin('schema = 1\nname = "x"\n')

    def wrong(text: object) -> None:
        raise LookupError("there is no line 64/128 kbit/s any more")

    before = document.draft.text if document.draft else ""
    assert not document.change("remove a line", wrong)
    assert document.draft is not None
    assert document.draft.text == before
    assert heard == ["opened", "there is no line 64/128 kbit/s any more"]
    assert not document.remove("remove a line", ("experiments", 3))
    document.begin("schema = 1\nname = \n")
    assert not document.put("rename the lab", ("name",), "x")
    assert "no TOML" in heard[-1]


def test_what_was_not_saved_is_kept_for_a_crash_until_another_is_opened(
    document: Document, tmp_path: Path
) -> None:
    document.begin('schema = 1\nname = "x"\n')
    assert list((tmp_path / "kept").glob("*.json"))
    document.take(None)
    assert not list((tmp_path / "kept").glob("*.json"))
    assert draft.recovered(tmp_path / "kept") == ()
