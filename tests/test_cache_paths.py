"""A folder's files by their paths, as it is done on Windows: its guard as text, the walk on this system's own disk."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ssh_agents import cache_folder, cache_paths, protocol
from ssh_agents.protocol import Refused

ENVIRONMENT = {
    "SystemRoot": "E:\\WinNT",
    "ProgramFiles": "C:\\Programme",
    "USERPROFILE": "D:\\Profiles\\anna",
    "LOCALAPPDATA": "D:\\Profiles\\anna\\Local",
}


def call() -> protocol.Call:
    stop = threading.Event()
    return protocol.Call(
        lambda event, data: None, stop.is_set, stop.wait, lambda entry: "", lambda name: None
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="branchlab-test-"))
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize(
    "path",
    [
        "D:\\TfsCache", "d:\\Proxy\\Cache\\", "C:\\ProgramData\\p4p\\cache", "C:\\Users\\anna\\cache",
        "C:\\Program Files\\Team Foundation Server\\Web Services\\VersionControlProxy\\Data",
        "C:\\Program Files (x86)\\Microsoft Team Foundation Server\\Version Control Proxy\\_tfs_data",
        "D:\\Profiles\\bob", "D:\\Profiles\\anna\\Local\\cache", "C:\\inetpub\\cache",
    ],
)  # fmt: skip
def test_what_can_be_a_cache_on_windows(path: str) -> None:
    assert cache_paths.guarded(path, ENVIRONMENT) == ""


@pytest.mark.parametrize(
    "path",
    [
        "", "cache", "\\cache", "D:cache", "D:\\", "D:", "D:/cache", "\\\\server\\share\\cache", "\\\\?\\D:\\cache",
        "\\\\.\\D:\\cache", "D:\\a\\..\\b", "D:\\a\\.\\b", "D:\\a\\\\b", "D:\\cache:stream", "D:\\ca*he", "D:\\a\0b",
        "C:\\Windows", "c:\\windows\\Temp", "C:\\WINDOW~1\\x", "C:\\Windows.\\x", "C:\\Windows \\x",
        "C:\\Program Files\\x", "C:\\Program Files\\VersionControlProxy\\Data",
        "C:\\Program Files\\TFS\\VersionControlProxy", "C:\\Windows\\TFS\\VersionControlProxy\\Data",
        "C:\\PROGRA~2\\x", "C:\\Users", "C:\\Users\\anna", "C:\\Users\\anna\\AppData",
        "C:\\users\\anna\\appdata\\Local", "C:\\Users\\anna\\Documents", "C:\\Users\\anna\\.ssh\\x",
        "C:\\ProgramData", "C:\\ProgramData\\Microsoft\\x",
        "C:\\System Volume Information\\x", "C:\\$Recycle.Bin\\x", "E:\\WinNT\\x", "E:\\winnt", "C:\\Programme\\x",
        "D:\\Profiles\\anna", "D:\\Profiles", "D:\\profiles\\ANNA\\local",
    ],
)  # fmt: skip
def test_what_can_be_none_is_refused(path: str) -> None:
    assert cache_paths.guarded(path, ENVIRONMENT) != ""


@pytest.fixture(autouse=True)
def without_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folder, "by_descriptor", lambda: False)


def walked(folder: Path) -> Iterator[tuple[cache_folder.Folder, str, str]]:
    """Each plain file below the folder: what it is in, its name, its path from the root."""
    found: list[tuple[cache_folder.Folder, str, str]] = []

    def seen(inner: cache_folder.Folder, where: tuple[str, ...], names: list[str]) -> list[str]:
        sizes = {name: cache_folder.size(inner, name) for name in names}
        found.extend((inner, name, "/".join((*where, name))) for name in names if sizes[name] is not None)
        return [name for name in names if sizes[name] is None]

    with cache_folder.root({"folder": str(folder)}) as root:
        cache_folder.walk(root, call(), seen, lambda where, name: None)
    return iter(found)


def test_plain_files_are_told_and_what_leads_away_is_passed_by(folder: Path) -> None:
    elsewhere = folder.with_name(folder.name + "-else")
    (elsewhere / "in").mkdir(parents=True)
    (elsewhere / "in" / "theirs").write_text("x")
    cache = folder / "cache"
    (cache / "a" / "b").mkdir(parents=True)
    (cache / "a" / "b" / "one").write_bytes(b"123")
    (cache / "two").write_bytes(b"12")
    (cache / "link").symlink_to(elsewhere / "in")
    (cache / "a" / "file").symlink_to(elsewhere / "in" / "theirs")
    found = list(walked(cache))
    assert sorted(path for _, _, path in found) == ["a/b/one", "two"]
    assert [cache_folder.head(inner, name) for inner, name, _ in found] == [b"12", b"123"]
    assert all(cache_folder.unlinked(inner, name) for inner, name, _ in found)
    assert not any(cache_folder.unlinked(inner, name) for inner, name, _ in found)
    assert (elsewhere / "in" / "theirs").exists()
    shutil.rmtree(elsewhere)


@pytest.mark.parametrize("above", [False, True])
def test_a_folder_that_is_exchanged_amid_it_is_never_followed(folder: Path, above: bool) -> None:
    """Whether the folder itself is put in its place, or a link for one above it."""
    (folder / "else" / "inner").mkdir(parents=True)
    (folder / "else" / "inner" / "one").write_text("theirs")
    (folder / "cache" / "inner").mkdir(parents=True)
    (folder / "cache" / "inner" / "one").write_text("ours")
    ((inner, name, _),) = walked(folder / "cache")
    if above:
        (folder / "cache").rename(folder / "was")
        (folder / "cache").symlink_to(folder / "else")
    else:
        (folder / "cache" / "inner").rename(folder / "was")
        (folder / "cache" / "inner").symlink_to(folder / "else" / "inner")
    with pytest.raises(Refused, match="was exchanged for something else"):
        cache_folder.unlinked(inner, name)
    with pytest.raises(Refused, match="was exchanged for something else"):
        cache_folder.names(inner)
    assert (folder / "else" / "inner" / "one").read_text() == "theirs"


def test_a_file_that_became_a_link_is_left(folder: Path) -> None:
    (folder / "theirs").write_text("x")
    (folder / "cache").mkdir()
    (folder / "cache" / "one").write_text("ours")
    ((inner, name, _),) = walked(folder / "cache")
    (folder / "cache" / "one").unlink()
    (folder / "cache" / "one").symlink_to(folder / "theirs")
    assert not cache_folder.unlinked(inner, name)
    assert cache_folder.head(inner, name) == b""
    assert (folder / "theirs").exists()


def test_a_folder_is_removed_empty_and_through_no_link(folder: Path) -> None:
    (folder / "cache" / "empty").mkdir(parents=True)
    (folder / "theirs").mkdir()
    (folder / "cache" / "link").symlink_to(folder / "theirs")
    with cache_folder.root({"folder": str(folder / "cache")}) as root:
        cache_folder.removed(root, "empty")
        with pytest.raises(NotADirectoryError):
            cache_folder.removed(root, "link")
        with pytest.raises(FileNotFoundError):
            cache_folder.removed(root, "empty")
    assert (folder / "theirs").is_dir()
    assert not (folder / "cache" / "empty").exists()


def test_a_reparse_point_leads_away_whatever_else_it_is() -> None:
    seen = os.lstat(os.getcwd())
    assert not cache_paths.leads_away(seen)
    junction = SimpleNamespace(st_mode=seen.st_mode, st_file_attributes=0x10 | cache_paths.REPARSE)
    assert cache_paths.leads_away(junction)  # type: ignore[arg-type]


def test_roots_that_are_none_are_refused(folder: Path) -> None:
    (folder / "real" / "cache").mkdir(parents=True)
    (folder / "file").touch()
    (folder / "link").symlink_to(folder / "real")
    (folder / "home").mkdir()
    (folder / "home" / "NTUSER.DAT").touch()
    for name, why in (
        ("link", "it is a link"), ("link/cache", "there is a link in it"), ("file", "no folder"),
        ("none", "there is no such folder"), ("home", "so it is a home folder"), ("real/../real", "absolute path"),
    ):  # fmt: skip
        with pytest.raises(Refused, match=why):
            cache_folder.root({"folder": f"{folder}/{name}"}).__enter__()
