"""What BranchLab starts itself on a host, and what it does not on Windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from lab.errors import HostLacks
from lab.model import Cache, Host, Role
from lab.rig import checking, looking, services
from lab.rig.hosts import Connected


def connected(
    role: Role, kind: str = "", *, windows: bool = True, place: str | None = "D:\\Lab"
) -> Connected:
    cache = Cache(kind=kind, folder="D:\\Lab\\cache") if kind else None
    host = Host(name="office", role=role, ssh="office", services=place, cache=cache, root="direct")
    nothing: Any = None
    facts = {"windows": windows, "os": "Windows-10"}
    return Connected(host=host, connection=nothing, agent=nothing, root=cast("Any", object()), facts=facts)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (connected(Role.SERVER), "Name the repository of the server that is there"),
        (connected(Role.PROXY, "squid"), "use the proxy that is there as it is"),
        (connected(Role.PROXY, "nginx-proxy-cache"), 'kind = "apache-disk"'),
    ],
)
def test_what_cannot_be_started_on_windows_is_said_with_what_to_do_before_a_run(
    one: Connected, words: str
) -> None:
    lacks = services.not_on_windows(one)
    assert lacks is not None
    assert words in lacks[1]
    assert [item.ok for item in checking._windows(one, holds=False)] == [False, True]
    experiment = cast("Any", type("Asked", (), {"data": "quick"}))
    with pytest.raises(HostLacks, match="Windows") as caught:
        looking._refuse_rootless([one], experiment)
    assert (caught.value.advice, caught.value.host) == (lacks[1], "office")


@pytest.mark.parametrize(
    "one",
    [
        connected(Role.PROXY, "apache-disk"),
        connected(Role.PROXY, "squid", place=None),
        connected(Role.SERVER, place=None),
        connected(Role.SERVER, windows=False),
    ],
)
def test_the_rest_is_left_to_the_agent(one: Connected) -> None:
    assert services.not_on_windows(one) is None
    looking._refuse_rootless([one], cast("Any", type("Asked", (), {"data": None})))
    if one.host.services:
        with pytest.raises(HostLacks, match="no way to become root"):
            looking._refuse_rootless(
                [replace(one, root=None)], cast("Any", type("Asked", (), {"data": "quick"}))
            )
