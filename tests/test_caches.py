"""Kinds of cache, shipped and of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import caches
from lab.errors import BadInput
from ssh_agents import apache, cache


def test_each_shipped_kind_is_known_to_the_agents() -> None:
    assert caches.names() == ("apache-disk",)
    for name in caches.names():
        made = caches.kind(name)
        assert made.name == name
        assert apache.kind({"kind": made.service}) == made.service
        with pytest.raises(cache.protocol.Refused, match="absolute"):
            cache.listed({"kind": name, "folder": "x"}, None)  # type: ignore[arg-type]
        assert made.notes


def test_a_file_of_the_users_own_comes_first_and_is_checked(tmp_path: Path) -> None:
    own = tmp_path / "apache-disk.toml"
    own.write_text(
        'schema = 1\nname = "apache-disk"\ntitle = "Ours"\nobject = "x"\n'
        'service = "caching-proxy"\ntools = []\n'
    )
    assert caches.kind("apache-disk", tmp_path).title == "Ours"
    own.write_text("schema = 2\n")
    with pytest.raises(BadInput, match="schema"):
        caches.kind("apache-disk", tmp_path)
    own.write_text("schema =")
    with pytest.raises(BadInput, match="TOML"):
        caches.kind("apache-disk", tmp_path)


@pytest.mark.parametrize("name", ["squid", "", "../vcs/subversion", "apache-disk.toml"])
def test_an_unknown_kind_names_those_that_are_known(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        caches.kind(name)
    assert "apache-disk" in caught.value.advice
