"""The other published sources: their own figures, and gains as their authors give them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from lab.__main__ import cli
from lab.analysis import before_after
from lab.errors import BadInput


def test_the_sources_own_percentages_come_out() -> None:
    """Gains that the 2011 and 2013 sources print beside their figures, from minutes that they round."""
    files = before_after.pairs("files-2011")
    assert [round(100 * files.gain(row)) for row in files.rows] == [21, 22, 34, 42, 31, 5, 16]
    sync = before_after.pairs("sync-2013")
    gains = {row.case: 100 * sync.gain(row) for row in sync.rows}
    for case, percent in (
        ("A, total", 70),
        ("A, data", 36),
        ("A, signals", 74),
        ("C, total", 50),
        ("C, data", 33),
    ):
        assert gains[case] == pytest.approx(percent, abs=5)
    assert len(sync.rows) == 8


def test_every_push_scenario_is_there_and_the_least_gain_may_be_chance() -> None:
    push = before_after.pairs("bazaar-2008")
    assert [(row.before, row.after) for row in push.rows] == [
        (609, 441), (97, 67), (71, 61), (55, 44), (122, 51), (125, 124), (571, 434), (26, 8),
    ]  # fmt: skip
    assert push.text.startswith(
        "With the new one instead of the old version, 8 of 8 cases are better: the least by 0.8 % ("
    )
    assert ", which may be chance), the most by 69 % (push 0 new revisions) (published)." in push.text


@pytest.mark.parametrize("name", before_after.names())
def test_the_command_line_shows_them(name: str) -> None:
    one = before_after.pairs(name)
    plain = CliRunner().invoke(cli, ["show", name])
    assert plain.exit_code == 0, plain.output
    assert plain.stdout.startswith(f"{one.source}\n{one.text}\n")
    told = json.loads(CliRunner().invoke(cli, ["show", name, "--json"]).stdout)
    assert len(told["rows"]) == len(one.rows)


def test_another_name_is_refused() -> None:
    with pytest.raises(BadInput, match="no published comparison"):
        before_after.pairs("published-2008")
