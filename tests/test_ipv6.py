"""A lab without any IPv4: line, counters, probe, repository, proxy and the look at others, end to end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import real_runs
from real_runs import FULL, QUICK_LINE, Hosts, experiment

from lab import embedded
from lab.embedded import Embedded
from lab.events import Outcome, Standing
from lab.model import DISABLED, Host, Lab, Role
from lab.rig.doubts import doubts

pytestmark = pytest.mark.lab


@pytest.fixture
def lab() -> Iterator[Embedded]:
    with embedded.up() as made:
        yield made


def only_six(host: Host) -> Host:
    """The host as a profile of an IPv6 network has it."""
    url = f"http://[{host.address6}]:8081" if host.role is Role.PROXY else None
    return replace(host, address=None, url=url)


def test_a_run_in_a_network_without_ipv4(lab: Embedded, tmp_path: Path) -> None:
    six = Lab(name="six", hosts=tuple(only_six(host) for host in lab.lab.hosts))
    for host in six.hosts:
        assert host.address6
        real_runs.on(lab.folder, host.name, "ip -4 addr flush dev eth0")
    assert "inet " not in real_runs.on(lab.folder, "client", "ip addr show dev eth0")
    before = Hosts.of(lab.folder)
    wanted = experiment(lines=(QUICK_LINE,), states=(DISABLED, FULL))
    run = real_runs.ran(six, wanted, tmp_path / "six.branchlab")
    assert run.last_word.outcome is Outcome.DONE, run.last_word
    assert {one.standing for one in run.trials} == {Standing.KEPT}, [one.reason for one in run.trials]
    (proved,) = run.proved
    assert doubts(proved).disproved == ()
    (_, disabled), _ = run.of("get", DISABLED)
    (_, full), _ = run.of("get", FULL)
    # Through the line, then from the cache past it.
    assert disabled.bytes["server>client"] > 300_000
    assert disabled.bytes["proxy>client"] == 0
    assert full.bytes["proxy>client"] > 300_000
    assert full.served_bytes
    assert full.served_bytes > 200_000
    assert (full.wall_s or 0) < (disabled.wall_s or 0)
    real_runs.await_same(lab.folder, before)
