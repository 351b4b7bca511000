"""Whole tables of a profile's text: taken out, put in, renamed, moved; what says nothing about them stays as it is."""

from __future__ import annotations

import tomllib

import pytest

from lab import profile_tables
from lab.errors import BadInput

TEXT = '''\
schema = 1
name = "Minsk"  # the lab

# the server of Bob
[hosts.server]  # far
role = "server"
ssh = "s"
# of the server, below it

# the proxy
[hosts.proxy]
role = "proxy"
ssh = "p"  # here
[hosts.proxy.cache]
kind = "apache-disk"
folder = """
[hosts.none]
"""

# clients follow
[hosts."desk-1"]
role = "client"
ssh = "d"

# experiments below

# the first one
[[experiments]]
name = "a"
lines = [
  "1/2 Mbit/s",  # slow
]
[experiments.change]
files = 3

# the second one
[[experiments]]
name = "b"
'''
DOTTED = """\
schema = 1
hosts.server = { role = "server", ssh = "s" }  # far
hosts.desk = { role = "client", ssh = "d" }
experiments = [{ name = "a" }, { name = "b" }]
"""


def lines_of(text: str) -> list[str]:
    return text.splitlines()


def test_a_host_is_renamed_with_its_sub_tables_and_nothing_else_changes() -> None:
    made = profile_tables.renamed(TEXT, "proxy", "cache-1")
    assert made == TEXT.replace("[hosts.proxy", "[hosts.cache-1")
    quoted = profile_tables.renamed(TEXT, "desk-1", "desk-2")
    assert quoted == TEXT.replace('[hosts."desk-1"]', "[hosts.desk-2]")


def test_a_host_goes_with_the_comment_above_it_and_every_other_comment_stays() -> None:
    made = profile_tables.without(TEXT, "proxy")
    assert "proxy" not in made
    gone = set(lines_of(TEXT)) - set(lines_of(made))
    assert gone == {
        "# the proxy", "[hosts.proxy]", 'role = "proxy"', 'ssh = "p"  # here', "[hosts.proxy.cache]",
        'kind = "apache-disk"', 'folder = """', "[hosts.none]", '"""',
    }  # fmt: skip


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_host_is_put_behind_another_or_behind_all(end: str) -> None:
    text = TEXT.replace("\n", end)
    block = profile_tables.host_table("desk-2", {"role": "client", "cache": {"kind": "squid"}})
    for after, before in (("", "desk-1"), ("server", "server")):
        made = profile_tables.with_host(text, block, after)
        assert [name for name in tomllib.loads(made)["hosts"] if name == "desk-2"]
        at = lines_of(made).index("[hosts.desk-2]")
        assert before in next(one for one in reversed(lines_of(made)[:at]) if one.startswith("[hosts"))
        assert set(lines_of(text)) <= set(lines_of(made))
        assert made.replace("\r\n", "").count("\r") == 0
        assert ("\r\n" in made) is (end == "\r\n")
    assert lines_of(made)[lines_of(made).index("[hosts.desk-2]") - 1] == ""


def test_a_host_is_put_into_a_profile_that_has_none() -> None:
    block = profile_tables.host_table("c", {"role": "client", "ssh": "c"})
    assert profile_tables.with_host("schema = 1\n", block) == f"schema = 1\n\n{block}"
    made = profile_tables.with_host('schema = 1\n\n[[experiments]]\nname = "a"\n', block)
    assert made.index("[hosts.c]") < made.index("[[experiments]]")


def test_an_experiment_moves_with_its_comments_and_back_again() -> None:
    made = profile_tables.experiment_moved(TEXT, 1, 0)
    assert [one["name"] for one in tomllib.loads(made)["experiments"]] == ["b", "a"]
    assert made.index("# experiments below") < made.index("# the second one") < made.index('"b"')
    assert made.index('"b"') < made.index("# the first one") < made.index("files = 3")
    assert profile_tables.experiment_moved(made, 0, 1) == TEXT


def test_other_forms_are_edited_value_by_value_or_refused() -> None:
    assert "hosts.desk2 = {" in profile_tables.renamed(DOTTED, "desk", "desk2")
    assert tomllib.loads(profile_tables.without(DOTTED, "desk"))["hosts"] == {
        "server": {"role": "server", "ssh": "s"}
    }
    moved = profile_tables.experiment_moved(DOTTED, 0, 1)
    assert [one["name"] for one in tomllib.loads(moved)["experiments"]] == ["b", "a"]
    assert "# far" in moved
    text = DOTTED.replace('hosts.server = { role = "server", ssh = "s" }', 'hosts.server.role = "server"')
    with pytest.raises(BadInput, match="by clicking"):
        profile_tables.renamed(text, "server", "s2")


def test_a_text_that_is_no_toml_is_refused() -> None:
    for edit in (
        lambda: profile_tables.renamed("x = ", "a", "b"),
        lambda: profile_tables.without("x = ", "a"),
        lambda: profile_tables.experiment_moved("x = ", 0, 1),
    ):
        with pytest.raises(BadInput, match="no TOML"):
            edit()


CLIENTS = """\
schema = 1
[hosts.a]
role = "client"
[hosts.b]
role = "client"

[[experiments]]
clients = ["a", "b"] # both
[[experiments]]
clients = ["b"]
[[experiments]]
clients = 3 # all
"""


def test_a_client_is_renamed_where_experiments_name_it_and_goes_there_with_its_host() -> None:
    made = profile_tables.taking_part(CLIENTS, "b", "c")
    assert made == CLIENTS.replace('["a", "b"]', '["a", "c"]').replace('["b"]', '["c"]')
    gone = profile_tables.taking_part(CLIENTS, "b")
    assert [one.get("clients") for one in tomllib.loads(gone)["experiments"]] == [["a"], None, 2]
    assert "# both" in gone
    assert "# all" in gone
    assert profile_tables.taking_part(CLIENTS, "x", "y") == CLIENTS
