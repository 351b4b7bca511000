"""Kinds of cache, shipped and of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import caches, profile_shape
from lab.errors import BadInput
from ssh_agents import cache, service_asked


def test_each_shipped_kind_is_known_to_the_agents() -> None:
    assert set(caches.names()) == set(cache.KINDS)
    for name in caches.names():
        made = caches.kind(name)
        assert made.name == name
        assert made.engine in (service_asked.KINDS[made.service] if made.service else ("",))
        assert made.urls == cache.KINDS[name].urls == (name in cache.ROOTS)
        assert made.notes


def test_a_proxy_of_our_own_can_have_every_kind_that_a_service_makes() -> None:
    made = [caches.kind(name) for name in caches.names()]
    assert {one.name for one in made if one.service} == set(profile_shape.SERVED)
    assert {one.engine for one in made if one.service} == set(service_asked.KINDS["caching-proxy"])


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


@pytest.mark.parametrize("name", ["memcached", "", "../vcs/subversion", "apache-disk.toml"])
def test_an_unknown_kind_names_those_that_are_known(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        caches.kind(name)
    assert "apache-disk" in caught.value.advice
