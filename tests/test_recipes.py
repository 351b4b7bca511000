"""Data sets: what is stated of them is what Subversion finds."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from two_apaches import place, repository

from lab import dumpfile, recipes
from lab.errors import BadInput
from lab.model import DISABLED, Change, Experiment, Line
from lab.recipes import LIKE_2008, QUICK, Recipe, recipe

needs_svnadmin = pytest.mark.skipif(shutil.which("svnadmin") is None, reason="svnadmin is not installed")


@pytest.fixture
def memory() -> Iterator[Path]:
    with place() as path:
        yield path


def test_quick_is_as_stated() -> None:
    table = QUICK.table()
    assert (table.files, table.folders, table.bytes, table.revision) == (150, 12, 600_000, 100)
    assert table.extensions[".cs"] == (50, 170_000)


def test_2008_is_as_published() -> None:
    table = LIKE_2008.table()
    assert (table.files, table.folders, table.bytes) == (1732, 145, 10_200_000)
    assert table.extensions[".cs"] == (569, 1_470_000)


@pytest.mark.parametrize("made", [QUICK, LIKE_2008], ids=lambda made: made.name)
def test_the_change_and_the_locks_are_as_in_the_issue(made: Recipe) -> None:
    assert (made.edit_files, made.edit_pattern) == ({"quick": 50, "2008": 569}[made.name], "*.cs")
    locks = made.locks()
    assert len(set(locks)) == {"quick": 50, "2008": 1732}[made.name]
    if made is QUICK:
        assert all(name.endswith(".cs") for name in locks)


def test_a_seed_gives_the_same_bytes_for_ever() -> None:
    # The digest is of the first version: a change of it makes every stored run incomparable with new ones.
    whole = b"".join(QUICK.dump(2008))
    assert whole == b"".join(QUICK.dump())
    assert hashlib.sha256(whole).hexdigest() == QUICK_DIGEST


QUICK_DIGEST = "797e71a687cbb3ae15ba5a6e1357f0d710b85bf80637663007ced4fd027898ad"


def test_another_seed_gives_another_repository_of_the_same_size() -> None:
    assert b"".join(QUICK.dump(1)) != b"".join(QUICK.dump(2))
    assert QUICK.table(1).bytes == QUICK.table(2).bytes == 600_000


def test_an_unknown_recipe_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput) as refused:
        recipe("slow")
    assert '"quick"' in refused.value.advice


@needs_svnadmin
@pytest.mark.parametrize("seed", [None, 7])
def test_the_repository_holds_what_the_table_says(memory: Path, seed: int | None) -> None:
    repository(QUICK, memory / "repo", seed)
    files, folders = listed(memory / "repo")
    table = QUICK.table(seed)
    assert (len(files), folders, sum(files.values())) == (table.files, table.folders, table.bytes)
    endings = Counter(name[name.rindex(".") :] for name in files)
    assert {ending: count for ending, (count, _) in table.extensions.items()} == dict(endings)
    assert set(QUICK.locks(seed)) <= set(files)
    youngest = subprocess.check_output(["svnlook", "youngest", memory / "repo"], text=True)
    assert int(youngest) == table.revision


@needs_svnadmin
def test_the_history_is_mostly_small_edits(memory: Path) -> None:
    url = repository(QUICK, memory / "repo").as_uri()
    log = ET.fromstring(subprocess.check_output(["svn", "log", "-v", "--xml", "-r", "100:1", url]))  # noqa: S314
    actions = Counter(path.get("action") for path in log.iter("path"))
    assert len(log) == 100
    assert actions["M"] > 150
    assert actions["A"] == 150 + 12 + 3 + len(QUICK.branches)
    dates = [entry.findtext("date") or "" for entry in log]
    assert dates == sorted(dates, reverse=True)


@needs_svnadmin
@pytest.mark.lab
def test_2008_has_a_log_of_one_and_a_half_megabytes(memory: Path) -> None:
    url = repository(LIKE_2008, memory / "repo").as_uri() + "/trunk"
    log = subprocess.check_output(["svn", "log", "-v", "-r", f"{LIKE_2008.revision}:1", url])
    assert 1_400_000 < len(log) < 1_600_000
    files, folders = listed(memory / "repo")
    assert (len(files), folders, sum(files.values())) == (1732, 145, 10_200_000)
    subprocess.run(["svn", "export", "-q", url, memory / "tree"], check=True)
    packed = sum(
        len(zlib.compress(path.read_bytes(), 6)) for path in (memory / "tree").rglob("*") if path.is_file()
    )
    # With about 300 bytes of headers for each file this makes 3.1 MB on the wire.
    assert 2_400_000 < packed < 2_700_000


def listed(path: Path) -> tuple[dict[str, int], int]:
    """Files of trunk with their sizes, and the number of folders, as Subversion sees them."""
    text = subprocess.check_output(["svn", "list", "-R", "--xml", path.as_uri() + "/trunk"])
    files, folders = {}, 0
    for entry in ET.fromstring(text).iter("entry"):  # noqa: S314
        if entry.get("kind") == "dir":
            folders += 1
        else:
            files[entry.findtext("name") or ""] = int(entry.findtext("size") or -1)
    return files, folders


@given(st.binary(max_size=90_000), st.data())
def test_a_delta_rebuilds_the_text(before: bytes, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(before)))
    removed = data.draw(st.integers(0, len(before) - offset))
    new = data.draw(st.binary(min_size=1, max_size=300))
    node = dumpfile.edited("trunk/a", before, offset, removed, new)
    delta = node.split(b"\n\n", 1)[1][:-2]
    after = before[:offset] + new + before[offset + removed :]
    assert undeltified(before, delta) == after
    assert hashlib.md5(after, usedforsecurity=False).hexdigest().encode() in node


def undeltified(source: bytes, delta: bytes) -> bytes:
    """What svndiff0 of one window makes of `source`, after Subversion's notes/svndiff."""
    assert delta[:4] == b"SVN\0"
    place = 4

    def number() -> int:
        nonlocal place
        value = 0
        while True:
            byte = delta[place]
            place += 1
            value = value << 7 | byte & 127
            if not byte & 128:
                return value

    offset, length, target, steps, fresh = (number() for _ in range(5))
    assert (offset, length) == (0, len(source))
    end = place + steps
    new, out = delta[end : end + fresh], b""
    while place < end:
        code, count = delta[place] >> 6, delta[place] & 63
        place += 1
        count = count or number()
        if code == 0:
            start = number()
            out += source[start : start + count]
        else:
            assert code == 2
            out, new = out + new[:count], new[count:]
    assert (len(out), new) == (target, b"")
    return out


def test_an_experiment_asks_for_a_data_set_that_has_its_files() -> None:
    def asked(data: str | None, files: int) -> Recipe | None:
        line = Line(upload_bps=512_000, download_bps=1_024_000)
        change = Change(files=files)
        return recipes.asked(
            Experiment(name="a", lines=(line,), states=(DISABLED,), data=data, change=change)
        )

    assert asked("2008", 569) is recipes.LIKE_2008
    assert asked("quick", 0) is recipes.QUICK
    with pytest.raises(
        BadInput, match=r"570 files are to be changed, and the data set '2008' has 569 files \*\.cs"
    ):
        asked("2008", 570)
    with pytest.raises(BadInput, match=r"no data set named '\.\./x'"):
        asked("../x", 0)
    assert asked(None, 0) is None  # a repository as it is
