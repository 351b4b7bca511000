"""The files verbs: what they do inside a scratch folder, and that they do nothing outside."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from ssh_agents import files, protocol

CALL = protocol.Call(
    lambda event, data: None, lambda: False, lambda seconds: False, lambda entry: "", lambda name: None
)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return Path(files.scratch({"name": "client-1"}, CALL)["path"])


def refused(verb: Any, **args: Any) -> protocol.Refused:
    with pytest.raises(protocol.Refused) as caught:
        verb(args, CALL)
    return caught.value


def tree(folder: Path) -> None:
    for number in range(12):
        place = folder / f"d{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        text = "".join(f"line {line} of {number}\n" for line in range(20 + number))
        (place / f"f{number}.cs").write_text(text)
        (place / f"f{number}.txt").write_bytes(b"a\r\nb\r\nc")
    (folder / ".svn").mkdir()
    (folder / ".svn" / "base.cs").write_text("never\n")


def test_a_scratch_folder_is_private_marked_and_made_once(scratch: Path, tmp_path: Path) -> None:
    assert scratch == tmp_path / f"branchlab-{os.getuid()}" / "client-1"
    for folder in (scratch, scratch.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (scratch / files.MARK).is_file()
    (scratch / "kept").write_text("x")
    assert files.scratch({"name": "client-1"}, CALL)["path"] == str(scratch)
    assert (scratch / "kept").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", ".hidden", "a\0", "x" * 65, "a b", "é", "a\n"])
def test_odd_names_are_refused(scratch: Path, name: str) -> None:
    assert refused(files.scratch, name=name).kind == "bad-request"


def test_a_place_that_another_may_write_is_refused(scratch: Path) -> None:
    scratch.parent.chmod(0o777)
    assert refused(files.scratch, name="client-1").kind == "denied"
    scratch.parent.chmod(0o700)
    (scratch.parent / "linked").symlink_to("/tmp")
    assert refused(files.scratch, name="linked").kind == "denied"
    assert not Path("/tmp", files.MARK).exists()


def test_copy_keeps_modes_times_and_links(scratch: Path) -> None:
    tree(scratch / "a")
    (scratch / "a" / "run").write_text("#!/bin/sh\n")
    (scratch / "a" / "run").chmod(0o555)
    os.utime(scratch / "a" / "run", (1e9, 1e9))
    (scratch / "a" / "link").symlink_to("/etc/passwd")
    files.copy({"source": str(scratch / "a"), "target": str(scratch / "b")}, CALL)
    names = sorted(path.relative_to(scratch / "a") for path in (scratch / "a").rglob("*"))
    assert names == sorted(path.relative_to(scratch / "b") for path in (scratch / "b").rglob("*"))
    assert stat.S_IMODE((scratch / "b" / "run").stat().st_mode) == 0o555
    assert (scratch / "b" / "run").stat().st_mtime == 1e9
    assert (scratch / "b" / "link").is_symlink()
    files.copy({"source": str(scratch / "a" / "run"), "target": str(scratch / "run")}, CALL)
    assert (scratch / "run").stat().st_mtime == 1e9
    assert "there already" in refused(files.copy, source=str(scratch / "a"), target=str(scratch / "b")).text
    assert "itself" in refused(files.copy, source=str(scratch / "a"), target=str(scratch / "a" / "c")).text
    assert refused(files.copy, source=str(scratch / "no"), target=str(scratch / "c")).kind == "missing"


def test_remove_takes_links_and_not_what_they_lead_to(scratch: Path, tmp_path: Path) -> None:
    tree(tmp_path / "outside")
    tree(scratch / "a")
    (scratch / "a" / "link").symlink_to(tmp_path / "outside")
    assert files.remove({"path": str(scratch / "a")}, CALL) == {"removed": True}
    assert files.remove({"path": str(scratch / "a")}, CALL) == {"removed": False}
    (scratch / "link").symlink_to(tmp_path / "outside")
    assert files.remove({"path": str(scratch / "link")}, CALL) == {"removed": True}
    assert (tmp_path / "outside" / "d0" / "f0.cs").exists()
    other = files.scratch({"name": "client-2"}, CALL)["path"]
    assert files.remove({"path": str(scratch)}, CALL) == {"removed": True}
    assert not scratch.exists()
    assert files.remove({"path": other}, CALL) == {"removed": True}
    assert not scratch.parent.exists()


def test_nothing_outside_a_marked_folder_is_touched(scratch: Path, tmp_path: Path) -> None:
    tree(tmp_path / "precious")
    (scratch / "way").symlink_to(tmp_path / "precious")
    outside = [
        tmp_path / "precious",
        scratch.parent,
        scratch / "way" / "d0",
        Path("/etc/passwd"),
        tmp_path / "absent",
    ]
    for path in outside:
        assert refused(files.remove, path=str(path)).kind == "denied"
        assert refused(files.copy, source=str(scratch / files.MARK), target=str(path / "x")).kind == "denied"
        edit = {"seed": 1, "files": 0, "pattern": "*", "share": 0.5}
        assert refused(files.edit, folder=str(path), **edit).kind == "denied"
    assert refused(files.edit, folder=str(scratch / "way"), **edit).kind == "denied"
    for odd in (
        "relative",
        f"{scratch}/../precious",
        f"{scratch}/./x",
        f"{scratch}//x",
        f"{scratch}/a\0b",
        "",
    ):
        assert refused(files.remove, path=odd).kind == "bad-request"
    assert (tmp_path / "precious" / "d0" / "f0.cs").exists()


def test_a_mark_that_is_a_link_or_anothers_is_no_mark(scratch: Path, tmp_path: Path) -> None:
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / files.MARK).symlink_to(scratch / files.MARK)
    (tmp_path / "fake" / "x").write_text("")
    assert refused(files.remove, path=str(tmp_path / "fake" / "x")).kind == "denied"


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_edit_changes_the_asked_share_and_is_the_same_everywhere(scratch: Path) -> None:
    told = []
    for name in ("a", "deeper/b"):
        tree(scratch / name)
        before = content(scratch / name)
        args = {"folder": str(scratch / name), "seed": 2008, "files": 5, "pattern": "*.cs", "share": 0.1}
        told.append(files.edit(args, CALL))
    assert told[0] == told[1]
    after = content(scratch / "a")
    assert after == content(scratch / "deeper/b")
    changed = sorted(name for name in after if after[name] != before[name])
    assert changed == told[0]["names"]
    assert len(changed) == told[0]["files"] == 5
    lines = 0
    for name in changed:
        pairs = list(zip(before[name].splitlines(), after[name].splitlines(), strict=True))
        edited = [new for old, new in pairs if old != new]
        assert len(edited) == max(1, round(len(pairs) * 0.1))
        assert all(new.startswith(old + b" ") for old, new in pairs if old != new)
        lines += len(edited)
    assert told[0]["lines"] == lines
    assert after[".svn/base.cs"] == b"never\n"
    other = files.edit({**args, "seed": 2009}, CALL)
    assert other["names"] != told[0]["names"]


def test_line_ends_and_a_last_line_without_one_are_kept() -> None:
    text, lines, size = files.changed(b"a\r\nb\nc", "name", 1, 1.0)
    parts = text.splitlines(keepends=True)
    assert [part[:2] for part in parts] == [b"a ", b"b ", b"c "]
    assert parts[0].endswith(b"\r\n")
    assert not parts[0].endswith(b"\r\r\n")
    assert parts[1].endswith(b"\n")
    assert not parts[2].endswith(b"\n")
    assert (lines, size) == (3, len(text))
    assert files.changed(b"", "name", 1, 0.5) == (b"", 0, 0)


def test_an_edit_that_cannot_be_is_refused(scratch: Path) -> None:
    tree(scratch / "a")
    args = {"folder": str(scratch / "a"), "seed": 1, "files": 5, "pattern": "*.cs", "share": 0.1}
    assert "12 files" in refused(files.edit, **{**args, "files": 13}).text
    assert "0 files" in refused(files.edit, **{**args, "files": 0, "pattern": "*.java"}).text
    for wrong in ({"share": 0}, {"share": 1.5}, {"share": "x"}, {"files": -1}, {"seed": "x"}, {"seed": None}):
        assert refused(files.edit, **{**args, **wrong}).kind == "bad-request"
    assert files.edit({**args, "files": 0}, CALL)["files"] == 12


def test_what_is_no_text_or_read_only_is_never_edited(scratch: Path) -> None:
    tree(scratch)
    (scratch / "d0" / "picture.cs").write_bytes(b"GIF89a\0\n\n")
    (scratch / "d0" / "empty.cs").touch()
    (scratch / "d0" / "reserved.cs").write_text("first\n")
    (scratch / "d0" / "reserved.cs").chmod(0o444)
    before = content(scratch)
    told = files.edit({"folder": str(scratch), "seed": 1, "files": 0, "pattern": "*.cs", "share": 1.0}, CALL)
    assert told["files"] == 12
    now = content(scratch)
    for name in ("picture.cs", "empty.cs", "reserved.cs"):
        assert now[f"d0/{name}"] == before[f"d0/{name}"]
    assert (
        "12 files of text"
        in refused(files.edit, folder=str(scratch), seed=1, files=13, pattern="*.cs", share=1.0).text
    )


def test_a_look_counts_what_there_is_and_names_what_can_be_named(scratch: Path) -> None:
    tree(scratch)
    odd = {"two\nlines", "end ", "sma\udcffll", "a@2x"}
    for name in odd:
        (scratch / "d1" / name).write_bytes(b"a\0")
    os.symlink("f0.cs", scratch / "d1" / "link")
    said: list[str] = []
    call = protocol.Call(
        lambda event, data: said.extend(data["names"]),
        lambda: False,
        lambda seconds: False,
        lambda entry: "",
        lambda name: None,
    )
    told = files.look({"folder": str(scratch)}, call)
    assert told == {"files": 28, "folders": 3, "bytes": told["bytes"], "texts": 24}
    there = {
        name: text for name, text in content(scratch).items() if name.startswith("d") and "link" not in name
    }
    assert told["bytes"] == sum(len(text) for text in there.values())
    assert len(said) == 25
    assert "d1/a@2x" in said
    assert refused(files.look, folder="/etc").kind == "denied"


def test_an_edit_is_cancelled(scratch: Path) -> None:
    tree(scratch / "a")
    stop = threading.Event()
    stop.set()
    call = protocol.Call(CALL.say, stop.is_set, stop.wait, CALL.promise, CALL.keep)
    with pytest.raises(protocol.Refused) as caught:
        files.edit({"folder": str(scratch / "a"), "seed": 1, "files": 0, "share": 0.1}, call)
    assert caught.value.kind == "cancelled"
