"""Nothing of somebody's repository is changed but below one place, in whatever way its URL is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import places, vcs
from lab.errors import BadInput
from lab.model import OPERATIONS

PLACE = "http://s/svn/project/branchlab-scratch/run-1a2b3c4d"


@pytest.mark.parametrize(
    "url",
    [
        f"{PLACE}/trial-1",
        "http://S:80/svn/project/branchlab-scratch/run-1a2b3c4d/work/",
        f"{PLACE}/a%20b",
        f"{PLACE}/%41",
        f"{PLACE}/x%402x/y",
        f"{PLACE}/x%402x@",
    ],
)
def test_what_lies_below_the_place_may_be_changed(url: str) -> None:
    places.refuse_outside(url, PLACE)


OUTSIDE = [
    "http://s/svn/project/trunk",
    PLACE,
    f"{PLACE}/",
    f"{PLACE}5/trial-1",
    f"{PLACE}/../../trunk",
    f"{PLACE}/./../x",
    f"{PLACE}/%2e%2e/x",
    f"{PLACE}/.%2E/x",
    f"{PLACE}/a%2f..%2f..%2ftrunk",
    f"{PLACE}/a%5c..",
    f"{PLACE}/a%00",
    f"{PLACE}//x",
    f"{PLACE}/%ff",
    f"{PLACE}/x@5",
    f"{PLACE}/x@HEAD",
    f"{PLACE}/x%40HEAD",
    f"{PLACE}/x%40HEAD/",
    f"{PLACE}/x@HEAD@",
    f"{PLACE}/x@{{2008-01-01}}",
    f"{PLACE}/x?p=5",
    f"{PLACE}/x#y",
    "http://s:8080/svn/project/branchlab-scratch/run-1a2b3c4d/x",
    "http://t/svn/project/branchlab-scratch/run-1a2b3c4d/x",
    "http://s/other/project/branchlab-scratch/run-1a2b3c4d/x",
    "http://s/svn/project/BRANCHLAB-scratch/run-1a2b3c4d/x",
    "https://s/svn/project/branchlab-scratch/run-1a2b3c4d/x",
    "https://s:80/svn/project/branchlab-scratch/run-1a2b3c4d/x",
    "svn://s/svn/project/branchlab-scratch/run-1a2b3c4d/x",
    "file:///svn/project/branchlab-scratch/run-1a2b3c4d/x",
    "http://u:p@s/svn/project/branchlab-scratch/run-1a2b3c4d/x",
    "http://s@t/svn/project/branchlab-scratch/run-1a2b3c4d/x",
    "http://s:0x50/svn/project/branchlab-scratch/run-1a2b3c4d/x",
    "http:///svn/project/branchlab-scratch/run-1a2b3c4d/x",
    "^/project/branchlab-scratch/run-1a2b3c4d/x",
    "/svn/project/branchlab-scratch/run-1a2b3c4d/x",
    f"{PLACE}/!svn/x",
    f"{PLACE}/%21SVN/x",
    "http://[s/svn/project/branchlab-scratch/run-1a2b3c4d/x",
    f"{PLACE}/x\n",
    f" {PLACE}/x",
    "",
]


@pytest.mark.parametrize("url", OUTSIDE)
def test_nothing_else_may_be(url: str) -> None:
    with pytest.raises(BadInput):
        places.refuse_outside(url, PLACE)
    with pytest.raises(BadInput):
        places.refuse_change(["svn", "copy", "http://s/svn/project/trunk@5", url], "", PLACE)


@pytest.mark.parametrize(
    ("argv", "stdin"),
    [
        (["svn", "delete", "--message", "x", "http://s/svn/project/trunk"], ""),
        (["svn", "delete", f"{PLACE}/x", "http://s/svn/project/trunk"], ""),
        (["svn", "copy", f"{PLACE}/x", "http://s/svn/project/trunk"], ""),
        (["svn", "cp", f"{PLACE}/x", "http://s/svn/project/trunk"], ""),
        (["svn", "copy", f"{PLACE}/x", "--message", "x"], ""),
        (["svn", "lock", "http://s/svn/project/trunk/a"], ""),
        (["svn", "lock", "^/trunk/a"], ""),
        (["svn", "lock", "--targets", "-"], "a\n^/trunk/b\n"),
        (["svn", "lock", "--targets", "-"], "a\nhttp://s/svn/project/trunk/b\n"),
        (["svn", "lock", "--targets", "-"], "../pristine/b\n"),
        (["svn", "lock", "--targets", "-"], "/w/pristine/b\n"),
        (["svn", "lock", "--targets", "/w/list"], ""),
        (["svn", "lock", "--targets=/w/list"], ""),
        (["svn", "commit", "--message", "x", "/w/work/../pristine"], ""),
        (["svn", "propset", "--revprop", "-r", "5", "svn:log", "x"], ""),
        (["svn", "propset", "--revprop=x"], ""),
        (["svn", "--non-interactive", "delete", "http://s/svn/project/trunk"], ""),
        (["svn", "import", "x", "http://s/svn/x"], ""),
        (["svnmucc", "rm", "trunk"], ""),
        (["/usr/bin/svn", "info"], ""),
        (["sh", "-c", "svn commit"], ""),
        (["svn"], ""),
    ],
)
def test_a_command_that_could_change_something_else_is_refused(argv: list[str], stdin: str) -> None:
    with pytest.raises(BadInput) as caught:
        places.refuse_change(argv, stdin, PLACE)
    assert caught.value.tried == " ".join(argv)
    assert "mend the driver" in caught.value.advice


def test_what_only_reads_may_read_anything() -> None:
    for word in ("checkout", "log", "info", "list", "switch", "revert", "diff"):
        places.refuse_change(["svn", word, "http://s/svn/project/trunk@5"], "", "")


def test_without_a_place_nothing_at_all_is_changed() -> None:
    for argv in (["svn", "commit", "/w/work"], ["svn", "lock", f"{PLACE}/x"]):
        with pytest.raises(BadInput, match="no scratch place is named"):
            places.refuse_change(argv, "", "")


@given(st.text(alphabet="./%2eE5cf@~x:?#\\", max_size=12))
def test_no_mixture_of_signs_leads_out(tail: str) -> None:
    """Where it is let through, one decoding and no more makes a path that has the place as its begin."""
    url = f"{PLACE}/{tail}"
    try:
        places.refuse_outside(url, PLACE)
    except BadInput:
        return
    found = places.address(url.removesuffix("@"))
    assert found.path[:4] == ("svn", "project", "branchlab-scratch", "run-1a2b3c4d")
    assert not {"", ".", ".."} & set(found.path)


# The guard where commands are filled

HOLES: dict[str, vcs.Value] = {
    "config": "/w/config", "work": "/w/work", "pristine": "/w/pristine", "lockable": "/w/lockable",
    "url": "http://s/svn/project/trunk", "revision": 100, "branch_url": f"{PLACE}/trial-1", "seed": 7,
    "edit_files": 5, "edit_pattern": "*", "edit_share": 0.1, "locks": "a\nb@2@\n",
}  # fmt: skip


def test_a_confined_driver_does_every_operation_below_its_place() -> None:
    driver = vcs.driver("subversion").confined(PLACE)
    for operation in OPERATIONS:
        assert driver.commands(operation, HOLES) == vcs.driver("subversion").commands(operation, HOLES)
    assert driver.setup(HOLES)


@pytest.mark.parametrize("url", OUTSIDE)
def test_a_confined_driver_fills_no_command_that_leads_out(url: str) -> None:
    driver = vcs.driver("subversion").confined(PLACE)
    with pytest.raises(BadInput, match="refused before it was run"):
        driver.commands("check-in", {**HOLES, "branch_url": url})
    with pytest.raises(BadInput, match="no scratch place is named"):
        vcs.driver("subversion").confined("").commands("check-out", HOLES)


def test_what_is_made_on_the_server_is_never_run_on_somebodys_own() -> None:
    driver = vcs.driver("subversion").confined(PLACE)
    with pytest.raises(BadInput, match="another program than svn"):
        driver.data({**HOLES, "repository": "/r", "dump": "/d"})


@pytest.mark.parametrize(
    "url",
    [
        "http://joe:s3cret@s/x",
        "ftp://joe:s3cret@s/x",
        "//joe:s3cret@s",
        "http://joe:s3cret@s:99999/x",
        "http://s3cret@[s",
    ],
)
def test_no_message_repeats_a_password(url: str) -> None:
    with pytest.raises(BadInput, match="has a user or a password in it") as caught:
        places.address(url)
    assert "s3cret" not in str(caught.value)
    assert "joe" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://s/x?private_token=s3cret",
        "http://s:x/x?s3cret",
        "ftp://s/x?s3cret\n#s3cret",
        "http://s/x#s3cret",
    ],
)
def test_no_message_repeats_what_may_be_a_token(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        places.address(url)
    assert "s3cret" not in str(caught.value)
    assert places.shown(url).startswith(url.partition("/x")[0])


def test_a_place_that_was_taken_away_is_not_made_anew() -> None:
    copy = ["svn", "copy", "--message", "x", "http://s/svn/project/trunk@5", f"{PLACE}/trial-1"]
    places.refuse_change(copy, "", PLACE)
    with pytest.raises(BadInput, match="with --parents it would make a place anew"):
        places.refuse_change([*copy[:2], "--parents", *copy[2:]], "", PLACE)
    places.refuse_change(["svn", "mkdir", "--parents", "/tmp/copy/a/b"], "", PLACE)
